//! The program that the engine itself needs: `iptables`, and `iptables-restore`, which changes all of it or nothing.

mod rules;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use engine::{FirewallError, Found, HostFirewall, HostRules};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

/// How long one run may take; others may hold the lock of the filter.
const LIMIT: Duration = Duration::from_secs(10);
/// Seconds that the program itself waits for that lock.
const WAIT: &str = "5";
/// Where the program is besides `PATH`, which for services often ends at `/usr/bin`.
const FOLDERS: &str = "/usr/sbin:/sbin:/usr/local/sbin";
/// The interfaces of the network that this process is in (proc(5)).
const INTERFACES: &str = "/proc/self/net/dev";
/// The settings that need no packet filter.
const OPEN: &str = "container.host_access and container.lan_access to open";
/// Start of the names of all chains, of this installation and of others.
const PREFIX: &str = "AGENTYARD-";
/// Characters of the owner in the name of a chain, which may have 28.
const OWNER: usize = 12;

/// The packet filter, by the program `iptables`.
#[derive(Debug, Clone)]
pub struct Iptables {
    path: String,
    interfaces: PathBuf,
    chains: [Chain; 2],
}

/// A chain of ours, and the chain of the packet filter that leads to it.
#[derive(Debug, Clone)]
struct Chain {
    hook: &'static str,
    name: String,
}

impl Chain {
    /// The rule that leads to this chain, as the program lists it.
    fn jump(&self, rules: &HostRules) -> String {
        format!("-A {} -i {} -j {}", self.hook, rules.bridge, self.name)
    }
}

#[async_trait]
impl HostFirewall for Iptables {
    async fn observe(&self, rules: Option<&HostRules>) -> Result<Found, FirewallError> {
        let desired = self.desired_filter(rules).await?;
        let (mut nothing, mut as_desired) = (true, rules.is_some());
        for (chain, desired) in self.chains.iter().zip(desired) {
            let filter = self.read_filter(chain).await?;
            nothing &= filter.is_empty();
            as_desired &= match (rules, desired) {
                (Some(rules), Some(desired)) => filter.has_jump(&chain.jump(rules), &desired),
                _ => filter.is_empty(),
            };
        }
        Ok(match (nothing, as_desired) {
            (true, _) => Found::Nothing,
            (false, true) => Found::AsDesired,
            (false, false) => Found::Other,
        })
    }

    async fn restrict(&self, rules: &HostRules) -> Result<(), FirewallError> {
        self.change_rules(Some(rules)).await
    }

    async fn open(&self) -> Result<(), FirewallError> {
        self.change_rules(None).await
    }
}

impl Iptables {
    /// The program in `PATH`, or where administrators have it; with chains for this owner alone.
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
            chains: [
                Chain {
                    hook: "INPUT",
                    name: format!("{PREFIX}{owner}"),
                },
                Chain {
                    hook: "FORWARD",
                    name: format!("{PREFIX}{owner}-LAN"),
                },
            ],
        }
    }

    /// Refuses to restrict agents that are not on this host.
    async fn check_bridge(&self, rules: &HostRules) -> Result<(), FirewallError> {
        let interfaces = tokio::fs::read_to_string(&self.interfaces).await;
        let interfaces =
            interfaces.map_err(|error| FirewallError::Failed(format!("interfaces: {error}")))?;
        let mut names = interfaces.lines().filter_map(|line| line.split_once(':'));
        if names.any(|(name, _)| name.trim() == rules.bridge) {
            return Ok(());
        }
        Err(FirewallError::Impossible(format!(
            "the engine is on another host or in a network of its own (there is no interface {} here); restrict agents there, \
             and set {OPEN}",
            rules.bridge
        )))
    }

    /// The rules of each chain of ours; `None` where there is to be no chain.
    async fn desired_filter(
        &self,
        rules: Option<&HostRules>,
    ) -> Result<[Option<Vec<String>>; 2], FirewallError> {
        let Some(rules) = rules else {
            return Ok([None, None]);
        };
        self.check_bridge(rules).await?;
        let [host, lan] = &self.chains;
        Ok([
            rules::for_host(&host.name, rules).await,
            rules::for_lan(&lan.name, rules).await,
        ])
    }

    /// Makes these the rules, in place of whatever of ours is there.
    async fn change_rules(&self, rules: Option<&HostRules>) -> Result<(), FirewallError> {
        let mut lines = String::new();
        let desired = self.desired_filter(rules).await?;
        for (chain, desired) in self.chains.iter().zip(desired) {
            let before = self.read_filter(chain).await?;
            if desired.is_none() && before.is_empty() {
                continue;
            }
            let name = &chain.name;
            // A chain that is declared is emptied; all others stay.
            let _ = writeln!(lines, ":{name} - [0:0]");
            for rule in desired.iter().flatten() {
                let _ = writeln!(lines, "{rule}");
            }
            lines.push_str(&before.unlink_chain());
            let _ = match (rules, desired) {
                (Some(rules), Some(_)) => {
                    let (hook, bridge) = (chain.hook, &rules.bridge);
                    writeln!(lines, "-I {hook} 1 -i {bridge} -j {name}")
                }
                _ => writeln!(lines, "-X {name}"),
            };
        }
        match lines.is_empty() {
            true => Ok(()),
            false => self.restore_rules(&lines).await,
        }
    }

    /// Reads a chain of ours and the chain that leads to it. The message about a missing chain differs by program and version,
    /// so each failure after the first call means that.
    async fn read_filter(&self, chain: &Chain) -> Result<Filter, FirewallError> {
        let hook = self.list_rules(chain.hook).await?;
        let (has_chain, rules) = match self.list_rules(&chain.name).await {
            Ok(rules) => (true, rules),
            Err(_) => (false, Vec::new()),
        };
        Ok(Filter {
            target: format!(" -j {}", chain.name),
            hook,
            has_chain,
            rules,
        })
    }

    /// The rules of a chain.
    async fn list_rules(&self, chain: &str) -> Result<Vec<String>, FirewallError> {
        let arguments = ["-w", WAIT, "-S", chain];
        let listed = self.run_program("iptables", &arguments, None).await?;
        let lines = listed.lines().map(str::trim);
        let rules = lines.filter(|line| line.starts_with("-A "));
        Ok(rules.map(str::to_owned).collect())
    }

    /// Changes all of this or nothing.
    async fn restore_rules(&self, lines: &str) -> Result<(), FirewallError> {
        let arguments = ["-w", WAIT, "--noflush"];
        let whole = format!("*filter\n{lines}COMMIT\n");
        let done = self.run_program("iptables-restore", &arguments, Some(&whole));
        done.await.map(drop)
    }

    async fn run_program(
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
                    "the program {program} is not installed; install iptables, or set {OPEN}"
                )));
            }
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                return Err(missing_right());
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
        let words: Vec<&str> = words.split_whitespace().collect();
        Err(refusal(words.join(" ").chars().take(500).collect()))
    }
}

