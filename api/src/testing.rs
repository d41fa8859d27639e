//! What tests of several modules share: dependencies without a world, and handlers that only tell
//! that they were reached.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use schema::adapter::Adapter;
use schema::adapter::store::{self as adapters, ActiveAdapter, Source};
use schema::api_token::{self, NewApiToken, Role as TokenRole};
use schema::audit::{self, ChainKey, Writer};
use schema::clock::ManualClock;
use schema::config::history::SavedBy;
use schema::config::{Config, keys::oidc};
use schema::db::{Db, fixture};
use schema::directory::SyncScope;
use schema::home::Homes;
use schema::ids::{Timestamp, Uid};
use schema::image::{ImageReference, PullLog, RunningPull};
use schema::live::ModelFault;
use schema::secrets::MasterKey;
use schema::skill_repository::Checkouts;
use schema::skill_store::SkillStore;
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::auth::api_token::ApiTokens;
use crate::auth::database::DatabaseAuthenticator;
use crate::auth::login_limit::LoginLimit;
use crate::auth::mcp_token::Bearer;
use crate::auth::password::{Cost, PasswordPool};
use crate::auth::session::SessionClaims;
use crate::auth::unknown_proxy::UnknownProxies;
use crate::auth::{Account, Authenticator, Role, Signer};
use crate::deps::{Dependencies, Deps};
use crate::dispatch::{Anyone, Api, Caller, OrdinaryUser, Session, Superadmin, Visitor};
use crate::error::{ApiError, Result};
use crate::files::Files;
use crate::follows::FollowLimit;
use crate::input::{Input, Nothing};
use crate::mcp::{Mcp, Own};
use crate::plans::Plans;
use crate::ports::{
    CheckStep, ContainerDetails, ContainerExec, ContainerInspect, ContainerLogs, ContainerStats,
    Directory, DirectoryCheck, DirectoryFailure, DirectoryListing, DirectoryPerson, DirectoryUser,
    DirectoryWanted, DryRun, EngineHealth, EngineState, ExecSettings, Execution, Health,
    IdentityProvider, Images, LeaderState, Leadership, LiveNumbers, LoadPoint, LocalImage,
    LogOptions, LogStream, ModelHost, ModelQuestion, ModelVerdict, Models, Network,
    NextReconciliation, PartHealth, PendingSignIn, PortError, ProvidedIdentity, ProviderFailure,
    Pulls, Reconcilers, RegistryCredentials, RegistryError, RegistryTags, Space, SyncPlan, Usage,
};
use crate::quota::Arrivals;
use crate::replica::{Processes, Replicas};
use crate::reply::Reply;
use crate::route::{Access, Handle, Modes, Route, Tokens};
use crate::settings::{AuthMode, WebSettings};
use crate::tag_cache::TagCache;
use crate::watch::WatchHub;
use schema::replica::Replica;

/// The moment at which tests begin.
pub(crate) const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);

/// Who saves the configuration behind the handlers' back.
pub(crate) const BY: SavedBy<'static> = SavedBy {
    actor: "root",
    at: NOW,
};

/// Live sessions by cookie name.
#[derive(Default)]
pub(crate) struct Accounts(pub(crate) BTreeMap<String, Role>);

#[async_trait]
impl Authenticator for Accounts {
    async fn account(&self, claims: &SessionClaims) -> Result<Option<Account>> {
        let name = claims.username.as_str();
        if name == "broken" {
            return Err(ApiError::internal("the database is gone"));
        }
        Ok(self.0.get(name).map(|role| Account {
            uid: Uid::from(name.to_owned()),
            name: claims.username.clone(),
            role: *role,
        }))
    }
}

/// A world in which nothing is there.
struct Nowhere;

#[async_trait]
impl ContainerLogs for Nowhere {
    async fn logs(&self, _: &Uid, _: LogOptions) -> Result<Option<LogStream>, PortError> {
        Ok(None)
    }
}

#[async_trait]
impl ContainerExec for Nowhere {
    async fn is_running(&self, _: &Uid) -> Result<bool, PortError> {
        Ok(false)
    }

