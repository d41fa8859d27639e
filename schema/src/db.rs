//! The database: opening, migrating, reading and writing.
//!
//! One code path serves SQLite and PostgreSQL through `sqlx::Any`. SQLite has one writer connection
//! whose transactions begin `IMMEDIATE` (a deferred transaction that upgrades would fail at once
//! when another writer is active) and a pool of readers; PostgreSQL has one pool.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use sqlx::any::AnyPoolOptions;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::PgListener;
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, Connection as _};
use tokio::sync::broadcast;
use tracing::{error, info, warn};

use crate::bell::{self, Bell, Ringer};
use crate::change::pending::{Gone, Pending};
use crate::change::query as change;
use crate::connection::{BEGIN_WRITING, Connection, Reading};
use crate::error::{DbError, OpenError};
use crate::ids::{Kind, Uid};
use crate::link::Link;
pub use crate::link::{Refusal, StorageFault};
use crate::postgres;
use crate::private;
use crate::replica::{self, Notice};
use crate::statement::{execute, scalar};

#[cfg(feature = "test-support")]
pub mod fixture;

pub(crate) static MIGRATOR: Migrator = sqlx::migrate!("./migrations");

const READERS: u32 = 4;
/// A commit is on the disk before it is answered.
const SYNCHRONOUS: &str = "PRAGMA synchronous = FULL";
/// Connections to PostgreSQL for reading, and as many for writing: whoever waits for a lock holds up no reader.
const POSTGRES_CONNECTIONS: u32 = 6;
pub(crate) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);
/// With the time that a lock is waited for, nobody waits longer than five seconds.
const POSTGRES_ACQUIRE: Duration = Duration::from_secs(3);
/// How often PostgreSQL is asked whether it is there.
const PROBE_EVERY: Duration = Duration::from_millis(500);
/// One that takes longer to answer nothing is away. With the time between two questions, everybody knows
/// within two seconds.
const PROBE_LIMIT: Duration = Duration::from_millis(1500);
/// News of other replicas that wait to be read.
const NOTICES: usize = 1024;
/// While it is away.
const PROBE_AGAIN: Duration = Duration::from_millis(250);

/// Which database is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// A file.
    Sqlite(PathBuf),
    /// A server. The URL holds a password and is never shown.
    Postgres(String),
}

impl Backend {
    /// Reads `sqlite:<path>`, `sqlite://<path>`, `postgres://…` or `postgresql://…`.
    pub fn parse(url: &str) -> Result<Self, OpenError> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path.contains('?') || path == ":memory:" {
                return Err(OpenError::Url(format!("sqlite:{path} names no file")));
            }
            return Ok(Self::Sqlite(PathBuf::from(path)));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Self::Postgres(url.to_owned()));
        }
        Err(OpenError::Url(
            url.split(':').next().unwrap_or_default().to_owned(),
        ))
    }

    /// Its kind: `sqlite` or `postgresql`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgresql",
        }
    }

    /// Where the database is, for people; never with credentials.
    pub fn place(&self) -> String {
        match self {
            Self::Sqlite(path) => path.display().to_string(),
            Self::Postgres(url) => url::Url::parse(url).map_or_else(
                |_| "postgres".to_owned(),
                |url| {
                    format!(
                        "postgres://{}{}",
                        url.host_str().unwrap_or("local"),
                        url.path()
                    )
                },
            ),
        }
    }
}

#[derive(Debug, Clone)]
struct Pools {
    writer: AnyPool,
    readers: AnyPool,
}

/// An open database.
#[derive(Debug, Clone)]
pub struct Db {
    backend: Backend,
    /// Others after each outage: no connection outlives one.
    pools: Arc<RwLock<Pools>>,
    link: Link,
    ringer: Ringer,
    changed: Ringer,
    notices: broadcast::Sender<Notice>,
}

