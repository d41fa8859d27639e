//! What the reference means: once for all users of an attempt, pulled first where that is asked for.

use std::time::Duration;

use schema::condition::{Condition, Reason};
use schema::config::PullPolicy;
use schema::config::query::{ENGINE_NAME, engine_uid};
use schema::ids::Kind;
use schema::rollout::{Phase, RolloutFacts, RolloutKind, TargetState};

use super::{Action, View};
use crate::rollout::observe::{Found, ObservedImage};
use crate::runtime::Plan;
use crate::shared::pulls::{self, PullState};

/// Longest time without an image before its rollout ends.
const PATIENCE: Duration = Duration::from_secs(60 * 60);
/// Cause of that end.
const NO_IMAGE: &str = "the image could not be had for an hour";

impl View<'_> {
    pub(super) fn resolve(&self, observed: Option<&ObservedImage>) -> Plan<Action> {
        let reference = &self.row.reference;
        let Some(observed) = observed else {
            return self.wait();
        };
        let there = match &observed.there {
            Ok(there) => there.as_ref(),
            Err(why) => {
                let condition = Condition::unknown(Reason::EngineUnavailable, why);
                return Plan::say(condition).waiting_for(Kind::Engine, &engine_uid(), ENGINE_NAME);
            }
        };
        if observed.policy == PullPolicy::Never {
            return match there {
                Some(found) => self.resolved(found, ""),
                None => {
                    let why = format!(
                        "the engine has no image {reference}, and image.pull_policy is never"
                    );
                    self.without_image(Reason::ImageMissing, why, pulls::FIRST_RETRY)
                }
            };
        }
        let local = there.filter(|found| found.is_local);
        // A digest that is there is as new as it ever gets.
        let newest = observed.fixed && local.is_some();
        let pull_wanted = match self.row.kind {
            RolloutKind::Upgrade => !newest,
            RolloutKind::Migrate | RolloutKind::Config | RolloutKind::Adapter => {
                local.is_none() || (observed.policy == PullPolicy::Always && !newest)
            }
        };
        match (there, &observed.pull) {
            (Some(found), _) if !pull_wanted => self.resolved(found, ""),
            // One that somebody else asked for is joined, so that its end, whichever, is this one's.
            _ if observed.asked.is_none() => self.pull(),
            (_, PullState::Running) => Plan::say(Condition::not_ready(
                Reason::ImagePulling,
                format!("pulling {reference}"),
            ))
            .waiting_for(Kind::Image, &pulls::awaited(reference), reference),
            (Some(found), PullState::Idle) => self.resolved(found, ""),
            (None, PullState::Idle) => {
                // Whoever removed it may do so again.
                let left = observed.asked;
                let left = left.and_then(|at| self.now.left_of(at, pulls::LONGEST_RETRY));
                let Some(left) = left else {
                    return self.pull();
                };
                let why = format!("{reference} was pulled, and is gone from the engine again");
                self.without_image(Reason::ImageMissing, why, left)
            }
            (
                _,
                PullState::Failed {
                    cancelled: true, ..
                },
            ) => self.pause_itself(format!("the pull of {reference} was cancelled")),
            // What the registry refuses is no older copy's to answer: then nobody would be moved, and
            // everybody would count as moved.
            (
                Some(found),
                PullState::Failed {
                    message,
                    refused: false,
                    ..
                },
            ) if observed.policy == PullPolicy::Missing && local.is_some() => {
                let note = format!(
                    "{reference} could not be pulled: {message}, the engine's own copy was used"
                );
                self.resolved(found, &note)
            }
            (
                _,
                PullState::Failed {
                    at,
                    message,
                    failures,
                    ..
                },
            ) => {
                let why = format!("{reference}: {message}");
                if self.pull_failing > PATIENCE {
                    return self.give_up(&why);
                }
                let delay = pulls::retry_delay(*failures);
                match self.now.left_of(*at, delay) {
                    None => self.pull(),
                    Some(left) => self.without_image(Reason::ImagePullFailed, why, left),
                }
            }
        }
    }

    /// The image cannot be had for now: the rollout says why and tries again, until its time is over.
    fn without_image(&self, reason: Reason, why: String, left: Duration) -> Plan<Action> {
        let Some(patience) = PATIENCE.checked_sub(self.pull_failing) else {
            return self.give_up(&why);
        };
        let left = left.min(patience + Duration::from_millis(1));
        let mut facts = self.pulling(why.clone());
        facts.pull_failed_at.get_or_insert(self.now);
        if facts != self.row.facts {
            return self.act(vec![self.remember(facts, Some(why))]);
        }
        Plan::say(Condition::not_ready(reason, why)).after(left)
    }

    /// The image could not be had for too long: the rollout ends, and its message says how it is begun again.
    fn give_up(&self, why: &str) -> Plan<Action> {
        let pending = self.in_state(TargetState::Pending);
        let left = self.finish_alike(pending, |_| Some((TargetState::Cancelled, NO_IMAGE)));
        if !left.is_empty() {
            return self.act(left);
        }
        let message = format!(
            "ended with failures: {}; {NO_IMAGE}: {why}; correct the image or its registry, then start another rollout",
            self.progress()
        );
        let facts = RolloutFacts {
            phase: Phase::Failed,
            message: message.clone(),
            finished_at: Some(self.now),
            ..self.row.facts.clone()
        };
        self.act(vec![self.remember(facts, Some(message))])
    }

    fn pulling(&self, message: String) -> RolloutFacts {
        RolloutFacts {
            phase: Phase::Pulling,
            message,
            ..self.row.facts.clone()
        }
    }

    fn pull(&self) -> Plan<Action> {
        let mut actions = Vec::new();
        // Why the last pull failed is said until one does not.
        let before = match self.row.facts.phase {
            Phase::Pulling => self.row.facts.message.clone(),
            _ => String::new(),
        };
        let facts = self.pulling(before);
        if facts != self.row.facts {
            actions.push(self.remember(facts, None));
        }
        actions.push(Action::StartPull {
            reference: self.row.reference.clone(),
            attempt: self.row.attempt,
        });
        self.act(actions)
    }

    fn resolved(&self, found: &Found, note: &str) -> Plan<Action> {
        let facts = RolloutFacts {
            image_id: Some(found.id.clone()),
            image_digest: found.digest.clone(),
            resolved_attempt: self.row.attempt,
            pull_failed_at: None,
            phase: Phase::Rolling,
            message: note.to_owned(),
            ..self.row.facts.clone()
        };
        let said = match note {
            "" => format!("{} is {}", self.row.reference, found.id),
            note => format!("{note}: {}", found.id),
        };
        self.act(vec![self.remember(facts, Some(said))])
    }
}
