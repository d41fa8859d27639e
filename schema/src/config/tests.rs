use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::keys::{audit, container, events, image, web};
use super::*;
use crate::image::ImageReference;

fn stored(values: Value) -> Config {
    let Value::Object(values) = values else {
        panic!("an object of dotted keys");
    };
    let config = Config::from_stored(values.into_iter().collect());
    assert_eq!(config.problems(), &[]);
    config
}

/// What saving `document` over `config` would store.
fn save(
    config: &Config,
    document: &Value,
) -> Result<BTreeMap<&'static str, Option<Value>>, Vec<Problem>> {
    parse_patch(document)?
        .resolve(config)
        .map(|changes| changes.0)
}

fn problems(document: Value) -> Vec<(String, ProblemCode)> {
    parse_patch(&document)
        .unwrap_err()
        .into_iter()
        .map(|problem| (problem.key, problem.code))
        .collect()
}

#[test]
fn every_key_has_one_row_and_a_default_that_follows_its_own_rule() {
    let rows: usize = keys::SECTIONS.iter().map(|section| section.len()).sum();
    assert_eq!(rows, KEYS.len());
    for def in KEYS.values() {
        assert_eq!(
            def.check(&def.default_value()),
            Ok(def.default_value()),
            "{}",
            def.key
        );
        assert_eq!(find(def.key).map(|found| found.key), Some(def.key));
        assert!(
            !def.title.is_empty() && def.description.ends_with('.'),
            "{}",
            def.key
        );
        assert_eq!(
            def.is_secret(),
            ["password", "client_secret", "security"]
                .iter()
                .any(|s| def.key.ends_with(s)),
            "{}",
            def.key
        );
    }
    assert!(find("web").is_none() && find("").is_none() && find("web.nothing").is_none());
}

#[test]
fn the_defaults_are_those_of_the_contract() {
    let document = Config::default().to_document(true);
    insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap());
}

#[rstest::rstest]
#[case("web.auth_mode", json!("local"))]
#[case("web.public_url", json!("https://agents.example.com:8443/base"))]
#[case("web.trusted_proxies", json!(["10.0.0.7", "10.0.0.0/8", "fd00::/8"]))]
#[case("web.allowed_origins", json!(["chrome-extension://abcdef", "https://x.example:8443"]))]
#[case("ldap.host", json!("dc1.example.com:389"))]
#[case("ldap.host", json!("ldaps://[2001:db8::1]:636"))]
#[case("ldap.filter", json!("(&(objectClass=person)(uid={{username}}))"))]
#[case("ldap.sync_interval", json!("0"))]
#[case("ldap.sync_interval", json!("1h 30m"))]
#[case("ldap.bind_password", json!("12345678"))]
#[case("ldap.ca_certificate", json!("-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"))]
#[case("oidc.redirect_url", json!("https://x.example/api/login/oidc/callback"))]
#[case("oidc.provider_url", json!("https://id.example/realms/x/"))]
#[case("image.name", json!("localhost:5000/team/agent_x-1"))]
#[case("image.name", json!("busybox"))]
#[case("image.tag", json!("v0.2.9"))]
#[case("image.registry_plain_http", json!(["127.0.0.1:5000", "[::1]:5000", "registry"]))]
#[case("container.cpu_limit", json!(0.5))]
#[case("container.network_subnet", json!("172.16.0.0/12"))]
#[case("container.network_subnet", json!("192.168.7.16/28"))]
#[case("container.lan_access", json!("none"))]
#[case("container.lan_access", json!("open"))]
#[case("container.lan_access", json!("10.1.0.0/16,192.168.7.0/24,100.64.0.0/10"))]
#[case("container.timezone", json!("America/Port-au-Prince"))]
#[case("agent", json!({"model_list": [{"model": "x"}], "n": 1}))]
#[case("skills.defaults", json!(["Übersetzen", "git helper"]))]
fn good_values_are_taken_as_they_are(#[case] key: &str, #[case] value: Value) {
    assert_eq!(find(key).unwrap().check(&value), Ok(value));
}

#[test]
fn whole_numbers_for_texts_are_taken_with_a_warning() {
    let document = json!({"image": {"tag": 7}, "web": {"desktop_user_agents": [1, "b"]}});
    let patch = parse_patch(&document).unwrap();
    assert_eq!(patch.warnings().len(), 2, "{:?}", patch.warnings());
    assert!(patch.warnings()[0].starts_with("image.tag is a text"));
    let changes = patch.resolve(&Config::default()).unwrap().0;
    assert_eq!(changes["image.tag"], Some(json!("7")));
    assert_eq!(changes["web.desktop_user_agents"], Some(json!(["1", "b"])));
    let odd = json!({"image.tag": 1.5});
    assert_eq!(problems(odd)[0].1, ProblemCode::InvalidType);
}

