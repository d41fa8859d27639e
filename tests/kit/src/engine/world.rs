//! The state of the fake and its rules, without time or faults of their own.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use bytes::Bytes;
use engine::{
    Container, ContainerDetails, ContainerSettings, ContainerState, EngineError, EngineEvent,
    Image, LABEL_OWNER, LABEL_UID,
};
use schema::ids::Timestamp;
use tokio::time::Instant;

use super::networks::FakeNetwork;
use super::script::Run;

/// Events that are kept for slow readers.
const EVENT_MEMORY: usize = 1 << 16;
/// One container.
pub(super) struct FakeContainer {
    pub(super) details: ContainerDetails,
    pub(super) files: BTreeMap<String, Vec<u8>>,
    pub(super) logs: Vec<(Timestamp, bool, Bytes)>,
    pub(super) run: Run,
    pub(super) started: Option<Instant>,
    /// Time at which its agent first answered in this run.
    pub(super) answered: Option<Instant>,
    /// Counts starts, so that the end of an earlier run does not end a later one.
    pub(super) runs: u64,
}

impl FakeContainer {
    pub(super) fn runs(&self) -> bool {
        matches!(
            self.details.container.state,
            ContainerState::Starting | ContainerState::Running | ContainerState::Paused
        )
    }
}

/// An event with the owner it is for.
pub(super) struct OwnedEvent {
    pub(super) owner: String,
    pub(super) event: EngineEvent,
}

/// Everything the fake knows.
#[derive(Default)]
pub(super) struct World {
    pub(super) containers: BTreeMap<String, FakeContainer>,
    names: BTreeMap<String, String>,
    /// Ids by the user they are labelled with: somebody may have very many, and look for one.
    users: BTreeMap<String, BTreeSet<String>>,
    pub(super) networks: BTreeMap<String, FakeNetwork>,
    pub(super) images: BTreeMap<String, Image>,
    pub(super) registry: BTreeMap<String, Image>,
    ids: u64,
    due: BTreeMap<(Instant, u64), (String, u64)>,
    events: VecDeque<OwnedEvent>,
    forgotten: u64,
    /// Raised to end all event streams.
    pub(super) cut: u64,
    /// Event streams say nothing, and forget what they would have said.
    pub(super) silent: bool,
    /// What listings show instead of what is.
    pub(super) listed: Option<Vec<Container>>,
    pub(super) root_dir: Option<PathBuf>,
}

impl World {
    pub(super) fn fresh_id(&mut self) -> String {
        self.ids += 1;
        // As random as real ones look, so that nobody relies on an order.
        format!(
            "{:016x}{:048x}",
            self.ids.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            self.ids
        )
    }

    pub(super) fn find(&self, id_or_name: &str) -> Option<&FakeContainer> {
        let id = self
            .names
            .get(id_or_name)
            .map_or(id_or_name, String::as_str);
        self.containers.get(id)
    }

    pub(super) fn find_mut(&mut self, id_or_name: &str) -> Option<&mut FakeContainer> {
        let id = self
            .names
            .get(id_or_name)
            .map_or(id_or_name, String::as_str);
        self.containers.get_mut(id)
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Result<&mut FakeContainer, EngineError> {
        self.find_mut(id)
            .ok_or_else(|| EngineError::NotFound(format!("No such container: {id}")))
    }

    pub(super) fn containers(&self) -> impl Iterator<Item = &FakeContainer> {
        self.containers.values()
    }

    /// What a listing shows of an owner's containers, or of those of one user.
    pub(super) fn listing(&self, owner: &str, uid: Option<&str>) -> Vec<Container> {
        let wanted = |container: &&Container| {
            let label = |name| container.labels.get(name).map(String::as_str);
            label(LABEL_OWNER) == Some(owner) && (uid.is_none() || label(LABEL_UID) == uid)
        };
        if let Some(listed) = &self.listed {
            return listed.iter().filter(wanted).cloned().collect();
        }
        let now: Box<dyn Iterator<Item = &FakeContainer>> = match uid {
            None => Box::new(self.containers()),
            Some(uid) => {
                let ids = self.users.get(uid).into_iter().flatten();
                Box::new(ids.filter_map(|id| self.containers.get(id)))
            }
        };
        let now = now.map(|c| &c.details.container);
        now.filter(wanted).cloned().collect()
    }

    // --- events

    /// The event at a reader's place, and the reader's next place; `Err` when it was forgotten.
    pub(super) fn event_at(&self, place: u64) -> Result<Option<&OwnedEvent>, ()> {
        match place.checked_sub(self.forgotten) {
            None => Err(()),
            Some(index) => Ok(usize::try_from(index)
                .ok()
                .and_then(|index| self.events.get(index))),
        }
    }

    pub(super) fn event_end(&self) -> u64 {
        self.forgotten + self.events.len() as u64
    }

    fn emit(&mut self, id: &str, action: &str) {
        let Some(container) = self.containers.get(id) else {
            return;
        };
        let labels = &container.details.container.labels;
        if let (Some(owner), Some(uid)) = (labels.get(LABEL_OWNER), labels.get(LABEL_UID)) {
            let event = OwnedEvent {
                owner: owner.clone(),
                event: EngineEvent {
                    uid: uid.clone(),
                    action: action.to_owned(),
                },
            };
            self.events.push_back(event);
            if self.events.len() > EVENT_MEMORY {
                self.events.pop_front();
                self.forgotten += 1;
            }
        }
    }

    // --- time

    /// When the next process ends by itself.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.keys().next().map(|(when, _)| *when)
    }

