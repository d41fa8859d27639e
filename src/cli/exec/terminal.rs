//! The terminal of this process, in raw mode while a program in a container has it.

use std::io::{self, Read};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

/// Bytes that are read at once.
const AT_ONCE: usize = 16 * 1024;
/// Pieces that wait for the server.
const WAITING: usize = 4;

/// The terminal of standard input in raw mode; dropping it restores the former mode.
pub struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    /// Enters raw mode.
    ///
    /// # Errors
    /// When standard input is no terminal.
    pub fn enter() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Columns and rows of the terminal, of standard output or else of standard input.
pub fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(io::stdout()).or_else(|_| tcgetwinsize(io::stdin()));
    size.ok().map(|size| (size.ws_col, size.ws_row))
}

/// Standard input, piece by piece. Its thread ends with the process: a read of a terminal cannot be called off.
pub fn read_input() -> mpsc::Receiver<Vec<u8>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "in the client, for its own keyboard"
    )]
    let (sender, receiver) = mpsc::channel(WAITING);
    std::thread::spawn(move || {
        let mut buffer = vec![0; AT_ONCE];
        loop {
            let read = match io::stdin().lock().read(&mut buffer) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => 0,
            };
            let piece = buffer.get(..read).unwrap_or_default().to_vec();
            if read == 0 || sender.blocking_send(piece).is_err() {
                return;
            }
        }
    });
    receiver
}
