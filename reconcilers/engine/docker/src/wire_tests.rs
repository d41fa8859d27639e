//! The driver against a server of ours that answers as no engine should, or as only some do.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use engine::*;
use futures::StreamExt;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use schema::ids::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite};

use super::*;

type Body = UnsyncBoxBody<Bytes, Infallible>;
type Answer = Arc<dyn Fn(&Asked) -> Response<Body> + Send + Sync>;

/// A request as the server saw it.
#[derive(Debug, Clone)]
struct Asked {
    path: String,
    query: String,
    headers: http::HeaderMap,
    body: Bytes,
}

fn answer(status: u16, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(body.into()).boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
    response
}

/// Parts that come one after the other, and then nothing more, without an end.
fn endless(parts: Vec<Bytes>) -> Response<Body> {
    let parts = futures::stream::iter(parts)
        .chain(futures::stream::pending())
        .map(|part| Ok(Frame::data(part)));
    Response::new(StreamBody::new(parts).boxed_unsync())
}

/// A server for as long as it is kept.
struct Server {
    asked: Arc<Mutex<Vec<Asked>>>,
    tasks: tokio::task::JoinSet<()>,
    _directory: Option<tempfile::TempDir>,
}

async fn serve<I>(io: I, answer: Answer, asked: Arc<Mutex<Vec<Asked>>>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let (answer, asked) = (answer.clone(), asked.clone());
        async move {
            let (head, body) = request.into_parts();
            let seen = Asked {
                path: head.uri.path().to_owned(),
                query: head.uri.query().unwrap_or_default().to_owned(),
                headers: head.headers,
                body: body.collect().await?.to_bytes(),
            };
            asked.lock().unwrap().push(seen.clone());
            if seen.path == "/version" {
                let version = r#"{"Version":"20.10.24","ApiVersion":"1.41"}"#;
                return Ok::<_, hyper::Error>(self::answer(200, version));
            }
            Ok(answer(&seen))
        }
    });
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(io), service)
        .await;
}

/// A server on a Unix socket, and a driver that talks to it.
fn engine(
    answer: impl Fn(&Asked) -> Response<Body> + Send + Sync + 'static,
) -> (DockerEngine, Server) {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("docker.sock");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (answer, seen): (Answer, _) = (Arc::new(answer), asked.clone());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((io, _)) = listener.accept().await {
            connections.spawn(serve(io, answer.clone(), seen.clone()));
        }
    });
    let host = format!("unix://{}", socket.display()).parse().unwrap();
    let limit = Duration::from_millis(500);
    let engine = DockerEngine::new(host, None).with_timeouts(limit, limit);
    let server = Server {
        asked,
        tasks,
        _directory: Some(directory),
    };
    (engine, server)
}

impl Server {
    fn last(&self, path: &str) -> Asked {
        let asked = self.asked.lock().unwrap();
        let found = asked.iter().rev().find(|asked| asked.path == path);
        found
            .unwrap_or_else(|| panic!("nobody asked for {path}: {asked:?}"))
            .clone()
    }
}

#[rstest::rstest]
#[case::nothing("")]
#[case::null("null")]
#[case::cut(r#"[{"Id":"c1","Names":["/x"]"#)]
#[case::not_a_list(r#"{"message":"hello"}"#)]
#[case::no_state(r#"[{"Id":"c1","Names":["/x"],"ImageID":"sha256:aa","Created":1}]"#)]
#[case::unknown_state(
    r#"[{"Id":"c1","Names":["/x"],"ImageID":"sha256:aa","Created":1,"State":"dreaming"}]"#
)]
#[tokio::test]
async fn a_listing_that_cannot_be_read_is_an_error_and_never_empty(#[case] body: &'static str) {
    let (engine, _server) = engine(move |_| answer(200, body));
    let listed = engine.list("me", None).await;
    assert!(listed.is_err(), "{listed:?}");
}

