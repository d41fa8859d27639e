//! The keys of a provider (RFC 7517 §5), as far as they may sign tokens.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::core::{CoreJsonWebKey, CoreJwsSigningAlgorithm};
use openidconnect::{JsonWebKey, JsonWebKeyUse};
use serde_json::{Map, Value};

/// The members of a public key that are numbers (RFC 7518 §6).
const NUMBERS: [&str; 4] = ["n", "e", "x", "y"];
/// Shortest modulus of an RSA key, in bits (RFC 7518 §3.3).
const SHORTEST_RSA: usize = 2048;

/// The keys of a provider.
#[derive(Default)]
pub(super) struct Keys {
    /// Keys with which signatures are verified.
    pub(super) all: Vec<CoreJsonWebKey>,
    short: Vec<ShortKey>,
}

/// An RSA key that is too short to prove anything.
struct ShortKey {
    id: Option<String>,
    bits: usize,
}

impl Keys {
    /// Reads a set of keys. Those of unknown kinds are left out, and numbers may be in plain base64, too.
    pub(super) fn read(document: &Map<String, Value>) -> Self {
        let keys = document.get("keys").and_then(Value::as_array);
        let mut read = Self::default();
        for key in keys.into_iter().flatten() {
            let Some(mut key) = key.as_object().cloned() else {
                continue;
            };
            for name in NUMBERS {
                if let Some(Value::String(digits)) = key.get_mut(name) {
                    *digits = digits
                        .trim_end_matches('=')
                        .replace('+', "-")
                        .replace('/', "_");
                }
            }
            let bits = rsa_bits(&key);
            let Ok(usable) = serde_json::from_value::<CoreJsonWebKey>(Value::Object(key)) else {
                continue;
            };
            match bits {
                Some(bits) if bits < SHORTEST_RSA => read.short.push(ShortKey {
                    id: usable.key_id().map(|id| id.as_str().to_owned()),
                    bits,
                }),
                _ => read.all.push(usable),
            }
        }
        read
    }

    /// Counts the keys that ID tokens can be signed with.
    pub(super) fn count_signing(&self) -> usize {
        let keys = self.all.iter();
        keys.filter(|key| key.key_use().is_none_or(JsonWebKeyUse::allows_signature))
            .count()
    }

    /// Why a key of this name is not used, if it is too short; without a name, any.
    pub(super) fn describe_short(&self, id: Option<&str>) -> Option<String> {
        let mut short = self.short.iter();
        let found = short.find(|key| id.is_none() || key.id.as_deref() == id)?;
        Some(format!(
            "the provider's RSA key has {} bits, and only keys of at least {SHORTEST_RSA} bits prove anything; have the provider sign \
             with a new key of {SHORTEST_RSA} bits or more",
            found.bits
        ))
    }
}

/// Reports whether an algorithm needs an RSA key.
pub(super) fn is_rsa(algorithm: &CoreJwsSigningAlgorithm) -> bool {
    use CoreJwsSigningAlgorithm as Algorithm;
    matches!(
        algorithm,
        Algorithm::RsaSsaPkcs1V15Sha256
            | Algorithm::RsaSsaPkcs1V15Sha384
            | Algorithm::RsaSsaPkcs1V15Sha512
            | Algorithm::RsaSsaPssSha256
            | Algorithm::RsaSsaPssSha384
            | Algorithm::RsaSsaPssSha512
    )
}

/// Length of the modulus of an RSA key; `None` for other keys.
fn rsa_bits(key: &Map<String, Value>) -> Option<usize> {
    if key.get("kty")?.as_str()? != "RSA" {
        return None;
    }
    let modulus = URL_SAFE_NO_PAD.decode(key.get("n")?.as_str()?).ok()?;
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let first = modulus.get(zeros)?;
    let bits = (modulus.len() - zeros) * 8;
    Some(bits - usize::try_from(first.leading_zeros()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(key: Value) -> Keys {
        let document = json!({ "keys": [key] });
        Keys::read(document.as_object().unwrap())
    }

    #[test]
    fn rsa_keys_below_2048_bits_are_refused_by_length() {
        for (bytes, first, usable) in [
            (128, 0x80, false),
            (256, 0x7f, false),
            (256, 0x80, true),
            (512, 0xff, true),
        ] {
            for zeros in [0, 1] {
                let mut modulus = vec![0; zeros];
                modulus.push(first);
                modulus.resize(zeros + bytes, 0xab);
                let n = URL_SAFE_NO_PAD.encode(&modulus);
                let keys = read(json!({"kty": "RSA", "n": n, "e": "AQAB", "kid": "a"}));
                assert_eq!(
                    keys.count_signing(),
                    usize::from(usable),
                    "{bytes} {first:x}"
                );
                assert_eq!(keys.describe_short(Some("a")).is_none(), usable);
                assert_eq!(keys.describe_short(Some("b")), None);
            }
        }
        let n = URL_SAFE_NO_PAD.encode([0xff; 128]);
        let keys = read(json!({"kty": "RSA", "n": n, "e": "AQAB"}));
        let said = keys.describe_short(None).unwrap();
        assert!(said.contains("has 1024 bits"), "{said}");
        assert!(said.contains("at least 2048 bits"), "{said}");
    }
}
