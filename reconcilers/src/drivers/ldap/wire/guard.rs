//! Passes messages between a server and the library.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::element::read_header;
use super::message::{EXTENDED, Head, SEQUENCE, check_answer, read_request};
use super::{Limits, MESSAGES, MIB, Refusal};

/// Bytes that are read at once, at least.
const PIECE: usize = 16 * 1024;
/// Longest time in which an end takes a message, or the connection's end.
const WRITE: Duration = Duration::from_secs(30);

/// The requests that have no answer yet, and the bytes of all answers.
#[derive(Default)]
struct Open {
    requests: Mutex<HashMap<u32, Head>>,
    answered: AtomicU64,
}

impl Open {
    fn requests(&self) -> MutexGuard<'_, HashMap<u32, Head>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_request(&self, request: Head) {
        if request.is_answered() {
            self.requests().insert(request.id, request);
        }
    }

    /// Checks that the service waits for this answer.
    fn match_answer(&self, answer: Head) -> Result<(), Refusal> {
        let mut requests = self.requests();
        match requests.get(&answer.id) {
            // A notification, such as that the server ends the connection.
            None if answer.id == 0 && answer.operation == EXTENDED => Ok(()),
            Some(request) if request.may_have(answer.operation) => {
                if !answer.goes_on() {
                    requests.remove(&answer.id);
                }
                Ok(())
            }
            _ => Err(Refusal::Form),
        }
    }

    fn take_answer(&self, answer: &mut [u8], limits: Limits) -> Result<(), Refusal> {
        self.count_bytes(answer.len(), limits)?;
        self.match_answer(check_answer(answer)?)
    }

    fn count_bytes(&self, bytes: usize, limits: Limits) -> Result<(), Refusal> {
        let most = (limits.message as u64).saturating_mul(MESSAGES);
        let before = self.answered.fetch_add(bytes as u64, Ordering::Relaxed);
        match before.saturating_add(bytes as u64) <= most {
            true => Ok(()),
            false => Err(Refusal::Endless(most / MIB as u64)),
        }
    }
}

/// Passes requests of the library to the server, and answers back, until one of them ends the connection.
///
/// # Errors
/// The refusal of a message of the server.
pub(in crate::drivers::ldap) async fn pass_messages(
    server: impl AsyncRead + AsyncWrite,
    library: impl AsyncRead + AsyncWrite,
    limits: Limits,
) -> Result<(), Refusal> {
    let (from_server, to_server) = tokio::io::split(server);
    let (from_library, to_library) = tokio::io::split(library);
    let open = Open::default();
    tokio::pin! {
        let requests = pass_checked(from_library, to_server, usize::MAX, |request| {
            open.add_request(read_request(request)?);
            Ok(())
        });
        let answers = pass_checked(from_server, to_library, limits.message, |answer| {
            open.take_answer(answer, limits)
        });
    }
    tokio::select! {
        ended = &mut requests => ended,
        ended = &mut answers => ended,
    }
}

/// Passes answers to requests with these numbers and operations.
///
/// # Errors
/// The refusal of a message.
#[cfg(feature = "fuzzing")]
pub(in crate::drivers::ldap) async fn pass_answers(
    requests: &[(u32, u8)],
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin,
    limits: Limits,
) -> Result<(), Refusal> {
    let open = Open::default();
    for (id, operation) in requests.iter().copied() {
        open.add_request(Head { id, operation });
    }
    pass_checked(from, to, limits.message, |answer| {
        open.take_answer(answer, limits)
    })
    .await
}

/// Passes whole messages on after `check`, until `from` ends or `to` takes no more.
async fn pass_checked(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    limit: usize,
    check: impl Fn(&mut [u8]) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let mut received = BytesMut::new();
    loop {
        while let Some(length) = whole_message(&received, limit)? {
            let mut message = received.split_to(length);
            check(&mut message)?;
            // TLS keeps what it is given until it is flushed.
            let written = async {
                to.write_all(&message).await?;
                to.flush().await
            };
            if !matches!(timeout(WRITE, written).await, Ok(Ok(()))) {
                return Ok(());
            }
        }
        received.reserve(PIECE);
        if !matches!(from.read_buf(&mut received).await, Ok(1..)) {
            let _ = timeout(WRITE, to.shutdown()).await;
            return Ok(());
        }
    }
}

/// The length of the message at the begin of `received`, if all of it is there.
fn whole_message(received: &[u8], limit: usize) -> Result<Option<usize>, Refusal> {
    if received.first().is_some_and(|tag| *tag != SEQUENCE) {
        return Err(Refusal::Form);
    }
    let Some((_, header, length)) = read_header(received)? else {
        return Ok(None);
    };
    let whole = usize::try_from(length)
        .unwrap_or(usize::MAX)
        .saturating_add(header);
    match whole {
        _ if whole > limit => Err(Refusal::Length { length, limit }),
        _ if whole > received.len() => Ok(None),
        _ => Ok(Some(whole)),
    }
}
