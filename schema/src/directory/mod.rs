//! Users whom a directory or an identity provider knows: what it last said of each, and synchronisations that were asked for.

mod model;
pub(crate) mod query;

pub use model::{
    DirectoryFacts, Held, KnownGroup, KnownUser, Listed, Request, Skipped, SyncCounts, SyncResult,
    SyncScope, UserChange, are_different,
};
pub use query::{
    Page, apply, facts, groups, known, missing_since, name_of, name_of_identity, rename, request,
    requested, save_facts, settle_groups, signed_in, subjects, superadmins,
};

use crate::audit::About;
use crate::ids::{Kind, Uid, UserName};
use crate::kind::Descriptor;

/// The name of the one directory object.
pub const OBJECT_NAME: &str = "users";

pub(crate) const KIND: Descriptor = Descriptor {
    single: Some(OBJECT_NAME),
    ..Descriptor::new("directories", &["dir"])
};

/// The action of a rename, as the audit trail names it.
pub const RENAME: &str = "directory_rename";

/// A rename, as the audit trail records it: under both names.
pub fn about_rename(before: &UserName, name: &UserName) -> About {
    let about = About::object(Kind::User, before).and(Kind::User, name);
    about.detail(format!("renamed from {before} to {name}"))
}

/// The uid of the one directory object.
pub fn object_uid() -> Uid {
    Uid::singleton(OBJECT_NAME)
}
