//! Origins: exact values of the `Origin` header, and the check that keeps foreign sites from acting
//! with a visitor's cookie.

use std::fmt;
use std::str::FromStr;

use http::header::{HeaderName, ORIGIN};
use http::{HeaderMap, Uri};

use crate::error::{ApiError, Result};
use crate::settings::WebSettings;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A site whose `Origin` header is no origin, such as `null`.
const UNNAMED: &str = "a site without a name (Origin)";

/// Schemes of browser extensions. Only an installed extension can send such an origin.
const EXTENSION_SCHEMES: [&str; 3] = ["chrome-extension", "moz-extension", "safari-web-extension"];

/// An origin: scheme, host and port, in lower case, without a default port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    scheme: String,
    /// Host with the port where it isn't the scheme's default.
    authority: String,
}

/// A text that is not an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an origin is scheme://host or scheme://host:port, without a path")]
pub struct InvalidOrigin;

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let lower = text.to_ascii_lowercase();
        let (scheme, authority) = lower.split_once("://").ok_or(InvalidOrigin)?;
        let plain = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-._:[]%+".contains(&b))
        };
        if !plain(scheme) || !plain(authority) {
            return Err(InvalidOrigin);
        }
        Ok(Self {
            authority: without_default_port(scheme, authority).to_owned(),
            scheme: scheme.to_owned(),
        })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

impl Origin {
    /// The origin of an absolute address such as `https://host/path`; `None` when it has none.
    pub fn of_url(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        format!("{}://{}", uri.scheme_str()?, uri.authority()?)
            .parse()
            .ok()
    }

    /// Whether it is that of a browser extension.
    pub fn is_extension(&self) -> bool {
        EXTENSION_SCHEMES.contains(&self.scheme.as_str())
    }

    /// Whether it is a page of the machine on which the browser runs.
    fn is_loopback(&self) -> bool {
        let authority = self.authority.as_str();
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
            _ => authority,
        };
        matches!(self.scheme.as_str(), "http" | "https")
            && matches!(host, "localhost" | "127.0.0.1" | "[::1]")
    }

    /// Whether it is served by the given `Host`. The scheme is not compared: behind a proxy that
    /// ends TLS the service sees http where the browser sees https.
    fn is_host(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        matches!(self.scheme.as_str(), "http" | "https")
            && without_default_port(&self.scheme, &host) == self.authority
    }
}

fn without_default_port<'a>(scheme: &str, authority: &'a str) -> &'a str {
    let default = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return authority,
    };
    authority.strip_suffix(default).unwrap_or(authority)
}

/// The request's origin; `None` when it has no such header, `Err` when it has one that is no origin
/// (such as `null`) or more than one.
pub fn of_request(headers: &HeaderMap) -> Result<Option<Origin>, InvalidOrigin> {
    let mut all = headers.get_all(ORIGIN).iter();
    let Some(value) = all.next() else {
        return Ok(None);
    };
    if all.next().is_some() {
        return Err(InvalidOrigin);
    }
    let text = value.to_str().map_err(|_| InvalidOrigin)?;
    text.parse().map(Some)
}

/// Refuses a state-changing request that a foreign site made the browser send.
///
/// # Errors
/// [`ApiError::ForeignSite`] for an `Origin` that is neither own (`web.public_url` or `host`) nor an
/// extension's nor in `web.allowed_origins`, and without `Origin` for `Sec-Fetch-Site: cross-site`.
pub fn check(headers: &HeaderMap, host: Option<&str>, settings: &WebSettings) -> Result<()> {
    let foreign = |seen: String| ApiError::ForeignSite {
        seen,
        own: match (&settings.public_origin, host) {
            (Some(own), _) => format!("{own} (web.public_url)"),
            (None, Some(host)) => format!("{host} (the request's Host)"),
            (None, None) => "this address".to_owned(),
        },
    };
    match of_request(headers).map_err(|_| foreign(UNNAMED.to_owned()))? {
        Some(origin) => {
            let own = settings.public_origin.as_ref() == Some(&origin)
                || host.is_some_and(|host| origin.is_host(host));
            let allowed = settings.allowed_origins.contains(&origin);
            if own || allowed || origin.is_extension() {
                Ok(())
            } else {
                Err(foreign(origin.to_string()))
            }
        }
        None if headers
            .get(SEC_FETCH_SITE)
            .is_some_and(|site| site == "cross-site") =>
        {
            Err(foreign("another site (Sec-Fetch-Site)".to_owned()))
        }
        None => Ok(()),
    }
}

