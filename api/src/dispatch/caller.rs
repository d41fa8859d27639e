//! Callers as types: a handler that takes a [`Superadmin`] can only be reached by one.

use http::HeaderMap;
use schema::ids::{Timestamp, Uid};
use serde::{Deserialize, Serialize};

use crate::auth::api_token::TokenBearer;
use crate::auth::mcp_token::Bearer;
use crate::auth::session::{self, SessionClaims};
use crate::auth::{Account, Authenticator, Role, Signer};
use crate::deps::Dependencies;
use crate::error::{ApiError, Result};
use crate::route::Access;
use crate::server::{Peer, Surface};

/// A live session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Whose it is.
    pub account: Account,
    /// Which one it is.
    pub claims: SessionClaims,
}

impl Session {
    /// Whether it still lives: what answers for long asks again. A session that cannot be looked up
    /// now is not known to be dead.
    pub(crate) async fn lives(&self, deps: &Dependencies) -> bool {
        if !self.claims.is_current(deps.clock.now()) {
            return false;
        }
        match deps.authenticator.account(&self.claims).await {
            Ok(account) => account.as_ref() == Some(&self.account),
            Err(error) => {
                error.log();
                true
            }
        }
    }
}

/// Who has been found to call.
#[derive(Debug, Clone)]
pub enum Identity {
    /// Nobody in particular.
    Nobody,
    /// A live session.
    Session(Session),
    /// The admin socket, with the peer's user id.
    Socket(Option<u32>),
    /// The bearer of an MCP token.
    Bearer(Bearer),
    /// The bearer of an API token.
    ApiToken(TokenBearer),
}

impl Identity {
    /// Kind of the caller, for reports.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Nobody => "anonymous",
            Self::Session(_) => "session",
            Self::Socket(_) => "admin socket",
            Self::Bearer(_) => "MCP token",
            Self::ApiToken(_) => "API token",
        }
    }

    /// For logs; bounded, since account names are.
    pub(super) fn label(&self) -> Option<String> {
        match self {
            Self::Nobody => None,
            Self::Session(session) => Some(session.account.name.to_string()),
            Self::Bearer(bearer) => Some(bearer.account.name.to_string()),
            Self::Socket(uid) => Some(socket_label(*uid)),
            Self::ApiToken(token) => Some(token.to_string()),
        }
    }
}

fn socket_label(uid: Option<u32>) -> String {
    match uid {
        Some(uid) => format!("socket:{uid}"),
        None => "socket".to_owned(),
    }
}

/// A kind of caller that a handler can ask for.
pub trait Caller: Sized + Send + 'static {
    /// The access of a route with such a handler.
    const ACCESS: Access;
    /// The route exists on the admin socket only.
    const ON_MACHINE: bool = false;

    /// Makes one of what was found; `None` if that is not enough, which the dispatcher has ruled
    /// out before.
    fn from_identity(identity: Identity) -> Option<Self>;
}

/// Anybody; no session was looked up.
#[derive(Debug, Clone, Copy)]
pub struct Anyone;

impl Caller for Anyone {
    const ACCESS: Access = Access::Public;

    fn from_identity(_: Identity) -> Option<Self> {
        Some(Self)
    }
}

/// Anybody, with the session if there is one.
#[derive(Debug, Clone)]
pub struct Visitor(pub Option<Session>);

impl Caller for Visitor {
    const ACCESS: Access = Access::Visitor;

    fn from_identity(identity: Identity) -> Option<Self> {
        match identity {
            Identity::Session(session) => Some(Self(Some(session))),
            Identity::Nobody
            | Identity::Socket(_)
            | Identity::Bearer(_)
            | Identity::ApiToken(_) => Some(Self(None)),
        }
    }
}

impl Caller for Session {
    const ACCESS: Access = Access::Login;

    fn from_identity(identity: Identity) -> Option<Self> {
        match identity {
            Identity::Session(session) => Some(session),
            Identity::Nobody
            | Identity::Socket(_)
            | Identity::Bearer(_)
            | Identity::ApiToken(_) => None,
        }
    }
}

/// An ordinary user's session.
#[derive(Debug, Clone)]
pub struct OrdinaryUser(pub Session);

impl Caller for OrdinaryUser {
    const ACCESS: Access = Access::OrdinaryUser;

    fn from_identity(identity: Identity) -> Option<Self> {
        let session = Session::from_identity(identity)?;
        (session.account.role == Role::User).then_some(Self(session))
    }
}

/// The identity that acts, and that a stream lasts no longer than.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// A session: that of a superadmin, where it administers.
    Session(Session),
    /// An API token.
    ApiToken(TokenBearer),
    /// Somebody on the machine, through the admin socket.
    Socket {
        /// The peer's user id, when the system reports it.
        uid: Option<u32>,
    },
}

