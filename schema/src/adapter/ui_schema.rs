//! The forms of one configuration version.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Problem;
use super::config_schema::ConfigSchema;
use super::model::Agent;
use super::path::SettingPath;
use super::shape::{self, Shape};

/// A UI schema: pages with sections with fields.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct UiSchema {
    /// The configuration version.
    pub config_version: u32,
    /// The pages; each key at most once.
    pub pages: Vec<Page>,
}

impl UiSchema {
    /// A page.
    pub fn page(&self, key: PageKey) -> Option<&Page> {
        self.pages.iter().find(|page| page.key == key)
    }

    /// The section of a channel.
    pub fn channel(&self, key: &str) -> Option<&Section> {
        self.page(PageKey::Channels)?
            .sections
            .iter()
            .find(|section| section.key == key)
    }
}

/// One page.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Page {
    /// Which page.
    pub key: PageKey,
    /// Its title.
    pub label: String,
    /// Its sections; each key once.
    pub sections: Vec<Section>,
}

/// The pages there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageKey {
    /// The models, which the administrator sets for everybody.
    Models,
    /// The channels, each of which a user sets up alone.
    Channels,
}

/// A group of fields; on the page of channels: a channel.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Section {
    /// Its name; on the page of channels, the channel type.
    pub key: String,
    /// Its title.
    pub label: String,
    /// Instructions for getting the values of its fields, in a few sentences.
    #[serde(default)]
    pub help: Option<String>,
    /// Its fields; each key once.
    pub fields: Vec<Field>,
}

impl Section {
    /// A field.
    pub fn field(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.key == key)
    }
}

/// One field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// Its name in the section.
    pub key: String,
    /// What people read.
    pub label: String,
    /// What it holds.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// The file it is in.
    pub storage: Storage,
    /// Where in that file, as names separated by dots.
    #[serde(with = "dotted")]
    pub path: SettingPath,
    /// Whether its value is never shown; see [`Field::is_secret`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// Whether it must be set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// The choices of a `select`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// What the agent takes when the field is not set. Shown, never written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

impl Field {
    /// Whether its value is never shown. Whatever is in the security file is secret.
    pub fn is_secret(&self) -> bool {
        self.secret || self.kind == FieldType::Password || self.storage == Storage::Security
    }
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldType {
    /// True or false.
    Boolean,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A text.
    Text,
    /// A text that is not shown.
    Password,
    /// One of the options.
    Select,
    /// A list of texts.
    StringList,
    /// Any JSON value.
    Json,
}

/// One of the agent's two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Storage {
    /// The configuration file.
    Config,
    /// The file of secrets.
    Security,
}

mod dotted {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::SettingPath;

    pub(super) fn serialize<S: Serializer>(
        path: &SettingPath,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&path.to_dotted())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<SettingPath, D::Error> {
        String::deserialize(deserializer).map(|text| SettingPath::dotted(&text))
    }
}

/// Reads a UI schema. `None` only together with problems.
pub(super) fn read(
    file: &str,
    document: &Value,
    agent: &Agent,
    config_schema: &ConfigSchema,
    problems: &mut Vec<Problem>,
) -> Option<UiSchema> {
    let schema: UiSchema = shape::read(Shape::UiSchema, file, document, problems)?;
    let mut check = Check {
        file,
        agent,
        config_schema,
        fields: Vec::new(),
        problems,
    };
    let mut pages = Vec::new();
    for (at, page) in schema.pages.iter().enumerate() {
        let pointer = format!("/pages/{at}");
        if pages.contains(&page.key) {
            check.problem(&format!("{pointer}/key"), "is declared twice");
        }
        pages.push(page.key);
        check.page(page, &pointer);
    }
    Some(schema)
}

/// What a UI schema must keep to besides its shape.
struct Check<'a> {
    file: &'a str,
    agent: &'a Agent,
    config_schema: &'a ConfigSchema,
    /// The places of the fields so far.
    fields: Vec<(Storage, SettingPath)>,
    problems: &'a mut Vec<Problem>,
}

