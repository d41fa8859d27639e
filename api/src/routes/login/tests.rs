//! Signing in and out, against a real database.

use std::sync::Arc;
use std::time::Duration;

use http::header::{RETRY_AFTER, SET_COOKIE};
use schema::condition::{Condition, Reason};
use schema::ids::{Epoch, Generation, Kind};
use schema::object::{self, StatusRow};
use schema::{session, user};
use secrecy::ExposeSecret;
use serde_json::json;

use super::*;
use crate::auth::login_limit::WINDOW;
use crate::routes::yard::{PASSWORD, Yard, from_address, yard};
use crate::settings::AuthMode;
use crate::testing::NOW;

#[tokio::test]
async fn signing_in_answers_who_one_is_and_sets_the_cookie() {
    let yard = yard().await;
    let answer = yard.login("Alice", PASSWORD).send().await;
    assert_eq!(
        answer.body,
        json!({"success": true, "message": "signed in", "username": "alice", "role": "user", "initializing": true})
    );
    let cookie = answer.headers[SET_COOKIE].to_str().unwrap();
    assert!(cookie.starts_with("session=alice:1778500000:"), "{cookie}");
    assert!(cookie.ends_with("; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax"));
    assert!(yard.lives(&answer.cookie()).await);
    let account = yard.find("alice").await.unwrap();
    assert_eq!(account.last_login_at, Some(NOW));
    let root = yard.login("root", PASSWORD).send().await;
    assert_eq!(
        (&root.body["role"], &root.body["initializing"]),
        (&json!("superadmin"), &json!(false))
    );
}

#[tokio::test]
async fn two_sign_ins_in_one_second_are_two_sessions() {
    let yard = yard().await;
    let (first, second) = (yard.sign_in("alice").await, yard.sign_in("alice").await);
    assert_ne!(first, second);
    assert!(yard.lives(&first).await && yard.lives(&second).await);
}

#[tokio::test]
async fn l73_a_sign_in_counts_at_once_wherever_the_clock_was_set() {
    const HOUR: Duration = Duration::from_secs(60 * 60);
    let yard = yard().await;
    let clock = &yard.world.clock;
    let mut dead = Vec::new();
    for set in [
        NOW,
        NOW.minus(2 * HOUR),
        NOW.plus(72 * HOUR),
        NOW.minus(72 * HOUR),
        NOW.plus(HOUR),
    ] {
        clock.set(set);
        let cookie = yard.sign_in("alice").await;
        assert!(yard.lives(&cookie).await, "at {}", set.to_rfc3339());
        dead.push(cookie);
    }
    // Those that lay in the future are forgotten: no time makes them live again.
    dead.pop();
    clock.set(NOW.plus(72 * HOUR));
    assert!(!yard.lives(&dead[2]).await);
    clock.set(NOW);
    assert!(!yard.lives(&dead[0]).await);
}

#[tokio::test]
async fn l73_so_many_sign_ins_at_once_are_refused_instead_of_answered_with_a_dead_cookie() {
    let yard = yard().await;
    let uid = yard.find("alice").await.unwrap().uid;
    let mut tx = yard.tx().await;
    for _ in 0..60 {
        session::issue(&mut tx, &uid, NOW, "", "web").await.unwrap();
    }
    tx.commit().await.unwrap();
    let last = yard.sign_in("alice").await;
    assert!(yard.lives(&last).await);
    let refused = yard.login("alice", PASSWORD).send().await;
    assert_eq!(refused.verdict(), (429, "too_many_attempts"));
    assert_eq!(refused.headers[RETRY_AFTER], "1");
    assert!(!refused.headers.contains_key(SET_COOKIE));
    let mut tx = yard.tx().await;
    session::revoke_all(&mut tx, &uid, None).await.unwrap();
    tx.commit().await.unwrap();
    let refused = yard.login("alice", PASSWORD).send().await;
    assert_eq!(refused.verdict(), (429, "too_many_attempts"));
    yard.world.clock.advance(Duration::from_secs(1));
    assert!(yard.lives(&yard.sign_in("alice").await).await);
}

