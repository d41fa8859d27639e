//! Users move from image to image on the real engine, and back.

use std::path::PathBuf;
use std::time::Duration;

use schema::clock::{Clock, SystemClock};
use schema::db::{Backend, Db, Tx};
use schema::error::DbError;
use schema::ids::Uid;
use schema::rollout::{
    self, NewRollout, Phase, RolloutKind, RolloutRow, RolloutTarget, TargetState,
};
use schema::user;

use crate::support::{Client, Engine, Stage, eventually, long, seconds};

/// With this file in its home an agent of the new image ends right after its start; one of the old image
/// does not know it.
const REFUSAL: &str = ".agent/refuses";

/// With this file in its home an agent of the new image is ready, and ends five seconds later.
const DEPARTURE: &str = ".agent/departs";

/// What it says before: the token that it was given, as it is and in words, and why it ends.
const LAST_WORDS: &str = r#"grep -o 'token=[^"]*' "$HOME/.agent/config.json" | tee /dev/stderr | sed 's/%3A/:/'; printf '\033[31mrefused\033[0m by the test\n'"#;

/// Puts images on the engine that differ from `echo:2` in that they obey [`REFUSAL`].
pub(crate) fn make_images(stage: &Stage, engine: &Engine, tags: &[&str]) {
    if engine.is_cluster() {
        return;
    }
    for tag in tags {
        let id = engine.docker(&["create", "echo:2"]);
        let script = stage.path().join("echo-agent");
        let script = script.to_str().unwrap();
        engine.docker(&["cp", &format!("{id}:/bin/echo-agent"), script]);
        let text = std::fs::read_to_string(script).unwrap();
        let refusal = format!(
            "#!/bin/sh\n# {tag}\nif [ -e \"$HOME/{REFUSAL}\" ]; then sleep 0.2; {LAST_WORDS}; exit 3; fi\n"
        );
        let departure = format!(
            "if [ -e \"$HOME/{DEPARTURE}\" ]; then httpd -f -p 18790 -h /srv & sleep 5; echo 'no channel'; exit 1; fi\n"
        );
        let text = text.replacen("#!/bin/sh\n", &format!("{refusal}{departure}"), 1);
        std::fs::write(script, text).unwrap();
        engine.docker(&["cp", script, &format!("{id}:/bin/echo-agent")]);
        engine.docker(&["commit", &id, &format!("echo:{tag}")]);
        engine.docker(&["rm", "-f", &id]);
    }
}

fn reference(tag: &str) -> String {
    format!("docker.io/library/echo:{tag}")
}

fn image_id(engine: &Engine, tag: &str) -> String {
    let reference = format!("echo:{tag}");
    match engine.is_cluster() {
        // References stand for themselves while nothing is pulled.
        true => format!("docker.io/library/{reference}"),
        false => engine.docker(&["image", "inspect", "-f", "{{.Id}}", &reference]),
    }
}

pub(crate) fn refusal(stage: &Stage, user: &str) -> PathBuf {
    stage.data().join("users").join(user).join(REFUSAL)
}

/// The service's database, beside the service.
struct Database(Db);

impl Database {
    async fn open(stage: &Stage) -> Self {
        let path = stage.data().join("agentyard.db");
        Self(Db::open(Backend::Sqlite(path)).await.unwrap())
    }

    async fn change<T>(&self, work: impl AsyncFnOnce(&mut Tx) -> Result<T, DbError>) -> T {
        let mut tx = self.0.begin().await.unwrap();
        let done = work(&mut tx).await.unwrap();
        tx.commit().await.unwrap();
        done
    }

    async fn begin(&self, tag: &str, users: &[String]) -> Uid {
        let new = NewRollout {
            kind: RolloutKind::Upgrade,
            reference: reference(tag),
            source: None,
            max_unavailable: 2,
            pause_on_failure: true,
            health_timeout: Duration::from_secs(60),
            min_ready: Duration::ZERO,
        };
        self.change(async |tx| {
            let mut uids = Vec::new();
            for name in users {
                let found = user::find(tx, &name.parse().unwrap()).await?;
                uids.push(found.unwrap().uid);
            }
            rollout::create(tx, &new, &uids, "admin", SystemClock.now()).await
        })
        .await
    }

