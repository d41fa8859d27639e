//! Values that people give for fields.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use super::depth::nests_deeper_than;
use super::ui_schema::{Field, FieldType, Section};

/// The longest text of a field.
const MAX_TEXT: usize = 64 << 10;
/// The most elements of a list of texts.
const MAX_ITEMS: usize = 1000;
/// How deep a value of type `json` may be nested.
const MAX_DEPTH: usize = 32;

/// Something wrong with a value. Says nothing of the value itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldProblem {
    /// The field.
    pub key: String,
    /// The rest of the sentence "`<field>` …".
    pub message: String,
}

/// Checked changes of a section: what to store per key, `None` = no value any more. What is not
/// named stays as it is.
pub type FieldChanges = BTreeMap<String, Option<Value>>;

/// Values that may be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedValues {
    /// Changes that they make.
    pub changes: FieldChanges,
    /// Notes on values that were read otherwise than they were written, a sentence each, without the values.
    pub warnings: Vec<String>,
}

impl Section {
    /// Checks and converts the values given for this section, of which `stored` have one already.
    /// An empty secret means: unchanged. `null`, and an empty value of a field that is neither a
    /// text nor required, means: no value. A whole number where a text is wanted is the text of its digits, with a warning.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn check_values(
        &self,
        values: &Map<String, Value>,
        stored: &BTreeSet<String>,
    ) -> Result<CheckedValues, Vec<FieldProblem>> {
        let mut changes = FieldChanges::new();
        let mut warnings = Vec::new();
        let mut problems = Vec::new();
        let mut problem = |key: &str, message: String| {
            problems.push(FieldProblem {
                // A name that somebody sends may be anything.
                key: key.chars().take(64).collect(),
                message,
            });
        };
        for (key, value) in values {
            let Some(field) = self.field(key) else {
                problem(key, format!("is not a field of {}", self.key));
                continue;
            };
            let empty = value.as_str().is_some_and(str::is_empty);
            if empty && field.is_secret() {
                continue;
            }
            let cleared = value.is_null() || empty && !field.holds_text();
            if cleared {
                changes.insert(key.clone(), None);
                continue;
            }
            // A password is never guessed (L21).
            let guesses = field.wants_text() && !field.is_secret();
            let text = if guesses { text_of_number(value) } else { None };
            match field.convert(text.as_ref().unwrap_or(value)) {
                Ok(value) => {
                    if text.is_some() {
                        warnings.push(format!(
                            "{key} is a text: the number is taken as one; put it in quotes"
                        ));
                    }
                    changes.insert(key.clone(), Some(value));
                }
                Err(message) if value.is_number() && field.wants_text() => {
                    problem(key, format!("{message}; put it in quotes"));
                }
                Err(message) => problem(key, message),
            }
        }
        for field in self.fields.iter().filter(|field| field.required) {
            let missing = match changes.get(&field.key) {
                Some(Some(value)) => {
                    value.as_str().is_some_and(|text| text.trim().is_empty())
                        || value.as_array().is_some_and(Vec::is_empty)
                }
                Some(None) => true,
                None => !stored.contains(&field.key),
            };
            // A wrong value has been reported as such.
            let wrong = values.contains_key(&field.key) && !changes.contains_key(&field.key);
            if missing && (!wrong || field.is_secret()) && field.default.is_none() {
                problem(&field.key, "is required".to_owned());
            }
        }
        if problems.is_empty() {
            Ok(CheckedValues { changes, warnings })
        } else {
            Err(problems)
        }
    }
}

/// A value with the digits of whole numbers in place of them; `None` without any. Of other numbers it is not known how they were written.
pub(crate) fn text_of_number(value: &Value) -> Option<Value> {
    let text = |value: &Value| match value {
        Value::Number(number) if !number.is_f64() => Some(Value::from(number.to_string())),
        _ => None,
    };
    match value {
        Value::Array(items) if items.iter().any(|item| text(item).is_some()) => Some(
            items
                .iter()
                .map(|item| text(item).unwrap_or_else(|| item.clone()))
                .collect(),
        ),
        _ => text(value),
    }
}

impl Field {
    fn wants_text(&self) -> bool {
        self.holds_text() || self.kind == FieldType::Select
    }

