//! Named fields of a request, whatever form they came in.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;

use bytes::Bytes;
use serde::de::{self, DeserializeOwned, DeserializeSeed, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::into_workspace::ReceivedFiles;
use super::value::{self, FieldValue};
use crate::error::{ApiError, Result};

/// Most fields of one request.
const MAX_FIELDS: usize = 1000;

/// Named fields. A field appears once; a second one of the same name is an error.
#[derive(Default)]
pub struct Fields {
    values: BTreeMap<String, FieldValue>,
    /// The one file of an upload.
    file: Option<Bytes>,
    /// The one file of an upload that was received on disk.
    spooled: Option<File>,
    /// The files for a workspace.
    received: ReceivedFiles,
    /// A text that arrived with CRLF got line feeds.
    pub(super) had_crlf: bool,
}

/// Names only: values may be secrets.
impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl Fields {
    /// Adds a text field.
    ///
    /// # Errors
    /// 400 when the text contains NUL, when the field is there already, or when there are too many.
    pub fn insert(&mut self, name: String, text: String) -> Result<()> {
        self.put(name, FieldValue::One(text))
    }

    /// Adds the file of an upload.
    ///
    /// # Errors
    /// 400 when there is one already.
    pub(super) fn insert_file(&mut self, name: &str, file: Bytes) -> Result<()> {
        if self.file.replace(file).is_some() {
            return Err(ApiError::invalid(name, format!("{name} is given twice")));
        }
        Ok(())
    }

    /// Removes the file of an upload.
    pub(super) fn take_file(&mut self) -> Option<Bytes> {
        self.file.take()
    }

    /// Sets the file of an upload that was received on disk.
    pub(super) fn set_spooled(&mut self, file: File) {
        self.spooled = Some(file);
    }

    /// Sets the files for a workspace.
    pub(super) fn set_received(&mut self, files: ReceivedFiles) {
        self.received = files;
    }

    /// Removes the files for a workspace.
    pub(super) fn take_received(&mut self) -> ReceivedFiles {
        std::mem::take(&mut self.received)
    }

    /// Removes the file of an upload that was received on disk.
    pub(super) fn take_spooled(&mut self) -> Option<File> {
        self.spooled.take()
    }

    fn put(&mut self, name: String, value: FieldValue) -> Result<()> {
        if self.values.len() >= MAX_FIELDS {
            return Err(ApiError::InvalidBody("the request has too many fields"));
        }
        if self.values.contains_key(&name) {
            let message = format!("{} is given twice", shown(&name));
            return Err(ApiError::invalid(shown(&name), message));
        }
        // No text of PostgreSQL can hold it, and no field means anything by it.
        if value.texts().iter().any(|text| text.contains('\0')) {
            let message = format!("{} must not contain NUL characters", shown(&name));
            return Err(ApiError::invalid(shown(&name), message));
        }
        self.values.insert(name, value);
        Ok(())
    }

    /// Removes a field and returns its text.
    ///
    /// # Errors
    /// 400 when the field is a list.
    pub fn take_text(&mut self, name: &str) -> Result<Option<String>> {
        match self.values.remove(name) {
            None => Ok(None),
            Some(FieldValue::One(text)) => Ok(Some(text)),
            Some(FieldValue::Many(_)) => Err(ApiError::invalid(
                name,
                format!("{name} must be one value, not a list"),
            )),
        }
    }

    /// Refuses fields other than these.
    ///
    /// # Errors
    /// 400 that names the first one.
    pub(crate) fn check_known(&self, names: &[&str]) -> Result<()> {
        let mut keys = self.values.keys();
        match keys.find(|key| !names.contains(&key.as_str())) {
            None => Ok(()),
            Some(unknown) => {
                let unknown = shown(unknown);
                let rule = format!("{unknown} is not one of {}", names.join(", "));
                Err(ApiError::invalid(unknown, rule))
            }
        }
    }

    /// Types the fields. Fields the struct does not know are ignored.
    ///
    /// # Errors
    /// 400 that names the first field that does not fit.
    pub fn parse<T: DeserializeOwned>(self) -> Result<T> {
        value::parse(self.values).map_err(|error| match error.field {
            Some(field) => {
                let field = shown(&field);
                let message = format!("{field}: {}", error.problem);
                ApiError::invalid(field, message)
            }
            None => ApiError::InvalidParameter {
                field: None,
                message: error.problem,
            },
        })
    }

    /// Reads a JSON object. Members become text: numbers, booleans, objects (and arrays that hold other than scalars) as they are
    /// written, null is as good as absent.
    ///
    /// # Errors
    /// 400 when the text is not one JSON object, nests too deeply, or repeats a member, or when the
    /// text of a member or of an element contains NUL.
    pub(crate) fn from_json(bytes: &[u8]) -> Result<Self> {
        const NOT_AN_OBJECT: ApiError = ApiError::InvalidBody("the body is not a JSON object");
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let members = Members
            .deserialize(&mut reader)
            .map_err(|_| NOT_AN_OBJECT)?;
        reader.end().map_err(|_| NOT_AN_OBJECT)?;
        let mut fields = Self::default();
        for (name, raw) in members {
            // The text that was sent may say more than the value: all digits of a number.
            let value = match serde_json::from_str::<Value>(raw.get()).map_err(|_| NOT_AN_OBJECT)? {
                Value::Null => continue,
                Value::Array(items) => list(items, raw.get()),
                Value::Object(_) | Value::Number(_) => FieldValue::One(raw.get().to_owned()),
                scalar @ (Value::Bool(_) | Value::String(_)) => FieldValue::One(text(scalar)),
            };
            fields.put(name, value)?;
        }
        Ok(fields)
    }
}

fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

fn list(items: Vec<Value>, raw: &str) -> FieldValue {
    let scalars = items
        .iter()
        .all(|item| item.is_string() || item.is_number() || item.is_boolean());
    if scalars {
        FieldValue::Many(items.into_iter().map(text).collect())
    } else {
        FieldValue::One(raw.to_owned())
    }
}

/// A field name as it may be shown: bounded, since the client chose it.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

/// Reads the members of an object in order and keeps repeated ones, which a map would hide.
struct Members;

impl<'de> DeserializeSeed<'de> for Members {
    type Value = Vec<(String, Box<RawValue>)>;

    fn deserialize<D: de::Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, Box<RawValue>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
            if members.len() > MAX_FIELDS {
                return Err(de::Error::custom("too many members"));
            }
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Sample {
        password: String,
        wait: Option<u32>,
        on: Option<bool>,
        values: Option<String>,
        names: Option<Vec<String>>,
    }

    #[test]
    fn json_members_read_like_form_fields() {
        let body = br#"{"password":"00123","wait":5,"on":true,"values":{"a":[1]},"names":["x","y"],"none":null}"#;
        let sample: Sample = Fields::from_json(body).unwrap().parse().unwrap();
        assert_eq!(
            sample,
            Sample {
                password: "00123".to_owned(),
                wait: Some(5),
                on: Some(true),
                values: Some(r#"{"a":[1]}"#.to_owned()),
                names: Some(vec!["x".to_owned(), "y".to_owned()]),
            }
        );
    }

    #[test]
    fn l64_hostile_json_is_a_bad_request() {
        let deep = [b"[".repeat(10_000), b"]".repeat(10_000)].concat();
        let deep = [b"{\"a\":".as_slice(), &deep, b"}"].concat();
        let many = (0..2000).map(|i| format!("\"k{i}\":1")).collect::<Vec<_>>();
        let many = format!("{{{}}}", many.join(","));
        let bodies: [&[u8]; 9] = [
            b"",
            b"[]",
            b"\"a\"",
            b"{",
            b"{} {}",
            b"{\"a\":\xff}",
            b"{\"a\":\"\xff\"}",
            &deep,
            many.as_bytes(),
        ];
        for body in bodies {
            let error = Fields::from_json(body).unwrap_err();
            assert_eq!(error.status(), http::StatusCode::BAD_REQUEST);
        }
    }

    #[test]
    fn a_field_given_twice_is_refused() {
        let error = Fields::from_json(br#"{"a":1,"a":2}"#).unwrap_err();
        assert!(matches!(error, ApiError::InvalidParameter { field: Some(f), .. } if f == "a"));
    }

    #[test]
    fn a_field_with_nul_is_refused_by_its_name() {
        let bodies: [&[u8]; 4] = [
            br#"{"a":"\u0000"}"#,
            br#"{"a":"x\u0000y"}"#,
            br#"{"a":["x","\u0000"]}"#,
            br#"{"b":1,"a":["x\u0000"],"c":2}"#,
        ];
        for body in bodies {
            let error = Fields::from_json(body).unwrap_err();
            let ApiError::InvalidParameter { field, message } = error else {
                panic!("{error:?}");
            };
            assert_eq!(field.as_deref(), Some("a"));
            assert_eq!(message, "a must not contain NUL characters");
        }
    }

    #[test]
    fn what_nests_deeper_holds_nul_as_json_writes_it() {
        let body = br#"{"values":{"a":"\u0000"},"names":[["\u0000"]]}"#;
        let mut fields = Fields::from_json(body).unwrap();
        for (name, text) in [
            ("values", r#"{"a":"\u0000"}"#),
            ("names", r#"[["\u0000"]]"#),
        ] {
            assert_eq!(fields.take_text(name).unwrap().as_deref(), Some(text));
        }
    }

    #[test]
    fn values_do_not_appear_in_debug_output() {
        let fields = Fields::from_json(br#"{"password":"hunter2"}"#).unwrap();
        assert_eq!(format!("{fields:?}"), r#"{"password"}"#);
    }
}
