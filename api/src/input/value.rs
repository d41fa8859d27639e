//! Turns named text values into typed structs.
//!
//! A form has text only, JSON has types; a handler must not care which one came. So both become
//! text, and the type of the struct's field decides how the text is read. Errors say which field
//! breaks which rule and never repeat the value, which may be a secret.

use std::collections::{BTreeMap, btree_map};
use std::fmt::Display;
use std::str::FromStr;

use serde::de::value::{MapAccessDeserializer, SeqDeserializer, StringDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

/// The value of one field: a text, or the elements of a JSON array.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum FieldValue {
    One(String),
    Many(Vec<String>),
}

/// Why fields do not fit the struct.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FieldError {
    /// The field to blame, when there is one.
    pub(super) field: Option<String>,
    /// What is wrong with it, to be read after its name.
    pub(super) problem: String,
}

/// Longest problem text shown to a client, in characters.
const MAX_PROBLEM: usize = 300;

impl FieldError {
    fn new(problem: impl Into<String>) -> Self {
        let mut problem: String = problem.into();
        if let Some((end, _)) = problem.char_indices().nth(MAX_PROBLEM) {
            problem.truncate(end);
        }
        Self {
            field: None,
            problem,
        }
    }
}

impl Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for FieldError {}

impl de::Error for FieldError {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        Self {
            field: Some(field.to_owned()),
            problem: "is required".to_owned(),
        }
    }

    fn invalid_type(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new(format!("must be {expected}"))
    }

    fn invalid_value(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new(format!("must be {expected}"))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("must be one of {}", expected.join(", ")))
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        Self::new("is not known")
    }
}

/// Reads a struct from named values.
pub(super) fn parse<T: DeserializeOwned>(
    values: BTreeMap<String, FieldValue>,
) -> Result<T, FieldError> {
    T::deserialize(MapAccessDeserializer::new(Members {
        rest: values.into_iter(),
        current: None,
    }))
}

/// Walks the fields and blames each for the errors its value causes.
struct Members {
    rest: btree_map::IntoIter<String, FieldValue>,
    current: Option<(String, FieldValue)>,
}

impl<'de> MapAccess<'de> for Members {
    type Error = FieldError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, FieldError> {
        self.current = self.rest.next();
        match &self.current {
            None => Ok(None),
            Some((name, _)) => seed
                .deserialize(name.as_str().into_deserializer())
                .map(Some),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, FieldError> {
        let Some((name, value)) = self.current.take() else {
            return Err(FieldError::new("has no value"));
        };
        seed.deserialize(value).map_err(|mut error| {
            error.field.get_or_insert(name);
            error
        })
    }
}

impl FieldValue {
    /// The text, or those of the list.
    pub(super) fn texts(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }

    fn text(self) -> Result<String, FieldError> {
        match self {
            Self::One(text) => Ok(text),
            Self::Many(_) => Err(FieldError::new("must be one value, not a list")),
        }
    }

    fn number<T: FromStr>(self, what: &str) -> Result<T, FieldError> {
        let number = self.text()?.parse();
        number.map_err(|_| FieldError::new(format!("must be {what}")))
    }
}

impl IntoDeserializer<'_, FieldError> for FieldValue {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $what:literal,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
            visitor.$visit(self.number($what)?)
        }
    )*};
}

impl<'de> de::Deserializer<'de> for FieldValue {
    type Error = FieldError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self {
            Self::One(text) => visitor.visit_string(text),
            Self::Many(_) => self.deserialize_seq(visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_string(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_string(self.text()?)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.text()?.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => visitor.visit_bool(true),
            "false" | "0" | "no" | "off" => visitor.visit_bool(false),
            _ => Err(FieldError::new("must be true or false")),
        }
    }

    numbers! {
        deserialize_i8 visit_i8 "a whole number",
        deserialize_i16 visit_i16 "a whole number",
        deserialize_i32 visit_i32 "a whole number",
        deserialize_i64 visit_i64 "a whole number",
        deserialize_u8 visit_u8 "a whole number that is not negative",
        deserialize_u16 visit_u16 "a whole number that is not negative",
        deserialize_u32 visit_u32 "a whole number that is not negative",
        deserialize_u64 visit_u64 "a whole number that is not negative",
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        let number: f64 = self.number("a number")?;
        if number.is_finite() {
            visitor.visit_f64(number)
        } else {
            Err(FieldError::new("must be a number"))
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        let texts = match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        };
        SeqDeserializer::new(texts.into_iter().map(Self::One)).deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        let text = StringDeserializer::<FieldError>::new(self.text()?);
        text.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct map struct identifier
        ignored_any
    }
}

#[cfg(test)]
mod tests {
    use schema::ids::UserName;
    use secrecy::{ExposeSecret, SecretString};
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "snake_case")]
    enum Colour {
        Red,
        DarkBlue,
    }

    #[derive(Debug, Deserialize)]
    struct Sample {
        username: UserName,
        password: Option<SecretString>,
        tail: Option<u32>,
        cores: Option<f64>,
        #[serde(default)]
        follow: bool,
        colour: Option<Colour>,
        #[serde(default)]
        names: Vec<String>,
    }

    fn read(pairs: &[(&str, &str)]) -> Result<Sample, FieldError> {
        parse(
            pairs
                .iter()
                .map(|(name, text)| ((*name).to_owned(), FieldValue::One((*text).to_owned())))
                .collect(),
        )
    }

    #[test]
    fn texts_become_what_the_field_is() {
        let sample = read(&[
            ("username", "alice"),
            ("password", "00123"),
            ("tail", "100"),
            ("cores", "1.5"),
            ("follow", "1"),
            ("colour", "dark_blue"),
            ("names", "x"),
            ("unknown", "ignored"),
        ])
        .unwrap();
        assert_eq!(sample.username.as_str(), "alice");
        assert_eq!(sample.password.unwrap().expose_secret(), "00123");
        assert_eq!(sample.tail, Some(100));
        assert_eq!(sample.cores, Some(1.5));
        assert!(sample.follow);
        assert_eq!(sample.colour, Some(Colour::DarkBlue));
        assert_eq!(sample.names, ["x"]);
    }

    #[test]
    fn absent_fields_are_none() {
        let sample = read(&[("username", "alice")]).unwrap();
        assert!(sample.password.is_none() && sample.tail.is_none() && !sample.follow);
    }

    #[test]
    fn errors_name_the_field_and_keep_the_value_to_themselves() {
        for (name, text) in [
            ("tail", "-1"),
            ("tail", "99999999999999999999"),
            ("tail", ""),
            ("cores", "nan"),
            ("cores", "1e999"),
            ("follow", "s3cret"),
            ("colour", "s3cret"),
            ("username", "s3cret!"),
        ] {
            let error = read(&[("username", "alice"), (name, text)])
                .map(drop)
                .unwrap_err();
            assert_eq!(error.field.as_deref(), Some(name), "{name}={text}");
            assert!(!error.problem.contains("s3cret"), "{}", error.problem);
        }
        let error = read(&[]).map(drop).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("username"));
        assert_eq!(error.problem, "is required");
    }

    #[test]
    fn a_list_does_not_fit_a_single_field() {
        let many = FieldValue::Many(vec!["a".to_owned(), "b".to_owned()]);
        let error = parse::<Sample>([("username".to_owned(), many.clone())].into()).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("username"));
        let alice = FieldValue::One("alice".to_owned());
        let sample: Sample =
            parse([("username".to_owned(), alice), ("names".to_owned(), many)].into()).unwrap();
        assert_eq!(sample.names, ["a", "b"]);
    }
}
