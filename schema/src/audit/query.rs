//! The statements of the trail.

use tracing::error;

use super::chain::{BROKEN, ChainKey, End, Which};
use super::fold::Fold;
use super::model::{Entry, Filter, Record};
use crate::connection::Connection;
use crate::db::Tx;
use crate::error::DbError;
use crate::ids::Timestamp;
use crate::statement::{
    execute, fetch_all, fetch_one, fetch_optional, insert_rows, like_pattern, scalar,
    scalar_optional, statements,
};

/// Entries of an export that are read at once.
pub const EXPORT_PAGE: i64 = 500;

/// Columns of an entry.
macro_rules! select_entry {
    ($rest:expr) => {
        concat!(
            "SELECT seq, at, actor, address, action, object, outcome, detail, request_id, hash, coalesce(f.calls, 1) AS count, f.last_at, f.mac \
             FROM audit LEFT JOIN audit_folds f USING (seq) ",
            $rest
        )
    };
}

/// The entries of a [`Filter`].
macro_rules! matching {
    ($rest:literal) => {
        concat!(
            "WHERE ($1 = '' OR lower(actor) = $1) AND ($2 = '' OR action = $2) AND at >= $3 \
             AND (',' || lower(object) || ',') LIKE $4 ESCAPE '!' \
             AND ($6 = '' OR (',' || lower(object) || ',') LIKE ('%,user/' || $6 || ',%') ESCAPE '!' OR (',' || lower(object) || ',') LIKE ('%,container/' || $6 || ',%') ESCAPE '!' \
             OR (',' || lower(object) || ',') LIKE ('%,agent-config/' || $6 || ',%') ESCAPE '!' OR (',' || lower(object) || ',') LIKE ('%,skill-set/' || $6 || ',%') ESCAPE '!' \
             OR (',' || lower(object) || ',') LIKE ('%,workspace/' || $6 || ',%') ESCAPE '!') \
             AND lower(actor || ' ' || address || ' ' || action || ' ' || object || ' ' || outcome || ' ' || detail || ' ' || request_id) LIKE $5 ESCAPE '!' ",
            $rest
        )
    };
}

statements! {
    /// Takes the head for the rest of the transaction, for the next entry: a second writer waits here,
    /// so that numbers have no gap and the chain no fork. Beyond every entry there is, too: a head that was
    /// set back must not keep new entries, and so every change, from being written.
    TAKE_HEAD = "UPDATE audit_ends SET seq = 1 + CASE WHEN seq < (SELECT coalesce(max(seq), 0) FROM audit) \
                 THEN (SELECT max(seq) FROM audit) ELSE seq END WHERE name = 'head' RETURNING name, seq, hash, mac";
    /// Moves an end.
    MOVE_END = "UPDATE audit_ends SET seq = $2, hash = $3, mac = $4 WHERE name = $1";
    /// Puts an end where there is none.
    INSERT_END = "INSERT INTO audit_ends (name, seq, hash, mac) VALUES ($1, $2, $3, $4)";
    /// Both ends.
    ENDS = "SELECT name, seq, hash, mac FROM audit_ends";
    /// Appends an entry.
    INSERT = "INSERT INTO audit (seq, at, actor, address, action, object, outcome, detail, request_id, hash) \
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    /// One page, newest first; the object is one of those named, and the texts are in lower case.
    LIST = select_entry!(matching!("ORDER BY seq DESC LIMIT $7 OFFSET $8"));
    /// How many `LIST` would give without paging.
    COUNT = concat!("SELECT count(*) FROM audit ", matching!(""));
    /// The newest changes that people have made to the service; not what they do in their own workspaces and conversations.
    CHANGES = select_entry!(
        "WHERE outcome = 'ok' AND action <> 'mcp_call' AND action <> 'chat_messages' AND action <> 'login' \
         AND action NOT IN ('login_oidc_callback', 'logout') AND action NOT LIKE 'files!_%' ESCAPE '!' \
         AND action NOT LIKE 'chat!_%' ESCAPE '!' AND actor NOT LIKE 'system:%' ORDER BY seq DESC LIMIT $1"
    );
    /// The next entries.
    FOLLOWING = select_entry!("WHERE seq > $1 ORDER BY seq LIMIT $2");
    /// The first entry that is not older than a moment.
    FIRST_SINCE = "SELECT seq FROM audit WHERE at >= $1 ORDER BY seq LIMIT 1";
    /// The oldest and the newest entry; 0 without any.
    BOUNDS = "SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM audit";
    /// Forgets the oldest entries.
    PRUNE = "DELETE FROM audit WHERE seq <= $1";
    /// The same of numbers of calls.
    PRUNE_FOLDS = "DELETE FROM audit_folds WHERE seq <= $1";
    /// How many calls of a kind have an entry of their own, and which entry stands for the others.
    CALLS = "SELECT CAST(coalesce(sum(CASE WHEN detail LIKE $5 THEN 1 ELSE 0 END), 0) AS BIGINT), max(CASE WHEN detail = $6 THEN seq END) \
             FROM audit WHERE action = 'mcp_call' AND actor = $1 AND object = $2 AND at >= $3 AND at < $4";
    /// Number of calls that an entry stands for.
    FOLD = "SELECT seq, calls, last_at, mac FROM audit_folds WHERE seq = $1";
    /// Remembers that.
    SAVE_FOLD = "INSERT INTO audit_folds (seq, calls, last_at, mac) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (seq) DO UPDATE SET calls = excluded.calls, last_at = excluded.last_at, mac = excluded.mac";
}

