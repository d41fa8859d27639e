//! The service runs as a user of the host who is nobody special.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use serde_json::json;

use crate::adapter::{done, package, upload};
use crate::support::proxy::Proxy;
use crate::support::{Engine, Stage, seconds};

/// Nobody's uid and gid.
const NOBODY: u32 = 65_534;

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn engine_a_service_that_is_not_root_runs_agents_as_itself_and_says_which_it_cannot_run() {
    let engine = Engine::claim();
    let stage = Stage::new();
    mode(stage.path(), 0o755);
    chown(stage.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    // What membership in the group of the engine's socket is elsewhere.
    let socket = stage.path().join("engine.sock");
    let proxy = Proxy::new(&socket, &engine.socket());
    mode(&socket, 0o666);
    let service = stage
        .serve_at(&proxy.host())
        .user(NOBODY, stage.path())
        .start()
        .await;
    let admin = service.admin().await;
    admin.create_user("alice").await;
    let id = engine.the_running("alice").id;
    let user = format!("{NOBODY}:{NOBODY}");
    assert_eq!(engine.inspect(&id)["Config"]["User"], *user);
    let home = stage.data().join("users/alice").metadata().unwrap();
    assert_eq!((home.uid(), home.gid()), (NOBODY, NOBODY));
    // It has no right to the host's packet filter, and says so.
    let open = "HostRestricted=False: agents reach every service of the host and every network behind it: the service may not \
                change the packet filter of this host; run it as root, or set";
    let status = stage.command().run(&["status"]).await;
    let warning = format!("\nwarning: engine/local: {open}");
    assert!(status.stdout.contains(&warning), "{}", status.stdout);
    let described = stage.command().run(&["describe", "engine/local"]).await;
    for part in [
        "Ready=True",
        "Problems:\n  HostRestricted=False HostOpen: ",
        "remedy:  Run the service as root",
    ] {
        let text = &described.stdout;
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        service
            .log()
            .contains(&open["HostRestricted=False: ".len()..])
    );
    admin.event("engine/local", "HostOpen", seconds(10)).await;
    let enforce = [
        ("config", r#"{"container.host_access":"enforce"}"#),
        ("wait", "60"),
    ];
    admin.post("/api/config", &enforce).await.converged();
    let form = [("username", "eve"), ("wait", "60")];
    let refused = admin.post("/api/admin/users/create", &form).await;
    refused.refused(422, "host_open");
    assert_eq!(engine.of("eve"), []);
    assert_eq!(engine.the_running("alice").id, id, "runs on");
    let service_only = [
        ("config", r#"{"container.host_access":"service"}"#),
        ("wait", "60"),
    ];
    admin.post("/api/config", &service_only).await.expect(200);
    admin.status("eve", "running", seconds(60)).await;

    let as_image = package(|index| {
        index["agent"]["run_as"] = json!("image");
        index["adapter_version"] = json!("2.0");
    });
    done(&upload(&stage, &as_image).await);
    let form = [("username", "bob"), ("wait", "60")];
    let refused = admin.post("/api/admin/users/create", &form).await;
    let refused = refused.refused(422, "needs_root");
    let why = refused["error"].as_str().unwrap();
    assert!(why.contains("a service that runs as root"), "{why}");
    assert_eq!(engine.of("bob"), []);
    // Who has an agent keeps it.
    admin.reason("alice", "NeedsRoot", seconds(30)).await;
    assert_eq!(engine.the_running("alice").id, id);
    let rollback = stage.command().run(&["adapter", "rollback"]).await;
    done(&rollback);
    for name in ["alice", "bob"] {
        admin.status(name, "running", seconds(60)).await;
    }
}
