//! Files and containers together: a real database, a real data directory, the engine in memory.

use std::path::PathBuf;
use std::time::Duration;

use schema::agent_config;
use schema::condition::Reason;
use schema::container::{self, Desired};
use schema::ids::{Kind, Uid};
use schema::object;
use schema::rollout::{self, ImageChoice, NewRollout, ReadinessPolicy, RolloutKind};
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::scripted::container::support::{Files, Yard, reason};
use kit::engine::Verb;
use reconcilers::agent_config::AgentConfigStore;
use reconcilers::container::plan::crash_delay;
use reconcilers::container::settings::LABEL_CONFIG_DIGEST;
use reconcilers::runtime::Purpose;
use reconcilers::runtime::{Reconciler, Requeue};
use reconcilers::stores::Rows;
use schema::agent_config::AgentConfigRow;

pub async fn yard() -> (Yard, Uid) {
    let mut yard = Yard::new().await;
    yard.files = Files::Reconciled;
    let permitted = json!({ "channel_list": { "chat": { "enabled": true } } });
    yard.configure("agent", permitted).await;
    let uid = yard.create_user("alice").await;
    (yard, uid)
}

/// What the API does when a user saves a channel.
pub async fn save(yard: &Yard, uid: &Uid, secret: &str, token: &str) {
    let values = [
        ("enabled".to_owned(), json!(true)),
        ("client_id".to_owned(), json!(format!("id-of-{token}"))),
        ("client_secret".to_owned(), json!(secret)),
    ];
    let mut tx = yard.db.begin().await.unwrap();
    container::request_fresh(&mut tx, uid, token, None)
        .await
        .unwrap();
    object::bump(&mut tx, Kind::AgentConfig, uid, None)
        .await
        .unwrap();
    let now = yard.now();
    agent_config::set_channel_values(&mut tx, &yard.key, uid, "chat", &values.into(), now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    yard.bell(uid);
}

pub fn path(yard: &Yard, file: &str) -> PathBuf {
    yard.dir.path().join("users/alice/.agent").join(file)
}

pub fn text(yard: &Yard, file: &str) -> String {
    std::fs::read_to_string(path(yard, file)).unwrap()
}

pub fn made(yard: &Yard) -> Option<String> {
    let container = yard.fake.container("agentyard-alice")?;
    Some(container.container.id)
}

/// How often a container was made until now.
fn creations(yard: &Yard) -> u64 {
    yard.fake.calls().of(Verb::Create)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_is_made_once_its_files_are_there() {
    let (mut yard, uid) = yard().await;
    let mut said = Vec::new();
    for _ in 0..6 {
        yard.service.engine_pass().await;
        yard.service.user_pass(&uid).await;
        said.push(reason(yard.pass(&uid).await.unwrap().unwrap().condition));
    }
    assert_eq!(said.last(), Some(&Reason::ConfigPending), "{said:?}");
    assert_eq!(made(&yard), None);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let config: Value = serde_json::from_str(&text(&yard, "config.json")).unwrap();
    let url = config["mcp"]["servers"]["browser"]["url"].as_str().unwrap();
    assert!(
        url.starts_with("http://10.88.0.1:8081/api/mcp/sse/browser?token=alice%3A"),
        "{url}"
    );
    let container = yard.fake.container("agentyard-alice").unwrap().container;
    let row = yard.row(&uid).await.unwrap();
    assert_eq!(
        container.labels.get(LABEL_CONFIG_DIGEST),
        row.files.restart_digest.as_ref()
    );
    assert!(row.files.restart_digest.is_some() && !row.files.pending);
    yard.assert_nothing_to_do(&uid).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_is_one_restart_whether_it_changes_something_or_not() {
    let (mut yard, uid) = yard().await;
    yard.settled(&uid).await;
    for (token, secret) in [("one", "s3cret"), ("two", "s3cret"), ("three", "other")] {
        let (before, count) = (made(&yard), creations(&yard));
        save(&yard, &uid, secret, token).await;
        assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
        assert_ne!(made(&yard), before, "{token}");
        assert_eq!(creations(&yard), count + 1, "{token}: once");
        assert!(text(&yard, "security.json").contains(secret));
        yard.assert_nothing_to_do(&uid).await;
    }
    assert!(!text(&yard, "security.json").contains("s3cret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn cookies_reach_the_files_and_restart_nobody() {
    let (mut yard, uid) = yard().await;
    yard.settled(&uid).await;
    let before = made(&yard);
    let mut tx = yard.db.begin().await.unwrap();
    let cookies = SecretString::from("sid=1");
    let now = yard.now();
    agent_config::set_cookies(&mut tx, &yard.key, &uid, "d.example", &cookies, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    yard.bell(&uid);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert!(text(&yard, "security.json").contains("sid=1"));
    assert_eq!(made(&yard), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_stopped_stays_stopped_and_gets_the_files() {
    let (mut yard, uid) = yard().await;
    yard.settled(&uid).await;
    yard.set_desired(&uid, Desired::Stopped, false).await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Stopped);
    save(&yard, &uid, "s3cret", "one").await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Stopped);
    assert_eq!(made(&yard), None);
    assert!(text(&yard, "security.json").contains("s3cret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_runs_on_until_the_files_are_there() {
    let (mut yard, uid) = yard().await;
    yard.settled(&uid).await;
    let before = made(&yard);
    save(&yard, &uid, "s3cret", "one").await;
    for _ in 0..3 {
        let pass = yard.pass(&uid).await.unwrap().unwrap();
        assert_eq!(
            (pass.acted, reason(pass.condition)),
            (0, Reason::ConfigPending)
        );
    }
    assert_eq!(made(&yard), before);
    assert_eq!(yard.fake.running().len(), 1);
    // Files that are settled, and nobody hears of it: the row is read again after a while.
    yard.settle_files(&uid).await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert_ne!(made(&yard), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_files_whose_passes_are_switched_off() {
    let (mut yard, uid) = yard().await;
    yard.settled(&uid).await;
    let before = made(&yard);
    for (paused, expected) in [(true, Reason::Running), (false, Reason::ConfigPending)] {
        let mut tx = yard.db.begin().await.unwrap();
        object::set_paused(&mut tx, Kind::AgentConfig, &uid, paused, None)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        yard.clock.advance(Duration::from_secs(60));
        save(&yard, &uid, "s3cret", &format!("paused-{paused}")).await;
        let mut last = None;
        for _ in 0..8 {
            // The files' own passes are left out, as the pause leaves them out.
            let pass = yard.pass(&uid).await.unwrap().unwrap();
            assert!(pass.error.is_none(), "{:?}", pass.error);
            last = pass.condition;
        }
        assert_eq!(reason(last), expected);
    }
    assert_ne!(
        made(&yard),
        before,
        "it went on with the files as they were"
    );
    assert!(!text(&yard, "security.json").contains("s3cret"));
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert!(text(&yard, "security.json").contains("s3cret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_engine_nothing_new_is_said_of_files_that_were_written() {
    let (mut yard, uid) = yard().await;
    yard.settled(&uid).await;
    let said = yard.config_pass(&uid).await.unwrap().unwrap();
    let said = said.condition.unwrap();
    assert_eq!(said.reason, Reason::Converged);
    // A service that has just been started, and no engine.
    yard.reboot();
    let pass = yard.config_pass(&uid).await.unwrap().unwrap();
    assert_eq!((pass.acted, pass.requeue), (0, Requeue::AtResync));
    let condition = pass.condition.unwrap();
    assert_eq!(
        (condition.reason, condition.status),
        (said.reason, said.status)
    );
    // So what was said of them before stays, and nothing is saved for each user at each start.
    assert_eq!(condition.message, "");
    save(&yard, &uid, "s3cret", "one").await;
    let pass = yard.config_pass(&uid).await.unwrap().unwrap();
    assert_eq!(reason(pass.condition), Reason::Pending);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert!(text(&yard, "security.json").contains("s3cret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_changed_is_set_right_and_what_the_agent_wrote_stays() {
    let (mut yard, uid) = yard().await;
    save(&yard, &uid, "s3cret", "one").await;
    yard.settled(&uid).await;
    let before = made(&yard);
    let config = text(&yard, "config.json");
    // The agent's own settings are no drift.
    let own = config.replacen('{', "{ \"own\": 1,", 1);
    std::fs::write(path(&yard, "config.json"), &own).unwrap();
    yard.service.config.refresh(&uid);
    let pass = yard.config_pass(&uid).await.unwrap().unwrap();
    assert_eq!((pass.acted, reason(pass.condition)), (0, Reason::Converged));
    assert_eq!(text(&yard, "config.json"), own);
    // What is the service's is, once it is observed.
    let other = own.replace("/api/mcp/sse/browser", "/elsewhere");
    std::fs::write(path(&yard, "config.json"), other).unwrap();
    let pass = yard.config_pass(&uid).await.unwrap().unwrap();
    assert_eq!(pass.acted, 0, "nothing has told of it");
    yard.service.config.refresh(&uid);
    let observed = yard.service.config.observe(&uid, Purpose::DryRun).await;
    let snapshot = observed.unwrap().unwrap();
    let plan = reconcilers::agent_config::plan::plan(&snapshot);
    let [step] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    assert!(step.to_string().contains("somebody has changed"), "{step}");
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let mended: Value = serde_json::from_str(&text(&yard, "config.json")).unwrap();
    assert_eq!(mended["own"], 1);
    assert!(mended.to_string().contains("/api/mcp/sse/browser"));
    assert_eq!(made(&yard), before, "no reason for a restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn l45_a_global_setting_that_is_gone_leaves_the_files() {
    let (mut yard, uid) = yard().await;
    yard.configure("agent", json!({ "defaults": { "model": "gpt-x" } }))
        .await;
    yard.settled(&uid).await;
    assert!(text(&yard, "config.json").contains("gpt-x"));
    yard.configure("agent", json!({})).await;
    yard.settled(&uid).await;
    assert!(!text(&yard, "config.json").contains("gpt-x"));
}

/// What a rollout does: another image for this user.
async fn give(yard: &Yard, uid: &Uid, reference: &str, image_id: &str) {
    let policy = ReadinessPolicy {
        health_timeout: std::time::Duration::from_secs(60),
        min_ready: std::time::Duration::ZERO,
    };
    let new = NewRollout {
        kind: RolloutKind::Upgrade,
        reference: reference.to_owned(),
        source: None,
        max_unavailable: 1,
        pause_on_failure: true,
        health_timeout: policy.health_timeout,
        min_ready: policy.min_ready,
    };
    let image = ImageChoice {
        reference: reference.to_owned(),
        image_id: Some(image_id.to_owned()),
        digest: None,
    };
    let mut tx = yard.db.begin().await.unwrap();
    let (users, now) = ([uid.clone()], yard.now());
    let rollout = match rollout::unfinished(&mut tx).await.unwrap().pop() {
        Some(rollout) => rollout,
        None => rollout::create(&mut tx, &new, &users, "admin", now)
            .await
            .unwrap(),
    };
    rollout::move_target(&mut tx, &rollout, uid, &image, policy, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    yard.bell(uid);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_migration_the_old_container_runs_on() {
    let (mut yard, uid) = yard().await;
    yard.configure("agent", json!({})).await;
    yard.settled(&uid).await;
    let before = made(&yard);
    let files = text(&yard, "config.json");
    let old = yard.fake.add_image("echo:1.1.0");
    give(&yard, &uid, "docker.io/library/echo:1.1.0", &old).await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::NoMigrationPath);
    assert_eq!(made(&yard), before);
    assert_eq!(yard.fake.running().len(), 1);
    assert_eq!(text(&yard, "config.json"), files, "nothing is overwritten");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_migration_the_old_container_is_started_again_and_its_ends_are_counted() {
    let (mut yard, uid) = yard().await;
    yard.configure("agent", json!({})).await;
    yard.settled(&uid).await;
    let before = made(&yard);
    let old = yard.fake.add_image("echo:1.1.0");
    give(&yard, &uid, "docker.io/library/echo:1.1.0", &old).await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::NoMigrationPath);
    for fresh in [false, true] {
        if fresh {
            yard.restart(&uid, "by-a-person").await;
        }
        for count in 1..=4 {
            yard.clock.advance(Duration::from_secs(1));
            yard.fake.hand_exit("agentyard-alice", 3).unwrap();
            yard.event(&uid);
            let (ended, reasons) = (yard.now(), started_again(&mut yard, &uid).await);
            assert!(yard.now().since(ended) >= crash_delay(count), "{count}");
            let expected = match count {
                1 => None,
                2 => Some(&Reason::Exited),
                _ => Some(&Reason::CrashLoop),
            };
            assert_eq!(reasons.first(), expected, "{count}");
            assert_eq!(yard.row(&uid).await.unwrap().facts.crash_count, count);
            assert_eq!(reason(yard.settled(&uid).await), Reason::NoMigrationPath);
            assert_eq!(made(&yard), before, "the very container");
            let facts = yard.row(&uid).await.unwrap().facts;
            assert_eq!(facts.engine_id, before, "what runs is known");
        }
    }
}

/// Passes for the container until it runs again; tells for what reasons they waited.
async fn started_again(yard: &mut Yard, uid: &Uid) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for _ in 0..20 {
        let pass = yard.pass(uid).await.unwrap().unwrap();
        assert!(pass.error.is_none(), "{:?}", pass.error);
        if !yard.fake.running().is_empty() {
            return reasons;
        }
        if pass.acted == 0 {
            reasons.push(reason(pass.condition));
            let Requeue::After(pause) = pass.requeue else {
                panic!("nobody starts it: {reasons:?}");
            };
            yard.clock.advance(pause);
        }
    }
    panic!("it never runs: {reasons:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_and_its_image_are_one_restart() {
    let (mut yard, uid) = yard().await;
    yard.configure("agent", json!({})).await;
    let old = yard.fake.add_image("echo:1.1.0");
    give(&yard, &uid, "docker.io/library/echo:1.1.0", &old).await;
    yard.settled(&uid).await;
    let config: Value = serde_json::from_str(&text(&yard, "config.json")).unwrap();
    assert_eq!(config["version"], 2);
    let count = creations(&yard);
    let new = yard.fake.add_image("echo:2.0.0");
    give(&yard, &uid, "docker.io/library/echo:2.0.0", &new).await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let config: Value = serde_json::from_str(&text(&yard, "config.json")).unwrap();
    assert_eq!(config["version"], 3);
    assert_eq!(creations(&yard), count + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_crashes_with_migrated_files_goes_back_to_the_image_and_the_files_of_before() {
    let (mut yard, uid) = yard().await;
    yard.configure("agent", json!({})).await;
    let old = yard.fake.add_image("echo:1.1.0");
    let new = yard.fake.add_image("echo:2.0.0");
    give(&yard, &uid, "docker.io/library/echo:1.1.0", &old).await;
    yard.settled(&uid).await;
    // The agent's own, and the user's.
    let mut config: Value = serde_json::from_str(&text(&yard, "config.json")).unwrap();
    config["own"] = json!(1);
    config["bindings"] = json!(["gone in version 3"]);
    std::fs::write(path(&yard, "config.json"), config.to_string()).unwrap();
    let mut security: Value = serde_json::from_str(&text(&yard, "security.json")).unwrap();
    security["own"] = json!("k");
    std::fs::write(path(&yard, "security.json"), security.to_string()).unwrap();
    let files = || [text(&yard, "config.json"), text(&yard, "security.json")];
    let before = files();
    give(&yard, &uid, "docker.io/library/echo:2.0.0", &new).await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert!(!text(&yard, "config.json").contains("bindings"));
    for _ in 0..4 {
        yard.clock.advance(std::time::Duration::from_secs(1));
        yard.fake.hand_exit("agentyard-alice", 1).unwrap();
        yard.event(&uid);
        yard.settled(&uid).await;
    }
    yard.clock.advance(std::time::Duration::from_secs(1));
    yard.fake.hand_exit("agentyard-alice", 1).unwrap();
    yard.event(&uid);
    yard.pass(&uid).await.unwrap();
    assert!(yard.row(&uid).await.unwrap().facts.crash_count > 2);

    let at = yard.now();
    give(&yard, &uid, "docker.io/library/echo:1.1.0", &old).await;
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let waited = yard.now().since(at);
    assert!(waited < std::time::Duration::from_secs(5), "{waited:?}");
    let container = yard.fake.container("agentyard-alice").unwrap().container;
    assert_eq!(container.image_id, old);
    assert_eq!(
        [text(&yard, "config.json"), text(&yard, "security.json")],
        before
    );
    let pass = yard.config_pass(&uid).await.unwrap().unwrap();
    let said = pass.condition.unwrap();
    assert!(
        said.message.contains("the previous files were put back"),
        "{said:?}"
    );
    yard.assert_nothing_to_do(&uid).await;
    // With the account goes what is kept.
    assert!(yard.store().kept_files(&uid).await.unwrap().is_some());
    yard.delete_user(&uid).await;
    assert_eq!(yard.store().kept_files(&uid).await.unwrap(), None);
}

/// Passes of the container until nothing is left to do, as their steps.
async fn steps_of_the_container(yard: &mut Yard, uid: &Uid) -> Vec<String> {
    let mut steps = Vec::new();
    loop {
        yard.bell(uid);
        let pass = yard.pass(uid).await.unwrap().unwrap();
        assert!(pass.error.is_none(), "{:?}", pass.error);
        if pass.acted == 0 {
            return steps;
        }
        steps.extend(pass.steps);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l77_a_removed_home_is_made_again_with_its_files_and_mounted_by_another_container() {
    let (mut yard, uid) = yard().await;
    save(&yard, &uid, "s3cret", "one").await;
    yard.settled(&uid).await;
    yard.clock.advance(Duration::from_secs(60));
    let (before, count) = (made(&yard), creations(&yard));
    std::fs::remove_dir_all(yard.dir.path().join("users/alice")).unwrap();
    // It runs, in a directory that is gone: nobody may call that ready.
    let pass = yard.pass(&uid).await.unwrap().unwrap();
    assert_eq!(
        (pass.acted, reason(pass.condition)),
        (0, Reason::HomeMissing)
    );
    let pass = yard.config_pass(&uid).await.unwrap().unwrap();
    assert_eq!(
        (pass.acted, reason(pass.condition)),
        (0, Reason::HomeMissing)
    );
    assert_eq!(made(&yard), before);

    // No container without its files.
    yard.service.user_pass(&uid).await;
    let pass = yard.pass(&uid).await.unwrap().unwrap();
    assert_eq!(
        (pass.acted, reason(pass.condition)),
        (0, Reason::ConfigPending)
    );
    let pass = yard.config_pass(&uid).await.unwrap().unwrap();
    let why = "because the user's directory was replaced";
    assert!(pass.steps[0].contains(why), "{:?}", pass.steps);
    assert!(text(&yard, "security.json").contains("s3cret"));
    let steps = steps_of_the_container(&mut yard, &uid).await;
    let why = "the user's directory was replaced, and it mounts the one before";
    assert!(steps.iter().any(|step| step.contains(why)), "{steps:?}");
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert_ne!(made(&yard), before);
    assert_eq!(creations(&yard), count + 1, "once");
    assert!(path(&yard, "config.json").exists());
    yard.assert_nothing_to_do(&uid).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l77_a_home_that_another_directory_replaces_is_found_by_its_identity() {
    let (mut yard, uid) = yard().await;
    yard.settled(&uid).await;
    yard.clock.advance(Duration::from_secs(60));
    let (before, count) = (made(&yard), creations(&yard));
    let users = yard.dir.path().join("users");
    std::fs::rename(users.join("alice"), yard.dir.path().join("aside")).unwrap();
    std::fs::create_dir_all(users.join("alice/.agent/workspace")).unwrap();
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert_ne!(made(&yard), before);
    assert_eq!(creations(&yard), count + 1, "once");
    let files: Value = serde_json::from_str(&text(&yard, "config.json")).unwrap();
    assert!(files["mcp"]["servers"]["browser"].is_object(), "{files}");
    yard.assert_nothing_to_do(&uid).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l77_a_missing_config_file_is_never_called_as_it_should_be() {
    let (mut yard, uid) = yard().await;
    yard.settled(&uid).await;
    let before = made(&yard);
    let idle = yard.config_pass(&uid).await.unwrap().unwrap();
    assert_eq!((idle.acted, reason(idle.condition)), (0, Reason::Converged));
    std::fs::remove_file(path(&yard, "config.json")).unwrap();
    // Long before the next full comparison, and without the engine, which says where the service is.
    yard.fake.set_unavailable(true);
    yard.service.view.mark_stale(&uid);
    let _ = yard.service.container.keys().await.unwrap();
    let pass = yard.config_pass(&uid).await.unwrap().unwrap();
    assert_ne!(reason(pass.condition), Reason::Converged);
    yard.fake.set_unavailable(false);
    let _ = yard.service.container.keys().await.unwrap();
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert!(path(&yard, "config.json").exists());
    assert_eq!(made(&yard), before, "what it mounts is the same");
}

#[tokio::test(flavor = "multi_thread")]
async fn l77_a_start_without_the_engine_does_not_call_missing_files_as_they_should_be() {
    let (mut yard, uid) = yard().await;
    yard.settled(&uid).await;
    for missing in ["config.json", ""] {
        let there = path(&yard, missing);
        let aside = yard.dir.path().join("aside");
        std::fs::rename(&there, &aside).unwrap();
        yard.fake.set_unavailable(true);
        yard.reboot();
        let _ = yard.service.container.keys().await.unwrap();
        let pass = yard.config_pass(&uid).await.unwrap().unwrap();
        assert_ne!(reason(pass.condition), Reason::Converged, "{missing}");
        std::fs::rename(&aside, &there).unwrap();
        let pass = yard.config_pass(&uid).await.unwrap().unwrap();
        assert_eq!(reason(pass.condition), Reason::Converged, "{missing}");
        yard.fake.set_unavailable(false);
        let _ = yard.service.container.keys().await.unwrap();
        yard.settled(&uid).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_user_ends_with_nothing_left() {
    let (mut yard, uid) = yard().await;
    save(&yard, &uid, "s3cret", "one").await;
    yard.settled(&uid).await;
    yard.delete_user(&uid).await;
    let pass = yard.config_pass(&uid).await.unwrap().unwrap();
    assert_eq!(
        (pass.acted, reason(pass.condition)),
        (0, Reason::Terminating)
    );
    assert_eq!(yard.settled(&uid).await, None);
    let row: Option<AgentConfigRow> = yard.store().row(&uid).await.unwrap();
    assert_eq!(row, None);
    assert!(yard.config_pass(&uid).await.unwrap().is_none());
}
