//! Signing in through an identity provider that says what it is told to, against a real database.

use http::header::{LOCATION, RETRY_AFTER, SET_COOKIE};
use schema::user::Source;
use serde_json::{Value, json};

use super::*;
use crate::auth::login_limit::{ATTEMPTS, WINDOW};
use crate::routes::yard::{Answer, PASSWORD, Yard, from_address, yard};
use crate::testing::NOW;

const START: &str = "/api/login/oidc";
const STATE: &str = "a-state-that-nobody-guesses";
const PROVIDER: &str = "https://id.example/authorize?state=a-state-that-nobody-guesses";

/// A service in oidc mode, and the session of its superadmin.
struct Oidc {
    yard: Yard,
    root: String,
}

async fn oidc() -> Oidc {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    let settings = json!({"web.auth_mode": "oidc", "oidc": {
        "provider_url": "https://id.example",
        "client_id": "yard",
        "redirect_url": "https://yard.example/api/login/oidc/callback",
    }});
    let saved = yard.switch_mode(&root, &settings).await;
    let oidc = Oidc { yard, root };
    assert_eq!(saved.status, 202, "{}", saved.text);
    *oidc.yard.world.provider.begins.lock().unwrap() = Ok((PROVIDER.to_owned(), pending()));
    oidc
}

fn pending() -> PendingSignIn {
    PendingSignIn {
        state: STATE.to_owned(),
        nonce: "the-nonce".to_owned(),
        verifier: "the-verifier".to_owned(),
    }
}

impl Oidc {
    async fn save(&self, config: &Value) -> Answer {
        let form = [("config", &*config.to_string())];
        let post = self.yard.post("/api/config", &form);
        post.with("root", &self.root).send().await
    }

    /// What the provider says of the next who sign in.
    fn says(&self, subject: &str, name: &str, groups: Option<&[&str]>) {
        *self.yard.world.provider.says.lock().unwrap() = Ok(ProvidedIdentity {
            subject: format!("https://id.example {subject}"),
            name: name.to_owned(),
            groups: groups.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            ..ProvidedIdentity::default()
        });
    }

    fn fails(&self, failure: ProviderFailure) {
        *self.yard.world.provider.says.lock().unwrap() = Err(failure);
    }

    /// Off to the provider; the cookie that the browser keeps.
    async fn begin(&self, query: &str) -> String {
        let answer = self.yard.get(&format!("{START}{query}")).send().await;
        assert_eq!(answer.status, 302, "{}", answer.text);
        assert_eq!(answer.headers[LOCATION], PROVIDER);
        answer.cookie()
    }

    /// Back from it, with this query and cookie.
    async fn back(&self, query: &str, cookie: &str) -> Answer {
        let path = format!("{START}/callback?{query}");
        let ask = self.yard.get(&path).header("cookie", cookie);
        ask.send().await
    }

    /// There and back.
    async fn sign_in(&self) -> Answer {
        let cookie = self.begin("").await;
        self.back(&format!("state={STATE}&code=c0de"), &cookie)
            .await
    }

    async fn groups_of(&self, name: &str) -> Value {
        let path = format!("/api/admin/users?search={name}");
        let users = self.yard.get(&path).with("root", &self.root).send().await;
        users.body["users"][0]["groups"].clone()
    }
}

