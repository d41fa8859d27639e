//! The name of a tree by its content.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::tree::Tree;

/// A text that is not 64 lower-case hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest has 64 characters of 0-9 a-f")]
pub struct InvalidDigest;

macro_rules! hex_digest {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
        #[serde(transparent)]
        #[schema(
            value_type = String,
            min_length = 64,
            max_length = 64,
            pattern = "^[0-9a-f]{64}$",
            example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
        )]
        pub struct $name(String);

        impl $name {
            /// The 64 digits.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            pub(super) fn of(hash: Sha256) -> Self {
                Self(hex::encode(hash.finalize()))
            }
        }

        impl FromStr for $name {
            type Err = InvalidDigest;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
                if text.len() == 64 && text.bytes().all(is_hex) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(InvalidDigest)
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?
                    .parse()
                    .map_err(serde::de::Error::custom)
            }
        }
    };
}

hex_digest! {
    /// The SHA-256 of a tree's paths, modes and contents: 64 lower-case hex digits. Trees with the same files have the
    /// same, wherever they came from.
    TreeDigest
}

hex_digest! {
    /// What a tree looked like from outside: 64 lower-case hex digits that change with every usual edit.
    TreeStamp
}

/// The files of a tree, as far as its digest needs them. Their contents are not kept.
#[derive(Default)]
pub(super) struct Records {
    records: Vec<Record>,
    bytes: u64,
}

/// Paths are compared as bytes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    path: Box<[u8]>,
    executable: bool,
    length: u64,
    content: [u8; 32],
}

impl Records {
    /// What a digest begins with: another way to compute it would begin otherwise.
    const FORMAT: &[u8] = b"agentyard skill tree 1\n";

    pub(super) fn add(&mut self, path: &[u8], executable: bool, content: ContentHash) {
        self.bytes += content.length;
        self.records.push(Record {
            path: path.into(),
            executable,
            length: content.length,
            content: content.hash.finalize().into(),
        });
    }

    /// How many files there are.
    pub(super) fn files(&self) -> u64 {
        self.records.len() as u64
    }

    /// How long they are together.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The paths, in the order in which they were added.
    pub(super) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.records.iter().map(|record| &*record.path)
    }

    /// The whole, in whatever order its files were added.
    pub(super) fn finish(mut self) -> Tree {
        self.records.sort_unstable();
        let mut hash = Sha256::new();
        hash.update(Self::FORMAT);
        for record in &self.records {
            // Everything has its length before it or is of one length, so no two trees have the same bytes here.
            hash.update((record.path.len() as u64).to_be_bytes());
            hash.update(&record.path);
            hash.update([u8::from(record.executable)]);
            hash.update(record.length.to_be_bytes());
            hash.update(record.content);
        }
        Tree {
            digest: TreeDigest::of(hash),
            files: self.files(),
            bytes: self.bytes,
        }
    }
}

/// The digest of a file while it is read.
#[derive(Default)]
pub(super) struct ContentHash {
    hash: Sha256,
    length: u64,
}

impl ContentHash {
    pub(super) fn update(&mut self, block: &[u8]) {
        self.hash.update(block);
        self.length += block.len() as u64;
    }

    /// How much was read so far.
    pub(super) fn length(&self) -> u64 {
        self.length
    }
}
