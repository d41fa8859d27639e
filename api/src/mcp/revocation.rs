//! Ends what was opened with a token that is no longer valid: rotated, of an account that is disabled or deleted, or no longer on the
//! whitelist; and executors that the policy has switched off. Requests are checked one by one; this is for what stays open.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use schema::config::policy::Mode;
use schema::ids::{Uid, UserName};
use schema::mcp_token::{self, Holder};
use schema::{group, whitelist};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::auth::mcp_token::may_use;
use crate::deps::Deps;
use crate::error::Result;
use crate::executors::Close;

/// How often it is asked whether the whitelist and groups are what they were: they are no objects, whose changes are reported. And how
/// often newcomers are judged, whose tokens may have been revoked between being shown and being in use.
const LOOK: Duration = Duration::from_secs(1);
/// When to try again what has failed.
const RETRY: Duration = Duration::from_secs(1);

/// Ends them, until the service stops.
pub async fn run(deps: Deps) {
    let shutdown = deps.shutdown.clone();
    let _ = shutdown.run_until_cancelled(keep(&deps)).await;
}

async fn keep(deps: &Deps) {
    loop {
        deps.mcp.presence.any().await;
        if let Err(error) = watch(deps).await {
            error.log();
            sleep(RETRY).await;
        }
    }
}

/// Looks at those whom changes are about, as long as anybody is there.
async fn watch(deps: &Deps) -> Result<()> {
    let mut watching = deps.watch.join().await?;
    let mut settings = deps.settings.clone();
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut lists = Lists::read(deps).await?;
    // What has changed before it was watched for.
    judge_all(deps).await?;
    while !deps.mcp.presence.is_empty() {
        tokio::select! {
            batch = watching.next() => {
                let Some(batch) = batch else {
                    return Ok(());
                };
                match batch.iter().any(|report| report.is_resync()) {
                    true => judge_all(deps).await?,
                    false => {
                        let changed: HashSet<&Uid> = batch.iter().filter_map(|report| report.uid()).collect();
                        judge_tokens(deps, |user| changed.contains(user)).await?;
                    }
                }
            }
            changed = settings.changed() => {
                if changed.is_err() {
                    return Ok(());
                }
                judge_all(deps).await?;
            }
            _ = look.tick() => {
                let newcomers = deps.mcp.presence.newcomers();
                let now = Lists::read(deps).await?;
                if now.whitelist != lists.whitelist {
                    judge_tokens(deps, |_| true).await?;
                }
                if now.groups != lists.groups {
                    judge_executors(deps, |_| true).await?;
                }
                if !newcomers.is_empty() {
                    judge_executors(deps, |user| newcomers.contains(user)).await?;
                    judge_tokens(deps, |user| newcomers.contains(user)).await?;
                }
                lists = now;
            }
        }
    }
    Ok(())
}

/// Which lists there are: another number is another list.
struct Lists {
    whitelist: i64,
    groups: i64,
}

impl Lists {
    async fn read(deps: &Deps) -> Result<Self> {
        let mut connection = deps.db.read().await?;
        Ok(Self {
            whitelist: whitelist::revision(&mut connection).await?,
            groups: group::revision(&mut connection).await?,
        })
    }
}

async fn judge_all(deps: &Deps) -> Result<()> {
    judge_executors(deps, |_| true).await?;
    judge_tokens(deps, |_| true).await
}

/// Disconnects the executors that the policy has switched off, of those who are `wanted`.
async fn judge_executors(deps: &Deps, wanted: impl Fn(&Uid) -> bool) -> Result<()> {
    let mut executors = deps.mcp.hub.connected();
    executors.retain(|executor| wanted(&executor.key.user));
    if executors.is_empty() {
        return Ok(());
    }
    let modes = deps.mcp.modes(&executors).await?;
    for (executor, mode) in executors.iter().zip(modes) {
        if mode == Mode::Off {
            let (user, service) = (&executor.about.user, executor.key.service);
            tracing::info!(%user, %service, "an executor is disconnected: the policy has switched it off");
            let hub = &deps.mcp.hub;
            hub.dismiss(executor.connection, Close::SwitchedOff);
        }
    }
    Ok(())
}

/// Ends what those have opened who are `wanted` and may not use their token any more.
async fn judge_tokens(deps: &Deps, wanted: impl Fn(&Uid) -> bool) -> Result<()> {
    let present = deps.mcp.presence.all(wanted);
    if present.is_empty() {
        return Ok(());
    }
    let names: Vec<UserName> = present.iter().map(|(_, _, name)| name.clone()).collect();
    let mut connection = deps.db.read().await?;
    let holders = mcp_token::of_names(&mut connection, &names).await?;
    drop(connection);
    let holders: HashMap<Uid, Holder> = holders
        .into_iter()
        .map(|holder| (holder.uid.clone(), holder))
        .collect();
    let settings = deps.settings();
    for (uid, version, name) in present {
        let holder = holders.get(&uid).filter(|holder| holder.version == version);
        let holder = holder.filter(|holder| may_use(holder, &settings).is_ok());
        match holder {
            None => {
                tracing::info!(user = %name, "connections with an MCP token that is no longer valid are ended");
                deps.mcp.revoke(&uid, version);
            }
            // Rules and records go by the name.
            Some(holder) if holder.name != name => {
                let now = &holder.name;
                tracing::info!(user = %name, %now, "connections of a renamed user are ended, and come back under the new name");
                deps.mcp.reconnect(&uid, version);
            }
            Some(_) => {}
        }
    }
    Ok(())
}