#[tokio::test]
async fn a_ready_container_is_not_initializing() {
    let yard = yard().await;
    let uid = yard.find("alice").await.unwrap().uid;
    let status = StatusRow {
        observed_generation: Generation(1),
        conditions: vec![Condition::ready(Reason::Running, "")],
        ..StatusRow::default()
    };
    let mut tx = yard.tx().await;
    object::save_status(&mut tx, Kind::Container, &uid, &status, Epoch(1))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let answer = yard.login("alice", PASSWORD).send().await;
    assert_eq!(answer.body["initializing"], false);
}

#[tokio::test]
async fn json_and_the_versioned_path_are_taken_too() {
    let yard = yard().await;
    let body = json!({"username": "alice", "password": PASSWORD});
    let ask = yard.post_json("/api/v1/login/", &body);
    assert_eq!(ask.send().await.status, 200);
}

#[tokio::test]
async fn l5_every_refusal_is_the_same() {
    let yard = yard().await;
    let disabled = yard.create_user("disabled").await;
    let leaving = yard.create_user("leaving").await;
    let mut tx = yard.tx().await;
    user::set_disabled(&mut tx, &disabled, true, None)
        .await
        .unwrap();
    user::delete(&mut tx, &leaving, NOW).await.unwrap();
    tx.commit().await.unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for (at, (name, password)) in [
        ("alice", "wrong password"),
        ("nobody", PASSWORD),
        ("root", "wrong password"),
        ("not a name:", PASSWORD),
        ("disabled", PASSWORD),
        ("leaving", PASSWORD),
    ]
    .into_iter()
    .enumerate()
    {
        // The address varies, so that the limit stays out of this.
        let context = from_address(&format!("10.0.0.{at}:1"));
        let before = yard.world.deps.passwords.computed();
        let answer = yard.login(name, password).context(context).send().await;
        assert_eq!(answer.verdict(), (401, "bad_credentials"), "{name}");
        let after = yard.world.deps.passwords.computed();
        assert_eq!(after - before, 1, "the same work for {name}");
        assert!(!answer.headers.contains_key(SET_COOKIE));
        seen.insert(answer.text);
    }
    assert_eq!(seen.len(), 1, "{seen:?}");
}

#[tokio::test]
async fn an_empty_name_or_password_is_a_bad_request() {
    let yard = yard().await;
    for (name, password, field) in [
        ("", PASSWORD, "username"),
        (" ", PASSWORD, "username"),
        ("alice", "", "password"),
        ("", "", "username"),
    ] {
        let answer = yard.login(name, password).send().await;
        assert_eq!(answer.verdict(), (400, "invalid_parameter"), "{answer:?}");
        assert_eq!(answer.body["field"], field);
    }
    assert_eq!(yard.login("alice", PASSWORD).send().await.status, 200);
}

#[tokio::test]
async fn l5_the_client_matters_only_after_the_password() {
    let yard = yard().await;
    let settings = WebSettings {
        desktop_user_agents: vec!["AgentDesktop".to_owned()],
        ..WebSettings::default()
    };
    yard.world.settings.send(Arc::new(settings)).unwrap();
    let form = |name: &'static str, client: &'static str| {
        vec![
            ("username", name),
            ("password", PASSWORD),
            ("client", client),
        ]
    };
    let web = |name, header: Option<(&'static str, &'static str)>| {
        let ask = yard.post("/api/login", &form(name, "web"));
        match header {
            Some((header, value)) => ask.header(header, value),
            None => ask,
        }
    };
    let refused = (403, "superadmin_client");
    for client in ["extension", "desktop"] {
        let answer = yard.post("/api/login", &form("root", client)).send().await;
        assert_eq!(answer.verdict(), refused, "{client}");
        assert!(!answer.headers.contains_key(SET_COOKIE));
    }
    for header in [
        ("origin", "chrome-extension://abc"),
        ("user-agent", "Mozilla/5.0 agentdesktop/1.2"),
    ] {
        let root = web("root", Some(header)).send().await;
        assert_eq!(root.verdict(), refused, "{header:?}");
        let alice = web("alice", Some(header)).send().await;
        assert_eq!(alice.status, 200, "{header:?}");
        let wrong = yard
            .login("root", "wrong password")
            .header(header.0, header.1);
        assert_eq!(wrong.send().await.verdict(), (401, "bad_credentials"));
    }
    assert_eq!(web("root", None).send().await.status, 200);
    let unknown = yard.post(
        "/api/login",
        &[("username", "a"), ("password", "b"), ("client", "x")],
    );
    assert_eq!(unknown.send().await.verdict(), (400, "invalid_parameter"));
}

