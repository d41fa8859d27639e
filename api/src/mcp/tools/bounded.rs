//! Bounds for what strangers wrote. A few bytes in an answer can become many in memory: `{}` is a link with four fields, and `0,` is
//! a value of 32 bytes.

use std::collections::BTreeMap;
use std::fmt::{self, Formatter};
use std::marker::PhantomData;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Longest answer that is read into values, in bytes. Plain texts and pictures may be longer.
pub(super) const LONGEST: usize = 2 * 1024 * 1024;
/// Most elements of a list, and most fields of an object.
pub(super) const MOST: usize = 5_000;

/// What is said of an answer that is too long to be read into values.
pub(super) fn too_long(tool: &str) -> String {
    format!("the answer to {tool} is longer than the {LONGEST} bytes that are read; ask for less")
}

/// A list. One that has too many elements is not read to its end.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Few<T>(pub(super) Vec<T>);

/// An object, by the names of its fields. One that has too many is not read to its end.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Named<T>(pub(super) BTreeMap<String, T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_seq(Bounded(PhantomData::<Vec<T>>))
            .map(Self)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_map(Bounded(PhantomData::<BTreeMap<String, T>>))
            .map(Self)
    }
}

struct Bounded<C>(PhantomData<C>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Bounded<Vec<T>> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MOST}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(element) = access.next_element()? {
            if all.len() >= MOST {
                return Err(A::Error::custom("there are too many elements"));
            }
            all.push(element);
        }
        Ok(all)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Bounded<BTreeMap<String, T>> {
    type Value = BTreeMap<String, T>;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "an object of at most {MOST} fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut all = BTreeMap::new();
        while let Some((name, value)) = access.next_entry()? {
            if all.len() >= MOST {
                return Err(A::Error::custom("there are too many fields"));
            }
            all.insert(name, value);
        }
        Ok(all)
    }
}
