//! Where users come from, against a real database and a directory that says what it is told to.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::header::{RETRY_AFTER, SET_COOKIE};
use schema::condition::{Condition, Reason};
use schema::directory::{Held, SyncCounts, SyncResult, object_uid};
use schema::ids::{Epoch, Kind};
use schema::object::{self, StatusRow};
use schema::user::Source;
use serde_json::{Value, json};

use crate::ports::{CheckStep, DirectoryFailure, DirectoryPerson, SyncPlan};
use crate::routes::yard::{Answer, PASSWORD, Yard, yard};
use crate::testing::NOW;

const WHITELIST: &str = "/api/admin/whitelist";
const SYNC: &str = "/api/admin/auth/sync-users";

/// A service in ldap mode, and the session of its superadmin.
struct Ldap {
    yard: Yard,
    cookie: String,
}

async fn ldap() -> Ldap {
    let yard = yard().await;
    let mut tx = yard.tx().await;
    object::insert(&mut tx, Kind::Directory, &object_uid(), "users", NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let cookie = yard.sign_in("root").await;
    let settings =
        json!({"web.auth_mode": "ldap", "ldap.host": "dc.example", "ldap.base_dn": "dc=example"});
    let saved = yard.switch_mode(&cookie, &settings).await;
    assert_eq!(saved.status, 202, "{}", saved.text);
    Ldap { yard, cookie }
}

impl Ldap {
    async fn save(&self, config: &Value) -> Answer {
        self.post("/api/config", &[("config", &config.to_string())])
            .await
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Answer {
        self.yard
            .post(path, form)
            .with("root", &self.cookie)
            .send()
            .await
    }

    async fn get(&self, path: &str) -> Answer {
        self.yard.get(path).with("root", &self.cookie).send().await
    }

    /// What the directory says of the next who sign in.
    fn lets_in(&self, name: &str, groups: Option<&[&str]>) {
        *self.yard.world.directory.person.lock().unwrap() = Ok(Some(DirectoryPerson {
            name: name.to_owned(),
            dn: format!("uid={name},dc=example"),
            identity: None,
            groups: groups.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        }));
    }

    /// The same of an entry that is identified.
    fn lets_in_as(&self, name: &str, identity: &str) {
        self.lets_in(name, Some(&["all"]));
        let mut person = self.yard.world.directory.person.lock().unwrap();
        if let Ok(Some(person)) = &mut *person {
            person.identity = Some(identity.to_owned());
        }
    }

    fn lets_nobody_in(&self) {
        *self.yard.world.directory.person.lock().unwrap() = Ok(None);
    }

    async fn groups_of(&self, name: &str) -> Vec<String> {
        let users = self.get(&format!("/api/admin/users?search={name}")).await;
        let groups = &users.body["users"][0]["groups"];
        serde_json::from_value(groups.clone()).unwrap()
    }
}

#[tokio::test]
async fn a_change_of_the_mode_says_what_it_takes_away_and_does_it_once() {
    let yard = yard().await;
    let (root, alice) = (yard.sign_in("root").await, yard.sign_in("alice").await);
    let form = json!({"web.auth_mode": "ldap"}).to_string();
    let save = async |config: &str, name: &str, value: &str| {
        let form = [("config", config), (name, value)];
        yard.post("/api/config", &form)
            .with("root", &root)
            .send()
            .await
    };
    let refused = save(&form, "dry_run", "0").await;
    assert_eq!(refused.verdict(), (422, "invalid_config"));
    let keys: Vec<_> = refused.body["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["key"].clone())
        .collect();
    assert_eq!(keys, ["ldap.host", "ldap.base_dn"]);

    let form = json!({"web.auth_mode": "ldap", "ldap": {"host": "dc.example", "base_dn": "dc=x"}})
        .to_string();
    let plan = save(&form, "dry_run", "1").await;
    let purge = &plan.body["purge"];
    assert_eq!(
        (&purge["users"], &purge["names"]),
        (&json!(2), &json!(["alice", "bob"]))
    );
    assert_eq!(purge["operation"], Value::Null);
    // Another plan has another digest, and confirms nothing.
    let confirm = purge["confirm"].as_str().unwrap();
    for wrong in ["", "1", "true", "ldap", &confirm[1..]] {
        let refused = save(&form, "confirm", wrong).await;
        assert_eq!(refused.verdict(), (409, "confirmation_required"), "{wrong}");
        assert_eq!(refused.body["purge"], *purge);
        let said = format!(
            "users: 2, containers: 2, groups: 0; the users' directories are archived; to confirm this plan, send confirm={confirm}"
        );
        assert!(refused.text.contains(&said), "{}", refused.text);
    }
    assert!(yard.lives(&alice).await, "a refused change changes nothing");

    let saved = save(&form, "confirm", confirm).await;
    let operation = saved.body["purge"]["operation"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(!yard.lives(&alice).await);
    assert!(yard.lives(&root).await);
    for name in ["alice", "bob"] {
        assert_eq!(
            yard.find(name).await.unwrap().deleted_at,
            Some(NOW),
            "{name}"
        );
    }
    let task = yard.get(&format!("/api/admin/task/status?task_id={operation}"));
    let task = task.with("root", &root).send().await;
    assert_eq!(
        (&task.body["type"], &task.body["total"]),
        (&json!("mode_switch"), &json!(2))
    );

    // Saved again, nothing changes, and what is needed cannot be taken away.
    let again = save(&form, "dry_run", "0").await;
    assert_eq!(again.body["purge"], Value::Null);
    let refused = save(&json!({"ldap.host": null}).to_string(), "dry_run", "0").await;
    assert_eq!(refused.verdict(), (422, "invalid_config"));
    // Nobody is created by the old mode any more.
    let refused = yard.post("/api/admin/users/create", &[("username", "carol")]);
    assert_eq!(
        refused.with("root", &root).send().await.verdict(),
        (403, "mode_forbidden")
    );
    let uid = schema::ids::Uid::random();
    let new = schema::user::NewUser {
        uid,
        name: "carol".parse().unwrap(),
        source: Source::Local,
        password_hash: None,
        image_ref: "echo:1".to_owned(),
        desired: schema::container::Desired::Running,
    };
    let late = schema::user::create(&mut yard.tx().await, &new, NOW).await;
    assert!(
        matches!(late, Err(schema::error::DbError::WrongState(_))),
        "{late:?}"
    );
}

#[tokio::test]
async fn switch_is_refused_while_its_source_fails_a_test() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    let bind = CheckStep {
        name: "bind",
        ok: false,
        detail: "dc.example:389 cannot be reached".to_owned(),
        ms: 1,
    };
    let ldap = json!({"web.auth_mode": "ldap", "ldap": {"host": "dc.example", "base_dn": "dc=x"}});
    let oidc = json!({"web.auth_mode": "oidc", "oidc": {
        "provider_url": "https://id.example", "client_id": "yard", "redirect_url": "https://a.example/api/login/oidc/callback",
    }});
    for (config, check, reason) in [
        (
            &ldap,
            (Some(bind), 0),
            "bind: dc.example:389 cannot be reached",
        ),
        (&ldap, (None, 0), "user_search: found 0 users"),
        (&oidc, (None, 1), "discovery: https://id.example"),
    ] {
        *yard.world.directory.check.lock().unwrap() = check;
        let config = config.to_string();
        let save = async |more: &[(&str, &str)]| {
            let form = [&[("config", &*config)], more].concat();
            let ask = yard.post("/api/config", &form);
            ask.with("root", &root).send().await
        };
        let plan = save(&[("dry_run", "1")]).await;
        assert_eq!(plan.status, 200, "{}", plan.text);
        let purge = &plan.body["purge"];
        let problem = purge["problem"].as_str().unwrap();
        assert!(problem.starts_with(reason), "{problem}");
        let confirm = purge["confirm"].as_str().unwrap();
        for confirm in ["", confirm] {
            let refused = save(&[("confirm", confirm)]).await;
            assert_eq!(refused.verdict(), (409, "auth_test_failed"));
            assert!(refused.text.contains(reason), "{}", refused.text);
            assert!(refused.text.contains("force=true"), "{}", refused.text);
            assert_eq!(refused.body["purge"], *purge);
        }
        // Without a test it still has to be confirmed.
        let refused = save(&[("force", "1")]).await;
        assert_eq!(refused.verdict(), (409, "confirmation_required"));
        assert!(yard.find("alice").await.unwrap().deleted_at.is_none());
    }
    let saved = yard.switch_mode(&root, &ldap).await;
    assert_eq!(saved.status, 202, "{}", saved.text);
    assert!(yard.find("alice").await.unwrap().deleted_at.is_some());
}

#[tokio::test]
async fn sign_in_with_a_new_name_renames_the_account() {
    let ldap = ldap().await;
    ldap.lets_in_as("carol", "entryuuid:1");
    let before = ldap.yard.login("carol", "x").send().await;
    let uid = ldap.yard.find("carol").await.unwrap().uid;
    ldap.lets_in_as("carol.jones", "entryuuid:1");
    let answer = ldap.yard.login("carol.jones", "x").send().await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.body["username"], "carol.jones");
    assert_eq!(ldap.yard.find("carol.jones").await.unwrap().uid, uid);
    assert!(ldap.yard.find("carol").await.is_none());
    assert!(!ldap.yard.lives(&before.cookie()).await);
    assert!(ldap.yard.lives(&answer.cookie()).await);
    assert_eq!(ldap.groups_of("carol.jones").await, ["all"]);
    let trail = ldap.get("/api/admin/audit?search=directory_rename").await;
    assert_eq!(trail.body["total"], 1, "{}", trail.text);
    assert_eq!(
        trail.body["entries"][0]["object"],
        "user/carol,user/carol.jones"
    );
    // Another entry with the name is refused like a wrong password, and the audit trail tells why.
    ldap.lets_in_as("carol.jones", "entryuuid:2");
    let refused = ldap.yard.login("carol.jones", "x").send().await;
    assert_eq!(refused.verdict(), (401, "bad_credentials"));
    let trail = ldap.get("/api/admin/audit?search=name_taken").await;
    let entry = &trail.body["entries"][0];
    assert_eq!(entry["object"], "user/carol.jones", "{}", trail.text);
    // One whose new name is another account's keeps the name before.
    ldap.lets_in_as("dave", "entryuuid:2");
    assert_eq!(ldap.yard.login("dave", "x").send().await.status, 200);
    ldap.lets_in_as("carol.jones", "entryuuid:2");
    let answer = ldap.yard.login("carol.jones", "x").send().await;
    assert_eq!(answer.body["username"], "dave", "{}", answer.text);
    // The directory still has the name before: the next rename waits.
    ldap.lets_in_as("carol.smith", "entryuuid:1");
    let waits = ldap.yard.login("carol.smith", "x").send().await;
    assert_eq!(waits.body["username"], "carol.jones", "{}", waits.text);
}

#[tokio::test]
async fn whoever_the_directory_lets_in_has_an_account_from_then_on() {
    let ldap = ldap().await;
    ldap.lets_in("Carol", Some(&["Eng", "All"]));
    let answer = ldap.yard.login("carol", "x").send().await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    // The name is the directory's.
    assert_eq!(
        (&answer.body["username"], &answer.body["initializing"]),
        (&json!("Carol"), &json!(true))
    );
    assert!(ldap.yard.lives(&answer.cookie()).await);
    let account = ldap.yard.find("carol").await.unwrap();
    assert_eq!(
        (account.source, account.password_hash.is_some()),
        (Source::Ldap, false)
    );
    assert_eq!(ldap.groups_of("carol").await, ["All", "Eng"]);
    // Groups follow; what is not known of them stays.
    ldap.lets_in("Carol", Some(&["Ops"]));
    ldap.yard.login("CAROL", "x").send().await;
    assert_eq!(ldap.groups_of("carol").await, ["Ops"]);
    ldap.lets_in("Carol", None);
    ldap.yard.login("carol", "x").send().await;
    assert_eq!(ldap.groups_of("carol").await, ["Ops"]);
    assert_eq!(ldap.yard.find("carol").await.unwrap().uid, account.uid);
    let users = ldap
        .get("/api/admin/auth/ldap-users?source=directory")
        .await;
    assert_eq!(users.status, 200, "{users:?}");
    let users = ldap.get("/api/admin/auth/ldap-users?source=snapshot").await;
    assert_eq!(
        users.body["users"],
        json!([{"username": "Carol", "dn": "uid=Carol,dc=example", "groups": ["Ops"]}])
    );
}

#[tokio::test]
async fn l4_the_directory_makes_no_superadmin_of_anybody() {
    let ldap = ldap().await;
    ldap.lets_in("root", Some(&[]));
    let refused = ldap.yard.login("root", "of the directory").send().await;
    assert_eq!(refused.verdict(), (401, "bad_credentials"));
    assert!(!refused.headers.contains_key(SET_COOKIE));
    // The superadmin needs no directory.
    *ldap.yard.world.directory.person.lock().unwrap() = Err(DirectoryFailure("away".to_owned()));
    let asked = ldap.yard.world.directory.asked.load(Ordering::Relaxed);
    assert_eq!(ldap.yard.login("root", PASSWORD).send().await.status, 200);
    assert_eq!(
        ldap.yard.world.directory.asked.load(Ordering::Relaxed),
        asked
    );
}

#[tokio::test]
async fn l5_names_of_superadmins_cannot_be_told_by_their_answers() {
    let ldap = ldap().await;
    let from = |name: &'static str| {
        let yard = &ldap.yard;
        async move {
            let before = yard.world.directory.asked.load(Ordering::Relaxed);
            let hashes = yard.world.deps.passwords.computed();
            let mut refused = yard.login(name, "wrong").send().await;
            refused.headers.remove("x-request-id");
            let asked = yard.world.directory.asked.load(Ordering::Relaxed) - before;
            let hashes = yard.world.deps.passwords.computed() - hashes;
            (refused.status, refused.body, refused.headers, asked, hashes)
        }
    };
    let (root, nobody, alice) = (
        from("root").await,
        from("nobody").await,
        from("alice").await,
    );
    assert_eq!(root, nobody);
    assert_eq!(root, alice);
    assert_eq!((root.3, root.4), (1, 1), "each name takes the same work");
}

#[tokio::test]
async fn a_refusal_comes_at_the_same_moment_whatever_the_directory_took() {
    let ldap = ldap().await;
    let begun = tokio::time::Instant::now();
    ldap.yard.login("nobody", "x").send().await;
    // The clock of the service stands still in this test, so the next mark is a whole second away.
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_directory_that_is_away_is_no_wrong_password() {
    let ldap = ldap().await;
    *ldap.yard.world.directory.person.lock().unwrap() =
        Err(DirectoryFailure("10.0.0.7:389 refused".to_owned()));
    for _ in 0..9 {
        let failed = ldap.yard.login("carol", "x").send().await;
        assert_eq!(failed.verdict(), (502, "remote_failed"));
        assert!(!failed.text.contains("10.0.0.7"), "{}", failed.text);
    }
    // Nothing was guessed, so the address is not barred.
    ldap.lets_in("carol", None);
    assert_eq!(ldap.yard.login("carol", "x").send().await.status, 200);
}

#[tokio::test]
async fn names_that_are_none_here_are_refused_by_their_rule() {
    let ldap = ldap().await;
    ldap.lets_in("Carol Smith", None);
    let refused = ldap.yard.login("carol smith", "x").send().await;
    assert_eq!(refused.verdict(), (403, "invalid_username"));
    assert!(refused.text.contains("A-Z"), "{}", refused.text);
}

#[tokio::test]
async fn a_name_is_not_taken_over_before_its_bearer_is_archived() {
    let ldap = ldap().await;
    ldap.lets_in("alice", None);
    let refused = ldap.yard.login("alice", "x").send().await;
    assert_eq!(refused.verdict(), (503, "previous_account_archiving"));
    assert_eq!(refused.headers[RETRY_AFTER], "5");
}

#[tokio::test]
async fn a_disabled_account_stays_out() {
    let ldap = ldap().await;
    ldap.lets_in("carol", None);
    ldap.yard.login("carol", "x").send().await;
    ldap.post(
        "/api/admin/users/disable",
        &[("username", "carol"), ("wait", "0")],
    )
    .await;
    let refused = ldap.yard.login("carol", "x").send().await;
    assert_eq!(refused.verdict(), (401, "bad_credentials"));
}

#[tokio::test]
async fn l11_the_whitelist_fails_closed_and_an_empty_one_lets_nobody_in() {
    let ldap = ldap().await;
    ldap.lets_in("carol", None);
    let carol = ldap.yard.sign_in("carol").await;
    ldap.save(&json!({"ldap.whitelist_enabled": true})).await;
    // Enabled and empty means nobody, at once.
    assert!(!ldap.yard.lives(&carol).await);
    let refused = ldap.yard.login("carol", "x").send().await;
    assert_eq!(refused.verdict(), (403, "not_whitelisted"));
    // That is said only once the password is verified.
    ldap.lets_nobody_in();
    assert_eq!(
        ldap.yard.login("carol", "x").send().await.verdict(),
        (401, "bad_credentials")
    );
    ldap.lets_in("carol", None);
    let added = ldap.post(WHITELIST, &[("add", "CAROL\nzoe")]).await;
    assert_eq!(added.body["total"], 2);
    assert!(
        ldap.yard.lives(&carol).await,
        "the session was not ended, only barred"
    );
    assert_eq!(ldap.yard.login("carol", "x").send().await.status, 200);
    ldap.post(WHITELIST, &[("remove", "Carol")]).await;
    assert!(!ldap.yard.lives(&carol).await);
    assert!(
        ldap.yard.lives(&ldap.cookie).await,
        "superadmins need no whitelist"
    );
    // When it cannot be read, nobody is let in.
    let mut tx = ldap.yard.tx().await;
    schema::whitelist::add(&mut tx, &["carol".parse().unwrap()])
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert!(ldap.yard.lives(&carol).await);
    ldap.yard.world.db.close().await;
    for answer in [
        ldap.yard.login("carol", "x").send().await,
        ldap.yard
            .get("/api/user/info")
            .with("carol", &carol)
            .send()
            .await,
    ] {
        assert_eq!(answer.status, 503, "{}", answer.text);
        assert!(!answer.headers.contains_key(SET_COOKIE));
    }
}

#[tokio::test]
async fn empty_whitelist_is_warned_of() {
    let ldap = ldap().await;
    let saved = ldap.save(&json!({"ldap.whitelist_enabled": true})).await;
    let empty = "the whitelist is enabled and empty";
    assert!(
        saved.body["warnings"].to_string().contains(empty),
        "{}",
        saved.text
    );
    let status = async || ldap.get("/api/admin/reconcile").await.body["warnings"].to_string();
    assert!(status().await.contains(empty));
    let step = async |user: &str| {
        let form = [("test_username", user)];
        let tested = ldap.post("/api/admin/auth/test-ldap", &form).await;
        let steps = tested.body["steps"].as_array().unwrap().clone();
        let step = steps.into_iter().find(|step| step["name"] == "whitelist");
        step.unwrap()
    };
    let found = step("carol").await;
    assert_eq!(found["ok"], false, "{found}");
    assert!(found["detail"].to_string().contains(empty), "{found}");
    ldap.post(WHITELIST, &[("add", "carol")]).await;
    assert!(!status().await.contains(empty));
    assert_eq!(step("Carol").await["ok"], true);
    let found = step("zoe").await;
    assert_eq!(found["ok"], false, "{found}");
    assert!(
        found["detail"].to_string().contains("zoe is not on"),
        "{found}"
    );
}

#[tokio::test]
async fn the_whitelist_is_replaced_or_changed_all_or_nothing() {
    let ldap = ldap().await;
    let saved = ldap
        .post(WHITELIST, &[("users", "zoe, Carol\nalice")])
        .await;
    assert_eq!(saved.body["total"], 3);
    let listed = ldap.get(&format!("{WHITELIST}?page_size=2")).await;
    assert_eq!(listed.body["users"], json!(["alice", "Carol"]));
    assert_eq!(listed.body["total"], 3);
    let refused = ldap.post(WHITELIST, &[("users", "good\nnot:good")]).await;
    assert_eq!(refused.verdict(), (400, "invalid_parameter"));
    assert!(refused.text.contains("name 2"), "{}", refused.text);
    for form in [&[][..], &[("users", "a"), ("add", "b")]] {
        assert_eq!(
            ldap.post(WHITELIST, form).await.verdict(),
            (400, "invalid_parameter")
        );
    }
    let listed = ldap.get(WHITELIST).await;
    assert_eq!(listed.body["users"], json!(["alice", "Carol", "zoe"]));
    ldap.post(WHITELIST, &[("users", "")]).await;
    assert_eq!(ldap.get(WHITELIST).await.body["users"], json!([]));
}

#[tokio::test]
async fn a_synchronisation_is_asked_for_and_its_outcome_is_told() {
    let ldap = ldap().await;
    *ldap.yard.world.directory.plan.lock().unwrap() = Ok(SyncPlan {
        disable: vec!["zoe".to_owned()],
        mass_removal: Some(Held {
            digest: "d1".to_owned(),
            what: "1 of 1 users".to_owned(),
        }),
        ..SyncPlan::default()
    });
    let plan = ldap.post(SYNC, &[("dry_run", "1")]).await;
    assert_eq!(
        (&plan.body["disable"], &plan.body["mass_removal"]["digest"]),
        (&json!(["zoe"]), &json!("d1"))
    );
    let pending = ldap.post(SYNC, &[("wait", "0")]).await;
    assert_eq!(
        (pending.status.as_u16(), &pending.body["state"]),
        (202, &json!("pending"))
    );
    assert_eq!(pending.body["object"], "directory/users");
    let generation = pending.body["generation"].as_i64().unwrap();
    let stale = ldap.post(SYNC, &[("if_generation", "1")]).await;
    assert_eq!(stale.verdict(), (412, "stale_generation"));

    // As the reconciler would refuse it.
    let held = Condition::not_ready(Reason::MassRemoval, "confirm it with digest d1");
    saw(&ldap.yard, generation + 1, held).await;
    let refused = ldap.post(SYNC, &[]).await;
    assert_eq!(refused.verdict(), (409, "mass_removal"));
    assert!(refused.text.contains("d1"));
    let failed = Condition::not_ready(Reason::DirectoryFailed, "away");
    saw(&ldap.yard, generation + 2, failed).await;
    assert_eq!(
        ldap.post(SYNC, &[]).await.verdict(),
        (502, "directory_failed")
    );

    let result = SyncResult {
        counts: SyncCounts {
            added: 3,
            ..SyncCounts::default()
        },
        ..SyncResult::default()
    };
    let mut tx = ldap.yard.tx().await;
    let answered = schema::directory::requested(&mut tx).await.unwrap().token;
    drop(tx);
    let facts = schema::directory::DirectoryFacts {
        answered,
        result,
        ..Default::default()
    };
    let mut tx = ldap.yard.tx().await;
    schema::directory::save_facts(&mut tx, &facts)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    saw(
        &ldap.yard,
        generation + 3,
        Condition::ready(Reason::Converged, ""),
    )
    .await;
    let done = ldap
        .post("/api/admin/auth/sync-groups", &[("confirm", "d1")])
        .await;
    assert_eq!(
        (done.status.as_u16(), &done.body["added"]),
        (200, &json!(3))
    );
    let mut connection = ldap.yard.world.deps.db.read().await.unwrap();
    let asked = schema::directory::requested(&mut connection).await.unwrap();
    assert_eq!(
        (asked.scope.to_string().as_str(), asked.confirm.as_str()),
        ("groups", "d1")
    );
}

/// What the reconciler would save.
async fn saw(yard: &Yard, generation: i64, said: Condition) {
    let status = StatusRow {
        observed_generation: schema::ids::Generation(generation),
        conditions: vec![said],
        ..StatusRow::default()
    };
    let mut tx = yard.tx().await;
    let (kind, uid) = (Kind::Directory, object_uid());
    object::save_status(&mut tx, kind, &uid, &status, Epoch(1))
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn directory_routes_belong_to_ldap_mode() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    for path in [SYNC, "/api/admin/auth/sync-groups"] {
        let refused = yard.post(path, &[]).with("root", &root).send().await;
        assert_eq!(refused.verdict(), (403, "mode_forbidden"), "{path}");
        // What would come is asked before the mode is changed.
        let plan = yard.post(path, &[("dry_run", "1")]);
        let plan = plan.with("root", &root).send().await;
        assert_eq!(
            (plan.status.as_u16(), &plan.body["added"]),
            (200, &json!(0))
        );
    }
    let refused = yard
        .get("/api/admin/auth/ldap-users")
        .with("root", &root)
        .send()
        .await;
    assert_eq!(refused.verdict(), (403, "mode_forbidden"));
    // Settings are tried in any mode, before they are in effect.
    let test = async |form: &[(&str, &str)]| {
        yard.post("/api/admin/auth/test-ldap", form)
            .with("root", &root)
            .send()
            .await
    };
    assert_eq!(
        test(&[("base_dn", "dc=x")]).await.verdict(),
        (422, "invalid_config")
    );
    assert_eq!(
        test(&[("host", "not a host!")]).await.verdict(),
        (422, "invalid_config")
    );
    let form = [
        ("host", "dc.example"),
        ("base_dn", "dc=x"),
        ("start_tls", "true"),
        ("page_size", "20"),
    ];
    let tested = test(&form).await;
    assert_eq!(
        (tested.status.as_u16(), &tested.body["steps"]),
        (200, &json!([]))
    );
    let providers = yard
        .get("/api/admin/auth/providers")
        .with("root", &root)
        .send()
        .await;
    let names: Vec<_> = providers.body["providers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["name"].clone(), it["active"].clone()))
        .collect();
    assert_eq!(
        names,
        [
            (json!("local"), json!(true)),
            (json!("ldap"), json!(false)),
            (json!("oidc"), json!(false))
        ]
    );
    let local = yard.login("alice", PASSWORD).send().await;
    assert_eq!(local.status, 200, "local mode asks no directory");
}

#[tokio::test]
async fn l72_a_stored_bind_password_is_tried_at_no_other_host() {
    let ldap = ldap().await;
    ldap.save(&json!({"ldap": {"bind_dn": "cn=s", "bind_password": "geheim"}}))
        .await;
    let test = async |form: &[(&str, &str)]| ldap.post("/api/admin/auth/test-ldap", form).await;
    let refused = test(&[("host", "evil.example"), ("bind_password", "********")]).await;
    assert_eq!(refused.verdict(), (422, "invalid_config"));
    assert!(refused.text.contains("secret_required"), "{}", refused.text);
    assert_eq!(
        test(&[("host", "evil.example")]).await.verdict(),
        (422, "invalid_config")
    );
    assert_eq!(test(&[("bind_password", "********")]).await.status, 200);
    assert_eq!(
        test(&[("host", "other.example"), ("bind_password", "another")])
            .await
            .status,
        200
    );
}
