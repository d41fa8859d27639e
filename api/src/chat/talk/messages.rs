//! Messages of the user on their way to the agent.

use schema::adapter::ChatFeature;

use super::turn::Running;
use super::{Effect, Item, Now, Talk};
use crate::chat::protocol::{
    AgentState, Attachment, Body, LONGEST_TEXT, MOST_WAITING, MessageStatus, NoticeCode,
    RefusalCode,
};

/// Most bytes of messages that wait for the agent in one conversation: they cannot be forgotten.
const MOST_WAITING_BYTES: usize = 1024 * 1024;
/// Most ids of messages that are remembered.
const KNOWN_MESSAGES: usize = 1000;
/// Longest title that is made of a message, in characters.
const TITLE: usize = 60;
/// The text that stops a turn.
const STOP: &str = "/stop";

impl Talk {
    /// Shows the message of this id again, if it was accepted.
    pub(in crate::chat) fn acknowledge_message(&mut self, client_id: &str, now: Now) -> bool {
        let known = self.accepted.iter().find(|(known, _)| known == client_id);
        let Some((_, id)) = known else {
            return false;
        };
        self.touch_entry(*id, now);
        true
    }

    /// Accepts a message of the user, once for each `client_id`.
    ///
    /// # Errors
    /// Cause and sentence of the refusal.
    pub(in crate::chat) fn accept_message(
        &mut self,
        client_id: String,
        text: String,
        attachments: Vec<Attachment>,
        now: Now,
    ) -> Result<(), (RefusalCode, String)> {
        if self.acknowledge_message(&client_id, now) {
            return Ok(());
        }
        if text.trim().eq_ignore_ascii_case(STOP) && attachments.is_empty() {
            self.stop_turn(now)?;
            let body = Body::User {
                text,
                client_id: Some(client_id.clone()),
                attachments,
                status: MessageStatus::Sent,
            };
            let id = self.add_entry(body, now);
            self.remember_message(client_id, id);
            return Ok(());
        }
        if text.trim().is_empty() && attachments.is_empty() {
            return Err((
                RefusalCode::Empty,
                "the message is empty; write something or attach a file".to_owned(),
            ));
        }
        let length = text.chars().count();
        if length > LONGEST_TEXT {
            return Err((
                RefusalCode::TooLong,
                format!(
                    "the message has {length} characters, at most {LONGEST_TEXT} can be sent; attach a file instead"
                ),
            ));
        }
        let joined = self.turn.as_ref().map_or(0, Running::joined);
        if self.count_waiting() + joined >= MOST_WAITING {
            return Err((
                RefusalCode::TooManyWaiting,
                format!(
                    "{MOST_WAITING} messages wait already; wait for an answer, then send it again"
                ),
            ));
        }
        let waiting = self.weigh_waiting();
        if waiting > 0 && waiting + text.len() > MOST_WAITING_BYTES {
            return Err((
                RefusalCode::TooManyWaiting,
                format!(
                    "{waiting} bytes of messages wait already, at most {MOST_WAITING_BYTES} do; wait for an answer, then send it again"
                ),
            ));
        }
        self.made = 0;
        let titled = self.conversation.title.is_empty();
        if titled {
            self.conversation.title = title_of(&text, &attachments);
        }
        self.conversation.last_used_at = now.wall;
        self.publish_conversation();
        self.effects.push(Effect::SaveMeta { titled });
        let body = Body::User {
            text,
            client_id: Some(client_id.clone()),
            attachments,
            status: MessageStatus::Waiting,
        };
        let id = self.add_entry(body, now);
        self.remember_message(client_id, id);
        self.effects.push(Effect::Save);
        self.publish();
        Ok(())
    }

    /// Gives the agent the messages that wait, as far as they may go now.
    pub(in crate::chat) fn dispatch_messages(&mut self, now: Now) {
        if self.agent != AgentState::Connected || self.other && !self.has(ChatFeature::Parallel) {
            return;
        }
        let waiting: Vec<u64> = self.with_status(MessageStatus::Waiting);
        for id in waiting {
            let joins = match &self.turn {
                Some(turn) if turn.is_stopping() || turn.joined() >= MOST_WAITING => break,
                Some(_) => true,
                None => false,
            };
            self.begin_or_join(id, now);
            self.set_status(
                id,
                match joins {
                    true => MessageStatus::Joined,
                    false => MessageStatus::Sent,
                },
                now,
            );
            // Written before it goes: after a fault it is not sent twice.
            self.effects.push(Effect::Save);
            if let Some(item) = self.items.get_mut(&id) {
                item.on_the_way = true;
            }
            self.effects.push(Effect::Deliver { entry: id });
        }
        self.publish();
    }

