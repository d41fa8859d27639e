//! Reading and writing files.

use super::*;

fn read(text: &str) -> Result<Value, String> {
    Format::YamlOfSecrets.read(text.as_bytes())
}

#[rstest::rstest]
#[case::float("1e5")]
#[case::zeros("007")]
#[case::trailing("0.50")]
#[case::hex("0x1F")]
#[case::octal("0o17")]
#[case::plus("+123")]
#[case::long("123456789012345678901234567890")]
#[case::longer("1234567890123456789012345678901234567890123456789")]
#[case::infinity(".inf")]
#[case::nan(".nan")]
#[case::exponent("12E03")]
#[case::date("2026-01-01")]
#[case::time("12:30:45")]
#[case::underscores("1_000")]
fn l21_numeric_looking_passwords_stay_what_they_are(#[case] password: &str) {
    let plain = read(&format!(
        "a:\n  password: {password}\n  list: [{password}]\n"
    ))
    .unwrap();
    assert_eq!(
        plain,
        json!({"a": {"password": password, "list": [password]}})
    );
    // And as texts they come back from what is written, again and again.
    let written = Format::YamlOfSecrets.write(&plain).unwrap();
    assert_eq!(Format::YamlOfSecrets.read(&written).unwrap(), plain);
    assert_eq!(Format::Yaml.read(&written).unwrap(), plain);
}

#[test]
fn plain_numbers_truths_and_nothings_stay_what_they_are() {
    let text =
        "a: 1\nb: -2.5\nc: true\nd: null\ne: ~\nf:\ng: [1, 2]\nh: {}\ni: 18446744073709551615\n";
    let expected = json!({
        "a": 1, "b": -2.5, "c": true, "d": null, "e": null, "f": null, "g": [1, 2], "h": {},
        "i": u64::MAX,
    });
    assert_eq!(read(text).unwrap(), expected);
    assert_eq!(Format::Yaml.read(text.as_bytes()).unwrap(), expected);
}

#[test]
fn names_are_texts_whatever_they_look_like() {
    let document = read("12345: a\ntrue: b\n1e5: c\n").unwrap();
    assert_eq!(document, json!({"12345": "a", "true": "b", "1e5": "c"}));
    let written = Format::YamlOfSecrets.write(&document).unwrap();
    assert_eq!(Format::YamlOfSecrets.read(&written).unwrap(), document);
}

#[test]
fn l21_every_text_is_quoted_and_every_name_that_other_readers_take_for_something_else() {
    for word in [
        "no",
        "Yes",
        "on",
        "y",
        "1_000",
        "12:30:45",
        "2026-01-01",
        "~",
        "=",
        "<<",
        "",
    ] {
        let document = json!({"a": word, word: [word]});
        let text = String::from_utf8(Format::Yaml.write(&document).unwrap()).unwrap();
        assert_eq!(text.matches(&format!("'{word}'")).count(), 3, "{text}");
        assert_eq!(Format::Yaml.read(text.as_bytes()).unwrap(), document);
    }
    let long = "x".repeat(5000);
    let document = json!({&long: {&long: [[], [[1]], {}, {&long: null}]}, "line\n\u{85}\u{2028}": "\u{feff}\t\u{1}\""});
    for format in [Format::Yaml, Format::YamlOfSecrets] {
        let written = format.write(&document).unwrap();
        assert_eq!(format.read(&written).unwrap(), document);
    }
}

#[test]
fn aliases_are_read_and_comments_alone_are_nothing() {
    let document = read("a: &x {token: '1'}\nb: *x\n").unwrap();
    assert_eq!(document, json!({"a": {"token": "1"}, "b": {"token": "1"}}));
    assert_eq!(read("# nothing\n").unwrap(), json!({}));
    assert_eq!(read("").unwrap(), json!({}));
}

#[test]
fn merge_keys_are_applied_because_aliases_are_not_written_back() {
    let text = "x: &x {a: 1, b: 1}\ny: &y {a: 2, c: 2}\none: {<<: *x, a: 3}\ntwo: {<<: [*x, *y]}\nname: {<<: 1}\n";
    let document = read(text).unwrap();
    assert_eq!(document["one"], json!({"a": 3, "b": 1}));
    assert_eq!(document["two"], json!({"a": 1, "b": 1, "c": 2}));
    assert_eq!(document["name"], json!({"<<": 1}));
}

#[rstest::rstest]
#[case::list("- a", "is not a map of settings")]
#[case::text("text", "is not a map of settings")]
#[case::broken("a: [", "is not YAML (line")]
#[case::twice("a: 1\na: 2\n", "is not YAML")]
#[case::tag("a: !vault secret\n", "is not YAML")]
#[case::documents("a: 1\n---\nb: 1\n", "is not YAML")]
#[case::name("[1, 2]: a\n", "is not YAML")]
#[case::alias("a: *nowhere\n", "is not YAML")]
fn what_cannot_be_written_back_is_refused(#[case] text: &str, #[case] says: &str) {
    let message = read(text).unwrap_err();
    assert!(message.contains(says), "{message}");
    assert!(!message.contains("secret"), "{message}");
}

#[test]
fn json_is_written_with_sorted_names_two_spaces_and_a_newline() {
    let document = Format::Json
        .read(br#"{"b":[1,{"d":2,"c":"\u00e9"}],"a":{}}"#)
        .unwrap();
    let text = String::from_utf8(Format::Json.write(&document).unwrap()).unwrap();
    assert_eq!(
        text,
        "{\n  \"a\": {},\n  \"b\": [\n    1,\n    {\n      \"c\": \"é\",\n      \"d\": 2\n    }\n  ]\n}\n"
    );
}

#[test]
fn yaml_is_written_with_sorted_names_and_a_newline() {
    let document = json!({"b": {"d": "1", "c": ["x", 1, {"e": "it's"}]}, "a": {}});
    let text = String::from_utf8(Format::Yaml.write(&document).unwrap()).unwrap();
    assert_eq!(
        text,
        "a: {}\nb:\n  c:\n    - 'x'\n    - 1\n    -\n      e: 'it''s'\n  d: '1'\n"
    );
}

proptest::proptest! {
    #[test]
    fn l21_every_text_survives_yaml(text in proptest::string::string_regex("(?s).{0,24}").unwrap(), name in "[ -~]{0,8}") {
        // The reader cannot tell a quoted "<<" from a merge key; above a map it is always one.
        proptest::prop_assume!(text != "<<");
        let document = json!({&name: text, &text: {"list": [[text], {&text: name}]}});
        for format in [Format::Json, Format::Yaml, Format::YamlOfSecrets] {
            let written = format.write(&document).unwrap();
            proptest::prop_assert_eq!(format.read(&written).unwrap(), document.clone());
        }
    }

    #[test]
    fn every_number_survives(float in proptest::num::f64::NORMAL | proptest::num::f64::ZERO, whole in proptest::num::i64::ANY) {
        let document = json!({"float": float, "whole": whole});
        for format in [Format::Json, Format::Yaml, Format::YamlOfSecrets] {
            let written = format.write(&document).unwrap();
            proptest::prop_assert_eq!(format.read(&written).unwrap(), document.clone());
        }
    }
}
