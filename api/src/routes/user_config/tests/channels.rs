use schema::adapter::Adapter;
use schema::adapter::store::{self, Source};
use schema::config::history::SavedBy;
use serde_json::json;

use super::super::forms::Forms;
use super::*;
use crate::testing::NOW;

fn keys(answer: &Answer) -> Vec<&str> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let channels = answer.body["channels"].as_array().unwrap().iter();
    channels.map(|c| c["key"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn only_what_an_administrator_allows_is_listed() {
    let desk = desk().await;
    desk.allow(&[]).await;
    assert!(keys(&desk.get(CHANNELS).await).is_empty());
    desk.allow(&["mail"]).await;
    let answer = desk.get(CHANNELS).await;
    assert_eq!(
        answer.body["channels"],
        json!([{"key": "mail", "label": "Mail", "allowed": true, "enabled": false, "configured": false}])
    );
    desk.allow(&["chat", "mail"]).await;
    assert_eq!(keys(&desk.get(CHANNELS).await), ["chat", "mail"]);
}

#[tokio::test]
async fn the_chat_app_can_be_set_up_on_a_fresh_install_unless_an_administrator_says_otherwise() {
    let desk = desk().await;
    assert_eq!(keys(&desk.get(CHANNELS).await), ["chat"]);
    let form = [("client_id", "a"), ("client_secret", "b")];
    assert_eq!(desk.post(CHATAPP, &form).await.status, 202);
    let mail = json!({"section": "mail", "values": {"client_id": "a"}});
    let refused = desk.post_json(FIELDS, &mail).await;
    assert_eq!(refused.verdict(), (403, "channel_not_allowed"));
    for (said, allowed) in [
        (
            json!({"channel_list": {"mail": {"enabled": true}}}),
            &["chat", "mail"][..],
        ),
        (
            json!({"channel_list": {"chat": {"settings": {}}}}),
            &["chat"],
        ),
        (json!({"channel_list": {"chat": {"enabled": false}}}), &[]),
        (json!({"channel_list": {"chat": {"enabled": "no"}}}), &[]),
        (json!({}), &["chat"]),
    ] {
        desk.configure(&json!({"agent": said})).await;
        assert_eq!(keys(&desk.get(CHANNELS).await), allowed, "{said}");
    }
}

#[tokio::test]
async fn a_channel_is_configured_when_nothing_that_is_required_is_missing() {
    let desk = open_desk().await;
    let told = async || {
        let body = desk.get(CHANNELS).await.body;
        let chat = &body["channels"][0];
        (chat["enabled"].clone(), chat["configured"].clone())
    };
    assert_eq!(told().await, (json!(false), json!(false)));
    desk.set("chat", &json!({"client_id": "a", "client_secret": "b"}))
        .await;
    assert_eq!(told().await, (json!(false), json!(true)));
    desk.set("chat", &json!({"enabled": true})).await;
    assert_eq!(told().await, (json!(true), json!(true)));
}

#[tokio::test]
async fn l39_any_image_tag_has_channels_and_so_has_who_never_ran() {
    let desk = open_desk().await;
    // Nothing was ever observed of alice's container, whose tag `1` is no version.
    let object = desk.object(Kind::Container).await;
    assert_eq!(object.status.observed_generation.0, 0);
    assert_eq!(keys(&desk.get(CHANNELS).await), ["chat", "mail"]);
    let adapter = desk.yard.world.deps.adapter.current().await.unwrap();
    let version = |image: Option<&str>| {
        let permitted = json!({"channel_list": {"chat": {"enabled": false}, "mail": {"enabled": true}}, "channels": {"chat": {"enabled": true}}});
        let stored = BTreeMap::from([("agent".to_owned(), permitted)]);
        let forms = Forms::of(adapter.clone(), image, stored, None).unwrap();
        let channels = forms.channels().unwrap();
        match &*channels[0].key {
            "mail" => "newest",
            _ => "older",
        }
    };
    let digest = format!("echo@sha256:{}", "a".repeat(64));
    for image in [
        "echo",
        "echo:latest",
        "echo:99.0.0",
        "echo:v2.0.0-alpine",
        "registry.example:5000/echo",
        &digest,
        "no image at all",
    ] {
        assert_eq!(version(Some(image)), "newest", "{image}");
    }
    assert_eq!(version(None), "newest");
    // What is allowed is written for version 3, where channels are elsewhere.
    for image in ["echo:v1.1.0", "echo:0.0.1"] {
        assert_eq!(version(Some(image)), "older", "{image}");
    }
}

#[tokio::test]
async fn channel_of_the_chat_is_not_offered() {
    let desk = desk().await;
    let picoclaw = Adapter::builtin("picoclaw").unwrap().unwrap();
    let by = SavedBy {
        actor: "root",
        at: NOW,
    };
    let mut tx = desk.yard.world.db.begin().await.unwrap();
    let activated = store::activate(&mut tx, &picoclaw, Source::Upload, by).await;
    assert!(activated.unwrap().changed);
    tx.commit().await.unwrap();
    let enabled = json!({"enabled": true});
    let agent = json!({"channel_list": {"pico": enabled, "telegram": enabled}});
    desk.configure(&json!({"agent": agent, "chat.enabled": false}))
        .await;
    assert!(keys(&desk.get(CHANNELS).await).contains(&"pico"));
    desk.set("pico", &json!({"token": "my-own"})).await;
    let admin = "/api/admin/agent/channels";
    let shown = async || {
        let answer = desk.yard.get(admin).with("root", &desk.root).send().await;
        let channels = answer.body["channels"].as_array().unwrap().clone();
        let pico = channels.iter().find(|channel| channel["key"] == "pico");
        let pico = pico.unwrap();
        (pico["allowed"].clone(), pico["of_chat"].clone())
    };
    assert_eq!(shown().await, (json!(true), json!(false)));

    desk.configure(&json!({"chat.enabled": true})).await;
    assert_eq!(shown().await, (json!(false), json!(true)));
    let listed = desk.get(CHANNELS).await;
    assert!(!keys(&listed).contains(&"pico") && keys(&listed).contains(&"telegram"));
    let body = json!({"section": "pico", "values": {"token": "other"}});
    let refused = desk.post_json(FIELDS, &body).await;
    assert_eq!(refused.verdict(), (403, "channel_not_allowed"));
    assert_eq!(
        refused.body["error"],
        "the channel pico is the one that the page talks to your agent through, so it cannot be set up; what you have \
         set for it is kept"
    );
    let read = desk.get(&format!("{FIELDS}?section=pico")).await;
    assert_eq!(read.verdict(), (403, "channel_not_allowed"));
    let kept = desk.stored().await.channels;
    assert_eq!(kept["pico"]["token"], json!("my-own"));
}

#[tokio::test]
async fn other_forms_allow_nothing_more() {
    let desk = desk().await;
    // As version 2 reads it, mail is allowed; alice's agent reads version 3.
    let agent = json!({"channels": {"mail": {"enabled": true}}, "channel_list": {"chat": {"enabled": true}}});
    desk.configure(&json!({"agent": agent})).await;
    for query in [
        "",
        "?config_version=",
        "?config_version=3",
        "?config_version=2",
        "?config_version=1",
    ] {
        let answer = desk.get(&format!("{CHANNELS}{query}")).await;
        assert_eq!(keys(&answer), ["chat"], "{query}");
    }
    let values = json!({"client_id": "a"});
    let body = json!({"section": "mail", "values": values, "config_version": 2});
    let refused = desk.post_json(FIELDS, &body).await;
    assert_eq!(refused.verdict(), (403, "channel_not_allowed"));
    assert!(desk.stored().await.channels.is_empty());
}

#[tokio::test]
async fn a_configuration_version_without_forms_is_refused() {
    let desk = open_desk().await;
    for version in ["0", "4", "-1", "1.0", "three", "4294967296", "%00"] {
        for path in [CHANNELS, FIELDS] {
            let answer = desk.get(&format!("{path}?config_version={version}")).await;
            assert_eq!(answer.verdict(), (400, "invalid_parameter"), "{version}");
            assert_eq!(answer.body["field"], "config_version");
        }
    }
    let answer = desk.get("/api/agent/channels?config_version=4").await;
    assert_eq!(answer.body["error"], "config_version is one of 1, 2, 3");
}

#[tokio::test]
async fn global_settings_that_cannot_be_used_are_said_to_be_so() {
    let desk = open_desk().await;
    let adapter = desk.yard.world.deps.adapter.current().await.unwrap();
    // There is no way back from version 3 to what this image reads.
    let agent = json!({"version": 3, "channels": {"chat": {"enabled": true}}});
    let stored = BTreeMap::from([("agent".to_owned(), agent)]);
    let forms = Forms::of(adapter, Some("echo:1.0.0"), stored, None).unwrap();
    for error in [
        forms.channels().unwrap_err(),
        forms.channel("chat").unwrap_err(),
    ] {
        assert_eq!(error.status(), 422);
        assert_eq!(error.code(), "invalid_global_config");
    }
}

#[tokio::test]
async fn an_administrator_sees_names_of_channels_and_no_values() {
    let desk = open_desk().await;
    let shown = async |name: &str| {
        let path = format!("/api/admin/users/channels?username={name}");
        desk.yard.get(&path).with("root", &desk.root).send().await
    };
    assert_eq!(shown("alice").await.body["channels"], json!([]));
    let form = [("client_id", "ding1"), ("client_secret", "hush")];
    assert_eq!(desk.post(CHATAPP, &form).await.status, 202);
    let answer = shown("Alice").await;
    let chat = |known: bool| json!([{"key": "chat", "label": if known { "Chat" } else { "chat" }, "known": known, "enabled": known, "configured": known}]);
    assert_eq!(answer.body["channels"], chat(true));
    assert!(!answer.text.contains("hush") && !answer.text.contains("ding1"));
    desk.allow(&[]).await;
    assert_eq!(shown("alice").await.body["channels"], chat(false));
    assert_eq!(shown("nobody").await.verdict(), (404, "not_found"));
}
