//! The program under test as a child process.

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

use super::client::{Client, Target};
use super::{eventually, seconds};

const PROGRAM: &str = env!("CARGO_BIN_EXE_agentyard");
/// How long a start may take, on a busy machine and unoptimised.
const START: Duration = super::PATIENCE;

/// How to start the program.
#[derive(Clone)]
pub struct Launch {
    program: PathBuf,
    /// Another user of the host than the test's.
    user: Option<u32>,
    data: PathBuf,
    outputs: PathBuf,
    /// The superadmin's password, once it was printed.
    password: Arc<OnceLock<String>>,
    listen: String,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    elsewhere: bool,
    scheme: &'static str,
}

/// What a program left that ran to its end.
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    async fn of(running: impl Future<Output = std::io::Result<std::process::Output>>) -> Self {
        let output = tokio::time::timeout(START, running)
            .await
            .expect("it ends by itself")
            .unwrap();
        Self {
            status: output.status,
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Launch {
    /// On this data directory; what it prints goes to files below `outputs`.
    pub fn new(data: &Path, outputs: &Path, password: &Arc<OnceLock<String>>) -> Self {
        Self {
            program: PROGRAM.into(),
            user: None,
            data: data.to_owned(),
            outputs: outputs.to_owned(),
            password: Arc::clone(password),
            listen: "127.0.0.1:0".to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            elsewhere: false,
            scheme: "http",
        }
    }

    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// At this address instead of one that is free.
    pub fn listen(mut self, address: &str) -> Self {
        address.clone_into(&mut self.listen);
        self
    }

    pub fn args(mut self, arguments: &[&str]) -> Self {
        self.arguments
            .extend(arguments.iter().map(|&a| a.to_owned()));
        self
    }

    /// A configuration key's first value.
    pub fn set(self, key: &str, value: &str) -> Self {
        self.arg("--set").arg(format!("{key}={value}"))
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The service will speak TLS.
    pub fn tls(mut self, certificate: &Path, key: &Path) -> Self {
        self.scheme = "https";
        self.arg("--tls-cert")
            .arg(certificate.display().to_string())
            .arg("--tls-key")
            .arg(key.display().to_string())
    }

    /// Subcommands of another machine: they are given no data directory.
    pub fn elsewhere(mut self) -> Self {
        self.elsewhere = true;
        self
    }

    /// With the options of its environment alone, as a container is started.
    pub fn environment_only(mut self) -> Self {
        self.elsewhere = true;
        self.listen.clear();
        self
    }

    fn command(&self, subcommand: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        // Nothing of the caller's own settings may leak in.
        for (name, _) in std::env::vars_os() {
            if name == "RUST_LOG" || name.to_string_lossy().starts_with("AGENTYARD_") {
                command.env_remove(name);
            }
        }
        command.args(subcommand);
        if !self.elsewhere {
            command.arg("--data-dir").arg(&self.data);
        }
        command
            .args(&self.arguments)
            // Contexts of the user who runs the tests are not theirs.
            .env("XDG_CONFIG_HOME", &self.outputs)
            // Services of several tests run at once.
            .env("AGENTYARD_METRICS_LISTEN", "off")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null());
        command
    }

    /// As this user of the host, from a copy in a directory that the user may enter.
    pub fn user(mut self, uid: u32, directory: &Path) -> Self {
        let program = directory.join("agentyard");
        if !program.exists() && std::fs::hard_link(PROGRAM, &program).is_err() {
            std::fs::copy(PROGRAM, &program).unwrap();
        }
        self.program = program;
        self.user = Some(uid);
        self
    }

    /// Starts `serve` and waits until it listens.
    pub async fn start(self) -> Service {
        let mut service = self.spawn();
        service.listening().await;
        service
    }

    /// Starts `serve` and does not wait for anything.
    pub fn spawn(self) -> Service {
        let number = (0..)
            .find(|n| !self.outputs.join(format!("{n}.out")).exists())
            .unwrap();
        let stdout = self.outputs.join(format!("{number}.out"));
        let stderr = self.outputs.join(format!("{number}.err"));
        let listen: &[&str] = match self.listen.as_str() {
            "" => &["serve"],
            address => &["serve", "--listen", address],
        };
        let child = self
            .command(listen)
            .stdout(File::create(&stdout).unwrap())
            .stderr(File::create(&stderr).unwrap())
            .spawn()
            .unwrap();
        Service {
            child,
            launch: self,
            stdout,
            stderr,
            address: None,
        }
    }

    /// Begins a subcommand that goes on by itself; what it prints can be read meanwhile.
    pub fn begin(&self, subcommand: &[&str]) -> tokio::process::Child {
        let mut command = tokio::process::Command::from(self.command(subcommand));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true).spawn().unwrap()
    }

    /// Runs a subcommand to its end.
    pub async fn run(&self, subcommand: &[&str]) -> Finished {
        let command = self.command(subcommand);
        let mut command = tokio::process::Command::from(command);
        Finished::of(command.kill_on_drop(true).output()).await
    }

    /// Runs a subcommand to its end with this standard input.
    pub async fn run_with_input(&self, subcommand: &[&str], input: &str) -> Finished {
        let mut command = tokio::process::Command::from(self.command(subcommand));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).await.unwrap();
        drop(stdin);
        Finished::of(child.wait_with_output()).await
    }

    /// Runs a subcommand in a terminal where these lines are typed, one at each prompt. What the terminal shows counts as
    /// printed.
    pub async fn run_in_terminal(&self, subcommand: &[&str], lines: &[&str]) -> Finished {
        let inner = self.command(subcommand);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/terminal.py");
        let mut command = tokio::process::Command::new("python3");
        command
            .arg(script)
            .arg(inner.get_program())
            .args(inner.get_args());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut typed = child.stdin.take().unwrap();
        let text = lines.join("\n");
        typed.write_all(text.as_bytes()).await.unwrap();
        drop(typed);
        Finished::of(child.wait_with_output()).await
    }
}

