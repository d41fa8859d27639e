//! Statements on repositories.

use zeroize::Zeroizing;

use super::model::{
    Credential, NewRepository, RepositoryFacts, RepositoryListing, RepositoryRow, SealedCredential,
};
use crate::connection::Connection;
use crate::db::{ObservedTx, Tx};
use crate::error::DbError;
use crate::ids::{Generation, Kind, PlainName, Timestamp, Uid};
use crate::object::status_columns;
use crate::secrets::MasterKey;
use crate::statement::{
    execute, fetch_all, fetch_optional, like_pattern, scalar, scalar_optional, statements,
};
use crate::{meta, object};

/// Whoever cleans up after a repository: its reconciler.
pub(super) const FINALIZER: &str = "skill-repository";

/// Columns of a repository.
macro_rules! select_repository {
    ($more:expr, $rest:expr) => {
        concat!(
            "SELECT r.uid, r.name, o.generation, o.deleted_at, r.url, r.ref, r.ref_type, r.public, r.pull_token, r.cancelled, r.host_key_token, \
             f.pull_token AS done_token, f.commit_id, f.pulled_at, coalesce(f.skill_count, 0) AS skill_count, \
             coalesce(f.warnings, '[]') AS warnings, coalesce(f.listing, 0) AS listing, f.known_hosts, \
             coalesce(f.host_key_token, '') AS known_token, f.failed_token, f.failed_reason, f.failure",
            $more,
            " FROM skill_repositories r JOIN objects o ON o.kind = 'skill-repository' AND o.uid = r.uid \
             LEFT JOIN skill_repository_facts f ON f.uid = r.uid ",
            $rest
        )
    };
}

statements! {
    /// Reads one without its skills.
    GET = select_repository!("", "WHERE r.uid = $1");
    /// Reads one.
    GET_WHOLE = select_repository!(", coalesce(f.skills, '[]') AS skills", "WHERE r.uid = $1");
    /// Finds one by the key of its name.
    FIND = select_repository!(", coalesce(f.skills, '[]') AS skills", "WHERE r.name_key = $1");
    /// Reads all without their skills, in one scan.
    ALL = select_repository!("", "ORDER BY r.uid");
    /// One page, without the skills; `$1` is a LIKE pattern on the key of the name.
    LIST = select_repository!(
        concat!(", r.credentials AS sealed, ", status_columns!()),
        "LEFT JOIN object_status s ON s.kind = 'skill-repository' AND s.uid = r.uid WHERE r.name_key LIKE $1 ESCAPE '!' ORDER BY r.name_key LIMIT $2 OFFSET $3"
    );
    /// How many `LIST` would give without paging.
    COUNT = "SELECT count(*) FROM skill_repositories WHERE name_key LIKE $1 ESCAPE '!'";
    /// Records one.
    INSERT = "INSERT INTO skill_repositories (uid, name, name_key, url, ref, ref_type, public, pull_token, credentials) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    /// Changes one, and asks for a pull.
    UPDATE = "UPDATE skill_repositories SET name = $2, url = $3, ref = $4, ref_type = $5, public = $6, pull_token = $7, cancelled = 0, credentials = $8 WHERE uid = $1";
    /// Asks for a pull.
    SET_TOKEN = "UPDATE skill_repositories SET pull_token = $2, cancelled = 0 WHERE uid = $1";
    /// Takes the newest request back.
    CANCEL = "UPDATE skill_repositories SET cancelled = 1 WHERE uid = $1";
    /// Asks to forget the host's keys.
    FORGET_HOST_KEY = "UPDATE skill_repositories SET host_key_token = $2 WHERE uid = $1";
    /// The sealed credentials.
    CREDENTIALS = "SELECT credentials FROM skill_repositories WHERE uid = $1";
    /// What the reconciler remembers; nothing happens when the repository is gone.
    SAVE_FACTS = "INSERT INTO skill_repository_facts (uid, pull_token, commit_id, pulled_at, skills, known_hosts, host_key_token, failed_token, failed_reason, failure, warnings, listing, skill_count) \
                  SELECT uid, $2, $3, CAST($4 AS BIGINT), coalesce(CAST($5 AS TEXT), '[]'), $6, $7, $8, $9, $10, $11, CAST($12 AS BIGINT), coalesce(CAST($13 AS BIGINT), 0) FROM skill_repositories WHERE uid = $1 \
                  ON CONFLICT (uid) DO UPDATE SET pull_token = excluded.pull_token, commit_id = excluded.commit_id, pulled_at = excluded.pulled_at, \
                  skills = coalesce(CAST($5 AS TEXT), skill_repository_facts.skills), \
                  skill_count = coalesce(CAST($13 AS BIGINT), skill_repository_facts.skill_count), known_hosts = excluded.known_hosts, host_key_token = excluded.host_key_token, \
                  failed_token = excluded.failed_token, failed_reason = excluded.failed_reason, failure = excluded.failure, \
                  warnings = excluded.warnings, listing = excluded.listing";
    /// Removes the row.
    DELETE = "DELETE FROM skill_repositories WHERE uid = $1";
}

