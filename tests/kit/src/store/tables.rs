//! The tables, and what the statements of the reconcilers do to them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use schema::config::query::Values;
use schema::container::{ContainerEnd, ContainerFacts, ContainerRow, Desired, ENDS_KEPT};
use schema::error::DbError;
use schema::home::ArchiveBatch;
use schema::ids::{Epoch, Generation, Kind, Timestamp, Uid, UserName};
use schema::object::StatusRow;
use schema::rollout::ReadinessPolicy;
use schema::user::UserRow;

use super::adapters::Packages;
use super::configs::AgentConfig;
use super::held::Held;
use super::images::ImageSpec;
use super::rollouts::Rollout;

#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) generation: Generation,
    pub(super) bulk_generation: Generation,
    pub(super) deleted_at: Option<Timestamp>,
    /// The version of its newest generation.
    version: i64,
}

#[derive(Debug, Clone)]
pub(super) struct Account {
    pub(super) name: UserName,
    /// The name before a rename, until the directory has the new one.
    pub(super) previous_name: Option<UserName>,
    /// No container has that name any more.
    pub(super) previous_released: bool,
    pub(super) disabled: bool,
    /// Missing from where users come from.
    pub(super) missing: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Spec {
    pub(super) desired: Desired,
    pub(super) restart_token: String,
    pub(super) debug: bool,
    pub(super) image_ref: String,
    pub(super) image_id: Option<String>,
    pub(super) image_digest: Option<String>,
    pub(super) policy: Option<ReadinessPolicy>,
    pub(super) cpu_limit: Option<f64>,
    pub(super) memory_limit_mb: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) objects: BTreeMap<(Kind, Uid), Object>,
    /// Objects in the order in which their newest generations came.
    changes: BTreeMap<i64, (Kind, Uid)>,
    /// The version of the newest change.
    pub(super) version: i64,
    pub(super) paused: BTreeSet<(Kind, Uid)>,
    pub(super) statuses: BTreeMap<(Kind, Uid), (StatusRow, Epoch)>,
    finalizers: BTreeSet<(Kind, Uid, String)>,
    pub(super) accounts: BTreeMap<Uid, Account>,
    pub(super) specs: BTreeMap<Uid, Spec>,
    pub(super) facts: BTreeMap<Uid, ContainerFacts>,
    /// Newest first.
    pub(super) ends: BTreeMap<Uid, Vec<ContainerEnd>>,
    /// What goes into the agent's files of each account.
    pub(super) agent_configs: BTreeMap<Uid, AgentConfig>,
    pub(super) images: BTreeMap<Uid, ImageSpec>,
    pub(super) rollouts: BTreeMap<Uid, Rollout>,
    pub(super) held: BTreeMap<Uid, Held>,
    /// How many changes there were that agents get in steps.
    pub(super) steps: u64,
    pub(super) paused_reconcilers: BTreeSet<String>,
    pub(super) config: Values,
    /// How often configuration changed; its generation is one more.
    pub(super) config_changes: i64,
    pub(super) packages: Packages,
    pub(super) archive: schema::archive::ArchiveFacts,
    pub(super) skills: super::skills::Skills,
    pub(super) directory: super::directories::Directories,
    /// The batches of the archive that directories of users go to.
    pub(super) batches: BTreeMap<Uid, ArchiveBatch>,
    /// What users' workspaces take.
    pub(super) workspaces: BTreeMap<Uid, super::usage::Workspace>,
}

impl Tables {
    pub(super) fn object(&self, kind: Kind, uid: &Uid) -> Option<&Object> {
        self.objects.get(&(kind, uid.clone()))
    }

    /// A new object.
    pub(super) fn create(&mut self, kind: Kind, uid: &Uid) {
        self.version += 1;
        let object = Object {
            generation: Generation(1),
            bulk_generation: Generation(0),
            deleted_at: None,
            version: self.version,
        };
        let key = (kind, uid.clone());
        self.changes.insert(self.version, key.clone());
        self.objects.insert(key, object);
    }

    /// One more generation.
    pub(super) fn raise(&mut self, key: &(Kind, Uid)) -> Result<Generation, DbError> {
        let object = self
            .objects
            .get_mut(key)
            .ok_or(DbError::NotFound("object"))?;
        object.generation.0 += 1;
        self.changes.remove(&object.version);
        self.version += 1;
        object.version = self.version;
        self.changes.insert(self.version, key.clone());
        Ok(object.generation)
    }

