//! Messages (RFC 4511 §4.1.1): the requests of the service and the answers of a server.

use super::Refusal;
use super::element::{Element, Inside, check_nesting};

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const ENUMERATED: u8 = 0x0a;
pub(super) const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const CONTROLS: u8 = 0xa0;
/// The name of an unsolicited notification, which Active Directory puts behind the operation instead of into it.
const MISPLACED_NAME: u8 = 0x8a;
/// Parts of a result.
const REFERRALS: u8 = 0xa3;
const CREDENTIALS: u8 = 0x87;
const NAME: u8 = 0x8a;
const VALUE: u8 = 0x8b;

const ABANDON: u8 = 0x50;
const UNBIND: u8 = 0x42;
const SEARCH: u8 = 0x63;
const ENTRY: u8 = 0x64;
const DONE: u8 = 0x65;
const REFERENCE: u8 = 0x73;
pub(super) const EXTENDED: u8 = 0x78;
const INTERMEDIATE: u8 = 0x79;

/// The control with which a server pages a list (RFC 2696).
const PAGED_RESULTS: &[u8] = b"1.2.840.113556.1.4.319";

/// Number and operation of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) id: u32,
    pub(super) operation: u8,
}

impl Head {
    /// The operation waits for an answer.
    pub(super) fn is_answered(self) -> bool {
        !matches!(self.operation, ABANDON | UNBIND)
    }

    /// `answer` may answer this request.
    pub(super) fn may_have(self, answer: u8) -> bool {
        match self.operation {
            SEARCH => matches!(answer, ENTRY | DONE | REFERENCE | INTERMEDIATE),
            // Results follow their requests: 0x60 is answered by 0x61, 0x77 by 0x78.
            other => answer == other + 1,
        }
    }

    /// More answers to the same request may follow this one.
    pub(super) fn goes_on(self) -> bool {
        matches!(self.operation, ENTRY | REFERENCE | INTERMEDIATE)
    }
}

/// Reads the head of a request that the library wrote.
pub(super) fn read_request(bytes: &[u8]) -> Result<Head, Refusal> {
    split(bytes).map(|(_, head)| head)
}

/// Checks an answer, in which texts for people that are not UTF-8 are replaced.
pub(super) fn check_answer(bytes: &mut [u8]) -> Result<Head, Refusal> {
    check_nesting(bytes)?;
    let (mut parts, head) = split(bytes)?;
    let operation = parts.next().ok_or(Refusal::Form)?;
    let mut texts = Vec::new();
    let well_formed = match head.operation {
        0x61 | DONE | 0x67 | 0x69 | 0x6b | 0x6d | 0x6f | EXTENDED => {
            is_result(bytes, operation, &mut texts)
        }
        ENTRY => is_entry(bytes, operation),
        REFERENCE => are_texts(bytes, operation),
        INTERMEDIATE => true,
        _ => false,
    };
    let behind = match parts.next() {
        Some(controls) if controls.tag == CONTROLS => are_controls(bytes, controls),
        Some(other) => other.tag == MISPLACED_NAME,
        None => true,
    };
    if !well_formed || !behind || parts.next().is_some() {
        return Err(Refusal::Form);
    }
    for text in texts {
        replace_bytes(bytes, text);
    }
    Ok(head)
}

/// The result code and the diagnostic text of a checked result.
pub(super) fn read_result(bytes: &[u8]) -> Option<(u32, String)> {
    let (mut parts, _) = split(bytes).ok()?;
    let mut result = Inside::of_element(bytes, parts.next()?);
    let code = number(bytes, result.next_of(ENUMERATED)?);
    let text = result.nth(1)?;
    let text = String::from_utf8_lossy(&bytes[text.start..text.end]);
    Some((code, text.into_owned()))
}

/// Number and operation of a message, and its elements from the operation on.
fn split(bytes: &[u8]) -> Result<(Inside<'_>, Head), Refusal> {
    let message = Inside::of_all(bytes)
        .next_of(SEQUENCE)
        .ok_or(Refusal::Form)?;
    let mut parts = Inside::of_element(bytes, message);
    let id = parts
        .next_of(INTEGER)
        .filter(is_short)
        .ok_or(Refusal::Form)?;
    let operation = parts.peek().ok_or(Refusal::Form)?.tag;
    let id = number(bytes, id);
    Ok((parts, Head { id, operation }))
}

