//! What rules mean for a tool and for a page.

use std::sync::LazyLock;

use schema::config::policy::{Mode, ToolPattern, UrlPattern, canonical_host};
use schema::zone::Zone;
use url::{Host, Url};

use super::own::Own;
use super::rules::InEffect;
use crate::executors::Service;

/// Pages that are denied unless an administrator wants them: see the file.
static BUILTIN: LazyLock<Vec<UrlPattern>> = LazyLock::new(|| {
    let lines = include_str!("builtin.txt").lines().map(str::trim);
    let patterns = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    patterns.filter_map(|line| line.parse().ok()).collect()
});

/// Names of hosts that only a private network has.
const PRIVATE_NAMES: [&str; 5] = ["localhost", "local", "internal", "lan", "home.arpa"];

/// Why something is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denied {
    #[error("an administrator has switched off the {} tools", of(*.0))]
    Off(Service),
    #[error("an administrator allows only tools that change nothing")]
    ReadOnly,
    #[error("an administrator does not allow this tool")]
    Tool,
    #[error("only http and https addresses may be visited")]
    Scheme,
    #[error("what an empty page shows may be another page's; open an address first")]
    Blank,
    #[error("the console and the API of this service may not be visited")]
    Own,
    #[error("an administrator does not allow this address")]
    Url,
    #[error("pages for sign-in, passwords and payment may not be visited")]
    Builtin,
    #[error("an administrator does not allow addresses of private networks")]
    Private,
}

fn of(service: Service) -> &'static str {
    match service {
        Service::Browser => "browser",
        Service::Computer => "desktop",
    }
}

impl InEffect {
    /// Whether a tool may be called. It has several names if it was called in other words than those in which it is carried out.
    pub(crate) fn tool(&self, names: &[&str], read_only: bool) -> Result<(), Denied> {
        let listed = |list: &[ToolPattern]| {
            (list.iter()).any(|pattern| names.iter().any(|name| pattern.matches(name)))
        };
        match self.mode {
            Mode::Off => return Err(Denied::Off(self.service)),
            Mode::ReadOnly if !read_only => return Err(Denied::ReadOnly),
            Mode::ReadOnly | Mode::Auto => {}
        }
        let allowed = self
            .tools
            .iter()
            .all(|list| list.is_empty() || listed(list));
        match allowed && !listed(&self.no_tools) {
            true => Ok(()),
            false => Err(Denied::Tool),
        }
    }

    /// Whether a page may be opened. What is empty may be: nothing is there yet.
    pub(crate) fn opens(&self, url: &Url, own: &Own) -> Result<(), Denied> {
        match self.page(url, own) {
            Err(Denied::Blank) => Ok(()),
            judged => judged,
        }
    }

    /// Whether something may be done on a page.
    pub(crate) fn page(&self, url: &Url, own: &Own) -> Result<(), Denied> {
        // Another page can open it and write into it.
        if url.scheme() == "about" && url.path() == "blank" {
            return Err(Denied::Blank);
        }
        let web = matches!(url.scheme(), "http" | "https");
        let Some(host) = url.host().filter(|_| web).map(canonical_host) else {
            return Err(Denied::Scheme);
        };
        if own.has(url) {
            return Err(Denied::Own);
        }
        let denied = |list: &[UrlPattern]| list.iter().any(|it| it.matches_any_spelling(url));
        if denied(&self.no_urls) {
            return Err(Denied::Url);
        }
        if self.builtin && denied(&BUILTIN) {
            return Err(Denied::Builtin);
        }
        if !self.private_addresses && is_private(&host) {
            return Err(Denied::Private);
        }
        let listed =
            |list: &Vec<UrlPattern>| list.is_empty() || list.iter().any(|it| it.matches(url));
        match self.urls.iter().all(listed) {
            true => Ok(()),
            false => Err(Denied::Url),
        }
    }
}

/// Whether a host is in a private network, or the machine itself, as far as its name tells.
fn is_private(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => {
            let within = |end: &&str| {
                name.strip_suffix(*end)
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            };
            !name.contains('.') || PRIVATE_NAMES.iter().any(within)
        }
        Host::Ipv4(ip) => Zone::from_address((*ip).into()) != Zone::Public,
        Host::Ipv6(ip) => Zone::from_address((*ip).into()) != Zone::Public,
    }
}

/// Whether a host is the machine on which it is looked up.
pub(super) fn is_loopback<S: AsRef<str>>(host: &Host<S>) -> bool {
    match host {
        Host::Domain(name) => {
            let name = name.as_ref();
            name == "localhost" || name.ends_with(".localhost")
        }
        Host::Ipv4(ip) => Zone::from_address((*ip).into()) == Zone::Loopback,
        Host::Ipv6(ip) => Zone::from_address((*ip).into()) == Zone::Loopback,
    }
}
