//! What the README promises of a fresh clone: one command builds and serves, and prints what is needed to sign in.

use std::process::{Command, Stdio};

use crate::support::client::Target;
use crate::support::{Client, Engine, Stage, eventually, seconds};

#[tokio::test]
#[ignore = "builds the whole program: make test-fresh-clone"]
async fn engine_make_run_in_a_fresh_clone_serves_and_prints_address_and_password() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let clone = stage.path().join("clone");
    let source = env!("CARGO_MANIFEST_DIR");
    let cloned = Command::new("git")
        .args(["clone", "--quiet", source])
        .arg(&clone)
        .status();
    assert!(cloned.unwrap().success());
    let arguments = format!(
        "ARGS=--docker-host {} --listen 127.0.0.1:0 --adapter echo --set image.name=echo --set image.tag=1",
        engine.host()
    );
    let output = stage.path().join("printed");
    let mut command = Command::new("make");
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if ["CARGO", "MAKE", "MFLAGS", "NEXTEST", "RUST", "AGENTYARD_"]
            .iter()
            .any(|own| name.starts_with(own))
            && name != "CARGO_HOME"
            && name != "RUSTUP_HOME"
            && name != "RUSTUP_TOOLCHAIN"
        {
            command.env_remove(&*name);
        }
    }
    let make = command
        .arg("run")
        .arg(arguments)
        .current_dir(&clone)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&output).unwrap())
        .stderr(std::fs::File::create(stage.path().join("built")).unwrap());
    let mut make = Group::spawn(make);
    let printed = |name: &str| {
        let text = std::fs::read_to_string(&output).unwrap();
        let prefix = format!("{name}: ");
        text.lines()
            .find_map(|line| line.strip_prefix(&prefix))
            .map(str::to_owned)
    };
    let (address, _) = eventually("it serves", seconds(900), async || {
        if let Some(status) = make.0.try_wait().unwrap() {
            panic!(
                "{status}: {}",
                std::fs::read_to_string(stage.path().join("built")).unwrap()
            );
        }
        printed("address").ok_or_else(|| "no address yet".to_owned())
    })
    .await;
    let (password, _) = eventually("a password is printed", seconds(10), async || {
        printed("password").ok_or_else(|| "no password yet".to_owned())
    })
    .await;
    let address = address.strip_prefix("http://").unwrap().parse().unwrap();
    let client = Client::new(Target::Tcp(address));
    let admin = client.signed_in("admin", &password).await;
    admin.create_user("alice").await;
    engine.the_running("alice");
    assert!(clone.join("data/users/alice").is_dir());
}

/// A process with all that it started, ended together.
struct Group(std::process::Child);

impl Group {
    fn spawn(command: &mut Command) -> Self {
        use std::os::unix::process::CommandExt;
        Self(command.process_group(0).spawn().unwrap())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}
