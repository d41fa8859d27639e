//! Leases: one leader, checked by the clock.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use schema::ids::{Epoch, Timestamp};
use tokio_util::sync::CancellationToken;

use super::support::{
    Fault, MemoryStore, Thing, TokioClock, World, Yard, key, pass_time, settings,
};
use crate::runtime::StoreError;
use crate::runtime::clock::{ManualClock, SharedClock};
use crate::runtime::controller::WorldEvent;
use crate::runtime::leader::{LeaseStore, LeaseTiming, lease};
use crate::runtime::supervise::{Supervisor, SupervisorError};

#[derive(Debug, Clone, Default)]
struct Row {
    holder: Option<String>,
    epoch: i64,
    expires_at: Timestamp,
}

#[derive(Default)]
struct MemoryLease {
    row: Mutex<Row>,
    broken: AtomicBool,
    hanging: AtomicBool,
}

impl MemoryLease {
    async fn check(&self) -> Result<(), StoreError> {
        if self.hanging.load(SeqCst) {
            std::future::pending::<()>().await;
        }
        if self.broken.load(SeqCst) {
            return Err(StoreError("scripted to fail".into()));
        }
        Ok(())
    }

    fn holder(&self) -> Option<String> {
        self.row.lock().unwrap().holder.clone()
    }

    fn steal(&self) {
        let mut row = self.row.lock().unwrap();
        row.holder = Some("thief".to_owned());
        row.epoch += 1;
    }
}

