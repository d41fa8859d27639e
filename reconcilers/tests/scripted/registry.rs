//! Against a registry that says what it is told to.

use std::time::Duration;

use engine::RegistryCredentials;
use kit::http::{Answer, Asked, Scripted};
use reconcilers::drivers::registry::{Limits, OciRegistry, Registry};
use schema::image::sort_newest_first;

async fn ask(
    registry: &Scripted,
    credentials: Option<&RegistryCredentials>,
) -> Result<Vec<String>, String> {
    let limits = Limits {
        answer: Duration::from_millis(500),
        ..Limits::default()
    };
    ask_within(&registry.address, limits, credentials).await
}

async fn ask_within(
    address: &str,
    limits: Limits,
    credentials: Option<&RegistryCredentials>,
) -> Result<Vec<String>, String> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let registry = OciRegistry::new(limits).unwrap();
    let image = format!("{address}/team/agent:v1").parse().unwrap();
    let answer = registry.tags(&image, credentials, true).await;
    answer.map_err(|error| {
        assert_eq!(error.registry, address);
        error.to_string()
    })
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
    Some((200, Vec::new(), body.into().into_bytes()))
}

fn with(status: u16, name: &'static str, value: impl Into<String>, body: &str) -> Answer {
    Some((status, vec![(name, value.into())], body.as_bytes().to_vec()))
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
    let mut found = ask(&registry, None).await.unwrap();
    assert_eq!(found.len(), 250);
    sort_newest_first(&mut found);
    assert_eq!((&*found[0], &*found[249]), ("v0.249.0", "v0.0.0"));
    assert_eq!(registry.asked().len(), 7);
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
                asked.header("authorization"),
                Some("Basic cm9ib3Q6aHVudGVyMg==")
            );
            return ok(r#"{"access_token":"abc"}"#);
        }
        match asked.header("authorization") {
            Some("Bearer abc") => ok(tags(&["v1".to_owned()])),
            _ => {
                let challenge = format!("Bearer realm=\"http://{host}/token\",service=\"own\"");
                with(401, "www-authenticate", challenge, "")
            }
        }
    })
    .await;
    let credentials = credentials();
    assert_eq!(ask(&registry, Some(&credentials)).await.unwrap(), ["v1"]);
    assert_eq!(registry.asked().len(), 3);
}

#[tokio::test]
async fn basic_credentials_are_sent_when_they_are_asked_for() {
    let registry = Scripted::new(|_, asked| match asked.header("authorization") {
        Some("Basic cm9ib3Q6aHVudGVyMg==") => ok(tags(&["v1".to_owned()])),
        Some(other) => panic!("{other}"),
        None => with(401, "www-authenticate", "Basic realm=\"r\"", ""),
    })
    .await;
    let credentials = credentials();
    assert_eq!(ask(&registry, Some(&credentials)).await.unwrap(), ["v1"]);
    let refused = ask(&registry, None).await.unwrap_err();
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
        let error = ask(&registry, Some(&credentials)).await.unwrap_err();
        assert!(error.contains(words), "{error}");
        assert!(error.contains(&registry.address) && !error.contains("hunter2"));
        assert!(registry.asked().len() <= 2, "asked once more at most");
    }
}

#[tokio::test]
async fn a_registry_that_hangs_or_is_not_there_is_given_up() {
    let registry = Scripted::new(|_, _| None).await;
    let error = ask(&registry, None).await.unwrap_err();
    assert!(error.contains("did not answer in time"), "{error}");
    let error = ask_within("127.0.0.1:1", Limits::default(), None)
        .await
        .unwrap_err();
    assert!(error.contains("can't be reached"), "{error}");
    assert!(error.contains("image.registry_plain_http"), "{error}");
}

