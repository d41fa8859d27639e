//! What is there: on the engine, with users, at the registry.

use std::sync::Mutex;

use schema::image::ImageReference;
use secrecy::ExposeSecret;
use serde_json::json;

use super::*;
use crate::ports::{RegistryCredentials, RegistryError, RegistryTags};

fn shelf() -> Vec<LocalImage> {
    vec![
        local('1', &["registry:5000/agent:v1"], 300),
        local(
            '2',
            &["registry:5000/agent:v2", "registry:5000/agent:latest"],
            200,
        ),
        local('3', &["busybox:latest"], 100),
        // What a tag meant before it was pulled anew.
        local('4', &[], 400),
    ]
}

#[tokio::test]
async fn images_are_listed_with_who_has_them() {
    let yard = stocked(Some(shelf())).await;
    for name in ["alice", "Bob", "carol"] {
        yard.user(name).await;
    }
    give(&yard, "alice", "registry:5000/agent:latest", Some(id('4'))).await;
    give(&yard, "carol", "registry:5000/agent:v2", Some(id('2'))).await;
    let list = yard.get("/api/admin/images").await.is(200);
    let ids = fields(&list["images"], "full_id");
    assert_eq!(ids, [id('2'), id('1'), id('4')], "newest first");
    assert_eq!(
        list["images"][1],
        json!({
            "id": "111111111111", "full_id": id('1'), "repo_tags": ["registry:5000/agent:v1"],
            "size": 80_000_000, "size_str": "80.0 MB", "created": "2026-05-11T11:41:40Z",
            "created_str": "2026-05-11 11:41", "user_count": 1, "users": ["Bob"],
        })
    );
    assert_eq!(list["images"][0]["users"], json!(["carol"]));
    assert_eq!(list["images"][2]["users"], json!(["alice"]));
    let all = yard.get("/api/admin/images?all=true").await.is(200);
    assert_eq!(
        (&all["total"], &all["images"][0]["user_count"]),
        (&json!(4), &json!(0))
    );
    let some = yard.get("/api/admin/images?all=no").await.is(200);
    assert_eq!(some["total"], 3);
    let page = "/api/admin/images?page=1&page_size=1&search=AGENT:V";
    let page = yard.get(page).await.is(200);
    assert_eq!(
        (&page["total"], &page["total_pages"]),
        (&json!(2), &json!(2))
    );
    let tags = yard.get("/api/admin/images/local-tags").await.is(200);
    assert_eq!(tags["tags"], json!(["v2", "v1", "latest"]));
    assert_eq!(tags["repository"], OURS);
}

#[tokio::test]
async fn without_the_engine_nobody_can_say_what_it_has() {
    let yard = stocked(None).await;
    for path in ["images", "images/local-tags"] {
        let path = format!("/api/admin/{path}");
        yard.get(&path).await.fails(503, "engine_unavailable");
    }
    yard.get("/api/admin/images/users?image=v1").await.is(200);
    yard.get("/api/admin/images/pulls").await.is(200);
}

