//! A source that says what it is told to.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use reconcilers::drivers::adapter_source::{Answer, PackageSource, SourceError, Validators};

/// A scripted source. Clones are handles to the same one.
#[derive(Debug, Clone, Default)]
pub struct FakeSource(Arc<Mutex<Script>>);

#[derive(Debug, Default)]
struct Script {
    answers: VecDeque<Result<Answer, SourceError>>,
    asked: Vec<(String, Validators)>,
}

impl FakeSource {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the next question that has no answer yet gets. Without one it gets status 404.
    pub fn then(&self, answer: Result<Answer, SourceError>) {
        self.script().answers.push_back(answer);
    }

    /// All questions so far: the address, and with what it was asked.
    pub fn asked(&self) -> Vec<(String, Validators)> {
        self.script().asked.clone()
    }
}

#[async_trait]
impl PackageSource for FakeSource {
    async fn fetch(&self, url: &str, known: &Validators) -> Result<Answer, SourceError> {
        let mut script = self.script();
        script.asked.push((url.to_owned(), known.clone()));
        script
            .answers
            .pop_front()
            .unwrap_or(Err(SourceError::Status(404)))
    }
}
