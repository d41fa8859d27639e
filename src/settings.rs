//! The settings of the process: flags, else environment, else the settings file, else defaults.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueEnum};
use schema::backup::check_allowed;
use schema::db::Backend;
use serde::Deserialize;

/// In a command's help, what is the same for all commands stands below its own options.
const COMMON: &str = "Common options";

/// Settings that every command understands.
#[derive(Debug, Clone, Default, Args)]
pub struct CommonArgs {
    /// Settings file (YAML); its keys are the long flags
    #[arg(long, env = "AGENTYARD_CONFIG", value_name = "FILE", global = true, help_heading = COMMON)]
    pub config: Option<PathBuf>,
    /// Data directory: database, keys, users' files and archives [default: ./data]
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
    /// Unix socket for the command line [default: admin.sock in the data directory]
    #[arg(
        long,
        env = "AGENTYARD_ADMIN_SOCKET",
        value_name = "PATH",
        global = true,
        help_heading = COMMON
    )]
    pub admin_socket: Option<PathBuf>,
    /// Format of the log on standard error [default: text]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LogFormat {
    /// Human-readable lines.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Settings for preparing a data directory.
#[derive(Debug, Clone, Default, Args)]
pub struct InitArgs {
    /// Set a configuration key only if it is unset (repeatable; separated by semicolons in the environment)
    #[arg(
        long = "set",
        env = "AGENTYARD_SET",
        hide_env_values = true,
        value_name = "KEY=VALUE",
        value_delimiter = ';'
    )]
    pub set: Vec<String>,
    /// Initial adapter: picoclaw, echo, or the path of a folder or ZIP file [default: picoclaw]
    #[arg(long, env = "AGENTYARD_ADAPTER", value_name = "NAME|PATH")]
    pub adapter: Option<String>,
    /// File with the password of the first superadmin, read when the superadmin is created [default: a random one is printed]
    #[arg(long, env = "AGENTYARD_ADMIN_PASSWORD_FILE", value_name = "FILE")]
    pub admin_password_file: Option<PathBuf>,
}

/// Settings of the server.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// API address [default: 127.0.0.1:8080]
    #[arg(long, env = "AGENTYARD_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Address at which agents reach the server: auto (gateway of the agent network, or all addresses with --engine kubernetes; port 8081), an address, or off [default: auto]
    #[arg(long, env = "AGENTYARD_AGENT_LISTEN", value_name = "ADDRESS")]
    pub agent_listen: Option<AgentListen>,
    /// Address of GET /metrics for Prometheus, or off [default: 127.0.0.1:9464]
    #[arg(long, env = "AGENTYARD_METRICS_LISTEN", value_name = "ADDRESS")]
    pub metrics_listen: Option<MetricsListen>,
    /// Address for other replicas, which pass requests on: only with PostgreSQL [default: none]
    #[arg(long, env = "AGENTYARD_REPLICA_LISTEN", value_name = "ADDRESS")]
    pub replica_listen: Option<SocketAddr>,
    /// URL at which other replicas reach --replica-listen [default: made of its address]
    #[arg(long, env = "AGENTYARD_REPLICA_ADDRESS", value_name = "URL")]
    pub replica_address: Option<String>,
    /// Container engine [default: docker]
    #[arg(long, env = "AGENTYARD_ENGINE", value_name = "ENGINE")]
    pub engine: Option<EngineName>,
    /// File with the properties of the cluster (YAML), for --engine kubernetes
    #[arg(long, env = "AGENTYARD_ENGINE_OPTIONS", value_name = "FILE")]
    pub engine_options: Option<PathBuf>,
    /// Path of the data directory on the engine's host [default: the data directory]
    #[arg(long, env = "AGENTYARD_ENGINE_DATA_DIR", value_name = "DIR")]
    pub engine_data_dir: Option<String>,
    /// URL of the Docker Engine: unix://, tcp:// or ssh:// [default: unix:///var/run/docker.sock]
    #[arg(long, env = "AGENTYARD_DOCKER_HOST", value_name = "URL")]
    pub docker_host: Option<String>,
    /// Folder with ca.pem, cert.pem and key.pem for a tcp:// engine with TLS
    #[arg(long, env = "AGENTYARD_DOCKER_CERT_PATH", value_name = "DIR")]
    pub docker_cert_path: Option<PathBuf>,
    /// Certificate chain (PEM) for HTTPS; requires --tls-key
    #[arg(long, env = "AGENTYARD_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Private key (PEM) for HTTPS; requires --tls-cert
    #[arg(long, env = "AGENTYARD_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Directory in which backup.directory may lie (repeatable; separated by semicolons in the environment) [default: none]
    #[arg(
        long = "backup-directory",
        env = "AGENTYARD_BACKUP_DIRECTORY",
        value_name = "DIR",
        value_delimiter = ';'
    )]
    pub backup_directories: Vec<PathBuf>,
    /// Time between full passes; for tests and diagnosis
    #[arg(long, env = "AGENTYARD_RESYNC", value_name = "DURATION", hide = true, value_parser = humantime::parse_duration)]
    pub resync: Option<Duration>,
    /// Time between full comparisons of one container; for tests and diagnosis
    #[arg(long, env = "AGENTYARD_VERIFY", value_name = "DURATION", hide = true, value_parser = humantime::parse_duration)]
    pub verify: Option<Duration>,
    /// Time between samples of what agents use; for tests and diagnosis
    #[arg(long, env = "AGENTYARD_SAMPLE", value_name = "DURATION", hide = true, value_parser = humantime::parse_duration)]
    pub sample: Option<Duration>,
}

