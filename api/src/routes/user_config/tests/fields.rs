use serde_json::json;

use super::*;

fn of<'a>(answer: &'a Answer, section: &str, key: &str) -> &'a Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    let fields = answer.body["fields"].as_array().unwrap();
    let found = fields
        .iter()
        .find(|field| field["section"] == section && field["field"]["key"] == key);
    found.unwrap()
}

#[tokio::test]
async fn fields_tell_what_is_set_and_defaults_are_no_values() {
    let desk = open_desk().await;
    desk.set(
        "mail",
        &json!({"client_id": "me@example.com", "client_secret": "canary"}),
    )
    .await;
    let answer = desk.get("/api/agent/config-fields?section=mail").await;
    assert_eq!(answer.body["fields"].as_array().unwrap().len(), 7);
    assert_eq!(
        answer.body["sections"],
        json!([{"key": "mail", "label": "Mail"}])
    );
    let chat = desk.get("/api/agent/config-fields?section=chat").await;
    let help = chat.body["sections"][0]["help"].as_str();
    assert!(help.is_some_and(|help| help.starts_with("Register an app")));
    assert_eq!(
        *of(&answer, "mail", "client_id"),
        json!({"section": "mail", "value": "me@example.com", "set": true,
               "field": {"key": "client_id", "label": "Account", "type": "text", "storage": "config",
                         "path": "channel_list.mail.settings.client_id", "required": true}})
    );
    assert_eq!(
        *of(&answer, "mail", "client_secret"),
        json!({"section": "mail", "set": true,
               "field": {"key": "client_secret", "label": "Password", "type": "password", "storage": "security",
                         "path": "channel_list.mail.settings.client_secret", "secret": true}})
    );
    assert_eq!(
        *of(&answer, "mail", "encryption"),
        json!({"section": "mail", "set": false,
               "field": {"key": "encryption", "label": "Encryption", "type": "select", "storage": "config",
                         "path": "channel_list.mail.settings.encryption", "options": ["tls", "starttls", "none"],
                         "default": "tls"}})
    );
    assert!(!answer.text.contains("canary"));
    assert_eq!(answer.body["generation"], desk.marks().await.0);
}

