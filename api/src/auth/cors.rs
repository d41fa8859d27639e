//! CORS for the origins listed in `web.allowed_origins`, and for nobody else.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ORIGIN,
    VARY,
};
use http::{HeaderMap, HeaderValue};

use super::origin;
use crate::settings::WebSettings;

/// Adds CORS headers to an answer when the request's origin is listed. The origin is repeated
/// exactly, never `*`; `Vary` keeps caches from giving one origin's answer to another.
pub fn apply(
    request: &HeaderMap,
    preflight: bool,
    settings: &WebSettings,
    response: &mut HeaderMap,
) {
    if settings.allowed_origins.is_empty() {
        return;
    }
    response.append(VARY, HeaderValue::from_static("Origin"));
    let listed = matches!(
        origin::of_request(request),
        Ok(Some(origin)) if settings.allowed_origins.contains(&origin)
    );
    let Some(value) = request.get(ORIGIN).filter(|_| listed) else {
        return;
    };
    response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, value.clone());
    response.insert(
        ACCESS_CONTROL_ALLOW_CREDENTIALS,
        HeaderValue::from_static("true"),
    );
    response.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("x-request-id, retry-after"),
    );
    if preflight {
        response.insert(
            ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("GET, HEAD, POST"),
        );
        response.insert(
            ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static("content-type, x-csrf-token, x-request-id, authorization"),
        );
        response.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(allowed: &[&str], origin: &'static str, preflight: bool) -> HeaderMap {
        let settings = WebSettings {
            allowed_origins: allowed.iter().map(|o| o.parse().unwrap()).collect(),
            ..WebSettings::default()
        };
        let mut request = HeaderMap::new();
        request.insert(ORIGIN, HeaderValue::from_static(origin));
        let mut response = HeaderMap::new();
        apply(&request, preflight, &settings, &mut response);
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
}