#[tokio::test]
async fn the_session_remembers_what_it_was_started_with() {
    let yard = yard().await;
    let form = [("username", "alice"), ("password", PASSWORD)];
    let ask = yard
        .post("/api/login", &form)
        .header("origin", "moz-extension://abc")
        .context(from_address("192.0.2.7:1"));
    assert_eq!(ask.send().await.status, 200);
    let uid = yard.find("alice").await.unwrap().uid;
    let mut connection = yard.world.deps.db.read().await.unwrap();
    let rows = session::list(&mut connection, &uid, 0).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].address.as_str(), rows[0].client.as_str()),
        ("192.0.2.7", "extension")
    );
}

#[tokio::test]
async fn l19_the_eleventh_attempt_is_refused_whatever_headers_say() {
    let yard = yard().await;
    for n in 0..10 {
        let context = from_address("192.0.2.7:1");
        let ask = yard
            .login("alice", "wrong password")
            .header("x-forwarded-for", &format!("198.51.100.{n}"))
            .context(context);
        assert_eq!(ask.send().await.verdict(), (401, "bad_credentials"));
    }
    let eleventh = |name, ip| yard.login(name, PASSWORD).context(from_address(ip)).send();
    let before = yard.world.deps.passwords.computed();
    let answer = eleventh("alice", "192.0.2.7:2").await;
    assert_eq!(answer.verdict(), (429, "too_many_attempts"));
    assert_eq!(answer.headers[RETRY_AFTER], "300");
    assert_eq!(eleventh("root", "192.0.2.7:2").await.status, 429);
    let after = yard.world.deps.passwords.computed();
    assert_eq!(after, before, "refused before any hashing");
    assert_eq!(eleventh("alice", "192.0.2.8:2").await.status, 200);
    yard.world.clock.advance(WINDOW);
    assert_eq!(eleventh("alice", "192.0.2.7:2").await.status, 200);
}

#[tokio::test]
async fn l19_successful_attempts_count_for_the_name_but_not_for_the_address() {
    let yard = yard().await;
    for _ in 0..10 {
        yard.sign_in("alice").await;
    }
    let alice = yard.login("alice", PASSWORD).send().await;
    assert_eq!(alice.verdict(), (429, "too_many_attempts"));
    yard.sign_in("bob").await;
}

#[tokio::test]
async fn the_cookie_is_secure_when_a_trusted_proxy_speaks_https() {
    let yard = yard().await;
    let settings = WebSettings {
        trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
        ..WebSettings::default()
    };
    yard.world.settings.send(Arc::new(settings)).unwrap();
    for (address, secure) in [("10.0.0.1:1", true), ("192.0.2.1:1", false)] {
        let ask = yard
            .login("alice", PASSWORD)
            .header("x-forwarded-proto", "https")
            .context(from_address(address));
        let answer = ask.send().await;
        let cookie = answer.headers[SET_COOKIE].to_str().unwrap();
        assert_eq!(cookie.ends_with("; Secure"), secure, "{address}");
    }
}

