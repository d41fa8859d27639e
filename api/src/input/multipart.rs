//! `multipart/form-data`: text parts, as some clients send plain fields, and the file of an upload.

use std::convert::Infallible;

use bytes::Bytes;

use super::fields::Fields;
use crate::error::{ApiError, Result};

const MALFORMED: ApiError = ApiError::InvalidBody("the body is not valid multipart/form-data");

/// Reads the parts of a body that has been received in full: text, but for the part `file`, which is kept as it is. Browsers
/// write each line feed of a text as CRLF: a text with no other line ends gets line feeds back.
///
/// # Errors
/// 400 when the body is malformed or cut, a part has no name or is not UTF-8, or a name repeats.
pub(super) async fn parse(body: Bytes, boundary: &str, file: Option<&str>) -> Result<Fields> {
    let stream = futures::stream::once(async { Ok::<_, Infallible>(body) });
    let mut parts = multer::Multipart::new(stream, boundary);
    let mut fields = Fields::default();
    while let Some(part) = parts.next_field().await.map_err(|_| MALFORMED)? {
        let name = part.name().ok_or(MALFORMED)?.to_owned();
        let bytes = part.bytes().await.map_err(|_| MALFORMED)?;
        if file == Some(name.as_str()) {
            fields.insert_file(&name, bytes)?;
            continue;
        }
        let text = String::from_utf8(bytes.into())
            .map_err(|_| ApiError::InvalidBody("a part of the body is not valid UTF-8"))?;
        fields.had_crlf |= has_crlf_only(&text);
        fields.insert(name, unify_lines(text))?;
    }
    Ok(fields)
}

/// Returns true if a text has line ends, and all of them are CRLF.
pub(crate) fn has_crlf_only(text: &str) -> bool {
    let pairs = text.matches("\r\n").count();
    let is_pair = |c: char| text.matches(c).count() == pairs;
    pairs > 0 && is_pair('\r') && is_pair('\n')
}

/// Gives a text that a browser wrote with CRLF its line feeds back.
pub(super) fn unify_lines(text: String) -> String {
    match has_crlf_only(&text) {
        true => text.replace("\r\n", "\n"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "--X\r\nContent-Disposition: form-data; name=\"domain\"\r\n\r\nexample.org\r\n\
        --X\r\nContent-Disposition: form-data; name=\"cookies\"\r\nContent-Type: text/plain\r\n\r\na=1; b=2\r\n--X--\r\n";

    #[tokio::test]
    async fn text_parts_are_fields() {
        let mut fields = parse(Bytes::from_static(GOOD.as_bytes()), "X", None)
            .await
            .unwrap();
        assert_eq!(fields.take_text("domain").unwrap().unwrap(), "example.org");
        assert_eq!(fields.take_text("cookies").unwrap().unwrap(), "a=1; b=2");
    }

    #[tokio::test]
    async fn line_feeds_of_a_script_come_back_from_crlf() {
        for (sent, read) in [
            ("#!/bin/sh\r\necho 1\r\n", "#!/bin/sh\necho 1\n"),
            ("one\r\n\r\nthree", "one\n\nthree"),
            // No browser writes these.
            ("one\r\ntwo\n", "one\r\ntwo\n"),
            ("one\rtwo\r\n", "one\rtwo\r\n"),
            ("one\ntwo", "one\ntwo"),
        ] {
            let body = GOOD.replace("a=1; b=2", sent);
            let mut fields = parse(Bytes::from(body), "X", None).await.unwrap();
            let text = fields.take_text("cookies").unwrap();
            assert_eq!(text.as_deref(), Some(read), "{sent:?}");
        }
    }

    #[tokio::test]
    async fn l64_hostile_bodies_are_bad_requests() {
        let twice = GOOD.replace("domain", "cookies");
        let nameless = GOOD.replace("; name=\"domain\"", "");
        let cut = &GOOD[..GOOD.len() - 12];
        let mut binary = GOOD.as_bytes().to_vec();
        binary[60] = 0xff;
        let bodies: [&[u8]; 6] = [
            b"",
            b"garbage",
            twice.as_bytes(),
            nameless.as_bytes(),
            cut.as_bytes(),
            &binary,
        ];
        for body in bodies {
            let error = parse(Bytes::copy_from_slice(body), "X", None)
                .await
                .unwrap_err();
            assert_eq!(error.status(), http::StatusCode::BAD_REQUEST);
        }
    }

    #[tokio::test]
    async fn the_file_of_an_upload_is_kept_as_it_is() {
        let mut body = GOOD.replace("cookies", "file").into_bytes();
        let at = body.windows(3).position(|part| part == b"a=1").unwrap();
        body[at] = 0xff;
        let mut fields = parse(Bytes::from(body.clone()), "X", Some("file"))
            .await
            .unwrap();
        assert_eq!(fields.take_file().unwrap(), b"\xff=1; b=2".as_slice());
        assert_eq!(fields.take_text("domain").unwrap().unwrap(), "example.org");
        assert!(fields.take_file().is_none());
        assert!(parse(Bytes::from(body), "X", None).await.is_err());
        let twice = GOOD.replace("domain", "file").replace("cookies", "file");
        let error = parse(Bytes::from(twice), "X", Some("file")).await;
        assert_eq!(error.unwrap_err().status(), http::StatusCode::BAD_REQUEST);
    }
}
