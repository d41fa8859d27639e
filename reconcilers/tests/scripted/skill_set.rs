//! A user's skills: on a real database and a real directory, killed before every step; and in memory, where each call can
//! fail.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kit::pass::pass;
use kit::{FakeEngine, MemoryDataDir, MemoryStore, Pace, START};
use reconcilers::runtime::{ErrorClass, Reconciler};
use reconcilers::shared::Shared;
use reconcilers::skill_set::SkillSetReconciler;
use reconcilers::stores::DataDir;
use schema::adapter::Adapter;
use schema::clock::{ManualClock, SharedClock};
use schema::condition::{ConditionStatus, Reason};
use schema::container::Desired;
use schema::ids::{Kind, Uid, UserName};
use schema::skill::TreeDigest;
use schema::user::{NewUser, Source};

use crate::scripted::skill_yard::{SkillYard, name};

fn map<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    let pairs = pairs.into_iter();
    pairs
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_bound_is_deployed_updated_and_taken_away() {
    let mut yard = SkillYard::new().await;
    let alice = yard.user("alice").await;
    let said = yard.settled(&alice).await;
    assert_eq!(
        (said.reason, &*said.message),
        (Reason::Converged, "0 skills are deployed")
    );
    let [pdf, zip] = [
        yard.upload("pdf", "one").await,
        yard.upload("zip", "z").await,
    ];
    yard.bind(&pdf, &alice, true).await;
    yard.bind(&zip, &alice, true).await;
    assert_eq!(yard.settled(&alice).await.message, "2 skills are deployed");
    assert_eq!(yard.lying("alice"), map([("pdf", "one"), ("zip", "z")]));
    let deep = fs::read_to_string(yard.place("alice").join("pdf/deep/tool"));
    assert_eq!(deep.unwrap(), "tool");
    yard.upload("pdf", "two").await;
    yard.settled(&alice).await;
    assert_eq!(yard.lying("alice"), map([("pdf", "two"), ("zip", "z")]));
    yard.bind(&zip, &alice, false).await;
    assert_eq!(yard.settled(&alice).await.message, "1 skill is deployed");
    assert_eq!(yard.lying("alice"), map([("pdf", "two")]));
    assert_eq!(yard.kept("alice"), Vec::<String>::new());
    // A restarted service finds everything as it is.
    yard.reboot();
    let pass = yard.set_pass(&alice).await;
    assert_eq!(
        (pass.acted, pass.condition.unwrap().reason),
        (0, Reason::Converged)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_user_changes_is_repaired_and_kept() {
    let mut yard = SkillYard::new().await;
    let alice = yard.user("alice").await;
    let pdf = yard.upload("pdf", "one").await;
    yard.bind(&pdf, &alice, true).await;
    yard.settled(&alice).await;
    yard.edit("alice", "pdf", "mine");
    yard.settled(&alice).await;
    assert_eq!(yard.lying("alice"), map([("pdf", "one")]));
    assert_eq!(yard.kept("alice"), ["mine"]);
    // An update and a change at once.
    yard.edit("alice", "pdf", "mine too");
    yard.upload("pdf", "two").await;
    yard.settled(&alice).await;
    assert_eq!(yard.lying("alice"), map([("pdf", "two")]));
    assert_eq!(yard.kept("alice"), ["mine", "mine too"]);
    // Removed, it comes back.
    fs::remove_dir_all(yard.place("alice").join("pdf")).unwrap();
    yard.settled(&alice).await;
    assert_eq!(yard.lying("alice"), map([("pdf", "two")]));
    // Unbound with a change in it: kept, too.
    yard.edit("alice", "pdf", "last");
    yard.bind(&pdf, &alice, false).await;
    yard.settled(&alice).await;
    assert_eq!(yard.lying("alice"), map([]));
    assert_eq!(yard.kept("alice"), ["mine", "mine too", "last"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_whose_name_goes_on_with_a_number_keeps_its_own_versions() {
    let mut yard = SkillYard::new().await;
    let alice = yard.user("alice").await;
    for skill in ["pdf", "pdf-2"] {
        let uid = yard.upload(skill, "one").await;
        yard.bind(&uid, &alice, true).await;
    }
    yard.settled(&alice).await;
    yard.edit("alice", "pdf-2", "precious");
    yard.settled(&alice).await;
    for n in 0..12 {
        yard.edit("alice", "pdf", &format!("{n}"));
        yard.settled(&alice).await;
    }
    let kept = yard.kept("alice");
    assert_eq!(kept.len(), 11, "{kept:?}");
    assert!(kept.contains(&"precious".to_owned()) && kept.contains(&"11".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_elses_directory_is_a_conflict_until_it_is_gone() {
    let mut yard = SkillYard::new().await;
    let alice = yard.user("alice").await;
    yard.edit("alice", "pdf", "mine");
    for skill in ["pdf", "zip"] {
        let uid = yard.upload(skill, "one").await;
        yard.bind(&uid, &alice, true).await;
    }
    for _ in 0..2 {
        let said = yard.settled(&alice).await;
        assert_eq!(
            (said.status, said.reason),
            (ConditionStatus::False, Reason::NameConflict)
        );
        assert!(said.message.contains("skills/pdf"), "{}", said.message);
        assert_eq!(yard.lying("alice"), map([("pdf", "mine"), ("zip", "one")]));
    }
    fs::rename(
        yard.place("alice").join("pdf"),
        yard.place("alice").join("own"),
    )
    .unwrap();
    assert_eq!(yard.settled(&alice).await.reason, Reason::Converged);
    let all = [("own", "mine"), ("pdf", "one"), ("zip", "one")];
    assert_eq!(yard.lying("alice"), map(all));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_the_store_lost_is_told_and_holds_up_no_other() {
    let mut yard = SkillYard::new().await;
    let alice = yard.user("alice").await;
    for skill in ["docx", "zip"] {
        let uid = yard.upload(skill, "one").await;
        yard.bind(&uid, &alice, true).await;
    }
    fs::remove_dir_all(yard.yard.dir.path().join("skills/docx")).unwrap();
    for _ in 0..2 {
        let said = yard.settled(&alice).await;
        assert_eq!(said.reason, Reason::SkillMissing);
        assert!(said.message.contains("docx"), "{}", said.message);
        assert_eq!(yard.lying("alice"), map([("zip", "one")]));
    }
    // Nobody tells the reconciler.
    yard.import("docx", "one");
    assert_eq!(yard.settled(&alice).await.reason, Reason::Converged);
    assert_eq!(yard.lying("alice"), map([("docx", "one"), ("zip", "one")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_directory_it_waits_for_the_user() {
    let mut yard = SkillYard::new().await;
    let alice = yard.yard.create_user("alice").await;
    let pdf = yard.upload("pdf", "one").await;
    yard.bind(&pdf, &alice, true).await;
    let pass = yard.set_pass(&alice).await;
    assert_eq!(pass.condition.unwrap().reason, Reason::HomeMissing);
    assert_eq!(pass.waits_for, [(Kind::User, alice.clone())]);
    yard.yard.service.user_pass(&alice).await;
    assert_eq!(yard.settled(&alice).await.reason, Reason::Converged);
    assert_eq!(yard.lying("alice"), map([("pdf", "one")]));
    // And again where it is replaced.
    fs::remove_dir_all(yard.yard.dir.path().join("users/alice")).unwrap();
    assert_eq!(yard.settled(&alice).await.reason, Reason::HomeMissing);
    yard.yard.service.user_pass(&alice).await;
    assert_eq!(yard.settled(&alice).await.reason, Reason::Converged);
    assert_eq!(yard.lying("alice"), map([("pdf", "one")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn l25_no_link_is_followed_and_whoever_removes_it_gets_the_skills() {
    let mut yard = SkillYard::new().await;
    let alice = yard.user("alice").await;
    let outside = tempfile::tempdir().unwrap();
    let pdf = yard.upload("pdf", "one").await;
    yard.bind(&pdf, &alice, true).await;
    let place = yard.place("alice");
    symlink(outside.path(), &place).unwrap();
    assert_eq!(yard.settled(&alice).await.reason, Reason::NameConflict);
    fs::remove_file(&place).unwrap();
    assert_eq!(yard.settled(&alice).await.reason, Reason::Converged);
    // In the place of a file, of the skill itself, and of what is kept.
    let file = place.join("pdf/SKILL.md");
    fs::write(outside.path().join("secret"), "s").unwrap();
    fs::remove_file(&file).unwrap();
    symlink(outside.path().join("secret"), &file).unwrap();
    yard.settled(&alice).await;
    assert_eq!(yard.lying("alice"), map([("pdf", "one")]));
    fs::remove_dir_all(place.join("pdf")).unwrap();
    symlink(outside.path(), place.join("pdf")).unwrap();
    yard.settled(&alice).await;
    assert_eq!(yard.lying("alice"), map([("pdf", "one")]));
    let replaced = place.join(".replaced");
    fs::remove_dir_all(&replaced).unwrap();
    symlink(outside.path(), &replaced).unwrap();
    yard.edit("alice", "pdf", "mine");
    for _ in 0..3 {
        let pass = yard.set_pass(&alice).await;
        let (class, reason, _) = pass.error.unwrap();
        assert_eq!(
            (class, reason),
            (ErrorClass::Conflict, Reason::NameConflict)
        );
        assert_eq!(yard.lying("alice"), map([("pdf", "mine")]));
    }
    fs::remove_file(&replaced).unwrap();
    yard.settled(&alice).await;
    assert_eq!(yard.lying("alice"), map([("pdf", "one")]));
    assert_eq!(yard.kept("alice"), ["mine"]);
    let left: Vec<_> = fs::read_dir(outside.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_hides_its_time_and_size_is_found_by_the_next_pass() {
    let mut yard = SkillYard::new().await;
    let alice = yard.user("alice").await;
    let pdf = yard.upload("pdf", "one").await;
    yard.bind(&pdf, &alice, true).await;
    yard.settled(&alice).await;
    for _ in 0..2 {
        assert_eq!(yard.set_pass(&alice).await.acted, 0);
    }
    let path = yard.place("alice").join("pdf/SKILL.md");
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    std::io::Write::write_all(&mut &file, b"0ne").unwrap();
    file.set_modified(before).unwrap();
    assert_ne!(yard.set_pass(&alice).await.acted, 0);
    yard.settled(&alice).await;
    assert_eq!(yard.lying("alice"), map([("pdf", "one")]));
    assert_eq!(yard.kept("alice"), ["0ne"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_before_every_step_the_end_is_the_same() {
    for steps in 0.. {
        let mut yard = SkillYard::new().await;
        let alice = yard.user("alice").await;
        let mut uids = Vec::new();
        for skill in ["changed", "edited", "removed"] {
            let uid = yard.upload(skill, "one").await;
            yard.bind(&uid, &alice, true).await;
            uids.push(uid);
        }
        yard.budget = Some(steps);
        let first = yard.settle(&alice).await.is_err();
        yard.reboot();
        yard.settled(&alice).await;
        assert_eq!(
            yard.lying("alice"),
            map([("changed", "one"), ("edited", "one"), ("removed", "one")])
        );
        assert_eq!(yard.kept("alice"), Vec::<String>::new());
        yard.edit("alice", "edited", "mine");
        yard.upload("changed", "two").await;
        yard.bind(&uids[2], &alice, false).await;
        let new = yard.upload("new", "new").await;
        yard.bind(&new, &alice, true).await;
        yard.budget = Some(steps);
        let second = yard.settle(&alice).await.is_err();
        yard.reboot();
        // The next version comes before anybody has looked.
        yard.upload("changed", "three").await;
        assert_eq!(yard.settled(&alice).await.reason, Reason::Converged);
        assert_eq!(
            yard.lying("alice"),
            map([("changed", "three"), ("edited", "one"), ("new", "new")]),
            "{steps}"
        );
        assert_eq!(yard.kept("alice"), ["mine"], "{steps}");
        let staging = yard.yard.dir.path().join("users/.staging");
        assert_eq!(fs::read_dir(staging).unwrap().count(), 0, "{steps}");
        if !first && !second {
            assert!(steps > 8, "{steps}");
            break;
        }
    }
}

fn digest(of: char) -> TreeDigest {
    of.to_string().repeat(64).parse().unwrap()
}

/// Everything in memory.
struct Memory {
    store: MemoryStore,
    dir: MemoryDataDir,
    clock: SharedClock,
    users: Vec<(UserName, Uid)>,
}

impl Memory {
    async fn new(users: usize) -> Self {
        let store = MemoryStore::default();
        store.create_singles();
        store.activate(Adapter::builtin("echo").unwrap().unwrap());
        let dir = MemoryDataDir::default();
        let mut made = Vec::new();
        for n in 0..users {
            let new = NewUser {
                uid: Uid::random(),
                name: format!("user{n}").parse().unwrap(),
                source: Source::Local,
                password_hash: None,
                image_ref: "echo:1".to_owned(),
                desired: Desired::Stopped,
            };
            store.create_user(&new).unwrap();
            dir.ensure(&new.name, &new.uid, None).await.unwrap();
            made.push((new.name, new.uid));
        }
        for (skill, of) in [("pdf", 'a'), ("zip", 'b')] {
            let uid = Uid::from(skill.to_owned());
            dir.import_skill(&name(skill), &digest(of), START);
            store
                .put_skill(&uid, &name(skill), &digest(of), START)
                .unwrap();
            store.set_bound(&uid, None, None, true).unwrap();
        }
        Self {
            store,
            dir,
            clock: Arc::new(ManualClock::new(START)),
            users: made,
        }
    }

    fn boot(&self) -> SkillSetReconciler {
        let engine = FakeEngine::new(Arc::clone(&self.clock));
        let mut world = kit::world(&engine, Arc::clone(&self.clock));
        world.data_dir = Arc::new(self.dir.clone());
        let options = kit::options();
        let store = Arc::new(self.store.clone());
        let shared = Shared::new(&store, world, options);
        SkillSetReconciler::new(store, shared)
    }

    async fn pass(&self, reconciler: &SkillSetReconciler, uid: &Uid) -> Option<Reason> {
        let pass = pass(reconciler, uid, START, &mut None, async || {}).await;
        let pass = pass.unwrap().unwrap();
        if let Some((class, _, error)) = &pass.error {
            assert_ne!(*class, ErrorClass::Terminal, "{error}");
            return None;
        }
        (pass.acted == 0).then(|| pass.condition.unwrap().reason)
    }

    async fn settle(&self, reconciler: &SkillSetReconciler, uid: &Uid) {
        for _ in 0..20 {
            reconciler.changed(uid);
            if let Some(reason) = self.pass(reconciler, uid).await {
                assert_eq!(reason, Reason::Converged);
                return;
            }
        }
        panic!("no end");
    }
}

#[tokio::test]
async fn whichever_call_fails_or_loses_its_answer_the_end_is_the_same() {
    for loses_answer in [false, true] {
        for number in 0.. {
            let memory = Memory::new(1).await;
            let (user, uid) = &memory.users[0];
            let calls = Arc::new(AtomicU64::new(0));
            let counting = Arc::clone(&calls);
            let pace = Arc::new(move || {
                let hit = counting.fetch_add(1, Ordering::Relaxed) == number;
                Pace {
                    fails: hit && !loses_answer,
                    loses_answer: hit && loses_answer,
                    ..Pace::default()
                }
            });
            let shared = Arc::clone(&pace);
            memory.store.on_call(move || shared());
            memory.dir.on_call(move || pace());
            let reconciler = memory.boot();
            memory.settle(&reconciler, uid).await;
            let both = BTreeMap::from([("pdf", 'a'), ("zip", 'b')]);
            let both = both
                .into_iter()
                .map(|(skill, of)| (name(skill), Some(digest(of))));
            assert_eq!(memory.dir.peek_skills(user), both.collect(), "{number}");
            // A change, an update, and one that is taken away.
            memory
                .dir
                .hand_skill(user, &name("pdf"), Some(&digest('e')));
            let [pdf, zip] = ["pdf", "zip"].map(|it| Uid::from(it.to_owned()));
            memory.store.set_bound(&zip, None, None, false).unwrap();
            memory.dir.import_skill(&name("pdf"), &digest('c'), START);
            memory
                .store
                .put_skill(&pdf, &name("pdf"), &digest('c'), START)
                .unwrap();
            memory.settle(&reconciler, uid).await;
            let one = BTreeMap::from([(name("pdf"), Some(digest('c')))]);
            assert_eq!(memory.dir.peek_skills(user), one, "{number}");
            let kept: Vec<_> = memory.dir.kept_skills(user).into_values().collect();
            assert_eq!(kept, [Some(digest('e'))], "{number}");
            if calls.load(Ordering::Relaxed) <= number {
                assert!(number > 20, "{number}");
                break;
            }
        }
    }
}

// Time stands still, too: it would be up for some of so many users, whose files are then read.
#[tokio::test(start_paused = true)]
async fn standing_still_costs_one_scan_and_a_look_at_each_directory() {
    let memory = Memory::new(200).await;
    let reconciler = memory.boot();
    for (_, uid) in &memory.users {
        memory.settle(&reconciler, uid).await;
    }
    let counters = [Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0))];
    let [store, dir] = counters.clone().map(|count| {
        move || {
            count.fetch_add(1, Ordering::Relaxed);
            Pace::default()
        }
    });
    memory.store.on_call(store);
    memory.dir.on_call(dir);
    let writes = memory.dir.writes();
    let keys = reconciler.keys().await.unwrap();
    assert_eq!(keys.len(), 200);
    for uid in &keys {
        assert_eq!(memory.pass(&reconciler, uid).await, Some(Reason::Converged));
    }
    let counted = counters.map(|count| count.load(Ordering::Relaxed));
    assert_eq!(counted, [1, 200]);
    assert_eq!(memory.dir.writes(), writes);
}
