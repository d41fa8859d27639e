//! What must be so at the end: I1 one container for everybody who should have one, I2 every accepted
//! write in effect, I4 converged.

use engine::{ContainerDetails, ContainerState, LABEL_RESTART_TOKEN, NETWORK};
use reconcilers::container::settings::LABEL_CONFIG_DIGEST;
use schema::adapter::Adapter;
use schema::adapter::store::object_uid;
use schema::condition::{Condition, ConditionStatus, ConditionType, Reason, find};
use schema::config::query::engine_uid;
use schema::ids::{Generation, Kind, Uid};

use crate::checks::{ADAPTER_VARIABLE, is_ours, uid_of};
use crate::hands::CONFIG_FILE;
use crate::model::{Account, Wanted};
use crate::world::World;

impl World {
    /// Grows with everything that is changed by the service.
    pub fn progress(&self) -> (u64, u64, u64) {
        let files = self.ground.dir.writes();
        let monitor = self.monitor();
        (monitor.changes, monitor.writes, files)
    }

    /// Reads everything, and says what is not as it should be.
    pub fn check_end(&self) {
        let accounts = self.monitor().model.accounts.clone();
        let mut problems = Vec::new();
        for (uid, account) in &accounts {
            let result = match account.now() {
                Some(_) if account.deleted => self.check_gone(uid, account),
                Some(wanted) => self.check_living(uid, account, wanted),
                None => Err("nothing was ever asked for".to_owned()),
            };
            if let Err(problem) = result {
                problems.push(format!("{} ({uid}): {problem}", account.name));
            }
        }
        if let Err(problem) = self.check_rest(&accounts) {
            problems.push(problem);
        }
        for problem in problems {
            self.monitor().broken(format!("at the end: {problem}"));
        }
    }

    fn containers_of(&self, uid: &Uid) -> Vec<ContainerDetails> {
        let all = self.fake.containers().into_iter();
        all.filter(|details| uid_of(&details.container).as_ref() == Some(uid))
            .collect()
    }

    fn check_gone(&self, uid: &Uid, account: &Account) -> Result<(), String> {
        for kind in [
            Kind::User,
            Kind::Container,
            Kind::AgentConfig,
            Kind::SkillSet,
        ] {
            if self.ground.store.peek(kind, uid).is_some() {
                return Err(format!("I4: deleted, but {kind} is still there"));
            }
        }
        if !self.containers_of(uid).is_empty() {
            return Err("I1: deleted, but has a container".to_owned());
        }
        if self.ground.dir.owner_of(&account.name).as_ref() == Some(uid) {
            return Err("I4: deleted, but its directory is still there".to_owned());
        }
        let kept: Vec<String> = self
            .ground
            .dir
            .archives_of(uid)
            .iter()
            .flat_map(|directory| self.ground.dir.archived_files(directory))
            .filter(|file| !file.starts_with(".agent/"))
            .collect();
        if kept != account.files {
            return Err(format!("wrote {:?}, archived {kept:?}", account.files));
        }
        Ok(())
    }

    fn check_living(&self, uid: &Uid, account: &Account, wanted: &Wanted) -> Result<(), String> {
        let store = &self.ground.store;
        let (generation, status) = store
            .peek(Kind::User, uid)
            .ok_or("I2: the user is gone, nobody deleted it")?;
        if generation.0 != account.user_generation {
            return Err(format!(
                "I2: {} writes to the user, generation {generation}",
                account.user_generation
            ));
        }
        let ready = find(&status.conditions, ConditionType::Ready);
        if status.observed_generation != generation
            || !ready.is_some_and(|ready| ready.status == ConditionStatus::True)
        {
            return Err(format!("I4: the user is not ready: {status:?}"));
        }
        if self.ground.dir.owner_of(&account.name).as_ref() != Some(uid) {
            return Err("I4: has no directory".to_owned());
        }
        let row = store
            .peek_container(uid)
            .ok_or("I2: the container's row is gone")?;
        let stored = (
            row.desired_running(),
            row.disabled,
            row.debug,
            row.restart_token.as_str(),
            row.memory_limit_mb,
        );
        let asked = (
            wanted.desired_running(),
            wanted.disabled,
            wanted.debug,
            wanted.token.as_str(),
            wanted.own_memory_mb,
        );
        if row.generation != Generation(account.container_generation()) || stored != asked {
            return Err(format!(
                "I2: asked for {asked:?} by {} writes, stored {stored:?} at generation {}",
                account.container_generation(),
                row.generation
            ));
        }
        self.check_files(uid, account)?;
        self.check_skills_of(uid, account)?;
        self.check_container(uid, account, wanted)
    }

