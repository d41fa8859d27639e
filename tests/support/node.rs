//! What comes from npm: a browser in somebody's hands, and an identity provider.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// A script beside the services; it ends when it is dropped.
struct Script {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Script {
    async fn start(name: &str, environment: &[(&str, &str)]) -> Self {
        Self::start_with(name, &[], environment).await.0
    }

    /// Starts a script with arguments; returns its first line, too.
    async fn start_with(
        name: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> (Self, String) {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/services/node");
        assert!(
            folder.join("node_modules/oidc-provider").is_dir(),
            "npm packages are missing; install them with: tests/services/up"
        );
        let mut child = Command::new("node")
            .arg(folder.join(name))
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("node is not installed; install it with: apt-get install -y nodejs npm");
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut script = Self {
            child,
            stdin,
            stdout,
        };
        // The first line says that it is ready.
        let line = script.line().await;
        (script, line)
    }

    async fn line(&mut self) -> String {
        let line = timeout(super::PATIENCE, self.stdout.next_line()).await;
        line.expect("a script answers").unwrap().unwrap()
    }
}

/// Chromium, as a person uses it.
pub struct Browser(Script);

impl Browser {
    pub async fn open() -> Self {
        assert!(
            Path::new("/usr/bin/chromium").exists(),
            "Chromium is not installed; install it with: apt-get install -y chromium"
        );
        Self(Script::start("browser.mjs", &[]).await)
    }

    /// Opens Debian's Firefox, which knows plain selectors only.
    pub async fn open_firefox() -> Self {
        assert!(
            Path::new("/usr/bin/firefox-esr").exists(),
            "Firefox is not installed; install it with: tests/services/install firefox"
        );
        Self(Script::start("firefox.mjs", &[]).await)
    }

    /// Does one thing, and says what came of it.
    pub async fn does(&mut self, what: &str, with: impl Into<Value>) -> Value {
        let line = json!({ what: with.into() }).to_string() + "\n";
        self.0.stdin.write_all(line.as_bytes()).await.unwrap();
        let answer: Value = serde_json::from_str(&self.0.line().await).unwrap();
        assert!(answer.get("error").is_none(), "{what}: {answer}");
        answer
    }

    pub async fn goto(&mut self, url: &str) -> (u64, String) {
        let answer = self.does("goto", url).await;
        let status = answer["status"].as_u64().unwrap();
        (status, answer["url"].as_str().unwrap().to_owned())
    }

    pub async fn text(&mut self, selector: &str) -> String {
        let answer = self.does("text", selector).await;
        answer["text"].as_str().unwrap().to_owned()
    }

    pub async fn fill(&mut self, selector: &str, text: &str) {
        self.does("fill", json!([selector, text])).await;
    }

    /// The address that a click leads to.
    pub async fn click(&mut self, selector: &str) -> String {
        let answer = self.does("click", selector).await;
        answer["url"].as_str().unwrap().to_owned()
    }
}

/// A provider that people have passwords at.
pub struct IdentityProvider {
    pub port: u16,
    redirect: String,
    people: Value,
    running: Option<Script>,
}

impl IdentityProvider {
    /// `people`: claims by name, `password` among them.
    pub async fn start(redirect: &str, people: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut provider = Self {
            port: listener.local_addr().unwrap().port(),
            redirect: redirect.to_owned(),
            people,
            running: None,
        };
        drop(listener);
        provider.restart().await;
        provider
    }

    pub fn issuer(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Comes back with new keys.
    pub async fn restart(&mut self) {
        self.stop().await;
        let (port, people) = (self.port.to_string(), self.people.to_string());
        let environment = [
            ("PORT", &*port),
            ("REDIRECT", &self.redirect),
            ("PEOPLE", &people),
        ];
        self.running = Some(Script::start("provider.mjs", &environment).await);
    }

    pub async fn stop(&mut self) {
        if let Some(mut script) = self.running.take() {
            script.child.kill().await.unwrap();
        }
    }

    /// Stops, or continues, without ending: `STOP`, `CONT`.
    pub fn signal(&self, signal: &str) {
        let pid = self.running.as_ref().and_then(|script| script.child.id());
        let status = std::process::Command::new("kill")
            .args([format!("-{signal}"), pid.unwrap().to_string()])
            .status();
        assert!(status.unwrap().success());
    }
}

/// A scripted server of models, with the interface of OpenAI.
pub struct Models {
    _script: Script,
    port: u16,
}

impl Models {
    /// Key that it takes.
    pub const KEY: &str = "sk-test-0123456789abcdef";

    pub async fn start() -> Self {
        Self::with_scripts(&[]).await
    }

    /// Starts one that answers texts by scripts: `text=script`.
    pub async fn with_scripts(scripts: &[&str]) -> Self {
        let mut arguments = vec!["--listen", "0.0.0.0:0", "--key", Self::KEY];
        for script in scripts {
            arguments.extend(["--script", script]);
        }
        let (script, line) = Script::start_with("model.mjs", &arguments, &[]).await;
        let url: url::Url = line.parse().unwrap();
        Self {
            _script: script,
            port: url.port().unwrap(),
        }
    }

    /// Its address as agents reach it.
    pub fn address(&self) -> String {
        let host = match super::cluster::is_wanted() {
            true => super::cluster::BESIDE,
            false => "10.88.0.1",
        };
        format!("http://{host}:{}/v1", self.port)
    }
}
