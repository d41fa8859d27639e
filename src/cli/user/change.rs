//! `agentyard user delete`, `disable`, `enable`.

use clap::Args;

use crate::cli::bulk::{Action, Preview};
use crate::cli::confirm::confirm;
use crate::cli::output::cell::{at, cleaned, counted};
use crate::cli::output::clean::clean;
use crate::cli::output::screen;
use crate::cli::server::Server;
use crate::cli::target::bare_name;
use crate::cli::{Failure, Result};

const DELETE: Action = Action {
    name: "delete",
    kind: "user",
    done: "deleted",
    requested: "deletion requested",
};
/// Prevents signing in and stops the container.
pub const DISABLE: Action = Action {
    name: "disable",
    kind: "user",
    done: "disabled",
    requested: "disabling requested",
};
/// Allows signing in again.
pub const ENABLE: Action = Action {
    name: "enable",
    kind: "user",
    done: "enabled",
    requested: "enabling requested",
};
/// Users that a question names.
const NAMED: usize = 20;

/// Users to delete.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// Names of users
    #[arg(value_name = "NAME", required = true, value_parser = bare_name)]
    names: Vec<String>,
    /// Do not ask for confirmation
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// Show the users that would be deleted, without deleting them
    #[arg(long)]
    dry_run: bool,
    /// Return immediately
    #[arg(short, long, conflicts_with = "dry_run")]
    detach: bool,
}

/// Users to disable or enable.
#[derive(Debug, Args)]
pub struct NamesArgs {
    /// Names of users
    #[arg(value_name = "NAME", required = true, value_parser = bare_name)]
    names: Vec<String>,
    /// Return immediately
    #[arg(short, long)]
    detach: bool,
}

/// Disables or enables users.
///
/// # Errors
/// No server answers, it refuses, or a user cannot be changed.
pub async fn change(server: &Server, action: &Action, args: &NamesArgs) -> Result {
    action.apply(server, &args.names, args.detach).await
}

/// Deletes users after saying what becomes of their workspaces.
///
/// # Errors
/// No server answers, it refuses, the deletion is not confirmed, or a user cannot be deleted.
pub async fn delete(server: &Server, args: &DeleteArgs) -> Result {
    let preview = DELETE.preview(server, &args.names).await?;
    let users: Vec<String> = preview.users().map(str::to_owned).collect();
    if users.is_empty() {
        return Err(Failure::Reported);
    }
    let effects = describe(&preview, &users);
    if args.dry_run {
        screen::print(&(effects + "\n"))?;
        return finish(preview.failed);
    }
    screen::note(&effects);
    if !args.yes {
        let users = counted(users.len() as u64, "user");
        confirm(&format!("Delete {users}?"), "deleted").await?;
    }
    DELETE.apply(server, &users, args.detach).await?;
    finish(preview.failed)
}

fn finish(failed: bool) -> Result {
    match failed {
        true => Err(Failure::Reported),
        false => Ok(()),
    }
}

/// Says who is deleted, and what becomes of the workspaces.
fn describe(preview: &Preview, users: &[String]) -> String {
    let mut named: Vec<String> = users.iter().take(NAMED).map(|user| clean(user)).collect();
    if let Some(more @ 1..) = users.len().checked_sub(NAMED) {
        named.push(format!("{more} more"));
    }
    let archive = at(&preview.answer, "archive");
    let kept = match at(archive, "kept").as_str() {
        Some(kept) => format!("for {}", clean(kept)),
        None => "until an administrator deletes it".to_owned(),
    };
    let text = format!(
        "{}: {}\ncontainers, sessions, tokens and cookies go; each workspace is archived as archive/{} and kept {kept}\n`{}` copies one back, on the server's machine",
        counted(users.len() as u64, "user"),
        named.join(", "),
        cleaned(archive, "directory"),
        cleaned(archive, "restore"),
    );
    match users {
        [only] => text.replace("<user>", &clean(only)),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn preview_says_what_becomes_of_workspaces() {
        let archive = json!({"directory": "<user>-<time>", "kept": "30days", "restore": "agentyard archive restore X"});
        let mut preview = Preview {
            answer: json!({ "archive": archive }),
            ..Preview::default()
        };
        let users: Vec<String> = (0..22).map(|number| format!("u{number}")).collect();
        let text = describe(&preview, &users);
        for part in [
            "22 users: u0, u1",
            "u19, 2 more\n",
            "archive/<user>-<time> and kept for 30days",
            "`agentyard archive restore X`",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        preview.answer["archive"]["kept"] = json!(null);
        let text = describe(&preview, &users[..1]);
        assert!(text.starts_with("1 user: u0\n"), "{text}");
        assert!(text.contains("archive/u0-<time>"), "{text}");
        assert!(text.contains("until an administrator deletes it"), "{text}");
    }
}
