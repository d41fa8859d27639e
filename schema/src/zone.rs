//! The network that an address belongs to, by the registries of special-purpose addresses (RFC 6890, IANA).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cidr::{Ipv4Cidr, Ipv6Cidr};

/// The machines that an address can be reached from, nearest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Zone {
    /// All of the internet.
    Public,
    /// An organisation, or a network for tests and examples.
    Private,
    /// One link, where clouds have their metadata services; and addresses that are of no single machine.
    LinkLocal,
    /// This machine.
    Loopback,
}

/// Networks of IPv4 that are not public. Of several that hold an address the first one counts.
const V4: [(Ipv4Addr, u8, Zone); 17] = [
    // Metadata services of clouds that are on no link-local address.
    (Ipv4Addr::new(100, 100, 100, 200), 32, Zone::LinkLocal),
    (Ipv4Addr::new(168, 63, 129, 16), 32, Zone::LinkLocal),
    (Ipv4Addr::new(192, 0, 0, 192), 32, Zone::LinkLocal),
    // A connection to 0.0.0.0 reaches this machine.
    (Ipv4Addr::new(0, 0, 0, 0), 8, Zone::Loopback),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Zone::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Zone::Private),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Zone::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Zone::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Zone::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Zone::Private),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Zone::Private),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Zone::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Zone::Private),
    (Ipv4Addr::new(198, 51, 100, 0), 24, Zone::Private),
    (Ipv4Addr::new(203, 0, 113, 0), 24, Zone::Private),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Zone::LinkLocal),
    (Ipv4Addr::new(240, 0, 0, 0), 4, Zone::LinkLocal),
];

/// Networks of IPv6 that are not public. Of several that hold an address the first one counts.
const V6: [(Ipv6Addr, u32, Zone); 13] = [
    // The metadata service of a cloud.
    (
        Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
        128,
        Zone::LinkLocal,
    ),
    (Ipv6Addr::UNSPECIFIED, 128, Zone::Loopback),
    (Ipv6Addr::LOCALHOST, 128, Zone::Loopback),
    // Translation inside one organisation (RFC 8215).
    (
        Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0),
        48,
        Zone::Private,
    ),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64, Zone::Private),
    (
        Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0),
        23,
        Zone::Private,
    ),
    (
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0),
        32,
        Zone::Private,
    ),
    (
        Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0),
        20,
        Zone::Private,
    ),
    (
        Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0),
        16,
        Zone::Private,
    ),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Zone::Private),
    (
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0),
        10,
        Zone::LinkLocal,
    ),
    // Sites, before RFC 3879.
    (
        Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0),
        10,
        Zone::Private,
    ),
    (
        Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0),
        8,
        Zone::LinkLocal,
    ),
];

impl Zone {
    /// The networks of IPv4 in this zone, besides addresses that another zone takes from them.
    pub fn networks_v4(self) -> impl Iterator<Item = Ipv4Cidr> {
        let networks = V4.iter().filter(move |(_, _, zone)| *zone == self);
        networks.filter_map(|(network, length, _)| Ipv4Cidr::new(*network, *length).ok())
    }

    /// The same of IPv6.
    pub fn networks_v6(self) -> impl Iterator<Item = Ipv6Cidr> {
        let networks = V6.iter().filter(move |(_, _, zone)| *zone == self);
        networks.filter_map(|(network, length, _)| {
            let length = u8::try_from(*length).ok()?;
            Ipv6Cidr::new(*network, length).ok()
        })
    }

    /// The zone of an address. An address of IPv6 that stands for one of IPv4 has the zone of that.
    pub fn from_address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => {
                embedded(address).map_or_else(|| Self::of_v6(address), Self::of_v4)
            }
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let differs = |network: &Ipv4Addr| (network.to_bits() ^ address.to_bits()).leading_zeros();
        let mut networks = V4.iter();
        let found = networks.find(|(network, length, _)| differs(network) >= u32::from(*length));
        found.map_or(Self::Public, |(_, _, zone)| *zone)
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        let differs = |network: &Ipv6Addr| (network.to_bits() ^ address.to_bits()).leading_zeros();
        let mut networks = V6.iter();
        let found = networks.find(|(network, length, _)| differs(network) >= *length);
        found.map_or(Self::Public, |(_, _, zone)| *zone)
    }
}

/// The address of IPv4 that one of IPv6 stands for: compatible and mapped (RFC 4291), translated (RFC 7915, RFC 6052), 6to4
/// (RFC 3056).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => {
            Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_in_its_zone() {
        for (zone, addresses) in [
            (
                Zone::Public,
                &[
                    "8.8.8.8",
                    "172.32.0.1",
                    "100.128.0.1",
                    "192.0.1.1",
                    "198.20.0.1",
                    "2606:4700::1",
                    "64:ff9b::808:808",
                    "2002:808:808::1",
                    "::8.8.8.8",
                    "::ffff:8.8.8.8",
                ][..],
            ),
            (
                Zone::Private,
                &[
                    "10.1.2.3",
                    "172.16.0.1",
                    "192.168.1.1",
                    "100.64.0.1",
                    "192.0.0.8",
                    "192.0.2.1",
                    "198.18.0.1",
                    "198.19.255.255",
                    "198.51.100.1",
                    "203.0.113.1",
                    "fd00::1",
                    "fec0::1",
                    "64:ff9b:1::1",
                    "64:ff9b:1:7f00:0:100::",
                    "2001::1",
                    "2001:db8::1",
                    "3fff::1",
                    "5f00::1",
                    "100::1",
                    "::ffff:10.0.0.1",
                    "64:ff9b::a00:1",
                    "2002:a00:1::1",
                    "::10.0.0.1",
                    "::ffff:0:10.0.0.1",
                ],
            ),
            (
                Zone::LinkLocal,
                &[
                    "169.254.169.254",
                    "100.100.100.200",
                    "168.63.129.16",
                    "192.0.0.192",
                    "fd00:ec2::254",
                    "224.0.0.1",
                    "255.255.255.255",
                    "240.0.0.1",
                    "fe80::1",
                    "ff02::1",
                    "::ffff:169.254.169.254",
                    "64:ff9b::a9fe:a9fe",
                    "2002:a9fe:a9fe::",
                    "::169.254.169.254",
                    "::ffff:0:169.254.169.254",
                    "2002:e000:1::",
                ],
            ),
            (
                Zone::Loopback,
                &[
                    "127.0.0.1",
                    "127.9.9.9",
                    "0.0.0.0",
                    "0.1.2.3",
                    "::1",
                    "::",
                    "::ffff:127.0.0.1",
                    "::127.0.0.1",
                    "::ffff:0:127.0.0.1",
                    "64:ff9b::7f00:1",
                    "2002:7f00:1::",
                ],
            ),
        ] {
            for address in addresses {
                assert_eq!(
                    Zone::from_address(address.parse().unwrap()),
                    zone,
                    "{address}"
                );
            }
        }
    }
}
