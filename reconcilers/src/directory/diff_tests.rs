//! What a listing means for who is known, for every listing.

use proptest::prelude::*;
use schema::directory::{KnownGroup, KnownUser};

use super::*;
use crate::drivers::ldap::{LeftOut, Person};

const NOW: Timestamp = Timestamp::from_secs(1_000_000);
const NONE: BTreeSet<String> = BTreeSet::new();
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const LIMITS: Limits = Limits {
    max_removal_percent: 20,
    grace: Some(DAY),
};

fn person(name: &str, groups: &[&str]) -> Person {
    Person {
        dn: format!("uid={name}"),
        name: name.to_owned(),
        groups: Some(groups.iter().map(|group| (*group).to_owned()).collect()),
    }
}

fn listing(people: Vec<Person>) -> Listing {
    let groups = people
        .iter()
        .flat_map(|person| person.groups.clone().unwrap_or_default());
    Listing {
        groups: Some(groups.collect()),
        people,
        ..Listing::default()
    }
}

fn everybody(count: usize) -> Listing {
    listing((0..count).map(|n| person(&format!("u{n}"), &[])).collect())
}

/// Who is known once a plan is done.
fn done(known: &Known, diff: &Diff, now: Timestamp) -> Known {
    let mut after = known.clone();
    for change in &diff.users {
        match change {
            UserChange::Add(listed) => after.users.push(KnownUser {
                uid: Uid::from(format!("uid-{}", listed.name)),
                name: listed.name.clone(),
                subject: listed.subject.clone(),
                digest: listed.digest(),
                missing_since: None,
                leaving: false,
                seen_at: Timestamp::from_secs(0),
            }),
            UserChange::Update { uid, listed, .. } => {
                let user = after
                    .users
                    .iter_mut()
                    .find(|user| user.uid == *uid)
                    .unwrap();
                (user.digest, user.missing_since) = (listed.digest(), None);
            }
            UserChange::Disable { uid, .. } => {
                let user = after
                    .users
                    .iter_mut()
                    .find(|user| user.uid == *uid)
                    .unwrap();
                user.missing_since = Some(now);
            }
            UserChange::Remove { uid, .. } => {
                let user = after
                    .users
                    .iter_mut()
                    .find(|user| user.uid == *uid)
                    .unwrap();
                user.leaving = true;
            }
        }
    }
    for name in &diff.new_groups {
        after.groups.push(KnownGroup {
            uid: Uid::from(format!("uid-{name}")),
            name: name.clone(),
            in_use: false,
            has_members: true,
        });
    }
    after
        .groups
        .retain(|group| diff.remove_groups.iter().all(|(uid, _)| *uid != group.uid));
    after
}

fn synchronised(listing: &Listing) -> Known {
    let nobody = Known::default();
    done(&nobody, &users(listing, &nobody), NOW)
}

fn asked(listing: &Listing, scope: SyncScope, at: Timestamp) -> Asked {
    Asked {
        listing: listing.clone().into(),
        at,
        scope,
    }
}

fn users(listing: &Listing, known: &Known) -> Diff {
    diff(
        &asked(listing, SyncScope::Users, NOW),
        known,
        &NONE,
        LIMITS,
        NOW,
    )
}

#[test]
fn a_second_look_finds_nothing() {
    let listing = listing(vec![
        person("alice", &["Eng", "All"]),
        person("bob", &["All"]),
    ]);
    let known = synchronised(&listing);
    assert_eq!((known.users.len(), known.groups.len()), (2, 2));
    let again = users(&listing, &known);
    assert!(again.is_nothing(), "{again:?}");
    assert_eq!(
        (again.result.counts.users, again.result.counts.groups),
        (2, 2)
    );
}

#[test]
fn l1_so_many_at_once_are_held_back() {
    for (had, has, held) in [
        // The larger of 5 and 20 %, and never all.
        (20, 15, false),
        (20, 14, true),
        (100, 80, false),
        (100, 79, true),
        (3, 1, false),
        (3, 0, true),
        (1, 0, true),
        (0, 0, false),
    ] {
        let known = synchronised(&everybody(had));
        let diff = users(&everybody(has), &known);
        assert_eq!(diff.guard.is_some(), held, "{had} {has}");
        assert_eq!(diff.users.len(), had - has);
    }
}

