//! Processor time and memory of all agents, from samples of their containers.
//!
//! The process that leads samples every 30 s: at most 500 containers in one pass, 6 calls at once, and no longer than
//! 20 s. A pass goes on where the one before ended, so thousands of containers take several passes; each is known by its last
//! sample until then. Nothing is asked while nothing runs. What is known is in memory only, and bounded by what runs.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::Sample;
use futures::StreamExt;
use schema::clock::SharedClock;
use schema::ids::Timestamp;
pub use schema::live::LoadPoint;
use schema::metric;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout, timeout_at};

use super::view::{Connection, EngineView};
use crate::runtime::leader::Leadership;

/// Usual time between two passes.
pub const EVERY: Duration = Duration::from_secs(30);
/// Longest time of a pass.
const PASS: Duration = Duration::from_secs(20);
/// Longest time of one sample.
const CALL: Duration = Duration::from_secs(5);
/// Calls of the engine at once.
const AT_ONCE: usize = 6;
/// Containers that are sampled in one pass.
const MOST: usize = 500;
/// Time between two points of the history.
const POINT: Duration = Duration::from_secs(55);
/// Points of the history: an hour.
const POINTS: usize = 60;

/// See the [module](self).
pub struct Load {
    view: Arc<EngineView>,
    clock: SharedClock,
    state: Mutex<State>,
}

impl std::fmt::Debug for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Load").finish_non_exhaustive()
    }
}

/// The last sample of one container.
#[derive(Debug, Clone, Copy)]
struct Last {
    sample: Sample,
    at: Instant,
    /// Processors that it used between its last two samples.
    cores: f64,
}

#[derive(Debug, Default)]
struct State {
    /// By id of the container.
    known: HashMap<String, Last>,
    /// The container with which the last pass ended.
    cursor: String,
    /// Start of sampling in this process. A container that was created later has used all of its time since.
    begun: Option<Timestamp>,
    points: VecDeque<LoadPoint>,
}

impl State {
    /// Takes a sample over; returns the processor time that is new.
    fn note(&mut self, id: &str, created: Timestamp, sample: Sample, at: Instant) -> Duration {
        let before = self.known.get(id).copied();
        let is_new = self.begun.is_some_and(|begun| created >= begun);
        let used = match before {
            // A container that was started again counts from zero.
            Some(before) if before.sample.cpu <= sample.cpu => sample.cpu - before.sample.cpu,
            Some(_) => sample.cpu,
            None if is_new => sample.cpu,
            None => Duration::ZERO,
        };
        let passed = before.map(|before| at.saturating_duration_since(before.at).as_secs_f64());
        let cores = passed
            .filter(|passed| *passed > 0.0)
            .map_or(0.0, |passed| used.as_secs_f64() / passed);
        let last = Last { sample, at, cores };
        self.known.insert(id.to_owned(), last);
        used
    }

    /// The containers whose turn it is, of all that run.
    fn due(&self, mut running: Vec<(String, Timestamp)>) -> Vec<(String, Timestamp)> {
        running.sort_unstable();
        let first = running.partition_point(|(id, _)| *id <= self.cursor);
        running.rotate_left(first);
        running.truncate(MOST);
        running
    }

    fn point(&self, at: Timestamp, running: usize) -> LoadPoint {
        LoadPoint {
            at,
            cores: self.known.values().map(|last| last.cores).sum(),
            memory_bytes: self
                .known
                .values()
                .map(|last| last.sample.memory_bytes)
                .sum(),
            sampled: self.known.len(),
            running,
        }
    }

