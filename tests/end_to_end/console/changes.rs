//! Changes for many users, made and taken back in the console.

use std::fs;

use serde_json::json;
use tokio::time::Instant;

use super::Viewer;
use crate::rollouts::{create_users, make_images, refusal};
use crate::support::{Engine, Service, Stage, eventually, seconds};

/// A repository of the registry of the tests with two images: all agents start with `old`, and one that
/// refuses does not with `new`.
struct Repository {
    registry: String,
    name: String,
}

impl Repository {
    fn publish(stage: &Stage, engine: &Engine) -> Self {
        make_images(stage, engine, &["published"]);
        let registry = std::env::var("AGENTYARD_TEST_REGISTRY").unwrap();
        let unique = stage.path().file_name().unwrap().to_str().unwrap();
        let name = format!("{registry}/{}", unique.to_lowercase());
        for (local, tag) in [("echo:1", "old"), ("echo:published", "new")] {
            let image = format!("{name}:{tag}");
            engine.docker(&["tag", local, &image]);
            engine.docker(&["push", "-q", &image]);
        }
        engine.docker(&["rmi", &format!("{name}:new")]);
        Self { registry, name }
    }

    /// The image of a tag as the console names it: without the registry.
    fn shown(&self, tag: &str) -> String {
        let name = self.name.strip_prefix(&self.registry).unwrap();
        format!("{}:{tag}", name.trim_start_matches('/'))
    }
}

impl Viewer {
    /// Signs in as the superadmin, and waits for the overview.
    async fn open_overview(service: &Service) -> Self {
        let mut viewer = Self::open(format!("http://{}", service.address())).await;
        viewer.open_page("/login", "/login").await;
        viewer.sign_in("admin", service.password()).await;
        viewer.wait_for_path("/admin/dashboard").await;
        viewer
    }
}

