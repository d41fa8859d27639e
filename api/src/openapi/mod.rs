//! The API document: OpenAPI 3.1, made from the routes' rows and from the types of their handlers.

mod components;
#[cfg(test)]
pub(crate) mod conformance;
mod failure;
mod operation;
mod schemas;
mod serve;
mod share;
mod shorten;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};
use utoipa::ToSchema;

pub use schemas::Schemas;
pub(crate) use serve::routes;
pub use shorten::shorten;

use crate::answer::{Answers, Body};
use crate::route::Route;

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
    let mut schemas = schemas.finish().map_err(SchemaTwice)?;
    if let Some(configuration) = schemas.get_mut("Configuration") {
        // A save leaves what is not sent; generated clients would send a default in its place.
        shorten::remove(configuration, &["title", "default"]);
    }
    let mut paths = json!({});
    for (route, shape) in routes.iter().zip(&shapes) {
        let method = route.method().as_str().to_lowercase();
        paths[route.path][method] = operation::of(route, shape).into();
    }
    let shared = share::take_shared_responses(&mut paths);
    let mut document = components::frame(schemas, shared);
    document["components"]["x-failure-groups"] = failure::groups();
    document["components"]["x-failure-codes"] = failure::codes(routes);
    document["paths"] = paths;
    Ok(document)
}
