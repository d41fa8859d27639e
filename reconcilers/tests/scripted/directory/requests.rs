//! When the directory is asked, for what, and what is written for it.

use std::time::Duration;

use kit::pass::pure_plan;
use reconcilers::directory::{DirectoryReconciler, SyncError, preview};
use reconcilers::drivers::ldap::{DirectoryError, Listing};
use reconcilers::runtime::{Purpose, Reconciler, Requeue};
use schema::clock::Clock;
use schema::condition::Reason;
use schema::directory::{SyncScope, object_uid};
use serde_json::json;

use super::support::{GRACE, Yard, listing, people, person, without};

#[tokio::test]
async fn a_scheduled_synchronisation_that_finds_nothing_writes_nothing() {
    let mut yard = Yard::new(listing(people(0..12), &["empty"])).await;
    yard.configure(json!({"ldap.sync_interval": "1h"})).await;
    assert_eq!(yard.settled().await, Reason::Converged);
    assert_eq!((yard.users().len(), yard.asked()), (12, 1));
    assert_eq!(yard.writes(), ["users", "groups", "facts"]);
    let facts = yard.facts();
    // The last round is another service's, which remembers nothing.
    for round in 0..4 {
        let pass = yard.pass().await.unwrap();
        let Requeue::After(pause) = pass.requeue else {
            panic!("{:?}", pass.requeue);
        };
        yard.clock.advance(pause - Duration::from_secs(1));
        yard.pass().await.unwrap();
        assert_eq!(yard.asked(), 1 + round, "not before its time");
        yard.clock.advance(Duration::from_secs(1));
        if round == 3 {
            yard.reboot();
        }
        let pass = yard.pass().await.unwrap();
        assert_eq!((pass.acted, pass.error), (0, None));
        assert_eq!(yard.asked(), 2 + round);
    }
    assert_eq!(yard.writes(), [] as [&str; 0]);
    assert_eq!(yard.facts(), facts);
}

#[tokio::test]
async fn a_request_that_finds_nothing_writes_its_answer_only() {
    let mut yard = Yard::synchronised(listing(people(0..12), &["empty"])).await;
    yard.writes();
    yard.request(SyncScope::Users, "");
    assert_eq!(yard.settled().await, Reason::Converged);
    assert_eq!(yard.writes(), ["facts"]);
    // The pass that verifies it compares the same list.
    assert_eq!(yard.asked(), 2);
}

#[tokio::test]
async fn a_request_for_groups_changes_who_is_in_which_and_nobody_comes_or_goes() {
    let everybody = listing(people(0..12), &["empty"]);
    let mut yard = Yard::synchronised(everybody.clone()).await;
    yard.says(Ok(without(everybody, &["p011"])));
    yard.request(SyncScope::Users, "");
    assert_eq!(yard.settled().await, Reason::Converged);
    let synced_at = yard.facts().synced_at;
    yard.clock.advance(GRACE);
    // Number 0 goes, 1 changes groups, 11 is back, and 12 is new.
    let mut after = people(2..13);
    after.push(person("p001", &["all", "fresh"]));
    let after = listing(after, &[]);
    yard.says(Ok(after.clone()));
    let mut expected = yard.users();
    expected.get_mut("p001").unwrap().1 = ["all".to_owned(), "fresh".to_owned()].into();
    for _ in 0..2 {
        yard.request(SyncScope::Groups, "");
        assert_eq!(yard.settled().await, Reason::Converged);
        assert_eq!(yard.users(), expected);
        let groups: Vec<String> = yard.groups().await.into_iter().collect();
        assert_eq!(groups, ["all", "blue", "fresh", "green", "red"]);
        assert_eq!(yard.facts().synced_at, synced_at);
    }
    // Nor are many held for it; and what is held for users stays so.
    yard.says(Ok(without(
        after.clone(),
        &["p000", "p002", "p003", "p004", "p005", "p006", "p007"],
    )));
    yard.request(SyncScope::Groups, "");
    assert_eq!(yard.settled().await, Reason::Converged);
    yard.request(SyncScope::Users, "");
    assert_eq!(yard.settled().await, Reason::MassRemoval);
    let held = yard.held();
    yard.request(SyncScope::Groups, "");
    assert_eq!(yard.settled().await, Reason::MassRemoval);
    assert_eq!((yard.held(), yard.users()), (held, expected));
    // A request for users does the rest.
    yard.says(Ok(after));
    yard.request(SyncScope::Users, "");
    assert_eq!(yard.settled().await, Reason::Converged);
    let found = ["p000", "p001", "p011", "p012"].map(|name| yard.missing(name));
    assert_eq!(found, [Some(true), Some(false), Some(false), Some(false)]);
}

