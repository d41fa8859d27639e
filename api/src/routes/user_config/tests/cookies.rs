use serde_json::json;

use super::super::cookies::{MOST_BYTES, MOST_DOMAINS, MOST_OF_DOMAIN};
use super::*;

async fn domains(desk: &Desk) -> Vec<String> {
    let answer = desk.get(DOMAINS).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let cookies = answer.body["cookies"].as_array().unwrap().iter();
    cookies
        .map(|cookie| cookie["domain"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn cookies_go_in_by_domain_and_only_domains_come_out() {
    let desk = desk().await;
    let before = desk.marks().await;
    let form = [("domain", ".Example.com"), ("cookies", "sid=canary; b=2")];
    let answer = desk.post(COOKIES, &form).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(answer.body["object"], "agent-config/alice");
    let after = desk.marks().await;
    assert_eq!(after.0, before.0 + 1, "the files follow");
    assert_eq!(
        (after.1, after.2),
        (before.1, before.2),
        "the container does not"
    );
    let list = desk.get(DOMAINS).await;
    assert_eq!(
        list.body["cookies"],
        json!([{"domain": ".example.com", "updated_at": "2026-05-11T11:46:40Z"}])
    );
    assert_eq!(
        (&list.body["total"], &list.body["generation"]),
        (&json!(1), &json!(after.0))
    );
    assert!(!list.text.contains("canary") && !answer.text.contains("canary"));
    assert_eq!(
        desk.stored().await.cookies[".example.com"],
        "sid=canary; b=2"
    );
}

#[tokio::test]
async fn the_domain_and_its_subdomains_are_two_and_a_second_post_replaces() {
    let desk = desk().await;
    for (domain, cookies) in [
        ("example.com", "a=1"),
        (".example.com", "a=2"),
        ("EXAMPLE.com", "a=3"),
    ] {
        let body = json!({"domain": domain, "cookies": cookies});
        assert_eq!(desk.post_json(COOKIES, &body).await.status, 202);
    }
    assert_eq!(domains(&desk).await, [".example.com", "example.com"]);
    let stored = desk.stored().await.cookies;
    assert_eq!(
        (&*stored["example.com"], &*stored[".example.com"]),
        ("a=3", "a=2")
    );
    let found = desk.get("/api/user/cookies?search=.EXAMPLE").await;
    assert_eq!(found.body["total"], 1, "{found:?}");
}

#[tokio::test]
async fn clients_post_them_as_multipart() {
    let desk = desk().await;
    let mut body = String::new();
    for (name, value) in [
        ("domain", "example.com"),
        ("cookies", "a=1; b=2"),
        ("wait", "0"),
    ] {
        body.push_str(&format!(
            "--XyZ\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        ));
    }
    body.push_str("--XyZ--\r\n");
    let ask = desk
        .yard
        .post_raw(COOKIES, "multipart/form-data; boundary=XyZ", &body);
    let answer = ask.with("alice", &desk.alice).send().await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(desk.stored().await.cookies["example.com"], "a=1; b=2");
}

#[tokio::test]
async fn hosts_of_the_service_are_refused() {
    let desk = desk().await;
    let config = r#"{"web": {"public_url": "https://yard.example:8443"}}"#;
    let ask = desk.yard.post("/api/config", &[("config", config)]);
    let answer = ask.with("root", &desk.root).send().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    for domain in ["yard.example", ".Yard.example"] {
        let form = [("domain", domain), ("cookies", "a=1")];
        let answer = desk.post(COOKIES, &form).await;
        assert_eq!(answer.verdict(), (400, "invalid_parameter"), "{domain}");
        let message = answer.body["error"].as_str().unwrap().to_lowercase();
        assert!(message.contains("yard.example"), "{message}");
    }
    let body = json!({"domain": "seen.example", "cookies": "a=1"});
    let ask = desk
        .yard
        .post_json(COOKIES, &body)
        .header("host", "seen.example:80");
    let answer = ask.with("alice", &desk.alice).send().await;
    assert_eq!(answer.body["field"], "domain", "{answer:?}");
    assert!(domains(&desk).await.is_empty());
}

#[tokio::test]
async fn a_session_of_the_service_is_dropped_with_a_warning() {
    let desk = desk().await;
    let cookies = format!("a=1; {}; b=2", desk.alice);
    let form = [("domain", ".example.com"), ("cookies", &*cookies)];
    let answer = desk.post(COOKIES, &form).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let warnings = answer.body["warnings"].as_array().unwrap();
    assert!(warnings[0].as_str().unwrap().contains("\"session\""));
    assert_eq!(desk.stored().await.cookies[".example.com"], "a=1; b=2");
    let alone = [("domain", ".example.com"), ("cookies", &*desk.alice)];
    let answer = desk.post(COOKIES, &alone).await;
    assert_eq!(answer.body["field"], "cookies", "{answer:?}");
    let signature = desk.alice.rsplit(':').next().unwrap();
    assert!(!answer.text.contains(signature));
}

#[tokio::test]
async fn deleting_is_told_apart_from_there_being_none() {
    let desk = desk().await;
    desk.post(COOKIES, &[("domain", "a.example"), ("cookies", "a=1")])
        .await;
    let before = desk.marks().await;
    let none = desk.post(DELETE, &[("domain", "b.example")]).await;
    assert_eq!(none.verdict(), (404, "not_found"));
    assert_eq!(desk.marks().await, before);
    let done = desk.post(DELETE, &[("domain", "A.example")]).await;
    assert_eq!(done.status, 202, "{done:?}");
    assert_eq!(desk.marks().await.0, before.0 + 1);
    assert!(domains(&desk).await.is_empty());
    let again = desk.post(DELETE, &[("domain", "a.example")]).await;
    assert_eq!(again.verdict(), (404, "not_found"));
}

#[tokio::test]
async fn bad_fields_are_named_and_not_repeated() {
    let desk = desk().await;
    let long = format!("a={}", "canary".repeat(MOST_OF_DOMAIN / 6 + 1));
    for (domain, cookies, field) in [
        ("", "a=1", "domain"),
        ("canary canary", "a=1", "domain"),
        ("https://canary.example", "a=1", "domain"),
        ("canary.example:80", "a=1", "domain"),
        ("cänary.example", "a=1", "domain"),
        ("example.com", "", "cookies"),
        ("example.com", "  ", "cookies"),
        ("example.com", "a=canary\r\nb=2", "cookies"),
        ("example.com", "a=canary\u{7f}", "cookies"),
        ("example.com", "a=canary\0", "cookies"),
        ("example.com", &long, "cookies"),
    ] {
        let form = [("domain", domain), ("cookies", cookies)];
        let answer = desk.post(COOKIES, &form).await;
        assert_eq!(answer.verdict(), (400, "invalid_parameter"), "{domain}");
        assert_eq!(answer.body["field"], field, "{domain}");
        assert!(!answer.text.contains("nary"), "{}", answer.text);
    }
    for (form, field) in [
        (&[("domain", "a.example")][..], "cookies"),
        (&[("cookies", "a=1")], "domain"),
    ] {
        assert_eq!(desk.post(COOKIES, form).await.body["field"], field);
    }
    let list = json!({"domain": "a.example", "cookies": ["a=1", "b=2"]});
    assert_eq!(
        desk.post_json(COOKIES, &list).await.body["field"],
        "cookies"
    );
    let answer = desk.post(DELETE, &[("domain", "a b")]).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.body["field"]),
        (400, &json!("domain"))
    );
    assert!(domains(&desk).await.is_empty());
}

#[tokio::test]
async fn there_is_an_end_to_how_many_and_how_large() {
    let desk = desk().await;
    let uid = desk.uid("alice").await;
    let key = &desk.yard.world.deps.master_key;
    let mut tx = desk.yard.tx().await;
    for at in 0..MOST_DOMAINS {
        let domain = format!("d{at}.example");
        let value = "a=1".into();
        agent_config::set_cookies(&mut tx, key, &uid, &domain, &value, crate::testing::NOW)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
    let before = desk.marks().await;
    let one_more = [("domain", "more.example"), ("cookies", "a=1")];
    let answer = desk.post(COOKIES, &one_more).await;
    assert_eq!(answer.verdict(), (409, "too_many_cookies"));
    assert_eq!(desk.marks().await, before);
    let present = [("domain", "d7.example"), ("cookies", "a=2")];
    assert_eq!(desk.post(COOKIES, &present).await.status, 202);
    assert_eq!(
        desk.post(DELETE, &[("domain", "d8.example")]).await.status,
        202
    );
    assert_eq!(desk.post(COOKIES, &one_more).await.status, 202);

    let large = "x".repeat(MOST_OF_DOMAIN);
    let mut stored = 0;
    let refused = loop {
        let domain = format!("d{}.example", stored + 10);
        let answer = desk
            .post(COOKIES, &[("domain", &*domain), ("cookies", &*large)])
            .await;
        match answer.status.as_u16() {
            202 => stored += 1,
            _ => break answer,
        }
    };
    assert_eq!(refused.verdict(), (409, "too_many_cookies"));
    assert_eq!(
        stored,
        MOST_BYTES / MOST_OF_DOMAIN - 1,
        "beside the small ones"
    );
    let next = format!("d{}.example", stored + 10);
    assert_eq!(desk.stored().await.cookies[&next], "a=1", "as before");
}

#[tokio::test]
async fn a_stale_writer_of_cookies_is_told() {
    let desk = desk().await;
    let present = desk.marks().await.0;
    let set = async |expected: i64| {
        let expected = expected.to_string();
        let form = [
            ("domain", "a.example"),
            ("cookies", "a=1"),
            ("if_generation", &*expected),
        ];
        desk.post(COOKIES, &form).await
    };
    let stale = set(present + 1).await;
    assert_eq!(stale.verdict(), (412, "stale_generation"));
    assert_eq!(stale.body["generation"], present);
    assert!(domains(&desk).await.is_empty());
    assert_eq!(set(present).await.status, 202);
    let stale = present.to_string();
    let form = [("domain", "a.example"), ("if_generation", &*stale)];
    assert_eq!(
        desk.post(DELETE, &form).await.verdict(),
        (412, "stale_generation")
    );
    assert_eq!(domains(&desk).await, ["a.example"]);
}
