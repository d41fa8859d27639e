//! Changes for many users, made and taken back in the console.

use std::fs;

use super::Viewer;
use crate::rollouts::{create_users, make_images, refusal};
use crate::support::{Engine, Service, Stage};

/// A repository of the registry of the tests with two images: all agents start with `old`, and one that
/// refuses does not with `new`.
struct Repository {
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
        Self { name }
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
    let launch = stage.serve_with(engine.host(), "old");
    let service = launch.set("image.name", &repository.name).start().await;
    let admin = service.admin().await;
    let users = create_users(&admin, 5).await;
    fs::write(refusal(&stage, &users[2]), "").unwrap();
    let mut viewer = Viewer::open_overview(&service).await;
    viewer.wait_for("h1:has-text('5 of 5 agents are ready')").await;

    viewer.click_on("role=link[name='Images']").await;
    viewer.click_on("role=link[name='In the registry']").await;
    let new = format!("{}:new", repository.name);
    viewer
        .click_on(&format!("role=button[name='Pull {new}']"))
        .await;
    viewer.wait_for(&format!("text={new} pulled")).await;
    viewer.click_on("role=link[name='Upgrade candidates']").await;
    viewer.wait_for("text=5 users do not have").await;
    viewer.open_page("/admin/rollouts/new?image=new", "/admin/rollouts/new?image=new").await;
    viewer.click_on("role=radio[name='All users']").await;
    viewer.wait_for("text=5 running agents restart").await;
    viewer.click_on("role=button[name=/^Move 5 users to/]").await;

    viewer.wait_for("h1 >> text=/Move users to/").await;
    viewer
        .wait_for(&format!("text=Paused: {}’s agent did not become ready.", users[2]))
        .await;
    viewer
        .wait_for(&format!(
            "[aria-label='Last lines of {}'] >> text=refused by the test",
            users[2]
        ))
        .await;
    viewer.click_on("role=button[name='Roll back']").await;
    viewer.wait_for("role=dialog >> text=2 users return to their previous images").await;
    viewer.click_on("role=dialog >> role=button[name='Return 2 users']").await;
    viewer.wait_for("text=The users have their previous images again.").await;
    for user in &users {
        admin.status(user, "running", crate::support::seconds(40)).await;
    }

    // The image that all have stays, and the page says who has it.
    viewer.open_page("/admin/images", "/admin/images").await;
    let old = format!("{}:old", repository.name);
    viewer.click_on(&format!("role=button[name='Actions for {old}']")).await;
    viewer.click_on(&format!("role=menuitem[name='Delete {old}…']")).await;
    viewer
        .wait_for(&format!("role=dialog >> text={old} cannot be deleted: 5 users have it."))
        .await;
    viewer.wait_for(&format!("role=dialog >> role=link[name='{}']", users[4])).await;
    assert_eq!(viewer.read_complaints().await, Vec::<String>::new());
}
