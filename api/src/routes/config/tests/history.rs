//! What saves changed, and going back.

use super::*;

const HISTORY: &str = "/api/admin/config/history";

impl Admin {
    async fn history(&self, query: &str) -> Value {
        let path = format!("{HISTORY}{query}");
        let answer = self.yard.get(&path).with("root", &self.cookie).send();
        let answer = answer.await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }

    async fn roll_back(&self, revision: i64, more: &[(&str, &str)]) -> Answer {
        let revision = revision.to_string();
        let form: Vec<_> = [("revision", revision.as_str())]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        let ask = self.yard.post("/api/admin/config/rollback", &form);
        ask.with("root", &self.cookie).send().await
    }
}

#[tokio::test]
async fn l21_every_save_is_told_with_who_and_what_but_no_secret() {
    let admin = admin().await;
    admin
        .save(&json!({"image.tag": "2", "image.registry_password": "hunter2"}))
        .await;
    admin.save(&json!({})).await;
    admin.save(&json!({"image.tag": "3"})).await;
    let listing = admin.history("").await;
    assert!(!listing.to_string().contains("hunter"), "{listing}");
    let history = &listing["history"];
    assert_eq!(
        history[0]["changes"],
        json!([{"key": "image.tag", "old": "2", "new": "3"}])
    );
    let second = (&history[0]["revision"], &history[0]["actor"]);
    assert_eq!(second, (&json!(3), &json!("root")));
    assert_eq!(
        history[1]["changes"],
        json!([
            {"key": "image.registry_password", "old": null, "new": MASK},
            {"key": "image.tag", "old": null, "new": "2"},
        ])
    );
    let pages = (&listing["total"], &listing["page_size"]);
    assert_eq!(pages, (&json!(2), &json!(20)));
    assert_eq!(admin.history("?search=password").await["total"], 1);
    let last = admin.history("?page=9&page_size=1").await;
    assert_eq!(last["history"][0]["revision"], 2);
}

#[tokio::test]
async fn l21_going_back_leaves_secrets_as_they_are_now() {
    let admin = admin().await;
    let first = json!({
        "image.tag": "1",
        "image.registry_password": "old",
        "security": {"token": "old"},
        "agent": {"model": {"api_key": "old", "name": "large"}},
    });
    assert_eq!(admin.save(&first).await.body["generation"], 2);
    let second = json!({
        "image.tag": null,
        "image.pull_policy": "always",
        "image.registry_password": "new",
        "security": {"token": "new", "more": "new"},
        "agent": {"model": {"api_key": "new", "name": "small"}},
    });
    assert_eq!(admin.save(&second).await.body["generation"], 3);
    let dry = admin.roll_back(2, &[("dry_run", "1")]).await;
    let changed = json!(["agent", "image.pull_policy", "image.tag"]);
    assert_eq!((dry.status.as_u16(), &dry.body["changed"]), (200, &changed));
    assert_eq!(dry.body["restarts"], 2, "agents' files follow from it");
    assert_eq!(admin.read().await.headers[GENERATION], "3");

    let back = admin.roll_back(2, &[("if_generation", "3")]).await;
    assert_eq!(back.status, 202, "{back:?}");
    assert_eq!(
        (&back.body["changed"], &back.body["generation"]),
        (&changed, &json!(4))
    );
    assert_eq!(admin.stored("image.tag").await, Some(json!("1")));
    assert_eq!(admin.stored("image.pull_policy").await, None);
    assert_eq!(
        admin.stored("agent").await,
        Some(json!({"model": {"api_key": "new", "name": "large"}}))
    );
    assert_eq!(
        admin.stored("image.registry_password").await,
        Some(json!("new"))
    );
    assert_eq!(
        admin.stored("security").await,
        Some(json!({"token": "new", "more": "new"}))
    );
    // It is a save like any other: it can be undone the same way.
    let again = admin.roll_back(3, &[]).await;
    assert_eq!(again.body["changed"], changed);
    assert_eq!(admin.stored("image.tag").await, None);
    let revisions = admin.history("").await["total"].clone();
    assert_eq!(revisions, 4);
}

#[tokio::test]
async fn what_a_mask_stood_for_and_is_gone_refuses_the_whole() {
    let admin = admin().await;
    admin
        .save(&json!({"agent": {"model": {"api_key": "old"}}, "image.tag": "1"}))
        .await;
    admin.save(&json!({"agent": null, "image.tag": "2"})).await;
    let answer = admin.roll_back(2, &[]).await;
    assert_eq!(answer.verdict(), (422, "invalid_config"));
    let said = answer.body["error"].as_str().unwrap();
    assert!(said.contains("/model/api_key"), "{said}");
    assert_eq!(admin.stored("image.tag").await, Some(json!("2")));
    assert_eq!(admin.read().await.headers[GENERATION], "3");
}

#[tokio::test]
async fn unknown_revisions_are_told_apart() {
    let admin = admin().await;
    admin.save(&json!({"image.tag": "2"})).await;
    assert_eq!(admin.roll_back(3, &[]).await.verdict(), (404, "not_found"));
    let before = admin.roll_back(0, &[]).await;
    assert_eq!(before.verdict(), (409, "history_too_short"));
    let stale = admin.roll_back(1, &[("if_generation", "1")]).await;
    assert_eq!(stale.verdict(), (412, "stale_generation"));
    let present = admin.roll_back(2, &[]).await;
    assert_eq!(
        (&present.body["changed"], &present.body["generation"]),
        (&json!([]), &json!(2))
    );
    let ask = admin
        .yard
        .post("/api/admin/config/rollback", &[("revision", "x")]);
    let answer = ask.with("root", &admin.cookie).send().await;
    assert_eq!(answer.verdict(), (400, "invalid_parameter"));
    assert_eq!(answer.body["field"], "revision");
}

