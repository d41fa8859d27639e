//! The real thing.

use std::time::Duration;

use async_trait::async_trait;
use http::HeaderMap;
use http::header::{ETAG, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use schema::adapter::Adapter;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::{Answer, PackageSource, SourceError, Validators};

/// Most redirects of one request.
const REDIRECTS: usize = 5;
/// Longest validator that is remembered.
const LONGEST_VALIDATOR: usize = 1024;

/// How much of a source is borne.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest time in all, from connecting to the last byte.
    pub whole: Duration,
    /// Largest package in bytes.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            whole: Duration::from_secs(30),
            bytes: 16 * 1024 * 1024,
        }
    }
}

/// A source that is asked by HTTP.
#[derive(Debug, Clone)]
pub struct HttpSource {
    client: Client,
    limits: Limits,
}

impl HttpSource {
    /// A client. The process's TLS provider must have been installed.
    ///
    /// # Errors
    /// When the system's certificates cannot be loaded.
    pub fn new(limits: Limits) -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            .connect_timeout(limits.whole)
            .timeout(limits.whole)
            // Where a redirect leads to is not given the query.
            .referer(false)
            .redirect(Policy::custom(|attempt| {
                let previous = attempt.previous().last();
                let same = previous.is_some_and(|from| from.scheme() == attempt.url().scheme());
                if same && attempt.previous().len() <= REDIRECTS {
                    attempt.follow()
                } else {
                    attempt.error("a redirect that is not followed")
                }
            }))
            .build()?;
        Ok(Self { client, limits })
    }

    /// The bytes of the package; `None`: what is known.
    async fn get(
        &self,
        url: &str,
        known: &Validators,
    ) -> Result<Option<(Vec<u8>, Validators)>, SourceError> {
        let mut request = self.client.get(url);
        if let Some(etag) = &known.etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        if let Some(date) = &known.last_modified {
            request = request.header(IF_MODIFIED_SINCE, date);
        }
        let mut response = request.send().await?;
        match response.status() {
            StatusCode::OK => {}
            // Only an answer to the question that was asked.
            StatusCode::NOT_MODIFIED if *known != Validators::default() => {
                return Ok(None);
            }
            other => return Err(SourceError::Status(other.as_u16())),
        }
        let validators = Validators {
            etag: validator(response.headers(), &ETAG),
            last_modified: validator(response.headers(), &LAST_MODIFIED),
        };
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await? {
            if bytes.len() + piece.len() > self.limits.bytes {
                return Err(SourceError::TooLarge(self.limits.bytes));
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(Some((bytes, validators)))
    }
}

/// A header that can be sent back as it came.
fn validator(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?;
    (!text.is_empty() && text.len() <= LONGEST_VALIDATOR).then(|| text.to_owned())
}

#[async_trait]
impl PackageSource for HttpSource {
    async fn fetch(&self, url: &str, known: &Validators) -> Result<Answer, SourceError> {
        let got = timeout(self.limits.whole, Box::pin(self.get(url, known))).await;
        let Some((bytes, validators)) = got.map_err(|_| SourceError::Timeout)?? else {
            return Ok(Answer::NotModified);
        };
        let read = spawn_blocking(move || Adapter::from_zip(&bytes)).await;
        Ok(Answer::Package {
            package: read.map_err(SourceError::Read)?.map(Box::new),
            validators,
        })
    }
}
