//! What goes wrong with each call of the service, as the seed decides.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::{CALL_TIMEOUT, ContainerDetails, EngineError, EngineEvent};
use kit::Pace;
use kit::engine::{Fault, Run, Verb};
use schema::condition::Reason;
use schema::live::Waiting;
use tokio::sync::Notify;

use crate::chance::Chance;

/// Agents with this much memory are ready at once, and end after five seconds.
pub const BREAKS_AGENTS_MB: i64 = 333;

/// Moment at which agents are ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Readiness {
    /// As soon as they run.
    Run,
    /// As soon as they have made a file.
    File,
    /// As soon as they answer.
    Http,
}

/// How often what goes wrong in this run, in per mille of the calls. Each seed leaves some kinds out
/// altogether: what never fails together hides what fails alone, and the other way round.
#[derive(Debug, Clone)]
pub struct Profile {
    slow: u64,
    fails: u64,
    loses_answer: u64,
    hangs: u64,
    event_lost: u64,
    event_twice: u64,
    event_late: u64,
    store_slow: u64,
    store_fails: u64,
    store_loses_answer: u64,
    dir_fails: u64,
    source_fails: u64,
    process_ends: u64,
    process_waits: u64,
    process_refuses: u64,
    process_hangs: u64,
    /// How agents say that they are ready.
    pub readiness: Readiness,
    /// Crashes among a hundred steps of the driver.
    pub crashes: u64,
    /// Changes made by hand among a hundred steps.
    pub by_hand: u64,
    /// Leaderships end and pass to another process.
    pub takeovers: bool,
}

impl Profile {
    pub fn new(chance: &Chance) -> Self {
        let share = |most: u64| {
            if chance.per_mille(350) {
                0
            } else {
                chance.between(1, most)
            }
        };
        Self {
            slow: share(200),
            fails: share(80),
            loses_answer: share(60),
            hangs: share(10),
            event_lost: share(300),
            event_twice: share(200),
            event_late: share(300),
            store_slow: share(100),
            store_fails: share(30),
            store_loses_answer: share(30),
            dir_fails: share(30),
            source_fails: share(500),
            process_ends: share(300),
            process_waits: share(200),
            process_refuses: share(300),
            process_hangs: share(300),
            readiness: match share(12) {
                0..=3 => Readiness::Run,
                4..=7 => Readiness::File,
                _ => Readiness::Http,
            },
            crashes: share(25),
            by_hand: share(40),
            takeovers: share(10) > 6,
        }
    }
}

struct State {
    on: bool,
    /// The database takes nothing and answers nothing.
    store_away: bool,
    calls: u64,
    crash_at: Option<u64>,
    counted: Vec<&'static str>,
}

/// Decides of every call; clones decide together.
#[derive(Clone)]
pub struct Chaos {
    pub profile: Arc<Profile>,
    state: Arc<Mutex<State>>,
    /// Told when the call has begun at which the service is to crash.
    pub crash: Arc<Notify>,
    engine: Chance,
    events: Chance,
    store: Chance,
    dir: Chance,
    process: Chance,
}

