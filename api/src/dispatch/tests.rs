//! Requests against the whole table, without a network.

use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE,
    ORIGIN, RETRY_AFTER, SET_COOKIE,
};
use http::{Response, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::auth::Role;
use crate::input::{Input, Nothing};
use crate::route::Verb;
use crate::route::matrix::{Expect, Token, matrix};
use crate::routes;
use crate::server::Peer;
use crate::testing::{World, deletions, with_handler, world};

mod bodies;

const FORM: &str = "application/x-www-form-urlencoded";

type Filter = BoxedFilter<(crate::reply::Response,)>;

fn reached(world: &World) -> Filter {
    world.api(Vec::new()).filter()
}

fn json_of(response: &Response<bytes::Bytes>) -> Value {
    serde_json::from_slice(response.body()).unwrap_or(Value::Null)
}

async fn get(filter: &Filter, path: &str, cookie: &str) -> Response<bytes::Bytes> {
    let request = warp::test::request().path(path).header(COOKIE, cookie);
    request.reply(filter).await
}

async fn post(
    filter: &Filter,
    path: &str,
    cookie: &str,
    content_type: &str,
    body: impl AsRef<[u8]>,
) -> Response<bytes::Bytes> {
    warp::test::request()
        .method("POST")
        .path(path)
        .header(COOKIE, cookie)
        .header(CONTENT_TYPE, content_type)
        .body(body)
        .reply(filter)
        .await
}

fn status_and_code(response: &Response<bytes::Bytes>) -> (u16, String) {
    let body = json_of(response);
    let code = body["code"].as_str().unwrap_or_default().to_owned();
    (response.status().as_u16(), code)
}

/// The path of a route with its parameters filled in.
fn concrete(path: &str) -> String {
    path.replace("{kind}", "container")
        .replace("{name}", "alice")
}

#[tokio::test]
async fn l20_every_route_admits_exactly_whom_the_table_says() {
    let world = world().await;
    let filter = world.api(deletions()).filter();
    let tokens = world.api_tokens().await;
    let rows: Vec<_> = routes::all().into_iter().chain(deletions()).collect();
    for case in matrix(&rows) {
        let name = case.who.account();
        let token = world.token(name.unwrap_or("alice"));
        let wrong = world.token("somebody");
        let mut path = concrete(case.route.path);
        let body = match case.token {
            Token::Valid => format!("csrf_token={token}"),
            Token::Wrong => format!("csrf_token={wrong}"),
            Token::Missing => String::new(),
            Token::InQuery => {
                path = format!("{path}?csrf_token={token}");
                String::new()
            }
        };
        let mut request = warp::test::request()
            .method(case.route.method().as_str())
            .path(&path);
        if matches!(
            case.route.body,
            BodyKind::Upload | BodyKind::SpooledUpload | BodyKind::Files
        ) {
            let part = body.replace("csrf_token=", "");
            let part = format!("Content-Disposition: form-data; name=\"csrf_token\"\r\n\r\n{part}");
            let parts = match body.is_empty() {
                true => "--X--\r\n".to_owned(),
                false => format!("--X\r\n{part}\r\n--X--\r\n"),
            };
            request = request
                .header(CONTENT_TYPE, "multipart/form-data; boundary=X")
                .body(parts);
        } else if case.route.is_post() {
            request = request.header(CONTENT_TYPE, FORM).body(body);
        } else if let Some(token) = body.strip_prefix("csrf_token=") {
            request = request.header(csrf::HEADER, token);
        }
        if let Some(name) = name {
            request = request.header(COOKIE, world.cookie(name));
        }
        if let Some(role) = case.who.token_role() {
            let (_, token) = tokens.iter().find(|(of, _)| *of == role).unwrap();
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        world.in_mode_of(case.route);
        let response = request.reply(&filter).await;
        let expected = match case.expect {
            Expect::NotSignedIn => (401, "not_signed_in"),
            Expect::TokenInvalid => (401, "token_invalid"),
            Expect::WrongRole => (403, "wrong_role"),
            Expect::CsrfInvalid => (403, "csrf_invalid"),
            Expect::Handler => (200, ""),
        };
        let (status, code) = status_and_code(&response);
        assert_eq!((status, code.as_str()), expected, "{case:?}");
        let success = json_of(&response)["success"].as_bool();
        assert_eq!(success, Some(case.expect == Expect::Handler), "{case:?}");
    }
}

#[tokio::test]
async fn websocket_with_cookie_from_foreign_site_is_refused() {
    let world = world().await;
    let filter = reached(&world);
    for (origin, status) in [
        ("https://evil.example", 403),
        ("chrome-extension://abcdef", 200),
    ] {
        let request = warp::test::request()
            .path("/api/user/info")
            .header(COOKIE, world.cookie("alice"))
            .header(ORIGIN, origin)
            .header(UPGRADE, "websocket");
        let response = request.reply(&filter).await;
        assert_eq!(response.status().as_u16(), status, "{origin}");
    }
}

#[tokio::test]
async fn paths_and_methods_are_told_apart() {
    let world = world().await;
    let filter = reached(&world);
    let send = async |method: &str, path: &str| {
        let request = warp::test::request().method(method).path(path);
        request.reply(&filter).await
    };
    for path in [
        "/",
        "/nothing",
        "/api/nothing",
        "/api/v1/nothing",
        "/api/admin/users/create/x",
    ] {
        for method in ["GET", "POST", "OPTIONS", "DELETE", "HEAD"] {
            assert_eq!(send(method, path).await.status(), 404, "{method} {path}");
        }
    }
    for route in routes::all() {
        let path = concrete(route.path);
        let sibling = routes::all()
            .iter()
            .any(|other| other.path == route.path && other.verb != route.verb);
        let other = if route.is_post() { "GET" } else { "POST" };
        if !sibling {
            let response = send(other, &path).await;
            assert_eq!(
                status_and_code(&response),
                (405, "method_not_allowed".to_owned())
            );
            let allow = response.headers()[ALLOW].to_str().unwrap();
            assert!(!allow.contains(other), "{path}: {allow}");
        }
        for method in ["PUT", "DELETE", "PATCH", "TRACE", "X-MADE-UP"] {
            let ends = |other: &Route| other.path == route.path && other.verb == Verb::Delete;
            if method == "DELETE" && routes::all().iter().any(ends) {
                continue;
            }
            assert_eq!(send(method, &path).await.status(), 405, "{method} {path}");
        }
        let options = send("OPTIONS", &path).await;
        assert_eq!(options.status(), 204, "{path}");
        assert!(
            options.headers()[ALLOW]
                .to_str()
                .unwrap()
                .contains(route.method().as_str())
        );
    }
}

#[tokio::test]
async fn every_route_has_its_versioned_twin_and_more_slashes() {
    let world = world().await;
    let filter = reached(&world);
    for route in routes::all().into_iter().filter(|route| !route.is_post()) {
        if route.access == Access::McpToken {
            // A session is no token.
            continue;
        }
        let path = concrete(route.path);
        let name = if route.access == Access::OrdinaryUser {
            "alice"
        } else {
            "root"
        };
        let mut spellings = vec![path.clone(), format!("{path}/")];
        if let Some(rest) = path.strip_prefix("/api/") {
            spellings.push(format!("/api/v1/{rest}"));
            spellings.push(format!("/api/v1/{rest}/"));
            spellings.push(format!("//api/{rest}"));
            spellings.push(format!("/api//v1///{rest}//"));
        }
        world.in_mode_of(&route);
        for spelling in spellings {
            let response = get(&filter, &spelling, &world.cookie(name)).await;
            assert_eq!(response.status(), 200, "{spelling}");
        }
    }
}

#[tokio::test]
async fn head_is_answered_like_get_without_a_body() {
    let world = world().await;
    let filter = reached(&world);
    let body = get(&filter, "/api/health", "").await.body().len();
    let request = warp::test::request().method("HEAD").path("/api/health");
    let head = request.reply(&filter).await;
    assert_eq!(head.status(), 200);
    assert!(head.body().is_empty());
    assert_eq!(head.headers()[CONTENT_LENGTH], body.to_string());
}

#[tokio::test]
async fn expired_forged_and_ended_sessions_are_nobody() {
    let world = world().await;
    let filter = reached(&world);
    let good = world.cookie("alice");
    assert_eq!(get(&filter, "/api/csrf", &good).await.status(), 200);
    assert_eq!(
        get(&filter, "/api/csrf", &world.cookie("gone"))
            .await
            .status(),
        401
    );
    let forged = good.replace("alice", "root");
    assert_eq!(get(&filter, "/api/csrf", &forged).await.status(), 401);
    let two = format!("session=junk; {}; {good}", world.cookie("gone"));
    assert_eq!(get(&filter, "/api/csrf", &two).await.status(), 200);
    world.clock.advance(Duration::from_secs(24 * 3600 + 1));
    assert_eq!(get(&filter, "/api/csrf", &good).await.status(), 401);
}

#[tokio::test]
async fn sessions_that_cannot_be_looked_up_are_a_server_error_not_a_sign_out() {
    let world = world().await;
    let filter = reached(&world);
    let response = get(&filter, "/api/csrf", &world.cookie("broken")).await;
    assert_eq!(status_and_code(&response), (500, "internal".to_owned()));
    assert!(!String::from_utf8_lossy(response.body()).contains("database"));
}

#[tokio::test]
async fn public_routes_never_look_up_a_session() {
    let world = world().await;
    let filter = reached(&world);
    let response = get(&filter, "/api/health", &world.cookie("broken")).await;
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn accounts_are_not_made_by_hand_outside_local_mode() {
    let world = world().await;
    let filter = reached(&world);
    let settings = WebSettings {
        auth_mode: AuthMode::Ldap,
        ..WebSettings::default()
    };
    world.settings.send(Arc::new(settings)).unwrap();
    for route in routes::all()
        .into_iter()
        .filter(|route| route.modes == Modes::LocalOnly)
    {
        let name = if route.access == Access::OrdinaryUser {
            "alice"
        } else {
            "root"
        };
        // The mode comes before the CSRF token, which is missing here.
        let response = post(&filter, route.path, &world.cookie(name), FORM, "").await;
        assert_eq!(
            status_and_code(&response),
            (403, "mode_forbidden".to_owned())
        );
    }
    assert_eq!(
        get(&filter, "/api/user/info", &world.cookie("alice"))
            .await
            .status(),
        200
    );
}

#[tokio::test]
async fn what_compares_no_generation_refuses_one() {
    let world = world().await;
    let filter = reached(&world);
    let (mut compared, mut refused) = (0, 0);
    for route in routes::all() {
        if !route.is_post() || route.body != BodyKind::Fields || route.access == Access::Visitor {
            continue;
        }
        let name = match route.access {
            Access::OrdinaryUser => "alice",
            _ => "root",
        };
        let body = format!("csrf_token={}&if_generation=1", world.token(name));
        let path = concrete(route.path);
        let response = post(&filter, &path, &world.cookie(name), FORM, body).await;
        let error = json_of(&response)["error"].to_string();
        let is_refused = error.contains("does not take if_generation");
        assert_eq!(is_refused, !route.guarded, "{path}: {error}");
        match is_refused {
            true => refused += 1,
            false => compared += 1,
        }
    }
    assert!(compared > 20 && refused > 20, "{compared} {refused}");
}

#[tokio::test]
async fn a_token_in_the_header_is_as_good_as_in_the_body() {
    let world = world().await;
    let filter = reached(&world);
    let send = async |token: &str, body: &str| {
        let request = warp::test::request()
            .method("POST")
            .path("/api/admin/container/start")
            .header(COOKIE, world.cookie("root"))
            .header("x-csrf-token", token)
            .header(CONTENT_TYPE, FORM)
            .body(body);
        status_and_code(&request.reply(&filter).await)
    };
    let good = world.token("root");
    assert_eq!(send(&good, "").await.0, 200);
    // A wrong header is not mended by the body: it is refused before the body is read.
    assert_eq!(
        send("wrong", &format!("csrf_token={good}")).await.1,
        "csrf_invalid"
    );
}

#[tokio::test]
async fn l20_foreign_origins_are_refused_even_with_a_token_and_at_sign_in() {
    let world = world().await;
    let filter = reached(&world);
    for path in ["/api/login", "/api/logout", "/api/user/container/restart"] {
        let send = async |header: &'static str, value: &'static str| {
            let request = warp::test::request()
                .method("POST")
                .path(path)
                .header(COOKIE, world.cookie("alice"))
                .header(header, value)
                .header("x-csrf-token", world.token("alice"));
            status_and_code(&request.reply(&filter).await)
        };
        assert_eq!(
            send("origin", "https://evil.example").await.1,
            "csrf_invalid",
            "{path}"
        );
        assert_eq!(send("origin", "null").await.1, "csrf_invalid", "{path}");
        assert_eq!(
            send("sec-fetch-site", "cross-site").await.1,
            "csrf_invalid",
            "{path}"
        );
        assert_eq!(
            send("origin", "chrome-extension://abc").await.0,
            200,
            "{path}"
        );
        assert_eq!(send("sec-fetch-site", "same-origin").await.0, 200, "{path}");
    }
}

#[tokio::test]
async fn l53_cors_answers_listed_origins_on_every_api_answer() {
    let world = world().await;
    let filter = reached(&world);
    let settings = WebSettings {
        allowed_origins: vec!["chrome-extension://abc".parse().unwrap()],
        ..WebSettings::default()
    };
    world.settings.send(Arc::new(settings)).unwrap();
    for (method, path) in [
        ("GET", "/api/health"),
        ("OPTIONS", "/api/login"),
        ("GET", "/api/csrf"),
        ("GET", "/api/nothing"),
    ] {
        let send = async |origin: &'static str| {
            let request = warp::test::request().method(method).path(path);
            request.header(ORIGIN, origin).reply(&filter).await
        };
        let listed = send("chrome-extension://abc").await;
        assert_eq!(
            listed.headers()[ACCESS_CONTROL_ALLOW_ORIGIN],
            "chrome-extension://abc"
        );
        let other = send("chrome-extension://abd").await;
        assert!(!other.headers().contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
    }
}

#[derive(Deserialize, utoipa::ToSchema)]
struct Echo {
    username: schema::ids::UserName,
    note: Option<String>,
}

async fn echo(caller: Superadmin, input: Input<Echo>, _: Deps) -> Result<Reply> {
    Ok(Reply::ok("echo")
        .with("actor", caller.0.to_string())
        .with("username", input.params.username)
        .with("note", input.params.note)
        .with("wait", input.wait.map(|wait| wait.as_secs()))
        .with("if_generation", input.if_generation)
        .with("client", input.meta.client))
}

fn echoing(world: &World) -> Filter {
    world
        .api(vec![with_handler("container_start", echo)])
        .filter()
}

const START: &str = "/api/admin/container/start";

fn on_socket(uid: u32) -> RequestContext {
    RequestContext {
        peer: Peer {
            addr: None,
            encrypted: false,
            socket_uid: Some(uid),
            surface: Surface::AdminSocket,
        },
        ..RequestContext::default()
    }
}

#[tokio::test]
async fn the_admin_socket_acts_as_superadmin_without_cookie_and_token() {
    let world = world().await;
    let filter = echoing(&world);
    let request = warp::test::request()
        .method("POST")
        .path(START)
        .extension(on_socket(1000))
        .header(CONTENT_TYPE, FORM)
        .body("username=alice");
    let response = request.reply(&filter).await;
    assert_eq!(response.status(), 200);
    assert_eq!(json_of(&response)["actor"], "socket:1000");
    assert_eq!(json_of(&response)["client"], Value::Null);
    // It is nobody's session.
    let request = warp::test::request()
        .path("/api/user/info")
        .extension(on_socket(1000));
    assert_eq!(request.reply(&filter).await.status(), 401);
}

#[tokio::test]
async fn the_listener_for_agents_serves_nothing_else() {
    let world = world().await;
    let filter = reached(&world);
    for route in routes::all() {
        let context = RequestContext {
            peer: Peer {
                surface: Surface::Agent,
                ..Peer::default()
            },
            ..RequestContext::default()
        };
        let request = warp::test::request()
            .method(route.method().as_str())
            .path(&concrete(route.path))
            .header(COOKIE, world.cookie("root"))
            .extension(context);
        let expected = match route.path {
            "/api/health" => 200,
            // Without a token.
            "/api/mcp/sse/browser" | "/api/mcp/sse/computer" => 401,
            _ => 404,
        };
        assert_eq!(
            request.reply(&filter).await.status(),
            expected,
            "{}",
            route.path
        );
    }
}

#[tokio::test]
async fn whoever_goes_on_with_a_session_is_asked_to_come_again_while_the_database_is_away() {
    let world = world().await;
    let filter = reached(&world);
    world.db.close().await;
    for (method, session, expected) in [
        ("GET", Some("x"), 200),
        ("GET", None, 503),
        ("POST", Some("x"), 503),
    ] {
        let mut request = warp::test::request()
            .method(method)
            .path("/api/mcp/sse/browser")
            .header("authorization", "Bearer alice:00");
        if let Some(session) = session {
            request = request
                .header("mcp-session-id", session)
                .header("mcp-protocol-version", "2025-11-25");
        }
        let response = request.reply(&filter).await;
        assert_eq!(response.status(), expected, "{method} {session:?}");
        if expected == 200 {
            let text = std::str::from_utf8(response.body()).unwrap();
            // An id, of which clients count that they got somewhere, and nothing else.
            assert!(text.starts_with("retry: 5000\nid: s."), "{text}");
            assert!(text.ends_with("data:\n\n"), "{text}");
        }
    }
}

#[tokio::test]
async fn l19_a_forged_forwarding_header_does_not_change_the_client() {
    let world = world().await;
    let filter = echoing(&world);
    let send = async |trusted: &[&str]| {
        let settings = WebSettings {
            trusted_proxies: trusted.iter().map(|net| net.parse().unwrap()).collect(),
            ..WebSettings::default()
        };
        world.settings.send(Arc::new(settings)).unwrap();
        let peer = Peer {
            addr: Some(([10, 0, 0, 1], 1).into()),
            ..Peer::default()
        };
        let request = warp::test::request()
            .method("POST")
            .path(START)
            .extension(RequestContext {
                peer,
                ..RequestContext::default()
            })
            .header(COOKIE, world.cookie("root"))
            .header("x-csrf-token", world.token("root"))
            .header("x-forwarded-for", "1.1.1.1, 203.0.113.7")
            .header(CONTENT_TYPE, FORM)
            .body("username=alice");
        json_of(&request.reply(&filter).await)["client"].clone()
    };
    assert_eq!(send(&[]).await, "10.0.0.1");
    assert_eq!(send(&["10.0.0.1/32"]).await, "203.0.113.7");
}

async fn remember(visitor: Visitor, _: Input<Nothing>, _: Deps) -> Result<Reply> {
    let name = visitor.0.map(|session| session.account.name);
    Ok(Reply::ok("x")
        .with("name", name)
        .header(SET_COOKIE, http::HeaderValue::from_static("session=")))
}

#[tokio::test]
async fn a_visitor_may_have_a_session_or_not() {
    let world = world().await;
    let api = world.api(vec![with_handler("logout", remember)]);
    let filter = api.filter();
    let with = post(&filter, "/api/logout", &world.cookie("alice"), FORM, "").await;
    assert_eq!(json_of(&with)["name"], "alice");
    assert_eq!(with.headers()[SET_COOKIE], "session=");
    let without = post(&filter, "/api/logout", "", FORM, "").await;
    assert_eq!(without.status(), StatusCode::OK);
    assert_eq!(json_of(&without)["name"], Value::Null);
}

#[test]
fn roles_have_their_wire_names() {
    assert_eq!(Role::User.to_string(), "user");
    assert_eq!(Role::Superadmin.to_string(), "superadmin");
}
