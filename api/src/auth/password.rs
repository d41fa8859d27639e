//! Passwords: rules, argon2id hashes, and the bounded pool that computes them.
//!
//! A hash costs 19 MiB and tens of milliseconds of a core. So at most as many run at once as there
//! are cores, only so many requests wait in line, and the rest is turned away: attempts from
//! everywhere at once cannot exhaust memory. The blocks that a hash fills are kept for the next one:
//! given back each time, they would stay with the allocator, once for each of its arenas (L69).

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{ARGON2ID_IDENT, Algorithm, Argon2, Block, Params, Version};
use rand::TryRng;
use rand::distr::{Alphanumeric, SampleString};
use rand::rngs::{SysError, SysRng};
use schema::under_way::track_call;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use unicode_normalization::UnicodeNormalization;
use zeroize::Zeroize;

use crate::error::{ApiError, Result};
use crate::limits::{HASHES, HASHES_WAITING};

/// Shortest password, in characters as people count them: of its composed form (NFC, as RFC 8265 has it).
pub const MIN_CHARACTERS: usize = 8;
/// Longest password, in bytes.
pub const MAX_BYTES: usize = 1024;

/// Work of one argon2id hash with one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    memory_kib: u32,
    passes: u32,
}

impl Cost {
    /// OWASP's recommendation.
    const STANDARD: Self = Self {
        memory_kib: 19_456,
        passes: 2,
    };
    /// The cheapest that tests of anything but hashes can have.
    #[cfg(test)]
    pub(crate) const TEST: Self = Self {
        memory_kib: 8,
        passes: 1,
    };

    fn params(self) -> Result<Params, HashError> {
        Params::new(self.memory_kib, self.passes, LANES, None).map_err(HashError::Hash)
    }
}

const LANES: u32 = 1;
/// Length of a salt, in bytes.
const SALT: usize = 16;

