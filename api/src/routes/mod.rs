//! The handlers, a module for each section of the HTTP contract.

mod adapter;
mod agent_model;
mod api_tokens;
mod archives;
mod audit;
mod auth;
mod basic;
mod chat;
pub(crate) mod config;
mod containers;
mod executors;
mod files;
mod groups;
mod health;
mod images;
pub(crate) mod live;
mod log_lines;
mod login;
mod machine;
mod mcp;
mod mcp_token;
mod own_account;
mod own_container;
mod own_skills;
mod page;
mod params;
#[cfg(test)]
mod real_inputs;
mod reconcile;
mod replicas;
mod skills;
mod summary;
mod superadmins;
mod tasks;
#[cfg(test)]
pub(crate) mod test_support;
mod user_config;
mod users;
mod watch;
mod websocket;
#[cfg(test)]
mod yard;

pub(crate) use self::basic::{HEALTH, LIVENESS};
pub(crate) use self::health::READINESS;
pub(crate) use self::machine::{USERNAME, find_account};
use crate::openapi;
use crate::route::Route;

/// Every route: the rows of all files.
pub fn all() -> Vec<Route> {
    let files = [
        openapi::routes(),
        basic::routes(),
        health::routes(),
        login::routes(),
        own_account::routes(),
        own_container::routes(),
        own_skills::routes(),
        mcp_token::routes(),
        mcp::routes(),
        executors::routes(),
        chat::routes(),
        user_config::routes(),
        files::routes(),
        config::routes(),
        agent_model::routes(),
        users::routes(),
        auth::routes(),
        superadmins::routes(),
        api_tokens::routes(),
        containers::routes(),
        images::routes(),
        groups::routes(),
        skills::routes(),
        adapter::routes(),
        summary::routes(),
        reconcile::routes(),
        replicas::routes(),
        watch::routes(),
        archives::routes(),
        tasks::routes(),
        audit::routes(),
    ];
    files.into_iter().flatten().collect()
}

/// Routes that exist on the admin socket only.
pub fn on_machine() -> Vec<Route> {
    machine::routes()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::BodyExt;
    use schema::directory;
    use schema::ids::Kind;
    use schema::object;
    use serde_json::Value;

    use crate::dispatch::Api;
    use crate::openapi::conformance;
    use crate::reply::Response;
    use crate::route::BodyKind;
    use crate::route::matrix::{Expect, Token, matrix};
    use crate::testing::{NOW, world};

    /// The access matrix against the real handlers: whoever must be refused is refused by them too,
    /// and whoever is let in gets an answer, never a server error, even without any parameter.
    #[tokio::test]
    async fn every_route_refuses_whom_the_table_refuses() {
        let world = world().await;
        let mut tx = world.db.begin().await.unwrap();
        let (kind, uid) = (Kind::Directory, directory::object_uid());
        let made = object::insert(&mut tx, kind, &uid, directory::OBJECT_NAME, NOW);
        made.await.unwrap();
        tx.commit().await.unwrap();
        let api = Api::new(super::all(), world.deps.clone());
        let filter = api.unwrap().filter();
        let tokens = world.api_tokens().await;
        let mut reached = 0;
        for case in matrix(&super::all()) {
            let name = case.who.account();
            let mut path = case
                .route
                .path
                .replace("{kind}", "user")
                .replace("{name}", "alice")
                .replace("{id}", "0");
            if case.token == Token::InQuery {
                let token = world.token(name.unwrap_or("alice"));
                path = format!("{path}?csrf_token={token}");
            }
            let mut request = warp::test::request()
                .method(case.route.method().as_str())
                .path(&path);
            if case.route.is_post() {
                let token = match case.token {
                    Token::Valid => world.token(name.unwrap_or("alice")),
                    Token::Wrong => world.token("somebody"),
                    Token::Missing | Token::InQuery => String::new(),
                };
                request = match case.route.body {
                    BodyKind::Upload | BodyKind::SpooledUpload | BodyKind::Files => request
                        .header("content-type", "multipart/form-data; boundary=X")
                        .body(format!(
                            "--X\r\nContent-Disposition: form-data; name=\"csrf_token\"\r\n\r\n{token}\r\n--X--\r\n"
                        )),
                    BodyKind::None | BodyKind::Fields | BodyKind::Message => request
                        .header("content-type", "application/x-www-form-urlencoded")
                        .body(format!("csrf_token={token}&wait=0")),
                };
            }
            if let Some(name) = name {
                request = request.header("cookie", world.cookie(name));
            }
            if let Some(role) = case.who.token_role() {
                let (_, token) = tokens.iter().find(|(of, _)| *of == role).unwrap();
                request = request.header("authorization", format!("Bearer {token}"));
            }
            world.in_mode_of(case.route);
            let response: Response = request.filter(&filter).await.unwrap();
            let status = response.status().as_u16();
            // A stream has no end to wait for.
            let (parts, body) = response.into_parts();
            let mut bytes = Bytes::new();
            if parts
                .headers
                .get("content-type")
                .is_none_or(|t| t != "text/event-stream")
            {
                bytes = body.collect().await.unwrap().to_bytes();
            }
            let response = http::Response::from_parts(parts, bytes);
            conformance::check_response(case.route.method().as_str(), &response);
            let body: Value = serde_json::from_slice(response.body()).unwrap_or_default();
            let code = body["code"].as_str().unwrap_or_default();
            match case.expect {
                Expect::NotSignedIn => {
                    assert_eq!((status, code), (401, "not_signed_in"), "{case:?}")
                }
                Expect::TokenInvalid => {
                    assert_eq!((status, code), (401, "token_invalid"), "{case:?}")
                }
                Expect::WrongRole => assert_eq!((status, code), (403, "wrong_role"), "{case:?}"),
                Expect::CsrfInvalid => {
                    assert_eq!((status, code), (403, "csrf_invalid"), "{case:?}")
                }
                Expect::Handler => {
                    reached += 1;
                    assert!(status < 500 || status == 503, "{case:?}: {status} {body}");
                    assert!(!["wrong_role", "csrf_invalid"].contains(&code), "{case:?}");
                }
            }
        }
        assert!(reached > 60, "only {reached} requests reached a handler");
    }
}
