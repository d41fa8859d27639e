//! Server-sent events, as the HTML standard reads them: the little of it that a client in the same
//! repository needs, with a bound on what is kept.

use std::collections::VecDeque;

use reqwest::Response;

use super::{Result, failed};

/// Longest event, in bytes.
const LONGEST: usize = 1024 * 1024;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// Its name; `message` when it has none.
    pub name: String,
    /// The id to resume from; empty when it has none.
    pub id: String,
    /// Its data; `None`: nothing happened, only the id is another.
    pub data: Option<String>,
}

/// The events of an answer, as they come.
pub struct Events {
    answer: Response,
    parser: Parser,
    ready: VecDeque<Event>,
}

impl Events {
    /// Those of an answer whose head was read.
    pub fn of(answer: Response) -> Self {
        Self {
            answer,
            parser: Parser::default(),
            ready: VecDeque::new(),
        }
    }

    /// The next event; `None` at the end, or when the answer breaks off.
    ///
    /// # Errors
    /// When an event is too long.
    pub async fn next(&mut self) -> Result<Option<Event>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let Ok(Some(bytes)) = self.answer.chunk().await else {
                return Ok(None);
            };
            let events = self.parser.feed(&bytes);
            self.ready = events.map_err(failed)?.into();
        }
    }
}

/// An event that is longer than any server of ours sends.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server sent an event that is too long")]
struct TooLong;

/// Puts pieces of a stream together to events.
#[derive(Debug, Default)]
struct Parser {
    /// Bytes of a line that has not ended.
    line: Vec<u8>,
    /// The last byte was a carriage return, so a line feed now belongs to it.
    returned: bool,
    event: Event,
}

impl Parser {
    /// Takes the next piece; gives the events that it completes.
    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        for &byte in bytes {
            let after_return = std::mem::take(&mut self.returned);
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => {
                    self.returned = byte == b'\r';
                    let line = std::mem::take(&mut self.line);
                    events.extend(self.end_line(&String::from_utf8_lossy(&line)));
                }
                byte => self.line.push(byte),
            }
            if self.line.len() + self.event.data.as_ref().map_or(0, String::len) > LONGEST {
                return Err(TooLong);
            }
        }
        Ok(events)
    }

    fn end_line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let mut event = std::mem::take(&mut self.event);
            if event.name.is_empty() {
                event.name.push_str("message");
            }
            return (event.data.is_some() || !event.id.is_empty()).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event.name = value.to_owned(),
            "id" => self.event.id = value.to_owned(),
            "data" => match &mut self.event.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            },
            // Comments keep the connection alive; anything else is for other readers.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, id: &str, data: &str) -> Event {
        Event {
            name: name.to_owned(),
            id: id.to_owned(),
            data: (data != "none").then(|| data.to_owned()),
        }
    }

    #[test]
    fn events_are_the_same_however_they_are_cut() {
        let stream = "\u{feff}: hello\nevent: open\nid: a-1\ndata: {}\n\n: ping\n\n\
                      id: a-2\r\ndata: {\"x\":1}\r\ndata:two é\r\n\r\ndata\n\n:\nid:a-7\n\ndata: unfinished";
        let expected = [
            event("open", "a-1", "{}"),
            event("message", "a-2", "{\"x\":1}\ntwo é"),
            event("message", "", ""),
            event("message", "a-7", "none"),
        ];
        for size in [1, 2, 3, 7, 1000] {
            let mut parser = Parser::default();
            let chunks = stream.as_bytes().chunks(size);
            let events: Vec<Event> = chunks
                .flat_map(|chunk| parser.feed(chunk).unwrap())
                .collect();
            assert_eq!(events, expected, "{size}");
        }
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut parser = Parser::default();
        let piece = [b'x'; 1024];
        let pieces = (0..2 * 1024).map(|_| parser.feed(&piece));
        assert!(pieces.into_iter().any(|fed| fed == Err(TooLong)));
        let mut parser = Parser::default();
        let line = format!("data: {}\n", "x".repeat(1000));
        let lines = (0..2 * 1024).map(|_| parser.feed(line.as_bytes()));
        assert!(lines.into_iter().any(|fed| fed == Err(TooLong)));
    }
}
