use std::collections::BTreeSet;

use super::*;
use crate::openapi::conformance::{self, validator};
use crate::openapi::schemas::for_each_schema;
use crate::route::{Access, BodyKind, Route, Tokens, Waits};
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
        let roles = match route.tokens {
            None => Value::Null,
            Some(Tokens::None) => json!([]),
            Some(Tokens::Read) => json!(["read", "admin"]),
            Some(Tokens::Admin) => json!(["admin"]),
        };
        assert_eq!(operation["x-api-token-roles"], roles, "{}", route.id);
        let mut expected = match (route.access, route.is_post()) {
            (Access::Public, _) => json!([]),
            (Access::Visitor, _) => json!([{}, {"session": []}]),
            (Access::McpToken, _) => json!([{"mcp_token": []}]),
            (_, false) => json!([{"session": []}]),
            (_, true) => json!([{"session": [], "csrf": []}]),
        };
        if matches!(route.tokens, Some(Tokens::Read | Tokens::Admin)) {
            let ways = expected.as_array_mut().unwrap();
            ways.push(json!({"api_token": []}));
        }
        assert_eq!(operation["security"], expected, "{}", route.id);
        let socket = operation["x-admin-socket"] == true;
        assert_eq!(socket, route.access == Access::Superadmin, "{}", route.id);
        let failures = conformance::failures(&document, operation);
        let token = route.access == Access::McpToken;
        let needs_session = !token && !matches!(route.access, Access::Public | Access::Visitor);
        let fails = |status, code| failures.get(&status).is_some_and(|all| all.contains(code));
        let not_signed_in = fails(401, "not_signed_in");
        assert_eq!(not_signed_in, needs_session, "{}", route.id);
        let refused = fails(403, "csrf_invalid");
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
            BodyKind::Fields
            | BodyKind::Message
            | BodyKind::Upload
            | BodyKind::SpooledUpload
            | BodyKind::Files => 1,
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

/// Returns the names of the fields that an answer has.
fn fields(document: &Value, schema: &Value) -> BTreeSet<String> {
    let schema = conformance::resolve(document, schema);
    let own = schema["properties"].as_object().into_iter().flatten();
    let mut names: BTreeSet<_> = own.map(|(name, _)| name.clone()).collect();
    for of in ["allOf", "anyOf", "oneOf"] {
        let parts = schema[of].as_array().into_iter().flatten();
        names.extend(parts.flat_map(|part| fields(document, part)));
    }
    names
}

/// The note says what the types say: a list is a page, and what waits tells its state.
#[test]
fn notes_and_types_agree() {
    let document = made();
    for route in routes::all() {
        let response = &operation(&document, &route)["responses"]["200"];
        let response = conformance::resolve(&document, response);
        let schema = &response["content"]["application/json"]["schema"];
        let fields = fields(&document, schema);
        assert_eq!(
            route.paged,
            fields.contains("total_pages"),
            "{}: {fields:?}",
            route.id
        );
        let waits = fields.contains("state");
        assert_eq!(route.waits != Waits::No, waits, "{}: {fields:?}", route.id);
        assert!(
            !route.guarded || route.body != BodyKind::None,
            "{}",
            route.id
        );
    }
}

#[test]
fn examples_fit_their_schemas() {
    let mut document = made();
    let mut schemas = Vec::new();
    let mut take = |schema: &mut serde_json::Map<String, Value>| {
        if schema.contains_key("example") {
            schemas.push(Value::Object(schema.clone()));
        }
    };
    let named = document["components"]["schemas"].as_object_mut().unwrap();
    for schema in named.values_mut() {
        for_each_schema(schema, &mut take);
    }
    for route in routes::all() {
        let method = route.method().as_str().to_lowercase();
        let operation = &mut document["paths"][route.path][method];
        let contents = operation["requestBody"]["content"].as_object_mut();
        for media in contents.into_iter().flat_map(serde_json::Map::values_mut) {
            for_each_schema(&mut media["schema"], &mut take);
        }
        let parameters = operation["parameters"].as_array_mut();
        for parameter in parameters.into_iter().flatten() {
            if let Some(example) = parameter.get("example").cloned() {
                parameter["schema"]["example"] = example;
                for_each_schema(&mut parameter["schema"], &mut take);
            }
        }
    }
    for schema in &schemas {
        let example = &schema["example"];
        if let Err(error) = validator(&document, schema).validate(example) {
            panic!("{error} at {}: {schema}", error.instance_path());
        }
    }
    assert!(schemas.len() > 200, "{}", schemas.len());
}

#[test]
fn names_are_unique_and_titles_absent() {
    let mut document = made();
    let operations = routes::all();
    let ids: BTreeSet<_> = operations.iter().map(|route| route.id).collect();
    assert_eq!(ids.len(), operations.len());
    for (name, schema) in document["components"]["schemas"].as_object_mut().unwrap() {
        for_each_schema(schema, &mut |schema| {
            assert!(!schema.contains_key("title"), "{name}: {schema:?}");
        });
    }
}

/// The console's types are made from this file.
#[test]
fn document_is_that_of_the_console() {
    let mut text = serde_json::to_vec_pretty(&made()).unwrap();
    text.push(b'\n');
    insta::with_settings!({prepend_module_to_snapshot => false}, {
        insta::assert_binary_snapshot!("openapi.json", text);
    });
}

/// What a client finds at which address: a change of it is a change of the contract.
#[test]
fn the_operations_are_those_of_the_contract() {
    let document = made();
    let mut lines = Vec::new();
    for route in routes::all() {
        let operation = operation(&document, &route);
        let succeeds = operation["responses"].as_object().unwrap().keys();
        let succeeds = succeeds.filter(|status| *status != "default").cloned();
        let fails = conformance::failures(&document, operation).into_keys();
        let statuses: BTreeSet<_> = succeeds
            .chain(fails.map(|status| status.to_string()))
            .collect();
        lines.push(format!(
            "{} {} {}: {}",
            route.method(),
            route.path,
            route.id,
            Vec::from_iter(statuses).join(" ")
        ));
    }
    insta::assert_snapshot!(lines.join("\n"));
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
