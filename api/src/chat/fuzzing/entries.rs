//! Properties of stored entries.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use schema::home::conversations::{EntriesFile, LINE, Verdict};

use super::page::Page;
use super::scene::Scene;
use crate::chat::bounded::{MOST_ATTACHMENTS, MOST_PARTS, NAME, TEXT};
use crate::chat::protocol::{Body, Entry};
use crate::chat::stored::{Index, Line, Log, Wanted};
use crate::chat::talk::{KEPT, KEPT_BYTES};

/// Bounds under which a file is read: those of a conversation that is opened, of an earlier page, and narrow ones.
const WANTED: [Wanted; 3] = [
    Wanted {
        before: u64::MAX,
        entries: KEPT,
        bytes: KEPT_BYTES,
    },
    Wanted {
        before: 100,
        entries: 50,
        bytes: 512 * 1024,
    },
    Wanted {
        before: u64::MAX,
        entries: 3,
        bytes: 2000,
    },
];

/// Reads the entries of a conversation as a page and an export do, and opens the conversation.
///
/// # Panics
/// When what is kept of the file is not bounded, or is not the same after it was written again.
pub fn check_conversation_entries(file: &EntriesFile) {
    for wanted in WANTED {
        let entries = read_entries(file, wanted);
        for entry in &entries {
            check_entry(entry);
        }
        let scene = Scene::load(entries);
        Page::default().catch_up(&scene.talk);
    }
    check_index(file);
}

fn read_entries(file: &EntriesFile, wanted: Wanted) -> Vec<Entry> {
    let mut log = Log::new(wanted);
    let mut newest = BTreeMap::new();
    let read = file.read_newest(file.length(), |_, line| {
        let verdict = log.take_line(line);
        if let Ok(entry) = serde_json::from_str::<Entry>(line)
            && verdict == Verdict::Readable
        {
            newest.entry(entry.id).or_insert(entry);
        }
        verdict
    });
    assert!(read.is_ok());
    let (entries, _) = log.into_entries();
    assert!(entries.len() <= wanted.entries);
    assert!(
        entries.is_sorted_by(|a, b| a.id < b.id),
        "an id is there twice"
    );
    let weight: usize = entries.iter().map(Entry::weight).sum();
    assert!(
        weight <= wanted.bytes || entries.len() == 1,
        "{weight} bytes"
    );
    for entry in &entries {
        assert!(entry.id > 0 && entry.id < wanted.before);
        assert_eq!(newest.get(&entry.id), Some(entry), "an older line counts");
    }
    entries
}

fn check_index(file: &EntriesFile) {
    let (mut index, mut lines) = (Index::default(), 0);
    let read = file.read_newest(file.length(), |place, line| {
        lines += 1;
        assert_eq!(file.read_line(place).as_deref(), Some(line));
        index.take_line(place, line)
    });
    assert!(read.is_ok());
    let places: Vec<_> = index.into_places().collect();
    let offsets: HashSet<u64> = places.iter().map(|place| place.offset).collect();
    assert!(offsets.len() == places.len() && places.len() <= lines);
}

/// Checks the bounds of an entry, and that it is the same after it was written.
pub(super) fn check_entry(entry: &Entry) {
    check_bounds(entry);
    let line = Line::Entry(Arc::new(entry.clone()));
    let written = line.to_json().unwrap_or_default();
    assert!(!written.contains(['\n', '\0']) && (1..=LINE).contains(&written.len()));
    let mut log = Log::new(WANTED[0]);
    assert_eq!(log.take_line(&written), Verdict::Readable, "{written}");
    let (read, _) = log.into_entries();
    let [again] = read.as_slice() else {
        panic!("{} entries of one line", read.len());
    };
    let is_whole = serde_json::to_string(entry).is_ok_and(|whole| whole == written);
    assert!(!is_whole || again == entry, "{again:?} was {entry:?}");
    let rewritten = Line::Entry(Arc::new(again.clone())).to_json();
    assert_eq!(rewritten.as_ref(), Some(&written));
}

fn check_bounds(entry: &Entry) {
    let (mut text, mut names, mut parts) = (None, Vec::new(), 0);
    match &entry.body {
        Body::User {
            text: said,
            client_id,
            attachments,
            ..
        } => {
            assert!(attachments.len() <= MOST_ATTACHMENTS);
            text = Some(said);
            names.extend(client_id);
            names.extend(attachments.iter().flat_map(|file| [&file.path, &file.name]));
        }
        Body::Answer {
            text: said, model, ..
        } => {
            text = Some(said);
            names.extend(model);
        }
        Body::Thought { text: said, .. }
        | Body::Failure { text: said, .. }
        | Body::Notice { text: said, .. } => text = Some(said),
        Body::Tools { calls } => {
            parts = calls.len();
            for call in calls {
                names.extend([&call.name, &call.arguments]);
                names.extend(&call.explanation);
            }
        }
        Body::Files { files, text: said } => {
            parts = files.len();
            text = said.as_ref();
            for file in files {
                names.extend([&file.name, &file.content_type]);
                names.extend([&file.file, &file.error].into_iter().flatten());
            }
        }
    }
    assert!(parts <= MOST_PARTS, "{parts} parts");
    let length = |text: &String| serde_json::to_string(text).map_or(0, |json| json.len() - 2);
    assert!(text.is_none_or(|text| length(text) <= TEXT), "a long text");
    assert!(
        names.into_iter().all(|name| length(name) <= NAME),
        "a long name"
    );
}
