//! Frames of pages, as far as the service accepts them.

use std::sync::Arc;
use std::time::Duration;

use schema::home::conversations::ConversationId;

use super::Keeper;
use crate::chat::protocol::{
    LONGEST_CLIENT_ID, MOST_ATTACHMENTS, PageFrame, RefusalCode, SentAttachment,
};
use crate::chat::store;
use crate::chat::talk::{Now, Talk};
use crate::error::ApiError;
use crate::quota;

/// Most messages of a user within [`RATE_TIME`].
const RATE: usize = 20;
const RATE_TIME: Duration = Duration::from_secs(10);
/// Memory of an attachment, in bytes: longer paths are rare.
const PATH: usize = 1024;

impl Keeper {
    pub(super) async fn take_page_frame(
        &mut self,
        id: &ConversationId,
        frame: PageFrame,
    ) -> Result<(), (RefusalCode, String)> {
        let now = self.now();
        let outcome = match frame {
            PageFrame::Ping => Ok(()),
            PageFrame::Stop => match self.rooms.get(id) {
                Some(used) => used.room.change(|talk| talk.stop_turn(now)),
                None => Err(gone()),
            },
            PageFrame::Send {
                client_id,
                text,
                attachments,
            } => {
                self.accept_message(id, client_id, text, attachments, now)
                    .await
            }
        };
        self.settle_rooms(now).await;
        outcome
    }

    async fn accept_message(
        &mut self,
        id: &ConversationId,
        client_id: String,
        text: String,
        asked: Vec<SentAttachment>,
        now: Now,
    ) -> Result<(), (RefusalCode, String)> {
        check_message(&client_id, &asked)?;
        let Some(used) = self.rooms.get(id) else {
            return Err(gone());
        };
        let room = Arc::clone(&used.room);
        if room.change(|talk| talk.acknowledge_message(&client_id, now)) {
            return Ok(());
        }
        while self
            .sent
            .front()
            .is_some_and(|at| now.instant.duration_since(*at) > RATE_TIME)
        {
            self.sent.pop_front();
        }
        if self.sent.len() >= RATE {
            let text = format!(
                "at most {RATE} messages in {} s; wait a moment",
                RATE_TIME.as_secs()
            );
            return Err((RefusalCode::TooFast, text));
        }
        quota::Room::of(&self.deps, &self.account.uid)
            .await
            .and_then(|room| room.map_or(Ok(()), |mut room| room.take(text.len() as u64)))
            .map_err(|error| match error {
                error @ ApiError::QuotaExceeded { .. } => {
                    (RefusalCode::QuotaExceeded, error.to_string())
                }
                error => (RefusalCode::TooFast, error.to_string()),
            })?;
        let asked: Vec<_> = asked
            .into_iter()
            .map(|file| (file.path, file.picture))
            .collect();
        if !room.has_memory_for(text.len() + asked.len() * PATH) {
            let text = "the service has no memory left for the message; wait for an answer or close other conversations, and send it again in a minute";
            return Err((RefusalCode::Busy, text.to_owned()));
        }
        let pictures = room.read(Talk::sends_pictures);
        let looked =
            store::look_up_attachments(&self.deps.files, &self.account, asked, pictures).await;
        let attachments = looked.map_err(|cause| (RefusalCode::BadAttachment, cause))?;
        room.change(|talk| talk.accept_message(client_id, text, attachments, now))?;
        self.sent.push_back(now.instant);
        self.uncounted += 1;
        Ok(())
    }
}

/// Checks the id of a message and the number of its attachments.
///
/// # Errors
/// Cause and sentence of the refusal.
pub(in crate::chat) fn check_message(
    client_id: &str,
    asked: &[SentAttachment],
) -> Result<(), (RefusalCode, String)> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    if client_id.is_empty() || client_id.len() > LONGEST_CLIENT_ID || !client_id.bytes().all(plain)
    {
        let text = "client_id has 1 to 64 letters, digits and hyphens";
        return Err((RefusalCode::InvalidMessage, text.to_owned()));
    }
    if asked.len() > MOST_ATTACHMENTS {
        let most = MOST_ATTACHMENTS;
        let text =
            format!("a message has at most {most} attachments; send the rest with another one");
        return Err((RefusalCode::BadAttachment, text));
    }
    Ok(())
}

fn gone() -> (RefusalCode, String) {
    (
        RefusalCode::InvalidMessage,
        "the conversation is no longer open; reload the page".to_owned(),
    )
}
