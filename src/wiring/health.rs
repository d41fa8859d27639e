//! How the parts of the service are: what `/readyz` shows, and what becomes an event.
//!
//! A part is observed whenever somebody asks, and a few times a second by [`Health::run`], which
//! notes since when it has its fault and records events. So a fault is seen within a second, and what
//! was only short is an event all the same where it is counted (the loss of the engine's events).

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::ports::{BackupState, Fault, Health as HealthPort, PartHealth, Space};
use reconcilers::drivers::oidc::OidcProvider;
use reconcilers::runtime::leader::Leadership;
use reconcilers::runtime::summary::ReconcilerHandle;
use reconcilers::runtime::supervise::{SupervisorError, chain};
use reconcilers::shared::view::{EngineView, Outage};
use schema::clock::SharedClock;
use schema::condition::Reason;
use schema::config::query::engine_uid;
use schema::db::{Backend, Db, Refusal, StorageFault};
use schema::error::DbError;
use schema::event;
use schema::ids::{Kind, Timestamp, Uid};
use schema::lease;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tracing::{error, info, warn};

use super::backup::{self, Backups};
use super::certificates::{self, Certificates};
use super::notify::Vitals;
use super::storage::Gauge;

/// How often the parts are observed.
const OBSERVE_EVERY: Duration = Duration::from_millis(250);
/// How often a standby asks who leads.
const ASK_HOLDER: Duration = Duration::from_secs(2);
/// How long the database may take for an event.
const RECORD: Duration = Duration::from_secs(2);
/// After this time what could not be recorded is tried again.
const RECORD_AGAIN: Duration = Duration::from_secs(5);
/// How often the free space is read.
const MEASURE: Duration = Duration::from_secs(2);
/// How long a fault of the database or its storage is shown after it was last seen: near the limit small
/// writes succeed while others fail.
const STEADY: Duration = Duration::from_secs(5);
/// Events that wait for a database that takes them; the oldest are forgotten.
const MAX_WAITING: usize = 50;
/// Between the end of a task and the end of the process, so that whoever asks sees why.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long a panic is shown after the pass succeeded again.
const RECENT: Duration = Duration::from_secs(10 * 60);

const EVENTS: &str = "engine events";
const BELL: &str = "bell";
const DATABASE: &str = "database";
const STORAGE: &str = "storage";
const LEADERSHIP: &str = "leadership";
const PASSES: &str = "passes";
const TASKS: &str = "tasks";
const CERTIFICATE_REFUSED: &str =
    "its new files cannot be used, as the log says; the certificate before stays in use";
/// Where users sign in; told only while it fails.
const PROVIDER: &str = "identity provider";

/// See the [module](self).
pub struct Health {
    process: String,
    db: Db,
    clock: SharedClock,
    leadership: Leadership,
    view: Arc<EngineView>,
    handles: Vec<Arc<dyn ReconcilerHandle>>,
    gauge: Arc<Gauge>,
    /// Asked by the API; users of it cannot sign in while it fails.
    provider: Option<Arc<OidcProvider>>,
    /// Told only while they fail.
    backups: Option<Arc<Backups>>,
    certificates: Option<Arc<Certificates>>,
    state: Mutex<State>,
}

/// What is wrong with a part that cannot be recorded as it happens, because it is what records.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Trouble {
    since: Timestamp,
    /// When it was last seen.
    seen: Timestamp,
    reason: Reason,
    message: String,
}

/// An event that is yet to be recorded.
struct Waiting {
    reason: Reason,
    part: &'static str,
    message: String,
}

#[derive(Default)]
struct State {
    /// What is wrong with the storage, as it is shown.
    storage: Option<Trouble>,
    /// Since when a part has its fault, where only this module knows.
    since: BTreeMap<String, Timestamp>,
    /// The task that has ended.
    ended: Option<(Timestamp, String)>,
    /// Who leads, when that is somebody else.
    holder: Option<String>,
}

/// What was recorded so far.
#[derive(Default)]
struct Recorded {
    /// What the database could not take yet, in the order in which it happened.
    waiting: VecDeque<Waiting>,
    storage: Option<Reason>,
    /// Since when the database is away.
    away: Option<Timestamp>,
    led: bool,
    outage: Option<Outage>,
    losses: u64,
    lost: bool,
    degraded: bool,
    certificate_refused: bool,
    stuck: BTreeMap<&'static str, bool>,
}

