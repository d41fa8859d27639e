//! Front matter field by field, for files that are not YAML as a whole.
//!
//! Only the fields that are used are parsed: what another field holds cannot fail the package.

use serde_json::{Map, Value};

use super::{InvalidFrontMatter, METADATA, USED, parse_document, read_scalar};

/// The lines of one field.
struct Field<'a> {
    name: &'a str,
    /// The line of the file in which it begins.
    line: usize,
    /// Where its lines begin in the whole.
    begin: usize,
    source: &'a str,
    /// Brackets that are open at its end.
    open: isize,
}

/// Fields that were read, and a warning for each that had to be read otherwise than YAML has it.
pub(super) type Fields = (Map<String, Value>, Vec<String>);

/// Reads the used fields of `yaml`, whose first line is `first` in the file.
///
/// # Errors
/// A line belongs to no field, a used field occurs twice, has a control character, or has no sensible meaning.
pub(super) fn read_fields(yaml: &str, first: usize) -> Result<Fields, InvalidFrontMatter> {
    let fields = split_fields(yaml, first)?;
    let mut members = Map::new();
    let mut warnings = Vec::new();
    for name in USED {
        let found = fields.iter();
        let found = found.filter(|field| field.name.eq_ignore_ascii_case(name));
        let mut found: Vec<&Field<'_>> = found.collect();
        if found.iter().any(|field| field.name == *name) {
            found.retain(|field| field.name == *name);
        }
        let read = match found.as_slice() {
            [] => continue,
            [field] => read_field(field, &mut warnings).map(|value| (field.name, value)),
            [one, other, ..] => Err(InvalidFrontMatter::Twice {
                field: name,
                lines: (one.line, other.line),
            }),
        };
        match read {
            Ok((name, value)) => {
                members.insert(name.to_owned(), value);
            }
            Err(error) if is_needed(name) || error == InvalidFrontMatter::TooMuch => {
                return Err(error);
            }
            Err(error) => warnings.push(format!("{name} was left out: {error}")),
        }
    }
    Ok((members, warnings))
}

pub(super) fn is_needed(name: &str) -> bool {
    ["name", "description"]
        .iter()
        .any(|needed| needed.eq_ignore_ascii_case(name))
}

fn read_field(field: &Field<'_>, warnings: &mut Vec<String>) -> Result<Value, InvalidFrontMatter> {
    if let Some(error) = find_control_character(field.source, field.line) {
        return Err(error);
    }
    let error = match parse_document(field.source, field.line) {
        Ok(Value::Object(document)) => {
            let value = document.into_iter().next().map(|(_, value)| value);
            return Ok(match value.unwrap_or_default() {
                value @ (Value::Number(_) | Value::Bool(_)) => {
                    read_scalar(field.source, field.name).map_or(value, Value::String)
                }
                // A colon in the lines below the name.
                value @ Value::Object(_) if is_needed(field.name) && begins_below(field) => {
                    take_rest(field, warnings).unwrap_or(value)
                }
                value => value,
            });
        }
        Ok(_) => InvalidFrontMatter::NotAMap { line: field.line },
        Err(error) => error,
    };
    if field.name.eq_ignore_ascii_case(METADATA) || error == InvalidFrontMatter::TooMuch {
        return Err(error);
    }
    take_rest(field, warnings).ok_or(error)
}

fn begins_below(field: &Field<'_>) -> bool {
    let first = field.source.lines().next().unwrap_or_default();
    first.trim_end().ends_with(':')
}

/// Takes the rest of a field as its text, with a warning.
fn take_rest(field: &Field<'_>, warnings: &mut Vec<String>) -> Option<Value> {
    let text = rest_of_line(field)?;
    warnings.push(describe_rest(field, &text));
    Some(Value::String(text))
}

/// The first character that may not be in a text file, and its place. Line and column count from 1, columns in characters.
pub(super) fn find_control_character(text: &str, first: usize) -> Option<InvalidFrontMatter> {
    let (mut line, mut column) = (first, 0);
    for character in text.chars() {
        column += 1;
        match character {
            '\n' => (line, column) = (line + 1, 0),
            '\r' | '\t' | '\u{85}' => {}
            found if found.is_control() || matches!(found, '\u{fffe}' | '\u{ffff}') => {
                return Some(InvalidFrontMatter::ControlCharacter {
                    line,
                    column,
                    code: u32::from(found),
                });
            }
            _ => {}
        }
    }
    None
}

