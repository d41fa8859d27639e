//! Who asks: what a registry's challenge wants to see.

use std::net::SocketAddr;

use engine::RegistryCredentials;
use http_auth::ChallengeRef;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};
use reqwest::{Client, StatusCode, Url};
use schema::image::ImageReference;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::Host;

use super::Problem;
use super::real::{Asking, builder};
use crate::drivers::zone;

/// Most of a token service's answer that is read, in bytes.
const TOKEN_BYTES: usize = 1024 * 1024;

/// What to send with every further request.
#[derive(Clone)]
pub(super) enum Authorization {
    Bearer(SecretString),
    Basic(RegistryCredentials),
}

/// What a token service answers; some say it in the other word.
#[derive(Deserialize)]
struct Token {
    token: Option<SecretString>,
    access_token: Option<SecretString>,
}

/// Answers the challenge of a refused request, which came `from` there.
pub(super) async fn answer(
    asking: &Asking<'_>,
    image: &ImageReference,
    headers: &HeaderMap,
    from: Option<SocketAddr>,
) -> Result<Authorization, Problem> {
    let credentials = asking.credentials;
    let headers = headers.get_all(WWW_AUTHENTICATE).iter();
    let texts: Vec<&str> = headers.filter_map(|header| header.to_str().ok()).collect();
    let challenges: Vec<ChallengeRef<'_>> = texts
        .iter()
        .filter_map(|text| http_auth::parse_challenges(text).ok())
        .flatten()
        .collect();
    let of = |scheme: &str| {
        let mut all = challenges.iter();
        all.find(|challenge| challenge.scheme.eq_ignore_ascii_case(scheme))
    };
    match (of("bearer"), of("basic"), credentials) {
        (Some(bearer), _, _) => token(asking, image, bearer, from).await,
        (None, Some(_), Some(credentials)) => Ok(Authorization::Basic(credentials.clone())),
        (None, _, _) => Err(Problem::Unauthorized),
    }
}

/// The client that asks a token service: the registry's own, or one that connects to no other addresses than those that
/// the registry may name. Where it lies says the connection: its name could mean something else now.
async fn client_for(
    asking: &Asking<'_>,
    realm: &Url,
    from: Option<SocketAddr>,
) -> Result<Client, Problem> {
    if realm.host() == asking.registry.host() {
        return Ok(asking.client.clone());
    }
    let named = addresses(realm).await;
    if !zone::may_name(from.as_slice(), &named) {
        return Err(Problem::InternalTokenService);
    }
    let host = realm.host_str().unwrap_or_default();
    Ok(builder(asking.limits)
        .resolve_to_addrs(host, &named)
        .build()?)
}

/// Where the host of an address is; nowhere when its name is not known.
async fn addresses(url: &Url) -> Vec<SocketAddr> {
    let port = url.port_or_known_default().unwrap_or_default();
    match url.host() {
        Some(Host::Domain(name)) => tokio::net::lookup_host((name, port))
            .await
            .map_or_else(|_| Vec::new(), Iterator::collect),
        Some(Host::Ipv4(address)) => vec![SocketAddr::from((address, port))],
        Some(Host::Ipv6(address)) => vec![SocketAddr::from((address, port))],
        None => Vec::new(),
    }
}

/// Fetches a token from whom the registry names.
async fn token(
    asking: &Asking<'_>,
    image: &ImageReference,
    challenge: &ChallengeRef<'_>,
    from: Option<SocketAddr>,
) -> Result<Authorization, Problem> {
    let parameter = |name: &str| {
        let mut all = challenge.params.iter();
        all.find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_unescaped())
    };
    let realm = parameter("realm").unwrap_or_default();
    let mut realm = Url::parse(&realm)
        .ok()
        // Nobody else's password goes over the network without TLS.
        .filter(|realm| realm.scheme() == "https" || realm.origin() == asking.registry.origin())
        .ok_or(Problem::Unreadable("a token service that can't be used"))?;
    let client = client_for(asking, &realm, from).await?;
    let scope = format!("repository:{}:pull", image.repository());
    realm
        .query_pairs_mut()
        .append_pair("scope", &parameter("scope").unwrap_or(scope));
    if let Some(service) = parameter("service") {
        realm.query_pairs_mut().append_pair("service", &service);
    }
    let mut request = client.get(realm);
    if let Some(credentials) = asking.credentials {
        let password = credentials.password.expose_secret();
        request = request.basic_auth(&credentials.username, Some(password));
    }
    let response = request.send().await?;
    match response.status() {
        StatusCode::OK => {}
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(Problem::Unauthorized),
        StatusCode::TOO_MANY_REQUESTS => return Err(Problem::TooOften),
        other => return Err(Problem::Status(other.as_u16())),
    }
    let body = super::real::read(response, TOKEN_BYTES).await?;
    let unreadable = Problem::Unreadable("a token that can't be read");
    match serde_json::from_slice::<Token>(&body) {
        Ok(Token {
            token: Some(token), ..
        })
        | Ok(Token {
            access_token: Some(token),
            ..
        }) => Ok(Authorization::Bearer(token)),
        Ok(_) | Err(_) => Err(unreadable),
    }
}
