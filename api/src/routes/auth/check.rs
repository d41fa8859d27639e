//! Trying directory settings before they are saved.

use schema::audit::About;
use schema::config::{Config, keys, parse_patch, query as config};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::whitelist;
use crate::answer::Answer;
use crate::deps::{Dependencies, Deps};
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::{Input, Meta};
use crate::ports::{CheckStep, DirectoryCheck, DirectoryWanted};
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::config::refused;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("auth_test_ldap", "/api/admin/auth/test-ldap", test)
.tokens(Tokens::Admin)
            .title(Area::Authentication, "Test directory settings")
            .about(
                "Binds, searches users and queries groups with the settings that are sent; what is \
                 not sent, or is masked, is as it is stored. Nothing is saved. A step that fails is \
                 part of the answer. Works in every mode.",
            )
            .fails(&[
                Failure(422, "invalid_config", "a setting breaks its rule, or `host` or `base_dn` is missing"),
            ]),
    ]
}

/// The keys of `ldap`, without their prefix.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = DirectorySettingsForm)]
pub struct Form {
    /// `ldap.host`.
    #[schema(example = "ldaps://dc.example.org")]
    host: Option<String>,
    /// `ldap.bind_dn`.
    bind_dn: Option<String>,
    /// `ldap.bind_password`; masked = the stored one.
    #[schema(value_type = Option<String>, format = Password)]
    bind_password: Option<SecretString>,
    /// `ldap.base_dn`.
    base_dn: Option<String>,
    /// `ldap.filter`.
    filter: Option<String>,
    /// `ldap.username_attribute`.
    username_attribute: Option<String>,
    /// `ldap.group_search_mode`.
    group_search_mode: Option<String>,
    /// `ldap.group_base_dn`.
    group_base_dn: Option<String>,
    /// `ldap.group_filter`.
    group_filter: Option<String>,
    /// `ldap.group_member_attribute`.
    group_member_attribute: Option<String>,
    /// `ldap.start_tls`.
    start_tls: Option<bool>,
    /// `ldap.ca_certificate`.
    ca_certificate: Option<String>,
    /// `ldap.timeout`.
    timeout: Option<String>,
    /// `ldap.page_size`.
    page_size: Option<u64>,
    /// Look for this user only.
    test_username: Option<String>,
    /// Look for this group only.
    test_groupname: Option<String>,
}

impl Form {
    /// What was sent, as a save would send it.
    fn document(&self) -> Value {
        let secret = self
            .bind_password
            .as_ref()
            .map(|secret| json!(secret.expose_secret()));
        let text = |value: &Option<String>| value.as_ref().map(|value| json!(value));
        let sent = [
            ("host", text(&self.host)),
            ("bind_dn", text(&self.bind_dn)),
            ("bind_password", secret),
            ("base_dn", text(&self.base_dn)),
            ("filter", text(&self.filter)),
            ("username_attribute", text(&self.username_attribute)),
            ("group_search_mode", text(&self.group_search_mode)),
            ("group_base_dn", text(&self.group_base_dn)),
            ("group_filter", text(&self.group_filter)),
            ("group_member_attribute", text(&self.group_member_attribute)),
            ("start_tls", self.start_tls.map(|value| json!(value))),
            ("ca_certificate", text(&self.ca_certificate)),
            ("timeout", text(&self.timeout)),
            ("page_size", self.page_size.map(|value| json!(value))),
        ];
        let sent = sent
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        json!({ "ldap": sent.collect::<Map<_, _>>() })
    }
}

/// `POST /api/admin/auth/test-ldap`: each step with what was found and how long it took.
///
/// # Errors
/// 422 for settings that break their rules, or without a directory's address.
async fn test(_: Superadmin, input: Input<Form>, deps: Deps) -> Result<Answer<DirectoryCheck>> {
    let form = input.params;
    let config = with_stored(&deps, &form.document()).await?;
    let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let user = given(form.test_username);
    let wanted = DirectoryWanted {
        user: user.clone(),
        group: given(form.test_groupname),
        few: false,
    };
    let mut check = check_directory(&deps, &input.meta, &config, wanted).await?;
    let is_enabled = config.get(&keys::ldap::WHITELIST_ENABLED);
    let step = whitelist::step(&deps, is_enabled, user.as_deref()).await?;
    check.steps.extend(step);
    Ok(Answer::ok(summary(&check.steps), check))
}

/// Tests the directory of a configuration, and records that.
///
/// # Errors
/// 422 when a setting is missing.
pub(in crate::routes) async fn check_directory(
    deps: &Dependencies,
    meta: &Meta,
    config: &Config,
    wanted: DirectoryWanted,
) -> Result<DirectoryCheck> {
    // A password is sent to a host that the caller names.
    let host = config.ldap_url().map(|url| {
        let (host, port) = (url.host_str().unwrap_or_default(), url.port());
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{host}{port}", url.scheme())
    });
    record(deps, meta, "ldap", host).await?;
    let check = deps.directory.check(config, wanted).await;
    check.map_err(|failure| ApiError::unprocessable("invalid_config", failure.0))
}

/// The configuration as it would be after a save of `document`.
pub(super) async fn with_stored(deps: &Dependencies, document: &Value) -> Result<Config> {
    let mut connection = deps.db.read().await?;
    let (values, _) = config::load(&mut connection, &deps.master_key).await?;
    drop(connection);
    let present = Config::from_stored(values);
    let patch = parse_patch(document).map_err(refused)?;
    let changes = patch.resolve(&present).map_err(refused)?;
    Ok(present.apply(&changes))
}

/// Records which host was tested.
pub(in crate::routes) async fn record(
    deps: &Dependencies,
    meta: &Meta,
    section: &'static str,
    host: Option<String>,
) -> Result<()> {
    let tx = meta.begin(deps).await?;
    let detail = format!("tested {}", host.unwrap_or_default());
    Ok(tx.commit(About::whole(section).detail(detail)).await?)
}

/// What came of it, in a sentence.
pub(super) fn summary(steps: &[CheckStep]) -> String {
    match steps.iter().find(|step| !step.ok) {
        None => "all steps succeeded".to_owned(),
        Some(step) => format!("{} failed: {}", step.name, step.detail),
    }
}