impl Db {
    /// Opens and migrates. A database that is unreadable or newer than this release is refused and
    /// left as it is.
    pub async fn open(backend: Backend) -> Result<Self, OpenError> {
        sqlx::any::install_default_drivers();
        let (writer, readers) = match &backend {
            Backend::Sqlite(path) => {
                refuse_others_files(path)?;
                refuse_foreign_file(path, &backend).await?;
                let created = create_private(path).await;
                created.map_err(|error| not_opened(&backend, sqlx::Error::Io(error)))?;
                let url = sqlite_url(path, "rwc");
                let tried = try_sqlite(&url).await;
                tried.map_err(|error| not_opened(&backend, error))?;
                let writer = sqlite_pool(&url, 1).await;
                let writer = writer.map_err(|error| not_opened(&backend, error))?;
                let connection = writer.acquire().await;
                let mut connection = connection.map_err(OpenError::Prepare)?;
                migrate(&mut connection, &backend).await?;
                drop(connection);
                let readers = sqlite_pool(&url, READERS).await;
                let readers = readers.map_err(|error| not_opened(&backend, error))?;
                (writer, readers)
            }
            Backend::Postgres(url) => {
                postgres::check(url, &backend.place()).await?;
                // Another replica may migrate for as long as it takes.
                let connecting = tokio::time::timeout(ACQUIRE_TIMEOUT, AnyConnection::connect(url));
                let connection = connecting.await.unwrap_or(Err(sqlx::Error::PoolTimedOut));
                let mut connection = connection.map_err(OpenError::Unreachable)?;
                migrate(&mut connection, &backend).await?;
                let _ = connection.close().await;
                let pool = async || {
                    let pool = postgres_options().connect(url).await;
                    pool.map_err(OpenError::Unreachable)
                };
                (pool().await?, pool().await?)
            }
        };
        Ok(Self::of(backend, writer, readers))
    }

