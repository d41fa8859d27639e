//! `agentyard status`.

use http::Method;
use schema::clock::{Clock, SystemClock};
use serde_json::Value;

use super::kinds::{self, KindInfo};
use super::output::cell::{Cell, plain};
use super::output::clean::{clean, clean_lines};
use super::output::screen;
use super::output::table::Table;
use super::server::Server;
use super::{Failure, admin};

/// Prints what the running server reconciles.
///
/// # Errors
/// When no server answers, or one of its parts is not ready.
pub async fn status(server: &Server) -> Result<(), Failure> {
    let overview = admin::get(&server.settings, "/api/admin/reconcile").await?;
    let (ready, text) = admin::send(&server.settings, Method::GET, "/readyz", None).await?;
    screen::print(&(clean_lines(text.trim_end()) + "\n"))?;
    screen::print(&lead(&overview))?;
    screen::print(&table(
        kinds::parse("reconcilers").map_err(Failure::Failed)?,
        &overview,
    ))?;
    if ready == 200 {
        Ok(())
    } else {
        Err(Failure::Unavailable("the server is not ready".to_owned()))
    }
}

/// Who reconciles, and whether anybody stopped that.
fn lead(overview: &Value) -> String {
    let leader = overview.get("leader").unwrap_or(&Value::Null);
    let holder = plain(leader.get("holder").unwrap_or(&Value::Null));
    let leading = leader.get("leading").and_then(Value::as_bool) == Some(true);
    let mut text = match (leading, holder.as_str()) {
        (true, _) => "leader: this server\n".to_owned(),
        (false, "") => "leader: another server\n".to_owned(),
        (false, holder) => format!("leader: {}\n", clean(holder)),
    };
    if overview.get("paused").and_then(Value::as_bool) == Some(true) {
        text += "paused: everything; `agentyard resume --all` lifts it\n";
    }
    text
}

fn table(kind: &'static KindInfo, overview: &Value) -> String {
    let rows = overview.get(kind.list).and_then(Value::as_array);
    let now = SystemClock.now();
    let rows: Vec<Vec<Cell>> = rows
        .into_iter()
        .flatten()
        .map(|row| {
            kind.columns(false)
                .map(|column| (column.cell)(row, now))
                .collect()
        })
        .collect();
    let titles = kind.columns(false).map(|column| column.title).collect();
    Table::new(titles, true).rows(&rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_standby_and_a_pause_are_told() {
        let standby = json!({"leader": {"leading": false, "holder": null}, "paused": true});
        let text = lead(&standby);
        assert!(
            text.starts_with("leader: another server\npaused: everything"),
            "{text}"
        );
        let leader = json!({"leader": {"leading": true}, "paused": false});
        assert_eq!(lead(&leader), "leader: this server\n");
    }
}
