//! Skills and groups, from the first upload to the last trace.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{ends, with_users};
use crate::support::{Stage, seconds, until};

/// A folder with a skill in it; the text is what distinguishes its versions.
fn folder(stage: &Stage, text: &str) -> PathBuf {
    let folder = stage.path().join("pdf");
    std::fs::create_dir_all(folder.join("scripts")).unwrap();
    let manifest = format!("---\nname: pdf\ndescription: Reads PDF files.\n---\n{text}\n");
    std::fs::write(folder.join("SKILL.md"), manifest).unwrap();
    std::fs::write(folder.join("scripts/run.sh"), "#!/bin/sh\n").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.join("passwd")).ok();
    folder
}

/// The manifest of a skill in a user's workspace, as the agent reads it.
fn deployed(stage: &Stage, user: &str) -> Option<String> {
    let skills = format!("users/{user}/.agent/workspace/skills");
    std::fs::read_to_string(stage.data().join(skills).join("pdf/SKILL.md")).ok()
}

fn digest(printed: &Value) -> String {
    printed["digest"].as_str().unwrap().to_owned()
}

async fn shown(stage: &Stage) -> Value {
    let shown = ends(stage, "skill show pdf -o json", 0).await;
    serde_json::from_str(&shown.stdout).unwrap()
}

fn entries(dir: &Path) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

#[tokio::test]
async fn a_skill_goes_from_a_folder_to_a_group_and_away_again() {
    let stage = Stage::new();
    let (_service, _admin) = with_users(&stage, &["alice", "bob"]).await;
    let folder = folder(&stage, "first").display().to_string();

    // A preview keeps nothing.
    let preview = ends(&stage, &format!("skill upload {folder} --dry-run"), 0).await;
    assert!(
        preview.stdout.contains("nothing was changed"),
        "{}",
        preview.stdout
    );
    let none = ends(&stage, "skill list", 0).await;
    assert_eq!(
        (none.stdout.as_str(), none.stderr.as_str()),
        ("", "no skills\n")
    );
    let uploaded = ends(&stage, &format!("skill upload {folder}"), 0).await;
    assert!(
        uploaded
            .stderr
            .contains("warning: symbolic links were left out: "),
        "{}",
        uploaded.stderr
    );
    assert_eq!(uploaded.stdout, "skill pdf has version 1\n");
    let list = ends(&stage, "skill list", 0).await;
    assert!(list.stdout.contains("pdf"), "{}", list.stdout);
    let by_kind = ends(&stage, "get skills -o name", 0).await;
    assert_eq!(by_kind.stdout, "skill/pdf\n");

    ends(&stage, "group create all", 0).await;
    ends(
        &stage,
        "group create eng --parent all --description tools",
        0,
    )
    .await;
    ends(&stage, "group add eng alice", 0).await;
    let unknown = ends(&stage, "group add eng nobody", 1).await;
    assert!(unknown.stderr.contains("nobody"), "{}", unknown.stderr);
    let groups = ends(&stage, "group list -o wide", 0).await;
    let eng = groups.stdout.lines().find(|line| line.starts_with("eng"));
    let eng: Vec<&str> = eng.unwrap().split_whitespace().collect();
    assert_eq!(eng[1..5], ["all", "1", "0", "local"], "{}", groups.stdout);

    let preview = ends(&stage, "skill bind pdf --group all --dry-run", 0).await;
    let expected = "USER   GAINS  LOSES  CHANGES\nalice  pdf    -      -\nnothing was changed; 1 user affected\n";
    assert_eq!(preview.stdout, expected);
    assert_eq!(deployed(&stage, "alice"), None);
    let bound = ends(&stage, "skill bind pdf --group all", 0).await;
    assert!(
        bound
            .stdout
            .starts_with("skill pdf is bound to group all\n"),
        "{}",
        bound.stdout
    );
    assert!(deployed(&stage, "alice").unwrap().contains("first"));
    assert_eq!(deployed(&stage, "bob"), None);

    let members = ends(&stage, "group members all", 0).await;
    assert_eq!(members.stdout, "USER   VIA\nalice  eng\nskills: pdf\n");
    let user = ends(&stage, "describe user/alice", 0).await;
    let given = user.stdout.lines().find(|line| line.starts_with("  pdf "));
    assert!(
        given.unwrap().ends_with("group all  eng"),
        "{}",
        user.stdout
    );
    let set = ends(&stage, "describe skill-set/alice", 0).await;
    assert!(set.stdout.contains("DEPLOYED"), "{}", set.stdout);
    ends(&stage, "diff skill-set/alice", 0).await;

    // Another version changes what lies there; the one before it returns.
    self::folder(&stage, "second");
    let first = digest(&shown(&stage).await);
    let preview = ends(&stage, &format!("skill upload {folder} --dry-run"), 0).await;
    assert!(
        preview.stdout.contains("alice  -      -      pdf"),
        "{}",
        preview.stdout
    );
    ends(&stage, &format!("skill upload {folder}"), 0).await;
    assert!(deployed(&stage, "alice").unwrap().contains("second"));
    ends(&stage, "skill rollback pdf", 0).await;
    assert!(deployed(&stage, "alice").unwrap().contains("first"));
    assert_eq!(digest(&shown(&stage).await), first);
    let text = ends(&stage, "skill show pdf", 0).await;
    for part in [
        "Bound to:    group all\n",
        "Given to:    1 user\n",
        "Versions:\n",
    ] {
        assert!(text.stdout.contains(part), "{part}: {}", text.stdout);
    }
    ends(&stage, "skill rollback pdf --to 7", 1).await;

    ends(&stage, "skill unbind pdf --group all", 0).await;
    assert_eq!(deployed(&stage, "alice"), None);
    let twice = ends(&stage, "skill unbind pdf --group all", 1).await;
    assert!(twice.stderr.contains("not found"), "{}", twice.stderr);
}

