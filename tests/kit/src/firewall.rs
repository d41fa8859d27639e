//! The packet filter of a host, in memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use engine::{FirewallError, Found, HostFirewall, HostRules};

/// A packet filter that does what it is told. Clones are the same one.
#[derive(Debug, Clone)]
pub struct FakeFirewall(Arc<Mutex<Result<Option<HostRules>, FirewallError>>>);

impl Default for FakeFirewall {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Ok(None))))
    }
}

impl FakeFirewall {
    /// What is there; an error is what every call answers.
    pub fn set(&self, found: Result<Option<HostRules>, FirewallError>) {
        *self.found() = found;
    }

    /// What is there.
    pub fn found(&self) -> MutexGuard<'_, Result<Option<HostRules>, FirewallError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl HostFirewall for FakeFirewall {
    async fn observe(&self, rules: Option<&HostRules>) -> Result<Found, FirewallError> {
        Ok(match self.found().clone()? {
            None => Found::Nothing,
            found if found.as_ref() == rules => Found::AsDesired,
            Some(_) => Found::Other,
        })
    }

    async fn restrict(&self, rules: &HostRules) -> Result<(), FirewallError> {
        let mut found = self.found();
        found.clone()?;
        *found = Ok(Some(rules.clone()));
        Ok(())
    }

    async fn open(&self) -> Result<(), FirewallError> {
        let mut found = self.found();
        found.clone()?;
        *found = Ok(None);
        Ok(())
    }
}
