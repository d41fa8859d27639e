//! What identifies an entry whatever its name and its place are.

use ldap3::{SearchEntry, ldap_escape};
use sha2::{Digest, Sha256};
use url::Url;
use uuid::Uuid;

use super::{DirectorySettings, dn};

/// Attributes of which each server gives an entry one value that no other entry ever has: FreeIPA, OpenLDAP and others by RFC 4530,
/// Active Directory. FreeIPA's comes first: its older entries have no `entryUUID`.
pub const OF_SERVERS: [&str; 3] = ["ipaUniqueID", "entryUUID", "objectGUID"];
/// A value of `ipaUniqueID` that FreeIPA replaces once it has created the entry.
const NOT_YET: &str = "autogenerate";
/// Attributes with 16 bytes of a GUID, the first three parts of which are little-endian ([MS-DTYP] §2.3.4.2).
const GUID: &str = "objectGUID";
/// Longest value, in bytes.
const LONGEST: usize = 256;

/// What identifies an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    /// `<attribute>:<value>`, or `<attribute>@<directory>:<value>` if other directories may use the value for another person.
    pub text: String,
    /// Finds all entries with the value, where no server sees to it that there is one only.
    pub filter: Option<String>,
}

impl Identity {
    fn new(attribute: &str, value: &[u8], directory: &str) -> Self {
        let is_of_servers = OF_SERVERS
            .iter()
            .any(|it| it.eq_ignore_ascii_case(attribute));
        let mut kind = attribute.to_lowercase();
        if !is_of_servers {
            kind = format!("{kind}@{directory}");
        }
        Self {
            text: format!("{kind}:{}", shown(attribute, value)),
            filter: (!is_of_servers).then(|| format!("({attribute}={})", escaped(value))),
        }
    }
}

/// A value as text, always the same one for the same bytes.
fn shown(attribute: &str, value: &[u8]) -> String {
    if attribute.eq_ignore_ascii_case(GUID)
        && let Ok(bytes) = <[u8; 16]>::try_from(value)
    {
        return Uuid::from_bytes_le(bytes).to_string();
    }
    match std::str::from_utf8(value) {
        Ok(text) if !text.chars().any(char::is_control) => {
            // A UUID is the same in upper case.
            let uuid = Uuid::parse_str(text).ok().filter(|_| text.len() == 36);
            uuid.map_or_else(|| text.to_owned(), |uuid| uuid.to_string())
        }
        _ => format!("0x{}", hex::encode(value)),
    }
}

fn escaped(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) => ldap_escape(text).into_owned(),
        Err(_) => value.iter().map(|byte| format!("\\{byte:02x}")).collect(),
    }
}

/// Why an entry cannot be identified, and all that it has for that.
pub(super) struct Odd {
    pub reason: String,
    pub identities: Vec<String>,
}

/// Names a directory by its host and base DN, in 8 digits.
fn name_directory(url: &Url, base_dn: &str) -> String {
    let host = url.host_str().unwrap_or_default().to_lowercase();
    let text = format!("{host}\n{}", dn::text_key(base_dn));
    hex::encode(&Sha256::digest(text)[..4])
}

/// Identifies an entry by the first attribute of the settings that it has; `None` if it has none of them.
pub(super) fn identity(
    entry: &SearchEntry,
    settings: &DirectorySettings,
) -> Result<Option<Identity>, Odd> {
    let directory = name_directory(&settings.url, &settings.base_dn);
    identify_by(entry, &settings.id_attributes, &directory)
}

fn identify_by(
    entry: &SearchEntry,
    attributes: &[String],
    directory: &str,
) -> Result<Option<Identity>, Odd> {
    for attribute in attributes {
        let mut values = bytes(entry, attribute);
        values.retain(|value| value != NOT_YET.as_bytes());
        match values.as_slice() {
            [] => {}
            [one] if one.len() > LONGEST => {
                let reason = format!(
                    "its {attribute} is longer than {LONGEST} bytes; choose another attribute in ldap.id_attribute"
                );
                let identities = Vec::new();
                return Err(Odd { reason, identities });
            }
            [one] => return Ok(Some(Identity::new(attribute, one, directory))),
            many => {
                let reason = format!(
                    "it has {} values of {attribute}, and an entry is identified by one; correct it in the directory, or choose another attribute in ldap.id_attribute",
                    many.len()
                );
                let short = many.iter().filter(|value| value.len() <= LONGEST);
                let identities = short.map(|value| Identity::new(attribute, value, directory).text);
                let identities = identities.collect();
                return Err(Odd { reason, identities });
            }
        }
    }
    Ok(None)
}

