//! Encodings that a client accepts (RFC 9110, 12.5.3).

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

/// Reports that a client accepts an encoding: by its name, else by `*`.
pub(crate) fn accepts_encoding(headers: &HeaderMap, encoding: &str) -> bool {
    let taken = |wanted: &str| {
        let values = headers.get_all(ACCEPT_ENCODING).iter();
        let parts = values.filter_map(|value| value.to_str().ok());
        let mut parts = parts.flat_map(|value| value.split(','));
        parts.find_map(|part| {
            let (name, weight) = part.split_once(';').unwrap_or((part, "q=1"));
            let weight = weight.trim().strip_prefix("q=").unwrap_or("1");
            let is_taken = weight.parse().is_ok_and(|weight: f32| weight > 0.0);
            (name.trim().eq_ignore_ascii_case(wanted)).then_some(is_taken)
        })
    };
    taken(encoding).or_else(|| taken("*")).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("gzip", true)]
    #[case("br, GZIP ; q=0.1", true)]
    #[case("gzip;q=0", false)]
    #[case("gzip;q=0.000, br", false)]
    #[case("identity", false)]
    #[case("*", true)]
    #[case("gzip;q=0, *", false)]
    #[case("", false)]
    fn gzip_is_accepted_by_name_or_asterisk(#[case] value: &'static str, #[case] accepted: bool) {
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))]);
        assert_eq!(accepts_encoding(&headers, "gzip"), accepted);
    }
}
