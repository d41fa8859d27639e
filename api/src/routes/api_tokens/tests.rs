//! API tokens, against a real database.

use std::time::Duration;

use schema::audit;
use serde_json::json;
use tokio::time::timeout;

use crate::auth::api_token;
use crate::auth::login_limit::{ATTEMPTS, Sender};
use crate::dispatch::Actor;
use crate::routes::yard::{Answer, Ask, Yard, from_address, yard};

const LIST: &str = "/api/admin/api-tokens";
const USERS: &str = "/api/admin/users";
const GROUP: &str = "/api/admin/groups/create";

async fn create(yard: &Yard, root: &str, name: &str, role: &str) -> Answer {
    let form = [("name", name), ("role", role), ("expires_in", "1d")];
    let ask = yard.post("/api/admin/api-tokens/create", &form);
    ask.with("root", root).send().await
}

async fn token(yard: &Yard, root: &str, name: &str, role: &str) -> String {
    let created = create(yard, root, name, role).await;
    assert_eq!(created.status, 200, "{created:?}");
    created.body["token"].as_str().unwrap().to_owned()
}

async fn revoke(yard: &Yard, root: &str, name: &str) -> Answer {
    let ask = yard.post("/api/admin/api-tokens/revoke", &[("name", name)]);
    ask.with("root", root).send().await
}

fn bearing<'a>(ask: Ask<'a>, token: &str) -> Ask<'a> {
    ask.header("authorization", &format!("Bearer {token}"))
}

#[tokio::test]
async fn token_is_returned_once_and_acts_by_its_role() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    let reader = token(&yard, &root, "reader", "read").await;
    let admin = token(&yard, &root, "ci", "admin").await;
    assert!(reader.starts_with("agy_api_"));

    let listed = yard.get(LIST).with("root", &root).send().await;
    assert!(!listed.text.contains(&reader[8..]), "{listed:?}");
    let first = &listed.body["tokens"][0];
    assert_eq!(
        (&first["name"], &first["role"]),
        (&json!("ci"), &json!("admin"))
    );
    assert_eq!(first["created_by"], "root");
    assert_eq!(first["expires_at"], "2026-05-12T11:46:40Z");
    assert_eq!(first["last_used_at"], json!(null));

    for token in [&reader, &admin] {
        let users = bearing(yard.get(USERS), token).send().await;
        assert_eq!(users.status, 200, "{users:?}");
        assert!(
            !users.headers.contains_key("set-cookie"),
            "no session is made"
        );
    }
    let refused = bearing(yard.post(GROUP, &[("name", "team")]), &reader)
        .send()
        .await;
    assert_eq!(refused.verdict(), (403, "wrong_role"));
    assert!(refused.text.contains("role admin"), "{refused:?}");
    let created = bearing(yard.post(GROUP, &[("name", "team")]), &admin)
        .send()
        .await;
    assert_eq!(created.status, 200, "{created:?}");
    let mut connection = yard.world.db.read().await.unwrap();
    let trail = audit::following(&mut connection, 0, 100).await.unwrap();
    let last = &trail.last().unwrap().entry;
    assert_eq!((&*last.actor, &*last.object), ("token:ci", "group/team"));
}

#[tokio::test]
async fn tokens_administer_no_tokens_and_are_no_mcp_tokens() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    let admin = token(&yard, &root, "ci", "admin").await;
    for path in [LIST, "/api/admin/audit/export"] {
        let answer = bearing(yard.get(path), &admin).send().await;
        assert_eq!(answer.verdict(), (403, "wrong_role"), "{path}");
        assert!(
            answer.text.contains("no API token may do this"),
            "{answer:?}"
        );
    }
    let mcp = bearing(yard.get("/api/mcp/sse/browser"), &admin)
        .send()
        .await;
    assert_eq!(mcp.verdict(), (401, "token_invalid"));
    let user = bearing(yard.get("/api/user/info"), &admin).send().await;
    assert_eq!(user.verdict(), (401, "not_signed_in"));
    let mcp = bearing(yard.get(USERS), "alice:0011").send().await;
    assert_eq!(mcp.verdict(), (401, "not_signed_in"));
}

#[tokio::test]
async fn change_with_a_token_and_foreign_origin_is_refused() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    let admin = token(&yard, &root, "ci", "admin").await;
    for (origin, status) in [
        ("https://evil.example", 403),
        ("null", 403),
        ("chrome-extension://abc", 200),
    ] {
        let change = bearing(yard.post(GROUP, &[("name", "team")]), &admin);
        let change = change.header("origin", origin).send().await;
        assert_eq!(change.status, status, "{origin}: {change:?}");
    }
}

#[tokio::test]
async fn token_beside_a_session_cookie_is_ignored() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    let admin = token(&yard, &root, "ci", "admin").await;
    for cookie in ["session=junk", &yard.sign_in("alice").await] {
        let ask = bearing(yard.get(USERS), &admin).header("cookie", cookie);
        let answer = ask.send().await;
        assert!([401, 403].contains(&answer.status.as_u16()), "{answer:?}");
    }
    // The session acts, and needs its CSRF token.
    let ask = bearing(yard.post(GROUP, &[("name", "team")]), &admin).header("cookie", &root);
    assert_eq!(ask.send().await.verdict(), (403, "csrf_invalid"));
}

