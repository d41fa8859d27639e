//! Who is calling: sessions, CSRF tokens, passwords, and where a request comes from.

pub mod api_token;
pub mod client_address;
pub mod cors;
pub mod credentials;
pub mod csrf;
pub mod database;
pub mod login_limit;
pub mod mcp_token;
pub mod origin;
pub mod password;
pub mod session;
pub mod session_ends;
mod signer;
pub mod unknown_proxy;

use async_trait::async_trait;
use schema::ids::{Uid, UserName};
use serde::{Deserialize, Serialize};

pub use signer::Signer;

use crate::error::Result;
use session::SessionClaims;

pub use schema::user::Role;

/// The account behind a live session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its identity.
    pub uid: Uid,
    /// Its name as stored.
    pub name: UserName,
    /// What it may do.
    pub role: Role,
}

/// Looks up sessions. The signature and age of the claims have been checked before; the
/// implementation decides whether the session is still alive on the server.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// The account of a live session; `None` when the session has ended for any reason: logged out,
    /// revoked, its account deleted, disabled or of another authentication mode's source.
    ///
    /// # Errors
    /// [`ApiError::Internal`](crate::error::ApiError::Internal) when sessions cannot be read; never `None` in that case.
    async fn account(&self, claims: &SessionClaims) -> Result<Option<Account>>;
}
