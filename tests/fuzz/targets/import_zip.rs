//! A zip file of strangers is taken in whole or leaves nothing; what was taken in survives its own download.
#![no_main]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rustix::fs::{MemfdFlags, memfd_create};
use schema::ids::Timestamp;
use schema::skill_store::{ImportError, SkillStore, TreeLimits, digest_tree};
use tempfile::TempDir;

static STORE: LazyLock<(TempDir, SkillStore)> = LazyLock::new(|| {
    // Without a disk where that is possible.
    let data = tempfile::tempdir_in(Path::new("/dev/shm"))
        .or_else(|_| tempfile::tempdir())
        .unwrap();
    let store = SkillStore::open(data.path()).unwrap();
    (data, store)
});

fn file(bytes: &[u8]) -> File {
    let mut file = File::from(memfd_create("package", MemfdFlags::CLOEXEC).unwrap());
    file.write_all(bytes).unwrap();
    file
}

fuzz_target!(|bytes: &[u8]| {
    let (data, store) = &*STORE;
    match store.import_zip(file(bytes), None) {
        Ok(imported) => {
            let (name, digest) = (&imported.name, &imported.digest);
            let dir = store.open_tree(name, digest).unwrap().unwrap();
            let tree = digest_tree(dir, TreeLimits::LARGEST).unwrap().unwrap();
            assert_eq!(&tree.digest, digest);
            let mut download = Vec::new();
            assert!(store.write_zip(name, digest, &mut download).unwrap());
            let again = store.import_zip(file(&download), Some(name)).unwrap();
            assert_eq!(&again.digest, digest);
            let ever = Timestamp::from_millis(i64::MAX);
            assert!(store.remove_unused(name, digest, ever).unwrap());
        }
        Err(ImportError::Refused(refusal)) => assert!(refusal.to_string().chars().count() < 3000),
        Err(ImportError::Store(error)) => panic!("{error:?}"),
    }
    let left = std::fs::read_dir(data.path().join("skills"))
        .unwrap()
        .count();
    assert_eq!(left, 0);
});
