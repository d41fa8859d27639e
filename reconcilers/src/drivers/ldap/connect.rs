//! Connections.

use ldap3::{Ldap, LdapConnAsync, LdapConnSettings};
use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::error::{DirectoryError, shown};
use super::{DirectorySettings, trust};

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
    let mut options = LdapConnSettings::new().set_conn_timeout(timeout);
    if settings.start_tls || settings.url.scheme() == "ldaps" {
        // Reads files the first time.
        let pem = settings.ca_certificate.clone();
        let config = tokio::task::spawn_blocking(move || trust::client_config(pem.as_deref()));
        let config = config.await.map_err(|_| {
            DirectoryError::Unreachable("certificates could not be read".to_owned())
        })??;
        options = options.set_config(config).set_starttls(settings.start_tls);
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
    let mut ldap = connect(tasks, settings).await?;
    if settings.bind_dn.is_empty() {
        return Ok(ldap);
    }
    let password = settings.bind_password.expose_secret();
    // A name without a password is let in as nobody (RFC 4513 §5.1.2).
    if password.is_empty() {
        return Err(DirectoryError::Bind(
            "ldap.bind_password is empty".to_owned(),
        ));
    }
    if bind(&mut ldap, settings, &settings.bind_dn, password).await? {
        return Ok(ldap);
    }
    Err(DirectoryError::Bind("wrong name or password".to_owned()))
}

/// Binds; whether it was let in.
pub(super) async fn bind(
    ldap: &mut Ldap,
    settings: &DirectorySettings,
    dn: &str,
    password: &str,
) -> Result<bool, DirectoryError> {
    let timeout = settings.timeout;
    let bound = ldap.with_timeout(timeout).simple_bind(dn, password).await;
    let result = bound.map_err(|error| DirectoryError::of(error, timeout))?;
    match result.rc {
        0 => Ok(true),
        code if NOT_LET_IN.contains(&code) => Ok(false),
        _ => Err(DirectoryError::of_result(&result, dn)),
    }
}