#[tokio::test]
async fn users_are_found_by_their_image_and_by_what_they_lack() {
    let yard = stocked(None).await;
    for name in ["alice", "bob", "carol"] {
        yard.user(name).await;
    }
    give(&yard, "carol", "registry:5000/agent:v2", Some(id('2'))).await;
    give(&yard, "bob", "registry:5000/agent:v1", Some(id('4'))).await;
    let names = async |query: &str| {
        let body = yard
            .get(&format!("/api/admin/images/{query}"))
            .await
            .is(200);
        let names = fields(&body["users"], "username").into_iter();
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names("users?image=v1").await, ["alice", "bob"]);
    assert_eq!(names(&format!("users?image={}", id('2'))).await, ["carol"]);
    assert_eq!(names("users?image=222222222222").await, ["carol"]);
    assert_eq!(names("users?image=busybox:latest").await, [""; 0]);
    assert_eq!(names("users?image=v1&search=LIC").await, ["alice"]);
    assert_eq!(names("upgrade-candidates?tag=v2").await, ["alice", "bob"]);
    assert_eq!(names("upgrade-candidates?tag=v1").await, ["carol"]);
    // The tag was pulled once more, and bob has what it meant before.
    let mut tx = yard.world.db.begin().await.unwrap();
    let v1 = "registry:5000/agent:v1";
    let (uid, _) = schema::image::request_pull(&mut tx, v1, "1", None, NOW)
        .await
        .unwrap();
    let facts = schema::image::ImageFacts {
        image_id: Some(id('1')),
        ..Default::default()
    };
    schema::image::save_facts(&mut tx, &uid, &facts)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(names("upgrade-candidates?tag=v1").await, ["bob", "carol"]);
    let body = yard
        .get("/api/admin/images/upgrade-candidates?tag=v1")
        .await;
    let body = body.is(200);
    assert_eq!(body["target"], v1);
    assert_eq!(
        body["users"][1],
        json!({"username": "carol", "image": "registry:5000/agent:v2", "image_id": id('2'), "status": "starting", "groups": ""})
    );
    assert_eq!(body["groups"], json!([]));
    let users = yard.get("/api/admin/users").await.is(200);
    let ready = users["users"].as_array().unwrap().iter();
    let ready: Vec<bool> = ready
        .map(|user| user["image_ready"].as_bool().unwrap())
        .collect();
    assert_eq!(ready, [false, true, true], "a pinned image is known");
}

#[tokio::test]
async fn users_of_a_moved_tag_are_the_same_for_all_routes() {
    let yard = stocked(Some(shelf())).await;
    for name in ["alice", "bob", "carol", "dave", "erin"] {
        yard.user(name).await;
    }
    let ours = |tag: &str| format!("{OURS}:{tag}");
    give(&yard, "alice", &ours("v1"), Some(id('4'))).await;
    give(&yard, "bob", &ours("v1"), Some(id('1'))).await;
    give(&yard, "carol", &ours("v2"), Some(id('2'))).await;
    give(&yard, "dave", &ours("latest"), Some(id('2'))).await;
    give(&yard, "erin", &ours("latest"), None).await;
    let cases: [(String, &[&str]); 6] = [
        ("v1".into(), &["alice", "bob"]),
        (id('1'), &["bob"]),
        (id('4'), &["alice"]),
        ("latest".into(), &["carol", "dave", "erin"]),
        (id('2'), &["carol", "dave", "erin"]),
        (id('2')[7..19].into(), &["carol", "dave", "erin"]),
    ];
    for (image, expected) in cases {
        let path = format!("/api/admin/images/users?image={image}");
        let users = yard.get(&path).await.is(200);
        assert_eq!(fields(&users["users"], "username"), expected, "{image}");
        let form = format!("image={image}&target=v9&dry_run=true");
        let moved = yard.post("/api/admin/images/migrate", &form).await.is(200);
        assert_eq!(moved["users"], json!(expected), "{image}");
        let form = format!("image={image}&dry_run=true&force=true");
        let kept = yard.post("/api/admin/images/delete", &form).await.is(409);
        assert_eq!(kept["users"], json!(expected), "{image}");
    }
    let list = yard.get("/api/admin/images").await.is(200);
    assert_eq!(list["images"][0]["users"], json!(["carol", "dave", "erin"]));
    let candidates = yard
        .get("/api/admin/images/upgrade-candidates?tag=v1")
        .await;
    let candidates = candidates.is(200);
    let names = fields(&candidates["users"], "username");
    assert_eq!(
        names,
        ["alice", "carol", "dave", "erin"],
        "what was moved by hand"
    );
}

/// A registry that remembers what it was asked.
#[derive(Default)]
struct Asked(Mutex<Vec<String>>);

