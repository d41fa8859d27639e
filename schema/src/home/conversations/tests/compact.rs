use super::*;
use crate::fault::in_process;
use crate::home::conversations::compact::{GROWTH, SHORTEST};

/// A line of an entry.
fn line(id: u64, text: &str) -> String {
    format!("{{\"id\":{id},\"text\":\"{text}\"}}")
}

/// A conversation with two entries that changed often, a removed one, and damaged lines.
fn changed() -> Yard {
    let yard = Yard::new();
    let mut lines = vec![line(1, "first"), "junk".to_owned()];
    lines.extend((0..33).map(|number| line(2 + number % 2, &number.to_string())));
    lines.push("{\"id\":3,\"removed\":true}".to_owned());
    yard.write_entries(lines.join("\n") + "\n{\"id\":1,\"unfin");
    yard
}

/// The conversation, whose file is to be compacted however short it is.
fn hold(yard: &Yard) -> HeldFolder {
    let mut held = yard.hold();
    held.compact_from = 1;
    held.least_saving = 0;
    held
}

fn size(yard: &Yard) -> u64 {
    fs::metadata(yard.file("entries.jsonl")).unwrap().len()
}

#[test]
fn last_line_of_each_entry_is_kept() {
    let yard = changed();
    let mut held = hold(&yard);
    held.compact_entries().unwrap();
    assert_eq!(lines(&yard.all()), [line(1, "first"), line(2, "32")]);
    held.append_lines(&[line(4, "")]).unwrap();
    assert_eq!(yard.all().lines.len(), 3);
    assert_eq!(fs::read_dir(yard.file("")).unwrap().count(), 2);
    let stat = fs::metadata(yard.file("entries.jsonl")).unwrap();
    assert_eq!(stat.mode() & 0o777, 0o644);
}

#[test]
fn file_is_compacted_when_long_and_after_growth() {
    let yard = Yard::new();
    let mut held = yard.hold();
    held.least_saving = 1_500_000;
    held.compact_entries().unwrap();
    assert!(!yard.file("entries.jsonl").exists());
    let text = "x".repeat(1_000_000);
    let old: Vec<String> = (0..32).map(|id| line(id, &text)).collect();
    held.append_lines(&old).unwrap();
    held.append_lines(&[line(0, &text)]).unwrap();
    let before = size(&yard);
    held.compact_entries().unwrap();
    assert_eq!(size(&yard), before);
    held.append_lines(&[line(1, &text)]).unwrap();
    assert!(size(&yard) > SHORTEST);
    held.compact_entries().unwrap();
    let after = size(&yard);
    assert_eq!(yard.all().lines.len(), 32);
    assert_eq!(held.compact_from, after + GROWTH);
    held.append_lines(&[line(0, &text)]).unwrap();
    held.compact_entries().unwrap();
    assert_eq!(yard.all().lines.len(), 33);
}

#[test]
fn killed_compaction_leaves_the_file() {
    for nth in 1..=2 {
        let yard = changed();
        let before = yard.all();
        let mut held = hold(&yard);
        let killed = in_process::crash_at(nth, || held.compact_entries().unwrap());
        assert!(killed.is_none(), "{nth}");
        assert_eq!(yard.all(), before, "{nth}");
        drop(held);
        hold(&yard).compact_entries().unwrap();
        assert_eq!(yard.all().lines.len(), 2, "{nth}");
    }
}

#[test]
fn flood_of_entries_is_not_compacted() {
    let yard = Yard::new();
    let flood: String = (0..450_000)
        .map(|id| format!("{{\"id\":{id}}}\n{{\"id\":{id}}}\n"))
        .collect();
    yard.write_entries(&flood);
    hold(&yard).compact_entries().unwrap();
    assert_eq!(size(&yard), flood.len() as u64);
}

#[test]
fn link_in_place_of_entries_is_not_compacted() {
    let yard = Yard::new();
    symlink(yard.outside().join("secret"), yard.file("entries.jsonl")).unwrap();
    let refused = hold(&yard).compact_entries();
    assert!(matches!(refused, Err(FileError::Link { .. })));
    yard.assert_outside_is_untouched();
}