    fn holds_text(&self) -> bool {
        match self.kind {
            FieldType::Text | FieldType::Password | FieldType::StringList => true,
            FieldType::Boolean
            | FieldType::Integer
            | FieldType::Number
            | FieldType::Select
            | FieldType::Json => false,
        }
    }

    /// Checks a value and gives it the form in which it is stored. Forms send texts, so a text is
    /// read as the field's type; a text field takes texts only, so that what could be a number
    /// stays a text (L21).
    ///
    /// # Errors
    /// The rest of the sentence "`<field>` …". It never quotes the value.
    pub fn convert(&self, value: &Value) -> Result<Value, String> {
        match self.kind {
            FieldType::Boolean => boolean(value),
            FieldType::Integer => integer(value),
            FieldType::Number => number(value),
            FieldType::Text | FieldType::Password => text(value).map(Value::from),
            FieldType::Select => self.select(value),
            FieldType::StringList => string_list(value),
            FieldType::Json => json(value),
        }
    }

    fn select(&self, value: &Value) -> Result<Value, String> {
        value
            .as_str()
            .filter(|text| self.options.iter().any(|option| option == text))
            .map(Value::from)
            .ok_or_else(|| format!("must be one of {}", self.options.join(", ")))
    }
}

fn boolean(value: &Value) -> Result<Value, String> {
    match value {
        Value::Bool(_) => Ok(value.clone()),
        Value::String(text) if text == "true" => Ok(Value::Bool(true)),
        Value::String(text) if text == "false" => Ok(Value::Bool(false)),
        _ => Err("must be true or false".to_owned()),
    }
}

fn integer(value: &Value) -> Result<Value, String> {
    let number = match value {
        Value::String(text) => text.trim().parse::<i64>().ok(),
        _ => value.as_i64(),
    };
    number
        .map(Value::from)
        .ok_or_else(|| "must be a whole number".to_owned())
}

fn number(value: &Value) -> Result<Value, String> {
    let number = match value {
        Value::Number(_) => Some(value.clone()),
        Value::String(text) => {
            let text = text.trim();
            match text.parse::<i64>() {
                Ok(whole) => Some(Value::from(whole)),
                // Not a number and infinity have no form in JSON; `from` makes them null.
                Err(_) => text.parse::<f64>().ok().map(Value::from),
            }
        }
        _ => None,
    };
    number
        .filter(Value::is_number)
        .ok_or_else(|| "must be a number".to_owned())
}

fn text(value: &Value) -> Result<&str, String> {
    let text = value.as_str().ok_or("must be a text")?;
    if text.len() > MAX_TEXT {
        Err("must be at most 64 KiB long".to_owned())
    } else if text.contains('\0') {
        Err("must not contain a NUL character".to_owned())
    } else {
        Ok(text)
    }
}

fn string_list(value: &Value) -> Result<Value, String> {
    let items: Vec<&str> = match value {
        Value::Array(items) if items.len() <= MAX_ITEMS => {
            items.iter().map(text).collect::<Result<_, _>>()?
        }
        Value::String(_) => text(value)?
            .split(['\n', ','])
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .collect(),
        Value::Array(_) => Vec::new(),
        _ => return Err("must be a list of texts".to_owned()),
    };
    let too_many =
        items.len() > MAX_ITEMS || value.as_array().is_some_and(|all| all.len() > MAX_ITEMS);
    if too_many {
        return Err(format!("must have at most {MAX_ITEMS} elements"));
    }
    if items.iter().map(|item| item.len()).sum::<usize>() > MAX_TEXT {
        return Err("must be at most 64 KiB long".to_owned());
    }
    Ok(Value::from(items))
}

fn json(value: &Value) -> Result<Value, String> {
    let value = match value {
        Value::String(_) => {
            serde_json::from_str(text(value)?).map_err(|_| "must be JSON".to_owned())?
        }
        _ => value.clone(),
    };
    if nests_deeper_than(&value, MAX_DEPTH) {
        Err(format!("must not be nested deeper than {MAX_DEPTH} levels"))
    } else if value.to_string().len() > MAX_TEXT {
        Err("must be at most 64 KiB long".to_owned())
    } else {
        Ok(value)
    }
}
