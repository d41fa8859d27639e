//! The real thing.

use std::time::Duration;

use async_trait::async_trait;
use http::HeaderMap;
use http::header::{ETAG, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use schema::adapter::Adapter;
use schema::config::is_loopback;
use schema::under_way::track_call;
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
            .referer(false)
            // Followed here, where the hosts are known.
            .redirect(Policy::none())
            .build()?;
        Ok(Self { client, limits })
    }

    /// Asks one address.
    async fn ask(&self, url: Url, known: &Validators) -> Result<Response, SourceError> {
        let mut request = self.client.get(url);
        if let Some(etag) = &known.etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        if let Some(date) = &known.last_modified {
            request = request.header(IF_MODIFIED_SINCE, date);
        }
        Ok(request.send().await?)
    }

    /// The bytes of the package; `None`: what is known.
    async fn get(
        &self,
        url: &str,
        hosts: &[String],
        known: &Validators,
    ) -> Result<Option<(Vec<u8>, Validators)>, SourceError> {
        let first = Url::parse(url).map_err(|_| SourceError::Address)?;
        let mut response = self.ask(first.clone(), known).await?;
        let mut redirects = 0;
        while let Some(target) = redirect(&response) {
            redirects += 1;
            if redirects > REDIRECTS || target.scheme() != first.scheme() {
                return Err(SourceError::Redirect);
            }
            // From here on without TLS over a network, for which nobody has been asked.
            let leaves = is_loopback(&first) && !is_loopback(&target);
            if target.scheme() == "http" && leaves {
                return Err(SourceError::Redirect);
            }
            let host = authority(&target);
            if host != authority(&first) && !hosts.contains(&host) {
                return Err(SourceError::RedirectHost(host));
            }
            response = self.ask(target, known).await?;
        }
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

/// Where an answer sends its asker on to.
fn redirect(response: &Response) -> Option<Url> {
    let status = response.status();
    let sent_on = status.is_redirection() && status != StatusCode::NOT_MODIFIED;
    let target = response.headers().get(LOCATION).filter(|_| sent_on)?;
    response.url().join(target.to_str().ok()?).ok()
}

/// Host and port, the latter unless it is the scheme's own.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// A header that can be sent back as it came.
fn validator(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?;
    (!text.is_empty() && text.len() <= LONGEST_VALIDATOR).then(|| text.to_owned())
}

#[async_trait]
impl PackageSource for HttpSource {
    async fn fetch(
        &self,
        url: &str,
        hosts: &[String],
        known: &Validators,
    ) -> Result<Answer, SourceError> {
        let got = timeout(self.limits.whole, Box::pin(self.get(url, hosts, known))).await;
        let Some((bytes, validators)) = got.map_err(|_| SourceError::Timeout)?? else {
            return Ok(Answer::NotModified);
        };
        let read = track_call("an adapter package", move || Adapter::from_zip(&bytes));
        let read = spawn_blocking(read).await;
        Ok(Answer::Package {
            package: read.map_err(SourceError::Read)?.map(Box::new),
            validators,
        })
    }
}
