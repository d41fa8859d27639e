//! Container logs as lines of clean text, in bounded memory.
//!
//! Escape sequences are taken out of each line by itself: one that an agent never ends must not
//! swallow the lines after it.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use crate::ports::{LogStream, PortError};

/// Longest line handed on, in bytes; a longer one comes as several. Engines cut at 16 KiB.
const MAX_LINE: usize = 32 * 1024;

/// Cuts bytes into lines.
#[derive(Debug, Default)]
struct LineCutter {
    partial: Vec<u8>,
}

impl LineCutter {
    /// Takes the next bytes and hands on every line that is complete.
    fn feed(&mut self, mut bytes: &[u8], mut line: impl FnMut(Vec<u8>)) {
        while !bytes.is_empty() {
            let room = bytes.len().min(MAX_LINE - self.partial.len());
            let (head, _) = bytes.split_at(room);
            let end = head.iter().position(|byte| *byte == b'\n');
            self.partial.extend_from_slice(&head[..end.unwrap_or(room)]);
            bytes = &bytes[end.map_or(room, |end| end + 1)..];
            if end.is_some() || self.partial.len() >= MAX_LINE {
                line(std::mem::take(&mut self.partial));
            }
        }
    }

    /// The last line, when it has no end.
    fn finish(self) -> Option<Vec<u8>> {
        Some(self.partial).filter(|partial| !partial.is_empty())
    }
}

/// Text without escape sequences and control characters. Tabs stay.
fn clean(line: &[u8]) -> String {
    let parts: Vec<Vec<u8>> = line
        .split(|byte| *byte == b'\t')
        .map(strip_ansi_escapes::strip)
        .collect();
    String::from_utf8_lossy(&parts.join(&b'\t')).into_owned()
}

/// The lines of a log, as they come.
pub(super) fn lines(log: LogStream) -> impl Stream<Item = Result<String, PortError>> + Send {
    struct State {
        log: LogStream,
        cutter: Option<LineCutter>,
        ready: VecDeque<Vec<u8>>,
    }
    let state = State {
        log,
        cutter: Some(LineCutter::default()),
        ready: VecDeque::new(),
    };
    stream::unfold(state, |mut state| async move {
        loop {
            if let Some(line) = state.ready.pop_front() {
                return Some((Ok(clean(&line)), state));
            }
            let cutter = state.cutter.as_mut()?;
            match state.log.next().await {
                Some(Ok(bytes)) => cutter.feed(&bytes, |line| state.ready.push_back(line)),
                Some(Err(error)) => {
                    state.cutter = None;
                    return Some((Err(error), state));
                }
                None => {
                    let last = state.cutter.take().and_then(LineCutter::finish);
                    state.ready.extend(last);
                }
            }
        }
    })
}

/// The newest lines of a log that ends, at most `limit` bytes of text, each line with its end. True
/// when some were left out: older ones, or those that did not come within `time`.
pub(super) async fn newest(
    mut log: LogStream,
    limit: usize,
    time: Duration,
) -> Result<(String, bool), PortError> {
    let mut kept = Newest::new(limit);
    let mut cutter = LineCutter::default();
    let deadline = Instant::now() + time;
    loop {
        match timeout_at(deadline, log.next()).await {
            Ok(Some(piece)) => {
                let piece: Bytes = piece?;
                cutter.feed(&piece, |line| kept.push(line));
            }
            Ok(None) => break,
            Err(_) => {
                kept.truncated = true;
                break;
            }
        }
    }
    if let Some(last) = cutter.finish() {
        kept.push(last);
    }
    Ok(kept.into_text())
}

/// Lines, of which the oldest are forgotten when they get too many.
struct Newest {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    limit: usize,
    truncated: bool,
}

impl Newest {
    fn new(limit: usize) -> Self {
        Self {
            lines: VecDeque::new(),
            bytes: 0,
            limit,
            truncated: false,
        }
    }

    fn push(&mut self, line: Vec<u8>) {
        self.bytes += line.len() + 1;
        self.lines.push_back(line);
        while self.bytes > self.limit {
            let Some(oldest) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= oldest.len() + 1;
            self.truncated = true;
        }
    }