#[async_trait]
impl LeaseStore for MemoryLease {
    async fn try_acquire(
        &self,
        holder: &str,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Option<Epoch>, StoreError> {
        self.check().await?;
        let mut row = self.row.lock().unwrap();
        let free = row.holder.is_none() || row.expires_at <= now;
        if !free && row.holder.as_deref() != Some(holder) {
            return Ok(None);
        }
        row.holder = Some(holder.to_owned());
        row.epoch += 1;
        row.expires_at = now.plus(ttl);
        Ok(Some(Epoch(row.epoch)))
    }

    async fn renew(
        &self,
        holder: &str,
        epoch: Epoch,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.check().await?;
        let mut row = self.row.lock().unwrap();
        if row.holder.as_deref() != Some(holder) || row.epoch != epoch.0 {
            return Ok(false);
        }
        row.expires_at = now.plus(ttl);
        Ok(true)
    }

    async fn release(&self, holder: &str, epoch: Epoch) -> Result<(), StoreError> {
        self.check().await?;
        let mut row = self.row.lock().unwrap();
        if row.holder.as_deref() == Some(holder) && row.epoch == epoch.0 {
            row.holder = None;
        }
        Ok(())
    }
}

/// A replica: a controller and the task that keeps its lease.
fn replica(
    name: &str,
    world: &World,
    store: &Arc<MemoryStore>,
    row: &Arc<MemoryLease>,
    clock: &SharedClock,
) -> Yard {
    let (leadership, keeper) = lease(
        row.clone(),
        name.to_owned(),
        LeaseTiming::default(),
        clock.clone(),
    );
    let mut yard = Yard::led(
        world.clone(),
        store.clone(),
        settings(),
        leadership,
        clock.clone(),
    );
    let shutdown = yard.supervisor.shutdown();
    yard.supervisor.spawn("lease", async move {
        keeper.run(shutdown).await;
        Ok(())
    });
    yard
}

struct Setting {
    world: World,
    store: Arc<MemoryStore>,
    row: Arc<MemoryLease>,
    clock: SharedClock,
}

fn setting(thing: Thing) -> Setting {
    let world = World::with(&[("a", thing)]);
    Setting {
        store: MemoryStore::new(&world),
        world,
        row: Arc::default(),
        clock: TokioClock::shared(),
    }
}

impl Setting {
    fn replica(&self, name: &str) -> Yard {
        replica(name, &self.world, &self.store, &self.row, &self.clock)
    }
}

#[tokio::test(start_paused = true)]
async fn a_standby_does_nothing_and_takes_over_when_the_leader_leaves() {
    let set = setting(Thing::new(1, 1));
    let first = set.replica("first");
    first.until_ready("a").await;
    let second = set.replica("second");
    let passes = first.world.passes("a");
    second.event(WorldEvent::Key(key("a")));
    second.handle.retry("a");
    pass_time(30.0).await;
    assert_eq!(first.world.passes("a"), passes);
    assert!(!second.summary().live.leader && first.summary().live.leader);
    assert_eq!(second.summary().objects, 0);
    let shutdown = first.supervisor.shutdown();
    shutdown.cancel();
    first
        .supervisor
        .wait(Duration::from_secs(10))
        .await
        .unwrap();
    assert_eq!(set.row.holder(), None, "given back");
    second
        .until("took over", |yard| yard.summary().live.leader)
        .await;
    set.world.change("a", 2);
    second.until_ready("a").await;
    assert_eq!(
        set.row.row.lock().unwrap().epoch,
        2,
        "a takeover raises the epoch"
    );
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_died_is_replaced_within_its_lease() {
    let set = setting(Thing::new(1, 1));
    let first = set.replica("first");
    first.until_ready("a").await;
    let second = set.replica("second");
    drop(first);
    let started = tokio::time::Instant::now();
    second
        .until("took over", |yard| yard.summary().live.leader)
        .await;
    let elapsed = started.elapsed().as_secs();
    assert!((10..=20).contains(&elapsed), "{elapsed}");
}

#[tokio::test(start_paused = true)]
async fn l56_a_lease_lost_in_the_middle_of_a_pass_stops_it_before_the_next_step() {
    let set = setting(Thing::new(10, 0));
    set.world
        .apply_fault("a", Fault::Slow(Duration::from_secs(7)), 10);
    let yard = set.replica("first");
    yard.until("under way", |yard| yard.world.actual("a") == 1)
        .await;
    // Renewed at 5 s for the last time, so over at 20 s, in the middle of the third step.
    set.row.hanging.store(true, SeqCst);
    let saves = set.store.saves.load(SeqCst);
    yard.until("stepped down", |yard| !yard.summary().live.leader)
        .await;
    pass_time(1.0).await;
    let actual = set.world.actual("a");
    assert_eq!(actual, 2, "the step under way is cancelled");
    pass_time(100.0).await;
    assert_eq!(set.world.actual("a"), actual);
    assert_eq!(
        set.store.saves.load(SeqCst),
        saves,
        "nothing is said under a lost lease"
    );
}

#[tokio::test(start_paused = true)]
async fn l56_what_was_observed_under_a_lost_lease_is_not_saved() {
    let set = setting(Thing::new(1, 1));
    set.world
        .observe_fault("a", Fault::Slow(Duration::from_secs(20)), 1);
    let yard = set.replica("first");
    pass_time(1.0).await;
    set.row.hanging.store(true, SeqCst);
    pass_time(60.0).await;
    assert!(!yard.summary().live.leader);
    assert_eq!(set.world.passes("a"), 1);
    assert_eq!(set.store.saves.load(SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stands_by_and_leads_again_when_the_database_is_back() {
    let set = setting(Thing::new(1, 1));
    let yard = set.replica("first");
    yard.until_ready("a").await;
    for broken in [&set.row.broken, &set.row.hanging] {
        let epoch = set.row.row.lock().unwrap().epoch;
        broken.store(true, SeqCst);
        pass_time(20.0).await;
        assert!(!yard.summary().live.leader);
        let passes = set.world.passes("a");
        set.world.change("a", 7);
        yard.event(WorldEvent::Key(key("a")));
        // However long it lasts.
        pass_time(3600.0).await;
        assert_eq!(set.world.passes("a"), passes, "nothing under the old epoch");
        broken.store(false, SeqCst);
        yard.until("leads again", |yard| yard.summary().live.leader)
            .await;
        let began = tokio::time::Instant::now();
        yard.until("made so", |yard| yard.world.actual("a") == 7)
            .await;
        assert!(began.elapsed() < Duration::from_secs(3), "at once");
        set.world.change("a", 1);
        yard.until("seen", |yard| yard.world.actual("a") == 1).await;
        assert_eq!(set.row.row.lock().unwrap().epoch, epoch + 1, "another term");
    }
}

#[tokio::test(start_paused = true)]
async fn a_term_that_ends_before_it_has_read_anything_holds_up_no_later_one() {
    let set = setting(Thing::new(1, 0));
    set.store.broken.store(true, SeqCst);
    let yard = set.replica("first");
    yard.until("leads", |yard| yard.summary().live.leader).await;
    pass_time(10.0).await;
    set.row.broken.store(true, SeqCst);
    yard.until("stepped down", |yard| !yard.summary().live.leader)
        .await;
    set.store.broken.store(false, SeqCst);
    set.row.broken.store(false, SeqCst);
    yard.until_ready("a").await;
}

#[tokio::test(start_paused = true)]
async fn who_leads_again_believes_nothing_of_its_former_term() {
    let set = setting(Thing::new(1, 1));
    let first = set.replica("first");
    first.until_ready("a").await;
    let loads = set.store.bulk_loads.load(SeqCst);
    let forgotten = set.world.forgotten();
    set.row.steal();
    pass_time(6.0).await;
    assert!(!first.summary().live.leader);
    set.row.row.lock().unwrap().holder = None;
    first
        .until("leads again", |yard| yard.summary().live.leader)
        .await;
    pass_time(1.0).await;
    assert_eq!(set.world.forgotten(), forgotten + 1);
    assert_eq!(
        set.store.bulk_loads.load(SeqCst),
        loads + 1,
        "statuses, too"
    );
}

#[tokio::test(start_paused = true)]
async fn l56_a_lease_that_nobody_renews_ends_at_its_time() {
    let clock = TokioClock::shared();
    let manual: SharedClock = Arc::new(ManualClock::new(clock.now()));
    let (leadership, keeper) = lease(
        Arc::<MemoryLease>::default(),
        "me".to_owned(),
        LeaseTiming::default(),
        manual,
    );
    let shutdown = CancellationToken::new();
    let epoch = tokio::select! {
        _ = keeper.run(shutdown) => unreachable!("it keeps the lease"),
        epoch = leadership.acquired() => epoch,
    };
    // The keeper is gone, and the wall clock stands still.
    let started = tokio::time::Instant::now();
    leadership.lost(epoch).await;
    assert_eq!(started.elapsed().as_secs(), 15);
    assert_eq!(leadership.epoch(), None);
}

#[tokio::test(start_paused = true)]
async fn a_stolen_lease_is_a_step_down() {
    let set = setting(Thing::new(1, 1));
    let yard = set.replica("first");
    yard.until_ready("a").await;
    set.row.steal();
    pass_time(6.0).await;
    assert!(!yard.summary().live.leader);
    assert_eq!(
        set.row.holder().as_deref(),
        Some("thief"),
        "not given back for somebody else"
    );
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_fails_for_a_while_costs_nothing() {
    let set = setting(Thing::new(1, 1));
    let yard = set.replica("first");
    yard.until_ready("a").await;
    set.row.broken.store(true, SeqCst);
    pass_time(8.0).await;
    set.row.broken.store(false, SeqCst);
    pass_time(60.0).await;
    assert!(yard.summary().live.leader);
    assert_eq!(set.row.row.lock().unwrap().epoch, 1);
}

#[tokio::test(start_paused = true)]
async fn l56_expiry_is_seen_by_the_clock_without_any_news() {
    let manual = Arc::new(ManualClock::new(Timestamp::from_secs(100)));
    let row = Arc::new(MemoryLease::default());
    let (leadership, keeper) = lease(
        row.clone(),
        "me".to_owned(),
        LeaseTiming::default(),
        manual.clone(),
    );
    let mut supervisor = Supervisor::new(CancellationToken::new());
    let shutdown = supervisor.shutdown();
    supervisor.spawn("lease", async move {
        keeper.run(shutdown).await;
        Ok(())
    });
    let epoch = leadership.acquired().await;
    assert_eq!(leadership.epoch(), Some(epoch));
    assert!(leadership.begin().is_some());
    // L73: the wall clock was set, which says nothing.
    for set in [1, 300_000, 100] {
        manual.set(Timestamp::from_secs(set));
        assert_eq!(leadership.epoch(), Some(epoch));
    }
    // The machine was suspended: only the steady clock tells.
    manual.advance(Duration::from_secs(15));
    assert_eq!(leadership.epoch(), None);
    assert!(leadership.begin().is_none());
    leadership.lost(epoch).await;
    // The row is still ours, so the next renewal brings it back under the same epoch.
    assert_eq!(leadership.acquired().await, epoch);
    // The database hangs: only the monotonic clock tells.
    row.hanging.store(true, SeqCst);
    leadership.lost(epoch).await;
    assert_eq!(leadership.epoch(), None);
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_kept_until_the_last_pass_has_ended() {
    let set = setting(Thing::new(2, 0));
    set.world
        .apply_fault("a", Fault::Slow(Duration::from_secs(6)), 2);
    let yard = set.replica("first");
    pass_time(1.0).await;
    yard.supervisor.shutdown().cancel();
    let row = set.row.clone();
    let watch = async {
        pass_time(4.0).await;
        assert_eq!(row.holder().as_deref(), Some("first"));
    };
    let (ended, ()) = tokio::join!(yard.supervisor.wait(Duration::from_secs(10)), watch);
    ended.unwrap();
    assert_eq!(set.row.holder(), None);
    assert_eq!(
        set.world.actual("a"),
        1,
        "the step under way ends, the next does not begin"
    );
}

#[tokio::test(start_paused = true)]
async fn l55_a_worker_that_dies_ends_the_process() {
    // Saving panics outside of what a pass guards: here, the clock itself is broken.
    struct Broken(AtomicBool, SharedClock);
    impl schema::clock::Clock for Broken {
        fn now(&self) -> Timestamp {
            assert!(!self.0.load(SeqCst), "the clock is broken");
            self.1.now()
        }

        fn steady(&self) -> Duration {
            Duration::ZERO
        }
    }
    let set = setting(Thing::new(1, 1));
    let broken = Arc::new(Broken(AtomicBool::new(false), TokioClock::shared()));
    let clock: SharedClock = broken.clone();
    let yard = replica("first", &set.world, &set.store, &set.row, &clock);
    yard.until_ready("a").await;
    broken.0.store(true, SeqCst);
    let error = yard
        .supervisor
        .wait(Duration::from_secs(10))
        .await
        .unwrap_err();
    assert!(matches!(error, SupervisorError::Panicked(_)), "{error}");
}
