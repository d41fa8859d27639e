//! An upload that is sent by hand: as much of it as a test wants, and in whichever way.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Person;

pub const MIB: usize = 1024 * 1024;
/// How long the service has for an answer.
const PATIENCE: Duration = crate::support::PATIENCE;
const END: &str = "\r\n--B--\r\n";
/// Bytes of which any number in a row is different from those around it.
const ROW: usize = 251;

/// How a body's length is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announced {
    Length,
    /// Not at all: the body comes in chunks.
    Never,
}

/// What a file of this length is filled with.
pub fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % ROW) as u8).collect()
}

/// An upload under way.
pub struct Sent {
    pub stream: TcpStream,
    announced: Announced,
    sent: usize,
}

impl Sent {
    /// Sends the request's head and nothing of its body, which shall have one file of this length.
    pub async fn head(person: &Person, name: &str, length: usize, announced: Announced) -> Self {
        let mut stream = TcpStream::connect(person.address).await.unwrap();
        let mut head = format!(
            "POST /api/files/upload HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: multipart/form-data; boundary=B\r\n",
            person.address
        );
        for (name, value) in person.browser.credentials() {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&match announced {
            Announced::Length => {
                let length = part(name).len() + length + END.len();
                format!("Content-Length: {length}\r\n\r\n")
            }
            Announced::Never => "Transfer-Encoding: chunked\r\n\r\n".to_owned(),
        });
        stream.write_all(head.as_bytes()).await.unwrap();
        Self {
            stream,
            announced,
            sent: 0,
        }
    }

    /// The same, and the head of the file.
    pub async fn begin(person: &Person, name: &str, length: usize, announced: Announced) -> Self {
        let mut sent = Self::head(person, name, length, announced).await;
        sent.body(part(name).as_bytes()).await;
        sent
    }

    /// The whole of a file.
    pub async fn whole(
        person: &Person,
        name: &str,
        length: usize,
        announced: Announced,
    ) -> (u16, Value) {
        let mut sent = Self::begin(person, name, length, announced).await;
        sent.bytes(length).await;
        sent.end().await
    }

    /// So many more bytes of the file.
    pub async fn bytes(&mut self, length: usize) {
        // As many as make whole rows, so that each piece begins as the first one.
        let piece = content(ROW * 512);
        let mut left = length;
        while left > 0 {
            let begin = self.sent % ROW;
            let end = (begin + left).min(piece.len());
            self.body(&piece[begin..end]).await;
            self.sent += end - begin;
            left -= end - begin;
        }
    }

    async fn body(&mut self, bytes: &[u8]) {
        if self.announced == Announced::Length {
            return self.stream.write_all(bytes).await.unwrap();
        }
        let length = format!("{:x}\r\n", bytes.len());
        for part in [length.as_bytes(), bytes, b"\r\n"] {
            self.stream.write_all(part).await.unwrap();
        }
    }

    /// Sends what ends the body.
    pub async fn end(mut self) -> (u16, Value) {
        self.body(END.as_bytes()).await;
        if self.announced == Announced::Never {
            self.stream.write_all(b"0\r\n\r\n").await.unwrap();
        }
        self.answer().await
    }

    /// Waits for the answer, however much of the body was sent.
    pub async fn answer(mut self) -> (u16, Value) {
        let mut text = String::new();
        let read = self.stream.read_to_string(&mut text);
        timeout(PATIENCE, read).await.expect("an answer").unwrap();
        let (head, body) = text.split_once("\r\n\r\n").expect("an answer");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).expect(body))
    }
}

fn part(name: &str) -> String {
    format!("--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n")
}