/// The values of an attribute, whose name servers write in any case; empty ones are none.
fn bytes(entry: &SearchEntry, attribute: &str) -> Vec<Vec<u8>> {
    let texts = entry.attrs.iter();
    let texts = texts.filter(|(key, _)| key.eq_ignore_ascii_case(attribute));
    let texts = texts.flat_map(|(_, it)| it);
    let texts = texts.map(|text| match attribute.eq_ignore_ascii_case(GUID) {
        true => text.clone().into_bytes(),
        false => text.trim().as_bytes().to_vec(),
    });
    let others = entry.bin_attrs.iter();
    let others = others.filter(|(key, _)| key.eq_ignore_ascii_case(attribute));
    let others = others.flat_map(|(_, it)| it).cloned();
    texts.chain(others).filter(|it| !it.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rstest::rstest;

    use super::*;

    const UUID: &str = "3f0a6d2b-e1c9-4875-9a0b-1c2d3e4f5a6b";
    /// The same as Active Directory stores it.
    const GUID_BYTES: [u8; 16] = [
        0x2b, 0x6d, 0x0a, 0x3f, 0xc9, 0xe1, 0x75, 0x48, 0x9a, 0x0b, 0x1c, 0x2d, 0x3e, 0x4f, 0x5a,
        0x6b,
    ];

    fn auto() -> Vec<String> {
        OF_SERVERS.map(str::to_owned).to_vec()
    }

    fn entry(values: &[(&str, &[&[u8]])]) -> SearchEntry {
        let mut entry = SearchEntry {
            dn: "uid=alice".to_owned(),
            attrs: HashMap::new(),
            bin_attrs: HashMap::new(),
        };
        for (name, values) in values {
            let texts = values.iter().map(|it| String::from_utf8(it.to_vec()));
            match texts.collect::<Result<Vec<_>, _>>() {
                Ok(texts) => drop(entry.attrs.insert((*name).to_owned(), texts)),
                Err(_) => {
                    let values = values.iter().map(|it| it.to_vec()).collect();
                    entry.bin_attrs.insert((*name).to_owned(), values);
                }
            }
        }
        entry
    }

    fn text(values: &[(&str, &[&[u8]])], attributes: &[String]) -> Option<String> {
        let found = identify_by(&entry(values), attributes, "d0");
        found.ok().flatten().map(|identity| identity.text)
    }

    #[rstest]
    #[case(&[("entryUUID", &[UUID.as_bytes()][..])], Some(format!("entryuuid:{UUID}")))]
    #[case(&[("ENTRYuuid", &[&b"3F0A6D2B-E1C9-4875-9A0B-1C2D3E4F5A6B"[..]][..])], Some(format!("entryuuid:{UUID}")))]
    #[case(&[("objectGUID", &[&GUID_BYTES[..]][..])], Some(format!("objectguid:{UUID}")))]
    #[case(&[("objectGUID", &[&b"0123456789abcdef"[..]][..])], Some("objectguid:33323130-3534-3736-3839-616263646566".to_owned()))]
    #[case(&[("ipaUniqueID", &[UUID.as_bytes()][..])], Some(format!("ipauniqueid:{UUID}")))]
    #[case(&[("ipaUniqueID", &[&b"autogenerate"[..]][..]), ("entryUUID", &[UUID.as_bytes()][..])], Some(format!("entryuuid:{UUID}")))]
    #[case(&[("ipaUniqueID", &[&b"x"[..]][..]), ("entryUUID", &[UUID.as_bytes()][..])], Some("ipauniqueid:x".to_owned()))]
    #[case(&[("entryUUID", &[&b" "[..]][..]), ("ipaUniqueID", &[&b"x"[..]][..])], Some("ipauniqueid:x".to_owned()))]
    #[case(&[("uid", &[&b"alice"[..]][..])], None)]
    fn auto_takes_what_the_entry_has(
        #[case] values: &[(&str, &[&[u8]])],
        #[case] expected: Option<String>,
    ) {
        assert_eq!(text(values, &auto()), expected);
    }

    #[test]
    fn chosen_attribute_is_taken_as_it_is() {
        let by = |attribute: &str| vec![attribute.to_owned()];
        let values: &[(&str, &[&[u8]])] = &[
            ("employeeNumber", &[b" E(12) "]),
            ("bytes", &[&[0xff, 0x28]]),
            ("entryUUID", &[UUID.as_bytes()]),
        ];
        assert_eq!(
            text(values, &by("employeenumber")),
            Some("employeenumber@d0:E(12)".to_owned())
        );
        assert_eq!(
            text(values, &by("bytes")),
            Some("bytes@d0:0xff28".to_owned())
        );
        assert_eq!(text(values, &by("missing")), None);
        assert_eq!(text(values, &[]), None);
        let filter = |attribute| {
            let found = identify_by(&entry(values), &by(attribute), "d0");
            let found = found.ok().flatten();
            found.and_then(|identity| identity.filter)
        };
        assert_eq!(
            filter("employeeNumber").as_deref(),
            Some(r"(employeeNumber=E\2812\29)")
        );
        assert_eq!(filter("bytes").as_deref(), Some(r"(bytes=\ff\28)"));
        assert_eq!(filter("entryUUID"), None);
    }

    #[test]
    fn directories_are_told_apart_by_host_and_base() {
        let directory = |url: &str, base_dn: &str| name_directory(&url.parse().unwrap(), base_dn);
        let first = directory("ldap://one", "dc=example,dc=org");
        assert_eq!(first.len(), 8);
        assert_eq!(directory("ldaps://ONE:6636", "DC=Example,DC=org"), first);
        assert_ne!(directory("ldap://two", "dc=example,dc=org"), first);
        assert_ne!(directory("ldap://one", "dc=example,dc=com"), first);
    }

    #[test]
    fn several_values_identify_no_entry() {
        let values: &[(&str, &[&[u8]])] = &[("employeeNumber", &[b"1", b"2"])];
        let odd = identify_by(&entry(values), &["employeeNumber".to_owned()], "d0");
        let odd = odd.err().unwrap();
        assert!(
            odd.reason.contains("2 values of employeeNumber"),
            "{}",
            odd.reason
        );
        assert_eq!(
            odd.identities,
            ["employeenumber@d0:1", "employeenumber@d0:2"]
        );
        let long = [b'x'; LONGEST + 1];
        let values: &[(&str, &[&[u8]])] = &[("employeeNumber", &[&long])];
        let odd = identify_by(&entry(values), &["employeeNumber".to_owned()], "d0");
        assert!(odd.err().unwrap().reason.contains("longer than 256 bytes"));
    }
}
