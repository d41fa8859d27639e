//! The calls of replicas among each other. A call stands in a header, as JSON in base64; parameters and messages of clients are the body.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schema::home::conversations::ConversationId;
use schema::ids::Uid;
use serde::{Deserialize, Serialize};

use crate::auth::Account;
use crate::auth::mcp_token::Bearer;
use crate::dispatch::Session;
use crate::executors::{About, ConnectionId, Key, Service};
use crate::mcp::Origin;

/// A call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Call {
    /// Call a tool with the parameters in the body.
    Tool {
        client: Client,
        /// Time until an answer has to be there.
        time: Duration,
        /// Most bytes of it.
        bytes: usize,
        /// The epoch of the place.
        epoch: i64,
    },
    /// Take the message in the body, which was posted beside a stream.
    Message { client: Client, stream: String },
    /// Cancel the call of a session, as that is remembered, whose id is the body.
    Cancel { session: String },
    /// Take a session, as it is remembered, for ended.
    EndSession { session: String },
    /// List connected executors: those of a user, or all.
    Executors { user: Option<Uid> },
    /// Disconnect an executor.
    Disconnect { connection: ConnectionId },
    /// Serve an executor whose WebSocket follows.
    Executor {
        bearer: Bearer,
        service: Service,
        about: About,
        /// The epoch of the place.
        epoch: i64,
    },
    /// Serve a page whose WebSocket follows.
    Page {
        session: Session,
        conversation: ConversationId,
        /// Epoch and number at which the page goes on.
        resumes: Option<(String, u64)>,
    },
    /// Give a conversation that is open another title, or close it when there is none.
    Conversation {
        account: Account,
        conversation: ConversationId,
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

/// A client of the MCP endpoint, whose token was found to be valid.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Client {
    pub(crate) bearer: Bearer,
    pub(crate) service: Service,
    pub(crate) origin: Origin,
}

impl Client {
    pub(crate) fn key(&self) -> Key {
        Key {
            user: self.bearer.account.uid.clone(),
            service: self.service,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_is_read_as_it_was_written_and_holds_no_token() {
        let bearer = Bearer {
            account: Account {
                uid: Uid::random(),
                name: "alice".parse().unwrap(),
                role: crate::auth::Role::User,
            },
            version: 7,
            in_query: Some("alice:secret".to_owned().into()),
        };
        let origin = Origin {
            address: "10.0.0.7".parse().ok(),
            request_id: "r".to_owned(),
            session: None,
        };
        let client = Client {
            bearer,
            service: Service::Browser,
            origin,
        };
        let key = client.key();
        let stream = "r1-a".to_owned();
        let call = Call::Message { client, stream };
        assert!(!serde_json::to_string(&call).unwrap().contains("secret"));
        let Some(Call::Message { client, .. }) = Call::decode(&call.encode()) else {
            panic!("it cannot be read");
        };
        assert_eq!((client.key(), client.bearer.version), (key, 7));
        assert!(client.bearer.in_query.is_none());
        assert!(Call::decode("e30").is_none());
    }
}
