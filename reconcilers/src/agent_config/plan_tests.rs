//! The plan alone, as a table and as properties.

use std::sync::{Arc, LazyLock};

use engine::{ForeignOwner, NetworkState};
use proptest::prelude::*;
use schema::adapter::Adapter;
use schema::agent_config::{AgentConfigFacts, AgentConfigRow, KeptFiles, UserValues};
use schema::condition::{self, Condition, ConditionStatus, ConditionType, Reason};
use schema::config::Config;
use schema::home::{FileNotes, FoundFile, HomeError, HomeId, HomeState, Stamp};
use schema::ids::{Generation, Timestamp, Uid};
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::agent_config::ConfigError;
use crate::agent_config::observe::{NoAddress, Seen, Snapshot, World, is_unreadable};
use crate::agent_config::plan::{Action, Why, plan};
use crate::runtime::{Classify, Plan, Requeue};

static ECHO: LazyLock<Arc<Adapter>> =
    LazyLock::new(|| Arc::new(Adapter::builtin("echo").unwrap().unwrap()));
const TOKEN: &str = "ada:cafe";
const CHAT_TOKEN: &str = "5eed-of-the-chat";
const SECRET: &str = "hunter2-client-secret";

fn row(tag: &str) -> AgentConfigRow {
    AgentConfigRow {
        uid: Uid::from("a".repeat(32)),
        name: "ada".parse().unwrap(),
        generation: Generation(3),
        deleted_at: None,
        image_ref: Some(format!("docker.io/library/echo:{tag}")),
        mcp_token_version: 1,
        config_generation: 1,
        adapter_generation: 1,
        held_by: None,
        facts: AgentConfigFacts::default(),
    }
}

fn file(text: &str) -> FoundFile {
    FoundFile {
        bytes: text.as_bytes().to_vec(),
        stamp: Stamp {
            inode: 7,
            size: text.len() as u64,
            modified_ns: 1,
        },
        mode: 0o640,
        notes: FileNotes::default(),
    }
}

fn config(agent: Value) -> Arc<Config> {
    Arc::new(Config::from_stored([("agent".to_owned(), agent)].into()))
}

fn seen(agent: Value, found: [Option<FoundFile>; 2]) -> Seen {
    let [config_file, security_file] = found;
    let chat = [
        ("enabled".to_owned(), json!(true)),
        ("client_secret".to_owned(), json!(SECRET)),
    ];
    let mut values = UserValues::default();
    values.channels.insert("chat".to_owned(), chat.into());
    Seen {
        adapter: Arc::clone(&ECHO),
        config: config(agent),
        values,
        token: SecretString::from(TOKEN),
        chat_token: SecretString::from(CHAT_TOKEN),
        base_url: Some("http://10.88.0.1:8081".to_owned()),
        home: HomeId::from("first".to_owned()),
        config_file,
        security_file,
        kept: None,
    }
}

fn permitted() -> Value {
    json!({ "version": 3, "channel_list": { "chat": { "enabled": true } } })
}

fn snapshot(row: AgentConfigRow, world: World) -> Snapshot {
    Snapshot {
        row: Arc::new(row),
        home: None,
        world,
    }
}

fn looked(row: AgentConfigRow, seen: Seen) -> Snapshot {
    snapshot(row, World::Seen(Box::new(seen)))
}

fn ready(plan: &Plan<Action>) -> &Condition {
    condition::find(&plan.conditions, ConditionType::Ready).unwrap()
}

