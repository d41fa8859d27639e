//! `get -l`: which objects of a kind are listed.

use std::str::FromStr;

use schema::container::StatusWord;
use serde_json::Value;

use crate::cli::admin::escaped;
use crate::cli::kinds::KindInfo;
use crate::cli::output::cell::text;
use crate::cli::{Failure, Result};

/// Phases of rollouts that have ended and need no manual action.
const ENDED_WELL: [&str; 3] = ["succeeded", "rolled_back", "cancelled"];

/// `LABEL=VALUE,…` as it was typed.
#[derive(Debug, Clone, Default)]
pub struct Selector(Vec<(String, String)>);

impl FromStr for Selector {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let pairs = given.split(',').map(|pair| {
            let usage = || {
                format!(
                    "{pair:?} selects nothing; use LABEL=VALUE, such as group=eng,state=not-ready"
                )
            };
            let (label, value) = pair.split_once('=').ok_or_else(usage)?;
            let value = value.strip_prefix('=').unwrap_or(value);
            match label.is_empty() || label.ends_with('!') || value.is_empty() {
                true => Err(usage()),
                false => Ok((label.to_lowercase(), value.to_owned())),
            }
        });
        Ok(Self(pairs.collect::<Result<_, String>>()?))
    }
}

/// Parameters of a request, and conditions on items of its answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Parameters of the request, `name=value`.
    pub parameters: Vec<String>,
    kept: Vec<Kept>,
}

/// Condition on items of a list that the server does not filter.
#[derive(Debug, PartialEq, Eq)]
enum Kept {
    /// Objects whose `Ready` has this status.
    Ready(&'static str),
    /// Objects that are not ready.
    NotReady,
    /// Rollouts of this phase.
    Phase(String),
}

impl Kept {
    fn holds(&self, item: &Value) -> bool {
        let status = || text(item, "conditions.Ready.status");
        let phase = text(item, "phase");
        match self {
            Self::Ready(wanted) if phase.is_empty() => status() == *wanted,
            Self::Ready(_) => ENDED_WELL.contains(&phase.as_str()),
            Self::NotReady if phase.is_empty() => status() != "True",
            Self::NotReady => !ENDED_WELL.contains(&phase.as_str()),
            Self::Phase(wanted) => phase == *wanted,
        }
    }
}

impl Filter {
    /// Translates a selector for one kind; `not_ready` is the same as `state=not-ready`.
    ///
    /// # Errors
    /// [`Failure::Usage`] for a label that the kind does not have, and for a state that there is not; each says what there is.
    pub fn new(kind: &KindInfo, selector: &Selector, not_ready: bool) -> Result<Self> {
        let mut filter = Self::default();
        for (label, value) in &selector.0 {
            let known = labels(kind);
            if !known.contains(&label.as_str()) {
                return Err(Failure::Usage(match known {
                    [] => format!("{} cannot be selected by labels; use --search", kind.plural),
                    known => format!(
                        "{} cannot be selected by {label:?}, but by {}",
                        kind.plural,
                        known.join(", ")
                    ),
                }));
            }
            match label.as_str() {
                "state" => filter.add_state(kind, value)?,
                label => filter
                    .parameters
                    .push(format!("{label}={}", escaped(value))),
            }
        }
        if not_ready {
            if !kind.is_object() && kind.singular != "object" {
                return Err(Failure::Usage(format!(
                    "{} have no condition Ready; use --not-ready with reconciled objects",
                    kind.plural
                )));
            }
            filter.add_state(kind, "not-ready")?;
        }
        Ok(filter)
    }

