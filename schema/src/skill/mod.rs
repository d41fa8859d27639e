//! Skills: which there are, the versions that are kept, and who gets which.
//!
//! Their files are in the [store](crate::skill_store). A skill is bound to groups (and so to whoever is in a group below),
//! to single users, and by `skills.defaults` to everybody. Each change of what a user gets raises the generation of exactly
//! that user's [`SkillSet`](crate::ids::Kind::SkillSet), in the same transaction ([`impact`]).

mod binding;
pub mod impact;
mod model;
pub(crate) mod query;

use crate::kind::{self, Column, Descriptor, Listing};

pub(crate) use binding::STATEMENTS as BINDING_STATEMENTS;
pub(crate) use binding::forget_user;
pub(crate) use binding::set_defaults;
pub use binding::{Subject, bind, bindings, count_bindings, defaults, unbind, unbind_everywhere};
pub(crate) use impact::STATEMENTS as IMPACT_STATEMENTS;
pub use model::{
    Binding, NewVersion, Origin, Saved, SkillListing, SkillRow, SkillVersion, TreeDigest, TreeStamp,
};
pub use query::{
    all, bound_groups, delete, deployed, find, get, kept_digests, list, lock, purge, roll_back,
    save_version, skills_of_group, versions,
};

/// How many versions of a skill are kept.
pub const VERSIONS_KEPT: i64 = 10;

pub(crate) const KIND: Descriptor = Descriptor {
    finalizer: Some(query::FINALIZER),
    listing: Some(Listing {
        path: "/api/admin/skills",
        list: "skills",
        id: "name",
    }),
    columns: &[
        kind::NAME,
        Column::text("NUMBER", "number"),
        Column::text("VERSION", "version"),
        Column::text("SOURCE", "source"),
        Column::text("FILES", "file_count"),
        Column::text("SIZE", "size_str"),
        Column::text("USERS", "user_count"),
        Column::text("GROUPS", "bound_groups"),
        kind::READY,
        kind::REASON,
        Column::age("UPDATED", "modified_at"),
        Column::text("EVERYONE", "bound_to_everyone").wide(),
        Column::text("DIGEST", "digest").wide(),
        Column::text("DESCRIPTION", "description").wide(),
        kind::MESSAGE,
    ],
    ..Descriptor::new("skills", &["sk"])
};
