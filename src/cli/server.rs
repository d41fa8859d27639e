//! The server that a command talks to, and how to address it again.

use std::path::{Path, PathBuf};

use super::context::Remote;
use super::{Result, failed};
use crate::settings::{CommonArgs, InitArgs, ServeArgs, Settings};

/// The running server.
pub struct Server {
    /// Its administration socket; empty when it is reached over the network.
    pub socket: PathBuf,
    /// Where it is reached over the network.
    pub(super) remote: Option<Remote>,
    pub(super) client: reqwest::Client,
    /// How a command line must begin to reach the same server: for commands that are suggested.
    pub command: String,
    /// The usual settings file, which this user may not read.
    pub(super) hidden_settings: Option<&'static Path>,
}

impl Server {
    /// The server that flags, environment and settings file name.
    ///
    /// # Errors
    /// When a setting is not valid.
    pub fn resolve(common: &CommonArgs) -> Result<Self> {
        let settings = Settings::resolve(common, &InitArgs::default(), &ServeArgs::default())?;
        // What came from the environment holds for the next command, too.
        let flag = |name: &str, given: bool| given && std::env::var_os(name).is_none();
        let by_flag = flag("AGENTYARD_ADMIN_SOCKET", common.admin_socket.is_some())
            || flag("AGENTYARD_DATA_DIR", common.data_dir.is_some())
            || flag("AGENTYARD_CONFIG", common.config.is_some());
        let mut server = Self::new(&settings)?;
        server.hidden_settings = crate::settings::hidden_usual_file(common);
        if by_flag {
            let socket = quoted(&server.socket.display().to_string());
            server.command += &format!(" --admin-socket {socket}");
        }
        Ok(server)
    }

    /// A server that is reached over the network; `command` begins a command line for it.
    ///
    /// # Errors
    /// When there can be no client for it.
    pub fn remote(remote: Remote, command: String) -> Result<Self> {
        Ok(Self {
            socket: PathBuf::new(),
            client: remote.client()?,
            remote: Some(remote),
            command,
            hidden_settings: None,
        })
    }

    /// The server with these settings.
    ///
    /// # Errors
    /// When there can be no client for it.
    pub fn new(settings: &Settings) -> Result<Self> {
        // The client asks for the process's TLS provider, though it never uses TLS.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .unix_socket(settings.admin_socket.as_path())
            // The socket is local: no certificates to load, and an old connection is worth nothing.
            .tls_certs_only([])
            .pool_max_idle_per_host(0)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(failed)?;
        Ok(Self {
            socket: settings.admin_socket.clone(),
            remote: None,
            client,
            command: "agentyard".to_owned(),
            hidden_settings: None,
        })
    }
}

/// For a shell.
fn quoted(text: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if text.chars().all(harmless) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proposed_command_reaches_the_same_server() {
        let common = CommonArgs {
            data_dir: Some("/srv/it's here".into()),
            ..CommonArgs::default()
        };
        let server = Server::resolve(&common).unwrap();
        assert_eq!(
            server.command,
            "agentyard --admin-socket '/srv/it'\\''s here/admin.sock'"
        );
        assert_eq!(
            Server::resolve(&CommonArgs::default()).unwrap().command,
            "agentyard"
        );
    }
}