fn split_fields(yaml: &str, first: usize) -> Result<Vec<Field<'_>>, InvalidFrontMatter> {
    let mut fields: Vec<Field<'_>> = Vec::new();
    let mut begin = 0;
    let last = first + yaml.lines().count();
    for (line, text) in yaml.split_inclusive('\n').enumerate() {
        let end = begin + text.len();
        let trimmed = text.trim_end();
        let depth = count_brackets(trimmed);
        let within = fields.last_mut();
        let continues = match trimmed.chars().next() {
            None | Some('#') => true,
            Some(' ' | '\t') => within.is_some(),
            Some('-' | '[' | ']' | '{' | '}' | ',') => {
                within.as_ref().is_some_and(|field| !is_needed(field.name))
            }
            Some('"' | '\'') => within.as_ref().is_some_and(|field| field.open > 0),
            Some(_) => false,
        };
        if continues {
            if let Some(field) = within {
                field.source = yaml.get(field.begin..end).unwrap_or_default();
                field.open += depth;
            }
        } else {
            let name = field_name(trimmed).ok_or(InvalidFrontMatter::NotAField {
                line: first + line,
                last,
            })?;
            fields.push(Field {
                name,
                line: first + line,
                begin,
                source: yaml.get(begin..end).unwrap_or_default(),
                open: depth,
            });
        }
        begin = end;
    }
    Ok(fields)
}

fn count_brackets(text: &str) -> isize {
    text.bytes().fold(0, |open, byte| match byte {
        b'[' | b'{' => open + 1,
        b']' | b'}' => open - 1,
        _ => open,
    })
}

/// The name of the field that a line begins, as it is usually written.
fn field_name(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once(':')?;
    let name = name.trim_end();
    let quote = |mark| name.strip_prefix(mark)?.strip_suffix(mark);
    let name = quote('"').or_else(|| quote('\'')).unwrap_or(name);
    let usual = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ' | '/');
    let begins = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let ends = rest.is_empty() || rest.starts_with([' ', '\t']);
    (begins && ends && name.len() <= 64 && name.chars().all(usual)).then_some(name)
}

/// The text after `name:`, with the indented lines below it; it may begin in these. `None` where YAML means something else
/// by it, such as a tag or a quote that does not end.
fn rest_of_line(field: &Field<'_>) -> Option<String> {
    let (_, rest) = field.source.split_once(':')?;
    let (first, below) = rest.split_once('\n').unwrap_or((rest, ""));
    let first = first.trim();
    let first = match first.strip_prefix(['|', '>']) {
        // Text beside the mark of a block of text.
        Some(text) => text.trim_start_matches(['-', '+']).trim_start(),
        None => first,
    };
    let below = below.lines().filter(|line| line.starts_with([' ', '\t']));
    let lines = std::iter::once(first).chain(below.map(str::trim));
    let mut lines = lines.filter(|line| !line.is_empty());
    let first = lines.next()?;
    let begin = first.chars().next()?;
    let again = |mark: char| first.chars().skip(1).any(|c| c == mark);
    let is_text = match begin {
        '!' => false,
        '&' => first.starts_with("& "),
        '"' | '\'' | '*' => again(begin),
        '[' => again(']'),
        '{' => again('}'),
        _ => true,
    };
    if !is_text {
        return None;
    }
    let unquoted = |mark| first.strip_prefix(mark)?.strip_suffix(mark);
    let first = unquoted('"').or_else(|| unquoted('\'')).unwrap_or(first);
    let mut text = first.to_owned();
    for line in lines {
        text.push(' ');
        text.push_str(line);
    }
    Some(text)
}

fn describe_rest(field: &Field<'_>, text: &str) -> String {
    let Field { name, line, .. } = field;
    if field.source.contains("\n\t") {
        return format!(
            "line {line}: {name} has lines that begin with a tab, which YAML does not allow; they were taken as its text: begin them with spaces"
        );
    }
    let reason = match text.contains(": ") || text.ends_with(':') {
        true => "has a colon that YAML takes for another field",
        false => "has characters that mean something else in YAML",
    };
    format!("line {line}: {name} {reason}; the rest was taken as its text: put it in quotes")
}
