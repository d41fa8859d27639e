//! The real thing.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use async_trait::async_trait;
use engine::RegistryCredentials;
use reqwest::header::ACCEPT;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Method, Response, StatusCode, Url};
use schema::image::ImageReference;
use secrecy::ExposeSecret;
use tokio::time::timeout;

use super::auth::{self, Authorization};
use super::page::{self, Page};
use super::{Problem, Registry, RegistryError, link};

/// Most redirects of one request.
const REDIRECTS: usize = 5;

/// How much of a registry is borne.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest time for one request, from connecting to the last byte.
    pub answer: Duration,
    /// Longest time for all pages.
    pub whole: Duration,
    /// Most pages.
    pub pages: usize,
    /// Most tags.
    pub tags: usize,
    /// Largest page in bytes.
    pub page_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(10),
            whole: Duration::from_secs(60),
            pages: 1000,
            tags: 100_000,
            page_bytes: 16 * 1024 * 1024,
        }
    }
}

/// Registries that speak the OCI distribution API over HTTP.
#[derive(Debug, Clone)]
pub struct OciRegistry {
    client: Client,
    limits: Limits,
}

impl OciRegistry {
    /// A client. The process's TLS provider must have been installed.
    ///
    /// # Errors
    /// When the system's certificates cannot be loaded.
    pub fn new(limits: Limits) -> Result<Self, reqwest::Error> {
        let client = builder(limits).build()?;
        Ok(Self { client, limits })
    }
}

/// What all requests keep to.
pub(super) fn builder(limits: Limits) -> ClientBuilder {
    Client::builder()
        .connect_timeout(limits.answer)
        .timeout(limits.answer)
        .redirect(Policy::custom(|attempt| {
            let previous = attempt.previous().last();
            let safe = previous.is_some_and(|from| stays(from, attempt.url()));
            if safe && attempt.previous().len() <= REDIRECTS {
                attempt.follow()
            } else {
                attempt.error("a redirect that is not followed")
            }
        }))
}

/// Whether a redirect leads to no other place; the same host with TLS is none.
pub(super) fn stays(from: &Url, to: &Url) -> bool {
    let upgrade = from.scheme() == "http" && to.scheme() == "https" && from.host() == to.host();
    upgrade || from.origin() == to.origin()
}

/// One question and its follow-ups.
pub(super) struct Asking<'a> {
    pub(super) client: &'a Client,
    /// The first address that is asked.
    pub(super) registry: &'a Url,
    pub(super) limits: Limits,
    pub(super) credentials: Option<&'a RegistryCredentials>,
    authorization: Option<Authorization>,
}

#[async_trait]
impl Registry for OciRegistry {
    async fn tags(
        &self,
        image: &ImageReference,
        credentials: Option<&RegistryCredentials>,
        plain_http: bool,
    ) -> Result<Vec<String>, RegistryError> {
        let registry = address(image, "tags/list?n=1000", plain_http);
        let registry = registry.map_err(|problem| problem.of(image))?;
        let asking = self.asking(&registry, credentials);
        let pages = Box::pin(asking.pages(image));
        match timeout(self.limits.whole, pages).await {
            Ok(result) => result.map_err(|problem| problem.of(image)),
            Err(_) => Err(Problem::Timeout.of(image)),
        }
    }

    async fn digest(
        &self,
        image: &ImageReference,
        credentials: Option<&RegistryCredentials>,
        plain_http: bool,
    ) -> Result<Option<String>, RegistryError> {
        let tag = image.tag().unwrap_or("latest");
        let manifest = address(image, &format!("manifests/{tag}"), plain_http);
        let manifest = manifest.map_err(|problem| problem.of(image))?;
        let asking = self.asking(&manifest, credentials);
        let digest = Box::pin(asking.digest(image));
        match timeout(self.limits.whole, digest).await {
            Ok(result) => result.map_err(|problem| problem.of(image)),
            Err(_) => Err(Problem::Timeout.of(image)),
        }
    }
}

impl OciRegistry {
    fn asking<'a>(
        &'a self,
        registry: &'a Url,
        credentials: Option<&'a RegistryCredentials>,
    ) -> Asking<'a> {
        Asking {
            client: &self.client,
            registry,
            limits: self.limits,
            credentials,
            authorization: None,
        }
    }
}

/// An address below the repository of an image.
fn address(image: &ImageReference, what: &str, plain_http: bool) -> Result<Url, Problem> {
    let scheme = if plain_http { "http" } else { "https" };
    let host = image.as_oci().resolve_registry();
    let path = format!("v2/{}/{what}", image.repository());
    Url::parse(&format!("{scheme}://{host}/{path}"))
        .map_err(|_| Problem::Unreadable("a name that is no host"))
}

