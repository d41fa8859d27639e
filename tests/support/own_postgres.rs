//! A PostgreSQL server of one test, which may be stopped, frozen and started again.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

/// A server on a port of its own; ended with this value.
pub struct OwnPostgres {
    directory: tempfile::TempDir,
    programs: PathBuf,
    port: u16,
}

/// What a program printed; it must succeed.
fn run(program: &mut Command) -> String {
    let output = program.output().unwrap();
    assert!(output.status.success(), "{program:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl OwnPostgres {
    /// Makes a server and starts it.
    pub fn start_new() -> Self {
        let services = std::env::var("AGENTYARD_TEST_SERVICES").expect(
            "no services for this test: start them with `make services-up` and run the tests with `make run-tests FILTER=…`",
        );
        let find = format!(". '{services}/lib.sh' && postgres_bin");
        let programs = run(Command::new("bash").args(["-c", &find])).into();
        let directory = tempfile::Builder::new().prefix("ay-pg-").tempdir().unwrap();
        run(Command::new("chown").arg("postgres:").arg(directory.path()));
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let server = Self {
            directory,
            programs,
            port,
        };
        run(server
            .program("initdb")
            .args(["-U", "app", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"])
            .arg("--no-sync"));
        server.start();
        server
    }

    /// A program of PostgreSQL's, as its user, on this server's data.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args([
                "--reuid=postgres",
                "--regid=postgres",
                "--clear-groups",
                "--",
            ])
            .arg(self.programs.join(name))
            .arg("-D")
            .arg(self.directory.path().join("data"))
            .current_dir(self.directory.path())
            .env("HOME", self.directory.path());
        command
    }

    /// The address, as `--database-url` takes it.
    pub fn url(&self) -> String {
        format!("postgres://app@127.0.0.1:{}/postgres", self.port)
    }

    /// A pooler in front of it, in this mode.
    pub fn pooler(&self, mode: &str) -> Pooler {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let file = self.directory.path().join(format!("pooler-{mode}.ini"));
        let settings = format!(
            "[databases]\npostgres = host=127.0.0.1 port={} user=app\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\n\
             ignore_startup_parameters = extra_float_digits\n",
            self.port
        );
        std::fs::write(&file, settings).unwrap();
        let process = Command::new("pgbouncer")
            .args(["-q", "-u", "postgres"])
            .arg(file)
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("this test needs pgbouncer: apt-get install pgbouncer");
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Pooler { process, port }
    }

    /// Starts it; returns when it takes connections.
    pub fn start(&self) {
        let place = self.directory.path().display();
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories={place}",
            self.port
        );
        let log = self.directory.path().join("log");
        let status = self
            .program("pg_ctl")
            .args(["-w", "-o", &options, "-l"])
            .arg(log)
            .arg("start")
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "{status}");
    }

    /// Stops it: `fast` ends all connections, `immediate` is a crash.
    pub fn stop(&self, how: &str) {
        run(self.program("pg_ctl").args(["-w", "-m", how, "stop"]));
    }

    fn signal(&self, signal: &str) {
        let pidfile = self.directory.path().join("data/postmaster.pid");
        let text = std::fs::read_to_string(pidfile).unwrap();
        let server = text.lines().next().unwrap();
        // First the one that makes the others.
        run(Command::new("kill").args([signal, server]));
        let children = run(Command::new("pgrep").args(["-P", server]));
        // One of them may have ended by itself by now.
        let sent = Command::new("kill")
            .arg(signal)
            .args(children.lines())
            .output();
        sent.unwrap();
    }

    /// Nothing of it runs any more, and nothing ends.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// It goes on where it was frozen.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }
}

impl Drop for OwnPostgres {
    fn drop(&mut self) {
        let pidfile = self.directory.path().join("data/postmaster.pid");
        if pidfile.exists() {
            self.thaw();
            let _ = self
                .program("pg_ctl")
                .args(["-w", "-m", "immediate", "stop"])
                .output();
        }
    }
}

/// PgBouncer in front of a server; ended with this value.
pub struct Pooler {
    process: std::process::Child,
    port: u16,
}

impl Pooler {
    /// The address, as `--database-url` takes it.
    pub fn url(&self) -> String {
        format!("postgres://app@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