/// One of our chains, as it is in the packet filter.
struct Filter {
    /// End of each rule that leads to the chain.
    target: String,
    /// All rules of the chain that leads to it.
    hook: Vec<String>,
    /// True if the chain exists.
    has_chain: bool,
    /// Its rules.
    rules: Vec<String>,
}

impl Filter {
    fn is_empty(&self) -> bool {
        !self.has_chain && self.own_rules().next().is_none()
    }

    /// Returns true when the chain has these rules, and `jump` alone leads to it. Before it there may be jumps to chains of
    /// other installations, which accept nothing; another rule might.
    fn has_jump(&self, jump: &String, rules: &[String]) -> bool {
        let leads_to_agentyard = |line: &str| {
            let target = line.rsplit_once(" -j ").map(|(_, target)| target);
            target.is_some_and(|target| target.starts_with(PREFIX))
        };
        let mut hook = self.hook.iter();
        let first = hook.find(|line| *line == jump || !leads_to_agentyard(line));
        first == Some(jump) && self.own_rules().count() == 1 && self.rules == rules
    }

    /// The rules that lead to the chain.
    fn own_rules(&self) -> impl Iterator<Item = &String> {
        let all = self.hook.iter();
        all.filter(|line| line.ends_with(&self.target))
    }

    /// The lines that remove them; by what they say, since their numbers may be others' by then.
    fn unlink_chain(&self) -> String {
        self.own_rules().fold(String::new(), |mut lines, line| {
            let _ = writeln!(lines, "{}", line.replacen("-A ", "-D ", 1));
            lines
        })
    }
}

fn missing_right() -> FirewallError {
    FirewallError::Impossible(format!(
        "the service may not change the packet filter of this host; run it as root, or set {OPEN}"
    ))
}

/// Turns the program's message into an error. What it does not know is no reason to let agents start without rules.
fn refusal(words: String) -> FirewallError {
    let says = |all: &[&str]| all.iter().any(|part| words.contains(part));
    if says(&[
        "Resource temporarily unavailable",
        "Device or resource busy",
        "Cannot allocate memory",
        "Interrupted system call",
    ]) {
        FirewallError::Failed(words)
    } else if says(&[
        "Permission denied",
        "you must be root",
        "Operation not permitted",
    ]) {
        missing_right()
    } else if says(&[
        "Table does not exist",
        "do you need to insmod",
        "can't initialize iptables table",
        "table `filter' is incompatible, use 'nft' tool",
        "Couldn't load match",
        "RULE_APPEND failed",
    ]) {
        FirewallError::Impossible(format!(
            "this host has no packet filter that iptables can use ({words}); set {OPEN}"
        ))
    } else {
        FirewallError::Failed(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_of_an_unusable_filter_means_impossible() {
        let is_impossible =
            |words: &str| matches!(refusal(words.to_owned()), FirewallError::Impossible(_));
        for words in [
            "iptables v1.8.9 (nf_tables): table `filter' is incompatible, use 'nft' tool.",
            "iptables v1.8.9 (legacy): can't initialize iptables table `filter': Invalid argument",
            "iptables-restore v1.8.9 (nf_tables): Couldn't load match `conntrack':No such file or directory",
            "iptables-restore v1.8.9 (nf_tables): line 3: RULE_APPEND failed (No such file or directory): rule in chain A",
            "Could not fetch rule set generation id: Permission denied (you must be root)",
        ] {
            assert!(is_impossible(words), "{words}");
        }
        for words in [
            "Another app is currently holding the xtables lock.",
            "iptables-restore v1.8.9 (nf_tables): line 3: RULE_APPEND failed (Device or resource busy): rule in chain A",
        ] {
            assert!(!is_impossible(words), "{words}");
        }
    }
}
