use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use schema::condition::{Condition, Reason};
use schema::ids::{Kind, Uid};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::*;
use crate::dispatch::Api;
use crate::routes::test_support::{Yard, yard};
use crate::testing::Accounts;
use crate::watch::{Bounds, WatchHub};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// One event as a client reads it; a piece without data is no event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Seen {
    event: String,
    id: String,
    data: Value,
}

/// A client of a stream.
struct Client {
    body: http_body_util::combinators::UnsyncBoxBody<Bytes, warp::Error>,
}

impl Client {
    /// The next piece as it came; `None` at the end.
    async fn piece(&mut self) -> Option<Bytes> {
        let frame = timeout(PATIENCE, self.body.frame()).await;
        let frame = frame.expect("a piece or the end")?;
        Some(frame.unwrap().into_data().unwrap())
    }

    /// The next event; `None` at the end.
    async fn next(&mut self) -> Option<Seen> {
        loop {
            let piece = self.piece().await?;
            let seen = parsed(&piece);
            if seen.data != Value::Null {
                return Some(seen);
            }
        }
    }

    async fn event(&mut self, name: &str) -> Seen {
        let seen = self.next().await.expect("the stream goes on");
        assert_eq!(seen.event, name, "{seen:?}");
        seen
    }

    /// Reads until an object has this status; gives the id.
    async fn until(&mut self, object: &str, status: &str) -> String {
        loop {
            let seen = self.next().await.expect("the stream goes on");
            if seen.data["object"] == object && seen.data["status"] == status {
                return seen.id;
            }
        }
    }
}

fn parsed(piece: &Bytes) -> Seen {
    let mut seen = Seen::default();
    for line in std::str::from_utf8(piece).unwrap().lines() {
        match line.split_once(':') {
            Some(("event", text)) => text.clone_into(&mut seen.event),
            Some(("id", text)) => text.clone_into(&mut seen.id),
            Some(("data", text)) => seen.data = serde_json::from_str(text).unwrap(),
            Some(("" | "retry", _)) | None => {}
            Some(other) => panic!("{other:?}"),
        }
    }
    seen
}

/// A yard whose hub keeps to these bounds.
async fn with(bounds: Bounds) -> Yard {
    let mut yard = yard().await;
    let hub = WatchHub::new(bounds);
    let deps = yard.deps();
    deps.watch = hub.clone();
    deps.tasks
        .spawn(hub.run(deps.db.clone(), deps.shutdown.clone()));
    yard
}

async fn ask(yard: &Yard, query: &str, last_event_id: &str) -> crate::reply::Response {
    let api = Api::new(crate::routes::all(), yard.world.deps.clone()).unwrap();
    let mut request = warp::test::request()
        .path(&format!("/api/admin/watch?{query}"))
        .header("cookie", yard.world.cookie("root"));
    if !last_event_id.is_empty() {
        request = request.header("last-event-id", last_event_id);
    }
    request.filter(&api.filter()).await.unwrap()
}

async fn open(yard: &Yard, query: &str, last_event_id: &str) -> Client {
    let response = ask(yard, query, last_event_id).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let body = response.into_body().boxed_unsync();
    Client { body }
}

