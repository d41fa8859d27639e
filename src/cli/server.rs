//! Which server a command speaks with, and how to name it again.

use crate::settings::{CommonArgs, InitArgs, ServeArgs, Settings, SettingsError};

/// The running server.
pub struct Server {
    /// Where it is.
    pub settings: Settings,
    /// How a command line must begin to reach the same one: for commands that are proposed.
    pub command: String,
}

impl Server {
    /// The one that flags, environment and settings file name.
    ///
    /// # Errors
    /// When a setting is not understood.
    pub fn resolve(common: &CommonArgs) -> Result<Self, SettingsError> {
        let settings = Settings::resolve(common, &InitArgs::default(), &ServeArgs::default())?;
        // What came from the environment holds for the next command, too.
        let flag = |name: &str, given: bool| given && std::env::var_os(name).is_none();
        let by_flag = flag("AGENTYARD_ADMIN_SOCKET", common.admin_socket.is_some())
            || flag("AGENTYARD_DATA_DIR", common.data_dir.is_some())
            || flag("AGENTYARD_CONFIG", common.config.is_some());
        let command = if by_flag {
            let socket = settings.admin_socket.display().to_string();
            format!("agentyard --admin-socket {}", quoted(&socket))
        } else {
            "agentyard".to_owned()
        };
        Ok(Self { settings, command })
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
