//! Sessions of this service among the cookies for an agent: with one it could act as its user.

use secrecy::{ExposeSecret, SecretString};

use crate::error::{ApiError, Result};
use crate::input::decode_segment;

/// Longest name of a cookie that a warning says, in characters.
const NAME: usize = 64;

/// Cookies without sessions of this service, and a warning for each that was dropped.
///
/// # Errors
/// 400 when nothing is left, or when cookies are written otherwise than `a=1; b=2` and one of them is a session.
pub(super) fn drop_sessions(
    cookies: SecretString,
    is_session: impl Fn(&str) -> bool,
) -> Result<(SecretString, Vec<String>)> {
    let text = cookies.expose_secret();
    let pairs = text.split(';').map(str::trim);
    let (dropped, kept): (Vec<&str>, Vec<&str>) =
        pairs.partition(|pair| holds_session(pair, &is_session));
    if dropped.is_empty() {
        return Ok((cookies, Vec::new()));
    }
    if text.trim_start().starts_with(['[', '{']) {
        let rule = "cookies holds a session of this service, which agents do not get; leave it out, or send cookies as a=1; b=2";
        return Err(ApiError::invalid("cookies", rule));
    }
    if kept.iter().all(|pair| pair.is_empty()) {
        let rule = "cookies holds nothing but a session of this service, which agents do not get; send the cookies of another web site";
        return Err(ApiError::invalid("cookies", rule));
    }
    let warnings = dropped.into_iter().map(|pair| {
        let name = pair.split_once('=').map_or("", |(name, _)| name);
        let name: String = name.chars().take(NAME).collect();
        format!(
            "the cookie {name:?} was dropped: it is a session of this service, which agents do not get"
        )
    });
    let warnings = warnings.collect();
    Ok((kept.join("; ").into(), warnings))
}

/// Returns true if a text is a session, or one is among the words in it; quoted or percent-encoded, too.
fn holds_session(text: &str, is_session: &impl Fn(&str) -> bool) -> bool {
    // All that a session has.
    if !text.contains(':') && !text.contains("%3") {
        return false;
    }
    let value = text.split_once('=').map_or(text, |(_, value)| value);
    let ends_word = |c: char| c.is_whitespace() || "=,\"'\\{}[]()<>".contains(c);
    let mut words = text.split(ends_word).chain([value.trim()]);
    words.any(|word| {
        is_session(word) || decode_segment(word).is_ok_and(|decoded| is_session(&decoded))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drop(text: &str) -> Result<(String, usize)> {
        let is_session = |text: &str| text == "ann:1:ab" || text == "ann lee:1:ab";
        let (kept, warnings) = drop_sessions(text.into(), is_session)?;
        Ok((kept.expose_secret().to_owned(), warnings.len()))
    }

    #[test]
    fn sessions_are_dropped_in_every_spelling() {
        for (text, kept, dropped) in [
            ("a=1; b=2", "a=1; b=2", 0),
            ("a=1; session=ann:1:ab; b=2", "a=1; b=2", 1),
            ("other=ann:1:ab;b=2;", "b=2; ", 1),
            ("a=\"ann:1:ab\"; b=x:1:ab", "b=x:1:ab", 1),
            ("a=ann%3A1%3aab; b=ann:1:ab; c=1", "c=1", 2),
            ("session=ann lee:1:ab; a=1", "a=1", 1),
        ] {
            assert_eq!(drop(text).unwrap(), (kept.to_owned(), dropped), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_dropped_is_refused() {
        let json = r#"[{"name": "session", "value": "ann:1:ab"}, {"name": "b"}]"#;
        for text in ["session=ann:1:ab", " session=ann:1:ab ;", json] {
            assert!(drop(text).is_err(), "{text}");
        }
    }
}
