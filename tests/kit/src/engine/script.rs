//! What a test tells the fake to do, and what the fake tells of what was asked.

use bytes::Bytes;
use engine::{ContainerDetails, EngineError, EngineEvent};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use schema::live::Waiting;
/// The verbs of an engine, to aim faults and count calls.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, strum::Display, strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs)] // each is the method of the same name
pub enum Verb {
    Info,
    List,
    Inspect,
    Create,
    Start,
    Stop,
    Remove,
    Rename,
    Network,
    CreateNetwork,
    RemoveNetwork,
    Image,
    Images,
    RemoveImage,
    Pull,
    ReadFile,
    ReadTree,
    Logs,
    Stats,
    Events,
}

impl Verb {
    /// Whether the verb changes the world.
    pub fn is_write(self) -> bool {
        match self {
            Self::Create
            | Self::Start
            | Self::Stop
            | Self::Remove
            | Self::Rename
            | Self::CreateNetwork
            | Self::RemoveNetwork
            | Self::RemoveImage
            | Self::Pull => true,
            Self::Info
            | Self::List
            | Self::Inspect
            | Self::Network
            | Self::Image
            | Self::Images
            | Self::ReadFile
            | Self::ReadTree
            | Self::Logs
            | Self::Stats
            | Self::Events => false,
        }
    }
}

/// Makes an error; errors of the engine cannot be copied.
pub type ErrorMaker = Arc<dyn Fn() -> EngineError + Send + Sync>;

/// What goes wrong with a call.
#[derive(Clone)]
pub enum Fault {
    /// It fails and nothing happened.
    Fail(ErrorMaker),
    /// It never answers and nothing happened.
    Hang,
    /// It answers late.
    Delay(Duration),
    /// It happened, but the answer says it failed: the lost answer.
    ApplyThenFail(ErrorMaker),
    /// It happened, but no answer comes.
    ApplyThenHang,
    /// It takes its time, before and after the moment at which it happens, if it happens; an engine
    /// that is switched off meanwhile does not answer.
    Slow {
        /// From the question to that moment.
        before: Duration,
        /// Whether it happens.
        happens: bool,
        /// From that moment to the answer.
        after: Duration,
        /// What is answered in place of the truth.
        answer: Option<ErrorMaker>,
    },
}

impl Fault {
    /// A call that fails.
    pub fn fail(error: impl Fn() -> EngineError + Send + Sync + 'static) -> Self {
        Self::Fail(Arc::new(error))
    }

    /// A call that takes effect and then fails.
    pub fn apply_then_fail(error: impl Fn() -> EngineError + Send + Sync + 'static) -> Self {
        Self::ApplyThenFail(Arc::new(error))
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fail(error) => f.debug_tuple("Fail").field(&error()).finish(),
            Self::Hang => f.write_str("Hang"),
            Self::Delay(delay) => f.debug_tuple("Delay").field(delay).finish(),
            Self::ApplyThenFail(error) => f.debug_tuple("ApplyThenFail").field(&error()).finish(),
            Self::ApplyThenHang => f.write_str("ApplyThenHang"),
            Self::Slow {
                before,
                happens,
                after,
                answer,
            } => f
                .debug_struct("Slow")
                .field("before", before)
                .field("happens", happens)
                .field("after", after)
                .field("answer", &answer.as_ref().map(|answer| answer()))
                .finish(),
        }
    }
}

/// How the process in a container behaves after a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The start itself fails with these words.
    pub refused: Option<String>,
    /// It runs only after this time, and meanwhile waits for this.
    pub starts_after: Option<(Duration, Waiting)>,
    /// It ends by itself after this time with this code; `None` runs for ever.
    pub ends: Option<(Duration, i64)>,
    /// Ended by itself, it was killed for want of memory.
    pub oom_killed: bool,
    /// How long it takes to end when asked to stop; `None` ignores the request.
    pub stops_after: Option<Duration>,
    /// The time after its first answer from which it answers no more, as a process that hangs.
    pub hangs_after: Option<Duration>,
    /// A file in its user's directory that it makes some time after its start, such as a heartbeat.
    pub makes_file: Option<(Duration, String)>,
}

