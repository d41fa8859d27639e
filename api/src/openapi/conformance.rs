//! Compares what handlers answer in tests with what the document says of them.

use std::sync::LazyLock;

use http::Response;
use http::header::CONTENT_TYPE;
use jsonschema::Validator;
use serde_json::{Value, json};

use super::document;
use crate::dispatch::Trail;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| document(&crate::routes::all()).unwrap());

/// The document to compare with.
pub(crate) struct Conformance {
    document: &'static Value,
}

impl Default for Conformance {
    fn default() -> Self {
        Self {
            document: &DOCUMENT,
        }
    }
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

impl Conformance {
    /// Fails the test when a route answered what is not documented. What no route has answered
    /// (404, 405) is the dispatcher's own.
    #[track_caller]
    pub(crate) fn check(&self, method: &str, response: &Response<bytes::Bytes>) {
        let trail = response.extensions().get::<Trail>().unwrap();
        let Some(route) = trail.route.filter(|_| ["GET", "POST"].contains(&method)) else {
            return;
        };
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type.map_or("", |value| value.to_str().unwrap());
        let status = response.status().as_u16();
        // The bytes of a file are not text; everything else is.
        let body = String::from_utf8_lossy(response.body());
        self.check_parts(method, route, status, content_type, &body);
    }

    #[track_caller]
    pub(crate) fn check_parts(
        &self,
        method: &str,
        route: &str,
        status: u16,
        content_type: &str,
        body: &str,
    ) {
        let what = format!("{method} {route} {status}");
        let operation = &self.document["paths"][route][method.to_lowercase()];
        let response = &operation["responses"][status.to_string()];
        assert!(response.is_object(), "{what} is not documented: {body}");
        let essence = content_type.split(';').next().unwrap_or_default();
        if essence.is_empty() {
            assert_eq!((&response["content"], body), (&json!({}), ""), "{what}");
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
        let errors: Vec<_> = validator(self.document, &schema)
            .iter_errors(&body)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{what}: {errors:?}: {body:.2000}");
    }
}
