//! Connections.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ldap3::{Ldap, LdapConnAsync, LdapConnSettings, LdapError, StdStream};
use rustls::pki_types::ServerName;
use secrecy::ExposeSecret;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::DirectorySettings;
use super::error::DirectoryError;
use super::wire::{Limits, Refusal, pass_messages, start_tls};
use crate::drivers::{shown, trust};

/// The password is wrong, or the account has none, may not be used, is locked, or may not be used now: directories say each
/// of these in their own way.
const NOT_LET_IN: [u32; 7] = [19, 32, 34, 48, 49, 50, 53];

/// Where connections do their work: nothing of them outlives the process's own tasks.
#[derive(Debug, Clone)]
pub(super) struct Tasks {
    pub(super) tracker: TaskTracker,
    pub(super) shutdown: CancellationToken,
}

/// A connection; it ends when its last clone is dropped.
#[derive(Clone)]
pub(super) struct Connection {
    ldap: Ldap,
    /// The reason why the guard ended it.
    refused: Arc<OnceLock<Refusal>>,
    timeout: Duration,
}

impl Connection {
    /// The library's handle, with the time limit of the next request.
    pub(super) fn request(&self) -> Ldap {
        let mut ldap = self.ldap.clone();
        ldap.with_timeout(self.timeout);
        ldap
    }

    /// The connection can carry no request.
    pub(super) fn is_closed(&self) -> bool {
        self.ldap.clone().is_closed()
    }

    /// Names the reason of a failure, which the library does not know when the guard ended the connection.
    pub(super) fn failure(&self, error: LdapError) -> DirectoryError {
        match self.refused.get() {
            Some(refusal) => (*refusal).into(),
            None => DirectoryError::of(error, self.timeout),
        }
    }
}

/// Opens a connection, encrypted as it is asked for.
pub(super) async fn connect(
    tasks: &Tasks,
    settings: &DirectorySettings,
) -> Result<Connection, DirectoryError> {
    let timeout = settings.timeout;
    let reached = tokio::time::timeout(timeout, reach(settings)).await;
    let mut stream = reached.map_err(|_| DirectoryError::Timeout(timeout))??;
    if settings.start_tls || settings.url.scheme() == "ldaps" {
        let secured = tokio::time::timeout(timeout, async {
            if settings.start_tls {
                start_tls(&mut stream).await?;
            }
            encrypt(stream, settings).await
        });
        let stream = secured
            .await
            .map_err(|_| DirectoryError::Timeout(timeout))??;
        guarded(tasks, stream, settings).await
    } else {
        guarded(tasks, stream, settings).await
    }
}

async fn encrypt(
    stream: TcpStream,
    settings: &DirectorySettings,
) -> Result<TlsStream<TcpStream>, DirectoryError> {
    // Reads files the first time.
    let pem = settings.ca_certificate.clone();
    let config = tokio::task::spawn_blocking(move || trust::client_config(pem.as_deref()));
    let config = config
        .await
        .map_err(|_| DirectoryError::Unreachable("certificates could not be read".to_owned()))??;
    let name = ServerName::try_from(host(settings)?.to_owned())
        .map_err(|_| DirectoryError::Address("its host is no name".to_owned()))?;
    let connector = TlsConnector::from(Arc::new(config));
    let secured = connector.connect(name, stream).await;
    secured.map_err(|error| DirectoryError::of_handshake(&error))
}

/// Gives the library a connection that carries only messages within the limits.
async fn guarded(
    tasks: &Tasks,
    server: impl AsyncRead + AsyncWrite + Send + 'static,
    settings: &DirectorySettings,
) -> Result<Connection, DirectoryError> {
    let unreachable = |error: std::io::Error| DirectoryError::Unreachable(error.to_string());
    let (mut own, library) = UnixStream::pair().map_err(unreachable)?;
    let library = StdStream::Unix(library.into_std().map_err(unreachable)?);
    let options = LdapConnSettings::new()
        .set_conn_timeout(settings.timeout)
        .set_std_stream(library);
    // The address of a stream that is there already.
    let connected = LdapConnAsync::with_settings(options, "ldapi:///").await;
    let (driver, ldap) = connected.map_err(|error| DirectoryError::of(error, settings.timeout))?;
    let refused = Arc::new(OnceLock::new());
    let limits = Limits {
        message: settings.max_message,
    };
    let (reason, shutdown) = (Arc::clone(&refused), tasks.shutdown.clone());
    tasks.tracker.spawn(async move {
        let passed = async {
            if let Err(refusal) = pass_messages(server, &mut own, limits).await {
                // Before the library's end closes, so that its failure has a reason.
                let _ = reason.set(refusal);
            }
        };
        // Callers that wait for an answer hear of its end.
        let _ = shutdown.run_until_cancelled(passed).await;
    });
    let shutdown = tasks.shutdown.clone();
    tasks.tracker.spawn(async move {
        let _ = shutdown.run_until_cancelled(driver.drive()).await;
    });
    Ok(Connection {
        ldap,
        refused,
        timeout: settings.timeout,
    })
}

/// A connection that is bound as the service.
pub(super) async fn bound(
    tasks: &Tasks,
    settings: &DirectorySettings,
) -> Result<Connection, DirectoryError> {
    let password = settings.bind_password.expose_secret();
    // A name without a password is let in as nobody (RFC 4513 §5.1.2).
    if !settings.bind_dn.is_empty() && password.is_empty() {
        let why = "ldap.bind_password is empty".to_owned();
        return Err(DirectoryError::Bind(why));
    }
    let connection = connect(tasks, settings).await?;
    if settings.bind_dn.is_empty() {
        return Ok(connection);
    }
    match bind(&connection, &settings.bind_dn, password).await? {
        None => Ok(connection),
        Some(why) => Err(DirectoryError::Bind(why)),
    }
}

/// Binds; why it was not let in.
pub(super) async fn bind(
    connection: &Connection,
    dn: &str,
    password: &str,
) -> Result<Option<String>, DirectoryError> {
    let bound = connection.request().simple_bind(dn, password).await;
    let result = bound.map_err(|error| connection.failure(error))?;
    match result.rc {
        0 => Ok(None),
        code if NOT_LET_IN.contains(&code) => {
            Ok(Some(format!("result {code} {}", shown(&result.text))))
        }
        _ => Err(DirectoryError::of_result(&result, dn)),
    }
}

/// The host of the address. IPv6 addresses stand in brackets in a URL.
fn host(settings: &DirectorySettings) -> Result<&str, DirectoryError> {
    let host = settings.url.host_str().filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| DirectoryError::Address("it has no host".to_owned()))?;
    Ok(host.trim_matches(['[', ']']))
}

/// A connection to the first address that answers: one that does not must not use up the time of the others.
async fn reach(settings: &DirectorySettings) -> Result<TcpStream, DirectoryError> {
    let default = match settings.url.scheme() {
        "ldap" => 389,
        "ldaps" => 636,
        other => return Err(DirectoryError::Address(format!("{other}:"))),
    };
    let host = host(settings)?;
    let unreachable = |error: std::io::Error| DirectoryError::Unreachable(error.to_string());
    let found = tokio::net::lookup_host((host, settings.url.port().unwrap_or(default)));
    let addresses: Vec<_> = found.await.map_err(unreachable)?.collect();
    let each = settings.timeout / u32::try_from(addresses.len().max(1)).unwrap_or(1);
    let mut last = DirectoryError::Unreachable(format!("{host} has no address"));
    for address in addresses {
        match tokio::time::timeout(each, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = unreachable(error),
            Err(_) => last = DirectoryError::Timeout(settings.timeout),
        }
    }
    Err(last)
}
