//! Arguments of calls, as models and their clients send them.
//!
//! Some clients encode lists, objects, numbers and flags as JSON texts, or numbers where texts are wanted. What has one meaning under
//! the tool's schema is taken, with a note for the result; everything else is refused with field, value, rule and an example.

use serde_json::{Map, Value};

use super::catalogue::Tool;
use super::turn::Arguments;
use crate::mcp::message::check_shape;

/// Most characters of a value in a refusal.
const SHOWN: usize = 60;

/// Arguments that follow a tool's schema.
#[derive(Debug, PartialEq)]
pub(crate) struct Read {
    /// The arguments.
    pub(super) arguments: Arguments,
    /// A sentence for each value that was read as something else than it was sent as.
    pub(crate) notes: Vec<String>,
}

/// Reads the arguments of a call.
///
/// # Errors
/// The first argument that breaks a rule: field, value, rule and an example.
pub(super) fn read(tool: &Tool, given: &Value) -> Result<Read, String> {
    let mut reader = Reader {
        tool,
        notes: Vec::new(),
    };
    let mut value = given.clone();
    if value.is_null() {
        value = Value::Object(Map::new());
    }
    reader.fit("arguments", &tool.schema, &mut value)?;
    reader.check(&value)?;
    match value {
        Value::Object(arguments) => Ok(Read {
            arguments,
            notes: reader.notes,
        }),
        _ => Err(format!("{}: arguments is an object", tool.name)),
    }
}

struct Reader<'a> {
    tool: &'a Tool,
    notes: Vec<String>,
}

