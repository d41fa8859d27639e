//! Where newer adapter packages come from: an address that gives a zip.
//!
//! What it answers is not trusted: time and size are bounded, and a redirect leads to no other scheme, and to no
//! other host than those that an administrator has listed. The address may hold a secret in its query, so it stands
//! in no message.

mod real;

use async_trait::async_trait;
use schema::adapter::{Adapter, InvalidPackage};

pub use self::real::{HttpSource, Limits};

/// What tells one answer of a source from the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validators {
    /// Its `ETag`.
    pub etag: Option<String>,
    /// Its `Last-Modified`.
    pub last_modified: Option<String>,
}

/// What a source said.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The same as when it gave these validators.
    NotModified,
    /// A package.
    Package {
        /// What it says, or why it cannot be used.
        package: Result<Box<Adapter>, InvalidPackage>,
        /// What to ask with the next time.
        validators: Validators,
    },
}

/// Gives adapter packages.
#[async_trait]
pub trait PackageSource: Send + Sync + 'static {
    /// Asks for the package at `url`, unless it is still what `known` says. `hosts`, each with its port if that is
    /// not the scheme's own, are those besides its own to which the source may redirect.
    ///
    /// # Errors
    /// [`SourceError`], with a sentence for people.
    async fn fetch(
        &self,
        url: &str,
        hosts: &[String],
        known: &Validators,
    ) -> Result<Answer, SourceError>;
}

/// Why a source gave no package, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// No address at all.
    #[error("adapter.source_url is no address")]
    Address,
    /// No connection, or one that broke.
    #[error(
        "the source of adapter packages can't be reached; check adapter.source_url and the network"
    )]
    Unreachable(#[source] reqwest::Error),
    /// It took too long.
    #[error("the source of adapter packages did not give the package in time; it is asked again")]
    Timeout,
    /// Another status.
    #[error("the source of adapter packages answered with status {0}; check adapter.source_url")]
    Status(u16),
    /// A redirect that is not followed.
    #[error(
        "the source of adapter packages redirects to another scheme, or again and again; name the place that gives the package in adapter.source_url"
    )]
    Redirect,
    /// A redirect to a host that is not listed.
    #[error(
        "the source of adapter packages redirects to {0}; if that is right, add it to adapter.redirect_hosts"
    )]
    RedirectHost(String),
    /// More than is read.
    #[error(
        "the source of adapter packages gave more than {0} bytes, which is more than a package may have"
    )]
    TooLarge(usize),
    /// Reading the package crashed.
    #[error("the package could not be read")]
    Read(#[source] tokio::task::JoinError),
}

/// What a failed request means.
impl From<reqwest::Error> for SourceError {
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        if error.is_timeout() {
            Self::Timeout
        } else {
            Self::Unreachable(error)
        }
    }
}
