//! The fields of channels, and what a user has set.

use schema::adapter::{Field, FieldType, Section, Storage};
use schema::agent_config::UserValues;
use schema::ids::Generation;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::forms::{Own, config_version};
use super::save::{Draft, save_channel};
use super::{READ_FAILURES, SAVE_FAILURES};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::OrdinaryUser;
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::route::{Area, Route};
use crate::routes::params::given;
use crate::wait::Noted;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("own_fields_read", "/api/agent/config-fields", read)
            .title(Area::Agent, "Get the fields of my channels")
            .about(
                "The fields of one channel, or without `section` of all allowed ones, each with \
                 its channel. Defaults are returned as `default`, never as `value`; of a secret \
                 only whether it is set.",
            )
            .fails(READ_FAILURES),
        Route::post("own_fields_save", "/api/agent/config-fields", save)
            .title(Area::Agent, "Set up one of my channels")
            .about(
                "Fields that are not named stay unchanged, and so do secrets that are empty; \
                 `null` clears a value. If any value is invalid, all problems are reported and \
                 nothing is saved. The agent restarts once, even if nothing changed, in debug \
                 mode if it was in it; what is saved for one that an administrator stopped takes effect at \
                 the next start. `if_generation` is compared with the \
                 `generation` that the GET returned.",
            )
            .waits()
            .guarded()
            .fails(SAVE_FAILURES),
    ]
}

/// What the agent gets for a field: what is stored, if the field (still) takes it.
pub(super) fn value_of(field: &Field, stored: Option<&Value>) -> Option<Value> {
    match field.kind {
        // A JSON value is stored as it is; only people give it as a text.
        FieldType::Json => stored.cloned(),
        _ => stored.and_then(|value| field.convert(value).ok()),
    }
}

/// Which fields.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Which {
    /// The channel; default: all allowed ones.
    #[schema(example = "dingtalk")]
    section: Option<String>,
    /// The configuration version whose forms are used; default: that of my agent.
    #[schema(value_type = Option<u32>, example = 3)]
    config_version: Option<String>,
}

/// A field of a form.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentField)]
pub struct FormField {
    /// Its name in requests.
    #[schema(example = "client_id")]
    key: String,
    /// Its display name.
    #[schema(example = "Client ID")]
    label: String,
    /// `boolean`, `integer`, `number`, `text`, `password`, `select`, `string_list` or `json`.
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "text")]
    kind: FieldType,
    /// The agent's file that it goes to: `config`, or `security` with its secrets.
    #[schema(value_type = String, example = "config")]
    storage: Storage,
    /// Its place in that file.
    #[schema(example = "channel_list.dingtalk.settings.client_id")]
    path: String,
    /// Its value is never returned; absent means no.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    secret: bool,
    /// It must be set; absent means no.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    required: bool,
    /// The choices of a `select`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<String>,
    /// The agent's default when nothing is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = json!(false))]
    default: Option<Value>,
}

impl FormField {
    fn of(field: &Field) -> Self {
        Self {
            key: field.key.clone(),
            label: field.label.clone(),
            kind: field.kind,
            storage: field.storage,
            path: field.path.to_dotted(),
            secret: field.is_secret(),
            required: field.required,
            options: field.options.clone(),
            default: field.default.clone(),
        }
    }
}

/// A field with what the user has set.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentFieldState)]
pub struct FieldState {
    /// The channel it belongs to: two channels may have fields of the same name.
    #[schema(example = "dingtalk")]
    section: String,
    /// The field itself.
    field: FormField,
    /// The value that is set; absent for a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = json!("dingabc123"))]
    value: Option<Value>,
    /// Whether anything is set.
    set: bool,
}

impl FieldState {
    fn all_of<'a>(
        section: &'a Section,
        values: &'a UserValues,
    ) -> impl Iterator<Item = Self> + use<'a> {
        let values = values.channels.get(&section.key);
        section.fields.iter().map(move |field| {
            let value = value_of(field, values.and_then(|values| values.get(&field.key)));
            Self {
                section: section.key.clone(),
                field: FormField::of(field),
                set: value.is_some(),
                value: value.filter(|_| !field.is_secret()),
            }
        })
    }
}

/// A channel whose fields are shown.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentSection)]
pub struct FormSection {
    /// Its name.
    #[schema(example = "dingtalk")]
    key: String,
    /// Its display name.
    #[schema(example = "DingTalk")]
    label: String,
    /// Instructions for getting the values of its fields; absent if the adapter has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

impl FormSection {
    fn of(section: &Section) -> Self {
        Self {
            key: section.key.clone(),
            label: section.label.clone(),
            help: section.help.clone(),
        }
    }
}

/// Fields with what the user has set.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentFields)]
pub struct Fields {
    /// The channels of these fields.
    sections: Vec<FormSection>,
    fields: Vec<FieldState>,
    /// The generation that `if_generation` of a save is compared with.
    generation: Generation,
}

/// `GET /api/agent/config-fields`: the fields of one channel, or of all that are allowed.
///
/// # Errors
/// 400 for a configuration version without forms, 403 and 404 for a channel that is not allowed or not there,
/// 422 when the global settings cannot be used.
async fn read(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Which>,
    deps: Deps,
) -> Result<Answer<Fields>> {
    let version = config_version(input.params.config_version.as_deref())?;
    let own = Own::read(&deps, &session.account, version).await?;
    let sections = match given(&input.params.section) {
        Some(key) => vec![own.forms.channel(key)?],
        None => own.forms.channels()?,
    };
    let of = |section| FieldState::all_of(section, &own.values);
    let fields = Fields {
        sections: sections
            .iter()
            .map(|section| FormSection::of(section))
            .collect(),
        fields: sections.into_iter().flat_map(of).collect(),
        generation: own.generation,
    };
    Ok(Answer::ok("fields of your channels", fields))
}

/// The form of `POST /api/agent/config-fields`.
#[derive(Debug, Deserialize, ToSchema)]
pub struct FieldsForm {
    /// The channel.
    #[schema(min_length = 1, example = "dingtalk")]
    section: String,
    /// Values by field: a JSON object, or its text. Fields that are not named stay unchanged, and so do secrets
    /// that are empty; `null` clears a value.
    #[schema(value_type = Object, example = json!({"enabled": true, "client_id": "dingabc123"}))]
    values: SecretString,
    /// The configuration version whose forms are used; default: that of my agent.
    #[schema(value_type = Option<u32>, example = 3)]
    config_version: Option<String>,
}

/// `POST /api/agent/config-fields`: changes what is set for one channel, and restarts the agent once, also when
/// nothing is different. What runs gets it, what is stopped stays so and has the files.
///
/// # Errors
/// 400 without a channel's name or for values that are no JSON object, 403 and 404 for a channel that is not
/// allowed or not there, 412, 422 with every problem in `problems`; what files or container fail with.
async fn save(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<FieldsForm>,
    deps: Deps,
) -> Result<Answer<Noted>> {
    let Input {
        params,
        wait,
        if_generation,
        meta,
        ..
    } = input;
    // A nameless channel is in no policy of an administrator (L43).
    if params.section.is_empty() {
        return Err(ApiError::invalid("section", "section must not be empty"));
    }
    let draft = Draft {
        channel: Some(params.section),
        config_version: config_version(params.config_version.as_deref())?,
        values: parse(&params.values)?,
    };
    save_channel(&deps, &session.account, &meta, draft, (if_generation, wait)).await
}

fn parse(values: &SecretString) -> Result<Map<String, Value>> {
    serde_json::from_str(values.expose_secret())
        .map_err(|_| ApiError::invalid("values", "values is a JSON object from field to value"))
}
