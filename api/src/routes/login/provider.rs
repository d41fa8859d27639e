//! Signing in through an identity provider: off to it, and back.
//!
//! What this service must remember of a sign-in meanwhile the browser keeps, sealed, in a cookie of its own: whoever comes back
//! without it was sent off by somebody else, and is not signed in.

use std::time::Duration;

use http::HeaderValue;
use http::header::SET_COOKIE;
use schema::audit::About;
use schema::directory;
use schema::ids::Timestamp;
use schema::session::Live;
use schema::user::Source;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::Client;
use super::account::{Proven, let_in};
use crate::answer::Redirect;
use crate::auth::session::cookies;
use crate::deps::{Dependencies, Deps};
use crate::dispatch::Anyone;
use crate::error::{ApiError, Result};
use crate::input::{Input, Meta};
use crate::ports::{PendingSignIn, ProvidedIdentity, ProviderFailure};
use crate::route::{Area, Failure, Route};
use crate::settings::AuthMode;

/// Where a sign-in begins.
const START: &str = "/api/login/oidc";
/// How long somebody may take at the provider.
const PENDING: Duration = Duration::from_secs(10 * 60);
/// How long the provider may take altogether: whoever asks is answered within five seconds.
const PATIENCE: Duration = Duration::from_millis(4500);
/// What the cookie is sealed for.
const CONTEXT: &str = "sign-in/oidc";
/// Characters of the state in the cookie's name: sign-ins in several tabs do not disturb each other.
const NAMED: usize = 12;
/// Longest `next`: the cookie has to fit in 4096 bytes.
const LONGEST_NEXT: usize = 1000;
/// What the names of these cookies begin with.
const PREFIX: &str = "oidc-";
/// Most cookies of one name that are tried.
const MOST_COOKIES: usize = 4;
/// Most sign-ins that a browser keeps: headers have a limit, too.
const MOST_KEPT: usize = 4;

const MODE: Failure = Failure(
    400,
    "invalid_request",
    "users do not sign in through an identity provider",
);
const REMOTE: Failure = Failure(
    502,
    "remote_failed",
    "the identity provider cannot be asked",
);

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("login_oidc", START, begin)
            .title(Area::Session, "Sign in through the identity provider")
            .about(
                "For browsers: leads to the identity provider, and from there to the callback. A failure is a page where \
                 the browser asks for one.",
            )
            .for_browsers()
            .headers(&["Location", "Set-Cookie"])
            .fails(&[MODE, REMOTE]),
        Route::get("login_oidc_callback", "/api/login/oidc/callback", finish)
            .title(Area::Session, "Come back from the identity provider")
            .about(
                "Where the identity provider leads the browser. Signs in, and leads to `next` or to the user's page. \
                 Failed attempts count for the sign-in limit of the address.",
            )
            .for_browsers()
            .headers(&["Location", "Set-Cookie"])
            .fails(&[
                MODE,
                Failure(
                    400,
                    "sign_in_unknown",
                    "the sign-in was not begun in this browser, or longer ago than 10 minutes",
                ),
                Failure(
                    401,
                    "sign_in_refused",
                    "the provider has not signed in anybody, or what it says proves nothing",
                ),
                Failure(403, "account_disabled", "an administrator has disabled the account"),
                Failure(403, "not_whitelisted", "the name is not on the whitelist"),
                Failure(
                    403,
                    "invalid_username",
                    "the name at the provider breaks the rule for names",
                ),
                Failure(409, "name_taken", "the name belongs to another account"),
                Failure::ATTEMPTS,
                REMOTE,
                Failure(
                    503,
                    "previous_account_archiving",
                    "the previous account of the name is still being archived",
                ),
            ]),
    ]
}

/// The query of `GET /api/login/oidc`.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Begin {
    /// The provider asks who one is, even if one is signed in there.
    #[serde(default)]
    again: bool,
    /// Where to go afterwards: a path of this service.
    #[schema(example = "/manage")]
    next: Option<String>,
}

/// What comes back from the provider (RFC 6749 §4.1.2).
#[derive(Debug, Deserialize, ToSchema)]
pub struct Callback {
    /// The authorization code.
    #[schema(value_type = Option<String>)]
    code: Option<SecretString>,
    /// As it was sent.
    state: Option<String>,
    /// Why there is no code.
    error: Option<String>,
    /// The same in words.
    error_description: Option<String>,
    /// Who has issued the code (RFC 9207).
    iss: Option<String>,
}

/// What the browser keeps of a sign-in.
#[derive(Serialize, Deserialize)]
struct Kept {
    pending: PendingSignIn,
    next: Option<String>,
    /// Seconds since the Unix epoch.
    begun_at: i64,
}

