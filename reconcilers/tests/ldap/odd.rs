//! Entries of real directories: names in another case, several names, RDNs of several attributes, roles among the
//! groups, pages without entries. A sign-in and a list say the same of each.

use std::collections::{BTreeMap, BTreeSet};

use reconcilers::drivers::ldap::{Directory, DirectorySettings, GroupSearch, Listing, Wanted};
use rstest::rstest;
use secrecy::SecretString;

use super::hostile::{PAGES, controls, element, entry_with, message, result, send, serve};
use super::server::{Relay, Slapd, password};
use super::{directory, names};

/// An LDIF file of real people's directories, below the suffix of the tests, without what these have anyway.
fn case(name: &str) -> String {
    let path = format!("{}/tests/cases/ldap/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.replace("dc=planetexpress,dc=com", "dc=example,dc=org");
    let entries = text.split("\n\n").map(str::trim);
    let new = entries.filter(|it| it.contains("dn: ") && !it.contains("dn: ou=people,"));
    new.map(|entry| format!("{entry}\n\n")).collect()
}

fn searched(slapd: &Slapd, filter: &str, attribute: &str) -> DirectorySettings {
    DirectorySettings {
        groups: GroupSearch::Groups {
            base_dn: "dc=example,dc=org".to_owned(),
            filter: filter.to_owned(),
            member_attribute: attribute.to_owned(),
        },
        ..slapd.settings()
    }
}

fn groups_of<'a>(listing: &'a Listing, name: &str) -> &'a Option<BTreeSet<String>> {
    let found = listing.people.iter().find(|it| it.name == name);
    &found
        .unwrap_or_else(|| panic!("{name}: {listing:?}"))
        .groups
}

#[tokio::test]
async fn members_match_in_any_case_at_sign_in_and_in_lists() {
    let group = |name: &str, members: &str| {
        format!(
            "dn: cn={name},ou=groups,dc=example,dc=org\nobjectClass: posixGroup\ncn: {name}\ngidNumber: 7\n{members}\n"
        )
    };
    let mut more = group("upper", "memberUid: ALICE\n");
    more += &group("capital", "memberUid: Alice\nmemberUid: BoB\n");
    more += &group("mixed", "memberUid: aLiCe\n");
    // `alice ` and ` Bob`, with the spaces.
    more += &group("spaces", "memberUid:: YWxpY2Ug\nmemberUid:: IEJvYg==\n");
    more += &group("others", "memberUid: alicea\nmemberUid: a lice\n");
    more += &group(
        "dns",
        "memberUid: UID=Alice, OU=People,dc=example,dc=org\nmemberUid: uid=bob,dc=example,dc=org\n",
    );
    let slapd = Slapd::with(&[], None, "", &more);
    let settings = searched(
        &slapd,
        "(&(objectClass=posixGroup)(cn={{groupname}}))",
        "memberUid",
    );
    let directory = directory();
    let listing = directory.list(&settings).await.unwrap();
    for (name, expected) in [
        (
            "alice",
            names(&["upper", "capital", "mixed", "spaces", "dns"]),
        ),
        ("bob", names(&["capital", "spaces"])),
    ] {
        assert_eq!(groups_of(&listing, name), &expected, "{name}");
        let person = directory.sign_in(&settings, name, &password(name)).await;
        assert_eq!(person.unwrap().unwrap().groups, expected, "{name}");
    }
}

#[rstest]
#[case::size(Some(4))]
#[case::administrative(Some(11))]
#[case::matching(Some(18))]
#[case::unwilling(Some(53))]
#[case::silence(None)]
#[tokio::test]
async fn searches_without_index_cost_no_other_group(#[case] code: Option<u8>) {
    let settings = serve(move |id, stream| {
        let done = message(id, &[&result(0x65, b"")]);
        let found = |dn: &[u8]| message(id, &[&entry_with(dn, &[(b"uid", &[b"ann"])])]);
        match id {
            2 | 3 => send(stream, &[&found(b"uid=ann,dc=example"), &done]),
            4 => send(stream, &[&found(b"cn=dev,dc=example"), &done]),
            // By the rules, and by DN.
            5 | 6 => {
                let answer = code.map(|code| message(id, &[&failure(code)]));
                send(stream, &[&answer.unwrap_or_default()]);
            }
            _ => send(stream, &[&done]),
        }
    });
    let settings = DirectorySettings {
        groups: GroupSearch::Groups {
            base_dn: "dc=example".to_owned(),
            filter: "(cn={{groupname}})".to_owned(),
            member_attribute: "memberUid".to_owned(),
        },
        ..settings
    };
    let password = SecretString::from("password");
    let ann = directory().sign_in(&settings, "ann", &password).await;
    assert_eq!(ann.unwrap().unwrap().groups, names(&["dev"]));
}