    async fn look(&self, rollout: &Uid) -> (RolloutRow, Vec<RolloutTarget>) {
        let mut connection = self.0.read().await.unwrap();
        rollout::get(&mut connection, rollout)
            .await
            .unwrap()
            .unwrap()
    }

    /// Waits until the rollout is where it stays.
    async fn comes_to(&self, rollout: &Uid, phase: Phase) -> Vec<TargetState> {
        let limit = seconds(if long() { 300 } else { 120 });
        let what = format!("the rollout is {phase:?}");
        let seen = eventually(&what, limit, async || {
            let (row, targets) = self.look(rollout).await;
            let states: Vec<_> = targets.iter().map(|target| target.state).collect();
            if row.facts.phase == phase {
                Ok(states)
            } else {
                Err(format!("{:?} {states:?}", row.facts))
            }
        });
        seen.await.0
    }
}

pub(crate) async fn create_users(admin: &Client, count: usize) -> Vec<String> {
    let names: Vec<String> = (1..=count).map(|number| format!("user{number}")).collect();
    let form = [("usernames", names.join("\n"))];
    let form: Vec<(&str, &str)> = form.iter().map(|(key, value)| (*key, &**value)).collect();
    admin.post("/api/admin/users/batch-create", &form).await;
    for name in &names {
        admin.status(name, "running", seconds(120)).await;
    }
    names
}

#[tokio::test]
async fn engine_l36_a_failing_user_goes_back_pauses_the_rollout_and_a_resume_finishes_it() {
    let engine = Engine::claim();
    let stage = Stage::new();
    make_images(&stage, &engine, &["rolled"]);
    let (old, new) = (image_id(&engine, "1"), image_id(&engine, "rolled"));
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    let count = if long() { 20 } else { 8 };
    let users = create_users(&admin, count).await;
    let (seventh, last) = (&users[6], &users[count - 1]);
    let form = [("username", &**last), ("wait", "60")];
    admin
        .post("/api/admin/container/stop", &form)
        .await
        .converged();
    std::fs::write(refusal(&stage, seventh), "").unwrap();
    let before: Vec<String> = users[..count - 1]
        .iter()
        .map(|user| engine.the_running(user).id)
        .collect();
    let image = |user: &str| {
        let id = engine.the_running(user).id;
        engine.inspect(&id)["Image"].as_str().unwrap().to_owned()
    };

    let db = Database::open(&stage).await;
    let uid = db.begin("rolled", &users).await;
    let states = db.comes_to(&uid, Phase::Paused).await;
    assert_eq!(states[..6], [TargetState::Done; 6]);
    assert_eq!(states[6], TargetState::Failed);
    assert!(
        states[7..]
            .iter()
            .all(|state| *state == TargetState::Pending),
        "{states:?}"
    );
    for user in &users[..6] {
        assert_eq!(image(user), new, "{user}");
    }
    // It is back: the very container, ready.
    admin.status(seventh, "running", seconds(60)).await;
    assert_eq!(engine.the_running(seventh).id, before[6]);
    assert_eq!(image(seventh), old);
    for (user, id) in users.iter().zip(&before).skip(7) {
        assert_eq!(engine.the_running(user).id, *id, "{user} is not touched");
    }
    assert_eq!(engine.of(last), []);

    std::fs::remove_file(refusal(&stage, seventh)).unwrap();
    db.change(async |tx| rollout::resume(tx, &uid, None).await)
        .await;
    let states = db.comes_to(&uid, Phase::Succeeded).await;
    assert_eq!(states, vec![TargetState::Done; count]);
    for user in &users[..count - 1] {
        assert_eq!(image(user), new, "{user}");
    }
    // A stopped user was moved without being started, and starts with the new image.
    assert_eq!(engine.of(last), []);
    let form = [("username", &**last), ("wait", "60")];
    admin
        .post("/api/admin/container/start", &form)
        .await
        .converged();
    assert_eq!(image(last), new);

    // All the way back.
    db.change(async |tx| rollout::roll_back(tx, &uid, None).await)
        .await;
    let states = db.comes_to(&uid, Phase::RolledBack).await;
    assert_eq!(states, vec![TargetState::RolledBack; count]);
    for user in &users {
        admin.status(user, "running", seconds(60)).await;
        assert_eq!(image(user), old, "{user}");
    }
}

