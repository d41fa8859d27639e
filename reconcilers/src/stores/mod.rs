//! The database as reconcilers see it: statuses, and a cache of desired state.

mod cache;
mod config_source;
mod lease_row;
mod status_store;

pub use cache::{Cache, Marks};
pub use config_source::ConfigSource;
pub use lease_row::LeaseRow;
pub use status_store::{DbStatusStore, DirtyObserver};
