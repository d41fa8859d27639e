//! Work that conversations ask for.

use std::sync::Arc;

use schema::home::conversations::ConversationId;

use super::Keeper;
use crate::chat::link::Outgoing;
use crate::chat::protocol::EndCode;
use crate::chat::talk::{Effect, Now, Talk};

impl Keeper {
    /// Tells conversations of each other's turns, gives the agent what may go, and carries out what that asks for.
    pub(super) async fn settle_rooms(&mut self, now: Now) {
        let ids: Vec<ConversationId> = self.rooms.keys().cloned().collect();
        for id in &ids {
            let waits = self.waits_for_another(id);
            if let Some(used) = self.rooms.get(id) {
                let (agent, message) = (used.agent, used.message.clone());
                used.room.change(|talk| {
                    talk.set_agent(agent, message, waits);
                    talk.dispatch_messages(now);
                });
            }
            self.carry_out_effects(id, now).await;
            if self
                .rooms
                .get(id)
                .is_some_and(|used| used.room.is_starved())
            {
                // What is written takes no memory any more.
                self.save_room(id, true, now).await;
                if self
                    .rooms
                    .get(id)
                    .is_some_and(|used| used.room.is_starved())
                {
                    self.close_room(id, EndCode::Busy).await;
                }
            }
        }
    }

    /// Reports that the turn of another conversation comes first.
    fn waits_for_another(&self, id: &ConversationId) -> bool {
        let Some(own) = self.rooms.get(id) else {
            return false;
        };
        let own = own.room.read(Talk::turn_so_far);
        let others = self.rooms.iter().filter(|(other, _)| *other != id);
        let mut others = others.map(|(_, used)| used.room.read(Talk::turn_so_far));
        match own {
            None => others.any(|other| other.is_some()),
            Some((_, true)) => false,
            Some((since, false)) => {
                others.any(|other| other.is_some_and(|(begun, _)| begun < since))
            }
        }
    }

    async fn carry_out_effects(&mut self, id: &ConversationId, now: Now) {
        let Some(used) = self.rooms.get(id) else {
            return;
        };
        let room = Arc::clone(&used.room);
        let effects = room.change(Talk::take_effects);
        let mut saved = true;
        for effect in effects {
            match effect {
                Effect::Save => saved = self.save_room(id, true, now).await,
                Effect::SaveMeta { titled } => {
                    if let Some(used) = self.rooms.get_mut(id) {
                        used.meta_changed = true;
                        used.titled |= titled;
                    }
                }
                Effect::Deliver { entry } => {
                    let outcome = match saved {
                        true => self.deliver_message(id, entry),
                        false => Err("The message could not be saved, so it was not sent: the disk is full, this conversation has reached 64 MiB, or the agent keeps the service from writing. Begin a new conversation, or ask your administrator.".to_owned()),
                    };
                    if let Err(cause) = outcome {
                        room.change(|talk| talk.fail_message(entry, cause, now));
                    }
                }
                Effect::Stop => {
                    if let Some(used) = self.rooms.get(id)
                        && !used.link.post(Outgoing::Stop)
                    {
                        room.change(Talk::lose_stop);
                    }
                }
                Effect::Fetch { entry, index, path } => self.begin_fetch(id, entry, index, path),
            }
        }
    }

    /// Gives the link a message; the link reads it when the agent can take it.
    fn deliver_message(&self, id: &ConversationId, entry: u64) -> Result<(), String> {
        let link = self.rooms.get(id).map(|used| &used.link);
        match link.is_some_and(|link| link.post(Outgoing::Message(entry))) {
            true => Ok(()),
            false => Err("The agent takes no messages at the moment. Send it again.".to_owned()),
        }
    }
}
