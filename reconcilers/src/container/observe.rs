//! Reads everything a plan needs about one user, and no more than it needs.
//!
//! In a no-op pass that is: the cached desired row and the cached listing. The engine is asked about
//! one container only when something happened to it, when it does not run, or when its full
//! verification is due.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::{
    Container, ContainerDetails, ContainerSettings, ContainerState, Containers, HostRules,
    LABEL_RESTART_TOKEN, LABEL_SPEC_DIGEST, Limits, NETWORK, NetworkState,
};
use schema::adapter::{Agent, Readiness};
use schema::condition::Reason;
use schema::config::{Config, PullPolicy, keys};
use schema::container::ContainerRow;
use schema::home::{HomeError, HomeId, HomeLook, HomeState};
use schema::ids::{Timestamp, Uid};
use schema::live::Loss;
use tokio::time::Instant;

use super::liveness::Target;
use super::names::Names;
use super::settings::{self, Inputs, LABEL_CONFIG_DIGEST, LABEL_HOME};
use super::{ContainerError, ContainerReconciler, Evidence};
use crate::drivers::agent_probe::Answer;
use crate::runtime::Purpose;
use crate::shared::probe::ProbeState;
use crate::shared::pulls::PullState;
use crate::shared::view::Observed;

/// Longest time of a readiness check in a pass: a worker waits for it, and an agent that is slower is asked again.
const ANSWER_TIME: Duration = Duration::from_millis(500);
/// The same of a replacement that was ready.
const LAST_ANSWER_TIME: Duration = Duration::from_secs(5);

/// Desired and observed state of one user's container.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// What is desired; `None`: nothing, so whatever is there is an orphan.
    pub row: Option<Arc<ContainerRow>>,
    /// What is there.
    pub world: World,
}

/// What is there.
#[derive(Debug, Clone, PartialEq)]
pub enum World {
    /// The engine could not be asked, or not be used.
    Unavailable(Reason, String),
    /// What it said.
    Seen(Box<Seen>),
}

/// What the engine, the data directory and the configuration say about one user.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// All containers that carry our owner label and the user's uid.
    pub containers: Vec<Container>,
    /// Details of those that were worth a question, by id.
    pub details: BTreeMap<String, ContainerDetails>,
    /// What the container should be; `None` until its image is known, or when it shall not run.
    pub wanted: Option<ContainerSettings>,
    /// The image that the container is, or will be made from, when that is not what is remembered yet.
    pub pin: Option<Pin>,
    /// How the image is got, when it is not there.
    pub source: Source,
    /// How images are got.
    pub pull_policy: PullPolicy,
    /// What became of pulling the user's image.
    pub pull: PullState,
    /// The agents' network; observed only before a container is made.
    pub network: NetworkState,
    /// The user's directory; `None` when it does not matter now.
    pub home: Option<HomeState>,
    /// Which directory lies where the container mounts the user's.
    pub place: Place,
    /// Where the image has the home that is to be copied into the user's directory first, when it is.
    pub seed: Option<String>,
    /// Whether engine and service see the same data directory.
    pub data_dir: ProbeState,
    /// What must keep agents from the host's services first, and does not yet.
    pub restrict: Option<HostRules>,
    /// Reason for which no agent may be started, if it may not be since the host cannot be restricted.
    pub host_open: Option<String>,
    /// The adapter needs a service that runs as root, and this one does not.
    pub needs_root: bool,
    /// Whether the container in use passed its readiness check; `None` when it does not run.
    pub ready: Option<bool>,
    /// Number of questions in a row that its agent has not answered although it was ready, when that is too often.
    pub unanswered: Option<u32>,
    /// Number of starts of the container in use that the engine has failed in a row, when that is too often.
    pub failed_starts: Option<u32>,
    /// For how long it has run without being ready.
    pub waited: Duration,
    /// For how long the engine has been starting it.
    pub starting_for: Duration,
    /// How long a replacement may take to become ready.
    pub readiness_timeout: Duration,
    /// For how long the replacement in use has been ready, while the previous container is kept.
    pub ready_for: Duration,
    /// How long that is at least.
    pub min_ready: Duration,
    /// Evidence that the container in use has ended, or failed as a replacement, when that is new.
    pub end: Option<Evidence>,
    /// Properties that were changed by hand on containers that were made as they should be, by id; known once `wanted` is.
    pub drifts: BTreeMap<String, &'static str>,
    /// Everything was compared in full.
    pub verified: bool,
}

