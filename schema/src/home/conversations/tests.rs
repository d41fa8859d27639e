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
        self.hold().append(&lines)
    }

    fn write_entries(&self, content: impl AsRef<[u8]>) {
        fs::write(self.file("entries.jsonl"), content).unwrap();
    }

    fn all(&self) -> Tail {
        self.open().read_tail(u64::MAX).unwrap()
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

fn lines(tail: &Tail) -> Vec<&str> {
    tail.lines.iter().map(String::as_str).collect()
}

fn make_fifo(path: &std::path::Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
}

/// A link or another file in the place of a directory.
fn is_no_directory(error: &FileError) -> bool {
    matches!(
        error,
        FileError::Link { .. } | FileError::NotADirectory { .. }
    )
}

/// What an agent may put in the place of a file.
#[derive(Debug, Clone, Copy)]
enum Planted {
    Link,
    Fifo,
    HardLink,
    Directory,
    Socket,
}

impl Planted {
    fn put(self, yard: &Yard, path: &std::path::Path) {
        let _ = fs::remove_file(path);
        let secret = yard.outside().join("secret");
        match self {
            Self::Link => symlink(secret, path).unwrap(),
            Self::Fifo => make_fifo(path),
            Self::HardLink => {
                let other = yard.at("other-name");
                fs::write(&other, "{\"title\":\"other\"}\n").unwrap();
                fs::hard_link(other, path).unwrap();
            }
            Self::Directory => fs::create_dir(path).unwrap(),
            Self::Socket => drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
        }
    }

    fn is_refusal(self, error: &FileError) -> bool {
        match self {
            Self::Link => matches!(error, FileError::Link { .. }),
            _ => matches!(error, FileError::NotAFile { .. }),
        }
    }
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
    held.append(&["{\"a\":1}".to_owned(), "2".to_owned()])
        .unwrap();
    held.append(&[]).unwrap();
    held.append(&["\"é\"".to_owned()]).unwrap();
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
    let gone = held.append(&["1".to_owned()]);
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
fn six_hundred_folders_are_listed_in_part_and_no_more_made() {
    let yard = Yard::empty();
    for number in 0..600 {
        let folder = yard.at("conversations").join(format!("{number:032}"));
        fs::create_dir_all(&folder).unwrap();
        let used = Timestamp::from_secs(NOW.as_secs() + number);
        let content = Meta {
            last_used_at: used,
            ..meta("x")
        };
        let content = serde_json::to_vec(&content).unwrap();
        fs::write(folder.join("meta.json"), content).unwrap();
    }
    let listed = yard.work.list_conversations().unwrap();
    assert_eq!((listed.conversations.len(), listed.left_out), (500, 100));
    assert_eq!(listed.conversations[0].0.as_str(), format!("{:032}", 599));
    let refused = yard.work.create_conversation(&id(), &meta("x"));
    assert!(matches!(
        refused,
        Err(FileError::TooManyConversations { limit: 500 })
    ));
    for number in 0..101 {
        let id = format!("{number:032}").parse().unwrap();
        assert!(yard.work.remove_conversation(&id).unwrap());
    }
    yard.work.create_conversation(&id(), &meta("x")).unwrap();
}

#[test]
fn flooded_directory_is_listed_in_bounded_steps() {
    let yard = Yard::new();
    for number in 0..10_050 {
        fs::File::create(yard.at(&format!("conversations/{number}"))).unwrap();
    }
    let listed = yard.work.list_conversations().unwrap();
    assert!(listed.conversations.len() <= 1);
    let other = ConversationId::new();
    let refused = yard.work.create_conversation(&other, &meta("x"));
    assert!(matches!(
        refused,
        Err(FileError::TooManyConversations { .. })
    ));
    assert!(yard.work.open_conversation(&id()).unwrap().is_some());
}

#[test]
fn link_in_place_of_conversations_is_not_followed() {
    let yard = Yard::empty();
    fs::create_dir(yard.data.path().join("elsewhere")).unwrap();
    let folder = yard.data.path().join("elsewhere").join(ID);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("entries.jsonl"), "secret\n").unwrap();
    symlink(yard.data.path().join("elsewhere"), yard.at("conversations")).unwrap();
    let refused = |error: FileError| assert!(is_no_directory(&error), "{error:?}");
    refused(yard.work.list_conversations().unwrap_err());
    refused(yard.work.open_conversation(&id()).unwrap_err());
    refused(yard.work.hold_conversation(&id()).unwrap_err());
    refused(yard.work.remove_conversation(&id()).unwrap_err());
    refused(yard.work.rename_conversation(&id(), "x").unwrap_err());
    let other = ConversationId::new();
    refused(
        yard.work
            .create_conversation(&other, &meta("x"))
            .unwrap_err(),
    );
    assert!(folder.join("entries.jsonl").exists());
    let left = fs::read_dir(yard.data.path().join("elsewhere")).unwrap();
    assert_eq!(left.count(), 1);
}

#[test]
fn link_in_place_of_folder_is_not_followed() {
    let yard = Yard::empty();
    fs::create_dir(yard.at("conversations")).unwrap();
    let place = yard.at("conversations").join(ID);
    symlink(yard.outside(), &place).unwrap();
    let opened = yard.work.open_conversation(&id()).unwrap_err();
    assert!(is_no_directory(&opened), "{opened:?}");
    let held = yard.work.hold_conversation(&id()).unwrap_err();
    assert!(is_no_directory(&held), "{held:?}");
    let made = yard.work.create_conversation(&id(), &meta("x"));
    assert!(matches!(made, Err(FileError::Exists { .. })), "{made:?}");
    let renamed = yard.work.rename_conversation(&id(), "x").unwrap_err();
    assert!(is_no_directory(&renamed), "{renamed:?}");
    yard.assert_outside_is_untouched();
    assert!(yard.work.remove_conversation(&id()).unwrap());
    assert!(fs::symlink_metadata(&place).is_err());
    yard.assert_outside_is_untouched();
    make_fifo(&place);
    let opened = yard.work.open_conversation(&id());
    assert!(matches!(opened, Err(FileError::NotADirectory { .. })));
}

#[rstest]
fn planted_entries_are_neither_read_nor_written(
    #[values(
        Planted::Link,
        Planted::Fifo,
        Planted::HardLink,
        Planted::Directory,
        Planted::Socket
    )]
    planted: Planted,
) {
    let yard = Yard::new();
    planted.put(&yard, &yard.file("entries.jsonl"));
    let folder = yard.open();
    let errors = [
        folder.read_tail(1000).unwrap_err(),
        folder.read_lines(|_| ()).unwrap_err(),
        yard.append(&["1"]).unwrap_err(),
    ];
    for error in errors {
        assert!(planted.is_refusal(&error), "{error:?}");
    }
    let other = fs::read_to_string(yard.at("other-name"));
    assert!(!other.unwrap_or_default().contains('1'));
    yard.assert_outside_is_untouched();
}

