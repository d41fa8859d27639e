//! L58: what is as it should be is left alone.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::support::{Engine, Stage, long, seconds};

/// What would differ had a file been written: inode, size, times, and the bytes of small files.
type Trace = (u64, u64, i64, i64, Vec<u8>);

/// A trace of everything below a directory, but not of what the agents write.
fn traces(root: &Path) -> BTreeMap<PathBuf, Trace> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(path) = left.pop() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // The agent's own, which comes and goes all the time.
        if name.starts_with("heartbeat") {
            continue;
        }
        let meta = std::fs::symlink_metadata(&path).unwrap();
        let bytes = if meta.is_file() {
            std::fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        if meta.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            left.extend(entries.map(|entry| entry.unwrap().path()));
        }
        // The directory in which the agent renames it; and SQLite's index of its log, which is memory
        // that readers share, not the database.
        if name != ".agent" && !name.ends_with("-shm") {
            let changed = (meta.mtime(), meta.mtime_nsec());
            found.insert(path, (meta.ino(), meta.len(), changed.0, changed.1, bytes));
        }
    }
    found
}

#[tokio::test]
async fn engine_l58_passes_over_converged_objects_write_nothing() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage
        .serve(&engine)
        .env("AGENTYARD_RESYNC", "100ms")
        .env("AGENTYARD_VERIFY", "1s")
        .start()
        .await;
    let admin = service.admin().await;
    for name in ["ann", "bob", "cat"] {
        admin.create_user(name).await;
    }
    let form = [("username", "cat"), ("wait", "60")];
    let stopped = admin.post("/api/admin/container/stop", &form).await;
    stopped.converged();
    for reconciler in ["engine", "user", "container"] {
        service.passes(&admin, reconciler, 3).await;
    }

    let since = engine.now();
    let before = traces(&stage.data());
    assert!(
        before.keys().any(|path| path.ends_with("agentyard.db")),
        "{:?}",
        before.keys()
    );
    service
        .resyncs(&admin, "container", if long() { 100 } else { 20 })
        .await;
    let after = traces(&stage.data());
    let events = engine.events(&since, &engine.now());

    assert!(events.is_empty(), "{events:?}");
    assert_eq!(
        before.keys().collect::<Vec<_>>(),
        after.keys().collect::<Vec<_>>()
    );
    for (path, trace) in &before {
        assert!(after[path] == *trace, "{} was written", path.display());
    }
    admin.status("ann", "running", seconds(1)).await;
    admin.status("cat", "stopped", seconds(1)).await;
}
