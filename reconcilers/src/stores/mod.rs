//! Everything at rest as reconcilers see it: the database ([`Store`], statuses, and a cache of desired
//! state) and the data directory ([`DataDir`]). Both have a second implementation in [`memory`], for
//! simulations.

mod adapter_source;
mod cache;
mod config_source;
mod data_dir;
mod db_store;
mod lease_row;
pub mod memory;
mod status_store;
mod store;

pub use adapter_source::AdapterSource;
pub use cache::{Cache, Marks};
pub use config_source::ConfigSource;
pub use data_dir::{DataDir, LocalDataDir};
pub use db_store::DbStore;
pub use lease_row::LeaseRow;
pub use status_store::{DbStatusStore, DirtyObserver};
pub use store::{RolloutStep, Store};
