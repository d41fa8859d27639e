//! Entries as lines of a conversation's file: the newest line of an id counts.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use schema::home::conversations::{LINE, Verdict};
use schema::ids::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use super::bounded::{Cut, First, MOST_ATTACHMENTS, MOST_PARTS, NAME, TEXT};
use super::protocol::{
    Attachment, Body, Entry, FailureCode, MessageStatus, NoticeCode, SentFile, ToolCall,
};

/// Greatest id that is taken from a file.
const MOST_ID: u64 = 1 << 50;
/// Most ids of removed entries that are known while a file is read.
const MOST_REMOVED: usize = 50_000;
/// Lines of earlier entries in a row after which a full [`Log`] is complete.
const MOST_EARLIER: usize = 2000;

/// A line to write.
#[derive(Debug, Clone)]
pub(super) enum Line {
    /// The state of an entry.
    Entry(Arc<Entry>),
    /// The removal of an entry.
    Removed(u64),
}

#[derive(Serialize)]
struct Removal {
    id: u64,
    removed: bool,
}

impl Line {
    /// Returns the memory that it takes, in bytes.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Entry(entry) => entry.weight(),
            Self::Removed(_) => size_of::<Self>(),
        }
    }

    /// Writes the line as JSON of at most [`LINE`] bytes. A text that makes it longer is shortened; an entry that stays too long is
    /// replaced by a notice.
    pub(super) fn to_json(&self) -> Option<String> {
        match self {
            Self::Entry(entry) => to_short_json(entry),
            Self::Removed(id) => {
                let (id, removed) = (*id, true);
                serde_json::to_string(&Removal { id, removed }).ok()
            }
        }
    }
}

fn to_short_json(entry: &Entry) -> Option<String> {
    let whole = serde_json::to_string(entry).ok()?;
    let Some(excess) = whole.len().checked_sub(LINE).filter(|excess| *excess > 0) else {
        return Some(whole);
    };
    drop(whole);
    let mut short = entry.clone();
    let text = match &mut short.body {
        Body::User { text, .. } | Body::Answer { text, .. } | Body::Thought { text, .. } => {
            Some(text)
        }
        Body::Failure { text, .. } | Body::Notice { text, .. } => Some(text),
        Body::Files { text, .. } => text.as_mut(),
        Body::Tools { .. } => None,
    };
    if let Some(text) = text {
        // Each byte of a text is at least one of JSON.
        let kept = text.len().saturating_sub(excess);
        let kept = (0..=kept).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(kept.unwrap_or_default());
    }
    let line = serde_json::to_string(&short).ok();
    if let Some(line) = line.filter(|line| line.len() <= LINE) {
        return Some(line);
    }
    short.body = Body::Notice {
        code: NoticeCode::Cut,
        text: "This entry is longer than can be kept; it is left out.".to_owned(),
    };
    serde_json::to_string(&short).ok()
}

/// The part of a line that says of which entry it is.
#[derive(Deserialize)]
struct Head {
    id: u64,
    #[serde(default)]
    removed: bool,
}

/// The fields of entries of all kinds. An enum with a tag would keep a copy of each unknown field, however long.
#[derive(Deserialize)]
struct Fields {
    id: u64,
    at: Timestamp,
    kind: EntryKind,
    text: Option<Cut<TEXT>>,
    client_id: Option<Cut<NAME>>,
    #[serde(default)]
    attachments: First<Attachment, MOST_ATTACHMENTS>,
    status: Option<MessageStatus>,
    model: Option<Cut<NAME>>,
    #[serde(default)]
    streaming: bool,
    used_percent: Option<u32>,
    #[serde(default)]
    calls: First<ToolCall, MOST_PARTS>,
    #[serde(default)]
    files: First<SentFile, MOST_PARTS>,
    code: Option<Cut<NAME>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EntryKind {
    User,
    Answer,
    Thought,
    Tools,
    Files,
    Failure,
    Notice,
}

impl Fields {
    fn into_entry(self) -> Option<Entry> {
        let text = self.text.map(|Cut(text)| text);
        let code = self.code.unwrap_or_default().0;
        let body = match self.kind {
            EntryKind::User => Body::User {
                text: text?,
                client_id: self.client_id.map(|Cut(id)| id),
                attachments: self.attachments.0,
                status: self.status?,
            },
            EntryKind::Answer => Body::Answer {
                text: text?,
                model: self.model.map(|Cut(model)| model),
                streaming: self.streaming,
                used_percent: self.used_percent,
            },
            EntryKind::Thought => Body::Thought {
                text: text?,
                streaming: self.streaming,
            },
            EntryKind::Tools => Body::Tools {
                calls: self.calls.0,
            },
            EntryKind::Files => Body::Files {
                files: self.files.0,
                text,
            },
            EntryKind::Failure => Body::Failure {
                code: read_code::<FailureCode>(&code)?,
                text: text?,
            },
            EntryKind::Notice => Body::Notice {
                code: read_code::<NoticeCode>(&code)?,
                text: text?,
            },
        };
        let (id, at) = (self.id, self.at);
        Some(Entry { id, at, body })
    }
}

fn read_code<'de, T: Deserialize<'de>>(code: &'de str) -> Option<T> {
    use serde::de::value::{Error, StrDeserializer};
    T::deserialize(StrDeserializer::<Error>::new(code)).ok()
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entry = Fields::deserialize(deserializer)?.into_entry();
        entry.ok_or_else(|| serde::de::Error::custom("a field of this kind of entry is missing"))
    }
}

