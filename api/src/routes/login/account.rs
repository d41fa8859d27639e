//! The account of somebody who has proved who they are somewhere else.

use std::collections::BTreeSet;

use schema::audit::Author;
use schema::condition::Reason;
use schema::config::{Config, keys, query as config};
use schema::directory::{self, Listed};
use schema::error::DbError;
use schema::event;
use schema::ids::{Kind, PlainName, UserName};
use schema::session::Live;
use schema::user::{Source, Template};
use schema::whitelist;

use super::Client;
use crate::deps::Dependencies;
use crate::error::{ApiError, Result};
use crate::input::Meta;

/// Most characters of a name that cannot be one here.
const LONGEST: usize = 100;

/// Who has proved to be whom.
pub(super) struct Proven {
    /// Where.
    pub(super) source: Source,
    /// The user name there.
    pub(super) name: String,
    /// What identifies them there.
    pub(super) subject: String,
    /// What identifies their entry there whatever its name is; `None`: that is not known.
    pub(super) identity: Option<String>,
    /// Their groups there; `None`: they are not known.
    pub(super) groups: Option<BTreeSet<String>>,
    /// Values of the groups that were not taken, for administrators.
    pub(super) left_out: Vec<String>,
    /// Groups that have another name here, for administrators.
    pub(super) renamed: Vec<String>,
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
    follow_rename(deps, &proven).await?;
    let mut tx = meta.begin(deps).await?;
    // Whoever is called something else there by now is still the same.
    let known = match (source, &proven.identity) {
        (Source::Oidc, _) => directory::name_of(&mut tx, source, &proven.subject).await?,
        (Source::Ldap, Some(identity)) => {
            directory::name_of_identity(&mut tx, source, identity).await?
        }
        (Source::Local | Source::Ldap, _) => None,
    };
    let name: UserName = match known {
        Some(name) => name,
        None => proven
            .name
            .parse()
            .map_err(|rule| ApiError::InvalidUsername {
                rule: format!(
                    "the name {:?} breaks the rule ({rule}); an administrator can have another one taken with {}",
                    shown(&proven.name),
                    name_setting(source)
                ),
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
        identity: proven.identity,
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
    if let Err(DbError::NameTaken) = account {
        tracing::warn!(
            name = %listed.name,
            entry = listed.subject,
            "a sign-in was refused because another account has the name: delete that account if its person has left, or give the entry another name"
        );
    }
    let account = account.map_err(refusal)?;
    if account.disabled {
        return Err(ApiError::AccountDisabled);
    }
    let mut said = Vec::new();
    if !proven.left_out.is_empty() {
        let left_out = proven.left_out.join("; ");
        tracing::warn!(account = %account.name, left_out, "groups of the identity provider were left out");
        let (kind, reason) = (Kind::User, Reason::GroupsLeftOut);
        event::record(&mut tx, kind, &account.uid, reason, "", &left_out, now).await?;
        said.push(format!("groups left out: {left_out}"));
    }
    if !proven.renamed.is_empty() {
        said.push(format!("groups renamed: {}", proven.renamed.join("; ")));
    }
    super::session_of(deps, tx, &account, client, meta, None, &said).await
}

fn refusal(error: DbError) -> ApiError {
    match error {
        // It belongs to a superadmin, or to another subject or entry.
        DbError::NameTaken => ApiError::NameOfAnother,
        // The mode has changed meanwhile.
        DbError::WrongState(_) => ApiError::BadCredentials,
        DbError::NameBeingRemoved => ApiError::PreviousAccountArchiving,
        error => error.into(),
    }
}

/// Gives the account the name that the directory has by now, in a transaction of its own: it is a change whatever becomes of the
/// sign-in. Nothing is written if it has that name. While the name is not free the account keeps the one that it has.
async fn follow_rename(deps: &Dependencies, proven: &Proven) -> Result<()> {
    let (Source::Ldap, Some(identity)) = (proven.source, &proven.identity) else {
        return Ok(());
    };
    let Ok(name) = proven.name.parse::<UserName>() else {
        return Ok(());
    };
    let known = {
        let mut connection = deps.db.read().await?;
        directory::name_of_identity(&mut connection, proven.source, identity).await?
    };
    if known.is_none_or(|known| known.key() == name.key()) {
        return Ok(());
    }
    let author = Author::system("directory", directory::RENAME);
    let mut tx = deps.writer.begin(author).await?;
    let now = deps.clock.now();
    let keys = &deps.master_key;
    match directory::rename(&mut tx, proven.source, identity, &name, keys, now).await {
        Ok(Some(before)) => Ok(tx.commit(directory::about_rename(&before, &name)).await?),
        // It has the name by now, or is going.
        Ok(None) | Err(DbError::NotFound(_)) => Ok(()),
        Err(DbError::NameTaken | DbError::NameBeingRemoved) => {
            tracing::warn!(
                %name,
                entry = proven.subject,
                "a user keeps the name before because another account has the new one; `agentyard describe directory/users` tells the remedy"
            );
            Ok(())
        }
        Err(error) => Err(refusal(error)),
    }
}

/// The setting that says where names come from.
fn name_setting(source: Source) -> &'static str {
    match source {
        Source::Oidc => keys::oidc::USERNAME_CLAIM.row.key,
        Source::Local | Source::Ldap => keys::ldap::USERNAME_ATTRIBUTE.row.key,
    }
}

/// A name of somewhere else, in one line.
fn shown(name: &str) -> String {
    let plain = name.chars().filter(|c| !c.is_control());
    plain.take(LONGEST).collect()
}
