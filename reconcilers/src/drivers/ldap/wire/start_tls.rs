//! The request to encrypt a connection (RFC 4511 §4.14).

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Refusal;
use super::element::read_header;
use super::message::{EXTENDED, check_answer, read_result};
use crate::drivers::ldap::error::DirectoryError;
use crate::drivers::shown;

/// Message 1: the extended request 1.3.6.1.4.1.1466.20037.
const REQUEST: &[u8] = b"\x30\x1d\x02\x01\x01\x77\x18\x80\x161.3.6.1.4.1.1466.20037";
/// Most bytes of the answer.
const LONGEST: usize = 4096;

/// Asks the server to encrypt the connection. When it returns, the handshake may begin.
///
/// # Errors
/// [`DirectoryError::StartTls`] when the server refuses; when the answer is none, or the connection ends.
pub(in crate::drivers::ldap) async fn start_tls(
    stream: &mut TcpStream,
) -> Result<(), DirectoryError> {
    let broken = |error: std::io::Error| DirectoryError::Unreachable(error.to_string());
    stream.write_all(REQUEST).await.map_err(broken)?;
    let mut answer = Vec::new();
    // Byte by byte up to the length: what follows the answer belongs to the handshake.
    let length = loop {
        if let Some((_, header, length)) = read_header(&answer)? {
            let content = usize::try_from(length).unwrap_or(usize::MAX);
            match header.checked_add(content).filter(|all| *all <= LONGEST) {
                Some(all) => break all,
                None => return Err(Refusal::Form.into()),
            }
        }
        answer.push(stream.read_u8().await.map_err(broken)?);
    };
    let read = answer.len();
    answer.resize(length, 0);
    stream
        .read_exact(&mut answer[read..])
        .await
        .map_err(broken)?;
    let head = check_answer(&mut answer)?;
    let result = read_result(&answer).filter(|_| head.id == 1 && head.operation == EXTENDED);
    match result.ok_or(Refusal::Form)? {
        (0, _) => Ok(()),
        (code, text) => Err(DirectoryError::StartTls(format!(
            "result {code} {}",
            shown(&text)
        ))),
    }
}