#[tokio::test]
async fn what_has_no_end_is_cut_off() {
    let few = Limits {
        pages: 5,
        ..Limits::default()
    };
    let endless = |_: &str, asked: &Asked| {
        let n = asked.path.len();
        let next = format!("</v2/team/agent/tags/list?{}>; rel=next", "x".repeat(n));
        with(200, "link", next, &tags(&[format!("v{n}")]))
    };
    let registry = Scripted::new(endless).await;
    let error = ask_within(&registry.address, few, None).await.unwrap_err();
    assert!(error.contains("too many pages"), "{error}");
    assert_eq!(registry.asked().len(), 5);
    let circle = |_: &str, _: &Asked| with(200, "link", "<list?n=1000>; rel=next", &tags(&[]));
    let error = ask(&Scripted::new(circle).await, None).await.unwrap_err();
    assert!(error.contains("in a circle"), "{error}");
    let many: Vec<String> = (0..20).map(|n| format!("v{n}")).collect();
    let registry = Scripted::new(move |_, _| ok(tags(&many))).await;
    let limits = Limits {
        tags: 19,
        ..Limits::default()
    };
    let error = ask_within(&registry.address, limits, None)
        .await
        .unwrap_err();
    assert!(error.contains("too many tags"), "{error}");
    for junk in ["v1", "a b"] {
        let many = vec![junk.to_owned(); 20];
        let registry = Scripted::new(move |_, _| ok(tags(&many))).await;
        let error = ask_within(&registry.address, limits, None)
            .await
            .unwrap_err();
        assert!(error.contains("too many tags"), "{junk}: {error}");
    }
    let limits = Limits {
        page_bytes: 50,
        ..Limits::default()
    };
    let error = ask_within(&registry.address, limits, None)
        .await
        .unwrap_err();
    assert!(error.contains("too large"), "{error}");
    let slow = Limits {
        whole: Duration::from_millis(200),
        ..Limits::default()
    };
    let registry = Scripted::new(|_, _| None).await;
    let error = ask_within(&registry.address, slow, None).await.unwrap_err();
    assert!(error.contains("in time"), "{error}");
}

