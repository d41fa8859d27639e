//! Signing in and out.

use std::time::Duration;

use http::header::{SET_COOKIE, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode};
use schema::audit::{About, Audited};
use schema::error::DbError;
use schema::ids::{Timestamp, UserName};
use schema::metric;
use schema::session::{self, Live};
use schema::user::{self, Role, User};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::auth::credentials;
use crate::auth::origin;
use crate::auth::session::{SessionClaims, clear_cookie};
use crate::deps::{Dependencies, Deps};
use crate::dispatch::{Anyone, Session, Visitor};
use crate::error::{ApiError, Result};
use crate::input::{Input, Meta, Nothing};
use crate::route::{ANONYMOUS_BODY_LIMIT, Area, Failure, Route};
use crate::settings::{AuthMode, WebSettings};

mod account;
mod directory;
mod provider;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    let mut routes = vec![
        Route::post("login", "/api/login", login)
            .title(Area::Session, "Sign in with name and password")
            .about(
                "Sets the session cookie, which is valid for 24 hours. Never waits for a \
                 container. A refused password has the same answer whatever the cause.",
            )
            .body_limit(ANONYMOUS_BODY_LIMIT)
            .headers(&["Set-Cookie"])
            .fails(&[
                Failure(401, "bad_credentials", "wrong name or password"),
                Failure(
                    403,
                    "superadmin_client",
                    "superadmins can sign in to the web console only",
                ),
                Failure(
                    403,
                    "not_whitelisted",
                    "the password is right, and the name is not on the whitelist",
                ),
                Failure(
                    403,
                    "invalid_username",
                    "the password is right, and the name in the directory breaks the rule for names",
                ),
                Failure(502, "remote_failed", "the directory cannot be asked"),
                Failure(
                    503,
                    "previous_account_archiving",
                    "the previous account of the name is still being archived",
                ),
                Failure::ATTEMPTS,
                Failure::BUSY,
            ]),
        Route::post("logout", "/api/logout", logout)
            .title(Area::Session, "Sign out")
            .about("Ends this session, if there is one, and clears the cookie.")
            .without_body()
            .headers(&["Set-Cookie"]),
    ];
    routes.extend(provider::routes());
    routes
}

/// How long a sign-in may wait for a core to renew an outdated hash. It has waited for one already,
/// and must answer within 5 s.
const REHASH_PATIENCE: Duration = Duration::from_millis(500);

/// How long a sign-in may take altogether: an answer later than 5 s finds nobody waiting for it.
const PATIENCE: Duration = Duration::from_millis(4500);
/// When whoever was turned away by that may try again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The client that signs in.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
    ToSchema,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Client {
    /// The web console.
    #[default]
    Web,
    /// The browser extension.
    Extension,
    /// The desktop client.
    Desktop,
}

impl Client {
    /// What it really is: a claim to be the web console does not count against the signs of the
    /// other two.
    fn detect(claimed: Self, headers: &HeaderMap, settings: &WebSettings) -> Self {
        if claimed != Self::Web {
            return claimed;
        }
        if matches!(origin::of_request(headers), Ok(Some(origin)) if origin.is_extension()) {
            return Self::Extension;
        }
        let agents = headers.get_all(USER_AGENT).iter();
        let agents: Vec<_> = agents
            .map(|agent| String::from_utf8_lossy(agent.as_bytes()).to_lowercase())
            .collect();
        let mut marks = settings.desktop_user_agents.iter();
        if marks.any(|mark| {
            let mark = mark.to_lowercase();
            agents.iter().any(|agent| agent.contains(&mark))
        }) {
            return Self::Desktop;
        }
        Self::Web
    }
}

/// The form of `POST /api/login`.
#[derive(Debug, Deserialize, ToSchema)]
pub struct LoginForm {
    /// The name as it was typed.
    #[schema(example = "alice")]
    username: String,
    #[schema(value_type = String, format = Password, example = "correct horse battery")]
    password: SecretString,
    #[serde(default)]
    client: Client,
}

/// The account that signed in.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignedIn {
    username: UserName,
    /// What the account may do.
    role: Role,
    /// The first container is not ready yet.
    initializing: bool,
}