/// The session among the cookies that are set.
fn session(answer: &Answer) -> String {
    let cookies = answer.headers.get_all(SET_COOKIE).iter();
    let mut cookies = cookies.map(|cookie| cookie.to_str().unwrap());
    let session = cookies.find(|cookie| cookie.starts_with("session="));
    let session = session.unwrap_or_else(|| panic!("{answer:?}"));
    session.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn whoever_the_provider_has_signed_in_has_an_account_and_a_session() {
    let oidc = oidc().await;
    oidc.says("17", "Carol", Some(&["dev", "no/name", "ops"]));
    let answer = oidc.sign_in().await;
    assert_eq!(answer.status, 302, "{}", answer.text);
    assert_eq!(answer.headers[LOCATION], "/manage");
    assert!(oidc.yard.lives(&session(&answer)).await);
    let carol = oidc.yard.find("carol").await.unwrap();
    assert_eq!((carol.name.as_str(), carol.source), ("Carol", Source::Oidc));
    assert_eq!(carol.last_login_at, Some(NOW));
    assert_eq!(oidc.groups_of("carol").await, json!(["dev", "ops"]));
    // The provider was asked with what was kept, and the browser keeps it no longer.
    let asked = oidc.yard.world.provider.asked.lock().unwrap().clone();
    assert_eq!(asked, [("the-verifier".into(), "c0de".into(), None)]);
    let cookies: Vec<_> = answer.headers.get_all(SET_COOKIE).iter().collect();
    assert_eq!(cookies.len(), 2);
    let gone = "oidc-a-state-that=; Path=/api/login/oidc; Max-Age=0; HttpOnly; SameSite=Lax";
    assert!(cookies.iter().any(|cookie| *cookie == gone), "{cookies:?}");
}

#[tokio::test]
async fn groups_left_out_are_in_the_audit_trail_and_an_event() {
    let oidc = oidc().await;
    oidc.says("17", "carol", Some(&["dev"]));
    assert_eq!(oidc.sign_in().await.status, 302);
    // Too many to be sent: not known is not none.
    *oidc.yard.world.provider.says.lock().unwrap() = Ok(ProvidedIdentity {
        subject: "https://id.example 17".to_owned(),
        name: "carol".to_owned(),
        groups: None,
        left_out: vec!["the claim groups is left out".to_owned()],
        renamed: vec!["\"/a/b\" is a:b here".to_owned()],
    });
    assert_eq!(oidc.sign_in().await.status, 302);
    assert_eq!(oidc.groups_of("carol").await, json!(["dev"]));
    let ask = async |path: &str| {
        let answer = oidc.yard.get(path).with("root", &oidc.root).send().await;
        answer.body
    };
    let events = ask("/api/admin/events?object=user/carol").await;
    let event = &events["events"][0];
    assert_eq!(event["reason"], "GroupsLeftOut", "{events}");
    assert_eq!(event["message"], "the claim groups is left out");
    let audit = ask("/api/admin/audit?page=1").await.to_string();
    for part in ["groups left out: the claim groups is left out", "a:b here"] {
        assert!(audit.contains(part), "{audit}");
    }
}

#[tokio::test]
async fn what_the_browser_keeps_is_sealed_and_protected() {
    let oidc = oidc().await;
    let answer = oidc.yard.get(START).send().await;
    let cookie = answer.headers[SET_COOKIE].to_str().unwrap();
    let (value, attributes) = cookie.split_once(';').unwrap();
    let expected = " Path=/api/login/oidc; Max-Age=600; HttpOnly; SameSite=Lax";
    assert_eq!(attributes, expected);
    let sealed = value.strip_prefix("oidc-a-state-that=").unwrap();
    let sealed = hex::decode(sealed).unwrap();
    for secret in ["the-verifier", "the-nonce", STATE] {
        let found = sealed
            .windows(secret.len())
            .any(|part| part == secret.as_bytes());
        assert!(!found, "{secret}");
    }
    assert!(!format!("{:?}", answer.headers).contains("oidc-a-state"));
    // The longest path there is still fits into a cookie.
    let long = format!("?next=/{}", "n".repeat(LONGEST_NEXT - 1));
    assert!(oidc.begin(&long).await.len() < 4096);
}

#[tokio::test]
async fn l18_whoever_was_not_sent_off_from_this_browser_is_not_signed_in() {
    let oidc = oidc().await;
    oidc.says("17", "carol", None);
    let cookie = oidc.begin("").await;
    let good = format!("state={STATE}&code=c");
    let (name, sealed) = cookie.split_once('=').unwrap();
    let cut = &sealed[..sealed.len() - 2];
    let other = format!("{name}={cut}00");
    for (query, cookie) in [
        (&*good, ""),
        (&*good, "oidc-a-state-that="),
        (&*good, &format!("{name}={cut}")),
        (&*good, &other),
        (&*good, &format!("oidc-another={sealed}")),
        ("state=a-state-that-another-has&code=c", &cookie),
        ("state=a-state-that&code=c", &cookie),
        ("state=short&code=c", &cookie),
        ("state=a-state-th%C3%A4t&code=c", &cookie),
        ("code=c", &cookie),
    ] {
        let answer = oidc.back(query, cookie).await;
        assert_eq!(answer.verdict(), (400, "sign_in_unknown"), "{query}");
    }
    // Nor after ten minutes.
    let cookie = oidc.begin("").await;
    oidc.yard.world.clock.advance(PENDING);
    assert_eq!(oidc.back(&good, &cookie).await.status, 302);
    oidc.yard.world.clock.advance(Duration::from_secs(1));
    let late = oidc.back(&good, &cookie).await;
    assert_eq!(late.verdict(), (400, "sign_in_unknown"));
    let asked = oidc.yard.world.provider.asked.lock().unwrap().len();
    assert_eq!(asked, 1, "the provider is not asked for others");
}

#[tokio::test]
async fn sign_ins_in_several_tabs_do_not_disturb_each_other() {
    let oidc = oidc().await;
    oidc.says("17", "carol", None);
    let first = oidc.begin("?next=/one").await;
    let other = PendingSignIn {
        state: "the-state-of-another-tab".to_owned(),
        ..pending()
    };
    *oidc.yard.world.provider.begins.lock().unwrap() = Ok((PROVIDER.to_owned(), other));
    let second = oidc.begin("?next=/two").await;
    let both = format!("{first}; {second}");
    let answer = oidc.back(&format!("state={STATE}&code=c"), &both).await;
    assert_eq!(answer.headers[LOCATION], "/one");
    let answer = oidc
        .back("state=the-state-of-another-tab&code=c", &both)
        .await;
    assert_eq!(answer.headers[LOCATION], "/two");
}

#[tokio::test]
async fn l18_next_leads_to_a_place_of_this_service_only() {
    let oidc = oidc().await;
    oidc.says("17", "carol", None);
    for next in [
        "https://evil.example",
        "//evil.example",
        "/%5Cevil.example",
        "%5C%5Cevil.example",
        "/%09/evil.example",
        "/%0A/evil.example",
        "/%20x",
        "javascript:alert(1)",
        "manage",
        "",
        "/%C3%A4",
        "https:evil.example",
        "http:/evil.example",
        "/%22%22",
        "/%3Cb%3E",
    ] {
        let path = format!("{START}?next={next}");
        let answer = oidc.yard.get(&path).send().await;
        assert_eq!(answer.verdict(), (400, "invalid_parameter"), "{next}");
        assert_eq!(answer.body["field"], "next");
        assert!(!answer.headers.contains_key(SET_COOKIE));
    }
    let long = format!("{START}?next=/{}", "n".repeat(LONGEST_NEXT));
    assert_eq!(oidc.yard.get(&long).send().await.status, 400);
    for next in ["/manage", "/admin/users?page=2#x", "/@x", "/a//b", "/.//x"] {
        let query = format!("?next={}", next.replace('#', "%23").replace('?', "%3F"));
        let cookie = oidc.begin(&query).await;
        let answer = oidc.back(&format!("state={STATE}&code=c"), &cookie).await;
        assert_eq!(answer.headers[LOCATION], next);
    }
}

#[tokio::test]
async fn failures_are_pages_in_a_browser_and_json_elsewhere() {
    let oidc = oidc().await;
    let html = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let query = "error=access_denied&error_description=%3Cscript%3Ealert(1)%3C/script%3E";
    let path = format!("{START}/callback?state={STATE}&{query}");
    for accept in [Some(html), Some("application/json"), None] {
        let cookie = oidc.begin("").await;
        let mut ask = oidc.yard.get(&path).header("cookie", &cookie);
        if let Some(accept) = accept {
            ask = ask.header("accept", accept);
        }
        let answer = ask.send().await;
        assert_eq!(answer.status, 401);
        let kind = answer.headers["content-type"].to_str().unwrap();
        if accept != Some(html) {
            assert_eq!(kind, "application/json");
            assert_eq!(answer.body["code"], "sign_in_refused");
            continue;
        }
        assert_eq!(kind, "text/html; charset=utf-8");
        assert!(
            answer
                .text
                .contains("access_denied: &lt;script&gt;alert(1)&lt;/script&gt;")
        );
        assert!(!answer.text.contains("<script"));
        assert!(
            answer
                .text
                .contains("<a href=\"/api/login/oidc?again=true\">")
        );
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'self' 'nonce-"));
        assert!(!policy.contains("unsafe"));
    }
    // Whatever is wrong, before the handler too.
    for (path, status) in [
        ("/api/login/oidc/callback?state=a&state=b", 400),
        ("/api/login/oidc?next=//evil.example", 400),
        ("/api/login/oidc/callback", 400),
        ("/api/login/oidc/callback?state=%FF", 400),
    ] {
        let answer = oidc.yard.get(path).header("accept", html).send().await;
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.text.starts_with("<!doctype html>"), "{path}");
    }
    *oidc.yard.world.provider.begins.lock().unwrap() = Err(ProviderFailure::Unavailable(
        "at http://10.0.0.1".to_owned(),
    ));
    let away = oidc.yard.get(START).header("accept", html).send().await;
    assert_eq!(away.status, 502);
    assert!(
        away.text
            .contains("The identity provider cannot be used now")
    );
    assert!(
        !away.text.contains("10.0.0.1"),
        "what it is about is for the log"
    );
}

