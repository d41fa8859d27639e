//! All dialogs, menus and switches under the page's policy.

use super::{PASSWORD, Viewer, create_ann};
use crate::support::{Engine, Stage};

const CONTROLS: &str = "main button, main [role=switch], main input[type=checkbox]";

impl Viewer {
    /// Uses every control of pages, of which one is named, and checks that the browser has nothing to complain about.
    async fn use_all_controls(&mut self, paths: &[(&str, &str)]) {
        for (path, last) in paths {
            self.open_page(path, path).await;
            self.wait_for("main button").await;
            let opened = self.browser.does("sweep", CONTROLS).await;
            let names = opened["opened"].as_array().unwrap();
            assert!(names.iter().any(|name| name == last), "{path}: {opened}");
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
    create_ann(&service).await;
    let mut viewer = Viewer::open(format!("http://{}", service.address())).await;
    viewer.open_page("/login", "/login").await;
    viewer.sign_in("ann", PASSWORD).await;
    viewer.wait_for_path("/manage").await;
    viewer
        .use_all_controls(&[
            ("/manage/agent", "Rotate token…"),
            ("/manage/files", "New text file"),
            ("/manage/connect", "Copy address"),
            ("/manage/channels/dingtalk", "Cancel"),
            ("/manage/account", "Show or hide what is typed"),
        ])
        .await;
    viewer.browser.does("forget", true).await;
    viewer.open_page("/login", "/login").await;
    viewer.sign_in("admin", service.password()).await;
    viewer.wait_for_path("/admin/dashboard").await;
    viewer
        .use_all_controls(&[
            ("/admin/users", "Delete…"),
            ("/admin/users/ann", "Delete…"),
            ("/admin/containers", "Disabled"),
            ("/admin/superadmins", "Create administrator"),
            ("/admin/images", "Pull an image…"),
            ("/admin/reconcile", "Pause all reconcilers…"),
            ("/admin/reconcile/container/ann", "Pause…"),
        ])
        .await;
}
