//! Changes that agents get in steps.

use schema::adapter::Adapter;
use schema::adapter::store;
use schema::condition::{Condition, Reason};
use schema::config::flags::{self, AgentFlags, FlagsChanged};
use schema::config::history::{self, SavedBy};
use schema::config::query::{self, Saved};
use schema::config::{Changes, keys};
use schema::ids::{Epoch, Generation, Kind, Timestamp, Uid};
use schema::object::{self, StatusRow};
use schema::rollout::{self, Phase, RolloutKind, TargetState, held};
use schema::{container, meta};
use serde_json::{Value, json};

use crate::support::{Yard, on_both_databases, user};

on_both_databases!(
    save_holds_ready_agents_and_bumps_the_others,
    restart_ends_a_hold,
    newer_save_takes_the_place_of_a_rollout,
    base_of_a_new_release_holds_ready_agents,
    limit_of_its_own_keeps_an_agent_out,
    changed_flags_hold_ready_agents,
);

const BY: SavedBy<'static> = SavedBy {
    actor: "admin",
    at: Timestamp::from_secs(1_778_500_000),
};

async fn set_ready(yard: &Yard, uid: &Uid, condition: Condition) {
    let mut tx = yard.db.begin().await.unwrap();
    let object = object::get(&mut tx, Kind::Container, uid).await.unwrap();
    let status = StatusRow {
        observed_generation: object.unwrap().generation,
        conditions: vec![condition],
        ..StatusRow::default()
    };
    let saved = object::save_status(&mut tx, Kind::Container, uid, &status, Epoch(1)).await;
    assert!(saved.unwrap());
    tx.commit().await.unwrap();
}

/// Ready agents of these names.
async fn ready(yard: &Yard, names: &[&str]) -> Vec<Uid> {
    let mut uids = Vec::new();
    for name in names {
        let uid = user(yard, name).await;
        set_ready(yard, &uid, Condition::ready(Reason::Running, "up")).await;
        uids.push(uid);
    }
    uids
}

async fn save(yard: &Yard, key: &'static str, value: Option<Value>) -> Saved {
    let mut tx = yard.db.begin().await.unwrap();
    query::lock(&mut tx).await.unwrap();
    let changes = Changes([(key, value)].into());
    let saved = query::save(&mut tx, &yard.key, &changes, None, BY).await;
    tx.commit().await.unwrap();
    saved.unwrap()
}

async fn generations(yard: &Yard, kind: Kind, uids: &[Uid]) -> Vec<i64> {
    let mut connection = yard.db.read().await.unwrap();
    let mut generations = Vec::new();
    for uid in uids {
        let object = object::get(&mut connection, kind, uid).await.unwrap();
        generations.push(object.unwrap().generation.0);
    }
    generations
}

async fn held_by(yard: &Yard, uid: &Uid) -> [Option<Uid>; 2] {
    let mut connection = yard.db.read().await.unwrap();
    let container = container::get(&mut connection, uid).await.unwrap().unwrap();
    let files = schema::agent_config::get(&mut connection, uid).await;
    [container.held_by, files.unwrap().unwrap().held_by]
}

async fn states(yard: &Yard, rollout: &Uid) -> (Phase, Vec<(String, TargetState)>) {
    let mut connection = yard.db.read().await.unwrap();
    let found = rollout::get(&mut connection, rollout).await.unwrap();
    let (row, targets) = found.unwrap();
    let state = |target: rollout::RolloutTarget| (target.name, target.state);
    (row.phase(), targets.into_iter().map(state).collect())
}

