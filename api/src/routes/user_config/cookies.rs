//! Cookies of web sites, which a user's browser gives to the agent. They never restart a container.

use schema::audit::{About, Audited};
use schema::ids::{Generation, Kind, Timestamp};
use schema::user::User;
use schema::{agent_config, object};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::domain::CookieDomain;
use super::own_sessions::drop_sessions;
use crate::answer::Answer;
use crate::auth::Account;
use crate::auth::session::SessionClaims;
use crate::deps::Deps;
use crate::dispatch::OrdinaryUser;
use crate::error::{ApiError, Result};
use crate::input::{Input, Nothing};
use crate::route::{Area, Failure, Route};
use crate::routes::page::{self, Page};
use crate::routes::params;
use crate::wait::{self, Change, Converging, Noted};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("cookies_save", "/api/cookies", save)
            .title(Area::Agent, "Store cookies of a web site for my agent")
            .about(
                "Replaces the cookies stored for the domain, without restarting the agent. At \
                 most 300 domains and 1 MiB in total. Hosts of this service are refused, and sessions of it are dropped, with a warning.",
            )
            .waits()
            .guarded()
            .fails(&[
                Failure::REMOVED,
                Failure(
                    409,
                    "too_many_cookies",
                    "more than 300 domains, or more than 1 MiB in all",
                ),
            ]),
        Route::get("cookies_list", "/api/user/cookies", list)
            .title(
                Area::Agent,
                "List web sites with cookies stored for my agent",
            )
            .about("Domains and times, never the cookies. `search` matches domains.")
            .paged()
            .fails(&[Failure::NO_ACCOUNT]),
        Route::post("cookies_delete", "/api/user/cookies/delete", delete)
            .title(Area::Agent, "Delete the cookies stored for a web site")
            .about("Also from my agent's files, without restarting the agent.")
            .waits()
            .guarded()
            .fails(&[
                Failure::REMOVED,
                Failure(404, "not_found", "no cookies stored for this domain"),
            ]),
    ]
}

/// Most domains of a user.
pub(super) const MOST_DOMAINS: usize = 300;
/// The most that all cookies of a user take, in bytes.
pub(super) const MOST_BYTES: usize = 1 << 20;
/// The most that those of one domain take, in bytes.
pub(super) const MOST_OF_DOMAIN: usize = 64 << 10;

/// The form of `POST /api/cookies`.
#[derive(Debug, Deserialize, ToSchema)]
pub struct CookiesForm {
    /// A host name, with a leading dot to include its subdomains; international names in their
    /// `xn--` form.
    #[schema(value_type = String, min_length = 1, max_length = 254, example = ".example.com")]
    domain: CookieDomain,
    /// As `a=1; b=2`, at most 64 KiB. They replace those stored for the domain.
    #[schema(value_type = String, format = Password, min_length = 1, max_length = 65536, example = "a=1; b=2")]
    cookies: SecretString,
}

/// `POST /api/cookies`: stores the cookies of a domain, sealed. The reconciler writes them into the agent's file
/// of secrets.
///
/// # Errors
/// 400 for a field that breaks its rule, a host of this service, or nothing but sessions of it; 409 `too_many_cookies`, 412; what the files fail with.
async fn save(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<CookiesForm>,
    deps: Deps,
) -> Result<Answer<Noted>> {
    let CookiesForm { domain, cookies } = input.params;
    check(&cookies)?;
    let host = domain.as_str().trim_start_matches('.');
    if deps.mcp.is_own_host(host, input.meta.host.as_deref()) {
        let rule = format!(
            "domain is {domain}, where this service is: with its cookies the agent would act as you; send those of another web site"
        );
        return Err(ApiError::invalid("domain", rule));
    }
    let now = deps.clock.now();
    let is_session = |text: &str| SessionClaims::verify(text, &deps.signer, now).is_some();
    let (cookies, warnings) = drop_sessions(cookies, is_session)?;
    let (uid, key) = (&session.account.uid, &deps.master_key);
    let mut tx = input.meta.begin(&deps).await?;
    let user = find(&mut tx, &session.account).await?;
    let generation =
        agent_config::set_cookies(&mut tx, key, uid, domain.as_str(), &cookies, now).await?;
    unchanged_before(generation, input.if_generation)?;
    // With these: whoever is over a limit keeps what was there before.
    check_all(&agent_config::cookies(&mut tx, key, uid).await?)?;
    tx.commit(about(&user, &domain)).await?;
    let change = Change::of_config(&user, generation);
    let done = "cookies stored, and in the agent's files";
    let answer = wait::answer(&deps, &change, input.wait, done).await?;
    Ok(answer.map(|saved| saved.noting(warnings)))
}

