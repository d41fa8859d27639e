//! Distinguished names (RFC 4514) and names of users, compared as directories compare them: the search of a sign-in is matched by
//! the server, a whole list by these functions, and both must find the same.

use unicode_normalization::UnicodeNormalization;

/// Attribute types that have several names, or stand in a DN by their number (RFC 4514 §3, RFC 4519, RFC 1274, RFC 2985).
const TYPES: [(&str, &[&str]); 14] = [
    ("cn", &["2.5.4.3", "commonname"]),
    ("sn", &["2.5.4.4", "surname"]),
    ("serialnumber", &["2.5.4.5"]),
    ("c", &["2.5.4.6", "countryname"]),
    ("l", &["2.5.4.7", "localityname"]),
    ("st", &["2.5.4.8", "stateorprovincename"]),
    ("street", &["2.5.4.9", "streetaddress"]),
    ("o", &["2.5.4.10", "organizationname"]),
    ("ou", &["2.5.4.11", "organizationalunitname"]),
    ("givenname", &["2.5.4.42", "gn"]),
    ("uid", &["0.9.2342.19200300.100.1.1", "userid"]),
    ("mail", &["0.9.2342.19200300.100.1.3", "rfc822mailbox"]),
    ("dc", &["0.9.2342.19200300.100.1.25", "domaincomponent"]),
    (
        "emailaddress",
        &["1.2.840.113549.1.9.1", "email", "pkcs9email"],
    ),
];

/// An attribute and its value, as a DN names them.
struct Ava {
    /// The type, under the one name that is compared.
    kind: String,
    /// The value, without escapes.
    value: String,
}

/// The form under which two texts are the same (caseIgnoreMatch, RFC 4517 §4.2.11): case, and spaces around and between words,
/// do not count.
pub(super) fn text_key(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .join(" ")
        .nfkc()
        .flat_map(char::to_lowercase)
        .collect()
}

/// The form under which two names are of one entry (distinguishedNameMatch, RFC 4517 §4.2.15): servers write case, escapes,
/// spaces, the order of the attributes of one RDN, and their names, as they like.
pub fn key(dn: &str) -> String {
    keys(dn).join("\0")
}

/// The form under which a member of a group is the same, whether it is named by DN, with or without a unique identifier
/// (RFC 4517 §3.3.21), or by user name.
pub(super) fn member_key(member: &str) -> String {
    let identifier = member.strip_suffix("'B").and_then(|it| it.rfind("#'"));
    let named = identifier.map_or(member, |at| &member[..at]);
    match named.contains('=') {
        true => key(named),
        false => text_key(named),
    }
}

/// Returns true if an entry lies below another, or is it.
pub(super) fn is_below(dn: &str, base: &str) -> bool {
    let (dn, base) = (keys(dn), keys(base));
    dn.ends_with(&base)
}

/// Returns the name of a group among those beside it: its common name, or else the first attribute of its RDN.
pub(super) fn group_name(dn: &str) -> Option<String> {
    let mut first = rdn(split(dn, &[',', ';']).first()?);
    first.sort_by(|one, other| {
        let order = |it: &Ava| (it.kind != "cn", it.kind.clone());
        order(one).cmp(&order(other))
    });
    let value = first.into_iter().next()?.value;
    (!value.is_empty()).then_some(value)
}

/// The value that the RDN of an entry has for an attribute.
pub(super) fn rdn_value(dn: &str, attribute: &str) -> Option<String> {
    let kind = kind(attribute);
    let first = rdn(split(dn, &[',', ';']).first()?).into_iter();
    first.filter(|it| it.kind == kind).map(|it| it.value).next()
}

/// Each RDN, from the entry's own on, in the form that is compared.
fn keys(dn: &str) -> Vec<String> {
    let parts = split(dn, &[',', ';']).into_iter();
    let keys = parts.map(|part| {
        let mut avas: Vec<String> = rdn(part)
            .iter()
            .map(|it| format!("{}={}", it.kind, text_key(&it.value)))
            .collect();
        avas.sort();
        avas.join("\u{1}")
    });
    keys.collect()
}

fn rdn(text: &str) -> Vec<Ava> {
    let avas = split(text, &['+']).into_iter().filter_map(|ava| {
        let (attribute, value) = ava.split_once('=')?;
        Some(Ava {
            kind: kind(attribute),
            value: read_value(value),
        })
    });
    avas.collect()
}

/// The one name of an attribute type.
fn kind(attribute: &str) -> String {
    let name = attribute.trim().to_lowercase();
    let name = name.strip_prefix("oid.").unwrap_or(&name);
    let known = TYPES.iter().find(|(_, others)| others.contains(&name));
    known.map_or(name, |(one, _)| one).to_owned()
}

