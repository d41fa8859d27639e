//! Interpretation of the agent's frames.

use super::{Effect, MOST_MADE, Now, Talk};
use crate::chat::pico::{
    AgentFile, AgentFrame, Message, MessageKind, classify_failure, is_interim_remark,
    is_stop_answer,
};
use crate::chat::protocol::{Body, MessageStatus, NoticeCode, SentFile};

/// Beginning of the paths of an agent's files.
const MEDIA: &str = "/pico/media/";
/// Longest name of a file, in characters.
const LONGEST_NAME: usize = 200;

impl Talk {
    /// Takes a frame of the agent.
    pub(in crate::chat) fn take_frame(&mut self, frame: AgentFrame, now: Now) {
        match frame {
            AgentFrame::TypingStart => {
                self.typing = self.typing.saturating_add(1);
                self.note_joined();
                self.sign_of_life(false, now);
            }
            AgentFrame::TypingStop => self.typing_stopped(now),
            AgentFrame::Create(message) => self.create_message(message, now),
            AgentFrame::Update(message) => self.update_message(message, now),
            AgentFrame::Delete(id) => {
                self.sign_of_life(false, now);
                if let Some(id) = self.messages.get(&id).copied() {
                    self.remove_entry(id);
                }
            }
            AgentFrame::Refused { request, message } => self.note_refusal(request, message, now),
            AgentFrame::Pong | AgentFrame::Other => return,
        }
        self.publish();
    }

    fn typing_stopped(&mut self, now: Now) {
        self.typing = self.typing.saturating_sub(1);
        let was = self.turn.as_ref().is_some_and(super::Running::may_be_over);
        self.sign_of_life(false, now);
        if was {
            self.note_maybe_over(now);
        }
    }

    fn create_message(&mut self, message: Message, now: Now) {
        if self.stops > 0 && is_stop_answer(&message.text) {
            self.stops -= 1;
            if self.is_stopping() {
                self.end_stopped(true, now);
            }
            return;
        }
        let known = message.id.as_ref().and_then(|id| self.messages.get(id));
        if known.is_some() {
            self.update_message(message, now);
            return;
        }
        let works = matches!(
            message.kind,
            MessageKind::Thought | MessageKind::Tools(_) | MessageKind::Placeholder
        );
        self.sign_of_life(works, now);
        let Some(id) = self.add_message(&message, now) else {
            return;
        };
        self.conclude_message(&message, false, now);
        self.note_cut(id, &message, now);
        if let MessageKind::Files(files) = &message.kind {
            self.fetch_files(id, files);
        }
    }

    fn add_message(&mut self, message: &Message, now: Now) -> Option<u64> {
        self.made += 1;
        if self.made > MOST_MADE {
            if self.made == MOST_MADE + 1 {
                let text =
                    format!("The agent sent more than {MOST_MADE} messages; the rest is left out.");
                self.add_notice(NoticeCode::Cut, text, now);
            }
            return None;
        }
        let id = self.add_entry(self.body_of(message), now);
        if let Some(item) = self.items.get_mut(&id) {
            item.message.clone_from(&message.id);
            item.placeholder = message.kind == MessageKind::Placeholder;
        }
        if let Some(message) = &message.id {
            self.messages.insert(message.clone(), id);
        }
        Some(id)
    }

    fn update_message(&mut self, message: Message, now: Now) {
        let known = message.id.as_ref().and_then(|id| self.messages.get(id));
        let Some(id) = known.copied() else {
            // It was made while no connection stood.
            self.sign_of_life(true, now);
            if self.add_message(&message, now).is_some() {
                self.conclude_message(&message, false, now);
            }
            return;
        };
        self.sign_of_life(message.usage.is_none(), now);
        let body = self.body_of(&message);
        let mut replaces_placeholder = false;
        let mut changed = false;
        if let Some(item) = self.items.get_mut(&id) {
            // Files stay as they were fetched.
            if matches!(
                (&item.entry.body, &body),
                (Body::Files { .. }, Body::Files { .. })
            ) {
                return;
            }
            let settles = message.kind != MessageKind::Placeholder;
            replaces_placeholder =
                item.placeholder && settles && message.kind == MessageKind::Answer;
            changed = item.entry.body != body || item.placeholder == settles;
            item.placeholder = !settles;
            *item.body_mut() = body;
        }
        if changed {
            self.touch_entry(id, now);
        }
        self.conclude_message(&message, replaces_placeholder, now);
        self.note_cut(id, &message, now);
    }

