//! What `SKILL.md` says of a skill: YAML between its first line, `---`, and the next such line.
//!
//! Anybody writes these, so how deep and how many values it is, and what its aliases stand for, is bounded before and while
//! it is parsed.

use std::cell::Cell;
use std::io::{self, Read};

use serde::de::DeserializeSeed;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::adapter::depth::{directives, nests_deeper_than, scan_yaml};
use crate::adapter::strict::Strict;

/// Most bytes of it.
pub const LONGEST: usize = 64 << 10;

const LINE: &[u8] = b"---";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const MAX_DEPTH: usize = 32;
/// How much more brackets and lines may be found than values: they stand in texts, too.
const YAML_TEXTS: usize = 4;
const MAX_NODES: usize = 2000;
const MAX_DIRECTIVES: usize = 4;
/// Most bytes of what its aliases stand for, with what each value costs.
const MAX_EXPANDED: usize = 4 * LONGEST;
/// Most characters of a description.
const LONGEST_DESCRIPTION: usize = 4096;
/// Most characters of every other text.
const LONGEST_TEXT: usize = 1024;

/// What a skill says of itself. Fields that are not named here are no mistake, and are not kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = SkillFrontMatter)]
pub struct FrontMatter {
    /// What it calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is for, as the agent reads it; at most 4096 characters.
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

/// Why front matter cannot be read. Lines are those of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFrontMatter {
    /// There is no second `---` line within the bytes that are read.
    #[error("the front matter does not end with a line --- within {} KiB", LONGEST >> 10)]
    NoEnd,
    /// It is no text.
    #[error("line {line}: the front matter is not UTF-8")]
    NotUtf8 {
        /// The first line that is not.
        line: usize,
    },
    /// It could take long to parse, or become much longer than it is.
    #[error(
        "the front matter has more than {MAX_NODES} values, is nested deeper than {MAX_DEPTH} levels, or has directives or aliases for too much"
    )]
    TooMuch,
    /// It is no YAML, or uses tags or a name twice.
    #[error(
        "line {line}, column {column}: the front matter is not YAML without tags and names that occur twice"
    )]
    NotYaml {
        /// Where that was noticed.
        line: usize,
        /// Where in that line.
        column: usize,
    },
    /// It is a list or a single value.
    #[error("line 2: the front matter is not a map of names and values")]
    NotAMap,
    /// A field is not what it should be.
    #[error("line {line}: {field} {problem}")]
    Field {
        /// The field.
        field: &'static str,
        /// Where it is.
        line: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// Reads front matter from the beginning of a file, and no more than that may be.
///
/// # Errors
/// What the reader says; inside, as [`parse`].
pub fn read(file: impl Read) -> io::Result<Result<FrontMatter, InvalidFrontMatter>> {
    let mut begin = Vec::new();
    let most = BYTE_ORDER_MARK.len() + LONGEST + 4 * LINE.len();
    file.take(most as u64).read_to_end(&mut begin)?;
    Ok(parse(&begin))
}

/// The front matter at the beginning of `file`, of which [`LONGEST`] bytes and the lines around them are enough. A file
/// whose first line is not `---` has none, which says nothing.
///
/// # Errors
/// [`InvalidFrontMatter`].
pub fn parse(file: &[u8]) -> Result<FrontMatter, InvalidFrontMatter> {
    let file = file.strip_prefix(BYTE_ORDER_MARK).unwrap_or(file);
    let mut lines = file.split_inclusive(|&byte| byte == b'\n');
    let Some(first) = lines.next().filter(|line| is_line(line)) else {
        return Ok(FrontMatter::default());
    };
    let mut length = 0;
    for line in lines {
        if is_line(line) {
            let yaml = file.get(first.len()..first.len() + length);
            return parse_yaml(yaml.unwrap_or_default());
        }
        length += line.len();
        if length > LONGEST {
            break;
        }
    }
    Err(InvalidFrontMatter::NoEnd)
}

fn is_line(line: &[u8]) -> bool {
    line.trim_ascii_end() == LINE
}

fn parse_yaml(yaml: &[u8]) -> Result<FrontMatter, InvalidFrontMatter> {
    let yaml = std::str::from_utf8(yaml).map_err(|error| {
        let before = yaml.get(..error.valid_up_to()).unwrap_or_default();
        InvalidFrontMatter::NotUtf8 {
            line: 2 + before.iter().filter(|&&byte| byte == b'\n').count(),
        }
    })?;
    let extent = scan_yaml(yaml.as_bytes());
    if extent.depth > YAML_TEXTS * MAX_DEPTH
        || extent.nodes > YAML_TEXTS * MAX_NODES
        || directives(yaml.as_bytes()) > MAX_DIRECTIVES
    {
        return Err(InvalidFrontMatter::TooMuch);
    }
    let budget = Cell::new(MAX_EXPANDED);
    let document = Strict(&budget)
        .deserialize(serde_yaml::Deserializer::from_str(yaml))
        .map_err(|error| match budget.get() {
            0 => InvalidFrontMatter::TooMuch,
            _ => not_yaml(&error),
        })?;
    let mut members = match document {
        _ if nests_deeper_than(&document, MAX_DEPTH) => return Err(InvalidFrontMatter::TooMuch),
        Value::Null => return Ok(FrontMatter::default()),
        Value::Object(members) => members,
        _ => return Err(InvalidFrontMatter::NotAMap),
    };
    let mut take = |field: &str| members.remove(field).filter(|value| !value.is_null());
    let text = |field: &'static str, value: Option<Value>, longest: usize| {
        let invalid = |problem| InvalidFrontMatter::Field {
            field,
            line: line_of(yaml, field),
            problem,
        };
        match value {
            None => Ok(None),
            Some(Value::String(text)) if text.chars().count() > longest => {
                Err(invalid("is longer than it may be"))
            }
            // Texts of databases and terminals have none.
            Some(Value::String(text))
                if text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) =>
            {
                Err(invalid("has control characters"))
            }
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(invalid("is not a text; put it in quotes")),
        }
    };
    let version = match take("version") {
        Some(Value::Number(_)) => Some(Value::String(version_as_written(yaml)?)),
        other => other,
    };
    Ok(FrontMatter {
        name: text("name", take("name"), LONGEST_TEXT)?,
        description: text("description", take("description"), LONGEST_DESCRIPTION)?,
        version: text("version", version, LONGEST_TEXT)?,
        license: text("license", take("license"), LONGEST_TEXT)?,
        metadata: take("metadata"),
    })
}

/// A version that the parser took for a number: 1.10 is not 1.1.
fn version_as_written(yaml: &str) -> Result<String, InvalidFrontMatter> {
    #[derive(Deserialize)]
    struct Written {
        version: String,
    }
    let written: Written = serde_yaml::from_str(yaml).map_err(|error| not_yaml(&error))?;
    Ok(written.version)
}

fn not_yaml(error: &serde_yaml::Error) -> InvalidFrontMatter {
    let (line, column) = error
        .location()
        .map_or((1, 1), |at| (at.line(), at.column()));
    InvalidFrontMatter::NotYaml {
        line: line + 1,
        column,
    }
}

/// The line of the file in which a field begins, as it is usually written; else that of the whole.
fn line_of(yaml: &str, field: &str) -> usize {
    let begins = |line: &str| {
        let name = line.trim_start_matches(['"', '\'']);
        name.strip_prefix(field)
            .is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with(':'))
    };
    yaml.lines().position(begins).map_or(2, |at| at + 2)
}
