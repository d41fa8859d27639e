//! Names come back as they went in, whichever program sends them.

use std::collections::BTreeSet;
use std::path::Path;

use http::HeaderMap;
use http::header::CONTENT_DISPOSITION;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tokio::process::Command;

use super::{Person, Yard, download_path};
use crate::support::Stage;
use crate::support::node::Browser;

/// What each file is called; it is also what is in it. A literal `%22`, `%0D` or `%0A` is missing: programs write a quote and
/// the ends of a line so, and leave a percent sign as it is, so nobody can tell them apart.
const NAMES: [&str; 22] = [
    "plain.txt",
    "two words.txt",
    "a\"quoted\"'name'.txt",
    "two\nlines.txt",
    "two\r\nlines.txt",
    "\u{1f600}\u{1f468}\u{200d}\u{1f4bb}.png",
    // The same text, composed and not.
    "\u{e9}t\u{e9}.txt",
    "e\u{301}te\u{301}.txt",
    "%41.txt",
    "100%",
    "a+b.txt",
    "#1.txt",
    "why?.txt",
    "a;b=c&d.txt",
    "back\\slash.txt",
    "at the end\\",
    "-rf",
    "\u{202e}txt.exe",
    "\u{5d0}\u{5d1}.txt",
    ".hidden",
    "x; filename*=UTF-8''y.txt",
    "<script>'*|:\".txt",
];

/// The name that a download is given to be saved as (RFC 6266 and 8187).
fn offered(headers: &HeaderMap) -> String {
    let value = headers[CONTENT_DISPOSITION].to_str().unwrap();
    let rest = value.strip_prefix("attachment; filename=\"").expect(value);
    // What stands in quotes may look like the other one.
    if let Some(name) = rest.strip_suffix('"') {
        return name.to_owned();
    }
    let (_, exact) = rest.rsplit_once("\"; filename*=UTF-8''").expect(value);
    let name = percent_decode_str(exact).decode_utf8().unwrap();
    name.into_owned()
}

/// Asserts that exactly these files are in the workspace, by their names and on the disk, and can be fetched.
async fn are_there(person: &Person) {
    let all: BTreeSet<String> = NAMES.into_iter().map(str::to_owned).collect();
    assert_eq!(person.names().await, all);
    for name in NAMES {
        let stored = std::fs::read_to_string(person.workspace.join(name));
        assert_eq!(stored.unwrap(), name);
        let answer = person.download(name).await;
        assert_eq!(
            (answer.status.as_u16(), answer.text().as_str()),
            (200, name)
        );
        assert_eq!(offered(&answer.headers), name);
    }
}

/// curl, as the user.
fn curl(person: &Person) -> Command {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--fail-with-body"]);
    for (name, value) in person.browser.credentials() {
        command.args(["--header", &format!("{name}: {value}")]);
    }
    command.kill_on_drop(true);
    command
}

async fn run(mut command: Command) -> String {
    let output = command.output().await;
    let output = output.expect("curl is not installed; install it with: apt-get install -y curl");
    let text = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said} {text}");
    text
}

/// A file as `--form` takes it: its path in quotes.
fn quoted(path: &Path) -> String {
    let path = path.to_str().unwrap();
    let path = path.replace('\\', "\\\\").replace('"', "\\\"");
    format!("file=@\"{path}\"")
}

