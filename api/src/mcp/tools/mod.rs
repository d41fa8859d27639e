//! The tools: what they are called, what they take, and what becomes of a call.

mod call;
mod catalogue;
mod result;
mod status;

pub use call::Caller;
pub use catalogue::{Catalogue, CatalogueError};
pub use result::CallResult;
