//! One reconciled object as text.

use schema::ids::Timestamp;
use schema::kind::{self, Column};
use serde_json::Value;

use super::trouble::{self, Outlook, Trouble};
use crate::cli::compare::{self, NextPass};
use crate::cli::kinds::EVENTS;
use crate::cli::output::cell::{Cell, at, cleaned, plain, short as short_digest, text};
use crate::cli::output::clean::clean;
use crate::cli::output::table::Table;
use crate::cli::output::time::{moment, relative, short};

/// Renders an object's answer; `overview` is what the server says of its reconcilers.
pub fn render(object: &Value, overview: &Value, command: &str, now: Timestamp) -> String {
    let sections = [
        head(object, now),
        troubles(object, overview, command, now),
        conditions(object, now),
        comparison(object),
        ends(object, now),
        skills(object),
        plan(object, now),
        attempts(object, now),
        events(object, now),
    ];
    let sections: Vec<String> = sections
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect();
    sections.join("\n")
}

fn head(object: &Value, now: Timestamp) -> String {
    let status = Cell::of(&kind::READY, object, now).painted();
    let reason = match cleaned(object, "conditions.Ready.reason").as_str() {
        "" => "not observed yet".to_owned(),
        reason => reason.to_owned(),
    };
    let mut text = format!("Name:    {}\n", cleaned(object, "object"));
    if at(object, "health").is_object() {
        let status = Cell::of(&Column::status("", "health.status"), object, now).painted();
        let [reason, worst] = ["health.reason", "health.object"].map(|key| cleaned(object, key));
        text += &format!("Status:  Ready={status} ({reason}, {worst})\n");
    } else {
        text += &format!("Status:  Ready={status} ({reason})\n");
    }
    if at(object, "standstill").is_object() {
        text += &format!("Stopped: {}\n", cleaned(object, "standstill.message"));
    }
    if let Some(created) = moment(object, "created_at") {
        text += &format!("Created: {}\n", relative(now, created));
    }
    text += &format!("UID:     {}\n", cleaned(object, "uid"));
    let chain = at(object, "waits_for").as_array();
    for awaited in chain.into_iter().flatten() {
        let status = Cell::of(&kind::READY, awaited, now).painted();
        let reason = cleaned(awaited, "conditions.Ready.reason");
        let name = cleaned(awaited, "object");
        text += &format!("Waits for: {name}, Ready={status} ({reason})\n");
    }
    text
}

fn troubles(object: &Value, overview: &Value, command: &str, now: Timestamp) -> String {
    let troubles = trouble::troubles(object, overview);
    if troubles.is_empty() {
        return "Problems: none\n".to_owned();
    }
    let mut text = "Problems:\n".to_owned();
    for Trouble {
        what,
        since,
        remedy,
    } in troubles
    {
        text += &format!("  {}\n", clean(&what));
        if let Some(since) = since {
            text += &format!("    since:   {}\n", relative(now, since));
        }
        if !remedy.is_empty() {
            text += &format!("    remedy:  {}\n", clean(&remedy));
        }
    }
    if let Some(Outlook { next, at, force }) = Outlook::of(object, command) {
        text += &format!("  next step: {}\n", clean(&next));
        if let Some(at) = at {
            text += &format!("  due:       {}\n", relative(now, at));
        }
        text += &format!("  force it:  {}\n", clean(&force));
    }
    text
}

fn conditions(object: &Value, now: Timestamp) -> String {
    let found = at(object, "conditions").as_array();
    let rows: Vec<Vec<Cell>> = found
        .into_iter()
        .flatten()
        .map(|condition| {
            let since = moment(condition, "last_transition_at");
            let status = plain(&condition["status"]);
            vec![
                Cell::field(condition, "type"),
                // True is not good news of Stalled and Paused.
                if condition["type"] == "Ready" {
                    Cell::status(&status)
                } else {
                    Cell::new(&status)
                },
                Cell::field(condition, "reason"),
                Cell::new(&since.map_or_else(String::new, |since| short(now.since(since)))),
                Cell::field(condition, "message"),
                Cell::field(condition, "remedy"),
            ]
        })
        .collect();
    section(
        "Conditions",
        vec!["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE", "REMEDY"],
        &rows,
    )
}

