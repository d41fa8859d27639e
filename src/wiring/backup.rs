//! Backups by a schedule: the leader makes them as `backup.*` says.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::ports::BackupState;
use api::settings::WebSettings;
use reconcilers::runtime::leader::Leadership;
use reconcilers::shared::view::EngineView;
use schema::audit::{About, Author, Writer};
use schema::backup::{
    Allowed, BackupError, DIRECTORY_BEFORE, Directory, Kept, LeftOut, Permission, name_flag,
};
use schema::clock::SharedClock;
use schema::condition::Reason;
use schema::config::{Config, keys};
use schema::db::Db;
use schema::error::{DbError, chain};
use schema::event;
use schema::ids::Timestamp;
use schema::meta;
use schema::secrets::MasterKey;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::backup::{CreateError, Destination, Installation};

/// Time between two looks at whether a backup is due.
const LOOK: Duration = Duration::from_secs(10);
/// Time between two listings of the directory: another replica, or the command line, may have made one.
const LIST: Duration = Duration::from_secs(10 * 60);
/// A failed backup is tried again after this time at the latest.
const AGAIN: Duration = Duration::from_secs(30 * 60);
/// The part of the service, as readiness and events name it.
pub const PART: &str = "backup";

/// State of the scheduled backups, for status, readiness and metrics; `None` while there is no schedule.
#[derive(Debug, Default)]
pub struct Backups {
    known: Mutex<Option<Known>>,
    /// Directories that may be used.
    allowed: Allowed,
    data_dir: PathBuf,
}

/// State of a schedule.
#[derive(Debug, Clone)]
struct Known {
    directory: PathBuf,
    every: Duration,
    /// When this schedule was first seen.
    since: Timestamp,
    /// The engine has not said yet where it keeps files.
    awaits_engine: bool,
    listed_at: Option<Timestamp>,
    state: BackupState,
}

impl Backups {
    /// Reads which directories may be used besides those that flags name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn read(named: &[PathBuf], data_dir: &Path, db: &Db) -> Result<Self, DbError> {
        let mut connection = db.read().await?;
        let before = meta::get(&mut connection, DIRECTORY_BEFORE).await?;
        let before: Option<String> = before.and_then(|text| serde_json::from_str(&text).ok());
        Ok(Self {
            known: Mutex::default(),
            allowed: Allowed {
                named: named.to_vec(),
                before: before.map(PathBuf::from),
            },
            data_dir: data_dir.to_owned(),
        })
    }

    /// Decides whether backups may be kept in a directory.
    ///
    /// # Errors
    /// The rule and the remedy.
    pub fn permit(&self, directory: &Path) -> Result<(), String> {
        self.allowed.permit(directory).map(drop)
    }

    /// Checks that a directory can be used for backups now. Asks the file system, so it blocks.
    ///
    /// # Errors
    /// The rule and the remedy.
    pub fn check(&self, directory: &Path, engine_root: Option<&Path>) -> Result<(), String> {
        let check = || {
            let directory = Directory::open_for(directory, &self.data_dir)?;
            self.allowed.check(&directory, engine_root)
        };
        self.permit(directory)?;
        check().map_err(|error| chain(&error))
    }

    /// Warning about a directory that no flag names, or that waits for the engine.
    pub fn warning(&self) -> Option<String> {
        let known = self.known();
        let known = known.as_ref()?;
        let directory = &known.directory;
        let shown = directory.display();
        match self.allowed.permit(directory) {
            _ if known.awaits_engine => Some(format!(
                "backup.directory {shown} is not used until the container engine has said where it keeps files of agents, who must not read a backup; make the engine available"
            )),
            Ok(Permission::Before) => Some(format!(
                "backup.directory {shown} was set before directories of backups had to be allowed, and is used without; {}, or start it with --backup-directory {shown}",
                name_flag(directory)
            )),
            Ok(Permission::Named) | Err(_) => None,
        }
    }

    fn known(&self) -> MutexGuard<'_, Option<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state now.
    pub fn state(&self) -> Option<BackupState> {
        self.known().as_ref().map(|known| known.state.clone())
    }

    /// Fault and its beginning: the newest backup failed, or is older than two intervals and an hour.
    pub fn fault(&self, now: Timestamp) -> Option<(Timestamp, &'static str)> {
        let known = self.known();
        let known = known.as_ref()?;
        if let Some(failed) = known.state.last_failure {
            let why = "the newest backup failed; `agentyard status` and `agentyard events` say why, and `agentyard backup DIR` makes one now";
            return Some((failed, why));
        }
        let newest = known.state.last_success.unwrap_or(known.since);
        let due = newest.plus(known.every * 2).plus(Duration::from_secs(3600));
        let why = "no backup was made for two intervals; `agentyard backup DIR` makes one now";
        (now > due).then_some((due, why))
    }

    /// Notes the schedule as it is set now; another directory begins anew.
    fn follow(&self, set: Option<(PathBuf, Duration)>, now: Timestamp) {
        let mut known = self.known();
        *known = set.map(|(directory, every)| match known.take() {
            Some(known) if known.directory == directory => Known { every, ..known },
            _ => Known {
                directory,
                every,
                since: now,
                awaits_engine: false,
                listed_at: None,
                state: BackupState::default(),
            },
        });
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        if let Some(known) = self.known().as_mut() {
            change(known);
        }
    }

    /// Notes a failure; true when it is the first since the last success.
    fn fail(&self, why: &str, now: Timestamp) -> bool {
        let mut first = false;
        self.change(|known| {
            first = known.state.last_failure.is_none() || known.state.why != why;
            known.state.last_failure = Some(now);
            why.clone_into(&mut known.state.why);
        });
        first
    }

    /// Notes a success; true when the one before had failed.
    fn succeed(&self, at: Timestamp) -> bool {
        let mut failed = false;
        self.change(|known| {
            failed = known.state.last_failure.take().is_some();
            known.state.last_success = Some(at);
            known.state.why.clear();
        });
        failed
    }
}

