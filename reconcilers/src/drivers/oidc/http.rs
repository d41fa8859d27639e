//! Requests to a provider, bounded in time and size.

use std::time::Duration;

use http::Response;
use openidconnect::{HttpRequest, HttpResponse};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use tokio::task::spawn_blocking;

use super::error::ProviderError;
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

    /// Sends one request of the library.
    pub(super) async fn send(&self, request: HttpRequest) -> Result<HttpResponse, ProviderError> {
        let mut request = reqwest::Request::try_from(request)
            .map_err(|_| ProviderError::Unreachable("it names no address".to_owned()))?;
        *request.timeout_mut() = Some(TIMEOUT);
        let url = request.url();
        if self.tls && url.scheme() != "https" {
            return Err(ProviderError::Plain(shown(url.as_str())));
        }
        let asked = shown(url.path());
        let sent = self.client.execute(request).await;
        let mut answer = sent.map_err(|error| ProviderError::of(&error))?;
        if answer.status().is_redirection() {
            return Err(ProviderError::Redirected(asked));
        }
        let mut response = Response::new(Vec::new());
        *response.status_mut() = answer.status();
        response.headers_mut().clone_from(answer.headers());
        while let Some(piece) = answer
            .chunk()
            .await
            .map_err(|error| ProviderError::of(&error))?
        {
            if response.body().len() + piece.len() > LARGEST {
                return Err(ProviderError::TooLarge(LARGEST));
            }
            response.body_mut().extend_from_slice(&piece);
        }
        Ok(response)
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
