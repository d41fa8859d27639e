//! A conversation with an agent, a disk and pages that do what the input says.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schema::adapter::ChatFeature;
use schema::home::conversations::{ConversationId, LINE};
use schema::home::workspace::WorkspacePath;
use schema::ids::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::page::Page;
use crate::chat::bounded::{MOST_ATTACHMENTS, NAME};
use crate::chat::keeper::check_message;
use crate::chat::pico::{AgentFrame, message_frame};
use crate::chat::protocol::{
    AgentState, Attachment, Conversation, Entry, MOST_WAITING, PageFrame, RefusalCode,
    SentAttachment, ServerFrame,
};
use crate::chat::stored::{Log, Wanted};
use crate::chat::talk::{Effect, KEPT, KEPT_BYTES, Now, Talk};

/// Most memory of a conversation: what is kept, what waits to be written, and one entry more of each.
const MOST: usize = 2 * KEPT_BYTES + 1024 * 1024 + 2 * LINE;
/// Longest refusal, in bytes.
const REFUSAL: usize = 2000;
const ALL: [ChatFeature; 5] = [
    ChatFeature::Pictures,
    ChatFeature::Parallel,
    ChatFeature::Usage,
    ChatFeature::Files,
    ChatFeature::Stop,
];
/// Pages of a conversation.
pub(super) const PAGES: usize = 3;

/// What a message that was given to the link comes to.
#[derive(Debug, Clone, Copy)]
enum LinkState {
    Delivers,
    Waits,
    GivesBack,
}

/// A conversation in use.
pub(super) struct Scene {
    pub(super) talk: Talk,
    begun: Instant,
    passed: Duration,
    link: LinkState,
    on_the_way: Vec<u64>,
    disk_fails: bool,
    /// Lines that were dropped because the disk failed may be missing in the file.
    disk_failed: bool,
    file: Vec<String>,
    pages: [Option<Page>; PAGES],
}

impl Scene {
    /// Opens a conversation with these entries.
    pub(super) fn load(entries: Vec<Entry>) -> Self {
        let wall = Timestamp::from_secs(0);
        let conversation = Conversation {
            id: ConversationId::new(),
            title: String::new(),
            created_at: wall,
            last_used_at: wall,
        };
        let begun = Instant::now();
        let now = Now {
            instant: begun,
            wall,
        };
        let mut talk = Talk::load("epoch".to_owned(), conversation, entries, false, now);
        talk.set_features(BTreeSet::from(ALL));
        talk.set_agent(AgentState::Connected, None, false);
        let scene = Self {
            talk,
            begun,
            passed: Duration::ZERO,
            link: LinkState::Delivers,
            on_the_way: Vec::new(),
            disk_fails: false,
            disk_failed: false,
            file: Vec::new(),
            pages: Default::default(),
        };
        scene.check_memory();
        scene
    }

    fn now(&self) -> Now {
        Now {
            instant: self.begun + self.passed,
            wall: Timestamp::from_secs(0).plus(self.passed),
        }
    }

    /// Takes a frame of the agent.
    pub(super) fn hear(&mut self, frame: &str) {
        let now = self.now();
        self.talk.take_frame(AgentFrame::from_json(frame), now);
    }

    /// Takes a frame of a page.
    pub(super) fn take_page_frame(&mut self, frame: &str) {
        let Ok(frame) = serde_json::from_str::<PageFrame>(frame) else {
            return;
        };
        let again = serde_json::to_string(&frame).unwrap_or_default();
        let again = serde_json::from_str::<PageFrame>(&again);
        assert!(again.is_ok_and(|again| again == frame));
        let (now, number) = (self.now(), self.talk.number());
        let outcome = match frame {
            PageFrame::Ping => Ok(()),
            PageFrame::Stop => self.talk.stop_turn(now),
            PageFrame::Send {
                client_id,
                text,
                attachments,
            } => {
                assert!(client_id.len() <= NAME && attachments.len() <= MOST_ATTACHMENTS + 1);
                self.accept(client_id, text, attachments)
            }
        };
        if let Err((code, message)) = outcome {
            let refused = ServerFrame::Refused {
                client_id: None,
                code,
                message,
            };
            let length = serde_json::to_string(&refused).map_or(0, |json| json.len());
            assert!((1..=REFUSAL).contains(&length), "{length} bytes");
            assert_eq!(
                self.talk.number(),
                number,
                "a refused frame changes nothing"
            );
        }
    }