    /// The text. Cleaning can make a line longer (each byte that is not UTF-8 becomes a
    /// character of three), so the limit is kept once more.
    fn into_text(self) -> (String, bool) {
        let (mut cleaned, mut bytes, mut truncated) = (Vec::new(), 0, self.truncated);
        for line in self.lines.iter().rev() {
            let line = clean(line);
            bytes += line.len() + 1;
            if bytes > self.limit {
                truncated = true;
                break;
            }
            cleaned.push(line);
        }
        let mut text = String::with_capacity(self.limit.min(bytes));
        for line in cleaned.iter().rev() {
            text.push_str(line);
            text.push('\n');
        }
        (text, truncated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    fn log(pieces: &[&[u8]]) -> LogStream {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        stream::iter(pieces).boxed()
    }

    async fn all(pieces: &[&[u8]]) -> Vec<String> {
        lines(log(pieces)).map(Result::unwrap).collect().await
    }

    #[tokio::test]
    async fn lines_are_whole_however_the_pieces_were_cut() {
        assert_eq!(
            all(&[b"one\ntw", b"o\n\nthr", b"ee"]).await,
            ["one", "two", "", "three"]
        );
        assert!(all(&[b""]).await.is_empty());
    }

    #[tokio::test]
    async fn colours_go_and_tabs_stay() {
        assert_eq!(all(&[b"\x1b[31mred\x1b[0m\tx\r\n"]).await, ["red\tx"]);
    }

    #[tokio::test]
    async fn an_escape_sequence_without_end_hides_no_other_line() {
        let hidden = all(&[b"a\x1b]0;title\nstill here\n"]).await;
        assert_eq!(hidden, ["a", "still here"]);
    }

    #[tokio::test]
    async fn l42_a_line_without_end_is_handed_on_in_pieces() {
        let long = vec![b'x'; 3 * MAX_LINE + 1];
        let lengths: Vec<_> = all(&[&long, b"\n"]).await.iter().map(String::len).collect();
        assert_eq!(lengths, [MAX_LINE, MAX_LINE, MAX_LINE, 1]);
    }

    #[tokio::test]
    async fn l42_only_the_newest_lines_are_kept() {
        let (text, truncated) = newest(log(&[b"one\ntwo\nthree\n"]), 10, LONG)
            .await
            .unwrap();
        assert_eq!((text.as_str(), truncated), ("two\nthree\n", true));
        let (text, truncated) = newest(log(&[b"one\ntwo"]), 10, LONG).await.unwrap();
        assert_eq!((text.as_str(), truncated), ("one\ntwo\n", false));
        // Three bytes of text for each that is not UTF-8.
        let (text, truncated) = newest(log(&[b"\xff\xff\xff\xff\nab\n"]), 10, LONG)
            .await
            .unwrap();
        assert_eq!((text.as_str(), truncated), ("ab\n", true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_does_not_end_in_time_is_told_as_far_as_it_came() {
        let endless = log(&[b"one\ntw"]).chain(stream::pending()).boxed();
        let (text, truncated) = newest(endless, 100, LONG).await.unwrap();
        assert_eq!((text.as_str(), truncated), ("one\ntw\n", true));
    }

    #[tokio::test]
    async fn a_failure_in_the_middle_is_told_and_ends_the_lines() {
        let broken = Err(PortError::Failed("cut".into()));
        let pieces = stream::iter([Ok(Bytes::from_static(b"one\ntwo")), broken]).boxed();
        let told: Vec<_> = lines(pieces).collect().await;
        assert_eq!(told.len(), 2);
        assert_eq!(told[0].as_ref().unwrap(), "one");
        assert!(told[1].is_err());
    }

    proptest::proptest! {
        #[test]
        fn l64_any_bytes_become_clean_lines_within_the_limit(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
            cut in 0..300_usize,
        ) {
            let (head, tail) = bytes.split_at(cut.min(bytes.len()));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let (text, _) = runtime.block_on(newest(log(&[head, tail]), 100, LONG)).unwrap();
            assert!(text.len() <= 100);
            assert!(!text.contains('\x1b'));
        }
    }
}
