//! A provider as it describes itself (OpenID Connect Discovery 1.0 §3), as far as a sign-in needs it.

use serde_json::{Map, Value};
use url::Url;

use super::error::ProviderError;
use crate::drivers::shown;

/// Where descriptions are, below an issuer.
const PLACE: &str = "/.well-known/openid-configuration";
/// The request for one, as messages name it.
pub(super) const WHAT: &str = "the discovery request";

/// The members of a description that are used. All others may have any form, or be missing.
#[derive(Debug, Clone)]
pub(super) struct Description {
    /// The issuer, as the provider and the setting write it.
    pub(super) issuer: String,
    authorization: Endpoint,
    token: Endpoint,
    keys: Endpoint,
    user_info: Endpoint,
    /// Methods by which the token endpoint takes the client's secret; `None` when the provider names none.
    pub(super) methods: Option<Vec<String>>,
    /// The provider says in each answer who has issued it (RFC 9207).
    pub(super) names_issuer: bool,
}

/// The address of an endpoint; what stands there instead; or nothing.
#[derive(Debug, Clone, Default)]
enum Endpoint {
    At(Url),
    Odd(String),
    #[default]
    Missing,
}

impl Endpoint {
    fn of(document: &Map<String, Value>, name: &str) -> Self {
        let Some(value) = document.get(name).filter(|value| !value.is_null()) else {
            return Self::Missing;
        };
        let url = value.as_str().and_then(|text| Url::parse(text.trim()).ok());
        match url.filter(|url| matches!(url.scheme(), "http" | "https")) {
            Some(url) => Self::At(url),
            None => Self::Odd(shown(&value.to_string())),
        }
    }

    fn url(&self) -> Option<&Url> {
        match self {
            Self::At(url) => Some(url),
            Self::Odd(_) | Self::Missing => None,
        }
    }
}

/// The address of the description of an issuer.
pub(super) fn place(issuer: &Url) -> Result<Url, ProviderError> {
    let text = issuer.as_str();
    let unreadable = |error: url::ParseError| ProviderError::Unreadable {
        what: WHAT,
        why: shown(&error.to_string()),
    };
    if text.ends_with(PLACE) {
        // The description then says what the issuer is.
        return Ok(issuer.clone());
    }
    let base = text.strip_suffix('/').unwrap_or(text);
    Url::parse(&format!("{base}{PLACE}")).map_err(unreadable)
}

impl Description {
    /// Reads the description of `issuer`.
    ///
    /// # Errors
    /// [`ProviderError::Issuer`] when it is another one's.
    pub(super) fn of(issuer: &str, document: &Map<String, Value>) -> Result<Self, ProviderError> {
        match document.get("issuer").and_then(Value::as_str) {
            Some(named) if named == issuer => {}
            // Descriptions of several tenants at once have a placeholder (Entra ID: `common`, `organizations`).
            Some(named) if named.contains('{') => {
                let (_, from) = named.split_once('{').unwrap_or_default();
                let (name, _) = from.split_once('}').unwrap_or((from, ""));
                return Err(ProviderError::Issuer(shown(&format!(
                    "{named} with your own id in place of {{{name}}}"
                ))));
            }
            Some(named) => return Err(ProviderError::Issuer(shown(named))),
            None => {
                return Err(ProviderError::Unreadable {
                    what: WHAT,
                    why: "it has no issuer, so it is no description; check oidc.provider_url"
                        .to_owned(),
                });
            }
        }
        let endpoint = |name| Endpoint::of(document, name);
        let methods = document.get("token_endpoint_auth_methods_supported");
        let methods = match methods {
            Some(Value::String(method)) => Some(vec![method.clone()]),
            Some(Value::Array(methods)) => {
                let methods = methods.iter().filter_map(Value::as_str);
                Some(methods.map(str::to_owned).collect())
            }
            _ => None,
        };
        let names_issuer = document.get("authorization_response_iss_parameter_supported");
        Ok(Self {
            issuer: issuer.to_owned(),
            authorization: endpoint("authorization_endpoint"),
            token: endpoint("token_endpoint"),
            keys: endpoint("jwks_uri"),
            user_info: endpoint("userinfo_endpoint"),
            methods,
            names_issuer: names_issuer == Some(&Value::Bool(true)),
        })
    }

    /// Where the provider's keys are, if it has any.
    pub(super) fn keys(&self) -> Option<&Url> {
        self.keys.url()
    }

    /// Where the claims are that an ID token leaves out, if the provider tells them.
    pub(super) fn user_info(&self) -> Option<&Url> {
        self.user_info.url()
    }

    /// Where people sign in, and where codes are redeemed.
    ///
    /// # Errors
    /// [`ProviderError::Lacks`] with everything that a sign-in needs and the description does not have, the keys included: who
    /// came back from the provider could not be let in without them.
    pub(super) fn endpoints(&self) -> Result<(&Url, &Url), ProviderError> {
        let needed = [
            (
                "authorization_endpoint",
                &self.authorization,
                "where people sign in",
            ),
            ("token_endpoint", &self.token, "where codes are redeemed"),
            ("jwks_uri", &self.keys, "with which ID tokens are verified"),
        ];
        let lacking = needed.iter().filter_map(|(name, endpoint, what)| {
            let value = match endpoint {
                Endpoint::At(_) => return None,
                Endpoint::Odd(value) => format!("{name} is {value} and no address"),
                Endpoint::Missing => format!("{name} is missing"),
            };
            Some(format!("{value}, {what}"))
        });
        let lacking: Vec<String> = lacking.collect();
        match (self.authorization.url(), self.token.url()) {
            (Some(authorization), Some(token)) if lacking.is_empty() => Ok((authorization, token)),
            _ => Err(ProviderError::Lacks(lacking.join("; "))),
        }
    }
}
