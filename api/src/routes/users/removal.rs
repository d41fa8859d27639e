//! Preview of the removal of a user.

use std::time::Duration;

use schema::agent_config;
use schema::config::{Config, keys, query as config_query};
use schema::group;
use schema::ids::PlainName;
use schema::reader::Connection;
use schema::session;
use schema::user::{self, User};
use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::session::VALIDITY;
use crate::deps::Deps;
use crate::error::Result;
use crate::replica;

/// Fate of removed users' directories.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UserArchive)]
pub struct Archive {
    /// Name in the archive; `<time>` is the time of the removal.
    #[schema(example = "alice-<time>")]
    directory: String,
    /// Retention (`archive.retention`); null: forever.
    #[schema(required = true, example = "30days")]
    kept: Option<String>,
    /// Command that copies its workspace back, on the server.
    #[schema(example = "agentyard archive restore alice@<time> --to alice")]
    restore: String,
}

impl Archive {
    /// Of a user, or of each of several as `<user>`.
    pub(super) async fn read(connection: &mut Connection, deps: &Deps, name: &str) -> Result<Self> {
        let (values, _) = config_query::load(connection, &deps.master_key).await?;
        let kept: Option<Duration> = Config::from_stored(values).get(&keys::archive::RETENTION);
        Ok(Self {
            directory: format!("{name}-<time>"),
            kept: kept.map(|kept| humantime::format_duration(kept).to_string()),
            restore: format!("agentyard archive restore {name}@<time> --to {name}"),
        })
    }

    /// Retention, as a clause.
    pub(super) fn kept_text(&self) -> String {
        match &self.kept {
            None => "kept until an administrator deletes it".to_owned(),
            Some(kept) => format!("kept for {kept}"),
        }
    }
}

/// Effects of a user's removal.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UserRemoval)]
pub struct Removal {
    /// Live sessions, which end.
    sessions: usize,
    /// Connected browsers and desktops, which are disconnected.
    executors: usize,
    /// Groups that the user is in.
    groups: Vec<PlainName>,
    /// Channels that the user has set; their values are forgotten.
    channels: Vec<String>,
    /// Sites of which the user has handed over cookies, which are forgotten.
    cookies: usize,
    /// Bytes that the directory takes on the disk, as last measured; null before that.
    #[schema(required = true)]
    used_bytes: Option<i64>,
    /// Fate of the directory.
    archive: Archive,
    /// Ways for the user to return.
    #[schema(example = "the name is free for a new user")]
    afterwards: &'static str,
}

impl Removal {
    pub(super) async fn read(
        connection: &mut Connection,
        deps: &Deps,
        user: &User,
        afterwards: &'static str,
    ) -> Result<Self> {
        let uid = &user.uid;
        let oldest = deps.clock.now().minus(VALIDITY).as_secs();
        let listing = user::listing(connection, uid).await?;
        let executors = replica::list_connected(deps, Some(uid)).await;
        Ok(Self {
            sessions: session::list(connection, uid, oldest).await?.len(),
            executors: executors.len(),
            groups: group::names_of_users(connection)
                .await?
                .remove(uid)
                .unwrap_or_default(),
            channels: agent_config::set_channels(connection, uid).await?,
            cookies: agent_config::list_cookies(connection, uid).await?.len(),
            used_bytes: listing.and_then(|listing| listing.used_bytes),
            archive: Archive::read(connection, deps, user.name.as_str()).await?,
            afterwards,
        })
    }

    pub(super) fn message(&self) -> String {
        format!(
            "nothing was changed; the container would be removed and the directory archived as {}, {}; {}",
            self.archive.directory,
            self.archive.kept_text(),
            self.afterwards
        )
    }
}