/// A repository of the registry, which has images that the engine has not.
struct Repository {
    name: String,
}

impl Repository {
    fn new() -> Self {
        let host = crate::registry::open();
        let name = format!("{host}/agentyard-test/{}", Uid::random());
        Self { name }
    }

    fn reference(&self, tag: &str) -> String {
        format!("{}:{tag}", self.name)
    }

    /// Publishes an image of the engine under a tag, whatever the tag was before; gives its id.
    fn publish(&self, engine: &Engine, image: &str, tag: &str) -> String {
        let reference = self.reference(tag);
        // What the engine pulled before stays, without a name.
        engine.docker(&["tag", image, &reference]);
        engine.docker(&["push", "-q", &reference]);
        engine.docker(&["rmi", &reference]);
        assert!(!crate::registry::is_there(&reference));
        engine.docker(&["image", "inspect", "-f", "{{.Id}}", image])
    }
}

#[tokio::test]
async fn engine_a_tag_that_was_republished_mended_is_pulled_by_the_resume_and_ends_the_rollout() {
    let engine = Engine::claim();
    let stage = Stage::new();
    make_images(&stage, &engine, &["broken", "mended"]);
    let repository = Repository::new();
    let old = repository.publish(&engine, "echo:1", "v1");
    let broken = repository.publish(&engine, "echo:broken", "v2");
    let launch = stage.serve(&engine).set("image.name", &repository.name);
    let launch = launch.set("image.tag", "v1");
    let service = launch.set("image.pull_policy", "missing").start().await;
    let admin = service.admin().await;
    let count = if long() { 20 } else { 4 };
    let mut users = create_users(&admin, count).await;
    // In the order in which all are moved.
    users.sort_unstable();
    let image = |user: &str| {
        let id = engine.the_running(user).id;
        engine.inspect(&id)["Image"].as_str().unwrap().to_owned()
    };
    assert!(users.iter().all(|user| image(user) == old));
    // The third user's agent does not run with what is published.
    let refused = refusal(&stage, &users[2]);
    std::fs::write(&refused, "").unwrap();

    let form = [
        ("tag", "v2"),
        ("all", "true"),
        ("health_timeout", "60s"),
        ("wait", "0"),
    ];
    let begun = admin.post("/api/admin/images/upgrade", &form).await.json();
    let id = begun["task_id"].as_str().unwrap();
    assert_eq!(begun["total"], count, "{begun}");
    let path = format!("/api/admin/images/rollouts/{id}");
    let comes_to = async |phase: &str| {
        let limit = seconds(if long() { 300 } else { 120 });
        eventually(phase, limit, async || {
            let shown = admin.get(&path).await.expect(200);
            if shown["rollout"]["phase"] == phase {
                return Ok(shown);
            }
            Err(shown.to_string())
        })
        .await
    };
    let paused = comes_to("paused").await.0;
    let states = |shown: &serde_json::Value| -> Vec<String> {
        let users = shown["users"].as_array().unwrap().iter();
        users
            .map(|user| user["state"].as_str().unwrap().to_owned())
            .collect()
    };
    let mut expected = vec!["pending"; count];
    expected[..3].copy_from_slice(&["done", "done", "failed"]);
    assert_eq!(states(&paused), expected, "{paused}");
    for user in &users[..2] {
        assert_eq!(image(user), broken, "{user}");
    }
    for user in &users[2..] {
        admin.status(user, "running", seconds(60)).await;
        assert_eq!(image(user), old, "{user}");
    }

    // The same tag again, and the user's agent runs with it.
    std::fs::remove_file(&refused).unwrap();
    let mended = repository.publish(&engine, "echo:mended", "v2");
    assert_ne!(mended, broken);
    let resume = [("id", id), ("wait", "0")];
    let resumed = admin.post("/api/admin/images/rollouts/resume", &resume);
    resumed.await.pending();
    let ended = comes_to("succeeded").await.0;
    assert_eq!(states(&ended), vec!["done"; count], "{ended}");
    assert_eq!(ended["rollout"]["image_id"], mended);
    for user in &users {
        admin.status(user, "running", seconds(60)).await;
        assert_eq!(image(user), mended, "{user}: also who had what was broken");
    }
}

