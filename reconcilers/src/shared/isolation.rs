//! Trials of the engine's own rules for what agents reach: at the start, after changes of the rules, and once a day.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::{AgentNetwork, EngineError, IsolationProof, NetworkSettings};
use schema::error::chain;
use tokio::time::Instant;

/// Time until rules that are enforced are tried again.
const DAILY: Duration = Duration::from_secs(24 * 60 * 60);
/// Time until rules that are not enforced, or could not be tried, are tried again.
const RETRY: Duration = Duration::from_secs(10 * 60);
/// The same after a trial that left something out.
const HOURLY: Duration = Duration::from_secs(60 * 60);

/// Outcome of the last trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trial {
    /// The targets that were reached, and those that were not.
    Done(IsolationProof),
    /// It could not be tried: why.
    Failed(String),
}

struct Last {
    wanted: NetworkSettings,
    trial: Trial,
    at: Instant,
}

/// Tries it, and remembers the outcome.
pub struct IsolationTrials {
    network: Arc<dyn AgentNetwork>,
    last: Mutex<Option<Last>>,
}

impl std::fmt::Debug for IsolationTrials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IsolationTrials").finish_non_exhaustive()
    }
}

impl IsolationTrials {
    /// Nothing has been tried yet.
    pub fn new(network: Arc<dyn AgentNetwork>) -> Self {
        Self {
            network,
            last: Mutex::default(),
        }
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<Last>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last outcome for this network; `None`: there is none yet.
    pub fn outcome(&self, wanted: &NetworkSettings) -> Option<Trial> {
        let last = self.last();
        let last = last.as_ref().filter(|last| last.wanted == *wanted)?;
        Some(last.trial.clone())
    }

    /// Returns true if this network has to be tried now.
    pub fn is_due(&self, wanted: &NetworkSettings) -> bool {
        let last = self.last();
        let Some(last) = last.as_ref().filter(|last| last.wanted == *wanted) else {
            return true;
        };
        let interval = match &last.trial {
            Trial::Failed(_) => RETRY,
            Trial::Done(proof) if !proof.open.is_empty() || !proof.unreached.is_empty() => RETRY,
            Trial::Done(proof) if !proof.untried.is_empty() => HOURLY,
            Trial::Done(_) => DAILY,
        };
        last.at.elapsed() >= interval
    }

    /// Tries it when it is asked for next.
    pub fn forget(&self) {
        *self.last() = None;
    }

    /// Tries this network. That it could not be tried is an outcome, too.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`].
    pub async fn run(&self, wanted: &NetworkSettings) -> Result<(), EngineError> {
        let trial = match self.network.prove_isolation(wanted).await {
            Ok(proof) => Trial::Done(proof),
            Err(error @ EngineError::Unavailable(_)) => return Err(error),
            Err(error) => Trial::Failed(chain(&error)),
        };
        *self.last() = Some(Last {
            wanted: wanted.clone(),
            trial,
            at: Instant::now(),
        });
        Ok(())
    }
}
