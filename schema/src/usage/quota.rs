//! Judges what users' directories take against the configured quota. Pure.

use sqlx::FromRow;

use crate::column::Flag;
use crate::condition::{Condition, ConditionStatus, ConditionType, Reason};
use crate::config::{Config, keys};
use crate::ids::{Uid, UserName};

const MIB: u64 = 1024 * 1024;
/// The part of a quota, in percent, from which its user is warned.
const WARN_PERCENT: u64 = 80;

/// The limits of each user's directory; 0 = none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quota {
    /// MiB on the disk.
    pub megabytes: u64,
    /// Files, directories and other entries.
    pub files: u64,
    /// Agents of users beyond the quota are stopped.
    pub stops: bool,
}

/// Use of a quota.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuotaState {
    /// Below the warning.
    #[default]
    Within,
    /// Nearly used: a warning.
    Near,
    /// Used up: uploads are refused.
    Exceeded,
}

impl QuotaState {
    /// The number that stands for it in the database.
    pub fn number(self) -> i64 {
        match self {
            Self::Within => 0,
            Self::Near => 1,
            Self::Exceeded => 2,
        }
    }

    /// Its reason in conditions and events.
    pub fn reason(self) -> Reason {
        match self {
            Self::Within => Reason::WithinQuota,
            Self::Near => Reason::QuotaNearlyUsed,
            Self::Exceeded => Reason::QuotaExceeded,
        }
    }
}

impl From<i64> for QuotaState {
    fn from(number: i64) -> Self {
        match number {
            0 => Self::Within,
            1 => Self::Near,
            _ => Self::Exceeded,
        }
    }
}

/// The saved judgement of one user's directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow)]
pub struct Verdict {
    /// How far the quota is used.
    #[sqlx(rename = "quota_state", try_from = "i64")]
    pub state: QuotaState,
    /// The agent is stopped for it.
    #[sqlx(rename = "quota_stops", try_from = "Flag")]
    pub stops: bool,
    /// Use, limit and consequence, in words; empty within the quota.
    #[sqlx(rename = "quota_note")]
    pub note: String,
}

impl Verdict {
    /// The condition of the user; none within the quota.
    pub fn condition(&self) -> Option<Condition> {
        let status = match self.state {
            QuotaState::Within => return None,
            QuotaState::Near => ConditionStatus::True,
            QuotaState::Exceeded => ConditionStatus::False,
        };
        let (kind, reason) = (ConditionType::WithinQuota, self.state.reason());
        Some(Condition::new(kind, status, reason, &self.note))
    }
}

/// Space that a directory is known to take, with the saved judgement.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Held {
    /// The user.
    pub uid: Uid,
    /// The user's name.
    pub name: UserName,
    /// Bytes on the disk.
    #[sqlx(rename = "held_bytes", try_from = "i64")]
    pub bytes: u64,
    /// Files, directories and other entries.
    #[sqlx(rename = "held_entries", try_from = "i64")]
    pub entries: u64,
    /// Everything was counted.
    #[sqlx(try_from = "Flag")]
    pub complete: bool,
    /// Result of the save.
    #[sqlx(flatten)]
    pub verdict: Verdict,
}

/// A judgement that differs from the saved one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The user.
    pub uid: Uid,
    /// The user's name.
    pub name: UserName,
    /// The saved judgement.
    pub before: Verdict,
    /// The judgement to save.
    pub verdict: Verdict,
}

/// Users near the quota or beyond it.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct QuotaUsers {
    /// The first by name, of those beyond it if there are any.
    pub name: UserName,
    /// How many are near it.
    pub near: i64,
    /// How many are beyond it.
    pub beyond: i64,
}

/// One limit, and what is used of it.
struct Part {
    used: u64,
    limit: u64,
    unit: &'static str,
    key: &'static str,
}

impl Part {
    fn state(&self) -> QuotaState {
        if self.limit == 0 || self.used < warning(self.limit) {
            QuotaState::Within
        } else if self.used < self.limit {
            QuotaState::Near
        } else {
            QuotaState::Exceeded
        }
    }
}

/// The use from which on a limit is nearly used.
fn warning(limit: u64) -> u64 {
    let whole = limit.saturating_mul(WARN_PERCENT);
    whole.div_ceil(100).max(1)
}

