//! Why a repository was not read, and what to do.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use schema::condition::Reason;

use crate::runtime::{Classify, ErrorClass};

/// Why a repository was not read, and what to do. What a server or `git` says in it is cut, has no control characters and
/// holds none of the secrets that the call was given.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// A program is not there.
    #[error(
        "the program {program} is not installed on this server; install it with: apt-get install -y {package}"
    )]
    Missing {
        /// The program.
        program: &'static str,
        /// The package of Debian that has it.
        package: &'static str,
    },
    /// `git` is there, and cannot do what is needed.
    #[error(
        "git on this server has version {0}, and 2.37 or newer is needed; upgrade it with: apt-get install -y git"
    )]
    TooOld(String),
    /// The name of the host is not known.
    #[error(
        "the host {0} can't be found; check the address of the repository and the name service of this server"
    )]
    UnknownHost(String),
    /// The host is where only this server reaches it.
    #[error(
        "the host {host} is at {address}, a private, link-local or loopback address; if repositories may be there, set skills.allow_private_hosts"
    )]
    Internal {
        /// The host.
        host: String,
        /// Its address.
        address: IpAddr,
    },
    /// A redirect that is not followed.
    #[error(
        "the server of the repository redirects to {0}, which is not followed; give the address of the repository itself"
    )]
    Redirect(String),
    /// The secret would go over the network for everybody to read.
    #[error(
        "credentials are not sent over HTTP without TLS; give an address that begins with https:// or ssh://"
    )]
    Insecure,
    /// The secret can't be used at all.
    #[error("the credentials of the repository can't be used: {0}")]
    Credentials(&'static str),
    /// The server let nobody in, or not this one.
    #[error(
        "the server refuses access to the repository; check its credentials, and that they may read it ({0})"
    )]
    Unauthorized(String),
    /// There is no such repository, or none for these credentials.
    #[error(
        "there is no repository at this address, or it may not be read with these credentials ({0})"
    )]
    NotFound(String),
    /// The repository has no such branch or tag.
    #[error("the repository has no {0}; check the name, and whether it is a branch or a tag")]
    NoReference(String),
    /// What the reference names is no commit.
    #[error("{0} is no commit; choose a branch, or a tag of a commit")]
    NoCommit(String),
    /// The host shows another key than before.
    #[error("the host {host} shows another key than before{}; if its key was changed on purpose, forget the old one, otherwise somebody may be in between", shown(.fingerprint))]
    HostKeyChanged {
        /// The host.
        host: String,
        /// The fingerprint of the key that it shows, if the program tells it.
        fingerprint: Option<String>,
    },
    /// The host shows a key of which nothing is known although some are.
    #[error(
        "the host {0} shows a key that is not among its known ones; if that is right, forget the known ones"
    )]
    HostKeyUnknown(String),
    /// The certificate of the host is not trusted.
    #[error(
        "the certificate of {host} is not trusted: {words}; have it renewed, or name the authority that has issued it in SSL_CERT_FILE"
    )]
    Certificate {
        /// The host.
        host: String,
        /// Why.
        words: String,
    },
    /// No connection, or one that broke.
    #[error(
        "the server of the repository can't be reached ({0}); check its address and the network"
    )]
    Unreachable(String),
    /// A status of HTTP that is none of the others.
    #[error("the server of the repository answered with status {0}")]
    Status(u16),
    /// Something else than a repository is there.
    #[error(
        "at this address is something else than a Git repository; give the address that `git clone` takes"
    )]
    NoRepository,
    /// It took too long.
    #[error("the repository was not fetched within {} s", .0.as_secs())]
    Timeout(Duration),
    /// Nothing arrived any more.
    #[error("the server of the repository has sent nothing for {} s", .0.as_secs())]
    Stalled(Duration),
    /// More than is borne.
    #[error(
        "the repository has more than {most} {what}, which is more than is accepted; use a smaller one, or a branch of it with less"
    )]
    TooMuch {
        /// How much is.
        most: u64,
        /// Of what.
        what: &'static str,
    },
    /// Something in it that no repository of skills has.
    #[error("the repository has something in it that is not accepted: {0}")]
    Hostile(String),
    /// Reading or writing on this server.
    #[error("the repository could not be written on this server")]
    Storage(#[source] io::Error),
    /// Anything else, in the words of the program.
    #[error("git failed: {0}")]
    Failed(String),
}

fn shown(fingerprint: &Option<String>) -> String {
    match fingerprint {
        Some(fingerprint) => format!(" ({fingerprint})"),
        None => String::new(),
    }
}

impl Classify for GitError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self {
            Self::UnknownHost(_)
            | Self::Certificate { .. }
            | Self::Unreachable(_)
            | Self::Status(_)
            | Self::Timeout(_)
            | Self::Stalled(_)
            | Self::Failed(_) => (ErrorClass::Transient, Reason::Retrying),
            Self::Storage(error) if error.kind() == io::ErrorKind::StorageFull => {
                (ErrorClass::Transient, Reason::StorageFull)
            }
            Self::Storage(_) => (ErrorClass::Transient, Reason::Retrying),
            Self::Missing { .. }
            | Self::TooOld(_)
            | Self::Internal { .. }
            | Self::Redirect(_)
            | Self::Insecure
            | Self::Credentials(_)
            | Self::Unauthorized(_)
            | Self::NotFound(_)
            | Self::NoReference(_)
            | Self::NoCommit(_)
            | Self::NoRepository
            | Self::TooMuch { .. }
            | Self::Hostile(_) => (ErrorClass::Terminal, Reason::Failed),
            Self::HostKeyChanged { .. } | Self::HostKeyUnknown(_) => {
                (ErrorClass::Terminal, Reason::HostKeyChanged)
            }
        }
    }
}
