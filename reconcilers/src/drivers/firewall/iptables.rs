//! The program that the engine itself needs: `iptables`, and `iptables-restore`, which changes all of it or nothing.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::AsyncWriteExt;
use tokio::net::UdpSocket;
use tokio::process::Command;
use tokio::time::timeout;

use super::{FirewallError, Found, HostFirewall, HostRules};

/// How long one run may take; others may hold the lock of the filter.
const LIMIT: Duration = Duration::from_secs(10);
/// Seconds that the program itself waits for that lock.
const WAIT: &str = "5";
/// How long a name may take to be resolved.
const RESOLVE: Duration = Duration::from_secs(2);
/// Where the program is besides `PATH`, which for services often ends at `/usr/bin`.
const FOLDERS: &str = "/usr/sbin:/sbin:/usr/local/sbin";
/// The interfaces of the network that this process is in (proc(5)).
const INTERFACES: &str = "/proc/self/net/dev";
/// Whom the engine asks for names, from within its containers: what the host says, or what stands behind systemd's resolver.
const RESOLVERS: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
/// Characters of the owner in the name of a chain, which may have 28.
const OWNER: usize = 12;

/// The packet filter, by the program `iptables`.
#[derive(Debug, Clone)]
pub struct Iptables {
    path: String,
    interfaces: PathBuf,
    chain: String,
}

#[async_trait]
impl HostFirewall for Iptables {
    async fn observe(&self, rules: Option<&HostRules>) -> Result<Found, FirewallError> {
        if let Some(rules) = rules {
            self.check(rules).await?;
        }
        let filter = self.filter().await?;
        if filter.is_empty() {
            return Ok(Found::Nothing);
        }
        let Some(rules) = rules else {
            return Ok(Found::Other);
        };
        // Behind another rule it might never be asked.
        let first = filter.input.first() == Some(&self.jump(rules));
        let alone = filter.ours().count() == 1;
        Ok(
            match first && alone && filter.chain == self.accepted(rules).await {
                true => Found::AsDesired,
                false => Found::Other,
            },
        )
    }

    async fn restrict(&self, rules: &HostRules) -> Result<(), FirewallError> {
        self.check(rules).await?;
        let before = self.filter().await?;
        // A chain that is declared is emptied; all others stay.
        let mut lines = format!(":{} - [0:0]\n", self.chain);
        for rule in self.accepted(rules).await {
            let _ = writeln!(lines, "{rule}");
        }
        lines.push_str(&before.unlink());
        let _ = writeln!(lines, "-I INPUT 1 -i {} -j {}", rules.bridge, self.chain);
        self.restore(&lines).await
    }

    async fn open(&self) -> Result<(), FirewallError> {
        let before = self.filter().await?;
        if before.is_empty() {
            return Ok(());
        }
        let chain = &self.chain;
        let unlink = before.unlink();
        self.restore(&format!(":{chain} - [0:0]\n{unlink}-X {chain}\n"))
            .await
    }
}

impl Iptables {
    /// The program in `PATH`, or where administrators have it; with a chain for this owner alone.
    pub fn new(owner: &str) -> Self {
        let path = std::env::var("PATH").unwrap_or_default();
        Self::found_in(&format!("{path}:{FOLDERS}"), INTERFACES.into(), owner)
    }

    /// The program in these folders, separated by `:`, in a network that has these interfaces.
    pub fn found_in(path: &str, interfaces: PathBuf, owner: &str) -> Self {
        // An empty one would be whatever folder the service was started in.
        let folders = path.split(':').filter(|folder| folder.starts_with('/'));
        let owner: String = owner.chars().take(OWNER).collect();
        Self {
            path: folders.collect::<Vec<_>>().join(":"),
            interfaces,
            chain: format!("AGENTYARD-{owner}"),
        }
    }

