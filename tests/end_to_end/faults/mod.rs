//! `kill -9` of the service at every step of every operation: the next start mends everything.

mod engine_steps;
mod points;

use std::collections::BTreeSet;
use std::path::PathBuf;

use points::Operation::{self, Create, Delete, GoBack, Replace, Restart, Start, Stop};
use points::{POINTS, Point};

use crate::support::client::{is_settled, ready};
use crate::support::{Client, Engine, Stage, eventually, long, seconds};

const LIMIT: std::time::Duration = seconds(60);

impl Operation {
    fn path(self) -> &'static str {
        match self {
            Create => "/api/admin/users/create",
            Start => "/api/admin/container/start",
            Stop => "/api/admin/container/stop",
            Restart => "/api/admin/container/restart",
            Replace | GoBack => "/api/admin/container/limits",
            Delete => "/api/admin/users/delete",
        }
    }

    /// Asks for it. Whether an answer comes is a matter of luck: the service may be about to die.
    async fn ask(self, admin: &Client, user: &str) {
        let mut form = vec![("username", user), ("wait", "0")];
        if [Replace, GoBack].contains(&self) {
            form.push(("memory_limit_mb", "80"));
        }
        if let Ok(answer) = admin.try_post(self.path(), &form).await {
            let status = answer.status.as_u16();
            assert!([200, 202].contains(&status), "{}", answer.text());
        }
    }

    /// Brings a user to where the operation begins; gives the id of the container.
    async fn prepare(
        self,
        stage: &Stage,
        engine: &Engine,
        admin: &Client,
        user: &str,
    ) -> Option<String> {
        if self == Create {
            return None;
        }
        admin.status(user, "running", seconds(120)).await;
        let id = engine.the_running(user).id;
        match self {
            Start => {
                let form = [("username", user), ("wait", "60")];
                admin.post(Stop.path(), &form).await.converged();
            }
            GoBack => std::fs::write(crash_switch(stage, user), "").unwrap(),
            Create | Stop | Restart | Replace | Delete => {}
        }
        Some(id)
    }
}

/// With this file in its home the test agent ends right after its start.
fn crash_switch(stage: &Stage, user: &str) -> PathBuf {
    stage.data().join("users").join(user).join(".agent/crash")
}

/// One user with whom one operation is made.
struct Case<'a> {
    stage: &'a Stage,
    engine: &'a Engine,
    user: String,
    /// The container before the operation.
    before: Option<String>,
}

impl Case<'_> {
    /// Waits until what was asked for is so, and fails if it is not exactly so.
    async fn is_done(&self, operation: Operation, admin: &Client, context: &str) {
        let (user, engine) = (&*self.user, self.engine);
        let home = self.stage.data().join("users").join(user);
        match operation {
            Stop => {
                admin.status(user, "stopped", LIMIT).await;
                assert_eq!(engine.of(user), [], "{context}");
                assert!(home.exists());
            }
            Delete => {
                let gone = eventually(context, LIMIT, async || match admin.user(user).await {
                    None => Ok(()),
                    Some(row) => Err(row.to_string()),
                });
                gone.await;
                assert_eq!(engine.of(user), [], "{context}");
                assert!(!home.exists(), "{context}");
                let archives = self.stage.archives(user);
                assert_eq!(archives.len(), 1, "{context}: {archives:?}");
                let heartbeat = archives[0].join(".agent/heartbeat");
                assert!(heartbeat.exists(), "{context}: whole");
            }
            Create | Start | Restart | Replace => {
                admin.status(user, "running", LIMIT).await;
                let one = engine.the_running(user);
                assert_ne!(self.before.as_deref(), Some(one.id.as_str()), "{context}");
                if operation == Replace {
                    assert_eq!(memory(engine, &one.id), 80, "{context}");
                }
            }
            GoBack => self.has_gone_back(admin, context).await,
        }
    }

    /// The old container is in use again; or the new one, when it was killed before its start and
    /// found no reason to crash afterwards.
    async fn has_gone_back(&self, admin: &Client, context: &str) {
        let seen = eventually(context, LIMIT, async || {
            let row = admin.user(&self.user).await.unwrap();
            let all = self.engine.of(&self.user);
            let back = ready(&row)["reason"] == "ReplacementFailed";
            match all.as_slice() {
                [one] if one.state == "running" && (back || is_settled(&row)) => {
                    Ok((back, one.id.clone()))
                }
                _ => Err(format!("{all:?} {row}")),
            }
        });
        // Not looked at again: started while there still was a reason, the old one crashes once more.
        let (back, id) = seen.await.0;
        assert_eq!(back, self.before.as_ref() == Some(&id), "{context}");
        let expected = if back { 1024 } else { 80 };
        assert_eq!(memory(self.engine, &id), expected, "{context}");
    }

    /// Takes away what made the new container crash.
    fn mend(&self, operation: Operation) {
        if operation == GoBack {
            std::fs::remove_file(crash_switch(self.stage, &self.user)).unwrap();
        }
    }
}

