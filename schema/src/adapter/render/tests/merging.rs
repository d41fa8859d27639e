//! Who owns what in a file.

use super::*;

#[test]
fn l45_a_removed_global_key_disappears_and_nothing_else() {
    let mut world = World::echo(3)
        .global(
            json!({"tools": {"web": {"on": true, "max": 3}}, "limits": {"a": 1}, "list": [1, 2]}),
            json!({"models": {"big": {"api_keys": ["k"]}}}),
        )
        .found(
            json!({"limits": {}, "tools": {"mine": 1}, "own": "x"}),
            json!({"own": "y"}),
        );
    world.apply();
    assert_eq!(
        world.config()["tools"],
        json!({"mine": 1, "web": {"on": true, "max": 3}})
    );
    world.agent = json!({"tools": {"web": {"on": true}}});
    world.security = json!({});
    world.apply();
    assert_eq!(
        world.config()["tools"],
        json!({"mine": 1, "web": {"on": true}})
    );
    assert_eq!(world.config()["limits"], json!({}), "it was there before");
    assert!(world.config().get("list").is_none());
    assert_eq!(world.secrets(), json!({"own": "y"}));
    world.agent = json!({});
    world.apply();
    assert_eq!(world.config()["tools"], json!({"mine": 1}));
    assert_eq!(world.config()["own"], "x");
}

#[test]
fn an_object_made_for_a_global_key_stays_when_somebody_else_uses_it() {
    let mut world =
        World::echo(3).global(json!({"tools": {"a": {"on": true}, "b": {}}}), json!({}));
    world.apply();
    let mut config = world.config();
    config["tools"]["a"]["own"] = json!(1);
    world.config = Some(config.to_string().into_bytes());
    world.agent = json!({});
    world.apply();
    assert_eq!(world.config()["tools"], json!({"a": {"own": 1}}));
}

#[test]
fn objects_recurse_arrays_are_replaced_and_the_global_kind_wins() {
    let mut world = World::echo(3)
        .global(
            json!({"a": {"list": [1]}, "b": {"c": 1}, "d": 1, "n": null}),
            json!({}),
        )
        .found(
            json!({"a": {"list": [2, 3], "own": 1}, "b": 7, "d": {"x": 1}, "n": 1}),
            json!({}),
        );
    world.apply();
    let config = world.config();
    assert_eq!(config["a"], json!({"list": [1], "own": 1}));
    assert_eq!(
        (&config["b"], &config["d"], &config["n"]),
        (&json!({"c": 1}), &json!(1), &json!(null))
    );
    world.agent = json!({"b": 5, "d": {"y": 1}});
    world.apply();
    let config = world.config();
    assert_eq!((&config["b"], &config["d"]), (&json!(5), &json!({"y": 1})));
    assert!(config.get("n").is_none());
}

#[test]
fn l43_a_channels_global_enabled_is_permission_and_is_never_copied() {
    for (version, channels) in [(1, "channels"), (2, "channels"), (3, "channel_list")] {
        let global =
            json!({channels: {"chat": {"enabled": true}, "mail": {"enabled": false, "x": 1}}});
        let mut world = World::echo(version).global(global.clone(), global.clone());
        world.apply();
        assert_eq!(world.config()[channels], json!({"mail": {"x": 1}}));
        assert_eq!(world.secrets()[channels], json!({"mail": {"x": 1}}));
        let permits = |channel: &str| {
            world
                .adapter
                .permits_channel(&world.tag, &global, channel)
                .unwrap()
        };
        assert!(permits("chat"));
        for channel in ["mail", "", "fax", "*", "chat.enabled"] {
            assert!(!permits(channel), "{channel}");
        }
        // The user's own is another matter.
        let mut world = world.channel("chat", json!({"enabled": true}));
        world.apply();
        assert_eq!(world.config()[channels]["chat"]["enabled"], true);
    }
    // The chat app's needs no permission, but heeds a refusal, wherever its channels are.
    for (global, permitted) in [
        (json!({}), true),
        (json!({"channels": {"chat": {"x": 1}}}), true),
        (json!({"channels": {"chat": {"enabled": false}}}), false),
        (json!({"channel_list": {"chat": {"enabled": null}}}), false),
        (json!({"channel_list": {"chat": false}}), false),
        (json!({"channel_list": null}), false),
    ] {
        for version in [1, 3] {
            let world = World::echo(version);
            let permits = |channel| world.adapter.permits_channel(&world.tag, &global, channel);
            assert_eq!(permits("chat"), Ok(permitted), "{version} {global}");
            assert_eq!(permits("mail"), Ok(false));
        }
    }
    let only = json!({"channels": {"chat": {"enabled": true}}});
    let world = World::echo(1).global(only, json!({}));
    let config: Value = serde_json::from_slice(&world.render().config.bytes).unwrap();
    assert!(config.get("channels").is_none());
}

