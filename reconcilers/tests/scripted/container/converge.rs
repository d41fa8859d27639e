//! What an administrator, an agent or a hand on the engine does, and what it comes to.

use std::time::Duration;

use engine::{
    ContainerSettings, ContainerState, EngineError, FirewallError, Images, LABEL_OWNER, LABEL_UID,
    NETWORK, NetworkSettings,
};
use schema::adapter::{Agent, RunAs};
use schema::condition::{ConditionStatus, Reason};
use schema::container::Desired;
use serde_json::{Value, json};

use super::support::{Files, OWNER, Yard, reason};
use kit::FakeEngine;
use kit::engine::{Fault, Run, Verb};
use reconcilers::container::plan::{CRASH_WINDOW, crash_delay};
use reconcilers::runtime::Requeue;

#[tokio::test]
async fn a_new_user_gets_exactly_one_ready_container() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    let condition = yard.settled(&uid).await.unwrap();
    assert_eq!(condition.status, ConditionStatus::True);
    assert_eq!(condition.reason, Reason::Running);
    assert_eq!(yard.names(), ["agentyard-alice"]);
    let container = yard.fake.container("agentyard-alice").unwrap();
    let settings = &container.settings;
    assert_eq!(container.container.labels[LABEL_OWNER], OWNER);
    assert_eq!(container.container.labels[LABEL_UID], uid.as_str());
    assert_eq!(settings.user.as_deref(), Some("0:0"));
    assert_eq!(settings.memory_bytes, 1024 * 1024 * 1024);
    assert_eq!(settings.pids_limit, 512);
    assert!(settings.capabilities.is_empty());
    assert_eq!(settings.environment["HOME"], "/root");
    assert!(
        yard.dir
            .path()
            .join("users/alice/.agent/workspace")
            .is_dir()
    );
    yard.assert_nothing_to_do(&uid).await;
}

#[tokio::test]
async fn l40_no_container_is_made_before_the_host_is_out_of_its_reach() {
    let mut yard = Yard::new().await;
    let firewall = yard.fake.firewall();
    firewall.set(Err(FirewallError::Failed("busy".to_owned())));
    let uid = yard.create_user("alice").await;
    for _ in 0..5 {
        yard.pass(&uid).await.unwrap();
    }
    assert_eq!(yard.names(), [""; 0]);
    firewall.set(Ok(None));
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let rules = firewall.found().clone().unwrap().expect("rules");
    let gateway = [10, 88, 0, 1].into();
    assert_eq!(
        (rules.gateway, rules.listener),
        (gateway, Some((gateway, 8081)))
    );
    assert!(rules.bridge.starts_with("br-"), "{rules:?}");

    // Removed by hand or by another program: the engine's next pass sees to it.
    firewall.set(Ok(None));
    yard.service.engine_pass().await;
    assert_eq!(firewall.found().clone(), Ok(Some(rules.clone())));
    yard.delete_user(&uid).await;
    yard.settled(&uid).await;
    yard.service.engine_pass().await;
    assert_eq!(
        firewall.found().clone(),
        Ok(None),
        "with the last container"
    );
}

#[tokio::test]
async fn l40_nothing_starts_before_the_host_is_out_of_its_reach() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    // The machine starts again: the containers are there, and no rules.
    let firewall = yard.fake.firewall();
    firewall.set(Err(FirewallError::Failed("busy".to_owned())));
    let id = yard.fake.container("agentyard-alice").unwrap().container.id;
    yard.fake.hand_stop("agentyard-alice").unwrap();
    yard.reboot();
    yard.service.engine_pass().await;
    for _ in 0..5 {
        yard.pass(&uid).await.unwrap();
    }
    assert_eq!(yard.fake.running(), [""; 0]);
    // The same before a replacement.
    yard.set_limit(&uid, 256).await;
    for _ in 0..5 {
        yard.pass(&uid).await.unwrap();
    }
    assert_eq!(yard.fake.running(), [""; 0]);
    firewall.set(Ok(None));
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert!(firewall.found().clone().unwrap().is_some());
    let now = yard.fake.container("agentyard-alice").unwrap().container.id;
    assert_ne!(now, id);
}

#[tokio::test]
async fn l40_where_the_host_cannot_be_kept_out_of_reach_containers_are_made() {
    let mut yard = Yard::new().await;
    let why = FirewallError::Impossible("no rights".to_owned());
    yard.fake.firewall().set(Err(why));
    let uid = yard.create_user("alice").await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    yard.assert_nothing_to_do(&uid).await;
}

