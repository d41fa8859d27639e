//! Collects the JSON Schemas of types, each once, under its name.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

/// The schemas that the document's components hold.
#[derive(Debug, Default)]
pub struct Schemas {
    named: BTreeMap<String, Value>,
    /// Names that two different types have.
    ambiguous: Vec<String>,
}

impl Schemas {
    /// The schema of a type that stands for itself, such as the fields of a request.
    pub fn inline<T: ToSchema>(&mut self) -> Value {
        self.add_used_by::<T>();
        value_of(&<T as PartialSchema>::schema())
    }

    /// A reference to the schema of a type.
    pub fn reference<T: ToSchema>(&mut self) -> Value {
        let schema = self.inline::<T>();
        let name = T::name().into_owned();
        let reference = json!({"$ref": format!("#/components/schemas/{name}")});
        self.add(name, schema);
        reference
    }

    /// The success envelope with the fields of a type.
    pub fn enveloped<T: ToSchema>(&mut self) -> Value {
        let fields = self.inline::<T>();
        let success = json!({"$ref": "#/components/schemas/Success"});
        if fields.get("properties").is_none() && fields.get("allOf").is_none() {
            return success;
        }
        let fields = self.reference::<T>();
        json!({"allOf": [success, fields]})
    }

    fn add_used_by<T: ToSchema>(&mut self) {
        let mut used = Vec::new();
        T::schemas(&mut used);
        for (name, schema) in used {
            self.add(name, value_of(&schema));
        }
    }

    /// Adds a schema under a name.
    pub fn add(&mut self, name: String, schema: Value) {
        match self.named.get(&name) {
            Some(present) if *present != schema => self.ambiguous.push(name),
            Some(_) => {}
            None => {
                self.named.insert(name, schema);
            }
        }
    }

    /// All of them by name.
    ///
    /// # Errors
    /// The names that two different types have.
    pub fn finish(self) -> Result<Map<String, Value>, Vec<String>> {
        if self.ambiguous.is_empty() {
            Ok(self.named.into_iter().collect())
        } else {
            Err(self.ambiguous)
        }
    }
}

/// Calls a function with a schema and with each schema in it.
pub(super) fn for_each_schema(schema: &mut Value, call: &mut impl FnMut(&mut Map<String, Value>)) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    call(schema);
    for (keyword, part) in schema {
        match (keyword.as_str(), part) {
            ("properties", Value::Object(parts)) => {
                parts
                    .values_mut()
                    .for_each(|part| for_each_schema(part, call));
            }
            ("allOf" | "oneOf" | "anyOf", Value::Array(parts)) => {
                parts
                    .iter_mut()
                    .for_each(|part| for_each_schema(part, call));
            }
            ("items" | "additionalProperties" | "propertyNames", part) => {
                for_each_schema(part, call);
            }
            _ => {}
        }
    }
}

fn value_of(schema: &RefOr<Schema>) -> Value {
    // A schema is made of JSON; there is nothing in it that has no JSON form.
    let mut schema = serde_json::to_value(schema).unwrap_or_default();
    let parts = schema.get_mut("allOf").and_then(Value::as_array_mut);
    for part in parts.into_iter().flatten() {
        // The fields of a flattened option are there or not; utoipa says that null is in their place.
        let null = json!({"type": "null"});
        if let Some([fields, absent]) = part
            .get("oneOf")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            && *absent == null
        {
            *part = json!({"anyOf": [fields, {"type": "object"}]});
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(ToSchema)]
    #[schema(as = Thing)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct One {
        name: String,
    }

    #[derive(ToSchema)]
    #[schema(as = Thing)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Other {
        size: u32,
    }

    #[derive(ToSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Whole {
        #[serde(flatten)]
        part: Option<One>,
    }

    #[test]
    fn flattened_fields_may_be_absent() {
        let schema = Schemas::default().inline::<Whole>();
        let thing = json!({"$ref": "#/components/schemas/Thing"});
        let expected = json!([{"anyOf": [thing, {"type": "object"}]}]);
        assert_eq!(
            schema["allOf"].as_array().unwrap()[..1],
            expected.as_array().unwrap()[..]
        );
    }

    #[test]
    fn two_types_of_one_name_are_told() {
        let mut schemas = Schemas::default();
        schemas.reference::<One>();
        schemas.reference::<One>();
        schemas.reference::<Other>();
        assert_eq!(schemas.finish().unwrap_err(), ["Thing"]);
    }
}
