//! The hosts that keys name, in one form each: what secrets belong to. Where a URL names it, one that speaks TLS is another one
//! than the same without, so a secret that was given for the former is not sent in the clear. Whether a registry speaks TLS is
//! said by image.registry_plain_http, host by host.

use url::Url;

use crate::image::ImageReference;

/// The registry of an image.
pub(super) fn of_image(name: &str) -> Option<String> {
    let image: ImageReference = name.parse().ok()?;
    Some(image.registry().to_ascii_lowercase())
}

/// The origin of an http(s) address.
pub(super) fn of_url(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    url.has_host().then(|| url.origin().ascii_serialization())
}

/// A directory server as [`ldap_url`] reads it.
pub(super) fn of_ldap(server: &str) -> Option<String> {
    let url = ldap_url(server)?;
    let port = if url.scheme() == "ldaps" { 636 } else { 389 };
    let (scheme, host) = (url.scheme(), url.host_str()?.to_ascii_lowercase());
    Some(format!("{scheme}://{host}:{}", url.port().unwrap_or(port)))
}

/// Reads `host[:port]`, `ldap://…` or `ldaps://…`.
pub(super) fn ldap_url(server: &str) -> Option<Url> {
    let url = match server.split_once("://") {
        None => Url::parse(&format!("ldap://{server}")),
        Some(("ldap" | "ldaps", _)) => Url::parse(server),
        Some(_) => return None,
    };
    url.ok()
        .filter(|url| url.host_str().is_some_and(|host| !host.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case::hub(of_image, "agent", "docker.io/sipeed/picoclaw", true)]
    #[case::case_of_host(of_image, "R.example:5000/a", "r.example:5000/b/c", true)]
    #[case::port(of_image, "r.example:5000/a", "r.example:5001/a", false)]
    #[case::registry(of_image, "r.example/a", "a", false)]
    #[case::path(of_url, "https://Id.example/a", "https://id.example:443/b", true)]
    #[case::tls(of_url, "https://id.example", "http://id.example", false)]
    #[case::other_host(of_url, "https://id.example", "https://id.example.evil", false)]
    #[case::default_port(of_ldap, "dc.example", "ldap://DC.example:389/", true)]
    #[case::default_tls_port(of_ldap, "ldaps://dc.example", "ldaps://dc.example:636", true)]
    #[case::ldaps(of_ldap, "ldaps://dc.example", "ldap://dc.example:636", false)]
    #[case::other_server(of_ldap, "dc1.example:389", "dc2.example:389", false)]
    fn hosts_have_one_form(
        #[case] host: fn(&str) -> Option<String>,
        #[case] one: &str,
        #[case] other: &str,
        #[case] same: bool,
    ) {
        let (one, other) = (host(one).unwrap(), host(other).unwrap());
        assert_eq!(one == other, same, "{one} {other}");
        assert_eq!(host(""), None);
    }
}