#[test]
fn the_digest_names_the_removal() {
    let known = synchronised(&everybody(20));
    let digest = |listing: &Listing| users(listing, &known).guard.unwrap().digest;
    let (ten, nine) = (everybody(10), everybody(9));
    assert_eq!(digest(&ten), digest(&ten));
    assert_ne!(digest(&ten), digest(&nine));
    // Who comes does not change what goes.
    let mut more = ten.clone();
    more.people.push(person("new", &[]));
    assert_eq!(digest(&more), digest(&ten));
}

#[test]
fn whoever_is_missing_is_removed_after_the_time_of_grace_and_not_before() {
    let mut known = synchronised(&everybody(20));
    known.users[0].missing_since = Some(NOW.minus(DAY));
    known.users[1].missing_since = Some(NOW.minus(DAY / 2));
    // A clock that was set back removes nobody.
    known.users[2].missing_since = Some(NOW.plus(DAY));
    let names: Vec<String> = known
        .users
        .iter()
        .skip(3)
        .map(|user| user.name.to_string())
        .collect();
    let left = listing(names.iter().map(|name| person(name, &[])).collect());
    let removed = users(&left, &known);
    assert_eq!(removed.users.len(), 1);
    assert!(
        matches!(&removed.users[0], UserChange::Remove { uid, .. } if *uid == known.users[0].uid)
    );
    let at_once = Limits {
        grace: None,
        ..LIMITS
    };
    let removed = diff(
        &asked(&left, SyncScope::Users, NOW),
        &known,
        &NONE,
        at_once,
        NOW,
    );
    assert_eq!(
        removed.result.counts.removed, 2,
        "the third is missing in the future"
    );
}

#[test]
fn names_that_nobody_can_tell_apart_are_nobodys() {
    let known = synchronised(&listing(vec![person("alice", &[])]));
    let twice = listing(vec![
        person("alice", &[]),
        person("ALICE", &[]),
        person("bob", &[]),
    ]);
    let diff = users(&twice, &known);
    // L10: neither is the account, and the account stays as it is.
    assert_eq!(diff.users.len(), 1);
    assert_eq!(diff.result.counts.skipped, 1);
    assert!(
        diff.result.skipped_entries[0]
            .reason
            .contains("differ in case")
    );
}