#[rstest]
fn planted_meta_is_not_read_and_is_replaced(
    #[values(Planted::Link, Planted::Fifo, Planted::HardLink, Planted::Socket)] planted: Planted,
) {
    let yard = Yard::new();
    planted.put(&yard, &yard.file("meta.json"));
    let listed = yard.work.list_conversations().unwrap();
    assert_eq!(listed.conversations.len(), 1);
    assert_eq!(listed.conversations[0].1.title, "");
    let renamed = yard.work.rename_conversation(&id(), "new").unwrap();
    assert_eq!(renamed.unwrap().title, "new");
    assert_eq!(yard.open().meta().title, "new");
    let other = fs::read_to_string(yard.at("other-name"));
    assert!(!other.unwrap_or_default().contains("new"));
    yard.assert_outside_is_untouched();
}

#[test]
fn directory_in_place_of_meta_is_refused() {
    let yard = Yard::new();
    Planted::Directory.put(&yard, &yard.file("meta.json"));
    assert_eq!(yard.open().meta().title, "");
    let renamed = yard.work.rename_conversation(&id(), "new");
    assert!(matches!(renamed, Err(FileError::NotAFile { .. })));
    let names = fs::read_dir(yard.file("")).unwrap();
    assert_eq!(names.count(), 1, "nothing half written is left");
}

