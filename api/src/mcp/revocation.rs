//! Ends what was opened with a token that is no longer valid: rotated, of an account that is disabled or deleted, or no longer on the
//! whitelist; and executors that the policy has switched off. Requests are checked one by one; this is for what stays open.

use std::collections::HashMap;
use std::time::Duration;

use schema::config::policy::Mode;
use schema::ids::{Uid, UserName};
use schema::mcp_token::{self, Holder};
use tokio::time::sleep;

use crate::auth::mcp_token::may_use;
use crate::deps::Deps;
use crate::error::Result;
use crate::executors::Close;

/// How often everybody is looked at: the whitelist is no object whose changes are reported.
const RECHECK: Duration = Duration::from_secs(15);
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
    // What has changed before it was watched for.
    judge(deps, |_| true).await?;
    while !deps.mcp.presence.is_empty() {
        tokio::select! {
            batch = watching.next() => {
                let Some(batch) = batch else {
                    return Ok(());
                };
                match batch.iter().any(|report| report.is_resync()) {
                    true => judge(deps, |_| true).await?,
                    false => {
                        let changed: Vec<&Uid> = batch.iter().filter_map(|report| report.uid()).collect();
                        judge(deps, |uid| changed.contains(&uid)).await?;
                    }
                }
            }
            changed = settings.changed() => {
                if changed.is_err() {
                    return Ok(());
                }
                judge(deps, |_| true).await?;
            }
            () = sleep(RECHECK) => judge(deps, |_| true).await?,
        }
    }
    Ok(())
}

/// Ends what those have opened who are `wanted` and may not use their token any more, and their executors that are switched off.
async fn judge(deps: &Deps, wanted: impl Fn(&Uid) -> bool) -> Result<()> {
    for executor in deps.mcp.hub.connected() {
        let (key, user) = (&executor.key, &executor.about.user);
        if wanted(&key.user) && deps.mcp.rules(key, user).await?.mode == Mode::Off {
            tracing::info!(%user, service = %key.service, "an executor is disconnected: the policy has switched it off");
            deps.mcp
                .hub
                .dismiss(executor.connection, Close::SwitchedOff);
        }
    }
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
        if holder.is_none_or(|holder| may_use(holder, &settings).is_err()) {
            tracing::info!(user = %name, "connections with an MCP token that is no longer valid are ended");
            deps.mcp.revoke(&uid, version);
        }
    }
    Ok(())
}