#[tokio::test]
async fn what_proves_nothing_is_refused_and_recorded() {
    let oidc = oidc().await;
    oidc.fails(ProviderFailure::Refused("its nonce is another".to_owned()));
    let refused = oidc.sign_in().await;
    assert_eq!(refused.verdict(), (401, "sign_in_refused"));
    assert!(!refused.headers.contains_key(SET_COOKIE));
    assert!(!refused.text.contains("nonce"));
    let audit = oidc.yard.get("/api/admin/audit").with("root", &oidc.root);
    let newest = audit.send().await.body["entries"][0].clone();
    assert_eq!(newest["action"], "login_oidc_callback");
    assert_eq!(newest["detail"], "sign_in_refused", "{newest}");
    let cookie = oidc.begin("").await;
    let without = oidc.back(&format!("state={STATE}"), &cookie).await;
    assert_eq!(without.verdict(), (400, "invalid_parameter"));
}

#[tokio::test]
async fn l19_failed_callbacks_are_limited_by_address_and_nothing_else_is() {
    let oidc = oidc().await;
    let back = async |address: &str, query: &str, cookie: &str| {
        let ask = oidc.yard.get(&format!("{START}/callback?{query}"));
        let ask = ask.header("cookie", cookie).context(from_address(address));
        ask.send().await
    };
    let good = format!("state={STATE}&code=c");
    let cookie = oidc.begin("").await;
    oidc.says("17", "carol", None);
    // All at once.
    let all = (0..ATTEMPTS * 2).map(|_| back("10.1.1.1:5", &good, &cookie));
    let answers = futures::future::join_all(all).await;
    for answer in answers {
        assert_eq!(answer.status, 302, "{}", answer.text);
    }
    oidc.fails(ProviderFailure::Unavailable("away".to_owned()));
    for _ in 0..ATTEMPTS * 2 {
        assert_eq!(back("10.1.1.1:5", &good, &cookie).await.status, 502);
    }
    let down = format!("state={STATE}&error=temporarily_unavailable");
    for _ in 0..ATTEMPTS * 2 {
        assert_eq!(back("10.1.1.1:5", &down, &cookie).await.status, 502);
    }
    // What another page makes a browser send, without the cookie, locks nobody out.
    for _ in 0..ATTEMPTS * 2 {
        assert_eq!(back("10.1.1.1:5", "state=x&code=c", "").await.status, 400);
    }
    oidc.fails(ProviderFailure::Refused("a bad token".to_owned()));
    for _ in 0..ATTEMPTS {
        assert_eq!(back("10.1.1.1:5", &good, &cookie).await.status, 401);
    }
    let stopped = back("10.1.1.1:5", &good, &cookie).await;
    assert_eq!(stopped.verdict(), (429, "too_many_attempts"));
    assert!(stopped.headers.contains_key(RETRY_AFTER));
    oidc.says("17", "carol", None);
    assert_eq!(back("10.1.1.1:5", &good, &cookie).await.status, 429);
    assert_eq!(back("10.1.1.2:5", &good, &cookie).await.status, 302);
    let started = oidc.yard.get(START).context(from_address("10.1.1.1:5"));
    assert_eq!(started.send().await.status, 302, "the start is not limited");
    oidc.yard.world.clock.advance(WINDOW);
    assert_eq!(back("10.1.1.1:5", &good, &cookie).await.status, 302);
}