#[tokio::test]
async fn engine_console_moves_five_users_and_returns_them() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let repository = Repository::publish(&stage, &engine);
    let launch = stage.serve_with(&engine, "old");
    let service = launch
        .set("image.name", &repository.name)
        .set(
            "image.registry_plain_http",
            &json!([repository.registry]).to_string(),
        )
        .start()
        .await;
    let admin = service.admin().await;
    let users = create_users(&admin, 5).await;
    fs::write(refusal(&stage, &users[2]), "").unwrap();
    let mut viewer = Viewer::open_overview(&service).await;
    viewer
        .wait_for("h1:has-text('5 of 5 agents are ready')")
        .await;

    viewer.click_on("role=link[name='Images']").await;
    viewer.click_on("role=link[name='In the registry']").await;
    let new = repository.shown("new");
    viewer
        .click_on(&format!("role=button[name='Pull {new}']"))
        .await;
    viewer.wait_for(&format!("text={new} pulled")).await;
    viewer
        .click_on("role=link[name='Upgrade candidates']")
        .await;
    viewer.wait_for("text=5 users do not have").await;
    viewer
        .open_page(
            "/admin/rollouts/new?image=new",
            "/admin/rollouts/new?image=new",
        )
        .await;
    viewer.click_on("role=radio[name='All users']").await;
    viewer.wait_for("text=5 running agents restart").await;
    viewer
        .click_on("role=button[name=/^Move 5 users to/]")
        .await;

    viewer.wait_for("h1 >> text=/Move users to/").await;
    viewer
        .wait_for(&format!(
            "text=Paused: {}’s agent did not become ready.",
            users[2]
        ))
        .await;
    viewer
        .wait_for(&format!(
            "[aria-label='Last lines of {}'] >> text=refused by the test",
            users[2]
        ))
        .await;
    viewer.click_on("role=button[name='Roll back…']").await;
    viewer
        .wait_for("role=dialog >> text=2 users return to their previous images")
        .await;
    viewer
        .click_on("role=dialog >> role=button[name='Return 2 users']")
        .await;
    viewer
        .wait_for("text=The users have their previous images again.")
        .await;
    for user in &users {
        admin.status(user, "running", seconds(40)).await;
    }

    // The image that all have stays, and the page says who has it.
    viewer.open_page("/admin/images", "/admin/images").await;
    let old = repository.shown("old");
    viewer
        .click_on(&format!("tr:has-text('{old}') >> role=button"))
        .await;
    viewer
        .click_on(&format!("role=menuitem[name=/Delete .*{old}…/]"))
        .await;
    viewer
        .wait_for(&format!(
            "role=dialog >> text=/{old} cannot be deleted: 5 users have it/"
        ))
        .await;
    viewer
        .wait_for(&format!("role=dialog >> role=link[name='{}']", users[4]))
        .await;
    assert_eq!(viewer.read_complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn engine_console_takes_a_setting_back_that_breaks_an_agent() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let launch = stage.serve(&engine).set("container.max_unavailable", "1");
    let service = launch.start().await;
    let admin = service.admin().await;
    let users = create_users(&admin, 5).await;
    let home = stage.data().join("users").join(&users[2]);
    let crash = home.join(".agent/crash");
    fs::write(&crash, "").unwrap();
    // While a container is replaced there are two.
    let limit = |user: &str| match engine.of(user).as_slice() {
        [only] => engine.inspect(&only.id)["HostConfig"]["PidsLimit"].as_u64(),
        _ => None,
    };

    let mut viewer = Viewer::open_overview(&service).await;
    viewer.click_on("role=link[name='Settings']").await;
    let field = "role=textbox[name='Process limit']";
    viewer.browser.fill(field, "1").await;
    viewer.click_on("role=button[name='Review 1 change']").await;
    viewer.wait_for("text=1 value cannot be saved").await;
    viewer.browser.fill(field, "300").await;
    viewer.click_on("role=button[name='Review 1 change']").await;
    viewer
        .wait_for("role=dialog >> text=5 agents restart")
        .await;
    viewer
        .wait_for("role=dialog >> role=link[name='user5']")
        .await;
    viewer
        .click_on("role=dialog >> role=button[name='Save and restart 5 agents']")
        .await;
    viewer
        .wait_for("text=1 agent is not ready with revision 3")
        .await;
    viewer.wait_for("role=link[name='user3']").await;
    assert_eq!(limit(&users[1]), Some(300));
    assert_eq!(limit(&users[4]), Some(512));

    fs::remove_file(&crash).unwrap();
    viewer
        .click_on("role=button[name='Roll back to revision 2…']")
        .await;
    viewer
        .click_on("role=dialog >> role=button[name=/^Roll back and restart/]")
        .await;
    viewer.wait_for("text=Agents get revision 4").await;
    for user in &users {
        let taken_back = eventually("the limit is as before", seconds(60), async || {
            let now = limit(user);
            if now == Some(512) {
                Ok(())
            } else {
                Err(format!("{user}: {now:?}"))
            }
        });
        taken_back.await;
    }
    viewer.click_on("role=link[name='History']").await;
    viewer.wait_for("role=link[name='Open revision 4']").await;
    assert_eq!(viewer.read_complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn engine_console_tells_faults_and_their_remedies_work() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage
        .serve(&engine)
        .set("container.probe_interval", "1s")
        .set("container.probe_failures", "2")
        .start()
        .await;
    let admin = service.admin().await;
    let users = create_users(&admin, 2).await;
    let mut viewer = Viewer::open_overview(&service).await;
    viewer
        .wait_for("h1:has-text('2 of 2 agents are ready')")
        .await;

    engine.stop();
    let began = Instant::now();
    let fault = "li:has-text('The container engine cannot be reached')";
    viewer.wait_for(&format!("{fault} >> text=local")).await;
    eprintln!("engine stopped: shown after {:?}", began.elapsed());
    engine.start();
    viewer
        .click_on(&format!("{fault} >> nth=0 >> role=button"))
        .await;
    viewer.browser.does("gone", fault).await;
    viewer
        .wait_for("h1:has-text('2 of 2 agents are ready')")
        .await;

    // It hangs, and does not start again.
    let home = stage.data().join("users").join(&users[0]);
    let crash = home.join(".agent/crash");
    fs::write(&crash, "").unwrap();
    let stop = "kill -STOP $(pidof httpd)";
    engine.docker(&["exec", "agentyard-user1", "sh", "-c", stop]);
    let began = Instant::now();
    admin
        .event("container/user1", "Unresponsive", seconds(15))
        .await;
    eprintln!("agent hung: noticed after {:?}", began.elapsed());
    viewer
        .wait_for("li:has-text('The agent ends soon after each start') >> role=link[name='user1']")
        .await;
    fs::remove_file(&crash).unwrap();
    viewer
        .click_on("li:has-text('The agent ends soon') >> role=button[name='Retry now']")
        .await;
    viewer
        .wait_for("h1:has-text('2 of 2 agents are ready')")
        .await;

    // The registry wants a password that the settings do not have.
    let registry = std::env::var("AGENTYARD_TEST_REGISTRY_AUTH").unwrap();
    let form = [(
        "config",
        format!(r#"{{"image.name":"{registry}/agent","image.pull_policy":"missing"}}"#),
    )];
    let form: Vec<(&str, &str)> = form.iter().map(|(key, value)| (*key, &**value)).collect();
    admin.post("/api/config", &form).await.expect(200);
    let form = [("username", "later"), ("wait", "0")];
    admin.post("/api/admin/users/create", &form).await.pending();
    let began = Instant::now();
    let fault = "li:has-text('The image cannot be pulled')";
    viewer
        .wait_for(&format!("{fault} >> text=no basic auth credentials"))
        .await;
    eprintln!("registry refused: shown after {:?}", began.elapsed());
    viewer
        .click_on(&format!(
            "{fault} >> nth=0 >> role=link[name='image.registry_username']"
        ))
        .await;
    viewer
        .wait_for("[id='image.registry_username'] input")
        .await;
    assert_eq!(viewer.read_complaints().await, Vec::<String>::new());
}