#[test]
fn a_mask_for_a_key_that_is_never_masked_is_refused() {
    for key in [
        "image.tag",
        "web.public_url",
        "container.cpu_limit",
        "web.trusted_proxies",
    ] {
        let refused = problems(json!({key: MASK}));
        assert_eq!(refused, [(key.to_owned(), ProblemCode::InvalidValue)]);
    }
}

#[rstest::rstest]
#[case("web.public_url", json!("https://x.example/"), json!("https://x.example"))]
#[case("container.capabilities", json!(["cap_chown", "CHOWN", "SETUID"]), json!(["CHOWN", "SETUID"]))]
#[case("container.capabilities", json!(["cap_net_raw", "NET_ADMIN"]), json!(["NET_RAW", "NET_ADMIN"]))]
#[case("container.lan_access", json!("10.1.0.0/16, 10.2.3.4/32"), json!("10.1.0.0/16,10.2.3.4"))]
#[case("container.cpu_limit", json!(2.0), json!(2))]
#[case("archive.retention", json!(0), json!("0"))]
fn values_have_one_form(#[case] key: &str, #[case] given: Value, #[case] kept: Value) {
    assert_eq!(find(key).unwrap().check(&given), Ok(kept));
}

#[rstest::rstest]
#[case::of_another_planet("Mars/X", None)]
#[case::a_path("../../etc/passwd", None)]
#[case::a_posix_rule("CET-1CEST", None)]
#[case::a_directory("Europe", None)]
#[case::exact("Europe/Berlin", Some("Europe/Berlin"))]
#[case::another_case("europe/berlin", Some("Europe/Berlin"))]
#[case::an_older_name("US/Eastern", Some("US/Eastern"))]
#[case::utc("Etc/UTC", Some("Etc/UTC"))]
#[case::none("", Some(""))]
fn a_time_zone_is_one_of_the_iana_database(#[case] given: &str, #[case] kept: Option<&str>) {
    let checked = find("container.timezone").unwrap().check(&json!(given));
    assert_eq!(checked.ok(), kept.map(|kept| json!(kept)));
}

#[rstest::rstest]
#[case("web.auth_mode", json!("kerberos"))]
#[case("web.public_url", json!("ftp://x.example"))]
#[case("web.public_url", json!("https://user:pw@x.example"))]
#[case("web.public_url", json!("javascript:alert(1)"))]
#[case("web.trusted_proxies", json!(["10.0.0.1/8"]))]
#[case("web.allowed_origins", json!(["*"]))]
#[case("web.allowed_origins", json!(["https://*.example.com"]))]
#[case("web.allowed_origins", json!(["https://x.example/"]))]
#[case("web.allowed_origins", json!(["null"]))]
#[case("ldap.host", json!("http://dc1.example.com"))]
#[case("ldap.host", json!("dc1:port"))]
#[case("ldap.filter", json!("(uid=*)"))]
#[case("ldap.filter", json!("(uid={{username}}"))]
#[case("ldap.filter", json!("(a=b)(uid={{username}})"))]
#[case("ldap.filter", json!("uid={{username}}"))]
#[case("ldap.group_filter", json!("(cn={{username}})"))]
#[case("ldap.sync_interval", json!("often"))]
#[case("ldap.sync_interval", json!("-1h"))]
#[case("ldap.sync_interval", json!("1000000y"))]
#[case("ldap.timeout", json!("0"))]
#[case("ldap.max_removal_percent", json!(101))]
#[case("ldap.page_size", json!(0))]
#[case("ldap.page_size", json!(1.5))]
#[case("ldap.username_attribute", json!("uid)(x="))]
#[case("ldap.ca_certificate", json!("-----BEGIN PRIVATE KEY-----"))]
#[case("oidc.redirect_url", json!("https://x.example/callback"))]
#[case("oidc.scopes", json!("profile email"))]
#[case("image.name", json!("docker.io/sipeed/picoclaw:latest"))]
#[case("image.name", json!("Sipeed/PicoClaw"))]
#[case("image.name", json!("https://docker.io/sipeed/picoclaw"))]
#[case("image.name", json!(""))]
#[case("image.tag", json!("-x"))]
#[case("image.tag", json!("a:b"))]
#[case("image.tag", json!("ü"))]
#[case("image.name", json!("r.example/ü"))]
#[case("image.pull_policy", json!("sometimes"))]
#[case("image.registry_plain_http", json!(["http://registry:5000"]))]
#[case("image.registry_plain_http", json!(["registry:0"]))]
#[case("container.cpu_limit", json!(-1))]
#[case("container.memory_limit_mb", json!(0))]
#[case("container.network_subnet", json!("10.88.0.1/16"))]
#[case("container.network_subnet", json!("10.88.0.0/29"))]
#[case("container.network_subnet", json!("10.0.0.0/7"))]
#[case("container.network_subnet", json!("8.8.0.0/16"))]
#[case("container.network_subnet", json!("172.0.0.0/8"))]
#[case("container.network_subnet", json!("10.88.0.0"))]
#[case("container.network_subnet", json!("fd00::/8"))]
#[case("container.lan_access", json!(""))]
#[case("container.lan_access", json!("all"))]
#[case("container.lan_access", json!("8.8.8.0/24"))]
#[case("container.lan_access", json!("10.0.0.0/7"))]
#[case("container.lan_access", json!("10.0.0.1/8"))]
#[case("container.lan_access", json!("169.254.169.254"))]
#[case("container.lan_access", json!("10.0.0.0/8 fd00::/8"))]
#[case("container.capabilities", json!(["ALL"]))]
#[case("container.capabilities", json!(["CHOWN; rm"]))]
#[case("container.capabilities", json!(["SYS_ADMIN"]))]
#[case("container.capabilities", json!(["CHOWN", "cap_sys_module"]))]
#[case("container.capabilities", json!(["DAC_READ_SEARCH"]))]
#[case("container.capabilities", json!(["MKNOD"]))]
#[case("container.timezone", json!("../../etc/passwd"))]
#[case("skills.defaults", json!(["../x"]))]
fn bad_values_are_refused_with_key_and_rule(#[case] key: &str, #[case] value: Value) {
    let problem = find(key).unwrap().check(&value).unwrap_err();
    assert_eq!(problem.code, ProblemCode::InvalidValue);
    assert_eq!(problem.key, key);
    assert!(
        problem.message.starts_with(&format!("{key} m")),
        "{}",
        problem.message
    );
}

