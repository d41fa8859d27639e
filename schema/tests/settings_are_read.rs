//! Every key has a reader.

use std::collections::BTreeSet;
use std::path::Path;

use schema::config::KEYS;

/// The constant of a key, as readers name it.
fn constant(key: &str) -> String {
    let (section, name) = key.split_once('.').unwrap_or(("keys", key));
    format!("{section}::{}", name.to_uppercase())
}

/// Adds what the program, its tests aside, reads: the last two names of each `….get(&section::NAME)`.
fn collect(directory: &Path, read: &mut BTreeSet<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "tests" {
            collect(&path, read)?;
        }
        if path.extension().is_none_or(|end| end != "rs") || name.contains("test") {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        let program = text.split("\nmod tests {").next().unwrap_or_default();
        for call in program.split(".get(&").skip(1) {
            let setting = call.split(')').next().unwrap_or_default();
            let mut names = setting.rsplit("::");
            if let (Some(name), Some(section)) = (names.next(), names.next()) {
                read.insert(format!("{section}::{name}"));
            }
        }
    }
    Ok(())
}

#[test]
fn every_key_has_a_reader() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut read = BTreeSet::new();
    for part in ["schema/src", "reconcilers/src", "api/src", "src"] {
        collect(&root.join(part), &mut read).unwrap();
    }
    for def in KEYS.values() {
        assert!(
            read.contains(&constant(def.key)),
            "nothing reads {}",
            def.key
        );
    }
}
