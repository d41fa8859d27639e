//! Whole files, for each configuration version and each migration.

use super::*;

fn snapshot(name: &str, world: &World) {
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(name.to_owned(), report(&world.render()));
    });
}

/// Everything that can be set, for a new user.
fn everything(world: World, channels: &str) -> World {
    world
        .global(
            json!({
                "defaults": {"temperature": 0.7, "model": "big"},
                channels: {"chat": {"enabled": true}, "mail": {"enabled": true, "trigger": {"words": ["hey"]}}},
            }),
            json!({"models": {"big": {"api_keys": ["sk-1"]}}}),
        )
        .channel(
            "chat",
            json!({"enabled": true, "client_id": "0012", "client_secret": "1e5", "allow_from": ["a", "b"], "mention_only": true}),
        )
        .channel("mail", json!({"client_id": "me@example.com", "client_secret": "no", "headers": {"x": {}}}))
        .cookie("example.com", "a=1; b=2")
        .cookie(".example.org", "c=3")
}

/// Files of a user of long ago, with settings of the user's own.
fn old_files(world: World) -> World {
    world.found(
        json!({
            "channels": {
                "chat": {"enabled": true, "client_id": "own", "mention_only": true, "color": "red"},
                "other": "no channel at all",
            },
            "models": [
                {"model_name": "keyed"}, {"model_name": "inline", "api_key": "k"},
                {"model_name": "local"}, {"model_name": "keyless"},
                {"model_name": "off", "enabled": false, "api_key": "k"}, "no model",
            ],
            "bindings": [1], "mcp": {"servers": {"mine": {"transport": "x", "url": "http://mine"}}},
        }),
        json!({
            "channels": {"chat": {"client_secret": "s"}},
            "models": {"keyed:1": {"api_keys": ["k"]}, "keyless": {"api_keys": [""]}},
            "note": "1e5",
        }),
    )
}

#[test]
fn new_files_of_each_version_of_echo() {
    for (version, channels) in [(1, "channels"), (2, "channels"), (3, "channel_list")] {
        let world = everything(World::echo(version), channels);
        snapshot(&format!("echo_v{version}_new"), &world);
    }
    let world = everything(World::echo_with_yaml(3), "channel_list");
    snapshot("echo_v3_new_yaml", &world);
}

#[test]
fn migrations_of_echo() {
    for version in [1, 2, 3] {
        snapshot(
            &format!("echo_v1_to_v{version}"),
            &old_files(World::echo(version)),
        );
    }
    let mut world = old_files(World::echo(2));
    world.apply();
    world.tag = "2.0.0".to_owned();
    snapshot("echo_v2_to_v3", &world);
    world.tag = "1.0.0".to_owned();
    snapshot("echo_v2_to_v1", &world);
}

fn picoclaw(tag: &str) -> World {
    World::of(TestPackage::of("picoclaw").load().unwrap(), tag)
        .global(
            json!({"model_list": [{"model_name": "m", "model": "openai/m", "enabled": true}]}),
            json!({"model_list": {"m": {"api_keys": ["sk-1"]}}}),
        )
        .channel(
            "dingtalk",
            json!({"enabled": true, "client_id": "id", "client_secret": "0123"}),
        )
        .cookie("example.com", "a=1")
}

#[test]
fn new_files_of_each_version_of_picoclaw() {
    for (version, tag) in [(1, "v0.2.4"), (2, "v0.2.6"), (3, "v0.2.9")] {
        snapshot(&format!("picoclaw_v{version}_new"), &picoclaw(tag));
    }
}

#[test]
fn migrations_of_picoclaw() {
    let old = json!({
        "version": 1,
        "agents": {"defaults": {"model": "old", "workspace": "/elsewhere"}},
        "channels": {
            "telegram": {"enabled": true, "proxy": "", "allow_from": ["1"], "mention_only": true, "group_trigger": null},
            "dingtalk": {"enabled": false, "client_id": "own", "mention_only": false, "group_trigger": {"mention_only": true}},
        },
        "bindings": [], "session": {"dm_scope": "per-peer", "other": 1},
        "model_list": [{"model_name": "own", "model": "x/own"}],
    });
    let secrets = json!({
        "channels": {"telegram": {"token": "1:a"}},
        "model_list": {"own:0": {"api_keys": ["k"]}},
    });
    for (version, tag) in [(1, "0.2.4"), (2, "0.2.5"), (3, "latest")] {
        let mut world = picoclaw(tag).found(old.clone(), secrets.clone());
        world.agent = json!({});
        snapshot(&format!("picoclaw_v1_to_v{version}"), &world);
    }
}
