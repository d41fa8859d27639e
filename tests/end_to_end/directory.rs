//! Users of a directory: signing in, synchronisations, and what a directory says that is not so.

use std::time::Duration;

use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::slapd::{self, Relay, Slapd, password};
use crate::support::{Client, Engine, McpUser, Service, Stage, long, seconds, until};

const LIMIT: Duration = seconds(60);
const SYNC: &str = "/api/admin/auth/sync-users";

/// A service without an engine, in ldap mode, and its directory.
struct Yard {
    stage: Stage,
    service: Service,
    admin: Client,
    slapd: Slapd,
}

fn settings(slapd: &Slapd) -> Value {
    let settings = slapd.settings();
    json!({
        "web.auth_mode": "ldap",
        "ldap.host": settings.url.as_str(),
        "ldap.bind_dn": settings.bind_dn,
        "ldap.bind_password": settings.bind_password.expose_secret(),
        "ldap.base_dn": settings.base_dn,
        "ldap.filter": settings.filter,
        "ldap.timeout": "1s",
        "ldap.group_search_mode": "group_search",
        "ldap.group_base_dn": "ou=groups,dc=example,dc=org",
    })
}

impl Yard {
    async fn open(slapd: Slapd) -> Self {
        let stage = Stage::new();
        let service = stage
            .alone()
            .set("container.autostart", "false")
            .start()
            .await;
        let admin = service.admin().await;
        let yard = Self {
            stage,
            service,
            admin,
            slapd,
        };
        yard.save(&settings(&yard.slapd)).await;
        yard
    }

    async fn save(&self, config: &Value) -> Value {
        let text = config.to_string();
        let answer = self
            .admin
            .post("/api/config", &[("config", &text), ("wait", "0")])
            .await;
        assert!(answer.status.is_success(), "{}", answer.text());
        answer.json()
    }

