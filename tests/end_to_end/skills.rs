//! Skills in the workspaces of many users, through kills and changes of everything that gives them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use schema::skill_store::{TreeDigest, TreeLimits, digest_tree};
use serde_json::Value;

use crate::support::{Client, Service, Stage, long, seconds, until};

const LIMIT: Duration = seconds(120);

/// A folder with a version of a skill.
fn folder(stage: &Stage, name: &str, version: &str) -> PathBuf {
    let folder = stage.path().join(format!("{name}-{version}")).join(name);
    std::fs::create_dir_all(folder.join("a/b")).unwrap();
    let manifest = format!("---\nname: {name}\ndescription: A test\nversion: {version}\n---\n");
    std::fs::write(folder.join("SKILL.md"), manifest).unwrap();
    for n in 0..20 {
        let text = format!("{name} {version} {n}\n").repeat(n * 50);
        std::fs::write(folder.join(format!("a/b/{n}.txt")), text).unwrap();
    }
    folder
}

fn digest(path: &std::path::Path) -> Option<TreeDigest> {
    let dir = File::open(path).ok()?;
    let tree = digest_tree(&dir, TreeLimits::LARGEST).unwrap();
    tree.map(|tree| tree.digest)
}

/// A service without an engine, and what its workspaces are to hold.
struct Yard {
    stage: Stage,
    service: Option<Service>,
    admin: Client,
}

impl Yard {
    async fn open() -> Self {
        let stage = Stage::new();
        let service = stage
            .alone()
            .set("container.autostart", "false")
            .start()
            .await;
        let admin = service.admin().await;
        Self {
            stage,
            service: Some(service),
            admin,
        }
    }

    async fn restart(&mut self, launch: impl Fn(&Stage) -> crate::support::service::Launch) {
        if let Some(service) = self.service.take() {
            service.kill9().await;
        }
        let service = launch(&self.stage).start().await;
        self.admin = service.admin().await;
        self.service = Some(service);
    }

    async fn done(&self, path: &str, form: &[(&str, &str)]) -> Value {
        let mut form = form.to_vec();
        form.push(("wait", "60"));
        let answer = self.admin.post(&format!("/api/admin/{path}"), &form).await;
        assert!(
            answer.status.is_success(),
            "{path} {form:?}: {}",
            answer.text()
        );
        answer.json()
    }

    /// Creates users; nobody waits for their containers, which there is no engine for.
    async fn create(&self, users: &str) {
        let form = [("usernames", users), ("wait", "0")];
        let path = "/api/admin/users/batch-create";
        self.admin.post(path, &form).await.pending();
    }

    async fn upload(&self, name: &str, version: &str) -> TreeDigest {
        let folder = folder(&self.stage, name, version);
        let text = folder.display().to_string();
        let done = self.stage.command().run(&["skill", "upload", &text]).await;
        assert!(done.status.success(), "{}", done.stderr);
        digest(&folder).unwrap()
    }

    fn skills(&self, user: &str) -> PathBuf {
        let home = self.stage.data().join("users").join(user);
        home.join(".agent/workspace/skills")
    }

    /// What lies in a workspace by name; what is kept of the user's is left out.
    fn deployed(&self, user: &str) -> BTreeMap<String, Option<TreeDigest>> {
        let Ok(entries) = std::fs::read_dir(self.skills(user)) else {
            return BTreeMap::new();
        };
        let entries = entries.map(|entry| entry.unwrap());
        let named = entries.map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, digest(&entry.path()))
        });
        named.filter(|(name, _)| name != ".replaced").collect()
    }

    fn replaced(&self, user: &str) -> Vec<PathBuf> {
        let kept = std::fs::read_dir(self.skills(user).join(".replaced"));
        let kept = kept.into_iter().flatten();
        kept.map(|entry| entry.unwrap().path()).collect()
    }

    /// Waits until every skill set has settled.
    async fn settled(&self) {
        until("all skill sets are settled", LIMIT, async || {
            let summary = self.admin.summary("skill-set").await;
            let objects = "/api/admin/reconcile/objects?reconciler=skill-set&page_size=200";
            let all = self.admin.get(objects).await.json();
            let seen = |object: &Value| object["generation"] == object["observed_generation"];
            let all = all["objects"].as_array().unwrap();
            all.iter().all(seen) && summary["queue_depth"] == 0 && summary["in_flight"] == 0
        })
        .await;
    }
}

