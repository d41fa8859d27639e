//! Who loses an account, or groups, by what a directory says, and who never does (L1).

use std::collections::BTreeSet;
use std::time::Duration;

use kit::pass::pure_plan;
use reconcilers::directory::DirectoryReconciler;
use reconcilers::drivers::ldap::{DirectoryError, Listing};
use reconcilers::runtime::{ErrorClass, Purpose, Reconciler};
use schema::clock::Clock;
use schema::condition::{ConditionStatus, ConditionType, Reason, find};
use schema::directory::{SyncScope, object_uid};
use serde_json::json;

use super::support::{GRACE, Yard, listing, people, without};

/// So many are left when many go.
const LEFT: usize = 10;

/// Everything that a directory may fail with, and whether that is for a person to mend here.
fn failures() -> Vec<(DirectoryError, bool)> {
    let why = || "why".to_owned();
    vec![
        (DirectoryError::Unreachable(why()), false),
        (DirectoryError::Timeout(Duration::from_secs(10)), false),
        (DirectoryError::Certificate(why()), false),
        (DirectoryError::Authority(why()), true),
        (DirectoryError::StartTls(why()), false),
        (DirectoryError::Unencrypted(why()), false),
        (DirectoryError::Bind(why()), false),
        (DirectoryError::NoBase(why()), false),
        (DirectoryError::Filter(why()), true),
        (DirectoryError::Incomplete(why()), false),
        (DirectoryError::Ambiguous, false),
        (DirectoryError::Reference(why()), false),
        (
            DirectoryError::Unreadable {
                dn: "uid=p000".to_owned(),
                why: "it has no uid".to_owned(),
            },
            false,
        ),
        (DirectoryError::Address(why()), true),
        (DirectoryError::TooMany(7), false),
        (
            DirectoryError::Refused {
                code: 53,
                text: why(),
            },
            false,
        ),
    ]
}

#[tokio::test]
async fn l1_a_directory_that_fails_says_why_and_costs_nobody_anything() {
    let everybody = listing(people(0..12), &["empty"]);
    let mut yard = Yard::synchronised(everybody.clone()).await;
    let most = without(everybody, &["p011"]);
    yard.says(Ok(most.clone()));
    yard.request(SyncScope::Users, "");
    assert_eq!(yard.settled().await, Reason::Converged);
    // Whoever was missing would be removed now.
    yard.clock.advance(GRACE);
    yard.writes();
    let before = yard.end().await;
    for (failure, terminal) in failures() {
        yard.says(Err(failure.clone()));
        yard.request(SyncScope::Users, "");
        for _ in 0..2 {
            let pass = yard.pass().await.unwrap();
            let condition = pass.condition.unwrap();
            let (class, reason) = match terminal {
                true => (ErrorClass::Terminal, Reason::InvalidSettings),
                false => (ErrorClass::Transient, Reason::DirectoryFailed),
            };
            assert_eq!(condition.message, failure.to_string());
            assert_eq!(condition.status, ConditionStatus::False, "{failure}");
            assert_eq!(
                (pass.error.unwrap().0, condition.reason),
                (class, reason),
                "{failure}"
            );
        }
    }
    assert_eq!(yard.writes(), [] as [&str; 0]);
    assert_eq!(yard.end().await, before);
    yard.says(Ok(most));
    assert_eq!(yard.settled().await, Reason::Converged);
    assert_eq!(yard.missing("p011"), None);
    assert_eq!(yard.users().len(), 11);
}

#[tokio::test]
async fn l1_without_its_settings_or_its_mode_no_directory_is_asked_and_nobody_goes() {
    let mut yard = Yard::synchronised(listing(people(0..12), &[])).await;
    yard.says(Ok(Listing::default()));
    yard.writes();
    let before = yard.users();
    for (setting, value, reason, said) in [
        (
            "ldap.host",
            json!("dc"),
            Reason::InvalidSettings,
            "ldap.host",
        ),
        (
            "ldap.base_dn",
            json!("dc=x"),
            Reason::InvalidSettings,
            "ldap.base_dn",
        ),
        ("web.auth_mode", json!("ldap"), Reason::Converged, "local"),
    ] {
        yard.configure(json!({ setting: null })).await;
        yard.request(SyncScope::Users, "");
        let pass = yard.pass().await.unwrap();
        let condition = pass.condition.unwrap();
        assert_eq!(condition.reason, reason, "{setting}");
        assert!(condition.message.contains(said), "{}", condition.message);
        yard.configure(json!({ setting: value })).await;
    }
    assert_eq!((yard.asked(), yard.users()), (1, before));
    assert_eq!(yard.writes(), [] as [&str; 0]);
}

