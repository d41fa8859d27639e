use serde_json::json;

use super::*;

#[tokio::test]
async fn the_secret_goes_in_and_never_comes_out() {
    let desk = open_desk().await;
    let answer = desk.get(CHATAPP).await;
    assert_eq!(
        answer.body,
        json!({"success": true, "message": "the chat-app channel", "client_id": "", "client_secret": "",
               "client_secret_set": false, "generation": desk.marks().await.0})
    );
    let form = [("client_id", "ding1"), ("client_secret", "canary")];
    let saved = desk.post(CHATAPP, &form).await;
    assert_eq!(saved.status, 202, "{saved:?}");
    assert_eq!(saved.body["object"], "agent-config/alice");
    assert_eq!(saved.body["generation"], desk.marks().await.0);
    let answer = desk.get(CHATAPP).await;
    assert_eq!(answer.body["client_id"], "ding1");
    assert_eq!(answer.body["client_secret"], "");
    assert_eq!(answer.body["client_secret_set"], true);
    assert!(!answer.text.contains("canary") && !saved.text.contains("canary"));
    assert_eq!(
        desk.stored().await.channels["chat"],
        BTreeMap::from([
            ("client_id".to_owned(), json!("ding1")),
            ("client_secret".to_owned(), json!("canary")),
            ("enabled".to_owned(), json!(true)),
        ])
    );
}

#[tokio::test]
async fn an_empty_secret_is_unchanged_and_the_rest_of_the_channel_stays() {
    let desk = open_desk().await;
    let values =
        json!({"client_id": "a", "client_secret": "canary", "allow_from": ["x"], "enabled": false});
    desk.set("chat", &values).await;
    for form in [
        &[("client_id", "b"), ("client_secret", "")][..],
        &[("client_id", "b")],
    ] {
        assert_eq!(desk.post(CHATAPP, form).await.status, 202);
        let chat = &desk.stored().await.channels["chat"];
        assert_eq!(chat["client_secret"], "canary");
        assert_eq!(
            (&chat["client_id"], &chat["enabled"]),
            (&json!("b"), &json!(true))
        );
        assert_eq!(chat["allow_from"], json!(["x"]));
    }
}

#[tokio::test]
async fn bad_fields_are_named() {
    let desk = open_desk().await;
    let answer = desk.post(CHATAPP, &[]).await;
    assert_eq!(answer.verdict(), (400, "invalid_parameter"));
    assert_eq!(answer.body["field"], "client_id");
    for (form, expected) in [
        (
            &[("client_id", "")][..],
            &["client_id: is required", "client_secret: is required"][..],
        ),
        (&[("client_id", "a")], &["client_secret: is required"]),
        (
            &[
                ("client_id", &*"x".repeat((64 << 10) + 1)),
                ("client_secret", "s"),
            ],
            &["client_id: must be at most 64 KiB long"],
        ),
    ] {
        assert_eq!(problems(&desk.post(CHATAPP, form).await), expected);
    }
    let twice = [("client_id", "a"), ("client_id", "b")];
    assert_eq!(desk.post(CHATAPP, &twice).await.body["field"], "client_id");
    assert!(desk.stored().await.channels.is_empty());
}

#[tokio::test]
async fn what_no_administrator_allows_cannot_be_set_up_under_its_other_name() {
    let desk = desk().await;
    desk.allow(&["mail"]).await;
    let before = desk.marks().await;
    let form = [("client_id", "a"), ("client_secret", "b")];
    let answer = desk.post(CHATAPP, &form).await;
    assert_eq!(answer.verdict(), (403, "channel_not_allowed"));
    assert_eq!(
        desk.get(CHATAPP).await.verdict(),
        (403, "channel_not_allowed")
    );
    assert_eq!(desk.marks().await, before, "nothing was bumped");
}

#[tokio::test]
async fn l21_what_looks_like_a_number_stays_a_text() {
    let desk = open_desk().await;
    for secret in ["007", "1e5", "123456", "true", "null", "0x1f"] {
        let form = [("client_id", secret), ("client_secret", secret)];
        assert_eq!(desk.post(CHATAPP, &form).await.status, 202);
        let chat = &desk.stored().await.channels["chat"];
        assert_eq!(chat["client_secret"], secret);
        assert_eq!(chat["client_id"], secret);
    }
}
