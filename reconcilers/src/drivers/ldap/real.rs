//! A directory over the network.

use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::check::{self, Check};
use super::connect::{Connection, Tasks, bind, bound, connect};
use super::error::DirectoryError;
use super::search::Entry;
use super::{Directory, DirectorySettings, Listing, Person, Wanted, list, membership, search};

/// Longest time of a sign-in: whoever waits for it is told within five seconds.
const SIGN_IN: Duration = Duration::from_secs(4);
/// Longest time of a look-up on the connection that is kept, which may have died without a word.
const KEPT: Duration = Duration::from_secs(1);
/// A connection that nobody has used for so long may have been dropped on the way.
const IDLE: Duration = Duration::from_secs(60);
/// A connection is replaced after this time: the library remembers something of each request, and servers what the service
/// was allowed to when it bound.
const OLD: Duration = Duration::from_secs(600);
/// So long nobody binds again as a service that was refused: directories lock who tries too often.
const REFUSED: Duration = Duration::from_secs(30);
/// Longest time in which the groups of one person are looked up.
const GROUPS: Duration = Duration::from_millis(1500);
/// Longest time of a list.
const LIST: Duration = Duration::from_secs(600);

/// Directories over the network.
pub struct LdapDirectory {
    tasks: Tasks,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kept: Option<Kept>,
    numbers: u64,
    refused: Option<(DirectorySettings, DirectoryError, Instant)>,
}

/// The connection of the service.
struct Kept {
    settings: DirectorySettings,
    ldap: Connection,
    number: u64,
    since: Instant,
    used: Instant,
}

impl std::fmt::Debug for LdapDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LdapDirectory").finish_non_exhaustive()
    }
}

/// An entry, and the connection over which it was found.
type Found = (Entry, Connection);

/// Forgets a connection unless what was asked over it came to its end, also when whoever asked has left.
struct InUse<'a> {
    directory: &'a LdapDirectory,
    number: u64,
}

impl InUse<'_> {
    fn ended_well(self) {
        std::mem::forget(self);
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        let kept = &mut self.directory.lock().kept;
        kept.take_if(|kept| kept.number == self.number);
    }
}

