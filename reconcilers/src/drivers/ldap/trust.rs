//! Whose certificates are trusted.

use std::sync::{Arc, OnceLock};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::error::{DirectoryError, shown};

/// The system's authorities, and those of `extra` in PEM.
pub(super) fn client_config(extra: Option<&str>) -> Result<Arc<ClientConfig>, DirectoryError> {
    let mut roots = system_roots().clone();
    if let Some(pem) = extra {
        let before = roots.len();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let invalid = |error: String| DirectoryError::Authority(shown(&error));
            let certificate = certificate.map_err(|error| invalid(error.to_string()))?;
            let added = roots.add(certificate);
            added.map_err(|error| invalid(error.to_string()))?;
        }
        if roots.len() == before {
            return Err(DirectoryError::Authority("it is empty".to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| DirectoryError::Certificate(shown(&error.to_string())))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
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