#[tokio::test]
async fn preview_in_another_mode_plans_as_after_the_change() {
    let yard = Yard::synchronised(listing(people(0..3), &[])).await;
    yard.configure(json!({"web.auth_mode": "local"})).await;
    yard.says(Ok(listing(people(2..5), &[])));
    yard.writes();
    let planned = preview(&*yard.written, &yard.shared, SyncScope::Users).await;
    let planned = planned.unwrap();
    let counts = &planned.diff.result.counts;
    assert_eq!(
        (counts.added, counts.disabled, counts.groups_added),
        (3, 0, 4)
    );
    assert_eq!(
        planned.replaced,
        ["p000", "p001", "p002"].map(str::to_owned).into()
    );
    assert_eq!(yard.writes(), [""; 0]);
}

#[tokio::test]
async fn a_preview_and_a_dry_run_ask_and_change_nothing() {
    let mut yard = Yard::new(listing(people(0..12), &["empty"])).await;
    let (before, store) = (yard.end().await, yard.written.clone());
    yard.request(SyncScope::Users, "");
    for scope in [SyncScope::Users, SyncScope::Groups] {
        let planned = preview(&*store, &yard.shared, scope).await.unwrap();
        assert!(planned.replaced.is_empty());
        let diff = planned.diff;
        let added = if scope == SyncScope::Users { 12 } else { 0 };
        assert_eq!(diff.result.counts.added, added);
        assert_eq!(
            (diff.result.counts.users, diff.result.counts.groups_added),
            (12, 5)
        );
    }
    assert_eq!(yard.asked(), 2);
    for _ in 0..2 {
        let observed = yard
            .reconciler
            .observe(&object_uid(), Purpose::DryRun)
            .await;
        let now = yard.clock.now();
        let plan = pure_plan::<DirectoryReconciler>(&observed.unwrap().unwrap(), now);
        assert_eq!(plan.actions.len(), 3);
    }
    // Each asks for itself, and leaves no list behind.
    assert_eq!(yard.asked(), 4);
    yard.says(Ok(listing(people(0..7), &[])));
    assert_eq!((yard.writes(), yard.end().await), (Vec::new(), before));
    assert_eq!(yard.settled().await, Reason::Converged);
    assert_eq!((yard.asked(), yard.users().len()), (5, 7));
    // What would be held is told, with the digest that confirms it, and is not held by that.
    yard.says(Ok(Listing::default()));
    yard.writes();
    let before = yard.end().await;
    let diff = preview(&*store, &yard.shared, SyncScope::Users).await;
    let guard = diff.unwrap().diff.guard.unwrap();
    assert_eq!(
        (yard.writes(), yard.end().await),
        (Vec::new(), before.clone())
    );
    let failure = DirectoryError::Bind("why".to_owned());
    yard.says(Err(failure.clone()));
    match preview(&*store, &yard.shared, SyncScope::Users).await {
        Err(SyncError::Directory(error)) => assert_eq!(error, failure),
        other => panic!("{other:?}"),
    }
    assert_eq!((yard.writes(), yard.end().await), (Vec::new(), before));
    yard.says(Ok(Listing::default()));
    yard.request(SyncScope::Users, &guard.digest);
    assert_eq!(yard.settled().await, Reason::Converged);
    let missing = yard.users().into_values().filter(|(missing, _)| *missing);
    assert_eq!(missing.count(), 7);
}

#[tokio::test]
async fn a_list_that_was_begun_is_good_for_a_minute_and_for_its_own_request() {
    let minute = Duration::from_secs(60);
    for (wait, again, asked) in [
        (Duration::ZERO, false, 1),
        (minute - Duration::from_secs(1), false, 1),
        (minute, false, 2),
        (Duration::ZERO, true, 2),
    ] {
        let what = format!("after {wait:?}, requested again: {again}");
        let mut yard = Yard::new(listing(people(0..12), &["empty"])).await;
        yard.request(SyncScope::Users, "");
        // Interrupted by something other than an end of the service.
        yard.budget = Some(1);
        assert!(yard.pass().await.is_err(), "{what}");
        yard.budget = None;
        yard.says(Ok(listing(people(0..13), &["empty"])));
        yard.clock.advance(wait);
        if again {
            yard.request(SyncScope::Users, "");
        }
        assert_eq!(yard.settled().await, Reason::Converged, "{what}");
        assert_eq!(
            (yard.asked(), yard.users().len()),
            (asked, 11 + asked),
            "{what}"
        );
    }
}
