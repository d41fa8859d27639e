//! The hashes that bind entries together. Pure.

use sqlx::FromRow;
use strum::{Display, EnumString, IntoStaticStr};

use crate::secrets::{MacKey, MasterKey};

use super::model::{Entry, Record};
use super::verify::Problem;
use crate::ids::Timestamp;

const LABEL: &str = "agentyard/audit/v1";

/// Follows an end of the chain that was tampered with. No hash equals it, so an entry written
/// after that never fits what comes before it, and the break stays to be found.
pub(super) const BROKEN: &str = "broken";

/// Authenticates the trail.
#[derive(Debug)]
pub struct ChainKey(MacKey);

impl ChainKey {
    /// The key of an installation.
    pub fn of(master: &MasterKey) -> Self {
        Self(master.mac_key(LABEL))
    }

    /// The hash of an entry after the one with the hash `previous`.
    pub(super) fn entry(&self, previous: &str, seq: i64, entry: &Entry) -> String {
        let Entry {
            at,
            actor,
            address,
            action,
            object,
            outcome,
            detail,
            request_id,
        } = entry;
        self.seal(&[
            b"entry",
            previous.as_bytes(),
            &seq.to_be_bytes(),
            &at.as_millis().to_be_bytes(),
            actor.as_bytes(),
            address.as_bytes(),
            action.as_bytes(),
            object.as_bytes(),
            outcome.as_bytes(),
            detail.as_bytes(),
            request_id.as_bytes(),
        ])
    }

    /// Authenticates an end of the chain.
    pub(super) fn end(&self, which: Which, seq: i64, hash: &str) -> String {
        let which: &str = which.into();
        self.seal(&[which.as_bytes(), &seq.to_be_bytes(), hash.as_bytes()])
    }

    /// Authenticates how many calls an entry stands for, and when the newest was made.
    pub(super) fn fold(&self, seq: i64, calls: i64, last_at: Timestamp) -> String {
        self.seal(&[
            b"fold",
            &seq.to_be_bytes(),
            &calls.to_be_bytes(),
            &last_at.as_millis().to_be_bytes(),
        ])
    }

    fn seal(&self, parts: &[&[u8]]) -> String {
        hex::encode(self.0.mac(&encode(parts)))
    }
}

/// The ends of the chain, which are kept in rows of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Which {
    /// The newest entry.
    Head,
    /// What came before the oldest entry that is kept.
    Anchor,
}

/// An end as stored.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub(super) struct End {
    #[sqlx(rename = "name")]
    pub(super) which: Which,
    pub(super) seq: i64,
    pub(super) hash: String,
    pub(super) mac: String,
}

impl End {
    pub(super) fn is_authentic(&self, key: &ChainKey) -> bool {
        self.mac == key.end(self.which, self.seq, &self.hash)
    }
}

/// Goes along the chain.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    key: &'a ChainKey,
    /// Where it is.
    pub(super) seq: i64,
    /// The hash of the entry there.
    pub(super) hash: String,
}

impl<'a> Walk<'a> {
    pub(super) fn from(anchor: &End, key: &'a ChainKey) -> Self {
        Self {
            key,
            seq: anchor.seq,
            hash: anchor.hash.clone(),
        }
    }

    /// One entry on, if it is the next one and as it was written.
    pub(super) fn step(&mut self, record: &Record) -> Result<(), Problem> {
        let next = self.seq + 1;
        if record.seq < next {
            let message = "precedes the oldest retained entry: it was inserted afterwards";
            return Err(Problem::new(record.seq, message));
        }
        if record.seq > next {
            return Err(Problem::missing(next, record.seq - 1));
        }
        if record.hash != self.key.entry(&self.hash, next, &record.entry) {
            let message = "was changed, or does not follow the previous entry";
            return Err(Problem::new(next, message));
        }
        if !record.is_counted_by(self.key) {
            let message = "stands for a number of calls that was changed";
            return Err(Problem::new(next, message));
        }
        self.seq = next;
        self.hash.clone_from(&record.hash);
        Ok(())
    }
}

/// One text for several parts, from which they can be separated again: how many, and each after
/// its length.
fn encode(parts: &[&[u8]]) -> Vec<u8> {
    let mut text = Vec::new();
    text.extend_from_slice(&(parts.len() as u64).to_be_bytes());
    for part in parts {
        text.extend_from_slice(&(part.len() as u64).to_be_bytes());
        text.extend_from_slice(part);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> (ChainKey, ChainKey) {
        let one = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let key =
            |dir: &tempfile::TempDir| ChainKey::of(&MasterKey::load_or_create(dir.path()).unwrap());
        (key(&one), key(&other))
    }

    /// Short texts of few letters, so that joined ones often look alike.
    fn text() -> impl Strategy<Value = String> {
        "[a,/]{0,3}"
    }

    fn entry() -> impl Strategy<Value = Entry> {
        let texts = (text(), text(), text(), text(), text(), text(), text());
        (0..3_i64, texts).prop_map(|(at, texts)| Entry {
            at: Timestamp::from_millis(at),
            actor: texts.0,
            address: texts.1,
            action: texts.2,
            object: texts.3,
            outcome: texts.4,
            detail: texts.5,
            request_id: texts.6,
        })
    }

    /// Reads an encoding back: what can be read back is unambiguous.
    fn decode(mut text: &[u8]) -> Vec<Vec<u8>> {
        let number = |text: &mut &[u8]| {
            let (number, rest) = text.split_first_chunk::<8>().unwrap();
            *text = rest;
            usize::try_from(u64::from_be_bytes(*number)).unwrap()
        };
        let count = number(&mut text);
        let parts = (0..count)
            .map(|_| {
                let length = number(&mut text);
                let (part, rest) = text.split_at(length);
                text = rest;
                part.to_vec()
            })
            .collect();
        assert!(text.is_empty());
        parts
    }

    proptest! {
        #[test]
        fn an_encoding_can_be_read_back(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..12)) {
            let borrowed: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(decode(&encode(&borrowed)), parts);
        }

        #[test]
        fn no_two_different_entries_have_one_hash(
            a in (text(), 0..3_i64, entry()),
            b in (text(), 0..3_i64, entry()),
        ) {
            let (key, _) = key();
            let hash = |(previous, seq, entry): &(String, i64, Entry)| key.entry(previous, *seq, entry);
            prop_assert_eq!(hash(&a) == hash(&b), a == b);
        }

        /// Moving a letter from one column to the next gives another hash.
        #[test]
        fn columns_do_not_run_into_each_other(entry in entry(), previous in text()) {
            let (key, _) = key();
            let mut moved = entry.clone();
            if let Some(letter) = moved.actor.pop() {
                moved.address.insert(0, letter);
                prop_assert_ne!(key.entry(&previous, 1, &entry), key.entry(&previous, 1, &moved));
            }
        }
    }

    #[test]
    fn hashes_need_the_key_and_ends_are_no_entries() {
        let (one, other) = key();
        let of = |key: &ChainKey, which| key.end(which, 3, "hash");
        assert_ne!(of(&one, Which::Head), of(&other, Which::Head));
        assert_ne!(of(&one, Which::Head), of(&one, Which::Anchor));
        assert!(!format!("{one:?}").contains(char::is_numeric), "{one:?}");
    }
}
