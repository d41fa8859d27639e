//! The engine that the settings name.

use std::path::Path;
use std::sync::Arc;

use engine::{EngineAddress, EngineContext};
use engine_docker::DockerAddress;
use reconcilers::drivers::registry::{self, OciRegistry};
use reconcilers::shared::image_digests::ConfiguredRegistry;
use reconcilers::stores::Database;
use schema::clock::{SharedClock, SystemClock};

use super::Error;
use crate::prepare::Prepared;
use crate::settings::{EngineSettings, Settings, SettingsError};

/// Reads the address of the engine from the settings.
///
/// # Errors
/// It is not understood, or this program was built without that engine.
pub fn read_address(settings: &Settings) -> Result<Box<dyn EngineAddress>, SettingsError> {
    match &settings.engine {
        EngineSettings::Docker {
            host,
            cert_path,
            data_dir,
        } => {
            let address = DockerAddress::new(host, cert_path.as_deref(), data_dir);
            let address = address.map_err(|error| invalid_setting("docker-host", &error))?;
            Ok(Box::new(address))
        }
        EngineSettings::Kubernetes { options } => read_kubernetes(options),
    }
}

/// Returns what an engine may need of this instance.
///
/// # Errors
/// No connections can be made.
pub fn make_context(prepared: &Prepared) -> Result<EngineContext, Error> {
    let clock: SharedClock = Arc::new(SystemClock);
    let key = Arc::clone(&prepared.master_key);
    let store = Database::new(prepared.db.clone(), key, Arc::clone(&clock));
    let registry = OciRegistry::new(registry::Limits::default())?;
    Ok(EngineContext {
        owner: prepared.instance_id.clone(),
        clock,
        digests: Arc::new(ConfiguredRegistry::new(registry, Arc::new(store))),
    })
}

fn invalid_setting(name: &'static str, error: &dyn std::fmt::Display) -> SettingsError {
    SettingsError::Value {
        name,
        rule: error.to_string(),
    }
}

#[cfg(feature = "kubernetes")]
fn read_kubernetes(options: &Path) -> Result<Box<dyn EngineAddress>, SettingsError> {
    let read = engine_kubernetes::Options::read(options);
    let (read, unknown) = read.map_err(|error| invalid_setting("engine-options", &error))?;
    for field in unknown {
        let file = options.display();
        tracing::warn!(%file, field, "the options of the cluster have a field that is not known; it is left out");
    }
    Ok(Box::new(read))
}

#[cfg(not(feature = "kubernetes"))]
fn read_kubernetes(_: &Path) -> Result<Box<dyn EngineAddress>, SettingsError> {
    let rule = "this program was built without Kubernetes; use the released program or image, or build it with `--features kubernetes`";
    Err(invalid_setting("engine", &rule))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{CommonArgs, EngineName, ServeArgs};

    fn read_options(options: &Path) -> Result<Box<dyn EngineAddress>, SettingsError> {
        let serve = ServeArgs {
            engine: Some(EngineName::Kubernetes),
            engine_options: Some(options.to_owned()),
            ..ServeArgs::default()
        };
        let settings = Settings::resolve(&CommonArgs::default(), &Default::default(), &serve);
        read_address(&settings.unwrap())
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
