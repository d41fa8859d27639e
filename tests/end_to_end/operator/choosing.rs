//! Selection, order and form of lists; parts of the configuration; failures that are the command's own.

use serde_json::Value;

use super::{ends, with_users};
use crate::support::Stage;

#[tokio::test]
async fn lists_are_selected_sorted_and_printed_by_choice() {
    let stage = Stage::new();
    let (_service, _admin) = with_users(&stage, &["alice", "bob", "alina"]).await;
    ends(&stage, "group create eng", 0).await;
    ends(&stage, "group add eng alice bob", 0).await;
    for (line, expected) in [
        ("get users -l group=eng -o name", "user/alice\nuser/bob\n"),
        ("get users -l group=eng,state=ready -o name", ""),
        (
            "get users --sort-by -name -o name",
            "user/bob\nuser/alina\nuser/alice\n",
        ),
        (
            "get users --sort-by age -o name --search ali",
            "user/alice\nuser/alina\n",
        ),
        (
            "get containers --sort-by -.name -o name",
            "container/bob\ncontainer/alina\ncontainer/alice\n",
        ),
        (
            "get users -l group=eng,state=not-ready -o custom-columns=WHO:.username,GROUP:.groups[0],NONE:.no.such",
            "WHO    GROUP  NONE\nalice  eng    -\nbob    eng    -\n",
        ),
        (
            "get container/bob user/alice group/eng -o name",
            "container/bob\nuser/alice\ngroup/eng\n",
        ),
    ] {
        assert_eq!(ends(&stage, line, 0).await.stdout, expected, "{line}");
    }

    let both = ends(&stage, "get users,groups,tasks", 0).await;
    let tables: Vec<&str> = both.stdout.split("\n\n").collect();
    assert_eq!(tables.len(), 2, "{}", both.stdout);
    assert!(tables[0].contains("\nuser/alice  "), "{}", both.stdout);
    assert!(
        tables[1].starts_with("NAME       PARENT") && tables[1].contains("\ngroup/eng  "),
        "{}",
        both.stdout
    );
    let json = ends(&stage, "get users,groups -o json", 0).await;
    let json: Vec<Value> = serde_json::from_str(&json.stdout).unwrap();
    let kinds: Vec<&Value> = json.iter().map(|item| &item["kind"]).collect();
    assert_eq!(kinds, ["user", "user", "user", "group"]);
    let all = ends(&stage, "get all -o name", 0).await;
    for object in ["engine/local", "container/bob", "user/alice"] {
        assert!(
            all.stdout.lines().any(|line| line == object),
            "{}",
            all.stdout
        );
    }
    let some = ends(&stage, "get user/nobody group/eng -o name", 1).await;
    assert_eq!(some.stdout, "group/eng\n");
    assert!(
        some.stderr.contains("user/nobody not found"),
        "{}",
        some.stderr
    );

    for (line, part) in [
        ("get containers -l group=eng", "but by state"),
        ("get users -l state=rnning", "running, stopped"),
        ("get users --sort-by colour", "last-login"),
        ("get users -o custom-columns=NAME", "TITLE:.path"),
        ("get users,groups alice", "KIND/NAME"),
        ("get users,groups --watch", "follows one kind"),
    ] {
        let refused = ends(&stage, line, 2).await;
        assert!(refused.stderr.contains(part), "{line}: {}", refused.stderr);
    }
    let unknown = ends(&stage, "get users -l group=nobody", 1).await;
    assert!(unknown.stderr.contains("group"), "{}", unknown.stderr);
}