    async fn start(&self, _: &Uid, _: &ExecSettings) -> Result<Option<Execution>, PortError> {
        Ok(None)
    }
}

#[async_trait]
impl ContainerInspect for Nowhere {
    async fn inspect(&self, _: &Uid) -> Result<Option<ContainerDetails>, PortError> {
        Ok(None)
    }
}

#[async_trait]
impl ContainerStats for Nowhere {
    async fn stats(&self, _: &Uid) -> Result<Option<Usage>, PortError> {
        Ok(None)
    }
}

#[async_trait]
impl Images for Nowhere {
    async fn list(&self) -> Result<Vec<LocalImage>, PortError> {
        Ok(Vec::new())
    }
}

impl Pulls for Nowhere {
    fn log(&self, _: &str) -> Option<Arc<PullLog>> {
        None
    }

    fn running(&self) -> Vec<RunningPull> {
        Vec::new()
    }
}

#[async_trait]
impl RegistryTags for Nowhere {
    async fn tags(
        &self,
        _: &ImageReference,
        _: Option<RegistryCredentials>,
        _: bool,
    ) -> Result<Vec<String>, RegistryError> {
        Ok(Vec::new())
    }
}

/// A directory that says what it is told to, and counts how often it was asked for a sign-in.
pub(crate) struct ToldDirectory {
    pub(crate) person: Mutex<Result<Option<DirectoryPerson>, DirectoryFailure>>,
    pub(crate) plan: Mutex<Result<SyncPlan, DirectoryFailure>>,
    /// The step of a check that fails, and how many users a check finds.
    pub(crate) check: Mutex<(Option<CheckStep>, usize)>,
    pub(crate) asked: AtomicUsize,
}

impl Default for ToldDirectory {
    fn default() -> Self {
        Self {
            person: Mutex::new(Ok(None)),
            plan: Mutex::new(Ok(SyncPlan::default())),
            check: Mutex::new((None, 1)),
            asked: AtomicUsize::new(0),
        }
    }
}

#[async_trait]
impl Directory for ToldDirectory {
    async fn sign_in(
        &self,
        _: &str,
        _: &SecretString,
    ) -> Result<Option<DirectoryPerson>, DirectoryFailure> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.person.lock().unwrap().clone()
    }

    async fn users(&self) -> Result<DirectoryListing, DirectoryFailure> {
        let person = self.person.lock().unwrap().clone()?;
        let users = person.into_iter().map(|person| DirectoryUser {
            username: person.name,
            dn: Some(person.dn),
            groups: person.groups.into_iter().flatten().collect(),
        });
        Ok(DirectoryListing {
            users: users.collect(),
            skipped: Vec::new(),
        })
    }

    async fn check(
        &self,
        config: &Config,
        _: DirectoryWanted,
    ) -> Result<DirectoryCheck, DirectoryFailure> {
        match config.ldap_url() {
            Some(_) => {
                let (step, user_count) = self.check.lock().unwrap().clone();
                Ok(DirectoryCheck {
                    steps: step.into_iter().collect(),
                    user_count,
                    ..DirectoryCheck::default()
                })
            }
            None => Err(DirectoryFailure("ldap.host is not set".to_owned())),
        }
    }

    async fn plan(&self, _: SyncScope) -> Result<SyncPlan, DirectoryFailure> {
        self.plan.lock().unwrap().clone()
    }
}

/// Providers of models that give a verdict, and what they were asked.
#[derive(Default)]
pub(crate) struct ToldModels {
    pub(crate) fault: Mutex<Option<ModelFault>>,
    /// Address, model and key of each question.
    pub(crate) asked: Mutex<Vec<(String, String, Option<String>)>>,
    /// The addresses of every host.
    pub(crate) hosts: Mutex<Vec<ModelHost>>,
}

