//! Zip files of skills, and what they are taken in as again.

use proptest::prelude::*;

use super::*;

fn download(yard: &Yard, imported: &Imported) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(
        yard.store
            .write_zip(&imported.name, &imported.digest, &mut bytes)
            .unwrap()
    );
    bytes
}

#[test]
fn a_download_is_the_same_skill_and_the_same_bytes() {
    let yard = Yard::new();
    let imported = yard.import_files(&[("SKILL.md", b"x"), ("b/c", b"y"), ("b/d/e", b"")]);
    let bytes = download(&yard, &imported);
    assert_eq!(download(&yard, &imported), bytes);
    let again = yard.store.import_zip(file_of(&bytes), None).unwrap();
    assert_eq!(
        again,
        Imported {
            already_there: true,
            ..imported.clone()
        }
    );
    let other = Yard::new();
    assert_eq!(download(&other, &other.import(&bytes).unwrap()), bytes);
    let mut nothing = Vec::new();
    assert!(
        !yard
            .store
            .write_zip(&name("other"), &imported.digest, &mut nothing)
            .unwrap()
    );
    assert!(nothing.is_empty());
}

#[test]
fn other_programs_can_read_a_download() {
    let yard = Yard::new();
    let imported = yard.import_files(&[("SKILL.md", b"x"), ("ä/c d", &[7; 10_000])]);
    let path = yard.data.path().join("download.zip");
    fs::write(&path, download(&yard, &imported)).unwrap();
    let script = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\n\
        print([(i.filename, i.external_attr >> 16, i.date_time[0]) for i in z.infolist()])";
    let output = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(
        said.trim(),
        "[('skill/SKILL.md', 33188, 1980), ('skill/ä/c d', 33188, 1980)]",
        "{output:?}"
    );
}

#[test]
fn what_other_programs_pack_is_taken_in() {
    let yard = Yard::new();
    let script = r#"
import sys, zipfile, os
top = sys.argv[1]
class Pipe:
    def __init__(self, f): self.f = f
    def write(self, b): return self.f.write(b)
    def flush(self): self.f.flush()
for name, method in (("stored", 0), ("deflated", 8)):
    for streamed in (False, True):
        with open(f"{top}/{name}-{streamed}", "wb") as f:
            with zipfile.ZipFile(Pipe(f) if streamed else f, "w", method) as z:
                z.mkdir("top")
                z.writestr("top/SKILL.md", "---\nname: x\n---\n" * 10)
                z.writestr("top/d/größe", "y")
                with z.open("top/large", "w", force_zip64=True) as large: large.write(b"z" * 300)
                z.comment = b"packed by a test"
"#;
    let output = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(yard.data.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut digests = std::collections::BTreeSet::new();
    for file in [
        "stored-False",
        "stored-True",
        "deflated-False",
        "deflated-True",
    ] {
        let file = File::open(yard.data.path().join(file)).unwrap();
        digests.insert(yard.store.import_zip(file, None).unwrap().digest);
    }
    assert_eq!(digests.len(), 1);
}

#[test]
fn what_packs_too_well_for_a_zip_file_is_not_packed() {
    let yard = Yard::new();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("zeros"), vec![0; 5 << 20]).unwrap();
    for n in 0..50 {
        fs::write(dir.path().join(format!("{n}")), vec![0; 16 << 10]).unwrap();
    }
    let imported = yard
        .store
        .import_dir(open(dir.path()), &name("skill"))
        .unwrap();
    let bytes = download(&yard, &imported);
    assert!(bytes.len() < 6 << 20);
    assert_eq!(yard.import(&bytes).unwrap().digest, imported.digest);
}

fn trees() -> impl Strategy<Value = BTreeMap<String, (bool, Vec<u8>)>> {
    let name = "[a-zäé .~$-]{0,8}[a-z]";
    let path = prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"));
    let content = prop::collection::vec(any::<u8>(), 0..200);
    prop::collection::btree_map(path, (any::<bool>(), content), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_tree_survives_the_way_out_and_in(files in trees()) {
        let yard = Yard::new();
        let dir = tempfile::tempdir().unwrap();
        for (path, (executable, content)) in &files {
            let path = dir.path().join(path);
            // A file may be in the way of a directory.
            if fs::create_dir_all(path.parent().unwrap()).is_ok() && fs::write(&path, content).is_ok() {
                let mode = if *executable { 0o700 } else { 0o600 };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        let imported = yard.store.import_dir(open(dir.path()), &name("skill"));
        // é composed and not, and the like.
        prop_assume!(imported.is_ok());
        let imported = imported.unwrap();
        let found = digest_tree(open(dir.path()), TreeLimits::LARGEST).unwrap().unwrap();
        prop_assert_eq!(&found.digest, &imported.digest);
        let other = Yard::new();
        let again = other.import(&download(&yard, &imported)).unwrap();
        prop_assert_eq!(again, imported.clone());
        prop_assert_eq!(other.tree(&imported), yard.tree(&imported));
    }
}
