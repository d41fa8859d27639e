//! Sending of messages. Pictures are read from the disk while they are sent, so that no message is in memory as a whole.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::SinkExt;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::{Link, Outgoing, SEND, Writer};
use crate::chat::fragments::Fragments;
use crate::chat::pico::{BETWEEN_PICTURES, END_OF_PICTURES, begin_picture_frame, message_frame};
use crate::chat::store::{Picture, open_pictures, read_part};
use crate::limits::{FREE, Share};
use crate::long_work::work_on;

/// Bytes of a picture that are read at once: a multiple of three, so that the parts in Base64 make one text.
const PART: usize = 768 * 1024;
/// Memory of a message with pictures while it is sent, in bytes: a part, and its Base64.
const MEMORY: usize = 2 * 1024 * 1024;

/// Cause of the end of a connection while a picture is sent.
const UNREADABLE: &str =
    "A picture changed, or could not be read, while it was sent. Send it again.";

/// A message that was not sent.
pub(super) enum Unsent {
    /// It cannot be sent, for this reason; the connection stands.
    Message(String),
    /// It is no longer to be sent; the connection stands.
    NotWanted,
    /// The connection is broken, or has to be: for this reason, if the message is not to be sent again.
    Broken(Option<String>),
}

/// Work for the agent whose turn has come, with the memory that it takes.
pub(super) struct Prepared {
    /// The frame, or its beginning where pictures follow.
    frame: String,
    pictures: Vec<Picture>,
    _memory: Option<Share>,
    _turn: Option<OwnedSemaphorePermit>,
}

impl Prepared {
    fn text(frame: String, memory: Option<Share>) -> Self {
        Self {
            frame,
            pictures: Vec::new(),
            _memory: memory,
            _turn: None,
        }
    }
}

async fn send(writer: &mut Writer, message: Message) -> Result<(), Unsent> {
    match timeout(SEND, writer.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Unsent::Broken(None)),
    }
}

/// Sends a ping; false when the connection is broken.
pub(super) async fn send_ping(writer: &mut Writer) -> bool {
    let sent = send(writer, Message::Ping(Bytes::new())).await;
    sent.is_ok()
}

/// A message that is sent in fragments.
struct Sending<'a> {
    writer: &'a mut Writer,
    fragments: Fragments,
}

impl Sending<'_> {
    async fn send(&mut self, part: impl Into<Bytes>, is_last: bool) -> Result<(), Unsent> {
        for fragment in self.fragments.cut(part.into(), is_last) {
            send(self.writer, fragment).await?;
        }
        Ok(())
    }
}

impl Link {
    fn read_message(&self, entry: u64) -> Result<(String, Vec<String>), Unsent> {
        let message = self
            .room
            .upgrade()
            .and_then(|room| room.read(|talk| talk.message_of(entry)));
        message.ok_or(Unsent::NotWanted)
    }

    /// Waits until a message, or the text that stops the turn, can be sent.
    pub(super) async fn prepare(&self, outgoing: Outgoing) -> Result<Prepared, Unsent> {
        let entry = match outgoing {
            Outgoing::Message(entry) => entry,
            Outgoing::Stop => return Ok(Prepared::text(message_frame("stop", "/stop"), None)),
        };
        let account = &self.all.account;
        let chats = &self.all.deps.chats;
        let mut memory = chats.frames.share(&account.uid);
        let (text, pictures) = self.read_message(entry)?;
        // Once as JSON, and once as a text.
        let weight = 4 * text.len();
        if pictures.is_empty() {
            drop(text);
            memory.wait_for(weight.saturating_sub(FREE)).await;
            let (text, _) = self.read_message(entry)?;
            let length = text.len();
            let write = move || message_frame(&entry.to_string(), &text);
            let frame = work_on(&account.uid, length, write).await;
            let frame = frame.ok_or(Unsent::Broken(None))?;
            return Ok(Prepared::text(frame, Some(memory)));
        }
        drop((text, pictures));
        // It is never closed.
        let turn = chats.sending.part_of(&account.uid).acquire_owned().await;
        memory.wait_for(MEMORY + weight).await;
        // The user may have stopped the turn meanwhile.
        let (text, pictures) = self.read_message(entry)?;
        let pictures = open_pictures(&self.all.deps.files, account, pictures).await;
        Ok(Prepared {
            frame: begin_picture_frame(&entry.to_string(), &text),
            pictures: pictures.map_err(Unsent::Message)?,
            _memory: Some(memory),
            _turn: turn.ok(),
        })
    }

    /// Sends what is prepared.
    pub(super) async fn send_prepared(
        &self,
        writer: &mut Writer,
        prepared: Prepared,
    ) -> Result<(), Unsent> {
        let fragments = Fragments::default();
        let mut sending = Sending { writer, fragments };
        let has_pictures = !prepared.pictures.is_empty();
        sending.send(prepared.frame, !has_pictures).await?;
        for (number, picture) in prepared.pictures.iter().enumerate() {
            let between = if number == 0 { "" } else { BETWEEN_PICTURES };
            let head = format!("{between}data:{};base64,", picture.kind);
            sending.send(head, false).await?;
            self.send_picture(&mut sending, picture).await?;
        }
        match has_pictures {
            true => sending.send(END_OF_PICTURES, true).await,
            false => Ok(()),
        }
    }

    async fn send_picture(
        &self,
        sending: &mut Sending<'_>,
        picture: &Picture,
    ) -> Result<(), Unsent> {
        let (files, account) = (&self.all.deps.files, &self.all.account);
        let size = picture.file.size();
        let mut begin = 0;
        while begin < size {
            let length = usize::try_from(size - begin).map_or(PART, |left| left.min(PART));
            let part = read_part(files, account, &picture.file, begin, length);
            let part = timeout(SEND, part).await.ok().flatten();
            // The agent waits for the rest of the frame: only the end of the connection takes it back.
            let part = part.ok_or_else(|| Unsent::Broken(Some(UNREADABLE.to_owned())))?;
            let text = STANDARD.encode(part);
            sending.send(text, false).await?;
            begin += length as u64;
        }
        Ok(())
    }
}