#[tokio::test]
async fn a_browser_keeps_few_sign_ins_that_were_never_ended() {
    let oidc = oidc().await;
    let kept: Vec<_> = (0..MOST_KEPT).map(|n| format!("oidc-{n}=00")).collect();
    let start = async |cookies: &[String]| {
        let ask = oidc.yard.get(START).header("cookie", &cookies.join("; "));
        let answer = ask.send().await;
        answer.headers.get_all(SET_COOKIE).iter().count()
    };
    assert_eq!(start(&kept[1..]).await, 1);
    assert_eq!(start(&kept).await, 1 + MOST_KEPT);
}

#[tokio::test]
async fn whoever_is_disabled_or_leaving_hears_so() {
    let oidc = oidc().await;
    oidc.says("17", "carol", None);
    oidc.sign_in().await;
    let post = async |path: &str| {
        let ask = oidc
            .yard
            .post(path, &[("username", "carol"), ("wait", "0")]);
        ask.with("root", &oidc.root).send().await.status
    };
    assert!(post("/api/admin/users/disable").await.is_success());
    // Under another name by now, which the account does not have.
    oidc.says("17", "bob", None);
    let disabled = oidc.sign_in().await;
    assert_eq!(disabled.verdict(), (403, "account_disabled"));
    let audit = oidc.yard.get("/api/admin/audit").with("root", &oidc.root);
    let newest = audit.send().await.body["entries"][0].clone();
    assert_eq!(newest["object"], "user/carol", "{newest}");
    assert_eq!(newest["detail"], "account_disabled", "{newest}");
    assert!(post("/api/admin/users/enable").await.is_success());
    assert_eq!(oidc.sign_in().await.status, 302);
    assert!(post("/api/admin/users/delete").await.is_success());
    let leaving = oidc.sign_in().await;
    assert_eq!(leaving.verdict(), (503, "previous_account_archiving"));
    oidc.fails(ProviderFailure::Nameless("no claim".to_owned()));
    let nameless = oidc.sign_in().await;
    assert_eq!(nameless.verdict(), (403, "invalid_username"));
}

