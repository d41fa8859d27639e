//! Which server a command is for.

use std::path::Path;

use secrecy::SecretString;

use super::ContextArgs;
use super::remote::{Credential, Remote};
use super::store::{LOCAL, Store, read, read_secret};
use crate::cli::server::Server;
use crate::cli::{Failure, Result};
use crate::settings::CommonArgs;

/// Source of a server.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    /// The administration socket.
    Local,
    /// A context.
    Context(String),
    /// The environment: an address and a token.
    Environment(String),
}

/// Inputs of the choice.
struct Given<'a> {
    /// `--context`, or its variable.
    context: Option<&'a str>,
    /// `--context` stands on the command line.
    by_flag: bool,
    /// A flag names the server on this machine.
    local_flag: bool,
    /// A variable of the environment does.
    local_variable: bool,
    /// `AGENTYARD_URL`.
    url: Option<String>,
}

impl<'a> Given<'a> {
    fn new(common: &CommonArgs, args: &'a ContextArgs) -> Self {
        let context = args.context.as_deref().filter(|name| !name.is_empty());
        let places = [
            ("AGENTYARD_ADMIN_SOCKET", &common.admin_socket),
            ("AGENTYARD_DATA_DIR", &common.data_dir),
            ("AGENTYARD_CONFIG", &common.config),
        ];
        let named = |by_variable: bool| {
            let mut named = places
                .iter()
                .filter_map(|(name, given)| Some((name, given.as_deref()?)));
            named.any(|(name, given)| {
                (std::env::var_os(name).as_deref() == Some(given.as_os_str())) == by_variable
            })
        };
        Self {
            context,
            by_flag: context.is_some() && variable("AGENTYARD_CONTEXT").as_deref() != context,
            local_flag: named(false),
            local_variable: named(true),
            url: variable("AGENTYARD_URL"),
        }
    }

    /// Flags decide before the environment, and that before the current context.
    fn choose(&self, current: impl FnOnce() -> Result<Option<String>>) -> Result<Choice> {
        let named = |name: &str| match name {
            LOCAL => Choice::Local,
            name => Choice::Context(name.to_owned()),
        };
        match (self.context, &self.url) {
            (Some(name), _) if self.by_flag => {
                let choice = named(name);
                if self.local_flag && choice != Choice::Local {
                    return Err(Failure::Usage(
                        "--context names a remote server; remove --data-dir, --admin-socket and --config".to_owned(),
                    ));
                }
                Ok(choice)
            }
            _ if self.local_flag => Ok(Choice::Local),
            (Some(name), _) => Ok(named(name)),
            (None, Some(url)) => Ok(Choice::Environment(url.clone())),
            (None, None) if self.local_variable => Ok(Choice::Local),
            (None, None) => Ok(current()?.map_or(Choice::Local, Choice::Context)),
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn current() -> Result<Option<String>> {
    // Without a home there are no contexts.
    Store::of_user().map_or(Ok(None), |store| store.current())
}

/// The server that flags, environment and the current context name.
///
/// # Errors
/// When they contradict each other, or the context cannot be used.
pub fn choose(common: &CommonArgs, args: &ContextArgs) -> Result<Server> {
    let given = Given::new(common, args);
    match given.choose(current)? {
        Choice::Local => Server::resolve(common),
        Choice::Context(name) => {
            let remote = Store::of_user()?.load(&name)?;
            let command = match given.by_flag {
                true => format!("agentyard --context {name}"),
                false => "agentyard".to_owned(),
            };
            Server::remote(remote, command)
        }
        Choice::Environment(url) => Server::remote(of_environment(&url)?, "agentyard".to_owned()),
    }
}

fn of_environment(url: &str) -> Result<Remote> {
    let token: SecretString = match (
        variable("AGENTYARD_TOKEN_FILE"),
        variable("AGENTYARD_TOKEN"),
    ) {
        (Some(file), _) => read_secret(Path::new(&file))
            .map_err(|error| error.into_failure(Path::new(&file)))?
            .trim()
            .into(),
        (None, Some(token)) => token.into(),
        (None, None) => {
            return Err(Failure::Usage(
                "AGENTYARD_URL needs an API token: set AGENTYARD_TOKEN_FILE or AGENTYARD_TOKEN"
                    .to_owned(),
            ));
        }
    };
    let ca = variable("AGENTYARD_CA_FILE").map(|file| read_ca(Path::new(&file)));
    let mut remote = Remote::new(None, url, ca.transpose()?)?;
    remote.credential = Some(Credential::Token(token));
    Ok(remote)
}

/// Reads a file of certificates.
pub(super) fn read_ca(path: &Path) -> Result<String> {
    let text = read(path);
    let text = text.map_err(|error| {
        Failure::Failed(format!(
            "the CA file {} cannot be read: {error}",
            path.display()
        ))
    })?;
    super::remote::authorities(&text)?;
    Ok(text)
}

/// Refuses a context for a command that works on the server's machine only.
///
/// # Errors
/// When the command line or the environment name a server elsewhere, or the current context does and the command acts on what
/// is there.
pub fn refuse(command: &str, common: &CommonArgs, args: &ContextArgs) -> Result {
    let given = Given::new(common, args);
    // To serve or to prepare a data directory has nothing to do with where this user is signed in.
    let acts = !["serve", "init"].contains(&command);
    let chosen = given.choose(|| if acts { current() } else { Ok(None) })?;
    let (what, remedy) = match chosen {
        Choice::Local => return Ok(()),
        Choice::Environment(_) if !acts => return Ok(()),
        Choice::Environment(url) => (url, "unset AGENTYARD_URL".to_owned()),
        Choice::Context(name) => (
            format!("context {name}"),
            format!("add `--context {LOCAL}`, or set --data-dir"),
        ),
    };
    Err(Failure::Usage(format!(
        "`agentyard {command}` works on the server's machine only, not on {what}; on that machine, {remedy}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(context: Option<&str>, by_flag: bool) -> Given<'_> {
        Given {
            context,
            by_flag,
            local_flag: false,
            local_variable: false,
            url: None,
        }
    }

    #[test]
    fn flags_win_over_the_environment_and_that_over_the_current_context() {
        let context = |name: &str| Choice::Context(name.to_owned());
        let cases = [
            (given(Some("a"), true), context("a")),
            (given(Some("local"), true), Choice::Local),
            (given(Some("a"), false), context("a")),
            (given(None, false), context("now")),
            (
                Given {
                    local_flag: true,
                    ..given(Some("a"), false)
                },
                Choice::Local,
            ),
            (
                Given {
                    url: Some("https://e".to_owned()),
                    local_variable: true,
                    ..given(None, false)
                },
                Choice::Environment("https://e".to_owned()),
            ),
            (
                Given {
                    local_variable: true,
                    ..given(None, false)
                },
                Choice::Local,
            ),
        ];
        for (given, expected) in cases {
            let chosen = given.choose(|| Ok(Some("now".to_owned()))).unwrap();
            assert_eq!(chosen, expected);
        }
        assert_eq!(
            given(None, false).choose(|| Ok(None)).unwrap(),
            Choice::Local
        );
        let both = Given {
            local_flag: true,
            ..given(Some("a"), true)
        };
        assert!(both.choose(|| Ok(None)).is_err());
    }
}
