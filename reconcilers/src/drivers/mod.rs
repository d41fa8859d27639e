//! The doors to the world: each is a trait with a real implementation and a scripted fake.

pub mod adapter_source;
pub mod agent_probe;
pub mod git;
pub mod ldap;
pub mod model_probe;
pub mod oidc;
pub mod registry;
mod trust;
pub mod zone;

/// Most characters of what a server says.
const LONGEST: usize = 300;

/// What a server says, in one line without control characters, and no longer than is read.
fn shown(text: &str) -> String {
    let plain = text.chars().filter(|c| !c.is_control());
    plain.take(LONGEST).collect::<String>().trim().to_owned()
}
