//! Time in the runtime.
//!
//! Moments that are stored or shown come from [`schema::clock`]; delays, deadlines and timers use
//! `tokio::time`, which tests can pause.

pub use schema::clock::{Clock, ManualClock, SharedClock, SystemClock};
