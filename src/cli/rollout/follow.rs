//! Shows a rollout until it ends or pauses, across restarts of the server.

use std::collections::HashMap;

use indicatif::ProgressBar;
use serde_json::Value;

use crate::cli::output::cell::{cleaned, number};
use crate::cli::output::screen;
use crate::cli::server::Server;
use crate::cli::watch::Watch;
use crate::cli::{Failure, Result};

/// An end that a rollout was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// Users are moved.
    Moved,
    /// Users are back on their previous images.
    Back,
}

/// Prints the progress of each user, and returns the end of the rollout.
///
/// # Errors
/// When it paused or failed, the server refuses, or there is no such rollout.
pub async fn follow(server: &Server, id: &str) -> Result<Goal> {
    // Watched before the first read, so that no change falls between.
    let mut watch = Watch::since(server, None).of_object(&format!("rollout/{id}"));
    let mut view = View::new();
    loop {
        let rollout = watch.patiently(async || super::one(server, id).await);
        if let Some(end) = view.show(&rollout.await?)? {
            return end.report(server, id);
        }
        watch.next().await?;
    }
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    Reached(String),
    RolledBack(String),
    Paused(String),
    /// Of a changed configuration or adapter: what it says names the way back.
    ChangePaused(String),
    Missed(String),
}

impl End {
    fn of(rollout: &Value) -> Option<Self> {
        let field = |key: &str| cleaned(rollout, key);
        let progress = super::progress(rollout);
        let text = match field("message").as_str() {
            "" => progress,
            message => format!("{progress}; {message}"),
        };
        match field("phase").as_str() {
            "succeeded" => Some(Self::Reached(text)),
            "rolled_back" => Some(Self::RolledBack(text)),
            // Users who are moving are waited for.
            "paused" if number(rollout, "progress.running") > 0 => None,
            "paused" if ["config", "adapter"].contains(&&*field("type")) => {
                Some(Self::ChangePaused(text))
            }
            "paused" => Some(Self::Paused(text)),
            "failed" | "cancelled" => Some(Self::Missed(text)),
            _ => None,
        }
    }

    fn report(self, server: &Server, id: &str) -> Result<Goal> {
        match self {
            Self::Reached(text) => {
                screen::print(&format!("{text}\n"))?;
                Ok(Goal::Moved)
            }
            Self::RolledBack(text) => {
                screen::print(&format!("{text}\n"))?;
                Ok(Goal::Back)
            }
            Self::Paused(text) => Err(Failure::Failed(format!(
                "{text}\n`{0} rollout resume {id}` continues, `{0} rollout rollback {id}` returns users to their previous images",
                server.command
            ))),
            Self::ChangePaused(text) => Err(Failure::Failed(format!(
                "{text}\n`{} rollout resume {id}` skips the failed users and continues",
                server.command
            ))),
            Self::Missed(text) => Err(Failure::Failed(text)),
        }
    }
}

/// A bar on a terminal with what happened above it, else only the lines.
struct View {
    bar: Option<ProgressBar>,
    /// The state last shown of each user.
    shown: HashMap<String, String>,
    phase: String,
    /// What was last said of the whole.
    message: String,
}

impl View {
    fn new() -> Self {
        Self {
            bar: screen::bar(0, "[{bar:30}] {pos}/{len} {wide_msg}"),
            shown: HashMap::new(),
            phase: String::new(),
            message: String::new(),
        }
    }

    /// Shows what has changed; gives the end when there is one.
    fn show(&mut self, rollout: &Value) -> Result<Option<End>> {
        for line in self.news(rollout) {
            match &self.bar {
                Some(bar) => bar.suspend(|| screen::print(&format!("{line}\n")))?,
                None => screen::print(&format!("{line}\n"))?,
            }
        }
        let end = End::of(rollout);
        if let Some(bar) = &self.bar {
            let number = |key: &str| number(rollout, &format!("progress.{key}"));
            bar.set_length(number("total"));
            bar.set_position(number("done") + number("failed") + number("cancelled"));
            bar.set_message(self.phase.clone());
            if end.is_some() {
                bar.finish_and_clear();
            }
        }
        Ok(end)
    }

    /// A line for what keeps the image from being had, and one for each user whose state is another than the one
    /// last shown.
    fn news(&mut self, rollout: &Value) -> Vec<String> {
        let mut lines = Vec::new();
        let phase = cleaned(rollout, "phase");
        if phase != self.phase {
            lines.push(format!("{}: {phase}", cleaned(rollout, "reference")));
            self.phase = phase;
        }
        // Ends and pauses are reported with their message.
        let message = cleaned(rollout, "message");
        if self.phase == "pulling" && !message.is_empty() && message != self.message {
            lines.push(message.clone());
        }
        self.message = message;
        let users = rollout["users"].as_array();
        for user in users.into_iter().flatten() {
            let (name, state) = (cleaned(user, "username"), cleaned(user, "state"));
            let known = self.shown.get(&name).map_or("pending", String::as_str);
            if known == state {
                continue;
            }
            lines.push(match cleaned(user, "message").as_str() {
                "" => format!("{name}: {state}"),
                message => format!("{name}: {state}: {message}"),
            });
            self.shown.insert(name, state);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_change_of_a_user_is_shown_once() {
        let mut view = View {
            bar: None,
            shown: HashMap::new(),
            phase: String::new(),
            message: String::new(),
        };
        let at = |phase: &str, alice: &str, message: &str| {
            json!({"reference": "a:2", "phase": phase, "users": [
                {"username": "alice", "state": alice, "message": message},
                {"username": "bob", "state": "pending", "message": ""},
            ]})
        };
        let lines = view.news(&at("rolling", "moving", ""));
        assert_eq!(lines, ["a:2: rolling", "alice: moving"]);
        assert!(view.news(&at("rolling", "moving", "")).is_empty());
        let lines = view.news(&at("paused", "failed", "crashed\u{1b}"));
        assert_eq!(lines, ["a:2: paused", "alice: failed: crashed\\u{1b}"]);
    }

    #[test]
    fn an_image_that_cannot_be_had_is_said_once_while_it_is_waited_for() {
        let mut view = View {
            bar: None,
            shown: HashMap::new(),
            phase: String::new(),
            message: String::new(),
        };
        let at = |message: &str| json!({"reference": "a:2", "phase": "pulling", "message": message, "users": []});
        assert_eq!(view.news(&at("")), ["a:2: pulling"]);
        assert_eq!(view.news(&at("no such image")), ["no such image"]);
        assert!(view.news(&at("no such image")).is_empty());
    }

    #[test]
    fn users_who_were_not_reached_are_counted_apart() {
        let rollout = json!({"phase": "cancelled", "progress": {"done": 1, "total": 5, "failed": 0, "cancelled": 4}});
        let text = "cancelled: 1 of 5 done, 0 failed, 4 cancelled".to_owned();
        assert_eq!(End::of(&rollout), Some(End::Missed(text)));
    }

    #[test]
    fn a_rollout_ends_well_badly_or_not_yet() {
        let end = |phase: &str| {
            End::of(&json!({"phase": phase, "progress": {"done": 1, "total": 2, "failed": 1}}))
        };
        assert_eq!(end("rolling"), None);
        let text = "succeeded: 1 of 2 done, 1 failed".to_owned();
        assert_eq!(end("succeeded"), Some(End::Reached(text)));
        assert!(matches!(end("paused"), Some(End::Paused(_))));
        assert!(matches!(end("failed"), Some(End::Missed(_))));
    }
}