#[tokio::test]
async fn status_and_audit_name_what_matters() {
    let stage = Stage::new();
    let (service, _admin) = with_users(&stage, &["alice", "bob", "carol"]).await;
    assert!(
        service.log().contains("object=user/alice"),
        "named beside its uid"
    );
    let status = ends(&stage, "status", 69).await.stdout;
    let at = status
        .find("not ready: ")
        .unwrap_or_else(|| panic!("{status}"));
    let named: Vec<&str> = status[at..].lines().skip(1).take(4).collect();
    assert!(
        named[..3]
            .iter()
            .all(|line| line.contains("/") && line.contains(": ")),
        "{status}"
    );
    assert!(named[3].contains("more; `agentyard"), "{status}");

    let rows = |text: &str| {
        let rows = text.lines().filter(|line| line.contains("users_create"));
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    let table = ends(&stage, "audit list --since 1h", 0).await.stdout;
    let [row] = &rows(&table)[..] else {
        panic!("{table}");
    };
    assert!(
        row.contains("user/carol, user/bob, user/alice") && row.ends_with("  3"),
        "{table}"
    );
    let wide = ends(&stage, "audit list -o wide", 0).await.stdout;
    assert_eq!(rows(&wide).len(), 3, "{wide}");
    assert!(wide.lines().next().unwrap().contains("DETAIL"), "{wide}");
    let one = ends(&stage, "audit list --actor admin --object u/bob -o wide", 0)
        .await
        .stdout;
    assert_eq!(rows(&one).len(), 1, "{one}");
    let none = ends(&stage, "audit list --actor eve", 0).await;
    assert_eq!(
        (none.stdout.as_str(), none.stderr.as_str()),
        ("", "no audit entries\n")
    );
}

#[tokio::test]
async fn parts_of_the_configuration_are_read_explained_and_set() {
    let stage = Stage::new();
    let _service = stage.alone().start().await;
    let before = ends(&stage, "config get --modified", 0).await;
    let before: Value = serde_json::from_str(&before.stdout).unwrap();
    assert_eq!(before["container"]["pids_limit"], Value::Null);
    ends(&stage, "config set container.pids_limit=77", 0).await;
    let modified = ends(&stage, "config get container --modified", 0).await;
    let modified: Value = serde_json::from_str(&modified.stdout).unwrap();
    assert_eq!(modified["container"]["pids_limit"], 77);
    assert!(
        modified.get("web").is_none() && modified["container"].get("memory_limit_mb").is_none()
    );

    let explained = ends(&stage, "config explain container.pids_limit", 0)
        .await
        .stdout;
    for part in [
        "whole number",
        "from ",
        "77",
        "recreated",
        "by socket:",
        "(revision ",
    ] {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    let group = ends(&stage, "config explain image", 0).await.stdout;
    assert!(
        group.lines().any(|line| line.starts_with("image.tag  ")),
        "{group}"
    );
    let slip = ends(&stage, "config explain container.pids_limits", 1).await;
    assert!(
        slip.stderr.contains("\"container.pids_limit\""),
        "{}",
        slip.stderr
    );

    // A refusal says which value, by which rule; a secret is never repeated.
    let refused = ends(&stage, "config set web.public_url=htp://x", 1)
        .await
        .stderr;
    for part in ["web.public_url", "\"htp://x\"", "http or https"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }

    let file = stage.path().join("extra.json");
    std::fs::write(&file, r#"{"list": [1, 2], "api_key": "sk-hunter2"}"#).unwrap();
    let line = format!(
        "config set agent.extra=@{} agent.other.deep=x",
        file.display()
    );
    let set = ends(&stage, &line, 0).await;
    assert!(set.stdout.starts_with("changed: agent\n"), "{}", set.stdout);
    assert!(
        set.stderr.contains("agent.extra") && set.stderr.contains("does not know"),
        "{}",
        set.stderr
    );
    let preview = ends(&stage, "config set agent.extra.list=[3] --dry-run", 0).await;
    assert!(
        preview.stdout.starts_with("would change: agent\n"),
        "{}",
        preview.stdout
    );
    ends(
        &stage,
        "config set agent.extra.list=[3] agent.other.deep=@@y",
        0,
    )
    .await;
    ends(&stage, "config unset agent.other.none", 0).await;
    let agent = ends(&stage, "config get agent", 0).await.stdout;
    let agent: Value = serde_json::from_str(&agent).unwrap();
    let expected =
        serde_json::json!({"extra": {"list": [3], "api_key": "********"}, "other": {"deep": "@y"}});
    assert_eq!(agent, expected);
    for (line, part) in [
        (
            "config set agent.extra.list.0=1",
            "agent.extra.list is a list",
        ),
        ("config set agent={} agent.a=1", "as a whole and in parts"),
        ("config set image.tag.x=1", "unknown key"),
    ] {
        let refused = ends(&stage, line, 2).await;
        assert!(refused.stderr.contains(part), "{line}: {}", refused.stderr);
    }
    let none = ends(&stage, "config set agent.a=@/no/such/file", 1).await;
    assert!(none.stderr.contains("/no/such/file"), "{}", none.stderr);
}

#[tokio::test]
async fn conflict_of_another_skill_fails_no_command() {
    let stage = Stage::new();
    let (_service, _admin) = with_users(&stage, &["alice", "bob"]).await;
    let skill = |name: &str| {
        let folder = stage.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let manifest = format!("---\nname: {name}\ndescription: Reads files.\n---\n");
        std::fs::write(folder.join("SKILL.md"), manifest).unwrap();
        format!("skill upload {}", folder.display())
    };
    // Bob has a folder of that name himself.
    let own = stage.data().join("users/bob/.agent/workspace/skills/pdf");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("SKILL.md"), "mine").unwrap();
    ends(&stage, &skill("pdf"), 0).await;
    ends(&stage, "skill deploy pdf", 1).await;
    ends(&stage, &skill("docx"), 0).await;
    let other = ends(&stage, "skill deploy docx", 0).await;
    assert!(
        other.stderr.contains("warning: skill-set/bob: "),
        "{}",
        other.stderr
    );
    assert!(
        stage
            .data()
            .join("users/bob/.agent/workspace/skills/docx/SKILL.md")
            .exists()
    );
}
