//! What requests leave in the trail, and how it is read.

use std::collections::BTreeSet;

use schema::audit::{About, Author, ChainKey, Outcome, append};
use schema::config::history::SavedBy;
use serde_json::{Value, json};

use super::*;
use crate::auth::session::SessionClaims;
use crate::executors;
use crate::route::{Access, Route};
use crate::routes;
use crate::routes::adapter;
use crate::routes::files;
use crate::routes::skills;
use crate::routes::yard::{Answer, PASSWORD, Yard, from_address, from_socket, yard};

const ADDRESS: &str = "192.0.2.9:1000";
/// In everything that is secret in the requests of these tests.
const CANARY: &str = "canary-hunter2";

impl Yard {
    /// What the trail tells, oldest first.
    async fn trail(&self) -> Vec<Record> {
        let mut connection = self.world.db.read().await.unwrap();
        audit::following(&mut connection, 0, 10_000).await.unwrap()
    }

    /// The only entry that `act` leaves.
    async fn entry_of(&self, act: impl Future<Output = Answer>) -> (Answer, Entry) {
        let before = self.trail().await.len();
        let answer = act.await;
        let mut after = self.trail().await.split_off(before);
        assert_eq!(after.len(), 1, "{answer:?} left {after:?}");
        (answer, after.remove(0).entry)
    }

    /// `act` leaves none.
    async fn no_entry_of(&self, act: impl Future<Output = Answer>) -> Answer {
        let before = self.trail().await.len();
        let answer = act.await;
        let after = self.trail().await.split_off(before);
        assert!(after.is_empty(), "{answer:?} left {after:?}");
        answer
    }

    /// A session, whatever the password is by now.
    async fn session_of(&self, name: &str) -> String {
        let account = self.find(name).await.unwrap();
        let now = self.world.deps.clock.now();
        let mut tx = self.tx().await;
        let issued_at = schema::session::issue(&mut tx, &account.uid, now, "", "web").await;
        tx.commit().await.unwrap();
        let issued_at = Timestamp::from_secs(issued_at.unwrap());
        let claims = SessionClaims::new(account.name, issued_at);
        let value = claims.to_cookie_value(&self.world.deps.signer);
        format!("session={value}")
    }

    /// Makes what a route needs, behind its back. Returns the id that its form names: of an executor, or of the oldest rollout under way.
    async fn prepare(&self, id: &str) -> String {
        let now = self.world.deps.clock.now();
        let mut tx = self.tx().await;
        let image = match id {
            "images_pulls_cancel" => Some("docker.io/called/off:1"),
            "images_delete" => Some("docker.io/called/off:2"),
            _ => None,
        };
        if let Some(image) = image {
            schema::image::request_pull(&mut tx, image, "1", None, now)
                .await
                .unwrap();
        }
        if id == "auth_sync_users" {
            schema::object::ensure_singles(&mut tx, now).await.unwrap();
        }
        if id == "chat_create" {
            files::tests::make_home(self, "alice").await;
        }
        if id == "adapter_refresh" {
            let key = &self.world.deps.master_key;
            let source = serde_json::json!({"adapter.source_url": "https://example.test/a.zip"});
            let patch = schema::config::parse_patch(&source).unwrap();
            let changes = patch.resolve(&schema::config::Config::default()).unwrap();
            schema::config::query::save(&mut tx, key, &changes, None, crate::testing::BY)
                .await
                .unwrap();
            let echo = schema::adapter::Adapter::builtin("echo").unwrap().unwrap();
            schema::adapter::store::ensure_base(
                &mut tx,
                &echo,
                SavedBy {
                    actor: "admin",
                    at: now,
                },
            )
            .await
            .unwrap();
        }
        if id == "skills_install" {
            skills::tests::pulled_repository(&self.world, &mut tx).await;
        }
        if matches!(id, "executors_disconnect" | "user_executors_disconnect") {
            let user = self.find("alice").await.unwrap();
            let key = executors::Key {
                user: user.uid,
                service: executors::Service::Computer,
            };
            let about = executors::About {
                host: None,
                user: user.name,
                address: None,
                token: 1,
                user_agent: String::new(),
                since: now,
            };
            tx.commit().await.unwrap();
            let hub = &self.world.deps.mcp.hub;
            return executors::connected(hub, key, about).0.to_string();
        }
        if matches!(id, "chat_rename" | "chat_delete") {
            tx.commit().await.unwrap();
            let conversations = self
                .world
                .data_dir()
                .join("users/alice/.agent/workspace/conversations");
            let mut made = std::fs::read_dir(conversations).unwrap();
            let made = made.next().unwrap().unwrap();
            return made.file_name().into_string().unwrap();
        }
        if id == "files_restore" {
            tx.commit().await.unwrap();
            let workspace = self.world.data_dir().join("users/alice/.agent/workspace");
            let mut trash = std::fs::read_dir(workspace.join(".trash")).unwrap();
            let is_entry = |entry: &std::fs::DirEntry| entry.file_type().unwrap().is_dir();
            let entry = trash.find_map(|entry| entry.ok().filter(is_entry)).unwrap();
            return entry.file_name().into_string().unwrap();
        }
        let rollouts = schema::rollout::unfinished(&mut tx).await.unwrap();
        tx.commit().await.unwrap();
        rollouts
            .first()
            .map(ToString::to_string)
            .unwrap_or_default()
    }

