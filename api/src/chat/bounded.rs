//! Bounds of what is taken from JSON that users and agents have written, kept while it is read.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Longest text of an entry, in bytes of JSON: the text of a user, 100,000 characters of up to 6 bytes, fits.
pub(super) const TEXT: usize = 640 * 1024;
/// Longest name, path, type or sentence, in bytes of JSON.
pub(super) const NAME: usize = 6000;
/// Most attachments of a message.
pub const MOST_ATTACHMENTS: usize = 20;
/// Most tool calls, or files, of one message of an agent.
pub(super) const MOST_PARTS: usize = 50;

/// Returns the longest beginning of a text that has at most so many bytes as JSON, without its quotes.
pub(super) fn cut_json(text: &str, most: usize) -> &str {
    // Most texts are short; one byte is at most six of JSON.
    if text.len() <= most / 6 {
        return text;
    }
    let mut length = 0;
    for (at, character) in text.char_indices() {
        length += match character {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            _ => character.len_utf8(),
        };
        if length > most {
            return text.get(..at).unwrap_or_default();
        }
    }
    text
}

/// A text that is cut to `N` bytes of JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cut<const N: usize>(pub(super) String);

impl<'de, const N: usize> Deserialize<'de> for Cut<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text<const N: usize>;

        impl<const N: usize> Visitor<'_> for Text<N> {
            type Value = Cut<N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cut(cut_json(text, N).to_owned()))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

/// The first `N` elements of a list; the others are skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct First<T, const N: usize>(pub(super) Vec<T>);

impl<T, const N: usize> Default for First<T, N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for First<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<T, const N: usize>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for List<T, N> {
            type Value = First<T, N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut kept = Vec::new();
                while kept.len() < N {
                    match list.next_element()? {
                        Some(element) => kept.push(element),
                        None => return Ok(First(kept)),
                    }
                }
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(First(kept))
            }
        }

        deserializer.deserialize_seq(List(PhantomData))
    }
}

/// Reads a name; a longer one is cut.
pub(super) fn read_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Cut::<NAME>::deserialize(deserializer).map(|Cut(name)| name)
}

/// Reads a name that may be absent; a longer one is cut.
pub(super) fn read_optional_name<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let name = Option::<Cut<NAME>>::deserialize(deserializer)?;
    Ok(name.map(|Cut(name)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_its_length_as_json() {
        for text in ["a", "ä", "\n", "\u{1}", "\"", "\u{1f}\u{10ffff}x\\"] {
            let text = text.repeat(300);
            for most in 0..400 {
                let cut = cut_json(&text, most);
                let length = serde_json::to_string(cut).unwrap().len() - 2;
                assert!(length <= most && text.starts_with(cut), "{most}");
                if let Some(next) = text[cut.len()..].chars().next() {
                    let longer = serde_json::to_string(&format!("{cut}{next}")).unwrap();
                    assert!(longer.len() - 2 > most, "{most}: {cut:?}");
                }
            }
        }
    }

    #[test]
    fn list_ends_at_its_bound_whatever_follows() {
        let read = |text: &str| serde_json::from_str::<First<u8, 2>>(text).map(|list| list.0);
        assert_eq!(read("[]").unwrap(), [0; 0]);
        assert_eq!(read("[1,2]").unwrap(), [1, 2]);
        assert_eq!(read(r#"[1,2,"three",{"x":[]}]"#).unwrap(), [1, 2]);
        assert!(read("[1,2,").is_err());
    }
}
