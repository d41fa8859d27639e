//! The keyed hashes behind session cookies and CSRF tokens.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretSlice};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::error::{ApiError, Result};

/// Signs with keys derived from the persisted session secret.
#[derive(Clone)]
pub struct Signer {
    session: Hmac<Sha256>,
    csrf: Hmac<Sha256>,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer")
    }
}

impl Signer {
    /// Sessions are signed with the secret's bytes, CSRF tokens with the same bytes + `-csrf`.
    ///
    /// # Errors
    /// [`ApiError::Internal`]; HMAC takes keys of every length, so in practice never.
    pub fn new(secret: &SecretSlice<u8>) -> Result<Self> {
        let secret = secret.expose_secret();
        let csrf_key = Zeroizing::new([secret, b"-csrf"].concat());
        Ok(Self {
            session: Hmac::new_from_slice(secret).map_err(ApiError::internal)?,
            csrf: Hmac::new_from_slice(&csrf_key).map_err(ApiError::internal)?,
        })
    }

    pub(super) fn sign_session(&self, message: &str) -> String {
        let mac = self.session.clone().chain_update(message.as_bytes());
        hex::encode(mac.finalize().into_bytes())
    }

    /// Compares in constant time.
    pub(super) fn session_signature_is_valid(&self, message: &str, signature: &[u8]) -> bool {
        let mac = self.session.clone().chain_update(message.as_bytes());
        mac.verify_slice(signature).is_ok()
    }

    pub(super) fn sign_csrf(&self, message: &str) -> String {
        let mac = self.csrf.clone().chain_update(message.as_bytes());
        let mut text = hex::encode(mac.finalize().into_bytes());
        text.truncate(32);
        text
    }
}

#[cfg(test)]
pub(crate) fn test_signer() -> Signer {
    Signer::new(&SecretSlice::from(b"test-integration-secret".to_vec())).unwrap()
}
