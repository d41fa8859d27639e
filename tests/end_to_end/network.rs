//! Addresses run out and come back (L29); containers are shut in (L40).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Engine, Stage, eventually, seconds};

/// Addresses of a /28 that containers can have: 16 without network, broadcast and gateway.
const ROOM: usize = 13;

#[tokio::test]
async fn engine_l29_more_users_than_addresses_wait_until_one_is_free() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage
        .serve(&engine)
        .set("container.network_subnet", "10.99.0.0/28")
        .start()
        .await;
    let admin = service.admin().await;
    let names: Vec<String> = (0..=ROOM).map(|n| format!("user{n:02}")).collect();
    let form = [("usernames", &*names.join("\n"))];
    let created = admin.post("/api/admin/users/batch-create", &form).await;
    assert!(created.status.is_success(), "{}", created.text());

    let states = async |names: &[String]| {
        let mut running = Vec::new();
        let mut full = Vec::new();
        for name in names {
            let row = admin.user(name).await.unwrap();
            let reason = crate::support::client::ready(&row)["reason"].clone();
            if reason == "Running" {
                running.push(row["ip"].as_str().unwrap().to_owned());
            } else if reason == "NetworkFull" {
                full.push(name.clone());
            }
        }
        (running, full)
    };
    let seen = eventually("all addresses are in use", seconds(90), async || {
        let (running, full) = states(&names).await;
        if running.len() == ROOM && full.len() == 1 {
            Ok((running, full))
        } else {
            Err(format!("{running:?} {full:?}"))
        }
    });
    let ((mut addresses, waiting), _) = seen.await;
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), ROOM, "each its own: {addresses:?}");
    assert!(addresses.iter().all(|ip| ip.starts_with("10.99.0.")));

    // The one that waits says so to who asks.
    let form = [("username", waiting[0].as_str()), ("wait", "30")];
    let start = admin.post("/api/admin/container/start", &form).await;
    let body = start.refused(503, "network_full");
    assert_eq!(body["state"], "failed", "{body}");

    let leaving = names.iter().find(|name| **name != waiting[0]).unwrap();
    let form = [("username", leaving.as_str()), ("wait", "60")];
    let deleted = admin.post("/api/admin/users/delete", &form).await;
    deleted.expect(200);
    admin.status(&waiting[0], "running", seconds(60)).await;
    engine.the_running(&waiting[0]);
}

#[tokio::test]
async fn engine_l40_containers_are_limited_and_cannot_reach_each_other() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage
        .serve(&engine)
        .set("container.network_subnet", "10.99.0.0/28")
        .set("container.memory_limit_mb", "128")
        .set("container.pids_limit", "64")
        .start()
        .await;
    let admin = service.admin().await;
    admin.create_user("ann").await;
    admin.create_user("bob").await;
    let other = admin.user("bob").await.unwrap()["ip"].clone();
    let other = other.as_str().unwrap();

    // The same program, the same page: its own it reaches, the other's it does not.
    let fetch = |address: &str| {
        let page = format!("http://{address}:18790/health");
        let arguments = ["timeout", "3", "wget", "-q", "-O", "-", &page];
        engine.ask(&[&["exec", "agentyard-ann"], arguments.as_slice()].concat())
    };
    assert_eq!(fetch("127.0.0.1").as_deref(), Some("ok"));
    assert_eq!(fetch(other), None);

    let details = engine.inspect("agentyard-ann");
    let host = &details["HostConfig"];
    assert_eq!(host["CapDrop"], serde_json::json!(["ALL"]), "{host}");
    let config = admin.get("/api/config").await.expect(200);
    let kept = config["container"]["capabilities"].as_array().unwrap();
    let added = host["CapAdd"].as_array().cloned().unwrap_or_default();
    assert_eq!(added.len(), kept.len(), "{host}");
    let options = host["SecurityOpt"].as_array().unwrap();
    assert!(
        options
            .iter()
            .any(|o| o.as_str().unwrap().starts_with("no-new-privileges")),
        "{host}"
    );
    assert_eq!(host["PidsLimit"], 64, "{host}");
    assert_eq!(host["Memory"], 128 * 1024 * 1024, "{host}");
    assert_eq!(host["Privileged"], false, "{host}");
    assert_eq!(host["RestartPolicy"]["Name"], "no", "{host}");
    assert_eq!(host["Init"], true, "{host}");
    // As the kernel sees it.
    let status = engine.docker(&["exec", "agentyard-ann", "cat", "/proc/self/status"]);
    let line = |name: &str| {
        let found = status.lines().find_map(|line| line.strip_prefix(name));
        found.map(str::trim).unwrap().to_owned()
    };
    let bounding = u64::from_str_radix(&line("CapBnd:"), 16).unwrap();
    assert_eq!(bounding.count_ones() as usize, kept.len());
    assert_eq!(line("NoNewPrivs:"), "1");
}

