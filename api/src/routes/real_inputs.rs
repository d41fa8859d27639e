//! The table of real inputs of clients, the configuration, files and skills: `docs/architecture/real-inputs.md`.

#[path = "../../../tests/support/real_inputs.rs"]
mod table;

use std::io::Write as _;
use std::path::Path;

use schema::ids::SkillName;
use schema::skill_store::{SkillStore, list_skills};
use serde_json::{Value, json};

use self::table::{Outcome, Row, check, row};
use super::files::tests::make_home;
use super::skills::tests::zip_of;
use super::yard::{Answer, Yard, yard};
use crate::mcp::tools::arguments::tests::read_for;

fn texts(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten();
    texts
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

fn outcome(answer: &Answer) -> Outcome {
    let warnings = texts(&answer.body["warnings"]);
    match (answer.status.is_success(), warnings.is_empty()) {
        (true, true) => Outcome::Taken,
        (true, false) => Outcome::Warned(warnings),
        (false, _) => Outcome::Refused(answer.body["error"].as_str().unwrap().to_owned()),
    }
}

/// A signed-in account and what it sends.
struct Sender<'a> {
    yard: &'a Yard,
    name: &'a str,
    cookie: String,
}

impl Sender<'_> {
    async fn form(&self, path: &str, form: &[(&str, &str)]) -> Answer {
        let mut form = form.to_vec();
        form.push(("wait", "0"));
        let ask = self.yard.post(path, &form);
        ask.with(self.name, &self.cookie).send().await
    }

    async fn json(&self, path: &str, body: &Value) -> Answer {
        let ask = self.yard.post_json(path, body);
        ask.with(self.name, &self.cookie).send().await
    }

    async fn get(&self, path: &str) -> Answer {
        let ask = self.yard.get(path);
        ask.with(self.name, &self.cookie).send().await
    }

    async fn zip(&self, zip: &[u8]) -> Outcome {
        let ask = self
            .yard
            .upload("/api/admin/skills/upload?force=1&wait=0", zip);
        outcome(&ask.with(self.name, &self.cookie).send().await)
    }

    async fn skill(&self, manifest: &str) -> Outcome {
        self.zip(&zip_of(&[("SKILL.md", manifest)])).await
    }

    async fn config(&self, config: &Value) -> Outcome {
        let form = [("config", &*config.to_string())];
        outcome(&self.form("/api/config", &form).await)
    }
}

/// A zip file as a program packed it.
fn case(name: &str) -> Vec<u8> {
    let cases = "../schema/src/skill_store/tests/cases/zips";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(cases).join(name);
    std::fs::read(path).unwrap()
}

async fn rows_of_skills(root: &Sender<'_>) -> Vec<Row> {
    const ZIP: &str = "zip file of a skill";
    const MD: &str = "SKILL.md";
    let odd = "---\nname: notes\ndescription: Notes\ntags: [1, {a: b}]\nhomepage: {x: 1}\nmetadata: 7\n---\n";
    let colon = "---\nname: notes\ndescription: Use when: the user asks\n---\n";
    let slash = "---\nname: Notes/Minutes\ndescription: Notes\n---\n";
    let finder = case("zip-as-macos-root-dot-underscore.zip");
    vec![
        row(
            1,
            MD,
            "fields that nothing reads, of odd types",
            root.skill(odd).await,
            &[],
        ),
        row(
            1,
            ZIP,
            "a stale Unicode Path field",
            root.zip(&case("cp437-name-with-unicode-path.zip")).await,
            &[],
        ),
        row(
            2,
            ZIP,
            "`._*` files of macOS among the files",
            root.zip(&finder).await,
            &[],
        ),
        row(
            2,
            ZIP,
            "Finder's `Icon` with a carriage return",
            root.zip(&case("finder-icon-cr.zip")).await,
            &[],
        ),
        row(
            3,
            MD,
            "a description with a colon and no quotes",
            root.skill(colon).await,
            &["description"],
        ),
        row(
            3,
            ZIP,
            "`\\` for `/` (Windows PowerShell 5.1)",
            root.zip(&case("backslash-powershell51.zip")).await,
            &["\\"],
        ),
        row(
            3,
            ZIP,
            "names in UTF-8 by a Unicode Path field",
            root.zip(&case("ascii-escape-with-unicode-path.zip")).await,
            &[],
        ),
        row(
            4,
            ZIP,
            "a symbolic link",
            root.zip(&case("github-archive-with-link.zip")).await,
            &["link"],
        ),
        row(
            4,
            MD,
            "front matter below a heading",
            root.skill("# Notes\n\n---\nname: notes\ndescription: Notes\n---\n")
                .await,
            &[],
        ),
        row(
            5,
            MD,
            "a name with a slash",
            root.skill(slash).await,
            &["Notes/Minutes", "name"],
        ),
        row(
            5,
            ZIP,
            "SKILL.md in UTF-16",
            root.zip(&case("skill-md-utf16.zip")).await,
            &["UTF-16", "UTF-8"],
        ),
        row(
            5,
            ZIP,
            "names in GBK",
            root.zip(&case("gbk-name.zip")).await,
            &["UTF-8", "agentyard skill upload"],
        ),
        row(
            5,
            ZIP,
            "a whole collection of skills",
            root.zip(&case("whole-repository-of-two-skills.zip")).await,
            &["SKILL.md", "agentyard"],
        ),
        row(
            6,
            MD,
            "colon without quotes, in a zip file and in a folder of a repository",
            same_by_both(colon),
            &[],
        ),
        row(
            6,
            MD,
            "a name with a slash, in a zip file and in a folder of a repository",
            same_by_both(slash),
            &[],
        ),
    ]
}

