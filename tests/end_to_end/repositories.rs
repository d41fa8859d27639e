//! Skills from real repositories, over HTTPS and SSH, to a user's workspace.

use std::path::Path;

use serde_json::{Value, json};

use crate::git_repository::Repository;
use crate::git_server::{Answer, Authority, Server};
use crate::sshd::Sshd;
use crate::support::{Client, Stage, seconds, until};

const MAIN: &str = "refs/heads/main";
/// `Basic` of `git:hunter2secret`.
const BASIC: &str = "Basic Z2l0Omh1bnRlcjJzZWNyZXQ=";

fn manifest(name: &str, text: &str) -> Vec<u8> {
    format!("---\nname: {name}\ndescription: {text}\n---\n").into_bytes()
}

fn push(repository: &Repository, text: &str) -> String {
    let (pdf, notes) = (manifest("pdf", text), manifest("notes", text));
    let files: [(&str, &[u8]); 2] = [("notes/SKILL.md", &notes), ("pdf/SKILL.md", &pdf)];
    repository.files(MAIN, &files)
}

async fn post(admin: &Client, path: &str, form: &[(&str, &str)]) -> Value {
    let path = format!("/api/admin/skills/{path}");
    let mut form = form.to_vec();
    form.push(("wait", "60"));
    let answer = admin.post(&path, &form).await;
    assert!(answer.status.is_success(), "{path}: {}", answer.text());
    answer.json()
}

async fn condition(admin: &Client) -> Value {
    let object = admin.object("skill-repository/team").await;
    object["conditions"][0].clone()
}