#[tokio::test]
async fn enforced_host_access_starts_no_agent_without_rules() {
    let mut yard = Yard::new().await;
    let why = FirewallError::Impossible("no rights".to_owned());
    yard.fake.firewall().set(Err(why));
    let alice = yard.create_user("alice").await;
    assert_eq!(reason(yard.settled(&alice).await), Reason::Running);
    yard.configure("container.host_access", json!("enforce"))
        .await;
    let bob = yard.create_user("bob").await;
    // The engine's pass need not have come first.
    for (uid, limit) in [(&bob, 1024), (&alice, 256)] {
        yard.set_limit(uid, limit).await;
        let refused = yard.settled(uid).await.unwrap();
        assert_eq!(refused.reason, Reason::HostOpen);
        let message = "container.host_access is enforce, and agents would reach every service of the host and every network \
                       behind it: no rights";
        assert_eq!(refused.message, message);
        let engine = refused.waits_for.map(|object| object.to_string());
        assert_eq!(engine.as_deref(), Some("engine/local"));
    }
    yard.restart(&alice, "again").await;
    assert_eq!(reason(yard.settled(&alice).await), Reason::HostOpen);
    assert_eq!(
        yard.fake.running(),
        ["agentyard-alice"],
        "runs on as it was"
    );
    yard.fake.hand_stop("agentyard-alice").unwrap();
    assert_eq!(reason(yard.settled(&alice).await), Reason::HostOpen);
    assert_eq!(yard.fake.running(), [""; 0]);

    yard.fake.firewall().set(Ok(None));
    yard.service.engine_pass().await;
    assert_eq!(reason(yard.settled(&bob).await), Reason::Running);
}

#[tokio::test]
async fn l40_an_open_host_has_no_rules() {
    let mut yard = Yard::new().await;
    yard.configure("container.host_access", json!("open")).await;
    yard.configure("container.lan_access", json!("open")).await;
    let uid = yard.create_user("alice").await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert_eq!(yard.fake.firewall().found().clone(), Ok(None));
}

#[tokio::test]
async fn a_container_is_made_as_configured() {
    let mut yard = Yard::new().await;
    for (key, value) in [
        ("container.capabilities", json!(["SETUID", "chown"])),
        ("container.cpu_limit", json!(0.5)),
        ("container.memory_limit_mb", json!(64)),
        ("container.pids_limit", json!(99)),
        ("container.timezone", json!("Europe/Berlin")),
    ] {
        yard.configure(key, value).await;
    }
    let uid = yard.create_user("alice").await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let settings = yard.fake.container("agentyard-alice").unwrap().settings;
    assert_eq!(settings.capabilities, ["CHOWN", "SETUID"]);
    assert_eq!(settings.nano_cpus, 500_000_000);
    assert_eq!(settings.memory_bytes, 64 * 1024 * 1024);
    assert_eq!(settings.pids_limit, 99);
    assert_eq!(settings.environment["TZ"], "Europe/Berlin");
}

#[tokio::test]
async fn l30_l40_a_foreign_network_of_our_name_is_told_and_not_used() {
    let mut yard = Yard::new().await;
    // Everything as we would have it, but it is not ours: who made it may open it any time.
    let foreign = NetworkSettings {
        name: NETWORK.to_owned(),
        subnet: "10.88.0.0/16".to_owned(),
        labels: [(LABEL_OWNER.to_owned(), "another".to_owned())].into(),
        isolation: Default::default(),
    };
    yard.fake.hand_create_network(&foreign).unwrap();
    let uid = yard.create_user("alice").await;
    let condition = yard.settled(&uid).await;
    let message = condition.as_ref().map(|one| one.message.as_str());
    let expected = "the network agentyard belongs to another Agentyard";
    assert!(
        message.is_some_and(|message| message.contains(expected)),
        "{message:?}"
    );
    assert_eq!(reason(condition), Reason::NameConflict);
    assert!(yard.names().is_empty());
    yard.fake.hand_remove_network(NETWORK).unwrap();
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
}

#[tokio::test]
async fn a_container_is_not_made_on_a_network_that_is_about_to_be_made_anew() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    yard.set_desired(&uid, Desired::Stopped, false).await;
    yard.settled(&uid).await;
    yard.configure("container.network_subnet", json!("10.77.0.0/24"))
        .await;
    yard.set_desired(&uid, Desired::Running, false).await;
    // Before the engine reconciler comes to it.
    let pass = yard.pass(&uid).await.unwrap().unwrap();
    assert_eq!(pass.acted, 0);
    assert_eq!(reason(pass.condition), Reason::NetworkMissing);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let network = yard.fake.network_by_name(NETWORK).unwrap();
    assert_eq!(network.subnet.as_deref(), Some("10.77.0.0/24"));
}

