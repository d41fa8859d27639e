//! Keys: the master key of an installation, and everything that is derived from it.
//!
//! One random master key lives in `<data>/master.key`. It is never used directly: values at rest
//! are sealed under a key derived from it, tokens are derived under labels of their own. Losing
//! the file means losing every sealed value, so it is created once and never overwritten.

mod key_file;
mod mac;
mod random;
mod seal;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;

use hmac::Mac;
use secrecy::SecretString;
use zeroize::Zeroizing;

use crate::ids::Uid;

pub use mac::MacKey;
pub use random::{random_password, random_secret};
pub use seal::SealKey;

/// The name of the key file inside the data directory.
pub const MASTER_KEY_FILE: &str = "master.key";

const KEY_LEN: usize = 32;
const SEAL_LABEL: &str = "agentyard/seal/v1";
const MCP_TOKEN_LABEL: &str = "agentyard/mcp-token/v1";
const CHAT_TOKEN_LABEL: &str = "agentyard/chat-token/v1";
const FINGERPRINT_LABEL: &str = "agentyard/fingerprint/v1";

/// What can go wrong with keys and sealed values. No variant carries key material or plaintext.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// There is no key file.
    #[error("the key file {} does not exist; restore it from its own backup", path.display())]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// The key file exists but is not as it must be. It is left untouched.
    #[error("the key file {} cannot be used: {problem}", path.display())]
    Unusable {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it, and the remedy.
        problem: String,
    },
    /// The key file could not be read or made.
    #[error("the key file {} cannot be {action}", path.display())]
    Io {
        /// Where it is.
        path: PathBuf,
        /// What was tried: `read` or `created`.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// The operating system gave no random bytes.
    #[error("the operating system's random number generator failed")]
    Randomness(#[source] rand::rngs::SysError),
    /// The value was sealed by a newer release.
    #[error("the sealed value has the unknown format {format}")]
    UnknownFormat {
        /// Its format byte.
        format: u8,
    },
    /// The value was changed, sealed under another key, or sealed for another place.
    #[error("the sealed value was not sealed here: it is damaged, moved, or of another master key")]
    NotAuthentic,
    /// The value is too long for AES-GCM (64 GiB).
    #[error("the value is too long to be sealed")]
    TooLong,
}

/// The master key of an installation. Wiped from memory when dropped; never shown by `Debug`.
pub struct MasterKey(Zeroizing<[u8; KEY_LEN]>);

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey([REDACTED])")
    }
}

impl MasterKey {
    /// Seals `plaintext` for one place, named by `context` (for example `config/ldap.bind_password`).
    ///
    /// The context is authenticated but not stored: [`MasterKey::open`] needs the same one, so a
    /// sealed value that was copied to another row or key does not open there. Sealing the same
    /// value twice gives different bytes.
    ///
    /// # Errors
    /// [`SecretsError::Randomness`] without random bytes, [`SecretsError::TooLong`] past 64 GiB.
    pub fn seal(&self, context: &str, plaintext: &[u8]) -> Result<Vec<u8>, SecretsError> {
        self.seal_key(SEAL_LABEL).seal(context, plaintext)
    }

    /// Opens what [`MasterKey::seal`] made for the same `context`. The result is wiped when dropped.
    ///
    /// # Errors
    /// [`SecretsError::UnknownFormat`] or [`SecretsError::NotAuthentic`].
    pub fn open(&self, context: &str, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, SecretsError> {
        self.seal_key(SEAL_LABEL).open(context, sealed)
    }

    /// Derives 32 bytes from the master key: HMAC-SHA256 over `label`, its length in front, and `message`.
    ///
    /// Different labels give independent values, so a token of one purpose says nothing of another.
    pub fn derive(&self, label: &str, message: &[u8]) -> [u8; KEY_LEN] {
        let mut mac = mac::keyed(&self.0);
        // The length keeps ("ab", "c") apart from ("a", "bc").
        mac.update(&(label.len() as u64).to_be_bytes());
        mac.update(label.as_bytes());
        mac.update(message);
        mac.finalize().into_bytes().into()
    }

    /// The secret half of a user's MCP token: the same until `version` is raised. Nothing of it is stored.
    pub fn mcp_token(&self, uid: &Uid, version: i64) -> SecretString {
        self.user_token(MCP_TOKEN_LABEL, uid, version)
    }

    /// The token of the chat of a user's agent: 64 hexadecimal digits, the same until `version`, that of the MCP
    /// token, is raised. Nothing of it is stored.
    pub fn chat_token(&self, uid: &Uid, version: i64) -> SecretString {
        self.user_token(CHAT_TOKEN_LABEL, uid, version)
    }

    fn user_token(&self, label: &str, uid: &Uid, version: i64) -> SecretString {
        let mut message = Vec::from(uid.as_str().as_bytes());
        // A uid has a fixed length in effect, but nothing depends on it: versions are eight bytes at the end.
        message.extend_from_slice(&version.to_be_bytes());
        SecretString::from(hex::encode(self.derive(label, &message)))
    }

    /// A key of its own for authenticating one kind of record. Whoever has it can neither seal nor
    /// open anything.
    pub fn mac_key(&self, label: &str) -> MacKey {
        MacKey::new(self.derive(label, b""))
    }

    /// A key that seals and opens one kind of record, and does nothing else.
    pub fn seal_key(&self, label: &str) -> SealKey {
        SealKey::new(self.derive(label, b""))
    }

    /// A short public name of this key: stored beside sealed values, it distinguishes a wrong key file from
    /// damaged data at start-up. Gives away nothing about the key.
    pub fn fingerprint(&self) -> String {
        hex::encode(self.derive(FINGERPRINT_LABEL, b""))
            .chars()
            .take(16)
            .collect()
    }
}
