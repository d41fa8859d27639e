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
use super::{Failure, Result};

/// How to make a change.
#[derive(Debug, Clone, Copy, Args)]
pub struct How {
    /// Show who would be affected, without changing anything
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
        if text(answer, "state") != "pending" {
            return match text(answer, "state").as_str() {
                "failed" => Err(failed(server, answer)),
                _ => Ok(()),
            };
        }
        let (task, object) = (text(answer, "task_id"), text(answer, "object"));
        match (task.is_empty(), self.detach) {
            (false, false) => follow::task(server, &task).await,
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

fn failed(server: &Server, answer: &Value) -> Failure {
    let task = cleaned(answer, "task_id");
    Failure::Failed(format!(
        "`{} get task {task} -o yaml` shows which users need manual action",
        server.command
    ))
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
