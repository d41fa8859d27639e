//! A user's directory is made and archived, wherever the service is killed and whichever call fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kit::pass::Killed;
use kit::{FakeEngine, MemoryDataDir, Pace};
use reconcilers::stores::DataDir;
use schema::container::Desired;
use schema::directory::{self, Listed, Page, UserChange};
use schema::home::AGENT_DIR;
use schema::ids::{Uid, UidPart, UserName};
use schema::user::{self, Source, Template};
use serde_json::json;

use crate::scripted::container::support::{Files, Yard};

/// A file of the user's own.
const NOTES: &str = "notes";

/// A yard whose directories are in memory, and where the agents' files are written.
async fn yard() -> (Yard, MemoryDataDir) {
    let mut yard = Yard::new().await;
    let memory = MemoryDataDir::default();
    on_host(&yard.fake, &memory);
    yard.memory = Some(memory.clone());
    yard.files = Files::Reconciled;
    yard.reboot();
    (yard, memory)
}

fn on_host(fake: &FakeEngine, memory: &MemoryDataDir) {
    let memory = memory.clone();
    fake.on_host(move |path| memory.entry(path));
}

fn alice() -> UserName {
    "alice".parse().unwrap()
}

/// What must be so once the user is created: a directory of hers with the agent's files.
async fn is_made(yard: &mut Yard, memory: &MemoryDataDir, uid: &Uid, what: &str) {
    assert_eq!(memory.owner_of(&alice()).as_ref(), Some(uid), "{what}");
    let config = format!("{AGENT_DIR}/config.json");
    assert!(memory.peek_file(&alice(), &config).is_some(), "{what}");
    let writes = memory.writes();
    yard.assert_nothing_to_do(uid).await;
    assert_eq!(memory.writes(), writes, "{what}: it stays so");
}

/// What must be so once the user is deleted: nothing but one archive, with what is the user's own.
async fn is_archived(yard: &Yard, memory: &MemoryDataDir, uid: &Uid, what: &str) {
    assert!(yard.row(uid).await.is_none(), "{what}");
    assert_eq!(memory.homes(), Vec::<String>::new(), "{what}");
    let archives = memory.archives_of(uid);
    assert_eq!(archives.len(), 1, "{what}: {archives:?}");
    let files = memory.archived_files(&archives[0]);
    assert!(files.contains(&NOTES.to_owned()), "{what}: {files:?}");
}

async fn delete(yard: &Yard, memory: &MemoryDataDir, uid: &Uid) {
    assert!(memory.hand_write(&alice(), NOTES, yard.now()));
    yard.delete_user(uid).await;
}

/// Settles; when it is killed on the way, the next service does.
async fn survive(yard: &mut Yard, uid: &Uid, budget: usize) -> bool {
    yard.budget = Some(budget);
    let killed = yard.settle(uid).await.err() == Some(Killed);
    if killed {
        yard.reboot();
        yard.settled(uid).await;
    }
    killed
}

#[tokio::test]
async fn l34_killed_after_any_step_a_user_is_made_and_archived_all_the_same() {
    let (mut made, mut removed) = (0, 0);
    for budget in 0.. {
        let (mut yard, memory) = yard().await;
        let uid = yard.create_user("alice").await;
        yard.set_desired(&uid, Desired::Stopped, false).await;
        let what = format!("killed after {budget} steps");
        let killed = survive(&mut yard, &uid, budget).await;
        made += usize::from(killed);
        is_made(&mut yard, &memory, &uid, &what).await;
        delete(&yard, &memory, &uid).await;
        let again = survive(&mut yard, &uid, budget).await;
        removed += usize::from(again);
        is_archived(&yard, &memory, &uid, &what).await;
        if !killed && !again {
            break;
        }
    }
    assert!(made >= 4 && removed >= 3, "{made} {removed}");
}

