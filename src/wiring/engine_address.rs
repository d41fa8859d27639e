//! The engine that the settings name.

use std::path::Path;

use engine::{Compute, Containers, EngineError, EngineFacts, EngineInfo};
use engine_docker::{DockerEngine, DockerHost, TlsFiles};

use super::Error;
use crate::settings::Settings;

/// Words of the engine, for people.
pub const FACTS: EngineFacts = engine_docker::FACTS;

/// Address of the engine. It is connected to when it is first needed.
#[derive(Debug)]
pub struct EngineAddress {
    host: DockerHost,
    tls: Option<TlsFiles>,
}

impl EngineAddress {
    /// Reads the address from the settings.
    ///
    /// # Errors
    /// When it is not understood.
    pub fn from_settings(settings: &Settings) -> Result<Self, Error> {
        let directory = settings.docker_cert_path.as_deref();
        let tls = directory.map(|directory: &Path| TlsFiles {
            ca: directory.join("ca.pem"),
            cert: directory.join("cert.pem"),
            key: directory.join("key.pem"),
        });
        Ok(Self {
            host: settings.docker_host.parse()?,
            tls,
        })
    }

    /// Reads version and host facts of the engine.
    ///
    /// # Errors
    /// Whatever the engine answers.
    pub async fn info(self) -> Result<EngineInfo, EngineError> {
        DockerEngine::new(self.host, self.tls).info().await
    }

    /// The engine for the instance `owner`, which sees the data directory at `data_dir`.
    pub fn compute(self, owner: &str, data_dir: &str) -> Compute {
        engine_docker::compute(self.host, self.tls, owner, data_dir)
    }
}