/// A running `serve`. Killed when dropped; when the test fails, the end of its log is shown.
pub struct Service {
    child: Child,
    launch: Launch,
    stdout: PathBuf,
    stderr: PathBuf,
    address: Option<std::net::SocketAddr>,
}

impl Service {
    /// Waits until it listens; the superadmin has this password since `init`.
    pub async fn after_init(mut self, password: &str) -> Self {
        self.launch.password.set(password.to_owned()).unwrap();
        self.listening().await;
        self
    }

    /// What it printed so far.
    pub fn stdout(&self) -> String {
        std::fs::read_to_string(&self.stdout).unwrap()
    }

    /// What it logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.stderr).unwrap()
    }

    /// The value of a printed line `name: value`.
    pub fn printed(&self, name: &str) -> Option<String> {
        let stdout = self.stdout();
        // Only whole lines: the last may still be under way.
        let whole = stdout.rfind('\n').map_or("", |end| &stdout[..end]);
        let prefix = format!("{name}: ");
        whole.lines().find_map(|line| {
            let plain = line.strip_prefix(&prefix).map(str::to_owned);
            // With JSON logs these lines are objects, too.
            plain.or_else(|| {
                let fact: serde_json::Value = serde_json::from_str(line).ok()?;
                fact[name].as_str().map(str::to_owned)
            })
        })
    }

    async fn listening(&mut self) {
        let scheme = format!("{}://", self.launch.scheme);
        loop {
            if let Some(address) = self.printed("address") {
                let address = address
                    .strip_prefix(&scheme)
                    .unwrap_or_else(|| panic!("an address with {scheme}: {address}"));
                self.address = Some(address.parse().unwrap());
                break;
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the service ended at its start: {status}");
            }
            sleep(Duration::from_millis(20)).await;
        }
        if self.launch.password.get().is_none() {
            let (password, _) = eventually("a password is printed", seconds(10), async || {
                self.printed("password").ok_or_else(|| self.stdout())
            })
            .await;
            self.launch.password.set(password).unwrap();
        }
    }

    /// Where it listens.
    pub fn address(&self) -> std::net::SocketAddr {
        self.address.expect("it was waited for")
    }

    /// How much memory it uses, in bytes.
    pub fn memory(&self) -> u64 {
        self.memory_line("VmRSS:")
    }

    /// The same without the pages of the program itself, which the system takes back and reads again as it likes.
    #[allow(dead_code)] // For benchmarks.
    pub fn own_memory(&self) -> u64 {
        self.memory_line("RssAnon:")
    }

    /// The most memory that it has used, in bytes, since [`Service::forget_peak`].
    pub fn peak_memory(&self) -> u64 {
        self.memory_line("VmHWM:")
    }

    /// The peak is counted anew from here (proc(5)).
    pub fn forget_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
    }

    fn memory_line(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
        kilobytes.unwrap().parse::<u64>().unwrap() * 1024
    }

    /// How much time of processors it has used.
    #[allow(dead_code)] // For benchmarks.
    pub fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // Behind the name, which may contain anything, stand the state and ten numbers before the two times (proc(5)).
        let (_, rest) = stat.rsplit_once(')').unwrap();
        let ticks = rest.split_whitespace().skip(11).take(2);
        // Hundredths of a second, on all machines that are in use.
        Duration::from_millis(
            10 * ticks
                .map(|ticks| ticks.parse::<u64>().unwrap())
                .sum::<u64>(),
        )
    }

    /// What each of its open handles leads to, as proc(5) shows it.
    pub fn handles(&self) -> Vec<String> {
        let entries = std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap();
        let links = entries.map(|entry| std::fs::read_link(entry.unwrap().path()));
        // One may be closed meanwhile.
        links
            .filter_map(|link| Some(link.ok()?.to_string_lossy().into_owned()))
            .collect()
    }

    /// How many connections to its address it has open.
    pub fn connections(&self) -> usize {
        let table = std::fs::read_to_string(format!("/proc/{}/net/tcp", self.child.id())).unwrap();
        let port = format!(":{:04X}", self.address().port());
        let open = |line: &&str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // Whoever listens has no peer; what belongs to no process any more has no inode.
            fields[1].ends_with(&port) && fields[3] != "0A" && fields[9] != "0"
        };
        table.lines().skip(1).filter(open).count()
    }

    /// A client of the admin socket.
    pub fn socket(&self) -> Client {
        Client::new(Target::Unix(self.launch.data.join("admin.sock")))
    }

    /// A client that is not signed in.
    pub fn client(&self) -> Client {
        Client::new(Target::Tcp(self.address()))
    }

    /// A signed-in superadmin.
    pub async fn admin(&self) -> Client {
        self.client().signed_in("admin", self.password()).await
    }

    /// The password of `admin`.
    pub fn password(&self) -> &str {
        self.launch.password.get().expect("was printed")
    }

    /// Ends it as a crash would.
    pub async fn kill9(mut self) {
        self.child.kill().unwrap();
        self.ended().await;
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Asks it to read its certificate and settings again.
    pub fn hang_up(&self) {
        self.signal(rustix::process::Signal::HUP);
    }

    /// Stops it, and waits until all of its threads stand still: on a busy machine they run on for a while. Nothing ends.
    pub fn freeze(&self) {
        self.signal(rustix::process::Signal::STOP);
        let threads = format!("/proc/{}/task", self.child.id());
        let is_running = |thread: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(thread.path().join("stat"));
            stat.is_ok_and(|stat| !stat.contains(") T "))
        };
        for _ in 0..1000 {
            let mut threads = std::fs::read_dir(&threads).unwrap().flatten();
            if !threads.any(is_running) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the service runs on after SIGSTOP");
    }

    /// It goes on where it was frozen.
    pub fn thaw(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until it has ended.
    pub async fn ended(&mut self) -> ExitStatus {
        self.ended_within(START).await
    }

    /// Waits until it has ended.
    pub async fn ended_within(&mut self, limit: Duration) -> ExitStatus {
        let child = &mut self.child;
        let ended = eventually("the service has ended", limit, async || {
            child
                .try_wait()
                .unwrap()
                .ok_or_else(|| "it runs".to_owned())
        });
        ended.await.0
    }

    /// Waits until it was ended by a fault point.
    pub async fn died_of_fault(&mut self, point: &str) {
        let child = &mut self.child;
        let what = format!("{point} is passed");
        let ended = eventually(&what, seconds(45), async || {
            child
                .try_wait()
                .unwrap()
                .ok_or_else(|| "it runs".to_owned())
        });
        let status = ended.await.0;
        assert_eq!(status.signal(), Some(9), "{point}: {status}");
    }

    /// Asks for `count` more full passes of a reconciler and waits until each is over: no key waits for a worker, and
    /// none is being reconciled.
    pub async fn passes(&self, admin: &Client, reconciler: &str, count: usize) {
        for _ in 0..count {
            let seen = admin.last_resync(reconciler).await;
            let form = [("reconciler", reconciler)];
            let asked = admin.post("/api/admin/reconcile/retry", &form).await;
            asked.expect(200);
            another_pass(admin, reconciler, &seen).await;
            let over = eventually("the end of the full pass", seconds(60), async || {
                let now = admin.reconciler(reconciler).await;
                match (&now["queue_depth"], &now["in_flight"]) {
                    (ready, busy) if *ready == 0 && *busy == 0 => Ok(()),
                    (ready, busy) => Err(format!("{ready} wait, {busy} under way")),
                }
            });
            over.await;
        }
    }

    /// Waits until `count` more full passes of a reconciler were begun, without asking for any: what is
    /// asked for is recorded.
    pub async fn resyncs(&self, admin: &Client, reconciler: &str, count: usize) {
        let mut seen = admin.last_resync(reconciler).await;
        for _ in 0..count {
            seen = another_pass(admin, reconciler, &seen).await;
        }
    }
}

/// Waits until a full pass was begun after the one that began at `seen`.
async fn another_pass(admin: &Client, reconciler: &str, seen: &str) -> String {
    let begun = eventually("another full pass", seconds(60), async || {
        let at = admin.last_resync(reconciler).await;
        if at == seen { Err(at) } else { Ok(at) }
    });
    begun.await.0
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(&self.stderr).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let tail = &lines[lines.len().saturating_sub(80)..];
            eprintln!("--- end of the service's log ---\n{}\n---", tail.join("\n"));
        }
    }
}
