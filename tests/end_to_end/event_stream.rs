//! L57: the engine's event stream is cut, or silent for ever; what people do with their hands is
//! repaired all the same.

use std::time::Duration;

use crate::support::engine::{FOUND_AGAIN, NETWORK};
use crate::support::proxy::{Mode, Proxy};
use crate::support::{Engine, Stage, seconds, until};

const MEGABYTE: u64 = 1024 * 1024;

/// Whether bob has one container and it runs, and is another one than `before`.
fn runs_anew(engine: &Engine, before: &str) -> bool {
    matches!(engine.of("bob").as_slice(), [one] if one.id != before && one.state == "running")
}

/// Removes bob's container by hand; another one runs within `limit`. Gives the time it took.
async fn removed_runs_again(engine: &Engine, limit: Duration) -> Duration {
    let before = engine.the_running("bob").id;
    engine.docker(&["rm", "-f", "agentyard-bob"]);
    until("removed: runs again", limit, async || {
        runs_anew(engine, &before)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_l57_silent_event_stream_delays_repair_to_the_resync_or_verification() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let proxy = Proxy::new(&stage.path().join("proxy.sock"), &engine.socket());
    let service = stage
        .serve_at(&proxy.host())
        .env("AGENTYARD_RESYNC", "3s")
        .env("AGENTYARD_VERIFY", "12s")
        .start()
        .await;
    let admin = service.admin().await;
    admin.create_user("bob").await;
    assert_eq!(proxy.event_streams(), 1);
    proxy.set(Mode::StallEvents);

    // What a listing shows: one resync, and the time a start takes.
    let took = removed_runs_again(&engine, seconds(9)).await;
    eprintln!("removed: runs again after {took:?}");
    admin.status("bob", "running", seconds(20)).await;
    let second = engine.the_running("bob").id;

    engine.docker(&["network", "disconnect", "-f", NETWORK, "agentyard-bob"]);
    let connected = || {
        let details = engine.ask(&["inspect", "agentyard-bob"]);
        details.is_some_and(|details| {
            details.contains("\"NetworkID\": \"") && details.contains(NETWORK)
        })
    };
    let took = until("disconnected: connected again", seconds(12), async || {
        runs_anew(&engine, &second) && connected()
    })
    .await;
    eprintln!("disconnected: mended after {took:?}");
    admin.status("bob", "running", seconds(20)).await;

    // What only an inspection shows: the next full verification.
    // None while it is being recreated.
    let memory = || {
        let format = "{{.HostConfig.Memory}}";
        let told = engine.ask(&["inspect", "--format", format, "agentyard-bob"])?;
        told.trim().parse().ok()
    };
    let wanted = memory();
    assert_eq!(wanted, Some(1024 * MEGABYTE));
    let other = (200 * MEGABYTE).to_string();
    engine.docker(&[
        "update",
        "--memory",
        &other,
        "--memory-swap",
        &other,
        "agentyard-bob",
    ]);
    assert_eq!(memory(), Some(200 * MEGABYTE));
    let took = until("updated: as it should be again", seconds(30), async || {
        matches!(engine.of("bob").as_slice(), [one] if one.state == "running") && memory() == wanted
    })
    .await;
    eprintln!("updated: mended after {took:?}");
    admin.status("bob", "running", seconds(20)).await;

    // The listings have shown what no event told: the silence is told, too, and ends with an event.
    // What changes within ten seconds of an event of the same user counts as announced by it: all of
    // the above may have been, or not. The next change is later, and runs again like all others.
    tokio::time::sleep(seconds(11)).await;
    let third = engine.the_running("bob").id;
    engine.docker(&["rm", "-f", "agentyard-bob"]);
    let anyone = service.client();
    anyone
        .readiness_line("engine events: degraded", seconds(40))
        .await;
    until("removed again: runs again", seconds(15), async || {
        runs_anew(&engine, &third)
    })
    .await;
    admin.status("bob", "running", seconds(20)).await;
    admin.event("engine/local", "WatchLost", seconds(5)).await;
    until("the stream is opened again", seconds(5), async || {
        proxy.event_streams() == 1
    })
    .await;
    assert_eq!(admin.summary("container").await["events_lost"], true);
    proxy.set(Mode::Pass);
    engine.docker(&["restart", "agentyard-bob"]);
    anyone
        .readiness_line("engine events: ok", seconds(10))
        .await;
    admin
        .event("engine/local", "WatchRestored", seconds(5))
        .await;
    admin.status("bob", "running", seconds(30)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_l57_cut_event_stream_is_opened_again_and_what_was_missed_is_found() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let proxy = Proxy::new(&stage.path().join("proxy.sock"), &engine.socket());
    // No resync comes to the rescue.
    let service = stage
        .serve_at(&proxy.host())
        .env("AGENTYARD_RESYNC", "1h")
        .start()
        .await;
    let admin = service.admin().await;
    admin.create_user("bob").await;
    let first = engine.the_running("bob").id;

    proxy.set(Mode::Refuse);
    admin.reason("bob", "EngineUnavailable", seconds(10)).await;
    engine.docker(&["rm", "-f", "agentyard-bob"]);
    proxy.set(Mode::Pass);
    until("found again", FOUND_AGAIN, async || {
        runs_anew(&engine, &first)
    })
    .await;
    admin.status("bob", "running", seconds(20)).await;
    assert_eq!(proxy.event_streams(), 1);

    // And events are heard again.
    removed_runs_again(&engine, seconds(10)).await;
    admin.status("bob", "running", seconds(20)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_l57_cut_event_stream_shows_within_a_second_although_the_engine_answers() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let proxy = Proxy::new(&stage.path().join("proxy.sock"), &engine.socket());
    let service = stage
        .serve_at(&proxy.host())
        .env("AGENTYARD_RESYNC", "3s")
        .start()
        .await;
    let (admin, anyone) = (service.admin().await, service.client());
    admin.create_user("bob").await;
    let (status, _) = anyone.readiness_line("engine events: ok", seconds(5)).await;
    assert_eq!(status, 200);

    proxy.set(Mode::CutEvents);
    let line = anyone.readiness_line("engine events: degraded", seconds(1));
    let (status, line) = line.await;
    assert_eq!(status, 200, "it is only slower: {line}");
    let lost = admin.event("engine/local", "WatchLost", seconds(1)).await;
    assert!(
        lost["remedy"].as_str().unwrap().contains("restored"),
        "{lost}"
    );
    // The full pass finds what no event tells.
    removed_runs_again(&engine, seconds(9)).await;
    assert_eq!(admin.summary("container").await["events_lost"], true);
    // It is tried ever more slowly, and told once or twice, not at each try.
    let events = admin.events("engine/local").await;
    let losses = events.iter().filter(|event| event["reason"] == "WatchLost");
    let told: i64 = losses.map(|event| event["count"].as_i64().unwrap()).sum();
    assert!(told <= 2, "{events:?}");

    proxy.set(Mode::Pass);
    anyone
        .readiness_line("engine events: ok", seconds(15))
        .await;
    admin
        .event("engine/local", "WatchRestored", seconds(2))
        .await;
    removed_runs_again(&engine, seconds(10)).await;
}
