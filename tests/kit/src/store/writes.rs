//! What the API writes: each method is one accepted write, or a refusal that changed nothing. They
//! mean what the functions of `schema` of the same names mean.

use schema::config::Changes;
use schema::config::{Effect, query};
use schema::container::Desired;
use schema::error::DbError;
use schema::ids::{Generation, Kind, Timestamp, Uid, UserName};
use schema::object::StatusRow;
use schema::rollout::RolloutKind;
use schema::user::NewUser;

use super::MemoryStore;
use super::tables::{Account, Spec, Tables};
use crate::script::Change;

pub(super) fn delete(
    tables: &mut Tables,
    kind: Kind,
    uid: &Uid,
    now: Timestamp,
) -> Result<Generation, DbError> {
    let generation = tables.bump(kind, uid)?;
    if let Some(object) = tables.objects.get_mut(&(kind, uid.clone())) {
        object.deleted_at = Some(now);
    }
    Ok(generation)
}

/// See [`MemoryStore::create_user`].
pub(super) fn create_user(tables: &mut Tables, new: &NewUser) -> Result<Generation, DbError> {
    let holder = tables
        .accounts
        .iter()
        .find(|(_, account)| account.name.key() == new.name.key());
    if let Some((holder, _)) = holder {
        let going = tables
            .object(Kind::User, holder)
            .is_some_and(|object| object.deleted_at.is_some());
        return Err(if going {
            DbError::NameBeingRemoved
        } else {
            DbError::NameTaken
        });
    }
    if is_previous_name(tables, &new.name) {
        return Err(DbError::NameBeingRemoved);
    }
    let account = Account {
        name: new.name.clone(),
        previous_name: None,
        previous_released: false,
        disabled: false,
        missing: false,
    };
    let spec = Spec {
        desired: new.desired,
        restart_token: String::new(),
        debug: false,
        image_ref: new.image_ref.clone(),
        image_id: None,
        image_digest: None,
        policy: None,
        cpu_limit: None,
        memory_limit_mb: None,
    };
    tables.accounts.insert(new.uid.clone(), account);
    tables.specs.insert(new.uid.clone(), spec);
    tables.create(Kind::User, &new.uid);
    tables.create(Kind::Container, &new.uid);
    tables.create_config(&new.uid);
    tables.create(Kind::SkillSet, &new.uid);
    Ok(Generation(1))
}

fn is_previous_name(tables: &Tables, name: &UserName) -> bool {
    let mut previous = tables.accounts.values();
    previous.any(|it| {
        it.previous_name
            .as_ref()
            .is_some_and(|it| it.key() == name.key())
    })
}

/// Gives an ordinary user another name.
pub(super) fn rename_user(tables: &mut Tables, uid: &Uid, name: &UserName) -> Result<(), DbError> {
    let mut holders = tables.accounts.values();
    if holders.any(|account| account.name.key() == name.key()) {
        return Err(DbError::NameTaken);
    }
    if is_previous_name(tables, name) {
        return Err(DbError::NameBeingRemoved);
    }
    let object = tables.object(Kind::User, uid);
    if object.is_none_or(|object| object.deleted_at.is_some()) {
        return Err(DbError::NotFound("account"));
    }
    let account = tables.accounts.get_mut(uid);
    let account = account.ok_or(DbError::NotFound("account"))?;
    if account.previous_name.is_some() {
        return Err(DbError::NameBeingRemoved);
    }
    account.previous_name = Some(std::mem::replace(&mut account.name, name.clone()));
    account.previous_released = false;
    for kind in [
        Kind::User,
        Kind::Container,
        Kind::AgentConfig,
        Kind::SkillSet,
    ] {
        tables.bump_in_bulk(kind, uid)?;
    }
    Ok(())
}

