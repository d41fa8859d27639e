//! Signing in through an identity provider: in a browser, with a provider that knows passwords, changes its keys and goes away.

use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::PathBuf;
use tokio::time::Instant;

use crate::support::node::{Browser, IdentityProvider};
use crate::support::{Client, Service, Stage, seconds, until};

/// A service without an engine, in oidc mode, and its provider.
struct Yard {
    stage: Stage,
    port: u16,
    service: Service,
    admin: Client,
    provider: IdentityProvider,
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

async fn serve(stage: &Stage, port: u16) -> Service {
    let address = format!("127.0.0.1:{port}");
    let launch = stage.alone().set("container.autostart", "false");
    launch.listen(&address).start().await
}

impl Yard {
    async fn open(more: &Value) -> Self {
        let (stage, port) = (Stage::new(), free_port());
        let redirect = format!("http://127.0.0.1:{port}/api/login/oidc/callback");
        let people = json!({
            "alice": {"password": "wonder land", "groups": ["dev", "ops"]},
            "bob": {"password": "builder"},
        });
        let provider = IdentityProvider::start(&redirect, people);
        let (provider, service) = tokio::join!(provider, serve(&stage, port));
        let admin = service.admin().await;
        let yard = Self {
            stage,
            port,
            service,
            admin,
            provider,
        };
        yard.save(&json!({"web.auth_mode": "oidc", "oidc": {
            "provider_url": yard.provider.issuer(),
            "client_id": "yard",
            "client_secret": "a secret & more",
            "redirect_url": redirect,
        }}))
        .await;
        yard.save(more).await;
        yard
    }

    async fn save(&self, config: &Value) {
        let text = config.to_string();
        let form = [("config", &*text), ("wait", "0")];
        let answer = self.admin.post("/api/config", &form).await;
        assert!(answer.status.is_success(), "{}", answer.text());
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// To the provider's own page.
    async fn begin(&self, browser: &mut Browser) {
        let start = self.url("/api/login/oidc?next=/api/user/info");
        let (status, at) = browser.goto(&start).await;
        assert_eq!(status, 200);
        assert!(at.starts_with(&self.provider.issuer()), "{at}");
    }

    async fn user(&self, name: &str) -> Option<Value> {
        self.admin.user(name).await
    }
}

async fn give(browser: &mut Browser, name: &str, password: &str) -> String {
    browser.fill("input[name=name]", name).await;
    browser.fill("input[name=password]", password).await;
    browser.click("button[value=sign-in]").await
}

/// Who the browser is signed in as, by the page it was led to.
async fn who(browser: &mut Browser) -> Value {
    serde_json::from_str(&browser.text("body").await).unwrap()
}

/// A picture for people to look at.
async fn picture(browser: &mut Browser, name: &str) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pages");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{name}.png"));
    browser.does("screenshot", file.to_str().unwrap()).await;
}

#[tokio::test]
async fn people_sign_in_in_a_browser_with_what_the_provider_knows_of_them() {
    let mut yard = Yard::open(&json!({})).await;
    let mut browser = Browser::open().await;
    yard.begin(&mut browser).await;
    give(&mut browser, "alice", "wrong").await;
    let said = browser.text("#said").await;
    assert_eq!(said, "Wrong name or password");
    let at = give(&mut browser, "alice", "wonder land").await;
    assert_eq!(at, yard.url("/api/user/info"));
    let alice = who(&mut browser).await;
    assert_eq!(
        (&alice["username"], &alice["role"]),
        (&json!("alice"), &json!("user"))
    );
    assert_eq!(alice["auth_mode"], "oidc");
    let cookies = browser.does("cookies", true).await;
    let cookies = cookies["cookies"].as_array().unwrap();
    let ours: Vec<_> = cookies
        .iter()
        .filter(|it| it["name"] == "session" || it["name"].as_str().unwrap().starts_with("oidc-"))
        .collect();
    assert_eq!(
        ours.len(),
        1,
        "what was kept of the sign-in is gone: {ours:?}"
    );
    assert_eq!(
        (&ours[0]["httpOnly"], &ours[0]["sameSite"]),
        (&json!(true), &json!("Lax"))
    );
    // The directory was made without the person waiting.
    until("alice's directory", seconds(60), async || {
        yard.stage
            .data()
            .join("users/alice/.agent/workspace")
            .is_dir()
    })
    .await;
    assert_eq!(
        yard.user("alice").await.unwrap()["groups"],
        json!(["dev", "ops"])
    );
    assert_eq!(yard.user("alice").await.unwrap()["source"], "oidc");

    // Whatever keys the provider has by now.
    browser.does("forget", true).await;
    yard.begin(&mut browser).await;
    yard.provider.restart().await;
    // It has forgotten this sign-in, too.
    yard.begin(&mut browser).await;
    give(&mut browser, "bob", "builder").await;
    assert_eq!(who(&mut browser).await["username"], "bob");
    assert_eq!(yard.user("bob").await.unwrap()["groups"], json!([]));

    // Superadmins have passwords, and nobody else has.
    yard.service.admin().await;
    let refused = yard.service.client().sign_in("alice", "wonder land").await;
    let refused = refused.refused(401, "bad_credentials");
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("single sign-on")
    );
}

