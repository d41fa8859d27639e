//! Front matter of `SKILL.md`: YAML between its first line, `---`, and the next such line.
//!
//! Anybody writes these, so how deep and how many values it is, and what its aliases stand for, is bounded before and while
//! it is parsed. What has one sensible meaning is taken with a warning: front matter after a comment, quote, heading or the
//! beginning of a code block; a text with a colon and no quotes. Fields that are not used cannot fail it.

mod error;
mod fields;
mod locate;

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::adapter::depth::{directives, nests_deeper_than, scan_yaml};
use crate::adapter::strict::Strict;
pub use error::InvalidFrontMatter;
use fields::{find_control_character, is_needed, read_fields};
use locate::{Block, Located, find_wide_encoding, locate};

/// Most bytes of it.
pub const LONGEST: usize = 64 << 10;

const LINE: &[u8] = b"---";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const MAX_DEPTH: usize = 32;
/// Factor by which brackets and lines may outnumber values: they stand in texts, too.
const YAML_TEXTS: usize = 4;
const MAX_NODES: usize = 2000;
const MAX_DIRECTIVES: usize = 4;
/// Most bytes of what its aliases stand for, with what each value costs.
const MAX_EXPANDED: usize = 4 * LONGEST;
/// Most bytes that are read before it.
const MOST_BEFORE: usize = 16 << 10;
/// Most characters of a description.
const LONGEST_DESCRIPTION: usize = 4096;
/// Most characters of every other text.
const LONGEST_TEXT: usize = 1024;
const METADATA: &str = "metadata";
/// The fields that are used.
const USED: &[&str] = &[
    "name",
    "description",
    "version",
    "license",
    METADATA,
    "slug",
    "title",
    "display_name",
    "displayName",
    "summary",
];
/// Fields whose text may name a skill that has no `name`, the best first.
const TITLES: [&str; 4] = ["slug", "title", "display_name", "displayName"];

/// Fields by which a skill describes itself. Fields that are not named here are no mistake, and are not kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = SkillFrontMatter)]
pub struct FrontMatter {
    /// Name that it gives itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its purpose, as the agent reads it; at most 4096 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its version as it is written, also when that looks like a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Under which licence it may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// Anything else that its author keeps there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Value>,
}

/// Front matter as it was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// The fields.
    pub front_matter: FrontMatter,
    /// A text in place of a missing `name`: the first of `slug`, `title`, `display_name`, `displayName`.
    pub title: Option<String>,
    /// Fields that were read otherwise than they are written, or are missing; a clause each, for people.
    pub warnings: Vec<String>,
}

/// Reads front matter from the beginning of a file, and no more than that may be.
///
/// # Errors
/// An error of the reader; inside, as [`parse`].
pub fn read(file: impl Read) -> io::Result<Result<Reading, InvalidFrontMatter>> {
    let mut begin = Vec::new();
    let most = BYTE_ORDER_MARK.len() + MOST_BEFORE + LONGEST + 4 * LINE.len();
    file.take(most as u64).read_to_end(&mut begin)?;
    Ok(parse(&begin))
}

/// The front matter at the beginning of `file`, of which [`LONGEST`] bytes and the lines around them are enough. A file
/// without any has a warning.
///
/// # Errors
/// [`InvalidFrontMatter`].
pub fn parse(file: &[u8]) -> Result<Reading, InvalidFrontMatter> {
    if let Some(encoding) = find_wide_encoding(file) {
        return Err(InvalidFrontMatter::WideEncoding(encoding));
    }
    let file = with_line_feeds(file);
    let mut reading = match locate(&file, LONGEST) {
        Located::Unended => return Err(InvalidFrontMatter::NoEnd),
        Located::Missing => Reading::default(),
        Located::Block(block) => read_block(&block)?,
    };
    let fields = &mut reading.front_matter;
    if *fields == FrontMatter::default() && reading.title.is_none() {
        reading.warnings.push(
            "it has no front matter (name and description between two lines ---, the first of them in line 1); \
             agents may not know when to use the skill"
                .to_owned(),
        );
    } else if fields.description.is_none() {
        reading.warnings.push(
            "its front matter has no description; agents may not know when to use the skill"
                .to_owned(),
        );
    }
    Ok(reading)
}

