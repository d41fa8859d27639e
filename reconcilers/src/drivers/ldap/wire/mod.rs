//! The bytes between the service and a directory, checked before the LDAP library reads them.
//!
//! The library reads nested elements recursively and expects every answer to have the form of its request; over others it
//! ends its task, or the process. It is therefore given one end of a socket pair, and what comes from the server is passed on
//! message by message, each within the bounds of [`Limits`] and of the form that RFC 4511 gives it.

mod element;
mod guard;
mod message;
mod start_tls;

#[cfg(feature = "fuzzing")]
pub(super) use guard::pass_answers;
pub(super) use guard::pass_messages;
pub(super) use start_tls::start_tls;

/// Most elements inside each other; the deepest answer that the service asks for has 6.
const DEPTH: usize = 32;
/// Most elements of a message: the library takes about 60 bytes of memory for each.
const ELEMENTS: usize = 500_000;
/// Most bytes of all answers of a connection, in lengths of the longest message.
const MESSAGES: u64 = 64;

/// Most that a directory may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Bytes of a message.
    pub(super) message: usize,
}

/// The reason why a message is not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// The bytes are no message of LDAP, or not one that answers a request.
    #[error("it sent bytes that are no LDAP answer; check that ldap.host is an LDAP server")]
    Form,
    /// A message is longer than accepted.
    #[error("it sent a message of {length} bytes; raise ldap.max_message_mb above {} if that is right", .limit / MIB)]
    Length {
        /// The length that the server announced, in bytes.
        length: u64,
        /// The limit, in bytes.
        limit: usize,
    },
    /// Elements lie too deep inside each other.
    #[error("it sent a message with elements nested more than {DEPTH} deep")]
    Depth,
    /// A message has too many elements.
    #[error("it sent a message with more than {ELEMENTS} elements")]
    Count,
    /// The answers do not end.
    #[error(
        "it sent more than {0} MiB over one connection; raise ldap.max_message_mb if that is right"
    )]
    Endless(u64),
}

/// Bytes of a mebibyte.
const MIB: usize = 1024 * 1024;
