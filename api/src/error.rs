//! What a request can fail with, and how the client is informed.
//!
//! [`ApiError`] maps every cause to a status, a stable code for programs and a sentence for people.
//! Details of server-side failures go to the log only, under the request id.

use std::time::Duration;

use http::header::{ALLOW, CONTENT_RANGE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use schema::condition::Reason;
use schema::error::DbError;
pub use schema::error::chain;
use schema::ids::Generation;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::reply::Reply;

/// A source error of any layer below.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// When to try again what failed for the database.
const STORAGE_RETRY: Duration = Duration::from_secs(2);

/// How the observed failure of an object is reported to whoever waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// The desired state can never hold as it is written: 422.
    Refused,
    /// Something else stands in the way: 409.
    Conflict,
    /// A remote, such as a registry, failed: 502.
    Remote,
    /// The engine cannot be used as it is: 503.
    Engine,
    /// Anything else: 500.
    Other,
}

impl FailureClass {
    /// The HTTP status.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Refused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Conflict => StatusCode::CONFLICT,
            Self::Remote => StatusCode::BAD_GATEWAY,
            Self::Engine => StatusCode::SERVICE_UNAVAILABLE,
            Self::Other => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// The settings that say which pages may act.
const ORIGIN_REMEDY: &str = "set web.public_url to the address in people's browsers, or add the origin to web.allowed_origins";

/// Most problems that one answer lists.
pub const MOST_PROBLEMS: usize = 50;

/// What handlers return, and what they call.
pub type Result<T, E = ApiError> = std::result::Result<T, E>;

/// Everything a request can fail with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// A parameter is missing, malformed, out of range, or contains NUL (400 `invalid_parameter`).
    #[error("{message}")]
    InvalidParameter {
        /// The parameter's name, when one is to blame.
        field: Option<String>,
        /// A sentence that names the rule; never contains the value.
        message: String,
    },
    /// The body cannot be read as what its content type says (400 `invalid_body`).
    #[error("{0}")]
    InvalidBody(&'static str),
    /// The request is not one that HTTP allows here (400 `invalid_request`).
    #[error("{0}")]
    InvalidRequest(&'static str),
    /// Path or query are not UTF-8 after decoding (400 `invalid_encoding`).
    #[error("the address is not valid UTF-8")]
    InvalidEncoding,
    /// No session, or one that is bad, expired or ended (401 `not_signed_in`).
    #[error("sign in first")]
    NotSignedIn,
    /// No MCP token, or one that is not valid (401 `token_invalid`).
    #[error("the MCP token is missing or not valid; get the present one in the console")]
    TokenInvalid,
    /// An API token that is unknown, was revoked or has expired (401 `api_token_invalid`).
    #[error("{0}")]
    ApiTokenInvalid(String),
    /// Wrong name or password; one text for all causes (401 `bad_credentials`).
    #[error("wrong name or password")]
    BadCredentials,
    /// The same where others than superadmins sign in through an identity provider.
    #[error("wrong name or password; others sign in with single sign-on")]
    NoSuperadmin,
    /// Whoever comes back from an identity provider was not sent off in this browser (400 `sign_in_unknown`).
    #[error(
        "this sign-in was not begun in this browser, or longer ago than 10 minutes; begin again"
    )]
    SignInUnknown,
    /// An administrator has disabled the account (403 `account_disabled`).
    #[error("your account is disabled; ask an administrator")]
    AccountDisabled,
    /// The name is that of another account (409 `name_taken`).
    #[error("your user name belongs to another account here; ask an administrator")]
    NameOfAnother,
    /// What came back from an identity provider proves nothing (401 `sign_in_refused`).
    #[error("{0}")]
    SignInRefused(String),
    /// The old password given with a change is wrong (401 `wrong_password`).
    #[error("the old password is wrong")]
    WrongPassword,
    /// The policy has switched the service off for the user (403 `switched_off`).
    #[error("{0}")]
    SwitchedOff(String),
    /// The session's role may not do this (403 `wrong_role`).
    #[error("{0}")]
    WrongRole(&'static str),
    /// The CSRF token is missing or wrong, or the request comes from a foreign site (403 `csrf_invalid`).
    #[error("{0}")]
    CsrfInvalid(&'static str),
    /// The request comes from a page of a foreign site (403 `csrf_invalid`): as its `Origin` names it, and the origins that may act.
    #[error("pages of {seen} may not act here, only those of {own}; {remedy}", remedy = ORIGIN_REMEDY)]
    ForeignSite {
        /// The site as the request names it.
        seen: String,
        /// The service's own origin.
        own: String,
    },
    /// The request comes from a page of another site (403 `origin_refused`).
    #[error("requests of pages of {0} are refused; {remedy}", remedy = ORIGIN_REMEDY)]
    OriginRefused(String),
    /// Not possible in the present authentication mode (403 `mode_forbidden`).
    #[error("not possible in the current authentication mode; {0}")]
    ModeForbidden(&'static str),
    /// A superadmin signed in from a browser extension or a desktop client (403 `superadmin_client`).
    #[error("superadmins can sign in to the web console only")]
    SuperadminClient,
    /// The password is right, and the name is not on the whitelist (403 `not_whitelisted`).
    #[error("this account is not on the list of those who may sign in; ask an administrator")]
    NotWhitelisted,
    /// The password is right, and the name breaks the rule for names (403 `invalid_username`).
    #[error("this account cannot be used here: {rule}")]
    InvalidUsername {
        /// The rule.
        rule: String,
    },
    /// A channel that no administrator has allowed (403 `channel_not_allowed`).
    #[error(
        "the channel {channel} is not one of those that an administrator has allowed for your agent"
    )]
    ChannelNotAllowed {
        /// The channel.
        channel: String,
    },
    /// A channel that the agent's chat occupies (403 `channel_not_allowed`).
    #[error(
        "the channel {channel} is the one that the page talks to your agent through, so it cannot be set up; \
         what you have set for it is kept"
    )]
    ChannelOfChat {
        /// The channel.
        channel: String,
    },
    /// No such route (404 `not_found`).
    #[error("no such address")]
    NoSuchRoute,
    /// The route exists, the object does not (404 `not_found`).
    #[error("{what} not found")]
    NotFound {
        /// What was looked for, such as `user alice`.
        what: String,
    },
    /// The path exists with other methods (405 `method_not_allowed`).
    #[error("method not allowed; use {allow}")]
    MethodNotAllowed {
        /// The methods it takes, as in the `Allow` header.
        allow: &'static str,
    },
    /// The body did not arrive in time (408 `request_timeout`).
    #[error("the request body did not arrive in time")]
    RequestTimeout,
    /// The name is taken (409 `already_exists`).
    #[error("{what} already exists")]
    AlreadyExists {
        /// What exists, such as `user alice`.
        what: String,
    },
    /// The previous bearer of the name is still being removed (409 `name_being_removed`).
    #[error("the previous account of this name is still being removed; try again soon")]
    NameBeingRemoved,
    /// Somebody signs in whose name's previous bearer is still being archived (503 `previous_account_archiving`).
    #[error("the previous account of this name is still being archived or renamed; try again soon")]
    PreviousAccountArchiving,
    /// The last superadmin can't be deleted (409 `last_superadmin`).
    #[error("the last superadmin cannot be deleted; create another one first")]
    LastSuperadmin,
    /// The agent network is in use (409 `network_in_use`).
    #[error("the network cannot be changed while containers exist")]
    NetworkInUse,
    /// Something else stands in the way now (409, own code).
    #[error("{message}")]
    Conflict {
        /// The stable code, such as `account_disabled`.
        code: &'static str,
        /// The sentence.
        message: String,
    },
    /// A change of `web.auth_mode` is not confirmed, or the new source of users does not work (409, own code).
    #[error("{message}")]
    SwitchRefused {
        /// The stable code, such as `confirmation_required`.
        code: &'static str,
        /// The sentence.
        message: String,
        /// The plan.
        purge: Value,
    },
    /// The image is in use (409 `image_in_use`).
    #[error("{message}")]
    ImageInUse {
        /// The sentence.
        message: String,
        /// Who uses it; the first of them, when there are many.
        users: Vec<String>,
        /// References of other images that are there.
        alternatives: Vec<String>,
    },
    /// The object changed since the client looked (412 `stale_generation`).
    #[error("the object has changed; read it again")]
    Stale {
        /// The present generation, when known.
        generation: Option<Generation>,
    },
    /// No byte of the file is in the range that was asked for (416 `range_not_satisfiable`).
    #[error("the file has {length} bytes, and none of them is in the range that was asked for")]
    RangeNotSatisfiable {
        /// The length of the file, in bytes.
        length: u64,
    },
    /// The file is not the one that the client has read (412 `stale_file`).
    #[error("the file has changed; read it again")]
    StaleFile,
    /// The body, or a file in it, is over the limit (413 `too_large`).
    #[error("the request body, or a file in it, is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The content type is none of those this route takes (415 `unsupported_media_type`).
    #[error("{0}")]
    UnsupportedMediaType(&'static str),
    /// Well-formed, but refused by validation (422, own code).
    #[error("{message}")]
    Unprocessable {
        /// The stable code, such as `invalid_config`.
        code: &'static str,
        /// The sentence.
        message: String,
        /// Further fields of the answer, such as every offending key.
        extra: Map<String, Value>,
    },
    /// Too many sign-in attempts (429 `too_many_attempts`).
    #[error("too many attempts; try again in {} seconds", .retry_after.as_secs())]
    TooManyAttempts {
        /// Time until the next attempt is accepted, in whole seconds.
        retry_after: Duration,
    },
    /// The account has as many streams open as it may (429 `too_many_streams`).
    #[error("this account already has {most} open streams; close one first")]
    TooManyStreams {
        /// How many it may have.
        most: usize,
        /// When to try again, in whole seconds.
        retry_after: Duration,
    },
    /// An MCP client sends too much (429 `too_many_messages`).
    #[error("{said}")]
    TooManyMessages {
        /// The sentence.
        said: &'static str,
        /// When to try again, in whole seconds.
        retry_after: Duration,
    },
    /// Executors of a user keep displacing each other (429 `executors_displaced`).
    #[error(
        "{what}s of this user keep displacing each other, and only one can be connected: disconnect the other one. The next new \
         connection is accepted in {} seconds", .retry_after.as_secs().max(1)
    )]
    ExecutorsDisplaced {
        /// The kind of executor: `browser` or `desktop`.
        what: &'static str,
        /// Time to wait before trying again, in whole seconds.
        retry_after: Duration,
    },
    /// As many watch as there may be (503 `too_many_watchers`).
    #[error("{most} clients are already watching; try again later")]
    TooManyWatchers {
        /// How many there may be.
        most: usize,
        /// When to try again, in whole seconds.
        retry_after: Duration,
    },
    /// A live read failed at a remote (502 `remote_failed`).
    #[error("{message}")]
    Remote {
        /// The sentence.
        message: String,
    },
    /// The service is at its limit (503 `busy`).
    #[error("the service is busy; try again soon")]
    Busy {
        /// When to try again, in whole seconds.
        retry_after: Duration,
    },
    /// A live read is not possible while the engine cannot be reached (503 `engine_unavailable`).
    #[error("the container engine cannot be reached")]
    EngineUnavailable,
    /// The file system of users' files has no space left (507 `disk_full`).
    #[error(
        "the disk has no space left; remove files for good (permanent), empty the trash, or ask an administrator"
    )]
    DiskFull(#[source] Cause),
    /// The user's quota is used up (507 `quota_exceeded`).
    #[error(
        "your files take {used} and may take {limit} ({key}); remove files for good (permanent), empty the trash, or ask an administrator to raise the quota"
    )]
    QuotaExceeded {
        /// What is used, without this request.
        used: String,
        /// The quota.
        limit: String,
        /// The key that sets it.
        key: &'static str,
    },
    /// The database has no space left (507 `storage_full`).
    #[error(
        "the database has no space left, so nothing was changed; free space on its storage and try again"
    )]
    StorageFull(#[source] Cause),
    /// The database cannot read or write its storage (503 `storage_failed`).
    #[error("the storage of the database failed: {what}; check it and try again")]
    StorageFailed {
        /// What is wrong with it.
        what: &'static str,
        /// For the log.
        #[source]
        cause: Cause,
    },
    /// The database cannot be reached (503 `database_unavailable`). What was under way may have been done.
    #[error("the database is not available; try again soon")]
    DatabaseUnavailable(#[source] Cause),
    /// What the client waited for failed for good; the desired state stays recorded.
    #[error("{message}")]
    ObjectFailed {
        /// Decides the status.
        class: FailureClass,
        /// The condition's reason in snake case, as code.
        code: String,
        /// The condition's message.
        message: String,
        /// The object, such as `container/alice`.
        object: String,
        /// The generation that failed.
        generation: Generation,
        /// The condition's reason.
        reason: Reason,
    },
    /// A defect (500 `internal`); the cause goes to the log only.
    #[error("internal error; the server log shows the details by request id")]
    Internal(#[source] Cause),
}

impl ApiError {
    /// A server-side failure whose cause belongs to the log.
    pub fn internal(cause: impl Into<Cause>) -> Self {
        Self::Internal(cause.into())
    }

    /// A bad parameter with the rule it breaks.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::InvalidParameter {
            field: Some(field.into()),
            message: message.into(),
        }
    }

    /// A conflict with the present state, or with another request.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::Conflict {
            code,
            message: message.into(),
        }
    }

    /// A request that is well-formed but refused.
    pub fn unprocessable(code: &'static str, message: impl Into<String>) -> Self {
        Self::Unprocessable {
            code,
            message: message.into(),
            extra: Map::new(),
        }
    }

    /// The same for several reasons: the sentence names the first three of them, `problems` has the first
    /// [`MOST_PROBLEMS`], and `problem_count` says how many there are.
    pub fn problems(
        code: &'static str,
        what: &str,
        sentences: &[String],
        problems: &[impl Serialize],
    ) -> Self {
        let mut message = what.to_owned();
        for (at, sentence) in sentences.iter().take(3).enumerate() {
            message += &format!("{} {sentence}", if at == 0 { ":" } else { ";" });
        }
        if let Some(more @ 1..) = sentences.len().checked_sub(3) {
            message += &format!("; and {more} more");
        }
        Self::Unprocessable {
            code,
            message,
            extra: Map::from_iter([
                ("problem_count".to_owned(), json!(problems.len())),
                (
                    "problems".to_owned(),
                    json!(problems.get(..MOST_PROBLEMS).unwrap_or(problems)),
                ),
            ]),
        }
    }

    /// A missing object, such as `user alice`.
    pub fn not_found(what: impl Into<String>) -> Self {
        Self::NotFound { what: what.into() }
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.verdict().0
    }

    /// The stable code for programs.
    pub fn code(&self) -> &str {
        self.verdict().1
    }

    /// Status and code. Every variant is named, so that a new one decides both.
    fn verdict(&self) -> (StatusCode, &str) {
        use StatusCode as S;
        match self {
            Self::InvalidParameter { .. } => (S::BAD_REQUEST, "invalid_parameter"),
            Self::SignInUnknown => (S::BAD_REQUEST, "sign_in_unknown"),
            Self::InvalidBody(_) => (S::BAD_REQUEST, "invalid_body"),
            Self::InvalidRequest(_) => (S::BAD_REQUEST, "invalid_request"),
            Self::InvalidEncoding => (S::BAD_REQUEST, "invalid_encoding"),
            Self::NotSignedIn => (S::UNAUTHORIZED, "not_signed_in"),
            Self::TokenInvalid => (S::UNAUTHORIZED, "token_invalid"),
            Self::ApiTokenInvalid(_) => (S::UNAUTHORIZED, "api_token_invalid"),
            Self::BadCredentials | Self::NoSuperadmin => (S::UNAUTHORIZED, "bad_credentials"),
            Self::AccountDisabled => (S::FORBIDDEN, "account_disabled"),
            Self::NameOfAnother => (S::CONFLICT, "name_taken"),
            Self::SignInRefused(_) => (S::UNAUTHORIZED, "sign_in_refused"),
            Self::WrongPassword => (S::UNAUTHORIZED, "wrong_password"),
            Self::SwitchedOff(_) => (S::FORBIDDEN, "switched_off"),
            Self::WrongRole(_) => (S::FORBIDDEN, "wrong_role"),
            Self::CsrfInvalid(_) | Self::ForeignSite { .. } => (S::FORBIDDEN, "csrf_invalid"),
            Self::OriginRefused(_) => (S::FORBIDDEN, "origin_refused"),
            Self::ModeForbidden(_) => (S::FORBIDDEN, "mode_forbidden"),
            Self::SuperadminClient => (S::FORBIDDEN, "superadmin_client"),
            Self::NotWhitelisted => (S::FORBIDDEN, "not_whitelisted"),
            Self::InvalidUsername { .. } => (S::FORBIDDEN, "invalid_username"),
            Self::PreviousAccountArchiving => {
                (S::SERVICE_UNAVAILABLE, "previous_account_archiving")
            }
            Self::ChannelNotAllowed { .. } | Self::ChannelOfChat { .. } => {
                (S::FORBIDDEN, "channel_not_allowed")
            }
            Self::NoSuchRoute | Self::NotFound { .. } => (S::NOT_FOUND, "not_found"),
            Self::MethodNotAllowed { .. } => (S::METHOD_NOT_ALLOWED, "method_not_allowed"),
            Self::RequestTimeout => (S::REQUEST_TIMEOUT, "request_timeout"),
            Self::AlreadyExists { .. } => (S::CONFLICT, "already_exists"),
            Self::NameBeingRemoved => (S::CONFLICT, "name_being_removed"),
            Self::LastSuperadmin => (S::CONFLICT, "last_superadmin"),
            Self::NetworkInUse => (S::CONFLICT, "network_in_use"),
            Self::ImageInUse { .. } => (S::CONFLICT, "image_in_use"),
            Self::Conflict { code, .. } | Self::SwitchRefused { code, .. } => (S::CONFLICT, code),
            Self::Stale { .. } => (S::PRECONDITION_FAILED, "stale_generation"),
            Self::RangeNotSatisfiable { .. } => (S::RANGE_NOT_SATISFIABLE, "range_not_satisfiable"),
            Self::StaleFile => (S::PRECONDITION_FAILED, "stale_file"),
            Self::TooLarge { .. } => (S::PAYLOAD_TOO_LARGE, "too_large"),
            Self::DiskFull(_) => (S::INSUFFICIENT_STORAGE, "disk_full"),
            Self::QuotaExceeded { .. } => (S::INSUFFICIENT_STORAGE, "quota_exceeded"),
            Self::UnsupportedMediaType(_) => (S::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type"),
            Self::Unprocessable { code, .. } => (S::UNPROCESSABLE_ENTITY, code),
            Self::TooManyAttempts { .. } => (S::TOO_MANY_REQUESTS, "too_many_attempts"),
            Self::TooManyStreams { .. } => (S::TOO_MANY_REQUESTS, "too_many_streams"),
            Self::TooManyMessages { .. } => (S::TOO_MANY_REQUESTS, "too_many_messages"),
            Self::ExecutorsDisplaced { .. } => (S::TOO_MANY_REQUESTS, "executors_displaced"),
            Self::TooManyWatchers { .. } => (S::SERVICE_UNAVAILABLE, "too_many_watchers"),
            Self::Remote { .. } => (S::BAD_GATEWAY, "remote_failed"),
            Self::Busy { .. } => (S::SERVICE_UNAVAILABLE, "busy"),
            Self::EngineUnavailable => (S::SERVICE_UNAVAILABLE, "engine_unavailable"),
            Self::StorageFull(_) => (S::INSUFFICIENT_STORAGE, "storage_full"),
            Self::StorageFailed { .. } => (S::SERVICE_UNAVAILABLE, "storage_failed"),
            Self::DatabaseUnavailable(_) => (S::SERVICE_UNAVAILABLE, "database_unavailable"),
            Self::ObjectFailed { class, code, .. } => (class.status(), code),
            Self::Internal(_) => (S::INTERNAL_SERVER_ERROR, "internal"),
        }
    }

    /// Fields of the answer besides `success`, `error` and `code`.
    fn extra(&self) -> Map<String, Value> {
        let fields = match self {
            Self::InvalidParameter {
                field: Some(field), ..
            } => json!({ "field": field }),
            Self::Stale {
                generation: Some(generation),
            } => json!({ "generation": generation }),
            Self::TooLarge { limit } => json!({ "limit": limit }),
            Self::Unprocessable { extra, .. } => return extra.clone(),
            Self::SwitchRefused { purge, .. } => json!({ "purge": purge }),
            Self::ImageInUse {
                users,
                alternatives,
                ..
            } => json!({ "users": users, "alternatives": alternatives }),
            Self::ObjectFailed {
                object,
                generation,
                reason,
                ..
            } => json!({
                "reason": reason,
                "remedy": reason.remedy(),
                "state": "failed",
                "object": object,
                "generation": generation,
            }),
            // Their sentence and code say everything.
            _ => Value::Null,
        };
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    /// The failure envelope, with the headers that belong to it.
    pub fn to_reply(&self) -> Reply {
        if let Self::OriginRefused(_) = self {
            // Where this happens, programs speak JSON-RPC.
            let error = json!({"code": -32600, "message": self.to_string()});
            let body = json!({"jsonrpc": "2.0", "error": error});
            return Reply::resource(&body).status(self.status());
        }
        let mut body = self.extra();
        body.insert("success".to_owned(), json!(false));
        body.insert("error".to_owned(), json!(self.to_string()));
        body.insert("code".to_owned(), json!(self.code()));
        let reply = Reply::resource(&body).status(self.status());
        if let Self::MethodNotAllowed { allow } = self {
            return reply.header(ALLOW, HeaderValue::from_static(allow));
        }
        if let Self::TokenInvalid | Self::ApiTokenInvalid(_) = self {
            return reply.header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Self::RangeNotSatisfiable { length } = self
            && let Ok(range) = HeaderValue::try_from(format!("bytes */{length}"))
        {
            return reply.header(CONTENT_RANGE, range);
        }
        match self.retry_after() {
            Some(after) => reply.header(RETRY_AFTER, HeaderValue::from(after.as_secs().max(1))),
            None => reply,
        }
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyAttempts { retry_after }
            | Self::TooManyStreams { retry_after, .. }
            | Self::TooManyMessages { retry_after, .. }
            | Self::ExecutorsDisplaced { retry_after, .. }
            | Self::TooManyWatchers { retry_after, .. }
            | Self::Busy { retry_after } => Some(*retry_after),
            Self::StorageFailed { .. } | Self::DatabaseUnavailable(_) => Some(STORAGE_RETRY),
            Self::PreviousAccountArchiving => Some(Duration::from_secs(5)),
            _ => None,
        }
    }

    /// Writes the cause of a server-side failure to the log, once, with its whole chain. The
    /// surrounding span carries the request id.
    pub fn log(&self) {
        match self {
            Self::Internal(cause)
            | Self::StorageFull(cause)
            | Self::DiskFull(cause)
            | Self::StorageFailed { cause, .. } => {
                tracing::error!(error = %chain(cause.as_ref()), "request failed");
            }
            // Known, and said once; there may be many.
            Self::DatabaseUnavailable(cause) => {
                tracing::debug!(error = %chain(cause.as_ref()), "request failed");
            }
            _ => {}
        }
    }
}

/// What a failed read or write of the database means to the client.
impl From<DbError> for ApiError {
    fn from(error: DbError) -> Self {
        match error {
            DbError::NotFound(what) => Self::not_found(what),
            DbError::StaleGeneration { actual } => Self::Stale {
                generation: Some(Generation(actual)),
            },
            DbError::NameTaken => Self::AlreadyExists {
                what: "an account of this name".to_owned(),
            },
            DbError::NameBeingRemoved => Self::NameBeingRemoved,
            DbError::LastSuperadmin => Self::LastSuperadmin,
            DbError::GroupCycle => Self::unprocessable("group_cycle", error.to_string()),
            DbError::UnknownSkills(_) => Self::unprocessable("unknown_skill", error.to_string()),
            // A second is free every second.
            DbError::TooManySessions => Self::TooManyAttempts {
                retry_after: Duration::from_secs(1),
            },
            DbError::WrongState(what) => Self::Conflict {
                code: "wrong_state",
                message: what.to_owned(),
            },
            DbError::InRollout { .. } => Self::Conflict {
                code: "in_rollout",
                message: format!("{error}; wait for its end, or cancel it"),
            },
            DbError::StorageFull(_) => Self::StorageFull(error.into()),
            DbError::StorageFailed(what, _) => Self::StorageFailed {
                what,
                cause: error.into(),
            },
            DbError::Unavailable(_) => Self::DatabaseUnavailable(error.into()),
            DbError::InvalidName(_)
            | DbError::Corrupt(_)
            | DbError::Sealed(_)
            | DbError::Sqlx(_) => Self::internal(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[test]
    fn server_side_causes_never_reach_the_client() {
        let error = ApiError::internal("password=hunter2 at /var/lib");
        let text = error.to_string();
        assert!(!text.contains("hunter2") && !text.contains("/var"));
        assert_eq!(error.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[test]
    fn waiting_for_a_failed_object_names_it() {
        let error = ApiError::ObjectFailed {
            class: FailureClass::Conflict,
            code: "name_conflict".to_owned(),
            message: "agentyard-alice exists and is not ours".to_owned(),
            object: "container/alice".to_owned(),
            generation: Generation(7),
            reason: Reason::NameConflict,
        };
        let extra = error.extra();
        assert_eq!(extra["state"], "failed");
        assert_eq!(extra["object"], "container/alice");
        assert_eq!(extra["generation"], 7);
        assert_eq!(extra["remedy"], Reason::NameConflict.remedy());
        assert_eq!(error.status(), StatusCode::CONFLICT);
    }

    #[test]
    fn an_image_in_use_tells_by_whom_and_what_else_there_is() {
        let error = ApiError::ImageInUse {
            message: "in use".to_owned(),
            users: vec!["alice".to_owned()],
            alternatives: vec!["docker.io/a/b:2".to_owned()],
        };
        assert_eq!(error.status(), StatusCode::CONFLICT);
        assert_eq!(error.code(), "image_in_use");
        let extra = error.extra();
        assert_eq!(extra["users"], json!(["alice"]));
        assert_eq!(extra["alternatives"], json!(["docker.io/a/b:2"]));
    }

    #[test]
    fn refusals_of_the_database_have_their_own_answers() {
        for (error, status, code) in [
            (DbError::NotFound("superadmin"), 404, "not_found"),
            (
                DbError::StaleGeneration { actual: 3 },
                412,
                "stale_generation",
            ),
            (DbError::NameTaken, 409, "already_exists"),
            (DbError::NameBeingRemoved, 409, "name_being_removed"),
            (DbError::LastSuperadmin, 409, "last_superadmin"),
            (DbError::TooManySessions, 429, "too_many_attempts"),
            (DbError::WrongState("not paused"), 409, "wrong_state"),
            (
                DbError::InRollout {
                    rollout: "r".to_owned(),
                    users: vec!["alice".to_owned()],
                },
                409,
                "in_rollout",
            ),
            (
                DbError::Unavailable("secret".to_owned()),
                503,
                "database_unavailable",
            ),
            (DbError::Corrupt("secret".to_owned()), 500, "internal"),
            (DbError::Sealed("secret".to_owned()), 500, "internal"),
        ] {
            let error = ApiError::from(error);
            assert_eq!((error.status().as_u16(), error.code()), (status, code));
            assert!(!error.to_string().contains("secret"));
        }
        let away = ApiError::from(DbError::Unavailable("secret".to_owned())).to_reply();
        let response = away.into_response(&CancellationToken::new()).unwrap();
        assert_eq!(response.headers()[RETRY_AFTER], "2");
        let stale = ApiError::from(DbError::StaleGeneration { actual: 3 });
        assert_eq!(stale.extra()["generation"], 3);
    }

    #[test]
    fn chains_are_told_in_one_line() {
        let inner = std::io::Error::other("disk on fire");
        let outer = ApiError::internal(inner);
        assert!(chain(&outer).ends_with(": disk on fire"));
    }
}