    /// Lets end what should have ended by now; tells whether there was any.
    pub(super) fn settle(&mut self, now: Instant) -> bool {
        let mut changed = false;
        while let Some(entry) = self.due.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let ((entry_at, _), (id, runs)) = entry.remove_entry();
            let Some(container) = self.containers.get(&id) else {
                continue;
            };
            if container.runs != runs || !container.runs() {
                continue;
            }
            changed = true;
            if container.details.container.state == ContainerState::Starting {
                self.begin(&id, entry_at);
                continue;
            }
            let (after, code) = container.run.ends.unwrap_or_default();
            let oom = container.run.oom_killed;
            let at = container.details.started_at.unwrap_or_default().plus(after);
            self.end(&id, at, code, oom);
        }
        changed
    }

    /// Lets the process of a container that was starting run.
    pub(super) fn begin(&mut self, id: &str, at: Instant) {
        let Some(container) = self.containers.get_mut(id) else {
            return;
        };
        let delay = container.run.starts_after.as_ref().map(|(delay, _)| *delay);
        let details = &mut container.details;
        details.container.state = ContainerState::Running;
        details.container.waiting = None;
        let asked_at = details.started_at.unwrap_or_default();
        details.started_at = Some(asked_at.plus(delay.unwrap_or_default()));
        container.started = Some(at);
        if let Some((after, _)) = container.run.ends {
            self.due.insert(
                (at + after, container.runs + (self.ids << 20)),
                (id.to_owned(), container.runs),
            );
            self.ids += 1;
        }
        self.emit(id, "start");
    }

    // --- containers

    pub(super) fn create(
        &mut self,
        name: &str,
        settings: &ContainerSettings,
        now: Timestamp,
    ) -> Result<String, EngineError> {
        if !is_container_name(name) {
            return Err(EngineError::Refused(format!(
                "Invalid container name ({name}), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed"
            )));
        }
        let image = self
            .image(&settings.image)
            .ok_or_else(|| EngineError::NotFound(format!("No such image: {}", settings.image)))?
            .id
            .clone();
        self.check_name(name)?;
        let id = self.fresh_id();
        let mut settings = settings.clone();
        settings.image = image;
        settings
            .command
            .get_or_insert_with(|| vec!["/bin/agent".to_owned()]);
        settings
            .hostname
            .get_or_insert_with(|| id.get(..12).unwrap_or_default().to_owned());
        settings
            .environment
            .entry("PATH".to_owned())
            .or_insert_with(|| "/bin".to_owned());
        settings.binds.sort_by(|a, b| a.target.cmp(&b.target));
        settings.capabilities.sort();
        let container = Container {
            id: id.clone(),
            name: name.to_owned(),
            labels: settings.labels.clone(),
            state: ContainerState::Created,
            image_id: settings.image.clone(),
            created_at: Timestamp::from_secs(now.as_secs()),
            networks: BTreeMap::from([(settings.network.clone(), None)]),
            ready: None,
            waiting: None,
        };
        let details = ContainerDetails {
            container,
            started_at: None,
            finished_at: None,
            exit_code: None,
            oom_killed: false,
            loss: None,
            error: String::new(),
            settings,
            deviations: Vec::new(),
        };
        self.names.insert(name.to_owned(), id.clone());
        if let Some(uid) = details.container.labels.get(LABEL_UID) {
            self.users
                .entry(uid.clone())
                .or_default()
                .insert(id.clone());
        }
        self.containers.insert(
            id.clone(),
            FakeContainer {
                details,
                files: BTreeMap::new(),
                logs: Vec::new(),
                run: Run::default(),
                started: None,
                answered: None,
                runs: 0,
            },
        );
        self.emit(&id, "create");
        Ok(id)
    }

    fn check_name(&self, name: &str) -> Result<(), EngineError> {
        match self.names.get(name) {
            Some(id) => Err(EngineError::NameTaken(format!(
                "Conflict. The container name \"/{name}\" is already in use by container \"{id}\"."
            ))),
            None => Ok(()),
        }
    }

    /// Reports that the agent that runs at an address hangs, which it does some time after it has first answered; `None`: none
    /// runs there.
    pub(super) fn agent_at(&mut self, address: &str, now: Instant) -> Option<bool> {
        let mut containers = self.containers.values_mut();
        let found = containers.find(|container| {
            let mut networks = container.details.container.networks.values().flatten();
            container.details.container.state == ContainerState::Running
                && networks.any(|own| own == address)
        })?;
        let answered = *found.answered.get_or_insert(now);
        let hangs_after = found.run.hangs_after;
        Some(hangs_after.is_some_and(|after| now >= answered + after))
    }

    pub(super) fn start(
        &mut self,
        id: &str,
        now: Timestamp,
        instant: Instant,
        hook: impl FnOnce(&ContainerDetails) -> Run,
    ) -> Result<(), EngineError> {
        let container = self.get_mut(id)?;
        match container.details.container.state {
            ContainerState::Starting | ContainerState::Running => return Ok(()),
            ContainerState::Paused => {
                return Err(EngineError::Conflict(
                    "cannot start a paused container, try unpause instead".to_owned(),
                ));
            }
            ContainerState::Removing | ContainerState::Dead => {
                return Err(EngineError::Conflict(
                    "container is marked for removal and cannot be started".to_owned(),
                ));
            }
            ContainerState::Created | ContainerState::Exited | ContainerState::Restarting => {}
        }
        let id = container.details.container.id.clone();
        let run = hook(&container.details);
        let wanted: Vec<String> = container
            .details
            .container
            .networks
            .keys()
            .cloned()
            .collect();
        let started = match &run.refused {
            Some(words) => Err(EngineError::Refused(words.clone())),
            None => self.attach(&id, &wanted),
        };
        let Some(container) = self.containers.get_mut(&id) else {
            return Ok(());
        };
        if let Err(error) = started {
            container.details.error = error.to_string();
            return Err(error);
        }
        let waits = run.starts_after.clone();
        let due = match (&waits, run.ends) {
            (Some((after, _)), _) => Some(*after),
            (None, Some((after, _))) => Some(after),
            (None, None) => None,
        };
        if let Some(after) = due {
            let key = (instant + after, container.runs + 1 + (self.ids << 20));
            self.due.insert(key, (id.clone(), container.runs + 1));
        }
        container.runs += 1;
        container.run = run;
        container.started = Some(instant);
        container.answered = None;
        let details = &mut container.details;
        details.container.state = match waits {
            Some(_) => ContainerState::Starting,
            None => ContainerState::Running,
        };
        details.container.waiting = waits.map(|(_, waiting)| waiting);
        details.started_at = Some(now);
        details.exit_code = None;
        details.oom_killed = false;
        details.loss = None;
        details.error = String::new();
        self.ids += 1;
        self.emit(&id, "start");
        Ok(())
    }

    /// Ends a running container.
    pub(super) fn end(&mut self, id: &str, at: Timestamp, code: i64, oom: bool) {
        let Some(container) = self.containers.get_mut(id).filter(|c| c.runs()) else {
            return;
        };
        let details = &mut container.details;
        details.container.state = ContainerState::Exited;
        details.finished_at = Some(at);
        details.exit_code = Some(code);
        details.oom_killed = oom;
        details.container.waiting = None;
        self.release(id);
        if oom {
            self.emit(id, "oom");
        }
        self.emit(id, "die");
    }

    pub(super) fn remove(&mut self, id: &str, now: Timestamp) {
        let Some(container) = self.find(id) else {
            return;
        };
        // Its machine does not answer: it stays until the machine is gone.
        if container.details.container.state == ContainerState::Removing {
            return;
        }
        let id = container.details.container.id.clone();
        let name = container.details.container.name.clone();
        let uid = container.details.container.labels.get(LABEL_UID).cloned();
        self.end(&id, now, 137, false);
        self.emit(&id, "destroy");
        self.names.remove(&name);
        if let Some(ids) = uid.and_then(|uid| self.users.get_mut(&uid)) {
            ids.remove(&id);
        }
        self.containers.remove(&id);
    }

    pub(super) fn rename(&mut self, id: &str, name: &str) -> Result<(), EngineError> {
        let container = self.get_mut(id)?;
        let id = container.details.container.id.clone();
        let old = container.details.container.name.clone();
        if old == name {
            return Ok(());
        }
        if !is_container_name(name) {
            return Err(EngineError::Refused(format!(
                "Invalid container name ({name}), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed"
            )));
        }
        self.check_name(name)?;
        self.get_mut(&id)?.details.container.name = name.to_owned();
        self.names.remove(&old);
        self.names.insert(name.to_owned(), id.clone());
        self.emit(&id, "rename");
        Ok(())
    }

    pub(super) fn notice(&mut self, id: &str, action: &str) {
        self.emit(id, action);
    }
}

fn is_container_name(name: &str) -> bool {
    name.len() >= 2
        && name
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}
