//! TLS for the listeners, from PEM files, reloadable.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

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
        let acceptor = RwLock::new(read(&certificate, &key)?);
        Ok(Self(Arc::new(Inner {
            certificate,
            key,
            acceptor,
        })))
    }

    /// Reads both files again. Reads files, so it blocks shortly.
    ///
    /// # Errors
    /// As [`Tls::load`]; what was in use stays in use then.
    pub fn reload(&self) -> Result<(), TlsError> {
        let fresh = read(&self.0.certificate, &self.0.key)?;
        *self
            .0
            .acceptor
            .write()
            .unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let acceptor = self.0.acceptor.read();
        acceptor.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn read(certificate: &PathBuf, key: &PathBuf) -> Result<TlsAcceptor, TlsError> {
    let unreadable = |path: &PathBuf| {
        let path = path.clone();
        move |source| TlsError::Pem { path, source }
    };
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
