//! `agentyard cp`: files and folders between this machine and users' workspaces, through the server's code for users' files.

mod download;
mod place;
mod upload;

use clap::Args;
use reqwest::Method;
use serde_json::Value;

pub use self::place::Place;
use super::admin::escaped;
use super::output::cell::text;
use super::server::Server;
use super::{Failure, Result};

/// Source and target of a copy.
#[derive(Debug, Args)]
pub struct CopyArgs {
    /// File or folder: a path on this machine, or USER:PATH in a workspace
    #[arg(value_name = "SOURCE")]
    source: Place,
    /// Target: USER:PATH, or a path on this machine
    #[arg(value_name = "TARGET")]
    target: Place,
    /// Replace existing files; other files in existing folders stay
    #[arg(long)]
    overwrite: bool,
}

/// Copies.
///
/// # Errors
/// Both or neither are in a workspace; something exists at the target; a limit or the quota is in the way; no server answers.
pub async fn copy(server: &Server, args: CopyArgs) -> Result {
    match (args.source, args.target) {
        (Place::Local(source), Place::Workspace { user, path }) => {
            let workspace = Workspace { server, user };
            upload::upload(&workspace, &source, &path, args.overwrite).await
        }
        (Place::Workspace { user, path }, Place::Local(target)) => {
            let workspace = Workspace { server, user };
            download::download(&workspace, &path, &target, args.overwrite).await
        }
        _ => {
            let text = "either SOURCE or TARGET must be USER:PATH, and the other a path on this machine (./a:b if it contains a colon)";
            Err(Failure::Usage(text.to_owned()))
        }
    }
}

/// A user's workspace.
struct Workspace<'a> {
    server: &'a Server,
    user: String,
}

/// Kind of the entry at a path of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    Folder,
    /// A file, a link, or anything else.
    Other,
}

impl Workspace<'_> {
    /// The address of what can be done with its files.
    fn address(&self, verb: &str) -> String {
        format!("/api/machine/users/{}/files{verb}", escaped(&self.user))
    }

    async fn look(&self, path: &str) -> Result<Found> {
        let query = format!("?path={}", escaped(path));
        let request = self.server.request(Method::GET, &self.address(&query));
        let found: Value = self.server.json(request).await?;
        Ok(match text(&found, "kind").as_str() {
            "directory" => Found::Folder,
            "" => Found::Nothing,
            _ => Found::Other,
        })
    }

    /// Formats a path for messages.
    fn shown(&self, path: &str) -> String {
        format!("{}:{path}", self.user)
    }
}

/// `parent` and `name` as one path.
fn join(parent: &str, name: &str) -> String {
    match parent {
        "" => name.to_owned(),
        parent => format!("{parent}/{name}"),
    }
}

/// The folder of a path, and its name there.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}