/// What lies at the place of a user's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// It could not be asked: no reason to believe that it is not what it was.
    Unknown,
    /// No directory of the user's.
    Empty,
    /// This directory.
    Holds(HomeId),
}

impl Place {
    fn of(look: &Result<Option<HomeLook>, HomeError>) -> Self {
        match look {
            Ok(Some(look)) => Self::Holds(look.id.clone()),
            Ok(None) | Err(HomeError::Conflict(_)) => Self::Empty,
            Err(_) => Self::Unknown,
        }
    }

    /// The directory.
    pub fn holds(&self) -> Option<&HomeId> {
        match self {
            Self::Holds(home) => Some(home),
            Self::Unknown | Self::Empty => None,
        }
    }
}

/// An image to remember.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Its id on the engine.
    pub image_id: String,
    /// Its repository digest, when it has one.
    pub digest: Option<String>,
}

/// How an image that is not on the engine is got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// By pulling this reference, or this digest: then it is the very image the user had.
    Pull(String),
    /// Not at all; in words, why.
    Nowhere(String),
}

impl Seen {
    /// The container of that name.
    pub fn named(&self, name: &str) -> Option<&Container> {
        self.containers.iter().find(|c| c.name == name)
    }

    /// Whether a container mounts the directory that lies in the place of the user's now.
    pub fn mounts_home(&self, container: &Container) -> bool {
        let mounted = container.labels.get(LABEL_HOME).cloned().map(HomeId::from);
        match &self.place {
            Place::Unknown => true,
            Place::Empty => false,
            Place::Holds(home) => mounted.as_ref() == Some(home),
        }
    }

    /// Whether a container is what it should be.
    pub fn fits(&self, container: &Container, row: &ContainerRow) -> bool {
        let Some(wanted) = &self.wanted else {
            return false;
        };
        let label = |key: &str| container.labels.get(key).map_or("", String::as_str);
        let wanted_digest = wanted
            .labels
            .get(LABEL_SPEC_DIGEST)
            .map_or("", String::as_str);
        label(LABEL_SPEC_DIGEST) == wanted_digest
            && label(LABEL_RESTART_TOKEN) == row.restart_token
            && label(LABEL_CONFIG_DIGEST) == row.files.restart_digest.as_deref().unwrap_or("")
            && self.mounts_home(container)
            && self.drift(container).is_none()
    }

    /// What somebody changed by hand on a container that was made as it should be.
    pub fn drift(&self, container: &Container) -> Option<&'static str> {
        self.drifts.get(&container.id).copied()
    }

    /// Sets what the container should be, and compares the containers that are there with it.
    fn want(&mut self, wanted: Option<ContainerSettings>, engine: &dyn Containers, limits: Limits) {
        self.wanted = wanted;
        self.drifts.clear();
        let Some(wanted) = &self.wanted else {
            return;
        };
        for container in &self.containers {
            let details = self.details.get(&container.id);
            if let Some(what) = engine.drift(container, details, wanted, limits) {
                self.drifts.insert(container.id.clone(), what);
            }
        }
    }
}

/// The repository digest of the image that a user is pinned to.
fn pinned_digest(row: &ContainerRow) -> Option<&str> {
    match &row.image_id {
        Some(_) => row.image_digest.as_deref(),
        None => row.facts.image_digest.as_deref(),
    }
}

/// What a rollout gave, when it is not what is remembered.
fn pin_of_rollout(row: &ContainerRow) -> Option<Pin> {
    let image_id = row.image_id.clone()?;
    let remembered = row.facts.image_ref.as_ref() == Some(&row.image_ref)
        && row.facts.image_id.as_ref() == Some(&image_id);
    (!remembered).then(|| Pin {
        image_id,
        digest: row.image_digest.clone(),
    })
}

/// When each container was last compared in full.
#[derive(Debug)]
pub(in crate::container) struct Verified {
    every: Duration,
    /// Another one in each run of the service, so that one which restarts often still gets to all.
    salt: Timestamp,
    due: Mutex<HashMap<Uid, Instant>>,
}

impl Verified {
    pub(super) fn new(every: Duration, salt: Timestamp) -> Self {
        Self {
            every,
            salt,
            due: Mutex::default(),
        }
    }

