//! The model that agents use by default: shown, chosen and tested.

use std::sync::Arc;

use http::StatusCode;
use schema::adapter::{
    Adapter, ChosenModel, KeyNeed, ModelChoice, Provider, check_model_name, parse_model_address,
};
use schema::config::{self, Config, Patch, keys};
use schema::db::Tx;
use schema::live::{ModelFault, ModelQuestion};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;
use utoipa::ToSchema;

use self::reach::Reach;
use super::auth::record;
use super::config::{Saved, Terms, Wanted, make_change, parse_document};
use crate::answer::Answer;
use crate::deps::{Dependencies, Deps};
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::{Input, Nothing};
use crate::route::{Area, Failure, Route, Tokens};

mod reach;
#[cfg(test)]
mod tests;

/// A key that goes to another server than the one it was given for.
const KEY_REQUIRED: Failure = Failure(
    422,
    "key_required",
    "the provider needs a key, and none is stored for this provider and address",
);

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("model_read", "/api/admin/agent/model", show)
.tokens(Tokens::Read)
            .title(Area::Configuration, "Get the model that agents use")
            .about(
                "The providers that the adapter lists for the version of the default image, and what the global settings \
                 choose. The key is never shown.",
            ),
        Route::post("model_save", "/api/admin/agent/model", save)
.tokens(Tokens::Admin)
            .title(Area::Configuration, "Choose the model that agents use")
            .about(
                "Writes the entry of the provider, the default model and the key into `agent` and `security`, as a save of the \
                 configuration does; entries written by hand stay. Without `key` the stored one is kept if provider and address \
                 are unchanged, else removed. An address that agents cannot reach is saved, with a warning. `if_generation` is compared with the configuration's generation.",
            )
            .guarded()
            .waits()
            .fails(&[
                KEY_REQUIRED,
                Failure(
                    422,
                    "invalid_config",
                    "`agent` or `security` has something else where the adapter writes models",
                ),
            ]),
        Route::post("model_try", "/api/admin/agent/model/try", try_model)
.tokens(Tokens::Admin)
            .title(Area::Configuration, "Test a model")
            .about(
                "Asks the provider for one token, from this service, within 15 s. Private addresses are asked; link-local ones \
                 and metadata services are not, and redirects are not followed. Without `key` the stored one is sent if provider \
                 and address are unchanged. Nothing is saved. A test that fails is part of the answer. `warnings` say why agents cannot \
                 reach the address from their containers, though this service can.",
            )
            .fails(&[KEY_REQUIRED]),
    ]
}

/// A provider that may be chosen.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ModelProvider)]
pub struct Offered {
    /// Its name.
    #[schema(example = "openai")]
    id: String,
    /// Its display name.
    #[schema(example = "OpenAI")]
    title: String,
    /// Its protocol: `openai` or `anthropic`.
    #[schema(example = "openai")]
    protocol: &'static str,
    /// Its usual address; null: it has none.
    #[schema(required = true, example = "https://api.openai.com/v1")]
    address: Option<String>,
    /// Need of a key: `required`, `optional` or `none`.
    #[schema(example = "required")]
    key: &'static str,
}

impl Offered {
    fn of(provider: &Provider) -> Self {
        Self {
            id: provider.id.clone(),
            title: provider.title.clone(),
            protocol: provider.protocol.into(),
            address: provider.address.clone(),
            key: provider.key.into(),
        }
    }
}

/// The model that agents use.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentModel)]
pub struct Shown {
    /// Providers that may be chosen.
    providers: Vec<Offered>,
    /// Agents have a model.
    configured: bool,
    /// The chosen provider; null when there is no model, or one that was written by hand.
    #[schema(required = true, example = "openai")]
    provider: Option<String>,
    /// Where it is reached.
    #[schema(required = true, example = "https://api.openai.com/v1")]
    address: Option<String>,
    /// The provider's name of the model; of one written by hand, that of its entry.
    #[schema(required = true, example = "gpt-5.4")]
    model: Option<String>,
    /// A key is stored for it.
    key_set: bool,
    /// The generation that `if_generation` of a save is compared with.
    #[schema(example = 3)]
    generation: i64,
}

/// `GET /api/admin/agent/model`: providers and choice, never a key.
///
/// # Errors
/// None of its own.
async fn show(_: Superadmin, _: Input<Nothing>, deps: Deps) -> Result<Answer<Shown>> {
    let mut connection = deps.db.read().await?;
    let (values, generation) = config::query::load(&mut connection, &deps.master_key).await?;
    let adapter = deps.adapter.current_in(&mut connection).await?;
    drop(connection);
    let config = Config::from_stored(values);
    let configured = has_model(&adapter, &config);
    let chosen = chosen(&adapter, &config);
    let providers = adapter.providers(&config.get(&keys::image::TAG));
    let shown = Shown {
        providers: providers.iter().map(Offered::of).collect(),
        configured,
        key_set: chosen.as_ref().is_some_and(|chosen| chosen.key.is_some()),
        provider: chosen.as_ref().and_then(|chosen| chosen.provider.clone()),
        address: chosen.as_ref().and_then(|chosen| chosen.address.clone()),
        model: chosen.map(|chosen| chosen.model),
        generation,
    };
    let message = if configured {
        "the model that agents use"
    } else {
        NO_MODEL
    };
    Ok(Answer::ok(message, shown))
}

