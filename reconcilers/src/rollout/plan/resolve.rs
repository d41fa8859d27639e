//! What the reference means: once for all users of an attempt, pulled first where that is asked for.

use schema::condition::{Condition, Reason};
use schema::config::PullPolicy;
use schema::config::query::{ENGINE_NAME, engine_uid};
use schema::ids::Kind;
use schema::rollout::{Phase, RolloutFacts, RolloutKind};

use super::{Action, View};
use crate::rollout::observe::{Found, ObservedImage};
use crate::runtime::Plan;
use crate::shared::pulls::{self, PullState};

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
                None => Plan::say(Condition::not_ready(
                    Reason::ImageMissing,
                    format!("the engine has no image {reference}, and image.pull_policy is never"),
                ))
                .after(pulls::FIRST_RETRY),
            };
        }
        // A digest that is there is as new as it ever gets.
        let newest = observed.fixed && there.is_some();
        let pull_wanted = match self.row.kind {
            RolloutKind::Upgrade => !newest,
            RolloutKind::Migrate => {
                there.is_none() || (observed.policy == PullPolicy::Always && !newest)
            }
        };
        match (there, &observed.pull) {
            (Some(found), _) if !pull_wanted => self.resolved(found, ""),
            // One that somebody else asked for is joined, so that its end, whichever, is this one's.
            _ if !observed.asked => self.pull(),
            (_, PullState::Running) => Plan::say(Condition::not_ready(
                Reason::ImagePulling,
                format!("pulling {reference}"),
            ))
            .waiting_for(Kind::Image, &pulls::awaited(reference), reference),
            (Some(found), PullState::Idle) => self.resolved(found, ""),
            (None, PullState::Idle) => Plan::say(Condition::not_ready(
                Reason::ImageMissing,
                format!("{reference} was pulled, and is gone from the engine again"),
            ))
            .after(pulls::FIRST_RETRY),
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
            ) if observed.policy == PullPolicy::Missing => {
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
                let delay = pulls::retry_delay(*failures);
                match self.now.left_of(*at, delay) {
                    None => self.pull(),
                    Some(left) => Plan::say(Condition::not_ready(
                        Reason::ImagePullFailed,
                        format!("{reference}: {message}"),
                    ))
                    .after(left),
                }
            }
        }
    }

    fn pull(&self) -> Plan<Action> {
        let mut actions = Vec::new();
        let facts = RolloutFacts {
            phase: Phase::Pulling,
            message: String::new(),
            ..self.row.facts.clone()
        };
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
