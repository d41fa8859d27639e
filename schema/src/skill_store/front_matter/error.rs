//! Reasons for refusing front matter, and the remedies.

use super::{LONGEST, MAX_DEPTH, MAX_NODES};

/// Reason for refusing front matter. Lines are those of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFrontMatter {
    /// The file is in an encoding of 16 or 32 bits.
    #[error(
        "the file is {0}, not UTF-8; save it as UTF-8 (Notepad: Save as, Encoding UTF-8; \
         PowerShell: Set-Content -Encoding utf8; elsewhere: iconv -f {0} -t UTF-8)"
    )]
    WideEncoding(&'static str),
    /// There is no second `---` line within the bytes that are read.
    #[error(
        "the front matter does not end with a line --- within {} KiB; add a line --- after its last field",
        LONGEST >> 10
    )]
    NoEnd,
    /// It is no text.
    #[error("line {line}: the front matter is not UTF-8; save the file as UTF-8")]
    NotUtf8 {
        /// The first line that is not.
        line: usize,
    },
    /// It could take long to parse, or become much longer than it is.
    #[error(
        "the front matter has more than {MAX_NODES} values, is nested deeper than {MAX_DEPTH} levels, or has directives or aliases for too much; keep only what agents need there"
    )]
    TooMuch,
    /// It is no YAML, or uses tags.
    #[error(
        "line {line}, column {column}: the front matter is not YAML without tags and names that occur twice; write it as `name: value`, and put a text with special characters in quotes"
    )]
    NotYaml {
        /// Where that was noticed.
        line: usize,
        /// Where in that line.
        column: usize,
    },
    /// A line is no part of any field.
    #[error(
        "line {line}: this is no field (`name: value`) of the front matter, which goes on to the --- in line {last}; end it with a line --- after its last field, or indent the line if it belongs to one"
    )]
    NotAField {
        /// The line.
        line: usize,
        /// The line that ends the front matter.
        last: usize,
    },
    /// A used field occurs twice.
    #[error("line {}: {field} is there already in line {}; keep one of them", lines.1, lines.0)]
    Twice {
        /// The field.
        field: &'static str,
        /// Where it is.
        lines: (usize, usize),
    },
    /// A character that no text has.
    #[error("line {line}, column {column}: U+{code:04X} is a control character; remove it")]
    ControlCharacter {
        /// Where it is.
        line: usize,
        /// Where in that line, in characters.
        column: usize,
        /// Its number.
        code: u32,
    },
    /// It is a list or a single value.
    #[error(
        "line {line}: the front matter is not a map of names and values; write it as `name: value`"
    )]
    NotAMap {
        /// Its first line.
        line: usize,
    },
    /// A field is not what it should be.
    #[error("line {line}: {field} {problem}")]
    Field {
        /// The field.
        field: &'static str,
        /// Where it is.
        line: usize,
        /// The problem, and the remedy.
        problem: String,
    },
}
