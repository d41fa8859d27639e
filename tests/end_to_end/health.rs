//! L55, L57: what dies, panics or goes deaf inside the service shows within a second, and afterwards.

use schema::clock::{Clock, SystemClock};
use schema::ids::Timestamp;

use crate::support::client::ready;
use crate::support::postgres::Database;
use crate::support::{Stage, eventually, seconds};

/// The names of all supervised tasks that stand for one kind each.
const TASKS: [&str; 5] = [
    "user.worker-1",
    "container.events",
    "engine.resync",
    "housekeeping",
    "health",
];

#[tokio::test]
async fn l55_a_task_that_panics_is_told_and_the_process_ends_and_tells_again_after_its_restart() {
    for task in TASKS {
        let stage = Stage::new();
        let switch = stage.path().join("panic");
        let launch = || {
            stage
                .alone()
                .env("AGENTYARD_PANIC", task)
                .env("AGENTYARD_PANIC_WHILE", &switch.display().to_string())
        };
        let mut service = launch().start().await;
        let anyone = service.client();
        anyone.readiness_line("tasks: ok", seconds(5)).await;

        // Asked from before it happens: the process does not last long.
        let told = async {
            let told = anyone.readiness_line("tasks: failed", seconds(20)).await;
            (told, SystemClock.now())
        };
        let happens = async { std::fs::write(&switch, "").unwrap() };
        let (((status, line), told_at), ()) = tokio::join!(told, happens);
        assert_eq!(status, 503);
        assert!(line.contains(task), "{line}");
        let log = service.log();
        let logged = log
            .lines()
            .find(|line| line.contains("panic: this is a defect"))
            .unwrap();
        let logged_at = logged.split_whitespace().next().unwrap();
        let logged_at = Timestamp::parse_rfc3339(logged_at).unwrap();
        assert!(
            told_at.since(logged_at) <= seconds(1),
            "{told_at:?}: {logged}"
        );
        let ended = service.ended_within(seconds(15)).await;
        assert_eq!(ended.code(), Some(1), "{ended}");

        std::fs::remove_file(&switch).unwrap();
        let service = launch().start().await;
        let admin = service.admin().await;
        let event = admin
            .event("service/agentyard", "TaskEnded", seconds(5))
            .await;
        assert_eq!(event["action"], task, "{event}");
        let message = event["message"].as_str().unwrap();
        assert!(message.contains("panicked"), "{event}");
        assert!(message.contains("ends"), "{event}");
        admin.readiness_line("tasks: ok", seconds(5)).await;
    }
}

#[tokio::test]
async fn l55_a_pass_that_panics_shows_everywhere_and_is_retried() {
    let stage = Stage::new();
    let switch = stage.path().join("panic");
    std::fs::write(&switch, "").unwrap();
    let service = stage
        .alone()
        .env("AGENTYARD_PANIC", "user.EnsureHome.before")
        .env("AGENTYARD_PANIC_WHILE", &switch.display().to_string())
        .env("AGENTYARD_RESYNC", "1h")
        .start()
        .await;
    let admin = service.admin().await;
    admin.readiness_line("passes: ok", seconds(5)).await;
    let form = [("username", "bob"), ("wait", "0")];
    admin.post("/api/admin/users/create", &form).await.pending();

    let event = admin.event("user/bob", "Panicked", seconds(5)).await;
    assert!(!event["remedy"].as_str().unwrap().is_empty(), "{event}");
    let (_, line) = admin.readiness_line("passes: degraded", seconds(5)).await;
    assert!(!line.contains("bob"), "anybody may read it: {line}");
    // The status is saved after the event.
    let saved = eventually("the panic is counted", seconds(5), async || {
        let summary = admin.summary("user").await;
        match summary["panicked"] == 1 {
            true => Ok(summary),
            false => Err(summary.to_string()),
        }
    });
    let (summary, _) = saved.await;
    assert!(summary["panics"].as_u64().unwrap() >= 1, "{summary}");
    assert!(summary["last_panic_at"].is_string(), "{summary}");
    let bob = admin.object("user/bob").await;
    assert_eq!(ready(&bob)["reason"], "Panicked", "{bob}");
    assert!(bob["next_attempt_at"].is_string(), "{bob}");
    assert!(bob["next_look_at"].is_string(), "{bob}");
    let force = &bob["force"];
    assert_eq!(force["command"], "agentyard retry user/bob", "{bob}");

    std::fs::remove_file(&switch).unwrap();
    admin.retry("user/bob").await;
    let healed = eventually("bob has a directory", seconds(5), async || {
        let bob = admin.object("user/bob").await;
        if ready(&bob)["status"] == "True" {
            Ok(bob)
        } else {
            Err(bob.to_string())
        }
    });
    let (bob, _) = healed.await;
    assert!(bob["problem"].is_null() && bob["force"].is_null(), "{bob}");
    assert_eq!(admin.summary("user").await["panicked"], 0);
    // Recent, so it is still told.
    admin.readiness_line("passes: degraded", seconds(5)).await;
}

#[tokio::test]
async fn the_leader_is_named() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let admin = service.admin().await;
    let body = admin.get("/api/admin/reconcile").await.expect(200);
    let holder = body["leader"]["holder"].as_str().unwrap();
    assert!(holder.contains(':'), "host and process: {body}");
    assert_eq!(body["leader"]["leading"], true);
    assert!(body["health"].is_array(), "{body}");
}

#[tokio::test]
async fn engine_postgres_l57_lost_listener_shows_within_a_second_and_the_standby_names_the_leader()
{
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
    let leader = eventually("it leads", seconds(30), async || {
        let body = admin.get("/api/admin/reconcile").await.expect(200);
        let leader = body["leader"].clone();
        if leader["leading"] == true {
            Ok(leader["holder"].clone())
        } else {
            Err(body.to_string())
        }
    });
    let (holder, _) = leader.await;
    let second = launch("second").start().await;
    let at_second = admin.at(&second.client());
    let named = eventually("the standby names the leader", seconds(10), async || {
        let body = at_second.get("/api/admin/reconcile").await.expect(200);
        if body["leader"]["holder"] == holder && body["leader"]["leading"] == false {
            Ok(())
        } else {
            Err(body["leader"].to_string())
        }
    });
    named.await;
    at_second
        .readiness_line("leadership: ok (standby)", seconds(5))
        .await;
    drop(second);

    admin.readiness_line("bell: ok", seconds(5)).await;
    assert!(database.end_listeners().await >= 1);
    admin.readiness_line("bell: degraded", seconds(1)).await;
    let event = admin
        .event("service/agentyard", "WatchLost", seconds(1))
        .await;
    assert_eq!(event["action"], "bell", "{event}");
    admin.readiness_line("bell: ok", seconds(10)).await;
    admin
        .event("service/agentyard", "WatchRestored", seconds(2))
        .await;
    drop(first);
    database.drop().await;
}
