//! Properties of messages of hostile directories.

#![allow(clippy::panic, reason = "a finding ends the target")]

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use ldap3::asn1::parse_tag;
use tokio::io::{AsyncRead, ReadBuf};

use super::wire::{Limits, Refusal, pass_answers};

/// Longest message that is accepted, in bytes: short, so that inputs reach it.
const LIMITS: Limits = Limits { message: 300 };
/// Most bytes of all messages.
const ALL: usize = 64 * LIMITS.message;
/// The requests that wait for answers: a bind, searches, an extended one, and a comparison.
const REQUESTS: [(u32, u8); 6] = [
    (1, 0x60),
    (2, 0x63),
    (3, 0x63),
    (4, 0x77),
    (5, 0x6e),
    (0x7fff_ffff, 0x63),
];

/// Passes the answers of a directory to the library, cut into pieces in several ways.
///
/// # Panics
/// When pieces change the verdict, or something longer than its bound is passed on.
pub async fn check_answers(answers: &[u8]) {
    let whole = pass(answers, |_| usize::MAX).await;
    let (verdict, passed) = &whole;
    assert!(passed.len() <= answers.len().min(ALL));
    check_passed(passed, answers);
    if let Err(refusal) = verdict {
        assert!(refusal.to_string().len() <= 300, "{refusal}");
    }
    let varied = |at: usize| answers.get(at).map_or(1, |byte| 1 + usize::from(byte % 16));
    assert_eq!(pass(answers, |_| 1).await, whole);
    assert_eq!(pass(answers, varied).await, whole);
}

/// Checks that each message is whole, short, and one that the library reads.
fn check_passed(passed: &[u8], answers: &[u8]) {
    let mut rest = passed;
    while !rest.is_empty() {
        let Ok((after, tag)) = parse_tag(rest) else {
            panic!("the library reads no message at {rest:?}");
        };
        let length = rest.len() - after.len();
        assert!((1..=LIMITS.message).contains(&length), "{length} bytes");
        drop(tag);
        rest = after;
    }
    // Only texts for people are changed, byte by byte.
    let changed = passed.iter().zip(answers).filter(|(to, from)| to != from);
    assert!(
        changed
            .into_iter()
            .all(|(to, from)| *to == b'?' && !from.is_ascii())
    );
}

async fn pass(
    answers: &[u8],
    length: impl Fn(usize) -> usize + Unpin,
) -> (Result<(), Refusal>, Vec<u8>) {
    let pieces = Pieces {
        answers,
        position: 0,
        length,
    };
    let mut passed = Vec::new();
    let verdict = pass_answers(&REQUESTS, pieces, &mut passed, LIMITS).await;
    (verdict, passed)
}

/// Bytes that arrive in pieces, each as long as its position says.
struct Pieces<'a, F> {
    answers: &'a [u8],
    position: usize,
    length: F,
}

impl<F: Fn(usize) -> usize + Unpin> AsyncRead for Pieces<'_, F> {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let rest = this.answers.get(this.position..).unwrap_or_default();
        let length = (this.length)(this.position);
        let piece = &rest[..rest.len().min(length).min(buffer.remaining())];
        buffer.put_slice(piece);
        this.position += piece.len();
        Poll::Ready(Ok(()))
    }
}
