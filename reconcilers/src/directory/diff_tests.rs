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
        identity: None,
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
                // Somebody else may have had the name.
                uid: Uid::from(format!("uid-{}-{}", listed.name, now.as_millis())),
                name: listed.name.clone(),
                subject: listed.subject.clone(),
                identity: listed.identity.clone().unwrap_or_default(),
                previous_name: None,
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
                if let Some(identity) = &listed.identity {
                    user.identity.clone_from(identity);
                }
            }
            UserChange::Rename {
                uid, from, listed, ..
            } => {
                let user = after
                    .users
                    .iter_mut()
                    .find(|user| user.uid == *uid)
                    .unwrap();
                (user.digest, user.missing_since) = (listed.digest(), None);
                user.name = listed.name.clone();
                user.previous_name = Some(from.clone());
            }
            UserChange::Identify { uid, identity, .. } => {
                let user = after
                    .users
                    .iter_mut()
                    .find(|user| user.uid == *uid)
                    .unwrap();
                user.identity = identity.clone().unwrap_or_default();
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
        ..LeftOut::default()
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

/// A person whose entry is identified.
fn identified(name: &str, identity: &str) -> Person {
    Person {
        identity: Some(format!("entryuuid:{identity}")),
        ..person(name, &["all"])
    }
}

fn with_identities(people: Vec<Person>) -> Listing {
    Listing {
        with_identities: true,
        ..listing(people)
    }
}

/// The changes, in short.
fn changes(diff: &Diff) -> Vec<String> {
    let change = |change: &UserChange| match change {
        UserChange::Add(listed) => format!("add {}", listed.name),
        UserChange::Update { listed, .. } => format!("update {}", listed.name),
        UserChange::Rename { from, listed, .. } => format!("rename {from} to {}", listed.name),
        UserChange::Identify { name, identity, .. } => {
            format!("identify {name} {}", identity.as_deref().unwrap_or("-"))
        }
        UserChange::Disable { name, .. } => format!("disable {name}"),
        UserChange::Remove { name, .. } => format!("remove {name}"),
    };
    diff.users.iter().map(change).collect()
}

/// The renames, in short.
fn renames(diff: &Diff) -> Vec<String> {
    let mut changes = changes(diff);
    changes.retain(|change| !change.starts_with("update "));
    changes
}

/// The one reason for which an entry is left out.
fn only_reason(diff: &Diff) -> &str {
    match diff.result.skipped_entries.as_slice() {
        [skipped] => &skipped.reason,
        more => panic!("{more:?}"),
    }
}

#[test]
fn renamed_entry_renames_the_user() {
    let before = with_identities(vec![identified("ann", "1"), identified("bob", "2")]);
    let mut known = synchronised(&before);
    let after = with_identities(vec![identified("Ann.Jones", "1"), identified("bob", "2")]);
    let diff = users(&after, &known);
    assert_eq!(changes(&diff), ["rename ann to Ann.Jones"]);
    assert_eq!(
        (diff.result.counts.renamed, diff.guard.is_none()),
        (1, true)
    );
    // The pass after it finds nothing, before and after the directory is renamed.
    known = done(&known, &diff, NOW);
    assert_eq!(changes(&users(&after, &known)), [] as [&str; 0]);
    known.users[0].previous_name = None;
    assert_eq!(changes(&users(&after, &known)), [] as [&str; 0]);
    // One who was missing is back under the new name.
    known.users[0].missing_since = Some(NOW);
    let back = users(&before, &known);
    assert!(
        matches!(
            back.users.as_slice(),
            [UserChange::Rename { back: true, .. }]
        ),
        "{back:?}"
    );
    // Names that differ in case only are one.
    known.users[0].missing_since = None;
    let upper = with_identities(vec![identified("ANN.JONES", "1"), identified("bob", "2")]);
    assert_eq!(changes(&users(&upper, &known)), ["update ANN.JONES"]);
}

#[test]
fn first_list_with_identities_only_records_them() {
    let names: Vec<String> = (0..30).map(|n| format!("u{n}")).collect();
    let by_name = names.iter().map(|name| person(name, &["all"])).collect();
    let known = synchronised(&listing(by_name));
    let people = names.iter().enumerate();
    let people = people.map(|(n, name)| identified(name, &n.to_string()));
    let listing = with_identities(people.collect());
    let diff = users(&listing, &known);
    let counts = diff.result.counts;
    assert_eq!(
        (counts.identified, counts.changed, counts.renamed),
        (30, 0, 0)
    );
    assert!(changes(&diff).contains(&"identify u29 entryuuid:29".to_owned()));
    let known = done(&known, &diff, NOW);
    assert!(users(&listing, &known).is_nothing());
    // Groups alone bring no identity.
    let known = synchronised(&self::listing(vec![person("ann", &["all"])]));
    let one = asked(
        &with_identities(vec![identified("ann", "1")]),
        SyncScope::Groups,
        NOW,
    );
    let groups = super::diff(&one, &known, &NONE, LIMITS, NOW);
    assert!(groups.is_nothing(), "{groups:?}");
}

#[test]
fn unknown_identity_is_matched_by_name() {
    let mut known = synchronised(&with_identities(vec![identified("ann", "1")]));
    // Not sent this time, and one by another attribute.
    let without = with_identities(vec![person("ann", &["all"])]);
    assert_eq!(changes(&users(&without, &known)), [] as [&str; 0]);
    let mut other = without.clone();
    other.people[0].identity = Some("ipauniqueid:7".to_owned());
    let diff = users(&other, &known);
    assert_eq!(changes(&diff), ["identify ann ipauniqueid:7"]);
    known = done(&known, &diff, NOW);
    assert!(users(&other, &known).is_nothing());
    // ldap.id_attribute=none forgets them.
    let none = listing(vec![person("ann", &["all"])]);
    let diff = users(&none, &known);
    assert_eq!(changes(&diff), ["identify ann -"]);
    assert!(users(&none, &done(&known, &diff, NOW)).is_nothing());
    // Also of whom something else has changed.
    let mut moved = none.clone();
    moved.people[0].dn = "uid=ann,ou=moved".to_owned();
    let diff = users(&moved, &known);
    assert_eq!(changes(&diff), ["update ann", "identify ann -"]);
    assert!(users(&moved, &done(&known, &diff, NOW)).is_nothing());
    known.users[0].missing_since = Some(NOW);
    let diff = users(&none, &known);
    assert_eq!(changes(&diff), ["update ann", "identify ann -"]);
    assert!(users(&none, &done(&known, &diff, NOW)).is_nothing());
}

#[test]
fn identity_is_shown_without_its_directory() {
    for (identity, expected) in [
        ("entryuuid:1", "entryuuid:1"),
        ("employeenumber@1f3a9c2e:a@b:c", "employeenumber:a@b:c"),
    ] {
        assert_eq!(show_identity(identity), expected);
    }
}

#[test]
fn rename_to_a_taken_name_is_held() {
    let people =
        |ann: &str, bob: &str| with_identities(vec![identified(ann, "1"), identified(bob, "2")]);
    let known = Known {
        superadmins: vec!["root".to_owned()],
        ..synchronised(&people("ann", "bob"))
    };
    // Two who change their names have each other's.
    let swapped = users(&people("bob", "ann"), &known);
    assert_eq!(renames(&swapped), [] as [&str; 0]);
    assert_eq!(swapped.result.counts.skipped, 2);
    let reason = &swapped.result.skipped_entries[1].reason;
    let expected = "user ann is not renamed to it: another account has this name; delete that account if its person has left, or give";
    assert!(reason.starts_with(expected), "{reason}");
    let root = users(&people("ROOT", "bob"), &known);
    assert_eq!(renames(&root), [] as [&str; 0]);
    assert!(only_reason(&root).contains(": a superadmin has this name; give"));
    // The name becomes free in the same synchronisation, and is taken at the next.
    let follows = people("bob", "bobby");
    let diff = users(&follows, &known);
    assert_eq!(renames(&diff), ["rename bob to bobby"]);
    assert!(only_reason(&diff).contains(": another account has this name; "));
    let mut known = done(&known, &diff, NOW);
    let diff = users(&follows, &known);
    assert_eq!(renames(&diff), [] as [&str; 0]);
    assert!(
        only_reason(&diff).ends_with("is still being renamed"),
        "{diff:?}"
    );
    known.users[1].previous_name = None;
    assert_eq!(renames(&users(&follows, &known)), ["rename ann to bob"]);
    // One whose last rename is not done waits, too.
    known.users[0].previous_name = Some("eve".parse().unwrap());
    let diff = users(&follows, &known);
    assert_eq!(renames(&diff), [] as [&str; 0]);
    assert!(only_reason(&diff).contains("last rename"), "{diff:?}");
}

#[test]
fn another_person_with_the_name_gets_no_account() {
    let mut known = synchronised(&with_identities(vec![
        identified("ann", "1"),
        identified("bob", "2"),
    ]));
    let newcomer = with_identities(vec![identified("ann", "3"), identified("bob", "2")]);
    let diff = users(&newcomer, &known);
    assert_eq!(changes(&diff), ["disable ann"]);
    assert!(only_reason(&diff).contains("another entry of the directory (entryuuid:1)"));
    known = done(&known, &diff, NOW);
    let later = |known: &Known| {
        let at = NOW.plus(DAY);
        let asked = asked(&newcomer, SyncScope::Users, at);
        super::diff(&asked, known, &NONE, LIMITS, at)
    };
    let diff = later(&known);
    assert_eq!(changes(&diff), ["remove ann"]);
    known = done(&known, &diff, NOW);
    // Only when nothing is left of the other.
    let diff = later(&known);
    assert_eq!(changes(&diff), [] as [&str; 0]);
    assert!(only_reason(&diff).contains("still being archived"));
    known.users.retain(|user| !user.leaving);
    assert_eq!(changes(&later(&known)), ["add ann"]);
    // The name of one who is renamed at the same time.
    let known = synchronised(&with_identities(vec![identified("ann", "1")]));
    let both = with_identities(vec![identified("ann", "3"), identified("eve", "1")]);
    let diff = users(&both, &known);
    assert_eq!(changes(&diff), ["rename ann to eve"]);
    assert!(only_reason(&diff).starts_with("another account has this name; "));
    // Everybody has another identity: that is a removal of all.
    let all = (0..9).map(|n| identified(&format!("u{n}"), &n.to_string()));
    let known = synchronised(&with_identities(all.collect()));
    let rebuilt = (0..9).map(|n| identified(&format!("u{n}"), &format!("new{n}")));
    let diff = users(&with_identities(rebuilt.collect()), &known);
    assert_eq!(diff.guard.unwrap().what, "9 of 9 users");
}

#[test]
fn renames_are_no_removal() {
    let people = |prefix: &str| {
        let all = (0..50).map(|n| identified(&format!("{prefix}{n}"), &n.to_string()));
        with_identities(all.collect())
    };
    let mut known = synchronised(&people("u"));
    for group in &mut known.groups {
        group.has_members = true;
    }
    let diff = users(&people("renamed"), &known);
    assert_eq!((diff.result.counts.renamed, diff.guard), (50, None));
    assert!(diff.missing.is_empty());
}

#[test]
fn user_whose_entry_cannot_be_taken_is_not_missing() {
    let all = with_identities(vec![
        identified("ann", "1"),
        identified("bob", "2"),
        identified("cid", "3"),
    ]);
    let known = synchronised(&all);
    let present = || identified("cid", "3");
    // Several entries with an identity: any of them may be ann.
    let shared = with_identities(vec![
        present(),
        identified("bob", "2"),
        identified("anna", "1"),
        identified("anne", "1"),
    ]);
    // A name that is none, and one that another entry has, too.
    let invalid = with_identities(vec![
        present(),
        identified("bob", "2"),
        identified("Ann Jones", "1"),
    ]);
    let ambiguous = with_identities(vec![
        present(),
        identified("bob", "2"),
        identified("new", "1"),
        identified("NEW", "4"),
    ]);
    let mut left_out = with_identities(vec![present(), identified("bob", "2")]);
    left_out.left_out.push(LeftOut {
        dn: "cn=elsewhere".to_owned(),
        names: vec!["new".to_owned(), "newer".to_owned()],
        identities: vec!["entryuuid:1".to_owned()],
        ..LeftOut::default()
    });
    for (listing, skipped) in [(shared, 2), (invalid, 1), (ambiguous, 1), (left_out, 1)] {
        let diff = users(&listing, &known);
        assert_eq!(changes(&diff), [] as [&str; 0], "{listing:?}");
        assert_eq!(diff.result.counts.skipped, skipped, "{diff:?}");
    }
}

#[test]
fn list_from_before_a_sign_in_renames_nobody() {
    let mut known = synchronised(&with_identities(vec![identified("new", "1")]));
    let old = with_identities(vec![identified("old", "1")]);
    known.users[0].seen_at = NOW;
    assert_eq!(changes(&users(&old, &known)), [] as [&str; 0]);
    known.users[0].seen_at = NOW.minus(DAY);
    assert_eq!(changes(&users(&old, &known)), ["rename new to old"]);
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
    let identity = proptest::option::of("(entryuuid|employeenumber):[0-9]{1,2}");
    let person = (name, groups, identity).prop_map(|(name, groups, identity)| Person {
        dn: format!("uid={name}"),
        name,
        identity,
        groups: Some(groups),
    });
    proptest::collection::vec(person, 0..30).prop_map(with_identities)
}

proptest! {
    /// Whatever lists follow each other: a confirmed plan is done in one pass, nothing is left to do after it, nobody who
    /// is listed is disabled or removed, and no account becomes another entry's.
    #[test]
    fn every_plan_ends(lists in proptest::collection::vec(any_listing(), 1..6)) {
        let mut known = Known { superadmins: vec!["root".to_owned()], ..Known::default() };
        let mut now = NOW;
        for listing in lists {
            now = now.plus(DAY / 2);
            let plan = diff(&asked(&listing, SyncScope::Users, now), &known, &NONE, LIMITS, now);
            let user = |uid: &Uid| known.users.iter().find(|user| user.uid == *uid).unwrap();
            for change in &plan.users {
                if let UserChange::Disable { uid, name } | UserChange::Remove { uid, name, .. } = change {
                    let identity = &user(uid).identity;
                    for person in &listing.people {
                        prop_assert_ne!(person.identity.as_ref(), Some(identity), "{} is listed", name);
                        let of_another = known.users.iter().any(|it| it.uid != *uid && Some(&it.identity) == person.identity.as_ref());
                        let other = of_another || person.identity.as_ref().is_some_and(|it| are_different(it, identity));
                        prop_assert!(other || person.name.to_lowercase() != name.key(), "{name} is listed");
                    }
                }
                if let UserChange::Add(listed) | UserChange::Rename { listed, .. } = change {
                    prop_assert_ne!(listed.name.as_str(), "root");
                }
                if let UserChange::Rename { uid, listed, .. } = change {
                    prop_assert_eq!(listed.identity.as_ref(), Some(&user(uid).identity));
                }
                let identity = match change {
                    UserChange::Update { uid, listed, .. } => Some((uid, &listed.identity)),
                    UserChange::Identify { uid, identity, .. } => Some((uid, identity)),
                    _ => None,
                };
                if let Some((uid, Some(identity))) = identity {
                    prop_assert!(!are_different(identity, &user(uid).identity), "{change:?}");
                }
            }
            known = done(&known, &plan, now);
            let again = diff(&asked(&listing, SyncScope::Users, now), &known, &NONE, LIMITS, now);
            prop_assert!(again.users.is_empty(), "{again:?}");
            known.users.retain(|user| !user.leaving);
            for user in &mut known.users {
                user.previous_name = None;
            }
        }
    }
}
