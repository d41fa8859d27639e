//! One provider as it describes itself, and what can be asked of it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreClaimName, CoreClaimType, CoreClientAuthMethod,
    CoreErrorResponseType, CoreGenderClaim, CoreGrantType, CoreJsonWebKey,
    CoreJweContentEncryptionAlgorithm, CoreJweKeyManagementAlgorithm, CoreJwsSigningAlgorithm,
    CoreResponseMode, CoreResponseType, CoreRevocableToken, CoreRevocationErrorResponse,
    CoreSubjectIdentifierType, CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::{
    AccessTokenHash, AdditionalProviderMetadata, AuthType, AuthenticationFlow, AuthorizationCode,
    ClaimsVerificationError, Client, ClientId, ClientSecret, CsrfToken, DiscoveryError,
    EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet, HttpRequest,
    HttpResponse, IdTokenFields, IdTokenVerifier, IssuerUrl, JsonWebKey, JsonWebKeyUse, Nonce,
    OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier, ProviderMetadata, RedirectUrl,
    RequestTokenError, Scope, StandardErrorResponse, StandardTokenResponse, TokenResponse,
    UserInfoClaims,
};
use schema::ids::Timestamp;
use schema::live::{PendingSignIn, ProvidedIdentity};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::timeout;
use url::Url;

use super::claims::{self, OtherClaims};
use super::error::ProviderError;
use super::http::{Http, TIMEOUT};
use super::{ProviderSettings, Returned};
use crate::drivers::shown;

/// How far the provider's clock may be ahead of this machine's.
const SKEW: Duration = Duration::from_secs(60);
/// How long a sign-in waits to hear of groups that the ID token leaves out.
const GROUPS: Duration = Duration::from_millis(1500);
/// Longest subject (OpenID Connect Core §2).
const LONGEST_SUBJECT: usize = 255;

/// How ID tokens may be signed: with a key of the provider, never with what this service knows, too, nor not at all.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// What a provider says of itself beyond OpenID Connect Discovery.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Beyond {
    /// It says in each answer who has issued it (RFC 9207).
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl AdditionalProviderMetadata for Beyond {}

type Metadata = ProviderMetadata<
    Beyond,
    CoreAuthDisplay,
    CoreClientAuthMethod,
    CoreClaimName,
    CoreClaimType,
    CoreGrantType,
    CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm,
    CoreJsonWebKey,
    CoreResponseMode,
    CoreResponseType,
    CoreSubjectIdentifierType,
>;

type Fields = IdTokenFields<
    OtherClaims,
    EmptyExtraTokenFields,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm,
>;

/// An answer that is on its way.
type Answering = BoxFuture<'static, Result<HttpResponse, ProviderError>>;

type Tokens = StandardTokenResponse<Fields, CoreTokenType>;

/// This service at a provider.
type OidcClient = Client<
    OtherClaims,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    Tokens,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// Why a token was refused.
pub(super) enum Refusal {
    /// Its key is not known: the provider may have a new one.
    Key(String),
    /// For good.
    Final(ProviderError),
}

/// A provider that has described itself.
pub(super) struct Provider {
    http: Arc<Http>,
    metadata: Metadata,
}

impl Provider {
    /// Asks the provider for its description and its keys (OpenID Connect Discovery 1.0 §4).
    pub(super) async fn describe(
        issuer: &str,
        ca_certificate: Option<String>,
    ) -> Result<Self, ProviderError> {
        const WHAT: &str = "the discovery request";
        let unreadable = |why: String| ProviderError::Unreadable {
            what: WHAT,
            why: shown(&why),
        };
        let url = Url::parse(issuer).map_err(|error| unreadable(error.to_string()))?;
        let http = Arc::new(Http::new(&url, ca_certificate).await?);
        let issuer =
            IssuerUrl::new(issuer.to_owned()).map_err(|error| unreadable(error.to_string()))?;
        let metadata = Metadata::discover_async(issuer, &by(&http)).await;
        let metadata = metadata.map_err(|error| match error {
            DiscoveryError::Request(error) => error,
            DiscoveryError::Response(status, ..) if !status.is_success() => ProviderError::Status {
                what: WHAT,
                status: status.as_u16(),
            },
            DiscoveryError::Response(_, _, why) => unreadable(why),
            DiscoveryError::Validation(why) => ProviderError::Issuer(shown(&why)),
            DiscoveryError::Parse(error) => unreadable(error.to_string()),
            error => unreadable(error.to_string()),
        })?;
        let authorization = metadata.authorization_endpoint().url();
        if url.scheme() == "https" && authorization.scheme() != "https" {
            return Err(ProviderError::Plain(shown(authorization.as_str())));
        }
        Ok(Self { http, metadata })
    }