    /// Whether the full comparison is due. The first ones are spread evenly over the period.
    fn is_due(&self, uid: &Uid) -> bool {
        let now = Instant::now();
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let at = *due.entry(uid.clone()).or_insert_with(|| {
            let mut hasher = DefaultHasher::new();
            hasher.write_i64(self.salt.as_millis());
            hasher.write(uid.as_str().as_bytes());
            let period = u64::try_from(self.every.as_millis())
                .unwrap_or(u64::MAX)
                .max(1);
            now + Duration::from_millis(hasher.finish() % period)
        });
        at <= now
    }

    pub(super) fn done(&self, uid: &Uid) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.insert(uid.clone(), Instant::now() + self.every);
    }

    pub(super) fn forget_all(&self) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.clear();
    }

    /// An operator asks for it.
    pub(super) fn ask(&self, uid: &Uid) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.insert(uid.clone(), Instant::now());
    }

    /// The same for all.
    pub(super) fn ask_all(&self) {
        let now = Instant::now();
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.values_mut().for_each(|due| *due = now);
    }

    fn forget(&self, uid: &Uid) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.remove(uid);
    }
}

impl ContainerReconciler {
    /// Desired keys and owned keys: one scan of the database, one listing of the engine.
    pub(super) async fn observe_keys(&self) -> Result<Vec<Uid>, ContainerError> {
        let mut keys: BTreeSet<Uid> = self.desired.keys().await?.into_iter().collect();
        // With an engine that cannot be read, desired keys are still observed: their conditions
        // say so. Nothing is removed for what was not listed.
        if self.shared.view.refresh().await.is_ok() {
            keys.extend(self.shared.view.uids());
        }
        Ok(keys.into_iter().collect())
    }

    pub(super) async fn observe_one(
        &self,
        uid: &Uid,
        purpose: Purpose,
    ) -> Result<Option<Snapshot>, ContainerError> {
        let row = self.read_row(uid).await?;
        let observed = match purpose {
            Purpose::Pass => self.shared.view.observe(uid).await?,
            Purpose::DryRun => self.shared.view.peek(uid).await?,
        };
        let (containers, changed) = match observed {
            Observed::Unavailable(reason, why) => {
                return Ok(row.map(|row| Snapshot {
                    row: Some(row),
                    world: World::Unavailable(reason, why),
                }));
            }
            Observed::Containers {
                containers,
                changed,
            } => (containers, changed),
        };
        if row.is_none() && containers.is_empty() {
            if purpose == Purpose::Pass {
                self.liveness.forget(uid);
                self.verified.forget(uid);
                self.waiting.forget(uid);
                self.ready.forget(uid);
                self.failed_starts.forget(uid);
            }
            return Ok(None);
        }
        let listed = (containers, changed);
        let seen = self.see(uid, row.as_deref(), listed, purpose).await;
        let seen = match seen {
            // Something vanished between the listing and the question: observe again.
            Err(ContainerError::Vanished) => {
                self.shared.view.mark_stale(uid);
                return Err(ContainerError::Vanished);
            }
            Err(ContainerError::Engine(error)) => {
                self.shared.view.note_error(&error);
                self.shared.view.mark_stale(uid);
                return Err(ContainerError::Engine(error));
            }
            other => other?,
        };
        if self.is_behind(row.as_deref()).await {
            return Err(ContainerError::Reconfigured);
        }
        Ok(Some(Snapshot {
            row,
            world: World::Seen(Box::new(seen)),
        }))
    }

    /// The row, which is no older than the configuration that it is compared with.
    async fn read_row(&self, uid: &Uid) -> Result<Option<Arc<ContainerRow>>, ContainerError> {
        let row = self.desired.row(uid).await?;
        match self.is_behind(row.as_deref()).await {
            true => Ok(self.desired.read(uid).await?),
            false => Ok(row),
        }
    }

    async fn is_behind(&self, row: Option<&ContainerRow>) -> bool {
        match row {
            Some(row) => {
                let (config, adapter) = (row.config_generation, row.adapter_generation);
                self.shared.is_newer(config, adapter).await
            }
            None => false,
        }
    }

