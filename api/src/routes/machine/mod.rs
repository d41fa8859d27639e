//! Routes of the admin socket only: programs in agents' containers, and copying files from and to workspaces.
//!
//! These routes are in no list but [`routes`]: other listeners answer 404 to every caller, and the API document does not
//! have them.

mod exec;
mod files;
#[cfg(test)]
mod tests;

use schema::ids::UserName;

use super::params::present_user;
use crate::auth::Account;
use crate::deps::Dependencies;
use crate::error::Result;
use crate::route::Route;

/// The parameter in the path that names the user.
pub(crate) const USERNAME: &str = "username";

/// The routes of this area.
pub(super) fn routes() -> Vec<Route> {
    [exec::routes(), files::routes()]
        .into_iter()
        .flatten()
        .collect()
}

/// Finds the account of an ordinary user.
///
/// # Errors
/// 404 without such a user, 409 while it is being removed.
pub(crate) async fn find_account(deps: &Dependencies, name: &UserName) -> Result<Account> {
    let mut connection = deps.db.read().await?;
    let user = present_user(&mut connection, name).await?;
    Ok(Account {
        uid: user.uid,
        name: user.name,
        role: user.role,
    })
}