impl Recorded {
    fn wait(&mut self, reason: Reason, part: &'static str, message: String) {
        if self.waiting.len() == MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Waiting {
            reason,
            part,
            message,
        });
    }
}

/// What is shown now: a fault stays for a while after it was last seen, unless there is another one.
fn shown(
    before: Option<Trouble>,
    fault: Option<(Reason, String)>,
    now: Timestamp,
) -> Option<Trouble> {
    let lasting = before
        .as_ref()
        .filter(|trouble| trouble.reason != Reason::StorageLow && now.since(trouble.seen) < STEADY);
    match (fault, lasting) {
        (Some((Reason::StorageLow, _)) | None, Some(lasting)) => Some(lasting.clone()),
        (None, None) => None,
        (Some((reason, message)), _) => Some(Trouble {
            since: before
                .filter(|trouble| trouble.reason == reason)
                .map_or(now, |trouble| trouble.since),
            seen: now,
            reason,
            message,
        }),
    }
}

/// When to record events; says once that it fails, and once that it works again.
#[derive(Default)]
struct Recorder {
    /// The time of the next try; `None`: the last one did not fail.
    again_at: Option<Instant>,
}

impl Recorder {
    fn may(&self, now: Instant) -> bool {
        self.again_at.is_none_or(|at| now >= at)
    }

    /// What there is to say of how it went.
    fn note(&mut self, now: Instant, result: Result<(), String>) -> Option<Result<(), String>> {
        let again_at = result.is_err().then(|| now + RECORD_AGAIN);
        let before = std::mem::replace(&mut self.again_at, again_at);
        (before.is_some() != result.is_err()).then_some(result)
    }
}

/// A name for this process that a person recognises: host and process id.
pub fn process_name() -> String {
    let host = rustix::system::uname();
    format!(
        "{}:{}",
        host.nodename().to_string_lossy(),
        rustix::process::getpid().as_raw_nonzero()
    )
}

/// The same, unique among all processes that ever were: containers share names and process ids.
pub fn holder_name() -> String {
    let random = Uid::random().to_string();
    let random: String = random.chars().rev().take(8).collect();
    format!("{}:{random}", process_name())
}

impl Health {
    /// `process`: the name under which this process leads. `gauge`: of the places where it writes.
    pub fn new(
        process: String,
        db: Db,
        clock: SharedClock,
        leadership: Leadership,
        view: Arc<EngineView>,
        handles: Vec<Arc<dyn ReconcilerHandle>>,
        gauge: Gauge,
    ) -> Self {
        Self {
            process,
            db,
            clock,
            leadership,
            view,
            handles,
            gauge: Arc::new(gauge),
            provider: None,
            backups: None,
            certificates: None,
            state: Mutex::default(),
        }
    }

    /// Also says how the identity provider is.
    pub fn with_provider(self, provider: Arc<OidcProvider>) -> Self {
        Self {
            provider: Some(provider),
            ..self
        }
    }

    /// Also says how scheduled backups are.
    pub fn with_backups(self, backups: Arc<Backups>) -> Self {
        Self {
            backups: Some(backups),
            ..self
        }
    }

    /// Also says when certificates end, and that a new one cannot be used.
    pub(super) fn with_certificates(self, certificates: Arc<Certificates>) -> Self {
        Self {
            certificates: Some(certificates),
            ..self
        }
    }

