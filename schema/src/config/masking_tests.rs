//! What of `agent` is shown, and what it stands for when it is sent back.

use serde_json::{Value, json};

use super::masking::{Unmasked, mask, unmask};
use super::{MASK, find};
use crate::adapter::{Adapter, SecretPaths};

fn shown_by(paths: &SecretPaths, value: &Value) -> Value {
    mask(find("agent").unwrap(), value.clone(), paths)
}

fn shown(value: &Value) -> Value {
    shown_by(&SecretPaths::default(), value)
}

/// What saving `new` over `stored` gives.
fn saved(new: &Value, stored: &Value) -> Result<Value, Unmasked> {
    unmask(new, stored, &shown(stored))
}

// In each case `S…` is secret, and nothing else is.
#[rstest::rstest]
// Names.
#[case::names(json!({"api_key": "S", "apiKey": "S", "X-Api-Key": "S", "api_keys": ["S", "S"], "clientSecret": "S"}))]
#[case::aes_key(json!({"encoding_aes_key": "S", "encodingAesKey": "S", "public_key": "p", "hotkey": "p"}))]
#[case::passwords(json!({"nickserv_pass": "S", "sasl-password": "S", "pwd": "S", "passphrase": "S", "bypass": "p"}))]
#[case::webhooks(json!({"webhook": "S", "webhooks": {"a": {"url": "S"}}, "webhook_url": "S", "webhook_path": "/p"}))]
#[case::auth(json!({"X-Auth": "S", "auth": {"user": "S"}, "auth_method": "oauth", "use_auth": true}))]
#[case::connections(json!({"sentry_dsn": "S", "connection_string": "S"}))]
#[case::groups(json!({"credentials": {"user": "S", "port": "S", "deep": [{"a": "S"}]}}))]
#[case::numbers(json!({"max_tokens": 5, "token_percent": 7, "cookie_age": 9, "session_token_ttl": 3}))]
#[case::nothing(json!({"api_key": "", "token": null, "password": {}}))]
// Maps whose values are all secret.
#[case::environment(json!({"env": {"HOME": "S", "N": "S"}, "extra_environment": {"A": "S"}, "env_file": "/p"}))]
#[case::environment_list(json!({"env": ["S", "S"]}))]
#[case::headers(json!({"headers": {"X-Anything": "S", "Accept": "S"}, "http_headers": ["S"]}))]
#[case::mcp_server(json!({"tools": {"mcp": {"servers": {"a": {
    "enabled": true, "command": "npx", "args": ["-y", "server", "--api-key", "S", "--port", "80"],
    "env": {"TOKEN": "S"}, "headers": {"X-Auth": "S"}, "url": "https://mcp.example/sse",
}}}}}))]
// Arguments.
#[case::arguments(json!({"args": ["--token", "S", "--verbose", "-H", "S", "-e", "S", "--no-auth-check", "p"]}))]
#[case::assignments(json!({"args": ["--token=S", "API_TOKEN=S", "X-Auth: S", "MODE=p", "--model=p"]}))]
#[case::joined(json!({"args": ["--env=S", "--header=S"], "command": "run --env=S"}))]
#[case::slash_in_password(json!({"url": "postgresql://S@db.example/x", "plain": "http://h.example:8080/a@b"}))]
#[case::nested(json!({"run": [["x", "--password", "S"], {"args": ["--secret", "S"]}]}))]
#[case::command_line(json!({"command": "npx server --token S", "cmd": "curl -H S"}))]
#[case::command_line_assigned(json!({"command": "TOKEN=S"}))]
#[case::prose(json!({"prompt": "Give the --token that you know: it is no secret."}))]
#[case::short_options(json!({"args": ["-u", "S", "--pat", "S", "-p", "80"]}))]
#[case::more_names(json!({"passcode": "S", "otp": "S", "pin": "S", "hook": "S", "env_vars": {"A": "S"}, "pinned": "p"}))]
#[case::semicolons(json!({"db": "Server=h;Pwd=S;Port=1", "note": "this; and that=so"}))]
// URLs.
#[case::user_information(json!({"proxy": "http://S@proxy.example:3128", "url": "https://S@h.example/a@1.2?x=1"}))]
#[case::user_and_password(json!({"url": "https://S@h.example"}))]
#[case::in_a_text(json!({"note": "see https://S@h.example, or wss://S@i.example/", "list": ["--proxy=socks5://S@h"]}))]
#[case::parameters(json!({"url": "https://h.example/p?access_token=S&n=1&key=S#p", "other": "wss://h?session=1"}))]
#[case::url_in_url(json!({"url": "https://h.example/?next=https://S@i.example/?token=S"}))]
#[case::no_scheme(json!({"proxy": "S@proxy.example:3128", "user": "@user:matrix.example", "package": "@scope/p@1.2"}))]
#[case::bearer(json!({"value": "Bearer S", "sentence": "Basic rules for all"}))]
#[case::package(json!({"url": "https://unpkg.example/p@1.2.3/x"}))]
fn l71_only_secrets_are_masked(#[case] pattern: Value) {
    // What stands for a secret has the characters of one where it is part of a text.
    let with = |secret: &str| -> Value {
        let text = pattern
            .to_string()
            .replace("\"S\"", &format!("\"{secret}\""));
        let text = text.replace("S@", &format!("{secret}@"));
        let text = ["=S", " S"].iter().fold(text, |text, before| {
            text.replace(before, &before.replace('S', secret))
        });
        serde_json::from_str(&text).unwrap()
    };
    let stored = with("u5er:hunter2ÄÖ");
    let masked = shown(&stored);
    assert_eq!(masked, with(MASK));
    assert_eq!(shown(&masked), masked, "masked twice is masked once");
    assert_eq!(saved(&masked, &stored), Ok(stored.clone()));
    assert_eq!(saved(&stored, &stored), Ok(stored));
}

