//! Values for fields.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::test_package::TestPackage;
use super::{Field, FieldType, Section, SettingPath, Storage};

fn field(kind: FieldType) -> Field {
    Field {
        key: "field".to_owned(),
        label: "Field".to_owned(),
        kind,
        storage: Storage::Config,
        path: SettingPath::dotted("a.b"),
        secret: false,
        required: false,
        options: vec!["tls".to_owned(), "none".to_owned()],
        default: None,
    }
}

#[rstest::rstest]
#[case(FieldType::Boolean, json!(true), json!(true))]
#[case(FieldType::Boolean, json!("false"), json!(false))]
#[case(FieldType::Integer, json!(-3), json!(-3))]
#[case(FieldType::Integer, json!(" 993 "), json!(993))]
#[case(FieldType::Number, json!(2.5), json!(2.5))]
#[case(FieldType::Number, json!("2.50"), json!(2.5))]
#[case(FieldType::Number, json!("7"), json!(7))]
#[case(FieldType::Text, json!("12345"), json!("12345"))]
#[case(FieldType::Text, json!(""), json!(""))]
#[case(FieldType::Password, json!("007"), json!("007"))]
#[case(FieldType::Password, json!("1e5"), json!("1e5"))]
#[case(FieldType::Select, json!("tls"), json!("tls"))]
#[case(FieldType::StringList, json!("a, b\nc,,\n"), json!(["a", "b", "c"]))]
#[case(FieldType::StringList, json!(["a,b", ""]), json!(["a,b", ""]))]
#[case(FieldType::StringList, json!([]), json!([]))]
#[case(FieldType::Json, json!({"a": [1, null]}), json!({"a": [1, null]}))]
#[case(FieldType::Json, json!("{\"a\": 1}"), json!({"a": 1}))]
#[case(FieldType::Json, json!("\"a\""), json!("a"))]
fn l21_a_value_gets_the_type_of_its_field(
    #[case] kind: FieldType,
    #[case] given: Value,
    #[case] stored: Value,
) {
    assert_eq!(field(kind).convert(&given).unwrap(), stored);
}

#[rstest::rstest]
#[case(FieldType::Boolean, json!("yes"))]
#[case(FieldType::Boolean, json!(1))]
#[case(FieldType::Integer, json!(2.5))]
#[case(FieldType::Integer, json!("2.5"))]
#[case(FieldType::Integer, json!(u64::MAX))]
#[case(FieldType::Integer, json!(true))]
#[case(FieldType::Number, json!("NaN"))]
#[case(FieldType::Number, json!("inf"))]
#[case(FieldType::Number, json!("1e999"))]
#[case(FieldType::Number, json!([1]))]
#[case(FieldType::Text, json!(12345))]
#[case(FieldType::Text, json!("a\u{0}b"))]
#[case(FieldType::Text, json!("x".repeat(70_000)))]
#[case(FieldType::Password, json!(12345))]
#[case(FieldType::Select, json!("ssl"))]
#[case(FieldType::StringList, json!(["a", 1]))]
#[case(FieldType::StringList, json!({"a": 1}))]
#[case(FieldType::StringList, json!(vec!["a"; 1001]))]
#[case(FieldType::StringList, json!("a,".repeat(1001)))]
#[case(FieldType::StringList, json!(vec!["x".repeat(60_000); 3]))]
#[case(FieldType::Json, json!("{"))]
#[case(FieldType::Json, json!("[".repeat(33) + &"]".repeat(33)))]
#[case(FieldType::Json, json!(vec!["x".repeat(60_000); 3]))]
fn a_wrong_value_is_refused_and_not_repeated(#[case] kind: FieldType, #[case] given: Value) {
    let message = field(kind).convert(&given).unwrap_err();
    assert!(message.starts_with("must"), "{message}");
    assert!(message.len() < 100, "{message}");
}

fn chat() -> Section {
    let adapter = TestPackage::echo().load().unwrap();
    adapter.ui_schemas[&3].channel("chat").unwrap().clone()
}

fn values(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn stored(keys: &[&str]) -> BTreeSet<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

#[test]
fn an_empty_secret_is_unchanged_and_null_clears() {
    let both = stored(&["client_id", "client_secret", "allow_from"]);
    let given =
        json!({"client_secret": "", "allow_from": null, "mention_only": "", "client_id": "x"});
    let changes = chat().check_values(&values(given), &both).unwrap();
    assert_eq!(
        changes.changes.into_iter().collect::<Vec<_>>(),
        [
            ("allow_from".to_owned(), None),
            ("client_id".to_owned(), Some(json!("x"))),
            ("mention_only".to_owned(), None),
        ]
    );
}

#[test]
fn whole_numbers_for_texts_are_taken_with_a_warning() {
    let given = json!({"allow_from": [123456789, "a", -1001234567890_i64, u64::MAX], "client_id": 7, "client_secret": "1"});
    let checked = chat().check_values(&values(given), &stored(&[])).unwrap();
    let texts = json!(["123456789", "a", "-1001234567890", "18446744073709551615"]);
    assert_eq!(checked.changes["allow_from"], Some(texts));
    assert_eq!(checked.changes["client_id"], Some(json!("7")));
    let warning = "is a text: the number is taken as one; put it in quotes";
    let warnings = ["allow_from", "client_id"].map(|key| format!("{key} {warning}"));
    assert_eq!(checked.warnings, warnings);
    for odd in [json!(1.5), json!([1e30]), json!([true]), json!([[1]])] {
        let given = json!({"allow_from": odd, "client_id": "a"});
        let problems = chat().check_values(&values(given), &stored(&["client_secret"]));
        let problems = problems.unwrap_err();
        assert_eq!(problems.len(), 1);
        assert!(problems[0].message.contains("text"), "{problems:?}");
    }
}

#[test]
fn what_is_required_must_be_there_in_the_end() {
    let problems = |given: Value, has: &[&str]| -> Vec<String> {
        chat()
            .check_values(&values(given), &stored(has))
            .err()
            .unwrap_or_default()
            .into_iter()
            .map(|problem| format!("{} {}", problem.key, problem.message))
            .collect()
    };
    let none: Vec<String> = Vec::new();
    assert_eq!(problems(json!({}), &["client_id", "client_secret"]), none);
    assert_eq!(
        problems(json!({"client_secret": ""}), &[]),
        ["client_id is required", "client_secret is required"]
    );
    let given = json!({"client_id": " ", "client_secret": null});
    assert_eq!(
        problems(given, &["client_id", "client_secret"]),
        ["client_id is required", "client_secret is required"]
    );
    assert_eq!(
        problems(
            json!({"client_id": 1.5, "port": 1, "mention_only": "maybe"}),
            &["client_secret"]
        ),
        [
            "client_id must be a text; put it in quotes",
            "mention_only must be true or false",
            "port is not a field of chat",
        ]
    );
}
