//! Desired and observed state of one object side by side, in the same words, so that a difference is seen.

use std::time::Duration;

use schema::config::Config;
use schema::container::ContainerRow;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::deps::Deps;
use crate::error::chain;

/// Longest time the engine may take to tell of one container.
const INSPECT_TIME: Duration = Duration::from_secs(5);
/// Cores in nanoseconds of processor time a second.
const NANOS: f64 = 1e9;
const MEBIBYTE: u64 = 1024 * 1024;

/// What a container should be. Limits are those in force: its own, or the configured ones.
pub(super) fn desired_container(row: &ContainerRow, config: &Config) -> Value {
    let pinned = row.facts.image_ref.as_ref() == Some(&row.image_ref);
    let configured = config.cpu_limit_nanos().unwrap_or(0);
    json!({
        "running": row.shall_run(),
        "desired": row.desired,
        "disabled": row.disabled,
        "debug": row.debug,
        "restart_token": row.restart_token,
        "image": row.image_ref,
        "image_id": row.facts.image_id.as_ref().filter(|_| pinned),
        "cpu_limit": row.cpu_limit.unwrap_or_else(|| cores(configured)),
        "memory_limit_mb": row.memory_limit_mb.map_or_else(
            || json!(config.memory_limit_bytes() / MEBIBYTE),
            |own| json!(own),
        ),
        "network": "agentyard",
    })
}

/// What a container is: what the reconciler remembers, and what the engine says now.
pub(super) async fn observed_container(deps: &Deps, row: &ContainerRow) -> Value {
    let mut observed = match json!(row.facts) {
        Value::Object(facts) => facts,
        _ => Map::new(),
    };
    let asked = timeout(INSPECT_TIME, deps.inspect.inspect(&row.uid)).await;
    let (container, error) = match asked {
        Ok(Ok(container)) => (container, None),
        Ok(Err(error)) => (None, Some(chain(&error))),
        Err(_) => (None, Some("the engine does not answer in time".to_owned())),
    };
    observed.insert("engine_error".to_owned(), json!(error));
    if error.is_none() {
        observed.extend(live(container.as_ref()));
    }
    Value::Object(observed)
}

/// The engine's facts in the words of the desired state.
fn live(container: Option<&Value>) -> Map<String, Value> {
    let Some(container) = container else {
        return Map::from_iter([
            ("running".to_owned(), json!(false)),
            ("state".to_owned(), json!("none")),
        ]);
    };
    let field = |name: &str| container.get(name).cloned().unwrap_or_default();
    let number = |name: &str| field(name).as_u64().unwrap_or(0);
    let networks: Vec<String> = field("networks")
        .as_object()
        .map(|networks| networks.keys().cloned().collect())
        .unwrap_or_default();
    let state = field("state");
    let fields = [
        ("running", json!(state == "running")),
        ("state", state),
        ("container", field("name")),
        ("debug", field("debug")),
        ("restart_token", field("restart_token")),
        ("image_id", field("image")),
        ("cpu_limit", json!(cores(number("cpu_limit_nanos")))),
        (
            "memory_limit_mb",
            json!(number("memory_limit_bytes") / MEBIBYTE),
        ),
        ("network", json!(networks.join(","))),
        ("exit_code", field("exit_code")),
        ("error", field("error")),
    ];
    let fields = fields.into_iter();
    fields
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

#[allow(clippy::cast_precision_loss)] // A number of cores needs no more than 52 bits.
fn cores(nanos: u64) -> f64 {
    nanos as f64 / NANOS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engines_facts_are_told_in_the_words_of_the_desired_state() {
        let told = live(Some(&json!({
            "name": "agentyard-alice", "state": "running", "image": "sha256:1", "debug": false,
            "restart_token": "t", "cpu_limit_nanos": 500_000_000_u64, "memory_limit_bytes": 64 * MEBIBYTE,
            "networks": {"agentyard": "10.88.0.2"}, "environment": ["SECRET"],
        })));
        assert_eq!(
            (
                &told["running"],
                &told["cpu_limit"],
                &told["memory_limit_mb"],
                &told["network"]
            ),
            (&json!(true), &json!(0.5), &json!(64), &json!("agentyard"))
        );
        assert!(!told.contains_key("environment"));
        assert_eq!(live(None)["state"], "none");
    }
}
