//! The driver of directories against OpenLDAP, as its users have it: encrypted or not, frozen, restarted, cut off.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods // A real directory takes real time.
)]

mod groups;
mod hostile;
mod odd;
mod samba;
mod scale;
#[allow(dead_code)] // The tests of the whole program use the rest.
pub mod server;

use std::collections::BTreeSet;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use reconcilers::drivers::ldap::{
    Directory, DirectoryError, DirectorySettings, LdapDirectory, Wanted,
};
use rstest::rstest;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use server::{Certificates, ELSEWHERE, Relay, Slapd, password};

const ODD: [&str; 5] = [
    "paren(user)",
    "star*",
    "ünïcode",
    "comma,plus+",
    "back\\slash",
];

fn names(names: &[&str]) -> Option<BTreeSet<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

/// Whether the full scale is wanted (`make test-long`).
fn long() -> bool {
    std::env::var_os("AGENTYARD_TEST_LONG").is_some_and(|value| value != "0" && !value.is_empty())
}

pub fn directory() -> LdapDirectory {
    LdapDirectory::new(TaskTracker::new(), CancellationToken::new())
}

async fn let_in(
    directory: &LdapDirectory,
    settings: &DirectorySettings,
    name: &str,
) -> Option<String> {
    let found = directory.sign_in(settings, name, &password(name)).await;
    found.unwrap().map(|person| person.name)
}

#[tokio::test]
async fn who_has_the_password_is_let_in_and_nobody_else() {
    let slapd = Slapd::new(&ODD, None);
    let (directory, settings) = (directory(), slapd.settings());
    let alice = directory
        .sign_in(&settings, "alice", &password("alice"))
        .await;
    let alice = alice.unwrap().unwrap();
    assert_eq!(alice.dn, "uid=alice,ou=people,dc=example,dc=org");
    assert_eq!(alice.groups, names(&["eng"]));
    // The name is what the directory writes.
    assert_eq!(let_in(&directory, &settings, "ALICE").await, None);
    let upper = directory
        .sign_in(&settings, "ALICE", &password("alice"))
        .await;
    assert_eq!(upper.unwrap().unwrap().name, "alice");
    for name in ODD {
        assert_eq!(
            let_in(&directory, &settings, name).await.as_deref(),
            Some(name)
        );
    }
    for (name, secret) in [
        ("alice", "wrong"),
        // Directories let in whoever has none, as nobody (L17).
        ("alice", ""),
        ("nobody", "x"),
        ("", "x"),
        ("locked", "dekcol"),
        // None of these finds somebody else.
        ("a*", "ecila"),
        ("*", "ecila"),
        ("alice)(uid=*", "ecila"),
        ("x)(|(uid=alice", "ecila"),
        ("alice\0", "ecila"),
    ] {
        let found = directory
            .sign_in(&settings, name, &SecretString::from(secret))
            .await;
        assert_eq!(found, Ok(None), "{name} {secret}");
    }
    // Who was refused has not taken the service's own connection along.
    assert_eq!(
        let_in(&directory, &settings, "bob").await.as_deref(),
        Some("bob")
    );
}

#[rstest]
#[case::start_tls(true)]
#[case::ldaps(false)]
#[tokio::test]
async fn a_connection_is_encrypted_for_an_authority_that_is_trusted(#[case] start_tls: bool) {
    let certificates = Certificates::new(false);
    let slapd = Slapd::new(&[], Some(&certificates));
    let directory = directory();
    let settings = encrypted(&slapd, start_tls);
    let trusting = DirectorySettings {
        ca_certificate: Some(certificates.authority.clone()),
        ..settings.clone()
    };
    assert_eq!(
        let_in(&directory, &trusting, "alice").await.as_deref(),
        Some("alice")
    );
    for other in [None, Some(Certificates::new(false).authority)] {
        let stranger = DirectorySettings {
            ca_certificate: other,
            ..settings.clone()
        };
        let refused = directory
            .sign_in(&stranger, "alice", &password("alice"))
            .await;
        assert!(
            matches!(refused, Err(DirectoryError::Certificate(_))),
            "{refused:?}"
        );
    }
    let broken = DirectorySettings {
        ca_certificate: Some(
            "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n".to_owned(),
        ),
        ..settings
    };
    let refused = directory.list(&broken).await;
    assert!(
        matches!(refused, Err(DirectoryError::Authority(_))),
        "{refused:?}"
    );
}

#[rstest]
#[case::start_tls(true)]
#[case::ldaps(false)]
#[tokio::test]
async fn an_expired_certificate_is_not_trusted(#[case] start_tls: bool) {
    let certificates = Certificates::new(true);
    let slapd = Slapd::new(&[], Some(&certificates));
    let settings = DirectorySettings {
        ca_certificate: Some(certificates.authority.clone()),
        ..encrypted(&slapd, start_tls)
    };
    let refused = directory().list(&settings).await;
    let Err(DirectoryError::Certificate(why)) = refused else {
        panic!("{refused:?}")
    };
    assert!(why.to_lowercase().contains("expired"), "{why}");
}

