use rstest::rstest;
use serde_json::{Value, json};
use url::Url;

use super::*;
use crate::config::{ProblemCode, find};

fn check(policy: Value) -> Result<(), (ProblemCode, String)> {
    let checked = find("mcp.policy").unwrap().check(&policy);
    checked.map(drop).map_err(|it| (it.code, it.message))
}

#[rstest]
#[case(json!({}))]
#[case(json!({"browser": {"mode": "off"}, "groups": {"Team A": {"computer": {"mode": "read-only", "devices": ["a-1"]}}}}))]
#[case(json!({"users": {"alice": {"browser": {"urls": {"deny": ["*.example.org", "example.org/admin", "[::1]:8080"], "allow": [], "builtin": false},
    "tools": {"deny": ["browser_execute", "browser_tab_*", "*"]}, "private_addresses": false}}}}))]
fn policies_of_the_right_shape_are_taken(#[case] policy: Value) {
    assert_eq!(check(policy.clone()), Ok(()));
    let read: Policy = serde_json::from_value(policy.clone()).unwrap();
    assert_eq!(read == Policy::default(), policy == json!({}));
}

#[rstest]
#[case(json!({"browser": {"mode": "ask"}}), ProblemCode::NotAvailableYet, "mcp.policy: browser.mode: ask is not available yet; use off, read-only or auto")]
#[case(json!({"users": {"a": {"browser": {"mode": "ask"}}}}), ProblemCode::NotAvailableYet, "users.a.browser.mode: ask is not available")]
#[case(json!({"browser": {"mode": "on"}}), ProblemCode::InvalidValue, "browser.mode: value is not one of")]
#[case(json!({"browser": {"mod": "off"}}), ProblemCode::InvalidValue, "mcp.policy: browser: Additional properties are not allowed ('mod' was unexpected)")]
#[case(json!({"printer": {}}), ProblemCode::InvalidValue, "'printer' was unexpected")]
#[case(json!({"computer": {"urls": {}}}), ProblemCode::InvalidValue, "'urls' was unexpected")]
#[case(json!({"browser": []}), ProblemCode::InvalidType, "mcp.policy: browser: value is not of type \"object\"")]
#[case(json!({"browser": {"private_addresses": "no"}}), ProblemCode::InvalidType, "browser.private_addresses: value is not of type")]
#[case(json!({"browser": {"urls": {"deny": ["https://a.example/"]}}}), ProblemCode::InvalidValue, "browser.urls.deny.0 must be a host")]
#[case(json!({"groups": {"g": {"browser": {"tools": {"allow": ["browser_click", "Browser"]}}}}}), ProblemCode::InvalidValue, "groups.g.browser.tools.allow.1 must be the name of a tool")]
#[case(json!({"browser": {"tools": {"deny": ["browser_exec"]}}}), ProblemCode::InvalidValue, "mcp.policy: browser.tools.deny.0 matches no tool of the browser: browser_exec")]
#[case(json!({"users": {"a": {"computer": {"tools": {"allow": ["computer", "browser_*"]}}}}}), ProblemCode::InvalidValue, "users.a.computer.tools.allow.1 matches no tool of the desktop: browser_*")]
#[case(json!({"browser": {"tools": {"deny": ["browser_status"]}}}), ProblemCode::InvalidValue, "browser.tools.deny.0 names a tool that cannot be denied: browser_status")]
#[case(json!({"users": {"a:b": {}}}), ProblemCode::InvalidValue, "users: \"a:b\" is not valid: a user name has 1 to 64 characters")]
#[case(json!({"groups": {"a\nb": {}}}), ProblemCode::InvalidValue, "groups: \"a\\nb\" is not valid: a name has 1 to 128 characters")]
#[case(json!({"users": {"a".repeat(200): {}}}), ProblemCode::InvalidValue, "users: a name of 200 bytes is not valid: a user name")]
#[case(json!({"users": {"bob": {}, "BOB": {}}}), ProblemCode::InvalidValue, "was given twice")]
fn others_are_refused_with_field_and_rule(
    #[case] policy: Value,
    #[case] code: ProblemCode,
    #[case] said: &str,
) {
    let (found, message) = check(policy).unwrap_err();
    assert_eq!(found, code, "{message}");
    assert!(
        message.starts_with("mcp.policy: ") && message.contains(said),
        "{message}"
    );
}

