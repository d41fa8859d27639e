use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn log(before: u64, entries: usize, bytes: usize) -> Log {
    Log::new(Wanted {
        before,
        entries,
        bytes,
    })
}

fn answer(id: u64, text: &str) -> String {
    json!({"id": id, "at": "2026-05-11T11:46:40Z", "kind": "answer", "text": text}).to_string()
}

fn read(log: &mut Log, lines: &[String]) -> Vec<Verdict> {
    lines.iter().rev().map(|line| log.take_line(line)).collect()
}

fn ids(log: Log) -> (Vec<u64>, bool) {
    let (entries, older) = log.into_entries();
    (entries.iter().map(|entry| entry.id).collect(), older)
}

/// An entry of each kind with parts and texts that are as long as a line allows.
fn hostile_lines() -> Vec<String> {
    let at = "2026-05-11T11:46:40Z";
    let attachment = json!({"path": "", "name": "", "size": null, "picture": false});
    let call = json!({"name": "", "arguments": "", "cut": false, "explanation": null});
    let file = json!({"name": "", "content_type": "", "size": null, "file": null, "picture": false, "error": null});
    let long = "m".repeat(1_000_000);
    let zeros = vec![0; 500_000];
    [
        json!({"id": 1, "at": at, "kind": "user", "text": "", "status": "sent", "attachments": vec![attachment; 15_000]}),
        json!({"id": 2, "at": at, "kind": "answer", "text": "", "model": long}),
        json!({"id": 3, "at": at, "kind": "tools", "calls": vec![call; 17_000]}),
        json!({"id": 4, "at": at, "kind": "files", "files": vec![file; 9_000]}),
        json!({"id": 5, "at": at, "kind": "notice", "code": "cut", "text": long}),
        json!({"id": 6, "at": at, "kind": "answer", "text": "", "unknown": zeros}),
    ]
    .iter()
    .map(Value::to_string)
    .collect()
}

#[test]
fn hostile_lines_become_small_entries_with_short_lines() {
    let lines = hostile_lines();
    let mut log = log(u64::MAX, 100, usize::MAX);
    for (line, verdict) in lines.iter().zip(read(&mut log, &lines)) {
        assert!(line.len() <= LINE, "{} bytes", line.len());
        assert_eq!(verdict, Verdict::Readable);
    }
    let (entries, _) = log.into_entries();
    assert_eq!(entries.len(), lines.len());
    for entry in entries {
        assert!(entry.weight() < 1_000_000, "{} bytes", entry.weight());
        let line = Line::Entry(Arc::new(entry.clone())).to_json().unwrap();
        assert!(line.len() <= LINE);
        let again: Entry = serde_json::from_str(&line).unwrap();
        assert_eq!(again.id, entry.id);
    }
}

#[test]
fn long_entry_that_was_written_last_hides_none_that_fit() {
    // The first entry is rewritten after all others.
    let lines: Vec<_> = [1, 2, 3, 4, 5].map(|id| answer(id, "short")).into();
    let lines = [lines, vec![answer(1, &"x".repeat(2000))]].concat();
    let mut log = log(u64::MAX, 100, 2200);
    read(&mut log, &lines);
    assert_eq!(ids(log), (vec![2, 3, 4, 5], true));
}

#[test]
fn entry_that_cannot_be_short_becomes_a_notice() {
    let call = ToolCall {
        name: String::new(),
        arguments: "x".repeat(LINE),
        cut: false,
        explanation: None,
    };
    let body = Body::Tools { calls: vec![call] };
    let (id, at) = (7, Timestamp::from_secs(0));
    let line = Line::Entry(Arc::new(Entry { id, at, body })).to_json();
    let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
    assert_eq!((&line["id"], &line["kind"]), (&json!(7), &json!("notice")));
}

#[test]
fn newest_line_of_an_entry_counts() {
    let lines = [
        answer(1, "old"),
        answer(2, "gone"),
        answer(1, "new"),
        json!({"id": 2, "removed": true}).to_string(),
        "junk".to_owned(),
        answer(0, "no id"),
        answer(3, "three"),
    ];
    let mut all = log(u64::MAX, 100, usize::MAX);
    let verdicts = read(&mut all, &lines);
    let unreadable = verdicts.iter().filter(|it| **it == Verdict::Unreadable);
    assert_eq!(unreadable.count(), 2);
    let (entries, older) = all.into_entries();
    assert!(!older);
    let shown: Vec<_> = entries
        .iter()
        .map(|entry| match &entry.body {
            Body::Answer { text, .. } => (entry.id, text.as_str()),
            _ => (entry.id, ""),
        })
        .collect();
    assert_eq!(shown, [(1, "new"), (3, "three")]);
}

#[test]
fn log_keeps_the_newest_within_its_bounds() {
    let lines: Vec<String> = (1..=10).map(|id| answer(id, "x")).collect();
    let mut few = log(8, 3, usize::MAX);
    read(&mut few, &lines);
    assert_eq!(ids(few), (vec![5, 6, 7], true));
    let long: Vec<String> = (1..=10).map(|id| answer(id, &"x".repeat(1000))).collect();
    let mut short = log(u64::MAX, 100, 3000);
    read(&mut short, &long);
    assert_eq!(ids(short), (vec![9, 10], true));
}

#[test]
fn log_is_complete_before_all_lines_are_read() {
    let lines: Vec<String> = (1..=10_000).map(|id| answer(id, "x")).collect();
    let mut newest = log(u64::MAX, 100, usize::MAX);
    let verdicts = read(&mut newest, &lines);
    let enough = verdicts.iter().position(|it| *it == Verdict::Enough);
    assert_eq!(enough, Some(101 + MOST_EARLIER));
    assert_eq!(ids(newest).0[0], 9901);
}

#[test]
fn removals_without_end_end_the_reading() {
    let mut all = log(u64::MAX, 100, usize::MAX);
    let verdicts = (1..=60_000_u64).map(|id| {
        let line = json!({"id": id, "removed": true}).to_string();
        all.take_line(&line)
    });
    let enough = verdicts.take_while(|it| *it != Verdict::Enough).count();
    assert_eq!(enough, MOST_REMOVED);
}

#[test]
fn index_has_the_newest_place_of_each_entry_in_order() {
    let mut index = Index::default();
    let lines = [
        (1, answer(2, "")),
        (2, answer(1, "")),
        (3, answer(2, "")),
        (4, answer(3, "")),
        (5, json!({"id": 3, "removed": true}).to_string()),
    ];
    for (place, line) in lines.iter().rev() {
        index.take_line(*place, line);
    }
    assert_eq!(index.into_places().collect::<Vec<_>>(), [2, 3]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_line_is_taken_or_left_out(line in prop_oneof![
        any::<String>(),
        r#"\{"id":[0-9]{1,3},"(at|kind|removed|text)":("[a-z]{0,8}"|[0-9]{1,9}|true|null)\}"#,
    ]) {
        let mut all = log(u64::MAX, 100, usize::MAX);
        all.take_line(&line);
        Index::default().take_line((), &line);
    }
}
