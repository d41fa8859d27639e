//! What a changed key makes look again. Every key of the registry has its row here.

use super::Changes;

/// What follows from a key's value, and is looked at again when it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Every container is made with it; one that runs is made anew.
    Containers,
    /// Every agent's files follow from it; an agent that runs with other files is restarted.
    Files,
    /// The agent network follows from it.
    Engine,
    /// Where and when newer adapter packages are asked for.
    Adapter,
}

/// What follows from a key; nothing when whoever uses the value reads it anew each time. `None` for a key that
/// is not in the registry.
pub fn effects(key: &str) -> Option<&'static [Effect]> {
    use Effect::{Adapter, Containers, Engine, Files};
    Some(match key {
        "adapter.refresh_interval" | "adapter.source_url" => &[Adapter],
        "agent" | "security" | "container.service_url" => &[Files],
        // The network's gateway is the service's address unless another one is configured.
        "container.network_subnet" => &[Engine, Files],
        "container.capabilities"
        | "container.cpu_limit"
        | "container.memory_limit_mb"
        | "container.pids_limit"
        | "container.timezone" => &[Containers],
        "archive.retention"
        | "audit.retention"
        | "container.autostart"
        | "events.retention"
        | "files.quota_mb"
        | "image.name"
        | "image.pull_policy"
        | "image.registry_password"
        | "image.registry_plain_http"
        | "image.registry_username"
        | "image.tag"
        | "ldap.base_dn"
        | "ldap.bind_dn"
        | "ldap.bind_password"
        | "ldap.ca_certificate"
        | "ldap.filter"
        | "ldap.group_base_dn"
        | "ldap.group_filter"
        | "ldap.group_member_attribute"
        | "ldap.group_search_mode"
        | "ldap.host"
        | "ldap.max_removal_percent"
        | "ldap.page_size"
        | "ldap.removal_grace"
        | "ldap.start_tls"
        | "ldap.sync_interval"
        | "ldap.timeout"
        | "ldap.username_attribute"
        | "ldap.whitelist_enabled"
        | "log.level"
        | "mcp.get_stream"
        | "mcp.policy"
        | "mcp.session_strict"
        | "oidc.ca_certificate"
        | "oidc.client_id"
        | "oidc.client_secret"
        | "oidc.groups_claim"
        | "oidc.provider_url"
        | "oidc.redirect_url"
        | "oidc.scopes"
        | "oidc.username_claim"
        | "oidc.whitelist_enabled"
        | "skills.allow_private_hosts"
        | "skills.defaults"
        | "web.allowed_origins"
        | "web.auth_mode"
        | "web.desktop_user_agents"
        | "web.public_url"
        | "web.trusted_proxies" => &[],
        _ => return None,
    })
}

/// Whether something follows from a key.
pub fn has_effect(key: &str, effect: Effect) -> bool {
    effects(key).is_some_and(|effects| effects.contains(&effect))
}

impl Changes {
    /// Whether something follows from one of the changed keys.
    pub fn have(&self, effect: Effect) -> bool {
        self.0.keys().any(|key| has_effect(key, effect))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::KEYS;

    #[test]
    fn of_every_key_is_known_what_follows_from_it() {
        for def in KEYS {
            assert!(effects(def.key).is_some(), "{}", def.key);
        }
        assert_eq!(effects("image.colour"), None);
    }

    #[test]
    fn what_only_new_containers_and_pulls_read_restarts_nobody() {
        for key in [
            "image.tag",
            "image.registry_password",
            "container.autostart",
        ] {
            assert_eq!(effects(key), Some(&[][..]), "{key}");
        }
        assert!(has_effect("security", Effect::Files));
        assert!(!has_effect("security", Effect::Containers));
    }
}
