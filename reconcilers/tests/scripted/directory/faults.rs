//! Killed before every step, and every call of the database refused or its answer lost: the end is the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kit::Pace;
use schema::condition::Reason;
use schema::directory::SyncScope;

use super::support::{End, GRACE, Yard, listing, people, person, without};

/// More than fit into one transaction.
const MANY: usize = 520;
/// So many are left when many go.
const LEFT: usize = 10;

/// What there is to do for a synchronisation.
#[derive(Debug, Clone, Copy)]
enum Story {
    /// Everything, of more people than one transaction takes.
    First,
    /// Somebody comes, goes, changes, returns, and has been away for long; so do groups.
    Changes,
    /// Most people go, and somebody has confirmed it.
    Confirmed,
}

const STORIES: [Story; 3] = [Story::First, Story::Changes, Story::Confirmed];

/// A yard in which a synchronisation has been asked for.
async fn prepare(story: Story) -> Yard {
    match story {
        Story::First => {
            let mut everybody = people(0..MANY);
            everybody.push(person("not a name", &["all"]));
            let yard = Yard::new(listing(everybody, &["empty", "not/a/group"])).await;
            yard.request(SyncScope::Users, "");
            yard
        }
        Story::Changes => {
            let before = listing(people(0..12), &["old"]);
            let mut yard = Yard::synchronised(before.clone()).await;
            yard.says(Ok(without(before, &["p010", "p011"])));
            yard.request(SyncScope::Users, "");
            assert_eq!(yard.settled().await, Reason::Converged);
            yard.clock.advance(GRACE);
            // Number 0 goes, 1 changes groups, 10 is back, 11 is not, and 12 is new.
            let mut after = people(2..11);
            after.push(person("p001", &["all", "fresh"]));
            after.push(person("p012", &["all", "other"]));
            yard.says(Ok(listing(after, &["empty"])));
            yard.request(SyncScope::Users, "");
            yard
        }
        Story::Confirmed => {
            let mut yard = Yard::synchronised(listing(people(0..MANY), &[])).await;
            yard.says(Ok(listing(people(0..LEFT), &[])));
            yard.request(SyncScope::Users, "");
            assert_eq!(yard.settled().await, Reason::MassRemoval);
            yard.request(SyncScope::Users, &yard.held());
            yard
        }
    }
}

/// What comes of a story in which nothing fails.
async fn expected(story: Story) -> End {
    let mut yard = prepare(story).await;
    yard.writes();
    assert_eq!(yard.settled().await, Reason::Converged, "{story:?}");
    let writes = yard.writes();
    let end = yard.end().await;
    let (users, groups, facts) = &end;
    let missing = users.values().filter(|(missing, _)| *missing).count();
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    match story {
        Story::First => {
            assert_eq!((users.len(), missing), (MANY, 0));
            assert_eq!(groups, ["all", "blue", "empty", "green", "red"]);
            assert_eq!(facts.result.counts.skipped, 2);
            assert_eq!(writes, ["users", "users", "groups", "facts"]);
        }
        Story::Changes => {
            assert_eq!((users.len(), missing), (12, 1));
            assert_eq!(yard.missing("p000"), Some(true));
            assert_eq!(yard.missing("p010"), Some(false));
            assert_eq!(yard.missing("p011"), None);
            assert!(users["p001"].1.contains("fresh") && users["p012"].1.contains("other"));
            let all = ["all", "blue", "empty", "fresh", "green", "other", "red"];
            assert_eq!(groups, all);
            assert_eq!(writes, ["users", "groups", "facts"]);
        }
        Story::Confirmed => {
            assert_eq!((users.len(), missing), (MANY, MANY - LEFT));
            assert_eq!(facts.held, None);
            assert_eq!(facts.confirmed_names.len(), MANY - LEFT);
            // That it was confirmed is written before anything is done.
            assert_eq!(writes, ["facts", "users", "users", "facts"]);
        }
    }
    end
}

#[tokio::test]
async fn l34_killed_before_every_step_users_and_groups_are_those_of_the_directory() {
    for story in STORIES {
        let expected = expected(story).await;
        let mut kills = 0;
        for budget in 0.. {
            let mut yard = prepare(story).await;
            yard.budget = Some(budget);
            let what = format!("{story:?}, killed before step {budget}");
            let killed = yard.settle(false).await.is_err();
            if killed {
                kills += 1;
                yard.reboot();
                assert_eq!(yard.settled().await, Reason::Converged, "{what}");
            }
            assert_eq!(yard.end().await, expected, "{what}");
            if !killed {
                break;
            }
        }
        assert!(kills >= 3, "{story:?}: {kills}");
    }
}

#[tokio::test]
async fn l34_whichever_call_of_the_database_fails_users_and_groups_are_those_of_the_directory() {
    for story in STORIES {
        let expected = expected(story).await;
        for (lost, reboots) in [(false, false), (false, true), (true, false), (true, true)] {
            for nth in 0.. {
                let mut yard = prepare(story).await;
                let calls = Arc::new(AtomicUsize::new(0));
                let counted = Arc::clone(&calls);
                yard.store.on_call(move || {
                    let now = counted.fetch_add(1, Ordering::SeqCst) == nth;
                    Pace {
                        fails: now && !lost,
                        loses_answer: now && lost,
                        ..Pace::default()
                    }
                });
                let what = format!("{story:?}, call {nth}, lost: {lost}, reboots: {reboots}");
                let pass = yard.settle(reboots).await.unwrap();
                let reason = pass.condition.unwrap().reason;
                yard.store.on_call(Pace::default);
                assert_eq!(reason, Reason::Converged, "{what}");
                assert_eq!(yard.end().await, expected, "{what}");
                yard.assert_nothing_to_do(&what).await;
                if calls.load(Ordering::SeqCst) <= nth {
                    assert!(nth >= 8, "{what}");
                    break;
                }
            }
        }
    }
}
