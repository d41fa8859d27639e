//! Pictures of all pages in `target/console`, each page checked against WCAG.

use std::path::PathBuf;

use serde_json::json;

use super::Viewer;
use crate::support::{Engine, Service, Stage, long};

/// The administrator's pages; each file is named after what follows `/admin/`.
const ADMIN: &[&str] = &[
    "dashboard",
    "users",
    "users?ready=false",
    "users/ann",
    "users/ann/log",
    "users/ann/events",
    "users/ann/skills",
    "users/ann/channels",
    "users/ann/limits",
    "users/ann/executors",
    "users/ann/sessions",
    "users/ann/audit",
    "users/bob",
    "groups",
    "groups/staff",
    "superadmins",
    "superadmins/admin",
    "containers",
    "images",
    "images/pulls",
    "images/candidates",
    "config",
    "config?section=ldap",
    "config/history",
    "agent",
    "skills",
    "executors",
    "auth",
    "reconcile",
    "reconcile/objects",
    "reconcile/container/bob",
    "rollouts",
    "rollouts/new?image=2&who=all",
    "tasks",
    "events",
    "audit",
    "archives",
];
/// An ordinary user's pages.
const OWN: &[&str] = &[
    "/manage",
    "/manage/agent",
    "/manage/log",
    "/manage/files",
    "/manage/files/trash",
    "/manage/channels/dingtalk",
    "/manage/chatapp",
    "/manage/connect",
    "/manage/cookies",
    "/manage/skills",
    "/manage/account",
];
/// Name, colour scheme, width and language of a browser.
type Look = (&'static str, &'static str, u32, &'static str);
const LIGHT: Look = ("light", "light", 1280, "en-US");
const OTHERS: &[Look] = &[
    ("dark", "dark", 1280, "en-US"),
    ("narrow", "light", 390, "en-US"),
    ("chinese", "light", 1280, "zh-CN"),
];

impl Viewer {
    async fn take_picture(&mut self, look: Look, path: &str) {
        let name = path.trim_start_matches('/').replace(['/', '?', '='], "-");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("console");
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("{name}-{}.png", look.0));
        self.browser.does("whole", file.to_str().unwrap()).await;
    }

    /// Opens pages in a browser of another look, checks each and takes its picture.
    async fn look_at(&mut self, look: Look, paths: &[String]) {
        let (_, scheme, width, locale) = look;
        let asked = json!({"scheme": scheme, "width": width, "locale": locale});
        self.browser.does("look", asked).await;
        for path in paths {
            self.open_page(path, path).await;
            self.wait_for("h1").await;
            self.browser
                .does("gone", "[aria-busy=true], [data-loading]")
                .await;
            self.check_access(&format!("{path}, {}", look.0)).await;
            self.take_picture(look, path).await;
        }
        assert_eq!(self.read_complaints().await, Vec::<String>::new());
    }

    async fn look_at_all(&mut self, paths: &[String]) {
        self.look_at(LIGHT, paths).await;
        if long() {
            for look in OTHERS {
                self.look_at(*look, paths).await;
            }
        }
    }
}

/// Creates users, one of whom cannot become ready and one is stopped, and a group.
async fn prepare(service: &Service) {
    let admin = service.admin().await;
    for name in ["ann", "bob", "carla", "dev", "erik"] {
        let form = [
            ("username", name),
            ("password", "a password of both"),
            ("wait", "0"),
        ];
        admin.post("/api/admin/users/create", &form).await.pending();
    }
    admin
        .post("/api/admin/groups/create", &[("name", "staff")])
        .await
        .expect(200);
    admin
        .status("ann", "running", crate::support::seconds(40))
        .await;
    let form = [("group_name", "staff"), ("usernames", "ann\ncarla")];
    let added = admin.post("/api/admin/groups/members/add", &form).await;
    assert!(added.status.is_success(), "{}", added.text());
    let form = [("username", "erik")];
    admin
        .post("/api/admin/container/stop", &form)
        .await
        .converged();
}

#[tokio::test]
async fn engine_console_pages_are_accessible_in_pictures() {
    let engine = Engine::claim();
    let stage = Stage::new();
    engine.docker(&["create", "--name", "agentyard-bob", "echo:1"]);
    let service = stage.serve(&engine).start().await;
    prepare(&service).await;
    let mut viewer = Viewer::open(format!("http://{}", service.address())).await;
    viewer.open_page("/login", "/login").await;
    viewer.take_picture(LIGHT, "/login").await;
    viewer.sign_in("admin", service.password()).await;
    viewer.wait_for_path("/admin/dashboard").await;
    let admin: Vec<_> = ADMIN.iter().map(|path| format!("/admin/{path}")).collect();
    viewer.look_at_all(&admin).await;
    viewer.browser.does("forget", true).await;
    viewer.open_page("/login", "/login").await;
    viewer.sign_in("ann", "a password of both").await;
    viewer.wait_for_path("/manage").await;
    let own: Vec<_> = OWN.iter().map(|&path| path.to_owned()).collect();
    viewer.look_at_all(&own).await;
}
