//! Supervised tasks: the only way to start one.
//!
//! A task that ends although nobody asked for it, be it by returning, by an error or by a panic, is a
//! defect that must be seen: the supervisor ends the process, and whatever runs the process starts it
//! again. A loop that died silently in a process that looks healthy has been the worst outage of
//! systems like this one.

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

pub use schema::error::chain;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::fault;

/// The error with which a task may end.
pub type TaskError = Box<dyn std::error::Error + Send + Sync>;

/// Why the process must end.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// A task returned although nobody asked it to.
    #[error("task {0} ended by itself")]
    Ended(String),
    /// A task gave up.
    #[error("task {name} failed")]
    Failed {
        /// The task.
        name: String,
        /// Why.
        #[source]
        source: TaskError,
    },
    /// A task panicked.
    #[error("task {0} panicked")]
    Panicked(String),
}

impl SupervisorError {
    /// The task.
    pub fn task(&self) -> &str {
        match self {
            Self::Ended(name) | Self::Panicked(name) | Self::Failed { name, .. } => name,
        }
    }
}

/// Owns the tasks of the process.
#[derive(Debug)]
pub struct Supervisor {
    tasks: JoinSet<Result<(), TaskError>>,
    names: HashMap<Id, Cow<'static, str>>,
    shutdown: CancellationToken,
}

impl Supervisor {
    /// A supervisor whose tasks are asked to end by `shutdown`.
    pub fn new(shutdown: CancellationToken) -> Self {
        Self {
            tasks: JoinSet::new(),
            names: HashMap::new(),
            shutdown,
        }
    }

    /// The token that asks tasks to end. A task must return soon after it is cancelled.
    pub fn shutdown(&self) -> CancellationToken {
        self.shutdown.clone()
    }

    /// Starts a task. It may return only after the shutdown was asked for.
    pub fn spawn<F>(&mut self, name: impl Into<Cow<'static, str>>, task: F)
    where
        F: Future<Output = Result<(), TaskError>> + Send + 'static,
    {
        let name = name.into();
        let handle = self.tasks.spawn(fault::task(&name, task));
        self.names.insert(handle.id(), name);
    }

    /// Waits until the shutdown is asked for or a task ends, then asks the others to end and gives
    /// them `grace`; what is still running then is cancelled. Without tasks it waits for the shutdown.
    ///
    /// # Errors
    /// When a task ended before the shutdown was asked for: the process must end with a failure.
    pub async fn wait(self, grace: Duration) -> Result<(), SupervisorError> {
        self.wait_and_tell(grace, async |_| {}).await
    }

    /// The same; between the end of a task and the end of all others `tell` says it to the world, while
    /// everything else still runs. It must be bounded in time.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub async fn wait_and_tell(
        mut self,
        grace: Duration,
        tell: impl AsyncFnOnce(&SupervisorError),
    ) -> Result<(), SupervisorError> {
        let shutdown = self.shutdown.clone();
        let result = tokio::select! {
            biased;
            () = shutdown.cancelled() => Ok(()),
            ended = Self::first(&mut self.tasks, &self.names) => Err(ended),
        };
        if let Err(ended) = &result {
            tell(ended).await;
        }
        shutdown.cancel();
        let rest = async {
            while let Some(joined) = self.tasks.join_next_with_id().await {
                let id = match &joined {
                    Ok((id, _)) => *id,
                    Err(error) => error.id(),
                };
                let name = self.names.remove(&id).unwrap_or(Cow::Borrowed("unnamed"));
                match joined {
                    Ok((_, Ok(()))) => tracing::debug!(task = %name, "task ended"),
                    Ok((_, Err(error))) => {
                        tracing::warn!(task = %name, error = %chain(error.as_ref()), "task failed while ending");
                    }
                    Err(error) => {
                        tracing::error!(task = %name, error = %error, "task panicked while ending");
                    }
                }
            }
        };
        if tokio::time::timeout(grace, rest).await.is_err() {
            tracing::warn!(tasks = ?self.names.values(), "tasks did not end in time and are cancelled");
            self.tasks.shutdown().await;
        }
        result
    }

    async fn first(
        tasks: &mut JoinSet<Result<(), TaskError>>,
        names: &HashMap<Id, Cow<'static, str>>,
    ) -> SupervisorError {
        let named = |id: Id| {
            names
                .get(&id)
                .map_or_else(|| "unnamed".to_owned(), ToString::to_string)
        };
        match tasks.join_next_with_id().await {
            None => std::future::pending().await,
            Some(Ok((id, Ok(())))) => SupervisorError::Ended(named(id)),
            Some(Ok((id, Err(source)))) => SupervisorError::Failed {
                name: named(id),
                source,
            },
            Some(Err(error)) => SupervisorError::Panicked(named(JoinError::id(&error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(10);

    fn supervisor() -> Supervisor {
        Supervisor::new(CancellationToken::new())
    }

    #[tokio::test(start_paused = true)]
    async fn l55_a_task_that_panics_ends_the_process() {
        let mut supervisor = supervisor();
        let shutdown = supervisor.shutdown();
        let others = shutdown.clone();
        supervisor.spawn("steady", async move {
            others.cancelled().await;
            Ok(())
        });
        supervisor.spawn("fragile", async { panic!("a defect") });
        let result = supervisor.wait(GRACE).await;
        assert!(matches!(result, Err(SupervisorError::Panicked(name)) if name == "fragile"));
        assert!(shutdown.is_cancelled(), "the others are asked to end");
    }

    #[tokio::test(start_paused = true)]
    async fn l55_what_has_ended_is_told_while_the_others_still_run() {
        let mut supervisor = supervisor();
        let shutdown = supervisor.shutdown();
        supervisor.spawn("fragile", async { panic!("a defect") });
        let told = supervisor.wait_and_tell(GRACE, async |ended| {
            assert_eq!(ended.to_string(), "task fragile panicked");
            assert!(!shutdown.is_cancelled());
        });
        assert!(told.await.is_err());
        assert!(shutdown.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_returns_or_fails_ends_the_process() {
        let mut one = supervisor();
        one.spawn("short", async { Ok(()) });
        assert!(
            matches!(one.wait(GRACE).await, Err(SupervisorError::Ended(name)) if name == "short")
        );
        let mut other = supervisor();
        other.spawn("failing", async { Err("no luck".into()) });
        let error = other.wait(GRACE).await.unwrap_err();
        assert_eq!(chain(&error), "task failing failed: no luck");
    }

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_is_no_failure_and_is_bounded() {
        let mut supervisor = supervisor();
        let shutdown = supervisor.shutdown();
        supervisor.spawn("stubborn", async {
            std::future::pending::<()>().await;
            Ok(())
        });
        let asked = shutdown.clone();
        supervisor.spawn("obedient", async move {
            asked.cancelled().await;
            Ok(())
        });
        let started = tokio::time::Instant::now();
        shutdown.cancel();
        assert!(supervisor.wait(GRACE).await.is_ok());
        assert_eq!(started.elapsed().as_secs(), 10);
    }
}
