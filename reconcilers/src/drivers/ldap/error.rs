//! Why a directory did not answer, and what to do.

use std::time::Duration;

use ldap3::{LdapError, LdapResult};
use schema::condition::Reason;

use super::wire::Refusal;
use crate::drivers::{shown, trust::TrustError};
use crate::runtime::{Classify, ErrorClass};

/// Why a directory did not answer. None of them has a password in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryError {
    /// No connection, or one that broke.
    #[error("the directory can't be reached ({0}); check ldap.host and the network")]
    Unreachable(String),
    /// It is there and says nothing.
    #[error("the directory has not answered within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// Its certificate is not trusted.
    #[error(
        "the certificate of the directory is not trusted ({0}); have it renewed, set ldap.ca_certificate to the authority that has issued it, or ldap.host to a name that it has"
    )]
    Certificate(String),
    /// What is set as certificates of authorities is none.
    #[error("ldap.ca_certificate has no certificate in PEM: {0}")]
    Authority(String),
    /// The server does not encrypt the connection.
    #[error(
        "the directory refuses StartTLS ({0}); use ldaps:// in ldap.host, or unset ldap.start_tls"
    )]
    StartTls(String),
    /// The service itself is not let in.
    #[error("the directory refuses ldap.bind_dn and its password ({0})")]
    Bind(String),
    /// The server takes no password that everybody on the way can read.
    #[error(
        "the directory takes no password without TLS ({0}); use ldaps:// in ldap.host, or set ldap.start_tls"
    )]
    Unencrypted(String),
    /// The base of a search is not there.
    #[error("the directory has no {0:?}; check the search base")]
    NoBase(String),
    /// The filter cannot be read.
    #[error("{0:?} is no filter")]
    Filter(String),
    /// The answer has not all entries.
    #[error(
        "the directory has not sent all entries ({0}); raise its limits for ldap.bind_dn, or set a smaller ldap.page_size"
    )]
    Incomplete(String),
    /// Several have the name.
    #[error("the directory has several entries for this name; check ldap.filter")]
    Ambiguous,
    /// A part of the answer is on another server.
    #[error(
        "the directory refers to another server for a part of the search base ({0}), and references are not followed; set ldap.host to a server that has all of it (Active Directory: its global catalog, port 3268 or 3269), or ldap.base_dn to a part that is on this server"
    )]
    Reference(String),
    /// An entry does not say which user, or which members, it stands for.
    #[error("the entry {dn:?} can't be used: {why}")]
    Unreadable {
        /// The entry.
        dn: String,
        /// The reason, and what to do.
        why: String,
    },
    /// Nothing can be connected to.
    #[error("ldap.host is no address of a directory: {0}")]
    Address(String),
    /// More than is borne.
    #[error(
        "the directory has more than {0} entries for this filter, which is more than is accepted"
    )]
    TooMany(usize),
    /// A message of the directory is not accepted.
    #[error("the directory's answer is not read: {0}")]
    Answer(String),
    /// Something else.
    #[error("the directory refuses the request: result {code} ({text})")]
    Refused {
        /// The result code (RFC 4511 §4.1.9).
        code: u32,
        /// What it says.
        text: String,
    },
}

impl Classify for DirectoryError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self {
            Self::Authority(_) | Self::Filter(_) | Self::Address(_) => {
                (ErrorClass::Terminal, Reason::InvalidSettings)
            }
            // What is wrong may be mended in the directory, too.
            _ => (ErrorClass::Transient, Reason::DirectoryFailed),
        }
    }
}

impl From<Refusal> for DirectoryError {
    fn from(refusal: Refusal) -> Self {
        Self::Answer(refusal.to_string())
    }
}

impl From<TrustError> for DirectoryError {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::Authority(text) => Self::Authority(text),
            TrustError::Setup(text) => Self::Certificate(text),
        }
    }
}

impl DirectoryError {
    /// What the library could not do.
    pub(super) fn of(error: LdapError, timeout: Duration) -> Self {
        let text = shown(&error.to_string());
        match error {
            LdapError::Timeout { .. } => Self::Timeout(timeout),
            LdapError::FilterParsing => Self::Filter(String::new()),
            LdapError::LdapResult { result } => Self::of_result(&result, ""),
            _ => Self::Unreachable(text),
        }
    }

    /// Names the reason why a connection could not be encrypted.
    pub(super) fn of_handshake(error: &std::io::Error) -> Self {
        let reason = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let text = shown(&error.to_string());
        match reason {
            Some(rustls::Error::InvalidCertificate(_)) => Self::Certificate(text),
            _ => Self::Unreachable(text),
        }
    }

    /// What a result means that is no success.
    pub(super) fn of_result(result: &LdapResult, base: &str) -> Self {
        let text = shown(&result.text);
        match result.rc {
            // Time, size, administrative limit; a page that cannot be.
            3 | 4 | 11 => Self::Incomplete(format!("result {} {text}", result.rc)),
            // Stronger authentication, or confidentiality, is required.
            8 | 13 => Self::Unencrypted(format!("result {} {text}", result.rc)),
            10 => Self::Reference(match result.refs.first() {
                Some(elsewhere) => shown(elsewhere),
                None => format!("result 10 {text}"),
            }),
            32 => Self::NoBase(base.to_owned()),
            // Busy, unavailable.
            51 | 52 => Self::Unreachable(format!("result {} {text}", result.rc)),
            code => Self::Refused { code, text },
        }
    }
}