fn about(user: &User, domain: &CookieDomain) -> About {
    About::object(Kind::AgentConfig, &user.name).detail(format!("cookies of {domain}"))
}

async fn find(tx: &mut Audited, account: &Account) -> Result<User> {
    params::present_user(tx, &account.name).await
}

/// Compare-and-set after the fact: dropping the transaction undoes the set.
fn unchanged_before(made: Generation, expected: Option<Generation>) -> Result<()> {
    let before = Generation(made.0 - 1);
    match expected {
        Some(expected) if expected != before => Err(ApiError::Stale {
            generation: Some(before),
        }),
        Some(_) | None => Ok(()),
    }
}

fn check(cookies: &SecretString) -> Result<()> {
    let text = cookies.expose_secret();
    let problem = if text.trim().is_empty() {
        "cookies must not be empty; to forget those of a domain there is a route of its own"
    } else if text.len() > MOST_OF_DOMAIN {
        "cookies must be at most 64 KiB long"
    } else if text.chars().any(char::is_control) {
        "cookies must not contain control characters"
    } else {
        return Ok(());
    };
    Err(ApiError::invalid("cookies", problem))
}

fn check_all(cookies: &[agent_config::Cookie]) -> Result<()> {
    let sizes = cookies.iter();
    let bytes: usize = sizes.map(|cookie| cookie.value.expose_secret().len()).sum();
    let message = if cookies.len() > MOST_DOMAINS {
        format!(
            "cookies of at most {MOST_DOMAINS} domains can be stored; delete those of another first"
        )
    } else if bytes > MOST_BYTES {
        "all cookies together can be at most 1 MiB; delete those of another domain first".to_owned()
    } else {
        return Ok(());
    };
    Err(ApiError::conflict("too_many_cookies", message))
}

/// A domain with cookies.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CookiesOfDomain)]
pub struct Stored {
    /// A host name; with a leading dot its subdomains, too.
    #[schema(example = ".example.com")]
    domain: String,
    /// When they were last stored.
    updated_at: Timestamp,
}

/// Domains with cookies.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CookieDomains)]
pub struct Domains {
    cookies: Vec<Stored>,
    /// The generation that `if_generation` of a change is compared with.
    generation: Generation,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/user/cookies`: the domains, never the cookies themselves. `search` finds domains.
///
/// # Errors
/// 404 while the account is being removed.
async fn list(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Nothing>,
    deps: Deps,
) -> Result<Answer<Domains>> {
    let uid = &session.account.uid;
    let mut snapshot = deps.db.snapshot().await?;
    let object = object::get(&mut snapshot, Kind::AgentConfig, uid).await?;
    let object = object.ok_or_else(|| ApiError::not_found("your account"))?;
    let rows = agent_config::list_cookies(&mut snapshot, uid).await?;
    let stored = rows
        .into_iter()
        .map(|(domain, updated_at)| Stored { domain, updated_at });
    let paging = input.paging.as_ref();
    let (cookies, page) = page::cut(stored.collect(), paging, |stored, search| {
        stored.domain.contains(search)
    });
    let domains = Domains {
        cookies,
        generation: object.generation,
        page,
    };
    Ok(Answer::ok("domains with cookies", domains))
}

/// The form of `POST /api/user/cookies/delete`.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = CookiesDeletion)]
pub struct Deletion {
    /// The domain as it is listed.
    #[schema(value_type = String, min_length = 1, max_length = 254, example = ".example.com")]
    domain: CookieDomain,
}

/// `POST /api/user/cookies/delete`: forgets the cookies of a domain, in the agent's files, too.
///
/// # Errors
/// 400 for what is no domain, 404 when there are none, 412; what the files fail with.
async fn delete(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Deletion>,
    deps: Deps,
) -> Result<Answer<Converging>> {
    let domain = input.params.domain;
    let mut tx = input.meta.begin(&deps).await?;
    let user = find(&mut tx, &session.account).await?;
    let generation = agent_config::delete_cookies(&mut tx, &user.uid, domain.as_str())
        .await?
        .ok_or_else(|| ApiError::not_found("cookies of this domain"))?;
    unchanged_before(generation, input.if_generation)?;
    tx.commit(about(&user, &domain)).await?;
    let change = Change::of_config(&user, generation);
    let done = "cookies deleted, in the agent's files, too";
    wait::answer(&deps, &change, input.wait, done).await
}