#[tokio::test]
async fn what_is_downloaded_is_the_same_skill_again() {
    let stage = Stage::new();
    let (_service, _admin) = with_users(&stage, &["alice"]).await;
    let folder = folder(&stage, "only").display().to_string();
    ends(&stage, &format!("skill upload {folder}"), 0).await;
    let before = digest(&shown(&stage).await);

    let place = stage.path().join("downloads");
    std::fs::create_dir(&place).unwrap();
    let file = place.join("pdf.zip");
    let download = format!("skill download pdf -o {}", file.display());
    let saved = ends(&stage, &download, 0).await;
    assert_eq!(saved.stdout, format!("{}\n", file.display()));
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.starts_with(b"PK"), "{} bytes", bytes.len());
    // Nothing is overwritten unasked, and what fails leaves nothing.
    std::fs::write(&file, "mine").unwrap();
    let kept = ends(&stage, &download, 1).await;
    assert!(kept.stderr.contains("--force"), "{}", kept.stderr);
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    let none = format!("skill download odt -o {}", place.join("odt.zip").display());
    ends(&stage, &none, 1).await;
    assert_eq!(entries(&place), 1);
    ends(&stage, &format!("{download} --force"), 0).await;
    assert_eq!(std::fs::read(&file).unwrap(), bytes);

    let again = ends(&stage, &format!("skill upload {}", file.display()), 0).await;
    assert_eq!(again.stdout, "skill pdf is unchanged\n");
    ends(
        &stage,
        &format!("skill upload {} --name copy", file.display()),
        0,
    )
    .await;
    let copy = ends(&stage, "skill show copy -o json", 0).await;
    assert_eq!(digest(&serde_json::from_str(&copy.stdout).unwrap()), before);

    // What is bound is removed only by force, and then everywhere.
    ends(&stage, "skill deploy pdf --user alice", 0).await;
    assert!(deployed(&stage, "alice").is_some());
    let refused = ends(&stage, "skill remove pdf", 1).await;
    assert!(refused.stderr.contains("force"), "{}", refused.stderr);
    let preview = ends(&stage, "skill remove pdf --dry-run", 0).await;
    assert!(
        preview.stdout.contains("alice  -      pdf    -"),
        "{}",
        preview.stdout
    );
    ends(&stage, "skill remove pdf --force", 0).await;
    assert_eq!(deployed(&stage, "alice"), None);
    until("the skill is gone", seconds(10), async || {
        let list = ends(&stage, "get skills -o name", 0).await;
        list.stdout == "skill/copy\n"
    })
    .await;
}