/// `GET /api/login/oidc`: off to the provider.
///
/// # Errors
/// 400 outside oidc mode and for a `next` that leads elsewhere; 502 when the provider cannot be asked.
async fn begin(_: Anyone, input: Input<Begin>, deps: Deps) -> Result<Redirect> {
    check_mode(&deps)?;
    let Begin { again, next } = input.params;
    if let Some(next) = &next
        && !is_local(next)
    {
        return Err(ApiError::invalid(
            "next",
            "next is a path of this service such as /manage, of at most 1000 characters",
        ));
    }
    let asked = timeout(PATIENCE, deps.provider.begin(again)).await;
    let asked = asked.map_err(|_| ProviderFailure::Unavailable("it takes too long".to_owned()));
    let (address, pending) = asked.and_then(|asked| asked).map_err(told)?;
    let name = name_of(&pending.state).ok_or_else(|| ApiError::internal("a state is short"))?;
    let kept = Kept {
        pending,
        next,
        begun_at: deps.clock.now().as_secs(),
    };
    let kept = serde_json::to_vec(&kept).map_err(ApiError::internal)?;
    let sealed = deps.master_key.seal(CONTEXT, &kept);
    let sealed = hex::encode(sealed.map_err(ApiError::internal)?);
    let cookie = |name: &str, value: &str, age| cookie(&deps, &input.meta, name, value, age);
    let address = HeaderValue::try_from(address).map_err(ApiError::internal)?;
    let mut answer = Redirect::to(address).header(SET_COOKIE, cookie(&name, &sealed, PENDING)?);
    // Those that were begun and never ended.
    let kept = cookies(&input.meta.headers, |name| name.starts_with(PREFIX));
    let kept: Vec<_> = kept.map(|(name, _)| name).collect();
    if kept.len() >= MOST_KEPT {
        for name in kept {
            answer = answer.header(SET_COOKIE, cookie(name, "", Duration::ZERO)?);
        }
    }
    Ok(answer)
}

/// `GET /api/login/oidc/callback`: back from the provider.
///
/// # Errors
/// 400 for whoever was not sent off from here, 401 for what proves nothing, 403 and 409 for whoever may not sign in, 429 after
/// many failures, 502 when the provider cannot be asked.
async fn finish(_: Anyone, input: Input<Callback>, deps: Deps) -> Result<Redirect> {
    check_mode(&deps)?;
    let Input { params, meta, .. } = input;
    // Whoever was sent off by somebody else has tried nothing: other pages could lock out a whole network by it.
    let kept = kept(&deps, &meta, params.state.as_deref()).ok_or(ApiError::SignInUnknown)?;
    deps.login_limit
        .check(meta.sender())
        .inspect_err(|error| super::count_sign_in("provider", Some(error)))?;
    let name = name_of(&kept.pending.state).unwrap_or_default();
    let next = kept.next.clone().unwrap_or_else(|| home(&deps));
    let mut whom = None;
    let live = match prove(&deps, &meta, params, kept, &mut whom).await {
        Err(refused) if refused.status().is_client_error() => {
            deps.login_limit.failed(meta.sender());
            let about = match whom {
                Some(name) => super::whom(&deps, &name).await?,
                None => About::object("account", "unknown"),
            };
            super::count_sign_in("provider", Some(&refused));
            meta.refused(&deps, about.detail(refused.code())).await?;
            return Err(refused);
        }
        live => {
            super::count_sign_in("provider", live.as_ref().err());
            live?
        }
    };
    let next = HeaderValue::try_from(next).map_err(ApiError::internal)?;
    Ok(Redirect::to(next)
        .header(SET_COOKIE, super::cookie(&deps, &meta, &live)?)
        .header(SET_COOKIE, cookie(&deps, &meta, &name, "", Duration::ZERO)?))
}

/// A session for whoever proves to be somebody; `whom` is set to the name as soon as it is known.
async fn prove(
    deps: &Dependencies,
    meta: &Meta,
    params: Callback,
    kept: Kept,
    whom: &mut Option<String>,
) -> Result<Live> {
    let Callback {
        code, error, iss, ..
    } = params;
    let code = match (code, error) {
        (Some(code), None) => code,
        (_, Some(error)) => return Err(not_signed_in(&error, params.error_description)),
        (None, None) => return Err(ApiError::invalid("code", "code is missing")),
    };
    let asked = timeout(PATIENCE, deps.provider.finish(&kept.pending, code, iss)).await;
    let asked = asked.map_err(|_| ProviderFailure::Unavailable("it takes too long".to_owned()));
    let ProvidedIdentity {
        subject,
        name,
        groups,
        left_out,
        renamed,
    } = asked.and_then(|asked| asked).map_err(told)?;
    let known = {
        let mut connection = deps.db.read().await?;
        directory::name_of(&mut connection, Source::Oidc, &subject).await?
    };
    *whom = Some(known.map_or_else(|| name.clone(), |name| name.to_string()));
    let proven = Proven {
        identity: None,
        source: Source::Oidc,
        name,
        subject,
        groups,
        left_out,
        renamed,
    };
    // A browser went there and came back: that is the web console.
    let live = let_in(deps, meta, proven, Client::Web).await;
    live.map_err(|error| match error {
        // The account or the mode has changed in this moment.
        ApiError::BadCredentials => {
            ApiError::SignInRefused("your account has changed in this moment; try again".to_owned())
        }
        error => error,
    })
}

