//! What everybody may see and change of their own account.

use std::time::Duration;

use http::header::SET_COOKIE;
use schema::audit::About;
use schema::condition::{self, ConditionStatus, ConditionType, Reason};
use schema::container::{self, ContainerRow, StatusWord, status_word};
use schema::ids::{Kind, Timestamp, Uid, UserName};
use schema::object::ObjectRow;
use schema::session::{SKEW, SessionRow};
use schema::user::Role;
use schema::{object, session, user};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::auth::session::{VALIDITY, clear_cookie};
use crate::auth::{credentials, password};
use crate::deps::Deps;
use crate::dispatch::{OrdinaryUser, Session};
use crate::error::{ApiError, Result};
use crate::explain::{Explained, explained};
use crate::input::{Input, Nothing, Paging};
use crate::route::{Area, Failure, Route};
use crate::settings::AuthMode;

use super::page::{self, Page};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("user_info", "/api/user/info", info)
            .title(Area::Session, "Get my name, role and authentication mode")
            .about("The account of this session."),
        Route::get("user_init_status", "/api/user/init-status", init_status)
            .title(Area::Account, "Check whether my container is ready")
            .about("For a page to show while the first container starts."),
        Route::post("user_password", "/api/user/password", change_password)
            .title(Area::Account, "Change my password")
            .about(
                "Ends all other sessions of the account. A wrong old password counts as a failed \
                 sign-in.",
            )
            .local_only()
            .fails(&[
                Failure(401, "wrong_password", "the old password is wrong"),
                Failure::ATTEMPTS,
                Failure::BUSY,
            ]),
        Route::get("own_sessions", "/api/user/sessions", sessions)
            .title(Area::Account, "List my sessions")
            .about("Live sessions, newest first. `search` matches addresses and clients.")
            .paged(),
        Route::post(
            "own_sessions_revoke",
            "/api/user/sessions/revoke",
            revoke_sessions,
        )
        .title(Area::Account, "End my sessions")
        .about(
            "Ends the session that `issued_at` names, or without it all but this one. Ending \
                 a session that has already ended succeeds.",
        ),
    ]
}

/// The current session.
#[derive(Debug, Serialize, ToSchema)]
pub struct UserInfo {
    /// The account's name.
    username: UserName,
    /// What the account may do.
    role: Role,
    /// Where ordinary users come from.
    auth_mode: AuthMode,
    /// Accounts and passwords are managed by a directory or an identity provider.
    unified_auth: bool,
    /// The first container is not ready yet.
    initializing: bool,
}

/// `GET /api/user/info`.
///
/// # Errors
/// 401 when the session has ended meanwhile.
async fn info(session: Session, _: Input<Nothing>, deps: Deps) -> Result<Answer<UserInfo>> {
    let mut connection = deps.db.read().await?;
    let issued_at = session.claims.issued_at.as_secs();
    let live = session::find_live(&mut connection, &session.account.name, issued_at)
        .await?
        .ok_or(ApiError::NotSignedIn)?;
    let mode = deps.settings().auth_mode;
    let info = UserInfo {
        username: live.name,
        role: live.role,
        auth_mode: mode,
        unified_auth: mode != AuthMode::Local,
        initializing: live.initializing,
    };
    Ok(Answer::ok("current session", info))
}

/// The state of the first container.
#[derive(Debug, Serialize, ToSchema)]
pub struct InitStatus {
    /// The container runs and is ready.
    ready: bool,
    /// The container's state in one word.
    status: StatusWord,
    /// The user's image is fixed: the engine has had it.
    image_ready: bool,
    /// The agent's files are as configured.
    has_config: bool,
    /// Its conditions, each with its remedy.
    conditions: Vec<Explained>,
    /// Steps of the container's next reconciliation; null once it is ready, and while they are not known.
    #[schema(required = true)]
    plan: Option<NextSteps>,
}

/// Steps of the next reconciliation.
#[derive(Debug, Serialize, ToSchema)]
pub struct NextSteps {
    /// In their order, in words.
    #[schema(example = json!(["create the container", "start it"]))]
    actions: Vec<String>,
}

/// Longest observation of the container for its plan.
const PLAN_TIME: Duration = Duration::from_secs(3);

