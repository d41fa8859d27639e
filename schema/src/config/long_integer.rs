//! Integers that JSON readers would take for floats.

use super::{Problem, ProblemCode};

/// Longest name of a member that a problem says, in characters.
const NAME: usize = 64;

/// Checks that no integer in the JSON text of a configuration loses digits.
///
/// # Errors
/// The first that would.
pub fn check_integers(json: &str) -> Result<(), Problem> {
    find_long_integer(json).map_or(Ok(()), |name| Err(long_integer("", name)))
}

/// The problem with an integer of more than 64 bits below a key, in the member of this name.
pub(super) fn long_integer(key: &str, name: &str) -> Problem {
    let name: String = name.chars().take(NAME).collect();
    let place = match (key, &*name) {
        ("", name) => format!("{name:?}"),
        (key, "") => key.to_owned(),
        (key, name) => format!("{key}: {name:?}"),
    };
    let key = if key.is_empty() { &name } else { key };
    let message = format!(
        "{place} has an integer of more than 64 bits, which would lose digits; put it in quotes"
    );
    Problem::new(key, ProblemCode::InvalidValue, message)
}

/// Finds the first integer in a JSON text that has more than 64 bits: readers keep about 16 of its digits. Returns the name of the
/// member that it is in, if there is one.
///
/// Nothing is said of a text that is not JSON.
pub(super) fn find_long_integer(json: &str) -> Option<&str> {
    let bytes = json.as_bytes();
    let (mut at, mut name, mut text) = (0, "", "");
    while let Some(byte) = bytes.get(at) {
        let end = match byte {
            b'"' => {
                let end = end_of_text(bytes, at + 1);
                text = json.get(at + 1..end).unwrap_or_default();
                end + 1
            }
            b':' => {
                name = text;
                at + 1
            }
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                let rest = bytes[at..].iter().position(|byte| !is_part(byte));
                let end = rest.map_or(bytes.len(), |length| at + length);
                if is_long(json.get(at..end).unwrap_or_default()) {
                    return Some(name);
                }
                end
            }
            _ => at + 1,
        };
        at = end;
    }
    None
}

/// Where a text ends that begins here.
fn end_of_text(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn is_long(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    digits.bytes().all(|byte| byte.is_ascii_digit())
        && number.parse::<i64>().is_err()
        && number.parse::<u64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(r#"{"a": 18446744073709551615, "b": -9223372036854775808}"#, None)]
    #[case(r#"{"a": {"b": [1, 18446744073709551616]}}"#, Some("b"))]
    #[case(r#"{"x:1": -9223372036854775809}"#, Some("x:1"))]
    #[case(
        r#"{"a": "123456789012345678901234567890", "b": 1e30, "c": 1.0}"#,
        None
    )]
    #[case(r#"{"a\"": "\\", "b": 123456789012345678901234567890}"#, Some("b"))]
    #[case(r#"[123456789012345678901234567890]"#, Some(""))]
    #[case(r#"{"a": "b"#, None)]
    #[case(r#"{"a": "\"#, None)]
    fn integers_of_more_than_64_bits_are_found(#[case] json: &str, #[case] name: Option<&str>) {
        assert_eq!(find_long_integer(json), name);
    }
}
