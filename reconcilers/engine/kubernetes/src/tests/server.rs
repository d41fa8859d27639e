//! Calls and watches against a server that answers by script.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use engine::{Containers, EngineError};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::{Body, ClientBuilder};
use schema::clock::SystemClock;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tower::service_fn;

use super::{settings, template_of};
use crate::KubernetesEngine;
use crate::client::{Cluster, build_retrying_client};

pub(super) type Reply = Response<UnsyncBoxBody<Bytes, std::io::Error>>;
type Answer = BoxFuture<'static, Reply>;
type Script = Arc<dyn Fn(&str, &str) -> Answer + Send + Sync>;

/// An engine whose server answers by `script`: method and address with its query.
fn engine(script: impl Fn(&str, &str) -> Answer + Send + Sync + 'static) -> KubernetesEngine {
    let script: Script = Arc::new(script);
    let builder = || {
        let script = Arc::clone(&script);
        let service = service_fn(move |request: Request<Body>| {
            let address = request.uri().path_and_query().unwrap().as_str().to_owned();
            let answer = script(request.method().as_str(), &address);
            async move { Ok::<_, std::convert::Infallible>(answer.await) }
        });
        ClientBuilder::new(service, "test")
    };
    let calls = build_retrying_client(builder()).unwrap();
    let cluster = Cluster::new(calls, builder().build(), "test");
    KubernetesEngine::in_cluster(cluster, super::options(), "instance", Arc::new(SystemClock))
}

pub(super) fn answer(status: u16, body: &Value) -> Reply {
    let body = Full::new(Bytes::from(body.to_string()));
    let body = body.map_err(std::io::Error::other).boxed_unsync();
    Response::builder().status(status).body(body).unwrap()
}

pub(super) fn failure(code: u16, reason: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason,
    })
}

pub(super) fn list(version: &str, token: &str, items: &[Value]) -> Value {
    json!({
        "kind": "List", "apiVersion": "v1",
        "metadata": { "resourceVersion": version, "continue": token }, "items": items,
    })
}

fn template() -> Value {
    let mut template = serde_json::to_value(template_of(&settings(), &[])).unwrap();
    template["kind"] = json!("PodTemplate");
    template["apiVersion"] = json!("v1");
    template
}

fn bookmark(version: &str) -> Value {
    json!({ "type": "BOOKMARK", "object": {
        "kind": "PodTemplate", "apiVersion": "v1", "metadata": { "resourceVersion": version },
    }})
}

/// A watch that tells these and ends after a while.
fn watch(lines: &[Value]) -> Reply {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let lines = futures::stream::once(async move { Ok::<_, std::io::Error>(text.into_bytes()) });
    let end = futures::stream::once(async {
        sleep(Duration::from_secs(60)).await;
        Ok(Vec::new())
    });
    let parts = lines.chain(end);
    let frames = parts.map(|part| part.map(|bytes| Frame::data(Bytes::from(bytes))));
    let body = StreamBody::new(frames).boxed_unsync();
    Response::builder().status(200).body(body).unwrap()
}

/// Addresses of templates that were asked for, with the answers of a script; Pods are none.
struct Templates {
    asked: Arc<Mutex<Vec<String>>>,
}

