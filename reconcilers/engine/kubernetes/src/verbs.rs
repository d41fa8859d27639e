//! The life of containers: create, start, stop, remove, rename.
//!
//! Two rules keep two agents of one user apart, also with two services that both believe to lead: all Pods of a user have one name,
//! and every deletion names the uid of the Pod that it means. A Pod is never deleted without the confirmation of its node.

use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::{ContainerSettings, EngineError, LABEL_UID};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Pod, PodTemplate};
use kube::api::{PostParams, WatchEvent, WatchParams};
use schema::ids::Timestamp;
use serde_json::json;
use tracing::debug;

use super::cache::Kind;
use super::failure::{from_client, from_status, ignore_missing, limit_time};
use super::names::{self, Id};
use super::objects::{END, delete_params, is_ours, owner_of, pod_of};
use super::reason::Progress;
use super::run::{self, Run};
use super::state::{PodState, Template, revision};
use super::{KubernetesEngine, closed, convert, placing};

/// Templates of one request that are tried, for as long as the ones before have another name now.
const ATTEMPTS: u32 = 8;
/// Grace of a removal. None at all would take the Pod out of the API before its node has ended the process.
const SHORTEST_GRACE: Duration = Duration::from_secs(1);
/// Time between two looks whether a Pod is gone.
const LOOK: Duration = Duration::from_millis(500);
/// Longest time for which a start waits for the end of a Pod whose template was removed by hand.
const ORPHAN: Duration = Duration::from_secs(10);
/// Seconds after which the server ends a watch of one Pod.
const WATCH_SECONDS: u32 = 60;

impl KubernetesEngine {
    pub(crate) async fn create_container(
        &self,
        name: &str,
        settings: &ContainerSettings,
    ) -> Result<String, EngineError> {
        let mut wanted = convert::template(name, settings, &self.options, 0)?;
        if self.bearer(name).await?.is_some() {
            return Err(name_taken(name));
        }
        for attempt in 1..=ATTEMPTS {
            let params = PostParams::default();
            let creating = self.cluster.templates.create(&params, &wanted);
            match self.cluster.write(creating).await {
                Ok(created) => {
                    self.cache
                        .wait_shown(Kind::Templates, revision(&created.metadata))
                        .await;
                    return Ok(id_of(&created)?.to_string());
                }
                Err(EngineError::NameTaken(_)) if self.bearer(name).await?.is_some() => {
                    return Err(name_taken(name));
                }
                // An equal request was served before, and what it made has another name since, or is going.
                Err(EngineError::NameTaken(_)) => {
                    wanted.metadata.name = Some(names::template_name(name, settings, attempt));
                }
                Err(error) => return Err(error),
            }
        }
        Err(name_taken(name))
    }

    /// The container of this name, unless it is being removed.
    async fn bearer(&self, name: &str) -> Result<Option<PodTemplate>, EngineError> {
        let bearer = self.find_named(name).await?;
        Ok(bearer.filter(|template| template.metadata.deletion_timestamp.is_none()))
    }