#[tokio::test]
async fn l1_a_mass_removal_waits_until_its_own_digest_is_confirmed() {
    let everybody = listing(people(0..30), &["empty"]);
    let some = listing(people(0..LEFT), &["empty"]);
    let mut yard = Yard::synchronised(everybody.clone()).await;
    let (before, groups) = (yard.users(), yard.groups().await);
    let mut digests = BTreeSet::new();
    // Nobody, or few; each is another removal.
    for said in [Listing::default(), some.clone()] {
        yard.says(Ok(said));
        yard.request(SyncScope::Users, "");
        assert_eq!(yard.settled().await, Reason::MassRemoval);
        digests.insert(yard.held());
    }
    let right = yard.held();
    assert_eq!(digests.len(), 2);
    let stale = digests.iter().find(|digest| **digest != right).unwrap();
    let upper = right.to_uppercase();
    for wrong in ["", "0123456789abcdef", stale, &right[1..], &upper] {
        yard.writes();
        yard.request(SyncScope::Users, wrong);
        let pass = yard.settle(false).await.unwrap();
        let condition = pass.condition.unwrap();
        assert_eq!(condition.reason, Reason::MassRemoval, "{wrong:?}");
        assert_eq!(condition.status, ConditionStatus::False);
        assert!(condition.message.contains(&right), "{}", condition.message);
        // That somebody has asked is answered; that is all.
        assert_eq!(yard.writes(), ["facts"], "{wrong:?}");
        assert_eq!(
            (yard.users(), yard.groups().await),
            (before.clone(), groups.clone())
        );
        assert_eq!(yard.held(), right, "{wrong:?}");
    }
    // A confirmation of what is no longer all that goes does nothing, either.
    yard.says(Ok(listing(people(0..LEFT - 1), &["empty"])));
    yard.request(SyncScope::Users, &right);
    assert_eq!(yard.settled().await, Reason::MassRemoval);
    assert_ne!(yard.held(), right);
    assert_eq!(yard.users(), before);
    yard.says(Ok(some));
    yard.request(SyncScope::Users, &right);
    assert_eq!(yard.settled().await, Reason::Converged);
    let missing = yard.users().into_values().filter(|(missing, _)| *missing);
    assert_eq!(missing.count(), 30 - LEFT);
    // It was for once: when they are back and go again, it needs another confirmation.
    for said in [everybody, listing(people(0..LEFT), &["empty"])] {
        yard.says(Ok(said));
        yard.request(SyncScope::Users, "");
        yard.settled().await;
    }
    assert_eq!(yard.held(), right);
    let missing = yard.users().into_values().filter(|(missing, _)| *missing);
    assert_eq!(missing.count(), 0);
}

#[tokio::test]
async fn l1_a_confirmation_holds_for_its_names_past_the_grace() {
    let everybody = || listing(people(0..30), &[]);
    let mut yard = Yard::synchronised(everybody()).await;
    let interval = Duration::from_secs(60 * 60);
    yard.configure(json!({"ldap.sync_interval": "1h"})).await;
    yard.says(Ok(listing(people(0..LEFT), &[])));
    yard.request(SyncScope::Users, "");
    assert_eq!(yard.settled().await, Reason::MassRemoval);
    yard.request(SyncScope::Users, &yard.held());
    assert_eq!(yard.settled().await, Reason::Converged);
    // Scheduled synchronisations go on, also after a restart.
    for _ in 0..3 {
        yard.clock.advance(interval * 2);
        yard.reboot();
        assert_eq!(yard.settled().await, Reason::Converged);
    }
    // A user whose removal is not confirmed has a time of grace, and holds nothing back.
    let one = |from| listing(people(from..LEFT), &[]);
    yard.clock.advance(GRACE);
    yard.says(Ok(one(1)));
    assert_eq!(yard.settled().await, Reason::Converged);
    assert_eq!(
        (yard.users().len(), yard.missing("p000")),
        (LEFT, Some(true))
    );
    yard.says(Ok(one(0)));
    yard.clock.advance(interval * 2);
    assert_eq!(yard.settled().await, Reason::Converged);
    assert_eq!(yard.users().len(), LEFT);
    assert!(yard.facts().confirmed_names.is_empty());
}