#[tokio::test]
async fn engine_a_rollout_is_started_followed_and_taken_back_by_the_command_line() {
    let engine = Engine::claim();
    let stage = Stage::new();
    make_images(&stage, &engine, &["rolled"]);
    // Of it, agents get their token.
    let url = "http://10.88.0.1:9";
    let launch = stage.serve(&engine).set("container.service_url", url);
    let service = launch.start().await;
    let admin = service.admin().await;
    let users = create_users(&admin, 3).await;
    let ends = async |line: &str, code: i32| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let finished = stage.command().run(&words).await;
        let said = format!("{line}\n{}{}", finished.stdout, finished.stderr);
        assert_eq!(finished.status.code(), Some(code), "{said}");
        finished
    };

    // The second user's new container ends at once: it goes back, and the third is left alone.
    std::fs::write(refusal(&stage, &users[1]), "").unwrap();
    let third = engine.the_running(&users[2]).id;
    let failed = ends("rollout start rolled --all --health-timeout 60s", 1).await;
    for line in ["user1: moving", "user1: done", "user2: failed: "] {
        assert!(failed.stdout.contains(line), "{}", failed.stdout);
    }
    assert!(!failed.stdout.contains("user3"), "{}", failed.stdout);
    let paused = "paused: 1 of 3 done, 1 failed";
    assert!(failed.stderr.contains(paused), "{}", failed.stderr);
    assert!(
        failed.stderr.contains("rollout resume"),
        "{}",
        failed.stderr
    );
    assert_eq!(engine.the_running(&users[2]).id, third);
    // What the service gave to whom without a person is in the audit trail.
    let trail = admin.get("/api/admin/audit?actor=system:rollout").await;
    let trail = trail.expect(200);
    let entries = trail["entries"].as_array().unwrap().iter();
    let told: Vec<(&str, &str)> = entries
        .map(|entry| {
            let object = entry["object"].as_str().unwrap();
            let (rollout, container) = object.split_once(',').unwrap();
            assert!(rollout.starts_with("rollout/"), "{object}");
            (entry["action"].as_str().unwrap(), container)
        })
        .rev()
        .collect();
    let expected = [
        ("rollout_move", "container/user1"),
        ("rollout_move", "container/user2"),
        ("rollout_put_back", "container/user2"),
    ];
    assert_eq!(told, expected);
    let status = ends("rollout status", 0).await.stdout;
    assert!(
        status.contains(paused) && status.contains("user2"),
        "{status}"
    );
    // Why is told, with the end of the log, and without the secrets that the agent has written there.
    let shown = ends("rollout status -o json", 0).await.stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let message = shown["users"][1]["message"].as_str().unwrap();
    let cause = "the replacement ended with exit code 3 before it was ready; end of its log: ";
    assert!(message.contains(cause), "{message}");
    // The engine does not keep the order of the two streams.
    assert!(message.contains("refused by the test"), "{message}");
    let home = stage.data().join("users").join(&users[1]);
    let config = std::fs::read_to_string(home.join(".agent/config.json")).unwrap();
    let token = config.split("token=").nth(1).unwrap();
    let token = token.split('"').next().unwrap();
    let (_, secret) = token.split_once("%3A").unwrap();
    assert!(message.contains("token=[redacted]"), "{message}");
    let events = admin.get("/api/admin/events?object=container/user2").await;
    let events = events.expect(200).to_string();
    assert!(events.contains("ended with exit code 3"), "{events}");
    for text in [message, &events, &failed.stdout] {
        assert!(!text.contains(secret), "{text}");
    }
    // Nobody moves a user who is in a rollout already.
    let second = ends("rollout start 1 --user user3 --detach", 1).await;
    assert!(
        second.stderr.contains("user3 in rollout"),
        "{}",
        second.stderr
    );

    std::fs::remove_file(refusal(&stage, &users[1])).unwrap();
    let resumed = ends("rollout resume --watch", 0).await;
    let all = "succeeded: 3 of 3 done, 0 failed";
    assert!(resumed.stdout.contains(all), "{}", resumed.stdout);
    // Whoever looks later is told the same; the task tells it, too.
    assert!(ends("rollout status --watch", 0).await.stdout.contains(all));
    let task = admin.get("/api/admin/task/status").await.expect(200);
    assert_eq!(
        (&task["type"], &task["done"]),
        (&"upgrade".into(), &3.into())
    );
    let json = ends("rollout status -o json", 0).await.stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["users"].as_array().unwrap().len(), 3);
    assert_eq!(json["phase"], "succeeded");

    let back = ends("rollout rollback --watch", 0).await;
    assert!(
        back.stdout.contains("rolled_back: 3 of 3 done"),
        "{}",
        back.stdout
    );
    let old = image_id(&engine, "1");
    for user in &users {
        let id = engine.the_running(user).id;
        assert_eq!(engine.inspect(&id)["Image"], old, "{user}");
    }
    ends("rollout pause", 1).await;
}

