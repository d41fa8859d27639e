//! What is at rest, as reconcilers share it: the database, cached desired rows, the effective configuration, the
//! active adapter, the data directory. What one reconciler alone reads and writes is in its `store.rs`.

mod adapter_source;
mod cache;
mod config_source;
mod data_dir;
mod database;
mod desired;
mod lease_row;
mod status_store;
mod verified;

pub use adapter_source::{AdapterSource, PackageStore};
pub use cache::{Cache, Marks};
pub use config_source::{ConfigSource, ConfigStore};
pub use data_dir::{ByteStream, DataDir, LocalDataDir};
pub use database::Database;
pub use desired::{Desired, Rows};
pub use lease_row::LeaseRow;
pub use status_store::DbStatusStore;
pub use verified::Verified;
