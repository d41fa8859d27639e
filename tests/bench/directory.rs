//! The first synchronisation with a directory, and an unchanged second one, against a bare paged search and the insertion of one
//! row for each of its entries. `AGENTYARD_BENCH_PEOPLE` changes the number of people (10,000), who are in 200 groups.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ldap3::adapters::{Adapter, EntriesOnly, PagedResults};
use ldap3::{LdapConnAsync, Scope, SearchEntry};
use reconcilers::directory::diff::{Diff, Limits, diff};
use reconcilers::directory::{Asked, DirectoryStore, UserPage};
use reconcilers::drivers::ldap::{
    Directory, DirectorySettings, GroupSearch, ID_ATTRIBUTES_OF_SERVERS, LdapDirectory,
};
use reconcilers::stores::Database;
use schema::audit::{self, ChainKey};
use schema::clock::{Clock, SystemClock};
use schema::config::history::SavedBy;
use schema::config::{Config, parse_patch, query as config};
use schema::db::{Backend, Db};
use schema::directory::SyncScope;
use schema::ids::UidPart;
use schema::secrets::MasterKey;
use schema::user::Template;
use serde_json::json;
use sqlx::Connection as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::slapd::{self, Slapd};

const PEOPLE: &str = "AGENTYARD_BENCH_PEOPLE";
/// Where the directory is, for a process that measures.
const URL: &str = "AGENTYARD_BENCH_DIRECTORY";
const GROUPS: usize = 200;
/// As the reconciler.
const PAGE: usize = 500;

pub async fn run() {
    let people = std::env::var(PEOPLE).ok();
    let people: usize = people.and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let names: Vec<String> = (0..people).map(|n| format!("user{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let slapd = Slapd::with(
        &names,
        None,
        "sizelimit size.prtotal=unlimited",
        &slapd::groups(GROUPS, people),
    );
    println!("directory: {people} people in {GROUPS} groups");
    let url = slapd.settings().url;
    // The server's own caches are warm for both.
    Part::Bare.measured(&url, people);
    let [searched, bare, bare_memory] = Part::Bare.measured(&url, people);
    let [first, again, memory] = Part::Service.measured(&url, people);
    println!("  bare paged search            {searched:.3} s");
    println!("  the same and an insert each  {bare:.3} s   {bare_memory} MiB");
    println!(
        "  first synchronisation        {first:.3} s   × {:.2}   {memory} MiB   × {:.2}",
        first / bare,
        memory / bare_memory
    );
    println!(
        "  unchanged                    {again:.3} s   × {:.2}",
        again / bare
    );
}

/// What is measured in a process of its own: to the other, memory that is used and free again would cost nothing.
#[derive(Clone, Copy, strum::EnumString, strum::IntoStaticStr)]
pub enum Part {
    #[strum(serialize = "directory-bare")]
    Bare,
    #[strum(serialize = "directory-service")]
    Service,
}

impl Part {
    /// Two times in seconds, and memory in MiB.
    fn measured(self, url: &url::Url, people: usize) -> [f64; 3] {
        let name: &'static str = self.into();
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args([name, "--bench"])
            .env(URL, url.as_str())
            .env(PEOPLE, people.to_string())
            .stderr(std::process::Stdio::inherit())
            .output()
            .unwrap();
        assert!(output.status.success(), "{name}");
        let text = String::from_utf8(output.stdout).unwrap();
        let numbers: Vec<f64> = text
            .split_whitespace()
            .map(|number| number.parse().unwrap())
            .collect();
        numbers.try_into().unwrap()
    }
}

/// Measures one part, and prints its numbers for the process that has asked for it.
pub async fn part(part: Part) {
    let people: usize = std::env::var(PEOPLE).unwrap().parse().unwrap();
    let settings = DirectorySettings {
        url: std::env::var(URL).unwrap().parse().unwrap(),
        start_tls: false,
        ca_certificate: None,
        bind_dn: slapd::SERVICE.to_owned(),
        bind_password: secrecy::SecretString::from("service"),
        base_dn: "ou=people,dc=example,dc=org".to_owned(),
        filter: "(&(objectClass=inetOrgPerson)(uid={{username}}))".to_owned(),
        username_attribute: "uid".to_owned(),
        id_attributes: ID_ATTRIBUTES_OF_SERVERS.map(str::to_owned).to_vec(),
        groups: GroupSearch::Groups {
            base_dn: "ou=groups,dc=example,dc=org".to_owned(),
            filter: "(cn={{groupname}})".to_owned(),
            member_attribute: "member".to_owned(),
        },
        timeout: Duration::from_secs(60),
        page_size: 500.try_into().unwrap(),
        max_message: 16 * 1024 * 1024,
    };
    let numbers = match part {
        Part::Bare => bare(&settings).await,
        Part::Service => service(&settings, people).await,
    };
    let numbers = numbers.map(|number| number.to_string());
    println!("{}", numbers.join(" "));
}

async fn bare(settings: &DirectorySettings) -> [f64; 3] {
    let memory = Memory::begin();
    let begin = Instant::now();
    let found = search(settings).await;
    let searched = begin.elapsed();
    insert(&found).await;
    let took = begin.elapsed();
    [searched.as_secs_f64(), took.as_secs_f64(), memory.grown()]
}

async fn service(settings: &DirectorySettings, people: usize) -> [f64; 3] {
    let service = Service::new().await;
    let memory = Memory::begin();
    let begin = Instant::now();
    let first = service.sync(settings).await;
    let took = begin.elapsed();
    let grown = memory.grown();
    assert_eq!(first.result.counts.added as usize, people + 3);
    let begin = Instant::now();
    let second = service.sync(settings).await;
    assert!(second.is_nothing());
    let again = begin.elapsed();
    [took.as_secs_f64(), again.as_secs_f64(), grown]
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

    fn grown(&self) -> f64 {
        Self::peak().saturating_sub(self.0) as f64
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
        let found = diff(&asked, &known, &BTreeSet::new(), limits, now);
        let template = Template::of(&Config::default(), None);
        let parts = UidPart::all(found.users.len().div_ceil(PAGE));
        for (uids, changes) in parts.zip(found.users.chunks(PAGE)) {
            let page = UserPage {
                changes: changes.to_vec(),
                template: template.clone(),
                asked_at: now,
                uids,
            };
            self.store.apply_users(&page, now).await.unwrap();
        }
        // The pass after it finds nothing left to do.
        let known = self.store.known().await.unwrap();
        assert!(diff(&asked, &known, &BTreeSet::new(), limits, now).is_nothing());
        found
    }
}
