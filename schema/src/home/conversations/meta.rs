//! Title and times of a conversation: its `meta.json`.

use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

use super::folder::open_single;
use crate::home::files::READ;
use crate::home::workspace::WorkspacePath;
use crate::home::workspace::list::modified;
use crate::ids::Timestamp;
use crate::visible::is_hidden;

/// Name of the file.
pub(super) const META: &str = "meta.json";
/// Longest title, in characters.
pub const LONGEST_TITLE: usize = 200;
/// Longest file that is read, in bytes.
const LONGEST: u64 = 16 * 1024;

/// Description of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Title as [`clean_title`] makes it; empty when there is none.
    pub title: String,
    /// Time at which it was begun.
    pub created_at: Timestamp,
    /// Time of the last message.
    pub last_used_at: Timestamp,
}

impl Meta {
    /// Description of a conversation whose own cannot be read: the times of its folder, and no title.
    pub(super) fn from_folder(stat: &Stat) -> Self {
        Self {
            title: String::new(),
            created_at: modified(stat),
            last_used_at: modified(stat),
        }
    }

    /// Reads the description in the open folder of a conversation; `None` when it is missing, too long or none.
    pub(super) fn from_file(folder: &OwnedFd) -> Option<Self> {
        // Only errors name the path, and nothing shows these.
        let (file, _) = open_single(folder, META, READ, &WorkspacePath::default()).ok()?;
        let mut content = Vec::new();
        let mut file = file.take(LONGEST + 1);
        file.read_to_end(&mut content).ok()?;
        if content.len() as u64 > LONGEST {
            return None;
        }
        let meta: Self = serde_json::from_slice(&content).ok()?;
        Some(meta.cleaned())
    }

    /// The same with a title that may be shown.
    pub(super) fn cleaned(&self) -> Self {
        Self {
            title: clean_title(&self.title),
            ..*self
        }
    }
}

/// Makes a title of a text: at most 200 characters, without control characters, line breaks and characters that turn the
/// direction of writing.
pub fn clean_title(text: &str) -> String {
    let is_break = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    // Joiners hold emojis and some scripts together.
    let is_shown = |c: &char| !is_hidden(*c) || matches!(c, '\u{200c}' | '\u{200d}');
    let characters = text.trim().chars();
    let characters = characters.map(|c| if is_break(c) { ' ' } else { c });
    let title: String = characters.filter(is_shown).take(LONGEST_TITLE).collect();
    title.trim().to_owned()
}