#[tokio::test]
async fn a_settled_user_costs_no_question_to_the_engine() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    yard.fake.reset_calls();
    for _ in 0..10 {
        yard.pass(&uid).await.unwrap();
    }
    assert_eq!(yard.fake.calls().reads() + yard.fake.calls().writes(), 0);
}

#[tokio::test]
async fn a_stopped_user_keeps_only_the_directory() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    yard.set_desired(&uid, Desired::Stopped, false).await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Stopped);
    assert_eq!(yard.names(), Vec::<String>::new());
    assert!(yard.dir.path().join("users/alice").is_dir());
    yard.reboot();
    assert_eq!(reason(yard.settled(&uid).await), Reason::Stopped);
    yard.assert_nothing_to_do(&uid).await;
    yard.set_desired(&uid, Desired::Running, false).await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
}

#[tokio::test]
async fn l32_a_container_removed_or_stopped_by_hand_is_back_at_once() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    yard.fake.hand_remove("agentyard-alice").unwrap();
    yard.event(&uid);
    let before = yard.now();
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert_eq!(
        yard.now(),
        before,
        "the first time is repaired without waiting"
    );

    yard.clock.advance(CRASH_WINDOW);
    yard.settled(&uid).await;
    yard.fake.hand_stop("agentyard-alice").unwrap();
    yard.event(&uid);
    let before = yard.now();
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert_eq!(yard.now(), before);
}

#[tokio::test]
async fn l32_a_crash_loop_is_slowed_down_named_and_forgiven_by_a_restart() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    let mut reasons = Vec::new();
    for count in 1..=5 {
        yard.clock.advance(Duration::from_secs(1));
        yard.fake.hand_exit("agentyard-alice", 7).unwrap();
        yard.event(&uid);
        let ended = yard.now();
        // Two passes: note the exit, then wait or start.
        for _ in 0..2 {
            let pass = yard.pass(&uid).await.unwrap().unwrap();
            assert!(pass.error.is_none());
            reasons.push(pass.condition.unwrap().reason);
        }
        assert_eq!(yard.row(&uid).await.unwrap().facts.crash_count, count);
        yard.settled(&uid).await;
        let waited = yard.now().since(ended);
        assert!(waited >= crash_delay(count), "{count}: {waited:?}");
        assert!(
            waited <= crash_delay(count) + Duration::from_secs(1),
            "{count}: {waited:?}"
        );
    }
    assert!(
        reasons[..4].iter().all(|r| *r != Reason::CrashLoop),
        "{reasons:?}"
    );
    assert_eq!(reasons[5], Reason::CrashLoop, "{reasons:?}");

    yard.restart(&uid, "token-2").await;
    yard.settled(&uid).await;
    yard.fake.hand_exit("agentyard-alice", 7).unwrap();
    yard.event(&uid);
    let ended = yard.now();
    yard.settled(&uid).await;
    assert_eq!(yard.now(), ended, "a restart forgives");

    yard.clock.advance(CRASH_WINDOW);
    yard.settled(&uid).await;
    let facts = yard.row(&uid).await.unwrap().facts;
    assert_eq!(facts.crashes_in_a_row(yard.now()), 0, "so do ten minutes");
}

#[tokio::test]
async fn ten_minutes_after_a_crash_a_healthy_container_stays_ready() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    let crash = async |yard: &mut Yard| {
        yard.clock.advance(Duration::from_secs(1));
        yard.fake.hand_exit("agentyard-alice", 7).unwrap();
        yard.event(&uid);
        yard.settled(&uid).await;
        yard.row(&uid).await.unwrap().facts.crash_count
    };
    assert_eq!(crash(&mut yard).await, 1);
    assert_eq!(crash(&mut yard).await, 2);
    for _ in 0..4 {
        yard.clock.advance(CRASH_WINDOW / 2);
        let pass = yard.pass(&uid).await.unwrap().unwrap();
        assert_eq!((pass.acted, reason(pass.condition)), (0, Reason::Running));
    }
    // It is forgiven all the same, also when another container has taken its place.
    yard.set_limit(&uid, 256).await;
    yard.settled(&uid).await;
    assert_eq!(crash(&mut yard).await, 1);
}

