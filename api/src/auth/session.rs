//! The session cookie: `session=<username>:<unix seconds>:<hex HMAC-SHA256>`.
//!
//! The signature covers `username:timestamp`. It only proves that this service issued the cookie;
//! whether the session lives is decided by its row on the server.

use std::time::Duration;

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use schema::ids::{Timestamp, UserName};
use schema::session::SKEW;
use serde::{Deserialize, Serialize};

use super::Signer;
use crate::error::{ApiError, Result};

/// How long a session is valid.
pub const VALIDITY: Duration = Duration::from_secs(24 * 60 * 60);
/// How many cookies of our name are checked in one request.
const MAX_CANDIDATES: usize = 8;
/// The cookie's name.
const NAME: &str = "session";

/// What a cookie claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionClaims {
    /// The account's name.
    pub username: UserName,
    /// When the session was issued, in whole seconds; together with the account it is the
    /// session's identity.
    pub issued_at: Timestamp,
}

impl SessionClaims {
    /// Claims of a session issued at `issued_at`; parts of a second are cut off.
    pub fn new(username: UserName, issued_at: Timestamp) -> Self {
        Self {
            username,
            issued_at: Timestamp::from_secs(issued_at.as_secs()),
        }
    }

    fn message(&self) -> String {
        format!("{}:{}", self.username, self.issued_at.as_secs())
    }

    /// The cookie's value.
    pub fn to_cookie_value(&self, signer: &Signer) -> String {
        let message = self.message();
        let signature = signer.sign_session(&message);
        format!("{message}:{signature}")
    }

    /// The claims of a cookie value with a valid signature and age; `None` for any other.
    pub fn verify(value: &str, signer: &Signer, now: Timestamp) -> Option<Self> {
        let (username, rest) = value.split_once(':')?;
        let (seconds, signature) = rest.split_once(':')?;
        let signature: [u8; 32] = hex::decode(signature).ok()?.try_into().ok()?;
        let claims = Self {
            username: username.parse().ok()?,
            issued_at: Timestamp::from_secs(seconds.parse().ok()?),
        };
        // The message is built anew, so other spellings of the same number are not accepted.
        if claims.message() != format!("{username}:{seconds}")
            || !signer.session_signature_is_valid(&claims.message(), &signature)
        {
            return None;
        }
        claims.is_current(now).then_some(claims)
    }

    /// Whether the session's age is one that counts.
    pub fn is_current(&self, now: Timestamp) -> bool {
        let too_old = now.since(self.issued_at) > VALIDITY;
        let too_new = self.issued_at.since(now) > SKEW;
        !too_old && !too_new
    }

    /// The `Set-Cookie` value that starts this session; `secure` when the connection is encrypted.
    ///
    /// # Errors
    /// [`ApiError::Internal`]; names have no character that a header refuses, so in practice never.
    pub fn set_cookie(&self, signer: &Signer, secure: bool) -> Result<HeaderValue> {
        let value = self.to_cookie_value(signer);
        let max_age = VALIDITY.as_secs();
        let secure = if secure { "; Secure" } else { "" };
        let cookie =
            format!("{NAME}={value}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Lax{secure}");
        let mut cookie = HeaderValue::try_from(cookie).map_err(ApiError::internal)?;
        cookie.set_sensitive(true);
        Ok(cookie)
    }
}

/// The `Set-Cookie` value that ends any session in the browser.
pub fn clear_cookie(secure: bool) -> HeaderValue {
    HeaderValue::from_static(if secure {
        "session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure"
    } else {
        "session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"
    })
}

/// The verified claims of a request's cookies, in the order sent. Several can be valid at once when
/// cookies of other paths or domains are sent along; only the first few are checked.
pub fn claims_of(headers: &HeaderMap, signer: &Signer, now: Timestamp) -> Vec<SessionClaims> {
    cookies(headers, |name| name == NAME)
        .take(MAX_CANDIDATES)
        .filter_map(|(_, value)| SessionClaims::verify(value, signer, now))
        .collect()
}

/// Reports that a request carries a session cookie, valid or not.
pub fn has_cookie(headers: &HeaderMap) -> bool {
    cookies(headers, |name| name == NAME).next().is_some()
}

