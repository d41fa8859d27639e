//! The networks behind the host that agents reach.

use std::fmt;
use std::str::FromStr;

use cidr::Ipv4Cidr;

use super::rules;
use crate::zone::Zone;

/// Addresses that agents reach by way of the host, besides public ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LanAccess {
    /// All, the metadata services of clouds included.
    Open,
    /// Private networks.
    #[default]
    Private,
    /// These private networks.
    Only(Vec<Ipv4Cidr>),
}

impl fmt::Display for LanAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("open"),
            Self::Private => f.write_str("private"),
            Self::Only(networks) if networks.is_empty() => f.write_str("none"),
            Self::Only(networks) => {
                let networks: Vec<String> = networks.iter().map(Ipv4Cidr::to_string).collect();
                f.write_str(&networks.join(","))
            }
        }
    }
}

impl FromStr for LanAccess {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "open" => return Ok(Self::Open),
            "private" => return Ok(Self::Private),
            "none" => return Ok(Self::Only(Vec::new())),
            _ => {}
        }
        let words = text.split([',', ' ']).filter(|word| !word.is_empty());
        let networks: Option<Vec<Ipv4Cidr>> = words.map(private_network).collect();
        let networks = networks.filter(|networks| !networks.is_empty());
        match networks {
            Some(networks) if rules::line(text).is_ok() => Ok(Self::Only(networks)),
            _ => Err(
                "must be private, none, open, or private IPv4 networks such as 10.1.0.0/16,192.168.7.0/24, host bits zero \
                 (public addresses are open anyway, and agents have no IPv6)",
            ),
        }
    }
}

/// Reads a network that lies in a private one.
fn private_network(text: &str) -> Option<Ipv4Cidr> {
    let network: Ipv4Cidr = text.parse().ok()?;
    let ends = [network.first_address(), network.last_address()];
    let mut private = Zone::Private.networks_v4();
    private
        .any(|private| ends.iter().all(|end| private.contains(end)))
        .then_some(network)
}
