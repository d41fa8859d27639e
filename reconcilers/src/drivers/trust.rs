//! Whose certificates are trusted.

use std::sync::{Arc, OnceLock};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::shown;

/// Certificates that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TrustError {
    /// What is set as certificates of authorities is none.
    #[error("{0}")]
    Authority(String),
    /// TLS itself cannot be set up.
    #[error("{0}")]
    Setup(String),
}

/// The system's authorities, and those of `extra` in PEM. Reads files.
pub(super) fn client_config(extra: Option<&str>) -> Result<ClientConfig, TrustError> {
    let mut roots = system_roots().clone();
    if let Some(pem) = extra {
        let before = roots.len();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let invalid = |error: String| TrustError::Authority(shown(&error));
            let certificate = certificate.map_err(|error| invalid(error.to_string()))?;
            let added = roots.add(certificate);
            added.map_err(|error| invalid(error.to_string()))?;
        }
        if roots.len() == before {
            return Err(TrustError::Authority("it is empty".to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TrustError::Setup(shown(&error.to_string())))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

/// Read once. A file that cannot be read does not take the others away.
fn system_roots() -> &'static RootCertStore {
    static ROOTS: OnceLock<RootCertStore> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    })
}
