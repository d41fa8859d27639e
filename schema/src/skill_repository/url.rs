//! Addresses of repositories.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::{Position, Url};
use utoipa::ToSchema;

/// Longest address in bytes.
const LONGEST: usize = 2048;

/// How a repository is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// HTTP with TLS.
    Https,
    /// HTTP without TLS: anybody on the way can read and change what is fetched.
    Http,
    /// SSH.
    Ssh,
}

impl Scheme {
    /// The port that is meant when an address names none.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
            Self::Ssh => 22,
        }
    }
}

/// The address of a repository: `https://…`, `http://…`, `ssh://[user@]host[:port]/path` or `user@host:path`, as `git`
/// reads them (git-fetch(1), "GIT URLS").
///
/// One of HTTP is kept in the form that the URL Standard gives it (`HTTPS://A.example:443/x` is `https://a.example/x`),
/// one of SSH as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, ToSchema)]
#[schema(value_type = String, max_length = 2048, example = "https://github.com/acme/skills.git")]
pub struct RepositoryUrl(Parts);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Parts {
    text: String,
    scheme: Scheme,
    user: Option<String>,
    host: String,
    port: Option<u16>,
    path: String,
}

/// Why a text is no address of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRepositoryUrl {
    /// Not one of the forms.
    #[error(
        "write the address as https://host/path, http://host/path, ssh://user@host/path or user@host:path"
    )]
    Form,
    /// More than 2048 bytes.
    #[error("the address has more than {LONGEST} bytes")]
    Length,
    /// A character that has no place in an address.
    #[error("the address has a space, a control character, a backslash or a quotation mark in it")]
    Character,
    /// A password before the host.
    #[error(
        "the address has a password or a token in it; put it into the credentials of the repository"
    )]
    Password,
    /// Behind `?` or `#`.
    #[error("the address of a repository has no ? or #; leave out what stands behind it")]
    Suffix,
    /// No host, or none that can be looked up.
    #[error("the address names no host, or one that begins with - or . or ends with a dot")]
    Host,
    /// No user, or one that could be an option.
    #[error(
        "the user in the address is empty or has other characters than A-Z a-z 0-9 . _ -, or begins with -"
    )]
    User,
    /// No path, or one that could be an option.
    #[error("the address names no repository at its host, or its path begins with -")]
    Path,
}

impl RepositoryUrl {
    /// How it is reached.
    pub fn scheme(&self) -> Scheme {
        self.0.scheme
    }

    /// The host: a name or an IPv4 or IPv6 address, the latter without brackets.
    pub fn host(&self) -> &str {
        &self.0.host
    }

    /// The port, if the address names one other than the scheme's own.
    pub fn port(&self) -> Option<u16> {
        self.0.port
    }

    /// The port that is connected to.
    pub fn port_or_default(&self) -> u16 {
        self.0.port.unwrap_or_else(|| self.0.scheme.default_port())
    }

    /// The user, if the address names one.
    pub fn user(&self) -> Option<&str> {
        self.0.user.as_deref()
    }