/// Kind of container engine. Never guessed: another engine beside the one in use would get all agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum EngineName {
    /// Docker Engine
    #[default]
    Docker,
    /// A namespace of a Kubernetes cluster
    Kubernetes,
}

/// The container engine and the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineSettings {
    /// Docker Engine.
    Docker {
        /// Its URL.
        host: String,
        /// Folder of client certificates for it.
        cert_path: Option<PathBuf>,
        /// Path of the data directory on its host.
        data_dir: String,
    },
    /// A namespace of a Kubernetes cluster.
    Kubernetes {
        /// File with the properties of the cluster.
        options: PathBuf,
    },
}

impl EngineSettings {
    /// # Errors
    /// When a setting of one engine is given with the other, or the file of the cluster is missing.
    fn resolve(
        serve: &ServeArgs,
        file: &ServeArgs,
        data_dir: &Path,
    ) -> Result<Self, SettingsError> {
        let wrong = |name, rule: &str| {
            Err(SettingsError::Value {
                name,
                rule: rule.to_owned(),
            })
        };
        let options = serve
            .engine_options
            .as_ref()
            .or(file.engine_options.as_ref());
        let host = serve.docker_host.as_ref().or(file.docker_host.as_ref());
        let cert_path = serve.docker_cert_path.as_ref();
        let cert_path = cert_path.or(file.docker_cert_path.as_ref());
        let engine_data_dir = serve.engine_data_dir.as_ref();
        let engine_data_dir = engine_data_dir.or(file.engine_data_dir.as_ref());
        match serve.engine.or(file.engine).unwrap_or_default() {
            EngineName::Docker if options.is_some() => wrong(
                "engine-options",
                "only --engine kubernetes has options; give that, too, or leave this out",
            ),
            EngineName::Docker => Ok(Self::Docker {
                host: host
                    .cloned()
                    .unwrap_or_else(|| "unix:///var/run/docker.sock".to_owned()),
                cert_path: cert_path.cloned(),
                data_dir: engine_data_dir
                    .cloned()
                    .unwrap_or_else(|| data_dir.display().to_string()),
            }),
            EngineName::Kubernetes => {
                let docker_options = [
                    ("docker-host", host.is_some()),
                    ("docker-cert-path", cert_path.is_some()),
                    ("engine-data-dir", engine_data_dir.is_some()),
                ];
                let other = docker_options.into_iter().find(|(_, given)| *given);
                if let Some((name, _)) = other {
                    let rule = "this is for Docker only; leave it out with --engine kubernetes";
                    return wrong(name, rule);
                }
                match options {
                    Some(options) => Ok(Self::Kubernetes {
                        options: options.clone(),
                    }),
                    None => wrong(
                        "engine-options",
                        "name the file with the properties of the cluster",
                    ),
                }
            }
        }
    }
}

/// The port of the agent listener on the gateway of the agent network.
pub const AGENT_PORT: u16 = 8081;

/// Where agents reach the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AgentListen {
    /// The gateway of the agent network, port 8081; in a cluster all addresses at that port.
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

