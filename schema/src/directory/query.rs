//! Statements on what directories say.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{
    DirectoryFacts, KnownGroup, KnownUser, Listed, Request, SyncScope, UserChange, are_different,
};
use super::object_uid;
use crate::config::history::SavedBy;
use crate::config::query as config;
use crate::connection::Connection;
use crate::db::{ObservedTx, Tx};
use crate::error::{DbError, unless_gone};
use crate::group::{self, NewGroup};
use crate::ids::{Generation, Kind, PlainName, Timestamp, Uid, UidPart, UserName};
use crate::object;
use crate::secrets::MasterKey;
use crate::skill::impact::{self, Scope};
use crate::statement::{
    execute, fetch_all, fetch_one, fetch_optional, insert_rows, scalar, scalar_optional, scalars,
    statements,
};
use crate::user::{self, NewUser, Role, Source, Template, User};
use crate::whitelist;

statements! {
    /// All ordinary users with what was last said of them, in one scan.
    KNOWN = "SELECT u.uid, u.name, coalesce(d.subject, '') AS subject, coalesce(d.identity, '') AS identity, u.previous_name, coalesce(d.digest, '') AS digest, d.missing_since, CASE WHEN o.deleted_at IS NULL THEN 0 ELSE 1 END AS leaving, \
             CASE WHEN coalesce(u.last_login_at, 0) > u.created_at THEN coalesce(u.last_login_at, 0) ELSE u.created_at END AS seen_at \
             FROM users u JOIN objects o ON o.kind = 'user' AND o.uid = u.uid LEFT JOIN directory_users d ON d.uid = u.uid";
    /// The names that superadmins have.
    SUPERADMINS = "SELECT name_key FROM users WHERE role = 'superadmin'";
    /// All groups.
    GROUPS = "SELECT g.uid, g.name, CASE WHEN EXISTS (SELECT 1 FROM group_skills b WHERE b.group_uid = g.uid) \
              OR EXISTS (SELECT 1 FROM user_groups c WHERE c.parent_uid = g.uid) THEN 1 ELSE 0 END AS in_use, \
              CASE WHEN EXISTS (SELECT 1 FROM group_members m LEFT JOIN directory_users d ON d.uid = m.user_uid WHERE m.group_uid = g.uid AND d.missing_since IS NULL) \
              THEN 1 ELSE 0 END AS has_members FROM user_groups g";
    /// The groups that a user is in.
    GROUPS_OF = "SELECT group_uid FROM group_members WHERE user_uid = $1";
    /// A user becomes a member.
    JOIN = "INSERT INTO group_members (group_uid, user_uid) VALUES ($1, $2) ON CONFLICT (group_uid, user_uid) DO NOTHING";
    /// A user is no member any more.
    LEAVE = "DELETE FROM group_members WHERE group_uid = $1 AND user_uid = $2";
    /// What was said of one user.
    DIGEST = "SELECT digest FROM directory_users WHERE uid = $1 AND missing_since IS NULL";
    /// The subjects of all users.
    SUBJECTS = "SELECT uid, subject FROM directory_users";
    /// Whom the source knows by a subject.
    NAME_OF = "SELECT u.name FROM directory_users d JOIN users u ON u.uid = d.uid WHERE d.subject = $1 AND u.source = $2";
    /// Whom an identity belongs to who is not being removed.
    OF_IDENTITY = "SELECT u.uid, u.name FROM directory_users d JOIN users u ON u.uid = d.uid JOIN objects o ON o.kind = 'user' AND o.uid = u.uid \
                   WHERE d.identity = $1 AND u.source = $2 AND o.deleted_at IS NULL";
    /// The identities of users who are not being removed.
    IDENTITIES = "SELECT d.identity FROM directory_users d JOIN objects o ON o.kind = 'user' AND o.uid = d.uid \
                  WHERE d.identity IS NOT NULL AND o.deleted_at IS NULL";
    /// The identity of one user.
    IDENTITY = "SELECT identity FROM directory_users WHERE uid = $1";
    /// Remembers an identity, or forgets it.
    IDENTIFY = "INSERT INTO directory_users (uid, subject, digest, identity) SELECT uid, $2, '', $3 FROM users WHERE uid = $1 \
                ON CONFLICT (uid) DO UPDATE SET identity = excluded.identity";
    /// The subject that one user has.
    SUBJECT = "SELECT subject FROM directory_users WHERE uid = $1";
    /// Remembers what was said of a user, who is there.
    PUT = "INSERT INTO directory_users (uid, subject, digest, identity) VALUES ($1, $2, $3, $4) \
           ON CONFLICT (uid) DO UPDATE SET subject = excluded.subject, digest = excluded.digest, \
           identity = coalesce(excluded.identity, directory_users.identity), missing_since = NULL";
    /// A user is missing.
    SET_MISSING = "UPDATE directory_users SET missing_since = $2 WHERE uid = $1 AND missing_since IS NULL";
    /// Takes a user who was not here since `$2`.
    TAKE_UNSEEN = "UPDATE users SET name_key = name_key WHERE uid = $1 AND created_at < $2 AND coalesce(last_login_at, 0) < $2";
    /// What was said of the members of a group is compared anew.
    FORGET_DIGESTS = "UPDATE directory_users SET digest = '' WHERE uid IN (SELECT user_uid FROM group_members WHERE group_uid = $1)";
    /// Since when a user is missing.
    MISSING_SINCE = "SELECT missing_since FROM directory_users WHERE uid = $1";
    /// The newest request.
    REQUEST = "SELECT token, scope, confirm FROM directory_requests WHERE id = 1";
    /// A new request.
    SET_REQUEST = "UPDATE directory_requests SET token = $1, scope = $2, confirm = $3 WHERE id = 1";
    /// What is remembered.
    FACTS = "SELECT facts FROM directory_facts WHERE id = 1";
    /// Remembers it.
    SAVE_FACTS = "UPDATE directory_facts SET facts = $1 WHERE id = 1";
}

