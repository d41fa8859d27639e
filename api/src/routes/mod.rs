//! The handlers, a module for each section of the HTTP contract.

pub mod basic;
