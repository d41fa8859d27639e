//! The audit trail, as superadmins read, verify and take it away.

use bytes::Bytes;
use futures::Stream;
use futures::stream::try_unfold;
use schema::audit::{self, Entry, Filter, Problem, Record};
use schema::error::DbError;
use schema::ids::Timestamp;
use schema::reader::Reader;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::page::{Page, read_page, search};
use super::params;
use crate::answer::{Answer, JsonLines};
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result, chain};
use crate::input::{Input, Nothing};
use crate::route::{Area, Route, Tokens};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("audit", "/api/admin/audit", list)
            .tokens(Tokens::Read)
            .title(Area::Operators, "List audit entries")
            .about(
                "Newest first, always one page. `search` matches actors, objects, actions and \
                 details.",
            )
            .paged(),
        Route::get("audit_verify", "/api/admin/audit/verify", verify)
            .tokens(Tokens::Read)
            .title(Area::Operators, "Verify the audit trail")
            .about(
                "Checks every entry. A trail that was tampered with is an answer with `valid` \
                 false, not a failure.",
            ),
        Route::get("audit_export", "/api/admin/audit/export", export)
            .tokens(Tokens::None)
            .title(Area::Operators, "Export the audit trail")
            .about(
                "JSON Lines, oldest first, each entry with its hash. A download that ends early \
                 was interrupted by an error.",
            ),
    ]
}

/// Which entries.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AuditFilter)]
pub struct Wanted {
    /// Only entries of this actor.
    #[schema(example = "admin")]
    actor: Option<String>,
    /// Only entries about this object: `kind/name`.
    #[schema(example = "user/alice")]
    object: Option<String>,
    /// Only entries about what belongs, or belonged, to a user of this name: the account, its container, configuration, skills and
    /// workspace.
    #[schema(example = "alice")]
    user: Option<String>,
    /// Only entries of this action.
    #[schema(example = "users_create")]
    action: Option<String>,
    /// Only entries from this time on: RFC 3339, or Unix seconds.
    #[schema(example = "2026-05-11T11:46:40Z")]
    since: Option<String>,
}

/// An entry in the list. Hashes are in the export.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub(super) struct Shown {
    /// Its number, without gaps.
    seq: i64,
    #[serde(flatten)]
    entry: Entry,
    /// How many events it stands for: more than 1 of calls of one tool, by one user and with one outcome, beyond 10,000 a day.
    #[schema(example = 1)]
    count: i64,
    /// Time of the newest of several; null for a single one.
    #[schema(required = true)]
    last_at: Option<Timestamp>,
}

impl From<Record> for Shown {
    fn from(record: Record) -> Self {
        Self {
            seq: record.seq,
            count: record.count,
            last_at: record.last_at,
            entry: record.entry,
        }
    }
}