#[test]
fn users_of_entries_that_are_left_out_stay_as_they_are() {
    let all = listing(vec![
        person("ann", &["dev"]),
        person("bob", &["ops"]),
        person("cid", &["ops"]),
    ]);
    let mut known = synchronised(&all);
    for group in &mut known.groups {
        group.has_members = true;
    }
    let mut left = listing(vec![person("cid", &["ops"])]);
    left.groups = all.groups;
    let entry = |dn: &str, names: &[&str], groups: &[&str]| LeftOut {
        dn: dn.to_owned(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        groups: groups.iter().map(|name| (*name).to_owned()).collect(),
        reason: "it has 2 names".to_owned(),
        incomplete: false,
    };
    left.left_out = vec![
        // Known by one of its names, and by its DN.
        entry("cn=somebody", &["Ann ", "annie"], &["dev"]),
        entry("UID = Bob", &[], &[]),
    ];
    left.notes = vec![Note {
        name: "memberOf".to_owned(),
        reason: "1 value".to_owned(),
    }];
    let diff = users(&left, &known);
    assert_eq!(diff.users, []);
    assert_eq!((diff.guard, diff.remove_groups), (None, vec![]));
    assert_eq!(diff.result.counts.skipped, 3);
    let named = diff.result.skipped_entries.iter();
    let named: Vec<_> = named.map(|it| it.name.as_str()).collect();
    assert_eq!(named, ["UID = Bob", "cn=somebody", "memberOf"]);
    // A person whose groups can't be read may be in any group.
    left.left_out.truncate(1);
    left.people.push(Person {
        groups: None,
        ..person("bob", &[])
    });
    left.groups = Some(["ops".to_owned()].into());
    for listing in [
        left.clone(),
        // So may one that is left out.
        Listing {
            people: vec![person("bob", &["ops"]), person("cid", &["ops"])],
            left_out: vec![LeftOut {
                incomplete: true,
                ..entry("cn=somebody", &["ann"], &[])
            }],
            ..left
        },
    ] {
        let diff = users(&listing, &known);
        assert_eq!((diff.users, diff.remove_groups), (vec![], vec![]));
        let mut named = diff.result.skipped_entries.iter();
        let stays = named.find(|it| it.name == "groups").unwrap();
        assert!(stays.reason.ends_with("may be in them: 1"), "{stays:?}");
    }
}

#[test]
fn l4_and_l15_names_of_superadmins_and_names_that_are_none_are_left_out() {
    let known = Known {
        superadmins: vec!["root".to_owned()],
        ..Known::default()
    };
    let mut listed = listing(vec![
        person("Root", &[]),
        person("John Doe", &[]),
        person("a:b", &[]),
        person("good", &["bad/name", "fine"]),
    ]);
    listed.groups.as_mut().unwrap().insert("..".to_owned());
    let diff = users(&listed, &known);
    let [UserChange::Add(good)] = diff.users.as_slice() else {
        panic!("{diff:?}");
    };
    assert_eq!(good.name.as_str(), "good");
    let groups: Vec<&str> = good
        .groups
        .as_ref()
        .unwrap()
        .iter()
        .map(PlainName::as_str)
        .collect();
    assert_eq!(groups, ["fine"]);
    assert_eq!(diff.result.counts.skipped, 5);
}

#[test]
fn l16_groups_that_are_not_known_stay_as_they_are() {
    let listed = listing(vec![person("alice", &["Eng"]), person("bob", &["Eng"])]);
    let known = synchronised(&listed);
    let mut hidden = listed.clone();
    hidden.groups = None;
    hidden
        .people
        .iter_mut()
        .for_each(|person| person.groups = None);
    assert!(users(&hidden, &known).is_nothing());
    // That there are none is something else, and a mass of them is held back.
    let none = listing(vec![person("alice", &[]), person("bob", &[])]);
    let guard = users(&none, &known).guard.unwrap();
    assert_eq!(guard.what, "members of 1 of 1 groups");
}

#[test]
fn a_group_that_something_hangs_on_waits_for_its_return() {
    let listed = listing(vec![person("alice", &["Eng", "Ops"])]);
    let mut known = synchronised(&listed);
    known
        .groups
        .iter_mut()
        .for_each(|group| group.has_members = false);
    known.groups[0].in_use = true;
    let diff = users(&listing(vec![person("alice", &[])]), &known);
    assert_eq!(diff.remove_groups.len(), 1);
    assert_eq!(diff.guard, None);
}

#[test]
fn whoever_was_here_since_the_directory_was_asked_is_there() {
    let mut known = synchronised(&everybody(20));
    for (at, user) in known.users.iter_mut().take(3).enumerate() {
        user.seen_at = NOW;
        user.missing_since = (at == 0).then(|| NOW.minus(DAY * 2));
    }
    let names: Vec<String> = known
        .users
        .iter()
        .skip(4)
        .map(|user| user.name.to_string())
        .collect();
    let left = listing(names.iter().map(|name| person(name, &[])).collect());
    let diff = users(&left, &known);
    assert_eq!(diff.users.len(), 1, "{diff:?}");
}

#[test]
fn l16_groups_that_have_lost_all_members_count_as_gone() {
    let with = listing(
        (0..12)
            .map(|n| person(&format!("u{n}"), &[&format!("g{n}")]))
            .collect(),
    );
    let known = synchronised(&with);
    let mut emptied = with.clone();
    for person in emptied.people.iter_mut().skip(5) {
        person.groups = Some(BTreeSet::new());
    }
    // Whatever can't be read of others.
    let mut one_unknown = emptied.clone();
    one_unknown.people.push(Person {
        groups: None,
        ..person("new", &[])
    });
    let mut one_left_out = emptied.clone();
    one_left_out.left_out.push(LeftOut {
        incomplete: true,
        ..LeftOut::default()
    });
    for emptied in [emptied, one_unknown, one_left_out] {
        let guard = users(&emptied, &known).guard.unwrap();
        assert_eq!(guard.what, "members of 7 of 12 groups");
        assert!(guard.names.contains("group g7"), "{guard:?}");
    }
    // No user leaves a group that can't be read.
    let mut unknown = with;
    for person in unknown.people.iter_mut().skip(1) {
        person.groups = None;
    }
    let diff = users(&unknown, &known);
    assert!(diff.is_nothing(), "{diff:?}");
    assert_eq!(diff.guard, None);
}

#[test]
fn nobody_is_missed_in_a_group_whose_members_are_not_asked_for() {
    let listed = listing(vec![
        person("alice", &["Eng"]),
        person("bob", &[]),
        person("carol", &[]),
    ]);
    let known = synchronised(&listed);
    let left = listing(vec![person("bob", &[]), person("carol", &[])]);
    let groups = diff(
        &asked(&left, SyncScope::Groups, NOW),
        &known,
        &NONE,
        LIMITS,
        NOW,
    );
    assert_eq!(groups.guard, None);
    // With everybody asked for, the group's last member counts, once: whoever is missing already is in no group.
    let mut after = known.clone();
    assert!(users(&left, &after).guard.is_some());
    after
        .users
        .iter_mut()
        .find(|user| user.name.as_str() == "alice")
        .unwrap()
        .missing_since = Some(NOW);
    after
        .groups
        .iter_mut()
        .for_each(|group| group.has_members = false);
    assert_eq!(users(&left, &after).guard, None);
}

#[test]
fn the_digest_tells_disabling_from_deleting() {
    let known = synchronised(&everybody(20));
    let asked = asked(&everybody(3), SyncScope::Users, NOW);
    let digest = |grace| {
        diff(&asked, &known, &NONE, Limits { grace, ..LIMITS }, NOW)
            .guard
            .unwrap()
            .digest
    };
    assert_ne!(digest(Some(DAY)), digest(None));
}

#[test]
fn groups_alone_change_who_is_in_which_and_nobody_else() {
    let listed = listing(vec![
        person("alice", &["Eng"]),
        person("bob", &[]),
        person("carol", &[]),
    ]);
    let known = synchronised(&listed);
    let other = listing(vec![person("alice", &["Ops"]), person("new", &["Eng"])]);
    let diff = diff(
        &asked(&other, SyncScope::Groups, NOW),
        &known,
        &NONE,
        LIMITS,
        NOW,
    );
    assert!(
        matches!(diff.users.as_slice(), [UserChange::Update { listed, .. }] if listed.name.as_str() == "alice"),
        "{diff:?}"
    );
}

/// Names that collide, names that are none, and a few groups.
fn any_listing() -> impl Strategy<Value = Listing> {
    let name = prop_oneof![
        "[a-c][0-9]",
        "[A-C][0-9]",
        "[a-z ]{1,4}",
        Just("root".to_owned())
    ];
    let groups = proptest::collection::btree_set("[gG][0-3]", 0..3);
    let person = (name, groups).prop_map(|(name, groups)| Person {
        dn: format!("uid={name}"),
        name,
        groups: Some(groups),
    });
    proptest::collection::vec(person, 0..30).prop_map(listing)
}

proptest! {
    /// Whatever lists follow each other: a confirmed plan is done in one pass, nothing is left to do after it, and nobody who
    /// is listed is disabled or removed.
    #[test]
    fn every_plan_ends(lists in proptest::collection::vec(any_listing(), 1..6)) {
        let mut known = Known { superadmins: vec!["root".to_owned()], ..Known::default() };
        let mut now = NOW;
        for listing in lists {
            now = now.plus(DAY / 2);
            let plan = diff(&asked(&listing, SyncScope::Users, now), &known, &NONE, LIMITS, now);
            let names: HashSet<String> = listing.people.iter().map(|it| it.name.to_lowercase()).collect();
            for change in &plan.users {
                if let UserChange::Disable { name, .. } | UserChange::Remove { name, .. } = change {
                    prop_assert!(!names.contains(&name.key()), "{name} is listed");
                }
                if let UserChange::Add(listed) = change {
                    prop_assert_ne!(listed.name.as_str(), "root");
                }
            }
            known = done(&known, &plan, now);
            let again = diff(&asked(&listing, SyncScope::Users, now), &known, &NONE, LIMITS, now);
            prop_assert!(again.users.is_empty(), "{again:?}");
            known.users.retain(|user| !user.leaving);
        }
    }
}
