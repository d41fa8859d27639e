//! Keys of `ldap`.

use std::time::Duration;

use secrecy::SecretString;

use super::settings;
use crate::config::setting::{Effect, Setting};
use crate::config::{host, rules};
use crate::kind::Kind;

/// When and how users are synchronised.
const SYNC: &[Effect] = &[Effect::Object(Kind::Directory)];

settings! {
    /// DN below which users are searched.
    BASE_DN: Setting<Option<String>> = "ldap.base_dn", "Search base", Setting::optional(rules::line).effects(SYNC);

    /// DN that the service binds to the directory with.
    BIND_DN: Setting<Option<String>> = "ldap.bind_dn", "Bind DN", Setting::optional(rules::line).effects(SYNC);

    /// Password of the bind DN.
    BIND_PASSWORD: Setting<Option<SecretString>> = "ldap.bind_password", "Bind password", Setting::secret().belongs_to(&HOST.row, host::of_ldap).effects(SYNC);

    /// CA certificates (PEM) trusted for the directory, in addition to the system's.
    CA_CERTIFICATE: Setting<Option<String>> = "ldap.ca_certificate", "Directory CA certificate", Setting::optional(rules::certificate).effects(SYNC);

    /// Finds one user; {{username}} is replaced by the escaped name.
    FILTER: Setting<String> = "ldap.filter", "User filter", Setting::text(rules::user_filter, "(uid={{username}})").effects(SYNC);

    /// DN below which groups are searched; with member_of, what users name elsewhere is no group.
    GROUP_BASE_DN: Setting<Option<String>> = "ldap.group_base_dn", "Group search base", Setting::optional(rules::line).effects(SYNC);

    /// Finds one group; {{groupname}} is replaced by the escaped name.
    GROUP_FILTER: Setting<String> = "ldap.group_filter", "Group filter", Setting::text(rules::group_filter, "(cn={{groupname}})").effects(SYNC);

    /// Attribute of a group that lists its members.
    GROUP_MEMBER_ATTRIBUTE: Setting<String> = "ldap.group_member_attribute", "Group member attribute", Setting::text(rules::attribute, "member").effects(SYNC);

    /// Whether users name their groups (memberOf) or groups list their members.
    GROUP_SEARCH_MODE: Setting<String> = "ldap.group_search_mode", "Group search mode", Setting::word(&["member_of", "group_search"], "member_of").effects(SYNC);

    /// Directory server as host:port, ldap://host or ldaps://host.
    HOST: Setting<Option<String>> = "ldap.host", "Directory server", Setting::optional(rules::ldap_host).effects(SYNC);

    /// Attribute that identifies an entry for good, so that a renamed user keeps the account; auto = entryUUID, objectGUID or ipaUniqueID; none = entries are recognised by name.
    ID_ATTRIBUTE: Setting<String> = "ldap.id_attribute", "Identity attribute", Setting::text(rules::attribute, "auto").effects(SYNC);

    /// Longest message of the directory that is accepted, in MiB.
    MAX_MESSAGE_MB: Setting<u64> = "ldap.max_message_mb", "Longest message (MiB)", Setting::integer(1, 1024, 16).effects(SYNC);

    /// A synchronisation that would remove more than this share of the users (and more than 5) waits for confirmation.
    MAX_REMOVAL_PERCENT: Setting<u64> = "ldap.max_removal_percent", "Largest removal (%)", Setting::integer(0, 100, 20).effects(SYNC);

    /// Number of entries requested at a time.
    PAGE_SIZE: Setting<u64> = "ldap.page_size", "Page size", Setting::integer(1, 100_000, 500).effects(SYNC);

    /// How long a user must be missing from the directory before removal; 0 = remove at once.
    REMOVAL_GRACE: Setting<Option<Duration>> = "ldap.removal_grace", "Removal grace period", Setting::duration(true, "24h").effects(SYNC);

    /// Upgrade plain connections to TLS.
    START_TLS: Setting<bool> = "ldap.start_tls", "StartTLS", Setting::flag(false).effects(SYNC);

    /// How often users and groups are synchronised; 0 = only on request.
    SYNC_INTERVAL: Setting<Option<Duration>> = "ldap.sync_interval", "Synchronisation interval", Setting::duration(true, "0").effects(SYNC);

    /// Maximum duration of one directory operation.
    TIMEOUT: Setting<Option<Duration>> = "ldap.timeout", "Directory timeout", Setting::duration(false, "10s").effects(SYNC);

    /// Attribute that holds the user name.
    USERNAME_ATTRIBUTE: Setting<String> = "ldap.username_attribute", "User name attribute", Setting::text(rules::attribute, "uid").effects(SYNC);

    /// Let only users on the whitelist sign in.
    WHITELIST_ENABLED: Setting<bool> = "ldap.whitelist_enabled", "Whitelist for directory users", Setting::flag(false);
}