/// Entries of the trail, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntries)]
pub struct Entries {
    entries: Vec<Shown>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/audit`: who did what, from where, when; newest first. Always one page, since the
/// trail only grows.
///
/// # Errors
/// 400 for a bad time.
async fn list(_: Superadmin, input: Input<Wanted>, deps: Deps) -> Result<Answer<Entries>> {
    let paging = input.paging.unwrap_or_default();
    let paging = Some(&paging);
    let filter = filter(input.params, search(paging))?;
    let mut snapshot = deps.db.snapshot().await?;
    let (records, page) = read_page!(paging, window => async {
        let total = audit::found(&mut snapshot, &filter).await?;
        let records = audit::list(&mut snapshot, &filter, window.limit, window.offset).await?;
        Ok::<_, DbError>((records, total))
    });
    let entries = records.into_iter().map(Shown::from).collect();
    Ok(Answer::ok(
        "the audit trail, newest first",
        Entries { entries, page },
    ))
}

fn filter(wanted: Wanted, search: &str) -> Result<Filter> {
    let since = params::moment("since", wanted.since.as_deref())?;
    Ok(Filter {
        actor: wanted.actor.unwrap_or_default(),
        object: wanted.object.unwrap_or_default(),
        user: wanted.user.unwrap_or_default(),
        action: wanted.action.unwrap_or_default(),
        since: since.unwrap_or(Timestamp::from_millis(0)),
        search: search.to_owned(),
    })
}

/// The result of the verification.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditVerdict)]
pub struct Verified {
    /// Every entry is intact, and none is missing.
    valid: bool,
    /// Number of intact entries, up to the first problem.
    entries: u64,
    /// The oldest entry; null when there is none.
    first_seq: Option<i64>,
    /// The newest entry; null when there is none.
    last_seq: Option<i64>,
    /// The first problem.
    problem: Option<Problem>,
}

/// `GET /api/admin/audit/verify`: whether every entry is as it was written, and none is missing. Reads
/// the whole trail; whoever asks meanwhile waits for their turn.
///
/// # Errors
/// Only when the database fails: a trail that was tampered with is an answer.
async fn verify(_: Superadmin, _: Input<Nothing>, deps: Deps) -> Result<Answer<Verified>> {
    let _turn = deps
        .turns
        .audit_check
        .acquire()
        .await
        .map_err(ApiError::internal)?;
    let mut snapshot = deps.db.snapshot().await?;
    let verdict = audit::verify(&mut snapshot, deps.writer.key()).await?;
    let message = match &verdict.problem {
        None => "the audit trail is intact",
        Some(problem) => {
            tracing::error!(seq = problem.seq, problem = problem.message, "audit trail");
            "the audit trail was tampered with"
        }
    };
    let verified = Verified {
        valid: verdict.problem.is_none(),
        entries: verdict.entries,
        first_seq: verdict.first_seq,
        last_seq: verdict.last_seq,
        problem: verdict.problem,
    };
    Ok(Answer::ok(message, verified))
}

/// From when.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AuditExportFrom)]
pub struct ExportFrom {
    /// Only entries from this time on: RFC 3339, or Unix seconds.
    #[schema(example = "2026-05-11T11:46:40Z")]
    since: Option<String>,
}

/// `GET /api/admin/audit/export`: the entries up to now, oldest first, one JSON object a line, each with
/// its hash. What the retention removes while it is under way is not in it, as the numbers show.
///
/// # Errors
/// 400 for a bad time. A database that fails later ends the download early, which clients see.
async fn export(_: Superadmin, input: Input<ExportFrom>, deps: Deps) -> Result<JsonLines> {
    let since = params::moment("since", input.params.since.as_deref())?;
    let mut connection = deps.db.read().await?;
    let (_, last) = audit::bounds(&mut connection).await?;
    let last = last.unwrap_or(0);
    let after = match since {
        None => i64::MIN,
        Some(since) => match audit::first_since(&mut connection, since).await? {
            Some(first) => first - 1,
            None => last,
        },
    };
    drop(connection);
    let lines = lines(deps.db.clone(), after, last);
    Ok(JsonLines::new("audit.jsonl", lines))
}

/// The entries after one, up to another, page by page. No connection to the database is held while a
/// slow reader takes its time.
fn lines(db: Reader, after: i64, last: i64) -> impl Stream<Item = Result<Bytes, DbError>> + Send {
    try_unfold(after, move |after| {
        let db = db.clone();
        async move {
            let page = page(&db, after, last).await.inspect_err(|error| {
                let error = chain(error);
                tracing::error!(error, "an export of the audit trail ends early");
            })?;
            let Some(newest) = page.last().map(|record| record.seq) else {
                return Ok(None);
            };
            let mut text = Vec::new();
            for record in &page {
                serde_json::to_writer(&mut text, record)
                    .map_err(|error| DbError::Corrupt(error.to_string()))?;
                text.push(b'\n');
            }
            Ok(Some((Bytes::from(text), newest)))
        }
    })
}

async fn page(db: &Reader, after: i64, last: i64) -> Result<Vec<Record>, DbError> {
    if after >= last {
        return Ok(Vec::new());
    }
    let mut connection = db.read().await?;
    let mut page = audit::following(&mut connection, after, audit::EXPORT_PAGE).await?;
    page.retain(|record| record.seq <= last);
    Ok(page)
}

#[cfg(test)]
mod tests;
