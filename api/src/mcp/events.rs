//! Server-sent events as they go over the wire (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).

use std::time::Duration;

use bytes::Bytes;

use crate::reply::Event;

/// How often a stream says that it is there: proxies and clients give up one that is silent for a minute.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Longest event, in bytes: some clients end the connection over one of a MiB.
pub(super) const LONGEST_EVENT: usize = 1_000_000;

/// What no client takes for an event.
pub(super) fn comment() -> Bytes {
    Bytes::from_static(b":\n\n")
}

/// A JSON-RPC message.
pub(super) fn message(json: String) -> Bytes {
    let event = Event {
        name: Some("message".to_owned()),
        data: json,
        ..Event::default()
    };
    event.to_frame()
}

/// An event with an id and without data, from which on a client could resume.
pub(super) fn beginning(id: &str) -> Bytes {
    Bytes::from(format!("id: {id}\ndata:\n\n"))
}

/// When a client whose stream has ended is to open it again: the first line of an event.
pub(super) fn come_again(after: Duration) -> Bytes {
    Bytes::from(format!("retry: {}\n", after.as_millis()))
}
