//! The program that the engine itself needs: `iptables`, and `iptables-restore`, which changes a chain as a whole.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::AsyncWriteExt;
use tokio::net::UdpSocket;
use tokio::process::Command;

use super::{FirewallError, Found, HostFirewall, HostRules};

/// The chain of our own.
const CHAIN: &str = "AGENTYARD";
/// How long one run may take; others may hold the lock of the filter.
const LIMIT: Duration = Duration::from_secs(10);
/// Seconds that the program itself waits for that lock.
const WAIT: &str = "5";
/// Where it is besides `PATH`, which for services often ends at `/usr/bin`.
const FOLDERS: &str = "/usr/sbin:/sbin:/usr/local/sbin";
/// Whom the host asks for names; the engine asks the same for its containers, from within them.
const RESOLVERS: &str = "/etc/resolv.conf";
/// Bytes of that file that are read.
const RESOLVERS_LIMIT: usize = 64 * 1024;

/// The packet filter, by the program `iptables`.
#[derive(Debug, Clone)]
pub struct Iptables {
    path: String,
}

impl Default for Iptables {
    /// The program in `PATH`, or where administrators have it.
    fn default() -> Self {
        let path = std::env::var("PATH").unwrap_or_default();
        Self::found_in(&format!("{path}:{FOLDERS}"))
    }
}

#[async_trait]
impl HostFirewall for Iptables {
    async fn observe(&self, rules: Option<&HostRules>) -> Result<Found, FirewallError> {
        if let Some(rules) = rules {
            check(rules).await?;
        }
        let filter = self.filter().await?;
        let led = filter.input.iter().filter(|line| leads(line)).count();
        if !filter.has_chain && led == 0 {
            return Ok(Found::Nothing);
        }
        let Some(rules) = rules else {
            return Ok(Found::Other);
        };
        // Behind another rule it might never be asked.
        let first = filter.input.first() == Some(&jump(rules));
        Ok(
            match first && led == 1 && filter.chain == accepted(rules).await {
                true => Found::AsDesired,
                false => Found::Other,
            },
        )
    }

    async fn restrict(&self, rules: &HostRules) -> Result<(), FirewallError> {
        check(rules).await?;
        // A chain that is declared is emptied and filled in one step; all others stay.
        let chain = accepted(rules).await.join("\n");
        let whole = format!("*filter\n:{CHAIN} - [0:0]\n{chain}\nCOMMIT\n");
        let arguments = ["-w", WAIT, "--noflush"];
        self.run("iptables-restore", &arguments, Some(&whole))
            .await?;
        // First the new way in, then what was there: at no time can anything be reached in between.
        let rule = ["-I", "INPUT", "1", "-i", &rules.bridge, "-j", CHAIN];
        self.change(&rule).await?;
        self.unlink(1).await
    }

    async fn open(&self) -> Result<(), FirewallError> {
        self.unlink(0).await?;
        if !self.filter().await?.has_chain {
            return Ok(());
        }
        self.change(&["-F", CHAIN]).await?;
        self.change(&["-X", CHAIN]).await
    }
}

impl Iptables {
    /// The program in these folders, separated by `:`.
    pub fn found_in(path: &str) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Removes every rule of `INPUT` that leads to our chain, but the first `kept` ones.
    async fn unlink(&self, kept: usize) -> Result<(), FirewallError> {
        let input = self.filter().await?.input;
        let numbered = input.iter().zip(1_usize..);
        let mut ours: Vec<usize> = numbered
            .filter(|(line, _)| leads(line))
            .map(|(_, number)| number)
            .skip(kept)
            .collect();
        // From the end, so that the numbers before stay true.
        while let Some(number) = ours.pop() {
            self.change(&["-D", "INPUT", &number.to_string()]).await?;
        }
        Ok(())
    }

    /// What concerns us of all that the program lists: of a chain that does not exist it says different things.
    async fn filter(&self) -> Result<Filter, FirewallError> {
        let listed = self.run("iptables", &["-w", WAIT, "-S"], None).await?;
        let of = |chain: &str| {
            let start = format!("-A {chain} ");
            let lines = listed.lines().map(str::trim);
            let rules = lines.filter(|line| line.starts_with(&start));
            rules.map(str::to_owned).collect()
        };
        Ok(Filter {
            input: of("INPUT"),
            has_chain: listed
                .lines()
                .any(|line| line.trim() == format!("-N {CHAIN}")),
            chain: of(CHAIN),
        })
    }

