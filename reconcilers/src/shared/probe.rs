//! Proof that engine and service see the same data directory.
//!
//! The service writes a file with a random text, and the engine's driver looks whether the engine sees it
//! ([`HomeMounts::prove_data_dir`]). No program of the image runs.

use std::sync::{Arc, Mutex, PoisonError};

use engine::{EngineError, HomeMounts, Proof};
use schema::condition::Reason;
use schema::ids::Uid;

use crate::runtime::{Classify, ErrorClass};
use crate::stores::DataDir;

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
    homes: Arc<dyn HomeMounts>,
    data_dir: Arc<dyn DataDir>,
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
    pub fn new(homes: Arc<dyn HomeMounts>, data_dir: Arc<dyn DataDir>) -> Self {
        Self {
            homes,
            data_dir,
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
        match self.homes.prove_data_dir(image, nonce).await {
            Ok(Proof::Same) => Ok(()),
            Ok(Proof::Different(how)) => Err(ProbeError::Mismatch(format!(
                "the engine does not see the data directory {} {how}",
                self.data_dir.place()
            ))),
            Err(error) => Err(ProbeError::Engine(error)),
        }
    }

    /// Returns true if a probe that was cut short has left something. Waits while one is running.
    ///
    /// # Errors
    /// Whatever the engine answers.
    pub async fn is_left_over(&self) -> Result<bool, EngineError> {
        let _turn = self.turn.lock().await;
        self.homes.is_proof_left_over().await
    }

    /// Removes what a probe that was cut short has left.
    ///
    /// # Errors
    /// Whatever the engine answers.
    pub async fn clean_up(&self) -> Result<(), ProbeError> {
        let _turn = self.turn.lock().await;
        let cleaned = self.homes.clean_up_proof().await;
        cleaned.map_err(ProbeError::Engine)
    }
}