/// The warning while no model is chosen.
const NO_MODEL: &str = "no model is configured: agents cannot answer";

/// Warns while agents have no model.
pub(super) fn warning(adapter: &Adapter, config: &Config) -> Option<String> {
    let missing = !has_model(adapter, config);
    missing.then(|| format!("{NO_MODEL}; choose one with `agentyard model set`"))
}

/// Returns true when agents in the default image have a model, by the global settings.
pub(crate) fn has_model(adapter: &Adapter, config: &Config) -> bool {
    adapter.has_model(&config.get(&keys::image::TAG), &config.get(&keys::AGENT))
}

fn chosen(adapter: &Adapter, config: &Config) -> Option<ChosenModel> {
    let (agent, security) = (config.get(&keys::AGENT), config.get(&keys::SECURITY));
    adapter.chosen_model(&config.get(&keys::image::TAG), &agent, &security)
}

/// The form of a choice.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct ModelForm {
    /// Name of the provider.
    #[schema(min_length = 1, example = "openai")]
    provider: String,
    /// Where it is reached; default: its usual address.
    #[schema(example = "https://api.openai.com/v1")]
    address: Option<String>,
    /// The provider's name of the model.
    #[schema(min_length = 1, example = "gpt-5.4")]
    model: String,
    /// The key; default: the stored one, if provider and address are unchanged.
    #[schema(value_type = Option<String>, format = Password)]
    key: Option<SecretString>,
    /// Report what would change, without saving; of no meaning in a test.
    #[serde(default)]
    dry_run: bool,
}

/// The adapter and the stored settings that a form is checked against.
struct Present {
    adapter: Arc<Adapter>,
    config: Config,
    reach: Reach,
}

impl Present {
    async fn read(deps: &Dependencies) -> Result<Self> {
        let mut connection = deps.db.read().await?;
        let (values, _) = config::query::load(&mut connection, &deps.master_key).await?;
        let config = Config::from_stored(values);
        Ok(Self {
            adapter: deps.adapter.current_in(&mut connection).await?,
            reach: Reach::read(&mut connection, deps, &config).await?,
            config,
        })
    }

    /// Says why agents do not reach an address.
    async fn list_warnings(&self, deps: &Dependencies, address: &Url) -> Vec<String> {
        let hosts = deps.models.locate(address).await;
        self.reach.list_warnings(address, &hosts)
    }
}

/// A form that was checked against the adapter and the stored settings.
struct Checked<'a> {
    provider: &'a Provider,
    address: Url,
    /// As it was given.
    written: String,
    model: &'a str,
    key: Option<SecretString>,
    /// The address of a stored key that does not stay.
    left_behind: Option<String>,
}

impl Checked<'_> {
    /// Says that a stored key does not stay.
    fn removed_key(&self, dry_run: bool) -> Option<String> {
        let address = self.left_behind.as_ref()?;
        let is = if dry_run { "would be" } else { "was" };
        Some(format!(
            "the stored key {is} removed: it belongs to {address}; give one for this address (`agentyard model set … --key -`)"
        ))
    }
}

impl ModelForm {
    /// Checks the form.
    ///
    /// # Errors
    /// 400 for a field that breaks its rule, 422 `key_required`.
    fn check<'a>(&'a self, adapter: &'a Adapter, config: &Config) -> Result<Checked<'a>> {
        let providers = adapter.providers(&config.get(&keys::image::TAG));
        let provider = providers.iter().find(|one| one.id == self.provider);
        let provider = provider.ok_or_else(|| {
            let ids: Vec<&str> = providers.iter().map(|one| one.id.as_str()).collect();
            let message = match &*ids {
                [] => "the adapter lists no providers; set the keys agent and security".to_owned(),
                ids => format!("provider is one of {}", ids.join(", ")),
            };
            ApiError::invalid("provider", message)
        })?;
        let given = self.address.as_deref().map(str::trim);
        let written = given.filter(|text| !text.is_empty());
        let written = written.or(provider.address.as_deref()).ok_or_else(|| {
            let message = format!("address is needed: {} has no usual one", provider.title);
            ApiError::invalid("address", message)
        })?;
        let address = parse_model_address(written)
            .map_err(|rule| ApiError::invalid("address", format!("address {rule}")))?;
        check_model_name(&self.model)
            .map_err(|rule| ApiError::invalid("model", format!("model {rule}")))?;
        let stored = chosen(adapter, config);
        let has_key = stored.as_ref().is_some_and(|one| one.key.is_some());
        let stored_address = stored.as_ref().and_then(|one| one.address.clone());
        let key = self.key(provider, &address, stored)?;
        Ok(Checked {
            left_behind: stored_address.filter(|_| has_key && key.is_none()),
            key,
            provider,
            address,
            written: written.to_owned(),
            model: &self.model,
        })
    }

