//! The shapes of a package's documents: JSON Schemas in the folder `adapters/schema`.

use std::sync::LazyLock;

use jsonschema::Validator;
use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind};
use serde_json::Value;

use super::Problem;
use super::reader::{Rule, escape};
use super::rules::{line, setting_name, setting_path, setting_pattern, word};

/// More problems of one file help nobody.
const MAX_PROBLEMS: usize = 100;

/// The formats of texts: name in the schemas, rule.
const FORMATS: &[(&str, Rule)] = &[
    ("line", line),
    ("name", setting_name),
    ("setting-path", setting_path),
    ("setting-pattern", setting_pattern),
    ("word", word),
];

/// A kind of document.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    ConfigSchema,
    UiSchema,
    Migration,
}

type Built = Result<Validator, String>;

static CONFIG_SCHEMA: LazyLock<Built> =
    LazyLock::new(|| build(include_str!("../../adapters/schema/config-schema.json")));
static UI_SCHEMA: LazyLock<Built> =
    LazyLock::new(|| build(include_str!("../../adapters/schema/ui-schema.json")));
static MIGRATION: LazyLock<Built> =
    LazyLock::new(|| build(include_str!("../../adapters/schema/migration.json")));

fn build(text: &str) -> Built {
    let schema = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut options = jsonschema::draft202012::options().should_validate_formats(true);
    for (name, rule) in FORMATS {
        options = options.with_format(*name, move |text: &str| rule(text).is_ok());
    }
    options.build(&schema).map_err(|error| error.to_string())
}

/// Reports everything about a document that its shape forbids; whether there was nothing.
pub(super) fn check(
    shape: Shape,
    file: &str,
    document: &Value,
    problems: &mut Vec<Problem>,
) -> bool {
    let validator = match shape {
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
        ValidationErrorKind::FalseSchema => add(place, "has no meaning for this op".to_owned()),
        kind => add(place, sentence(kind)),
    }
}

fn sentence(kind: &ValidationErrorKind) -> String {
    match kind {
        ValidationErrorKind::Type { kind } => match kind {
            TypeKind::Single(kind) => format!("must be of type {kind}"),
            TypeKind::Multiple(_) => "is of the wrong type".to_owned(),
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
            // A rule's message does not depend on the text, and no format takes the empty one.
            .and_then(|(_, rule)| rule("").err())
            .unwrap_or("is malformed")
            .to_owned(),
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::MinItems { limit } => format!("must have at least {limit} items"),
        ValidationErrorKind::MaxItems { limit } => format!("must have at most {limit} items"),
        ValidationErrorKind::UniqueItems => "must not name the same twice".to_owned(),
        other => format!("breaks the rule {}", other.keyword()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shapes_are_valid_schemas_and_know_every_format() {
        for built in [&CONFIG_SCHEMA, &UI_SCHEMA, &MIGRATION] {
            assert!(built.is_ok(), "{:?}", built.as_ref().err());
        }
        for (name, rule) in FORMATS {
            assert!(rule("").is_err(), "{name} has a message");
        }
    }
}