impl Reader<'_> {
    /// Makes a value and what is in it fit the types of a schema.
    fn fit(&mut self, field: &str, schema: &Value, value: &mut Value) -> Result<(), String> {
        let Some(wanted) = schema["type"].as_str() else {
            return Ok(());
        };
        if !is_of(wanted, value) {
            let (taken, note) =
                converted(wanted, value).ok_or_else(|| refusal(self.tool, field, schema, value))?;
            let note = note.then(|| {
                format!(
                    "{field} was sent as {} and was read as {}; send {} instead",
                    kind(value),
                    kind(&taken),
                    rule(schema)
                )
            });
            self.notes.extend(note);
            *value = taken;
        }
        match value {
            Value::Object(fields) if schema["properties"].is_object() => {
                self.fit_fields(field, schema, fields)
            }
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.fit(&below(field, &at.to_string()), &schema["items"], item)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn fit_fields(
        &mut self,
        field: &str,
        schema: &Value,
        fields: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let properties = &schema["properties"];
        let required: Vec<&str> = names(&schema["required"]);
        // Nothing, where something may be left out, says that it is left out.
        fields.retain(|name, value| !value.is_null() || required.contains(&name.as_str()));
        let unknown = |name: &&String| properties.get(name.as_str()).is_none();
        let unknown: Vec<String> = fields.keys().filter(unknown).cloned().collect();
        if !unknown.is_empty() {
            let mut known = properties.as_object().into_iter().flat_map(Map::keys);
            let misspelt = known.any(|known| unknown.iter().any(|given| resembles(known, given)));
            let incomplete = required.iter().any(|name| !fields.contains_key(*name));
            let said = self.unknown(field, properties, &required, &unknown);
            if misspelt || incomplete {
                return Err(said);
            }
            // Some clients add fields of their own to each call.
            fields.retain(|name, _| !unknown.contains(name));
            self.notes.push(format!("{said}; left out"));
        }
        if let Some(missing) = required
            .into_iter()
            .find(|name| !fields.contains_key(*name))
        {
            let schema = &properties[missing];
            return Err(format!(
                "{}: {} is missing; it takes {}, such as {}",
                self.tool.name,
                below(field, missing),
                rule(schema),
                example(self.tool, missing, schema)
            ));
        }
        for (name, value) in fields.iter_mut() {
            self.fit(&below(field, name), &properties[name], value)?;
        }
        Ok(())
    }

    fn unknown(
        &self,
        field: &str,
        properties: &Value,
        required: &[&str],
        unknown: &[String],
    ) -> String {
        let others = properties.as_object().into_iter().flat_map(Map::keys);
        let others = others
            .map(String::as_str)
            .filter(|name| !required.contains(name));
        let known: Vec<&str> = required.iter().copied().chain(others).collect();
        let meant = known
            .iter()
            .find(|known| unknown.iter().any(|given| resembles(known, given)));
        let shown: Vec<String> = unknown
            .iter()
            .take(10)
            .map(|name| cut(&below(field, name)))
            .collect();
        let plural = if unknown.len() == 1 {
            "is not an argument"
        } else {
            "are not arguments"
        };
        let of = match field {
            "arguments" => "the tool takes".to_owned(),
            nested => format!("{nested} takes"),
        };
        let known = match known.is_empty() {
            true => "none".to_owned(),
            false => known.join(", "),
        };
        let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
        format!(
            "{}: {} {plural}; {of} {known}{meant}",
            self.tool.name,
            shown.join(", ")
        )
    }

    /// Finds what types alone do not tell: limits, lists of values.
    fn check(&self, value: &Value) -> Result<(), String> {
        let Some(path) = self.tool.fault(value) else {
            return Ok(());
        };
        let (mut schema, mut at) = (&self.tool.schema, value);
        let mut field = "arguments".to_owned();
        for step in path.split('/').filter(|step| !step.is_empty()) {
            match at {
                Value::Array(items) => {
                    schema = &schema["items"];
                    at = step
                        .parse()
                        .ok()
                        .and_then(|step: usize| items.get(step))
                        .unwrap_or(&Value::Null);
                }
                _ => {
                    schema = &schema["properties"][step];
                    at = &at[step];
                }
            }
            field = below(&field, step);
        }
        Err(refusal(self.tool, &field, schema, at))
    }
}

/// Checks that a field may be a misspelt argument.
fn resembles(known: &str, given: &str) -> bool {
    let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
    let [known, given] = [plain(known), plain(given)];
    known == given
        || (given == "ref" && known == "selector")
        || (given.len() > 2 && known.contains(&given))
        || (known.len() > 1 && given.contains(&known))
}

fn below(field: &str, name: &str) -> String {
    match field {
        "arguments" => name.to_owned(),
        field => format!("{field}.{name}"),
    }
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Checks that a value has a type of a schema, in the form in which it is read.
fn is_of(wanted: &str, value: &Value) -> bool {
    match wanted {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

/// The one meaning of a value that has another type, and whether that is worth a note.
fn converted(wanted: &str, value: &Value) -> Option<(Value, bool)> {
    match value {
        Value::String(text) => {
            let text = text.trim();
            let read = match text.to_ascii_lowercase().as_str() {
                // As Python writes them.
                flag @ ("true" | "false") if wanted == "boolean" => Value::Bool(flag == "true"),
                _ => {
                    check_shape(text.as_bytes()).ok()?;
                    serde_json::from_str(text).ok()?
                }
            };
            match is_of(wanted, &read) {
                true => Some((read, true)),
                false => Some((whole(wanted, &read)?, true)),
            }
        }
        // Fractions have several spellings.
        Value::Number(number) if wanted == "string" && !number.is_f64() => {
            Some((Value::String(number.to_string()), true))
        }
        Value::Bool(flag) if wanted == "string" => Some((Value::String(flag.to_string()), true)),
        other => Some((whole(wanted, other)?, false)),
    }
}

/// A whole number that is written with a fraction, as `5.0`.
fn whole(wanted: &str, value: &Value) -> Option<Value> {
    let number = value.as_f64().filter(|_| wanted == "integer")?;
    // Beyond this, not every whole number has a place.
    const MOST: f64 = 9_007_199_254_740_992.0;
    if number.fract() != 0.0 || number.abs() > MOST {
        return None;
    }
    format!("{number:.0}").parse::<i64>().ok().map(Value::from)
}

fn refusal(tool: &Tool, field: &str, schema: &Value, value: &Value) -> String {
    let name = field.rsplit('.').next().unwrap_or(field);
    format!(
        "{}: {field} is {} ({}); it takes {}, such as {}",
        tool.name,
        cut(&value.to_string()),
        kind(value),
        rule(schema),
        example(tool, name, schema)
    )
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a flag",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The rule of a schema in words.
fn rule(schema: &Value) -> String {
    let between = |least: &str, most: &str| match (schema[least].as_i64(), schema[most].as_i64()) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(" of at least {least}"),
        (None, Some(most)) => format!(" of at most {most}"),
        (None, None) => String::new(),
    };
    match schema["type"].as_str() {
        Some("string") => match names(&schema["enum"])[..] {
            [] => "a text".to_owned(),
            ref values => format!("one of \"{}\"", values.join("\", \"")),
        },
        Some("integer") => format!("a whole number{}", between("minimum", "maximum")),
        Some("number") => format!("a number{}", between("minimum", "maximum")),
        Some("boolean") => "true or false".to_owned(),
        Some("array") => {
            let items = match schema["items"]["type"].as_str() {
                Some("string") => "texts",
                Some("integer") => "whole numbers",
                Some("object") => "objects",
                _ => "values",
            };
            let count = match (schema["minItems"].as_i64(), schema["maxItems"].as_i64()) {
                (Some(least), Some(most)) if least == most => format!("{most} "),
                (Some(least), Some(most)) => format!("{least} to {most} "),
                (_, Some(most)) => format!("at most {most} "),
                (Some(least), None) => format!("at least {least} "),
                (None, None) => String::new(),
            };
            match names(&schema["items"]["enum"])[..] {
                [] => format!("a list of {count}{items}"),
                ref values => format!(
                    "a list of {count}{items} out of \"{}\"",
                    values.join("\", \"")
                ),
            }
        }
        _ => "an object".to_owned(),
    }
}

/// A value that a schema takes.
fn example(tool: &Tool, name: &str, schema: &Value) -> Value {
    let text = |text: &str| Value::String(text.to_owned());
    match schema["type"].as_str() {
        Some("string") => match (names(&schema["enum"]).first(), name) {
            (Some(value), _) => text(value),
            (None, "selector") => text("#search"),
            (None, "url") => text("https://example.org/"),
            (None, "key" | "keys") => text("Enter"),
            (None, "region") => text("0,0,800,600"),
            (None, "path") => text("notes.txt"),
            (None, "tool") if tool.name.starts_with("computer") => text("computer_screenshot"),
            (None, "tool") => text("browser_snapshot"),
            (None, "cursor") => text("c12000"),
            (None, _) => text("text"),
        },
        Some("integer" | "number") => {
            let least = schema["minimum"].as_i64().unwrap_or(0).max(0);
            let most = schema["maximum"].as_i64().unwrap_or(i64::MAX);
            Value::from(100.clamp(least, most.max(least)))
        }
        Some("boolean") => Value::Bool(true),
        Some("array") => {
            let count = schema["minItems"].as_u64().unwrap_or(1).clamp(1, 4);
            (0..count)
                .map(|_| example(tool, name, &schema["items"]))
                .collect()
        }
        _ => {
            let required = names(&schema["required"]).into_iter();
            let fields = required.map(|name| {
                let schema = &schema["properties"][name];
                (name.to_owned(), example(tool, name, schema))
            });
            Value::Object(fields.collect())
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::super::Catalogue;
    use super::*;
    use crate::executors::Service;

    /// Reads the arguments of a call of the tool of this name.
    pub(crate) fn read_for(tool: &str, given: &Value) -> Result<Read, String> {
        let service = match tool.starts_with("browser") {
            true => Service::Browser,
            false => Service::Computer,
        };
        let catalogue = Catalogue::read().unwrap();
        read(catalogue.find(service, tool).unwrap(), given)
    }

    #[rstest]
    #[case("computer_wait", json!({"ms": "5"}), json!({"ms": 5}), 1)]
    #[case("computer_wait", json!({"ms": " 5.0 "}), json!({"ms": 5}), 1)]
    #[case("computer_wait", json!({"ms": 5.0}), json!({"ms": 5}), 0)]
    #[case("browser_navigate", json!("{\"url\":\"https://example.org/\"}"), json!({"url": "https://example.org/"}), 1)]
    #[case("browser_navigate", json!({"url": "https://a/", "snapshot": "true"}), json!({"url": "https://a/", "snapshot": true}), 1)]
    #[case("browser_navigate", json!({"url": "https://a/", "snapshot": "False"}), json!({"url": "https://a/", "snapshot": false}), 1)]
    #[case("browser_snapshot", json!(null), json!({}), 0)]
    #[case("browser_snapshot", json!("{}"), json!({}), 1)]
    #[case("browser_snapshot", json!({"selector": null, "depth": "3"}), json!({"depth": 3}), 1)]
    #[case("browser_type", json!({"selector": "#a", "text": 12345}), json!({"selector": "#a", "text": "12345"}), 1)]
    #[case("browser_type", json!({"selector": "#a", "text": "[1]"}), json!({"selector": "#a", "text": "[1]"}), 0)]
    #[case("browser_batch", json!({"steps": "[{\"tool\":\"browser_status\",\"arguments\":{}}]"}),
        json!({"steps": [{"tool": "browser_status", "arguments": {}}]}), 1)]
    #[case("browser_batch", json!({"steps": ["{\"tool\":\"browser_status\",\"arguments\":\"{}\"}"]}),
        json!({"steps": [{"tool": "browser_status", "arguments": {}}]}), 2)]
    #[case("browser_fill_form", json!({"fields": "[{\"selector\":\"#a\",\"value\":7}]", "submit": "true"}),
        json!({"fields": [{"selector": "#a", "value": "7"}], "submit": true}), 3)]
    #[case("computer", json!({"action": "left_click", "coordinate": "[10, 20]"}), json!({"action": "left_click", "coordinate": [10, 20]}), 1)]
    fn arguments_with_one_meaning_are_taken(
        #[case] tool: &str,
        #[case] given: Value,
        #[case] expected: Value,
        #[case] notes: usize,
    ) {
        let read = read_for(tool, &given).unwrap();
        assert_eq!(Value::Object(read.arguments), expected);
        assert_eq!(read.notes.len(), notes, "{:?}", read.notes);
    }

    #[rstest]
    #[case("computer_wait", json!({"ms": "five"}), r#"computer_wait: ms is "five" (a text); it takes a whole number from 0 to 30000, such as 100"#)]
    #[case("computer_wait", json!({"ms": 5.5}), r#"computer_wait: ms is 5.5 (a number); it takes a whole number from 0 to 30000, such as 100"#)]
    #[case("computer_wait", json!({"ms": -1}), r#"computer_wait: ms is -1 (a number); it takes a whole number from 0 to 30000, such as 100"#)]
    #[case("computer_wait", json!({"ms": "99999"}), r#"computer_wait: ms is 99999 (a number); it takes a whole number from 0 to 30000, such as 100"#)]
    #[case("computer_wait", json!({"ms": null}), r#"computer_wait: ms is null (nothing); it takes a whole number from 0 to 30000, such as 100"#)]
    #[case("computer_wait", json!({}), "computer_wait: ms is missing; it takes a whole number from 0 to 30000, such as 100")]
    #[case("browser_navigate", json!("https://example.org/"),
        r#"browser_navigate: arguments is "https://example.org/" (a text); it takes an object, such as {"url":"https://example.org/"}"#)]
    #[case("browser_navigate", json!([]), r#"browser_navigate: arguments is [] (a list); it takes an object, such as {"url":"https://example.org/"}"#)]
    #[case("browser_navigate", json!({"url": "https://a/", "snapshot": 1}), "browser_navigate: snapshot is 1 (a number); it takes true or false, such as true")]
    #[case("browser_batch", json!({"steps": "click"}),
        r#"browser_batch: steps is "click" (a text); it takes a list of 1 to 20 objects, such as [{"tool":"browser_snapshot"}]"#)]
    #[case("browser_batch", json!({"steps": "{\"tool\":\"browser_status\"}"}),
        r#"browser_batch: steps is "{\"tool\":\"browser_status\"}" (a text); it takes a list of 1 to 20 objects, such as [{"tool":"browser_snapshot"}]"#)]
    #[case("browser_batch", json!({"steps": []}), r#"browser_batch: steps is [] (a list); it takes a list of 1 to 20 objects, such as [{"tool":"browser_snapshot"}]"#)]
    #[case("browser_click", json!({"selector": "#a", "button": "primary"}),
        r#"browser_click: button is "primary" (a text); it takes one of "left", "right", "middle", such as "left""#)]
    #[case("browser_click", json!({"selector": "#a", "modifiers": "Shift"}),
        r#"browser_click: modifiers is "Shift" (a text); it takes a list of texts out of "Alt", "Control", "Meta", "Shift", such as ["Alt"]"#)]
    #[case("computer_file_write", json!({"path": "a.json", "content": {"a": 1}}),
        r#"computer_file_write: content is {"a":1} (an object); it takes a text, such as "text""#)]
    #[case("browser_click", json!({"ref": "e3"}), "browser_click: ref is not an argument; the tool takes selector, button, clicks, dialog, modifiers, promptText, snapshot; did you mean selector?")]
    #[case("browser_get_content", json!({"max_chars": 500}),
        "browser_get_content: max_chars is not an argument; the tool takes cursor, maxChars, selector; did you mean maxChars?")]
    #[case("browser_fill_form", json!({"fields": [{"name": "a", "value": "b"}]}),
        "browser_fill_form: fields.0.name is not an argument; fields.0 takes selector, value, type")]
    fn refusals_name_field_value_rule_and_example(
        #[case] tool: &str,
        #[case] given: Value,
        #[case] expected: &str,
    ) {
        assert_eq!(read_for(tool, &given).unwrap_err(), expected);
    }

    /// As the MCP client of n8n adds them.
    #[test]
    fn fields_that_clients_add_are_left_out_with_a_note() {
        let catalogue = Catalogue::read().unwrap();
        let added = ["toolCallId", "sessionId", "chatInput", "action"];
        for tool in catalogue.tools() {
            let expected = example(tool, "arguments", &tool.schema);
            let mut given = expected.clone();
            for name in added {
                let known = &tool.schema["properties"][name];
                if known.is_null() {
                    given[name] = json!("x");
                }
            }
            let read = read(tool, &given).unwrap();
            assert_eq!(Value::Object(read.arguments), expected, "{}", tool.name);
            assert_eq!(read.notes.len(), 1, "{}", tool.name);
        }
        let list = read_for("browser_tabs_list", &json!({"a": 1, "b": 2})).unwrap();
        let note = "browser_tabs_list: a, b are not arguments; the tool takes none; left out";
        assert_eq!(list.notes, [note]);
    }

    #[test]
    fn nested_text_of_many_values_is_not_read() {
        let many = format!("[{}0]", "0,".repeat(60_000));
        let refused = read_for("browser_batch", &json!({"steps": many})).unwrap_err();
        assert!(refused.len() < 300, "{refused}");
    }

    #[test]
    fn example_of_each_tool_is_taken_by_it() {
        let catalogue = Catalogue::read().unwrap();
        for tool in catalogue.tools() {
            let example = example(tool, "arguments", &tool.schema);
            let read = read(tool, &example).unwrap();
            assert_eq!(read.notes, Vec::<String>::new(), "{}", tool.name);
        }
    }
}
