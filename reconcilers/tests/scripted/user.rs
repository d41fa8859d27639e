//! A user's directory is made and archived, wherever the service is killed and whichever call fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kit::pass::Killed;
use kit::{FakeEngine, MemoryDataDir, Pace};
use schema::container::Desired;
use schema::home::AGENT_DIR;
use schema::ids::{Uid, UserName};

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
