//! Writing YAML.
//!
//! Every text is quoted, which `serde_yaml` does only where itself would misread one: agents have
//! other readers, to some of which `no`, `1_000` or `12:30:45` are no texts (L21).

use serde_json::Value;

/// Names that are words in some YAML: true, false, null.
const WORDS: &[&str] = &["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
/// A name may be on one line with its value up to 1024 bytes.
const LONG_NAME: usize = 128;

/// Writes a document in blocks: sorted as it is, indented by two, a newline at the end.
pub(super) fn write(document: &Value) -> String {
    let mut out = String::new();
    if is_block(document) {
        block(document, 0, &mut out);
    } else {
        out.push_str(&scalar(document));
        out.push('\n');
    }
    out
}

/// A value that takes lines of its own.
fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn block(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let start = " ".repeat(indent);
                let name = name_of(name);
                if name.len() > LONG_NAME {
                    *out += &format!("{start}? {name}\n{start}:");
                } else {
                    *out += &format!("{start}{name}:");
                }
                inner(member, indent, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                *out += &format!("{}-", " ".repeat(indent));
                inner(item, indent, out);
            }
        }
        other => *out += &scalar(other),
    }
}

/// What follows a name or a dash.
fn inner(value: &Value, indent: usize, out: &mut String) {
    if is_block(value) {
        out.push('\n');
        block(value, indent + 2, out);
    } else {
        *out += &format!(" {}\n", scalar(value));
    }
}

/// A value on one line.
pub(super) fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        // Empty objects and lists too: JSON is YAML.
        other => other.to_string(),
    }
}

fn name_of(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        && !WORDS.iter().any(|word| name.eq_ignore_ascii_case(word));
    if plain { name.to_owned() } else { quoted(name) }
}

/// Single quotes say everything as it is; only what YAML does not take as it is needs others.
fn quoted(text: &str) -> String {
    let special = |c: char| {
        c.is_control()
            || matches!(
                c,
                '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
            )
    };
    if !text.contains(special) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if special(c) => out += &format!("\\u{:04X}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
