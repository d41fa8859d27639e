//! Rollouts: users move from their images to another one, a few at a time, and back.
//!
//! A rollout is an operation of the same id. A user is in at most one unfinished rollout, so nobody else
//! changes the image of its container meanwhile.

use crate::kind::{self, Column, Descriptor, Listing, Show};

pub mod held;
mod model;
pub(crate) mod query;

pub use model::{
    DesiredRollout, ImageChoice, NewRollout, Phase, ReadinessPolicy, RolloutFacts, RolloutKind,
    RolloutRow, RolloutTarget, TargetContainer, TargetFiles, TargetState,
};
pub use query::{
    cancel, check_free, create, finish_target, finish_targets, get, head, list, move_target,
    newest_of_image, pause, put_back, release_target, resume, roll_back, save_facts, unfinished,
    unfinished_of_image, unsettled,
};

pub(crate) const KIND: Descriptor = Descriptor {
    listing: Some(Listing {
        path: "/api/admin/images/rollouts",
        list: "rollouts",
        id: "id",
    }),
    columns: &[
        Column::text("NAME", "id"),
        Column::text("TYPE", "type"),
        Column::status("STATE", "phase"),
        Column::text("IMAGE", "reference"),
        Column::text("PROGRESS", "progress").show(Show::Progress),
        kind::AGE,
        Column::text("FROM", "source").wide(),
        Column::text("ACTOR", "actor").wide(),
        Column::age("ENDED", "finished_at").wide(),
        Column::text("MESSAGE", "message").wide(),
    ],
    ..Descriptor::new("rollouts", &["ro"])
};