    fn add_state(&mut self, kind: &KindInfo, value: &str) -> Result {
        let by_server = kind.lists_unready();
        let is_users = kind.singular == "user";
        let mut ask = |parameter: &str| self.parameters.push(parameter.to_owned());
        match value {
            "ready" if by_server => ask("ready=true"),
            "not-ready" if by_server => ask("not_ready=true"),
            "unknown" if by_server && !is_users => ask("ready=unknown"),
            "ready" => self.kept.push(Kept::Ready("True")),
            "not-ready" => self.kept.push(Kept::NotReady),
            word if is_users && word.parse::<StatusWord>().is_ok() => {
                ask(&format!("status={word}"))
            }
            phase
                if kind.singular == "rollout"
                    && phase.parse::<schema::rollout::Phase>().is_ok() =>
            {
                self.kept.push(Kept::Phase(phase.to_owned()));
            }
            "unknown" if !is_users && kind.singular != "rollout" => {
                self.kept.push(Kept::Ready("Unknown"));
            }
            other => {
                return Err(Failure::Usage(format!(
                    "{} have no state {other:?}; states are {}",
                    kind.plural,
                    states(kind)
                )));
            }
        }
        Ok(())
    }

    /// Leaves those that fit.
    pub fn retain(&self, items: &mut Vec<Value>) {
        items.retain(|item| self.kept.iter().all(|kept| kept.holds(item)));
    }
}

/// The labels of a kind.
fn labels(kind: &KindInfo) -> &'static [&'static str] {
    match kind.singular {
        "user" => &["group", "image", "state", "reason", "source", "disabled"],
        _ if kind.is_object() || kind.singular == "object" => &["state"],
        _ => &[],
    }
}

/// The states of a kind.
fn states(kind: &KindInfo) -> &'static str {
    match kind.singular {
        "user" => {
            "ready, not-ready, running, stopped, starting, stopping, failed, deleting, unknown"
        }
        "rollout" => {
            "ready, not-ready, pulling, rolling, paused, rolling_back, cancelling, succeeded, failed, rolled_back, cancelled"
        }
        _ => "ready, not-ready, unknown",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::kinds::named;

    fn filter(kind: &str, selector: &str) -> Result<Filter, String> {
        let selector = selector.parse()?;
        let filter = Filter::new(named(kind).unwrap(), &selector, false);
        filter.map_err(|failure| failure.to_string())
    }

    #[test]
    fn labels_become_parameters_of_the_list() {
        for (kind, selector, parameters) in [
            (
                "users",
                "group=eng,image=echo:2,state=not-ready",
                &["group=eng", "image=echo%3A2", "not_ready=true"] as &[&str],
            ),
            (
                "users",
                "state=running,disabled=false",
                &["status=running", "disabled=false"],
            ),
            ("users", "state==unknown", &["status=unknown"]),
            ("containers", "state=not-ready", &["not_ready=true"]),
            ("objects", "state=unknown", &["ready=unknown"]),
            ("rollouts", "state=paused", &[]),
            ("skills", "state=not-ready", &[]),
        ] {
            assert_eq!(
                filter(kind, selector).unwrap().parameters,
                parameters,
                "{kind} {selector}"
            );
        }
    }

    #[test]
    fn unknown_labels_and_states_are_refused_with_those_there_are() {
        for (kind, selector, part) in [
            ("containers", "group=eng", "but by state"),
            ("groups", "state=ready", "use --search"),
            ("users", "colour=red", "group, image, state"),
            ("users", "state=rnning", "running, stopped"),
            ("rollouts", "state=unknown", "rolled_back"),
            ("users", "group", "LABEL=VALUE"),
            ("users", "group!=eng", "LABEL=VALUE"),
            ("users", "group=", "LABEL=VALUE"),
        ] {
            let why = filter(kind, selector).unwrap_err();
            assert!(why.contains(part), "{kind} {selector}: {why}");
        }
    }

    #[test]
    fn lists_without_filters_are_filtered_here() {
        let skill = |status: &str| json!({"conditions": [{"type": "Ready", "status": status}]});
        let mut skills = vec![skill("True"), skill("False"), skill("Unknown")];
        filter("skills", "state=not-ready")
            .unwrap()
            .retain(&mut skills);
        assert_eq!(skills.len(), 2);
        let phases = ["rolling", "succeeded", "paused"].map(|phase| json!({"phase": phase}));
        for (state, expected) in [("not-ready", 2), ("ready", 1), ("paused", 1)] {
            let mut rollouts = phases.to_vec();
            filter("rollouts", &format!("state={state}"))
                .unwrap()
                .retain(&mut rollouts);
            assert_eq!(rollouts.len(), expected, "{state}");
        }
    }
}
