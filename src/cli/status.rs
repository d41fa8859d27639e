//! `agentyard status`.

use http::Method;
use serde_json::Value;

use super::{Failure, admin};
use crate::prepare::say;
use crate::settings::Settings;

/// Prints what the running server reconciles.
///
/// # Errors
/// When no server answers, or one of its parts is not ready.
pub async fn status(settings: Settings) -> Result<(), Failure> {
    let reconcile = admin::json(&settings, Method::GET, "/api/admin/reconcile", None).await?;
    let (ready, text) = admin::send(&settings, Method::GET, "/readyz", None).await?;
    say(text.trim_end());
    let leader = reconcile.pointer("/leader/holder").and_then(Value::as_str);
    say(&format!("leader: {}", leader.unwrap_or("not known")));
    let rows = reconcile.get("reconcilers").and_then(Value::as_array);
    say(&format!(
        "{:<12} {:>8} {:>8} {:>10} {:>8} {:>8} {:>8} {:>8}",
        "RECONCILER", "OBJECTS", "READY", "NOT READY", "QUEUED", "FAILING", "PANICKED", "PAUSED"
    ));
    for row in rows.into_iter().flatten() {
        let number = |key: &str| row.get(key).and_then(Value::as_u64).unwrap_or(0);
        let name = row.get("name").and_then(Value::as_str).unwrap_or("?");
        let paused = row.get("paused").and_then(Value::as_bool) == Some(true);
        say(&format!(
            "{:<12} {:>8} {:>8} {:>10} {:>8} {:>8} {:>8} {:>8}",
            name,
            number("objects"),
            number("ready"),
            number("not_ready"),
            number("queue_depth"),
            number("failing"),
            number("panicked"),
            if paused { "yes" } else { "no" }
        ));
    }
    if ready == 200 {
        Ok(())
    } else {
        Err(Failure::Unavailable("the server is not ready".to_owned()))
    }
}