    /// The files say what the user saved last, and still what the agent wrote for itself.
    fn check_files(&self, uid: &Uid, account: &Account) -> Result<(), String> {
        let (generation, status) = self
            .ground
            .store
            .peek(Kind::AgentConfig, uid)
            .ok_or("I2: the files' row is gone")?;
        let ready = find(&status.conditions, ConditionType::Ready);
        if status.observed_generation != generation
            || !ready.is_some_and(|ready| ready.status == ConditionStatus::True)
        {
            return Err(format!("I4: the files are not ready: {status:?}"));
        }
        let file = self.ground.dir.peek_file(&account.name, CONFIG_FILE);
        let file = String::from_utf8(file.unwrap_or_default()).unwrap_or_default();
        for (what, value) in [("saved", &account.saved), ("own", &account.own)] {
            if value.as_ref().is_some_and(|value| !file.contains(value)) {
                return Err(format!("I2: {what} {value:?}, but the file says {file}"));
            }
        }
        Ok(())
    }

    fn check_container(&self, uid: &Uid, account: &Account, wanted: &Wanted) -> Result<(), String> {
        let store = &self.ground.store;
        let row = store.peek_container(uid).ok_or("I2: the row is gone")?;
        let (generation, status) = store
            .peek(Kind::Container, uid)
            .ok_or("I2: the container is gone")?;
        if status.observed_generation != generation {
            return Err(format!(
                "I4: generation {generation}, observed {}",
                status.observed_generation
            ));
        }
        let ready = find(&status.conditions, ConditionType::Ready).ok_or("I3: no Ready")?;
        let containers = self.containers_of(uid);
        let base = account.name.container_name(uid);
        if !wanted.desired_running() {
            if !containers.is_empty() {
                return Err(format!("I1: shall not run, but has {containers:?}"));
            }
            if (ready.status, ready.reason) != (ConditionStatus::True, Reason::Stopped) {
                return Err(format!("I4: shall not run, but says {ready:?}"));
            }
            return Ok(());
        }
        if self.a_foreign_one_is_in_the_way(&base) {
            // Nothing can be done, and it says so; or it runs under the one name that is its own.
            return if ready.reason == Reason::NameConflict || ready.reason == Reason::Running {
                Ok(())
            } else {
                Err(format!("I4: a foreign container is in the way: {ready:?}"))
            };
        }
        let [one] = containers.as_slice() else {
            return Err(format!("I1: shall run, but has {containers:?}"));
        };
        // Only an agent that was seen ready is restarted when it hangs.
        let hung_from_the_start = ready.reason == Reason::NotReady
            && row.facts.ready_at.is_none()
            && self.fake.agent_hangs(&one.container.id);
        if (ready.status, ready.reason) != (ConditionStatus::True, Reason::Running)
            && !hung_from_the_start
        {
            return Err(format!("I4: shall run, but says {ready:?}"));
        }
        let token = one.container.labels.get(LABEL_RESTART_TOKEN);
        let as_asked = one.container.state == ContainerState::Running
            && one.container.name == base
            && token.map(String::as_str) == Some(wanted.token.as_str())
            && one.container.labels.get(LABEL_CONFIG_DIGEST) == Some(&wanted.files)
            && one.settings.memory_bytes == wanted.memory_bytes()
            && one.deviations.is_empty()
            && one.container.networks.keys().eq([NETWORK])
            && one.settings.environment.get(ADAPTER_VARIABLE) == Some(&wanted.adapter.to_string())
            && row
                .pinned_image()
                .is_none_or(|image| image == one.container.image_id);
        if as_asked {
            Ok(())
        } else {
            Err(format!("I4: asked for {wanted:?}, but has {one:?}"))
        }
    }

