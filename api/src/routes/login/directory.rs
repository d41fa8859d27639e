//! Signing in where the directory knows the passwords.
//!
//! Superadmins are local in every mode, so a name and a password are tried here first. Whatever fits nothing here goes on to the
//! directory, the names of superadmins too: answer, status and duration tell nobody which names those are. What the directory
//! says never makes a superadmin of anybody (L4, L5).

use std::time::Duration;

use schema::session::Live;
use schema::user::{Source, User};
use secrecy::SecretString;

use super::Client;
use super::account::{Proven, let_in};
use crate::auth::credentials;
use crate::deps::Dependencies;
use crate::error::{ApiError, Result};
use crate::input::Meta;

/// A refusal is told at a whole multiple of this after it was asked: how long directories take tells which names they know.
const MARK: Duration = Duration::from_secs(1);
/// Nobody is made to wait longer than this by it: whoever asks is answered within five seconds.
const LAST_MARK: Duration = Duration::from_secs(4);

/// How an attempt went.
pub(super) enum Attempt {
    /// A superadmin, whose password is here.
    Local(Box<User>),
    /// Somebody whom the directory has let in.
    Directory(Box<Live>),
}

/// One attempt.
///
/// # Errors
/// As signing in; 502 when the directory cannot be asked. That the account is disabled, or the name another's, is for the audit trail:
/// the caller gets the answer of a wrong password.
pub(super) async fn attempt(
    deps: &Dependencies,
    meta: &Meta,
    name: &str,
    password: SecretString,
    client: Client,
) -> Result<Attempt> {
    let begun = deps.clock.steady();
    let outcome = try_both(deps, meta, name, password, client).await;
    if let Err(ApiError::BadCredentials | ApiError::AccountDisabled | ApiError::NameOfAnother) =
        outcome
    {
        let spent = deps.clock.steady().saturating_sub(begun);
        let marks = spent.as_millis() / MARK.as_millis() + 1;
        let mark = MARK.saturating_mul(u32::try_from(marks).unwrap_or(u32::MAX));
        tokio::time::sleep(mark.min(LAST_MARK).saturating_sub(spent)).await;
    }
    outcome
}

async fn try_both(
    deps: &Dependencies,
    meta: &Meta,
    name: &str,
    password: SecretString,
    client: Client,
) -> Result<Attempt> {
    let (local, charged) =
        credentials::try_password(deps, meta.sender(), name, password.clone()).await?;
    if let Some(superadmin) = local {
        charged.succeeded();
        return Ok(Attempt::Local(Box::new(superadmin)));
    }
    let person = match deps.directory.sign_in(name, &password).await {
        Ok(Some(person)) => {
            charged.succeeded();
            person
        }
        Ok(None) => return Err(ApiError::BadCredentials),
        Err(failure) => {
            // Nothing was guessed.
            charged.succeeded();
            tracing::warn!(%failure, "the directory could not be asked for a sign-in");
            return Err(ApiError::Remote {
                message: "the directory that knows the passwords cannot be reached; try again soon"
                    .to_owned(),
            });
        }
    };
    // The name is the directory's; what was typed is one of many ways to write it.
    let proven = Proven {
        source: Source::Ldap,
        name: person.name,
        subject: person.dn,
        identity: person.identity,
        groups: person.groups,
        left_out: Vec::new(),
        renamed: Vec::new(),
    };
    let live = let_in(deps, meta, proven, client).await?;
    Ok(Attempt::Directory(Box::new(live)))
}
