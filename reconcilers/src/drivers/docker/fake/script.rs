//! What a test tells the fake to do, and what the fake tells of what was asked.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::drivers::docker::{ContainerDetails, EngineError};

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
    Pull,
    FileExists,
    ReadFile,
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
            | Self::Pull => true,
            Self::Info
            | Self::List
            | Self::Inspect
            | Self::Network
            | Self::Image
            | Self::FileExists
            | Self::ReadFile
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
        }
    }
}

/// How the process in a container behaves after a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The start itself fails with these words.
    pub refused: Option<String>,
    /// It ends by itself after this time with this code; `None` runs for ever.
    pub ends: Option<(Duration, i64)>,
    /// Ended by itself, it was killed for want of memory.
    pub oom_killed: bool,
    /// How long it takes to end when asked to stop; `None` ignores the request.
    pub stops_after: Option<Duration>,
    /// A file that it makes some time after its start, such as a heartbeat.
    pub makes_file: Option<(Duration, String)>,
}

impl Default for Run {
    /// Runs for ever and stops at once when asked.
    fn default() -> Self {
        Self {
            refused: None,
            ends: None,
            oom_killed: false,
            stops_after: Some(Duration::ZERO),
            makes_file: None,
        }
    }
}

/// Decides at each start how the process behaves.
pub type StartHook = Arc<dyn Fn(&ContainerDetails) -> Run + Send + Sync>;

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
    pub(super) hide_binds: bool,
    pub(super) ignore_bind_sources: bool,
}
