//! What a configuration key is: one row says all of it, and its type is what readers get.

use std::str::FromStr;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Value, json};

use super::ProblemCode;
use super::check::parse_duration;
use super::policy::{self, Policy};
use super::rules::Rule;
use crate::kind::Kind;

/// What a key holds.
#[derive(Debug, Clone, Copy)]
pub enum ValueType {
    /// `true` or `false`.
    Boolean,
    /// A whole number in a range, both ends included.
    Integer(i64, i64),
    /// A number in a range, both ends included.
    Number(f64, f64),
    /// A text under a rule.
    Text(Rule),
    /// A text that is never shown.
    Secret,
    /// A text such as `30m`, `24h`, `7d`, or `0`.
    Duration {
        /// Whether 0 has a meaning (off, or for ever).
        zero: bool,
    },
    /// One of several words.
    Choice(&'static [&'static str]),
    /// A list of texts, each under a rule, without duplicates.
    List(Rule),
    /// A JSON object, one key as a whole.
    Object(Secrets),
}

/// Which leaves of an object are secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    /// Every leaf.
    All,
    /// None.
    None,
    /// Those whose names say so, and those that the active adapter stores as secrets.
    ByAdapter,
}

/// What a key holds until it is set.
#[derive(Debug, Clone, Copy)]
pub enum DefaultValue {
    /// A boolean.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A text.
    Text(&'static str),
    /// An empty list.
    EmptyList,
    /// An empty object.
    EmptyObject,
}

/// What follows from a key's value, and is reconciled again when it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Every container is made with it; a running one is recreated.
    Containers,
    /// Every agent's files follow from it; an agent that runs with other files is restarted.
    Files,
    /// The one object of this kind follows from it.
    Object(Kind),
}

/// What an object looks like, where that is the same for all adapters.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// It as a JSON Schema.
    pub schema: fn() -> Value,
    /// Whether a value has it; otherwise the field and the rule.
    pub check: fn(&Value) -> Result<(), (ProblemCode, String)>,
}

/// Where a secret is sent: it was given for that host, and belongs to no other.
#[derive(Debug, Clone, Copy)]
pub struct BelongsTo {
    /// The key that names the host.
    pub key: &'static str,
    /// The host in that key's value, with its port, and with its scheme where it has one.
    pub host: fn(&str) -> Option<String>,
}

/// One configuration key.
#[derive(Debug, Clone, Copy)]
pub struct KeyDef {
    /// The dotted name.
    pub key: &'static str,
    /// What it holds.
    pub value_type: ValueType,
    /// What it holds until it is set.
    pub default: DefaultValue,
    /// What follows from it; nothing when its readers read it each time.
    pub effects: &'static [Effect],
    /// What an object looks like.
    pub shape: Option<Shape>,
    /// The host that a secret belongs to.
    pub belongs_to: Option<BelongsTo>,
    /// A short name for forms.
    pub title: &'static str,
    /// One or two sentences for a person.
    pub description: &'static str,
}

impl KeyDef {
    /// Whether documents mask the value, or something in it: then it is stored sealed, as a whole.
    pub fn is_sealed(&self) -> bool {
        matches!(
            self.value_type,
            ValueType::Secret | ValueType::Object(Secrets::All | Secrets::ByAdapter)
        )
    }

    /// Whether the value, or each leaf of it, is a secret and never shown.
    pub fn is_secret(&self) -> bool {
        matches!(
            self.value_type,
            ValueType::Secret | ValueType::Object(Secrets::All)
        )
    }

    /// The default as JSON.
    pub fn default_value(&self) -> Value {
        match self.default {
            DefaultValue::Boolean(value) => json!(value),
            DefaultValue::Integer(value) => json!(value),
            DefaultValue::Text(value) => json!(value),
            DefaultValue::EmptyList => json!([]),
            DefaultValue::EmptyObject => json!({}),
        }
    }
}

/// A key that holds a `T`; [`Config::get`](super::Config::get) reads it.
#[derive(Debug)]
pub struct Setting<T> {
    /// The key.
    pub row: KeyDef,
    pub(super) read: fn(Value) -> T,
}

impl<T> Setting<T> {
    const fn new(value_type: ValueType, default: DefaultValue, read: fn(Value) -> T) -> Self {
        let row = KeyDef {
            key: "",
            value_type,
            default,
            effects: &[],
            shape: None,
            belongs_to: None,
            title: "",
            description: "",
        };
        Self { row, read }
    }

    pub(super) const fn effects(mut self, effects: &'static [Effect]) -> Self {
        self.row.effects = effects;
        self
    }
}

