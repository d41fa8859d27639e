//! A runtime that does not answer ends the process, and files at which it dies are set aside.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::client::ready;
use crate::support::{Client, Service, Stage, eventually, seconds};

/// Holds the thread on which the user's directory is about to be made.
const POINT: &str = "user.EnsureHome.before";

/// Begins a request whose body never comes, and waits until the service asks for that.
async fn begin_request(service: &Service, caller: &Client, path: &str) -> TcpStream {
    let address = service.address();
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nExpect: 100-continue\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\n"
    );
    for (name, value) in caller.credentials() {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut line = [0; 12];
    stream.read_exact(&mut line).await.unwrap();
    assert_eq!(line, *b"HTTP/1.1 100");
    stream
}

#[tokio::test]
async fn stalled_runtime_ends_with_70_and_a_report() {
    let stage = Stage::new();
    let switch = stage.path().join("hang");
    let mut service = stage
        .alone()
        .env("AGENTYARD_HANG", POINT)
        .env("AGENTYARD_HANG_WHILE", &switch.display().to_string())
        .env("AGENTYARD_WATCHDOG_TICKS", "3")
        .start()
        .await;
    let admin = service.admin().await;
    let _waiting = begin_request(&service, &admin, "/api/admin/groups/create").await;
    std::fs::write(&switch, "").unwrap();
    let form = [("username", "bob")];
    let created = admin.try_post("/api/admin/users/create", &form);
    let (_, ended) = tokio::join!(created, service.ended_within(seconds(30)));
    assert_eq!(ended.code(), Some(70), "{ended}");
    let log = service.log();
    let has = |part: &str| {
        let mut lines = log.lines();
        assert!(lines.any(|line| line.contains(part)), "{part}: {log}");
    };
    has("the runtime does not answer: the process ends with exit code 70");
    has("under way: request POST /api/admin/groups/create (session)");
    has("under way: reconciliation user/");
    has("(EnsureHome)");
    has("thread id=");
    let mut report = log.lines().filter(|line| line.contains("under way"));
    assert!(report.all(|line| !line.contains("bob")), "{log}");
    // Whatever runs it starts it again.
    std::fs::remove_file(&switch).unwrap();
    let service = stage.alone().start().await;
    let admin = admin.at(&service.client());
    eventually("bob has a directory", seconds(20), async || {
        let bob = admin.object("user/bob").await;
        match ready(&bob)["status"] == "True" {
            true => Ok(()),
            false => Err(bob.to_string()),
        }
    })
    .await;
    let uid = admin.object("user/bob").await["uid"].clone();
    service.kill9().await;

    // As two processes leave it that die while they parse one file.
    let agent = stage.data().join("users/bob/.agent");
    std::fs::create_dir_all(&agent).unwrap();
    std::fs::write(agent.join("notes.json"), "{}").unwrap();
    for process in ["one", "two"] {
        let dead = stage.data().join("reading").join(process);
        std::fs::create_dir(&dead).unwrap();
        let note = json!({"user": "bob", "uid": uid, "path": ".agent/notes.json"});
        std::fs::write(dead.join("0"), note.to_string()).unwrap();
    }
    let service = stage.alone().start().await;
    let admin = admin.at(&service.client());
    let event = admin.event("user/bob", "FileSetAside", seconds(5)).await;
    let message = event["message"].as_str().unwrap();
    assert!(
        message.starts_with(".agent/notes.json was being read"),
        "{event}"
    );
    assert!(!agent.join("notes.json").exists());
}
