//! Frames of a conversation for a page, from the last number that the page has seen.

use super::Talk;
use crate::chat::protocol::ServerFrame;
use schema::adapter::ChatFeature;

/// The last number that a page has seen, and of which run of numbers; `None` before the first frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::chat) struct Cursor(pub(in crate::chat) Option<(String, u64)>);

impl Talk {
    /// The number of the newest change.
    pub(in crate::chat) fn number(&self) -> u64 {
        self.n
    }

    /// The frames that bring a page up to date, each as JSON; moves its cursor. With `hello` the first frame is one even when the page
    /// has missed nothing.
    pub(in crate::chat) fn frames_after(&self, cursor: &mut Cursor, hello: bool) -> Vec<String> {
        let known = cursor
            .0
            .as_ref()
            .filter(|(epoch, n)| *epoch == self.epoch && *n >= self.lost_before && *n <= self.n);
        let after = known.map(|(_, n)| *n);
        // In the order of the numbers: a page that is cut off in between resumes from the last.
        let mut frames: Vec<(u64, String)> = Vec::new();
        let mut push = |n: u64, frame: &ServerFrame<'_>| {
            frames.extend(serde_json::to_string(frame).ok().map(|text| (n, text)));
        };
        let learned = after.is_some_and(|after| self.features_n > after);
        if hello || learned || after.is_none() {
            push(
                0,
                &ServerFrame::Hello {
                    epoch: &self.epoch,
                    n: self.n,
                    reset: after.is_none(),
                    older: self.older,
                    conversation: self.conversation.clone(),
                    pictures: self.has(ChatFeature::Pictures),
                    stop: self.has(ChatFeature::Stop),
                },
            );
        }
        let after = after.unwrap_or_default();
        for (n, id) in &self.removals {
            if *n > after && after > 0 {
                push(*n, &ServerFrame::Remove { n: *n, id: *id });
            }
        }
        for item in self.items.values().filter(|item| item.n > after) {
            push(
                item.n,
                &ServerFrame::Entry {
                    n: item.n,
                    entry: &item.entry,
                },
            );
        }
        if self.conversation_n > after && after > 0 {
            push(
                self.conversation_n,
                &ServerFrame::Conversation {
                    n: self.conversation_n,
                    conversation: self.conversation.clone(),
                },
            );
        }
        if self.state_n > after || hello {
            push(
                self.state_n,
                &ServerFrame::State {
                    n: self.state_n,
                    state: &self.state,
                },
            );
        }
        cursor.0 = Some((self.epoch.clone(), self.n));
        frames.sort_by_key(|(n, _)| *n);
        frames.into_iter().map(|(_, text)| text).collect()
    }
}
