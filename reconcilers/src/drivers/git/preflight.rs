//! The first question to a server that speaks HTTP: whether it has a repository there, lets us in, or sends us elsewhere.
//!
//! It is asked here and not by `git`, because each place that a server redirects to is checked before anybody connects to
//! it, and credentials go to none but the first. `git` is given where it ended, and follows nothing itself. The question is
//! the first one of the smart protocol (gitprotocol-http(5)).

use std::error::Error;
use std::net::SocketAddr;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Request, Response, StatusCode, Url};
use schema::skill_repository::Scheme;
use schema::zone::Zone;
use secrecy::{ExposeSecret, SecretString};
use url::Origin;

use super::address::{self, Checked};
use super::words::Hidden;
use super::{Credentials, GitError, Limits, Remote};

/// Most redirects.
const REDIRECTS: usize = 5;
/// What the address of the question ends with, and what it asks for.
const QUESTION: (&str, &str) = ("/info/refs", "service=git-upload-pack");
/// What answers it.
const ANSWER: &str = "application/x-git-upload-pack-advertisement";

/// Where the repository is in the end.
pub(super) struct Target {
    pub(super) url: Url,
    pub(super) checked: Checked,
    /// The value of the header `Authorization`, unless it is another origin than the one that the secret is for.
    pub(super) authorization: Option<SecretString>,
}

/// Asks, and follows redirects.
pub(super) async fn ask(
    remote: &Remote,
    limits: &Limits,
    authorities: &[Certificate],
) -> Result<Target, GitError> {
    let mut url = Url::parse(remote.url.as_str()).map_err(|_| GitError::NoRepository)?;
    // The user belongs into the credentials.
    let _ = url.set_username("");
    let origin = url.origin();
    let mut from: Option<Vec<SocketAddr>> = None;
    for _ in 0..=REDIRECTS {
        let port = url.port_or_known_default().unwrap_or_default();
        let host = url.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let checked = address::check(
            host,
            port,
            from.as_deref(),
            remote.allow_private,
            limits.connect,
        )
        .await?;
        let credentials = remote
            .credentials
            .as_ref()
            .filter(|_| url.origin() == origin);
        if credentials.is_some() && !may_be_sent(remote, &checked) {
            return Err(GitError::Insecure);
        }
        let client = client(&url, &checked, limits, authorities)
            .map_err(|error| broken(error, &url, limits, &Hidden::new(None, None)))?;
        let request = request(&client, &url, credentials)?;
        let authorization = header(&request)?;
        let secret = credentials.map(|given| &given.secret);
        let hidden = Hidden::new(secret, authorization.as_ref());
        let answer = client.execute(request).await;
        let answer = answer.map_err(|error| broken(error, &url, limits, &hidden))?;
        match redirect(&answer, &url, &hidden)? {
            Some(next) => {
                url = next;
                from = Some(checked.addresses);
            }
            None => {
                understand(&answer, credentials.is_some())?;
                return Ok(Target {
                    url,
                    checked,
                    authorization,
                });
            }
        }
    }
    Err(GitError::Redirect("one place after another".to_owned()))
}

/// Whether nobody on the way reads the secret: with TLS, or on this machine.
fn may_be_sent(remote: &Remote, checked: &Checked) -> bool {
    let local = |address: &SocketAddr| Zone::from_address(address.ip()) == Zone::Loopback;
    remote.url.scheme() != Scheme::Http
        || remote.allow_private && checked.addresses.iter().all(local)
}

/// A client that connects to the checked addresses only.
fn client(
    url: &Url,
    checked: &Checked,
    limits: &Limits,
    authorities: &[Certificate],
) -> reqwest::Result<Client> {
    let host = url.host_str().unwrap_or_default();
    Client::builder()
        .connect_timeout(limits.connect)
        .timeout(limits.stalled)
        .redirect(Policy::none())
        .referer(false)
        .no_proxy()
        .tls_certs_merge(authorities.iter().cloned())
        .resolve_to_addrs(host, &checked.addresses)
        .build()
}

fn request(
    client: &Client,
    url: &Url,
    credentials: Option<&Credentials>,
) -> Result<Request, GitError> {
    let mut question = url.clone();
    question.set_path(&format!(
        "{}{}",
        url.path().trim_end_matches('/'),
        QUESTION.0
    ));
    question.set_query(Some(QUESTION.1));
    let mut request = client
        .get(question)
        // Some servers answer nobody else.
        .header("user-agent", "git/2 (agentyard)")
        .header("git-protocol", "version=2");
    if let Some(Credentials { username, secret }) = credentials {
        request = request.basic_auth(username, Some(secret.expose_secret()));
    }
    request.build().map_err(|_| GitError::NoRepository)
}

/// The header that says who asks, for `git` to send the same.
fn header(request: &Request) -> Result<Option<SecretString>, GitError> {
    let Some(value) = request.headers().get(AUTHORIZATION) else {
        return Ok(None);
    };
    let unfit = |_| GitError::Credentials("they can't be sent");
    Ok(Some(value.to_str().map_err(unfit)?.into()))
}