/// The results of the readers of zip files and of folders for the same manifest.
fn same_by_both(manifest: &str) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let skill = folder.path().join("skill");
    std::fs::create_dir(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), manifest).unwrap();
    let mut zip = tempfile::tempfile().unwrap();
    zip.write_all(&zip_of(&[("SKILL.md", manifest)])).unwrap();
    let name: SkillName = "notes".parse().unwrap();
    let store = SkillStore::open(folder.path()).unwrap();
    let opened = std::fs::File::open(&skill).unwrap();
    let results = [
        store.import_zip(zip, Some(&name)),
        store.import_dir(&opened, &name),
    ];
    let outcomes = results.map(|result| match result {
        Ok(imported) if imported.warnings.is_empty() => Outcome::Taken,
        Ok(imported) => Outcome::Warned(imported.warnings),
        Err(error) => Outcome::Refused(error.to_string()),
    });
    Outcome::Same(outcomes.into())
}

async fn rows_of_config(root: &Sender<'_>) -> Vec<Row> {
    const CONFIG: &str = "configuration";
    let number = json!({"image": {"tag": 7}});
    let large = json!({"agent": {"limits": {"tokens": 12}}});
    let hook = json!({"agent": {"teams_webhook": {"enabled": true}}});
    let saved = root.config(&hook).await;
    // No file of the adapter names it.
    assert!(matches!(saved, Outcome::Warned(_)));
    let mask = json!({"agent": {"teams_webhook": {"enabled": "********"}}});
    let masked = root.config(&mask).await;
    let whole = json!({"config": {"image": {"tag": "v1"}}, "comment": [1], "_csrf": null});
    vec![
        row(
            1,
            CONFIG,
            "members of the body beside `config`",
            outcome(&root.json("/api/config", &whole).await),
            &[],
        ),
        row(
            3,
            CONFIG,
            "an integer where a text is wanted",
            root.config(&number).await,
            &["image.tag", "quotes"],
        ),
        row(
            3,
            CONFIG,
            "integers below `agent`",
            root.config(&large).await,
            &[],
        ),
        row(
            4,
            CONFIG,
            "an integer where a text is wanted",
            root.config(&number).await,
            &["text"],
        ),
        row(
            5,
            CONFIG,
            "a mask for a value that was never masked",
            masked,
            &["teams_webhook/enabled", "send the value itself"],
        ),
    ]
}

async fn rows_of_users(root: &Sender<'_>) -> Vec<Row> {
    const NAMES: &str = "names of users";
    let batch = root
        .form(
            "/api/admin/users/batch-create",
            &[
                ("usernames", "dora\nb/d\nalice, erik"),
                ("submit", "Create"),
            ],
        )
        .await;
    let batch = match batch.body["total"].as_u64() {
        Some(2) => Outcome::Warned(vec![batch.body["error"].as_str().unwrap().to_owned()]),
        _ => outcome(&batch),
    };
    let extra = [
        ("username", "fred"),
        ("confirm_password", "x"),
        ("submit", "Create"),
    ];
    let extra = root.form("/api/admin/users/create", &extra).await;
    let slashes = root.get("//api///admin//users").await;
    let bad = root
        .form("/api/admin/users/create", &[("username", "b/d")])
        .await;
    vec![
        row(
            1,
            "forms",
            "fields that the route does not know",
            outcome(&extra),
            &[],
        ),
        row(
            2,
            NAMES,
            "two of four names cannot be created",
            batch.clone(),
            &["alice", "b/d"],
        ),
        row(
            4,
            NAMES,
            "two of four names cannot be created",
            batch,
            &["2 of 4"],
        ),
        row(
            3,
            "paths of the API",
            "repeated slashes",
            outcome(&slashes),
            &[],
        ),
        row(5, NAMES, "a slash", outcome(&bad), &["username", "a-z"]),
    ]
}

