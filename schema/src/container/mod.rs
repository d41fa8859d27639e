//! The desired state of users' containers, and what their reconciler remembers.

mod model;
pub(crate) mod query;

pub use model::{AgentFiles, ContainerFacts, ContainerRow, Desired, StatusWord, status_word};
pub use query::{
    all, count_on_network, get, purge, request_fresh, request_restart, save_facts, set_desired,
    set_limits,
};
pub(crate) use query::{create, forget_health_timeout, set_image};
