//! Reading again what lies outside the database: the certificate, when its files change and at SIGHUP, and `log.level` at SIGHUP.

use std::sync::Arc;
use std::time::Duration;

use api::deps::Dependencies;
use api::server::{Tls, TlsError};
use api::settings::{self, WebSettings};
use reconcilers::runtime::supervise::{Supervisor, chain};
use tokio::signal::unix::Signal;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, info};

/// Interval between two looks at the certificate's files.
const EVERY: Duration = Duration::from_secs(5);

/// Reads again for as long as the service runs.
pub(super) fn supervise_reload(
    supervisor: &mut Supervisor,
    deps: &Arc<Dependencies>,
    tls: Option<Tls>,
    hangup: Option<Signal>,
) {
    let (deps, shutdown) = (Arc::clone(deps), supervisor.shutdown());
    supervisor.spawn("reload", async move {
        let reloading = keep_reloading(&deps, tls, hangup);
        let _ = shutdown.run_until_cancelled(reloading).await;
        Ok(())
    });
}

async fn keep_reloading(deps: &Dependencies, tls: Option<Tls>, mut hangup: Option<Signal>) {
    let mut ticks = interval(EVERY);
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
        if let Some(tls) = &tls {
            reload_certificate(tls.clone(), by_signal).await;
        }
        if by_signal {
            reload_settings(deps).await;
        }
    }
}

async fn reload_certificate(tls: Tls, by_signal: bool) {
    let read = move || match by_signal {
        true => tls.reload().map(|()| true),
        false => tls.reload_if_changed(),
    };
    // The task fails only where it panics, which is logged.
    let Ok(read) = spawn_blocking(read).await else {
        return;
    };
    match read {
        Ok(true) => info!("the certificate was read again; new connections get it"),
        Ok(false) => {}
        Err(error) => warn_of_certificate(&error),
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
