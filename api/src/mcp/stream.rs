//! What a GET opens (executors.md, 2.2).

use http::HeaderMap;
use http::header::{ACCEPT, PRAGMA};

use super::revision::Revision;

/// The header in which a client says its revision.
pub const VERSION: &str = "mcp-protocol-version";
/// The header that carries the id of a session.
pub const SESSION: &str = "mcp-session-id";
/// The header in which a client says which event it has had last.
const LAST_EVENT: &str = "last-event-id";
/// How the ids of our own events begin.
pub const EVENT_ID: &str = "s.";

/// What a GET opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Nothing: clients of this revision only POST.
    Refused,
    /// The stream of news of Streamable HTTP.
    News,
    /// The stream of HTTP+SSE, which answers what is posted beside it.
    Endpoint {
        /// The client may only have tried what opens: unused, it is closed after a while.
        probing: bool,
    },
}

/// What the headers of a GET ask for.
pub fn choose(headers: &HeaderMap) -> Stream {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let version = text(VERSION);
    if version.is_some_and(Revision::is_modern) {
        return Stream::Refused;
    }
    if headers.contains_key(SESSION) {
        return Stream::News;
    }
    if text(LAST_EVENT).is_some_and(|id| id.starts_with(EVENT_ID)) {
        return Stream::News;
    }
    // An EventSource that lost its connection says its revision, too, and is to get a new endpoint.
    let event_source = text(PRAGMA.as_str()).is_some_and(|pragma| pragma.contains("no-cache"));
    if version.is_some() && !event_source {
        return Stream::News;
    }
    let accept = text(ACCEPT.as_str()).unwrap_or_default();
    Stream::Endpoint {
        probing: accept.contains("application/json"),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;

    const ENDPOINT: Stream = Stream::Endpoint { probing: false };
    const PROBED: Stream = Stream::Endpoint { probing: true };
    const BOTH: &str = "application/json, text/event-stream";

    #[rstest]
    #[case::g1(&[("mcp-protocol-version", "2026-07-28"), ("mcp-session-id", "x")], Stream::Refused)]
    #[case::g1_later(&[("mcp-protocol-version", "2027-01-01")], Stream::Refused)]
    #[case::g2(&[("mcp-session-id", "test-session")], Stream::News)]
    #[case::g2_event_source(&[("mcp-session-id", "x"), ("pragma", "no-cache")], Stream::News)]
    #[case::g3(&[("last-event-id", "s.1.2")], Stream::News)]
    #[case::g3_foreign(&[("last-event-id", "17")], ENDPOINT)]
    #[case::g4(&[("mcp-protocol-version", "2025-06-18")], Stream::News)]
    // The TypeScript SDK's old transport after a lost connection.
    #[case::g5_again(&[("mcp-protocol-version", "2025-06-18"), ("pragma", "no-cache"), ("accept", "text/event-stream")], ENDPOINT)]
    #[case::g5(&[("accept", "text/event-stream")], ENDPOINT)]
    #[case::g5_bare(&[], ENDPOINT)]
    // mcp-remote's probes.
    #[case::g5_probe(&[("accept", BOTH)], PROBED)]
    fn headers_decide(#[case] given: &[(&'static str, &'static str)], #[case] expected: Stream) {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        assert_eq!(choose(&headers), expected);
    }
}
