//! `get --sort-by`: by the server where its list has the order, else here, where all pages are read anyway.

use std::cmp::Ordering;

use schema::user::UserSort;
use serde_json::Value;

use crate::cli::kinds::KindInfo;
use crate::cli::output::cell::{at, plain};
use crate::cli::{Failure, Result};

/// An order of objects of one kind.
#[derive(Debug, PartialEq, Eq)]
pub enum Order {
    /// The server's, as the value of `sort`.
    Server(String),
    /// By a field, read to the end first.
    Here {
        /// The dotted field.
        field: String,
        /// The last one comes first.
        descending: bool,
    },
}

impl Order {
    /// The order of a kind by one of its columns, or by a field (`.a.b`); with `-` before it, the last one comes first.
    ///
    /// # Errors
    /// [`Failure::Usage`] for a column that the kind does not have; it says which there are.
    pub fn new(kind: &KindInfo, given: &str) -> Result<Self> {
        let (descending, name) = match given.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, given),
        };
        let field = match name.strip_prefix('.') {
            Some(field) if !field.is_empty() => field.to_owned(),
            _ => find_field(kind, name)?.to_owned(),
        };
        if kind.singular == "user" {
            let key = if field == "username" { "name" } else { &field };
            if key.parse::<UserSort>().is_ok() {
                let sign = if descending { "-" } else { "" };
                return Ok(Self::Server(format!("{sign}{key}")));
            }
        }
        Ok(Self::Here { field, descending })
    }

    /// Sorts objects by a field; those without a value come first, and equal ones stay in their order.
    pub fn sort(field: &str, descending: bool, items: &mut [Value]) {
        // Beside a size as people read it is the number of bytes.
        let number = field.strip_suffix("_str").unwrap_or(field);
        let key = |item: &Value| match at(item, number) {
            Value::Null => at(item, field).clone(),
            value => value.clone(),
        };
        items.sort_by(|a, b| {
            let order = compare(&key(a), &key(b));
            if descending { order.reverse() } else { order }
        });
    }
}

fn find_field(kind: &KindInfo, name: &str) -> Result<&'static str> {
    let plain_name = |text: &str| text.to_lowercase().replace([' ', '_'], "-");
    let wanted = plain_name(name);
    let mut columns = kind.columns(true);
    let found = columns.find(|column| plain_name(column.title) == wanted || column.field == name);
    found.map(|column| column.field).ok_or_else(|| {
        let titles = kind.columns(true).map(|column| plain_name(column.title));
        let titles: Vec<String> = titles.collect();
        Failure::Usage(format!(
            "{} have no column {name:?}; --sort-by takes {}, or a field such as .{}",
            kind.plural,
            titles.join(", "),
            kind.id
        ))
    })
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        (Value::Number(a), Value::Number(b)) => {
            let number = |number: &serde_json::Number| number.as_f64().unwrap_or_default();
            number(a).total_cmp(&number(b))
        }
        (a, b) => plain(a).to_lowercase().cmp(&plain(b).to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::kinds::named;

    #[test]
    fn columns_are_orders_of_the_server_or_of_the_client() {
        let order = |kind: &str, by: &str| Order::new(named(kind).unwrap(), by);
        let here = |field: &str, descending| Order::Here {
            field: field.to_owned(),
            descending,
        };
        for (kind, by, expected) in [
            ("users", "NAME", Order::Server("name".to_owned())),
            (
                "users",
                "-last-login",
                Order::Server("-last_login_at".to_owned()),
            ),
            ("users", "age", Order::Server("created_at".to_owned())),
            ("users", "ip", here("ip", false)),
            ("users", "-.health.reason", here("health.reason", true)),
            ("groups", "-members", here("member_count", true)),
            ("containers", "NEXT TRY", here("next_attempt_at", false)),
        ] {
            assert_eq!(order(kind, by).unwrap(), expected, "{kind} {by}");
        }
        let why = order("groups", "colour").unwrap_err().to_string();
        assert!(
            why.contains("name, parent, members") && why.contains(".name"),
            "{why}"
        );
    }

    #[test]
    fn values_are_compared_by_their_type() {
        let item = |size: Value| json!({"size": size, "size_str": size.as_u64().map(|_| "x")});
        let mut items = [json!(10), json!(9), Value::Null].map(item);
        Order::sort("size_str", false, &mut items);
        let sizes: Vec<&Value> = items.iter().map(|item| &item["size"]).collect();
        assert_eq!(sizes, [&Value::Null, &json!(9), &json!(10)]);
        let mut items = ["b", "A", "c"].map(|name| json!({"name": name}));
        Order::sort("name", true, &mut items);
        assert_eq!(
            plain(&json!(items.map(|item| item["name"].clone()))),
            "c, b, A"
        );
    }
}
