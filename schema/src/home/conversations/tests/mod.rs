mod compact;
mod hostile;

use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt, symlink};
use std::path::PathBuf;

use proptest::prelude::*;
use rstest::rstest;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::*;
use crate::home::Homes;
use crate::ids::{Timestamp, Uid};

const ID: &str = "019ac4d27f6e7c13a3d5c0a7b1c2d3e4";
const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);

/// A workspace with a conversation, and a secret outside of it.
struct Yard {
    data: TempDir,
    work: Workspace,
}

impl Yard {
    fn new() -> Self {
        let yard = Self::empty();
        yard.work
            .create_conversation(&id(), &meta("first"))
            .unwrap();
        yard
    }

    fn empty() -> Self {
        let data = tempfile::tempdir().unwrap();
        let homes = Homes::open_with(data.path(), "instance-1", None).unwrap();
        let (name, uid) = ("alice".parse().unwrap(), Uid::from("a".repeat(32)));
        homes.ensure(&name, &uid, None).unwrap();
        let work = homes.workspace(&name, &uid).unwrap().unwrap();
        fs::create_dir(data.path().join("outside")).unwrap();
        fs::write(data.path().join("outside/secret"), "secret\n").unwrap();
        Self { data, work }
    }

    fn at(&self, path: &str) -> PathBuf {
        let workspace = self.data.path().join("users/alice/.agent/workspace");
        workspace.join(path)
    }

    /// A path in the folder of the conversation.
    fn file(&self, name: &str) -> PathBuf {
        self.at("conversations").join(ID).join(name)
    }

    fn outside(&self) -> PathBuf {
        self.data.path().join("outside")
    }

    fn assert_outside_is_untouched(&self) {
        let names = fs::read_dir(self.outside()).unwrap();
        assert_eq!(names.count(), 1);
        let secret = fs::read_to_string(self.outside().join("secret"));
        assert_eq!(secret.unwrap(), "secret\n");
    }

    fn open(&self) -> Folder {
        self.work.open_conversation(&id()).unwrap().unwrap()
    }

    fn hold(&self) -> HeldFolder {
        match self.work.hold_conversation(&id()).unwrap() {
            Held::Here(folder) => folder,
            other => panic!("{other:?}"),
        }
    }

    fn append(&self, lines: &[&str]) -> Result<(), FileError> {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        self.hold().append_lines(&lines)
    }

    fn write_entries(&self, content: impl AsRef<[u8]>) {
        fs::write(self.file("entries.jsonl"), content).unwrap();
    }

    fn all(&self) -> Tail {
        self.tail(u64::MAX)
    }

    fn tail(&self, most: u64) -> Tail {
        read_tail(&self.open(), most).unwrap()
    }

    fn received(&self, content: &[u8]) -> crate::home::workspace::Received {
        let mut incoming = self.work.incoming().unwrap();
        incoming.write(content).unwrap();
        incoming.finish().unwrap()
    }
}

fn id() -> ConversationId {
    ID.parse().unwrap()
}

fn meta(title: &str) -> Meta {
    Meta {
        title: title.to_owned(),
        created_at: NOW,
        last_used_at: NOW,
    }
}

/// The newest lines, the oldest first.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tail {
    lines: Vec<String>,
    skipped: usize,
    earlier: bool,
}

fn read_tail(folder: &Folder, most: u64) -> Result<Tail, FileError> {
    let mut lines = Vec::new();
    let Some(entries) = folder.entries()? else {
        return Ok(Tail::default());
    };
    let scan = entries.read_newest(most, |place, line| {
        assert_eq!(entries.read_line(place).as_deref(), Some(line));
        lines.push(line.to_owned());
        Verdict::Readable
    })?;
    lines.reverse();
    Ok(Tail {
        lines,
        skipped: scan.skipped,
        earlier: scan.ended_early,
    })
}

fn lines(tail: &Tail) -> Vec<&str> {
    tail.lines.iter().map(String::as_str).collect()
}

#[test]
fn id_is_one_plain_name() {
    let fresh = ConversationId::new();
    assert_eq!(fresh.as_str().parse::<ConversationId>().unwrap(), fresh);
    assert_ne!(ConversationId::new(), fresh);
    let hyphenated = "019ac4d2-7f6e-7c13-a3d5-c0a7b1c2d3e4";
    for good in [ID, hyphenated, &"a".repeat(26), &"-".repeat(36)] {
        assert_eq!(good.parse::<ConversationId>().unwrap().as_str(), good);
        let json = format!("{good:?}");
        let read: ConversationId = serde_json::from_str(&json).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), json);
    }
    let traversal = format!("../{ID}");
    for bad in [
        "",
        ".",
        "..",
        &"a".repeat(25),
        &"a".repeat(37),
        &"A".repeat(32),
        &traversal[..32],
        &"é".repeat(15),
        "019ac4d27f6e7c13a3d5c0a7b1c2d3e/",
        "019ac4d27f6e7c13a3d5c0a7b1c2d3e.",
        "019ac4d27f6e7c13a3d5c0a7b1c2d3e\n",
        "019ac4d27f6e7c13a3d5c0a7b1c2d3e\0",
    ] {
        assert!(bad.parse::<ConversationId>().is_err(), "{bad:?}");
        assert!(serde_json::from_value::<ConversationId>(bad.into()).is_err());
    }
}

