//! A page that shows what it is sent.

use std::collections::BTreeMap;

use schema::home::conversations::LINE;
use serde_json::Value;

use super::entries::check_entry;
use crate::chat::talk::{Cursor, PageFrameSource, Talk};

/// Longest frame beside its entry, in bytes.
const FRAME: usize = 1024;
/// Most frames that bring a page up to date.
const FRAMES: usize = 1000;

/// A page.
#[derive(Default)]
pub(super) struct Page {
    cursor: Cursor,
    is_greeted: bool,
    epoch: Option<String>,
    /// The last number that it has seen.
    seen: u64,
    pub(super) entries: BTreeMap<u64, Value>,
    state: Value,
    conversation: Value,
    pub(super) older: bool,
}

impl Page {
    /// Comes back after it was gone.
    pub(super) fn resume(&mut self) {
        let resumes = self.epoch.clone().map(|epoch| (epoch, self.seen));
        self.cursor = Cursor::new(resumes);
        self.is_greeted = false;
    }

    /// Takes at most so many of the frames that bring it up to date.
    pub(super) fn read_frames(&mut self, talk: &Talk, most: usize) {
        for _ in 0..most {
            let hello = !std::mem::replace(&mut self.is_greeted, true);
            let Some(frame) = talk.next_frame(&mut self.cursor, hello) else {
                let again = talk.next_frame(&mut self.cursor, false);
                assert!(again.is_none(), "more after the end: {again:?}");
                return;
            };
            self.show(frame, talk.number());
        }
        assert!(most < FRAMES, "the frames do not end");
    }

    /// Takes all frames that bring it up to date.
    pub(super) fn catch_up(&mut self, talk: &Talk) {
        self.read_frames(talk, FRAMES);
    }

    fn show(&mut self, frame: PageFrameSource, newest: u64) {
        if let PageFrameSource::Entry { entry, .. } = &frame {
            check_entry(entry);
        }
        let json = frame.into_json();
        assert!(json.len() <= LINE + FRAME, "{} bytes", json.len());
        let mut frame: Value = serde_json::from_str(&json).unwrap_or_default();
        let n = frame["n"].as_u64().unwrap_or_default();
        assert!((1..=newest).contains(&n), "{json}");
        let kind = frame["type"].take();
        match kind.as_str().unwrap_or_default() {
            "hello" => {
                if frame["reset"] == true {
                    self.entries.clear();
                    self.seen = 0;
                }
                self.epoch = frame["epoch"].as_str().map(str::to_owned);
                self.older = frame["older"] == true;
                self.conversation = frame["conversation"].take();
                return;
            }
            "entry" => {
                let id = frame["entry"]["id"].as_u64().unwrap_or_default();
                self.entries.insert(id, frame["entry"].take());
            }
            "remove" => {
                let id = frame["id"].as_u64().unwrap_or_default();
                self.entries.remove(&id);
            }
            "state" => self.state = frame["state"].take(),
            "conversation" => self.conversation = frame["conversation"].take(),
            other => panic!("a frame of type {other}"),
        }
        self.seen = n;
    }

    /// Checks that it shows the same as a page that has just come; entries before those may be there, too.
    pub(super) fn check_against(&self, fresh: &Self) {
        for (id, entry) in &fresh.entries {
            assert_eq!(self.entries.get(id), Some(entry), "entry {id}");
        }
        assert!(fresh.older || self.entries.len() == fresh.entries.len());
        assert_eq!(self.state, fresh.state);
        assert_eq!(self.conversation, fresh.conversation);
    }
}