/// Begins the trail of a new installation. To be called once in its life: ends that are gone later
/// were removed by somebody, and are not recreated.
pub async fn install(tx: &mut Tx, key: &ChainKey) -> Result<(), DbError> {
    for which in [Which::Head, Which::Anchor] {
        execute!(tx, INSERT_END, which, 0_i64, "", key.end(which, 0, ""))?;
    }
    Ok(())
}

/// The place of the next entry, held until the transaction ends.
#[derive(Debug)]
pub(super) struct Next {
    pub(super) seq: i64,
    previous: String,
}

/// Takes the place of the next entry.
pub(super) async fn take_head(tx: &mut Tx, key: &ChainKey) -> Result<Next, DbError> {
    let head: Option<End> = fetch_optional!(tx, TAKE_HEAD)?;
    let mut head = head.ok_or_else(|| {
        DbError::Corrupt("the head of the audit trail is gone; restore a backup".to_owned())
    })?;
    let seq = head.seq;
    head.seq -= 1;
    if head.is_authentic(key) {
        return Ok(Next {
            seq,
            previous: head.hash,
        });
    }
    // Changes go on being possible and recorded; that somebody was here stays to be found.
    error!(
        seq = head.seq,
        "the head of the audit trail was tampered with; verify the trail"
    );
    Ok(Next {
        seq,
        previous: BROKEN.to_owned(),
    })
}

impl Next {
    /// Appends entries from this place on, the last of which becomes the head.
    pub(super) async fn append(
        self,
        tx: &mut Tx,
        key: &ChainKey,
        entries: &[Entry],
    ) -> Result<(), DbError> {
        let (mut seq, mut hash) = (self.seq - 1, self.previous);
        let mut rows = Vec::with_capacity(entries.len());
        for entry in entries {
            seq += 1;
            hash = key.entry(&hash, seq, entry);
            rows.push((seq, entry, hash.clone()));
        }
        let _: Vec<i64> = insert_rows!(
            tx,
            INSERT,
            rows,
            |(seq, entry, hash)| seq,
            entry.at,
            &entry.actor,
            &entry.address,
            &entry.action,
            &entry.object,
            &entry.outcome,
            &entry.detail,
            &entry.request_id,
            hash
        )?;
        move_end(tx, key, Which::Head, seq, &hash).await
    }
}

/// Appends several entries: fewer statements than one after another.
pub async fn append_all(tx: &mut Tx, key: &ChainKey, entries: &[Entry]) -> Result<(), DbError> {
    if entries.is_empty() {
        return Ok(());
    }
    take_head(tx, key).await?.append(tx, key, entries).await
}

/// Appends an entry in the transaction of what it records. The last thing a transaction does, since
/// every other writer of the trail waits until it ends.
pub async fn append(tx: &mut Tx, key: &ChainKey, entry: &Entry) -> Result<(), DbError> {
    append_all(tx, key, std::slice::from_ref(entry)).await
}

