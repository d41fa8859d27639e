//! Following changes through restarts of the service, pauses of the reader, and with many others. No
//! engine is needed: users, their directories and what is wanted change without one.

use std::collections::BTreeMap;
use std::time::Duration;

use schema::ids::Kind;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use crate::support::client::Streamed;
use crate::support::postgres::Database;
use crate::support::{Client, Service, Stage, long, seconds};

const MEGABYTE: u64 = 1024 * 1024;
/// How long a change may take to be told, on a busy machine.
const SOON: Duration = crate::support::PATIENCE;

/// What a watcher knows.
#[derive(Default)]
struct Knowledge {
    /// The newest id.
    id: String,
    /// The newest event of each object.
    objects: BTreeMap<String, Value>,
    /// Names of events other than changes.
    others: Vec<String>,
    /// Changes that were told.
    changes: usize,
    partial: String,
}

impl Knowledge {
    fn learn(&mut self, piece: &[u8]) {
        self.partial.push_str(std::str::from_utf8(piece).unwrap());
        while let Some(end) = self.partial.find("\n\n") {
            let block: String = self.partial.drain(..end + 2).collect();
            let (mut name, mut data) = (None, None);
            for line in block.lines() {
                match line.split_once(':') {
                    Some(("id", id)) => id.clone_into(&mut self.id),
                    Some(("event", text)) => name = Some(text.to_owned()),
                    Some(("data", text)) => data = Some(text.to_owned()),
                    _ => {}
                }
            }
            match (name, data) {
                (Some(name), _) => self.others.push(name),
                (None, Some(data)) => {
                    let event: Value = serde_json::from_str(&data).unwrap();
                    let object = event["object"].as_str().unwrap().to_owned();
                    self.objects.insert(object, event);
                    self.changes += 1;
                }
                (None, None) => {}
            }
        }
    }

    fn status(&self, object: &str) -> &str {
        let event = self.objects.get(object);
        event.map_or("", |event| event["status"].as_str().unwrap())
    }

    /// Reads until it knows enough; false when the stream ended before.
    async fn read(&mut self, stream: &mut Streamed, enough: impl Fn(&Self) -> bool) -> bool {
        let deadline = Instant::now() + SOON;
        while !enough(self) {
            let left = deadline.saturating_duration_since(Instant::now());
            let piece = timeout(left, stream.next()).await;
            match piece.unwrap_or_else(|_| panic!("not told in time: {:?}", self.objects)) {
                Some(Ok(piece)) => self.learn(&piece),
                Some(Err(_)) | None => return false,
            }
        }
        true
    }
}

async fn watch(client: &Client, last_event_id: &str) -> Streamed {
    let client = match last_event_id {
        "" => client.clone(),
        id => client.clone().header("Last-Event-ID", id),
    };
    let stream = client.stream("/api/admin/watch").await;
    assert_eq!(stream.status, 200);
    stream
}

/// What was there already when the watch began.
fn was_there(object: &str) -> bool {
    Kind::singles().any(|(kind, _, name)| object == format!("{kind}/{name}"))
}

/// What a new list says, in the words of the watch.
async fn listed(client: &Client) -> BTreeMap<String, (i64, i64)> {
    let body = client.get("/api/admin/reconcile/objects").await.expect(200);
    let objects = body["objects"].as_array().unwrap();
    objects
        .iter()
        .filter(|object| !was_there(object["object"].as_str().unwrap()))
        .map(|object| {
            let name = object["object"].as_str().unwrap().to_owned();
            let number = |field: &str| object[field].as_i64().unwrap();
            (name, (number("generation"), number("observed_generation")))
        })
        .collect()
}

/// What a watcher knows, in the same words; without what is gone.
fn known(knowledge: &Knowledge) -> BTreeMap<String, (i64, i64)> {
    let there = knowledge
        .objects
        .iter()
        .filter(|(name, event)| event["status"] != "deleted" && !was_there(name));
    there
        .map(|(name, event)| {
            let number = |field: &str| event[field].as_i64().unwrap();
            (
                name.clone(),
                (number("generation"), number("observed_generation")),
            )
        })
        .collect()
}

