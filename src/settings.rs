//! What the process is told at its start: flags, else environment, else the settings file, else defaults.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use schema::db::Backend;
use serde::Deserialize;

/// In a command's help, what is the same for all commands stands below its own options.
const COMMON: &str = "Common options";

/// Settings that every command understands.
#[derive(Debug, Clone, Default, Args)]
pub struct CommonArgs {
    /// Settings file (YAML) with the same names as the long flags
    #[arg(long, env = "AGENTYARD_CONFIG", value_name = "FILE", global = true, help_heading = COMMON)]
    pub config: Option<PathBuf>,
    /// Directory for database, keys, users' files and archives [default: ./data]
    #[arg(long, env = "AGENTYARD_DATA_DIR", value_name = "DIR", global = true, help_heading = COMMON)]
    pub data_dir: Option<PathBuf>,
    /// Database: sqlite:PATH or postgres://… [default: agentyard.db in the data directory]
    #[arg(
        long,
        env = "AGENTYARD_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true,
        global = true,
        help_heading = COMMON
    )]
    pub database_url: Option<String>,
    /// Unix socket for administration on this machine [default: admin.sock in the data directory]
    #[arg(
        long,
        env = "AGENTYARD_ADMIN_SOCKET",
        value_name = "PATH",
        global = true,
        help_heading = COMMON
    )]
    pub admin_socket: Option<PathBuf>,
    /// How logs are written to standard error [default: text]
    #[arg(
        long,
        env = "AGENTYARD_LOG_FORMAT",
        value_name = "FORMAT",
        global = true,
        help_heading = COMMON
    )]
    pub log_format: Option<LogFormat>,
}

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON object a line.
    Json,
}

/// Settings for preparing a data directory.
#[derive(Debug, Clone, Default, Args)]
pub struct InitArgs {
    /// Gives a configuration key a value if it has none yet (repeatable)
    #[arg(
        long = "set",
        env = "AGENTYARD_SET",
        value_name = "KEY=VALUE",
        value_delimiter = ';'
    )]
    pub set: Vec<String>,
    /// Adapter to begin with: a built-in one (picoclaw, echo) or a folder or zip [default: picoclaw]
    #[arg(long, env = "AGENTYARD_ADAPTER", value_name = "NAME|PATH")]
    pub adapter: Option<String>,
}

/// Settings of the server.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// Address for people and clients [default: 127.0.0.1:8080]
    #[arg(long, env = "AGENTYARD_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Address for agents: auto (gateway of the agent network, port 8081), an address, or off [default: auto]
    #[arg(long, env = "AGENTYARD_AGENT_LISTEN", value_name = "ADDRESS")]
    pub agent_listen: Option<AgentListen>,
    /// The data directory as the engine's host sees it [default: the data directory]
    #[arg(long, env = "AGENTYARD_ENGINE_DATA_DIR", value_name = "DIR")]
    pub engine_data_dir: Option<String>,
    /// Container engine: unix://, tcp:// or ssh:// [default: unix:///var/run/docker.sock]
    #[arg(long, env = "AGENTYARD_DOCKER_HOST", value_name = "URL")]
    pub docker_host: Option<String>,
    /// Folder with ca.pem, cert.pem and key.pem for a tcp:// engine that asks for TLS
    #[arg(long, env = "AGENTYARD_DOCKER_CERT_PATH", value_name = "DIR")]
    pub docker_cert_path: Option<PathBuf>,
    /// Certificate chain (PEM) for HTTPS; needs --tls-key
    #[arg(long, env = "AGENTYARD_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Private key (PEM) for HTTPS; needs --tls-cert
    #[arg(long, env = "AGENTYARD_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Time between full passes; for tests and diagnosis
    #[arg(long, env = "AGENTYARD_RESYNC", value_name = "DURATION", hide = true, value_parser = humantime::parse_duration)]
    pub resync: Option<Duration>,
    /// Time between full comparisons of one container; for tests and diagnosis
    #[arg(long, env = "AGENTYARD_VERIFY", value_name = "DURATION", hide = true, value_parser = humantime::parse_duration)]
    pub verify: Option<Duration>,
}

/// Where agents reach the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AgentListen {
    /// The gateway of the agent network, port 8081.
    #[default]
    Auto,
    /// A fixed address.
    At(SocketAddr),
    /// Nowhere.
    Off,
}

impl std::str::FromStr for AgentListen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            address => address
                .parse()
                .map(Self::At)
                .map_err(|_| "give auto, off, or an address such as 10.88.0.1:8081".to_owned()),
        }
    }
}

/// The settings file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct File {
    data_dir: Option<PathBuf>,
    database_url: Option<String>,
    admin_socket: Option<PathBuf>,
    log_format: Option<LogFormat>,
    set: Vec<String>,
    adapter: Option<String>,
    listen: Option<SocketAddr>,
    agent_listen: Option<String>,
    engine_data_dir: Option<String>,
    docker_host: Option<String>,
    docker_cert_path: Option<PathBuf>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The settings file cannot be read.
    #[error("the settings file {} cannot be read: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The settings file is not understood.
    #[error("the settings file {} is not understood: {source}", path.display())]
    Yaml {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_yaml::Error,
    },
    /// A value is not understood.
    #[error("{name}: {rule}")]
    Value {
        /// Which setting.
        name: &'static str,
        /// What it must be.
        rule: String,
    },
    /// The working directory is unknown.
    #[error("the working directory cannot be found out: {0}")]
    WorkingDirectory(std::io::Error),
}

