//! The two pages: sign-in, and the shell of all others.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use sha2::{Digest, Sha256};

use super::language::Language;
use super::{ConsoleFiles, Incomplete, assets};
use crate::error::{ApiError, Result};
use crate::reply::Response;

/// Obeyed by browsers: nothing inline, nothing from elsewhere.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; \
     font-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);
/// Placeholder of the prefix in the built pages.
const PREFIX: &str = "{{prefix}}";
/// Placeholder of the language in the built pages.
const LANGUAGE: &str = "{{lang}}";

/// A page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    SignIn,
    Shell,
}

/// The pages as they were built.
pub(super) struct Pages {
    sign_in: String,
    shell: String,
    styles: Vec<String>,
}

impl Pages {
    /// Reads both pages.
    ///
    /// # Errors
    /// [`Incomplete`] when one is missing or no text.
    pub(super) fn new(files: &dyn ConsoleFiles) -> Result<Self, Incomplete> {
        let read = |name| {
            let bytes = files.file(name).ok_or(Incomplete(name))?;
            String::from_utf8(bytes.into()).map_err(|_| Incomplete(name))
        };
        let sign_in = read("login.html")?;
        Ok(Self {
            styles: styles_of(&sign_in),
            sign_in,
            shell: read("index.html")?,
        })
    }

    /// Addresses of the style files of the sign-in, without the prefix.
    pub(super) fn styles(&self) -> &[String] {
        &self.styles
    }

    /// A page in a language, or 304 when the browser has it.
    ///
    /// # Errors
    /// None that a request causes.
    pub(super) fn answer(
        &self,
        page: Page,
        prefix: &str,
        language: Language,
        headers: &HeaderMap,
    ) -> Result<Response> {
        let built = match page {
            Page::SignIn => &self.sign_in,
            Page::Shell => &self.shell,
        };
        let html = built
            .replace(PREFIX, prefix)
            .replace(LANGUAGE, language.tag());
        let tag = format!("\"{}\"", hex::encode(&Sha256::digest(&html)[..16]));
        let mut known = headers.get_all(IF_NONE_MATCH).iter();
        let is_known = known.any(|value| value.to_str().is_ok_and(|value| value.contains(&tag)));
        let mut response = match is_known {
            true => {
                let mut response = Response::default();
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                response
            }
            false => assets::body_of(Bytes::from(html)),
        };
        let headers = response.headers_mut();
        let tag = HeaderValue::try_from(tag).map_err(ApiError::internal)?;
        headers.insert(ETAG, tag);
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        headers.insert(CONTENT_TYPE, html);
        headers.insert(CONTENT_SECURITY_POLICY, POLICY);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        let vary = HeaderValue::from_static("Accept-Language, Cookie");
        headers.insert(VARY, vary);
        Ok(response)
    }
}

/// Addresses in `<link rel="stylesheet">`, without the prefix.
fn styles_of(html: &str) -> Vec<String> {
    let links = html.split("<link ").skip(1);
    let links = links.filter_map(|link| link.split_once('>').map(|(link, _)| link));
    let styles = links.filter(|link| link.contains("stylesheet"));
    let addresses = styles.filter_map(|link| link.split_once("href=\"")?.1.split_once('"'));
    addresses
        .map(|(address, _)| address.replace(PREFIX, ""))
        .collect()
}
