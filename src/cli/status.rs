//! `agentyard status`.

use reqwest::Method;
use schema::clock::{Clock, SystemClock};
use serde_json::Value;

use super::kinds::{KindInfo, RECONCILERS};
use super::output::cell::{Cell, at, cleaned};
use super::output::clean::clean_lines;
use super::output::screen;
use super::output::table::Table;
use super::output::time::{moment, relative};
use super::server::Server;
use super::{Failure, Result};

/// Prints health, leader and object counts.
///
/// # Errors
/// When no server answers, or one of its parts is not ready.
pub async fn status(server: &Server) -> Result {
    let overview = server.get("/api/admin/reconcile").await?;
    let (ready, text) = server.send(server.request(Method::GET, "/readyz")).await?;
    screen::print(&(clean_lines(text.trim_end()) + "\n"))?;
    screen::print(&warnings(&overview))?;
    screen::print(&lead(&overview))?;
    screen::print(&backup(&overview))?;
    screen::print(&table(&RECONCILERS, &overview))?;
    if ready == 200 {
        Ok(())
    } else {
        Err(Failure::Unavailable("the server is not ready".to_owned()))
    }
}

/// Settings that do not fit what the server sees, one to a line.
fn warnings(overview: &Value) -> String {
    let all = at(overview, "warnings").as_array().into_iter().flatten();
    let texts = all.filter_map(Value::as_str);
    texts
        .map(|text| clean_lines(&format!("warning: {text}")) + "\n")
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
