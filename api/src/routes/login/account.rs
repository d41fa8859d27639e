//! The account of somebody who has proved who they are somewhere else.

use std::collections::BTreeSet;

use schema::config::{Config, keys, query as config};
use schema::directory::{self, Listed};
use schema::error::DbError;
use schema::ids::{PlainName, UserName};
use schema::session::Live;
use schema::user::{Source, Template};
use schema::whitelist;

use super::Client;
use crate::deps::Dependencies;
use crate::error::{ApiError, Result};
use crate::input::Meta;

/// Who has proved to be whom.
pub(super) struct Proven {
    /// Where.
    pub(super) source: Source,
    /// The user name there.
    pub(super) name: String,
    /// What identifies them there.
    pub(super) subject: String,
    /// Their groups there; `None`: they are not known.
    pub(super) groups: Option<BTreeSet<String>>,
}

/// Makes the account, or brings it up to date, and starts a session, in one transaction.
///
/// # Errors
/// 403 for whoever is not on the whitelist, disabled, or has a name that cannot be one here, 409 where the name is somebody
/// else's, 503 while the previous account of the name is archived.
pub(super) async fn let_in(
    deps: &Dependencies,
    meta: &Meta,
    proven: Proven,
    client: Client,
) -> Result<Live> {
    let source = proven.source;
    let mut tx = meta.begin(deps).await?;
    let known = match source {
        // Whoever is called something else there by now is still the same.
        Source::Oidc => directory::name_of(&mut tx, source, &proven.subject).await?,
        Source::Local | Source::Ldap => None,
    };
    let name: UserName = match known {
        Some(name) => name,
        None => proven
            .name
            .parse()
            .map_err(|rule| ApiError::InvalidUsername {
                rule: format!("{rule}"),
            })?,
    };
    let groups = proven.groups.map(|groups| {
        let names = groups
            .iter()
            .filter_map(|group| PlainName::from_existing(group).ok());
        names.collect::<BTreeSet<_>>()
    });
    let listed = Listed {
        name,
        subject: proven.subject,
        groups,
    };
    // Read here, not from the settings in memory: enabled a moment ago, it holds.
    let (values, _) = config::load(&mut tx, &deps.master_key).await?;
    let config = Config::from_stored(values);
    let enabled = config.get(match source {
        Source::Oidc => &keys::oidc::WHITELIST_ENABLED,
        Source::Local | Source::Ldap => &keys::ldap::WHITELIST_ENABLED,
    });
    if enabled && !whitelist::has(&mut tx, &listed.name).await? {
        return Err(ApiError::NotWhitelisted);
    }
    let template = Template::of(&config, None);
    let now = deps.clock.now();
    let account = directory::signed_in(&mut tx, source, &listed, &template, now).await;
    let account = account.map_err(|error| match error {
        // It belongs to a superadmin, or to another subject.
        DbError::NameTaken => ApiError::NameOfAnother,
        // The mode has changed meanwhile.
        DbError::WrongState(_) => ApiError::BadCredentials,
        DbError::NameBeingRemoved => ApiError::PreviousAccountArchiving,
        error => error.into(),
    })?;
    if account.disabled {
        return Err(ApiError::AccountDisabled);
    }
    super::session_of(deps, tx, &account, client, meta, None).await
}
