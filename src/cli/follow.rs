//! Follows what the server does by itself: tasks, and single objects.

use std::time::Duration;

use indicatif::ProgressBar;
use serde_json::Value;

use super::admin::escaped;
use super::kinds::OBJECTS;
use super::output::cell::{at, cleaned, number};
use super::output::clean::clean;
use super::output::screen;
use super::server::Server;
use super::wait::stuck::Stuck;
use super::watch::Watch;
use super::{Failure, Result, pages};

/// Time between two reads of a task's progress.
const POLL: Duration = Duration::from_millis(500);

/// Shows a task's progress until it has ended.
///
/// # Errors
/// When an object of it needs manual action, no server answers, or it refuses.
pub async fn task(server: &Server, task: &str) -> Result {
    let path = format!("/api/admin/task/status?task_id={}", escaped(task));
    let mut shown = String::new();
    loop {
        let status = server.get(&path).await?;
        let message = cleaned(&status, "message");
        let ended = !at(&status, "finished_at").is_null();
        if ended && number(&status, "failed") > 0 {
            return Err(Failure::Failed(format!(
                "{message}\n`{} get task {} -o yaml` shows which users failed",
                server.command,
                clean(task)
            )));
        }
        if message != shown {
            screen::print(&format!("{message}\n"))?;
            shown = message;
        }
        if ended {
            return Ok(());
        }
        tokio::time::sleep(POLL).await;
    }
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// This generation is ready.
    Ready(u64),
    /// The object is gone.
    Gone,
}

/// Shows what an object's conditions say until it is as it was waited for, across restarts of the server.
///
/// # Errors
/// When it needs manual action, was removed meanwhile, or the server refuses.
pub async fn object(server: &Server, address: &str, until: Until) -> Result {
    // Watched before the first read, so that no change falls between.
    let mut watch = Watch::since(server, None).of_object(address);
    let mut view = View::new(address);
    loop {
        let find = async || pages::find(server, &OBJECTS, address).await;
        let (found, _) = watch.patiently(find).await?;
        if let Some(end) = view.judge(found.as_ref(), until) {
            view.clear();
            return end;
        }
        watch.next().await?;
    }
}

/// A bar on a terminal, else a line for each new kind of message.
struct View {
    address: String,
    bar: Option<ProgressBar>,
    shown: String,
}

impl View {
    fn new(address: &str) -> Self {
        Self {
            address: clean(address),
            bar: screen::bar(100, "[{bar:30}] {pos:>3} % {wide_msg}"),
            shown: String::new(),
        }
    }

    /// How it ended, if it did; shows it otherwise.
    fn judge(&mut self, found: Option<&Value>, until: Until) -> Option<Result> {
        let address = &self.address;
        let Some(object) = found else {
            return Some(match until {
                Until::Gone => Ok(()),
                Until::Ready(_) => Err(Failure::Failed(format!("{address} was removed meanwhile"))),
            });
        };
        let observed = match until {
            Until::Ready(generation) => number(object, "observed_generation") >= generation,
            Until::Gone => true,
        };
        let ready = at(object, "conditions.Ready.status") == "True";
        if observed && ready && until != Until::Gone {
            return Some(Ok(()));
        }
        let stuck = Stuck::of(object);
        if (observed || at(object, "paused") == true) && stuck.needs_action {
            let text = format!("{address} needs manual action: {}", stuck.state);
            let text = format!("{text}\n{}", stuck.remedy);
            return Some(Err(Failure::Failed(text.trim_end().to_owned())));
        }
        if observed {
            self.show(object);
        }
        None
    }

    fn show(&mut self, object: &Value) {
        let message = cleaned(object, "conditions.Ready.message");
        if let Some(bar) = &self.bar {
            bar.set_position(number(object, "conditions.Ready.percent"));
            bar.set_message(message);
            return;
        }
        // Numbers go on all the time; without a terminal that is no news.
        let kind: String = message.chars().filter(|c| !c.is_ascii_digit()).collect();
        if !message.is_empty() && kind != self.shown {
            screen::note(&format!("{}: {message}", self.address));
            self.shown = kind;
        }
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view() -> View {
        View {
            bar: None,
            ..View::new("skill-repository/team")
        }
    }

    fn repository(observed: u64, status: &str, reason: &str) -> Value {
        json!({"object": "skill-repository/team", "generation": 3, "observed_generation": observed, "paused": false,
            "conditions": [{"type": "Ready", "status": status, "reason": reason,
                "message": "receiving objects: 12 %", "remedy": "Do this."}]})
    }

    #[test]
    fn what_was_so_before_the_change_is_not_its_end() {
        let mut view = view();
        let until = Until::Ready(3);
        for before in [
            repository(2, "True", "Converged"),
            repository(2, "False", "AuthFailed"),
        ] {
            assert!(view.judge(Some(&before), until).is_none());
        }
        assert!(view.shown.is_empty());
        let fetching = repository(3, "False", "Cloning");
        assert!(view.judge(Some(&fetching), until).is_none());
        assert_eq!(view.shown, "receiving objects:  %");
        let done = repository(3, "True", "Converged");
        assert!(matches!(view.judge(Some(&done), until), Some(Ok(()))));
        assert!(matches!(view.judge(None, until), Some(Err(_))));
    }

    #[test]
    fn manual_action_and_a_pause_end_the_wait() {
        let mut view = view();
        let failed = repository(3, "False", "CloneFailed");
        let end = view.judge(Some(&failed), Until::Ready(3)).unwrap();
        let text = end.unwrap_err().to_string();
        assert!(
            text.contains("CloneFailed") && text.ends_with("Do this."),
            "{text}"
        );
        let mut paused = repository(2, "Unknown", "PausedByOperator");
        paused["paused"] = json!(true);
        paused["force"] = json!({"request": "POST /api/admin/reconcile/resume"});
        assert!(view.judge(Some(&paused), Until::Ready(3)).unwrap().is_err());
        let there = repository(3, "True", "Converged");
        assert!(view.judge(Some(&there), Until::Gone).is_none());
        assert!(view.judge(None, Until::Gone).unwrap().is_ok());
    }
}
