//! A conversation's file that a hostile agent has written is read within bounds, and is the same when it is written again.
#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use schema::home::Homes;
use schema::home::conversations::{ConversationId, Folder, Meta};
use schema::ids::{Timestamp, Uid};
use tempfile::TempDir;

struct Conversation {
    _data: TempDir,
    folder: Folder,
    file: PathBuf,
}

static CONVERSATION: LazyLock<Conversation> = LazyLock::new(|| {
    // Without a disk where that is possible.
    let data = tempfile::tempdir_in(Path::new("/dev/shm"))
        .or_else(|_| tempfile::tempdir())
        .unwrap();
    let homes = Homes::open(data.path(), "instance-1").unwrap();
    let (name, uid) = ("alice".parse().unwrap(), Uid::from("a".repeat(32)));
    homes.ensure(&name, &uid, None).unwrap();
    let workspace = homes.workspace(&name, &uid).unwrap().unwrap();
    let id = ConversationId::new();
    let meta = Meta {
        title: String::new(),
        created_at: Timestamp::default(),
        last_used_at: Timestamp::default(),
    };
    workspace.create_conversation(&id, &meta).unwrap();
    let folder = workspace.open_conversation(&id).unwrap().unwrap();
    let file = format!("users/alice/.agent/workspace/conversations/{id}/entries.jsonl");
    let file = data.path().join(file);
    Conversation {
        _data: data,
        folder,
        file,
    }
});

fuzz_target!(|bytes: &[u8]| {
    let conversation = &*CONVERSATION;
    fs::write(&conversation.file, bytes).unwrap();
    let entries = conversation.folder.entries().unwrap().unwrap();
    assert_eq!(entries.length(), bytes.len() as u64);
    api::fuzzing::check_conversation_entries(&entries);
});