/// Does what the plan says, and tells which files were written.
fn apply(snapshot: &mut Snapshot, plan: &Plan<Action>) -> Vec<String> {
    let mut written = Vec::new();
    let mut row = (*snapshot.row).clone();
    for action in &plan.actions {
        match action {
            Action::WriteFiles { files, .. } => {
                let World::Seen(seen) = &mut snapshot.world else {
                    panic!("written without a look");
                };
                for new in files {
                    let place = if new.path == "config.json" {
                        &mut seen.config_file
                    } else {
                        &mut seen.security_file
                    };
                    assert_eq!(place.as_ref().map(|found| found.stamp), new.expected);
                    *place = Some(FoundFile {
                        bytes: new.bytes.clone(),
                        stamp: Stamp {
                            inode: place.as_ref().map_or(1, |found| found.stamp.inode + 1),
                            size: new.bytes.len() as u64,
                            modified_ns: 2,
                        },
                        mode: new.mode,
                        notes: FileNotes::default(),
                    });
                    written.push(new.path.clone());
                }
            }
            Action::KeepFiles(kept) => {
                let World::Seen(seen) = &mut snapshot.world else {
                    panic!("kept without a look");
                };
                seen.kept = Some((**kept).clone());
            }
            Action::SaveFacts(facts) => row.facts = (**facts).clone(),
        }
    }
    snapshot.row = Arc::new(row);
    written
}

#[test]
fn a_new_user_gets_both_files_then_they_are_remembered_then_nothing_is_to_be_done() {
    let mut snapshot = looked(row("2.0.0"), seen(permitted(), [None, None]));
    let first = plan(&snapshot);
    assert_eq!(
        apply(&mut snapshot, &first),
        ["security.json", "config.json"],
        "the file that says its version comes last"
    );
    assert_eq!(snapshot.row.facts.generation, Generation(3));
    let second = plan(&snapshot);
    assert_eq!(second.actions, []);
    assert_eq!(ready(&second).reason, Reason::Converged);
    assert_eq!(ready(&second).status, ConditionStatus::True);
    let World::Seen(seen) = &snapshot.world else {
        panic!("looked");
    };
    let text =
        |file: &Option<FoundFile>| String::from_utf8(file.as_ref().unwrap().bytes.clone()).unwrap();
    assert!(text(&seen.security_file).contains(SECRET));
    let config = text(&seen.config_file);
    assert!(config.contains("http://10.88.0.1:8081/api/mcp/sse/browser?token=ada%3Acafe"));
    for file in [&seen.config_file, &seen.security_file] {
        assert_eq!(file.as_ref().unwrap().mode, 0o600);
    }
}

#[test]
fn the_mode_of_a_configuration_file_that_was_there_stays() {
    let files = [Some(file("{\"version\": 3}")), Some(file("{}"))];
    let plan = plan(&looked(row("2.0.0"), seen(permitted(), files)));
    let Some(Action::WriteFiles { files, .. }) = plan.actions.first() else {
        panic!("{plan:?}");
    };
    let modes: Vec<(&str, u32)> = files.iter().map(|f| (f.path.as_str(), f.mode)).collect();
    assert_eq!(modes, [("security.json", 0o600), ("config.json", 0o640)]);
}

#[test]
fn a_generation_that_changes_nothing_is_remembered_and_writes_nothing() {
    let mut snapshot = looked(row("2.0.0"), seen(permitted(), [None, None]));
    let first = plan(&snapshot);
    apply(&mut snapshot, &first);
    let mut newer = (*snapshot.row).clone();
    newer.generation = Generation(4);
    snapshot.row = Arc::new(newer);
    let plan = plan(&snapshot);
    let [Action::SaveFacts(facts)] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    assert_eq!(facts.generation, Generation(4));
    assert_eq!(
        facts.restart_digest, snapshot.row.facts.restart_digest,
        "no restart"
    );
}

#[test]
fn cookies_are_written_and_restart_nobody() {
    let mut snapshot = looked(row("2.0.0"), seen(permitted(), [None, None]));
    let first = plan(&snapshot);
    apply(&mut snapshot, &first);
    let before = snapshot.row.facts.restart_digest.clone();
    let World::Seen(seen) = &mut snapshot.world else {
        panic!("looked");
    };
    let cookies = &mut seen.values.cookies;
    cookies.insert("d.example".to_owned(), "a=1".to_owned());
    let second = plan(&snapshot);
    assert_eq!(apply(&mut snapshot, &second), ["security.json"]);
    assert_eq!(snapshot.row.facts.restart_digest, before);
}

