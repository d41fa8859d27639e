//! Metrics for Prometheus: what is only known when it is asked for, and the listener.
//!
//! A scrape reads the memory of the process, `/proc`, and one snapshot of the database in a fixed number of statements. It never asks
//! the engine.

use std::sync::Arc;
use std::time::Duration;

use api::deps::{Dependencies, VERSION};
use api::server::{MetricsSource, serve_metrics};
use api::settings::AuthMode;
use async_trait::async_trait;
use reconcilers::runtime::summary::ReconcilerHandle;
use reconcilers::runtime::supervise::Supervisor;
use reconcilers::shared::view::{Connection, EngineView};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use schema::census::{self, Census};
use schema::container::StatusWord;
use schema::db::{Backend, Db};
use schema::error::{DbError, chain};
use schema::ids::{Kind, Timestamp};
use schema::metric::{self, Exposition};
use strum::VariantArray as _;
use tokio::net::TcpListener;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::certificates::Certificates;

/// Time limit of the database for its numbers.
const PATIENCE: Duration = Duration::from_secs(5);

/// Writes the metrics of a service.
pub struct Exporter {
    exposition: Exposition,
    db: Db,
    deps: Arc<Dependencies>,
    view: Arc<EngineView>,
    handles: Vec<Arc<dyn ReconcilerHandle>>,
    certificates: Arc<Certificates>,
    /// One scrape at a time: readers that ask at once do not multiply the reads.
    turn: tokio::sync::Mutex<()>,
}