#[rstest]
#[case::huge(format!("{{\"title\":\"x\",\"more\":\"{}\"}}", "a".repeat(1 << 20)))]
#[case::other("[1,2]".to_owned())]
#[case::empty(String::new())]
#[case::nul("\0\0\0".to_owned())]
#[case::times("{\"title\":\"x\",\"created_at\":1,\"last_used_at\":2}".to_owned())]
#[case::deep("[".repeat(10_000))]
fn unreadable_meta_leaves_times_of_folder(#[case] content: String) {
    let yard = Yard::new();
    fs::write(yard.file("meta.json"), content).unwrap();
    fs::File::open(yard.file(""))
        .unwrap()
        .set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000))
        .unwrap();
    let at = Timestamp::from_secs(1_000_000);
    let expected = Meta {
        title: String::new(),
        created_at: at,
        last_used_at: at,
    };
    let listed = yard.work.list_conversations().unwrap();
    assert_eq!(listed.conversations, [(id(), expected.clone())]);
    assert_eq!(yard.open().meta(), expected);
}

#[test]
fn meta_with_unknown_fields_and_hostile_title_is_cleaned() {
    let yard = Yard::new();
    let title = format!("\\u0007a\\n{}", "b".repeat(300));
    let content = format!(
        "{{\"title\":\"{title}\",\"created_at\":\"2026-05-11T11:46:40Z\",\"last_used_at\":\"2026-05-11T11:46:40Z\",\"x\":[1]}}"
    );
    fs::write(yard.file("meta.json"), content).unwrap();
    let found = yard.open().meta();
    assert_eq!(found.title, format!("a {}", "b".repeat(197)));
    assert_eq!(found.created_at, NOW);
}

#[test]
fn unfinished_line_is_left_out_and_repaired_by_append() {
    let yard = Yard::new();
    yard.write_entries("1\n{\"cut");
    assert_eq!(lines(&yard.all()), ["1"]);
    yard.append(&["2", "3"]).unwrap();
    assert_eq!(lines(&yard.all()), ["1", "{\"cut", "2", "3"]);
    yard.append(&["4"]).unwrap();
    let content = fs::read_to_string(yard.file("entries.jsonl")).unwrap();
    assert_eq!(content, "1\n{\"cut\n2\n3\n4\n");
}

#[test]
fn damaged_lines_are_skipped_and_counted() {
    let yard = Yard::new();
    let mut content = b"1\n\n".to_vec();
    content.extend(vec![b'x'; 2 * 1024 * 1024]);
    content.extend(b"\n2\n\xff\xfe\n3\n\0\0\0\n");
    content.extend(vec![b'y'; LINE]);
    content.extend(b"\n4\n\0\0\0\0");
    yard.write_entries(&content);
    let tail = yard.all();
    let long = "y".repeat(LINE);
    assert_eq!(lines(&tail), ["1", "2", "3", &long, "4"]);
    assert_eq!((tail.skipped, tail.earlier), (3, false));
    let mut seen = Vec::new();
    let skipped = yard.open().read_lines(|line| seen.push(line.to_owned()));
    assert_eq!((skipped.unwrap(), &seen), (3, &tail.lines));
    yard.append(&["5"]).unwrap();
    let tail = yard.open().read_tail(12).unwrap();
    assert_eq!(lines(&tail), ["4", "5"]);
    assert_eq!(tail.skipped, 1, "what a loss of power has left");
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
        let tail = yard.open().read_tail(most).unwrap();
        assert_eq!(lines(&tail), expected, "{most}");
        assert_eq!(tail.earlier, earlier, "{most}");
    }
}

#[test]
fn tail_of_millions_of_short_lines_is_bounded() {
    let yard = Yard::new();
    yard.write_entries("1\n".repeat(60_000));
    let tail = yard.all();
    assert_eq!((tail.lines.len(), tail.earlier), (50_000, true));
    assert_eq!(yard.open().read_tail(100_000).unwrap().lines.len(), 50_000);
}

