//! What a user or an administrator sets arrives in the agent's own files, exactly, once, and is kept there.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::engine::Happened;
use crate::support::{Client, Engine, Service, Stage, seconds, until};

/// A service with the echo adapter whose administrator permits both channels.
struct Yard {
    stage: Stage,
    service: Service,
    admin: Client,
    passwords: BTreeMap<String, String>,
}

impl Yard {
    async fn open(engine: &Engine) -> Self {
        Self::with(
            engine,
            "echo",
            json!({"channel_list": {"chat": {"enabled": true}, "mail": {"enabled": true}}}),
        )
        .await
    }

    async fn with(engine: &Engine, adapter: &str, agent: Value) -> Self {
        let stage = Stage::new();
        let launch = stage.serve(engine).args(&["--adapter", adapter]);
        let service = launch.start().await;
        let admin = service.admin().await;
        configure(&admin, json!({ "agent": agent })).await;
        Self {
            stage,
            service,
            admin,
            passwords: BTreeMap::new(),
        }
    }

    async fn user(&mut self, name: &str) -> Client {
        let password = self.admin.create_user(name).await;
        self.passwords.insert(name.to_owned(), password.clone());
        self.service.client().signed_in(name, &password).await
    }

    fn file(&self, user: &str, name: &str) -> PathBuf {
        let home = self.stage.data().join("users").join(user);
        home.join(".agent").join(name)
    }