#[tokio::test]
async fn without_a_section_all_that_are_allowed_are_told() {
    let desk = open_desk().await;
    for query in ["", "?section="] {
        let answer = desk.get(&format!("{FIELDS}{query}")).await;
        assert_eq!(answer.body["fields"].as_array().unwrap().len(), 5 + 7);
        assert_eq!(
            of(&answer, "chat", "client_id")["field"]["label"],
            "Client ID"
        );
        assert_eq!(
            of(&answer, "mail", "client_id")["field"]["label"],
            "Account"
        );
    }
    desk.allow(&["chat"]).await;
    let answer = desk.get(FIELDS).await;
    assert_eq!(answer.body["fields"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn other_forms_tell_other_places() {
    let desk = open_desk().await;
    let answer = desk
        .get("/api/agent/config-fields?section=chat&config_version=1")
        .await;
    assert_eq!(
        of(&answer, "chat", "mention_only")["field"]["path"],
        "channels.chat.mention_only"
    );
    let answer = desk
        .get("/api/agent/config-fields?section=mail&config_version=1")
        .await;
    assert_eq!(answer.verdict(), (404, "not_found"));
}

#[tokio::test]
async fn a_channel_that_is_not_there_and_one_that_is_not_allowed_are_told_apart() {
    let desk = desk().await;
    desk.allow(&["mail"]).await;
    for (section, verdict) in [
        ("mail", (200, "")),
        ("chat", (403, "channel_not_allowed")),
        ("Mail", (404, "not_found")),
        ("mail%20", (404, "not_found")),
        ("defaults", (404, "not_found")),
        ("models", (404, "not_found")),
        ("__proto__", (404, "not_found")),
    ] {
        let answer = desk.get(&format!("{FIELDS}?section={section}")).await;
        assert_eq!(answer.verdict(), verdict, "{section}");
        let form = [("section", section), ("values", r#"{"client_id":"a"}"#)];
        let saved = desk.post(FIELDS, &form).await;
        match verdict.0 {
            200 => assert_eq!(saved.status, 202, "{saved:?}"),
            _ => assert_eq!(saved.status.as_u16(), verdict.0, "{section}"),
        }
    }
    let long = "x".repeat(5000);
    let answer = desk.get(&format!("{FIELDS}?section={long}")).await;
    assert_eq!(answer.status, 404);
    assert!(answer.text.len() < 300, "{}", answer.text);
}

#[tokio::test]
async fn l43_a_channel_without_a_name_is_refused() {
    let desk = desk().await;
    let before = desk.marks().await;
    for body in [
        json!({"section": "", "values": {"client_id": "a"}}),
        json!({"values": {"client_id": "a"}}),
        json!({"section": null, "values": {"client_id": "a"}}),
    ] {
        let answer = desk.post_json(FIELDS, &body).await;
        assert_eq!(answer.verdict(), (400, "invalid_parameter"), "{body}");
        assert_eq!(answer.body["field"], "section");
    }
    assert_eq!(desk.marks().await, before);
}

#[tokio::test]
async fn l43_fields_of_one_name_in_two_channels_stay_apart() {
    let desk = open_desk().await;
    desk.set(
        "mail",
        &json!({"client_id": "m", "client_secret": "ms", "enabled": true}),
    )
    .await;
    desk.set("chat", &json!({"client_id": "c", "client_secret": "cs"}))
        .await;
    let stored = desk.stored().await.channels;
    assert_eq!(stored["mail"]["client_id"], "m");
    assert_eq!(stored["mail"]["client_secret"], "ms");
    assert_eq!(stored["chat"]["client_id"], "c");
    assert!(!stored["chat"].contains_key("enabled"));
    let channels = desk.get(CHANNELS).await.body;
    assert_eq!(channels["channels"][0]["enabled"], false, "chat");
    assert_eq!(channels["channels"][1]["enabled"], true, "mail");
}

#[tokio::test]
async fn values_are_merged_and_null_takes_one_away() {
    let desk = open_desk().await;
    desk.set(
        "mail",
        &json!({"client_id": "m", "client_secret": "ms", "port": "143", "interval": 5}),
    )
    .await;
    desk.set(
        "mail",
        &json!({"client_secret": "", "interval": null, "encryption": "none"}),
    )
    .await;
    assert_eq!(
        desk.stored().await.channels["mail"],
        BTreeMap::from([
            ("client_id".to_owned(), json!("m")),
            ("client_secret".to_owned(), json!("ms")),
            ("encryption".to_owned(), json!("none")),
            ("port".to_owned(), json!(143)),
        ])
    );
    desk.set("mail", &json!({"client_secret": null})).await;
    let answer = desk.get("/api/agent/config-fields?section=mail").await;
    assert_eq!(of(&answer, "mail", "client_secret")["set"], false);
}

#[tokio::test]
async fn everything_wrong_is_told_at_once_without_values_and_nothing_is_saved() {
    let desk = open_desk().await;
    let values = json!({
        "client_id": 5, "client_secret": 7, "port": "canary", "interval": [], "encryption": "canary",
        "enabled": "canary", "nonsense": "canary", "headers": "{canary",
    });
    let body = json!({"section": "mail", "values": values});
    let answer = desk.post_json(FIELDS, &body).await;
    assert_eq!(
        problems(&answer),
        [
            "client_secret: must be a text; put it in quotes",
            "enabled: must be true or false",
            "encryption: must be one of tls, starttls, none",
            "headers: must be JSON",
            "interval: must be a number",
            "nonsense: is not a field of mail",
            "port: must be a whole number",
        ]
    );
    assert!(!answer.text.contains("canary"));
    assert!(
        answer.body["error"]
            .as_str()
            .unwrap()
            .ends_with("; and 4 more")
    );
    assert!(desk.stored().await.channels.is_empty());
    let many: serde_json::Map<String, Value> =
        (0..50_000).map(|at| (format!("k{at}"), json!(1))).collect();
    let answer = desk
        .post_json(FIELDS, &json!({"section": "mail", "values": many}))
        .await;
    assert_eq!(problems(&answer).len(), 50);
    assert_eq!(answer.body["problem_count"], 50_001);
}

#[tokio::test]
async fn values_that_are_no_object_are_refused() {
    let desk = open_desk().await;
    let deep = format!("{}{}", r#"{"a":"#.repeat(500), "}".repeat(500));
    for values in [
        "", "[]", "1", "null", "\"a\"", "{", "{} {}", "{a: 1}", &deep,
    ] {
        let form = [("section", "mail"), ("values", values)];
        let answer = desk.post(FIELDS, &form).await;
        assert_eq!(answer.verdict(), (400, "invalid_parameter"), "{values:.40}");
        assert_eq!(answer.body["field"], "values");
    }
    for values in [
        json!([1, 2]),
        json!([[]]),
        json!(5),
        json!(true),
        json!(null),
    ] {
        let body = json!({"section": "mail", "values": values});
        let answer = desk.post_json(FIELDS, &body).await;
        assert_eq!(answer.verdict(), (400, "invalid_parameter"), "{values}");
        assert_eq!(answer.body["field"], "values");
    }
    let missing = desk.post(FIELDS, &[("section", "mail")]).await;
    assert_eq!(missing.body["field"], "values");
    for version in ["0", "9", "x"] {
        let form = [
            ("section", "mail"),
            ("values", "{}"),
            ("config_version", version),
        ];
        let answer = desk.post(FIELDS, &form).await;
        assert_eq!(answer.body["field"], "config_version", "{version}");
    }
}

#[tokio::test]
async fn a_form_and_a_json_body_say_the_same() {
    let desk = open_desk().await;
    let text = r#"{"client_id":"007","port":25,"headers":{"X-A":"1"}}"#;
    let form = [("section", "mail"), ("values", text)];
    assert_eq!(desk.post(FIELDS, &form).await.status, 202);
    let from_form = desk.stored().await.channels;
    let values: Value = serde_json::from_str(text).unwrap();
    desk.set("mail", &values).await;
    assert!(desk.stored().await.channels == from_form);
    assert_eq!(from_form["mail"]["client_id"], "007");
    assert_eq!(from_form["mail"]["headers"], json!({"X-A": "1"}));
}

#[tokio::test]
async fn a_number_for_a_text_is_saved_with_a_warning() {
    let desk = open_desk().await;
    let values = json!({"client_id": "a", "client_secret": "b", "allow_from": [123456789]});
    let body = desk.set("chat", &values).await;
    let warnings = body["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{body}");
    let warning = warnings[0].as_str().unwrap();
    assert!(warning.starts_with("allow_from is a text"), "{warning}");
    let stored = desk.stored().await.channels;
    assert_eq!(stored["chat"]["allow_from"], json!(["123456789"]));
    let body = desk.set("chat", &json!({"client_id": "b"})).await;
    assert_eq!(body["warnings"], json!([]));
}
