use std::collections::BTreeMap;
use std::io::{Cursor, Write};

use schema::adapter::Adapter;
use schema::adapter::store::{self, Source};
use schema::condition::{Condition, Reason};
use schema::config::history::SavedBy;
use schema::config::{Config, parse_patch, query as config};
use schema::ids::Kind;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::upload::ADAPTER_LIMIT;
use crate::routes::test_support::{self, Answer, Yard};
use crate::testing::NOW;

const RULES: &str = "/api/admin/migration-rules";
const UPLOAD: &str = "/api/admin/migration-rules/upload";
const ROLLBACK: &str = "/api/admin/migration-rules/rollback";
const REFRESH: &str = "/api/admin/migration-rules/refresh";

/// The packages that the loader's own tests spoil, with what is said of each.
const SPOILED: &str = include_str!(
    "../../../../schema/src/adapter/snapshots/schema__adapter__document_tests__every_bad_package_is_refused_with_file_and_place.snap"
);

type Files = BTreeMap<String, Vec<u8>>;

/// The JSON files of the package `echo`.
fn echo() -> BTreeMap<String, Value> {
    let adapter = Adapter::builtin("echo").unwrap().unwrap();
    let files = adapter.files().iter();
    files
        .filter(|(path, _)| *path != "hash")
        .map(|(path, text)| (path.clone(), serde_json::from_str(text).unwrap()))
        .collect()
}

/// The files with the right hash list.
fn hashed(documents: &BTreeMap<String, Value>) -> Files {
    let mut files: Files = documents
        .iter()
        .map(|(path, document)| (path.clone(), document.to_string().into_bytes()))
        .collect();
    let line = |(path, bytes): (&String, &Vec<u8>)| {
        format!("{}  {path}\n", hex::encode(Sha256::digest(bytes)))
    };
    let list: String = files.iter().map(line).collect();
    files.insert("hash".to_owned(), list.into_bytes());
    files
}

