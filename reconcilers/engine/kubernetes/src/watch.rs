//! The two watches that keep the [`Cache`] up to date.
//!
//! A watch lists everything in pages, then follows changes from the version of the listing on. The server ends it after a few
//! minutes, and it goes on from the last version that was reported. Only when the server has forgotten that version, or the last
//! listing is ten minutes old, everything is listed again.

use std::fmt::Debug;
use std::time::Duration;

use engine::EngineError;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Pod, PodTemplate};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ListParams, PartialObjectMeta, WatchEvent, WatchParams};
use kube::core::ObjectList;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::KubernetesEngine;
use super::cache::{Ended, Kind, Object, STALE};
use super::failure::{from_client, from_status};
use super::names::SELECTOR;
use super::run::{self, Run};
use super::state::{PodState, Template, revision};

/// Objects of one answer.
const PAGE: u32 = 500;
/// Seconds after which the server ends a watch.
const WATCH_SECONDS: u32 = 270;
/// Age of a listing at which another one is made.
const LISTING_AGE: Duration = Duration::from_secs(600);
/// Longest time for one page.
const PAGE_TIME: Duration = Duration::from_secs(60);
const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_MOST: Duration = Duration::from_secs(10);

/// A kind of objects that is watched, and the part of each that is kept.
pub(crate) trait Watched: Send + Sync {
    type Object: Clone + Send + Sync + 'static;
    const KIND: Kind;

    fn list(
        &self,
        params: &ListParams,
    ) -> impl Future<Output = kube::Result<ObjectList<Self::Object>>> + Send;
    fn watch(
        &self,
        params: &WatchParams,
        from: &str,
    ) -> impl Future<Output = kube::Result<Changes<Self::Object>>> + Send;
    fn metadata(object: &Self::Object) -> &ObjectMeta;
    fn keep_object(object: &Self::Object) -> Option<Object>;
    /// The run that an object shows.
    fn read_run(object: &Self::Object) -> Option<Run>;
}

type Changes<T> = futures::stream::BoxStream<'static, kube::Result<WatchEvent<T>>>;

/// Templates, of which the metadata hold all that listings show.
pub(crate) struct Templates(pub(crate) Api<PodTemplate>);

impl Watched for Templates {
    type Object = PartialObjectMeta<PodTemplate>;
    const KIND: Kind = Kind::Templates;

    async fn list(&self, params: &ListParams) -> kube::Result<ObjectList<Self::Object>> {
        self.0.list_metadata(params).await
    }

    async fn watch(&self, params: &WatchParams, from: &str) -> kube::Result<Changes<Self::Object>> {
        Ok(self.0.watch_metadata(params, from).await?.boxed())
    }

    fn metadata(object: &Self::Object) -> &ObjectMeta {
        &object.metadata
    }

    fn keep_object(object: &Self::Object) -> Option<Object> {
        let template = Template::of(&object.metadata)?;
        Some(Object::Template(Box::new(template)))
    }

    fn read_run(_: &Self::Object) -> Option<Run> {
        None
    }
}

/// Pods.
pub(crate) struct Pods(pub(crate) Api<Pod>);

impl Watched for Pods {
    type Object = Pod;
    const KIND: Kind = Kind::Pods;

    async fn list(&self, params: &ListParams) -> kube::Result<ObjectList<Pod>> {
        self.0.list(params).await
    }

    async fn watch(&self, params: &WatchParams, from: &str) -> kube::Result<Changes<Pod>> {
        Ok(self.0.watch(params, from).await?.boxed())
    }

    fn metadata(object: &Pod) -> &ObjectMeta {
        &object.metadata
    }

    fn keep_object(object: &Pod) -> Option<Object> {
        let pod = PodState::of(object).filter(|pod| !pod.template.is_empty())?;
        Some(Object::Pod(Box::new(pod)))
    }

    fn read_run(object: &Pod) -> Option<Run> {
        Some(run::read_run(object))
    }
}

/// Cause for which a watch ended.
#[derive(Debug)]
enum Break {
    /// The server ended it in time: it goes on.
    InTime,
    /// The server has forgotten the version that it would go on from.
    Expired,
    Failed(EngineError),
}

