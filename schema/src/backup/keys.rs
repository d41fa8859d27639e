//! Keys of backups, derived from the master key: one authenticates manifests, the other seals settings files of agents.

use zeroize::Zeroizing;

use crate::secrets::{MacKey, MasterKey, SealKey, SecretsError};

const MANIFEST_LABEL: &str = "agentyard/backup-manifest/v1";
const SETTINGS_LABEL: &str = "agentyard/backup-settings/v1";

/// Bytes by which a sealed file is longer than its content.
pub(super) const SEALED_OVERHEAD: u64 = SealKey::OVERHEAD as u64;

/// Derived keys of an installation's backups.
#[derive(Debug)]
pub struct Keys {
    fingerprint: String,
    manifest: MacKey,
    settings: SealKey,
}

impl Keys {
    /// Derives the keys.
    pub fn new(master_key: &MasterKey) -> Self {
        Self {
            fingerprint: master_key.fingerprint(),
            manifest: master_key.mac_key(MANIFEST_LABEL),
            settings: master_key.seal_key(SETTINGS_LABEL),
        }
    }

    /// Public name of the master key.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The MAC of a manifest, in hexadecimal digits and a newline.
    pub(super) fn mac(&self, manifest: &ManifestDigests) -> String {
        hex::encode(self.manifest.mac(&manifest.0)) + "\n"
    }

    /// Returns true if `mac` is that of the manifest. Compares in constant time.
    pub(super) fn is_mac(&self, manifest: &ManifestDigests, mac: &[u8]) -> bool {
        let mut bytes = [0; 32];
        let digits = mac.strip_suffix(b"\n").unwrap_or(mac);
        hex::decode_to_slice(digits, &mut bytes).is_ok()
            && self.manifest.is_authentic(&manifest.0, &bytes)
    }

    /// Seals a file for the escaped path that it has in backups.
    pub(super) fn seal(&self, path: &str, content: &[u8]) -> Result<Vec<u8>, SecretsError> {
        self.settings.seal(path, content)
    }

    /// Opens a sealed file of this path.
    pub(super) fn open(
        &self,
        path: &str,
        sealed: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, SecretsError> {
        self.settings.open(path, sealed)
    }
}

/// SHA-256 of the head and of the lines of a manifest, one after the other.
pub(super) struct ManifestDigests([u8; 64]);

impl ManifestDigests {
    pub(super) fn new(head: [u8; 32], lines: [u8; 32]) -> Self {
        let mut both = [0; 64];
        for (to, from) in both.iter_mut().zip(head.into_iter().chain(lines)) {
            *to = from;
        }
        Self(both)
    }
}
