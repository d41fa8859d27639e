//! JSON as providers send it.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};

/// Mark that some servers write before a text (RFC 8259 §8.1 lets readers ignore it).
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads an object, with or without a byte order mark before it. The content type does not matter: many providers send one that is
/// wrong.
///
/// # Errors
/// A description of the bytes, which are no object. It contains none of them: they may be secret.
pub(super) fn read_object(bytes: &[u8]) -> Result<Map<String, Value>, &'static str> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("it is JSON, but no object"),
        Err(_) if bytes.trim_ascii().is_empty() => Err("it is empty"),
        Err(_) if bytes.trim_ascii_start().starts_with(b"<") => Err("it is a page, not JSON"),
        Err(_) => Err("it is not JSON"),
    }
}

/// An object none of whose members is there twice: readers that disagree on which counts would disagree on who signs in.
pub(super) struct Unique(pub(super) Map<String, Value>);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Unique;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Unique, A::Error> {
                let mut object = Map::new();
                while let Some((name, value)) = members.next_entry::<String, Value>()? {
                    if object.insert(name, value).is_some() {
                        return Err(A::Error::custom("a member is there twice"));
                    }
                }
                Ok(Unique(object))
            }
        }

        deserializer.deserialize_map(Members)
    }
}