fn encrypted(slapd: &Slapd, start_tls: bool) -> DirectorySettings {
    let settings = slapd.settings();
    let tls = format!("ldaps://127.0.0.1:{}", slapd.tls_port);
    DirectorySettings {
        start_tls,
        url: match start_tls {
            true => settings.url.clone(),
            false => tls.parse().unwrap(),
        },
        ..settings
    }
}

#[tokio::test]
async fn what_is_set_wrong_is_said() {
    let slapd = Slapd::new(&[], None);
    let directory = directory();
    let right = slapd.settings();
    let said = async |settings: DirectorySettings| {
        let signed_in = directory
            .sign_in(&settings, "alice", &password("alice"))
            .await;
        let listed = directory.list(&settings).await.map(|_| None);
        (signed_in, listed)
    };
    let wrong_password = DirectorySettings {
        bind_password: SecretString::from("hunter2"),
        ..right.clone()
    };
    let (signed_in, listed) = said(wrong_password).await;
    assert_eq!(signed_in, listed);
    let error = listed.unwrap_err();
    assert!(matches!(error, DirectoryError::Bind(_)), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("hunter2"));
    let no_password = DirectorySettings {
        bind_password: SecretString::from(""),
        ..right.clone()
    };
    let expected = Err(DirectoryError::Bind(
        "ldap.bind_password is empty".to_owned(),
    ));
    assert_eq!(said(no_password).await.0, expected);
    let base = "ou=nowhere,dc=example,dc=org";
    let no_base = DirectorySettings {
        base_dn: base.to_owned(),
        ..right.clone()
    };
    let expected = Err(DirectoryError::NoBase(base.to_owned()));
    assert_eq!(said(no_base).await, (expected.clone(), expected));
    let bad_filter = DirectorySettings {
        filter: "(uid={{username}}".to_owned(),
        ..right.clone()
    };
    assert!(matches!(
        said(bad_filter).await.0,
        Err(DirectoryError::Filter(_))
    ));
    let all = DirectorySettings {
        filter: "(|(uid={{username}})(objectClass=inetOrgPerson))".to_owned(),
        ..right.clone()
    };
    // Nobody is one of several; the log says what to do.
    assert_eq!(said(all).await.0, Ok(None));
    let start_tls = DirectorySettings {
        start_tls: true,
        ..right
    };
    let (signed_in, _) = said(start_tls).await;
    assert!(
        matches!(signed_in, Err(DirectoryError::StartTls(_))),
        "{signed_in:?}"
    );
}

#[tokio::test]
async fn l66_a_directory_that_is_away_or_frozen_is_left_and_its_return_is_noticed() {
    let mut slapd = Slapd::new(&[], None);
    let (directory, settings) = (directory(), slapd.settings());
    assert!(let_in(&directory, &settings, "alice").await.is_some());
    // Restarted: the connection that was kept is of no use, and nobody notices.
    slapd.stop();
    slapd.start();
    assert!(let_in(&directory, &settings, "alice").await.is_some());
    slapd.signal("STOP");
    let begin = Instant::now();
    let frozen = directory
        .sign_in(&settings, "alice", &password("alice"))
        .await;
    assert_eq!(frozen, Err(DirectoryError::Timeout(settings.timeout)));
    assert!(
        begin.elapsed() < Duration::from_secs(4),
        "{:?}",
        begin.elapsed()
    );
    slapd.signal("CONT");
    assert!(let_in(&directory, &settings, "alice").await.is_some());
    slapd.stop();
    for _ in 0..2 {
        let away = directory
            .sign_in(&settings, "alice", &password("alice"))
            .await;
        assert!(
            matches!(away, Err(DirectoryError::Unreachable(_))),
            "{away:?}"
        );
    }
    slapd.start();
    assert!(let_in(&directory, &settings, "alice").await.is_some());
}

#[tokio::test]
async fn who_signs_in_waits_for_nobody_else() {
    let slapd = Slapd::new(&[], None);
    let (directory, settings) = (directory(), slapd.settings());
    // A directory of an earlier configuration, which says nothing, is being asked meanwhile.
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = silent.local_addr().unwrap().port();
    let waiting = DirectorySettings {
        url: format!("ldap://127.0.0.1:{port}").parse().unwrap(),
        timeout: Duration::from_secs(3),
        ..settings.clone()
    };
    let others = async {
        let begin = Instant::now();
        for _ in 0..10 {
            assert!(let_in(&directory, &settings, "alice").await.is_some());
        }
        begin.elapsed()
    };
    let (silent, others) = tokio::join!(directory.list(&waiting), others);
    assert_eq!(silent, Err(DirectoryError::Timeout(waiting.timeout)));
    assert!(others < Duration::from_secs(2), "{others:?}");
}

