//! Containers that end again and again, and agents that hang.

use crate::support::client::ready;
use crate::support::engine::Happened;
use crate::support::{Engine, Stage, eventually, seconds};

fn starts(happened: &[Happened]) -> Vec<u64> {
    let starts = happened.iter().filter(|e| e.action == "start");
    starts.map(|e| e.at / 1_000_000).collect()
}

#[tokio::test]
async fn engine_l32_crash_loop_slows_down_and_a_restart_begins_anew() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve_with(&engine, "crash").start().await;
    let admin = service.admin().await;
    let since = engine.now();
    let form = [("username", "bob"), ("wait", "0")];
    let created = admin.post("/api/admin/users/create", &form).await;
    created.pending();

    let bob = admin.reason("bob", "CrashLoop", seconds(30)).await;
    assert_eq!(bob["status"], "failed", "{bob}");
    let message = ready(&bob)["message"].clone();
    assert!(message.as_str().unwrap().contains("exit code 1"), "{bob}");
    let bob = admin.object("container/bob").await;
    let ends = bob["observed"]["ends"].as_array().unwrap();
    assert_eq!(ends.len(), 3, "{bob}");
    for end in ends {
        assert_eq!(
            (&end["exit_code"], &end["cause"]),
            (&1.into(), &"exit code 1".into())
        );
        let last = end["log"].as_array().unwrap().last().unwrap();
        assert_eq!(*last, "crashing by image", "{end}");
    }
    let seen = eventually("it was started four times", seconds(40), async || {
        let starts = starts(&engine.happened("bob", &since));
        if starts.len() >= 4 {
            Ok(starts)
        } else {
            Err(format!("{starts:?}"))
        }
    });
    let (times, _) = seen.await;
    let containers = admin
        .get("/api/admin/reconcile/objects?reconciler=container")
        .await
        .expect(200);
    let ends = containers["objects"][0]["ends"].as_i64();
    assert!(ends.is_some_and(|ends| ends >= 3), "{containers}");
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    eprintln!("milliseconds between starts: {gaps:?}");
    // The second at once, then after two and four seconds, each after the 0.2 s that it ran.
    assert!(gaps[1] >= 2_000 && gaps[2] >= 4_000, "{gaps:?}");
    let is_ordered = gaps[0] < gaps[1] && gaps[1] < gaps[2];
    assert!(is_ordered || engine.is_cluster(), "{gaps:?}");

    // The next is due in eight seconds, and the one after it in sixteen more; a restart does not wait for them, and counts from the start.
    admin.reason("bob", "CrashLoop", seconds(10)).await;
    let since = engine.now();
    let restart = admin.post("/api/admin/container/restart", &form).await;
    assert!(restart.status.is_success(), "{}", restart.text());
    let limit = seconds(if engine.is_cluster() { 20 } else { 12 });
    let seen = eventually("it was started twice", limit, async || {
        let starts = starts(&engine.happened("bob", &since));
        if starts.len() >= 2 {
            Ok(())
        } else {
            Err(format!("{starts:?}"))
        }
    });
    seen.await;
    admin.reason("bob", "CrashLoop", seconds(30)).await;

    // A person's stop ends it.
    let form = [("username", "bob"), ("wait", "30")];
    let stopped = admin.post("/api/admin/container/stop", &form).await;
    stopped.converged();
    assert_eq!(engine.of("bob"), []);
    admin.status("bob", "stopped", seconds(5)).await;
}

#[tokio::test]
async fn engine_hung_agent_is_unresponsive_and_restarted() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage
        .serve(&engine)
        .set("container.probe_interval", "1s")
        .set("container.probe_failures", "2")
        .start()
        .await;
    let admin = service.admin().await;
    admin.create_user("bob").await;
    let since = engine.now();
    let stop = "kill -STOP $(pidof httpd)";
    engine.by_hand(&["exec", "agentyard-bob", "sh", "-c", stop]);
    let event = admin
        .event("container/bob", "Unresponsive", seconds(15))
        .await;
    let message = event["message"].as_str().unwrap();
    assert!(
        message.contains("unresponsive, stopped by the service"),
        "{event}"
    );
    let restarted = eventually("it was started again", seconds(30), async || {
        let starts = starts(&engine.happened("bob", &since));
        if starts.is_empty() {
            Err("no start".to_owned())
        } else {
            Ok(())
        }
    });
    restarted.await;
    admin.status("bob", "running", seconds(15)).await;
    let bob = admin.object("container/bob").await;
    let end = &bob["observed"]["ends"][0];
    assert_eq!(
        end["cause"], "unresponsive, stopped by the service",
        "{bob}"
    );
}