/// The address of the metrics, unless another one is chosen.
pub const METRICS_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);

/// Address of the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetricsListen {
    /// At [`METRICS_ADDRESS`], if that is free.
    #[default]
    Usual,
    /// At this address.
    At(SocketAddr),
    /// Nowhere.
    Off,
}

impl std::str::FromStr for MetricsListen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" | "" => Ok(Self::Off),
            address => address
                .parse()
                .map(Self::At)
                .map_err(|_| "give off, or an address such as 127.0.0.1:9464".to_owned()),
        }
    }
}

/// The listener for other replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaListen {
    /// Its address.
    pub at: SocketAddr,
    /// The URL at which other replicas reach it; `None`: made of the address that was bound.
    pub url: Option<String>,
}

impl ReplicaListen {
    /// # Errors
    /// When one of them is given without what it needs; the text says what that is.
    fn resolve(
        at: Option<SocketAddr>,
        url: Option<String>,
        database: &Backend,
    ) -> Result<Option<Self>, SettingsError> {
        let wrong = |name, rule: &str| {
            Err(SettingsError::Value {
                name,
                rule: rule.to_owned(),
            })
        };
        let Some(at) = at else {
            return match url {
                None => Ok(None),
                Some(_) => wrong("replica-address", "give --replica-listen, too"),
            };
        };
        if matches!(database, Backend::Sqlite(_)) {
            return wrong(
                "replica-listen",
                "with SQLite one server runs alone; give --database-url a PostgreSQL database, or leave this out",
            );
        }
        if url.as_deref().is_some_and(|url| !is_replica_url(url)) {
            return wrong(
                "replica-address",
                "give host and port that other replicas reach, such as http://10.0.0.7:8082",
            );
        }
        if url.is_none() && at.ip().is_unspecified() {
            return wrong(
                "replica-listen",
                "other replicas cannot connect to all addresses; give --replica-address, too, such as http://10.0.0.7:8082",
            );
        }
        Ok(Some(Self { at, url }))
    }
}

/// Returns true for a URL of a host over plain HTTP.
fn is_replica_url(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| {
        let plain = url.scheme() == "http" && url.path() == "/" && url.query().is_none();
        let named = url.username().is_empty() && url.password().is_none() && url.has_host();
        plain && named && url.fragment().is_none()
    })
}

/// The settings file of an installed package, which commands find by themselves unless they are told where the data is.
const USUAL_FILE: Option<&str> = option_env!("AGENTYARD_SETTINGS_FILE");

/// Returns the usual settings file unless the command line says where the data is, or this user may not read it: other users'
/// commands go to remote servers.
fn find_usual_file<'a>(common: &CommonArgs, usual: Option<&'a Path>) -> Option<&'a Path> {
    usual.filter(|path| !has_place(common) && std::fs::File::open(path).is_ok())
}

/// Returns true if the command line says where the data or the socket is.
fn has_place(common: &CommonArgs) -> bool {
    common.data_dir.is_some() || common.admin_socket.is_some()
}

/// Returns the usual settings file if it is there, this user may not read it, and the command line names no place itself.
pub fn hidden_usual_file(common: &CommonArgs) -> Option<&'static Path> {
    let denied = |path: &&Path| {
        let opened = std::fs::File::open(path);
        opened.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    };
    let usual = USUAL_FILE.map(Path::new);
    usual.filter(|path| !has_place(common) && denied(path))
}

/// The settings file: its lines are the long flags.
#[derive(Default, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct File {
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    init: InitArgs,
    #[command(flatten)]
    serve: ServeArgs,
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The settings file cannot be read, or is not understood.
    #[error("the settings file {} {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
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

