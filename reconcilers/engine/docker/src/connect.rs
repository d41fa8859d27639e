//! Where the engine is, and the connection to it.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use bollard::{API_DEFAULT_VERSION, Docker};
use engine::EngineError;
use tokio::sync::OnceCell;

use super::failure::from_client;
use super::ssh;

/// The client library's own time limit, in seconds. It covers only the time to the answer's head,
/// so it is out of the way and every call has a limit of ours around the whole of it.
pub(super) const CLIENT_TIMEOUT_SECS: u64 = 24 * 60 * 60;

/// The address of an engine, in the words of `DOCKER_HOST`.
///
/// `unix:///path`, `tcp://host:port` and `http://host:port` (plain, or TLS when certificates are
/// given), `https://host:port` (TLS), `ssh://[user@]host[:port]` (runs the system's `ssh`, which
/// finds keys and host keys by its own configuration).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DockerHost {
    pub(super) text: String,
    pub(super) scheme: Scheme,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Unix,
    Plain,
    Tls,
    Ssh,
}

/// A text that is not the address of an engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not the address of a container engine; it has the form unix:///var/run/docker.sock, tcp://host:2375, https://host:2376 or ssh://user@host"
)]
pub struct InvalidDockerHost(String);

impl FromStr for DockerHost {
    type Err = InvalidDockerHost;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidDockerHost(text.to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(invalid)?;
        let rest = rest.trim_end_matches('/');
        let clean = !rest.is_empty() && !rest.contains(|c: char| c.is_whitespace() || c == '\0');
        let authority = clean && !rest.contains(['/', '?', '#']);
        let (scheme, fits) = match scheme {
            "unix" => (Scheme::Unix, clean && rest.starts_with('/')),
            "tcp" | "http" => (Scheme::Plain, authority && !rest.contains('@')),
            "https" => (Scheme::Tls, authority && !rest.contains('@')),
            "ssh" => (
                Scheme::Ssh,
                authority && ssh::Destination::parse(rest).is_some(),
            ),
            _ => return Err(invalid()),
        };
        if !fits {
            return Err(invalid());
        }
        Ok(Self {
            text: rest.to_owned(),
            scheme,
        })
    }
}

/// Files with the certificates for an engine behind TLS, PEM each: what `DOCKER_CERT_PATH` holds
/// as `ca.pem`, `cert.pem` and `key.pem`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate of the authority that signed the engine's certificate.
    pub ca: PathBuf,
    /// The client's certificate.
    pub cert: PathBuf,
    /// The client's private key.
    pub key: PathBuf,
}

/// A connection that is made at the first call that finds the engine, and kept.
///
/// The engine may be missing when the service starts and come later, so nothing is decided here
/// at construction. What is kept holds no socket by itself: after an engine's restart the next
/// call connects again.
#[derive(Debug)]
pub(super) struct Connection {
    host: DockerHost,
    tls: Option<TlsFiles>,
    docker: OnceCell<Docker>,
}

impl Connection {
    /// A connection to be made later.
    pub(super) fn new(host: DockerHost, tls: Option<TlsFiles>) -> Self {
        Self {
            host,
            tls,
            docker: OnceCell::new(),
        }
    }

    /// Where the engine is, for another connection.
    pub(super) fn address(&self) -> (DockerHost, Option<TlsFiles>) {
        (self.host.clone(), self.tls.clone())
    }

    /// The client, connecting now when it never did.
    pub(super) async fn docker(&self) -> Result<&Docker, EngineError> {
        self.docker
            .get_or_try_init(|| async {
                let host = self.host.clone();
                let tls = self.tls.clone();
                // Reads certificates from disk.
                let docker = tokio::task::spawn_blocking(move || open_client(&host, tls.as_ref()))
                    .await
                    .map_err(|error| EngineError::Unavailable(Box::new(error)))??;
                docker.negotiate_version().await.map_err(from_client)
            })
            .await
    }

    /// After how long a stream of events is ended so that its reader starts a new one. A network
    /// connection whose other end vanished is silent for ever; a Unix socket is closed by the kernel.
    pub(super) fn event_stream_age(&self) -> Option<Duration> {
        match self.host.scheme {
            Scheme::Unix => None,
            Scheme::Plain | Scheme::Tls | Scheme::Ssh => Some(Duration::from_secs(10 * 60)),
        }
    }
}

fn open_client(host: &DockerHost, tls: Option<&TlsFiles>) -> Result<Docker, EngineError> {
    let address = host.text.as_str();
    match (host.scheme, tls) {
        (Scheme::Unix, _) => {
            Docker::connect_with_unix(address, CLIENT_TIMEOUT_SECS, API_DEFAULT_VERSION)
        }
        (Scheme::Plain, None) => Docker::connect_with_http(
            &format!("tcp://{address}"),
            CLIENT_TIMEOUT_SECS,
            API_DEFAULT_VERSION,
        ),
        (Scheme::Plain | Scheme::Tls, Some(files)) => Docker::connect_with_ssl(
            &format!("tcp://{address}"),
            &files.key,
            &files.cert,
            &files.ca,
            CLIENT_TIMEOUT_SECS,
            API_DEFAULT_VERSION,
        ),
        (Scheme::Tls, None) => {
            return Err(EngineError::Unavailable(
                "an engine behind https:// needs a CA certificate, a client certificate and its key"
                    .into(),
            ));
        }
        (Scheme::Ssh, _) => return ssh::open_client(address),
    }
    .map_err(from_client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("unix:///var/run/docker.sock", Some((Scheme::Unix, "/var/run/docker.sock")))]
    #[case("tcp://10.0.0.1:2375", Some((Scheme::Plain, "10.0.0.1:2375")))]
    #[case("http://[::1]:2375/", Some((Scheme::Plain, "[::1]:2375")))]
    #[case("https://engine:2376", Some((Scheme::Tls, "engine:2376")))]
    #[case("ssh://root@engine:2222", Some((Scheme::Ssh, "root@engine:2222")))]
    #[case("ssh://-oProxyCommand=x", None)]
    #[case("ssh://-l@engine", None)]
    #[case("unix://relative.sock", None)]
    #[case("tcp://", None)]
    #[case("tcp://user@host:2375", None)]
    #[case("tcp://host:2375/path", None)]
    #[case("ftp://host", None)]
    #[case("/var/run/docker.sock", None)]
    #[case("", None)]
    fn an_address_is_read_or_refused(#[case] text: &str, #[case] expected: Option<(Scheme, &str)>) {
        let host = text.parse::<DockerHost>().ok();
        let seen = host.as_ref().map(|host| (host.scheme, host.text.as_str()));
        assert_eq!(seen, expected);
    }

    #[tokio::test]
    async fn l33_missing_socket_fails_calls_only_while_it_is_missing() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("docker.sock");
        let host = format!("unix://{}", socket.display()).parse().unwrap();
        let connection = Connection::new(host, None);
        for _ in 0..2 {
            let error = connection.docker().await.err().unwrap();
            assert!(matches!(error, EngineError::Unavailable(_)), "{error:?}");
        }
    }
}
