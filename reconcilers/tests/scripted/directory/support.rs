//! A service in ldap mode on a database in memory, and a directory that says what it is told to: passes by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kit::pass::{Killed, Pass, pass};
use kit::{FakeDirectory, FakeEngine, MemoryStore, START};
use reconcilers::directory::{DirectoryReconciler, DirectoryRow, DirectoryStore, Known, UserPage};
use reconcilers::drivers::ldap::{DirectoryError, Listing, Person};
use reconcilers::runtime::{ErrorClass, Reconciler};
use reconcilers::shared::Shared;
use reconcilers::stores::ConfigStore;
use schema::clock::{Clock, ManualClock};
use schema::condition::{ConditionStatus, Reason};
use schema::config::{Config, parse_patch};
use schema::directory::{DirectoryFacts, SyncCounts, SyncScope, object_uid};
use schema::error::DbError;
use schema::ids::{PlainName, Timestamp, Uid};
use serde_json::{Value, json};

pub const GRACE: Duration = Duration::from_secs(24 * 60 * 60);

type Said = Result<Listing, DirectoryError>;
/// Whether each user is missing, with the groups, by name.
pub type Users = BTreeMap<String, (bool, BTreeSet<String>)>;
/// What is there in the end: users, groups, what is remembered.
pub type End = (Users, BTreeSet<String>, DirectoryFacts);

/// The database in memory, with a list of what was written to it.
pub struct Written {
    store: MemoryStore,
    writes: Mutex<Vec<&'static str>>,
}

impl Written {
    fn note(&self, write: &'static str) {
        self.writes.lock().unwrap().push(write);
    }
}

#[async_trait]
impl DirectoryStore for Written {
    async fn directory_row(&self) -> Result<Option<DirectoryRow>, DbError> {
        self.store.directory_row().await
    }

    async fn known(&self) -> Result<Known, DbError> {
        self.store.known().await
    }

    async fn apply_users(&self, page: &UserPage, now: Timestamp) -> Result<(), DbError> {
        self.note("users");
        self.store.apply_users(page, now).await
    }

    async fn apply_groups(
        &self,
        add: &[PlainName],
        remove: &[Uid],
        now: Timestamp,
    ) -> Result<(), DbError> {
        self.note("groups");
        self.store.apply_groups(add, remove, now).await
    }

    async fn save_directory_facts(&self, facts: &DirectoryFacts) -> Result<(), DbError> {
        self.note("facts");
        self.store.save_directory_facts(facts).await
    }
}

/// A person in these groups.
pub fn person(name: &str, groups: &[&str]) -> Person {
    Person {
        dn: format!("uid={name},dc=x"),
        name: name.to_owned(),
        identity: None,
        groups: Some(groups.iter().map(|group| (*group).to_owned()).collect()),
    }
}

/// People with these numbers, in `all` and in one of three groups each.
pub fn people(numbers: Range<usize>) -> Vec<Person> {
    let groups = ["red", "green", "blue"];
    let person = |n: usize| person(&format!("p{n:03}"), &["all", groups[n % 3]]);
    numbers.map(person).collect()
}

/// These people and their groups, and groups in which nobody is.
pub fn listing(people: Vec<Person>, more: &[&str]) -> Listing {
    let groups = people.iter().flat_map(|person| person.groups.clone());
    let more = more.iter().map(|group| (*group).to_owned());
    Listing {
        groups: Some(groups.flatten().chain(more).collect()),
        people,
        ..Listing::default()
    }
}

/// The people of a list, without those of these names.
pub fn without(mut listing: Listing, names: &[&str]) -> Listing {
    listing
        .people
        .retain(|person| !names.contains(&person.name.as_str()));
    listing
}

pub struct Yard {
    pub store: MemoryStore,
    pub written: Arc<Written>,
    pub clock: Arc<ManualClock>,
    directory: FakeDirectory,
    /// What the directory says, and how often it was asked.
    said: Arc<Mutex<Said>>,
    asked: Arc<AtomicUsize>,
    pub shared: Arc<Shared>,
    pub reconciler: DirectoryReconciler,
    /// So many steps may still be taken before the service is "killed".
    pub budget: Option<usize>,
}

