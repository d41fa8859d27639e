//! The calls of replicas among each other. A call stands in a header, as JSON in base64; parameters and messages of clients are the body.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schema::ids::{Timestamp, Uid};
use serde::{Deserialize, Serialize};

use crate::auth::mcp_token::Bearer;
use crate::auth::{Account, Role};
use crate::executors::{About, Connected, ConnectionId, Key, Protocol, Service};
use crate::mcp::Origin;

/// Longest text of a client that a call holds, in characters.
const LONGEST_TEXT: usize = 300;

/// A call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Call {
    /// Call a tool with the parameters in the body.
    Tool {
        /// The client.
        client: Client,
        /// Time until an answer has to be there, in milliseconds.
        time: u64,
        /// Most bytes of it.
        bytes: u64,
        /// The epoch of the place.
        epoch: i64,
    },
    /// Take the message in the body, which was posted beside a stream.
    Message {
        /// The client.
        client: Client,
        /// The stream.
        stream: String,
    },
    /// Cancel the call of a session whose id is the body.
    Cancel {
        /// The session, as it is remembered.
        session: String,
    },
    /// Take a session for ended.
    EndSession {
        /// The session, as it is remembered.
        session: String,
    },
    /// List connected executors.
    Executors {
        /// Only those of this user.
        user: Option<Uid>,
    },
    /// Disconnect an executor.
    Disconnect {
        /// The number of its connection.
        connection: u64,
    },
    /// Serve an executor whose WebSocket follows.
    Executor(NewExecutor),
    /// Serve a page whose WebSocket follows.
    Page {
        /// The user.
        user: Member,
        /// Time of the sign-in of the session, in seconds.
        issued_at: i64,
        /// The conversation.
        conversation: String,
        /// Epoch and number at which the page goes on.
        resumes: Option<(String, u64)>,
    },
    /// Give a conversation that is open another title, or close it when there is none.
    Conversation {
        /// The user.
        user: Member,
        /// The conversation.
        conversation: String,
        /// Its new title.
        title: Option<String>,
    },
}

impl Call {
    /// The value of the header.
    pub(super) fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads the value of a header.
    pub(super) fn decode(text: &str) -> Option<Self> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }
}

/// A user, who was found to call by the replica that passes something on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Member {
    uid: Uid,
    name: String,
    role: Role,
}

impl From<&Account> for Member {
    fn from(account: &Account) -> Self {
        Self {
            uid: account.uid.clone(),
            name: account.name.to_string(),
            role: account.role,
        }
    }
}

impl Member {
    /// The account; `None` when its name is none.
    pub(crate) fn account(self) -> Option<Account> {
        Some(Account {
            name: self.name.parse().ok()?,
            uid: self.uid,
            role: self.role,
        })
    }
}

/// A client of the MCP endpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Client {
    user: Member,
    token: i64,
    pub(crate) service: Service,
    address: Option<IpAddr>,
    request_id: String,
    session: Option<String>,
}

impl Client {
    pub(crate) fn new(account: &Account, token: i64, service: Service, origin: &Origin) -> Self {
        Self {
            user: account.into(),
            token,
            service,
            address: origin.address,
            request_id: origin.request_id.clone(),
            session: origin.session.clone(),
        }
    }

    pub(crate) fn key(&self) -> Key {
        Key {
            user: self.user.uid.clone(),
            service: self.service,
        }
    }

    /// The client, as if it had shown its token here.
    pub(crate) fn bearer(self) -> Option<(Bearer, Origin)> {
        let origin = Origin {
            address: self.address,
            request_id: self.request_id,
            session: self.session,
        };
        let bearer = Bearer {
            account: self.user.account()?,
            version: self.token,
            in_query: None,
        };
        Some((bearer, origin))
    }
}

/// An executor that connects to another replica than that of its place.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NewExecutor {
    user: Member,
    token: i64,
    pub(crate) service: Service,
    address: Option<IpAddr>,
    user_agent: String,
    since: i64,
    host: Option<String>,
    /// The epoch of the place.
    pub(crate) epoch: i64,
}

impl NewExecutor {
    pub(crate) fn new(bearer: &Bearer, service: Service, about: &About, epoch: i64) -> Self {
        let short = |text: &str| text.chars().take(LONGEST_TEXT).collect();
        Self {
            user: (&bearer.account).into(),
            token: bearer.version,
            service,
            address: about.address,
            user_agent: short(&about.user_agent),
            since: about.since.as_millis(),
            host: about.host.as_deref().map(short),
            epoch,
        }
    }

    pub(crate) fn key(&self) -> Key {
        Key {
            user: self.user.uid.clone(),
            service: self.service,
        }
    }

    /// The executor, as if it connected here.
    pub(crate) fn connecting(self) -> Option<(Bearer, About)> {
        let account = self.user.account()?;
        let about = About {
            user: account.name.clone(),
            address: self.address,
            token: self.token,
            user_agent: self.user_agent,
            since: Timestamp::from_millis(self.since),
            host: self.host,
        };
        let bearer = Bearer {
            account,
            version: self.token,
            in_query: None,
        };
        Some((bearer, about))
    }
}

/// A connected executor, as a replica tells of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Told {
    connection: u64,
    user: Uid,
    name: String,
    service: Service,
    address: Option<IpAddr>,
    user_agent: String,
    since: i64,
    instance: Option<String>,
    client: Option<[String; 3]>,
    label: Option<String>,
    calls: usize,
    calls_total: u64,
    late: u64,
}

impl From<Connected> for Told {
    fn from(one: Connected) -> Self {
        Self {
            connection: one.connection.0,
            user: one.key.user,
            name: one.about.user.to_string(),
            service: one.key.service,
            address: one.about.address,
            user_agent: one.about.user_agent.clone(),
            since: one.about.since.as_millis(),
            instance: match one.protocol {
                Protocol::First => None,
                Protocol::Introduced { instance } => Some(instance),
            },
            client: one.client,
            label: one.label,
            calls: one.calls,
            calls_total: one.calls_total,
            late: one.late,
        }
    }
}

impl Told {
    /// The executor; `None` when the name of its user is none.
    pub(crate) fn connected(self) -> Option<Connected> {
        let about = About {
            user: self.name.parse().ok()?,
            address: self.address,
            token: 0,
            user_agent: self.user_agent,
            since: Timestamp::from_millis(self.since),
            host: None,
        };
        Some(Connected {
            connection: ConnectionId(self.connection),
            key: Key {
                user: self.user,
                service: self.service,
            },
            about: Arc::new(about),
            protocol: match self.instance {
                None => Protocol::First,
                Some(instance) => Protocol::Introduced { instance },
            },
            client: self.client,
            label: self.label,
            calls: self.calls,
            calls_total: self.calls_total,
            late: self.late,
        })
    }
}

/// A time as a call holds it.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