    /// Time since which the newest files of the certificate cannot be used.
    fn certificate_refused(&self) -> Option<Timestamp> {
        self.certificates.as_ref()?.refused_since()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the leader, when known.
    pub fn leader(&self) -> Option<String> {
        if self.leadership.is_leader() {
            return Some(self.process.clone());
        }
        self.state().holder.clone()
    }

    /// Summary for the service manager of a service at `address`. While the database is away a new start would
    /// change nothing.
    pub(super) fn vitals(&self, address: &str) -> Vitals {
        let stuck = self.handles.iter().any(|handle| handle.stuck().is_some());
        let parts = self.parts();
        let faulty = parts.iter().filter(|part| part.fault.is_some());
        let mut names: Vec<_> = faulty.map(|part| part.part.as_str()).collect();
        let is_away = self.db.away().is_some();
        if is_away {
            names.insert(0, DATABASE);
        }
        let role = match self.leadership.is_leader() {
            true => "serving",
            false => "standing by",
        };
        let mut status = format!("{role} at {address}");
        if !names.is_empty() {
            status.push_str(&format!("; see /readyz: {}", names.join(", ")));
        }
        Vitals {
            alive: is_away || !stuck,
            status,
        }
    }

    /// Reads the free space once, so that a full disk is told from the first answer on. A file system that hangs is not waited for.
    pub(super) async fn measure(&self) {
        let gauge = Arc::clone(&self.gauge);
        let _ = timeout(MEASURE, spawn_blocking(move || gauge.read())).await;
    }

    /// Observes the parts again and again. Never ends.
    pub async fn run(self: Arc<Self>) {
        let mut recorded = Recorded::default();
        let mut recorder = Recorder::default();
        let mut ticks = interval(OBSERVE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ask_holder_at = Instant::now();
        let mut measure_at = Instant::now();
        let mut measuring: Option<JoinHandle<()>> = None;
        loop {
            let now = ticks.tick().await;
            if now >= measure_at {
                // A file system that hangs holds up nobody but this thread, and only one.
                if measuring.as_ref().is_none_or(JoinHandle::is_finished) {
                    let gauge = Arc::clone(&self.gauge);
                    measuring = Some(spawn_blocking(move || gauge.read()));
                }
                measure_at = now + MEASURE;
            }
            self.note_times();
            self.note_storage(&mut recorded);
            self.note_database(&mut recorded);
            // What could not be recorded now is tried again later.
            if self.db.away().is_none() && recorder.may(now) {
                let recorded = match timeout(RECORD, self.record_changes(&mut recorded)).await {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(error)) => Err(chain(&error)),
                    Err(_) => Err("it took too long".to_owned()),
                };
                match recorder.note(Instant::now(), recorded) {
                    None => {}
                    Some(Ok(())) => info!("events of the service can be recorded again"),
                    Some(Err(error)) => {
                        warn!(%error, "could not record an event of the service; trying again");
                    }
                }
            }
            if now >= ask_holder_at {
                self.ask_holder().await;
                ask_holder_at = now + ASK_HOLDER;
            }
        }
    }

    /// Remembers since when the parts that keep no time themselves have their fault.
    fn note_times(&self) {
        let now = self.clock.now();
        let faults = [
            (EVENTS, self.view.watching().lost),
            (BELL, self.db.is_degraded()),
        ];
        let mut state = self.state();
        for (part, faulty) in faults {
            if faulty {
                state.since.entry(part.to_owned()).or_insert(now);
            } else {
                state.since.remove(part);
            }
        }
    }

    /// Remembers what is wrong with the storage, and what is to be recorded of it once that is possible.
    fn note_storage(&self, recorded: &mut Recorded) {
        let refusal = self.db.refusal().map(|refusal| {
            let message = format!("changes are refused: {}", refusal.why());
            (Reason::StorageFailed, message)
        });
        let fault = match self.db.storage_fault() {
            _ if refusal.is_some() => refusal,
            Some(StorageFault::Full) => Some((
                Reason::StorageFull,
                "the database has no space left: changes are refused until space is freed"
                    .to_owned(),
            )),
            Some(StorageFault::Locked) => Some((
                Reason::StorageFailed,
                "another program has locked the database file: changes wait, and are refused after 15 s"
                    .to_owned(),
            )),
            Some(StorageFault::Failed(what)) => Some((
                Reason::StorageFailed,
                format!("the storage of the database failed: {what}; changes are refused"),
            )),
            None => {
                let shortage = self.gauge.shortage();
                shortage.map(|message| (Reason::StorageLow, message))
            }
        };
        let trouble = {
            let now = self.clock.now();
            let mut state = self.state();
            state.storage = shown(state.storage.take(), fault, now);
            state.storage.clone()
        };
        let reason = trouble.as_ref().map(|trouble| trouble.reason);
        if reason == recorded.storage {
            return;
        }
        recorded.storage = reason;
        let (reason, message) = match trouble {
            Some(trouble) => {
                let since = trouble.since.to_rfc3339();
                warn!(reason = %trouble.reason, "{}", trouble.message);
                (
                    trouble.reason,
                    format!("since {since}: {}", trouble.message),
                )
            }
            None => (
                Reason::Recovered,
                "changes are saved again, and there is space".to_owned(),
            ),
        };
        recorded.wait(reason, STORAGE, message);
    }

    /// The same of outages of the database and of what they cost.
    fn note_database(&self, recorded: &mut Recorded) {
        match (self.db.away(), recorded.away) {
            (Some(why), None) => {
                let now = self.clock.now();
                recorded.away = Some(now);
                let (process, now) = (&self.process, now.to_rfc3339());
                let message = format!("{process}: since {now}: {why}");
                recorded.wait(Reason::DatabaseUnavailable, DATABASE, message);
            }
            (None, Some(_)) => {
                recorded.away = None;
                let (process, now) = (&self.process, self.clock.now().to_rfc3339());
                let message = format!("{process}: at {now}: the database answers again");
                recorded.wait(Reason::Recovered, DATABASE, message);
            }
            _ => {}
        }
        let leads = self.leadership.is_leader();
        if recorded.led && !leads {
            let (process, now) = (&self.process, self.clock.now().to_rfc3339());
            let message = format!("{process}: at {now}: it does not lead any more and stands by");
            recorded.wait(Reason::LeaseLost, LEADERSHIP, message);
        }
        recorded.led = leads;
    }

    /// Records what has changed since the last record.
    async fn record_changes(&self, recorded: &mut Recorded) -> Result<(), DbError> {
        while let Some(Waiting {
            reason,
            part,
            message,
        }) = recorded.waiting.front()
        {
            self.record(*reason, part, message).await?;
            recorded.waiting.pop_front();
        }
        let (outage, watching) = (self.view.outage(), self.view.watching());
        if !self.leadership.is_leader() {
            // Only the leader records events of the engine object.
            recorded.outage.clone_from(&outage);
            recorded.losses = watching.losses;
            recorded.lost = watching.lost;
        }
        if let Some(outage) = outage {
            self.record_outage(recorded, outage).await?;
        }
        if watching.losses != recorded.losses {
            let message = format!(
                "changes on the engine are no longer heard of: {}",
                watching.why
            );
            self.record_of_engine(Reason::WatchLost, &message).await?;
            recorded.losses = watching.losses;
            recorded.lost = true;
        }
        if recorded.lost && !watching.lost {
            let message = "changes on the engine are heard of again";
            self.record_of_engine(Reason::WatchRestored, message)
                .await?;
            recorded.lost = false;
        }
        let degraded = self.db.is_degraded();
        if degraded != recorded.degraded {
            let (reason, message) = if degraded {
                (
                    Reason::WatchLost,
                    "changes made by other replicas are no longer heard of",
                )
            } else {
                (
                    Reason::WatchRestored,
                    "changes made by other replicas are heard of again",
                )
            };
            let message = format!("{}: {message}", self.process);
            self.record(reason, BELL, &message).await?;
            recorded.degraded = degraded;
        }
        let refused = self.certificate_refused().is_some();
        if refused != recorded.certificate_refused {
            let (reason, message) = match refused {
                true => (Reason::CertificateRefused, CERTIFICATE_REFUSED),
                false => (Reason::Recovered, "a new certificate is in use"),
            };
            let message = format!("{}: {message}", self.process);
            self.record(reason, certificates::PART, &message).await?;
            recorded.certificate_refused = refused;
        }
        for handle in &self.handles {
            let stuck = handle.stuck();
            let before = recorded.stuck.entry(handle.name()).or_default();
            if stuck.is_some() == *before {
                continue;
            }
            let (reason, message) = match &stuck {
                Some((_, why)) => (Reason::Stuck, why.as_str()),
                None => (Reason::Recovered, "it works again"),
            };
            self.record(reason, handle.name(), message).await?;
            *before = stuck.is_some();
        }
        Ok(())
    }

    /// Records the begin and the end of an outage of the engine, each once.
    async fn record_outage(&self, recorded: &mut Recorded, outage: Outage) -> Result<(), DbError> {
        let known = recorded.outage.as_ref();
        let known = known.filter(|known| known.since == outage.since);
        let is_over = known.is_some_and(|known| known.until.is_some());
        if known.is_none() {
            let message = format!("since {}: {}", outage.since.to_rfc3339(), outage.why);
            self.record_of_engine(Reason::EngineUnavailable, &message)
                .await?;
            recorded.outage = Some(Outage {
                until: None,
                ..outage.clone()
            });
        }
        if let Some(until) = outage.until.filter(|_| !is_over) {
            let away = Duration::from_secs(until.since(outage.since).as_secs());
            let away = humantime::format_duration(away);
            let message = format!(
                "at {}: the engine answers again; it was away for {away}",
                until.to_rfc3339()
            );
            self.record_of_engine(Reason::Recovered, &message).await?;
            recorded.outage = Some(outage);
        }
        Ok(())
    }

    async fn record_of_engine(&self, reason: Reason, message: &str) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        let (uid, now) = (engine_uid(), self.clock.now());
        event::record(&mut tx, Kind::Engine, &uid, reason, "", message, now).await?;
        tx.commit().await
    }