#[tokio::test]
async fn revoked_and_expired_tokens_are_refused_with_a_remedy() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    let first = token(&yard, &root, "ci", "read").await;
    let taken = create(&yard, &root, "ci", "read").await;
    assert_eq!(taken.verdict(), (409, "already_exists"));
    assert_eq!(revoke(&yard, &root, "ci").await.status, 200);
    assert_eq!(
        revoke(&yard, &root, "ci").await.verdict(),
        (404, "not_found")
    );
    let second = token(&yard, &root, "ci", "read").await;
    let answer = bearing(yard.get(USERS), &first).send().await;
    assert_eq!(answer.verdict(), (401, "api_token_invalid"));
    assert_eq!(answer.headers["www-authenticate"], "Bearer");
    assert!(
        answer.text.contains("agentyard api-token create"),
        "{answer:?}"
    );
    assert_eq!(bearing(yard.get(USERS), &second).send().await.status, 200);

    yard.world.clock.advance(Duration::from_secs(24 * 3600 + 1));
    let answer = bearing(yard.get(USERS), &second).send().await;
    assert_eq!(answer.verdict(), (401, "api_token_invalid"));
    assert!(
        answer.text.contains("ci expired at 2026-05-12"),
        "{answer:?}"
    );
    assert!(!answer.text.contains(&second[8..]));
}

#[tokio::test]
async fn forms_of_new_tokens_are_checked() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    for (name, role, expires_in) in [
        ("", "read", "1d"),
        ("A", "read", "1d"),
        ("a", "root", "1d"),
        ("a", "read", "1s"),
        ("a", "read", "367d"),
        ("a", "read", "soon"),
        ("a", "read", ""),
    ] {
        let form = [("name", name), ("role", role), ("expires_in", expires_in)];
        let ask = yard.post("/api/admin/api-tokens/create", &form);
        let answer = ask.with("root", &root).send().await;
        assert_eq!(answer.verdict(), (400, "invalid_parameter"), "{form:?}");
    }
}

#[tokio::test]
async fn l19_wrong_tokens_of_an_address_are_limited_and_valid_ones_are_not() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    let good = token(&yard, &root, "ci", "read").await;
    let get = async |token: &str| {
        let ask = bearing(yard.get(USERS), token).context(from_address("192.0.2.9:1000"));
        ask.send().await
    };
    for _ in 0..ATTEMPTS {
        let answer = get("agy_api_00").await;
        assert_eq!(answer.verdict(), (401, "api_token_invalid"));
    }
    let answer = get("agy_api_00").await;
    assert_eq!(answer.verdict(), (429, "too_many_attempts"));
    assert!(answer.headers.contains_key("retry-after"));
    assert_eq!(get(&good).await.status, 200);
    // Sign-ins have their own limit.
    let ask = yard.login("root", crate::routes::yard::PASSWORD);
    let signed_in = ask.context(from_address("192.0.2.9:1000")).send().await;
    assert_eq!(signed_in.status, 200);
}

#[tokio::test]
async fn last_use_is_recorded_once_a_minute() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    let good = token(&yard, &root, "ci", "read").await;
    for _ in 0..3 {
        assert_eq!(bearing(yard.get(USERS), &good).send().await.status, 200);
        yard.world.clock.advance(Duration::from_secs(1));
    }
    let last_used = async || {
        let listed = yard.get(LIST).with("root", &root).send().await;
        listed.body["tokens"][0]["last_used_at"].clone()
    };
    let recorded = async {
        while last_used().await.is_null() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(10), recorded).await.unwrap();
    let used = last_used().await;
    let used = used.as_str().unwrap();
    assert!(used.starts_with("2026-05-11T11:46:4"), "{used}");
}

#[tokio::test]
async fn what_a_token_holds_open_ends_with_it() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    let deps = &yard.world.deps;
    let mut actors = Vec::new();
    for name in ["revoked", "other"] {
        let token = token(&yard, &root, name, "read").await;
        let mut headers = http::HeaderMap::new();
        let value = format!("Bearer {token}").parse().unwrap();
        headers.insert("authorization", value);
        let sender = Sender {
            address: "192.0.2.9".parse().unwrap(),
            behind_unknown_proxy: false,
        };
        let bearer = api_token::bearer(deps, &headers, sender).await.unwrap();
        actors.push(Actor::ApiToken(bearer.unwrap()));
    }
    let lives = async || [actors[0].lives(deps).await, actors[1].lives(deps).await];
    assert_eq!(lives().await, [true, true]);
    assert_eq!(revoke(&yard, &root, "revoked").await.status, 200);
    // A new token of the name is another one.
    token(&yard, &root, "revoked", "read").await;
    assert_eq!(lives().await, [false, true]);
    yard.world.clock.advance(Duration::from_secs(24 * 3600 + 1));
    assert_eq!(lives().await, [false, false]);
}