impl Quota {
    /// The quota of a configuration.
    pub fn from_config(config: &Config) -> Self {
        Self {
            megabytes: config.get(&keys::files::QUOTA_MB),
            files: config.get(&keys::files::QUOTA_FILES),
            stops: config.get(&keys::files::QUOTA_ACTION) == "stop",
        }
    }

    /// True if there is any limit.
    pub fn is_set(&self) -> bool {
        self.megabytes > 0 || self.files > 0
    }

    /// The bytes and entries from which on a directory is worth a judgement.
    pub(super) fn warnings(&self) -> [i64; 2] {
        let limits = [self.megabytes.saturating_mul(MIB), self.files];
        limits.map(|limit| match limit {
            0 => i64::MAX,
            limit => i64::try_from(warning(limit)).unwrap_or(i64::MAX),
        })
    }

    /// The judgement of a directory, when it is another one than was saved.
    pub fn judge(&self, held: Held) -> Option<Judgement> {
        let verdict = self.verdict(&held);
        (verdict != held.verdict).then_some(Judgement {
            uid: held.uid,
            name: held.name,
            before: held.verdict,
            verdict,
        })
    }

    fn verdict(&self, held: &Held) -> Verdict {
        let bytes = Part {
            used: held.bytes,
            limit: self.megabytes.saturating_mul(MIB),
            unit: "MiB",
            key: keys::files::QUOTA_MB.row.key,
        };
        let files = Part {
            used: held.entries,
            limit: self.files,
            unit: "files and directories",
            key: keys::files::QUOTA_FILES.row.key,
        };
        // Of two that are used as far, the space.
        let part = if files.state() > bytes.state() {
            files
        } else {
            bytes
        };
        let state = part.state();
        if state == QuotaState::Within {
            return Verdict::default();
        }
        let stops = self.stops && state == QuotaState::Exceeded;
        let follows = match (state, stops) {
            (QuotaState::Exceeded, true) => "; uploads are refused, and the agent is stopped",
            (QuotaState::Exceeded, false) => "; uploads are refused",
            _ => "",
        };
        let at_least = if held.complete { "" } else { "at least " };
        let Part { unit, key, .. } = part;
        let [used, limit] = match unit {
            "MiB" => [part.used, part.limit].map(|bytes| bytes / MIB),
            _ => [part.used, part.limit],
        };
        Verdict {
            state,
            stops,
            note: format!("{at_least}{used} of {limit} {unit} ({key}) are used{follows}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(quota: Quota, bytes: u64, entries: u64) -> Verdict {
        quota.verdict(&Held {
            uid: Uid::singleton("ada"),
            name: "ada".parse().unwrap(),
            bytes,
            entries,
            complete: true,
            verdict: Verdict::default(),
        })
    }

    #[rstest::rstest]
    #[case::no_quota(0, 0, u64::MAX, u64::MAX, QuotaState::Within, "")]
    #[case::little(100, 0, 80 * MIB - 1, 9, QuotaState::Within, "")]
    #[case::near(100, 0, 80 * MIB, 9, QuotaState::Near, "80 of 100 MiB (files.quota_mb) are used")]
    #[case::full(100, 0, 100 * MIB, 9, QuotaState::Exceeded, "100 of 100 MiB (files.quota_mb) are used; uploads are refused")]
    #[case::files(100, 1000, 80 * MIB, 1000, QuotaState::Exceeded, "1000 of 1000 files and directories (files.quota_files) are used; uploads are refused")]
    #[case::huge(u64::MAX, u64::MAX, 1, 1, QuotaState::Within, "")]
    fn use_of_a_quota_is_judged(
        #[case] megabytes: u64,
        #[case] files: u64,
        #[case] bytes: u64,
        #[case] entries: u64,
        #[case] state: QuotaState,
        #[case] note: &str,
    ) {
        let quota = Quota {
            megabytes,
            files,
            stops: false,
        };
        let verdict = judge(quota, bytes, entries);
        assert_eq!((verdict.state, verdict.note.as_str()), (state, note));
        assert_eq!(QuotaState::from(state.number()), state);
        assert!(!verdict.stops);
        let stopping = Quota {
            stops: true,
            ..quota
        };
        let stops = judge(stopping, bytes, entries).stops;
        assert_eq!(stops, state == QuotaState::Exceeded);
    }
}