#[rstest::rstest]
#[case("container.memory_limit_mb", json!("1024"))]
#[case("container.cpu_limit", json!("0.5"))]
#[case("container.autostart", json!("true"))]
#[case("container.autostart", json!(1))]
#[case("ldap.bind_password", json!(12345678))]
#[case("image.tag", json!(1.2))]
#[case("ldap.sync_interval", json!(30))]
#[case("skills.defaults", json!("one,two"))]
#[case("skills.defaults", json!([1]))]
#[case("agent", json!("{}"))]
#[case("agent", json!([]))]
fn l21_json_types_are_never_converted(#[case] key: &str, #[case] value: Value) {
    let problem = find(key).unwrap().check(&value).unwrap_err();
    assert_eq!(
        problem.code,
        ProblemCode::InvalidType,
        "{}",
        problem.message
    );
}

#[test]
fn what_documents_show_is_saved_back_without_a_change() {
    let earlier = stored(json!({
        "mcp.get_stream": "refuse", "mcp.policy": {"users": {"token": {"browser": {"mode": "off"}}}}, "oidc.client_secret": "pw",
    }));
    assert!(
        save(&earlier, &json!({"ldap": {"bind_password": MASK}}))
            .unwrap()
            .is_empty()
    );
    let shown = earlier.to_document(true);
    // Names in a policy are none of secrets.
    assert_eq!(
        shown["mcp"]["policy"]["users"]["token"]["browser"]["mode"],
        "off"
    );
    assert!(save(&earlier, &shown).unwrap().is_empty());
    assert!(
        save(&Config::default(), &Config::default().to_document(true))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn the_adapter_source_is_https_or_loopback_unless_plain_http_is_allowed() {
    let config = Config::default();
    let plain = json!({"adapter.source_url": "http://packages.example/a.zip"});
    for url in [
        "https://packages.example/a.zip",
        "http://127.0.0.2:1/a",
        "http://[::1]/a",
        "http://localhost:9/a",
    ] {
        assert!(
            save(&config, &json!({ "adapter.source_url": url })).is_ok(),
            "{url}"
        );
    }
    let problem = &save(&config, &plain).unwrap_err()[0];
    assert_eq!(
        (&*problem.key, problem.code),
        ("adapter.source_url", ProblemCode::InvalidValue)
    );
    assert!(
        problem.message.contains("adapter.allow_http"),
        "{}",
        problem.message
    );
    let allowed = stored(json!({"adapter.allow_http": true}));
    assert!(save(&allowed, &plain).is_ok());
    // Of earlier releases: it stays until one of both keys is saved.
    let earlier = stored(plain);
    assert!(save(&earlier, &json!({"image.tag": "v1"})).is_ok());
    let both = stored(
        json!({"adapter.source_url": "http://packages.example/", "adapter.allow_http": true}),
    );
    assert!(save(&both, &json!({"adapter.allow_http": false})).is_err());
}

#[test]
fn what_only_new_containers_and_pulls_read_restarts_nobody() {
    let effects = |key| find(key).unwrap().effects;
    for key in [
        "image.tag",
        "image.registry_password",
        "container.autostart",
    ] {
        assert_eq!(effects(key), &[], "{key}");
    }
    assert_eq!(effects("security"), &[Effect::Files]);
}

#[test]
fn every_problem_is_listed_and_none_shows_a_secret() {
    let document = json!({
        "web": {"auth_mode": "hunter2", "nothing": 1, "public_url": true},
        "ldap.page_size": "hunter2",
        "agent.model": 1,
        "image": "hunter2",
        "colour": null,
        "ldap": {"timeout": "hunter2"},
        "oidc": {"client_secret": ["hunter2"]},
    });
    let found = parse_patch(&document).unwrap_err();
    for problem in &found {
        assert!(problem.message.contains(&problem.key), "{problem:?}");
        // A value is repeated of keys that hold no secrets.
        let is_repeated = problem.message.contains("hunter2");
        let may_be = ["web.auth_mode", "ldap.page_size", "ldap.timeout"];
        assert_eq!(
            is_repeated,
            may_be.contains(&problem.key.as_str()),
            "{problem:?}"
        );
    }
    let mut codes: Vec<_> = found.into_iter().map(|p| (p.key, p.code)).collect();
    codes.sort_by(|a, b| a.0.cmp(&b.0));
    let expect = |key: &str, code| (key.to_owned(), code);
    assert_eq!(
        codes,
        [
            expect("agent.model", ProblemCode::UnknownKey),
            expect("colour", ProblemCode::UnknownKey),
            expect("image", ProblemCode::InvalidType),
            expect("ldap.page_size", ProblemCode::InvalidType),
            expect("ldap.timeout", ProblemCode::InvalidValue),
            expect("oidc.client_secret", ProblemCode::InvalidType),
            expect("web.auth_mode", ProblemCode::InvalidValue),
            expect("web.nothing", ProblemCode::UnknownKey),
            expect("web.public_url", ProblemCode::InvalidType),
        ]
    );
    assert_eq!(
        problems(json!([])),
        [(String::new(), ProblemCode::InvalidType)]
    );
    assert_eq!(
        problems(json!({"image": {"tag": "a"}, "image.tag": "a"})),
        [("image.tag".to_owned(), ProblemCode::DuplicateKey)]
    );
}

#[test]
fn refused_value_is_repeated_unless_it_may_hold_a_secret() {
    let message = |key: &str, value: Value| {
        let problems = parse_patch(&json!({ key: value })).unwrap_err();
        problems[0].message.clone()
    };
    let rule =
        "web.public_url must be empty or an http or https address without user, query and fragment";
    for (key, value, expected) in [
        (
            "web.public_url",
            json!("htp://x"),
            format!("{rule}, not \"htp://x\""),
        ),
        (
            "web.public_url",
            json!("https://a:hunter2@b"),
            rule.to_owned(),
        ),
        ("web.public_url", json!("x".repeat(101)), rule.to_owned()),
        (
            "web.auth_mode",
            json!("ldpa"),
            "web.auth_mode must be one of local, ldap, oidc, not \"ldpa\"".to_owned(),
        ),
        (
            "container.autostart",
            json!("y"),
            "container.autostart must be true or false, not a text (\"y\")".to_owned(),
        ),
    ] {
        assert_eq!(message(key, value), expected, "{key}");
    }
    assert!(message("container.pids_limit", json!(-1)).ends_with(", not -1"));
    let origins = message("web.allowed_origins", json!(["https://a", "nonsense"]));
    assert!(origins.ends_with(", not \"nonsense\""), "{origins}");
    let secret = message("image.registry_password", json!(["hunter2"]));
    assert!(!secret.contains("hunter2"), "{secret}");
}

#[test]
fn only_what_changes_is_stored() {
    let config = stored(json!({"image.tag": "v1", "image.registry_password": "pw"}));
    let document = json!({
        "image": {"tag": "v1", "name": "docker.io/team/agent", "pull_policy": "missing", "registry_password": MASK},
        "container.autostart": null,
    });
    let changes = save(&config, &document).unwrap();
    assert_eq!(
        changes,
        BTreeMap::from([("image.name", Some(json!("docker.io/team/agent")))])
    );
    let reset = save(
        &config,
        &json!({"image.tag": null, "image": {"registry_password": ""}}),
    )
    .unwrap();
    assert_eq!(
        reset,
        BTreeMap::from([
            ("image.registry_password", Some(json!(""))),
            ("image.tag", None)
        ])
    );
    let after = config.apply(&Changes(reset));
    assert_eq!(after.get(&image::TAG), "latest");
    assert!(after.get(&image::REGISTRY_PASSWORD).is_none());
}

#[test]
fn l72_every_secret_belongs_to_a_host() {
    let secrets = KEYS
        .values()
        .filter(|def| matches!(def.value_type, ValueType::Secret));
    for def in secrets {
        let to = def.belongs_to.expect(def.key);
        assert!(find(to.key).is_some(), "{}", def.key);
    }
}

#[test]
fn l72_a_stored_secret_is_asked_for_again_when_its_host_changes() {
    let config = stored(json!({
        "image.name": "registry.example/agent",
        "image.registry_password": "hunter2",
    }));
    let moved = json!({"image.name": "evil.example/agent"});
    for masked in [false, true] {
        let mut document = moved.clone();
        if masked {
            document["image.registry_password"] = json!(MASK);
        }
        let problem = &save(&config, &document).unwrap_err()[0];
        let found = (&*problem.key, problem.code);
        assert_eq!(
            found,
            ("image.registry_password", ProblemCode::SecretRequired)
        );
        assert!(
            problem.message.contains("image.name"),
            "{}",
            problem.message
        );
    }
    // Back to the default is another host, too.
    assert!(save(&config, &json!({"image.name": null})).is_err());
    for sent in [json!("hunter2"), json!("hunter3"), json!(""), Value::Null] {
        let mut document = moved.clone();
        document["image.registry_password"] = sent;
        assert!(save(&config, &document).is_ok());
    }
    let same = json!({"image": {"name": "registry.example/team/other", "tag": "2"}});
    assert_eq!(save(&config, &same).unwrap().len(), 2);
    let without = stored(json!({"image.registry_username": "u"}));
    assert!(save(&without, &moved).is_ok());
}

#[rstest::rstest]
#[case(
    "ldap.bind_password",
    "ldap.host",
    "ldaps://dc1.example",
    "ldaps://dc2.example"
)]
#[case(
    "oidc.client_secret",
    "oidc.provider_url",
    "https://id.example/a",
    "https://id2.example/a"
)]
fn l72_a_secret_is_left_behind_by_its_host(
    #[case] secret: &'static str,
    #[case] owner: &'static str,
    #[case] host: &str,
    #[case] other: &str,
) {
    let config = stored(json!({ secret: "hunter2", owner: host }));
    let left = |config: &Config, value: Option<Value>| {
        let changes = Changes([(owner, value)].into());
        let left = patch::left_behind(config, &changes).map(|def| def.key);
        left.collect::<Vec<_>>()
    };
    assert_eq!(left(&config, Some(json!(other))), [secret]);
    assert_eq!(left(&config, Some(json!(host))), [""; 0]);
    // Nobody is sent it now, and another host is not sent it then.
    assert_eq!(left(&config, None), [""; 0]);
    let nowhere = config.apply(&Changes([(owner, None)].into()));
    assert_eq!(left(&nowhere, Some(json!(other))), [secret]);
}

