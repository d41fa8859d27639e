//! Who is in which group: named by users, or by groups; groups in groups, circles, thousands.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use reconcilers::drivers::ldap::{Directory, DirectorySettings, GroupSearch, Wanted};
use rstest::rstest;

use super::server::{Slapd, password};
use super::{directory, names};

/// Ops is in Staff, which is in All; two are in a circle with each other; one has a comma in its name.
const NESTED: &str = "\
dn: cn=Ops,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: Ops
member: uid=bob,ou=people,dc=example,dc=org
member: uid=nobody,ou=people,dc=example,dc=org

dn: cn=Staff,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: Staff
member: CN=ops, OU=groups,dc=example,dc=org

dn: cn=All,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: All
member: cn=Staff,ou=groups,dc=example,dc=org

dn: cn=Round,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: Round
member: cn=About,ou=groups,dc=example,dc=org

dn: cn=About,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: About
member: cn=Round,ou=groups,dc=example,dc=org
member: cn=R\\, D,ou=groups,dc=example,dc=org

dn: cn=R\\, D,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: R, D
member: uid=alice,ou=people,dc=example,dc=org

";

pub fn by_groups(slapd: &Slapd) -> DirectorySettings {
    DirectorySettings {
        groups: GroupSearch::Groups {
            base_dn: "ou=groups,dc=example,dc=org".to_owned(),
            filter: "(cn={{groupname}})".to_owned(),
            member_attribute: "member".to_owned(),
        },
        ..slapd.settings()
    }
}

#[rstest]
#[case::member_of(false)]
#[case::group_search(true)]
#[tokio::test]
async fn l14_members_of_groups_in_groups_are_members_whatever_circles_there_are(
    #[case] searched: bool,
) {
    let slapd = Slapd::with(&["carol"], None, "", NESTED);
    let settings = if searched {
        by_groups(&slapd)
    } else {
        slapd.settings()
    };
    let expected = BTreeMap::from([
        ("alice", names(&["eng", "R, D", "Round", "About"])),
        ("bob", names(&["Ops", "Staff", "All"])),
        ("carol", names(&[])),
        ("locked", names(&[])),
    ]);
    let directory = directory();
    let listing = directory.list(&settings).await.unwrap();
    let found = listing
        .people
        .iter()
        .map(|it| (it.name.as_str(), it.groups.clone()));
    assert_eq!(BTreeMap::from_iter(found), expected);
    let all = names(&["About", "All", "Ops", "R, D", "Round", "Staff", "eng"]);
    assert_eq!(listing.groups, all);
    // Who signs in is in the same.
    for name in ["alice", "bob"] {
        let person = directory.sign_in(&settings, name, &password(name)).await;
        assert_eq!(person.unwrap().unwrap().groups, expected[name], "{name}");
    }
    let carol = directory
        .sign_in(&settings, "carol", &password("carol"))
        .await;
    // Without a group of her own, a server that hides them looks just the same.
    assert_eq!(carol.unwrap().unwrap().groups, None);
}

#[tokio::test]
async fn members_may_be_named_by_user_name() {
    let more = "dn: cn=posix,ou=groups,dc=example,dc=org\nobjectClass: organizationalRole\nobjectClass: extensibleObject\n\
                cn: posix\nl: ALICE\nl: stranger\n\n";
    let slapd = Slapd::with(&[], None, "", more);
    let settings = DirectorySettings {
        groups: GroupSearch::Groups {
            base_dn: "ou=groups,dc=example,dc=org".to_owned(),
            filter: "(&(objectClass=organizationalRole)(cn={{groupname}}))".to_owned(),
            member_attribute: "l".to_owned(),
        },
        ..slapd.settings()
    };
    let directory = directory();
    let listing = directory.list(&settings).await.unwrap();
    // L15: who is named by a group and found by no filter of users is nobody.
    let people: BTreeSet<&str> = listing.people.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(people, BTreeSet::from(["alice", "bob", "locked"]));
    assert_eq!(listing.people[0].groups, names(&["posix"]));
    let alice = directory
        .sign_in(&settings, "alice", &password("alice"))
        .await;
    assert_eq!(alice.unwrap().unwrap().groups, names(&["posix"]));
}