    fn config(&self, user: &str) -> Value {
        let bytes = std::fs::read(self.file(user, "config.json")).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    fn security(&self, user: &str) -> Value {
        let bytes = std::fs::read(self.file(user, "security.json")).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    async fn generation(&self, object: &str) -> i64 {
        self.admin.object(object).await["generation"]
            .as_i64()
            .unwrap()
    }

    /// Waits until everything that was wanted of a user's agent has been seen to.
    async fn settled(&self, user: &str) {
        until(
            &format!("agent-config/{user} is settled"),
            seconds(30),
            async || {
                let object = self.admin.object(&format!("agent-config/{user}")).await;
                object["generation"] == object["observed_generation"]
                    && object["conditions"][0]["status"] == "True"
            },
        )
        .await;
    }
}

async fn configure(admin: &Client, values: Value) {
    // Ready agents get it in steps.
    let form = [("config", &*values.to_string()), ("wait", "60")];
    let answer = admin.post("/api/config", &form).await;
    assert_eq!(answer.json()["success"], true, "{}", answer.text());
}

async fn save(user: &Client, section: &str, values: Value) -> Value {
    let values = values.to_string();
    let form = [("section", section), ("values", &*values), ("wait", "60")];
    user.post("/api/agent/config-fields", &form)
        .await
        .converged()
}

/// How often a user's containers were started.
fn starts(happened: &[Happened]) -> usize {
    happened
        .iter()
        .filter(|event| event.action == "start")
        .count()
}

/// What the agent said at its last start about its configuration.
fn read_by_agent(engine: &Engine, user: &str) -> Value {
    let id = engine.the_running(user).id;
    let log = engine.by_hand(&["logs", &id]);
    let line = log.lines().find_map(|line| line.strip_prefix("config: "));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{log}"))).unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn engine_saving_a_channel_restarts_that_users_container_once_and_nobody_elses() {
    let engine = Engine::claim();
    let mut yard = Yard::open(&engine).await;
    let alice = yard.user("alice").await;
    yard.user("bob").await;
    yard.settled("alice").await;
    yard.settled("bob").await;
    let (before, bob) = (engine.the_running("alice"), engine.the_running("bob"));
    let since = engine.now();

    let values = json!({"enabled": true, "client_id": "4711", "client_secret": "0815-secret"});
    let answer = save(&alice, "chat", values.clone()).await;
    assert_eq!(answer["object"], "agent-config/alice", "{answer}");
    assert_eq!(starts(&engine.happened("alice", &since)), 1, "once");
    assert_ne!(engine.the_running("alice").id, before.id);
    // The agent has read it, as text although it looks like a number, and where its version wants it.
    let read = read_by_agent(&engine, "alice");
    let chat = &read["channel_list"]["chat"];
    assert_eq!(chat["enabled"], true, "{read}");
    assert_eq!(chat["settings"]["client_id"], "4711", "{read}");
    let security = yard.security("alice");
    assert_eq!(
        security["channel_list"]["chat"]["settings"]["client_secret"], "0815-secret",
        "{security}"
    );
    assert!(!read.to_string().contains("0815-secret"), "kept apart");
    assert_eq!(mode(&yard.file("alice", "config.json")), 0o600);
    assert_eq!(mode(&yard.file("alice", "security.json")), 0o600);

    // Saving the same again restarts again, once: the user asked for it.
    let since_again = engine.now();
    save(&alice, "chat", values).await;
    assert_eq!(starts(&engine.happened("alice", &since_again)), 1);

    // L43: the same field of another channel stays as it is.
    let mail = json!({"enabled": false, "client_id": "post"});
    save(&alice, "mail", mail).await;
    let config = yard.config("alice");
    assert_eq!(config["channel_list"]["chat"]["enabled"], true, "{config}");
    assert_eq!(config["channel_list"]["mail"]["enabled"], false, "{config}");
    assert_eq!(
        config["channel_list"]["chat"]["settings"]["client_id"],
        "4711"
    );

    // An empty secret is an unchanged one, and no answer ever says it.
    save(
        &alice,
        "chat",
        json!({"client_id": "4712", "client_secret": ""}),
    )
    .await;
    let fields = alice.get("/api/agent/config-fields?section=chat").await;
    let fields = fields.expect(200);
    assert!(fields.to_string().contains("4712"), "{fields}");
    assert!(!fields.to_string().contains("0815-secret"), "{fields}");
    let security = yard.security("alice");
    assert_eq!(
        security["channel_list"]["chat"]["settings"]["client_secret"],
        "0815-secret"
    );
    assert_eq!(starts(&engine.happened("bob", &since)), 0);
    assert_eq!(engine.the_running("bob").id, bob.id);
    assert!(!yard.service.log().contains("0815-secret"));
}

#[tokio::test]
async fn engine_ten_saves_in_a_second_are_at_most_two_restarts() {
    let engine = Engine::claim();
    let mut yard = Yard::open(&engine).await;
    let alice = yard.user("alice").await;
    yard.settled("alice").await;
    let since = engine.now();
    let began = tokio::time::Instant::now();
    for n in 0..10 {
        let values = json!({"client_id": format!("save-{n}"), "client_secret": "s"}).to_string();
        let form = [("section", "chat"), ("values", &*values), ("wait", "0")];
        let answer = alice.post("/api/agent/config-fields", &form).await;
        assert_eq!(answer.json()["success"], true, "{}", answer.text());
    }
    let took = began.elapsed();
    eprintln!("ten saves took {took:?}");
    yard.settled("alice").await;
    yard.admin.status("alice", "running", seconds(60)).await;
    let restarts = starts(&engine.happened("alice", &since));
    // A container rests for two seconds before it is made afresh; a machine that takes longer for the saves
    // than that may make it once more.
    let most = 2 + took.as_secs() / 2;
    assert!(
        (1..=most).contains(&(restarts as u64)),
        "{restarts} restarts in {took:?}"
    );
    let read = read_by_agent(&engine, "alice");
    assert_eq!(
        read["channel_list"]["chat"]["settings"]["client_id"],
        "save-9"
    );
}

#[tokio::test]
async fn engine_cookies_and_what_the_agent_writes_restart_nothing() {
    let engine = Engine::claim();
    let mut yard = Yard::open(&engine).await;
    let alice = yard.user("alice").await;
    yard.settled("alice").await;
    let id = engine.the_running("alice").id;
    let since = engine.now();

    let form = [
        ("domain", "shop.example"),
        ("cookies", "sid=abc-123; theme=dark"),
        ("wait", "30"),
    ];
    alice.post("/api/cookies", &form).await.converged();
    let security = yard.security("alice");
    assert_eq!(
        security["web"]["cookies"]["shop.example"],
        "sid=abc-123; theme=dark"
    );
    let listed = alice.get("/api/user/cookies").await.expect(200);
    assert_eq!(listed["cookies"][0]["domain"], "shop.example", "{listed}");
    assert!(!listed.to_string().contains("abc-123"), "{listed}");

    // The agent writes its own, as agents do: the whole file anew.
    let script = "cd /root/.agent && sed 's/^{/{\"agents_own\": {\"n\": 7},/' config.json >new && cat new >config.json && rm new";
    engine.by_hand(&["exec", &id, "sh", "-c", script]);
    yard.admin.retry("agent-config/alice").await;
    yard.settled("alice").await;
    let form = [("domain", "shop.example"), ("wait", "30")];
    alice
        .post("/api/user/cookies/delete", &form)
        .await
        .converged();
    let security = yard.security("alice");
    assert!(
        security["web"]["cookies"].get("shop.example").is_none(),
        "{security}"
    );
    assert_eq!(yard.config("alice")["agents_own"]["n"], 7);
    assert_eq!(starts(&engine.happened("alice", &since)), 0);
    assert_eq!(engine.the_running("alice").id, id);

    // What is ours comes back when the agent has overwritten it, and its own stays (drift).
    let script =
        "cd /root/.agent && sed 's/sse/stdio/' config.json >new && cat new >config.json && rm new";
    engine.by_hand(&["exec", &id, "sh", "-c", script]);
    assert!(yard.config("alice").to_string().contains("stdio"));
    let form = [("username", "alice"), ("wait", "30")];
    yard.admin
        .post("/api/admin/config/apply", &form)
        .await
        .converged();
    let config = yard.config("alice");
    assert!(!config.to_string().contains("stdio"), "{config}");
    assert_eq!(config["agents_own"]["n"], 7);
}

#[tokio::test]
async fn engine_an_administrators_stop_holds_and_what_was_saved_meanwhile_is_there_at_the_next_start()
 {
    let engine = Engine::claim();
    let mut yard = Yard::open(&engine).await;
    let alice = yard.user("alice").await;
    let form = [("username", "alice"), ("wait", "60")];
    yard.admin
        .post("/api/admin/container/stop", &form)
        .await
        .converged();
    assert!(engine.of("alice").is_empty());
    let chat = json!({"client_id": "while-stopped", "client_secret": "s"});
    let saved = save(&alice, "chat", chat).await;
    assert_eq!(
        saved["message"],
        "saved; takes effect when an administrator starts your container"
    );
    let refused = alice.post("/api/user/container/restart", &[]).await;
    refused.refused(409, "container_stopped");
    let config = yard.config("alice");
    assert_eq!(
        config["channel_list"]["chat"]["settings"]["client_id"],
        "while-stopped"
    );
    assert!(engine.of("alice").is_empty(), "stays stopped");
    yard.admin
        .post("/api/admin/container/start", &form)
        .await
        .converged();
    let read = read_by_agent(&engine, "alice");
    assert_eq!(
        read["channel_list"]["chat"]["settings"]["client_id"],
        "while-stopped"
    );
}

#[tokio::test]
async fn engine_debug_mode_ends_by_an_administrator_only() {
    let engine = Engine::claim();
    let mut yard = Yard::open(&engine).await;
    let alice = yard.user("alice").await;
    let form = [("username", "alice"), ("wait", "60")];
    let debugs = || {
        engine.inspect("agentyard-alice")["Config"]["Env"]
            .to_string()
            .contains("AGENT_DEBUG=1")
    };
    let debug = yard.admin.post("/api/admin/container/debug", &form);
    debug.await.converged();
    let mut before = engine.the_running("alice").id;
    for saves in [true, false] {
        if saves {
            save(
                &alice,
                "chat",
                json!({"client_id": "a", "client_secret": "s"}),
            )
            .await;
        } else {
            let wait = [("wait", "60")];
            alice
                .post("/api/user/container/restart", &wait)
                .await
                .converged();
        }
        let after = engine.the_running("alice").id;
        assert_ne!(after, before, "restarted");
        before = after;
        assert!(debugs());
        let shown = alice.get("/api/user/container").await.expect(200);
        assert_eq!(shown["debug"], true, "{shown}");
    }
    let start = yard.admin.post("/api/admin/container/start", &form);
    start.await.converged();
    assert!(!debugs());
}

#[tokio::test]
async fn engine_l45_a_removed_global_key_leaves_users_files_and_a_changed_one_restarts_all() {
    let engine = Engine::claim();
    let mut yard = Yard::open(&engine).await;
    yard.user("alice").await;
    yard.user("bob").await;
    let both = json!({"chat": {"enabled": true}, "mail": {"enabled": true}});
    let since = engine.now();
    configure(
        &yard.admin,
        json!({"agent": {"channel_list": both, "extra": {"left": 1, "right": 2}}}),
    )
    .await;
    for user in ["alice", "bob"] {
        yard.settled(user).await;
        yard.admin.status(user, "running", seconds(60)).await;
        assert_eq!(yard.config(user)["extra"], json!({"left": 1, "right": 2}));
        assert_eq!(starts(&engine.happened(user, &since)), 1);
        let read = read_by_agent(&engine, user);
        assert_eq!(read["extra"]["left"], 1, "{read}");
        // Permission is not a setting of the user's.
        assert!(
            read["channel_list"]["chat"]
                .get("enabled")
                .is_none_or(|on| on == false),
            "{read}"
        );
    }
    configure(
        &yard.admin,
        json!({"agent": {"channel_list": both, "extra": {"left": 1}}}),
    )
    .await;
    for user in ["alice", "bob"] {
        yard.settled(user).await;
        assert_eq!(yard.config(user)["extra"], json!({"left": 1}));
    }
}

#[tokio::test]
async fn engine_l25_links_that_the_agent_plants_lead_nowhere() {
    let engine = Engine::claim();
    let mut yard = Yard::open(&engine).await;
    let alice = yard.user("alice").await;
    yard.settled("alice").await;
    let host = yard.stage.path().join("host-secret.json");
    std::fs::write(&host, r#"{"host": "must not be read"}"#).unwrap();
    let id = engine.the_running("alice").id;
    let plant = format!("ln -sf {} /root/.agent/config.json", host.display());
    engine.by_hand(&["exec", &id, "sh", "-c", &plant]);

    let values = json!({"client_id": "x", "client_secret": "s"}).to_string();
    let form = [("section", "chat"), ("values", &*values), ("wait", "30")];
    let answer = alice.post("/api/agent/config-fields", &form).await;
    let refused = answer.refused(409, "invalid_user_config");
    assert!(
        !refused.to_string().contains("must not be read"),
        "{refused}"
    );
    assert_eq!(
        std::fs::read_to_string(&host).unwrap(),
        r#"{"host": "must not be read"}"#
    );
    let object = yard.admin.object("agent-config/alice").await;
    assert_eq!(
        object["conditions"][0]["reason"], "InvalidUserConfig",
        "{object}"
    );
    let health = yard.admin.object("user/alice").await["health"].clone();
    assert_eq!(health["object"], "agent-config/alice", "{health}");
    assert_eq!(health["reason"], "InvalidUserConfig", "{health}");

    // The agent takes it away, and all is well.
    yard.admin.status("alice", "running", seconds(60)).await;
    let id = engine.the_running("alice").id;
    engine.by_hand(&["exec", &id, "rm", "/root/.agent/config.json"]);
    yard.admin.retry("agent-config/alice").await;
    yard.settled("alice").await;
    assert_eq!(
        yard.config("alice")["channel_list"]["chat"]["settings"]["client_id"],
        "x"
    );
}

#[tokio::test]
async fn engine_the_agent_gets_its_mcp_servers_with_the_users_own_token() {
    let engine = Engine::claim();
    let mut yard = Yard::open(&engine).await;
    let alice = yard.user("alice").await;
    let token = alice.get("/api/mcp/token").await.expect(200)["token"].clone();
    let token = token.as_str().unwrap().to_owned();
    let (name, secret) = token.split_once(':').unwrap();
    assert_eq!((name, secret.len()), ("alice", 64));
    yard.admin.get("/api/mcp/token").await.expect(403);
    let servers = read_by_agent(&engine, "alice")["mcp"]["servers"].clone();
    for server in ["browser", "computer"] {
        let url = servers[server]["url"]
            .as_str()
            .unwrap_or_else(|| panic!("{servers}"));
        let begin = format!("http://10.88.0.1:8081/api/mcp/sse/{server}?token=alice%3A{secret}");
        assert_eq!(url, begin);
    }
    // The same after a restart of the service, so that nobody is restarted for it.
    let id = engine.the_running("alice").id;
    let Yard {
        stage,
        service,
        passwords,
        ..
    } = yard;
    service.kill9().await;
    let service = stage
        .serve(&engine)
        .args(&["--adapter", "echo"])
        .start()
        .await;
    let alice = service
        .client()
        .signed_in("alice", &passwords["alice"])
        .await;
    let again = alice.get("/api/mcp/token").await.expect(200);
    assert_eq!(again["token"], token);
    let admin = service.admin().await;
    admin.status("alice", "running", seconds(30)).await;
    assert_eq!(engine.the_running("alice").id, id);
}

#[tokio::test]
async fn engine_a_chat_app_is_saved_through_the_built_in_adapter() {
    let engine = Engine::claim();
    // Nobody has set anything yet.
    let mut yard = Yard::with(&engine, "picoclaw", json!({})).await;
    let alice = yard.user("alice").await;
    let form = [
        ("client_id", "ding-1"),
        ("client_secret", "007"),
        ("wait", "60"),
    ];
    alice.post("/api/chatapp", &form).await.converged();
    let told = alice.get("/api/chatapp").await.expect(200);
    assert_eq!(told["client_id"], "ding-1", "{told}");
    assert_eq!(told["client_secret_set"], true);
    assert_eq!(told["client_secret"], "");
    let config = yard.config("alice");
    assert_eq!(
        config["channel_list"]["dingtalk"]["enabled"], true,
        "{config}"
    );
    let security = std::fs::read_to_string(yard.file("alice", ".security.yml")).unwrap();
    assert!(
        security.contains("\"007\"") || security.contains("'007'"),
        "a text stays one"
    );
    assert!(
        read_by_agent(&engine, "alice")
            .to_string()
            .contains("ding-1")
    );
}

#[tokio::test]
async fn engine_everybodys_configuration_is_applied_as_one_task() {
    let engine = Engine::claim();
    let mut yard = Yard::open(&engine).await;
    for user in ["alice", "bob", "carol"] {
        yard.user(user).await;
        yard.settled(user).await;
    }
    let before = yard.generation("agent-config/carol").await;
    let started = yard.admin.post("/api/admin/config/apply", &[]).await;
    let started = started.json();
    assert_eq!(started["total"], 3, "{started}");
    let task = started["task_id"].as_str().unwrap();
    let path = format!("/api/admin/task/status?task_id={task}");
    until("the task is done", seconds(30), async || {
        let status = yard.admin.get(&path).await.expect(200);
        status["done"] == 3 && status["finished_at"].is_string()
    })
    .await;
    assert_eq!(yard.generation("agent-config/carol").await, before + 1);
}

#[tokio::test]
async fn engine_l36_who_crashes_with_migrated_files_is_back_on_the_image_and_the_files_of_before() {
    let engine = Engine::claim();
    engine.docker(&["tag", "echo:1", "echo:1.0.0"]);
    let mut yard = Yard::with(&engine, "echo", json!({})).await;
    configure(&yard.admin, json!({"image.tag": "1.0.0"})).await;
    yard.user("alice").await;
    yard.settled("alice").await;
    yard.admin.status("alice", "running", seconds(60)).await;
    assert_eq!(yard.config("alice")["version"], 1);
    // The agent's own; `bindings` is nothing that version 3 keeps.
    let own = "cd /root/.agent && \
               sed '1s/^{/{\"own\": {\"n\": 7}, \"bindings\": [\"x\"],/' config.json >new && \
               cat new >config.json && sed '1s/^{/{\"own\": \"k\",/' security.json >new && cat new >security.json && rm new";
    let id = engine.the_running("alice").id;
    engine.by_hand(&["exec", &id, "sh", "-c", own]);
    let read = |name: &str| std::fs::read_to_string(yard.file("alice", name)).unwrap();
    let files = || [read("config.json"), read("security.json")];
    let before = files();
    assert!(before[0].contains("bindings"), "{}", before[0]);

    let words = "rollout start crash --all --health-timeout 60s";
    let words: Vec<&str> = words.split_whitespace().collect();
    let failed = yard.stage.command().run(&words).await;
    let said = format!("{}{}", failed.stdout, failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{said}");
    assert!(said.contains("alice: failed: "), "{said}");
    assert!(said.contains("paused: 0 of 1 done, 1 failed"), "{said}");

    yard.admin.status("alice", "running", seconds(60)).await;
    yard.settled("alice").await;
    let running = engine.inspect(&engine.the_running("alice").id);
    let old = engine.docker(&["image", "inspect", "-f", "{{.Id}}", "echo:1.0.0"]);
    assert_eq!(running["Image"], *old.trim());
    assert_eq!(files(), before);
    let agent = read_by_agent(&engine, "alice");
    assert_eq!(
        (&agent["version"], &agent["own"]["n"]),
        (&json!(1), &json!(7))
    );
    let object = yard.admin.object("agent-config/alice").await;
    let told = object["conditions"][0]["message"].as_str().unwrap();
    assert!(told.contains("the previous files were put back"), "{told}");
    assert!(!yard.service.log().contains("bindings"));
    yard.service.kill9().await;
    engine.docker(&["rm", "-f", "agentyard-alice"]);
    engine.docker(&["rmi", "echo:1.0.0"]);
}

#[tokio::test]
async fn engine_l65_what_agents_write_into_their_own_files_holds_up_nobody() {
    let engine = Engine::claim();
    let mut yard = Yard::with(&engine, "picoclaw", json!({})).await;
    configure(&yard.admin, json!({"container": {"autostart": false}})).await;
    let nested = |depth: usize, piece: &str, times: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!("a: {open}{}{close}\n", piece.repeat(times))
    };
    // The slowest that is accepted, and what is refused: after parsing, by its look, by its length.
    let files = [
        nested(1, "abcdefghij, ", 49_000),
        nested(62, "a, ", 7_000),
        nested(62, "abcdefghijklmnopqr, ", 49_900),
        nested(126, "a,", 99_000),
        nested(900, "a,", 400_000),
        nested(900, "a,", 1_900_000),
    ];
    let users: Vec<String> = (0..files.len()).map(|n| format!("user{n}")).collect();
    for (user, file) in users.iter().zip(&files) {
        yard.user(user).await;
        yard.settled(user).await;
        std::fs::write(yard.file(user, ".security.yml"), file).unwrap();
    }
    let (mut slowest, mut asked) = (Duration::ZERO, 0);
    for _ in 0..3 {
        for user in &users {
            yard.admin.retry(&format!("agent-config/{user}")).await;
        }
        let until = tokio::time::Instant::now() + Duration::from_secs(3);
        while tokio::time::Instant::now() < until {
            let started = tokio::time::Instant::now();
            yard.admin.get("/api/health").await.expect(200);
            slowest = slowest.max(started.elapsed());
            asked += 1;
        }
    }
    println!("{asked} answers, the slowest after {slowest:?}");
    // Ten times what a pass may take of an async thread.
    assert!(slowest < Duration::from_millis(500), "{slowest:?}");
    for (user, refused) in users.iter().zip([false, false, true, true, true, true]) {
        let object = yard.admin.object(&format!("agent-config/{user}")).await;
        let reason = &object["conditions"][0]["reason"];
        let expected = if refused {
            "InvalidUserConfig"
        } else {
            "Converged"
        };
        assert_eq!(reason, expected, "{user}: {object}");
    }
}