    /// Returns true when a PostgreSQL server that takes changes has no tables of the service; changes nothing.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn has_no_tables(url: &str) -> Result<bool, OpenError> {
        sqlx::any::install_default_drivers();
        postgres::has_no_tables(url).await
    }

    /// Reads a whole SQLite file and refuses a damaged one; changes nothing. On PostgreSQL its server does that.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn check_file(backend: &Backend) -> Result<(), OpenError> {
        sqlx::any::install_default_drivers();
        match backend {
            Backend::Sqlite(path) => refuse_foreign_file(path, backend).await,
            Backend::Postgres(_) => Ok(()),
        }
    }

    /// Opens the database of an installation whose service may be running. Nothing is created or migrated: a database that
    /// is not of this release is refused and left as it is.
    pub async fn join(backend: Backend) -> Result<Self, OpenError> {
        sqlx::any::install_default_drivers();
        let (writer, readers) = match &backend {
            Backend::Sqlite(path) => {
                refuse_others_files(path)?;
                let failed = |error| not_opened(&backend, error);
                // A look that changes nothing comes first: SQLite would set up its log in any file.
                refuse_another_release(&sqlite_url(path, "ro"), &backend).await?;
                let url = sqlite_url(path, "rw");
                try_sqlite(&url).await.map_err(failed)?;
                let writer = sqlite_pool(&url, 1).await.map_err(failed)?;
                (writer, sqlite_pool(&url, 1).await.map_err(failed)?)
            }
            Backend::Postgres(url) => {
                postgres::check(url, &backend.place()).await?;
                refuse_another_release(url, &backend).await?;
                let pool = async || {
                    let pool = postgres_options().connect(url).await;
                    pool.map_err(OpenError::Unreachable)
                };
                (pool().await?, pool().await?)
            }
        };
        Ok(Self::of(backend, writer, readers))
    }

    fn of(backend: Backend, writer: AnyPool, readers: AnyPool) -> Self {
        Self {
            link: Link::new(matches!(backend, Backend::Postgres(_))),
            backend,
            pools: Arc::new(RwLock::new(Pools { writer, readers })),
            ringer: bell::bell().0,
            changed: bell::bell().0,
            #[expect(
                clippy::disallowed_methods,
                reason = "holds `NOTICES` notices, the oldest are dropped"
            )]
            notices: broadcast::Sender::new(NOTICES),
        }
    }

    /// Which database this is.
    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    /// A bell that rings when desired state was committed.
    pub fn bell(&self) -> Bell {
        self.ringer.subscribe()
    }

    /// A bell that rings when this process has committed a change of any object, statuses included.
    pub fn changes(&self) -> Bell {
        self.changed.subscribe()
    }

    /// News of executors at other replicas. They come only if this was asked for before [`Db::listen`].
    pub(crate) fn notices(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    fn pools(&self) -> Pools {
        let pools = self.pools.read();
        pools.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connections of the pools for reading and for writing: idle and in use.
    pub fn connections(&self) -> [(&'static str, usize, usize); 2] {
        let Pools { writer, readers } = self.pools();
        [("read", readers), ("write", writer)].map(|(name, pool)| {
            let (size, idle) = (pool.size() as usize, pool.num_idle());
            (name, idle, size.saturating_sub(idle))
        })
    }

    /// A connection for reads outside a transaction.
    pub async fn read(&self) -> Result<Reading, DbError> {
        Connection::of(&self.pools().readers, &self.link)
            .await
            .map(Reading)
    }

    /// A transaction that reads one moment, for reads of several tables that belong together.
    pub async fn snapshot(&self) -> Result<Reading, DbError> {
        let statement = match self.backend {
            Backend::Sqlite(_) => "BEGIN",
            Backend::Postgres(_) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        };
        let connection = Connection::beginning(&self.pools().readers, &self.link, statement).await;
        connection.map(Reading)
    }

    /// A transaction that may write.
    pub async fn begin(&self) -> Result<Tx, DbError> {
        Ok(Tx(self.begin_observed().await?))
    }

    /// A transaction that may write what was observed.
    pub(crate) async fn begin_observed(&self) -> Result<ObservedTx, DbError> {
        let statement = match self.backend {
            Backend::Sqlite(_) => BEGIN_WRITING,
            Backend::Postgres(_) => "BEGIN",
        };
        self.link.check_changes()?;
        Ok(ObservedTx {
            connection: Connection::beginning(&self.pools().writer, &self.link, statement).await?,
            ring: false,
            ringer: self.ringer.clone(),
            pending: Pending::default(),
            changed: self.changed.clone(),
            notify: matches!(self.backend, Backend::Postgres(_)),
        })
    }

    /// The fault of the last write, if that failed for the storage of the database. What is written next is
    /// tried all the same, and clears it when it succeeds.
    pub fn storage_fault(&self) -> Option<StorageFault> {
        self.link.storage_fault()
    }

    /// Reason why the database is not used as it otherwise would be, although it answers.
    pub fn refusal(&self) -> Option<Refusal> {
        self.link.refusal()
    }

    /// Uses the database no more: it is not the service's any more.
    pub fn abandon(&self, why: &'static str) {
        self.link.abandon(why);
    }

    /// Why the database cannot be reached, while it is known that it cannot. Whoever needs it fails at once.
    pub fn away(&self) -> Option<Arc<str>> {
        self.link.away()
    }

    /// Finds out whether the database is there and takes changes, again and again, so that no request has to wait for it:
    /// asks it by a connection of its own, and as soon as another connection has failed. After an outage
    /// everybody gets new connections. Never ends; on SQLite there is nothing to do.
    pub async fn keep(&self) {
        let Backend::Postgres(url) = &self.backend else {
            return std::future::pending().await;
        };
        let mut probe = None;
        let mut suspected = false;
        loop {
            // A session keeps the settings that it began with.
            if (suspected || self.link.refusal().is_some())
                && let Ok(Ok(new)) =
                    tokio::time::timeout(PROBE_LIMIT, AnyConnection::connect(url)).await
            {
                probe = Some(new);
            }
            let had_connection = probe.is_some();
            let asked = tokio::time::timeout(PROBE_LIMIT, probe_refusal(&mut probe, url));
            match asked.await {
                Ok(Ok(refusal)) => {
                    let refused = self.note(refusal);
                    let was_away = self.link.away().is_some();
                    if was_away || (refused && refusal.is_none()) {
                        self.renew(url).await;
                    }
                    if was_away {
                        info!("the database answers again");
                    }
                }
                // Its connection alone may have been ended.
                Ok(Err(error)) if had_connection => {
                    warn!(%error, "the connection that watches the database is lost");
                    probe = None;
                    continue;
                }
                Ok(Err(error)) => self.lost(&error.to_string()),
                Err(_) => {
                    probe = None;
                    self.lost("it does not answer");
                }
            }
            if self.link.away().is_some() {
                tokio::time::sleep(PROBE_AGAIN).await;
            } else {
                let waited = tokio::time::timeout(PROBE_EVERY, self.link.suspected());
                suspected = waited.await.is_ok();
            }
        }
    }

    /// Notes what the database refuses; returns true when it refused something before.
    fn note(&self, refusal: Option<Refusal>) -> bool {
        let before = self.link.refuse(refusal);
        match refusal {
            Some(refusal) if before != Some(refusal) => {
                let why = refusal.why();
                error!(why, "changes are refused");
            }
            None if before.is_some() => info!("the database takes changes again"),
            _ => {}
        }
        before.is_some()
    }

    fn lost(&self, why: &str) {
        if self.link.lost(why) {
            error!(why, "the database is not available");
        }
    }

    /// New connections for everybody, and then the word that there are some.
    async fn renew(&self, url: &str) {
        let lazy = || postgres_options().connect_lazy(url);
        let new = match lazy().and_then(|writer| Ok((writer, lazy()?))) {
            Ok((writer, readers)) => Pools { writer, readers },
            Err(error) => return self.lost(&error.to_string()),
        };
        let old = {
            let mut pools = self.pools.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *pools, new)
        };
        self.link.restored();
        // Those that are still lent are closed when they are given back.
        let closed = async { tokio::join!(old.writer.close(), old.readers.close()) };
        let _ = tokio::time::timeout(PROBE_LIMIT, closed).await;
    }

    /// Forwards rings of other processes to the bell; returns at once on SQLite, which only one
    /// process serves. Notifications may be lost around a reconnect, so each one counts as
    /// an interruption.
    pub async fn listen(&self) -> Result<(), DbError> {
        let Backend::Postgres(url) = &self.backend else {
            return Ok(());
        };
        loop {
            tokio::select! {
                biased;
                // Its connection may be dead without anybody telling.
                _ = self.link.gone() => {}
                () = self.hear(url) => {}
            }
            self.ringer.disconnected();
            tokio::time::sleep(PROBE_AGAIN).await;
            self.link.back().await;
        }
    }

    /// Listens until the connection is lost.
    async fn hear(&self, url: &str) {
        let listening = async {
            let mut listener = PgListener::connect(url).await?;
            listener.listen(bell::CHANNEL).await?;
            if self.notices.receiver_count() > 0 {
                listener.listen(replica::CHANNEL).await?;
            }
            // It would reconnect before it reports a lost connection.
            listener.eager_reconnect(false);
            Ok::<_, sqlx::Error>(listener)
        };
        match listening.await {
            Ok(mut listener) => {
                self.ringer.reconnected();
                let _ = self.notices.send(Notice::All);
                // `None` stands for a lost connection.
                while let Ok(Some(heard)) = listener.try_recv().await {
                    if heard.channel() == bell::CHANNEL {
                        self.ringer.ring();
                    } else if let Some(notice) = Notice::read(heard.payload()) {
                        let _ = self.notices.send(notice);
                    }
                }
                warn!("the connection that reports changes of other replicas is lost");
            }
            Err(error) => warn!(%error, "cannot listen for changes of other replicas"),
        }
    }

    /// Whether changes of other processes do not arrive as they happen. Always false on SQLite, where
    /// there are none.
    pub fn is_degraded(&self) -> bool {
        self.ringer.is_degraded()
    }

    /// Whether a trivial query is answered.
    pub async fn ping(&self) -> Result<(), DbError> {
        let mut connection = self.read().await?;
        let _: i32 = scalar!(&mut connection, crate::meta::PING)?;
        Ok(())
    }

    /// Writes tables (on SQLite the whole file) anew, so that no bytes of former rows are left.
    pub(crate) async fn rewrite(&self, tables: &str) -> Result<(), DbError> {
        let mut connection = Connection::of(&self.pools().writer, &self.link).await?;
        let connection = connection.raw();
        if let Backend::Postgres(_) = self.backend {
            let statement = AssertSqlSafe(format!("{}{tables}", crate::meta::REWRITE_TABLES));
            sqlx::query(statement).execute(&mut *connection).await?;
            return Ok(());
        }
        sqlx::query(crate::meta::REWRITE_FILE)
            .execute(&mut *connection)
            .await?;
        let busy: i64 = sqlx::query_scalar(crate::meta::EMPTY_LOG)
            .fetch_one(&mut *connection)
            .await?;
        match busy {
            0 => Ok(()),
            _ => Err(DbError::WrongState("somebody else reads the database file")),
        }
    }

    /// The newest migration that was applied.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn schema_version(&self) -> Result<i64, DbError> {
        let mut connection = self.read().await?;
        let applied: Vec<i64> = sqlx::query_scalar(crate::meta::APPLIED_MIGRATIONS)
            .fetch_all(connection.raw())
            .await?;
        Ok(applied.last().copied().unwrap_or_default())
    }

    /// Copies a SQLite database, as it is at one moment, to a new private file, and saves that.
    ///
    /// # Errors
    /// When it is none, the file exists, or one of them fails.
    pub async fn copy_to(&self, path: &Path) -> Result<(), DbError> {
        let failed = |error| DbError::from(sqlx::Error::Io(error));
        let (Backend::Sqlite(_), Some(name)) = (&self.backend, path.to_str()) else {
            return Err(DbError::WrongState(
                "only a SQLite database is copied to a file with a name in UTF-8",
            ));
        };
        let made = tokio::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .await;
        let made = made.map_err(failed)?;
        let mut connection = self.read().await?;
        sqlx::query(crate::meta::COPY_FILE)
            .bind(name)
            .execute(connection.raw())
            .await?;
        made.sync_all().await.map_err(failed)
    }

    /// Checks a copy of a SQLite database that no process uses; nothing beside it is written.
    ///
    /// # Errors
    /// The fault of the database, in words.
    pub async fn check_copy(path: &Path) -> Result<(), String> {
        sqlx::any::install_default_drivers();
        let url = format!("{}&immutable=1", sqlite_url(path, "ro"));
        let check = async {
            let mut connection = AnyConnection::connect(&url).await?;
            let verdict: Vec<String> = sqlx::query_scalar(crate::meta::INTEGRITY_CHECK)
                .fetch_all(&mut connection)
                .await?;
            connection.close().await?;
            Ok::<_, sqlx::Error>(verdict)
        };
        match check.await {
            Ok(verdict) if verdict == ["ok"] => Ok(()),
            Ok(verdict) => Err(format!("its integrity check says: {}", verdict.join("; "))),
            Err(error) => Err(format!("it cannot be opened: {error}")),
        }
    }

    /// Closes all connections; on SQLite this folds the log into the file.
    pub async fn close(&self) {
        let Pools { writer, readers } = self.pools();
        readers.close().await;
        writer.close().await;
    }
}