/// The end of a search with this result.
fn failure(code: u8) -> Vec<u8> {
    let parts = [
        element(0x0a, &[code]),
        element(0x04, b""),
        element(0x04, b""),
    ];
    element(0x65, &parts.concat())
}

#[rstest]
#[case::of_dns("Member", 4)]
#[case::of_texts("memberUid", 5)]
#[tokio::test]
async fn attributes_with_dns_are_asked_by_index_alone(
    #[case] attribute: &str,
    #[case] searches: usize,
) {
    let slapd = Slapd::new(&[], None);
    let relay = Relay::new(slapd.port);
    let settings = DirectorySettings {
        url: format!("ldap://127.0.0.1:{}", relay.port).parse().unwrap(),
        ..searched(&slapd, "(cn={{groupname}})", attribute)
    };
    let alice = directory()
        .sign_in(&settings, "alice", &password("alice"))
        .await;
    alice.unwrap().unwrap();
    assert_eq!(relay.searches(), searches);
}

#[tokio::test]
async fn an_entry_with_two_names_is_left_out_and_the_rest_goes_on() {
    // Besides: an entry that its DN names, and one whose only name is another value of that one.
    let more = "dn: uid=first,ou=people,dc=example,dc=org\nobjectClass: inetOrgPerson\nuid: first\nuid: second\ncn: f\nsn: f\n\
                userPassword: secret-pw\n\n\
                dn: cn=Taken,ou=people,dc=example,dc=org\nobjectClass: inetOrgPerson\nuid: second\ncn: Taken\nsn: t\n\
                userPassword: secret-pw\n\n\
                dn: uid=tagged,ou=people,dc=example,dc=org\nobjectClass: inetOrgPerson\nuid: tagged\nuid;lang-en: english\ncn: t\n\
                sn: t\nuserPassword: secret-pw\n\n";
    let slapd = Slapd::with(&[], None, "", &(case("two-values-of-uid.ldif") + more));
    let (directory, settings) = (directory(), slapd.settings());
    let listing = directory.list(&settings).await.unwrap();
    let found: BTreeSet<&str> = listing.people.iter().map(|it| it.name.as_str()).collect();
    let mut expected = BTreeSet::from(["alice", "bob", "locked", "first", "tagged"]);
    expected.extend(["u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8", "u9"]);
    assert_eq!(found, expected);
    let left: BTreeMap<&str, &str> = listing
        .left_out
        .iter()
        .map(|it| (it.dn.as_str(), it.reason.as_str()))
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
    let two = left["cn=Two Names,ou=people,dc=example,dc=org"];
    for part in [
        "2 values of uid",
        "tnames",
        "two.names",
        "leave one of them",
    ] {
        assert!(two.contains(part), "{two}");
    }
    let taken = left["cn=Taken,ou=people,dc=example,dc=org"];
    assert!(
        taken.contains("uid=first,ou=people,dc=example,dc=org"),
        "{taken}"
    );
    // A sign-in says the same of each.
    for (typed, name) in [
        ("u1", Some("u1")),
        ("first", Some("first")),
        ("tagged", Some("tagged")),
        ("tnames", None),
        ("two.names", None),
        ("second", None),
    ] {
        let secret = SecretString::from("secret-pw");
        let person = directory.sign_in(&settings, typed, &secret).await.unwrap();
        assert_eq!(person.map(|it| it.name).as_deref(), name, "{typed}");
    }
    // So does the test of the settings.
    let check = directory.check(&settings, &Wanted::default()).await;
    let said = &check.steps[1].detail;
    assert!(said.contains("found 14 users; left out: 2"), "{said}");
    assert!(said.contains("two.names"), "{said}");
}