#[test]
fn l43_saving_one_channel_touches_no_other() {
    let mut world = World::echo(3)
        .channel(
            "chat",
            json!({"client_id": "chat", "client_secret": "c", "enabled": false}),
        )
        .channel(
            "mail",
            json!({"client_id": "mail", "client_secret": "m", "enabled": true}),
        );
    world.apply();
    let (config, secrets) = (world.config(), world.secrets());
    let mut world = world.channel(
        "mail",
        json!({"client_id": "new", "client_secret": "n", "enabled": true}),
    );
    world.apply();
    assert_eq!(
        world.config()["channel_list"]["chat"],
        config["channel_list"]["chat"]
    );
    assert_eq!(
        world.secrets()["channel_list"]["chat"],
        secrets["channel_list"]["chat"]
    );
    assert_eq!(
        world.config()["channel_list"]["mail"]["settings"]["client_id"],
        "new"
    );
}

#[test]
fn a_value_that_the_user_clears_goes_and_channels_without_a_place_are_kept_back() {
    let mut world = World::echo(3).channel("mail", json!({"client_id": "me", "port": 1, "fax": 2}));
    let rendered = world.apply();
    assert_eq!(rendered.skipped, ["mail.fax"]);
    let mut world = world.channel("mail", json!({"client_id": "me"}));
    world.apply();
    assert_eq!(
        world.config()["channel_list"]["mail"],
        json!({"type": "mail", "settings": {"client_id": "me"}})
    );
    world.channels.clear();
    world.apply();
    assert!(world.config().get("channel_list").is_none());
    // The first version has no mail.
    let world = World::echo(1)
        .channel("mail", json!({"client_id": "me"}))
        .channel("", json!({"x": 1}));
    assert_eq!(world.render().skipped, ["", "mail"]);
}

#[test]
fn where_no_listener_is_for_agents_no_server_is_named() {
    let mut world = World::echo(3);
    world.apply();
    assert!(world.config()["mcp"]["servers"]["browser"].is_object());
    world.base_url = None;
    world.apply();
    assert_eq!(world.config().pointer("/mcp/servers/browser"), None);
    let text = world.config().to_string();
    assert!(!text.contains("http"), "{text}");
}

#[test]
fn mcp_servers_are_replaced_whole_and_others_stay() {
    let mut world = World::echo(3).found(
        json!({"mcp": {"servers": {"browser": {"headers": {"x": 1}, "type": "stdio"}, "mine": {"type": "sse"}}}}),
        json!({}),
    );
    world.base_url = Some("https://agents.example/base/".to_owned());
    world.token = SecretString::from("a+b@c:ff");
    world.apply();
    let server = |service: &str| {
        json!({
            "enabled": true, "type": "sse",
            "url": format!("https://agents.example/base/api/mcp/sse/{service}?token=a%2Bb%40c%3Aff"),
        })
    };
    assert_eq!(
        world.config()["mcp"]["servers"],
        json!({"browser": server("browser"), "computer": server("computer"), "mine": {"type": "sse"}})
    );
}

#[test]
fn the_workspace_is_where_it_must_be_whatever_anybody_sets() {
    let elsewhere = json!({"defaults": {"workspace": "/elsewhere"}});
    let mut world = World::echo(3)
        .global(elsewhere.clone(), json!({}))
        .found(elsewhere, json!({}));
    world.apply();
    assert_eq!(
        world.config()["defaults"]["workspace"],
        "/root/.agent/workspace"
    );
}

#[test]
fn cookies_are_projected_and_taken_back_and_never_restart() {
    let mut world = World::echo(3)
        .global(
            json!({}),
            json!({"web": {"cookies": {"global.example": "g=1"}}}),
        )
        .cookie("example.com", "a=1")
        .found(
            json!({}),
            json!({"web": {"cookies": {"own.example": "o=1"}}}),
        );
    let first = world.apply();
    assert_eq!(
        world.secrets()["web"]["cookies"],
        json!({"example.com": "a=1", "global.example": "g=1", "own.example": "o=1"})
    );
    world.cookies.clear();
    world.security = json!({});
    let second = world.apply();
    assert_eq!(
        world.secrets()["web"]["cookies"],
        json!({"own.example": "o=1"})
    );
    assert_eq!(first.restart_digest, second.restart_digest);
    assert_ne!(first.applied.digest, second.applied.digest);
}