    /// Accepts a message as the keeper does, without looking at its files.
    fn accept(
        &mut self,
        client_id: String,
        text: String,
        asked: Vec<SentAttachment>,
    ) -> Result<(), (RefusalCode, String)> {
        check_message(&client_id, &asked)?;
        let now = self.now();
        if self.talk.acknowledge_message(&client_id, now) {
            return Ok(());
        }
        let attachment = |file: SentAttachment| {
            let path: WorkspacePath = file.path.parse().ok()?;
            Some(Attachment {
                name: path.name().to_owned(),
                size: Some(1),
                path: path.as_str().to_owned(),
                picture: file.picture,
            })
        };
        let attachments = asked.into_iter().map(attachment).collect();
        let Some(attachments) = attachments else {
            return Err((RefusalCode::BadAttachment, String::new()));
        };
        let accepted = self
            .talk
            .accept_message(client_id.clone(), text, attachments, now);
        if accepted.is_ok() {
            assert!(self.talk.acknowledge_message(&client_id, now));
            assert!(self.talk.count_waiting() <= 2 * MOST_WAITING);
        }
        accepted
    }

    /// Does what a line of an input says that is no frame.
    pub(super) fn obey(&mut self, command: &[u8]) {
        let now = self.now();
        let argument = command.get(1).copied().unwrap_or_default();
        match command.first() {
            Some(b't') => {
                let seconds = [1, 2, 3, 9, 10, 11, 29, 30, 31, 600];
                let second = seconds.get(usize::from(argument) % seconds.len());
                self.passed += Duration::from_secs(second.copied().unwrap_or_default());
                self.talk.tick(self.now());
            }
            Some(b'c') => {
                self.talk.set_agent(AgentState::Connected, None, false);
                self.talk.agent_connected(argument == b'r', now);
            }
            Some(b'd') => {
                self.talk.set_agent(AgentState::Connecting, None, false);
                self.talk.agent_disconnected(now);
            }
            Some(b'o') => {
                let waits = argument != b'-';
                self.talk.set_agent(AgentState::Connected, None, waits);
            }
            Some(b'v') => {
                let known = usize::from(argument) % (ALL.len() + 1);
                self.talk
                    .set_features(ALL.into_iter().take(known).collect());
            }
            Some(b'l') => {
                self.link = match argument {
                    b'w' => LinkState::Waits,
                    b'b' => LinkState::GivesBack,
                    _ => LinkState::Delivers,
                };
                for entry in std::mem::take(&mut self.on_the_way) {
                    self.talk.leave_link(entry);
                }
            }
            Some(b'f') => self.disk_fails = argument != b'-',
            Some(b'w') => _ = self.save(false),
            Some(b'z') => self.talk.shrink_to(0),
            Some(b'n') => self
                .talk
                .rename(String::from_utf8_lossy(command).into_owned()),
            Some(b'p') => {
                let page = self.pages.get_mut(usize::from(argument) % PAGES);
                if let Some(page) = page {
                    let mut shown = page.take().unwrap_or_default();
                    shown.resume();
                    // It is cut off after some frames.
                    let most = usize::from(command.get(2).copied().unwrap_or(u8::MAX));
                    shown.read_frames(&self.talk, most);
                    *page = Some(shown);
                }
            }
            Some(b's') => {
                let page = self.pages.get_mut(usize::from(argument) % PAGES);
                if let Some(page) = page.and_then(Option::as_mut) {
                    page.catch_up(&self.talk);
                }
            }
            _ => {}
        }
    }

