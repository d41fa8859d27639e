//! Notes of users' files that are being read, at the start of the service.

use schema::clock::SharedClock;
use schema::condition::Reason;
use schema::db::Db;
use schema::error::{DbError, chain};
use schema::event;
use schema::home::{Homes, Readings, SetAside};
use schema::ids::Kind;
use tracing::{error, warn};

use crate::prepare::Prepared;
use crate::settings::Settings;

/// Sets aside files at which the service has died, before anything is read, and notes readings from now on.
pub(super) async fn begin(
    settings: &Settings,
    prepared: &Prepared,
    clock: &SharedClock,
) -> Result<Readings, super::Error> {
    let readings = Readings::open(&settings.data_dir)?;
    let homes = Homes::open(&settings.data_dir, &prepared.instance_id)?;
    match readings.set_suspects_aside(&homes, clock.now()) {
        Ok(all) => {
            for set_aside in all {
                report(&prepared.db, clock, &set_aside).await;
            }
        }
        // The service is of use without it.
        Err(error) => warn!(error = %chain(&error), "interrupted readings could not be counted"),
    }
    Ok(readings)
}

async fn report(db: &Db, clock: &SharedClock, set_aside: &SetAside) {
    let SetAside {
        uid,
        user,
        path,
        name,
    } = set_aside;
    error!(%user, path, name, "a file that was being read when the service ended twice was set aside");
    let message = format!(
        "{path} was being read when the service ended twice; it was renamed to {name}, and is not read any more"
    );
    let recorded = async {
        let mut tx = db.begin().await?;
        let (kind, reason, now) = (Kind::User, Reason::FileSetAside, clock.now());
        event::record(&mut tx, kind, uid, reason, "", &message, now).await?;
        tx.commit().await
    };
    let recorded: Result<(), DbError> = recorded.await;
    if let Err(error) = recorded {
        warn!(error = %chain(&error), "a file that was set aside could not be recorded");
    }
}
