//! Keeps answers of strangers from leading the service to where only it can reach.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use schema::zone::Zone;

/// Returns true when a server at `from` may name these addresses: public ones, and those in a zone in which it is itself.
pub fn may_name(from: &[SocketAddr], named: &[SocketAddr]) -> bool {
    let zones = |all: &[SocketAddr]| -> BTreeSet<Zone> {
        let each = all.iter().map(|address| Zone::from_address(address.ip()));
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