#[test]
fn setting_the_default_over_another_value_is_a_change() {
    let config = stored(json!({"image.tag": "v1"}));
    let changes = save(&config, &json!({"image.tag": "latest"})).unwrap();
    assert_eq!(
        changes,
        BTreeMap::from([("image.tag", Some(json!("latest")))])
    );
}

#[test]
fn a_mask_inside_an_object_keeps_the_stored_leaf() {
    let config = stored(json!({
        "security": {"a": {"key": "s1", "pin": 7}, "gone": "s2"},
        "agent": {"models": [
            {"name": "m1", "api_key": "k1", "url": "u"},
            {"name": "m2", "api_keys": ["k2", "k3"], "max_tokens": 9},
        ]},
    }));
    let shown = config.to_document(true);
    assert_eq!(
        shown["security"],
        json!({"a": {"key": MASK, "pin": MASK}, "gone": MASK})
    );
    assert_eq!(
        shown["agent"],
        json!({"models": [
            {"name": "m1", "api_key": MASK, "url": "u"},
            {"name": "m2", "api_keys": [MASK, MASK], "max_tokens": 9},
        ]})
    );
    // Replaced whole: what is not sent goes; what is masked stays; what is new comes.
    let changes = save(
        &config,
        &json!({"security": {"a": {"key": MASK, "pin": MASK}, "new": "s3"}}),
    );
    assert_eq!(
        changes.unwrap(),
        BTreeMap::from([(
            "security",
            Some(json!({"a": {"key": "s1", "pin": 7}, "new": "s3"}))
        )])
    );
}

