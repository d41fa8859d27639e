mod converge;
mod faults;
pub mod support;