    async fn see(
        &self,
        uid: &Uid,
        row: Option<&ContainerRow>,
        (containers, changed): (Vec<Container>, bool),
        purpose: Purpose,
    ) -> Result<Seen, ContainerError> {
        let mut seen = Seen {
            containers,
            details: BTreeMap::new(),
            wanted: None,
            pin: None,
            source: Source::Pull(String::new()),
            pull_policy: PullPolicy::Missing,
            pull: PullState::Idle,
            network: NetworkState::Missing,
            home: None,
            place: Place::Unknown,
            seed: None,
            data_dir: self.shared.probe.state(),
            restrict: None,
            host_open: None,
            needs_root: false,
            ready: None,
            unanswered: None,
            failed_starts: None,
            waited: Duration::ZERO,
            starting_for: Duration::ZERO,
            readiness_timeout: self.shared.options.readiness_timeout,
            ready_for: Duration::ZERO,
            min_ready: Duration::ZERO,
            end: None,
            drifts: BTreeMap::new(),
            verified: false,
        };
        let Some(row) = row.filter(|row| row.deleted_at.is_none()) else {
            return Ok(seen);
        };
        if !row.desired_running() {
            self.liveness.forget(uid);
            self.see_image_of_stopped(&mut seen, row, purpose).await?;
            return Ok(seen);
        }
        let config = self.shared.config.at(row.config_generation).await?;
        let agent = self.shared.adapters.agent(row.adapter_generation).await?;
        seen.needs_root = agent.needs_root(self.shared.options.service_user);
        seen.pull_policy = config.get(&keys::image::PULL_POLICY);
        seen.source = Source::Pull(row.image_ref.clone());
        if let Some(limit) = row.health_timeout {
            seen.readiness_timeout = limit;
        }
        seen.min_ready = row
            .min_ready
            .unwrap_or_else(|| config.get(&keys::container::MIN_READY).unwrap_or_default());
        let names = Names::of(&row.name, uid);
        let look = self.shared.data_dir.look(&row.name, uid, &[]).await;
        seen.place = Place::of(&look);
        self.see_details(&mut seen, row, &names, changed).await?;
        self.see_image(&mut seen, row, &names, (&config, &agent), look)
            .await?;
        self.see_readiness(&mut seen, row, &names, &agent).await?;
        // Also of one that was stopped for it: that is why it ended.
        seen.unanswered = seen
            .named(&names.base)
            .and_then(|base| self.liveness.unanswered(uid, &base.id));
        seen.failed_starts = seen
            .named(&names.base)
            .and_then(|base| self.failed_starts.too_many(uid, &base.id));
        if purpose == Purpose::Pass {
            // A held agent is asked as it was.
            if row.held_by.is_none() || !self.liveness.is_watched(uid) {
                self.watch_agent(&seen, row, &names, (&config, &agent));
            }
            seen.end = self.see_end(&seen, row, &names, &agent).await?;
        }
        Ok(seen)
    }

    /// Asks about containers that do not simply go on running.
    async fn see_details(
        &self,
        seen: &mut Seen,
        row: &ContainerRow,
        names: &Names,
        changed: bool,
    ) -> Result<(), ContainerError> {
        let verify = self.verified.is_due(&row.uid);
        for container in &mut seen.containers {
            let in_use = container.name == names.base;
            let settled = container.state == ContainerState::Running
                && in_use
                && row.facts.engine_id.as_deref() == Some(&container.id)
                && row.facts.ready_at.is_some();
            if settled && !changed && !verify {
                continue;
            }
            let mut details = self
                .shared
                .compute
                .containers
                .inspect(&container.id)
                .await?
                .ok_or(ContainerError::Vanished)?;
            if details.container.state != container.state {
                // The engine reports of an end before its listing shows it; what was listed is not to
                // be remembered.
                container.clone_from(&details.container);
                self.shared.view.mark_stale(&row.uid);
            }
            if container.state == ContainerState::Exited
                && !details.oom_killed
                && let (Some(begun), Some(ended)) = (details.started_at, details.finished_at)
                && self.shared.view.has_stopped(begun, ended)
            {
                details.loss = Some(Loss::EngineStopped);
            }
            seen.details.insert(container.id.clone(), details);
        }
        seen.verified = verify;
        Ok(())
    }

    /// Observes which rules have to be there before a container starts and are not known to be, and whether one may start.
    fn see_restriction(&self, seen: &mut Seen, config: &Config) {
        let network = self.shared.view.network();
        let rules = self.shared.host_rules(config, network.as_ref());
        let access = &self.shared.host_access;
        seen.host_open = rules.as_ref().and_then(|rules| access.refusal(rules));
        seen.restrict = rules.filter(|rules| access.needs(rules));
    }