#[test]
fn file_longer_than_the_limit_is_refused_or_read_at_its_end() {
    let yard = Yard::new();
    yard.write_entries("1\n");
    let file = fs::File::options();
    let file = file.clone().write(true).open(yard.file("entries.jsonl"));
    let file = file.unwrap();
    file.write_all_at(b"\n7\n", 10 * LONGEST).unwrap();
    let refused = |error: FileError| {
        assert!(
            matches!(error, FileError::TooLarge { limit: LONGEST, .. }),
            "{error:?}"
        );
    };
    refused(yard.open().read_lines(|_| ()).unwrap_err());
    refused(yard.append(&["2"]).unwrap_err());
    let tail = yard.open().read_tail(4096).unwrap();
    assert_eq!((lines(&tail), tail.earlier), (vec!["7"], true));
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
        held.append(std::slice::from_ref(&line)).unwrap();
    }
    let before = fs::metadata(yard.file("entries.jsonl")).unwrap().len();
    let refused = held.append(&[line.clone(), "1".to_owned()]);
    assert!(matches!(refused, Err(FileError::TooLarge { .. })));
    let after = fs::metadata(yard.file("entries.jsonl")).unwrap().len();
    assert_eq!(after, before);
    held.append(&["1".to_owned()]).unwrap();
}

#[test]
fn entries_that_the_agent_replaces_are_written_by_name() {
    let yard = Yard::new();
    let mut held = yard.hold();
    held.append(&["1".to_owned()]).unwrap();
    fs::rename(yard.file("entries.jsonl"), yard.at("moved")).unwrap();
    yard.write_entries("agent\n");
    held.append(&["2".to_owned()]).unwrap();
    assert_eq!(lines(&yard.all()), ["agent", "2"]);
    assert_eq!(fs::read_to_string(yard.at("moved")).unwrap(), "1\n");
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

#[rstest]
fn planted_file_is_not_opened(
    #[values(
        Planted::Link,
        Planted::Fifo,
        Planted::HardLink,
        Planted::Directory,
        Planted::Socket
    )]
    planted: Planted,
) {
    let yard = Yard::new();
    fs::create_dir(yard.file("files")).unwrap();
    planted.put(&yard, &yard.file("files/secret"));
    let folder = yard.open();
    let error = folder.open_file("secret").unwrap_err();
    assert!(planted.is_refusal(&error), "{error:?}");
    let placed = folder.place_file("secret", &yard.received(b"x"));
    assert!(matches!(placed, Err(FileError::Exists { .. })));
    yard.assert_outside_is_untouched();
}

#[test]
fn link_in_place_of_files_is_not_followed() {
    let yard = Yard::new();
    symlink(yard.outside(), yard.file("files")).unwrap();
    let folder = yard.open();
    let opened = folder.open_file("secret").unwrap_err();
    assert!(is_no_directory(&opened), "{opened:?}");
    let placed = folder.place_file("new", &yard.received(b"x")).unwrap_err();
    assert!(is_no_directory(&placed), "{placed:?}");
    yard.assert_outside_is_untouched();
    assert!(yard.work.remove_conversation(&id()).unwrap());
    yard.assert_outside_is_untouched();
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_read_and_added_to(content in prop::collection::vec(
        prop_oneof![Just(b'\n'), Just(0), Just(0xff), any::<u8>()], 0..300,
    ), most in 0_u64..400) {
        let yard = Yard::new();
        yard.write_entries(&content);
        let before = yard.all();
        let whole = content.split(|byte| *byte == b'\n');
        let mut whole: Vec<&[u8]> = whole.collect();
        let unfinished = whole.pop().unwrap_or_default();
        let count = whole.iter().filter(|line| !line.is_empty()).count();
        prop_assert_eq!(before.lines.len() + before.skipped, count);
        let part = yard.open().read_tail(most).unwrap();
        prop_assert!(before.lines.ends_with(&part.lines));
        yard.append(&["{}"]).unwrap();
        let after = yard.all();
        prop_assert_eq!(after.lines.last().map(String::as_str), Some("{}"));
        let repaired = usize::from(!unfinished.is_empty());
        prop_assert_eq!(after.lines.len() + after.skipped, count + repaired + 1);
    }
}
