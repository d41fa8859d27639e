//! The table of all configuration keys.

use serde_json::{Value, json};

use super::rules::{self, Rule};
use super::{Problem, ProblemCode};

/// What a key holds.
#[derive(Debug, Clone, Copy)]
pub enum ValueType {
    /// `true` or `false`.
    Boolean,
    /// A whole number in a range, both ends included.
    Integer(i64, i64),
    /// A number in a range, both ends included.
    Number(f64, f64),
    /// A text under a rule.
    Text(Rule),
    /// A text that is never shown.
    Secret,
    /// A text such as `30m`, `24h`, `7d`, or `0`.
    Duration {
        /// Whether 0 has a meaning (off, or for ever).
        zero: bool,
    },
    /// One of several words.
    Choice(&'static [&'static str]),
    /// A list of texts, each under a rule, without duplicates.
    List(Rule),
    /// A JSON object, one key as a whole.
    Object,
}

/// What a key holds until somebody sets it.
#[derive(Debug, Clone, Copy)]
pub enum DefaultValue {
    /// A boolean.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A text.
    Text(&'static str),
    /// An empty list.
    EmptyList,
    /// An empty object.
    EmptyObject,
}

/// One configuration key.
#[derive(Debug, Clone, Copy)]
pub struct KeyDef {
    /// The dotted name.
    pub key: &'static str,
    /// What it holds.
    pub value_type: ValueType,
    /// What it holds until somebody sets it.
    pub default: DefaultValue,
    /// A short name for forms.
    pub title: &'static str,
    /// One or two sentences for a person.
    pub description: &'static str,
}

/// The modes of `web.auth_mode` that this release can serve.
const AVAILABLE_AUTH_MODES: &[&str] = &["local"];
/// No configured duration is longer: a hundred years.
const MAX_SECONDS: u64 = 100 * 365 * 24 * 3600;
const MAX_LIST: usize = 1000;
/// All objects together stay below the API's body limit of 1 MiB that they came through.
const MAX_OBJECT_BYTES: usize = 512 * 1024;

const fn key(
    key: &'static str,
    value_type: ValueType,
    default: DefaultValue,
    title: &'static str,
    description: &'static str,
) -> KeyDef {
    KeyDef {
        key,
        value_type,
        default,
        title,
        description,
    }
}

use DefaultValue::{EmptyList, EmptyObject};
use ValueType::{Boolean, Choice, Duration, Integer, List, Number, Object, Secret, Text};

const fn b(value: bool) -> DefaultValue {
    DefaultValue::Boolean(value)
}
const fn i(value: i64) -> DefaultValue {
    DefaultValue::Integer(value)
}
const fn t(value: &'static str) -> DefaultValue {
    DefaultValue::Text(value)
}
const INTERVAL: ValueType = Duration { zero: true };
const TIMEOUT: ValueType = Duration { zero: false };

/// Every key there is, sorted by name.
#[rustfmt::skip]
pub const KEYS: &[KeyDef] = &[
    key("adapter.refresh_interval", INTERVAL, t("24h"), "Adapter refresh interval",
        "How often adapter.source_url is asked for a newer adapter package; 0 = never."),
    key("adapter.source_url", Text(rules::source_url), t(""), "Adapter source",
        "Where newer adapter packages are fetched from; empty = nowhere. Shown to administrators, so it must hold no secret."),
    key("agent", Object, EmptyObject, "Agent configuration",
        "Merged into every agent's configuration file. Replaced as a whole."),
    key("archive.retention", INTERVAL, t("0"), "Archive retention",
        "How long archived user directories are kept; 0 = for ever."),
    key("audit.retention", INTERVAL, t("0"), "Audit retention",
        "How long audit entries are kept; 0 = for ever."),
    key("container.autostart", Boolean, b(true), "Start new containers",
        "Whether the container of a new user is started at once."),
    key("container.capabilities", List(rules::capability), EmptyList, "Capabilities",
        "Linux capabilities that agents keep; all others are dropped. An adapter whose agent runs as the image's own user needs CHOWN, DAC_OVERRIDE, FOWNER, SETGID and SETUID, which are then the default."),
    key("container.cpu_limit", Number(0.0, 1024.0), i(0), "CPU limit",
        "Processor cores per container, for example 0.5; 0 = no limit."),
    key("container.memory_limit_mb", Integer(16, 16_777_216), i(1024), "Memory limit (MiB)",
        "Memory per container in MiB."),
    key("container.network_subnet", Text(rules::agent_subnet), t("10.88.0.0/16"), "Agent network",
        "The private network of the containers. Cannot be changed while containers exist."),
    key("container.pids_limit", Integer(16, 4_194_304), i(512), "Process limit",
        "Processes and threads per container."),
    key("container.service_url", Text(rules::base_url), t(""), "Service address for agents",
        "The base address that agents use to reach this service; empty = port 8081 on the gateway of the agent network."),
    key("container.timezone", Text(rules::timezone), t(""), "Time zone",
        "The time zone in containers, for example Europe/Berlin; empty = the image's own."),
    key("events.retention", INTERVAL, t("30d"), "Event retention",
        "How long events are kept; 0 = for ever."),
    key("files.quota_mb", Integer(0, 1_073_741_824), i(0), "Workspace quota (MiB)",
        "Space per user for uploads in MiB; 0 = no limit."),
    key("image.name", Text(rules::image_name), t("docker.io/sipeed/picoclaw"), "Image",
        "The agent image of new users, without tag."),
    key("image.pull_policy", Choice(&["missing", "always", "never"]), t("missing"), "Pull policy",
        "When the engine pulls the image: if it is missing, always, or never."),
    key("image.registry_password", Secret, t(""), "Registry password",
        "The password for pulling images."),
    key("image.registry_plain_http", List(rules::registry), EmptyList, "Registries without TLS",
        "Registries (host:port) that are asked for their tags over plain http. Pulls follow the engine's own configuration."),
    key("image.registry_username", Text(rules::line), t(""), "Registry user",
        "The user name for pulling images; empty = anonymous."),
    key("image.tag", Text(rules::image_tag), t("latest"), "Image tag",
        "The tag of the agent image of new users."),
    key("ldap.base_dn", Text(rules::line), t(""), "Search base",
        "The DN below which users are searched."),
    key("ldap.bind_dn", Text(rules::line), t(""), "Bind DN",
        "The DN that the service signs in to the directory with."),
    key("ldap.bind_password", Secret, t(""), "Bind password",
        "The password of the bind DN."),
    key("ldap.ca_certificate", Text(rules::certificate), t(""), "Directory CA certificate",
        "Certificates (PEM) to trust besides the system's for the directory."),
    key("ldap.filter", Text(rules::user_filter), t("(uid={{username}})"), "User filter",
        "Finds one user; {{username}} is replaced by the escaped name."),
    key("ldap.group_base_dn", Text(rules::line), t(""), "Group search base",
        "The DN below which groups are searched."),
    key("ldap.group_filter", Text(rules::group_filter), t("(cn={{groupname}})"), "Group filter",
        "Finds one group; {{groupname}} is replaced by the escaped name."),
    key("ldap.group_member_attribute", Text(rules::attribute), t("member"), "Group member attribute",
        "The attribute of a group that lists its members."),
    key("ldap.group_search_mode", Choice(&["member_of", "group_search"]), t("member_of"), "Group search mode",
        "Whether users name their groups (memberOf) or groups name their members."),
    key("ldap.host", Text(rules::ldap_host), t(""), "Directory server",
        "host:port, ldap://host or ldaps://host."),
    key("ldap.max_removal_percent", Integer(0, 100), i(20), "Largest removal (%)",
        "A synchronisation that would remove more than this share of the users (and more than 5) waits for confirmation."),
    key("ldap.page_size", Integer(1, 100_000), i(500), "Page size",
        "How many entries are asked for at a time."),
    key("ldap.removal_grace", INTERVAL, t("24h"), "Removal grace",
        "How long a user must be gone from the directory before being removed here; 0 = at once."),
    key("ldap.start_tls", Boolean, b(false), "StartTLS",
        "Whether plain connections are upgraded to TLS."),
    key("ldap.sync_interval", INTERVAL, t("0"), "Synchronisation interval",
        "How often users and groups are synchronised; 0 = only by hand."),
    key("ldap.timeout", TIMEOUT, t("10s"), "Directory timeout",
        "How long one directory operation may take."),
    key("ldap.username_attribute", Text(rules::attribute), t("uid"), "User name attribute",
        "The attribute that holds the user name."),
    key("ldap.whitelist_enabled", Boolean, b(false), "Whitelist for directory users",
        "Whether only people on the whitelist may sign in."),
    key("log.level", Choice(&["error", "warn", "info", "debug", "trace"]), t("info"), "Log level",
        "How much is logged."),
    key("mcp.get_stream", Choice(&["stream", "refuse"]), t("stream"), "GET on the MCP endpoint",
        "Whether a GET opens an event stream or is refused."),
    key("mcp.policy", Object, EmptyObject, "MCP policy",
        "Which tools agents may call. Replaced as a whole."),
    key("mcp.session_strict", Boolean, b(false), "Strict MCP sessions",
        "Whether requests without a valid MCP session id are refused."),
    key("oidc.ca_certificate", Text(rules::certificate), t(""), "Provider CA certificate",
        "Certificates (PEM) to trust besides the system's for the identity provider."),
    key("oidc.client_id", Text(rules::line), t(""), "Client id",
        "The client id at the identity provider."),
    key("oidc.client_secret", Secret, t(""), "Client secret",
        "The client secret at the identity provider."),
    key("oidc.groups_claim", Text(rules::name), t("groups"), "Groups claim",
        "The claim that lists a person's groups."),
    key("oidc.provider_url", Text(rules::issuer_url), t(""), "Provider address",
        "The issuer address of the identity provider, exactly as the provider writes it."),
    key("oidc.redirect_url", Text(rules::redirect_url), t(""), "Redirect address",
        "The callback address of this service; ends with /api/login/oidc/callback."),
    key("oidc.scopes", Text(rules::scopes), t("openid profile email"), "Scopes",
        "The scopes to ask for."),
    key("oidc.username_claim", Text(rules::name), t("preferred_username"), "User name claim",
        "The claim that holds the user name."),
    key("oidc.whitelist_enabled", Boolean, b(false), "Whitelist for provider users",
        "Whether only people on the whitelist may sign in."),
    key("security", Object, EmptyObject, "Agent secrets",
        "Merged into every agent's security file. Every value in it is secret. Replaced as a whole."),
    key("skills.allow_private_hosts", Boolean, b(false), "Repositories on private hosts",
        "Whether skill repositories may lie on private and loopback addresses."),
    key("skills.defaults", List(rules::skill), EmptyList, "Default skills",
        "Skills that everybody gets."),
    key("web.allowed_origins", List(rules::origin), EmptyList, "Allowed origins",
        "Other origins whose pages may call the API, exact."),
    key("web.auth_mode", Choice(&["local", "ldap", "oidc"]), t("local"), "Authentication mode",
        "Where ordinary users come from. Changing it removes all ordinary users and archives their directories."),
    key("web.desktop_user_agents", List(rules::name), EmptyList, "Desktop clients",
        "Texts that mark the User-Agent of a desktop client, in which superadmins cannot sign in."),
    key("web.public_url", Text(rules::base_url), t(""), "Public address",
        "The address under which people reach this service; empty = as the request says."),
    key("web.trusted_proxies", List(rules::network), EmptyList, "Trusted proxies",
        "Addresses and networks whose X-Forwarded headers are believed."),
];

/// Finds a key by its dotted name.
pub fn find(key: &str) -> Option<&'static KeyDef> {
    KEYS.binary_search_by(|def| def.key.cmp(key))
        .ok()
        .and_then(|at| KEYS.get(at))
}

