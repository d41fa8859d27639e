//! How deep a document is nested.

use serde_json::Value;

/// Whether a value has more than `levels` objects and lists around one another.
pub(super) fn nests_deeper_than(value: &Value, levels: usize) -> bool {
    let deeper = |inner: &Value| nests_deeper_than(inner, levels.saturating_sub(1));
    match value {
        Value::Object(_) | Value::Array(_) if levels == 0 => true,
        Value::Object(members) => members.values().any(deeper),
        Value::Array(items) => items.iter().any(deeper),
        _ => false,
    }
}