fn context(uid: &Uid) -> String {
    format!("skill_repositories/{uid}/credentials")
}

fn seal(
    key: &MasterKey,
    uid: &Uid,
    credentials: &[Credential],
) -> Result<Option<Vec<u8>>, DbError> {
    if credentials.is_empty() {
        return Ok(None);
    }
    let sealed: Vec<SealedCredential> = credentials.iter().map(SealedCredential::from).collect();
    let text = Zeroizing::new(serde_json::to_vec(&sealed)?);
    let sealed = key.seal(&context(uid), &text);
    sealed
        .map(Some)
        .map_err(|e| DbError::Sealed(format!("{}: {e}", context(uid))))
}

/// Reads one without its skills.
pub async fn get(connection: &mut Connection, uid: &Uid) -> Result<Option<RepositoryRow>, DbError> {
    fetch_optional!(connection, GET, uid)
}

/// Reads one with its skills, of which there may be thousands.
pub async fn get_whole(
    connection: &mut Connection,
    uid: &Uid,
) -> Result<Option<RepositoryRow>, DbError> {
    fetch_optional!(connection, GET_WHOLE, uid)
}

/// Finds one with its skills by its name, without regard to case. One that is being removed is found, too.
pub async fn find(
    connection: &mut Connection,
    name: &PlainName,
) -> Result<Option<RepositoryRow>, DbError> {
    fetch_optional!(connection, FIND, name.key())
}

/// Reads all without their skills, in one scan.
pub async fn all(connection: &mut Connection) -> Result<Vec<RepositoryRow>, DbError> {
    fetch_all!(connection, ALL)
}

/// One page without the skills, with the total. `search` is a case-insensitive substring.
pub async fn list(
    connection: &mut Connection,
    search: &str,
    limit: i64,
    offset: i64,
) -> Result<(Vec<RepositoryListing>, i64), DbError> {
    let pattern = like_pattern(&search.to_lowercase());
    let total = scalar!(connection, COUNT, &pattern)?;
    let rows = fetch_all!(connection, LIST, &pattern, limit, offset)?;
    Ok((rows, total))
}

/// A repository's credentials, opened.
pub async fn credentials(
    connection: &mut Connection,
    key: &MasterKey,
    uid: &Uid,
) -> Result<Vec<Credential>, DbError> {
    let sealed: Option<Option<Vec<u8>>> = scalar_optional!(connection, CREDENTIALS, uid)?;
    open(key, uid, sealed.flatten().as_deref())
}

/// The credentials of a repository in a list, opened; no query.
///
/// # Errors
/// [`DbError::Sealed`] when they were sealed with another key.
pub fn listed_credentials(
    key: &MasterKey,
    listing: &RepositoryListing,
) -> Result<Vec<Credential>, DbError> {
    open(key, &listing.row.uid, listing.sealed.as_deref())
}

fn open(key: &MasterKey, uid: &Uid, sealed: Option<&[u8]>) -> Result<Vec<Credential>, DbError> {
    let Some(sealed) = sealed else {
        return Ok(Vec::new());
    };
    let text = key
        .open(&context(uid), sealed)
        .map_err(|e| DbError::Sealed(format!("{}: {e}", context(uid))))?;
    let sealed: Vec<SealedCredential> = serde_json::from_slice(&text)?;
    Ok(sealed.into_iter().map(Credential::from).collect())
}

/// Orders those that save the same name: taken before it is asked whether there is one.
pub async fn lock(tx: &mut Tx) -> Result<(), DbError> {
    meta::take_guard(tx, "skill_repositories").await?;
    Ok(())
}

