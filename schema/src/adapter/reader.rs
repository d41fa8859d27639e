//! Reading fields of a JSON object, collecting every problem instead of stopping at the first.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Problem;

/// A rule for a text: the rest of the sentence when it is broken.
pub(super) type Rule = fn(&str) -> Result<(), &'static str>;

/// The fields of one object.
pub(super) struct Fields<'a> {
    fields: &'a Map<String, Value>,
    file: &'a str,
    pointer: String,
    asked: BTreeSet<&'static str>,
}

impl<'a> Fields<'a> {
    /// The fields of `value`, or a problem when it is no object.
    pub(super) fn of(
        value: &'a Value,
        file: &'a str,
        pointer: String,
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        match value.as_object() {
            Some(fields) => Some(Self {
                fields,
                file,
                pointer,
                asked: BTreeSet::new(),
            }),
            None => {
                problems.push(Problem::new(file, &pointer, "must be an object"));
                None
            }
        }
    }

    /// The value of a field; `None` when it is absent or null.
    pub(super) fn get(&mut self, name: &'static str) -> Option<&'a Value> {
        self.asked.insert(name);
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// The place of a field.
    pub(super) fn at(&self, name: &str) -> String {
        format!("{}/{}", self.pointer, escape(name))
    }

    /// Reports a problem with a field.
    pub(super) fn problem(
        &self,
        name: &str,
        message: impl Into<String>,
        problems: &mut Vec<Problem>,
    ) {
        problems.push(Problem::new(self.file, &self.at(name), message));
    }

    /// A text that must be there.
    pub(super) fn required_text(
        &mut self,
        name: &'static str,
        rule: Rule,
        problems: &mut Vec<Problem>,
    ) -> Option<String> {
        match self.get(name) {
            None => {
                self.problem(name, "is missing", problems);
                None
            }
            Some(value) => self.text(name, value, rule, problems),
        }
    }

    /// A text that may be absent. A wrong one counts as absent, after its problem was reported.
    pub(super) fn optional_text(
        &mut self,
        name: &'static str,
        rule: Rule,
        problems: &mut Vec<Problem>,
    ) -> Option<String> {
        let value = self.get(name)?;
        self.text(name, value, rule, problems)
    }

    fn text(
        &self,
        name: &str,
        value: &Value,
        rule: Rule,
        problems: &mut Vec<Problem>,
    ) -> Option<String> {
        let checked = match value.as_str() {
            None => Err("must be a text"),
            Some(text) => rule(text).map(|()| text.to_owned()),
        };
        checked
            .map_err(|message| self.problem(name, message, problems))
            .ok()
    }

    /// A number from 0 that must be there.
    pub(super) fn required_number(
        &mut self,
        name: &'static str,
        problems: &mut Vec<Problem>,
    ) -> Option<u32> {
        match self.get(name) {
            None => {
                self.problem(name, "is missing", problems);
                None
            }
            Some(value) => {
                let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
                if number.is_none() {
                    self.problem(name, "must be a whole number from 0", problems);
                }
                number
            }
        }
    }

    /// A list of texts that may be absent.
    pub(super) fn optional_list(
        &mut self,
        name: &'static str,
        rule: Rule,
        problems: &mut Vec<Problem>,
    ) -> Option<Vec<String>> {
        let Some(items) = self.get(name)?.as_array() else {
            self.problem(name, "must be a list of texts", problems);
            return None;
        };
        let mut texts = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let place = format!("{name}/{at}");
            let checked = match item.as_str() {
                None => Err("must be a text"),
                Some(text) => rule(text).map(|()| text),
            };
            match checked {
                Ok(text) => texts.push(text.to_owned()),
                // The name is already escaped: it is one of ours.
                Err(message) => problems.push(Problem::new(
                    self.file,
                    &format!("{}/{place}", self.pointer),
                    message,
                )),
            }
        }
        Some(texts)
    }

    /// Reports every field that nobody asked for. Names that begin with `$` or `x-` are comments.
    pub(super) fn finish(self, problems: &mut Vec<Problem>) {
        for name in self.fields.keys() {
            if !self.asked.contains(name.as_str())
                && !name.starts_with('$')
                && !name.starts_with("x-")
            {
                self.problem(name, "is not a known field", problems);
            }
        }
    }
}

/// One step of a JSON pointer.
pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
