//! Images as an administrator handles them: over HTTP and by the command line, on the real engine and
//! with real registries.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::registry::{self, Proxy, Published, Way, is_there};
use crate::support::{Client, Engine, Stage, seconds, until};

/// What a pull's stream told, read to its end: a percentage that never falls, and one last word.
async fn pull(admin: &Client, image: &str) -> Vec<Value> {
    let answer = admin
        .post("/api/admin/images/pull", &[("image", image)])
        .await;
    let text = answer.text();
    assert_eq!(answer.status, 200, "{text}");
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = data
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let last = |event: &Value| event["status"] == "done" || event["status"] == "error";
    assert_eq!(
        events.iter().filter(|event| last(event)).count(),
        1,
        "{text}"
    );
    assert!(last(events.last().unwrap()), "{text}");
    let percents = events.iter().filter_map(|event| event["percent"].as_u64());
    assert!(percents.clone().is_sorted(), "{text}");
    events
}

async fn configure(admin: &Client, values: Value) {
    let config = values.to_string();
    let form = [("config", &*config), ("wait", "0")];
    let answer = admin.post("/api/config", &form).await;
    assert_eq!(answer.json()["success"], true, "{}", answer.text());
}

#[tokio::test]
async fn engine_l37_a_pull_over_http_shows_its_way_to_100_and_one_done() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    let host = registry::open();
    let mut published = Published::new(&host);
    let image = published.at(&host);
    let events = pull(&admin, &image).await;
    let done = events.last().unwrap();
    assert_eq!(done["status"], "done", "{done}");
    assert!(
        done["digest"].as_str().unwrap().contains("sha256:"),
        "{done}"
    );
    let percents: Vec<u64> = events
        .iter()
        .filter_map(|e| e["percent"].as_u64())
        .collect();
    assert_eq!(percents.last(), Some(&100), "{percents:?}");
    assert!(is_there(&image));
    // A layer is told with its bytes, as the engine does.
    let told = events
        .iter()
        .find(|event| event["progressDetail"]["total"].is_u64());
    assert!(
        told.is_some_and(|event| event["id"].is_string()),
        "{events:?}"
    );

    // It is an object now, and kept: whoever removes it by hand finds it again.
    let name = format!("image/{}", image.replace('/', "%2F"));
    until("the image is ready", seconds(10), async || {
        admin.object(&name).await["conditions"][0]["status"] == "True"
    })
    .await;
    // What does not exist ends in one error, and nothing claims success.
    let missing = format!("{host}/agentyard-test/nowhere:1");
    let events = pull(&admin, &missing).await;
    let failed = events.last().unwrap();
    assert_eq!(failed["status"], "error", "{failed}");
    assert!(
        failed["error"].as_str().unwrap().contains("nowhere"),
        "{failed}"
    );
    let off = [("image", &*missing), ("wait", "20")];
    admin
        .post("/api/admin/images/pulls/cancel", &off)
        .await
        .converged();

    // Removed, with everything of it.
    let finished = stage.command().run(&["image", "delete", &image]).await;
    assert_eq!(
        finished.status.code(),
        Some(1),
        "not of the configured repository"
    );
    assert!(finished.stderr.contains("force"), "{}", finished.stderr);
    let finished = stage
        .command()
        .run(&["image", "delete", "--force", &image])
        .await;
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(!is_there(&image));
}

#[tokio::test]
async fn engine_a_registry_with_a_password_is_pulled_from_and_listed() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    let host = registry::closed();
    let mut published = Published::new(&host);
    let image = published.at(&host);
    let (name, tag) = image.rsplit_once(':').unwrap();
    configure(
        &admin,
        json!({"image.name": name, "image.registry_username": "app",
            "image.registry_password": "wrong-one", "image.registry_plain_http": [host]}),
    )
    .await;
    let events = pull(&admin, tag).await;
    let failed = events.last().unwrap();
    assert_eq!(failed["status"], "error", "{failed}");
    assert!(!is_there(&image));
    let tags = admin.get("/api/admin/images/registry").await;
    tags.refused(502, "remote_failed");

    let credentials = registry::credentials();
    let password = std::env::var("AGENTYARD_TEST_REGISTRY_PASSWORD").unwrap();
    configure(
        &admin,
        json!({"image.registry_username": credentials.username, "image.registry_password": password}),
    )
    .await;
    let events = pull(&admin, tag).await;
    assert_eq!(events.last().unwrap()["status"], "done", "{events:?}");
    assert!(is_there(&image));
    let tags = admin
        .get("/api/admin/images/registry?refresh=true")
        .await
        .expect(200);
    assert_eq!(tags["tags"], json!([tag]), "{tags}");
    let log = service.log();
    assert!(!log.contains("wrong-one"), "no password in the log");
    let local = admin.get("/api/admin/images").await.expect(200);
    assert_eq!(local["images"][0]["repo_tags"], json!([image]), "{local}");
}

#[tokio::test]
async fn engine_l37_a_viewer_that_leaves_stops_nothing_and_a_pull_survives_kill_9() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    let proxy = Proxy::new(Way::Slow(600_000)).await;
    let mut published = Published::new(&registry::open());
    let image = published.at(&proxy.address);

    // Somebody watches by the command line, and leaves.
    let mut viewer = stage.command().begin(&["image", "pull", &image]);
    let mut lines = BufReader::new(viewer.stderr.take().unwrap()).lines();
    let first = lines.next_line().await.unwrap().unwrap();
    assert!(first.contains(" % "), "{first}");
    viewer.kill().await.unwrap();
    let running = async || admin.get("/api/admin/images/pulls").await.expect(200)["pulls"].clone();
    until(
        "somebody pulls, with nobody watching",
        seconds(10),
        async || {
            let pulls = running().await;
            pulls[0]["reference"].as_str() == Some(&*image) && pulls[0]["viewers"] == 0
        },
    )
    .await;
    until("the engine still reads", seconds(10), async || {
        proxy.connections() > 0
    })
    .await;

    // The service is killed in the middle; the next one goes on by itself.
    service.kill9().await;
    let service = stage.serve(&engine).start().await;
    let admin = admin.at(&service.client());
    let (a, b) = tokio::join!(pull(&admin, &image), pull(&admin, &image));
    for events in [a, b] {
        assert_eq!(events.last().unwrap()["status"], "done", "{events:?}");
    }
    assert!(is_there(&image));
}

#[tokio::test]
async fn engine_l38_an_image_that_somebody_has_is_not_deleted() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    admin.create_user("alice").await;
    let finished = stage.command().run(&["image", "delete", "1"]).await;
    assert_eq!(finished.status.code(), Some(1));
    assert!(
        finished.stderr.contains("users: alice"),
        "{}",
        finished.stderr
    );
    let other = "docker.io/library/echo:2";
    assert!(finished.stderr.contains(other), "{}", finished.stderr);
    let list = stage.command().run(&["image", "list"]).await;
    let line = list.stdout.lines().find(|line| line.contains("echo:1"));
    assert!(
        line.is_some_and(|line| line.ends_with("  1")),
        "{}",
        list.stdout
    );
    let answer = admin.post(
        "/api/admin/images/delete",
        &[("image", "echo:1"), ("force", "true")],
    );
    let refused = answer.await.refused(409, "image_in_use");
    assert_eq!(refused["users"], json!(["alice"]));
}
