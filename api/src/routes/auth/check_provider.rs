//! Trying settings of an identity provider before they are saved.

use schema::config::Config;
use schema::config::keys::oidc;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::check::{record, summary, with_stored};
use super::whitelist;
use crate::answer::Answer;
use crate::deps::{Dependencies, Deps};
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::{Input, Meta};
use crate::ports::CheckStep;
use crate::route::{Area, Failure, Route, Tokens};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("auth_test_oidc", "/api/admin/auth/test-oidc", test)
.tokens(Tokens::Admin)
            .title(Area::Authentication, "Test identity provider settings")
            .about(
                "Asks the provider for its description and keys, whether it takes the redirect URL, and whether it knows the \
                 client, with the settings that are sent; what is not sent, or is masked, is as it is stored. Nothing is \
                 saved. A step that fails is part of the answer. Works in every mode.",
            )
            .fails(&[Failure(
                422,
                "invalid_config",
                "a setting breaks its rule, or `provider_url`, `client_id` or `redirect_url` is missing",
            )]),
    ]
}

/// The keys of `oidc` that the provider knows of, without their prefix.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ProviderSettingsForm)]
pub struct Form {
    /// `oidc.provider_url`.
    #[schema(example = "https://id.example.org/realms/acme")]
    provider_url: Option<String>,
    /// `oidc.client_id`.
    client_id: Option<String>,
    /// `oidc.client_secret`; masked = the stored one.
    #[schema(value_type = Option<String>, format = Password)]
    client_secret: Option<SecretString>,
    /// `oidc.redirect_url`.
    redirect_url: Option<String>,
    /// `oidc.scopes`.
    scopes: Option<String>,
    /// `oidc.ca_certificate`.
    ca_certificate: Option<String>,
}

impl Form {
    /// What was sent, as a save would send it.
    fn document(&self) -> Value {
        let secret = self.client_secret.as_ref();
        let sent = [
            ("provider_url", self.provider_url.as_deref()),
            ("client_id", self.client_id.as_deref()),
            ("client_secret", secret.map(ExposeSecret::expose_secret)),
            ("redirect_url", self.redirect_url.as_deref()),
            ("scopes", self.scopes.as_deref()),
            ("ca_certificate", self.ca_certificate.as_deref()),
        ];
        let sent = sent.into_iter();
        let sent = sent.filter_map(|(key, value)| Some((key.to_owned(), json!(value?))));
        json!({ "oidc": sent.collect::<Map<_, _>>() })
    }
}

/// What came of a check of an identity provider's settings.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProviderCheck {
    /// The steps that were tried, in order.
    steps: Vec<CheckStep>,
}

/// `POST /api/admin/auth/test-oidc`: each step with what was found and how long it took.
///
/// # Errors
/// 422 for settings that break their rules, or are missing.
async fn test(_: Superadmin, input: Input<Form>, deps: Deps) -> Result<Answer<ProviderCheck>> {
    let config = with_stored(&deps, &input.params.document()).await?;
    let mut steps = check_provider(&deps, &input.meta, &config).await?;
    steps.extend(whitelist::step(&deps, config.get(&oidc::WHITELIST_ENABLED), None).await?);
    Ok(Answer::ok(summary(&steps), ProviderCheck { steps }))
}

/// Tests the identity provider of a configuration, and records that.
///
/// # Errors
/// 422 when a setting is missing.
pub(in crate::routes) async fn check_provider(
    deps: &Dependencies,
    meta: &Meta,
    config: &Config,
) -> Result<Vec<CheckStep>> {
    // A secret is sent to a host that the caller names.
    let issuer = config.get(&oidc::PROVIDER_URL);
    record(deps, meta, "oidc", issuer).await?;
    let steps = deps.provider.check(config).await;
    steps.map_err(|key| ApiError::unprocessable("invalid_config", format!("{key} is not set")))
}
