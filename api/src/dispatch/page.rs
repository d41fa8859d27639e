//! Failures as pages, for addresses that people open in a browser.

use http::header::{ACCEPT, RETRY_AFTER};
use http::{HeaderMap, HeaderValue};
use rand::distr::{Alphanumeric, SampleString};

use crate::error::ApiError;
use crate::reply::Reply;
use crate::server::RequestId;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font-family:system-ui,sans-serif;font-size:16px;line-height:1.5}\
main{max-width:34rem;margin:15vh auto 0;padding:0 1.5rem}\
h1{font-size:1.4rem;margin:0 0 .75rem}\
p{margin:0 0 1rem}\
small{opacity:.7;overflow-wrap:anywhere}";

/// Whether whoever asks shows the answer to a person.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(ACCEPT).iter();
    accepted.any(|value| {
        value
            .to_str()
            .is_ok_and(|value| value.contains("text/html"))
    })
}

/// A sign-in that failed, as a page.
///
/// `start`: where a sign-in begins; `styles`: style files of the console.
pub(super) fn of_failure(
    error: &ApiError,
    id: &RequestId,
    start: &str,
    styles: &[String],
) -> Reply {
    // Nothing else on the page is obeyed.
    let nonce = Alphanumeric.sample_string(&mut rand::rng(), 24);
    let policy = format!(
        "default-src 'none'; style-src 'self' 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let policy =
        HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"));
    let said = escaped(&sentence(&error.to_string()));
    let (code, id) = (escaped(error.code()), escaped(&id.to_string()));
    // Whoever is signed in at the provider would come back as the same at once.
    let again = match error {
        ApiError::InvalidRequest(_) => String::new(),
        _ => format!(
            "<p><a href=\"{}?again=true\">Try again</a></p>\n",
            escaped(start)
        ),
    };
    let link = |style: &String| format!("<link rel=\"stylesheet\" href=\"{}\">\n", escaped(style));
    let links: String = styles.iter().map(link).collect();
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>Sign-in failed</title>\n{links}<style nonce=\"{nonce}\">{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>Sign-in failed</h1>\n<p role=\"alert\">{said}</p>\n\
         {again}<p><small>Error {code}, request {id}</small></p>\n</main>\n</body>\n</html>\n"
    );
    let reply = Reply::page(html, policy).status(error.status());
    match error.retry_after() {
        Some(after) => reply.header(RETRY_AFTER, HeaderValue::from(after.as_secs().max(1))),
        None => reply,
    }
}

/// With a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), rest.as_str())
}

fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            character => html.push(character),
        }
    }
    html
}
