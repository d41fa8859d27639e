//! TLS for the listeners, from PEM files, reloadable.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Why certificate and key can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file can't be read as PEM.
    #[error("{path} can't be read as PEM")]
    Pem {
        /// The file.
        path: PathBuf,
        /// The reader's answer.
        source: rustls_pki_types::pem::Error,
    },
    /// The certificate file has no certificate.
    #[error("{0} has no certificate")]
    NoCertificate(PathBuf),
    /// Every user of the machine can read or change the key.
    #[error(
        "{path}: its mode is {mode:04o}, so every user of this machine can read or change the key; make it 0600, or 0640 for a group of \
         its own (`defaultMode: 0400` in Kubernetes, `mode: 0400` in Compose)"
    )]
    KeyNotPrivate {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A file can't be looked at.
    #[error("{path} can't be read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Certificate and key are not usable, or not together.
    #[error("certificate and key can't be used")]
    Unusable(#[source] rustls::Error),
}

/// A certificate and its key, shared by listeners; [`Tls::reload`] takes effect on new connections.
#[derive(Clone)]
pub struct Tls(Arc<Inner>);

struct Inner {
    certificate: PathBuf,
    key: PathBuf,
    acceptor: RwLock<TlsAcceptor>,
    /// State of both files when they were last read.
    seen: Mutex<Option<[FileState; 2]>>,
}

/// State of a file, which differs once it was written or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileState {
    fn from_path(path: &Path) -> Option<Self> {
        let meta = fs::metadata(path).ok()?;
        Some(Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("certificate", &self.0.certificate)
            .finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads a certificate chain and its key. Reads files, so it blocks shortly.
    ///
    /// # Errors
    /// When a file is unreadable or the two don't fit.
    pub fn load(certificate: PathBuf, key: PathBuf) -> Result<Self, TlsError> {
        let seen = states(&certificate, &key);
        let acceptor = RwLock::new(read(&certificate, &key)?);
        Ok(Self(Arc::new(Inner {
            certificate,
            key,
            acceptor,
            seen: Mutex::new(seen),
        })))
    }

    /// Reads both files again. Reads files, so it blocks shortly.
    ///
    /// # Errors
    /// As [`Tls::load`]; what was in use stays in use then.
    pub fn reload(&self) -> Result<(), TlsError> {
        let seen = states(&self.0.certificate, &self.0.key);
        *self.0.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        let fresh = read(&self.0.certificate, &self.0.key)?;
        *self
            .0
            .acceptor
            .write()
            .unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    /// Reads both files again if one was written or replaced since they were last read, and reports whether they were. Files that
    /// are absent, as between two steps of a renewal, are looked for later.
    ///
    /// # Errors
    /// As [`Tls::load`]; what was in use stays in use then, until a file changes again.
    pub fn reload_if_changed(&self) -> Result<bool, TlsError> {
        let Some(present) = states(&self.0.certificate, &self.0.key) else {
            return Ok(false);
        };
        let seen = *self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match seen == Some(present) {
            true => Ok(false),
            false => self.reload().map(|()| true),
        }
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let acceptor = self.0.acceptor.read();
        acceptor.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn states(certificate: &Path, key: &Path) -> Option<[FileState; 2]> {
    Some([
        FileState::from_path(certificate)?,
        FileState::from_path(key)?,
    ])
}

/// Refuses a key that is open to every user of the machine.
fn check_mode(path: &Path) -> Result<(), TlsError> {
    let path = path.to_owned();
    match fs::metadata(&path) {
        Err(source) => Err(TlsError::Unreadable { path, source }),
        Ok(meta) if meta.mode() & 0o027 != 0 => Err(TlsError::KeyNotPrivate {
            path,
            mode: meta.mode() & 0o7777,
        }),
        Ok(_) => Ok(()),
    }
}

fn read(certificate: &PathBuf, key: &PathBuf) -> Result<TlsAcceptor, TlsError> {
    let unreadable = |path: &PathBuf| {
        let path = path.clone();
        move |source| TlsError::Pem { path, source }
    };
    check_mode(key)?;
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(unreadable(certificate))?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate(certificate.clone()));
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(unreadable(key))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(TlsError::Unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