fn comparison(object: &Value) -> String {
    let pairs = compare::pairs(object);
    let rows: Vec<Vec<Cell>> = pairs
        .iter()
        .map(|pair| {
            let differs = if pair.differs { "!=" } else { "" };
            vec![
                Cell::new(&pair.field),
                Cell::new(&pair.desired),
                Cell::new(pair.observed.as_deref().unwrap_or_default()),
                Cell::new(differs),
            ]
        })
        .collect();
    let mut text = section(
        "Desired and observed",
        vec!["FIELD", "DESIRED", "OBSERVED", "DIFFERS"],
        &rows,
    );
    let facts: Vec<Vec<Cell>> = compare::facts(object)
        .iter()
        .map(|(key, value)| vec![Cell::new(key), Cell::new(value)])
        .collect();
    if !facts.is_empty() {
        text += "\n";
        text += &section("Observed", vec!["FACT", "VALUE"], &facts);
    }
    text
}

/// The last ends of a container, each with the end of its log.
fn ends(object: &Value, now: Timestamp) -> String {
    let found = at(object, "observed.ends").as_array();
    let mut text = String::new();
    for end in found.into_iter().flatten() {
        let since = moment(end, "at").map_or_else(String::new, |at| relative(now, at));
        text += &format!("  {since}: {}\n", cleaned(end, "cause"));
        for line in end["log"].as_array().into_iter().flatten() {
            text += &format!("    {}\n", clean(&plain(line)));
        }
    }
    match text.is_empty() {
        true => text,
        false => format!("Last ends:\n{text}"),
    }
}

/// What gives a user each skill, and for a skill set what is deployed of it.
fn skills(object: &Value) -> String {
    let list = |path| at(object, path).as_array().into_iter().flatten();
    let name = |item: &Value| text(item, "skill");
    let has_deployed = at(object, "observed.deployed").is_array();
    let row = |skill: &str, given: Option<&Value>| {
        let deployed = list("observed.deployed").find(|item| name(item) == skill);
        let given = given.unwrap_or(&Value::Null);
        let digest = |item: &Value| Cell::new(short_digest(&text(item, "digest")));
        let mut row = vec![
            Cell::new(skill),
            digest(given),
            Cell::field(given, "by"),
            Cell::field(given, "via"),
        ];
        if has_deployed {
            row.push(digest(deployed.unwrap_or(&Value::Null)));
        }
        row
    };
    let given = list("desired.skills").filter(|item| item.is_object());
    let mut rows: Vec<Vec<Cell>> = given.map(|item| row(&name(item), Some(item))).collect();
    for item in list("observed.deployed").filter(|item| item.is_object()) {
        if !list("desired.skills").any(|given| name(given) == name(item)) {
            rows.push(row(&name(item), None));
        }
    }
    let mut titles = vec!["SKILL", "DIGEST", "GIVEN BY", "VIA"];
    if has_deployed {
        titles.push("DEPLOYED");
    }
    section("Skills", titles, &rows)
}

fn plan(object: &Value, now: Timestamp) -> String {
    match NextPass::of(object) {
        NextPass::Unknown(why) => format!("Next reconciliation: unknown: {}\n", clean(&why)),
        NextPass::Steps(steps) if steps.is_empty() => {
            format!("Next reconciliation: {}\n", NextPass::idle(object, now))
        }
        NextPass::Steps(steps) => {
            let mut text = "Next reconciliation:\n".to_owned();
            for (index, step) in steps.iter().enumerate() {
                text += &format!("  {}. {}\n", index + 1, clean(step));
            }
            text
        }
    }
}

fn attempts(object: &Value, now: Timestamp) -> String {
    let mut text = format!("Failures in a row: {}\n", cleaned(object, "failures"));
    if let Some(at) = moment(object, "next_attempt_at") {
        text += &format!("Next attempt: {}\n", relative(now, at));
    }
    text
}

fn events(object: &Value, now: Timestamp) -> String {
    // The object is known here, and the newest goes where the eye ends.
    let columns = EVENTS
        .columns(false)
        .filter(|column| column.field != "object");
    let found = at(object, "events").as_array().into_iter().flatten();
    let rows = Cell::rows(columns.clone(), found.rev(), now);
    if rows.is_empty() {
        return "Events: none\n".to_owned();
    }
    section(
        "Events",
        columns.map(|column| column.title).collect(),
        &rows,
    )
}

fn section(title: &str, columns: Vec<&'static str>, rows: &[Vec<Cell>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let table = Table::new(columns, true).rows(rows);
    let lines: Vec<String> = table.lines().map(|line| format!("  {line}\n")).collect();
    format!("{title}:\n{}", lines.concat())
}

