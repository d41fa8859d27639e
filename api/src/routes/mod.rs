//! The handlers, a module for each section of the HTTP contract.

pub mod accounts;
pub mod adapter;
pub mod audit;
pub mod basic;
pub mod config;
pub mod containers;
mod fleet;
pub mod health;
pub mod images;
mod live;
mod log_lines;
pub mod login;
pub mod mcp_token;
pub mod own_account;
pub mod own_container;
mod page;
mod params;
pub mod reconcile;
pub mod superadmins;
pub mod tasks;
#[cfg(test)]
pub(crate) mod test_support;
pub mod user_config;
pub mod users;
pub mod watch;

use crate::access::Op;
use crate::dispatch::{Binder, Registry, RegistryError};
use crate::openapi::Served;

/// Every route with its handler.
///
/// # Errors
/// When a route has no handler, or two, or when they cannot be documented.
pub fn registry() -> Result<Registry, RegistryError> {
    let document = Served::default();
    let binder = Binder::default()
        .bind(Op::ApiDocument, document.handler())
        .bind(Op::Health, basic::health)
        .bind(Op::Liveness, basic::liveness)
        .bind(Op::LoginMode, basic::login_mode)
        .bind(Op::LoginOidc, basic::login_oidc)
        .bind(Op::Csrf, basic::csrf);
    let binder = user_config::bind(binder);
    let registry = audit::bind(fleet::bind_fleet(accounts::bind(binder))).build()?;
    document.make(&registry)?;
    Ok(registry)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::BodyExt;
    use serde_json::Value;

    use crate::access::{BodyKind, Expect, Token, Who, matrix};
    use crate::dispatch::Api;
    use crate::openapi::conformance::Conformance;
    use crate::reply::Response;
    use crate::testing::world;

    /// The access matrix against the real handlers: whoever must be refused is refused by them too,
    /// and whoever is let in gets an answer, never a server error, even without any parameter.
    #[tokio::test]
    async fn every_route_refuses_whom_the_table_refuses() {
        let world = world().await;
        let registry = super::registry().unwrap();
        let filter = Api::new(registry, world.deps.clone()).unwrap().filter();
        let conformance = Conformance::default();
        let mut reached = 0;
        for case in matrix() {
            let name = match case.who {
                Who::Anonymous => None,
                Who::OrdinaryUser => Some("alice"),
                Who::Superadmin => Some("root"),
            };
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
            if case.route.post {
                let token = match case.token {
                    Token::Valid => world.token(name.unwrap_or("alice")),
                    Token::Wrong => world.token("somebody"),
                    Token::Missing | Token::InQuery => String::new(),
                };
                request = match case.route.body {
                    BodyKind::Upload => request
                        .header("content-type", "multipart/form-data; boundary=X")
                        .body(format!(
                            "--X\r\nContent-Disposition: form-data; name=\"csrf_token\"\r\n\r\n{token}\r\n--X--\r\n"
                        )),
                    BodyKind::None | BodyKind::Fields => request
                        .header("content-type", "application/x-www-form-urlencoded")
                        .body(format!("csrf_token={token}&wait=0")),
                };
            }
            if let Some(name) = name {
                request = request.header("cookie", world.cookie(name));
            }
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
            conformance.check(case.route.method().as_str(), &response);
            let body: Value = serde_json::from_slice(response.body()).unwrap_or_default();
            let code = body["code"].as_str().unwrap_or_default();
            match case.expect {
                Expect::NotSignedIn => {
                    assert_eq!((status, code), (401, "not_signed_in"), "{case:?}")
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
