//! Connections.

use std::sync::Arc;

use ldap3::{Ldap, LdapConnAsync, LdapConnSettings, StdStream};
use secrecy::ExposeSecret;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::DirectorySettings;
use super::error::DirectoryError;
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

/// A connection, encrypted as it is asked for. It ends when its last handle is dropped.
pub(super) async fn connect(
    tasks: &Tasks,
    settings: &DirectorySettings,
) -> Result<Ldap, DirectoryError> {
    let timeout = settings.timeout;
    let reached = tokio::time::timeout(timeout, reach(settings)).await;
    let stream = reached.map_err(|_| DirectoryError::Timeout(timeout))??;
    let mut options = LdapConnSettings::new()
        .set_conn_timeout(timeout)
        .set_std_stream(StdStream::Tcp(stream));
    if settings.start_tls || settings.url.scheme() == "ldaps" {
        // Reads files the first time.
        let pem = settings.ca_certificate.clone();
        let config = tokio::task::spawn_blocking(move || trust::client_config(pem.as_deref()));
        let config = config.await.map_err(|_| {
            DirectoryError::Unreachable("certificates could not be read".to_owned())
        })??;
        options = options
            .set_config(Arc::new(config))
            .set_starttls(settings.start_tls);
    }
    let connected = LdapConnAsync::from_url_with_settings(options, &settings.url).await;
    let (connection, ldap) = connected.map_err(|error| match error {
        // Before anybody binds, it is only StartTLS that has a result.
        ldap3::LdapError::LdapResult { result } => {
            DirectoryError::StartTls(format!("result {} {}", result.rc, shown(&result.text)))
        }
        error => DirectoryError::of(error, timeout),
    })?;
    let shutdown = tasks.shutdown.clone();
    tasks.tracker.spawn(async move {
        // Whoever waits for an answer hears of its end.
        let _ = shutdown.run_until_cancelled(connection.drive()).await;
    });
    Ok(ldap)
}

/// A connection that is bound as the service.
pub(super) async fn bound(
    tasks: &Tasks,
    settings: &DirectorySettings,
) -> Result<Ldap, DirectoryError> {
    let password = settings.bind_password.expose_secret();
    // A name without a password is let in as nobody (RFC 4513 §5.1.2).
    if !settings.bind_dn.is_empty() && password.is_empty() {
        let why = "ldap.bind_password is empty".to_owned();
        return Err(DirectoryError::Bind(why));
    }
    let mut ldap = connect(tasks, settings).await?;
    if settings.bind_dn.is_empty() {
        return Ok(ldap);
    }
    match bind(&mut ldap, settings, &settings.bind_dn, password).await? {
        None => Ok(ldap),
        Some(why) => Err(DirectoryError::Bind(why)),
    }
}

/// Binds; why it was not let in.
pub(super) async fn bind(
    ldap: &mut Ldap,
    settings: &DirectorySettings,
    dn: &str,
    password: &str,
) -> Result<Option<String>, DirectoryError> {
    let timeout = settings.timeout;
    let bound = ldap.with_timeout(timeout).simple_bind(dn, password).await;
    let result = bound.map_err(|error| DirectoryError::of(error, timeout))?;
    match result.rc {
        0 => Ok(None),
        code if NOT_LET_IN.contains(&code) => {
            Ok(Some(format!("result {code} {}", shown(&result.text))))
        }
        _ => Err(DirectoryError::of_result(&result, dn)),
    }
}

/// A connection to the first address that answers: one that does not must not use up the time of the others.
async fn reach(settings: &DirectorySettings) -> Result<std::net::TcpStream, DirectoryError> {
    let (url, default) = match settings.url.scheme() {
        "ldap" => (&settings.url, 389),
        "ldaps" => (&settings.url, 636),
        other => return Err(DirectoryError::Address(format!("{other}:"))),
    };
    let host = url.host_str().filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| DirectoryError::Address("it has no host".to_owned()))?;
    // IPv6 addresses stand in brackets in a URL.
    let host = host.trim_matches(['[', ']']);
    let unreachable = |error: std::io::Error| DirectoryError::Unreachable(error.to_string());
    let found = tokio::net::lookup_host((host, url.port().unwrap_or(default)));
    let addresses: Vec<_> = found.await.map_err(unreachable)?.collect();
    let each = settings.timeout / u32::try_from(addresses.len().max(1)).unwrap_or(1);
    let mut last = DirectoryError::Unreachable(format!("{host} has no address"));
    for address in addresses {
        match tokio::time::timeout(each, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return stream.into_std().map_err(unreachable),
            Ok(Err(error)) => last = unreachable(error),
            Err(_) => last = DirectoryError::Timeout(settings.timeout),
        }
    }
    Err(last)
}
