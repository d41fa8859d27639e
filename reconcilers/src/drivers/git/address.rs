//! Where a host is, and whether the service may go there.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use schema::zone::Zone;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::GitError;
use crate::drivers::zone;

/// A host with the addresses that were checked: nothing else is connected to, whatever its name means by then.
#[derive(Debug, Clone)]
pub(super) struct Checked {
    pub(super) host: String,
    pub(super) addresses: Vec<SocketAddr>,
}

/// Resolves a host and refuses addresses inside, unless they are allowed. `from` is who has named it, `None` being the
/// administrator: a server may send to no zone in which it is not itself, even where addresses inside are allowed.
pub(super) async fn check(
    host: &str,
    port: u16,
    from: Option<&[SocketAddr]>,
    allow_private: bool,
    limit: Duration,
) -> Result<Checked, GitError> {
    let unknown = || GitError::UnknownHost(host.to_owned());
    let found = timeout(limit, lookup_host((host, port))).await;
    let addresses: Vec<SocketAddr> = found
        .map_err(|_| unknown())?
        .map_err(|_| unknown())?
        .collect();
    if addresses.is_empty() {
        return Err(unknown());
    }
    match refused(&addresses, from, allow_private) {
        Some(address) => Err(GitError::Internal {
            host: host.to_owned(),
            address,
        }),
        None => Ok(Checked {
            host: host.to_owned(),
            addresses,
        }),
    }
}

/// The first address to which the service may not go. One is enough for none of them: names that mean both are made for
/// getting past this.
fn refused(
    addresses: &[SocketAddr],
    from: Option<&[SocketAddr]>,
    allow_private: bool,
) -> Option<IpAddr> {
    let mut all = addresses.iter();
    let bad = all.find(|address| match (allow_private, from) {
        (false, _) => Zone::from_address(address.ip()) != Zone::Public,
        (true, None) => false,
        (true, Some(from)) => !zone::may_name(from, std::slice::from_ref(address)),
    });
    bad.map(SocketAddr::ip)
}

impl Checked {
    /// The first address that takes connections, for a program that is given only one.
    pub(super) async fn reachable(&self, limit: Duration) -> Result<IpAddr, GitError> {
        let mut why = String::new();
        for address in &self.addresses {
            match timeout(limit, TcpStream::connect(address)).await {
                Ok(Ok(_)) => return Ok(address.ip()),
                Ok(Err(error)) => why = format!("{address}: {error}"),
                Err(_) => why = format!("{address}: no answer within {} s", limit.as_secs()),
            }
        }
        Err(GitError::Unreachable(why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(all: &[&str]) -> Vec<SocketAddr> {
        let address = |ip: &&str| SocketAddr::new(ip.parse().unwrap(), 443);
        all.iter().map(address).collect()
    }

    #[test]
    fn l28_addresses_inside_are_refused_also_among_others_and_after_a_redirect() {
        for (addresses, from, allow_private, expected) in [
            (&["8.8.8.8"][..], None, false, None),
            (&["8.8.8.8", "10.0.0.1"], None, false, Some("10.0.0.1")),
            (&["127.0.0.1"], None, false, Some("127.0.0.1")),
            (&["169.254.169.254"], None, false, Some("169.254.169.254")),
            (&["169.254.169.254"], None, true, None),
            (&["8.8.8.8"], Some(&["9.9.9.9"][..]), false, None),
            (&["10.0.0.1"], Some(&["9.9.9.9"]), false, Some("10.0.0.1")),
            (&["10.0.0.1"], Some(&["9.9.9.9"]), true, Some("10.0.0.1")),
            (&["10.0.0.1"], Some(&["10.0.0.2"]), true, None),
            (&["10.0.0.1"], Some(&["10.0.0.2"]), false, Some("10.0.0.1")),
            (
                &["169.254.169.254"],
                Some(&["127.0.0.1"]),
                true,
                Some("169.254.169.254"),
            ),
        ] {
            let from = from.map(at);
            let seen = refused(&at(addresses), from.as_deref(), allow_private);
            let expected = expected.map(|ip: &str| ip.parse().unwrap());
            assert_eq!(seen, expected, "{addresses:?} {from:?} {allow_private}");
        }
    }

    #[tokio::test]
    async fn l28_every_way_to_write_an_address_inside_is_refused() {
        for host in [
            "127.0.0.1",
            "localhost",
            "::1",
            "::ffff:127.0.0.1",
            "0.0.0.0",
            "::",
            "169.254.169.254",
            "10.1.2.3",
            // As the resolver reads them for SSH; of HTTP they are rewritten before.
            "2130706433",
            "017700000001",
            "0177.0.0.1",
            "0x7f.1",
            "127.1",
        ] {
            let seen = check(host, 22, None, false, Duration::from_secs(10)).await;
            assert!(
                matches!(seen, Err(GitError::Internal { .. })),
                "{host}: {seen:?}"
            );
        }
    }
}
