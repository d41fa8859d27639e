//! Redeems codes at the token endpoint (RFC 6749 §4.1.3).

use std::sync::atomic::Ordering;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use schema::live::PendingSignIn;
use secrecy::ExposeSecret;
use serde_json::{Map, Value};
use strum::{Display, EnumIter, IntoEnumIterator};
use url::form_urlencoded::{Serializer, byte_serialize};

use super::error::ProviderError;
use super::http::Answer;
use super::json::read_object;
use super::provider::Provider;
use super::{ProviderSettings, Returned};
use crate::drivers::shown;

/// The request, as messages name it.
const WHAT: &str = "the token request";

/// Tokens of a provider that a sign-in uses. Life times, scopes and kinds are not used, and may have any form.
pub(super) struct Tokens {
    /// Authorises the request for user info.
    pub(super) access_token: Option<String>,
    /// Says who has signed in.
    pub(super) id_token: Option<String>,
}

/// The ways to send a client's secret, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumIter)]
pub(super) enum Method {
    /// In the header, each part encoded by itself (RFC 6749 §2.3.1).
    #[strum(to_string = "client_secret_basic")]
    Basic,
    /// In the form.
    #[strum(to_string = "client_secret_post")]
    Post,
    /// In the header as it is: some providers compare it with what was encoded.
    #[strum(to_string = "client_secret_basic without encoding")]
    Raw,
}

/// The outcome of one request.
enum Outcome {
    Tokens(Tokens),
    /// The client, or its secret, is not accepted.
    Client(String),
    /// The request is not accepted: it may lack the secret where the provider looks for it.
    Request(String),
}

impl Provider {
    /// Redeems a code. A refused client, or request, is tried again with the other ways to send its secret that the provider may
    /// know. Returns the one that it takes, too; `None` for a client without a secret.
    ///
    /// # Errors
    /// As [`super::IdentityProvider::finish`].
    pub(super) async fn redeem(
        &self,
        settings: &ProviderSettings,
        pending: &PendingSignIn,
        returned: &Returned,
    ) -> Result<(Tokens, Option<Method>), (ProviderError, Option<Method>)> {
        let endpoint = (self.check_issuer(returned))
            .and_then(|()| self.description.endpoints())
            .map_err(|error| (error, None))?;
        let (mut reasons, mut tried, mut refused) = (Vec::new(), Vec::new(), false);
        for method in self.methods(settings) {
            let (form, header) = request(settings, pending, returned, method);
            let answer = self.http.post(endpoint.1, form, header).await;
            let why = match answer.and_then(|answer| read(&answer)) {
                Ok(Outcome::Tokens(tokens)) => {
                    self.remember(method);
                    return Ok((tokens, method));
                }
                Ok(Outcome::Client(why)) => {
                    refused = true;
                    why
                }
                Ok(Outcome::Request(why)) => why,
                Err(error) => {
                    // A client whose code is refused is known.
                    if matches!(error, ProviderError::Code(_)) {
                        self.remember(method);
                    }
                    return Err((error, method));
                }
            };
            tried.extend(method.map(|method| method.to_string()));
            if !reasons.contains(&why) {
                reasons.push(why);
            }
        }
        let mut why = reasons.join("; ");
        if !tried.is_empty() {
            why = format!("{why}; sent as {}", tried.join(", "));
        }
        if !refused {
            return Err((ProviderError::Code(why), None));
        }
        let check = "oidc.client_id and oidc.client_secret";
        Err((ProviderError::Client(why, check), None))
    }

    /// The ways to send the secret that the provider may know, the one that it took last first; one `None` without a secret.
    fn methods(&self, settings: &ProviderSettings) -> Vec<Option<Method>> {
        let Some(secret) = &settings.client_secret else {
            return vec![None];
        };
        let names = |name: &str| {
            let known = self.description.methods.as_ref();
            known.is_none_or(|known| known.iter().any(|it| it == name))
        };
        let (basic, post) = (names("client_secret_basic"), names("client_secret_post"));
        // A provider that names neither takes one of them nevertheless, or no client of this kind.
        let (basic, post) = if basic || post {
            (basic, post)
        } else {
            (true, true)
        };
        let plain = encoded(&settings.client_id) == settings.client_id
            && encoded(secret.expose_secret()) == secret.expose_secret();
        let mut methods: Vec<Method> = Method::iter()
            .filter(|method| match method {
                Method::Basic => basic,
                Method::Post => post,
                Method::Raw => basic && !plain,
            })
            .collect();
        let last = usize::from(self.taken.load(Ordering::Relaxed));
        methods.sort_by_key(|method| Some(*method) != Method::iter().nth(last));
        methods.into_iter().map(Some).collect()
    }

