//! The settings of the directory, as its driver wants them.

use std::num::NonZeroU32;
use std::time::Duration;

use schema::config::{Config, keys::ldap};
use secrecy::SecretString;

use crate::drivers::ldap::{DirectorySettings, GroupSearch, ID_ATTRIBUTES_OF_SERVERS};

/// A setting without which no directory can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not set")]
pub struct Missing(pub &'static str);

/// How the directory of this configuration is asked.
///
/// # Errors
/// When the directory's address, or where users are, is not set.
pub fn of(config: &Config) -> Result<DirectorySettings, Missing> {
    let url = config.ldap_url().ok_or(Missing(ldap::HOST.row.key))?;
    let base_dn = config
        .get(&ldap::BASE_DN)
        .ok_or(Missing(ldap::BASE_DN.row.key))?;
    let groups = match config.get(&ldap::GROUP_SEARCH_MODE).as_str() {
        "group_search" => GroupSearch::Groups {
            base_dn: config
                .get(&ldap::GROUP_BASE_DN)
                .unwrap_or_else(|| base_dn.clone()),
            filter: config.get(&ldap::GROUP_FILTER),
            member_attribute: config.get(&ldap::GROUP_MEMBER_ATTRIBUTE),
        },
        _ => GroupSearch::MemberOf {
            base_dn: config.get(&ldap::GROUP_BASE_DN),
        },
    };
    let page_size = u32::try_from(config.get(&ldap::PAGE_SIZE)).unwrap_or(u32::MAX);
    Ok(DirectorySettings {
        url,
        start_tls: config.get(&ldap::START_TLS),
        ca_certificate: config.get(&ldap::CA_CERTIFICATE),
        bind_dn: config.get(&ldap::BIND_DN).unwrap_or_default(),
        bind_password: config
            .get(&ldap::BIND_PASSWORD)
            .unwrap_or_else(|| SecretString::from("")),
        base_dn,
        filter: config.get(&ldap::FILTER),
        username_attribute: config.get(&ldap::USERNAME_ATTRIBUTE),
        id_attributes: match config.get(&ldap::ID_ATTRIBUTE) {
            auto if auto.eq_ignore_ascii_case("auto") => {
                ID_ATTRIBUTES_OF_SERVERS.map(str::to_owned).to_vec()
            }
            none if none.eq_ignore_ascii_case("none") => Vec::new(),
            attribute => vec![attribute],
        },
        groups,
        timeout: config
            .get(&ldap::TIMEOUT)
            .unwrap_or(Duration::from_secs(10)),
        page_size: NonZeroU32::new(page_size).unwrap_or(NonZeroU32::MIN),
        max_message: usize::try_from(config.get(&ldap::MAX_MESSAGE_MB) * 1024 * 1024)
            .unwrap_or(usize::MAX),
    })
}
