//! Ids of sessions: signed, and kept nowhere, so that they stay valid over restarts and at every replica. Clients do not begin anew
//! when theirs is refused, and it gives no right: the token does.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use schema::ids::{Timestamp, Uid};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::revision::Revision;
use crate::executors::Service;

/// How the bytes of an id are laid out.
const LAYOUT: u8 = 1;
/// Length of what is signed: layout, service, revision, time, user, random.
const SIGNED: usize = 1 + 1 + 1 + 8 + 8 + 12;
/// Length of the signature.
const SIGNATURE: usize = 16;

/// Signs ids.
pub struct SessionKey([u8; 32]);

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionKey").finish_non_exhaustive()
    }
}

/// A session, as its id says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionId {
    /// The service that it is with.
    pub service: Service,
    /// What was agreed on.
    pub revision: Revision,
    /// When it began.
    pub begun: Timestamp,
    /// A part of what the user's identity is hashed to.
    user: [u8; 8],
}

impl SessionKey {
    /// A key made from what only this installation knows.
    pub fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// The id of a new session. `random` makes it another one than any before.
    pub fn issue(
        &self,
        service: Service,
        revision: Revision,
        begun: Timestamp,
        user: &Uid,
        random: [u8; 12],
    ) -> String {
        let mut bytes = Vec::with_capacity(SIGNED + SIGNATURE);
        bytes.push(LAYOUT);
        bytes.push(service as u8);
        bytes.push(revision as u8);
        bytes.extend_from_slice(&begun.as_secs().to_be_bytes());
        bytes.extend_from_slice(&self.user(user));
        bytes.extend_from_slice(&random);
        let signature = self.sign(&bytes);
        bytes.extend_from_slice(&signature);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// What an id says; `None` when it is not one of ours.
    pub fn read(&self, id: &str) -> Option<SessionId> {
        let bytes = URL_SAFE_NO_PAD.decode(id).ok()?;
        let (signed, signature) = bytes.split_at_checked(SIGNED)?;
        if !bool::from(self.sign(signed).ct_eq(signature)) {
            return None;
        }
        let [LAYOUT, service, revision, rest @ ..] = signed else {
            return None;
        };
        let (begun, rest) = rest.split_first_chunk::<8>()?;
        let (user, _) = rest.split_first_chunk::<8>()?;
        let of = |number: u8, known: u8| (number == known).then_some(());
        let service = Service::ALL
            .into_iter()
            .find(|known| of(*service, *known as u8).is_some())?;
        let revision = <Revision as strum::VariantArray>::VARIANTS
            .iter()
            .find(|known| of(*revision, **known as u8).is_some())?;
        Some(SessionId {
            service,
            revision: *revision,
            begun: Timestamp::from_secs(i64::from_be_bytes(*begun)),
            user: *user,
        })
    }

    /// Whether a session is this user's.
    pub fn is_of(&self, session: &SessionId, user: &Uid) -> bool {
        bool::from(session.user.ct_eq(&self.user(user)))
    }

    fn user(&self, user: &Uid) -> [u8; 8] {
        let hash = self.hash(&[b"user", user.as_str().as_bytes()]);
        let mut part = [0; 8];
        part.copy_from_slice(hash.get(..8).unwrap_or(&[0; 8]));
        part
    }

    fn sign(&self, bytes: &[u8]) -> [u8; SIGNATURE] {
        let hash = self.hash(&[b"session", bytes]);
        let mut part = [0; SIGNATURE];
        part.copy_from_slice(hash.get(..SIGNATURE).unwrap_or(&[0; SIGNATURE]));
        part
    }

    fn hash(&self, parts: &[&[u8]]) -> [u8; 32] {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else {
            // Keys of any length are taken.
            return [0; 32];
        };
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

/// For how long it is remembered that a session was ended by its client.
pub const TOMBSTONE: Duration = Duration::from_secs(24 * 3600);
