//! One provider as it describes itself, and what can be asked of it.

use std::sync::atomic::AtomicU8;
use std::time::Duration;

use http::HeaderValue;
use openidconnect::core::{CoreAuthPrompt, CoreClient, CoreResponseType};
use openidconnect::{
    AuthUrl, AuthenticationFlow, ClientId, CsrfToken, IssuerUrl, JsonWebKeySet, Nonce,
    PkceCodeChallenge, RedirectUrl, Scope,
};
use schema::live::{PendingSignIn, ProvidedIdentity};
use serde_json::{Map, Value};
use tokio::time::timeout;
use url::Url;

use super::ProviderSettings;
use super::claims;
use super::description::{Description, WHAT, place};
use super::error::ProviderError;
use super::http::{Http, TIMEOUT};
use super::json::read_object;
use super::keys::Keys;
use super::token::Tokens;
use crate::drivers::shown;

/// How long a sign-in waits to hear of groups that the ID token leaves out.
const GROUPS: Duration = Duration::from_millis(1500);

/// A provider that has described itself.
pub(super) struct Provider {
    pub(super) http: Http,
    pub(super) description: Description,
    pub(super) keys: Keys,
    /// The way to send the client's secret that it took last, by its place among all.
    pub(super) taken: AtomicU8,
}

impl Provider {
    /// Asks the provider for its description and its keys (OpenID Connect Discovery 1.0 §4).
    pub(super) async fn describe(
        issuer: &str,
        ca_certificate: Option<String>,
    ) -> Result<Self, ProviderError> {
        let url = Url::parse(issuer).map_err(|error| ProviderError::Unreadable {
            what: WHAT,
            why: shown(&error.to_string()),
        })?;
        let http = Http::new(&url, ca_certificate).await?;
        let answer = http.get(&place(&url)?, None).await?;
        let description = Description::of(issuer, &answer.object(WHAT)?)?;
        if let Ok((authorization, _)) = description.endpoints()
            && url.scheme() == "https"
            && authorization.scheme() != "https"
        {
            return Err(ProviderError::Plain(shown(authorization.as_str())));
        }
        let keys = match description.keys() {
            Some(url) => {
                let answer = http.get(url, None).await?;
                Keys::read(&answer.object("the request for its keys")?)
            }
            None => Keys::default(),
        };
        Ok(Self {
            http,
            description,
            keys,
            taken: AtomicU8::new(0),
        })
    }

    /// Whether the provider would let somebody sign in at this address, as far as it says so before.
    pub(super) async fn takes(&self, address: &Url) -> Result<(), ProviderError> {
        let status = self.http.status_of(address).await?;
        if status.is_client_error() || status.is_server_error() {
            return Err(ProviderError::Client(
                format!("status {} at its authorization endpoint", status.as_u16()),
                "oidc.client_id, oidc.redirect_url, oidc.scopes and the client's settings at the provider",
            ));
        }
        Ok(())
    }

    /// A new sign-in.
    pub(super) fn begin(
        &self,
        settings: &ProviderSettings,
        again: bool,
    ) -> Result<(Url, PendingSignIn), ProviderError> {
        let (authorization, _) = self.description.endpoints()?;
        let no_address = |_| ProviderError::Client("no address".to_owned(), "oidc.redirect_url");
        let redirect = RedirectUrl::new(settings.redirect_url.clone()).map_err(no_address)?;
        let no_address = |_| ProviderError::Client("no address".to_owned(), "oidc.provider_url");
        let issuer = IssuerUrl::new(self.description.issuer.clone()).map_err(no_address)?;
        let client = ClientId::new(settings.client_id.clone());
        let client = CoreClient::new(client, issuer, JsonWebKeySet::new(Vec::new()))
            .set_auth_uri(AuthUrl::from_url(authorization.clone()))
            .set_redirect_uri(redirect);
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let flow = AuthenticationFlow::<CoreResponseType>::AuthorizationCode;
        let request = client.authorize_url(flow, CsrfToken::new_random, Nonce::new_random);
        // `openid` the library asks for by itself.
        let scopes = settings.scopes.split_whitespace();
        let scopes = scopes.filter(|scope| *scope != "openid");
        let request = request
            .add_scopes(scopes.map(|scope| Scope::new(scope.to_owned())))
            .set_pkce_challenge(challenge);
        let request = match again {
            true => request.add_prompt(CoreAuthPrompt::Login),
            false => request,
        };
        let (url, state, nonce) = request.url();
        let pending = PendingSignIn {
            state: state.secret().clone(),
            nonce: nonce.secret().clone(),
            verifier: verifier.secret().clone(),
        };
        Ok((url, pending))
    }

    /// Who these claims speak of; what they leave out is asked for.
    pub(super) async fn identify(
        &self,
        settings: &ProviderSettings,
        tokens: &Tokens,
        subject: String,
        mut claims: Map<String, Value>,
    ) -> Result<ProvidedIdentity, ProviderError> {
        claims::remove_nulls(&mut claims);
        let mut unread = None;
        let nameless = claims::find(&claims, &settings.username_claim).is_none();
        if nameless || claims::find(&claims, &settings.groups_claim).is_none() {
            let asked = self.user_info(settings, tokens, &subject);
            let limit = if nameless { TIMEOUT } else { GROUPS };
            let asked = timeout(limit, asked).await;
            match asked.unwrap_or(Err(ProviderError::Timeout(limit))) {
                Ok(more) => claims::add(&mut claims, more),
                Err(error) if nameless => return Err(error),
                // Which groups somebody is in is not known; everything else is.
                Err(error) => unread = Some(error),
            }
        }
        let mut identity = claims::identity(settings, &subject, &claims)?;
        if let Some(error) = unread.filter(|_| identity.groups.is_none()) {
            let why = format!("the groups stay as they are: {error}");
            identity.left_out.push(why);
        }
        Ok(identity)
    }

    /// What the provider says of the user besides (OpenID Connect Core §5.3); nothing where it has no such endpoint.
    async fn user_info(
        &self,
        settings: &ProviderSettings,
        tokens: &Tokens,
        subject: &str,
    ) -> Result<Map<String, Value>, ProviderError> {
        const WHAT: &str = "the user info request";
        let unreadable = |why: &str| ProviderError::Unreadable {
            what: WHAT,
            why: shown(why),
        };
        let Some(endpoint) = self.description.user_info() else {
            return Ok(Map::new());
        };
        let token = tokens.access_token.as_deref().unwrap_or_default();
        let visible = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        let bearer = HeaderValue::from_str(&format!("Bearer {token}"));
        let Some(bearer) = bearer.ok().filter(|_| visible) else {
            return Err(unreadable(
                "the access token for it is missing, or has characters that can't be sent",
            ));
        };
        let answer = self.http.get(endpoint, Some(bearer)).await?;
        let mut claims = match (answer.status.is_success(), read_object(&answer.body)) {
            (true, Err(why)) => {
                let text = std::str::from_utf8(&answer.body).unwrap_or_default().trim();
                if text.split('.').count() != 3 {
                    return Err(unreadable(why));
                }
                self.verify_user_info(settings, text)?
            }
            _ => answer.object(WHAT)?,
        };
        // Claims with another subject are refused (OpenID Connect Core §5.3.2).
        if claims.get("sub").and_then(claims::subject_of).as_deref() != Some(subject) {
            let why = "the subject of user info is not that of the ID token";
            return Err(ProviderError::Token(why.to_owned()));
        }
        claims::remove_nulls(&mut claims);
        Ok(claims)
    }
}
