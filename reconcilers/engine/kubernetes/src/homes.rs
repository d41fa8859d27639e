//! Users' directories: a claim that the service and the agents mount, each agent with a path of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use bytes::Bytes;
use engine::{
    Bind, EngineError, EngineStream, HomeMounts, ImageHome, PROBE_FILE, PROBE_FOLDER, Proof,
};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, VolumeMount};
use kube::Api;
use schema::ids::UserName;

use super::failure::ignore_missing;
use super::network::{ERRAND, ROLE};
use super::pod::read_nonce;
use super::pods::Errand;
use super::{KubernetesEngine, names};

/// Variable of the service's Pod: its name.
const POD_NAME: &str = "AGENTYARD_POD_NAME";
/// Word for the errand of the proof.
const KIND: &str = "home";
/// Path of the folder in its Pod.
const MOUNT: &str = "/agentyard";

/// A directory of a claim, as the source of a mount names it: `CLAIM:PATH`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClaimPath {
    /// Name of the claim.
    pub(crate) claim: String,
    /// Path in it; empty: all of it.
    pub(crate) path: String,
}

impl ClaimPath {
    /// Reads the source of a mount.
    ///
    /// # Errors
    /// [`EngineError::Refused`]: it names no directory of a claim.
    pub(crate) fn parse(source: &str) -> Result<Self, EngineError> {
        let refused = |why: &str| {
            Err(EngineError::Refused(format!(
                "the mount {source:?} {why}; a source is CLAIM:PATH on this engine"
            )))
        };
        let Some((claim, path)) = source.split_once(':') else {
            return refused("names no claim");
        };
        let is_claim = claim.len() <= 253 && claim.split('.').all(names::is_object_name);
        if !is_claim {
            return refused("names no claim");
        }
        let steps = path.split('/');
        if !path.is_empty()
            && steps
                .into_iter()
                .any(|step| matches!(step, "" | "." | ".."))
        {
            return refused("has a path that is not plain");
        }
        Ok(Self {
            claim: claim.to_owned(),
            path: path.to_owned(),
        })
    }
}

impl std::fmt::Display for ClaimPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.claim, self.path)
    }
}

impl ClaimPath {
    /// A directory below this one.
    fn path_below(&self, path: &str) -> Self {
        let slash = if self.path.is_empty() { "" } else { "/" };
        Self {
            claim: self.claim.clone(),
            path: format!("{}{slash}{path}", self.path),
        }
    }

    /// Paths of this directory in the containers of a Pod. Pure.
    fn paths_in_pod(&self, pod: &Pod) -> Vec<PathBuf> {
        let Some(spec) = &pod.spec else {
            return Vec::new();
        };
        let is_volume = |mount: &VolumeMount| {
            let mut volumes = spec.volumes.iter().flatten();
            let volume = volumes.find(|volume| volume.name == mount.name);
            let claim = volume.and_then(|volume| volume.persistent_volume_claim.as_ref());
            claim.is_some_and(|claim| claim.claim_name == self.claim)
        };
        let mounts = spec.containers.iter();
        let mounts = mounts.flat_map(|container| container.volume_mounts.iter().flatten());
        let own = mounts.filter(|mount| mount.sub_path_expr.is_none() && is_volume(mount));
        own.filter_map(|mount| {
            let begin = mount.sub_path.as_deref().unwrap_or_default();
            let rest = Path::new(&self.path).strip_prefix(begin.trim_matches('/'));
            rest.ok()
                .map(|rest| Path::new(&mount.mount_path).join(rest))
        })
        .collect()
    }
}

impl KubernetesEngine {
    /// The data directory.
    fn data_path(&self) -> ClaimPath {
        ClaimPath {
            claim: self.options.data.claim.clone(),
            path: self.options.data.path.clone(),
        }
    }

    /// The Pod in which the service itself runs; `None`: it runs elsewhere.
    pub(crate) async fn service_pod(&self) -> Result<Option<Pod>, EngineError> {
        let named = std::env::var(POD_NAME).ok();
        let name = match named {
            Some(name) => name,
            // On another machine, whose name may be that of some Pod.
            None if self.options.kubeconfig.is_some() => return Ok(None),
            None => {
                let read = tokio::fs::read_to_string("/etc/hostname").await;
                read.unwrap_or_default().trim().to_owned()
            }
        };
        if !name.split('.').all(names::is_object_name) {
            return Ok(None);
        }
        ignore_missing(self.cluster.read(self.cluster.pods.get(&name)).await)
    }

    /// Reads the file of the proof from within a Pod that mounts the folder it should be in.
    async fn prove_by_pod(&self, nonce: &str) -> Result<Proof, EngineError> {
        let data = self.data_path();
        let claims: Api<PersistentVolumeClaim> =
            Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace);
        let claim = self.cluster.read(claims.get(&data.claim)).await;
        if ignore_missing(claim)?.is_none() {
            return Ok(different_directory(&data, "there is no such claim"));
        }
        let path = data.path_below(PROBE_FOLDER).path;
        let errand = Errand {
            kind: KIND,
            labels: BTreeMap::from([(ROLE.to_owned(), ERRAND.to_owned())]),
            args: ["pod", "read-nonce", &format!("{MOUNT}/{PROBE_FILE}")]
                .map(str::to_owned)
                .to_vec(),
            mount: Some((
                data.claim.clone(),
                VolumeMount {
                    name: "claim".to_owned(),
                    mount_path: MOUNT.to_owned(),
                    sub_path: Some(path.clone()),
                    read_only: Some(true),
                    ..VolumeMount::default()
                },
            )),
        };
        let report = Box::pin(self.run_errand(&errand)).await?;
        Ok(match report.exit_code {
            0 if report.message == nonce => Proof::Same,
            0 => different_directory(&data, "a file in it has another content"),
            _ => different_directory(&data, &report.message),
        })
    }
}