#[tokio::test]
async fn every_workspace_has_exactly_what_the_bindings_say() {
    let yard = Yard::open().await;
    let count = if long() { 200 } else { 20 };
    let users: Vec<String> = (0..count).map(|n| format!("user{n}")).collect();
    yard.create(&users.join(",")).await;
    let (pdf, notes, base) = (
        yard.upload("pdf", "1").await,
        yard.upload("notes", "1").await,
        yard.upload("base", "1").await,
    );
    for (name, parent) in [("top", ""), ("middle", "top"), ("low", "middle")] {
        yard.done("groups/create", &[("name", name), ("parent_id", parent)])
            .await;
    }
    // A third of the users in each group; user0 in two.
    let part = |n: usize| -> Vec<&str> {
        users
            .iter()
            .map(String::as_str)
            .skip(n)
            .step_by(3)
            .collect()
    };
    for (group, n) in [("top", 0), ("middle", 1), ("low", 2)] {
        let members = part(n).join("\n");
        yard.done(
            "groups/members/add",
            &[("group_name", group), ("usernames", &members)],
        )
        .await;
    }
    yard.done(
        "groups/members/add",
        &[("group_name", "low"), ("usernames", "user0")],
    )
    .await;

    let expect = async |what: &str, expected: &dyn Fn(usize) -> Vec<(&'static str, TreeDigest)>| {
        yard.settled().await;
        for (n, user) in users.iter().enumerate() {
            let expected = expected(n).into_iter();
            let expected: BTreeMap<String, Option<TreeDigest>> = expected
                .map(|(name, digest)| (name.to_owned(), Some(digest)))
                .collect();
            assert_eq!(yard.deployed(user), expected, "{what}: {user}");
        }
    };
    let bind = |group, skill| [("group_name", group), ("skill_name", skill)];
    let body = yard.done("groups/skills/bind", &bind("top", "pdf")).await;
    assert_eq!(body["user_count"], count, "{body}");
    assert_eq!(body["progress"]["done"], count, "{body}");
    expect("bound to the top", &|_| vec![("pdf", pdf.clone())]).await;
    yard.done("groups/skills/bind", &bind("middle", "notes"))
        .await;
    yard.done("skills/deploy", &[("skill_name", "base")]).await;
    let low = |n: usize| n % 3 == 2 || n == 0;
    let below = |n: usize| !n.is_multiple_of(3) || n == 0;
    expect("bound to the middle, and to everybody", &|n| {
        let mut skills = vec![("pdf", pdf.clone()), ("base", base.clone())];
        if below(n) {
            skills.push(("notes", notes.clone()));
        }
        skills
    })
    .await;

    yard.done("groups/skills/unbind", &bind("middle", "notes"))
        .await;
    expect("unbound from the middle", &|_| {
        vec![("pdf", pdf.clone()), ("base", base.clone())]
    })
    .await;
    yard.done("groups/skills/bind", &bind("low", "notes")).await;
    let form = [("group_name", "low"), ("username", "user2")];
    yard.done("groups/members/remove", &form).await;
    expect("a member is removed", &|n| {
        let mut skills = vec![("base", base.clone())];
        if n != 2 {
            skills.push(("pdf", pdf.clone()));
        }
        if low(n) && n != 2 {
            skills.push(("notes", notes.clone()));
        }
        skills
    })
    .await;
    yard.done("groups/delete", &[("name", "middle")]).await;
    expect("the middle is deleted, and the lowest at the top", &|n| {
        let mut skills = vec![("base", base.clone())];
        if n.is_multiple_of(3) {
            skills.push(("pdf", pdf.clone()));
        }
        if low(n) && n != 2 {
            skills.push(("notes", notes.clone()));
        }
        skills
    })
    .await;
    let newer = yard.upload("base", "2").await;
    yard.done("skills/undeploy", &[("skill_name", "base")])
        .await;
    yard.done(
        "skills/deploy",
        &[("skill_name", "base"), ("username", "user1")],
    )
    .await;
    yard.done("groups/delete", &[("name", "top")]).await;
    yard.done("groups/delete", &[("name", "low")]).await;
    expect("only one binding is left", &|n| match n {
        1 => vec![("base", newer.clone())],
        _ => Vec::new(),
    })
    .await;
    for user in &users {
        assert_eq!(yard.replaced(user), Vec::<PathBuf>::new(), "{user}");
    }
}

