//! Passwords: rules, argon2id hashes, and the bounded pool that computes them.
//!
//! A hash costs 19 MiB and tens of milliseconds of a core. So at most as many run at once as there
//! are cores, only so many requests wait in line, and the rest is turned away: attempts from
//! everywhere at once cannot exhaust memory.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use argon2::password_hash::phc::PasswordHash;
use argon2::{
    ARGON2ID_IDENT, Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version,
};
use rand::distr::{Alphanumeric, SampleString};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::error::{ApiError, Result};

/// Shortest password, in bytes.
pub const MIN_BYTES: usize = 8;
/// Longest password, in bytes.
pub const MAX_BYTES: usize = 1024;

/// Memory in KiB, passes and lanes of OWASP's recommendation for argon2id.
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// Requests that wait for a core; further ones are turned away.
const MAX_WAITING: usize = 64;
/// Longest wait for a core. Signing in must answer within 5 s, hashing included.
const MAX_WAIT: Duration = Duration::from_secs(3);
/// `Retry-After` of requests that are turned away.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A hash could not be computed or read.
#[derive(Debug, thiserror::Error)]
pub enum HashError {
    /// The library refused.
    #[error("the password could not be hashed")]
    Hash(#[source] argon2::password_hash::Error),
    /// The parameters are not usable.
    #[error("the parameters of the password hash are not usable")]
    Parameters(#[source] argon2::Error),
}

impl From<HashError> for ApiError {
    fn from(error: HashError) -> Self {
        Self::internal(error)
    }
}

/// Checks the rules for a new password.
///
/// # Errors
/// 400 that names `field`.
pub fn check_rules(field: &str, password: &SecretString) -> Result<()> {
    let length = password.expose_secret().len();
    if (MIN_BYTES..=MAX_BYTES).contains(&length) {
        Ok(())
    } else {
        Err(ApiError::invalid(
            field,
            format!("a password has {MIN_BYTES} to {MAX_BYTES} bytes"),
        ))
    }
}

fn hasher() -> Result<Argon2<'static>, HashError> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).map_err(HashError::Parameters)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

/// Hashes a password to a PHC string with a fresh salt. Blocks for tens of milliseconds: on async
/// threads use [`HashSlot::hash`].
///
/// # Errors
/// When the library refuses, such as without a source of randomness.
pub fn hash_blocking(password: &SecretString) -> Result<String, HashError> {
    let hash: PasswordHash = hasher()?
        .hash_password(password.expose_secret().as_bytes())
        .map_err(HashError::Hash)?;
    Ok(hash.to_string())
}

/// Whether a stored hash was made with other parameters than those of today.
pub fn needs_rehash(phc: &str) -> bool {
    let Ok(hash) = PasswordHash::new(phc) else {
        return true;
    };
    let same_params = Params::try_from(&hash).is_ok_and(|params| {
        params.m_cost() == MEMORY_KIB && params.t_cost() == PASSES && params.p_cost() == LANES
    });
    let same_version = hash.version == Some(Version::V0x13.into());
    hash.algorithm != ARGON2ID_IDENT || !same_version || !same_params
}

fn verify_blocking(password: &SecretString, phc: &str) -> bool {
    let Ok(hash) = PasswordHash::new(phc) else {
        return false;
    };
    hasher().is_ok_and(|hasher| {
        hasher
            .verify_password(password.expose_secret().as_bytes(), &hash)
            .is_ok()
    })
}

/// Computes hashes, a bounded number at once.
#[derive(Debug, Clone)]
pub struct PasswordPool {
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// The hash of a random password: what is verified for names that don't exist.
    dummy: Arc<str>,
    computed: Arc<AtomicU64>,
}

/// The right to compute one hash.
#[derive(Debug)]
pub struct HashSlot {
    permit: OwnedSemaphorePermit,
    dummy: Arc<str>,
    computed: Arc<AtomicU64>,
}

impl PasswordPool {
    /// A pool for `cores` hashes at once. Computes one hash, so it blocks for tens of milliseconds.
    ///
    /// # Errors
    /// As [`hash_blocking`].
    pub fn new(cores: NonZeroUsize) -> Result<Self, HashError> {
        Ok(Self {
            running: Arc::new(Semaphore::new(cores.get())),
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
            dummy: hash_blocking(&Alphanumeric.sample_string(&mut rand::rng(), 16).into())?.into(),
            computed: Arc::default(),
        })
    }

    /// How many hashes were begun to be computed for requests: what sign-ins cost so far.
    pub fn computed(&self) -> u64 {
        self.computed.load(Ordering::Relaxed)
    }

    /// Hashes a password, as soon as there is a core for it.
    ///
    /// # Errors
    /// As [`slot`](Self::slot) and [`HashSlot::hash`].
    pub async fn hash(&self, password: &SecretString) -> Result<SecretString> {
        let hash = self.slot().await?.hash(password.clone()).await?;
        Ok(hash.into())
    }

    /// Waits for a core.
    ///
    /// # Errors
    /// 503 with `Retry-After` when too many wait already, or when it takes too long.
    pub async fn slot(&self) -> Result<HashSlot> {
        const BUSY: ApiError = ApiError::Busy {
            retry_after: RETRY_AFTER,
        };
        let place = self.waiting.try_acquire().map_err(|_| BUSY)?;
        let permit = timeout(MAX_WAIT, self.running.clone().acquire_owned())
            .await
            .map_err(|_| BUSY)?
            .map_err(ApiError::internal)?;
        drop(place);
        Ok(HashSlot {
            permit,
            dummy: self.dummy.clone(),
            computed: self.computed.clone(),
        })
    }
}

impl HashSlot {
    /// Whether the password belongs to the stored hash. Without a hash (no such account) the same
    /// work is done and the answer is no.
    ///
    /// # Errors
    /// [`ApiError::Internal`] when the computation was lost.
    pub async fn verify(self, password: SecretString, stored: Option<String>) -> Result<bool> {
        let Self {
            permit,
            dummy,
            computed,
        } = self;
        computed.fetch_add(1, Ordering::Relaxed);
        tokio::task::spawn_blocking(move || {
            // The permit goes with the computation: a client that hangs up does not free the core.
            let _permit = permit;
            let fits = verify_blocking(&password, stored.as_deref().unwrap_or(&dummy));
            fits && stored.is_some() && password.expose_secret().len() <= MAX_BYTES
        })
        .await
        .map_err(ApiError::internal)
    }

    /// Hashes a password to a PHC string with a fresh salt.
    ///
    /// # Errors
    /// [`ApiError::Internal`] when the library refuses or the computation was lost.
    pub async fn hash(self, password: SecretString) -> Result<String> {
        let permit = self.permit;
        self.computed.fetch_add(1, Ordering::Relaxed);
        let hash = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            hash_blocking(&password)
        });
        Ok(hash.await.map_err(ApiError::internal)??)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(cores: usize) -> PasswordPool {
        PasswordPool::new(NonZeroUsize::new(cores).unwrap()).unwrap()
    }

    #[test]
    fn passwords_have_8_to_1024_bytes() {
        for (length, good) in [
            (0, false),
            (7, false),
            (8, true),
            (1024, true),
            (1025, false),
        ] {
            let password = "x".repeat(length).into();
            assert_eq!(
                check_rules("new_password", &password).is_ok(),
                good,
                "{length}"
            );
        }
    }

    #[tokio::test]
    async fn hashes_are_argon2id_with_the_recommended_parameters() {
        let pool = pool(1);
        let hash = pool
            .slot()
            .await
            .unwrap()
            .hash("correct horse".into())
            .await
            .unwrap();
        assert!(
            hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{hash}"
        );
        assert!(!needs_rehash(&hash));
        let verify = async |password: &str, stored: Option<&str>| {
            let slot = pool.slot().await.unwrap();
            slot.verify(password.into(), stored.map(str::to_owned))
                .await
                .unwrap()
        };
        assert!(verify("correct horse", Some(&hash)).await);
        assert!(!verify("wrong horse", Some(&hash)).await);
        assert!(!verify("correct horse", None).await);
        assert!(!verify("correct horse", Some("not a hash")).await);
    }

    #[test]
    fn other_parameters_are_rehashed() {
        let salt_and_hash = "c29tZXNhbHRzb21lc2FsdA$YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE";
        for (head, expected) in [
            ("$argon2id$v=19$m=19456,t=2,p=1", false),
            ("$argon2id$v=19$m=4096,t=3,p=1", true),
            ("$argon2id$v=16$m=19456,t=2,p=1", true),
            ("$argon2i$v=19$m=19456,t=2,p=1", true),
        ] {
            let phc = format!("{head}${salt_and_hash}");
            assert_eq!(needs_rehash(&phc), expected, "{phc}");
        }
        assert!(needs_rehash("$2b$12$bcrypt"));
    }

    #[tokio::test(start_paused = true)]
    async fn l19_parallel_hashes_and_the_line_for_them_are_bounded() {
        let pool = pool(2);
        let _held = (pool.slot().await.unwrap(), pool.slot().await.unwrap());
        let waiting: Vec<_> = (0..MAX_WAITING + 10).map(|_| pool.slot()).collect();
        let outcomes =
            futures::future::join_all(waiting.into_iter().enumerate().map(async |(n, slot)| {
                let begun = tokio::time::Instant::now();
                let error = slot.await.unwrap_err();
                assert_eq!(error.status(), http::StatusCode::SERVICE_UNAVAILABLE);
                (n, begun.elapsed())
            }))
            .await;
        let at_once = outcomes
            .iter()
            .filter(|(_, waited)| waited.is_zero())
            .count();
        assert_eq!(at_once, 10);
        assert!(outcomes.iter().all(|(_, waited)| *waited <= MAX_WAIT));
    }

    #[tokio::test]
    async fn l19_a_client_that_hangs_up_does_not_free_its_core_early() {
        let pool = pool(1);
        let slot = pool.slot().await.unwrap();
        let mut verify = Box::pin(slot.verify("x".into(), None));
        assert!(futures::poll!(&mut verify).is_pending());
        drop(verify);
        assert_eq!(pool.running.available_permits(), 0);
        drop(pool.slot().await.unwrap());
    }
}