#[test]
fn the_restart_digest_covers_what_the_agent_must_be_restarted_for() {
    let world = World::echo(3)
        .global(json!({"a": 1}), json!({}))
        .channel("chat", json!({"client_id": "x"}));
    let digest = |world: &World| world.render().restart_digest;
    let base = digest(&world);
    let unmanaged = world
        .clone()
        .found(json!({"version": 3, "own": [1], "a": 2}), json!({"own": 1}));
    assert_eq!(digest(&unmanaged), base);
    assert_eq!(digest(&world.clone().cookie("example.com", "a=1")), base);
    let permission = json!({"a": 1, "channel_list": {"chat": {"enabled": true}}});
    assert_eq!(digest(&world.clone().global(permission, json!({}))), base);
    let mut others = vec![
        world.clone().global(json!({"a": 2}), json!({})),
        world.clone().global(json!({"a": 1}), json!({"b": 1})),
        world.clone().channel("chat", json!({"client_id": "y"})),
        world
            .clone()
            .channel("chat", json!({"client_id": "x", "client_secret": "s"})),
    ];
    others.push(World {
        base_url: Some("http://other".to_owned()),
        ..world.clone()
    });
    others.push(World {
        token: SecretString::from("alice:11"),
        ..world.clone()
    });
    for (at, other) in others.iter().enumerate() {
        assert_ne!(digest(other), base, "{at}");
    }
}

#[test]
fn drift_is_a_managed_value_that_differs_and_nothing_else() {
    let mut world = World::echo_with_yaml(3)
        .global(json!({"a": {"b": 1.0, "list": [1]}}), json!({"key": "1e5"}))
        .channel("chat", json!({"client_secret": "007"}));
    world.apply();
    let applied = world.applied.clone().unwrap();
    let drifted = |world: &World| world.adapter.has_drifted(&applied, world.files()).unwrap();
    assert!(!drifted(&world));

    // The agent writes its own settings, in its own order and spaces, and numbers as it likes.
    let mut config = world.config();
    config["own"] = json!({"state": 1});
    config["a"]["b"] = json!(1);
    let mut agent = world.clone();
    agent.config = Some(serde_json::to_vec(&config).unwrap());
    assert!(!drifted(&agent));
    assert!(!agent.render().config.changed, "1 is 1.0");

    for (pointer, value) in [
        ("/a/b", json!(2)),
        ("/a/list", json!([1, 1])),
        ("/a", json!({})),
    ] {
        let mut changed = world.config();
        *changed.pointer_mut(pointer).unwrap() = value;
        let mut other = world.clone();
        other.config = Some(changed.to_string().into_bytes());
        assert!(drifted(&other), "{pointer}");
        assert!(other.render().config.changed);
    }
    let gone = World {
        security_file: None,
        ..world.clone()
    };
    assert!(drifted(&gone));
    let broken = World {
        config: Some(b"{".to_vec()),
        ..world.clone()
    };
    assert!(
        broken
            .adapter
            .has_drifted(&applied, broken.files())
            .is_err()
    );
}

#[test]
fn nothing_to_say_makes_no_file_and_no_change() {
    let world = World::echo(3);
    assert!(!world.render().security.changed);
    assert!(world.render().config.changed);
    let mut world = World::echo(3).found(json!({}), json!({}));
    world.apply();
    let again = world.render();
    assert!(!again.config.changed && !again.security.changed);
    // Other spaces and another order are no change.
    let config = world.config().to_string();
    world.config = Some(config.into_bytes());
    assert!(!world.render().config.changed);
}

#[test]
fn l71_what_the_service_has_set_can_be_withdrawn_and_nothing_else() {
    let own = json!({"version": 3, "tools": {"mine": 1}, "own": "x"});
    let mut world = World::echo(3)
        .global(
            json!({"tools": {"web": {"api_key": "hunter2"}}, "models": [{"key": "hunter2"}]}),
            json!({"models": {"big": {"api_keys": ["hunter2"]}}}),
        )
        .channel("chat", json!({"enabled": true, "client_secret": "hunter2"}))
        .cookie("a.example", "a=hunter2")
        .found(own.clone(), json!({"own": "y"}));
    world.apply();
    let withdraw = |world: &World| {
        let applied = world.applied.as_ref().unwrap();
        world.adapter.withdraw(applied, world.files()).unwrap()
    };
    let json = |bytes: &Option<Vec<u8>>| -> Value {
        serde_json::from_slice(bytes.as_ref().unwrap()).unwrap()
    };
    let [config, security] = withdraw(&world);
    assert_eq!(json(&config), own);
    assert_eq!(json(&security), json!({"own": "y"}));
    // Once more there is nothing to do.
    (world.config, world.security_file) = (config, security);
    assert_eq!(withdraw(&world), [None, None]);
    // Files that are not there are not made.
    (world.config, world.security_file) = (None, None);
    assert_eq!(withdraw(&world), [None, None]);
    world.config = Some(b"no JSON".to_vec());
    let applied = world.applied.as_ref().unwrap();
    assert!(world.adapter.withdraw(applied, world.files()).is_err());
}