async fn create(client: &Client, name: &str) {
    let form = [("username", name), ("wait", "0")];
    client
        .post("/api/admin/users/create", &form)
        .await
        .expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_after_the_service_was_killed_and_started_again() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let admin = service.admin().await;
    let mut knowledge = Knowledge::default();
    let mut stream = watch(&admin, "").await;
    for name in ["alice", "bob", "carol"] {
        create(&admin, name).await;
    }
    let seen = knowledge.read(&mut stream, |knowledge| {
        ["alice", "bob", "carol"]
            .iter()
            .all(|name| !knowledge.status(&format!("user/{name}")).is_empty())
    });
    assert!(seen.await);
    service.kill9().await;
    assert!(
        !knowledge.read(&mut stream, |_| false).await,
        "the stream has ended"
    );

    // What happens before the watcher is back: bob is deleted, alice is stopped.
    let service = stage.alone().start().await;
    let admin = admin.at(&service.client());
    let form = [("username", "bob"), ("wait", "0")];
    admin
        .post("/api/admin/users/delete", &form)
        .await
        .expect(202);
    let form = [("username", "alice"), ("wait", "0")];
    admin
        .post("/api/admin/container/stop", &form)
        .await
        .expect(202);
    knowledge.others.clear();
    let mut stream = watch(&admin, &knowledge.id).await;
    let seen = knowledge.read(&mut stream, |knowledge| {
        knowledge.status("container/bob") == "deleting"
            && knowledge.objects["container/alice"]["generation"] == 2
    });
    assert!(seen.await);
    assert_eq!(knowledge.others, ["open"], "nothing to list again");
    // In the end it knows what a list tells.
    let deadline = Instant::now() + SOON;
    while listed(&admin).await != known(&knowledge) {
        assert!(Instant::now() < deadline, "{:?}", knowledge.objects);
        let next = knowledge.changes + 1;
        let _ = timeout(
            seconds(1),
            knowledge.read(&mut stream, |k| k.changes >= next),
        )
        .await;
    }

    // The position of another installation has no history here.
    let mut other = Knowledge::default();
    let mut stream = watch(&admin, "0123456789abcdef0123456789abcdef-7").await;
    other
        .read(&mut stream, |other| !other.others.is_empty())
        .await;
    assert_eq!(other.others, ["resync"]);
}

/// Creates so many users at once.
async fn create_many(client: &Client, count: usize) {
    let names: Vec<String> = (0..count).map(|n| format!("user{n}")).collect();
    let names = names.join(",");
    let form = [("usernames", names.as_str()), ("wait", "0")];
    let answer = client.post("/api/admin/users/batch-create", &form).await;
    assert!(answer.status.is_success(), "{}", answer.text());
}