impl Actor {
    /// The session; `None` for the admin socket and for tokens.
    pub fn session(&self) -> Option<&Session> {
        match self {
            Self::Session(session) => Some(session),
            Self::ApiToken(_) | Self::Socket { .. } => None,
        }
    }

    /// The account or token whose streams are counted; `None` for the admin socket.
    pub fn account(&self) -> Option<&Uid> {
        match self {
            Self::Session(session) => Some(&session.account.uid),
            Self::ApiToken(token) => Some(&token.uid),
            Self::Socket { .. } => None,
        }
    }

    /// Reports that it still lives. The admin socket has nothing to lose.
    pub(crate) async fn lives(&self, deps: &Dependencies) -> bool {
        match self {
            Self::Session(session) => session.lives(deps).await,
            Self::ApiToken(token) => token.lives(deps).await,
            Self::Socket { .. } => true,
        }
    }
}

impl std::fmt::Display for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Session(session) => session.account.name.fmt(f),
            Self::ApiToken(token) => token.fmt(f),
            Self::Socket { uid } => f.write_str(&socket_label(*uid)),
        }
    }
}

/// A superadmin.
#[derive(Debug, Clone)]
pub struct Superadmin(pub Actor);

impl Caller for Superadmin {
    const ACCESS: Access = Access::Superadmin;

    fn from_identity(identity: Identity) -> Option<Self> {
        match identity {
            Identity::Session(session) if session.account.role == Role::Superadmin => {
                Some(Self(Actor::Session(session)))
            }
            Identity::Socket(uid) => Some(Self(Actor::Socket { uid })),
            Identity::ApiToken(token) => Some(Self(Actor::ApiToken(token))),
            Identity::Session(_) | Identity::Nobody | Identity::Bearer(_) => None,
        }
    }
}

/// A process on the server's machine, through the admin socket.
#[derive(Debug, Clone, Copy)]
pub struct OnMachine;

impl Caller for OnMachine {
    const ACCESS: Access = Access::Superadmin;
    const ON_MACHINE: bool = true;

    fn from_identity(identity: Identity) -> Option<Self> {
        match identity {
            Identity::Socket(_) => Some(Self),
            Identity::Nobody
            | Identity::Session(_)
            | Identity::Bearer(_)
            | Identity::ApiToken(_) => None,
        }
    }
}

impl Caller for Bearer {
    const ACCESS: Access = Access::McpToken;

    fn from_identity(identity: Identity) -> Option<Self> {
        match identity {
            Identity::Bearer(bearer) => Some(bearer),
            Identity::Nobody
            | Identity::Session(_)
            | Identity::Socket(_)
            | Identity::ApiToken(_) => None,
        }
    }
}

/// Finds out who calls, and refuses whom the route is not for.
pub(super) async fn identify(
    access: Access,
    peer: &Peer,
    headers: &HeaderMap,
    signer: &Signer,
    authenticator: &dyn Authenticator,
    now: Timestamp,
) -> Result<Identity> {
    if access == Access::Public {
        return Ok(Identity::Nobody);
    }
    if access == Access::Superadmin && peer.surface == Surface::AdminSocket {
        return Ok(Identity::Socket(peer.socket_uid));
    }
    let session = match live_session(headers, signer, authenticator, now).await {
        // A visitor needs no session, so a lookup that fails refuses nobody.
        Err(error) if access == Access::Visitor => {
            error.log();
            None
        }
        found => found?,
    };
    let role = session.as_ref().map(|session| session.account.role);
    match (access, role) {
        (Access::Public | Access::Visitor, _)
        | (Access::Login, Some(_))
        | (Access::OrdinaryUser, Some(Role::User))
        | (Access::Superadmin, Some(Role::Superadmin)) => {
            Ok(session.map_or(Identity::Nobody, Identity::Session))
        }
        (Access::Login | Access::OrdinaryUser | Access::Superadmin, None) => {
            Err(ApiError::NotSignedIn)
        }
        // Found out by the token, before anybody asks for a session.
        (Access::McpToken, _) => Err(ApiError::TokenInvalid),
        (Access::OrdinaryUser, Some(Role::Superadmin)) => Err(ApiError::WrongRole(
            "for ordinary users only; superadmins have no container",
        )),
        (Access::Superadmin, Some(Role::User)) => Err(ApiError::WrongRole("for superadmins only")),
    }
}

async fn live_session(
    headers: &HeaderMap,
    signer: &Signer,
    authenticator: &dyn Authenticator,
    now: Timestamp,
) -> Result<Option<Session>> {
    for claims in session::claims_of(headers, signer, now) {
        if let Some(account) = authenticator.account(&claims).await? {
            return Ok(Some(Session { account, claims }));
        }
    }
    Ok(None)
}