#[tokio::test]
async fn what_users_change_is_kept_and_what_is_theirs_is_left_alone() {
    let yard = Yard::open().await;
    yard.create("alice,bob").await;
    let pdf = yard.upload("pdf", "1").await;
    // Bob has a directory of that name of his own.
    let own = yard.skills("bob").join("pdf");
    until("bob's home is there", LIMIT, async || {
        std::fs::create_dir_all(&own).is_ok()
    })
    .await;
    std::fs::write(own.join("mine.txt"), "mine").unwrap();
    let everyone = [("skill_name", "pdf"), ("wait", "60")];
    yard.admin.post("/api/admin/skills/deploy", &everyone).await;
    yard.settled().await;
    assert_eq!(
        yard.deployed("alice"),
        [("pdf".to_owned(), Some(pdf.clone()))].into()
    );
    let bob = yard.admin.object("skill-set/bob").await;
    assert_eq!(bob["conditions"][0]["reason"], "NameConflict", "{bob}");
    let message = bob["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("skills/pdf"), "{message}");
    assert_eq!(
        std::fs::read_to_string(own.join("mine.txt")).unwrap(),
        "mine"
    );

    // Alice changes a file of hers, and adds one.
    let hers = yard.skills("alice").join("pdf");
    std::fs::write(hers.join("SKILL.md"), "changed").unwrap();
    std::fs::write(hers.join("a/new.txt"), "new").unwrap();
    yard.admin.retry("skill-set/alice").await;
    until("it is repaired", LIMIT, async || {
        yard.deployed("alice").get("pdf") == Some(&Some(pdf.clone()))
    })
    .await;
    let [kept] = &yard.replaced("alice")[..] else {
        panic!("{:?}", yard.replaced("alice"));
    };
    assert_eq!(
        std::fs::read_to_string(kept.join("SKILL.md")).unwrap(),
        "changed"
    );
    assert_eq!(
        std::fs::read_to_string(kept.join("a/new.txt")).unwrap(),
        "new"
    );

    // Bob moves his away, and gets the skill.
    std::fs::rename(&own, yard.skills("bob").join("my-pdf")).unwrap();
    yard.admin.retry("skill-set/bob").await;
    until("bob has it", LIMIT, async || {
        yard.deployed("bob").get("pdf") == Some(&Some(pdf.clone()))
    })
    .await;
    yard.done("skills/remove", &[("name", "pdf"), ("force", "1")])
        .await;
    yard.settled().await;
    assert_eq!(yard.deployed("alice"), BTreeMap::new());
    assert_eq!(yard.deployed("bob").keys().collect::<Vec<_>>(), ["my-pdf"]);
    assert_eq!(yard.replaced("alice").len(), 1, "what she changed is kept");
}

/// What is done with one user's skills, one after the other.
const STEPS: [&str; 4] = ["deploy", "update", "repair", "remove"];

async fn step(yard: &Yard, step: &str) {
    let post = async |path: &str, form: &[(&str, &str)]| {
        // Whether an answer comes is a matter of luck: the service may be about to die.
        let _ = yard
            .admin
            .try_post(&format!("/api/admin/{path}"), form)
            .await;
    };
    let form = [("skill_name", "pdf"), ("username", "alice"), ("wait", "0")];
    match step {
        "deploy" => post("skills/deploy", &form).await,
        "update" => {
            post(
                "skills/rollback",
                &[("name", "pdf"), ("number", "1"), ("wait", "0")],
            )
            .await
        }
        "repair" => {
            let file = yard.skills("alice").join("pdf/SKILL.md");
            std::fs::write(file, "changed by alice").unwrap();
            post("reconcile/retry", &[("object", "skill-set/alice")]).await;
        }
        "remove" => post("skills/undeploy", &form).await,
        other => panic!("{other}"),
    }
}

/// Whether the world is as it is to be after a step.
fn is_done(yard: &Yard, step: &str, versions: &[TreeDigest; 2]) -> bool {
    let deployed = yard.deployed("alice");
    let pdf = deployed.get("pdf").cloned().flatten();
    match step {
        "deploy" => pdf.as_ref() == Some(&versions[1]),
        "update" => pdf.as_ref() == Some(&versions[0]),
        "repair" => pdf.as_ref() == Some(&versions[0]) && yard.replaced("alice").len() == 1,
        "remove" => deployed.is_empty(),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_kill_at_any_step_shows_no_half_skill_and_ends_the_same() {
    // Which points each step passes.
    let mut passed: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut yard = prepared().await;
    let versions = versions(&yard);
    let path = log.path().display().to_string();
    yard.restart(|stage| stage.alone().env("AGENTYARD_FAULT_LOG", &path))
        .await;
    yard.settled().await;
    for name in STEPS {
        let before = std::fs::read_to_string(log.path()).unwrap().lines().count();
        step(&yard, name).await;
        until(name, LIMIT, async || is_done(&yard, name, &versions)).await;
        yard.settled().await;
        let text = std::fs::read_to_string(log.path()).unwrap();
        let ours = text.lines().skip(before);
        let ours =
            ours.filter(|point| point.starts_with("home.skill") || point.starts_with("skill-set."));
        let ours: BTreeSet<String> = ours.map(str::to_owned).collect();
        passed.insert(name, ours.into_iter().collect());
    }
    let all: BTreeSet<&String> = passed.values().flatten().collect();
    for expected in [
        "home.skill.staging",
        "home.skill.staged",
        "home.skill.placed",
        "home.skill.exchanged",
        "home.skill.kept",
        "skill-set.Remember.after",
        "skill-set.Swap.before",
        "skill-set.Remove.after",
        "skill-set.status.before",
    ] {
        assert!(all.contains(&expected.to_owned()), "{expected}: {all:?}");
    }
    drop(yard);
    for (name, points) in &passed {
        // Neighbours are much alike: some of each step in the small run.
        let every = if long() { 1 } else { 12 };
        let turn = STEPS.iter().position(|other| other == name).unwrap();
        for point in points.iter().skip(turn % every).step_by(every) {
            killed(name, point, &versions).await;
        }
    }
}

/// A service with one user and two versions of a skill.
async fn prepared() -> Yard {
    let yard = Yard::open().await;
    yard.create("alice").await;
    yard.upload("pdf", "1").await;
    yard.upload("pdf", "2").await;
    yard.settled().await;
    yard
}

fn versions(yard: &Yard) -> [TreeDigest; 2] {
    ["1", "2"].map(|version| {
        let folder = yard.stage.path().join(format!("pdf-{version}/pdf"));
        digest(&folder).unwrap()
    })
}

async fn killed(name: &str, point: &str, versions: &[TreeDigest; 2]) {
    let mut yard = prepared().await;
    for earlier in STEPS.iter().take_while(|earlier| *earlier != &name) {
        step(&yard, earlier).await;
        until(earlier, LIMIT, async || is_done(&yard, earlier, versions)).await;
        yard.settled().await;
    }
    yard.restart(|stage| stage.alone().env("AGENTYARD_FAULT", point))
        .await;
    yard.settled().await;
    step(&yard, name).await;
    let mut service = yard.service.take().unwrap();
    service.died_of_fault(point).await;
    // A complete version, what alice has made of it, or nothing.
    if let Some(found) = yard.deployed("alice").get("pdf") {
        let whole = found.as_ref().is_some_and(|found| versions.contains(found));
        let file = yard.skills("alice").join("pdf/SKILL.md");
        let changed = std::fs::read_to_string(file).is_ok_and(|text| text == "changed by alice");
        assert!(
            whole || (name == "repair" && changed),
            "{name} at {point}: {found:?}"
        );
    }
    yard.restart(Stage::alone).await;
    let what = format!("{name} after a kill at {point}");
    until(&what, LIMIT, async || is_done(&yard, name, versions)).await;
    yard.settled().await;
    let home = yard.stage.data().join("users");
    let staging = std::fs::read_dir(home.join(".staging"))
        .into_iter()
        .flatten();
    for user in staging {
        let made = std::fs::read_dir(user.unwrap().path()).unwrap();
        assert_eq!(made.count(), 0, "{what}");
    }
    let agent = std::fs::read_dir(home.join("alice/.agent")).unwrap();
    for entry in agent {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.starts_with(".agentyard-skill"), "{what}: {name}");
    }
}
