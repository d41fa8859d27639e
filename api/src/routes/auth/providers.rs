//! What each authentication mode is, and can do.

use schema::config::{KeyDef, keys};
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::Result;
use crate::input::{Input, Nothing};
use crate::route::{Area, Route, Tokens};
use crate::settings::{AuthMode, WebSettings};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("auth_providers", "/api/admin/auth/providers", list)
.tokens(Tokens::Read)
            .title(Area::Authentication, "List authentication modes")
            .about("For each: what it can do, its configuration keys, and the requests that belong to it."),
    ]
}

/// What a sign-in page needs to know of an authentication mode.
#[derive(Serialize, ToSchema)]
pub struct Provider {
    /// Its name for programs.
    name: AuthMode,
    /// Its name for people.
    #[schema(example = "Local accounts")]
    display_name: String,
    /// Name and password are asked for here.
    has_password: bool,
    /// The browser goes to the provider.
    has_browser: bool,
    /// Users come from a directory.
    has_directory: bool,
}

/// What is said of a mode.
pub(in crate::routes) fn provider(mode: AuthMode, settings: &WebSettings) -> Provider {
    let (display_name, has_password, has_browser, has_directory) = match mode {
        AuthMode::Local => ("Local accounts", true, false, false),
        AuthMode::Ldap => ("LDAP directory", true, false, true),
        AuthMode::Oidc => (&*settings.provider_name, false, true, false),
    };
    Provider {
        name: mode,
        display_name: display_name.to_owned(),
        has_password,
        has_browser,
        has_directory,
    }
}

/// A key of a mode's configuration.
#[derive(Serialize, ToSchema)]
#[schema(as = ProviderField)]
pub struct Field {
    /// The key.
    #[schema(example = "ldap.host")]
    key: &'static str,
    /// A short name for forms.
    title: &'static str,
    /// One or two sentences.
    description: &'static str,
    /// Its value is never shown.
    secret: bool,
}

impl Field {
    fn of(row: &KeyDef) -> Self {
        Self {
            key: row.key,
            title: row.title,
            description: row.description,
            secret: row.is_secret(),
        }
    }
}

/// A request that belongs to a mode.
#[derive(Serialize, ToSchema)]
#[schema(as = ProviderAction)]
pub struct Action {
    /// Its name for programs.
    #[schema(example = "test-ldap")]
    name: &'static str,
    /// Its name for people.
    #[schema(example = "Test the connection")]
    title: &'static str,
    /// Method and path.
    #[schema(example = "POST /api/admin/auth/test-ldap")]
    request: &'static str,
}

/// An authentication mode in full.
#[derive(Serialize, ToSchema)]
#[schema(as = ProviderDetail)]
pub struct Detail {
    #[serde(flatten)]
    provider: Provider,
    /// It is the one in effect.
    active: bool,
    /// Its configuration keys.
    fields: Vec<Field>,
    /// Requests that belong to it.
    actions: Vec<Action>,
}

const LDAP_ACTIONS: [(&str, &str, &str); 4] = [
    (
        "test-ldap",
        "Test the connection",
        "POST /api/admin/auth/test-ldap",
    ),
    (
        "ldap-users",
        "List users of the directory",
        "GET /api/admin/auth/ldap-users",
    ),
    (
        "sync-users",
        "Synchronise users and groups",
        "POST /api/admin/auth/sync-users",
    ),
    (
        "sync-groups",
        "Synchronise groups",
        "POST /api/admin/auth/sync-groups",
    ),
];

fn detail(mode: AuthMode, settings: &WebSettings) -> Detail {
    let section = match mode {
        AuthMode::Local => None,
        AuthMode::Ldap => Some("ldap."),
        AuthMode::Oidc => Some("oidc."),
    };
    let rows = keys::KEYS.values();
    let rows = rows.filter(|row| section.is_some_and(|section| row.key.starts_with(section)));
    let actions = match mode {
        AuthMode::Ldap => LDAP_ACTIONS.to_vec(),
        AuthMode::Oidc => vec![(
            "test-oidc",
            "Test the connection",
            "POST /api/admin/auth/test-oidc",
        )],
        AuthMode::Local => Vec::new(),
    };
    Detail {
        provider: provider(mode, settings),
        active: mode == settings.auth_mode,
        fields: rows.map(|row| Field::of(row)).collect(),
        actions: actions
            .into_iter()
            .map(|(name, title, request)| Action {
                name,
                title,
                request,
            })
            .collect(),
    }
}

/// All authentication modes.
#[derive(Serialize, ToSchema)]
#[schema(as = Providers)]
pub struct Listing {
    providers: Vec<Detail>,
}

/// `GET /api/admin/auth/providers`.
///
/// # Errors
/// None of its own.
async fn list(_: Superadmin, _: Input<Nothing>, deps: Deps) -> Result<Answer<Listing>> {
    let settings = deps.settings();
    let modes = [AuthMode::Local, AuthMode::Ldap, AuthMode::Oidc];
    let providers = modes.map(|mode| detail(mode, &settings)).into();
    Ok(Answer::ok("authentication modes", Listing { providers }))
}