#[tokio::test]
async fn groups_that_everybody_has_left_are_removed_unless_they_have_skills() {
    let oidc = oidc().await;
    let groups = async || {
        let list = oidc.yard.get("/api/admin/groups").with("root", &oidc.root);
        let list = list.send().await;
        let groups = list.body["groups"].as_array().unwrap().clone();
        groups
            .into_iter()
            .map(|group| group["name"].clone())
            .collect::<Vec<_>>()
    };
    oidc.says("17", "carol", Some(&["dev", "ops"]));
    oidc.sign_in().await;
    oidc.says("18", "dave", Some(&["dev"]));
    oidc.sign_in().await;
    assert_eq!(groups().await, ["dev", "ops"]);
    oidc.says("17", "carol", Some(&[]));
    oidc.sign_in().await;
    assert_eq!(groups().await, ["dev"]);
    oidc.says("18", "dave", Some(&["new"]));
    oidc.sign_in().await;
    assert_eq!(groups().await, ["new"]);
}

#[tokio::test]
async fn l16_groups_stay_where_the_provider_does_not_speak_of_them() {
    let oidc = oidc().await;
    oidc.says("17", "carol", Some(&["dev", "ops"]));
    oidc.sign_in().await;
    oidc.says("17", "carol", None);
    oidc.sign_in().await;
    assert_eq!(oidc.groups_of("carol").await, json!(["dev", "ops"]));
    oidc.says("17", "carol", Some(&["ops"]));
    oidc.sign_in().await;
    assert_eq!(oidc.groups_of("carol").await, json!(["ops"]));
    oidc.says("17", "carol", Some(&[]));
    oidc.sign_in().await;
    assert_eq!(oidc.groups_of("carol").await, json!([]));
}

#[tokio::test]
async fn who_somebody_is_the_subject_says_and_not_the_name() {
    let oidc = oidc().await;
    oidc.says("17", "carol", None);
    oidc.sign_in().await;
    let uid = oidc.yard.find("carol").await.unwrap().uid;
    // Another person who has the name by now.
    oidc.says("18", "carol", None);
    let other = oidc.sign_in().await;
    assert_eq!(other.verdict(), (409, "name_taken"));
    // The same person under another name keeps the account.
    oidc.says("17", "caroline", None);
    let renamed = oidc.sign_in().await;
    assert_eq!(renamed.status, 302, "{}", renamed.text);
    assert!(oidc.yard.find("caroline").await.is_none());
    assert_eq!(oidc.yard.find("carol").await.unwrap().uid, uid);
    assert!(session(&renamed).starts_with("session=carol:"));
}

