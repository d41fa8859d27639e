//! CORS for the origins listed in `web.allowed_origins`, where tokens act for some others too, and for nobody else.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ORIGIN,
    VARY,
};
use http::{HeaderMap, HeaderValue};

use super::origin;
use crate::settings::WebSettings;

/// What lets a request act, of whose answer a page elsewhere may see something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acts {
    /// A cookie, which browsers send by themselves.
    Cookie,
    /// An MCP token, which only somebody has who was given it. Clients of MCP in pages also run on this machine.
    Token,
}

impl Acts {
    fn lets(self, request: &HeaderMap, settings: &WebSettings) -> bool {
        match self {
            Self::Cookie => matches!(
                origin::of_request(request),
                Ok(Some(origin)) if settings.allowed_origins.contains(&origin)
            ),
            Self::Token => origin::check_strictly(request, settings, false).is_ok(),
        }
    }

    /// Headers of the answer that a page may read, methods, and headers that it may send.
    fn names(self) -> [&'static str; 3] {
        match self {
            Self::Cookie => [
                "x-request-id, retry-after",
                "GET, HEAD, POST",
                "content-type, x-csrf-token, x-request-id, authorization",
            ],
            Self::Token => [
                "mcp-session-id, x-request-id, retry-after, www-authenticate",
                "GET, POST, DELETE",
                "authorization, content-type, accept, mcp-session-id, mcp-protocol-version, last-event-id, mcp-method, mcp-name",
            ],
        }
    }
}

/// Adds CORS headers to an answer when the request's origin is listed. The origin is repeated
/// exactly, never `*`; `Vary` keeps caches from giving one origin's answer to another.
pub fn apply(
    request: &HeaderMap,
    acts: Acts,
    preflight: bool,
    settings: &WebSettings,
    response: &mut HeaderMap,
) {
    if acts == Acts::Cookie && settings.allowed_origins.is_empty() {
        return;
    }
    response.append(VARY, HeaderValue::from_static("Origin"));
    let allowed = acts.lets(request, settings);
    let Some(value) = request.get(ORIGIN).filter(|_| allowed) else {
        return;
    };
    let [readable, methods, sent] = acts.names().map(HeaderValue::from_static);
    response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, value.clone());
    if acts == Acts::Cookie {
        response.insert(
            ACCESS_CONTROL_ALLOW_CREDENTIALS,
            HeaderValue::from_static("true"),
        );
    }
    response.insert(ACCESS_CONTROL_EXPOSE_HEADERS, readable);
    if preflight {
        response.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        response.insert(ACCESS_CONTROL_ALLOW_HEADERS, sent);
        response.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(allowed: &[&str], origin: &'static str, preflight: bool) -> HeaderMap {
        answer_of(Acts::Cookie, allowed, origin, preflight)
    }

    fn answer_of(acts: Acts, allowed: &[&str], origin: &'static str, preflight: bool) -> HeaderMap {
        let settings = WebSettings {
            allowed_origins: allowed.iter().map(|o| o.parse().unwrap()).collect(),
            ..WebSettings::default()
        };
        let mut request = HeaderMap::new();
        request.insert(ORIGIN, HeaderValue::from_static(origin));
        let mut response = HeaderMap::new();
        apply(&request, acts, preflight, &settings, &mut response);
        response
    }

    #[test]
    fn l53_by_default_no_origin_is_answered() {
        assert!(answer(&[], "chrome-extension://abc", true).is_empty());
    }

    #[test]
    fn l53_listed_origins_are_repeated_exactly_and_others_get_nothing() {
        let listed = ["chrome-extension://abc", "https://tools.example"];
        let good = answer(&listed, "https://tools.example", false);
        assert_eq!(good[ACCESS_CONTROL_ALLOW_ORIGIN], "https://tools.example");
        assert_eq!(good[ACCESS_CONTROL_ALLOW_CREDENTIALS], "true");
        assert!(!good.contains_key(ACCESS_CONTROL_ALLOW_METHODS));
        let preflight = answer(&listed, "chrome-extension://abc", true);
        assert_eq!(preflight[ACCESS_CONTROL_ALLOW_METHODS], "GET, HEAD, POST");
        for bad in [
            "https://tools.example.evil",
            "http://tools.example",
            "null",
            "chrome-extension://x",
        ] {
            let response = answer(&listed, bad, true);
            assert!(!response.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN), "{bad}");
            assert_eq!(response[VARY], "Origin");
        }
    }

    #[test]
    fn where_tokens_act_pages_of_this_machine_may_ask_too_and_no_cookie_is_let_in() {
        for origin in ["http://localhost:6274", "https://tools.example"] {
            let preflight = answer_of(Acts::Token, &["https://tools.example"], origin, true);
            assert_eq!(preflight[ACCESS_CONTROL_ALLOW_ORIGIN], origin);
            assert_eq!(preflight[ACCESS_CONTROL_ALLOW_METHODS], "GET, POST, DELETE");
            let sent = preflight[ACCESS_CONTROL_ALLOW_HEADERS].to_str().unwrap();
            assert!(sent.contains("mcp-protocol-version") && sent.contains("last-event-id"));
            let readable = &preflight[ACCESS_CONTROL_EXPOSE_HEADERS];
            assert!(readable.to_str().unwrap().contains("mcp-session-id"));
            assert!(!preflight.contains_key(ACCESS_CONTROL_ALLOW_CREDENTIALS));
        }
        for bad in ["https://evil.example", "chrome-extension://x", "null"] {
            let response = answer_of(Acts::Token, &[], bad, true);
            assert!(!response.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN), "{bad}");
            assert_eq!(response[VARY], "Origin");
        }
    }
}