    /// Gives the agent what may go, carries out what is asked for, and checks the memory.
    pub(super) fn settle(&mut self) {
        self.talk.dispatch_messages(self.now());
        let mut saved = true;
        for effect in self.talk.take_effects() {
            match effect {
                Effect::Save => saved = self.save(true),
                Effect::Deliver { entry } if !saved => {
                    let cause = "It could not be saved.".to_owned();
                    self.talk.fail_message(entry, cause, self.now());
                }
                effect => self.carry_out(effect),
            }
        }
        self.check_memory();
    }

    fn carry_out(&mut self, effect: Effect) {
        let now = self.now();
        match effect {
            Effect::Save | Effect::SaveMeta { .. } => {}
            Effect::Deliver { entry } => {
                let Some((text, pictures)) = self.talk.message_of(entry) else {
                    self.talk.leave_link(entry);
                    return;
                };
                assert!(pictures.len() <= MOST_ATTACHMENTS);
                let frame = message_frame(&entry.to_string(), &text);
                assert!(serde_json::from_str::<Value>(&frame).is_ok());
                match self.link {
                    LinkState::Delivers => self.talk.leave_link(entry),
                    LinkState::Waits => self.on_the_way.push(entry),
                    LinkState::GivesBack => self.talk.take_back(entry, now),
                }
            }
            Effect::Stop if matches!(self.link, LinkState::GivesBack) => self.talk.lose_stop(),
            Effect::Stop => {}
            Effect::Fetch { entry, index, path } => {
                assert!(path.starts_with("/pico/media/"));
                if let Some(mut file) = self.talk.file(entry, index) {
                    match index % 2 {
                        0 => file.file = Some("file".to_owned()),
                        _ => file.error = Some("gone".to_owned()),
                    }
                    self.talk.set_file(entry, index, file, now);
                }
            }
        }
    }

    fn save(&mut self, all: bool) -> bool {
        let lines = self.talk.take_lines(all, self.now());
        if self.disk_fails {
            self.disk_failed |= !lines.is_empty();
            self.talk.put_lines_back(lines, self.now());
            return false;
        }
        for line in &lines {
            let written = line.to_json().unwrap_or_default();
            assert!(
                (1..=LINE).contains(&written.len()),
                "{} bytes",
                written.len()
            );
            self.file.push(written);
        }
        true
    }

    fn check_memory(&self) {
        let weight = self.talk.weight();
        assert!(weight <= MOST, "{weight} bytes");
        let lines: usize = self.file.iter().map(String::len).sum();
        // The service compacts such a file.
        assert!(lines <= 64 * 1024 * 1024, "the input is too long");
    }

    /// Checks that all pages show the same in the end, and that the file has it, too.
    pub(super) fn end(mut self) {
        let mut fresh = Page::default();
        fresh.catch_up(&self.talk);
        for page in self.pages.iter_mut().flatten() {
            page.catch_up(&self.talk);
            page.check_against(&fresh);
            page.resume();
            page.catch_up(&self.talk);
            page.check_against(&fresh);
        }
        self.disk_fails = false;
        self.save(true);
        if self.disk_failed {
            return;
        }
        let mut log = Log::new(Wanted {
            before: u64::MAX,
            entries: KEPT,
            bytes: KEPT_BYTES,
        });
        for line in self.file.iter().rev() {
            log.take_line(line);
        }
        let (entries, left_out) = log.into_entries();
        let stored: BTreeMap<u64, Entry> = entries.into_iter().map(|it| (it.id, it)).collect();
        let first = stored.keys().next().copied().unwrap_or_default();
        for (id, shown) in &fresh.entries {
            // What stands for an answer is not written.
            let is_growing = shown["streaming"] == true;
            if is_growing || left_out && *id < first {
                continue;
            }
            let kept = stored.get(id).and_then(|it| serde_json::to_value(it).ok());
            assert_eq!(kept.as_ref(), Some(shown), "entry {id}");
        }
        let is_shown = |id: &u64| fresh.entries.contains_key(id);
        assert!(fresh.older || stored.keys().all(is_shown), "{stored:?}");
    }
}
