//! One value of a table or a line, with the colour of what it means.

use anstyle::{AnsiColor, Style};
use schema::ids::Timestamp;
use schema::kind::{Column, Show};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::clean::clean;
use super::time::age;

/// The colour of a status word: green as it should be, yellow on its way or not known, red wrong.
fn style(word: &str) -> Style {
    match word {
        "True" | "running" | "ready" | "done" | "success" | "succeeded" => {
            AnsiColor::Green.on_default()
        }
        "False" | "failed" | "denied" | "error" => AnsiColor::Red.on_default(),
        "Unknown" | "unknown" | "starting" | "stopping" | "deleting" | "paused" => {
            AnsiColor::Yellow.on_default()
        }
        _ => Style::new(),
    }
}

/// Text that may go to a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// What others wrote is made harmless here, so no table can forget it.
    pub fn new(text: &str) -> Self {
        let text = if text.is_empty() { "-" } else { text };
        Self {
            text: clean(text),
            style: Style::new(),
        }
    }

    /// A word of status.
    pub fn status(word: &str) -> Self {
        Self {
            style: style(word),
            ..Self::new(word)
        }
    }

    /// A field of an object; `-` when there is none.
    pub fn field(item: &Value, path: &str) -> Self {
        Self::new(&text(item, path))
    }

    /// What a column shows of an object.
    pub fn of(column: &Column, item: &Value, now: Timestamp) -> Self {
        let shown = text(item, column.field);
        match column.show {
            Show::Text => Self::new(&shown),
            Show::Digest => Self::new(short(&shown)),
            Show::Progress => Self::new(&progress(at(item, column.field))),
            Show::Age => Self::new(&age(item, column.field, now)),
            Show::Status if shown.is_empty() => Self::status("Unknown"),
            Show::Status => Self::status(&shown),
            // Once it is observed to be paused, that is the reason itself.
            Show::Reason if at(item, "paused") == true && !shown.starts_with("Paused") => {
                Self::new(&format!("{shown},Paused"))
            }
            Show::Reason => Self::new(&shown),
        }
    }

    /// The rows of a table of these columns.
    pub fn rows<'a>(
        columns: impl Iterator<Item = &'a Column> + Clone,
        items: impl IntoIterator<Item = &'a Value>,
        now: Timestamp,
    ) -> Vec<Vec<Self>> {
        let row = |item| {
            columns
                .clone()
                .map(move |column| Self::of(column, item, now))
        };
        items.into_iter().map(|item| row(item).collect()).collect()
    }

    /// Columns on a terminal.
    pub fn width(&self) -> usize {
        self.text.width()
    }

    /// With its colour; whoever prints takes that away where there is no terminal.
    pub fn painted(&self) -> String {
        let Self { text, style } = self;
        format!("{style}{text}{style:#}")
    }
}

/// A field of an object by its dotted path; null when there is none. In a list, a name selects the item of that
/// `type`: `conditions.Ready.status`.
pub fn at<'a>(item: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(item, |value, name| match value {
        Value::Array(items) => items
            .iter()
            .find(|item| item["type"] == name)
            .unwrap_or(&Value::Null),
        value => &value[name],
    })
}

/// The same as people read it; empty when there is none.
pub fn text(item: &Value, path: &str) -> String {
    plain(at(item, path))
}

/// The same, made harmless for a terminal.
pub fn cleaned(item: &Value, path: &str) -> String {
    clean(&text(item, path))
}

/// The number in a field; 0 when there is none.
pub fn number(item: &Value, path: &str) -> u64 {
    at(item, path).as_u64().unwrap_or(0)
}

/// A value as people read it.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            items.join(", ")
        }
        Value::Object(_) => value.to_string(),
    }
}

/// Formats numbers of done, all and failed ones: `3/20`, `3/20, 1 failed`.
fn progress(counts: &Value) -> String {
    let (done, total) = (number(counts, "done"), number(counts, "total"));
    match number(counts, "failed") {
        _ if counts.is_null() => String::new(),
        0 => format!("{done}/{total}"),
        failed => format!("{done}/{total}, {failed} failed"),
    }
}

/// A digest or a commit, as it is shown where it need not be whole.
pub fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

/// A number with its noun: `1 user`, `2 users`.
pub fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_goes_through_objects_and_lists() {
        let item = json!({"a": {"b": 1}, "conditions": [
            {"type": "Stalled", "status": "True"}, {"type": "Ready", "status": "False"}]});
        assert_eq!(text(&item, "a.b"), "1");
        assert_eq!(text(&item, "conditions.Ready.status"), "False");
        for none in ["b", "a.b.c", "conditions.Paused.status", "conditions.0"] {
            assert_eq!(at(&item, none), &Value::Null, "{none}");
        }
    }

    #[test]
    fn columns_show_conditions_ages_and_pauses() {
        use schema::kind::{READY, REASON, SINCE};
        let now = Timestamp::from_secs(1_778_500_000);
        let since = Timestamp::from_secs(1_778_499_700).to_rfc3339();
        let ready = json!([{"type": "Ready", "status": "True", "reason": "Running",
            "last_transition_at": since}]);
        let item = json!({"paused": true, "conditions": ready});
        let shown = |column: Column, item: &Value| Cell::of(&column, item, now);
        assert_eq!(shown(READY, &item), Cell::status("True"));
        assert_eq!(shown(REASON, &item), Cell::new("Running,Paused"));
        assert_eq!(shown(SINCE, &item), Cell::new("5m"));
        let reason = json!([{"type": "Ready", "status": "Unknown", "reason": "PausedByOperator"}]);
        let observed = json!({"paused": true, "conditions": reason});
        assert_eq!(shown(REASON, &observed), Cell::new("PausedByOperator"));
        assert_eq!(shown(READY, &json!({})), Cell::status("Unknown"));
        assert_eq!(shown(SINCE, &json!({})), Cell::new("-"));
        let column = Column::text("PROGRESS", "progress").show(Show::Progress);
        let item = json!({"progress": {"done": 3, "total": 20, "failed": 1}});
        assert_eq!(shown(column, &item), Cell::new("3/20, 1 failed"));
        assert_eq!(shown(column, &json!({})), Cell::new("-"));
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!(counted(1, "user"), "1 user");
        assert_eq!(counted(0, "user"), "0 users");
    }
}
