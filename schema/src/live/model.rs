//! Answers of providers of models to a test.

use std::net::IpAddr;

use secrecy::SecretString;
use serde::Serialize;
use url::Url;
use utoipa::ToSchema;

use crate::adapter::ModelProtocol;

/// A model to be tested. It may hold a key, so it cannot be printed.
pub struct ModelQuestion {
    /// The protocol of its provider.
    pub protocol: ModelProtocol,
    /// Where the provider is reached.
    pub address: Url,
    /// The provider's name of the model.
    pub model: String,
    /// The key.
    pub key: Option<SecretString>,
}

/// An address of the host of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelHost {
    /// The address.
    pub ip: IpAddr,
    /// The service's own host has it.
    pub is_own: bool,
}

/// Fault of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelFault {
    /// No provider is reached at the address.
    Address,
    /// A server answers there, and not where it has its API.
    Path,
    /// `https://` is written for a server without TLS, or `http://` for one with TLS.
    Scheme,
    /// Its certificate is not trusted.
    Certificate,
    /// It refuses the key.
    Key,
    /// It does not know the model.
    Model,
    /// The account has used up what it may use.
    Quota,
    /// It answers something else than a model does.
    Answer,
    /// It does not answer in time.
    Timeout,
}

/// Outcome of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelVerdict {
    /// Cause of the failure; `None`: the model answered.
    pub fault: Option<ModelFault>,
    /// A sentence. What a provider says in it is short, and holds no key.
    pub message: String,
    /// Remedy; empty when the model answered.
    pub remedy: &'static str,
}
