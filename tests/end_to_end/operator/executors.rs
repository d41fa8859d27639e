//! Executors and MCP tokens of users.

use serde_json::{Value, json};

use super::{ends, with_users};
use crate::support::{McpUser, Stage};

#[tokio::test]
async fn executors_are_listed_described_and_disconnected() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let admin = service.admin().await;
    let none = ends(&stage, "get executors", 0).await;
    assert_eq!(none.stderr, "no executors\n");

    let alice = McpUser::create(&service, &admin, "alice").await;
    let bob = McpUser::create(&service, &admin, "bob").await;
    let mut browser = alice.executor("browser").await;
    let hello = json!({"type": "hello", "protocol": 2, "instance": "i-1", "label": "laptop",
        "client": {"name": "extension", "version": "9.1", "platform": "linux"}});
    browser.send(hello.to_string()).await;
    assert_eq!(browser.question().await["type"], "welcome");
    let mut desktop = bob.executor("computer").await;

    let listed = ends(&stage, "get executors -o json", 0).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let answer = admin.get("/api/admin/executors").await.expect(200);
    assert_eq!(listed, answer["executors"]);
    let [first, second] = [0, 1].map(|index| listed[index]["id"].to_string());

    let table = ends(&stage, "get executors", 0).await;
    let rows: Vec<Vec<&str>> = table
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let titles = [
        "ID",
        "USER",
        "SERVICE",
        "CLIENT",
        "LABEL",
        "VERSION",
        "PLATFORM",
        "ADDRESS",
        "CONNECTED",
        "IN",
        "PROGRESS",
        "CALLS",
    ];
    assert_eq!(rows[0], titles, "{}", table.stdout);
    let shown = [
        &first,
        "alice",
        "browser",
        "extension",
        "laptop",
        "9.1",
        "linux",
        "127.0.0.1",
    ];
    assert_eq!(rows[1][..8], shown, "{}", table.stdout);
    let shown = [&second, "bob", "computer", "-", "-", "-", "-", "127.0.0.1"];
    assert_eq!(rows[2][..8], shown, "{}", table.stdout);
    assert_eq!(rows[2][9..], ["0", "0"], "{}", table.stdout);
    let wide = ends(&stage, "get executors -o wide --search ali", 0).await;
    assert!(wide.stdout.contains("i-1") && !wide.stdout.contains("bob"));
    let names = ends(&stage, "get executors -o name", 0).await;
    assert_eq!(
        names.stdout,
        format!("executor/{first}\nexecutor/{second}\n")
    );

    let one = ends(&stage, &format!("describe executor/{second}"), 0).await;
    for part in [
        format!("Name:  executor/{second}\n"),
        "username: bob\n".to_owned(),
        "service: computer\n".to_owned(),
        "late_answers: 0\n".to_owned(),
    ] {
        assert!(one.stdout.contains(&part), "{part}: {}", one.stdout);
    }
    let yaml = ends(&stage, &format!("get executor {first} -o yaml"), 0).await;
    assert!(yaml.stdout.contains("label: laptop"), "{}", yaml.stdout);

    let gone = ends(&stage, &format!("executor disconnect {first}"), 0).await;
    assert_eq!(
        gone.stdout,
        format!("executor {first} of alice disconnected\n")
    );
    assert_eq!(browser.ended().await.1, 1000);
    // The one that is there is disconnected beside one that is not.
    let some = ends(
        &stage,
        &format!("executor disconnect {first} executor/{second}"),
        1,
    )
    .await;
    assert!(
        some.stdout.contains("of bob disconnected"),
        "{}",
        some.stdout
    );
    assert!(some.stderr.contains(&first), "{}", some.stderr);
    assert_eq!(desktop.ended().await.1, 1000);
    for (line, code) in [
        (format!("executor disconnect {first}"), 1),
        (format!("describe executor/{first}"), 1),
        ("executor disconnect alice".to_owned(), 2),
        ("executor disconnect".to_owned(), 2),
        ("retry executor/1".to_owned(), 2),
    ] {
        ends(&stage, &line, code).await;
    }
}

#[tokio::test]
async fn a_rotated_token_is_said_to_have_ended_and_never_printed() {
    let stage = Stage::new();
    let (service, admin) = with_users(&stage, &[]).await;
    let alice = McpUser::create(&service, &admin, "alice").await;
    let mut browser = alice.executor("browser").await;
    let line = "user token rotate alice --detach";
    let rotated = ends(&stage, line, 0).await;
    let said = format!("{}{}", rotated.stdout, rotated.stderr);
    for part in ["no longer valid", "disconnected", "wait agent-config/alice"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(browser.ended().await.1, 4403);
    // Neither the previous one nor the new one; both begin so.
    assert!(!said.contains("alice:"), "{said}");
    assert!(!said.contains(alice.token.split_once(':').unwrap().1));
    let unknown = ends(&stage, "user token rotate nobody", 1).await;
    assert_eq!(unknown.stdout, "");
    ends(&stage, "user token rotate", 2).await;
}
