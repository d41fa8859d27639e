//! MCP tokens: `<name>:<64 hexadecimal digits>`, in the header `Authorization` or, from clients that can send none, in the query.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use schema::ids::{Uid, UserName};
use schema::mcp_token::{self, Holder};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use super::credentials::belongs_to_mode;
use super::{Account, Role};
use crate::deps::Dependencies;
use crate::error::{ApiError, Result};
use crate::settings::WebSettings;

/// The parameter of the query.
const PARAMETER: &str = "token";

/// Who has shown a valid token.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Bearer {
    /// The account.
    pub account: Account,
    /// Which of its tokens it was.
    pub version: i64,
    /// The token, when it stood in the query. No other replica is told of it.
    #[serde(skip)]
    pub in_query: Option<SecretString>,
}

/// A token as it was shown.
struct Shown {
    name: UserName,
    secret: SecretString,
    in_query: bool,
}

impl Shown {
    fn of(headers: &HeaderMap, query: &str) -> Option<Self> {
        let header = headers.get(AUTHORIZATION).and_then(|value| {
            let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
            let bearer = scheme.eq_ignore_ascii_case("bearer");
            bearer.then(|| token.trim().to_owned())
        });
        let in_query = header.is_none();
        let parameter = || {
            let mut all = url::form_urlencoded::parse(query.as_bytes());
            // No name and no token has a space: it was a plus, which clients often do not encode.
            all.find(|(name, _)| name == PARAMETER)
                .map(|(_, value)| value.replace(' ', "+"))
        };
        let token = header.or_else(parameter)?;
        let (name, secret) = token.rsplit_once(':')?;
        Some(Self {
            name: name.parse().ok()?,
            secret: secret.to_owned().into(),
            in_query,
        })
    }
}

/// Finds out whose token a request bears.
///
/// # Errors
/// 401 without a valid token; 403 for one of a superadmin, of an account that is disabled or not on the whitelist.
pub async fn bearer(deps: &Dependencies, headers: &HeaderMap, query: &str) -> Result<Bearer> {
    let shown = Shown::of(headers, query).ok_or(ApiError::TokenInvalid)?;
    let holder = mcp_token::find(&mut *deps.db.read().await?, &shown.name).await?;
    // As much work for names that nobody has.
    let nobody = Uid::from(String::new());
    let (uid, version) = match &holder {
        Some(holder) => (&holder.uid, holder.version),
        None => (&nobody, 0),
    };
    let secret = deps.master_key.mcp_token(uid, version);
    let secret = secret.expose_secret().as_bytes();
    let same = bool::from(secret.ct_eq(shown.secret.expose_secret().as_bytes()));
    let holder = holder.filter(|_| same).ok_or(ApiError::TokenInvalid)?;
    may_use(&holder, &deps.settings())?;
    let in_query = shown.in_query.then(|| {
        let token = format!("{}:{}", shown.name, shown.secret.expose_secret());
        SecretString::from(token)
    });
    Ok(Bearer {
        account: Account {
            uid: holder.uid,
            name: holder.name,
            role: holder.role,
        },
        version: holder.version,
        in_query,
    })
}

/// Whether the holder of a token may use it now.
///
/// # Errors
/// 403, why not; 401 when accounts of its source are none in the present authentication mode.
pub fn may_use(holder: &Holder, settings: &WebSettings) -> Result<()> {
    if holder.role == Role::Superadmin {
        return Err(ApiError::WrongRole(
            "for ordinary users only; superadmins have no agent",
        ));
    }
    if !belongs_to_mode(holder.role, holder.source, settings.auth_mode) {
        return Err(ApiError::TokenInvalid);
    }
    if holder.disabled {
        return Err(ApiError::AccountDisabled);
    }
    if settings.whitelist_enabled && !holder.whitelisted {
        return Err(ApiError::NotWhitelisted);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Some("Bearer alice:abc"), "", Some(("alice", "abc", false)))]
    #[case(Some("bearer  alice:abc"), "token=bob:x", Some(("alice", "abc", false)))]
    #[case(None, "a=1&token=alice%3Aabc", Some(("alice", "abc", true)))]
    #[case(None, "token=alice:abc", Some(("alice", "abc", true)))]
    #[case(None, "token=alice+lab%2Btwo:abc", Some(("alice+lab+two", "abc", true)))]
    #[case(Some("Basic alice:abc"), "token=bob:x", Some(("bob", "x", true)))]
    #[case(Some("Bearer alice"), "", None)]
    #[case(Some("Bearer"), "", None)]
    #[case(None, "", None)]
    #[case(None, "token=", None)]
    #[case(None, "token=../:x", None)]
    fn tokens_stand_in_the_header_or_the_query(
        #[case] header: Option<&'static str>,
        #[case] query: &str,
        #[case] expected: Option<(&str, &str, bool)>,
    ) {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(AUTHORIZATION, HeaderValue::from_static(header));
        }
        let shown = Shown::of(&headers, query);
        let shown = shown.as_ref().map(|shown| {
            (
                shown.name.as_str(),
                shown.secret.expose_secret(),
                shown.in_query,
            )
        });
        assert_eq!(shown, expected);
    }
}
