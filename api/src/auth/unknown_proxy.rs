//! Proxies that `web.trusted_proxies` does not name: all their users count as one client.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cidr::IpCidr;
use http::HeaderMap;
use http::header::{FORWARDED, HeaderName};

use super::client_address::is_trusted;
use crate::settings::WebSettings;

const HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-real-ip"),
    FORWARDED,
];

/// Time for which a proxy is reported after its last request.
const SHOWN: Duration = Duration::from_secs(60 * 60);

/// Reports that a request came through a proxy whose word counts for nothing.
pub fn is_behind_unknown_proxy(peer: IpAddr, headers: &HeaderMap, trusted: &[IpCidr]) -> bool {
    HEADERS.iter().any(|name| headers.contains_key(name)) && !is_trusted(peer, trusted)
}

/// The unknown proxy that was seen last.
#[derive(Debug, Default)]
pub struct UnknownProxies(Mutex<Option<Seen>>);

#[derive(Debug, Clone, Copy)]
struct Seen {
    address: IpAddr,
    /// By the steady clock.
    at: Duration,
    warned_at: Duration,
}

impl UnknownProxies {
    /// Notes a request of such a proxy, and logs it once an hour.
    pub(crate) fn note(&self, address: IpAddr, now: Duration, settings: &WebSettings) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = |seen: Seen| now.saturating_sub(seen.warned_at) >= SHOWN;
        let warns = seen.is_none_or(is_due);
        let warned_at = match *seen {
            Some(seen) if !warns => seen.warned_at,
            _ => now,
        };
        *seen = Some(Seen {
            address,
            at: now,
            warned_at,
        });
        drop(seen);
        if warns {
            tracing::warn!("{}", describe_proxy(address, settings));
        }
    }

    /// Returns a sentence for each setting about proxies that does not fit what was seen.
    pub(crate) fn warnings(&self, now: Duration, settings: &WebSettings) -> Vec<String> {
        let seen = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = seen.filter(|seen| {
            now.saturating_sub(seen.at) < SHOWN
                && !is_trusted(seen.address, &settings.trusted_proxies)
        });
        let proxy = recent.map(|seen| describe_proxy(seen.address, settings));
        proxy.into_iter().chain(describe_width(settings)).collect()
    }
}

fn describe_proxy(address: IpAddr, settings: &WebSettings) -> String {
    let public = match settings.public_origin {
        Some(_) => "",
        None => ", and set web.public_url to the address in people's browsers",
    };
    format!(
        "requests of {address} carry headers of a proxy that web.trusted_proxies does not name, so all people behind it count as one \
         client; if it is your proxy, add {address} to web.trusted_proxies{public}"
    )
}

/// Returns a sentence when every client is trusted to say where it is.
pub fn describe_width(settings: &WebSettings) -> Option<String> {
    let all = settings
        .trusted_proxies
        .iter()
        .find(|net| net.network_length() == 0)?;
    Some(format!(
        "web.trusted_proxies has {all}: every client can choose the address by which it is limited and logged; name the addresses of your \
         proxies only"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_proxy_is_reported_for_an_hour() {
        let proxies = UnknownProxies::default();
        let mut settings = WebSettings::default();
        let address = "10.0.0.7".parse().unwrap();
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        assert!(proxies.warnings(minutes(1), &settings).is_empty());
        proxies.note(address, minutes(1), &settings);
        let warnings = proxies.warnings(minutes(60), &settings);
        assert!(
            warnings[0].contains("add 10.0.0.7 to web.trusted_proxies, and set web.public_url")
        );
        assert!(proxies.warnings(minutes(61), &settings).is_empty());
        settings.trusted_proxies = vec!["10.0.0.0/8".parse().unwrap()];
        assert!(proxies.warnings(minutes(2), &settings).is_empty());
        settings.trusted_proxies = vec!["0.0.0.0/0".parse().unwrap()];
        let warnings = proxies.warnings(minutes(2), &settings);
        assert!(warnings[0].starts_with("web.trusted_proxies has 0.0.0.0/0"));
    }
}