/// What the provider says instead of a code (RFC 6749 §4.1.2.1).
fn not_signed_in(error: &str, description: Option<String>) -> ApiError {
    let why = description.map(|why| format!(": {why}"));
    let said = format!("{error}{}", why.unwrap_or_default());
    let said: String = said.chars().filter(|c| !c.is_control()).take(300).collect();
    tracing::info!(said, "the identity provider has signed nobody in");
    if matches!(error, "server_error" | "temporarily_unavailable") {
        return told(ProviderFailure::Unavailable(said));
    }
    ApiError::SignInRefused(format!(
        "the identity provider has not signed you in ({said})"
    ))
}

/// Where people are when nothing else is said.
fn home(deps: &Dependencies) -> String {
    let path = &deps.settings().provider_path;
    let below = path.strip_suffix(START).unwrap_or_default();
    format!("{below}/manage")
}

fn check_mode(deps: &Dependencies) -> Result<()> {
    if deps.settings().auth_mode == AuthMode::Oidc {
        return Ok(());
    }
    Err(ApiError::InvalidRequest(
        "users do not sign in through an identity provider here; use name and password",
    ))
}

/// What people are told; the rest is for the log.
fn told(failure: ProviderFailure) -> ApiError {
    match failure {
        ProviderFailure::Unavailable(failure) => {
            tracing::warn!(%failure, "the identity provider could not be asked for a sign-in");
            ApiError::Remote {
                message: "the identity provider cannot be used now; try again soon, or ask an administrator, who can still \
                          sign in with name and password"
                    .to_owned(),
            }
        }
        ProviderFailure::Refused(failure) => {
            tracing::warn!(%failure, "a sign-in through the identity provider was refused");
            ApiError::SignInRefused(
                "what the identity provider says of you was refused; try again, or ask an administrator"
                    .to_owned(),
            )
        }
        ProviderFailure::Nameless(failure) => {
            tracing::warn!(%failure, "the identity provider has signed in somebody without a name");
            ApiError::InvalidUsername {
                rule: "the identity provider does not say what your user name is; ask an administrator"
                    .to_owned(),
            }
        }
    }
}

/// What this browser keeps of the sign-in of this state.
fn kept(deps: &Dependencies, meta: &Meta, state: Option<&str>) -> Option<Kept> {
    let state = state?;
    let name = name_of(state)?;
    let now = deps.clock.now();
    cookies(&meta.headers, |found| found == name)
        .take(MOST_COOKIES)
        .find_map(|(_, sealed)| {
            let sealed = hex::decode(sealed).ok()?;
            let kept = deps.master_key.open(CONTEXT, &sealed).ok()?;
            let kept: Kept = serde_json::from_slice(&kept).ok()?;
            let same = kept.pending.state.as_bytes().ct_eq(state.as_bytes());
            let age = now.since(Timestamp::from_secs(kept.begun_at));
            (bool::from(same) && age <= PENDING).then_some(kept)
        })
}

/// The name of the cookie that keeps the sign-in of this state.
fn name_of(state: &str) -> Option<String> {
    let named = state.get(..NAMED)?;
    Some(format!("{PREFIX}{named}"))
}

fn cookie(
    deps: &Dependencies,
    meta: &Meta,
    name: &str,
    value: &str,
    age: Duration,
) -> Result<HeaderValue> {
    let (path, age) = (deps.settings().provider_path.clone(), age.as_secs());
    let secure = if meta.secure { "; Secure" } else { "" };
    let cookie =
        format!("{name}={value}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
    let mut cookie = HeaderValue::try_from(cookie).map_err(ApiError::internal)?;
    cookie.set_sensitive(true);
    Ok(cookie)
}

/// Whether this leads to a place of this service, whatever a browser makes of it.
fn is_local(next: &str) -> bool {
    const BASE: &str = "https://here.invalid";
    // What is no character of an address is written in percents.
    let plain = next
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !b"\\\"<>^`{|}".contains(&byte));
    let read = url::Url::parse(BASE).and_then(|base| base.join(next));
    next.len() <= LONGEST_NEXT
        && plain
        && next.starts_with('/')
        && !next.starts_with("//")
        && read.is_ok_and(|url| url.origin().ascii_serialization() == BASE)
}

#[cfg(test)]
mod tests;
