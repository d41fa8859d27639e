//! A change of where users come from: whoever was there leaves with every byte, through kills at every step.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schema::skill_store::{TreeDigest, TreeLimits, digest_tree};
use serde_json::{Value, json};

use crate::slapd::{Slapd, password};
use crate::support::{Client, Engine, Stage, eventually, long, seconds};

/// Where the service is ended, one after the other.
const POINTS: [&str; 12] = [
    "container.Stop.before",
    "container.Stop.after:2",
    "container.Remove.after",
    "container.ReleaseFinalizer.before",
    "user.WithdrawSettings.before",
    "user.ArchiveHome.before",
    "home.archive.after_claim",
    "home.archive.after_rename",
    "home.archive.before_release",
    "home.archive.after_release",
    "user.Purge.before",
    "user.Purge.after",
];

/// What lies in a workspace.
fn digest(workspace: &Path) -> TreeDigest {
    let dir = std::fs::File::open(workspace).unwrap();
    digest_tree(&dir, TreeLimits::LARGEST)
        .unwrap()
        .unwrap()
        .digest
}

/// Fills a workspace, each with something else.
fn fill(workspace: &Path, number: usize) {
    let deep = workspace.join("a/b");
    std::fs::create_dir_all(&deep).unwrap();
    let bytes: Vec<u8> = (0..10_000 + number)
        .map(|at| u8::try_from(at * number % 251).unwrap())
        .collect();
    std::fs::write(deep.join("Ünïcode name"), bytes).unwrap();
    std::fs::write(workspace.join(format!("own-{number}")), "x").unwrap();
}

/// The directories of one switch in the archive: user by user.
fn batches(stage: &Stage) -> BTreeMap<String, BTreeMap<String, PathBuf>> {
    let entries = std::fs::read_dir(stage.data().join("archive")).unwrap();
    let entries = entries.map(|entry| entry.unwrap());
    let batches = entries.filter(|entry| entry.file_name().to_string_lossy().contains("-mode-"));
    let archived = |batch: &Path| {
        let users = std::fs::read_dir(batch)
            .unwrap()
            .map(|entry| entry.unwrap());
        let users = users.filter(|entry| entry.file_name() != ".owners");
        users
            .map(|entry| {
                let name = entry.file_name().into_string().unwrap();
                let (user, _) = name.rsplit_once('-').unwrap();
                (user.to_owned(), entry.path())
            })
            .collect()
    };
    batches
        .map(|batch| {
            (
                batch.file_name().into_string().unwrap(),
                archived(&batch.path()),
            )
        })
        .collect()
}

async fn switch(admin: &Client, config: &Value) {
    let text = config.to_string();
    let form = [("config", &*text), ("dry_run", "1")];
    let plan = admin.post("/api/config", &form).await.json();
    let confirm = plan["purge"]["confirm"].as_str().unwrap();
    let form = [("config", &*text), ("confirm", confirm)];
    // The service may be about to die.
    if let Ok(answer) = admin.try_post("/api/config", &form).await {
        assert!(answer.status.is_success(), "{}", answer.text());
    }
}

async fn nobody_is_left(admin: &Client) {
    eventually("nobody is left", seconds(180), async || {
        let users = admin.get("/api/admin/users").await.json();
        match users["total"].as_u64() {
            Some(0) => Ok(()),
            _ => Err(users["users"].to_string()),
        }
    })
    .await;
}

