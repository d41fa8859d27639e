//! Which executors of a user are connected.

use std::time::Duration;

use schema::config::policy::Mode;
use serde_json::{Value, json};

use super::CallResult;
use crate::executors::{Hub, Key, Protocol, Service};

/// What is connected, the one that is asked first in front.
pub(super) fn of(hub: &Hub, key: &Key, mode: Mode) -> CallResult {
    let mut said = match (hub.of_key(key).is_empty(), key.service) {
        (false, Service::Browser) => "a browser is connected".to_owned(),
        (false, Service::Computer) => "a desktop is connected".to_owned(),
        (true, Service::Browser) => {
            "no browser is connected. Ask the user to open the browser extension, sign in and connect".to_owned()
        }
        (true, Service::Computer) => {
            "no desktop is connected. Ask the user to start the desktop client and connect".to_owned()
        }
    };
    said.push_str(&displaced(hub, key));
    said.push_str(match mode {
        Mode::Auto => "",
        Mode::ReadOnly => ". An administrator allows only tools that change nothing",
        Mode::Off => ". An administrator has switched these tools off",
    });
    let mut facts = facts(hub, key);
    facts["policy"] = json!({"mode": mode.to_string()});
    facts["message"] = json!(said);
    CallResult::text(said).with(&facts)
}

/// Why there is nobody to ask, with what is connected.
pub(super) fn why_not(hub: &Hub, key: &Key, mut said: String) -> CallResult {
    said.push_str(&displaced(hub, key));
    CallResult::error(said).with_aside(&facts(hub, key))
}

fn displaced(hub: &Hub, key: &Key) -> String {
    let said = |time: Duration| {
        let seconds = match time.as_secs() {
            0 | 1 => "1 second".to_owned(),
            seconds => format!("{seconds} seconds"),
        };
        format!(
            ". Two programs keep displacing each other: new connections are refused for {seconds}, and one of the two has to be stopped"
        )
    };
    hub.refused_for(key).map(said).unwrap_or_default()
}

fn facts(hub: &Hub, key: &Key) -> Value {
    let connected = hub.of_key(key);
    let executors: Vec<_> = connected
        .iter()
        .map(|executor| {
            let (protocol, instance) = match &executor.protocol {
                Protocol::First => (1, None),
                Protocol::Introduced { instance } => (2, Some(instance)),
            };
            json!({
                "connectedAt": executor.about.since,
                "client": executor.client.as_ref().map(|[name, version, platform]| json!({"name": name, "version": version, "platform": platform})),
                "label": executor.label,
                "protocol": protocol,
                "instance": instance,
                "calls": executor.calls,
                "lateAnswers": executor.late,
            })
        })
        .collect();
    json!({
        "connected": !executors.is_empty(),
        "executors": executors,
        "refusedForSeconds": hub.refused_for(key).map(|time| time.as_secs()),
    })
}