/// Whether some key begins with `group` and a dot.
pub(super) fn is_group(group: &str) -> bool {
    KEYS.iter().any(|def| {
        def.key
            .strip_prefix(group)
            .is_some_and(|rest| rest.starts_with('.'))
    })
}

impl KeyDef {
    /// Whether the value is a secret as a whole. (`security` is an object of secrets instead.)
    pub fn is_secret(&self) -> bool {
        matches!(self.value_type, Secret)
    }

    /// The default as JSON.
    pub fn default_value(&self) -> Value {
        match self.default {
            DefaultValue::Boolean(value) => json!(value),
            DefaultValue::Integer(value) => json!(value),
            DefaultValue::Text(value) => json!(value),
            EmptyList => json!([]),
            EmptyObject => json!({}),
        }
    }

    /// Checks a value and returns its canonical form.
    ///
    /// Nothing is converted between JSON types: a number in quotes is no number, and a password of
    /// digits stays a text.
    ///
    /// # Errors
    /// A [`Problem`] that names the key and its rule.
    pub fn check(&self, value: &Value) -> Result<Value, Problem> {
        let wrong_type = |expected: &str| {
            self.problem(
                ProblemCode::InvalidType,
                &format!("must be {expected}, not {}", type_name(value)),
            )
        };
        let invalid = |rule: &str| self.problem(ProblemCode::InvalidValue, rule);
        match self.value_type {
            Boolean => match value {
                Value::Bool(_) => Ok(value.clone()),
                _ => Err(wrong_type("true or false")),
            },
            Integer(min, max) => match value.as_i64() {
                Some(number) if (min..=max).contains(&number) => Ok(value.clone()),
                Some(_) => Err(invalid(&format!("must be from {min} to {max}"))),
                None if value.is_number() => Err(invalid(&format!(
                    "must be a whole number from {min} to {max}"
                ))),
                None => Err(wrong_type("a whole number")),
            },
            Number(min, max) => match value.as_f64() {
                // 2 and 2.0 are the same number and get the same form.
                Some(number) if (min..=max).contains(&number) && number.fract() == 0.0 => {
                    Ok(json!(number as i64))
                }
                Some(number) if (min..=max).contains(&number) => Ok(json!(number)),
                Some(_) => Err(invalid(&format!("must be from {min} to {max}"))),
                None => Err(wrong_type("a number")),
            },
            Text(rule) => {
                let text = value.as_str().ok_or_else(|| wrong_type("a text"))?;
                rule(text).map(Value::String).map_err(invalid)
            }
            Secret => {
                let text = value.as_str().ok_or_else(|| wrong_type("a text"))?;
                rules::secret(text).map(Value::String).map_err(invalid)
            }
            Duration { zero } => {
                let text = match value {
                    // The one number that needs no unit.
                    Value::Number(number) if number.as_u64() == Some(0) => "0",
                    Value::String(text) => text.as_str(),
                    _ => return Err(wrong_type("a text such as \"30m\" or \"24h\"")),
                };
                match parse_duration(text) {
                    Some(duration) if !zero && duration.is_zero() => {
                        Err(invalid("must be longer than 0"))
                    }
                    Some(_) => Ok(json!(text)),
                    None => Err(invalid(
                        "must be a duration such as \"90s\", \"30m\", \"24h\" or \"30d\", at most 100 years",
                    )),
                }
            }
            Choice(words) => {
                let text = value.as_str().ok_or_else(|| wrong_type("a text"))?;
                if !words.contains(&text) {
                    return Err(invalid(&format!("must be one of {}", words.join(", "))));
                }
                if self.key == "web.auth_mode" && !AVAILABLE_AUTH_MODES.contains(&text) {
                    return Err(self.problem(
                        ProblemCode::NotAvailableYet,
                        &format!("cannot be {text} yet: this release signs in local users only"),
                    ));
                }
                Ok(value.clone())
            }
            List(rule) => {
                let items = value
                    .as_array()
                    .ok_or_else(|| wrong_type("a list of texts"))?;
                if items.len() > MAX_LIST {
                    return Err(invalid("may hold at most 1000 entries"));
                }
                let mut checked: Vec<Value> = Vec::with_capacity(items.len());
                for item in items {
                    let text = item.as_str().ok_or_else(|| {
                        self.problem(
                            ProblemCode::InvalidType,
                            &format!("may only hold texts, not {}", type_name(item)),
                        )
                    })?;
                    let item = Value::String(rule(text).map_err(invalid)?);
                    if !checked.contains(&item) {
                        checked.push(item);
                    }
                }
                Ok(Value::Array(checked))
            }
            Object => {
                if !value.is_object() {
                    return Err(wrong_type("an object"));
                }
                if value.to_string().len() > MAX_OBJECT_BYTES {
                    return Err(invalid("may be at most 524288 bytes long"));
                }
                Ok(value.clone())
            }
        }
    }

    pub(super) fn problem(&self, code: ProblemCode, rest: &str) -> Problem {
        Problem::new(self.key, code, format!("{} {rest}", self.key))
    }
}

/// Reads `30m`, `24h`, `1h 30m`, `0`; `None` when it is no duration or longer than a hundred years.
pub(super) fn parse_duration(text: &str) -> Option<std::time::Duration> {
    if text == "0" {
        return Some(std::time::Duration::ZERO);
    }
    humantime::parse_duration(text)
        .ok()
        .filter(|duration| duration.as_secs() <= MAX_SECONDS)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
