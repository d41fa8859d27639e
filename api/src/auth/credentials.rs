//! Verifying a name and a password, the same way for everybody who might be asking.

use schema::ids::UserName;
use schema::user::{self, Role, Source, User};
use secrecy::{ExposeSecret, SecretString};

use super::login_limit::{Charged, Sender};
use crate::deps::Dependencies;
use crate::error::{ApiError, Result};
use crate::settings::AuthMode;

/// Whether accounts of this role and source may be used in this mode. Superadmins are independent
/// of any mode.
pub fn belongs_to_mode(role: Role, source: Source, mode: AuthMode) -> bool {
    match (role, source, mode) {
        (Role::Superadmin, Source::Local, _)
        | (Role::User, Source::Local, AuthMode::Local)
        | (Role::User, Source::Ldap, AuthMode::Ldap)
        | (Role::User, Source::Oidc, AuthMode::Oidc) => true,
        (Role::Superadmin, Source::Ldap | Source::Oidc, _)
        | (Role::User, Source::Local, AuthMode::Ldap | AuthMode::Oidc)
        | (Role::User, Source::Ldap, AuthMode::Local | AuthMode::Oidc)
        | (Role::User, Source::Oidc, AuthMode::Local | AuthMode::Ldap) => false,
    }
}

/// Verifies a password under the sign-in limit. `None` for a wrong password and for every account
/// that does not exist or may not be used: the work done for it and what is known of it afterwards
/// are the same.
///
/// `name` is as the client sent it.
///
/// # Errors
/// 429 before any hashing when the limit is reached, 503 when too many passwords are being
/// verified, [`ApiError::Internal`] when the database or the hashing fails.
pub async fn verify(
    deps: &Dependencies,
    sender: Sender,
    name: &str,
    password: SecretString,
) -> Result<Option<User>> {
    let (account, charged) = try_password(deps, sender, name, password).await?;
    if account.is_some() {
        charged.succeeded();
    }
    Ok(account)
}

/// The same, for whoever may succeed otherwise: the attempt counts as failed until it is said to have succeeded.
///
/// # Errors
/// As [`verify`].
pub async fn try_password(
    deps: &Dependencies,
    sender: Sender,
    name: &str,
    password: SecretString,
) -> Result<(Option<User>, Charged)> {
    let attempt = deps.login_limit.begin_attempt(sender, name)?;
    let account = find(deps, name).await?;
    let stored = account.as_ref().and_then(|account| {
        let hash = account.password_hash.as_ref()?;
        Some(hash.expose_secret().to_owned())
    });
    let slot = deps.passwords.slot().await?;
    let charged = deps.login_limit.charge(attempt)?;
    let fits = slot.verify(password, stored).await?;
    let mode = deps.settings().auth_mode;
    Ok((
        account.filter(|account| fits && is_usable(account, mode)),
        charged,
    ))
}

/// Verifies the password of an account once more, against what is stored for it now. Counts for no
/// limit: it is the same attempt.
///
/// # Errors
/// 401 when it is another account now, or has another password; else as [`verify`].
pub async fn verify_again(
    deps: &Dependencies,
    verified: &User,
    password: SecretString,
) -> Result<User> {
    let present = find(deps, verified.name.as_str()).await?;
    let present = present
        .filter(|present| present.uid == verified.uid)
        .ok_or(ApiError::BadCredentials)?;
    let stored = present.password_hash.as_ref();
    let stored = stored.map(|hash| hash.expose_secret().to_owned());
    let slot = deps.passwords.slot().await?;
    if slot.verify(password, stored).await? {
        Ok(present)
    } else {
        Err(ApiError::BadCredentials)
    }
}

/// The account of this name, if the name is one.
pub(crate) async fn find(deps: &Dependencies, name: &str) -> Result<Option<User>> {
    match name.parse::<UserName>() {
        Ok(name) => Ok(user::find(&mut *deps.db.read().await?, &name).await?),
        Err(_) => Ok(None),
    }
}

fn is_usable(account: &User, mode: AuthMode) -> bool {
    !account.disabled
        && account.deleted_at.is_none()
        && belongs_to_mode(account.role, account.source, mode)
}

/// Whether a present row is still the account whose password was verified: verifying takes time, in
/// which the password may have been changed or the account removed and created again.
pub fn is_unchanged(verified: &User, present: Option<&User>) -> bool {
    let hash = |user: &User| {
        let hash = user.password_hash.as_ref()?;
        Some(hash.expose_secret().to_owned())
    };
    present.is_some_and(|present| {
        present.uid == verified.uid
            && hash(present) == hash(verified)
            && !present.disabled
            && present.deleted_at.is_none()
    })
}
