//! Wakes containers that wait for their files.
//!
//! Only a hint within this process: a container that does not hear it looks again by itself. What changes a
//! container's desired state is told by the database's bell.

use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt};
use schema::ids::Uid;
use tokio::sync::mpsc;

/// So many hints may wait to be heard; what is beyond is found by the containers themselves.
const CAPACITY: usize = 1024;

/// Tells that a user's files are settled.
#[derive(Debug, Clone)]
pub struct Settled(mpsc::Sender<Uid>);

/// Hears of it.
#[derive(Debug)]
pub struct Hearer(mpsc::Receiver<Uid>);

/// The two ends.
pub fn channel() -> (Settled, Hearer) {
    let (sender, receiver) = mpsc::channel(CAPACITY);
    (Settled(sender), Hearer(receiver))
}

impl Settled {
    pub(super) fn tell(&self, uid: &Uid) {
        // Full or not heard any more: either way nobody may wait for it.
        let _ = self.0.try_send(uid.clone());
    }
}

impl Hearer {
    /// The users whose files were settled, each told to `hears` before anybody else.
    pub(crate) fn users(self, hears: Arc<dyn Fn(&Uid) + Send + Sync>) -> BoxStream<'static, Uid> {
        stream::unfold((self.0, hears), |(mut receiver, hears)| async move {
            let uid = receiver.recv().await?;
            hears(&uid);
            Some((uid, (receiver, hears)))
        })
        .boxed()
    }
}
