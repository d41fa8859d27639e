//! Distinguished names (RFC 4514), as far as they have to be compared and read.

/// What tells whether two names are of one entry: servers write case, escapes, and spaces around separators as they like.
pub(super) fn key(dn: &str) -> String {
    let parts = split(dn, ',');
    let parts = parts.iter().map(|part| {
        let (attribute, value) = part.split_once('=').unwrap_or((part, ""));
        format!("{}={}", attribute.trim(), unescape(value.trim())).to_lowercase()
    });
    parts.collect::<Vec<_>>().join("\0")
}

/// The value of the first attribute, without its escapes: what the entry is called among those beside it.
pub(super) fn first_value(dn: &str) -> Option<String> {
    let first = split(dn, ',').into_iter().next()?;
    let first = split(first, '+').into_iter().next()?;
    let (_, value) = first.split_once('=')?;
    let value = unescape(value.trim());
    (!value.is_empty()).then_some(value)
}

/// The parts between separators that are not escaped.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut begin, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        if c == separator && !escaped {
            parts.push(&text[begin..at]);
            begin = at + separator.len_utf8();
        }
        escaped = c == '\\' && !escaped;
    }
    parts.push(&text[begin..]);
    parts
}

/// `\2C` and `\,` are both a comma; bytes that are no text are replaced.
fn unescape(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let hex = tail.get(..2).and_then(|pair| {
            let mut byte = [0];
            hex::decode_to_slice(pair, &mut byte).ok().map(|()| byte[0])
        });
        match (hex, tail.split_first()) {
            (Some(byte), _) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            (None, Some((next, tail))) => {
                bytes.push(*next);
                rest = tail;
            }
            (None, None) => bytes.push(b'\\'),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_entry_have_one_key() {
        let plain = key("cn=Ops,ou=groups,dc=example,dc=org");
        assert_eq!(key("CN=ops, OU=Groups ,DC=Example,dc=org"), plain);
        assert_eq!(key("cn=R\\, D,dc=x"), key("cn=R\\2C D,dc=x"));
        assert_ne!(key("cn=Ops\\,ou=groups,dc=example,dc=org"), plain);
    }

    #[test]
    fn the_first_value_is_read_without_its_escapes() {
        for (dn, value) in [
            ("cn=ops,dc=x", Some("ops")),
            ("CN=R\\26D\\, Research,OU=x", Some("R&D, Research")),
            ("cn=M\\C3\\BCnchen,dc=x", Some("München")),
            ("cn=a\\+b+uid=7,dc=x", Some("a+b")),
            ("cn=back\\\\,dc=x", Some("back\\")),
            ("cn=end\\", Some("end\\")),
            ("cn=,dc=x", None),
            ("nothing", None),
            ("", None),
        ] {
            assert_eq!(first_value(dn).as_deref(), value, "{dn}");
        }
    }
}
