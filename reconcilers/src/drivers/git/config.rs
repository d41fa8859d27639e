//! The configuration that `git` is given, as the only one: git-config(1).

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::address::Checked;

/// Bytes that a server must send in each second, on the average of the time that it may stall: while it counts what it is to
/// send, and on thin lines, that is not much.
const LEAST_RATE: &str = "1";

/// A text in the syntax of git-config(1).
pub(super) struct Config(String);

impl Config {
    /// What every call keeps to. `protocol` is the only one that may be spoken.
    pub(super) fn new(protocol: &str) -> Self {
        let mut config = Self(String::new());
        config.section("core", None);
        config.set("hooksPath", "/dev/null");
        config.set("askPass", "");
        config.set("symlinks", "false");
        config.set("logAllRefUpdates", "false");
        // Larger blobs are not held in memory as a whole.
        config.set("bigFileThreshold", "8m");
        // What is mapped counts as memory.
        config.set("packedGitWindowSize", "16m");
        config.set("packedGitLimit", "256m");
        config.section("credential", None);
        config.set("helper", "");
        config.section("protocol", None);
        config.set("allow", "never");
        config.section("protocol", Some(protocol));
        config.set("allow", "always");
        config.section("fetch", None);
        // One file instead of one for each object.
        config.set("unpackLimit", "1");
        config.set("recurseSubmodules", "false");
        config.section("transfer", None);
        config.set("fsckObjects", "true");
        config.set("bundleURI", "false");
        config.section("fetch \"fsck\"", None);
        // Old programs wrote these; they do no harm to somebody who reads no dates.
        for harmless in [
            "badTimezone",
            "missingSpaceBeforeDate",
            "zeroPaddedDate",
            "zeroPaddedFilemode",
            "missingEmail",
        ] {
            config.set(harmless, "ignore");
        }
        config.section("pack", None);
        config.set("threads", "1");
        config.section("gc", None);
        config.set("auto", "0");
        config.section("maintenance", None);
        config.set("auto", "false");
        config
    }

    /// HTTP: to these addresses only, following nothing, asking no proxy.
    pub(super) fn http(&mut self, checked: &Checked, port: u16, stalled: Duration) {
        self.section("http", None);
        self.set("followRedirects", "false");
        self.set("proxy", "");
        self.set("sslVerify", "true");
        self.set("lowSpeedLimit", LEAST_RATE);
        self.set("lowSpeedTime", &stalled.as_secs().max(1).to_string());
        if checked.host.parse::<std::net::IpAddr>().is_err() {
            let addresses: Vec<String> = checked.addresses.iter().map(plain).collect();
            let pinned = format!("{}:{port}:{}", checked.host, addresses.join(","));
            self.set("curloptResolve", &pinned);
        }
    }

    /// Authorities that issue certificates, besides or instead of the system's own.
    pub(super) fn authorities(&mut self, file: Option<&Path>, directory: Option<&Path>) {
        self.section("http", None);
        for (key, path) in [("sslCAInfo", file), ("sslCAPath", directory)] {
            if let Some(path) = path.and_then(Path::to_str) {
                self.set(key, path);
            }
        }
    }

    /// A header with a secret for one origin.
    pub(super) fn authorization(&mut self, origin: &str, value: &str) {
        self.section("http", Some(origin));
        self.set("extraHeader", &format!("Authorization: {value}"));
    }

    /// The command that connects by SSH.
    pub(super) fn ssh(&mut self, command: &str) {
        self.section("core", None);
        self.set("sshCommand", command);
        self.section("ssh", None);
        self.set("variant", "ssh");
    }

    fn section(&mut self, name: &str, of: Option<&str>) {
        let _ = match of {
            Some(of) => writeln!(self.0, "[{name} {}]", quoted(of)),
            None => writeln!(self.0, "[{name}]"),
        };
    }

    fn set(&mut self, key: &str, value: &str) {
        let _ = writeln!(self.0, "\t{key} = {}", quoted(value));
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

fn plain(address: &SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}

fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_values_and_addresses_are_pinned() {
        let mut config = Config::new("https");
        let checked = Checked {
            host: "git.example".into(),
            addresses: vec![
                "1.2.3.4:443".parse().unwrap(),
                "[2606::1]:443".parse().unwrap(),
            ],
        };
        config.http(&checked, 443, Duration::from_secs(60));
        config.authorities(Some(Path::new("/a \"b\"\n[alias]\\")), None);
        let text = String::from_utf8(config.as_bytes().to_vec()).unwrap();
        for line in [
            "[protocol \"https\"]",
            "\tcurloptResolve = \"git.example:443:1.2.3.4,[2606::1]\"",
            "\tlowSpeedTime = \"60\"",
            "\tsslCAInfo = \"/a \\\"b\\\"\\n[alias]\\\\\"",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
