//! The real thing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::BoxFuture;
use moka::Expiry;
use moka::future::Cache;
use moka::ops::compute::Op;
use schema::clock::SharedClock;
use schema::live::{CheckStep, PendingSignIn, ProvidedIdentity};
use url::Url;

use super::check;
use super::error::ProviderError;
use super::provider::{Provider, Refusal};
use super::{IdentityProvider, ProviderSettings, Returned};

/// How long a provider's description and keys are good.
const DESCRIPTION: Duration = Duration::from_secs(60 * 60);
/// How long it is not asked again after it could not be.
const FAILURE: Duration = Duration::from_secs(2);
/// How often it is asked at most because a token has a key that is not known.
const NEW_KEYS: Duration = Duration::from_secs(10);
/// Most descriptions: there is one provider, and what was set before.
const DESCRIPTIONS: u64 = 4;

/// What a description depends on: issuer and authorities.
type Key = (String, Option<String>);
type Described = Result<Arc<Provider>, ProviderError>;

/// Identity providers over HTTP. Each is asked once for its description, however many sign in.
pub struct OidcProvider {
    clock: SharedClock,
    described: Cache<Key, Described>,
}

/// A failure is forgotten soon.
struct Validity;

impl Expiry<Key, Described> for Validity {
    fn expire_after_create(&self, _: &Key, value: &Described, _: Instant) -> Option<Duration> {
        Some(if value.is_ok() { DESCRIPTION } else { FAILURE })
    }

    fn expire_after_update(
        &self,
        key: &Key,
        value: &Described,
        at: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        self.expire_after_create(key, value, at)
    }
}

impl OidcProvider {
    /// No description yet.
    pub fn new(clock: SharedClock) -> Self {
        let described = Cache::builder()
            .max_capacity(DESCRIPTIONS)
            .expire_after(Validity)
            .build();
        Self { clock, described }
    }

    async fn provider(&self, settings: &ProviderSettings) -> Described {
        let key = key(settings);
        let describe = describe(key.clone(), None);
        self.described.get_with(key, describe).await
    }

    /// The provider with the keys that it has now, unless it was asked for them just before.
    async fn with_new_keys(&self, settings: &ProviderSettings) -> Described {
        let key = key(settings);
        let entry = self.described.entry(key.clone());
        // One at a time: who comes second finds new keys.
        let clock = self.clock.clone();
        let entry = entry.and_compute_with(|entry| async move {
            let known = entry.and_then(|entry| entry.into_value().ok());
            let now = clock.steady();
            match known.and_then(|known| known.new_keys_at) {
                Some(at) if now.saturating_sub(at) < NEW_KEYS => Op::Nop,
                _ => Op::Put(describe(key, Some(now)).await),
            }
        });
        match entry.await.into_entry() {
            Some(entry) => entry.into_value(),
            None => self.provider(settings).await,
        }
    }
}

fn describe((issuer, authorities): Key, at: Option<Duration>) -> BoxFuture<'static, Described> {
    Box::pin(async move {
        let described = Provider::describe(&issuer, authorities, at).await;
        described.map(Arc::new)
    })
}

fn key(settings: &ProviderSettings) -> Key {
    (settings.issuer.clone(), settings.ca_certificate.clone())
}

#[async_trait]
impl IdentityProvider for OidcProvider {
    async fn begin(
        &self,
        settings: &ProviderSettings,
    ) -> Result<(Url, PendingSignIn), ProviderError> {
        self.provider(settings).await?.begin(settings)
    }

    async fn finish(
        &self,
        settings: &ProviderSettings,
        pending: &PendingSignIn,
        returned: &Returned,
    ) -> Result<ProvidedIdentity, ProviderError> {
        let provider = self.provider(settings).await?;
        let tokens = provider.redeem(settings, pending, returned).await?;
        let now = self.clock.now();
        let verified = match provider.verify(settings, pending, &tokens, now) {
            Err(Refusal::Key(_)) => {
                let provider = self.with_new_keys(settings).await?;
                provider.verify(settings, pending, &tokens, now)
            }
            verified => verified,
        };
        let (subject, claims) = verified.map_err(|refusal| match refusal {
            Refusal::Key(why) => ProviderError::Token(why),
            Refusal::Final(error) => error,
        })?;
        provider.identify(settings, &tokens, subject, claims).await
    }

    async fn check(&self, settings: &ProviderSettings) -> Vec<CheckStep> {
        check::check(settings, || self.clock.steady()).await
    }
}
