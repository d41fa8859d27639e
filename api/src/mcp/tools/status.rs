//! Which executors of a user are connected.

use std::fmt::Write as _;

use schema::config::policy::Mode;
use serde_json::json;

use super::CallResult;
use crate::executors::{Hub, Key, Protocol, Service};

/// What is connected, the one that is asked first in front.
pub(super) fn of(hub: &Hub, key: &Key, mode: Mode) -> CallResult {
    let connected = hub.of_key(key);
    let mut said = match (connected.is_empty(), key.service) {
        (false, Service::Browser) => "a browser is connected".to_owned(),
        (false, Service::Computer) => "a desktop is connected".to_owned(),
        (true, Service::Browser) => {
            "no browser is connected. Ask the user to open the browser extension, sign in and connect".to_owned()
        }
        (true, Service::Computer) => {
            "no desktop is connected. Ask the user to start the desktop client and connect".to_owned()
        }
    };
    let refused = hub.refused_for(key);
    if let Some(time) = refused {
        let _ = write!(
            said,
            ". Two programs keep displacing each other: new connections are refused for {} seconds, and one of the two has to be stopped",
            time.as_secs().max(1)
        );
    }
    said.push_str(match mode {
        Mode::Auto => "",
        Mode::ReadOnly => ". An administrator allows only tools that change nothing",
        Mode::Off => ". An administrator has switched these tools off",
    });
    let executors: Vec<_> = connected
        .iter()
        .map(|executor| {
            let instance = match &executor.protocol {
                Protocol::First => None,
                Protocol::Introduced { instance } => Some(instance),
            };
            json!({
                "connectedAt": executor.about.since,
                "client": executor.client.as_ref().map(|[name, version, platform]| json!({"name": name, "version": version, "platform": platform})),
                "label": executor.label,
                "instance": instance,
                "calls": executor.calls,
                "lateAnswers": executor.late,
            })
        })
        .collect();
    let facts = json!({
        "connected": !executors.is_empty(),
        "executors": executors,
        "policy": {"mode": mode.to_string()},
        "refusedForSeconds": refused.map(|time| time.as_secs()),
    });
    CallResult {
        structured_content: serde_json::value::to_raw_value(&facts).ok(),
        ..CallResult::text(said)
    }
}