#[async_trait]
impl Models for ToldModels {
    async fn try_model(&self, question: &ModelQuestion) -> ModelVerdict {
        let key = question.key.as_ref();
        self.asked.lock().unwrap().push((
            question.address.to_string(),
            question.model.clone(),
            key.map(|key| key.expose_secret().to_owned()),
        ));
        let fault = *self.fault.lock().unwrap();
        ModelVerdict {
            fault,
            message: fault
                .map_or("the model answered", |_| "it failed")
                .to_owned(),
            remedy: fault.map_or("", |_| "mend it"),
        }
    }

    async fn locate(&self, _: &Url) -> Vec<ModelHost> {
        self.hosts.lock().unwrap().clone()
    }
}

/// An identity provider that says what it is told to.
pub(crate) struct ToldProvider {
    pub(crate) begins: Mutex<Result<(String, PendingSignIn), ProviderFailure>>,
    pub(crate) says: Mutex<Result<ProvidedIdentity, ProviderFailure>>,
    /// The verifiers, codes and issuers that it was asked with.
    pub(crate) asked: Mutex<Vec<(String, String, Option<String>)>>,
}

impl Default for ToldProvider {
    fn default() -> Self {
        let away = || ProviderFailure::Unavailable("it is away".to_owned());
        Self {
            begins: Mutex::new(Err(away())),
            says: Mutex::new(Err(away())),
            asked: Mutex::default(),
        }
    }
}

#[async_trait]
impl IdentityProvider for ToldProvider {
    async fn begin(&self, _: bool) -> Result<(String, PendingSignIn), ProviderFailure> {
        self.begins.lock().unwrap().clone()
    }

    async fn finish(
        &self,
        pending: &PendingSignIn,
        code: SecretString,
        issuer: Option<String>,
    ) -> Result<ProvidedIdentity, ProviderFailure> {
        let asked = (
            pending.verifier.clone(),
            code.expose_secret().to_owned(),
            issuer,
        );
        self.asked.lock().unwrap().push(asked);
        self.says.lock().unwrap().clone()
    }

    async fn check(&self, config: &Config) -> Result<Vec<CheckStep>, &'static str> {
        let issuer = config.get(&oidc::PROVIDER_URL).ok_or("oidc.provider_url")?;
        let secret = config.get(&oidc::CLIENT_SECRET).is_some();
        Ok(vec![CheckStep {
            name: "discovery",
            ok: secret,
            detail: issuer,
            ms: 1,
        }])
    }
}

impl EngineHealth for Nowhere {
    fn engine(&self) -> EngineState {
        EngineState {
            available: false,
            message: String::new(),
        }
    }

    fn cpus(&self) -> Option<u32> {
        Some(2)
    }

    fn network(&self) -> Option<Network> {
        None
    }

    fn load(&self) -> Vec<LoadPoint> {
        Vec::new()
    }
}

impl Health for Nowhere {
    fn parts(&self) -> Vec<PartHealth> {
        Vec::new()
    }

    fn disk(&self) -> Option<Space> {
        None
    }
}

impl Leadership for Nowhere {
    fn leader(&self) -> LeaderState {
        LeaderState {
            leading: false,
            holder: None,
        }
    }
}

#[async_trait]
impl Reconcilers for Nowhere {
    fn summaries(&self) -> Vec<(&'static str, LiveNumbers)> {
        Vec::new()
    }

    async fn dry_run(&self, _: &str, _: &str) -> Result<Option<DryRun>, String> {
        Ok(None)
    }

    fn next_reconciliation(&self, _: &str, _: &str) -> Option<NextReconciliation> {
        None
    }

    fn retry(&self, _: &str, _: &str) {}

    fn wake(&self, _: Option<&str>) {}
}

impl World {
    /// The mode that a route works in.
    pub(crate) fn in_mode_of(&self, route: &Route) {
        let auth_mode = match route.modes {
            // In other modes they plan only.
            _ if route.id.starts_with("auth_sync") => AuthMode::Ldap,
            Modes::Any | Modes::LocalOnly => AuthMode::Local,
            Modes::LdapOnly => AuthMode::Ldap,
        };
        let settings = WebSettings {
            auth_mode,
            ..WebSettings::default()
        };
        self.settings.send_replace(Arc::new(settings));
    }
}

