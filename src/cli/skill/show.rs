//! `agentyard skill show`.

use schema::clock::{Clock, SystemClock};
use schema::ids::Timestamp;
use serde_json::Value;

use super::{PATH, kind};
use crate::cli::admin::escaped;
use crate::cli::kinds::SKILL_VERSIONS;
use crate::cli::output::cell::{Cell, at, cleaned, counted, number};
use crate::cli::output::items::print_one;
use crate::cli::output::table::Table;
use crate::cli::output::time::{moment, relative};
use crate::cli::output::{Format, screen};
use crate::cli::server::Server;
use crate::cli::{Result, pages};

/// Shows one skill.
///
/// # Errors
/// When no server answers, or there is no such skill.
pub async fn show(server: &Server, name: &str, format: Format) -> Result {
    let kind = kind("skill")?;
    let (found, _) = pages::find(server, kind, name).await?;
    let Some(mut skill) = found else {
        return Err(pages::missing(server, kind, name).await);
    };
    let path = format!("{PATH}/versions?name={}", escaped(name));
    let mut answer = server.get(&path).await?;
    skill["versions"] = answer["versions"].take();
    match format {
        Format::Table | Format::Wide | Format::Custom(_) => {
            screen::print(&render(&skill, SystemClock.now()))
        }
        Format::Json | Format::Yaml | Format::Name => print_one(kind, &skill, format),
    }
}

fn render(skill: &Value, now: Timestamp) -> String {
    let field = |key: &str| match cleaned(skill, key).as_str() {
        "" => "-".to_owned(),
        text => text.to_owned(),
    };
    let ready = cleaned(skill, "conditions.Ready.reason");
    let mut text = format!(
        "Name:        {}\nDescription: {}\nVersion:     {}\nLicense:     {}\nNumber:      {}\nDigest:      {}\n",
        field("name"),
        field("description"),
        field("version"),
        field("license"),
        field("number"),
        field("digest"),
    );
    let files = counted(number(skill, "file_count"), "file");
    text += &format!("Source:      {}\n", field("source"));
    text += &format!("Size:        {files}, {}\n", field("size_str"));
    if let Some(at) = moment(skill, "modified_at") {
        text += &format!("Updated:     {}\n", relative(now, at));
    }
    let status = field("conditions.Ready.status");
    text += &format!("Status:      Ready={status} ({ready})\n");
    if status != "True" {
        text += &format!("Problem:     {}\n", field("conditions.Ready.message"));
    }
    text += &format!("Bound to:    {}\n", bound_to(skill));
    let users = counted(number(skill, "user_count"), "user");
    text += &format!("Given to:    {users}\n\nVersions:\n");
    let columns = SKILL_VERSIONS.columns(false);
    let titles = columns.clone().map(|column| column.title).collect();
    let versions = at(skill, "versions").as_array().into_iter().flatten();
    let table = Table::new(titles, true).rows(&Cell::rows(columns, versions, now));
    let lines: Vec<String> = table.lines().map(|line| format!("  {line}\n")).collect();
    text + &lines.concat()
}

/// What the list says of it; single users are counted only.
fn bound_to(skill: &Value) -> String {
    let mut whom = Vec::new();
    if at(skill, "bound_to_everyone") == true {
        whom.push("all users".to_owned());
    }
    let groups = at(skill, "bound_groups").as_array();
    match (groups.map_or(0, Vec::len), cleaned(skill, "bound_groups")) {
        (0, _) => {}
        (1, group) => whom.push(format!("group {group}")),
        (_, groups) => whom.push(format!("groups {groups}")),
    }
    match (whom.is_empty(), number(skill, "user_count")) {
        (false, _) => whom.join("; "),
        (true, 0) => "-".to_owned(),
        (true, _) => "single users".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_skill_is_shown_with_bindings_and_versions() {
        let now = Timestamp::from_secs(1_778_500_000);
        let skill = json!({
            "name": "pdf", "description": "Reads \u{1b}[2JPDF files", "version": "1.3", "license": "",
            "digest": "d".repeat(64), "number": 2, "source": "team", "file_count": 1, "size_str": "5 B",
            "modified_at": "2026-05-11T11:41:40Z", "bound_groups": ["eng", "ops"], "user_count": 3,
            "bound_to_everyone": false,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Converged", "message": ""}],
            "versions": [
                {"number": 2, "digest": "d".repeat(64), "version": "1.3", "source": "team", "commit": "c".repeat(40),
                    "file_count": 1, "created_at": "2026-05-11T11:41:40Z", "active": true},
                {"number": 1, "digest": "e".repeat(64), "version": "", "source": "upload", "commit": null,
                    "file_count": 1, "created_at": "2026-05-09T11:41:40Z", "active": false},
            ],
        });
        let text = render(&skill, now);
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string());
        let bound = |groups: Value, everyone: bool, users: u64| {
            bound_to(
                &json!({"bound_groups": groups, "bound_to_everyone": everyone, "user_count": users}),
            )
        };
        assert_eq!(bound(json!([]), false, 0), "-");
        assert_eq!(bound(json!([]), false, 1), "single users");
        assert_eq!(bound(json!(["a"]), true, 9), "all users; group a");
    }
}