/// All ordinary users, in one scan, in no order.
pub async fn known(connection: &mut Connection) -> Result<Vec<KnownUser>, DbError> {
    fetch_all!(connection, KNOWN)
}

/// The names that superadmins have, in lower case.
pub async fn superadmins(connection: &mut Connection) -> Result<Vec<String>, DbError> {
    scalars!(connection, SUPERADMINS)
}

/// All groups, in no order.
pub async fn groups(connection: &mut Connection) -> Result<Vec<KnownGroup>, DbError> {
    fetch_all!(connection, GROUPS)
}

/// The newest request for a synchronisation.
pub async fn requested(connection: &mut Connection) -> Result<Request, DbError> {
    fetch_one!(connection, REQUEST)
}

/// Asks for a synchronisation. Returns the directory's generation.
pub async fn request(
    tx: &mut Tx,
    scope: SyncScope,
    confirm: &str,
    expected: Option<Generation>,
) -> Result<Generation, DbError> {
    let generation = object::bump(tx, Kind::Directory, &object_uid(), expected).await?;
    let (mut scope, mut confirm) = (scope, confirm.to_owned());
    let before = requested(tx).await?;
    if before.token != facts(tx).await?.answered {
        // Nobody has worked on it yet: one answer is for both.
        if before.scope == SyncScope::Users {
            scope = SyncScope::Users;
        }
        if confirm.is_empty() {
            confirm = before.confirm;
        }
    }
    let token = Uid::random();
    execute!(tx, SET_REQUEST, token, scope, confirm)?;
    Ok(generation)
}

/// What the reconciler remembers.
pub async fn facts(connection: &mut Connection) -> Result<DirectoryFacts, DbError> {
    let facts: String = scalar!(connection, FACTS)?;
    serde_json::from_str(&facts).map_err(|error| DbError::Corrupt(error.to_string()))
}

