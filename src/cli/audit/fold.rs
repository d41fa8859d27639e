//! Rows of a table of the audit trail: entries that belong together are one row.

use std::time::Duration;

use schema::ids::Timestamp;
use serde_json::{Value, json};

use crate::cli::output::cell::{at, counted, number, text};
use crate::cli::output::time::moment;

/// The same action of the same actor belongs to the entry after it, if no more time lies between the two.
const TOGETHER: Duration = Duration::from_secs(60);
/// Objects that are named in a row.
const NAMED: usize = 3;

/// Folds entries, newest first, as they come.
#[derive(Default)]
pub struct Folder {
    open: Option<Row>,
}

/// A row under way.
struct Row {
    newest: Value,
    oldest_at: Option<Timestamp>,
    objects: Vec<String>,
    count: u64,
}

impl Row {
    fn new(entry: Value) -> Self {
        Self {
            oldest_at: moment(&entry, "at"),
            objects: objects(&entry),
            count: number(&entry, "count").max(1),
            newest: entry,
        }
    }

    /// Returns whether an older entry belongs to it.
    fn includes(&self, entry: &Value) -> bool {
        let same = |key: &str| at(&self.newest, key) == at(entry, key);
        if !["actor", "action", "outcome"].into_iter().all(same) {
            return false;
        }
        let is_request = same("request_id") && !text(entry, "request_id").is_empty();
        let is_near = match (self.oldest_at, moment(entry, "at")) {
            (Some(after), Some(before)) => after.since(before) <= TOGETHER,
            _ => false,
        };
        is_request || is_near
    }

    fn add(&mut self, entry: &Value) {
        self.oldest_at = moment(entry, "at");
        for object in objects(entry) {
            if !self.objects.contains(&object) {
                self.objects.push(object);
            }
        }
        self.count += number(entry, "count").max(1);
    }

    fn finish(self) -> Value {
        let mut row = self.newest;
        row["object"] = json!(summarize(&self.objects));
        row["count"] = json!(self.count);
        row
    }
}

impl Folder {
    /// Takes further entries; gives the rows that are complete.
    pub fn push(&mut self, entries: Vec<Value>) -> Vec<Value> {
        let mut rows = Vec::new();
        for entry in entries {
            match &mut self.open {
                Some(row) if row.includes(&entry) => row.add(&entry),
                open => rows.extend(open.replace(Row::new(entry)).map(Row::finish)),
            }
        }
        rows
    }

    /// The last row.
    pub fn finish(self) -> Option<Value> {
        self.open.map(Row::finish)
    }
}

fn objects(entry: &Value) -> Vec<String> {
    let object = text(entry, "object");
    object.split(',').map(str::to_owned).collect()
}

/// A few objects by name; of many their number, and the first of them: `40 users: alice, bob, carol, …`.
fn summarize(objects: &[String]) -> String {
    if objects.len() <= NAMED {
        return objects.join(", ");
    }
    let first = &objects[..NAMED];
    let kind = |object: &String| object.split_once('/').map(|(kind, _)| kind.to_owned());
    let kinds: Vec<Option<String>> = objects.iter().map(kind).collect();
    match kinds.first() {
        Some(Some(kind)) if kinds.iter().all(|other| other.as_ref() == Some(kind)) => {
            let names = first.iter().filter_map(|object| object.split_once('/'));
            let names: Vec<&str> = names.map(|(_, name)| name).collect();
            let count = counted(objects.len() as u64, kind);
            format!("{count}: {}, …", names.join(", "))
        }
        _ => {
            let count = counted(objects.len() as u64, "object");
            format!("{count}: {}, …", first.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(seconds: i64, actor: &str, action: &str, object: &str, request: &str) -> Value {
        let at = Timestamp::from_secs(1_778_500_000 + seconds).to_rfc3339();
        json!({"at": at, "actor": actor, "action": action, "object": object, "outcome": "ok",
            "request_id": request, "count": 1})
    }

    fn rows(entries: Vec<Value>) -> Vec<(String, u64)> {
        let mut folder = Folder::default();
        let mut rows = Vec::new();
        for entry in entries {
            rows.extend(folder.push(vec![entry]));
        }
        rows.extend(folder.finish());
        let shown = rows
            .iter()
            .map(|row| (text(row, "object"), number(row, "count")));
        shown.collect()
    }

    #[test]
    fn a_batch_is_one_row() {
        let many: Vec<Value> = (0..40)
            .map(|n| {
                entry(
                    -n,
                    "admin",
                    "users_create",
                    &format!("user/u{n}"),
                    &format!("r{n}"),
                )
            })
            .collect();
        assert_eq!(rows(many), [("40 users: u0, u1, u2, …".to_owned(), 40)]);
        let one = entry(
            0,
            "admin",
            "users_batch_create",
            "user/a,user/b,user/c,user/d",
            "r",
        );
        assert_eq!(rows(vec![one]), [("4 users: a, b, c, …".to_owned(), 1)]);
        let mixed = entry(0, "admin", "x", "user/a,user/b,group/c,config", "r");
        assert_eq!(
            rows(vec![mixed])[0].0,
            "4 objects: user/a, user/b, group/c, …"
        );
    }

    #[test]
    fn entries_that_do_not_belong_together_stay_apart() {
        let first = entry(0, "admin", "users_create", "user/a", "r1");
        for other in [
            entry(-1, "eve", "users_create", "user/b", "r2"),
            entry(-1, "admin", "users_delete", "user/a", "r2"),
            entry(-61, "admin", "users_create", "user/b", "r2"),
        ] {
            assert_eq!(rows(vec![first.clone(), other.clone()]).len(), 2, "{other}");
        }
        let same_request = entry(-600, "admin", "users_create", "user/a", "r1");
        assert_eq!(rows(vec![first, same_request]), [("user/a".to_owned(), 2)]);
        assert_eq!(rows(Vec::new()), []);
    }
}