impl Yard {
    /// A service in ldap mode that asks on request only, and has not done so.
    pub async fn new(said: Listing) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let store = MemoryStore::default();
        store.create_singles();
        let said = Arc::new(Mutex::new(Ok(said)));
        let asked = Arc::new(AtomicUsize::new(0));
        let directory = FakeDirectory::default();
        let (says, counted) = (Arc::clone(&said), Arc::clone(&asked));
        directory.says(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            says.lock().unwrap().clone()
        });
        let written = Arc::new(Written {
            store: store.clone(),
            writes: Mutex::default(),
        });
        let (shared, reconciler) = boot(&written, &clock, &directory);
        let yard = Self {
            store,
            written,
            clock,
            directory,
            said,
            asked,
            shared,
            reconciler,
            budget: None,
        };
        yard.configure(json!({
            "web.auth_mode": "ldap", "ldap.host": "dc", "ldap.base_dn": "dc=x", "image.name": "echo",
        }))
        .await;
        yard
    }

    /// A service whose users are those of the directory.
    pub async fn synchronised(said: Listing) -> Self {
        let mut yard = Self::new(said).await;
        yard.request(SyncScope::Users, "");
        assert_eq!(yard.settled().await, Reason::Converged);
        yard
    }

    /// Kills the service and starts it again: everything in its memory is gone.
    pub fn reboot(&mut self) {
        (self.shared, self.reconciler) = boot(&self.written, &self.clock, &self.directory);
        self.budget = None;
    }

    pub async fn configure(&self, document: Value) {
        let stored = Config::from_stored(self.store.config().await.unwrap().0);
        let patch = parse_patch(&document).unwrap();
        let changes = patch.resolve(&stored).unwrap();
        self.store.configure(&changes).unwrap();
    }

    pub fn says(&self, said: Said) {
        *self.said.lock().unwrap() = said;
    }

    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    pub fn request(&self, scope: SyncScope, confirm: &str) {
        self.store.request_sync(scope, confirm).unwrap();
    }

    /// What was written since this was asked last.
    pub fn writes(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.written.writes.lock().unwrap())
    }

    pub async fn pass(&mut self) -> Result<Pass, Killed> {
        let now = self.clock.now();
        let (key, budget) = (object_uid(), &mut self.budget);
        let pass = pass(&self.reconciler, &key, now, budget, async || {}).await?;
        Ok(pass.expect("the directory object is there"))
    }

    /// Passes until one has nothing to do. Whatever fails is tried again, by another service if `reboots`.
    pub async fn settle(&mut self, reboots: bool) -> Result<Pass, Killed> {
        for _ in 0..20 {
            let pass = self.pass().await?;
            if let Some((class, reason, message)) = &pass.error {
                assert_ne!(*class, ErrorClass::Terminal, "{reason:?} {message}");
                let condition = pass.condition.as_ref().unwrap();
                assert_eq!(condition.status, ConditionStatus::False, "{message}");
                if reboots {
                    self.reboot();
                }
            } else if pass.acted == 0 {
                return Ok(pass);
            }
        }
        panic!("it never comes to an end");
    }

    pub async fn settled(&mut self) -> Reason {
        let pass = self.settle(false).await.unwrap();
        pass.condition.unwrap().reason
    }

    pub fn users(&self) -> Users {
        self.store.synchronised()
    }

    pub fn facts(&self) -> DirectoryFacts {
        self.store.directory_facts()
    }

    /// The digest of the removal that waits.
    pub fn held(&self) -> String {
        self.facts().held.expect("a removal is held").digest
    }

    /// Whether somebody is missing; `None`: there is no account.
    pub fn missing(&self, name: &str) -> Option<bool> {
        self.users().get(name).map(|(missing, _)| *missing)
    }

    pub async fn groups(&self) -> BTreeSet<String> {
        let groups = self.store.known().await.unwrap().groups.into_iter();
        groups.map(|group| group.name.to_string()).collect()
    }

    pub async fn end(&self) -> End {
        let mut facts = self.facts();
        // What was done by an attempt that failed is not done, and not counted, by the next.
        let counts = facts.result.counts;
        facts.result.counts = SyncCounts {
            users: counts.users,
            groups: counts.groups,
            skipped: counts.skipped,
            ..SyncCounts::default()
        };
        (self.users(), self.groups().await, facts)
    }

    /// An operator has the directory asked once more: it says the same, and nothing is written.
    pub async fn assert_nothing_to_do(&mut self, what: &str) {
        self.writes();
        let asked = self.asked();
        self.reconciler.refresh(&object_uid());
        let pass = self.pass().await.unwrap();
        assert_eq!((pass.acted, pass.error), (0, None), "{what}");
        assert_eq!(self.asked(), asked + 1, "{what}");
        assert_eq!(self.writes(), [] as [&str; 0], "{what}");
    }
}

fn boot(
    written: &Arc<Written>,
    clock: &Arc<ManualClock>,
    directory: &FakeDirectory,
) -> (Arc<Shared>, DirectoryReconciler) {
    let mut world = kit::world(&FakeEngine::new(clock.clone()), clock.clone());
    world.directory = Arc::new(directory.clone());
    let options = kit::options();
    let shared = Shared::new(&Arc::new(written.store.clone()), world, options);
    let store: Arc<dyn DirectoryStore> = written.clone();
    let reconciler = DirectoryReconciler::new(store, Arc::clone(&shared));
    (shared, reconciler)
}