/// Stores a hash of [`PASSWORD`] with parameters of old.
async fn set_weak_hash(yard: &Yard, uid: &schema::ids::Uid) {
    let params = argon2::Params::new(64, 1, 1, None).unwrap();
    let weak = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
    let weak = argon2::PasswordHasher::hash_password(&weak, PASSWORD.as_bytes()).unwrap();
    let mut tx = yard.tx().await;
    user::set_password(&mut tx, uid, &weak.to_string().into(), None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn an_outdated_hash_is_renewed_at_sign_in() {
    let yard = yard().await;
    let uid = yard.find("alice").await.unwrap().uid;
    set_weak_hash(&yard, &uid).await;
    yard.sign_in("alice").await;
    let renewed = yard.find("alice").await.unwrap().password_hash.unwrap();
    assert!(
        !yard
            .world
            .deps
            .passwords
            .needs_rehash(renewed.expose_secret())
    );
    yard.sign_in("alice").await;
}

#[tokio::test]
async fn sign_ins_that_renew_a_hash_together_all_succeed() {
    let yard = yard().await;
    let uid = yard.find("alice").await.unwrap().uid;
    set_weak_hash(&yard, &uid).await;
    let sign_ins = futures::future::join_all((0..3).map(|_| yard.sign_in("alice"))).await;
    let different: std::collections::BTreeSet<_> = sign_ins.iter().collect();
    assert_eq!(different.len(), 3);
}

#[tokio::test]
async fn l7_a_password_changed_while_it_was_verified_starts_no_session() {
    let yard = yard().await;
    let verified = yard.find("alice").await.unwrap();
    let mut tx = yard.tx().await;
    user::set_password(&mut tx, &verified.uid, &"another hash".into(), None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let error = attempt(&yard, &verified).await.unwrap_err();
    assert_eq!(error.code(), "bad_credentials");
    let mut connection = yard.world.deps.db.read().await.unwrap();
    assert_eq!(
        session::list(&mut connection, &verified.uid, 0)
            .await
            .unwrap(),
        []
    );
}

#[tokio::test]
async fn l6_an_account_gone_while_its_password_was_verified_starts_no_session() {
    let yard = yard().await;
    yard.create_superadmin("other").await;
    let verified = yard.find("other").await.unwrap();
    let mut tx = yard.tx().await;
    user::delete_superadmin(&mut tx, &verified.name)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let gone = attempt(&yard, &verified).await.unwrap_err();
    assert_eq!(gone.code(), "bad_credentials");
    yard.create_superadmin("other").await;
    let another = attempt(&yard, &verified).await.unwrap_err();
    assert_eq!(another.code(), "bad_credentials");
}

async fn attempt(yard: &Yard, verified: &User) -> Result<Live> {
    let deps = &yard.world.deps;
    start_session(deps, verified, Client::Web, &meta(), None).await
}

fn meta() -> Meta {
    Meta {
        action: "login",
        actor: None,
        request_id: Default::default(),
        behind_unknown_proxy: false,
        client: None,
        host: None,
        secure: false,
        prefix: String::new(),
        headers: Arc::default(),
    }
}

#[tokio::test]
async fn l7_signing_out_ends_that_session_only() {
    let yard = yard().await;
    let (first, second) = (yard.sign_in("alice").await, yard.sign_in("alice").await);
    let logout = |cookie| {
        yard.post("/api/logout", &[])
            .header("cookie", cookie)
            .send()
    };
    let answer = logout(&first).await;
    assert_eq!(answer.status, 200);
    assert!(
        answer.headers[SET_COOKIE]
            .to_str()
            .unwrap()
            .contains("Max-Age=0")
    );
    assert!(!yard.lives(&first).await && yard.lives(&second).await);
    assert_eq!(
        logout(&first).await.status,
        200,
        "nobody is signed in any more"
    );
    assert_eq!(logout("").await.status, 200);
}

#[tokio::test]
async fn signing_out_clears_the_cookie_even_without_a_database() {
    let yard = yard().await;
    let cookie = yard.sign_in("alice").await;
    // The session is found, but cannot be ended.
    let session = {
        let claims = SessionClaims::new("alice".parse().unwrap(), NOW);
        let account = yard.world.deps.authenticator.account(&claims).await;
        let account = account.unwrap().unwrap();
        Session { account, claims }
    };
    yard.world.db.close().await;
    let input = Input {
        file: None,
        spooled: None,
        received: Default::default(),
        had_crlf: false,
        message: Default::default(),
        upgrade: None,
        params: Nothing {},
        wait: None,
        if_generation: None,
        paging: None,
        meta: meta(),
    };
    let deps = yard.world.deps.clone();
    assert!(logout(Visitor(Some(session)), input, deps).await.is_ok());
    // It cannot even be found.
    let answer = yard.post("/api/logout", &[]).header("cookie", &cookie);
    let answer = answer.send().await;
    assert_eq!(answer.status, 200);
    let cleared = answer.headers[SET_COOKIE].to_str().unwrap();
    assert!(cleared.contains("Max-Age=0"), "{cleared}");
}

#[tokio::test]
async fn signing_in_never_takes_5_seconds() {
    let yard = yard().await;
    // A writer that does not end: the sign-in waits for it, as it would for a slow database.
    let _writer = yard.tx().await;
    let begun = tokio::time::Instant::now();
    let answer = yard.login("alice", PASSWORD).send().await;
    let took = begun.elapsed();
    assert_eq!(answer.verdict(), (503, "busy"));
    assert!(answer.headers.contains_key(RETRY_AFTER));
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test]
async fn signing_out_needs_no_body() {
    let yard = yard().await;
    let cookie = yard.sign_in("alice").await;
    let request = yard
        .get("/api/logout")
        .method("POST")
        .header("cookie", &cookie);
    assert_eq!(request.send().await.status, 200);
    assert!(!yard.lives(&cookie).await);
}

#[tokio::test]
async fn l7_a_session_ends_after_24_hours_and_with_its_account() {
    let yard = yard().await;
    let alice = yard.sign_in("alice").await;
    let bob = yard.sign_in("bob").await;
    let uid = yard.find("bob").await.unwrap().uid;
    let mut tx = yard.tx().await;
    user::set_disabled(&mut tx, &uid, true, None).await.unwrap();
    user::set_disabled(&mut tx, &uid, false, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert!(yard.lives(&alice).await && !yard.lives(&bob).await);
    yard.world.clock.advance(Duration::from_secs(86_400));
    assert!(yard.lives(&alice).await);
    yard.world.clock.advance(Duration::from_millis(1));
    assert!(!yard.lives(&alice).await);
}

#[tokio::test]
async fn accounts_of_another_mode_neither_sign_in_nor_stay() {
    let yard = yard().await;
    let (alice, root) = (yard.sign_in("alice").await, yard.sign_in("root").await);
    let settings = WebSettings {
        auth_mode: AuthMode::Ldap,
        ..WebSettings::default()
    };
    yard.world.settings.send(Arc::new(settings)).unwrap();
    assert!(!yard.lives(&alice).await && yard.lives(&root).await);
    assert_eq!(
        yard.login("alice", PASSWORD).send().await.verdict(),
        (401, "bad_credentials")
    );
    yard.sign_in("root").await;
}

#[tokio::test]
async fn a_broken_database_is_no_missing_session() {
    let yard = yard().await;
    let cookie = yard.sign_in("alice").await;
    yard.world.db.close().await;
    let answer = yard
        .get("/api/user/info")
        .header("cookie", &cookie)
        .send()
        .await;
    assert_eq!(answer.verdict(), (503, "database_unavailable"));
    let answer = yard.login("alice", PASSWORD).send().await;
    assert_eq!(answer.verdict(), (503, "database_unavailable"));
}