#[test]
fn l71_a_password_of_digits_is_masked() {
    let stored = json!({"password": 12345, "pin_token": 1, "limit": 5});
    let masked = json!({"password": MASK, "pin_token": MASK, "limit": 5});
    assert_eq!(shown(&stored), masked);
    assert_eq!(saved(&masked, &stored), Ok(stored));
}

#[test]
fn only_texts_below_secret_looking_names_are_masked() {
    let teams =
        json!({"enabled": false, "port": 8080, "url": "hunter2", "list": [true, 7], "none": null});
    let stored = json!({
        "teams_webhook": teams, "auth": {"use": true, "retries": 3, "pin": 1234},
        "use_password": true, "api_keys": [1234, false], "env": {"DEBUG": true, "PORT": 80, "PIN": 5},
    });
    let mut masked = stored.clone();
    masked["teams_webhook"]["url"] = json!(MASK);
    masked["auth"]["pin"] = json!(MASK);
    masked["env"]["PIN"] = json!(MASK);
    assert_eq!(shown(&stored)["api_keys"][1], json!(false));
    masked["api_keys"] = shown(&stored)["api_keys"].clone();
    assert_eq!(shown(&stored), masked);
    assert_eq!(saved(&masked, &stored), Ok(stored));
}

#[rstest::rstest]
#[case(json!(true))]
#[case(json!(7))]
#[case(json!("plain"))]
#[case(json!(null))]
fn a_mask_of_what_was_never_masked_is_refused(#[case] value: Value) {
    let stored = json!({"teams_webhook": {"enabled": false}, "a": [{"plain": value}]});
    let mut new = shown(&stored);
    new["a"][0]["plain"] = json!(MASK);
    let refused = Unmasked::NeverMasked("/a/0/plain".to_owned());
    assert_eq!(saved(&new, &stored), Err(refused));
    new["a"][0]["plain"] = stored["a"][0]["plain"].clone();
    new["teams_webhook"]["enabled"] = json!(MASK);
    let refused = Unmasked::NeverMasked("/teams_webhook/enabled".to_owned());
    assert_eq!(saved(&new, &stored), Err(refused));
}

#[test]
fn what_the_adapter_stores_as_secret_is_masked_under_any_name() {
    let adapter = Adapter::builtin("picoclaw").unwrap().unwrap();
    let settings = json!({"username": "hunter2", "broker": "tcp://hunter2@h.example"});
    let stored = json!({"channel_list": {"own": {"settings": settings}}});
    let settings = json!({"username": MASK, "broker": format!("tcp://{MASK}@h.example")});
    let masked = json!({"channel_list": {"own": {"settings": settings}}});
    assert_eq!(shown_by(&adapter.secret_paths, &stored), masked);
}

#[test]
fn arguments_may_be_added_around_masked_ones() {
    let stored = json!({"args": ["--token=hunter2", "run"]});
    let new = json!({"args": ["-v", format!("--token={MASK}"), "run"]});
    let expected = json!({"args": ["-v", "--token=hunter2", "run"]});
    assert_eq!(saved(&new, &stored), Ok(expected));
}

