//! The test engine, as somebody with a shell on the host sees it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::cluster::Cluster;

/// The label all objects of a service carry.
pub const LABEL_OWNER: &str = "io.agentyard.owner";
/// The label with a user's uid.
pub const LABEL_UID: &str = "io.agentyard.uid";
/// The agents' network.
pub const NETWORK: &str = "agentyard";

const HOW: &str = "is not set: this test needs a real engine. Start one with `make services-up` and run the tests with `make run-tests FILTER=…`";

/// The test engine, while one test has it. Before and after, nothing of ours is on it.
pub struct Engine {
    host: String,
    /// With `AGENTYARD_TEST_ENGINE=kubernetes`, instead of Docker.
    cluster: Option<Cluster>,
}

/// A container as `docker ps -a` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub id: String,
    pub name: String,
    pub state: String,
}

/// Something that happened on the engine.
#[derive(Debug, Clone)]
pub struct Happened {
    pub kind: String,
    pub action: String,
    /// Name of the container, where it was one.
    pub name: String,
    /// Nanoseconds since 1970.
    pub at: u64,
}

impl Engine {
    /// Takes the engine: it is started if a failed test left it stopped, and cleaned.
    pub fn claim() -> Self {
        if super::cluster::is_wanted() {
            return Self {
                host: String::new(),
                cluster: Some(Cluster::claim()),
            };
        }
        let engine = Self {
            host: variable("AGENTYARD_TEST_DOCKER_HOST"),
            cluster: None,
        };
        engine.start();
        engine.clean();
        assert!(
            engine.ask(&["image", "inspect", "echo:1"]).is_some(),
            "the test images are missing: run tests/services/echo-image"
        );
        engine
    }

    /// The address, as `--docker-host` takes it.
    pub fn host(&self) -> &str {
        assert!(self.cluster.is_none(), "this test is for Docker");
        &self.host
    }

    /// The options of `serve` on this engine.
    pub fn arguments(&self, data: &Path) -> Vec<String> {
        match &self.cluster {
            Some(cluster) => cluster.arguments(data),
            None => ["--docker-host", &self.host].map(str::to_owned).to_vec(),
        }
    }

