//! One test's place: a data directory of its own, and what it prints.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::service::Launch;
use super::{Engine, cluster};

/// The name of the echo agent's image on the test engine.
pub const IMAGE: &str = "echo";

pub struct Stage {
    directory: tempfile::TempDir,
    password: Arc<OnceLock<String>>,
}

impl Stage {
    pub fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("ay-").tempdir().unwrap();
        let outputs = directory.path().join("outputs");
        std::fs::create_dir(&outputs).unwrap();
        if cluster::is_wanted() {
            for place in [directory.path(), &outputs] {
                std::os::unix::fs::chown(place, Some(cluster::USER), Some(cluster::USER)).unwrap();
            }
        }
        Self {
            directory,
            password: Arc::default(),
        }
    }

    /// A directory for whatever the test needs.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The service's data directory. Nobody has made it yet.
    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// The superadmin's password, if it was printed already.
    pub fn password(&self) -> &str {
        self.password.get().expect("was printed")
    }

    fn launch(&self) -> Launch {
        let outputs = self.path().join("outputs");
        let launch = Launch::new(&self.data(), &outputs, &self.password);
        match cluster::is_wanted() {
            true => launch.user(cluster::USER, self.path()),
            false => launch,
        }
    }

    /// A subcommand on the data directory.
    pub fn command(&self) -> Launch {
        self.launch()
    }

    /// `serve` without an engine.
    pub fn alone(&self) -> Launch {
        let nowhere = self.path().join("no-engine.sock");
        self.launch()
            .arg("--docker-host")
            .arg(format!("unix://{}", nowhere.display()))
    }

    /// `serve` on the test engine, with the echo image and a short resync.
    pub fn serve(&self, engine: &Engine) -> Launch {
        self.serve_with(engine, "1")
    }

    /// The same on a Docker Engine at another address.
    pub fn serve_at(&self, host: &str) -> Launch {
        self.set_up(&["--docker-host".to_owned(), host.to_owned()], "1")
    }

    /// The same with another tag of the echo image.
    pub fn serve_with(&self, engine: &Engine, tag: &str) -> Launch {
        self.set_up(&engine.arguments(&self.data()), tag)
    }

    fn set_up(&self, engine: &[String], tag: &str) -> Launch {
        let launch = engine.iter().fold(self.launch(), Launch::arg);
        launch
            .set("image.name", IMAGE)
            .set("image.tag", tag)
            .set("image.pull_policy", "never")
            // Replaced containers go at once, but in the tests of what keeps them.
            .set("container.min_ready", "0")
            // What happens is noticed when it happens, not at the next full pass.
            .env("AGENTYARD_RESYNC", "1h")
    }

    /// Names of the archived directories of a user.
    pub fn archives(&self, user: &str) -> Vec<PathBuf> {
        let prefix = format!("{user}-");
        let Ok(entries) = std::fs::read_dir(self.data().join("archive")) else {
            return Vec::new();
        };
        entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                path.file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
            })
            .collect()
    }
}
