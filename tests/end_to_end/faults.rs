//! `kill -9` of the service at every step of every operation: the next start mends everything.

use crate::support::{Client, Engine, Stage, eventually, long, seconds};

/// What an administrator asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    /// A new user.
    Create,
    /// A start after a stop.
    Start,
    Stop,
    Restart,
    /// Other limits: the old container goes only when the new one is ready.
    Replace,
    Delete,
}

use Operation::{Create, Delete, Replace, Restart, Start, Stop};

/// A point the operation passes, and whether the small scale has it too.
struct Point(Operation, &'static str, bool);

/// Every point. The test fails when one is not passed, so the table cannot go stale.
const POINTS: &[Point] = &[
    Point(Create, "user.AddFinalizer.before", false),
    Point(Create, "user.AddFinalizer.after", false),
    Point(Create, "user.EnsureHome.before", false),
    Point(Create, "home.ensure.after_marker", false),
    Point(Create, "home.ensure.after_home", false),
    Point(Create, "home.ensure.after_part", true),
    Point(Create, "user.EnsureHome.after", false),
    Point(Create, "user.status.before", false),
    Point(Create, "user.status.after", false),
    Point(Create, "container.AddFinalizer.before", false),
    Point(Create, "container.AddFinalizer.after", false),
    Point(Create, "container.SaveFacts.before", false),
    Point(Create, "container.SaveFacts.after", false),
    Point(Create, "container.Create.before", false),
    Point(Create, "container.Create.after", true),
    Point(Create, "container.Start.before", false),
    Point(Create, "container.Start.after", true),
    Point(Create, "container.SaveFacts.before:2", false),
    Point(Create, "container.SaveFacts.after:2", false),
    Point(Create, "container.status.before", false),
    Point(Create, "container.status.after", false),
    Point(Start, "container.Create.before", false),
    Point(Start, "container.Create.after", true),
    Point(Start, "container.Start.before", false),
    Point(Start, "container.Start.after", false),
    Point(Start, "container.SaveFacts.before", false),
    Point(Start, "container.SaveFacts.after", false),
    Point(Start, "container.status.before", false),
    Point(Start, "container.status.after", false),
    Point(Stop, "container.SaveFacts.before", false),
    Point(Stop, "container.SaveFacts.after", false),
    Point(Stop, "container.Stop.before", false),
    Point(Stop, "container.Stop.after", true),
    Point(Stop, "container.Remove.before", false),
    Point(Stop, "container.Remove.after", false),
    Point(Stop, "container.status.before", false),
    Point(Stop, "container.status.after", false),
    Point(Restart, "container.SaveFacts.before", false),
    Point(Restart, "container.SaveFacts.after", false),
    Point(Restart, "container.Stop.before", false),
    Point(Restart, "container.Stop.after", true),
    Point(Restart, "container.Remove.before", false),
    Point(Restart, "container.Remove.after", true),
    Point(Restart, "container.Create.before", false),
    Point(Restart, "container.Create.after", false),
    Point(Restart, "container.Start.before", false),
    Point(Restart, "container.Start.after", false),
    Point(Restart, "container.status.before", false),
    Point(Restart, "container.status.after", false),
    Point(Replace, "container.Create.before", false),
    Point(Replace, "container.Create.after", true),
    Point(Replace, "container.Stop.before", false),
    Point(Replace, "container.Stop.after", false),
    Point(Replace, "container.Rename.before", false),
    Point(Replace, "container.Rename.after", true),
    Point(Replace, "container.Rename.before:2", false),
    Point(Replace, "container.Rename.after:2", false),
    Point(Replace, "container.Start.before", false),
    Point(Replace, "container.Start.after", true),
    Point(Replace, "container.Remove.before", true),
    Point(Replace, "container.Remove.after", false),
    Point(Replace, "container.SaveFacts.before", false),
    Point(Replace, "container.SaveFacts.after", false),
    Point(Replace, "container.status.before", false),
    Point(Replace, "container.status.after", false),
    Point(Delete, "container.Stop.before", false),
    Point(Delete, "container.Stop.after", true),
    Point(Delete, "container.Remove.before", false),
    Point(Delete, "container.Remove.after", false),
    Point(Delete, "container.ReleaseFinalizer.before", false),
    Point(Delete, "container.ReleaseFinalizer.after", false),
    Point(Delete, "user.ArchiveHome.before", false),
    Point(Delete, "home.archive.after_claim", false),
    Point(Delete, "home.archive.after_rename", true),
    Point(Delete, "home.archive.before_release", false),
    Point(Delete, "home.archive.after_release", false),
    Point(Delete, "user.ArchiveHome.after", false),
    Point(Delete, "user.Purge.before", false),
    Point(Delete, "user.Purge.after", true),
    Point(Delete, "container.status.before", false),
    Point(Delete, "user.status.before", false),
];

impl Operation {
    fn path(self) -> &'static str {
        match self {
            Create => "/api/admin/users/create",
            Start => "/api/admin/container/start",
            Stop => "/api/admin/container/stop",
            Restart => "/api/admin/container/restart",
            Replace => "/api/admin/container/limits",
            Delete => "/api/admin/users/delete",
        }
    }

    /// Asks for it. Whether an answer comes is a matter of luck: the service is about to die.
    async fn ask(self, admin: &Client, user: &str) {
        let mut form = vec![("username", user), ("wait", "0")];
        if self == Replace {
            form.push(("memory_limit_mb", "80"));
        }
        if let Ok(answer) = admin.try_post(self.path(), &form).await {
            let status = answer.status.as_u16();
            assert!([200, 202].contains(&status), "{}", answer.text());
        }
    }

    /// Brings a user to where the operation begins; gives the id of the container.
    async fn prepare(self, admin: &Client, engine: &Engine, user: &str) -> Option<String> {
        if self == Create {
            return None;
        }
        admin.status(user, "running", seconds(120)).await;
        let id = engine.the_running(user).id;
        if self == Start {
            let form = [("username", user), ("wait", "60")];
            admin.post(Stop.path(), &form).await.converged();
        }
        Some(id)
    }

    /// Waits until what was asked for is so, and fails if it is not exactly so.
    async fn is_done(self, case: &Case<'_>, admin: &Client, point: &str) {
        let Case {
            stage,
            engine,
            user,
            before,
        } = case;
        let context = format!("{self:?} killed at {point}");
        match self {
            Stop => {
                admin.status(user, "stopped", seconds(60)).await;
                assert_eq!(engine.of(user), [], "{context}");
                assert!(stage.data().join("users").join(user).exists());
            }
            Delete => {
                let gone = eventually(&context, seconds(60), async || {
                    match admin.user(user).await {
                        None => Ok(()),
                        Some(row) => Err(row.to_string()),
                    }
                });
                gone.await;
                assert_eq!(engine.of(user), [], "{context}");
                assert!(!stage.data().join("users").join(user).exists(), "{context}");
                let archives = stage.archives(user);
                assert_eq!(archives.len(), 1, "{context}: {archives:?}");
                let heartbeat = archives[0].join(".agent/heartbeat");
                assert!(heartbeat.exists(), "{context}: whole");
            }
            Create | Start | Restart | Replace => {
                admin.status(user, "running", seconds(60)).await;
                let one = engine.the_running(user);
                assert_ne!(before.as_deref(), Some(one.id.as_str()), "{context}");
                if self == Replace {
                    let memory = engine.inspect(&one.id)["HostConfig"]["Memory"].clone();
                    assert_eq!(memory, 80 * 1024 * 1024, "{context}");
                }
            }
        }
    }
}

