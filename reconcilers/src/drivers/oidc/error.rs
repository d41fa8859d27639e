//! Why a provider has signed nobody in, and what to do.

use std::time::Duration;

use schema::live::ProviderFailure;

use crate::drivers::trust::TrustError;

/// Why a provider has signed nobody in. None of them has a secret, a code or a token in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// No connection, or one that broke.
    #[error(
        "the identity provider can't be reached ({0}); check oidc.provider_url and the network"
    )]
    Unreachable(String),
    /// It is there and says nothing.
    #[error("the identity provider has not answered within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// Its certificate is not trusted.
    #[error(
        "the certificate of the identity provider is not trusted ({0}); have it renewed, or set oidc.ca_certificate to the authority that has issued it"
    )]
    Certificate(String),
    /// What is set as certificates of authorities is none.
    #[error("oidc.ca_certificate has no certificate in PEM: {0}")]
    Authority(String),
    /// It sends the request elsewhere, which is not followed.
    #[error("the identity provider redirects {0}, which is not followed; check oidc.provider_url")]
    Redirected(String),
    /// It names an address without TLS, though its own has it.
    #[error("the identity provider names {0}, which is not https")]
    Plain(String),
    /// An answer that is larger than is borne.
    #[error("the identity provider has sent more than {0} bytes")]
    TooLarge(usize),
    /// Another status than success.
    #[error("the identity provider answers {status} to {what}; check oidc.provider_url")]
    Status {
        /// What was asked for.
        what: &'static str,
        /// The status.
        status: u16,
    },
    /// An answer that cannot be read.
    #[error("the answer of the identity provider to {what} can't be read ({why})")]
    Unreadable {
        /// What was asked for.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Its description lacks what a sign-in needs.
    #[error(
        "the description of the identity provider lacks what a sign-in needs ({0}); have it added at the provider (OpenID Connect Discovery 1.0 §3), or let another provider that has it, such as Keycloak, stand between"
    )]
    Lacks(String),
    /// It calls itself something else.
    #[error(
        "the identity provider calls itself something else: {0}; set oidc.provider_url to exactly that, also the / at the end"
    )]
    Issuer(String),
    /// It does not know this service, or not with this secret.
    #[error("the identity provider refuses the client ({0}); check {1}")]
    Client(String, &'static str),
    /// It does not say what somebody is called.
    #[error(
        "the identity provider does not send the claim {0}; check oidc.username_claim, oidc.scopes and the client's mappings at the provider"
    )]
    NoName(String),
    /// Its code is none, or not any more.
    #[error("the identity provider does not accept its own code ({0})")]
    Code(String),
    /// The ID token proves nothing.
    #[error("the ID token is refused: {0}")]
    Token(String),
}

impl From<TrustError> for ProviderError {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::Authority(text) => Self::Authority(text),
            TrustError::Setup(text) => Self::Certificate(text),
        }
    }
}

impl From<ProviderError> for ProviderFailure {
    fn from(error: ProviderError) -> Self {
        let text = error.to_string();
        match error {
            ProviderError::Code(_) | ProviderError::Token(_) => Self::Refused(text),
            ProviderError::NoName(_) => Self::Nameless(text),
            _ => Self::Unavailable(text),
        }
    }
}