#[tokio::test]
async fn engine_agent_that_ends_after_it_was_ready_is_put_back() {
    let engine = Engine::claim();
    let stage = Stage::new();
    make_images(&stage, &engine, &["rolled"]);
    let launch = stage.serve(&engine).set("container.min_ready", "10s");
    let service = launch.start().await;
    let admin = service.admin().await;
    let users = create_users(&admin, 2).await;
    let ends = async |line: &str, code: i32| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let finished = stage.command().run(&words).await;
        let said = format!("{line}\n{}{}", finished.stdout, finished.stderr);
        assert_eq!(finished.status.code(), Some(code), "{said}");
        said
    };
    let departs = stage.data().join("users").join(&users[0]).join(DEPARTURE);
    std::fs::write(&departs, "").unwrap();
    let before = engine.the_running(&users[0]).id;
    let failed = ends("rollout start rolled --all", 1).await;
    assert!(failed.contains("paused: 0 of 2 done, 1 failed"), "{failed}");
    assert_eq!(engine.the_running(&users[0]).id, before);
    let status = ends("rollout status -o json", 0).await;
    let (_, status) = status.split_once('\n').unwrap();
    let status: serde_json::Value = serde_json::from_str(status).unwrap();
    let user = &status["users"][0];
    let message = user["message"].as_str().unwrap();
    let cause = "the replacement ended with exit code 1, ";
    assert!(message.contains(cause), "{message}");
    assert!(message.contains(" s after it was ready"), "{message}");
    let log = user["log"].as_array().unwrap();
    assert_eq!(log.last().unwrap(), "no channel", "{user}");
    let described = ends("describe container/user1", 0).await;
    for part in ["Last ends:\n", cause, "    no channel\n"] {
        assert!(described.contains(part), "{described}");
    }

    std::fs::remove_file(&departs).unwrap();
    ends("rollout cancel --watch", 1).await;
    let again = "rollout start rolled --all --min-ready 0s";
    let moved = ends(again, 0).await;
    assert!(moved.contains("warning: new users still get "), "{moved}");
    let moved = ends(&format!("{again} --set-default"), 0).await;
    assert!(moved.contains("changed image.tag"), "{moved}");
    let tag = ends("config get image.tag", 0).await;
    assert!(tag.ends_with("\nrolled\n"), "{tag}");
}

