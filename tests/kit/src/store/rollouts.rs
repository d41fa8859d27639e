//! Rollouts in memory: what the functions of `schema::rollout` of the same names do.

use schema::condition::{self, ConditionType};
use schema::container::Desired;
use schema::error::DbError;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::rollout::{
    DesiredRollout, ImageChoice, NewRollout, Phase, ReadinessPolicy, RolloutFacts, RolloutRow,
    RolloutTarget, TargetContainer, TargetFiles, TargetState,
};

use super::MemoryStore;
use super::tables::Tables;
use reconcilers::rollout::RolloutStep;

/// A rollout with its users; their containers and its generation are read from where they are.
#[derive(Debug)]
pub(super) struct Rollout {
    pub(super) row: RolloutRow,
    pub(super) targets: Vec<RolloutTarget>,
}

const ENDED: DbError = DbError::WrongState("the rollout has ended");

/// A rollout of a changed configuration or adapter ends by the next change only.
fn check_desired(rollout: &Rollout) -> Result<(), DbError> {
    match rollout.row.kind.changes_image() {
        true => Ok(()),
        false => Err(DbError::WrongState("resume it, or go back")),
    }
}

impl Tables {
    pub(super) fn unsettled_rollouts(&self) -> Vec<Uid> {
        let all = self.rollouts.iter();
        let is_unseen = |uid: &Uid| {
            let status = self.statuses.get(&(Kind::Rollout, uid.clone()));
            let observed = status.map_or(Generation(0), |(row, _)| row.observed_generation);
            self.object(Kind::Rollout, uid)
                .is_some_and(|object| observed < object.generation)
        };
        all.filter(|(uid, rollout)| rollout.row.facts.finished_at.is_none() || is_unseen(uid))
            .map(|(uid, _)| uid.clone())
            .collect()
    }

    pub(super) fn rollout(&self, uid: &Uid) -> Option<(RolloutRow, Vec<RolloutTarget>)> {
        let rollout = self.rollouts.get(uid)?;
        let row = RolloutRow {
            generation: self.object(Kind::Rollout, uid)?.generation,
            ..rollout.row.clone()
        };
        let targets = rollout.targets.iter().map(|target| RolloutTarget {
            container: self.target_container(&target.uid),
            files: self.target_files(&target.uid),
            ..target.clone()
        });
        Some((row, targets.collect()))
    }

    /// What the container's reference means, once it is known, and its digest.
    fn image_of(&self, uid: &Uid) -> Option<ImageChoice> {
        let spec = self.specs.get(uid)?;
        let facts = self.facts.get(uid);
        let made = facts.filter(|facts| facts.image_ref.as_ref() == Some(&spec.image_ref));
        let made_id = || made.and_then(|facts| facts.image_id.clone());
        let made_digest = || made.and_then(|facts| facts.image_digest.clone());
        Some(ImageChoice {
            reference: spec.image_ref.clone(),
            image_id: spec.image_id.clone().or_else(made_id),
            digest: spec.image_digest.clone().or_else(made_digest),
        })
    }

    fn target_container(&self, uid: &Uid) -> Option<TargetContainer> {
        let object = self.object(Kind::Container, uid)?;
        let account = self.accounts.get(uid)?;
        let spec = self.specs.get(uid)?;
        let image = self.image_of(uid)?;
        let status = self.statuses.get(&(Kind::Container, uid.clone()));
        let status = status.map(|(status, _)| status.clone()).unwrap_or_default();
        object.deleted_at.is_none().then(|| TargetContainer {
            desired_running: spec.desired == Desired::Running
                && !account.disabled
                && !account.missing,
            image_ref: image.reference,
            image_id: image.image_id,
            generation: object.generation,
            observed_generation: status.observed_generation,
            ready: condition::find(&status.conditions, ConditionType::Ready).cloned(),
        })
    }

    fn target_files(&self, uid: &Uid) -> Option<TargetFiles> {
        let object = self.object(Kind::AgentConfig, uid)?;
        let status = self.statuses.get(&(Kind::AgentConfig, uid.clone()));
        let status = status.map(|(status, _)| status.clone()).unwrap_or_default();
        object.deleted_at.is_none().then(|| TargetFiles {
            generation: object.generation,
            observed_generation: status.observed_generation,
            ready: condition::find(&status.conditions, ConditionType::Ready).cloned(),
        })
    }

