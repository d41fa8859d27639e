//! What is planned of a synchronisation.

use std::collections::BTreeSet;

use schema::directory::{KnownUser, Request, Skipped};
use schema::ids::{Generation, Uid};

use super::super::DirectoryReconciler;
use super::*;
use crate::drivers::ldap::Person;
use crate::runtime::Reconciler;

const NOW: Timestamp = Timestamp::from_secs(1_000_000);

fn people(count: usize) -> Listing {
    let people = (0..count).map(|n| Person {
        dn: format!("uid=u{n}"),
        name: format!("u{n}"),
        identity: None,
        groups: Some(BTreeSet::new()),
    });
    Listing {
        people: people.collect(),
        groups: Some(BTreeSet::new()),
        ..Listing::default()
    }
}

fn known(count: usize) -> Known {
    let users = (0..count).map(|n| KnownUser {
        uid: Uid::from(format!("uid{n}")),
        name: format!("u{n}").parse().unwrap(),
        subject: format!("uid=u{n}"),
        identity: String::new(),
        previous_name: None,
        digest: schema::directory::Listed {
            name: format!("u{n}").parse().unwrap(),
            subject: format!("uid=u{n}"),
            identity: None,
            groups: Some(BTreeSet::new()),
        }
        .digest(),
        missing_since: None,
        leaving: false,
        seen_at: Timestamp::from_secs(0),
    });
    Known {
        users: users.collect(),
        ..Known::default()
    }
}

fn snapshot(listed: usize, had: usize, token: &str, confirm: &str) -> Snapshot {
    Snapshot {
        row: DirectoryRow {
            generation: Generation(1),
            request: Request {
                token: token.to_owned(),
                scope: SyncScope::Users,
                confirm: confirm.to_owned(),
            },
            facts: DirectoryFacts::default(),
        },
        mode: AuthMode::Ldap,
        missing: None,
        next: None,
        observed: Some(Observed {
            asked: Asked {
                listing: people(listed).into(),
                at: NOW,
                scope: SyncScope::Users,
            },
            known: known(had),
            limits: Limits {
                max_removal_percent: 20,
                grace: Some(Duration::from_secs(60)),
            },
            template: schema::user::Template {
                image_ref: "echo:1".to_owned(),
                desired: schema::container::Desired::Running,
            },
        }),
    }
}

fn names(plan: &Plan<Action>) -> Vec<String> {
    let name = |action: &Action| match action {
        Action::Users(page) => format!("Users {}", page.changes.len()),
        Action::Groups { .. } => "Groups".to_owned(),
        Action::SaveFacts(facts) if facts.held.is_some() => "Held".to_owned(),
        Action::SaveFacts(facts) if facts.answered.is_empty() => "Confirmed".to_owned(),
        Action::SaveFacts(_) => "Done".to_owned(),
    };
    plan.actions.iter().map(name).collect()
}

#[test]
fn a_page_is_a_transaction_and_the_end_is_remembered_last() {
    let plan = plan(&snapshot(1_200, 0, "r1", ""), NOW);
    assert_eq!(
        names(&plan),
        ["Users 500", "Users 500", "Users 200", "Done"]
    );
    let uids = plan.actions.iter().filter_map(|action| match action {
        Action::Users(page) => Some(page.uids),
        Action::Groups { .. } | Action::SaveFacts(_) => None,
    });
    assert!(uids.eq(UidPart::all(3)));
}

#[test]
fn each_rename_is_a_transaction_of_its_own() {
    let mut renamed = snapshot(20, 20, "r1", "");
    let observed = renamed.observed.as_mut().unwrap();
    let mut listing = people(20);
    listing.with_identities = true;
    for (n, user) in observed.known.users.iter_mut().enumerate() {
        user.identity = format!("entryuuid:{n}");
        listing.people[n].identity = Some(user.identity.clone());
    }
    listing.people[3].name = "three".to_owned();
    listing.people[4].name = "four".to_owned();
    listing.people[5].groups = Some(["dev".to_owned()].into());
    listing.people.push(Person {
        name: "new".to_owned(),
        ..people(1).people.remove(0)
    });
    observed.asked.listing = listing.into();
    let plan = plan(&renamed, NOW);
    assert_eq!(names(&plan), ["Users 1", "Users 1", "Users 2", "Done"]);
    let described = plan
        .actions
        .iter()
        .map(<DirectoryReconciler as Reconciler>::describe);
    let described: Vec<String> = described.collect();
    assert_eq!(described[..2], ["rename u3 to three", "rename u4 to four"]);
}

#[test]
fn nothing_new_is_nothing_to_write() {
    let mut same = snapshot(20, 20, "", "");
    same.row.facts.result.counts.users = 20;
    assert_eq!(names(&plan(&same, NOW)), [] as [&str; 0]);
}

#[test]
fn a_confirmed_removal_that_was_interrupted_goes_on_with_what_is_left() {
    let held = snapshot(10, 20, "r1", "");
    let guard = held.diff(NOW).unwrap().guard.unwrap();
    assert_eq!(names(&plan(&held, NOW)), ["Held"]);
    let mut confirmed = snapshot(10, 20, "r2", &guard.digest);
    let begun = plan(&confirmed, NOW);
    assert_eq!(names(&begun), ["Confirmed", "Users 10", "Done"]);
    // Killed after some of them: what is left has another digest.
    let Action::SaveFacts(facts) = &begun.actions[0] else {
        panic!("{begun:?}");
    };
    confirmed.row.facts = (**facts).clone();
    let observed = confirmed.observed.as_mut().unwrap();
    for user in observed.known.users.iter_mut().skip(10).take(3) {
        user.missing_since = Some(NOW);
    }
    assert_eq!(names(&plan(&confirmed, NOW)), ["Users 7", "Done"]);
    // What was not confirmed then is not confirmed now.
    let observed = confirmed.observed.as_mut().unwrap();
    observed.asked.listing = people(1).into();
    assert_eq!(names(&plan(&confirmed, NOW)), ["Held"]);
    // A later request needs no confirmation for the names that have one.
    let mut later = snapshot(10, 20, "r3", "");
    later.row.facts = (**facts).clone();
    assert_eq!(names(&plan(&later, NOW)), ["Users 10", "Done"]);
}

