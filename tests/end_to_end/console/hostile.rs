//! Answers with strings that want to be more than text.

use serde_json::json;

use super::Viewer;
use crate::support::{Engine, Stage, seconds};

/// Markup, a terminal's escape and a change of direction.
const HOSTILE: &str = "<img src=x onerror=document.title='hit'>\u{1b}[31m\u{202e}";

impl Viewer {
    /// Opens a page whose answers contain hostile strings, and checks that it shows them as text.
    async fn check_hostile(&mut self, path: &str) {
        self.open_page(path, path).await;
        self.wait_for("text=<img src=x").await;
        let images = "document.querySelectorAll('img[src=x]').length";
        let found = self.browser.does("own", images).await;
        assert_eq!(found["value"], 0, "{path}");
        let title = self.browser.does("own", "document.title").await;
        assert_ne!(title["value"], "hit", "{path}");
    }

    /// Checks files and forms, as the user sees them.
    async fn check_own_pages(&mut self, part: &str) {
        let quoted = &format!("\"{part}\"");
        self.browser.does("forget", true).await;
        self.open_page("/login", "/login").await;
        self.sign_in("victim", "a password of victim").await;
        self.wait_for_path("/manage").await;
        let csrf = self.browser.does("fetch", json!(["/api/csrf"])).await;
        let form = json!({"csrf_token": csrf["body"]["csrf_token"]});
        let upload = json!(["/api/files/upload", form, [["notes.txt", "a line"]]]);
        let sent = self.browser.does("fetch", upload).await;
        assert_eq!(sent["status"], 200, "{sent}");
        for (from, to) in [
            ("notes.txt", part),
            ("a line", part),
            ("\"Enabled\"", quoted),
        ] {
            let rule = json!(["**/api/{files,agent}**", from, to]);
            self.browser.does("replace", rule).await;
        }
        for path in [
            "/manage/files",
            "/manage/files/open?path=notes.txt",
            "/manage/channels/dingtalk",
        ] {
            self.check_hostile(path).await;
        }
        assert_eq!(self.read_complaints().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn engine_console_shows_hostile_strings_as_text() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    let form = [
        ("username", "victim"),
        ("password", "a password of victim"),
        ("wait", "0"),
    ];
    admin.post("/api/admin/users/create", &form).await.pending();
    admin.status("victim", "running", seconds(40)).await;
    let mut viewer = Viewer::open(format!("http://{}", service.address())).await;
    viewer.open_page("/login", "/login").await;
    viewer.sign_in("admin", service.password()).await;
    viewer.wait_for_path("/admin/dashboard").await;
    let long = json!(format!("{HOSTILE}{}", "x".repeat(10_000))).to_string();
    let part = json!(HOSTILE).to_string();
    let part = part.trim_matches('"');
    for (from, to) in [
        ("\"victim\"", long.as_str()),
        ("echo:1", part),
        ("directory of", part),
        ("client web", part),
    ] {
        let rule = json!(["**/api/admin/**", from, to]);
        viewer.browser.does("replace", rule).await;
    }
    let lines = json!([
        "**/container/logs*",
        "text/event-stream",
        format!("data: {HOSTILE}\n\n")
    ]);
    viewer.browser.does("answer", lines).await;
    for path in [
        "/admin/users",
        "/admin/users/victim",
        "/admin/users/victim/log",
        "/admin/containers",
        "/admin/reconcile/container/victim",
        "/admin/images",
        "/admin/events",
        "/admin/audit",
    ] {
        viewer.check_hostile(path).await;
    }
    assert_eq!(viewer.read_complaints().await, Vec::<String>::new());
    viewer.check_own_pages(part).await;
}