#[tokio::test]
async fn a_server_that_never_answers_is_a_timeout() {
    // A body that does not end, in place of an answer that does.
    let (engine, _server) = engine(|_| endless(vec![Bytes::from_static(b"[")]));
    let begun = tokio::time::Instant::now();
    let listed = engine.list("me", None).await;
    assert!(matches!(listed, Err(EngineError::Timeout(_))), "{listed:?}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn socket_without_a_server_is_unavailable() {
    let (engine, mut server) = engine(|_| answer(200, "[]"));
    assert_eq!(engine.list("me", None).await.unwrap(), []);
    server.tasks.shutdown().await;
    let listed = engine.list("me", None).await;
    assert!(
        matches!(listed, Err(EngineError::Unavailable(_))),
        "{listed:?}"
    );
}

/// Everything a pull reports.
async fn pulled(engine: &DockerEngine, reference: &str) -> Vec<Result<PullEvent, EngineError>> {
    match engine.pull(reference, None).await {
        Ok(reported) => reported.collect().await,
        Err(error) => vec![Err(error)],
    }
}

#[rstest::rstest]
#[case::with_details(
    r#"{"errorDetail":{"message":"connection reset"},"error":"connection reset"}"#,
    false
)]
#[case::refused(
    r#"{"errorDetail":{"code":401,"message":"unauthorized: wrong password"},"error":"unauthorized: wrong password"}"#,
    true
)]
#[case::without_words(r#"{"errorDetail":{"code":500}}"#, false)]
#[tokio::test]
async fn l37_an_error_inside_a_pulls_stream_is_its_last_item(
    #[case] error: &str,
    #[case] refused: bool,
) {
    let stream = format!(
        "{}\r\n{error}\r\n{}\r\n",
        r#"{"status":"Pulling from agent","id":"1"}"#, r#"{"status":"Pull complete","id":"aa"}"#
    );
    let (engine, _server) = engine(move |_| answer(200, stream.clone()));
    let reported = pulled(&engine, "agent:1").await;
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert_eq!(reported[0].as_ref().unwrap().status, "Pulling from agent");
    match &reported[1] {
        Err(EngineError::PullRefused(_)) => assert!(refused, "{reported:?}"),
        Err(EngineError::PullFailed(_)) => assert!(!refused, "{reported:?}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_pull_that_is_refused_at_once_says_so() {
    let words = r#"{"message":"manifest for r:5000/a:1 not found: manifest unknown"}"#;
    let (engine, _server) = engine(move |_| answer(404, words));
    let reported = pulled(&engine, "r:5000/a:1").await;
    assert!(
        matches!(reported.as_slice(), [Err(EngineError::PullRefused(_))]),
        "{reported:?}"
    );
}

#[tokio::test]
async fn l37_a_pull_tells_each_event_whole_and_bounded() {
    let long = "x".repeat(9_000);
    let stream = [
        r#"{"status":"Pulling from agent","id":"1"}"#.to_owned(),
        r#"{"status":"Pulling fs layer","progressDetail":{},"id":"aa"}"#.to_owned(),
        r#"{"status":"Downloading","progressDetail":{"current":512,"total":4096},"progress":"[=> ]","id":"aa"}"#.to_owned(),
        r#"{"status":"Downloading","progressDetail":{"current":512,"total":-1},"id":"bb"}"#.to_owned(),
        format!(r#"{{"status":"{long}","id":"{long}"}}"#),
        r#"{"status":"Status: Downloaded newer image for agent:1"}"#.to_owned(),
    ]
    .join("\r\n");
    let (engine, _server) = engine(move |_| answer(200, stream.clone()));
    let reported: Vec<PullEvent> = pulled(&engine, "agent:1")
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(reported.len(), 6);
    let progress = |event: &PullEvent| (event.id.clone(), event.current, event.total);
    assert_eq!(progress(&reported[1]), (Some("aa".to_owned()), None, None));
    assert_eq!(
        progress(&reported[2]),
        (Some("aa".to_owned()), Some(512), Some(4096))
    );
    assert_eq!(
        progress(&reported[3]),
        (Some("bb".to_owned()), Some(512), None)
    );
    assert!(reported[4].status.len() <= 256 && reported[4].id.as_ref().unwrap().len() <= 128);
    assert_eq!(reported[5].id, None);
}

#[tokio::test]
async fn pull_times_out_only_without_progress() {
    let (engine, _server) = engine(|asked| {
        let line = Bytes::from_static(b"{\"status\":\"Downloading\"}\n");
        match asked.query.contains("slow") {
            // Longer than the limit in all, but never that long without a sign.
            true => {
                let parts = futures::stream::iter(0..8).then(move |_| {
                    let line = line.clone();
                    async move {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        Ok(Frame::data(line))
                    }
                });
                Response::new(StreamBody::new(parts).boxed_unsync())
            }
            false => endless(vec![line]),
        }
    });
    let stuck = pulled(&engine, "stuck:1").await;
    assert!(
        matches!(stuck.as_slice(), [Ok(_), Err(EngineError::Timeout(_))]),
        "{stuck:?}"
    );
    let slow = pulled(&engine, "slow:1").await;
    assert!(
        slow.len() == 8 && slow.iter().all(Result::is_ok),
        "{slow:?}"
    );
}

#[tokio::test]
async fn a_pull_whose_connection_breaks_is_an_error() {
    let (engine, _server) = engine(|_| {
        let parts = futures::stream::iter([Ok(Frame::data(Bytes::from_static(
            b"{\"status\":\"Downloading\",\"id\":\"aa\"}\n{\"status\":\"Down",
        )))]);
        let mut response = Response::new(StreamBody::new(parts).boxed_unsync());
        // More is promised than comes.
        let promised = http::HeaderValue::from_static("9999");
        response.headers_mut().insert("content-length", promised);
        response
    });
    let reported = pulled(&engine, "agent:1").await;
    assert!(matches!(reported.last(), Some(Err(_))), "{reported:?}");
}

#[tokio::test]
async fn images_are_listed_and_removed_without_force() {
    let (engine, server) = engine(|asked| match asked.path.as_str() {
        "/images/json" => answer(
            200,
            r#"[{"Id":"sha256:aa","ParentId":"","RepoTags":["b:1","a:1"],"RepoDigests":null,"Created":7,"Size":9,"SharedSize":-1,"Labels":null,"Containers":-1},
                {"Id":"sha256:bb","ParentId":"","RepoTags":["<none>:<none>"],"RepoDigests":["<none>@<none>"],"Created":8,"Size":9,"SharedSize":-1,"Labels":{},"Containers":-1}]"#,
        ),
        "/images/used:1" => answer(409, r#"{"message":"conflict: container 1 is using it"}"#),
        "/images/gone:1" => answer(404, r#"{"message":"No such image: gone:1"}"#),
        _ => answer(
            200,
            r#"[{"Untagged":"r:5000/a:1"},{"Deleted":"sha256:aa"}]"#,
        ),
    });
    let images = engine.images().await.unwrap();
    assert_eq!(images[0].repo_tags, ["a:1", "b:1"]);
    assert_eq!(images[0].created_at, Timestamp::from_secs(7));
    assert_eq!(
        (images[1].repo_tags.len(), images[1].repo_digests.len()),
        (0, 0)
    );
    engine.remove_image("r:5000/team/a:1").await.unwrap();
    let query = server.last("/images/r:5000/team/a:1").query;
    assert!(!query.contains("force=true"), "{query}");
    engine.remove_image("gone:1").await.unwrap();
    let used = engine.remove_image("used:1").await;
    assert!(matches!(used, Err(EngineError::Conflict(_))), "{used:?}");
    let bad = engine.remove_image("a?force=1").await;
    assert!(matches!(bad, Err(EngineError::Refused(_))), "{bad:?}");
}

#[tokio::test]
async fn credentials_arrive_whatever_the_password() {
    let (engine, server) = engine(|_| answer(200, r#"{"Id":"sha256:aa"}"#));
    for password in ["secret", "??>>~~", "a?b?c?d?", "ä>~?ÿ"] {
        let credentials = RegistryCredentials {
            username: "alice".to_owned(),
            password: password.to_owned().into(),
        };
        let reported = engine.pull("registry:5000/agent", Some(&credentials)).await;
        assert!(
            reported
                .unwrap()
                .all(|event| async move { event.is_ok() })
                .await
        );
        let asked = server.last("/images/create");
        assert!(asked.query.contains("agent%3Alatest"), "{}", asked.query);
        let header = asked.headers["X-Registry-Auth"].to_str().unwrap();
        let decoded: serde_json::Value =
            serde_json::from_slice(&url_safe_base64(header).expect("the alphabet of URLs"))
                .unwrap();
        assert_eq!(decoded["username"], "alice");
        assert_eq!(decoded["password"], password);
    }
}

/// Decodes as the engine does; `None` for a character of the other alphabet.
fn url_safe_base64(text: &str) -> Option<Vec<u8>> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut bits = 0u32;
    let mut count = 0;
    let mut bytes = Vec::new();
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        bits = bits << 6 | u32::try_from(ALPHABET.iter().position(|c| *c == byte)?).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(bytes)
}

#[tokio::test]
async fn network_request_checks_for_a_duplicate_name() {
    let (engine, server) = engine(|_| answer(201, r#"{"Id":"n1","Warning":""}"#));
    let settings = NetworkSettings {
        name: "agentyard".to_owned(),
        subnet: "10.88.0.0/16".to_owned(),
        labels: BTreeMap::new(),
        isolation: Default::default(),
    };
    engine.create_network(&settings).await.unwrap();
    let body: serde_json::Value =
        serde_json::from_slice(&server.last("/networks/create").body).unwrap();
    assert_eq!(body["CheckDuplicate"], true);
    assert_eq!(body["Name"], "agentyard");
}

#[tokio::test]
async fn l42_log_frame_of_four_gigabytes_is_handed_on_as_it_comes() {
    let (engine, server) = engine(|asked| match asked.path.ends_with("/logs") {
        true => endless(vec![
            Bytes::from_static(&[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]),
            Bytes::from_static(b"the first words"),
        ]),
        false => answer(
            200,
            r#"{"Id":"c1","Name":"/agent","Created":"2026-01-02T03:04:05Z","State":{"Status":"running"}}"#,
        ),
    });
    let options = LogOptions {
        follow: true,
        tail: Some(7),
        ..LogOptions::default()
    };
    let mut log = engine.logs("agent", &options).await.unwrap();
    let first = tokio::time::timeout(Duration::from_secs(5), log.next()).await;
    assert_eq!(first.unwrap().unwrap().unwrap().bytes, "the first words");
    let asked = server.last("/containers/agent/logs");
    assert_eq!(
        asked.query,
        "stdout=true&stderr=true&follow=true&timestamps=false&tail=7"
    );
}

#[tokio::test]
async fn a_log_that_stops_coming_is_a_timeout_unless_it_is_followed() {
    let (engine, _server) = engine(|asked| match asked.path.ends_with("/logs") {
        true => endless(vec![Bytes::from_static(b"\x01\0\0\0\0\0\0\x02hi")]),
        false => answer(
            200,
            r#"{"Id":"c1","Name":"/agent","Created":"2026-01-02T03:04:05Z","State":{"Status":"running"}}"#,
        ),
    });
    let mut log = engine.logs("agent", &LogOptions::default()).await.unwrap();
    assert_eq!(log.next().await.unwrap().unwrap().bytes, "hi");
    let next = log.next().await;
    assert!(
        matches!(next, Some(Err(EngineError::Timeout(_)))),
        "{next:?}"
    );
    assert!(log.next().await.is_none());
}

#[tokio::test]
async fn events_are_requested_since_the_engines_now_without_reads() {
    let (engine, server) = engine(|asked| match asked.path.as_str() {
        "/info" => answer(200, r#"{"SystemTime":"2026-01-02T03:04:05.678901Z"}"#),
        _ => answer(
            200,
            concat!(
                r#"{"Type":"container","Action":"die","Actor":{"Attributes":{"io.agentyard.uid":"u1"}}}"#,
                "\n",
                r#"{"Type":"container","Action":"die","Actor":{"Attributes":{}}}"#,
                "\n",
                r#"{"Type":"container","Action":"start","Actor":{"Attributes":{"io.agentyard.uid":"u2"}}}"#,
                "\n",
            ),
        ),
    });
    let events = engine.events("me").await.unwrap();
    let events: Vec<_> = events.map(|event| event.unwrap().uid).collect().await;
    assert_eq!(
        events,
        ["u1", "u2"],
        "and the stream ends with the connection"
    );
    let query = server.last("/events").query;
    assert!(query.contains("since=1767323045.678"), "{query}");
    assert!(query.contains("io.agentyard.owner%3Dme"), "{query}");
    assert!(
        !query.contains("exec") && !query.contains("archive"),
        "{query}"
    );
}

#[tokio::test]
async fn limits_that_are_not_reported_do_not_count() {
    let (engine, _server) =
        engine(|_| answer(200, r#"{"NCPU":2,"MemTotal":1024,"MemoryLimit":true}"#));
    let info = engine.info().await.unwrap();
    assert_eq!((info.version.as_str(), info.too_old), ("20.10.24", None));
    assert_eq!((info.limits.memory, info.limits.pids), (true, false));
}

/// A server behind TLS that asks for a client certificate, and the files to reach it with.
async fn tls_server(directory: &Path) -> (u16, tokio::task::JoinSet<()>) {
    let new_key = || rcgen::KeyPair::generate().unwrap();
    let ca_key = new_key();
    let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca_certificate = ca.self_signed(&ca_key).unwrap();
    let issuer = rcgen::Issuer::new(ca, ca_key);
    let sign = |name: &str| {
        let key = new_key();
        let certificate = rcgen::CertificateParams::new(vec![name.to_owned()])
            .unwrap()
            .signed_by(&key, &issuer)
            .unwrap();
        (certificate, key)
    };
    let (server, server_key) = sign("localhost");
    let (client, client_key) = sign("client");
    std::fs::write(directory.join("ca.pem"), ca_certificate.pem()).unwrap();
    std::fs::write(directory.join("cert.pem"), client.pem()).unwrap();
    std::fs::write(directory.join("key.pem"), client_key.serialize_pem()).unwrap();

    let mut roots = rustls::RootCertStore::empty();
    roots.add(ca_certificate.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
        Arc::new(roots),
        provider.clone(),
    )
    .build()
    .unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![server.der().clone()],
            rustls::pki_types::PrivateKeyDer::try_from(server_key.serialize_der()).unwrap(),
        )
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        while let Ok((io, _)) = listener.accept().await {
            if let Ok(io) = acceptor.accept(io).await {
                serve(io, Arc::new(|_| answer(200, "[]")), Arc::default()).await;
            }
        }
    });
    (port, tasks)
}

#[tokio::test]
async fn tls_engine_is_reached_only_with_a_client_certificate() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let directory = tempfile::tempdir().unwrap();
    let (port, _tasks) = tls_server(directory.path()).await;
    let files = TlsFiles {
        ca: directory.path().join("ca.pem"),
        cert: directory.path().join("cert.pem"),
        key: directory.path().join("key.pem"),
    };
    for scheme in ["tcp", "https"] {
        let host: DockerHost = format!("{scheme}://localhost:{port}").parse().unwrap();
        let engine = DockerEngine::new(host.clone(), Some(files.clone()));
        assert_eq!(engine.list("me", None).await.unwrap(), []);

        let engine = DockerEngine::new(host, None);
        let refused = engine.list("me", None).await;
        assert!(
            matches!(refused, Err(EngineError::Unavailable(_))),
            "{refused:?}"
        );
    }
    let other = tempfile::tempdir().unwrap();
    let _other = tls_server(other.path()).await;
    let strangers = TlsFiles {
        cert: other.path().join("cert.pem"),
        key: other.path().join("key.pem"),
        ..files
    };
    let host: DockerHost = format!("tcp://localhost:{port}").parse().unwrap();
    let refused = DockerEngine::new(host, Some(strangers))
        .list("me", None)
        .await;
    assert!(
        matches!(refused, Err(EngineError::Unavailable(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn an_engine_behind_plain_tcp_is_reached() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        while let Ok((io, _)) = listener.accept().await {
            serve(io, Arc::new(|_| answer(200, "[]")), Arc::default()).await;
        }
    });
    let engine = DockerEngine::new(format!("tcp://127.0.0.1:{port}").parse().unwrap(), None);
    assert_eq!(engine.list("me", None).await.unwrap(), []);
    tasks.shutdown().await;
    let gone = engine.list("me", None).await;
    assert!(matches!(gone, Err(EngineError::Unavailable(_))), "{gone:?}");
}
