//! The command line on another machine than the server's: over TLS, with a session or an API token.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncBufReadExt, BufReader};

use crate::support::service::{Finished, Launch};
use crate::support::{Service, Stage, seconds};

/// A certificate for `localhost`, and its key.
pub(super) struct Certified {
    pub(super) certificate: PathBuf,
    key: PathBuf,
}

impl Certified {
    pub(super) fn new(stage: &Stage) -> Self {
        let [certificate, key] = ["server.crt", "server.key"].map(|name| stage.path().join(name));
        let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&certificate, issued.cert.pem()).unwrap();
        std::fs::write(&key, issued.signing_key.serialize_pem()).unwrap();
        close(&key);
        Self { certificate, key }
    }

    pub(super) fn serve(&self, launch: Launch) -> Launch {
        launch.tls(&self.certificate, &self.key)
    }
}

/// A service that speaks TLS, and a command line elsewhere.
struct Remote {
    stage: Stage,
    service: Service,
    ca: PathBuf,
}

impl Remote {
    async fn new() -> Self {
        let stage = Stage::new();
        let certified = Certified::new(&stage);
        let service = certified.serve(stage.alone()).start().await;
        Self {
            stage,
            service,
            ca: certified.certificate,
        }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}", self.service.address().port())
    }

    fn client(&self) -> Launch {
        self.stage.command().elsewhere()
    }

    /// Runs a command line elsewhere; its exit code must be this.
    async fn ends(&self, line: &str, code: i32) -> Finished {
        finished(&self.client(), line, code).await
    }

    /// Runs a command line on the server's machine.
    async fn on_machine(&self, line: &str) -> Finished {
        finished(&self.stage.command(), line, 0).await
    }

    async fn login(&self, arguments: &[&str], input: &str) -> Finished {
        let (url, ca) = (self.url(), self.ca.display().to_string());
        let line = [&["login", &url, "--ca-file", &ca], arguments].concat();
        self.client().run_with_input(&line, input).await
    }
}

async fn finished(launch: &Launch, line: &str, code: i32) -> Finished {
    let words: Vec<&str> = line.split_whitespace().collect();
    let finished = launch.run(&words).await;
    assert_eq!(
        finished.status.code(),
        Some(code),
        "{line}\n{}{}",
        finished.stdout,
        finished.stderr
    );
    finished
}

