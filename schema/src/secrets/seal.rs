//! Sealing records with AES-256-GCM.

use std::fmt;

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes256Gcm, KeyInit, Nonce};
use zeroize::Zeroizing;

use super::{KEY_LEN, SecretsError, random};

/// The first byte of every sealed value: AES-256-GCM, 12 bytes of nonce, ciphertext, 16 bytes of tag.
const SEALED_FORMAT: u8 = 1;
const NONCE_LEN: usize = 12;
const TAG_LEN: usize = 16;

/// A key that seals and opens one kind of record. Wiped from memory when dropped.
pub struct SealKey(Zeroizing<[u8; KEY_LEN]>);

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey([REDACTED])")
    }
}

impl SealKey {
    /// Number of bytes by which a sealed value is longer than its content.
    pub const OVERHEAD: usize = 1 + NONCE_LEN + TAG_LEN;

    pub(super) fn new(key: [u8; KEY_LEN]) -> Self {
        Self(Zeroizing::new(key))
    }

    /// Seals `plaintext` for one place, as [`super::MasterKey::seal`] does.
    ///
    /// # Errors
    /// [`SecretsError::Randomness`] without random bytes, [`SecretsError::TooLong`] past 64 GiB.
    pub fn seal(&self, context: &str, plaintext: &[u8]) -> Result<Vec<u8>, SecretsError> {
        let nonce = random::bytes::<NONCE_LEN>()?;
        let ciphertext = self
            .cipher()
            .encrypt(
                &Nonce::from(*nonce),
                Payload {
                    msg: plaintext,
                    aad: context.as_bytes(),
                },
            )
            .map_err(|_| SecretsError::TooLong)?;
        let mut sealed = Vec::with_capacity(1 + NONCE_LEN + ciphertext.len());
        sealed.push(SEALED_FORMAT);
        sealed.extend_from_slice(nonce.as_slice());
        sealed.extend_from_slice(&ciphertext);
        Ok(sealed)
    }

    /// Opens what [`SealKey::seal`] made for the same `context`. The result is wiped when dropped.
    ///
    /// # Errors
    /// [`SecretsError::UnknownFormat`] or [`SecretsError::NotAuthentic`].
    pub fn open(&self, context: &str, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, SecretsError> {
        let (&format, rest) = sealed.split_first().ok_or(SecretsError::NotAuthentic)?;
        if format != SEALED_FORMAT {
            return Err(SecretsError::UnknownFormat { format });
        }
        let (nonce, ciphertext) = rest
            .split_first_chunk::<NONCE_LEN>()
            .filter(|(_, ciphertext)| ciphertext.len() >= TAG_LEN)
            .ok_or(SecretsError::NotAuthentic)?;
        self.cipher()
            .decrypt(
                &Nonce::from(*nonce),
                Payload {
                    msg: ciphertext,
                    aad: context.as_bytes(),
                },
            )
            .map(Zeroizing::new)
            .map_err(|_| SecretsError::NotAuthentic)
    }

    fn cipher(&self) -> Aes256Gcm {
        Aes256Gcm::new((&*self.0).into())
    }
}
