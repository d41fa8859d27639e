//! The first synchronisation with a directory, and an unchanged second one, against a bare paged search and the insertion of one
//! row for each of its entries. `AGENTYARD_BENCH_PEOPLE` changes the number of people (10,000), who are in 200 groups.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ldap3::adapters::{Adapter, EntriesOnly, PagedResults};
use ldap3::{LdapConnAsync, Scope, SearchEntry};
use reconcilers::directory::diff::{Diff, Limits, diff};
use reconcilers::directory::{Asked, DirectoryStore, UserPage};
use reconcilers::drivers::ldap::{Directory, DirectorySettings, GroupSearch, LdapDirectory};
use reconcilers::stores::Database;
use schema::audit::{self, ChainKey};
use schema::clock::{Clock, SystemClock};
use schema::config::history::SavedBy;
use schema::config::{Config, parse_patch, query as config};
use schema::db::{Backend, Db};
use schema::directory::SyncScope;
use schema::secrets::MasterKey;
use schema::user::Template;
use serde_json::json;
use sqlx::Connection as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::seconds;
use crate::slapd::{self, Slapd};

const GROUPS: usize = 200;
/// As the reconciler.
const PAGE: usize = 500;

pub async fn run() {
    let people = std::env::var("AGENTYARD_BENCH_PEOPLE").ok();
    let people: usize = people.and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let names: Vec<String> = (0..people).map(|n| format!("user{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let slapd = Slapd::with(
        &names,
        None,
        "sizelimit size.prtotal=unlimited",
        &slapd::groups(GROUPS, people),
    );
    let settings = DirectorySettings {
        timeout: Duration::from_secs(60),
        groups: GroupSearch::Groups {
            base_dn: "ou=groups,dc=example,dc=org".to_owned(),
            filter: "(cn={{groupname}})".to_owned(),
            member_attribute: "member".to_owned(),
        },
        ..slapd.settings()
    };
    println!("directory: {people} people in {GROUPS} groups");
    // The server's own caches are warm for both.
    search(&settings).await;

    let memory = Memory::begin();
    let begin = Instant::now();
    let found = search(&settings).await;
    let searched = begin.elapsed();
    insert(&found).await;
    let (bare, bare_memory) = (begin.elapsed(), memory.grown());
    drop(found);

    let service = Service::new().await;
    let memory = Memory::begin();
    let begin = Instant::now();
    let first = service.sync(&settings).await;
    let (took, took_memory) = (begin.elapsed(), memory.grown());
    assert_eq!(first.result.counts.added as usize, people + 3);
    let begin = Instant::now();
    let second = service.sync(&settings).await;
    let again = begin.elapsed();
    assert!(second.is_nothing());
    let ratio = |one: Duration, of: Duration| one.as_secs_f64() / of.as_secs_f64();
    println!("  bare paged search            {}", seconds(searched));
    println!(
        "  the same and an insert each  {}   {bare_memory} MiB",
        seconds(bare)
    );
    println!(
        "  first synchronisation        {}   × {:.2}   {took_memory} MiB",
        seconds(took),
        ratio(took, bare)
    );
    println!(
        "  unchanged                    {}   × {:.2}",
        seconds(again),
        ratio(again, bare)
    );
}

/// The peak of memory in use, in MiB.
struct Memory(u64);

impl Memory {
    fn begin() -> Self {
        // The peak is counted anew from here (proc(5)).
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        Self(Self::peak())
    }

    fn peak() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        line.split_whitespace()
            .next()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            / 1024
    }

    fn grown(&self) -> u64 {
        Self::peak().saturating_sub(self.0)
    }
}

/// What any program does that wants all entries.
async fn search(settings: &DirectorySettings) -> Vec<SearchEntry> {
    let (connection, mut ldap) = LdapConnAsync::new(settings.url.as_str()).await.unwrap();
    tokio::spawn(connection.drive());
    ldap.simple_bind(&settings.bind_dn, "service")
        .await
        .unwrap()
        .success()
        .unwrap();
    let adapters: Vec<Box<dyn Adapter<'_, _, _>>> = vec![
        Box::new(EntriesOnly::new()),
        Box::new(PagedResults::new(500)),
    ];
    let filter = settings.filter.replace("{{username}}", "*");
    let mut stream = ldap
        .streaming_search_with(
            adapters,
            &settings.base_dn,
            Scope::Subtree,
            &filter,
            vec!["uid"],
        )
        .await
        .unwrap();
    let mut entries = Vec::new();
    while let Some(entry) = stream.next().await.unwrap() {
        entries.push(SearchEntry::construct(entry));
    }
    stream.finish().await.success().unwrap();
    entries
}

async fn insert(entries: &[SearchEntry]) {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}?mode=rwc", dir.path().join("bare.db").display());
    sqlx::any::install_default_drivers();
    let mut connection = sqlx::AnyConnection::connect(&url).await.unwrap();
    let table = "CREATE TABLE people (dn TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL UNIQUE)";
    sqlx::query(table).execute(&mut connection).await.unwrap();
    let mut tx = connection.begin().await.unwrap();
    for entry in entries {
        sqlx::query("INSERT INTO people (dn, name) VALUES ($1, $2)")
            .bind(&entry.dn)
            .bind(&entry.attrs["uid"][0])
            .execute(&mut *tx)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
}

/// A database in ldap mode.
struct Service {
    store: Database,
    directory: LdapDirectory,
    // Dropped, and so removed, last.
    _dir: tempfile::TempDir,
}

impl Service {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(Backend::Sqlite(dir.path().join("agentyard.db")))
            .await
            .unwrap();
        let key = Arc::new(MasterKey::load_or_create(dir.path()).unwrap());
        let mut tx = db.begin().await.unwrap();
        audit::install(&mut tx, &ChainKey::of(&key)).await.unwrap();
        let patch = parse_patch(&json!({"web.auth_mode": "ldap"})).unwrap();
        let changes = patch.resolve(&Config::default()).unwrap();
        let by = SavedBy {
            actor: "bench",
            at: SystemClock.now(),
        };
        config::save(&mut tx, &key, &changes, None, by)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        Self {
            store: Database::new(db, key, Arc::new(SystemClock)),
            directory: LdapDirectory::new(TaskTracker::new(), CancellationToken::new()),
            _dir: dir,
        }
    }

    /// What the reconciler does in its passes.
    async fn sync(&self, settings: &DirectorySettings) -> Diff {
        let now = SystemClock.now();
        let asked = Asked {
            listing: self.directory.list(settings).await.unwrap().into(),
            at: now,
            scope: SyncScope::Users,
        };
        let limits = Limits {
            max_removal_percent: 20,
            grace: None,
        };
        let known = self.store.known().await.unwrap();
        let found = diff(&asked, &known, limits, now);
        let template = Template::of(&Config::default(), None);
        for changes in found.users.chunks(PAGE) {
            let page = UserPage {
                changes: changes.to_vec(),
                template: template.clone(),
                asked_at: now,
            };
            self.store.apply_users(&page, now).await.unwrap();
        }
        // The pass after it finds nothing left to do.
        let known = self.store.known().await.unwrap();
        assert!(diff(&asked, &known, limits, now).is_nothing());
        found
    }
}
