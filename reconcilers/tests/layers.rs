//! Folders of this crate are layers: none imports one that imports it.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What each folder or file below `src` imports of the others.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The first part of every `crate::…` path in code; comments and documentation may name anything.
fn imports(text: &str) -> BTreeSet<String> {
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code: String = code.collect::<Vec<_>>().join("\n");
    let paths = code.split("crate::").skip(1).map(|path| {
        assert!(
            !path.starts_with('{'),
            "name one folder an import: {path:.60}"
        );
        let end = path.find(|c: char| !c.is_alphanumeric() && c != '_');
        path[..end.unwrap_or(path.len())].to_owned()
    });
    paths.collect()
}

fn read(place: &Path, module: &str, all: &mut Imports) {
    for entry in std::fs::read_dir(place).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let module = if module.is_empty() { &name } else { module };
        if path.is_dir() {
            read(&path, module, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let found = imports(&std::fs::read_to_string(&path).unwrap());
            all.entry(module.to_owned()).or_default().extend(found);
        }
    }
}

/// Takes away whatever imports nothing that is left, until nothing or a circle is left.
fn circle(mut all: Imports) -> Imports {
    loop {
        let left: BTreeSet<String> = all.keys().cloned().collect();
        for (module, found) in &mut all {
            found.retain(|name| name != module && left.contains(name));
        }
        let before = all.len();
        all.retain(|_, found| !found.is_empty());
        if all.len() == before {
            return all;
        }
    }
}

#[test]
fn no_folder_imports_one_that_imports_it() {
    let mut all = Imports::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    read(&source, "", &mut all);
    assert!(
        all["container"].contains("shared"),
        "imports are found: {all:?}"
    );
    assert_eq!(circle(all), Imports::new(), "these import each other");
}

#[test]
fn a_circle_is_found_and_what_leads_to_it_is_named() {
    let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let all: Imports = [
        (
            "a".to_owned(),
            imports("use crate::b::{C, D};\n// crate::x"),
        ),
        (
            "b".to_owned(),
            imports("fn f() { crate::low(); crate::a::g() }"),
        ),
        ("low".to_owned(), of(&[])),
    ]
    .into();
    let expected: Imports = [("a".to_owned(), of(&["b"])), ("b".to_owned(), of(&["a"]))].into();
    assert_eq!(circle(all), expected);
}
