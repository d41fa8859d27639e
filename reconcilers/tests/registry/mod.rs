//! A real registry with an image of several layers in it, and a way to it that can be slow or break.

use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::RegistryCredentials;
use rand::Rng;
use schema::ids::Uid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Layers of a test image.
pub const LAYERS: usize = 4;
/// Bytes of each; random ones, so that they do not shrink.
pub const LAYER: usize = 2_000_000;

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: this test needs a real engine and registries. Start them with `make services-up` and run the tests with `make run-tests FILTER=…`")
    })
}

/// The registry for everybody.
pub fn open() -> String {
    variable("AGENTYARD_TEST_REGISTRY")
}

/// The registry behind basic authentication.
pub fn closed() -> String {
    variable("AGENTYARD_TEST_REGISTRY_AUTH")
}

/// What the closed registry lets in.
pub fn credentials() -> RegistryCredentials {
    RegistryCredentials {
        username: variable("AGENTYARD_TEST_REGISTRY_USER"),
        password: variable("AGENTYARD_TEST_REGISTRY_PASSWORD").into(),
    }
}

/// The address of the test engine.
pub fn docker_host() -> String {
    variable("AGENTYARD_TEST_DOCKER_HOST")
}

fn docker(arguments: &[&str]) -> Output {
    let output = Command::new("docker")
        .args(["-H", &docker_host()])
        .args(arguments)
        // The builder that every version of the command has.
        .env("DOCKER_BUILDKIT", "0")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    output
}

/// Whether the engine has an image.
pub fn is_there(reference: &str) -> bool {
    let output = Command::new("docker")
        .args(["-H", &docker_host(), "image", "inspect", reference])
        .output()
        .unwrap();
    output.status.success()
}

/// An image that a registry has and the engine has not. What a test pulled is removed at its end.
pub struct Published {
    /// Name and tag, without the registry.
    pub name: String,
    pulled: Vec<String>,
}

impl Published {
    /// Makes an image that no other test has, and pushes it.
    pub fn new(registry: &str) -> Self {
        let name = format!("agentyard-test/{}:1", Uid::random());
        let reference = format!("{registry}/{name}");
        let directory = tempfile::tempdir().unwrap();
        let path = |file: &str| directory.path().join(file);
        let mut recipe = "FROM scratch\n".to_owned();
        let mut bytes = vec![0; LAYER];
        for number in 0..LAYERS {
            rand::rng().fill_bytes(&mut bytes);
            std::fs::write(path(&number.to_string()), &bytes).unwrap();
            recipe.push_str(&format!("COPY {number} /{number}\n"));
        }
        std::fs::write(path("Dockerfile"), recipe).unwrap();
        let context = directory.path().display().to_string();
        docker(&["build", "-q", "--force-rm", "-t", &reference, &context]);
        let config = tempfile::tempdir().unwrap();
        let config = config.path().display().to_string();
        if registry == closed() {
            let user = variable("AGENTYARD_TEST_REGISTRY_USER");
            let password = variable("AGENTYARD_TEST_REGISTRY_PASSWORD");
            docker(&[
                "--config", &config, "login", "-u", &user, "-p", &password, registry,
            ]);
        }
        docker(&["--config", &config, "push", "-q", &reference]);
        docker(&["rmi", &reference]);
        assert!(!is_there(&reference));
        Self {
            name,
            pulled: Vec::new(),
        }
    }

    /// The reference by which it is found at `registry`.
    pub fn at(&mut self, registry: &str) -> String {
        let reference = format!("{registry}/{}", self.name);
        self.pulled.push(reference.clone());
        reference
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        for reference in &self.pulled {
            let _ = Command::new("docker")
                .args(["-H", &docker_host(), "rmi", "-f", reference])
                .output();
        }
    }
}

/// What the way to the registry is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// So many bytes a second for each connection.
    Slow(usize),
    /// Every connection breaks off, and whoever comes after is answered by somebody else.
    Broken,
}

/// A way to the open registry, on a port of its own.
pub struct Proxy {
    /// Its address.
    pub address: String,
    way: watch::Sender<Way>,
    passed: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    pub async fn new(way: Way) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let way = watch::Sender::new(way);
        let (passed, connections) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (ways, bytes, open_ones) = (
            way.subscribe(),
            Arc::clone(&passed),
            Arc::clone(&connections),
        );
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (ways, bytes, open_ones) = (ways.clone(), bytes.clone(), open_ones.clone());
                serving.spawn(async move {
                    open_ones.fetch_add(1, Ordering::SeqCst);
                    // However it ends, both sides are closed.
                    let _ = pass(client, ways, &bytes).await;
                    open_ones.fetch_sub(1, Ordering::SeqCst);
                });
                while serving.try_join_next().is_some() {}
            }
        });
        Self {
            address,
            way,
            passed,
            connections,
            _tasks: tasks,
        }
    }

    pub fn become_broken(&self) {
        self.way.send_replace(Way::Broken);
    }

    /// Bytes that came from the registry.
    pub fn passed(&self) -> usize {
        self.passed.load(Ordering::SeqCst)
    }

    /// Connections that are open now.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn pass(
    mut client: TcpStream,
    mut ways: watch::Receiver<Way>,
    bytes: &AtomicUsize,
) -> std::io::Result<()> {
    let way = *ways.borrow_and_update();
    let rate = match way {
        Way::Slow(rate) => rate,
        Way::Broken => {
            let answer =
                "HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\nConnection: close\r\n\r\nno\r\n";
            let mut request = [0; 4096];
            let _ = client.read(&mut request).await?;
            return client.write_all(answer.as_bytes()).await;
        }
    };
    let registry = TcpStream::connect(open()).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_registry, mut to_registry) = registry.into_split();
    let there = tokio::io::copy(&mut from_client, &mut to_registry);
    let back = async {
        let mut piece = vec![0; (rate / 20).max(1)];
        loop {
            let read = from_registry.read(&mut piece).await?;
            if read == 0 {
                return Ok::<(), std::io::Error>(());
            }
            to_client
                .write_all(piece.get(..read).unwrap_or_default())
                .await?;
            bytes.fetch_add(read, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        _ = there => Ok(()),
        ended = back => ended,
        _ = ways.changed() => Ok(()),
    }
}