#[tokio::test]
async fn a_change_for_several_users_is_a_task_that_is_followed() {
    let stage = Stage::new();
    let (_service, _admin) = with_users(&stage, &["alice", "bob", "carol"]).await;
    let folder = folder(&stage, "all").display().to_string();
    ends(&stage, &format!("skill upload {folder}"), 0).await;
    let given = ends(&stage, "skill deploy pdf", 0).await;
    assert!(
        given.stdout.ends_with("3 of 3 done, 0 failed\n"),
        "{}",
        given.stdout
    );
    for user in ["alice", "bob", "carol"] {
        assert!(deployed(&stage, user).is_some(), "{user}");
    }
    // What somebody changed is repaired when it is looked for.
    let file = stage
        .data()
        .join("users/bob/.agent/workspace/skills/pdf/SKILL.md");
    std::fs::remove_file(&file).unwrap();
    ends(&stage, "skill deploy --check alice bob", 0).await;
    assert!(deployed(&stage, "bob").is_some());

    // Members who leave together, one of whom is none.
    ends(&stage, "skill undeploy pdf", 0).await;
    ends(&stage, "group create eng", 0).await;
    ends(&stage, "skill bind pdf --group eng", 0).await;
    let added = ends(&stage, "group add eng alice bob --detach", 0).await;
    assert!(added.stderr.contains("get task "), "{}", added.stderr);
    ends(&stage, "wait skill-set/alice skill-set/bob", 0).await;
    assert!(deployed(&stage, "bob").is_some());
    let left = ends(&stage, "group remove eng alice carol bob", 1).await;
    assert!(left.stderr.contains("error: carol: "), "{}", left.stderr);
    assert_eq!(
        (deployed(&stage, "alice"), deployed(&stage, "bob")),
        (None, None)
    );
    ends(&stage, "group create all", 0).await;
    ends(&stage, "group move eng --parent all", 0).await;
    let cycle = ends(&stage, "group move all --parent eng", 1).await;
    assert!(cycle.stderr.contains("itself"), "{}", cycle.stderr);
    ends(&stage, "group delete eng", 0).await;
    ends(&stage, "group members eng", 1).await;
}

#[tokio::test]
async fn a_repository_that_cannot_be_pulled_says_why_and_keeps_its_secret() {
    let stage = Stage::new();
    let (_service, admin) = with_users(&stage, &[]).await;
    let token = stage.path().join("token");
    std::fs::write(&token, "hunter2\n").unwrap();
    // Nobody listens on that port.
    let line = format!(
        "skill repo add team http://127.0.0.1:9/team.git --username bot --secret-file {} --detach",
        token.display()
    );
    let added = ends(&stage, &line, 0).await;
    assert_eq!(added.stdout, "skill-repository/team added\n");
    let listed = admin.get("/api/admin/skills/repos/list").await.expect(200);
    let credential = &listed["repos"][0]["credentials"][0];
    assert_eq!(
        (&credential["username"], &credential["secret_set"]),
        (&"bot".into(), &true.into())
    );
    ends(
        &stage,
        "skill repo save team --ref v2 --tag --provider gitlab --detach",
        0,
    )
    .await;
    let listed = admin.get("/api/admin/skills/repos/list").await.expect(200);
    let saved = &listed["repos"][0];
    assert_eq!(
        (&saved["ref"], &saved["ref_type"]),
        (&"v2".into(), &"tag".into())
    );
    assert_eq!(saved["credentials"][0]["provider"], "gitlab");
    assert_eq!(saved["credentials"][0]["secret_set"], true);
    let table = ends(&stage, "skill repo list", 0).await;
    assert!(
        table.stdout.contains("http://127.0.0.1:9/team.git"),
        "{}",
        table.stdout
    );
    let empty = ends(&stage, "skill repo list team", 0).await;
    assert_eq!(empty.stderr, "no skills in the repository\n");
    let early = ends(&stage, "skill install team", 1).await;
    assert!(early.stderr.contains("not pulled"), "{}", early.stderr);
    for line in ["skill repo list tean", "skill repo pull tean"] {
        let guess = ends(&stage, line, 1).await;
        assert!(
            guess.stderr.contains("\"skill-repository/team\""),
            "{}",
            guess.stderr
        );
    }
    ends(&stage, "skill repo save team --public --detach", 0).await;
    let listed = admin.get("/api/admin/skills/repos/list").await.expect(200);
    assert_eq!(listed["repos"][0]["public"], true);
    let removed = ends(&stage, "skill repo remove team", 0).await;
    assert!(!removed.stdout.contains("requested"), "{}", removed.stdout);
    let none = ends(&stage, "skill repo list -o json", 0).await;
    assert_eq!(none.stdout, "[]\n");
    // A secret is nothing for an argument.
    ends(
        &stage,
        "skill repo add team https://a.example/b --secret hunter2",
        2,
    )
    .await;
}
