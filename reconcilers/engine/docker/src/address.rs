//! A Docker Engine that settings name.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use engine::{
    Compute, Containers, EngineAddress, EngineCheck, EngineContext, EngineError, EngineFacts,
};

use super::{DockerEngine, DockerHost, FACTS, InvalidDockerHost, TlsFiles, compute};

/// Address of a Docker Engine.
#[derive(Debug)]
pub struct DockerAddress {
    host: DockerHost,
    tls: Option<TlsFiles>,
    data_dir: String,
}

impl DockerAddress {
    /// Reads the address: its URL, the folder of client certificates for it, and the data directory as its host sees it.
    ///
    /// # Errors
    /// The URL is not understood.
    pub fn new(
        host: &str,
        certificates: Option<&Path>,
        data_dir: &str,
    ) -> Result<Self, InvalidDockerHost> {
        let tls = certificates.map(|folder| TlsFiles {
            ca: folder.join("ca.pem"),
            cert: folder.join("cert.pem"),
            key: folder.join("key.pem"),
        });
        Ok(Self {
            host: host.parse()?,
            tls,
            data_dir: data_dir.to_owned(),
        })
    }
}

#[async_trait]
impl EngineAddress for DockerAddress {
    fn facts(&self) -> EngineFacts {
        FACTS
    }

    fn certificates(&self) -> Vec<PathBuf> {
        let files = self.tls.iter();
        files
            .flat_map(|files| [files.ca.clone(), files.cert.clone()])
            .collect()
    }

    async fn check(&self) -> Result<EngineCheck, EngineError> {
        let engine = DockerEngine::new(self.host.clone(), self.tls.clone());
        Ok(engine.info().await?.into())
    }

    async fn compute(
        self: Box<Self>,
        context: EngineContext,
    ) -> Result<Compute, Box<dyn std::error::Error + Send + Sync>> {
        let Self {
            host,
            tls,
            data_dir,
        } = *self;
        Ok(compute(host, tls, &context.owner, &data_dir))
    }
}