/// The steps that are next, unless too many ask for them.
async fn read_plan(deps: &Deps, uid: &Uid) -> Option<NextSteps> {
    let _turn = deps.plans.take_turn(uid)?;
    let plan = deps
        .reconcilers
        .dry_run(Kind::Container.as_str(), uid.as_str());
    let plan = timeout(PLAN_TIME, plan).await.ok()?.ok()??;
    Some(NextSteps {
        actions: plan.actions,
    })
}

/// `GET /api/user/init-status`: what a page shows while the first container starts.
///
/// # Errors
/// 401 when the account has gone meanwhile.
async fn init_status(
    OrdinaryUser(session): OrdinaryUser,
    _: Input<Nothing>,
    deps: Deps,
) -> Result<Answer<InitStatus>> {
    let uid = &session.account.uid;
    let mut snapshot = deps.db.snapshot().await?;
    let row = container::get(&mut snapshot, uid).await?;
    let container = object::get(&mut snapshot, Kind::Container, uid).await?;
    let config = object::get(&mut snapshot, Kind::AgentConfig, uid).await?;
    drop(snapshot);
    let (row, container) = row.zip(container).ok_or(ApiError::NotSignedIn)?;
    let word = word(&row, &container);
    let ready = word == StatusWord::Running || was_ready(&container);
    let plan = match ready {
        true => None,
        false => read_plan(&deps, uid).await,
    };
    let status = InitStatus {
        ready,
        status: word,
        image_ready: row.pinned_image().is_some(),
        has_config: config.is_some_and(|config| is_ready(&config) || was_ready(&config)),
        conditions: explained(
            &format!("{}/{}", container.kind, container.name),
            &container.status.conditions,
        ),
        plan,
    };
    Ok(Answer::ok("state of your container", status))
}

fn word(row: &ContainerRow, container: &ObjectRow) -> StatusWord {
    let deleted = row.deleted_at.is_some();
    status_word(
        row.desired_running(),
        deleted,
        row.generation,
        &container.status,
    )
}

fn is_ready(object: &ObjectRow) -> bool {
    condition::find(&object.status.conditions, ConditionType::Ready)
        .is_some_and(|ready| ready.status == ConditionStatus::True)
}

/// Whether it was ready when an operator paused it: nothing waits for it until it is resumed.
fn was_ready(object: &ObjectRow) -> bool {
    condition::find(&object.status.conditions, ConditionType::Ready)
        .is_some_and(|ready| object.paused && ready.reason == Reason::PausedByOperator)
}

/// The form of `POST /api/user/password`.
#[derive(Debug, Deserialize, ToSchema)]
pub struct PasswordForm {
    #[schema(value_type = String, format = Password, example = "correct horse battery")]
    old_password: SecretString,
    /// 8 characters at least, 1024 bytes at most.
    #[schema(value_type = String, format = Password, min_length = 8, max_length = 1024, example = "battery horse correct")]
    new_password: SecretString,
}

/// A changed password.
#[derive(Debug, Serialize, ToSchema)]
pub struct PasswordChanged {
    /// How many other sessions have ended by it.
    sessions_ended: u64,
}

/// `POST /api/user/password`: changes my password and ends all other sessions. A wrong old
/// password counts as a failed sign-in, so that a stolen session is no way to guess faster.
///
/// # Errors
/// 400 for a new password that breaks the rules, 401 `wrong_password`, 429 and 503 as for signing in.
async fn change_password(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<PasswordForm>,
    deps: Deps,
) -> Result<Answer<PasswordChanged>> {
    replace_own_password(&session, input, &deps).await
}

/// Replaces the password of a session's account, whatever its role, and ends the account's other sessions.
///
/// # Errors
/// As [`change_password`].
pub(super) async fn replace_own_password(
    session: &Session,
    input: Input<PasswordForm>,
    deps: &Deps,
) -> Result<Answer<PasswordChanged>> {
    let Input { params, meta, .. } = input;
    password::check_rules("new_password", &params.new_password)?;
    let name = session.account.name.as_str();
    let verified = credentials::verify(deps, meta.sender(), name, params.old_password)
        .await?
        .filter(|verified| verified.uid == session.account.uid);
    let Some(verified) = verified else {
        let about = About::object(session.account.role, name).detail("wrong_password");
        meta.refused(deps, about).await?;
        return Err(ApiError::WrongPassword);
    };
    let old = verified.password_hash.ok_or(ApiError::WrongPassword)?;
    let new = deps.passwords.hash(&params.new_password).await?;
    let keep = session.claims.issued_at.as_secs();
    let mut tx = meta.begin(deps).await?;
    let ended = user::replace_password(&mut tx, &verified.uid, &old, &new, keep)
        .await?
        .ok_or(ApiError::WrongPassword)?;
    tx.commit(About::object(verified.role, &verified.name))
        .await?;
    deps.session_ends.report(&verified.uid);
    let changed = PasswordChanged {
        sessions_ended: ended,
    };
    Ok(Answer::ok(
        "password changed; other sessions have ended",
        changed,
    ))
}

