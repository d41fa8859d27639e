//! Builds the service from its parts and hands every task to the supervisor.

mod agent_listener;
mod backup;
mod certificates;
mod data_watch;
mod directory;
pub(crate) mod engine_address;
mod exec;
mod flags;
pub mod health;
mod identity_provider;
mod listeners;
mod metrics;
mod notify;
mod ports;
mod readings;
mod reload;
pub(crate) mod storage;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use api::auth::Signer;
use api::auth::api_token::ApiTokens;
use api::auth::database::DatabaseAuthenticator;
use api::auth::login_limit::LoginLimit;
use api::auth::password::PasswordPool;
use api::auth::unknown_proxy::{UnknownProxies, describe_width};
use api::deps::Dependencies;
use api::dispatch::Api;
use api::files::Files;
use api::follows::FollowLimit;
use api::mcp::{Mcp, Own};
use api::plans::Plans;
use api::quota::Arrivals;
use api::replica::{Processes, Replicas, serve_replicas};
use api::server::{Limits, Listener, Server};
use api::settings::WebSettings;
use api::tag_cache::TagCache;
use api::watch::WatchHub;
use engine::Compute;
use reconcilers::drivers::adapter_source::{self, HttpSource};
use reconcilers::drivers::agent_probe::HttpProbe;
use reconcilers::drivers::git::{self, GitProgram};
use reconcilers::drivers::ldap::LdapDirectory;
use reconcilers::drivers::model_probe::ModelProbe;
use reconcilers::drivers::oidc::OidcProvider;
use reconcilers::drivers::registry::{self, OciRegistry};
use reconcilers::register::register;
use reconcilers::runtime::leader::{self, Leadership, LeaseTiming};
use reconcilers::runtime::summary::{ReconcilerHandle, StatusTick};
use reconcilers::runtime::supervise::Supervisor;
use reconcilers::runtime::{Context, Controllers, Settings as ControllerSettings, Waits};
use reconcilers::shared::load::{self, Load};
use reconcilers::shared::{Options, Shared, World};
use reconcilers::stores::{Database, LeaseRow, LocalDataDir};
use rustix::process::{Resource, getrlimit};
use schema::adapter::store::ActiveAdapter;
use schema::audit::Writer;
use schema::clock::{SharedClock, SystemClock};
use schema::config::flags::AgentFlags;
use schema::db::{Backend, Db};
use schema::home::{Homes, Readings};
use schema::ids::Uid;
use schema::replica::{Replica, ReplicaTable};
use schema::skill_repository::{Checkouts, GIT_SCRATCH};
use schema::skill_store::SkillStore;
use tokio::net::TcpListener;
use tokio::signal::unix::Signal;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::info;

use self::certificates::Certificates;
pub use self::data_watch::DataLost;
use self::data_watch::DataWatch;
use self::flags::{FlagsOfLeader, LeaseWithFlags};
use self::health::Health;
pub use self::listeners::Listeners;
use self::metrics::Exporter;
use self::storage::Gauge;
use crate::backup::Installation;
use crate::logging::LogFilter;
use crate::prepare::Prepared;
use crate::settings::{AgentListen, EngineSettings, Settings};

/// Whatever keeps the service from starting.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// A running service.
pub struct Service {
    /// Holds every task.
    pub supervisor: Supervisor,
    /// Where people and clients find it, as a URL.
    pub address: String,
    /// The reconcilers.
    pub handles: Vec<Arc<dyn ReconcilerHandle>>,
    /// How the parts are.
    pub health: Arc<Health>,
    /// Address of the metrics, if they are served.
    pub metrics: Option<SocketAddr>,
    /// Notes of users' files that are being read.
    pub readings: Readings,
}

/// What a process holds before it touches its data.
pub struct Held {
    /// The addresses that it answers at.
    pub listeners: Listeners,
    /// The data directory, when nobody else may use it; it also says who leads.
    pub lock: Option<Leadership>,
    /// What it logs.
    pub log: LogFilter,
    /// Tells the process to read certificate and settings again.
    pub hangup: Option<Signal>,
    /// Files with certificates of the connection to the engine.
    pub engine_certificates: Vec<PathBuf>,
}

