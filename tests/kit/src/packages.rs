//! A source that gives what a test says.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use reconcilers::drivers::adapter_source::{Answer, PackageSource, SourceError, Validators};
use schema::adapter::Adapter;

use crate::script::{Pace, PaceHook, delayed};

/// A scripted source. Clones are handles to the same one.
#[derive(Clone, Default)]
pub struct FakeSource(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    answers: VecDeque<Result<Answer, SourceError>>,
    published: Option<Adapter>,
    asked: Vec<(String, Validators)>,
    pace: Option<PaceHook>,
}

impl std::fmt::Debug for FakeSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeSource").finish_non_exhaustive()
    }
}

impl FakeSource {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides how long each call takes, and whether it fails.
    pub fn on_call(&self, hook: impl Fn() -> Pace + Send + Sync + 'static) {
        self.script().pace = Some(Arc::new(hook));
    }

    /// The answer to the next question that has none yet. Later ones are given what is published; without a package,
    /// status 404.
    pub fn then(&self, answer: Result<Answer, SourceError>) {
        self.script().answers.push_back(answer);
    }

    /// From now on the source has this package.
    pub fn publish(&self, adapter: Adapter) {
        self.script().published = Some(adapter);
    }

    /// What it has.
    pub fn published(&self) -> Option<Adapter> {
        self.script().published.clone()
    }

    /// All questions so far: the address, and with what it was asked.
    pub fn asked(&self) -> Vec<(String, Validators)> {
        self.script().asked.clone()
    }

    fn answer(&self, url: &str, known: &Validators) -> Result<Answer, SourceError> {
        let mut script = self.script();
        script.asked.push((url.to_owned(), known.clone()));
        if let Some(answer) = script.answers.pop_front() {
            return answer;
        }
        let package = script.published.clone().ok_or(SourceError::Status(404))?;
        let etag = Some(package.digest.clone());
        if known.etag == etag {
            return Ok(Answer::NotModified);
        }
        Ok(Answer::Package {
            package: Ok(Box::new(package)),
            validators: Validators {
                etag,
                last_modified: None,
            },
        })
    }
}

#[async_trait]
impl PackageSource for FakeSource {
    async fn fetch(
        &self,
        url: &str,
        _: &[String],
        known: &Validators,
    ) -> Result<Answer, SourceError> {
        let pace = self.script().pace.clone();
        let pace = pace.map(|pace| pace()).unwrap_or_default();
        delayed(
            pace,
            || self.answer(url, known),
            || SourceError::Status(503),
        )
        .await
    }
}
