//! The client's address: the peer, or what trusted proxies say of it; and what else they say of how they are reached.

use std::net::{IpAddr, SocketAddr};

use cidr::IpCidr;
use http::HeaderMap;
use http::header::HeaderName;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

const FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// Longest prefix of paths, in bytes.
const LONGEST_PREFIX: usize = 200;
/// Most hops followed.
const MAX_HOPS: usize = 32;

/// Who counts as one client: an IPv4 address, or a whole IPv6 /64, since one household or server
/// owns all addresses of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Network {
    V4([u8; 4]),
    V6([u8; 8]),
}

/// The networks that one provider or site is usually given: an IPv4 /24 or an IPv6 /48.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Neighbourhood {
    V4([u8; 3]),
    V6([u8; 6]),
}

impl Network {
    /// Returns the neighbourhood that it lies in.
    pub(crate) fn neighbourhood(self) -> Neighbourhood {
        match self {
            Self::V4([a, b, c, _]) => Neighbourhood::V4([a, b, c]),
            Self::V6([a, b, c, d, e, f, ..]) => Neighbourhood::V6([a, b, c, d, e, f]),
        }
    }
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self::V4(v4.octets()),
            IpAddr::V6(v6) => {
                let [a, b, c, d, e, f, g, h, ..] = v6.octets();
                Self::V6([a, b, c, d, e, f, g, h])
            }
        }
    }
}

/// Finds the client's address.
///
/// `X-Forwarded-For` is read from right to left, and each entry is believed only while whoever
/// added it is a trusted proxy. So a client can write into the header what it likes: the walk ends
/// at the first address that is not trusted, which the nearest trusted proxy has seen itself.
pub fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpCidr]) -> IpAddr {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|net| net.contains(address));
    let mut client = peer.to_canonical();
    if !is_trusted(&client) {
        return client;
    }
    let values: Vec<_> = headers.get_all(FORWARDED_FOR).iter().collect();
    let hops = values
        .iter()
        .rev()
        .map(|value| value.to_str().unwrap_or_default())
        .flat_map(|value| value.rsplit(','))
        .take(MAX_HOPS);
    for hop in hops {
        let Some(address) = parse(hop.trim()) else {
            break;
        };
        client = address;
        if !is_trusted(&client) {
            break;
        }
    }
    client
}

/// Reads `1.2.3.4`, `1.2.3.4:5`, `::1`, `[::1]` or `[::1]:5`.
fn parse(text: &str) -> Option<IpAddr> {
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    bare.unwrap_or(text)
        .parse::<IpAddr>()
        .or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()))
        .ok()
        .map(|address| address.to_canonical())
}

/// Whether a trusted proxy says that the client speaks https to it.
pub fn forwarded_https(peer: IpAddr, headers: &HeaderMap, trusted: &[IpCidr]) -> bool {
    is_trusted(peer, trusted)
        && headers
            .get_all(FORWARDED_PROTO)
            .iter()
            .next_back()
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.rsplit(',').next())
            .is_some_and(|proto| proto.trim().eq_ignore_ascii_case("https"))
}

/// What a trusted proxy has taken off the beginning of paths: `/agents`, without a slash at its end; `usual` when it says nothing. Nothing
/// that could lead to another host is believed.
pub fn forwarded_prefix<'a>(
    peer: IpAddr,
    headers: &'a HeaderMap,
    trusted: &[IpCidr],
    usual: &'a str,
) -> Option<&'a str> {
    if !is_trusted(peer, trusted) {
        return None;
    }
    let Some(value) = headers.get(FORWARDED_PREFIX) else {
        return Some(usual);
    };
    let prefix = value.to_str().ok()?.trim_end_matches('/');
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let valid = prefix.len() <= LONGEST_PREFIX
        && prefix.starts_with('/')
        && !prefix.contains("//")
        && prefix.bytes().all(plain);
    valid.then_some(prefix)
}