#[tokio::test]
async fn l4_a_superadmins_name_at_the_provider_is_nobody_here() {
    let oidc = oidc().await;
    oidc.says("1", "ROOT", None);
    let answer = oidc.sign_in().await;
    assert_eq!(answer.verdict(), (409, "name_taken"));
    assert!(!answer.headers.contains_key(SET_COOKIE));
}

#[tokio::test]
async fn names_and_the_whitelist_are_looked_at() {
    let oidc = oidc().await;
    oidc.says("1", "dr:who", None);
    let answer = oidc.sign_in().await;
    assert_eq!(answer.verdict(), (403, "invalid_username"));
    for part in ["dr:who", "A-Z", "oidc.username_claim"] {
        assert!(answer.text.contains(part), "{}", answer.text);
    }
    let saved = oidc.save(&json!({"oidc.whitelist_enabled": true})).await;
    assert_eq!(saved.status, 200, "{}", saved.text);
    oidc.says("2", "dave", None);
    let outside = oidc.sign_in().await;
    assert_eq!(outside.verdict(), (403, "not_whitelisted"));
    assert!(oidc.yard.find("dave").await.is_none());
    let post = oidc.yard.post("/api/admin/whitelist", &[("users", "dave")]);
    post.with("root", &oidc.root).send().await;
    let inside = oidc.sign_in().await;
    assert_eq!(inside.status, 302);
    let post = oidc.yard.post("/api/admin/whitelist", &[("users", "erin")]);
    post.with("root", &oidc.root).send().await;
    assert!(!oidc.yard.lives(&session(&inside)).await);
}

#[tokio::test]
async fn passwords_are_for_superadmins_only() {
    let oidc = oidc().await;
    oidc.says("17", "carol", None);
    oidc.sign_in().await;
    let said = "wrong name or password; others sign in with single sign-on";
    for (name, password) in [
        ("carol", PASSWORD),
        ("alice", PASSWORD),
        ("nobody", PASSWORD),
        ("root", "wrong password"),
    ] {
        let answer = oidc.yard.login(name, password).send().await;
        assert_eq!(answer.verdict(), (401, "bad_credentials"), "{name}");
        assert_eq!(answer.body["error"], said);
    }
    let root = oidc.yard.login("root", PASSWORD).send().await;
    assert_eq!(root.status, 200);
}

#[tokio::test]
async fn in_other_modes_nobody_is_sent_anywhere() {
    let yard = yard().await;
    let page = yard.get(START).header("accept", "text/html").send().await;
    assert!(page.text.contains("use name and password") && !page.text.contains("<a "));
    for path in [START, "/api/login/oidc/callback?state=x&code=c"] {
        let answer = yard.get(path).send().await;
        assert_eq!(answer.verdict(), (400, "invalid_request"), "{path}");
    }
}

#[tokio::test]
async fn settings_are_tested_before_anybody_is_removed_for_them() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    let test = async |form: &[(&str, &str)]| {
        let post = yard.post("/api/admin/auth/test-oidc", form);
        post.with("root", &root).send().await
    };
    assert_eq!(test(&[]).await.verdict(), (422, "invalid_config"));
    let plain = test(&[("provider_url", "http://id.example")]).await;
    assert_eq!(plain.verdict(), (422, "invalid_config"));
    let sent = [
        ("provider_url", "https://id.example"),
        ("client_secret", "pw"),
    ];
    let answer = test(&sent).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.body["message"], "all steps succeeded");
    assert_eq!(answer.body["steps"][0]["detail"], "https://id.example");
    let failed = test(&sent[..1]).await;
    assert_eq!(
        failed.body["message"],
        "discovery failed: https://id.example"
    );
    // Nothing was saved.
    let mode = yard.get("/api/login/mode").send().await;
    assert_eq!(mode.body["auth_mode"], "local");
    assert!(!answer.text.contains("pw"));
}