    /// The path at the host: with its leading `/`, except that of `user@host:path`, which is relative to the user's home.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// The address as it was accepted.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    fn http(text: &str) -> Result<Self, InvalidRepositoryUrl> {
        use InvalidRepositoryUrl::{Form, Host, Password, Path, Suffix};
        let url = Url::parse(text).map_err(|_| Host)?;
        let scheme = match url.scheme() {
            "https" => Scheme::Https,
            "http" => Scheme::Http,
            _ => return Err(Form),
        };
        // With HTTP a user name alone is often a token.
        if url.password().is_some() || !url.username().is_empty() {
            return Err(Password);
        }
        if url[Position::AfterPath..].contains(['?', '#']) {
            return Err(Suffix);
        }
        let host = checked_host(url.host_str().unwrap_or_default())?;
        // What these stand for must not get into anything that `git` reads by lines.
        let path = url.path().to_owned();
        if path.trim_matches('/').is_empty() || !is_path(&path) || has_escaped_control(&path) {
            return Err(Path);
        }
        Ok(Self(Parts {
            scheme,
            user: None,
            host,
            port: url.port(),
            path,
            text: url.into(),
        }))
    }

    /// What stands behind `ssh://`.
    fn ssh(text: &str, rest: &str) -> Result<Self, InvalidRepositoryUrl> {
        use InvalidRepositoryUrl::{Character, Form, Host, Path};
        // `git` would decode it, after which nothing here holds any more.
        if rest.contains('%') {
            return Err(Character);
        }
        let (authority, path) = rest.split_at(rest.find('/').ok_or(Path)?);
        let (user, host) = split_user(authority)?;
        let (host, port) = match host.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']').ok_or(Host)?;
                address.parse::<std::net::Ipv6Addr>().map_err(|_| Host)?;
                (
                    address.to_owned(),
                    port.strip_prefix(':').or((!port.is_empty()).then_some("-")),
                )
            }
            None => match host.split_once(':') {
                Some((host, port)) => (checked_host(host)?, Some(port)),
                None => (checked_host(host)?, None),
            },
        };
        let port = match port {
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                let port: u16 = port.parse().map_err(|_| Form)?;
                Some(port).filter(|port| *port != 0).ok_or(Form)?.into()
            }
            Some(_) => return Err(Form),
            None => None,
        };
        if path.trim_matches('/').is_empty() || !is_path(path) {
            return Err(Path);
        }
        Ok(Self(Parts {
            text: text.to_owned(),
            scheme: Scheme::Ssh,
            user,
            host,
            port: port.filter(|port| *port != Scheme::Ssh.default_port()),
            path: path.to_owned(),
        }))
    }

    /// `user@host:path`.
    fn scp_like(text: &str) -> Result<Self, InvalidRepositoryUrl> {
        use InvalidRepositoryUrl::{Form, Path};
        let colon = match text.find("@[") {
            Some(_) => text.find("]:").map(|bracket| bracket + 1),
            None => text.find(':'),
        };
        let (authority, rest) = text.split_at(colon.ok_or(Form)?);
        let path = rest.strip_prefix(':').unwrap_or(rest);
        // Without a user it would be that of the service; and `transport::address` runs a program.
        if !authority.contains('@') || path.starts_with(':') {
            return Err(Form);
        }
        let (user, host) = split_user(authority)?;
        let host = checked_host(host)?;
        if path.trim_matches('/').is_empty() || !is_path(path) {
            return Err(Path);
        }
        Ok(Self(Parts {
            text: text.to_owned(),
            scheme: Scheme::Ssh,
            user,
            host,
            port: None,
            path: path.to_owned(),
        }))
    }
}

/// The user, and what stands behind it.
fn split_user(authority: &str) -> Result<(Option<String>, &str), InvalidRepositoryUrl> {
    match authority.rsplit_once('@') {
        None => Ok((None, authority)),
        Some((user, _)) if user.contains(':') => Err(InvalidRepositoryUrl::Password),
        Some((user, host)) => Ok((Some(checked_user(user)?), host)),
    }
}

fn checked_user(user: &str) -> Result<String, InvalidRepositoryUrl> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match !user.is_empty() && !user.starts_with('-') && user.bytes().all(allowed) {
        true => Ok(user.to_owned()),
        false => Err(InvalidRepositoryUrl::User),
    }
}

/// A host name or address; one of IPv6 comes in brackets and goes without.
fn checked_host(host: &str) -> Result<String, InvalidRepositoryUrl> {
    if let Some(rest) = host.strip_prefix('[') {
        let address = rest
            .strip_suffix(']')
            .filter(|address| address.parse::<Ipv6Addr>().is_ok());
        return address.map(str::to_owned).ok_or(InvalidRepositoryUrl::Host);
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let fits = !host.is_empty()
        && host.len() <= 253
        && host.bytes().all(allowed)
        && !host.starts_with(['-', '.'])
        // One that ends with a dot is the same as without, but not to everybody who compares them.
        && !host.ends_with('.');
    match fits {
        true => Ok(host.to_owned()),
        false => Err(InvalidRepositoryUrl::Host),
    }
}

fn is_path(path: &str) -> bool {
    !path.trim_start_matches('/').starts_with('-')
}

/// Whether a control character is in a path that is written with `%`.
fn has_escaped_control(path: &str) -> bool {
    let mut parts = path.split('%').skip(1);
    parts.any(|part| {
        let byte = part.get(..2).map(|hex| u8::from_str_radix(hex, 16));
        // One that is no number is none that anybody reads alike.
        byte.is_none_or(|byte| byte.is_ok_and(|byte| byte.is_ascii_control()))
    })
}

impl FromStr for RepositoryUrl {
    type Err = InvalidRepositoryUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > LONGEST {
            return Err(InvalidRepositoryUrl::Length);
        }
        let bad = |c: char| c.is_whitespace() || c.is_control() || "\\\"'`<>".contains(c);
        if text.contains(bad) {
            return Err(InvalidRepositoryUrl::Character);
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Self::scp_like(text);
        };
        match scheme.to_ascii_lowercase().as_str() {
            "https" | "http" => Self::http(text),
            "ssh" if scheme == "ssh" => {
                if rest.contains(['?', '#']) {
                    return Err(InvalidRepositoryUrl::Suffix);
                }
                Self::ssh(text, rest)
            }
            _ => Err(InvalidRepositoryUrl::Form),
        }
    }
}