    /// How many keys ID tokens can be signed with.
    pub(super) fn keys(&self) -> usize {
        let keys = self.metadata.jwks().keys().iter();
        keys.filter(|key| key.key_use().is_none_or(JsonWebKeyUse::allows_signature))
            .count()
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

    fn client(&self, settings: &ProviderSettings) -> Result<OidcClient, ProviderError> {
        let secret = settings.client_secret.as_ref();
        let secret = secret.map(|secret| ClientSecret::new(secret.expose_secret().to_owned()));
        let client = OidcClient::from_provider_metadata(
            self.metadata.clone(),
            ClientId::new(settings.client_id.clone()),
            secret,
        );
        let redirect = RedirectUrl::new(settings.redirect_url.clone())
            .map_err(|_| ProviderError::Client("no address".to_owned(), "oidc.redirect_url"))?;
        let known = self.metadata.token_endpoint_auth_methods_supported();
        // Basic unless the provider says that it only knows the other (OpenID Connect Discovery §3).
        let basic = known.is_none_or(|known| {
            known.contains(&CoreClientAuthMethod::ClientSecretBasic)
                || !known.contains(&CoreClientAuthMethod::ClientSecretPost)
        });
        let kind = if basic && settings.client_secret.is_some() {
            AuthType::BasicAuth
        } else {
            AuthType::RequestBody
        };
        Ok(client.set_redirect_uri(redirect).set_auth_type(kind))
    }

    /// A new sign-in.
    pub(super) fn begin(
        &self,
        settings: &ProviderSettings,
        again: bool,
    ) -> Result<(Url, PendingSignIn), ProviderError> {
        let client = self.client(settings)?;
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

    /// Redeems the code.
    pub(super) async fn redeem(
        &self,
        settings: &ProviderSettings,
        pending: &PendingSignIn,
        returned: &Returned,
    ) -> Result<Tokens, ProviderError> {
        const WHAT: &str = "the token request";
        self.check_issuer(returned)?;
        let client = self.client(settings)?;
        let code = AuthorizationCode::new(returned.code.expose_secret().to_owned());
        let request = client
            .exchange_code(code)
            .map_err(|_| ProviderError::Unreadable {
                what: "the discovery request",
                why: "there is no token_endpoint".to_owned(),
            })?;
        let verifier = PkceCodeVerifier::new(pending.verifier.clone());
        let http = by(&self.http);
        let tokens = request.set_pkce_verifier(verifier).request_async(&http);
        tokens.await.map_err(|error| match error {
            RequestTokenError::Request(error) => error,
            RequestTokenError::ServerResponse(said) => {
                let text = said.error_description().map(String::as_str);
                let text = shown(&format!("{}: {}", said.error(), text.unwrap_or_default()));
                match said.error() {
                    CoreErrorResponseType::InvalidGrant | CoreErrorResponseType::InvalidRequest => {
                        ProviderError::Code(text)
                    }
                    CoreErrorResponseType::InvalidClient
                    | CoreErrorResponseType::UnauthorizedClient => {
                        ProviderError::Client(text, "oidc.client_id and oidc.client_secret")
                    }
                    _ => ProviderError::Client(text, "the client's settings at the provider"),
                }
            }
            // What it has sent may be tokens.
            RequestTokenError::Parse(error, _) => ProviderError::Unreadable {
                what: WHAT,
                why: shown(&format!("at {}", error.path())),
            },
            RequestTokenError::Other(_) => ProviderError::Unreadable {
                what: WHAT,
                why: "it is neither tokens nor an error".to_owned(),
            },
        })
    }

    /// The answer of another provider is not redeemed at this one (RFC 9207 §2.4).
    fn check_issuer(&self, returned: &Returned) -> Result<(), ProviderError> {
        let expected = self.metadata.issuer().as_str();
        let beyond = self.metadata.additional_metadata();
        match &returned.issuer {
            Some(issuer) if issuer != expected => {
                Err(refused("the answer comes from another issuer"))
            }
            None if beyond.authorization_response_iss_parameter_supported => Err(refused(
                "the answer does not say which issuer it comes from",
            )),
            _ => Ok(()),
        }
    }

    /// The claims of the ID token, once it is one (OpenID Connect Core §3.1.3.7).
    pub(super) fn verify(
        &self,
        settings: &ProviderSettings,
        pending: &PendingSignIn,
        tokens: &Tokens,
        now: Timestamp,
    ) -> Result<(String, Map<String, Value>), Refusal> {
        use openidconnect::{ClaimsVerificationError as Claims, SignatureVerificationError as Key};

        let last = |why: &str| Refusal::Final(refused(why));
        let token = tokens.id_token().ok_or_else(|| last("there is none"))?;
        let latest = now.plus(SKEW).as_secs();
        let verifier = IdTokenVerifier::new_public_client(
            ClientId::new(settings.client_id.clone()),
            self.metadata.issuer().clone(),
            self.metadata.jwks().clone(),
        )
        .set_allowed_algs(ALGORITHMS)
        // Others may be meant, too, where it says that it was issued to us; that is looked at below.
        .set_other_audience_verifier_fn(|_| true)
        .set_issue_time_verifier_fn(move |issued| {
            if issued.timestamp() > latest {
                return Err("it was issued in the future".to_owned());
            }
            Ok(())
        });
        let nonce = Nonce::new(pending.nonce.clone());
        let claims = token.claims(&verifier, &nonce);
        let claims = claims.map_err(|error| match error {
            Claims::SignatureVerification(
                key @ (Key::NoMatchingKey | Key::CryptoError(_) | Key::InvalidKey(_)),
            ) => Refusal::Key(shown(&key.to_string())),
            Claims::SignatureVerification(why) => last(&why.to_string()),
            // What was expected is as secret as what was said.
            Claims::InvalidNonce(_) => last("its nonce is not that of this sign-in"),
            why => last(&why.to_string()),
        })?;
        let party = claims.authorized_party().map(|party| party.as_str());
        let alone = claims.audiences().len() == 1;
        if party.map_or(!alone, |party| party != settings.client_id) {
            return Err(last("it was issued to another client"));
        }
        if let Some(expected) = claims.access_token_hash() {
            let hash = token.signing_alg().ok().and_then(|algorithm| {
                let key = token.signing_key(&verifier).ok()?;
                AccessTokenHash::from_token(tokens.access_token(), algorithm, key).ok()
            });
            if hash.as_ref() != Some(expected) {
                return Err(last("it belongs to another access token"));
            }
        }
        let subject = claims.subject().as_str();
        let visible = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
        if !(1..=LONGEST_SUBJECT).contains(&subject.len()) || !subject.bytes().all(visible) {
            return Err(last("its subject is not 1 to 255 ASCII characters"));
        }
        let all = claims::all(claims);
        let begins = all.get("nbf").and_then(Value::as_f64);
        if begins.is_some_and(|begins| begins > latest as f64) {
            return Err(last("it is not valid yet"));
        }
        Ok((subject.to_owned(), all))
    }

    /// Who these claims speak of; what they leave out is asked for.
    pub(super) async fn identify(
        &self,
        settings: &ProviderSettings,
        tokens: &Tokens,
        subject: String,
        mut claims: Map<String, Value>,
    ) -> Result<ProvidedIdentity, ProviderError> {
        let nameless = !claims.contains_key(&settings.username_claim);
        if nameless || !claims.contains_key(&settings.groups_claim) {
            let asked = self.user_info(settings, tokens, &subject);
            let limit = if nameless { TIMEOUT } else { GROUPS };
            let asked = timeout(limit, asked).await;
            match asked.unwrap_or(Err(ProviderError::Timeout(limit))) {
                Ok(more) => claims::add(&mut claims, more),
                Err(error) if nameless => return Err(error),
                // Which groups somebody is in is not known; everything else is.
                Err(error) => {
                    tracing::warn!(%error, "the identity provider has not said which groups a user is in");
                }
            }
        }
        claims::identity(settings, &subject, &claims)
    }

    /// What the provider says of the user besides (OpenID Connect Core §5.3); nothing where it has no such endpoint.
    async fn user_info(
        &self,
        settings: &ProviderSettings,
        tokens: &Tokens,
        subject: &str,
    ) -> Result<Map<String, Value>, ProviderError> {
        use openidconnect::UserInfoError as Failure;
        const WHAT: &str = "the user info request";
        let unreadable = |why: &str| ProviderError::Unreadable {
            what: WHAT,
            why: shown(why),
        };
        let token = tokens.access_token();
        // The library takes it for one that can stand in a header.
        let visible = token.secret().bytes().all(|byte| byte.is_ascii_graphic());
        let expected = openidconnect::SubjectIdentifier::new(subject.to_owned());
        let client = self.client(settings)?;
        let Ok(request) = client.user_info(token.clone(), Some(expected)) else {
            return Ok(Map::new());
        };
        if !visible {
            return Err(unreadable("the access token is none"));
        }
        let http = by(&self.http);
        let answer: Result<UserInfoClaims<OtherClaims, CoreGenderClaim>, _> =
            request.request_async(&http).await;
        match answer {
            Ok(answer) => Ok(claims::all(&answer)),
            Err(Failure::Request(error)) => Err(error),
            Err(Failure::Response(status, ..)) => Err(ProviderError::Status {
                what: WHAT,
                status: status.as_u16(),
            }),
            Err(Failure::ClaimsVerification(ClaimsVerificationError::InvalidSubject(_))) => {
                Err(refused("user info speaks of somebody else"))
            }
            Err(Failure::ClaimsVerification(_)) => Err(unreadable("it can't be verified")),
            Err(Failure::Parse(error)) => Err(unreadable(&format!("at {}", error.path()))),
            Err(_) => Err(unreadable("it is no JSON")),
        }
    }
}

fn refused(why: &str) -> ProviderError {
    ProviderError::Token(shown(why))
}

/// Requests as the library wants them.
fn by(http: &Arc<Http>) -> impl Fn(HttpRequest) -> Answering + Send + Sync + 'static {
    let http = Arc::clone(http);
    move |request| {
        let http = Arc::clone(&http);
        Box::pin(async move { http.send(request).await })
    }
}
