//! `agentyard status`.

use reqwest::Method;
use schema::clock::{Clock, SystemClock};
use serde_json::Value;

use super::kinds::{KindInfo, RECONCILERS};
use super::output::cell::{Cell, at, cleaned, counted, number};
use super::output::clean::{clean, clean_lines};
use super::output::screen;
use super::output::table::Table;
use super::output::time::{moment, relative};
use super::server::Server;
use super::{Failure, Result};

/// Objects that are named.
const NAMED: usize = 3;

/// Prints health, leader, object counts and the first objects that are not ready; what cannot be learnt is named.
///
/// # Errors
/// When no server answers, or one of its parts is not ready.
pub async fn status(server: &Server) -> Result {
    // Answered whatever is away.
    let (ready, text) = server.send(server.request(Method::GET, "/readyz")).await?;
    screen::print(&(clean_lines(text.trim_end()) + "\n"))?;
    let overview = known("reconcilers", server.get("/api/admin/reconcile").await)?;
    if let Some(overview) = &overview {
        screen::print(&warnings(overview))?;
        screen::print(&lead(overview))?;
        screen::print(&backup(overview))?;
    }
    let path = format!("/api/admin/reconcile/objects?not_ready=true&page=1&page_size={NAMED}");
    let unready = known("objects that are not ready", server.get(&path).await)?;
    if let Some(unready) = &unready {
        screen::print(&list_unready(unready, &server.command))?;
    }
    if let Some(overview) = &overview {
        screen::print(&table(&RECONCILERS, overview))?;
    }
    match ready {
        200 if overview.is_some() && unready.is_some() => Ok(()),
        200 => Err(Failure::Unavailable(
            "the server is ready, but has not answered all questions".to_owned(),
        )),
        _ => Err(Failure::Unavailable("the server is not ready".to_owned())),
    }
}

/// An answer; of a question that the server cannot answer now, a line says so.
///
/// # Errors
/// An output that cannot be written.
fn known(what: &str, answer: Result<Value>) -> Result<Option<Value>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(failure) => {
            let why = clean_lines(&failure.to_string());
            screen::print(&format!("{what}: not known: {why}\n"))?;
            Ok(None)
        }
    }
}

/// The first objects that are not ready, each with its reason.
fn list_unready(answer: &Value, command: &str) -> String {
    let objects = at(answer, "objects")
        .as_array()
        .cloned()
        .unwrap_or_default();
    let total = number(answer, "total").max(objects.len() as u64);
    if total == 0 {
        return String::new();
    }
    let mut text = format!("not ready: {}\n", counted(total, "object"));
    for object in &objects {
        let ready = "conditions.Ready";
        let reason = match cleaned(object, &format!("{ready}.reason")).as_str() {
            "" => "not observed yet".to_owned(),
            // Observed before its last change.
            _ if at(object, &format!("{ready}.status")) == "True" => {
                "not observed since its last change".to_owned()
            }
            reason => {
                let message = cleaned(object, &format!("{ready}.message"));
                format!("{reason}: {message}")
                    .trim_end_matches([':', ' '])
                    .to_owned()
            }
        };
        text += &format!("  {}: {reason}\n", cleaned(object, "object"));
    }
    if let Some(more @ 1..) = total.checked_sub(objects.len() as u64) {
        text += &format!("  and {more} more; `{command} get objects --not-ready` lists them\n");
    }
    text
}

/// Settings that do not fit what the server sees, one to a line.
fn warnings(overview: &Value) -> String {
    let all = at(overview, "warnings").as_array().into_iter().flatten();
    let texts = all.filter_map(Value::as_str);
    texts
        .map(|text| format!("warning: {}\n", clean(text)))
        .collect()
}

/// Who reconciles, and whether that is paused.
fn lead(overview: &Value) -> String {
    let mut text = match cleaned(overview, "leader.holder").as_str() {
        _ if at(overview, "leader.leading") == true => "leader: this server\n".to_owned(),
        "" => "leader: another server\n".to_owned(),
        holder => format!("leader: {holder}\n"),
    };
    if at(overview, "paused") == true {
        text += "paused: all objects; resume them with `agentyard resume --all`\n";
    }
    text
}

/// The age of the newest scheduled backup, and what to do when there is none.
fn backup(overview: &Value) -> String {
    let state = at(overview, "backup");
    if state.is_null() {
        return "backup: no schedule; set backup.directory, or run `agentyard backup DIR`\n"
            .to_owned();
    }
    let newest = match moment(state, "last_success") {
        Some(newest) => relative(SystemClock.now(), newest),
        None => "none yet".to_owned(),
    };
    let failure = match moment(state, "last_failure") {
        Some(failed) => format!(
            "; the one of {} failed: {}",
            failed.to_rfc3339(),
            cleaned(state, "why")
        ),
        None => String::new(),
    };
    format!("backup: {newest}{failure}\n")
}

fn table(kind: &'static KindInfo, overview: &Value) -> String {
    let rows = at(overview, kind.list).as_array().into_iter().flatten();
    let rows = Cell::rows(kind.columns(false), rows, SystemClock.now());
    let titles = kind.columns(false).map(|column| column.title).collect();
    Table::new(titles, true).rows(&rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn warnings_are_lines() {
        let overview = json!({"warnings": ["one\u{1b}[2J", "two"]});
        let text = warnings(&overview);
        assert!(text.starts_with("warning: one") && text.ends_with("\nwarning: two\n"));
        assert!(!text.contains('\u{1b}') && warnings(&json!({})).is_empty());
    }

    #[test]
    fn first_unready_objects_are_named_with_their_reasons() {
        let object = |name: &str, status: &str, reason: &str| json!({"object": name, "conditions": [{"type": "Ready", "status": status, "reason": reason, "message": "no such image"}]});
        let objects = [
            object("container/alice", "False", "ImageMissing"),
            object("container/bob", "True", "Running"),
            json!({"object": "user/carol", "conditions": []}),
        ];
        let text = list_unready(&json!({"objects": objects, "total": 5}), "agentyard");
        let expected = "not ready: 5 objects\n  container/alice: ImageMissing: no such image\n  \
                        container/bob: not observed since its last change\n  user/carol: not observed yet\n  \
                        and 2 more; `agentyard get objects --not-ready` lists them\n";
        assert_eq!(text, expected);
        assert_eq!(
            list_unready(&json!({"objects": [], "total": 0}), "agentyard"),
            ""
        );
    }

    #[test]
    fn a_standby_and_a_pause_are_shown() {
        let standby = json!({"leader": {"leading": false, "holder": null}, "paused": true});
        let text = lead(&standby);
        assert!(
            text.starts_with("leader: another server\npaused: all objects"),
            "{text}"
        );
        let leader = json!({"leader": {"leading": true}, "paused": false});
        assert_eq!(lead(&leader), "leader: this server\n");
    }
}
