//! The settings that the HTTP layer itself obeys, as typed values, and how they follow the
//! configuration.

use std::sync::Arc;
use std::time::Duration;

use cidr::{IpCidr, Ipv4Cidr};
use schema::config::{
    self, Config, keys::chat, keys::container, keys::ldap, keys::log, keys::mcp, keys::oidc,
    keys::web,
};
use schema::error::DbError;
use schema::reader::Reader;
use schema::secrets::MasterKey;
use schema::usage::Quota;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::auth::origin::Origin;
use crate::auth::unknown_proxy::describe_width;
use crate::error::chain;
use crate::mcp::{Own, Policies};

pub use schema::config::{AuthMode, LogLevel};

/// How often the configuration's generation is read when no bell rings: another replica's bell
/// may be lost.
const POLL: Duration = Duration::from_secs(10);

/// A snapshot of the `web.*` configuration keys, and of `log.level`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WebSettings {
    /// The configuration's generation they were read at; 0 before the first reading.
    pub generation: i64,
    /// `web.auth_mode`.
    pub auth_mode: AuthMode,
    /// Only whoever is on the whitelist may sign in: `ldap.whitelist_enabled` or `oidc.whitelist_enabled`, whichever is of
    /// the mode.
    pub whitelist_enabled: bool,
    /// The path below which browsers find the sign-in through an identity provider: that of `oidc.redirect_url` without its
    /// end.
    pub provider_path: String,
    /// `oidc.display_name`.
    pub provider_name: String,
    /// The origin of `web.public_url`, when set.
    pub public_origin: Option<Origin>,
    /// Its path without a slash at the end: what a proxy that says nothing takes off the beginning of paths.
    pub public_path: String,
    /// `web.allowed_origins`.
    pub allowed_origins: Vec<Origin>,
    /// `web.trusted_proxies`.
    pub trusted_proxies: Vec<IpCidr>,
    /// `web.desktop_user_agents`: substrings that mark a desktop client.
    pub desktop_user_agents: Vec<String>,
    /// `ldap.removal_grace`: how long users may be missing from the directory.
    pub removal_grace: Option<Duration>,
    /// `files.quota_mb`, `files.quota_files`: what each user's directory may take.
    pub quota: Quota,
    /// `mcp.get_stream` is `refuse`.
    pub refuses_get: bool,
    /// `mcp.session_strict`.
    pub strict_sessions: bool,
    /// `mcp.policy`.
    pub policies: Policies,
    /// Where the service is, as far as the configuration says it.
    pub own: Own,
    /// `chat.enabled`.
    pub chat_enabled: bool,
    /// `log.level`, which the program's log filter follows.
    pub log_level: LogLevel,
}

impl WebSettings {
    /// The settings of a configuration at its generation.
    pub fn of(config: &Config, generation: i64) -> Self {
        let auth_mode = config.get(&web::AUTH_MODE);
        Self {
            generation,
            auth_mode,
            whitelist_enabled: match auth_mode {
                AuthMode::Local => false,
                AuthMode::Ldap => config.get(&ldap::WHITELIST_ENABLED),
                AuthMode::Oidc => config.get(&oidc::WHITELIST_ENABLED),
            },
            provider_path: config
                .get(&oidc::REDIRECT_URL)
                .and_then(|url| url.parse::<http::Uri>().ok())
                .and_then(|url| Some(url.path().strip_suffix("/callback")?.to_owned()))
                .unwrap_or_default(),
            provider_name: config.get(&oidc::DISPLAY_NAME),
            public_origin: config
                .get(&web::PUBLIC_URL)
                .as_deref()
                .and_then(Origin::of_url),
            public_path: config
                .get(&web::PUBLIC_URL)
                .and_then(|url| url.parse::<http::Uri>().ok())
                .map(|url| url.path().trim_end_matches('/').to_owned())
                .unwrap_or_default(),
            allowed_origins: config
                .get(&web::ALLOWED_ORIGINS)
                .iter()
                .filter_map(|origin| origin.parse().ok())
                .collect(),
            trusted_proxies: config.get(&web::TRUSTED_PROXIES),
            desktop_user_agents: config.get(&web::DESKTOP_USER_AGENTS),
            removal_grace: config.get(&ldap::REMOVAL_GRACE),
            quota: Quota::from_config(config),
            refuses_get: config.get(&mcp::GET_STREAM) == "refuse",
            strict_sessions: config.get(&mcp::SESSION_STRICT),
            policies: config.get(&mcp::POLICY).into(),
            own: own(config),
            chat_enabled: config.get(&chat::ENABLED),
            log_level: config.get(&log::LEVEL),
        }
    }
}

/// Where people and agents are told to find the service.
fn own(config: &Config) -> Own {
    let mut own = Own::default();
    let urls = [
        config.get(&web::PUBLIC_URL),
        config.get(&container::SERVICE_URL),
    ];
    for url in urls.into_iter().flatten() {
        own.add_url(&url);
    }
    let subnet = config
        .get(&container::NETWORK_SUBNET)
        .parse::<Ipv4Cidr>()
        .ok();
    // The engine gives its first address to the host.
    if let Some(gateway) = subnet.and_then(|subnet| subnet.iter().addresses().nth(1)) {
        own.add_address(gateway.into());
    }
    own
}