/// Everything the process was told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The data directory, absolute.
    pub data_dir: PathBuf,
    /// Which database.
    pub database: Backend,
    /// The administration socket.
    pub admin_socket: PathBuf,
    /// How logs are written.
    pub log_format: LogFormat,
    /// Configuration keys to give a value if they have none.
    pub set: Vec<String>,
    /// The adapter to begin with.
    pub adapter: String,
    /// Address for people and clients.
    pub listen: SocketAddr,
    /// Address for agents.
    pub agent_listen: AgentListen,
    /// The data directory as the engine's host sees it.
    pub engine_data_dir: String,
    /// The container engine.
    pub docker_host: String,
    /// Client certificates for it.
    pub docker_cert_path: Option<PathBuf>,
    /// Certificate and key for HTTPS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Time between full passes, if not the reconcilers' own.
    pub resync: Option<Duration>,
    /// Time between full comparisons of one container, if not the usual.
    pub verify: Option<Duration>,
}

impl Settings {
    /// Puts flags, environment, file and defaults together.
    ///
    /// # Errors
    /// When the file cannot be read or a value is not understood; the text names it.
    pub fn resolve(
        common: &CommonArgs,
        init: &InitArgs,
        serve: &ServeArgs,
    ) -> Result<Self, SettingsError> {
        let file = match &common.config {
            Some(path) => read_file(path)?,
            None => File::default(),
        };
        let data_dir = common
            .data_dir
            .clone()
            .or(file.data_dir)
            .unwrap_or_else(|| PathBuf::from("data"));
        let data_dir = std::path::absolute(data_dir).map_err(SettingsError::WorkingDirectory)?;
        let database = match common.database_url.clone().or(file.database_url) {
            Some(url) => Backend::parse(&url).map_err(|error| SettingsError::Value {
                name: "database-url",
                rule: error.to_string(),
            })?,
            None => Backend::Sqlite(data_dir.join("agentyard.db")),
        };
        let agent_listen = match (serve.agent_listen, file.agent_listen) {
            (Some(given), _) => given,
            (None, Some(text)) => text.parse().map_err(|rule| SettingsError::Value {
                name: "agent-listen",
                rule,
            })?,
            (None, None) => AgentListen::Auto,
        };
        let tls_cert = serve.tls_cert.clone().or(file.tls_cert);
        let tls_key = serve.tls_key.clone().or(file.tls_key);
        let tls = match (tls_cert, tls_key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => {
                return Err(SettingsError::Value {
                    name: "tls-cert, tls-key",
                    rule: "give both or neither".to_owned(),
                });
            }
        };
        let mut set = file.set;
        set.extend(init.set.iter().cloned());
        Ok(Self {
            admin_socket: common
                .admin_socket
                .clone()
                .or(file.admin_socket)
                .unwrap_or_else(|| data_dir.join("admin.sock")),
            engine_data_dir: serve
                .engine_data_dir
                .clone()
                .or(file.engine_data_dir)
                .unwrap_or_else(|| data_dir.display().to_string()),
            data_dir,
            database,
            log_format: common.log_format.or(file.log_format).unwrap_or_default(),
            set,
            adapter: init
                .adapter
                .clone()
                .or(file.adapter)
                .unwrap_or_else(|| "picoclaw".to_owned()),
            listen: serve
                .listen
                .or(file.listen)
                .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8080))),
            agent_listen,
            docker_host: serve
                .docker_host
                .clone()
                .or(file.docker_host)
                .unwrap_or_else(|| "unix:///var/run/docker.sock".to_owned()),
            docker_cert_path: serve.docker_cert_path.clone().or(file.docker_cert_path),
            tls,
            resync: serve.resync,
            verify: serve.verify,
        })
    }
}

fn read_file(path: &Path) -> Result<File, SettingsError> {
    let text = std::fs::read_to_string(path).map_err(|source| SettingsError::File {
        path: path.to_owned(),
        source,
    })?;
    if text.trim().is_empty() {
        return Ok(File::default());
    }
    serde_yaml::from_str(&text).map_err(|source| SettingsError::Yaml {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(common: CommonArgs, serve: ServeArgs) -> Result<Settings, SettingsError> {
        Settings::resolve(&common, &InitArgs::default(), &serve)
    }

    fn with_file(text: &str) -> (tempfile::TempDir, CommonArgs) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agentyard.yaml");
        std::fs::write(&path, text).unwrap();
        let common = CommonArgs {
            config: Some(path),
            ..CommonArgs::default()
        };
        (dir, common)
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_defaults() {
        let (_dir, common) =
            with_file("listen: 0.0.0.0:9000\nagent-listen: 'off'\ndata-dir: /srv/a\n");
        let serve = ServeArgs {
            listen: "127.0.0.1:1".parse().ok(),
            ..ServeArgs::default()
        };
        let settings = resolve(common, serve).unwrap();
        assert_eq!(settings.listen.port(), 1);
        assert_eq!(settings.agent_listen, AgentListen::Off);
        assert_eq!(settings.admin_socket, Path::new("/srv/a/admin.sock"));
        assert_eq!(settings.engine_data_dir, "/srv/a");
        assert_eq!(settings.docker_host, "unix:///var/run/docker.sock");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("listne: 0.0.0.0:9000", "listne"),
            ("agent-listen: sometimes", "agent-listen"),
            ("tls-cert: /x", "tls-cert, tls-key"),
            ("database-url: mysql://u:secret@h/d", "database-url"),
            ("listen: [", "not understood"),
        ] {
            let (_dir, common) = with_file(text);
            let error = resolve(common, ServeArgs::default())
                .unwrap_err()
                .to_string();
            assert!(error.contains(part), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
        let (_dir, common) = with_file("");
        assert!(resolve(common, ServeArgs::default()).is_ok());
    }
}