#[tokio::test]
async fn ten_restarts_in_a_second_are_at_most_two_containers() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    // Even of agents that end as soon as they are started.
    for ends_at_once in [false, true] {
        yard.clock.advance(Duration::from_secs(60));
        yard.fake.reset_calls();
        for number in 0..10 {
            let token = format!("{ends_at_once}-{number}");
            yard.restart(&uid, &token).await;
            for _ in 0..6 {
                let pass = yard.pass(&uid).await.unwrap().unwrap();
                assert!(pass.error.is_none(), "{:?}", pass.error);
            }
            if ends_at_once && !yard.fake.running().is_empty() {
                yard.fake.hand_exit("agentyard-alice", 1).unwrap();
                yard.event(&uid);
            }
            yard.clock.advance(Duration::from_millis(100));
        }
        assert_eq!(yard.fake.calls().of(Verb::Create), 1);
        let pass = yard.pass(&uid).await.unwrap().unwrap();
        assert_eq!(
            (pass.acted, reason(pass.condition)),
            (0, Reason::Progressing)
        );
        let started = yard.now().minus(Duration::from_secs(1));
        let Requeue::After(left) = pass.requeue else {
            panic!("nobody looks again");
        };
        yard.clock.advance(left);
        assert_eq!(yard.now().since(started), Duration::from_secs(2));
        assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
        assert_eq!(yard.fake.calls().of(Verb::Create), 2);
    }
}

#[tokio::test]
async fn another_image_or_other_limits_wait_for_no_rest() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    let now = yard.now();
    yard.restart(&uid, "with-the-limit").await;
    yard.set_limit(&uid, 300).await;
    let pass = yard.pass(&uid).await.unwrap().unwrap();
    assert!(pass.acted > 0);
    assert_eq!(yard.now(), now);
}

#[test]
fn crash_delays_double_up_to_five_minutes() {
    let seconds: Vec<u64> = (0..=11).map(|n| crash_delay(n).as_secs()).collect();
    assert_eq!(seconds, [0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    assert_eq!(crash_delay(u32::MAX).as_secs(), 300);
}

#[tokio::test]
async fn a_restart_makes_a_fresh_container_once() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    let first = yard.fake.container("agentyard-alice").unwrap().container.id;
    yard.restart(&uid, "t1").await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let second = yard.fake.container("agentyard-alice").unwrap().container.id;
    assert_ne!(first, second);
    yard.reboot();
    yard.settled(&uid).await;
    assert_eq!(
        yard.fake.container("agentyard-alice").unwrap().container.id,
        second
    );
    assert_eq!(yard.names().len(), 1);
}

#[tokio::test]
async fn debug_lasts_until_the_next_start() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    yard.set_desired(&uid, Desired::Running, true).await;
    yard.settled(&uid).await;
    let debugging = yard.fake.container("agentyard-alice").unwrap();
    assert_eq!(debugging.settings.environment["AGENT_DEBUG"], "1");
    assert_eq!(
        debugging.settings.command.as_deref(),
        Some(&["/bin/debug".to_owned()][..])
    );
    yard.set_desired(&uid, Desired::Running, false).await;
    yard.settled(&uid).await;
    let normal = yard.fake.container("agentyard-alice").unwrap();
    assert!(!normal.settings.environment.contains_key("AGENT_DEBUG"));
    assert_eq!(yard.names().len(), 1);
}

#[tokio::test]
async fn changed_settings_replace_the_container_without_two_running() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    let first = yard.fake.container("agentyard-alice").unwrap().container.id;
    yard.set_limit(&uid, 256).await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let second = yard.fake.container("agentyard-alice").unwrap();
    assert_ne!(first, second.container.id);
    assert_eq!(second.settings.memory_bytes, 256 * 1024 * 1024);
    assert_eq!(yard.names(), ["agentyard-alice"]);
    yard.assert_nothing_to_do(&uid).await;
}

async fn failed_replacement(run: Run, readiness: Value) {
    let mut yard = Yard::with_agent(|agent| agent["readiness"] = readiness).await;
    let ready = yard.gets_ready();
    yard.fake.on_start(move |_| {
        ready();
        Run::default()
    });
    let uid = yard.create_user("alice").await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    // What the first one made is too old for the next.
    yard.clock.advance(Duration::from_secs(1));
    let first = yard.fake.container("agentyard-alice").unwrap().container.id;

    let ready = yard.gets_ready();
    yard.fake.on_start(move |details| {
        if details.settings.memory_bytes == 256 * 1024 * 1024 {
            run.clone()
        } else {
            ready();
            Run::default()
        }
    });
    yard.set_limit(&uid, 256).await;
    let mut failed = None;
    for _ in 0..60 {
        let _ = reconcilers::runtime::Reconciler::keys(&yard.service.container).await;
        match yard.pass(&uid).await.unwrap() {
            Some(pass) if pass.error.is_some() => {}
            Some(pass) => {
                let condition = pass.condition.unwrap();
                if condition.reason == Reason::ReplacementFailed {
                    failed = Some(condition);
                    break;
                }
                if condition.reason == Reason::NotReady {
                    yard.clock.advance(Duration::from_secs(10));
                }
            }
            None => panic!("gone"),
        }
    }
    assert_eq!(failed.unwrap().status, ConditionStatus::False);
    assert_eq!(yard.fake.running(), ["agentyard-alice"]);
    assert_eq!(yard.names(), ["agentyard-alice"]);
    let back = yard.fake.container("agentyard-alice").unwrap().container.id;
    assert_eq!(back, first, "the previous container is back");
    // It is left in peace for a while, also through a restart of the service.
    yard.reboot();
    yard.fake.reset_calls();
    for _ in 0..5 {
        let _ = reconcilers::runtime::Reconciler::keys(&yard.service.container).await;
        yard.pass(&uid).await.unwrap();
    }
    assert_eq!(yard.fake.calls().writes(), 0);
    // What it was before is what it is: nothing to replace any more.
    yard.set_limit(&uid, 1024).await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert_eq!(
        yard.fake.container("agentyard-alice").unwrap().container.id,
        first
    );
}