#[tokio::test]
async fn everybody_is_found_page_by_page_past_the_limit_of_one_answer() {
    let names: Vec<String> = (0..1_200).map(|number| format!("user{number}")).collect();
    let people: Vec<&str> = names.iter().map(String::as_str).collect();
    let limits = "sizelimit size.soft=100 size.hard=100 size.prtotal=unlimited";
    let slapd = Slapd::limited(&people, None, limits);
    let directory = directory();
    for page_size in [100_u32, 7] {
        let settings = DirectorySettings {
            page_size: page_size.try_into().unwrap(),
            ..slapd.settings()
        };
        let found = directory.list(&settings).await.unwrap().people;
        assert_eq!(found.len(), 1_203);
        assert_eq!(
            found
                .iter()
                .filter(|it| it.groups != Some(BTreeSet::new()))
                .count(),
            1
        );
    }
}

#[tokio::test]
async fn l1_what_is_cut_short_is_no_answer() {
    let names: Vec<String> = (0..300).map(|number| format!("user{number}")).collect();
    let people: Vec<&str> = names.iter().map(String::as_str).collect();
    let slapd = Slapd::limited(&people, None, "sizelimit size.prtotal=50");
    let settings = DirectorySettings {
        page_size: 20.try_into().unwrap(),
        ..slapd.settings()
    };
    let limited = directory().list(&settings).await;
    assert!(
        matches!(limited, Err(DirectoryError::Incomplete(_))),
        "{limited:?}"
    );
    let slapd = Slapd::new(&people, None);
    // The connection ends somewhere in the answer, each time elsewhere.
    for bytes in [1, 20, 200, 2_000, 10_000, 20_000] {
        let port = cut_after(bytes, slapd.port);
        let settings = DirectorySettings {
            url: format!("ldap://127.0.0.1:{port}").parse().unwrap(),
            page_size: 20.try_into().unwrap(),
            ..slapd.settings()
        };
        let outcome = directory().list(&settings).await;
        assert!(
            matches!(outcome, Err(DirectoryError::Unreachable(_))),
            "{bytes}: {:?}",
            outcome.map(|people| people.people.len())
        );
    }
}

/// Passes one connection on, and ends it after so many bytes of answers.
fn cut_after(bytes: u64, port: u16) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (
                client.unwrap(),
                TcpStream::connect(("127.0.0.1", port)).unwrap(),
            );
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            let _ = std::io::copy(&mut server.by_ref().take(bytes), &mut client);
            let _ = client.shutdown(std::net::Shutdown::Both);
            let _ = server.shutdown(std::net::Shutdown::Both);
        }
    });
    own
}

#[tokio::test]
async fn no_connection_outlives_the_service() {
    let slapd = Slapd::new(&[], None);
    let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
    let directory = LdapDirectory::new(tasks.clone(), shutdown.clone());
    assert!(
        let_in(&directory, &slapd.settings(), "alice")
            .await
            .is_some()
    );
    tasks.close();
    shutdown.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(300), tasks.wait()).await;
    assert!(ended.is_ok(), "the connection that is kept stays");
    let late = directory.list(&slapd.settings()).await;
    assert!(late.is_err(), "{late:?}");
}

#[tokio::test]
async fn a_known_name_costs_as_many_connections_as_an_unknown_one() {
    let slapd = Slapd::new(&[], None);
    let relay = Relay::new(slapd.port);
    let (directory, settings) = (directory(), through(&relay, slapd.settings()));
    assert!(let_in(&directory, &settings, "alice").await.is_some());
    assert_eq!(relay.accepted(), 2, "the service's and alice's");
    for (name, secret) in [("alice", "wrong"), ("nobody", "wrong"), ("alice", "ecila")] {
        let before = relay.accepted();
        let secret = SecretString::from(secret);
        let outcome = directory.sign_in(&settings, name, &secret).await;
        outcome.unwrap();
        assert_eq!(relay.accepted(), before + 1, "{name}");
    }
}

fn through(relay: &Relay, settings: DirectorySettings) -> DirectorySettings {
    DirectorySettings {
        url: format!("ldap://127.0.0.1:{}", relay.port).parse().unwrap(),
        ..settings
    }
}

