//! The disk of the data directory is full: writes are refused with the reason, everything else goes on, and
//! nobody has to restart anything.

use std::collections::BTreeSet;

use serde_json::Value;
use tokio::time::timeout;

use crate::support::client::Streamed;
use crate::support::disk::SmallDisk;
use crate::support::{Client, PATIENCE, Stage, eventually, seconds};

async fn create(admin: &Client, name: &str) -> (u16, Value) {
    let form = [("username", name), ("wait", "0")];
    let answer = admin.post("/api/admin/users/create", &form).await;
    (answer.status.as_u16(), answer.json())
}

async fn names(admin: &Client) -> BTreeSet<String> {
    let body = admin.get("/api/admin/users").await.expect(200);
    let users = body["users"].as_array().unwrap().iter();
    users
        .map(|user| user["username"].as_str().unwrap().to_owned())
        .collect()
}

/// Reads an event stream until it says this.
async fn says(stream: &mut Streamed, what: &str) {
    let mut heard = String::new();
    let reading = async {
        while !heard.contains(what) {
            let piece = stream.next().await.expect("it goes on").unwrap();
            heard.push_str(std::str::from_utf8(&piece).unwrap());
        }
    };
    timeout(PATIENCE, reading).await.expect(what);
}

#[tokio::test]
async fn engine_full_disk_refuses_writes_with_the_reason_and_takes_them_again_without_a_restart() {
    let stage = Stage::new();
    let disk = SmallDisk::mount(&stage.data(), "24m");
    let service = stage.alone().start().await;
    let admin = service.admin().await;

    // It warns before the space has run out.
    let (status, line) = admin.readiness_line("storage: degraded", seconds(10)).await;
    assert!(
        line.contains("of 25 MB free: free space"),
        "{status} {line}"
    );
    let event = admin
        .event("service/agentyard", "StorageLow", seconds(10))
        .await;
    assert_eq!(event["action"], "storage", "{event}");

    let mut watch = admin.stream("/api/admin/watch").await;
    let filler = disk.fill();
    let mut accepted = BTreeSet::new();
    let mut refused = 0;
    for number in 0..400 {
        let name = format!("user{number}");
        match create(&admin, &name).await {
            (202, _) => {
                accepted.insert(name);
            }
            (507, body) => {
                assert_eq!(body["code"], "storage_full", "{body}");
                let text = body["error"].as_str().unwrap();
                assert!(text.contains("free space"), "{body}");
                refused += 1;
            }
            (status, body) => panic!("{status}: {body}"),
        }
        if refused == 5 {
            break;
        }
    }
    assert_eq!(refused, 5, "it never is full");
    assert_eq!(names(&admin).await, accepted, "accepted, and nothing else");

    let (_, line) = admin
        .readiness_line("storage: degraded since", seconds(5))
        .await;
    let full = eventually("the fault is shown", seconds(5), async || {
        let body = admin.get("/api/admin/reconcile").await.expect(200);
        let ready = body["conditions"][0].clone();
        if ready["reason"] == "StorageFull" {
            Ok(ready)
        } else {
            Err(format!("{line}: {body}"))
        }
    });
    let (ready, _) = full.await;
    assert_eq!(ready["status"], "False", "{ready}");
    assert!(!ready["remedy"].as_str().unwrap().is_empty(), "{ready}");
    let (_, text) = admin.readiness().await;
    assert!(text.contains("the database has no space left"), "{text}");
    admin.get("/api/health").await.expect(200);

    // The very first write finds the space.
    std::fs::remove_file(filler).unwrap();
    let (status, body) = create(&admin, "after").await;
    assert_eq!(status, 202, "{body}");
    accepted.insert("after".to_owned());
    says(&mut watch, "user/after").await;
    let event = admin
        .event("service/agentyard", "StorageFull", seconds(20))
        .await;
    assert_eq!(event["action"], "storage", "{event}");
    let over = eventually("the fault is over", seconds(20), async || {
        let (_, text) = admin.readiness().await;
        match text.contains("no space left") {
            true => Err(text),
            false => Ok(()),
        }
    });
    over.await;

    service.kill9().await;
    let service = stage.alone().start().await;
    let admin = service.admin().await;
    assert_eq!(names(&admin).await, accepted);
}