#[tokio::test]
async fn what_is_no_list_of_tags_is_told_as_such() {
    for body in ["<html>", "[]", "{\"tags\":5}", "", "{\"tags\":[1]}"] {
        let registry = Scripted::new(move |_, _| ok(body)).await;
        let error = ask(&registry, None).await.unwrap_err();
        assert!(error.contains("no list of tags"), "{body}: {error}");
    }
    let registry = Scripted::new(|_, _| ok(r#"{"tags":null}"#)).await;
    assert!(ask(&registry, None).await.unwrap().is_empty());
    let odd = r#"{"tags":["ok","a b","","../x","\u00fc","\u006fk"]}"#;
    let registry = Scripted::new(move |_, _| ok(odd)).await;
    assert_eq!(ask(&registry, None).await.unwrap(), ["ok"]);
}

#[tokio::test]
async fn nobody_is_led_elsewhere_with_the_credentials() {
    let elsewhere = Scripted::new(|_, _| ok(tags(&["stolen".to_owned()]))).await;
    let target = format!("http://{}/v2/team/agent/tags/list", elsewhere.address);
    let registry = Scripted::new(move |_, _| with(307, "location", target.clone(), "")).await;
    let error = ask(&registry, Some(&credentials())).await.unwrap_err();
    assert!(error.contains("redirect"), "{error}");
    assert!(elsewhere.asked().is_empty());
    for (realm, reason) in [
        ("ftp://r.example/token", "that can't be used"),
        // Also another port of the same host is somebody else.
        (
            &format!("http://{}/token", elsewhere.address),
            "that can't be used",
        ),
        ("https://10.1.2.3/token", "private address"),
        ("https://169.254.169.254/token", "private address"),
        ("https://[::ffff:10.0.0.1]/token", "private address"),
    ] {
        let challenge = format!("Bearer realm=\"{realm}\"");
        let registry =
            Scripted::new(move |_, _| with(401, "www-authenticate", challenge.clone(), "")).await;
        let error = ask(&registry, Some(&credentials())).await.unwrap_err();
        assert!(error.contains("token service"), "{error}");
        assert!(error.contains(reason), "{realm}: {error}");
    }
    // In the registry's own zone it is asked: here nobody listens.
    let realm = "Bearer realm=\"https://127.0.0.1:1/token\"";
    let registry = Scripted::new(move |_, _| with(401, "www-authenticate", realm, "")).await;
    let error = ask(&registry, Some(&credentials())).await.unwrap_err();
    assert!(error.contains("can't be reached"), "{error}");
    assert!(elsewhere.asked().is_empty());
    let registry = Scripted::new(|_, asked| {
        let first = !asked.path.contains("again");
        if first {
            return with(302, "location", "/v2/again", "");
        }
        ok(tags(&["v1".to_owned()]))
    })
    .await;
    assert_eq!(
        ask(&registry, None).await.unwrap(),
        ["v1"],
        "the same place"
    );
}

const DIGEST: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

async fn digest(
    registry: &Scripted,
    credentials: Option<&RegistryCredentials>,
) -> Result<Option<String>, String> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = OciRegistry::new(Limits::default()).unwrap();
    let image = format!("{}/team/agent:v1", registry.address);
    let image = image.parse().unwrap();
    let answer = client.digest(&image, credentials, true).await;
    answer.map_err(|error| error.to_string())
}

#[tokio::test]
async fn digest_is_that_of_the_header_and_no_manifest_is_read() {
    let registry = Scripted::new(|_, asked| {
        assert_eq!(asked.method(), "HEAD");
        assert_eq!(asked.path, "/v2/team/agent/manifests/v1");
        let kinds = asked.header("accept").unwrap();
        assert!(kinds.starts_with("application/vnd.oci.image.index.v1+json"));
        match asked.header("authorization") {
            Some("Basic cm9ib3Q6aHVudGVyMg==") => with(200, "docker-content-digest", DIGEST, ""),
            _ => with(401, "www-authenticate", "Basic realm=\"r\"", ""),
        }
    })
    .await;
    let found = digest(&registry, Some(&credentials())).await.unwrap();
    assert_eq!(found.as_deref(), Some(DIGEST));
    assert_eq!(registry.asked().len(), 2);
    let refused = digest(&registry, None).await.unwrap_err();
    assert!(refused.contains("refuses to say what"), "{refused}");
    assert!(refused.contains("image.registry_username"), "{refused}");
}

#[tokio::test]
async fn manifest_is_read_where_its_header_is_not_to_be_had() {
    const OF_MANIFEST: &str =
        "sha256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862";
    for (head, given, expected) in [
        (405, "", Ok(OF_MANIFEST)),
        (200, "sha256:short", Ok(OF_MANIFEST)),
        (501, OF_MANIFEST, Ok(OF_MANIFEST)),
        (405, DIGEST, Err("does not have the digest")),
    ] {
        let registry = Scripted::new(move |_, asked| match asked.method() {
            "HEAD" => with(head, "docker-content-digest", "none", ""),
            _ => with(200, "docker-content-digest", given, "{\"a\":1}"),
        })
        .await;
        match (digest(&registry, None).await, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.as_deref(), Some(expected)),
            (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}"),
            (outcome, _) => panic!("{head} {given}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn missing_tag_is_none_and_every_other_answer_a_failure() {
    for (status, expected) in [
        (404, None),
        (403, Some("refuses to say what")),
        (429, Some("too often")),
        (500, Some("status 500")),
    ] {
        let registry = Scripted::new(move |_, _| Some((status, Vec::new(), Vec::new()))).await;
        match (digest(&registry, None).await, expected) {
            (Ok(None), None) => {}
            (Err(why), Some(expected)) => assert!(why.contains(expected), "{why}"),
            (outcome, _) => panic!("{status}: {outcome:?}"),
        }
    }
}