#[tokio::test]
async fn l76_a_failed_replacement_keeps_its_cause_and_the_end_of_its_log_without_secrets() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    let files = yard.dir.path().join("users/alice/.agent");
    let security = json!({ "channels": { "chat": { "word": "s3cr3t-word" } } });
    std::fs::write(files.join("security.json"), security.to_string()).unwrap();
    let config = json!({ "mcp": { "servers": { "x": { "headers": { "Authorization": "Bearer alice:0a1b2c3d" } } } } });
    std::fs::write(files.join("config.json"), config.to_string()).unwrap();
    yard.fake.on_start(|details| Run {
        ends: (details.settings.memory_bytes == 256 << 20).then_some((Duration::ZERO, 137)),
        ..Run::default()
    });
    yard.set_limit(&uid, 256).await;
    let (mut failed, mut wrote, mut events) = (None, false, Vec::new());
    for _ in 0..60 {
        let _ = reconcilers::runtime::Reconciler::keys(&yard.service.container).await;
        let pass = yard.pass(&uid).await.unwrap().unwrap();
        events.extend(pass.steps);
        failed = pass
            .condition
            .filter(|condition| condition.reason == Reason::ReplacementFailed);
        if failed.is_some() {
            break;
        }
        let ended = yard.fake.container("agentyard-alice");
        if !wrote && ended.is_some_and(|ended| ended.exit_code == Some(137)) {
            wrote = true;
            for n in 1..=30 {
                let line = format!("line {n}");
                yard.fake.hand_log("agentyard-alice", false, &line).unwrap();
            }
            let last = "\x1b[31mfatal\x1b[0m: s3cr3t-word is refused, token alice:0a1b2c3d";
            yard.fake.hand_log("agentyard-alice", true, last).unwrap();
        }
    }
    let failed = failed.unwrap().message;
    let cause = "the replacement ended with exit code 137 (SIGKILL) before it was ready";
    assert!(
        failed.starts_with(&format!(
            "the previous container runs, since {cause}; end of its log: "
        )),
        "{failed}"
    );
    let last = "fatal: [redacted] is refused, token [redacted]";
    assert!(failed.ends_with(&format!("line 30 | {last}")), "{failed}");
    let told = |event: &&String| event.starts_with(cause) && event.ends_with(last);
    assert_eq!(events.iter().filter(told).count(), 1, "{events:?}");
    let facts = yard.row(&uid).await.unwrap().facts;
    assert_eq!(facts.failure.as_deref(), Some(cause));
    let log: Vec<&str> = facts.failure_log.as_deref().unwrap().lines().collect();
    assert_eq!((log.len(), log[0], log[19]), (20, "line 12", last));
    // It stays through a restart of the service, and goes with the next replacement that works.
    yard.reboot();
    yard.fake.on_start(|_| Run::default());
    yard.restart(&uid, "again").await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let facts = yard.row(&uid).await.unwrap().facts;
    assert_eq!((facts.failure, facts.failure_log), (None, None));
}

