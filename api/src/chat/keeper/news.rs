//! News of the links to the agent.

use schema::home::conversations::ConversationId;

use super::Keeper;
use crate::chat::link::{LinkEvent, LinkNews};
use crate::chat::protocol::{AgentState, EndCode, NoticeCode};

impl Keeper {
    pub(super) async fn take_news(&mut self, event: LinkEvent) {
        let now = self.now();
        let LinkEvent {
            conversation,
            link,
            news,
        } = event;
        let id = &conversation;
        // A conversation that was closed and opened again has another link.
        let Some(used) = self
            .rooms
            .get_mut(id)
            .filter(|used| used.link.number == link)
        else {
            return;
        };
        match news {
            LinkNews::Connected { features, started } => {
                let restarted = used.started.is_some() && started != used.started;
                used.started = started;
                (used.agent, used.message) = (AgentState::Connected, None);
                used.room.change(|talk| {
                    talk.set_features(features);
                    talk.agent_connected(restarted, now);
                });
            }
            LinkNews::Restarted(started) => {
                used.started = started;
                used.room.change(|talk| talk.agent_restarted(now));
            }
            LinkNews::Away { state, message } => {
                (used.agent, used.message) = (state, message);
                used.room.change(|talk| talk.agent_disconnected(now));
                if state == AgentState::Off {
                    self.close_room(id, EndCode::ChatOff).await;
                    return;
                }
            }
            LinkNews::Frame(frame, _memory) => {
                used.room.change(|talk| talk.take_frame(frame, now));
            }
            LinkNews::Left(entry) => used.room.change(|talk| talk.leave_link(entry)),
            LinkNews::Failed(entry, cause) => {
                used.room
                    .change(|talk| talk.fail_message(entry, cause, now));
            }
            LinkNews::Unsent(entry) => {
                used.room.change(|talk| match entry {
                    Some(entry) => talk.take_back(entry, now),
                    None => talk.lose_stop(),
                });
            }
            LinkNews::TooLong => used.room.change(|talk| {
                let text = "The agent sent a message that is longer than 2 MiB; it is left out.";
                talk.add_remark(NoticeCode::Cut, text, now);
            }),
        }
        self.settle_rooms(now).await;
    }

    /// Writes a conversation and lets it go, with its pages.
    pub(super) async fn close_room(&mut self, id: &ConversationId, code: EndCode) {
        let now = self.now();
        self.save_room(id, true, now).await;
        if let Some(used) = self.rooms.remove(id) {
            used.room.end(code);
        }
    }
}
