//! API tokens: `agy_api_<64 hexadecimal digits>` in the header `Authorization`, for programs that administer the service.
//!
//! A token counts only in a request without a session cookie, so no page can make a browser's session and a token act together.

use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use moka::sync::Cache;
use schema::api_token::{self, ApiToken, Lookup, PREFIX, Role};
use schema::clock::SharedClock;
use schema::ids::{Timestamp, Uid};
use secrecy::{ExposeSecret, SecretString};

use super::login_limit::{LoginLimit, Sender};
use super::session;
use crate::deps::{Dependencies, Deps};
use crate::error::{ApiError, Result};
use crate::limits::TOKEN_USES;
use crate::route::Tokens;

/// Time between two records of the use of one token.
const USE_INTERVAL: Duration = Duration::from_secs(60);

/// Limit of wrong tokens, and the tokens whose use was recorded in the last minute.
pub struct ApiTokens {
    limit: LoginLimit,
    recorded: Cache<Uid, ()>,
}

impl ApiTokens {
    /// Empty counters. They are not those of sign-ins: a program with an old token keeps no person out.
    pub fn new(clock: SharedClock) -> Self {
        Self {
            limit: LoginLimit::new(clock),
            recorded: TOKEN_USES.cache().time_to_live(USE_INTERVAL).build(),
        }
    }
}

/// A valid token that a request has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenBearer {
    /// Its identity.
    pub uid: Uid,
    /// Its name.
    pub name: String,
    /// Requests that it may make.
    pub role: Role,
    /// The last moment at which it is valid.
    pub expires_at: Timestamp,
}

impl From<ApiToken> for TokenBearer {
    fn from(token: ApiToken) -> Self {
        Self {
            uid: token.uid,
            name: token.name,
            role: token.role,
            expires_at: token.expires_at,
        }
    }
}

impl std::fmt::Display for TokenBearer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "token:{}", self.name)
    }
}

impl TokenBearer {
    /// Reports that it is still valid: what answers for long asks again. A token that cannot be looked up now is not known to
    /// be revoked.
    pub(crate) async fn lives(&self, deps: &Dependencies) -> bool {
        let now = deps.clock.now();
        let live = async {
            let mut connection = deps.db.read().await?;
            api_token::is_live(&mut connection, &self.uid, now).await
        };
        match live.await {
            Ok(live) => live,
            Err(error) => {
                ApiError::from(error).log();
                now <= self.expires_at
            }
        }
    }

    /// Refuses what its role may not do.
    ///
    /// # Errors
    /// 403 `wrong_role`, naming the role that is needed.
    pub(crate) fn check(&self, tokens: Tokens) -> Result<()> {
        match (tokens, self.role) {
            (Tokens::Read, Role::Read | Role::Admin) | (Tokens::Admin, Role::Admin) => Ok(()),
            (Tokens::Admin, Role::Read) => Err(ApiError::WrongRole(
                "this needs an API token of the role admin; this one has the role read",
            )),
            (Tokens::None, _) => Err(ApiError::WrongRole(
                "no API token may do this; sign in as a superadmin, or use the command line on the server's machine",
            )),
        }
    }
}

/// Finds the API token of a request. `None` when it shows none, or has a session cookie.
///
/// # Errors
/// 401 for a token that is unknown or has expired; 429 when the client has sent too many unknown ones.
pub(crate) async fn bearer(
    deps: &Deps,
    headers: &HeaderMap,
    sender: Sender,
) -> Result<Option<TokenBearer>> {
    let Some(shown) = presented_token(headers).filter(|_| !session::has_cookie(headers)) else {
        return Ok(None);
    };
    let digest = api_token::digest(&shown);
    let now = deps.clock.now();
    let found = api_token::find(&mut *deps.db.read().await?, &digest, now).await?;
    match found {
        Lookup::Valid(token) => {
            record_use(deps, &token);
            Ok(Some(token.into()))
        }
        Lookup::Expired(token) => Err(ApiError::ApiTokenInvalid(format!(
            "the API token {} expired at {}; create another one with `agentyard api-token create`",
            token.name,
            token.expires_at.to_rfc3339()
        ))),
        Lookup::Unknown => {
            // Valid tokens are found before: other clients behind the same address go on.
            deps.api_tokens.limit.check(sender)?;
            deps.api_tokens.limit.failed(sender);
            Err(ApiError::ApiTokenInvalid(
                "the API token is unknown or was revoked; create another one with `agentyard api-token create`"
                    .to_owned(),
            ))
        }
    }
}

/// The API token in the header, if it is one.
fn presented_token(headers: &HeaderMap) -> Option<SecretString> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = SecretString::from(token.trim());
    let is_token =
        scheme.eq_ignore_ascii_case("bearer") && token.expose_secret().starts_with(PREFIX);
    is_token.then_some(token)
}

/// Records a use of a token, at most once a minute, without delay for its request.
fn record_use(deps: &Deps, token: &ApiToken) {
    let entry = deps.api_tokens.recorded.entry(token.uid.clone());
    if !entry.or_insert(()).is_fresh() {
        return;
    }
    let (deps, uid) = (deps.clone(), token.uid.clone());
    deps.tasks.clone().spawn(async move {
        if let Err(error) = deps.writer.api_token_used(&uid).await {
            let error = crate::error::chain(&error);
            tracing::debug!(error, "the use of an API token could not be recorded");
        }
    });
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Bearer agy_api_00", true)]
    #[case("bearer  agy_api_00", true)]
    #[case("Basic agy_api_00", false)]
    #[case("Bearer alice:00", false)]
    #[case("agy_api_00", false)]
    fn api_tokens_are_recognised_by_prefix(#[case] header: &'static str, #[case] is: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static(header));
        assert_eq!(presented_token(&headers).is_some(), is, "{header}");
    }
}