    /// Refuses to restrict agents that are not on this host.
    async fn check(&self, rules: &HostRules) -> Result<(), FirewallError> {
        let interfaces = tokio::fs::read_to_string(&self.interfaces).await;
        let interfaces =
            interfaces.map_err(|error| FirewallError::Failed(format!("interfaces: {error}")))?;
        let mut names = interfaces.lines().filter_map(|line| line.split_once(':'));
        if names.any(|(name, _)| name.trim() == rules.bridge) {
            return Ok(());
        }
        Err(FirewallError::Impossible(format!(
            "the engine is on another host or in a network of its own (there is no interface {} here); restrict agents there, \
             and set container.host_access to open",
            rules.bridge
        )))
    }

    /// The rule that leads to our chain, as the program lists it.
    fn jump(&self, rules: &HostRules) -> String {
        format!("-A INPUT -i {} -j {}", rules.bridge, self.chain)
    }

    /// The rules of our chain, as the program lists them.
    async fn accepted(&self, rules: &HostRules) -> Vec<String> {
        let chain = &self.chain;
        let to = |ip: Option<Ipv4Addr>, protocol: &str, port: u16| {
            let ip = ip.map_or_else(String::new, |ip| format!(" -d {ip}/32"));
            format!("-A {chain}{ip} -p {protocol} -m {protocol} --dport {port} -j RETURN")
        };
        // What the host asks agents is answered: whether they are ready. What they have asked it before is not.
        let mut lines = vec![format!(
            "-A {chain} -m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -j RETURN"
        )];
        if let Some((ip, port)) = rules.listener {
            lines.push(to(Some(ip), "tcp", port));
        }
        if let Some((name, port)) = &rules.service {
            match addresses(name, *port).await {
                Some(addresses) => {
                    lines.extend(addresses.into_iter().map(|ip| to(Some(ip), "tcp", *port)));
                }
                None => lines.push(to(None, "tcp", *port)),
            }
        }
        for ip in resolvers().await {
            lines.push(to(Some(ip), "udp", 53));
            lines.push(to(Some(ip), "tcp", 53));
        }
        let reject = format!("-A {chain} -j REJECT --reject-with icmp-port-unreachable");
        lines.push(reject);
        lines
    }

    /// What of ours is there. Of a chain that does not exist the program says different things, so whatever it fails with
    /// means that.
    async fn filter(&self) -> Result<Filter, FirewallError> {
        let input = self.list("INPUT").await?;
        let (has_chain, chain) = match self.list(&self.chain).await {
            Ok(chain) => (true, chain),
            Err(FirewallError::Failed(_)) => (false, Vec::new()),
            Err(impossible) => return Err(impossible),
        };
        Ok(Filter {
            target: format!(" -j {}", self.chain),
            input,
            has_chain,
            chain,
        })
    }

    /// The rules of a chain.
    async fn list(&self, chain: &str) -> Result<Vec<String>, FirewallError> {
        let arguments = ["-w", WAIT, "-S", chain];
        let listed = self.run("iptables", &arguments, None).await?;
        let lines = listed.lines().map(str::trim);
        let rules = lines.filter(|line| line.starts_with("-A "));
        Ok(rules.map(str::to_owned).collect())
    }

    /// Changes all of this or nothing.
    async fn restore(&self, lines: &str) -> Result<(), FirewallError> {
        let arguments = ["-w", WAIT, "--noflush"];
        let whole = format!("*filter\n{lines}COMMIT\n");
        let done = self.run("iptables-restore", &arguments, Some(&whole));
        done.await.map(drop)
    }

