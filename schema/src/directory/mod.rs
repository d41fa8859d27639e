//! Users whom a directory or an identity provider knows: what it last said of each, and synchronisations that were asked for.

mod model;
pub(crate) mod query;

pub use model::{
    DirectoryFacts, Held, KnownGroup, KnownUser, Listed, Request, Skipped, SyncCounts, SyncResult,
    SyncScope, UserChange,
};
pub use query::{
    Page, apply, facts, groups, known, missing_since, name_of, request, requested, save_facts,
    settle_groups, signed_in, subjects, superadmins,
};

use crate::ids::Uid;
use crate::kind::Descriptor;

/// The name of the one directory object.
pub const OBJECT_NAME: &str = "users";

pub(crate) const KIND: Descriptor = Descriptor {
    single: Some(OBJECT_NAME),
    ..Descriptor::new("directories", &["dir"])
};

/// The uid of the one directory object.
pub fn object_uid() -> Uid {
    Uid::singleton(OBJECT_NAME)
}
