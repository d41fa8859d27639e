//! What workspaces take, in memory and in the database.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use reconcilers::usage::UsageStore;
use schema::home::Measured;
use schema::ids::{Timestamp, Uid};
use schema::usage::{self, Attempt};

use super::{Both, same};

/// Moments that distinguish how long a number is good, in seconds after a measurement.
const LATER: [u64; 5] = [0, 11, 300, 3600, 86_400];

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
            let row = real.usage_row(now, 2).await.unwrap().unwrap();
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
        }
        for seconds in LATER {
            let at = now.plus(Duration::from_secs(seconds));
            for most in [1, 20] {
                same(
                    "due",
                    &memory.usage_row(at, most).await,
                    &real.usage_row(at, most).await,
                );
            }
        }
    }
}
