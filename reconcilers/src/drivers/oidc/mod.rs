//! An identity provider, as OpenID Connect shows it (OpenID Connect Core 1.0): the authorization code flow with PKCE.
//!
//! What the browser brings proves nothing by itself. It must have been sent off by this service (state), the ID token must
//! have been issued for that very sign-in (nonce) and for this service (audience), by the provider that is set (issuer) with
//! a key of its own (signature), and whoever redeems the code must be whoever has asked for it (PKCE).
//!
//! Values that no sign-in uses may have any form, or be missing: in the description, the answer with the tokens, and the claims.

mod check;
mod claims;
mod description;
mod error;
mod groups;
mod http;
mod id_token;
mod json;
mod keys;
mod provider;
mod real;
mod token;

use async_trait::async_trait;
use schema::live::{CheckStep, PendingSignIn, ProvidedIdentity};
use secrecy::SecretString;
use url::Url;

pub use error::ProviderError;
pub use real::OidcProvider;

/// Where an identity provider is, and what it is asked for.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    /// The issuer, exactly as the provider writes it.
    pub issuer: String,
    /// Certificates in PEM that are trusted besides those of the system.
    pub ca_certificate: Option<String>,
    /// This service at the provider.
    pub client_id: String,
    /// Its secret; `None`: a public client, which has PKCE only.
    pub client_secret: Option<SecretString>,
    /// Where the browser comes back to.
    pub redirect_url: String,
    /// What is asked for, separated by spaces.
    pub scopes: String,
    /// The claim with the user name, or the path to it with dots.
    pub username_claim: String,
    /// The claim with the names of groups, or the path to it.
    pub groups_claim: String,
}

/// What the browser has brought back from the provider.
#[derive(Debug, Clone)]
pub struct Returned {
    /// The authorization code.
    pub code: SecretString,
    /// Who has issued it, if that is said (RFC 9207).
    pub issuer: Option<String>,
}

/// Identity providers.
#[async_trait]
pub trait IdentityProvider: Send + Sync + 'static {
    /// A new sign-in, and the address to which the browser goes for it; `again`: the provider asks even whoever is signed in
    /// there.
    async fn begin(
        &self,
        settings: &ProviderSettings,
        again: bool,
    ) -> Result<(Url, PendingSignIn), ProviderError>;

    /// Who has signed in.
    async fn finish(
        &self,
        settings: &ProviderSettings,
        pending: &PendingSignIn,
        returned: &Returned,
    ) -> Result<ProvidedIdentity, ProviderError>;

    /// Whether these settings work, step by step.
    async fn check(&self, settings: &ProviderSettings) -> Vec<CheckStep>;
}