/// The memory limit of a container, in MiB.
fn memory(engine: &Engine, container: &str) -> u64 {
    let limit = engine.inspect(container)["HostConfig"]["Memory"].as_u64();
    limit.unwrap() / 1024 / 1024
}

#[tokio::test]
async fn engine_l34_l35_killed_at_every_step_the_next_start_reaches_the_same_end() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let launch = || stage.serve(&engine);
    // To look at one point only: `AGENTYARD_TEST_POINT="Stop container.Stop.after"`.
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
        let before = operation.prepare(&stage, &engine, &admin, &user).await;
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
        let context = format!("{operation:?} {point}");
        let mut doomed = launch().env("AGENTYARD_FAULT", point).start().await;
        let at_doomed = admin.at(&doomed.client());
        operation.ask(&at_doomed, &case.user).await;
        doomed.died_of_fault(&context).await;
        case.mend(*operation);

        let service = launch().start().await;
        let admin = admin.at(&service.client());
        case.is_done(*operation, &admin, &context).await;
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
    // The proof of the data directory has a container of its own for a moment after each start.
    let clean = eventually("nothing is left", LIMIT, async || {
        let mut found: Vec<String> = engine.ours().into_iter().map(|seen| seen.name).collect();
        found.sort();
        if found == expected {
            Ok(())
        } else {
            Err(format!("{found:?}, and not {expected:?}"))
        }
    });
    clean.await;
}

#[tokio::test]
async fn engine_the_table_of_points_is_complete() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let log = stage.path().join("points");
    let service = stage
        .serve(&engine)
        .env("AGENTYARD_FAULT_LOG", &log.display().to_string())
        .start()
        .await;
    let admin = service.admin().await;
    // The engine's own steps come with the first container.
    admin.create_user("first").await;
    let names = |operation: Operation| -> BTreeSet<&str> {
        let of = |wanted| move |point: &&Point| point.0 == wanted;
        let mut names: BTreeSet<&str> = POINTS
            .iter()
            .filter(of(operation))
            .map(Point::name)
            .collect();
        if operation == GoBack {
            // Its way there is a replacement's.
            names.extend(POINTS.iter().filter(of(Replace)).map(Point::name));
        }
        names
    };
    for operation in [Create, Restart, Replace, GoBack, Stop, Start, Delete] {
        let user = format!("{operation:?}").to_lowercase();
        if operation != Create {
            admin.create_user(&user).await;
        }
        let before = operation.prepare(&stage, &engine, &admin, &user).await;
        let case = Case {
            stage: &stage,
            engine: &engine,
            user,
            before,
        };
        service.passes(&admin, "container", 1).await;
        std::fs::write(&log, "").unwrap();
        operation.ask(&admin, &case.user).await;
        if operation == GoBack {
            admin.reason(&case.user, "ReplacementFailed", LIMIT).await;
            case.mend(operation);
        }
        case.is_done(operation, &admin, "nobody is killed").await;
        service.passes(&admin, "container", 1).await;
        // The archive and workspaces are observed at any time; `scripted::{archive, usage}` kill those reconcilers after each step.
        let others = ["archive.", "usage."];
        let passed = || -> BTreeSet<String> {
            let passed = std::fs::read_to_string(&log).unwrap();
            let passed = passed.lines().map(str::to_owned);
            let passed = passed.filter(|point| !others.iter().any(|o| point.starts_with(o)));
            passed.collect()
        };
        let expected: BTreeSet<String> = names(operation).into_iter().map(str::to_owned).collect();
        // The facts of a container that is back are saved once it answers.
        let context = format!("{operation:?}: every point is passed");
        let complete = eventually(&context, LIMIT, async || {
            let missing: Vec<String> = expected.difference(&passed()).cloned().collect();
            missing
                .is_empty()
                .then_some(())
                .ok_or(format!("not {missing:?}"))
        });
        complete.await;
        assert_eq!(passed(), expected, "{operation:?}");
    }
}
