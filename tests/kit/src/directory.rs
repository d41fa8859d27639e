//! A directory in memory, which says what it is told to say.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use reconcilers::drivers::ldap::{
    Check, Directory, DirectoryError, DirectorySettings, Listing, Person, Wanted,
};
use secrecy::SecretString;

use crate::Pace;
use crate::script::{PaceHook, delayed};

/// What is called for each list.
type Answer = Arc<dyn Fn() -> Result<Listing, DirectoryError> + Send + Sync>;

/// A directory whose lists are scripted. Nobody signs in there.
#[derive(Clone, Default)]
pub struct FakeDirectory {
    answer: Arc<Mutex<Option<Answer>>>,
    pace: Arc<Mutex<Option<PaceHook>>>,
}

impl std::fmt::Debug for FakeDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeDirectory").finish_non_exhaustive()
    }
}

impl FakeDirectory {
    /// What it says from now on.
    pub fn says(
        &self,
        answer: impl Fn() -> Result<Listing, DirectoryError> + Send + Sync + 'static,
    ) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(answer));
    }

    /// Decides how long each list takes, and whether it fails.
    pub fn on_call(&self, hook: impl Fn() -> Pace + Send + Sync + 'static) {
        *self.pace.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(hook));
    }
}

fn away() -> DirectoryError {
    DirectoryError::Unreachable("the simulated directory is away".to_owned())
}

#[async_trait]
impl Directory for FakeDirectory {
    async fn sign_in(
        &self,
        _: &DirectorySettings,
        _: &str,
        _: &SecretString,
    ) -> Result<Option<Person>, DirectoryError> {
        Ok(None)
    }

    async fn list(&self, _: &DirectorySettings) -> Result<Listing, DirectoryError> {
        let pace = self
            .pace
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let answer = self
            .answer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let say = || answer.map_or_else(|| Err(away()), |answer| answer());
        delayed(pace.map(|pace| pace()).unwrap_or_default(), say, away).await
    }

    async fn check(&self, _: &DirectorySettings, _: &Wanted) -> Check {
        Check::default()
    }
}
