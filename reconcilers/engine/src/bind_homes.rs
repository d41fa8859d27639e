//! Users' directories as directories of the engine's host, which containers mount by their path.
//!
//! Files of containers that need not run are read through [`ContainerFiles`]. The proof that engine and service see the same
//! data directory: a container that is created but never started mounts the directory as the engine's host sees it, and the
//! engine reads the file back.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use schema::ids::UserName;

use super::{
    Bind, ContainerSettings, Containers, EngineError, EngineStream, HomeMounts, ImageHome,
    LABEL_OWNER, LABEL_UID, NETWORK, PROBE_FILE, PROBE_FOLDER, Proof,
};

const MOUNT: &str = "/agentyard-probe";
const CONTAINER: &str = "agentyard-probe-";
/// Most bytes of a probe file that are read.
const LONGEST: usize = 1024;

/// Files inside containers.
#[async_trait]
pub trait ContainerFiles: Send + Sync + 'static {
    /// Reads at most `limit` bytes of one regular file inside a container that need not run; `None`
    /// when there is none.
    async fn read_file(
        &self,
        id: &str,
        path: &str,
        limit: usize,
    ) -> Result<Option<Vec<u8>>, EngineError>;

    /// A directory of a container that need not run, with everything in it, as a tar stream whose entries begin with the
    /// directory's own name; `None` when nothing is there. The stream is as long as the directory is large.
    async fn read_tree(
        &self,
        id: &str,
        path: &str,
    ) -> Result<Option<EngineStream<Bytes>>, EngineError>;
}

/// Users' directories as directories of the engine's host.
pub struct BindHomes<E> {
    engine: Arc<E>,
    owner: String,
    data_dir: String,
}

impl<E> std::fmt::Debug for BindHomes<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BindHomes")
            .field("data_dir", &self.data_dir)
            .finish_non_exhaustive()
    }
}

impl<E: Containers + ContainerFiles> BindHomes<E> {
    /// Directories below `data_dir`, the data directory as the engine's host sees it, of the instance `owner`.
    pub fn new(engine: Arc<E>, owner: impl Into<String>, data_dir: impl Into<String>) -> Self {
        Self {
            engine,
            owner: owner.into(),
            data_dir: data_dir.into(),
        }
    }

    fn path_below(&self, path: &str) -> String {
        format!("{}/{path}", self.data_dir.trim_end_matches('/'))
    }

    /// Settings of a container that is never started.
    fn unstarted_settings(&self, image: &str) -> ContainerSettings {
        ContainerSettings {
            image: image.to_owned(),
            command: Some(vec!["none".to_owned()]),
            labels: BTreeMap::from([(LABEL_OWNER.to_owned(), self.owner.clone())]),
            network: NETWORK.to_owned(),
            ..ContainerSettings::default()
        }
    }

    fn probe_name(&self) -> String {
        format!("{CONTAINER}{}", self.owner.get(..6).unwrap_or(&self.owner))
    }

    /// The id of what an earlier proof left, if it is ours.
    async fn find_left_over(&self) -> Result<Option<String>, EngineError> {
        let found = self.engine.inspect(&self.probe_name()).await?;
        let found = found.map(|found| found.container);
        let ours = found.filter(|found| found.labels.get(LABEL_OWNER) == Some(&self.owner));
        Ok(ours.map(|found| found.id))
    }
}

#[async_trait]
impl<E: Containers + ContainerFiles> HomeMounts for BindHomes<E> {
    fn bind_home(&self, user: &UserName, target: &str) -> Bind {
        Bind {
            source: self.path_below(&format!("users/{user}")),
            target: target.to_owned(),
            read_only: false,
        }
    }

    async fn prove_data_dir(&self, image: &str, nonce: &str) -> Result<Proof, EngineError> {
        let source = self.path_below(PROBE_FOLDER);
        let settings = ContainerSettings {
            binds: vec![Bind {
                source: source.clone(),
                target: MOUNT.to_owned(),
                read_only: true,
            }],
            ..self.unstarted_settings(image)
        };
        self.clean_up_proof().await?;
        let different = |found: &str| {
            Ok(Proof::Different(format!(
                "as {}: {found}; set --engine-data-dir",
                self.data_dir
            )))
        };
        let id = match self.engine.create(&self.probe_name(), &settings).await {
            Ok(id) => id,
            // The engine refuses to mount what it does not see.
            Err(EngineError::Refused(why)) => return different(&why),
            Err(error) => return Err(error),
        };
        let path = format!("{MOUNT}/{PROBE_FILE}");
        let read = self.engine.read_file(&id, &path, LONGEST).await;
        let removed = self.engine.remove(&id).await;
        let content = match read {
            Ok(content) => content,
            Err(EngineError::NotFound(_) | EngineError::Refused(_)) => None,
            Err(error) => return Err(error),
        };
        removed?;
        match content {
            Some(content) if content == nonce.as_bytes() => Ok(Proof::Same),
            Some(_) => different("a file in it has another content"),
            None => different(&format!("there is no {source}/{PROBE_FILE}")),
        }
    }

    async fn is_proof_left_over(&self) -> Result<bool, EngineError> {
        Ok(self.find_left_over().await?.is_some())
    }

    async fn clean_up_proof(&self) -> Result<(), EngineError> {
        match self.find_left_over().await? {
            Some(id) => self.engine.remove(&id).await,
            None => Ok(()),
        }
    }

    async fn open_image(&self, image: &ImageHome) -> Result<String, EngineError> {
        let mut settings = self.unstarted_settings(&image.image);
        let uid = (LABEL_UID.to_owned(), image.uid.to_string());
        settings.labels.extend([uid]);
        self.engine.create(&image.name, &settings).await
    }

    async fn read_image(
        &self,
        opened: &str,
        path: &str,
    ) -> Result<Option<EngineStream<Bytes>>, EngineError> {
        self.engine.read_tree(opened, path).await
    }

    async fn close_image(&self, opened: &str) -> Result<(), EngineError> {
        self.engine.remove(opened).await
    }
}
