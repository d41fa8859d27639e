use rstest::rstest;
use serde_json::json;

use super::*;
use crate::adapter::test_package::TestPackage;

const CONFIG_3: &str = "schemas/config-v3.json";

fn picoclaw() -> Adapter {
    Adapter::builtin("picoclaw").unwrap().unwrap()
}

/// Settings after a choice, of which there was none before.
fn chosen(adapter: &Adapter, tag: &str, provider: &str, key: Option<&str>) -> [Value; 2] {
    let mut settings = [Value::Null, Value::Null];
    choose(adapter, tag, &mut settings, provider, key);
    settings
}

fn choose(
    adapter: &Adapter,
    tag: &str,
    [agent, security]: &mut [Value; 2],
    provider: &str,
    key: Option<&str>,
) {
    let mut providers = adapter.providers(tag).iter();
    let provider = providers.find(|one| one.id == provider).unwrap();
    let key = key.map(SecretString::from);
    let choice = ModelChoice {
        provider,
        address: provider
            .address
            .as_deref()
            .unwrap_or("http://model.example/v1"),
        model: "large-1",
        key: key.as_ref(),
    };
    adapter.set_model(tag, agent, security, &choice).unwrap();
}

#[rstest]
#[case("0.2.4", json!({}))]
#[case("0.2.6", json!({"enabled": true}))]
#[case("0.2.9", json!({"enabled": true}))]
fn choice_is_written_as_picoclaw_reads_it(#[case] tag: &str, #[case] more: Value) {
    let adapter = picoclaw();
    let [agent, security] = chosen(&adapter, tag, "openai", Some("sk-1"));
    let mut entry = json!({
        "model_name": "openai", "model": "openai/large-1", "api_base": "https://api.openai.com/v1"
    });
    for (name, value) in more.as_object().unwrap() {
        entry[name] = value.clone();
    }
    let expected = json!({
        "agents": {"defaults": {"model_name": "openai"}}, "model_list": [entry]
    });
    assert_eq!(agent, expected);
    assert_eq!(
        security,
        json!({"model_list": {"openai": {"api_keys": ["sk-1"]}}})
    );
    assert!(adapter.has_model(tag, &agent));
}

#[test]
fn every_provider_reads_back_what_it_wrote() {
    for name in ["picoclaw", "echo"] {
        let adapter = Adapter::builtin(name).unwrap().unwrap();
        for version in adapter.index.agent_versions.iter() {
            let tag = version.version.to_string();
            let providers = adapter.providers(&tag);
            assert!(!providers.is_empty(), "{name} {tag}");
            for provider in providers {
                let [agent, security] = chosen(&adapter, &tag, &provider.id, Some("sk-1"));
                let read = adapter.chosen_model(&tag, &agent, &security).unwrap();
                assert_eq!(read.provider.as_ref(), Some(&provider.id));
                assert_eq!(read.model, "large-1");
                let address = provider.address.as_deref();
                let address = address.unwrap_or("http://model.example/v1");
                assert_eq!(read.address.as_deref(), Some(address));
                assert_eq!(read.key.unwrap().expose_secret(), "sk-1");
                assert!(adapter.has_model(&tag, &agent));
                adapter.check_global(&agent, &security).unwrap();
                assert!(!agent.to_string().contains("sk-1"));
            }
        }
    }
}

#[test]
fn another_choice_replaces_the_first_and_nothing_else() {
    let adapter = picoclaw();
    let own = json!({"model_name": "mine", "model": "groq/x"});
    let mut settings = [
        json!({"model_list": [own], "tools": {"a": 1}}),
        json!({"model_list": {"mine": {"api_keys": ["k"]}, "openai:0": {"api_keys": ["old"]}}}),
    ];
    choose(&adapter, "0.2.9", &mut settings, "openai", Some("sk-1"));
    choose(&adapter, "0.2.9", &mut settings, "ollama", None);
    let [agent, security] = settings;
    let names: Vec<&Value> = agent["model_list"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 2);
    assert_eq!(names[0], &own);
    assert_eq!(names[1]["model"], "ollama/large-1");
    assert_eq!(agent["tools"], json!({"a": 1}));
    assert_eq!(
        security,
        json!({"model_list": {"mine": {"api_keys": ["k"]}}})
    );
}

#[test]
fn value_that_looks_like_a_placeholder_stays_as_it_is() {
    let adapter = picoclaw();
    let provider = &adapter.providers("0.2.9")[0];
    let key = SecretString::from("sk-1");
    let choice = ModelChoice {
        provider,
        address: "https://x.example/${key}",
        model: "${key}${name}$",
        key: Some(&key),
    };
    let (mut agent, mut security) = (json!({}), json!({}));
    adapter
        .set_model("0.2.9", &mut agent, &mut security, &choice)
        .unwrap();
    assert!(!agent.to_string().contains("sk-1"), "{agent}");
    assert_eq!(agent["model_list"][0]["model"], "openai/${key}${name}$");
}

