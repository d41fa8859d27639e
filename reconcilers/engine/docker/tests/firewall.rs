//! The packet filter, by both programs that go by the name of `iptables`.
//!
//! Needs root and `iptables`; each test makes a network of its own.

// Helpers of tests bear no test attribute.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use engine::{FirewallError, Found, HostFirewall, HostRules};
use engine_docker::Iptables;
use schema::config::{HostAccess, LanAccess};
use tempfile::TempDir;

const BRIDGE: &str = "br-0123456789ab";

/// One of the two programs in a network of its own, and rules that nobody else makes.
struct Stage {
    folder: TempDir,
    network: Child,
    interfaces: PathBuf,
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
        for (name, real) in [
            ("iptables", format!("/usr/sbin/{program}")),
            ("iptables-restore", format!("/usr/sbin/{program}-restore")),
            ("ip", "/usr/sbin/ip".to_owned()),
        ] {
            let missing =
                "this test needs iptables and iproute2: apt-get install iptables iproute2";
            assert!(Path::new(&real).exists(), "{missing}");
            let path = folder.path().join(name);
            let enter = format!(
                "#!/bin/sh\nexec /usr/bin/nsenter --net=/proc/{pid}/ns/net {real} \"$@\"\n"
            );
            std::fs::write(&path, enter).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        }
        let stage = Self {
            folder,
            network,
            interfaces: format!("/proc/{pid}/net/dev").into(),
            rules: HostRules {
                bridge: BRIDGE.to_owned(),
                gateway: [10, 88, 0, 1].into(),
                listener: Some(([10, 88, 0, 1].into(), 8081)),
                service: Some(("192.0.2.7".to_owned(), 443)),
                host_access: HostAccess::Service,
                lan_access: LanAccess::Private,
            },
        };
        stage.run("ip", &format!("link add {BRIDGE} type bridge"));
        stage
    }

    /// The packet filter of one service.
    fn firewall(&self, owner: &str) -> Iptables {
        let path = self.folder.path().display().to_string();
        Iptables::found_in(&path, self.interfaces.clone(), owner)
    }

    fn run(&self, program: &str, arguments: &str) -> String {
        let program = self.folder.path().join(program);
        let line = format!("{} {arguments}", program.display());
        let output = Command::new("sh").arg("-c").arg(line).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn iptables(&self, arguments: &str) -> String {
        self.run("iptables", &format!("-w 5 {arguments}"))
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
    let firewall = stage.firewall("0123456789abcdef");
    let found = async || firewall.observe(Some(&stage.rules)).await.unwrap();
    stage.iptables("-A INPUT -s 192.0.2.9/32 -m comment --comment \"a word\" -j ACCEPT");
    let others = stage.iptables("-S");
    assert_eq!(found().await, Found::Nothing);
    firewall.open().await.unwrap();
    assert_eq!(stage.iptables("-S"), others);

    for again in 0..2 {
        firewall.restrict(&stage.rules).await.unwrap();
        assert_eq!(found().await, Found::AsDesired, "{again}");
    }
    let chain = "AGENTYARD-0123456789ab";
    let made = stage.iptables(&format!("-S {chain}"));
    assert!(made.contains("-d 10.88.0.1/32 -p tcp -m tcp --dport 8081 -j RETURN"));
    // An address of another host is not reached by way of this one.
    assert!(!made.contains("443"), "{made}");
    assert_eq!(firewall.observe(None).await, Ok(Found::Other));

    // Link-local and metadata addresses are closed, private ones are not.
    let lan = format!("{chain}-LAN");
    let forwarded = stage.iptables(&format!("-S {lan}"));
    for closed in ["169.254.0.0/16", "100.100.100.200/32", "192.0.0.192/32"] {
        assert!(
            forwarded.contains(&format!("-d {closed} -j REJECT")),
            "{forwarded}"
        );
    }
    assert!(!forwarded.contains("-d 10.0.0.0/8"), "{forwarded}");

    let hands = [
        format!("-F {lan}"),
        format!("-I {lan} 1 -j RETURN"),
        format!("-D FORWARD -i {BRIDGE} -j {lan}"),
        "-I FORWARD 1 -s 192.0.2.1/32 -j ACCEPT".to_owned(),
        format!("-F {chain}"),
        format!("-D {chain} 2"),
        format!("-A {chain} -j ACCEPT"),
        format!("-I {chain} 1 -j RETURN"),
        format!("-D INPUT -i {BRIDGE} -j {chain}"),
        format!("-A INPUT -i {BRIDGE} -j {chain}"),
        format!("-A INPUT -i {BRIDGE} -m comment --comment \"by hand\" -j {chain}"),
        "-I INPUT 1 -s 192.0.2.1/32 -j ACCEPT".to_owned(),
    ];
    for hand in hands {
        stage.iptables(&hand);
        assert_eq!(found().await, Found::Other, "{hand}");
        firewall.restrict(&stage.rules).await.unwrap();
        assert_eq!(found().await, Found::AsDesired, "{hand}");
    }
    stage.iptables("-D INPUT -s 192.0.2.1/32 -j ACCEPT");
    stage.iptables("-D FORWARD -s 192.0.2.1/32 -j ACCEPT");

    // Another service on this host has its own.
    let other = stage.firewall("another-instance");
    assert_eq!(other.observe(None).await, Ok(Found::Nothing));
    stage.run("ip", "link add br-9876543210ab type bridge");
    let theirs = HostRules {
        bridge: "br-9876543210ab".to_owned(),
        listener: None,
        service: Some(("localhost".to_owned(), 8443)),
        ..stage.rules.clone()
    };
    other.restrict(&theirs).await.unwrap();
    assert_eq!(other.observe(Some(&theirs)).await, Ok(Found::AsDesired));
    // Agents may take the host's own name for its address, where it takes it for a loopback one.
    let named = stage.iptables("-S AGENTYARD-another-inst");
    let by_port = "-p tcp -m conntrack --ctorigdstport 8443 -j RETURN";
    assert!(named.contains(&format!("-A AGENTYARD-another-inst {by_port}")));
    // Neither takes the first place from the other.
    assert_eq!(found().await, Found::AsDesired);
    assert_eq!(other.observe(Some(&theirs)).await, Ok(Found::AsDesired));
    let none = HostRules {
        lan_access: "none".parse().unwrap(),
        ..theirs.clone()
    };
    other.restrict(&none).await.unwrap();
    assert_eq!(other.observe(Some(&none)).await, Ok(Found::AsDesired));
    let forwarded = stage.iptables("-S AGENTYARD-another-inst-LAN");
    let place = |rule: &str| forwarded.find(rule).expect(rule);
    assert!(place("-d 169.254.0.0/16 -j REJECT") < place(by_port));
    assert!(place(by_port) < place("-d 10.0.0.0/8 -j REJECT"));
    other.open().await.unwrap();
    assert_eq!(found().await, Found::AsDesired);

    // One network of the private ones, and the service's own address.
    let some = HostRules {
        lan_access: "10.1.0.0/16".parse().unwrap(),
        ..stage.rules.clone()
    };
    assert_eq!(firewall.observe(Some(&some)).await, Ok(Found::Other));
    firewall.restrict(&some).await.unwrap();
    assert_eq!(firewall.observe(Some(&some)).await, Ok(Found::AsDesired));
    let forwarded = stage.iptables(&format!("-S {lan}"));
    let place = |rule: &str| forwarded.find(rule).expect(rule);
    assert!(place("-d 10.1.0.0/16 -j RETURN") < place("-d 10.0.0.0/8 -j REJECT"));
    assert!(
        place("-p tcp -m conntrack --ctorigdst 192.0.2.7 --ctorigdstport 443 -j RETURN")
            < place("-d 192.0.2.0/24 -j REJECT")
    );

    // Each of both may be open by itself.
    for (host_access, lan_access, left) in [
        (HostAccess::Open, LanAccess::Private, "INPUT"),
        (HostAccess::Service, LanAccess::Open, "FORWARD"),
    ] {
        let one = HostRules {
            host_access,
            lan_access,
            ..stage.rules.clone()
        };
        firewall.restrict(&one).await.unwrap();
        assert_eq!(firewall.observe(Some(&one)).await, Ok(Found::AsDesired));
        assert!(!stage.iptables(&format!("-S {left}")).contains("AGENTYARD"));
        assert_eq!(found().await, Found::Other);
    }

    firewall.open().await.unwrap();
    assert_eq!(
        stage.iptables("-S"),
        others,
        "other chains are as they were"
    );
}

#[tokio::test]
async fn engine_l40_nft_rules_are_made_repaired_and_removed() {
    seen_made_repaired_and_removed("iptables-nft").await;
}

#[tokio::test]
async fn engine_l40_legacy_rules_are_made_repaired_and_removed() {
    seen_made_repaired_and_removed("iptables-legacy").await;
}

#[tokio::test]
async fn engine_l40_impossible_rules_are_refused_with_the_cause() {
    let mut stage = Stage::new("iptables-nft");
    stage.rules.bridge = "br-aaaaaaaaaaaa".to_owned();
    let firewall = stage.firewall("me");
    let elsewhere = firewall.observe(Some(&stage.rules)).await;
    let Err(FirewallError::Impossible(text)) = elsewhere else {
        panic!("{elsewhere:?}");
    };
    assert!(text.contains("no interface br-aaaaaaaaaaaa"), "{text}");
    assert_eq!(
        firewall.restrict(&stage.rules).await,
        Err(FirewallError::Impossible(text))
    );
    let missing = Iptables::found_in("/nowhere", stage.interfaces.clone(), "me");
    let missing = missing.observe(None).await;
    let Err(FirewallError::Impossible(text)) = missing else {
        panic!("{missing:?}");
    };
    assert!(text.contains("install iptables"), "{text}");
}
