//! What an engine's refusal means.
//!
//! The engine reports failures apart by status code and, where one code stands for several, by its
//! words. The words here are those of Docker Engine 20.10 to 29; a sentence that is not recognised
//! falls back to what its status code says.

use bollard::errors::Error as ClientError;
use engine::{CALL_TIMEOUT, EngineError};
pub(super) use engine::{MESSAGE_LIMIT, limit_time, shorten_text};

/// The engine's words for a registry that only talks plain HTTP.
const PLAIN_ANSWER: &str = "server gave HTTP response to HTTPS client";
const PLAIN_HINT: &str = "whether the engine pulls over plain HTTP is decided by its own \
    insecure-registries setting, not by image.registry_plain_http";

/// An answer of something between us and the engine that says the engine is not there.
#[derive(Debug, thiserror::Error)]
#[error("status {0}: {1}")]
struct GatewayAnswer(u16, String);

/// Translates a failure of the client library.
pub(super) fn from_client(error: ClientError) -> EngineError {
    match error {
        ClientError::DockerResponseServerError {
            status_code,
            message,
        } => from_answer(status_code, &message),
        ClientError::RequestTimeoutError => EngineError::Timeout(CALL_TIMEOUT),
        ClientError::HyperLegacyError { .. }
        | ClientError::HyperResponseError { .. }
        | ClientError::IOError { .. }
        | ClientError::SocketNotFoundError(_)
        | ClientError::CertPathError { .. }
        | ClientError::CertMultipleKeys { .. }
        | ClientError::CertParseError { .. }
        | ClientError::NoNativeCertsError { .. }
        | ClientError::LoadNativeCertsErrors { .. } => EngineError::Unavailable(Box::new(error)),
        // An answer that breaks off is a broken connection; one that is whole but not understood is not.
        ClientError::JsonSerdeError { err } if err.is_eof() || err.is_io() => {
            EngineError::Unavailable(Box::new(err))
        }
        other => EngineError::Internal(shorten_text(&other.to_string(), MESSAGE_LIMIT)),
    }
}

/// Translates a status code and the words that came with it.
pub(super) fn from_answer(status: u16, message: &str) -> EngineError {
    let words = message.to_ascii_lowercase();
    let text = shorten_text(message, MESSAGE_LIMIT);
    if words.contains("no space left on device") || words.contains("disk quota exceeded") {
        return EngineError::StorageFull(text);
    }
    if words.contains("no available ipv4 addresses") || words.contains("no available addresses") {
        return EngineError::NetworkFull;
    }
    match status {
        404 => EngineError::NotFound(text),
        409 if words.contains("is already in use by container")
            || words.contains("already exists") =>
        {
            EngineError::NameTaken(text)
        }
        409 => EngineError::Conflict(text),
        403 if words.contains("has active endpoints") => EngineError::Conflict(text),
        408 | 425 | 429 => EngineError::Internal(text),
        400..=499 | 501 => EngineError::Refused(text),
        502..=504 => EngineError::Unavailable(Box::new(GatewayAnswer(status, text))),
        _ => EngineError::Internal(text),
    }
}

/// A pull that fails does so in the registry's words, whatever the status code.
pub(super) fn from_pull(error: ClientError) -> EngineError {
    let message = match &error {
        ClientError::DockerResponseServerError { message, .. } => message,
        ClientError::DockerStreamError { error } => error,
        _ => return from_client(error),
    };
    match from_answer(500, message) {
        full @ EngineError::StorageFull(_) => full,
        _ if message.contains(PLAIN_ANSWER) => {
            let words = shorten_text(message, MESSAGE_LIMIT);
            EngineError::PullFailed(format!("{words}; {PLAIN_HINT}"))
        }
        _ if is_refusal(message) => EngineError::PullRefused(shorten_text(message, MESSAGE_LIMIT)),
        _ => EngineError::PullFailed(shorten_text(message, MESSAGE_LIMIT)),
    }
}

