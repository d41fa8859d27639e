//! The framing of container logs.
//!
//! Without a terminal the engine sends frames: one byte for the stream (0 input, 1 output,
//! 2 error), three zero bytes, the length of the payload as a big-endian u32, the payload.
//! A length is only counted down, never allocated: pieces are handed on as they arrive.

use bytes::{Buf, Bytes, BytesMut};
use engine::{EngineError, LogChunk};

/// Largest piece handed on, in bytes.
pub(super) const PIECE_LIMIT: usize = 64 * 1024;
const HEADER_BYTES: usize = 8;

/// Cuts a byte stream into log pieces.
#[derive(Debug, Default)]
pub(super) struct FrameDecoder {
    state: State,
    header: BytesMut,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was decoded yet: a first header that is none means text without frames.
    #[default]
    First,
    Header,
    Payload {
        stderr: bool,
        left: u32,
    },
    /// The container has a terminal: no frames at all.
    Unframed,
}

impl FrameDecoder {
    /// A decoder for what a terminal shows, which has no frames, whatever it begins with.
    pub(super) fn new_unframed() -> Self {
        Self {
            state: State::Unframed,
            header: BytesMut::new(),
        }
    }

    /// A decoder for bytes that have frames.
    pub(super) fn new_framed() -> Self {
        Self {
            state: State::Header,
            header: BytesMut::new(),
        }
    }

    /// Takes the next bytes and appends what they hold to `pieces`.
    pub(super) fn feed(
        &mut self,
        mut bytes: Bytes,
        pieces: &mut Vec<LogChunk>,
    ) -> Result<(), EngineError> {
        while !bytes.is_empty() {
            match self.state {
                State::Unframed => push_piece(pieces, false, &mut bytes, PIECE_LIMIT),
                State::Payload { stderr, left } => {
                    let before = bytes.len();
                    let most = usize::try_from(left).unwrap_or(usize::MAX);
                    push_piece(pieces, stderr, &mut bytes, most.min(PIECE_LIMIT));
                    let taken = u32::try_from(before - bytes.len()).unwrap_or(left);
                    self.state = match left.saturating_sub(taken) {
                        0 => State::Header,
                        left => State::Payload { stderr, left },
                    };
                }
                State::First | State::Header => {
                    let missing = HEADER_BYTES - self.header.len();
                    self.header
                        .extend_from_slice(&bytes.split_to(missing.min(bytes.len())));
                    self.read_header(pieces)?;
                }
            }
        }
        Ok(())
    }

    /// The stream has ended: fails when it ended inside a frame.
    pub(super) fn finish(&mut self, pieces: &mut Vec<LogChunk>) -> Result<(), EngineError> {
        match self.state {
            State::First => {
                let mut rest = self.header.split().freeze();
                push_piece(pieces, false, &mut rest, PIECE_LIMIT);
                Ok(())
            }
            State::Header if self.header.is_empty() => Ok(()),
            State::Unframed => Ok(()),
            State::Header | State::Payload { .. } => {
                Err(EngineError::Internal("the log broke off".to_owned()))
            }
        }
    }

    fn read_header(&mut self, pieces: &mut Vec<LogChunk>) -> Result<(), EngineError> {
        let fits = self
            .header
            .iter()
            .zip([2, 0, 0, 0])
            .all(|(byte, highest)| *byte <= highest);
        if !fits && self.state == State::First {
            self.state = State::Unframed;
            let mut rest = self.header.split().freeze();
            push_piece(pieces, false, &mut rest, PIECE_LIMIT);
            return Ok(());
        }
        if !fits {
            return Err(EngineError::Internal(
                "the log is not framed as it should be".to_owned(),
            ));
        }
        if self.header.len() == HEADER_BYTES {
            let mut header = self.header.split();
            let stderr = header.get_u32() >> 24 == 2;
            self.state = match header.get_u32() {
                0 => State::Header,
                left => State::Payload { stderr, left },
            };
        }
        Ok(())
    }
}

fn push_piece(pieces: &mut Vec<LogChunk>, stderr: bool, bytes: &mut Bytes, most: usize) {
    let piece = bytes.split_to(most.min(bytes.len()));
    if !piece.is_empty() {
        pieces.push(LogChunk {
            stderr,
            bytes: piece,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![kind, 0, 0, 0];
        frame.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_be_bytes());
        frame.extend_from_slice(payload);
        frame
    }

    fn decode_all(input: &[u8], step: usize) -> Result<Vec<LogChunk>, EngineError> {
        let mut decoder = FrameDecoder::default();
        let mut pieces = Vec::new();
        for part in input.chunks(step) {
            decoder.feed(Bytes::copy_from_slice(part), &mut pieces)?;
        }
        decoder.finish(&mut pieces)?;
        Ok(pieces)
    }

    fn text(pieces: &[LogChunk], stderr: bool) -> Vec<u8> {
        pieces
            .iter()
            .filter(|piece| piece.stderr == stderr)
            .flat_map(|piece| piece.bytes.clone())
            .collect()
    }

    #[test]
    fn l42_header_of_four_gigabytes_costs_what_arrives() {
        let mut decoder = FrameDecoder::default();
        let mut pieces = Vec::new();
        let mut input = vec![1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
        input.extend_from_slice(&[b'x'; 100]);
        decoder.feed(Bytes::from(input), &mut pieces).unwrap();
        assert_eq!(text(&pieces, false).len(), 100);
        assert!(decoder.header.capacity() < 64, "nothing is set aside");
        assert!(decoder.finish(&mut pieces).is_err(), "and it broke off");
    }

    #[test]
    fn l42_a_large_frame_is_handed_on_in_bounded_pieces() {
        let pieces = decode_all(&frame(1, &vec![b'x'; 1_000_000]), usize::MAX).unwrap();
        assert!(pieces.len() > 10);
        assert!(pieces.iter().all(|piece| piece.bytes.len() <= PIECE_LIMIT));
        assert_eq!(text(&pieces, false).len(), 1_000_000);
    }

    #[test]
    fn text_of_a_terminal_comes_through_as_it_is() {
        assert_eq!(
            text(&decode_all(b"hello\r\nworld", 3).unwrap(), false),
            b"hello\r\nworld"
        );
        assert_eq!(text(&decode_all(b"hi", 1).unwrap(), false), b"hi");
    }

    #[test]
    fn a_stream_out_of_step_is_an_error_and_not_text() {
        let mut input = frame(1, b"fine\n");
        input.extend_from_slice(b"not a header at all");
        assert!(decode_all(&input, 4).is_err());
    }

    proptest! {
        #[test]
        fn frames_survive_any_cutting(
            frames in proptest::collection::vec((1u8..=2, proptest::collection::vec(any::<u8>(), 0..300)), 1..20),
            step in 1usize..50,
        ) {
            let input: Vec<u8> = frames.iter().flat_map(|(kind, payload)| frame(*kind, payload)).collect();
            let pieces = decode_all(&input, step).unwrap();
            for stderr in [false, true] {
                let expected: Vec<u8> = frames.iter()
                    .filter(|(kind, _)| (*kind == 2) == stderr)
                    .flat_map(|(_, payload)| payload.clone())
                    .collect();
                prop_assert_eq!(text(&pieces, stderr), expected);
            }
        }

        #[test]
        fn no_input_makes_the_decoder_panic(input in proptest::collection::vec(any::<u8>(), 0..200), step in 1usize..20) {
            let _ = decode_all(&input, step);
        }
    }
}
