//! Keys of `ldap`.

use super::settings;
use crate::config::setting::{NotYet, Setting};
use crate::config::{host, rules};

settings! {
    /// DN below which users are searched.
    BASE_DN: NotYet = "ldap.base_dn", "Search base", Setting::optional(rules::line).not_yet();

    /// DN that the service binds to the directory with.
    BIND_DN: NotYet = "ldap.bind_dn", "Bind DN", Setting::optional(rules::line).not_yet();

    /// Password of the bind DN.
    BIND_PASSWORD: NotYet = "ldap.bind_password", "Bind password", Setting::secret().belongs_to(&HOST.row, host::of_ldap).not_yet();

    /// CA certificates (PEM) trusted for the directory, in addition to the system's.
    CA_CERTIFICATE: NotYet = "ldap.ca_certificate", "Directory CA certificate", Setting::optional(rules::certificate).not_yet();

    /// Finds one user; {{username}} is replaced by the escaped name.
    FILTER: NotYet = "ldap.filter", "User filter", Setting::text(rules::user_filter, "(uid={{username}})").not_yet();

    /// DN below which groups are searched.
    GROUP_BASE_DN: NotYet = "ldap.group_base_dn", "Group search base", Setting::optional(rules::line).not_yet();

    /// Finds one group; {{groupname}} is replaced by the escaped name.
    GROUP_FILTER: NotYet = "ldap.group_filter", "Group filter", Setting::text(rules::group_filter, "(cn={{groupname}})").not_yet();

    /// Attribute of a group that lists its members.
    GROUP_MEMBER_ATTRIBUTE: NotYet = "ldap.group_member_attribute", "Group member attribute", Setting::text(rules::attribute, "member").not_yet();

    /// Whether users name their groups (memberOf) or groups list their members.
    GROUP_SEARCH_MODE: NotYet = "ldap.group_search_mode", "Group search mode", Setting::word(&["member_of", "group_search"], "member_of").not_yet();

    /// Directory server as host:port, ldap://host or ldaps://host.
    HOST: NotYet = "ldap.host", "Directory server", Setting::optional(rules::ldap_host).not_yet();

    /// A synchronisation that would remove more than this share of the users (and more than 5) waits for confirmation.
    MAX_REMOVAL_PERCENT: NotYet = "ldap.max_removal_percent", "Largest removal (%)", Setting::integer(0, 100, 20).not_yet();

    /// Number of entries requested at a time.
    PAGE_SIZE: NotYet = "ldap.page_size", "Page size", Setting::integer(1, 100_000, 500).not_yet();

    /// How long a user must be missing from the directory before removal; 0 = remove at once.
    REMOVAL_GRACE: NotYet = "ldap.removal_grace", "Removal grace period", Setting::duration(true, "24h").not_yet();

    /// Upgrade plain connections to TLS.
    START_TLS: NotYet = "ldap.start_tls", "StartTLS", Setting::flag(false).not_yet();

    /// How often users and groups are synchronised; 0 = only on request.
    SYNC_INTERVAL: NotYet = "ldap.sync_interval", "Synchronisation interval", Setting::duration(true, "0").not_yet();

    /// Maximum duration of one directory operation.
    TIMEOUT: NotYet = "ldap.timeout", "Directory timeout", Setting::duration(false, "10s").not_yet();

    /// Attribute that holds the user name.
    USERNAME_ATTRIBUTE: NotYet = "ldap.username_attribute", "User name attribute", Setting::text(rules::attribute, "uid").not_yet();

    /// Let only users on the whitelist sign in.
    WHITELIST_ENABLED: NotYet = "ldap.whitelist_enabled", "Whitelist for directory users", Setting::flag(false).not_yet();
}