/// How long a replacement may take to become ready.
const READINESS_TIMEOUT: Duration = Duration::from_secs(120);
/// How often each container is compared in full.
const VERIFY_EVERY: Duration = Duration::from_secs(600);

/// Builds everything and starts it.
///
/// # Errors
/// When a setting cannot be used, or the database fails.
pub async fn build(
    settings: &Settings,
    prepared: &Prepared,
    held: Held,
    compute: Compute,
    shutdown: CancellationToken,
) -> Result<Service, Error> {
    // Installed by main already, unless a test builds the service itself.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Held {
        listeners,
        lock,
        log,
        hangup,
        engine_certificates,
    } = held;
    let clock: SharedClock = Arc::new(SystemClock);
    let readings = readings::begin(settings, prepared, &clock).await?;
    let mut supervisor = Supervisor::new(shutdown.clone());
    attend(&mut supervisor, &compute);
    let tasks = TaskTracker::new();
    let process = if lock.is_some() {
        health::process_name()
    } else {
        health::holder_name()
    };
    let own_flags = flags::list_flags(settings);
    let flags_of_leader = FlagsOfLeader::new(prepared, &clock, &own_flags);
    if lock.is_some() {
        flags_of_leader.apply().await?;
    }
    let leadership = lead(
        lock,
        LeaseWithFlags {
            row: LeaseRow(prepared.db.clone()),
            flags: flags_of_leader,
        },
        &process,
        &clock,
        &mut supervisor,
    );
    let tick = StatusTick::default();
    let waits = Waits::default();
    let database = Arc::new(Database::new(
        prepared.db.clone(),
        Arc::clone(&prepared.master_key),
        Arc::clone(&clock),
    ));
    let data_dir = LocalDataDir::open(&settings.data_dir, &prepared.instance_id)?;
    data_dir.note_readings(&readings);
    let world = World {
        agents: Arc::new(HttpProbe::default()),
        data_dir: Arc::new(data_dir),
        git: Arc::new(GitProgram::new(
            settings.data_dir.join(GIT_SCRATCH),
            git::Limits::default(),
        )),
        directory: Arc::new(LdapDirectory::new(tasks.clone(), shutdown.clone())),
        compute,
        packages: Arc::new(HttpSource::new(adapter_source::Limits::default())?),
        clock: Arc::clone(&clock),
        waits: waits.clone(),
        tasks: tasks.clone(),
        shutdown: shutdown.clone(),
    };
    let shared = Shared::new(&database, world, options(settings, prepared));
    let mut controllers = Controllers {
        supervisor: &mut supervisor,
        context: Context {
            leadership: leadership.clone(),
            clock: Arc::clone(&clock),
            tick: tick.clone(),
            waits,
            shutdown: shutdown.clone(),
        },
        settings: ControllerSettings {
            resync: settings.resync,
            ..ControllerSettings::default()
        },
        objects: database.clone(),
        handles: Vec::new(),
    };
    register(&database, &shared, &mut controllers);
    let handles = controllers.handles;
    let load = Arc::new(Load::new(Arc::clone(&shared.view), Arc::clone(&clock)));
    let sampling = (Arc::clone(&load), leadership.clone());
    let (view, pulls) = (Arc::clone(&shared.view), Arc::clone(&shared.pulls));

    // The first answers already obey the stored configuration.
    let (stored, generation) =
        api::settings::read(&prepared.db.reader(), &prepared.master_key).await?;
    api::settings::log_ignored(&stored);
    let web_settings = WebSettings::of(&stored, generation);
    if let Some(warning) = describe_width(&web_settings) {
        tracing::warn!("{warning}");
    }
    let (web_sender, web_settings) = watch::channel(Arc::new(web_settings));
    let provider = Arc::new(OidcProvider::new(Arc::clone(&clock), tasks.clone()));
    let health = Health::new(
        process.clone(),
        prepared.db.clone(),
        Arc::clone(&clock),
        leadership.clone(),
        Arc::clone(&view),
        handles.clone(),
        Gauge::new(places(settings, prepared)),
    );
    let (named, data_dir) = (&settings.backup_directories, &settings.data_dir);
    let backups = backup::Backups::read(named, data_dir, &prepared.db).await?;
    let backups = Arc::new(backups);
    let health = health.with_provider(Arc::clone(&provider));
    let own_certificate = settings.tls.as_ref().map(|(file, _)| file.clone());
    let certificates = Certificates::new(own_certificate, engine_certificates);
    let certificates = Arc::new(certificates);
    let health = health.with_certificates(Arc::clone(&certificates));
    let health = Arc::new(health.with_backups(Arc::clone(&backups)));
    health.measure().await;
    let schedule = backup::Schedule {
        installation: Installation::new(
            &settings.data_dir,
            &prepared.db,
            &prepared.instance_id,
            &prepared.master_key,
        ),
        master_key: Arc::clone(&prepared.master_key),
        clock: Arc::clone(&clock),
        leadership: leadership.clone(),
        backups,
        view: Arc::clone(&view),
        engine_has_root: matches!(settings.engine, EngineSettings::Docker { .. }),
        settings: web_settings.clone(),
        shutdown: shutdown.clone(),
    };
    let data_watch = DataWatch::new(&settings.data_dir, &prepared.db)?;
    let ports = Arc::new(ports::Ports {
        view: Arc::clone(&view),
        load,
        pulls,
        leadership,
        health: Arc::clone(&health),
        handles: handles.clone(),
    });
    let skills = SkillStore::open(&settings.data_dir)?;
    if let Err(error) = skills.clear_leftovers() {
        let error = schema::error::chain(&error);
        tracing::warn!(error, "cannot remove what an interrupted import has left");
    }
    let homes = Arc::new(Homes::open(&settings.data_dir, &prepared.instance_id)?);
    homes.note_readings(&readings);
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let for_tasks = (tasks.clone(), shutdown.clone());
    let processes = join_processes(&listeners, prepared, &process, &own_flags).await?;
    let replicas = join_replicas(&listeners, prepared, &processes, &clock, for_tasks);
    let deps = Arc::new(Dependencies {
        chats: api::chat::Chats::default(),
        clock: Arc::clone(&clock),
        db: prepared.db.reader(),
        writer: Writer::new(
            prepared.db.clone(),
            &prepared.master_key,
            Arc::clone(&clock),
        ),
        turns: Default::default(),
        plans: Plans::default(),
        skills: Arc::new(skills),
        checkouts: Arc::new(Checkouts::open(&settings.data_dir)?),
        files: Files::new(homes, is_beside_users(settings, prepared)),
        arrivals: Arrivals::default(),
        master_key: Arc::clone(&prepared.master_key),
        adapter: ActiveAdapter::new(prepared.db.reader()),
        status_ticks: tick.subscribe(),
        settings: web_settings.clone(),
        settings_sender: web_sender.clone(),
        log_override: log.fixed_by(),
        tls: listeners.tls.is_some(),
        signer: Signer::new(&prepared.session_secret)?,
        authenticator: Arc::new(DatabaseAuthenticator::new(
            prepared.db.reader(),
            web_settings.clone(),
        )),
        passwords: PasswordPool::new(cores)?,
        unknown_proxies: UnknownProxies::default(),
        console: crate::console::load()?,
        login_limit: LoginLimit::new(Arc::clone(&clock)),
        api_tokens: ApiTokens::new(Arc::clone(&clock)),
        session_ends: Default::default(),
        follows: FollowLimit::default(),
        watch: WatchHub::default(),
        mcp: Mcp::new(
            &prepared.master_key,
            prepared.db.reader(),
            web_settings.clone(),
            Arc::clone(&clock),
            Own::listening(listeners.addresses(settings)),
            replicas.clone(),
        )?,
        replicas,
        processes: processes.clone(),
        logs: ports.clone(),
        exec: ports.clone(),
        inspect: ports.clone(),
        stats: ports.clone(),
        images: ports.clone(),
        pulls: ports.clone(),
        viewers: FollowLimit::default(),
        registry: Arc::new(ports::Registries(OciRegistry::new(
            registry::Limits::default(),
        )?)),
        tags: TagCache::default(),
        directory: Arc::new(directory::Directories {
            store: database,
            shared: Arc::clone(&shared),
        }),
        provider: Arc::new(identity_provider::Providers {
            shared,
            driver: provider,
        }),
        models: Arc::new(ports::ModelProviders(ModelProbe::default())),
        engine: ports.clone(),
        leadership: ports.clone(),
        health: health.clone(),
        reconcilers: ports,
        tasks: tasks.clone(),
        shutdown: shutdown.clone(),
    });
    supervise_api(&mut supervisor, &deps, prepared);
    let every = settings.sample.unwrap_or(load::EVERY);
    supervise_sampling(&mut supervisor, sampling, every);
    let metrics = listeners.metrics.as_ref();
    let metrics = metrics.and_then(|listener| listener.local_addr().ok());
    if let Some(listener) = listeners.metrics {
        let exporter = Exporter::new(prepared.db.clone(), &deps, &view, &handles);
        let exporter = exporter.with_certificates(Arc::clone(&certificates));
        self::metrics::supervise(&mut supervisor, listener, exporter);
    }
    follow_level(&mut supervisor, log, web_settings);
    let own = (listeners.tls.clone(), certificates);
    reload::supervise_reload(&mut supervisor, &deps, own, hangup);
    let looking = (shutdown.clone(), Arc::clone(&health));
    supervisor.spawn("health", async move {
        let (shutdown, health) = looking;
        let _ = shutdown.run_until_cancelled(health.run()).await;
        Ok(())
    });
    watch_data(&mut supervisor, data_watch, prepared.db.clone());
    let backing_up = shutdown.clone();
    supervisor.spawn("backup", async move {
        let _ = backing_up.run_until_cancelled(schedule.run()).await;
        Ok(())
    });
    let routes = [api::routes::all(), api::routes::on_machine()];
    let for_replicas = Arc::clone(&deps);
    let api = Api::new(routes.into_iter().flatten().collect(), deps)?;
    let server = Server::new(api, limits());

    let Listeners {
        public,
        socket,
        agents,
        replicas,
        address,
        ..
    } = listeners;
    match replicas {
        Some((listener, _)) => supervise_replicas(&mut supervisor, listener, &for_replicas),
        None => {
            let beating = processes.record_heartbeats(shutdown.clone());
            supervisor.spawn("replica", async move {
                beating.await;
                Ok(())
            });
        }
    }
    serve(&mut supervisor, "api", server.clone(), public, &shutdown);
    serve(
        &mut supervisor,
        "admin-socket",
        server.clone(),
        socket,
        &shutdown,
    );
    match (settings.agent_listen, agents) {
        (AgentListen::Off | AgentListen::At(_), None) => {}
        (_, Some(listener)) => {
            serve(&mut supervisor, "agent-api", server, listener, &shutdown);
        }
        (AgentListen::Auto, None) => {
            let view = Arc::clone(&view);
            let token = shutdown.clone();
            supervisor.spawn("agent-api", async move {
                agent_listener::follow_gateway(view, server, token).await;
                Ok(())
            });
        }
    }
    notify::supervise(&mut supervisor, Arc::clone(&health), &address);
    supervisor.spawn("background", async move {
        shutdown.cancelled().await;
        tasks.close();
        tasks.wait().await;
        Ok(())
    });
    info!(address, data = %settings.data_dir.display(), "serving");
    Ok(Service {
        supervisor,
        address,
        handles,
        health,
        metrics,
        readings,
    })
}

