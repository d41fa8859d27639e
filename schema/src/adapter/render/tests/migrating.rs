//! Which version files have, and how they come to another.

use super::*;
use crate::adapter::NoMigrationPath;

#[test]
fn a_file_says_its_own_version_and_else_the_last_rendering_does() {
    let channels = json!({"channels": {"own": {"mention_only": true}}});
    let mut unmarked = World::echo(2).found(channels.clone(), json!({}));
    // Nothing is known of it: only later versions have a mark.
    unmarked.apply();
    assert_eq!(
        unmarked.config()["channels"]["own"],
        json!({"trigger": {"mention_only": true}})
    );

    let mut marked = World::echo(2).found(channels.clone(), json!({}));
    marked.config = Some(
        json!({"version": 2, "channels": {"own": {"mention_only": true}}})
            .to_string()
            .into_bytes(),
    );
    marked.apply();
    assert_eq!(
        marked.config()["channels"]["own"],
        json!({"mention_only": true})
    );

    let mut known = World::echo(2).found(channels, json!({}));
    known.applied = Some(Applied {
        config_version: 2,
        managed: ManagedPaths::default(),
        digest: String::new(),
    });
    known.apply();
    assert_eq!(
        known.config()["channels"]["own"],
        json!({"mention_only": true})
    );
    assert_eq!(known.config()["version"], 2, "the mark is mended");
}

#[test]
fn l44_both_files_are_migrated() {
    let mut world = World::echo(3).found(
        json!({"channels": {"chat": {"color": "red"}}}),
        json!({"channels": {"chat": {"client_secret": "s"}}}),
    );
    world.apply();
    assert_eq!(
        world.config()["channel_list"],
        json!({"chat": {"type": "chat", "settings": {"color": "red"}}})
    );
    assert_eq!(
        world.secrets()["channel_list"],
        json!({"chat": {"settings": {"client_secret": "s"}}})
    );
    assert_eq!(world.config()["version"], 3);
}

#[test]
fn a_downgrade_without_a_declared_way_is_refused() {
    let mut world = World::echo(3);
    world.apply();
    for (tag, to) in [("1.1.0", 2), ("1.0.0", 1)] {
        world.tag = tag.to_owned();
        let refusal = RenderError::NoMigrationPath(NoMigrationPath { from: 3, to });
        assert_eq!(world.refusal(), refusal);
    }
    let mut world = World::echo(2);
    world.apply();
    world.tag = "1.0.0".to_owned();
    assert_eq!(world.render().config_version, 1, "this way is declared");
}

#[test]
fn l39_a_newer_agent_than_any_known_keeps_its_own_version() {
    let mut world = World::echo(3).found(json!({"version": 9, "channel_list": {}}), json!({}));
    for tag in ["latest", "9.9.9", ""] {
        world.tag = tag.to_owned();
        let rendered = world.render();
        let config: Value = serde_json::from_slice(&rendered.config.bytes).unwrap();
        assert_eq!(
            (rendered.config_version, &config["version"]),
            (3, &json!(9))
        );
    }
}

#[test]
fn a_chain_ends_even_when_migrations_go_round() {
    let edge = |from, to| json!({"from_config": from, "to_config": to, "path": format!("m{from}{to}.json")});
    let mut package = TestPackage::echo();
    let edges = [(1, 2), (2, 1), (2, 3), (3, 2), (1, 3)];
    package = package.set(
        "index.json",
        "/migrations",
        json!(edges.map(|(from, to)| edge(from, to))),
    );
    for (from, to) in edges {
        let document = json!({"from_config": from, "to_config": to, "actions": []});
        package = package.set(&format!("m{from}{to}.json"), "", document);
    }
    let adapter = package.load().unwrap();
    let chain = |from, to| {
        adapter
            .migration_chain(from, to)
            .map(|chain| chain.iter().map(|m| m.to_config).collect::<Vec<_>>())
    };
    assert_eq!(chain(1, 1), Ok(vec![]));
    assert_eq!(chain(1, 3), Ok(vec![3]), "the shortest");
    assert_eq!(chain(3, 1), Ok(vec![2, 1]));
    assert_eq!(chain(3, 9), Err(NoMigrationPath { from: 3, to: 9 }));
    assert_eq!(chain(9, 3), Err(NoMigrationPath { from: 9, to: 3 }));
}

