//! What names of tools and addresses of pages are compared with.

use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::Deserialize;
use url::{Host, Url};

/// A host as it is compared: without a dot at its end, and an IPv6 address that leads to an IPv4 one (mapped, compatible, or NAT64) as
/// that one.
pub fn canonical_host(host: Host<&str>) -> Host<&str> {
    match host {
        Host::Domain(name) => Host::Domain(name.trim_end_matches('.')),
        Host::Ipv4(_) => host,
        Host::Ipv6(ip) => match ip.segments() {
            // These are no compatible ones.
            [0, 0, 0, 0, 0, 0, 0, 0 | 1] => host,
            [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                Host::Ipv4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
            }
            _ => host,
        },
    }
}

/// Tools: one by its name, or all whose names begin alike.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ToolPattern {
    text: String,
    prefix: bool,
}

impl ToolPattern {
    /// Whether a tool is one of them.
    pub fn matches(&self, tool: &str) -> bool {
        match self.prefix {
            true => tool.starts_with(&self.text),
            false => tool == self.text,
        }
    }
}

impl FromStr for ToolPattern {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, prefix) = match text.strip_suffix('*') {
            Some(name) => (name, true),
            None => (text, false),
        };
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        let named = prefix || !name.is_empty();
        if !named || name.len() > 128 || !name.bytes().all(fits) {
            return Err(
                "must be the name of a tool such as browser_click, or the beginning of names with * at its end",
            );
        }
        Ok(Self {
            text: name.to_owned(),
            prefix,
        })
    }
}

impl TryFrom<String> for ToolPattern {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// Pages: those of a host, or of all hosts below one; at a port, if one is named; below a path, if one is named.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct UrlPattern {
    host: Host,
    below: bool,
    port: Option<u16>,
    path: String,
}

impl UrlPattern {
    /// Whether a page is one of them. The path is compared as it is written, by whole parts, and may not lead out again.
    pub fn matches(&self, url: &Url) -> bool {
        self.has_host(url)
            && is_below(&self.path, url.path())
            && is_below(&plain(&self.path, true), &plain(url.path(), true))
    }

    /// The same for what is denied: written in another way, it is still the same page.
    pub fn matches_any_spelling(&self, url: &Url) -> bool {
        // Not every server resolves dots that are encoded.
        let read = |resolve| is_below(&plain(&self.path, resolve), &plain(url.path(), resolve));
        self.has_host(url) && (is_below(&self.path, url.path()) || read(false) || read(true))
    }

    fn has_host(&self, url: &Url) -> bool {
        let Some(host) = url.host().map(canonical_host) else {
            return false;
        };
        let same = match (self.below, &self.host, host) {
            (true, Host::Domain(above), Host::Domain(host)) => host
                .strip_suffix(above.as_str())
                .is_some_and(|rest| rest.ends_with('.')),
            (_, own, host) => *own == host,
        };
        same && self
            .port
            .is_none_or(|port| url.port_or_known_default() == Some(port))
    }
}

fn is_below(prefix: &str, path: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| prefix.ends_with('/') || rest.is_empty() || rest.starts_with('/'))
}

/// A path as servers may read it: percent signs stand for themselves, case does not matter, parts lose their parameters (`;x=1`), and
/// empty parts are none; with `resolve`, `..` leads up. A slash at its end stays.
fn plain(path: &str, resolve: bool) -> String {
    let decoded = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
    let decoded = decoded.to_lowercase();
    let mut parts = Vec::new();
    let mut ends_in_slash = false;
    for part in decoded.split(['/', '\\']) {
        let part = part.split(';').next().unwrap_or_default();
        ends_in_slash = matches!(part, "" | ".") || (resolve && part == "..");
        match part {
            "" | "." => {}
            ".." if resolve => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    let mut plain = format!("/{}", parts.join("/"));
    if ends_in_slash && !parts.is_empty() {
        plain.push('/');
    }
    plain
}

impl FromStr for UrlPattern {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const RULE: &str = "must be a host such as example.org, *.example.org for all hosts below it, or host/path for what lies below a path; \
             without scheme, user, query and fragment";
        let (rest, below) = match text.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let strange = |c: char| c.is_whitespace() || c.is_control() || "@?#*\\".contains(c);
        if rest.contains(strange) || rest.len() > 1024 {
            return Err(RULE);
        }
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !authority.ends_with(']') => {
                (host, Some(port.parse().map_err(|_| RULE)?))
            }
            _ => (authority, None),
        };
        let host = Host::parse(host.trim_end_matches('.')).map_err(|_| RULE)?;
        // As addresses of pages are written: without dots, and with what needs it encoded.
        let url = Url::parse(&format!("http://{host}{path}")).map_err(|_| RULE)?;
        let host = url.host().map(canonical_host).ok_or(RULE)?.to_owned();
        if below && !matches!(host, Host::Domain(_)) {
            return Err(RULE);
        }
        Ok(Self {
            host,
            below,
            port,
            path: url.path().to_owned(),
        })
    }
}

impl TryFrom<String> for UrlPattern {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}
