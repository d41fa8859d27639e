//! Policies for agents, as they are written.

use std::collections::BTreeSet;

use engine::Isolation;
use schema::config::LanAccess;
use serde_json::{Value, json};

use crate::options::NetworkOptions;
use crate::policies::{self, Policies};

fn options(changes: Value) -> NetworkOptions {
    let mut options = json!({
        "serviceUrl": "http://agentyard-agents:8081",
        "serviceLabels": { "app": "agentyard" },
        "nameServers": ["10.96.0.10"],
        "closed": ["10.244.0.0/16", "10.96.0.0/12", "203.0.114.0/24", "fd01::/64"],
    });
    super::merge(&mut options, changes);
    serde_json::from_value(options).unwrap()
}

fn isolation(lan_access: &str) -> Isolation {
    Isolation {
        lan_access: lan_access.parse::<LanAccess>().unwrap(),
        agent_ports: BTreeSet::from([18790, 18791]),
        ..Isolation::default()
    }
}

fn written_rules(isolation: &Isolation, options: &NetworkOptions) -> [Value; 2] {
    let policies = Policies::new("me", isolation, options);
    [policies.ingress, policies.egress].map(|spec| serde_json::to_value(spec).unwrap())
}

fn egress(lan_access: &str, changes: Value) -> Vec<Value> {
    let [_, egress] = written_rules(&isolation(lan_access), &options(changes));
    egress["egress"].as_array().unwrap().clone()
}

fn port(protocol: &str, port: u16) -> Value {
    json!({ "protocol": protocol, "port": port })
}

#[test]
fn agents_are_selected_by_owner_and_role() {
    for spec in written_rules(&isolation("none"), &options(json!({}))) {
        let selected = json!({ "agentyard.io/owner": "me", "agentyard.io/role": "agent" });
        assert_eq!(spec["podSelector"], json!({ "matchLabels": selected }));
    }
}

#[test]
fn only_the_service_reaches_the_adapters_ports() {
    let [ingress, _] = written_rules(&isolation("none"), &options(json!({})));
    let rule = json!([{
        "from": [{ "podSelector": { "matchLabels": { "app": "agentyard" } } }],
        "ports": [port("TCP", 18790), port("TCP", 18791)],
    }]);
    assert_eq!(ingress["ingress"], rule);
    assert_eq!(ingress["policyTypes"], json!(["Ingress"]));
}

#[rstest::rstest]
#[case(json!({}), BTreeSet::new())]
#[case(json!({ "serviceLabels": null }), BTreeSet::from([1]))]
fn rule_without_peers_or_ports_is_not_written(
    #[case] changes: Value,
    #[case] ports: BTreeSet<u16>,
) {
    let mut options = options(json!({}));
    if changes.get("serviceLabels").is_some() {
        options.service_labels.clear();
    }
    let isolation = Isolation {
        agent_ports: ports,
        ..Isolation::default()
    };
    let [ingress, _] = written_rules(&isolation, &options);
    assert_eq!(ingress.get("ingress"), None);
    assert_eq!(ingress["policyTypes"], json!(["Ingress"]));
}

#[test]
fn names_the_service_and_the_internet_are_open() {
    let rules = egress("private", json!({ "serviceNetworks": ["192.168.7.1/32"] }));
    let both = |number| [port("UDP", number), port("TCP", number)];
    assert_eq!(
        rules[0],
        json!({ "to": [{ "ipBlock": { "cidr": "10.96.0.10/32" } }], "ports": both(53) })
    );
    assert_eq!(
        rules[1],
        json!({
            "to": [{ "namespaceSelector": {}, "podSelector": { "matchLabels": { "k8s-app": "kube-dns" } } }],
            "ports": ([both(53), both(5353)].concat()),
        })
    );
    assert_eq!(
        rules[2],
        json!({
            "to": [
                { "podSelector": { "matchLabels": { "app": "agentyard" } } },
                { "ipBlock": { "cidr": "192.168.7.1/32" } },
            ],
            "ports": [port("TCP", 8081)],
        })
    );
    let [v4, v6] = [0, 1].map(|number| rules[3]["to"][number]["ipBlock"].clone());
    assert_eq!(
        (&v4["cidr"], &v6["cidr"]),
        (&json!("0.0.0.0/0"), &json!("::/0"))
    );
    let closed = |block: &Value, network: &str| {
        block["except"]
            .as_array()
            .unwrap()
            .contains(&json!(network))
    };
    for network in [
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "203.0.114.0/24",
        "224.0.0.0/4",
    ] {
        assert!(closed(&v4, network), "{network} in {v4}");
    }
    for network in ["fc00::/7", "fe80::/10", "ff00::/8", "::1/128"] {
        assert!(closed(&v6, network), "{network} in {v6}");
    }
    assert!(!closed(&v4, "10.244.0.0/16"), "it is in 10.0.0.0/8: {v4}");
    assert_eq!(rules.len(), 4);
}