    async fn record(&self, reason: Reason, part: &str, message: &str) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        event::record_of_service(&mut tx, reason, part, message, self.clock.now()).await?;
        tx.commit().await
    }

    /// On SQLite nobody else can lead.
    async fn ask_holder(&self) {
        if self.leadership.is_leader() || !matches!(self.db.backend(), Backend::Postgres(_)) {
            return;
        }
        let asked = async {
            let mut connection = self.db.read().await?;
            lease::holder(&mut connection).await
        };
        // What cannot be asked is not known.
        let holder = timeout(RECORD, asked).await;
        self.state().holder = holder.ok().and_then(Result::ok).flatten();
    }

    /// A supervised task has ended, and the process is about to: says it in `/readyz` and in an event
    /// while everything else still runs. Bounded in time.
    pub async fn task_ended(&self, ended: &SupervisorError) {
        error!(error = %chain(ended), "a part of the service has ended; the process ends, too");
        let now = self.clock.now();
        self.state().ended = Some((now, format!("{ended}; the process ends")));
        let message = format!("{}; process {} ends", chain(ended), self.process);
        let recorded = timeout(
            RECORD,
            self.record(Reason::TaskEnded, ended.task(), &message),
        );
        let (recorded, ()) = tokio::join!(recorded, sleep(LAST_WORDS));
        match recorded {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                warn!(error = %chain(&error), "could not record why the process ends")
            }
            Err(_) => warn!("recording why the process ends took too long"),
        }
    }

    fn passes(&self, now: Timestamp) -> Option<Fault> {
        let summaries = self.handles.iter().map(|handle| handle.summary());
        let (mut objects, mut latest) = (0, None);
        for summary in summaries {
            objects += summary.live.panicked;
            latest = latest.max(summary.live.last_panic_at);
        }
        let recent = latest.filter(|at| now.since(*at) < RECENT);
        if objects == 0 && recent.is_none() {
            return None;
        }
        Some(Fault {
            since: latest.unwrap_or(now),
            reason: Reason::Panicked,
            message: format!("a pass has panicked; objects whose last pass did: {objects}"),
            fatal: false,
        })
    }
}