/// Lines of old Macs end with CR alone.
fn with_line_feeds(file: &[u8]) -> Cow<'_, [u8]> {
    match !file.contains(&b'\n') && file.contains(&b'\r') {
        true => file
            .iter()
            .map(|&byte| if byte == b'\r' { b'\n' } else { byte })
            .collect(),
        false => file.into(),
    }
}

fn is_line(line: &[u8]) -> bool {
    line.trim_ascii_end() == LINE
}

fn read_block(block: &Block<'_>) -> Result<Reading, InvalidFrontMatter> {
    let Block { yaml, line, after } = *block;
    let yaml = std::str::from_utf8(yaml).map_err(|error| {
        let before = yaml.get(..error.valid_up_to()).unwrap_or_default();
        InvalidFrontMatter::NotUtf8 {
            line: line + before.iter().filter(|&&byte| byte == b'\n').count(),
        }
    })?;
    let mut warnings = Vec::new();
    if let Some(after) = after {
        warnings.push(format!(
            "the front matter begins in line {line}, after {after}; agents look for it in line 1: move it to the top"
        ));
    }
    let extent = scan_yaml(yaml.as_bytes());
    if extent.depth > YAML_TEXTS * MAX_DEPTH
        || extent.nodes > YAML_TEXTS * MAX_NODES
        || directives(yaml.as_bytes()) > MAX_DIRECTIVES
    {
        return Err(InvalidFrontMatter::TooMuch);
    }
    let whole = match find_control_character(yaml, line) {
        Some(error) => Err(error),
        None => parse_document(yaml, line),
    };
    let mut members = match whole {
        Ok(Value::Null) => Map::new(),
        // A text with a colon, below its name.
        Ok(Value::Object(members)) if has_map_for_text(&members) => {
            let (members, fields) = read_fields(yaml, line)?;
            warnings.extend(fields);
            members
        }
        Ok(Value::Object(mut members)) => {
            for (name, value) in &mut members {
                if matches!(value, Value::Number(_) | Value::Bool(_))
                    && USED.iter().any(|used| used.eq_ignore_ascii_case(name))
                    && let Some(text) = read_scalar(yaml, name)
                {
                    *value = Value::String(text);
                }
            }
            members
        }
        Ok(_) => return Err(InvalidFrontMatter::NotAMap { line }),
        Err(InvalidFrontMatter::TooMuch) => return Err(InvalidFrontMatter::TooMuch),
        Err(whole) => {
            let (members, fields) = read_fields(yaml, line)?;
            match fields.is_empty() {
                true => warnings.push(format!(
                    "{}; that is in a field that is not used here, but agents may not read the others, either",
                    whole
                )),
                false => warnings.extend(fields),
            }
            members
        }
    };
    take_fields(&mut members, yaml, line, warnings)
}

fn has_map_for_text(members: &Map<String, Value>) -> bool {
    let mut members = members.iter();
    members.any(|(name, value)| value.is_object() && is_needed(name))
}