    /// What has changed after a version.
    pub(super) fn changes_of(&self, kind: Kind, since: i64) -> impl Iterator<Item = &Uid> {
        let changes = self.changes.range(since + 1..);
        changes.filter_map(move |(_, (of, uid))| (*of == kind).then_some(uid))
    }

    pub(super) fn paused_of(&self, kind: Kind) -> HashSet<Uid> {
        let paused = self.paused.iter().filter(|(of, _)| *of == kind);
        paused.map(|(_, uid)| uid.clone()).collect()
    }

    pub(super) fn config_generation(&self) -> i64 {
        self.config_changes + 1
    }

    fn has_finalizer(&self, kind: Kind, uid: &Uid, name: &str) -> bool {
        self.finalizers
            .contains(&(kind, uid.clone(), name.to_owned()))
    }

    pub(super) fn user_row(&self, uid: &Uid) -> Option<UserRow> {
        let object = self.object(Kind::User, uid)?;
        let account = self.accounts.get(uid)?;
        Some(UserRow {
            uid: uid.clone(),
            name: account.name.clone(),
            previous_name: account.previous_name.clone(),
            previous_released: account.previous_released,
            generation: object.generation,
            deleted_at: object.deleted_at,
            archive_batch: self.batches.get(uid).cloned(),
            has_finalizer: self.has_finalizer(Kind::User, uid, "user"),
            adapter_generation: self.adapter_generation(),
            quota: self.verdict(uid),
        })
    }

    pub(super) fn user_rows(&self) -> Vec<UserRow> {
        let uids = self.accounts.keys();
        uids.filter_map(|uid| self.user_row(uid)).collect()
    }

    pub(super) fn container_row(&self, uid: &Uid) -> Option<ContainerRow> {
        let object = self.object(Kind::Container, uid)?;
        let account = self.accounts.get(uid)?;
        let spec = self.specs.get(uid)?;
        Some(ContainerRow {
            uid: uid.clone(),
            name: account.name.clone(),
            previous_name: match account.previous_released {
                true => None,
                false => account.previous_name.clone(),
            },
            disabled: account.disabled || account.missing,
            quota_stop: {
                let verdict = self.verdict(uid);
                verdict.stops.then_some(verdict.note)
            },
            desired: spec.desired,
            restart_token: spec.restart_token.clone(),
            debug: spec.debug,
            image_ref: spec.image_ref.clone(),
            image_id: spec.image_id.clone(),
            image_digest: spec.image_digest.clone(),
            health_timeout: spec.policy.map(|policy| policy.health_timeout),
            min_ready: spec.policy.map(|policy| policy.min_ready),
            cpu_limit: spec.cpu_limit,
            memory_limit_mb: spec.memory_limit_mb,
            generation: object.generation,
            deleted_at: object.deleted_at,
            has_finalizer: self.has_finalizer(Kind::Container, uid, "container"),
            config_generation: self.config_generation(),
            adapter_generation: self.adapter_generation(),
            files: self.agent_files(uid),
            held_by: self.held_by(uid),
            facts: self.facts.get(uid).cloned().unwrap_or_default(),
        })
    }

    pub(super) fn container_rows(&self) -> Vec<ContainerRow> {
        let uids = self.specs.keys();
        uids.filter_map(|uid| self.container_row(uid)).collect()
    }

    pub(super) fn add_finalizer(&mut self, kind: Kind, uid: &Uid, name: &str) {
        if self.objects.contains_key(&(kind, uid.clone())) {
            self.finalizers.insert((kind, uid.clone(), name.to_owned()));
        }
    }

    /// Removes a finalizer; tells whether the object may be purged now.
    pub(super) fn finalize(&mut self, kind: Kind, uid: &Uid, finalizer: &str) -> bool {
        self.finalizers
            .remove(&(kind, uid.clone(), finalizer.to_owned()));
        let left = self
            .finalizers
            .iter()
            .any(|(k, u, _)| *k == kind && u == uid);
        let deleted = self
            .object(kind, uid)
            .is_some_and(|object| object.deleted_at.is_some());
        deleted && !left
    }

