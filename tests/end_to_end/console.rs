//! The console of the real program, in Chromium.

use serde_json::json;

use crate::support::node::Browser;
use crate::support::{Engine, Stage};

/// A browser that looks at the console.
struct Viewer {
    browser: Browser,
    base: String,
}

impl Viewer {
    async fn open(base: String) -> Self {
        let browser = Browser::open().await;
        Self { browser, base }
    }

    /// Opens a path, and waits for the path that it leads to.
    async fn goes(&mut self, path: &str, leads_to: &str) {
        let url = format!("{}{path}", self.base);
        self.browser.goto(&url).await;
        self.is_at(leads_to).await;
    }

    async fn is_at(&mut self, path: &str) {
        let url = format!("{}{path}", self.base);
        self.browser.does("at", url).await;
    }

    async fn sees(&mut self, selector: &str) {
        self.browser.does("see", selector).await;
    }

    async fn clicks(&mut self, selector: &str) {
        self.browser.click(selector).await;
    }

    async fn signs_in(&mut self, name: &str, password: &str) {
        self.browser.fill("input[name=username]", name).await;
        self.browser.fill("input[type=password]", password).await;
        self.clicks("button[type=submit]").await;
    }

    /// Complaints of the browser, such as a violated policy; refused requests are answered by design.
    async fn complaints(&mut self) -> Vec<String> {
        let said = self.browser.does("console", true).await;
        let said: Vec<String> = serde_json::from_value(said["console"].clone()).unwrap();
        let refused = "Failed to load resource: the server responded with a status of";
        said.into_iter()
            .filter(|line| !line.starts_with(refused))
            .collect()
    }
}

#[tokio::test]
async fn engine_console_creates_a_user_who_signs_in_and_restarts() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let mut viewer = Viewer::open(format!("http://{}", service.address())).await;
    viewer
        .goes(
            "/admin/users?ready=false",
            "/login?next=/admin/users%3Fready%3Dfalse",
        )
        .await;
    viewer.signs_in("admin", "a wrong password").await;
    viewer.sees("[role=alert]").await;
    viewer.signs_in("admin", service.password()).await;
    viewer.is_at("/admin/users?ready=false").await;
    viewer.clicks("role=button[name='Create users']").await;
    viewer
        .browser
        .fill("role=dialog >> textarea", "alice, a password of alice")
        .await;
    viewer.clicks("role=dialog >> button[type=submit]").await;
    viewer.sees("role=dialog >> text=1 user created").await;
    viewer
        .clicks("role=dialog >> role=button[name='Close'] >> nth=-1")
        .await;
    viewer.goes("/admin/users", "/admin/users").await;
    viewer.sees("tr:has-text('alice') >> text=Ready").await;
    viewer.clicks("role=link[name='alice']").await;
    viewer.is_at("/admin/users/alice").await;
    viewer.sees("h1:has-text('alice')").await;
    viewer.sees("text=Same from the terminal").await;
    viewer.clicks("role=link[name='Log']").await;
    viewer.sees("text=echo 1 start").await;
    assert_eq!(viewer.complaints().await, Vec::<String>::new());

    viewer.browser.does("forget", json!(true)).await;
    viewer.goes("/", "/login").await;
    viewer.signs_in("alice", "a password of alice").await;
    viewer.is_at("/manage").await;
    viewer.sees("h1:has-text('Your agent is running')").await;
    let since = engine.now();
    viewer.clicks("role=button[name='Restart']").await;
    viewer.sees("text=restarted").await;
    viewer.sees("h1:has-text('Your agent is running')").await;
    let happened = engine.happened("alice", &since);
    let starts = happened.iter().filter(|event| event.action == "start");
    assert_eq!(starts.count(), 1, "{happened:?}");
    viewer.goes("/admin/users", "/manage").await;
    assert_eq!(viewer.complaints().await, Vec::<String>::new());
}