fn zip(files: &Files) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, bytes) in files {
        zip.start_file(path, SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

pub(in crate::routes) fn version(version: &str) -> Vec<u8> {
    let mut documents = echo();
    documents.get_mut("index.json").unwrap()["adapter_version"] = json!(version);
    zip(&hashed(&documents))
}

/// An upload's body; its boundary is `X`.
pub(in crate::routes) fn body(file: &[u8]) -> Vec<u8> {
    let mut body =
        b"--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.zip\"\r\n\r\n"
            .to_vec();
    body.extend_from_slice(file);
    body.extend_from_slice(b"\r\n--X--\r\n");
    body
}

async fn upload(yard: &Yard, file: &[u8]) -> Answer {
    let request = warp::test::request()
        .path(UPLOAD)
        .header("content-type", "multipart/form-data; boundary=X")
        .body(body(file));
    yard.request("POST", request, "root").await
}

/// A yard with the object of the adapter.
async fn yard() -> Yard {
    let yard = test_support::yard().await;
    let echo = Adapter::builtin("echo").unwrap().unwrap();
    let mut tx = yard.world.db.begin().await.unwrap();
    store::ensure_base(
        &mut tx,
        &echo,
        SavedBy {
            actor: "admin",
            at: NOW,
        },
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    yard
}

async fn active(yard: &Yard) -> Value {
    yard.get(RULES).await.is(200)["rules"].clone()
}

/// Sets or removes one place as the loader's own tests do; without a value it is removed.
fn spoil(documents: &mut BTreeMap<String, Value>, file: &str, pointer: &str, value: Option<Value>) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        match value {
            Some(value) => documents.insert(file.to_owned(), value),
            None => documents.remove(file),
        };
        return;
    };
    let place = documents.get_mut(file).unwrap().pointer_mut(parent);
    match (place.unwrap(), value) {
        (Value::Object(members), Some(value)) => {
            members.insert(name.to_owned(), value);
        }
        (Value::Object(members), None) => {
            members.remove(name).unwrap();
        }
        (Value::Array(items), Some(value)) if name == "-" => items.push(value),
        (Value::Array(items), Some(value)) => items[name.parse::<usize>().unwrap()] = value,
        (Value::Array(items), None) => {
            items.remove(name.parse().unwrap());
        }
        (other, _) => panic!("{other} has no members"),
    }
}

/// Each spoiled package: in words, its zip, and the first problem as `file#pointer message`.
fn spoiled() -> Vec<(String, Vec<u8>, String)> {
    let (_, cases) = SPOILED.split_once("\n---\n").unwrap();
    let mut lines = cases.lines().peekable();
    let mut spoiled = Vec::new();
    while let Some(what) = lines.next() {
        let first = lines.peek().unwrap().trim_start().to_owned();
        while lines.next_if(|line| line.starts_with(' ')).is_some() {}
        let (place, value) = match what.split_once(" = ") {
            Some((place, value)) => (place, Some(serde_json::from_str(value).unwrap())),
            None => (what.strip_suffix(" removed").unwrap(), None),
        };
        let (file, pointer) = place.split_once('#').unwrap();
        let mut documents = echo();
        spoil(&mut documents, file, pointer, value);
        spoiled.push((what.to_owned(), zip(&hashed(&documents)), first));
    }
    spoiled
}

#[tokio::test]
async fn every_bad_package_is_refused_with_file_and_place_and_the_active_one_stays() {
    let yard = yard().await;
    upload(&yard, &version("7.0")).await.is(200);
    let before = active(&yard).await;
    let spoiled = spoiled();
    assert!(spoiled.len() >= 60, "{}", spoiled.len());
    for (what, zip, first) in spoiled {
        let refused = upload(&yard, &zip).await.fails(422, "invalid_adapter");
        let problem = &refused["problems"][0];
        let text = |name: &str| problem[name].as_str().unwrap();
        let told = format!("{}#{} {}", text("file"), text("pointer"), text("message"));
        assert_eq!(told, first, "{what}");
        assert!(refused["problems"].as_array().unwrap().len() <= 50);
    }
    assert_eq!(active(&yard).await, before);
}

#[tokio::test]
async fn l47_hashes_and_paths_of_an_upload_are_checked() {
    let yard = yard().await;
    let good = hashed(&echo());
    let with = |path: &str, bytes: &[u8]| {
        let mut files = good.clone();
        files.insert(path.to_owned(), bytes.to_vec());
        zip(&files)
    };
    let without = |path: &str| {
        let mut files = good.clone();
        files.remove(path).unwrap();
        zip(&files)
    };
    let wrong_hash = format!("{}  index.json\n", "0".repeat(64));
    for (package, file) in [
        (with("index.json", b"{}"), "index.json"),
        (with("index.json", b"{"), "index.json"),
        (with("extra.json", b"{}"), "extra.json"),
        (with("hash", wrong_hash.as_bytes()), "index.json"),
        (with("hash", b"nonsense"), "hash"),
        (with("hash", &[0xff, 0xfe]), "hash"),
        (with("../evil.json", b"{}"), "../evil.json"),
        (with("/evil.json", b"{}"), "/evil.json"),
        (with("run.sh", b"true"), "run.sh"),
        (with("INDEX.json", b"{}"), "index.json"),
        (without("hash"), "hash"),
        (without("index.json"), "index.json"),
        (b"PK nonsense".to_vec(), ""),
    ] {
        let refused = upload(&yard, &package).await.fails(422, "invalid_adapter");
        let problems = refused["problems"].as_array().unwrap();
        let named = problems.iter().any(|problem| problem["file"] == file);
        assert!(named, "{file}: {refused}");
    }
    assert_eq!(active(&yard).await["source"], "base");
}

#[tokio::test]
async fn what_is_no_upload_is_told_so() {
    let yard = yard().await;
    yard.post(UPLOAD, "file=x").await.is(415);
    let request = warp::test::request().path(UPLOAD);
    yard.request("POST", request, "root")
        .await
        .fails(400, "invalid_parameter");
    let too_large = vec![b'x'; usize::try_from(ADAPTER_LIMIT).unwrap() + 1];
    upload(&yard, &too_large).await.fails(413, "too_large");
    let far_too_large = vec![b'x'; usize::try_from(ADAPTER_LIMIT).unwrap() + 100_000];
    upload(&yard, &far_too_large).await.fails(413, "too_large");
    upload(&yard, b"").await.fails(422, "invalid_adapter");
}

#[tokio::test]
async fn dry_run_of_an_upload_says_what_changes() {
    let yard = yard().await;
    let alice = yard.user("alice").await;
    yard.user("bob").await;
    let dry_run = async |file: &[u8]| {
        let field = "--X\r\nContent-Disposition: form-data; name=\"dry_run\"\r\n\r\ntrue\r\n";
        let request = warp::test::request()
            .path(UPLOAD)
            .header("content-type", "multipart/form-data; boundary=X")
            .body([field.as_bytes(), &body(file)].concat());
        yard.request("POST", request, "root").await
    };
    let before = active(&yard).await;
    let plan = dry_run(&version("0.1")).await.is(200);
    assert_eq!(
        (&plan["adapter_version"], &plan["changed"]),
        (&json!("0.1"), &json!(true))
    );
    assert_eq!(plan["restarts"], 2);
    assert_eq!(plan["restarted_users"], json!(["alice", "bob"]));
    let warning = plan["warnings"][0].as_str().unwrap();
    assert!(warning.contains("older than the active one"), "{warning}");
    let changes = plan["changes"].as_str().unwrap();
    assert!(changes.starts_with("neither command"), "{changes}");
    assert_eq!(plan["generation"], before["generation"]);
    dry_run(b"PK").await.fails(422, "invalid_adapter");
    assert_eq!(active(&yard).await, before);
    let known = yard.get("/api/admin/adapters").await.is(200);
    assert_eq!(known["adapters"].as_array().unwrap().len(), 1);
    let container = yard.object(Kind::Container, &alice).await.unwrap();
    assert_eq!(container.generation.0, 1);
    upload(&yard, &version("9.0")).await.is(200);
    let same = dry_run(&version("9.0")).await.is(200);
    assert_eq!(
        (&same["changed"], &same["restarts"]),
        (&json!(false), &json!(0))
    );
}

#[tokio::test]
async fn any_version_may_be_uploaded_and_the_same_again_changes_nothing() {
    let yard = yard().await;
    let alice = yard.user("alice").await;
    for (uploaded, changed, generation) in [("9.0", true, 2), ("0.1", true, 3), ("0.1", false, 3)] {
        let answer = upload(&yard, &version(uploaded)).await.is(200);
        assert_eq!(answer["adapter_version"], uploaded);
        assert_eq!(answer["changed"], changed, "{answer}");
        for kind in [Kind::AgentConfig, Kind::Container] {
            let object = yard.object(kind, &alice).await.unwrap();
            assert_eq!(object.generation.0, generation, "{kind}");
        }
    }
    let rules = active(&yard).await;
    assert_eq!(rules["adapter_version"], "0.1");
    assert_eq!(rules["source"], "upload");
    let kept = yard.get("/api/admin/adapters").await.is(200);
    let kept = kept["adapters"].as_array().unwrap();
    assert_eq!(kept.len(), 3);
    assert!(
        kept.iter()
            .any(|kept| kept["version"] == "9.0" && kept["previous"] == true)
    );
    assert!(
        kept.iter()
            .any(|kept| kept["source"] == "base" && kept["active"] == false)
    );
}

#[tokio::test]
async fn a_switch_tells_its_generation_and_refuses_one_that_was_decided_on_another() {
    let yard = yard().await;
    let uploaded = upload(&yard, &version("9.0")).await.is(200);
    assert_eq!(uploaded["object"], "adapter/active");
    let generation = uploaded["generation"].as_i64().unwrap();
    assert_eq!(active(&yard).await["generation"], generation);
    let stale = format!("if_generation={}", generation - 1);
    yard.post(ROLLBACK, &stale)
        .await
        .fails(412, "stale_generation");
    let field = "--X\r\nContent-Disposition: form-data; name=\"if_generation\"\r\n\r\n1\r\n";
    let request = warp::test::request()
        .path(UPLOAD)
        .header("content-type", "multipart/form-data; boundary=X")
        .body([field.as_bytes(), &body(&version("9.1"))].concat());
    yard.request("POST", request, "root")
        .await
        .fails(412, "stale_generation");
    assert_eq!(active(&yard).await["adapter_version"], "9.0");
    let fresh = format!("if_generation={generation}");
    let back = yard.post(ROLLBACK, &fresh).await.is(200);
    assert_eq!(back["generation"], generation + 1);
    assert_eq!(active(&yard).await["generation"], generation + 1);
}

#[tokio::test]
async fn rolling_back_twice_goes_back_and_forth() {
    let yard = yard().await;
    yard.post(ROLLBACK, "").await.fails(409, "wrong_state");
    upload(&yard, &version("9.0")).await.is(200);
    let base = yard.post(ROLLBACK, "").await.is(200);
    assert_ne!(base["adapter_version"], "9.0");
    assert_eq!(active(&yard).await["source"], "base");
    assert_eq!(
        yard.post(ROLLBACK, "").await.is(200)["adapter_version"],
        "9.0"
    );
    assert_eq!(active(&yard).await["adapter_version"], "9.0");
}

#[tokio::test]
async fn the_rules_tell_what_each_version_migrates() {
    let yard = yard().await;
    let rules = active(&yard).await;
    assert_eq!(rules["adapter_schema_version"], 1);
    assert_eq!(rules["latest_supported_config_version"], 3);
    let versions = rules["versions"].as_array().unwrap();
    assert_eq!(versions[0]["config_changed"], false);
    assert_eq!(versions[0]["actions"], json!([]));
    let moved: Vec<_> = versions
        .iter()
        .filter(|v| v["config_changed"] == true)
        .collect();
    assert_eq!(moved.len(), 2);
    for version in moved {
        let (from, to) = (&version["from_config"], &version["to_config"]);
        let path = format!("migrations/v{from}-to-v{to}.json");
        assert_eq!(version["actions"], echo()[&path]["actions"], "{path}");
    }
    let digest = Adapter::builtin("echo").unwrap().unwrap().digest;
    assert_eq!(rules["digest"], digest);
    assert_eq!(rules["updated_at"], NOW.to_rfc3339());
}

/// Saves configuration behind the handlers' backs.
async fn configure(yard: &Yard, document: Value) {
    let key = &yard.world.deps.master_key;
    let mut tx = yard.world.db.begin().await.unwrap();
    let patch = parse_patch(&document).unwrap();
    let changes = patch.resolve(&Config::default()).unwrap();
    config::save(&mut tx, key, &changes, None, crate::testing::BY)
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_refresh_needs_a_source_and_tells_how_it_failed() {
    let yard = yard().await;
    yard.post(REFRESH, "").await.fails(422, "no_adapter_source");
    configure(
        &yard,
        json!({"adapter.source_url": "https://example.test/a.zip"}),
    )
    .await;
    let uid = store::object_uid();
    let asked = yard.post(REFRESH, "wait=0").await.is(202);
    assert_eq!(asked["object"], "adapter/active");
    let generation = asked["generation"].as_i64().unwrap();
    let mut connection = yard.world.deps.db.read().await.unwrap();
    let first = store::state(&mut connection).await.unwrap().refresh_token;
    assert!(!first.is_empty());
    drop(connection);
    let stale = format!("wait=0&if_generation={}", generation - 1);
    yard.post(REFRESH, &stale)
        .await
        .fails(412, "stale_generation");
    for (reason, status, code) in [
        (Reason::AdapterSourceFailed, 502, "adapter_source_failed"),
        (Reason::AdapterInvalid, 422, "adapter_invalid"),
    ] {
        let next = yard.object(Kind::Adapter, &uid).await.unwrap().generation.0 + 1;
        yard.saw(
            Kind::Adapter,
            &uid,
            next,
            Condition::not_ready(reason, "so it is"),
        )
        .await;
        let failed = yard.post(REFRESH, "").await.fails(status, code);
        assert_eq!(failed["error"], "so it is");
    }
    let next = yard.object(Kind::Adapter, &uid).await.unwrap().generation.0 + 1;
    let ready = Condition::ready(Reason::Converged, "fine");
    yard.saw(Kind::Adapter, &uid, next, ready).await;
    yard.post(REFRESH, "").await.is(200);
    let mut connection = yard.world.deps.db.read().await.unwrap();
    let last = store::state(&mut connection).await.unwrap().refresh_token;
    assert_ne!(last, first);
}

#[tokio::test]
async fn channels_tell_which_versions_know_and_permit_them() {
    let yard = yard().await;
    let path = "/api/admin/agent/channels";
    let refused = json!({"agent": {"channel_list": {"chat": {"enabled": false}}}});
    configure(&yard, refused).await;
    let channels = yard.get(path).await.is(200)["channels"].clone();
    let named = |channels: &Value, key: &str| {
        let channels = channels.as_array().unwrap();
        channels
            .iter()
            .find(|channel| channel["key"] == key)
            .cloned()
    };
    let chat = named(&channels, "chat").unwrap();
    assert_eq!(chat["config_versions"], json!([1, 2, 3]));
    assert_eq!(chat["allowed"], false);
    assert!(named(&channels, "mail").is_some());
    let first = yard.get(&format!("{path}?config_version=1")).await.is(200);
    assert!(named(&first["channels"], "mail").is_none());
    let none = yard.get(&format!("{path}?config_version=99")).await.is(200);
    assert_eq!(none["channels"], json!([]));
    yard.get(&format!("{path}?config_version=x")).await.is(400);
    for permitted in [
        json!({"others": 1}),
        json!({"channel_list": {"chat": {"enabled": true}}}),
    ] {
        configure(&yard, json!({ "agent": permitted })).await;
        let channels = yard.get(path).await.is(200)["channels"].clone();
        assert_eq!(named(&channels, "chat").unwrap()["allowed"], true);
        assert_eq!(named(&channels, "mail").unwrap()["allowed"], false);
    }
}

#[tokio::test]
async fn uploads_at_the_same_moment_leave_one_of_them_in_effect() {
    let yard = yard().await;
    let packages: Vec<_> = (0..6).map(|n| version(&format!("{n}.0"))).collect();
    let newer = Adapter::from_zip(&version("9.9")).unwrap();
    let install = async {
        let mut tx = yard.world.db.begin().await.unwrap();
        store::install(
            &mut tx,
            &newer,
            store::Activation::Requested,
            SavedBy {
                actor: "admin",
                at: NOW,
            },
        )
        .await
        .unwrap();
        tx.commit().await.unwrap();
    };
    let uploads = futures::future::join_all(packages.iter().map(|zip| upload(&yard, zip)));
    let (uploads, ()) = tokio::join!(uploads, install);
    for answer in uploads {
        answer.is(200);
    }
    let mut connection = yard.world.deps.db.read().await.unwrap();
    let known = store::known(&mut connection).await.unwrap();
    assert_eq!(known.iter().filter(|known| known.active).count(), 1);
    assert_eq!(known.iter().filter(|known| known.previous).count(), 1);
    assert!(known.len() <= 3);
    assert!(known.iter().any(|known| known.source == Source::Base));
    let state = store::state(&mut connection).await.unwrap();
    assert_eq!(state.generation, 9);
}