    /// Ends the stream of a pull, which nobody works on here.
    async fn call_pulls_off(&self, id: &str) {
        loop {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            if id != "images_pull" {
                continue;
            }
            let now = self.world.deps.clock.now();
            let mut tx = self.tx().await;
            for image in schema::image::all(&mut tx).await.unwrap() {
                schema::image::request_cancel(&mut tx, &image.reference, None, now)
                    .await
                    .unwrap();
            }
            tx.commit().await.unwrap();
        }
    }

    async fn ask(&self, path: &str, cookie: &str) -> Value {
        let answer = self.get(path).with("root", cookie).send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }
}

/// A request that is done, and what its entry names.
struct Case {
    form: &'static [(&'static str, &'static str)],
    object: &'static str,
    detail: &'static str,
}

/// One for every POST: a route without one fails the test.
fn case(id: &str) -> Case {
    const ALICE: &[(&str, &str)] = &[("username", "alice"), ("wait", "0")];
    let (form, object, detail): (&'static [_], _, _) = match id {
        "login" => (
            &[("username", "Alice"), ("password", PASSWORD)],
            "user/alice",
            "client web",
        ),
        "logout" => (&[], "user/alice", ""),
        "user_password" => (
            &[("old_password", PASSWORD), ("new_password", CANARY)],
            "user/alice",
            "",
        ),
        "own_container_restart" => (&[("wait", "0")], "container/alice", ""),
        "own_sessions_revoke" => (&[], "user/alice", "sessions ended: "),
        "executors_disconnect" => (&[("id", "{id}")], "user/alice", "computer executor "),
        "user_executors_disconnect" => (
            &[("kind", "desktop"), ("id", "{id}")],
            "user/alice",
            "computer executor ",
        ),
        "mcp_token_rotate" => (&[("wait", "0")], "user/alice", ""),
        // Allowed by what is saved for all, before the first case.
        "chat_app_save" => (
            &[
                ("client_id", "ding1"),
                ("client_secret", CANARY),
                ("wait", "0"),
            ],
            "agent-config/alice",
            "channel chat: client_id, client_secret, enabled",
        ),
        "own_fields_save" => (
            &[
                ("section", "chat"),
                ("values", r#"{"client_secret":"canary-hunter2"}"#),
                ("wait", "0"),
            ],
            "agent-config/alice",
            "channel chat: client_secret",
        ),
        "cookies_save" => (
            &[
                ("domain", "example.com"),
                ("cookies", "a=canary-hunter2"),
                ("wait", "0"),
            ],
            "agent-config/alice",
            "cookies of example.com",
        ),
        "cookies_delete" => (
            &[("domain", "example.com"), ("wait", "0")],
            "agent-config/alice",
            "cookies of example.com",
        ),
        "config_save" => (
            &[(
                "config",
                r#"{"image.tag":"2","image.registry_password":"canary-hunter2"}"#,
            )],
            "config",
            "changed: image.registry_password, image.tag",
        ),
        "model_save" => (
            &[
                ("provider", "compatible"),
                ("address", "http://10.0.0.9/v1"),
                ("model", "m"),
                ("key", CANARY),
            ],
            "config",
            "model of compatible at http://10.0.0.9; changed: agent, security",
        ),
        "model_try" => (
            &[
                ("provider", "compatible"),
                ("address", "http://10.0.0.9/v1"),
                ("model", "m"),
                ("key", CANARY),
            ],
            "agent",
            "tested http://10.0.0.9",
        ),
        "config_rollback" => (
            &[("revision", "1")],
            "config",
            "to revision 1; changed: agent, image.tag",
        ),
        "config_apply" => (&[("wait", "0")], "config", "task "),
        "users_create" => (
            &[("username", "carol"), ("password", CANARY), ("wait", "0")],
            "user/carol",
            "",
        ),
        "users_batch_create" => (
            &[("usernames", "dave,alice,erin"), ("wait", "0")],
            "user/dave,user/erin",
            "task ",
        ),
        "users_delete" => (&[("username", "bob"), ("wait", "0")], "user/bob", ""),
        "users_bulk" => (
            &[("action", "restart"), ("users", "alice,bob")],
            "user/alice",
            "restart: 1 user; task ",
        ),
        "users_reset_password" => (
            &[("username", "ALICE"), ("password", CANARY)],
            "user/alice",
            "",
        ),
        "users_disable" | "users_enable" => (ALICE, "user/alice", ""),
        "users_rotate_mcp_token" => (ALICE, "user/alice", ""),
        "users_revoke_sessions" => (&[("username", "alice")], "user/alice", "sessions ended: "),
        "auth_test_ldap" => (
            &[
                ("host", "dc.example"),
                ("base_dn", "dc=x"),
                ("bind_password", CANARY),
            ],
            "ldap",
            "tested ldap://dc.example",
        ),
        "auth_test_oidc" => (
            &[
                ("provider_url", "https://id.example"),
                ("client_secret", CANARY),
            ],
            "oidc",
            "tested https://id.example",
        ),
        "auth_sync_users" => (&[("wait", "0")], "directory/users", "users"),
        "auth_sync_groups" => (
            &[("wait", "0"), ("confirm", "d1")],
            "directory/users",
            "groups, with confirmation",
        ),
        "whitelist_save" => (&[("users", "a,b")], "whitelist", "replaced; 2 names"),
        "api_tokens_create" => (
            &[("name", "ci"), ("role", "read"), ("expires_in", "90d")],
            "api-token/ci",
            "role read; expires ",
        ),
        "api_tokens_revoke" => (&[("name", "ci")], "api-token/ci", ""),
        "superadmins_create" => (&[("username", "eve")], "superadmin/eve", ""),
        "superadmins_delete" => (&[("username", "second")], "superadmin/second", ""),
        "superadmins_password" => (
            &[("old_password", PASSWORD), ("new_password", PASSWORD)],
            "superadmin/root",
            "",
        ),
        "superadmins_reset" => (
            &[("username", "eve"), ("password", CANARY)],
            "superadmin/eve",
            "",
        ),
        "container_start" | "container_stop" | "container_restart" | "container_debug" => {
            (ALICE, "container/alice", "")
        }
        "container_limits" => (
            &[("username", "alice"), ("cpu_limit", "1.5"), ("wait", "0")],
            "container/alice",
            "cpu: 1.5, memory: as configured",
        ),
        "reconcile_retry" => (&[("object", "container/alice")], "container/alice", ""),
        "reconcile_pause" | "reconcile_resume" => (
            &[("object", "container/alice"), ("wait", "0")],
            "container/alice",
            "",
        ),
        "images_pull" => (
            &[("image", "v9")],
            "image/docker.io/sipeed/picoclaw:v9",
            "task ",
        ),
        "images_pulls_cancel" => (
            &[("image", "called/off:1"), ("wait", "0")],
            "image/docker.io/called/off:1",
            "",
        ),
        "images_delete" => (
            &[("image", "called/off:2"), ("force", "1"), ("wait", "0")],
            "image/docker.io/called/off:2",
            "",
        ),
        "images_migrate" => (
            &[("image", "echo:1"), ("target", "echo:2")],
            "rollout/",
            "1 user to docker.io/library/echo:2",
        ),
        "images_upgrade" => (
            &[("tag", "v9"), ("users", "dave")],
            "rollout/",
            "1 user to docker.io/sipeed/picoclaw:v9",
        ),
        "images_rollouts_pause"
        | "images_rollouts_resume"
        | "images_rollouts_cancel"
        | "images_rollouts_rollback" => (&[("wait", "0")], "rollout/", ""),
        "task_cancel" => (&[("task_id", "{id}"), ("wait", "0")], "rollout/", ""),
        "groups_create" => (&[("name", "team")], "group/team", ""),
        "groups_delete" => (&[("name", "doomed")], "group/doomed", "0 users affected"),
        "groups_move" => (
            &[("group_name", "team"), ("parent_id", "crowd")],
            "group/team",
            "in group crowd; ",
        ),
        "groups_members_add" => (
            &[("group_name", "crowd"), ("usernames", "alice")],
            "group/crowd",
            "1 of 1 user added: alice; ",
        ),
        "groups_members_remove" => (
            &[("group_name", "crowd"), ("username", "alice")],
            "group/crowd",
            "alice removed; ",
        ),
        "groups_skills_bind" => (
            &[("group_name", "crowd"), ("skill_name", "notes")],
            "skill/notes",
            "bound to group crowd; ",
        ),
        "groups_skills_unbind" => (
            &[("group_name", "crowd"), ("skill_name", "notes")],
            "skill/notes",
            "not bound to group crowd any more; ",
        ),
        "skills_deploy" => (
            &[
                ("skill_name", "notes"),
                ("username", "alice"),
                ("wait", "0"),
            ],
            "skill/notes",
            "bound to user alice; 1 user affected",
        ),
        "skills_undeploy" => (
            &[
                ("skill_name", "notes"),
                ("username", "alice"),
                ("wait", "0"),
            ],
            "skill/notes",
            "not bound to user alice any more; ",
        ),
        "skills_upload" => (&[], "skill/tool", "version 1 ("),
        "skills_install" => (&[("repo", "pulled")], "skill/plan", "version 1 ("),
        "skills_remove" => (&[("name", "notes")], "skill/notes", "bindings ended: 0; "),
        "skills_rollback" => (
            &[("name", "tool"), ("number", "1")],
            "skill/tool",
            "version 1 to 1; ",
        ),
        "skills_repos_add" => (
            &[
                (
                    "repo",
                    r#"{"name":"repo","url":"https://git.example.com/x","credentials":[{"secret":"canary-hunter2"}]}"#,
                ),
                ("wait", "0"),
            ],
            "skill-repository/repo",
            "https://git.example.com/x",
        ),
        "skills_repos_save" => (
            &[("name", "repo"), ("ref", "v1"), ("wait", "0")],
            "skill-repository/repo",
            "https://git.example.com/x",
        ),
        "skills_repos_pull" | "skills_repos_cancel" | "skills_repos_remove" => (
            &[("name", "repo"), ("wait", "0")],
            "skill-repository/repo",
            "",
        ),
        "chat_create" => (&[], "user/alice", "conversation "),
        "chat_rename" => (
            &[("id", "{id}"), ("title", CANARY)],
            "user/alice",
            "conversation ",
        ),
        "chat_delete" => (&[("id", "{id}")], "user/alice", "conversation "),
        "files_upload" => (&[], "workspace/alice", "files: 1, bytes: "),
        "files_delete" => (&[("path", "a.zip")], "workspace/alice", ""),
        "files_restore" => (&[("id", "{id}")], "workspace/alice", ""),
        "files_mkdir" => (&[("name", "d")], "workspace/alice", ""),
        "files_move" => (&[("from", "d"), ("to", "e")], "workspace/alice", ""),
        "files_edit_save" => (
            &[("path", "t"), ("content", CANARY)],
            "workspace/alice",
            "bytes: 14",
        ),
        "adapter_refresh" => (&[("wait", "0")], "adapter/active", ""),
        "adapter_upload" => (&[], "adapter/active", "version 7.0, digest "),
        "adapter_rollback" => (&[], "adapter/active", "back to version "),
        other => panic!("{other} is a POST without a case here"),
    };
    Case {
        form,
        object,
        detail,
    }
}

#[tokio::test]
async fn every_post_leaves_one_entry_of_who_did_what_and_never_a_secret() {
    let yard = yard().await;
    yard.create_superadmin("second").await;
    let root = yard.sign_in("root").await;
    let allowed = r#"{"agent":{"channel_list":{"chat":{"enabled":true}}}}"#;
    let ask = yard.post("/api/config", &[("config", allowed)]);
    assert_eq!(ask.with("root", &root).send().await.status, 202);
    for name in ["doomed", "crowd"] {
        let ask = yard.post("/api/admin/groups/create", &[("name", name)]);
        assert_eq!(ask.with("root", &root).send().await.status, 200);
    }
    let notes = skills::tests::package("notes");
    let ask = yard.upload("/api/admin/skills/upload", &notes);
    assert_eq!(ask.with("root", &root).send().await.status, 200);
    let mut secrets = vec![CANARY.to_owned(), PASSWORD.to_owned(), root.clone()];
    let mut actions = BTreeSet::new();
    // What is sent to the endpoint changes nothing here.
    let acts = |route: &Route| route.is_post() && route.access != Access::McpToken;
    for route in routes::all().into_iter().filter(acts) {
        let Case {
            form,
            object,
            detail,
        } = case(route.id);
        // The password is another one after some of the routes; the session need not be a new one.
        // One account has so many sessions a minute.
        let alice = match route.access {
            Access::Superadmin => None,
            _ => Some(yard.session_of("alice").await),
        };
        let (who, cookie) = match route.access {
            Access::Superadmin => ("root", root.as_str()),
            _ => ("alice", alice.as_deref().unwrap_or_default()),
        };
        yard.world.in_mode_of(&route);
        let id = yard.prepare(route.id).await;
        let form: Vec<(&str, &str)> = form
            .iter()
            .map(|(name, value)| match *value {
                "{id}" => (*name, id.as_str()),
                value => (*name, value),
            })
            .collect();
        let ask = match route.id {
            "adapter_upload" => yard.upload(route.path, &adapter::tests::version("7.0")),
            "skills_upload" => yard.upload(route.path, &skills::tests::package("tool")),
            "files_upload" => yard.upload(route.path, b"file"),
            _ => yard.post(route.path, &form),
        };
        let ask = ask.with(who, cookie).context(from_address(ADDRESS));
        let sent = async {
            tokio::select! {
                answer = ask.send() => answer,
                () = yard.call_pulls_off(route.id) => unreachable!("it never ends"),
            }
        };
        let (answer, entry) = yard.entry_of(sent).await;
        assert!(answer.status.is_success(), "{}: {answer:?}", route.path);
        let said = (&*entry.actor, &*entry.address, &*entry.action);
        let action = route.id.to_owned();
        assert_eq!(said, (who, "192.0.2.9", &*action), "{}", route.path);
        let named = match object.ends_with('/') {
            true => entry.object.starts_with(object),
            false => entry.object == object,
        };
        assert!(named && entry.outcome == "ok", "{}: {entry:?}", route.path);
        assert!(entry.detail.starts_with(detail), "{entry:?}");
        assert_eq!(detail.is_empty(), entry.detail.is_empty(), "{entry:?}");
        actions.insert(action);
        secrets.extend(secrets_of(&answer));
        secrets.extend(alice);
    }
    assert_eq!(
        actions.len(),
        routes::all().into_iter().filter(acts).count()
    );
    assert!(secrets.len() > 12, "answers with passwords are looked at");
    let export = yard
        .get("/api/admin/audit/export")
        .with("root", &root)
        .send()
        .await;
    assert_eq!(export.text.lines().count(), yard.trail().await.len());
    for secret in secrets {
        assert!(!export.text.contains(&secret), "{secret}");
    }
    let verdict = yard.ask("/api/admin/audit/verify", &root).await;
    assert_eq!(verdict["valid"], true, "{verdict}");
}

/// Everything in an answer that nobody else may know.
fn secrets_of(answer: &Answer) -> Vec<String> {
    let mut found = Vec::new();
    let mut look = |value: &Value| {
        let secrets = ["password", "token"].map(|field| value[field].as_str());
        found.extend(secrets.into_iter().flatten().map(str::to_owned));
    };
    look(&answer.body);
    if let Some(results) = answer.body["results"].as_array() {
        results.iter().for_each(look);
    }
    if answer.headers.contains_key(http::header::SET_COOKIE) {
        found.push(answer.cookie());
    }
    found.retain(|secret| secret != "session=");
    found
}

#[tokio::test]
async fn refused_sign_ins_are_told_without_what_was_typed() {
    let yard = yard().await;
    let refused = async |name: &str, object: &str, detail: &str| {
        let ask = yard.login(name, CANARY).context(from_address(ADDRESS));
        let (answer, entry) = yard.entry_of(ask.send()).await;
        assert_eq!(answer.verdict(), (401, detail));
        let said = (&*entry.actor, &*entry.action, &*entry.object);
        assert_eq!(said, ("-", "login", object));
        assert_eq!((&*entry.outcome, &*entry.detail), ("refused", detail));
        assert_eq!(entry.address, "192.0.2.9");
    };
    refused("ALICE", "user/alice", "bad_credentials").await;
    refused("root", "superadmin/root", "bad_credentials").await;
    refused("nobody", "account/unknown", "bad_credentials").await;
    // Somebody typed the password into the wrong field.
    refused(CANARY, "account/unknown", "bad_credentials").await;
    refused("no\u{1}name\u{202e}", "account/unknown", "bad_credentials").await;
    // Not an attempt, but a request that cannot be read.
    let ask = yard.login("no\0name", CANARY);
    let unread = yard
        .no_entry_of(ask.context(from_address(ADDRESS)).send())
        .await;
    assert_eq!(unread.verdict(), (400, "invalid_parameter"));

    let form = [
        ("username", "root"),
        ("password", PASSWORD),
        ("client", "desktop"),
    ];
    let (answer, entry) = yard.entry_of(yard.post("/api/login", &form).send()).await;
    assert_eq!(answer.verdict(), (403, "superadmin_client"));
    assert_eq!((&*entry.actor, &*entry.object), ("-", "superadmin/root"));
    assert_eq!(entry.detail, "superadmin_client");

    let alice = yard.sign_in("alice").await;
    let form = [("old_password", CANARY), ("new_password", "another one")];
    let ask = yard.post("/api/user/password", &form).with("alice", &alice);
    let (answer, entry) = yard.entry_of(ask.send()).await;
    assert_eq!(answer.verdict(), (401, "wrong_password"));
    assert_eq!((&*entry.actor, &*entry.object), ("alice", "user/alice"));
    assert_eq!(
        (&*entry.outcome, &*entry.detail),
        ("refused", "wrong_password")
    );

    let trail = serde_json::to_string(&yard.trail().await).unwrap();
    assert!(
        !trail.contains(CANARY) && !trail.contains("nobody"),
        "{trail}"
    );
}

#[tokio::test]
async fn l19_attempts_past_the_limit_do_not_make_the_trail_grow() {
    let yard = yard().await;
    for _ in 0..10 {
        yard.entry_of(yard.login("alice", "wrong").send()).await;
    }
    for _ in 0..5 {
        let answer = yard.no_entry_of(yard.login("alice", "wrong").send()).await;
        assert_eq!(answer.verdict(), (429, "too_many_attempts"));
    }
}

#[tokio::test]
async fn what_changes_nothing_leaves_no_entry() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    let alice = yard.sign_in("alice").await;
    for (who, path, form, status) in [
        ("root", "users/create", &[("username", "alice")][..], 409),
        ("root", "users/create", &[("username", "-")], 400),
        ("root", "users/batch-create", &[("usernames", "alice")], 200),
        ("root", "users/delete", &[("username", "nobody")], 404),
        (
            "root",
            "container/stop",
            &[("username", "alice"), ("if_generation", "7")],
            412,
        ),
        ("root", "superadmins/delete", &[("username", "root")], 409),
        ("root", "reconcile/pause", &[("object", "user/nobody")], 404),
        ("alice", "users/delete", &[("username", "bob")], 403),
    ] {
        let path = format!("/api/admin/{path}");
        let cookie = if who == "root" { &root } else { &alice };
        let ask = yard.post(&path, form).with(who, cookie);
        let answer = yard.no_entry_of(ask.send()).await;
        assert_eq!(answer.status.as_u16(), status, "{path}: {answer:?}");
    }
    let dry = [("config", r#"{"image.tag":"2"}"#), ("dry_run", "1")];
    let ask = yard.post("/api/config", &dry).with("root", &root);
    assert_eq!(yard.no_entry_of(ask.send()).await.status, 200);
    let dry_runs: [(&str, &[(&str, &str)]); 2] = [
        ("upgrade", &[("tag", "v2"), ("all", "1"), ("dry_run", "1")]),
        (
            "migrate",
            &[("image", "echo:1"), ("target", "v2"), ("dry_run", "1")],
        ),
    ];
    for (path, form) in dry_runs {
        let path = format!("/api/admin/images/{path}");
        let ask = yard.post(&path, form).with("root", &root);
        let answer = yard.no_entry_of(ask.send()).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    let answer = yard.no_entry_of(yard.post("/api/logout", &[]).send()).await;
    assert_eq!(answer.status, 200, "without a session");
    let csrf = yard.post("/api/admin/users/delete", &[("username", "bob")]);
    let csrf = csrf.header("cookie", &root);
    assert_eq!(yard.no_entry_of(csrf.send()).await.status, 403);
}

#[tokio::test]
async fn the_socket_is_told_by_the_user_at_its_other_end() {
    let yard = yard().await;
    let form = [("username", "eve")];
    let ask = yard.post("/api/admin/superadmins/create", &form);
    let (answer, entry) = yard.entry_of(ask.context(from_socket()).send()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!((&*entry.actor, &*entry.address), ("socket:0", ""));
}

#[tokio::test]
async fn switches_on_many_objects_name_the_reconciler() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    for (switch, form, object) in [
        ("pause", ("reconciler", "user"), "reconciler/user"),
        ("resume", ("all", "true"), "reconciler/*"),
    ] {
        let path = format!("/api/admin/reconcile/{switch}");
        let form = [form];
        let ask = yard.post(&path, &form).with("root", &root);
        let (answer, entry) = yard.entry_of(ask.send()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(entry.object, object);
    }
}

#[tokio::test]
async fn the_list_is_paged_filtered_and_newest_first() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    yard.sign_in("alice").await;
    yard.login("alice", "wrong").send().await;
    let list = async |query: &str| {
        let body = yard.ask(&format!("/api/admin/audit{query}"), &root).await;
        let seqs = body["entries"].as_array().unwrap().iter();
        let seqs: Vec<i64> = seqs.map(|entry| entry["seq"].as_i64().unwrap()).collect();
        (body, seqs)
    };
    let (body, seqs) = list("").await;
    assert_eq!(seqs, [3, 2, 1]);
    assert_eq!(
        body["entries"][0],
        json!({
            "seq": 3, "at": "2026-05-11T11:46:40Z", "actor": "-", "address": "", "action": "login",
            "object": "user/alice", "outcome": "refused", "detail": "bad_credentials", "request_id": "", "count": 1, "last_at": null,
        })
    );
    let page = ["page", "page_size", "total", "total_pages"].map(|name| body[name].clone());
    assert_eq!(page, [1, 20, 3, 1], "always a page");
    for (query, expected) in [
        ("?actor=alice", &[2][..]),
        ("?object=user/alice", &[3, 2]),
        ("?action=login&search=ROOT", &[1]),
        ("?action=logout", &[]),
        ("?since=2026-05-11T11:46:40Z", &[3, 2, 1]),
        ("?since=2026-05-11T11:46:41Z", &[]),
        ("?page=2&page_size=2", &[1]),
        ("?page=9&page_size=2", &[1]),
    ] {
        assert_eq!(list(query).await.1, expected, "{query}");
    }
    let bad = yard.get("/api/admin/audit?since=yesterday");
    let bad = bad.with("root", &root).send().await;
    assert_eq!(bad.verdict(), (400, "invalid_parameter"));
    assert_eq!(bad.body["field"], "since");
}

#[tokio::test]
async fn verifying_names_what_was_tampered_with() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    yard.sign_in("alice").await;
    let verify = async || yard.ask("/api/admin/audit/verify", &root).await;
    let mut good = verify().await;
    good.as_object_mut().unwrap().remove("message");
    assert_eq!(
        good,
        json!({"success": true, "valid": true, "entries": 2, "first_seq": 1, "last_seq": 2, "problem": null})
    );
    // An entry that was written under another key.
    let mut tx = yard.world.db.begin().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let other = schema::secrets::MasterKey::load_or_create(dir.path()).unwrap();
    let now = Timestamp::from_millis(0);
    let (author, about) = (Author::local(0, "x"), About::whole("x"));
    let entry = Entry::new(author, about, Outcome::Ok, now);
    append(&mut tx, &ChainKey::of(&other), &entry)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let bad = verify().await;
    assert_eq!((&bad["valid"], &bad["entries"]), (&json!(false), &json!(2)));
    assert_eq!(bad["problem"]["seq"], 3);
    let sentence = bad["problem"]["message"].as_str().unwrap();
    assert!(sentence.contains("entry 3"), "{sentence}");
}

#[tokio::test]
async fn an_export_holds_every_entry_with_its_hash_however_many() {
    let yard = yard().await;
    let root = yard.sign_in("root").await;
    let many = 2 * audit::EXPORT_PAGE + 10;
    let mut tx = yard.world.db.begin().await.unwrap();
    let key = ChainKey::of(&yard.world.deps.master_key);
    for n in 0..many {
        let at = crate::testing::NOW.plus(std::time::Duration::from_secs(n.unsigned_abs() + 1));
        let about = About::object("user", n);
        let entry = Entry::new(Author::local(0, "test"), about, Outcome::Ok, at);
        append(&mut tx, &key, &entry).await.unwrap();
    }
    tx.commit().await.unwrap();
    let export = async |query: &str| {
        let path = format!("/api/admin/audit/export{query}");
        let answer = yard.get(&path).with("root", &root).send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let disposition = &answer.headers["content-disposition"];
        assert_eq!(disposition, "attachment; filename=\"audit.jsonl\"");
        assert_eq!(answer.headers["content-type"], "application/x-ndjson");
        let lines = answer.text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect::<Vec<Value>>()
    };
    let all = export("").await;
    let seqs: Vec<i64> = all
        .iter()
        .map(|line| line["seq"].as_i64().unwrap())
        .collect();
    assert_eq!(seqs, (1..=many + 1).collect::<Vec<_>>());
    assert!(
        all.iter()
            .all(|line| line["hash"].as_str().unwrap().len() == 64)
    );
    assert_eq!(export("?since=1778501000").await.len(), 11);
    assert_eq!(export("?since=2030-01-01T00:00:00Z").await.len(), 0);
}

#[tokio::test]
async fn an_export_that_fails_is_cut_off_and_not_taken_for_whole() {
    use futures::StreamExt;
    let yard = yard().await;
    yard.sign_in("root").await;
    let mut whole = Box::pin(lines(yard.world.deps.db.clone(), 0, 1));
    assert!(whole.next().await.unwrap().is_ok());
    assert!(whole.next().await.is_none());
    let mut cut = Box::pin(lines(yard.world.deps.db.clone(), 0, 1));
    yard.world.db.close().await;
    assert!(cut.next().await.unwrap().is_err());
}
