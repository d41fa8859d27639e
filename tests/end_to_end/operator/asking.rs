//! One question, one answer.

use serde_json::Value;

use super::{ends, with_users};
use crate::support::Stage;

#[tokio::test]
async fn things_are_listed_in_every_format() {
    let stage = Stage::new();
    let (_service, admin) = with_users(&stage, &["alice", "bob", "alina"]).await;

    let table = ends(&stage, "get users", 0).await;
    assert_eq!(table.stderr, "");
    let lines: Vec<&str> = table.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{}", table.stdout);
    assert!(
        lines[0].starts_with("NAME   STATUS   DESIRED"),
        "{}",
        lines[0]
    );
    assert!(
        lines[1].starts_with("alice  unknown  running"),
        "{}",
        lines[1]
    );
    assert!(
        !table.stdout.contains('\x1b'),
        "no colour where no terminal is"
    );
    let wide = ends(&stage, "get users -o wide --no-headers", 0).await;
    assert_eq!(wide.stdout.lines().count(), 3);
    assert!(wide.stdout.lines().next().unwrap().len() > lines[1].len());

    let names = ends(&stage, "get containers -o name --search AL", 0).await;
    assert_eq!(names.stdout, "container/alice\ncontainer/alina\n");
    let named = ends(&stage, "get containers -o name bob container/alice", 0).await;
    assert_eq!(named.stdout, "container/bob\ncontainer/alice\n");

    // Nothing is ready without an engine, but what needs none.
    let not_ready = ends(&stage, "get users --not-ready -o name", 0).await;
    assert_eq!(not_ready.stdout, "user/alice\nuser/alina\nuser/bob\n");
    let objects = ends(&stage, "get objects --not-ready -o name", 0).await;
    let has = |object: &str| objects.stdout.lines().any(|line| line == object);
    assert!(
        has("container/bob") && has("engine/local"),
        "{}",
        objects.stdout
    );
    assert!(!has("user/bob"), "{}", objects.stdout);
    let groups = ends(&stage, "get groups --not-ready", 2).await;
    assert!(
        groups.stderr.contains("have no condition Ready"),
        "{}",
        groups.stderr
    );

    // One that is missing spoils nothing of the others.
    let some = ends(&stage, "get users bob nobody -o json", 1).await;
    let some: Value = serde_json::from_str(&some.stdout).unwrap();
    assert_eq!(some[0]["username"], "bob");

    // Programs get the server's own objects.
    let json = ends(&stage, "get users -o json", 0).await;
    let listed: Value = serde_json::from_str(&json.stdout).unwrap();
    let answer = admin.get("/api/admin/users").await.expect(200);
    assert_eq!(listed, answer["users"]);
    let one = ends(&stage, "get user ALICE -o json", 0).await;
    let one: Value = serde_json::from_str(&one.stdout).unwrap();
    assert_eq!(one, answer["users"][0]);
    let yaml = ends(&stage, "get superadmins -o yaml", 0).await;
    assert!(yaml.stdout.starts_with("- created_at: "), "{}", yaml.stdout);
    assert!(yaml.stdout.contains("username: admin"), "{}", yaml.stdout);
    for (kind, word) in [
        ("engines", "local"),
        ("reconcilers", "container"),
        ("objects", "user/alice"),
        ("events", "EnsureHome"),
    ] {
        let list = ends(&stage, &format!("get {kind}"), 0).await;
        assert!(list.stdout.contains(word), "{kind}: {}", list.stdout);
    }
    let none = ends(&stage, "get tasks", 0).await;
    assert_eq!(
        (none.stdout.as_str(), none.stderr.as_str()),
        ("", "no tasks\n")
    );
    assert_eq!(ends(&stage, "get tasks -o json", 0).await.stdout, "[]\n");
}

#[tokio::test]
async fn l60_a_list_of_several_pages_is_whole_and_may_be_cut_short_by_its_reader() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let admin = service.admin().await;
    let names: Vec<String> = (0..205).map(|n| format!("user{n:03}")).collect();
    let form = [("usernames", names.join(",")), ("wait", "0".to_owned())];
    let form: Vec<(&str, &str)> = form.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let created = admin.post("/api/admin/users/batch-create", &form).await;
    assert!(created.status.is_success(), "{}", created.text());
    let listed = ends(&stage, "get users -o name", 0).await;
    let expected: Vec<String> = names.iter().map(|name| format!("user/{name}")).collect();
    assert_eq!(listed.stdout.lines().collect::<Vec<_>>(), expected);

    // More than fits into a pipe: the rest meets nobody, and says nothing.
    let program = env!("CARGO_BIN_EXE_agentyard");
    let line = format!(
        "set -o pipefail; {program} get users -o json --data-dir {} | head -1",
        stage.data().display()
    );
    let shell = tokio::process::Command::new("bash")
        .args(["-c", &line])
        .output();
    let output = shell.await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    assert_eq!(
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr)
        ),
        (Some(0), "[\n".to_owned(), String::new())
    );
}

