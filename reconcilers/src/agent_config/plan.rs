//! Renders a user's files and decides what to do. Pure.

use std::fmt;

use engine::NetworkState;
use schema::adapter::{Applied, Found, Inputs, McpAccess, RenderError, Rendered};
use schema::agent_config::{AgentConfigFacts, AgentConfigRow, KeptFiles, Values};
use schema::condition::{Condition, Reason};
use schema::config::keys;
use schema::config::query::{ENGINE_NAME, engine_uid};
use schema::error::chain;
use schema::home::{FoundFile, HomeState, NewFile};
use schema::ids::{Kind, UserName};
use schema::image::ImageReference;

use super::back;
use super::observe::{NoAddress, Seen, Snapshot, World};
use crate::runtime::Plan;
use crate::shared::network::describe_foreign_network;

/// Who may read the files, unless the configuration file says otherwise itself: nobody else.
pub(super) const MODE: u32 = 0o600;

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Keeps the files as they are before a migration; what is in them is never printed.
    KeepFiles(Box<KeptFiles>),
    /// Replaces the agent's files. The one that says its version comes last.
    WriteFiles {
        /// Name of the user.
        name: UserName,
        /// The files; what is in them is never printed.
        files: Vec<NewFile>,
        /// What for, where that has to be shown.
        why: Why,
    },
    /// Remembers what was written, or why nothing was.
    SaveFacts(Box<AgentConfigFacts>),
}

/// What files are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Something else is desired.
    Desired,
    /// Somebody has changed what the service had set.
    Drifted,
    /// The user's directory is another one than they were written in.
    Replaced,
    /// The image reads the previous version, and no migration leads there.
    PutBack,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeepFiles(kept) => write!(
                f,
                "keep the files of configuration version {}",
                kept.config_version
            ),
            Self::WriteFiles { files, why, .. } => {
                let names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
                write!(f, "write {}", names.join(" and "))?;
                f.write_str(match why {
                    Why::Desired => "",
                    Why::Drifted => ", where somebody has changed what the service had set",
                    Why::Replaced => ", because the user's directory was replaced",
                    Why::PutBack => ", as they were before their migration",
                })
            }
            Self::SaveFacts(facts) => match facts.refused {
                None => f.write_str("remember what the files say"),
                Some(_) => f.write_str("remember that the files stay as they are"),
            },
        }
    }
}

fn wait(reason: Reason, message: &str) -> Plan<Action> {
    Plan::say(Condition::not_ready(reason, message))
}

/// The plan for one user's files.
pub fn plan(snapshot: &Snapshot) -> Plan<Action> {
    let row = &snapshot.row;
    match &snapshot.world {
        World::Going => wait(Reason::Terminating, "the user is being removed"),
        World::Held(rollout) => {
            let said = format!("the files are as they were; their turn in rollout {rollout} comes");
            Plan::say(match row.facts.refused {
                None => Condition::ready(Reason::Converged, said),
                Some(reason) => Condition::not_ready(reason, said),
            })
        }
        World::Unchanged(said) => Plan::say(match row.facts.refused {
            None => Condition::ready(Reason::Converged, said.as_ref()),
            Some(reason) => Condition::not_ready(reason, said.as_ref()),
        }),
        World::NoAddress(why) => no_address(*why),
        World::NoHome(state) => match state {
            HomeState::Conflict(why) => wait(Reason::HomeConflict, why),
            HomeState::Missing | HomeState::Ready => wait(
                Reason::HomeMissing,
                "the user's directory does not exist yet",
            ),
        }
        .waiting_for(Kind::User, &row.uid, row.name.as_str()),
        World::Unreadable(problem) => refuse(row, Reason::InvalidUserConfig, problem.clone()),
        World::Seen(seen) => match render(row, seen, row.facts.applied.as_ref(), seen.found()) {
            Ok(desired) => converge(row, seen, desired),
            Err(error) => back::put_back(row, seen, &error)
                .unwrap_or_else(|| refuse(row, reason_of(&error), chain(&error))),
        },
    }
}

