//! The MCP endpoint: one path on which three protocols are spoken (executors.md, 1 and 2).
//!
//! `post` and `get` decide which of them a request speaks. HTTP+SSE (`old_sse`) and Streamable HTTP of the revisions that begin with
//! a handshake (`handshake`) and of those that do not (`modern`) end in the same `tools`.

mod answer;
mod calls;
mod events;
mod get;
mod handshake;
mod message;
mod modern;
mod old_sse;
mod post;
mod presence;
mod revision;
mod revocation;
mod session;
mod stream;
mod tools;

use std::sync::Arc;

use moka::sync::Cache;
use schema::ids::Uid;
use schema::secrets::MasterKey;
use tokio::sync::broadcast;

use crate::auth::mcp_token::Bearer;
use crate::executors::{Hub, Key};
use crate::tally::Tally;

use calls::Calls;
pub(crate) use get::get;
use old_sse::OldSessions;
pub(crate) use post::{Request, end_session, post};
use presence::Presence;
pub use presence::Present;
pub use revocation::run as end_revoked;
use session::{SessionKey, TOMBSTONE};
use tools::Catalogue;
pub use tools::CatalogueError;

/// Most ended sessions that are remembered.
const ENDED: u64 = 10_000;
/// Most streams of one user at once.
const STREAMS: usize = 64;
/// Most calls of one user and service at once.
const CALLS: usize = 8;
/// Users whose streams end that a stream may be behind.
const REVOCATIONS: usize = 64;

/// What the endpoint keeps in memory.
#[derive(Debug)]
pub struct Mcp {
    /// The executors.
    pub hub: Hub,
    catalogue: Catalogue,
    key: SessionKey,
    ended: Cache<String, ()>,
    old_sessions: OldSessions,
    calls: Calls,
    streams: Tally<Uid>,
    under_way: Tally<Key>,
    presence: Presence,
    revoked: broadcast::Sender<Uid>,
}

impl Mcp {
    /// An endpoint to which nobody is connected.
    ///
    /// # Errors
    /// When the catalogue of tools cannot be read.
    pub fn new(master_key: &MasterKey) -> Result<Arc<Self>, CatalogueError> {
        Ok(Arc::new(Self {
            hub: Hub::default(),
            catalogue: Catalogue::read()?,
            key: SessionKey::new(master_key.derive("mcp session", b"")),
            ended: Cache::builder()
                .max_capacity(ENDED)
                .time_to_live(TOMBSTONE)
                .build(),
            old_sessions: OldSessions::default(),
            calls: Calls::default(),
            streams: Tally::default(),
            under_way: Tally::default(),
            presence: Presence::default(),
            revoked: broadcast::Sender::new(REVOCATIONS),
        }))
    }

    /// A token comes into use by something that stays open; it is ended when the token is no longer valid.
    pub(crate) fn enter(&self, bearer: &Bearer) -> Present {
        self.presence.enter(bearer)
    }

    /// Ends all streams, calls and executors of a user, whose token is no longer valid.
    pub fn revoke(&self, user: &Uid) {
        self.hub.revoke(user);
        let _ = self.revoked.send(user.clone());
    }
}