impl HealthPort for Health {
    fn parts(&self) -> Vec<PartHealth> {
        let now = self.clock.now();
        let (since, ended, storage) = {
            let state = self.state();
            let State {
                since,
                ended,
                storage,
                ..
            } = &*state;
            (since.clone(), ended.clone(), storage.clone())
        };
        let degraded = |part: &str, faulty: bool, message: &str| {
            faulty.then(|| Fault {
                since: since.get(part).copied().unwrap_or(now),
                reason: Reason::WatchLost,
                message: message.to_owned(),
                fatal: false,
            })
        };
        let mut parts = vec![
            PartHealth {
                part: EVENTS.to_owned(),
                fault: degraded(
                    EVENTS,
                    self.view.watching().lost,
                    "not heard; changes on the engine are found by the full pass",
                ),
            },
            PartHealth {
                part: BELL.to_owned(),
                fault: degraded(
                    BELL,
                    self.db.is_degraded(),
                    "not heard; changes made by other replicas are found by asking the database",
                ),
            },
            PartHealth {
                part: STORAGE.to_owned(),
                fault: match self.db.refusal() {
                    Some(Refusal::Everything(why)) => Some(Fault {
                        since: storage.map_or(now, |trouble| trouble.since),
                        reason: Reason::StorageFailed,
                        message: why.to_owned(),
                        fatal: true,
                    }),
                    // Reads go on, so it should still get requests.
                    _ => storage.map(|trouble| Fault {
                        since: trouble.since,
                        reason: trouble.reason,
                        message: trouble.message,
                        fatal: false,
                    }),
                },
            },
            PartHealth {
                part: PASSES.to_owned(),
                fault: self.passes(now),
            },
            PartHealth {
                part: TASKS.to_owned(),
                fault: ended.map(|(since, message)| Fault {
                    since,
                    reason: Reason::TaskEnded,
                    message,
                    fatal: true,
                }),
            },
        ];
        let failing = self.provider.as_ref();
        if let Some(since) = failing.and_then(|provider| provider.failing_since()) {
            parts.push(PartHealth {
                part: PROVIDER.to_owned(),
                fault: Some(Fault {
                    since,
                    reason: Reason::ProviderFailed,
                    message: "could not be used at the last sign-in; superadmins sign in with name and password"
                        .to_owned(),
                    fatal: false,
                }),
            });
        }
        if let Some(since) = self.certificate_refused() {
            parts.push(PartHealth {
                part: certificates::PART.to_owned(),
                fault: Some(Fault {
                    since,
                    reason: Reason::CertificateRefused,
                    message: CERTIFICATE_REFUSED.to_owned(),
                    fatal: false,
                }),
            });
        }
        let failing = self.backups.as_ref();
        if let Some((since, message)) = failing.and_then(|backups| backups.fault(now)) {
            parts.push(PartHealth {
                part: backup::PART.to_owned(),
                fault: Some(Fault {
                    since,
                    reason: Reason::BackupFailed,
                    message: message.to_owned(),
                    fatal: false,
                }),
            });
        }
        for handle in &self.handles {
            parts.push(PartHealth {
                part: format!("reconciler {}", handle.name()),
                fault: handle.stuck().map(|(since, message)| Fault {
                    since,
                    reason: Reason::Stuck,
                    message,
                    fatal: true,
                }),
            });
        }
        parts
    }

