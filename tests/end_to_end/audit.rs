//! The audit trail of the whole program: what the command line leaves in it, and that a crash between
//! change and entry cannot be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;

use crate::support::{Client, Stage, long, seconds, until};

/// All entries, oldest first.
async fn trail(admin: &Client) -> Vec<Value> {
    let answer = admin.get("/api/admin/audit/export").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

async fn is_whole(admin: &Client) -> Value {
    let verdict = admin.get("/api/admin/audit/verify").await.expect(200);
    assert_eq!(verdict["valid"], true, "{verdict}");
    verdict
}

fn local() -> String {
    format!("local:{}", rustix::process::getuid().as_raw())
}

#[tokio::test]
async fn the_command_line_leaves_entries_of_who_used_it() {
    let stage = Stage::new();
    let init = stage
        .command()
        .set("image.registry_password", "canary-hunter2")
        .run(&["init"])
        .await;
    assert!(init.status.success(), "{}", init.stderr);
    let again = stage.command().run(&["init"]).await;
    assert!(again.status.success(), "{}", again.stderr);
    let reset = stage
        .command()
        .run(&["reset-password", "admin", "--random"])
        .await;
    assert!(reset.status.success(), "{}", reset.stderr);
    let password = reset.stdout.trim().strip_prefix("password: ").unwrap();

    let service = stage.alone().spawn().after_init(password).await;
    let reset = stage
        .command()
        .run(&["reset-password", "admin", "--random"])
        .await;
    assert!(reset.status.success(), "{}", reset.stderr);
    let password = reset.stdout.trim().strip_prefix("password: ").unwrap();
    let client = service.client().header("X-Request-Id", "my-own-id");
    let admin = client.signed_in("admin", password).await;

    let trail = trail(&admin).await;
    let column = |name: &str| -> Vec<&str> {
        let entries = trail.iter();
        entries.map(|entry| entry[name].as_str().unwrap()).collect()
    };
    let (local, socket) = (local(), local().replace("local", "socket"));
    assert_eq!(column("actor"), [&*local, &*local, &*socket, "admin"]);
    assert_eq!(
        column("action"),
        ["init", "reset_password", "superadmins_reset", "login"]
    );
    assert_eq!(
        column("object"),
        [
            "superadmin/admin,adapter/active,config",
            "superadmin/admin",
            "superadmin/admin",
            "superadmin/admin"
        ]
    );
    let detail = column("detail")[0];
    assert!(detail.starts_with("version "), "{detail}");
    assert!(
        detail.ends_with("; changed: image.registry_password"),
        "{detail}"
    );
    assert_eq!(column("address"), ["", "", "", "127.0.0.1"]);
    assert_eq!(column("request_id")[3], "my-own-id");
    assert!(!format!("{trail:?}").contains("canary"), "{trail:?}");
    assert_eq!(is_whole(&admin).await["entries"], 4);
}

/// Writes until the service is gone; what was answered is `acknowledged`, by request id.
async fn burst(
    client: Client,
    worker: usize,
    acknowledged: &std::sync::Mutex<BTreeMap<String, String>>,
    count: &AtomicUsize,
) {
    for n in 0.. {
        let name = format!("w{worker}-{n}-{}", count.load(Ordering::Relaxed));
        let id = format!("create-{name}");
        let client = client.clone().header("X-Request-Id", &id);
        let answer = client
            .try_post("/api/admin/superadmins/create", &[("username", &name)])
            .await;
        let Ok(answer) = answer else { return };
        if answer.status == 503 {
            // Too many passwords are being hashed; nothing was changed.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        }
        answer.expect(200);
        acknowledged.lock().unwrap().insert(id, name);
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_it_writes_no_change_is_without_its_entry_and_no_entry_without_its_change() {
    let stage = Stage::new();
    let acknowledged = std::sync::Arc::new(std::sync::Mutex::new(BTreeMap::new()));
    let count = std::sync::Arc::new(AtomicUsize::new(0));
    let mut service = stage.alone().start().await;
    for round in 0..if long() { 20 } else { 4 } {
        let admin = service.admin().await;
        let before = count.load(Ordering::Relaxed);
        let mut workers = JoinSet::new();
        for worker in 0..4 {
            let (client, acknowledged) = (admin.clone(), acknowledged.clone());
            let count = count.clone();
            workers.spawn(async move { burst(client, worker, &acknowledged, &count).await });
        }
        // At another moment of the work in each round.
        until("writes are under way", seconds(30), async || {
            count.load(Ordering::Relaxed) >= before + 3 + round
        })
        .await;
        tokio::time::sleep(Duration::from_millis(7 * round as u64)).await;
        service.kill9().await;
        while let Some(ended) = workers.join_next().await {
            ended.unwrap();
        }

        service = stage.alone().start().await;
        let admin = service.admin().await;
        is_whole(&admin).await;
        let mut entries = BTreeMap::new();
        for entry in trail(&admin).await {
            if entry["action"] == "superadmins_create" {
                let id = entry["request_id"].as_str().unwrap().to_owned();
                let object = entry["object"].as_str().unwrap().to_owned();
                assert_eq!(entries.insert(id.clone(), object), None, "{id} twice");
            }
        }
        for (id, name) in acknowledged.lock().unwrap().iter() {
            assert_eq!(entries.get(id), Some(&format!("superadmin/{name}")), "{id}");
        }
        let listed = admin.get("/api/admin/superadmins").await.expect(200);
        let there: BTreeSet<String> = listed["admins"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .filter(|name| name != "admin")
            .collect();
        let told: BTreeSet<String> = entries
            .values()
            .map(|object| object.strip_prefix("superadmin/").unwrap().to_owned())
            .collect();
        assert_eq!(there, told, "changes and entries are the same");
    }
    assert!(count.load(Ordering::Relaxed) >= 12);
}
