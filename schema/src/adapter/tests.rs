use std::io::{Cursor, Write};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::package::{MAX_FILE, MAX_PACKED};
use super::*;

/// An index with nothing but what is required.
fn minimal() -> Value {
    json!({
        "adapter_schema_version": 1,
        "adapter_version": "1.0",
        "latest_supported_config_version": 2,
        "agent": {"name": "Test"},
        "agent_versions": [
            {"version": "v1.2.0", "config_version": 1, "channel_types": ["chat"]},
            {"version": "1.10.0", "config_version": 2},
            {"version": "1.4.3", "config_version": 2},
        ],
    })
}

/// The minimal index with one place changed; `Null` removes the field.
fn with(pointer: &str, value: Value) -> Value {
    let mut index = minimal();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let fields = index.pointer_mut(parent).unwrap();
    match fields {
        Value::Object(fields) if value.is_null() => {
            fields.remove(name);
        }
        Value::Object(fields) => {
            fields.insert(name.to_owned(), value);
        }
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        _ => panic!("{parent} has no fields"),
    }
    index
}

type File = (String, Vec<u8>);

fn file(path: &str, content: impl Into<Vec<u8>>) -> File {
    (path.to_owned(), content.into())
}

/// The files of a package, with the right hash list added.
fn package(index: &Value, others: &[File]) -> Vec<File> {
    let mut files = vec![file("index.json", index.to_string())];
    files.extend_from_slice(others);
    let list: String = files
        .iter()
        .map(|(path, content)| format!("{}  {path}\n", hex::encode(Sha256::digest(content))))
        .collect();
    files.push(file("hash", format!("# a comment\n\n{list}")));
    files
}

fn load(files: &[File]) -> Result<Adapter, InvalidPackage> {
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(path, content)| (path.as_str(), content.as_slice()))
        .collect();
    Adapter::from_files(package::from_memory(&files)?, false)
}

