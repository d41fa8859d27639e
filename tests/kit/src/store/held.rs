//! Changes that agents get in steps: what the functions of `schema::rollout::held` do.

use reconcilers::rollout::RolloutStep;
use schema::condition::{self, ConditionStatus, ConditionType};
use schema::config::{Config, keys};
use schema::container::Desired;
use schema::error::DbError;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::rollout::held::Affected;
use schema::rollout::{NewRollout, Phase, RolloutKind, TargetState};

use super::tables::Tables;

/// An agent that keeps what it has until its turn comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) rollout: Uid,
    container: Generation,
    files: Generation,
}

impl Tables {
    fn generations(&self, uid: &Uid) -> Option<[Generation; 2]> {
        let container = self.object(Kind::Container, uid)?.generation;
        Some([container, self.object(Kind::AgentConfig, uid)?.generation])
    }

    pub(super) fn held_by(&self, uid: &Uid) -> Option<Uid> {
        let held = self.held.get(uid)?;
        let now = self.generations(uid)?;
        (now == [held.container, held.files]).then(|| held.rollout.clone())
    }

    fn is_to_hold(&self, uid: &Uid, affected: Affected) -> bool {
        let (Some(spec), Some(account)) = (self.specs.get(uid), self.accounts.get(uid)) else {
            return false;
        };
        let container = (Kind::Container, uid.clone());
        let (Some(object), Some((status, _))) =
            (self.objects.get(&container), self.statuses.get(&container))
        else {
            return false;
        };
        let is_paused = self.paused.contains(&container)
            || self.paused.contains(&(Kind::AgentConfig, uid.clone()));
        let ready = condition::find(&status.conditions, ConditionType::Ready);
        let is_affected = affected.all
            || (affected.cpu && spec.cpu_limit.is_none())
            || (affected.memory && spec.memory_limit_mb.is_none());
        spec.desired == Desired::Running
            && !account.disabled
            && !account.missing
            && object.deleted_at.is_none()
            && !spec.debug
            && spec.policy.is_none()
            && !is_paused
            && status.observed_generation == object.generation
            && ready.is_some_and(|ready| ready.status == ConditionStatus::True)
            && (is_affected || self.held_by(uid).is_some())
    }

    /// Returns the containers that got the change at once, with their generations.
    pub(super) fn change_in_steps(
        &mut self,
        kind: RolloutKind,
        affected: Affected,
        kinds: &[Kind],
        now: Timestamp,
    ) -> Vec<(Uid, Generation)> {
        self.steps += 1;
        let rollout = Uid::from(format!("step-{}", self.steps));
        let uids = self.specs.keys().cloned();
        let users: Vec<Uid> = uids.filter(|uid| self.is_to_hold(uid, affected)).collect();
        for uid in &users {
            if let Some([container, files]) = self.generations(uid) {
                let held = Held {
                    rollout: rollout.clone(),
                    container,
                    files,
                };
                self.held.insert(uid.clone(), held);
            }
        }
        let others = self.leave_others(&rollout, now);
        if !users.is_empty() {
            let config = Config::from_stored(self.config.clone());
            let most = config.get(&keys::container::MAX_UNAVAILABLE);
            let new = NewRollout {
                kind,
                reference: format!("{kind} {}", self.steps),
                source: Some(format!("{kind} {}", self.steps - 1)),
                max_unavailable: u32::try_from(most).unwrap_or(1),
                pause_on_failure: true,
                health_timeout: config
                    .get(&keys::container::HEALTH_TIMEOUT)
                    .unwrap_or_default(),
                min_ready: config.get(&keys::container::MIN_READY).unwrap_or_default(),
            };
            self.insert_rollout(&rollout, &new, &users, "admin", now);
        }
        let mut changed = Vec::new();
        let kinds = match others {
            true => &[Kind::Container, Kind::AgentConfig],
            false => kinds,
        };
        for kind in kinds {
            let objects = self
                .objects
                .iter()
                .filter(|((k, _), object)| k == kind && object.deleted_at.is_none());
            let others: Vec<Uid> = objects
                .map(|((_, uid), _)| uid.clone())
                .filter(|uid| !users.contains(uid))
                .collect();
            for uid in others {
                if let Ok(generation) = self.bump_in_bulk(*kind, &uid)
                    && *kind == Kind::Container
                {
                    changed.push((uid, generation));
                }
            }
        }
        changed
    }

    fn leave_others(&mut self, new: &Uid, now: Timestamp) -> bool {
        let message = format!("a newer change took its place: {new}");
        let mut left = Vec::new();
        for (uid, rollout) in &mut self.rollouts {
            let facts = &mut rollout.row.facts;
            if rollout.row.kind.changes_image() || facts.finished_at.is_some() || uid == new {
                continue;
            }
            facts.phase = Phase::Cancelled;
            facts.message.clone_from(&message);
            facts.finished_at = Some(now);
            for target in &mut rollout.targets {
                if matches!(target.state, TargetState::Pending | TargetState::Moving) {
                    target.state = TargetState::Cancelled;
                    target.finished_at = Some(now);
                    target.message.clone_from(&message);
                }
            }
            left.push(uid.clone());
        }
        for uid in &left {
            self.release_all(uid);
            let _ = self.bump(Kind::Rollout, uid);
        }
        !left.is_empty()
    }

    pub(super) fn release_all(&mut self, rollout: &Uid) {
        self.held.retain(|_, held| held.rollout != *rollout);
    }

    pub(super) fn release_targets(
        &mut self,
        step: RolloutStep<'_>,
        users: &[Uid],
    ) -> Result<Vec<(Uid, Generation)>, DbError> {
        self.rollout_step(step)?;
        // All or none.
        for user in users {
            let object = self.object(Kind::Container, user);
            if object.is_none_or(|object| object.deleted_at.is_some()) {
                return Err(DbError::NotFound("object"));
            }
        }
        let mut released = Vec::new();
        for user in users {
            self.held.remove(user);
            let generation = self.bump_in_bulk(Kind::Container, user)?;
            let _ = self.bump_in_bulk(Kind::AgentConfig, user);
            if let Some(target) = self.target(step, user)? {
                super::rollouts::set_under_way(target, generation, step.now);
            }
            released.push((user.clone(), generation));
        }
        Ok(released)
    }
}
