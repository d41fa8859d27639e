//! Statements on the holders of MCP tokens.

use sqlx::FromRow;

use crate::column::Flag;
use crate::connection::Connection;
use crate::error::DbError;
use crate::ids::{Uid, UserName};
use crate::statement::{fetch_all, fetch_optional, statements};
use crate::user::{Role, Source};

/// Columns of a holder.
macro_rules! select_holder {
    ($rest:literal) => {
        concat!(
            "SELECT u.uid, u.name, u.role, u.source, u.mcp_token_version AS version, \
             CASE WHEN u.disabled = 0 THEN 0 ELSE 1 END AS disabled, \
             CASE WHEN w.name_key IS NULL THEN 0 ELSE 1 END AS whitelisted \
             FROM users u LEFT JOIN objects o ON o.kind = 'user' AND o.uid = u.uid \
             LEFT JOIN whitelist w ON w.name_key = u.name_key \
             WHERE o.deleted_at IS NULL AND ",
            $rest
        )
    };
}

/// So many names one statement asks for.
const NAMES: usize = 8;

statements! {
    /// The account of a name that is not being removed.
    FIND = select_holder!("u.name_key = $1");
    /// The same of several names.
    OF_NAMES = select_holder!("u.name_key IN ($1, $2, $3, $4, $5, $6, $7, $8)");
}

/// An account, as its token is judged.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Holder {
    /// Identity.
    pub uid: Uid,
    /// Name.
    pub name: UserName,
    /// What it may do: a superadmin has no token.
    pub role: Role,
    /// Where it comes from.
    pub source: Source,
    /// The version of the token that is valid.
    pub version: i64,
    /// It may not do anything.
    #[sqlx(try_from = "Flag")]
    pub disabled: bool,
    /// The name is on the whitelist.
    #[sqlx(try_from = "Flag")]
    pub whitelisted: bool,
}

/// Finds an account by its name, case-insensitively, unless it is being removed.
pub async fn find(connection: &mut Connection, name: &UserName) -> Result<Option<Holder>, DbError> {
    fetch_optional!(connection, FIND, name.key())
}

/// Finds several. Names that nobody has are left out.
pub async fn of_names(
    connection: &mut Connection,
    names: &[UserName],
) -> Result<Vec<Holder>, DbError> {
    let mut found = Vec::new();
    for some in names.chunks(NAMES) {
        let key = |index: usize| some.get(index).or(some.first()).map(UserName::key);
        let mut holders: Vec<Holder> = fetch_all!(
            connection,
            OF_NAMES,
            key(0),
            key(1),
            key(2),
            key(3),
            key(4),
            key(5),
            key(6),
            key(7)
        )?;
        found.append(&mut holders);
    }
    Ok(found)
}