#[tokio::test]
async fn nobody_who_names_a_group_is_no_answer_to_who_is_in_which() {
    let slapd = Slapd::limited(&[], None, "");
    let settings = DirectorySettings {
        filter: "(&(uid={{username}})(!(uid=alice)))".to_owned(),
        ..slapd.settings()
    };
    let listing = directory().list(&settings).await.unwrap();
    assert_eq!(listing.groups, None);
    assert!(listing.people.iter().all(|it| it.groups.is_none()));
}

#[rstest]
#[case::member_of(false)]
#[case::group_search(true)]
#[tokio::test]
async fn many_groups_in_groups_are_found(#[case] searched: bool) {
    let mut more = String::new();
    for number in 0..300 {
        let member = match number % 20 {
            0 => "uid=bob,ou=people,dc=example,dc=org".to_owned(),
            _ => format!("cn=g{},ou=groups,dc=example,dc=org", number - 1),
        };
        write!(
            more,
            "dn: cn=g{number},ou=groups,dc=example,dc=org\nobjectClass: groupOfNames\ncn: g{number}\nmember: {member}\n\n"
        )
        .unwrap();
    }
    let slapd = Slapd::with(&[], None, "", &more);
    let settings = if searched {
        by_groups(&slapd)
    } else {
        slapd.settings()
    };
    let listing = directory().list(&settings).await.unwrap();
    let bob = listing.people.iter().find(|it| it.name == "bob").unwrap();
    assert_eq!(bob.groups.as_ref().unwrap().len(), 300);
    let bob = directory()
        .sign_in(&settings, "bob", &password("bob"))
        .await;
    assert_eq!(bob.unwrap().unwrap().groups.unwrap().len(), 300);
}

#[tokio::test]
async fn a_check_says_how_far_it_came_and_what_it_found() {
    let slapd = Slapd::with(&["carol"], None, "", NESTED);
    let settings = by_groups(&slapd);
    let check = directory().check(&settings, &Wanted::default()).await;
    let steps: Vec<_> = check
        .steps
        .iter()
        .map(|it| (it.name, it.ok, it.detail.as_str()))
        .collect();
    assert_eq!(
        steps,
        [
            ("bind", true, "bound as cn=service,dc=example,dc=org"),
            ("user_search", true, "found 4 users"),
            ("group_query", true, "found 7 groups"),
        ]
    );
    assert_eq!((check.user_count, check.users.len()), (4, 4));
    let staff = check.groups.iter().find(|it| it.name == "Staff").unwrap();
    assert_eq!(
        (staff.member_count, staff.sub_groups.as_slice()),
        (1, ["Ops".to_owned()].as_slice())
    );

    let wanted = Wanted {
        user: Some("zoe".to_owned()),
        group: Some("none".to_owned()),
        ..Wanted::default()
    };
    for settings in [settings.clone(), slapd.settings()] {
        let check = directory().check(&settings, &wanted).await;
        let steps: Vec<_> = check.steps.iter().map(|it| (it.name, it.ok)).collect();
        assert_eq!(
            steps,
            [
                ("bind", true),
                ("user_search", false),
                ("group_query", false)
            ]
        );
    }
    let wanted = Wanted {
        user: Some("alice".to_owned()),
        group: Some("eng".to_owned()),
        ..Wanted::default()
    };
    for settings in [settings.clone(), slapd.settings()] {
        let check = directory().check(&settings, &wanted).await;
        assert!(check.steps.iter().all(|it| it.ok), "{check:?}");
        assert_eq!(check.groups[0].member_count, 1);
    }
    let wrong = DirectorySettings {
        bind_password: "wrong".into(),
        ..settings
    };
    let check = directory().check(&wrong, &Wanted::default()).await;
    assert_eq!(check.steps.len(), 1);
    assert!(
        check.steps[0].detail.contains("ldap.bind_dn"),
        "{:?}",
        check.steps
    );
}
