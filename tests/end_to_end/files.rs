//! Workspace files over a real connection: what comes in and out is whole, and what does not arrive leaves nothing.

mod disk;
mod names;
mod sent;
mod transfers;
mod uploads;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::support::client::Answer;
use crate::support::{Client, Service, Stage, eventually, seconds, until};

/// A service without an engine: workspaces are made all the same.
struct Yard<'a> {
    stage: &'a Stage,
    service: Service,
    admin: Client,
}

impl<'a> Yard<'a> {
    async fn open(stage: &'a Stage) -> Self {
        let service = stage
            .alone()
            .set("container.autostart", "false")
            .start()
            .await;
        let admin = service.admin().await;
        Self {
            stage,
            service,
            admin,
        }
    }

    /// A new user, signed in, whose workspace is there.
    async fn person(&self, name: &str) -> Person {
        let form = [("username", name), ("wait", "0")];
        let answer = self.admin.post("/api/admin/users/create", &form).await;
        let password = answer.expect(202)["password"].as_str().unwrap().to_owned();
        let home = self.stage.data().join("users").join(name);
        let workspace = home.join(".agent/workspace");
        until("the workspace is made", seconds(30), async || {
            workspace.is_dir()
        })
        .await;
        Person {
            browser: self.service.client().signed_in(name, &password).await,
            password,
            address: self.service.address(),
            home,
            workspace,
        }
    }

    /// Waits until nothing is open that a request opened: a connection, or a file of a user, with a name or without one.
    async fn holds_nothing(&self) {
        let users = format!("{}/", self.stage.data().join("users").display());
        let opened = |handle: &String| {
            let rest = handle.strip_prefix(&users);
            // That of all users begins with a dot.
            rest.is_some_and(|rest| !rest.starts_with('.')) || handle.ends_with(" (deleted)")
        };
        eventually("what requests opened is closed", seconds(20), async || {
            let handles = self.service.handles().into_iter();
            let files: Vec<_> = handles.filter(opened).collect();
            match (files.is_empty(), self.service.connections()) {
                (true, 0) => Ok(()),
                (_, connections) => Err(format!("{connections} connections, {files:?}")),
            }
        })
        .await;
    }
}

/// A user in a browser.
struct Person {
    browser: Client,
    password: String,
    address: SocketAddr,
    home: PathBuf,
    workspace: PathBuf,
}

impl Person {
    /// The names at the top of the workspace, as the service lists them.
    async fn names(&self) -> BTreeSet<String> {
        let listed = self.browser.get("/api/files?page_size=200").await;
        let listed = listed.expect(200);
        let entries = listed["entries"].as_array().unwrap().iter();
        entries
            .map(|entry| {
                assert_eq!(entry["rel_path"], entry["name"], "{entry}");
                entry["name"].as_str().unwrap().to_owned()
            })
            .collect()
    }

    async fn download(&self, name: &str) -> Answer {
        self.browser.get(&download_path(name)).await
    }

    async fn delete(&self, name: &str) -> Value {
        let form = [("path", name), ("permanent", "1")];
        let deleted = self.browser.post("/api/files/delete", &form).await;
        deleted.expect(200)
    }

    /// Everything in the user's directory on the disk, hidden or not.
    fn on_disk(&self) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        collect(&self.home, &mut found);
        found
    }
}

fn collect(directory: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), found);
        }
        found.insert(entry.path());
    }
}

fn download_path(name: &str) -> String {
    let path = utf8_percent_encode(name, NON_ALPHANUMERIC);
    format!("/api/files/download?path={path}")
}