#[tokio::test]
async fn l66_a_connection_that_died_without_a_word_is_replaced_within_one_sign_in() {
    let slapd = Slapd::new(&[], None);
    let relay = Relay::new(slapd.port);
    let (directory, settings) = (directory(), through(&relay, slapd.settings()));
    let settings = DirectorySettings {
        timeout: Duration::from_secs(10),
        ..settings
    };
    assert!(let_in(&directory, &settings, "alice").await.is_some());
    relay.silence();
    // Whoever leaves before it is known takes the dead connection along.
    let left = let_in(&directory, &settings, "alice");
    assert!(
        tokio::time::timeout(Duration::from_millis(500), left)
            .await
            .is_err()
    );
    // The request, and perhaps the farewell of alice's own connection before.
    let swallowed = relay.swallowed();
    assert!(swallowed >= 1);
    assert!(let_in(&directory, &settings, "alice").await.is_some());
    assert_eq!(relay.swallowed(), swallowed);
    relay.silence();
    assert!(let_in(&directory, &settings, "alice").await.is_some());
}

#[tokio::test]
async fn a_service_that_is_refused_does_not_try_again_for_every_visitor() {
    let slapd = Slapd::new(&[], None);
    let relay = Relay::new(slapd.port);
    let right = through(&relay, slapd.settings());
    let wrong = DirectorySettings {
        bind_password: SecretString::from("old"),
        ..right.clone()
    };
    let directory = directory();
    for _ in 0..10 {
        let refused = directory.sign_in(&wrong, "alice", &password("alice")).await;
        assert!(
            matches!(refused, Err(DirectoryError::Bind(_))),
            "{refused:?}"
        );
    }
    assert_eq!(relay.accepted(), 1);
    // Settings that were mended are tried at once.
    assert!(let_in(&directory, &right, "alice").await.is_some());
}

#[tokio::test]
async fn l10_who_has_several_names_is_nobody() {
    let slapd = Slapd::new(&["carol|alicia"], None);
    let (directory, settings) = (directory(), slapd.settings());
    for name in ["carol", "alicia"] {
        let found = directory.sign_in(&settings, name, &password("carol")).await;
        assert_eq!(found, Ok(None), "{name}");
    }
    // Nor does the list know who that is; the others are in it.
    let all = directory.list(&settings).await.unwrap();
    assert_eq!((all.people.len(), all.left_out.len()), (3, 1), "{all:?}");
    assert!(
        all.left_out[0]
            .reason
            .contains("2 values of uid (carol, alicia)"),
        "{all:?}"
    );
    // Nor does a list without names look like an empty one.
    let nameless = DirectorySettings {
        filter: "(|(sn=x)(uid={{username}}))".to_owned(),
        username_attribute: "employeeNumber".to_owned(),
        ..settings
    };
    let all = directory.list(&nameless).await;
    assert!(
        matches!(all, Err(DirectoryError::Unreadable { .. })),
        "{all:?}"
    );
}

#[tokio::test]
async fn l1_what_is_elsewhere_is_missing() {
    let slapd = Slapd::with(&[], None, "", ELSEWHERE);
    let all = directory().list(&slapd.settings()).await;
    assert!(matches!(all, Err(DirectoryError::Reference(_))), "{all:?}");
    let said = all.unwrap_err().to_string();
    for part in ["ldap://127.0.0.1:1/ou=elsewhere", "set ldap.host"] {
        assert!(said.contains(part), "{said}");
    }
    // A user of this server signs in; a name that is not here is unknown, as on any other server.
    let (directory, settings) = (directory(), slapd.settings());
    let bob = let_in(&directory, &settings, "bob").await;
    assert_eq!(bob.as_deref(), Some("bob"));
    assert_eq!(let_in(&directory, &settings, "nobody").await, None);
    let wanted = Wanted {
        user: Some("nobody".to_owned()),
        ..Wanted::default()
    };
    let check = directory.check(&settings, &wanted).await;
    assert!(
        check.steps[1].detail.contains("refers to another server"),
        "{check:?}"
    );
}

#[tokio::test]
async fn two_lists_at_once_are_both_complete() {
    let names: Vec<String> = (0..200).map(|number| format!("user{number}")).collect();
    let people: Vec<&str> = names.iter().map(String::as_str).collect();
    let slapd = Slapd::new(&people, None);
    let settings = DirectorySettings {
        page_size: 3.try_into().unwrap(),
        ..slapd.settings()
    };
    let directory = directory();
    let sign_in = let_in(&directory, &settings, "alice");
    let (one, other, alice) = tokio::join!(
        directory.list(&settings),
        directory.list(&settings),
        sign_in
    );
    assert_eq!(
        (one.unwrap().people.len(), other.unwrap().people.len()),
        (203, 203)
    );
    assert!(alice.is_some());
}

#[tokio::test]
async fn what_is_no_directory_is_no_address() {
    let slapd = Slapd::new(&[], None);
    for bad in ["ldap:///", "ldapi://socket", "http://127.0.0.1"] {
        let settings = DirectorySettings {
            url: bad.parse().unwrap(),
            ..slapd.settings()
        };
        let refused = directory().list(&settings).await;
        assert!(
            matches!(refused, Err(DirectoryError::Address(_))),
            "{bad}: {refused:?}"
        );
    }
}