#[tokio::test]
async fn engine_change_that_breaks_the_third_user_is_paused() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let launch = stage.serve(&engine).set("container.max_unavailable", "1");
    let service = launch.start().await;
    let admin = service.admin().await;
    let users = create_users(&admin, 5).await;
    let limits = || -> Vec<u64> {
        let limit = |user| {
            let id = engine.the_running(user).id;
            engine.inspect(&id)["HostConfig"]["PidsLimit"]
                .as_u64()
                .unwrap()
        };
        [0, 1, 3, 4].map(|user: usize| limit(&users[user])).to_vec()
    };
    let run = async |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let finished = stage.command().run(&words).await;
        format!("{}{}", finished.stdout, finished.stderr)
    };
    let crash = stage
        .data()
        .join("users")
        .join(&users[2])
        .join(".agent/crash");
    std::fs::write(&crash, "").unwrap();
    let saved = run("config set container.pids_limit=300").await;
    assert!(
        saved.contains("recreating: 5 containers (user1, "),
        "{saved}"
    );
    assert!(
        saved.contains("config rollback 2` takes it back"),
        "{saved}"
    );
    let paused = run("rollout status --watch").await;
    for part in [
        "paused: 2 of 5 done, 1 failed; user3 failed: ReplacementFailed: ",
        "`agentyard config rollback 2`",
    ] {
        assert!(paused.contains(part), "{part}: {paused}");
    }
    assert_eq!(limits(), [300, 300, 512, 512]);

    std::fs::remove_file(&crash).unwrap();
    let saved = run("config rollback 2").await;
    assert!(saved.contains("changed: container.pids_limit"), "{saved}");
    let done = run("rollout status --watch").await;
    assert!(done.contains("succeeded: "), "{done}");
    admin.status(&users[2], "running", seconds(60)).await;
    assert_eq!(limits(), [512; 4]);
}

/// Where the service is killed, and whether the small scale has it too.
const POINTS: &[(&str, bool)] = &[
    ("rollout.Remember.before", false),
    ("rollout.Remember.after", false),
    ("rollout.Move.before", false),
    ("rollout.Move.after", true),
    ("rollout.Move.before:2", false),
    ("rollout.Move.after:2", true),
    ("rollout.Finish.before", false),
    ("rollout.Finish.after:2", false),
    ("rollout.PutBack.before", true),
    ("rollout.PutBack.after", true),
    ("rollout.Finish.before:4", false),
    ("rollout.Finish.after:4", false),
    ("rollout.Remember.before:2", false),
    ("rollout.Remember.after:2", true),
    ("rollout.status.before", false),
    ("rollout.status.after", false),
];

#[tokio::test]
async fn engine_l34_l36_killed_at_every_step_of_a_rollout_the_end_is_the_same() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let tags = ["even", "odd"];
    make_images(&stage, &engine, &tags);
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    let users = create_users(&admin, 6).await;
    std::fs::write(refusal(&stage, &users[3]), "").unwrap();
    service.kill9().await;
    let db = Database::open(&stage).await;
    // To look at some points only: `AGENTYARD_TEST_POINT=rollout.status`.
    let only = std::env::var("AGENTYARD_TEST_POINT").unwrap_or_default();
    let points = POINTS
        .iter()
        .filter(|(_, small)| long() || *small || !only.is_empty())
        .filter(|(point, _)| point.contains(&only));
    for (number, (point, _)) in points.enumerate() {
        let tag = tags[number % 2];
        let uid = db.begin(tag, &users).await;
        let mut doomed = stage.serve(&engine).env("AGENTYARD_FAULT", point).spawn();
        doomed.died_of_fault(point).await;

        let service = stage.serve(&engine).start().await;
        let admin = admin.at(&service.client());
        let states = db.comes_to(&uid, Phase::Paused).await;
        let expected = [
            TargetState::Done,
            TargetState::Done,
            TargetState::Done,
            TargetState::Failed,
            TargetState::Done,
            TargetState::Pending,
        ];
        assert_eq!(states, expected, "{point}");
        for (user, state) in users.iter().zip(states) {
            admin.status(user, "running", seconds(60)).await;
            let id = engine.the_running(user).id;
            let wanted = match state {
                TargetState::Done => image_id(&engine, tag),
                _ => image_id(&engine, "1"),
            };
            assert_eq!(engine.inspect(&id)["Image"], *wanted, "{point}: {user}");
        }
        db.change(async |tx| rollout::cancel(tx, &uid, None).await)
            .await;
        db.comes_to(&uid, Phase::Cancelled).await;
        service.kill9().await;
    }
}