    fn push(&mut self, point: LoadPoint) {
        let last = self.points.back();
        if last.is_some_and(|last| point.at.since(last.at) < POINT && point.at >= last.at) {
            return;
        }
        if self.points.len() == POINTS {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }
}

impl Load {
    /// Nothing is known yet.
    pub fn new(view: Arc<EngineView>, clock: SharedClock) -> Self {
        Self {
            view,
            clock,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last hour, a point a minute, the oldest first. Empty on a standby.
    pub fn history(&self) -> Vec<LoadPoint> {
        self.state().points.iter().copied().collect()
    }

    /// Samples again and again while this process leads. Never ends.
    pub async fn run(self: Arc<Self>, leadership: Leadership, every: Duration) {
        let mut ticks = interval_at(Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if !leadership.is_leader() {
                *self.state() = State::default();
                show(LoadPoint {
                    at: Timestamp::from_secs(0),
                    cores: 0.0,
                    memory_bytes: 0,
                    sampled: 0,
                    running: 0,
                });
            } else if self.view.connection() == Connection::Up {
                self.pass().await;
            }
        }
    }

    /// One pass.
    pub async fn pass(&self) {
        let running = self.view.running();
        let due = {
            let mut state = self.state();
            let begun = self.clock.now();
            state.begun.get_or_insert(begun);
            let ids: HashSet<&String> = running.iter().map(|(id, _)| id).collect();
            state.known.retain(|id, _| ids.contains(id));
            state.due(running.clone())
        };
        let deadline = Instant::now() + PASS;
        let engine = &self.view.compute().containers;
        let mut samples = futures::stream::iter(due)
            .map(|(id, created)| async move {
                let sample = timeout(CALL, engine.sample(&id)).await;
                (id, created, sample)
            })
            .buffered(AT_ONCE);
        // A container that is not reached in time has its turn in the next pass.
        while let Ok(Some((id, created, sample))) = timeout_at(deadline, samples.next()).await {
            let mut state = self.state();
            if let Ok(Ok(Some(sample))) = sample {
                let used = state.note(&id, created, sample, Instant::now());
                metric::AGENTS_CPU.add(&[], used.as_secs_f64());
            }
            state.cursor = id;
        }
        drop(samples);
        let mut state = self.state();
        let point = state.point(self.clock.now(), running.len());
        show(point);
        state.push(point);
    }
}

#[allow(clippy::cast_precision_loss)]
fn show(point: LoadPoint) {
    metric::AGENTS_MEMORY.set(&[], point.memory_bytes as f64);
    metric::AGENTS_SAMPLED.set(&[], point.sampled as f64);
    metric::AGENTS_RUNNING.set(&[], point.running as f64);
    metric::AGENTS_SAMPLED_AT.set(&[], point.at.as_secs_f64());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(millis: u64) -> Sample {
        Sample {
            cpu: Duration::from_millis(millis),
            memory_bytes: 10,
        }
    }

    #[test]
    fn processor_time_is_added_up_and_never_falls() {
        let begun = Timestamp::from_secs(100);
        let mut state = State {
            begun: Some(begun),
            ..State::default()
        };
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        let ms = Duration::from_millis;
        let older = Timestamp::from_secs(50);
        assert_eq!(state.note("a", older, sample(9_000), at(0)), ms(0));
        assert_eq!(state.note("a", older, sample(10_500), at(30)), ms(1_500));
        assert_eq!(state.point(begun, 1).cores, 0.05);
        let again = state.note("a", older, sample(200), at(60));
        assert_eq!(again, ms(200), "it was started again");
        let newer = Timestamp::from_secs(150);
        assert_eq!(state.note("b", newer, sample(300), at(60)), ms(300));
        assert_eq!(state.point(begun, 2).memory_bytes, 20);
    }

    #[test]
    fn a_pass_goes_on_where_the_last_one_ended() {
        let all: Vec<_> = (0..MOST + 10)
            .map(|n| (format!("{n:06}"), Timestamp::from_secs(1)))
            .collect();
        let mut state = State::default();
        let first = state.due(all.clone());
        assert_eq!(first.len(), MOST);
        state.cursor = first.last().unwrap().0.clone();
        let second = state.due(all.clone());
        assert_eq!(second[0].0, all[MOST].0);
        assert_eq!(second[10].0, all[0].0, "and begins again");
        assert!(state.due(Vec::new()).is_empty());
    }

    #[test]
    fn the_history_is_an_hour_of_one_point_a_minute() {
        let mut state = State::default();
        for half_minute in 0..400 {
            let point = state.point(Timestamp::from_secs(half_minute * 30), 0);
            state.push(point);
        }
        assert_eq!(state.points.len(), POINTS);
        let span = state.points[POINTS - 1].at.since(state.points[0].at);
        assert_eq!(span, Duration::from_secs(59 * 60));
    }
}