    pub(super) fn remove_object(&mut self, kind: Kind, uid: &Uid) {
        let key = (kind, uid.clone());
        if let Some(object) = self.objects.remove(&key) {
            self.changes.remove(&object.version);
        }
        self.statuses.remove(&key);
        self.paused.remove(&key);
    }

    pub(super) fn purge_container(&mut self, uid: &Uid, finalizer: &str) -> bool {
        if !self.finalize(Kind::Container, uid, finalizer) {
            return false;
        }
        self.remove_object(Kind::Container, uid);
        self.specs.remove(uid);
        self.facts.remove(uid);
        self.ends.remove(uid);
        true
    }

    pub(super) fn purge_user(&mut self, uid: &Uid, finalizer: &str) -> Result<bool, DbError> {
        let finalizers = self.finalizers.clone();
        if !self.finalize(Kind::User, uid, finalizer) {
            return Ok(false);
        }
        if self.specs.contains_key(uid) {
            // The whole transaction fails.
            self.finalizers = finalizers;
            return Err(DbError::Corrupt("the container refers to it".to_owned()));
        }
        self.remove_object(Kind::User, uid);
        self.remove_object(Kind::AgentConfig, uid);
        self.remove_object(Kind::SkillSet, uid);
        self.skills.purge_user(uid);
        self.directory.purge_user(uid);
        self.agent_configs.remove(uid);
        self.workspaces.remove(uid);
        self.accounts.remove(uid);
        Ok(true)
    }

    /// False when the container is gone.
    pub(super) fn save_facts(&mut self, uid: &Uid, facts: &ContainerFacts) -> bool {
        let there = self.specs.contains_key(uid);
        if there {
            self.facts.insert(uid.clone(), facts.clone());
        }
        there
    }

    /// Records an end beside the newest others.
    pub(super) fn note_end(&mut self, uid: &Uid, end: &ContainerEnd) {
        let ends = self.ends.entry(uid.clone()).or_default();
        ends.retain(|other| other.at != end.at);
        ends.push(end.clone());
        ends.sort_by_key(|end| std::cmp::Reverse(end.at));
        ends.truncate(ENDS_KEPT);
    }

    pub(super) fn save_status(
        &mut self,
        kind: Kind,
        uid: &Uid,
        status: &StatusRow,
        epoch: Epoch,
    ) -> bool {
        let key = (kind, uid.clone());
        let newer = self.statuses.get(&key).is_some_and(|(old, by)| {
            old.observed_generation > status.observed_generation || *by > epoch
        });
        if newer || !self.objects.contains_key(&key) {
            return false;
        }
        self.statuses.insert(key, (status.clone(), epoch));
        true
    }

    /// One more change of desired state.
    pub(super) fn bump(&mut self, kind: Kind, uid: &Uid) -> Result<Generation, DbError> {
        let object = self.object(kind, uid);
        if object.is_none_or(|object| object.deleted_at.is_some()) {
            return Err(DbError::NotFound("object"));
        }
        let generation = self.raise(&(kind, uid.clone()))?;
        if kind == Kind::Container && self.held.remove(uid).is_some() {
            let _ = self.bump(Kind::AgentConfig, uid);
        }
        Ok(generation)
    }

    /// One more change of desired state of all of a kind, each as part of a change of many.
    pub(super) fn bump_all(&mut self, kind: Kind) {
        let objects = self.objects.iter().filter(|((k, _), _)| *k == kind);
        let uids: Vec<Uid> = objects.map(|((_, uid), _)| uid.clone()).collect();
        for uid in uids {
            // Those that are being removed stay as they are.
            let _ = self.bump_in_bulk(kind, &uid);
        }
    }

    /// The same, as part of a change of many; not so while a change of this one alone waits to be seen.
    pub(super) fn bump_in_bulk(&mut self, kind: Kind, uid: &Uid) -> Result<Generation, DbError> {
        let key = (kind, uid.clone());
        let observed = self.statuses.get(&key);
        let observed = observed.map_or(Generation(0), |(status, _)| status.observed_generation);
        let before = self.object(kind, uid).map(|object| {
            object.bulk_generation == object.generation || object.generation <= observed
        });
        let generation = self.bump(kind, uid)?;
        if let Some(object) = self.objects.get_mut(&key)
            && before == Some(true)
        {
            object.bulk_generation = generation;
        }
        Ok(generation)
    }
}
