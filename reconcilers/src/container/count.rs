//! Starts and ends of agents, as metrics count them.

use schema::container::ContainerEnd;
use schema::metric;

use super::evidence::UNRESPONSIVE;
use super::names::Names;
use super::observe::{Snapshot, World};
use super::plan::{Action, NOT_STARTED, OUT_OF_MEMORY, REMOVED, WITH_ENGINE};

/// Counts a step that starts or ends a container.
pub(super) fn count_step(snapshot: &Snapshot, action: &Action, success: bool) {
    match action {
        Action::Start { .. } => {
            let result = if success { "success" } else { "failure" };
            metric::AGENT_STARTS.increment(&[start_cause(snapshot), result]);
        }
        Action::NoteEnd { end, .. } if success => {
            metric::AGENT_ENDS.increment(&[end_cause(end)]);
        }
        // One that hangs is noted when it has ended.
        Action::Stop { .. } if success && !hangs(snapshot) => {
            metric::AGENT_ENDS.increment(&["requested"]);
        }
        _ => {}
    }
}

fn hangs(snapshot: &Snapshot) -> bool {
    matches!(&snapshot.world, World::Seen(seen) if seen.unanswered.is_some())
}

fn start_cause(snapshot: &Snapshot) -> &'static str {
    let replaces = match &snapshot.world {
        World::Seen(seen) => seen.containers.iter().any(|c| Names::is_temporary(&c.name)),
        World::Unavailable(..) => false,
    };
    let row = snapshot.row.as_ref();
    let ended = row.is_some_and(|row| {
        let facts = &row.facts;
        facts.last_exit_at.is_some() && facts.crash_token == row.restart_token
    });
    match (replaces, ended) {
        (true, _) => "replacement",
        (false, true) => "ended",
        (false, false) => "requested",
    }
}

fn end_cause(end: &ContainerEnd) -> &'static str {
    match end.cause.as_str() {
        UNRESPONSIVE => "unresponsive",
        REMOVED => "removed",
        WITH_ENGINE => "engine",
        cause if cause.starts_with(NOT_STARTED) => "engine",
        cause if cause.starts_with("the replacement") => "replacement",
        cause if cause.contains(OUT_OF_MEMORY) => "out_of_memory",
        _ => "exit",
    }
}

#[cfg(test)]
mod tests {
    use schema::ids::Timestamp;

    use super::*;

    #[test]
    fn ends_are_told_apart_by_cause() {
        for (cause, expected) in [
            ("exit code 1", "exit"),
            ("exit code 137, out of memory", "out_of_memory"),
            ("the replacement was not ready within 120 s", "replacement"),
            (UNRESPONSIVE, "unresponsive"),
            (REMOVED, "removed"),
            (WITH_ENGINE, "engine"),
            ("not started by the engine in 3 attempts", "engine"),
            ("paused by hand", "exit"),
        ] {
            let end = ContainerEnd {
                at: Timestamp::from_secs(1),
                exit_code: None,
                cause: cause.to_owned(),
                log: String::new(),
            };
            assert_eq!(end_cause(&end), expected, "{cause}");
        }
    }
}