#[tokio::test]
async fn describe_says_what_is_wrong_and_how_to_force_it() {
    let stage = Stage::new();
    let (_service, _admin) = with_users(&stage, &["alice"]).await;
    let told = ends(&stage, "describe container/alice", 0).await;
    let order = [
        "Name:    container/alice",
        "Status:  Ready=Unknown (EngineUnavailable)",
        "Problems:",
        "since:",
        "remedy:  Start the container engine",
        "next step: the engine is called again every few seconds",
        "force it:",
        "Conditions:",
        "Desired and observed:",
        "Next reconciliation:",
        "Failures in a row:",
        "Events:",
    ];
    let mut rest = told.stdout.as_str();
    for part in order {
        let at = rest.find(part);
        let at = at.unwrap_or_else(|| panic!("{part} in its place: {}", told.stdout));
        rest = &rest[at..];
    }
    // The command it proposes reaches this very server.
    let proposed = told
        .stdout
        .lines()
        .find_map(|line| line.split_once("force it:"));
    let proposed: Vec<&str> = proposed.unwrap().1.split_whitespace().collect();
    assert_eq!(proposed[0], "agentyard");
    let program = env!("CARGO_BIN_EXE_agentyard");
    let forced = tokio::process::Command::new(program)
        .args(&proposed[1..])
        .output();
    let forced = forced.await.unwrap();
    assert_eq!(
        String::from_utf8(forced.stdout).unwrap(),
        "container/alice reconciliation requested\n"
    );

    let fine = ends(&stage, "describe skill-set/alice", 0).await;
    assert!(fine.stdout.contains("Problems: none"), "{}", fine.stdout);
    // A user is as well as what the container waits for.
    let user = ends(&stage, "describe user/alice", 0).await.stdout;
    let status = "Status:  Ready=Unknown (EngineUnavailable, agent-config/alice)\n";
    let problem = "Problems:\n  agent-config/alice: EngineUnavailable: ";
    assert!(user.contains(status) && user.contains(problem), "{user}");
    let whole = ends(&stage, "describe container/alice -o json", 0).await;
    let whole: Value = serde_json::from_str(&whole.stdout).unwrap();
    assert_eq!(whole["object"], "container/alice");
    assert!(
        whole["plan"].is_object() && whole["desired"].is_object(),
        "{whole}"
    );
    let other = ends(&stage, "describe superadmin/admin", 0).await;
    assert!(other.stdout.contains("username: admin"), "{}", other.stdout);
}

#[tokio::test]
async fn diff_ends_like_diff() {
    let stage = Stage::new();
    let (_service, _admin) = with_users(&stage, &["alice"]).await;
    let same = ends(&stage, "diff user/alice", 0).await;
    assert_eq!(same.stdout, "");
    for line in ["diff", "diff container/alice"] {
        let different = ends(&stage, line, 1).await;
        assert!(
            different
                .stdout
                .contains("- observed ready: Unknown (EngineUnavailable)"),
            "{}",
            different.stdout
        );
        assert!(
            different.stdout.contains("next reconciliation:"),
            "{}",
            different.stdout
        );
        assert_eq!(different.stderr, "");
    }
    let missing = ends(&stage, "diff container/alcie", 1).await;
    assert!(
        missing.stderr.contains("container/alice"),
        "{}",
        missing.stderr
    );
}