    async fn change(&self, rule: &[&str]) -> Result<(), FirewallError> {
        let arguments = [&["-w", WAIT], rule].concat();
        self.run("iptables", &arguments, None).await.map(drop)
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
                stdin.write_all(text.as_bytes()).await?;
            }
            child.wait_with_output().await
        };
        let output = match tokio::time::timeout(LIMIT, running).await {
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
        let words: String = words.trim().chars().take(500).collect();
        let denied = DENIED.iter().any(|denied| words.contains(denied));
        Err(match output.status.code() {
            _ if denied => FirewallError::Impossible(
                "the service may not change the packet filter of this host; run it as root or with CAP_NET_ADMIN, or set \
                 container.host_access to open"
                    .to_owned(),
            ),
            Some(BUSY) | None => FirewallError::Failed(words),
            Some(_) => FirewallError::Impossible(format!(
                "{program}: {words}; mend that, or set container.host_access to open"
            )),
        })
    }
}

/// What concerns us of the packet filter.
struct Filter {
    /// The rules for what comes to the host.
    input: Vec<String>,
    /// Whether our chain exists.
    has_chain: bool,
    /// Its rules.
    chain: Vec<String>,
}

/// Exit status when something else holds the lock, or the filter changed meanwhile.
const BUSY: i32 = 4;
/// What the program says to those who may not.
const DENIED: [&str; 3] = [
    "Permission denied",
    "you must be root",
    "Operation not permitted",
];

/// Refuses to restrict agents that are not on this host.
async fn check(rules: &HostRules) -> Result<(), FirewallError> {
    if is_of_this_host(rules.gateway).await {
        return Ok(());
    }
    Err(FirewallError::Impossible(format!(
        "the engine is on another host or in a network of its own ({} is no address of this host); restrict agents there, and \
         set container.host_access to open",
        rules.gateway
    )))
}

/// The rule that leads to our chain, as the program lists it.
fn jump(rules: &HostRules) -> String {
    format!("-A INPUT -i {} -j {CHAIN}", rules.bridge)
}

/// Whether a listed rule leads to our chain.
fn leads(line: &str) -> bool {
    line.ends_with(&format!(" -j {CHAIN}")) || line.ends_with(&format!(" -g {CHAIN}"))
}

/// The rules of our chain, as the program lists them.
async fn accepted(rules: &HostRules) -> Vec<String> {
    let accept = |ip: Ipv4Addr, protocol: &str, port: u16| {
        format!("-A {CHAIN} -d {ip}/32 -p {protocol} -m {protocol} --dport {port} -j RETURN")
    };
    // What the host asks agents is answered: whether they are ready.
    let mut lines = vec![format!(
        "-A {CHAIN} -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN"
    )];
    if let Some((ip, port)) = rules.listener {
        lines.push(accept(ip, "tcp", port));
    }
    if let Some((name, port)) = &rules.service {
        for ip in addresses(name, *port).await {
            lines.push(accept(ip, "tcp", *port));
        }
    }
    for ip in resolvers().await {
        lines.push(accept(ip, "udp", 53));
        lines.push(accept(ip, "tcp", 53));
    }
    lines.push(format!(
        "-A {CHAIN} -j REJECT --reject-with icmp-port-unreachable"
    ));
    lines
}

/// The addresses of this host that a name stands for, in order. A name that the host cannot resolve leads agents nowhere.
async fn addresses(name: &str, port: u16) -> Vec<Ipv4Addr> {
    match tokio::net::lookup_host((name, port)).await {
        Ok(found) => of_this_host(found.map(|address| address.ip())).await,
        Err(_) => Vec::new(),
    }
}

/// The resolvers of the host that are on the host itself, where agents reach them.
async fn resolvers() -> Vec<Ipv4Addr> {
    let text = tokio::fs::read(RESOLVERS).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text[..text.len().min(RESOLVERS_LIMIT)]).into_owned();
    let named = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next()?.parse().ok())?
    });
    of_this_host(named).await
}

async fn of_this_host(all: impl Iterator<Item = IpAddr>) -> Vec<Ipv4Addr> {
    let mut ours = Vec::new();
    for ip in all {
        if let IpAddr::V4(ip) = ip
            && !ip.is_loopback()
            && !ip.is_unspecified()
            && is_of_this_host(ip).await
        {
            ours.push(ip);
        }
    }
    ours.sort();
    ours.dedup();
    ours
}

/// Only what is an address of this host can be bound to.
async fn is_of_this_host(ip: Ipv4Addr) -> bool {
    UdpSocket::bind((ip, 0)).await.is_ok()
}
