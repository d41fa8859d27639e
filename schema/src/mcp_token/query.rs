//! Statements on the holders of MCP tokens.

use sqlx::FromRow;

use crate::column::Flag;
use crate::connection::Connection;
use crate::error::DbError;
use crate::ids::{Uid, UserName};
use crate::statement::{fetch_optional, finish, statements};
use crate::user::{Role, Source};

/// Columns of a holder.
macro_rules! select_holder {
    ($($rest:expr),+) => {
        concat!(
            "SELECT u.uid, u.name, u.role, u.source, u.mcp_token_version AS version, \
             CASE WHEN u.disabled = 0 THEN 0 ELSE 1 END AS disabled, \
             CASE WHEN w.name_key IS NULL THEN 0 ELSE 1 END AS whitelisted \
             FROM users u LEFT JOIN objects o ON o.kind = 'user' AND o.uid = u.uid \
             LEFT JOIN whitelist w ON w.name_key = u.name_key \
             WHERE o.deleted_at IS NULL AND ",
            $($rest),+
        )
    };
}

/// Places for [`NAMES`] names.
macro_rules! names {
    () => {
        "$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, \
         $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, \
         $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, \
         $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50"
    };
}

/// So many names one statement asks for.
const NAMES: usize = 50;

statements! {
    /// The account of a name that is not being removed.
    FIND = select_holder!("u.name_key = $1");
    /// The account that had a name before which nobody has now.
    FIND_FORMER = select_holder!("u.uid IN (SELECT f.uid FROM former_names f WHERE f.name_key = $1)");
    /// The same of several names, which the accounts have or had.
    OF_NAMES = select_holder!("u.uid IN (SELECT n.uid FROM users n WHERE n.name_key IN (", names!(), ") \
                               UNION SELECT f.uid FROM former_names f WHERE f.name_key IN (", names!(), "))");
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

/// Finds an account by its name, case-insensitively, or by one that it had before and nobody has now; unless it is being removed.
pub async fn find(connection: &mut Connection, name: &UserName) -> Result<Option<Holder>, DbError> {
    match fetch_optional!(connection, FIND, name.key())? {
        Some(holder) => Ok(Some(holder)),
        None => fetch_optional!(connection, FIND_FORMER, name.key()),
    }
}

/// Finds several, by names that they have or had. Names that nobody has are left out.
pub async fn of_names(
    connection: &mut Connection,
    names: &[UserName],
) -> Result<Vec<Holder>, DbError> {
    let mut found = Vec::new();
    for some in names.chunks(NAMES) {
        let mut query = sqlx::query_as(OF_NAMES);
        // A value for each place: the first name fills those that are left.
        for index in 0..NAMES {
            query = query.bind(some.get(index).or(some.first()).map(UserName::key));
        }
        let mut holders: Vec<Holder> = finish!(query.fetch_all(&mut *connection))?;
        found.append(&mut holders);
    }
    Ok(found)
}