/// Dependencies and what tests turn on them.
pub(crate) struct World {
    /// Holds the database for as long as the test runs.
    pub(crate) dir: tempfile::TempDir,
    /// For what tests do behind the handlers' backs.
    pub(crate) db: Db,
    pub(crate) status_ticks: watch::Sender<u64>,
    pub(crate) deps: Deps,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) settings: watch::Sender<Arc<WebSettings>>,
    pub(crate) directory: Arc<ToldDirectory>,
    pub(crate) provider: Arc<ToldProvider>,
    pub(crate) models: Arc<ToldModels>,
}

/// A world with the ordinary user `alice` and the superadmin `root`.
pub(crate) async fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let db = fixture::open_sqlite(dir.path()).await.unwrap();
    let master_key = Arc::new(MasterKey::load_or_create(dir.path()).unwrap());
    let mut tx = db.begin().await.unwrap();
    audit::install(&mut tx, &ChainKey::of(&master_key))
        .await
        .unwrap();
    let echo = Adapter::builtin("echo").unwrap().unwrap();
    // Without the object of the adapter, which tests of objects would have to know of.
    adapters::activate(&mut tx, &echo, Source::Base, BY)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let (status_ticks, ticks) = watch::channel(0);
    let clock = Arc::new(ManualClock::new(NOW));
    let (sender, settings) = watch::channel(Arc::new(WebSettings::default()));
    let secret = SecretSlice::from(b"test-integration-secret".to_vec());
    let accounts = [
        ("alice".to_owned(), Role::User),
        ("root".to_owned(), Role::Superadmin),
    ];
    let directory = Arc::new(ToldDirectory::default());
    let provider = Arc::new(ToldProvider::default());
    let models = Arc::new(ToldModels::default());
    let deps = Arc::new(Dependencies {
        replicas: Replicas::default(),
        processes: Processes::new(
            Replica {
                id: "this".to_owned(),
                number: 1,
                address: String::new(),
                name: "host:1".to_owned(),
                flags: String::new(),
            },
            None,
        ),
        chats: crate::chat::Chats::default(),
        directory: directory.clone(),
        provider: provider.clone(),
        models: models.clone(),
        clock: clock.clone(),
        writer: Writer::new(db.clone(), &master_key, clock.clone()),
        turns: Default::default(),
        plans: Plans::new(1),
        skills: Arc::new(SkillStore::open(dir.path()).unwrap()),
        checkouts: Arc::new(Checkouts::open(dir.path()).unwrap()),
        files: Files::new(Arc::new(Homes::open(dir.path(), "test").unwrap()), true),
        arrivals: Arrivals::default(),
        db: db.reader(),
        mcp: Mcp::new(
            &master_key,
            db.reader(),
            settings.clone(),
            clock.clone(),
            Own::default(),
            Replicas::default(),
        )
        .unwrap(),
        master_key,
        adapter: ActiveAdapter::new(db.reader()),
        status_ticks: ticks,
        reconcilers: Arc::new(Nowhere),
        settings,
        settings_sender: sender.clone(),
        log_override: None,
        tls: false,
        signer: Signer::new(&secret).unwrap(),
        authenticator: Arc::new(Accounts(accounts.into())),
        passwords: PasswordPool::with_cost(NonZeroUsize::MIN, Cost::TEST).unwrap(),
        unknown_proxies: UnknownProxies::default(),
        console: None,
        login_limit: LoginLimit::new(clock.clone()),
        api_tokens: ApiTokens::new(clock.clone()),
        session_ends: Default::default(),
        follows: FollowLimit::default(),
        watch: WatchHub::default(),
        logs: Arc::new(Nowhere),
        exec: Arc::new(Nowhere),
        inspect: Arc::new(Nowhere),
        stats: Arc::new(Nowhere),
        images: Arc::new(Nowhere),
        pulls: Arc::new(Nowhere),
        viewers: FollowLimit::default(),
        registry: Arc::new(Nowhere),
        tags: TagCache::default(),
        engine: Arc::new(Nowhere),
        leadership: Arc::new(Nowhere),
        health: Arc::new(Nowhere),
        tasks: TaskTracker::new(),
        shutdown: CancellationToken::new(),
    });
    let watching = deps.watch.clone();
    deps.tasks
        .spawn(watching.run(deps.db.clone(), deps.shutdown.clone()));
    World {
        dir,
        db,
        status_ticks,
        deps,
        clock,
        settings: sender,
        directory,
        provider,
        models,
    }
}

