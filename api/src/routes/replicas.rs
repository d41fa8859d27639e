//! The processes that serve this installation.

use std::collections::BTreeMap;

use schema::config::flags::{self, AgentFlags};
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::Result;
use crate::input::{Input, Nothing};
use crate::replica::describe_differences;
use crate::route::{Area, Route, Tokens};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("replicas_list", "/api/admin/replicas", list)
            .tokens(Tokens::Read)
            .title(Area::Operators, "List replicas")
            .about(
                "The processes that serve this installation, with the flags that are to be equal on all of them. On SQLite there \
                 is one.",
            ),
    ]
}

/// All replicas.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReplicaList {
    replicas: Vec<ShownReplica>,
}

/// A process that serves this installation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Replica)]
pub struct ShownReplica {
    /// A number that no other replica has or had.
    number: i64,
    /// Host and process.
    #[schema(example = "yard-1:4711")]
    name: String,
    /// The URL at which other replicas reach it; null when they do not.
    address: Option<String>,
    /// It has answered this request.
    answers: bool,
    /// It runs the reconcilers.
    leads: bool,
    /// Flags of `serve` that are to be equal on all replicas, and their values.
    #[schema(example = json!({"agent-listen": "auto", "docker-host": "unix:///var/run/docker.sock"}))]
    flags: BTreeMap<String, String>,
    /// Flags that agents have with another value; a sentence each.
    #[schema(example = json!([]))]
    differences: Vec<String>,
}

/// `GET /api/admin/replicas`.
///
/// # Errors
/// Only when the database fails.
async fn list(_: Superadmin, _: Input<Nothing>, deps: Deps) -> Result<Answer<ReplicaList>> {
    let mut connection = deps.db.read().await?;
    let all = deps.processes.list(&mut connection).await?;
    let agents = flags::read(&mut connection).await?;
    drop(connection);
    let leader = deps.leadership.leader();
    let replicas = all.into_iter().map(|replica| {
        let flags = AgentFlags::from_text(&replica.flags);
        let answers = deps.processes.is_this(&replica);
        let is_holder = leader.holder.as_ref() == Some(&replica.name);
        ShownReplica {
            number: replica.number,
            differences: agents
                .iter()
                .flat_map(|agents| describe_differences(&replica, agents))
                .collect(),
            address: Some(replica.address).filter(|address| !address.is_empty()),
            answers,
            leads: is_holder || (answers && leader.leading),
            name: replica.name,
            flags: flags
                .iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        }
    });
    let replicas = replicas.collect();
    Ok(Answer::ok("replicas", ReplicaList { replicas }))
}
