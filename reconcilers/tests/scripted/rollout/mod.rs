//! The way of whole rollouts, on a database in memory and with containers that obey a script.

mod faults;
mod images;
mod properties;
mod steps;
mod support;
mod ways;
