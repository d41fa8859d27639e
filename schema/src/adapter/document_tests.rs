//! Packages whose documents are wrong.

use serde_json::{Value, json};

use super::test_package::TestPackage;
use super::{Adapter, package};

const INDEX: &str = "index.json";
const CONFIG_3: &str = "schemas/config-v3.json";
const UI_3: &str = "ui/ui-v3.json";
const TO_2: &str = "migrations/v1-to-v2.json";
const TO_3: &str = "migrations/v2-to-v3.json";

const CHAT: &str = "/pages/1/sections/0";
const MAIL: &str = "/pages/1/sections/1";

/// One change that spoils the package of the test agent: file, place, value; none = removed.
type Change = (&'static str, String, Option<Value>);

fn changes() -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let mut set =
        |file, pointer: &str, value| changes.push((file, pointer.to_owned(), Some(value)));

    // The index against the documents.
    set(INDEX, "/config_schemas/4", json!("schemas/config-v3.json"));
    set(INDEX, "/config_schemas/3", json!("schemas/config-v2.json"));
    set(INDEX, "/config_schemas/3", json!("nowhere.json"));
    set(INDEX, "/config_schemas/3", json!(3));
    set(INDEX, "/config_schemas/three", json!(CONFIG_3));
    set(INDEX, "/config_schemas", json!([]));
    set(INDEX, "/config_schemas", json!({}));
    set(INDEX, "/ui_schemas", json!({}));
    set(INDEX, "/ui_schemas/3", json!("ui/ui-v1.json"));
    set(INDEX, "/agent_versions/0/channel_types/0", json!("fax"));
    set(INDEX, "/agent_versions/0/channel_types/-", json!("mail"));
    set(INDEX, "/agent/chatapp_section", json!("dingtalk"));
    set(INDEX, "/agent/config_file", json!("config.toml"));
    set(INDEX, "/agent/security_file", json!("secrets"));
    set(INDEX, "/agent/mcp_servers_path", json!("mcp.*.servers"));
    set(INDEX, "/migrations/0/from_config", json!(7));
    set(INDEX, "/migrations/2/to_config", json!(4));
    set(
        INDEX,
        "/migrations/1",
        json!({"from_config": 1, "to_config": 2, "path": TO_2}),
    );
    set(
        INDEX,
        "/migrations/-",
        json!({"from_config": 3, "to_config": 3, "path": TO_3}),
    );
    set(INDEX, "/migrations/0/path", json!("ui/ui-v2.json"));

    // Config schemas.
    set(CONFIG_3, "", json!([]));
    set(CONFIG_3, "/config_version", json!("3"));
    set(CONFIG_3, "/config_version", json!(-3));
    set(CONFIG_3, "/channels_path", json!("channel list..x"));
    set(CONFIG_3, "/channels_path", json!(""));
    set(CONFIG_3, "/channels_path", json!("channel_list.*"));
    set(
        CONFIG_3,
        "/channels_path",
        json!("a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q"),
    );
    set(CONFIG_3, "/channels_path", json!("models"));
    set(
        CONFIG_3,
        "/channel_settings_path",
        json!("other.*.settings"),
    );
    set(
        CONFIG_3,
        "/channel_settings_path",
        json!("channel_list.chat"),
    );
    set(
        CONFIG_3,
        "/channel_settings_path",
        json!("channel_list.*.*"),
    );
    set(CONFIG_3, "/models_path", json!("channel_list.models"));
    set(CONFIG_3, "/default_model_path", json!("models.default"));
    set(
        CONFIG_3,
        "/default_model_path",
        json!(["defaults", "model"]),
    );
    set(CONFIG_3, "/security/models_path", json!("channel_list"));
    set(
        CONFIG_3,
        "/security/channel_settings_path",
        json!("channels.*.settings"),
    );
    set(CONFIG_3, "/security/keys_path", json!("keys"));
    set(CONFIG_3, "/security", json!("channel_list"));
    set(CONFIG_3, "/singleton_channels/-", json!("fax"));
    set(CONFIG_3, "/channel_types/-", json!("mail"));
    set(CONFIG_3, "/channel_types/-", json!("e mail"));
    set(CONFIG_3, "/channel_types", json!({"chat": true}));
    set(CONFIG_3, "/channel_path", json!(true));

    // Chats.
    set(INDEX, "/agent_versions/0/chat", json!(["voice"]));
    set(INDEX, "/agent_versions/0/chat", json!(true));
    set(INDEX, "/agent_versions/0/chat", json!(["stop", "stop"]));
    set(CONFIG_3, "/chat", json!(true));
    set(CONFIG_3, "/chat", json!(null));
    set(CONFIG_3, "/chat", json!({}));
    set(CONFIG_3, "/chat/protocol", json!("irc"));
    set(CONFIG_3, "/chat/port", json!(0));
    set(CONFIG_3, "/chat/port", json!(65536));
    set(CONFIG_3, "/chat/path", json!("pico/ws"));
    set(CONFIG_3, "/chat/origin", json!("*"));
    set(CONFIG_3, "/chat/channel", json!("fax"));
    set(CONFIG_3, "/chat/channel", json!("mail"));
    set(
        CONFIG_3,
        "/chat/token",
        json!("channel_list.chat.settings.token"),
    );
    set(CONFIG_3, "/chat/token", json!("web.cookies.page"));
    set(CONFIG_3, "/chat/token", json!("models.page"));
    set(CONFIG_3, "/chat/token", json!("page"));
    set(CONFIG_3, "/chat/token", json!("page.*"));
    set(CONFIG_3, "/chat/set", json!({"page.token.enabled": true}));
    set(CONFIG_3, "/chat/set", json!({"page.enabled": null}));
    set(CONFIG_3, "/chat/set", json!({"page.enabled": {"a": 1}}));
    set(CONFIG_3, "/chat/set", json!({"page.a": 1, "page.a.b": 1}));
    set(CONFIG_3, "/chat/set", json!({"defaults.workspace": "/tmp"}));
    set(CONFIG_3, "/chat/set", json!({"mcp.servers.browser": false}));
    set(
        CONFIG_3,
        "/chat/set",
        json!({"channel_list.mail.enabled": true}),
    );
    set(CONFIG_3, "/chat/set", json!({"page..enabled": true}));
    set(
        UI_3,
        "/pages/0/sections/0/fields/0/path",
        json!("page.enabled"),
    );

    // UI schemas.
    set(UI_3, "/pages", json!({}));
    set(UI_3, "/pages/0/key", json!("tools"));
    set(UI_3, "/pages/0/key", json!("channels"));
    set(UI_3, "/pages/0/label", json!(""));
    set(UI_3, "/pages/0/label", json!("two\nlines"));
    set(UI_3, "/pages/0/icon", json!("x"));
    set(UI_3, &format!("{CHAT}/key"), json!("mail"));
    set(UI_3, &format!("{CHAT}/key"), json!("fax"));
    set(UI_3, &format!("{CHAT}/key"), json!(""));
    set(UI_3, &format!("{CHAT}/fields"), json!({}));
    set(UI_3, &format!("{CHAT}/fields/0/type"), json!("text"));
    set(UI_3, &format!("{CHAT}/fields/0/type"), json!("bool"));
    set(UI_3, &format!("{CHAT}/fields/0/storage"), json!("disk"));
    set(UI_3, &format!("{CHAT}/fields/0/default"), json!("yes"));
    set(UI_3, &format!("{CHAT}/fields/0/default"), json!("false"));
    set(
        UI_3,
        &format!("{CHAT}/fields/0/path"),
        json!("channel_list.mail.enabled"),
    );
    set(UI_3, &format!("{CHAT}/fields/1/key"), json!("enabled"));
    set(UI_3, &format!("{CHAT}/fields/1/key"), json!("client id"));
    set(UI_3, &format!("{CHAT}/fields/1/label"), json!(null));
    set(
        UI_3,
        &format!("{CHAT}/fields/1/path"),
        json!("channel_list.chat"),
    );
    set(
        UI_3,
        &format!("{CHAT}/fields/1/path"),
        json!("channel_list.chatter.client_id"),
    );
    set(
        UI_3,
        &format!("{CHAT}/fields/1/path"),
        json!("channel_list.*.client_id"),
    );
    set(
        UI_3,
        &format!("{CHAT}/fields/1/path"),
        json!("channel_list.chat.type"),
    );
    set(
        UI_3,
        &format!("{CHAT}/fields/1/path"),
        json!("channel_list.chat.settings.allow_from"),
    );
    set(
        UI_3,
        &format!("{CHAT}/fields/1/path"),
        json!("channel_list.chat.settings"),
    );
    set(
        UI_3,
        &format!("{CHAT}/fields/1/path"),
        json!("mcp.servers.browser"),
    );
    set(UI_3, &format!("{CHAT}/fields/1/options"), json!(["a"]));
    set(UI_3, &format!("{CHAT}/fields/1/required"), json!("true"));
    set(UI_3, &format!("{CHAT}/fields/1/secret"), json!(true));
    set(
        UI_3,
        &format!("{CHAT}/fields/1/visible_when"),
        json!("enabled"),
    );
    set(UI_3, &format!("{CHAT}/fields/2/storage"), json!("config"));
    set(UI_3, &format!("{CHAT}/fields/2/default"), json!("hunter2"));
    set(
        UI_3,
        &format!("{CHAT}/fields/2/path"),
        json!("web.cookies.chat"),
    );
    set(UI_3, &format!("{CHAT}/fields/4/default"), json!("a,b"));
    set(UI_3, &format!("{MAIL}/fields/3/default"), json!("993"));
    set(UI_3, &format!("{MAIL}/fields/3/default"), json!(99.5));
    set(UI_3, &format!("{MAIL}/fields/4/default"), json!(true));
    set(UI_3, &format!("{MAIL}/fields/5/default"), json!("rot13"));
    set(UI_3, &format!("{MAIL}/fields/5/options"), json!([]));
    set(
        UI_3,
        &format!("{MAIL}/fields/5/options"),
        json!(["tls", "tls"]),
    );
    set(UI_3, &format!("{MAIL}/fields/5/options"), json!([1, 2]));
    set(
        UI_3,
        "/pages/0/sections/0/fields/0/path",
        json!("defaults.workspace"),
    );

    // Migrations.
    set(TO_3, "/actions", json!(null));
    set(TO_3, "/to_config", json!(2));
    set(TO_3, "/actions/0", json!("set"));
    set(TO_3, "/actions/0", json!({}));
    set(TO_3, "/actions/0/op", json!("copy"));
    set(TO_3, "/actions/0/path", json!("a..b"));
    set(TO_3, "/actions/0/path", json!("a.*"));
    set(TO_3, "/actions/0/from", json!("x"));
    set(TO_3, "/actions/0/storage", json!("both"));
    set(TO_3, "/actions/0/comment", json!("x"));
    set(TO_3, "/actions/1", json!({"op": "delete"}));
    set(TO_3, "/actions/1/value", json!(1));
    set(TO_3, "/actions/2/to", json!("channels"));
    set(TO_3, "/actions/2/to", json!("channels.inner"));
    set(TO_3, "/actions/2/mode", json!("flat"));
    set(TO_3, "/actions/2/value", json!("enabled"));
    set(
        TO_3,
        "/actions/2",
        json!({"op": "rename", "from": "a", "to": "b", "value": ["x"]}),
    );
    set(TO_3, "/actions/4/field", json!("a.b"));
    set(TO_3, "/actions/4/to", json!("transport"));
    set(TO_3, "/actions/4/to", json!("a.b"));
    set(TO_2, "/actions/1/path", json!("channels.*.mention.*"));
    set(TO_2, "/actions/1/path", json!("channels.*"));
    set(TO_2, "/actions/1/to", json!("channels.chat.x"));
    set(TO_2, "/actions/1/to", json!("channels.*.mention_only"));
    set(
        TO_2,
        "/actions/1",
        json!({"op": "move", "from": "a", "to": "b"}),
    );
    set(TO_2, "/actions/2/value", json!("local"));
    set(TO_2, "/actions/2/storage", json!("security"));

    let mut remove = |file, pointer: &str| changes.push((file, pointer.to_owned(), None));
    remove(CONFIG_3, "");
    remove(CONFIG_3, "/config_version");
    remove(CONFIG_3, "/channels_path");
    remove(CONFIG_3, "/channel_types");
    remove(CONFIG_3, "/channel_types/1");
    remove(CONFIG_3, "/chat");
    remove(CONFIG_3, "/chat/token");
    remove("schemas/config-v1.json", "/models_path");
    remove(UI_3, "/pages");
    remove(UI_3, "/pages/1/sections");
    remove(UI_3, &format!("{CHAT}/key"));
    remove(UI_3, &format!("{CHAT}/fields/1/path"));
    remove(UI_3, &format!("{CHAT}/fields/1/storage"));
    remove(UI_3, &format!("{MAIL}/fields/5/options"));
    remove(TO_3, "/actions/0/value");
    remove(TO_3, "/actions/2/from");
    remove(TO_3, "/actions/4/field");
    remove(TO_3, "/from_config");
    remove(INDEX, "/config_schemas/2");
    remove(INDEX, "/ui_schemas/1");
    changes
}

