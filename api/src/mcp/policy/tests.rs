use rstest::rstest;
use schema::config::policy::Mode;
use schema::ids::PlainName;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::executors::Changes;

fn in_effect(policy: Value, groups: &[&str]) -> InEffect {
    let policies: Policies = serde_json::from_value::<schema::config::policy::Policy>(policy)
        .unwrap()
        .into();
    let groups: Vec<PlainName> = groups.iter().map(|name| name.parse().unwrap()).collect();
    policies.in_effect(Service::Browser, &groups, &"alice".parse().unwrap())
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn three_layers() -> Value {
    json!({
        "browser": {"mode": "read-only", "devices": ["laptop", "tablet"], "tools": {"deny": ["browser_execute"]}},
        "groups": {
            "Dev": {"browser": {"mode": "auto", "tools": {"allow": ["browser_*"]}}},
            "staff": {"browser": {"mode": "off", "tools": {"allow": ["browser_click"], "deny": []}}},
            "ops": {"browser": {"private_addresses": false}},
        },
        "users": {"ALICE": {"browser": {"urls": {"builtin": false}}}, "bob": {"browser": {"mode": "off"}}},
    })
}

#[rstest]
#[case::general(&[], Mode::ReadOnly)]
#[case::a_group_replaces_it(&["dev"], Mode::Auto)]
#[case::of_groups_the_strictest_counts(&["dev", "staff"], Mode::Off)]
#[case::a_group_that_says_nothing_leaves_it(&["ops"], Mode::ReadOnly)]
#[case::an_unknown_group_says_nothing(&["others"], Mode::ReadOnly)]
fn the_most_specific_layer_says_the_mode(#[case] groups: &[&str], #[case] expected: Mode) {
    assert_eq!(in_effect(three_layers(), groups).mode, expected);
    let mut policy = three_layers();
    policy["users"]["ALICE"]["browser"]["mode"] = json!("auto");
    assert_eq!(in_effect(policy, groups).mode, Mode::Auto);
}

#[test]
fn what_a_layer_does_not_name_stays() {
    let rules = in_effect(three_layers(), &["ops"]);
    assert!(!rules.private_addresses && !rules.builtin);
    assert_eq!(rules.devices.as_deref().unwrap(), ["laptop", "tablet"]);
    assert_eq!(rules.tool(&["browser_execute"], true), Err(Denied::Tool));
    let nothing = in_effect(json!({}), &[]);
    assert!(nothing.private_addresses && nothing.builtin && nothing.devices.is_none());
    assert_eq!(nothing.mode, Mode::Auto);
}

#[test]
fn of_several_groups_a_tool_has_to_be_allowed_by_each() {
    let mut policy = three_layers();
    policy["groups"]["staff"]["browser"]["mode"] = json!("auto");
    let rules = in_effect(policy, &["dev", "staff"]);
    assert_eq!(rules.tool(&["browser_click"], false), Ok(()));
    assert_eq!(rules.tool(&["browser_type"], false), Err(Denied::Tool));
    // The list that is empty has replaced the general one.
    assert!(rules.no_tools.is_empty());
}

#[test]
fn devices_are_those_that_each_group_allows() {
    let policy = json!({"groups": {
        "a": {"browser": {"devices": ["x", "y"]}}, "b": {"browser": {"devices": ["y"]}},
        "c": {"browser": {"devices": ["z"]}}, "d": {"browser": {"devices": []}},
    }});
    let devices = |groups: &[&str]| in_effect(policy.clone(), groups).devices;
    assert_eq!(devices(&["a", "b", "d"]).as_deref().unwrap(), ["y"]);
    assert_eq!(devices(&["a", "c"]).as_deref().unwrap(), [""; 0]);
    assert_eq!(devices(&["d"]), None);
}

#[rstest]
#[case("off", "browser_get_content", true, Err(Denied::Off(Service::Browser)))]
#[case("read-only", "browser_get_content", true, Ok(()))]
#[case("read-only", "browser_click", false, Err(Denied::ReadOnly))]
#[case("auto", "browser_click", false, Ok(()))]
#[case("auto", "browser_tab_close", false, Err(Denied::Tool))]
#[case("auto", "computer_wait", true, Err(Denied::Tool))]
fn modes_and_lists_decide_about_tools(
    #[case] mode: &str,
    #[case] tool: &str,
    #[case] read_only: bool,
    #[case] expected: Result<(), Denied>,
) {
    let tools = json!({"allow": ["browser_*"], "deny": ["browser_tab_*"]});
    let rules = in_effect(json!({"browser": {"mode": mode, "tools": tools}}), &[]);
    assert_eq!(rules.tool(&[tool], read_only), expected);
}

fn own() -> Own {
    let mut own = Own::listening(vec![
        "0.0.0.0:8080".parse().unwrap(),
        "192.0.2.7:8081".parse().unwrap(),
    ]);
    own.add_url("https://yard.example/base");
    own.add_header("other.example:8080");
    own.add_address([10, 88, 0, 1].into());
    own
}

#[rstest]
#[case("https://example.org/", Ok(()))]
#[case("about:blank", Err(Denied::Blank))]
#[case("about:blank#x", Err(Denied::Blank))]
#[case("about:config", Err(Denied::Scheme))]
#[case("file:///etc/passwd", Err(Denied::Scheme))]
#[case("chrome://settings", Err(Denied::Scheme))]
#[case("javascript:alert(1)", Err(Denied::Scheme))]
#[case("data:text/html,x", Err(Denied::Scheme))]
#[case("view-source:https://example.org", Err(Denied::Scheme))]
#[case("https://yard.example/api/mcp/token", Err(Denied::Own))]
#[case("https://YARD.example.:443/", Err(Denied::Own))]
#[case("https://yard.example:8443/", Ok(()))]
#[case("http://yard.example:8080/", Err(Denied::Own))]
#[case("https://yard.example.:8081/", Err(Denied::Own))]
#[case("http://other.example:8081/", Err(Denied::Own))]
#[case("http://other.example/", Ok(()))]
#[case("https://else.example:8080/", Ok(()))]
#[case("http://other.example:8080/manage", Err(Denied::Own))]
#[case("http://localhost:8080/", Err(Denied::Own))]
#[case("http://a.localhost:8080/", Err(Denied::Own))]
#[case("http://2130706433:8080/", Err(Denied::Own))]
#[case("http://[::ffff:127.0.0.1]:8080/", Err(Denied::Own))]
#[case("http://[::127.0.0.1]:8080/", Err(Denied::Own))]
#[case("http://[64:ff9b::7f00:1]:8080/", Err(Denied::Own))]
#[case("http://[64:ff9b::a58:1]:9/", Err(Denied::Own))]
#[case("http://[::ffff:192.0.2.7]:8081/", Err(Denied::Own))]
#[case("http://[2001:db8::7]:8081/", Ok(()))]
#[case("http://localhost:3000/", Ok(()))]
#[case("http://192.0.2.7:8081/", Err(Denied::Own))]
#[case("http://10.88.0.1:9/", Err(Denied::Own))]
#[case("https://accounts.google.com/signin", Err(Denied::Builtin))]
#[case("https://tenant.okta.com/", Err(Denied::Builtin))]
#[case("https://github.com/login/oauth", Err(Denied::Builtin))]
#[case("https://github.com/rust-lang", Ok(()))]
#[case("https://evil.example/", Err(Denied::Url))]
#[case("https://a.evil.example/%61dmin", Ok(()))]
#[case("https://wiki.example/%41dmin", Err(Denied::Url))]
#[case("https://wiki.example/admin;x=1", Err(Denied::Url))]
#[case("https://wiki.example/a/..%2fadmin", Err(Denied::Url))]
#[case("http://[::ffff:203.0.113.9]/", Err(Denied::Url))]
fn pages_are_judged_by_their_address(#[case] page: &str, #[case] expected: Result<(), Denied>) {
    let urls = json!({"deny": ["evil.example", "wiki.example/admin", "203.0.113.9"]});
    let rules = in_effect(json!({"browser": {"urls": urls}}), &[]);
    assert_eq!(rules.page(&url(page), &own()), expected, "{page}");
}

#[test]
fn a_service_of_its_own_name_is_denied_at_its_listeners_ports_too() {
    let mut own = Own::listening(vec!["0.0.0.0:8443".parse().unwrap()]);
    own.add_url("https://agents.example.org");
    let judged = |page: &str| in_effect(json!({}), &[]).page(&url(page), &own);
    assert_eq!(judged("https://agents.example.org:8443/"), Err(Denied::Own));
    assert_eq!(judged("https://agents.example.org:9443/"), Ok(()));
    assert_eq!(judged("https://others.example.org:8443/"), Ok(()));
}

#[test]
fn an_empty_page_may_be_opened_and_nothing_else_that_is_no_web_page() {
    let rules = in_effect(json!({"browser": {"urls": {"allow": ["a.example"]}}}), &[]);
    let opens = |page: &str| rules.opens(&url(page), &Own::default());
    assert_eq!(opens("about:blank"), Ok(()));
    assert_eq!(opens("about:config"), Err(Denied::Scheme));
    assert_eq!(opens("https://b.example/"), Err(Denied::Url));
}

#[rstest]
#[case(Service::Browser, "browser")]
#[case(Service::Computer, "desktop")]
fn it_is_said_which_tools_are_switched_off(#[case] service: Service, #[case] said: &str) {
    let said = format!("an administrator has switched off the {said} tools");
    assert_eq!(Denied::Off(service).to_string(), said);
}

#[rstest]
#[case("http://10.0.0.1/")]
#[case("http://100.64.0.1/")]
#[case("http://169.254.169.254/latest/meta-data")]
#[case("http://[fd00::1]/")]
#[case("http://[::1]:3000/")]
#[case("http://0.0.0.0/")]
#[case("http://localhost/")]
#[case("http://[::ffff:10.0.0.1]/")]
#[case("http://[::169.254.169.254]/")]
#[case("http://[64:ff9b::a00:1]/")]
#[case("http://intranet/")]
#[case("http://printer.local./")]
fn private_addresses_can_be_denied(#[case] page: &str) {
    let denied = in_effect(json!({"browser": {"private_addresses": false}}), &[]);
    let nowhere = Own::default();
    assert_eq!(denied.page(&url(page), &nowhere), Err(Denied::Private));
    assert_eq!(denied.page(&url("http://8.8.8.8/"), &nowhere), Ok(()));
    assert_eq!(in_effect(json!({}), &[]).page(&url(page), &nowhere), Ok(()));
}

#[test]
fn only_pages_on_each_list_may_be_visited_and_the_builtin_list_can_be_left_out() {
    let policy = json!({
        "groups": {"a": {"browser": {"urls": {"allow": ["*.example.org", "accounts.google.com"], "builtin": false}}},
                   "b": {"browser": {"urls": {"allow": ["wiki.example.org/app"]}}}},
    });
    let page = |groups: &[&str], page: &str| {
        in_effect(policy.clone(), groups).page(&url(page), &Own::default())
    };
    assert_eq!(page(&["a"], "https://accounts.google.com/"), Ok(()));
    assert_eq!(page(&["a"], "https://example.com/"), Err(Denied::Url));
    assert_eq!(page(&["a", "b"], "https://wiki.example.org/app/x"), Ok(()));
    assert_eq!(
        page(&["a", "b"], "https://wiki.example.org/"),
        Err(Denied::Url)
    );
    // What is allowed is compared as it is written.
    let other = "https://wiki.example.org/%61pp";
    assert_eq!(page(&["b"], other), Err(Denied::Url));
}

#[test]
fn the_configuration_knows_the_tools_of_the_catalogue() {
    let catalogue: Value = serde_json::from_str(include_str!("../tools/catalogue.json")).unwrap();
    let rows = catalogue.as_array().unwrap().iter();
    let named: Vec<&str> = rows.map(|row| row["name"].as_str().unwrap()).collect();
    let listed = include_str!("../../../../schema/src/config/policy/tools.txt");
    assert_eq!(listed.lines().collect::<Vec<_>>(), named);
    // By which the configuration tells the tools of one service from those of the other.
    for row in catalogue.as_array().unwrap() {
        let [name, service] = [&row["name"], &row["service"]].map(|it| it.as_str().unwrap());
        assert!(name.starts_with(service), "{name}");
    }
}

#[test]
fn every_line_of_the_builtin_list_is_a_pattern() {
    let lines = include_str!("builtin.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut count = 0;
    for line in lines {
        let read = line.parse::<schema::config::policy::UrlPattern>();
        assert!(read.is_ok(), "{line}");
        count += 1;
    }
    assert!(count > 50);
}

#[rstest]
#[case(r#"{"url":"https://a.example/"}"#, Some("https://a.example/"))]
#[case(
    r#"{"success":true,"tab":{"id":1,"url":"https://a.example/x"}}"#,
    Some("https://a.example/x")
)]
#[case(
    r#"{"content":[{"type":"text","text":"{\"tab\":{\"url\":\"https://a.example/\"}}"}]}"#,
    Some("https://a.example/")
)]
#[case(r#"{"tab":{"url":""}}"#, None)]
#[case(r#"{"tab":null}"#, None)]
#[case(r#""https""#, None)]
fn the_address_of_the_tab_is_found_in_an_answer(
    #[case] answer: &str,
    #[case] expected: Option<&str>,
) {
    let raw = RawValue::from_string(answer.to_owned()).unwrap();
    assert_eq!(page::address(&raw).as_ref().map(Url::as_str), expected);
}