#[tokio::test]
async fn the_network_stays_while_containers_exist_when_going_back_too() {
    let admin = admin().await;
    let uids: Vec<_> = ["alice", "bob"].into();
    for name in uids {
        let uid = admin.yard.find(name).await.unwrap().uid;
        let mut tx = admin.yard.tx().await;
        let stopped = container::Desired::Stopped;
        container::set_desired(&mut tx, &uid, stopped, false, None)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
    let change = json!({"container.network_subnet": "10.99.0.0/16"});
    assert_eq!(admin.save(&change).await.status, 202);
    admin.yard.create_user("carol").await;
    assert_eq!(
        admin.roll_back(1, &[]).await.verdict(),
        (409, "network_in_use")
    );
}

#[tokio::test]
async fn forms_can_be_made_from_the_schema() {
    let admin = admin().await;
    let ask = admin.yard.get("/api/admin/config/schema");
    let answer = ask.with("root", &admin.cookie).send().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let keys = &answer.body["schema"]["properties"];
    let password = &keys["oidc"]["properties"]["client_secret"];
    assert_eq!(password["secret"], true);
    let policy = &keys["mcp"]["properties"]["policy"];
    assert_eq!(policy["title"], "MCP policy");
    let modes = &policy["properties"]["browser"]["properties"]["mode"]["enum"];
    assert_eq!(modes, &json!(["off", "read-only", "auto"]));
    assert_eq!(keys["security"]["secret"], true);
    let memory = &keys["container"]["properties"]["memory_limit_mb"];
    assert_eq!(
        (&memory["type"], &memory["default"], &memory["secret"]),
        (&json!("integer"), &json!(1024), &json!(false))
    );
    assert!(memory["title"].is_string() && memory["description"].is_string());
}

#[tokio::test]
async fn l21_two_pages_that_save_their_own_objects_lose_nothing() {
    let admin = admin().await;
    admin
        .save(&json!({"agent": {"a": 1}, "security": {"s": "1"}}))
        .await;
    let (one, other) = (admin.read().await.body, admin.read().await.body);
    // Each page sends what it shows: its own object, as a whole.
    let agent = json!({"agent": {"a": 2, "b": one["agent"]["a"]}});
    assert_eq!(admin.save(&agent).await.status, 202);
    let security = json!({"security": {"s": other["security"]["s"], "t": "2"}});
    assert_eq!(admin.save(&security).await.status, 202);
    assert_eq!(admin.stored("agent").await, Some(json!({"a": 2, "b": 1})));
    assert_eq!(
        admin.stored("security").await,
        Some(json!({"s": "1", "t": "2"}))
    );
}

#[tokio::test]
async fn l72_neither_saving_nor_going_back_sends_a_password_to_another_registry() {
    let admin = admin().await;
    admin.save(&json!({"image.name": "evil.example/a"})).await;
    let own = json!({"image.name": "r.example/a", "image.registry_password": "hunter2"});
    assert_eq!(admin.save(&own).await.body["generation"], 3);
    let shown = admin.read().await.body;
    let mut moved = shown.clone();
    moved["image"]["name"] = json!("evil.example/a");
    for answer in [admin.save(&moved).await, admin.roll_back(2, &[]).await] {
        assert_eq!(answer.verdict(), (422, "invalid_config"));
        let problem = &answer.body["problems"][0];
        let found = (&problem["key"], &problem["code"]);
        let expected = (&json!("image.registry_password"), &json!("secret_required"));
        assert_eq!(found, expected);
    }
    assert_eq!(admin.read().await.body, shown);
    let removed = json!({"image.name": "evil.example/a", "image.registry_password": null});
    assert_eq!(admin.save(&removed).await.status, 200);
    assert_eq!(admin.stored("image.registry_password").await, None);
}

#[tokio::test]
async fn rollback_of_the_mode_is_planned_and_confirmed() {
    let admin = admin().await;
    let ldap = json!({"web.auth_mode": "ldap", "ldap": {"host": "dc.example", "base_dn": "dc=x"}});
    let saved = admin.yard.switch_mode(&admin.cookie, &ldap).await;
    assert_eq!(saved.body["generation"], 2, "{}", saved.text);
    // Nothing is left to remove: neither way needs a confirmation.
    assert_eq!(admin.roll_back(1, &[]).await.body["generation"], 3);
    admin.yard.create_user("carol").await;
    let plan = admin.roll_back(2, &[("dry_run", "1")]).await;
    let purge = &plan.body["purge"];
    assert_eq!(
        (&purge["names"], &purge["from"], &purge["to"]),
        (&json!(["carol"]), &json!("local"), &json!("ldap"))
    );
    let refused = admin.roll_back(2, &[]).await;
    assert_eq!(refused.verdict(), (409, "confirmation_required"));
    assert_eq!(refused.body["purge"], *purge);
    assert!(admin.yard.find("carol").await.unwrap().deleted_at.is_none());
    *admin.yard.world.directory.check.lock().unwrap() = (None, 0);
    let confirm = purge["confirm"].as_str().unwrap();
    let refused = admin.roll_back(2, &[("confirm", confirm)]).await;
    assert_eq!(refused.verdict(), (409, "auth_test_failed"));
    let forced = [("confirm", confirm), ("force", "1")];
    let saved = admin.roll_back(2, &forced).await;
    assert_eq!(saved.body["generation"], 4, "{}", saved.text);
    assert!(admin.yard.find("carol").await.unwrap().deleted_at.is_some());
}