impl Check<'_> {
    fn problem(&mut self, pointer: &str, message: impl Into<String>) {
        self.problems
            .push(Problem::new(self.file, pointer, message));
    }

    fn page(&mut self, page: &Page, pointer: &str) {
        let mut keys = BTreeSet::new();
        for (at, section) in page.sections.iter().enumerate() {
            let pointer = format!("{pointer}/sections/{at}");
            if !keys.insert(&section.key) {
                self.problem(&format!("{pointer}/key"), "is declared twice");
            }
            let is_channel = page.key == PageKey::Channels;
            if is_channel && !self.config_schema.channel_types.contains(&section.key) {
                self.problem(
                    &format!("{pointer}/key"),
                    "is not one of the channel_types of this configuration version",
                );
            }
            let mut keys = BTreeSet::new();
            for (at, field) in section.fields.iter().enumerate() {
                let pointer = format!("{pointer}/fields/{at}");
                if !keys.insert(&field.key) {
                    self.problem(&format!("{pointer}/key"), "is declared twice");
                }
                self.field(field, &pointer);
                self.check_apart_from_chat(page, section, field, &pointer);
                if is_channel {
                    self.channel_field(section, field, &pointer);
                }
            }
        }
    }

    fn field(&mut self, field: &Field, pointer: &str) {
        match (field.kind, field.options.is_empty()) {
            (FieldType::Select, true) => {
                self.problem(&format!("{pointer}/options"), "is missing");
            }
            (FieldType::Select, false) | (_, true) => {}
            (_, false) => self.problem(
                &format!("{pointer}/options"),
                "applies to the type select only",
            ),
        }
        if (field.secret || field.kind == FieldType::Password) && field.storage == Storage::Config {
            self.problem(
                &format!("{pointer}/storage"),
                "must be security: the field is secret",
            );
        }
        if let Some(default) = &field.default {
            let at = format!("{pointer}/default");
            match field.convert(default) {
                _ if field.is_secret() => self.problem(&at, "must be absent: the field is secret"),
                Err(message) => self.problem(&at, message),
                Ok(converted) if converted != *default => {
                    self.problem(&at, format!("must be written as {converted}"));
                }
                Ok(_) => {}
            }
        }
        let at = format!("{pointer}/path");
        for (storage, path, whose) in [
            (
                Storage::Config,
                Some(&self.agent.mcp_servers_path),
                "the MCP servers",
            ),
            (
                Storage::Config,
                self.agent.workspace_setting.as_ref(),
                "the workspace",
            ),
            (
                Storage::Security,
                Some(&self.agent.cookies_path),
                "the cookies",
            ),
        ] {
            if storage == field.storage
                && path.is_some_and(|path| field.path.overlaps(&SettingPath::dotted(path)))
            {
                self.problem(&at, format!("is where the service writes {whose}"));
            }
        }
        let taken = self
            .fields
            .iter()
            .any(|(storage, path)| *storage == field.storage && path.overlaps(&field.path));
        if taken {
            self.problem(&at, "overlaps with the path of another field");
        }
        self.fields.push((field.storage, field.path.clone()));
    }

    /// Fields of the channel that the chat occupies are not rendered while it is on; no other field reaches into the chat.
    fn check_apart_from_chat(
        &mut self,
        page: &Page,
        section: &Section,
        field: &Field,
        pointer: &str,
    ) {
        let Some(chat) = &self.config_schema.chat else {
            return;
        };
        if page.key == PageKey::Channels && Some(&section.key) == chat.channel.as_ref() {
            return;
        }
        let taken = match field.storage {
            Storage::Config => chat.set.keys().any(|path| path.overlaps(&field.path)),
            Storage::Security => chat.token.overlaps(&field.path),
        };
        if taken {
            let message = "is where the service writes the chat";
            self.problem(&format!("{pointer}/path"), message);
        }
    }

    /// A channel's field lies in that channel: so no section reaches into another (L43).
    fn channel_field(&mut self, section: &Section, field: &Field, pointer: &str) {
        let place = match field.storage {
            Storage::Config => &self.config_schema.channels,
            Storage::Security => &self.config_schema.security_channels,
        };
        let channel = place.channel(&section.key);
        if !field.path.is_in(&channel) || field.path == channel {
            self.problem(
                &format!("{pointer}/path"),
                format!("must be inside {}", channel.to_dotted()),
            );
        } else if field.path == channel.join("enabled") && field.kind != FieldType::Boolean {
            self.problem(&format!("{pointer}/type"), "must be boolean for enabled");
        } else if place.is_nested() && field.path == channel.join("type") {
            self.problem(
                &format!("{pointer}/path"),
                "is where the service writes the channel's type",
            );
        }
    }
}