    fn disk(&self) -> Option<Space> {
        self.gauge.first()
    }

    fn backup(&self) -> Option<BackupState> {
        self.backups.as_ref()?.state()
    }

    fn backup_warning(&self) -> Option<String> {
        self.backups.as_ref()?.warning()
    }

    fn certificate_warnings(&self) -> Vec<String> {
        let now = self.clock.now();
        let warnings = self.certificates.as_ref().map(|it| it.warnings(now));
        warnings.unwrap_or_default()
    }

    fn permit_backups(&self, directory: &Path) -> Result<(), String> {
        match &self.backups {
            Some(backups) => backups.permit(directory),
            None => Ok(()),
        }
    }

    fn check_backups(&self, directory: &Path) -> Result<(), String> {
        match &self.backups {
            Some(backups) => backups.check(directory, self.view.root_dir().as_deref()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_that_comes_and_goes_near_the_limit_is_one_fault() {
        let at = Timestamp::from_secs;
        let fault = |reason| Some((reason, String::new()));
        let reason = |shown: &Option<Trouble>| shown.as_ref().map(|trouble| trouble.reason);
        let low = shown(None, fault(Reason::StorageLow), at(1));
        assert_eq!(reason(&low), Some(Reason::StorageLow));
        let full = shown(low, fault(Reason::StorageFull), at(2));
        assert_eq!(reason(&full), Some(Reason::StorageFull));
        let still = shown(full.clone(), fault(Reason::StorageLow), at(6));
        assert_eq!(still, full);
        let again = shown(still, fault(Reason::StorageFull), at(7));
        assert_eq!(again.as_ref().map(|trouble| trouble.since), Some(at(2)));
        let over = shown(again, fault(Reason::StorageLow), at(12));
        assert_eq!(reason(&over), Some(Reason::StorageLow));
        assert_eq!(shown(over, None, at(13)), None, "there is space: at once");
    }

    #[test]
    fn an_outage_of_the_database_is_said_once_and_not_asked_of_all_the_time() {
        let mut recorder = Recorder::default();
        let start = Instant::now();
        let (mut tries, mut said) = (0, Vec::new());
        for tick in 0..240 {
            let now = start + OBSERVE_EVERY * tick;
            if recorder.may(now) {
                tries += 1;
                let away = (4..200).contains(&tick);
                let result = if away { Err(tick.to_string()) } else { Ok(()) };
                said.extend(recorder.note(now, result));
            }
        }
        assert_eq!(said, [Err("4".to_owned()), Ok(())]);
        let without = 4 + 240 - 200;
        assert!((without..=without + 10).contains(&tries), "{tries}");
    }
}