/// The parts between separators that are neither escaped nor in quotes (RFC 2253 §4).
fn split<'a>(text: &'a str, separators: &[char]) -> Vec<&'a str> {
    let (mut parts, mut begin, mut escaped, mut quoted) = (Vec::new(), 0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            // A quote begins a value, and nothing else.
            '"' if quoted || text[begin..at].trim_end().ends_with('=') => quoted = !quoted,
            c if !quoted && separators.contains(&c) => {
                parts.push(&text[begin..at]);
                begin = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// A value without escapes, quotes and insignificant spaces, or from its encoding in hexadecimal digits.
fn read_value(text: &str) -> String {
    let trimmed = text.trim();
    if let Some(value) = trimmed.strip_prefix('#').and_then(encoded_text) {
        return value;
    }
    let quoted = trimmed
        .strip_prefix('"')
        .and_then(|inner| inner.strip_suffix('"'));
    // A space at the end may be an escaped one.
    unescape(quoted.unwrap_or(text)).trim().to_owned()
}

/// The text in a BER element (RFC 4514 §2.4).
fn encoded_text(digits: &str) -> Option<String> {
    let bytes = hex::decode(digits).ok()?;
    let [_, length, content @ ..] = bytes.as_slice() else {
        return None;
    };
    let whole = usize::from(*length) == content.len();
    let text = std::str::from_utf8(content).ok()?;
    whole.then(|| text.to_owned())
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
        for (one, other) in [
            (
                "cn=Ops,ou=groups,dc=example,dc=org",
                "CN=ops, OU=Groups ,DC=Example,dc=org",
            ),
            ("cn=R\\, D,dc=x", "cn=R\\2C D,dc=x"),
            ("cn=R\\, D,dc=x", "cn=\"R, D\",dc=x"),
            ("cn=R\\, D,dc=x", "commonName = \"R\\, D\" ; DC = X"),
            ("cn=Amy Wong+sn=Kroker,dc=x", "SN=kroker+CN=Amy Wong,dc=x"),
            (
                "cn=Amy Wong+sn=Kroker,dc=x",
                "sn=Kroker + cn=Amy  Wong,dc=x",
            ),
            ("cn=Ann,dc=x", "2.5.4.3=ann,0.9.2342.19200300.100.1.25=x"),
            ("cn=Ann,dc=x", "OID.2.5.4.3=ann,domainComponent=x"),
            ("cn=Ann,dc=x", "cn=#0403416e6e,dc=x"),
            ("uid=ann,st=y,dc=x", "userid=ANN,stateOrProvinceName=Y,dc=X"),
            ("cn=M\\C3\\BCnchen,dc=x", "cn=MÜNCHEN,dc=x"),
            ("cn=Mu\u{308}nchen,dc=x", "cn=münchen,dc=x"),
            ("cn=end\\ ,dc=x", "cn=end,dc=x"),
        ] {
            assert_eq!(key(one), key(other), "{one} | {other}");
        }
        for (one, other) in [
            ("cn=Ops,ou=groups,dc=x", "cn=Ops\\,ou=groups,dc=x"),
            ("cn=a+sn=b,dc=x", "cn=a,sn=b,dc=x"),
            ("cn=a,dc=x", "ou=a,dc=x"),
            ("cn=a,dc=x", "cn=a"),
            ("cn=\\\"a,dc=x", "cn=a,dc=x"),
        ] {
            assert_ne!(key(one), key(other), "{one} | {other}");
        }
        let groups = "cn=Groups, dc=Example,dc=org";
        assert!(is_below("cn=ops,cn=groups,dc=example,dc=org", groups));
        assert!(!is_below("cn=ops,cn=roles,dc=example,dc=org", groups));
        assert!(!is_below("cn=agroups,dc=example,dc=org", groups));
    }

    #[test]
    fn members_have_one_key_however_they_are_written() {
        for (one, other) in [
            ("ann", "Ann"),
            ("ann", "ann "),
            ("ann", " ANN"),
            ("ann lee", "Ann  Lee"),
            ("uid=ann,dc=x", "UID=Ann, dc=x#'0101'B"),
        ] {
            assert_eq!(member_key(one), member_key(other), "{one} | {other}");
        }
        assert_ne!(member_key("ann"), member_key("uid=ann"));
    }

    #[test]
    fn names_of_groups_are_read_without_escapes() {
        for (dn, value) in [
            ("cn=ops,dc=x", Some("ops")),
            ("CN=R\\26D\\, Research,OU=x", Some("R&D, Research")),
            ("cn=M\\C3\\BCnchen,dc=x", Some("München")),
            ("cn=a\\+b+uid=7,dc=x", Some("a+b")),
            ("uid=7+cn=a\\+b,dc=x", Some("a+b")),
            ("cn=\"R, D\",dc=x", Some("R, D")),
            ("cn=back\\\\,dc=x", Some("back\\")),
            ("cn=end\\", Some("end\\")),
            ("cn=,dc=x", None),
            ("nothing", None),
            ("", None),
        ] {
            assert_eq!(group_name(dn).as_deref(), value, "{dn}");
        }
        assert_eq!(
            rdn_value("cn=a+UID=Ann,dc=x", "uid").as_deref(),
            Some("Ann")
        );
        assert_eq!(rdn_value("cn=a,uid=ann", "uid"), None);
    }
}