/// A live session.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SessionItem)]
pub struct LiveSession {
    /// Unix seconds; identifies the session in order to end it.
    #[schema(example = 1_778_500_000)]
    issued_at: i64,
    /// When its account signed in.
    created_at: Timestamp,
    /// When it ends by itself.
    expires_at: Timestamp,
    /// The client's address at sign-in.
    #[schema(example = "192.0.2.7")]
    address: String,
    /// `web`, `extension` or `desktop`.
    #[schema(example = "web")]
    client: String,
    /// It is the session of this request.
    current: bool,
}

impl LiveSession {
    fn of(row: SessionRow, current: Option<Timestamp>) -> Self {
        let created_at = Timestamp::from_secs(row.issued_at);
        Self {
            issued_at: row.issued_at,
            created_at,
            expires_at: created_at.plus(VALIDITY),
            address: row.address,
            client: row.client,
            current: Some(created_at) == current,
        }
    }
}

/// Live sessions, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Sessions)]
pub struct LiveSessions {
    sessions: Vec<LiveSession>,
    #[serde(flatten)]
    page: Page,
}

/// The page asked for of an account's live sessions; `current` is the one that asks.
pub(super) async fn live_sessions(
    deps: &Deps,
    uid: &Uid,
    current: Option<Timestamp>,
    paging: Option<&Paging>,
) -> Result<LiveSessions> {
    let now = deps.clock.now();
    let (oldest, newest) = (now.minus(VALIDITY).as_secs(), now.plus(SKEW).as_secs());
    let rows = session::list(&mut *deps.db.read().await?, uid, oldest).await?;
    let live = rows
        .into_iter()
        .filter(|row| row.issued_at <= newest)
        .map(|row| LiveSession::of(row, current));
    let (sessions, page) = page::cut(live.collect(), paging, |live, search| {
        live.address.contains(search) || live.client.contains(search)
    });
    Ok(LiveSessions { sessions, page })
}

/// `GET /api/user/sessions`: my live sessions, newest first. `search` finds addresses and
/// clients.
///
/// # Errors
/// None of its own.
async fn sessions(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Nothing>,
    deps: Deps,
) -> Result<Answer<LiveSessions>> {
    let (uid, current) = (&session.account.uid, session.claims.issued_at);
    let sessions = live_sessions(&deps, uid, Some(current), input.paging.as_ref()).await?;
    Ok(Answer::ok("your sessions", sessions))
}

/// The form of `POST /api/user/sessions/revoke`.
#[derive(Debug, Deserialize, ToSchema)]
pub struct RevokeForm {
    /// Which session; without it, all but this one.
    #[schema(example = 1_778_500_000)]
    issued_at: Option<i64>,
}

/// Sessions that were ended.
#[derive(Debug, Serialize, ToSchema)]
pub struct Revoked {
    /// How many.
    revoked: u64,
}

/// `POST /api/user/sessions/revoke`: ends one of my sessions, or all others. Ending one that
/// has ended is no failure: `revoked` is the number of those that were ended.
///
/// # Errors
/// None of its own.
async fn revoke_sessions(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<RevokeForm>,
    deps: Deps,
) -> Result<Answer<Revoked>> {
    let (uid, current) = (&session.account.uid, session.claims.issued_at.as_secs());
    let mut tx = input.meta.begin(&deps).await?;
    let revoked = match input.params.issued_at {
        Some(one) => u64::from(session::revoke(&mut tx, uid, one).await?),
        None => session::revoke_all(&mut tx, uid, Some(current)).await?,
    };
    let about = About::object(session.account.role, &session.account.name);
    tx.commit(about.detail(format!("sessions ended: {revoked}")))
        .await?;
    deps.session_ends.report(uid);
    let answer = Answer::ok("sessions ended", Revoked { revoked });
    if input.params.issued_at == Some(current) {
        return Ok(answer.header(SET_COOKIE, clear_cookie(input.meta.secure)));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests;