#[tokio::test]
async fn rdns_of_several_attributes_match_in_any_order() {
    let amy = "dn: cn=Other,ou=groups,dc=example,dc=org\nobjectClass: groupOfNames\ncn: Other\n\
               member: SN=kroker + CN=amy  wong,OU=People,dc=example,dc=org\n\n\
               dn: cn=Oid,ou=groups,dc=example,dc=org\nobjectClass: groupOfNames\ncn: Oid\n\
               member: 2.5.4.4=Kroker+2.5.4.3=Amy Wong,ou=people,domainComponent=example,dc=org\n\
               member: cn=Philip\\20J. Fry,ou=people,dc=example,dc=org\n\n\
               dn: cn=Outer+ou=x,ou=groups,dc=example,dc=org\nobjectClass: groupOfNames\nobjectClass: extensibleObject\ncn: Outer\n\
               ou: x\nmember: cn=Other,ou=groups,dc=example,dc=org\n\n\
               dn: cn=Top,ou=groups,dc=example,dc=org\nobjectClass: groupOfNames\ncn: Top\n\
               member: OU=X+CN=outer,ou=groups,dc=example,dc=org\n\n";
    let crew = case("planet-express-subset.ldif").replace(
        "objectclass: Group\nobjectclass: top\ngroupType: 2147483650",
        "objectClass: groupOfNames",
    );
    let slapd = Slapd::with(&[], None, "", &(crew + amy));
    let (directory, secret) = (directory(), SecretString::from("secret-pw"));
    for settings in [
        searched(
            &slapd,
            "(&(objectClass=groupOfNames)(cn={{groupname}}))",
            "member",
        ),
        slapd.settings(),
    ] {
        let listing = directory.list(&settings).await.unwrap();
        assert_eq!(listing.left_out, []);
        for (name, expected) in [
            ("amy", names(&["Other", "Oid", "Outer", "Top"])),
            ("fry", names(&["Oid", "ship_crew"])),
            ("leela", names(&["ship_crew"])),
        ] {
            assert_eq!(groups_of(&listing, name), &expected, "{name}");
            let person = directory.sign_in(&settings, name, &secret).await;
            let person = person.unwrap().unwrap();
            assert_eq!(person.groups, expected, "{name}");
            let listed = listing.people.iter().find(|it| it.name == name);
            assert_eq!(person.dn, listed.unwrap().dn);
        }
    }
}

#[rstest]
#[case::everything(None, &["ipausers", "developers", "helpdesk", "User Administrators", "System: Modify Users", "c4f41b80-96eb-11ef-9cbc-0242ac170002", "0d2c9b3a-1167-11e1-9dea-0050562c8d82"], "2 groups have this name")]
#[case::groups(Some("CN=Groups, cn=accounts,dc=example,dc=org"), &["ipausers", "developers"], "6 values that users have are not below ldap.group_base_dn")]
#[case::elsewhere(Some("cn=none,dc=example,dc=org"), &[], "8 values that users have are not below ldap.group_base_dn")]
#[tokio::test]
async fn member_of_takes_groups_below_their_base_alone(
    #[case] base_dn: Option<&str>,
    #[case] expected: &[&str],
    #[case] note: &str,
) {
    let parents = "dn: cn=accounts,dc=example,dc=org\nobjectClass: organizationalRole\ncn: accounts\n\n\
                   dn: cn=users,cn=accounts,dc=example,dc=org\nobjectClass: organizationalRole\ncn: users\n\n";
    let slapd = Slapd::with(
        &[],
        None,
        "",
        &(parents.to_owned() + &case("freeipa-memberof.ldif")),
    );
    let settings = DirectorySettings {
        base_dn: "cn=accounts,dc=example,dc=org".to_owned(),
        groups: GroupSearch::MemberOf {
            base_dn: base_dn.map(str::to_owned),
        },
        ..slapd.settings()
    };
    let directory = directory();
    let listing = directory.list(&settings).await.unwrap();
    assert_eq!(groups_of(&listing, "ann"), &names(expected));
    assert_eq!(listing.groups, names(expected));
    assert_eq!(listing.notes.len(), 1, "{:?}", listing.notes);
    let secret = SecretString::from("secret-pw");
    let ann = directory.sign_in(&settings, "ann", &secret).await;
    // A base without any group of a person is not believed at sign-in: there nothing holds back a removal.
    let signed_in = names(expected).filter(|names| !names.is_empty());
    assert_eq!(ann.unwrap().unwrap().groups, signed_in);
    let said = &listing.notes[0].reason;
    assert!(said.contains(note), "{said}");
    let check = directory.check(&settings, &Wanted::default()).await;
    assert!(check.steps[2].detail.contains(said.as_str()), "{check:?}");
}

/// The control that says that more pages come, unless `cookie` is empty.
fn page(cookie: &[u8]) -> Vec<u8> {
    let page = [element(0x02, &[0]), element(0x04, cookie)].concat();
    let page = element(0x30, &page);
    controls(&[element(0x04, PAGES), element(0x04, &page)].concat())
}

#[tokio::test]
async fn empty_pages_are_passed_over() {
    let settings = serve(|id, stream| {
        let done = |cookie: &[u8]| message(id, &[&result(0x65, b""), &page(cookie)]);
        let found = |name: &[u8]| message(id, &[&entry_with(name, &[(b"uid", &[b"ann"])])]);
        match id {
            // The first request binds.
            2 | 4..9 => send(stream, &[&done(b"more")]),
            3 => send(stream, &[&found(b"uid=ann,dc=example"), &done(b"more")]),
            _ => send(stream, &[&done(b"")]),
        }
    });
    let listing = directory().list(&settings).await.unwrap();
    assert_eq!(listing.people.len(), 1);
}