/// Runs what the engine needs while it is used.
fn attend(supervisor: &mut Supervisor, compute: &Compute) {
    let Some(attendance) = compute.attendance.clone() else {
        return;
    };
    let shutdown = supervisor.shutdown();
    supervisor.spawn("engine", async move {
        let _ = shutdown.run_until_cancelled(attendance()).await;
        Ok(())
    });
}

/// Records this process beside the others of the database, if there may be any.
async fn join_processes(
    listeners: &Listeners,
    prepared: &Prepared,
    name: &str,
    flags: &AgentFlags,
) -> Result<Processes, Error> {
    let id = Uid::random().to_string();
    let address = listeners.replicas.as_ref().map_or("", |(_, url)| url);
    let Some(table) = ReplicaTable::of(&prepared.db) else {
        let me = Replica {
            id,
            number: 1,
            address: String::new(),
            name: name.to_owned(),
            flags: flags.to_text(),
        };
        return Ok(Processes::new(me, None));
    };
    let me = table.join(&id, address, name, flags).await?;
    Ok(Processes::new(me, Some(table)))
}

/// Passes requests on to other replicas, if there may be any.
fn join_replicas(
    listeners: &Listeners,
    prepared: &Prepared,
    processes: &Processes,
    clock: &SharedClock,
    for_tasks: (TaskTracker, CancellationToken),
) -> Replicas {
    match (&listeners.replicas, processes.table()) {
        (Some(_), Some((me, table))) => {
            let (key, clock) = (&prepared.master_key, Arc::clone(clock));
            Replicas::new(table.clone(), me.clone(), key, clock, for_tasks)
        }
        _ => Replicas::default(),
    }
}

