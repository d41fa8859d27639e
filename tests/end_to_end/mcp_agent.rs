//! The agent in its container: the MCP client that it has uses what the service has written into its own file, and reaches its
//! user's executors with it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::mcp::Executor;
use crate::support::{Client, Engine, McpUser, PATIENCE, Service, Stage, eventually, seconds};

/// Answers whatever is asked, with the name of its user.
async fn execute(mut executor: Executor, name: String) {
    while let Some(question) = executor.next().await {
        if question["tool"].is_string() {
            let result = json!({"user": name, "tool": question["tool"]});
            executor.answer(&question, result).await;
        }
    }
}

async fn user(service: &Service, admin: &Client, name: &str) -> (McpUser, Client) {
    let password = admin.create_user(name).await;
    let browser = service.client().signed_in(name, &password).await;
    (McpUser::signed_in(service, name, &browser).await, browser)
}

/// What the agent says of each service and transport.
async fn uses(engine: &Engine, name: &str) -> BTreeMap<String, Value> {
    let found = eventually("the agent has used all of it", seconds(60), async || {
        let Some(log) = engine.try_by_hand(&["logs", &format!("agentyard-{name}")]) else {
            return Err("no container".to_owned());
        };
        let said = log.lines().filter_map(|line| line.strip_prefix("mcp: {"));
        let said =
            said.map(|rest| -> Value { serde_json::from_str(&format!("{{{rest}")).unwrap() });
        let said = said.map(|use_| {
            let name = |key: &str| use_[key].as_str().unwrap().to_owned();
            (
                format!("{} by {}", name("service"), name("transport")),
                use_,
            )
        });
        let said: BTreeMap<_, _> = said.collect();
        if said.len() == 4 { Ok(said) } else { Err(log) }
    });
    found.await.0
}

#[tokio::test]
async fn engine_mcp_an_agent_uses_its_users_executors_with_what_stands_in_its_own_file() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let launch = stage.serve_with(&engine, "mcp");
    let service = launch.args(&["--adapter", "echo"]).start().await;
    let admin = service.admin().await;
    let (alice, own) = user(&service, &admin, "alice").await;
    let (bob, _) = user(&service, &admin, "bob").await;
    let mut executors = JoinSet::new();
    for person in [&alice, &bob] {
        for kind in ["browser", "computer"] {
            executors.spawn(execute(person.executor(kind).await, person.name.clone()));
        }
    }
    let tools = async |person: &McpUser, kind: &str| {
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let listed = person.ask(kind, &list).await;
        listed["result"]["tools"].as_array().unwrap().len()
    };
    for person in [&alice, &bob] {
        let uses = uses(&engine, &person.name).await;
        for (kind, tool) in [
            ("browser", "browser_current_tab"),
            ("computer", "computer_screen_size"),
        ] {
            for transport in ["sse", "http"] {
                let said = &uses[&format!("{kind} by {transport}")];
                // Its own user's executor has answered, and nobody else's.
                let expected = json!({"user": person.name, "tool": tool});
                assert_eq!(said["result"], expected, "{said}");
                assert_eq!(said["tools"], tools(person, kind).await, "{said}");
            }
        }
    }
    // The address is that of the listener for agents, and the token the user's own.
    let url = || {
        let file = stage.data().join("users/alice/.agent/config.json");
        let config: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let url = config["mcp"]["servers"]["browser"]["url"].clone();
        url::Url::parse(url.as_str().unwrap()).unwrap()
    };
    let token_in = |url: &url::Url| url.query_pairs().next().unwrap().1.into_owned();
    let before = url();
    assert_eq!(before.host_str(), Some(engine.service_host()), "{before}");
    assert_ne!(before.port(), Some(service.address().port()), "{before}");
    assert_eq!(token_in(&before), alice.token);

    // With another token everything of the previous one ends, and the agent goes on with the new one.
    let container = engine.the_running("alice").id;
    let rotated = stage
        .command()
        .run(&["user", "token", "rotate", "alice"])
        .await;
    assert!(rotated.status.success(), "{}", rotated.stderr);
    assert!(
        rotated.stdout.contains("agent-config/alice is ready"),
        "{}",
        rotated.stdout
    );
    for _ in 0..2 {
        let ended = tokio::time::timeout(PATIENCE, executors.join_next()).await;
        ended.expect("alice's executors end").unwrap().unwrap();
    }
    let alice = McpUser::signed_in(&service, "alice", &own).await;
    assert_eq!(token_in(&url()), alice.token);
    assert_ne!(alice.token, token_in(&before));
    for kind in ["browser", "computer"] {
        executors.spawn(execute(
            alice.executor(kind).await,
            "alice again".to_owned(),
        ));
    }
    eventually(
        "another container runs",
        seconds(60),
        async || match engine.of("alice").as_slice() {
            [one] if one.id != container && one.state == "running" => Ok(()),
            all => Err(format!("{all:?}")),
        },
    )
    .await;
    for said in uses(&engine, "alice").await.values() {
        assert_eq!(said["result"]["user"], "alice again", "{said}");
    }
    assert_eq!(executors.len(), 4, "bob's went on");
}