fn different_directory(data: &ClaimPath, found: &str) -> Proof {
    Proof::Different(format!(
        "in the claim {}, folder {:?}: {found}; correct data in the file of --engine-options",
        data.claim, data.path
    ))
}

#[async_trait]
impl HomeMounts for KubernetesEngine {
    fn bind_home(&self, user: &UserName, target: &str) -> Bind {
        Bind {
            source: self
                .data_path()
                .path_below(&format!("users/{user}"))
                .to_string(),
            target: target.to_owned(),
            read_only: false,
        }
    }

    async fn prove_data_dir(&self, _image: &str, nonce: &str) -> Result<Proof, EngineError> {
        let Some(own) = self.service_pod().await? else {
            return Box::pin(self.prove_by_pod(nonce)).await;
        };
        let data = self.data_path();
        let places = data.paths_in_pod(&own);
        for place in &places {
            let file = place.join(PROBE_FOLDER).join(PROBE_FILE);
            let read = tokio::task::spawn_blocking(move || read_nonce(&file)).await;
            if matches!(read, Ok(Ok(text)) if text == nonce) {
                return Ok(Proof::Same);
            }
        }
        let found = match places.first() {
            None => "the Pod of the service does not mount it".to_owned(),
            Some(place) => format!(
                "the Pod of the service has it at {}, which is not the data directory",
                place.display()
            ),
        };
        Ok(different_directory(&data, &found))
    }

    async fn is_proof_left_over(&self) -> Result<bool, EngineError> {
        Ok(!self.errands(KIND).await?.is_empty())
    }

    async fn clean_up_proof(&self) -> Result<(), EngineError> {
        self.remove_errands(KIND).await
    }

    async fn open_image(&self, _image: &ImageHome) -> Result<String, EngineError> {
        Err(EngineError::Unsupported(
            "the image's own home cannot be copied on Kubernetes; use an adapter whose seed_home is false, and let the image fill an empty home itself",
        ))
    }

    async fn read_image(
        &self,
        _opened: &str,
        _path: &str,
    ) -> Result<Option<EngineStream<Bytes>>, EngineError> {
        Ok(None)
    }

    async fn close_image(&self, _opened: &str) -> Result<(), EngineError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service_pod(mounts: serde_json::Value) -> Pod {
        let spec = serde_json::json!({
            "containers": [{ "name": "agentyard", "volumeMounts": mounts }],
            "volumes": [
                { "name": "database", "persistentVolumeClaim": { "claimName": "database" } },
                { "name": "data", "persistentVolumeClaim": { "claimName": "data" } },
            ],
        });
        serde_json::from_value(serde_json::json!({ "metadata": {}, "spec": spec })).unwrap()
    }

    #[rstest::rstest]
    #[case("", serde_json::json!({ "name": "data", "mountPath": "/d" }), Some("/d"))]
    #[case("a/b", serde_json::json!({ "name": "data", "mountPath": "/d" }), Some("/d/a/b"))]
    #[case("a/b", serde_json::json!({ "name": "data", "mountPath": "/d", "subPath": "a" }), Some("/d/b"))]
    #[case("a/b", serde_json::json!({ "name": "data", "mountPath": "/d", "subPath": "a/b" }), Some("/d"))]
    #[case("ab", serde_json::json!({ "name": "data", "mountPath": "/d", "subPath": "a" }), None)]
    #[case("", serde_json::json!({ "name": "data", "mountPath": "/d", "subPath": "a" }), None)]
    #[case("", serde_json::json!({ "name": "database", "mountPath": "/d" }), None)]
    #[case("", serde_json::json!({ "name": "data", "mountPath": "/d", "subPathExpr": "$(X)" }), None)]
    fn own_pod_tells_where_the_data_directory_is(
        #[case] path: &str,
        #[case] mount: serde_json::Value,
        #[case] expected: Option<&str>,
    ) {
        let data = ClaimPath {
            claim: "data".to_owned(),
            path: path.to_owned(),
        };
        let places = data.paths_in_pod(&service_pod(serde_json::json!([mount])));
        let expected: Vec<PathBuf> = expected.map(PathBuf::from).into_iter().collect();
        assert_eq!(places, expected);
    }

    #[rstest::rstest]
    #[case("data:users/alice", true)]
    #[case("data:users/Alice_B@x", true)]
    #[case("data:", true)]
    #[case("/var/lib/agentyard/users/alice", false)]
    #[case("data:/users/alice", false)]
    #[case("data:users/../bob", false)]
    #[case("data:users/./bob", false)]
    #[case("data:users//bob", false)]
    #[case(":users/alice", false)]
    #[case("Data:users/alice", false)]
    fn source_is_a_plain_path_of_a_claim(#[case] source: &str, #[case] good: bool) {
        match ClaimPath::parse(source) {
            Ok(path) => assert!(good && path.to_string() == source),
            Err(error) => assert!(!good && matches!(error, EngineError::Refused(_))),
        }
    }
}