#[test]
fn what_was_set_before_a_migration_is_taken_back_after_it() {
    let mut world = World::echo(1).global(
        json!({"channels": {"chat": {"color": "red"}}}),
        json!({"channels": {"chat": {"client_secret": "global"}}}),
    );
    world.apply();
    assert_eq!(world.config()["channels"]["chat"]["color"], "red");
    world.tag = "2.0.0".to_owned();
    world.agent = json!({});
    world.security = json!({});
    world.apply();
    assert_eq!(
        world.config().get("channel_list"),
        Some(&json!({"chat": {"type": "chat"}}))
    );
    assert_eq!(world.secrets(), json!({}));
}

#[test]
fn global_settings_that_say_their_version_are_migrated_and_others_are_not() {
    let agent = json!({"version": 2, "channels": {"chat": {"enabled": true, "color": "red"}}});
    let mut world = World::echo(3).global(agent.clone(), json!({}));
    world.apply();
    assert_eq!(world.config()["version"], 3);
    assert_eq!(
        world.config()["channel_list"]["chat"],
        json!({"type": "chat", "settings": {"color": "red"}})
    );
    assert!(world.config().get("channels").is_none());
    let ahead = World::echo(3).global(json!({"version": 3}), json!({}));
    let ahead = ahead.found(json!({"version": 9}), json!({}));
    assert!(!String::from_utf8_lossy(&ahead.render().config.bytes).contains("\"version\": 3"));
    let newer = World::echo(1).global(json!({"version": 3}), json!({}));
    assert_eq!(
        newer.refusal(),
        RenderError::GlobalMigration(NoMigrationPath { from: 3, to: 1 })
    );
    let permits = |tag: &str, agent: &Value, channel: &str| {
        world.adapter.permits_channel(tag, agent, channel).unwrap()
    };
    assert!(permits("2.0.0", &agent, "chat"));
    assert!(permits("1.1.0", &agent, "chat"));
    assert!(!permits("1.1.0", &agent, "mail"));
}

#[test]
fn a_missing_place_is_no_error_and_what_is_in_the_way_stays() {
    for (config, expected) in [
        (json!({"channels": 5}), json!({"channel_list": 5})),
        (
            json!({"channels": {"a": {"trigger": 5, "mention_only": true}}}),
            json!({"channel_list": {"a": {"type": "a", "trigger": 5, "settings": {"mention_only": true}}}}),
        ),
        (
            json!({"channels": {"a": {"x": 1}}, "channel_list": {"a": {"y": 1}, "b": 1}}),
            json!({"channel_list": {"a": {"y": 1}, "b": 1}}),
        ),
        (
            json!({"channels": {"a": {"settings": {"x": 1}, "y": 1}}, "channel_list": null}),
            json!({"channel_list": {"a": {"type": "a", "settings": {"x": 1}, "y": 1}}}),
        ),
        (json!({"models": 7}), json!({"models": 7})),
        (
            json!({"models": {"local": {}, "keyed": {"api_keys": ["k"]}, "x": {}}}),
            json!({"models": {"local": {"enabled": true}, "keyed": {"api_keys": ["k"], "enabled": true}, "x": {}}}),
        ),
    ] {
        let mut world = World::echo(3).found(config.clone(), json!({}));
        world.apply();
        let mut after = world.config();
        for ours in ["defaults", "mcp", "version"] {
            after.as_object_mut().unwrap().remove(ours);
        }
        assert_eq!(after, expected, "{config}");
    }
}

#[test]
fn global_settings_that_no_agent_can_read_are_told_before_they_are_saved() {
    let adapter = &World::echo(3).adapter;
    let check = |agent| adapter.check_global(&agent, &json!({}));
    assert_eq!(check(json!({})), Ok(()));
    // Only the files of the newest agents can hold it, and that is enough.
    assert_eq!(check(json!({"version": 3, "a": 1})), Ok(()));
    assert!(matches!(
        check(json!({"version": 99})),
        Err(RenderError::GlobalMigration(_))
    ));
    let deep = (0..80).fold(json!(1), |inner, _| json!({ "a": inner }));
    assert!(matches!(
        check(deep),
        Err(RenderError::InvalidGlobal { key: "agent", .. })
    ));
}
