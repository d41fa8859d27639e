//! The console of the real program, in Chromium.

mod budgets;
mod changes;
mod chat;
mod firefox;
mod hostile;
mod looks;
mod sweep;
mod user_pages;
mod users;

use serde_json::json;

use crate::support::node::Browser;
use crate::support::{Engine, Service, Stage, seconds};

/// Name of the service in the browser: an address over plain HTTP that is not localhost.
const NAME: &str = "agentyard.test";

const PASSWORD: &str = "a password of ann";

/// Creates the user `ann`, and waits until her agent is running.
async fn create_ann(service: &Service) {
    let admin = service.admin().await;
    let form = [("username", "ann"), ("password", PASSWORD)];
    admin.post("/api/admin/users/create", &form).await;
    admin.status("ann", "running", seconds(40)).await;
}

/// A browser that looks at the console.
struct Viewer {
    browser: Browser,
    base: String,
}

impl Viewer {
    /// Opens a browser in which the service has a name, as it has for most users.
    async fn open(base: String) -> Self {
        let base = base.replace("127.0.0.1", NAME);
        let browser = Browser::open().await;
        Self { browser, base }
    }

    async fn open_firefox(base: String) -> Self {
        let base = base.replace("127.0.0.1", NAME);
        let browser = Browser::open_firefox().await;
        Self { browser, base }
    }

    /// Opens a path, and waits for the path that it leads to.
    async fn open_page(&mut self, path: &str, leads_to: &str) {
        let url = format!("{}{path}", self.base);
        self.browser.goto(&url).await;
        self.wait_for_path(leads_to).await;
    }

    async fn wait_for_path(&mut self, path: &str) {
        let url = format!("{}{path}", self.base);
        self.browser.does("at", url).await;
    }

    async fn wait_for(&mut self, selector: &str) {
        self.browser.does("see", selector).await;
    }

    async fn click_on(&mut self, selector: &str) {
        self.browser.click(selector).await;
    }

    async fn sign_in(&mut self, name: &str, password: &str) {
        self.browser.fill("input[name=username]", name).await;
        self.browser.fill("input[type=password]", password).await;
        self.click_on("button[type=submit]").await;
    }

    /// Complaints of the browser, such as a violated policy; refused requests, and those while no service runs, are expected.
    async fn read_complaints(&mut self) -> Vec<String> {
        let said = self.browser.does("console", true).await;
        let said: Vec<String> = serde_json::from_value(said["console"].clone()).unwrap();
        let expected = [
            "Failed to load resource: the server responded with a status of",
            "Failed to load resource: net::ERR_CONNECTION_REFUSED",
            // The service was killed before it answered.
            "Failed to load resource: net::ERR_EMPTY_RESPONSE",
            "Failed to load resource: net::ERR_CONNECTION_RESET",
            // Containers come and go in the network of the browser.
            "Failed to load resource: net::ERR_NETWORK_CHANGED",
        ];
        said.into_iter()
            .filter(|line| !expected.iter().any(|begin| line.starts_with(begin)))
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
        .open_page(
            "/admin/users?ready=false",
            "/login?next=/admin/users%3Fready%3Dfalse",
        )
        .await;
    viewer.sign_in("admin", "a wrong password").await;
    viewer.wait_for("[role=alert]").await;
    viewer.sign_in("admin", service.password()).await;
    viewer.wait_for_path("/admin/users?ready=false").await;
    viewer.click_on("role=button[name='Create users']").await;
    viewer
        .browser
        .fill("role=dialog >> textarea", "alice, a password of alice")
        .await;
    viewer.click_on("role=dialog >> button[type=submit]").await;
    viewer.wait_for("role=dialog >> text=1 user created").await;
    viewer
        .click_on("role=dialog >> role=button[name='Close'] >> nth=-1")
        .await;
    viewer.open_page("/admin/users", "/admin/users").await;
    viewer.wait_for("tr:has-text('alice') >> text=Ready").await;
    viewer.click_on("role=link[name='alice']").await;
    viewer.wait_for_path("/admin/users/alice").await;
    viewer.wait_for("h1:has-text('alice')").await;
    viewer.wait_for("text=Same from the terminal").await;
    viewer.click_on("role=link[name='Log']").await;
    viewer.wait_for("text=echo 1 start").await;
    assert_eq!(viewer.read_complaints().await, Vec::<String>::new());

    viewer.browser.does("forget", json!(true)).await;
    viewer.open_page("/", "/login").await;
    viewer.sign_in("alice", "a password of alice").await;
    viewer.wait_for_path("/manage").await;
    viewer.open_page("/manage/agent", "/manage/agent").await;
    viewer
        .wait_for("h1:has-text('Your agent is running')")
        .await;
    let since = engine.now();
    viewer.click_on("role=button[name='Restart']").await;
    viewer.wait_for("text=restarted").await;
    viewer
        .wait_for("h1:has-text('Your agent is running')")
        .await;
    let happened = engine.happened("alice", &since);
    let starts = happened.iter().filter(|event| event.action == "start");
    assert_eq!(starts.count(), 1, "{happened:?}");
    viewer.open_page("/admin/users", "/manage").await;
    assert_eq!(viewer.read_complaints().await, Vec::<String>::new());
}