async fn refused(yard: &Yard, query: &str, last_event_id: &str) -> (u16, Value) {
    let response = ask(yard, query, last_event_id).await;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

async fn running(yard: &Yard, uid: &Uid, generation: i64) {
    let up = Condition::ready(Reason::Running, "");
    yard.saw(Kind::Container, uid, generation, up).await;
}

async fn stop(yard: &Yard, name: &str) {
    let form = format!("username={name}&wait=0");
    yard.post("/api/admin/container/stop", &form).await.is(202);
}

#[tokio::test]
async fn a_watcher_is_told_what_changes_from_now_on() {
    let yard = yard().await;
    let alice = yard.user("alice").await;
    let mut client = open(&yard, "", "").await;
    let open = client.event("open").await;
    assert_eq!(open.data["watch_id"], open.id);
    running(&yard, &alice, 1).await;
    let seen = client.event("").await;
    let expected = json(
        r#"{"object":"container/alice","uid":"alice","generation":1,"observed_generation":1,
            "ready":"True","reason":"Running","status":"running"}"#,
    );
    assert_eq!(seen.data, expected);
    assert_ne!(seen.id, open.id);
    let user = client.event("").await;
    assert_eq!(
        (
            &user.data["object"],
            &user.data["status"],
            &user.data["ready"]
        ),
        (&"user/alice".into(), &"running".into(), &"Unknown".into())
    );
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn l57_whoever_comes_back_is_told_the_last_state_of_all_that_it_missed() {
    let bounds = Bounds {
        page: 3,
        ..Bounds::default()
    };
    let yard = with(bounds).await;
    let alice = yard.user("alice").await;
    let mut client = open(&yard, "", "").await;
    client.event("open").await;
    running(&yard, &alice, 1).await;
    let id = client.until("user/alice", "running").await;
    drop(client);
    // More objects than a page holds, and more changes than objects.
    for n in 0..5 {
        let uid = yard.user(&format!("new{n}")).await;
        running(&yard, &uid, 1).await;
    }
    stop(&yard, "alice").await;
    let gone = yard.user("gone").await;
    for path in ["users/delete"] {
        yard.post(&format!("/api/admin/{path}"), "username=gone&wait=0")
            .await
            .is(202);
    }
    yard.purge(&gone).await;
    let mut client = open(&yard, "", &id).await;
    assert_eq!(
        client.event("open").await.id,
        id,
        "it has seen nothing new yet"
    );
    let mut last = BTreeMap::new();
    for _ in 0..26 {
        let seen = client.event("").await;
        let word = seen.data["status"].as_str().unwrap().to_owned();
        let object = seen.data["object"].as_str().unwrap().to_owned();
        assert_eq!(last.insert(object, word), None, "each is told once");
    }
    assert_eq!(last["container/alice"], "stopping");
    assert_eq!(
        (last["user/gone"].as_str(), last["container/gone"].as_str()),
        ("deleted", "deleted")
    );
    let others = last.values().filter(|word| *word == "running").count();
    assert_eq!((last.len(), others), (26, 10));
    // And it goes on live.
    running(&yard, &alice, 2).await;
    client.until("container/alice", "stopped").await;
}

#[tokio::test]
async fn what_happens_between_a_list_and_its_watch_is_told() {
    let yard = yard().await;
    let alice = yard.user("alice").await;
    for path in ["users", "reconcile/objects", "events"] {
        let list = yard.get(&format!("/api/admin/{path}")).await.is(200);
        let id = list["watch_id"].as_str().unwrap();
        stop(&yard, "alice").await;
        // Clients that cannot send the header give the position in the query.
        for (query, header) in [(String::new(), id), (format!("last_event_id={id}"), "")] {
            let mut client = open(&yard, &query, header).await;
            client.event("open").await;
            client.until("container/alice", "stopping").await;
        }
    }
    let id = format!(
        "last_event_id={}",
        open(&yard, "", "").await.event("open").await.id
    );
    stop(&yard, "alice").await;
    let newer = open(&yard, "", "").await.event("open").await.id;
    let mut client = open(&yard, &id, &newer).await;
    assert_eq!(client.event("open").await.id, newer, "the header wins");
    running(&yard, &alice, 5).await;
    client.until("container/alice", "stopped").await;
}

#[tokio::test]
async fn whoever_has_no_history_must_list_again() {
    let yard = yard().await;
    let begin = open(&yard, "", "").await.event("open").await.id;
    let gone = yard.user("gone").await;
    yard.post("/api/admin/users/delete", "username=gone&wait=0")
        .await
        .is(202);
    yard.purge(&gone).await;
    let mut live = open(&yard, "", "").await;
    live.event("open").await;
    let mut tx = yard.world.db.begin().await.unwrap();
    let forgotten = change::prune(&mut tx, 0, crate::testing::NOW)
        .await
        .unwrap();
    assert_eq!(forgotten, 4);
    tx.commit().await.unwrap();
    let alice = yard.user("alice").await;
    let (instance, _) = begin.rsplit_once('-').unwrap();
    for unknown in [
        begin.clone(),
        format!("{instance}-999"),
        "elsewhere-1".to_owned(),
    ] {
        let mut client = open(&yard, "kind=user", &unknown).await;
        let seen = client.event("resync").await;
        let present = yard.get("/api/admin/users").await.is(200)["watch_id"].clone();
        assert_eq!(
            (&present, &present),
            (&seen.data["watch_id"], &seen.id.into())
        );
        running(&yard, &alice, 1).await;
        client.until("user/alice", "running").await;
    }
    // Who was there all the time has missed nothing.
    live.until("container/alice", "running").await;
}

#[tokio::test]
async fn a_watcher_of_some_objects_is_told_of_no_other() {
    let bounds = Bounds {
        keep_alive: Duration::from_millis(300),
        ..Bounds::default()
    };
    let yard = with(bounds).await;
    let alice = yard.user("alice").await;
    let bob = yard.user("bob").await;
    let mut of_bob = open(&yard, "object=container/BOB", "").await;
    let mut users = open(&yard, "kind=user&object=", "").await;
    let begin = of_bob.event("open").await.id;
    users.event("open").await;
    running(&yard, &alice, 1).await;
    running(&yard, &bob, 1).await;
    assert_eq!(of_bob.event("").await.data["object"], "container/bob");
    assert_eq!(users.event("").await.data["object"], "user/alice");
    assert_eq!(users.event("").await.data["object"], "user/bob");
    // A quiet stream keeps itself alive, and moves its reader's position.
    stop(&yard, "alice").await;
    let newest = open(&yard, "", "").await.event("open").await.id;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let piece = of_bob.piece().await.unwrap();
        let seen = parsed(&piece);
        assert!(
            piece.starts_with(b":\n") && seen.data == Value::Null,
            "{piece:?}"
        );
        if seen.id == newest {
            break;
        }
        assert!(Instant::now() < deadline, "{} instead of {newest}", seen.id);
    }
    // Also what is read from the database is only theirs.
    let mut of_bob = open(&yard, "object=container/bob", &begin).await;
    of_bob.event("open").await;
    assert_eq!(of_bob.event("").await.data["object"], "container/bob");
    assert!(of_bob.piece().await.unwrap().starts_with(b":\n"));
}

