//! The API's port to the identity provider, implemented on its driver.

use std::sync::Arc;

use api::ports::{CheckStep, IdentityProvider, PendingSignIn, ProvidedIdentity, ProviderFailure};
use async_trait::async_trait;
use reconcilers::drivers::oidc::{
    IdentityProvider as Driver, OidcProvider, ProviderSettings, Returned,
};
use reconcilers::shared::Shared;
use schema::config::{Config, keys::oidc};
use secrecy::SecretString;

/// The identity provider of the configuration in effect.
pub struct Providers {
    /// The configuration.
    pub shared: Arc<Shared>,
    /// The driver.
    pub driver: Arc<OidcProvider>,
}

impl Providers {
    async fn settings(&self) -> Result<ProviderSettings, ProviderFailure> {
        let config = self.shared.config.newest().await;
        let config = config.map_err(|error| ProviderFailure::Unavailable(error.to_string()))?;
        settings(&config).map_err(|key| ProviderFailure::Unavailable(format!("{key} is not set")))
    }
}

/// How the identity provider of this configuration is asked; the key that is not set.
fn settings(config: &Config) -> Result<ProviderSettings, &'static str> {
    let set = |value: Option<String>, key| value.ok_or(key);
    Ok(ProviderSettings {
        issuer: set(config.get(&oidc::PROVIDER_URL), oidc::PROVIDER_URL.row.key)?,
        ca_certificate: config.get(&oidc::CA_CERTIFICATE),
        client_id: set(config.get(&oidc::CLIENT_ID), oidc::CLIENT_ID.row.key)?,
        client_secret: config.get(&oidc::CLIENT_SECRET),
        redirect_url: set(config.get(&oidc::REDIRECT_URL), oidc::REDIRECT_URL.row.key)?,
        scopes: config.get(&oidc::SCOPES),
        username_claim: config.get(&oidc::USERNAME_CLAIM),
        groups_claim: config.get(&oidc::GROUPS_CLAIM),
    })
}

#[async_trait]
impl IdentityProvider for Providers {
    async fn begin(&self, again: bool) -> Result<(String, PendingSignIn), ProviderFailure> {
        let settings = self.settings().await?;
        let (address, pending) = self.driver.begin(&settings, again).await?;
        Ok((address.into(), pending))
    }

    async fn finish(
        &self,
        pending: &PendingSignIn,
        code: SecretString,
        issuer: Option<String>,
    ) -> Result<ProvidedIdentity, ProviderFailure> {
        let settings = self.settings().await?;
        let returned = Returned { code, issuer };
        Ok(self.driver.finish(&settings, pending, &returned).await?)
    }

    async fn check(&self, config: &Config) -> Result<Vec<CheckStep>, &'static str> {
        Ok(self.driver.check(&settings(config)?).await)
    }
}