/// Serves other replicas, and tells them that this one lives.
fn supervise_replicas(
    supervisor: &mut Supervisor,
    listener: TcpListener,
    deps: &Arc<Dependencies>,
) {
    let serving = serve_replicas(listener, Arc::clone(deps));
    supervisor.spawn("replica-api", async move {
        serving.await;
        Ok(())
    });
    let living = api::replica::run(Arc::clone(deps));
    supervisor.spawn("replica", async move {
        living.await;
        Ok(())
    });
}

/// Where the service writes.
fn places(settings: &Settings, prepared: &Prepared) -> Vec<PathBuf> {
    let mut places = vec![settings.data_dir.clone()];
    if let Backend::Sqlite(file) = prepared.db.backend()
        && let Some(directory) = file.parent()
    {
        // A file without a folder lies where the process works.
        let here = directory.as_os_str().is_empty();
        places.push(if here {
            ".".into()
        } else {
            directory.to_owned()
        });
    }
    places
}

/// Whether the database lies on the disk of users' directories.
fn is_beside_users(settings: &Settings, prepared: &Prepared) -> bool {
    let Backend::Sqlite(file) = prepared.db.backend() else {
        return false;
    };
    let device = |path: &Path| rustix::fs::stat(path).map(|stat| stat.st_dev).ok();
    let users = device(&settings.data_dir.join("users"));
    users.is_some() && users == device(file)
}