impl Asking<'_> {
    async fn pages(mut self, image: &ImageReference) -> Result<Vec<String>, Problem> {
        let limits = self.limits;
        let mut url = self.registry.clone();
        let (mut seen, mut tags, mut listed) = (HashSet::new(), BTreeSet::new(), 0_usize);
        while seen.insert(url.clone()) {
            if seen.len() > limits.pages {
                return Err(Problem::TooMuch("too many pages"));
            }
            let (page, next) = self.page(image, &url, limits.tags - listed).await?;
            // Also the same one again, and what is none, is work.
            listed += page.listed;
            if listed > limits.tags {
                return Err(Problem::TooMuch("too many tags"));
            }
            tags.extend(page.tags);
            match next {
                Some(next) => url = next,
                None => return Ok(tags.into_iter().collect()),
            }
        }
        Err(Problem::Unreadable("pages that lead in a circle"))
    }

    /// One page, and the address of the next one.
    async fn page(
        &mut self,
        image: &ImageReference,
        url: &Url,
        most: usize,
    ) -> Result<(Page, Option<Url>), Problem> {
        let response = self.ask(image, Method::GET, url, None).await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(Problem::Unauthorized),
            StatusCode::NOT_FOUND => return Err(Problem::NotFound),
            StatusCode::TOO_MANY_REQUESTS => return Err(Problem::TooOften),
            other => return Err(Problem::Status(other.as_u16())),
        }
        let next = match link::next_page(response.headers()) {
            Some(target) => Some(beneath(url, target)?),
            None => None,
        };
        let body = read(response, self.limits.page_bytes).await?;
        let page = page::read(&body, most)
            .map_err(|_| Problem::Unreadable("something that is no list of tags"))?;
        Ok((page, next))
    }

    /// Asks, and answers the challenge of a registry that wants to know who asks.
    pub(super) async fn ask(
        &mut self,
        image: &ImageReference,
        method: Method,
        url: &Url,
        accept: Option<&'static str>,
    ) -> Result<Response, Problem> {
        let response = self.send(method.clone(), url, accept).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        // Never asked before, or the token has become too old.
        let (headers, from) = (response.headers(), response.remote_addr());
        let answer = auth::answer(self, image, headers, from).await?;
        self.authorization = Some(answer);
        self.send(method, url, accept).await
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        accept: Option<&'static str>,
    ) -> Result<Response, Problem> {
        let request = self.client.request(method, url.clone());
        let request = match accept {
            None => request,
            Some(kinds) => request.header(ACCEPT, kinds),
        };
        let request = match &self.authorization {
            None => request,
            Some(Authorization::Bearer(token)) => request.bearer_auth(token.expose_secret()),
            Some(Authorization::Basic(credentials)) => {
                let password = credentials.password.expose_secret();
                request.basic_auth(&credentials.username, Some(password))
            }
        };
        Ok(request.send().await?)
    }
}

/// The address that a link means. It stays at the host that gave it: behind a proxy some registries
/// write another scheme or port, and the credentials are for nobody else.
fn beneath(url: &Url, target: &str) -> Result<Url, Problem> {
    let target = url
        .join(target)
        .map_err(|_| Problem::Unreadable("a link that is no address"))?;
    let mut next = url.clone();
    next.set_path(target.path());
    next.set_query(target.query());
    Ok(next)
}

/// Reads a body up to `limit`.
pub(super) async fn read(mut response: Response, limit: usize) -> Result<Vec<u8>, Problem> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > limit {
            return Err(Problem::TooMuch("too large a page"));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_leads_to_the_same_place_or_to_its_tls() {
        for (from, to, expected) in [
            ("https://r.example/a", "https://r.example/b", true),
            ("https://r.example/a", "https://r.example:443/b", true),
            ("http://r.example:5000/a", "http://r.example:5000/b", true),
            ("http://r.example/a", "https://r.example/a", true),
            ("https://r.example/a", "https://other.example/a", false),
            ("https://r.example/a", "https://r.example:444/a", false),
            ("https://r.example/a", "https://169.254.169.254/a", false),
            ("https://r.example/a", "http://r.example/a", false),
            ("http://r.example/a", "https://other.example/a", false),
            ("http://r.example/a", "http://r.example:81/a", false),
        ] {
            let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
            assert_eq!(stays(&from, &to), expected, "{from} {to}");
        }
    }
}
