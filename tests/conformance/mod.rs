//! The service against its own API document, as strangers read it: schemathesis makes requests from
//! the document and compares the answers with it, on a fake engine and a real database.
//!
//! `hooks.py` beside this file checks the codes of failures, and sends some bodies as forms, which the document describes in prose.
//!
//! `schemathesis.toml` beside this file holds what is asked and what is left out. At small scale each
//! route is asked some four times and each time the same; `AGENTYARD_TEST_LONG=1` takes 60 examples of
//! each and tries systematically what the document leaves open: a minute or two.

mod generators;
mod service;

use std::path::{Path, PathBuf};
use std::process::Output;

use service::{Service, Session};
use tokio::process::Command;

use crate::support::client::{Client, Target};
use crate::support::long;

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// One of the tools that `make tools` installs.
fn tool(name: &str) -> Command {
    let tool = in_repository("target/tools/bin").join(name);
    assert!(
        tool.exists(),
        "{} is not there; run `make tools`, which installs it",
        tool.display()
    );
    let mut command = Command::new(tool);
    command.kill_on_drop(true);
    command
}

#[track_caller]
fn succeeded(output: &Output) {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}\n{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}

/// A session that was dead would have had nothing but documented refusals.
async fn is_alive(service: &Service, session: &Session, name: &str) {
    let address = service.address().strip_prefix("http://").unwrap();
    let target = Target::Tcp(address.parse().unwrap());
    let cookie = format!("session={}", session.cookie);
    let client = Client::new(target).header("cookie", &cookie);
    let body = client.get("/api/user/info").await.expect(200);
    assert_eq!(body["username"], name, "{body}");
}

/// Makes requests with a session of this account, and has the answers compared with the document.
async fn conforms(service: &Service, name: &str) {
    let session = service.session(name).await;
    // At small scale the same requests each time; else others, whose seed the tool prints.
    let scale: &[&str] = match long() {
        true => &["--max-examples=60"],
        false => &[
            "--max-examples=4",
            "--phases=examples,fuzzing",
            "--generation-deterministic",
        ],
    };
    let reports = service.dir.path().join("reports");
    let output = tool("schemathesis")
        .arg("--no-color")
        .arg("--config-file")
        .arg(in_repository("tests/conformance/schemathesis.toml"))
        .arg("run")
        .arg(format!("{}/api/openapi.json", service.address()))
        .args(scale)
        .arg("--report-dir")
        .arg(&reports)
        .env(
            "AGENTYARD_HOOKS",
            in_repository("tests/conformance/hooks.py"),
        )
        .env("AGENTYARD_SESSION", &session.cookie)
        .env("AGENTYARD_CSRF", &session.csrf_token)
        .current_dir(service.dir.path())
        .output();
    let output = tokio::select! {
        output = output => output.unwrap(),
        never = service.agents_talk() => match never {},
    };
    succeeded(&output);
    is_alive(service, &session, name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_superadmin_gets_what_the_document_says() {
    let service = Service::start().await;
    service.create_user("alice").await;
    conforms(&service, "admin").await;
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ordinary_user_gets_what_the_document_says() {
    let service = Service::start().await;
    service.create_user("alice").await;
    conforms(&service, "alice").await;
    service.stop().await;
}

#[tokio::test]
async fn the_document_is_valid_openapi() {
    let routes = api::routes::all();
    let mut document = api::openapi::document(&routes).unwrap();
    for form in ["full", "short"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(form);
        std::fs::write(&path, document.to_string()).unwrap();
        let output = tool("openapi-spec-validator")
            .args(["--schema", "3.1"])
            .arg(&path)
            .output();
        succeeded(&output.await.unwrap());
        api::openapi::shorten(&mut document);
    }
}