/// Requests that wait for a core; further ones are turned away.
#[cfg(test)]
const MAX_WAITING: usize = HASHES_WAITING.all();
/// Longest wait for a core. Signing in must answer within 5 s, hashing included.
const MAX_WAIT: Duration = Duration::from_secs(3);
/// `Retry-After` of requests that are turned away.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A hash could not be computed.
#[derive(Debug, thiserror::Error)]
pub enum HashError {
    /// The library refused.
    #[error("the password could not be hashed")]
    Hash(#[source] argon2::Error),
    /// A part has a length that hashes do not have.
    #[error("a part of the password hash is too long or too short")]
    Length,
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    Random(#[source] SysError),
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
    let password = password.expose_secret();
    // The bytes first, so that nothing is counted that is refused anyway.
    let rule = if password.len() > MAX_BYTES {
        format!("a password has at most {MAX_BYTES} bytes")
    } else if password.nfc().take(MIN_CHARACTERS).count() < MIN_CHARACTERS {
        format!("a password has at least {MIN_CHARACTERS} characters")
    } else {
        return Ok(());
    };
    Err(ApiError::invalid(field, rule))
}

/// Hashes a password to a PHC string with a fresh salt. Blocks for tens of milliseconds, and takes memory
/// of its own: a service uses [`HashSlot::hash`].
///
/// # Errors
/// When the library refuses, such as without a source of randomness.
pub fn hash_blocking(password: &SecretString) -> Result<String, HashError> {
    Memory::new(Cost::STANDARD).hash(password)
}

/// Hashes a password with [`Cost::TEST`].
#[cfg(test)]
pub(crate) fn hash_cheaply(password: &str) -> SecretString {
    let hash = Memory::new(Cost::TEST).hash(&password.into());
    hash.unwrap().into()
}

/// Returns true if a stored hash was made with parameters other than `cost`.
fn needs_rehash(phc: &str, cost: Cost) -> bool {
    let Ok(hash) = PasswordHash::new(phc) else {
        return true;
    };
    let same_params = Params::try_from(&hash).is_ok_and(|params| {
        (params.m_cost(), params.t_cost(), params.p_cost()) == (cost.memory_kib, cost.passes, LANES)
    });
    let same_version = hash.version == Some(Version::V0x13.into());
    hash.algorithm != ARGON2ID_IDENT || !same_version || !same_params
}

/// What hashes fill: as many pieces of memory as hashes were computed at once so far, kept for good.
#[derive(Debug, Clone)]
struct Memory {
    cost: Cost,
    free: Arc<Mutex<Vec<Vec<Block>>>>,
}

impl Memory {
    fn new(cost: Cost) -> Self {
        Self {
            cost,
            free: Arc::default(),
        }
    }

    fn free(&self) -> MutexGuard<'_, Vec<Vec<Block>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills the memory and gives the last word. Blocks for tens of milliseconds.
    fn compute(
        &self,
        (algorithm, version, params): (Algorithm, Version, Params),
        password: &SecretString,
        salt: &Salt,
    ) -> Result<Output, HashError> {
        let (count, length) = (params.block_count(), params.output_len());
        let length = length.unwrap_or(Params::DEFAULT_OUTPUT_LEN);
        // The one that was used last, so that a quiet service touches no others.
        let mut blocks = self.free().pop().unwrap_or_default();
        if blocks.len() < count {
            blocks.resize(count, Block::new());
        }
        let mut out = [0; Output::MAX_LENGTH];
        let out = out.get_mut(..length).ok_or(HashError::Length)?;
        let password = password.expose_secret().as_bytes();
        let computed = Argon2::new(algorithm, version, params).hash_password_into_with_memory(
            password,
            salt,
            out,
            &mut blocks,
        );
        // Nobody's password is to be found in there, however much work it would be.
        blocks.iter_mut().for_each(Zeroize::zeroize);
        // Those that a hash of other parameters needed are too many to keep.
        if count <= self.cost.memory_kib as usize {
            self.free().push(blocks);
        }
        computed.map_err(HashError::Hash)?;
        Output::new(out).map_err(|_| HashError::Length)
    }

    /// A PHC string with a fresh salt.
    fn hash(&self, password: &SecretString) -> Result<String, HashError> {
        let params = self.cost.params()?;
        let mut salt = [0; SALT];
        SysRng
            .try_fill_bytes(&mut salt)
            .map_err(HashError::Random)?;
        let salt = Salt::new(&salt).map_err(|_| HashError::Length)?;
        let parts = (Algorithm::Argon2id, Version::V0x13, params.clone());
        let hash = PasswordHash {
            algorithm: ARGON2ID_IDENT,
            version: Some(Version::V0x13.into()),
            params: ParamsString::try_from(&params).map_err(|_| HashError::Length)?,
            hash: Some(self.compute(parts, password, &salt)?),
            salt: Some(salt),
        };
        Ok(hash.to_string())
    }

    /// Whether the password belongs to the hash, which may be one of other parameters.
    fn verify(&self, password: &SecretString, phc: &str) -> bool {
        let Some((parts, salt, expected)) = parts(phc) else {
            return false;
        };
        // The comparison takes the same time wherever they differ.
        self.compute(parts, password, &salt)
            .is_ok_and(|computed| computed == expected)
    }
}

/// What a stored hash says of how it was made, its salt, and the hash itself.
fn parts(phc: &str) -> Option<((Algorithm, Version, Params), Salt, Output)> {
    let hash = PasswordHash::new(phc).ok()?;
    let algorithm = Algorithm::try_from(hash.algorithm.as_str()).ok()?;
    let version = match hash.version {
        Some(version) => Version::try_from(version).ok()?,
        None => Version::default(),
    };
    let params = Params::try_from(&hash).ok()?;
    Some(((algorithm, version, params), hash.salt?, hash.hash?))
}

/// Computes hashes, a bounded number at once.
#[derive(Debug, Clone)]
pub struct PasswordPool {
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    memory: Memory,
    /// The hash of a random password: what is verified for names that don't exist.
    dummy: Arc<str>,
    computed: Arc<AtomicU64>,
}

/// The right to compute one hash.
#[derive(Debug)]
pub struct HashSlot {
    permit: OwnedSemaphorePermit,
    memory: Memory,
    dummy: Arc<str>,
    computed: Arc<AtomicU64>,
}

impl PasswordPool {
    /// A pool for `cores` hashes at once. Computes one hash, so it blocks for tens of milliseconds.
    ///
    /// # Errors
    /// As [`hash_blocking`].
    pub fn new(cores: NonZeroUsize) -> Result<Self, HashError> {
        Self::with_cost(cores, Cost::STANDARD)
    }

    /// A pool whose hashes have another cost.
    ///
    /// # Errors
    /// As [`hash_blocking`].
    pub(crate) fn with_cost(cores: NonZeroUsize, cost: Cost) -> Result<Self, HashError> {
        let memory = Memory::new(cost);
        let dummy = Alphanumeric.sample_string(&mut rand::rng(), 16).into();
        Ok(Self {
            running: HASHES.semaphore_of(cores.get()),
            waiting: HASHES_WAITING.semaphore(),
            dummy: memory.hash(&dummy)?.into(),
            memory,
            computed: Arc::default(),
        })
    }

    /// Returns true if a stored hash was made with parameters other than those of this pool.
    pub fn needs_rehash(&self, phc: &str) -> bool {
        needs_rehash(phc, self.memory.cost)
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
            memory: self.memory.clone(),
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
            memory,
            dummy,
            computed,
        } = self;
        computed.fetch_add(1, Ordering::Relaxed);
        let verify = track_call("a password", move || {
            // The permit goes with the computation: a client that hangs up does not free the core.
            let _permit = permit;
            let fits = memory.verify(&password, stored.as_deref().unwrap_or(&dummy));
            fits && stored.is_some() && password.expose_secret().len() <= MAX_BYTES
        });
        let fits = tokio::task::spawn_blocking(verify).await;
        fits.map_err(ApiError::internal)
    }

    /// Hashes a password to a PHC string with a fresh salt.
    ///
    /// # Errors
    /// [`ApiError::Internal`] when the library refuses or the computation was lost.
    pub async fn hash(self, password: SecretString) -> Result<String> {
        let (permit, memory) = (self.permit, self.memory);
        self.computed.fetch_add(1, Ordering::Relaxed);
        let hash = tokio::task::spawn_blocking(track_call("a password", move || {
            let _permit = permit;
            memory.hash(&password)
        }));
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
    fn passwords_have_8_characters_and_at_most_1024_bytes() {
        for (one, length, good) in [
            ("x", 0, false),
            ("x", 7, false),
            ("x", 8, true),
            ("x", 1024, true),
            ("x", 1025, false),
            // Two bytes each, four bytes each, and a letter with its accent apart.
            ("é", 4, false),
            ("é", 7, false),
            ("é", 8, true),
            ("é", 512, true),
            ("é", 513, false),
            ("🔑", 2, false),
            ("🔑", 8, true),
            ("e\u{301}", 7, false),
            ("e\u{301}", 8, true),
        ] {
            let password = one.repeat(length).into();
            let checked = check_rules("new_password", &password);
            assert_eq!(checked.is_ok(), good, "{length} {one}");
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
        assert!(!pool.needs_rehash(&hash));
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

    #[tokio::test]
    async fn l69_hashes_one_after_another_use_the_same_memory() {
        let pool = pool(2);
        let address = || pool.memory.free().first().map(|blocks| blocks.as_ptr());
        let before = address();
        assert!(before.is_some(), "that of the first hash");
        for stored in [
            None,
            Some("$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$YWFhYWFhYWFhYWE"),
        ] {
            let slot = pool.slot().await.unwrap();
            let stored = stored.map(str::to_owned);
            assert!(!slot.verify("wrong".into(), stored).await.unwrap());
            assert_eq!(pool.memory.free().len(), 1);
            assert_eq!(address(), before);
        }
        let clean = |block: &Block| block.as_ref().iter().all(|word| *word == 0);
        assert!(
            pool.memory.free()[0].iter().all(clean),
            "nothing is left of a password"
        );
    }

    #[test]
    fn hashes_of_other_parameters_are_still_verified() {
        let memory = Memory::new(Cost::STANDARD);
        for (name, version) in [
            (Algorithm::Argon2id, Version::V0x13),
            (Algorithm::Argon2i, Version::V0x10),
        ] {
            let params = Params::new(32_768, 1, 2, None).unwrap();
            let library = Argon2::new(name, version, params);
            let phc: PasswordHash =
                argon2::PasswordHasher::hash_password(&library, b"correct horse").unwrap();
            assert!(memory.verify(&"correct horse".into(), &phc.to_string()));
            assert!(!memory.verify(&"wrong horse".into(), &phc.to_string()));
            assert!(memory.free().is_empty(), "more than a hash of today needs");
        }
        let ours = memory.hash(&"correct horse".into()).unwrap();
        let parsed = PasswordHash::new(&ours).unwrap();
        let library = Argon2::default();
        argon2::PasswordVerifier::verify_password(&library, b"correct horse", &parsed).unwrap();
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
            assert_eq!(needs_rehash(&phc, Cost::STANDARD), expected, "{phc}");
        }
        assert!(needs_rehash("$2b$12$bcrypt", Cost::STANDARD));
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
