//! Names of conversations.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The sentence that explains the rule for ids of conversations.
pub const CONVERSATION_ID_RULE: &str =
    "a conversation's id has 26 to 36 characters of a to z, 0 to 9 and -";

/// Identity of a conversation, unique within its user: 26 to 36 of `[a-z0-9-]`, the name of its folder.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(
    value_type = String,
    min_length = 26,
    max_length = 36,
    pattern = "^[a-z0-9-]{26,36}$",
    example = "019ac4d27f6e7c13a3d5c0a7b1c2d3e4"
)]
pub struct ConversationId(String);

/// A text that is no id of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{CONVERSATION_ID_RULE}")]
pub struct InvalidConversationId;

impl ConversationId {
    /// A fresh id. Later ones sort behind earlier ones.
    // No value of it could be a default.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self(uuid::Uuid::now_v7().simple().to_string())
    }

    /// The text form, as the folder is called.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ConversationId {
    type Err = InvalidConversationId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        match (26..=36).contains(&text.len()) && text.bytes().all(is_allowed) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidConversationId),
        }
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ConversationId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}