/// A transaction that may write desired state, too. Whoever acts for somebody, or for the service itself, has it from
/// [`audit::Writer`](crate::audit::Writer) only.
#[derive(Debug)]
pub struct Tx(ObservedTx);

impl Tx {
    /// As [`ObservedTx::commit`].
    pub async fn commit(self) -> Result<(), DbError> {
        self.0.commit().await
    }
}

impl Deref for Tx {
    type Target = ObservedTx;

    fn deref(&self) -> &ObservedTx {
        &self.0
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut ObservedTx {
        &mut self.0
    }
}

/// A transaction that may write what was observed: statuses, facts, finalizers, events. Dropped without
/// [`ObservedTx::commit`], it changes nothing.
#[derive(Debug)]
pub struct ObservedTx {
    connection: Connection,
    ring: bool,
    ringer: Ringer,
    pending: Pending,
    changed: Ringer,
    notify: bool,
}

impl ObservedTx {
    /// Marks that desired state changes here: the commit rings the bell.
    pub(crate) fn ring_on_commit(&mut self) {
        self.ring = true;
    }

    /// Marks that an object is created or changed here. Watchers are notified of it, and reconcilers read nothing
    /// else: without it a new generation waits for the next full pass.
    pub(crate) fn changed(&mut self, kind: Kind, uid: &Uid) {
        self.pending.changed(kind, uid);
    }

