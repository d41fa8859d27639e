//! The directory object, and users who come from it, in memory.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use reconcilers::directory::{DirectoryRow, DirectoryStore, Known, UserPage};
use schema::config::{AuthMode, Config, keys::web};
use schema::directory::{
    DirectoryFacts, KnownGroup, KnownUser, Listed, Request, SyncScope, UserChange, object_uid,
};
use schema::error::DbError;
use schema::ids::{Generation, Kind, PlainName, Timestamp, Uid};
use schema::user::Source;

use super::MemoryStore;
use super::tables::Tables;
use super::writes;

/// What the directory said.
#[derive(Debug)]
pub(super) struct Directories {
    request: Request,
    /// How many requests there were.
    requests: u64,
    facts: DirectoryFacts,
    /// Digest, and since when somebody is missing.
    users: BTreeMap<Uid, (String, Option<Timestamp>)>,
    /// What identifies their entries.
    identities: BTreeMap<Uid, String>,
    /// By key: identity, name and members.
    groups: BTreeMap<String, (Uid, PlainName, BTreeSet<Uid>)>,
    /// How many users and groups were made.
    made: u64,
    /// Everybody who ever was.
    names: BTreeSet<String>,
}

impl Default for Directories {
    fn default() -> Self {
        Self {
            request: Request {
                token: String::new(),
                scope: SyncScope::Users,
                confirm: String::new(),
            },
            requests: 0,
            facts: DirectoryFacts::default(),
            users: BTreeMap::new(),
            identities: BTreeMap::new(),
            groups: BTreeMap::new(),
            made: 0,
            names: BTreeSet::new(),
        }
    }
}

impl Directories {
    /// A user who is going is in no group any more.
    pub(super) fn forget_user(&mut self, uid: &Uid) {
        for (_, _, members) in self.groups.values_mut() {
            members.remove(uid);
        }
    }

    pub(super) fn purge_user(&mut self, uid: &Uid) {
        self.users.remove(uid);
        self.identities.remove(uid);
        self.forget_user(uid);
    }
}

impl Tables {
    /// Whether users come from the directory at all.
    fn uses_directory(&self) -> bool {
        Config::from_stored(self.config.clone()).get(&web::AUTH_MODE) == AuthMode::Ldap
    }

    fn set_groups(&mut self, uid: &Uid, listed: &Listed) {
        let Some(names) = &listed.groups else { return };
        for (_, _, members) in self.directory.groups.values_mut() {
            members.remove(uid);
        }
        for name in names {
            self.ensure_group(name).insert(uid.clone());
        }
    }

    fn ensure_group(&mut self, name: &PlainName) -> &mut BTreeSet<Uid> {
        let directory = &mut self.directory;
        let entry = directory.groups.entry(name.key()).or_insert_with(|| {
            directory.made += 1;
            let uid = Uid::from(format!("{:032x}", directory.made));
            (uid, name.clone(), BTreeSet::new())
        });
        &mut entry.2
    }

    fn set_missing(&mut self, uid: &Uid, since: Option<Timestamp>) {
        let entry = self.directory.users.entry(uid.clone()).or_default();
        let changed = entry.1.is_some() != since.is_some();
        entry.1 = entry.1.filter(|_| since.is_some()).or(since);
        if !changed {
            return;
        }
        if let Some(account) = self.accounts.get_mut(uid) {
            account.missing = since.is_some();
        }
        let _ = self.bump(Kind::Container, uid);
    }

    /// Whether an account that is not being removed is known by this identity.
    fn has_identity(&self, identity: Option<&String>) -> bool {
        let mut known = self.directory.identities.iter();
        known.any(|(uid, known)| {
            let object = self.object(Kind::User, uid);
            Some(known) == identity && object.is_some_and(|object| object.deleted_at.is_none())
        })
    }

    fn identify(&mut self, uid: &Uid, identity: Option<&String>) {
        if let Some(identity) = identity {
            let identities = &mut self.directory.identities;
            identities.insert(uid.clone(), identity.clone());
        }
    }

    fn change_user(&mut self, change: &UserChange, page: &UserPage, now: Timestamp) {
        match change {
            UserChange::Rename { uid, listed, .. } => {
                if writes::rename_user(self, uid, &listed.name).is_ok() {
                    self.directory.names.insert(listed.name.to_string());
                    let update = UserChange::Update {
                        uid: uid.clone(),
                        listed: listed.clone(),
                        back: true,
                    };
                    self.change_user(&update, page, now);
                }
            }
            UserChange::Identify { uid, identity, .. } => match identity {
                Some(_) => self.identify(uid, identity.as_ref()),
                None => drop(self.directory.identities.remove(uid)),
            },
            UserChange::Add(listed) if self.has_identity(listed.identity.as_ref()) => {}
            UserChange::Add(listed) => {
                self.directory.made += 1;
                let mut new = page.template.new_user(&listed.name, Source::Ldap, None);
                // Nothing here is random.
                new.uid = Uid::from(format!("d{:031x}", self.directory.made));
                if writes::create_user(self, &new).is_ok() {
                    self.directory
                        .users
                        .insert(new.uid.clone(), (listed.digest(), None));
                    self.set_groups(&new.uid, listed);
                    self.identify(&new.uid, listed.identity.as_ref());
                    self.directory.names.insert(listed.name.to_string());
                }
            }
            UserChange::Update { uid, listed, .. } => {
                if self.accounts.contains_key(uid) {
                    self.set_missing(uid, None);
                    // What is not known is asked for by the next list.
                    let digest = listed.groups.as_ref().map(|_| listed.digest());
                    self.directory
                        .users
                        .insert(uid.clone(), (digest.unwrap_or_default(), None));
                    self.identify(uid, listed.identity.as_ref());
                    self.set_groups(uid, listed);
                }
            }
            UserChange::Disable { uid, .. } => {
                if self.accounts.contains_key(uid) {
                    self.set_missing(uid, Some(now));
                }
            }
            UserChange::Remove { uid, since, .. } => {
                let missing = self.directory.users.get(uid).and_then(|said| said.1);
                if missing != *since {
                    return;
                }
                let _ = writes::delete_user(self, uid, now);
            }
        }
    }
}