    fn a_foreign_one_is_in_the_way(&self, base: &str) -> bool {
        ["", ".next-", ".prev-"].iter().any(|ending| {
            let found = self.fake.container(&format!("{base}{ending}"));
            found.is_some_and(|details| !is_ours(&details.container))
        })
    }

    /// What belongs to nobody, and what belongs to all.
    fn check_rest(
        &self,
        accounts: &std::collections::BTreeMap<Uid, Account>,
    ) -> Result<(), String> {
        let orphan = self.fake.containers().into_iter().find(|details| {
            let known = uid_of(&details.container).is_some_and(|uid| accounts.contains_key(&uid));
            is_ours(&details.container) && !known
        });
        if let Some(orphan) = orphan {
            return Err(format!("I1: nobody's container {}", orphan.container.name));
        }
        for name in self.ground.dir.homes() {
            let living = accounts
                .values()
                .any(|account| !account.deleted && account.name.as_str() == name);
            if !living {
                return Err(format!("nobody's directory {name}"));
            }
        }
        let (_, status) = self
            .ground
            .store
            .peek(Kind::Engine, &engine_uid())
            .ok_or("the engine's row is gone")?;
        let ready = find(&status.conditions, ConditionType::Ready);
        if !ready.is_some_and(|ready| ready.status == ConditionStatus::True) {
            return Err(format!("I4: the engine is not ready: {ready:?}"));
        }
        self.check_images()?;
        self.check_store_of_skills()?;
        self.check_rollouts()?;
        self.check_adapter()
    }

    /// What of an object is known at its newest generation.
    fn settled(&self, kind: Kind, uid: &Uid) -> Result<Condition, String> {
        let found = self.ground.store.peek(kind, uid);
        let (generation, status) = found.ok_or(format!("I4: {kind}/{uid} is gone"))?;
        let ready = find(&status.conditions, ConditionType::Ready).cloned();
        match ready {
            Some(ready) if status.observed_generation == generation => Ok(ready),
            _ => Err(format!("I4: {kind}/{uid} at {generation}, but {status:?}")),
        }
    }

    /// Each image that somebody asked for is there, or is kept for those who have it, or its pull has failed, which is
    /// not tried again by itself.
    fn check_images(&self) -> Result<(), String> {
        for row in self.ground.store.peek_images() {
            let ready = self.settled(Kind::Image, &row.uid)?;
            let kept = row.deleted_at.is_some() && ready.reason == Reason::ImageInUse;
            let failed = row.has_failed() && ready.reason == Reason::PullFailed;
            if ready.status != ConditionStatus::True && !kept && !failed {
                return Err(format!("I4: image {}: {ready:?}", row.reference));
            }
        }
        Ok(())
    }

    /// Each rollout has ended.
    fn check_rollouts(&self) -> Result<(), String> {
        for row in self.ground.store.peek_rollouts() {
            let ready = self.settled(Kind::Rollout, &row.uid)?;
            if row.facts.finished_at.is_none() {
                return Err(format!("I4: rollout {} goes on: {ready:?}", row.uid));
            }
        }
        Ok(())
    }

    /// The newest package of the source is in effect.
    fn check_adapter(&self) -> Result<(), String> {
        let ready = self.settled(Kind::Adapter, &object_uid())?;
        let digest = |adapter: &Adapter| adapter.digest.clone();
        let active = self
            .ground
            .store
            .peek_adapter()
            .map(|adapter| digest(&adapter));
        let published = self
            .ground
            .packages
            .published()
            .map(|adapter| digest(&adapter));
        if ready.status != ConditionStatus::True || active != published {
            return Err(format!("I4: the adapter is not the newest: {ready:?}"));
        }
        Ok(())
    }
}
