//! Sending of messages. Pictures are read from the disk while they are sent, so that no message is in memory as a whole.

use std::future::Future;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::SinkExt;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::{Link, Outgoing, SEND, Writer};
use crate::chat::pico::{BETWEEN_PICTURES, END_OF_PICTURES, begin_picture_frame, message_frame};
use crate::chat::store::{Picture, open_pictures, read_part};
use crate::long_work::work_on;

/// Bytes of a picture that are sent at once: a multiple of three, so that the parts in Base64 make one text.
const PART: usize = 768 * 1024;
/// Memory of a message with pictures while it is sent, in bytes: a part, its Base64, and the copies of the socket.
const MEMORY: usize = 4 * 1024 * 1024;

/// A message that was not sent.
pub(super) enum Unsent {
    /// It cannot be sent, for this reason; the connection stands.
    Message(String),
    /// The connection is broken, or has to be: for this reason, if the message is not to be sent again.
    Broken(Option<String>),
}

/// Waits for a step of sending, at most [`SEND`].
async fn within_time<T>(step: impl Future<Output = T>) -> Result<T, Unsent> {
    timeout(SEND, step).await.map_err(|_| Unsent::Broken(None))
}

async fn send(writer: &mut Writer, message: Message) -> Result<(), Unsent> {
    let sent = within_time(writer.send(message)).await?;
    sent.map_err(|_| Unsent::Broken(None))
}

/// A message that is sent in fragments.
struct Fragments<'a> {
    writer: &'a mut Writer,
    is_first: bool,
}

impl Fragments<'_> {
    async fn send(&mut self, bytes: impl Into<Bytes>, is_last: bool) -> Result<(), Unsent> {
        let data = match std::mem::take(&mut self.is_first) {
            true => Data::Text,
            false => Data::Continue,
        };
        let frame = Frame::message(bytes, OpCode::Data(data), is_last);
        send(self.writer, Message::Frame(frame)).await
    }
}

impl Link<'_> {
    /// Sends a message, or the text that stops the turn.
    pub(super) async fn send_outgoing(
        &self,
        writer: &mut Writer,
        outgoing: Outgoing,
    ) -> Result<(), Unsent> {
        let entry = match outgoing {
            Outgoing::Message(entry) => entry,
            Outgoing::Stop => {
                let text = message_frame("stop", "/stop");
                return send(writer, Message::text(text)).await;
            }
        };
        let room = self.room.upgrade();
        let message = room.and_then(|room| room.read(|talk| talk.message_of(entry)));
        let Some((text, pictures)) = message else {
            return Err(Unsent::Message("The message is gone.".to_owned()));
        };
        let mut memory = self.deps.chats.frames.share(&self.account.uid);
        if pictures.is_empty() {
            // As JSON, and as a copy of the socket.
            within_time(memory.wait_for(4 * text.len())).await?;
            let length = text.len();
            let frame = work_on(length, move || message_frame(&entry.to_string(), &text)).await;
            let frame = frame.ok_or(Unsent::Broken(None))?;
            return send(writer, Message::text(frame)).await;
        }
        let sending = self.deps.chats.sending.part_of(&self.account.uid);
        // It is never closed.
        let _turn = within_time(sending.acquire_owned()).await?.ok();
        within_time(memory.wait_for(MEMORY + 4 * text.len())).await?;
        let pictures = open_pictures(&self.deps.files, self.account, pictures).await;
        let pictures = pictures.map_err(Unsent::Message)?;
        let begin = begin_picture_frame(&entry.to_string(), &text);
        drop(text);
        let is_first = true;
        let mut fragments = Fragments { writer, is_first };
        fragments.send(begin, false).await?;
        for (number, picture) in pictures.iter().enumerate() {
            let between = if number == 0 { "" } else { BETWEEN_PICTURES };
            let head = format!("{between}data:{};base64,", picture.kind);
            fragments.send(head, false).await?;
            self.send_picture(&mut fragments, picture).await?;
        }
        fragments.send(END_OF_PICTURES, true).await
    }

    async fn send_picture(
        &self,
        fragments: &mut Fragments<'_>,
        picture: &Picture,
    ) -> Result<(), Unsent> {
        let size = picture.file.size();
        let mut begin = 0;
        while begin < size {
            let length = usize::try_from(size - begin).map_or(PART, |left| left.min(PART));
            let part = read_part(&self.deps.files, self.account, &picture.file, begin, length);
            let part = within_time(part).await?;
            let changed = || "A picture has changed while it was sent. Send it again.".to_owned();
            // The agent waits for the rest of the frame: only the end of the connection takes it back.
            let part = part.ok_or_else(|| Unsent::Broken(Some(changed())))?;
            let text = STANDARD.encode(part);
            fragments.send(text, false).await?;
            begin += length as u64;
        }
        Ok(())
    }
}
