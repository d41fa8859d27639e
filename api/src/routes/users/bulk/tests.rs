use serde_json::{Value, json};

use crate::routes::test_support::{Yard, yard};

const BULK: &str = "/api/admin/users/bulk";

async fn several() -> Yard {
    let yard = yard().await;
    for name in ["alice", "bob", "carol", "dave"] {
        yard.user(name).await;
    }
    yard.post("/api/admin/users/disable", "username=carol&wait=0")
        .await
        .is(202);
    yard.post("/api/admin/container/stop", "username=bob&wait=0")
        .await
        .is(202);
    yard.post("/api/admin/users/delete", "username=dave&wait=0")
        .await
        .is(202);
    yard.post("/api/admin/groups/create", "name=staff")
        .await
        .is(200);
    yard.post(
        "/api/admin/groups/members/add",
        "group_name=staff&usernames=alice",
    )
    .await
    .is(200);
    yard
}

/// Users to whom it applies, and the codes of the others by name.
fn outcome(body: &Value) -> (String, Value) {
    let names: Vec<_> = body["users"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    let skipped = body["skipped_users"].as_array().unwrap().iter();
    let skipped = skipped.map(|user| {
        (
            user["username"].as_str().unwrap().to_owned(),
            user["code"].clone(),
        )
    });
    (names.join(" "), Value::Object(skipped.collect()))
}

#[tokio::test]
async fn dry_run_says_to_whom_an_action_applies() {
    let yard = several().await;
    let dave = ("dave", "name_being_removed");
    for (form, users, skipped) in [
        (
            "action=start",
            "bob",
            vec![
                ("alice", "already_started"),
                ("carol", "account_disabled"),
                dave,
            ],
        ),
        (
            "action=stop",
            "alice carol",
            vec![("bob", "already_stopped"), dave],
        ),
        (
            "action=restart",
            "alice bob",
            vec![("carol", "account_disabled"), dave],
        ),
        (
            "action=disable",
            "alice bob",
            vec![("carol", "already_disabled"), dave],
        ),
        (
            "action=enable",
            "carol",
            vec![
                ("alice", "already_enabled"),
                ("bob", "already_enabled"),
                dave,
            ],
        ),
        ("action=delete", "alice bob carol", vec![dave]),
        (
            "action=add-to-group&group=staff",
            "bob carol",
            vec![("alice", "already_member"), dave],
        ),
        (
            "action=remove-from-group&group=staff",
            "alice",
            vec![("bob", "not_a_member"), ("carol", "not_a_member"), dave],
        ),
        ("action=move-image&image=v2", "alice bob carol", vec![dave]),
    ] {
        let body = yard
            .post(BULK, &format!("{form}&filter={{}}&dry_run=true"))
            .await
            .is(200);
        let expected: Value = skipped
            .iter()
            .map(|(name, code)| ((*name).to_owned(), json!(code)))
            .collect();
        assert_eq!(outcome(&body), (users.to_owned(), expected), "{form}");
        assert_eq!(body["skipped"], skipped.len());
        assert_eq!(
            (&body["dry_run"], &body["task_id"]),
            (&json!(true), &Value::Null)
        );
        let archive = &body["archive"]["directory"];
        assert_eq!(
            archive == "<user>-<time>",
            form == "action=delete",
            "{archive}"
        );
    }
    assert_eq!(yard.get("/api/admin/tasks").await.is(200)["total"], 0);
    let some = yard
        .post(
            BULK,
            "action=stop&filter={\"status\":\"stopping\",\"disabled\":true}&dry_run=1",
        )
        .await;
    assert_eq!(outcome(&some.is(200)).0, "carol");
    let named = yard
        .post(BULK, "action=stop&users=nobody,ALICE,alice,a:b&dry_run=1")
        .await
        .is(200);
    assert_eq!(
        outcome(&named),
        (
            "alice".to_owned(),
            json!({"nobody": "not_found", "a:b": "not_found"})
        )
    );
}

#[tokio::test]
async fn each_user_of_an_action_has_a_result() {
    let yard = several().await;
    for (form, object, total) in [
        ("action=restart&users=alice,bob", "container/", 2),
        ("action=stop&users=alice,bob", "container/", 2),
        ("action=start&filter={\"disabled\":false}", "container/", 2),
        (
            "action=add-to-group&group=staff&users=bob,carol",
            "skill-set/",
            2,
        ),
        (
            "action=remove-from-group&group=staff&users=bob",
            "skill-set/",
            1,
        ),
        ("action=disable&users=bob", "container/", 1),
        ("action=enable&users=bob", "container/", 1),
        (
            "action=move-image&image=v2&users=alice,bob",
            "container/",
            2,
        ),
        ("action=delete&users=alice,bob", "user/", 2),
    ] {
        let body = yard.post(BULK, form).await.is(202);
        assert_eq!(
            (&body["total"], &body["state"]),
            (&json!(total), &json!("pending")),
            "{form}"
        );
        let task = &yard.get("/api/admin/tasks?page_size=1").await.is(200)["tasks"][0];
        assert_eq!(task["id"], body["task_id"], "{form}");
        let results = task["results"].as_array().unwrap();
        assert_eq!(results.len(), total, "{form}");
        let named = |result: &Value| result["object"].as_str().unwrap().starts_with(object);
        assert!(results.iter().all(named), "{form}: {results:?}");
    }
    let entries = yard
        .get("/api/admin/audit?action=users_bulk&object=user/bob")
        .await
        .is(200);
    assert_eq!(entries["total"], 9, "{entries}");
    let bob = yard.account("bob").await.unwrap();
    assert!(bob.deleted_at.is_some() && !bob.disabled);
    let none = yard.post(BULK, "action=start&users=alice").await.is(200);
    assert_eq!(
        (&none["state"], &none["total"]),
        (&json!("converged"), &json!(0))
    );
}

#[tokio::test]
async fn stopping_in_bulk_names_author_and_time() {
    let yard = several().await;
    yard.post(BULK, "action=stop&users=alice&expect_total=2")
        .await
        .fails(409, "changed_meanwhile");
    yard.post(BULK, "action=stop&users=alice&expect_total=1")
        .await
        .is(202);
    yard.post(BULK, "action=disable&users=bob").await.is(202);
    let users = yard.get("/api/admin/users").await.is(200);
    for (at, reason) in [(0, "stopped"), (1, "disabled")] {
        let standstill = &users["users"][at]["standstill"];
        assert_eq!(
            (&standstill["reason"], &standstill["by"]),
            (&json!(reason), &json!("root"))
        );
    }
}

#[tokio::test]
async fn bad_requests_change_nothing() {
    let yard = several().await;
    for (form, field) in [
        ("action=jump&users=alice", "action"),
        ("action=stop", "users"),
        ("action=stop&users=alice&filter={}", "users"),
        ("action=stop&filter=x", "filter"),
        ("action=stop&filter=[]", "filter"),
        ("action=stop&filter={\"called\":\"a\"}", "called"),
        ("action=stop&filter={\"sort\":\"name\"}", "sort"),
        ("action=stop&filter={\"status\":\"x\"}", "status"),
        ("action=stop&users=alice&group=staff", "group"),
        ("action=add-to-group&users=alice", "group"),
        ("action=stop&users=alice&image=v1", "image"),
        (
            "action=stop&users=alice&max_unavailable=2",
            "max_unavailable",
        ),
        ("action=move-image&users=alice", "image"),
        ("action=move-image&users=alice&image=a%20b", "image"),
        (
            "action=move-image&users=alice&image=v1&max_unavailable=0",
            "max_unavailable",
        ),
    ] {
        for dry_run in ["", "&dry_run=true"] {
            let body = yard.post(BULK, &format!("{form}{dry_run}")).await;
            assert_eq!(
                body.fails(400, "invalid_parameter")["field"],
                field,
                "{form}"
            );
        }
    }
    yard.post(BULK, "action=add-to-group&group=none&users=alice")
        .await
        .fails(404, "not_found");
    assert_eq!(yard.get("/api/admin/tasks").await.is(200)["total"], 0);
}
