//! The real thing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use schema::clock::SharedClock;
use schema::ids::Timestamp;
use schema::live::{CheckStep, PendingSignIn, ProvidedIdentity, ProviderFailure};
use tokio_util::task::TaskTracker;
use url::Url;

use super::check;
use super::error::ProviderError;
use super::id_token::Refusal;
use super::provider::Provider;
use super::{IdentityProvider, ProviderSettings, Returned};

/// How long a provider's description and keys are good.
const DESCRIPTION: Duration = Duration::from_secs(60 * 60);
/// How long it is not asked again after it could not be.
const FAILURE: Duration = Duration::from_secs(2);
/// How often it is asked at most because a token has a key that is not known.
const NEW_KEYS: Duration = Duration::from_secs(10);

/// What a description depends on: issuer and authorities.
type Key = (String, Option<String>);
type Described = Result<Arc<Provider>, ProviderError>;
type Describing = Shared<BoxFuture<'static, Described>>;

/// A description that is there, or on its way.
struct Known {
    key: Key,
    /// When it was asked for, by the steady clock.
    asked_at: Duration,
    /// When it was last asked for because of new keys.
    new_keys_at: Option<Duration>,
    describing: Describing,
}

impl Known {
    fn is_good(&self, now: Duration) -> bool {
        let age = now.saturating_sub(self.asked_at);
        match self.describing.peek() {
            // It ends by itself, soon.
            None => true,
            Some(Ok(_)) => age < DESCRIPTION,
            Some(Err(_)) => age < FAILURE,
        }
    }
}

/// Identity providers over HTTP. Each is asked once for its description, however many sign in.
pub struct OidcProvider {
    clock: SharedClock,
    tasks: TaskTracker,
    /// That of the provider that is set; one of before is forgotten.
    known: Mutex<Option<Known>>,
    /// Since when the last attempts have failed.
    failing: Mutex<Option<Timestamp>>,
}

impl OidcProvider {
    /// No description yet. What is on its way when nobody waits any more goes on in `tasks`.
    pub fn new(clock: SharedClock, tasks: TaskTracker) -> Self {
        Self {
            clock,
            tasks,
            known: Mutex::default(),
            failing: Mutex::default(),
        }
    }

    /// Since when the provider could not be used; `None`: the last attempt went well, or there was none.
    pub fn failing_since(&self) -> Option<Timestamp> {
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers how an attempt went.
    fn noted<T>(&self, outcome: Result<T, ProviderError>) -> Result<T, ProviderError> {
        let failed = outcome
            .as_ref()
            .is_err_and(|error| matches!(error.clone().into(), ProviderFailure::Unavailable(_)));
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        *failing = match failed {
            true => failing.or_else(|| Some(self.clock.now())),
            false => None,
        };
        outcome
    }

    async fn provider(&self, settings: &ProviderSettings) -> Described {
        let now = self.clock.steady();
        self.described(settings, |known| known.is_good(now), None)
            .await
    }

    /// The provider with the keys that it has now, unless it was asked for them just before.
    async fn with_new_keys(&self, settings: &ProviderSettings) -> Described {
        let now = self.clock.steady();
        let fresh = |known: &Known| {
            let asked = known.new_keys_at;
            asked.is_some_and(|at| now.saturating_sub(at) < NEW_KEYS)
        };
        self.described(settings, fresh, Some(now)).await
    }

    /// What is known where that is good, or a new description.
    async fn described(
        &self,
        settings: &ProviderSettings,
        good: impl FnOnce(&Known) -> bool,
        new_keys_at: Option<Duration>,
    ) -> Described {
        let key = (settings.issuer.clone(), settings.ca_certificate.clone());
        let describing = {
            let mut slot = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let known = slot.take().filter(|known| known.key == key);
            let known = match known {
                Some(known) if good(&known) => known,
                before => self.ask(key, before, new_keys_at),
            };
            slot.insert(known).describing.clone()
        };
        describing.await
    }

    /// Asks for a description, on behalf of all who wait. New keys that cannot be had leave those that are known.
    fn ask(&self, key: Key, before: Option<Known>, new_keys_at: Option<Duration>) -> Known {
        let before = before.and_then(|known| known.describing.peek()?.clone().ok());
        let before = before.filter(|_| new_keys_at.is_some());
        let (issuer, authorities) = key.clone();
        let describing = async move {
            match (Provider::describe(&issuer, authorities).await, before) {
                (Err(error), Some(before)) => {
                    tracing::warn!(%error, "the identity provider was asked for new keys in vain");
                    Ok(before)
                }
                (described, _) => described.map(Arc::new),
            }
        };
        let describing = describing.boxed().shared();
        self.tasks.spawn(describing.clone());
        Known {
            key,
            asked_at: self.clock.steady(),
            new_keys_at,
            describing,
        }
    }

    async fn finished(
        &self,
        settings: &ProviderSettings,
        pending: &PendingSignIn,
        returned: &Returned,
    ) -> Result<ProvidedIdentity, ProviderError> {
        let provider = self.provider(settings).await?;
        let redeemed = provider.redeem(settings, pending, returned).await;
        let (tokens, _) = redeemed.map_err(|(error, _)| error)?;
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
}

#[async_trait]
impl IdentityProvider for OidcProvider {
    async fn begin(
        &self,
        settings: &ProviderSettings,
        again: bool,
    ) -> Result<(Url, PendingSignIn), ProviderError> {
        let provider = self.provider(settings).await;
        self.noted(provider.and_then(|provider| provider.begin(settings, again)))
    }

    async fn finish(
        &self,
        settings: &ProviderSettings,
        pending: &PendingSignIn,
        returned: &Returned,
    ) -> Result<ProvidedIdentity, ProviderError> {
        let finished = self.finished(settings, pending, returned).await;
        self.noted(finished)
    }

    async fn check(&self, settings: &ProviderSettings) -> Vec<CheckStep> {
        check::check(settings, || self.clock.steady()).await
    }
}