/// Returns false for a line that cannot be one of a conversation, at the cost of a look at its beginning.
fn may_be_line(line: &str) -> bool {
    line.starts_with('{') && line.len() > "{\"id\":1}".len()
}

/// Bounds of a [`Log`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Only entries before this id.
    pub(crate) before: u64,
    /// Most entries.
    pub(crate) entries: usize,
    /// Most bytes of all entries, in memory or as JSON.
    pub(crate) bytes: usize,
}

/// The newest entries of a conversation, made from its lines, the newest one first.
#[derive(Debug)]
pub(crate) struct Log {
    wanted: Wanted,
    /// Entries, each with the bytes that it counts.
    entries: BTreeMap<u64, (usize, Entry)>,
    bytes: usize,
    removed: HashSet<u64>,
    /// The greatest id of an entry that was left out: earlier ones are, too. 0 before.
    left_out: u64,
    /// Lines of earlier entries in a row.
    earlier: usize,
}

impl Log {
    /// Makes an empty log with these bounds.
    pub(crate) fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            entries: BTreeMap::new(),
            bytes: 0,
            removed: HashSet::new(),
            left_out: 0,
            earlier: 0,
        }
    }

    /// Takes the line before those that were taken.
    pub(crate) fn take_line(&mut self, line: &str) -> Verdict {
        if !may_be_line(line) {
            return Verdict::Unreadable;
        }
        let Ok(Head { id, removed }) = serde_json::from_str(line) else {
            return Verdict::Unreadable;
        };
        if !(1..MOST_ID).contains(&id) {
            return Verdict::Unreadable;
        }
        if removed {
            self.removed.insert(id);
            return match self.removed.len() > MOST_REMOVED {
                true => Verdict::Enough,
                false => Verdict::Readable,
            };
        }
        // A later line of this entry counts, or it is not wanted.
        if id >= self.wanted.before || self.entries.contains_key(&id) || self.removed.contains(&id)
        {
            return Verdict::Readable;
        }
        if id <= self.left_out {
            self.earlier += 1;
            return match self.earlier > MOST_EARLIER {
                true => Verdict::Enough,
                false => Verdict::Readable,
            };
        }
        self.earlier = 0;
        let Ok(entry) = serde_json::from_str::<Entry>(line) else {
            return Verdict::Unreadable;
        };
        // Written again it is about as long as its line.
        let bytes = entry.weight().max(line.len());
        self.bytes += bytes;
        self.entries.insert(id, (bytes, entry));
        while self.entries.len() > self.wanted.entries
            || self.bytes > self.wanted.bytes && self.entries.len() > 1
        {
            if let Some((id, (bytes, _))) = self.entries.pop_first() {
                self.bytes -= bytes;
                self.left_out = self.left_out.max(id);
            }
        }
        Verdict::Readable
    }

    /// Returns the entries, oldest first, and true when others exist before them.
    pub(crate) fn into_entries(self) -> (Vec<Entry>, bool) {
        let entries = self.entries.into_values().map(|(_, entry)| entry);
        (entries.collect(), self.left_out > 0)
    }
}

/// The places of the newest lines of all entries of a conversation.
#[derive(Debug)]
pub(crate) struct Index<P> {
    places: BTreeMap<u64, Option<P>>,
}

impl<P> Default for Index<P> {
    fn default() -> Self {
        Self {
            places: BTreeMap::new(),
        }
    }
}

/// Most entries of an [`Index`].
const MOST_INDEXED: usize = 200_000;

impl<P> Index<P> {
    /// Takes the line before those that were taken.
    pub(crate) fn take_line(&mut self, place: P, line: &str) -> Verdict {
        if !may_be_line(line) {
            return Verdict::Unreadable;
        }
        let Ok(Head { id, removed }) = serde_json::from_str(line) else {
            return Verdict::Unreadable;
        };
        self.places.entry(id).or_insert((!removed).then_some(place));
        match self.places.len() > MOST_INDEXED {
            true => Verdict::Enough,
            false => Verdict::Readable,
        }
    }

    /// Returns the places, of the oldest entry first.
    pub(crate) fn into_places(self) -> impl Iterator<Item = P> {
        self.places.into_values().flatten()
    }
}

impl Entry {
    /// Returns the memory that the entry takes, in bytes.
    pub(crate) fn weight(&self) -> usize {
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
        let own = match &self.body {
            Body::User {
                text,
                client_id,
                attachments,
                ..
            } => {
                let parts = attachments
                    .iter()
                    .map(|file| file.path.capacity() + file.name.capacity());
                text.capacity()
                    + optional(client_id)
                    + attachments.capacity() * size_of::<Attachment>()
                    + parts.sum::<usize>()
            }
            Body::Answer { text, model, .. } => text.capacity() + optional(model),
            Body::Thought { text, .. } | Body::Failure { text, .. } | Body::Notice { text, .. } => {
                text.capacity()
            }
            Body::Tools { calls } => {
                let parts = calls.iter().map(|call| {
                    call.name.capacity() + call.arguments.capacity() + optional(&call.explanation)
                });
                calls.capacity() * size_of::<ToolCall>() + parts.sum::<usize>()
            }
            Body::Files { files, text } => {
                let parts = files.iter().map(|file| {
                    file.name.capacity()
                        + file.content_type.capacity()
                        + optional(&file.file)
                        + optional(&file.error)
                });
                files.capacity() * size_of::<SentFile>() + parts.sum::<usize>() + optional(text)
            }
        };
        size_of::<Self>() + own
    }
}

#[cfg(test)]
mod tests;
