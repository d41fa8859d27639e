//! Health, sign-in and what belongs to the session itself.

use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{Answer, Resource, Text};
use crate::auth::csrf;
use crate::deps::{Deps, VERSION};
use crate::dispatch::{Anyone, Session};
use crate::error::Result;
use crate::input::{Input, Nothing};
use crate::route::{Area, Route};
use crate::routes::auth::{Provider, provider};
use crate::settings::AuthMode;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("health", HEALTH, health)
            .title(Area::Service, "Get health and version")
            .about("Asks neither database nor engine.")
            .for_agents(),
        Route::get("liveness", LIVENESS, liveness)
            .title(Area::Service, "Check that the process is alive")
            .about("`ok` as long as the process answers."),
        Route::get("login_mode", "/api/login/mode", login_mode)
            .title(Area::Session, "Get the authentication mode")
            .about("What a sign-in page needs to show."),
        Route::get("csrf", "/api/csrf", csrf)
            .title(Area::Session, "Get a CSRF token")
            .about(
                "Every POST that acts with the rights of a session needs one, as field \
                 `csrf_token` or as header `X-CSRF-Token`.",
            ),
    ]
}

/// Answered whatever the database is like.
pub(crate) const HEALTH: &str = "/api/health";
/// Answered whatever the database is like: a restart would mend nothing.
pub(crate) const LIVENESS: &str = "/healthz";

/// The health check's answer.
#[derive(Serialize, ToSchema)]
#[schema(as = Health)]
pub struct HealthBody {
    /// Always `ok`.
    #[schema(example = "ok")]
    status: &'static str,
    /// The service's version.
    #[schema(example = "0.1.0")]
    version: &'static str,
}

/// `GET /api/health`: touches neither database nor engine.
///
/// # Errors
/// None.
async fn health(_: Anyone, _: Input<Nothing>, _: Deps) -> Result<Resource<HealthBody>> {
    Ok(Resource::new(&HealthBody {
        status: "ok",
        version: VERSION,
    }))
}

/// `GET /healthz`: the process is alive and its event loop turns.
///
/// # Errors
/// None.
async fn liveness(_: Anyone, _: Input<Nothing>, _: Deps) -> Result<Text> {
    Ok(Text("ok\n".to_owned()))
}

/// How people sign in.
#[derive(Serialize, ToSchema)]
pub struct LoginMode {
    /// Where ordinary users come from.
    auth_mode: AuthMode,
    provider: Provider,
}

/// `GET /api/login/mode`.
///
/// # Errors
/// None.
async fn login_mode(_: Anyone, _: Input<Nothing>, deps: Deps) -> Result<Answer<LoginMode>> {
    let settings = deps.settings();
    let auth_mode = settings.auth_mode;
    let provider = provider(auth_mode, &settings);
    let mode = LoginMode {
        auth_mode,
        provider,
    };
    Ok(Answer::ok("authentication mode", mode))
}

/// A CSRF token.
#[derive(Serialize, ToSchema)]
pub struct CsrfToken {
    /// Valid for this and the next hour.
    #[schema(example = "74d1c432d4df3b55679eeb5d537764fd")]
    csrf_token: String,
}

/// `GET /api/csrf`: the token of the present hour.
///
/// # Errors
/// None.
async fn csrf(session: Session, _: Input<Nothing>, deps: Deps) -> Result<Answer<CsrfToken>> {
    let csrf_token = csrf::token(&deps.signer, &session.account.name, deps.clock.now());
    Ok(Answer::ok("CSRF token", CsrfToken { csrf_token }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::dispatch::Api;
    use crate::settings::WebSettings;
    use crate::testing::{World, world};

    async fn get(world: &World, path: &str) -> Value {
        let api = Api::new(crate::routes::all(), world.deps.clone());
        let request = warp::test::request()
            .path(path)
            .header("cookie", world.cookie("alice"));
        let response = request.reply(&api.unwrap().filter()).await;
        assert_eq!(response.status(), 200);
        serde_json::from_slice(response.body())
            .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(response.body())))
    }

    #[tokio::test]
    async fn health_is_a_bare_resource() {
        let expected = json!({"status": "ok", "version": VERSION});
        assert_eq!(get(&world().await, "/api/health").await, expected);
        assert_eq!(get(&world().await, "/healthz").await, "ok\n");
    }

    #[tokio::test]
    async fn the_mode_is_told_with_what_a_sign_in_page_must_show() {
        let world = world().await;
        let local = get(&world, "/api/login/mode").await;
        assert_eq!(local["auth_mode"], "local");
        assert_eq!(local["provider"]["has_password"], true);
        let settings = WebSettings {
            auth_mode: AuthMode::Oidc,
            provider_name: "Example SSO".to_owned(),
            ..WebSettings::default()
        };
        world.settings.send(Arc::new(settings)).unwrap();
        let oidc = get(&world, "/api/login/mode").await;
        assert_eq!(oidc["auth_mode"], "oidc");
        assert_eq!(oidc["provider"]["has_browser"], true);
        assert_eq!(oidc["provider"]["display_name"], "Example SSO");
        assert_eq!(oidc["provider"]["has_password"], false);
    }

    #[tokio::test]
    async fn the_token_given_is_the_token_taken() {
        let world = world().await;
        let answer = get(&world, "/api/csrf").await;
        assert_eq!(answer["csrf_token"], world.token("alice"));
        assert_eq!(answer["success"], true);
    }
}
