//! What a change of skills or groups means for users: shown before it is made, and followed once it is.

use clap::Args;
use serde_json::{Value, json};

use super::follow::{self, Until};
use super::kinds::SKILL_CHANGES;
use super::output::cell::{at, cleaned, counted, number, text};
use super::output::clean::clean;
use super::output::items::{Amount, Printer};
use super::output::{Format, screen};
use super::server::Server;
use super::{Failure, Result, kinds, pages};

/// How to make a change.
#[derive(Debug, Clone, Copy, Args)]
pub struct How {
    /// Show the affected users, without changing anything
    #[arg(long)]
    pub dry_run: bool,
    /// Return immediately
    #[arg(short, long, conflicts_with = "dry_run")]
    pub detach: bool,
}

impl How {
    /// Makes the change, or has it reported only.
    ///
    /// # Errors
    /// When no server answers, it refuses, or a user's skills need manual action.
    pub async fn send(self, server: &Server, path: &str, mut body: Value) -> Result {
        body["dry_run"] = json!(self.dry_run);
        if self.detach {
            body["wait"] = json!(0);
        }
        let answer = server.post(path, &body).await?;
        self.report(server, &answer).await
    }

    /// Shows what the server answered, and follows the change to its end.
    ///
    /// # Errors
    /// As [`How::send`].
    pub async fn report(self, server: &Server, answer: &Value) -> Result {
        if self.dry_run {
            return preview(answer);
        }
        screen::print(&format!("{}\n", cleaned(answer, "message")))?;
        let (task, object) = (text(answer, "task_id"), text(answer, "object"));
        if text(answer, "state") != "pending" {
            return match text(answer, "state").as_str() {
                "failed" => judge_failures(server, answer, &task).await,
                _ => Ok(()),
            };
        }
        match (task.is_empty(), self.detach) {
            (false, false) => match follow::task(server, &task).await {
                Err(Failure::Failed(why)) => match judge_failures(server, answer, &task).await {
                    Err(Failure::Failed(_)) => Err(Failure::Failed(why)),
                    other => other,
                },
                other => other,
            },
            (false, true) => {
                let task = clean(&task);
                hint(server, &format!("get task {task}"), "shows its progress");
                Ok(())
            }
            (true, true) => {
                hint(server, &format!("wait {}", clean(&object)), "waits for it");
                Ok(())
            }
            (true, false) => {
                let until = Until::Ready(number(answer, "generation"));
                follow::object(server, &object, until).await?;
                screen::print(&format!("{} is ready\n", clean(&object)))
            }
        }
    }
}

fn hint(server: &Server, command: &str, what: &str) {
    screen::note(&format!("`{} {command}` {what}", server.command));
}

/// Most users whose skills are compared with what a command has changed.
const COMPARED: usize = 50;

/// Judges failures of a command: a user whose own folder is in the way of another skill is noted, and no failure of it.
///
/// # Errors
/// A user did not get what the command changes; no server answers, or it refuses.
async fn judge_failures(server: &Server, answer: &Value, task: &str) -> Result {
    let command = &server.command;
    let shown = clean(task);
    let failure = || {
        Failure::Failed(format!(
            "`{command} get task {shown} -o yaml` shows which users need manual action"
        ))
    };
    let (found, _) =
        pages::find(server, kinds::parse("task").map_err(Failure::Failed)?, task).await?;
    let found = found.ok_or_else(failure)?;
    let results = at(&found, "results").as_array().into_iter().flatten();
    let failed = results.filter(|result| at(result, "state") == "failed");
    let failed: Vec<String> = failed.map(|result| text(result, "object")).collect();
    if failed.is_empty()
        || failed.len() > COMPARED
        || (failed.len() as u64) < number(&found, "failed")
    {
        return Err(failure());
    }
    let mut notes = Vec::new();
    for object in failed {
        let (set, _) = pages::find(server, &kinds::OBJECTS, &object).await?;
        let set = set.unwrap_or_default();
        if !is_conflict_of_others(&object, &set, answer) {
            return Err(failure());
        }
        notes.push(format!(
            "warning: {}: {}",
            clean(&object),
            cleaned(&set, "conditions.Ready.message")
        ));
    }
    notes.iter().for_each(|note| screen::note(note));
    Ok(())
}

/// Returns whether a user's skills are as desired but for folders of the user that no change of this command concerns.
fn is_conflict_of_others(object: &str, set: &Value, answer: &Value) -> bool {
    if at(set, "conditions.Ready.reason") != "NameConflict" {
        return false;
    }
    let user = object.split_once('/').map_or(object, |(_, name)| name);
    let message = text(set, "conditions.Ready.message");
    let affected = at(answer, "affected").as_array().into_iter().flatten();
    let mut own = affected.filter(|change| at(change, "username") == user);
    own.next().is_some_and(|change| {
        let names = ["gains", "loses", "changes"].into_iter();
        let mut names = names.flat_map(|list| at(change, list).as_array().into_iter().flatten());
        names.all(|name| {
            let folder = format!("skills/{}", name.as_str().unwrap_or_default());
            let mut words = message.split([' ', ',', ';']);
            // A message that leaves some out may leave out this one.
            !words.any(|word| word == folder) && !message.contains(" more in the workspace")
        })
    })
}

/// Who would get what.
fn preview(answer: &Value) -> Result {
    let affected = at(answer, "affected").as_array().cloned();
    let affected = affected.unwrap_or_default();
    let mut printer = Printer::new(&SKILL_CHANGES, Format::Table.into(), Amount::List);
    printer.print(&affected)?;
    let listed = affected.len() as u64;
    if let Some(more @ 1..) = number(answer, "user_count").checked_sub(listed) {
        screen::print(&format!("and {} more\n", counted(more, "user")))?;
    }
    screen::print(&format!("{}\n", cleaned(answer, "message")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflict_of_another_skill_is_not_the_commands() {
        let answer = json!({"affected": [{"username": "bob", "gains": ["pdf"], "loses": [], "changes": ["docx"]}]});
        let set = |reason: &str, message: &str| json!({"conditions": [{"type": "Ready", "status": "False", "reason": reason, "message": message}]});
        let left = "in the workspace was not deployed by Agentyard and is left alone";
        for (object, reason, folders, expected) in [
            ("skill-set/bob", "NameConflict", "skills/notes", true),
            ("skill-set/bob", "NameConflict", "skills/pdf", false),
            (
                "skill-set/bob",
                "NameConflict",
                "skills/notes, skills/docx",
                false,
            ),
            ("skill-set/bob", "NameConflict", "skills/pdf-tools", true),
            (
                "skill-set/bob",
                "NameConflict",
                "skills/a, skills/b and 3 more",
                false,
            ),
            ("skill-set/bob", "Failed", "skills/notes", false),
            ("skill-set/eve", "NameConflict", "skills/notes", false),
        ] {
            let message = format!("1 skill is deployed; {folders} {left}");
            let found = is_conflict_of_others(object, &set(reason, &message), &answer);
            assert_eq!(found, expected, "{object} {reason} {folders}");
        }
    }
}
