//! Registries: which tags a repository has and what they mean, by the OCI distribution API.
//!
//! What a registry answers is not trusted: times, sizes and numbers are bounded, links and redirects
//! lead to no other place, and credentials go to no one but the registry and whom it names for tokens.

mod auth;
mod link;
mod manifest;
mod page;
mod real;

use async_trait::async_trait;
use engine::RegistryCredentials;
use schema::image::ImageReference;

pub use self::real::{Limits, OciRegistry};

/// Asks registries.
#[async_trait]
pub trait Registry: Send + Sync + 'static {
    /// All tags of the repository of `image`, each once, by name. `plain_http`: it speaks no TLS.
    ///
    /// # Errors
    /// [`RegistryError`], with a sentence for people.
    async fn tags(
        &self,
        image: &ImageReference,
        credentials: Option<&RegistryCredentials>,
        plain_http: bool,
    ) -> Result<Vec<String>, RegistryError>;

    /// Digest (`sha256:…`) of the manifest that the tag of `image` names now; `None`: the registry has no such tag or repository,
    /// or does not show it to this account.
    ///
    /// # Errors
    /// [`RegistryError`], with a sentence for people.
    async fn digest(
        &self,
        image: &ImageReference,
        credentials: Option<&RegistryCredentials>,
        plain_http: bool,
    ) -> Result<Option<String>, RegistryError>;
}

/// Failure of a registry to list its tags or to say what one means, with the remedy.
#[derive(Debug, thiserror::Error)]
#[error("the registry {registry} {problem}")]
pub struct RegistryError {
    /// The registry, with its port if it names one.
    pub registry: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a registry.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// No connection, or one that broke.
    #[error(
        "can't be reached; check its name in image.name and the network, and name it in image.registry_plain_http if it speaks plain http"
    )]
    Unreachable(#[source] reqwest::Error),
    /// It took too long.
    #[error("did not answer in time; try again")]
    Timeout,
    /// It wants to know who asks, or knows and refuses.
    #[error(
        "refuses to list the tags; check image.registry_username and image.registry_password, which are sent to the registry of image.name only"
    )]
    Unauthorized,
    /// The same, of a manifest.
    #[error(
        "refuses to say what {0} is; check image.registry_username and image.registry_password, which are sent to the registry of image.name only"
    )]
    Refused(String),
    /// It has no such repository, or does not show it to strangers.
    #[error(
        "has no such repository, or does not show it to this account; check image.name and image.registry_username"
    )]
    NotFound,
    /// It names a token service at an address that only this side can reach.
    #[error(
        "names a token service at a loopback, link-local or private address, where the registry itself is not; its tags are not listed"
    )]
    InternalTokenService,
    /// It was asked too often.
    #[error("was asked too often; try again later")]
    TooOften,
    /// Another status.
    #[error("answered with status {0}; try again, and check its log")]
    Status(u16),
    /// Something else than the protocol says.
    #[error("answered with {0}; check that image.name names an OCI registry")]
    Unreadable(&'static str),
    /// More than is read.
    #[error("answered with {0}, which is more than is read")]
    TooMuch(&'static str),
}

impl Problem {
    fn of(self, image: &ImageReference) -> RegistryError {
        RegistryError {
            registry: image.registry().to_owned(),
            problem: self,
        }
    }
}

/// What a failed request means.
impl From<reqwest::Error> for Problem {
    fn from(error: reqwest::Error) -> Self {
        // The address may hold a query with more than belongs into a log.
        let error = error.without_url();
        if error.is_timeout() {
            Self::Timeout
        } else if error.is_redirect() {
            Self::Unreadable("a redirect to another place")
        } else {
            Self::Unreachable(error)
        }
    }
}