#[tokio::test]
async fn passes_are_switched_and_the_switch_is_seen() {
    let stage = Stage::new();
    let (_service, admin) = with_users(&stage, &["alice", "bob"]).await;
    let paused = async || {
        let path = "/api/admin/reconcile/objects/container/alice";
        admin.get(path).await.expect(200)["paused"].clone()
    };
    ends(&stage, "pause container/alice", 0).await;
    assert_eq!(paused().await, true);
    let told = ends(&stage, "describe container/alice", 0).await;
    assert!(
        told.stdout.contains("resume container/alice"),
        "{}",
        told.stdout
    );
    let resumed = ends(&stage, "resume c/alice containers/bob", 0).await;
    assert_eq!(
        resumed.stdout,
        "container/alice resumed\ncontainer/bob resumed\n"
    );
    assert_eq!(paused().await, false);

    ends(&stage, "pause --reconciler containers", 0).await;
    let told = ends(&stage, "describe container/bob", 0).await;
    assert!(
        told.stdout.contains("resume --reconciler container"),
        "{}",
        told.stdout
    );
    ends(&stage, "resume --reconciler container", 0).await;
    ends(&stage, "pause --all", 0).await;
    let status = ends(&stage, "status", 69).await;
    assert!(
        status.stdout.contains("paused: all objects"),
        "{}",
        status.stdout
    );
    let all = ends(&stage, "resume --all", 0).await;
    assert_eq!(all.stderr, "", "nothing is left");
    // What is paused by itself stays so, and that is said.
    ends(&stage, "pause user/bob", 0).await;
    ends(&stage, "pause --reconciler container", 0).await;
    let all = ends(&stage, "resume --all", 0).await;
    for left in ["reconciler container", "1 of kind user"] {
        assert!(all.stderr.contains(left), "{}", all.stderr);
    }
    ends(&stage, "resume --reconciler container", 0).await;
    ends(&stage, "resume user/bob", 0).await;

    ends(&stage, "retry container/alice", 0).await;
    ends(&stage, "retry --all", 0).await;
    ends(&stage, "restart container/alice", 0).await;
    // The others are not kept from it by one that is missing.
    let some = ends(&stage, "retry container/bbo container/bob", 1).await;
    assert_eq!(some.stdout, "container/bob reconciliation requested\n");
    assert!(
        some.stderr.contains("did you mean \"container/bob\""),
        "{}",
        some.stderr
    );
    for line in ["retry", "pause --all container/alice", "restart user/bob"] {
        ends(&stage, line, 2).await;
    }
}

#[tokio::test]
async fn events_are_chosen_by_object_and_time() {
    let stage = Stage::new();
    let (_service, _admin) = with_users(&stage, &["alice", "bob"]).await;
    let all = ends(&stage, "events", 0).await;
    assert!(all.stdout.contains("user/alice") && all.stdout.contains("user/bob"));
    let one = ends(&stage, "events --object user/bob --since 1h -o json", 0).await;
    let events: Vec<Value> = serde_json::from_str(&one.stdout).unwrap();
    assert!(!events.is_empty());
    assert!(
        events.iter().all(|event| event["object"] == "user/bob"),
        "{events:?}"
    );
    let few = ends(&stage, "events --limit 1 --no-headers", 0).await;
    assert_eq!(few.stdout.lines().count(), 1);
    assert!(few.stderr.contains("--limit"), "{}", few.stderr);
    for line in [
        "events --since soon",
        "events --object bob",
        "events --limit 0",
    ] {
        ends(&stage, line, 2).await;
    }
}

#[tokio::test]
async fn a_wait_ends_by_its_outcome() {
    let stage = Stage::new();
    let (_service, _admin) = with_users(&stage, &["alice"]).await;
    let met = ends(&stage, "wait user/alice", 0).await;
    assert_eq!(met.stdout, "user/alice is Ready=True\n");
    ends(
        &stage,
        "wait container/alice --for=condition=Ready=Unknown",
        0,
    )
    .await;
    ends(&stage, "wait container/nobody --for=delete --timeout 0s", 0).await;

    let late = ends(&stage, "wait user/alice container/alice --timeout 1s", 124).await;
    assert_eq!(late.stdout, "user/alice is Ready=True\n");
    assert!(
        late.stderr.contains("Start the container engine"),
        "what it is stuck on: {}",
        late.stderr
    );
    assert!(
        late.stderr.contains("error: not Ready=True within 1s"),
        "{}",
        late.stderr
    );
    assert!(
        late.stderr.contains("describe container/alice"),
        "{}",
        late.stderr
    );

    ends(&stage, "pause container/alice", 0).await;
    let paused = ends(&stage, "wait container/alice --fail-fast", 1).await;
    assert!(
        paused.stderr.contains("needs manual action"),
        "{}",
        paused.stderr
    );
    assert!(
        paused.stderr.contains("PausedByOperator"),
        "{}",
        paused.stderr
    );

    let missing = ends(&stage, "wait container/alise", 1).await;
    assert!(
        missing.stderr.contains("container/alice"),
        "{}",
        missing.stderr
    );
    for line in ["wait container/alice --for=condition=Rready", "wait alice"] {
        ends(&stage, line, 2).await;
    }
}
