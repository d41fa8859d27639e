//! Values from the command line, a prompt or standard input.

use std::fmt;
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::str::FromStr;

use schema::config::find;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{known_place, part};
use crate::cli::output::screen;
use crate::cli::{Failure, Result, failed};

/// Longer than any value may be.
const LARGEST_VALUE: u64 = 1024 * 1024;

/// `key=value`. The value may be a secret, so it cannot be printed.
#[derive(Clone)]
pub struct Assignment {
    /// The key.
    pub key: String,
    /// The value as it was given.
    pub text: SecretString,
}

impl fmt::Debug for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=…", self.key)
    }
}

impl FromStr for Assignment {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let (key, text) = given
            .split_once('=')
            .ok_or_else(|| "use KEY=VALUE, or KEY=- to be prompted for the value".to_owned())?;
        Ok(Self {
            key: known_place(key)?,
            text: SecretString::from(text),
        })
    }
}

/// Reads values; standard input only once.
#[derive(Default)]
pub struct Given {
    input_taken_by: Option<String>,
}

impl Given {
    /// The value of a key: `-` prompts, or reads standard input where no terminal is; `@FILE` reads a file, and `@@` is a
    /// literal `@`.
    ///
    /// # Errors
    /// When it cannot be read, or standard input was read for another key.
    pub async fn value(&mut self, key: &str, text: SecretString) -> Result<Value> {
        let whole = part::find_place(key).map_or(key, |(whole, _)| whole);
        let is_secret = find(whole).is_some_and(|def| def.is_secret());
        let (text, file) = split_file(text);
        if let Some(path) = file {
            let read_text = tokio::task::spawn_blocking(move || read_file(&path)).await;
            let read_text = read_text.map_err(failed)??;
            return read(key, read_text.expose_secret());
        }
        if text.expose_secret() != "-" {
            if is_secret && !text.expose_secret().is_empty() {
                screen::note(&format!(
                    "note: other users of this machine may have seen the value; `{key}=-` prompts for it"
                ));
            }
            return read(key, text.expose_secret());
        }
        if !std::io::stdin().is_terminal() {
            if let Some(other) = &self.input_taken_by {
                return Err(Failure::Usage(format!(
                    "standard input is the value of {other} already; it cannot be that of {key}, too"
                )));
            }
            self.input_taken_by = Some(key.to_owned());
        }
        let name = key.to_owned();
        let typed = tokio::task::spawn_blocking(move || read_hidden(&name)).await;
        let typed = typed.map_err(failed)?;
        let typed = typed.map_err(|error| {
            Failure::Failed(format!("the value of {key} cannot be read: {error}"))
        })?;
        read(key, typed.expose_secret())
    }
}

/// Reads a secret from a prompt that does not show it, or from standard input where no terminal is.
///
/// # Errors
/// A file that cannot be read.
pub(in crate::cli) fn read_hidden(key: &str) -> std::io::Result<SecretString> {
    if std::io::stdin().is_terminal() {
        return rpassword::prompt_password(format!("{key}: ")).map(SecretString::from);
    }
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(LARGEST_VALUE)
        .read_to_string(&mut text)?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(SecretString::from(text))
}

/// The file that `@FILE` names, else the text without the `@` that a second one stands for.
fn split_file(given: SecretString) -> (SecretString, Option<PathBuf>) {
    let text = given.expose_secret();
    match text.strip_prefix('@') {
        None | Some("") => (given, None),
        Some(literal) if literal.starts_with('@') => (SecretString::from(literal), None),
        Some(path) => (SecretString::default(), Some(PathBuf::from(path))),
    }
}

/// Reads a value from a file, without the line break at its end.
fn read_file(path: &std::path::Path) -> Result<SecretString> {
    let shown = path.display();
    let cannot = |error: &dyn fmt::Display| {
        Failure::Failed(format!(
            "cannot read {shown}: {error}; a value that begins with @ is written @@"
        ))
    };
    let file = std::fs::File::open(path).map_err(|error| cannot(&error))?;
    let mut text = String::new();
    let length = file.take(LARGEST_VALUE + 1).read_to_string(&mut text);
    let length = length.map_err(|error| cannot(&error))?;
    if length as u64 > LARGEST_VALUE {
        return Err(cannot(&"it is larger than 1 MiB"));
    }
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(SecretString::from(text))
}

/// JSON where the key takes no text, else text as it stands: a password of digits stays a text.
fn read(key: &str, text: &str) -> Result<Value> {
    if part::find_place(key).is_some() {
        return part::read_value(key, text);
    }
    let Some(def) = find(key) else {
        return Ok(Value::from(text));
    };
    let value = def.value_of_text(text);
    value.map_err(|problem| Failure::Usage(problem.message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn l21_values_have_the_type_of_their_key() {
        for (key, text, expected) in [
            ("image.tag", "2", json!("2")),
            ("image.registry_password", "0012", json!("0012")),
            ("image.registry_password", "null", json!("null")),
            ("container.pids_limit", "256", json!(256)),
            ("container.autostart", "false", json!(false)),
            ("web.desktop_user_agents", r#"["a"]"#, json!(["a"])),
            ("agent", r#"{"a":1}"#, json!({"a": 1})),
            // Wrong, and the server says so.
            ("container.pids_limit", "many", json!("many")),
        ] {
            assert_eq!(read(key, text).ok(), Some(expected), "{key}={text}");
        }
    }

    #[tokio::test]
    async fn value_is_read_from_a_file_or_begins_with_an_at() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("models.json");
        std::fs::write(&file, "[{\"a\": 1}]\n").unwrap();
        let at_file = format!("@{}", file.display());
        for (key, text, expected) in [
            ("agent.model_list", at_file.as_str(), json!([{"a": 1}])),
            ("web.desktop_user_agents", &at_file, json!([{"a": 1}])),
            ("image.registry_password", &at_file, json!("[{\"a\": 1}]")),
            ("image.registry_password", "@@x", json!("@x")),
            ("image.registry_password", "@", json!("@")),
            ("agent.name", "@@", json!("@")),
        ] {
            let value = Given::default().value(key, SecretString::from(text)).await;
            assert_eq!(value.unwrap(), expected, "{key}={text}");
        }
        let none = Given::default()
            .value("agent.a", SecretString::from("@/no/such"))
            .await;
        let why = none.unwrap_err().to_string();
        assert!(why.contains("/no/such") && why.contains("@@"), "{why}");
    }

    #[test]
    fn a_value_is_never_printed() {
        let assignment: Assignment = "image.registry_password=a=b".parse().unwrap();
        assert_eq!(assignment.text.expose_secret(), "a=b");
        assert_eq!(format!("{assignment:?}"), "image.registry_password=…");
        let refused = "hunter2".parse::<Assignment>().unwrap_err();
        assert!(!refused.contains("hunter2"), "{refused}");
    }
}
