//! The API document: OpenAPI 3.1, made from the routes' rows and from the types of their handlers.

mod components;
#[cfg(test)]
pub(crate) mod conformance;
mod example;
mod failure;
mod operation;
mod schemas;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use bytes::Bytes;
use serde_json::{Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

pub use schemas::Schemas;

use crate::answer::{Answers, Body, Resource};
use crate::deps::Deps;
use crate::dispatch::Anyone;
use crate::error::{ApiError, Result};
use crate::input::{Input, Nothing};
use crate::route::{Area, Route};

/// The types of a route's handler.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// The schema of its fields: an object, each property a field.
    pub fields: Value,
    /// What it answers with when it does not fail.
    pub bodies: Vec<Body>,
}

impl Shape {
    /// The shape of a handler of these types.
    pub fn of<T: ToSchema, A: Answers>(schemas: &mut Schemas) -> Self {
        Self {
            fields: schemas.inline::<T>(),
            bodies: A::describe(schemas),
        }
    }
}

/// Types of different schemas have one name in the document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the API document has several schemas of the names {0:?}")]
pub struct SchemaTwice(pub Vec<String>);

/// The document of these routes.
///
/// # Errors
/// [`SchemaTwice`] when two types have one name.
pub fn document(routes: &[Route]) -> Result<Value, SchemaTwice> {
    let mut schemas = Schemas::default();
    for (name, schema) in components::own_schemas() {
        schemas.add(name.to_owned(), schema);
    }
    schemas.reference::<schema::config::Problem>();
    schemas.reference::<crate::routes::config::Purging>();
    let describe = |route: &Route| route.handler.describe(&mut schemas);
    let shapes: Vec<Shape> = routes.iter().map(describe).collect();
    let schemas = schemas.finish().map_err(SchemaTwice)?;
    let mut paths = json!({});
    for (route, shape) in routes.iter().zip(&shapes) {
        let method = route.method().as_str().to_lowercase();
        paths[route.path][method] = operation::of(route, shape, &schemas).into();
    }
    let mut document = components::frame(schemas);
    document["paths"] = paths;
    Ok(document)
}

/// The document of the service. It is the same for as long as the process runs.
static DOCUMENT: LazyLock<Result<Bytes, SchemaTwice>> =
    LazyLock::new(|| Ok(document(&crate::routes::all())?.to_string().into()));

/// The routes of this file.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("api_document", "/api/openapi.json", serve)
            .title(Area::Service, "Get this document")
            .about("OpenAPI 3.1 of every route."),
    ]
}

async fn serve(_: Anyone, _: Input<Nothing>, _: Deps) -> Result<Resource<ApiDocument>> {
    match &*DOCUMENT {
        Ok(text) => Ok(Resource::ready_made(text.clone())),
        Err(error) => Err(ApiError::internal(error.clone())),
    }
}

/// An OpenAPI document.
pub struct ApiDocument;

impl ToSchema for ApiDocument {}

impl PartialSchema for ApiDocument {
    fn schema() -> RefOr<Schema> {
        let part = |of| ObjectBuilder::new().schema_type(of);
        ObjectBuilder::new()
            .property("openapi", part(Type::String).examples(["3.1.0"]))
            .property("info", part(Type::Object))
            .property("paths", part(Type::Object))
            .property("components", part(Type::Object))
            .property("servers", part(Type::Array))
            .property("tags", part(Type::Array))
            .required("openapi")
            .required("info")
            .required("paths")
            .into()
    }
}