/// Makes settings the present ones, unless those of a newer generation are already: readers and
/// writers of the configuration may overtake each other between commit and here.
pub fn publish(sender: &watch::Sender<Arc<WebSettings>>, settings: WebSettings) {
    sender.send_if_modified(|present| {
        let newer = settings.generation > present.generation;
        if newer {
            if settings.trusted_proxies != present.trusted_proxies
                && let Some(warning) = describe_width(&settings)
            {
                tracing::warn!("{warning}");
            }
            *present = Arc::new(settings);
        }
        newer
    });
}

/// Reads the configuration in effect and its generation, as of one moment. What the adapter decides of it is
/// [`ActiveAdapter::settle`](schema::adapter::store::ActiveAdapter::settle)'s.
///
/// # Errors
/// When the database cannot be read or a secret cannot be opened.
pub async fn read(db: &Reader, master_key: &MasterKey) -> Result<(Config, i64), DbError> {
    let mut snapshot = db.snapshot().await?;
    let (values, generation) = config::query::load(&mut snapshot, master_key).await?;
    Ok((Config::from_stored(values), generation))
}

/// Logs stored values that are left out because they no longer fit their keys.
pub fn log_ignored(config: &Config) {
    for problem in config.problems() {
        let (key, problem) = (&problem.key, &problem.message);
        tracing::warn!(key, problem, "a stored value is ignored; set the key again");
    }
}

/// Keeps the settings up to date until `shutdown`: reads them when the bell rings, and now and then in
/// any case. While the configuration cannot be read, the last settings stay.
pub async fn follow(
    db: Reader,
    master_key: Arc<MasterKey>,
    sender: watch::Sender<Arc<WebSettings>>,
    shutdown: CancellationToken,
) {
    let mut bell = db.bell();
    let mut failing = false;
    loop {
        bell.listen();
        match refresh(&db, &master_key, &sender).await {
            Ok(()) => failing = false,
            Err(error) if !failing => {
                failing = true;
                let error = chain(&error);
                tracing::warn!(
                    error,
                    "the configuration can't be read; the last settings stay"
                );
            }
            Err(_) => {}
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            // A closed bell disables this branch; the poll remains.
            Ok(()) = bell.rung() => {}
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

/// Reads the settings if the configuration has changed since they were read.
async fn refresh(
    db: &Reader,
    master_key: &MasterKey,
    sender: &watch::Sender<Arc<WebSettings>>,
) -> Result<(), DbError> {
    let generation = config::query::generation(&mut *db.read().await?).await?;
    if generation > sender.borrow().generation {
        let (config, generation) = read(db, master_key).await?;
        log_ignored(&config);
        publish(sender, WebSettings::of(&config, generation));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use schema::config::policy::{Mode, Policy};
    use serde_json::json;

    use super::*;

    #[test]
    fn every_key_that_the_http_layer_obeys_is_read() {
        let values = [
            ("files.quota_mb", json!(7)),
            ("files.quota_files", json!(8)),
            ("files.quota_action", json!("stop")),
            ("ldap.whitelist_enabled", json!(true)),
            ("log.level", json!("debug")),
            ("container.service_url", json!("http://a.example:8081")),
            ("mcp.get_stream", json!("refuse")),
            (
                "mcp.policy",
                json!({"users": {"Al": {"browser": {"mode": "off"}}}}),
            ),
            ("mcp.session_strict", json!(true)),
            (
                "oidc.redirect_url",
                json!("https://a.example/base/api/login/oidc/callback"),
            ),
            ("web.allowed_origins", json!(["https://tools.example"])),
            ("web.auth_mode", json!("ldap")),
            ("web.desktop_user_agents", json!(["Desk"])),
            ("web.public_url", json!("https://a.example/base/")),
            ("web.trusted_proxies", json!(["10.0.0.7", "10.1.0.0/16"])),
        ];
        let stored = values.map(|(key, value)| (key.to_owned(), value)).into();
        let mut own = Own::default();
        own.add_url("https://a.example/base");
        own.add_url("http://a.example:8081");
        own.add_address([10, 88, 0, 1].into());
        let mut policy = Policy::default();
        policy
            .users
            .entry("al".to_owned())
            .or_default()
            .browser
            .mode = Some(Mode::Off);
        let policies = policy.into();
        let expected = WebSettings {
            generation: 7,
            auth_mode: AuthMode::Ldap,
            whitelist_enabled: true,
            public_path: "/base".to_owned(),
            provider_path: "/base/api/login/oidc".to_owned(),
            provider_name: "Single sign-on".to_owned(),
            public_origin: Origin::of_url("https://a.example"),
            allowed_origins: vec!["https://tools.example".parse().unwrap()],
            trusted_proxies: ["10.0.0.7", "10.1.0.0/16"]
                .map(|n| n.parse().unwrap())
                .into(),
            desktop_user_agents: vec!["Desk".to_owned()],
            removal_grace: Some(Duration::from_secs(24 * 3600)),
            quota: Quota {
                megabytes: 7,
                files: 8,
                stops: true,
            },
            refuses_get: true,
            strict_sessions: true,
            policies,
            own,
            chat_enabled: true,
            log_level: LogLevel::Debug,
        };
        assert_eq!(WebSettings::of(&Config::from_stored(stored), 7), expected);
    }
}
