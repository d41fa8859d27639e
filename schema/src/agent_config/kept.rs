//! A user's files as they were before a migration: what there is to go back to where no package has a way.

use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::query::{open, seal};
use crate::adapter::Applied;
use crate::connection::Connection;
use crate::db::ObservedTx;
use crate::error::DbError;
use crate::ids::{Generation, Uid};
use crate::secrets::MasterKey;
use crate::statement::{execute, scalar_optional, statements};

statements! {
    /// Keeps them, in place of others. Nothing happens when the account is gone or going.
    KEEP = "INSERT INTO kept_files (uid, sealed) \
            SELECT uid, $2 FROM objects WHERE kind = 'agent-config' AND uid = $1 AND deleted_at IS NULL \
            ON CONFLICT (uid) DO UPDATE SET sealed = excluded.sealed";
    /// Reads them.
    KEPT = "SELECT sealed FROM kept_files WHERE uid = $1";
    /// Forgets them.
    FORGET_KEPT = "DELETE FROM kept_files WHERE uid = $1";
}

/// Both files as they were before they were migrated. They hold secrets, so they cannot be printed.
#[derive(Clone, PartialEq)]
pub struct KeptFiles {
    /// The generation of the agent-config object for which they were migrated.
    pub generation: Generation,
    /// The configuration version they are of.
    pub config_version: u32,
    /// What was remembered of them.
    pub applied: Option<Applied>,
    /// The configuration file; `None` when there was none.
    pub config: Option<Vec<u8>>,
    /// The security file; `None` when there was none.
    pub security: Option<Vec<u8>>,
}

impl fmt::Debug for KeptFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptFiles")
            .field("generation", &self.generation)
            .field("config_version", &self.config_version)
            .finish_non_exhaustive()
    }
}

/// What is in front of the files' bytes, as one line of JSON. The files are in any encoding, and may be long.
#[derive(Serialize, Deserialize)]
struct Head {
    generation: i64,
    config_version: u32,
    applied: Option<Applied>,
    /// How long it is.
    config: Option<usize>,
    /// How long it is.
    security: Option<usize>,
}

impl KeptFiles {
    fn write(&self) -> Result<Zeroizing<Vec<u8>>, DbError> {
        let length = |file: &Option<Vec<u8>>| file.as_ref().map(Vec::len);
        let head = Head {
            generation: self.generation.0,
            config_version: self.config_version,
            applied: self.applied.clone(),
            config: length(&self.config),
            security: length(&self.security),
        };
        let head = serde_json::to_vec(&head)?;
        let files = [&self.config, &self.security];
        let parts = || files.into_iter().flatten();
        let length = head.len() + 1 + parts().map(Vec::len).sum::<usize>();
        let mut bytes = Zeroizing::new(Vec::with_capacity(length));
        bytes.extend_from_slice(&head);
        bytes.push(b'\n');
        for file in parts() {
            bytes.extend_from_slice(file);
        }
        Ok(bytes)
    }

    /// `None` when it is not what [`KeptFiles::write`] has written.
    fn read(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let (head, files) = bytes.split_at_checked(end)?;
        let head: Head = serde_json::from_slice(head).ok()?;
        let (config, security) = files.get(1..)?.split_at_checked(head.config.unwrap_or(0))?;
        (security.len() == head.security.unwrap_or(0)).then(|| Self {
            generation: Generation(head.generation),
            config_version: head.config_version,
            applied: head.applied,
            config: head.config.map(|_| config.to_vec()),
            security: head.security.map(|_| security.to_vec()),
        })
    }
}

fn context(uid: &Uid) -> String {
    format!("kept_files/{uid}")
}

/// Keeps a user's files as they are before a migration, in place of those of the migration before. Nothing
/// happens when the account is gone or going.
pub async fn keep_files(
    tx: &mut ObservedTx,
    key: &MasterKey,
    uid: &Uid,
    files: &KeptFiles,
) -> Result<(), DbError> {
    execute!(tx, KEEP, uid, seal(key, &context(uid), &files.write()?)?)?;
    Ok(())
}

/// A user's files as they were before the last migration; `None` when there was none.
pub async fn kept_files(
    connection: &mut Connection,
    key: &MasterKey,
    uid: &Uid,
) -> Result<Option<KeptFiles>, DbError> {
    let row: Option<Vec<u8>> = scalar_optional!(connection, KEPT, uid)?;
    let Some(sealed) = row else {
        return Ok(None);
    };
    let context = context(uid);
    let bytes = open(key, &context, &sealed)?;
    KeptFiles::read(&bytes)
        .map(Some)
        .ok_or_else(|| DbError::Corrupt(format!("{context}: not the files that were kept")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_as_it_was_and_never_printed() {
        for (config, security) in [
            (None, None),
            (Some(b"{\"a\":\n1}".to_vec()), Some(vec![0xff, 0, b'\n'])),
            (None, Some(b"hunter2".to_vec())),
            (Some(Vec::new()), None),
        ] {
            let kept = KeptFiles {
                generation: Generation(7),
                config_version: 2,
                applied: None,
                config,
                security,
            };
            let bytes = kept.write().unwrap();
            assert_eq!(KeptFiles::read(&bytes), Some(kept.clone()));
            assert_eq!(
                format!("{kept:?}"),
                "KeptFiles { generation: Generation(7), config_version: 2, .. }"
            );
            let longer = [bytes.as_slice(), b"x"].concat();
            assert_eq!(KeptFiles::read(&longer), None);
        }
        for bytes in [&b""[..], b"{}", b"{}\n", b"\n"] {
            assert_eq!(KeptFiles::read(bytes), None);
        }
    }
}
