//! Addresses run out and come back (L29); containers are shut in (L40).

use crate::support::{Engine, Stage, eventually, seconds};

/// Addresses of a /28 that containers can have: 16 without network, broadcast and gateway.
const ROOM: usize = 13;

#[tokio::test]
async fn engine_l29_more_users_than_addresses_wait_until_one_is_free() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage
        .serve(&engine)
        .set("container.network_subnet", "10.99.0.0/28")
        .start()
        .await;
    let admin = service.admin().await;
    let names: Vec<String> = (0..=ROOM).map(|n| format!("user{n:02}")).collect();
    let form = [("usernames", &*names.join("\n"))];
    let created = admin.post("/api/admin/users/batch-create", &form).await;
    assert!(created.status.is_success(), "{}", created.text());

    let states = async |names: &[String]| {
        let mut running = Vec::new();
        let mut full = Vec::new();
        for name in names {
            let row = admin.user(name).await.unwrap();
            let reason = crate::support::client::ready(&row)["reason"].clone();
            if reason == "Running" {
                running.push(row["ip"].as_str().unwrap().to_owned());
            } else if reason == "NetworkFull" {
                full.push(name.clone());
            }
        }
        (running, full)
    };
    let seen = eventually("all addresses are in use", seconds(90), async || {
        let (running, full) = states(&names).await;
        if running.len() == ROOM && full.len() == 1 {
            Ok((running, full))
        } else {
            Err(format!("{running:?} {full:?}"))
        }
    });
    let ((mut addresses, waiting), _) = seen.await;
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), ROOM, "each its own: {addresses:?}");
    assert!(addresses.iter().all(|ip| ip.starts_with("10.99.0.")));

    // The one that waits says so to who asks.
    let form = [("username", waiting[0].as_str()), ("wait", "30")];
    let start = admin.post("/api/admin/container/start", &form).await;
    let body = start.refused(503, "network_full");
    assert_eq!(body["state"], "failed", "{body}");

    let leaving = names.iter().find(|name| **name != waiting[0]).unwrap();
    let form = [("username", leaving.as_str()), ("wait", "60")];
    let deleted = admin.post("/api/admin/users/delete", &form).await;
    deleted.expect(200);
    admin.status(&waiting[0], "running", seconds(60)).await;
    engine.the_running(&waiting[0]);
}

#[tokio::test]
async fn engine_l40_containers_are_limited_and_cannot_reach_each_other() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage
        .serve(&engine)
        .set("container.network_subnet", "10.99.0.0/28")
        .set("container.memory_limit_mb", "128")
        .set("container.pids_limit", "64")
        .start()
        .await;
    let admin = service.admin().await;
    admin.create_user("ann").await;
    admin.create_user("bob").await;
    let other = admin.user("bob").await.unwrap()["ip"].clone();
    let other = other.as_str().unwrap();

    // The same program, the same page: its own it reaches, the other's it does not.
    let fetch = |address: &str| {
        let page = format!("http://{address}:18790/health");
        let arguments = ["timeout", "3", "wget", "-q", "-O", "-", &page];
        engine.ask(&[&["exec", "agentyard-ann"], arguments.as_slice()].concat())
    };
    assert_eq!(fetch("127.0.0.1").as_deref(), Some("ok"));
    assert_eq!(fetch(other), None);

    let details = engine.inspect("agentyard-ann");
    let host = &details["HostConfig"];
    assert_eq!(host["CapDrop"], serde_json::json!(["ALL"]), "{host}");
    let config = admin.get("/api/config").await.expect(200);
    let kept = config["container"]["capabilities"].as_array().unwrap();
    let added = host["CapAdd"].as_array().cloned().unwrap_or_default();
    assert_eq!(added.len(), kept.len(), "{host}");
    let options = host["SecurityOpt"].as_array().unwrap();
    assert!(
        options
            .iter()
            .any(|o| o.as_str().unwrap().starts_with("no-new-privileges")),
        "{host}"
    );
    assert_eq!(host["PidsLimit"], 64, "{host}");
    assert_eq!(host["Memory"], 128 * 1024 * 1024, "{host}");
    assert_eq!(host["Privileged"], false, "{host}");
    assert_eq!(host["RestartPolicy"]["Name"], "no", "{host}");
    assert_eq!(host["Init"], true, "{host}");
    // As the kernel sees it.
    let status = engine.docker(&["exec", "agentyard-ann", "cat", "/proc/self/status"]);
    let line = |name: &str| {
        let found = status.lines().find_map(|line| line.strip_prefix(name));
        found.map(str::trim).unwrap().to_owned()
    };
    let bounding = u64::from_str_radix(&line("CapBnd:"), 16).unwrap();
    assert_eq!(bounding.count_ones() as usize, kept.len());
    assert_eq!(line("NoNewPrivs:"), "1");
}

#[tokio::test]
async fn engine_subnet_stays_while_containers_exist() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    admin.create_user("bob").await;
    let change = [("config", r#"{"container.network_subnet":"10.77.0.0/24"}"#)];
    let refused = admin.post("/api/config", &change).await;
    refused.refused(409, "network_in_use");
    let config = admin.get("/api/config").await.expect(200);
    assert_eq!(config["container"]["network_subnet"], "10.88.0.0/16");
    service.passes(&admin, "engine", 1).await;
    engine.the_running("bob");

    // Without containers it may change, and the network is made anew.
    let form = [("username", "bob"), ("wait", "60")];
    admin
        .post("/api/admin/container/stop", &form)
        .await
        .converged();
    let changed = admin.post("/api/config", &change).await;
    changed.expect(200);
    let started = admin.post("/api/admin/container/start", &form).await;
    started.converged();
    let bob = admin.user("bob").await.unwrap();
    assert!(bob["ip"].as_str().unwrap().starts_with("10.77.0."), "{bob}");
}