impl World {
    /// Where its files are.
    pub(crate) fn data_dir(&self) -> &std::path::Path {
        self.dir.path()
    }

    /// The same world, but sessions are those of its database.
    pub(crate) fn with_database_sessions(mut self) -> Self {
        let deps = Arc::get_mut(&mut self.deps).unwrap();
        let sessions = DatabaseAuthenticator::new(deps.db.clone(), deps.settings.clone());
        deps.authenticator = Arc::new(sessions);
        self
    }

    /// The `Cookie` header of a session issued now.
    pub(crate) fn cookie(&self, name: &str) -> String {
        let claims = SessionClaims::new(name.parse().unwrap(), NOW);
        format!("session={}", claims.to_cookie_value(&self.deps.signer))
    }

    /// An API token of each role.
    pub(crate) async fn api_tokens(&self) -> [(TokenRole, String); 2] {
        let mut tokens = Vec::new();
        let mut tx = self.db.begin().await.unwrap();
        for role in [TokenRole::Read, TokenRole::Admin] {
            let new = NewApiToken {
                name: format!("test-{role}"),
                role,
                expires_at: NOW.plus(std::time::Duration::from_secs(3600)),
                created_by: "root".to_owned(),
            };
            let (token, _) = api_token::create(&mut tx, &new, NOW).await.unwrap();
            tokens.push((role, token.expose_secret().to_owned()));
        }
        tx.commit().await.unwrap();
        tokens.try_into().unwrap()
    }

    /// The present CSRF token.
    pub(crate) fn token(&self, name: &str) -> String {
        crate::auth::csrf::token(&self.deps.signer, &name.parse().unwrap(), NOW)
    }

    /// An API whose handlers say that they were reached, but for the routes in `own`.
    pub(crate) fn api(&self, own: Vec<Route>) -> Api {
        let mut routes = crate::routes::all();
        routes.retain(|route| own.iter().all(|own| own.id != route.id));
        let routes = routes.into_iter().map(|route| match route.access {
            Access::Public => answered(route, reached::<Anyone>),
            Access::Visitor => answered(route, reached::<Visitor>),
            Access::Login => answered(route, reached::<Session>),
            Access::OrdinaryUser => answered(route, reached::<OrdinaryUser>),
            Access::Superadmin => answered(route, reached::<Superadmin>),
            Access::McpToken => answered(route, reached::<Bearer>),
        });
        Api::new(routes.chain(own).collect(), self.deps.clone()).unwrap()
    }
}

/// Rows of a method that no route with a session uses.
pub(crate) fn deletions() -> Vec<Route> {
    vec![
        Route::delete("end_session", "/api/test/session", reached::<Session>),
        Route::delete("end_mine", "/api/test/mine", reached::<OrdinaryUser>),
        Route::delete("end_all", "/api/test/all", reached::<Superadmin>).tokens(Tokens::Admin),
    ]
}

/// The route of an id with another handler.
pub(crate) fn with_handler<X>(id: &str, handler: impl Handle<X>) -> Route {
    let mut routes = crate::routes::all().into_iter();
    answered(routes.find(|route| route.id == id).unwrap(), handler)
}

fn answered<X>(route: Route, handler: impl Handle<X>) -> Route {
    assert_eq!(route.access, handler.access());
    Route {
        handler: handler.erase(),
        ..route
    }
}

async fn reached<C: Caller>(_: C, _: Input<Nothing>, _: Deps) -> Result<Reply> {
    Ok(Reply::ok("reached"))
}
