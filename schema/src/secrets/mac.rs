//! Authenticating records with HMAC-SHA256.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::KEY_LEN;

const BLOCK_LEN: usize = 64;

/// A key that authenticates and does nothing else. Wiped from memory when dropped.
pub struct MacKey(Zeroizing<[u8; KEY_LEN]>);

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey([REDACTED])")
    }
}

impl MacKey {
    pub(super) fn new(key: [u8; KEY_LEN]) -> Self {
        Self(Zeroizing::new(key))
    }

    /// What only a holder of the key can compute for this message.
    pub fn mac(&self, message: &[u8]) -> [u8; KEY_LEN] {
        let mut mac = keyed(&self.0);
        mac.update(message);
        mac.finalize().into_bytes().into()
    }

    /// Returns true if `mac` authenticates the message. Takes the same time wherever the two differ.
    pub fn is_authentic(&self, message: &[u8], mac: &[u8]) -> bool {
        let mut expected = keyed(&self.0);
        expected.update(message);
        expected.verify_slice(mac).is_ok()
    }
}

/// HMAC-SHA256 under a key. HMAC pads a short key with zeros up to the hash's block (RFC 2104);
/// padding it here makes the constructor infallible.
pub(super) fn keyed(key: &[u8; KEY_LEN]) -> Hmac<Sha256> {
    let mut block = Zeroizing::new([0_u8; BLOCK_LEN]);
    for (to, from) in block.iter_mut().zip(key) {
        *to = *from;
    }
    Hmac::<Sha256>::new((&*block).into())
}