/// See [`MemoryStore::delete_user`].
pub(super) fn delete_user(
    tables: &mut Tables,
    uid: &Uid,
    now: Timestamp,
) -> Result<Generation, DbError> {
    let generation = delete(tables, Kind::User, uid, now)?;
    for kind in [Kind::Container, Kind::AgentConfig, Kind::SkillSet] {
        match delete(tables, kind, uid, now) {
            Ok(_) | Err(DbError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    tables.forget_values(uid);
    tables.skills.forget_user(uid);
    tables.directory.forget_user(uid);
    Ok(generation)
}

impl MemoryStore {
    pub(super) fn write<T>(
        &self,
        work: impl FnOnce(&mut Tables) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let result = work(&mut self.tables());
        if result.is_ok() {
            self.ring();
        }
        result
    }

    /// Makes the objects of those kinds of which there is one.
    pub fn create_singles(&self) {
        for (kind, uid, _) in Kind::singles() {
            self.tables().create(kind, &uid);
        }
        self.ring();
    }

    /// Creates an ordinary user with its container. Returns the container's generation.
    ///
    /// # Errors
    /// When the name is taken.
    pub fn create_user(&self, new: &NewUser) -> Result<Generation, DbError> {
        self.write(|tables| create_user(tables, new))
    }

    pub(super) fn change_spec(
        &self,
        uid: &Uid,
        change: impl FnOnce(&mut Spec),
    ) -> Result<Generation, DbError> {
        self.write(|tables| {
            let generation = tables.bump(Kind::Container, uid)?;
            if let Some(spec) = tables.specs.get_mut(uid) {
                change(spec);
            }
            Ok(generation)
        })
    }

    /// Start or stop.
    ///
    /// # Errors
    /// When the container is gone or going.
    pub fn set_desired(
        &self,
        uid: &Uid,
        desired: Desired,
        debug: bool,
    ) -> Result<Generation, DbError> {
        self.change_spec(uid, |spec| {
            spec.desired = desired;
            spec.debug = debug;
        })
    }

    /// Restart.
    ///
    /// # Errors
    /// When the container is gone or going.
    pub fn request_restart(
        &self,
        uid: &Uid,
        token: &str,
        debug: bool,
    ) -> Result<Generation, DbError> {
        self.change_spec(uid, |spec| {
            spec.desired = Desired::Running;
            spec.debug = debug;
            token.clone_into(&mut spec.restart_token);
        })
    }

    /// Own limits.
    ///
    /// # Errors
    /// When the container is gone or going.
    pub fn set_limits(
        &self,
        uid: &Uid,
        cpu_limit: Option<f64>,
        memory_limit_mb: Option<i64>,
    ) -> Result<Generation, DbError> {
        self.change_spec(uid, |spec| {
            spec.cpu_limit = cpu_limit;
            spec.memory_limit_mb = memory_limit_mb;
        })
    }

    /// Allows or forbids the account.
    ///
    /// # Errors
    /// When the container is gone or going.
    pub fn set_disabled(&self, uid: &Uid, disabled: bool) -> Result<Generation, DbError> {
        self.write(|tables| {
            let generation = tables.bump(Kind::Container, uid)?;
            if let Some(account) = tables.accounts.get_mut(uid) {
                account.disabled = disabled;
            }
            Ok(generation)
        })
    }

    /// Asks for the removal of a user. Returns the user's generation.
    ///
    /// # Errors
    /// When the user is gone or going.
    pub fn delete_user(&self, uid: &Uid, now: Timestamp) -> Result<Generation, DbError> {
        self.write(|tables| delete_user(tables, uid, now))
    }

    /// Switches passes of one object on or off.
    ///
    /// # Errors
    /// When the object is gone.
    pub fn set_paused(&self, kind: Kind, uid: &Uid, paused: bool) -> Result<Generation, DbError> {
        self.write(|tables| {
            let key = (kind, uid.clone());
            let generation = tables.raise(&key)?;
            if paused {
                tables.paused.insert(key);
            } else {
                tables.paused.remove(&key);
            }
            Ok(generation)
        })
    }

    /// Switches a whole reconciler (or all: `*`) on or off.
    pub fn set_reconciler_paused(&self, name: &str, paused: bool) {
        {
            let mut tables = self.tables();
            if paused {
                tables.paused_reconcilers.insert(name.to_owned());
            } else {
                tables.paused_reconcilers.remove(name);
            }
        }
        self.ring();
    }

    /// Saves configuration and bumps what it is an input of. Returns the configuration's generation.
    ///
    /// # Errors
    /// Never; like the other writes it could be refused.
    pub fn configure(&self, changes: &Changes) -> Result<i64, DbError> {
        self.write(|tables| {
            for (key, value) in &changes.0 {
                match value {
                    Some(value) => tables.config.insert((*key).to_owned(), value.clone()),
                    None => tables.config.remove(*key),
                };
            }
            if !changes.0.is_empty() {
                tables.config_changes += 1;
            }
            let changed = match query::affected(changes) {
                Some(affected) => {
                    let kinds = query::kinds_bumped(changes);
                    let now = Timestamp::default();
                    tables.change_in_steps(RolloutKind::Config, affected, &kinds, now)
                }
                None => Vec::new(),
            };
            for (uid, generation) in changed {
                self.tell(&Change::Moved { uid, generation });
            }
            for (kind, uid, _) in Kind::singles() {
                if !changes.have(Effect::Object(kind)) {
                    continue;
                }
                match tables.bump(kind, &uid) {
                    Ok(_) | Err(DbError::NotFound(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(tables.config_generation())
        })
    }

    /// The generation and the stored status of an object, at once and without being counted.
    pub fn peek(&self, kind: Kind, uid: &Uid) -> Option<(Generation, StatusRow)> {
        let tables = self.tables();
        let generation = tables.object(kind, uid)?.generation;
        let status = tables.statuses.get(&(kind, uid.clone()));
        Some((
            generation,
            status.map(|(row, _)| row.clone()).unwrap_or_default(),
        ))
    }

    /// The container's row, at once.
    pub fn peek_container(&self, uid: &Uid) -> Option<schema::container::ContainerRow> {
        self.tables().container_row(uid)
    }

    /// The user's row, at once.
    pub fn peek_user(&self, uid: &Uid) -> Option<schema::user::UserRow> {
        self.tables().user_row(uid)
    }

    /// The stored configuration, at once.
    pub fn peek_config(&self) -> schema::config::query::Values {
        self.tables().config.clone()
    }
}
