//! Requests to another replica: one connection for each, so that it is known whether anything was sent.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, HOST, RETRY_AFTER, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use schema::replica::Replica;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use super::Replicas;
use super::call::Call;
use super::listener::{CALL, PATH, PROTOCOL};
use super::stamp::Covered;
use crate::reply::Reply;

/// Longest time to connect.
const CONNECT: Duration = Duration::from_secs(2);
/// Silence after which another replica is asked whether it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Longest time for it to take nothing and say nothing, in milliseconds.
const GONE: u32 = 60_000;
/// Longest time until a WebSocket is taken, or refused: browser extensions wait for 5 s.
const TAKEN: Duration = Duration::from_secs(4);
/// Longest answer that is no result of a tool, in bytes.
const LONGEST: usize = 4 * 1024 * 1024;

/// Reason why another replica has not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsent {
    /// It could not be reached: it knows nothing of the request.
    Unreachable,
    /// It was reached, and what became of the request is unknown.
    Lost,
}

/// An answer of another replica. The request is given up when it is dropped.
#[derive(Debug)]
pub(crate) struct Answered {
    status: StatusCode,
    headers: HeaderMap,
    body: Incoming,
    _open: DropGuard,
}

impl Answered {
    pub(crate) fn is_success(&self) -> bool {
        self.status.is_success()
    }

    /// The other replica does not have what it was taken to have.
    pub(crate) fn is_misdirected(&self) -> bool {
        self.status == StatusCode::MISDIRECTED_REQUEST
    }

    /// Bytes of its body, as its head says.
    pub(crate) fn bytes(&self) -> usize {
        usize::try_from(self.body.size_hint().lower()).unwrap_or(usize::MAX)
    }

    /// Its body, if it has no more bytes than these and comes whole.
    pub(crate) async fn body(self, longest: usize) -> Option<Bytes> {
        let collected = Limited::new(self.body, longest).collect().await;
        collected.ok().map(|body| body.to_bytes())
    }

    /// Its body, if it is short.
    pub(crate) async fn text(self) -> Option<Bytes> {
        self.body(LONGEST).await
    }

    /// The same as an answer of this replica.
    pub(crate) async fn reply(self) -> Option<Reply> {
        let (status, later) = (self.status, self.headers.get(RETRY_AFTER).cloned());
        let text = self.text().await?;
        let reply = match text.starts_with(b"{") {
            true => Reply::json(text),
            false => Reply::text(String::from_utf8_lossy(&text)),
        };
        let reply = reply.status(status);
        Some(match later {
            Some(later) => reply.header(RETRY_AFTER, later),
            None => reply,
        })
    }
}

/// Address of a replica as a connection needs it.
fn target(address: &str) -> Option<(String, u16)> {
    let url = Url::parse(address).ok()?;
    let host = url.host_str()?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some((host.to_owned(), url.port_or_known_default()?))
}

impl Replicas {
    /// Asks another replica.
    ///
    /// # Errors
    /// [`Unsent`].
    pub(crate) async fn ask_replica(
        &self,
        to: &Replica,
        call: &Call,
        body: Bytes,
        limit: Duration,
    ) -> Result<Answered, Unsent> {
        let (request, mut connection, open) =
            self.prepare_request(to, call, Method::POST, body).await?;
        let response = timeout(limit, connection.send_request(request)).await;
        let response = response.map_err(|_| Unsent::Lost)?;
        let (head, body) = response.map_err(|_| Unsent::Lost)?.into_parts();
        Ok(Answered {
            status: head.status,
            headers: head.headers,
            body,
            _open: open,
        })
    }

    /// Has another replica serve a WebSocket: the connection, or its refusal.
    ///
    /// # Errors
    /// [`Unsent`].
    pub(crate) async fn open_websocket(
        &self,
        to: &Replica,
        call: &Call,
    ) -> Result<Result<Upgraded, Answered>, Unsent> {
        let prepared = self.prepare_request(to, call, Method::GET, Bytes::new());
        let (mut request, mut connection, open) = prepared.await?;
        let headers = request.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
        let response = timeout(TAKEN, connection.send_request(request)).await;
        let response = response.map_err(|_| Unsent::Lost)?;
        let response = response.map_err(|_| Unsent::Lost)?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let upgraded = hyper::upgrade::on(response).await;
            return upgraded.map(Ok).map_err(|_| Unsent::Lost);
        }
        let (head, body) = response.into_parts();
        Ok(Err(Answered {
            status: head.status,
            headers: head.headers,
            body,
            _open: open,
        }))
    }

    async fn prepare_request(
        &self,
        to: &Replica,
        call: &Call,
        method: Method,
        body: Bytes,
    ) -> Result<(Request<Full<Bytes>>, SendRequest<Full<Bytes>>, DropGuard), Unsent> {
        let inner = self.0.as_ref().ok_or(Unsent::Unreachable)?;
        let call = call.encode();
        let covered = Covered {
            to: &to.id,
            method: method.as_str(),
            path: PATH,
            call: &call,
        };
        let stamp = inner.seal.make_stamp(covered, &body, inner.clock.now());
        let mut stamp = HeaderValue::try_from(stamp).map_err(|_| Unsent::Unreachable)?;
        stamp.set_sensitive(true);
        let request = Request::builder()
            .method(method)
            .uri(PATH)
            .header(HOST, "replica")
            .header(AUTHORIZATION, stamp)
            .header(CALL, call)
            .body(Full::new(body))
            .map_err(|_| Unsent::Unreachable)?;
        let connecting = async {
            let target = target(&to.address)?;
            let stream = TcpStream::connect(target).await.ok()?;
            stream.set_nodelay(true).ok()?;
            // A machine that is gone says nothing.
            sockopt::set_socket_keepalive(&stream, true).ok()?;
            sockopt::set_tcp_keepidle(&stream, KEEP_ALIVE).ok()?;
            sockopt::set_tcp_user_timeout(&stream, GONE).ok()?;
            let shaken: Result<(SendRequest<_>, _), _> =
                http1::handshake(TokioIo::new(stream)).await;
            shaken.ok()
        };
        let connected = timeout(CONNECT, connecting).await.ok().flatten();
        let Some((connection, driver)) = connected else {
            tracing::warn!(number = to.number, address = %to.address, "another replica cannot be reached");
            return Err(Unsent::Unreachable);
        };
        let open = CancellationToken::new();
        let ended = open.clone();
        inner.tasks.spawn(async move {
            let _ = ended.run_until_cancelled(driver.with_upgrades()).await;
        });
        Ok((request, connection, open.drop_guard()))
    }
}

#[cfg(test)]
mod tests {
    use super::target;

    #[test]
    fn addresses_are_hosts_and_ports() {
        for (url, expected) in [
            ("http://10.0.0.7:8082", Some(("10.0.0.7", 8082))),
            ("http://[fd00::7]:8082", Some(("fd00::7", 8082))),
            ("http://one.example", Some(("one.example", 80))),
            ("nothing", None),
        ] {
            let found = target(url);
            let found = found.as_ref().map(|(host, port)| (&**host, *port));
            assert_eq!(found, expected, "{url}");
        }
    }
}
