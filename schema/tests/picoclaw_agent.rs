//! PicoClaw itself with files that the adapter rendered. `make test-picoclaw` runs it, with the program's path in
//! `AGENTYARD_TEST_PICOCLAW`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use schema::adapter::{Adapter, Agent, Found, Inputs, McpAccess, Readiness};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

/// How long the agent may take to start and to find its servers.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program to test.
fn program() -> PathBuf {
    let path = std::env::var_os("AGENTYARD_TEST_PICOCLAW")
        .expect("AGENTYARD_TEST_PICOCLAW names the program picoclaw");
    std::fs::canonicalize(path).unwrap()
}

/// Paths, with their queries, that the agent asked: for an event stream, or by POST (Streamable HTTP).
type Opened = Arc<Mutex<BTreeSet<String>>>;

/// As much of an MCP server as it takes to be connected to: streams stay open, messages are accepted.
async fn serve(listener: TcpListener, opened: Opened) {
    let mut open = tokio::task::JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        open.spawn(answer(stream, opened.clone()));
    }
}

async fn answer(mut stream: TcpStream, opened: Opened) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap_or_default());
    opened.lock().unwrap().insert(target.to_owned());
    if method != "GET" {
        let accepted = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        return stream.write_all(accepted.as_bytes()).await;
    }
    let begin = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let endpoint = "event: endpoint\ndata: /api/mcp/messages\n\n";
    stream
        .write_all(format!("{begin}{endpoint}").as_bytes())
        .await?;
    // Until the agent goes.
    while stream.read_buf(&mut Vec::with_capacity(1024)).await? > 0 {}
    Ok(())
}

/// The adapter, with a directory of this machine as the container's home.
fn adapter_at(home: &Path) -> Adapter {
    let mut adapter = Adapter::builtin("picoclaw").unwrap().unwrap();
    let agent = std::sync::Arc::make_mut(&mut adapter.index.agent);
    let inside = agent.agent_dir();
    home.to_str().unwrap().clone_into(&mut agent.home);
    let outside = agent.agent_dir();
    for value in agent.environment.values_mut() {
        *value = value.replace(&inside, &outside);
    }
    adapter
}

/// Renders the files of the newest version, with a channel that is off, and writes them.
fn write_files(adapter: &Adapter, base_url: &str, token: &SecretString) {
    let off = json!({"enabled": false, "client_id": "nobody", "client_secret": "nothing"});
    let off: BTreeMap<String, Value> = serde_json::from_value(off).unwrap();
    let tag = adapter.index.agent_versions.newest().version.to_string();
    let rendered = adapter
        .render(&Inputs {
            image_tag: &tag,
            agent: &Value::Null,
            security: &Value::Null,
            channels: &BTreeMap::from([("dingtalk".to_owned(), off)]),
            cookies: &BTreeMap::from([("example.com".to_owned(), "a=1".to_owned())]),
            mcp: Some(McpAccess { base_url, token }),
            chat: None,
            applied: None,
            found: Found::default(),
        })
        .unwrap();
    let agent = &adapter.index.agent;
    std::fs::create_dir_all(agent.workspace_dir()).unwrap();
    for (file, bytes) in [
        (&agent.config_file, &rendered.config.bytes),
        (&agent.security_file, &rendered.security.bytes),
    ] {
        std::fs::write(Path::new(&agent.agent_dir()).join(file), bytes).unwrap();
    }
}

/// Starts the agent as a container would, with its output in `log`.
fn start(agent: &Agent, programs: &Path, log: &Path) -> Child {
    std::os::unix::fs::symlink(program(), programs.join("picoclaw")).unwrap();
    let [command, arguments @ ..] = agent.command.as_deref().unwrap() else {
        panic!("the adapter names no command");
    };
    let path = std::env::var("PATH").unwrap();
    let output = std::fs::File::create(log).unwrap();
    Command::new(command)
        .args(arguments)
        .env_clear()
        .envs(&agent.environment)
        .env("HOME", &agent.home)
        .env("PATH", format!("{}:{path}", programs.display()))
        .current_dir(&agent.home)
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Whether the agent says that it is ready, by the adapter's own check.
async fn is_ready(agent: &Agent) -> bool {
    let Readiness::Http { port, path } = &agent.readiness else {
        panic!("the adapter checks no address");
    };
    let ask = async {
        let mut stream = TcpStream::connect(("127.0.0.1", *port)).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    ask.await
        .is_ok_and(|answer| answer.starts_with(b"HTTP/1.1 200"))
}

#[tokio::test]
async fn the_agent_starts_with_rendered_files_and_connects_to_both_of_its_servers() {
    let (home, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let adapter = adapter_at(home.path());
    let agent = &adapter.index.agent;
    let token = format!("alice:{}", "0123456789abcdef".repeat(4));
    write_files(&adapter, &base_url, &token.as_str().into());
    let query = token.replace(':', "%3A");
    let expected = ["browser", "computer"]
        .map(|service| format!("/api/mcp/sse/{service}?token={query}"))
        .into();

    let log = programs.path().join("log");
    let mut child = start(agent, programs.path(), &log);
    let opened = Opened::default();
    let connected = async {
        while *opened.lock().unwrap() != expected || !is_ready(agent).await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let how = tokio::select! {
        () = connected => None,
        () = serve(listener, opened.clone()) => unreachable!("it serves for ever"),
        status = child.wait() => Some(format!("it ended: {status:?}")),
        () = tokio::time::sleep(PATIENCE) => Some("it took too long".to_owned()),
    };
    if let Some(how) = how {
        let log = std::fs::read_to_string(&log).unwrap();
        panic!(
            "{how}; ready: {}; opened {:?} of {expected:?}\n{log}",
            is_ready(agent).await,
            opened.lock().unwrap()
        );
    }
}