#[tokio::test]
async fn engine_l2_a_switch_of_the_mode_archives_every_byte_through_kills_at_every_step() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let slapd = Slapd::new(&[], None);
    let count = if long() { 50 } else { 6 };
    let users: Vec<String> = (0..count).map(|number| format!("user{number}")).collect();
    let launch = || stage.serve(&engine);

    let service = launch().start().await;
    let admin = service.admin().await;
    let form = [("usernames", &*users.join(",")), ("wait", "120")];
    let created = admin
        .post("/api/admin/users/batch-create", &form)
        .await
        .json();
    let secret = created["results"][0]["password"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut own = service.client();
    own.sign_in("user0", &secret).await.expect(200);
    admin
        .post("/api/admin/groups/create", &[("name", "team")])
        .await
        .expect(200);
    let members = [("group_name", "team"), ("usernames", &*users.join(","))];
    admin
        .post("/api/admin/groups/members/add", &members)
        .await
        .expect(200);
    admin
        .post("/api/admin/whitelist", &[("users", "alice")])
        .await
        .expect(200);
    let mut before = BTreeMap::new();
    for (number, user) in users.iter().enumerate() {
        admin.status(user, "running", seconds(120)).await;
        let workspace = stage
            .data()
            .join("users")
            .join(user)
            .join(".agent/workspace");
        fill(&workspace, number + 1);
        before.insert(user.clone(), digest(&workspace));
    }
    service.kill9().await;

    // The first switch, through one death after the other.
    let directory = slapd.settings();
    let to_ldap = json!({
        "web.auth_mode": "ldap", "ldap.host": directory.url.as_str(), "ldap.base_dn": directory.base_dn,
        "ldap.bind_dn": directory.bind_dn, "ldap.bind_password": "service",
    });
    let mut doomed = launch().env("AGENTYARD_FAULT", POINTS[0]).start().await;
    switch(&admin.at(&doomed.client()), &to_ldap).await;
    doomed.died_of_fault(POINTS[0]).await;
    for point in &POINTS[1..] {
        // It may die before it listens.
        let mut doomed = launch().env("AGENTYARD_FAULT", point).spawn();
        doomed.died_of_fault(point).await;
    }
    let service = launch().start().await;
    let admin = admin.at(&service.client());
    nobody_is_left(&admin).await;
    own.at(&service.client())
        .get("/api/user/info")
        .await
        .refused(401, "not_signed_in");
    let left = eventually("no container is left", seconds(30), async || {
        match engine.ours() {
            left if left.is_empty() => Ok(()),
            left => Err(format!("{left:?}")),
        }
    });
    left.await;
    assert!(
        std::fs::read_dir(stage.data().join("users"))
            .unwrap()
            .all(|entry| {
                entry
                    .unwrap()
                    .file_name()
                    .to_string_lossy()
                    .starts_with('.')
            })
    );
    let archived = batches(&stage);
    let (first, homes) = archived.first_key_value().unwrap();
    assert!(
        archived.len() == 1 && first.ends_with("-mode-local-to-ldap"),
        "{archived:?}"
    );
    let digests = |homes: &BTreeMap<String, PathBuf>| -> BTreeMap<String, TreeDigest> {
        let homes = homes.iter();
        homes
            .map(|(user, home)| (user.clone(), digest(&home.join(".agent/workspace"))))
            .collect()
    };
    assert_eq!(digests(homes), before, "every byte of every workspace");
    // What is kept, and what is not.
    let groups = admin.get("/api/admin/groups").await.json();
    assert_eq!(groups["groups"], json!([]));
    let whitelist = admin.get("/api/admin/whitelist").await.json();
    assert_eq!(whitelist["users"], json!(["alice"]));
    let tasks = admin.get("/api/admin/tasks").await.json();
    let task = tasks["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|task| task["type"] == "mode_switch")
        .unwrap()
        .clone();
    assert_eq!(
        (&task["total"], &task["done"]),
        (&json!(count), &json!(count))
    );
    service
        .client()
        .sign_in("user0", &secret)
        .await
        .refused(401, "bad_credentials");

    // Somebody comes in by the new mode, and goes by the switch back.
    let mut alice = service.client();
    let secret = password("alice");
    alice
        .sign_in("alice", secrecy::ExposeSecret::expose_secret(&secret))
        .await
        .expect(200);
    admin.status("alice", "running", seconds(60)).await;
    let workspace = stage.data().join("users/alice/.agent/workspace");
    fill(&workspace, 99);
    let alices = digest(&workspace);
    switch(&admin, &json!({"web.auth_mode": "local"})).await;
    alice
        .get("/api/user/info")
        .await
        .refused(401, "not_signed_in");
    nobody_is_left(&admin).await;
    let archived = batches(&stage);
    assert_eq!(archived.len(), 2, "{archived:?}");
    assert_eq!(
        digests(&archived[first]),
        before,
        "the second switch touches nothing of the first"
    );
    let (second, homes) = archived.iter().find(|(name, _)| *name != first).unwrap();
    assert!(second.ends_with("-mode-ldap-to-local"), "{second}");
    assert_eq!(
        digests(homes),
        BTreeMap::from([("alice".to_owned(), alices)])
    );
    // The names are free again.
    admin.create_user("user0").await;
}
