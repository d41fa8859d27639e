//! Front matter that does not begin in the first line, and files that are not UTF-8.

use super::{BYTE_ORDER_MARK, is_line};

/// Most lines before front matter that does not begin in the first line.
const MOST_BEFORE: usize = 64;

/// The lines of front matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block<'a> {
    pub(super) yaml: &'a [u8],
    /// The line of the file in which it begins, from 1.
    pub(super) line: usize,
    /// The last thing before it.
    pub(super) after: Option<&'static str>,
}

/// Result of the search for front matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Located<'a> {
    Block(Block<'a>),
    /// It begins, and does not end within `most` bytes.
    Unended,
    Missing,
}

/// The name of the encoding of a file that is not written in bytes.
pub(super) fn find_wide_encoding(file: &[u8]) -> Option<&'static str> {
    match file {
        [0xff, 0xfe, 0, 0, ..] => Some("UTF-32LE"),
        [0, 0, 0xfe, 0xff, ..] => Some("UTF-32BE"),
        [0xff, 0xfe, ..] => Some("UTF-16LE"),
        [0xfe, 0xff, ..] => Some("UTF-16BE"),
        [first, 0, second, 0, ..] if *first != 0 && *second != 0 => Some("UTF-16LE"),
        [0, first, 0, second, ..] if *first != 0 && *second != 0 => Some("UTF-16BE"),
        _ => None,
    }
}

/// Finds front matter of at most `most` bytes. In the first line `---` begins it, whatever follows. Further down it needs a
/// line that names a field, so that a rule between paragraphs is not taken for it.
pub(super) fn locate(file: &[u8], most: usize) -> Located<'_> {
    let file = file.strip_prefix(BYTE_ORDER_MARK).unwrap_or(file);
    let mut rest = file;
    let mut after = None;
    let mut in_comment = false;
    for line in 1..=MOST_BEFORE {
        let (text, next) = split_line(rest);
        if text.is_empty() {
            break;
        }
        rest = next;
        let trimmed = text.trim_ascii();
        if in_comment {
            in_comment = !contains(trimmed, b"-->");
        } else if is_line(text) {
            let block = find_end(rest, most, is_line);
            return match (block, after) {
                (None, None) => Located::Unended,
                (Some(yaml), _) if after.is_none() || names_field(yaml) => Located::Block(Block {
                    yaml,
                    line: line + 1,
                    after,
                }),
                _ => Located::Missing,
            };
        } else if trimmed.starts_with(b"```") || trimmed.starts_with(b"~~~") {
            // Below other text it is more likely an example.
            if matches!(after, Some("a heading" | "other text")) {
                break;
            }
            after = Some("the beginning of a code block");
            let (first, _) = split_line(rest);
            if is_line(first) {
                continue;
            }
            let fence = trimmed.get(..3).unwrap_or_default();
            let block = find_end(rest, most, |line| line.trim_ascii().starts_with(fence));
            return match block.filter(|yaml| names_field(yaml)) {
                Some(yaml) => Located::Block(Block {
                    yaml,
                    line: line + 1,
                    after,
                }),
                None => Located::Missing,
            };
        } else if let Some(comment) = trimmed.strip_prefix(b"<!--") {
            in_comment = !contains(comment, b"-->");
            after = Some("a comment");
        } else {
            after = match trimmed.first() {
                None => after.or(Some("an empty line")),
                Some(b'>') => Some("a quote"),
                Some(b'#') => Some("a heading"),
                Some(_) => Some("other text"),
            };
        }
    }
    Located::Missing
}

/// The bytes before the first line that `ends`, unless they are more than `most`.
fn find_end(text: &[u8], most: usize, ends: impl Fn(&[u8]) -> bool) -> Option<&[u8]> {
    let mut length = 0;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        if ends(line) {
            return text.get(..length);
        }
        length += line.len();
        if length > most {
            return None;
        }
    }
    None
}

fn names_field(yaml: &[u8]) -> bool {
    let begins = |line: &[u8], field: &[u8]| {
        let begin = line.get(..field.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(field))
    };
    yaml.split(|&byte| byte == b'\n')
        .any(|line| begins(line, b"name:") || begins(line, b"description:"))
}

fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|&byte| byte == b'\n');
    text.split_at(end.map_or(text.len(), |end| end + 1))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
