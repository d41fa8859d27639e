//! Against a registry that says what it is told to.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use schema::image::sort_newest_first;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use super::*;

/// What is asked: path with query, and the `Authorization` header.
struct Asked {
    path: String,
    authorization: Option<String>,
}

/// What is answered; `None` hangs.
type Answer = Option<(u16, Vec<(&'static str, String)>, String)>;

struct Scripted {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    /// A registry on loopback. The script is told its own address, too.
    async fn new(script: impl Fn(&str, Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (host, log) = (address.clone(), asked.clone());
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
                let head = String::from_utf8(head).unwrap();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let header = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(": ")?;
                    name.eq_ignore_ascii_case("authorization")
                        .then(|| value.to_owned())
                });
                log.lock().unwrap().push(path.clone());
                let answer = script(
                    &host,
                    Asked {
                        path,
                        authorization: header,
                    },
                );
                let Some((status, headers, body)) = answer else {
                    hanging.push(stream);
                    continue;
                };
                let mut text = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n");
                for (name, value) in headers {
                    text.push_str(&format!("{name}: {value}\r\n"));
                }
                text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
                // A client that has enough closes early.
                let _ = stream.write_all(text.as_bytes()).await;
            }
        });
        Self { address, asked }
    }

    async fn ask(&self, credentials: Option<&RegistryCredentials>) -> Result<Vec<String>, String> {
        let limits = Limits {
            answer: Duration::from_millis(500),
            ..Limits::default()
        };
        self.ask_within(limits, credentials).await
    }

    async fn ask_within(
        &self,
        limits: Limits,
        credentials: Option<&RegistryCredentials>,
    ) -> Result<Vec<String>, String> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let registry = OciRegistry::new(limits).unwrap();
        let image = format!("{}/team/agent:v1", self.address).parse().unwrap();
        let answer = registry.tags(&image, credentials, true).await;
        answer.map_err(|error| {
            assert_eq!(error.registry, self.address);
            error.to_string()
        })
    }

    fn paths(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn credentials() -> RegistryCredentials {
    RegistryCredentials {
        username: "robot".to_owned(),
        password: "hunter2".into(),
    }
}

fn tags(tags: &[String]) -> String {
    serde_json::json!({"name": "team/agent", "tags": tags}).to_string()
}

fn ok(body: impl Into<String>) -> Answer {
    Some((200, Vec::new(), body.into()))
}

fn with(status: u16, name: &'static str, value: impl Into<String>, body: &str) -> Answer {
    Some((status, vec![(name, value.into())], body.to_owned()))
}

#[tokio::test]
async fn l38_all_pages_are_read_whether_links_are_relative_or_absolute() {
    let all: Vec<String> = (0..250).map(|n| format!("v0.{n}.0")).collect();
    let registry = Scripted::new(move |host, asked| {
        let page: usize = asked
            .path
            .split_once("page=")
            .map_or(0, |(_, n)| n.parse().unwrap());
        let from = page * 40;
        let body = tags(&all[from..all.len().min(from + 40)]);
        let next = format!("/v2/team/agent/tags/list?n=40&page={}", page + 1);
        match page {
            6 => ok(body),
            // Another scheme and host: what some write behind a proxy.
            1 => with(
                200,
                "link",
                format!("<https://elsewhere.example{next}>; rel=\"next\""),
                &body,
            ),
            2 => with(
                200,
                "link",
                format!("<http://{host}{next}>; rel=next"),
                &body,
            ),
            _ => with(200, "link", format!("<{next}>; rel=\"next\""), &body),
        }
    })
    .await;
    let mut found = registry.ask(None).await.unwrap();
    assert_eq!(found.len(), 250);
    sort_newest_first(&mut found);
    assert_eq!((&*found[0], &*found[249]), ("v0.249.0", "v0.0.0"));
    assert_eq!(registry.paths().len(), 7);
}

#[tokio::test]
async fn a_token_is_fetched_from_whom_the_registry_names() {
    let registry = Scripted::new(|host, asked| {
        if asked.path.starts_with("/token") {
            assert!(
                asked
                    .path
                    .contains("scope=repository%3Ateam%2Fagent%3Apull")
            );
            assert!(asked.path.contains("service=own"));
            // robot:hunter2
            assert_eq!(
                asked.authorization.as_deref(),
                Some("Basic cm9ib3Q6aHVudGVyMg==")
            );
            return ok(r#"{"access_token":"abc"}"#);
        }
        match asked.authorization.as_deref() {
            Some("Bearer abc") => ok(tags(&["v1".to_owned()])),
            _ => {
                let challenge = format!("Bearer realm=\"http://{host}/token\",service=\"own\"");
                with(401, "www-authenticate", challenge, "")
            }
        }
    })
    .await;
    let credentials = credentials();
    assert_eq!(registry.ask(Some(&credentials)).await.unwrap(), ["v1"]);
    assert_eq!(registry.paths().len(), 3);
}

#[tokio::test]
async fn basic_credentials_are_sent_when_they_are_asked_for() {
    let registry = Scripted::new(|_, asked| match asked.authorization.as_deref() {
        Some("Basic cm9ib3Q6aHVudGVyMg==") => ok(tags(&["v1".to_owned()])),
        Some(other) => panic!("{other}"),
        None => with(401, "www-authenticate", "Basic realm=\"r\"", ""),
    })
    .await;
    let credentials = credentials();
    assert_eq!(registry.ask(Some(&credentials)).await.unwrap(), ["v1"]);
    let refused = registry.ask(None).await.unwrap_err();
    assert!(refused.contains("image.registry_username"), "{refused}");
}

#[tokio::test]
async fn a_refusal_says_what_to_check_and_never_the_password() {
    let credentials = credentials();
    for (status, words) in [
        (401, "image.registry_password"),
        (403, "image.registry_password"),
        (404, "no such repository"),
        (429, "try again later"),
        (500, "status 500"),
    ] {
        let registry = Scripted::new(move |_, _| {
            with(status, "www-authenticate", "Basic realm=\"r\"", "hunter2")
        })
        .await;
        let error = registry.ask(Some(&credentials)).await.unwrap_err();
        assert!(error.contains(words), "{error}");
        assert!(error.contains(&registry.address) && !error.contains("hunter2"));
        assert!(registry.paths().len() <= 2, "asked once more at most");
    }
}

#[tokio::test]
async fn a_registry_that_hangs_or_is_not_there_is_given_up() {
    let registry = Scripted::new(|_, _| None).await;
    let error = registry.ask(None).await.unwrap_err();
    assert!(error.contains("did not answer in time"), "{error}");
    let gone = Scripted {
        address: "127.0.0.1:1".to_owned(),
        asked: Arc::default(),
    };
    let error = gone.ask(None).await.unwrap_err();
    assert!(error.contains("can't be reached"), "{error}");
    assert!(error.contains("image.registry_plain_http"), "{error}");
}

#[tokio::test]
async fn what_has_no_end_is_cut_off() {
    let few = Limits {
        pages: 5,
        ..Limits::default()
    };
    let endless = |_: &str, asked: Asked| {
        let n = asked.path.len();
        let next = format!("</v2/team/agent/tags/list?{}>; rel=next", "x".repeat(n));
        with(200, "link", next, &tags(&[format!("v{n}")]))
    };
    let registry = Scripted::new(endless).await;
    let error = registry.ask_within(few, None).await.unwrap_err();
    assert!(error.contains("too many pages"), "{error}");
    assert_eq!(registry.paths().len(), 5);
    let circle = |_: &str, _: Asked| with(200, "link", "<list?n=1000>; rel=next", &tags(&[]));
    let error = Scripted::new(circle).await.ask(None).await.unwrap_err();
    assert!(error.contains("in a circle"), "{error}");
    let many: Vec<String> = (0..20).map(|n| format!("v{n}")).collect();
    let registry = Scripted::new(move |_, _| ok(tags(&many))).await;
    let limits = Limits {
        tags: 19,
        ..Limits::default()
    };
    let error = registry.ask_within(limits, None).await.unwrap_err();
    assert!(error.contains("too many tags"), "{error}");
    for junk in ["v1", "a b"] {
        let many = vec![junk.to_owned(); 20];
        let registry = Scripted::new(move |_, _| ok(tags(&many))).await;
        let error = registry.ask_within(limits, None).await.unwrap_err();
        assert!(error.contains("too many tags"), "{junk}: {error}");
    }
    let limits = Limits {
        page_bytes: 50,
        ..Limits::default()
    };
    let error = registry.ask_within(limits, None).await.unwrap_err();
    assert!(error.contains("too large"), "{error}");
    let slow = Limits {
        whole: Duration::from_millis(200),
        ..Limits::default()
    };
    let registry = Scripted::new(|_, _| None).await;
    let error = registry.ask_within(slow, None).await.unwrap_err();
    assert!(error.contains("in time"), "{error}");
}

#[tokio::test]
async fn what_is_no_list_of_tags_is_told_as_such() {
    for body in ["<html>", "[]", "{\"tags\":5}", "", "{\"tags\":[1]}"] {
        let registry = Scripted::new(move |_, _| ok(body)).await;
        let error = registry.ask(None).await.unwrap_err();
        assert!(error.contains("no list of tags"), "{body}: {error}");
    }
    let registry = Scripted::new(|_, _| ok(r#"{"tags":null}"#)).await;
    assert!(registry.ask(None).await.unwrap().is_empty());
    let odd = r#"{"tags":["ok","a b","","../x","\u00fc","\u006fk"]}"#;
    let registry = Scripted::new(move |_, _| ok(odd)).await;
    assert_eq!(registry.ask(None).await.unwrap(), ["ok"]);
}

#[test]
fn a_redirect_leads_to_the_same_place_or_to_its_tls() {
    for (from, to, expected) in [
        ("https://r.example/a", "https://r.example/b", true),
        ("https://r.example/a", "https://r.example:443/b", true),
        ("http://r.example:5000/a", "http://r.example:5000/b", true),
        ("http://r.example/a", "https://r.example/a", true),
        ("https://r.example/a", "https://other.example/a", false),
        ("https://r.example/a", "https://r.example:444/a", false),
        ("https://r.example/a", "https://169.254.169.254/a", false),
        ("https://r.example/a", "http://r.example/a", false),
        ("http://r.example/a", "https://other.example/a", false),
        ("http://r.example/a", "http://r.example:81/a", false),
    ] {
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        assert_eq!(real::stays(&from, &to), expected, "{from} {to}");
    }
}

#[tokio::test]
async fn nobody_is_led_elsewhere_with_the_credentials() {
    let elsewhere = Scripted::new(|_, _| ok(tags(&["stolen".to_owned()]))).await;
    let target = format!("http://{}/v2/team/agent/tags/list", elsewhere.address);
    let registry = Scripted::new(move |_, _| with(307, "location", target.clone(), "")).await;
    let error = registry.ask(Some(&credentials())).await.unwrap_err();
    assert!(error.contains("redirect"), "{error}");
    assert!(elsewhere.paths().is_empty());
    let realm = "Bearer realm=\"ftp://r.example/token\"";
    let registry = Scripted::new(move |_, _| with(401, "www-authenticate", realm, "")).await;
    let error = registry.ask(Some(&credentials())).await.unwrap_err();
    assert!(error.contains("token service"), "{error}");
    let registry = Scripted::new(|_, asked| {
        let first = !asked.path.contains("again");
        if first {
            return with(302, "location", "/v2/again", "");
        }
        ok(tags(&["v1".to_owned()]))
    })
    .await;
    assert_eq!(registry.ask(None).await.unwrap(), ["v1"], "the same place");
}
