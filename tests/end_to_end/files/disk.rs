//! The disk of the workspaces is full.

use std::path::Path;

use serde_json::Value;

use super::sent::{Announced, MIB, Sent, content};
use super::{Person, Yard};
use crate::support::Stage;
use crate::support::disk::SmallDisk;

const KEPT: usize = 12 * MIB;
/// More than is free beside [`KEPT`].
const LARGE: usize = 31 * MIB;

/// Fails for another refusal than that of a full disk; gives its code.
fn full(what: &str, status: u16, body: &Value) -> String {
    let code = body["code"].as_str().unwrap_or_default();
    assert_eq!(status, 507, "{what}: {body}");
    let codes = ["disk_full", "storage_full"];
    assert!(codes.contains(&code), "{what}: {body}");
    let sentence = body["error"].as_str().unwrap();
    let advice = ["free space", "remove files"];
    assert!(
        advice.iter().any(|it| sentence.contains(it)),
        "{what}: {body}"
    );
    code.to_owned()
}

/// Changes something; gives what was said.
async fn change(person: &Person, path: &str, form: &[(&str, &str)]) -> (u16, Value) {
    let path = format!("/api/files/{path}");
    let answer = person.browser.post(&path, form).await;
    (answer.status.as_u16(), answer.json())
}

async fn save(person: &Person, name: &str, text: &str) -> (u16, Value) {
    change(person, "edit", &[("path", name), ("content", text)]).await
}

#[track_caller]
fn done((status, body): (u16, Value)) {
    assert_eq!(status, 200, "{body}");
}

/// A disk of 40 MiB becomes full, and has space again.
async fn story(stage: &Stage, mounted: &Path) {
    let disk = SmallDisk::mount(mounted, "40m");
    let yard = Yard::open(stage).await;
    let alice = yard.person("alice").await;
    done(Sent::whole(&alice, "kept", KEPT, Announced::Length).await);
    done(save(&alice, "text", "as it was").await);
    let before = alice.on_disk();
    let intact = async || {
        yard.holds_nothing().await;
        assert_eq!(alice.on_disk(), before);
        assert!(alice.download("kept").await.body == content(KEPT));
        assert_eq!(alice.download("text").await.text(), "as it was");
    };
    for announced in [Announced::Length, Announced::Never] {
        let (status, body) = Sent::whole(&alice, "large", LARGE, announced).await;
        assert_eq!(full("an upload", status, &body), "disk_full");
        intact().await;
    }

    let filler = disk.fill();
    let long = "t".repeat(100_000);
    for name in ["text", "new"] {
        let (status, body) = save(&alice, name, &long).await;
        full(name, status, &body);
        intact().await;
    }
    let (status, body) = Sent::whole(&alice, "small", MIB, Announced::Length).await;
    full("an upload", status, &body);
    intact().await;

    // Whoever removes something can go on, also when that could not be recorded before.
    alice.delete("kept").await;
    done(Sent::whole(&alice, "small", MIB, Announced::Length).await);
    done(save(&alice, "text", &long).await);
    assert!(alice.download("small").await.body == content(MIB));
    std::fs::remove_file(filler).unwrap();
    done(Sent::whole(&alice, "large", LARGE, Announced::Length).await);
}

#[tokio::test]
async fn a_full_data_directory_refuses_files_with_the_reason_and_takes_them_again() {
    let stage = Stage::new();
    story(&stage, &stage.data()).await;
}

#[tokio::test]
async fn a_full_disk_of_the_users_refuses_files_with_the_reason_and_takes_them_again() {
    let stage = Stage::new();
    story(&stage, &stage.data().join("users")).await;
}

/// What takes no space on the users' disk has to be recorded all the same.
#[tokio::test]
async fn what_is_refused_because_the_database_is_full_was_not_done() {
    let stage = Stage::new();
    let disk = SmallDisk::mount(&stage.data(), "40m");
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    done(save(&alice, "text", "as it was").await);
    let before = alice.on_disk();
    let filler = disk.fill();
    for (path, form) in [
        ("mkdir", &[("path", ""), ("name", "made")]),
        ("move", &[("from", "text"), ("to", "moved")]),
    ] {
        let (status, body) = change(&alice, path, form).await;
        full(path, status, &body);
        assert_eq!(alice.on_disk(), before, "{path}: {body}");
    }
    std::fs::remove_file(filler).unwrap();
    done(change(&alice, "mkdir", &[("path", ""), ("name", "made")]).await);
    done(change(&alice, "move", &[("from", "text"), ("to", "moved")]).await);
}

/// Removing frees the users' disk, and not that of the database.
#[tokio::test]
async fn nothing_is_removed_unrecorded_while_the_database_is_full_on_a_disk_of_its_own() {
    let stage = Stage::new();
    let disk = SmallDisk::mount(&stage.data(), "40m");
    let _users = SmallDisk::mount(&stage.data().join("users"), "40m");
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    done(save(&alice, "text", "as it was").await);
    let before = alice.on_disk();
    let filler = disk.fill();
    // A small entry may still fit into what the database has.
    let refused = async |number: usize| {
        let name = number.to_string();
        let made = change(&alice, "mkdir", &[("path", ""), ("name", &name)]).await;
        made.0 == 507
    };
    let mut made = 0;
    while !refused(made).await {
        made += 1;
        assert!(made < 1000, "the database takes entries for ever");
    }
    let now = alice.on_disk();
    let (status, body) = change(&alice, "delete", &[("path", "text")]).await;
    assert_eq!(full("delete", status, &body), "storage_full");
    assert_eq!(alice.on_disk(), now);
    std::fs::remove_file(filler).unwrap();
    done(change(&alice, "delete", &[("path", "text")]).await);
    assert_ne!(alice.on_disk(), before);
}
