//! Elements of BER, as far as LDAP uses them (RFC 4511 §5.1).

use super::{DEPTH, ELEMENTS, Refusal};

/// The bit of a tag that says that the content is made of elements.
const CONSTRUCTED: u8 = 0x20;

/// An element; positions count from the message's first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) tag: u8,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Reads tag and length at the begin of `bytes`; returns the tag, the bytes that both take, and the content's length.
/// `None` when bytes are missing.
pub(super) fn read_header(bytes: &[u8]) -> Result<Option<(u8, usize, u64)>, Refusal> {
    let [tag, first, rest @ ..] = bytes else {
        return Ok(None);
    };
    if tag & 0x1f == 0x1f {
        return Err(Refusal::Form);
    }
    let size = usize::from(first & 0x7f);
    match (first & 0x80 != 0, size) {
        (false, length) => Ok(Some((*tag, 2, length as u64))),
        (true, 1..=8) => Ok(rest.get(..size).map(|digits| {
            let length = digits
                .iter()
                .fold(0, |sum, digit| sum << 8 | u64::from(*digit));
            (*tag, 2 + size, length)
        })),
        (true, _) => Err(Refusal::Form),
    }
}

/// Reads the element at `position`, which may not end after `end`.
fn read_element(bytes: &[u8], position: usize, end: usize) -> Result<Element, Refusal> {
    let inside = bytes.get(position..end).ok_or(Refusal::Form)?;
    let (tag, header, length) = read_header(inside)?.ok_or(Refusal::Form)?;
    let length = usize::try_from(length).map_err(|_| Refusal::Form)?;
    let start = position + header;
    match start.checked_add(length) {
        Some(last) if last <= end => Ok(Element {
            tag,
            start,
            end: last,
        }),
        _ => Err(Refusal::Form),
    }
}

/// Checks that all elements of a message lie inside each other, and are neither too many nor too deep.
pub(super) fn check_nesting(bytes: &[u8]) -> Result<(), Refusal> {
    let mut ends = vec![bytes.len()];
    let (mut position, mut count) = (0, 0);
    while let Some(end) = ends.last().copied() {
        if position == end {
            ends.pop();
            continue;
        }
        let element = read_element(bytes, position, end)?;
        count += 1;
        if count > ELEMENTS {
            return Err(Refusal::Count);
        }
        if element.tag & CONSTRUCTED == 0 {
            position = element.end;
            continue;
        }
        if ends.len() > DEPTH {
            return Err(Refusal::Depth);
        }
        position = element.start;
        ends.push(element.end);
    }
    Ok(())
}

/// The elements inside another one, or of a whole message.
pub(super) struct Inside<'a> {
    bytes: &'a [u8],
    position: usize,
    end: usize,
}

impl<'a> Inside<'a> {
    /// The elements of `bytes`.
    pub(super) fn of_all(bytes: &'a [u8]) -> Self {
        let end = bytes.len();
        Self {
            bytes,
            position: 0,
            end,
        }
    }

    /// The elements of the content of `element`.
    pub(super) fn of_element(bytes: &'a [u8], element: Element) -> Self {
        let (position, end) = (element.start, element.end);
        Self {
            bytes,
            position,
            end,
        }
    }

    /// The next element, if it has this tag.
    pub(super) fn next_of(&mut self, tag: u8) -> Option<Element> {
        let element = self.peek().filter(|element| element.tag == tag)?;
        self.position = element.end;
        Some(element)
    }

    /// The next element, which stays.
    pub(super) fn peek(&self) -> Option<Element> {
        read_element(self.bytes, self.position, self.end).ok()
    }
}

impl Iterator for Inside<'_> {
    type Item = Element;

    fn next(&mut self) -> Option<Element> {
        let element = self.peek()?;
        self.position = element.end;
        Some(element)
    }
}
