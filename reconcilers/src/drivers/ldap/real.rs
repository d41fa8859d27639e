//! A directory over the network.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use ldap3::Ldap;
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connect::{Tasks, bind, bound, connect};
use super::error::DirectoryError;
use super::{Directory, DirectorySettings, Person, search};

/// Directories over the network. The connection of the service is kept while its settings stay the same.
pub struct LdapDirectory {
    tasks: Tasks,
    kept: Mutex<Option<Kept>>,
}

struct Kept {
    settings: DirectorySettings,
    ldap: Ldap,
}

impl std::fmt::Debug for LdapDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LdapDirectory").finish_non_exhaustive()
    }
}

impl LdapDirectory {
    /// Nothing is connected. `tracker` and `shutdown` are the process's own, so that nothing outlives it.
    pub fn new(tracker: TaskTracker, shutdown: CancellationToken) -> Self {
        Self {
            tasks: Tasks { tracker, shutdown },
            kept: Mutex::default(),
        }
    }

    /// Runs a request on the connection of the service, and once more on a new one if that which was kept has ended.
    async fn with_service<T, F>(
        &self,
        settings: &DirectorySettings,
        request: impl Fn(Ldap) -> F,
    ) -> Result<T, DirectoryError>
    where
        F: Future<Output = Result<T, DirectoryError>> + Send,
    {
        if let Some(ldap) = self.kept(settings) {
            match request(ldap).await {
                Err(error) if error.is_of_connection() => {
                    self.forget();
                    // A server that says nothing would say nothing again.
                    if let DirectoryError::Timeout(_) = error {
                        return Err(error);
                    }
                }
                outcome => return outcome,
            }
        }
        let ldap = bound(&self.tasks, settings).await?;
        let outcome = request(ldap.clone()).await;
        if !outcome
            .as_ref()
            .is_err_and(DirectoryError::is_of_connection)
        {
            let settings = settings.clone();
            *self.lock() = Some(Kept { settings, ldap });
        }
        outcome
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle of the connection that is kept, if it stands: several use it at once.
    fn kept(&self, settings: &DirectorySettings) -> Option<Ldap> {
        let mut kept = self.lock();
        let usable = |it: &mut Kept| it.settings.connect_as(settings) && !it.ldap.is_closed();
        *kept = kept.take().and_then(|mut it| usable(&mut it).then_some(it));
        kept.as_ref().map(|it| it.ldap.clone())
    }

    fn forget(&self) {
        *self.lock() = None;
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
        // Who binds with an empty password is let in as nobody (RFC 4513 §5.1.2): that proves nothing (L17).
        if password.expose_secret().is_empty() {
            return Ok(None);
        }
        let found = self
            .with_service(settings, |ldap| search::person(ldap, settings, name))
            .await?;
        // An unknown name takes the same steps, and so the same time (L5).
        let nobody = format!("cn=nobody,{}", settings.base_dn);
        let dn = found.as_ref().map_or(&nobody, |person| &person.dn);
        let mut ldap = connect(&self.tasks, settings).await?;
        let let_in = bind(&mut ldap, settings, dn, password.expose_secret()).await?;
        let _ = ldap.unbind().await;
        Ok(found.filter(|_| let_in))
    }

    async fn people(&self, settings: &DirectorySettings) -> Result<Vec<Person>, DirectoryError> {
        self.with_service(settings, |ldap| search::people(ldap, settings))
            .await
    }
}