async fn save_holds_ready_agents_and_bumps_the_others(yard: Yard) {
    let uids = ready(&yard, &["bob", "alice"]).await;
    let starting = user(&yard, "carol").await;
    let waiting = Condition::not_ready(Reason::NotReady, "not ready yet");
    set_ready(&yard, &starting, waiting).await;
    let saved = save(&yard, keys::AGENT.row.key, Some(json!({"a": 1}))).await;
    let rollout = saved.rollout.unwrap();
    let pending = |name: &str| (name.to_owned(), TargetState::Pending);
    let expected = (Phase::Rolling, vec![pending("alice"), pending("bob")]);
    assert_eq!(states(&yard, &rollout).await, expected);
    for uid in &uids {
        assert_eq!(
            held_by(&yard, uid).await,
            [(); 2].map(|()| Some(rollout.clone()))
        );
    }
    let all = [&uids[..], &[starting]].concat();
    assert_eq!(generations(&yard, Kind::AgentConfig, &all).await, [1, 1, 2]);

    // The files of all are written once more, and theirs at their turn.
    let mut tx = yard.db.begin().await.unwrap();
    object::bump_all(&mut tx, Kind::AgentConfig).await.unwrap();
    held::keep_held(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    assert!(held_by(&yard, &uids[0]).await.iter().all(Option::is_some));
    let mut tx = yard.db.begin().await.unwrap();
    meta::take_guard(&mut tx, "bulk").await.unwrap();
    rollout::release_target(&mut tx, &rollout, &uids[0], BY.at)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(held_by(&yard, &uids[0]).await, [None, None]);
    assert_eq!(generations(&yard, Kind::Container, &uids).await, [2, 1]);
    assert_eq!(states(&yard, &rollout).await.1[1].1, TargetState::Moving);
}

/// PicoClaw's adapter as releases before the chat had it.
fn without_chat() -> Adapter {
    let builtin = Adapter::builtin("picoclaw").unwrap().unwrap();
    let mut files = builtin.files().clone();
    for (path, text) in &mut files {
        let Ok(mut document) = serde_json::from_str::<Value>(text) else {
            continue;
        };
        if path == "index.json" {
            document["adapter_version"] = json!("1.2");
            for version in document["agent_versions"].as_array_mut().unwrap() {
                version.as_object_mut().unwrap().remove("chat");
            }
        }
        document.as_object_mut().unwrap().remove("chat");
        *text = document.to_string();
    }
    crate::support::repack(&mut files);
    Adapter::from_stored(&serde_json::to_string(&files).unwrap()).unwrap()
}

async fn base_of_a_new_release_holds_ready_agents(yard: Yard) {
    let before = without_chat();
    assert_eq!(before.chat("0.2.9"), None);
    let start = async |base: &Adapter| {
        let mut tx = yard.db.begin().await.unwrap();
        let changed = store::ensure_base(&mut tx, base, BY).await.unwrap();
        tx.commit().await.unwrap();
        assert!(changed);
    };
    start(&before).await;
    let uids = ready(&yard, &["alice", "bob"]).await;
    let files = generations(&yard, Kind::AgentConfig, &uids).await;
    let containers = generations(&yard, Kind::Container, &uids).await;
    let stopped = user(&yard, "carol").await;
    let now = Adapter::builtin("picoclaw").unwrap().unwrap();
    assert!(now.index.adapter_version > before.index.adapter_version);
    start(&now).await;
    let rollout = held_by(&yard, &uids[0]).await[1].clone().unwrap();
    for uid in &uids {
        assert_eq!(
            held_by(&yard, uid).await,
            [(); 2].map(|()| Some(rollout.clone()))
        );
    }
    assert_eq!(generations(&yard, Kind::AgentConfig, &uids).await, files);
    assert_eq!(generations(&yard, Kind::Container, &uids).await, containers);
    assert_eq!(held_by(&yard, &stopped).await, [None, None]);
    let pending = |name: &str| (name.to_owned(), TargetState::Pending);
    let expected = (Phase::Rolling, vec![pending("alice"), pending("bob")]);
    assert_eq!(states(&yard, &rollout).await, expected);
    let mut connection = yard.db.read().await.unwrap();
    let found = rollout::get(&mut connection, &rollout).await.unwrap();
    assert_eq!(found.unwrap().0.kind, RolloutKind::Adapter);
}

async fn restart_ends_a_hold(yard: Yard) {
    let uids = ready(&yard, &["alice"]).await;
    let saved = save(&yard, keys::container::PIDS_LIMIT.row.key, Some(json!(99))).await;
    assert_eq!(held_by(&yard, &uids[0]).await[0], saved.rollout);
    let mut tx = yard.db.begin().await.unwrap();
    container::request_restart(&mut tx, &uids[0], "token", false, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(held_by(&yard, &uids[0]).await, [None, None]);
}

async fn newer_save_takes_the_place_of_a_rollout(yard: Yard) {
    let uids = ready(&yard, &["alice", "bob"]).await;
    let key = keys::container::PIDS_LIMIT.row.key;
    let first = save(&yard, key, Some(json!(99))).await.rollout.unwrap();
    let failed = Condition::not_ready(Reason::CrashLoop, "it ends");
    set_ready(&yard, &uids[0], failed).await;
    let mut tx = yard.db.begin().await.unwrap();
    let generation = Some(Generation(1));
    let refused = rollout::cancel(&mut tx, &first, generation).await;
    assert!(refused.unwrap_err().to_string().contains("config rollback"));
    drop(tx);
    let second = save(&yard, key, None).await.rollout.unwrap();
    let (phase, left) = states(&yard, &first).await;
    assert_eq!(phase, Phase::Cancelled);
    assert!(
        left.iter()
            .all(|(_, state)| *state == TargetState::Cancelled)
    );
    // The one that broke gets it at once.
    let bob = ("bob".to_owned(), TargetState::Pending);
    assert_eq!(states(&yard, &second).await.1, [bob]);
    assert_eq!(generations(&yard, Kind::Container, &uids).await, [2, 1]);
    let mut connection = yard.db.read().await.unwrap();
    let (row, _) = rollout::head(&mut connection, &second)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.kind, RolloutKind::Config);
    assert_eq!(
        row.way_back().as_deref(),
        Some("agentyard config rollback 2")
    );
}

async fn limit_of_its_own_keeps_an_agent_out(yard: Yard) {
    let uids = ready(&yard, &["alice", "bob"]).await;
    let mut tx = yard.db.begin().await.unwrap();
    container::set_limits(&mut tx, &uids[0], None, Some(64), None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    set_ready(&yard, &uids[0], Condition::ready(Reason::Running, "up")).await;
    let key = keys::container::MEMORY_LIMIT_MB.row.key;
    let rollout = save(&yard, key, Some(json!(512))).await.rollout.unwrap();
    let bob = ("bob".to_owned(), TargetState::Pending);
    assert_eq!(states(&yard, &rollout).await.1, [bob]);
}

async fn apply_flags(yard: &Yard, agent_listen: &str, host: &str) -> Option<FlagsChanged> {
    let flags = AgentFlags::new([
        ("agent-listen", agent_listen.to_owned()),
        ("docker-host", host.to_owned()),
    ]);
    let mut tx = yard.db.begin().await.unwrap();
    let changed = flags::apply(&mut tx, &yard.key, &flags, BY).await.unwrap();
    tx.commit().await.unwrap();
    let recorded = flags::read(&mut yard.db.read().await.unwrap()).await;
    assert_eq!(recorded.unwrap(), Some(flags));
    changed
}

async fn changed_flags_hold_ready_agents(yard: Yard) {
    let uids = ready(&yard, &["bob"]).await;
    let starting = user(&yard, "carol").await;
    // The first record, the same again, and a flag that reaches no agent.
    for (agent_listen, host) in [
        ("auto", "unix://a"),
        ("auto", "unix://a"),
        ("auto", "tcp://b"),
    ] {
        assert_eq!(apply_flags(&yard, agent_listen, host).await, None);
    }
    let all = [&uids[..], &[starting]].concat();
    assert_eq!(generations(&yard, Kind::Container, &all).await, [1, 1]);
    let changed = apply_flags(&yard, "off", "tcp://b").await.unwrap();
    assert_eq!(changed.what, ["--agent-listen is off, was auto"]);
    let rollout = changed.rollout.unwrap();
    assert_eq!(
        held_by(&yard, &uids[0]).await,
        [(); 2].map(|()| Some(rollout.clone()))
    );
    assert_eq!(generations(&yard, Kind::Container, &all).await, [1, 2]);
    let mut connection = yard.db.read().await.unwrap();
    let paths = Default::default();
    let access = history::Access {
        master_key: &yard.key,
        secret_paths: &paths,
    };
    let (revisions, total) = history::list(&mut connection, access, "", 10, 0)
        .await
        .unwrap();
    let change = &revisions[0].changes[0];
    assert_eq!(
        (total, change.key.as_str(), &change.new),
        (1, "serve.agent-listen", &json!("off"))
    );
    let found = rollout::get(&mut connection, &rollout)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        found.0.reference,
        format!("configuration {}", revisions[0].revision)
    );
}
