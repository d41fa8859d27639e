//! The database as reconcilers see it: statuses, and a cache of desired state.

mod config_source;
mod desired;
mod lease_row;
mod status_store;

pub use config_source::ConfigSource;
pub use desired::Desired;
pub use lease_row::LeaseRow;
pub use status_store::{DbStatusStore, DirtyObserver};