#[tokio::test]
async fn engine_subnet_stays_while_containers_exist() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    admin.create_user("bob").await;
    let change = [("config", r#"{"container.network_subnet":"10.77.0.0/24"}"#)];
    let refused = admin.post("/api/config", &change).await;
    refused.refused(409, "network_in_use");
    let config = admin.get("/api/config").await.expect(200);
    assert_eq!(config["container"]["network_subnet"], "10.88.0.0/16");
    service.passes(&admin, "engine", 1).await;
    engine.the_running("bob");

    // Without containers it may change, and the network is made anew.
    let form = [("username", "bob"), ("wait", "60")];
    admin
        .post("/api/admin/container/stop", &form)
        .await
        .converged();
    let changed = [change[0], ("wait", "60")];
    admin.post("/api/config", &changed).await.converged();
    let started = admin.post("/api/admin/container/start", &form).await;
    started.converged();
    let bob = admin.user("bob").await.unwrap();
    assert!(bob["ip"].as_str().unwrap().starts_with("10.77.0."), "{bob}");
}

/// A machine that is not the host: it answers to names at 198.51.100.53, and to HTTP there and at an address of metadata.
struct Outside(std::process::Child);

impl Outside {
    fn new() -> Self {
        let run = |program: &str, arguments: &str| {
            let mut command = std::process::Command::new(program);
            let status = command.args(arguments.split(' ')).status();
            assert!(status.unwrap().success(), "{program} {arguments}");
        };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/outside.py");
        let mut unshare = std::process::Command::new("unshare");
        let child = unshare.args(["--net", "python3", script]).spawn().unwrap();
        let outside = Self(child);
        let pid = outside.0.id();
        let network =
            |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).unwrap();
        while network(&pid.to_string()) == network("self") {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        run(
            "ip",
            &format!("link add ay{pid} type veth peer name host netns {pid}"),
        );
        run("ip", &format!("address add 198.51.100.1/24 dev ay{pid}"));
        run("ip", &format!("link set ay{pid} up"));
        run(
            "ip",
            &format!("route add 169.254.169.254/32 dev ay{pid} src 198.51.100.1"),
        );
        let inside = format!("--net=/proc/{pid}/ns/net ip");
        run(
            "nsenter",
            &format!("{inside} address add 198.51.100.53/24 dev host"),
        );
        run(
            "nsenter",
            &format!("{inside} address add 169.254.169.254/32 dev host"),
        );
        run("nsenter", &format!("{inside} link set host up"));
        outside
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        // The link goes with the network at its other end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The rules of one chain of the host; of all, for none.
fn rules(chain: &str) -> String {
    let output = std::process::Command::new("iptables")
        .args(["-w", "5", "-S"])
        .args(Some(chain).filter(|chain| !chain.is_empty()))
        .output();
    let output = output.expect("this test needs iptables: apt-get install iptables");
    String::from_utf8(output.stdout).unwrap()
}

/// The rules of other programs for what the host forwards.
fn forwarding_of_others() -> String {
    let rules = rules("FORWARD");
    let others = rules.lines().filter(|line| !line.contains("AGENTYARD"));
    others.fold(String::new(), |all, line| all + line + "\n")
}

#[tokio::test]
async fn engine_l40_agents_reach_the_agent_listener_and_nothing_else_of_the_host() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    // A service of the host on all addresses: it answers, and counts what it is sent.
    let host = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let port = host.local_addr().unwrap().port();
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    std::thread::spawn(move || {
        for mut stream in host.incoming().flatten() {
            let counter = Arc::clone(&counter);
            std::thread::spawn(move || {
                use std::io::{Read, Write};
                let mut buffer = [0; 1024];
                let _ = stream.read(&mut buffer);
                let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nhost");
                while buffer.starts_with(b"x")
                    && let Ok(1..) = stream.read(&mut buffer)
                {
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    admin.create_user("ann").await;
    let others = forwarding_of_others();
    let outside = Outside::new();
    let read = |page: &str| {
        let arguments = [
            "exec",
            "agentyard-ann",
            "timeout",
            "3",
            "wget",
            "-q",
            "-O",
            "-",
            page,
        ];
        engine.ask(&arguments)
    };
    let ask = |port: u16| read(&format!("http://10.88.0.1:{port}/api/health"));
    let gone = async || {
        eventually("the rules are gone", seconds(30), async || {
            match rules("") {
                left if left.contains("AGENTYARD") => Err(left),
                _ => Ok(()),
            }
        })
        .await;
    };
    let restricted = async || {
        eventually(
            "the host is out of reach",
            seconds(30),
            async || match ask(port) {
                None => Ok(()),
                Some(answer) => Err(answer),
            },
        )
        .await;
        assert!(ask(8081).unwrap().contains("ok"), "the agent listener");
    };
    eventually("the agent reaches the service", seconds(20), async || {
        ask(8081).ok_or("no answer".to_owned())
    })
    .await;
    assert_eq!(ask(port), None, "from the first moment on");
    restricted().await;
    eventually("names and what is outside", seconds(10), async || {
        read("http://outside.example/").ok_or("no answer".to_owned())
    })
    .await;
    let reached = async |page: &str, expected: bool| {
        eventually(page, seconds(30), async || match read(page).is_some() {
            found if found == expected => Ok(()),
            found => Err(format!("reached: {found}")),
        })
        .await;
    };
    let lan = async |access: &str| {
        let change = format!(r#"{{"container.lan_access":"{access}"}}"#);
        let change = [("config", &*change), ("wait", "60")];
        admin.post("/api/config", &change).await.converged();
    };
    let metadata = "http://169.254.169.254/";
    assert_eq!(read(metadata), None, "from the first moment on");
    let before = engine.the_running("ann");
    for (access, private, link_local) in [
        ("none", false, false),
        ("198.51.100.0/24", true, false),
        ("open", true, true),
        ("private", true, false),
    ] {
        lan(access).await;
        reached(metadata, link_local).await;
        // The name's server is in that network, too.
        reached("http://outside.example/", private).await;
    }
    assert_eq!(engine.the_running("ann"), before, "not recreated");
    lan("open").await;
    drop(outside);
    // Removed by hand, they come back.
    let listed = rules("");
    let mut chains = listed
        .lines()
        .filter_map(|line| line.strip_prefix("-N AGENTYARD-"));
    let chain = chains.find(|chain| !chain.ends_with("-LAN"));
    let chain = format!("AGENTYARD-{}", chain.expect("a chain of our own"));
    eventually("the test sees what it is about", seconds(20), async || {
        let flush = std::process::Command::new("iptables")
            .args(["-w", "5", "-F", &chain])
            .status();
        assert!(flush.unwrap().success());
        ask(port).ok_or("no answer".to_owned())
    })
    .await;
    admin.retry("engine/local").await;
    restricted().await;
    assert_eq!(forwarding_of_others(), others, "as they were");

    let open = r#"{"container.host_access":"open"}"#;
    let change = [("config", open), ("wait", "60")];
    admin.post("/api/config", &change).await.converged();
    gone().await;
    assert!(ask(port).is_some());
    // What an agent has opened before ends with the rules.
    let talk = format!("(while sleep 0.2; do echo x; done) | nc 10.88.0.1 {port}");
    engine.docker(&["exec", "-d", "agentyard-ann", "sh", "-c", &talk]);
    eventually(
        "the agent talks to the host",
        seconds(10),
        async || match sent.load(Ordering::Relaxed) {
            0 => Err("nothing was sent".to_owned()),
            _ => Ok(()),
        },
    )
    .await;
    let closed = r#"{"container.host_access":"service"}"#;
    let change = [("config", closed), ("wait", "60")];
    admin.post("/api/config", &change).await.converged();
    restricted().await;
    let before = sent.load(Ordering::Relaxed);
    tokio::time::sleep(seconds(2)).await;
    assert_eq!(sent.load(Ordering::Relaxed), before, "nothing more arrives");

    // Nobody is left to be restricted.
    let form = [("username", "ann"), ("wait", "60")];
    let deleted = admin.post("/api/admin/users/delete", &form).await;
    deleted.converged();
    admin.retry("engine/local").await;
    gone().await;
    assert_eq!(rules("FORWARD"), others);
}

/// The address of the service in a user's own files; `None`: there is none.
fn named(stage: &Stage, user: &str) -> Option<String> {
    let file = stage
        .data()
        .join("users")
        .join(user)
        .join(".agent/config.json");
    let text = std::fs::read_to_string(file).unwrap();
    let config: serde_json::Value = serde_json::from_str(&text).unwrap();
    let url = config
        .pointer("/tools/mcp/servers/browser/url")?
        .as_str()
        .unwrap();
    let (base, _) = url.split_once("/api/mcp/").unwrap();
    Some(base.to_owned())
}

#[tokio::test]
async fn engine_an_agent_reaches_the_service_at_the_address_in_its_files() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let launch = || stage.serve(&engine);
    let reaches = async |subnet: &str| {
        let base = named(&stage, "ann").expect("an address");
        assert!(base.starts_with(&format!("http://{subnet}.")), "{base}");
        let page = format!("{base}/api/health");
        let arguments = ["timeout", "3", "wget", "-q", "-O", "-", &page];
        eventually("the agent reaches the service", seconds(20), async || {
            let arguments = [&["exec", "agentyard-ann"], arguments.as_slice()].concat();
            let answer = engine.ask(&arguments).ok_or("no answer".to_owned())?;
            answer.contains("ok").then_some(()).ok_or(answer)
        })
        .await;
    };
    let service = launch().start().await;
    let admin = service.admin().await;
    admin.create_user("ann").await;
    reaches("10.88.0").await;

    let form = [("username", "ann"), ("wait", "60")];
    let stopped = admin.post("/api/admin/container/stop", &form).await;
    stopped.converged();
    let subnet = r#"{"container.network_subnet":"10.77.0.0/24"}"#;
    let change = [("config", subnet), ("wait", "60")];
    admin.post("/api/config", &change).await.converged();
    let started = admin.post("/api/admin/container/start", &form).await;
    started.converged();
    reaches("10.77.0").await;

    service.kill9().await;
    let service = launch().start().await;
    let admin = admin.at(&service.client());
    reaches("10.77.0").await;

    // With nobody to reach, no file names an address.
    service.kill9().await;
    let service = launch().args(&["--agent-listen", "off"]).start().await;
    let admin = admin.at(&service.client());
    eventually(
        "no file names an address",
        seconds(30),
        async || match named(&stage, "ann") {
            None => Ok(()),
            Some(base) => Err(base),
        },
    )
    .await;
    admin.status("ann", "running", seconds(60)).await;
    // It has got that in steps, and not at once with all others.
    assert!(
        service
            .log()
            .contains("--agent-listen is off, was auto; agents get it in steps")
    );
    eventually("the rollout has ended", seconds(60), async || {
        let listed = admin.get("/api/admin/images/rollouts").await.expect(200);
        let rollout = &listed["rollouts"][0];
        let is_ended = rollout["phase"] == "succeeded" && rollout["progress"]["done"] == 1;
        let is_change = rollout["type"] == "config";
        (is_ended && is_change)
            .then_some(())
            .ok_or(listed.to_string())
    })
    .await;
}