#[test]
fn a_page_that_was_read_before_or_during_a_change_is_not_believed() {
    let pages = Cache::new(10);
    let [changed, other] = [ConnectionId(1), ConnectionId(2)];
    for connection in [changed, other] {
        pages.insert(connection, url("https://a.example/"));
    }
    let changes = Arc::<Changes>::default();
    let before = changes.now();
    let changing = page::Changing::begin(&pages, changed, &changes);
    assert_eq!(pages.get(&changed), None);
    let meanwhile = changes.now();
    assert!(changes.went_on(before) && meanwhile.was_changing() && !before.was_changing());
    pages.insert(changed, url("https://a.example/"));
    drop(changing);
    assert_eq!(pages.get(&changed), None);
    assert!(pages.get(&other).is_some());
    // Whoever has looked meanwhile hears of it by having seen it begun.
    assert!(!changes.went_on(meanwhile) && !changes.now().was_changing());
}

#[test]
fn cookies_of_its_own_hosts_are_known_at_any_port() {
    let hosts = ["yard.example", "other.example", "10.88.0.1", "0x0a.88.0.1"];
    assert!(hosts.iter().all(|host| own().has_host(host)));
    let others = ["example", "www.yard.example", "10.88.0.2", "a b", ""];
    assert!(!others.iter().any(|host| own().has_host(host)));
}