#[test]
fn title_is_cleaned() {
    for (text, expected) in [
        ("", ""),
        (" a \t b\r\nc ", "a   b  c"),
        ("\x1b[2Jx\0", "[2Jx"),
        ("a\u{202e}b\u{2066}c\u{feff}", "abc"),
        ("a\u{2028}b", "a b"),
        ("👩\u{200d}🔬 你好", "👩\u{200d}🔬 你好"),
    ] {
        assert_eq!(clean_title(text), expected, "{text:?}");
    }
    assert_eq!(clean_title(&"你".repeat(201)), "你".repeat(200));
}

#[test]
fn workspace_without_conversations_lists_none() {
    let yard = Yard::empty();
    assert_eq!(yard.work.list_conversations().unwrap(), Listed::default());
    assert!(yard.work.open_conversation(&id()).unwrap().is_none());
    assert!(matches!(
        yard.work.hold_conversation(&id()).unwrap(),
        Held::Missing
    ));
    assert!(!yard.work.remove_conversation(&id()).unwrap());
    let renamed = yard.work.rename_conversation(&id(), "x").unwrap();
    assert_eq!(renamed, None);
    assert_eq!(fs::read_dir(yard.at("")).unwrap().count(), 0);
}

#[test]
fn conversation_is_made_used_renamed_and_removed() {
    let yard = Yard::new();
    let again = yard.work.create_conversation(&id(), &meta("x"));
    assert!(matches!(again, Err(FileError::Exists { .. })));
    let mut held = yard.hold();
    held.append_lines(&["{\"a\":1}".to_owned(), "2".to_owned()])
        .unwrap();
    held.append_lines(&[]).unwrap();
    held.append_lines(&["\"é\"".to_owned()]).unwrap();
    assert_eq!(lines(&yard.all()), ["{\"a\":1}", "2", "\"é\""]);
    let later = Timestamp::from_secs(NOW.as_secs() + 5);
    held.write_last_use(later).unwrap();
    let renamed = yard.work.rename_conversation(&id(), " new\ntitle ");
    let expected = Meta {
        title: "new title".to_owned(),
        created_at: NOW,
        last_used_at: later,
    };
    assert_eq!(renamed.unwrap(), Some(expected.clone()));
    assert_eq!(held.meta(), expected);
    let listed = yard.work.list_conversations().unwrap();
    assert_eq!(listed.conversations, [(id(), expected)]);
    assert!(yard.work.remove_conversation(&id()).unwrap());
    assert!(!yard.file("").exists());
    assert!(!yard.at(".trash").exists());
    let gone = held.append_lines(&["1".to_owned()]);
    assert!(matches!(gone, Err(FileError::NotFound { .. })), "{gone:?}");
    assert!(matches!(
        yard.work.hold_conversation(&id()).unwrap(),
        Held::Missing
    ));
}

#[test]
fn files_belong_to_owner_of_home() {
    let yard = Yard::empty();
    let home = yard.data.path().join("users/alice");
    std::os::unix::fs::chown(&home, Some(12_345), Some(54_321))
        .expect("this test gives a directory away: run it as root");
    yard.work.create_conversation(&id(), &meta("x")).unwrap();
    yard.append(&["1"]).unwrap();
    yard.open()
        .place_file("a.png", &yard.received(b"a"))
        .unwrap();
    for path in ["", "meta.json", "entries.jsonl", "files", "files/a.png"] {
        let stat = fs::metadata(yard.file(path)).unwrap();
        assert_eq!((stat.uid(), stat.gid()), (12_345, 54_321), "{path}");
    }
    let stat = fs::metadata(yard.at("conversations")).unwrap();
    assert_eq!((stat.uid(), stat.gid()), (12_345, 54_321));
}

#[test]
fn conversation_has_one_holder() {
    let yard = Yard::new();
    let held = yard.hold();
    let second = yard.work.hold_conversation(&id()).unwrap();
    assert!(matches!(second, Held::Elsewhere), "{second:?}");
    assert_eq!(yard.open().meta(), meta("first"), "reading needs no lock");
    drop(held);
    yard.hold();
}

