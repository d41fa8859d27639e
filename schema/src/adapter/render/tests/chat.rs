//! The chat in the agent's files.

use rstest::rstest;

use super::*;
use crate::adapter::{ChatFeature, ChatProtocol};

const TOKEN: &str = "00ff-token-of-the-chat";

fn picoclaw(tag: &str) -> World {
    let adapter = Adapter::builtin("picoclaw").unwrap().unwrap();
    World::of(adapter, tag).with_chat()
}

impl World {
    fn with_chat(mut self) -> Self {
        self.chat = Some(SecretString::from(TOKEN));
        self
    }

    /// Values at dotted places of the two files.
    fn at(&self, config: &str, security: &str) -> (Value, Value) {
        let read = |document: &Value, path: &str| {
            let pointer = format!("/{}", path.replace('.', "/"));
            document.pointer(&pointer).cloned().unwrap_or_default()
        };
        (
            read(&self.config(), config),
            read(&self.secrets(), security),
        )
    }
}

#[rstest]
#[case("0.2.4", "channels.pico.enabled", "channels.pico.token")]
#[case("0.2.6", "channels.pico.enabled", "channels.pico.token")]
#[case(
    "0.2.9",
    "channel_list.pico.enabled",
    "channel_list.pico.settings.token"
)]
fn chat_of_picoclaw_is_turned_on(#[case] tag: &str, #[case] enabled: &str, #[case] token: &str) {
    let mut world = picoclaw(tag);
    world.apply();
    assert_eq!(world.at(enabled, token), (json!(true), json!(TOKEN)));
    let config = world.config.clone().unwrap();
    assert!(!String::from_utf8(config).unwrap().contains(TOKEN));
    let digest = world.apply().restart_digest;
    assert!(!world.render().config.changed && !world.render().security.changed);
    world.chat = None;
    let off = world.apply();
    assert_ne!(off.restart_digest, digest);
    assert_eq!(world.at(enabled, token), (Value::Null, Value::Null));
    assert!(!world.config().to_string().contains("pico\""));
}

#[test]
fn third_version_says_the_type_of_the_chat() {
    let mut world = picoclaw("0.2.9");
    world.apply();
    let expected = json!({
        "enabled": true, "type": "pico", "allow_from": [], "settings": {"allow_origins": []}
    });
    assert_eq!(world.config()["channel_list"]["pico"], expected);
}

#[rstest]
#[case(1)]
#[case(2)]
#[case(3)]
fn chat_of_echo_is_no_channel(#[case] version: u32) {
    for mut world in [World::echo(version), World::echo_with_yaml(version)] {
        world = world.with_chat();
        world.apply();
        let expected = (json!(true), json!(TOKEN));
        assert_eq!(world.at("page.enabled", "page.token"), expected);
        world.chat = None;
        world.apply();
        assert!(world.config().get("page").is_none());
        assert!(world.secrets().get("page").is_none());
    }
}

#[rstest]
#[case("0.2.4")]
#[case("0.2.9")]
fn own_values_of_the_channel_wait_until_the_chat_is_off(#[case] tag: &str) {
    let own = json!({
        "enabled": false, "token": "my-own", "allow_from": ["pico:me"],
        "allow_origins": ["https://example.com"], "max_connections": 1
    });
    let mut world = picoclaw(tag).channel("pico", own);
    world.chat = None;
    let off = world.apply();
    assert_eq!(off.skipped, Vec::<String>::new());
    let shown = [world.config(), world.secrets()].map(|file| file.to_string());
    assert!(shown[0].contains("pico:me") && shown[1].contains("my-own"));

    let mut world = world.with_chat();
    let on = world.apply();
    assert_eq!(on.skipped, Vec::<String>::new());
    let shown = [world.config(), world.secrets()].map(|file| file.to_string());
    for own in ["pico:me", "https://example.com", "max_connections"] {
        assert!(!shown[0].contains(own), "{own}: {}", shown[0]);
    }
    assert!(!shown[1].contains("my-own") && shown[1].contains(TOKEN));

    world.chat = None;
    world.apply();
    assert!(world.secrets().to_string().contains("my-own"));
}

