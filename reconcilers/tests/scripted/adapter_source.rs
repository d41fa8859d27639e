//! Against a server that says what it is told to, over real sockets.

use std::time::Duration;

use kit::http::{self, Asked, Scripted};
use reconcilers::drivers::adapter_source::{
    Answer, HttpSource, Limits, PackageSource, SourceError, Validators,
};
use rstest::rstest;

struct Server {
    scripted: Scripted,
    url: String,
    /// Where it may redirect to.
    hosts: Vec<String>,
    /// How long it has.
    whole: Duration,
}

impl Server {
    async fn new(script: impl Fn(&str, &Asked) -> http::Answer + Send + Sync + 'static) -> Self {
        let scripted = Scripted::new(script).await;
        let url = format!("http://{}/adapter.zip?token=hunter2", scripted.address);
        let whole = Duration::from_secs(10);
        Self {
            scripted,
            url,
            hosts: Vec::new(),
            whole,
        }
    }

    async fn ask(&self, known: &Validators) -> Result<Answer, SourceError> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let limits = Limits {
            whole: self.whole,
            bytes: 1000,
        };
        let source = HttpSource::new(limits).unwrap();
        source.fetch(&self.url, &self.hosts, known).await
    }

    async fn refuses(&self) -> SourceError {
        let error = self.ask(&Validators::default()).await.unwrap_err();
        for text in [schema::error::chain(&error), format!("{error:?}")] {
            assert!(!text.contains("hunter2"), "{text}");
        }
        error
    }

    fn asked(&self) -> Vec<Asked> {
        self.scripted.asked()
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
    let Answer::Package {
        package,
        validators,
    } = answer
    else {
        panic!("{answer:?}");
    };
    assert!(package.is_err(), "three letters are no package");
    assert_eq!(validators, seen());
    let asked = server.asked().remove(0);
    assert_eq!(asked.header("if-none-match"), None);
    assert_eq!(asked.header("if-modified-since"), None);
}

#[tokio::test]
async fn what_is_known_is_not_given_again() {
    let server = Server::new(|_, _| Some((304, Vec::new(), Vec::new()))).await;
    assert_eq!(server.ask(&seen()).await.unwrap(), Answer::NotModified);
    let asked = server.asked().remove(0);
    assert_eq!(asked.header("if-none-match"), Some("\"v1\""));
    let since = asked.header("if-modified-since");
    assert_eq!(since, seen().last_modified.as_deref());
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
    let server = Server::new(|host, asked| match &*asked.path {
        "/new.zip" => Some((200, Vec::new(), b"zip".to_vec())),
        _ => {
            let there = ("location", format!("http://{host}/new.zip"));
            Some((302, vec![there], Vec::new()))
        }
    })
    .await;
    let answer = server.ask(&Validators::default()).await.unwrap();
    assert!(matches!(answer, Answer::Package { .. }));
    let there = server.asked().remove(1).head;
    assert!(!there.contains("hunter2"), "{there}");
    for target in ["https", "ftp", "file"] {
        let server = Server::new(move |host, _| {
            let there = ("location", format!("{target}://{host}/new.zip"));
            Some((302, vec![there], Vec::new()))
        })
        .await;
        let error = server.refuses().await;
        // What is no address of a server at all is not even a redirect.
        let left = matches!(error, SourceError::Redirect | SourceError::Status(302));
        assert!(left, "{target}: {error:?}");
        assert_eq!(server.asked().len(), 1);
    }
    let circle = Server::new(|host, _| {
        let there = ("location", format!("http://{host}/adapter.zip"));
        Some((302, vec![there], Vec::new()))
    })
    .await;
    assert!(matches!(circle.refuses().await, SourceError::Redirect));
    assert_eq!(circle.asked().len(), 6);
}

#[tokio::test]
async fn a_redirect_to_another_host_is_followed_only_if_that_is_listed() {
    let elsewhere = Server::new(|_, _| Some((200, Vec::new(), b"zip".to_vec()))).await;
    // Another port is another server.
    let host = elsewhere.scripted.address.clone();
    let there = format!("http://{host}/new.zip");
    let mut server =
        Server::new(move |_, _| Some((302, vec![("location", there.clone())], Vec::new()))).await;
    let refused = server.refuses().await;
    assert!(matches!(&refused, SourceError::RedirectHost(named) if *named == host));
    assert!(refused.to_string().contains("adapter.redirect_hosts"));
    assert!(elsewhere.asked().is_empty());
    server.hosts = vec!["127.0.0.1".to_owned()];
    server.refuses().await;
    server.hosts.push(host);
    let answer = server.ask(&Validators::default()).await.unwrap();
    assert!(matches!(answer, Answer::Package { .. }));
    assert_eq!(elsewhere.asked().len(), 1);
}

#[tokio::test]
async fn l72_a_source_of_this_machine_leads_nowhere_without_tls() {
    let there = "http://192.0.2.1:5000/new.zip";
    let mut server =
        Server::new(move |_, _| Some((302, vec![("location", there.to_owned())], Vec::new())))
            .await;
    server.hosts = vec!["192.0.2.1:5000".to_owned()];
    assert!(matches!(server.refuses().await, SourceError::Redirect));
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