#[test]
fn every_bad_package_is_refused_with_file_and_place() {
    let mut lines = String::new();
    let changes = changes();
    assert!(changes.len() >= 60);
    let echo = TestPackage::echo();
    echo.load().unwrap();
    for (file, pointer, value) in changes {
        let (package, what) = match value {
            Some(value) => {
                let what = format!("{file}#{pointer} = {value}");
                (echo.clone().set(file, &pointer, value), what)
            }
            None => (
                echo.clone().remove(file, &pointer),
                format!("{file}#{pointer} removed"),
            ),
        };
        let refused = package.load().err();
        lines += &format!("{what}\n");
        let problems = refused.unwrap_or_else(|| panic!("{what} is taken")).0;
        assert!(!problems.is_empty());
        for problem in problems {
            assert!(!problem.file.is_empty(), "{what}: {problem:?}");
            lines += &format!(
                "    {}#{} {}\n",
                problem.file, problem.pointer, problem.message
            );
        }
    }
    insta::assert_snapshot!(lines);
}

#[test]
fn a_package_may_say_nothing_of_settings() {
    let none = TestPackage::echo()
        .set(INDEX, "/config_schemas", json!({}))
        .set(INDEX, "/ui_schemas", json!({}))
        .set(INDEX, "/migrations", json!([]));
    let adapter = none.load().unwrap();
    assert!(adapter.config_schemas.is_empty() && adapter.migrations.is_empty());
}

