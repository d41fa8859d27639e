//! Rollouts.

use std::collections::BTreeMap;

use schema::ids::Timestamp;
use schema::rollout::{self, DesiredRollout, Phase};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Reading, Sections};
use crate::error::Result;

/// What is desired of a rollout.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DesiredRolloutState)]
pub struct Desired {
    /// The full reference of the new image.
    image: String,
    /// The desired state as it was requested.
    desired: DesiredRollout,
    /// How many users may be under way at once.
    max_unavailable: u32,
    /// Whether a failure pauses the rollout.
    pause_on_failure: bool,
    /// How long a user's new container may take to become ready, in seconds.
    health_timeout_s: u64,
    /// How long it must have been ready before its user counts as moved, in seconds.
    min_ready_s: u64,
    /// Raised by each resume.
    attempt: i64,
}

/// What was observed of a rollout.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObservedRollout)]
pub struct Observed {
    /// The full reference of the new image.
    image: String,
    /// What it was resolved to.
    image_id: Option<String>,
    /// How far it is.
    phase: Phase,
    /// What it is doing, or why it stopped, as a sentence.
    message: String,
    /// When it ended.
    finished_at: Option<Timestamp>,
    /// How many users are in which state.
    users: BTreeMap<String, usize>,
}

pub(super) async fn read(at: &mut Reading<'_>) -> Result<Sections<Desired, Observed>> {
    let Some((row, targets)) = rollout::get(at.connection, &at.row.uid).await? else {
        return Ok(Sections::none());
    };
    let mut users = BTreeMap::new();
    for target in targets {
        let state: &str = target.state.into();
        *users.entry(state.to_owned()).or_default() += 1;
    }
    let observed = Observed {
        image: row.reference.clone(),
        phase: row.phase(),
        image_id: row.facts.image_id,
        message: row.facts.message,
        finished_at: row.facts.finished_at,
        users,
    };
    let desired = Desired {
        image: row.reference,
        desired: row.desired,
        max_unavailable: row.max_unavailable,
        pause_on_failure: row.pause_on_failure,
        health_timeout_s: row.health_timeout.as_secs(),
        min_ready_s: row.min_ready.as_secs(),
        attempt: row.attempt,
    };
    Ok(Sections::known(Some(desired), Some(observed)))
}