#[tokio::test]
async fn l23_names_that_curl_sends_come_back() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let url = |path: &str| format!("http://{}{path}", alice.address);
    let (outgoing, incoming) = (stage.path().join("out"), stage.path().join("in"));
    for directory in [&outgoing, &incoming] {
        std::fs::create_dir(directory).unwrap();
    }
    for name in NAMES {
        std::fs::write(outgoing.join(name), name).unwrap();
    }
    // Each alone, and then all of them at once.
    for names in NAMES.iter().map(std::slice::from_ref).chain([&NAMES[..]]) {
        let mut upload = curl(&alice);
        for name in names {
            upload.args(["--form", &quoted(&outgoing.join(name))]);
        }
        upload.args(["--form", "overwrite=true"]);
        upload.arg(url("/api/files/upload"));
        let answer: Value = serde_json::from_str(&run(upload).await).unwrap();
        let files = answer["files"].as_array().unwrap().iter();
        let sent: Vec<_> = files.map(|file| file["name"].as_str().unwrap()).collect();
        assert_eq!(sent, names);
    }
    are_there(&alice).await;
    for name in NAMES {
        let saved = incoming.join("saved");
        let mut download = curl(&alice);
        download.args(["--get", "--data-urlencode"]);
        download.arg(format!("path={name}")).arg("--output");
        download.arg(&saved).arg(url("/api/files/download"));
        run(download).await;
        assert_eq!(std::fs::read_to_string(saved).unwrap(), name);
    }
    // As a program that takes the name out of a form field or a variable: nothing of it is a path.
    let mut upload = curl(&alice);
    let file = quoted(&outgoing.join("plain.txt"));
    upload.args(["--form", &format!("{file};filename=\"../up\"")]);
    let output = upload.arg(url("/api/files/upload")).output().await.unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["code"], "invalid_parameter", "{answer}");
}

/// What Chromium proposes, on Linux, instead of names that have characters which are not taken everywhere: those are replaced,
/// a dot at the beginning is left out, and text is composed.
const PROPOSED: [(&str, &str); 12] = [
    ("a\"quoted\"'name'.txt", "a_quoted_'name'.txt"),
    ("two\nlines.txt", "two_lines.txt"),
    ("two\r\nlines.txt", "two__lines.txt"),
    ("e\u{301}te\u{301}.txt", "\u{e9}t\u{e9}.txt"),
    ("why?.txt", "why_.txt"),
    ("back\\slash.txt", "back_slash.txt"),
    ("at the end\\", "at the end_"),
    ("\u{202e}txt.exe", "_txt.exe"),
    (
        "\u{1f600}\u{1f468}\u{200d}\u{1f4bb}.png",
        "\u{1f600}\u{1f468}_\u{1f4bb}.png",
    ),
    (".hidden", "hidden"),
    ("x; filename*=UTF-8''y.txt", "x; filename_=UTF-8''y.txt"),
    ("<script>'*|:\".txt", "_script_'____.txt"),
];

/// The name that a browser is to propose.
fn proposed(name: &str) -> &str {
    let other = PROPOSED.iter().find(|(of, _)| *of == name);
    other.map_or(name, |(_, other)| other)
}

#[tokio::test]
async fn l23_names_that_a_browser_sends_come_back() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let mut browser = Browser::open().await;
    let url = format!("http://{}/api/health", alice.address);
    assert_eq!(browser.goto(&url).await.0, 200);
    let form = json!({"username": "alice", "password": alice.password});
    let signed_in = browser.does("fetch", json!(["/api/login", form])).await;
    assert_eq!(signed_in["status"], 200, "{signed_in}");
    let csrf = browser.does("fetch", json!(["/api/csrf"])).await;
    let form = json!({"csrf_token": csrf["body"]["csrf_token"]});
    let files: Vec<_> = NAMES.iter().map(|name| [name, name]).collect();
    let upload = json!(["/api/files/upload", form, files]);
    let uploaded = browser.does("fetch", upload).await;
    assert_eq!(uploaded["status"], 200, "{uploaded}");
    are_there(&alice).await;
    let listed = browser.does("fetch", json!(["/api/files?page_size=200"]));
    let listed = listed.await;
    let entries = listed["body"]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), NAMES.len());
    for entry in entries {
        let name = entry["name"].as_str().unwrap();
        let saved = browser.does("download", download_path(name)).await;
        assert_eq!(saved["text"], name);
        assert_eq!(saved["name"], proposed(name), "{name:?}");
    }
}
