//! With an engine: containers that break for a reason a person must know, and recover.

use super::ends;
use crate::support::{Engine, Stage};

#[tokio::test]
async fn engine_a_broken_container_is_explained_forced_and_waited_for() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve_with(&engine, "later").start().await;
    let admin = service.admin().await;
    let form = [("username", "alice"), ("wait", "0")];
    admin.post("/api/admin/users/create", &form).await.pending();

    let stuck = ends(&stage, "wait container/alice --timeout 60s --fail-fast", 1).await;
    assert!(stuck.stderr.contains("ImageMissing"), "{}", stuck.stderr);
    assert!(
        stuck.stderr.contains("needs manual action"),
        "{}",
        stuck.stderr
    );
    let told = ends(&stage, "describe container/alice", 0).await;
    for part in [
        "Ready=False ImageMissing",
        "since:",
        "remedy:",
        "next step:",
        "retry container/alice",
    ] {
        assert!(told.stdout.contains(part), "{part}: {}", told.stdout);
    }
    ends(&stage, "diff container/alice", 1).await;

    engine.docker(&["tag", "echo:1", "echo:later"]);
    ends(&stage, "retry container/alice", 0).await;
    let ready = ends(&stage, "wait container/alice --timeout 90s", 0).await;
    assert_eq!(ready.stdout, "container/alice is Ready=True\n");
    let same = ends(&stage, "diff container/alice", 0).await;
    assert_eq!(same.stdout, "");
    let told = ends(&stage, "describe container/alice", 0).await;
    assert!(told.stdout.contains("Problems: none"), "{}", told.stdout);

    let form = [("username", "alice"), ("wait", "0")];
    let deletion = admin.post("/api/admin/users/delete", &form).await;
    assert!(deletion.status.is_success(), "{}", deletion.text());
    let gone = ends(
        &stage,
        "wait user/alice container/alice --for=delete --timeout 60s",
        0,
    )
    .await;
    assert!(
        gone.stdout.contains("user/alice is gone"),
        "{}",
        gone.stdout
    );
    engine.docker(&["rmi", "echo:later"]);
}