/// Adds a repository, or changes the one of this name, and asks for a pull. With `expected`, only if that is still the
/// generation.
///
/// # Errors
/// [`DbError::NameBeingRemoved`] while one of this name is being removed.
pub async fn save(
    tx: &mut Tx,
    key: &MasterKey,
    new: &NewRepository,
    credentials: &[Credential],
    token: &str,
    expected: Option<Generation>,
    now: Timestamp,
) -> Result<(Uid, Generation), DbError> {
    lock(tx).await?;
    let public = i64::from(new.public);
    match find(tx, &new.name).await? {
        None if expected.is_some() => Err(DbError::StaleGeneration { actual: 0 }),
        Some(row) if row.deleted_at.is_some() => Err(DbError::NameBeingRemoved),
        None => {
            let uid = Uid::random();
            execute!(
                tx,
                INSERT,
                &uid,
                &new.name,
                new.name.key(),
                &new.url,
                &new.reference,
                new.ref_type,
                public,
                token,
                seal(key, &uid, credentials)?
            )?;
            let (kind, name) = (Kind::SkillRepository, new.name.as_str());
            let generation = object::insert(tx, kind, &uid, name, now).await?;
            object::add_finalizer(tx, kind, &uid, FINALIZER).await?;
            Ok((uid, generation))
        }
        Some(row) => {
            let uid = row.uid;
            let generation = object::bump(tx, Kind::SkillRepository, &uid, expected).await?;
            execute!(
                tx,
                UPDATE,
                &uid,
                &new.name,
                &new.url,
                &new.reference,
                new.ref_type,
                public,
                token,
                seal(key, &uid, credentials)?
            )?;
            // Keys belong to a host.
            if (row.url.host(), row.url.port()) != (new.url.host(), new.url.port()) {
                execute!(tx, FORGET_HOST_KEY, &uid, token)?;
            }
            Ok((uid, generation))
        }
    }
}

/// Trusts whatever key the host shows at the next pull.
pub async fn forget_host_key(tx: &mut Tx, uid: &Uid, token: &str) -> Result<(), DbError> {
    execute!(tx, FORGET_HOST_KEY, uid, token)?;
    Ok(())
}

/// Asks for a pull: `token` is new for each request. With `expected`, only if that is still the generation.
pub async fn request_pull(
    tx: &mut Tx,
    uid: &Uid,
    token: &str,
    expected: Option<Generation>,
) -> Result<Generation, DbError> {
    let generation = object::bump(tx, Kind::SkillRepository, uid, expected).await?;
    execute!(tx, SET_TOKEN, uid, token)?;
    Ok(generation)
}

/// Takes the newest request for a pull back, if it was not answered yet.
pub async fn cancel_pull(
    tx: &mut Tx,
    uid: &Uid,
    expected: Option<Generation>,
) -> Result<Generation, DbError> {
    let generation = object::bump(tx, Kind::SkillRepository, uid, expected).await?;
    execute!(tx, CANCEL, uid)?;
    Ok(generation)
}

/// Asks for the removal of a repository. What was installed from it stays.
pub async fn delete(tx: &mut Tx, uid: &Uid, now: Timestamp) -> Result<Generation, DbError> {
    object::delete(tx, Kind::SkillRepository, uid, now).await
}

/// Saves what the reconciler remembers; nothing happens when the repository is gone.
pub async fn save_facts(
    tx: &mut ObservedTx,
    uid: &Uid,
    facts: &RepositoryFacts,
) -> Result<(), DbError> {
    let skills = facts.skills.as_ref();
    execute!(
        tx,
        SAVE_FACTS,
        uid,
        &facts.pull_token,
        &facts.commit_id,
        facts.pulled_at,
        skills.map(serde_json::to_string).transpose()?,
        &facts.known_hosts,
        &facts.host_key_token,
        &facts.failed_token,
        facts.failed_reason.map(|reason| reason.as_str()),
        &facts.failure,
        serde_json::to_string(&facts.warnings)?,
        facts.listing,
        skills.map(|skills| i64::try_from(skills.len()).unwrap_or(i64::MAX))
    )?;
    Ok(())
}

/// Removes the last trace of a deleted repository once its files are gone. Returns whether it did.
pub async fn purge(tx: &mut ObservedTx, uid: &Uid) -> Result<bool, DbError> {
    object::remove_finalizer(tx, Kind::SkillRepository, uid, FINALIZER).await?;
    if !object::purge_if_finalized(tx, Kind::SkillRepository, uid).await? {
        return Ok(false);
    }
    execute!(tx, DELETE, uid)?;
    Ok(true)
}
