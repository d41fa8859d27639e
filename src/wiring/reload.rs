//! Reading again what lies outside the database: the certificate, when its files change and at SIGHUP, and `log.level` at SIGHUP.

use std::sync::Arc;
use std::time::Duration;

use api::deps::Dependencies;
use api::server::{Tls, TlsError};
use api::settings::{self, WebSettings};
use reconcilers::runtime::supervise::{Supervisor, chain};
use tokio::signal::unix::Signal;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{error, info};

use super::certificates::Certificates;

/// Interval between two looks at the certificate's files.
const EVERY: Duration = Duration::from_secs(5);
/// Interval between two readings of the ends of certificates that do not change.
const READ_ENDS: Duration = Duration::from_secs(60 * 60);

/// Reads again for as long as the service runs.
pub(super) fn supervise_reload(
    supervisor: &mut Supervisor,
    deps: &Arc<Dependencies>,
    own: (Option<Tls>, Arc<Certificates>),
    hangup: Option<Signal>,
) {
    let (deps, shutdown) = (Arc::clone(deps), supervisor.shutdown());
    supervisor.spawn("reload", async move {
        let reloading = keep_reloading(&deps, own, hangup);
        let _ = shutdown.run_until_cancelled(reloading).await;
        Ok(())
    });
}

async fn keep_reloading(
    deps: &Dependencies,
    (tls, certificates): (Option<Tls>, Arc<Certificates>),
    mut hangup: Option<Signal>,
) {
    let mut ticks = interval(EVERY);
    let (mut read_at, mut read_of) = (Instant::now(), None);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let hung_up = async {
            match &mut hangup {
                Some(hangup) => hangup.recv().await.is_some(),
                None => std::future::pending().await,
            }
        };
        let by_signal = tokio::select! {
            hung_up = hung_up => hung_up,
            _ = ticks.tick() => false,
        };
        let mut is_due = by_signal || Instant::now() >= read_at;
        if let Some(tls) = &tls {
            let reloaded = reload_certificate(tls.clone(), by_signal).await;
            if let Some(usable) = reloaded {
                certificates.note_own(!usable, deps.clock.now());
                is_due = true;
            }
        }
        if by_signal {
            reload_settings(deps).await;
        }
        let generation = Some(deps.settings().generation);
        if (is_due || generation != read_of) && read_ends(deps, &certificates).await {
            (read_at, read_of) = (Instant::now() + READ_ENDS, generation);
        }
    }
}

/// Reads when certificates end; false when the settings could not be read.
async fn read_ends(deps: &Dependencies, certificates: &Arc<Certificates>) -> bool {
    let Ok((config, _)) = settings::read(&deps.db, &deps.master_key).await else {
        return false;
    };
    let certificates = Arc::clone(certificates);
    spawn_blocking(move || certificates.read(&config))
        .await
        .is_ok()
}

/// Reads the files again. Returns whether they can be used; `None` when they are what they were.
async fn reload_certificate(tls: Tls, by_signal: bool) -> Option<bool> {
    let read = move || match by_signal {
        true => tls.reload().map(|()| true),
        false => tls.reload_if_changed(),
    };
    // The task fails only where it panics, which is logged.
    match spawn_blocking(read).await.ok()? {
        Ok(true) => {
            info!("the certificate was read again; new connections get it");
            Some(true)
        }
        Ok(false) => None,
        Err(error) => {
            warn_of_certificate(&error);
            Some(false)
        }
    }
}

fn warn_of_certificate(failure: &TlsError) {
    error!(
        "the certificate stays as it was, since its files cannot be used: {}",
        chain(failure)
    );
}

/// Reads all settings; the log follows them.
async fn reload_settings(deps: &Dependencies) {
    match settings::read(&deps.db, &deps.master_key).await {
        Ok((config, generation)) => {
            let read = WebSettings::of(&config, generation);
            settings::publish(&deps.settings_sender, read);
            info!("the settings were read again");
        }
        Err(failure) => error!("the settings stay as they were: {}", chain(&failure)),
    }
}
