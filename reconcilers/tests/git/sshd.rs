//! OpenSSH's own server on a port of its own, for whoever runs the test.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The sentence that tells how to get the server.
const HOW: &str = "sshd is not installed: this test needs OpenSSH's server. Install it with: apt-get install -y openssh-server openssh-client";

/// A server; it ends when it is dropped.
pub struct Sshd {
    pub port: u16,
    /// A private key that it lets in.
    pub key: String,
    /// Who may log in.
    pub user: String,
    directory: tempfile::TempDir,
    child: Option<Child>,
}

fn program() -> PathBuf {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(["/usr/sbin", "/usr/local/sbin"]);
    let mut all = folders.map(|folder| Path::new(folder).join("sshd"));
    // It starts itself again for each connection, by this path.
    all.find(|path| path.is_absolute() && path.exists())
        .expect(HOW)
}

fn keygen(path: &Path, more: &[&str]) {
    let mut command = Command::new("ssh-keygen");
    let output = command
        .args(["-q", "-t", "ed25519", "-f"])
        .arg(path)
        .args(more)
        .output()
        .expect(HOW);
    assert!(output.status.success(), "{output:?}");
}

impl Sshd {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        keygen(&at("host"), &["-N", ""]);
        keygen(&at("client"), &["-N", ""]);
        std::fs::copy(at("client.pub"), at("authorized")).unwrap();
        let key = std::fs::read_to_string(at("client")).unwrap();
        let user = Command::new("id").arg("-un").output().unwrap();
        let user = String::from_utf8(user.stdout).unwrap().trim().to_owned();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {0}/host\nPidFile none\nAuthorizedKeysFile {0}/authorized\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n",
            directory.path().display()
        );
        std::fs::write(at("config"), config).unwrap();
        let mut sshd = Self {
            port,
            key,
            user,
            directory,
            child: None,
        };
        sshd.start();
        sshd
    }

    fn start(&mut self) {
        // Root's server wants a place without anything in it.
        let _ = std::fs::create_dir_all("/run/sshd");
        let mut command = Command::new(program());
        command
            .args(["-D", "-e", "-f"])
            .arg(self.directory.path().join("config"));
        let child = command
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.child = Some(child);
        for _ in 0..200 {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("sshd has not started");
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The same server with another host key.
    pub fn change_key(&mut self) {
        self.stop();
        let host = self.directory.path().join("host");
        std::fs::remove_file(&host).unwrap();
        keygen(&host, &["-N", ""]);
        self.start();
    }

    /// The public key of the host, without a name.
    pub fn host_key(&self) -> String {
        let text = std::fs::read_to_string(self.directory.path().join("host.pub")).unwrap();
        text.split_whitespace()
            .take(2)
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// A key that it does not let in; with a passphrase, one that cannot even be read.
    pub fn other_key(&self, passphrase: &str) -> String {
        let path = self
            .directory
            .path()
            .join(format!("other{}", passphrase.len()));
        keygen(&path, &["-N", passphrase]);
        std::fs::read_to_string(path).unwrap()
    }

    /// The address of a repository.
    pub fn url(&self, path: &Path) -> String {
        format!(
            "ssh://{}@127.0.0.1:{}{}",
            self.user,
            self.port,
            path.display()
        )
    }

    /// Its process.
    pub fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(self.child.as_ref().unwrap())
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.stop();
    }
}