/// Refuses what a page of a foreign site made a browser send, where no cookie acts but a token that may stand in the address. The
/// `Host` says nothing here: whoever makes a name of theirs lead to this service has both it and the origin say the same.
///
/// # Errors
/// [`ApiError::OriginRefused`] for an `Origin` that is neither own (`web.public_url`), of this machine, in `web.allowed_origins`, nor,
/// where `extensions` may connect, an extension's.
pub fn check_strictly(headers: &HeaderMap, settings: &WebSettings, extensions: bool) -> Result<()> {
    let Some(origin) =
        of_request(headers).map_err(|_| ApiError::OriginRefused(UNNAMED.to_owned()))?
    else {
        return Ok(());
    };
    let allowed = settings.public_origin.as_ref() == Some(&origin)
        || settings.allowed_origins.contains(&origin)
        || origin.is_loopback()
        || (extensions && origin.is_extension());
    match allowed {
        true => Ok(()),
        false => Err(ApiError::OriginRefused(origin.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;

    fn settings() -> WebSettings {
        WebSettings {
            public_origin: Origin::of_url("https://agents.example/base/"),
            allowed_origins: vec!["https://tools.example:8443".parse().unwrap()],
            ..WebSettings::default()
        }
    }

    #[rstest]
    #[case("https://agents.example", true)]
    #[case("https://agents.example:443", true)]
    #[case("HTTPS://Agents.Example", true)]
    #[case("http://agents.example", false)]
    #[case("https://agents.example.evil", false)]
    #[case("http://10.0.0.5:8080", true)]
    #[case("https://10.0.0.5:8080", true)]
    #[case("http://10.0.0.5", false)]
    #[case("https://tools.example:8443", true)]
    #[case("https://tools.example", false)]
    #[case("chrome-extension://abcdef", true)]
    #[case("moz-extension://0-1-2", true)]
    #[case("safari-web-extension://X", true)]
    #[case("chrome-extension-evil://abcdef", false)]
    #[case("https://evil.example", false)]
    #[case("https://evil.example/?https://agents.example", false)]
    #[case("https://agents.example@evil.example", false)]
    #[case("null", false)]
    #[case("", false)]
    fn l20_only_own_listed_and_extension_origins_may_act(
        #[case] origin: &'static str,
        #[case] passes: bool,
    ) {
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, HeaderValue::from_static(origin));
        let result = check(&headers, Some("10.0.0.5:8080"), &settings());
        assert_eq!(result.is_ok(), passes, "{origin}");
    }

    #[rstest]
    #[case(None, true)]
    #[case(Some("none"), true)]
    #[case(Some("same-origin"), true)]
    #[case(Some("same-site"), true)]
    #[case(Some("cross-site"), false)]
    fn l20_without_an_origin_the_fetch_metadata_decides(
        #[case] site: Option<&'static str>,
        #[case] passes: bool,
    ) {
        let mut headers = HeaderMap::new();
        if let Some(site) = site {
            headers.insert(SEC_FETCH_SITE, HeaderValue::from_static(site));
        }
        assert_eq!(check(&headers, Some("x"), &settings()).is_ok(), passes);
    }

    #[test]
    fn l53_the_default_port_of_the_public_scheme_is_the_same_host() {
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, HeaderValue::from_static("https://proxy.example"));
        let none = WebSettings::default();
        for host in ["proxy.example", "proxy.example:443", "PROXY.example"] {
            assert!(check(&headers, Some(host), &none).is_ok(), "{host}");
        }
        assert!(check(&headers, Some("proxy.example:80"), &none).is_err());
        assert!(check(&headers, None, &none).is_err());
    }

    #[rstest]
    #[case("https://agents.example", true, true)]
    #[case("https://tools.example:8443", true, true)]
    #[case("http://localhost:6274", true, true)]
    #[case("http://127.0.0.1", true, true)]
    #[case("http://[::1]:8080", true, true)]
    #[case("chrome-extension://abcdef", true, false)]
    // The same name as in `Host`, which anybody can make lead here.
    #[case("http://10.0.0.5:8080", false, false)]
    #[case("http://localhost.evil.example", false, false)]
    #[case("ftp://localhost", false, false)]
    #[case("null", false, false)]
    fn where_tokens_act_the_host_says_nothing(
        #[case] origin: &'static str,
        #[case] executor: bool,
        #[case] client: bool,
    ) {
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, HeaderValue::from_static(origin));
        let passes = |extensions| check_strictly(&headers, &settings(), extensions).is_ok();
        assert_eq!(
            (passes(true), passes(false)),
            (executor, client),
            "{origin}"
        );
    }

    #[test]
    fn refusal_names_origin_seen_expected_and_setting() {
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, HeaderValue::from_static("https://proxy.example"));
        let refused =
            |settings: &WebSettings| check(&headers, Some("10.0.0.5:8080"), settings).unwrap_err();
        let text = refused(&WebSettings::default()).to_string();
        assert_eq!(
            text,
            "pages of https://proxy.example may not act here, only those of 10.0.0.5:8080 (the request's Host); set web.public_url to the \
             address in people's browsers, or add the origin to web.allowed_origins"
        );
        let text = refused(&settings()).to_string();
        assert!(text.contains("only those of https://agents.example (web.public_url)"));
    }

    #[test]
    fn two_origins_are_refused() {
        let mut headers = HeaderMap::new();
        headers.append(ORIGIN, HeaderValue::from_static("http://a"));
        headers.append(ORIGIN, HeaderValue::from_static("http://a"));
        assert!(check(&headers, Some("a"), &settings()).is_err());
    }
}
