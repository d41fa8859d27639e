//! Reads of the objects of a container, and the small writes to its template.

use engine::{CALL_TIMEOUT, EngineError, LABEL_OWNER};
use k8s_openapi::api::core::v1::{Event, Pod, PodTemplate};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, ObjectMeta as Meta, Patch, PatchParams, Preconditions};
use schema::ids::Timestamp;
use serde_json::{Value, json};

use super::KubernetesEngine;
use super::cache::Kind;
use super::failure::ignore_missing;
use super::names::{self, Id};
use super::run::Run;
use super::state::{PodState, Template, is_unexplained, revision};

/// Most events that are read of a Pod.
const EVENTS: u32 = 50;

impl KubernetesEngine {
    /// The template of a container; `None`: it is gone, or another one has its name.
    pub(crate) async fn template(&self, id: &Id) -> Result<Option<PodTemplate>, EngineError> {
        let read = self
            .cluster
            .read(self.cluster.templates.get(&id.template))
            .await;
        let template = ignore_missing(read)?;
        Ok(template.filter(|template| template.metadata.uid.as_deref() == Some(id.uid.as_str())))
    }

    /// The template of a container that must be there.
    pub(crate) async fn known_template(&self, id: &str) -> Result<(Id, PodTemplate), EngineError> {
        let missing = || EngineError::NotFound(format!("there is no container {id}"));
        let parsed = Id::parse(id).ok_or_else(missing)?;
        let template = self.template(&parsed).await?.ok_or_else(missing)?;
        Ok((parsed, template))
    }

    /// The template of the container of this name.
    pub(crate) async fn find_named(&self, name: &str) -> Result<Option<PodTemplate>, EngineError> {
        let digest = names::name_digest(name);
        let params = ListParams::default().labels(&format!("{}={digest}", names::NAME_DIGEST));
        let listed = self
            .cluster
            .read(self.cluster.templates.list(&params))
            .await?;
        let bears = |template: &PodTemplate| {
            super::read::annotation(&template.metadata, names::NAME) == Some(name)
        };
        let mut bearers: Vec<PodTemplate> = listed.items.into_iter().filter(bears).collect();
        // One that is being removed has given its name back.
        bearers.sort_by_key(|template| template.metadata.deletion_timestamp.is_some());
        Ok(bearers.into_iter().next())
    }

    /// The Pod of the user of a template, whichever template owns it.
    pub(crate) async fn user_pod(
        &self,
        template: &PodTemplate,
    ) -> Result<Option<Pod>, EngineError> {
        let name = names::pod_name(&super::read::labels(&template.metadata));
        ignore_missing(self.cluster.read(self.cluster.pods.get(&name)).await)
    }

    /// The Pod of a template.
    pub(crate) async fn own_pod(&self, template: &PodTemplate) -> Result<Option<Pod>, EngineError> {
        let pod = self.user_pod(template).await?;
        let owner = template.metadata.uid.as_deref();
        Ok(pod.filter(|pod| owner_of(pod).is_some_and(|found| Some(found.uid.as_str()) == owner)))
    }

    /// The events of a Pod that may tell why it does not run; none where nothing needs explaining, or the events cannot be read.
    pub(crate) async fn explanation(&self, pod: &PodState, now: Timestamp) -> Vec<Event> {
        if !is_unexplained(pod, now) {
            return Vec::new();
        }
        let fields = format!("involvedObject.uid={}", pod.uid);
        let params = ListParams::default().fields(&fields).limit(EVENTS);
        match self.cluster.read(self.cluster.events.list(&params)).await {
            Ok(events) => events.items,
            Err(error) => {
                tracing::debug!(error = %schema::error::chain(&error), "the events of a Pod cannot be read");
                Vec::new()
            }
        }
    }

    /// Changes annotations and labels of a template. With `expected`, only if it still has that version.
    pub(crate) async fn annotate_template(
        &self,
        id: &Id,
        expected: Option<&str>,
        metadata: Value,
    ) -> Result<PodTemplate, EngineError> {
        let mut metadata = metadata;
        metadata["uid"] = json!(id.uid);
        if let Some(expected) = expected {
            metadata["resourceVersion"] = json!(expected);
        }
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let params = PatchParams::default();
        let patching = self.cluster.templates.patch(&id.template, &params, &patch);
        let patched = self.cluster.write(patching).await?;
        self.cache
            .wait_shown(Kind::Templates, revision(&patched.metadata))
            .await;
        Ok(patched)
    }

    /// Notes the end of a run on its template; success when the template is gone.
    pub(crate) async fn note_run(&self, id: &Id, run: &Run) -> Result<(), EngineError> {
        let text =
            serde_json::to_string(run).map_err(|error| EngineError::Internal(error.to_string()))?;
        let annotations = json!({ "annotations": { names::LAST_RUN: text } });
        match self.annotate_template(id, None, annotations).await {
            // Another template bears its name.
            Err(EngineError::Conflict(_) | EngineError::Refused(_)) => Ok(()),
            noted => ignore_missing(noted).map(|_| ()),
        }
    }
}

/// The template that owns a Pod.
pub(crate) fn owner_of(pod: &Pod) -> Option<&OwnerReference> {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true) && owner.kind == "PodTemplate")
}

/// The Pod of a template.
///
/// # Errors
/// [`EngineError::Internal`]: another program took the specification out of the template.
pub(crate) fn pod_of(template: &PodTemplate, id: &Id) -> Result<Pod, EngineError> {
    let Some(content) = template.template.clone() else {
        return Err(EngineError::Internal(format!(
            "the PodTemplate {} holds no Pod",
            id.template
        )));
    };
    let content_metadata = content.metadata.unwrap_or_default();
    Ok(Pod {
        metadata: Meta {
            name: Some(names::pod_name(&super::read::labels(&template.metadata))),
            labels: content_metadata.labels,
            annotations: content_metadata.annotations,
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "PodTemplate".to_owned(),
                name: id.template.clone(),
                uid: id.uid.clone(),
                controller: Some(true),
                block_owner_deletion: None,
            }]),
            ..ObjectMeta::default()
        },
        spec: content.spec,
        status: None,
    })
}

/// Deletes exactly this object.
pub(crate) fn delete_params(uid: &str) -> DeleteParams {
    DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        }),
        ..DeleteParams::background()
    }
}

/// Returns true if a Pod belongs to the installation of a template; other Pods are left alone.
pub(crate) fn is_ours(pod: &Pod, template: &Template) -> bool {
    let owner = template.labels.get(LABEL_OWNER).map_or("", String::as_str);
    pod.labels().get(names::OWNER) == Some(&names::label_value(owner))
}

/// Longest time for which the end of a Pod is waited for beyond its grace.
pub(crate) const END: std::time::Duration = CALL_TIMEOUT;