impl Default for Run {
    /// Runs for ever and stops at once when asked.
    fn default() -> Self {
        Self {
            refused: None,
            starts_after: None,
            ends: None,
            oom_killed: false,
            stops_after: Some(Duration::ZERO),
            hangs_after: None,
            makes_file: None,
        }
    }
}

/// How pulls of a reference go.
#[derive(Clone)]
pub struct PullScript {
    /// Ids and sizes of its layers.
    pub layers: Vec<(String, u64)>,
    /// How many of them, from the first on, the engine already has.
    pub present: usize,
    /// Time before each event.
    pub step: Duration,
    /// How it ends.
    pub ends: PullEnd,
}

/// How a scripted pull ends.
#[derive(Clone)]
pub enum PullEnd {
    /// With the image on the engine.
    Done,
    /// With this error in place of the event of this number.
    Fails(usize, ErrorMaker),
    /// Never: after so many events nothing comes any more.
    Hangs(usize),
}

/// Decides at each start how the process behaves.
pub type StartHook = Arc<dyn Fn(&ContainerDetails) -> Run + Send + Sync>;

/// Decides what goes wrong with a call for which nothing was scripted.
pub type CallHook = Arc<dyn Fn(Verb) -> Option<Fault> + Send + Sync>;

/// Called with each call as it begins.
pub type CallerHook = Arc<dyn Fn(Verb) + Send + Sync>;

/// Decides when each reader hears of an event, counted from its time: never, once, or several times.
/// Different delays put events out of order.
pub type EventHook = Arc<dyn Fn(&EngineEvent) -> Vec<Duration> + Send + Sync>;

/// Called with all containers after every change, in the order of their ids. It must not call the engine.
pub type ChangeHook = Arc<dyn Fn(&mut dyn Iterator<Item = &ContainerDetails>) + Send + Sync>;

/// What the engine's host has at a path, in place of this machine's file system.
pub type HostHook = Arc<dyn Fn(&Path) -> Option<HostEntry> + Send + Sync>;

/// Something on the engine's host that can be mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostEntry {
    /// A directory.
    Directory,
    /// A file with its content.
    File(Vec<u8>),
}

/// How often each verb was called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls(pub(super) BTreeMap<Verb, u64>);

impl Calls {
    /// Calls of one verb.
    pub fn of(&self, verb: Verb) -> u64 {
        self.0.get(&verb).copied().unwrap_or(0)
    }

    /// Calls that only look.
    pub fn reads(&self) -> u64 {
        self.sum(false)
    }

    /// Calls that change the world, successful or not.
    pub fn writes(&self) -> u64 {
        self.sum(true)
    }

    fn sum(&self, writes: bool) -> u64 {
        self.0
            .iter()
            .filter(|(verb, _)| verb.is_write() == writes)
            .map(|(_, count)| count)
            .sum()
    }
}

/// The faults, delays and counts of one fake.
#[derive(Default)]
pub(super) struct Script {
    pub(super) faults: BTreeMap<Verb, VecDeque<Fault>>,
    pub(super) latency: BTreeMap<Verb, Duration>,
    pub(super) unavailable: bool,
    pub(super) calls: Calls,
    pub(super) start_hook: Option<StartHook>,
    pub(super) call_hook: Option<CallHook>,
    pub(super) event_hook: Option<EventHook>,
    pub(super) change_hook: Option<ChangeHook>,
    pub(super) host_hook: Option<HostHook>,
    pub(super) pulls: BTreeMap<String, PullScript>,
    /// What images have, by image and path.
    pub(super) trees: BTreeMap<(String, String), Bytes>,
    pub(super) hide_binds: bool,
    pub(super) ignore_bind_sources: bool,
}