/// One user with whom one operation is killed.
struct Case<'a> {
    stage: &'a Stage,
    engine: &'a Engine,
    user: String,
    before: Option<String>,
}

#[tokio::test]
async fn engine_l34_l35_killed_at_every_step_the_next_start_reaches_the_same_end() {
    if !cfg!(feature = "fault-injection") {
        panic!("the program under test has no fault points: run with --features fault-injection");
    }
    let engine = Engine::claim();
    let stage = Stage::new();
    let launch = || stage.serve(&engine).env("AGENTYARD_RESYNC", "1s");
    let only = std::env::var("AGENTYARD_TEST_POINT").unwrap_or_default();
    let points: Vec<(String, &Point)> = POINTS
        .iter()
        .filter(|point| long() || point.2 || !only.is_empty())
        .filter(|Point(operation, name, _)| format!("{operation:?} {name}").contains(&only))
        .enumerate()
        .map(|(number, point)| (format!("user{number}"), point))
        .collect();

    let service = launch().start().await;
    let admin = service.admin().await;
    let mut cases = Vec::new();
    let names: Vec<&str> = points
        .iter()
        .filter(|(_, point)| point.0 != Create)
        .map(|(user, _)| user.as_str())
        .collect();
    let form = [("usernames", &*names.join("\n"))];
    admin.post("/api/admin/users/batch-create", &form).await;
    for (user, Point(operation, name, _)) in points {
        let before = operation.prepare(&admin, &engine, &user).await;
        let case = Case {
            stage: &stage,
            engine: &engine,
            user,
            before,
        };
        cases.push((*operation, *name, case));
    }
    service.kill9().await;

    for (operation, point, case) in &cases {
        let mut doomed = launch().env("AGENTYARD_FAULT", point).start().await;
        let at_doomed = admin.at(&doomed.client());
        operation.ask(&at_doomed, &case.user).await;
        let context = format!("{operation:?} {point}");
        doomed.died_of_fault(&context).await;

        let service = launch().start().await;
        let admin = admin.at(&service.client());
        operation.is_done(case, &admin, point).await;
        service.kill9().await;
    }

    // Nothing is left anywhere, and nobody suffered from another one's end.
    let service = launch().start().await;
    let admin = admin.at(&service.client());
    service.passes(&admin, "container", 2).await;
    let mut expected = Vec::new();
    for (operation, _, case) in &cases {
        if ![Stop, Delete].contains(operation) {
            expected.push(format!("agentyard-{}", case.user));
        }
    }
    expected.sort();
    let mut found: Vec<String> = engine.ours().into_iter().map(|seen| seen.name).collect();
    found.sort();
    assert_eq!(found, expected);
}