/// Reason of a failure of a backup in which something is missing that could not be read.
fn describe_unread(name: &str, left_out: &LeftOut) -> String {
    format!(
        "{} entries could not be read and are not in the backup {name}; its manifest.json names them. Older backups are kept until they can be read again",
        left_out.unread()
    )
}

/// Makes backups when they are due.
pub struct Schedule {
    /// The installation.
    pub installation: Installation,
    /// Opens the configuration.
    pub master_key: Arc<MasterKey>,
    /// The clock.
    pub clock: SharedClock,
    /// Only the leader makes backups.
    pub leadership: Leadership,
    /// Their state.
    pub backups: Arc<Backups>,
    /// Knows where the engine keeps files.
    pub view: Arc<EngineView>,
    /// The engine keeps files of agents on a host that may be this one.
    pub engine_has_root: bool,
    /// Changes with each save of the configuration.
    pub settings: watch::Receiver<Arc<WebSettings>>,
    /// Ends a backup under way.
    pub shutdown: CancellationToken,
}

impl Schedule {
    /// Runs until it is cancelled.
    pub async fn run(self) {
        let mut settings = self.settings.clone();
        loop {
            settings.mark_unchanged();
            // During an outage there is nothing to say that is not said already.
            if self.installation.db.away().is_none()
                && let Err(error) = self.look().await
            {
                let error = chain(&error);
                warn!(error, "the schedule of backups could not be read");
            }
            tokio::select! {
                () = sleep(LOOK) => {}
                Ok(()) = settings.changed() => {}
            }
        }
    }

    async fn look(&self) -> Result<(), DbError> {
        let reader = self.installation.db.reader();
        let (config, _) = api::settings::read(&reader, &self.master_key).await?;
        let directory = config.get(&keys::backup::DIRECTORY).map(PathBuf::from);
        let every = config.get(&keys::backup::EVERY);
        let now = self.clock.now();
        self.backups.follow(directory.zip(every), now);
        let Some(known) = self.backups.known().clone() else {
            return Ok(());
        };
        // Without it no directory can be told from one of the engine's.
        let awaits_engine = self.engine_has_root && !self.view.has_answered();
        self.backups
            .change(|known| known.awaits_engine = awaits_engine);
        if awaits_engine {
            return Ok(());
        }
        let fresh = |at: Timestamp| now >= at && now.since(at) < LIST;
        if !known.listed_at.is_some_and(fresh) {
            self.list(&known.directory, now).await?;
        }
        if self.leadership.is_leader() && self.is_due(now) {
            self.make(&known.directory, &config).await?;
        }
        Ok(())
    }