#[test]
fn confirmed_names_are_kept_while_their_users_are_missing() {
    let names: BTreeSet<String> = (0..20).map(|n| format!("user u{n}")).collect();
    let kept = |listed, token: &str| {
        let mut snapshot = snapshot(listed, 20, token, "");
        snapshot.row.facts.confirmed_names = names.clone();
        let observed = snapshot.observed.as_mut().unwrap();
        for (n, user) in observed.known.users.iter_mut().enumerate() {
            // The first five wait, the next five are due, the others are present.
            let waits = Duration::from_secs(if n < 5 { 30 } else { 60 });
            user.missing_since = (n < 10).then(|| NOW.minus(waits));
        }
        let planned = plan(&snapshot, NOW);
        match planned.actions.last() {
            Some(Action::SaveFacts(facts)) => facts.confirmed_names.clone(),
            other => panic!("{other:?}"),
        }
    };
    let of = |numbers: std::ops::Range<usize>| -> BTreeSet<String> {
        numbers.map(|n| format!("user u{n}")).collect()
    };
    let both = of(0..5).union(&of(10..20)).cloned().collect();
    for (listed, token, expected) in [
        // No user is listed: the present ones become missing, and those that are due are removed.
        (0, "r1", both),
        (20, "r1", of(0..0)),
        (3, "r1", of(3..5).union(&of(10..20)).cloned().collect()),
    ] {
        assert_eq!(kept(listed, token), expected, "{listed}");
    }
}

#[test]
fn confirmed_removal_goes_on_when_one_more_person_leaves() {
    // Of 1000, the first 200 are confirmed and due; the next ones leave now, and the last one of the list is new.
    let later = |leavers: usize| {
        let mut snapshot = snapshot(1_001, 1_000, "", "");
        let confirmed = (0..200).map(|n| format!("user u{n}"));
        snapshot.row.facts.confirmed_names = confirmed.collect();
        let observed = snapshot.observed.as_mut().unwrap();
        for user in observed.known.users.iter_mut().take(200) {
            user.missing_since = Some(NOW.minus(Duration::from_secs(60)));
        }
        let mut listing = people(1_001);
        listing.people.drain(..200 + leavers);
        observed.asked.listing = listing.into();
        snapshot
    };
    for (leavers, expected) in [
        (0, &["Users 201", "Confirmed"]),
        (1, &["Users 202", "Confirmed"]),
        (160, &["Users 361", "Confirmed"]),
    ] {
        assert_eq!(names(&plan(&later(leavers), NOW)), *expected, "{leavers}");
    }
    let guard = later(161).diff(NOW).unwrap().guard.unwrap();
    assert_eq!(guard.what, "161 of 800 users");
    // They stay confirmed while others wait.
    let held = plan(&later(161), NOW);
    let [Action::SaveFacts(facts)] = held.actions.as_slice() else {
        panic!("{held:?}");
    };
    assert!(facts.held.is_some() && facts.confirmed_names.len() == 200);
}

#[test]
fn groups_alone_are_no_synchronisation_of_users_and_end_no_hold() {
    let mut groups = snapshot(10, 20, "r1", "");
    groups.observed.as_mut().unwrap().asked.scope = SyncScope::Groups;
    let held = schema::directory::Held {
        digest: "d".to_owned(),
        what: "10 of 20 users".to_owned(),
    };
    groups.row.facts.held = Some(held.clone());
    let planned = plan(&groups, NOW);
    let [Action::SaveFacts(facts)] = planned.actions.as_slice() else {
        panic!("{planned:?}");
    };
    assert_eq!((facts.synced_at, facts.held.as_ref()), (None, Some(&held)));
    // The pass after it finds nothing left to write.
    groups.row.facts = (**facts).clone();
    assert_eq!(names(&plan(&groups, NOW)), [] as [&str; 0]);
}

#[test]
fn condition_names_what_is_not_imported_and_why() {
    let result = |users, groups, skipped: u64| SyncResult {
        counts: SyncCounts {
            users,
            groups,
            skipped,
            ..SyncCounts::default()
        },
        skipped_entries: (0..skipped.min(5))
            .map(|n| Skipped {
                name: format!("cn={n}"),
                reason: "it has 2 values of uid".to_owned(),
            })
            .collect(),
    };
    assert_eq!(
        synchronised(&result(1, 0, 0)),
        "1 user and 0 groups are synchronised"
    );
    assert_eq!(
        synchronised(&result(9, 1, 1)),
        "9 users and 1 group are synchronised; 1 entry is not imported (cn=0: it has 2 values of uid)"
    );
    let many = synchronised(&result(9, 2, 200));
    assert!(
        many.contains("200 entries are not imported (cn=0: "),
        "{many}"
    );
    assert!(
        many.ends_with("`agentyard describe directory/users` lists more)"),
        "{many}"
    );
}
