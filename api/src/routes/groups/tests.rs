use serde_json::{Value, json};

use crate::routes::yard::{Answer, Yard, yard};

async fn post(yard: &Yard, root: &str, path: &str, form: &[(&str, &str)]) -> Answer {
    let path = format!("/api/admin/groups/{path}");
    yard.post(&path, form).with("root", root).send().await
}

async fn listed(yard: &Yard, root: &str) -> Vec<(String, Option<String>, i64)> {
    let answer = yard
        .get("/api/admin/groups")
        .with("root", root)
        .send()
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.body["unified_auth"].is_boolean(), "{answer:?}");
    let groups = answer.body["groups"].as_array().unwrap();
    let name_of = |id: &Value| {
        let group = groups.iter().find(|group| group["id"] == *id)?;
        Some(group["name"].as_str()?.to_owned())
    };
    groups
        .iter()
        .map(|group| {
            let name = group["name"].as_str().unwrap().to_owned();
            let count = group["member_count"].as_i64().unwrap();
            (name, name_of(&group["parent_id"]), count)
        })
        .collect()
}

#[tokio::test]
async fn groups_are_a_tree_that_administrators_change() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    for (name, parent) in [
        ("company", ""),
        ("engineering", "company"),
        ("backend", "engineering"),
    ] {
        let form = [
            ("name", name),
            ("parent_id", parent),
            ("description", "people"),
        ];
        let answer = post(&yard, &root, "create", &form).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    // Names are unique without regard to case, and composed.
    let taken = post(&yard, &root, "create", &[("name", "Company")]).await;
    assert_eq!(taken.verdict(), (409, "already_exists"));
    for bad in ["", "a/b", "a\\b", "..", " a", "a\u{7}", &"x".repeat(129)] {
        let answer = post(&yard, &root, "create", &[("name", bad)]).await;
        assert_eq!(answer.verdict(), (400, "invalid_parameter"), "{bad:?}");
    }
    let orphan = [("name", "x"), ("parent_id", "nobody")];
    let orphan = post(&yard, &root, "create", &orphan).await;
    assert_eq!(orphan.verdict(), (404, "not_found"));

    let form = [("group_name", "Backend"), ("usernames", "alice\nbob")];
    let added = post(&yard, &root, "members/add", &form).await;
    assert_eq!(added.status, 200, "{added:?}");
    assert_eq!(
        listed(&yard, &root).await,
        [
            ("backend".to_owned(), Some("engineering".to_owned()), 2),
            ("company".to_owned(), None, 0),
            ("engineering".to_owned(), Some("company".to_owned()), 0),
        ]
    );
    let members = "/api/admin/groups/members?name=company";
    let members = yard.get(members).with("root", &root).send().await;
    assert_eq!(members.body["members"], json!([]));
    let inherited =
        json!([{"username": "alice", "via": "backend"}, {"username": "bob", "via": "backend"}]);
    assert_eq!(members.body["inherited_members"], inherited);
    let users = yard
        .get("/api/admin/users")
        .with("root", &root)
        .send()
        .await;
    assert_eq!(users.body["users"][0]["groups"], json!(["backend"]));

    // L14: no circle, whichever way it is closed.
    for parent in ["backend", "engineering", "company"] {
        let form = [("group_name", "company"), ("parent_id", parent)];
        let answer = post(&yard, &root, "move", &form).await;
        assert_eq!(answer.verdict(), (422, "group_cycle"), "{parent}");
    }
    let form = [("group_name", "backend"), ("parent_id", "")];
    assert_eq!(post(&yard, &root, "move", &form).await.status, 200);
    let deleted = post(&yard, &root, "delete", &[("name", "company")]).await;
    assert_eq!(deleted.status, 200, "{deleted:?}");
    assert_eq!(
        listed(&yard, &root).await,
        [
            ("backend".to_owned(), None, 2),
            ("engineering".to_owned(), None, 0),
        ]
    );
}