/// Saves what the reconciler remembers.
pub async fn save_facts(tx: &mut ObservedTx, facts: &DirectoryFacts) -> Result<(), DbError> {
    execute!(tx, SAVE_FACTS, serde_json::to_string(facts)?)?;
    Ok(())
}

/// Changes that one transaction makes.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// What is to become of whom.
    pub changes: &'a [UserChange],
    /// What new users get.
    pub template: &'a Template,
    /// When the source was asked: who was here since then is there, whatever the list says.
    pub asked_at: Timestamp,
    /// Of which part their uids are.
    pub uids: UidPart,
}

/// Makes changes of one page, in one transaction; none when users come from somewhere else by now. A name that somebody has taken meanwhile is left out: the next
/// synchronisation finds it. Returns how many users were renamed.
pub async fn apply(
    tx: &mut Tx,
    source: Source,
    page: Page<'_>,
    master_key: &MasterKey,
    now: Timestamp,
) -> Result<usize, DbError> {
    let Page {
        changes,
        template,
        asked_at,
        uids,
    } = page;
    let names_rules =
        |it: &UserChange| matches!(it, UserChange::Rename { .. } | UserChange::Remove { .. });
    if changes.iter().any(names_rules) {
        config::lock(tx).await?;
    }
    group::lock(tx).await?;
    // A change of the mode takes the groups, too: users and groups of before are gone, or going.
    if user::query::auth_mode(tx).await? != source {
        return Ok(0);
    }
    let mut groups = Groups::read(tx, source, now).await?;
    // Somebody may have signed in meanwhile, by another name than the list has.
    let taken: BTreeSet<String> = match changes.iter().any(|it| matches!(it, UserChange::Add(_))) {
        true => scalars!(tx, IDENTITIES)?.into_iter().collect(),
        false => BTreeSet::new(),
    };
    let is_taken = |listed: &Listed| {
        listed
            .identity
            .as_ref()
            .is_some_and(|it| taken.contains(it))
    };
    let new = changes.iter().filter_map(|change| match change {
        UserChange::Add(listed) if !is_taken(listed) => {
            let mut user = template.new_user(&listed.name, source, None);
            user.uid = Uid::random_in(uids);
            Some((user, listed))
        }
        _ => None,
    });
    let (users, listed): (Vec<_>, Vec<_>) = new.unzip();
    add_many(tx, source, &users, &listed, &mut groups, now).await?;
    let present = changes.iter().filter_map(|change| match change {
        UserChange::Update { uid, .. } | UserChange::Rename { uid, .. } => Some(uid.clone()),
        UserChange::Add(_)
        | UserChange::Identify { .. }
        | UserChange::Disable { .. }
        | UserChange::Remove { .. } => None,
    });
    let before = impact::before(tx, Scope::Users(present.collect())).await?;
    let mut renamed = 0;
    let mut left = Vec::new();
    for change in changes {
        match change {
            // As above.
            UserChange::Add(_) => {}
            UserChange::Update { uid, listed, back } => {
                // Whoever has signed in meanwhile is up to date, and this is not.
                if execute!(tx, TAKE_UNSEEN, uid, asked_at)? > 0 {
                    update(tx, uid, listed, *back, &mut groups).await?;
                }
            }
            UserChange::Rename {
                uid, listed, back, ..
            } => {
                if execute!(tx, TAKE_UNSEEN, uid, asked_at)? == 0 {
                    continue;
                }
                match user::query::rename(tx, master_key, uid, &listed.name, now).await {
                    Ok(()) => {
                        update(tx, uid, listed, *back, &mut groups).await?;
                        renamed += 1;
                    }
                    Err(DbError::NameTaken | DbError::NameBeingRemoved | DbError::NotFound(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            UserChange::Identify {
                uid,
                subject,
                identity,
                ..
            } => {
                execute!(tx, IDENTIFY, uid, subject, identity)?;
            }
            UserChange::Disable { uid, .. } => {
                // Nobody who was found missing is disabled again, nor who has signed in meanwhile.
                if execute!(tx, TAKE_UNSEEN, uid, asked_at)? > 0
                    && execute!(tx, SET_MISSING, uid, now)? > 0
                {
                    unless_gone(user::query::set_missing(tx, uid, true).await)?;
                }
            }
            UserChange::Remove { uid, since, name } => {
                let unseen = execute!(tx, TAKE_UNSEEN, uid, asked_at)? > 0;
                if !unseen || missing_since(tx, uid).await? != *since {
                    continue;
                }
                // The next bearer of the name is known to be somebody else.
                if identity_of(tx, uid).await?.is_some() {
                    whitelist::remove(tx, std::slice::from_ref(name)).await?;
                    left.push(name);
                }
                unless_gone(user::delete(tx, uid, now).await)?;
            }
        }
    }
    if !left.is_empty() {
        config::remove_from_policy(tx, master_key, &left, SavedBy::directory(now)).await?;
    }
    before.settle(tx).await?;
    Ok(renamed)
}

async fn add(
    tx: &mut Tx,
    source: Source,
    listed: &Listed,
    template: &Template,
    groups: &mut Groups,
    now: Timestamp,
) -> Result<Uid, DbError> {
    let new = template.new_user(&listed.name, source, None);
    user::create(tx, &new, now).await?;
    remember_new(tx, &[(&new.uid, listed)], groups).await?;
    Ok(new.uid)
}

/// The same for many, in few statements; whose name is taken is left out.
async fn add_many(
    tx: &mut Tx,
    source: Source,
    users: &[NewUser],
    listed: &[&Listed],
    groups: &mut Groups,
    now: Timestamp,
) -> Result<(), DbError> {
    let created = user::query::create_many(tx, source, users, now).await?;
    let created: BTreeSet<&Uid> = created.into_iter().map(|user| &user.uid).collect();
    let created = users
        .iter()
        .zip(listed)
        .filter(|(user, _)| created.contains(&user.uid));
    let created: Vec<(&Uid, &Listed)> =
        created.map(|(user, listed)| (&user.uid, *listed)).collect();
    remember_new(tx, &created, groups).await
}

/// What was said of new users.
async fn remember_new(
    tx: &mut Tx,
    users: &[(&Uid, &Listed)],
    groups: &mut Groups,
) -> Result<(), DbError> {
    let mut members: Vec<(Uid, &Uid)> = Vec::new();
    for (uid, listed) in users {
        for name in listed.groups.iter().flatten() {
            members.push((groups.ensure(tx, name).await?, *uid));
        }
    }
    let _: Vec<Uid> = insert_rows!(
        tx,
        PUT,
        users,
        |(uid, listed)| *uid,
        &listed.subject,
        listed.digest(),
        &listed.identity
    )?;
    let _: Vec<Uid> = insert_rows!(tx, JOIN, members, |(group, uid)| group, *uid)?;
    Ok(())
}

/// The groups that the user is no longer in.
async fn update(
    tx: &mut Tx,
    uid: &Uid,
    listed: &Listed,
    back: bool,
    groups: &mut Groups,
) -> Result<Vec<Uid>, DbError> {
    if back {
        unless_gone(user::query::set_missing(tx, uid, false).await)?;
    }
    // What is not known is asked for by the next list.
    let digest = listed
        .groups
        .as_ref()
        .map(|_| listed.digest())
        .unwrap_or_default();
    execute!(tx, PUT, uid, &listed.subject, digest, &listed.identity)?;
    let Some(names) = &listed.groups else {
        return Ok(Vec::new());
    };
    let mut left: Vec<Uid> = scalars!(tx, GROUPS_OF, uid)?;
    for name in names {
        let group = groups.ensure(tx, name).await?;
        match left.iter().position(|it| *it == group) {
            Some(at) => {
                left.swap_remove(at);
            }
            None => {
                execute!(tx, JOIN, group, uid)?;
            }
        }
    }
    for group in &left {
        execute!(tx, LEAVE, group, uid)?;
    }
    Ok(left)
}

/// The groups that there are, by the keys of their names; missing ones are made.
struct Groups {
    known: BTreeMap<String, Uid>,
    source: Source,
    now: Timestamp,
}

impl Groups {
    async fn read(tx: &mut Tx, source: Source, now: Timestamp) -> Result<Self, DbError> {
        let known = groups(tx).await?.into_iter();
        Ok(Self {
            known: known.map(|group| (group.name.key(), group.uid)).collect(),
            source,
            now,
        })
    }

    async fn ensure(&mut self, tx: &mut Tx, name: &PlainName) -> Result<Uid, DbError> {
        if let Some(uid) = self.known.get(&name.key()) {
            return Ok(uid.clone());
        }
        let new = NewGroup {
            name: name.clone(),
            parent_uid: None,
            source: self.source,
            description: String::new(),
        };
        let uid = group::create(tx, &new, self.now).await?;
        self.known.insert(name.key(), uid.clone());
        Ok(uid)
    }
}

/// Makes groups that have no members, and removes those that the source no longer has.
pub async fn settle_groups(
    tx: &mut Tx,
    source: Source,
    add: &[PlainName],
    remove: &[Uid],
    now: Timestamp,
) -> Result<(), DbError> {
    group::lock(tx).await?;
    if user::query::auth_mode(tx).await? != source {
        return Ok(());
    }
    let present = groups(tx).await?;
    let mut groups = Groups::read(tx, source, now).await?;
    for name in add {
        groups.ensure(tx, name).await?;
    }
    // Somebody may have bound a skill to one meanwhile.
    let unused = |uid: &&Uid| present.iter().any(|it| it.uid == **uid && !it.in_use);
    for uid in remove.iter().filter(unused) {
        // Somebody who has signed in meanwhile may be in it: the next list says so again.
        execute!(tx, FORGET_DIGESTS, uid)?;
        match group::delete(tx, uid).await {
            Ok(_) | Err(DbError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The name of the account that a subject of the source has.
pub async fn name_of(
    connection: &mut Connection,
    source: Source,
    subject: &str,
) -> Result<Option<UserName>, DbError> {
    scalar_optional!(connection, NAME_OF, subject, source)
}

/// The name of the account that an identity belongs to, unless it is being removed.
pub async fn name_of_identity(
    connection: &mut Connection,
    source: Source,
    identity: &str,
) -> Result<Option<UserName>, DbError> {
    let found: Option<(Uid, UserName)> =
        fetch_optional!(connection, OF_IDENTITY, identity, source)?;
    Ok(found.map(|(_, name)| name))
}

/// Gives the account that an entry's identity belongs to the name of the entry. Returns the name before; `None` if there is no such
/// account, or it has the name.
///
/// # Errors
/// [`DbError::NameTaken`] if another account has the name; [`DbError::NameBeingRemoved`] while that one is archived, or a rename is
/// still under way.
pub async fn rename(
    tx: &mut Tx,
    source: Source,
    identity: &str,
    name: &UserName,
    master_key: &MasterKey,
    now: Timestamp,
) -> Result<Option<UserName>, DbError> {
    config::lock(tx).await?;
    group::lock(tx).await?;
    let found: Option<(Uid, UserName)> = fetch_optional!(tx, OF_IDENTITY, identity, source)?;
    let Some((uid, before)) = found.filter(|(_, before)| before.key() != name.key()) else {
        return Ok(None);
    };
    user::query::rename(tx, master_key, &uid, name, now).await?;
    Ok(Some(before))
}

async fn identity_of(connection: &mut Connection, uid: &Uid) -> Result<Option<String>, DbError> {
    let identity: Option<Option<String>> = scalar_optional!(connection, IDENTITY, uid)?;
    Ok(identity.flatten())
}

/// Somebody has proved to be `listed`: the account is made, or brought up to date.
///
/// # Errors
/// [`DbError::NameBeingRemoved`] while the previous account of the name is archived; [`DbError::NameTaken`] when the name belongs
/// to a superadmin, to an account of another source, to another subject of the same provider, or to another entry of the directory.
pub async fn signed_in(
    tx: &mut Tx,
    source: Source,
    listed: &Listed,
    template: &Template,
    now: Timestamp,
) -> Result<User, DbError> {
    let mut present = user::find(tx, &listed.name).await?;
    if present.is_none() {
        group::lock(tx).await?;
        // Another browser was faster, when the source still called the same person something else.
        if source == Source::Oidc && name_of(tx, source, &listed.subject).await?.is_some() {
            return Err(DbError::NameTaken);
        }
        let mut groups = Groups::read(tx, source, now).await?;
        match add(tx, source, listed, template, &mut groups, now).await {
            // Somebody was faster: the same person, from another browser.
            Err(DbError::NameTaken) => present = user::find(tx, &listed.name).await?,
            added => drop(added?),
        }
    }
    if let Some(present) = present {
        refresh(tx, source, &present, listed, now).await?;
    }
    let account = user::find(tx, &listed.name).await?;
    account.ok_or(DbError::NotFound("account"))
}

async fn refresh(
    tx: &mut Tx,
    source: Source,
    present: &User,
    listed: &Listed,
    now: Timestamp,
) -> Result<(), DbError> {
    if present.deleted_at.is_some() {
        return Err(DbError::NameBeingRemoved);
    }
    if present.role != Role::User || present.source != source {
        return Err(DbError::NameTaken);
    }
    let uid = &present.uid;
    let subject: Option<String> = scalar_optional!(tx, SUBJECT, uid)?;
    // DNs change when people move; the subject of a provider is forever one person's.
    if source == Source::Oidc
        && subject
            .as_ref()
            .is_some_and(|subject| *subject != listed.subject)
    {
        return Err(DbError::NameTaken);
    }
    let identity = identity_of(tx, uid).await?;
    if let (Some(known), Some(listed)) = (&identity, &listed.identity)
        && are_different(known, listed)
    {
        return Err(DbError::NameTaken);
    }
    let digest: Option<String> = scalar_optional!(tx, DIGEST, uid)?;
    let same = match listed.groups {
        Some(_) => digest == Some(listed.digest()),
        None => digest.is_some() && subject.as_ref() == Some(&listed.subject),
    };
    if same && (listed.identity.is_none() || identity == listed.identity) {
        return Ok(());
    }
    group::lock(tx).await?;
    // A list may have removed it just before.
    let present = user::find(tx, &listed.name).await?;
    if present.is_none_or(|present| present.uid != *uid || present.deleted_at.is_some()) {
        return Err(DbError::NameBeingRemoved);
    }
    let before = impact::before(tx, Scope::Users(vec![uid.clone()])).await?;
    let mut groups = Groups::read(tx, source, now).await?;
    let left = update(tx, uid, listed, digest.is_none(), &mut groups).await?;
    // No list comes that would say so.
    if source == Source::Oidc && !left.is_empty() {
        let known = self::groups(tx).await?;
        for group in known {
            if left.contains(&group.uid) && !group.in_use && !group.has_members {
                group::delete(tx, &group.uid).await?;
            }
        }
    }
    before.settle(tx).await?;
    Ok(())
}

/// What identifies each user in the source, in one scan.
pub async fn subjects(connection: &mut Connection) -> Result<BTreeMap<Uid, String>, DbError> {
    let rows: Vec<(Uid, String)> = fetch_all!(connection, SUBJECTS)?;
    Ok(rows.into_iter().collect())
}

/// Since when a user is missing from the source.
pub async fn missing_since(
    connection: &mut Connection,
    uid: &Uid,
) -> Result<Option<Timestamp>, DbError> {
    let since: Option<Option<Timestamp>> = scalar_optional!(connection, MISSING_SINCE, uid)?;
    Ok(since.flatten())
}