#[tokio::test]
async fn a_watcher_of_a_quiet_object_hears_from_the_server_however_busy_the_others_are() {
    let bounds = Bounds {
        keep_alive: Duration::from_millis(600),
        ..Bounds::default()
    };
    let yard = with(bounds).await;
    yard.user("alice").await;
    yard.user("bob").await;
    let mut of_bob = open(&yard, "object=container/bob", "").await;
    of_bob.event("open").await;
    let busy = async {
        loop {
            stop(&yard, "alice").await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        piece = of_bob.piece() => assert!(piece.unwrap().starts_with(b":\n")),
        () = busy => unreachable!("it goes on"),
    }
}

#[tokio::test]
async fn bad_questions_are_told_what_is_wrong() {
    let yard = yard().await;
    for (query, header, field) in [
        ("object=alice", "", "object"),
        ("object=pod/alice", "", "object"),
        ("kind=pod", "", "kind"),
        ("kind=user&object=user/alice", "", "kind"),
        ("last_event_id=7", "", "last_event_id"),
        ("", "nonsense", "last_event_id"),
        ("", "a-\u{e9}", "last_event_id"),
    ] {
        let (status, body) = refused(&yard, query, header).await;
        assert_eq!((status, &body["field"]), (400, &field.into()), "{body}");
    }
    assert_eq!(yard.world.deps.watch.numbers().watchers, 0);
}

#[tokio::test]
async fn l63_there_are_so_many_watchers_and_no_more() {
    let bounds = Bounds {
        watchers: 2,
        ..Bounds::default()
    };
    let yard = with(bounds).await;
    let first = open(&yard, "", "").await;
    let _second = open(&yard, "", "").await;
    let response = ask(&yard, "", "").await;
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));
    let (_, body) = refused(&yard, "", "").await;
    assert_eq!(body["code"], "too_many_watchers");
    drop(first);
    open(&yard, "", "").await.event("open").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_watchers_cost_one_look_and_share_the_bytes() {
    const WATCHERS: usize = 1000;
    let yard = yard().await;
    let alice = yard.user("alice").await;
    let mut clients = Vec::with_capacity(WATCHERS);
    for _ in 0..WATCHERS {
        let mut client = open(&yard, "object=container/alice", "").await;
        client.event("open").await;
        clients.push(client);
    }
    let hub = &yard.world.deps.watch;
    assert_eq!(hub.numbers().watchers, WATCHERS);
    let begun = Instant::now();
    let before = hub.numbers().looks;
    running(&yard, &alice, 1).await;
    let mut places = std::collections::BTreeSet::new();
    for client in &mut clients {
        let piece = client.piece().await.unwrap();
        assert_eq!(parsed(&piece).data["status"], "running");
        places.insert(piece.as_ptr() as usize);
    }
    assert_eq!(places.len(), 1, "one event in memory for all of them");
    // One look for the change, and one for each second that the reading took.
    let looks = hub.numbers().looks - before;
    let seconds = begun.elapsed().as_secs();
    assert!(looks <= 2 + seconds, "{looks} looks in {seconds} s");
    drop(clients);
    assert_eq!(hub.numbers().watchers, 0);
    // Nobody watches: nobody looks.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    let idle = hub.numbers().looks;
    stop(&yard, "alice").await;
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(hub.numbers().looks, idle);
}

