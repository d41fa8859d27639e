//! Tokens with which programs use the administration API. They belong to the installation, not to the superadmin who creates them.

use std::time::Duration;

use schema::api_token::{self, ApiToken, LONGEST_NAME, NewApiToken, Role, is_name};
use schema::audit::About;
use schema::error::DbError;
use schema::ids::Timestamp;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::page::{Page, read_page, search};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::{Input, Nothing};
use crate::route::{Area, Failure, Route, Tokens};

/// Shortest validity of a token.
const SHORTEST: Duration = Duration::from_secs(60);
/// Longest validity of a token.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("api_tokens_list", "/api/admin/api-tokens", list)
            .tokens(Tokens::None)
            .title(Area::Superadmins, "List API tokens")
            .about("Also those that have expired. No answer contains a token.")
            .paged(),
        Route::post("api_tokens_create", "/api/admin/api-tokens/create", create)
            .tokens(Tokens::None)
            .title(Area::Superadmins, "Create an API token")
            .about(
                "The token is returned only in this answer. It acts in the header `Authorization: Bearer` of requests without a \
                 session cookie, needs no CSRF token, and stays valid when its creator's account is deleted.",
            )
            .fails(&[Failure(
                409,
                "already_exists",
                "the name is taken, if only by an expired token",
            )]),
        Route::post("api_tokens_revoke", "/api/admin/api-tokens/revoke", revoke)
            .tokens(Tokens::None)
            .title(Area::Superadmins, "Revoke an API token")
            .about(
                "It is refused from the next request on, and its event streams end within 15 seconds. Removes an expired one \
                 from the list, too.",
            )
            .fails(&[Failure(404, "not_found", "no such API token")]),
    ]
}

/// An API token as listings show it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiTokenItem)]
struct Item {
    /// Its name; the audit trail calls it `token:<name>`.
    name: String,
    role: Role,
    created_at: Timestamp,
    /// The actor that created it.
    created_by: String,
    expires_at: Timestamp,
    /// It is past its time, and refused.
    expired: bool,
    /// Time of its last use, to the minute.
    last_used_at: Option<Timestamp>,
}

impl Item {
    fn new(token: ApiToken, now: Timestamp) -> Self {
        Self {
            expired: token.is_expired(now),
            name: token.name,
            role: token.role,
            created_at: token.created_at,
            created_by: token.created_by,
            expires_at: token.expires_at,
            last_used_at: token.last_used_at,
        }
    }
}

/// All API tokens.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiTokens)]
pub struct Listing {
    tokens: Vec<Item>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/api-tokens`.
///
/// # Errors
/// None of its own.
async fn list(_: Superadmin, input: Input<Nothing>, deps: Deps) -> Result<Answer<Listing>> {
    let mut connection = deps.db.read().await?;
    let paging = input.paging.as_ref();
    let search = search(paging);
    let (tokens, page) = read_page!(paging, window => api_token::list(
        &mut connection,
        search,
        window.limit,
        window.offset
    ));
    let now = deps.clock.now();
    let tokens = tokens.into_iter().map(|token| Item::new(token, now));
    let tokens = tokens.collect();
    Ok(Answer::ok("API tokens", Listing { tokens, page }))
}

/// The form of a new token.
#[derive(Debug, Deserialize, ToSchema)]
pub struct NewTokenForm {
    /// Lower-case letters, digits, dots, hyphens and underscores.
    #[schema(example = "nightly", pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")]
    name: String,
    /// `read` for requests that change nothing, `admin` for all that tokens may do.
    role: Role,
    /// Validity, from a minute to 366 days.
    #[schema(example = "90d")]
    expires_in: String,
}

/// A new API token.
#[derive(Serialize, ToSchema)]
#[schema(as = NewApiToken)]
pub struct Created {
    name: String,
    role: Role,
    expires_at: Timestamp,
    /// Returned only once.
    #[schema(format = Password)]
    token: String,
}

/// `POST /api/admin/api-tokens/create`: the token is returned once.
///
/// # Errors
/// 400 for a bad name or validity; 409 when the name is taken.
async fn create(
    Superadmin(actor): Superadmin,
    input: Input<NewTokenForm>,
    deps: Deps,
) -> Result<Answer<Created>> {
    let NewTokenForm {
        name,
        role,
        expires_in,
    } = input.params;
    if !is_name(&name) {
        return Err(ApiError::invalid(
            "name",
            format!(
                "name is 1 to {LONGEST_NAME} lower-case letters, digits, dots, hyphens and underscores, and begins with a letter \
                 or a digit"
            ),
        ));
    }
    let now = deps.clock.now();
    let new = NewApiToken {
        name,
        role,
        expires_at: now.plus(validity(&expires_in)?),
        created_by: actor.to_string(),
    };
    let mut tx = input.meta.begin(&deps).await?;
    let created = api_token::create(&mut tx, &new, now).await;
    let (token, stored) = created.map_err(|error| match error {
        DbError::NameTaken => ApiError::AlreadyExists {
            what: format!("API token {}", new.name),
        },
        other => other.into(),
    })?;
    let about = About::object("api-token", &stored.name);
    let expires_at = stored.expires_at.to_rfc3339();
    tx.commit(about.detail(format!("role {role}; expires {expires_at}")))
        .await?;
    let message = format!("API token {} created", stored.name);
    let created = Created {
        name: stored.name,
        role: stored.role,
        expires_at: stored.expires_at,
        token: token.expose_secret().to_owned(),
    };
    Ok(Answer::ok(message, created))
}

fn validity(text: &str) -> Result<Duration> {
    let parsed = humantime::parse_duration(text.trim()).ok();
    let valid = parsed.filter(|validity| (SHORTEST..=LONGEST).contains(validity));
    valid.ok_or_else(|| {
        let rule = "expires_in is a duration from 1m to 366d, such as 90d or 12h";
        ApiError::invalid("expires_in", rule)
    })
}

/// A token by its name.
#[derive(Debug, Deserialize, ToSchema)]
pub struct WhichToken {
    /// Its name.
    name: String,
}

/// `POST /api/admin/api-tokens/revoke`.
///
/// # Errors
/// 404 without such a token.
async fn revoke(_: Superadmin, input: Input<WhichToken>, deps: Deps) -> Result<Answer> {
    let name = input.params.name;
    let mut tx = input.meta.begin(&deps).await?;
    let revoked = api_token::revoke(&mut tx, &name).await;
    let uid = revoked.map_err(|error| match error {
        DbError::NotFound(_) => ApiError::not_found(format!("API token {name}")),
        other => other.into(),
    })?;
    tx.commit(About::object("api-token", &name)).await?;
    deps.session_ends.report(&uid);
    Ok(Answer::plain(format!("API token {name} revoked")))
}

#[cfg(test)]
mod tests;
