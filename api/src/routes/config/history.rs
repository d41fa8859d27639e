//! What every save changed, and going back.

use schema::adapter::Adapter;
use schema::config::history::{self, Access, Past, Revision};
use schema::config::{self, Patch, parse_patch};
use schema::db::Tx;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Saved, Terms, Wanted, make_change, refused, switch};
use crate::answer::Answer;
use crate::deps::{Dependencies, Deps};
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::{Input, Nothing};
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::page::{Page, read_page, search};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("config_history", "/api/admin/config/history", list)
.tokens(Tokens::Read)
            .title(Area::Configuration, "List changes of the configuration")
            .about(
                "Newest first, always one page; the newest 1,000 saves are kept. Values are \
                 masked as in the document; `null` stands for the default. `search` matches \
                 actors and keys.",
            )
            .paged(),
        Route::post("config_rollback", "/api/admin/config/rollback", rollback)
.tokens(Tokens::Admin)
            .title(Area::Configuration, "Roll back the configuration")
            .about(
                "Every key that has changed since the revision returns to its value after that \
                 revision. This is a new save, with a revision of its own. Secrets and `security` \
                 keep their current values. Objects such as `agent` are restored from the \
                 history: masked leaves keep the values stored there now, and keys that did not \
                 exist then are removed. If no value is stored any more for a masked leaf, the \
                 whole request is refused, so that nothing is lost. With `dry_run` nothing is \
                 saved. A change of `web.auth_mode` is tested and confirmed as in `POST /api/config`.",
            )
            .guarded()
            .waits()
            .fails(&[
                switch::UNCONFIRMED,
                switch::UNTESTED,
                Failure(404, "not_found", "no such revision"),
                Failure(
                    409,
                    "history_too_short",
                    "the history does not reach back to the revision",
                ),
                Failure(
                    409,
                    "network_in_use",
                    "the network cannot be changed while containers exist",
                ),
                Failure(
                    422,
                    "invalid_config",
                    "`problems` names every key that cannot be restored",
                ),
                Failure(
                    422,
                    "not_available_yet",
                    "the values are valid, but not supported yet",
                ),
            ]),
    ]
}

/// Most saves of one page: each may have changed megabytes.
const LONGEST_PAGE: u32 = 50;

/// The changes of the configuration.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConfigHistory)]
pub struct Listing {
    /// Newest first; the newest 1,000 are kept, and no more than 64 MiB of them.
    history: Vec<Revision>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/config/history`: who changed what and when, newest first, secrets masked. Always one page, of at
/// most 50.
///
/// # Errors
/// Only when the database fails.
async fn list(_: Superadmin, input: Input<Nothing>, deps: Deps) -> Result<Answer<Listing>> {
    let mut paging = input.paging.unwrap_or_default();
    paging.page_size = paging.page_size.min(LONGEST_PAGE);
    let paging = Some(&paging);
    let mut snapshot = deps.db.snapshot().await?;
    let adapter = deps.adapter.current_in(&mut snapshot).await?;
    let access = access(&deps, &adapter);
    let (history, page) = read_page!(paging, window => {
        history::list(&mut snapshot, access, search(paging), window.limit, window.offset)
    });
    Ok(Answer::ok(
        "changes of the configuration, newest first",
        Listing { history, page },
    ))
}

/// The form of `POST /api/admin/config/rollback`.
#[derive(Debug, Deserialize, ToSchema)]
pub struct RollbackForm {
    /// Restore the configuration as it was after this revision.
    #[schema(example = 3)]
    revision: i64,
    /// Report what would change, without saving.
    #[serde(default)]
    dry_run: bool,
    /// Digest of the plan of a change of `web.auth_mode`, as `purge.confirm` of a dry run shows it.
    #[serde(default)]
    #[schema(example = "")]
    confirm: String,
    /// Change `web.auth_mode` without a test of the new source of users.
    #[serde(default)]
    force: bool,
}

/// `POST /api/admin/config/rollback`: every key that has changed since the revision becomes what it was after it.
/// Secrets and `security` stay as they are now. Objects such as `agent` are sent back as the history shows them:
/// a masked leaf keeps the stored one, as in any save. It is a save like any other, with a revision of its own.
///
/// # Errors
/// 404 for a revision that is still to come, 409 `history_too_short`; otherwise as a save: 422 also for a masked
/// leaf of which nothing is stored any more, so that nothing is lost unsaid.
async fn rollback(
    Superadmin(actor): Superadmin,
    input: Input<RollbackForm>,
    deps: Deps,
) -> Result<Answer<Saved>> {
    let RollbackForm {
        revision,
        dry_run,
        confirm,
        force,
    } = input.params;
    let terms = Terms {
        dry_run,
        confirm,
        force,
        if_generation: input.if_generation,
        wait: input.wait,
    };
    make_change(
        &deps,
        &actor,
        &input.meta,
        &Wanted::Revision(revision),
        terms,
    )
    .await
}

/// The values of the keys that have changed since a revision, as it left them.
pub(super) async fn read_revision(
    tx: &mut Tx,
    deps: &Dependencies,
    revision: i64,
) -> Result<Patch> {
    let adapter = deps.adapter.current_in(tx).await?;
    let past = history::at(tx, access(deps, &adapter), revision).await?;
    patch(past, revision)
}

fn access<'a>(deps: &'a Dependencies, adapter: &'a Adapter) -> Access<'a> {
    Access {
        master_key: &deps.master_key,
        secret_paths: &adapter.secret_paths,
    }
}

/// What a request would ask for that wants the past back.
fn patch(past: Past, revision: i64) -> Result<Patch> {
    let values = match past {
        Past::Known(values) => values,
        Past::NotYet => return Err(ApiError::not_found(format!("revision {revision}"))),
        Past::Forgotten => {
            let (kept, mebibytes) = (history::KEPT, history::KEPT_BYTES >> 20);
            let message = format!(
                "the history does not reach back to revision {revision}; only the newest {kept} changes are kept, and no more than {mebibytes} MiB of them"
            );
            return Err(ApiError::conflict("history_too_short", message));
        }
    };
    let goes_back = |key: &String| config::find(key).is_some_and(|def| !def.is_secret());
    let values: Map<String, Value> = values
        .into_iter()
        .filter(|(key, _)| goes_back(key))
        .collect();
    parse_patch(&Value::Object(values)).map_err(refused)
}
