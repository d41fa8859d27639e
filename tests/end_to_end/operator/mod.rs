//! The command line over the administration socket, as an operator uses it.

mod asking;
mod choosing;
mod daily;
mod engine;
mod executors;
mod following;
mod life;
mod machine;
mod manners;
mod remote;
mod scripted;
mod skills;

use crate::support::service::Finished;
use crate::support::{Client, Service, Stage, seconds, until};

/// A service without an engine, and users whose containers it therefore cannot look after.
async fn with_users(stage: &Stage, names: &[&str]) -> (Service, Client) {
    let service = stage.alone().start().await;
    let admin = service.admin().await;
    for name in names {
        let form = [("username", *name), ("wait", "0")];
        admin.post("/api/admin/users/create", &form).await.pending();
        admin.reason(name, "EngineUnavailable", seconds(20)).await;
        let path = format!("/api/admin/reconcile/objects/user/{name}");
        until("the user is ready", seconds(20), async || {
            let user = admin.get(&path).await.expect(200);
            user["conditions"][0]["status"] == "True"
        })
        .await;
    }
    (service, admin)
}

/// Runs a command line that is given as a user types it.
async fn run(stage: &Stage, line: &str) -> Finished {
    let words: Vec<&str> = line.split_whitespace().collect();
    stage.command().run(&words).await
}

/// The same; its exit code must be this.
async fn ends(stage: &Stage, line: &str, code: i32) -> Finished {
    let finished = run(stage, line).await;
    assert_eq!(
        finished.status.code(),
        Some(code),
        "{line}\n{}{}",
        finished.stdout,
        finished.stderr
    );
    finished
}
