//! Changes of `web.auth_mode`, by whatever command: the plan is shown and has to be confirmed.

use clap::Args;
use serde_json::{Value, json};

use super::follow;
use super::output::cell::{cleaned, counted, number, text};
use super::output::clean::clean;
use super::output::screen;
use super::server::Server;
use super::{Failure, Result};

/// The key that says where users come from.
pub const KEY: &str = "web.auth_mode";

/// Consent to what a change of the mode removes.
#[derive(Debug, Clone, Copy, Args)]
pub struct Consent {
    /// Confirm that a change of web.auth_mode removes all ordinary users and archives their directories
    #[arg(long)]
    pub yes: bool,
    /// Change web.auth_mode without a test of the directory or the identity provider
    #[arg(long)]
    pub force: bool,
}

impl Consent {
    /// Requests the plan of a change: the answer to a dry run.
    ///
    /// # Errors
    /// When no server answers, or it refuses.
    pub async fn plan(self, server: &Server, path: &str, body: &Value) -> Result<Value> {
        let mut body = body.clone();
        body["dry_run"] = json!(true);
        body["force"] = json!(self.force);
        server.post(path, &body).await
    }

    /// Makes the planned change, after it has shown what that removes.
    ///
    /// # Errors
    /// When the plan is not confirmed, the new source of users does not work, no server answers, or it refuses.
    pub async fn make(
        self,
        server: &Server,
        path: &str,
        mut body: Value,
        plan: &Value,
    ) -> Result<Value> {
        let purge = &plan["purge"];
        if !purge.is_null() {
            screen::print(&describe_purge(purge))?;
            body["force"] = json!(self.force);
            if !purge["problem"].is_null() {
                let why =
                    "nothing was changed; correct the settings, or repeat the command with --force";
                return Err(Failure::Failed(why.to_owned()));
            }
            if !purge["confirm"].is_null() {
                if !self.yes {
                    let why = "nothing was changed; repeat the command with --yes to do it";
                    return Err(Failure::Usage(why.to_owned()));
                }
                body["confirm"] = purge["confirm"].clone();
            }
        }
        server.post(path, &body).await
    }
}

/// Follows the removal that a change of the mode has started.
///
/// # Errors
/// When no server answers, or the removal of a user fails.
pub async fn follow_purge(server: &Server, answer: &Value) -> Result {
    let purge = &answer["purge"];
    if purge.is_null() {
        return Ok(());
    }
    let (task, users) = (text(purge, "operation"), number(purge, "users"));
    let shown = clean(&task);
    screen::print(&format!(
        "task/{shown} started: {}\n",
        counted(users, "user")
    ))?;
    match users {
        0 => Ok(()),
        _ => follow::task(server, &task).await,
    }
}

/// Describes what a change of the mode removes, and why it cannot be made.
pub fn describe_purge(purge: &Value) -> String {
    let names = purge["names"].as_array().into_iter().flatten();
    let names: Vec<String> = names.filter_map(Value::as_str).map(clean).collect();
    let users = number(purge, "users");
    let more = if users > names.len() as u64 {
        ", …"
    } else {
        ""
    };
    let listed = match names.is_empty() {
        true => String::new(),
        false => format!(": {}{more}", names.join(", ")),
    };
    let to = cleaned(purge, "to");
    let problem = match cleaned(purge, "problem").as_str() {
        "" => String::new(),
        problem => format!("the test of {to} failed: {problem}\n"),
    };
    format!(
        "a switch to {to} removes:\n  {}{listed}\n  {}\n  {}\ntheir directories are archived; superadmins, the whitelist, skills and the configuration stay\n{problem}",
        counted(users, "user"),
        counted(number(purge, "containers"), "container"),
        counted(number(purge, "groups"), "group"),
    )
}