    /// Finds out which image the container is made from, and what stands in the way of making it.
    async fn see_image(
        &self,
        seen: &mut Seen,
        row: &ContainerRow,
        names: &Names,
        (config, agent): (&Config, &Agent),
        look: Result<Option<HomeLook>, HomeError>,
    ) -> Result<(), ContainerError> {
        let home = seen.place.holds().cloned();
        let homes = &self.shared.compute.homes;
        let (engine, limits) = (&*self.shared.compute.containers, self.shared.view.limits());
        let settings_of = |image_id: &str| {
            settings::container_settings(
                row,
                image_id,
                &Inputs {
                    config,
                    agent,
                    owner: self.shared.view.owner(),
                    mount: homes.bind_home(&row.name, &agent.home),
                    service_user: self.shared.options.service_user,
                    home: home.as_ref(),
                    probes: self.shared.compute.probes,
                    overlay: self.shared.compute.overlay.as_deref(),
                },
            )
        };
        let pinned = row.pinned_image();
        if let Some(image_id) = pinned {
            seen.want(Some(settings_of(image_id)), engine, limits);
            if let Some(base) = seen.named(&names.base)
                && seen.fits(base, row)
            {
                if base.state != ContainerState::Running {
                    let newest = self.shared.config.newest().await?;
                    self.see_restriction(seen, &newest);
                }
                return Ok(());
            }
        }
        // From here on a container is going to be made, and it is said what it mounts.
        if seen.place == Place::Unknown {
            look?;
        }
        seen.home = Some(self.home_state(row, agent).await?);
        if agent.seed_home {
            let own = [agent.config_file.clone(), agent.security_file.clone()];
            let data_dir = &self.shared.data_dir;
            // Where it cannot be used, that is said first.
            if seen.home == Some(HomeState::Ready)
                && data_dir.needs_seed(&row.name, &row.uid, &own).await?
            {
                seen.seed = Some(agent.home.clone());
            }
        }
        // The network's own configuration is no input of containers, so theirs may be older.
        let newest = self.shared.config.newest().await?;
        let network = self.shared.view.network();
        let wanted = self.shared.wanted_network(&newest).await?;
        seen.network = self.shared.network_state(network.as_ref(), &wanted);
        self.see_restriction(seen, &newest);
        if let Some(image_id) = pinned {
            let digest = pinned_digest(row);
            if self.shared.compute.images.image(image_id).await?.is_some() {
                seen.pin = pin_of_rollout(row);
                return Ok(());
            }
            seen.want(None, engine, limits);
            match digest {
                // Never silently another one: what was pulled by digest has the same id, or is not it.
                Some(digest) if self.shared.pulls.recently_done(digest) => {
                    seen.source = Source::Nowhere(format!(
                        "the image {image_id} is gone from the engine, and {digest} is another one there"
                    ));
                    return Ok(());
                }
                Some(digest) => {
                    seen.pull = self.shared.pulls.state(digest);
                    seen.source = Source::Pull(digest.to_owned());
                    return Ok(());
                }
                None if row.image_id.is_some() => {
                    seen.source = Source::Nowhere(format!(
                        "the image {image_id} ({}) is gone from the engine, and it came from no registry",
                        row.image_ref
                    ));
                    return Ok(());
                }
                // What was only ever on this engine: whatever its reference means now.
                None => {}
            }
        }
        seen.pull = self.shared.pulls.state(&row.image_ref);
        seen.want(None, engine, limits);
        let is_fresh = self.shared.pulls.recently_done(&row.image_ref);
        let wants_fresh = seen.pull_policy == PullPolicy::Always && !is_fresh;
        // An agent is replaced once its next image is where it starts; one that does not run waits for its start instead.
        let is_needed_local = !is_fresh && seen.containers.iter().any(|it| it.state.is_up());
        if !wants_fresh
            && let Some(image) = self.known_image(&row.image_ref, is_needed_local).await?
        {
            seen.want(Some(settings_of(&image.image_id)), engine, limits);
            seen.pin = Some(image);
        }
        Ok(())
    }

    async fn home_state(
        &self,
        row: &ContainerRow,
        agent: &Agent,
    ) -> Result<HomeState, ContainerError> {
        let owner = agent.home_owner(self.shared.options.service_user);
        Ok(self
            .shared
            .data_dir
            .state(&row.name, &row.uid, owner)
            .await?)
    }

