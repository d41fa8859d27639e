//! One action on several users: a request for each hundred of them, and the tasks that follow.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::admin::escaped;
use super::kinds::{self, TASKS};
use super::output::cell::{at, cleaned, number, text};
use super::output::clean::clean;
use super::output::screen;
use super::server::Server;
use super::{Failure, Result, pages};

const PATH: &str = "/api/admin/users/bulk";
/// Names of one request; an answer names as many.
const CHUNK: usize = 100;
/// Unknown names for which similar ones are searched.
const SUGGESTED: usize = 3;
/// Time between two reads of a task's progress.
const POLL: Duration = Duration::from_millis(500);

/// An action on users, and its words.
#[derive(Debug)]
pub struct Action {
    /// Name in the API.
    pub name: &'static str,
    /// Kind under which the users are addressed.
    pub kind: &'static str,
    /// Participle of the effect.
    pub done: &'static str,
    /// Noun phrase of the request.
    pub requested: &'static str,
}

/// Users of a preview.
#[derive(Debug, Default)]
pub struct Preview {
    /// Users to whom the action applies, by request.
    pub chunks: Vec<Vec<String>>,
    /// The last answer.
    pub answer: Value,
    /// An unknown or unsuitable name was reported.
    pub failed: bool,
}

impl Preview {
    /// All users to whom the action applies.
    pub fn users(&self) -> impl Iterator<Item = &str> {
        self.chunks.iter().flatten().map(String::as_str)
    }
}

impl Action {
    /// Reports the users to whom the action would apply; names the rest on standard error.
    ///
    /// # Errors
    /// No server answers, or it refuses.
    pub async fn preview(&self, server: &Server, names: &[String]) -> Result<Preview> {
        let mut preview = Preview::default();
        for chunk in names.chunks(CHUNK) {
            let body = json!({ "action": self.name, "users": chunk, "dry_run": true });
            let answer = server.post(PATH, &body).await?;
            preview.failed |= self.report_skipped(server, &answer).await?;
            let users = list(&answer, "users");
            if !users.is_empty() {
                preview.chunks.push(users);
            }
            preview.answer = answer;
        }
        Ok(preview)
    }

    /// Applies the action to users and follows it to its end, unless it is detached; prints each user that has it.
    ///
    /// # Errors
    /// No server answers, it refuses, or the action fails for a user.
    pub async fn apply(&self, server: &Server, names: &[String], detach: bool) -> Result {
        let mut failed = false;
        let mut tasks = Vec::new();
        let mut refused = None;
        for chunk in names.chunks(CHUNK) {
            let body = json!({ "action": self.name, "users": chunk, "wait": 0 });
            let answer = match server.post(PATH, &body).await {
                Ok(answer) => answer,
                // Users of earlier chunks are reported first.
                Err(failure) => {
                    refused = Some(failure);
                    break;
                }
            };
            failed |= self.report_skipped(server, &answer).await?;
            let users = list(&answer, "users");
            if detach {
                self.print(&users, self.requested)?;
            } else if let Some(task) = answer["task_id"].as_str() {
                tasks.push((task.to_owned(), users));
            }
        }
        for (task, mut users) in tasks {
            let failures = follow_task(server, &task).await?;
            users.retain(|user| !failures.contains_key(user));
            failed |= !failures.is_empty();
            report_failures(self.kind, &failures);
            self.print(&users, self.done)?;
        }
        match (refused, failed) {
            (Some(failure), _) => Err(failure),
            (None, true) => Err(Failure::Reported),
            (None, false) => Ok(()),
        }
    }

    fn print(&self, users: &[String], what: &str) -> Result {
        let lines = users
            .iter()
            .map(|user| format!("{}/{} {what}\n", self.kind, clean(user)));
        screen::print(&lines.collect::<String>())
    }

    /// Names the users to whom the action does not apply. Returns true unless all of them are as desired already.
    async fn report_skipped(&self, server: &Server, answer: &Value) -> Result<bool> {
        let mut failed = false;
        let skipped = answer["skipped_users"].as_array();
        let mut suggested = 0;
        for user in skipped.into_iter().flatten() {
            let (name, code) = (text(user, "username"), text(user, "code"));
            if code.starts_with("already_") {
                screen::note(&format!("{}/{name}: {}", self.kind, text(user, "reason")));
                continue;
            }
            failed = true;
            let kind = kinds::named(self.kind).filter(|_| code == "not_found");
            let why = match kind {
                Some(kind) if suggested < SUGGESTED => {
                    suggested += 1;
                    pages::missing(server, kind, &name).await.to_string()
                }
                _ => format!("{}/{name}: {}", self.kind, text(user, "reason")),
            };
            screen::note(&format!("error: {why}"));
        }
        Ok(failed)
    }
}

fn list(answer: &Value, key: &str) -> Vec<String> {
    let items = answer[key].as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Follows a task on standard error to its end. Returns the message of each user for whom it failed, by name.
///
/// # Errors
/// No server answers, or it refuses.
pub async fn follow_task(server: &Server, task: &str) -> Result<BTreeMap<String, String>> {
    let path = format!("/api/admin/task/status?task_id={}", escaped(task));
    let mut shown = String::new();
    loop {
        let status = server.get(&path).await?;
        let message = cleaned(&status, "message");
        if message != shown {
            screen::note(&message);
            shown = message;
        }
        if !at(&status, "finished_at").is_null() {
            return match number(&status, "failed") {
                0 => Ok(BTreeMap::new()),
                failed => list_failures(server, task, failed).await,
            };
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn list_failures(
    server: &Server,
    task: &str,
    failed: u64,
) -> Result<BTreeMap<String, String>> {
    let (found, _) = pages::find(server, &TASKS, task).await?;
    let results = found.as_ref().and_then(|task| task["results"].as_array());
    let results = results.into_iter().flatten();
    let failures = results.filter(|result| result["state"] == "failed");
    let failures: BTreeMap<String, String> = failures
        .map(|result| {
            let object = text(result, "object");
            let name = object.split_once('/').map_or("", |(_, name)| name);
            (name.to_owned(), cleaned(result, "message"))
        })
        .collect();
    match failures.is_empty() {
        false => Ok(failures),
        true => Err(Failure::Failed(format!(
            "the task failed for {failed} of its users; `{} get task {} -o yaml` shows them",
            server.command,
            clean(task)
        ))),
    }
}

/// Names each user for whom a task failed, with the reason.
pub fn report_failures(kind: &str, failures: &BTreeMap<String, String>) {
    for (name, message) in failures {
        screen::note(&format!("error: {kind}/{name}: {message}"));
    }
}