    /// Ends the turn after its last message, or notes that this may have been the last.
    fn conclude_message(&mut self, message: &Message, replaces_placeholder: bool, now: Now) {
        match &message.kind {
            MessageKind::Failure => self.end_answered(now),
            MessageKind::Answer if message.usage.is_some() || replaces_placeholder => {
                self.end_answered(now);
            }
            MessageKind::Answer if is_interim_remark(&message.text) => {}
            MessageKind::Answer | MessageKind::Files(_) => self.note_maybe_over(now),
            MessageKind::Placeholder | MessageKind::Thought | MessageKind::Tools(_) => {}
        }
    }

    fn body_of(&self, message: &Message) -> Body {
        let streaming = self.typing > 0 && message.usage.is_none();
        let text = message.text.clone();
        match &message.kind {
            MessageKind::Answer | MessageKind::Placeholder => Body::Answer {
                text,
                model: message.model.clone(),
                streaming: streaming || message.kind == MessageKind::Placeholder,
                used_percent: message.usage,
            },
            MessageKind::Thought => Body::Thought { text, streaming },
            MessageKind::Tools(calls) => Body::Tools {
                calls: calls.clone(),
            },
            MessageKind::Files(files) => Body::Files {
                files: files.iter().map(announced_file).collect(),
                text: Some(text).filter(|text| !text.trim().is_empty()),
            },
            MessageKind::Failure => {
                let (code, text) = classify_failure(&text);
                Body::Failure { code, text }
            }
        }
    }

    fn fetch_files(&mut self, id: u64, files: &[AgentFile]) {
        for (index, file) in files.iter().enumerate() {
            if is_media(&file.path) {
                self.effects.push(Effect::Fetch {
                    entry: id,
                    index,
                    path: file.path.clone(),
                });
            }
        }
    }

    fn note_cut(&mut self, id: u64, message: &Message, now: Now) {
        let item = self.items.get_mut(&id).filter(|_| message.cut);
        if item.is_some_and(|item| !std::mem::replace(&mut item.cut, true)) {
            let text = "The agent sent a longer text than is kept; its end is left out.";
            self.add_notice(NoticeCode::Cut, text, now);
        }
    }

    fn note_refusal(&mut self, request: Option<String>, message: String, now: Now) {
        self.sign_of_life(false, now);
        let request = request.and_then(|id| id.parse().ok());
        match request.filter(|id| self.is_sent(*id)) {
            Some(id) => {
                let text = format!("The agent refused the message: {message}");
                self.fail_message(id, text, now);
            }
            None => tracing::debug!("an agent refused a frame"),
        }
    }

    pub(super) fn is_sent(&self, id: u64) -> bool {
        let body = self.items.get(&id).map(|item| &item.entry.body);
        matches!(body, Some(Body::User { status, .. }) if matches!(status, MessageStatus::Sent | MessageStatus::Joined))
    }
}

fn is_media(path: &str) -> bool {
    let id = path.strip_prefix(MEDIA).unwrap_or_default();
    !id.is_empty()
        && id
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// A file before it is fetched.
fn announced_file(file: &AgentFile) -> SentFile {
    let name = file.name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = name
        .chars()
        .filter(|c| !c.is_control())
        .take(LONGEST_NAME)
        .collect();
    SentFile {
        name: match name.is_empty() {
            true => "file".to_owned(),
            false => name,
        },
        content_type: "application/octet-stream".to_owned(),
        size: None,
        file: None,
        picture: false,
        error: (!is_media(&file.path)).then(|| "the agent named no address of its own".to_owned()),
    }
}
