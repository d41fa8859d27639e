//! The stamp of a request between replicas: it proves that a replica of the installation has made it, for this replica, just now, and
//! that it comes for the first time.

use std::time::Duration;

use crate::limits::REPLICA_NONCES;
use hmac::{Hmac, KeyInit, Mac};
use moka::sync::Cache;
use rand::RngExt;
use schema::ids::Timestamp;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Longest difference between the clocks of two replicas, the way of the request included.
const SKEW: Duration = Duration::from_secs(30);

/// The parts of a request that a stamp covers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Covered<'a> {
    /// Identity of the replica that it is for.
    pub(super) to: &'a str,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    /// The call, as it stands in the header.
    pub(super) call: &'a str,
}

/// Makes and checks stamps.
pub(super) struct Seal {
    key: [u8; 32],
    /// Nonces of the stamps that have come.
    seen: Cache<String, ()>,
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seal").finish_non_exhaustive()
    }
}

/// Digest of a body, in hexadecimal digits.
pub(super) fn digest(body: &[u8]) -> String {
    hex::encode(Sha256::digest(body))
}

impl Seal {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self {
            key,
            seen: REPLICA_NONCES.cache().time_to_live(3 * SKEW).build(),
        }
    }

    /// The stamp of a request with this body.
    pub(super) fn make_stamp(&self, covered: Covered<'_>, body: &[u8], now: Timestamp) -> String {
        let nonce = hex::encode(rand::rng().random::<[u8; 16]>());
        let (time, digest) = (now.as_secs().to_string(), digest(body));
        let mac = self.mac(covered, [&time, &nonce, &digest]);
        format!("{time}.{nonce}.{digest}.{}", hex::encode(mac))
    }

    /// Checks a stamp; returns the digest that the body has to have. `None` when it proves nothing, or has come before.
    pub(super) fn check_stamp(
        &self,
        covered: Covered<'_>,
        stamp: &str,
        now: Timestamp,
    ) -> Option<String> {
        let parts: Vec<&str> = stamp.split('.').collect();
        let [time, nonce, digest, mac] = parts[..] else {
            return None;
        };
        let mac: [u8; 32] = hex::decode(mac).ok()?.try_into().ok()?;
        let proven = bool::from(self.mac(covered, [time, nonce, digest]).ct_eq(&mac));
        let made = Timestamp::from_secs(time.parse().ok()?);
        let is_current = now.since(made) <= SKEW && made.since(now) <= SKEW;
        if !proven || !is_current {
            return None;
        }
        let fresh = self.seen.entry_by_ref(nonce).or_insert(()).is_fresh();
        fresh.then(|| digest.to_owned())
    }

    fn mac(&self, covered: Covered<'_>, rest: [&str; 3]) -> [u8; 32] {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else {
            // Keys of any length are taken.
            return [0; 32];
        };
        let Covered {
            to,
            method,
            path,
            call,
        } = covered;
        for part in [to, method, path, call].into_iter().chain(rest) {
            // The length keeps ("ab", "c") apart from ("a", "bc").
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac.finalize().into_bytes().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_000_000);

    fn covered() -> Covered<'static> {
        Covered {
            to: "b",
            method: "POST",
            path: "/replica",
            call: "abc",
        }
    }

    #[test]
    fn stamp_counts_once_for_one_request_at_one_time() {
        let seal = Seal::new([7; 32]);
        let stamp = seal.make_stamp(covered(), b"body", NOW);
        let different = [
            Covered {
                to: "c",
                ..covered()
            },
            Covered {
                method: "GET",
                ..covered()
            },
            Covered {
                path: "/replica/",
                ..covered()
            },
            Covered {
                call: "abd",
                ..covered()
            },
        ];
        for other in different {
            assert_eq!(seal.check_stamp(other, &stamp, NOW), None, "{other:?}");
        }
        let late = NOW.plus(SKEW + Duration::from_secs(1));
        assert_eq!(seal.check_stamp(covered(), &stamp, late), None);
        let foreign = Seal::new([8; 32]);
        assert_eq!(foreign.check_stamp(covered(), &stamp, NOW), None);
        let changed = stamp.replacen(&digest(b"body"), &digest(b"other"), 1);
        assert_eq!(seal.check_stamp(covered(), &changed, NOW), None);
        for nothing in ["", "1.2.3", "1.2.3.4", "x.y.z.00"] {
            assert_eq!(seal.check_stamp(covered(), nothing, NOW), None, "{nothing}");
        }
        let soon = NOW.plus(SKEW);
        assert_eq!(
            seal.check_stamp(covered(), &stamp, soon),
            Some(digest(b"body"))
        );
        assert_eq!(
            seal.check_stamp(covered(), &stamp, soon),
            None,
            "a second time"
        );
    }
}