#[test]
fn l43_a_channel_that_is_not_permitted_is_kept_out_and_named() {
    for agent in [
        json!({ "channels": { "chat": { "enabled": false } } }),
        json!({ "channel_list": { "chat": { "enabled": false } } }),
    ] {
        let mut snapshot = looked(row("2.0.0"), seen(agent, [None, None]));
        let first = plan(&snapshot);
        apply(&mut snapshot, &first);
        let second = plan(&snapshot);
        let message = &ready(&second).message;
        assert!(message.ends_with("; not permitted: chat"), "{message}");
        let World::Seen(seen) = &snapshot.world else {
            panic!("looked");
        };
        let files = [&seen.config_file, &seen.security_file];
        for file in files.into_iter().flatten() {
            assert!(!String::from_utf8_lossy(&file.bytes).contains(SECRET));
        }
    }
}

/// An observation with PicoClaw's adapter, and values of its web channel.
fn seen_of_picoclaw(chat: bool) -> Seen {
    let stored = [("chat.enabled".to_owned(), json!(chat))];
    let adapter = Adapter::builtin("picoclaw").unwrap().unwrap();
    let mut seen = seen(json!({}), [None, None]);
    let own = [("token".to_owned(), json!(SECRET))];
    seen.values.channels = [("pico".to_owned(), own.into())].into();
    Seen {
        adapter: Arc::new(adapter),
        config: Arc::new(Config::from_stored(stored.into())),
        ..seen
    }
}

#[rstest::rstest]
#[case::on(true)]
#[case::off(false)]
fn chat_is_rendered_while_it_is_enabled(#[case] enabled: bool) {
    let mut snapshot = looked(row("0.2.9"), seen_of_picoclaw(enabled));
    let first = plan(&snapshot);
    apply(&mut snapshot, &first);
    let second = plan(&snapshot);
    assert_eq!(second.actions, []);
    // The channel is the chat's while it is on; else it was never permitted.
    let message = &ready(&second).message;
    assert_eq!(message.ends_with("; not permitted: pico"), !enabled);
    assert_eq!(message.contains("pico"), !enabled, "{message}");
    let World::Seen(seen) = &snapshot.world else {
        panic!("looked");
    };
    let files = [&seen.config_file, &seen.security_file];
    let files = files.into_iter().flatten();
    let text: String = files
        .map(|file| String::from_utf8_lossy(&file.bytes))
        .collect();
    assert_eq!(text.contains(CHAT_TOKEN), enabled);
    assert!(!text.contains(SECRET));
}

#[test]
fn what_this_agent_has_no_place_for_is_named_and_never_its_value() {
    let mut seen = seen(permitted(), [None, None]);
    let chat = seen.values.channels.get_mut("chat").unwrap();
    chat.insert("nothing_of_the_kind".to_owned(), json!(SECRET));
    let mut snapshot = looked(row("2.0.0"), seen);
    let first = plan(&snapshot);
    apply(&mut snapshot, &first);
    let plan = plan(&snapshot);
    let message = &ready(&plan).message;
    assert!(message.contains("chat.nothing_of_the_kind"), "{message}");
    assert!(!message.contains(SECRET));
}

#[rstest::rstest]
#[case::not_json(
    "2.0.0",
    permitted(),
    Some("{ nope hunter2"),
    Reason::InvalidUserConfig,
    "config.json is not JSON"
)]
#[case::a_list(
    "2.0.0",
    permitted(),
    Some("[1]"),
    Reason::InvalidUserConfig,
    "config.json is not a map of settings"
)]
#[case::downgrade("1.1.0", json!({}), Some("{\"version\": 3}"), Reason::NoMigrationPath, "cannot be migrated: ")]
#[case::downgrade_with_values_that_no_older_version_permits(
    "1.1.0",
    permitted(),
    Some("{\"version\": 3}"),
    Reason::NoMigrationPath,
    "cannot be migrated: "
)]
#[case::global_version(
    "1.0.0",
    permitted(),
    None,
    Reason::InvalidGlobalConfig,
    "the global settings cannot be migrated: "
)]
fn files_that_cannot_be_made_stay_as_they_are(
    #[case] tag: &str,
    #[case] agent: Value,
    #[case] found: Option<&str>,
    #[case] reason: Reason,
    #[case] message: &str,
) {
    let mut snapshot = looked(row(tag), seen(agent, [found.map(file), None]));
    let first = plan(&snapshot);
    assert_eq!(apply(&mut snapshot, &first), Vec::<String>::new());
    let facts = &snapshot.row.facts;
    assert_eq!(
        (facts.generation, facts.refused),
        (Generation(3), Some(reason))
    );
    let second = plan(&snapshot);
    assert_eq!(second.actions, []);
    assert_eq!(second.requeue, Requeue::AtResync);
    let said = ready(&second);
    assert_eq!((said.reason, said.status), (reason, ConditionStatus::False));
    assert!(said.message.contains(message), "{}", said.message);
    assert!(!said.message.contains("hunter2"));
}