/// Moves an end to the entry with this number and hash.
pub(super) async fn move_end(
    tx: &mut Tx,
    key: &ChainKey,
    which: Which,
    seq: i64,
    hash: &str,
) -> Result<(), DbError> {
    execute!(tx, MOVE_END, which, seq, hash, key.end(which, seq, hash))?;
    Ok(())
}

/// Head and anchor.
pub(super) async fn ends(
    connection: &mut Connection,
) -> Result<(Option<End>, Option<End>), DbError> {
    let ends: Vec<End> = fetch_all!(connection, ENDS)?;
    let find = |which: Which| ends.iter().find(|end| end.which == which).cloned();
    Ok((find(Which::Head), find(Which::Anchor)))
}

/// The oldest and the newest entry; none in an empty trail.
pub async fn bounds(connection: &mut Connection) -> Result<(Option<i64>, Option<i64>), DbError> {
    let (first, last): (i64, i64) = fetch_one!(connection, BOUNDS)?;
    let there = |seq: i64| Some(seq).filter(|seq| *seq != 0);
    Ok((there(first), there(last)))
}

/// The first entry that is not older than a moment.
pub async fn first_since(
    connection: &mut Connection,
    since: Timestamp,
) -> Result<Option<i64>, DbError> {
    scalar_optional!(connection, FIRST_SINCE, since)
}

/// The next entries after one, oldest first.
pub async fn following(
    connection: &mut Connection,
    after: i64,
    limit: i64,
) -> Result<Vec<Record>, DbError> {
    fetch_all!(connection, FOLLOWING, after, limit)
}

/// One page of the selected entries, newest first.
pub async fn list(
    connection: &mut Connection,
    filter: &Filter,
    limit: i64,
    offset: i64,
) -> Result<Vec<Record>, DbError> {
    fetch_all!(
        connection,
        LIST,
        filter.actor.to_ascii_lowercase(),
        filter.action.to_ascii_lowercase(),
        filter.since,
        object_pattern(&filter.object),
        like_pattern(&filter.search),
        escaped(&filter.user),
        limit,
        offset
    )
}

/// The newest changes that people have made to the service, newest first: without sign-ins, calls of tools, and what users do in
/// their own workspaces and conversations.
pub async fn changes(connection: &mut Connection, limit: i64) -> Result<Vec<Record>, DbError> {
    fetch_all!(connection, CHANGES, limit)
}

/// How many entries are selected.
pub async fn found(connection: &mut Connection, filter: &Filter) -> Result<i64, DbError> {
    scalar!(
        connection,
        COUNT,
        filter.actor.to_ascii_lowercase(),
        filter.action.to_ascii_lowercase(),
        filter.since,
        object_pattern(&filter.object),
        like_pattern(&filter.search),
        escaped(&filter.user)
    )
}

/// A text in lower case, as a part of a LIKE pattern.
fn escaped(text: &str) -> String {
    let pattern = like_pattern(text);
    pattern.trim_matches('%').to_owned()
}

/// Forgets the entries up to one.
pub(super) async fn prune(tx: &mut Tx, last: i64) -> Result<u64, DbError> {
    execute!(tx, PRUNE_FOLDS, last)?;
    execute!(tx, PRUNE, last)
}

/// Number of calls by `actor` of `object` in a time with a detail like the first, and the newest entry with the second.
pub(super) async fn calls(
    tx: &mut Tx,
    (actor, object): (&str, &str),
    (begin, end): (Timestamp, Timestamp),
    (listed, folded): (&str, &str),
) -> Result<(i64, Option<i64>), DbError> {
    fetch_one!(tx, CALLS, actor, object, begin, end, listed, folded)
}

/// Number of calls that an entry stands for.
pub(super) async fn fold(tx: &mut Tx, seq: i64) -> Result<Option<Fold>, DbError> {
    fetch_optional!(tx, FOLD, seq)
}

/// Remembers how many calls an entry stands for.
pub(super) async fn save_fold(tx: &mut Tx, fold: &Fold) -> Result<(), DbError> {
    execute!(tx, SAVE_FOLD, fold.seq, fold.calls, fold.last_at, &fold.mac)?;
    Ok(())
}

fn object_pattern(object: &str) -> String {
    match object {
        "" => like_pattern(""),
        object => like_pattern(&format!(",{object},")),
    }
}