/// The settings in effect.
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
    /// Configuration keys to set if they are unset.
    pub set: Vec<String>,
    /// The initial adapter.
    pub adapter: String,
    /// The file with the first superadmin's password.
    pub admin_password_file: Option<PathBuf>,
    /// API address.
    pub listen: SocketAddr,
    /// Address of the agent listener.
    pub agent_listen: AgentListen,
    /// Address of the metrics.
    pub metrics_listen: MetricsListen,
    /// The listener for other replicas, if there may be any.
    pub replicas: Option<ReplicaListen>,
    /// The container engine.
    pub engine: EngineSettings,
    /// Certificate and key for HTTPS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Directories in which scheduled backups may be kept.
    pub backup_directories: Vec<PathBuf>,
    /// Time between full passes, if not the reconcilers' own.
    pub resync: Option<Duration>,
    /// Time between full comparisons of one container, if not the usual.
    pub verify: Option<Duration>,
    /// Time between samples of what agents use, if not the usual.
    pub sample: Option<Duration>,
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
        let usual = find_usual_file(common, USUAL_FILE.map(Path::new));
        let file = match common.config.as_deref().or(usual) {
            Some(path) => read_file(path)?,
            None => File::default(),
        };
        let data_dir = common
            .data_dir
            .clone()
            .or(file.common.data_dir)
            .unwrap_or_else(|| PathBuf::from("data"));
        let data_dir = std::path::absolute(data_dir).map_err(SettingsError::WorkingDirectory)?;
        let database = match common.database_url.clone().or(file.common.database_url) {
            Some(url) => Backend::parse(&url).map_err(|error| SettingsError::Value {
                name: "database-url",
                rule: error.to_string(),
            })?,
            None => Backend::Sqlite(data_dir.join("agentyard.db")),
        };
        let engine = EngineSettings::resolve(serve, &file.serve, &data_dir)?;
        let tls_cert = serve.tls_cert.clone().or(file.serve.tls_cert);
        let tls_key = serve.tls_key.clone().or(file.serve.tls_key);
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
        let listen = serve
            .listen
            .or(file.serve.listen)
            .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8080)));
        let agent_listen = serve
            .agent_listen
            .or(file.serve.agent_listen)
            .unwrap_or_default();
        // Agents would reach the API of people at the one port of the host that is theirs.
        if agent_listen == AgentListen::Auto
            && listen.port() == AGENT_PORT
            && listen.ip().is_unspecified()
        {
            return Err(SettingsError::Value {
                name: "listen",
                rule: format!(
                    "port {AGENT_PORT} is that of the agent listener; choose another, or give --agent-listen"
                ),
            });
        }
        // The network of a cluster has no gateway that is the service's.
        let agent_listen = match (agent_listen, &engine) {
            (AgentListen::Auto, EngineSettings::Kubernetes { .. }) => {
                AgentListen::At((Ipv4Addr::UNSPECIFIED, AGENT_PORT).into())
            }
            (agent_listen, _) => agent_listen,
        };
        let replicas = ReplicaListen::resolve(
            serve.replica_listen.or(file.serve.replica_listen),
            serve.replica_address.clone().or(file.serve.replica_address),
            &database,
        )?;
        let mut backup_directories = file.serve.backup_directories;
        backup_directories.extend(serve.backup_directories.iter().cloned());
        // An empty variable of the environment names none.
        backup_directories.retain(|directory| !directory.as_os_str().is_empty());
        for directory in &backup_directories {
            check_allowed(directory).map_err(|rule| SettingsError::Value {
                name: "backup-directory",
                rule,
            })?;
        }
        let mut set = file.init.set;
        set.extend(init.set.iter().cloned());
        Ok(Self {
            admin_socket: common
                .admin_socket
                .clone()
                .or(file.common.admin_socket)
                .unwrap_or_else(|| data_dir.join("admin.sock")),
            engine,
            data_dir,
            database,
            log_format: common
                .log_format
                .or(file.common.log_format)
                .unwrap_or_default(),
            set,
            adapter: init
                .adapter
                .clone()
                .or(file.init.adapter)
                .unwrap_or_else(|| "picoclaw".to_owned()),
            admin_password_file: init
                .admin_password_file
                .clone()
                .or(file.init.admin_password_file),
            listen,
            agent_listen,
            metrics_listen: serve
                .metrics_listen
                .or(file.serve.metrics_listen)
                .unwrap_or_default(),
            replicas,
            tls,
            backup_directories,
            resync: serve.resync.or(file.serve.resync),
            verify: serve.verify.or(file.serve.verify),
            sample: serve.sample.or(file.serve.sample),
        })
    }
}

