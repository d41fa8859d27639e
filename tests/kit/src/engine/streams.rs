//! The streams of the fake: logs and events.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use engine::{EngineEvent, EngineStream, LogChunk, LogOptions};
use futures::StreamExt;
use schema::ids::Timestamp;
use tokio::time::Instant;

use super::{FakeEngine, unavailable};

impl FakeEngine {
    pub(super) fn log_stream(&self, id: String, options: LogOptions) -> EngineStream<LogChunk> {
        let engine = self.clone();
        let lines = engine.world().find(&id).map_or(0, |c| c.logs.len());
        let skipped = options.tail.map_or(0, |tail| {
            lines.saturating_sub(usize::try_from(tail).unwrap_or(usize::MAX))
        });
        let start = Some(skipped);
        futures::stream::unfold(start, move |place| {
            let (engine, id, options) = (engine.clone(), id.clone(), options);
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
        let reader = EventReader {
            engine,
            owner,
            place,
            cut,
            late: BTreeMap::new(),
        };
        futures::stream::unfold(Some(reader), |reader| async move {
            let mut reader = reader?;
            match reader.next().await {
                Some(event) => Some((Ok(event), Some(reader))),
                None => Some((Err(unavailable()), None)),
            }
        })
        .boxed()
    }

    /// Waits for a change by hand, or until the next process ends by itself.
    async fn wait(&self, changed: impl Future<Output = ()> + Send) {
        let due = self.world().next_due();
        wait_until(changed, due).await;
    }
}

async fn wait_until(changed: impl Future<Output = ()> + Send, due: Option<Instant>) {
    let due = async {
        match due {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = changed => {}
        () = due => {}
    }
}

/// One reader of events.
struct EventReader {
    engine: FakeEngine,
    owner: String,
    place: u64,
    cut: u64,
    /// Events that are still to be heard, by time.
    late: BTreeMap<(Instant, u64), EngineEvent>,
}

impl EventReader {
    /// The next event to be heard; `None` when the stream breaks.
    async fn next(&mut self) -> Option<EngineEvent> {
        let engine = self.engine.clone();
        loop {
            let changed = engine.shared.changed.notified();
            self.collect().ok()?;
            if let Some(entry) = self.late.first_entry()
                && entry.key().0 <= Instant::now()
            {
                return Some(entry.remove());
            }
            let heard = self.late.keys().next().map(|(at, _)| *at);
            let ends = engine.world().next_due();
            wait_until(changed, heard.into_iter().chain(ends).min()).await;
        }
    }

    /// Takes what has happened since the last look; fails when the stream is cut or too far behind.
    fn collect(&mut self) -> Result<(), ()> {
        let hook = self.engine.script().event_hook.clone();
        let now = Instant::now();
        let world = self.engine.world();
        if world.cut != self.cut {
            return Err(());
        }
        while let Some(event) = world.event_at(self.place)? {
            self.place += 1;
            if event.owner != self.owner || world.silent {
                continue;
            }
            let delays = hook
                .as_ref()
                .map_or_else(|| vec![Duration::ZERO], |hook| hook(&event.event));
            for (copy, delay) in (0..).zip(delays) {
                let key = (now + delay, (self.place << 8) + copy);
                self.late.insert(key, event.event.clone());
            }
        }
        Ok(())
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
