//! Files with a content hash in their names.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use warp::Reply as _;

use super::ConsoleFiles;
use crate::accept_encoding::accepts_encoding;
use crate::error::{ApiError, Result};
use crate::reply::Response;

/// The name changes with the content.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// Encodings of a file, best first, with the end of its name.
const ENCODINGS: [(&str, &str); 2] = [("br", ".br"), ("gzip", ".gz")];

/// Answers with a file below `assets/`, compressed as the client takes it.
///
/// # Errors
/// 404 when there is none: a page that waits for it has to learn that there is a new version.
pub(super) fn answer(
    files: &dyn ConsoleFiles,
    name: &str,
    headers: &HeaderMap,
) -> Result<Response> {
    let path = format!("assets/{name}");
    let content_type = content_type(name).ok_or(ApiError::NoSuchRoute)?;
    let plain = files.file(&path).ok_or(ApiError::NoSuchRoute)?;
    let compressed = ENCODINGS.iter().find_map(|(encoding, end)| {
        let file =
            accepts_encoding(headers, encoding).then(|| files.file(&format!("{path}{end}")))?;
        Some((*encoding, file?))
    });
    let (encoding, body) = match compressed {
        Some((encoding, body)) => (Some(encoding), body),
        None => (None, plain),
    };
    let mut response = body_of(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, FOR_EVER);
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    if let Some(encoding) = encoding {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    Ok(response)
}

/// A response with this body and its length.
pub(super) fn body_of(body: Bytes) -> Response {
    let length = HeaderValue::from(body.len());
    let mut response = warp::http::Response::new(body).into_response();
    response.headers_mut().insert(CONTENT_LENGTH, length);
    response
}

/// The answer to OPTIONS.
pub(super) fn options() -> Result<Response> {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    let allow = HeaderValue::from_static(super::ALLOW);
    response.headers_mut().insert(ALLOW, allow);
    Ok(response)
}

/// The type of a file by the end of its name; `None` for kinds that the console does not have.
fn content_type(name: &str) -> Option<&'static str> {
    let (_, end) = name.rsplit_once('.')?;
    Some(match end {
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        _ => return None,
    })
}