#[test]
fn masks_follow_their_element_when_a_list_changes() {
    let config = stored(json!({"agent": {"models": [
        {"name": "m1", "api_key": "k1"},
        {"name": "m2", "api_key": "k2"},
    ]}}));
    let models = |models: Value| {
        save(&config, &json!({"agent": {"models": models}})).map(|changes| {
            changes
                .get("agent")
                .cloned()
                .flatten()
                .map(|agent| agent["models"].clone())
        })
    };
    // The first was removed.
    assert_eq!(
        models(json!([{"name": "m2", "api_key": MASK}])).unwrap(),
        Some(json!([{"name": "m2", "api_key": "k2"}]))
    );
    // Swapped.
    assert_eq!(
        models(json!([{"name": "m2", "api_key": MASK}, {"name": "m1", "api_key": MASK}])).unwrap(),
        Some(json!([{"name": "m2", "api_key": "k2"}, {"name": "m1", "api_key": "k1"}]))
    );
    // Edited in place.
    assert_eq!(
        models(json!([{"name": "renamed", "api_key": MASK}, {"name": "m2", "api_key": MASK}]))
            .unwrap(),
        Some(json!([{"name": "renamed", "api_key": "k1"}, {"name": "m2", "api_key": "k2"}]))
    );
    // Renamed and another removed: nobody can tell which key is meant.
    let problem = &models(json!([{"name": "renamed", "api_key": MASK}])).unwrap_err()[0];
    assert_eq!(problem.code, ProblemCode::InvalidValue);
    assert!(
        problem.message.contains("/models/0/api_key"),
        "{}",
        problem.message
    );
}

