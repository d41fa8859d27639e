use std::io::{Cursor, Read, Write};

use schema::db::Tx;
use schema::skill::TreeDigest;
use schema::skill_repository::{self, NewRepository, OfferedSkill, RefType, RepositoryFacts};
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use crate::routes::yard::{Answer, Yard, yard};
use crate::testing::{NOW, World};

pub(in crate::routes) fn zip_of(files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content) in files {
        zip.start_file(*path, SimpleFileOptions::default()).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A skill of one file.
fn pdf(version: &str) -> Vec<u8> {
    let manifest =
        format!("---\nname: pdf\ndescription: Reads forms\nversion: {version}\n---\n# PDF\n");
    zip_of(&[("pdf/SKILL.md", &manifest), ("pdf/run.sh", "echo")])
}

/// A package of this name.
pub(in crate::routes) fn package(name: &str) -> Vec<u8> {
    let manifest = format!("---\nname: {name}\ndescription: A test\n---\n");
    zip_of(&[("SKILL.md", &manifest)])
}

/// A repository with one skill, `plan`, as it is once it was pulled.
pub(in crate::routes) async fn pulled_repository(world: &World, tx: &mut Tx) {
    pulled_repository_of(world, tx, "---\nname: plan\ndescription: Plans\n---\n").await;
}

/// A repository with one skill that says this of itself.
async fn pulled_repository_of(world: &World, tx: &mut Tx, manifest: &str) {
    let new = NewRepository {
        name: "pulled".parse().unwrap(),
        url: "https://git.example.com/pulled".parse().unwrap(),
        reference: "main".parse().unwrap(),
        ref_type: RefType::Branch,
        public: true,
    };
    let key = &world.deps.master_key;
    let saved = skill_repository::save(tx, key, &new, &[], "1", None, NOW).await;
    let uid = saved.unwrap().0;
    let checkout = world.deps.checkouts.begin(&uid, None).unwrap();
    std::fs::write(checkout.path.join("SKILL.md"), manifest).unwrap();
    let offer = world.deps.checkouts.publish(&uid, &checkout, "c0ffee", &[]);
    let facts = RepositoryFacts {
        pull_token: Some("1".to_owned()),
        commit_id: Some("c0ffee".to_owned()),
        pulled_at: Some(NOW),
        skills: Some(offer.unwrap().skills),
        ..RepositoryFacts::default()
    };
    skill_repository::save_facts(tx, &uid, &facts)
        .await
        .unwrap();
}

struct Admin {
    yard: Yard,
    root: String,
}

impl Admin {
    async fn new() -> Self {
        let yard = yard().await;
        let root = yard.sign_in("root").await;
        Self { yard, root }
    }

    async fn upload(&self, zip: &[u8]) -> Answer {
        let upload = self.yard.upload("/api/admin/skills/upload", zip);
        upload.with("root", &self.root).send().await
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Answer {
        let path = format!("/api/admin/{path}");
        let mut form = form.to_vec();
        form.push(("wait", "0"));
        self.yard
            .post(&path, &form)
            .with("root", &self.root)
            .send()
            .await
    }

    async fn done(&self, path: &str, form: &[(&str, &str)]) -> Value {
        let answer = self.post(path, form).await;
        assert!(answer.status.is_success(), "{path} {form:?}: {answer:?}");
        answer.body
    }

    async fn get(&self, path: &str) -> Value {
        let path = format!("/api/admin/{path}");
        let answer = self.yard.get(&path).with("root", &self.root).send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }

    async fn skill(&self) -> Value {
        self.get("skills").await["skills"][0].clone()
    }

    /// How often the skills of a user have changed.
    async fn generation(&self, user: &str) -> i64 {
        let path = format!("reconcile/objects/skill-set/{user}");
        self.get(&path).await["generation"].as_i64().unwrap()
    }

    async fn generations(&self) -> [i64; 2] {
        [self.generation("alice").await, self.generation("bob").await]
    }
}

fn affected(body: &Value) -> Vec<(String, Value, Value, Value)> {
    let users = body["affected"].as_array().unwrap();
    let change = |user: &Value| {
        let name = user["username"].as_str().unwrap().to_owned();
        (
            name,
            user["gains"].clone(),
            user["loses"].clone(),
            user["changes"].clone(),
        )
    };
    users.iter().map(change).collect()
}

#[tokio::test]
async fn an_upload_is_listed_downloaded_and_uploaded_again_as_the_same() {
    let admin = Admin::new().await;
    let added = admin.upload(&pdf("1")).await;
    assert_eq!(added.status, 200, "{added:?}");
    assert_eq!(added.body["name"], "pdf");
    assert_eq!(added.body["number"], 1);
    assert_eq!(added.body["user_count"], 0);
    assert_eq!(added.body["warnings"], json!([]));
    let skill = admin.skill().await;
    assert_eq!(skill["description"], "Reads forms");
    assert_eq!(skill["version"], "1");
    assert_eq!(skill["source"], "upload");
    assert_eq!(skill["file_count"], 2);
    assert_eq!(skill["mod_time"], "2026-05-11 11:46");
    let path = "/api/admin/skills/download?name=PDF";
    let request = warp::test::request()
        .path(path)
        .header("cookie", &admin.root);
    let downloaded = admin.yard.raw(request).await;
    let disposition = downloaded.headers()["content-disposition"]
        .to_str()
        .unwrap();
    assert_eq!(disposition, "attachment; filename=\"pdf.zip\"");
    let mut zip = ZipArchive::new(Cursor::new(downloaded.body().to_vec())).unwrap();
    let mut content = String::new();
    zip.by_name("pdf/run.sh")
        .unwrap()
        .read_to_string(&mut content)
        .unwrap();
    assert_eq!(content, "echo");
    let again = admin.upload(downloaded.body()).await;
    assert_eq!(again.body["changed"], false);
    assert_eq!(again.body["digest"], added.body["digest"]);
    let missing = "/api/admin/skills/download?name=nothing";
    let missing = admin
        .yard
        .get(missing)
        .with("root", &admin.root)
        .send()
        .await;
    assert_eq!(missing.verdict(), (404, "not_found"));
}

#[tokio::test]
async fn l27_what_breaks_a_rule_is_refused_and_leaves_nothing() {
    let admin = Admin::new().await;
    for (zip, said) in [
        (b"no zip at all".to_vec(), "zip"),
        (zip_of(&[("../evil", "x")]), ".."),
        (zip_of(&[("a/SKILL.md", "---\nname: [\n---\n")]), "SKILL.md"),
        (zip_of(&[("a/x", "1"), ("a/X", "2")]), "twice"),
        (zip_of(&[]), "no files"),
        (zip_of(&[("x", "1"), ("y", "2")]), "no name"),
    ] {
        let answer = admin.upload(&zip).await;
        assert_eq!(answer.verdict(), (422, "invalid_skill"), "{said}");
        let error = answer.body["error"].as_str().unwrap();
        assert!(error.contains(said), "{said}: {error}");
    }
    let none = admin.post("skills/upload", &[]).await;
    assert_eq!(none.status, 415, "{none:?}");
    assert_eq!(admin.get("skills").await["skills"], json!([]));
    let store = admin.yard.world.data_dir().join("skills");
    assert_eq!(std::fs::read_dir(store).unwrap().count(), 0);
}

#[tokio::test]
async fn bindings_concern_exactly_whom_they_concern() {
    let admin = Admin::new().await;
    admin.upload(&pdf("1")).await;
    admin.done("groups/create", &[("name", "top")]).await;
    admin
        .done("groups/create", &[("name", "low"), ("parent_id", "top")])
        .await;
    let form = [("group_name", "low"), ("usernames", "alice")];
    admin.done("groups/members/add", &form).await;
    assert_eq!(admin.generations().await, [1, 1]);

    // A dry run says what would be, and changes nothing.
    let bind = [("group_name", "top"), ("skill_name", "pdf")];
    let dry = [
        ("group_name", "top"),
        ("skill_name", "pdf"),
        ("dry_run", "1"),
    ];
    let body = admin.done("groups/skills/bind", &dry).await;
    let gain = |name: &str| (name.to_owned(), json!(["pdf"]), json!([]), json!([]));
    assert_eq!(affected(&body), [gain("alice")]);
    assert_eq!(admin.generations().await, [1, 1]);
    assert_eq!(admin.skill().await["user_count"], 0);

    let body = admin.done("groups/skills/bind", &bind).await;
    assert_eq!(affected(&body), [gain("alice")]);
    assert_eq!(
        (&body["member_count"], &body["user_count"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(body["object"], "skill-set/alice");
    assert_eq!(admin.generations().await, [2, 1]);
    let skill = admin.skill().await;
    assert_eq!(skill["bound_groups"], json!(["top"]));
    assert_eq!(skill["user_count"], 1);

    // Who has it already is not concerned by another binding.
    let own = [("skill_name", "pdf"), ("username", "alice")];
    let body = admin.done("skills/deploy", &own).await;
    assert_eq!(body["user_count"], 0);
    assert_eq!(admin.generations().await, [2, 1]);
    let set = admin.get("reconcile/objects/user/alice").await;
    let by: Vec<_> = set["desired"]["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| (s["by"].clone(), s["via"].clone()))
        .collect();
    assert_eq!(
        by,
        [
            (json!("group top"), json!("low")),
            (json!("user"), Value::Null)
        ]
    );
    let body = admin.done("groups/skills/unbind", &bind).await;
    assert_eq!(body["user_count"], 0);
    let body = admin.done("skills/undeploy", &own).await;
    assert_eq!(
        affected(&body),
        [("alice".to_owned(), json!([]), json!(["pdf"]), json!([]))]
    );
    assert_eq!(admin.generations().await, [3, 1]);
    let again = admin.post("skills/undeploy", &own).await;
    assert_eq!(again.verdict(), (404, "not_found"));

    // Everybody: the configuration says so.
    let everyone = [("skill_name", "pdf")];
    let body = admin.done("skills/deploy", &everyone).await;
    assert_eq!(affected(&body), [gain("alice"), gain("bob")]);
    assert!(body["task_id"].is_string());
    let config = admin
        .yard
        .get("/api/config")
        .with("root", &admin.root)
        .send()
        .await;
    assert_eq!(config.body["skills"]["defaults"], json!(["pdf"]));
    assert_eq!(admin.generations().await, [4, 2]);
    admin.done("skills/undeploy", &everyone).await;
    assert_eq!(admin.generations().await, [5, 3]);
}

#[tokio::test]
async fn defaults_are_skills_that_there_are() {
    let admin = Admin::new().await;
    admin.upload(&pdf("1")).await;
    let save = |document: &'static str, dry_run: &'static str| {
        let form = [("config", document), ("dry_run", dry_run), ("wait", "0")];
        admin.yard.post("/api/config", &form)
    };
    let unknown = r#"{"skills": {"defaults": ["pdf", "nothing"]}}"#;
    let answer = save(unknown, "0").with("root", &admin.root).send().await;
    assert_eq!(answer.verdict(), (422, "invalid_config"), "{answer:?}");
    assert!(answer.body["error"].as_str().unwrap().contains("nothing"));
    assert_eq!(answer.body["problems"][0]["key"], "skills.defaults");
    let known = r#"{"skills": {"defaults": ["pdf"]}}"#;
    let dry = save(known, "1").with("root", &admin.root).send().await;
    assert_eq!(
        dry.body["skill_changes"].as_array().unwrap().len(),
        2,
        "{dry:?}"
    );
    assert_eq!(admin.generations().await, [1, 1]);
    let saved = save(known, "0").with("root", &admin.root).send().await;
    assert!(saved.status.is_success(), "{saved:?}");
    assert_eq!(admin.generations().await, [2, 2]);
    // A skill that is removed is no default any more.
    let refused = admin.post("skills/remove", &[("name", "pdf")]).await;
    assert_eq!(refused.verdict(), (409, "skill_bound"));
    let dry = [("name", "pdf"), ("dry_run", "1")];
    assert_eq!(admin.done("skills/remove", &dry).await["user_count"], 2);
    let stale = [("name", "pdf"), ("force", "1"), ("if_generation", "99")];
    let stale = admin.post("skills/remove", &stale).await;
    assert_eq!(stale.verdict(), (412, "stale_generation"));
    assert_eq!(admin.generations().await, [2, 2]);
    let generation = admin.skill().await["generation"].to_string();
    let known = [
        ("name", "pdf"),
        ("force", "1"),
        ("if_generation", &*generation),
    ];
    admin.done("skills/remove", &known).await;
    assert_eq!(admin.generations().await, [3, 3]);
    let config = admin
        .yard
        .get("/api/config")
        .with("root", &admin.root)
        .send()
        .await;
    assert_eq!(config.body["skills"]["defaults"], json!([]));
    let gone = admin.post("skills/deploy", &[("skill_name", "pdf")]).await;
    assert_eq!(gone.verdict(), (404, "not_found"));
    let again = admin.upload(&pdf("1")).await;
    assert_eq!(again.verdict(), (409, "name_being_removed"));
}

#[tokio::test]
async fn ten_versions_are_kept_and_one_comes_back() {
    let admin = Admin::new().await;
    for version in 1..=11 {
        let added = admin.upload(&pdf(&version.to_string())).await;
        assert_eq!(added.body["number"], version, "{added:?}");
    }
    let deploy = [("skill_name", "pdf"), ("username", "bob")];
    admin.done("skills/deploy", &deploy).await;
    let numbers = |body: &Value| -> Vec<i64> {
        let versions = body["versions"].as_array().unwrap();
        versions
            .iter()
            .map(|v| v["number"].as_i64().unwrap())
            .collect()
    };
    let kept = admin.get("skills/versions?name=pdf").await;
    assert_eq!(numbers(&kept), (2..=11).rev().collect::<Vec<_>>());
    let gone = admin
        .post("skills/rollback", &[("name", "pdf"), ("number", "1")])
        .await;
    assert_eq!(gone.verdict(), (404, "not_found"));
    let body = admin.done("skills/rollback", &[("name", "pdf")]).await;
    assert_eq!(body["number"], 10);
    assert_eq!(
        affected(&body),
        [("bob".to_owned(), json!([]), json!([]), json!(["pdf"]))]
    );
    let body = admin
        .done("skills/rollback", &[("name", "pdf"), ("number", "3")])
        .await;
    assert_eq!(body["number"], 3);
    assert_eq!(admin.skill().await["version"], "3");
    // A new version counts on from the newest.
    let added = admin.upload(&pdf("12")).await;
    assert_eq!(added.body["number"], 12);
    let kept = admin.get("skills/versions?name=pdf").await;
    assert_eq!(numbers(&kept), (3..=12).rev().collect::<Vec<_>>());
}

#[tokio::test]
async fn repositories_are_kept_without_showing_secrets() {
    let admin = Admin::new().await;
    let repo = json!({
        "name": "team", "url": "https://git.example.com/team/skills.git", "ref": "v1", "ref_type": "tag",
        "credentials": [{"name": "bot", "provider": "gitlab", "secret": "hunter2-token"}],
    });
    let text = repo.to_string();
    let added = admin.done("skills/repos/add", &[("repo", &text)]).await;
    assert_eq!(added["object"], "skill-repository/team");
    let listed = admin.get("skills/repos/list").await;
    let shown = &listed["repos"][0];
    assert_eq!(shown["ref"], "v1");
    assert_eq!(shown["ref_type"], "tag");
    assert_eq!(shown["public"], false);
    let credential =
        json!([{"name": "bot", "provider": "gitlab", "username": "", "secret_set": true}]);
    assert_eq!(shown["credentials"], credential);
    let everything = admin.get("skills").await.to_string() + &admin.get("audit").await.to_string();
    assert!(!everything.contains("hunter2"), "{everything}");
    let taken = admin.post("skills/repos/add", &[("repo", &text)]).await;
    assert_eq!(taken.verdict(), (409, "already_exists"));

    // L72: a secret belongs to its host.
    let moved = [("name", "team"), ("url", "https://evil.example.com/x.git")];
    let answer = admin.post("skills/repos/save", &moved).await;
    assert_eq!(answer.verdict(), (422, "secret_required"));
    let masked = json!({"name": "team", "url": "https://evil.example.com/x.git", "credentials": [{"name": "bot"}]});
    let masked = admin
        .post("skills/repos/save", &[("repo", &masked.to_string())])
        .await;
    assert_eq!(masked.verdict(), (422, "secret_required"));
    let without_tls = [
        ("name", "team"),
        ("url", "http://git.example.com/team/skills.git"),
    ];
    let answer = admin.post("skills/repos/save", &without_tls).await;
    assert_eq!(answer.verdict(), (422, "secret_required"));
    let same_host = [
        ("name", "team"),
        ("url", "https://git.example.com/other.git"),
        ("ref", "v2"),
    ];
    admin.done("skills/repos/save", &same_host).await;
    let shown = admin.get("skills/repos/list").await["repos"][0].clone();
    assert_eq!(
        (&shown["ref"], &shown["credentials"]),
        (&json!("v2"), &credential)
    );

    for bad in [
        "file:///etc",
        "ext::sh -c touch% /tmp/x",
        "--upload-pack=x",
        "https://a:b@host/x",
        "",
        "ftp://x/y",
    ] {
        let form = [("name", "bad"), ("url", bad)];
        let answer = admin.post("skills/repos/add", &form).await;
        assert_eq!(answer.verdict(), (400, "invalid_parameter"), "{bad}");
    }
    for bad in ["-x", "a..b", "a b", "refs/heads/x"] {
        let form = [("name", "bad"), ("url", "https://h/x"), ("ref", bad)];
        let answer = admin.post("skills/repos/add", &form).await;
        assert_eq!(answer.verdict(), (400, "invalid_parameter"), "{bad}");
    }
    let early = admin.post("skills/install", &[("repo", "team")]).await;
    assert_eq!(early.verdict(), (409, "not_pulled"));
    let pull = admin.done("skills/repos/pull", &[("name", "team")]).await;
    assert_eq!(
        (&pull["updated"], &pull["state"]),
        (&Value::Null, &json!("pending"))
    );
    admin.done("skills/repos/cancel", &[("name", "team")]).await;
    let again = admin.post("skills/repos/cancel", &[("name", "team")]).await;
    assert_eq!(again.verdict(), (409, "wrong_state"));
    let stale = [("name", "team"), ("if_generation", "99")];
    let stale = admin.post("skills/repos/remove", &stale).await;
    assert_eq!(stale.verdict(), (412, "stale_generation"));
    let repositories = admin.get("skills/repos/list").await;
    let generation = repositories["repos"][0]["generation"].to_string();
    let known = [("name", "team"), ("if_generation", &*generation)];
    let removed = admin.post("skills/repos/remove", &known).await;
    assert_eq!(removed.status, 202, "{removed:?}");
    let gone = admin.post("skills/repos/pull", &[("name", "team")]).await;
    assert_eq!(gone.verdict(), (404, "not_found"));
}

fn other_digest() -> Option<TreeDigest> {
    Some("0".repeat(64).parse().unwrap())
}

#[tokio::test]
async fn upload_read_otherwise_answers_warnings() {
    let admin = Admin::new().await;
    let manifest = "<!-- from a list -->\n---\nname: pdf\ndescription: Use it when: always\n---\n";
    let added = admin
        .upload(&zip_of(&[
            ("pdf/SKILL.md", manifest),
            ("pdf/._SKILL.md", "x"),
            ("pdf/more/SKILL.md", "# More"),
        ]))
        .await;
    assert_eq!(added.status, 200, "{added:?}");
    let warnings: Vec<&str> = added.body["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning.as_str().unwrap())
        .collect();
    let begins = [
        "other skills are inside",
        "\"SKILL.md\": the front matter begins in line 3, after a comment",
        "\"SKILL.md\": line 4: description has a colon",
        "files that macOS adds were left out: \"pdf/._SKILL.md\"",
    ];
    assert_eq!(warnings.len(), begins.len(), "{warnings:?}");
    for (warning, begin) in warnings.iter().zip(begins) {
        assert!(warning.starts_with(begin), "{warning}");
    }
    assert_eq!(admin.skill().await["description"], "Use it when: always");
    let collection = zip_of(&[
        ("skills-main/a/SKILL.md", ""),
        ("skills-main/b/SKILL.md", ""),
    ]);
    let refused = admin.upload(&collection).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    let said = refused.body["error"].as_str().unwrap();
    assert!(said.contains("2 skills below it: \"a\", \"b\""), "{said}");
}

#[tokio::test]
async fn skill_with_a_title_is_installed_under_another_name() {
    let admin = Admin::new().await;
    let mut tx = admin.yard.tx().await;
    let manifest = "---\nname: Building CI/CD Pipelines\ndescription: Plans\n---\n";
    pulled_repository_of(&admin.yard.world, &mut tx, manifest).await;
    tx.commit().await.unwrap();
    let refused = admin.post("skills/install", &[("repo", "pulled")]).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    let said = refused.body["error"].as_str().unwrap();
    assert!(said.contains("install it under another name"), "{said}");
    let form = [("repo", "pulled"), ("name", "pipelines")];
    let added = admin.done("skills/install", &form).await;
    assert_eq!(added["name"], "pipelines");
    assert_eq!(admin.skill().await["source"], "pulled");
}

#[tokio::test]
async fn bound_skill_from_elsewhere_is_replaced_by_force_only() {
    let admin = Admin::new().await;
    let mut tx = admin.yard.tx().await;
    pulled_repository(&admin.yard.world, &mut tx).await;
    tx.commit().await.unwrap();
    let warned = |body: &Value, begin: &str| {
        let warnings = body["warnings"].as_array().unwrap();
        let warned = warnings
            .iter()
            .any(|it| it.as_str().unwrap().starts_with(begin));
        assert!(warned, "{body}");
    };
    admin.upload(&package("plan")).await;
    // No user has the skill: the installation warns, and is done.
    let install = [("repo", "pulled"), ("skill", "plan")];
    let forced = [&install[..], &[("force", "1")]].concat();
    let dry = [&install[..], &[("dry_run", "1")]].concat();
    let moved = "skill plan came from an upload; this version comes from repository pulled";
    warned(&admin.done("skills/install", &dry).await, moved);
    warned(&admin.done("skills/install", &install).await, moved);
    let back = "skill plan came from repository pulled; this version comes from an upload";
    let uploaded = admin.upload(&package("plan")).await;
    warned(&uploaded.body, back);
    let bind = [("skill_name", "plan"), ("username", "bob")];
    admin.done("skills/deploy", &bind).await;
    let refused = admin.post("skills/install", &install).await;
    assert_eq!(refused.verdict(), (409, "other_origin"), "{refused:?}");
    let said = refused.body["error"].as_str().unwrap();
    assert!(said.starts_with(moved), "{said}");
    assert!(said.contains("bindings: 1") && said.contains("use force"));
    warned(&admin.done("skills/install", &dry).await, moved);
    assert_eq!(admin.skill().await["source"], "upload");
    warned(&admin.done("skills/install", &forced).await, moved);
    assert_eq!(admin.skill().await["source"], "pulled");
    let again = admin.done("skills/install", &install).await;
    assert_eq!(again["warnings"], json!([]));
    let refused = admin.upload(&package("plan")).await;
    assert_eq!(refused.verdict(), (409, "other_origin"), "{refused:?}");
}

fn offered(path: &str, name: Option<&str>, absent: bool) -> OfferedSkill {
    OfferedSkill {
        path: path.to_owned(),
        name: name.map(|name| name.parse().unwrap()),
        description: String::new(),
        problem: absent.then(|| "its SKILL.md is a symbolic link".to_owned()),
        digest: None,
        warnings: vec!["a link was left out".to_owned()],
        absent,
    }
}

#[tokio::test]
async fn skills_of_a_collection_are_paged_and_chosen_by_directory() {
    let admin = Admin::new().await;
    let mut tx = admin.yard.tx().await;
    pulled_repository(&admin.yard.world, &mut tx).await;
    let name = "pulled".parse().unwrap();
    let row = skill_repository::find(&mut tx, &name).await.unwrap();
    let row = row.unwrap();
    let mut facts = RepositoryFacts {
        warnings: vec!["it has links".to_owned()],
        ..row.facts
    };
    let skills = facts.skills.as_mut().unwrap();
    skills[0] = offered("", Some("plan"), false);
    let many = (0..3148).map(|n| offered(&format!("many/{n:04}"), Some("pdf"), false));
    skills.extend(many);
    skills.push(offered("pdf", Some("other"), false));
    skills.push(offered("x", None, true));
    skill_repository::save_facts(&mut tx, &row.uid, &facts)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let whole = admin.get("skills/repos/list?name=pulled").await;
    assert_eq!(whole["skills"].as_array().unwrap().len(), 3151);
    let page = "skills/repos/list?name=pulled&page=16&page_size=200";
    let page = admin.get(page).await;
    assert_eq!(
        (&page["total"], &page["total_pages"]),
        (&json!(3151), &json!(16))
    );
    assert_eq!(page["skills"].as_array().unwrap().len(), 151);
    let repos = admin.get("skills/repos/list").await;
    assert_eq!(repos["repos"][0]["warnings"], json!(["it has links"]));
    assert_eq!(repos["repos"][0]["skill_count"], 3151);
    let dry = [("name", "pulled"), ("dry_run", "1")];
    let pull = admin.done("skills/repos/pull", &dry).await;
    assert_eq!(pull["warnings"], json!(["it has links"]));
    let install = async |skill: &str, name: &str| {
        let form = [("repo", "pulled"), ("skill", skill), ("name", name)];
        admin.post("skills/install", &form).await
    };
    // Everything but the top is in the list only.
    for (skill, verdict, parts) in [
        ("x", (422, "invalid_skill"), &["is a symbolic link"][..]),
        (
            "",
            (422, "ambiguous_skill"),
            &["3151 skills", "directory: ., many/0000, ", "and 3141 more"],
        ),
        ("nothing", (404, "not_found"), &[]),
        ("many/3147", (500, "internal"), &[]),
        ("./pdf/", (500, "internal"), &[]),
    ] {
        let answer = install(skill, "").await;
        assert_eq!(answer.verdict(), verdict, "{skill}: {answer:?}");
        let said = answer.body["error"].as_str().unwrap();
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
    // Under another name, then the update of that.
    let added = install(".", "mine").await;
    assert_eq!(added.status, 200, "{added:?}");
    assert_eq!(added.body["warnings"], json!(["a link was left out"]));
    let updated = install(".", "").await;
    assert_eq!(updated.body["name"], "mine", "{updated:?}");
    let warnings = updated.body["warnings"].as_array().unwrap();
    let said = warnings[1].as_str().unwrap();
    assert!(said.contains("updated under that name"), "{said}");
    let top = admin.get("skills/repos/list?name=pulled&page=1").await;
    assert_eq!(top["skills"][0]["installed"], true);
    install(".", "plan").await;
    install(".", "second").await;
    assert_eq!(install(".", "").await.body["name"], "plan");
}

#[tokio::test]
async fn a_skill_of_a_repository_is_installed_and_says_when_it_is_old() {
    let admin = Admin::new().await;
    let mut tx = admin.yard.tx().await;
    pulled_repository(&admin.yard.world, &mut tx).await;
    tx.commit().await.unwrap();
    let offered = admin.get("skills/repos/list?name=pulled").await;
    assert_eq!(offered["skills"][0]["name"], "plan");
    assert_eq!(offered["skills"][0]["installed"], false);
    let added = admin
        .done("skills/install", &[("repo", "pulled"), ("skill", "plan")])
        .await;
    assert_eq!(
        (&added["name"], &added["number"]),
        (&json!("plan"), &json!(1))
    );
    let skill = admin.skill().await;
    assert_eq!(skill["source"], "pulled");
    let again = admin.done("skills/install", &[("repo", "pulled")]).await;
    assert_eq!(again["changed"], false);
    let state = |body: &Value| {
        let skill = &body["skills"][0];
        (
            skill["installed"].clone(),
            skill["update_available"].clone(),
        )
    };
    let offered = admin.get("skills/repos/list?name=pulled").await;
    assert_eq!(state(&offered), (json!(true), json!(false)));
    let mut tx = admin.yard.tx().await;
    let name = "pulled".parse().unwrap();
    let row = skill_repository::find(&mut tx, &name)
        .await
        .unwrap()
        .unwrap();
    // Another commit with the same files is none, then the files are others.
    let mut facts = RepositoryFacts {
        commit_id: Some("decade".to_owned()),
        ..row.facts
    };
    for (digest, is_old) in [
        (facts.skills.as_ref().unwrap()[0].digest.clone(), false),
        (other_digest(), true),
    ] {
        facts.skills.as_mut().unwrap()[0].digest = digest;
        skill_repository::save_facts(&mut tx, &row.uid, &facts)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let offered = admin.get("skills/repos/list?name=pulled").await;
        assert_eq!(state(&offered), (json!(true), json!(is_old)));
        tx = admin.yard.tx().await;
    }
    drop(tx);
    admin
        .done(
            "skills/deploy",
            &[("skill_name", "plan"), ("username", "bob")],
        )
        .await;
    let dry = admin
        .done("skills/repos/pull", &[("name", "pulled"), ("dry_run", "1")])
        .await;
    assert_eq!(dry["update_available"], json!(["plan"]));
    assert_eq!(
        affected(&dry),
        [("bob".to_owned(), json!([]), json!([]), json!(["plan"]))]
    );
    assert_eq!(dry["state"], Value::Null);
    let missing = [("repo", "pulled"), ("skill", "nothing")];
    let missing = admin.post("skills/install", &missing).await;
    assert_eq!(missing.verdict(), (404, "not_found"));
}

#[tokio::test]
async fn users_see_their_skills_and_what_gives_each() {
    let admin = Admin::new().await;
    let alice = admin.yard.sign_in("alice").await;
    let own = async |query: &str| {
        let path = format!("/api/user/skills?{query}");
        admin
            .yard
            .get(&path)
            .with("alice", &alice)
            .send()
            .await
            .body
    };
    assert_eq!(own("").await["skills"], json!([]));
    admin.upload(&pdf("1.0")).await;
    admin.upload(&package("tool")).await;
    for form in [("name", "staff"), ("name", "core")] {
        admin
            .done(
                "groups/create",
                &[
                    form,
                    ("parent_id", if form.1 == "core" { "staff" } else { "" }),
                ],
            )
            .await;
    }
    admin
        .done(
            "groups/members/add",
            &[("group_name", "core"), ("usernames", "alice")],
        )
        .await;
    admin
        .done(
            "groups/skills/bind",
            &[("group_name", "staff"), ("skill_name", "pdf")],
        )
        .await;
    admin
        .done(
            "skills/deploy",
            &[("skill_name", "pdf"), ("username", "alice")],
        )
        .await;
    admin.done("skills/deploy", &[("skill_name", "tool")]).await;
    let skills = own("").await["skills"].clone();
    let (pdf, tool) = (&skills[0], &skills[1]);
    assert_eq!(
        (&pdf["name"], &pdf["version"], &pdf["description"]),
        (&json!("pdf"), &json!("1.0"), &json!("Reads forms"))
    );
    assert_eq!(
        pdf["bindings"],
        json!([{"by": "group", "group": "staff", "via": "core"}, {"by": "own"}])
    );
    assert_eq!(tool["bindings"], json!([{"by": "default"}]));
    assert_eq!(
        (&pdf["deployed"], pdf["reason"].is_string()),
        (&json!(false), true)
    );
    let uid = admin.yard.find("alice").await.unwrap().uid;
    let mut tx = admin.yard.tx().await;
    let lies = schema::skill_set::Deployment {
        name: "pdf".parse().unwrap(),
        digest: Some(serde_json::from_value(pdf["digest"].clone()).unwrap()),
        stamp: None,
        next: None,
        file_count: 1,
        size: 1,
    };
    schema::skill_set::save_deployments(&mut tx, &uid, &[lies])
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let found = own("search=FORMS").await;
    assert_eq!(
        (&found["total"], &found["skills"][0]["deployed"]),
        (&json!(1), &json!(true))
    );
    assert_eq!(found["skills"][0].get("reason"), None);
}
