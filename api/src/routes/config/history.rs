//! What every save changed, and going back.

use schema::adapter::Adapter;
use schema::config::history::{self, Access, Past, Revision};
use schema::config::{self, Patch, parse_patch};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Saved, described, draft, finish, refused, unsaved};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::{Input, Nothing};
use crate::route::{Area, Failure, Route};
use crate::routes::page::{Page, read_page, search};
use schema::audit::About;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("config_history", "/api/admin/config/history", list)
            .title(Area::Configuration, "List changes of the configuration")
            .about(
                "Newest first, always one page; the newest 1,000 saves are kept. Values are \
                 masked as in the document; `null` stands for the default. `search` matches \
                 actors and keys.",
            )
            .paged(),
        Route::post("config_rollback", "/api/admin/config/rollback", rollback)
            .title(Area::Configuration, "Roll back the configuration")
            .about(
                "Every key that has changed since the revision returns to its value after that \
                 revision. This is a new save, with a revision of its own. Secrets and `security` \
                 keep their current values. Objects such as `agent` are restored from the \
                 history: masked leaves keep the values stored there now, and keys that did not \
                 exist then are removed. If no value is stored any more for a masked leaf, the \
                 whole request is refused, so that nothing is lost. With `dry_run` nothing is \
                 saved.",
            )
            .guarded()
            .waits()
            .fails(&[
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
}

/// `POST /api/admin/config/rollback`: every key that has changed since the revision becomes what it was after it.
/// Secrets and `security` stay as they are now. Objects such as `agent` are sent back as the history shows them:
/// a masked leaf keeps the stored one, as in any save. It is a save like any other, with a revision of its own.
///
/// # Errors
/// 404 for a revision that is still to come, 409 `history_too_short`; otherwise as saving: 422 also for a masked
/// leaf of which nothing is stored any more, so that nothing is lost unsaid.
async fn rollback(
    Superadmin(actor): Superadmin,
    input: Input<RollbackForm>,
    deps: Deps,
) -> Result<Answer<Saved>> {
    let RollbackForm { revision, dry_run } = input.params;
    let mut tx = input.meta.begin(&deps).await?;
    config::query::lock(&mut tx).await?;
    let adapter = deps.adapter.current_in(&mut tx).await?;
    let past = history::at(&mut tx, access(&deps, &adapter), revision).await?;
    let patch = patch(past, revision)?;
    let draft = draft(&mut tx, &deps, patch, input.if_generation).await?;
    let detail = format!("to revision {revision}; {}", described(&draft.changes));
    let about = About::whole("config").detail(detail);
    if dry_run {
        return unsaved(&deps, &actor, tx, draft).await;
    }
    finish(&deps, &actor, tx, draft, about, input.wait).await
}

fn access<'a>(deps: &'a Deps, adapter: &'a Adapter) -> Access<'a> {
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
