//! Changes as watchers receive them.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use sqlx::FromRow;

use crate::column::{Flag, JsonList};
use crate::condition::{self, Condition, ConditionType};
use crate::container::status_word;
use crate::ids::{Generation, Kind, Uid};
use crate::object::StatusRow;

/// How far a watcher has read, in the history of one installation. Its text form is
/// `<installation>-<version>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Whose history: the identity of the installation.
    pub instance: String,
    /// The newest version that was read.
    pub version: i64,
}

impl Position {
    /// Another version of the same history.
    #[must_use]
    pub fn at(&self, version: i64) -> Self {
        Self {
            instance: self.instance.clone(),
            version,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.instance, self.version)
    }
}

impl Serialize for Position {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A text that is no position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a position is <installation>-<number>, as the server has sent it")]
pub struct InvalidPosition;

impl FromStr for Position {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, InvalidPosition> {
        let (instance, version) = text.rsplit_once('-').ok_or(InvalidPosition)?;
        let plain = |text: &str, fits: fn(&u8) -> bool| text.bytes().all(|byte| fits(&byte));
        // `parse` alone would take a sign, too.
        if !plain(instance, u8::is_ascii_alphanumeric) || !plain(version, u8::is_ascii_digit) {
            return Err(InvalidPosition);
        }
        Ok(Self {
            instance: instance.to_owned(),
            version: version.parse().map_err(|_| InvalidPosition)?,
        })
    }
}

/// Which objects are watched; the default is all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only those of this kind.
    pub kind: Option<Kind>,
    /// Only those that have or had this name, in lower case.
    pub name: Option<String>,
    /// Only container, configuration and skills of this user.
    pub of_user: Option<Uid>,
}

impl Filter {
    /// The objects of this kind and name; case does not matter, as in the names of users.
    pub fn object(kind: Kind, name: &str) -> Self {
        Self {
            kind: Some(kind),
            name: Some(name.to_ascii_lowercase()),
            of_user: None,
        }
    }

    /// Container, configuration and skills of a user.
    pub fn of_user(uid: Uid) -> Self {
        Self {
            of_user: Some(uid),
            ..Self::default()
        }
    }

    /// Whether a change is one of a watched object.
    pub fn takes(&self, change: &Change) -> bool {
        self.kind.is_none_or(|kind| kind.as_str() == change.kind)
            && self
                .name
                .as_deref()
                .is_none_or(|name| change.name.eq_ignore_ascii_case(name))
            && self
                .of_user
                .as_ref()
                .is_none_or(|uid| change.uid == *uid && change.kind != Kind::User.as_str())
    }
}

/// What has changed since a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// In the order of their versions; whoever has read them knows everything up to `through`.
    Changes {
        /// The newest version of each object that changed.
        changes: Vec<Change>,
        /// Where to go on.
        through: i64,
        /// Whether there is more.
        more: bool,
    },
    /// The history since then is gone, or was never here: the watcher must list everything again,
    /// and go on from here.
    Resync(Position),
}

/// The present state of an object that has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Rises with every change of any object.
    #[serde(skip)]
    pub version: i64,
    /// `user`, `container`, …
    #[serde(skip)]
    pub kind: String,
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// `kind/name`.
    pub object: String,
    /// Identity: distinguishes two bearers of one name.
    pub uid: Uid,
    /// How often its desired state changed.
    pub generation: Generation,
    /// The newest generation a pass has observed.
    pub observed_generation: Generation,
    /// `True`, `False` or `Unknown`.
    pub ready: String,
    /// Why, for programs; empty before the first pass and after the last.
    pub reason: String,
    /// One word: as in the listing of users for users and containers, for other kinds `ready`,
    /// `not_ready` or `unknown`; `deleted` for what is gone.
    pub status: String,
}

#[derive(FromRow)]
pub(super) struct RawChange {
    version: i64,
    kind: String,
    uid: Uid,
    name: String,
    /// That of an object that is gone.
    last_generation: Generation,
    /// `None` when it is gone.
    generation: Option<Generation>,
    #[sqlx(try_from = "Flag")]
    deleted: bool,
    #[sqlx(flatten)]
    status: StatusRow,
    #[sqlx(try_from = "Flag")]
    container_desired: bool,
    container_generation: Generation,
    container_observed_generation: Generation,
    #[sqlx(try_from = "JsonList<Condition>")]
    container_conditions: Vec<Condition>,
}

impl From<RawChange> for Change {
    fn from(raw: RawChange) -> Self {
        let ready = condition::find(&raw.status.conditions, ConditionType::Ready);
        let (ready, reason) = ready.map_or(("Unknown", ""), |condition| {
            (condition.status.into(), condition.reason.as_str())
        });
        let container = StatusRow {
            observed_generation: raw.container_observed_generation,
            conditions: raw.container_conditions,
            ..StatusRow::default()
        };
        let word = match ready {
            // A user's word is that of its container, as in the listing.
            _ if matches!(&*raw.kind, "user" | "container") => status_word(
                raw.container_desired,
                raw.deleted,
                raw.container_generation,
                &container,
            )
            .into(),
            "True" => "ready",
            "False" => "not_ready",
            _ => "unknown",
        };
        let last = (
            raw.last_generation,
            raw.last_generation,
            "False",
            "",
            "deleted",
        );
        let observed = raw.status.observed_generation;
        let (generation, observed_generation, ready, reason, status) =
            raw.generation.map_or(last, |generation| {
                (generation, observed, ready, reason, word)
            });
        Self {
            object: format!("{}/{}", raw.kind, raw.name),
            version: raw.version,
            kind: raw.kind,
            name: raw.name,
            uid: raw.uid,
            generation,
            observed_generation,
            ready: ready.to_owned(),
            reason: reason.to_owned(),
            status: status.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_an_installation_and_a_version() {
        let position = Position {
            instance: "a1b2".to_owned(),
            version: 42,
        };
        assert_eq!(position.to_string(), "a1b2-42");
        assert_eq!("a1b2-42".parse(), Ok(position.clone()));
        assert_eq!(position.at(43).to_string(), "a1b2-43");
        for text in [
            "",
            "42",
            "a1b2-",
            "a1b2-x",
            "a1b2--1",
            "a1b2-+1",
            "a b-1",
            "a\n-1",
            "a-b-1",
            "a-99999999999999999999",
        ] {
            assert_eq!(text.parse::<Position>(), Err(InvalidPosition), "{text:?}");
        }
    }
}
