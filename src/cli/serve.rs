//! `agentyard serve`.

use std::io::IsTerminal;
use std::time::Duration;

use reconcilers::runtime::supervise::SupervisorError;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use api::server::ListenError;
use schema::home::HomeError;

use super::{Failure, Result, init};
use crate::logging::LogFilter;
use crate::prepare;
use crate::settings::Settings;
use crate::wiring::{self, DataLost, Held, Listeners, engine_address};

/// How long tasks may take to end; with closing the database it all stays below ten seconds.
const SHUTDOWN: Duration = Duration::from_secs(9);

/// Serves until it is stopped.
///
/// # Errors
/// When it cannot start, or one of its tasks has died.
pub async fn serve(settings: Settings, log: LogFilter) -> Result {
    raise_open_files();
    // By default the signal ends the process, which is right when a terminal is closed.
    let hangup = match std::io::stdin().is_terminal() {
        true => None,
        false => signal(SignalKind::hangup()).ok(),
    };
    prepare::data_dir(&settings)?;
    // Taken before the database is opened: two servers never work on one data directory.
    let lock = init::lock(&settings)?;
    let (lock, _database_lock) = match lock {
        Some(lock) => (Some(lock.data_dir), lock.database),
        None => (None, None),
    };
    // Whatever may keep the service from starting comes before the first superadmin is created: the
    // password is printed this once.
    let engine = engine_address::read_address(&settings)?;
    let listeners = Listeners::bind(&settings).await.map_err(failed)?;
    let prepared = prepare::prepare(&settings).await?;
    prepare::say_password(&prepared, settings.log_format);
    let held = Held {
        listeners,
        lock,
        log,
        hangup,
        engine_certificates: engine.certificates(),
    };
    let shutdown = CancellationToken::new();
    let context = engine_address::make_context(&prepared).map_err(failed)?;
    let compute = engine.compute(context).await.map_err(failed)?;
    let service = wiring::build(&settings, &prepared, held, compute, shutdown.clone())
        .await
        .map_err(failed)?;
    let address = service.address.to_string();
    prepare::say_facts(settings.log_format, &[("address", &address)]);
    let stop = on_signal(shutdown.clone());
    let (health, readings) = (service.health, service.readings);
    let report = async |ended: &SupervisorError| health.task_ended(ended).await;
    let supervised = service.supervisor.wait_and_tell(SHUTDOWN, report);
    tokio::pin!(supervised);
    let result = tokio::select! {
        result = &mut supervised => result,
        () = stop => {
            info!("stopping");
            supervised.await
        }
    };
    prepared.db.close().await;
    match result {
        Ok(()) => {
            // What is still being read then was not what ended the process.
            readings.close();
            info!("stopped");
            Ok(())
        }
        Err(error) => Err(ended(&error)),
    }
}

/// Reason why a part has ended. Data that was lost is there after no other start.
fn ended(error: &SupervisorError) -> Failure {
    if let SupervisorError::Failed { source, .. } = error
        && let Some(lost) = source.downcast_ref::<DataLost>()
    {
        return Failure::Refused(lost.to_string());
    }
    Failure::Failed(reconcilers::runtime::supervise::chain(error))
}

/// Why it could not be built. What stands in the data directory where ours should be changes by no other start.
fn failed(error: wiring::Error) -> Failure {
    let text = reconcilers::runtime::supervise::chain(error.as_ref());
    let home = error.downcast_ref::<HomeError>();
    let listener = error.downcast_ref::<ListenError>();
    let refused = home.is_some_and(HomeError::is_refusal)
        || matches!(listener, Some(ListenError::NotASocket(_)));
    match refused {
        true => Failure::Refused(text),
        false => Failure::Failed(text),
    }
}

/// Lets the process open as many files as it may: a connection is one, and the customary soft limit
/// of 1024 is for programs that use select(2). Without that it serves fewer connections.
pub(super) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        warn!(%error, "the limit of open files could not be raised");
    }
}

/// Cancels everything at the first SIGTERM or SIGINT.
async fn on_signal(shutdown: CancellationToken) {
    let (terminate, interrupt) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    );
    match (terminate, interrupt) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        _ => std::future::pending().await,
    }
    shutdown.cancel();
}