/// `POST /api/login`. Never waits for a container, and answers within 5 s whatever the database does.
///
/// # Errors
/// 400 for an empty name or password, 401 with one text for all causes, 403 `superadmin_client` once the password was verified, 429 and
/// 503 with `Retry-After`.
async fn login(_: Anyone, input: Input<LoginForm>, deps: Deps) -> Result<Answer<SignedIn>> {
    let form = &input.params;
    let empty = [
        ("username", form.username.trim().is_empty()),
        ("password", form.password.expose_secret().is_empty()),
    ];
    if let Some((field, _)) = empty.into_iter().find(|(_, is_empty)| *is_empty) {
        return Err(ApiError::invalid(
            field,
            format!("{field} must not be empty"),
        ));
    }
    let outcome = timeout(PATIENCE, Box::pin(sign_in(input, deps))).await;
    let outcome = outcome.unwrap_or(Err(ApiError::Busy {
        retry_after: RETRY_AFTER,
    }));
    count_sign_in("password", outcome.as_ref().err());
    outcome
}

/// Counts an attempt to sign in.
fn count_sign_in(method: &str, error: Option<&ApiError>) {
    let result = match error.map(ApiError::status) {
        None => "success",
        Some(StatusCode::TOO_MANY_REQUESTS) => "limited",
        Some(status) if status.is_client_error() => "refused",
        Some(_) => "error",
    };
    metric::SIGN_INS.increment(&[method, result]);
}

/// One attempt, which leaves an entry in the audit trail whatever its outcome. One that the limit
/// stops leaves none: the trail must not grow as fast as somebody can send.
async fn sign_in(input: Input<LoginForm>, deps: Deps) -> Result<Answer<SignedIn>> {
    let Input { params, meta, .. } = input;
    let name = params.username.clone();
    let with_provider = deps.settings().auth_mode == AuthMode::Oidc;
    let outcome = attempt(params, &meta, &deps).await;
    let outcome = outcome.map_err(|error| match error {
        ApiError::BadCredentials if with_provider => ApiError::NoSuperadmin,
        error => error,
    });
    match outcome {
        Err(
            refused @ (ApiError::BadCredentials
            | ApiError::NoSuperadmin
            | ApiError::SuperadminClient
            | ApiError::NotWhitelisted
            | ApiError::AccountDisabled
            | ApiError::NameOfAnother
            | ApiError::InvalidUsername { .. }),
        ) => {
            let about = whom(&deps, &name).await?.detail(refused.code());
            meta.refused(&deps, about).await?;
            // As for names that nobody has.
            Err(match refused {
                ApiError::AccountDisabled | ApiError::NameOfAnother => ApiError::BadCredentials,
                refused => refused,
            })
        }
        other => other,
    }
}

/// The account that was tried. A name that nobody has is not recorded: now and then it is a password
/// that was typed into the wrong field.
async fn whom(deps: &Dependencies, name: &str) -> Result<About> {
    let account = credentials::find(deps, name).await?;
    Ok(account.map_or_else(
        || About::object("account", "unknown"),
        |account| About::object(account.role, &account.name),
    ))
}

async fn attempt(params: LoginForm, meta: &Meta, deps: &Dependencies) -> Result<Answer<SignedIn>> {
    let (name, password) = (&params.username, params.password);
    let settings = deps.settings();
    let client = Client::detect(params.client, &meta.headers, &settings);
    let account = if settings.auth_mode == AuthMode::Ldap {
        let attempt = directory::attempt(deps, meta, name, password.clone(), client).await?;
        match attempt {
            directory::Attempt::Local(account) => *account,
            directory::Attempt::Directory(live) => return signed_in(deps, meta, *live),
        }
    } else {
        let verified = credentials::verify(deps, meta.sender(), name, password.clone()).await?;
        verified.ok_or(ApiError::BadCredentials)?
    };
    if account.role == Role::Superadmin && client != Client::Web {
        return Err(ApiError::SuperadminClient);
    }
    let again = password.clone();
    let rehashed = rehash(deps, &account, password).await;
    let live = match start_session(deps, &account, client, meta, rehashed.as_ref()).await {
        // A sign-in at the same time may have renewed the outdated hash of the same password.
        Err(ApiError::BadCredentials) if is_outdated(deps, &account) => {
            let again = credentials::verify_again(deps, &account, again).await?;
            start_session(deps, &again, client, meta, None).await?
        }
        live => live?,
    };
    signed_in(deps, meta, live)
}

