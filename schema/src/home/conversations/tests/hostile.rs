use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

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

/// Entry that an agent may plant in the place of a file.
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
        folder.entries().unwrap_err(),
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
    assert_eq!((tail.skipped, tail.earlier), (4, false));
    yard.append(&["5"]).unwrap();
    let tail = yard.tail(12);
    assert_eq!(lines(&tail), ["4", "5"]);
    assert_eq!(tail.skipped, 1, "what a loss of power has left");
}

#[test]
fn lines_without_news_end_the_reading() {
    let yard = Yard::new();
    let line = "{\"id\":1}\n";
    yard.write_entries(line.repeat(LONGEST as usize / line.len()));
    let mut seen = 0;
    let entries = yard.open().entries().unwrap().unwrap();
    let scan = entries.read_newest(u64::MAX, |_, _| {
        seen += 1;
        Verdict::Readable
    });
    assert!(scan.unwrap().is_damaged());
    assert_eq!(seen, MOST_LINES);
}

#[rstest]
fn unreadable_lines_end_the_reading(#[values("1\n", "\n")] line: &str) {
    let yard = Yard::new();
    let junk = line.repeat(LONGEST as usize / line.len() - 100);
    yard.write_entries(format!("{{\"id\":1}}\n{junk}{{\"id\":2}}\n"));
    let (mut readable, mut seen) = (0, 0);
    let entries = yard.open().entries().unwrap().unwrap();
    let scan = entries.read_newest(u64::MAX, |_, line| {
        seen += 1;
        match line.starts_with('{') {
            true => {
                readable += 1;
                Verdict::Readable
            }
            false => Verdict::Unreadable,
        }
    });
    let scan = scan.unwrap();
    assert_eq!(scan.skipped, MOST_UNREADABLE + 1);
    assert!(scan.ended_early && scan.is_damaged());
    assert_eq!(readable, 1);
    assert!(seen <= MOST_UNREADABLE + 2, "{seen}");
    // Nothing is removed behind them.
    let length = entries.length();
    yard.hold().compact_entries().unwrap();
    assert_eq!(yard.open().entries().unwrap().unwrap().length(), length);
}

#[test]
fn reading_ends_when_no_more_is_needed() {
    let yard = Yard::new();
    yard.write_entries("1\n2\n3\n");
    let entries = yard.open().entries().unwrap().unwrap();
    let mut seen = Vec::new();
    let scan = entries.read_newest(u64::MAX, |_, line| {
        seen.push(line.to_owned());
        match line {
            "2" => Verdict::Enough,
            _ => Verdict::Readable,
        }
    });
    assert!(scan.unwrap().ended_early);
    assert_eq!(seen, ["3", "2"]);
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
    refused(yard.append(&["2"]).unwrap_err());
    let tail = yard.tail(4096);
    assert_eq!((lines(&tail), tail.earlier), (vec!["7"], true));
}

#[test]
fn entries_that_the_agent_replaces_are_written_by_name() {
    let yard = Yard::new();
    let mut held = yard.hold();
    held.append_lines(&["1".to_owned()]).unwrap();
    fs::rename(yard.file("entries.jsonl"), yard.at("moved")).unwrap();
    yard.write_entries("agent\n");
    held.append_lines(&["2".to_owned()]).unwrap();
    assert_eq!(lines(&yard.all()), ["agent", "2"]);
    assert_eq!(fs::read_to_string(yard.at("moved")).unwrap(), "1\n");
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
        let count = whole.len();
        prop_assert_eq!(before.lines.len() + before.skipped, count);
        let part = yard.tail(most);
        prop_assert!(before.lines.ends_with(&part.lines));
        yard.append(&["{}"]).unwrap();
        let after = yard.all();
        prop_assert_eq!(after.lines.last().map(String::as_str), Some("{}"));
        let repaired = usize::from(!unfinished.is_empty());
        prop_assert_eq!(after.lines.len() + after.skipped, count + repaired + 1);
    }
}

/// Stops the other thread also when an assertion fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn swapped_entries_never_lead_outside() {
    let yard = Yard::new();
    yard.append(&["1"]).unwrap();
    let (entries, other) = (yard.file("entries.jsonl"), yard.file("other"));
    symlink(yard.outside().join("secret"), &other).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let exchange = rustix::fs::RenameFlags::EXCHANGE;
            while !is_done.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &entries, CWD, &other, exchange).unwrap();
            }
        });
        let _stop = StopOnDrop(&is_done);
        let (mut done, mut refused) = (0, 0);
        while done < 100 || refused < 100 {
            let outcomes = [
                yard.append(&["{}"]),
                read_tail(&yard.open(), 1000).map(|tail| {
                    assert!(!tail.lines.contains(&"secret".to_owned()));
                }),
            ];
            for outcome in outcomes {
                match outcome {
                    Ok(()) => done += 1,
                    Err(FileError::Link { .. }) => refused += 1,
                    Err(error) => panic!("{error:?}"),
                }
            }
        }
    });
    yard.assert_outside_is_untouched();
}
