//! Subnets of the agents' network.

use std::net::Ipv4Addr;

use super::EngineError;

/// A subnet and its gateway, the first address. IPv4, as the engine's bridge has by default.
pub fn parse_subnet(text: &str) -> Result<(cidr::Ipv4Cidr, Ipv4Addr), EngineError> {
    let subnet: cidr::Ipv4Cidr = text
        .parse()
        .map_err(|_| EngineError::Refused(format!("{text:?} is not an IPv4 subnet")))?;
    match subnet.iter().nth(1) {
        Some(gateway) if subnet.network_length() <= 30 => Ok((subnet, gateway.address())),
        _ => Err(EngineError::Refused(format!(
            "the subnet {subnet} has no room"
        ))),
    }
}
