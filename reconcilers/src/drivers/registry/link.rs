//! The `Link` header (RFC 8288), as far as pages need it.

use reqwest::header::{HeaderMap, LINK};

/// The target of the link to the next page, as it is written.
pub(super) fn next_page(headers: &HeaderMap) -> Option<&str> {
    let headers = headers.get_all(LINK).into_iter();
    headers
        .filter_map(|header| header.to_str().ok())
        .find_map(next_of)
}

fn next_of(mut links: &str) -> Option<&str> {
    loop {
        let (target, rest) = links.split_once('<')?.1.split_once('>')?;
        let (parameters, rest) = cut(rest, ',');
        if is_next(parameters) {
            return Some(target);
        }
        links = rest;
    }
}

fn is_next(mut parameters: &str) -> bool {
    while !parameters.is_empty() {
        let (parameter, rest) = cut(parameters, ';');
        let (name, value) = parameter.split_once('=').unwrap_or_default();
        let mut relations = value.trim().trim_matches('"').split_ascii_whitespace();
        if name.trim().eq_ignore_ascii_case("rel") {
            // A second `rel` does not count.
            return relations.any(|relation| relation.eq_ignore_ascii_case("next"));
        }
        parameters = rest;
    }
    false
}

/// Cuts at the first separator outside quotes.
fn cut(text: &str, separator: char) -> (&str, &str) {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if c == separator && !quoted => {
                return (&text[..at], &text[at + c.len_utf8()..]);
            }
            _ => {}
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::as_registries_write_it(
        "</v2/a/tags/list?last=b&n=2>; rel=\"next\"",
        Some("/v2/a/tags/list?last=b&n=2")
    )]
    #[case::without_quotes("<https://r.example/v2>;rel=next", Some("https://r.example/v2"))]
    #[case::not_the_first(
        "<a>; rel=prev, <b>; title=\"x, <y>; rel=next\"; REL=\"last Next\"",
        Some("b")
    )]
    #[case::a_title_is_no_relation("<a>; title=\"; rel=next\"", None)]
    #[case::only_the_first_relation_counts("<a>; rel=prev; rel=next", None)]
    #[case::nothing("", None)]
    #[case::unfinished("<a; rel=next", None)]
    #[case::no_relation("<a>", None)]
    #[case::open_quote("<a>; rel=\"next", Some("a"))]
    fn the_next_page_is_found(#[case] header: &str, #[case] expected: Option<&str>) {
        let mut headers = HeaderMap::new();
        headers.insert(LINK, HeaderValue::from_str(header).unwrap());
        assert_eq!(next_page(&headers), expected);
    }

    #[test]
    fn it_may_be_in_another_header() {
        let mut headers = HeaderMap::new();
        headers.append(LINK, HeaderValue::from_static("<a>; rel=first"));
        headers.append(LINK, HeaderValue::from_static("<b>; rel=next"));
        assert_eq!(next_page(&headers), Some("b"));
    }

    proptest::proptest! {
        #[test]
        fn nothing_in_a_header_panics(text in "[<>;,=\"\\\\a-z ü]{0,60}") {
            let _ = next_of(&text);
        }
    }
}
