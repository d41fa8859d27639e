//! The streams of the fake: logs and events.

use bytes::Bytes;
use futures::StreamExt;
use schema::ids::Timestamp;

use super::{FakeEngine, unavailable};
use crate::drivers::docker::{EngineEvent, EngineStream, LogChunk, LogOptions};

impl FakeEngine {
    pub(super) fn log_stream(&self, id: String, options: LogOptions) -> EngineStream<LogChunk> {
        let engine = self.clone();
        let lines = engine.world().find(&id).map_or(0, |c| c.logs.len());
        let skipped = options.tail.map_or(0, |tail| {
            lines.saturating_sub(usize::try_from(tail).unwrap_or(usize::MAX))
        });
        let start = Some(skipped);
        futures::stream::unfold(start, move |place| {
            let (engine, id, options) = (engine.clone(), id.clone(), options.clone());
            async move {
                let place = place?;
                loop {
                    // Registered before looking, so that nothing falls between the two.
                    let changed = engine.shared.changed.notified();
                    let (lines, more) = match engine.world().find(&id) {
                        Some(container) => (
                            container.logs.get(place..).unwrap_or_default().to_vec(),
                            container.runs(),
                        ),
                        None => (Vec::new(), false),
                    };
                    let next = place + lines.len();
                    let chunks: Vec<_> = lines
                        .into_iter()
                        .filter(|(at, ..)| options.since.is_none_or(|since| *at >= since))
                        .map(|(at, stderr, line)| Ok(chunk(at, stderr, &line, options.timestamps)))
                        .collect();
                    let follow = options.follow && more;
                    if !chunks.is_empty() || !follow {
                        return Some((chunks, follow.then_some(next)));
                    }
                    engine.wait(changed).await;
                }
            }
        })
        .map(futures::stream::iter)
        .flatten()
        .boxed()
    }

    pub(super) fn event_stream(&self, owner: String) -> EngineStream<EngineEvent> {
        let engine = self.clone();
        let (place, cut) = {
            let world = engine.world();
            (world.event_end(), world.cut)
        };
        futures::stream::unfold(Some(place), move |place| {
            let (engine, owner) = (engine.clone(), owner.clone());
            async move {
                let mut place = place?;
                loop {
                    let changed = engine.shared.changed.notified();
                    {
                        let world = engine.world();
                        if world.cut != cut {
                            return Some((Err(unavailable()), None));
                        }
                        loop {
                            match world.event_at(place) {
                                Err(()) => return Some((Err(unavailable()), None)),
                                Ok(None) => break,
                                Ok(Some(event)) => {
                                    place += 1;
                                    if event.owner == owner && !world.silent {
                                        return Some((Ok(event.event.clone()), Some(place)));
                                    }
                                }
                            }
                        }
                    }
                    engine.wait(changed).await;
                }
            }
        })
        .boxed()
    }

    /// Waits for a change by hand, or until the next process ends by itself.
    async fn wait(&self, changed: impl Future<Output = ()> + Send) {
        let due = self.world().next_due();
        let due = async {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = changed => {}
            () = due => {}
        }
    }
}

fn chunk(at: Timestamp, stderr: bool, line: &Bytes, timestamps: bool) -> LogChunk {
    let bytes = if timestamps {
        let mut text = format!("{} ", at.to_rfc3339()).into_bytes();
        text.extend_from_slice(line);
        Bytes::from(text)
    } else {
        line.clone()
    };
    LogChunk { stderr, bytes }
}