#[test]
fn a_mask_for_nothing_is_a_problem() {
    for document in [
        json!({"security": {"new": MASK}}),
        json!({"security": {"list": [MASK]}}),
    ] {
        let problems = save(&Config::default(), &document).unwrap_err();
        assert_eq!(problems[0].key, "security");
        assert!(problems[0].message.contains('/'), "{}", problems[0].message);
    }
}

#[test]
fn l21_nothing_that_can_be_printed_shows_a_secret() {
    let config = stored(json!({
        "ldap.bind_password": "hunter2",
        "image.registry_password": "hunter2",
        "security": {"deep": [{"x": "hunter2"}]},
        "agent": {"telegram": {"token": "hunter2"}, "plain": "visible"},
    }));
    let patch =
        parse_patch(&json!({"image.registry_password": "hunter2", "security": {"a": "hunter2"}}));
    let changes = patch.clone().unwrap().resolve(&Config::default()).unwrap();
    for text in [
        format!("{config:?}"),
        format!("{patch:?}"),
        format!("{changes:?}"),
        config.to_document(true).to_string(),
    ] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    assert!(config.to_document(true).to_string().contains("visible"));
    assert!(config.to_document(false).to_string().contains("hunter2"));
    assert_eq!(
        config
            .get(&image::REGISTRY_PASSWORD)
            .unwrap()
            .expose_secret(),
        "hunter2"
    );
}

#[test]
fn l21_what_the_adapter_stores_as_secret_is_masked_in_every_version_and_channel() {
    let adapter = crate::adapter::Adapter::builtin("picoclaw")
        .unwrap()
        .unwrap();
    let agent = json!({
        "channels": {
            "feishu": {"app_id": "visible1", "encrypt_key": "hunter2"},
            "irc": {"user": "visible2"},
            "line": {"webhook_path": "visible3"},
            "own": {"Verification_Token": "hunter2"},
        },
        "channel_list": {
            "mqtt": {"enabled": true, "settings": {"username": "hunter2", "broker": "visible4"}},
            "own": {"type": "mqtt", "settings": {"Username": "hunter2"}},
            "teams_webhook": {"settings": {"webhooks": {"default": {"url": "hunter2"}}}},
        },
        "model_list": [{"model_name": "visible5", "api_keys": ["hunter2"]}],
        "agents": {"defaults": {"model_name": "visible6", "max_tokens": 7}},
    });
    let config = stored(json!({ "agent": agent })).with_secret_paths(adapter.secret_paths);
    let shown = config.to_document(true);
    let text = shown.to_string() + &format!("{config:?}");
    assert!(!text.contains("hunter2"), "{text}");
    for number in 1..=6 {
        assert!(
            text.contains(&format!("visible{number}")),
            "{number}: {text}"
        );
    }
    assert_eq!(shown["agent"]["channel_list"]["mqtt"]["enabled"], true);
    assert_eq!(shown["agent"]["agents"]["defaults"]["max_tokens"], 7);
    // Sent back as it was shown it stands for what is stored.
    assert!(save(&config, &shown).unwrap().is_empty());
}

