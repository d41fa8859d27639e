//! The handlers, a module for each section of the HTTP contract.

pub mod accounts;
pub mod basic;
pub mod config;
pub mod containers;
mod fleet;
pub mod health;
mod live;
mod log_lines;
pub mod login;
pub mod own_account;
pub mod own_container;
mod page;
mod params;
pub mod reconcile;
pub mod superadmins;
pub mod tasks;
#[cfg(test)]
pub(crate) mod test_support;
pub mod users;

use crate::access::Op;
use crate::dispatch::{Binder, Registry, RegistryError};

/// Every route with its handler.
///
/// # Errors
/// When a route has no handler, or two.
pub fn registry() -> Result<Registry, RegistryError> {
    let binder = Binder::default()
        .bind(Op::Health, basic::health)
        .bind(Op::Liveness, basic::liveness)
        .bind(Op::LoginMode, basic::login_mode)
        .bind(Op::Csrf, basic::csrf);
    fleet::bind_fleet(accounts::bind(binder)).build()
}