#[rstest]
#[case(json!({"model_list": "none"}), json!({}), "model_list")]
#[case(json!({"agents": []}), json!({}), "agents.defaults.model_name")]
#[case(json!({}), json!({"model_list": ["a"]}), "model_list")]
#[case(json!([]), json!({}), "agent is not an object")]
fn setting_in_the_way_is_named(
    #[case] mut agent: Value,
    #[case] mut security: Value,
    #[case] named: &str,
) {
    let adapter = picoclaw();
    let choice = ModelChoice {
        provider: &adapter.providers("0.2.9")[0],
        address: "https://x.example",
        model: "m",
        key: None,
    };
    let refused = adapter.set_model("0.2.9", &mut agent, &mut security, &choice);
    let message = refused.unwrap_err();
    assert!(message.contains(named), "{message}");
}

#[rstest]
#[case(json!(null), false)]
#[case(json!({"agents": {"defaults": {"model_name": "gpt"}}}), false)]
#[case(json!({"agents": {"defaults": {"model_name": ""}}, "model_list": [{"model_name": ""}]}), false)]
#[case(json!({"agents": {"defaults": {"model_name": "gpt"}}, "model_list": [{"model_name": "gpt", "enabled": false}]}), false)]
#[case(json!({"agents": {"defaults": {"model_name": "gpt"}}, "model_list": [{"model_name": "gpt"}]}), true)]
#[case(json!({"model_list": [{"model_name": "gpt"}]}), false)]
fn model_is_there_when_an_entry_is_named(#[case] agent: Value, #[case] expected: bool) {
    assert_eq!(picoclaw().has_model("latest", &agent), expected);
}

#[test]
fn model_written_by_hand_is_shown_by_its_name() {
    let agent = json!({"agents": {"defaults": {"model_name": "gpt"}},
        "model_list": [{"model_name": "gpt", "model": "groq/x"}]});
    let security = json!({"model_list": {"gpt": {"api_keys": ["k"]}}});
    let read = picoclaw().chosen_model("0.2.9", &agent, &security).unwrap();
    assert_eq!((read.provider, read.model.as_str()), (None, "gpt"));
    assert_eq!((read.address, read.key.is_some()), (None, true));
}

#[test]
fn settings_of_an_older_version_are_written_where_it_has_them() {
    let adapter = Adapter::builtin("echo").unwrap().unwrap();
    let mut settings = [json!({"version": 2}), Value::Null];
    choose(&adapter, "2.0.0", &mut settings, "compatible", Some("k"));
    let [agent, security] = settings;
    let read = adapter.chosen_model("2.0.0", &agent, &security).unwrap();
    assert_eq!(read.provider.as_deref(), Some("compatible"));
}

#[rstest]
#[case("http://127.0.0.1:1234/v1", true)]
#[case("https://api.example.com", true)]
#[case("http://[::1]:8080", true)]
#[case("ftp://example.com", false)]
#[case("example.com", false)]
#[case("https://user:pw@example.com", false)]
#[case("https://example.com/?a=1", false)]
#[case("https://example.com/#x", false)]
#[case("https://example.com/ä", false)]
#[case("file:///etc/passwd", false)]
#[case("", false)]
fn address_is_plain_http_with_a_host(#[case] text: &str, #[case] expected: bool) {
    assert_eq!(parse_model_address(text).is_ok(), expected);
}

#[rstest]
#[case("/providers/0/entry", json!({"name": "${name}", "model": "${model}"}), "/providers/0/entry")]
#[case("/providers/0/entry", json!({"model": "${model}", "api_base": "${address}"}), "/providers/0/entry")]
#[case("/providers/0/entry", json!({"name": "${name}", "model": "${model}", "api_base": "${address}${key}"}), "/providers/0/entry")]
#[case("/providers/0/entry", json!({"name": "${name}", "model": "${model}", "api_base": "${address}${x}"}), "/providers/0/entry")]
#[case("/providers/0/secret", json!({}), "/providers/0/secret")]
#[case("/providers/0/key", json!("none"), "/providers/0/secret")]
#[case("/providers/0/key", json!("maybe"), "/providers/0/key")]
#[case("/providers/0/protocol", json!("soap"), "/providers/0/protocol")]
#[case("/providers/0/address", json!("ftp://x"), "/providers/0/address")]
#[case("/providers/0/id", json!("a b"), "/providers/0/id")]
#[case("/providers/0/cost", json!(1), "/providers/0/cost")]
#[case("/providers", json!({}), "/providers")]
fn bad_provider_is_refused(#[case] pointer: &str, #[case] value: Value, #[case] place: &str) {
    let package = TestPackage::echo().set(CONFIG_3, pointer, value);
    let problems = package.load().unwrap_err().0;
    assert!(
        problems.iter().any(|problem| problem.pointer == place),
        "{problems:?}"
    );
}

#[test]
fn provider_that_is_declared_twice_is_refused() {
    let echo = Adapter::builtin("echo").unwrap().unwrap();
    let one = echo.documents[CONFIG_3]["providers"][0].clone();
    let package = TestPackage::echo().set(CONFIG_3, "/providers/-", one);
    let problems = package.load().unwrap_err().0;
    assert_eq!(problems[0].pointer, "/providers/1/id");
    let bare = TestPackage::echo().remove(CONFIG_3, "/default_model_path");
    assert_eq!(bare.load().unwrap_err().0[0].pointer, "/providers");
}
