//! Templates and Pods of all containers, as two watches report them.
//!
//! Whole objects are never kept: of each a thousandth of a MiB remains. Every change of a container is told to readers of
//! [`Cache::subscribe_changes`]; nothing is lost when a watch breaks, since what a new listing shows is compared with what was known.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::{Container, ContainerState, EngineEvent, LABEL_OWNER, LABEL_UID};
use schema::ids::Timestamp;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::reason::Progress;
use super::run::Run;
use super::state::{self, PodState, Template};

/// Time without a sign of life after which a watch is not believed. The server sends one each minute.
pub(crate) const STALE: Duration = Duration::from_secs(150);
/// Time for which a verb waits until the watches have shown its effect.
const ECHO: Duration = Duration::from_secs(2);
/// Changes that a slow reader may be behind.
const BACKLOG: usize = 16 * 1024;

/// One of the two watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Templates,
    Pods,
}

/// An object, or what is left of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Object {
    Template(Box<Template>),
    Pod(Box<PodState>),
}

impl Object {
    /// Uid of the template that it is, or belongs to.
    fn key(&self) -> &str {
        match self {
            Self::Template(template) => &template.id.uid,
            Self::Pod(pod) => &pod.template,
        }
    }
}

/// A change of an owned container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) owner: String,
    pub(crate) event: EngineEvent,
}

/// The end of a run, as the watch of Pods has shown it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ended {
    /// Uid of the template.
    pub(crate) template: String,
    pub(crate) run: Run,
}

#[derive(Debug, Default)]
struct World {
    /// By uid.
    templates: HashMap<String, Template>,
    /// By the uid of their template; all Pods of a template have one name, so there is one at a time.
    pods: HashMap<String, PodState>,
    /// The node of the last Pod, by the uid of its template.
    nodes: HashMap<String, String>,
    /// Last sign of life of each watch, once it has listed everything.
    heard: [Option<Instant>; 2],
    /// Version up to which each watch has reported.
    revision: [u64; 2],
}

/// See the [module](self).
pub(crate) struct Cache {
    world: Mutex<World>,
    /// Ends of runs that their templates do not tell of yet, by the uid of the template.
    unnoted_ends: Mutex<HashMap<String, Run>>,
    changes: broadcast::Sender<Change>,
    /// Rises with each change.
    turns: watch::Sender<u64>,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            world: Mutex::default(),
            unnoted_ends: Mutex::default(),
            #[expect(
                clippy::disallowed_methods,
                reason = "holds `BACKLOG` changes, the oldest are dropped"
            )]
            changes: broadcast::Sender::new(BACKLOG),
            turns: watch::Sender::new(0),
        }
    }
}

impl Cache {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unnoted_ends(&self) -> MutexGuard<'_, HashMap<String, Run>> {
        self.unnoted_ends
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the end of a run until its template tells of it.
    pub(crate) fn keep_end(&self, template: &str, run: Run) {
        self.unnoted_ends().insert(template.to_owned(), run);
    }

    /// Drops what [`Cache::keep_end`] has kept.
    pub(crate) fn drop_end(&self, template: &str) {
        self.unnoted_ends().remove(template);
    }

    /// The end of a template's last run, as far as the template does not tell of it yet.
    pub(crate) fn kept_end(&self, template: &str) -> Option<Run> {
        self.unnoted_ends().get(template).cloned()
    }

    /// All containers; `None` while the watches have not listed everything, or have been silent for too long.
    pub(crate) fn containers(&self, now: Timestamp) -> Option<Vec<Container>> {
        let world = self.world();
        if !world.is_fresh() {
            return None;
        }
        let containers = world
            .templates
            .iter()
            .map(|(uid, template)| state::container(template, world.pods.get(uid), now));
        Some(containers.collect())
    }

    /// Images that containers of an owner are made from, and the nodes whose Pods have them; an image may be on none.
    pub(crate) fn images(&self, owner: &str) -> BTreeMap<String, BTreeSet<String>> {
        let world = self.world();
        let mut images: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (uid, template) in &world.templates {
            if template.labels.get(LABEL_OWNER).map(String::as_str) != Some(owner) {
                continue;
            }
            let nodes = images.entry(template.image.clone()).or_default();
            // The node of an agent that runs, or has run, has its image.
            let pod = world
                .pods
                .get(uid)
                .filter(|pod| matches!(pod.progress, Progress::Running) || pod.by_itself);
            nodes.extend(pod.map(|pod| pod.node.clone()));
        }
        images
    }

    /// Nodes on which agents of an owner run, or are about to; `None` under the same conditions as of
    /// [`containers`](Self::containers).
    pub(crate) fn nodes(&self, owner: &str) -> Option<BTreeSet<String>> {
        let world = self.world();
        if !world.is_fresh() {
            return None;
        }
        let nodes = world.templates.iter().filter_map(|(uid, template)| {
            let is_owned = template.labels.get(LABEL_OWNER).map(String::as_str) == Some(owner);
            let pod = world.pods.get(uid).filter(|_| is_owned)?;
            let is_up = !pod.is_ended() && pod.gone_by.is_none() && !pod.node.is_empty();
            is_up.then(|| pod.node.clone())
        });
        Some(nodes.collect())
    }