#[test]
fn managed_values_win_over_the_files() {
    let config = json!({"version": 3, "channel_list": {
        "pico": {"enabled": false, "type": "telegram", "allow_from": ["pico:me"],
            "settings": {"allow_origins": ["https://example.com"], "ping_interval": 5}},
        "mine": {"enabled": true, "type": "irc"}
    }});
    let secrets = json!({"channel_list": {"pico": {"settings": {"token": "stale"}}}});
    let mut world = picoclaw("0.2.9").found(config, secrets);
    world.apply();
    let expected = json!({"enabled": true, "type": "pico", "allow_from": [],
        "settings": {"allow_origins": [], "ping_interval": 5}});
    assert_eq!(world.config()["channel_list"]["pico"], expected);
    assert_eq!(world.config()["channel_list"]["mine"]["type"], json!("irc"));
    let token = world.at("version", "channel_list.pico.settings.token").1;
    assert_eq!(token, json!(TOKEN));
    let applied = world.applied.clone().unwrap();
    assert!(!world.adapter.has_drifted(&applied, world.files()).unwrap());
    let muted = world.config().to_string();
    let muted = muted.replace(r#""allow_from":[]"#, r#""allow_from":["pico:me"]"#);
    world.config = Some(muted.into_bytes());
    assert!(world.adapter.has_drifted(&applied, world.files()).unwrap());
}

#[test]
fn global_settings_do_not_mute_the_chat() {
    let agent = json!({"channel_list": {"pico": {
        "enabled": false, "allow_from": ["pico:me"],
        "settings": {"allow_origins": ["https://example.com"], "streaming": {"enabled": true}}
    }}});
    let security = json!({"channel_list": {"pico": {"settings": {"token": "global"}}}});
    let mut world = picoclaw("0.2.9").global(agent, security);
    world.apply();
    let expected = json!({"enabled": true, "type": "pico", "allow_from": [],
        "settings": {"allow_origins": [], "streaming": {"enabled": true}}});
    assert_eq!(world.config()["channel_list"]["pico"], expected);
    assert!(!world.secrets().to_string().contains("global"));
}

#[test]
fn chat_survives_a_migration() {
    let mut world = picoclaw("0.2.4");
    world.apply();
    world.tag = "0.2.9".to_owned();
    world.apply();
    let place = ("channel_list.pico.type", "channel_list.pico.settings.token");
    assert_eq!(world.at(place.0, place.1), (json!("pico"), json!(TOKEN)));
    assert!(world.config().get("channels").is_none());
}

#[test]
fn version_without_a_chat_gets_none() {
    let package = TestPackage::echo().remove("index.json", "/agent_versions/2/chat");
    let adapter = package.load().unwrap();
    assert_eq!(adapter.chat("2.0.0"), None);
    let features = adapter.chat("1.1.0").unwrap().features;
    assert_eq!(features.len(), 2);
    let mut world = World::of(adapter, "2.0.0").with_chat();
    world.apply();
    assert!(world.config().get("page").is_none());
}

#[rstest]
#[case("0.2.4", &[])]
#[case("0.2.5", &[ChatFeature::Pictures])]
#[case("v0.2.7-alpine", &[ChatFeature::Parallel, ChatFeature::Pictures, ChatFeature::Usage])]
fn features_are_those_of_the_version(#[case] tag: &str, #[case] expected: &[ChatFeature]) {
    let chat = picoclaw(tag).adapter.chat(tag).unwrap();
    assert_eq!(chat.features, expected.iter().copied().collect());
    let place = (chat.protocol, chat.port, chat.path.as_str());
    assert_eq!(place, (ChatProtocol::Pico, 18790, "/pico/ws"));
}

#[test]
fn only_its_own_channel_is_the_chats() {
    let adapter = picoclaw("latest").adapter;
    assert_eq!(adapter.chat("latest").unwrap().features.len(), 5);
    for tag in ["0.2.4", "0.2.6", "0.2.9", "latest"] {
        assert!(adapter.is_chat_channel(tag, "pico"));
        assert!(!adapter.is_chat_channel(tag, "pico_client"));
        assert!(!adapter.is_chat_channel(tag, "telegram"));
    }
    assert!(!World::echo(3).adapter.is_chat_channel("2.0.0", "chat"));
}

#[rstest]
#[case(json!({}), None)]
#[case(json!({"channel_list": {"pico": {"enabled": true, "type": "pico"}}}), None)]
#[case(json!({"channel_list": {"web": {"enabled": false, "type": "pico"}}}), None)]
#[case(json!({"channel_list": {"web": {"enabled": true, "type": "irc"}}}), None)]
#[case(json!({"channel_list": {"web": {"enabled": true, "type": "pico"}}}), Some("channel_list.web"))]
fn other_channel_of_the_type_is_refused(#[case] agent: Value, #[case] place: Option<&str>) {
    let refused = picoclaw("latest").adapter.check_chat(&agent).err();
    assert_eq!(refused.is_some(), place.is_some());
    if let (Some(error), Some(place)) = (refused, place) {
        let message = error.to_string();
        assert!(message.contains(place), "{message}");
        assert!(message.contains("chat.enabled"), "{message}");
    }
}