/// Follows a kind of objects for ever. Ends of runs go to `ends`; one that finds no room there is not written on its
/// template, and counts as a removal once the service has restarted.
pub(crate) async fn follow<W: Watched>(watched: W, engine: &KubernetesEngine) {
    let mut delay = RETRY_FIRST;
    let mut from: Option<(String, Instant)> = None;
    loop {
        let due = from
            .as_ref()
            .is_none_or(|(_, listed)| listed.elapsed() >= LISTING_AGE);
        if due {
            match list(&watched, engine).await {
                Ok(version) => from = Some((version, Instant::now())),
                Err(error) => {
                    warn!(kind = ?W::KIND, error = %schema::error::chain(&error), "the cluster cannot be listed");
                    tokio::time::sleep(delay).await;
                    delay = (delay * 2).min(RETRY_MOST);
                    continue;
                }
            }
        }
        let Some((version, _)) = &mut from else {
            continue;
        };
        let began = Instant::now();
        let broke = changes(&watched, version, engine).await;
        let lasted = began.elapsed() > RETRY_MOST;
        if lasted {
            delay = RETRY_FIRST;
        }
        match broke {
            Break::InTime if lasted => continue,
            Break::InTime => {}
            Break::Expired => {
                debug!(kind = ?W::KIND, "the cluster has forgotten what was listed last");
                from = None;
            }
            Break::Failed(error) => {
                warn!(kind = ?W::KIND, error = %schema::error::chain(&error), "a watch of the cluster broke");
            }
        }
        tokio::time::sleep(delay).await;
        delay = (delay * 2).min(RETRY_MOST);
    }
}

/// Lists everything and returns its version.
async fn list<W: Watched>(watched: &W, engine: &KubernetesEngine) -> Result<String, EngineError> {
    let mut objects = Vec::new();
    let mut params = ListParams::default().labels(SELECTOR).limit(PAGE);
    loop {
        let page = engine
            .cluster
            .call_within(PAGE_TIME, watched.list(&params))
            .await?;
        objects.extend(page.items.iter().filter_map(W::keep_object));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => {
                let version = page.metadata.resource_version.unwrap_or_default();
                let number = version.parse().unwrap_or(0);
                engine
                    .cache
                    .replace(W::KIND, objects, number, engine.clock.now());
                return Ok(version);
            }
        }
    }
}

/// Takes over changes until the watch ends; `version` is that of the last one.
async fn changes<W: Watched>(
    watched: &W,
    version: &mut String,
    engine: &KubernetesEngine,
) -> Break {
    let params = WatchParams::default()
        .labels(SELECTOR)
        .timeout(WATCH_SECONDS);
    let opening = watched.watch(&params, version);
    let mut stream = match engine.cluster.call_within(PAGE_TIME, opening).await {
        Ok(stream) => stream.map_err(from_client),
        Err(EngineError::Conflict(_)) => return Break::Expired,
        Err(error) => return Break::Failed(error),
    };
    loop {
        let event = match tokio::time::timeout(STALE, stream.next()).await {
            Err(_) => return Break::Failed(EngineError::Timeout(STALE)),
            Ok(None) => return Break::InTime,
            Ok(Some(Err(error))) => {
                let broke = Err::<(), _>(error);
                engine.cluster.note_answer(&broke);
                return broke.map_or_else(Break::Failed, |()| Break::InTime);
            }
            Ok(Some(Ok(event))) => event,
        };
        let now = engine.clock.now();
        let (object, gone) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
            WatchEvent::Deleted(object) => (object, true),
            WatchEvent::Bookmark(bookmark) => {
                *version = bookmark.metadata.resource_version;
                engine
                    .cache
                    .note_alive(W::KIND, version.parse().unwrap_or(0));
                continue;
            }
            WatchEvent::Error(status) if status.code == 410 => return Break::Expired,
            WatchEvent::Error(status) => return Break::Failed(from_status(&status)),
        };
        let metadata = W::metadata(&object);
        let number = revision(metadata);
        if let Some(reported) = &metadata.resource_version {
            version.clone_from(reported);
        }
        match W::keep_object(&object) {
            Some(kept) if gone => {
                if let (Object::Pod(pod), Some(run)) = (&kept, W::read_run(&object)) {
                    let run = run.end_gone(engine.cache.ended_by_itself(pod), now);
                    engine.cache.keep_end(&pod.template, run.clone());
                    let template = pod.template.clone();
                    let _ = engine.ends.try_send(Ended { template, run });
                }
                engine.cache.remove(W::KIND, &kept, number, now);
            }
            Some(kept) => engine.cache.update(W::KIND, kept, number, now),
            None => engine.cache.note_alive(W::KIND, number),
        }
    }
}
