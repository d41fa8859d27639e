//! The beginning of a log at a moment.
//!
//! The cluster knows whole seconds only. So the lines of that second are asked for with their times, and those from before the moment
//! are left out.

use bytes::{Buf, Bytes, BytesMut};
use schema::ids::Timestamp;

/// Longest time in front of a line, with the space behind it.
const STAMP: usize = 48;

/// Leaves out lines from before a moment. Nothing but the beginning of a line is ever kept back.
#[derive(Debug)]
pub(crate) struct LinesSince {
    since: Timestamp,
    /// The times stay in front of the lines.
    stamps: bool,
    state: State,
    begin: BytesMut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Begin,
    Shown,
    LeftOut,
}

impl LinesSince {
    pub(crate) fn new(since: Timestamp, stamps: bool) -> Self {
        Self {
            since,
            stamps,
            state: State::Begin,
            begin: BytesMut::new(),
        }
    }

    /// Takes the next bytes and returns what of them is shown.
    pub(crate) fn feed(&mut self, mut bytes: Bytes) -> Bytes {
        let mut shown = BytesMut::new();
        while !bytes.is_empty() {
            let line_end = bytes
                .iter()
                .position(|byte| *byte == b'\n')
                .map(|at| at + 1);
            match self.state {
                State::Begin => {
                    let stamp_end = bytes.iter().position(|byte| *byte == b' ').map(|at| at + 1);
                    let room = STAMP - self.begin.len();
                    let end = [stamp_end, line_end, Some(room), Some(bytes.len())];
                    let end = end.into_iter().flatten().min().unwrap_or(room);
                    let taken = bytes.split_to(end);
                    self.begin.extend_from_slice(&taken);
                    let is_whole = taken.ends_with(b" ") || taken.ends_with(b"\n");
                    if is_whole || self.begin.len() >= STAMP {
                        self.decide_line(&mut shown);
                    }
                }
                State::Shown | State::LeftOut => {
                    let part = bytes.split_to(line_end.unwrap_or(bytes.len()));
                    if self.state == State::Shown {
                        shown.extend_from_slice(&part);
                    }
                    if line_end.is_some() {
                        self.state = State::Begin;
                    }
                }
            }
        }
        shown.freeze()
    }

    /// Shows a line whose time is not before the moment, and one without a time.
    fn decide_line(&mut self, shown: &mut BytesMut) {
        let mut begin = self.begin.split();
        let text = std::str::from_utf8(&begin).unwrap_or_default();
        let time = text.strip_suffix(' ').and_then(Timestamp::parse_rfc3339);
        let ends = begin.ends_with(b"\n");
        if time.is_some_and(|time| time < self.since) {
            self.state = State::LeftOut;
        } else {
            if time.is_some() && !self.stamps {
                begin.advance(begin.len());
            }
            shown.extend_from_slice(&begin);
            self.state = State::Shown;
        }
        if ends {
            self.state = State::Begin;
        }
    }

    /// Returns the bytes that were kept back, at the end of the log.
    pub(crate) fn finish(&mut self) -> Bytes {
        self.begin.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "2026-01-01T00:00:01.100000001Z one\n2026-01-01T00:00:01.5Z two words\n\
        2026-01-01T00:00:01.499999999Z three\nno time\n\n2026-01-01T00:00:02Z four";

    fn read(stamps: bool, step: usize) -> String {
        let since = Timestamp::parse_rfc3339("2026-01-01T00:00:01.5Z").unwrap();
        let mut lines = LinesSince::new(since, stamps);
        let mut shown = Vec::new();
        for part in LOG.as_bytes().chunks(step) {
            shown.extend_from_slice(&lines.feed(Bytes::copy_from_slice(part)));
        }
        shown.extend_from_slice(&lines.finish());
        String::from_utf8(shown).unwrap()
    }

    #[test]
    fn earlier_lines_are_left_out_for_every_cut() {
        for step in [1, 2, 7, 40, 1000] {
            assert_eq!(read(false, step), "two words\nno time\n\nfour", "{step}");
            let stamped = "2026-01-01T00:00:01.5Z two words\nno time\n\n2026-01-01T00:00:02Z four";
            assert_eq!(read(true, step), stamped, "{step}");
        }
    }

    #[test]
    fn long_word_at_the_beginning_is_not_kept_back() {
        let mut lines = LinesSince::new(Timestamp::from_millis(0), false);
        let word = Bytes::from(vec![b'x'; 100_000]);
        assert_eq!(lines.feed(word.clone()).len(), word.len());
        assert!(lines.begin.capacity() <= 1024);
    }
}
