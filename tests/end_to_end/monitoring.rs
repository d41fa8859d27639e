//! Metrics in a real scrape, and the alert rules that read them.

use std::path::Path;
use std::process::Command;

use schema::metric::ALL;

use crate::support::client::{Client, Target};
use crate::support::{Engine, Stage, eventually, seconds};

/// Users whose agents start at once.
const USERS: usize = 40;

/// The value of a series, by the beginning of its line.
fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series));
    line.and_then(|rest| rest.trim().parse().ok())
        .unwrap_or_else(|| panic!("no {series} in\n{text}"))
}

/// The sum of a metric's series whose labels contain these words.
fn sum(text: &str, metric: &str, words: &[&str]) -> f64 {
    let of_metric = text.lines().filter(|line| {
        let rest = line.strip_prefix(metric);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
            && words.iter().all(|word| line.contains(word))
    });
    let values = of_metric.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    values.sum()
}

#[tokio::test]
async fn engine_metrics_count_what_has_happened() {
    let (engine, stage) = (Engine::claim(), Stage::new());
    let launch = stage
        .serve(&engine)
        .env("AGENTYARD_METRICS_LISTEN", "127.0.0.1:0");
    let service = launch.env("AGENTYARD_SAMPLE", "1s").start().await;
    let log = service.log();
    let address = log
        .split("http://")
        .find_map(|rest| rest.split_once("/metrics")?.0.parse().ok());
    let prometheus = Client::new(Target::Tcp(address.expect("the log names it")));
    let admin = service.admin().await;
    let names: Vec<String> = (0..USERS).map(|n| format!("user{n}")).collect();
    let form = [("usernames", &*names.join(",")), ("wait", "120")];
    let created = admin.post("/api/admin/users/batch-create", &form).await;
    created.converged();
    for name in &names {
        admin.status(name, "running", seconds(60)).await;
    }

    // One goes without a request, and is started again.
    engine.docker(&["kill", "agentyard-user0"]);
    admin.event("container/user0", "Exited", seconds(20)).await;
    admin.status("user0", "running", seconds(30)).await;

    let scrape = async || prometheus.get("/metrics").await.text();
    let (text, _) = eventually("all agents are sampled", seconds(20), async || {
        let text = scrape().await;
        match value(&text, "agentyard_agents_sampled") {
            40.0 => Ok(text),
            sampled => Err(sampled.to_string()),
        }
    })
    .await;
    for metric in ALL {
        let head = format!("# TYPE {} {}\n", metric.definition().name, metric.kind());
        // A service without TLS has no certificate whose end could be told.
        if metric.definition().name.contains("certificate_expires") {
            assert!(!text.contains(&head), "{head}");
            continue;
        }
        assert!(text.contains(&head), "{head}");
        let help = format!(
            "# HELP {} {}\n",
            metric.definition().name,
            metric.definition().help()
        );
        assert!(text.contains(&help), "{help}");
    }

    let (mut starts, mut ends) = (0.0, 0.0);
    for name in &names {
        for event in admin.events(&format!("container/{name}")).await {
            let count = event["count"].as_f64().unwrap();
            if event["action"] == "Start" && event["reason"] == "Progressing" {
                starts += count;
            }
            if event["action"] == "NoteEnd" {
                ends += count;
            }
        }
    }
    assert!(starts >= 41.0, "{starts}");
    assert_eq!(
        sum(&text, "agentyard_agent_starts_total", &["success"]),
        starts
    );
    assert_eq!(
        sum(&text, "agentyard_agent_starts_total", &["ended", "success"]),
        1.0
    );
    assert_eq!(sum(&text, "agentyard_agent_ends_total", &["exit"]), ends);
    assert!(
        sum(
            &text,
            "agentyard_engine_calls_total",
            &["\"start\"", "success"]
        ) >= starts
    );
    assert_eq!(value(&text, "agentyard_agents{state=\"running\"}"), 40.0);
    assert_eq!(
        value(
            &text,
            "agentyard_objects{kind=\"container\",ready=\"true\"}"
        ),
        40.0
    );
    assert!(value(&text, "agentyard_agents_memory_bytes") > 1e6);
    assert!(value(&text, "agentyard_agents_cpu_seconds_total") > 0.0);
    for up in [
        "engine_up",
        "engine_events_connected",
        "database_up",
        "leader",
        "leader_known",
    ] {
        assert_eq!(value(&text, &format!("agentyard_{up} ")), 1.0, "{up}");
    }
    assert!(sum(&text, "agentyard_sign_ins_total", &["password", "success"]) >= 1.0);
    assert!(
        sum(
            &text,
            "agentyard_http_requests_total",
            &["/api/admin/users/batch-create", "POST", "2xx"]
        ) >= 1.0
    );
    assert!(!text.contains("user0"), "no names of users");

    let checked = promtool(&["check", "metrics"], Some(&text));
    assert!(checked.0, "{}", checked.1);
    // The dashboard has the same numbers.
    let summary = admin.get("/api/admin/summary").await.expect(200);
    let load = summary["load"].as_array().unwrap();
    assert!(!load.is_empty());
}

/// Runs promtool; returns whether it found nothing wrong, and what it says.
fn promtool(arguments: &[&str], input: Option<&str>) -> (bool, String) {
    use std::io::Write as _;
    use std::process::Stdio;

    let mut child = Command::new("promtool")
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/monitoring"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool comes with the package prometheus: run tests/services/install");
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(input.unwrap_or_default().as_bytes())
        .unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

#[test]
fn alert_rules_are_valid_and_fire() {
    for arguments in [
        ["check", "rules", "alerts.yml"],
        ["test", "rules", "alerts-test.yml"],
    ] {
        let (good, said) = promtool(&arguments, None);
        assert!(good, "{said}");
    }
}

#[test]
fn expressions_of_the_dashboard_are_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/monitoring/dashboard.json");
    let dashboard: serde_json::Value =
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels
        .filter_map(|panel| panel["targets"].as_array())
        .flatten();
    let expressions = targets.map(|target| {
        target["expr"]
            .as_str()
            .unwrap()
            .replace("$job", "agentyard")
    });
    let rules: Vec<_> = expressions
        .enumerate()
        .map(|(n, expr)| serde_json::json!({"record": format!("panel:{n}"), "expr": expr}))
        .collect();
    assert!(rules.len() > 30);
    let file = tempfile::NamedTempFile::with_suffix(".yml").unwrap();
    let groups = serde_json::json!({"groups": [{"name": "dashboard", "rules": rules}]});
    std::fs::write(file.path(), groups.to_string()).unwrap();
    let (good, said) = promtool(&["check", "rules", file.path().to_str().unwrap()], None);
    assert!(good, "{said}");
}
