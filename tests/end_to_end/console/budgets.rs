//! Limits of what a browser loads before it shows something.

use serde_json::json;

use super::Viewer;
use crate::support::Stage;

/// Most requests before the first content, without streams.
const MOST_REQUESTS: usize = 8;

impl Viewer {
    /// Checks requests and bytes of a page, as compressed, until a selector is in sight.
    async fn check_budget(&mut self, path: &str, selector: &str, kilobytes: u64) {
        let asked = json!([format!("{}{path}", self.base), selector]);
        let weighed = self.browser.does("weigh", asked).await;
        assert_eq!(weighed["elsewhere"], json!([]), "{path}: {weighed}");
        let requests = weighed["requests"].as_array().unwrap().len();
        let bytes = weighed["bytes"].as_u64().unwrap();
        assert!(requests <= MOST_REQUESTS, "{path}: {weighed}");
        assert!(bytes <= kilobytes * 1024, "{path}: {weighed}");
    }
}

#[tokio::test]
async fn console_shows_first_content_after_few_requests() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let mut viewer = Viewer::open(format!("http://{}", service.address())).await;
    viewer
        .check_budget("/login", "input[name=username]", 120)
        .await;
    let (admin, password) = ("admin", service.password().to_owned());
    viewer.open_page("/login", "/login").await;
    viewer.sign_in(admin, &password).await;
    viewer.wait_for("h1").await;
    viewer.check_budget("/admin/users", "h1", 350).await;
    viewer.browser.does("forget", true).await;
    viewer.open_page("/login", "/login").await;
    for _ in 0..11 {
        viewer.sign_in("stranger", "a wrong password").await;
        viewer.wait_for("[role=alert]").await;
    }
    viewer
        .wait_for("[role=alert]:has-text('Too many attempts')")
        .await;
}
