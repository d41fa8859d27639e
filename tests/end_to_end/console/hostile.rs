//! Answers with strings that want to be more than text.

use serde_json::json;

use super::Viewer;
use crate::support::Stage;

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
}

#[tokio::test]
async fn console_shows_hostile_strings_as_text() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let admin = service.admin().await;
    let form = [
        ("username", "victim"),
        ("password", "a password of victim"),
        ("wait", "0"),
    ];
    admin.post("/api/admin/users/create", &form).await.pending();
    let mut viewer = Viewer::open(format!("http://{}", service.address())).await;
    viewer.open_page("/login", "/login").await;
    viewer.sign_in("admin", service.password()).await;
    viewer.wait_for("h1").await;
    let long = json!(format!("{HOSTILE}{}", "x".repeat(10_000))).to_string();
    let part = json!(HOSTILE).to_string();
    let part = part.trim_matches('"');
    for (from, to) in [("\"victim\"", long.as_str()), ("engine is", part)] {
        let rule = json!(["**/api/admin/**", from, to]);
        viewer.browser.does("replace", rule).await;
    }
    for path in [
        "/admin/users",
        "/admin/users/victim",
        "/admin/events",
        "/admin/audit",
    ] {
        viewer.check_hostile(path).await;
    }
    assert_eq!(viewer.read_complaints().await, Vec::<String>::new());
}