    async fn sync(&self, form: &[(&str, &str)]) -> Value {
        let mut form = form.to_vec();
        form.push(("wait", "60"));
        let answer = self.admin.post(SYNC, &form).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    async fn user(&self, name: &str) -> Option<Value> {
        let users = self
            .admin
            .get(&format!("/api/admin/users?search={name}"))
            .await
            .json();
        let users = users["users"].as_array().unwrap();
        users.iter().find(|user| user["username"] == name).cloned()
    }

    async fn sign_in(&self, name: &str) -> (u16, Value) {
        let answer = self
            .service
            .client()
            .sign_in(name, password(name).expose_secret())
            .await;
        (answer.status.as_u16(), answer.json())
    }

    fn people(names: &[String]) -> Vec<&str> {
        names.iter().map(String::as_str).collect()
    }
}

#[tokio::test]
async fn people_sign_in_with_what_they_have_and_their_groups_follow() {
    let yard = Yard::open(Slapd::new(&["carol"], None)).await;
    let (status, alice) = yard.sign_in("alice").await;
    assert_eq!((status, &alice["role"]), (200, &json!("user")), "{alice}");
    assert_eq!(yard.user("alice").await.unwrap()["groups"], json!(["eng"]));
    // The directory was made without the person waiting.
    until("alice's directory", LIMIT, async || {
        yard.stage
            .data()
            .join("users/alice/.agent/workspace")
            .is_dir()
    })
    .await;
    for (name, secret) in [("alice", "wrong"), ("locked", "dekcol"), ("nobody", "x")] {
        let refused = yard.service.client().sign_in(name, secret).await;
        refused.refused(401, "bad_credentials");
    }
    assert!(
        yard.user("locked").await.is_none(),
        "who was never let in has no account"
    );
    yard.save(&json!({"ldap.whitelist_enabled": true})).await;
    assert_eq!(yard.sign_in("carol").await.0, 403);
    yard.admin
        .post("/api/admin/whitelist", &[("users", "carol")])
        .await
        .expect(200);
    assert_eq!(yard.sign_in("carol").await.0, 200);
    // Whoever is taken off the whitelist loses what is open.
    let client = yard.service.client();
    let secret = password("carol");
    let carol = client.signed_in("carol", secret.expose_secret()).await;
    let carol = McpUser::signed_in(&yard.service, "carol", &carol).await;
    let mut executor = carol.executor("browser").await;
    yard.admin
        .post("/api/admin/whitelist", &[("remove", "carol")])
        .await
        .expect(200);
    assert_eq!(executor.ended().await.1, 4403);
    // Superadmins are local in every mode.
    let root = yard.service.admin().await;
    root.get("/api/admin/users").await.expect(200);
}

/// Where the service is ended in the course of renames, one after the other.
const STEPS_OF_A_RENAME: [&str; 4] = [
    "container.ReleaseName.before",
    "home.rename.after_marker",
    "home.rename.after_home",
    "user.EndRename.before",
];

#[tokio::test]
async fn engine_renamed_person_keeps_agent_files_and_token() {
    let engine = Engine::claim();
    // A group that nobody leaves: a rename takes people out of those that list them by the old name.
    let group = "dn: cn=ops,ou=groups,dc=example,dc=org\nobjectClass: groupOfNames\ncn: ops\n\
                 member: uid=carol,ou=people,dc=example,dc=org\n\n";
    let (stage, slapd) = (Stage::new(), Slapd::with(&["carol"], None, "", group));
    let launch = || stage.serve(&engine);
    let service = launch().start().await;
    let admin = service.admin().await;
    let text = settings(&slapd).to_string();
    let form = [("config", &*text), ("wait", "0")];
    let saved = admin.post("/api/config", &form).await;
    assert!(saved.status.is_success(), "{}", saved.text());
    let secret = password("alice");
    let browser = service.client();
    let browser = browser.signed_in("alice", secret.expose_secret()).await;
    admin.status("alice", "running", LIMIT).await;
    let alice = McpUser::signed_in(&service, "alice", &browser).await;
    let notes = |name: &str| {
        let workspace = stage.data().join("users").join(name);
        workspace.join(".agent/workspace/notes")
    };
    std::fs::write(notes("alice"), "hers").unwrap();

    admin.post(SYNC, &[("wait", "60")]).await.expect(200);
    slapd.rename("alice", "anna");
    let plan = stage.command().run(&["auth", "sync", "--dry-run"]).await;
    assert!(
        plan.stdout.contains("\nrename alice to anna\n"),
        "{}",
        plan.stdout
    );
    let done = admin.post(SYNC, &[("wait", "60")]).await.expect(200);
    assert_eq!(
        (&done["renamed"], &done["disabled"]),
        (&json!(1), &json!(0))
    );
    browser
        .get("/api/user/info")
        .await
        .refused(401, "not_signed_in");
    admin.status("anna", "running", LIMIT).await;
    assert!(admin.user("alice").await.is_none());
    assert_eq!(std::fs::read_to_string(notes("anna")).unwrap(), "hers");
    assert!(!stage.data().join("users/alice").exists());
    admin.event("user/anna", "Renamed", LIMIT).await;
    let trail = admin.get("/api/admin/audit?search=directory_rename").await;
    assert_eq!(trail.json()["entries"][0]["object"], "user/alice,user/anna");
    // The token is good until somebody else has the name.
    let shown = async || {
        let url = format!("http://{}/api/mcp/sse/browser", service.address());
        let request = reqwest::Client::new().post(url).bearer_auth(&alice.token);
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        request.json(&ping).send().await.unwrap().status().as_u16()
    };
    assert_ne!(shown().await, 401);
    slapd.rename("bob", "alice");
    admin.post(SYNC, &[("wait", "60")]).await.expect(200);
    admin.status("alice", "running", LIMIT).await;
    assert!(!notes("alice").exists());
    assert_eq!(shown().await, 401);
    service.kill9().await;

    let mut name = "anna".to_owned();
    for (number, point) in STEPS_OF_A_RENAME.into_iter().enumerate() {
        let next = format!("anna{number}");
        slapd.rename(&name, &next);
        let mut doomed = launch().env("AGENTYARD_FAULT", point).start().await;
        let _ = admin.at(&doomed.client()).try_post(SYNC, &[]).await;
        doomed.died_of_fault(point).await;
        let service = launch().start().await;
        let admin = admin.at(&service.client());
        admin.status(&next, "running", LIMIT).await;
        assert_eq!(
            std::fs::read_to_string(notes(&next)).unwrap(),
            "hers",
            "{point}"
        );
        assert!(!stage.data().join("users").join(&name).exists(), "{point}");
        service.kill9().await;
        name = next;
    }
}

#[tokio::test]
async fn odd_entries_are_named_and_sign_ins_outlast_synchronisations() {
    let group = "dn: cn=posix,ou=groups,dc=example,dc=org\nobjectClass: posixGroup\ncn: posix\ngidNumber: 7\nmemberUid: ALICE\n\
                 memberUid: Bob\n\n";
    let yard = Yard::open(Slapd::with(&["carol|alicia"], None, "", group)).await;
    yard.save(&json!({
        "ldap.group_filter": "(&(objectClass=posixGroup)(cn={{groupname}}))",
        "ldap.group_member_attribute": "memberUid",
        "ldap.bind_password": "service",
    }))
    .await;
    for name in ["alice", "bob"] {
        assert_eq!(yard.sign_in(name).await.0, 200, "{name}");
    }
    assert_eq!(yard.sign_in("carol").await.0, 401);
    for _ in 0..2 {
        let done = yard.sync(&[]).await;
        assert_eq!(
            (&done["changed"], &done["skipped"]),
            (&json!(0), &json!(1)),
            "{done}"
        );
        for name in ["alice", "bob"] {
            assert_eq!(
                yard.user(name).await.unwrap()["groups"],
                json!(["posix"]),
                "{name}"
            );
            assert_eq!(yard.sign_in(name).await.0, 200, "{name}");
        }
    }
    // The command line, the condition and the list of users say whom it is about, why, and what to do.
    let synced = yard.stage.command().run(&["auth", "sync"]).await;
    let described = yard
        .stage
        .command()
        .run(&["describe", "directory/users"])
        .await;
    let tested = yard.stage.command().run(&["auth", "test"]).await;
    let listed = yard
        .admin
        .get("/api/admin/auth/ldap-users")
        .await
        .expect(200);
    for said in [
        synced.stdout + &synced.stderr,
        described.stdout,
        tested.stdout,
        listed["skipped_entries"].to_string(),
    ] {
        for part in [
            "cn=odd3,ou=people",
            "2 values of uid (carol, alicia)",
            "leave one of them",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}

#[tokio::test]
async fn l66_a_directory_that_is_frozen_or_gone_holds_up_nobody_else() {
    let mut yard = Yard::open(Slapd::new(&[], None)).await;
    assert_eq!(yard.sign_in("alice").await.0, 200);
    yard.slapd.signal("STOP");
    let begun = Instant::now();
    let (frozen, others) = tokio::join!(yard.sign_in("alice"), async {
        for _ in 0..20 {
            yard.admin.get("/api/admin/users").await.expect(200);
        }
        begun.elapsed()
    });
    assert_eq!(
        (frozen.0, &frozen.1["code"]),
        (502, &json!("remote_failed"))
    );
    assert!(begun.elapsed() < seconds(5), "{:?}", begun.elapsed());
    assert!(others < seconds(5), "{others:?}");
    yard.slapd.signal("CONT");
    until("it is back", seconds(2), async || {
        yard.sign_in("bob").await.0 == 200
    })
    .await;
    yard.slapd.stop();
    assert_eq!(yard.sign_in("alice").await.0, 502);
    yard.service.admin().await;
    yard.slapd.start();
    until("it is back", seconds(2), async || {
        yard.sign_in("alice").await.0 == 200
    })
    .await;
}

#[tokio::test]
async fn a_synchronisation_brings_users_and_groups_and_an_unchanged_one_writes_nothing() {
    let (people, groups) = if long() { (10_000, 200) } else { (200, 20) };
    let names: Vec<String> = (0..people).map(|n| format!("user{n}")).collect();
    let slapd = Slapd::with(
        &Yard::people(&names),
        None,
        "sizelimit size.prtotal=unlimited",
        &slapd::groups(groups, people),
    );
    let yard = Yard::open(slapd).await;
    let relay = Relay::new(yard.slapd.port);
    let host = format!("127.0.0.1:{}", relay.port);
    yard.save(&json!({"ldap.host": host, "ldap.bind_password": "service"}))
        .await;
    // Those that all directories have, too.
    let (people, groups) = (json!(people + 3), json!(groups + 1));
    let plan = yard.admin.post(SYNC, &[("dry_run", "1")]).await.expect(200);
    assert_eq!((&plan["added"], &plan["groups_added"]), (&people, &groups));
    assert_eq!(plan["mass_removal"], Value::Null);
    assert!(
        yard.user("user7").await.is_none(),
        "a dry run changes nothing"
    );
    let before = relay.accepted();
    let done = yard.sync(&[]).await;
    assert_eq!(
        (&done["added"], &done["users"], &done["groups"]),
        (&people, &people, &groups)
    );
    // However many transactions it took to write them.
    assert_eq!(relay.accepted(), before + 1, "everything is asked for once");
    assert_eq!(yard.user("user7").await.unwrap()["groups"], json!(["g7"]));
    let again = yard.sync(&[]).await;
    assert_eq!((&again["added"], &again["changed"]), (&json!(0), &json!(0)));

    // On schedule, and not a byte is written. Before, all users get their directories.
    until_quiet(&yard).await;
    yard.save(&json!({"ldap.sync_interval": "1s"})).await;
    until_quiet(&yard).await;
    let (before, lists) = (written(&yard), relay.accepted());
    until("it was asked again", patience(), async || {
        relay.accepted() >= lists + 3
    })
    .await;
    assert_eq!(written(&yard), before);
}

/// Until all of them have their directories, also beside everything else.
fn patience() -> Duration {
    seconds(if long() { 900 } else { 120 })
}

async fn until_quiet(yard: &Yard) {
    until("all is quiet", patience(), async || {
        let before = written(yard);
        // Longer than it takes until the next workspaces are measured.
        tokio::time::sleep(seconds(12)).await;
        before == written(yard)
    })
    .await;
}

/// What was written to the database so far.
fn written(yard: &Yard) -> Vec<u8> {
    let wal = yard.stage.data().join("agentyard.db-wal");
    let mut written = std::fs::read(wal).unwrap_or_default();
    written.extend(std::fs::read(yard.stage.data().join("agentyard.db")).unwrap());
    written
}

#[tokio::test]
async fn l1_whoever_is_missing_is_disabled_first_and_removed_later_and_a_mass_of_them_only_on_confirmation()
 {
    let names: Vec<String> = (0..20).map(|n| format!("user{n}")).collect();
    let mut yard = Yard::open(Slapd::new(&Yard::people(&names), None)).await;
    yard.sync(&[]).await;
    assert_eq!(yard.sign_in("user19").await.0, 200);

    // A few may go: nobody signs in, nothing is lost.
    yard.slapd.replace(&Yard::people(&names[..17]), "");
    let done = yard.sync(&[]).await;
    assert_eq!(
        (&done["disabled"], &done["removed"]),
        (&json!(3), &json!(0))
    );
    assert_eq!(yard.user("user19").await.unwrap()["disabled"], true);
    // Back again, all is as it was.
    yard.slapd.replace(&Yard::people(&names), "");
    let done = yard.sync(&[]).await;
    assert_eq!(done["changed"], 3);
    assert_eq!(yard.user("user19").await.unwrap()["disabled"], false);
    assert_eq!(yard.sign_in("user19").await.0, 200);

    // Half of them: nothing happens before somebody says so.
    yard.slapd.replace(&Yard::people(&names[..10]), "");
    let held = yard.admin.post(SYNC, &[("wait", "60")]).await;
    let held = held.refused(409, "mass_removal");
    let plan = yard.admin.post(SYNC, &[("dry_run", "1")]).await.expect(200);
    let digest = plan["mass_removal"]["digest"].as_str().unwrap();
    assert!(held["error"].as_str().unwrap().contains(digest), "{held}");
    assert_eq!(yard.user("user19").await.unwrap()["disabled"], false);
    let object = yard
        .admin
        .get("/api/admin/reconcile/objects/directory/users")
        .await
        .json();
    let stalled = &object["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["type"] == "Stalled")
        .unwrap()
        .clone();
    assert_eq!(
        (&stalled["status"], &stalled["reason"]),
        (&json!("True"), &json!("MassRemoval"))
    );
    // A digest of another plan confirms nothing.
    let wrong = yard
        .admin
        .post(SYNC, &[("wait", "60"), ("confirm", "0123456789abcdef")])
        .await;
    wrong.refused(409, "mass_removal");
    let done = yard.sync(&[("confirm", digest)]).await;
    assert_eq!(done["disabled"], 10);
    assert_eq!(yard.user("user19").await.unwrap()["disabled"], true);

    // After the time of grace they are removed.
    yard.save(&json!({"ldap.removal_grace": "1s", "ldap.max_removal_percent": 100}))
        .await;
    tokio::time::sleep(seconds(2)).await;
    let done = yard.sync(&[]).await;
    assert_eq!(done["removed"], 10, "{done}");
    // Without an engine the container cannot go, and the directory waits for it.
    assert_eq!(yard.user("user19").await.unwrap()["status"], "deleting");
}

#[tokio::test]
async fn l1_no_answer_that_is_none_removes_anybody() {
    let names: Vec<String> = (0..20).map(|n| format!("user{n}")).collect();
    let mut yard = Yard::open(Slapd::new(&Yard::people(&names), None)).await;
    yard.sync(&[]).await;
    let unharmed = async |yard: &Yard, why: &str| {
        let users = yard.admin.get("/api/admin/users").await.json();
        let users = users["users"].as_array().unwrap();
        assert_eq!(users.len(), 23, "{why}");
        assert!(users.iter().all(|user| user["disabled"] == false), "{why}");
    };
    let failed = async |yard: &Yard, status: u16, why: &str| {
        let answer = yard.admin.post(SYNC, &[("wait", "60")]).await;
        assert_eq!(answer.status, status, "{why}: {}", answer.text());
        unharmed(yard, why).await;
        answer.text()
    };
    // Nobody at all.
    yard.save(&json!({"ldap.filter": "(&(objectClass=device)(uid={{username}}))"}))
        .await;
    failed(&yard, 409, "an empty answer").await;
    yard.save(&json!({"ldap.filter": "(&(objectClass=inetOrgPerson)(uid={{username}}))"}))
        .await;
    yard.save(&json!({"ldap.base_dn": "ou=nowhere,dc=example,dc=org"}))
        .await;
    let said = failed(&yard, 502, "a wrong base").await;
    assert!(said.contains("ou=nowhere"), "{said}");
    yard.save(&json!({"ldap.base_dn": "ou=people,dc=example,dc=org"}))
        .await;
    yard.slapd.stop();
    let said = failed(&yard, 502, "no directory").await;
    assert!(said.contains("ldap.host"), "{said}");
    yard.slapd.start();
    yard.slapd.signal("STOP");
    failed(&yard, 502, "a frozen one").await;
    yard.slapd.signal("CONT");
    yard.slapd.stop();
    let limited = Slapd::limited(
        &Yard::people(&names),
        None,
        "sizelimit size.soft=5 size.hard=5 size.prtotal=5",
    );
    yard.save(
        &json!({"ldap.host": limited.settings().url.as_str(), "ldap.bind_password": "service"}),
    )
    .await;
    let said = failed(&yard, 502, "a size limit").await;
    assert!(said.contains("has not sent all entries"), "{said}");
}