#[cfg(test)]
mod tests {
    use super::super::recorded;
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);

    fn plain_text(object: &Value, overview: &Value) -> String {
        let text = render(object, overview, "agentyard", NOW);
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn a_broken_container_says_all_a_tired_operator_needs() {
        insta::assert_snapshot!(plain_text(&recorded::broken(), &recorded::overview()));
    }

    #[test]
    fn a_running_container_says_that_nothing_is_wrong() {
        insta::assert_snapshot!(plain_text(&recorded::running(), &recorded::overview()));
    }

    #[test]
    fn user_shows_health_and_why_the_container_is_stopped() {
        let mut user = recorded::running();
        user["health"] = serde_json::json!({
            "status": "False", "reason": "InvalidUserConfig", "message": "no JSON",
            "object": "agent-config/bob", "remedy": "Correct it.",
        });
        let disabled = "the account is disabled by root, since 2026-05-11T11:46:40Z";
        user["standstill"] = serde_json::json!({ "message": disabled });
        let text = plain_text(&user, &recorded::overview());
        for part in [
            &*format!(
                "Status:  Ready=False (InvalidUserConfig, agent-config/bob)\nStopped: {disabled}\n"
            ),
            "Problems:\n  agent-config/bob: InvalidUserConfig: no JSON\n    remedy:  Correct it.\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn skills_are_shown_with_what_gives_them_and_what_is_deployed() {
        let mut user = recorded::running();
        let (new, old) = ("b".repeat(64), "a".repeat(64));
        user["desired"]["skills"] = serde_json::json!([
            {"skill": "odt", "digest": new, "by": "skills.defaults"},
            {"skill": "pdf", "digest": new, "by": "group all", "via": "eng"},
        ]);
        let text = plain_text(&user, &recorded::overview());
        let table = "Skills:\n  SKILL  DIGEST        GIVEN BY         VIA\n  \
                     odt    bbbbbbbbbbbb  skills.defaults  -\n  \
                     pdf    bbbbbbbbbbbb  group all        eng\n";
        assert!(text.contains(table), "{text}");
        assert!(!text.contains('{'), "{text}");
        user["observed"]["deployed"] = serde_json::json!([
            {"skill": "pdf", "digest": old}, {"skill": "old", "digest": old},
        ]);
        let text = plain_text(&user, &recorded::overview());
        for line in [
            "odt    bbbbbbbbbbbb  skills.defaults  -    -\n",
            "pdf    bbbbbbbbbbbb  group all        eng  aaaaaaaaaaaa\n",
            "old    -             -                -    aaaaaaaaaaaa\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn a_crash_loop_says_when_the_container_is_started_again() {
        let mut object = recorded::broken();
        object["conditions"][0]["reason"] = "CrashLoop".into();
        object["failures"] = 0.into();
        object["plan"]["actions"] = serde_json::json!([]);
        let text = plain_text(&object, &recorded::overview());
        let said = "Next reconciliation: no steps before the next attempt, ";
        assert!(text.contains(said), "{text}");
    }

    #[test]
    fn last_ends_are_shown_with_their_logs() {
        let mut object = recorded::broken();
        object["observed"]["ends"] = serde_json::json!([
            {"at": "2026-05-11T11:41:40Z", "exit_code": 137, "cause": "exit code 137, out of memory", "log": ["one", "two\u{1b}[2J"]},
            {"at": "2026-05-11T11:31:40Z", "exit_code": null, "cause": "removed by hand", "log": []},
        ]);
        let text = plain_text(&object, &recorded::overview());
        let section = "Last ends:\n  5m ago (2026-05-11T11:41:40Z): exit code 137, out of memory\n    one\n    two\\u{1b}[2J\n  15m ago (2026-05-11T11:31:40Z): removed by hand\n";
        assert!(text.contains(section), "{text}");
    }

    #[test]
    fn what_an_agent_wrote_reaches_no_terminal() {
        let mut object = recorded::broken();
        object["conditions"][0]["message"] = "x\x1b[2J".into();
        object["events"][0]["message"] = "y\x1b]0;z\x07".into();
        object["plan"] = serde_json::json!({"error": "w\x1b"});
        let text = plain_text(&object, &recorded::overview());
        assert!(
            !text.contains(|c: char| c.is_control() && c != '\n'),
            "{text:?}"
        );
        assert!(text.contains("x\\u{1b}[2J"), "{text}");
    }
}
