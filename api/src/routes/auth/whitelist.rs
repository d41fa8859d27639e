//! The whitelist.

use schema::audit::About;
use schema::config::{AuthMode, Config, keys};
use schema::ids::UserName;
use schema::reader::Connection;
use schema::whitelist;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::{Input, Nothing};
use crate::ports::CheckStep;
use crate::route::{Area, Route, Tokens};
use crate::routes::page::{Page, read_page, search};
use crate::routes::params::names;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("whitelist_list", "/api/admin/whitelist", list)
.tokens(Tokens::Read)
            .title(Area::Authentication, "Get the whitelist")
            .about("Who may sign in while `ldap.whitelist_enabled` or `oidc.whitelist_enabled` is set. Enabled and empty, nobody may.")
            .paged(),
        Route::post("whitelist_save", "/api/admin/whitelist", save)
.tokens(Tokens::Admin)
            .title(Area::Authentication, "Change the whitelist")
            .about(
                "`users` replaces it; `add` and `remove` change it. Whoever is no longer on it is \
                 signed out by the next request.",
            ),
    ]
}

/// What is wrong with an empty whitelist that is enabled, and what to do.
pub(in crate::routes) const EMPTY: &str = "the whitelist is enabled and empty, so nobody but superadmins can sign in; add names with `agentyard auth whitelist --add NAME`";

/// Warning about a whitelist that is in effect and empty.
pub(in crate::routes) async fn warning(
    connection: &mut Connection,
    config: &Config,
) -> Result<Option<String>> {
    let is_enabled = match config.get(&keys::web::AUTH_MODE) {
        AuthMode::Local => false,
        AuthMode::Ldap => config.get(&keys::ldap::WHITELIST_ENABLED),
        AuthMode::Oidc => config.get(&keys::oidc::WHITELIST_ENABLED),
    };
    let is_empty = is_enabled && whitelist::is_empty(connection).await?;
    Ok(is_empty.then(|| EMPTY.to_owned()))
}

/// The step of a test that asks whether the whitelist lets people in, or this one; none where it is not enabled.
pub(super) async fn step(
    deps: &Deps,
    is_enabled: bool,
    user: Option<&str>,
) -> Result<Option<CheckStep>> {
    if !is_enabled {
        return Ok(None);
    }
    let begun = deps.clock.steady();
    let mut connection = deps.db.read().await?;
    let is_on = match user.map(str::parse) {
        Some(Ok(name)) => whitelist::has(&mut connection, &name).await?,
        Some(Err(_)) => false,
        None => true,
    };
    let (ok, detail) = match user {
        _ if whitelist::is_empty(&mut connection).await? => (false, EMPTY.to_owned()),
        Some(user) if !is_on => (
            false,
            format!(
                "{user} is not on the whitelist; add the name with `agentyard auth whitelist --add NAME`"
            ),
        ),
        Some(user) => (true, format!("{user} is on the whitelist")),
        None => (true, "names are on the whitelist".to_owned()),
    };
    let took = deps.clock.steady().saturating_sub(begun);
    Ok(Some(CheckStep {
        name: "whitelist",
        ok,
        detail,
        ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    }))
}

/// Most names in one request.
const MAX_NAMES: usize = 100_000;

/// The whitelist.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Whitelist)]
pub struct Listing {
    users: Vec<UserName>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/whitelist`.
///
/// # Errors
/// Only when the database fails.
async fn list(_: Superadmin, input: Input<Nothing>, deps: Deps) -> Result<Answer<Listing>> {
    let paging = input.paging.as_ref();
    let mut connection = deps.db.snapshot().await?;
    let (users, page) = read_page!(paging, window => {
        whitelist::list(&mut connection, search(paging), window.limit, window.offset)
    });
    Ok(Answer::ok("who may sign in", Listing { users, page }))
}

/// A change of the whitelist: lists, or texts separated by commas or line breaks.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = WhitelistForm)]
pub struct Form {
    /// The whole list.
    #[schema(example = json!(["alice", "bob"]))]
    users: Option<Vec<String>>,
    /// Names to add.
    add: Option<Vec<String>>,
    /// Names to remove.
    remove: Option<Vec<String>>,
}

/// What came of a change.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WhitelistSaved)]
pub struct Saved {
    /// How many names are on the whitelist.
    total: i64,
}

/// `POST /api/admin/whitelist`: all or nothing.
///
/// # Errors
/// 400 for a name that breaks the rule, without any field, or with `users` beside the others.
async fn save(_: Superadmin, input: Input<Form>, deps: Deps) -> Result<Answer<Saved>> {
    let Form { users, add, remove } = input.params;
    if users.is_some() == (add.is_some() || remove.is_some()) {
        let message = "send either users, or add and remove";
        return Err(ApiError::invalid("users", message));
    }
    let all = parsed("users", users)?;
    let (more, fewer) = (parsed("add", add)?, parsed("remove", remove)?);
    let mut tx = input.meta.begin(&deps).await?;
    let detail = if let Some(all) = all {
        whitelist::replace(&mut tx, &all).await?;
        "replaced".to_owned()
    } else {
        let added = whitelist::add(&mut tx, &more.unwrap_or_default()).await?;
        let removed = whitelist::remove(&mut tx, &fewer.unwrap_or_default()).await?;
        format!("{added} added, {removed} removed")
    };
    let (_, total) = whitelist::list(&mut tx, "", 0, 0).await?;
    let about = About::whole("whitelist").detail(format!("{detail}; {total} names"));
    tx.commit(about).await?;
    let message = format!("whitelist saved: {total} names");
    Ok(Answer::ok(message, Saved { total }))
}

fn parsed(field: &'static str, texts: Option<Vec<String>>) -> Result<Option<Vec<UserName>>> {
    let Some(texts) = texts else {
        return Ok(None);
    };
    let names = names(&texts);
    if names.len() > MAX_NAMES {
        let message = format!("{field} has more than {MAX_NAMES} names");
        return Err(ApiError::invalid(field, message));
    }
    let parse = |(at, name): (usize, &&str)| {
        name.parse::<UserName>()
            .map_err(|rule| ApiError::invalid(field, format!("{field}, name {}: {rule}", at + 1)))
    };
    names
        .iter()
        .enumerate()
        .map(parse)
        .collect::<Result<Vec<_>>>()
        .map(Some)
}