    pub(super) fn rollout_step(&mut self, step: RolloutStep<'_>) -> Result<&mut Rollout, DbError> {
        match self.object(Kind::Rollout, step.rollout) {
            Some(object) if object.generation == step.planned_for => {}
            Some(object) => {
                let actual = object.generation.0;
                return Err(DbError::StaleGeneration { actual });
            }
            None => return Err(DbError::NotFound("rollout")),
        }
        let rollout = self.rollouts.get_mut(step.rollout);
        rollout.ok_or(DbError::NotFound("rollout"))
    }

    fn set_image(
        &mut self,
        user: &Uid,
        image: &ImageChoice,
        policy: Option<ReadinessPolicy>,
    ) -> Result<Generation, DbError> {
        let generation = self.bump_in_bulk(Kind::Container, user)?;
        match self.bump_in_bulk(Kind::AgentConfig, user) {
            Ok(_) | Err(DbError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        if let Some(spec) = self.specs.get_mut(user) {
            spec.image_ref.clone_from(&image.reference);
            spec.image_id.clone_from(&image.image_id);
            spec.image_digest.clone_from(&image.digest);
            spec.policy = policy;
        }
        Ok(generation)
    }

    pub(super) fn target(
        &mut self,
        step: RolloutStep<'_>,
        user: &Uid,
    ) -> Result<Option<&mut RolloutTarget>, DbError> {
        let targets = &mut self.rollout_step(step)?.targets;
        Ok(targets.iter_mut().find(|target| target.uid == *user))
    }

    pub(super) fn move_targets(
        &mut self,
        step: RolloutStep<'_>,
        users: &[Uid],
        image: &ImageChoice,
        policy: ReadinessPolicy,
    ) -> Result<Vec<(Uid, Generation)>, DbError> {
        self.rollout_step(step)?;
        // All or none.
        for user in users {
            let object = self.object(Kind::Container, user);
            if object.is_none_or(|object| object.deleted_at.is_some()) {
                return Err(DbError::NotFound("object"));
            }
        }
        let moved = users.iter().map(|user| {
            let generation = self.move_target(step, user, image, policy)?;
            Ok((user.clone(), generation))
        });
        moved.collect()
    }

    fn move_target(
        &mut self,
        step: RolloutStep<'_>,
        user: &Uid,
        image: &ImageChoice,
        policy: ReadinessPolicy,
    ) -> Result<Generation, DbError> {
        let before = self.image_of(user);
        let generation = self.set_image(user, image, Some(policy))?;
        if let Some(target) = self.target(step, user)? {
            target.previous = target.previous.take().or(before);
            under_way(target, TargetState::Moving, image, generation, "", step.now);
        }
        Ok(generation)
    }

    fn keep_log(&mut self, step: RolloutStep<'_>, user: &Uid) -> Result<(), DbError> {
        let newest = self.ends.get(user).and_then(|ends| ends.first()).cloned();
        if let (Some(end), Some(target)) = (newest, self.target(step, user)?)
            && target.log.is_empty()
            && target.moved_at.is_some_and(|moved_at| end.at >= moved_at)
        {
            target.log = end.log;
        }
        Ok(())
    }

    pub(super) fn put_back_target(
        &mut self,
        step: RolloutStep<'_>,
        user: &Uid,
        state: TargetState,
        message: &str,
    ) -> Result<Vec<(Uid, Generation)>, DbError> {
        let target = self.target(step, user)?;
        let previous = target.and_then(|target| target.previous.clone());
        let image = previous.ok_or(DbError::NotFound("previous image"))?;
        let generation = self.set_image(user, &image, None)?;
        if state == TargetState::PuttingBack {
            self.keep_log(step, user)?;
        }
        if let Some(target) = self.target(step, user)? {
            under_way(target, state, &image, generation, message, step.now);
        }
        Ok(vec![(user.clone(), generation)])
    }

    pub(super) fn finish_targets(
        &mut self,
        step: RolloutStep<'_>,
        users: &[Uid],
        state: TargetState,
        message: &str,
    ) -> Result<(), DbError> {
        let targets = &mut self.rollout_step(step)?.targets;
        for target in targets.iter_mut().filter(|t| users.contains(&t.uid)) {
            target.state = state;
            target.finished_at = Some(step.now);
            message.clone_into(&mut target.message);
        }
        Ok(())
    }

    pub(super) fn finish_target(
        &mut self,
        step: RolloutStep<'_>,
        user: &Uid,
        state: TargetState,
        message: &str,
    ) -> Result<(), DbError> {
        self.finish_targets(step, std::slice::from_ref(user), state, message)?;
        if state == TargetState::Failed {
            self.keep_log(step, user)?;
        }
        if let Some(spec) = self.specs.get_mut(user) {
            spec.policy = None;
        }
        Ok(())
    }

    pub(super) fn insert_rollout(
        &mut self,
        uid: &Uid,
        new: &NewRollout,
        users: &[Uid],
        actor: &str,
        now: Timestamp,
    ) {
        let phase = match new.kind.changes_image() {
            true => Phase::Pulling,
            false => Phase::Rolling,
        };
        let row = RolloutRow {
            uid: uid.clone(),
            kind: new.kind,
            reference: new.reference.clone(),
            source: new.source.clone(),
            max_unavailable: new.max_unavailable,
            pause_on_failure: new.pause_on_failure,
            health_timeout: new.health_timeout,
            min_ready: new.min_ready,
            desired: DesiredRollout::Run,
            attempt: 1,
            generation: Generation(1),
            actor: actor.to_owned(),
            created_at: now,
            facts: RolloutFacts {
                image_id: None,
                image_digest: None,
                resolved_attempt: 0,
                paused_attempt: 0,
                phase,
                message: String::new(),
                finished_at: None,
                pull_failed_at: None,
            },
        };
        let known = users.iter().filter_map(|user| {
            let account = self.accounts.get(user)?;
            Some((user, account.name.to_string()))
        });
        let targets = known.map(|(user, name)| RolloutTarget {
            uid: user.clone(),
            name,
            state: TargetState::Pending,
            image_id: None,
            previous: None,
            generation: None,
            moved_at: None,
            finished_at: None,
            message: String::new(),
            log: String::new(),
            container: None,
            files: None,
        });
        let targets = targets.collect();
        self.create(Kind::Rollout, uid);
        self.rollouts.insert(uid.clone(), Rollout { row, targets });
    }

    /// Whether one of a rollout's users is in another one that has not ended.
    fn conflict(&self, rollout: &Uid, users: &[Uid]) -> Result<(), DbError> {
        for (uid, other) in &self.rollouts {
            if uid == rollout
                || other.row.facts.finished_at.is_some()
                || !other.row.kind.changes_image()
            {
                continue;
            }
            let both = other.targets.iter().filter(|t| users.contains(&t.uid));
            let users: Vec<String> = both.map(|target| target.name.clone()).collect();
            if !users.is_empty() {
                let rollout = uid.to_string();
                return Err(DbError::InRollout { rollout, users });
            }
        }
        Ok(())
    }
}

pub(super) fn set_under_way(target: &mut RolloutTarget, generation: Generation, now: Timestamp) {
    target.state = TargetState::Moving;
    target.generation = Some(generation);
    target.moved_at = Some(now);
    target.finished_at = None;
    target.message.clear();
}

fn under_way(
    target: &mut RolloutTarget,
    state: TargetState,
    image: &ImageChoice,
    generation: Generation,
    message: &str,
    now: Timestamp,
) {
    target.state = state;
    target.image_id.clone_from(&image.image_id);
    target.generation = Some(generation);
    target.moved_at = Some(now);
    target.finished_at = None;
    message.clone_into(&mut target.message);
}

impl MemoryStore {
    /// Records a rollout of `users`, in this order.
    ///
    /// # Errors
    /// When one of them is in another rollout that has not ended.
    pub fn create_rollout(
        &self,
        uid: &Uid,
        new: &NewRollout,
        users: &[Uid],
        actor: &str,
        now: Timestamp,
    ) -> Result<(), DbError> {
        self.write(|tables| {
            let known = users
                .iter()
                .filter(|user| tables.accounts.contains_key(*user));
            let users: Vec<Uid> = known.cloned().collect();
            tables.conflict(uid, &users)?;
            tables.insert_rollout(uid, new, &users, actor, now);
            Ok(())
        })
    }

    fn change_rollout(
        &self,
        uid: &Uid,
        change: impl FnOnce(&mut Rollout) -> Result<(), DbError>,
    ) -> Result<Generation, DbError> {
        self.write(|tables| {
            let rollout = tables.rollouts.get_mut(uid);
            change(rollout.ok_or(DbError::NotFound("rollout"))?)?;
            tables.bump(Kind::Rollout, uid)
        })
    }

    /// All rollouts.
    pub fn peek_rollouts(&self) -> Vec<RolloutRow> {
        let tables = self.tables();
        tables
            .rollouts
            .values()
            .map(|rollout| rollout.row.clone())
            .collect()
    }

    /// Nobody more shall be moved until it is resumed.
    ///
    /// # Errors
    /// When it has ended, is rolled back or called off.
    pub fn pause_rollout(&self, uid: &Uid) -> Result<Generation, DbError> {
        self.change_rollout(uid, |rollout| match rollout.row.desired {
            _ if rollout.row.facts.finished_at.is_some() => Err(ENDED),
            DesiredRollout::Run | DesiredRollout::Pause => {
                rollout.row.desired = DesiredRollout::Pause;
                Ok(())
            }
            DesiredRollout::Rollback | DesiredRollout::Cancel => {
                Err(DbError::WrongState("it does not go on"))
            }
        })
    }

    /// It shall go on.
    ///
    /// # Errors
    /// When it is not paused.
    pub fn resume_rollout(&self, uid: &Uid) -> Result<Generation, DbError> {
        self.change_rollout(uid, |rollout| {
            match rollout.row.desired {
                _ if rollout.row.facts.finished_at.is_some() => return Err(ENDED),
                DesiredRollout::Pause => {}
                DesiredRollout::Run if rollout.row.paused_itself() => {}
                DesiredRollout::Run | DesiredRollout::Rollback | DesiredRollout::Cancel => {
                    return Err(DbError::WrongState("the rollout is not paused"));
                }
            }
            rollout.row.desired = DesiredRollout::Run;
            rollout.row.attempt += 1;
            let retries = rollout.row.kind.changes_image();
            rollout.row.facts.pull_failed_at = None;
            for target in &mut rollout.targets {
                if target.state == TargetState::Failed && !retries {
                    target.state = TargetState::Skipped;
                } else if target.state == TargetState::Failed {
                    target.state = TargetState::Pending;
                    target.message.clear();
                    target.log.clear();
                    target.finished_at = None;
                }
            }
            Ok(())
        })
    }

    /// Everybody shall go back to the image of before.
    ///
    /// # Errors
    /// When it was rolled back already, or one of its users is in another rollout by now.
    pub fn roll_back_rollout(&self, uid: &Uid) -> Result<Generation, DbError> {
        self.write(|tables| {
            let rollout = tables.rollouts.get(uid);
            let rollout = rollout.ok_or(DbError::NotFound("rollout"))?;
            check_desired(rollout)?;
            if rollout.row.facts.phase == Phase::RolledBack {
                return Err(DbError::WrongState("the rollout was rolled back already"));
            }
            if rollout.row.facts.finished_at.is_some() {
                let users: Vec<Uid> = rollout.targets.iter().map(|t| t.uid.clone()).collect();
                tables.conflict(uid, &users)?;
            }
            let generation = tables.bump(Kind::Rollout, uid)?;
            if let Some(rollout) = tables.rollouts.get_mut(uid) {
                rollout.row.facts.finished_at = None;
                rollout.row.desired = DesiredRollout::Rollback;
            }
            Ok(generation)
        })
    }

    /// Nobody more shall be moved, and that is the end.
    ///
    /// # Errors
    /// When it has ended or is being rolled back.
    pub fn cancel_rollout(&self, uid: &Uid) -> Result<Generation, DbError> {
        self.change_rollout(uid, |rollout| {
            check_desired(rollout)?;
            match rollout.row.desired {
                _ if rollout.row.facts.finished_at.is_some() => Err(ENDED),
                DesiredRollout::Run | DesiredRollout::Pause | DesiredRollout::Cancel => {
                    rollout.row.desired = DesiredRollout::Cancel;
                    Ok(())
                }
                DesiredRollout::Rollback => {
                    Err(DbError::WrongState("the rollout is being rolled back"))
                }
            }
        })
    }
}