#[test]
fn named_networks_are_open_but_for_the_clusters_own() {
    let rules = egress("10.0.0.0/8,10.244.3.0/24,192.168.7.0/24", json!({}));
    let peers = rules[3]["to"].as_array().unwrap();
    let expected = [
        json!({ "ipBlock": { "cidr": "10.0.0.0/8", "except": ["10.96.0.0/12", "10.244.0.0/16"] } }),
        json!({ "ipBlock": { "cidr": "192.168.7.0/24" } }),
    ];
    assert_eq!(peers[2..], expected);
}

#[test]
fn private_networks_are_opened_by_name_only() {
    let named = LanAccess::Only(vec!["192.168.7.0/24".parse().unwrap()]);
    for (configured, opened) in [
        (LanAccess::Private, LanAccess::Only(Vec::new())),
        (LanAccess::Open, LanAccess::Open),
        (named.clone(), named),
    ] {
        assert_eq!(policies::opened_networks(configured), opened);
    }
}

#[test]
fn open_networks_leave_the_clusters_own_closed() {
    let rules = egress("open", json!({}));
    let expected = json!([
        { "ipBlock": { "cidr": "0.0.0.0/0", "except": ["10.96.0.0/12", "10.244.0.0/16", "203.0.114.0/24"] } },
        { "ipBlock": { "cidr": "::/0", "except": ["fd01::/64"] } },
    ]);
    assert_eq!(rules[3]["to"], expected);
}

#[test]
fn proxy_is_all_of_the_internet() {
    let rules = egress("192.168.7.0/24", json!({ "proxy": "10.1.2.3:3128" }));
    let expected = json!({
        "to": [{ "ipBlock": { "cidr": "10.1.2.3/32" } }], "ports": [port("TCP", 3128)],
    });
    assert_eq!((&rules[3], rules.len()), (&expected, 4));
}

#[rstest::rstest]
#[case("10.1.2.3", Some("10.1.2.3/32"))]
#[case("[fd00::1]", Some("fd00::1/128"))]
#[case("agents.example.org", None)]
fn address_that_an_administrator_gives_agents_is_open(
    #[case] host: &str,
    #[case] expected: Option<&str>,
) {
    let isolation = Isolation {
        service: Some((host.to_owned(), 443)),
        ..isolation("none")
    };
    let [_, egress] = written_rules(&isolation, &options(json!({})));
    let rules = egress["egress"].as_array().unwrap();
    let rule = expected.map(
        |cidr| json!({ "to": [{ "ipBlock": { "cidr": cidr } }], "ports": [port("TCP", 443)] }),
    );
    assert_eq!(rules.get(3).filter(|_| rules.len() == 5), rule.as_ref());
}

#[rstest::rstest]
#[case(json!({ "a": 1 }), json!({ "a": 1 }), None)]
#[case(json!({ "a": 1, "b": 2 }), json!({ "a": 1 }), Some(json!({ "b": null })))]
#[case(json!({ "a": { "x": 1, "y": 2 } }), json!({ "a": { "x": 3 } }), Some(json!({ "a": { "x": 3, "y": null } })))]
#[case(json!({ "a": [1, 2] }), json!({ "a": [1] }), Some(json!({ "a": [1] })))]
#[case(json!({}), json!({ "a": { "x": 1 } }), Some(json!({ "a": { "x": 1 } })))]
#[case(json!(null), json!({ "a": 1 }), Some(json!({ "a": 1 })))]
fn change_takes_out_what_is_not_wanted(
    #[case] found: Value,
    #[case] wanted: Value,
    #[case] expected: Option<Value>,
) {
    assert_eq!(policies::change(&found, &wanted), expected);
}
