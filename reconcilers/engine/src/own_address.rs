//! The addresses of the host that the service runs on.

use std::net::IpAddr;

use tokio::net::UdpSocket;

/// Returns true for an address of this host: it can be bound to. An address that stands for any of them is none.
pub async fn is_own_address(ip: IpAddr) -> bool {
    !ip.is_unspecified() && UdpSocket::bind((ip, 0)).await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn own_address_is_recognised() {
        for (ip, expected) in [
            ("127.0.0.1", true),
            ("192.0.2.1", false),
            ("0.0.0.0", false),
        ] {
            assert_eq!(is_own_address(ip.parse().unwrap()).await, expected, "{ip}");
        }
    }
}
