//! All dialogs, menus and switches under the page's policy.

use super::Viewer;
use crate::support::{Engine, Stage, seconds};

const PASSWORD: &str = "a password of ann";
const CONTROLS: &str = "main button, main [role=switch], main input[type=checkbox]";

impl Viewer {
    /// Uses every control of pages, and checks that the browser has nothing to complain about.
    async fn use_all_controls(&mut self, paths: &[&str]) {
        for path in paths {
            self.open_page(path, path).await;
            self.wait_for("main button").await;
            let opened = self.browser.does("sweep", CONTROLS).await;
            let complaints = self.read_complaints().await;
            assert_eq!(complaints, Vec::<String>::new(), "{path}: {opened}");
        }
    }
}

#[tokio::test]
async fn engine_console_opens_dialogs_without_a_violation() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    let form = [("username", "ann"), ("password", PASSWORD)];
    admin.post("/api/admin/users/create", &form).await;
    admin.status("ann", "running", seconds(40)).await;
    let mut viewer = Viewer::open(format!("http://{}", service.address())).await;
    viewer.open_page("/login", "/login").await;
    viewer.sign_in("ann", PASSWORD).await;
    viewer.wait_for_path("/manage").await;
    viewer
        .use_all_controls(&[
            "/manage",
            "/manage/files",
            "/manage/connect",
            "/manage/channels/dingtalk",
            "/manage/account",
        ])
        .await;
    viewer.browser.does("forget", true).await;
    viewer.open_page("/login", "/login").await;
    viewer.sign_in("admin", service.password()).await;
    viewer.wait_for_path("/admin/dashboard").await;
    viewer
        .use_all_controls(&[
            "/admin/users",
            "/admin/users/ann",
            "/admin/users/ann/limits",
        ])
        .await;
}
