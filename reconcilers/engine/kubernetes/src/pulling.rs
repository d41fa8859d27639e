//! Pulls: a Pod on each node of an agent, for as long as the pull is read.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use engine::{EngineError, PullEvent};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{ListParams, PostParams};
use schema::image::ImageReference;
use tokio::time::Instant;
use tracing::debug;

use super::KubernetesEngine;
use super::client::Cluster;
use super::left_over::remove_pod;
use super::names::{OWNER, PULL, label_value};
use super::network::{PULLER, ROLE};
use super::options::PodOptions;
use super::puller::{self, LONGEST_SECONDS, State};
use super::references::{ImageSource, PullTurn, Resolved};

/// Most nodes that pull at once: a registry of one's own is slower than they are.
const AT_ONCE: usize = 20;
/// Time between two looks at the Pods, at first and later.
const LOOK_FIRST: Duration = Duration::from_millis(500);
const LOOK_LATER: Duration = Duration::from_secs(2);
/// Time for which one looks often.
const OFTEN: Duration = Duration::from_secs(15);
/// Failed tries of a node, and time since the first, after which it has failed.
const TRIES: u32 = 3;
const PATIENCE: Duration = Duration::from_secs(60);
/// Time after which a node that does not take the Pod is left out.
const PLACING: Duration = Duration::from_secs(30);
/// Time after which a node that does not answer any more is left out.
const SILENCE: Duration = Duration::from_secs(LONGEST_SECONDS.unsigned_abs() + 300);
/// Most Pods of earlier pulls that are removed at once.
const LEFT_OVER: u32 = 500;

/// A Pod that pulls.
struct Puller {
    node: String,
    uid: String,
    since: Instant,
    failing_since: Option<Instant>,
    tries: u32,
    /// The last look has shown a failed try.
    was_new: bool,
    message: String,
}

/// A pull of one image. See the [module](self).
pub(crate) struct Pulling {
    cluster: Arc<Cluster>,
    images: Arc<ImageSource>,
    pods: PodOptions,
    reference: ImageReference,
    image: Resolved,
    /// Dropped with the rest: what is left is removed then.
    turn: PullTurn,
    begun: Instant,
    /// Nodes without a Pod yet.
    ahead: VecDeque<String>,
    /// By the Pod's name.
    under_way: BTreeMap<String, Puller>,
    created: usize,
    asked: usize,
    having: usize,
    /// Nodes that have pulled it now.
    pulled: usize,
    /// The failure of the last node that was left out for it.
    failed: Option<EngineError>,
    events: VecDeque<PullEvent>,
    is_over: bool,
}

fn node_event(node: &str, status: impl Into<String>) -> PullEvent {
    PullEvent {
        status: status.into(),
        id: Some(node.to_owned()),
        ..PullEvent::default()
    }
}

impl Pulling {
    /// A pull to `nodes`, of which those in `having` have the image already.
    pub(crate) fn new(
        engine: &KubernetesEngine,
        (reference, image): (ImageReference, Resolved),
        nodes: &BTreeSet<String>,
        having: &BTreeSet<String>,
    ) -> Self {
        let mut pulling = Self {
            cluster: Arc::clone(&engine.cluster),
            images: Arc::clone(&engine.images),
            pods: engine.options.pods.clone(),
            turn: engine.images.begin_pull(),
            reference,
            image,
            begun: Instant::now(),
            ahead: VecDeque::new(),
            under_way: BTreeMap::new(),
            created: 0,
            asked: nodes.len(),
            having: 0,
            pulled: 0,
            failed: None,
            events: VecDeque::new(),
            is_over: false,
        };
        if let Some((_, digest)) = pulling.image.id().split_once('@') {
            pulling.push_status(format!("Digest: {digest}"), None);
        }
        for node in nodes {
            if having.contains(node) {
                pulling
                    .events
                    .push_back(node_event(node, PullEvent::PRESENT));
                pulling.having += 1;
            } else {
                pulling.events.push_back(node_event(node, "Waiting"));
                pulling.ahead.push_back(node.clone());
            }
        }
        pulling.push_count();
        pulling
    }

    fn push_status(&mut self, status: String, numbers: Option<(usize, usize)>) {
        let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        self.events.push_back(PullEvent {
            status,
            id: None,
            current: numbers.map(|(done, _)| number(done)),
            total: numbers.map(|(_, asked)| number(asked)),
        });
    }

