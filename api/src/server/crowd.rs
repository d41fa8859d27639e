//! How many connections each client has: one client alone must not take them all.

use std::sync::Arc;

use tokio::sync::watch;

use super::request::Peer;
use crate::auth::client_address::Network;
use crate::limits::{self, CONNECTIONS, KeyedCounter};
use crate::settings::WebSettings;

/// The clients of one listener.
pub(super) struct Crowd {
    settings: watch::Receiver<Arc<WebSettings>>,
    connections: KeyedCounter<Network>,
}

/// A connection's place among those of its client; given back when dropped.
pub(super) struct Place {
    _held: Option<limits::Place<Network>>,
}

impl Crowd {
    /// At most so many connections of one client, but for the trusted proxies of these settings.
    pub(super) fn new(most: usize, settings: watch::Receiver<Arc<WebSettings>>) -> Self {
        Self {
            settings,
            connections: KeyedCounter::with_most(&CONNECTIONS, most),
        }
    }

    /// A place for a connection from there; `None` when its client has its share already.
    pub(super) fn enter(&self, peer: &Peer) -> Option<Place> {
        let Some(address) = peer.addr.map(|addr| addr.ip().to_canonical()) else {
            return Some(Place { _held: None });
        };
        let settings = self.settings.borrow().clone();
        if settings
            .trusted_proxies
            .iter()
            .any(|n| n.contains(&address))
        {
            return Some(Place { _held: None });
        }
        let held = self.connections.enter(&Network::from(address))?;
        Some(Place { _held: Some(held) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer {
            addr: Some((address.parse::<std::net::IpAddr>().unwrap(), 1).into()),
            ..Peer::default()
        }
    }

    #[test]
    fn l63_a_client_has_its_share_of_the_connections_and_no_more() {
        let settings = WebSettings {
            trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
            ..WebSettings::default()
        };
        let (_sender, settings) = watch::channel(Arc::new(settings));
        let crowd = Crowd::new(2, settings);
        let one = crowd.enter(&peer("192.0.2.1"));
        let mapped = crowd.enter(&peer("::ffff:192.0.2.1"));
        assert!(one.is_some() && mapped.is_some());
        assert!(crowd.enter(&peer("192.0.2.1")).is_none());
        assert!(crowd.enter(&peer("192.0.2.2")).is_some());
        let sixes: Vec<_> = (0..3)
            .filter_map(|n| crowd.enter(&peer(&format!("2001:db8::{n}"))))
            .collect();
        assert_eq!(sixes.len(), 2);
        assert!(crowd.enter(&peer("2001:db8:0:1::1")).is_some());
        let proxied: Vec<_> = (0..9).map(|_| crowd.enter(&peer("10.0.0.1"))).collect();
        let socket: Vec<_> = (0..9).map(|_| crowd.enter(&Peer::default())).collect();
        assert!(proxied.iter().chain(&socket).all(Option::is_some));
        drop(one);
        assert!(crowd.enter(&peer("192.0.2.1")).is_some());
        drop((mapped, sixes));
        assert!(crowd.connections.is_empty());
    }
}
