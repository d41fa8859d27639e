//! What an entry records.

use std::fmt::Display;

use serde::Serialize;
use sqlx::FromRow;
use strum::{Display, EnumString, IntoStaticStr};

use super::chain::ChainKey;
use crate::ids::Timestamp;

/// Longest actor, address, action or request id, in bytes.
const MAX_WORD: usize = 128;
/// Longest detail, in bytes.
const MAX_DETAIL: usize = 1024;

/// `ok`, `refused`, or `failed`: begun and not completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Display, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// It was done.
    Ok,
    /// It was refused, and changed nothing.
    Refused,
    /// It was begun, as another entry of the same request says, and not completed.
    Failed,
}

/// Who acts, from where, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// An account's name, `socket:<uid>`, `local:<uid>`, `system:<part>`, or `-` for nobody known.
    /// No account's name holds a colon or begins with a dash.
    pub actor: String,
    /// The client's address; empty when there is none.
    pub address: String,
    /// What is done: a route's name, or a command's.
    pub action: String,
    /// Under which id the log speaks of it; empty when there is none.
    pub request_id: String,
}

impl Author {
    /// Somebody with this user id, at the command line.
    pub fn local(uid: u32, action: &str) -> Self {
        Self::without_request(format!("local:{uid}"), action)
    }

    /// A part of the service itself.
    pub fn system(part: &str, action: &str) -> Self {
        Self::without_request(format!("system:{part}"), action)
    }

    fn without_request(actor: String, action: &str) -> Self {
        Self {
            actor,
            address: String::new(),
            action: action.to_owned(),
            request_id: String::new(),
        }
    }
}

/// What is acted on, and a few words more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    object: String,
    detail: String,
}

impl About {
    /// One object, as `kind/name`.
    pub fn object(kind: impl Display, name: impl Display) -> Self {
        Self::whole(format!("{kind}/{name}"))
    }

    /// Something there is only one of, such as `config`.
    pub fn whole(name: impl Into<String>) -> Self {
        Self {
            object: name.into(),
            detail: String::new(),
        }
    }

    /// Another object. All are named in one entry, separated by commas, which no name holds.
    #[must_use]
    pub fn and(self, kind: impl Display, name: impl Display) -> Self {
        self.and_whole(format!("{kind}/{name}"))
    }

    /// Another one of which there is only one.
    #[must_use]
    pub fn and_whole(mut self, name: impl Display) -> Self {
        self.object.push_str(&format!(",{name}"));
        self
    }

    /// What else is worth recording. Never a secret: names of keys, not their values.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }
}

impl About {
    /// The same with something more to the detail.
    #[must_use]
    pub fn more(mut self, detail: &str) -> Self {
        if !self.detail.is_empty() {
            self.detail.push_str("; ");
        }
        self.detail.push_str(detail);
        self
    }
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, FromRow, utoipa::ToSchema)]
#[schema(as = AuditEntryFields)]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// The actor: an account, `token:<name>` with an API token, `socket:<uid>` on the admin socket, or `-`.
    pub actor: String,
    /// The client's address; empty on the admin socket.
    pub address: String,
    /// What was done: an operation id of this document; `mcp_call` for a tool that an agent called.
    pub action: String,
    /// The object: `kind/name`, several separated by commas; `<service>/<tool>` of a tool.
    pub object: String,
    /// `ok`, `refused`, or `failed`: begun and not completed. The details of a tool call say more.
    pub outcome: String,
    /// Details.
    pub detail: String,
    /// The request's id, as in the log.
    pub request_id: String,
}

impl Entry {
    /// An entry whose texts are bounded and hold no control characters: some of them come from
    /// clients, and PostgreSQL stores no NUL.
    pub fn new(author: Author, about: About, outcome: Outcome, at: Timestamp) -> Self {
        Self {
            at,
            actor: clean(&author.actor, MAX_WORD),
            address: clean(&author.address, MAX_WORD),
            action: clean(&author.action, MAX_WORD),
            // As many objects as a request may name; cutting one off would hide it.
            object: clean(&about.object, usize::MAX),
            outcome: outcome.to_string(),
            detail: clean(&about.detail, MAX_DETAIL),
            request_id: clean(&author.request_id, MAX_WORD),
        }
    }
}

/// An entry at its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, FromRow)]
pub struct Record {
    /// Rises by one with every entry.
    pub seq: i64,
    /// What it records.
    #[serde(flatten)]
    #[sqlx(flatten)]
    pub entry: Entry,
    /// Seals it and everything before it.
    pub hash: String,
    /// How many events it stands for: more than one of calls that are folded.
    pub count: i64,
    /// Time of the newest of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Timestamp>,
    /// Authenticates the number, if it stands for several.
    #[serde(skip)]
    pub(super) mac: Option<String>,
}

impl Record {
    /// True if it stands for as many events as were counted.
    pub(super) fn is_counted_by(&self, key: &ChainKey) -> bool {
        match (&self.mac, self.last_at) {
            (Some(mac), Some(last_at)) => {
                self.entry.is_fold() && *mac == key.fold(self.seq, self.count, last_at)
            }
            _ => !self.entry.is_fold(),
        }
    }
}

/// Which entries are selected. Empty texts match all; letter case does not matter.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of this actor.
    pub actor: String,
    /// About this object, as `kind/name`.
    pub object: String,
    /// About what belongs, or belonged, to a user of this name.
    pub user: String,
    /// Of this action.
    pub action: String,
    /// Not older than this.
    pub since: Timestamp,
    /// With this text anywhere.
    pub search: String,
}

fn clean(text: &str, max: usize) -> String {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let cut = text.get(..end).unwrap_or_default();
    cut.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_send_is_bounded_and_printable() {
        let author = Author {
            actor: "a\0b\n".to_owned(),
            request_id: "x".repeat(1000),
            ..Author::local(0, "test")
        };
        let about = About::object("user", "alice").detail("ä".repeat(1000));
        let entry = Entry::new(author, about, Outcome::Ok, Timestamp::default());
        assert_eq!(entry.actor, "a b ");
        assert_eq!(entry.request_id.len(), MAX_WORD);
        assert_eq!(entry.detail.len(), MAX_DETAIL);
    }

    #[test]
    fn several_objects_are_one_text() {
        let about = About::object("user", "a").and("user", "b");
        assert_eq!(about.object, "user/a,user/b");
    }
}