fn take_fields(
    members: &mut Map<String, Value>,
    yaml: &str,
    first: usize,
    mut warnings: Vec<String>,
) -> Result<Reading, InvalidFrontMatter> {
    let mut take = |field: &'static str, longest: usize, needed: bool| {
        let line = line_of(yaml, first, field);
        let problem = match remove_field(members, field, line, &mut warnings) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => {
                let length = text.chars().count();
                // Texts of databases and terminals have none.
                let control = |c: &char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
                match text.chars().find(control) {
                    None if length <= longest => return Ok(Some(text)),
                    None => {
                        format!("has {length} characters; at most {longest} may be: shorten it")
                    }
                    Some(found) => format!(
                        "has the control character U+{:04X}; remove it",
                        u32::from(found)
                    ),
                }
            }
            Some(Value::Array(_)) => "is a list, not a text; put it in quotes".to_owned(),
            Some(_) => "is a map, not a text; put it in quotes".to_owned(),
        };
        match needed {
            true => Err(InvalidFrontMatter::Field {
                field,
                line,
                problem,
            }),
            false => {
                warnings.push(format!("line {line}: {field} was left out: it {problem}"));
                Ok(None)
            }
        }
    };
    let name = take("name", LONGEST_TEXT, true)?;
    let description = take("description", LONGEST_DESCRIPTION, true)?;
    let version = take("version", LONGEST_TEXT, false)?;
    let license = take("license", LONGEST_TEXT, false)?;
    let mut title = None;
    let mut summary = None;
    if name.is_none() {
        for field in TITLES {
            title = match title {
                None => take(field, LONGEST_TEXT, false)?,
                found => found,
            };
        }
    }
    if description.is_none() {
        summary = take("summary", LONGEST_DESCRIPTION, false)?;
    }
    if summary.is_some() {
        warnings.push(
            "its front matter has no description; summary was taken in its place: call it description"
                .to_owned(),
        );
    }
    let line = line_of(yaml, first, METADATA);
    let metadata = remove_field(members, METADATA, line, &mut warnings);
    Ok(Reading {
        front_matter: FrontMatter {
            name,
            description: description.or(summary),
            version,
            license,
            metadata: metadata.filter(|value| !value.is_null()),
        },
        title,
        warnings,
    })
}

/// Takes a field out, also one in other letter case, with a warning.
fn remove_field(
    members: &mut Map<String, Value>,
    field: &str,
    line: usize,
    warnings: &mut Vec<String>,
) -> Option<Value> {
    members.remove(field).or_else(|| {
        let mut names = members.keys();
        let name = names.find(|name| name.eq_ignore_ascii_case(field))?.clone();
        warnings.push(format!(
            "line {line}: {name} was taken for {field}; agents may not find it: write {field}"
        ));
        members.remove(&name)
    })
}

/// Parses YAML whose first line is `first` in the file.
fn parse_document(yaml: &str, first: usize) -> Result<Value, InvalidFrontMatter> {
    let budget = Cell::new(MAX_EXPANDED);
    let document = Strict(&budget)
        .deserialize(serde_yaml::Deserializer::from_str(yaml))
        .map_err(|error| match budget.get() {
            0 => InvalidFrontMatter::TooMuch,
            _ => not_yaml(&error, first),
        })?;
    match nests_deeper_than(&document, MAX_DEPTH) {
        true => Err(InvalidFrontMatter::TooMuch),
        false => Ok(document),
    }
}

/// A text that the parser took for a number or a constant, as it is written: 1.10 is not 1.1.
fn read_scalar(yaml: &str, name: &str) -> Option<String> {
    serde_yaml::Deserializer::from_str(yaml)
        .deserialize_map(Scalar(name))
        .ok()
        .flatten()
}

/// Reads one field of a map as a text.
struct Scalar<'a>(&'a str);

impl<'de> Visitor<'de> for Scalar<'_> {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of names and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(name) = members.next_key::<String>()? {
            match name == self.0 {
                true => found = Some(members.next_value()?),
                false => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }
}

fn not_yaml(error: &serde_yaml::Error, first: usize) -> InvalidFrontMatter {
    let (line, column) = error
        .location()
        .map_or((1, 1), |at| (at.line(), at.column()));
    InvalidFrontMatter::NotYaml {
        line: line + first - 1,
        column,
    }
}

/// The line of the file in which a field begins, as it is usually written; else that of the whole.
fn line_of(yaml: &str, first: usize, field: &str) -> usize {
    let begins = |line: &str| {
        let name = line.trim_start_matches(['"', '\'']);
        let (begin, rest) = name.split_at_checked(field.len()).unwrap_or_default();
        begin.eq_ignore_ascii_case(field)
            && rest.trim_start_matches(['"', '\'', ' ']).starts_with(':')
    };
    yaml.lines().position(begins).map_or(first, |at| at + first)
}
