//! What has to be forgotten now and then: sessions that are too old, old events, objects that were
//! purged long ago, tasks that ended long ago, and old entries of the audit trail.

use std::sync::Arc;
use std::time::Duration;

use schema::audit::Writer;
use schema::clock::{Cautious, SharedClock};
use schema::config::keys;
use schema::db::Db;
use schema::error::DbError;
use schema::ids::Timestamp;
use schema::recorder::Recorder;
use schema::secrets::MasterKey;
use schema::{change, event, operation, session};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::auth::session::VALIDITY;
use crate::error::chain;
use crate::settings;

/// Time between two rounds.
const INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Time between two looks at whether the clock was set back.
const GLANCE: Duration = Duration::from_secs(60);

/// How long a purged object is reported to watchers, from when its removal was asked for. Whoever has
/// been away for longer must list again.
const HISTORY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How long tasks are listed; the newest of them are kept longer.
const TASKS: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Forgets what is too old, every hour until `shutdown`. Several replicas may do so at once.
pub async fn run(
    db: Db,
    clock: SharedClock,
    master_key: Arc<MasterKey>,
    shutdown: CancellationToken,
) {
    let writer = Writer::new(db.clone(), &master_key, Arc::clone(&clock));
    let db = db.recorder();
    let today = Cautious::new(Arc::clone(&clock));
    let mut next = Instant::now();
    loop {
        let done = if Instant::now() >= next {
            next = Instant::now() + INTERVAL;
            round(&db, &writer, &clock, &today, &master_key).await
        } else {
            forget_the_future(&db, &clock).await
        };
        if let Err(error) = done {
            let error = chain(&error);
            tracing::warn!(
                error,
                "old sessions, events and audit entries could not be removed"
            );
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(GLANCE) => {}
        }
    }
}

async fn round(
    db: &Recorder,
    writer: &Writer,
    clock: &SharedClock,
    today: &Cautious,
    master_key: &MasterKey,
) -> Result<(), DbError> {
    let (config, _) = settings::read(db, master_key).await?;
    let now = today.now();
    let mut tx = db.begin().await?;
    let sessions = session::prune(&mut tx, now.minus(VALIDITY), clock.now()).await?;
    let events = match config.get(&keys::events::RETENTION) {
        Some(retention) => event::prune(&mut tx, now.minus(retention)).await?,
        None => 0,
    };
    let purged = change::prune(&mut tx, change::KEPT, now.minus(HISTORY)).await?;
    tx.commit().await?;
    let tasks = prune_tasks(db, now.minus(TASKS)).await?;
    let audit = match config.get(&keys::audit::RETENTION) {
        Some(retention) => writer.prune(now.minus(retention)).await?,
        None => 0,
    };
    if sessions + events + purged + tasks + audit > 0 {
        tracing::info!(
            sessions,
            events,
            purged,
            tasks,
            audit,
            "removed old sessions, events, traces of purged objects, tasks and audit entries"
        );
    }
    Ok(())
}

/// Sessions that lie in the future, since the clock was set back: they are dead, and must not live again once
/// it has caught up.
async fn forget_the_future(db: &Recorder, clock: &SharedClock) -> Result<(), DbError> {
    let now = clock.now();
    if !session::ahead(&mut *db.read().await?, now).await? {
        return Ok(());
    }
    let mut tx = db.begin().await?;
    let sessions = session::prune(&mut tx, now.minus(VALIDITY), now).await?;
    tx.commit().await?;
    tracing::warn!(
        sessions,
        "the clock was set back; forgot sessions that lie in the future"
    );
    Ok(())
}

/// A few in each transaction, so that nobody waits long for it.
async fn prune_tasks(db: &Recorder, oldest: Timestamp) -> Result<u64, DbError> {
    let mut pruned = 0;
    loop {
        let mut tx = db.begin().await?;
        let batch = operation::prune(&mut tx, oldest).await?;
        tx.commit().await?;
        pruned += batch;
        if batch < operation::BATCH {
            return Ok(pruned);
        }
    }
}

#[cfg(test)]
mod tests {
    use schema::audit::{self, About, Author};
    use schema::condition::Reason;
    use schema::config::{self, Changes};
    use schema::ids::{Kind, Uid};
    use schema::user;
    use serde_json::json;