impl LdapDirectory {
    /// Nothing is connected. `tracker` and `shutdown` are the process's own, so that nothing outlives it.
    pub fn new(tracker: TaskTracker, shutdown: CancellationToken) -> Self {
        Self {
            tasks: Tasks { tracker, shutdown },
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever has a name, over the connection that is kept, or a new one.
    async fn find(
        &self,
        settings: &DirectorySettings,
        name: &str,
    ) -> Result<Option<Found>, DirectoryError> {
        if let Some((ldap, in_use)) = self.kept(settings) {
            let found = timeout(KEPT, search::person(&ldap, settings, name)).await;
            if let Ok(found) = found
                && is_answer(&found)
            {
                in_use.ended_well();
                return Ok(found?.map(|entry| (entry, ldap)));
            }
        }
        let ldap = self.bound(settings).await?;
        let found = search::person(&ldap, settings, name).await;
        if is_answer(&found) {
            let now = Instant::now();
            let mut state = self.lock();
            state.numbers += 1;
            state.kept = Some(Kept {
                settings: settings.clone(),
                ldap: ldap.clone(),
                number: state.numbers,
                since: now,
                used: now,
            });
        }
        Ok(found?.map(|entry| (entry, ldap)))
    }

    /// A handle of the connection that is kept, if it stands: several use it at once.
    fn kept(&self, settings: &DirectorySettings) -> Option<(Connection, InUse<'_>)> {
        let mut state = self.lock();
        let now = Instant::now();
        state.kept.take_if(|it| {
            it.ldap.is_closed()
                || !it.settings.connect_as(settings)
                || now.duration_since(it.used) > IDLE
                || now.duration_since(it.since) > OLD
        });
        let kept = state.kept.as_mut()?;
        kept.used = now;
        let in_use = InUse {
            directory: self,
            number: kept.number,
        };
        Some((kept.ldap.clone(), in_use))
    }

    /// A new connection of the service, unless it was refused just now.
    async fn bound(&self, settings: &DirectorySettings) -> Result<Connection, DirectoryError> {
        if let Some((refused, error, at)) = &self.lock().refused
            && refused.connect_as(settings)
            && at.elapsed() < REFUSED
        {
            return Err(error.clone());
        }
        let bound = bound(&self.tasks, settings).await;
        self.lock().refused = match &bound {
            Err(error @ (DirectoryError::Bind(_) | DirectoryError::Unencrypted(_))) => {
                Some((settings.clone(), error.clone(), Instant::now()))
            }
            _ => None,
        };
        bound
    }

    async fn verify(
        &self,
        settings: &DirectorySettings,
        name: &str,
        password: &str,
    ) -> Result<Option<Person>, DirectoryError> {
        let found = match self.find(settings, name).await {
            // The same as an unknown name: a caller does not learn which names there are (L5).
            Err(
                error @ (DirectoryError::Ambiguous
                | DirectoryError::Unreadable { .. }
                | DirectoryError::Reference(_)),
            ) => {
                tracing::warn!(%error, "nobody can sign in by a name");
                None
            }
            found => found?,
        };
        // An unknown name takes the same steps (L5).
        let nobody = format!("cn=nobody,{}", settings.base_dn);
        let dn = found.as_ref().map_or(&nobody, |(entry, _)| &entry.dn);
        let own = connect(&self.tasks, settings).await?;
        let refused = bind(&own, dn, password).await?;
        let _ = own.request().unbind().await;
        let Some((entry, service)) = found.filter(|_| refused.is_none()) else {
            return Ok(None);
        };
        // What was typed has found one entry; the name that it has may be another one's, too.
        if !search::is_only_one(&service, settings, &entry).await? {
            tracing::warn!(
                "several entries of the directory have the name of somebody who signs in"
            );
            return Ok(None);
        }
        let groups = membership::of_person(&service, settings, &entry);
        let groups = match timeout(GROUPS, groups).await {
            Ok(Ok(groups)) => groups,
            failed => {
                let error = match failed {
                    Ok(Err(error)) => error,
                    _ => DirectoryError::Timeout(GROUPS),
                };
                tracing::warn!(%error, "the groups of somebody who signs in can't be read; they stay as they are");
                None
            }
        };
        Ok(Some(Person {
            groups,
            dn: entry.dn,
            name: entry.name,
            identity: entry.identity.map(|identity| identity.text),
        }))
    }
}

/// Whether the connection has done what it is for.
fn is_answer(found: &Result<Option<Entry>, DirectoryError>) -> bool {
    use DirectoryError::{Ambiguous, Filter, Reference, Unreadable};
    matches!(
        found,
        Ok(_) | Err(Ambiguous | Filter(_) | Reference(_) | Unreadable { .. })
    )
}

/// Bounds the time of a request, and takes what makes the library panic for what it is: an answer that is none.
async fn bounded<T>(
    most: Duration,
    request: impl Future<Output = Result<T, DirectoryError>>,
) -> Result<T, DirectoryError> {
    match timeout(most, AssertUnwindSafe(request).catch_unwind()).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => {
            let why = "its answer can't be read".to_owned();
            Err(DirectoryError::Unreachable(why))
        }
        Err(_) => Err(DirectoryError::Timeout(most)),
    }
}

#[async_trait]
impl Directory for LdapDirectory {
    async fn sign_in(
        &self,
        settings: &DirectorySettings,
        name: &str,
        password: &SecretString,
    ) -> Result<Option<Person>, DirectoryError> {
        let password = password.expose_secret();
        // Who binds with an empty password is let in as nobody (RFC 4513 §5.1.2): that proves nothing (L17).
        if password.is_empty() {
            return Ok(None);
        }
        bounded(SIGN_IN, Box::pin(self.verify(settings, name, password))).await
    }

    async fn list(&self, settings: &DirectorySettings) -> Result<Listing, DirectoryError> {
        bounded(LIST, async {
            let ldap = self.bound(settings).await?;
            Ok(list::list(&ldap, settings).await?.listing)
        })
        .await
    }

    async fn check(&self, settings: &DirectorySettings, wanted: &Wanted) -> Check {
        check::check(&self.tasks, settings, wanted).await
    }
}