    /// Records that the link has no more to do for a message.
    pub(in crate::chat) fn leave_link(&mut self, id: u64) {
        if let Some(item) = self.items.get_mut(&id) {
            item.on_the_way = false;
        }
    }

    /// Records that a message did not reach the agent: it waits again.
    pub(in crate::chat) fn take_back(&mut self, id: u64, now: Now) {
        self.leave_link(id);
        if !self.is_sent(id) {
            return;
        }
        let status = match self.is_stopping() {
            true => MessageStatus::Withdrawn,
            false => MessageStatus::Waiting,
        };
        if self
            .turn
            .as_mut()
            .is_some_and(|turn| turn.forget_message(id))
        {
            self.turn = None;
            self.typing = 0;
        }
        self.set_status(id, status, now);
        self.publish();
    }

    /// Records that a message could not be given to the agent.
    pub(in crate::chat) fn fail_message(&mut self, id: u64, cause: String, now: Now) {
        self.leave_link(id);
        self.set_status(id, MessageStatus::Failed, now);
        self.add_notice(NoticeCode::RefusedByAgent, cause, now);
        if self
            .turn
            .as_mut()
            .is_some_and(|turn| turn.forget_message(id))
        {
            self.turn = None;
            self.typing = 0;
        }
        self.publish();
    }

    /// Returns the text of a message, with the paths of files that are no pictures, and the paths of its pictures; `None` when it is no
    /// longer to be sent.
    pub(in crate::chat) fn message_of(&self, id: u64) -> Option<(String, Vec<String>)> {
        if !self.is_sent(id) || self.is_stopping() {
            return None;
        }
        let Body::User {
            text, attachments, ..
        } = &self.items.get(&id)?.entry.body
        else {
            return None;
        };
        let mut whole = text.clone();
        let files: Vec<&str> = attachments
            .iter()
            .filter(|file| !file.picture)
            .map(|file| file.path.as_str())
            .collect();
        if !files.is_empty() {
            if !whole.is_empty() {
                whole.push_str("\n\n");
            }
            whole.push_str("Attached files, relative to your workspace:");
            for path in files {
                whole.push_str("\n- ");
                whole.push_str(path);
            }
        }
        let pictures = attachments.iter().filter(|file| file.picture);
        Some((whole, pictures.map(|file| file.path.clone()).collect()))
    }

    pub(super) fn with_status(&self, wanted: MessageStatus) -> Vec<u64> {
        let of_user = |item: &Item| matches!(&item.entry.body, Body::User { status, .. } if *status == wanted);
        let items = self.items.iter().filter(|(_, item)| of_user(item));
        items.map(|(id, _)| *id).collect()
    }

    /// Returns the memory of the messages that wait for the agent, in bytes.
    fn weigh_waiting(&self) -> usize {
        let waiting = self.with_status(MessageStatus::Waiting).into_iter();
        let items = waiting.filter_map(|id| self.items.get(&id));
        items.map(|item| item.weight).sum()
    }

    /// Returns how many messages wait for the agent.
    pub(in crate::chat) fn count_waiting(&self) -> usize {
        self.with_status(MessageStatus::Waiting).len()
    }

    pub(super) fn set_status(&mut self, id: u64, new: MessageStatus, now: Now) {
        if let Some(item) = self.items.get_mut(&id)
            && let Body::User { status, .. } = item.body_mut()
        {
            *status = new;
            self.touch_entry(id, now);
        }
    }

    pub(super) fn remember_message(&mut self, client_id: String, id: u64) {
        self.accepted.push_back((client_id, id));
        if self.accepted.len() > KNOWN_MESSAGES {
            self.accepted.pop_front();
        }
    }
}

fn title_of(text: &str, attachments: &[Attachment]) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.or_else(|| attachments.first().map(|file| file.name.as_str()));
    let clean = line.unwrap_or_default().chars().filter(|c| !c.is_control());
    let title: String = clean.take(TITLE + 1).collect();
    match title.chars().count() > TITLE {
        true => format!(
            "{}…",
            title.chars().take(TITLE).collect::<String>().trim_end()
        ),
        false => title,
    }
}
