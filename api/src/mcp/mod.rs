//! The MCP endpoint: one path on which three protocols are spoken (executors.md, 1 and 2).
//!
//! `post` and `get` decide which of them a request speaks. HTTP+SSE (`old_sse`) and Streamable HTTP of the revisions that begin with
//! a handshake (`handshake`) and of those that do not (`modern`) end in the same `tools`.

mod answer;
mod audit;
mod calls;
mod elsewhere;
mod events;
mod executor;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod get;
mod handshake;
mod limits;
mod message;
mod modern;
mod old_sse;
mod policy;
mod post;
mod presence;
mod progress;
mod revision;
mod revocation;
mod session;
mod stream;
pub(crate) mod tools;

use std::sync::Arc;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use schema::clock::SharedClock;
use schema::ids::Uid;
use schema::reader::Reader;
use schema::secrets::MasterKey;
use tokio::sync::watch;

use crate::auth::mcp_token::Bearer;
use crate::error::{ApiError, Result};
use crate::executors::{Close, Hub, Key};
use crate::limits::{
    EXECUTOR_SOCKETS, KeyedCounter, MCP_CALLS, MCP_DETACHED, MCP_ENDED, MCP_STREAMS, Place,
};
use crate::replica::Replicas;
use crate::settings::WebSettings;

use audit::Audit;
pub(crate) use audit::Origin;
pub use audit::run as record_calls;
use calls::Calls;
pub(crate) use elsewhere::{call_for_replica, take_for_replica};
pub(crate) use executor::{admit_executor, connect_executor};
pub(crate) use get::{come_again, get, goes_on};
use limits::Limits;
use old_sse::OldSessions;
pub(crate) use policy::Denied;
use policy::Gate;
pub use policy::{Own, Policies};
pub(crate) use post::{Request, end_session, post};
use presence::Presence;
pub use presence::Present;
pub use revocation::run as end_revoked;
use session::{SessionKey, TOMBSTONE};
pub(crate) use tools::Bounds;
use tools::Catalogue;
pub use tools::CatalogueError;

/// Most streams of one user at once.
const STREAMS: usize = MCP_STREAMS.each();
/// Most calls of one user and service at once.
const CALLS: usize = MCP_CALLS.each();
/// Most WebSockets of one user and service at once: as many as may be side by side, and some that are about to be replaced or refused.
pub(crate) const SOCKETS: usize = EXECUTOR_SOCKETS.each();

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
    streams: KeyedCounter<Uid>,
    detached: KeyedCounter<Uid>,
    under_way: KeyedCounter<Key>,
    sockets: KeyedCounter<Key>,
    limits: Limits,
    gate: Gate,
    audit: Audit,
    presence: Presence,
    replicas: Replicas,
}

impl Mcp {
    /// An endpoint without connections, of a service that is at `own`, at one of the `replicas`.
    ///
    /// # Errors
    /// When the catalogue of tools cannot be read.
    pub fn new(
        master_key: &MasterKey,
        db: Reader,
        settings: watch::Receiver<Arc<WebSettings>>,
        clock: SharedClock,
        own: Own,
        replicas: Replicas,
    ) -> std::result::Result<Arc<Self>, CatalogueError> {
        Ok(Arc::new(Self {
            hub: Hub::numbering_from(replicas.first_number()),
            catalogue: Catalogue::read()?,
            key: SessionKey::new(master_key.derive("mcp session", b"")),
            ended: MCP_ENDED
                .cache()
                // A new one always counts; the oldest are forgotten.
                .eviction_policy(EvictionPolicy::lru())
                .time_to_live(TOMBSTONE)
                .build(),
            old_sessions: OldSessions::default(),
            calls: Calls::default(),
            streams: KeyedCounter::new(&MCP_STREAMS),
            detached: KeyedCounter::new(&MCP_DETACHED),
            under_way: KeyedCounter::new(&MCP_CALLS),
            sockets: KeyedCounter::new(&EXECUTOR_SOCKETS),
            limits: Limits::default(),
            gate: Gate::new(settings, db, own),
            audit: Audit::new(clock, master_key.derive("mcp arguments", b"")),
            presence: Presence::default(),
            replicas,
        }))
    }

    /// A token comes into use by something that stays open; it is ended when the token is no longer valid.
    pub(crate) fn enter(&self, bearer: &Bearer) -> Present {
        self.presence.enter(bearer)
    }

    /// Room for one more WebSocket of a user and service.
    ///
    /// # Errors
    /// 429 when they have as many as there may be.
    pub(crate) fn enter_socket(&self, key: &Key) -> Result<Place<Key>> {
        let place = self.sockets.enter(key);
        place.ok_or(ApiError::TooManyStreams {
            most: SOCKETS,
            retry_after: get::RETRY_AFTER,
        })
    }

    /// Ends all streams, calls and executors that came with a token.
    pub fn revoke(&self, user: &Uid, version: i64) {
        self.presence.revoke(user, version);
        self.hub.revoke(user, version);
    }

    /// Ends what was opened with a token of a renamed user, which is still valid.
    pub fn reconnect(&self, user: &Uid, version: i64) {
        self.presence.revoke(user, version);
        let executors = self.hub.connected().into_iter();
        for executor in executors.filter(|executor| executor.key.user == *user) {
            self.hub.dismiss(executor.connection, Close::Renamed);
        }
    }
}
