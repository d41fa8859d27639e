//! What tools there are. The list is the same for everybody and at every time: some clients ask for it once, when nothing is
//! connected yet.

use std::collections::BTreeMap;
use std::time::Duration;

use jsonschema::Validator;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::executors::{Lane, Service};
use crate::mcp::message::Params;

/// The tools, in the order in which they are listed.
const TOOLS: &str = include_str!("catalogue.json");

/// Longest time that an executor has for anything.
pub const LONGEST: Duration = Duration::from_secs(110);
/// What a wait may take beyond what it is told to wait.
pub(super) const AFTER_A_WAIT: Duration = Duration::from_secs(5);
/// How long a wait is when nothing is said.
pub(super) const WAIT: u64 = 10_000;
/// What typing takes before its first character.
const BEFORE_TYPING: Duration = Duration::from_secs(10);
/// What the desktop takes for each character.
const CHARACTER: Duration = Duration::from_millis(30);

/// A tool as the catalogue has it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Row {
    service: Service,
    name: String,
    class: Class,
    /// 0: the call says it.
    timeout_ms: u64,
    title: String,
    description: String,
    annotations: Annotations,
    input_schema: Value,
    /// What it brings is written by strangers: pages, screens and files.
    #[serde(default)]
    untrusted: bool,
    /// It may bring a picture.
    #[serde(default)]
    picture: bool,
}

/// What clients may think of a tool. All four are said of each: those that are not said mean the worst.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)] // As the protocol has them.
struct Annotations {
    read_only_hint: bool,
    destructive_hint: bool,
    idempotent_hint: bool,
    open_world_hint: bool,
}

/// Who does what a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Class {
    /// The executor.
    #[serde(rename = "A")]
    Native,
    /// The service, with tools of the executor.
    #[serde(rename = "P", alias = "A+")]
    Composed,
    /// The service, with other tools.
    #[serde(rename = "B")]
    Batch,
    /// The service.
    #[serde(rename = "S")]
    Service,
}

/// A tool.
#[derive(Debug)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Who does it.
    pub class: Class,
    /// What it may be done beside.
    pub lane: Lane,
    /// What it brings is written by strangers.
    pub untrusted: bool,
    /// It may bring a picture, which comes in one piece.
    pub picture: bool,
    time: Option<Duration>,
    /// The schema of its arguments.
    pub schema: Value,
    arguments: Validator,
}

impl Tool {
    /// How long the executor may take for it.
    pub fn limit(&self, arguments: &Map<String, Value>) -> Duration {
        let limit = match (self.time, self.name.as_str()) {
            (Some(time), _) => time,
            (None, "computer_keyboard_type") => {
                let text = arguments.get("text").and_then(Value::as_str);
                let characters = text.map_or(0, |text| text.chars().count());
                BEFORE_TYPING + CHARACTER * u32::try_from(characters).unwrap_or(u32::MAX)
            }
            (None, "browser_wait_for") => {
                let time = |name| arguments.get(name).and_then(Value::as_u64);
                let wait = time("timeMs").unwrap_or(0) + time("timeoutMs").unwrap_or(WAIT);
                Duration::from_millis(wait).saturating_add(AFTER_A_WAIT)
            }
            (None, _) => {
                let wait = arguments.get("timeout").and_then(Value::as_u64);
                Duration::from_millis(wait.unwrap_or(WAIT)).saturating_add(AFTER_A_WAIT)
            }
        };
        limit.min(LONGEST)
    }

    /// Where arguments break the schema first, as a JSON pointer.
    pub fn fault(&self, arguments: &Value) -> Option<String> {
        let error = self.arguments.iter_errors(arguments).next()?;
        Some(error.instance_path().to_string())
    }
}

/// All tools.
#[derive(Debug)]
pub struct Catalogue {
    tools: BTreeMap<(Service, String), Tool>,
    lists: BTreeMap<Service, Box<RawValue>>,
}

/// The catalogue that the program was built with is none.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// It cannot be read.
    #[error("the catalogue of tools cannot be read")]
    Unreadable(#[from] serde_json::Error),
    /// The schema of a tool's arguments is none.
    #[error("the schema of {0} is not valid")]
    Schema(String),
}

impl Catalogue {
    /// The catalogue that the program was built with.
    ///
    /// # Errors
    /// [`CatalogueError`] when it is none.
    pub fn read() -> Result<Self, CatalogueError> {
        let mut tools = BTreeMap::new();
        let mut lists: BTreeMap<Service, Vec<Value>> = BTreeMap::new();
        for row in serde_json::from_str::<Vec<Row>>(TOOLS)? {
            let arguments = jsonschema::validator_for(&row.input_schema)
                .map_err(|_| CatalogueError::Schema(row.name.clone()))?;
            lists.entry(row.service).or_default().push(json!({
                "name": row.name,
                "title": row.title,
                "description": row.description,
                "inputSchema": row.input_schema,
                "annotations": row.annotations,
            }));
            let tool = Tool {
                name: row.name.clone(),
                class: row.class,
                lane: match row.annotations.read_only_hint {
                    true => Lane::Read,
                    false => Lane::Act,
                },
                untrusted: row.untrusted,
                picture: row.picture,
                time: (row.timeout_ms > 0).then(|| Duration::from_millis(row.timeout_ms)),
                schema: row.input_schema,
                arguments,
            };
            tools.insert((row.service, row.name), tool);
        }
        let lists = lists.into_iter();
        let lists =
            lists.map(|(service, list)| Ok((service, serde_json::value::to_raw_value(&list)?)));
        Ok(Self {
            tools,
            lists: lists.collect::<Result<_, serde_json::Error>>()?,
        })
    }

    /// A service's tools, as `tools/list` answers them.
    pub fn list(&self, service: Service) -> Option<&RawValue> {
        self.lists.get(&service).map(Box::as_ref)
    }

    /// A tool of a service.
    pub fn find(&self, service: Service, name: &str) -> Option<&Tool> {
        self.tools.get(&(service, name.to_owned()))
    }

    /// All tools of all services.
    #[cfg(test)]
    pub(super) fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.tools.values()
    }

    /// Whether a call may bring a picture; a batch, if one of its steps may.
    pub fn may_show(&self, service: Service, call: &Params) -> bool {
        let shows = |name: &String| self.find(service, name).is_some_and(|tool| tool.picture);
        match &call.steps {
            Some(steps) => steps.iter().any(shows),
            None => call.name.as_ref().is_some_and(shows),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"{"name": "browser_screenshot"}"#, true)]
    #[case(r#"{"name": "browser_get_content", "arguments": {"steps": [{"tool": "browser_screenshot"}]}}"#, false)]
    #[case(r#"{"name": "browser_batch", "arguments": {"steps": [{"tool": "browser_click"}, {"tool": "browser_wait"}]}}"#, false)]
    #[case(r#"{"name": "browser_batch", "arguments": {"steps": [{"tool": "browser_click"}, {"tool": "browser_screenshot"}]}}"#, true)]
    #[case(
        r#"{"name": "browser_batch", "arguments": {"steps": [{"tool": 1}]}}"#,
        true
    )]
    #[case(r#"{"name": "browser_batch"}"#, true)]
    #[case("{}", false)]
    fn a_batch_may_bring_a_picture_if_a_step_may(#[case] call: &str, #[case] may: bool) {
        let call = Params::read(RawValue::from_string(call.to_owned()).unwrap());
        let catalogue = Catalogue::read().unwrap();
        assert_eq!(catalogue.may_show(Service::Browser, &call), may);
    }
}