async fn rows_of_cookies(root: &Sender<'_>, alice: &Sender<'_>) -> Vec<Row> {
    let public = json!({"web": {"public_url": "https://yard.example"}});
    assert_eq!(root.config(&public).await, Outcome::Taken);
    let own = format!(
        "agentyard_session={}; theme=dark",
        alice.cookie.split_once('=').unwrap().1
    );
    let cookies = [("domain", "example.com"), ("cookies", &*own)];
    let cookies = outcome(&alice.form("/api/cookies", &cookies).await);
    let host = [("domain", "yard.example"), ("cookies", "a=1")];
    let host = outcome(&alice.form("/api/cookies", &host).await);
    vec![
        row(
            2,
            "cookies of a browser",
            "a session of the service among them",
            cookies.clone(),
            &["session"],
        ),
        row(
            4,
            "cookies of a browser",
            "a session of the service among them",
            cookies,
            &["dropped"],
        ),
        row(
            5,
            "cookies of a browser",
            "the host of the service",
            host,
            &["yard.example", "domain"],
        ),
    ]
}

fn rows_of_calls() -> Vec<Row> {
    const CALL: &str = "arguments of a tool";
    let call = |tool: &str, given: Value| match read_for(tool, &given) {
        Ok(read) if read.notes.is_empty() => Outcome::Taken,
        Ok(read) => Outcome::Warned(read.notes),
        Err(message) => Outcome::Refused(message),
    };
    let steps = json!({"steps": "[{\"tool\":\"browser_status\",\"arguments\":{}}]"});
    vec![
        row(
            1,
            CALL,
            "null for an optional argument",
            call("browser_snapshot", json!({"selector": null})),
            &[],
        ),
        row(
            3,
            CALL,
            "`\"ms\": \"5\"`",
            call("computer_wait", json!({"ms": "5"})),
            &["ms"],
        ),
        row(
            4,
            CALL,
            "a list as JSON text",
            call("browser_batch", steps),
            &["steps"],
        ),
        row(
            5,
            CALL,
            "`\"ms\": \"soon\"`",
            call("computer_wait", json!({"ms": "soon"})),
            &["soon", "such as"],
        ),
    ]
}

fn rows_of_repositories() -> Vec<Row> {
    const REPOSITORY: &str = "repository of skills";
    let folder = tempfile::tempdir().unwrap();
    for (name, manifest) in [
        ("good", "---\nname: good\ndescription: Good\n---\n"),
        ("bad", "---\nname: bad\ndescription: [\n---\n"),
    ] {
        let skill = folder.path().join(name);
        std::fs::create_dir(&skill).unwrap();
        std::fs::write(skill.join("SKILL.md"), manifest).unwrap();
    }
    let opened = std::fs::File::open(folder.path()).unwrap();
    let found = list_skills(&opened).unwrap().skills;
    assert_eq!(found.len(), 2);
    let problems = found.into_iter().filter_map(|skill| skill.problem);
    let outcome = Outcome::Warned(problems.collect());
    vec![
        row(
            2,
            REPOSITORY,
            "one of two skills cannot be read",
            outcome.clone(),
            &["SKILL.md"],
        ),
        row(
            4,
            REPOSITORY,
            "one of two skills cannot be read",
            outcome,
            &["line"],
        ),
    ]
}

#[tokio::test]
async fn every_reader_of_the_api_keeps_the_rules() {
    let yard = yard().await;
    make_home(&yard, "alice").await;
    let sender = async |name: &'static str| Sender {
        yard: &yard,
        name,
        cookie: yard.sign_in(name).await,
    };
    let (root, alice) = (sender("root").await, sender("alice").await);
    let mut rows = rows_of_users(&root).await;
    rows.extend(rows_of_config(&root).await);
    rows.extend(rows_of_cookies(&root, &alice).await);
    rows.extend(rows_of_skills(&root).await);
    rows.extend(rows_of_repositories());
    rows.extend(rows_of_calls());
    check(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
        "api",
        &rows,
    );
}