#[test]
fn comments_are_allowed_everywhere() {
    let mut package = TestPackage::echo();
    for (file, pointer) in [
        (CONFIG_3, "/$comment"),
        (CONFIG_3, "/security/x-note"),
        (CONFIG_3, "/chat/x-note"),
        (UI_3, "/$comment"),
        (UI_3, "/pages/0/x-note"),
        (UI_3, "/pages/1/sections/0/x-note"),
        (UI_3, "/pages/1/sections/0/fields/0/$comment"),
        (TO_3, "/$comment"),
        (TO_3, "/actions/0/$comment"),
    ] {
        package = package.set(file, pointer, json!("why"));
    }
    assert_eq!(
        package.load().unwrap().ui_schemas,
        TestPackage::echo().load().unwrap().ui_schemas
    );
}

#[test]
fn what_a_package_says_is_read_as_it_is_meant() {
    let adapter = TestPackage::echo().load().unwrap();
    let old = &adapter.config_schemas[&1];
    assert!(!old.channels.is_nested());
    let new = &adapter.config_schemas[&3];
    assert!(new.channels.is_nested());
    assert_eq!(
        new.channels.channel("chat").to_string(),
        "/channel_list/chat"
    );
    let chat = adapter.ui_schemas[&3].channel("chat").unwrap();
    let secret = chat.field("client_secret").unwrap();
    assert!(secret.is_secret() && secret.required);
    assert_eq!(
        serde_json::to_value(secret).unwrap(),
        json!({
            "key": "client_secret", "label": "Client secret", "type": "password",
            "storage": "security", "path": "channel_list.chat.settings.client_secret",
            "secret": true, "required": true,
        })
    );
    assert!(adapter.ui_schemas[&1].channel("mail").is_none());
    assert_eq!(adapter.version_mark().unwrap().to_string(), "/version");
}

#[test]
fn a_long_file_of_mistakes_gives_a_short_answer() {
    let many: Vec<Value> = (0..1000).map(|n| json!({"op": n})).collect();
    let package = TestPackage::echo().set(TO_3, "/actions", json!(many));
    let problems = package.load().unwrap_err().0;
    assert!(problems.len() <= 200, "{}", problems.len());
}

#[test]
fn a_name_twice_is_refused() {
    let twice = br#"{"a": 1, "b": [{"c": 1, "c": 2}]}"#;
    let problems = Adapter::from_files(
        package::from_memory(&[("index.json", twice)]).unwrap(),
        false,
    );
    let problems = problems.unwrap_err().to_string();
    assert!(
        problems.contains("index.json is not JSON: duplicate key at line 1"),
        "{problems}"
    );
    let once = super::strict::from_json(br#"{"c": [1, 2.5, "x", null, true, {}], "a": {"c": {}}}"#);
    assert_eq!(
        once.unwrap(),
        json!({"a": {"c": {}}, "c": [1, 2.5, "x", null, true, {}]})
    );
    for bad in ["", "{} x", "{", "nul"] {
        assert!(super::strict::from_json(bad.as_bytes()).is_err(), "{bad}");
    }
}