#[tokio::test]
async fn l76_a_log_that_cannot_be_read_or_cleaned_does_not_hold_up_the_way_back() {
    for files in ["as they are", "damaged", "removed"] {
        let mut yard = Yard::new().await;
        yard.files = Files::Reconciled;
        let uid = yard.create_user("alice").await;
        yard.settled(&uid).await;
        let file = |name| yard.dir.path().join("users/alice/.agent").join(name);
        match files {
            "damaged" => std::fs::write(file("config.json"), "{").unwrap(),
            // What it was, the agent may say.
            "removed" => std::fs::remove_file(file("config.json")).unwrap(),
            _ => yard.fake.fault_next(Verb::Logs, 9, Fault::Hang),
        }
        yard.fake.on_start(|details| Run {
            ends: (details.settings.memory_bytes == 256 << 20).then_some((Duration::ZERO, 1)),
            ..Run::default()
        });
        yard.set_limit(&uid, 256).await;
        let mut message = String::new();
        for _ in 0..20 {
            let _ = reconcilers::runtime::Reconciler::keys(&yard.service.container).await;
            let pass = yard.pass(&uid).await.unwrap().unwrap();
            let condition = pass.condition.unwrap();
            if condition.reason == Reason::ReplacementFailed {
                message = condition.message;
                break;
            }
            if yard.fake.container("agentyard-alice").is_some() {
                let _ = yard.fake.hand_log("agentyard-alice", false, "a secret");
            }
        }
        assert!(message.contains("exit code 1 before"), "{message}");
        assert!(
            message.ends_with("before it was ready"),
            "{files}: {message}"
        );
        assert_eq!(yard.fake.running(), ["agentyard-alice"]);
    }
}

#[tokio::test]
async fn a_replacement_that_ends_at_once_is_rolled_back() {
    let run = Run {
        ends: Some((Duration::ZERO, 1)),
        ..Run::default()
    };
    failed_replacement(run, json!({ "file": "ready" })).await;
}

#[tokio::test]
async fn a_replacement_that_cannot_start_is_rolled_back() {
    let run = Run {
        refused: Some("exec: no such file".to_owned()),
        ..Run::default()
    };
    failed_replacement(run, Value::Null).await;
}

#[tokio::test]
async fn a_replacement_that_never_gets_ready_is_rolled_back() {
    failed_replacement(Run::default(), json!({ "file": "ready" })).await;
}

#[tokio::test]
async fn l30_a_foreign_container_of_the_same_name_is_left_alone() {
    let names = [
        "agentyard-alice",
        "agentyard-alice.next-",
        "agentyard-alice.prev-",
    ];
    for foreign in names {
        let mut yard = Yard::new().await;
        let id = yard
            .fake
            .hand_create(foreign, &ContainerSettings::default())
            .unwrap();
        let uid = yard.create_user("alice").await;
        let condition = yard.settled(&uid).await;
        if foreign.ends_with('-') {
            assert_eq!(reason(condition), Reason::Running);
            yard.set_limit(&uid, 256).await;
            assert_eq!(reason(yard.settled(&uid).await), Reason::NameConflict);
            assert_eq!(
                yard.fake.running(),
                ["agentyard-alice"],
                "the old one goes on"
            );
            // However often it is tried: nothing is done that would have to be done again.
            yard.fake.reset_calls();
            assert_eq!(reason(yard.settled(&uid).await), Reason::NameConflict);
            let calls = yard.fake.calls();
            assert_eq!(calls.of(Verb::Stop), 0, "{foreign}");
            assert_eq!(calls.writes(), 1, "{foreign}");
            // One that ends meanwhile needs no name to be put aside under: it is recreated at once.
            yard.fake.hand_exit("agentyard-alice", 1).unwrap();
            yard.event(&uid);
            assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
            yard.set_limit(&uid, 512).await;
            assert_eq!(reason(yard.settled(&uid).await), Reason::NameConflict);
        } else {
            assert_eq!(reason(condition), Reason::NameConflict);
        }
        assert!(yard.fake.container(&id).is_some());
        yard.fake.hand_remove(&id).unwrap();
        assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    }
}

#[tokio::test]
async fn a_container_of_another_installation_is_nobodys_orphan() {
    let mut yard = Yard::new().await;
    let labelled = |owner: &str| ContainerSettings {
        labels: [
            (LABEL_OWNER.to_owned(), owner.to_owned()),
            (LABEL_UID.to_owned(), "f00".to_owned()),
        ]
        .into(),
        ..ContainerSettings::default()
    };
    yard.fake
        .hand_create("theirs", &labelled("somebody else"))
        .unwrap();
    yard.fake.hand_create("orphan", &labelled(OWNER)).unwrap();
    let keys = reconcilers::runtime::Reconciler::keys(&yard.service.container)
        .await
        .unwrap();
    let orphan = schema::ids::Uid::from("f00".to_owned());
    assert_eq!(keys, std::slice::from_ref(&orphan));
    assert_eq!(yard.settled(&orphan).await, None);
    assert_eq!(yard.names(), ["theirs"]);
}