impl Templates {
    fn script(answers: Vec<Reply>) -> (Self, impl Fn(&str, &str) -> Answer + Send + Sync) {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = Arc::clone(&asked);
        let answers = Mutex::new(VecDeque::from(answers));
        let script = move |_: &str, address: &str| {
            let reply = if address.contains("/podtemplates?") {
                noted.lock().unwrap().push(address.to_owned());
                answers.lock().unwrap().pop_front()
            } else if address.contains("watch=true") {
                None
            } else {
                Some(answer(200, &list("5", "", &[])))
            };
            async move {
                match reply {
                    Some(reply) => reply,
                    None => std::future::pending().await,
                }
            }
            .boxed()
        };
        (Self { asked }, script)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Follows for so long.
async fn follow_for(engine: &KubernetesEngine, time: Duration) {
    let _ = tokio::time::timeout(time, engine.follow()).await;
}

#[tokio::test(start_paused = true)]
async fn listing_is_begun_again_when_its_pages_expire() {
    let (templates, script) = Templates::script(vec![
        answer(200, &list("7", "more", &[template()])),
        answer(410, &failure(410, "Expired")),
        answer(200, &list("8", "", &[template()])),
    ]);
    let engine = engine(script);
    follow_for(&engine, Duration::from_secs(5)).await;
    let asked = templates.asked();
    assert!(
        asked[0].contains("limit=500") && !asked[0].contains("continue"),
        "{asked:?}"
    );
    assert!(asked[1].contains("continue=more"), "{asked:?}");
    assert!(
        asked[2].contains("limit=500") && !asked[2].contains("continue"),
        "{asked:?}"
    );
    assert!(
        asked[3].contains("watch=true") && asked[3].contains("resourceVersion=8"),
        "{asked:?}"
    );
    assert_eq!(engine.list("instance", None).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn watch_goes_on_from_the_last_bookmark() {
    let (templates, script) = Templates::script(vec![
        answer(200, &list("7", "", &[])),
        watch(&[
            json!({ "type": "ADDED", "object": template() }),
            bookmark("90"),
        ]),
    ]);
    let engine = engine(script);
    follow_for(&engine, Duration::from_secs(70)).await;
    let asked = templates.asked();
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert!(asked[1].contains("allowWatchBookmarks=true"), "{asked:?}");
    assert!(asked[2].contains("resourceVersion=90"), "{asked:?}");
    assert_eq!(engine.list("instance", None).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn forgotten_version_is_listed_again() {
    let expired = json!({ "type": "ERROR", "object": failure(410, "Expired") });
    let (templates, script) = Templates::script(vec![
        answer(200, &list("7", "", &[template()])),
        watch(&[expired]),
        answer(200, &list("20", "", &[])),
    ]);
    let engine = engine(script);
    let mut events = engine.events("instance").await.unwrap();
    follow_for(&engine, Duration::from_secs(5)).await;
    assert!(templates.asked()[3].contains("resourceVersion=20"));
    assert_eq!(engine.list("instance", None).await.unwrap(), []);
    // Nothing is told of the first listing, which readers see themselves.
    let event = events.next().await.unwrap().unwrap();
    assert_eq!(
        (event.uid.as_str(), event.action.as_str()),
        ("u1", "destroy")
    );
}

#[tokio::test(start_paused = true)]
async fn listing_without_a_watch_is_refused() {
    let engine = engine(|_, _| std::future::pending().boxed());
    let listed = engine.list("instance", None).await;
    assert!(
        matches!(listed, Err(EngineError::Unavailable(_))),
        "{listed:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn busy_server_is_asked_again_when_it_says_so() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let engine = engine(move |_, _| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        let mut reply = answer(429, &failure(429, "TooManyRequests"));
        reply
            .headers_mut()
            .insert("Retry-After", "2".parse().unwrap());
        if number == 2 {
            reply = answer(404, &failure(404, "NotFound"));
        }
        std::future::ready(reply).boxed()
    });
    let id = "agent-u1-01234567.uid";
    let begun = Instant::now();
    assert_eq!(engine.inspect(id).await.unwrap(), None);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    assert!(
        begun.elapsed() >= Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    // Not for ever.
    let outcome = engine.inspect(id).await;
    assert!(
        matches!(outcome, Err(EngineError::Internal(_))),
        "{outcome:?}"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 7);
}

#[tokio::test(start_paused = true)]
async fn call_without_an_answer_ends_and_is_no_ping() {
    let engine = engine(|_, _| std::future::pending().boxed());
    let begun = Instant::now();
    let outcome = engine.inspect("agent-u1-01234567.uid").await;
    assert!(
        matches!(outcome, Err(EngineError::Timeout(_))),
        "{outcome:?}"
    );
    assert_eq!(begun.elapsed(), engine::CALL_TIMEOUT);
    let outcome = engine.ping().await;
    assert!(
        matches!(outcome, Err(EngineError::Unavailable(_))),
        "{outcome:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn twenty_writes_are_under_way_at_most() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&now), Arc::clone(&most));
    let engine = engine(move |method, _| {
        if method != "POST" {
            return std::future::ready(answer(200, &list("1", "", &[]))).boxed();
        }
        let (now, most) = counts.clone();
        async move {
            let under_way = now.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(under_way, Ordering::SeqCst);
            sleep(Duration::from_millis(100)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            answer(201, &template())
        }
        .boxed()
    });
    let names: Vec<String> = (0..60)
        .map(|number| format!("agentyard-{number}"))
        .collect();
    let settings = settings();
    let creations = names.iter().map(|name| engine.create(name, &settings));
    for created in futures::future::join_all(creations).await {
        created.unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 20);
}