#[test]
fn list_is_sorted_by_last_use_and_skips_what_is_none() {
    let yard = Yard::new();
    let newer: ConversationId = "b".repeat(32).parse().unwrap();
    let used = Meta {
        last_used_at: Timestamp::from_secs(NOW.as_secs() + 1),
        ..meta("second")
    };
    yard.work.create_conversation(&newer, &used).unwrap();
    fs::create_dir(yard.at("conversations/Not-an-id")).unwrap();
    fs::write(yard.at("conversations").join("c".repeat(32)), "file").unwrap();
    symlink(
        yard.outside(),
        yard.at("conversations").join("d".repeat(32)),
    )
    .unwrap();
    let listed = yard.work.list_conversations().unwrap();
    let expected = vec![(newer, used), (id(), meta("first"))];
    assert_eq!(listed.conversations, expected);
    assert_eq!(listed.left_out, 0);
}

#[test]
fn tail_has_whole_lines_of_the_end() {
    let yard = Yard::new();
    assert_eq!(yard.all(), Tail::default());
    yard.write_entries("aaa\nbbb\nccc\n");
    for (most, expected, earlier) in [
        (0, &[][..], true),
        (1, &[], true),
        (3, &[], true),
        (4, &["ccc"], true),
        (7, &["ccc"], true),
        (8, &["bbb", "ccc"], true),
        (11, &["bbb", "ccc"], true),
        (12, &["aaa", "bbb", "ccc"], false),
        (u64::MAX, &["aaa", "bbb", "ccc"], false),
    ] {
        let tail = yard.tail(most);
        assert_eq!(lines(&tail), expected, "{most}");
        assert_eq!(tail.earlier, earlier, "{most}");
    }
}

#[test]
fn append_refuses_what_could_not_be_read() {
    let yard = Yard::new();
    for bad in ["", "a\nb", "a\0"] {
        let refused = yard.append(&["1", bad]);
        assert!(matches!(refused, Err(FileError::Io { .. })), "{bad:?}");
    }
    let long = "x".repeat(LINE + 1);
    let refused = yard.append(&["1", &long]);
    assert!(matches!(refused, Err(FileError::TooLarge { .. })));
    assert!(!yard.file("entries.jsonl").exists());
    let line = "x".repeat(LINE);
    let mut held = yard.hold();
    for _ in 0..63 {
        held.append_lines(std::slice::from_ref(&line)).unwrap();
    }
    let before = fs::metadata(yard.file("entries.jsonl")).unwrap().len();
    let refused = held.append_lines(&[line.clone(), "1".to_owned()]);
    assert!(matches!(refused, Err(FileError::TooLarge { .. })));
    let after = fs::metadata(yard.file("entries.jsonl")).unwrap().len();
    assert_eq!(after, before);
    held.append_lines(&["1".to_owned()]).unwrap();
}

#[test]
fn received_file_is_kept_under_a_free_name() {
    let yard = Yard::new();
    let folder = yard.open();
    let missing = folder.open_file("a.png");
    assert!(matches!(missing, Err(FileError::NotFound { .. })));
    folder
        .place_file("a.png", &yard.received(b"picture"))
        .unwrap();
    let file = folder.open_file("a.png").unwrap();
    let mut piece = [0; 16];
    let read = file.read_at(0, &mut piece).unwrap();
    assert_eq!(&piece[..read], b"picture");
    let again = folder.place_file("a.png", &yard.received(b"other"));
    assert!(matches!(again, Err(FileError::Exists { .. })));
    for bad in ["", ".", "..", "a/b", "../meta.json", "/etc/passwd", "a\0"] {
        let opened = folder.open_file(bad);
        assert!(matches!(opened, Err(FileError::NotFound { .. })), "{bad:?}");
        let placed = folder.place_file(bad, &yard.received(b"x"));
        assert!(matches!(placed, Err(FileError::NotAFile { .. })), "{bad:?}");
    }
    let placed = folder.place_file(&"a".repeat(256), &yard.received(b"x"));
    assert!(matches!(placed, Err(FileError::TooLong { .. })));
    assert_eq!(fs::read_dir(yard.file("files")).unwrap().count(), 1);
}

#[test]
fn whole_file_is_read_up_to_the_limit() {
    let yard = Yard::empty();
    fs::write(yard.at("a.png"), "12345").unwrap();
    let path: WorkspacePath = "a.png".parse().unwrap();
    assert_eq!(yard.work.read_bytes(&path, 5).unwrap(), b"12345");
    let refused = yard.work.read_bytes(&path, 4);
    assert!(matches!(refused, Err(FileError::TooLarge { limit: 4, .. })));
    symlink(yard.outside().join("secret"), yard.at("b.png")).unwrap();
    let path: WorkspacePath = "b.png".parse().unwrap();
    let refused = yard.work.read_bytes(&path, 5);
    assert!(matches!(refused, Err(FileError::Link { .. })));
}
