//! Compares what handlers answer in tests with what the document says of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use http::Response;
use http::header::CONTENT_TYPE;
use jsonschema::Validator;
use serde_json::{Value, json};

use super::document;
use crate::dispatch::Trail;

/// Documents by path: that of all routes takes a second.
static DOCUMENTS: Mutex<BTreeMap<String, &Value>> = Mutex::new(BTreeMap::new());

/// Returns the document of the routes with this path.
fn path_document(path: &str) -> &'static Value {
    let mut documents = DOCUMENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let make = || {
        let mut routes = crate::routes::all();
        routes.retain(|route| route.path == path);
        &*Box::leak(Box::new(document(&routes).unwrap()))
    };
    documents.entry(path.to_owned()).or_insert_with(make)
}

/// A validator of a schema of the document.
pub(crate) fn validator(document: &Value, schema: &Value) -> Validator {
    let mut root = schema.clone();
    root["components"] = document["components"].clone();
    jsonschema::options()
        .should_validate_formats(true)
        .build(&root)
        .unwrap()
}

/// Fails the test when a route answered what is not documented. What no route has answered
/// (404, 405) is the dispatcher's own.
#[track_caller]
pub(crate) fn check_response(method: &str, response: &Response<bytes::Bytes>) {
    let trail = response.extensions().get::<Trail>().unwrap();
    let Some(route) = trail.route.filter(|_| ["GET", "POST"].contains(&method)) else {
        return;
    };
    let content_type = response.headers().get(CONTENT_TYPE);
    let content_type = content_type.map_or("", |value| value.to_str().unwrap());
    let status = response.status().as_u16();
    // The bytes of a file are not text; everything else is.
    let body = String::from_utf8_lossy(response.body());
    check_parts(method, route, status, content_type, &body);
}

/// Returns the part of the document that a reference leads to, or the part itself.
pub(crate) fn resolve<'a>(document: &'a Value, part: &'a Value) -> &'a Value {
    let reference = part["$ref"].as_str();
    let target = reference.and_then(|reference| document.pointer(reference.strip_prefix('#')?));
    target.unwrap_or(part)
}

/// Returns the codes with which an operation may fail, by status.
pub(crate) fn failures(document: &Value, operation: &Value) -> BTreeMap<u16, BTreeSet<String>> {
    let groups = operation["x-failure-groups"].as_array().unwrap();
    let groups = groups.iter().map(|group| group.as_str().unwrap());
    let groups = groups.map(|group| &document["components"]["x-failure-groups"][group]);
    let mut all: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for codes in groups.chain(operation.get("x-failures")) {
        let codes: BTreeMap<u16, BTreeSet<String>> = serde_json::from_value(codes.clone()).unwrap();
        for (status, codes) in codes {
            all.entry(status).or_default().extend(codes);
        }
    }
    all
}

#[track_caller]
pub(crate) fn check_parts(method: &str, route: &str, status: u16, content_type: &str, body: &str) {
    let what = format!("{method} {route} {status}");
    let document = path_document(route);
    let operation = &document["paths"][route][method.to_lowercase()];
    let codes = failures(document, operation).remove(&status);
    let own = operation["responses"].get(status.to_string());
    let response = own.or(codes.as_ref().map(|_| &operation["responses"]["default"]));
    let response = response.unwrap_or_else(|| panic!("{what} is not documented: {body}"));
    let response = resolve(document, response);
    let essence = content_type.split(';').next().unwrap_or_default();
    if essence.is_empty() {
        assert_eq!((&response["content"], body), (&Value::Null, ""), "{what}");
        return;
    }
    let media = &response["content"][essence];
    assert!(
        media.is_object(),
        "{what} {essence} is not documented: {body}"
    );
    if essence != "application/json" {
        return;
    }
    // Clients must bear further fields; here each is documented.
    let schema = json!({"allOf": [media["schema"]], "unevaluatedProperties": false});
    let body: Value = serde_json::from_str(body).unwrap();
    let errors: Vec<_> = validator(document, &schema)
        .iter_errors(&body)
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}: {errors:?}: {body:.2000}");
    if media["schema"]["$ref"] == "#/components/schemas/Failure" {
        let code = body["code"].as_str().unwrap();
        let documented = codes.is_some_and(|codes| codes.contains(code));
        assert!(documented, "{what} {code} is not documented: {body:.2000}");
    }
}