#[tokio::test]
async fn l34_whichever_call_of_the_data_directory_fails_the_end_is_the_same() {
    for (fails, loses_answer) in [(true, false), (false, true)] {
        for number in 0.. {
            let (mut yard, memory) = yard().await;
            let calls = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&calls);
            memory.on_call(move || {
                let this = counted.fetch_add(1, Ordering::SeqCst) == number;
                Pace {
                    fails: this && fails,
                    loses_answer: this && loses_answer,
                    ..Pace::default()
                }
            });
            let what = format!("call {number}, {fails} {loses_answer}");
            let uid = yard.create_user("alice").await;
            yard.set_desired(&uid, Desired::Stopped, false).await;
            // What waits for a person is tried again by one.
            yard.settled(&uid).await;
            yard.settled(&uid).await;
            is_made(&mut yard, &memory, &uid, &what).await;
            delete(&yard, &memory, &uid).await;
            yard.settled(&uid).await;
            yard.settled(&uid).await;
            is_archived(&yard, &memory, &uid, &what).await;
            if calls.load(Ordering::SeqCst) <= number {
                assert!(number > 10, "{number}");
                break;
            }
        }
    }
}

#[tokio::test]
async fn l34_a_directory_that_cannot_be_read_is_not_taken_for_one_that_is_missing() {
    let (mut yard, memory) = yard().await;
    let uid = yard.create_user("alice").await;
    yard.set_desired(&uid, Desired::Stopped, false).await;
    yard.settled(&uid).await;
    let writes = memory.writes();
    memory.on_call(|| Pace {
        fails: true,
        ..Pace::default()
    });
    for deleted in [false, true] {
        if deleted {
            yard.delete_user(&uid).await;
        }
        for _ in 0..3 {
            yard.pass(&uid).await.unwrap();
            yard.service.user_pass(&uid).await;
        }
        assert_eq!(memory.writes(), writes);
        assert_eq!(memory.owner_of(&alice()).as_ref(), Some(&uid));
    }
    memory.on_call(Pace::default);
    assert!(memory.hand_write(&alice(), NOTES, yard.now()));
    yard.settled(&uid).await;
    is_archived(&yard, &memory, &uid, "afterwards").await;
}

/// What a synchronisation writes when alice's entry is called bob.
async fn rename(yard: &Yard, uid: &Uid) {
    let listed = Listed {
        name: "bob".parse().unwrap(),
        subject: "uid=bob".to_owned(),
        identity: Some("entryuuid:1".to_owned()),
        groups: None,
    };
    let changes = [UserChange::Rename {
        uid: uid.clone(),
        from: alice(),
        listed,
        back: false,
    }];
    let template = Template {
        image_ref: "echo:1".to_owned(),
        desired: Desired::Running,
    };
    let asked_at = yard.now().plus(Duration::from_secs(1));
    let page = Page {
        changes: &changes,
        template: &template,
        asked_at,
        uids: UidPart::WHOLE,
    };
    let mut tx = yard.db.begin().await.unwrap();
    let renamed = directory::apply(&mut tx, Source::Ldap, page, &yard.key, yard.now()).await;
    assert_eq!(renamed.unwrap(), 1);
    tx.commit().await.unwrap();
    yard.bell(uid);
}

/// A running agent of alice's, who has written a file.
async fn running() -> (Yard, MemoryDataDir, Uid) {
    let (mut yard, memory) = yard().await;
    yard.configure("web.auth_mode", json!("ldap")).await;
    let uid = create_from_directory(&yard).await;
    yard.settled(&uid).await;
    assert!(memory.hand_write(&alice(), NOTES, yard.now()));
    assert_eq!(yard.names(), ["agentyard-alice"]);
    (yard, memory, uid)
}

async fn create_from_directory(yard: &Yard) -> Uid {
    let template = Template {
        image_ref: "echo:1".to_owned(),
        desired: Desired::Running,
    };
    let new = template.new_user(&alice(), Source::Ldap, None);
    let mut tx = yard.db.begin().await.unwrap();
    user::create(&mut tx, &new, yard.now()).await.unwrap();
    tx.commit().await.unwrap();
    new.uid
}

