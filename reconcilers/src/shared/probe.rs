//! Proof that engine and service see the same data directory.
//!
//! The service writes a file with a random text; a container that is created but never started
//! mounts the directory as the engine's host sees it; the engine reads the file back. No program of
//! the image runs.

use std::sync::{Arc, Mutex, PoisonError};

use engine::{Bind, ContainerEngine, ContainerSettings, EngineError, LABEL_OWNER};
use schema::condition::Reason;
use schema::ids::Uid;

use crate::runtime::{Classify, ErrorClass};
use crate::shared::network::NETWORK;
use crate::stores::DataDir;

const MOUNT: &str = "/agentyard-probe";
const FILE: &str = "probe";
const CONTAINER: &str = "agentyard-probe-";

/// What is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeState {
    /// Not proven yet.
    Unknown,
    /// Proven.
    Same,
    /// Disproven: why.
    Mismatch(String),
}

/// The proof could not be given.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The engine sees another directory.
    #[error("{0}")]
    Mismatch(String),
    /// The probe file could not be written.
    #[error("the probe file cannot be written")]
    File(#[source] std::io::Error),
    /// The engine failed.
    #[error("the data directory could not be probed: {0}")]
    Engine(#[source] EngineError),
}

impl Classify for ProbeError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self {
            Self::Mismatch(_) => (ErrorClass::Terminal, Reason::DataDirMismatch),
            Self::File(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                (ErrorClass::Transient, Reason::StorageFull)
            }
            Self::File(_) => (ErrorClass::Transient, Reason::Retrying),
            Self::Engine(error) => error.classify(),
        }
    }
}

/// Gives the proof, and remembers it until the engine is another one.
pub struct DataDirProbe {
    engine: Arc<dyn ContainerEngine>,
    owner: String,
    data_dir: Arc<dyn DataDir>,
    engine_data_dir: String,
    state: Mutex<ProbeState>,
    /// The image of the latest try, so that a disproof can be tried again.
    image: Mutex<Option<String>>,
    turn: tokio::sync::Mutex<()>,
}

impl std::fmt::Debug for DataDirProbe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataDirProbe")
            .field("data_dir", &self.data_dir.place())
            .finish_non_exhaustive()
    }
}

impl DataDirProbe {
    /// A proof that is still to be given.
    pub fn new(
        engine: Arc<dyn ContainerEngine>,
        owner: impl Into<String>,
        data_dir: Arc<dyn DataDir>,
        engine_data_dir: impl Into<String>,
    ) -> Self {
        Self {
            engine,
            owner: owner.into(),
            data_dir,
            engine_data_dir: engine_data_dir.into(),
            state: Mutex::new(ProbeState::Unknown),
            image: Mutex::default(),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// What is known.
    pub fn state(&self) -> ProbeState {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The image of the latest try.
    pub fn image(&self) -> Option<String> {
        self.image
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The engine may be another one now: prove it again.
    pub fn forget(&self) {
        self.set(ProbeState::Unknown);
    }

    fn set(&self, state: ProbeState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Gives the proof with an image that is on the engine; success when it was given before.
    ///
    /// # Errors
    /// [`ProbeError::Mismatch`] when it is disproven; the others when nothing was learnt.
    pub async fn run(&self, image: &str) -> Result<(), ProbeError> {
        let _turn = self.turn.lock().await;
        if self.state() == ProbeState::Same {
            return Ok(());
        }
        *self.image.lock().unwrap_or_else(PoisonError::into_inner) = Some(image.to_owned());
        let result = self.probe(image).await;
        match &result {
            Ok(()) => self.set(ProbeState::Same),
            Err(ProbeError::Mismatch(why)) => self.set(ProbeState::Mismatch(why.clone())),
            Err(ProbeError::File(_) | ProbeError::Engine(_)) => {}
        }
        result
    }

    async fn probe(&self, image: &str) -> Result<(), ProbeError> {
        let nonce = Uid::random().to_string();
        self.data_dir
            .write_probe(&nonce)
            .await
            .map_err(ProbeError::File)?;
        let result = self.read_back(image, &nonce).await;
        // A leftover of a crash is removed by the next probe; failing to remove it now is no mismatch.
        if let Err(error) = self.data_dir.remove_probe().await {
            tracing::warn!(%error, "the probe file could not be removed");
        }
        result
    }

    async fn read_back(&self, image: &str, nonce: &str) -> Result<(), ProbeError> {
        let source = format!("{}/probe", self.engine_data_dir.trim_end_matches('/'));
        let settings = ContainerSettings {
            image: image.to_owned(),
            command: Some(vec!["none".to_owned()]),
            labels: [(LABEL_OWNER.to_owned(), self.owner.clone())].into(),
            binds: vec![Bind {
                source: source.clone(),
                target: MOUNT.to_owned(),
                read_only: true,
            }],
            network: NETWORK.to_owned(),
            ..ContainerSettings::default()
        };
        let name = self.container_name();
        self.remove(&name).await?;
        let mismatch = |found: &str| {
            ProbeError::Mismatch(format!(
                "the engine does not see the data directory {} as {}: {found}; set --engine-data-dir",
                self.data_dir.place(),
                self.engine_data_dir
            ))
        };
        let id = match self.engine.create(&name, &settings).await {
            Ok(id) => id,
            // The engine refuses to mount what it does not see.
            Err(EngineError::Refused(why)) => return Err(mismatch(&why)),
            Err(error) => return Err(ProbeError::Engine(error)),
        };
        let read = self
            .engine
            .read_file(&id, &format!("{MOUNT}/{FILE}"), 1024)
            .await;
        let removed = self.engine.remove(&id).await;
        let content = match read {
            Ok(content) => content,
            Err(EngineError::NotFound(_) | EngineError::Refused(_)) => None,
            Err(error) => return Err(ProbeError::Engine(error)),
        };
        removed.map_err(ProbeError::Engine)?;
        match content {
            Some(content) if content == nonce.as_bytes() => Ok(()),
            Some(_) => Err(mismatch("a file in it has another content")),
            None => Err(mismatch(&format!("there is no {source}/{FILE}"))),
        }
    }

    fn container_name(&self) -> String {
        format!("{CONTAINER}{}", self.owner.get(..6).unwrap_or(&self.owner))
    }

    /// Whether a probe that was cut short has left its container. Waits while one is running.
    ///
    /// # Errors
    /// Whatever the engine answers.
    pub async fn is_left_over(&self) -> Result<bool, EngineError> {
        let _turn = self.turn.lock().await;
        Ok(self.left_over(&self.container_name()).await?.is_some())
    }

    /// Removes what a probe that was cut short has left.
    ///
    /// # Errors
    /// Whatever the engine answers.
    pub async fn clean_up(&self) -> Result<(), ProbeError> {
        let _turn = self.turn.lock().await;
        self.remove(&self.container_name()).await
    }

    /// The id of what an earlier probe left, if it is ours.
    async fn left_over(&self, name: &str) -> Result<Option<String>, EngineError> {
        let found = self
            .engine
            .inspect(name)
            .await?
            .map(|found| found.container);
        let ours = found.filter(|found| found.labels.get(LABEL_OWNER) == Some(&self.owner));
        Ok(ours.map(|found| found.id))
    }

    async fn remove(&self, name: &str) -> Result<(), ProbeError> {
        let found = self.left_over(name).await.map_err(ProbeError::Engine)?;
        match found {
            Some(id) => self.engine.remove(&id).await.map_err(ProbeError::Engine),
            None => Ok(()),
        }
    }
}