#[test]
fn what_was_refused_is_written_once_it_is_mended() {
    let broken = [Some(file("{")), None];
    let mut snapshot = looked(row("2.0.0"), seen(permitted(), broken));
    let first = plan(&snapshot);
    apply(&mut snapshot, &first);
    let mended = [Some(file("{\"mine\": 1}")), None];
    snapshot.world = World::Seen(Box::new(seen(permitted(), mended)));
    let second = plan(&snapshot);
    assert_eq!(apply(&mut snapshot, &second).len(), 2);
    assert_eq!(snapshot.row.facts.refused, None);
    assert_eq!(plan(&snapshot).actions, []);
}

#[test]
fn nothing_is_said_of_files_that_could_not_be_looked_at_yet() {
    let network = |state| World::NoAddress(NoAddress::Network(state));
    let table = [
        (World::Going, Reason::Terminating),
        (
            World::NoAddress(NoAddress::EngineUnavailable),
            Reason::EngineUnavailable,
        ),
        (World::NoAddress(NoAddress::NotConnected), Reason::Pending),
        (network(NetworkState::Missing), Reason::NetworkMissing),
        (network(NetworkState::Outdated), Reason::NetworkMissing),
        (
            network(NetworkState::Foreign(ForeignOwner::Unknown)),
            Reason::NameConflict,
        ),
        (World::NoHome(HomeState::Missing), Reason::HomeMissing),
        (
            World::NoHome(HomeState::Conflict("taken".to_owned())),
            Reason::HomeConflict,
        ),
    ];
    for (world, reason) in table {
        let plan = plan(&snapshot(row("2.0.0"), world));
        assert_eq!(plan.actions, [], "{reason}");
        assert_eq!(ready(&plan).reason, reason);
        assert_ne!(ready(&plan).status, ConditionStatus::True);
    }
}

#[test]
fn what_was_said_stays_said_without_a_look() {
    let mut refused = row("2.0.0");
    refused.facts.refused = Some(Reason::NoMigrationPath);
    for (row, status) in [
        (row("2.0.0"), ConditionStatus::True),
        (refused, ConditionStatus::False),
    ] {
        let plan = plan(&snapshot(row, World::Unchanged("as before".into())));
        assert_eq!(plan.actions, []);
        assert_eq!(ready(&plan).status, status);
        assert_eq!(ready(&plan).message, "as before");
    }
}

#[test]
fn a_step_shows_names_and_never_what_is_in_the_files() {
    let plan = plan(&looked(row("2.0.0"), seen(permitted(), [None, None])));
    for action in &plan.actions {
        for text in [
            action.to_string(),
            format!("{action:?}"),
            format!("{action:#?}"),
        ] {
            for secret in [SECRET, "cafe", "sse"] {
                assert!(!text.contains(secret), "{text}");
            }
        }
    }
    assert_eq!(
        plan.actions.first().unwrap().to_string(),
        "write security.json and config.json"
    );
}