fn zipped(files: &[File]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (path, content) in files {
        zip.start_file(path.as_str(), options).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Every problem as `file#pointer message`.
fn problems(outcome: Result<Adapter, InvalidPackage>) -> Vec<String> {
    outcome
        .unwrap_err()
        .0
        .into_iter()
        .map(|problem| format!("{}#{} {}", problem.file, problem.pointer, problem.message))
        .collect()
}

fn assert_problem(outcome: Result<Adapter, InvalidPackage>, says: &str) {
    let problems = problems(outcome);
    assert!(
        problems.iter().any(|problem| problem.contains(says)),
        "{problems:?}"
    );
}

#[test]
fn the_built_in_packages_are_valid() {
    for name in BUILTIN {
        let adapter = Adapter::builtin(name).unwrap();
        assert!(adapter.is_ok(), "{name}: {}", adapter.unwrap_err());
    }
    assert!(Adapter::builtin("nothing").is_none());
}

#[test]
fn every_file_of_the_adapter_folders_is_embedded() {
    for name in BUILTIN {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("adapters")
            .join(name);
        let on_disk = Adapter::from_folder(&folder).unwrap();
        assert_eq!(Adapter::builtin(name).unwrap().unwrap(), on_disk);
    }
}

#[test]
fn picoclaw_is_described_as_its_images_are() {
    let adapter = Adapter::builtin("picoclaw").unwrap().unwrap();
    let agent = &adapter.index.agent;
    assert_eq!(agent.home, "/root");
    assert_eq!(agent.environment["PICOCLAW_HOME"], "/root/.agent");
    // Without it the gateway listens on the container's loopback only.
    assert_eq!(agent.environment["PICOCLAW_GATEWAY_HOST"], "0.0.0.0");
    assert_eq!(
        agent.readiness,
        Readiness::Http {
            port: 18790,
            path: "/health".to_owned()
        }
    );
    assert_eq!(agent.in_home(&agent.config_file), ".agent/config.json");
    assert_eq!(agent.in_home(&agent.security_file), ".agent/.security.yml");
    assert_eq!(agent.run_as, RunAs::Service);
    assert_eq!(agent.workspace_dir(), "/root/.agent/workspace");
    assert_eq!(
        agent.workspace_setting.as_deref(),
        Some("agents.defaults.workspace")
    );
    assert_eq!(agent.mcp_servers_path, "tools.mcp.servers");
    for command in [&agent.command, &agent.debug_command] {
        let script = command.as_ref().unwrap().last().unwrap();
        assert!(script.contains("exec picoclaw gateway"), "{script}");
    }
    let config_versions: Vec<_> = adapter
        .index
        .agent_versions
        .iter()
        .map(|version| (version.version.to_string(), version.config_version))
        .collect();
    let expected = [
        ("0.2.4", 1),
        ("0.2.5", 2),
        ("0.2.6", 2),
        ("0.2.7", 3),
        ("0.2.8", 3),
        ("0.2.9", 3),
    ];
    assert_eq!(
        config_versions,
        expected.map(|(version, config)| (version.to_owned(), config))
    );
    for version in adapter.index.agent_versions.iter() {
        assert!(version.channel_types.contains(&agent.chatapp_section));
    }
}

#[test]
fn the_echo_adapter_has_two_channels_and_three_config_versions() {
    let index = Adapter::builtin("echo").unwrap().unwrap().index;
    let configs: Vec<_> = index
        .agent_versions
        .iter()
        .map(|v| v.config_version)
        .collect();
    assert_eq!(configs, [1, 2, 3]);
    assert_eq!(
        index.agent_versions.newest().channel_types,
        ["chat", "mail"]
    );
    assert_eq!(
        index.agent.debug_command,
        Some(vec!["/bin/echo-agent".to_owned()])
    );
}

#[test]
fn what_is_absent_has_its_default() {
    let index = load(&package(&minimal(), &[])).unwrap().index;
    let agent = &index.agent;
    assert_eq!(agent.home, "/root");
    assert_eq!(agent.agent_dir(), "/root/.agent");
    assert!(agent.environment.is_empty());
    assert_eq!((&agent.command, &agent.debug_command), (&None, &None));
    assert_eq!(agent.run_as, RunAs::Service);
    assert_eq!(agent.cookies_path, "cookies");
    assert_eq!(agent.config_file, "config.json");
    assert_eq!(agent.security_file, ".security.yml");
    assert_eq!(agent.readiness, Readiness::Running);
    assert_eq!(agent.mcp_servers_path, "tools.mcp.servers");
    assert_eq!(agent.workspace_setting, None);
    assert_eq!(agent.chatapp_section, "dingtalk");
    assert!(!agent.seed_home);
    assert_eq!(
        index.untagged.to_string(),
        "1.10.0",
        "the newest, as numbers"
    );
}

#[test]
fn what_is_given_is_taken() {
    let mut index = minimal();
    index["agent"] = json!({
        "name": "Full",
        "home": "/home/agent",
        "environment": {"DIR": "${agent_dir}/x:${agent_dir}", "EMPTY": ""},
        "command": ["agent", "--serve"],
        "debug_command": ["agent", ""],
        "run_as": "1000:1001",
        "cookies_path": "a.b",
        "config_file": "conf/agent.json",
        "security_file": "conf/secrets.yml",
        "readiness": {"file": "heartbeat"},
        "mcp_servers_path": "mcp",
        "workspace_setting": "dirs.work",
        "chatapp_section": "chat",
        "seed_home": true,
        "$comment": "ignored",
    });
    index["untagged"] = json!("1.4.3");
    let index = load(&package(&index, &[])).unwrap().index;
    let agent = &index.agent;
    assert_eq!(agent.agent_dir(), "/home/agent/.agent");
    assert_eq!(
        agent.environment["DIR"],
        "/home/agent/.agent/x:/home/agent/.agent"
    );
    assert_eq!(agent.environment["EMPTY"], "");
    assert_eq!(agent.command.as_deref().unwrap(), ["agent", "--serve"]);
    assert_eq!(agent.debug_command.as_deref().unwrap(), ["agent", ""]);
    assert_eq!(agent.run_as, RunAs::Ids(1000, 1001));
    assert_eq!(agent.readiness, Readiness::File("heartbeat".to_owned()));
    assert_eq!(agent.in_home(&agent.config_file), ".agent/conf/agent.json");
    assert!(agent.seed_home);
    assert_eq!(index.untagged.to_string(), "1.4.3");
}

#[test]
fn what_is_null_is_absent() {
    let mut index = minimal();
    for name in ["untagged", "config_schemas", "ui_schemas", "migrations"] {
        index[name] = Value::Null;
    }
    index["agent_versions"][1]["channel_types"] = Value::Null;
    index["agent"] = json!({
        "name": "Test", "home": null, "environment": null, "command": null, "debug_command": null,
        "run_as": null, "cookies_path": null, "config_file": null, "security_file": null,
        "readiness": null, "mcp_servers_path": null, "workspace_setting": null,
        "chatapp_section": null, "seed_home": null,
    });
    let absent = load(&package(&minimal(), &[])).unwrap().index;
    assert_eq!(load(&package(&index, &[])).unwrap().index, absent);
    index["agent"]["readiness"] = json!({"http": null, "file": "x", "$comment": null});
    let agent = load(&package(&index, &[])).unwrap().index.agent;
    assert_eq!(agent.readiness, Readiness::File("x".to_owned()));
}

#[rstest::rstest]
#[case::declared("1.4.3", "1.4.3")]
#[case::with_v("v1.4.3", "1.4.3")]
#[case::with_suffix("v1.4.3-alpine", "1.4.3")]
#[case::oldest("1.2.0", "1.2.0")]
#[case::between("1.5.0", "1.4.3")]
#[case::older_than_all("0.9.9", "1.2.0")]
#[case::newer_than_all("2.0.0", "1.10.0")]
#[case::latest("latest", "1.10.0")]
#[case::untagged("", "1.10.0")]
#[case::other("nightly", "1.10.0")]
#[case::not_quite("1.4", "1.10.0")]
#[case::digest("sha256:0123", "1.10.0")]
fn l39_every_tag_is_some_version(#[case] tag: &str, #[case] version: &str) {
    let adapter = load(&package(&minimal(), &[])).unwrap();
    assert_eq!(
        adapter.resolve_agent_version(tag).version.to_string(),
        version
    );
}

#[test]
fn l39_untagged_may_be_another_than_the_newest() {
    let adapter = load(&package(&with("/untagged", json!("v1.2.0")), &[])).unwrap();
    for tag in ["latest", "", "9.9.9"] {
        assert_eq!(
            adapter.resolve_agent_version(tag).version.to_string(),
            "1.2.0"
        );
    }
    assert_eq!(
        adapter.resolve_agent_version("1.10.0").version.to_string(),
        "1.10.0"
    );
}

#[rstest::rstest]
#[case("/adapter_schema_version", json!(2), "is 2, but this release reads 1")]
#[case("/adapter_schema_version", Value::Null, "is missing")]
#[case("/adapter_version", json!("one"), "dotted numbers")]
#[case("/adapter_version", json!(1.0), "must be of type string")]
#[case("/latest_supported_config_version", json!("3"), "must be of type integer")]
#[case("/latest_supported_config_version", json!(-1), "must be at least 0")]
#[case("/latest_supported_config_version", json!(2.0), "without a fraction")]
#[case("/agent", Value::Null, "is missing")]
#[case("/agent", json!([]), "must be of type object")]
#[case("/agent/name", Value::Null, "is missing")]
#[case("/agent/hmoe", json!("/root"), "not a known field")]
#[case("/agent/home", json!("root"), "absolute path")]
#[case("/agent/home", json!("/"), "absolute path")]
#[case("/agent/home", json!("/root/../etc"), "absolute path")]
#[case("/agent/home", json!("/proc/1"), "not one of the system's")]
#[case("/agent/home", json!("/a:/b"), "absolute path")]
#[case("/agent/environment", json!({"A=B": "x"}), "environment variable")]
#[case("/agent/environment", json!({"HOME": "/x"}), "set by the service")]
#[case("/agent/environment", json!({"A": "${home}"}), "placeholder")]
#[case("/agent/environment", json!({"A": 1}), "A must be of type string")]
#[case("/agent/environment", json!({"A": null}), "A must be of type string")]
#[case("/agent/environment", json!({"A/B": "x"}), "/A~1B is not the name")]
#[case("/agent/environment", json!({"A": "a\0b"}), "NUL character")]
#[case("/agent/command", json!("run"), "must be of type array")]
#[case("/agent/command", json!([]), "must not be empty")]
#[case("/agent/command", json!([""]), "command/0 must not be empty")]
#[case("/agent/command", json!(["run", 1]), "must be of type string")]
#[case("/agent/run_as", json!("root"), "service, image")]
#[case("/agent/run_as", json!("1000"), "service, image")]
#[case("/agent/run_as", json!("-1:0"), "service, image")]
#[case("/agent/config_file", json!("../config.json"), "plain path")]
#[case("/agent/config_file", json!("/etc/passwd"), "plain path")]
#[case("/agent/config_file", json!("a//b"), "plain path")]
#[case("/agent/security_file", json!("config.json"), "differ from config_file")]
#[case("/agent/readiness", json!({}), "either http or file")]
#[case("/agent/readiness", json!({"file": "x", "http": {"port": 1, "path": "/"}}), "either http or file")]
#[case("/agent/readiness", json!({"http": {"port": 0, "path": "/"}}), "at least 1")]
#[case("/agent/readiness", json!({"http": {"port": 70000, "path": "/"}}), "at most 65535")]
#[case("/agent/readiness", json!({"http": {"port": 80, "path": "health"}}), "/ in front")]
#[case("/agent/readiness", json!({"file": "../x"}), "plain path")]
#[case("/agent/mcp_servers_path", json!("tools..servers"), "separated by dots")]
#[case("/agent/seed_home", json!("yes"), "must be of type boolean")]
#[case("/agent_versions", json!([]), "must not be empty")]
#[case("/agent_versions/0", json!({"version": "1.2", "config_version": 1}), "such as 1.2.3")]
#[case("/agent_versions/0", json!({"version": "1.10.0", "config_version": 1}), "declared twice")]
#[case("/agent_versions/0", json!({"version": "1.2.3", "config_version": 3}), "newer than latest")]
#[case("/agent_versions/0", json!({"version": "1.2.3", "config_version": 1, "channel_types": ["a b"]}), "characters")]
#[case("/untagged", json!("9.9.9"), "one of agent_versions")]
#[case("/config_schemas", json!({"1": "missing.json"}), "not a JSON file of the package")]
#[case("/config_schemas", json!({"one": "index.json"}), "named by a configuration version")]
#[case("/migrations", json!([{"from_config": 1, "to_config": 1, "path": "index.json"}]), "must differ")]
#[case("/nothing", json!(1), "not a known field")]
fn a_wrong_index_is_refused(#[case] pointer: &str, #[case] value: Value, #[case] says: &str) {
    let problems = problems(load(&package(&with(pointer, value), &[])));
    let found = problems
        .iter()
        .find(|problem| problem.contains(says))
        .unwrap_or_else(|| panic!("{problems:?}"));
    // The place is the field or lies in it; a contradiction is reported at its second half.
    let near = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
    assert!(found.contains(&format!("#{near}")), "{found}");
}

#[test]
fn every_problem_is_reported_with_its_place() {
    let mut index = minimal();
    index["agent"] = json!({"home": 1, "run_as": "me", "readiness": {"http": {"port": 0}}});
    index["agent_versions"][2]["version"] = json!("x");
    index["ui_schemas"] = json!({"1": "ui/v1.json"});
    index["a/b"] = json!(true);
    let mut files = package(&index, &[]);
    files.push(file("extra.json", "{"));
    let mut found = problems(load(&files));
    found.sort();
    let mut expected = [
        "extra.json# is not in the hash list",
        "index.json#/a~1b is not a known field",
        "index.json#/agent/home must be of type string",
        "index.json#/agent/name is missing",
        "index.json#/agent/readiness/http/path is missing",
        "index.json#/agent/readiness/http/port must be at least 1",
        "index.json#/agent/run_as must be service, image, or two numbers as uid:gid",
        "index.json#/agent_versions/2/version must be a version such as 1.2.3 or v1.2.3",
        "index.json#/ui_schemas/1 names ui/v1.json, which is not a JSON file of the package",
    ];
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn files_that_the_index_names_must_be_there_and_agree_with_it() {
    let mut index = minimal();
    index["config_schemas"] = json!({"1": "config/v1.json", "2": "config/v2.json"});
    index["migrations"] = json!([{"from_config": 1, "to_config": 2, "path": "m.json"}]);
    index["ui_schemas"] = json!({"1": "ui/v1.json", "2": "ui/v2.json"});
    let others = |v2: u32| {
        let schema = |version: u32| {
            json!({
                "config_version": version, "channels_path": "channels", "channel_types": ["chat"],
            })
            .to_string()
        };
        [
            file("config/v1.json", schema(1)),
            file("config/v2.json", schema(v2)),
            file("ui/v1.json", r#"{"config_version":1,"pages":[]}"#),
            file("ui/v2.json", r#"{"config_version":2,"pages":[]}"#),
            file("m.json", r#"{"from_config":1,"to_config":2,"actions":[]}"#),
        ]
    };
    let adapter = load(&package(&index, &others(2))).unwrap();
    assert_eq!(adapter.index.config_schemas[&2], "config/v2.json");
    assert_eq!(adapter.index.migrations.len(), 1);
    assert_eq!(adapter.documents["m.json"]["to_config"], json!(2));
    assert_eq!(
        problems(load(&package(&index, &others(1)))),
        ["config/v2.json#/config_version must be 2, as index.json says"]
    );
}

#[test]
fn l47_hashes_are_verified() {
    let good = package(&minimal(), &[file("a.json", "{}")]);
    load(&good).unwrap();
    let change = |path: &str, content: &str| {
        let mut files = good.clone();
        files.retain(|(name, _)| name != path);
        files.push(file(path, content));
        load(&files)
    };
    let without = |path: &str| {
        let mut files = good.clone();
        files.retain(|(name, _)| name != path);
        load(&files)
    };
    assert_problem(
        change("a.json", "[]"),
        "a.json# does not match its SHA-256 digest",
    );
    assert_problem(change("b.json", "{}"), "b.json# is not in the hash list");
    assert_problem(without("a.json"), "lists a.json, which is not there");
    assert_problem(without("hash"), "hash# is missing");
    assert_problem(
        change("hash", "xyz  a.json\n"),
        "hash# line 1 is not a SHA-256 digest",
    );
    let twice = format!(
        "{0}  a.json\n{0}  a.json\n",
        hex::encode(Sha256::digest("{}"))
    );
    assert_problem(change("hash", &twice), "line 2 lists a.json a second time");
    let itself = format!("{}  hash\n", "0".repeat(64));
    assert_problem(
        change("hash", &itself),
        "line 1 lists hash, which is not there",
    );
}

#[test]
fn a_package_without_index_says_so_once() {
    let files = package(&minimal(), &[]);
    let others: Vec<File> = files
        .into_iter()
        .filter(|(path, _)| path == "hash")
        .collect();
    let found = problems(load(&others));
    assert!(
        found.contains(&"index.json# is missing".to_owned()),
        "{found:?}"
    );
    let broken = problems(load(&[file("index.json", "{")]));
    assert_eq!(
        broken
            .iter()
            .filter(|problem| problem.contains("is not JSON"))
            .count(),
        1
    );
    assert!(
        !broken
            .iter()
            .any(|problem| problem.contains("index.json# is missing"))
    );
}

#[test]
fn zip_folder_and_memory_give_the_same_adapter() {
    let files = package(&minimal(), &[file("sub/a.json", "{}")]);
    let from_memory = load(&files).unwrap();
    let mut reversed = files.clone();
    reversed.reverse();
    assert_eq!(Adapter::from_zip(&zipped(&reversed)).unwrap(), from_memory);
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in &files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    assert_eq!(Adapter::from_folder(folder.path()).unwrap(), from_memory);
    let mut index = minimal();
    index["adapter_version"] = json!("99.0");
    let other = load(&package(&index, &[])).unwrap();
    assert_ne!(other.digest, from_memory.digest);
}

#[test]
fn what_the_index_does_not_name_is_neither_parsed_nor_kept() {
    let plain = load(&package(&minimal(), &[])).unwrap();
    let heavy = format!("[{}[]]", "[],".repeat(1_390_000));
    let extra = [file("a.json", heavy.clone()), file("b.json", "{")];
    let bytes = zipped(&package(&minimal(), &extra));
    assert!(bytes.len() < 100_000, "it packs well");
    let adapter = Adapter::from_zip(&bytes).unwrap();
    let kept: Vec<&str> = adapter.files().keys().map(String::as_str).collect();
    assert_eq!(kept, ["hash", "index.json"]);
    assert_eq!(adapter.digest, plain.digest);
    // The hash list still speaks of what is not kept.
    let stored = serde_json::to_string(adapter.files()).unwrap();
    assert_eq!(Adapter::from_stored(&stored).unwrap(), adapter);
    // What an earlier release has kept is still read.
    let mut kept = adapter.files().clone();
    kept.extend((0..5).map(|n| (format!("{n}.json"), " ".repeat(4 << 20))));
    let stored = serde_json::to_string(&kept).unwrap();
    let error = Adapter::from_stored(&stored).unwrap_err().to_string();
    assert!(!error.contains("unpacked"), "{error}");

    let mut index = minimal();
    index["config_schemas"] = json!({"1": "a.json"});
    let named = package(&index, &[file("a.json", heavy)]);
    assert_problem(load(&named), "a.json# has more than 50000 values");
    let files: Vec<File> = (1..=5)
        .map(|n| file(&format!("{n}.json"), format!("[{}1]", "1,".repeat(45_000))))
        .collect();
    index["config_schemas"] = (1..=5)
        .map(|n| (n.to_string(), json!(format!("{n}.json"))))
        .collect();
    let problems = problems(load(&package(&index, &files)));
    let full = "5.json# is one file too many: the package has more than 200000 values";
    assert!(
        problems.iter().any(|problem| problem == full),
        "{problems:?}"
    );
}

#[rstest::rstest]
#[case("../evil.json")]
#[case("/etc/evil.json")]
#[case("a/../../evil.json")]
#[case("a\\..\\evil.json")]
#[case("C:evil.json")]
#[case("a//b.json")]
#[case("./a.json")]
#[case("a\nb.json")]
fn l27_unsafe_paths_in_a_zip_are_refused(#[case] path: &str) {
    let mut files = package(&minimal(), &[]);
    files.push(file(path, "{}"));
    assert_problem(
        Adapter::from_zip(&zipped(&files)),
        "not a safe relative path",
    );
}

#[test]
fn l27_other_files_than_json_are_refused() {
    for path in ["run.sh", "a.json.exe", "sub/hash", "json"] {
        let mut files = package(&minimal(), &[]);
        files.push(file(path, "{}"));
        assert_problem(Adapter::from_zip(&zipped(&files)), "neither a .json file");
    }
}

#[test]
fn l27_case_twins_and_duplicates_are_refused() {
    let twins = package(&minimal(), &[file("a.json", "{}"), file("A.json", "{}")]);
    assert_problem(Adapter::from_zip(&zipped(&twins)), "twice");
    assert_problem(load(&twins), "twice");
    // Writers refuse to make such a file, so one name is patched into another.
    let files = package(&minimal(), &[file("aa.json", "{}"), file("ab.json", "{}")]);
    let bytes = zipped(&files);
    let mut twice = bytes.clone();
    for at in 0..twice.len() - 7 {
        if &bytes[at..at + 7] == b"ab.json" {
            twice[at + 1] = b'a';
        }
    }
    assert_problem(Adapter::from_zip(&twice), "same name");
}

#[test]
fn l27_links_in_a_zip_are_refused() {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.add_symlink("index.json", "/etc/passwd", SimpleFileOptions::default())
        .unwrap();
    let bytes = zip.finish().unwrap().into_inner();
    assert_problem(Adapter::from_zip(&bytes), "is a link");
}

#[test]
fn links_and_devices_in_a_folder_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("index.json")).unwrap();
    assert_problem(Adapter::from_folder(folder.path()), "not a regular file");
    assert_problem(
        Adapter::from_folder(&folder.path().join("missing")),
        "cannot be listed",
    );
}

#[test]
fn l27_a_zip_bomb_is_refused_without_being_unpacked() {
    let zeros = vec![b' '; usize::try_from(MAX_FILE).unwrap() + 1];
    let one = package(&minimal(), &[file("big.json", zeros.clone())]);
    let bytes = zipped(&one);
    assert!(bytes.len() < 100_000, "it packs well");
    assert_problem(Adapter::from_zip(&bytes), "big.json# is longer than 4 MiB");
    let four_mebibytes = &zeros[..usize::try_from(MAX_FILE).unwrap()];
    let mut many = package(&minimal(), &[]);
    many.extend((0..5).map(|n| file(&format!("{n}.json"), four_mebibytes)));
    assert_problem(
        Adapter::from_zip(&zipped(&many)),
        "longer than 16 MiB unpacked",
    );
    let mut too_many = package(&minimal(), &[]);
    too_many.extend((0..2000).map(|n| file(&format!("{n}.json"), "{}")));
    assert_problem(
        Adapter::from_zip(&zipped(&too_many)),
        "more than 2000 files",
    );
    let packed = vec![0; usize::try_from(MAX_PACKED).unwrap() + 1];
    assert_problem(Adapter::from_zip(&packed), "longer than 16 MiB packed");
}

#[test]
fn l27_a_size_that_lies_does_not_help() {
    let zeros = vec![b' '; usize::try_from(MAX_FILE).unwrap()];
    let too_long = [zeros.as_slice(), b" 1"].concat();
    // Right in everything else, so that only the limit can refuse it.
    let files = package(&minimal(), &[file("big.json", too_long.clone())]);
    let mut bytes = zipped(&files);
    // The unpacked size stands in the local and in the central header.
    let size = u32::try_from(too_long.len()).unwrap().to_le_bytes();
    let mut patched = 0;
    for at in 0..bytes.len() - 4 {
        if bytes[at..at + 4] == size {
            bytes[at..at + 4].copy_from_slice(&10_u32.to_le_bytes());
            patched += 1;
        }
    }
    assert!(patched >= 1);
    let problems = problems(Adapter::from_zip(&bytes));
    let refused = |problem: &String| {
        problem.starts_with("big.json# is longer")
            || problem.starts_with("big.json# cannot be read")
    };
    assert!(problems.iter().any(refused), "{problems:?}");
}

#[test]
fn what_is_no_zip_is_refused() {
    assert_problem(Adapter::from_zip(b""), "not a zip file");
    assert_problem(
        Adapter::from_zip(b"PK\x03\x04 not really"),
        "not a zip file",
    );
}

#[test]
fn problems_are_readable_in_one_sentence() {
    let error = load(&package(&with("/agent/name", Value::Null), &[])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the adapter package is not valid: index.json#/agent/name is missing"
    );
}

#[test]
fn versions_compare_as_numbers() {
    let version = |text: &str| text.parse::<Version>().unwrap();
    assert!(version("0.2.10") > version("v0.2.9"));
    for bad in [
        "",
        "1",
        "1.2",
        "1.2.3.4",
        "1.2.x",
        "1..3",
        "+1.2.3",
        "V1.2.3",
        "1.2.3-rc1",
    ] {
        assert!(bad.parse::<Version>().is_err(), "{bad}");
    }
    let adapter = |text: &str| text.parse::<AdapterVersion>().unwrap();
    assert!(adapter("1.10") > adapter("1.9"));
    assert!(adapter("1.0.1") > adapter("1"));
    assert_eq!(adapter("1.0"), adapter("1"));
    for bad in ["", "a", "1.", ".1", "1.-2", "1.2b"] {
        assert!(bad.parse::<AdapterVersion>().is_err(), "{bad}");
    }
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_and_damaged_zips_never_panic(
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
        at in 0..600_usize,
        to in proptest::num::u8::ANY,
    ) {
        let _ = Adapter::from_zip(&bytes);
        let mut damaged = zipped(&package(&minimal(), &[file("a.json", "{}")]));
        if let Some(byte) = damaged.get_mut(at) {
            *byte = to;
        }
        let _ = Adapter::from_zip(&damaged);
    }
}
