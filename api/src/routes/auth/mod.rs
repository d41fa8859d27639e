//! Where users come from: the directory, synchronisations, the whitelist, and what each authentication mode can do.

mod check;
mod check_provider;
mod providers;
mod sync;
#[cfg(test)]
mod tests;
mod users;
pub(super) mod whitelist;

use crate::error::ApiError;
use crate::ports::DirectoryFailure;
use crate::route::{Failure, Route};

/// The routes of this folder.
pub(super) fn routes() -> Vec<Route> {
    let files = [
        providers::routes(),
        check::routes(),
        check_provider::routes(),
        users::routes(),
        sync::routes(),
        whitelist::routes(),
    ];
    files.into_iter().flatten().collect()
}

pub(in crate::routes) use check::{check_directory, record};
pub(in crate::routes) use check_provider::check_provider;
pub(in crate::routes) use providers::{Provider, provider};

/// The directory did not answer.
const REMOTE: Failure = Failure(
    502,
    "remote_failed",
    "the directory cannot be asked, or its answer is not complete",
);

impl From<DirectoryFailure> for ApiError {
    fn from(failure: DirectoryFailure) -> Self {
        Self::Remote { message: failure.0 }
    }
}