#[tokio::test]
async fn l1_while_a_removal_is_held_both_conditions_say_so() {
    let mut yard = Yard::synchronised(listing(people(0..12), &[])).await;
    yard.says(Ok(Listing::default()));
    yard.request(SyncScope::Users, "");
    yard.settled().await;
    let snapshot = yard.reconciler.observe(&object_uid(), Purpose::Pass).await;
    let now = yard.clock.now();
    let plan = pure_plan::<DirectoryReconciler>(&snapshot.unwrap().unwrap(), now);
    for (kind, status) in [
        (ConditionType::Ready, ConditionStatus::False),
        (ConditionType::Stalled, ConditionStatus::True),
    ] {
        let condition = find(&plan.conditions, kind).unwrap();
        assert_eq!(
            (condition.status, condition.reason),
            (status, Reason::MassRemoval)
        );
        assert!(
            condition.message.contains(&yard.held()),
            "{}",
            condition.message
        );
    }
    // The directory mends itself: nothing is held any more.
    yard.says(Ok(listing(people(0..12), &[])));
    yard.request(SyncScope::Users, "");
    assert_eq!(yard.settled().await, Reason::Converged);
    assert_eq!(yard.facts().held, None);
}

#[tokio::test]
async fn who_is_missing_is_disabled_removed_after_the_grace_and_enabled_on_return() {
    let everybody = listing(people(0..12), &[]);
    let mut yard = Yard::synchronised(everybody.clone()).await;
    let sync = async |yard: &mut Yard, said: &Listing| {
        yard.says(Ok(said.clone()));
        yard.request(SyncScope::Users, "");
        assert_eq!(yard.settled().await, Reason::Converged);
        [yard.missing("p000"), yard.missing("p001")]
    };
    let neither = without(everybody.clone(), &["p000", "p001"]);
    let one = without(everybody.clone(), &["p000"]);
    assert_eq!(sync(&mut yard, &neither).await, [Some(true); 2]);
    yard.clock.advance(GRACE - Duration::from_secs(1));
    // Each time somebody looks the time of grace is what it was.
    assert_eq!(sync(&mut yard, &neither).await, [Some(true); 2]);
    assert_eq!(sync(&mut yard, &one).await, [Some(true), Some(false)]);
    let groups = ["all".to_owned(), "green".to_owned()];
    assert_eq!(yard.users()["p001"].1, BTreeSet::from(groups));
    // Who goes again is missing since then.
    assert_eq!(sync(&mut yard, &neither).await, [Some(true); 2]);
    yard.clock.advance(Duration::from_secs(1));
    assert_eq!(sync(&mut yard, &neither).await, [None, Some(true)]);
    assert_eq!(yard.users().len(), 11);
    yard.clock.advance(GRACE);
    assert_eq!(sync(&mut yard, &neither).await, [None, None]);
    assert_eq!(yard.users().len(), 10);
}

#[tokio::test]
async fn without_a_grace_who_is_missing_is_removed_at_once() {
    let everybody = listing(people(0..12), &[]);
    let mut yard = Yard::synchronised(everybody.clone()).await;
    yard.configure(json!({"ldap.removal_grace": "0"})).await;
    yard.says(Ok(without(everybody, &["p000"])));
    yard.request(SyncScope::Users, "");
    assert_eq!(yard.settled().await, Reason::Converged);
    assert_eq!((yard.missing("p000"), yard.users().len()), (None, 11));
}

#[tokio::test]
async fn l16_groups_that_a_directory_does_not_tell_stay_as_they_are() {
    let mut yard = Yard::synchronised(listing(people(0..12), &["empty"])).await;
    let (users, groups) = (yard.users(), yard.groups().await);
    let mut silent = people(0..12);
    silent.iter_mut().for_each(|person| person.groups = None);
    yard.says(Ok(Listing {
        people: silent,
        ..Listing::default()
    }));
    for scope in [SyncScope::Users, SyncScope::Groups] {
        yard.request(scope, "");
        assert_eq!(yard.settled().await, Reason::Converged);
        assert_eq!(
            (yard.users(), yard.groups().await),
            (users.clone(), groups.clone())
        );
    }
}
