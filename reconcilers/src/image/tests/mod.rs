mod converge;
mod faults;
mod plan;
mod pulls;
mod support;
