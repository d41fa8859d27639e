//! Everything that a run needs, and what happens to the service: begin, crash, takeover, end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kit::engine::Verb;
use kit::{FakeDirectory, FakeEngine, FakeSource, MemoryDataDir, MemoryStore};
use reconcilers::runtime::leader::Leadership;
use schema::adapter::Adapter;
use schema::clock::{Clock, SharedClock};
use schema::ids::{Epoch, Timestamp, Uid};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::chance::Chance;
use crate::chaos::{Chaos, Readiness};
use crate::checks::{ADAPTER_VARIABLE, Monitor};
use crate::report::Trace;
use crate::service::{Ground, Process, READY_FILE};

/// When every run begins.
const START: Timestamp = Timestamp::from_secs(1_800_000_000);
/// How long after the end of a leadership its holder may still finish what it is at.
const TAIL: Duration = Duration::from_millis(1);

/// Wall-clock time that follows the paused time of tokio.
struct VirtualClock(Instant);

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        START.plus(self.0.elapsed())
    }

    fn steady(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A process that leads or has led.
struct Leader {
    process: Process,
    leadership: Leadership,
    term: Arc<Mutex<Term>>,
}

/// The newest term of a process: until when, if that is known.
#[derive(Clone, Copy)]
struct Term {
    epoch: i64,
    until: Option<Instant>,
}

/// How agents are run and configured by an adapter of this number, read once for all runs.
pub fn echo(readiness: Readiness, number: u32) -> Adapter {
    static READ: Mutex<BTreeMap<(Readiness, u32), Adapter>> = Mutex::new(BTreeMap::new());
    let mut read = lock(&READ);
    let adapter = read.entry((readiness, number)).or_insert_with(|| {
        kit::adapter::echo(|index| {
            index["adapter_version"] = json!(format!("2.{number}"));
            let agent = &mut index["agent"];
            agent["environment"] = json!({ ADAPTER_VARIABLE: number.to_string() });
            agent["debug_command"] = json!(["/bin/debug"]);
            agent["readiness"] = match readiness {
                Readiness::Run => Value::Null,
                Readiness::File => json!({ "file": READY_FILE }),
                Readiness::Http => json!({ "http": { "port": 18790, "path": "/health" } }),
            };
        })
    });
    adapter.clone()
}

/// One simulated installation.
pub struct World {
    pub ground: Ground,
    pub fake: FakeEngine,
    pub chaos: Chaos,
    pub chance: Chance,
    /// Another stream, for what is done about skills.
    pub skills: Chance,
    monitor: Arc<Mutex<Monitor>>,
    leader: Option<Leader>,
    /// A former leader that still runs.
    former: Option<Leader>,
    epoch: i64,
}

impl World {
    pub fn new(seed: u64, keep_all: bool) -> Self {
        let clock: SharedClock = Arc::new(VirtualClock(Instant::now()));
        let chaos = Chaos::new(seed);
        let chance = Chance::new(seed, "driver");
        let ground = Ground {
            store: MemoryStore::default(),
            dir: MemoryDataDir::default(),
            packages: FakeSource::default(),
            directory: FakeDirectory::default(),
            clock: Arc::clone(&clock),
            workers: usize::try_from(chance.between(1, 4)).unwrap_or(1),
            seed,
        };
        let fake = FakeEngine::new(Arc::clone(&clock));
        let monitor = Arc::new(Mutex::new(Monitor::new(START, keep_all)));
        let world = Self {
            ground,
            fake,
            chaos,
            chance,
            skills: Chance::new(seed, "skills"),
            monitor,
            leader: None,
            former: None,
            epoch: 0,
        };
        let first = echo(world.chaos.profile.readiness, 0);
        world.ground.store.activate(first.clone());
        world.ground.packages.publish(first);
        world.connect();
        world
    }

    /// Lets everything that is simulated ask the chaos and tell the monitor.
    fn connect(&self) {
        let chaos = self.chaos.clone();
        self.fake.on_call(move |verb| chaos.engine_call(verb));
        let chaos = self.chaos.clone();
        self.fake.on_event(move |event| chaos.event(event));
        let chaos = self.chaos.clone();
        self.fake
            .on_start(move |details| chaos.run(&format!(".agent/{READY_FILE}"), details));
        let fake = self.fake.clone();
        let made = move |uid: &Uid, file: &str| fake.file_made(uid.as_str(), file);
        self.ground.dir.on_made(made);
        let dir = self.ground.dir.clone();
        self.fake.on_host(move |path| dir.entry(path));
        let (monitor, clock) = (Arc::clone(&self.monitor), Arc::clone(&self.ground.clock));
        self.fake
            .on_change(move |containers| lock(&monitor).at(clock.now()).world(containers));
        let (monitor, clock) = (Arc::clone(&self.monitor), Arc::clone(&self.ground.clock));
        self.ground
            .store
            .on_change(move |change| lock(&monitor).at(clock.now()).store(change));
        let chaos = self.chaos.clone();
        self.ground.store.on_call(move || chaos.store_call());
        let chaos = self.chaos.clone();
        self.ground.dir.on_call(move || chaos.dir_call());
        let chaos = self.chaos.clone();
        self.ground.packages.on_call(move || chaos.source_call());
    }

    pub fn now(&self) -> Timestamp {
        self.ground.clock.now()
    }

    pub fn monitor(&self) -> MutexGuard<'_, Monitor> {
        let mut monitor = lock(&self.monitor);
        monitor.at(self.now());
        monitor
    }

    pub fn line(&self, text: &str) {
        self.monitor().line(text);
    }

    pub fn is_broken(&self) -> bool {
        self.monitor().violation.is_some()
    }

    /// The trace and what was broken.
    pub fn finish(self) -> (Trace, Option<String>) {
        let mut monitor = self.monitor();
        for what in self.chaos.take_counted() {
            monitor.trace.count(what);
        }
        let trace = std::mem::take(&mut monitor.trace);
        (trace, monitor.violation.clone())
    }

    /// Starts a process that leads from now on; sometimes only for a time that is set beforehand, as
    /// when a lease cannot be renewed.
    pub fn begin(&mut self, for_a_time: bool) {
        let (term, until) = self.next_term("BEGIN", for_a_time);
        let leadership =
            Leadership::for_term(Epoch(term.epoch), until, Arc::clone(&self.ground.clock));
        let (monitor, clock) = (Arc::clone(&self.monitor), Arc::clone(&self.ground.clock));
        let term = Arc::new(Mutex::new(term));
        let watched = Arc::clone(&term);
        let engine = self.fake.watched(move |verb| {
            let Term { epoch, until } = *lock(&watched);
            let over = until.is_some_and(|until| Instant::now() > until + TAIL);
            // A pull belongs to no pass; it changes no container.
            if over && verb.is_write() && verb != Verb::Pull {
                let text = format!("the leader of epoch {epoch} goes on after its end: {verb}");
                lock(&monitor).at(clock.now()).broken(text);
            }
        });
        self.leader = Some(Leader {
            process: Process::start(&self.ground, engine, leadership.clone()),
            leadership,
            term,
        });
    }

    /// A process that has lost its leadership, and lives on, leads again.
    fn begin_again(&mut self, leader: Leader, for_a_time: bool) {
        let (term, until) = self.next_term("AGAIN", for_a_time);
        *lock(&leader.term) = term;
        leader.leadership.again(Epoch(term.epoch), until);
        self.leader = Some(leader);
    }

    /// The next term, with its end by both clocks.
    fn next_term(&mut self, how: &str, for_a_time: bool) -> (Term, Option<(Instant, Duration)>) {
        self.epoch += 1;
        let epoch = self.epoch;
        let until = for_a_time.then(|| Instant::now() + self.chance.millis(2_000, 40_000));
        let text = match until {
            Some(at) => format!("{how} epoch {epoch} for {:?}", at - Instant::now()),
            None => format!("{how} epoch {epoch}"),
        };
        self.line(&text);
        let by_clocks = until.map(|at| (at, self.ground.clock.steady() + (at - Instant::now())));
        (Term { epoch, until }, by_clocks)
    }

    /// Kills the leading process at whatever it is at, and starts another after a while.
    pub async fn crash(&mut self) {
        self.line("CRASH");
        self.monitor().trace.count("crash");
        self.chaos.forget_crash();
        self.ground.store.forget_bells();
        if let Some(leader) = self.leader.take() {
            leader.process.kill().await;
        }
        if let Some(former) = self.former.take() {
            former.process.kill().await;
        }
        sleep(self.chance.some_time(5_000)).await;
    }

    /// Asks the leading process to end, and waits for it.
    pub async fn stop(&mut self) {
        self.line("STOP");
        self.monitor().trace.count("stop");
        self.chaos.forget_crash();
        if let Some(leader) = self.leader.take()
            && let Err(error) = leader.process.stop().await
        {
            self.monitor()
                .broken(format!("the service failed: {error}"));
        }
        self.ground.store.forget_bells();
    }

    /// The leader's time is over: another process leads, which is a new one or the leader before, while the
    /// one whose time is over stands by.
    async fn take_over(&mut self) {
        self.monitor().trace.count("takeover");
        let over = self.leader.take();
        let for_a_time = self.chance.per_mille(500);
        match self.former.take() {
            Some(former) if self.chance.per_mille(700) => {
                self.monitor().trace.count("leads again");
                self.begin_again(former, for_a_time);
            }
            former => {
                if let Some(former) = former {
                    former.process.kill().await;
                }
                self.begin(for_a_time);
            }
        }
        self.former = over;
    }

    /// Time passes, in which the service may crash where it was told to, or lose its leadership.
    pub async fn wait(&mut self, time: Duration) {
        let end = Instant::now() + time;
        loop {
            let Some(leader) = &mut self.leader else {
                return;
            };
            let until = lock(&leader.term).until;
            let process = &mut leader.process;
            let crash = Arc::clone(&self.chaos.crash);
            enum Why {
                Time,
                Crash,
                Over,
                Ended(String),
            }
            let over = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until + TAIL).await,
                    None => std::future::pending().await,
                }
            };
            let why = tokio::select! {
                biased;
                ended = process.ended() => Why::Ended(match ended {
                    Ok(()) => "it ended".to_owned(),
                    Err(error) => error.to_string(),
                }),
                () = crash.notified() => Why::Crash,
                () = over => Why::Over,
                () = tokio::time::sleep_until(end) => Why::Time,
            };
            match why {
                Why::Time => return,
                Why::Crash => {
                    self.crash().await;
                    let for_a_time = self.chaos.profile.takeovers && self.chance.per_mille(300);
                    self.begin(for_a_time);
                }
                Why::Over => self.take_over().await,
                Why::Ended(how) => {
                    self.leader = None;
                    self.monitor().broken(format!("the service failed: {how}"));
                    return;
                }
            }
        }
    }

    /// Ends former leaders, and begins again if the present one has not for ever.
    pub async fn settle_leadership(&mut self) {
        if let Some(former) = self.former.take() {
            former.process.kill().await;
        }
        let leader = self.leader.as_ref();
        let for_ever = leader.is_some_and(|leader| lock(&leader.term).until.is_none());
        if !for_ever {
            self.crash().await;
            self.begin(false);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
