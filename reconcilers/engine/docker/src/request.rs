//! What has to be said to the engine in another way than the client library says it.

use bollard::models::NetworkCreateRequest;
use bollard::{BollardRequest, Docker};
use bytes::Bytes;
use engine::{EngineError, LogOptions};
use futures::{Stream, StreamExt};
use http::HeaderValue;
use http::uri::{PathAndQuery, Uri};
use schema::ids::Timestamp;

/// Lets an id or name pass that stays one segment of a path. The client library puts it into the
/// path as it is, where a slash or a question mark would make another request of it.
pub(super) fn check_word(text: &str) -> Result<&str, EngineError> {
    let fits = (1..=255).contains(&text.len())
        && !text.starts_with('.')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.-:".contains(&byte));
    if fits {
        Ok(text)
    } else {
        Err(EngineError::Refused(format!(
            "{text:?} is not a name or id"
        )))
    }
}

/// Lets an image reference or id pass; its path segments are names.
pub(super) fn check_reference(text: &str) -> Result<&str, EngineError> {
    let fits = (1..=512).contains(&text.len())
        && text.split('/').all(|segment| {
            !segment.is_empty()
                && !segment.starts_with('.')
                && segment
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_.-:@[]".contains(&byte))
        });
    if fits {
        Ok(text)
    } else {
        Err(EngineError::Refused(format!(
            "{text:?} is not an image reference"
        )))
    }
}

/// A moment as the engine's `since` takes it.
pub(super) fn seconds(moment: Timestamp) -> String {
    let millis = moment.as_millis();
    format!("{}.{:03}", millis.div_euclid(1000), millis.rem_euclid(1000))
}

/// Path and query of a log request for an id that passed [`word`].
pub(super) fn log_query(id: &str, options: &LogOptions) -> String {
    let mut query = format!(
        "/containers/{id}/logs?stdout=true&stderr=true&follow={}&timestamps={}",
        options.follow, options.timestamps
    );
    match options.tail {
        Some(lines) => query.push_str(&format!("&tail={lines}")),
        None => query.push_str("&tail=all"),
    }
    if let Some(since) = options.since {
        query.push_str(&format!("&since={}", seconds(since)));
    }
    query
}

/// The answer to a `GET`, as bytes.
///
/// The client library decodes logs by itself, and keeps a whole frame, of up to 4 GiB, in memory
/// before it hands it on. Its one request for a container whose answer it leaves alone is the
/// export; this sends that one with another path.
pub(super) fn raw_request(
    docker: &Docker,
    id: &str,
    path_and_query: &str,
) -> impl Stream<Item = Result<Bytes, bollard::errors::Error>> + Unpin + Send + use<> {
    let path_and_query = path_and_query.parse::<PathAndQuery>().ok();
    let docker = docker
        .clone()
        .with_request_modifier(move |mut request: BollardRequest| {
            let mut parts = request.uri().clone().into_parts();
            parts.path_and_query.clone_from(&path_and_query);
            if let Ok(uri) = Uri::from_parts(parts) {
                *request.uri_mut() = uri;
            }
            request
        });
    let id = id.to_owned();
    futures::stream::once(async move { docker.export_container(&id).boxed() })
        .flatten()
        .boxed()
}

/// The body of a network request that the engine refuses when the name is taken. Up to API 1.43
/// it makes a second network of the same name unless asked to look; the client library has no
/// field for it any more.
pub(super) fn with_check_duplicate(body: &NetworkCreateRequest) -> Result<Bytes, EngineError> {
    let failed = |error: serde_json::Error| EngineError::Internal(error.to_string());
    let mut body = serde_json::to_value(body).map_err(failed)?;
    if let Some(fields) = body.as_object_mut() {
        fields.insert("CheckDuplicate".to_owned(), true.into());
    }
    serde_json::to_vec(&body).map(Bytes::from).map_err(failed)
}

/// A client that sends these bytes instead of its own body.
pub(super) fn replace_body(docker: &Docker, bytes: Bytes) -> Docker {
    docker
        .clone()
        .with_request_modifier(move |mut request: BollardRequest| {
            *request.body_mut() = bollard::body_full(bytes.clone());
            request
        })
}

/// A client whose registry credentials arrive. The engine expects the alphabet of base64 that is
/// safe in addresses and ignores a header in the other one, which the client library uses; the two
/// differ for passwords with `>`, `?` or `~` at some places.
pub(super) fn with_url_safe_credentials(docker: &Docker) -> Docker {
    docker
        .clone()
        .with_request_modifier(|mut request: BollardRequest| {
            if let Some(header) = request.headers_mut().get_mut("X-Registry-Auth") {
                let text = header.to_str().unwrap_or_default();
                let text = text.replace('+', "-").replace('/', "_");
                if let Ok(mut value) = HeaderValue::from_str(&text) {
                    value.set_sensitive(true);
                    *header = value;
                }
            }
            request
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_become_another_request() {
        for good in [
            "agentyard-alice",
            "agentyard-a.b_c-1f2e3d.next",
            "sha256:0a",
        ] {
            assert_eq!(check_word(good).unwrap(), good);
        }
        for bad in [
            "",
            "a/b",
            "..",
            ".",
            "a?force=1",
            "a#b",
            "a%2fb",
            "a b",
            "ä",
        ] {
            assert!(
                matches!(check_word(bad), Err(EngineError::Refused(_))),
                "{bad}"
            );
        }
        for bad in ["", "/a", "a//b", "a/../b", "a?x", "../info", "a b"] {
            assert!(
                matches!(check_reference(bad), Err(EngineError::Refused(_))),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_moment_keeps_its_milliseconds() {
        assert_eq!(seconds(Timestamp::from_millis(1_500)), "1.500");
    }
}