#[async_trait]
impl RegistryTags for Asked {
    async fn tags(
        &self,
        image: &ImageReference,
        credentials: Option<RegistryCredentials>,
        plain_http: bool,
    ) -> Result<Vec<String>, RegistryError> {
        let who =
            credentials.map(|sent| format!("{}:{}", sent.username, sent.password.expose_secret()));
        let asked = format!("{} {who:?} {plain_http}", image.name());
        self.0.lock().unwrap().push(asked);
        if image.registry() == "broken.example" {
            let sentence = "the registry broken.example can't be reached; check the network";
            return Err(RegistryError(sentence.to_owned()));
        }
        Ok(["v0.9", "latest", "v0.10"].map(str::to_owned).to_vec())
    }
}

#[tokio::test]
async fn l38_tags_of_the_registry_come_newest_first_and_are_remembered() {
    let registry = Arc::new(Asked::default());
    let mut yard = yard().await;
    yard.deps().registry = registry.clone();
    let password = json!("hunter2-password");
    configure(
        &yard,
        &[
            ("image.name", OURS.into()),
            ("image.registry_username", "robot".into()),
            ("image.registry_password", password),
            ("image.registry_plain_http", json!(["registry:5000"])),
        ],
    )
    .await;
    let get = async |query: &str| {
        yard.get(&format!("/api/admin/images/registry{query}"))
            .await
    };
    let body = get("").await.is(200);
    assert_eq!(body["tags"], json!(["v0.10", "v0.9", "latest"]));
    assert_eq!(body["repository"], OURS);
    let page = get("?page=2&page_size=2").await.is(200);
    assert_eq!(
        (&page["tags"], &page["total"]),
        (&json!(["latest"]), &json!(3))
    );
    assert_eq!(registry.0.lock().unwrap().len(), 1, "asked once");
    get("?refresh").await.is(200);
    get("?image=other.example/agent").await.is(200);
    let failed = get("?image=broken.example/agent").await;
    let failed = failed.fails(502, "remote_failed");
    let sentence = failed["error"].as_str().unwrap();
    assert!(sentence.contains("broken.example"), "{sentence}");
    get("?image=broken.example/agent").await.is(502);
    configure(&yard, &[("image.registry_username", "other".into())]).await;
    get("").await.is(200);
    assert_eq!(
        *registry.0.lock().unwrap(),
        [
            "registry:5000/agent Some(\"robot:hunter2-password\") true",
            "registry:5000/agent Some(\"robot:hunter2-password\") true",
            "other.example/agent None false",
            "broken.example/agent None false",
            "broken.example/agent None false",
            "registry:5000/agent Some(\"other:hunter2-password\") true",
        ]
    );
}

#[tokio::test]
async fn images_of_agents_bear_the_names_by_which_users_got_them() {
    let yard = nodes(&['1', '2']).await;
    yard.user("alice").await;
    let tag = format!("{OURS}:v1");
    give(&yard, "alice", &tag, Some(format!("{OURS}@{}", id('1')))).await;
    let list = yard.get("/api/admin/images").await.is(200);
    assert_eq!(list["note"], "images of agents");
    assert_eq!(list["removal"], "kubelets remove images");
    let images = list["images"].as_array().unwrap();
    assert_eq!(images.len(), 2, "{list}");
    let used = images
        .iter()
        .find(|image| image["id"] == "111111111111")
        .unwrap();
    assert_eq!(used["repo_tags"], json!([tag]));
    assert_eq!(used["users"], json!(["alice"]));
    assert_eq!(
        (&used["size_str"], &used["created_str"]),
        (&json!("unknown"), &json!("unknown"))
    );
    // It is found by the beginning of its digest and by the whole id.
    for named in [
        "111111111111".to_owned(),
        id('1'),
        format!("{OURS}@{}", id('1')),
    ] {
        let body = format!("image={named}&target=v2&dry_run=1");
        let plan = yard.post("/api/admin/images/migrate", &body).await.is(200);
        assert_eq!(plan["users"], json!(["alice"]), "{named}");
    }
}