// What is read was checked before: where a reader below has a second choice, it is never taken.

impl Setting<bool> {
    pub(super) const fn flag(default: bool) -> Self {
        let default = DefaultValue::Boolean(default);
        Self::new(ValueType::Boolean, default, |value| value == json!(true))
    }
}

impl Setting<u64> {
    /// From `min`, which is not negative, to `max`.
    pub(super) const fn integer(min: i64, max: i64, default: i64) -> Self {
        let (holds, default) = (ValueType::Integer(min, max), DefaultValue::Integer(default));
        Self::new(holds, default, |value| value.as_u64().unwrap_or_default())
    }
}

impl Setting<f64> {
    pub(super) const fn number(min: f64, max: f64, default: i64) -> Self {
        let (holds, default) = (ValueType::Number(min, max), DefaultValue::Integer(default));
        Self::new(holds, default, |value| value.as_f64().unwrap_or_default())
    }
}

impl Setting<String> {
    pub(super) const fn text(rule: Rule, default: &'static str) -> Self {
        let (holds, default) = (ValueType::Text(rule), DefaultValue::Text(default));
        Self::new(holds, default, |value| text(value).unwrap_or_default())
    }

    /// One of several words that no type knows.
    pub(super) const fn word(words: &'static [&'static str], default: &'static str) -> Self {
        let (holds, default) = (ValueType::Choice(words), DefaultValue::Text(default));
        Self::new(holds, default, |value| text(value).unwrap_or_default())
    }
}

impl Setting<Option<String>> {
    /// A text that is empty, which reads as `None`, until it is set.
    pub(super) const fn optional(rule: Rule) -> Self {
        Self::new(ValueType::Text(rule), DefaultValue::Text(""), text)
    }
}

impl Setting<Option<SecretString>> {
    pub(super) const fn secret() -> Self {
        Self::new(ValueType::Secret, DefaultValue::Text(""), |value| {
            text(value).map(SecretString::from)
        })
    }

    /// It is sent to the host that this key names.
    pub(super) const fn belongs_to(
        mut self,
        key: &KeyDef,
        host: fn(&str) -> Option<String>,
    ) -> Self {
        let key = key.key;
        self.row.belongs_to = Some(BelongsTo { key, host });
        self
    }
}

impl Setting<Option<Duration>> {
    /// A duration; with `zero`, 0 means off or for ever and reads as `None`.
    pub(super) const fn duration(zero: bool, default: &'static str) -> Self {
        let (holds, default) = (ValueType::Duration { zero }, DefaultValue::Text(default));
        Self::new(holds, default, |value| {
            parse_duration(value.as_str()?).filter(|duration| !duration.is_zero())
        })
    }
}

impl<T: FromStr + Default + strum::VariantNames> Setting<T> {
    /// One of the words of a type; `default` is the word of the type's own default.
    pub(super) const fn choice(default: &'static str) -> Self {
        let (holds, default) = (ValueType::Choice(T::VARIANTS), DefaultValue::Text(default));
        Self::new(holds, default, |value| {
            let word = text(value).and_then(|word| word.parse().ok());
            word.unwrap_or_default()
        })
    }
}

impl<T: FromStr + Default> Setting<T> {
    /// A text under a rule that lets only `T`s pass; `default` is the text of the type's own default.
    pub(super) const fn parsed(rule: Rule, default: &'static str) -> Self {
        let (holds, default) = (ValueType::Text(rule), DefaultValue::Text(default));
        Self::new(holds, default, |value| {
            let text = text(value).and_then(|text| text.parse().ok());
            text.unwrap_or_default()
        })
    }
}

impl<T: FromStr> Setting<Vec<T>> {
    /// A list of texts under a rule that lets only `T`s pass.
    pub(super) const fn list(rule: Rule) -> Self {
        Self::new(ValueType::List(rule), DefaultValue::EmptyList, |value| {
            let texts = value.as_array().into_iter().flatten();
            let items = texts.filter_map(|item| item.as_str()?.parse().ok());
            items.collect()
        })
    }
}

impl Setting<Policy> {
    pub(super) const fn policy() -> Self {
        let holds = ValueType::Object(Secrets::None);
        let mut setting = Self::new(holds, DefaultValue::EmptyObject, |value| {
            serde_json::from_value(value).unwrap_or_default()
        });
        setting.row.shape = Some(Shape {
            schema: policy::json_schema,
            check: policy::check,
        });
        setting
    }
}

impl Setting<Value> {
    pub(super) const fn object(secrets: Secrets) -> Self {
        let default = DefaultValue::EmptyObject;
        Self::new(ValueType::Object(secrets), default, |value| value)
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}