    fn push_count(&mut self) {
        let (having, asked) = (self.having, self.asked);
        let words = match asked {
            0 => "no agent runs, so no node needs the image yet".to_owned(),
            1 => format!("{having} of 1 node has the image"),
            _ => format!("{having} of {asked} nodes have the image"),
        };
        self.push_status(words, Some((having, asked)));
    }

    /// The next event; `None` once no node is left. Nothing follows an error.
    pub(crate) async fn next(&mut self) -> Option<Result<PullEvent, EngineError>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            if self.is_over {
                return None;
            }
            let failed = match self.run_step().await {
                Ok(()) if !self.ahead.is_empty() || !self.under_way.is_empty() => continue,
                Ok(()) if !self.events.is_empty() => continue,
                // Another node that has pulled it shows that the image can be had.
                Ok(()) if self.pulled > 0 => None,
                Ok(()) => self.failed.take(),
                Err(error) => Some(error),
            };
            self.is_over = true;
            self.remove_pods().await;
            if let Some(error) = failed {
                return Some(Err(error));
            }
            self.images.note_pulled(self.image.id(), None);
            self.images.keep_meaning(&self.reference, &self.image).await;
        }
    }

    async fn remove_pods(&mut self) {
        if self.created > 0
            && let Err(error) = remove_pullers(&self.cluster, &self.selector()).await
        {
            let why = schema::error::chain(&error);
            debug!(why, "the Pods of a pull cannot be removed yet");
            return;
        }
        self.turn.is_done = true;
    }

    fn selector(&self) -> String {
        format!("{PULL}={}", label_value(&self.turn.id))
    }

    async fn run_step(&mut self) -> Result<(), EngineError> {
        while self.under_way.len() < AT_ONCE
            && let Some(node) = self.ahead.pop_front()
        {
            if !self.create_puller(node).await? {
                break;
            }
        }
        if self.under_way.is_empty() {
            return Ok(());
        }
        let pause = match self.begun.elapsed() < OFTEN {
            true => LOOK_FIRST,
            false => LOOK_LATER,
        };
        tokio::time::sleep(pause).await;
        let params = ListParams::default().labels(&self.selector());
        let listed = self.cluster.read(self.cluster.pods.list(&params)).await?;
        let mut pods: HashMap<String, Pod> = HashMap::new();
        for pod in listed.items {
            pods.insert(pod.name_any(), pod);
        }
        let names: Vec<String> = self.under_way.keys().cloned().collect();
        for name in names {
            self.observe_puller(&name, pods.get(&name)).await?;
        }
        Ok(())
    }

    /// Makes the Pod of a node; returns false if it has to wait for the end of another one.
    async fn create_puller(&mut self, node: String) -> Result<bool, EngineError> {
        let names = (
            self.images.owner.as_str(),
            self.turn.id.as_str(),
            self.created,
        );
        let pod = puller::pod(&self.image, &node, names, &self.pods);
        self.created += 1;
        let params = PostParams::default();
        let creating = self.cluster.pods.create(&params, &pod);
        let made = match self.cluster.write(creating).await {
            Ok(made) => made,
            Err(EngineError::QuotaExceeded(_)) if !self.under_way.is_empty() => {
                self.ahead.push_front(node);
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        self.events.push_back(node_event(&node, "Pulling"));
        let puller = Puller {
            node,
            uid: made.metadata.uid.clone().unwrap_or_default(),
            since: Instant::now(),
            failing_since: None,
            tries: 0,
            was_new: false,
            message: String::new(),
        };
        self.under_way.insert(made.name_any(), puller);
        Ok(true)
    }

    /// Takes in how far a node is.
    async fn observe_puller(&mut self, name: &str, pod: Option<&Pod>) -> Result<(), EngineError> {
        let Some(puller) = self.under_way.get_mut(name) else {
            return Ok(());
        };
        let node = puller.node.clone();
        let state = pod.map_or_else(
            || State::Refused("its Pod was removed".to_owned()),
            puller::state,
        );
        match state {
            State::Done => {
                self.images.note_pulled(self.image.id(), Some(&node));
                self.having += 1;
                self.pulled += 1;
                self.events
                    .push_back(node_event(&node, PullEvent::COMPLETE));
            }
            State::TooSlow => {
                let minutes = LONGEST_SECONDS / 60;
                let why = format!("it has not pulled the image within {minutes} minutes");
                self.leave_out(&node, &why);
            }
            State::Failing {
                message,
                is_new,
                is_final,
            } => {
                let Some(why) = puller.note_failure(message, is_new, is_final) else {
                    return Ok(());
                };
                if is_refusal(&why, is_final) {
                    return Err(EngineError::PullRefused(failure(&node, &why)));
                }
                self.leave_out(&node, &why);
            }
            State::Refused(why) => self
                .events
                .push_back(node_event(&node, left_out_status(&why))),
            State::Unplaced(why) if puller.since.elapsed() >= PLACING => {
                self.events
                    .push_back(node_event(&node, left_out_status(&why)));
            }
            State::Pulling if puller.since.elapsed() >= SILENCE => {
                let why = left_out_status("it does not answer");
                self.events.push_back(node_event(&node, why));
            }
            State::Unplaced(_) | State::Pulling => return Ok(()),
        }
        let uid = uid_of(self.under_way.remove(name));
        self.push_count();
        remove_pod(&self.cluster, name, &uid).await
    }

    /// Goes on without a node that has failed.
    fn leave_out(&mut self, node: &str, why: &str) {
        self.events
            .push_back(node_event(node, left_out_status(why)));
        self.failed = Some(EngineError::PullFailed(failure(node, why)));
    }
}

fn uid_of(puller: Option<Puller>) -> String {
    puller.map(|puller| puller.uid).unwrap_or_default()
}

/// Status of a node that does not pull: an agent that starts there later waits for its image.
fn left_out_status(why: &str) -> String {
    format!("Left out: {why}")
}

impl Puller {
    /// Notes a failed try; returns the node's words once it has failed for good.
    fn note_failure(&mut self, message: String, is_new: bool, is_final: bool) -> Option<String> {
        let since = *self.failing_since.get_or_insert_with(Instant::now);
        if is_new && !self.was_new {
            self.tries += 1;
        }
        self.was_new = is_new;
        // The message of a node that waits for the next try is shorter.
        if is_new || self.message.is_empty() {
            self.message = message;
        }
        let failed = is_final || self.tries >= TRIES || since.elapsed() >= PATIENCE;
        failed.then(|| self.message.clone())
    }
}

/// The failure of a node in words.
fn failure(node: &str, why: &str) -> String {
    format!("the node {node} cannot pull it: {why}")
}

/// Returns true if no other node can pull the image, either.
fn is_refusal(why: &str, is_final: bool) -> bool {
    let words = why.to_ascii_lowercase();
    let refused = ["not found", "manifest unknown", "imagepullsecrets"];
    is_final || refused.iter().any(|refusal| words.contains(refusal))
}

/// Removes the Pods of pulls that a selector names.
async fn remove_pullers(cluster: &Cluster, selector: &str) -> Result<(), EngineError> {
    remove_pullers_if(cluster, selector, |_| true).await
}

async fn remove_pullers_if(
    cluster: &Cluster,
    selector: &str,
    is_left_over: impl Fn(&Pod) -> bool,
) -> Result<(), EngineError> {
    let selector = format!("{ROLE}={PULLER},{selector}");
    let params = ListParams::default().labels(&selector).limit(LEFT_OVER);
    let pods = cluster.read(cluster.pods.list(&params)).await?;
    for pod in pods.items.iter().filter(|pod| is_left_over(pod)) {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        remove_pod(cluster, &pod.name_any(), &uid).await?;
    }
    Ok(())
}

impl KubernetesEngine {
    /// Removes the Pods of pulls that ended with a service that was killed.
    pub(crate) async fn remove_old_pullers(&self) {
        let selector = format!("{OWNER}={}", label_value(&self.images.owner));
        let is_left_over = |pod: &Pod| {
            let pull = pod.labels().get(PULL);
            pull.is_none_or(|pull| !self.images.is_under_way(pull))
        };
        let removed = remove_pullers_if(&self.cluster, &selector, is_left_over).await;
        if let Err(error) = removed {
            let why = schema::error::chain(&error);
            debug!(why, "the Pods of earlier pulls cannot be removed yet");
        }
    }

    /// Removes, for ever, the Pods of pulls that are called off.
    pub(crate) async fn remove_pullers_called_off(&self) {
        let mut called_off = self.called_off.lock().await;
        while let Some(pull) = called_off.recv().await {
            let selector = format!("{PULL}={}", label_value(&pull));
            if let Err(error) = remove_pullers(&self.cluster, &selector).await {
                let why = schema::error::chain(&error);
                debug!(
                    why,
                    "the Pods of a pull cannot be removed; the next pull does"
                );
            }
        }
    }
}