#[async_trait]
impl DirectoryStore for MemoryStore {
    async fn directory_row(&self) -> Result<Option<DirectoryRow>, DbError> {
        self.transaction(|tables| {
            let object = tables.object(Kind::Directory, &object_uid());
            Ok(object.map(|object| DirectoryRow {
                generation: object.generation,
                request: tables.directory.request.clone(),
                facts: tables.directory.facts.clone(),
            }))
        })
        .await
    }

    async fn known(&self) -> Result<Known, DbError> {
        self.transaction(|tables| {
            let users = tables.accounts.iter().map(|(uid, account)| {
                let said = tables.directory.users.get(uid).cloned().unwrap_or_default();
                let object = tables.object(Kind::User, uid);
                KnownUser {
                    uid: uid.clone(),
                    name: account.name.clone(),
                    // Users are not found by DN here.
                    subject: String::new(),
                    identity: tables
                        .directory
                        .identities
                        .get(uid)
                        .cloned()
                        .unwrap_or_default(),
                    previous_name: account.previous_name.clone(),
                    digest: said.0,
                    missing_since: said.1,
                    // Nobody signs in here.
                    seen_at: Timestamp::from_millis(0),
                    leaving: object.is_none_or(|object| object.deleted_at.is_some()),
                }
            });
            let groups = tables.directory.groups.values();
            let groups = groups.map(|(uid, name, members)| KnownGroup {
                uid: uid.clone(),
                name: name.clone(),
                in_use: false,
                has_members: members.iter().any(|uid| {
                    let said = tables.directory.users.get(uid);
                    said.is_none_or(|(_, missing)| missing.is_none())
                }),
            });
            Ok(Known {
                users: users.collect(),
                groups: groups.collect(),
                superadmins: vec!["root".to_owned()],
            })
        })
        .await
    }

    async fn apply_users(&self, page: &UserPage, now: Timestamp) -> Result<(), DbError> {
        let done = self
            .transaction(|tables| {
                if !tables.uses_directory() {
                    return Ok(());
                }
                let is_new = |change: &&UserChange| matches!(change, UserChange::Add(_));
                let (new, others): (Vec<_>, Vec<_>) = page.changes.iter().partition(is_new);
                for change in new.into_iter().chain(others) {
                    tables.change_user(change, page, now);
                }
                Ok(())
            })
            .await;
        self.ring();
        done
    }

    async fn apply_groups(
        &self,
        add: &[PlainName],
        remove: &[Uid],
        _: Timestamp,
    ) -> Result<(), DbError> {
        self.transaction(|tables| {
            if !tables.uses_directory() {
                return Ok(());
            }
            for name in add {
                tables.ensure_group(name);
            }
            let directory = &mut tables.directory;
            for (uid, _, members) in directory.groups.values() {
                if remove.contains(uid) {
                    for user in members {
                        if let Some(said) = directory.users.get_mut(user) {
                            said.0.clear();
                        }
                    }
                }
            }
            tables
                .directory
                .groups
                .retain(|_, (uid, ..)| !remove.contains(uid));
            Ok(())
        })
        .await
    }

    async fn save_directory_facts(&self, facts: &DirectoryFacts) -> Result<(), DbError> {
        self.transaction(|tables| {
            tables.directory.facts = facts.clone();
            Ok(())
        })
        .await
    }
}

impl MemoryStore {
    /// Asks for a synchronisation. Returns the directory's generation.
    ///
    /// # Errors
    /// When there is no directory object.
    pub fn request_sync(&self, scope: SyncScope, confirm: &str) -> Result<Generation, DbError> {
        self.write(|tables| {
            let generation = tables.bump(Kind::Directory, &object_uid())?;
            let directory = &mut tables.directory;
            directory.requests += 1;
            let mut request = Request {
                token: format!("r{}", directory.requests),
                scope,
                confirm: confirm.to_owned(),
            };
            let before = &directory.request;
            if before.token != directory.facts.answered {
                // Nobody has worked on it yet: one answer is for both.
                if before.scope == SyncScope::Users {
                    request.scope = SyncScope::Users;
                }
                if confirm.is_empty() {
                    request.confirm.clone_from(&before.confirm);
                }
            }
            directory.request = request;
            Ok(generation)
        })
    }

    /// What is remembered of synchronisations.
    pub fn directory_facts(&self) -> DirectoryFacts {
        self.tables().directory.facts.clone()
    }

    /// The groups that each user is in, by the names of users who are not leaving.
    pub fn synchronised(&self) -> BTreeMap<String, (bool, BTreeSet<String>)> {
        let tables = self.tables();
        let users = tables.accounts.iter().filter(|(uid, _)| {
            let object = tables.object(Kind::User, uid);
            object.is_some_and(|object| object.deleted_at.is_none())
        });
        let users = users.map(|(uid, account)| {
            let groups = tables.directory.groups.values();
            let groups = groups.filter(|(.., members)| members.contains(uid));
            let groups = groups
                .map(|(_, name, _)| name.as_str().to_owned())
                .collect();
            (account.name.as_str().to_owned(), (account.missing, groups))
        });
        users.collect()
    }
}

impl MemoryStore {
    /// Whether somebody of this name has ever been created.
    pub fn was_known(&self, name: &str) -> bool {
        self.tables().directory.names.contains(name)
    }
}
