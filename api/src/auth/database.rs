//! Sessions as the database knows them.

use std::sync::Arc;

use async_trait::async_trait;
use schema::reader::Reader;
use schema::session::{self, Live};
use schema::user::Role;
use tokio::sync::watch;

use super::credentials::belongs_to_mode;
use super::session::SessionClaims;
use super::{Account, Authenticator};
use crate::error::Result;
use crate::settings::WebSettings;

/// Looks sessions up in the database at every request, so that whatever ends one takes effect on
/// the next request.
#[derive(Debug)]
pub struct DatabaseAuthenticator {
    db: Reader,
    settings: watch::Receiver<Arc<WebSettings>>,
}

impl DatabaseAuthenticator {
    /// Sessions of this database, under the authentication mode of these settings.
    pub fn new(db: Reader, settings: watch::Receiver<Arc<WebSettings>>) -> Self {
        Self { db, settings }
    }
}

#[async_trait]
impl Authenticator for DatabaseAuthenticator {
    async fn account(&self, claims: &SessionClaims) -> Result<Option<Account>> {
        let mut connection = self.db.read().await?;
        let issued_at = claims.issued_at.as_secs();
        let live = session::find_live(&mut connection, &claims.username, issued_at).await?;
        let (mode, whitelist) = {
            let settings = self.settings.borrow();
            (settings.auth_mode, settings.whitelist_enabled)
        };
        let listed = |live: &Live| !whitelist || live.whitelisted || live.role == Role::Superadmin;
        Ok(live
            .filter(|live| belongs_to_mode(live.role, live.source, mode) && listed(live))
            .map(|live| Account {
                uid: live.uid,
                name: live.name,
                role: live.role,
            }))
    }
}