#[tokio::test]
async fn members_are_added_all_or_none() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    post(&yard, &root, "create", &[("name", "team")]).await;
    let form = [("group_name", "team"), ("usernames", "alice,nobody,b/d")];
    let answer = post(&yard, &root, "members/add", &form).await;
    assert_eq!(answer.verdict(), (400, "invalid_parameter"));
    let error = answer.body["error"].as_str().unwrap();
    assert!(
        error.contains("nobody") && !error.contains("b/d"),
        "{error}"
    );
    assert_eq!(listed(&yard, &root).await[0].2, 0);
    // A superadmin is in no group.
    let form = [("group_name", "team"), ("usernames", "root")];
    let answer = post(&yard, &root, "members/add", &form).await;
    assert_eq!(answer.verdict(), (400, "invalid_parameter"));
    let form = [
        ("group_name", "team"),
        ("usernames", "alice"),
        ("dry_run", "1"),
    ];
    let dry = post(&yard, &root, "members/add", &form).await;
    assert_eq!(dry.status, 200, "{dry:?}");
    assert_eq!(listed(&yard, &root).await[0].2, 0);
    let form = [("group_name", "team"), ("username", "alice")];
    let gone = post(&yard, &root, "members/remove", &form).await;
    assert_eq!(gone.verdict(), (404, "not_found"));
    let form = [("group_name", "team"), ("usernames", "alice")];
    post(&yard, &root, "members/add", &form).await;
    let form = [("group_name", "team"), ("username", "ALICE")];
    let removed = post(&yard, &root, "members/remove", &form).await;
    assert_eq!(removed.status, 200, "{removed:?}");
    let audit = yard
        .get("/api/admin/audit")
        .with("root", &root)
        .send()
        .await;
    let actions: Vec<&str> = audit.body["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["object"] == "group/team")
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    let expected = [
        "groups_members_remove",
        "groups_members_add",
        "groups_create",
    ];
    assert_eq!(actions, expected);
}

#[tokio::test]
async fn l6_the_next_bearer_of_a_name_is_in_no_group() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    post(&yard, &root, "create", &[("name", "team")]).await;
    let form = [("group_name", "team"), ("usernames", "alice")];
    post(&yard, &root, "members/add", &form).await;
    let mut tx = yard.tx().await;
    let alice = yard.find("alice").await.unwrap();
    schema::user::delete(&mut tx, &alice.uid, crate::testing::NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(listed(&yard, &root).await[0].2, 0);
}

#[tokio::test]
async fn groups_of_a_directory_are_not_changed_by_hand() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    let mut tx = yard.tx().await;
    let new = schema::group::NewGroup {
        name: "staff".parse().unwrap(),
        parent_uid: None,
        source: schema::user::Source::Ldap,
        description: String::new(),
    };
    let ldap = schema::config::parse_patch(&serde_json::json!({"web.auth_mode": "ldap"}));
    let changes = ldap
        .unwrap()
        .resolve(&schema::config::Config::default())
        .unwrap();
    let key = &yard.world.deps.master_key;
    let saved = schema::config::query::save(&mut tx, key, &changes, None, crate::testing::BY);
    saved.await.unwrap();
    schema::group::create(&mut tx, &new, crate::testing::NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    for (path, form) in [
        ("delete", vec![("name", "staff")]),
        ("move", vec![("group_name", "staff")]),
        (
            "members/add",
            vec![("group_name", "staff"), ("usernames", "alice")],
        ),
        (
            "members/remove",
            vec![("group_name", "staff"), ("username", "alice")],
        ),
    ] {
        let answer = post(&yard, &root, path, &form).await;
        assert_eq!(answer.verdict(), (403, "mode_forbidden"), "{path}");
    }
}

#[tokio::test]
async fn groups_choose_whose_files_and_images_are_changed() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    post(&yard, &root, "create", &[("name", "top")]).await;
    post(
        &yard,
        &root,
        "create",
        &[("name", "low"), ("parent_id", "top")],
    )
    .await;
    let form = [("group_name", "low"), ("usernames", "bob")];
    post(&yard, &root, "members/add", &form).await;
    let apply = |group: &'static str| yard.post("/api/admin/config/apply", &[("group", group)]);
    let answer = apply("top").with("root", &root).send().await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(answer.body["total"], 1);
    let id = answer.body["task_id"].as_str().unwrap();
    let task = format!("/api/admin/task/status?task_id={id}");
    let task = yard.get(&task).with("root", &root).send().await;
    assert_eq!(task.body["total"], 1, "{task:?}");
    let nobody = apply("nobody").with("root", &root).send().await;
    assert_eq!(nobody.verdict(), (404, "not_found"));

    let upgrade = |form: Value| yard.post_json("/api/admin/images/upgrade", &form);
    let form = json!({"tag": "2", "groups": ["top"]});
    let answer = upgrade(form).with("root", &root).send().await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(answer.body["total"], 1);
    let form = json!({"tag": "2", "groups": ["top"], "all": true});
    let both = upgrade(form).with("root", &root).send().await;
    assert_eq!(both.verdict(), (400, "invalid_parameter"));
    let path = "/api/admin/images/upgrade-candidates?tag=9";
    let candidates = yard.get(path).with("root", &root).send().await;
    assert_eq!(
        candidates.body["groups"],
        json!([{"name": "low", "count": 1}])
    );
    assert_eq!(candidates.body["users"][1]["groups"], "low");
}
