//! Named points at which a test can end the process: see [`schema::fault`]. The runtime passes one
//! before and after every action and every status write.

pub use schema::fault::{point, point_with, task};