/// What reconcilers know of this service.
fn options(settings: &Settings, prepared: &Prepared) -> Options {
    Options {
        owner: prepared.instance_id.clone(),
        service_user: (
            rustix::process::getuid().as_raw(),
            rustix::process::getgid().as_raw(),
        ),
        agents: agent_listener::address(settings.agent_listen),
        readiness_timeout: READINESS_TIMEOUT,
        verify_every: settings.verify.unwrap_or(VERIFY_EVERY),
    }
}

/// As many connections of each listener as leave half of the files that may be open for everything else.
fn limits() -> Limits {
    let limits = Limits::default();
    let files = getrlimit(Resource::Nofile).current;
    // Two listeners have many clients: that for people and that for agents.
    let quarter = files.map_or(usize::MAX, |files| {
        usize::try_from(files / 4).unwrap_or(usize::MAX)
    });
    Limits {
        connections: limits.connections.min(quarter),
        ..limits
    }
}

/// Tasks that keep the API's view of the database fresh, and the database small.
fn supervise_api(supervisor: &mut Supervisor, deps: &Arc<Dependencies>, prepared: &Prepared) {
    let following = api::settings::follow(
        deps.db.clone(),
        Arc::clone(&deps.master_key),
        deps.settings_sender.clone(),
        deps.shutdown.clone(),
    );
    supervisor.spawn("settings", async move {
        following.await;
        Ok(())
    });
    let keeping = api::housekeeping::run(
        prepared.db.clone(),
        Arc::clone(&deps.clock),
        Arc::clone(&deps.master_key),
        deps.shutdown.clone(),
    );
    supervisor.spawn("housekeeping", async move {
        keeping.await;
        Ok(())
    });
    let watching = deps
        .watch
        .clone()
        .run(deps.db.clone(), deps.shutdown.clone());
    supervisor.spawn("watch", async move {
        watching.await;
        Ok(())
    });
    let revoking = api::mcp::end_revoked(Arc::clone(deps));
    supervisor.spawn("revocation", async move {
        revoking.await;
        Ok(())
    });
    let recording = api::mcp::record_calls(Arc::clone(deps));
    supervisor.spawn("mcp-audit", async move {
        recording.await;
        Ok(())
    });
    let timing = deps.mcp.hub.clone().run(deps.shutdown.clone());
    supervisor.spawn("executors", async move {
        timing.await;
        Ok(())
    });
    let (db, shutdown) = (prepared.db.clone(), deps.shutdown.clone());
    supervisor.spawn("database", async move {
        let _ = shutdown.run_until_cancelled(db.keep()).await;
        Ok(())
    });
    let db = prepared.db.clone();
    let shutdown = deps.shutdown.clone();
    supervisor.spawn("bell", async move {
        // On SQLite nobody else can ring, so there is nothing to listen to.
        if matches!(db.backend(), Backend::Postgres(_)) {
            let _ = shutdown.run_until_cancelled(db.listen()).await;
        } else {
            shutdown.cancelled().await;
        }
        Ok(())
    });
}