impl Exporter {
    /// An exporter of this service.
    pub fn new(
        db: Db,
        deps: &Arc<Dependencies>,
        view: &Arc<EngineView>,
        handles: &[Arc<dyn ReconcilerHandle>],
    ) -> Self {
        metric::BUILD_INFO.set(&[VERSION], 1.0);
        metric::PROCESS_START.set(&[], deps.clock.now().as_secs_f64());
        for handle in handles {
            metric::PANICS.touch(&[handle.name()]);
            for result in ["converged", "progressed", "transient", "terminal"] {
                metric::PASSES.touch(&[handle.name(), result]);
            }
            metric::LAST_SUCCESS.touch(&[handle.name()]);
        }
        Self {
            exposition: Exposition::default(),
            db,
            deps: Arc::clone(deps),
            view: Arc::clone(view),
            handles: handles.to_vec(),
            certificates: Arc::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Also says when these certificates end.
    pub(super) fn with_certificates(self, certificates: Arc<Certificates>) -> Self {
        Self {
            certificates,
            ..self
        }
    }

    fn note_service(&self) {
        let leader = self.deps.leadership.leader();
        metric::LEADER.set_flag(&[], leader.leading);
        metric::LEADER_KNOWN.set_flag(&[], leader.holder.is_some());
        metric::PART_FAULT.clear();
        for part in self.deps.health.parts() {
            metric::PART_FAULT.set_flag(&[&part.part], part.fault.is_some());
        }
        if let Some(space) = self.deps.health.disk() {
            metric::DISK_FREE.set(&[], float(space.free));
            metric::DISK_TOTAL.set(&[], float(space.total));
        }
        metric::CERTIFICATE_EXPIRES.clear();
        for (name, end) in self.certificates.ends() {
            metric::CERTIFICATE_EXPIRES.set(&[name], end.as_secs_f64());
        }
        let backup = self.deps.health.backup();
        metric::BACKUP_SCHEDULED.set_flag(&[], backup.is_some());
        let newest = backup.and_then(|backup| backup.last_success);
        metric::BACKUP.set(&[], newest.map_or(0.0, |at| at.as_secs_f64()));
        let up = self.view.connection() == Connection::Up;
        metric::ENGINE_UP.set_flag(&[], up);
        metric::ENGINE_EVENTS.set_flag(&[], up && !self.view.watching().lost);
        let connected = self.deps.mcp.hub.connected();
        for service in ["browser", "computer"] {
            let of_service = |found: &&api::executors::Connected| {
                let name: &str = found.key.service.into();
                name == service
            };
            let number = connected.iter().filter(of_service).count();
            metric::EXECUTORS.set(&[service], count(number));
        }
        let in_use = self.deps.settings().auth_mode == AuthMode::Ldap;
        metric::DIRECTORY_IN_USE.set_flag(&[], in_use);
    }

    fn note_reconcilers(&self) {
        for handle in &self.handles {
            let summary = handle.summary();
            let (name, live) = (summary.name, summary.live);
            metric::QUEUE.set(&[name, "ready"], count(live.queue_depth));
            metric::QUEUE.set(&[name, "delayed"], count(live.delayed));
            metric::QUEUE.set(&[name, "running"], count(live.in_flight));
            let wait = live.oldest_wait_ms.unwrap_or(0);
            metric::OLDEST_WAIT.set(&[name], float(wait) / 1000.0);
            metric::BACKOFFS.set(&[name], count(summary.failing));
            metric::LAST_RESYNC.set(&[name], seconds(live.last_resync_at));
            metric::PANICS.follow(&[name], float(live.panics));
        }
    }

    /// Reads the database; one that is away delays a scrape for [`PATIENCE`] at most.
    async fn note_database(&self) {
        for (pool, idle, in_use) in self.db.connections() {
            metric::DATABASE_CONNECTIONS.set(&[pool, "idle"], count(idle));
            metric::DATABASE_CONNECTIONS.set(&[pool, "in_use"], count(in_use));
        }
        let is_postgres = matches!(self.db.backend(), Backend::Postgres(_));
        let read = async {
            let mut connection = self.db.snapshot().await?;
            let now = self.deps.clock.now();
            let census = census::take(&mut connection, is_postgres, now).await?;
            let processes = &self.deps.processes;
            let differing = processes.list_differences(&mut connection).await?.len();
            metric::REPLICAS_DIFFERING.set(&[], count(differing));
            Ok::<_, DbError>(census)
        };
        let census = match timeout(PATIENCE, read).await {
            Ok(Ok(census)) => Some(census),
            Ok(Err(error)) => {
                tracing::debug!(error = chain(&error), "metrics of the database are missing");
                None
            }
            Err(_) => None,
        };
        metric::DATABASE_UP.set_flag(&[], census.is_some());
        if let Some(census) = census {
            self.note_census(&census);
        }
    }

    fn note_census(&self, census: &Census) {
        for kind in Kind::VARIANTS.iter().map(|kind| kind.as_str()) {
            let of_kind = census.objects.iter().filter(|found| found.kind == kind);
            let (mut numbers, mut failing) = ([0, 0, 0], 0);
            for found in of_kind {
                let [ready, not_ready, unknown] = &mut numbers;
                match found.ready.as_str() {
                    "True" => *ready += found.n,
                    "False" => *not_ready += found.n,
                    _ => *unknown += found.n,
                }
                failing += found.failing;
            }
            for (word, number) in ["true", "false", "unknown"].into_iter().zip(numbers) {
                metric::OBJECTS.set(&[kind, word], signed(number));
            }
            metric::OBJECTS_FAILING.set(&[kind], signed(failing));
        }
        for word in StatusWord::VARIANTS {
            let of_word = census.agents.iter().filter(|found| found.status == *word);
            let number = of_word.map(|found| found.n).sum();
            metric::AGENTS.set(&[(*word).into()], signed(number));
        }
        for phase in ["pulling", "rolling", "paused", "rolling_back", "cancelling"] {
            let of_phase = census.rollouts.iter().filter(|found| found.phase == phase);
            let number = of_phase.map(|found| found.n).sum();
            metric::ROLLOUTS.set(&[phase], signed(number));
        }
        for handle in &self.handles {
            let paused = |name: &String| name == "*" || name == handle.name();
            metric::PAUSED.set_flag(&[handle.name()], census.paused.iter().any(paused));
        }
        metric::TASKS.set(&[], signed(census.tasks));
        metric::API_TOKEN_EXPIRES.set(&[], seconds(census.token_end));
        metric::AUDIT_ENTRIES.set(&[], signed(census.audit_entries));
        metric::DATABASE_SIZE.set(&[], signed(census.size));
        metric::DIRECTORY_READY.set_flag(&[], census.directory_ready);
        // The database remembers only those that have changed something; the reconciler knows of the rest.
        let synced = seconds(census.synced_at).max(metric::DIRECTORY_SYNCED.get(&[]));
        metric::DIRECTORY_SYNCED.set(&[], synced);
    }
}

#[async_trait]
impl MetricsSource for Exporter {
    async fn text(&self) -> String {
        let _turn = self.turn.lock().await;
        self.note_service();
        self.note_reconcilers();
        self.note_database().await;
        // It fails only when the thread panics.
        let _ = spawn_blocking(note_process).await;
        self.exposition.text()
    }
}

/// Reads what the system knows of this process. What cannot be read keeps its value.
fn note_process() {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    if let Ok(used) = Duration::try_from(used) {
        metric::PROCESS_CPU.follow(&[], used.as_secs_f64());
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| {
        let rest = line.strip_prefix("VmRSS:")?.trim();
        rest.strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    if let Some(kilobytes) = resident {
        metric::PROCESS_MEMORY.set(&[], float(kilobytes * 1024));
    }
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        // One of them is the directory itself.
        metric::PROCESS_FILES.set(&[], count(files.count().saturating_sub(1)));
    }
    if let Some(most) = getrlimit(Resource::Nofile).current {
        metric::PROCESS_MAX_FILES.set(&[], float(most));
    }
}

/// Serves the metrics.
pub fn supervise(supervisor: &mut Supervisor, listener: TcpListener, exporter: Exporter) {
    let shutdown = supervisor.shutdown();
    if let Ok(at) = listener.local_addr() {
        tracing::info!(address = %format!("http://{at}/metrics"), "metrics");
    }
    let exporter = Arc::new(exporter);
    supervisor.spawn("metrics", async move {
        serve_metrics(listener, exporter, shutdown).await;
        Ok(())
    });
}

fn seconds(at: Option<Timestamp>) -> f64 {
    at.map_or(0.0, Timestamp::as_secs_f64)
}

#[allow(clippy::cast_precision_loss)]
fn float(n: u64) -> f64 {
    n as f64
}

#[allow(clippy::cast_precision_loss)]
fn count(n: usize) -> f64 {
    n as f64
}

#[allow(clippy::cast_precision_loss)]
fn signed(n: i64) -> f64 {
    n as f64
}