#[tokio::test]
async fn settings_are_tested_from_the_command_line() {
    let yard = Yard::open(&json!({})).await;
    let test = async || yard.stage.command().run(&["auth", "test"]).await;
    let good = test().await;
    assert!(good.status.success(), "{}{}", good.stdout, good.stderr);
    for step in ["discovery: ok", "redirect: ok", "client: ok"] {
        assert!(good.stdout.contains(step), "{}", good.stdout);
    }
    for (key, value, step, said) in [
        (
            "oidc.client_secret",
            "wrong",
            "client: failed",
            "check oidc.client_id and oidc.client_secret",
        ),
        (
            "oidc.redirect_url",
            "http://127.0.0.1:1/api/login/oidc/callback",
            "redirect: failed",
            "oidc.redirect_url",
        ),
        (
            "oidc.provider_url",
            "http://127.0.0.1:9",
            "discovery: failed",
            "can't be reached",
        ),
    ] {
        // A secret belongs to the host that it was given for.
        yard.save(&json!({ "oidc.client_secret": "a secret & more", key: value }))
            .await;
        let failed = test().await;
        assert_eq!(failed.status.code(), Some(1), "{}", failed.stdout);
        let line = failed.stdout.lines().find(|line| line.starts_with(step));
        assert!(
            line.is_some_and(|line| line.contains(said)),
            "{}",
            failed.stdout
        );
    }
}

#[tokio::test]
async fn a_sign_in_outlives_a_restart_of_the_service() {
    let mut yard = Yard::open(&json!({})).await;
    let mut browser = Browser::open().await;
    yard.begin(&mut browser).await;
    yard.service.kill9().await;
    yard.service = serve(&yard.stage, yard.port).await;
    give(&mut browser, "alice", "wonder land").await;
    assert_eq!(who(&mut browser).await["username"], "alice");
}

#[tokio::test]
async fn failures_are_pages_that_say_what_to_do() {
    let mut yard = Yard::open(&json!({"oidc.whitelist_enabled": true})).await;
    let mut browser = Browser::open().await;
    let main = async |browser: &mut Browser| {
        let text = browser.text("main").await;
        let lines: Vec<_> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        lines.join("\n")
    };
    yard.begin(&mut browser).await;
    let at = browser.click("button[value=cancel]").await;
    assert!(
        at.starts_with(&yard.url("/api/login/oidc/callback?")),
        "{at}"
    );
    let said = main(&mut browser).await;
    let cancelled = "The identity provider has not signed you in (access_denied: End-User aborted interaction).";
    assert!(said.contains(cancelled), "{said}");
    picture(&mut browser, "cancelled").await;
    let console = browser.does("console", true).await;
    let blocked = console["console"]
        .to_string()
        .contains("Content Security Policy");
    assert!(!blocked, "the page keeps to its own policy: {console}");

    // From there it goes on.
    let at = browser.click("a").await;
    assert!(at.starts_with(&yard.provider.issuer()), "{at}");
    give(&mut browser, "bob", "builder").await;
    let said = main(&mut browser).await;
    assert!(
        said.contains("This account is not on the list of those who may sign in"),
        "{said}"
    );
    assert!(yard.user("bob").await.is_none());

    // Back once more to where one came from: the sign-in is over.
    let (status, _) = browser.goto(&at_callback(&yard)).await;
    assert_eq!(status, 400);
    picture(&mut browser, "unknown").await;

    // The provider is frozen: an answer in time, and nobody else is held up.
    yard.provider.restart().await;
    yard.provider.signal("STOP");
    restart(&mut yard).await;
    let begun = Instant::now();
    let start = yard.url("/api/login/oidc");
    let (answer, others) = tokio::join!(browser.goto(&start), async {
        for _ in 0..20 {
            yard.admin.get("/api/admin/users").await.expect(200);
        }
        begun.elapsed()
    });
    assert_eq!(answer.0, 502);
    assert!(others < seconds(5), "{others:?}");
    assert!(begun.elapsed() < seconds(6), "{:?}", begun.elapsed());
    yard.provider.signal("CONT");

    // It is gone.
    yard.provider.stop().await;
    restart(&mut yard).await;
    let (status, _) = browser.goto(&start).await;
    assert_eq!(status, 502);
    let said = main(&mut browser).await;
    assert!(
        said.contains("The identity provider cannot be used now; try again soon"),
        "{said}"
    );
    assert!(!said.contains("127.0.0.1"), "{said}");
    picture(&mut browser, "away").await;
    let (status, parts) = yard.admin.readiness().await;
    let line = parts
        .lines()
        .find(|line| line.contains("identity provider"));
    let shown = line.is_some_and(|line| line.contains("could not be used at the last sign-in"));
    assert!(status == 503 || status == 200);
    assert!(shown, "{parts}");
    yard.service.admin().await;
    let log = yard.service.log();
    assert!(
        log.contains("the identity provider can't be reached"),
        "{log}"
    );
    for secret in [
        "a secret & more",
        "a+secret",
        "wonder land",
        "builder",
        "code=",
        "state=",
    ] {
        assert!(!log.contains(secret), "{secret}");
    }
}

fn at_callback(yard: &Yard) -> String {
    yard.url("/api/login/oidc/callback?state=a-state-of-long-ago&code=c")
}

/// A service that has not asked the provider yet.
async fn restart(yard: &mut Yard) {
    yard.service.terminate();
    yard.service.ended().await;
    yard.service = serve(&yard.stage, yard.port).await;
    yard.admin = yard.service.admin().await;
}
