//! Another adapter, uploaded or fetched from its source, while agents run.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use schema::adapter::Adapter;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use warp::Filter;
use warp::http::{Response, StatusCode};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::service::Finished;
use crate::support::{Client, Engine, Service, Stage, seconds, until};

const RULES: &str = "/api/admin/migration-rules";

/// The package `echo`, its index changed, as a zip.
pub fn package(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut files = Adapter::builtin("echo").unwrap().unwrap().files().clone();
    files.remove("hash");
    let mut index: Value = serde_json::from_str(&files["index.json"]).unwrap();
    change(&mut index);
    files.insert("index.json".to_owned(), index.to_string());
    let hashes: BTreeMap<&String, String> = files
        .iter()
        .map(|(path, text)| (path, hex::encode(Sha256::digest(text))))
        .collect();
    let list = hashes
        .iter()
        .map(|(path, hash)| format!("{hash}  {path}\n"));
    let list: String = list.collect();
    files.insert("hash".to_owned(), list);
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, text) in files {
        zip.start_file(path, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn version(version: &str) -> Vec<u8> {
    package(|index| index["adapter_version"] = json!(version))
}

/// What an operator does.
pub async fn upload(stage: &Stage, zip: &[u8]) -> Finished {
    let path: PathBuf = stage.path().join("package.zip");
    std::fs::write(&path, zip).unwrap();
    let path = path.display().to_string();
    stage.command().run(&["adapter", "upload", &path]).await
}

pub fn done(finished: &Finished) {
    assert!(finished.status.success(), "{}", finished.stderr);
}

async fn active(admin: &Client) -> Value {
    admin.get(RULES).await.expect(200)["rules"]["adapter_version"].clone()
}

async fn settled(admin: &Client, user: &str) {
    until("everything is seen to", seconds(60), async || {
        for kind in ["user", "agent-config", "container"] {
            let object = admin.object(&format!("{kind}/{user}")).await;
            let ready = &object["conditions"][0]["status"];
            if object["generation"] != object["observed_generation"] || ready != "True" {
                return false;
            }
        }
        true
    })
    .await;
}

#[tokio::test]
async fn engine_an_uploaded_adapter_replaces_a_container_only_when_it_asks_for_another() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let launch = stage.serve(&engine).args(&["--adapter", "echo"]);
    let service = launch.clone().start().await;
    let admin = service.admin().await;
    admin.create_user("alice").await;
    settled(&admin, "alice").await;
    let first = engine.the_running("alice").id;

    // Another version that asks for the same: nothing is interrupted.
    done(&upload(&stage, &version("1.3")).await);
    settled(&admin, "alice").await;
    assert_eq!(active(&admin).await, "1.3");
    assert_eq!(engine.the_running("alice").id, first);

    // One that cannot be used is refused with its place, and changes nothing.
    let broken = package(|index| index["agent"]["readiness"] = json!({"http": {"port": 0}}));
    let refused = upload(&stage, &broken).await;
    assert!(!refused.status.success());
    for place in ["index.json", "/agent/readiness"] {
        assert!(refused.stderr.contains(place), "{}", refused.stderr);
    }
    assert_eq!(active(&admin).await, "1.3");

    let more = package(|index| {
        index["adapter_version"] = json!("1.3");
        index["agent"]["environment"]["ECHO_MORE"] = json!("${agent_dir}/more");
    });
    done(&upload(&stage, &more).await);
    settled(&admin, "alice").await;
    let second = engine.the_running("alice").id;
    assert_ne!(second, first);
    let environment = engine.inspect(&second)["Config"]["Env"].to_string();
    assert!(
        environment.contains("ECHO_MORE=/root/.agent/more"),
        "{environment}"
    );

    // What was uploaded stays, whatever the service is started with.
    service.kill9().await;
    let service = launch.start().await;
    let admin = service.admin().await;
    for reconciler in ["user", "agent-config", "container"] {
        service.passes(&admin, reconciler, 2).await;
    }
    assert_eq!(active(&admin).await, "1.3");
    assert_eq!(engine.the_running("alice").id, second);

    done(&stage.command().run(&["adapter", "rollback"]).await);
    settled(&admin, "alice").await;
    assert_eq!(active(&admin).await, "1.3");
    let third = engine.the_running("alice").id;
    let environment = engine.inspect(&third)["Config"]["Env"].to_string();
    assert!(!environment.contains("ECHO_MORE"), "{environment}");
}

/// What a source answers at `/adapter.zip`.
type Offer = Arc<Mutex<(StatusCode, Vec<u8>)>>;

#[allow(clippy::disallowed_methods)] // It ends with the test.
fn serve(offer: &Offer) -> SocketAddr {
    let offer = Arc::clone(offer);
    let route = warp::path!("adapter.zip").map(move || {
        let (status, body) = offer.lock().unwrap().clone();
        let location = "ftp://127.0.0.1/adapter.zip";
        let builder = Response::builder()
            .status(status)
            .header("location", location);
        builder.body(body).unwrap()
    });
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    tokio::spawn(warp::serve(route).incoming(listener).run());
    address
}

async fn refresh(service: &Service, stage: &Stage) -> (Finished, Value) {
    let finished = stage.command().run(&["adapter", "refresh"]).await;
    let admin = service.admin().await;
    until("the source was asked", seconds(30), async || {
        let object = admin.object("adapter/active").await;
        object["generation"] == object["observed_generation"]
    })
    .await;
    let object = admin.object("adapter/active").await;
    (finished, object["conditions"][0].clone())
}

#[tokio::test]
async fn a_newer_adapter_is_fetched_and_one_that_cannot_be_used_is_told_of() {
    let offer: Offer = Arc::new(Mutex::new((StatusCode::OK, version("1.3"))));
    let source = format!("http://{}/adapter.zip", serve(&offer));
    let stage = Stage::new();
    let launch = stage.alone().args(&["--adapter", "echo"]);
    let service = launch.set("adapter.source_url", &source).start().await;
    let admin = service.admin().await;

    // What the timer finds is reported, with what would change, and waits.
    until("the newer one is reported", seconds(30), async || {
        let object = admin.object("adapter/active").await;
        object["conditions"][0]["reason"] == "UpdateAvailable"
    })
    .await;
    let object = admin.object("adapter/active").await;
    let said = object["conditions"][0]["message"].to_string();
    assert!(
        said.contains("1.3") && said.contains("environment"),
        "{said}"
    );
    assert_ne!(active(&admin).await, "1.3");

    let (_, condition) = refresh(&service, &stage).await;
    assert_eq!(condition["status"], "True", "{condition}");
    assert_eq!(active(&admin).await, "1.3");

    // Older, or the same: as it is.
    *offer.lock().unwrap() = (StatusCode::OK, version("1.0"));
    let (_, condition) = refresh(&service, &stage).await;
    assert_eq!(condition["status"], "True", "{condition}");
    assert_eq!(active(&admin).await, "1.3");

    for (status, body, reason) in [
        (StatusCode::OK, b"no zip".to_vec(), "AdapterInvalid"),
        (StatusCode::FOUND, Vec::new(), "AdapterSourceFailed"),
        (
            StatusCode::INTERNAL_SERVER_ERROR,
            Vec::new(),
            "AdapterSourceFailed",
        ),
    ] {
        *offer.lock().unwrap() = (status, body);
        let (finished, condition) = refresh(&service, &stage).await;
        assert_eq!(condition["reason"], reason, "{condition}");
        assert!(!finished.status.success(), "{}", finished.stdout);
        assert_eq!(active(&admin).await, "1.3", "{status}");
    }

    *offer.lock().unwrap() = (StatusCode::OK, version("1.10"));
    let (finished, condition) = refresh(&service, &stage).await;
    done(&finished);
    assert_eq!(condition["status"], "True", "{condition}");
    assert_eq!(active(&admin).await, "1.10");
}