/// Changes all containers at once.
async fn change_all(client: &Client, limit: usize) {
    let config = format!(r#"{{"container.pids_limit":{}}}"#, 100 + limit);
    let answer = client.post("/api/config", &[("config", &config)]).await;
    assert!(answer.status.is_success(), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_pauses_knows_the_final_state_and_holds_up_nobody() {
    let (users, rounds, pause) = if long() {
        (150, 40, seconds(60))
    } else {
        (60, 12, seconds(5))
    };
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let socket = service.socket();
    create_many(&socket, users).await;
    // The socket's buffers are small, so that a reader that pauses is soon noticed.
    let (mut paused, mut reading) = (Knowledge::default(), Knowledge::default());
    let mut paused_stream = watch(&socket, "").await;
    let mut reading_stream = watch(&socket, "").await;
    assert!(
        paused
            .read(&mut paused_stream, |k| !k.others.is_empty())
            .await
    );

    let begun = Instant::now();
    for round in 0..rounds {
        change_all(&socket, round).await;
        let newest = |knowledge: &Knowledge| {
            let container = knowledge.objects.get("container/user0");
            container.is_some_and(|event| event["generation"] == 2 + round)
        };
        assert!(
            reading.read(&mut reading_stream, newest).await,
            "it reads all the time"
        );
    }
    sleep(pause.saturating_sub(begun.elapsed())).await;

    let done = |knowledge: &Knowledge| {
        let containers = knowledge.objects.values().filter(|event| {
            event["object"].as_str().unwrap().starts_with("container/")
                && event["generation"] == 1 + rounds
        });
        containers.count() == users
    };
    let mut ends = 0;
    while !paused.read(&mut paused_stream, done).await {
        ends += 1;
        paused_stream = watch(&socket, &paused.id).await;
    }
    assert!(
        !paused.others.contains(&"resync".to_owned()),
        "{:?}",
        paused.others
    );
    if long() {
        assert_eq!(ends, 1, "who reads nothing for 30 seconds is dropped");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_watchers_of_one_change_cost_little_memory() {
    const WATCHERS: usize = 1000;
    let stage = Stage::new();
    let service: Service = stage.alone().start().await;
    let socket = service.socket();
    // Hashing passwords takes memory of its own.
    let users = 40;
    create_many(&socket, users).await;
    create(&socket, "alice").await;
    let before = service.memory();
    let mut streams = Vec::with_capacity(WATCHERS);
    for _ in 0..WATCHERS {
        let mut stream = watch(&socket, "").await;
        let mut knowledge = Knowledge::default();
        assert!(knowledge.read(&mut stream, |k| !k.others.is_empty()).await);
        streams.push((stream, knowledge));
    }
    let opened = service.memory();
    let form = [("username", "alice"), ("wait", "0")];
    socket
        .post("/api/admin/container/stop", &form)
        .await
        .expect(202);
    for (stream, knowledge) in &mut streams {
        let stopped = |k: &Knowledge| {
            k.objects
                .get("container/alice")
                .is_some_and(|event| event["generation"] == 2)
        };
        assert!(knowledge.read(stream, stopped).await);
    }
    let told = service.memory();
    // Nobody reads any more; what happens is kept for none of them.
    let rounds = 10;
    for round in 0..rounds {
        change_all(&socket, round).await;
        sleep(Duration::from_millis(150)).await;
    }
    let flooded = service.memory();
    eprintln!(
        "memory: {} MB alone, {} MB with {WATCHERS} watchers, {} MB after one change, {} MB after {} that nobody read",
        before / MEGABYTE,
        opened / MEGABYTE,
        told / MEGABYTE,
        flooded / MEGABYTE,
        rounds * (users + 1) * 2,
    );
    assert!(opened.saturating_sub(before) < 100 * MEGABYTE);
    assert!(told.saturating_sub(opened) < 20 * MEGABYTE);
    assert!(flooded.saturating_sub(told) < 50 * MEGABYTE);
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_on_postgresql_a_watch_tells_what_another_server_did_and_goes_on_there() {
    let stage = Stage::new();
    let database = Database::create().await;
    let launch = |name: &str| {
        let socket = stage.path().join(format!("{name}.sock"));
        stage
            .alone()
            .arg("--database-url")
            .arg(database.url())
            .arg("--admin-socket")
            .arg(socket.display().to_string())
    };
    let first = launch("first").start().await;
    let admin = first.admin().await;
    let second = launch("second").start().await;
    let at_second = admin.at(&second.client());
    let mut knowledge = Knowledge::default();
    let mut stream = watch(&at_second, "").await;
    create(&admin, "alice").await;
    let seen = knowledge.read(&mut stream, |k| !k.status("user/alice").is_empty());
    assert!(seen.await);

    // The watcher goes on at the other server, from where it was at this one.
    second.kill9().await;
    assert!(!knowledge.read(&mut stream, |_| false).await);
    let form = [("username", "alice"), ("wait", "0")];
    admin
        .post("/api/admin/container/stop", &form)
        .await
        .expect(202);
    let mut stream = watch(&admin, &knowledge.id).await;
    let stopped = |k: &Knowledge| k.objects["container/alice"]["generation"] == 2;
    assert!(knowledge.read(&mut stream, stopped).await);
    assert_eq!(knowledge.others, ["open", "open"]);
    drop(first);
    database.drop().await;
}
