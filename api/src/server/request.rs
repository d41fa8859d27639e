//! What the accept loop knows of a request before anything reads it.

use std::fmt;
use std::net::SocketAddr;

use http::header::{HOST, HeaderName};
use http::{HeaderValue, Method, Request, Version};

use crate::error::ApiError;

/// The header that carries the request id, in both directions.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest request id taken from a client, in characters.
const MAX_ID: usize = 64;

/// Which routes a listener serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Surface {
    /// All routes.
    #[default]
    Public,
    /// Only what agents in their containers need.
    Agent,
    /// All routes; who can open the socket is a superadmin.
    AdminSocket,
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Peer {
    /// Its address; `None` on the admin socket.
    pub addr: Option<SocketAddr>,
    /// Its user id; only on the admin socket.
    pub socket_uid: Option<u32>,
    /// It speaks TLS to us.
    pub encrypted: bool,
    /// Which listener it came to.
    pub surface: Surface,
}

/// The id under which the log speaks of a request: at most 64 of `[A-Za-z0-9._-]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestId(String);

impl RequestId {
    /// The client's id when it is sane, a fresh one otherwise.
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        let given = request
            .headers()
            .get(REQUEST_ID)
            .and_then(|value| value.to_str().ok())
            .filter(|id| (1..=MAX_ID).contains(&id.len()))
            .filter(|id| {
                id.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
            });
        match given {
            Some(id) => Self(id.to_owned()),
            None => Self(uuid::Uuid::new_v4().simple().to_string()),
        }
    }

    pub(super) fn header(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.0).ok()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Travels with the request, in its extensions.
#[derive(Debug, Clone, Default)]
pub struct RequestContext {
    /// The other end of the connection.
    pub peer: Peer,
    /// The request's id.
    pub id: RequestId,
    /// `Host`, or the authority of an HTTP/2 request.
    pub host: Option<String>,
    /// Why nothing is asked for by it.
    pub(crate) fault: Option<Fault>,
}

/// What makes a request none that any route could answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It asks for a tunnel: this is no proxy.
    Tunnel,
    /// Its target has no path.
    NoPath,
    /// It does not say whom it is for, or says it more than once: others on its way may read another one.
    Host,
}

impl Fault {
    fn of<B>(request: &Request<B>) -> Option<Self> {
        if *request.method() == Method::CONNECT {
            return Some(Self::Tunnel);
        }
        if request.uri().path_and_query().is_none() {
            return Some(Self::NoPath);
        }
        match request.headers().get_all(HOST).iter().count() {
            1 => None,
            // Of HTTP/2 the authority says it, and HTTP/1.0 knows no such thing.
            0 if request.version() != Version::HTTP_11 => None,
            _ => Some(Self::Host),
        }
    }
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Tunnel => Self::MethodNotAllowed {
                allow: "GET, HEAD, POST, OPTIONS",
            },
            Fault::NoPath => Self::InvalidRequest("the request's target has no path"),
            Fault::Host => Self::InvalidRequest("the request must have one Host header"),
        }
    }
}

impl RequestContext {
    pub(super) fn new<B>(request: &Request<B>, peer: Peer) -> Self {
        let authority = request.uri().authority().map(|a| a.as_str().to_owned());
        let host = request.headers().get(HOST);
        Self {
            peer,
            id: RequestId::of(request),
            fault: Fault::of(request),
            host: authority.or_else(|| host.and_then(|h| h.to_str().ok()).map(str::to_owned)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l62_only_sane_request_ids_are_taken_over() {
        let id = |value: &str| {
            let request = Request::builder()
                .header(REQUEST_ID, value)
                .body(())
                .unwrap();
            RequestId::of(&request).to_string()
        };
        for good in ["a", "A-1_b.c", &"x".repeat(64)] {
            assert_eq!(id(good), good);
        }
        for bad in ["", "a b", "a\"b", "a=b", &"x".repeat(65)] {
            assert_ne!(id(bad), bad);
            assert_eq!(id(bad).len(), 32);
        }
    }
}