    pub(crate) async fn start_container(&self, id: &str) -> Result<(), EngineError> {
        let (id, template) = self.known_template(id).await?;
        let Some(known) = Template::of(&template.metadata) else {
            return Err(EngineError::NotFound(format!("there is no container {id}")));
        };
        if known.removing {
            return Err(EngineError::Conflict(format!(
                "{} is being removed",
                known.name
            )));
        }
        let mut wanted = pod_of(&template, &id)?;
        if self.is_open.load(Ordering::Relaxed) {
            closed::remove_wait(&mut wanted);
        } else {
            closed::renew_wait(&mut wanted, &self.options);
        }
        let user = known.labels.get(LABEL_UID).map_or("", String::as_str);
        if let Some(node) = self.cache.last_node(&id.uid, user) {
            placing::prefer_node(&mut wanted, &node);
        }
        // The second turn is for a Pod that came between two calls.
        for _ in 0..2 {
            if let Some(pod) = self.user_pod(&template).await?
                && Box::pin(self.make_way(&id, &known, &pod)).await?
            {
                return Ok(());
            }
            let params = PostParams::default();
            let creating = self.cluster.pods.create(&params, &wanted);
            match self.cluster.write(creating).await {
                Ok(pod) => {
                    // In this order: one that was started and has no Pod has ended.
                    self.cache
                        .wait_shown(Kind::Pods, revision(&pod.metadata))
                        .await;
                    self.cache.drop_end(&id.uid);
                    self.note_start(&id).await?;
                    return Ok(());
                }
                Err(EngineError::NameTaken(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(EngineError::Conflict(format!(
            "the Pod of {} is being changed by another program",
            known.name
        )))
    }

    /// Deals with the Pod that has the place of the one to start; returns true if it is that one and needs nothing.
    async fn make_way(&self, id: &Id, known: &Template, pod: &Pod) -> Result<bool, EngineError> {
        let Some(state) = PodState::of(pod) else {
            return Err(EngineError::Internal(
                "a Pod without uid or name".to_owned(),
            ));
        };
        if !is_ours(pod, known) {
            return Err(EngineError::NameTaken(format!(
                "a Pod named {} exists that Agentyard does not own",
                state.name
            )));
        }
        let is_own = state.template == id.uid;
        if state.gone_by.is_some() {
            // No event tells the end of a Pod whose template is gone.
            let is_orphan = self.cache.template_name(&state.template).is_none();
            let gone = self.wait_gone(pod.clone(), &state.name, &state.uid);
            if is_orphan && limit_time(ORPHAN, gone).await.is_ok() {
                return Ok(false);
            }
            return Err(EngineError::Conflict(format!(
                "the Pod {} is ending",
                state.name
            )));
        }
        match &state.progress {
            Progress::Ended => {
                let owner = owner_of(pod).map(|owner| Id {
                    template: owner.name.clone(),
                    uid: owner.uid.clone(),
                });
                // The own one's is overwritten by the start.
                if let Some(owner) = owner.filter(|_| !is_own) {
                    self.note_run(&owner, &run::read_run(pod)).await?;
                }
                Box::pin(self.end_pod(pod, SHORTEST_GRACE))
                    .await
                    .map(|_| false)
            }
            _ if !is_own => Err(EngineError::Conflict(format!(
                "another container of the user runs as {}",
                state.name
            ))),
            // Its node goes on trying; the words are those of its last try.
            Progress::NotStarted(why) => Err(EngineError::Internal(why.clone())),
            Progress::Waiting(_) | Progress::Running => {
                if known.started.is_none() {
                    self.note_start(id).await?;
                }
                Ok(true)
            }
        }
    }

    async fn note_start(&self, id: &Id) -> Result<(), EngineError> {
        let annotations = json!({
            names::STARTED: self.clock.now().to_rfc3339(),
            names::LAST_RUN: null,
        });
        let noted = self
            .annotate_template(id, None, json!({ "annotations": annotations }))
            .await;
        ignore_missing(noted).map(|_| ())
    }

    pub(crate) async fn stop_container(
        &self,
        id: &str,
        grace: Duration,
    ) -> Result<(), EngineError> {
        let Some(id) = Id::parse(id) else {
            return Ok(());
        };
        let Some(template) = self.template(&id).await? else {
            return Ok(());
        };
        let Some(pod) = self.own_pod(&template).await? else {
            return Ok(());
        };
        if PodState::of(&pod).is_some_and(|pod| pod.is_ended() && pod.gone_by.is_none()) {
            return Ok(());
        }
        // Before the deletion, so that the watch does not take the end for a loss.
        let before = run::read_run(&pod);
        if before.loss.is_none() {
            self.note_run(&id, &before).await?;
        }
        let last = Box::pin(self.end_pod(&pod, grace.max(SHORTEST_GRACE))).await?;
        let run = ended_run(run::read_run(&last), &before, self.clock.now());
        self.note_run(&id, &run).await
    }

    pub(crate) async fn remove_container(&self, id: &str) -> Result<(), EngineError> {
        let Some(id) = Id::parse(id) else {
            return Ok(());
        };
        let Some(template) = self.template(&id).await? else {
            return Ok(());
        };
        if let Some(pod) = self.own_pod(&template).await? {
            Box::pin(self.end_pod(&pod, SHORTEST_GRACE)).await?;
        }
        let params = delete_params(&id.uid);
        let deleting = self.cluster.templates.delete(&id.template, &params);
        match self.cluster.write(deleting).await {
            // Gone, and another one has its name.
            Err(EngineError::Conflict(_)) => {}
            deleted => drop(ignore_missing(deleted)?),
        }
        self.cache.wait_template_gone(&id.uid).await;
        Ok(())
    }

    pub(crate) async fn rename_container(&self, id: &str, name: &str) -> Result<(), EngineError> {
        names::check_name(name)?;
        let (id, template) = self.known_template(id).await?;
        if super::read::annotation(&template.metadata, names::NAME) == Some(name) {
            return Ok(());
        }
        if self.bearer(name).await?.is_some() {
            return Err(name_taken(name));
        }
        let metadata = json!({
            "annotations": { names::NAME: name },
            "labels": { names::NAME_DIGEST: names::name_digest(name) },
        });
        let version = template.metadata.resource_version.as_deref();
        self.annotate_template(&id, version, metadata)
            .await
            .map(|_| ())
    }

    /// Ends a Pod and waits until its node has confirmed it; returns the Pod as it was last. Success when it is gone.
    pub(crate) async fn end_pod(&self, pod: &Pod, grace: Duration) -> Result<Pod, EngineError> {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let mut params = delete_params(&uid);
        // Whole seconds, rounded up.
        let seconds = grace.as_secs() + u64::from(grace.subsec_nanos() > 0);
        params.grace_period_seconds = Some(u32::try_from(seconds).unwrap_or(u32::MAX));
        let deleting = self.cluster.pods.delete(&name, &params);
        let mut last = pod.clone();
        match self.cluster.write(deleting).await {
            Ok(answer) => {
                if let Some(marked) = answer.left() {
                    last = marked;
                }
            }
            // Another Pod has its name: this one is gone.
            Err(EngineError::NotFound(_) | EngineError::Conflict(_)) => return Ok(last),
            Err(error) => return Err(error),
        }
        let last = limit_time(grace + END, self.wait_gone(last, &name, &uid)).await?;
        let template = owner_of(&last).map(|owner| owner.uid.clone());
        self.cache
            .wait_pod_gone(&template.unwrap_or_default(), &uid)
            .await;
        Ok(last)
    }

    /// Waits until a Pod is gone; returns it as it was last.
    async fn wait_gone(&self, mut last: Pod, name: &str, uid: &str) -> Result<Pod, EngineError> {
        loop {
            // A watch tells nothing of what was before it.
            match ignore_missing(self.cluster.read(self.cluster.pods.get(name)).await)? {
                Some(seen) if seen.metadata.uid.as_deref() == Some(uid) => last = seen,
                _ => return Ok(last),
            }
            match self.watch_end(&mut last, name, uid).await {
                Ok(true) => return Ok(last),
                Ok(false) => {}
                Err(error) => {
                    debug!(pod = name, error = %schema::error::chain(&error), "a Pod cannot be watched");
                    tokio::time::sleep(LOOK).await;
                }
            }
        }
    }

    /// Follows a Pod; returns true once it is gone, and false when the watch has ended before.
    async fn watch_end(&self, last: &mut Pod, name: &str, uid: &str) -> Result<bool, EngineError> {
        let params = WatchParams::default()
            .fields(&format!("metadata.name={name}"))
            .timeout(WATCH_SECONDS);
        let version = last.metadata.resource_version.clone().unwrap_or_default();
        let opening = self.cluster.watched_pods.watch(&params, &version);
        let mut stream = self.cluster.read(opening).await?.boxed();
        while let Some(event) = stream.next().await {
            let (seen, gone) = match event.map_err(from_client)? {
                WatchEvent::Added(seen) | WatchEvent::Modified(seen) => (seen, false),
                WatchEvent::Deleted(seen) => (seen, true),
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(status) => return Err(from_status(&status)),
            };
            match (seen.metadata.uid.as_deref() == Some(uid), gone) {
                (true, _) => *last = seen,
                // Another Pod has its name already.
                (false, false) => return Ok(true),
                (false, true) => continue,
            }
            if gone {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes the end of a run on its template, unless a call has noted it or a later Pod is there.
    pub(crate) async fn note_end(&self, template: &str, run: &Run) -> Result<(), EngineError> {
        let Some(name) = self.cache.template_name(template) else {
            return Ok(());
        };
        let id = Id {
            template: name,
            uid: template.to_owned(),
        };
        let Some(object) = self.template(&id).await? else {
            return Ok(());
        };
        let noted = Template::of(&object.metadata).and_then(|template| template.last_run);
        // A stop was noted before the Pod went, and its end is noted by the call that asked for it.
        let is_noted = noted.is_some_and(|noted| noted.pod == run.pod);
        if is_noted || self.own_pod(&object).await?.is_some() {
            return Ok(());
        }
        self.note_run(&id, run).await
    }
}

fn name_taken(name: &str) -> EngineError {
    EngineError::NameTaken(format!("a container named {name} exists"))
}

/// The id of the container of a template.
pub(crate) fn id_of(template: &PodTemplate) -> Result<Id, EngineError> {
    let metadata = &template.metadata;
    match (&metadata.name, &metadata.uid) {
        (Some(name), Some(uid)) => Ok(Id {
            template: name.clone(),
            uid: uid.clone(),
        }),
        _ => Err(EngineError::Internal(
            "a PodTemplate without a uid".to_owned(),
        )),
    }
}

/// The run that a stop has ended, as its Pod told last and, where that tells less, before.
fn ended_run(last: Run, before: &Run, now: Timestamp) -> Run {
    Run {
        started_at: last.started_at.or(before.started_at),
        finished_at: last.finished_at.or(Some(now)),
        loss: None,
        ..last
    }
}