/// The cookie of a session.
fn cookie(deps: &Dependencies, meta: &Meta, live: &Live) -> Result<HeaderValue> {
    let claims = SessionClaims::new(live.name.clone(), Timestamp::from_secs(live.issued_at));
    claims.set_cookie(&deps.signer, meta.secure)
}

fn signed_in(deps: &Dependencies, meta: &Meta, live: Live) -> Result<Answer<SignedIn>> {
    let cookie = cookie(deps, meta, &live)?;
    let account = SignedIn {
        username: live.name,
        role: live.role,
        initializing: live.initializing,
    };
    Ok(Answer::ok("signed in", account).header(SET_COOKIE, cookie))
}

fn is_outdated(deps: &Dependencies, account: &User) -> bool {
    let stored = account.password_hash.as_ref();
    stored.is_some_and(|hash| deps.passwords.needs_rehash(hash.expose_secret()))
}

/// A new hash when the stored one was made with other parameters than today's. Not getting one is
/// no failure: the next sign-in tries again.
async fn rehash(
    deps: &Dependencies,
    account: &User,
    password: SecretString,
) -> Option<SecretString> {
    if !is_outdated(deps, account) {
        return None;
    }
    let slot = timeout(REHASH_PATIENCE, deps.passwords.slot()).await;
    let hash = slot.ok()?.ok()?.hash(password).await;
    hash.ok().map(SecretString::from)
}

/// Records the session and the sign-in, in one transaction.
async fn start_session(
    deps: &Dependencies,
    verified: &User,
    client: Client,
    meta: &Meta,
    rehashed: Option<&SecretString>,
) -> Result<Live> {
    let tx = meta.begin(deps).await?;
    session_of(deps, tx, verified, client, meta, rehashed, &[]).await
}

/// The same in a transaction that was begun, which is committed with what there is to `say` of the sign-in.
async fn session_of(
    deps: &Dependencies,
    mut tx: Audited,
    verified: &User,
    client: Client,
    meta: &Meta,
    rehashed: Option<&SecretString>,
    say: &[String],
) -> Result<Live> {
    let now = deps.clock.now();
    let address = meta.client.map(|ip| ip.to_string()).unwrap_or_default();
    // This comes first because it locks the account's row, so that what is read afterwards stays
    // true until the commit, and a password change that comes later ends this session, too.
    let issued_at = match session::issue(&mut tx, &verified.uid, now, &address, client.into()).await
    {
        Err(DbError::NotFound(_)) => return Err(ApiError::BadCredentials),
        issued_at => issued_at?,
    };
    let present = user::find(&mut tx, &verified.name).await?;
    if !credentials::is_unchanged(verified, present.as_ref()) {
        return Err(ApiError::BadCredentials);
    }
    user::set_last_login(&mut tx, &verified.uid, now, rehashed).await?;
    let live = session::find_live(&mut tx, &verified.name, issued_at)
        .await?
        .ok_or(ApiError::BadCredentials)?;
    tx.acting(live.name.as_str());
    let about = About::object(live.role, &live.name).detail(format!("client {client}"));
    let about = say.iter().fold(about, |about, more| about.more(more));
    tx.commit(about).await?;
    Ok(live)
}

/// `POST /api/logout`: ends the session and clears the cookie. Whoever wants to leave is let go: a
/// session that could not be ended is for the log, and dies by its age.
///
/// # Errors
/// None.
async fn logout(Visitor(session): Visitor, input: Input<Nothing>, deps: Deps) -> Result<Answer> {
    if let Some(session) = session
        && let Err(error) = end(&deps, &input.meta, &session).await
    {
        let error = crate::error::chain(&error);
        tracing::error!(%error, account = %session.account.name, "a session could not be ended");
    }
    Ok(Answer::plain("signed out").header(SET_COOKIE, clear_cookie(input.meta.secure)))
}

async fn end(deps: &Dependencies, meta: &Meta, session: &Session) -> Result<(), DbError> {
    let account = &session.account;
    let mut tx = meta.begin(deps).await?;
    let issued_at = session.claims.issued_at.as_secs();
    session::revoke(&mut tx, &account.uid, issued_at).await?;
    tx.commit(About::object(account.role, &account.name))
        .await?;
    deps.session_ends.report(&account.uid);
    Ok(())
}

#[cfg(test)]
mod tests;