    fn is_due(&self, now: Timestamp) -> bool {
        let known = self.backups.known();
        let Some(known) = known.as_ref() else {
            return false;
        };
        let waits =
            |at: Option<Timestamp>, delay| at.is_some_and(|at| now.left_of(at, delay).is_some());
        let again = known.every.min(AGAIN);
        !waits(known.state.last_success, known.every) && !waits(known.state.last_failure, again)
    }

    fn open(
        &self,
        path: PathBuf,
    ) -> impl FnOnce() -> Result<(Directory, Vec<Kept>), String> + Send + 'static {
        let (data_dir, instance) = (
            self.installation.data_dir.clone(),
            self.installation.instance.clone(),
        );
        let allowed = self.backups.allowed.clone();
        let engine_root = self.view.root_dir();
        move || {
            let open = || {
                let directory = Directory::open_for(&path, &data_dir)?;
                allowed.check(&directory, engine_root.as_deref())?;
                let mut kept = directory.list()?;
                kept.retain(|kept| kept.head.instance == instance);
                Ok::<_, BackupError>((directory, kept))
            };
            open().map_err(|error| chain(&error))
        }
    }

    /// Notes the newest backup that is there.
    async fn list(&self, path: &std::path::Path, now: Timestamp) -> Result<(), DbError> {
        let listed = spawn_blocking(self.open(path.to_owned())).await;
        match listed.map_err(|error| error.to_string()).flatten() {
            Ok((_, kept)) => {
                // One from the future was made while the clock was wrong.
                let newest = kept.iter().rev().find(|kept| kept.head.started_at <= now);
                let finished = newest.map(|kept| kept.head.finished_at);
                self.backups.change(|known| {
                    known.listed_at = Some(now);
                    known.state.last_success = newest.map(|kept| kept.head.started_at);
                    if finished > known.state.last_failure {
                        known.state.last_failure = None;
                        known.state.why.clear();
                    }
                });
                match newest {
                    Some(newest) if newest.head.left_out.unread() > 0 => {
                        self.failed(&describe_unread(&newest.name, &newest.head.left_out))
                            .await
                    }
                    _ => Ok(()),
                }
            }
            Err(why) => {
                self.backups.change(|known| known.listed_at = Some(now));
                self.failed(&why).await
            }
        }
    }

    async fn make(&self, path: &std::path::Path, config: &Config) -> Result<(), DbError> {
        let opened = spawn_blocking(self.open(path.to_owned())).await;
        let directory = match opened.map_err(|error| error.to_string()).flatten() {
            Ok((directory, _)) => directory,
            Err(why) => return self.failed(&why).await,
        };
        info!("a scheduled backup begins");
        let shutdown = self.shutdown.clone();
        let made = self
            .installation
            .back_up(Destination::Folder(directory), move |_| {
                !shutdown.is_cancelled()
            })
            .await;
        let made = match made {
            Ok(made) => made,
            Err(_) if self.shutdown.is_cancelled() => return Ok(()),
            // The command line makes one: that one counts.
            Err(CreateError::Backup(BackupError::Busy(_))) => {
                self.backups.change(|known| known.listed_at = None);
                return Ok(());
            }
            Err(error) => return self.failed(&chain(&error)).await,
        };
        let head = &made.head;
        let recovered = self.backups.succeed(head.started_at);
        let left_out = head.left_out.total();
        info!(
            entries = head.entries,
            bytes = head.bytes,
            shared = head.shared,
            left_out,
            "a scheduled backup is complete"
        );
        let keep = config.get(&keys::backup::KEEP);
        let days = config.get(&keys::backup::KEEP_DAYS);
        let age = (days > 0).then(|| Duration::from_secs(days.saturating_mul(24 * 60 * 60)));
        let name = made.path.as_ref().and_then(|path| path.file_name());
        let name = name.unwrap_or_default().to_string_lossy();
        let removed = match head.left_out.unread() {
            0 => self.prune(path.to_owned(), keep, age).await,
            _ => Vec::new(),
        };
        let about = About::whole("backup").detail(match removed.len() {
            0 => name.to_string(),
            count => format!("{name}; removed {count} older"),
        });
        let key = &self.master_key;
        let writer = Writer::new(self.installation.db.clone(), key, Arc::clone(&self.clock));
        let tx = writer.begin(Author::system(PART, "backup")).await?;
        tx.commit(about).await?;
        if head.left_out.unread() > 0 {
            return self.failed(&describe_unread(&name, &head.left_out)).await;
        }
        match recovered {
            true => {
                self.record(Reason::Recovered, "a backup was made again")
                    .await
            }
            false => Ok(()),
        }
    }

    /// Removes old backups; that it fails is logged, and harms nothing.
    async fn prune(&self, path: PathBuf, keep: u64, age: Option<Duration>) -> Vec<String> {
        let open = self.open(path);
        let (instance, now) = (self.installation.instance.clone(), self.clock.now());
        let pruned = spawn_blocking(move || {
            let (directory, _) = open()?;
            let pruned = directory.prune(&instance, keep, age, now);
            pruned.map_err(|error| chain(&error))
        });
        let pruned = pruned.await.map_err(|error| error.to_string()).flatten();
        pruned.unwrap_or_else(|error| {
            warn!(error, "old backups could not be removed");
            Vec::new()
        })
    }

    async fn failed(&self, why: &str) -> Result<(), DbError> {
        match self.backups.fail(why, self.clock.now()) {
            false => Ok(()),
            true => {
                error!(why, "a scheduled backup failed");
                self.record(Reason::BackupFailed, why).await
            }
        }
    }

    async fn record(&self, reason: Reason, message: &str) -> Result<(), DbError> {
        let mut tx = self.installation.db.begin().await?;
        event::record_of_service(&mut tx, reason, PART, message, self.clock.now()).await?;
        tx.commit().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_of_before_goes_on_with_a_warning() {
        let backups = Backups {
            allowed: Allowed {
                named: vec!["/mnt/named".into()],
                before: Some("/mnt/before".into()),
            },
            ..Backups::default()
        };
        let now = Timestamp::from_secs(0);
        let warn = |directory: &str| {
            backups.follow(Some((directory.into(), Duration::from_secs(1))), now);
            backups.warning()
        };
        assert_eq!(warn("/mnt/named/daily"), None);
        let warning = warn("/mnt/before").unwrap();
        assert!(
            warning.contains("add the line `backup-directory: /mnt/before`"),
            "{warning}"
        );
        assert!(backups.permit(Path::new("/mnt/new")).is_err());
        backups.change(|known| known.awaits_engine = true);
        let warning = backups.warning().unwrap();
        assert!(warning.contains("until the container engine"), "{warning}");
    }

    #[test]
    fn failed_or_missing_backup_is_a_fault() {
        let backups = Backups::default();
        let at = Timestamp::from_secs;
        let day = Duration::from_secs(86_400);
        assert_eq!(backups.state(), None);
        let set = || Some((PathBuf::from("/mnt/backup"), day));
        backups.follow(set(), at(0));
        assert_eq!(backups.fault(at(2 * 86_400)), None);
        assert!(backups.fault(at(2 * 86_400 + 3601)).is_some());
        backups.succeed(at(86_400));
        backups.follow(set(), at(2 * 86_400 + 3601));
        assert_eq!(backups.fault(at(2 * 86_400 + 3601)), None);
        assert!(backups.fail("no space", at(100_000)));
        assert!(!backups.fail("no space", at(100_001)));
        let (since, _) = backups.fault(at(100_002)).unwrap();
        assert_eq!(since, at(100_001));
        assert_eq!(backups.state().unwrap().why, "no space");
        assert!(backups.succeed(at(100_003)));
        assert_eq!(backups.fault(at(100_004)), None);
        // Another directory knows nothing of this one's.
        backups.follow(Some(("/mnt/other".into(), day)), at(100_005));
        assert_eq!(backups.state(), Some(BackupState::default()));
        backups.follow(None, at(100_006));
        assert_eq!(backups.fault(at(i64::from(u32::MAX))), None);
    }
}