#[tokio::test]
async fn l33_without_an_engine_nothing_is_known_and_nothing_is_removed() {
    let mut yard = Yard::new().await;
    yard.fake.set_unavailable(true);
    let uid = yard.create_user("alice").await;
    let condition = yard.settled(&uid).await.unwrap();
    assert_eq!(condition.status, ConditionStatus::Unknown);
    assert_eq!(condition.reason, Reason::EngineUnavailable);
    yard.fake.set_unavailable(false);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let id = yard.fake.container("agentyard-alice").unwrap().container.id;
    yard.fake.set_unavailable(true);
    assert_eq!(reason(yard.settled(&uid).await), Reason::EngineUnavailable);
    yard.fake.set_unavailable(false);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert_eq!(
        yard.fake.container("agentyard-alice").unwrap().container.id,
        id
    );
}

#[tokio::test]
async fn an_unreadable_listing_is_not_an_empty_one() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    yard.event(&uid);
    yard.fake.reset_calls();
    yard.fake
        .fail_next(Verb::List, 1, || EngineError::Internal("broken".to_owned()));
    let pass = yard.pass(&uid).await.unwrap().unwrap();
    assert!(pass.error.is_some());
    assert_eq!(yard.fake.calls().writes(), 0);
}

#[tokio::test]
async fn l6_a_deleted_user_leaves_an_archive_and_a_free_name() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    let workspace = yard.dir.path().join("users/alice/.agent/workspace");
    std::fs::write(workspace.join("notes.txt"), "mine").unwrap();
    yard.delete_user(&uid).await;
    yard.settled(&uid).await;
    assert!(yard.row(&uid).await.is_none());
    assert_eq!(yard.names(), Vec::<String>::new());
    assert!(!yard.dir.path().join("users/alice").exists());
    let archive = yard.dir.path().join("archive/alice-20270115T080000Z");
    let kept = archive.join(".agent/workspace/notes.txt");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "mine");

    let again = yard.create_user("alice").await;
    assert_eq!(reason(yard.settled(&again).await), Reason::Running);
    assert!(!workspace.join("notes.txt").exists());
    assert!(yard.row(&again).await.unwrap().facts.crash_count == 0);
}

#[tokio::test]
async fn l13_a_user_deleted_while_starting_does_not_come_back() {
    for steps in 0..6 {
        let mut yard = Yard::new().await;
        let uid = yard.create_user("alice").await;
        yard.budget = Some(steps);
        let _ = yard.settle(&uid).await;
        yard.delete_user(&uid).await;
        yard.settled(&uid).await;
        assert_eq!(yard.names(), Vec::<String>::new());
        assert!(yard.row(&uid).await.is_none());
    }
}

#[tokio::test]
async fn changes_by_hand_are_undone() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    // Seen by the listing.
    yard.fake
        .hand_disconnect("agentyard-alice", NETWORK)
        .unwrap();
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let networks = yard
        .fake
        .container("agentyard-alice")
        .unwrap()
        .container
        .networks;
    assert!(networks.contains_key(NETWORK));
    yard.fake
        .hand_rename("agentyard-alice", "mine-now")
        .unwrap();
    yard.event(&uid);
    yard.settled(&uid).await;
    assert_eq!(yard.names(), ["agentyard-alice"]);
    yard.fake.hand_pause("agentyard-alice").unwrap();
    yard.event(&uid);
    yard.settled(&uid).await;
    let state = yard
        .fake
        .container("agentyard-alice")
        .unwrap()
        .container
        .state;
    assert_eq!(state, ContainerState::Running);
    // Seen when it is inspected: after an event, or at the full verification.
    yard.fake
        .hand_update("agentyard-alice", |settings| settings.memory_bytes = 1)
        .unwrap();
    yard.event(&uid);
    yard.settled(&uid).await;
    let memory = yard
        .fake
        .container("agentyard-alice")
        .unwrap()
        .settings
        .memory_bytes;
    assert_eq!(memory, 1024 * 1024 * 1024);
    yard.assert_nothing_to_do(&uid).await;
}

#[tokio::test]
async fn the_full_verification_finds_what_no_event_told() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    yard.fake
        .hand_update("agentyard-alice", |settings| settings.pids_limit = 0)
        .unwrap();
    yard.settled(&uid).await;
    let limit = |yard: &Yard| {
        let container = yard.fake.container("agentyard-alice").unwrap();
        container.settings.pids_limit
    };
    assert_eq!(limit(&yard), 0, "nobody has looked yet");
    yard.verify_every = Duration::from_millis(1);
    yard.reboot();
    yard.settled(&uid).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    yard.settled(&uid).await;
    assert_eq!(limit(&yard), 512);
    yard.verify_every = Duration::from_secs(600);
    yard.reboot();
    yard.settled(&uid).await;
    yard.fake.reset_calls();
    yard.pass(&uid).await.unwrap();
    assert_eq!(yard.fake.calls().of(Verb::Inspect), 0, "not due again");
}

