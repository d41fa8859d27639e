//! The container engine as reconcilers see it.
//!
//! [`Compute`] is one engine: a few small traits of idempotent verbs over plain data, split by the callers that need them.
//! No type of an engine's client library appears here, and nothing here says which engine it is, so a second kind of engine
//! is another crate below this one that passes the same contract suite.
//!
//! Contract, for every implementation:
//! - *Already so is success*: starting what runs, stopping what stands, removing what is gone.
//! - *Unknown is not empty*: a listing that could not be read is an error, never an empty list.
//! - Every call may be cancelled at any await and repeated.
//! - [`EngineError::Unavailable`] means the engine could not be reached; nothing is known of the world.

mod address;
mod answer;
mod bind_homes;
mod compute;
mod containers;
mod digests;
pub mod drift;
mod error;
mod event;
mod exec;
mod firewall;
mod foreign;
mod homes;
mod images;
mod info;
mod isolation;
mod labels;
mod log;
mod metered;
mod network;
pub mod own_address;
mod reference;
mod subnet;

use std::pin::Pin;
use std::time::Duration;

use futures::Stream;
pub use schema::image::PullEvent;
pub use schema::live::{
    Bind, Container, ContainerDetails, ContainerSettings, ContainerState, ExecSettings,
    LABEL_RESTART_TOKEN, LocalImage as Image, LogLimits, LogOptions, Network, Probe,
    RegistryCredentials, Sample, Usage as Stats,
};

pub use address::{EngineAddress, EngineCheck, EngineContext, EngineFault};
pub use answer::{MESSAGE_LIMIT, ignore_missing, limit_time, shorten_text};
pub use bind_homes::{BindHomes, ContainerFiles};
pub use compute::{Attendance, Compute, EngineFacts};
pub use containers::Containers;
pub use digests::{Digests, Meaning};
pub use error::EngineError;
pub use event::EngineEvent;
pub use exec::{Exec, ExecControl, exec_variables, mark_variable};
pub use firewall::{FirewallError, Found, HostFirewall, HostRules};
pub use foreign::ForeignOwner;
pub use homes::{HomeMounts, ImageHome, PROBE_FILE, PROBE_FOLDER, Proof};
pub use images::Images;
pub use info::{EngineInfo, Limits};
pub use isolation::{AgentAddress, Isolation, IsolationProof, Reach};
pub use labels::{LABEL_GENERATION, LABEL_OWNER, LABEL_SPEC_DIGEST, LABEL_UID};
pub use log::LogChunk;
pub use metered::Metered;
pub use network::{AgentNetwork, NETWORK, NetworkSettings, NetworkState};
pub use reference::tagged;
pub use subnet::parse_subnet;

/// Longest time for an engine to answer before it counts as unavailable.
pub const PING_LIMIT: Duration = Duration::from_secs(8);
/// Longest time of a call.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// A stream of an engine's items, boxed.
pub type EngineStream<T> = Pin<Box<dyn Stream<Item = Result<T, EngineError>> + Send>>;