    async fn run(
        &self,
        program: &str,
        arguments: &[&str],
        input: Option<&str>,
    ) -> Result<String, FirewallError> {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("PATH", &self.path)
            .env("LC_ALL", "C")
            .stdin(match input {
                Some(_) => Stdio::piped(),
                None => Stdio::null(),
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let running = async {
            let mut child = command.spawn()?;
            if let (Some(text), Some(mut stdin)) = (input, child.stdin.take()) {
                // One that ends before it has read all says itself why.
                let _ = stdin.write_all(text.as_bytes()).await;
            }
            child.wait_with_output().await
        };
        let output = match timeout(LIMIT, running).await {
            Ok(Ok(output)) => output,
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(FirewallError::Impossible(format!(
                    "the program {program} is not installed; install iptables, or set container.host_access to open"
                )));
            }
            Ok(Err(error)) => return Err(FirewallError::Failed(error.to_string())),
            Err(_) => {
                let seconds = LIMIT.as_secs();
                return Err(FirewallError::Failed(format!(
                    "{program} has not ended after {seconds} s"
                )));
            }
        };
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let words = String::from_utf8_lossy(&output.stderr);
        Err(refused(words.trim().chars().take(500).collect()))
    }
}

/// What of ours is in the packet filter.
struct Filter {
    /// How a rule ends that leads to our chain.
    target: String,
    /// All rules for what comes to the host.
    input: Vec<String>,
    /// Whether our chain exists.
    has_chain: bool,
    /// Its rules.
    chain: Vec<String>,
}

impl Filter {
    fn is_empty(&self) -> bool {
        !self.has_chain && self.ours().next().is_none()
    }

    /// The rules that lead to our chain.
    fn ours(&self) -> impl Iterator<Item = &String> {
        let all = self.input.iter();
        all.filter(|line| line.ends_with(&self.target))
    }

    /// The lines that remove them; by what they say, since their numbers may be others' by then.
    fn unlink(&self) -> String {
        self.ours().fold(String::new(), |mut lines, line| {
            let _ = writeln!(lines, "{}", line.replacen("-A ", "-D ", 1));
            lines
        })
    }
}

/// What the program's words mean.
fn refused(words: String) -> FirewallError {
    let says = |all: &[&str]| all.iter().any(|part| words.contains(part));
    if says(&[
        "Permission denied",
        "you must be root",
        "Operation not permitted",
    ]) {
        FirewallError::Impossible(
            "the service may not change the packet filter of this host; run it as root, or set container.host_access to open"
                .to_owned(),
        )
    } else if says(&["Table does not exist", "do you need to insmod"]) {
        FirewallError::Impossible(format!(
            "this host has no packet filter for iptables ({words}); set container.host_access to open"
        ))
    } else {
        FirewallError::Failed(words)
    }
}

/// The addresses of this host that a name stands for, in order. `None`: agents may take it for another one than the host
/// does, which calls itself by loopback addresses, or does not know it.
async fn addresses(name: &str, port: u16) -> Option<Vec<Ipv4Addr>> {
    let found = timeout(RESOLVE, tokio::net::lookup_host((name, port)));
    let found: Vec<IpAddr> = found
        .await
        .ok()?
        .ok()?
        .map(|address| address.ip())
        .collect();
    let is_literal = name.parse::<IpAddr>().is_ok();
    if !is_literal && found.iter().any(IpAddr::is_loopback) {
        return None;
    }
    Some(of_this_host(found).await)
}

/// The resolvers of the host that are on the host itself, where agents reach them.
async fn resolvers() -> Vec<Ipv4Addr> {
    let mut named: Vec<IpAddr> = Vec::new();
    for file in RESOLVERS {
        let text = tokio::fs::read_to_string(file).await.unwrap_or_default();
        named.extend(text.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let named = (words.next() == Some("nameserver")).then(|| words.next())?;
            named?.parse::<IpAddr>().ok()
        }));
    }
    of_this_host(named).await
}

/// Those that only this host has: they can be bound to.
async fn of_this_host(all: Vec<IpAddr>) -> Vec<Ipv4Addr> {
    let mut ours = Vec::new();
    for ip in all {
        if let IpAddr::V4(ip) = ip
            && !ip.is_loopback()
            && !ip.is_unspecified()
            && UdpSocket::bind((ip, 0)).await.is_ok()
        {
            ours.push(ip);
        }
    }
    ours.sort();
    ours.dedup();
    ours
}
