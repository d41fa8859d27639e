//! The watchdog: a plain thread that the runtime must answer each second.
//!
//! A runtime whose threads are all blocked answers nothing: no request, no signal, no timer. Nothing inside of it can notice
//! that. So a thread of its own spawns a probe each second, and compares the counters of each worker: one that is neither
//! parked nor goes on is in a task that does not return, and a task in its slot for the next one runs nowhere else.
//! After [`LIMIT`] ticks without an answer the log gets a report, and the process ends with [`EXIT_CODE`]: whatever runs
//! it starts it again.
//!
//! Time is counted in ticks of the thread itself, never by a clock: while the process or the machine is suspended the thread does not
//! tick either, and a tick that comes late counts once. An exhausted pool of blocking threads is no stall: file calls
//! wait for it, and each of them has its own bound.

mod report;
mod threads;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{DumpableBehavior, Signal, getpid, kill_process, set_dumpable_behavior};
use schema::fault;
use tokio::runtime::{Handle, RuntimeMetrics};

/// Exit code after a stall (`EX_SOFTWARE`).
pub const EXIT_CODE: i32 = 70;

const TICK: Duration = Duration::from_secs(1);
/// Ticks without an answer after which the process ends.
const LIMIT: u32 = 60;
/// Ticks without an answer after which the log has a warning.
const WARNING: u32 = 10;
/// Longest time for the report: standard error may be a pipe that is full.
const REPORT: Duration = Duration::from_secs(5);
/// Time after which the process is killed if it could not exit.
const LAST: Duration = Duration::from_secs(10);

/// A running watchdog; it ends when this is dropped.
#[derive(Debug)]
pub struct Watchdog {
    _running: Sender<()>,
}

impl Watchdog {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(runtime: &Handle) -> io::Result<Self> {
        let (running, stopped) = channel::<()>();
        let limit = fault::shorten_bound("AGENTYARD_WATCHDOG_TICKS", LIMIT);
        let mut probes = Probes::new(runtime.clone());
        let mut judge = Judge::new(limit);
        let watch = move || {
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                match judge.judge(&probes.sample()) {
                    Verdict::Answers => {}
                    Verdict::Late => log(move || {
                        tracing::warn!(
                            ticks = WARNING,
                            limit,
                            "the runtime does not answer; the process ends at the limit"
                        );
                    }),
                    Verdict::Recovered(ticks) => log(move || {
                        tracing::warn!(ticks, "the runtime answers again");
                    }),
                    Verdict::Stalled(stall) => end(stall),
                }
            }
        };
        thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(watch)?;
        Ok(Self { _running: running })
    }
}

/// What has not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stall {
    /// Ticks without an answer.
    ticks: u32,
    /// No worker has run the probe.
    runtime: bool,
    /// Workers, from 0, in a task that does not return.
    workers: Vec<usize>,
}

/// Counters of the runtime at one tick.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sample {
    /// Probes that were answered.
    answers: u64,
    workers: Vec<Worker>,
}

/// Counters of a worker; both move while it runs tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Worker {
    /// Odd while it waits for work.
    parks: u64,
    busy: Duration,
}

impl Worker {
    fn has_answered_since(self, before: Self) -> bool {
        self.parks % 2 == 1 || self != before
    }
}

/// Asks the runtime.
struct Probes {
    runtime: Handle,
    metrics: RuntimeMetrics,
    asked: u64,
    answers: Arc<AtomicU64>,
}

impl Probes {
    fn new(runtime: Handle) -> Self {
        Self {
            metrics: runtime.metrics(),
            runtime,
            asked: 0,
            answers: Arc::default(),
        }
    }

    /// Reads the counters. At most one probe is on its way: it ends as soon as it is polled.
    fn sample(&mut self) -> Sample {
        let answers = self.answers.load(Ordering::Relaxed);
        if answers == self.asked {
            let counter = Arc::clone(&self.answers);
            self.asked += 1;
            drop(self.runtime.spawn(async move {
                counter.fetch_add(1, Ordering::Relaxed);
            }));
        }
        let workers = (0..self.metrics.num_workers()).map(|worker| Worker {
            parks: self.metrics.worker_park_unpark_count(worker),
            busy: self.metrics.worker_total_busy_duration(worker),
        });
        Sample {
            answers,
            workers: workers.collect(),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Answers,
    Late,
    /// After so many ticks.
    Recovered(u32),
    Stalled(Stall),
}

/// Counts ticks without an answer.
struct Judge {
    limit: u32,
    last: Option<Sample>,
    /// Ticks without an answer of the runtime.
    runtime: u32,
    /// The same of each worker.
    workers: Vec<u32>,
    warned: bool,
    most: u32,
}

impl Judge {
    fn new(limit: u32) -> Self {
        Self {
            limit,
            last: None,
            runtime: 0,
            workers: Vec::new(),
            warned: false,
            most: 0,
        }
    }

    fn judge(&mut self, sample: &Sample) -> Verdict {
        let count = |ticks: u32, answered: bool| if answered { 0 } else { ticks + 1 };
        if let Some(last) = &self.last {
            self.runtime = count(self.runtime, sample.answers != last.answers);
            let workers = sample.workers.iter().zip(&last.workers);
            let counted = workers.enumerate().map(|(at, (now, before))| {
                let ticks = self.workers.get(at).copied().unwrap_or(0);
                count(ticks, now.has_answered_since(*before))
            });
            self.workers = counted.collect();
        }
        self.last = Some(sample.clone());
        let longest = self.workers.iter().copied().max().unwrap_or(0);
        let ticks = longest.max(self.runtime);
        if ticks >= self.limit {
            let is_stalled = |ticks: u32| ticks >= WARNING.min(self.limit);
            let workers = self.workers.iter().enumerate();
            let workers = workers.filter(|(_, ticks)| is_stalled(**ticks));
            return Verdict::Stalled(Stall {
                ticks,
                runtime: is_stalled(self.runtime),
                workers: workers.map(|(at, _)| at).collect(),
            });
        }
        self.most = self.most.max(ticks);
        if ticks >= WARNING && !self.warned {
            self.warned = true;
            return Verdict::Late;
        }
        if ticks == 0 {
            let most = std::mem::take(&mut self.most);
            if std::mem::take(&mut self.warned) {
                return Verdict::Recovered(most);
            }
        }
        Verdict::Answers
    }
}

/// Writes to the log on a thread that is not waited for: standard error may be a pipe that is full.
fn log(write: impl FnOnce() + Send + 'static) {
    let _ = thread::Builder::new().spawn(write);
}

/// Ends the process after a report. No destructor runs, and neither a full pipe of the log nor a handler of the exit holds it up.
fn end(stall: Stall) -> ! {
    let last = || {
        thread::sleep(LAST);
        let _ = kill_process(getpid(), Signal::KILL);
        // The first process of a container ignores that of itself. This ends in a fault of the processor; its memory has the master key.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        std::process::abort();
    };
    let _ = thread::Builder::new().spawn(last);
    let (done, reported) = channel();
    let write = move || {
        report::write(&stall);
        let _ = done.send(());
    };
    // Without a thread for it there is no report.
    if thread::Builder::new().spawn(write).is_ok() {
        let _ = reported.recv_timeout(REPORT);
    }
    std::process::exit(EXIT_CODE)
}

#[cfg(test)]
mod tests;
