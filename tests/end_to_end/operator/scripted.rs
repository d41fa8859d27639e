//! Answers that a service gives only when something is wrong with it, from a socket that plays them.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader as AsyncBufReader};
use tokio::time::timeout;

use super::ends;
use crate::support::{PATIENCE, Stage};

/// Serves the administration socket of this stage; the script gives the whole answer to a path.
fn serve(stage: &Stage, mut script: impl FnMut(&str) -> String + Send + 'static) {
    std::fs::create_dir(stage.data()).unwrap();
    let listener = UnixListener::bind(stage.data().join("admin.sock")).unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            // Whoever looks whether somebody listens says nothing.
            let Some(Ok(request)) = lines.next() else {
                continue;
            };
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            let path = request.split(' ').nth(1).unwrap();
            // The reader may have gone already.
            let _ = stream.write_all(script(path).as_bytes());
        }
    });
}

fn answer(status: u16, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

fn ok(body: &Value) -> String {
    answer(200, &body.to_string())
}

const EVIL: &str = "\u{1b}[31mpwned\u{1b}]0;title\u{7}\u{202e}";

fn evil() -> Value {
    json!({"object": "container/eve", "kind": "container", "name": "eve", "uid": "u",
        "generation": 1, "observed_generation": 1, "paused": false,
        "conditions": [{"type": "Ready", "status": "False", "reason": "CrashLoop",
            "message": EVIL, "remedy": "Read the log.", "last_transition_at": "2026-05-11T11:46:40Z"}],
        "failures": 0, "desired": {"image": EVIL}, "observed": {"image_ref": EVIL, "ends": [{"at": "2026-05-11T11:41:40Z", "cause": EVIL, "log": [EVIL]}]},
        "next": EVIL, "force": {"command": format!("agentyard retry {EVIL}")},
        "plan": {"actions": [EVIL]},
        "events": [{"id": 1, "object": "container/eve", "reason": "x", "action": "", "message": EVIL,
            "count": 1, "first_at": "2026-05-11T11:46:40Z", "last_at": "2026-05-11T11:46:40Z"}]})
}

#[tokio::test]
async fn what_an_agent_wrote_cannot_play_with_the_terminal() {
    let stage = Stage::new();
    serve(&stage, |path| match path {
        path if path.starts_with("/api/admin/reconcile/objects/") => ok(&evil()),
        path if path.starts_with("/api/admin/reconcile/objects?") => {
            ok(&json!({"objects": [evil()], "page": 1, "total_pages": 1}))
        }
        path if path.starts_with("/api/admin/events") => ok(&json!({"events": evil()["events"]})),
        path if path.ends_with("&follow=true") => {
            format!(
                "HTTP/1.1 200 X\r\nconnection: close\r\n\r\ndata: {EVIL}\n\nevent: end\ndata:\n\n"
            )
        }
        path if path.starts_with("/api/admin/container/logs") => ok(&json!({"logs": EVIL})),
        "/api/admin/reconcile" => ok(&json!({"reconcilers": []})),
        _ => answer(500, &json!({"success": false, "error": EVIL}).to_string()),
    });
    for (line, code) in [
        ("get containers -o wide", 0),
        ("describe container/eve", 0),
        ("diff container/eve", 1),
        ("events", 0),
        ("logs eve", 0),
        ("logs eve --follow", 0),
        ("logs eve --previous", 0),
        ("wait container/eve --timeout 0s", 124),
        ("wait container/eve --fail-fast", 1),
        ("get users", 1),
    ] {
        let shown = ends(&stage, line, code).await;
        let text = shown.stdout + &shown.stderr;
        assert!(text.contains("pwned"), "{line}: {text}");
        let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(harmful), "{line}: {text:?}");
    }
    let json = ends(&stage, "get container eve -o json", 0).await;
    assert_eq!(serde_json::from_str::<Value>(&json.stdout).unwrap(), evil());
}