#[rstest::rstest]
#[case::argument(json!({"args": ["--token", "hunter2"]}), json!({"args": ["-v", "--token", MASK]}), "/args/2")]
#[case::renamed(json!({"env": {"A": "hunter2"}}), json!({"env": {"B": MASK}}), "/env/B")]
#[case::path(
    json!({"url": "https://u:hunter2@h.example/a"}),
    json!({"url": format!("https://{MASK}@h.example/b")}),
    "/url"
)]
#[case::parameter(
    json!({"url": "https://h.example/a?key=hunter2"}),
    json!({"url": format!("https://h.example/b?key={MASK}")}),
    "/url"
)]
#[case::other_argument(
    json!({"args": ["--token=hunter2"]}),
    json!({"args": [format!("--password={MASK}")]}),
    "/args/0"
)]
fn a_masked_part_of_a_changed_text_stands_for_nothing(
    #[case] stored: Value,
    #[case] new: Value,
    #[case] pointer: &str,
) {
    assert_eq!(
        saved(&new, &stored),
        Err(Unmasked::Nothing(pointer.to_owned()))
    );
}

#[test]
fn stars_that_mask_nothing_are_a_text() {
    let stored = json!({"prompt": "a"});
    let new = json!({"prompt": format!("Title\n{MASK}**\n")});
    assert_eq!(saved(&new, &stored), Ok(new.clone()));
}

#[rstest::rstest]
#[case::other_host("https://api.example/v1", Some("https://evil.example/v1"))]
#[case::other_port("https://api.example/v1", Some("https://api.example:444/v1"))]
#[case::without_tls("https://api.example/v1", Some("http://api.example/v1"))]
#[case::none("https://api.example/v1", None)]
#[case::backslash(
    "https://api.example/v1",
    Some("https://evil.example\\@api.example/v1")
)]
#[case::control(
    "https://api.example/v1",
    Some("https://evil.example\t@api.example/v1")
)]
#[case::no_scheme("api.example:6697", Some("evil.example:6697"))]
fn l72_a_secret_beside_a_url_is_asked_for_again_when_that_moves(
    #[case] before: &str,
    #[case] after: Option<&str>,
) {
    let stored = json!({"models": [{"name": "m", "api_base": before, "api_keys": ["hunter2"]}]});
    let mut new = shown(&stored);
    let model = &mut new["models"][0];
    match after {
        Some(after) => model["api_base"] = json!(after),
        None => drop(model.as_object_mut().unwrap().remove("api_base")),
    }
    let asked = Unmasked::OfOtherHost("/models/0/api_keys/0".to_owned());
    assert_eq!(saved(&new, &stored), Err(asked));
    new["models"][0]["api_keys"] = json!(["new"]);
    assert_eq!(saved(&new, &stored), Ok(new));
}

#[test]
fn l72_a_url_that_is_added_beside_a_secret_asks_for_it_again() {
    let stored = json!({"a": {"headers": {"X-Auth": "hunter2"}, "n": 1}});
    let mut new = shown(&stored);
    new["a"]["url"] = json!("https://evil.example");
    let asked = Unmasked::OfOtherHost("/a/headers/X-Auth".to_owned());
    assert_eq!(saved(&new, &stored), Err(asked));
}

#[test]
fn a_secret_beside_a_url_stays_when_only_the_path_changes() {
    let stored = json!({"a": {"url": "https://u:hunter2@H.example/1", "token": "hunter3"}});
    let new = json!({"a": {"url": "https://h.example/2", "token": MASK}});
    let expected = json!({"a": {"url": "https://h.example/2", "token": "hunter3"}});
    assert_eq!(saved(&new, &stored), Ok(expected));
}

#[test]
fn l65_no_value_takes_long_to_mask_or_to_fill_in() {
    let began = tokio::time::Instant::now();
    // Half as long as a key may be.
    let texts = [
        "://",
        "a://b:c@d/",
        "a://b?token=",
        "--token ",
        "?a=b:",
        "x:y@",
        "Aa",
    ];
    for text in texts {
        let text = text.repeat((256 << 10) / text.len());
        let stored = json!({"list": [text], "command": text, "text": text});
        assert!(saved(&shown(&stored), &stored) == Ok(stored));
    }
    let items = (0..15_000).map(|n| json!({"n": n, "token": "hunter2"}));
    let stored = json!({ "list": items.collect::<Vec<_>>() });
    assert!(saved(&shown(&stored), &stored) == Ok(stored));
    let took = began.elapsed();
    assert!(took < std::time::Duration::from_secs(20), "{took:?}");
}