fn holds(dir: &Path, secret: &str) -> bool {
    std::fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => holds(&path, secret),
            false => std::fs::read(&path).is_ok_and(|bytes| {
                bytes
                    .windows(secret.len())
                    .any(|part| part == secret.as_bytes())
            }),
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_comes_from_a_repository_to_a_workspace_and_is_updated() {
    let stage = Stage::new();
    let repositories = stage.path().join("repositories");
    std::fs::create_dir(&repositories).unwrap();
    let repository = Repository::new(&repositories, "skills.git");
    let first = push(&repository, "first");
    let authority = Authority::new();
    let server = Server::new(&repositories, Some(&authority), Some(BASIC));
    let certificate = stage.path().join("authority.pem");
    std::fs::write(&certificate, &authority.pem).unwrap();
    let certificate = certificate.display().to_string();
    let launch = stage.alone().env("SSL_CERT_FILE", &certificate);
    let service = launch.start().await;
    let admin = service.admin().await;
    let form = [("usernames", "alice"), ("wait", "0")];
    admin
        .post("/api/admin/users/batch-create", &form)
        .await
        .pending();

    // Addresses inside are refused until somebody allows them.
    let url = server.url("skills.git");
    let repo = json!({"name": "team", "url": url, "credentials": [{"secret": "hunter2secret"}]});
    let form = [("repo", &*repo.to_string()), ("wait", "60")];
    let refused = admin.post("/api/admin/skills/repos/add", &form).await;
    refused.refused(502, "clone_failed");
    assert!(
        refused.text().contains("skills.allow_private_hosts"),
        "{}",
        refused.text()
    );
    assert!(server.asked().is_empty());
    let allow = [("config", r#"{"skills": {"allow_private_hosts": true}}"#)];
    admin.post("/api/config", &allow).await;
    let pulled = post(&admin, "repos/pull", &[("name", "team")]).await;
    assert_eq!(
        (&pulled["updated"], &pulled["commit"]),
        (&json!(true), &json!(first))
    );
    let offered = admin
        .get("/api/admin/skills/repos/list?name=team")
        .await
        .json();
    let names: Vec<_> = offered["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["name"].clone())
        .collect();
    assert_eq!(names, [json!("notes"), json!("pdf")]);

    post(&admin, "install", &[("repo", "team"), ("skill", "pdf")]).await;
    post(
        &admin,
        "deploy",
        &[("skill_name", "pdf"), ("username", "alice")],
    )
    .await;
    let file = stage
        .data()
        .join("users/alice/.agent/workspace/skills/pdf/SKILL.md");
    let has = |text: &str| std::fs::read_to_string(&file).is_ok_and(|found| found.contains(text));
    assert!(has("first"));

    let same = post(&admin, "repos/pull", &[("name", "team")]).await;
    assert_eq!(
        (&same["updated"], &same["update_available"]),
        (&json!(false), &json!([]))
    );
    let second = push(&repository, "second");
    let pulled = post(&admin, "repos/pull", &[("name", "team")]).await;
    assert_eq!(
        (&pulled["updated"], &pulled["commit"]),
        (&json!(true), &json!(second))
    );
    assert_eq!(pulled["update_available"], json!(["pdf"]));
    assert!(has("first"), "a pull changes nobody's skills");
    post(&admin, "install", &[("repo", "team"), ("skill", "pdf")]).await;
    until("alice has the update", seconds(30), async || has("second")).await;

    // A force-push to something older is just another commit.
    repository.git(&["update-ref", MAIN, &first], b"");
    let back = post(&admin, "repos/pull", &[("name", "team")]).await;
    assert_eq!(
        (&back["updated"], &back["commit"]),
        (&json!(true), &json!(first))
    );
    // A reference that is gone ends the request; what was pulled stays.
    let form = [("name", "team"), ("ref", "gone"), ("wait", "60")];
    let gone = admin.post("/api/admin/skills/repos/save", &form).await;
    gone.refused(502, "clone_failed");
    let kept = admin
        .get("/api/admin/skills/repos/list?name=team")
        .await
        .json();
    assert_eq!(kept["skills"].as_array().unwrap().len(), 2);
    post(&admin, "repos/remove", &[("name", "team")]).await;
    assert!(has("second"), "installed skills stay");
    assert!(!holds(&stage.data(), "hunter2secret"));
    assert!(!service.log().contains("hunter2secret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_shows_another_key_is_trusted_again_by_an_administrator_only() {
    let stage = Stage::new();
    let repositories = stage.path().join("repositories");
    std::fs::create_dir(&repositories).unwrap();
    let repository = Repository::new(&repositories, "skills.git");
    push(&repository, "first");
    let mut sshd = Sshd::new();
    let launch = stage.alone().set("skills.allow_private_hosts", "true");
    let service = launch.start().await;
    let admin = service.admin().await;
    let url = sshd.url(&repositories.join("skills.git"));
    let secret = sshd.key.clone();
    let repo = json!({"name": "team", "url": url, "credentials": [{"secret": secret}]});
    post(&admin, "repos/add", &[("repo", &repo.to_string())]).await;
    let object = admin.object("skill-repository/team").await;
    assert_eq!(object["observed"]["host_keys_known"], true, "{object}");

    sshd.change_key();
    let form = [("name", "team"), ("wait", "60")];
    let changed = admin.post("/api/admin/skills/repos/pull", &form).await;
    changed.refused(502, "host_key_changed");
    assert_eq!(condition(&admin).await["reason"], "HostKeyChanged");
    let again = admin.post("/api/admin/skills/repos/pull", &form).await;
    again.refused(502, "host_key_changed");
    let forget = [("name", "team"), ("forget_host_key", "1")];
    post(&admin, "repos/save", &forget).await;
    assert_eq!(condition(&admin).await["status"], "True");
}

/// The service makes full passes all the while, and what is fetched takes longer than several of them.
#[tokio::test(flavor = "multi_thread")]
async fn collection_from_a_slow_server_is_listed_installed_deployed_and_updated() {
    const COUNT: usize = 3000;
    /// Of 14 odd ones 7 cannot be installed as they are.
    const ALL: usize = COUNT + 14;
    let stage = Stage::new();
    let repositories = stage.path().join("repositories");
    std::fs::create_dir(&repositories).unwrap();
    let repository = Repository::new(&repositories, "skills.git");
    let first = repository.collection(MAIN, COUNT, "first");
    let server = Server::new(&repositories, None, None);
    server.answer(Answer::Slow(12_000));
    let launch = stage.alone().set("skills.allow_private_hosts", "true");
    let service = launch.env("AGENTYARD_RESYNC", "200ms").start().await;
    let admin = service.admin().await;
    let form = [("usernames", "alice"), ("wait", "0")];
    let created = admin.post("/api/admin/users/batch-create", &form).await;
    created.pending();
    let repo = json!({"name": "team", "url": server.url("skills.git")}).to_string();
    let began = tokio::time::Instant::now();
    post(&admin, "repos/add", &[("repo", &repo)]).await;
    assert!(began.elapsed() > seconds(1), "{:?}", began.elapsed());
    server.answer(Answer::Serve);

    let list = async |query: &str| {
        let path = format!("/api/admin/skills/repos/list?{query}");
        admin.get(&path).await.json()
    };
    let whole = list("name=team").await["skills"].clone();
    let whole = whole.as_array().unwrap();
    let last = list("name=team&page=16&page_size=200").await;
    assert_eq!((whole.len(), &last["total"]), (ALL, &json!(ALL)));
    assert_eq!(last["skills"].as_array().unwrap().len(), ALL - 3000);
    let problems: Vec<&Value> = whole
        .iter()
        .filter(|skill| !skill["problem"].is_null())
        .collect();
    let said = Value::from_iter(problems.iter().map(|it| it["problem"].clone())).to_string();
    assert_eq!(problems.len(), 7, "{said}");
    for part in [
        "symbolic link",
        "is not UTF-8",
        "has a \\\\",
        "twice",
        "deeper than 32 levels",
        "cannot be the name of a skill",
        "SKILL.md: line",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let told = condition(&admin).await["message"].to_string();
    for part in [
        "3014 skills;",
        "7 skills cannot be installed as they are:",
        "symbolic links were left out:",
        "submodules were left out: ",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }

    let install = async |skill: &str, more: &[(&str, &str)]| {
        let mut form = vec![("repo", "team"), ("skill", skill), ("wait", "60")];
        form.extend(more);
        admin.post("/api/admin/skills/install", &form).await
    };
    for (skill, name) in [
        ("skills/author-89/skill-2999", "skill-2999"),
        ("skill-0042", "skill-0042"),
        ("odd/outer", "outer"),
        ("odd/outer/inner", "inner"),
        ("odd/with space", "spaced"),
        ("odd/one", "twin"),
        ("odd/linked", "linked"),
        ("odd/mac", "mac"),
    ] {
        let added = install(skill, &[]).await;
        assert!(added.status.is_success(), "{skill}: {}", added.text());
        assert_eq!(added.json()["name"], name);
        let warned = added.json()["warnings"][0].to_string();
        let expected = match skill {
            "odd/linked" => "symbolic links were left out: \\\"LICENSE\\\";",
            "odd/mac" => "files that macOS adds were left out:",
            "odd/outer" => "other skills are inside",
            _ => "null",
        };
        assert!(warned.contains(expected), "{skill}: {warned}");
    }
    let titled = install("odd/title", &[("name", "pipelines")]).await;
    assert!(titled.status.is_success(), "{}", titled.text());
    let twins = install("twin", &[]).await;
    twins.refused(422, "ambiguous_skill");
    assert!(
        twins.text().contains("odd/one, odd/two"),
        "{}",
        twins.text()
    );
    for skill in ["odd/by-link", "odd/case", "odd/broken", "odd/back\\slash"] {
        install(skill, &[]).await.refused(422, "invalid_skill");
    }
    let linked = admin.object("skill/linked").await["conditions"][0].to_string();
    assert!(linked.contains("symbolic links were left out"), "{linked}");

    for skill in ["skill-0042", "twin"] {
        let form = [("skill_name", skill), ("username", "alice")];
        post(&admin, "deploy", &form).await;
    }
    let skills = stage.data().join("users/alice/.agent/workspace/skills");
    let read = |path: &str| std::fs::read_to_string(skills.join(path)).unwrap_or_default();
    assert!(read("skill-0042/SKILL.md").contains("first"));
    let other = install("odd/two", &[]).await;
    other.refused(409, "other_origin");
    for part in ["directory odd/one of repository team", "directory odd/two"] {
        assert!(other.text().contains(part), "{}", other.text());
    }
    assert_eq!(read("twin/which.md"), "one");
    let other = install("odd/two", &[("force", "true")]).await;
    assert!(other.status.is_success(), "{}", other.text());
    until("alice has the other", seconds(30), async || {
        read("twin/which.md") == "two"
    })
    .await;

    let second = repository.collection(MAIN, 100, "second");
    assert_ne!(first, second);
    let pulled = post(&admin, "repos/pull", &[("name", "team")]).await;
    assert_eq!(pulled["commit"], json!(second));
    let updates = pulled["update_available"].as_array().unwrap();
    assert_eq!(updates.len(), 8, "{updates:?}");
    assert!(updates.contains(&json!("pipelines")), "{updates:?}");
    let updated = install("odd/title", &[]).await;
    assert_eq!(updated.json()["name"], "pipelines", "{}", updated.text());
    install("skill-0042", &[]).await;
    until("alice has the update", seconds(30), async || {
        read("skill-0042/SKILL.md").contains("second")
    })
    .await;
}