/// The cookies whose names are wanted, with their values, in the order sent.
pub fn cookies(
    headers: &HeaderMap,
    wanted: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&str, &str)> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|header| header.to_str().ok())
        .flat_map(|header| header.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(move |(name, _)| wanted(name))
}

#[cfg(test)]
mod tests {
    use super::super::signer::test_signer;
    use super::*;

    const VECTOR: &str =
        "testuser:1778500000:4717dab8e9e3aac44ae989f497927e4c24782fc23d4d8bce92760844bc12c886";
    const ISSUED: Timestamp = Timestamp::from_secs(1_778_500_000);

    fn claims() -> SessionClaims {
        SessionClaims::new("testuser".parse().unwrap(), ISSUED)
    }

    #[test]
    fn the_cookie_value_is_the_published_vector() {
        assert_eq!(claims().to_cookie_value(&test_signer()), VECTOR);
        let read = SessionClaims::verify(VECTOR, &test_signer(), ISSUED);
        assert_eq!(read, Some(claims()));
    }

    #[test]
    fn a_session_is_valid_for_24_hours_and_not_before_its_time() {
        let day = VALIDITY;
        let tick = Duration::from_millis(1);
        for (now, valid) in [
            (ISSUED.plus(day), true),
            (ISSUED.plus(day + tick), false),
            (ISSUED.minus(SKEW), true),
            (ISSUED.minus(SKEW + tick), false),
        ] {
            let read = SessionClaims::verify(VECTOR, &test_signer(), now);
            assert_eq!(read.is_some(), valid, "{}", now.to_rfc3339());
        }
    }

    #[test]
    fn forged_and_malformed_values_are_refused() {
        let signature = VECTOR.rsplit(':').next().unwrap();
        let other = Signer::new(&b"other".to_vec().into()).unwrap();
        for bad in [
            String::new(),
            "testuser".to_owned(),
            "testuser:1778500000".to_owned(),
            format!("testuser:1778500000:{}", "0".repeat(64)),
            format!("admin:1778500000:{signature}"),
            format!("testuser:1778500001:{signature}"),
            format!("testuser:+1778500000:{signature}"),
            format!("testuser:01778500000:{signature}"),
            format!("testuser:1778500000:{signature}00"),
            format!("testuser:1778500000:{signature}:"),
            format!(" testuser:1778500000:{signature}"),
            format!("testuser:99999999999999999999:{signature}"),
            claims().to_cookie_value(&other),
        ] {
            assert_eq!(
                SessionClaims::verify(&bad, &test_signer(), ISSUED),
                None,
                "{bad}"
            );
        }
    }

    #[test]
    fn cookies_carry_the_protective_attributes() {
        let plain = claims().set_cookie(&test_signer(), false).unwrap();
        assert_eq!(
            plain,
            format!("session={VECTOR}; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax")
        );
        assert!(
            !format!("{plain:?}").contains("4717dab8"),
            "kept out of logs"
        );
        let secure = claims().set_cookie(&test_signer(), true).unwrap();
        assert!(secure.to_str().unwrap().ends_with("; Secure"));
        assert!(clear_cookie(true).to_str().unwrap().contains("Max-Age=0"));
    }

    #[test]
    fn the_first_good_cookies_of_our_name_count() {
        let mut headers = HeaderMap::new();
        let header = format!("a=b; session=junk; xsession={VECTOR};session={VECTOR}");
        headers.append(COOKIE, header.parse().unwrap());
        headers.append(COOKIE, format!("session={VECTOR}").parse().unwrap());
        let read = claims_of(&headers, &test_signer(), ISSUED);
        assert_eq!(read, [claims(), claims()]);
        headers.insert(COOKIE, "session=x; ".repeat(7).parse().unwrap());
        headers.append(COOKIE, format!("session={VECTOR}").parse().unwrap());
        let read = claims_of(&headers, &test_signer(), ISSUED);
        assert_eq!(read, [claims()], "the eighth");
        headers.insert(COOKIE, "session=x; ".repeat(8).parse().unwrap());
        headers.append(COOKIE, format!("session={VECTOR}").parse().unwrap());
        assert!(
            claims_of(&headers, &test_signer(), ISSUED).is_empty(),
            "bounded work"
        );
    }
}
