//! The console in Firefox.

use super::{PASSWORD, Viewer, create_ann};
use crate::support::{Engine, Stage};

impl Viewer {
    async fn sign_in_by_firefox(&mut self, name: &str, password: &str, leads_to: &str) {
        let url = format!("{}/login", self.base);
        self.browser.does("goto", url).await;
        self.sign_in(name, password).await;
        self.wait_for_path(leads_to).await;
    }

    async fn show_pages(&mut self, paths: &[(&str, &str)]) {
        for (path, shown) in paths {
            let url = format!("{}{path}", self.base);
            self.browser.does("goto", url).await;
            self.wait_for(&format!("::-p-text({shown})")).await;
        }
    }
}

#[tokio::test]
async fn engine_console_works_in_firefox() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    create_ann(&service).await;
    let base = format!("http://{}", service.address());
    let mut viewer = Viewer::open_firefox(base.clone()).await;
    viewer
        .sign_in_by_firefox("admin", service.password(), "/admin/dashboard")
        .await;
    viewer
        .show_pages(&[
            ("/admin/dashboard", "1 of 1 agent is ready"),
            ("/admin/users", "1 user"),
            ("/admin/users/ann", "Nothing to do: all is as desired."),
            ("/admin/users/ann/log", "echo 1 start"),
            ("/admin/config?section=image", "image.name"),
        ])
        .await;
    assert_eq!(viewer.read_complaints().await, Vec::<String>::new());
    let mut viewer = Viewer::open_firefox(base).await;
    viewer.sign_in_by_firefox("ann", PASSWORD, "/manage").await;
    viewer
        .show_pages(&[
            ("/manage/log", "echo 1 start"),
            ("/manage/files", "drop files here"),
            ("/manage/connect", "How to connect the desktop client"),
            ("/manage/agent", "Your agent is running"),
        ])
        .await;
    viewer.click_on("::-p-text(Restart)").await;
    viewer.wait_for("::-p-text(restarted)").await;
    assert_eq!(viewer.read_complaints().await, Vec::<String>::new());
}