pub(super) fn close(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn superadmin_works_from_another_machine_until_the_logout() {
    let remote = Remote::new().await;
    let password = remote.stage.password().to_owned();
    let wrong = remote.login(&["--username", "admin"], "wrong").await;
    assert_eq!(wrong.status.code(), Some(1), "{}", wrong.stderr);
    assert!(
        wrong.stderr.contains("wrong name or password"),
        "{}",
        wrong.stderr
    );
    // Without its authority the server is not trusted.
    let line = ["login", &remote.url(), "--username", "admin"];
    let untrusted = remote.client().run_with_input(&line, &password).await;
    assert_eq!(untrusted.status.code(), Some(69), "{}", untrusted.stderr);
    assert!(
        untrusted.stderr.contains("--ca-file"),
        "{}",
        untrusted.stderr
    );

    let input = format!("{password}\n");
    let signed_in = remote.login(&["--username", "admin"], &input).await;
    assert!(signed_in.status.success(), "{}", signed_in.stderr);
    assert!(signed_in.stdout.contains("context localhost is current"));
    let dir = remote.stage.path().join("outputs/agentyard");
    let file = dir.join("localhost.json");
    assert_eq!((mode(&dir), mode(&file)), (0o700, 0o600));
    assert!(!std::fs::read_to_string(&file).unwrap().contains(&password));

    remote.ends("group create team", 0).await;
    let groups = remote.ends("group list -o name", 0).await;
    assert_eq!(groups.stdout, "group/team\n");
    remote.ends("status", 69).await;
    let contexts = remote.ends("context list --no-headers", 0).await;
    let current = contexts.stdout.lines().find(|line| line.contains("yes"));
    assert!(current.unwrap().contains("admin"), "{}", contexts.stdout);
    for command in ["reset-password admin --random", "archive list"] {
        let refused = remote.ends(command, 2).await;
        assert!(
            refused.stderr.contains("server's machine"),
            "{}",
            refused.stderr
        );
    }
    let refused = remote.ends("serve --context localhost", 2).await;
    assert!(
        refused.stderr.contains("server's machine"),
        "{}",
        refused.stderr
    );
    // Flags that name this machine's server win over the current context.
    remote.on_machine("group list").await;

    // The server ends the session: the next command says what to do.
    let admin = remote.service.socket();
    let form = [("username", "admin")];
    admin
        .post("/api/admin/users/sessions/revoke", &form)
        .await
        .expect(200);
    let ended = remote.ends("group list", 1).await;
    assert!(
        ended.stderr.contains("agentyard login https://localhost"),
        "{}",
        ended.stderr
    );

    let again = remote.login(&["--username", "admin"], &input).await;
    assert!(again.status.success(), "{}", again.stderr);
    let stored = std::fs::read_to_string(&file).unwrap();
    remote.ends("logout", 0).await;
    assert!(!file.exists());
    // The session is over on the server, too.
    std::fs::write(&file, stored).unwrap();
    close(&file);
    let ended = remote.ends("group list --context localhost", 1).await;
    assert!(ended.stderr.contains("has ended"), "{}", ended.stderr);
}

#[tokio::test]
async fn api_token_works_until_it_is_revoked() {
    let remote = Remote::new().await;
    let create = "api-token create ci --role admin --expires 1d";
    let created = remote.on_machine(create).await;
    let token = created.stdout.trim();
    assert!(token.starts_with("agy_api_") && !created.stderr.contains(token));
    let refused = remote.login(&["--token", token], "").await;
    assert_eq!(refused.status.code(), Some(2), "never in a process list");
    assert!(!refused.stderr.contains(token));
    let signed_in = remote
        .login(&["--token", "-", "--name", "lab"], &created.stdout)
        .await;
    assert!(signed_in.status.success(), "{}", signed_in.stderr);
    remote.ends("group create team", 0).await;
    let refused = remote.ends("api-token list", 1).await;
    assert!(
        refused.stderr.contains("no API token may do this"),
        "{}",
        refused.stderr
    );

    // A script needs no context.
    let file = remote.stage.path().join("reader.token");
    let reader = remote
        .on_machine("api-token create reader --role read")
        .await;
    std::fs::write(&file, &reader.stdout).unwrap();
    let script = |launch: Launch| {
        launch
            .env("AGENTYARD_URL", &remote.url())
            .env("AGENTYARD_TOKEN_FILE", &file.display().to_string())
            .env("AGENTYARD_CA_FILE", &remote.ca.display().to_string())
    };
    let script = script(remote.client());
    let open = finished(&script, "group list", 1).await;
    assert!(open.stderr.contains("chmod 600"), "{}", open.stderr);
    close(&file);
    let groups = finished(&script, "group list -o name", 0).await;
    assert_eq!(groups.stdout, "group/team\n");
    let refused = finished(&script, "group delete team", 1).await;
    assert!(refused.stderr.contains("role admin"), "{}", refused.stderr);

    // Streams of the token end with it.
    let mut watching = script.begin(&["get", "objects", "--watch"]);
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    while !lines
        .next_line()
        .await
        .unwrap()
        .unwrap()
        .contains("engine/")
    {}
    remote.on_machine("api-token revoke reader").await;
    let ended = tokio::time::timeout(seconds(25), watching.wait_with_output());
    let ended = ended.await.expect("its streams end within 15 s").unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert!(
        !ended.status.success() && stderr.contains("revoked"),
        "{stderr}"
    );

    let audit = remote.on_machine("audit list -o json").await;
    assert!(
        audit.stdout.contains("\"actor\": \"token:ci\""),
        "{}",
        audit.stdout
    );
    assert!(!audit.stdout.contains(token));
    remote.ends("logout", 0).await;
}