#[tokio::test]
async fn a_disabled_account_has_no_running_container() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    for (disabled, expected) in [(true, Reason::Stopped), (false, Reason::Running)] {
        let mut tx = yard.db.begin().await.unwrap();
        schema::user::set_disabled(&mut tx, &uid, disabled, None)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        yard.bell(&uid);
        assert_eq!(reason(yard.settled(&uid).await), expected);
    }
}

#[tokio::test]
async fn an_adapter_that_needs_root_says_so() {
    let agent = |run_as| Agent {
        run_as,
        ..Agent::default()
    };
    assert!(agent(RunAs::Image).needs_root((1000, 1000)));
    assert!(!agent(RunAs::Image).needs_root((0, 0)));
    assert!(!agent(RunAs::Ids(1000, 1000)).needs_root((1000, 1000)));
    assert!(agent(RunAs::Ids(1000, 1000)).needs_root((1001, 1000)));
    let mut yard = Yard::with_agent(|agent| agent["run_as"] = json!("1000:1000")).await;
    yard.service_user = (1001, 1001);
    yard.reboot();
    let uid = yard.create_user("alice").await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::NeedsRoot);
    assert_eq!(yard.names(), Vec::<String>::new());
}

#[tokio::test]
async fn an_engine_that_sees_another_directory_gets_no_container() {
    let mut yard = Yard::new().await;
    yard.fake.hide_binds(true);
    let uid = yard.create_user("alice").await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::DataDirMismatch);
    assert_eq!(
        yard.names(),
        Vec::<String>::new(),
        "not even the probe is left"
    );
    yard.fake.hide_binds(false);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
}

#[tokio::test]
async fn a_changed_limit_for_all_reaches_those_without_their_own() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    yard.configure("container.memory_limit_mb", json!(128))
        .await;
    yard.bell(&uid);
    yard.settled(&uid).await;
    let memory = yard
        .fake
        .container("agentyard-alice")
        .unwrap()
        .settings
        .memory_bytes;
    assert_eq!(memory, 128 * 1024 * 1024);
}

#[tokio::test]
async fn the_end_of_a_container_is_seen_although_the_listing_lags_behind_its_event() {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    yard.settled(&uid).await;
    yard.fake.lag_listings(true);
    yard.fake.hand_exit("agentyard-alice", 1).unwrap();
    yard.event(&uid);
    yard.pass(&uid).await.unwrap();
    // No other event comes.
    yard.fake.lag_listings(false);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert_eq!(yard.row(&uid).await.unwrap().facts.crash_count, 1);
    assert_eq!(yard.fake.running(), ["agentyard-alice"]);
}

/// An image's home with one file.
fn home_of_an_image() -> Vec<u8> {
    let mut tree = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(5);
    header.set_mode(0o644);
    tree.append_data(&mut header, "root/hello.txt", &b"hello"[..])
        .unwrap();
    tree.into_inner().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn seed_home_comes_before_the_first_start_whatever_is_cut_short() {
    for steps in 0..8 {
        let mut yard = Yard::with_agent(|agent| agent["seed_home"] = json!(true)).await;
        let image = yard.fake.image("echo:1").await.unwrap().unwrap().id;
        yard.fake
            .set_image_tree(&image, "/root", home_of_an_image());
        let file = yard.dir.path().join("users/alice/hello.txt");
        let seen = file.clone();
        yard.fake.on_start(move |_| {
            assert!(seen.exists(), "copied before the start");
            Run::default()
        });
        // What the image's home is read from stays behind once.
        yard.fake
            .fail_next(Verb::Remove, 1, FakeEngine::unavailable_error);
        let uid = yard.create_user("alice").await;
        yard.budget = Some(steps);
        if yard.settle(&uid).await.is_err() {
            yard.reboot();
        }
        assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
        assert_eq!(std::fs::read(&file).unwrap(), b"hello");
        assert_eq!(yard.names(), ["agentyard-alice"], "{steps}");

        // Once: what the agent's user removes stays away.
        yard.fake.on_start(|_| Run::default());
        std::fs::remove_file(&file).unwrap();
        yard.clock.advance(Duration::from_secs(60));
        yard.restart(&uid, "again").await;
        assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
        assert!(!file.exists());
        assert_eq!(yard.fake.calls().of(Verb::ReadTree), 1, "{steps}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn seed_home_is_asked_for_by_the_adapter_and_an_image_without_a_home_has_none() {
    for (seeds, reads) in [(true, 1), (false, 0)] {
        let mut yard = Yard::with_agent(|agent| agent["seed_home"] = json!(seeds)).await;
        let uid = yard.create_user("alice").await;
        assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
        assert_eq!(yard.fake.calls().of(Verb::ReadTree), reads);
    }
}