    /// The node on which the agent of a template ran last, or else that of another template of its user, as far as a Pod was seen.
    pub(crate) fn last_node(&self, template: &str, user: &str) -> Option<String> {
        let world = self.world();
        let is_of_user = |uid: &String| {
            let template = world.templates.get(uid);
            template
                .and_then(|it| it.labels.get(LABEL_UID))
                .map(String::as_str)
                == Some(user)
        };
        let other = || {
            world
                .nodes
                .iter()
                .find(|(uid, _)| is_of_user(uid))
                .map(|(_, node)| node)
        };
        world.nodes.get(template).or_else(other).cloned()
    }

    /// The Pod of a template, as last reported.
    pub(crate) fn pod(&self, template: &str) -> Option<PodState> {
        self.world().pods.get(template).cloned()
    }

    /// Every change from now on.
    pub(crate) fn subscribe_changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Waits until both watches have listed everything, for at most `limit`.
    pub(crate) async fn wait_listed(&self, limit: Duration) {
        self.wait_until(limit, |world| world.heard.iter().all(Option::is_some))
            .await;
    }

    /// Waits until the watch has reported a version of an object that was just written.
    pub(crate) async fn wait_shown(&self, kind: Kind, revision: u64) {
        let shows = |world: &World| {
            let index = kind as usize;
            world.heard[index].is_none() || world.revision[index] >= revision
        };
        self.wait_until(ECHO, shows).await;
    }

    /// Waits until the watch has reported that a template is gone.
    pub(crate) async fn wait_template_gone(&self, uid: &str) {
        self.wait_until(ECHO, |world| !world.templates.contains_key(uid))
            .await;
    }

    /// Waits until the watch has reported that a Pod is gone.
    pub(crate) async fn wait_pod_gone(&self, template: &str, uid: &str) {
        let forgets = |world: &World| world.pods.get(template).is_none_or(|pod| pod.uid != uid);
        self.wait_until(ECHO, forgets).await;
    }

    async fn wait_until(&self, limit: Duration, holds: impl Fn(&World) -> bool) {
        let mut turns = self.turns.subscribe();
        let waiting = async {
            while !holds(&self.world()) {
                if turns.changed().await.is_err() {
                    return;
                }
            }
        };
        // A change that is not seen by then comes later; no caller relies on it.
        let _ = tokio::time::timeout(limit, waiting).await;
    }

    /// Takes over all objects of a kind, in place of what was known of it. The first time nothing was known, so nothing has changed:
    /// readers wait for that listing itself.
    pub(crate) fn replace(&self, kind: Kind, objects: Vec<Object>, revision: u64, now: Timestamp) {
        let mut world = self.world();
        let known: Vec<String> = match kind {
            Kind::Templates => world.templates.keys().cloned().collect(),
            Kind::Pods => world.pods.keys().cloned().collect(),
        };
        let listed: HashSet<String> = objects.iter().map(|it| it.key().to_owned()).collect();
        for gone in known.iter().filter(|key| !listed.contains(*key)) {
            self.forget_object(&mut world, kind, gone, now);
        }
        let is_first = world.heard[kind as usize].is_none();
        for object in objects {
            let changes = self.put_object(&mut world, object, now);
            if !is_first {
                self.send_changes(changes);
            }
        }
        self.note_heard(&mut world, kind, revision);
    }

    /// Takes over one object.
    pub(crate) fn update(&self, kind: Kind, object: Object, revision: u64, now: Timestamp) {
        let mut world = self.world();
        let changes = self.put_object(&mut world, object, now);
        self.send_changes(changes);
        self.note_heard(&mut world, kind, revision);
    }

    /// Notes that an object is gone.
    pub(crate) fn remove(&self, kind: Kind, object: &Object, revision: u64, now: Timestamp) {
        let mut world = self.world();
        let is_known = match object {
            Object::Template(_) => true,
            // Its place may be another Pod's by now.
            Object::Pod(pod) => world
                .pods
                .get(&pod.template)
                .is_some_and(|known| known.uid == pod.uid),
        };
        if is_known {
            self.forget_object(&mut world, kind, object.key(), now);
        }
        self.note_heard(&mut world, kind, revision);
    }

    /// Notes a sign of life.
    pub(crate) fn note_alive(&self, kind: Kind, revision: u64) {
        let mut world = self.world();
        self.note_heard(&mut world, kind, revision);
    }

    fn note_heard(&self, world: &mut World, kind: Kind, revision: u64) {
        let index = kind as usize;
        world.heard[index] = Some(Instant::now());
        world.revision[index] = world.revision[index].max(revision);
        self.turns.send_modify(|turn| *turn = turn.wrapping_add(1));
    }