/// Where the repository is instead.
fn redirect(answer: &Response, at: &Url, hidden: &Hidden) -> Result<Option<Url>, GitError> {
    use StatusCode as Status;
    let (Status::MOVED_PERMANENTLY
    | Status::FOUND
    | Status::SEE_OTHER
    | Status::TEMPORARY_REDIRECT
    | Status::PERMANENT_REDIRECT) = answer.status()
    else {
        return Ok(None);
    };
    let target = header_text(answer.headers(), &LOCATION);
    let refused = || {
        let mut shown = hidden.clean(target);
        shown.truncate(
            shown
                .char_indices()
                .nth(200)
                .map_or(shown.len(), |(at, _)| at),
        );
        GitError::Redirect(shown)
    };
    let next = answer.url().join(target).map_err(|_| refused())?;
    follows(at, next).ok_or_else(refused).map(Some)
}

/// The repository whose question is at `next`, if it may be asked instead of the one at `at`.
fn follows(at: &Url, mut next: Url) -> Option<Url> {
    let safe = next.scheme() == "https" || next.scheme() == "http" && at.scheme() == "http";
    let named = next.username().is_empty() && next.password().is_none();
    let path = next.path().strip_suffix(QUESTION.0)?.to_owned();
    let asks = next.query() == Some(QUESTION.1);
    if !safe || !named || !asks || path.trim_matches('/').is_empty() || next.origin() == opaque() {
        return None;
    }
    next.set_path(&path);
    next.set_query(None);
    next.set_fragment(None);
    Some(next)
}

fn opaque() -> Origin {
    Origin::new_opaque()
}

fn header_text<'a>(headers: &'a HeaderMap, name: &reqwest::header::HeaderName) -> &'a str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

/// What an answer means that is no redirect.
fn understand(answer: &Response, has_credentials: bool) -> Result<(), GitError> {
    let status = answer.status();
    let words = format!("status {}", status.as_u16());
    match status {
        StatusCode::OK => match header_text(answer.headers(), &CONTENT_TYPE) == ANSWER {
            true => Ok(()),
            false => Err(GitError::NoRepository),
        },
        StatusCode::UNAUTHORIZED if !has_credentials => Err(GitError::Unauthorized(
            "status 401; it has no credentials".to_owned(),
        )),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(GitError::Unauthorized(words)),
        StatusCode::NOT_FOUND | StatusCode::GONE => Err(GitError::NotFound(words)),
        other => Err(GitError::Status(other.as_u16())),
    }
}

/// What a failed request means.
fn broken(error: reqwest::Error, url: &Url, limits: &Limits, hidden: &Hidden) -> GitError {
    let error = error.without_url();
    if error.is_timeout() && !error.is_connect() {
        return GitError::Stalled(limits.stalled);
    }
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        words = format!("{words}: {error}");
        source = error.source();
    }
    let words = hidden.clean(&words);
    match words.contains("certificate") {
        true => GitError::Certificate {
            host: url.host_str().unwrap_or_default().to_owned(),
            words,
        },
        false => GitError::Unreachable(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_leads_to_the_same_question_and_never_out_of_tls() {
        let question = "/info/refs?service=git-upload-pack";
        for (at, next, expected) in [
            (
                "https://a.example/r",
                format!("https://a.example/r.git{question}"),
                Some("https://a.example/r.git"),
            ),
            (
                "https://a.example/r",
                format!("https://b.example/r{question}"),
                Some("https://b.example/r"),
            ),
            (
                "http://a.example/r",
                format!("https://a.example/r{question}"),
                Some("https://a.example/r"),
            ),
            (
                "http://a.example/r",
                format!("http://a.example/s{question}"),
                Some("http://a.example/s"),
            ),
            (
                "https://a.example/r",
                format!("http://a.example/r{question}"),
                None,
            ),
            (
                "https://a.example/r",
                format!("https://u@b.example/r{question}"),
                None,
            ),
            (
                "https://a.example/r",
                format!("https://u:p@b.example/r{question}"),
                None,
            ),
            (
                "https://a.example/r",
                "https://a.example/login".to_owned(),
                None,
            ),
            (
                "https://a.example/r",
                "https://a.example/r/info/refs".to_owned(),
                None,
            ),
            (
                "https://a.example/r",
                format!("https://a.example{question}"),
                None,
            ),
            (
                "https://a.example/r",
                format!("ftp://a.example/r{question}"),
                None,
            ),
            (
                "https://a.example/r",
                "file:///etc/info/refs?service=git-upload-pack".to_owned(),
                None,
            ),
        ] {
            let seen = follows(&at.parse().unwrap(), next.parse().unwrap());
            assert_eq!(seen.as_ref().map(Url::as_str), expected, "{at} {next}");
        }
    }
}
