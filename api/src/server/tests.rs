//! The whole stack on real listeners.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::*;
use crate::deps::Deps;
use crate::dispatch::{Anyone, Superadmin};
use crate::error::Result;
use crate::input::{Input, Nothing};
use crate::reply::{Event, Reply};
use crate::route::Route;
use crate::testing::{World, with_handler, world};

mod limits;
mod refused;
mod tls;

async fn panics(_: Anyone, _: Input<Nothing>, _: Deps) -> Result<Reply> {
    panic!("secret detail of the panic")
}

async fn streams(_: Anyone, _: Input<Nothing>, _: Deps) -> Result<Reply> {
    let first = futures::stream::once(async {
        Event {
            data: "first".to_owned(),
            ..Event::default()
        }
    });
    Ok(Reply::events(first.chain(futures::stream::pending())))
}

/// What the handlers of these tests report.
#[derive(Clone, Default)]
struct Signs {
    /// A handler that takes its time has begun.
    begun: Arc<Notify>,
    /// Held by each answer that goes on for ever.
    floods: Arc<()>,
}

impl Signs {
    /// How many answers go on for ever.
    fn floods(&self) -> usize {
        // One is held here, one by the handler.
        Arc::strong_count(&self.floods) - 2
    }
}

/// `/healthz` panics, `/readyz` streams, `login/mode` floods, `config` is slow, `tasks` never ends.
fn handlers(signs: &Signs) -> Vec<Route> {
    let Signs { begun, floods } = signs.clone();
    let slow = move |_: Superadmin, _: Input<Nothing>, _: Deps| {
        begun.notify_one();
        async {
            sleep(Duration::from_millis(300)).await;
            Ok(Reply::ok("slept"))
        }
    };
    let begun = signs.begun.clone();
    let never = move |_: Superadmin, _: Input<Nothing>, _: Deps| {
        begun.notify_one();
        std::future::pending::<Result<Reply>>()
    };
    let flood = move |_: Anyone, _: Input<Nothing>, _: Deps| {
        let held = floods.clone();
        let frames = futures::stream::repeat(Bytes::from_static(&[b'x'; 4096]));
        let frames = frames.inspect(move |_| {
            let _held = &held;
        });
        std::future::ready(Ok(Reply::frames(frames)))
    };
    vec![
        with_handler("liveness", panics),
        with_handler("readiness", streams),
        with_handler("login_mode", flood),
        with_handler("config_read", slow),
        with_handler("tasks", never),
    ]
}

struct Running {
    world: World,
    signs: Signs,
    address: Option<SocketAddr>,
    stop: CancellationToken,
    done: futures::future::BoxFuture<'static, Duration>,
}

/// Serves [`handlers`] on a listener.
async fn serve_on(listener: Listener, limits: Limits) -> Running {
    let world = world().await;
    let signs = Signs::default();
    let server = Server::new(world.api(handlers(&signs)), limits);
    let address = listener.local_addr();
    let stop = CancellationToken::new();
    let (token, shutdown) = (stop.clone(), world.deps.shutdown.clone());
    let tracker = TaskTracker::new();
    let task = tracker.spawn(async move {
        server.run(listener, token).await;
    });
    let stopping = stop.clone();
    let done = Box::pin(async move {
        stopping.cancel();
        shutdown.cancel();
        let begun = Instant::now();
        task.await.unwrap();
        begun.elapsed()
    });
    Running {
        world,
        signs,
        address,
        stop,
        done,
    }
}

async fn serve(limits: Limits) -> Running {
    let listener = Listener::tcp(([127, 0, 0, 1], 0).into(), None, Surface::Public);
    serve_on(listener.await.unwrap(), limits).await
}

impl Running {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address.unwrap()).await.unwrap()
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Response<Bytes> {
        send_over(self.connect().await, request).await
    }

    async fn stop(self) -> Duration {
        self.done.await
    }
}

async fn send_over<S>(stream: S, request: Request<Full<Bytes>>) -> Response<Bytes>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    let (response, _) = tokio::join!(
        async {
            let response = sender.send_request(request).await.unwrap();
            let (parts, body) = response.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            drop(sender);
            Response::from_parts(parts, body)
        },
        connection
    );
    response
}

fn hasty() -> Limits {
    Limits {
        head: Duration::from_millis(300),
        ..Limits::default()
    }
}