    fn put_object(&self, world: &mut World, object: Object, now: Timestamp) -> Vec<Change> {
        let template = object.key().to_owned();
        let before = world.container(&template, now);
        let known = world.templates.get(&template).cloned();
        match object {
            Object::Template(template) => {
                world.templates.insert(template.id.uid.clone(), *template);
            }
            Object::Pod(mut pod) => {
                let known = world.pods.get(&pod.template);
                pod.by_itself |= known.is_some_and(|it| it.uid == pod.uid && it.by_itself);
                if !pod.node.is_empty() {
                    world.nodes.insert(pod.template.clone(), pod.node.clone());
                }
                world.pods.insert(pod.template.clone(), *pod);
            }
        }
        let after = world.container(&template, now);
        let revised = match (known, world.templates.get(&template)) {
            (Some(before), Some(after)) => is_revised(&before, after),
            _ => false,
        };
        changes(before.as_ref(), after.as_ref(), revised)
    }

    fn forget_object(&self, world: &mut World, kind: Kind, template: &str, now: Timestamp) {
        let before = world.container(template, now);
        match kind {
            Kind::Templates => {
                world.templates.remove(template);
                world.nodes.remove(template);
            }
            Kind::Pods => {
                world.pods.remove(template);
                if !world.templates.contains_key(template) {
                    world.nodes.remove(template);
                }
            }
        }
        let after = world.container(template, now);
        self.send_changes(changes(before.as_ref(), after.as_ref(), false));
    }

    fn send_changes(&self, changes: Vec<Change>) {
        for change in changes {
            // Without a reader nothing is sent.
            let _ = self.changes.send(change);
        }
    }

    /// Returns true if the agent of a Pod had ended before the end of the Pod was asked for.
    pub(crate) fn ended_by_itself(&self, pod: &PodState) -> bool {
        let world = self.world();
        let known = world.pods.get(&pod.template);
        known.is_some_and(|it| it.uid == pod.uid && it.by_itself)
    }

    /// The name of the object of a template's uid.
    pub(crate) fn template_name(&self, uid: &str) -> Option<String> {
        let world = self.world();
        world.templates.get(uid).map(|it| it.id.template.clone())
    }
}

impl World {
    /// Returns true if both watches have listed everything, and have not been silent for too long.
    fn is_fresh(&self) -> bool {
        let fresh = |heard: &Option<Instant>| heard.is_some_and(|at| at.elapsed() < STALE);
        self.heard.iter().all(fresh)
    }

    fn container(&self, uid: &str, now: Timestamp) -> Option<Container> {
        let template = self.templates.get(uid)?;
        Some(state::container(template, self.pods.get(uid), now))
    }
}

/// Returns true if another program changed a template: nothing that the service itself changes differs.
fn is_revised(before: &Template, after: &Template) -> bool {
    before.revision != after.revision
        && (
            &before.name,
            &before.started,
            &before.last_run,
            before.removing,
        ) == (&after.name, &after.started, &after.last_run, after.removing)
}

/// Changes from one state of a container to another.
fn changes(before: Option<&Container>, after: Option<&Container>, revised: bool) -> Vec<Change> {
    let Some(container) = after.or(before) else {
        return Vec::new();
    };
    let label = |key: &str| container.labels.get(key).cloned().unwrap_or_default();
    let changes = actions(before, after, revised)
        .into_iter()
        .map(|action| Change {
            owner: label(LABEL_OWNER),
            event: EngineEvent {
                uid: label(LABEL_UID),
                action: action.to_owned(),
            },
        });
    changes.collect()
}

/// Words for what became of a container, in order.
fn actions(
    before: Option<&Container>,
    after: Option<&Container>,
    revised: bool,
) -> Vec<&'static str> {
    let (before, after) = match (before, after) {
        (None, None) => return Vec::new(),
        (None, Some(_)) => return vec!["create"],
        (Some(before), None) if before.state.is_up() => return vec!["die", "destroy"],
        (Some(_), None) => return vec!["destroy"],
        (Some(before), Some(after)) => (before, after),
    };
    let mut actions = Vec::new();
    if before.name != after.name {
        actions.push("rename");
    }
    if revised {
        actions.push("update");
    }
    let was_up = before.state.is_up() || before.state == ContainerState::Removing;
    match (before.state, after.state) {
        (before, after) if before == after => {}
        (_, ContainerState::Running) => actions.push("start"),
        (_, ContainerState::Exited) if was_up => actions.push("die"),
        (ContainerState::Running, ContainerState::Removing) => actions.push("stop"),
        // The one is our own doing, the other ends soon.
        (_, ContainerState::Starting | ContainerState::Removing) => {}
        _ => actions.push("update"),
    }
    if before.state == after.state
        && (before.waiting != after.waiting || before.ready != after.ready)
    {
        actions.push("update");
    }
    actions
}
