//! The addresses that the host of a provider has.

use std::net::IpAddr;
use std::time::Duration;

use engine::own_address::is_own_address;
use schema::live::ModelHost;
use tokio::net::lookup_host;
use tokio::time::timeout;
use url::{Host, Url};

/// Longest time for a name to be resolved.
const RESOLVE: Duration = Duration::from_secs(2);
/// Most addresses of a name that are looked at.
const MOST: usize = 16;

/// Returns the addresses of a provider's host; none for a name that this host does not resolve within two seconds.
pub async fn locate(address: &Url) -> Vec<ModelHost> {
    let found: Vec<IpAddr> = match address.host() {
        Some(Host::Ipv4(ip)) => vec![ip.into()],
        Some(Host::Ipv6(ip)) => vec![ip.into()],
        Some(Host::Domain(name)) => match timeout(RESOLVE, lookup_host((name, 0))).await {
            Ok(Ok(found)) => found.take(MOST).map(|address| address.ip()).collect(),
            Ok(Err(_)) | Err(_) => Vec::new(),
        },
        None => Vec::new(),
    };
    let mut hosts = Vec::with_capacity(found.len());
    for ip in found {
        let ip = ip.to_canonical();
        let is_own = is_own_address(ip).await;
        hosts.push(ModelHost { ip, is_own });
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn own_addresses_are_marked() {
        for (address, expected) in [
            ("http://127.0.0.1:1/v1", Some(("127.0.0.1", true))),
            ("http://192.0.2.1", Some(("192.0.2.1", false))),
            ("http://[::ffff:192.0.2.1]", Some(("192.0.2.1", false))),
            ("http://nowhere.invalid", None),
        ] {
            let found = locate(&address.parse().unwrap()).await;
            let expected = expected.map(|(ip, is_own)| ModelHost {
                ip: ip.parse().unwrap(),
                is_own,
            });
            assert_eq!(found, Vec::from_iter(expected), "{address}");
        }
    }
}