/// How long the server keeps a connection that was sent `bytes` and nothing more.
async fn patience(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> Duration {
    stream.write_all(bytes).await.unwrap();
    let begun = Instant::now();
    let mut rest = Vec::new();
    let read = timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
    assert!(read.is_ok(), "the connection was kept open");
    begun.elapsed()
}

fn get(path: &str) -> Request<Full<Bytes>> {
    Request::builder()
        .uri(path)
        .header("host", "test")
        .body(Full::default())
        .unwrap()
}

fn assert_protective_headers(response: &Response<Bytes>) {
    let headers = response.headers();
    assert_eq!(headers["x-frame-options"], "DENY");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert_eq!(
        headers["referrer-policy"],
        "strict-origin-when-cross-origin"
    );
    assert_eq!(headers["cache-control"], "no-store");
    assert!(headers["x-request-id"].len() >= 2);
}

fn failure_of(response: &Response<Bytes>) -> String {
    let body: Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(body["success"], false);
    body["code"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_response_has_the_protective_headers_and_the_request_id() {
    let running = serve(Limits::default()).await;
    let cases = [
        (get("/api/health"), 200),
        (get("/nothing"), 404),
        (get("/api/login"), 405),
        (get("/api/csrf"), 401),
        (get("/healthz"), 500),
        (get("/api/admin/users?a=%ff"), 401),
    ];
    for (request, status) in cases {
        let path = request.uri().clone();
        let response = running.send(request).await;
        assert_eq!(response.status().as_u16(), status, "{path}");
        assert_protective_headers(&response);
    }
    let mut request = get("/api/health");
    request
        .headers_mut()
        .insert("x-request-id", "my-id.1".parse().unwrap());
    assert_eq!(
        running.send(request).await.headers()["x-request-id"],
        "my-id.1"
    );
    running.stop().await;
}

#[tokio::test]
async fn l33_a_panic_is_a_500_that_tells_nothing_and_the_service_goes_on() {
    let running = serve(Limits::default()).await;
    let response = running.send(get("/healthz")).await;
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(failure_of(&response), "internal");
    assert!(!String::from_utf8_lossy(response.body()).contains("secret"));
    assert_eq!(
        running.send(get("/api/health")).await.status(),
        StatusCode::OK
    );
    running.stop().await;
}

fn upload(world: &World) -> http::request::Builder {
    Request::builder()
        .method("POST")
        .uri("/api/admin/container/start")
        .header("host", "test")
        .header("cookie", world.cookie("root"))
        .header("x-csrf-token", world.token("root"))
        .header("content-type", "application/x-www-form-urlencoded")
}

#[tokio::test]
async fn l22_a_body_over_the_limit_is_refused_before_it_is_sent() {
    let running = serve(Limits::default()).await;
    let mut stream = running.connect().await;
    let head = format!(
        "POST /api/admin/container/start HTTP/1.1\r\nhost: test\r\ncookie: {}\r\nx-csrf-token: {}\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: 1048577\r\n\r\n",
        running.world.cookie("root"),
        running.world.token("root"),
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 413");
    running.stop().await;
}

#[tokio::test]
async fn l22_a_body_without_length_is_cut_at_the_limit() {
    let running = serve(Limits::default()).await;
    let request = |size: usize| {
        upload(&running.world)
            .body(Full::new(Bytes::from(vec![b'a'; size])))
            .unwrap()
    };
    assert_eq!(running.send(request(1024 * 1024)).await.status(), 200);
    let mut stream = running.connect().await;
    let head = format!(
        "POST /api/admin/container/start HTTP/1.1\r\nhost: test\r\ncookie: {}\r\nx-csrf-token: {}\r\n\
         content-type: application/x-www-form-urlencoded\r\ntransfer-encoding: chunked\r\n\r\n",
        running.world.cookie("root"),
        running.world.token("root"),
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let chunk = [b"10000\r\n".as_slice(), &vec![b'a'; 0x10000], b"\r\n"].concat();
    let write = async {
        let mut sent = 0;
        while writer.write_all(&chunk).await.is_ok() {
            sent += 1;
            assert!(sent < 1000, "64 MB were taken for a limit of 1 MiB");
        }
    };
    let read = async {
        let mut answer = vec![0; 12];
        reader.read_exact(&mut answer).await.unwrap();
        answer
    };
    let (answer, ()) = tokio::join!(read, write);
    assert_eq!(answer, b"HTTP/1.1 413");
    running.stop().await;
}

#[tokio::test]
async fn signing_out_does_not_wait_for_a_body() {
    let running = serve(Limits::default()).await;
    let mut stream = running.connect().await;
    let head = b"POST /api/logout?%ff HTTP/1.1\r\nhost: test\r\ncontent-type: nonsense\r\n\
        content-length: 1000000000\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let mut answer = vec![0; 12];
    let read = stream.read_exact(&mut answer);
    timeout(Duration::from_secs(5), read)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answer, b"HTTP/1.1 200");
    running.stop().await;
}

#[tokio::test]
async fn an_open_stream_ends_at_shutdown_and_running_requests_finish() {
    let running = serve(Limits::default()).await;
    let mut stream = running.connect().await;
    stream
        .write_all(b"GET /readyz HTTP/1.1\r\nhost: t\r\n\r\n")
        .await
        .unwrap();
    let mut seen = vec![0; 4096];
    let mut text = String::new();
    while !text.contains("data: first") {
        let n = stream.read(&mut seen).await.unwrap();
        text.push_str(&String::from_utf8_lossy(&seen[..n]));
    }
    assert!(
        text.contains("text/event-stream") && text.contains("x-frame-options: DENY"),
        "{text}"
    );
    let mut request = get("/api/config");
    let cookie = running.world.cookie("root").parse().unwrap();
    request.headers_mut().insert("cookie", cookie);
    let slow = send_over(running.connect().await, request);
    let stop = async {
        running.signs.begun.notified().await;
        running.stop().await
    };
    let mut rest = Vec::new();
    let (slow, took, _) = tokio::join!(slow, stop, stream.read_to_end(&mut rest));
    assert_eq!(slow.status(), 200);
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(rest.ends_with(b"0\r\n\r\n"), "the stream ended properly");
}

#[tokio::test]
async fn shutdown_is_bounded_by_its_limit() {
    let running = serve(Limits {
        shutdown: Duration::from_millis(300),
        ..Limits::default()
    })
    .await;
    let mut stream = running.connect().await;
    let head = format!(
        "GET /api/admin/tasks HTTP/1.1\r\nhost: t\r\ncookie: {}\r\n\r\n",
        running.world.cookie("root")
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    running.signs.begun.notified().await;
    assert!(!running.stop.is_cancelled());
    let took = running.stop().await;
    assert!((300..2000).contains(&took.as_millis()), "{took:?}");
}

#[tokio::test]
async fn the_admin_socket_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("admin.sock");
    let running = serve_on(
        Listener::admin_socket(&path).await.unwrap(),
        Limits::default(),
    )
    .await;
    let stream = UnixStream::connect(&path).await.unwrap();
    let request = Request::builder()
        .method("POST")
        .uri("/api/admin/container/start")
        .header("host", "socket")
        .body(Full::default())
        .unwrap();
    assert_eq!(send_over(stream, request).await.status(), 200);
    running.stop().await;
    assert!(!path.exists(), "the socket is gone after the stop");
}

/// Collects log lines.
#[derive(Clone, Default)]
struct Lines(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn collect(&self) -> tracing::subscriber::DefaultGuard {
        let lines = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(move || lines.clone())
            .with_ansi(false)
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[tokio::test]
async fn l62_no_client_makes_a_log_line_long_or_tells_it_secrets() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let running = serve(Limits::default()).await;
    let long = "x".repeat(10_000);
    let mut request = get(&format!("/api/{long}?password=hunter2"));
    *request.method_mut() = http::Method::from_bytes(long.as_bytes()).unwrap();
    request
        .headers_mut()
        .insert("x-request-id", long.parse().unwrap());
    request
        .headers_mut()
        .insert("cookie", format!("session={long}").parse().unwrap());
    assert_eq!(running.send(request).await.status(), 404);
    running.stop().await;
    let text = lines.text();
    let ours: Vec<_> = text
        .lines()
        .filter(|line| line.contains("status=404"))
        .collect();
    assert_eq!(ours.len(), 1, "one access line");
    assert!(ours[0].len() < 400 && !text.contains("hunter2"), "{ours:?}");
}

#[tokio::test]
async fn a_panic_is_logged_under_the_request_id() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let running = serve(Limits::default()).await;
    let mut request = get("/healthz");
    request
        .headers_mut()
        .insert("x-request-id", "find-me".parse().unwrap());
    running.send(request).await;
    running.stop().await;
    let text = lines.text();
    let line = text
        .lines()
        .find(|line| line.contains("a handler panicked"))
        .unwrap();
    assert!(
        line.contains("find-me") && line.contains("secret detail"),
        "{line}"
    );
}

#[tokio::test]
async fn l64_requests_that_are_hardly_http_never_cause_a_server_error() {
    let running = serve(hasty()).await;
    let long = format!(
        "GET /api/health HTTP/1.1\r\nhost: t\r\nx: {}\r\n\r\n",
        "x".repeat(100_000)
    );
    let requests: [&[u8]; 9] = [
        b"GET /api/\xff\xfe HTTP/1.1\r\nhost: t\r\n\r\n",
        b"GET /api/health?a=\xff HTTP/1.1\r\nhost: t\r\n\r\n",
        b"GET /api/health HTTP/1.1\r\nhost: t\r\nx-request-id: \xff\r\n\r\n",
        b"GET /api/csrf HTTP/1.1\r\nhost: t\r\ncookie: session=\xff\r\n\r\n",
        b"GET /api/health HTTP/1.1\r\nhost: t\r\nhost: u\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"POST /api/login HTTP/1.1\r\nhost: t\r\ncontent-type: \xff\r\ncontent-length: 1\r\n\r\na",
        b"POST /api/login HTTP/1.1\r\nhost: t\r\norigin: \xff\r\ncontent-length: 0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        long.as_bytes(),
    ];
    for bytes in requests {
        let mut stream = running.connect().await;
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        let _ = timeout(Duration::from_secs(5), stream.read_to_end(&mut answer))
            .await
            .unwrap();
        let head = String::from_utf8_lossy(&answer[..answer.len().min(12)]).into_owned();
        assert!(
            head.is_empty() || !head.starts_with("HTTP/1.1 5"),
            "{head} for {bytes:?}"
        );
    }
    assert_eq!(running.send(get("/api/health")).await.status(), 200);
    running.stop().await;
}
