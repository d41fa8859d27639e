//! The API document: OpenAPI 3.1, made from the access table and from the types of the handlers.
//!
//! Paths, methods, security and most failures follow from a route's row, fields and answers from
//! its handler's types. What neither says is in `notes.rs`, with an entry for every route.

mod components;
#[cfg(test)]
pub(crate) mod conformance;
mod example;
mod failure;
mod notes;
mod operation;
mod schemas;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures::future::{Ready, ready};
use serde_json::{Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

pub use schemas::Schemas;

use crate::access::TABLE;
use crate::answer::{Answers, Body, Resource};
use crate::deps::Deps;
use crate::dispatch::{Anyone, Registry, RegistryError};
use crate::error::ApiError;
use crate::input::{Input, Nothing};

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

/// The document of a registry's routes.
///
/// # Errors
/// [`RegistryError::SchemaTwice`] when two types have one name.
pub fn document(registry: &Registry) -> Result<Value, RegistryError> {
    let mut schemas = Schemas::default();
    for (name, schema) in components::own_schemas() {
        schemas.add(name.to_owned(), schema);
    }
    schemas.reference::<schema::config::Problem>();
    let shapes = registry.shapes(&mut schemas);
    let schemas = schemas.finish().map_err(RegistryError::SchemaTwice)?;
    let mut paths = json!({});
    for route in TABLE {
        let Some(shape) = shapes.get(&route.op) else {
            return Err(RegistryError::Missing(vec![route.op]));
        };
        let note = notes::of(route.op);
        let method = route.method().as_str().to_lowercase();
        paths[route.path][method] = operation::of(route, &note, shape, &schemas).into();
    }
    let mut document = components::frame(schemas);
    document["paths"] = paths;
    Ok(document)
}

/// The document as it is served. It describes its own route, too, so it can only be made once all
/// routes are bound.
#[derive(Clone, Default)]
pub struct Served(Arc<OnceLock<Bytes>>);

impl Served {
    /// Makes the document.
    ///
    /// # Errors
    /// As [`document`].
    pub fn make(&self, registry: &Registry) -> Result<(), RegistryError> {
        let text = document(registry)?.to_string();
        self.0.get_or_init(|| text.into());
        Ok(())
    }

    /// The handler of `GET /api/openapi.json`.
    pub fn handler(
        &self,
    ) -> impl Fn(Anyone, Input<Nothing>, Deps) -> Ready<Result<Resource<ApiDocument>, ApiError>> + use<>
    {
        let served = self.clone();
        move |_, _, _| {
            let text = served.0.get().cloned();
            ready(text.map(Resource::ready_made).ok_or_else(|| {
                // Routes are served only after `make`.
                ApiError::internal("the API document was not made")
            }))
        }
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
