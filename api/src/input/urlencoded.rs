//! `application/x-www-form-urlencoded`, for bodies and queries.
//!
//! Strict about UTF-8: the usual parsers replace what they can't read, so that two different
//! inputs become one name.

use std::borrow::Cow;

use percent_encoding::percent_decode;

use super::fields::Fields;
use crate::error::{ApiError, Result};

/// Reads pairs into fields; `None` when a name or value is not UTF-8.
fn decode(bytes: &[u8]) -> Option<String> {
    let spaced: Vec<u8> = bytes
        .iter()
        .map(|byte| if *byte == b'+' { b' ' } else { *byte })
        .collect();
    percent_decode(&spaced)
        .decode_utf8()
        .ok()
        .map(Cow::into_owned)
}

/// Reads a form body or query string.
///
/// # Errors
/// `not_utf8` when something is not UTF-8 after decoding; 400 for repeated or too many fields.
pub(super) fn parse(bytes: &[u8], not_utf8: fn() -> ApiError) -> Result<Fields> {
    let mut fields = Fields::default();
    for pair in bytes
        .split(|byte| *byte == b'&')
        .filter(|pair| !pair.is_empty())
    {
        let split = pair.iter().position(|byte| *byte == b'=');
        let (name, value) = match split {
            Some(at) => (pair.get(..at), pair.get(at + 1..)),
            None => (Some(pair), None),
        };
        let name = decode(name.unwrap_or_default()).ok_or_else(not_utf8)?;
        let value = decode(value.unwrap_or_default()).ok_or_else(not_utf8)?;
        fields.insert(name, value)?;
    }
    Ok(fields)
}

/// Decodes one segment of a path.
///
/// # Errors
/// 400 when it is not UTF-8.
pub(crate) fn decode_segment(segment: &str) -> Result<String> {
    percent_decode(segment.as_bytes())
        .decode_utf8()
        .map(Cow::into_owned)
        .map_err(|_| ApiError::InvalidEncoding)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<Fields> {
        parse(text, || ApiError::InvalidEncoding)
    }

    #[test]
    fn forms_are_decoded_as_browsers_encode_them() {
        let mut fields = read(b"a=1+2&b=%C3%A4%26&&c=&d&e=x=y&%66=%zz").unwrap();
        for (name, text) in [
            ("a", "1 2"),
            ("b", "ä&"),
            ("c", ""),
            ("d", ""),
            ("e", "x=y"),
            ("f", "%zz"),
        ] {
            assert_eq!(
                fields.take_text(name).unwrap().as_deref(),
                Some(text),
                "{name}"
            );
        }
    }

    #[test]
    fn l64_invalid_utf8_is_refused_not_replaced() {
        for text in [b"a=%ff".as_slice(), b"%ff=a", b"a=\xff", b"a=%ed%a0%80"] {
            assert!(matches!(read(text), Err(ApiError::InvalidEncoding)));
        }
        assert!(matches!(
            decode_segment("%c3%28"),
            Err(ApiError::InvalidEncoding)
        ));
        assert_eq!(decode_segment("a%20b").unwrap(), "a b");
    }

    #[test]
    fn a_field_given_twice_is_refused() {
        assert!(read(b"a=1&a=1").is_err());
    }
}
