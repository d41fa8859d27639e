use std::collections::BTreeSet;

use super::*;
use crate::openapi::conformance::{self, validator};
use crate::route::{Access, BodyKind, Route, Waits};
use crate::routes;

fn made() -> Value {
    document(&routes::all()).unwrap()
}

fn operation<'a>(document: &'a Value, route: &Route) -> &'a Value {
    &document["paths"][route.path][route.method().as_str().to_lowercase()]
}

#[test]
fn every_row_is_documented_and_nothing_else() {
    let document = made();
    let paths = document["paths"].as_object().unwrap();
    let documented: BTreeSet<_> = paths
        .iter()
        .flat_map(|(path, item)| item.as_object().unwrap().keys().map(move |m| (path, m)))
        .map(|(path, method)| (path.clone(), method.to_uppercase()))
        .collect();
    let rows: BTreeSet<_> = routes::all()
        .iter()
        .map(|row| (row.path.to_owned(), row.method().to_string()))
        .collect();
    assert_eq!(documented, rows);
    for route in routes::all() {
        assert_eq!(operation(&document, &route)["operationId"], route.id);
    }
}

#[test]
fn who_may_use_a_route_is_documented_as_the_table_grants_it() {
    let document = made();
    for route in routes::all() {
        let operation = operation(&document, &route);
        let expected = match (route.access, route.is_post()) {
            (Access::Public, _) => json!([]),
            (Access::Visitor, _) => json!([{}, {"session": []}]),
            (Access::McpToken, _) => json!([{"mcp_token": []}]),
            (_, false) => json!([{"session": []}]),
            (_, true) => json!([{"session": [], "csrf": []}]),
        };
        assert_eq!(operation["security"], expected, "{}", route.id);
        let socket = operation["x-admin-socket"] == true;
        assert_eq!(socket, route.access == Access::Superadmin, "{}", route.id);
        let responses = operation["responses"].as_object().unwrap();
        let token = route.access == Access::McpToken;
        let needs_session = !token && !matches!(route.access, Access::Public | Access::Visitor);
        let code = |status: &str| {
            let schema = &responses.get(status)?["content"]["application/json"]["schema"];
            Some(schema["allOf"][1]["properties"]["code"]["enum"].to_string())
        };
        let not_signed_in = code("401").is_some_and(|codes| codes.contains("not_signed_in"));
        assert_eq!(not_signed_in, needs_session, "{}", route.id);
        let refused = code("403").is_some_and(|codes| codes.contains("csrf_invalid"));
        assert_eq!(refused, route.is_post() && !token, "{}", route.id);
    }
}

#[test]
fn a_body_is_documented_where_one_is_read() {
    let document = made();
    for route in routes::all() {
        let operation = operation(&document, &route);
        let content = operation["requestBody"]["content"].as_object();
        let kinds = content.map_or(0, serde_json::Map::len);
        let expected = match route.body {
            BodyKind::None => 0,
            BodyKind::Fields => 3,
            BodyKind::Message | BodyKind::Upload | BodyKind::SpooledUpload | BodyKind::Files => 1,
        };
        assert_eq!(kinds, expected, "{}", route.id);
        let parameters = operation["parameters"].as_array();
        let in_path = parameters.into_iter().flatten();
        let in_path = in_path
            .filter(|parameter| parameter["in"] == "path")
            .count();
        assert_eq!(in_path, route.path.matches('{').count(), "{}", route.id);
    }
}

/// The note says what the types say: a list is a page, and what waits tells its state.
#[test]
fn notes_and_types_agree() {
    let document = made();
    for route in routes::all() {
        let responses = &operation(&document, &route)["responses"];
        let example = &responses["200"]["content"]["application/json"]["example"];
        let paged = example.get("total_pages").is_some();
        assert_eq!(route.paged, paged, "{}", route.id);
        let waits = example.get("state").is_some();
        assert_eq!(route.waits != Waits::No, waits, "{}", route.id);
        assert!(
            !route.guarded || route.body != BodyKind::None,
            "{}",
            route.id
        );
    }
}

#[test]
fn examples_fit_their_schemas() {
    let document = made();
    let mut checked = 0;
    for route in routes::all() {
        let operation = operation(&document, &route);
        let request = operation["requestBody"]["content"].as_object();
        let responses = operation["responses"].as_object().unwrap().values();
        let responses = responses.flat_map(|response| response["content"].as_object().unwrap());
        for (_, media) in responses.chain(request.into_iter().flatten()) {
            let Some(example) = media.get("example") else {
                continue;
            };
            let validator = validator(&document, &media["schema"]);
            if let Err(error) = validator.validate(example) {
                panic!(
                    "{}: {error} at {}: {example}",
                    route.id,
                    error.instance_path()
                );
            }
            checked += 1;
        }
    }
    assert!(checked > 300, "{checked}");
}

/// What a client finds at which address: a change of it is a change of the contract.
#[test]
fn the_operations_are_those_of_the_contract() {
    let document = made();
    let mut lines = Vec::new();
    for route in routes::all() {
        let operation = operation(&document, &route);
        let statuses = operation["responses"].as_object().unwrap().keys();
        let statuses: Vec<_> = statuses.map(String::as_str).collect();
        lines.push(format!(
            "{} {} {}: {}",
            route.method(),
            route.path,
            route.id,
            statuses.join(" ")
        ));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[tokio::test]
async fn anybody_gets_the_document() {
    let world = crate::testing::world().await;
    let api = crate::dispatch::Api::new(routes::all(), world.deps.clone()).unwrap();
    let request = warp::test::request().path("/api/v1/openapi.json");
    let response = request.reply(&api.filter()).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    let document: Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(document, made());
    assert_eq!(document["info"]["version"], crate::deps::VERSION);
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."));
    conformance::check_response("GET", &response);
}

#[test]
#[should_panic(expected = "not documented")]
fn a_status_that_is_not_documented_is_found() {
    conformance::check_parts("POST", "/api/login", 418, "application/json", "{}");
}

#[test]
#[should_panic(expected = "surplus")]
fn a_field_that_is_not_documented_is_found() {
    let body = json!({"success": true, "message": "", "csrf_token": "x", "surplus": 1});
    let body = body.to_string();
    conformance::check_parts("GET", "/api/csrf", 200, "application/json", &body);
}

#[test]
#[should_panic(expected = "surplus")]
fn a_field_of_a_failure_that_is_not_documented_is_found() {
    let body = json!({"success": false, "error": "no", "code": "not_signed_in", "surplus": 1});
    let body = body.to_string();
    conformance::check_parts("GET", "/api/csrf", 401, "application/json", &body);
}

#[test]
#[should_panic(expected = "unheard_of")]
fn a_code_that_is_not_documented_is_found() {
    let body = json!({"success": false, "error": "no", "code": "unheard_of"}).to_string();
    conformance::check_parts("GET", "/api/csrf", 401, "application/json", &body);
}
