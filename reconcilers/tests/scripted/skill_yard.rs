//! Skills on a real database, a real data directory and a real store: passes by hand.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kit::pass::{Killed, Pass, pass};
use kit::{FakeGit, OWNER};
use reconcilers::runtime::{ErrorClass, Reconciler};
use reconcilers::shared::Shared;
use reconcilers::skill::SkillReconciler;
use reconcilers::skill_repository::RepositoryReconciler;
use reconcilers::skill_set::SkillSetReconciler;
use reconcilers::stores::LocalDataDir;
use schema::condition::Condition;
use schema::ids::{SkillName, Uid};
use schema::skill::{self, NewVersion, Origin, Subject, TreeDigest};
use schema::skill_store::SkillStore;

use crate::scripted::container::support::Yard;

/// More passes than any way to a fix-point may take.
const MANY: usize = 30;

/// What is lost when the service is killed.
pub struct Service {
    pub shared: Arc<Shared>,
    pub set: SkillSetReconciler,
    pub skill: SkillReconciler,
    pub repository: RepositoryReconciler,
}

pub struct SkillYard {
    pub yard: Yard,
    pub git: FakeGit,
    pub store: SkillStore,
    pub service: Service,
    /// How many more actions may run before the service is "killed".
    pub budget: Option<usize>,
}

fn boot(yard: &Yard, git: &FakeGit) -> Service {
    let mut world = kit::world(&yard.fake, yard.clock.clone());
    world.data_dir = Arc::new(LocalDataDir::open(yard.dir.path(), OWNER).unwrap());
    world.git = Arc::new(git.clone());
    let options = kit::options();
    let store = Arc::new(yard.store());
    let shared = Shared::new(&store, world, options);
    Service {
        set: SkillSetReconciler::new(store.clone(), Arc::clone(&shared)),
        skill: SkillReconciler::new(store.clone(), Arc::clone(&shared)),
        repository: RepositoryReconciler::new(store, Arc::clone(&shared)),
        shared,
    }
}

pub fn name(text: &str) -> SkillName {
    text.parse().unwrap()
}

impl SkillYard {
    pub async fn new() -> Self {
        let yard = Yard::new().await;
        let store = SkillStore::open(yard.dir.path()).unwrap();
        let git = FakeGit::default();
        let service = boot(&yard, &git);
        Self {
            yard,
            git,
            store,
            service,
            budget: None,
        }
    }

    pub fn reboot(&mut self) {
        self.service = boot(&self.yard, &self.git);
        self.budget = None;
    }

    /// A user with a directory.
    pub async fn user(&self, name: &str) -> Uid {
        let uid = self.yard.create_user(name).await;
        self.yard.service.user_pass(&uid).await;
        uid
    }

    /// Puts a package with this text into the store.
    pub fn import(&self, skill: &str, text: &str) -> TreeDigest {
        let source = tempfile::tempdir().unwrap();
        fs::write(source.path().join("SKILL.md"), text).unwrap();
        fs::create_dir(source.path().join("deep")).unwrap();
        fs::write(source.path().join("deep/tool"), "tool").unwrap();
        let opened = fs::File::open(source.path()).unwrap();
        let imported = self.store.import_dir(&opened, &name(skill));
        imported.unwrap().digest
    }

    /// Records a version.
    pub async fn record(&self, skill: &str, digest: &TreeDigest) -> Uid {
        let new = NewVersion {
            digest: digest.clone(),
            description: String::new(),
            version: String::new(),
            license: String::new(),
            has_manifest: true,
            file_count: 2,
            size: 4096,
            origin: Origin::default(),
            warnings: Vec::new(),
        };
        let mut tx = self.yard.db.begin().await.unwrap();
        let now = self.yard.now();
        let saved = skill::save_version(&mut tx, &name(skill), &new, None, now).await;
        tx.commit().await.unwrap();
        let uid = saved.unwrap().0.uid;
        self.service.skill.changed(&uid);
        uid
    }

    /// Uploads a package.
    pub async fn upload(&self, skill: &str, text: &str) -> Uid {
        let digest = self.import(skill, text);
        self.record(skill, &digest).await
    }

    pub async fn bind(&self, skill: &Uid, user: &Uid, bound: bool) {
        let mut tx = self.yard.db.begin().await.unwrap();
        let subject = Subject::User(user);
        match bound {
            true => skill::bind(&mut tx, skill, subject).await.unwrap(),
            false => skill::unbind(&mut tx, skill, subject).await.unwrap(),
        };
        tx.commit().await.unwrap();
        self.service.set.changed(user);
    }

    /// `users/<user>/.agent/workspace/skills`.
    pub fn place(&self, user: &str) -> PathBuf {
        let users = self.yard.dir.path().join("users");
        users.join(user).join(".agent/workspace/skills")
    }

    /// What `SKILL.md` says in each directory of a user's skills.
    pub fn lying(&self, user: &str) -> BTreeMap<String, String> {
        texts(&self.place(user))
    }

    /// The same of what was kept.
    pub fn kept(&self, user: &str) -> Vec<String> {
        texts(&self.place(user).join(".replaced"))
            .into_values()
            .collect()
    }

    /// The user writes into a skill.
    pub fn edit(&self, user: &str, skill: &str, text: &str) {
        let place = self.place(user).join(skill);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("SKILL.md"), text).unwrap();
    }

    pub async fn pass<R: Reconciler<Key = Uid>>(
        reconciler: &R,
        uid: &Uid,
        yard: &Yard,
        budget: &mut Option<usize>,
    ) -> Result<Option<Pass>, Killed> {
        reconciler.changed(uid);
        pass(reconciler, uid, yard.now(), budget, async || {}).await
    }

    /// One pass over a user's skills.
    pub async fn set_pass(&mut self, uid: &Uid) -> Pass {
        let pass = Self::pass(&self.service.set, uid, &self.yard, &mut None).await;
        pass.unwrap().unwrap()
    }

    /// Passes over a user's skills until there is nothing to do; what is said then.
    pub async fn settle(&mut self, uid: &Uid) -> Result<Condition, Killed> {
        for _ in 0..MANY {
            let (set, yard) = (&self.service.set, &self.yard);
            let pass = Self::pass(set, uid, yard, &mut self.budget).await?.unwrap();
            let failed = pass
                .error
                .as_ref()
                .is_some_and(|it| it.0 != ErrorClass::Terminal);
            if pass.acted == 0 && !failed {
                return Ok(pass.condition.unwrap());
            }
            self.yard.clock.advance(Duration::from_secs(1));
        }
        panic!("it never comes to an end");
    }

    pub async fn settled(&mut self, uid: &Uid) -> Condition {
        self.settle(uid).await.unwrap()
    }
}

fn texts(place: &std::path::Path) -> BTreeMap<String, String> {
    let Ok(entries) = fs::read_dir(place) else {
        return BTreeMap::new();
    };
    let mut found = BTreeMap::new();
    for entry in entries {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if !name.starts_with('.') {
            let text = fs::read_to_string(entry.path().join("SKILL.md"));
            found.insert(name, text.unwrap_or_else(|_| "?".to_owned()));
        }
    }
    found
}