#[tokio::test]
async fn the_audit_log_is_listed_verified_and_exported() {
    let stage = Stage::new();
    let mut verdicts = [
        json!({"valid": true, "entries": 2, "problem": null}),
        json!({"valid": false, "entries": 2, "problem": {"seq": 2, "message": "entry 2 was changed"}}),
        json!({"success": true}),
    ]
    .into_iter();
    let entry = |seq: u64| {
        json!({"seq": seq, "at": "2026-05-11T11:46:40Z", "actor": "admin", "address": "::1",
            "action": "users.delete", "object": "user/bob", "outcome": "ok", "request_id": "r"})
    };
    serve(&stage, move |path| match path {
        "/api/admin/audit?page=1&page_size=200&search=b%20o" => {
            ok(&json!({"entries": [entry(2)], "page": 1, "total_pages": 2}))
        }
        "/api/admin/audit?page=2&page_size=200&search=b%20o" => {
            ok(&json!({"entries": [entry(1)], "page": 2, "total_pages": 2}))
        }
        "/api/admin/audit/verify" => ok(&verdicts.next().unwrap()),
        "/api/admin/audit/export" => answer(200, "{\"seq\":1}\n{\"seq\":2}\n"),
        other => answer(404, &json!({"success": false, "error": other}).to_string()),
    });
    let program = env!("CARGO_BIN_EXE_agentyard");
    let data = stage.data().display().to_string();
    let list = tokio::process::Command::new(program)
        .args([
            "audit",
            "list",
            "--search",
            "b o",
            "-o",
            "wide",
            "--data-dir",
            &data,
        ])
        .output();
    let list = String::from_utf8(list.await.unwrap().stdout).unwrap();
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 3, "{list}");
    assert!(lines[0].starts_with("SEQ  AT"), "{list}");
    assert!(
        lines[2].starts_with("1    2026-05-11T11:46:40Z  admin"),
        "{list}"
    );

    let whole = ends(&stage, "audit verify", 0).await;
    assert!(whole.stdout.contains("2 entries"), "{}", whole.stdout);
    let broken = ends(&stage, "audit verify", 1).await;
    assert_eq!(broken.stdout, "");
    assert!(
        broken.stderr.contains("entry 2 was changed"),
        "{}",
        broken.stderr
    );
    // No verdict is no good verdict.
    ends(&stage, "audit verify", 1).await;
    let export = ends(&stage, "audit export", 0).await;
    assert_eq!(export.stdout, "{\"seq\":1}\n{\"seq\":2}\n");
    let unknown = ends(&stage, "get tasks", 1).await;
    assert!(
        unknown.stderr.contains("another version"),
        "{}",
        unknown.stderr
    );
}