#[tokio::test]
async fn values_that_are_no_text_fail_their_entry_alone() {
    let settings = serve(|id, stream| {
        let entry = |dn: &[u8], attributes: &[(&[u8], &[&[u8]])]| {
            message(id, &[&entry_with(dn, attributes)])
        };
        let of = b"cn=dev,dc=example" as &[u8];
        let answer = [
            entry(
                b"cn=1,dc=example",
                &[(b"UID", &[b"ann"]), (b"memberOf", &[of])],
            ),
            // The driver does not read `jpegPhoto`.
            entry(
                b"cn=2,dc=example",
                &[(b"uid", &[b" bob "]), (b"jpegPhoto", &[b"\xff\xd8"])],
            ),
            entry(b"cn=3,dc=example", &[(b"uid", &[b"J\xfcrgen"])]),
            entry(b"uid=eva,dc=example", &[(b"uid", &[b"\xff", b"Eva"])]),
            entry(
                b"cn=5,dc=example",
                &[(b"uid", &[]), (b"memberOf;range=0-1", &[of])],
            ),
            entry(
                b"cn=6,dc=example",
                &[(b"uid", &[b"zoe"]), (b"memberOf;range=0-1", &[of])],
            ),
            entry(
                b"cn=7,dc=example",
                &[(b"uid", &[b"kim"]), (b"memberOf;range=0-1", &[of, b"\xff"])],
            ),
        ];
        match id {
            2 => send(
                stream,
                &[&answer.concat(), &message(id, &[&result(0x65, b"")])],
            ),
            // The group itself can't be read.
            _ => send(stream, &[&message(id, &[&result(0x65, b"")])]),
        }
    });
    let listing = directory().list(&settings).await.unwrap();
    let found: Vec<_> = listing
        .people
        .iter()
        .map(|it| (it.name.as_str(), it.groups.clone()))
        .collect();
    let expected = [
        ("ann", names(&["dev"])),
        ("bob", names(&[])),
        ("Eva", names(&[])),
        // No user is removed from groups that can't be read as a whole.
        ("zoe", None),
        ("kim", None),
    ];
    assert_eq!(found, expected);
    let left: Vec<_> = listing
        .left_out
        .iter()
        .map(|it| it.reason.as_str())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left[0].contains("uid is not text in UTF-8"), "{left:?}");
    assert!(
        left[1].contains("no uid that ldap.bind_dn may read"),
        "{left:?}"
    );
    let incomplete = listing.left_out.iter().map(|it| it.incomplete);
    assert_eq!(incomplete.collect::<Vec<_>>(), [false, true]);
    assert_eq!(listing.notes.len(), 2, "{:?}", listing.notes);
}

#[tokio::test]
async fn members_in_parts_that_are_no_text_are_counted() {
    let settings = serve(|id, stream| {
        let entry = |dn: &[u8], attributes: &[(&[u8], &[&[u8]])]| {
            message(id, &[&entry_with(dn, attributes)])
        };
        let group = |range: &[u8], members: &[&[u8]]| {
            entry(b"cn=dev,dc=example", &[(b"member", &[]), (range, members)])
        };
        let answer = match id {
            2 => [
                entry(b"uid=ann,dc=example", &[(b"uid", &[b"ann"])]),
                entry(b"uid=bob,dc=example", &[(b"uid", &[b"bob"])]),
            ]
            .concat(),
            3 => group(b"member;range=0-1", &[b"uid=ann,dc=example", b"\xff"]),
            4 => group(b"member;range=2-3", &[b"\xfe", b"\xff"]),
            _ => group(b"member;range=4-*", &[b"uid=bob,dc=example"]),
        };
        send(stream, &[&answer, &message(id, &[&result(0x65, b"")])]);
    });
    let settings = DirectorySettings {
        groups: GroupSearch::Groups {
            base_dn: "dc=example".to_owned(),
            filter: "(cn={{groupname}})".to_owned(),
            member_attribute: "member".to_owned(),
        },
        ..settings
    };
    let listing = directory().list(&settings).await.unwrap();
    for name in ["ann", "bob"] {
        assert_eq!(groups_of(&listing, name), &names(&["dev"]), "{name}");
    }
    let said = &listing.notes[0].reason;
    assert!(said.contains("left out: 3"), "{said}");
}
