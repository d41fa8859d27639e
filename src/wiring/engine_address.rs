//! The engine that the settings name.

use std::path::Path;
#[cfg(feature = "kubernetes")]
use std::sync::Arc;

use engine::{Compute, Containers, EngineError, EngineFacts, EngineInfo};
use engine_docker::{DockerEngine, DockerHost, TlsFiles};
#[cfg(feature = "kubernetes")]
use reconcilers::{
    drivers::registry::{self, OciRegistry},
    shared::image_digests::ConfiguredRegistry,
    stores::Database,
};

use super::Error;
use crate::prepare::Prepared;
use crate::settings::{EngineSettings, Settings, SettingsError};

/// Address of the engine. It is connected to when it is first needed.
#[derive(Debug)]
pub enum EngineAddress {
    /// Docker Engine.
    Docker {
        /// Its URL.
        host: DockerHost,
        /// Client certificates for it.
        tls: Option<TlsFiles>,
        /// The data directory as its host sees it.
        data_dir: String,
    },
    /// A namespace of a Kubernetes cluster.
    #[cfg(feature = "kubernetes")]
    Kubernetes(Box<engine_kubernetes::Options>),
}

impl EngineAddress {
    /// Reads the address from the settings.
    ///
    /// # Errors
    /// It is not understood, or this program was built without that engine.
    pub fn from_settings(settings: &Settings) -> Result<Self, SettingsError> {
        match &settings.engine {
            EngineSettings::Docker {
                host,
                cert_path,
                data_dir,
            } => {
                let tls = cert_path.as_deref().map(|directory: &Path| TlsFiles {
                    ca: directory.join("ca.pem"),
                    cert: directory.join("cert.pem"),
                    key: directory.join("key.pem"),
                });
                let host = host.parse::<DockerHost>();
                let host = host.map_err(|error| invalid_setting("docker-host", &error))?;
                let data_dir = data_dir.clone();
                Ok(Self::Docker {
                    host,
                    tls,
                    data_dir,
                })
            }
            EngineSettings::Kubernetes { options } => read_kubernetes(options),
        }
    }

    /// Words of the engine, for people.
    pub fn facts(&self) -> EngineFacts {
        match self {
            Self::Docker { .. } => engine_docker::FACTS,
            #[cfg(feature = "kubernetes")]
            Self::Kubernetes(_) => engine_kubernetes::FACTS,
        }
    }

    /// Returns true for an engine that gives the service rights one by one.
    pub fn has_rights(&self) -> bool {
        match self {
            Self::Docker { .. } => false,
            #[cfg(feature = "kubernetes")]
            Self::Kubernetes(_) => true,
        }
    }

    /// Reads version and host facts of the engine, and what keeps the service from using it.
    ///
    /// # Errors
    /// Whatever the engine answers.
    pub async fn check(self) -> Result<EngineCheck, EngineError> {
        match self {
            Self::Docker { host, tls, .. } => {
                let info = DockerEngine::new(host, tls).info().await?;
                Ok(EngineCheck::from_info(info))
            }
            #[cfg(feature = "kubernetes")]
            Self::Kubernetes(options) => {
                let clock = Arc::new(schema::clock::SystemClock);
                let engine = engine_kubernetes::KubernetesEngine::new(*options, "", clock).await;
                let engine = engine.map_err(|error| EngineError::Unavailable(Box::new(error)))?;
                let info = engine.info().await?;
                let rights = engine.rights().await?;
                Ok(EngineCheck {
                    lacking: rights.lacking,
                    absent: rights.absent,
                    ..EngineCheck::from_info(info)
                })
            }
        }
    }

    /// The engine for this instance. To be called within a Tokio runtime.
    ///
    /// # Errors
    /// The way to it cannot be read.
    // Without Kubernetes nothing is awaited.
    #[allow(clippy::unused_async)]
    pub async fn compute(self, prepared: &Prepared) -> Result<Compute, Error> {
        let owner = &prepared.instance_id;
        match self {
            Self::Docker {
                host,
                tls,
                data_dir,
            } => Ok(engine_docker::compute(host, tls, owner, &data_dir)),
            #[cfg(feature = "kubernetes")]
            Self::Kubernetes(options) => {
                let clock: schema::clock::SharedClock = Arc::new(schema::clock::SystemClock);
                let key = Arc::clone(&prepared.master_key);
                let store = Database::new(prepared.db.clone(), key, Arc::clone(&clock));
                let registry = OciRegistry::new(registry::Limits::default())?;
                let digests = Arc::new(ConfiguredRegistry::new(registry, Arc::new(store)));
                Ok(engine_kubernetes::compute(*options, owner, clock, digests).await?)
            }
        }
    }
}

/// Findings about an engine.
#[derive(Debug)]
pub struct EngineCheck {
    /// Version and host facts.
    pub info: EngineInfo,
    /// Rights that the service lacks, such as `create pods`.
    pub lacking: Vec<String>,
    /// Sentences about parts that are off, and that the service can do without.
    pub absent: Vec<String>,
}

impl EngineCheck {
    fn from_info(info: EngineInfo) -> Self {
        Self {
            info,
            lacking: Vec::new(),
            absent: Vec::new(),
        }
    }
}

fn invalid_setting(name: &'static str, error: &dyn std::fmt::Display) -> SettingsError {
    SettingsError::Value {
        name,
        rule: error.to_string(),
    }
}

#[cfg(feature = "kubernetes")]
fn read_kubernetes(options: &Path) -> Result<EngineAddress, SettingsError> {
    let read = engine_kubernetes::Options::read(options);
    let (read, unknown) = read.map_err(|error| invalid_setting("engine-options", &error))?;
    for field in unknown {
        let file = options.display();
        tracing::warn!(%file, field, "the options of the cluster have a field that is not known; it is left out");
    }
    Ok(EngineAddress::Kubernetes(Box::new(read)))
}

#[cfg(not(feature = "kubernetes"))]
fn read_kubernetes(_: &Path) -> Result<EngineAddress, SettingsError> {
    let rule = "this program was built without Kubernetes; use the released program or image, or build it with `--features kubernetes`";
    Err(invalid_setting("engine", &rule))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{CommonArgs, EngineName, ServeArgs};

    fn read_options(options: &Path) -> Result<EngineAddress, SettingsError> {
        let serve = ServeArgs {
            engine: Some(EngineName::Kubernetes),
            engine_options: Some(options.to_owned()),
            ..ServeArgs::default()
        };
        let settings = Settings::resolve(&CommonArgs::default(), &Default::default(), &serve);
        EngineAddress::from_settings(&settings.unwrap())
    }

    #[cfg(not(feature = "kubernetes"))]
    #[test]
    fn program_without_kubernetes_says_so() {
        let said = read_options(Path::new("/options.yaml"))
            .unwrap_err()
            .to_string();
        assert!(said.contains("built without Kubernetes"), "{said}");
    }

    #[cfg(feature = "kubernetes")]
    #[test]
    fn wrong_options_of_a_cluster_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("options.yaml");
        let said = read_options(&path).unwrap_err().to_string();
        assert!(said.starts_with("engine-options: "), "{said}");
        std::fs::write(&path, "image: x\n").unwrap();
        let said = read_options(&path).unwrap_err().to_string();
        assert!(said.contains("missing field"), "{said}");
        let least =
            "image: x\ndata: { claim: data }\nnetwork: { serviceUrl: 'http://x' }\nmore: 1\n";
        std::fs::write(&path, least).unwrap();
        assert_eq!(read_options(&path).unwrap().facts().name, "Kubernetes");
    }
}
