use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::*;

fn in_docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs/monitoring")
        .join(name)
}

#[test]
fn the_page_of_metrics_is_up_to_date() {
    let path = in_docs("metrics.md");
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(&path, document()).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page == document(), "run it with INSTA_UPDATE=always");
}

#[test]
fn names_carry_their_unit() {
    let mut names = BTreeSet::new();
    for metric in ALL {
        let name = metric.definition().name;
        assert!(names.insert(name), "{name} stands twice");
        assert!(
            name.starts_with("agentyard_") || name.starts_with("process_"),
            "{name}"
        );
        assert_eq!(
            metric.kind() == "counter",
            name.ends_with("_total"),
            "{name}"
        );
        let is_time =
            metric.kind() == "histogram" || name.contains("timestamp") || name.contains("wait");
        assert!(!is_time || name.ends_with("_seconds"), "{name}");
        assert!(metric.definition().help().ends_with('.'), "{name}");
    }
}

/// Names of metrics in a text, without the suffixes of histograms.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = words.filter(|word| word.starts_with("agentyard_") || word.starts_with("process_"));
    let plain = ours.map(|word| {
        let bare = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|suffix| word.strip_suffix(suffix));
        bare.unwrap_or(word).to_owned()
    });
    plain.collect()
}

#[test]
fn rules_and_dashboard_name_existing_metrics() {
    let known: BTreeSet<_> = ALL
        .iter()
        .map(|metric| metric.definition().name.to_owned())
        .collect();
    for file in ["alerts.yml", "alerts-test.yml", "dashboard.json"] {
        let text = std::fs::read_to_string(in_docs(file)).unwrap();
        let named = named(&text);
        assert!(!named.is_empty(), "{file}");
        let unknown: Vec<_> = named.difference(&known).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
}

#[test]
fn known_series_begin_at_zero() {
    let text = Exposition::default().text();
    let series = |line: &str| text.lines().any(|shown| shown.starts_with(line));
    assert!(series(
        "agentyard_agent_starts_total{cause=\"ended\",result=\"failure\"} 0"
    ));
    assert!(series("# TYPE agentyard_agent_starts_total counter"));
    assert!(series(
        "# HELP agentyard_leader 1 if this process leads: it runs the reconcilers."
    ));
    assert!(
        !text.contains("agentyard_http_requests_total{"),
        "routes are not known here"
    );
}

#[test]
fn held_gauge_falls_when_dropped() {
    let before = HTTP_STREAMS.get(&["chat"]);
    let held = HTTP_STREAMS.hold(&["chat"]);
    assert_eq!(HTTP_STREAMS.get(&["chat"]) - before, 1.0);
    drop(held);
    assert_eq!(HTTP_STREAMS.get(&["chat"]), before);
}

#[test]
fn followed_counter_never_falls() {
    AGENTS_CPU.follow(&[], 5.0);
    AGENTS_CPU.follow(&[], 3.0);
    assert_eq!(AGENTS_CPU.get(&[]), 5.0);
    AGENTS_CPU.follow(&[], 7.5);
    assert_eq!(AGENTS_CPU.get(&[]), 7.5);
}
