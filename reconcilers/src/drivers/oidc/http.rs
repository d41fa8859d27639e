//! Requests to a provider, bounded in time and size.

use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use serde_json::{Map, Value};
use tokio::task::spawn_blocking;

use super::error::ProviderError;
use super::json::read_object;
use crate::drivers::{shown, trust};

/// Longest time of one request, from connecting to the last byte.
pub(super) const TIMEOUT: Duration = Duration::from_secs(4);
/// Largest answer in bytes.
const LARGEST: usize = 1024 * 1024;

/// A client of one provider.
pub(super) struct Http {
    client: Client,
    /// The provider speaks TLS, so everything that it names must.
    tls: bool,
}

/// An answer of a provider.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// The object in an answer to `what`.
    ///
    /// # Errors
    /// [`ProviderError::Status`], [`ProviderError::Unreadable`].
    pub(super) fn object(&self, what: &'static str) -> Result<Map<String, Value>, ProviderError> {
        if !self.status.is_success() {
            return Err(ProviderError::Status {
                what,
                status: self.status.as_u16(),
            });
        }
        read_object(&self.body).map_err(|why| ProviderError::Unreadable {
            what,
            why: why.to_owned(),
        })
    }
}

impl Http {
    /// A client that trusts the system's authorities, and those of `ca_certificate`.
    pub(super) async fn new(
        issuer: &Url,
        ca_certificate: Option<String>,
    ) -> Result<Self, ProviderError> {
        // Reads files the first time.
        let config = spawn_blocking(move || trust::client_config(ca_certificate.as_deref()));
        let config = config
            .await
            .map_err(|_| ProviderError::Unreachable("certificates could not be read".to_owned()))?;
        let client = Client::builder()
            .tls_backend_preconfigured(config?)
            .connect_timeout(TIMEOUT)
            .timeout(TIMEOUT)
            .referer(false)
            // An address that a provider names is asked as it is, or not at all.
            .redirect(Policy::none())
            .build()
            .map_err(|error| ProviderError::of(&error))?;
        Ok(Self {
            client,
            tls: issuer.scheme() == "https",
        })
    }

    /// What a browser is answered there.
    pub(super) async fn status_of(&self, address: &Url) -> Result<StatusCode, ProviderError> {
        let sent = self.client.get(address.clone()).send().await;
        Ok(sent.map_err(|error| ProviderError::of(&error))?.status())
    }

    /// Asks for a document; `credentials` are those of the `Authorization` header.
    pub(super) async fn get(
        &self,
        url: &Url,
        credentials: Option<HeaderValue>,
    ) -> Result<Answer, ProviderError> {
        let request = self.client.get(url.clone());
        self.send(url, request, credentials).await
    }

    /// Sends a form.
    pub(super) async fn post(
        &self,
        url: &Url,
        form: String,
        credentials: Option<HeaderValue>,
    ) -> Result<Answer, ProviderError> {
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        let request = self.client.post(url.clone());
        let request = request.header(CONTENT_TYPE, kind).body(form);
        self.send(url, request, credentials).await
    }

    async fn send(
        &self,
        url: &Url,
        request: reqwest::RequestBuilder,
        credentials: Option<HeaderValue>,
    ) -> Result<Answer, ProviderError> {
        if self.tls && url.scheme() != "https" {
            return Err(ProviderError::Plain(shown(url.as_str())));
        }
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(mut credentials) = credentials {
            credentials.set_sensitive(true);
            headers.insert(AUTHORIZATION, credentials);
        }
        let sent = request.headers(headers).send().await;
        let mut answer = sent.map_err(|error| ProviderError::of(&error))?;
        if answer.status().is_redirection() {
            return Err(ProviderError::Redirected(shown(url.path())));
        }
        let (status, mut body) = (answer.status(), Vec::new());
        while let Some(piece) = answer
            .chunk()
            .await
            .map_err(|error| ProviderError::of(&error))?
        {
            if body.len() + piece.len() > LARGEST {
                return Err(ProviderError::TooLarge(LARGEST));
            }
            body.extend_from_slice(&piece);
        }
        Ok(Answer { status, body })
    }
}

impl ProviderError {
    /// What a request could not do.
    fn of(error: &reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::Timeout(TIMEOUT);
        }
        // The innermost says what happened; the outer ones only that a request failed.
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let text = shown(&cause.to_string());
        if text.contains("certificate") {
            Self::Certificate(text)
        } else {
            Self::Unreachable(text)
        }
    }
}
