//! What users set up of their own agents: channels, and cookies of web sites.
//!
//! Handlers record what is wanted, and the agent-config reconciler writes the files. Which channels there are and what
//! fields they have is declared by the active adapter; which of them users may set up is decided by an administrator,
//! who enables them in the global settings.

mod channels;
mod chatapp;
mod cookies;
mod domain;
mod fields;
mod forms;
mod own_sessions;
mod save;
#[cfg(test)]
mod tests;

use crate::route::{Failure, Route};

const GLOBAL: Failure = Failure(
    422,
    "invalid_global_config",
    "the global agent settings are not valid",
);
const NO_CHANNEL: Failure = Failure(
    404,
    "not_found",
    "the agent has no such channel, or the account is being removed",
);
const NOT_ALLOWED: Failure = Failure(
    403,
    "channel_not_allowed",
    "the channel is not allowed by an administrator",
);
const READ_FAILURES: &[Failure] = &[NO_CHANNEL, NOT_ALLOWED, GLOBAL];
const SAVE_FAILURES: &[Failure] = &[
    NO_CHANNEL,
    NOT_ALLOWED,
    GLOBAL,
    Failure::REMOVED,
    Failure(
        422,
        "invalid_values",
        "`problems` names every field that is refused",
    ),
];

/// The routes of this area.
pub(super) fn routes() -> Vec<Route> {
    let files = [
        chatapp::routes(),
        channels::routes(),
        fields::routes(),
        cookies::routes(),
    ];
    files.into_iter().flatten().collect()
}
