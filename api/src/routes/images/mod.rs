//! Images on the engine and in registries, and moving users between them.

mod control;
mod delete;
mod holders;
mod list;
mod local;
mod names;
mod preview;
mod progress;
mod pull;
mod registry;
mod rollouts;
mod select;
mod start;
#[cfg(test)]
mod tests;
mod users;

pub(in crate::routes) use self::control::{Noted, cancel as cancel_rollout, cancel_pull, noted};
pub(in crate::routes) use self::holders::Meant;
pub(in crate::routes) use self::list::{minute, size_text};
pub(in crate::routes) use self::names::{Named, managed};
pub(in crate::routes) use self::pull::is_open as is_open_pull;
pub(in crate::routes) use self::start::{check_target, roll_out};
use crate::route::{Failure, Route};

const NO_ROLLOUT: Failure = Failure(404, "not_found", "no such rollout");
pub(in crate::routes) const IN_ROLLOUT: Failure = Failure(
    409,
    "in_rollout",
    "one of the users is in another unfinished rollout",
);

/// The routes of this area.
pub(super) fn routes() -> Vec<Route> {
    let files = [
        list::routes(),
        pull::routes(),
        delete::routes(),
        start::routes(),
        rollouts::routes(),
        control::routes(),
        registry::routes(),
        users::routes(),
    ];
    files.into_iter().flatten().collect()
}