fn no_address(why: NoAddress) -> Plan<Action> {
    match why {
        NoAddress::NotConnected => Plan::say(Condition::unknown(
            Reason::Pending,
            "the service's address on the agent network is known once the engine is connected",
        )),
        NoAddress::EngineUnavailable => Plan::say(Condition::unknown(
            Reason::EngineUnavailable,
            "the service's address on the agent network is known once the engine can be reached",
        )),
        NoAddress::Network(NetworkState::Foreign(owner)) => {
            wait(Reason::NameConflict, &describe_foreign_network(owner))
        }
        NoAddress::Network(_) => wait(
            Reason::NetworkMissing,
            "the agent network, on which agents reach the service, does not exist yet",
        ),
    }
    .waiting_for(Kind::Engine, &engine_uid(), ENGINE_NAME)
}

/// The files as desired, and what of the user's has no place in them.
pub(super) struct DesiredFiles {
    pub(super) rendered: Rendered,
    not_permitted: Vec<String>,
}

/// The tag of the user's image; empty when it has none.
fn tag(row: &AgentConfigRow) -> String {
    let reference = row.image_ref.as_deref().unwrap_or_default();
    let reference: Option<ImageReference> = reference.parse().ok();
    let tag = reference.as_ref().and_then(ImageReference::tag);
    tag.unwrap_or_default().to_owned()
}

/// Renders the files that were found, of which `applied` is remembered.
pub(super) fn render(
    row: &AgentConfigRow,
    seen: &Seen,
    applied: Option<&Applied>,
    found: Found<'_>,
) -> Result<DesiredFiles, RenderError> {
    let tag = &tag(row);
    let config = &seen.config;
    let (agent, security) = (config.get(&keys::AGENT), config.get(&keys::SECURITY));
    let chat = config.get(&keys::chat::ENABLED);
    let render = |channels: &Values| {
        seen.adapter.render(&Inputs {
            image_tag: tag,
            agent: &agent,
            security: &security,
            channels,
            cookies: &seen.values.cookies,
            mcp: seen.base_url.as_deref().map(|base_url| McpAccess {
                base_url,
                token: &seen.token,
            }),
            chat: chat.then_some(&seen.chat_token),
            applied,
            found,
        })
    };
    let mut channels = Values::new();
    let mut not_permitted = Vec::new();
    for (channel, values) in &seen.values.channels {
        if chat && seen.adapter.is_chat_channel(tag, channel) {
            continue;
        }
        match seen.adapter.permits_channel(tag, &agent, channel) {
            Ok(true) => {
                channels.insert(channel.clone(), values.clone());
            }
            Ok(false) => not_permitted.push(channel.clone()),
            // What is wrong with the user's own files says more: a container must not read them then.
            Err(global) => {
                return Err(render(&Values::new()).err().unwrap_or(global));
            }
        }
    }
    Ok(DesiredFiles {
        rendered: render(&channels)?,
        not_permitted,
    })
}

impl Seen {
    pub(super) fn found(&self) -> Found<'_> {
        fn bytes(file: Option<&FoundFile>) -> Option<&[u8]> {
            file.map(|file| file.bytes.as_slice())
        }
        Found {
            config: bytes(self.config_file.as_ref()),
            security: bytes(self.security_file.as_ref()),
        }
    }

    /// Whether the image reads another configuration version than the files are of.
    pub(super) fn needs_migration(&self, row: &AgentConfigRow) -> bool {
        let applied = row.facts.applied.as_ref();
        let versions = self
            .adapter
            .config_versions(&tag(row), applied, self.found());
        // What cannot be read is refused, and not migrated.
        versions.is_ok_and(|(from, to)| from != to)
    }

    /// Whether somebody has changed what the service had set since it was written for this generation.
    fn has_drifted(&self, row: &AgentConfigRow) -> bool {
        row.facts.generation == row.generation
            && row.facts.applied.as_ref().is_some_and(|applied| {
                // What cannot be read was refused before.
                self.adapter
                    .has_drifted(applied, self.found())
                    .unwrap_or(false)
            })
    }
}

