//! What workspaces take, in memory and in the database.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use reconcilers::usage::UsageStore;
use schema::home::Measured;
use schema::ids::{Timestamp, Uid};
use schema::usage::{self, Attempt, Quota};

use super::{Both, same};

/// Small enough to be reached.
const QUOTA: Quota = Quota {
    megabytes: 0,
    files: 6,
    stops: true,
};
/// Moments that distinguish how long a number is good, in seconds after a measurement.
const LATER: [u64; 7] = [0, 11, 300, 600, 1200, 3600, 86_400];

impl Both {
    /// A request changes a workspace, or some that are due are measured; then both know the same.
    pub(super) async fn write_usage(&self, rng: &mut StdRng, uid: &Uid, now: Timestamp) {
        let (memory, real) = (&self.memory, &self.real);
        if rng.random_bool(0.4) {
            let changed = write!(self, |tx| usage::changed(&mut tx, uid));
            same(
                "changed",
                &memory.workspace_changed(uid),
                &changed.map(drop),
            );
        } else {
            let row = real.usage_row(now, 2, &QUOTA).await.unwrap().unwrap();
            let attempts: Vec<Attempt> = row
                .due
                .into_iter()
                .map(|due| Attempt {
                    uid: due.uid,
                    changes: due.changes,
                    outcome: match rng.random_bool(0.7) {
                        true => Ok(Measured {
                            bytes: rng.random_range(0..9),
                            files: rng.random_range(0..9),
                            entries: rng.random_range(0..9),
                            stopped: rng.random_bool(0.3),
                            ..Measured::default()
                        }),
                        false => Err("it failed".to_owned()),
                    },
                })
                .collect();
            same(
                "save",
                &memory.save_usage(&attempts, now).await,
                &real.save_usage(&attempts, now).await,
            );
            let judged = real.usage_row(now, 2, &QUOTA).await.unwrap().unwrap();
            let judgements = &judged.judgements;
            same(
                "judge",
                &memory.save_judgements(judgements, now).await,
                &real.save_judgements(judgements, now).await,
            );
        }
        for seconds in LATER {
            let at = now.plus(Duration::from_secs(seconds));
            for (most, quota) in [(1, QUOTA), (20, QUOTA), (20, Quota::default())] {
                same(
                    "due",
                    &memory.usage_row(at, most, &quota).await,
                    &real.usage_row(at, most, &quota).await,
                );
            }
        }
    }
}
