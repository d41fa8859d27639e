//! Generators of clients over the document of a running service: they complain of nothing, what they make
//! compiles, and a generated client works.

use std::path::Path;

use tokio::process::Command;

use super::service::Service;
use super::{in_repository, succeeded, tool};

/// A program of npm that `tests/services/install` installs.
fn npm_tool(name: &str) -> Command {
    let tool = in_repository("tests/services/generators/node_modules/.bin").join(name);
    assert!(
        tool.exists(),
        "{} is missing; install it with: tests/services/install",
        tool.display()
    );
    let mut command = Command::new(tool);
    command.kill_on_drop(true);
    command
}

async fn generates_typescript(service: &Service, address: &str, types: &Path) {
    let generated = npm_tool("openapi-typescript")
        .arg(address)
        .arg("--output")
        .arg(types)
        .output();
    let generated = generated.await.unwrap();
    succeeded(&generated);
    let warnings = String::from_utf8_lossy(&generated.stderr).into_owned();
    assert_eq!(warnings, "", "{address}");
    let compiled = npm_tool("tsc")
        .args(["--noEmit", "--strict", "--target", "es2022"])
        .args(["--module", "nodenext"])
        .arg(types)
        .arg(types.with_file_name("client.ts"))
        .current_dir(service.dir.path())
        .output();
    succeeded(&compiled.await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_of_the_document_compiles() {
    let service = Service::start().await;
    let source = in_repository("tests/conformance/client.ts");
    std::fs::copy(source, service.dir.path().join("client.ts")).unwrap();
    let types = service.dir.path().join("types.ts");
    let address = format!("{}/api/openapi.json", service.address());
    for query in ["", "?descriptions=true"] {
        generates_typescript(&service, &format!("{address}{query}"), &types).await;
    }
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_client_of_the_document_works() {
    let service = Service::start().await;
    let session = service.session("admin").await;
    let client = service.dir.path().join("agentyard_client");
    let generated = tool("openapi-python-client")
        .args(["generate", "--meta", "none", "--fail-on-warning", "--url"])
        .arg(format!("{}/api/openapi.json", service.address()))
        .arg("--config")
        .arg(in_repository("tests/conformance/python-client.yml"))
        .arg("--output-path")
        .arg(&client)
        // Hooks after the generation only format.
        .env("PATH", in_repository("target/tools/bin"))
        .output();
    succeeded(&generated.await.unwrap());
    let used = tool("python")
        .arg(in_repository("tests/conformance/client.py"))
        .arg(service.address())
        .env("PYTHONPATH", service.dir.path())
        .env("AGENTYARD_SESSION", &session.cookie)
        .env("AGENTYARD_CSRF", &session.csrf_token)
        .output();
    succeeded(&used.await.unwrap());
    service.stop().await;
}