    use super::*;
    use crate::testing::{NOW, world};

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    #[tokio::test]
    async fn what_is_too_old_is_forgotten_and_nothing_else() {
        let world = world().await;
        let (db, clock) = (&world.db, &world.clock);
        let uid = Uid::singleton("local");
        let mut tx = db.begin().await.unwrap();
        let (name, hash) = ("root".parse().unwrap(), "hash".into());
        let root = user::create_superadmin(&mut tx, &name, &hash, NOW)
            .await
            .unwrap();
        for at in [NOW, NOW.plus(DAY)] {
            session::issue(&mut tx, &root, at, "", "web").await.unwrap();
            event::record(&mut tx, Kind::Engine, &uid, Reason::Failed, "", "m", at)
                .await
                .unwrap();
        }
        tx.commit().await.unwrap();
        let left = async || {
            let mut connection = db.read().await.unwrap();
            let sessions = session::list(&mut connection, &root, 0).await.unwrap();
            let events = event::list(&mut connection, None, None, NOW, 10).await;
            (sessions.len(), events.unwrap().len())
        };
        // The first round is at once; the service may have been down for long.
        let shutdown = CancellationToken::new();
        let key = &world.deps.master_key;
        let task = run(db.clone(), clock.clone(), key.clone(), shutdown.clone());
        clock.advance(DAY);
        let test = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            shutdown.cancel();
        };
        tokio::join!(task, test);
        assert_eq!(left().await, (2, 2), "just valid");
        let shared: SharedClock = clock.clone();
        let today = Cautious::new(shared.clone());
        for (later, expected) in [
            (DAY, (1, 2)),
            (28 * DAY, (0, 2)),
            (Duration::from_secs(1), (0, 1)),
            (DAY, (0, 0)),
        ] {
            clock.advance(later);
            round(&db.recorder(), &world.deps.writer, &shared, &today, key)
                .await
                .unwrap();
            assert_eq!(left().await, expected);
        }
    }

    #[tokio::test]
    async fn l73_setting_the_clock_ends_sessions_and_removes_nothing_else() {
        let world = world().await;
        let (db, clock) = (&world.db, &world.clock);
        let shared: SharedClock = clock.clone();
        let today = Cautious::new(shared.clone());
        let uid = Uid::singleton("local");
        let mut tx = db.begin().await.unwrap();
        let (name, hash) = ("root".parse().unwrap(), "hash".into());
        let root = user::create_superadmin(&mut tx, &name, &hash, NOW)
            .await
            .unwrap();
        session::issue(&mut tx, &root, NOW, "", "web")
            .await
            .unwrap();
        event::record(&mut tx, Kind::Engine, &uid, Reason::Failed, "", "m", NOW)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let left = async || {
            let mut connection = db.read().await.unwrap();
            let sessions = session::list(&mut connection, &root, 0).await.unwrap();
            let events = event::list(&mut connection, None, None, NOW, 10).await;
            (sessions.len(), events.unwrap().len())
        };
        clock.set(NOW.plus(300 * DAY));
        let key = &world.deps.master_key;
        let forward = round(&db.recorder(), &world.deps.writer, &shared, &today, key).await;
        forward.unwrap();
        assert_eq!(left().await, (1, 1), "nothing has grown old");
        clock.set(NOW.minus(Duration::from_secs(60)));
        forget_the_future(&db.recorder(), &shared).await.unwrap();
        assert_eq!(left().await, (1, 1), "as far ahead as two clocks may be");
        clock.set(NOW.minus(Duration::from_secs(61)));
        forget_the_future(&db.recorder(), &shared).await.unwrap();
        assert_eq!(left().await, (0, 1), "that session must not live again");
    }

    #[tokio::test]
    async fn old_audit_entries_are_forgotten_only_when_that_is_configured() {
        let world = world().await;
        let (db, writer, key) = (&world.db, &world.deps.writer, &world.deps.master_key);
        let shared: SharedClock = world.clock.clone();
        let today = Cautious::new(shared.clone());
        for _ in 0..3 {
            let tx = writer.begin(Author::local(0, "test")).await.unwrap();
            tx.commit(About::whole("test")).await.unwrap();
            world.clock.advance(DAY);
        }
        let left = async || {
            let mut snapshot = db.snapshot().await.unwrap();
            let verdict = audit::verify(&mut snapshot, writer.key()).await.unwrap();
            assert_eq!(verdict.problem, None);
            (verdict.first_seq, verdict.last_seq)
        };
        world.clock.advance(1000 * DAY);
        round(&db.recorder(), writer, &shared, &today, key)
            .await
            .unwrap();
        assert_eq!(left().await, (Some(1), Some(3)), "kept for ever");

        let changes = Changes([("audit.retention", Some(json!("1001d")))].into());
        let mut tx = db.begin().await.unwrap();
        config::query::save(&mut tx, key, &changes, None, crate::testing::BY)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        round(&db.recorder(), writer, &shared, &today, key)
            .await
            .unwrap();
        assert_eq!(left().await, (Some(3), Some(4)));
        round(&db.recorder(), writer, &shared, &today, key)
            .await
            .unwrap();
        assert_eq!(left().await, (Some(3), Some(4)), "nothing more is old");
    }
}