/// Samples what agents use.
fn supervise_sampling(
    supervisor: &mut Supervisor,
    (load, leadership): (Arc<Load>, Leadership),
    every: Duration,
) {
    let shutdown = supervisor.shutdown();
    supervisor.spawn("load", async move {
        let _ = shutdown
            .run_until_cancelled(load.run(leadership, every))
            .await;
        Ok(())
    });
}

/// Ends the process when the data is not the service's any more, and until then has all requests refused.
fn watch_data(supervisor: &mut Supervisor, watch: DataWatch, db: Db) {
    let shutdown = supervisor.shutdown();
    supervisor.spawn("data-watch", async move {
        match shutdown.run_until_cancelled(watch.run()).await {
            None => Ok(()),
            Some(lost) => {
                db.abandon(lost.public());
                Err(lost.into())
            }
        }
    });
}

/// Lets the log follow `log.level`: now, and whenever it is saved here or read again.
fn follow_level(
    supervisor: &mut Supervisor,
    log: LogFilter,
    mut settings: watch::Receiver<Arc<WebSettings>>,
) {
    log.set(settings.borrow_and_update().log_level);
    let shutdown = supervisor.shutdown();
    supervisor.spawn("log", async move {
        let follow = async {
            while settings.changed().await.is_ok() {
                log.set(settings.borrow_and_update().log_level);
            }
        };
        let _ = shutdown.run_until_cancelled(follow).await;
        Ok(())
    });
}

fn serve(
    supervisor: &mut Supervisor,
    name: &'static str,
    server: Server,
    listener: Listener,
    shutdown: &CancellationToken,
) {
    let shutdown = shutdown.clone();
    supervisor.spawn(name, async move {
        server.run(listener, shutdown).await;
        Ok(())
    });
}

/// Who runs the reconcilers: the holder of the data directory's lock, or of the lease row.
fn lead(
    lock: Option<Leadership>,
    lease: LeaseWithFlags,
    holder: &str,
    clock: &SharedClock,
    supervisor: &mut Supervisor,
) -> Leadership {
    if let Some(leadership) = lock {
        return leadership;
    }
    let (leadership, keeper) = leader::lease(
        Arc::new(lease),
        holder.to_owned(),
        LeaseTiming::default(),
        Arc::clone(clock),
    );
    let shutdown = supervisor.shutdown();
    supervisor.spawn("lease", async move {
        keeper.run(shutdown).await;
        Ok(())
    });
    leadership
}