fn is_short(element: &Element) -> bool {
    (1..=4).contains(&(element.end - element.start))
}

fn number(bytes: &[u8], element: Element) -> u32 {
    let digits = bytes[element.start..element.end].iter();
    digits.fold(0, |sum, digit| sum << 8 | u32::from(*digit))
}

fn is_text(bytes: &[u8], element: Element) -> bool {
    element.tag & 0x20 == 0 && std::str::from_utf8(&bytes[element.start..element.end]).is_ok()
}

fn are_texts(bytes: &[u8], element: Element) -> bool {
    Inside::of_element(bytes, element).all(|text| is_text(bytes, text))
}

fn is_result(bytes: &[u8], operation: Element, texts: &mut Vec<Element>) -> bool {
    let mut parts = Inside::of_element(bytes, operation);
    let code = parts.next_of(ENUMERATED).filter(is_short);
    let (matched, text) = (parts.next_of(OCTET_STRING), parts.next_of(OCTET_STRING));
    let (Some(_), Some(matched), Some(text)) = (code, matched, text) else {
        return false;
    };
    texts.extend([matched, text]);
    parts.all(|part| match part.tag {
        REFERRALS => are_texts(bytes, part),
        NAME => is_text(bytes, part),
        CREDENTIALS | VALUE => true,
        // The library looks at the number only, and takes every kind for the one it knows.
        other => ![REFERRALS, CREDENTIALS, NAME, VALUE]
            .map(|known| known & 0x1f)
            .contains(&(other & 0x1f)),
    })
}

fn is_entry(bytes: &[u8], operation: Element) -> bool {
    let mut parts = Inside::of_element(bytes, operation);
    let name = parts.next_of(OCTET_STRING);
    let named = name.is_some_and(|name| is_text(bytes, name));
    let Some(attributes) = parts.next_of(SEQUENCE).filter(|_| named) else {
        return false;
    };
    parts.next().is_none()
        && Inside::of_element(bytes, attributes).all(|attribute| {
            let mut parts = Inside::of_element(bytes, attribute);
            let name = parts.next_of(OCTET_STRING);
            let values = parts.next_of(SET);
            attribute.tag == SEQUENCE
                && name.is_some_and(|name| is_text(bytes, name))
                && values.is_some_and(|values| {
                    Inside::of_element(bytes, values).all(|value| value.tag == OCTET_STRING)
                })
        })
}

fn are_controls(bytes: &[u8], controls: Element) -> bool {
    Inside::of_element(bytes, controls).all(|control| {
        let mut parts = Inside::of_element(bytes, control);
        let Some(name) = parts.next_of(OCTET_STRING) else {
            return false;
        };
        let critical = parts.next_of(BOOLEAN);
        let value = parts.next_of(OCTET_STRING);
        let pages = &bytes[name.start..name.end] == PAGED_RESULTS;
        control.tag == SEQUENCE
            && is_text(bytes, name)
            && critical.is_none_or(|flag| flag.end == flag.start + 1)
            && parts.next().is_none()
            && (!pages || value.is_some_and(|value| is_page(&bytes[value.start..value.end])))
    })
}

/// The value of the control of pages: a size and a cookie.
fn is_page(value: &[u8]) -> bool {
    let Some(page) = Inside::of_all(value).next_of(SEQUENCE) else {
        return false;
    };
    let mut parts = Inside::of_element(value, page);
    let size = parts.next_of(INTEGER).filter(is_short);
    let cookie = parts.next_of(OCTET_STRING);
    // Nothing else may lie in it: its depth was not checked.
    size.is_some() && cookie.is_some_and(|cookie| cookie.end == page.end)
}

/// Replaces the bytes beyond ASCII of a text that is not UTF-8: servers send diagnostics in other encodings.
fn replace_bytes(bytes: &mut [u8], text: Element) {
    let text = &mut bytes[text.start..text.end];
    if std::str::from_utf8(text).is_err() {
        text.iter_mut()
            .filter(|byte| !byte.is_ascii())
            .for_each(|byte| *byte = b'?');
    }
}