#[test]
fn stored_values_that_no_longer_fit_do_not_count() {
    let values = BTreeMap::from([
        ("image.tag".to_owned(), json!("a b")),
        (
            "container.capabilities".to_owned(),
            json!(["CHOWN", "SYS_ADMIN", "cap_setuid"]),
        ),
        ("old.key".to_owned(), json!(1)),
        ("container.pids_limit".to_owned(), json!(99)),
    ]);
    let config = Config::from_stored(values);
    assert_eq!(config.get(&image::TAG), "latest");
    assert_eq!(config.get(&container::PIDS_LIMIT), 99);
    let named: Vec<_> = config.problems().iter().map(|p| p.key.as_str()).collect();
    assert_eq!(named, ["container.capabilities", "image.tag", "old.key"]);
    // Of a list only what does not fit.
    assert_eq!(config.get(&container::CAPABILITIES), ["CHOWN", "SETUID"]);
    let said = &config.problems()[0].message;
    assert!(
        said.starts_with(r#""SYS_ADMIN" is left out: "#)
            && said.contains("reach the host")
            && said.contains("SYS_CHROOT"),
        "{said}"
    );
}

#[test]
fn accessors_speak_the_units_of_their_users() {
    let config = Config::default();
    assert_eq!(config.get(&web::AUTH_MODE), AuthMode::Local);
    assert_eq!(config.image_reference(), "docker.io/sipeed/picoclaw:latest");
    assert_eq!(config.get(&image::PULL_POLICY), PullPolicy::Missing);
    let image = config.image_reference().parse().unwrap();
    assert!(config.registry_credentials_for(&image).is_none());
    assert_eq!(config.cpu_limit_nanos(), None);
    assert_eq!(config.memory_limit_bytes(), 1_073_741_824);
    assert_eq!(config.get(&container::PIDS_LIMIT), 512);
    assert_eq!(config.get(&container::NETWORK_SUBNET), "10.88.0.0/16");
    assert_eq!(config.get(&container::SERVICE_URL), None);
    assert_eq!(config.get(&container::TIMEZONE), None);
    assert!(config.get(&container::AUTOSTART));
    assert_eq!(config.get(&container::CAPABILITIES), [""; 0]);
    assert_eq!(
        config.get(&events::RETENTION),
        Some(Duration::from_secs(30 * 24 * 3600))
    );
    assert_eq!(config.get(&audit::RETENTION), None);
    let config = stored(json!({
        "container.cpu_limit": 1.5,
        "image.pull_policy": "never",
        "image.registry_username": "u",
        "image.registry_password": "12345678",
        "web.trusted_proxies": ["10.0.0.7", "10.1.0.0/16"],
    }));
    assert_eq!(config.cpu_limit_nanos(), Some(1_500_000_000));
    assert_eq!(config.get(&image::PULL_POLICY), PullPolicy::Never);
    let image = config.image_reference().parse().unwrap();
    let sent = config.registry_credentials_for(&image).unwrap();
    assert_eq!(sent.username, "u");
    assert_eq!(sent.password.expose_secret(), "12345678");
    assert_eq!(config.get(&web::TRUSTED_PROXIES).len(), 2);
}

#[rstest::rstest]
#[case::own("registry.example:5000/agent:2", true)]
#[case::own_registry_other_repository("Registry.Example:5000/team/other", true)]
#[case::other_port("registry.example:5001/agent:2", false)]
#[case::other_registry("evil.example/registry.example:5000", false)]
#[case::docker_hub("agent:2", false)]
fn l38_credentials_are_sent_to_no_other_registry(#[case] image: &str, #[case] sent: bool) {
    let config = stored(json!({
        "image.name": "registry.example:5000/agent",
        "image.registry_username": "u",
        "image.registry_password": "12345678",
    }));
    let image: ImageReference = image.parse().unwrap();
    assert_eq!(config.registry_credentials_for(&image).is_some(), sent);
}

#[test]
fn an_agent_that_runs_as_its_image_gets_its_capabilities_unless_others_are_set() {
    let config = Config::default().with_run_as_image(true);
    assert_eq!(config.get(&container::CAPABILITIES), IMAGE_CAPABILITIES);
    assert!(save(&config, &config.to_document(true)).unwrap().is_empty());
    let none = save(&config, &json!({"container": {"capabilities": []}})).unwrap();
    assert_eq!(
        none,
        BTreeMap::from([("container.capabilities", Some(json!([])))])
    );
    assert_eq!(
        config.apply(&Changes(none)).get(&container::CAPABILITIES),
        [""; 0]
    );
}

#[test]
fn the_schema_describes_every_key() {
    let schema = json_schema();
    for def in KEYS.values() {
        let pointer = def.key.replace('.', "/properties/");
        let described = schema.pointer(&format!("/properties/{pointer}")).unwrap();
        assert_eq!(described["title"], json!(def.title));
        assert_eq!(described["default"], def.default_value());
        assert_eq!(described["secret"], json!(def.is_secret()));
    }
    assert_eq!(
        schema.pointer("/properties/ldap/properties/bind_password/secret"),
        Some(&json!(true))
    );
}

/// A secret that is recognised wherever it turns up.
fn secret_text() -> impl Strategy<Value = String> {
    "S3CR3T[a-z]{6}"
}

/// Trees whose texts are all secrets.
fn secret_tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        secret_text().prop_map(Value::String),
        any::<i64>().prop_map(|n| json!(n)),
        any::<bool>().prop_map(|b| json!(b)),
        Just(Value::Null),
        Just(json!("")),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::btree_map("[a-z~/]{1,6}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn any_config() -> impl Strategy<Value = Config> {
    (
        proptest::collection::btree_map("[a-z]{1,5}", secret_tree(), 0..5),
        proptest::collection::btree_map("[a-z]{0,3}(token|Password|api-key)", secret_tree(), 0..4),
        proptest::option::of(secret_text()),
        16..1000_i64,
        proptest::collection::vec("[a-z]{1,8}", 0..4),
    )
        .prop_map(|(security, agent, password, pids_limit, clients)| {
            let mut values = BTreeMap::from([
                ("security".to_owned(), json!(security)),
                ("agent".to_owned(), json!(agent)),
                ("container.pids_limit".to_owned(), json!(pids_limit)),
                ("web.desktop_user_agents".to_owned(), json!(clients)),
            ]);
            if let Some(password) = password {
                values.insert("image.registry_password".to_owned(), json!(password));
            }
            Config::from_stored(values)
        })
}

fn dotted(document: &Value) -> Value {
    let mut flat = serde_json::Map::new();
    for def in KEYS.values() {
        let pointer = format!("/{}", def.key.replace('.', "/"));
        if let Some(value) = document.pointer(&pointer) {
            flat.insert(def.key.to_owned(), value.clone());
        }
    }
    Value::Object(flat)
}

proptest! {
    #[test]
    fn l21_a_masked_document_never_leaks(config in any_config()) {
        let shown = config.to_document(true).to_string();
        prop_assert!(!shown.contains("S3CR3T"), "{}", shown);
        let debug = format!("{config:?}");
        prop_assert!(!debug.contains("S3CR3T"), "{}", debug);
    }

    #[test]
    fn saving_what_was_shown_changes_nothing(config in any_config()) {
        prop_assert_eq!(save(&config, &config.to_document(true)), Ok(BTreeMap::new()));
        prop_assert_eq!(save(&config, &config.to_document(false)), Ok(BTreeMap::new()));
    }

    #[test]
    fn nested_and_dotted_mean_the_same(config in any_config()) {
        let document = config.to_document(false);
        prop_assert_eq!(parse_patch(&document), parse_patch(&dotted(&document)));
    }

    #[test]
    fn what_was_saved_is_in_effect(before in any_config(), after in any_config()) {
        let desired = after.to_document(false);
        let changes = parse_patch(&desired).unwrap().resolve(&before).unwrap();
        prop_assert_eq!(before.apply(&changes).to_document(false), desired);
    }

    #[test]
    fn no_document_makes_the_parser_panic(text in "\\PC{0,60}", value in secret_tree()) {
        let _ = parse_patch(&json!({ text: value.clone() }));
        let _ = parse_patch(&value);
        for def in KEYS.values() {
            let _ = def.check(&value);
        }
    }
}
