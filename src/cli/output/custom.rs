//! `-o custom-columns=NAME:.path,…`: columns of the caller's choice.

use std::ffi::OsStr;

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use serde_json::Value;

use super::Format;
use super::cell::plain;

const PREFIX: &str = "custom-columns=";
/// Advice for columns that cannot be read.
const USAGE: &str = "use custom-columns=TITLE:.path,TITLE:.path, such as custom-columns=NAME:.username,READY:.conditions[0].status";

/// One column: its title, and where in an object its value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomColumn {
    /// Title.
    pub title: String,
    path: Vec<Step>,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// A member of an object; in a list, the item of this `type`.
    Member(String),
    /// An item of a list; negative from its end.
    Item(i64),
    /// All items of a list.
    Items,
}

impl CustomColumn {
    /// Reads the columns behind `custom-columns=`.
    ///
    /// # Errors
    /// A sentence that says what to write.
    fn parse_all(text: &str) -> Result<Vec<Self>, String> {
        let columns = text.split(',').map(|column| {
            let read = column
                .split_once(':')
                .filter(|(title, _)| !title.is_empty());
            let read = read.and_then(|(title, path)| Some((title, parse_path(path)?)));
            let (title, path) = read.ok_or_else(|| format!("{column:?} is no column; {USAGE}"))?;
            let title = title.to_owned();
            Ok(Self { title, path })
        });
        columns.collect()
    }

    /// The value of an object as text; empty when there is none.
    pub fn text(&self, item: &Value) -> String {
        let found = find(item, &self.path);
        let texts: Vec<String> = found.into_iter().map(plain).collect();
        texts.join(", ")
    }
}

/// Reads `.a.b[0].c[*]`, also in braces as kubectl takes it.
fn parse_path(text: &str) -> Option<Vec<Step>> {
    let inner = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    let mut rest = inner.unwrap_or(text);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(index) = rest.strip_prefix('[') {
            let (index, after) = index.split_once(']')?;
            steps.push(match index {
                "*" => Step::Items,
                index => Step::Item(index.parse().ok()?),
            });
            rest = after;
            continue;
        }
        let name = match (rest.strip_prefix('.'), steps.is_empty()) {
            (Some(name), _) => name,
            (None, true) => rest,
            (None, false) => return None,
        };
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let (name, after) = name.split_at(end);
        match name {
            // `.` alone is the whole object, and `.[0]` an item of it.
            "" if steps.is_empty() && (after.is_empty() || after.starts_with('[')) => {}
            "" => return None,
            name => steps.push(Step::Member(name.to_owned())),
        }
        rest = after;
    }
    (!text.is_empty()).then_some(steps)
}

fn find<'a>(item: &'a Value, path: &[Step]) -> Vec<&'a Value> {
    let mut found = vec![item];
    for step in path {
        found = found
            .into_iter()
            .flat_map(|value| match (step, value) {
                (Step::Items, Value::Array(items)) => items.iter().collect(),
                (Step::Item(index), Value::Array(items)) => {
                    let place = match usize::try_from(*index) {
                        Ok(place) => Some(place),
                        Err(_) => usize::try_from(index.unsigned_abs())
                            .ok()
                            .and_then(|back| items.len().checked_sub(back)),
                    };
                    let item = place.and_then(|place| items.get(place));
                    item.into_iter().collect()
                }
                (Step::Member(name), Value::Array(items)) => {
                    let named = items.iter().find(|item| item["type"] == *name.as_str());
                    named.into_iter().collect()
                }
                (Step::Member(name), value) => value.get(name).into_iter().collect(),
                (Step::Item(_) | Step::Items, _) => Vec::new(),
            })
            .filter(|value| !value.is_null())
            .collect();
    }
    found
}

/// Reads a format of lists: one of [`Format`], or columns of the caller's choice.
#[derive(Debug, Clone)]
pub struct FormatParser;

impl TypedValueParser for FormatParser {
    type Value = Format;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Format, clap::Error> {
        let text = value.to_str().unwrap_or_default();
        if !text.starts_with("custom-columns") {
            return EnumValueParser::<Format>::new().parse_ref(command, arg, value);
        }
        let columns = match text.strip_prefix(PREFIX) {
            Some(columns) => CustomColumn::parse_all(columns),
            None => Err(USAGE.to_owned()),
        };
        match columns {
            // A command line is read once in the life of the process.
            Ok(columns) => Ok(Format::Custom(Box::leak(columns.into_boxed_slice()))),
            Err(why) => {
                let error = command.clone().error(ErrorKind::ValueValidation, why);
                Err(error)
            }
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = <Format as clap::ValueEnum>::value_variants().iter();
        let words = words.filter_map(clap::ValueEnum::to_possible_value);
        let own =
            PossibleValue::new(PREFIX).help("Columns of your choice: TITLE:.path,TITLE:.path");
        Some(Box::new(words.chain([own])))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_through_objects_and_lists() {
        let item = json!({"a": {"b": [{"c": 1}, {"c": 2}]}, "names": ["x", "y"], "none": null,
            "conditions": [{"type": "Ready", "status": "True"}]});
        for (path, text) in [
            (".a.b[0].c", "1"),
            ("a.b[-1].c", "2"),
            ("{.a.b[*].c}", "1, 2"),
            (".names", "x, y"),
            (".names[1]", "y"),
            (".names[7]", ""),
            (".names[-7]", ""),
            (".none.b", ""),
            (".missing", ""),
            (".conditions.Ready.status", "True"),
            (".conditions[0].status", "True"),
        ] {
            let columns = CustomColumn::parse_all(&format!("X:{path}")).unwrap();
            assert_eq!(columns[0].text(&item), text, "{path}");
        }
    }

    #[test]
    fn wrong_columns_are_refused_with_what_to_write() {
        for wrong in [
            "",
            "NAME",
            ":.a",
            "NAME:",
            "NAME:.a[",
            "NAME:.a[x]",
            "NAME:.a..b",
            "A:.a,",
        ] {
            let why = CustomColumn::parse_all(wrong).unwrap_err();
            assert!(why.contains("custom-columns=TITLE:.path"), "{wrong}: {why}");
        }
        let columns = CustomColumn::parse_all("NAME:.username,STATE:.health.status").unwrap();
        let titles: Vec<&str> = columns.iter().map(|column| column.title.as_str()).collect();
        assert_eq!(titles, ["NAME", "STATE"]);
    }
}