    /// The key that goes with it. A stored one goes to no other server.
    fn key(
        &self,
        provider: &Provider,
        address: &Url,
        stored: Option<ChosenModel>,
    ) -> Result<Option<SecretString>> {
        const LONGEST: usize = 4096;
        if provider.key == KeyNeed::None {
            return Ok(None);
        }
        let given = self.key.as_ref().map(ExposeSecret::expose_secret);
        if let Some(key) = given.map(str::trim).filter(|key| !key.is_empty()) {
            if key.len() > LONGEST || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
                let message = "key must be at most 4096 visible ASCII characters";
                return Err(ApiError::invalid("key", message));
            }
            return Ok(Some(SecretString::from(key)));
        }
        let same = stored.filter(|stored| {
            let at = stored.address.as_deref().map(parse_model_address);
            stored.provider.as_ref() == Some(&provider.id) && at == Some(Ok(address.clone()))
        });
        match same.and_then(|stored| stored.key) {
            None if provider.key == KeyNeed::Required => {
                let message = format!(
                    "{} needs a key, and none is stored for this provider and address; give it",
                    provider.title
                );
                Err(ApiError::unprocessable("key_required", message))
            }
            key => Ok(key),
        }
    }

    /// The change of the configuration, and how the audit trail describes it.
    ///
    /// # Errors
    /// As [`Self::check`]; 422 `invalid_config` when another setting is in the way.
    pub(super) async fn resolve(
        &self,
        tx: &mut Tx,
        deps: &Dependencies,
    ) -> Result<(Patch, String)> {
        let (values, _) = config::query::load(tx, &deps.master_key).await?;
        let config = Config::from_stored(values);
        let adapter = deps.adapter.current_in(tx).await?;
        let checked = self.check(&adapter, &config)?;
        let (mut agent, mut security) = (config.get(&keys::AGENT), config.get(&keys::SECURITY));
        let choice = ModelChoice {
            provider: checked.provider,
            address: &checked.written,
            model: checked.model,
            key: checked.key.as_ref(),
        };
        let tag = config.get(&keys::image::TAG);
        let written = adapter.set_model(&tag, &mut agent, &mut security, &choice);
        written.map_err(|message| ApiError::unprocessable("invalid_config", message))?;
        let document = json!({ "agent": agent, "security": security });
        let host = host_of(&checked.address);
        let detail = format!("model of {} at {host}; ", checked.provider.id);
        Ok((parse_document(&document)?, detail))
    }
}

/// `POST /api/admin/agent/model`: the choice becomes part of `agent` and `security`.
///
/// # Errors
/// 400 for a field that breaks its rule, 412, 422 `key_required` and `invalid_config`.
async fn save(
    Superadmin(actor): Superadmin,
    input: Input<ModelForm>,
    deps: Deps,
) -> Result<Answer<Saved>> {
    let terms = Terms::plain(input.params.dry_run, input.if_generation, input.wait);
    let present = Present::read(&deps).await?;
    let checked = input.params.check(&present.adapter, &present.config)?;
    let mut warnings = present.list_warnings(&deps, &checked.address).await;
    warnings.extend(checked.removed_key(input.params.dry_run));
    let wanted = Wanted::Model(Box::new(input.params), warnings);
    make_change(&deps, &actor, &input.meta, &wanted, terms).await
}

/// Outcome of a test.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ModelTried)]
pub struct Tried {
    /// The model answered.
    ok: bool,
    /// Cause of the failure.
    #[schema(required = true)]
    reason: Option<ModelFault>,
    /// Remedy; empty when the model answered.
    #[schema(example = "check the key, and that it may use this model")]
    remedy: String,
    /// Reasons for which agents do not reach the address from their containers, a sentence each.
    #[schema(example = json!([]))]
    warnings: Vec<String>,
}

/// `POST /api/admin/agent/model/try`: whether the model answers, and else why not.
///
/// # Errors
/// 400 for a field that breaks its rule, 422 `key_required`.
async fn try_model(_: Superadmin, input: Input<ModelForm>, deps: Deps) -> Result<Answer<Tried>> {
    let present = Present::read(&deps).await?;
    let checked = input.params.check(&present.adapter, &present.config)?;
    // A key is sent to a host that the caller names.
    let host = Some(host_of(&checked.address));
    record(&deps, &input.meta, "agent", host).await?;
    let warnings = present.list_warnings(&deps, &checked.address).await;
    let question = ModelQuestion {
        protocol: checked.provider.protocol,
        model: checked.model.to_owned(),
        address: checked.address,
        key: checked.key,
    };
    let verdict = deps.models.try_model(&question).await;
    let tried = Tried {
        ok: verdict.fault.is_none(),
        reason: verdict.fault,
        remedy: verdict.remedy.to_owned(),
        warnings,
    };
    Ok(Answer::ok(verdict.message, tried).status(StatusCode::OK))
}

fn host_of(address: &Url) -> String {
    let port = address.port().map(|port| format!(":{port}"));
    let host = address.host_str().unwrap_or_default();
    format!("{}://{host}{}", address.scheme(), port.unwrap_or_default())
}