    /// The first numbers of agents' addresses.
    pub fn network(&self) -> &'static str {
        match &self.cluster {
            Some(_) => "10.244.",
            None => "10.88.",
        }
    }

    /// Path of the engine's socket.
    pub fn socket(&self) -> PathBuf {
        self.host.strip_prefix("unix://").unwrap().into()
    }

    /// Starts the engine, if it does not run, and lets it go on if it hangs.
    pub fn start(&self) {
        service("dockerd", &["thaw"]);
        service("dockerd", &["start"]);
    }

    /// Stops the engine in order, and its containers with it.
    pub fn stop(&self) {
        service("dockerd", &["stop"]);
    }

    /// Lets the engine hang until [`Engine::thaw`]: it takes calls and answers none.
    pub fn freeze(&self) {
        service("dockerd", &["freeze"]);
    }

    /// Lets a hanging engine go on.
    pub fn thaw(&self) {
        service("dockerd", &["thaw"]);
    }

    /// Ends the engine as a crash would.
    pub fn kill9(&self) {
        service("dockerd", &["kill9"]);
    }

    fn command(&self, arguments: &[&str]) -> Command {
        assert!(
            self.cluster.is_none(),
            "{arguments:?}: this test is for Docker"
        );
        let mut command = Command::new("docker");
        command
            .args(["-H", &self.host])
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    /// Runs a `docker` command; gives what it prints, or `None` when it fails.
    pub fn ask(&self, arguments: &[&str]) -> Option<String> {
        let output = self.command(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    }

    /// Returns true for a cluster: images are imported beforehand (`tests/services/cluster-images`), and starts take seconds.
    pub fn is_cluster(&self) -> bool {
        self.cluster.is_some()
    }

    /// The host by which agents find the service.
    pub fn service_host(&self) -> &'static str {
        match &self.cluster {
            Some(_) => "agentyard-agents",
            None => "10.88.0.1",
        }
    }

    /// Runs a command of an administrator of the engine's host, in Docker's words: `rm -f`, `stop`, `kill`, `exec` and
    /// `logs`. Returns its output, or `None` when it fails.
    pub fn try_by_hand(&self, arguments: &[&str]) -> Option<String> {
        match &self.cluster {
            Some(cluster) => cluster.by_hand(arguments),
            None => self.ask(arguments),
        }
    }

    /// The same of one that must succeed.
    #[track_caller]
    pub fn by_hand(&self, arguments: &[&str]) -> String {
        match &self.cluster {
            Some(cluster) => cluster
                .by_hand(arguments)
                .unwrap_or_else(|| panic!("{arguments:?} failed")),
            None => self.docker(arguments),
        }
    }

    /// Runs a `docker` command that must succeed.
    #[track_caller]
    pub fn docker(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(
            output.status.success(),
            "docker {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Every container whose name begins with `agentyard-`, or that carries an owner.
    pub fn ours(&self) -> Vec<Seen> {
        if let Some(cluster) = &self.cluster {
            return cluster.ours();
        }
        let lines = self.docker(&[
            "ps",
            "-a",
            "--no-trunc",
            "--format",
            &format!("{{{{.ID}}}} {{{{.Names}}}} {{{{.State}}}} {{{{.Label \"{LABEL_OWNER}\"}}}}"),
        ]);
        lines
            .lines()
            .filter_map(|line| {
                let mut words = line.split(' ').map(str::to_owned);
                let (id, name, state) = (words.next()?, words.next()?, words.next()?);
                let owned = words.next().is_some_and(|owner| !owner.is_empty());
                (owned || name.starts_with("agentyard-")).then_some(Seen { id, name, state })
            })
            .collect()
    }

    /// Every container of a user, whatever it is called; by the name's beginning, not by label.
    pub fn of(&self, user: &str) -> Vec<Seen> {
        let base = format!("agentyard-{user}");
        let mut all = self.ours();
        all.retain(|seen| seen.name == base || seen.name.starts_with(&format!("{base}.")));
        all
    }

    /// The one container of a user, which must run and have the right name.
    pub fn the_running(&self, user: &str) -> Seen {
        let all = self.of(user);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0].name, format!("agentyard-{user}"));
        assert_eq!(all[0].state, "running");
        all[0].clone()
    }

    /// `docker inspect` of one container.
    pub fn inspect(&self, container: &str) -> Value {
        if let Some(cluster) = &self.cluster {
            return cluster.inspect(container);
        }
        let text = self.docker(&["inspect", "--type", "container", container]);
        let list: Value = serde_json::from_str(&text).unwrap();
        list[0].clone()
    }

    /// The engine's clock.
    pub fn now(&self) -> String {
        if let Some(cluster) = &self.cluster {
            return cluster.now();
        }
        self.docker(&["info", "--format", "{{.SystemTime}}"])
    }

    /// What happened between two moments of the engine's clock.
    pub fn events(&self, since: &str, until: &str) -> Vec<Happened> {
        let text = self.docker(&[
            "events",
            "--since",
            since,
            "--until",
            until,
            "--format",
            "{{json .}}",
        ]);
        text.lines()
            .map(|line| {
                let event: Value = serde_json::from_str(line).unwrap();
                Happened {
                    kind: event["Type"].as_str().unwrap().to_owned(),
                    action: event["Action"].as_str().unwrap().to_owned(),
                    name: event["Actor"]["Attributes"]["name"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned(),
                    at: event["timeNano"].as_u64().unwrap(),
                }
            })
            .collect()
    }

    /// What happened to a user's containers since a moment.
    pub fn happened(&self, user: &str, since: &str) -> Vec<Happened> {
        let base = format!("agentyard-{user}");
        let mut events = match &self.cluster {
            Some(cluster) => cluster.happened(since),
            None => self.events(since, &self.now()),
        };
        events.retain(|event| event.kind == "container" && event.name.starts_with(&base));
        events
    }

    /// Removes everything of ours.
    fn clean(&self) {
        let ids: Vec<String> = self.ours().into_iter().map(|seen| seen.id).collect();
        if !ids.is_empty() {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            self.docker(&[&["rm", "-f", "-v"], ids.as_slice()].concat());
        }
        let networks = self.docker(&[
            "network",
            "ls",
            "-q",
            "--filter",
            &format!("label={LABEL_OWNER}"),
        ]);
        for network in networks.lines() {
            if self.ask(&["network", "rm", network]).is_none() {
                // The engine sometimes forgets to count an endpoint down ("has active endpoints",
                // although it lists none); only a restart corrects that.
                eprintln!("the engine is restarted: it cannot remove network {network}");
                self.stop();
                self.start();
                self.docker(&["network", "rm", network]);
            }
        }
        // One that a test made to stand in the way.
        self.ask(&["network", "rm", NETWORK]);
        forget_rules();
    }
}

/// Removes what services that were killed have left in the packet filter.
fn forget_rules() {
    let iptables = |arguments: &str| {
        let mut command = Command::new("iptables");
        command.args(["-w", "5"]).args(arguments.split(' '));
        let output = command.output();
        let output = output.expect("these tests need iptables: apt-get install iptables");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let listed = iptables("-S");
    let jump = |line: &&str| {
        let hooks = ["-A INPUT ", "-A FORWARD "];
        hooks.iter().any(|hook| line.starts_with(hook)) && line.contains(" -j AGENTYARD-")
    };
    for rule in listed.lines().filter(jump) {
        iptables(&rule.replacen("-A ", "-D ", 1));
    }
    for chain in listed.lines().filter_map(|line| line.strip_prefix("-N ")) {
        if chain.starts_with("AGENTYARD-") {
            iptables(&format!("-F {chain}"));
            iptables(&format!("-X {chain}"));
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.cluster.is_some() {
            return;
        }
        if std::thread::panicking() {
            // What follows must not end the test run itself, whatever state the engine is in.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                self.start();
                for seen in self.ours() {
                    eprintln!("left on the engine: {seen:?}");
                }
                self.clean();
            }));
        } else {
            self.start();
            self.clean();
        }
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} {HOW}"))
}

/// Runs one of `tests/services`.
fn service(script: &str, arguments: &[&str]) {
    let scripts = PathBuf::from(variable("AGENTYARD_TEST_SERVICES"));
    let output = Command::new(scripts.join(script))
        .args(arguments)
        .env(
            "AGENTYARD_SERVICES_DIR",
            variable("AGENTYARD_TEST_SERVICES_DIR"),
        )
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{script} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// How long the engine may take to be found again: the service asks every five seconds.
pub const FOUND_AGAIN: Duration = Duration::from_secs(30);
