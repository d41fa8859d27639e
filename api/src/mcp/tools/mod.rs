//! The tools: what they are called, what they take, and what becomes of a call.
//!
//! `catalogue.json` lists them. `call` checks a call and waits for its turn; then the executor does it itself, or `browser` and
//! `computer` make it of several tools of the executor.

pub(crate) mod arguments;
mod batch;
mod bounded;
mod browser;
mod call;
mod catalogue;
mod computer;
mod elsewhere;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod picture;
mod result;
mod status;
mod text;
mod turn;

pub use call::{Bounds, Caller};
pub use catalogue::{Catalogue, CatalogueError};
pub use result::{CallResult, Meta};