/// Reports that a peer is one of these proxies.
pub(super) fn is_trusted(peer: IpAddr, trusted: &[IpCidr]) -> bool {
    let peer = peer.to_canonical();
    trusted.iter().any(|net| net.contains(&peer))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn headers(forwarded: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED_FOR, value.parse().unwrap());
        }
        headers
    }

    #[rstest]
    #[case::no_header("10.0.0.1", &[], "10.0.0.1")]
    #[case::untrusted_peer("203.0.113.9", &["1.1.1.1"], "203.0.113.9")]
    #[case::one_proxy("10.0.0.1", &["198.51.100.7"], "198.51.100.7")]
    #[case::forged_left_part("10.0.0.1", &["1.1.1.1, 198.51.100.7"], "198.51.100.7")]
    #[case::two_proxies("10.0.0.1", &["1.1.1.1, 198.51.100.7, 10.0.0.2"], "198.51.100.7")]
    #[case::two_headers("10.0.0.1", &["1.1.1.1", "198.51.100.7"], "198.51.100.7")]
    #[case::all_trusted("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3")]
    #[case::junk("10.0.0.1", &["198.51.100.7, unknown"], "10.0.0.1")]
    #[case::with_port("10.0.0.1", &["198.51.100.7:4711"], "198.51.100.7")]
    #[case::six("10.0.0.1", &["[2001:db8::1]:4711"], "2001:db8::1")]
    #[case::six_bare("10.0.0.1", &["2001:db8::1"], "2001:db8::1")]
    #[case::mapped_peer("::ffff:10.0.0.1", &["198.51.100.7"], "198.51.100.7")]
    #[case::mapped_untrusted("::ffff:203.0.113.9", &["1.1.1.1"], "203.0.113.9")]
    fn l19_only_trusted_proxies_are_believed(
        #[case] peer: &str,
        #[case] forwarded: &[&str],
        #[case] expected: &str,
    ) {
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let client = client_address(peer.parse().unwrap(), &headers(forwarded), &trusted);
        assert_eq!(client, expected.parse::<IpAddr>().unwrap());
    }

    #[test]
    fn long_headers_cost_bounded_work() {
        let long = vec!["10.0.0.2"; 1000].join(",");
        let with_client = format!("198.51.100.7,{long}");
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let peer = "10.0.0.1".parse().unwrap();
        let client = client_address(peer, &headers(&[&with_client]), &trusted);
        assert_eq!(client, "10.0.0.2".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn https_is_believed_from_trusted_proxies_only() {
        let mut headers = HeaderMap::new();
        headers.append(FORWARDED_PROTO, "http, https".parse().unwrap());
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        assert!(forwarded_https(
            "10.0.0.1".parse().unwrap(),
            &headers,
            &trusted
        ));
        assert!(!forwarded_https(
            "203.0.113.9".parse().unwrap(),
            &headers,
            &trusted
        ));
        assert!(!forwarded_https(
            "10.0.0.1".parse().unwrap(),
            &HeaderMap::new(),
            &trusted
        ));
    }

    #[rstest]
    #[case("10.0.0.1", "/agents", Some("/agents"))]
    #[case("10.0.0.1", "/a/b-c.d_e~/", Some("/a/b-c.d_e~"))]
    #[case("203.0.113.9", "/agents", None)]
    #[case("10.0.0.1", "//evil.example", None)]
    #[case("10.0.0.1", "https://evil.example", None)]
    #[case("10.0.0.1", "/a?b", None)]
    #[case("10.0.0.1", "/\\evil.example", None)]
    #[case("10.0.0.1", "/", None)]
    #[case("10.0.0.1", "", None)]
    fn prefixes_are_paths_of_trusted_proxies(
        #[case] peer: &str,
        #[case] sent: &'static str,
        #[case] believed: Option<&str>,
    ) {
        let mut headers = HeaderMap::new();
        headers.insert(FORWARDED_PREFIX, sent.parse().unwrap());
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let found = forwarded_prefix(peer.parse().unwrap(), &headers, &trusted, "/usual");
        assert_eq!(found, believed);
    }

    #[rstest]
    #[case("10.0.0.1", Some("/usual"))]
    #[case("203.0.113.9", None)]
    fn a_proxy_that_says_nothing_takes_off_what_is_usual(
        #[case] peer: &str,
        #[case] believed: Option<&str>,
    ) {
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let headers = HeaderMap::new();
        let found = forwarded_prefix(peer.parse().unwrap(), &headers, &trusted, "/usual");
        assert_eq!(found, believed);
    }
}
