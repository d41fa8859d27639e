//! Examples, made from schemas: what a type says of its fields is enough to show one.

use serde_json::{Map, Value, json};

/// Schemas refer to each other; what goes deeper than this is left out.
const MAX_DEPTH: usize = 24;

/// An example of an answer: every field.
pub(super) fn of_answer(schema: &Value, components: &Map<String, Value>) -> Value {
    Examples { components }.of(schema, MAX_DEPTH)
}

/// An example of a request: the fields that are required, and those whose type gives one.
pub(super) fn of_request(schema: &Value, components: &Map<String, Value>) -> Value {
    let examples = Examples { components };
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|names| names.contains(&json!(name)));
    let mut fields = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if is_required(name) || property.get("example").is_some() {
            fields.insert(name.clone(), examples.of(property, MAX_DEPTH));
        }
    }
    Value::Object(fields)
}

struct Examples<'a> {
    components: &'a Map<String, Value>,
}

impl Examples<'_> {
    fn of(&self, schema: &Value, depth: usize) -> Value {
        let Some(depth) = depth.checked_sub(1) else {
            return Value::Null;
        };
        for given in ["example", "default"] {
            if let Some(example) = schema.get(given) {
                return example.clone();
            }
        }
        if let Some(first) = schema["examples"].get(0).or(schema["enum"].get(0)) {
            return first.clone();
        }
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap_or_default();
            let schema = self.components.get(name);
            return schema.map_or(Value::Null, |schema| self.of(schema, depth));
        }
        if let Some(parts) = schema["allOf"].as_array() {
            return self.all_of(parts, depth);
        }
        for choice in ["oneOf", "anyOf"] {
            if let Some(variants) = schema[choice].as_array() {
                let real = variants.iter().find(|variant| variant["type"] != "null");
                return real.map_or(Value::Null, |variant| self.of(variant, depth));
            }
        }
        self.of_type(schema, depth)
    }

    /// Objects that are one together.
    fn all_of(&self, parts: &[Value], depth: usize) -> Value {
        let mut whole = Map::new();
        for part in parts {
            if let Value::Object(fields) = self.of(part, depth) {
                whole.extend(fields);
            }
        }
        Value::Object(whole)
    }

    fn of_type(&self, schema: &Value, depth: usize) -> Value {
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().find(|kind| **kind != "null"),
            kind => Some(kind),
        };
        match kind.and_then(Value::as_str) {
            Some("object") => {
                let properties = schema["properties"].as_object().into_iter().flatten();
                let fields = properties.map(|(name, of)| (name.clone(), self.of(of, depth)));
                Value::Object(fields.collect())
            }
            Some("array") => match schema.get("items") {
                Some(items) => json!([self.of(items, depth)]),
                None => json!([]),
            },
            Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
            Some("boolean") => json!(false),
            Some("string") => json!("…"),
            _ => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_shows_every_field_and_a_request_what_matters() {
        let name = json!({"type": "string", "example": "alice"});
        let components = Map::from_iter([("Name".to_owned(), name)]);
        let named = json!({
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"$ref": "#/components/schemas/Name"},
                "size": {"type": ["integer", "null"], "minimum": 3},
                "since": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Name"}]},
            },
        });
        let expected = json!({"name": "alice", "size": 3, "since": "alice"});
        assert_eq!(of_answer(&named, &components), expected);
        assert_eq!(of_request(&named, &components), json!({"name": "alice"}));
        let success = json!({"type": "object", "properties": {"success": {"enum": [true]}}});
        let both = of_answer(&json!({"allOf": [success, named]}), &components);
        assert_eq!((&both["success"], &both["size"]), (&json!(true), &json!(3)));
    }

    #[test]
    fn a_schema_that_holds_itself_has_an_end() {
        let list = json!({"type": "array", "items": {"$ref": "#/components/schemas/List"}});
        let components = Map::from_iter([("List".to_owned(), list.clone())]);
        assert!(of_answer(&list, &components).is_array());
    }
}
