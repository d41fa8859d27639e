//! The handlers, a module for each section of the HTTP contract.

pub mod accounts;
pub mod basic;
pub mod config;
pub mod login;
pub mod own_account;
pub mod superadmins;

pub use accounts::bind as bind_accounts;
