//! The beginning of a WebSocket.

use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use hyper::upgrade::OnUpgrade;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::answer::{Answers, Body};
use crate::error::{ApiError, Result};
use crate::openapi::Schemas;
use crate::reply::Reply;

/// The answer to a request that opens a WebSocket.
pub struct Switching(Reply);

impl Switching {
    /// The refusal of another replica, which would have served the WebSocket.
    pub(super) fn refused(reply: Reply) -> Self {
        Self(reply)
    }
}

impl Answers for Switching {
    fn into_reply(self) -> Reply {
        self.0
    }

    fn describe(_: &mut Schemas) -> Vec<Body> {
        vec![Body {
            content_type: "",
            ..Body::text(StatusCode::SWITCHING_PROTOCOLS)
        }]
    }
}

/// Accepts a WebSocket: returns the connection to come, and the answer.
///
/// # Errors
/// 400 `invalid_request` when the request opens none.
pub(super) fn accept_websocket(
    headers: &HeaderMap,
    upgrade: Option<OnUpgrade>,
) -> Result<(OnUpgrade, Switching)> {
    const NO_WEBSOCKET: ApiError =
        ApiError::InvalidRequest("the request opens no WebSocket (RFC 6455, version 13)");
    let header = |name| {
        headers
            .get(name)
            .and_then(|it: &HeaderValue| it.to_str().ok())
    };
    let asks = header(UPGRADE).is_some_and(|it| it.eq_ignore_ascii_case("websocket"));
    let version = header(SEC_WEBSOCKET_VERSION) == Some("13");
    let key = header(SEC_WEBSOCKET_KEY).filter(|_| asks && version);
    let (Some(key), Some(upgrade)) = (key, upgrade) else {
        return Err(NO_WEBSOCKET);
    };
    let accept = HeaderValue::try_from(derive_accept_key(key.as_bytes()));
    let reply = Reply::empty()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(CONNECTION, HeaderValue::from_static("upgrade"))
        .header(UPGRADE, HeaderValue::from_static("websocket"))
        .header(SEC_WEBSOCKET_ACCEPT, accept.map_err(|_| NO_WEBSOCKET)?);
    Ok((upgrade, Switching(reply)))
}
