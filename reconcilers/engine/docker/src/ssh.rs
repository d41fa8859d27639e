//! An engine behind SSH, as Docker's own command line reaches it: `ssh host docker system dial-stdio`
//! joins its standard input and output to the engine's socket.
//!
//! One `ssh` process per connection. Keys, known hosts and jump hosts come from the configuration
//! of the user that runs the service; nothing is ever asked (`BatchMode`).

use std::ffi::{OsStr, OsString};
use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll};

use bollard::{API_DEFAULT_VERSION, BollardRequest, Docker};
use engine::EngineError;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::connect::CLIENT_TIMEOUT_SECS;
use super::failure::from_client;

/// The parts of `[user@]host[:port]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Destination {
    user: Option<String>,
    host: String,
    port: Option<u16>,
}

impl Destination {
    /// Reads a destination; `None` when it is none, or one that `ssh` could take for an option.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (user, rest) = match text.rsplit_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, text),
        };
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => match rest.split_once(']')? {
                (host, "") => (host, None),
                (host, port) => (host, Some(port.strip_prefix(':')?)),
            },
            None => match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            },
        };
        let word = |text: &str| {
            !text.is_empty()
                && !text.starts_with('-')
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"._-:%".contains(&byte))
        };
        if !word(host) || !user.is_none_or(word) {
            return None;
        }
        let port = match port {
            Some(port) => Some(port.parse().ok()?),
            None => None,
        };
        Some(Self {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port,
        })
    }

    pub(super) fn command(&self, program: &OsStr) -> Command {
        let mut command = Command::new(program);
        command.args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-T"]);
        if let Some(user) = &self.user {
            command.args(["-l", user]);
        }
        if let Some(port) = self.port {
            command.args(["-p", &port.to_string()]);
        }
        command.args(["--", &self.host, "docker", "system", "dial-stdio"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

/// A client whose connections are `ssh` processes.
pub(super) fn open_client(authority: &str) -> Result<Docker, EngineError> {
    open_client_with(OsString::from("ssh"), authority)
}

fn open_client_with(program: OsString, authority: &str) -> Result<Docker, EngineError> {
    let destination = Destination::parse(authority)
        .ok_or_else(|| EngineError::Unavailable("not an SSH destination".into()))?;
    let connector = tower::service_fn(move |_: http::Uri| {
        let dialled = Dialled::dial_host(destination.command(&program)).map(TokioIo::new);
        std::future::ready(dialled)
    });
    let client = Client::builder(TokioExecutor::new()).build(connector);
    Docker::connect_with_custom_transport(
        move |request: BollardRequest| {
            let client = client.clone();
            async move {
                client
                    .request(request)
                    .await
                    .map_err(bollard::errors::Error::from)
            }
        },
        // The host is in the command line; this one only fills the `Host` header.
        Some("http://docker"),
        CLIENT_TIMEOUT_SECS,
        API_DEFAULT_VERSION,
    )
    .map_err(from_client)
}

/// The two pipes of a running `ssh`, which ends with them.
pub(super) struct Dialled {
    input: ChildStdin,
    output: ChildStdout,
    _process: Child,
}

impl Dialled {
    /// Starts `ssh`.
    pub(super) fn dial_host(mut command: Command) -> io::Result<Self> {
        let mut process = command.spawn()?;
        match (process.stdin.take(), process.stdout.take()) {
            (Some(input), Some(output)) => Ok(Self {
                input,
                output,
                _process: process,
            }),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl AsyncRead for Dialled {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_read(context, buffer)
    }
}

impl AsyncWrite for Dialled {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.input).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.input).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.input).poll_shutdown(context)
    }
}

impl Connection for Dialled {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("engine", Some((None, "engine", None)))]
    #[case("root@engine:2222", Some((Some("root"), "engine", Some(2222))))]
    #[case("root@[::1]:22", Some((Some("root"), "::1", Some(22))))]
    #[case("engine:ssh", None)]
    #[case("-oProxyCommand=touch", None)]
    #[case("-l@engine", None)]
    #[case("a b@engine", None)]
    #[case("@engine", None)]
    fn a_destination_cannot_be_an_option(
        #[case] text: &str,
        #[case] expected: Option<(Option<&str>, &str, Option<u16>)>,
    ) {
        let seen = Destination::parse(text);
        let seen = seen
            .as_ref()
            .map(|seen| (seen.user.as_deref(), seen.host.as_str(), seen.port));
        assert_eq!(seen, expected);
    }

    #[tokio::test]
    async fn requests_use_the_ssh_program_and_its_end_breaks_them() {
        use std::os::unix::fs::PermissionsExt;

        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("ssh");
        let script = "#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$0.arguments\"\n\
            [ ! -e \"$0.broken\" ] || exit 255\n\
            while read -r line && [ ${#line} -gt 1 ]; do :; done\n\
            printf 'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nOK'\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let docker = open_client_with(program.into(), "alice@engine:2222").unwrap();
        assert_eq!(docker.ping().await.unwrap(), "OK");
        let arguments = std::fs::read_to_string(directory.path().join("ssh.arguments")).unwrap();
        let arguments: Vec<_> = arguments.lines().skip(5).collect();
        let expected = [
            "-l",
            "alice",
            "-p",
            "2222",
            "--",
            "engine",
            "docker",
            "system",
            "dial-stdio",
        ];
        assert_eq!(arguments, expected);

        std::fs::write(directory.path().join("ssh.broken"), "").unwrap();
        let error = from_client(docker.ping().await.unwrap_err());
        assert!(matches!(error, EngineError::Unavailable(_)), "{error:?}");
    }
}