fn converge(row: &AgentConfigRow, seen: &Seen, desired: DesiredFiles) -> Plan<Action> {
    let DesiredFiles {
        rendered,
        not_permitted,
    } = desired;
    let agent = &seen.adapter.index.agent;
    let mut files = Vec::new();
    // The mark of the version is in the configuration file: it comes last.
    if rendered.security.changed {
        files.push(NewFile {
            path: agent.security_file.clone(),
            bytes: rendered.security.bytes,
            mode: MODE,
            expected: seen.security_file.as_ref().map(|found| found.stamp),
        });
    }
    if rendered.config.changed {
        let found = seen.config_file.as_ref();
        files.push(NewFile {
            path: agent.config_file.clone(),
            bytes: rendered.config.bytes,
            mode: found.map_or(MODE, |found| found.mode),
            expected: found.map(|found| found.stamp),
        });
    }
    let migrated_from =
        (rendered.found_version != rendered.config_version).then_some(rendered.found_version);
    let facts = AgentConfigFacts {
        generation: row.generation,
        refused: None,
        applied: Some(rendered.applied),
        restart_digest: Some(rendered.restart_digest),
        home: Some(seen.home.clone()),
        put_back: row.facts.put_back && migrated_from.is_none(),
    };
    let mut actions = Vec::new();
    if let Some(version) = migrated_from
        && (!files.is_empty() || facts != row.facts)
    {
        actions.extend(back::keep(row, seen, version));
    }
    if !files.is_empty() {
        actions.push(Action::WriteFiles {
            name: row.name.clone(),
            files,
            why: if row
                .facts
                .home
                .as_ref()
                .is_some_and(|home| *home != seen.home)
            {
                Why::Replaced
            } else if seen.has_drifted(row) {
                Why::Drifted
            } else {
                Why::Desired
            },
        });
    }
    if facts != row.facts {
        actions.push(Action::SaveFacts(Box::new(facts)));
    }
    if !actions.is_empty() {
        let condition = Condition::not_ready(Reason::Progressing, "writing the files");
        return Plan::act(actions, condition);
    }
    let version = rendered.config_version;
    let put_back = row.facts.put_back;
    let mut message = format!("the files are as they should be, configuration version {version}");
    for (what, names) in [
        ("this agent version has no place for", &rendered.skipped),
        ("not permitted", &not_permitted),
    ] {
        if !names.is_empty() {
            message.push_str(&format!("; {what}: {}", names.join(", ")));
        }
    }
    if put_back {
        message.push_str(
            "; the previous files were put back, without what was written since their migration",
        );
    }
    Plan::say(Condition::ready(Reason::Converged, message))
}

/// Nothing is written; whoever waits for the files learns why.
fn refuse(row: &AgentConfigRow, reason: Reason, message: String) -> Plan<Action> {
    let facts = AgentConfigFacts {
        generation: row.generation,
        refused: Some(reason),
        ..row.facts.clone()
    };
    let actions = if facts == row.facts {
        Vec::new()
    } else {
        vec![Action::SaveFacts(Box::new(facts))]
    };
    Plan::act(actions, Condition::not_ready(reason, message))
}

fn reason_of(error: &RenderError) -> Reason {
    match error {
        RenderError::InvalidUserConfig { .. } | RenderError::TooLarge { .. } => {
            Reason::InvalidUserConfig
        }
        RenderError::NoMigrationPath(_) => Reason::NoMigrationPath,
        RenderError::GlobalMigration(_) | RenderError::InvalidGlobal { .. } => {
            Reason::InvalidGlobalConfig
        }
    }
}