#[rstest]
#[case("example.org", "https://example.org/", true)]
#[case("example.org", "http://EXAMPLE.org.:8080/a?b", true)]
#[case("example.org", "https://a.example.org/", false)]
#[case("example.org", "https://user@evil.test/example.org", false)]
#[case("*.example.org", "https://a.b.example.org/", true)]
#[case("*.example.org", "https://example.org/", false)]
#[case("*.example.org", "https://badexample.org/", false)]
#[case("example.org:8443", "https://example.org:8443/", true)]
#[case("example.org:443", "https://example.org/", true)]
#[case("example.org:8443", "https://example.org/", false)]
#[case("example.org/admin", "https://example.org/admin/users", true)]
#[case("example.org/admin", "https://example.org/administrator", false)]
#[case("example.org/admin", "https://example.org/a/../admin", true)]
#[case("example.org/a/", "https://example.org/a", false)]
#[case("127.0.0.1", "http://2130706433/", true)]
#[case("[::1]", "http://[0:0:0:0:0:0:0:1]/", true)]
#[case("[::1]", "http://0.0.0.1/", false)]
#[case("10.0.0.1", "http://[::ffff:10.0.0.1]/", true)]
#[case("10.0.0.1", "http://[::10.0.0.1]/", true)]
#[case("10.0.0.1", "http://[64:ff9b::a00:1]/", true)]
#[case("10.0.0.1", "http://[64:ff9b:1::a00:1]/", false)]
#[case("[::ffff:10.0.0.1]:80", "http://10.0.0.1/", true)]
#[case("b\u{fc}cher.example", "https://xn--bcher-kva.example/", true)]
fn patterns_are_compared_with_addresses(
    #[case] pattern: &str,
    #[case] url: &str,
    #[case] expected: bool,
) {
    let pattern: UrlPattern = pattern.parse().unwrap();
    let url = Url::parse(url).unwrap();
    assert_eq!(pattern.matches(&url), expected);
    assert_eq!(pattern.matches_any_spelling(&url), expected);
}

#[rstest]
#[case("https://example.org/%61dmin")]
#[case("https://example.org//Admin/x")]
#[case("https://example.org/admin;x=1")]
#[case("https://example.org/admin%3Bx=1/y")]
#[case("https://example.org/a/..%2fadmin")]
#[case("https://example.org/a%2f..%2fadmin%2f")]
#[case("https://example.org/a/..;/admin")]
#[case("https://example.org/a/..%5cadmin")]
#[case("https://example.org/..%2fadmin")]
#[case("https://example.org/.%2fadmin")]
#[case("https://example.org/Admin/..%2fpublic")]
fn what_is_denied_is_denied_in_every_spelling(#[case] url: &str) {
    let pattern: UrlPattern = "example.org/admin".parse().unwrap();
    let url = Url::parse(url).unwrap();
    assert!(pattern.matches_any_spelling(&url) && !pattern.matches(&url));
}

#[rstest]
#[case("example.org/a/", "https://example.org/%61", false)]
#[case("example.org/a/", "https://example.org/%61/", true)]
#[case("example.org/a/", "https://example.org/%61%2f", true)]
#[case("example.org/a/", "https://example.org/%61/b", true)]
#[case("example.org/a/", "https://example.org/b/..%2fa%2f.", true)]
#[case("example.org/a", "https://example.org/%61bc", false)]
#[case("example.org/", "https://example.org/..%2f..", true)]
fn a_slash_at_the_end_of_a_pattern_means_what_lies_below(
    #[case] pattern: &str,
    #[case] url: &str,
    #[case] expected: bool,
) {
    let pattern: UrlPattern = pattern.parse().unwrap();
    assert_eq!(
        pattern.matches_any_spelling(&Url::parse(url).unwrap()),
        expected
    );
}

#[test]
fn what_is_allowed_leads_nowhere_else() {
    let pattern: UrlPattern = "example.org/app".parse().unwrap();
    let allowed = |url: &str| pattern.matches(&Url::parse(url).unwrap());
    assert!(allowed("https://example.org/app/x;y=1") && allowed("https://example.org/app/%41"));
    assert!(!allowed("https://example.org/app/..%2fadmin"));
    assert!(!allowed("https://example.org/app/..;/admin"));
}

#[rstest]
#[case("")]
#[case("*")]
#[case("*.*.org")]
#[case("*.127.0.0.1")]
#[case("a b")]
#[case("a@b")]
#[case("a.example/x?y")]
#[case("a.example:port")]
#[case("https://a.example")]
#[case("/only/a/path")]
fn what_names_no_page_is_no_pattern(#[case] text: &str) {
    assert!(text.parse::<UrlPattern>().is_err());
}