#[tokio::test]
async fn a_watcher_that_falls_behind_is_dropped_and_others_go_on() {
    let bounds = Bounds {
        backlog: 4,
        gap: Duration::from_millis(1),
        ..Bounds::default()
    };
    let yard = with(bounds).await;
    let alice = yard.user("alice").await;
    let mut slow = open(&yard, "", "").await;
    let seen = slow.event("open").await.id;
    let mut quick = open(&yard, "", "").await;
    quick.event("open").await;
    for round in 1..=8_i64 {
        stop(&yard, "alice").await;
        running(&yard, &alice, 1 + round).await;
        loop {
            let event = quick.event("").await;
            let observed = (&event.data["object"], &event.data["observed_generation"]);
            if observed == (&"container/alice".into(), &(1 + round).into()) {
                break;
            }
        }
    }
    // Whoever does not read keeps nothing alive but its place, and loses that at its next read.
    while slow.next().await.is_some() {}
    drop(slow);
    let numbers = yard.world.deps.watch.numbers();
    assert_eq!((numbers.dropped, numbers.watchers), (1, 1));
    let mut back = open(&yard, "", &seen).await;
    back.event("open").await;
    let last = back.event("").await;
    assert_eq!(
        (&last.data["observed_generation"], &last.data["status"]),
        (&9.into(), &"stopped".into())
    );
}

#[tokio::test]
async fn l7_a_watch_ends_with_its_session_and_with_the_service() {
    let mut yard = yard().await;
    yard.deps().authenticator = Arc::new(Accounts(
        [("root".to_owned(), crate::auth::Role::Superadmin)].into(),
    ));
    let mut first = open(&yard, "", "").await;
    first.event("open").await;
    let mut second = open(&yard, "", "").await;
    second.event("open").await;
    yard.world
        .clock
        .advance(crate::auth::session::VALIDITY + Duration::from_secs(1));
    tokio::time::pause();
    let end = timeout(Duration::from_secs(60), async {
        while let Some(frame) = first.body.frame().await {
            frame.unwrap();
        }
    });
    end.await.expect("24 hours are over");
    yard.world.deps.shutdown.cancel();
    while second.body.frame().await.is_some() {}
}

#[tokio::test]
async fn users_watch_their_own_objects_and_executors_only() {
    let bounds = Bounds {
        own_per_account: 1,
        ..Bounds::default()
    };
    let yard = with(bounds).await;
    let (alice, bob) = (yard.user("alice").await, yard.user("bob").await);
    let ask = async |last: &str| {
        let api = Api::new(crate::routes::all(), yard.world.deps.clone()).unwrap();
        let request = warp::test::request()
            .path("/api/user/watch")
            .header("cookie", yard.world.cookie("alice"))
            .header("last-event-id", last);
        request.filter(&api.filter()).await.unwrap()
    };
    let first: crate::reply::Response = ask("").await;
    assert_eq!(first.status(), 200);
    assert_eq!(ask("").await.status(), 429);
    let mut client = Client {
        body: first.into_body().boxed_unsync(),
    };
    let mut position = String::new();
    for _ in 0..2 {
        let seen = client.next().await.unwrap();
        match &*seen.event {
            "open" => position = seen.id,
            "executors" => assert_eq!(seen.data, json(r#"{"browser":0,"computer":0}"#)),
            other => panic!("{other}"),
        }
    }
    running(&yard, &bob, 1).await;
    running(&yard, &alice, 1).await;
    let seen = client.event("").await;
    assert_eq!(seen.data["object"], "container/alice");

    let key = Key {
        user: alice.clone(),
        service: Service::Browser,
    };
    let about = crate::executors::About {
        host: None,
        user: "alice".parse().unwrap(),
        address: None,
        token: 1,
        user_agent: String::new(),
        since: crate::testing::NOW,
    };
    crate::executors::connected(&yard.world.deps.mcp.hub, key, about);
    let counts = client.event("executors").await.data;
    assert_eq!(counts, json(r#"{"browser":1,"computer":0}"#));
    let path = "/api/user/executors/disconnect";
    yard.post_as("alice", path, "kind=desktop")
        .await
        .fails(404, "not_found");
    let body = yard.post_as("alice", path, "kind=browser").await.is(200);
    assert_eq!(body["disconnected"], 1);
    let counts = client.event("executors").await.data;
    assert_eq!(counts, json(r#"{"browser":0,"computer":0}"#));

    drop(client);
    let done = Condition::ready(Reason::Converged, "");
    yard.saw(Kind::SkillSet, &bob, 1, done.clone()).await;
    yard.saw(Kind::AgentConfig, &alice, 1, done).await;
    let mut client = Client {
        body: ask(&position).await.into_body().boxed_unsync(),
    };
    let mut objects = std::collections::BTreeSet::new();
    while objects.len() < 2 {
        let seen = client.next().await.unwrap();
        if let Some(object) = seen.data["object"].as_str() {
            objects.insert(object.to_owned());
        }
    }
    let expected = ["agent-config/alice", "container/alice"].map(str::to_owned);
    assert_eq!(objects, expected.into());
}
