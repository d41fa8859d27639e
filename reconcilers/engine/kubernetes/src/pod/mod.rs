//! Programs that run in Pods beside agents, of the service's own image: they need nothing but the network and one file.
//!
//! Addresses are HOST:PORT. A host of IPv6 may stand without brackets, since the cluster puts it there from a variable.

mod names;
mod nonce;
mod probe;
mod wait;

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

pub use nonce::read_nonce;
pub use probe::{Findings, Target, probe};
pub use wait::wait_closed;

/// File from which the cluster takes what a Pod says at its end.
pub const MESSAGE: &str = "/dev/termination-log";
/// Time for a connection within a cluster.
const CONNECT: Duration = Duration::from_secs(1);

/// Returns true if a connection can be made. An address that cannot be resolved is not reached.
fn is_reached(address: &str) -> bool {
    let Ok(addresses) = resolve_address(address) else {
        return false;
    };
    let mut addresses = addresses.iter();
    addresses.any(|address| TcpStream::connect_timeout(address, CONNECT).is_ok())
}

fn resolve_address(address: &str) -> io::Result<Vec<SocketAddr>> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "an address is HOST:PORT");
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port.parse().map_err(|_| wrong())?;
    let host = host.trim_matches(['[', ']']);
    Ok((host, port).to_socket_addrs()?.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("127.0.0.1:443", "127.0.0.1:443")]
    #[case("::1:443", "[::1]:443")]
    #[case("[::1]:443", "[::1]:443")]
    fn address_needs_no_brackets(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(resolve_address(text).unwrap(), [expected.parse().unwrap()]);
    }

    #[rstest::rstest]
    #[case("127.0.0.1")]
    #[case("127.0.0.1:http")]
    #[case(":")]
    fn address_without_a_port_is_refused(#[case] text: &str) {
        assert!(resolve_address(text).is_err());
    }

    #[test]
    fn only_a_listener_is_reached() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert!(is_reached(&address));
        drop(listener);
        assert!(!is_reached(&address));
    }
}