fn read_file(path: &Path) -> Result<File, SettingsError> {
    let wrong = |problem: String| SettingsError::File {
        path: path.to_owned(),
        problem,
    };
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let not_understood = |problem: &str| wrong(format!("is not understood: {problem}"));
    let lines: Option<BTreeMap<String, OneOrMany>> =
        serde_yaml::from_str(&text).map_err(|error| not_understood(&error.to_string()))?;
    let mut flags = Vec::new();
    for (name, values) in lines.unwrap_or_default() {
        let values = match values {
            OneOrMany::One(value) => value.into_iter().collect(),
            OneOrMany::Many(values) => values,
        };
        flags.extend(values.iter().map(|value| format!("--{name}={value}")));
    }
    // The environment was read with the command line, and a file names no other one.
    let command = File::command().mut_args(|arg| arg.env(None::<&str>));
    let command = command.mut_arg("config", |arg| arg.long(None));
    let matches = command.try_get_matches_from(flags);
    let file = matches.and_then(|matches| File::from_arg_matches(&matches));
    file.map_err(|error| {
        // Without the usage of a command line.
        let text = error.to_string();
        let problem = text.split("\n\n").next().unwrap_or_default();
        not_understood(problem.trim_start_matches("error: "))
    })
}

/// The value of a line of the settings file.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(Option<String>),
    Many(Vec<String>),
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
        let engine = EngineSettings::Docker {
            host: "unix:///var/run/docker.sock".to_owned(),
            cert_path: None,
            data_dir: "/srv/a".to_owned(),
        };
        assert_eq!(settings.engine, engine);
    }

    #[test]
    fn usual_file_is_left_only_for_another_place() {
        let (dir, common) = with_file("log-format: json\n");
        let usual = common.config.as_deref().unwrap();
        let is_found = |common: CommonArgs| find_usual_file(&common, Some(usual)).is_some();
        let place = Some(dir.path().to_owned());
        assert!(is_found(CommonArgs::default()));
        assert!(is_found(CommonArgs {
            database_url: Some("postgres://h/d".to_owned()),
            ..CommonArgs::default()
        }));
        assert!(!is_found(CommonArgs {
            data_dir: place.clone(),
            ..CommonArgs::default()
        }));
        assert!(!is_found(CommonArgs {
            admin_socket: place,
            ..CommonArgs::default()
        }));
        let missing = dir.path().join("missing");
        let common = CommonArgs::default();
        assert_eq!(find_usual_file(&common, Some(&missing)), None);
    }

    #[test]
    fn metrics_are_at_an_address_or_off() {
        for (text, expected) in [
            ("off", Some(MetricsListen::Off)),
            ("", Some(MetricsListen::Off)),
            ("127.0.0.1:9464", Some(MetricsListen::At(METRICS_ADDRESS))),
            ("9464", None),
        ] {
            assert_eq!(text.parse().ok(), expected, "{text}");
        }
        let usual = resolve(CommonArgs::default(), ServeArgs::default()).unwrap();
        assert_eq!(usual.metrics_listen, MetricsListen::Usual);
    }

    #[test]
    fn every_flag_has_an_environment_variable_of_its_name() {
        let command = File::command();
        for arg in command.get_arguments() {
            let (flag, variable) = (arg.get_long().unwrap(), arg.get_env().unwrap());
            let expected = format!("AGENTYARD_{}", flag.replace('-', "_").to_uppercase());
            assert_eq!(variable.to_str(), Some(&*expected));
        }
    }

    #[test]
    fn every_flag_is_a_line_of_the_file_and_sets_add_up() {
        let docker =
            "engine: docker\nengine-data-dir: /c\ndocker-host: tcp://d\ndocker-cert-path: /e\n";
        let kubernetes = "engine: kubernetes\nengine-options: /o\n";
        let lines = "data-dir: /srv/a\ndatabase-url: postgres://b/c\nadmin-socket: /srv/s\nlog-format: json\n\
            set: [image.tag=1]\nadapter: echo\nadmin-password-file: /h\nlisten: 127.0.0.1:1\nagent-listen: 127.0.0.1:2\n\
            tls-cert: /f\ntls-key: /g\n\
            resync: 5s\nverify: 6s\nsample: 7s\nmetrics-listen: 127.0.0.1:3\n\
            backup-directory: [/mnt/a, /mnt/b]\n\
            replica-listen: 127.0.0.1:4\nreplica-address: http://a:4\n";
        let flags: Vec<_> = File::command()
            .get_arguments()
            .filter_map(|arg| arg.get_long().filter(|name| *name != "config"))
            .map(str::to_owned)
            .collect();
        for flag in flags {
            let line = format!("{flag}: ");
            let known = [lines, docker, kubernetes].map(|lines| lines.contains(&line));
            assert!(known.contains(&true), "{flag}");
        }
        let of = |engine: &str| {
            let (_dir, common) = with_file(&format!("{lines}{engine}"));
            resolve(common, ServeArgs::default()).unwrap().engine
        };
        let expected = EngineSettings::Docker {
            host: "tcp://d".to_owned(),
            cert_path: Some("/e".into()),
            data_dir: "/c".to_owned(),
        };
        assert_eq!(of(docker), expected);
        let options = "/o".into();
        assert_eq!(of(kubernetes), EngineSettings::Kubernetes { options });
        let (_dir, common) = with_file(lines);
        let init = InitArgs {
            set: vec!["image.tag=2".to_owned()],
            ..InitArgs::default()
        };
        let settings = Settings::resolve(&common, &init, &ServeArgs::default()).unwrap();
        assert_eq!(settings.set, ["image.tag=1", "image.tag=2"]);
        assert_eq!(settings.adapter, "echo");
        assert_eq!(settings.log_format, LogFormat::Json);
        assert_eq!(settings.tls, Some(("/f".into(), "/g".into())));
        assert_eq!(settings.verify, Some(Duration::from_secs(6)));
        let directories = ["/mnt/a", "/mnt/b"].map(PathBuf::from);
        assert_eq!(settings.backup_directories, directories);
    }

    #[test]
    fn agents_of_a_cluster_reach_the_service_at_all_its_addresses() {
        let of = |lines: &str| {
            let (_dir, common) = with_file(lines);
            resolve(common, ServeArgs::default()).unwrap().agent_listen
        };
        let cluster = "engine: kubernetes\nengine-options: /o\n";
        let all = AgentListen::At("0.0.0.0:8081".parse().unwrap());
        assert_eq!(of(cluster), all);
        assert_eq!(
            of(&format!("{cluster}agent-listen: 'off'")),
            AgentListen::Off
        );
        assert_eq!(of(""), AgentListen::Auto);
    }

    #[test]
    fn replicas_reach_each_other_at_an_address() {
        let of = |lines: &str| {
            let (_dir, common) = with_file(&format!("database-url: postgres://h/d\n{lines}"));
            resolve(common, ServeArgs::default()).unwrap().replicas
        };
        let found = |at: &str, url: Option<&str>| {
            let (at, url) = (at.parse().unwrap(), url.map(str::to_owned));
            Some(ReplicaListen { at, url })
        };
        assert_eq!(of(""), None);
        let concrete = "replica-listen: 10.0.0.7:8082";
        assert_eq!(of(concrete), found("10.0.0.7:8082", None));
        let all = "replica-listen: 0.0.0.0:8082\nreplica-address: http://one:8082";
        assert_eq!(of(all), found("0.0.0.0:8082", Some("http://one:8082")));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("listne: 0.0.0.0:9000", "listne"),
            ("agent-listen: sometimes", "agent-listen"),
            ("tls-cert: /x", "tls-cert, tls-key"),
            ("database-url: mysql://u:secret@h/d", "database-url"),
            ("listen: [", "not understood"),
            ("listen: nowhere", "'--listen <ADDRESS>'"),
            ("config: other.yaml", "--config"),
            ("listen: 0.0.0.0:8081", "agent listener"),
            ("engine: podman", "--engine <ENGINE>"),
            ("engine: kubernetes", "engine-options: name the file"),
            ("engine-options: /o", "--engine kubernetes"),
            (
                "engine: kubernetes\nengine-options: /o\ndocker-host: tcp://d",
                "docker-host: this is for Docker only",
            ),
            (
                "engine: kubernetes\nengine-options: /o\nengine-data-dir: /d",
                "engine-data-dir: this is for Docker only",
            ),
            ("replica-listen: 10.0.0.7:8082", "PostgreSQL"),
            (
                "backup-directory: backup",
                "backup-directory: backup must be",
            ),
            ("backup-directory: /", "all directories"),
            ("backup-directory: /proc/1/root", "belongs to the system"),
            ("replica-address: http://10.0.0.7:8082", "--replica-listen"),
            (
                "database-url: postgres://u:secret@h/d\nreplica-listen: 0.0.0.0:8082",
                "--replica-address",
            ),
            (
                "database-url: postgres://u:secret@h/d\nreplica-listen: 10.0.0.7:1\nreplica-address: https://a/b",
                "http://",
            ),
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
