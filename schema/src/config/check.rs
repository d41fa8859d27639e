//! Whether a value may be stored under a key.

use serde_json::{Value, json};

use super::long_integer::{find_long_integer, long_integer};
use super::rules;
use super::setting::{KeyDef, ValueType};
use super::{Problem, ProblemCode};

use ValueType::{Boolean, Choice, Duration, Integer, List, Number, Object, Secret, Text};

/// No configured duration is longer: a hundred years.
const MAX_SECONDS: u64 = 100 * 365 * 24 * 3600;
const MAX_LIST: usize = 1000;
/// Longest text that a refusal repeats, in bytes.
const MAX_REPEATED: usize = 100;
/// A URL with one of these may hold a password or a token.
const REVEALING: [char; 3] = ['@', '?', '#'];
/// All objects together stay below the API's body limit of 1 MiB that they came through.
const MAX_OBJECT_BYTES: usize = 512 * 1024;

impl KeyDef {
    /// Checks a value and returns its canonical form.
    ///
    /// Nothing is converted between JSON types: a number in quotes is no number, and a password of
    /// digits stays a text.
    ///
    /// # Errors
    /// A [`Problem`] that names the key and its rule.
    pub fn check(&self, value: &Value) -> Result<Value, Problem> {
        let wrong_type = |expected: &str| {
            let mut rule = format!("must be {expected}, not {}", type_name(value));
            if let Some(shown) = self.repeat(value) {
                rule += &format!(" ({shown})");
            }
            self.problem(ProblemCode::InvalidType, &rule)
        };
        let refused = |value: &Value, rule: &str| match self.repeat(value) {
            Some(shown) => self.problem(ProblemCode::InvalidValue, &format!("{rule}, not {shown}")),
            None => self.problem(ProblemCode::InvalidValue, rule),
        };
        let invalid = |rule: &str| refused(value, rule);
        match self.value_type {
            Boolean => match value {
                Value::Bool(_) => Ok(value.clone()),
                _ => Err(wrong_type("true or false")),
            },
            Integer(min, max) => match value.as_i64() {
                Some(number) if (min..=max).contains(&number) => Ok(value.clone()),
                Some(_) => Err(invalid(&format!("must be from {min} to {max}"))),
                None if value.is_number() => Err(invalid(&format!(
                    "must be a whole number from {min} to {max}"
                ))),
                None => Err(wrong_type("a whole number")),
            },
            Number(min, max) => match value.as_f64() {
                // 2 and 2.0 are the same number and get the same form.
                Some(number) if (min..=max).contains(&number) && number.fract() == 0.0 => {
                    Ok(json!(number as i64))
                }
                Some(number) if (min..=max).contains(&number) => Ok(json!(number)),
                Some(_) => Err(invalid(&format!("must be from {min} to {max}"))),
                None => Err(wrong_type("a number")),
            },
            Text(rule) => {
                let text = value.as_str().ok_or_else(|| wrong_type("a text"))?;
                rule(text).map(Value::String).map_err(invalid)
            }
            Secret => {
                let text = value.as_str().ok_or_else(|| wrong_type("a text"))?;
                rules::secret(text).map(Value::String).map_err(invalid)
            }
            Duration { zero } => {
                let text = match value {
                    // The one number that needs no unit.
                    Value::Number(number) if number.as_u64() == Some(0) => "0",
                    Value::String(text) => text.as_str(),
                    _ => return Err(wrong_type("a text such as \"30m\" or \"24h\"")),
                };
                match parse_duration(text) {
                    Some(duration) if !zero && duration.is_zero() => {
                        Err(invalid("must be longer than 0"))
                    }
                    Some(_) => Ok(json!(text)),
                    None => Err(invalid(
                        "must be a duration such as \"90s\", \"30m\", \"24h\" or \"30d\", at most 100 years",
                    )),
                }
            }
            Choice(words) => {
                let text = value.as_str().ok_or_else(|| wrong_type("a text"))?;
                if !words.contains(&text) {
                    return Err(invalid(&format!("must be one of {}", words.join(", "))));
                }
                Ok(value.clone())
            }
            List(rule) => {
                let items = value
                    .as_array()
                    .ok_or_else(|| wrong_type("a list of texts such as [\"a\", \"b\"]"))?;
                if items.len() > MAX_LIST {
                    return Err(invalid("may hold at most 1000 entries"));
                }
                let mut checked: Vec<Value> = Vec::with_capacity(items.len());
                for item in items {
                    let text = item.as_str().ok_or_else(|| {
                        self.problem(
                            ProblemCode::InvalidType,
                            &format!("may only hold texts, not {}", type_name(item)),
                        )
                    })?;
                    let item = rule(text).map_err(|rule| refused(item, rule))?;
                    let item = Value::String(item);
                    if !checked.contains(&item) {
                        checked.push(item);
                    }
                }
                Ok(Value::Array(checked))
            }
            Object(_) => {
                if !value.is_object() {
                    return Err(wrong_type("an object"));
                }
                if value.to_string().len() > MAX_OBJECT_BYTES {
                    return Err(invalid("may be at most 524288 bytes long"));
                }
                if let Some(shape) = self.shape {
                    (shape.check)(value).map_err(|(code, rest)| {
                        Problem::new(self.key, code, format!("{}: {rest}", self.key))
                    })?;
                }
                Ok(value.clone())
            }
        }
    }

