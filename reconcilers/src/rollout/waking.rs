//! Hears of the progress of a rollout's containers: their statuses are written to the database, and every
//! such commit rings a bell. Without it a batch would wait for the next look by the clock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::stream;
use schema::bell::Bell;
use schema::ids::Uid;

use super::{Memory, lock};
use crate::runtime::{WorldEvent, WorldEvents};

/// So many changes in a row are one look.
const PAUSE: Duration = Duration::from_millis(50);

struct Waking {
    changes: Bell,
    memory: Arc<Mutex<Memory>>,
    due: VecDeque<Uid>,
}

pub(super) fn events(changes: Bell, memory: Arc<Mutex<Memory>>) -> WorldEvents<Uid> {
    let waking = Waking {
        changes,
        memory,
        due: VecDeque::new(),
    };
    Box::pin(stream::unfold(waking, async |mut waking| {
        loop {
            if let Some(uid) = waking.due.pop_front() {
                return Some((WorldEvent::Key(uid), waking));
            }
            if waking.changes.rung().await.is_err() {
                return None;
            }
            tokio::time::sleep(PAUSE).await;
            // Whatever was written up to here is seen by the looks that follow.
            waking.changes.listen();
            let mut due: Vec<Uid> = lock(&waking.memory).under_way.iter().cloned().collect();
            due.sort();
            waking.due = due.into();
        }
    }))
}