impl Chaos {
    pub fn new(seed: u64) -> Self {
        Self {
            profile: Arc::new(Profile::new(&Chance::new(seed, "profile"))),
            state: Arc::new(Mutex::new(State {
                on: true,
                store_away: false,
                calls: 0,
                crash_at: None,
                counted: Vec::new(),
            })),
            crash: Arc::new(Notify::new()),
            engine: Chance::new(seed, "engine"),
            events: Chance::new(seed, "events"),
            store: Chance::new(seed, "store"),
            dir: Chance::new(seed, "dir"),
            process: Chance::new(seed, "process"),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on nothing goes wrong any more.
    pub fn end(&self) {
        let mut state = self.state();
        state.on = false;
        state.store_away = false;
        state.crash_at = None;
    }

    /// The database goes away, or its disk is full; or it is back.
    pub fn set_store_away(&self, away: bool) {
        self.state().store_away = away;
    }

    /// Crashes the service `calls` calls from now.
    pub fn crash_after(&self, calls: u64) {
        let mut state = self.state();
        state.crash_at = Some(state.calls + calls);
    }

    pub fn forget_crash(&self) {
        self.state().crash_at = None;
    }

    /// What went wrong since the last look, to be counted.
    pub fn take_counted(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.state().counted)
    }

    fn count(&self, what: &'static str) {
        self.state().counted.push(what);
    }

    /// Counts a call. `None`: nothing goes wrong any more. True: the service crashes during this one.
    fn begin(&self) -> Option<bool> {
        let mut state = self.state();
        if !state.on {
            return None;
        }
        state.calls += 1;
        let crashes = state.crash_at.is_some_and(|at| state.calls >= at);
        if crashes {
            state.crash_at = None;
            self.crash.notify_one();
        }
        Some(crashes)
    }

    /// An ordinary time for a call to take.
    fn latency(chance: &Chance, slow: u64) -> Duration {
        if chance.per_mille(slow) {
            chance.some_time(20_000)
        } else if chance.per_mille(300) {
            Duration::ZERO
        } else {
            chance.millis(1, 10)
        }
    }

    pub fn engine_call(&self, verb: Verb) -> Option<Fault> {
        let crashes = self.begin()?;
        let (profile, chance) = (&self.profile, &self.engine);
        let mut before = Self::latency(chance, profile.slow);
        let mut after = Self::latency(chance, profile.slow);
        if crashes {
            // Half of them with the effect, half without.
            let moment = if chance.per_mille(500) {
                &mut before
            } else {
                &mut after
            };
            *moment += Duration::from_millis(2);
        }
        let slow = |happens, answer| Fault::Slow {
            before,
            happens,
            after,
            answer,
        };
        if chance.per_mille(profile.hangs) {
            self.count("engine hangs");
            return Some(Fault::Slow {
                before: CALL_TIMEOUT,
                happens: chance.per_mille(500),
                after: Duration::ZERO,
                answer: Some(Arc::new(|| EngineError::Timeout(CALL_TIMEOUT))),
            });
        }
        let fails = chance.per_mille(profile.fails);
        let loses = chance.per_mille(profile.loses_answer);
        if !fails && !loses {
            return Some(slow(true, None));
        }
        self.count(if fails { "engine fails" } else { "answer lost" });
        let error: fn() -> EngineError = match chance.below(10) {
            0..=3 => || EngineError::Internal("a simulated 500".to_owned()),
            4 | 5 => || EngineError::Conflict("a simulated 409".to_owned()),
            6 => || EngineError::NotFound("a simulated 404".to_owned()),
            7 => || EngineError::StorageFull("simulated".to_owned()),
            8 if verb == Verb::Create => || EngineError::Refused("a simulated 400".to_owned()),
            _ => kit::engine::FakeEngine::unavailable_error,
        };
        Some(slow(!fails, Some(Arc::new(error))))
    }

    pub fn event(&self, _event: &EngineEvent) -> Vec<Duration> {
        if !self.state().on {
            return vec![Duration::ZERO];
        }
        let (profile, chance) = (&self.profile, &self.events);
        if chance.per_mille(profile.event_lost) {
            self.count("event lost");
            return Vec::new();
        }
        let mut heard = vec![Duration::ZERO];
        if chance.per_mille(profile.event_late) {
            self.count("event late");
            heard = vec![chance.some_time(30_000)];
        }
        if chance.per_mille(profile.event_twice) {
            self.count("event twice");
            heard.push(chance.some_time(30_000));
        }
        heard
    }

    pub fn store_call(&self) -> Pace {
        let Some(crashes) = self.begin() else {
            return Pace::default();
        };
        let (profile, chance) = (&self.profile, &self.store);
        let mut pace = Pace {
            before: Self::latency(chance, profile.store_slow),
            after: Self::latency(chance, profile.store_slow),
            fails: chance.per_mille(profile.store_fails) || self.state().store_away,
            loses_answer: chance.per_mille(profile.store_loses_answer),
        };
        if pace.fails {
            self.count("store fails");
        } else if pace.loses_answer {
            self.count("store loses the answer");
        }
        if crashes {
            if chance.per_mille(500) {
                pace.before += Duration::from_millis(2);
            } else {
                pace.after += Duration::from_millis(2);
            }
        }
        pace
    }

    pub fn dir_call(&self) -> Pace {
        let Some(crashes) = self.begin() else {
            return Pace::default();
        };
        let chance = &self.dir;
        let mut pace = Pace {
            before: Self::latency(chance, 0),
            after: Self::latency(chance, 0),
            fails: chance.per_mille(self.profile.dir_fails),
            loses_answer: chance.per_mille(self.profile.dir_fails),
        };
        if pace.fails {
            self.count("disk full");
        }
        if crashes {
            pace.after += Duration::from_millis(2);
        }
        pace
    }

    /// How the source of adapter packages answers.
    pub fn source_call(&self) -> Pace {
        if self.begin().is_none() {
            return Pace::default();
        }
        let fails = self.store.per_mille(self.profile.source_fails);
        if fails {
            self.count("source fails");
        }
        Pace {
            before: Self::latency(&self.store, self.profile.slow),
            fails,
            ..Pace::default()
        }
    }

    /// How a process that is started now behaves.
    pub fn run(&self, ready_file: &str, details: &ContainerDetails) -> Run {
        let by_file = self.profile.readiness == Readiness::File;
        let ready = |after| by_file.then(|| (after, ready_file.to_owned()));
        if details.settings.memory_bytes == BREAKS_AGENTS_MB << 20 {
            return Run {
                ends: Some((Duration::from_secs(5), 1)),
                makes_file: ready(Duration::ZERO),
                ..Run::default()
            };
        }
        if !self.state().on {
            return Run {
                makes_file: ready(Duration::ZERO),
                ..Run::default()
            };
        }
        let (profile, chance) = (&self.profile, &self.process);
        if chance.per_mille(profile.process_refuses) {
            self.count("start refused");
            return Run {
                refused: Some("a simulated OCI error".to_owned()),
                ..Run::default()
            };
        }
        let ends = chance.per_mille(profile.process_ends).then(|| {
            self.count("process ends");
            let code = i64::try_from(chance.below(3)).unwrap_or(1);
            (chance.some_time(60_000), code)
        });
        let hangs_after = chance.per_mille(profile.process_hangs).then(|| {
            self.count("process hangs");
            chance.some_time(60_000)
        });
        let starts_after = chance.per_mille(profile.process_waits).then(|| {
            self.count("process waits");
            let waiting = Waiting {
                reason: Reason::Unschedulable,
                message: "0/1 nodes: insufficient memory".to_owned(),
            };
            (chance.some_time(150_000), waiting)
        });
        Run {
            refused: None,
            starts_after,
            hangs_after,
            ends,
            oom_killed: chance.per_mille(50),
            stops_after: (!chance.per_mille(200)).then(|| chance.some_time(8_000)),
            makes_file: ready(chance.some_time(20_000)),
        }
    }
}