#[tokio::test]
async fn a_watched_list_is_told_what_changes_and_lists_again_only_when_it_must() {
    let stage = Stage::new();
    let object = |name: &str, reason: &str| {
        json!({"object": format!("container/{name}"), "name": name, "kind": "container",
            "conditions": [{"type": "Ready", "status": "False", "reason": reason}]})
    };
    let list = |objects: Vec<Value>| {
        ok(&json!({"objects": objects, "page": 1, "total_pages": 1, "watch_id": "x-1"}))
    };
    let mut lists = 0;
    let mut watches = 0;
    serve(&stage, move |path| {
        if path == "/api/admin/watch?kind=container" {
            watches += 1;
            let events = match watches {
                1 => {
                    "event: open\nid: x-1\ndata: {}\n\nid: x-2\ndata: {\"object\":\"container/b\"}\n\n"
                }
                2 => "event: resync\nid: x-9\ndata: {}\n\n",
                _ => "",
            };
            return format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{events}");
        }
        if path.contains("search=b") {
            return list(vec![object("b", "Second")]);
        }
        lists += 1;
        match lists {
            1 => list(vec![
                object("a", "First"),
                object("b", "First"),
                object("c", "First"),
            ]),
            // What has not changed is not told again; c went unnoticed.
            _ => list(vec![object("a", "First"), object("b", "Third")]),
        }
    });
    let mut child = stage
        .command()
        .begin(&["get", "containers", "--watch", "-o", "json"]);
    let mut lines = AsyncBufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = Vec::new();
    for _ in 0..6 {
        let line = timeout(PATIENCE, lines.next_line()).await;
        let line = line.unwrap().unwrap().expect("it goes on");
        let item: Value = serde_json::from_str(&line).unwrap();
        let reason = item["conditions"][0]["reason"].as_str().unwrap();
        told.push(format!("{} {reason}", item["name"].as_str().unwrap()));
    }
    let expected = [
        "a First", "b First", "c First", "b Second", "b Third", "c Gone",
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn status_shows_what_is_known_while_the_database_is_away() {
    let stage = Stage::new();
    let away = || {
        answer(
            503,
            &json!({"success": false, "error": "the database is away"}).to_string(),
        )
    };
    serve(&stage, move |path| match path {
        "/readyz" => answer(503, "database: unavailable\nengine: ok\n"),
        _ => away(),
    });
    let status = ends(&stage, "status", 69).await;
    let expected = "database: unavailable\nengine: ok\nreconcilers: not known: the database is away\n\
                    objects that are not ready: not known: the database is away\n";
    assert_eq!(status.stdout, expected);
    assert_eq!(status.stderr, "error: the server is not ready\n");
}

#[tokio::test]
async fn rollouts_are_listed_with_image_and_progress() {
    let stage = Stage::new();
    let rollout = |id: &str, phase: &str, failed: u64| {
        json!({"id": id, "type": "upgrade", "phase": phase, "reference": "docker.io/agent:v2", "message": "",
            "created_at": "2026-05-11T11:46:40Z", "progress": {"total": 20, "done": 3, "failed": failed}})
    };
    let rollouts = json!({"rollouts": [rollout("b", "paused", 1), rollout("a", "succeeded", 0)], "page": 1, "total_pages": 1});
    serve(&stage, move |path| match path {
        "/api/admin/images/rollouts?page=1&page_size=200" => ok(&rollouts),
        other => answer(404, &json!({"success": false, "error": other}).to_string()),
    });
    let table = ends(&stage, "get rollouts --no-headers", 0).await.stdout;
    let words: Vec<&str> = table.split_whitespace().take(7).collect();
    let expected = [
        "b",
        "upgrade",
        "paused",
        "docker.io/agent:v2",
        "3/20,",
        "1",
        "failed",
    ];
    assert_eq!(words, expected, "{table}");
    for (line, expected) in [
        ("get rollouts -l state=paused -o name", "rollout/b\n"),
        ("get rollouts --not-ready -o name", "rollout/b\n"),
        (
            "get rollouts --sort-by name -o name",
            "rollout/a\nrollout/b\n",
        ),
    ] {
        assert_eq!(ends(&stage, line, 0).await.stdout, expected, "{line}");
    }
}

#[tokio::test]
async fn skill_of_several_is_asked_for_by_name() {
    let stage = Stage::new();
    let skills = json!({"skills": [{"name": "pdf", "path": "skills/pdf"}, {"name": "docx", "path": "skills/docx"}],
        "page": 1, "total_pages": 1});
    serve(&stage, move |path| match path {
        "/api/admin/skills/repos/list?name=team&page=1&page_size=200" => ok(&skills),
        other => answer(500, &json!({"success": false, "error": other}).to_string()),
    });
    let refused = ends(&stage, "skill install team", 1).await;
    assert!(
        refused.stderr.contains("has 2 skills") && refused.stderr.ends_with("\n  pdf\n  docx\n"),
        "{}",
        refused.stderr
    );
    // A repository that is not there is the server's to name.
    let other = ends(&stage, "skill install others", 1).await;
    assert!(
        other.stderr.contains("/api/admin/skills/install"),
        "{}",
        other.stderr
    );
}
