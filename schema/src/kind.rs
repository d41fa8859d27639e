//! The kinds of objects, and what distinguishes each from the others.
//!
//! Whatever treats all kinds alike (waiting, watching, listing, the command line) reads a kind's [`Descriptor`].
//! A new kind is its folder with a descriptor, and its line in the list of kinds below.

use serde::{Deserialize, Serialize};
use strum::VariantArray as _;

use crate::ids::Uid;

/// A line for each kind: the descriptor in its folder, and what it is.
macro_rules! kinds {
    ($($kind:ident => $($descriptor:ident)::+, $what:literal;)*) => {
        /// The kinds of objects that have a generation, a status and finalizers.
        #[derive(
            Debug,
            Clone,
            Copy,
            PartialEq,
            Eq,
            Hash,
            PartialOrd,
            Ord,
            Serialize,
            Deserialize,
            strum::Display,
            strum::EnumString,
            strum::IntoStaticStr,
            strum::VariantArray,
            utoipa::ToSchema,
        )]
        #[serde(rename_all = "kebab-case")]
        #[strum(serialize_all = "kebab-case")]
        #[schema(as = ObjectKind, example = "container")]
        pub enum Kind {
            $(#[doc = $what] $kind,)*
        }

        impl Kind {
            /// What distinguishes this kind from the others.
            pub const fn descriptor(self) -> &'static Descriptor {
                match self {
                    $(Self::$kind => &crate::$($descriptor)::+,)*
                }
            }
        }
    };
}

kinds! {
    User => user::KIND, "An ordinary user: the account's directory.";
    Container => container::KIND, "The agent container of a user.";
    Engine => kind::ENGINE, "The container engine and what is shared on it (network, data directory mapping).";
    Image => image::KIND, "An image that is to be on the engine, or absent from it.";
    Rollout => rollout::KIND, "A move of users from their images to another one.";
    AgentConfig => agent_config::KIND, "A user's agent configuration: the agent's own files.";
    Adapter => adapter::KIND, "The adapter package: how agents are run and configured.";
    Archive => archive::KIND, "The archive of the directories of deleted users.";
    Skill => skill::KIND, "A skill: its files in the store.";
    SkillRepository => skill_repository::KIND, "A git repository that skills are installed from.";
    SkillSet => skill_set::KIND, "The skills in a user's workspace.";
    Directory => directory::KIND, "The directory that users and groups come from.";
    Usage => usage::KIND, "The space that users' workspaces take.";
}

impl Kind {
    /// The stable text form, as stored and as shown in `kind/name`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The kinds of which there is one object, with its uid and name.
    pub fn singles() -> impl Iterator<Item = (Self, Uid, &'static str)> {
        Self::VARIANTS.iter().filter_map(|kind| {
            let name = kind.descriptor().single?;
            Some((*kind, Uid::singleton(name), name))
        })
    }
}

/// What distinguishes one kind from the others.
#[derive(Debug)]
pub struct Descriptor {
    /// Its name for many, such as `containers`.
    pub plural: &'static str,
    /// Short names that the command line accepts.
    pub short: &'static [&'static str],
    /// The finalizer that its reconciler sets before the first side effect; `None` when nothing of an object is
    /// outside the database.
    pub finalizer: Option<&'static str>,
    /// Kinds whose objects of the same uid must be gone before an object of this kind can go.
    pub removal_waits_for: &'static [Kind],
    /// Kinds whose objects of the same uid belong to an object of this kind: its health is that of the worst of them.
    pub parts: &'static [Kind],
    /// The kind whose object of the same uid shows the state of an object of this kind: a change of this one is a
    /// change of that one, too.
    pub shown_with: Option<Kind>,
    /// The name of its object, where there is only one: [`object::ensure_singles`] makes it.
    ///
    /// [`object::ensure_singles`]: crate::object::ensure_singles
    pub single: Option<&'static str>,
    /// The listing of this kind, where it has one besides that of all objects.
    pub listing: Option<Listing>,
    /// The columns of its table.
    pub columns: &'static [Column],
}

impl Descriptor {
    /// Nothing special: an object that lives in the database only and stands for itself.
    pub const fn new(plural: &'static str, short: &'static [&'static str]) -> Self {
        Self {
            plural,
            short,
            finalizer: None,
            removal_waits_for: &[],
            parts: &[],
            shown_with: None,
            single: None,
            listing: None,
            columns: OBJECT_COLUMNS,
        }
    }
}

/// Where the API lists things, in pages, filtered by `search`.
#[derive(Debug, Clone, Copy)]
pub struct Listing {
    /// Path of the route.
    pub path: &'static str,
    /// The field of the answer that holds the list.
    pub list: &'static str,
    /// The field of an item that names it.
    pub id: &'static str,
}

/// One column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its title.
    pub title: &'static str,
    /// The field of an item in the API's answer, dotted; in a list, a name selects the item of that `type`.
    pub field: &'static str,
    /// How the value is shown.
    pub show: Show,
    /// Shown in the wide table only.
    pub wide: bool,
}

