//! The API document: OpenAPI 3.1, made from the access table and from the types of the handlers.

mod schemas;

use serde_json::Value;
use utoipa::ToSchema;

pub use schemas::Schemas;

use crate::answer::{Answers, Body};

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