    /// Marks that all objects of a kind are changed here.
    pub(crate) fn all_changed(&mut self, kind: Kind) {
        self.pending.all_changed(kind);
    }

    /// Marks that an object is purged here.
    pub(crate) fn gone(&mut self, kind: Kind, uid: &Uid, gone: Gone) {
        self.pending.gone(kind, uid, gone);
    }

    /// Makes it so, and wakes the reconcilers when desired state changed.
    pub async fn commit(mut self) -> Result<(), DbError> {
        let changed = !self.pending.is_empty();
        if changed {
            // Last, so that the row all changes share is locked for the shortest time, and by whoever
            // has every other lock already: nobody who holds it waits for anybody.
            change::write(&mut self.connection, &self.pending).await?;
        }
        if self.ring && self.notify {
            execute!(&mut self.connection, crate::meta::NOTIFY, bell::CHANNEL)?;
        }
        self.connection.commit().await?;
        if changed {
            self.changed.ring();
        }
        if self.ring {
            self.ringer.ring();
        }
        Ok(())
    }
}

impl Deref for ObservedTx {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for ObservedTx {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

pub(crate) fn sqlite_url(path: &Path, mode: &str) -> String {
    // Characters with a meaning in URLs are legal in file names.
    let path = path
        .to_string_lossy()
        .replace('%', "%25")
        .replace('?', "%3F")
        .replace('#', "%23");
    format!("sqlite:{path}?mode={mode}")
}

/// How every connection works.
async fn set_up_sqlite(
    connection: &mut AnyConnection,
    synchronous: &'static str,
) -> Result<(), sqlx::Error> {
    for pragma in [
        "PRAGMA busy_timeout = 15000",
        "PRAGMA journal_mode = WAL",
        synchronous,
        "PRAGMA foreign_keys = ON",
    ] {
        sqlx::query(pragma).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Opens it once: a pool would try until its time is over, and then say nothing but that.
async fn try_sqlite(url: &str) -> Result<(), sqlx::Error> {
    let mut connection = AnyConnection::connect(url).await?;
    set_up_sqlite(&mut connection, SYNCHRONOUS).await?;
    connection.close().await
}

async fn sqlite_pool(url: &str, connections: u32) -> Result<AnyPool, sqlx::Error> {
    sqlite_pool_with(url, connections, SYNCHRONOUS).await
}

async fn sqlite_pool_with(
    url: &str,
    connections: u32,
    synchronous: &'static str,
) -> Result<AnyPool, sqlx::Error> {
    AnyPoolOptions::new()
        .max_connections(connections)
        .min_connections(1)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .after_connect(move |connection, _| Box::pin(set_up_sqlite(connection, synchronous)))
        // No server is at the other end that could have gone away, and to ask costs two changes of threads.
        .test_before_acquire(false)
        .before_acquire(|connection, _| {
            // It went back after the ROLLBACK that the end of an unfinished transaction has queued. If that failed,
            // its connection stays in a transaction for ever.
            Box::pin(async move { Ok(!connection.is_in_transaction()) })
        })
        .connect(url)
        .await
}

fn postgres_options() -> AnyPoolOptions {
    AnyPoolOptions::new()
        .max_connections(POSTGRES_CONNECTIONS)
        .acquire_timeout(POSTGRES_ACQUIRE)
        .after_connect(|connection, _| {
            Box::pin(async move {
                // A replica that stands still in the middle of a transaction must not hold its locks for ever, and
                // meanwhile others say that they cannot go on.
                for limit in [crate::meta::LIMIT_IDLE, crate::meta::LIMIT_LOCKS] {
                    sqlx::query(limit).execute(&mut *connection).await?;
                }
                Ok(())
            })
        })
}

/// Asks the database why changes would fail, by a new connection if there is none.
async fn probe_refusal(
    probe: &mut Option<AnyConnection>,
    url: &str,
) -> Result<Option<Refusal>, sqlx::Error> {
    let mut connection = match probe.take() {
        Some(connection) => connection,
        None => AnyConnection::connect(url).await?,
    };
    let refusal = postgres::read_refusal(&mut connection).await?;
    *probe = Some(connection);
    Ok(refusal)
}

const SQLITE_CORRUPT: i32 = 11;

/// A database that could not be opened: because it is none, or because its disk is full, which its owner can mend.
fn not_opened(backend: &Backend, error: sqlx::Error) -> OpenError {
    let words = error.to_string();
    let code = error.as_database_error().and_then(|said| said.code());
    let code = code.and_then(|code| code.parse::<i32>().ok());
    if code.is_some_and(|code| code & 0xff == SQLITE_CORRUPT) {
        return damaged(backend, &words);
    }
    match error {
        sqlx::Error::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => {
            OpenError::Prepare(sqlx::Error::Io(error))
        }
        // It could be opened a moment ago.
        sqlx::Error::PoolTimedOut => OpenError::Prepare(error),
        error => match DbError::from(error) {
            DbError::StorageFull(error) => OpenError::Prepare(error),
            _ => unreadable(backend, words),
        },
    }
}

/// What SQLite finds is a listing of many pages.
fn damaged(backend: &Backend, findings: &str) -> OpenError {
    let mut findings = findings.lines().filter(|line| !line.starts_with("***"));
    OpenError::Damaged {
        place: backend.place(),
        detail: findings.next().unwrap_or("unknown").to_owned(),
    }
}

fn unreadable(backend: &Backend, detail: impl ToString) -> OpenError {
    OpenError::Unreadable {
        place: backend.place(),
        detail: detail.to_string(),
    }
}

fn newer(backend: &Backend, detail: String) -> OpenError {
    OpenError::Newer {
        place: backend.place(),
        detail,
    }
}

/// Makes an empty file that only its owner can read, unless there is one. SQLite gives its other files
/// the same mode.
async fn create_private(path: &Path) -> std::io::Result<()> {
    let created = tokio::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .await;
    match created {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The database and the files that SQLite puts beside it are ours alone: it follows links, and gives new files the mode of
/// what it finds.
fn refuse_others_files(path: &Path) -> Result<(), OpenError> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        private::check_file(Path::new(&file)).map_err(|detail| OpenError::NotPrivate {
            place: file.display().to_string(),
            detail,
        })?;
    }
    Ok(())
}

/// Inspects an existing file without any chance of changing it, before it is opened for writing.
async fn refuse_foreign_file(path: &Path, backend: &Backend) -> Result<(), OpenError> {
    match tokio::fs::metadata(path).await {
        Ok(meta) if meta.is_file() && meta.len() > 0 => {}
        Ok(meta) if meta.is_file() => return Ok(()),
        Ok(_) => return Err(unreadable(backend, "it is not a regular file")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable(backend, error)),
    }
    // What a killed process has left in the log is part of the database: without it, pages may be
    // missing that were on their way from the log to the file.
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let has_log = tokio::fs::metadata(&log)
        .await
        .is_ok_and(|meta| meta.len() > 0);
    let url = if has_log {
        sqlite_url(path, "ro")
    } else {
        // `immutable=1` creates neither log nor shared-memory file beside the database.
        format!("{}&immutable=1", sqlite_url(path, "ro"))
    };
    let failed = |error: sqlx::Error| not_opened(backend, error);
    let mut connection = AnyConnection::connect(&url).await.map_err(failed)?;
    let verdict: String = sqlx::query_scalar(crate::meta::QUICK_CHECK)
        .fetch_one(&mut connection)
        .await
        .map_err(failed)?;
    if verdict != "ok" {
        return Err(damaged(backend, &verdict));
    }
    let tables: Vec<String> = sqlx::query_scalar(crate::meta::SQLITE_TABLES)
        .fetch_all(&mut connection)
        .await
        .map_err(failed)?;
    if !tables.iter().any(|name| name == "_sqlx_migrations") {
        return match tables.first() {
            None => Ok(()),
            Some(foreign) => {
                let detail = format!("it holds a table {foreign:?} of another program");
                Err(unreadable(backend, detail))
            }
        };
    }
    let applied: Vec<i64> = sqlx::query_scalar(crate::meta::APPLIED_MIGRATIONS)
        .fetch_all(&mut connection)
        .await
        .map_err(failed)?;
    match applied
        .into_iter()
        .find(|version| !MIGRATOR.version_exists(*version))
    {
        Some(version) => Err(newer(backend, format!("unknown migration {version}"))),
        None => Ok(()),
    }
}

/// Refuses a database that this release would have to migrate, or whose migrations it does not know.
async fn refuse_another_release(url: &str, backend: &Backend) -> Result<(), OpenError> {
    let connecting = tokio::time::timeout(ACQUIRE_TIMEOUT, AnyConnection::connect(url));
    let connection = connecting.await.unwrap_or(Err(sqlx::Error::PoolTimedOut));
    let mut connection = connection.map_err(|error| match backend {
        Backend::Sqlite(_) => not_opened(backend, error),
        Backend::Postgres(_) => OpenError::Unreachable(error),
    })?;
    let applied = sqlx::query_scalar(crate::meta::APPLIED_MIGRATIONS);
    let applied = applied.fetch_all(&mut connection).await;
    let _ = connection.close().await;
    let applied: Vec<i64> = applied.map_err(|error| match backend {
        Backend::Sqlite(_) => not_opened(backend, error),
        Backend::Postgres(_) if error.as_database_error().is_some() => unreadable(backend, error),
        Backend::Postgres(_) => OpenError::Unreachable(error),
    })?;
    if let Some(version) = applied.iter().find(|&&v| !MIGRATOR.version_exists(v)) {
        return Err(newer(backend, format!("unknown migration {version}")));
    }
    let known = MIGRATOR
        .iter()
        .filter(|known| known.migration_type.is_up_migration());
    match known
        .map(|known| known.version)
        .find(|version| !applied.contains(version))
    {
        Some(version) => Err(OpenError::Older {
            place: backend.place(),
            detail: format!("migration {version} is missing"),
        }),
        None => Ok(()),
    }
}

async fn migrate(connection: &mut AnyConnection, backend: &Backend) -> Result<(), OpenError> {
    MIGRATOR
        .run(connection)
        .await
        .map_err(|error| match error {
            MigrateError::VersionMissing(version) => {
                newer(backend, format!("unknown migration {version}"))
            }
            MigrateError::VersionMismatch(version) => {
                let detail = format!("migration {version} differs from the one in this release");
                newer(backend, detail)
            }
            other => OpenError::Migrate(other),
        })?;
    info!(database = backend.place(), "database is ready");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_commit_waits_for_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let backend = Backend::Sqlite(directory.path().join("agentyard.db"));
        let db = Db::open(backend).await.unwrap();
        let pools = db.pools.read().unwrap().clone();
        for pool in [&pools.writer, &pools.readers] {
            let mode: i64 = sqlx::query_scalar("PRAGMA synchronous")
                .fetch_one(pool)
                .await
                .unwrap();
            assert_eq!(mode, 2, "FULL");
        }
    }
}