/// Whether trying again leads to the same words: the registry does not know the image, or not us.
fn is_refusal(message: &str) -> bool {
    let words = message.to_ascii_lowercase();
    [
        "manifest unknown",
        "name unknown",
        "no matching manifest",
        "not found",
        "unauthorized",
        "no basic auth credentials",
        "authorization failed",
        "access denied",
        "denied:",
        "access to the resource is denied",
        "invalid reference format",
    ]
    .iter()
    .any(|refusal| words.contains(refusal))
        // A file of the engine's own, or a firewall's answer.
        && !words.contains("permission denied")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(
        409,
        "Conflict. The container name \"/a\" is already in use by container \"7f\".",
        "NameTaken"
    )]
    #[case(409, "network with name n1 already exists", "NameTaken")]
    #[case(
        409,
        "cannot start a paused container, try unpause instead",
        "Conflict"
    )]
    #[case(
        403,
        "error while removing network: network n1 id 2b has active endpoints",
        "Conflict"
    )]
    #[case(403, "Pool overlaps with other one on this address space", "Refused")]
    #[case(
        400,
        "invalid mount config for type \"bind\": bind source path does not exist: /nope",
        "Refused"
    )]
    #[case(404, "No such image: sha256:00", "NotFound")]
    #[case(
        500,
        "no available IPv4 addresses on this network's address pools: n1 (2b)",
        "NetworkFull"
    )]
    #[case(
        500,
        "write /var/lib/docker/tmp/x: no space left on device",
        "StorageFull"
    )]
    #[case(500, "something else", "Internal")]
    #[case(503, "upstream is down", "Unavailable")]
    #[case(429, "slow down", "Internal")]
    fn an_answer_is_told_apart_by_code_and_words(
        #[case] status: u16,
        #[case] message: &str,
        #[case] expected: &str,
    ) {
        let error = from_answer(status, message);
        assert!(
            format!("{error:?}").starts_with(expected),
            "{status} {message}: {error:?}"
        );
    }

    #[test]
    fn l62_a_long_answer_is_cut_at_a_character_boundary() {
        let EngineError::Internal(text) = from_answer(500, &"ä".repeat(5000)) else {
            panic!("a plain failure");
        };
        assert_eq!(text, "ä".repeat(MESSAGE_LIMIT / 2));
    }

    #[test]
    fn a_registry_without_tls_is_told_with_whose_setting_decides_it() {
        let words = format!(
            "Get \"https://r:5000/v2/{}\": http: {PLAIN_ANSWER}",
            "a".repeat(900)
        );
        let error = from_pull(ClientError::DockerStreamError {
            error: words.clone(),
        });
        let EngineError::PullFailed(text) = error else {
            panic!("{error:?}");
        };
        assert!(text.starts_with(&words), "{text}");
        let hint = "its own insecure-registries setting, not by image.registry_plain_http";
        assert!(text.ends_with(hint), "{text}");
    }

    #[rstest::rstest]
    #[case(
        "manifest for r:5000/a:2 not found: manifest unknown: manifest unknown",
        true
    )]
    #[case(
        "pull access denied for nobody/a, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
        true
    )]
    #[case(
        "Head \"http://r:5000/v2/a/manifests/1\": no basic auth credentials",
        true
    )]
    #[case(
        "Get \"http://r:5000/v2/\": unauthorized: authentication required",
        true
    )]
    #[case(
        "no matching manifest for linux/amd64 in the manifest list entries",
        true
    )]
    #[case("dial tcp 127.0.0.1:1: connect: connection refused", false)]
    #[case("dial tcp 10.0.0.1:443: connect: permission denied", false)]
    #[case(
        "Get \"https://r/v2/\": net/http: request canceled while waiting for connection",
        false
    )]
    #[case("unexpected EOF", false)]
    fn a_failed_pull_keeps_the_registrys_words_whatever_the_code(
        #[case] words: &str,
        #[case] refused: bool,
    ) {
        for status_code in [404, 500] {
            let error = from_pull(ClientError::DockerResponseServerError {
                status_code,
                message: words.to_owned(),
            });
            match error {
                EngineError::PullRefused(text) => assert!(refused && text == words),
                EngineError::PullFailed(text) => assert!(!refused && text == words),
                other => panic!("{other:?}"),
            }
        }
    }
}
