//! The steps of a plan.

use engine::{ContainerSettings, HostRules};
use schema::container::{ContainerEnd, ContainerFacts, sentence, with_log};
use schema::ids::UserName;

/// Bytes of log lines in an event, beside its cause.
const EVENT_ROOM: usize = 700;

/// The copy of an image's own home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// Name of the user.
    pub name: UserName,
    /// The image.
    pub image: String,
    /// Where the home is in the image.
    pub home: String,
}

/// One step. Nothing in it is left to choose.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Notes that this reconciler must clean up before the user may be purged.
    AddFinalizer,
    /// Cleaning up is done: the container's rows may go.
    ReleaseFinalizer,
    /// Records that no container has this name of a renamed user any more.
    ReleaseName(UserName),
    /// Remembers what was observed.
    SaveFacts(Box<ContainerFacts>),
    /// Remembers what was observed, and beside it an end that was not asked for; an event says so.
    NoteEnd {
        /// What is remembered from now on.
        facts: Box<ContainerFacts>,
        /// The end.
        end: Box<ContainerEnd>,
    },
    /// Says in an event why the container is recreated: nothing else shows it.
    NoteReplacedHome,
    /// Starts (or joins) the pull of an image.
    StartPull {
        /// The reference.
        reference: String,
    },
    /// Proves that engine and service see the same data directory.
    VerifyDataDir {
        /// An image that is on the engine.
        image: String,
    },
    /// Lets agents reach the agent listener and nothing else of the host.
    RestrictHost {
        /// By these rules.
        rules: HostRules,
    },
    /// Copies the image's own home into the user's directory, in which nobody has written yet.
    SeedHome {
        /// What from, and where to.
        seed: Seed,
    },
    /// Creates a container.
    Create {
        /// Its name.
        name: String,
        /// What it is made of.
        settings: Box<ContainerSettings>,
    },
    /// Starts a container.
    Start {
        /// Id, or the name of one that was created just before.
        container: String,
    },
    /// Stops a container.
    Stop {
        /// Id.
        container: String,
    },
    /// Removes a container.
    Remove {
        /// Id.
        container: String,
    },
    /// Renames a container.
    Rename {
        /// Id.
        container: String,
        /// The new name.
        name: String,
    },
}

impl Action {
    /// Its memory.
    pub(super) fn facts(&self) -> Option<&ContainerFacts> {
        match self {
            Self::SaveFacts(facts) | Self::NoteEnd { facts, .. } => Some(facts),
            _ => None,
        }
    }

    /// The same step, which remembers something else.
    pub(super) fn with_facts(self, facts: ContainerFacts) -> Self {
        let facts = Box::new(facts);
        match self {
            Self::NoteEnd { end, .. } => Self::NoteEnd { facts, end },
            _ => Self::SaveFacts(facts),
        }
    }
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Ids are long; names are shown in full.
        let short = |id: &str| {
            let digits = id.strip_prefix("sha256:").unwrap_or(id);
            let is_id = digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit());
            digits.get(..12).filter(|_| is_id).unwrap_or(id).to_owned()
        };
        match self {
            Self::AddFinalizer => f.write_str("take responsibility for cleaning up"),
            Self::ReleaseFinalizer => f.write_str("cleaning up is done"),
            Self::ReleaseName(name) => write!(f, "release the name {name}"),
            Self::SaveFacts(_) => f.write_str("remember what was observed"),
            Self::NoteEnd { end, .. } => {
                f.write_str(&with_log(&sentence(&end.cause), &end.log, EVENT_ROOM))
            }
            Self::NoteReplacedHome => f.write_str(
                "recreate the container: the user's directory was replaced, and it mounts the one before",
            ),
            Self::StartPull { reference } => write!(f, "pull {reference}"),
            Self::VerifyDataDir { image } => {
                write!(f, "probe the data directory with {}", short(image))
            }
            Self::RestrictHost { rules } => write!(f, "let {rules}"),
            Self::SeedHome { seed } => {
                write!(f, "copy {} of {} into the user's directory", seed.home, short(&seed.image))
            }
            Self::Create { name, settings } => {
                write!(f, "create {name} from {}", short(&settings.image))
            }
            Self::Start { container } => write!(f, "start {}", short(container)),
            Self::Stop { container } => write!(f, "stop {}", short(container)),
            Self::Remove { container } => write!(f, "remove {}", short(container)),
            Self::Rename { container, name } => {
                write!(f, "rename {} to {name}", short(container))
            }
        }
    }
}
