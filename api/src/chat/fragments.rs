//! Text messages in fragments: a socket keeps memory for the longest that it has sent.

use std::iter::from_fn;

use bytes::Bytes;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

/// Most bytes of a fragment.
const FRAGMENT: usize = 64 * 1024;

/// The fragments of one message.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    has_begun: bool,
}

impl Fragments {
    /// Cuts the next part of the message; `is_last` when no part follows it.
    pub(super) fn cut(&mut self, part: Bytes, is_last: bool) -> impl Iterator<Item = Message> {
        let mut rest = Some(part);
        from_fn(move || {
            let mut fragment = rest.take()?;
            let left = fragment.split_off(fragment.len().min(FRAGMENT));
            let ends = is_last && left.is_empty();
            if !left.is_empty() {
                rest = Some(left);
            }
            let data = match std::mem::replace(&mut self.has_begun, true) {
                false => Data::Text,
                true => Data::Continue,
            };
            let frame = Frame::message(fragment, OpCode::Data(data), ends);
            Some(Message::Frame(frame))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_one_message_of_short_fragments() {
        let mut fragments = Fragments::default();
        let parts = [
            vec![b'a'; FRAGMENT + 1],
            Vec::new(),
            vec![b'b'; 2 * FRAGMENT],
        ];
        let mut cut = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            cut.extend(fragments.cut(part.clone().into(), at == 2));
        }
        let frames = cut.iter().map(|message| match message {
            Message::Frame(frame) => frame,
            other => panic!("{other:?}"),
        });
        let headers = frames.clone().map(|frame| {
            let header = frame.header();
            (
                u8::from(header.opcode),
                header.is_final,
                frame.payload().len(),
            )
        });
        let expected = [
            (1, false, FRAGMENT),
            (0, false, 1),
            (0, false, 0),
            (0, false, FRAGMENT),
            (0, true, FRAGMENT),
        ];
        assert_eq!(headers.collect::<Vec<_>>(), expected);
        let payloads: Vec<&[u8]> = frames.map(|frame| frame.payload()).collect();
        assert_eq!(payloads.concat(), parts.concat());
    }
}
