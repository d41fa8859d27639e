//! Decides whether the source of packages is to be asked now. Pure.

use std::fmt;
use std::time::Duration;

use schema::adapter::store::{Activation, AdapterFacts};
use schema::condition::{Condition, Reason};
use schema::ids::Timestamp;

use super::AdapterRow;
use crate::drivers::adapter_source::Validators;
use crate::runtime::Plan;

/// What is wanted of the source and known of it.
#[derive(Clone, PartialEq)]
pub struct Snapshot {
    /// The adapter object.
    pub row: AdapterRow,
    /// Where the source is; empty when there is none.
    pub url: String,
    /// Whether a newer package comes into effect as soon as it is found.
    pub auto_activate: bool,
    /// Hosts to which it may redirect, besides its own.
    pub hosts: Vec<String>,
    /// How often it is asked; `None`: only when somebody wants it.
    pub interval: Option<Duration>,
    /// The version in effect.
    pub active: String,
}

/// One step.
#[derive(Clone, PartialEq)]
pub enum Action {
    /// Asks the source, and puts what it gives into effect if that is newer and may come into effect.
    Fetch(Box<Fetch>),
}

/// A question to the source.
#[derive(Clone, PartialEq)]
pub struct Fetch {
    /// Where it is.
    pub url: String,
    /// Hosts to which it may redirect, besides its own.
    pub hosts: Vec<String>,
    /// What is known of it: it need not give that again.
    pub known: Validators,
    /// The newest request, which this answers.
    pub token: String,
    /// What may become of a newer package.
    pub activation: Activation,
    /// Generation of the active adapter at this time.
    pub active_generation: i64,
    /// What was remembered before.
    pub before: AdapterFacts,
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The first word names the step; the address may hold a secret.
        match self {
            Self::Fetch(_) => f.write_str("Fetch"),
        }
    }
}

/// The plan for the adapter.
pub fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan<Action> {
    let facts = &snapshot.row.facts;
    if snapshot.url.is_empty() {
        let said = format!(
            "version {} is in effect; there is no source of newer ones",
            snapshot.active
        );
        return Plan::say(Condition::ready(Reason::Converged, said));
    }
    let same_source = facts.source_url == snapshot.url;
    let asked_for = facts.refresh_token != snapshot.row.state.refresh_token;
    let wait = snapshot.interval.map(|interval| match facts.checked_at {
        Some(checked_at) if same_source => now.left_of(checked_at, interval).unwrap_or_default(),
        _ => Duration::ZERO,
    });
    let waits = same_source && facts.update_changes.is_some();
    // What would change is said of the package in effect.
    let stale = waits && facts.seen_generation != Some(snapshot.row.state.generation);
    if asked_for || wait == Some(Duration::ZERO) || stale || (waits && snapshot.auto_activate) {
        return fetch(snapshot, same_source, asked_for);
    }
    let say = |condition| {
        let plan = Plan::say(condition);
        match wait {
            Some(wait) => plan.after(wait),
            None => plan,
        }
    };
    if !same_source {
        let said = format!(
            "version {} is in effect; the source of newer ones was not asked yet",
            snapshot.active
        );
        return say(Condition::ready(Reason::Converged, said));
    }
    if let Some(invalid) = &facts.invalid {
        let said = format!(
            "version {} stays in effect: of the source's, {invalid}",
            snapshot.active
        );
        return say(Condition::not_ready(Reason::AdapterInvalid, said));
    }
    if let (Some(offered), Some(changes)) = (&facts.offered, &facts.update_changes) {
        let said = format!(
            "version {} is in effect; the source has {offered}, which changes {changes}; \"agentyard adapter refresh\" activates it",
            snapshot.active
        );
        return say(Condition::ready(Reason::UpdateAvailable, said));
    }
    let said = match &facts.offered {
        Some(offered) if *offered == snapshot.active => {
            format!("version {offered} is in effect, the same as the source has")
        }
        Some(offered) => format!(
            "version {} is in effect; the source has {offered}, which is not newer or was left for it",
            snapshot.active
        ),
        None => format!("version {} is in effect", snapshot.active),
    };
    say(Condition::ready(Reason::Converged, said))
}

fn fetch(snapshot: &Snapshot, same_source: bool, asked_for: bool) -> Plan<Action> {
    let (state, facts) = (&snapshot.row.state, &snapshot.row.facts);
    let activation = match (asked_for, snapshot.auto_activate) {
        (true, _) => Activation::Requested,
        (false, true) => Activation::Automatic,
        (false, false) => Activation::Manual,
    };
    // What was not newer than the one in effect then may be newer than the one now, and who asks may want back what
    // was left for it, or activate what waits: then the source must give it again.
    let activates = activation != Activation::Manual && facts.update_changes.is_some();
    let seen = facts.seen_generation == Some(state.generation);
    let wants_back = asked_for && facts.offered.as_deref() != Some(snapshot.active.as_str());
    let may_skip = same_source && seen && !activates && !wants_back;
    let known = Validators {
        etag: facts.etag.clone().filter(|_| may_skip),
        last_modified: facts.last_modified.clone().filter(|_| may_skip),
    };
    let before = if same_source {
        facts.clone()
    } else {
        AdapterFacts::default()
    };
    let fetch = Fetch {
        url: snapshot.url.clone(),
        hosts: snapshot.hosts.clone(),
        known,
        token: state.refresh_token.clone(),
        activation,
        active_generation: state.generation,
        before,
    };
    let message = "requesting a newer adapter package from the source";
    Plan::act(
        vec![Action::Fetch(Box::new(fetch))],
        Condition::not_ready(Reason::Progressing, message),
    )
}
