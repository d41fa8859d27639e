//! Against a server that says what it is told to, over real sockets.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rstest::rstest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use super::*;

/// What is answered: status, headers and body; `None` hangs.
pub(crate) type Scripted = Option<(u16, Vec<(&'static str, String)>, Vec<u8>)>;

pub(crate) struct Server {
    pub(crate) url: String,
    /// How long it has.
    whole: Duration,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) async fn new(
        script: impl Fn(&str, &str) -> Scripted + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let url = format!("http://{host}/adapter.zip?token=hunter2");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        TaskTracker::new().spawn(async move {
            let mut hanging = Vec::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => break,
                    }
                }
                let head = String::from_utf8(head).unwrap().to_lowercase();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let answer = script(&host, &path);
                log.lock().unwrap().push(head);
                let Some((status, headers, body)) = answer else {
                    hanging.push(stream);
                    continue;
                };
                let mut text = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n");
                for (name, value) in headers {
                    text.push_str(&format!("{name}: {value}\r\n"));
                }
                text.push_str("\r\n");
                // A client that has enough closes early.
                let _ = stream.write_all(text.as_bytes()).await;
                let _ = stream.write_all(&body).await;
            }
        });
        let whole = Duration::from_secs(10);
        Self { url, whole, asked }
    }

    async fn ask(&self, known: &Validators) -> Result<Answer, SourceError> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let limits = Limits {
            whole: self.whole,
            bytes: 1000,
        };
        let source = HttpSource::new(limits).unwrap();
        source.fetch(&self.url, known).await
    }

    async fn refuses(&self) -> SourceError {
        let error = self.ask(&Validators::default()).await.unwrap_err();
        for text in [schema::error::chain(&error), format!("{error:?}")] {
            assert!(!text.contains("hunter2"), "{text}");
        }
        error
    }
}

fn seen() -> Validators {
    Validators {
        etag: Some("\"v1\"".to_owned()),
        last_modified: Some("Sat, 01 Jan 2000 00:00:00 GMT".to_owned()),
    }
}

#[tokio::test]
async fn a_package_comes_with_what_to_ask_with_next_time() {
    let server = Server::new(|_, _| {
        let headers = vec![
            ("etag", "\"v1\"".to_owned()),
            ("last-modified", "Sat, 01 Jan 2000 00:00:00 GMT".to_owned()),
        ];
        Some((200, headers, b"zip".to_vec()))
    })
    .await;
    let answer = server.ask(&Validators::default()).await.unwrap();
    let expected = Answer::Package {
        bytes: b"zip".to_vec(),
        validators: seen(),
    };
    assert_eq!(answer, expected);
    let head = server.asked.lock().unwrap()[0].clone();
    assert!(!head.contains("if-none-match") && !head.contains("if-modified-since"));
}

#[tokio::test]
async fn what_is_known_is_not_given_again() {
    let server = Server::new(|_, _| Some((304, Vec::new(), Vec::new()))).await;
    assert_eq!(server.ask(&seen()).await.unwrap(), Answer::NotModified);
    let head = server.asked.lock().unwrap()[0].clone();
    assert!(head.contains("if-none-match: \"v1\""), "{head}");
    assert!(
        head.contains("if-modified-since: sat, 01 jan 2000"),
        "{head}"
    );
    // Nobody asked whether it is the same.
    assert!(matches!(server.refuses().await, SourceError::Status(304)));
}

#[rstest]
#[case(404)]
#[case(500)]
#[case(206)]
#[tokio::test]
async fn another_status_is_no_package(#[case] status: u16) {
    let server = Server::new(move |_, _| Some((status, Vec::new(), b"zip".to_vec()))).await;
    assert!(matches!(server.refuses().await, SourceError::Status(told) if told == status));
}

#[tokio::test]
async fn a_source_that_hangs_is_left() {
    let mut silent = Server::new(|_, _| None).await;
    silent.whole = Duration::from_millis(500);
    assert!(matches!(silent.refuses().await, SourceError::Timeout));
}

#[tokio::test]
async fn a_body_that_never_ends_is_left_at_the_limit_whatever_is_announced() {
    let large = Server::new(|_, _| Some((200, Vec::new(), vec![b'x'; 1001]))).await;
    assert!(matches!(large.refuses().await, SourceError::TooLarge(1000)));
    let just_fits = Server::new(|_, _| Some((200, Vec::new(), vec![b'x'; 1000]))).await;
    just_fits.ask(&Validators::default()).await.unwrap();
    let promised = Server::new(|_, _| {
        let headers = vec![("content-length", "100".to_owned())];
        Some((200, headers, b"x".to_vec()))
    })
    .await;
    assert!(matches!(
        promised.refuses().await,
        SourceError::Unreachable(_)
    ));
}

#[tokio::test]
async fn redirects_are_followed_in_the_same_scheme_and_not_for_ever() {
    let server = Server::new(|host, path| match path {
        "/new.zip" => Some((200, Vec::new(), b"zip".to_vec())),
        _ => {
            let there = ("location", format!("http://{host}/new.zip"));
            Some((302, vec![there], Vec::new()))
        }
    })
    .await;
    let answer = server.ask(&Validators::default()).await.unwrap();
    assert!(matches!(answer, Answer::Package { bytes, .. } if bytes == b"zip"));
    let there = server.asked.lock().unwrap()[1].clone();
    assert!(!there.contains("hunter2"), "{there}");
    for target in ["https", "ftp", "file"] {
        let server = Server::new(move |host, _| {
            let there = ("location", format!("{target}://{host}/new.zip"));
            Some((302, vec![there], Vec::new()))
        })
        .await;
        let error = server.refuses().await;
        // What is no address of a server at all is not even a redirect to the client.
        let left = matches!(error, SourceError::Redirect | SourceError::Status(302));
        assert!(left, "{target}: {error:?}");
        assert_eq!(server.asked.lock().unwrap().len(), 1);
    }
    let circle = Server::new(|host, _| {
        let there = ("location", format!("http://{host}/adapter.zip"));
        Some((302, vec![there], Vec::new()))
    })
    .await;
    assert!(matches!(circle.refuses().await, SourceError::Redirect));
    assert_eq!(circle.asked.lock().unwrap().len(), 6);
}

#[tokio::test]
async fn nobody_at_the_address_is_said_without_it() {
    let mut server = Server::new(|_, _| None).await;
    server.url = "http://127.0.0.1:1/a.zip?token=hunter2".to_owned();
    assert!(matches!(
        server.refuses().await,
        SourceError::Unreachable(_)
    ));
}
