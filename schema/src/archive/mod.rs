//! The archive of users' directories: one object. What is desired of it is the setting `archive.retention`.

pub(crate) mod query;

use serde::{Deserialize, Serialize};

pub use query::{facts, save_facts};

use crate::home::Archive;
use crate::ids::Uid;
use crate::kind::Descriptor;

/// The name of the one archive object.
pub const OBJECT_NAME: &str = "local";

pub(crate) const KIND: Descriptor = Descriptor {
    single: Some(OBJECT_NAME),
    ..Descriptor::new("archives", &["ar"])
};

/// The uid of the one archive object.
pub fn object_uid() -> Uid {
    Uid::singleton(OBJECT_NAME)
}

/// What was last seen in the archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = ObservedArchive)]
pub struct ArchiveFacts {
    /// How many archives there are.
    pub count: u64,
    /// The oldest of them.
    pub oldest: Vec<Archive>,
}

impl ArchiveFacts {
    /// How many archives are remembered one by one.
    const REMEMBERED: usize = 100;

    /// What is remembered of these archives, the oldest of which comes first.
    pub fn of(archives: &[Archive]) -> Self {
        Self {
            count: archives.len() as u64,
            oldest: archives.iter().take(Self::REMEMBERED).cloned().collect(),
        }
    }
}
