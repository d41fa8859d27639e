//! One page of a list of tags, bounded while it is read.

use std::borrow::Cow;
use std::fmt;

use schema::image::is_tag;
use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// What a page says.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// What is a tag; the rest can be neither pulled nor shown.
    pub(super) tags: Vec<String>,
    /// How many there were, tags or not.
    pub(super) listed: usize,
}

/// Reads a page. After `most` entries it only counts.
pub(super) fn read(body: &[u8], most: usize) -> Result<Page, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let page = Whole(most).deserialize(&mut reader)?;
    reader.end()?;
    Ok(page)
}

/// Reads the object around the list.
struct Whole(usize);

impl<'de> DeserializeSeed<'de> for Whole {
    type Value = Page;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Page, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Whole {
    type Value = Page;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with tags")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Page, A::Error> {
        let mut page = Page::default();
        while let Some(field) = fields.next_key::<Cow<'de, str>>()? {
            if field == "tags" {
                page = fields.next_value_seed(Tags(self.0))?;
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(page)
    }
}

/// Reads the list.
struct Tags(usize);

impl<'de> DeserializeSeed<'de> for Tags {
    type Value = Page;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Page, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tags {
    type Value = Page;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of tags")
    }

    /// Some registries say null for none.
    fn visit_unit<E>(self) -> Result<Page, E> {
        Ok(Page::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Page, A::Error> {
        let mut page = Page::default();
        while page.listed < self.0
            && let Some(tag) = all.next_element::<Cow<'de, str>>()?
        {
            page.listed += 1;
            if is_tag(&tag) {
                page.tags.push(tag.into_owned());
            }
        }
        while all.next_element::<IgnoredAny>()?.is_some() {
            page.listed += 1;
        }
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_kept_than_may_be() {
        let body = br#"{"x":[1],"tags":["a","b c","d","e"],"name":"n"}"#;
        let page = read(body, 4).unwrap();
        assert_eq!((page.tags.len(), page.listed), (3, 4));
        let page = read(body, 1).unwrap();
        assert_eq!((page.tags.len(), page.listed), (1, 4));
        assert!(read(br#"{"tags":[]}x"#, 1).is_err());
    }
}
