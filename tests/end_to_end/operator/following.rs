//! Answers that go on.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::time::timeout;

use super::{ends, with_users};
use crate::support::{PATIENCE, Stage};

/// A command that prints line after line.
pub(super) struct Following {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    notes: Lines<BufReader<ChildStderr>>,
}

impl Following {
    pub(super) fn begin(stage: &Stage, line: &str) -> Self {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut child = stage.command().begin(&words);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let notes = BufReader::new(child.stderr.take().unwrap()).lines();
        Self {
            child,
            lines,
            notes,
        }
    }

    /// Reads on until a line holds all of these.
    pub(super) async fn line_with(&mut self, parts: &[&str]) -> String {
        let mut seen = Vec::new();
        let found = timeout(PATIENCE, async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if parts.iter().all(|part| line.contains(part)) {
                    return line;
                }
                seen.push(line);
            }
            panic!("it ended before {parts:?}: {seen:?}");
        });
        match found.await {
            Ok(line) => line,
            Err(_) => panic!("no line with {parts:?}"),
        }
    }

    /// Reads notes on standard error until one holds this.
    async fn note_with(&mut self, part: &str) -> String {
        let mut seen = Vec::new();
        let found = timeout(PATIENCE, async {
            while let Some(note) = self.notes.next_line().await.unwrap() {
                if note.contains(part) {
                    return note;
                }
                seen.push(note);
            }
            panic!("it ended before {part}: {seen:?}");
        });
        match found.await {
            Ok(note) => note,
            Err(_) => panic!("no note with {part}"),
        }
    }

    /// Ends it as Ctrl-C does.
    pub(super) async fn interrupt(mut self) -> ExitStatus {
        let pid = Pid::from_raw(self.child.id().unwrap().try_into().unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        let status = timeout(PATIENCE, self.child.wait()).await;
        status.unwrap().unwrap()
    }
}

#[tokio::test]
async fn l57_a_list_that_is_watched_outlives_the_server() {
    let stage = Stage::new();
    let (service, admin) = with_users(&stage, &["alice", "bob"]).await;
    let mut following = Following::begin(&stage, "get containers --watch");
    following.line_with(&["NAME", "READY"]).await;
    following.line_with(&["bob", "EngineUnavailable"]).await;

    ends(&stage, "pause container/alice", 0).await;
    following.line_with(&["alice", "Paused"]).await;

    service.kill9().await;
    following.note_with("waiting for the server").await;
    let service = stage.alone().start().await;
    let admin = admin.at(&service.client());
    let form = [("object", "container/bob"), ("wait", "0")];
    let pause = admin.post("/api/admin/reconcile/pause", &form).await;
    assert!(pause.status.is_success(), "{}", pause.text());
    following.line_with(&["bob", "Paused"]).await;
    following.note_with("the server answers again").await;
    // By the signal, which shells show as 130.
    assert_eq!(following.interrupt().await.signal(), Some(2));
}

#[tokio::test]
async fn events_are_followed_as_they_happen() {
    let stage = Stage::new();
    let (_service, admin) = with_users(&stage, &["alice"]).await;
    let mut following = Following::begin(&stage, "events --watch -o json");
    following.line_with(&["user/alice"]).await;
    let form = [("username", "carol"), ("wait", "0")];
    admin.post("/api/admin/users/create", &form).await.pending();
    let line = following.line_with(&["user/carol"]).await;
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(event["object"], "user/carol", "an object a line");
    following.interrupt().await;
}

#[tokio::test]
async fn a_wait_goes_on_while_the_server_restarts() {
    let stage = Stage::new();
    let (service, _admin) = with_users(&stage, &["alice"]).await;
    ends(&stage, "pause user/alice", 0).await;
    let mut following = Following::begin(
        &stage,
        "wait user/alice --for=condition=Paused=False --timeout 60s",
    );
    // It has begun when it says what it waits for.
    following.note_with("needs manual action").await;
    service.kill9().await;
    let _service = stage.alone().start().await;
    ends(&stage, "resume user/alice", 0).await;
    following.line_with(&["user/alice is Paused=False"]).await;
    let status = timeout(PATIENCE, following.child.wait()).await;
    assert_eq!(status.unwrap().unwrap().code(), Some(0));
}