impl fmt::Display for RepositoryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl Serialize for RepositoryUrl {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.text)
    }
}

impl<'de> Deserialize<'de> for RepositoryUrl {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::InvalidRepositoryUrl::{
        Character, Form, Host, Length, Password, Path, Suffix, User,
    };
    use super::*;

    #[rstest::rstest]
    #[case::https(
        "https://github.com/acme/skills.git",
        Scheme::Https,
        None,
        "github.com",
        None,
        "/acme/skills.git"
    )]
    #[case::port(
        "https://git.example:8443/s",
        Scheme::Https,
        None,
        "git.example",
        Some(8443),
        "/s"
    )]
    #[case::http("http://10.0.0.1/s", Scheme::Http, None, "10.0.0.1", None, "/s")]
    #[case::v6("http://[::1]:8080/s", Scheme::Http, None, "::1", Some(8080), "/s")]
    #[case::escaped(
        "https://a.example/a%20b",
        Scheme::Https,
        None,
        "a.example",
        None,
        "/a%20b"
    )]
    #[case::gitlab(
        "https://a.example/g/-/p",
        Scheme::Https,
        None,
        "a.example",
        None,
        "/g/-/p"
    )]
    #[case::ssh(
        "ssh://git@a.example/p.git",
        Scheme::Ssh,
        Some("git"),
        "a.example",
        None,
        "/p.git"
    )]
    #[case::ssh_port(
        "ssh://git@a.example:2222/p",
        Scheme::Ssh,
        Some("git"),
        "a.example",
        Some(2222),
        "/p"
    )]
    #[case::ssh_own_port(
        "ssh://git@a.example:22/p",
        Scheme::Ssh,
        Some("git"),
        "a.example",
        None,
        "/p"
    )]
    #[case::ssh_v6(
        "ssh://git@[::1]:2222/p",
        Scheme::Ssh,
        Some("git"),
        "::1",
        Some(2222),
        "/p"
    )]
    #[case::ssh_home(
        "ssh://a.example/~git/p",
        Scheme::Ssh,
        None,
        "a.example",
        None,
        "/~git/p"
    )]
    #[case::scp(
        "git@github.com:acme/skills.git",
        Scheme::Ssh,
        Some("git"),
        "github.com",
        None,
        "acme/skills.git"
    )]
    #[case::scp_v6("git@[2606::1]:p", Scheme::Ssh, Some("git"), "2606::1", None, "p")]
    #[case::scp_absolute(
        "git@a.example:/srv/p",
        Scheme::Ssh,
        Some("git"),
        "a.example",
        None,
        "/srv/p"
    )]
    fn the_parts_of_an_address(
        #[case] text: &str,
        #[case] scheme: Scheme,
        #[case] user: Option<&str>,
        #[case] host: &str,
        #[case] port: Option<u16>,
        #[case] path: &str,
    ) {
        let url: RepositoryUrl = text.parse().unwrap();
        assert_eq!(url.to_string(), text);
        let parts = (url.scheme(), url.user(), url.host(), url.port(), url.path());
        assert_eq!(parts, (scheme, user, host, port, path));
        assert_eq!(serde_json::to_value(&url).unwrap(), text);
        assert_eq!(
            serde_json::from_value::<RepositoryUrl>(text.into()).unwrap(),
            url
        );
    }

    #[test]
    fn addresses_of_http_have_one_form_so_what_is_checked_is_what_is_asked() {
        for (text, form) in [
            ("HTTPS://GitHub.com:443/a", "https://github.com/a"),
            ("http://2130706433/a", "http://127.0.0.1/a"),
            ("http://0177.0.0.1/a", "http://127.0.0.1/a"),
            ("http://0x7f.1/a", "http://127.0.0.1/a"),
            ("http://[::ffff:7f00:1]/a", "http://[::ffff:7f00:1]/a"),
            ("https://a.example/b/../c", "https://a.example/c"),
            (
                "https://bücher.example/a",
                "https://xn--bcher-kva.example/a",
            ),
            ("https://@a.example/b", "https://a.example/b"),
        ] {
            let url: RepositoryUrl = text.parse().unwrap();
            assert_eq!(url.as_str(), form);
            assert_eq!(url.as_str().parse(), Ok(url));
        }
    }

    #[test]
    fn l28_nothing_else_is_an_address() {
        let long = format!("https://a.example/{}", "a".repeat(2048));
        for (text, why) in [
            ("", Form),
            ("/srv/git/p", Form),
            ("../p", Form),
            ("p", Form),
            ("a.example:p", Form),
            ("file:///etc", Form),
            ("git://a.example/p", Form),
            ("ftp://a.example/p", Form),
            ("ext::sh", Form),
            ("ext::sh -c touch% /tmp/x", Character),
            ("git@ext::sh", Form),
            ("git@fd::17/x", Form),
            ("ext::ssh://a.example/p", Form),
            ("ssh+git://a.example/p", Form),
            ("SSH://a.example/p", Form),
            ("--upload-pack=touch", Form),
            ("-oProxyCommand=touch@a.example:p", User),
            ("git@-oProxyCommand=touch:p", Host),
            ("git@[a.example:22]:p", Host),
            ("git@[-oProxyCommand=touch]:p", Host),
            ("git@[::1:p", Form),
            ("ssh://git@[a.example]/p", Host),
            ("git@-a:p", Host),
            ("git@a.example:-p", Path),
            ("git@a.example:", Path),
            ("git@a.example:/", Path),
            ("git@:p", Host),
            ("@a.example:p", User),
            ("ssh://-oProxyCommand=touch/p", Host),
            ("ssh://git@-a/p", Host),
            ("ssh://-a@b.example/p", User),
            ("ssh://%2da/p", Character),
            ("ssh://git:pw@a.example/p", Password),
            ("git:pw@a.example:p", Form),
            ("ssh://git@a.example", Path),
            ("ssh://git@a.example/", Path),
            ("ssh://git@a.example/-p", Path),
            ("ssh://git@a.example:ssh/p", Form),
            ("ssh://git@a.example:0/p", Form),
            ("ssh://git@a.example:99999/p", Form),
            ("ssh://git@a.example:/p", Form),
            ("ssh://git@[::1/p", Host),
            ("ssh://git@[::1]x/p", Form),
            ("ssh://git@[-a]/p", Host),
            ("ssh://git@a.example/p#f", Suffix),
            ("ssh:///p", Host),
            ("https://", Host),
            ("https:///p", Path),
            ("https://a.example", Path),
            ("https://a.example/", Path),
            ("https://a.example/-p", Path),
            ("https://-a.example/p", Host),
            ("https://a.example./p", Host),
            ("https://.a.example/p", Host),
            ("https://u:pw@a.example/p", Password),
            ("https://:pw@a.example/p", Password),
            ("https://u%0a@a.example/p", Password),
            ("https://-u@a.example/p", Password),
            ("https://a.example/p#f", Suffix),
            ("https://a.example/p?token=x", Suffix),
            ("https://a.example/p%0aq", Path),
            ("https://a.example/p%00", Path),
            ("https://a.example:99999/p", Host),
            ("https://a b.example/p", Character),
            ("https://a.example/p\nq", Character),
            ("https://a.example/p\0", Character),
            ("https://a.example\\p", Character),
            ("https://a.example/p\u{85}", Character),
            ("git@a.example:p q", Character),
            ("git@a.example:p'q", Character),
            (&long, Length),
        ] {
            assert_eq!(text.parse::<RepositoryUrl>(), Err(why), "{text:?}");
            assert!(serde_json::from_value::<RepositoryUrl>(text.into()).is_err());
        }
    }
}
