//! Test of a name server.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// Time for an answer.
const ANSWER: Duration = Duration::from_secs(2);
/// A question for the name servers of the root, with the number 0x4159.
const QUESTION: [u8; 17] = [
    0x41, 0x59, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, // One question, by recursion.
    0, 0, 2, 0, 1,
];

/// Returns true if the server answers a question, in whatever way.
pub(super) fn is_answered(server: SocketAddr) -> bool {
    ask_server(server).unwrap_or(false)
}

fn ask_server(server: SocketAddr) -> io::Result<bool> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.set_read_timeout(Some(ANSWER))?;
    socket.connect(server)?;
    socket.send(&QUESTION)?;
    let mut answer = [0; 512];
    let length = socket.recv(&mut answer)?;
    Ok(length >= 12 && answer[..2] == QUESTION[..2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_is_an_answer_and_silence_is_none() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let answering = std::thread::spawn(move || {
            let mut question = [0; 512];
            let (length, from) = server.recv_from(&mut question).unwrap();
            assert_eq!(question[..length], QUESTION);
            question[2] = 0x85;
            server.send_to(&question[..12], from).unwrap();
        });
        assert!(is_answered(address));
        answering.join().unwrap();
        assert!(!is_answered(address));
    }
}
