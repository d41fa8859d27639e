//! The shapes of a package's documents: JSON Schemas in the folder `adapters/schema`.

use std::sync::LazyLock;

use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind};
use jsonschema::{JsonType, Keyword, Validator};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Problem;
use super::path::escape;
use super::rules;
use crate::config::Rule;

/// More problems of one file help nobody.
const MAX_PROBLEMS: usize = 100;

/// The formats of texts: name in the schemas, rule.
const FORMATS: &[(&str, Rule)] = &[
    ("adapter-version", rules::adapter_version),
    ("argument", rules::argument),
    ("config-version", rules::config_version),
    ("home-path", rules::home_path),
    ("line", rules::line),
    ("name", rules::setting_name),
    ("plain-path", rules::plain_path),
    ("run-as", rules::run_as),
    ("setting-path", rules::setting_path),
    ("setting-pattern", rules::setting_pattern),
    ("settings-file", rules::settings_file),
    ("url-path", rules::url_path),
    ("variable", rules::variable),
    ("version", rules::version),
    ("word", rules::word),
];

/// The keyword `whole`: JSON Schema takes 1.0 for an integer.
struct Whole;

impl<'i> Keyword<'i> for Whole {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            Ok(())
        } else {
            Err(ValidationError::custom(
                "must be written without a fraction",
            ))
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        !instance.is_f64()
    }
}

/// A kind of document.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    Index,
    ConfigSchema,
    UiSchema,
    Migration,
}

type Built = Result<Validator, String>;

static INDEX: LazyLock<Built> =
    LazyLock::new(|| build(include_str!("../../adapters/schema/index.json")));
static CONFIG_SCHEMA: LazyLock<Built> =
    LazyLock::new(|| build(include_str!("../../adapters/schema/config-schema.json")));
static UI_SCHEMA: LazyLock<Built> =
    LazyLock::new(|| build(include_str!("../../adapters/schema/ui-schema.json")));
static MIGRATION: LazyLock<Built> =
    LazyLock::new(|| build(include_str!("../../adapters/schema/migration.json")));

fn build(text: &str) -> Built {
    let schema = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut options = jsonschema::draft202012::options()
        .should_validate_formats(true)
        .with_keyword("whole", |_, _, _| Ok(Box::new(Whole)));
    for (name, rule) in FORMATS {
        options = options.with_format(*name, move |text: &str| rule(text).is_ok());
    }
    options.build(&schema).map_err(|error| error.to_string())
}

/// Reads a document of this shape. `None` only together with problems.
pub(super) fn read<T: DeserializeOwned>(
    shape: Shape,
    file: &str,
    document: &Value,
    problems: &mut Vec<Problem>,
) -> Option<T> {
    check(shape, file, document, problems)
        .then(|| typed(file, document, problems))
        .flatten()
}

/// The typed form of a checked document.
pub(super) fn typed<T: DeserializeOwned>(
    file: &str,
    document: &Value,
    problems: &mut Vec<Problem>,
) -> Option<T> {
    T::deserialize(document)
        .map_err(|error| problems.push(Problem::new(file, "", error.to_string())))
        .ok()
}

/// Reports everything about a document that its shape forbids; whether there was nothing.
pub(super) fn check(
    shape: Shape,
    file: &str,
    document: &Value,
    problems: &mut Vec<Problem>,
) -> bool {
    let validator = match shape {
        Shape::Index => &INDEX,
        Shape::ConfigSchema => &CONFIG_SCHEMA,
        Shape::UiSchema => &UI_SCHEMA,
        Shape::Migration => &MIGRATION,
    };
    let before = problems.len();
    match validator.as_ref() {
        Ok(validator) => {
            for error in validator.iter_errors(document).take(MAX_PROBLEMS) {
                report(file, &error, problems);
            }
        }
        Err(error) => problems.push(Problem::new(
            file,
            "",
            format!("cannot be checked: {error}"),
        )),
    }
    problems.len() == before
}

/// One problem, or one for each field that does not belong. Never quotes the document: it may be
/// long.
fn report(file: &str, error: &ValidationError<'_>, problems: &mut Vec<Problem>) {
    let place = error.instance_path().as_str();
    let mut add = |pointer: &str, message: String| {
        problems.push(Problem::new(file, pointer, message));
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            add(
                &format!("{place}/{}", escape(name)),
                "is missing".to_owned(),
            );
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            for name in unexpected.iter().take(MAX_PROBLEMS) {
                let pointer = format!("{place}/{}", escape(name));
                add(&pointer, "is not a known field".to_owned());
            }
        }
        ValidationErrorKind::FalseSchema => add(place, "does not apply to this op".to_owned()),
        ValidationErrorKind::PropertyNames { error } => {
            let name = error.instance().as_str().unwrap_or_default();
            add(&format!("{place}/{}", escape(name)), sentence(error));
        }
        _ => add(place, sentence(error)),
    }
}

fn sentence(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Type { kind } => match kind {
            TypeKind::Single(kind) => format!("must be of type {kind}"),
            // The other one is null, which is as good as absent.
            TypeKind::Multiple(kinds) => kinds
                .iter()
                .find(|kind| *kind != JsonType::Null)
                .map_or_else(String::new, |kind| format!("must be of type {kind}")),
        },
        ValidationErrorKind::Enum { options } => {
            let names: Vec<&str> = options
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            format!("must be one of {}", names.join(", "))
        }
        ValidationErrorKind::Constant { expected_value } => format!("must be {expected_value}"),
        ValidationErrorKind::Format { format } => FORMATS
            .iter()
            .find(|(name, _)| name == format)
            .and_then(|(_, rule)| rule(error.instance().as_str()?).err())
            .unwrap_or("is malformed")
            .to_owned(),
        ValidationErrorKind::Custom { message, .. } => message.clone(),
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::MinItems { limit: 1 }
        | ValidationErrorKind::MinLength { limit: 1 } => "must not be empty".to_owned(),
        ValidationErrorKind::MaxLength { limit } => {
            format!("must have at most {limit} characters")
        }
        ValidationErrorKind::MinItems { limit } => format!("must have at least {limit} items"),
        ValidationErrorKind::MaxItems { limit } => format!("must have at most {limit} items"),
        ValidationErrorKind::UniqueItems => "must not contain duplicates".to_owned(),
        other => format!("breaks the rule {}", other.keyword()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shapes_are_valid_schemas_and_know_every_format() {
        for built in [&INDEX, &CONFIG_SCHEMA, &UI_SCHEMA, &MIGRATION] {
            assert!(built.is_ok(), "{:?}", built.as_ref().err());
        }
    }
}