/// What must be so once the rename is done: everything of the user's under the new name, and nothing under the old one.
async fn is_renamed(yard: &mut Yard, memory: &MemoryDataDir, uid: &Uid, what: &str) {
    let bob: UserName = "bob".parse().unwrap();
    assert_eq!(memory.homes(), ["bob"], "{what}");
    assert_eq!(memory.owner_of(&bob).as_ref(), Some(uid), "{what}");
    assert!(memory.peek_file(&bob, NOTES).is_some(), "{what}");
    let config = memory.peek_file(&bob, &format!("{AGENT_DIR}/config.json"));
    assert!(config.is_some(), "{what}");
    assert_eq!(yard.names(), ["agentyard-bob"], "{what}");
    assert_eq!(yard.fake.running(), ["agentyard-bob"], "{what}");
    let row = user::row(&mut yard.db.read().await.unwrap(), uid).await;
    let row = row.unwrap().unwrap();
    assert_eq!((row.previous_name, row.previous_released), (None, false));
    let facts = yard.row(uid).await.unwrap().facts;
    assert_eq!(facts.crash_count, 0, "{what}: it was no crash");
    let writes = memory.writes();
    yard.assert_nothing_to_do(uid).await;
    assert_eq!(memory.writes(), writes, "{what}: it stays so");
}

#[tokio::test]
async fn rename_survives_a_kill_after_any_step() {
    let mut killed = 0;
    for budget in 0.. {
        let (mut yard, memory, uid) = running().await;
        rename(&yard, &uid).await;
        let what = format!("killed after {budget} steps");
        let again = survive(&mut yard, &uid, budget).await;
        is_renamed(&mut yard, &memory, &uid, &what).await;
        if !again {
            break;
        }
        killed += 1;
    }
    assert!(killed >= 7, "{killed}");
}

#[tokio::test]
async fn rename_ends_the_same_whichever_call_fails() {
    for (fails, loses_answer) in [(true, false), (false, true)] {
        for number in 0.. {
            let (mut yard, memory, uid) = running().await;
            let calls = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&calls);
            memory.on_call(move || {
                let this = counted.fetch_add(1, Ordering::SeqCst) == number;
                Pace {
                    fails: this && fails,
                    loses_answer: this && loses_answer,
                    ..Pace::default()
                }
            });
            rename(&yard, &uid).await;
            yard.settled(&uid).await;
            yard.settled(&uid).await;
            let what = format!("call {number}, {fails} {loses_answer}");
            is_renamed(&mut yard, &memory, &uid, &what).await;
            if calls.load(Ordering::SeqCst) <= number {
                assert!(number > 5, "{number}");
                break;
            }
        }
    }
}

#[tokio::test]
async fn user_deleted_during_a_rename_is_archived_whole() {
    let mut killed = 0;
    for budget in 0.. {
        let (mut yard, memory, uid) = running().await;
        rename(&yard, &uid).await;
        yard.budget = Some(budget);
        let again = yard.settle(&uid).await.is_err();
        yard.reboot();
        yard.delete_user(&uid).await;
        yard.settled(&uid).await;
        let what = format!("deleted after {budget} steps");
        is_archived(&yard, &memory, &uid, &what).await;
        if !again {
            break;
        }
        killed += 1;
    }
    assert!(killed >= 7, "{killed}");
}

#[tokio::test]
async fn place_of_the_new_name_that_is_taken_is_left_alone() {
    let (mut yard, memory, uid) = running().await;
    let bob: UserName = "bob".parse().unwrap();
    let other = Uid::random();
    memory.ensure(&bob, &other, None).await.unwrap();
    rename(&yard, &uid).await;
    for _ in 0..6 {
        yard.pass(&uid).await.unwrap();
        yard.service.user_pass(&uid).await;
    }
    assert_eq!(memory.owner_of(&alice()).as_ref(), Some(&uid));
    assert_eq!(memory.owner_of(&bob).as_ref(), Some(&other));
    assert_eq!(yard.names(), [] as [&str; 0]);
}