    fn remember(&self, method: Option<Method>) {
        let number = Method::iter().position(|it| Some(it) == method);
        let number = number.and_then(|number| u8::try_from(number).ok());
        self.taken
            .store(number.unwrap_or_default(), Ordering::Relaxed);
    }

    /// The answer of another provider is not redeemed at this one (RFC 9207 §2.4).
    fn check_issuer(&self, returned: &Returned) -> Result<(), ProviderError> {
        let expected = &self.description.issuer;
        match &returned.issuer {
            Some(issuer) if issuer != expected => Err(ProviderError::Token(
                "the answer comes from another issuer".to_owned(),
            )),
            None if self.description.names_issuer => Err(ProviderError::Token(
                "the answer does not say which issuer it comes from".to_owned(),
            )),
            _ => Ok(()),
        }
    }
}

fn encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

/// The form, and the credentials in the header.
fn request(
    settings: &ProviderSettings,
    pending: &PendingSignIn,
    returned: &Returned,
    method: Option<Method>,
) -> (String, Option<HeaderValue>) {
    let (id, secret) = (&settings.client_id, settings.client_secret.as_ref());
    let secret = secret.map_or("", |secret| secret.expose_secret());
    let mut form = Serializer::new(String::new());
    form.append_pair("grant_type", "authorization_code")
        .append_pair("code", returned.code.expose_secret())
        .append_pair("redirect_uri", &settings.redirect_url)
        .append_pair("code_verifier", &pending.verifier);
    let credentials = match method {
        Some(Method::Basic) => Some(format!("{}:{}", encoded(id), encoded(secret))),
        Some(Method::Raw) => Some(format!("{id}:{secret}")),
        Some(Method::Post) => {
            form.append_pair("client_id", id);
            form.append_pair("client_secret", secret);
            None
        }
        None => {
            form.append_pair("client_id", id);
            None
        }
    };
    let header = credentials.and_then(|credentials| {
        let credentials = format!("Basic {}", STANDARD.encode(credentials));
        HeaderValue::from_str(&credentials).ok()
    });
    (form.finish(), header)
}

/// Reads an answer. What it has may be tokens, so nothing of it is repeated but what says that it is an error.
fn read(answer: &Answer) -> Result<Outcome, ProviderError> {
    let text = |object: &Map<String, Value>, name: &str| {
        let text = object.get(name).and_then(Value::as_str);
        text.map(str::to_owned)
    };
    let denied = matches!(answer.status.as_u16(), 401 | 403);
    let unreadable = |why: &str| ProviderError::Unreadable {
        what: WHAT,
        why: why.to_owned(),
    };
    let object = match read_object(&answer.body) {
        Ok(object) => object,
        Err(_) if denied => return Ok(Outcome::Client(format!("status {}", answer.status))),
        Err(why) => {
            return Err(unreadable(&format!(
                "status {}: {why}",
                answer.status.as_u16()
            )));
        }
    };
    let tokens = Tokens {
        access_token: text(&object, "access_token"),
        id_token: text(&object, "id_token"),
    };
    let has_tokens = tokens.access_token.is_some() || tokens.id_token.is_some();
    if answer.status.is_success() && has_tokens {
        return Ok(Outcome::Tokens(tokens));
    }
    // Some say so with status 200.
    let Some(error) = text(&object, "error") else {
        return match denied {
            true => Ok(Outcome::Client(format!("status {}", answer.status))),
            false => Err(unreadable("it is neither tokens nor an error")),
        };
    };
    let description = text(&object, "error_description").unwrap_or_default();
    let why = shown(&format!("{error}: {description}"));
    match error.as_str() {
        "invalid_grant" => Err(ProviderError::Code(why)),
        "invalid_client" | "unauthorized_client" => Ok(Outcome::Client(why)),
        // Some providers name a refused client by an error of their own.
        _ if answer.status.as_u16() == 401 => Ok(Outcome::Client(why)),
        "invalid_request" => Ok(Outcome::Request(why)),
        _ => Err(ProviderError::Client(
            why,
            "the client's settings at the provider",
        )),
    }
}
