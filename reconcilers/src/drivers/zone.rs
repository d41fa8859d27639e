//! Which network an address is in, so that no stranger's answer leads the service to where only it can reach.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Whom an address can be reached by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Zone {
    /// Everybody.
    Public,
    /// An organisation (RFC 1918, RFC 4193, RFC 6598).
    Private,
    /// One link (RFC 3927, RFC 4291), where clouds have their metadata services; and whatever is no address of one host.
    LinkLocal,
    /// This machine.
    Loopback,
}

impl Zone {
    /// The zone of an address; one of IPv4 within IPv6 counts as what it stands for.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let shared = address.octets()[0] == 100 && address.octets()[1] & 0xc0 == 64;
        if address.is_loopback() || address.octets()[0] == 0 {
            // A connection to 0.0.0.0 reaches this machine.
            Self::Loopback
        } else if address.is_private() || shared {
            Self::Private
        } else if address.is_link_local() || address.octets()[0] >= 224 {
            Self::LinkLocal
        } else {
            Self::Public
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        // Translated (RFC 6052) and 6to4 (RFC 3056) addresses hold one of IPv4.
        let embedded = match address.segments() {
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => Some((high, low)),
            _ => None,
        };
        if let Some((high, low)) = embedded {
            return Self::of_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
        }
        if address.is_loopback() || address.is_unspecified() {
            Self::Loopback
        } else if address.is_unique_local() {
            Self::Private
        } else if address.is_unicast_link_local() || address.is_multicast() {
            Self::LinkLocal
        } else {
            Self::Public
        }
    }
}

/// Whether somebody at `from` may name these addresses: public ones, and those in a zone in which it is itself.
pub fn may_name(from: &[SocketAddr], named: &[SocketAddr]) -> bool {
    let zones = |all: &[SocketAddr]| -> BTreeSet<Zone> {
        let each = all.iter().map(|address| Zone::of(address.ip()));
        each.collect()
    };
    let own = zones(from);
    let known = |zone: &Zone| *zone == Zone::Public || own.contains(zone);
    zones(named).iter().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_in_its_zone() {
        for (address, expected) in [
            ("8.8.8.8", Zone::Public),
            ("172.32.0.1", Zone::Public),
            ("100.128.0.1", Zone::Public),
            ("2606:4700::1", Zone::Public),
            ("64:ff9b::808:808", Zone::Public),
            ("10.1.2.3", Zone::Private),
            ("172.16.0.1", Zone::Private),
            ("192.168.1.1", Zone::Private),
            ("100.64.0.1", Zone::Private),
            ("fd00::1", Zone::Private),
            ("::ffff:10.0.0.1", Zone::Private),
            ("64:ff9b::a00:1", Zone::Private),
            ("2002:a00:1::1", Zone::Private),
            ("169.254.169.254", Zone::LinkLocal),
            ("224.0.0.1", Zone::LinkLocal),
            ("255.255.255.255", Zone::LinkLocal),
            ("fe80::1", Zone::LinkLocal),
            ("ff02::1", Zone::LinkLocal),
            ("::ffff:169.254.169.254", Zone::LinkLocal),
            ("127.0.0.1", Zone::Loopback),
            ("127.9.9.9", Zone::Loopback),
            ("0.0.0.0", Zone::Loopback),
            ("::1", Zone::Loopback),
            ("::", Zone::Loopback),
            ("::ffff:127.0.0.1", Zone::Loopback),
        ] {
            assert_eq!(Zone::of(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn who_is_outside_names_nothing_inside() {
        let at = |all: &[&str]| -> Vec<SocketAddr> {
            let address = |ip: &&str| SocketAddr::new(ip.parse().unwrap(), 443);
            all.iter().map(address).collect()
        };
        for (from, named, expected) in [
            (&["8.8.8.8"][..], &["9.9.9.9", "2606:4700::1"][..], true),
            (&["8.8.8.8"], &["10.0.0.1"], false),
            (&["8.8.8.8"], &["9.9.9.9", "127.0.0.1"], false),
            (&["8.8.8.8"], &["169.254.169.254"], false),
            (&["10.0.0.1"], &["192.168.0.1", "9.9.9.9"], true),
            (&["10.0.0.1"], &["169.254.169.254"], false),
            (&["10.0.0.1"], &["127.0.0.1"], false),
            (&["127.0.0.1"], &["::1"], true),
            (&["127.0.0.1"], &["10.0.0.1"], false),
            (&[], &["10.0.0.1"], false),
            (&[], &[], true),
        ] {
            assert_eq!(
                may_name(&at(from), &at(named)),
                expected,
                "{from:?} {named:?}"
            );
        }
    }
}
