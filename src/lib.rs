//! The service as a whole: settings, preparation, wiring, command line. A library so that tests and
//! benchmarks run it in their own process, on an engine of their choice.

pub mod backup;
pub mod base_adapter;
pub mod certificate;
pub mod cli;
pub mod console;
pub mod logging;
pub mod prepare;
pub mod settings;
pub mod watchdog;
pub mod wiring;
