//! The administrator's pages about users.

use schema::clock::{Clock as _, SystemClock};
use schema::container::Desired;
use schema::db::{Backend, Db};
use schema::ids::Uid;
use schema::user::{self, NewUser, Source};
use secrecy::SecretString;

use super::Viewer;
use crate::support::{Engine, Stage, long};

/// Users of the list's longest page test.
const MANY: usize = 10_000;

/// Opens `/admin/users` as the superadmin.
async fn open_users(base: String, password: &str) -> Viewer {
    let mut viewer = Viewer::open(base).await;
    viewer
        .open_page("/admin/users", "/login?next=/admin/users")
        .await;
    viewer.sign_in("admin", password).await;
    viewer.wait_for_path("/admin/users").await;
    viewer
}

impl Viewer {
    /// Checks that the last interaction made one request, and prints how long it took to the next paint.
    async fn check_one_request(&mut self, interaction: &str) {
        let seen = self.browser.does("asked", true).await;
        let asked = seen["asked"].as_array().unwrap();
        // Without an engine the tags of images are asked for again.
        let asked = asked
            .iter()
            .filter(|path| !path.as_str().unwrap().contains("/local-tags"));
        assert_eq!(asked.count(), 1, "{interaction}: {seen}");
        eprintln!("{interaction}: {} ms to the next paint", seen["paint"]);
    }
}

#[tokio::test]
async fn engine_console_restarts_many_and_mends_one() {
    let engine = Engine::claim();
    let stage = Stage::new();
    engine.docker(&["create", "--name", "agentyard-u6", "echo:1"]);
    let service = stage.serve(&engine).start().await;
    let address = service.address();
    let password = service.password().to_owned();
    let mut viewer = open_users(format!("http://{address}"), &password).await;
    viewer.click_on("role=button[name='Create users']").await;
    let count = if long() { 20 } else { 6 };
    let names: Vec<_> = (1..=count).map(|number| format!("u{number}")).collect();
    viewer
        .browser
        .fill("role=dialog >> textarea", &names.join("\n"))
        .await;
    viewer.click_on("role=dialog >> button[type=submit]").await;
    viewer
        .wait_for(&format!("role=dialog >> text={count} users created"))
        .await;
    viewer
        .click_on("role=dialog >> role=button[name='Close'] >> nth=-1")
        .await;

    // One has a name that a foreign container has taken; the list finds it by its state.
    viewer
        .open_page("/admin/users?not_ready=true", "/admin/users?not_ready=true")
        .await;
    viewer.wait_for("text=1 user · 1 not ready").await;
    viewer
        .wait_for("tr:has-text('u6') >> text=Something of this name")
        .await;

    viewer.open_page("/admin/users", "/admin/users").await;
    viewer
        .wait_for(&format!("text={count} users · 1 not ready"))
        .await;
    let before = engine.the_running("u1");
    viewer
        .click_on("role=checkbox[name='Select all on this page']")
        .await;
    viewer.click_on("role=button[name='Restart…']").await;
    viewer
        .click_on(&format!(
            "role=dialog >> role=button[name='Restart {count} agents']"
        ))
        .await;
    viewer
        .wait_for(&format!(
            "[role=status]:has-text('Restart agents') >> text={} of {count} done, 1 failed",
            count - 1
        ))
        .await;
    assert_ne!(engine.the_running("u1").id, before.id);

    viewer.click_on("role=link[name='u6']").await;
    viewer.wait_for("h1:has-text('u6')").await;
    viewer.wait_for("text=agentyard-u6").await;
    engine.docker(&["rm", "agentyard-u6"]);
    viewer.click_on("role=button[name='Retry now']").await;
    viewer.wait_for("text=Ready").await;

    // What was typed outlives the service.
    viewer.click_on("role=link[name='Limits']").await;
    viewer
        .browser
        .fill("role=textbox[name='Memory, in MiB']", "300")
        .await;
    service.kill9().await;
    viewer.wait_for("text=no connection").await;
    let service = stage
        .serve(&engine)
        .listen(&address.to_string())
        .start()
        .await;
    viewer.wait_for("text=live").await;
    viewer.click_on("role=button[name='Save limits']").await;
    viewer.wait_for("text=Limits of u6 saved").await;
    let admin = service.admin().await;
    let u6 = admin.object("container/u6").await;
    assert_eq!(u6["desired"]["memory_limit_mb"], 300, "{u6}");

    // Browsers give a host six connections; all tabs share one stream.
    let url = format!("{}/admin/users/u1", viewer.base);
    viewer
        .browser
        .does("tabs", serde_json::json!([7, url]))
        .await;
    viewer.open_page("/admin/users/u1", "/admin/users/u1").await;
    viewer.browser.does("everywhere", "text=live").await;
    admin
        .post("/api/admin/container/stop", &[("username", "u1")])
        .await
        .converged();
    viewer.browser.does("everywhere", "text=Stopped").await;
    assert_eq!(viewer.read_complaints().await, Vec::<String>::new());
}

/// Records users in the service's database.
async fn fill(stage: &Stage) {
    let backend = Backend::Sqlite(stage.data().join("agentyard.db"));
    let db = Db::open(backend).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    for number in 1..=MANY {
        let new = NewUser {
            uid: Uid::random(),
            name: format!("user{number:05}").parse().unwrap(),
            source: Source::Local,
            password_hash: Some(SecretString::from("x")),
            image_ref: "echo:1".to_owned(),
            desired: Desired::Stopped,
        };
        user::create(&mut tx, &new, SystemClock.now())
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn console_pages_filters_and_opens_ten_thousand_users() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let password = service.password().to_owned();
    let admin = service.admin().await;
    for reconciler in ["user", "container", "agent-config", "skill-set"] {
        let form = [("reconciler", reconciler)];
        admin
            .post("/api/admin/reconcile/pause", &form)
            .await
            .expect(200);
    }
    service.kill9().await;
    fill(&stage).await;
    let service = stage.alone().start().await;
    let mut viewer = open_users(format!("http://{}", service.address()), &password).await;
    viewer.wait_for("text=10,000 users").await;
    viewer.browser.does("asked", true).await;
    let heading = "role=columnheader[name='Name'] >> button";
    viewer.click_on(heading).await;
    viewer.check_one_request("sort").await;
    viewer.click_on(heading).await;
    viewer.wait_for("text=user10000").await;
    viewer.check_one_request("sort again").await;
    viewer.click_on("role=button[name='Next page']").await;
    viewer.check_one_request("next page").await;
    let rows = "document.querySelectorAll('tbody tr').length";
    let rows = viewer.browser.does("own", rows).await;
    assert!(rows["value"].as_u64().unwrap() <= 200, "{rows}");
    viewer.browser.fill("role=searchbox", "user0777").await;
    viewer.wait_for("text=user07779").await;
    viewer.check_one_request("search").await;
    viewer.click_on("role=link[name='user07777']").await;
    viewer.wait_for_path("/admin/users/user07777").await;
    viewer.wait_for("h1:has-text('user07777')").await;
    assert_eq!(viewer.read_complaints().await, Vec::<String>::new());
}