/// How a value is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// As it is.
    Text,
    /// A digest or a commit: its first 12 characters.
    Digest,
    /// Counts of objects: how many of how many are done.
    Progress,
    /// A moment, as the time since then or until then.
    Age,
    /// A word of status, in the colour of its meaning.
    Status,
    /// The reason of a condition; with `Paused` while the item is, since a paused object keeps its last reason.
    Reason,
}

impl Column {
    /// A column that shows a value as it is.
    pub const fn text(title: &'static str, field: &'static str) -> Self {
        Self {
            title,
            field,
            show: Show::Text,
            wide: false,
        }
    }

    /// A column that shows the time since a moment, or until it.
    pub const fn age(title: &'static str, field: &'static str) -> Self {
        Self::text(title, field).show(Show::Age)
    }

    /// A column that shows the first 12 characters of a digest.
    pub const fn digest(title: &'static str, field: &'static str) -> Self {
        Self::text(title, field).show(Show::Digest)
    }

    /// A column that shows a word of status.
    pub const fn status(title: &'static str, field: &'static str) -> Self {
        Self::text(title, field).show(Show::Status)
    }

    /// The same column, shown in another way.
    #[must_use]
    pub const fn show(self, show: Show) -> Self {
        Self { show, ..self }
    }

    /// The same column, in the wide table only.
    #[must_use]
    pub const fn wide(self) -> Self {
        Self { wide: true, ..self }
    }
}

/// The name.
pub const NAME: Column = Column::text("NAME", "name");
/// The name of an account.
pub const USERNAME: Column = Column::text("NAME", "username");
/// Status of `Ready`.
pub const READY: Column = Column::status("READY", "conditions.Ready.status");
/// Why `Ready` has that status.
pub const REASON: Column = Column::text("REASON", "conditions.Ready.reason").show(Show::Reason);
/// Since when `Ready` has that status.
pub const SINCE: Column = Column::age("SINCE", "conditions.Ready.last_transition_at");
/// What `Ready` says.
pub const MESSAGE: Column = Column::text("MESSAGE", "conditions.Ready.message").wide();
/// Failed passes in a row.
pub const FAILURES: Column = Column::text("FAILURES", "failures");
/// When the next attempt is made.
pub const NEXT_TRY: Column = Column::age("NEXT TRY", "next_attempt_at");
/// Time since it was created.
pub const AGE: Column = Column::age("AGE", "created_at");
/// The generation.
pub const GENERATION: Column = Column::text("GENERATION", "generation").wide();
/// The newest generation that was observed.
pub const OBSERVED: Column = Column::text("OBSERVED", "observed_generation").wide();
/// The identity.
pub const UID: Column = Column::text("UID", "uid").wide();

/// The columns of a kind that shows nothing of its own.
pub const OBJECT_COLUMNS: &[Column] = &[
    NAME, READY, REASON, SINCE, FAILURES, NEXT_TRY, AGE, GENERATION, OBSERVED, UID, MESSAGE,
];

/// The engine has no folder: nothing of it is desired but its settings.
const ENGINE: Descriptor = Descriptor {
    single: Some(crate::config::query::ENGINE_NAME),
    ..Descriptor::new("engines", &["e"])
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use strum::VariantArray;

    use super::*;

    #[test]
    fn every_name_means_one_kind() {
        let mut names = BTreeSet::new();
        for kind in Kind::VARIANTS {
            let descriptor = kind.descriptor();
            for name in [kind.as_str(), descriptor.plural]
                .iter()
                .chain(descriptor.short)
            {
                assert!(names.insert(*name), "{name}");
            }
        }
    }

    #[test]
    fn what_is_waited_for_and_shown_is_no_circle() {
        for kind in Kind::VARIANTS {
            let descriptor = kind.descriptor();
            for first in descriptor.removal_waits_for {
                assert!(first.descriptor().removal_waits_for.is_empty(), "{kind}");
            }
            if let Some(shown) = descriptor.shown_with {
                // A change has room for two versions: its own and that of the object it is shown with.
                assert_eq!(shown.descriptor().shown_with, None, "{kind}");
            }
        }
    }
}
