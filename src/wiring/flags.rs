//! Flags of this process that reach agents: recorded for others to compare, and applied before it leads.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reconcilers::runtime::StoreError;
use reconcilers::runtime::leader::LeaseStore;
use reconcilers::stores::LeaseRow;
use schema::clock::SharedClock;
use schema::condition::Reason;
use schema::config::flags::{self, AgentFlags};
use schema::config::history::SavedBy;
use schema::db::Db;
use schema::error::DbError;
use schema::event;
use schema::ids::{Epoch, Timestamp};
use schema::secrets::MasterKey;

use crate::prepare::Prepared;
use crate::settings::{AgentListen, EngineSettings, Settings};

/// Author of the revision that changed flags make.
const ACTOR: &str = "serve";
/// Part of the service that events of changed flags name.
const PART: &str = "flags";

/// Lists the flags of a process that reach agents, and those that are to be equal on all replicas.
pub fn list_flags(settings: &Settings) -> AgentFlags {
    let agent_listen = match settings.agent_listen {
        AgentListen::Auto => "auto".to_owned(),
        AgentListen::At(address) => address.to_string(),
        AgentListen::Off => "off".to_owned(),
    };
    let replica_listen = if settings.replicas.is_some() {
        "on"
    } else {
        "off"
    };
    let [engine, first, second] = match &settings.engine {
        EngineSettings::Docker { host, data_dir, .. } => [
            ("engine", "docker".to_owned()),
            ("docker-host", host.clone()),
            ("engine-data-dir", data_dir.clone()),
        ],
        EngineSettings::Kubernetes { options } => [
            ("engine", "kubernetes".to_owned()),
            ("engine-options", digest_file(options)),
            ("docker-host", String::new()),
        ],
    };
    AgentFlags::new([
        ("agent-listen", agent_listen),
        ("replica-listen", replica_listen.to_owned()),
        engine,
        first,
        second,
    ])
}

/// Makes a short digest of a file that was read before; empty when it cannot be read any more.
fn digest_file(path: &Path) -> String {
    std::fs::read(path).map_or_else(|_| String::new(), |bytes| flags::digest(&bytes))
}

/// Applies the flags of the process that is about to lead.
#[derive(Clone)]
pub struct FlagsOfLeader {
    db: Db,
    master_key: Arc<MasterKey>,
    clock: SharedClock,
    flags: AgentFlags,
}

impl FlagsOfLeader {
    /// The flags of this process.
    pub fn new(prepared: &Prepared, clock: &SharedClock, flags: &AgentFlags) -> Self {
        Self {
            db: prepared.db.clone(),
            master_key: Arc::clone(&prepared.master_key),
            clock: Arc::clone(clock),
            flags: flags.clone(),
        }
    }

    /// Records the flags. Agents get a change in steps; an event names it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn apply(&self) -> Result<(), DbError> {
        let now = self.clock.now();
        let (actor, at) = (ACTOR, now);
        let mut tx = self.db.begin().await?;
        let by = SavedBy { actor, at };
        let changed = flags::apply(&mut tx, &self.master_key, &self.flags, by).await?;
        if let Some(changed) = changed {
            let what = changed.what.join(", ");
            let way = match &changed.rollout {
                Some(rollout) => format!("agents get it in steps by rollout/{rollout}"),
                None => "no agent runs with the former value".to_owned(),
            };
            let message = format!("{what}; {way}");
            tracing::warn!(message, "flags that reach agents have changed");
            event::record_of_service(&mut tx, Reason::Progressing, PART, &message, now).await?;
        }
        tx.commit().await
    }
}

/// The lease row, whose holder applies its flags before it leads.
pub struct LeaseWithFlags {
    /// The row.
    pub row: LeaseRow,
    /// The flags of this process.
    pub flags: FlagsOfLeader,
}

#[async_trait]
impl LeaseStore for LeaseWithFlags {
    async fn try_acquire(
        &self,
        holder: &str,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Option<Epoch>, StoreError> {
        let epoch = self.row.try_acquire(holder, ttl, now).await?;
        if epoch.is_some() {
            let applied = self.flags.apply().await;
            applied.map_err(|error| StoreError(Box::new(error)))?;
        }
        Ok(epoch)
    }

    async fn renew(
        &self,
        holder: &str,
        epoch: Epoch,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.row.renew(holder, epoch, ttl, now).await
    }

    async fn release(&self, holder: &str, epoch: Epoch) -> Result<(), StoreError> {
        self.row.release(holder, epoch).await
    }
}
