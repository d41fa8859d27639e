//! The packet filter, by both programs that go by the name of `iptables`.
//!
//! Needs root and `iptables`; each test makes a network of its own.

// Helpers of tests bear no test attribute.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use reconcilers::drivers::firewall::{FirewallError, Found, HostFirewall, HostRules, Iptables};
use tempfile::TempDir;

/// One of the two programs, in a folder under the name that is looked for, and rules that nobody else makes.
struct Stage {
    folder: TempDir,
    network: Child,
    firewall: Iptables,
    rules: HostRules,
}

impl Stage {
    fn new(program: &'static str) -> Self {
        // As long as this sleeps there is a network of its own.
        let mut sleep = Command::new("unshare");
        let network = sleep.args(["--net", "sleep", "600"]).spawn();
        let network = network.expect("this test needs util-linux: apt-get install util-linux");
        let is_of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).unwrap();
        let pid = network.id().to_string();
        while is_of(&pid) == is_of("self") {
            std::thread::sleep(Duration::from_millis(5));
        }
        let folder = TempDir::new().unwrap();
        for (name, of) in [("iptables", ""), ("iptables-restore", "-restore")] {
            let real = format!("/usr/sbin/{program}{of}");
            assert!(
                Path::new(&real).exists(),
                "this test needs iptables: apt-get install iptables"
            );
            let path = folder.path().join(name);
            let enter = format!(
                "#!/bin/sh\nexec /usr/bin/nsenter --net=/proc/{pid}/ns/net {real} \"$@\"\n"
            );
            std::fs::write(&path, enter).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        }
        Self {
            firewall: Iptables::found_in(&folder.path().display().to_string()),
            folder,
            network,
            rules: HostRules {
                bridge: "br-0123456789ab".to_owned(),
                gateway: [127, 7, 7, 7].into(),
                listener: Some(([127, 7, 7, 7].into(), 8081)),
                service: Some(("localhost".to_owned(), 443)),
            },
        }
    }

    fn run(&self, arguments: &str) -> String {
        let mut command = Command::new(self.folder.path().join("iptables"));
        command.args(["-w", "5"]).args(arguments.split(' '));
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    async fn found(&self) -> Found {
        self.firewall.observe(Some(&self.rules)).await.unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.network.kill();
        let _ = self.network.wait();
    }
}

async fn seen_made_repaired_and_removed(program: &'static str) {
    let stage = Stage::new(program);
    let others = stage.run("-S");
    assert_eq!(stage.found().await, Found::Nothing);
    stage.firewall.open().await.unwrap();
    assert_eq!(stage.run("-S"), others);

    for again in 0..2 {
        stage.firewall.restrict(&stage.rules).await.unwrap();
        assert_eq!(stage.found().await, Found::AsDesired, "{again}");
    }
    let made = stage.run("-S AGENTYARD");
    assert!(made.contains("-d 127.7.7.7/32 -p tcp -m tcp --dport 8081 -j RETURN"));
    // Whoever reaches a loopback address of the host is on it already.
    assert!(!made.contains("443"), "{made}");
    assert_eq!(stage.firewall.observe(None).await, Ok(Found::Other));

    let hands = [
        "-F AGENTYARD",
        "-D AGENTYARD 2",
        "-A AGENTYARD -j ACCEPT",
        "-I AGENTYARD 1 -j RETURN",
        "-D INPUT -i br-0123456789ab -j AGENTYARD",
        "-A INPUT -i br-0123456789ab -j AGENTYARD",
        "-I INPUT 1 -s 192.0.2.1/32 -j ACCEPT",
    ];
    for hand in hands {
        stage.run(hand);
        assert_eq!(stage.found().await, Found::Other, "{hand}");
        stage.firewall.restrict(&stage.rules).await.unwrap();
        assert_eq!(stage.found().await, Found::AsDesired, "{hand}");
    }
    stage.run("-D INPUT -s 192.0.2.1/32 -j ACCEPT");
    let other = HostRules {
        bridge: "br-9876543210ab".to_owned(),
        listener: None,
        ..stage.rules.clone()
    };
    stage.firewall.restrict(&other).await.unwrap();
    assert_eq!(stage.found().await, Found::Other);
    assert!(!stage.run("-S INPUT").contains("br-0123456789ab"));

    stage.firewall.open().await.unwrap();
    assert_eq!(stage.run("-S"), others, "other chains are as they were");
}

#[tokio::test]
async fn engine_l40_nft() {
    seen_made_repaired_and_removed("iptables-nft").await;
}

#[tokio::test]
async fn engine_l40_legacy() {
    seen_made_repaired_and_removed("iptables-legacy").await;
}

#[tokio::test]
async fn engine_l40_where_it_cannot_be_done_the_error_says_why() {
    let mut stage = Stage::new("iptables-nft");
    stage.rules.gateway = [192, 0, 2, 1].into();
    let elsewhere = stage.firewall.observe(Some(&stage.rules)).await;
    let Err(FirewallError::Impossible(text)) = elsewhere else {
        panic!("{elsewhere:?}");
    };
    assert!(
        text.contains("192.0.2.1 is no address of this host"),
        "{text}"
    );
    assert_eq!(
        stage.firewall.restrict(&stage.rules).await,
        Err(FirewallError::Impossible(text))
    );
    let missing = Iptables::found_in("/nowhere").observe(None).await;
    let Err(FirewallError::Impossible(text)) = missing else {
        panic!("{missing:?}");
    };
    assert!(text.contains("install iptables"), "{text}");
}