fn document() -> impl Strategy<Value = Value> {
    let version = prop_oneof![Just(None), (1..5_u32).prop_map(Some)];
    (version, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(version, channels, list, servers)| {
            let mut document = json!({ "mine": { "deep": [1, 2] } });
            let members = document.as_object_mut().unwrap();
            if let Some(version) = version {
                members.insert("version".to_owned(), json!(version));
            }
            if channels {
                members.insert(
                    "channels".to_owned(),
                    json!({ "chat": { "mention_only": true } }),
                );
            }
            if list {
                let chat = json!({ "chat": { "enabled": false, "settings": { "own": 1 } } });
                members.insert("channel_list".to_owned(), chat);
            }
            if servers {
                let servers = json!({ "servers": { "browser": { "transport": "x" } } });
                members.insert("mcp".to_owned(), servers);
            }
            document
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever is found and whatever is desired: two passes, and nothing is left to do; what is the agent's
    /// own stays, and who is refused keeps every byte.
    #[test]
    fn every_way_ends_after_one_write(
        found in proptest::option::of(document()),
        tag in prop_oneof![Just("1.0.0"), Just("1.1.0"), Just("2.0.0"), Just("latest")],
        next in prop_oneof![Just("1.0.0"), Just("1.1.0"), Just("2.0.0")],
        permits in any::<bool>(),
    ) {
        let agent = if permits { permitted() } else { json!({ "model": "m" }) };
        let text = found.map(|found| found.to_string());
        let files = [text.as_deref().map(file), None];
        let mut snapshot = looked(row(tag), seen(agent, files));
        for image in [tag, next] {
            let mut changed = (*snapshot.row).clone();
            changed.image_ref = Some(format!("echo:{image}"));
            changed.generation.0 += 1;
            snapshot.row = Arc::new(changed);
            let before = match &snapshot.world {
                World::Seen(seen) => seen.config_file.clone(),
                _ => None,
            };
            let first = plan(&snapshot);
            apply(&mut snapshot, &first);
            let last = plan(&snapshot);
            prop_assert_eq!(&last.actions, &[]);
            prop_assert_eq!(snapshot.row.facts.generation, snapshot.row.generation);
            let World::Seen(seen) = &snapshot.world else { panic!("looked") };
            if snapshot.row.facts.refused.is_some() {
                prop_assert_eq!(&seen.config_file, &before);
                prop_assert_eq!(ready(&last).status, ConditionStatus::False);
                continue;
            }
            let written: Value =
                serde_json::from_slice(&seen.config_file.as_ref().unwrap().bytes).unwrap();
            if text.is_some() {
                prop_assert_eq!(&written["mine"], &json!({ "deep": [1, 2] }));
            }
            prop_assert_eq!(&written["mcp"]["servers"]["browser"]["type"], "sse");
        }
    }
}

#[test]
fn the_time_of_a_pass_does_not_matter() {
    use crate::agent_config::AgentConfigReconciler;
    use crate::runtime::Reconciler;
    let snapshot = looked(row("2.0.0"), seen(permitted(), [None, None]));
    let at = |second| AgentConfigReconciler::plan(&snapshot, Timestamp::from_secs(second));
    assert_eq!(at(1), at(1_000_000));
}

fn kept(snapshot: &Snapshot) -> Option<KeptFiles> {
    match &snapshot.world {
        World::Seen(seen) => seen.kept.clone(),
        _ => panic!("looked"),
    }
}

fn bytes(snapshot: &Snapshot) -> [Option<Vec<u8>>; 2] {
    match &snapshot.world {
        World::Seen(seen) => {
            let files = [&seen.config_file, &seen.security_file];
            files.map(|file| file.as_ref().map(|file| file.bytes.clone()))
        }
        _ => panic!("looked"),
    }
}

fn image(snapshot: &mut Snapshot, tag: &str) {
    let mut changed = (*snapshot.row).clone();
    changed.image_ref = Some(format!("echo:{tag}"));
    changed.generation.0 += 1;
    snapshot.row = Arc::new(changed);
}

/// Files of version 1, as they are with an agent of it: the service's part is in them.
fn settled_at_version_1() -> Snapshot {
    let config = json!({ "version": 1, "mine": 1, "bindings": ["gone in version 3"] });
    let security = json!({ "own": "hunter3", "channels": { "chat": { "own": "k" } } });
    let files = [
        Some(file(&config.to_string())),
        Some(file(&security.to_string())),
    ];
    let mut snapshot = looked(row("1.0.0"), seen(json!({}), files));
    let first = plan(&snapshot);
    assert!(
        !first
            .actions
            .iter()
            .any(|a| matches!(a, Action::KeepFiles(_)))
    );
    apply(&mut snapshot, &first);
    snapshot
}

/// Does what the plan says, killed after so many steps, and once more after the first of the files.
fn apply_cut(snapshot: &mut Snapshot, plan: &Plan<Action>, steps: usize, half: bool) {
    let mut cut = plan.clone();
    cut.actions.truncate(steps);
    if let Some(Action::WriteFiles { files, .. }) = cut.actions.last_mut()
        && half
    {
        files.truncate(1);
    }
    apply(snapshot, &cut);
}

#[test]
fn files_come_back_as_they_were_where_no_migration_leads_back() {
    // Killed anywhere, on the way there and on the way back.
    for (steps, half) in [(0, false), (1, false), (2, true), (2, false), (3, false)] {
        let mut snapshot = settled_at_version_1();
        let before = bytes(&snapshot);
        let digest = snapshot.row.facts.restart_digest.clone();
        image(&mut snapshot, "2.0.0");
        let there = plan(&snapshot);
        assert_eq!(
            there.actions.first().map(ToString::to_string).as_deref(),
            Some("keep the files of configuration version 1")
        );
        apply_cut(&mut snapshot, &there, steps, half);
        let there = plan(&snapshot);
        apply(&mut snapshot, &there);
        assert_eq!(plan(&snapshot).actions, []);
        assert_ne!(snapshot.row.facts.restart_digest, digest);
        let [config, _] = bytes(&snapshot);
        assert!(
            !String::from_utf8(config.unwrap())
                .unwrap()
                .contains("bindings")
        );
        // What the agent of the new version writes is lost.
        let World::Seen(seen) = &mut snapshot.world else {
            panic!("looked");
        };
        seen.config_file = Some(file("{\"version\": 3, \"newer\": true}"));

        image(&mut snapshot, "1.0.0");
        let back = plan(&snapshot);
        assert!(matches!(
            back.actions.as_slice(),
            [
                Action::WriteFiles {
                    why: Why::PutBack,
                    ..
                },
                Action::SaveFacts(_)
            ]
        ));
        apply_cut(&mut snapshot, &back, steps.min(1), half);
        let back = plan(&snapshot);
        apply(&mut snapshot, &back);
        let last = plan(&snapshot);
        assert_eq!(last.actions, []);
        assert_eq!(ready(&last).status, ConditionStatus::True);
        assert_eq!(bytes(&snapshot), before, "{steps} {half}");
        assert_eq!(snapshot.row.facts.restart_digest, digest);
        // Killed before it was remembered, nobody knows of it any more.
        if steps == 0 || half {
            let message = &ready(&last).message;
            assert!(
                message.contains("; the previous files were put back"),
                "{message}"
            );
        }
    }
}

#[test]
fn what_is_wished_by_now_is_in_the_files_that_come_back() {
    let mut snapshot = settled_at_version_1();
    image(&mut snapshot, "2.0.0");
    let there = plan(&snapshot);
    apply(&mut snapshot, &there);
    let World::Seen(seen) = &mut snapshot.world else {
        panic!("looked");
    };
    seen.token = SecretString::from("ada:beef");
    image(&mut snapshot, "1.0.0");
    let back = plan(&snapshot);
    apply(&mut snapshot, &back);
    let config = bytes(&snapshot)[0].clone().unwrap();
    let config = String::from_utf8(config).unwrap();
    assert!(config.contains("token=ada%3Abeef") && !config.contains("cafe"));
    assert!(config.contains("gone in version 3"));
    // The next migration keeps what is there then, and says no more of the files of before.
    image(&mut snapshot, "2.0.0");
    let again = plan(&snapshot);
    apply(&mut snapshot, &again);
    assert_eq!(kept(&snapshot).unwrap().config.unwrap(), config.as_bytes());
    let last = plan(&snapshot);
    assert_eq!(last.actions, []);
    assert!(!ready(&last).message.contains("before"));
}

#[test]
fn a_declared_way_back_wins_and_another_version_is_refused() {
    let mut snapshot = settled_at_version_1();
    image(&mut snapshot, "1.1.0");
    let there = plan(&snapshot);
    apply(&mut snapshot, &there);
    let World::Seen(seen) = &mut snapshot.world else {
        panic!("looked");
    };
    let newer = json!({ "version": 2, "newer": true });
    seen.config_file = Some(file(&newer.to_string()));
    image(&mut snapshot, "1.0.0");
    let back = plan(&snapshot);
    apply(&mut snapshot, &back);
    let config = bytes(&snapshot)[0].clone().unwrap();
    let config = String::from_utf8(config).unwrap();
    assert!(config.contains("newer"), "migrated, not put back: {config}");
    // Kept are files of version 2 now, and nobody asks for that version.
    image(&mut snapshot, "1.1.0");
    let there = plan(&snapshot);
    apply(&mut snapshot, &there);
    image(&mut snapshot, "2.0.0");
    let there = plan(&snapshot);
    apply(&mut snapshot, &there);
    assert_eq!(kept(&snapshot).unwrap().config_version, 2);
    let before = bytes(&snapshot);
    image(&mut snapshot, "1.0.0");
    let refused = plan(&snapshot);
    assert_eq!(ready(&refused).reason, Reason::NoMigrationPath);
    apply(&mut snapshot, &refused);
    assert_eq!(bytes(&snapshot), before);
}

#[test]
fn a_kept_file_is_never_shown() {
    let mut snapshot = settled_at_version_1();
    for tag in ["2.0.0", "1.0.0"] {
        image(&mut snapshot, tag);
        let plan = plan(&snapshot);
        for text in [format!("{plan:?}"), format!("{plan:#?}")] {
            for secret in ["hunter3", "mine", "cafe"] {
                assert!(!text.contains(secret), "{text}");
            }
        }
        for action in &plan.actions {
            assert!(!action.to_string().contains("hunter3"));
        }
        apply(&mut snapshot, &plan);
    }
}

/// A service killed between the two renames has written the security file only. What comes after is as if
/// nothing had happened, also where both are migrated on the way.
#[test]
fn l44_both_files_are_migrated_even_when_only_one_was_written() {
    let config = json!({ "channels": { "chat": { "mention_only": true } }, "mine": 1 });
    let security = json!({ "channels": { "chat": { "own": "k" } } });
    for tag in ["1.1.0", "2.0.0"] {
        let found = || {
            [
                Some(file(&config.to_string())),
                Some(file(&security.to_string())),
            ]
        };
        let mut whole = looked(row(tag), seen(json!({}), found()));
        let first = plan(&whole);
        apply(&mut whole, &first);
        let mut half = looked(row(tag), seen(json!({}), found()));
        let mut cut = plan(&half);
        cut.actions.truncate(2);
        let Some(Action::WriteFiles { files, .. }) = cut.actions.last_mut() else {
            panic!("{cut:?}");
        };
        files.truncate(1);
        apply(&mut half, &cut);
        let rest = plan(&half);
        apply(&mut half, &rest);
        assert_eq!(plan(&half).actions, []);
        assert_eq!(kept(&half), kept(&whole), "nothing half is kept");
        assert_eq!(bytes(&half), bytes(&whole), "{tag}");
    }
}

/// Root reads what its owner may not, so the error is made up here; `schema` has its test of what gives it.
#[test]
fn l25_a_file_that_nobody_may_read_is_for_its_user_to_mend() {
    let error = HomeError::Forbidden {
        path: ".agent/config.json".to_owned(),
    };
    assert!(is_unreadable(&error));
    assert!(error.to_string().contains(".agent/config.json"), "{error}");
    let error = ConfigError::from(error);
    assert_eq!(error.reason(), Reason::InvalidUserConfig);
    let broken = HomeError::Io {
        action: "opening",
        path: "config.json".into(),
        source: std::io::ErrorKind::PermissionDenied.into(),
    };
    assert!(!is_unreadable(&broken), "of another place than the agent's");
}