    async fn see_readiness(
        &self,
        seen: &mut Seen,
        row: &ContainerRow,
        names: &Names,
        agent: &Agent,
    ) -> Result<(), ContainerError> {
        let Some(base) = seen.named(&names.base) else {
            return Ok(());
        };
        let details = seen.details.get(&base.id);
        match base.state {
            ContainerState::Running => {}
            ContainerState::Starting => {
                let begun = details.and_then(|details| details.started_at);
                let begun = begun.unwrap_or(base.created_at);
                seen.starting_for = self.waiting.since(row.uid.clone(), begun);
                return Ok(());
            }
            _ => return Ok(()),
        }
        let facts = &row.facts;
        let known_ready = facts.engine_id.as_deref() == Some(&base.id)
            && facts.ready_at.is_some()
            && details.is_none_or(|details| details.started_at == facts.started_at);
        let is_replacement = seen.named(&names.prev).is_some();
        // As long as the previous container is kept, one that was ready is asked again.
        let still_ready = known_ready && {
            let by_http = matches!(agent.readiness, Readiness::Http { .. });
            let is_asked = is_replacement && (by_http || base.ready.is_some());
            !is_asked || self.passes(row, agent, base, details).await?
        };
        let ready = still_ready
            || row.debug
            || (!known_ready && self.passes(row, agent, base, details).await?);
        let ready_for = facts.ready_at.filter(|_| still_ready && is_replacement);
        let ready_for = match ready_for {
            Some(ready_at) => self.ready.since(row.uid.clone(), ready_at),
            None => {
                self.ready.forget(&row.uid);
                Duration::ZERO
            }
        };
        let started_at = details.map_or(facts.started_at, |details| details.started_at);
        if ready {
            self.waiting.forget(&row.uid);
        } else if let Some(started_at) = started_at {
            seen.waited = self.waiting.since(row.uid.clone(), started_at);
        }
        (seen.ready, seen.ready_for) = (Some(ready), ready_for);
        Ok(())
    }

    /// Has an agent that is ready asked from now on, if it answers over HTTP and is not debugged.
    fn watch_agent(
        &self,
        seen: &Seen,
        row: &ContainerRow,
        names: &Names,
        (config, agent): (&Config, &Agent),
    ) {
        let target = || {
            let Readiness::Http { port, path } = &agent.readiness else {
                return None;
            };
            let base = seen.named(&names.base)?;
            let interval = config.get(&keys::container::PROBE_INTERVAL)?;
            let is_asked = seen.ready == Some(true) && !row.debug;
            is_asked.then_some(())?;
            Some(Target {
                engine_id: base.id.clone(),
                address: base.networks.get(NETWORK).cloned().flatten()?,
                port: *port,
                path: path.clone(),
                interval,
                threshold: u32::try_from(config.get(&keys::container::PROBE_FAILURES))
                    .unwrap_or(u32::MAX),
            })
        };
        match target() {
            Some(target) => self.liveness.watch(&row.uid, target),
            None => self.liveness.forget(&row.uid),
        }
    }

    /// Whether the adapter's readiness check passes now.
    async fn passes(
        &self,
        row: &ContainerRow,
        agent: &Agent,
        base: &Container,
        details: Option<&ContainerDetails>,
    ) -> Result<bool, ContainerError> {
        if let Some(ready) = base.ready {
            return Ok(ready);
        }
        match &agent.readiness {
            Readiness::Running => Ok(true),
            Readiness::Http { port, path } => {
                let networks = details.map_or(&base.networks, |d| &d.container.networks);
                match networks.get(NETWORK).cloned().flatten() {
                    Some(address) => {
                        let agents = &self.shared.agents;
                        // One that was ready goes by this answer alone.
                        let facts = &row.facts;
                        let was_ready = facts.engine_id.as_deref() == Some(&base.id)
                            && facts.ready_at.is_some();
                        let limit = match was_ready {
                            true => LAST_ANSWER_TIME,
                            false => ANSWER_TIME,
                        };
                        Ok(match agents.ask(&address, *port, path, limit).await {
                            Answer::Ready => true,
                            Answer::NotReady => false,
                            Answer::Unknown => was_ready,
                        })
                    }
                    None => Ok(false),
                }
            }
            // The user's directory outlives containers: only a file of this run counts.
            Readiness::File(file) => {
                let Some(started_at) = details.and_then(|d| d.started_at) else {
                    return Ok(false);
                };
                let path = agent.in_home(file);
                let data_dir = &self.shared.data_dir;
                let modified = data_dir.file_modified(&row.name, &row.uid, &path).await?;
                Ok(modified.is_some_and(|at| at >= started_at))
            }
        }
    }
}