    /// Checks a stored value and returns its canonical form, if it has one. Of a list, the entries that no longer fit are
    /// left out: each is a problem.
    pub(super) fn check_stored(&self, value: &Value) -> (Option<Value>, Vec<Problem>) {
        let problem = match self.check(value) {
            Ok(value) => return (Some(value), Vec::new()),
            Err(problem) => problem,
        };
        let (List(_), Some(items)) = (self.value_type, value.as_array()) else {
            return (None, vec![problem]);
        };
        let mut problems = Vec::new();
        let fits = |item: &&Value| match self.check(&json!([item])) {
            Ok(_) => true,
            Err(mut problem) => {
                problem.message = format!("{item} is left out: {}", problem.message);
                problems.push(problem);
                false
            }
        };
        let kept: Vec<&Value> = items.iter().filter(fits).collect();
        match self.check(&json!(kept)) {
            Ok(kept) => (Some(kept), problems),
            Err(problem) => (None, vec![problem]),
        }
    }

    /// The value that a person means by a text: JSON, unless the key holds text. A password of digits stays a text.
    ///
    /// # Errors
    /// A [`Problem`] with an integer that would lose digits.
    pub fn value_of_text(&self, text: &str) -> Result<Value, Problem> {
        let as_text = json!(text);
        if matches!(self.value_type, Secret) || self.check(&as_text).is_ok() {
            return Ok(as_text);
        }
        match (serde_json::from_str(text), find_long_integer(text)) {
            (Ok(_), Some(name)) => Err(long_integer(self.key, name)),
            (read, _) => Ok(read.unwrap_or(as_text)),
        }
    }

    /// A value as a refusal repeats it; `None` of what may hold a secret, and of what is long.
    fn repeat(&self, value: &Value) -> Option<String> {
        let is_plain = |text: &str| {
            let is_revealing = |c: char| c.is_control() || REVEALING.contains(&c);
            text.len() <= MAX_REPEATED && !text.contains(is_revealing) && !text.contains("-----")
        };
        match value {
            _ if self.is_sealed() => None,
            Value::String(text) if is_plain(text) => Some(format!("{text:?}")),
            Value::Number(number) => Some(number.to_string()),
            Value::String(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(_) => None,
        }
    }

    pub(super) fn problem(&self, code: ProblemCode, rest: &str) -> Problem {
        Problem::new(self.key, code, format!("{} {rest}", self.key))
    }
}

/// Reads `30m`, `24h`, `1h 30m`, `0`; `None` when it is no duration or longer than a hundred years.
pub(super) fn parse_duration(text: &str) -> Option<std::time::Duration> {
    if text == "0" {
        return Some(std::time::Duration::ZERO);
    }
    humantime::parse_duration(text)
        .ok()
        .filter(|duration| duration.as_secs() <= MAX_SECONDS)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
