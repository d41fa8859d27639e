//! The driver for repositories with real servers: Git's own behind HTTP with and without TLS, and OpenSSH's.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod repository;
mod server;
mod sshd;
mod stage;

use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;
use std::time::Duration;

use rand::Rng;
use reconcilers::drivers::git::{Git, GitError, Limits, Phase, Progress};
use reconcilers::runtime::{Classify, ErrorClass};
use rustix::process::{Signal, kill_process};
use schema::skill_store::SkipReason;
use tokio::time::{Instant, timeout};

use repository::Repository;
use server::{Answer, Authority, Server};
use sshd::Sshd;
use stage::{Stage, branch, tag, with};

const MAIN: &str = "refs/heads/main";

/// The value of a header for `git:hunter2secret`.
const BASIC: &str = "Basic Z2l0Omh1bnRlcjJzZWNyZXQ=";

fn random(bytes: usize) -> Vec<u8> {
    let mut all = vec![0; bytes];
    rand::rng().fill_bytes(&mut all);
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_is_written_with_its_files_and_without_its_history() {
    let stage = Stage::new();
    let repository = Repository::new(&stage.repositories(), "skills.git");
    let readme = repository.blob(b"read me");
    let script = repository.blob(b"#!/bin/sh\n");
    let skill = repository.tree(&[
        ("100644", b"SKILL.md", &readme),
        ("100755", b"run", &script),
    ]);
    let tree = repository.tree(&[
        ("100644", "größe".as_bytes(), &readme),
        ("40000", b"skill", &skill),
    ]);
    let commit = repository.commit(MAIN, &tree);
    let server = Server::new(&stage.repositories(), None, None);
    let remote = branch(&server.url("skills.git"), "main");

    let seen = stage.git.resolve(&remote).await.unwrap();
    assert_eq!((seen.commit, seen.known_hosts), (commit.clone(), None));

    let told = Mutex::new(Vec::new());
    let into = stage.empty();
    let progress = |progress: Progress| told.lock().unwrap().push(progress);
    let seen = stage.git.export(&remote, &into, &progress).await.unwrap();
    assert_eq!(seen.commit, commit);
    assert_eq!((seen.files, seen.bytes, &*seen.skipped), (3, 24, &[][..]));
    assert_eq!(stage.read("größe"), "read me");
    assert_eq!(stage.read("skill/SKILL.md"), "read me");
    let mode = |path: &str| {
        std::fs::metadata(into.join(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    assert_eq!(
        (mode("skill"), mode("skill/SKILL.md"), mode("skill/run")),
        (0o755, 0o644, 0o755)
    );
    let told = told.into_inner().unwrap();
    let of = |phase| {
        told.iter()
            .any(|told| told.phase == phase && told.percent == Some(100))
    };
    assert!(of(Phase::Receiving) && of(Phase::Writing), "{told:?}");
    stage.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_and_tags_are_told_apart_and_followed_when_they_move() {
    let stage = Stage::new();
    let repository = Repository::new(&stage.repositories(), "r");
    let first = repository.files(MAIN, &[("a/x", b"1")]);
    let light = repository.files("refs/tags/light", &[("a/x", b"2")]);
    let pointed = repository.files("refs/heads/feature/one", &[("a/x", b"3")]);
    repository.git(&["tag", "-a", "-m", "x", "v1", &pointed], b"");
    let blob = repository.blob(b"no commit");
    repository.git(&["update-ref", "refs/tags/blob", &blob], b"");
    let server = Server::new(&stage.repositories(), None, None);
    let url = server.url("r");
    for (remote, commit, text) in [
        (branch(&url, "main"), &first, "1"),
        (branch(&url, "feature/one"), &pointed, "3"),
        (tag(&url, "light"), &light, "2"),
        (tag(&url, "v1"), &pointed, "3"),
    ] {
        assert_eq!(stage.git.resolve(&remote).await.unwrap().commit, *commit);
        assert_eq!(stage.export(&remote).await.unwrap().commit, *commit);
        assert_eq!(stage.read("a/x"), text);
    }
    for (remote, name) in [
        (branch(&url, "v1"), "refs/heads/v1"),
        (tag(&url, "main"), "refs/tags/main"),
        (branch(&url, "feature"), "refs/heads/feature"),
    ] {
        for seen in [
            stage.git.resolve(&remote).await.map(|_| ()),
            stage.export(&remote).await.map(|_| ()),
        ] {
            assert!(
                matches!(&seen, Err(GitError::NoReference(found)) if found == name),
                "{seen:?}"
            );
            assert_eq!(seen.unwrap_err().class(), ErrorClass::Terminal);
        }
    }
    let seen = stage.export(&tag(&url, "blob")).await;
    assert!(matches!(seen, Err(GitError::NoCommit(_))), "{seen:?}");

    // Somebody pushes with force: what is there now has nothing to do with what was there.
    let pushed = repository.files(MAIN, &[("a/y", b"4")]);
    assert_eq!(
        stage
            .git
            .resolve(&branch(&url, "main"))
            .await
            .unwrap()
            .commit,
        pushed
    );
    assert_eq!(
        stage.export(&branch(&url, "main")).await.unwrap().commit,
        pushed
    );
    assert_eq!(stage.read("a/y"), "4");
    stage.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_with_an_own_authority_and_credentials_that_are_right_wrong_or_missing() {
    let authority = Authority::new();
    let stage = Stage::new();
    let repository = Repository::new(&stage.repositories(), "r");
    let commit = repository.files(MAIN, &[("a/x", b"1")]);
    let server = Server::new(&stage.repositories(), Some(&authority), Some(BASIC));
    let remote = branch(&server.url("r"), "main");
    let right = with(remote.clone(), "git", "hunter2secret");

    let seen = stage.git.resolve(&right).await;
    assert!(
        matches!(seen, Err(GitError::Certificate { .. })),
        "{seen:?}"
    );

    let stage = stage.trusting(&authority.pem);
    assert_eq!(stage.git.resolve(&right).await.unwrap().commit, commit);
    assert_eq!(stage.export(&right).await.unwrap().commit, commit);
    for wrong in [
        remote.clone(),
        with(remote.clone(), "git", "wrongsecret"),
        with(remote, "x", "hunter2secret"),
    ] {
        let seen = stage.export(&wrong).await.unwrap_err();
        assert!(matches!(seen, GitError::Unauthorized(_)), "{seen:?}");
        assert_eq!(seen.class(), ErrorClass::Terminal);
        assert!(!seen.to_string().contains("secret"), "{seen}");
    }
    stage.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l72_credentials_go_over_no_network_in_the_clear() {
    let stage = Stage::new();
    Repository::new(&stage.repositories(), "r").files(MAIN, &[("a/x", b"1")]);
    let server = Server::new(&stage.repositories(), None, Some(BASIC));
    let remote = with(branch(&server.url("r"), "main"), "git", "hunter2secret");
    // Nobody is on the way on this machine.
    stage.export(&remote).await.unwrap();
    let remote = with(
        branch("http://10.255.255.1/r", "main"),
        "git",
        "hunter2secret",
    );
    let seen = stage.export(&remote).await;
    assert!(matches!(seen, Err(GitError::Insecure)), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_answers_is_said_in_words_and_classed() {
    let stage = Stage::new();
    Repository::new(&stage.repositories(), "r").files(MAIN, &[("a/x", b"1")]);
    let server = Server::new(&stage.repositories(), None, None);
    let remote = branch(&server.url("r"), "main");
    let missing = stage
        .export(&branch(&server.url("missing"), "main"))
        .await
        .unwrap_err();
    assert!(matches!(missing, GitError::NotFound(_)), "{missing:?}");
    for (answer, kind, class) in [
        (Answer::Status(404), "NotFound", ErrorClass::Terminal),
        (Answer::Status(403), "Unauthorized", ErrorClass::Terminal),
        (Answer::Status(500), "Status", ErrorClass::Transient),
        (Answer::Status(429), "Status", ErrorClass::Transient),
        (
            Answer::ThenStatus(503),
            "Unreachable",
            ErrorClass::Transient,
        ),
        (Answer::Page, "NoRepository", ErrorClass::Terminal),
    ] {
        server.answer(answer.clone());
        for seen in [
            stage.git.resolve(&remote).await.map(|_| ()),
            stage.export(&remote).await.map(|_| ()),
        ] {
            let seen = seen.unwrap_err();
            assert!(
                format!("{seen:?}").starts_with(kind),
                "{answer:?}: {seen:?}"
            );
            assert_eq!(seen.class(), class, "{seen:?}");
        }
    }
    let url = remote.url.clone();
    drop(server);
    let seen = stage
        .export(&branch(url.as_str(), "main"))
        .await
        .unwrap_err();
    assert!(matches!(seen, GitError::Unreachable(_)), "{seen:?}");
    let seen = stage
        .export(&branch("https://no-such-host.invalid/r", "main"))
        .await
        .unwrap_err();
    assert!(matches!(seen, GitError::UnknownHost(_)), "{seen:?}");
    stage.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l28_the_key_of_an_ssh_host_is_learned_once_and_then_has_to_be_the_same() {
    let mut sshd = Sshd::new();
    let stage = Stage::new();
    let repository = Repository::new(&stage.repositories(), "r");
    let commit = repository.files(MAIN, &[("a/x", b"1")]);
    let url = sshd.url(&repository.path);
    let mut remote = with(branch(&url, "main"), "", &sshd.key);

    let seen = stage.git.resolve(&remote).await.unwrap();
    let learned = seen.known_hosts.unwrap();
    assert_eq!(seen.commit, commit);
    assert_eq!(
        learned,
        format!("[127.0.0.1]:{} {}\n", sshd.port, sshd.host_key())
    );
    let seen = stage.export(&remote).await.unwrap();
    assert_eq!(
        (seen.commit.as_str(), seen.known_hosts.as_ref()),
        (commit.as_str(), Some(&learned))
    );

    remote.known_hosts = Some(learned.clone());
    let seen = stage.export(&remote).await.unwrap();
    assert_eq!(seen.known_hosts, Some(learned));
    assert_eq!(stage.read("a/x"), "1");

    sshd.change_key();
    for seen in [
        stage.git.resolve(&remote).await.map(|_| ()),
        stage.export(&remote).await.map(|_| ()),
    ] {
        let seen = seen.unwrap_err();
        let GitError::HostKeyChanged { host, fingerprint } = &seen else {
            panic!("{seen:?}");
        };
        assert_eq!(host, "127.0.0.1");
        assert!(
            fingerprint.as_ref().unwrap().starts_with("SHA256:"),
            "{seen}"
        );
        assert_eq!(seen.class(), ErrorClass::Terminal);
    }
    // Another host's key says nothing of this one.
    remote.known_hosts = Some(format!("other.example {}\n", sshd.host_key()));
    let seen = stage.export(&remote).await.unwrap_err();
    assert!(matches!(seen, GitError::HostKeyUnknown(_)), "{seen:?}");
    stage.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ssh_says_why_it_lets_nobody_in() {
    let sshd = Sshd::new();
    let stage = Stage::new();
    let repository = Repository::new(&stage.repositories(), "r");
    repository.files(MAIN, &[("a/x", b"1")]);
    let remote = branch(&sshd.url(&repository.path), "main");
    for (remote, kind) in [
        (remote.clone(), "Unauthorized"),
        (
            with(remote.clone(), "", &sshd.other_key("")),
            "Unauthorized",
        ),
        (
            with(remote.clone(), "", &sshd.other_key("a passphrase")),
            "Credentials",
        ),
        (
            with(
                remote.clone(),
                "",
                "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----",
            ),
            "Credentials",
        ),
        (with(remote.clone(), "", "a password"), "Credentials"),
        (
            with(
                branch(&sshd.url(&stage.repositories().join("missing")), "main"),
                "",
                &sshd.key,
            ),
            "NotFound",
        ),
        (
            with(branch(&sshd.url(&repository.path), "other"), "", &sshd.key),
            "NoReference",
        ),
    ] {
        let seen = stage.export(&remote).await.unwrap_err();
        assert!(format!("{seen:?}").starts_with(kind), "{kind}: {seen:?}");
        assert_eq!(seen.class(), ErrorClass::Terminal, "{seen:?}");
    }
    // The user of the credentials, where the address names none.
    let url = sshd
        .url(&repository.path)
        .replace(&format!("{}@", sshd.user), "");
    stage
        .export(&with(branch(&url, "main"), &sshd.user, &sshd.key))
        .await
        .unwrap();
    stage.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l28_what_is_too_much_ends_early_and_leaves_nothing() {
    let stage = Stage::with(Limits {
        fetched: 2_000_000,
        ..Limits::default()
    });
    let repository = Repository::new(&stage.repositories(), "large");
    let blob = repository.blob(&random(20_000_000));
    let tree = repository.tree(&[("100644", b"x", &blob)]);
    repository.commit(MAIN, &tree);
    let server = Server::new(&stage.repositories(), None, None);
    let remote = branch(&server.url("large"), "main");
    for answer in [Answer::Serve, Answer::Slow(200_000)] {
        server.answer(answer);
        let seen = stage.export(&remote).await.unwrap_err();
        assert!(
            matches!(
                seen,
                GitError::TooMuch {
                    most: 2_000_000,
                    ..
                }
            ),
            "{seen:?}"
        );
        assert_eq!(seen.class(), ErrorClass::Terminal);
        stage.assert_nothing_is_left().await;
        assert!(stage.written().is_empty());
    }
}

/// A repository of so many files in directories of a thousand.
fn many(repository: &Repository, reference: &str, thousands: usize) {
    let blob = repository.blob(b"x");
    let names: Vec<String> = (0..1000).map(|number| format!("f{number:03}")).collect();
    let entries: Vec<_> = names
        .iter()
        .map(|name| ("100644", name.as_bytes(), blob.as_str()))
        .collect();
    let tree = repository.tree(&entries);
    let entries: Vec<_> = names
        .iter()
        .take(thousands)
        .map(|name| ("40000", name.as_bytes(), tree.as_str()))
        .collect();
    let top = repository.tree(&entries);
    repository.commit(reference, &top);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_files_are_refused_early_or_written_where_that_is_allowed() {
    let stage = Stage::with(Limits {
        entries: 10_000,
        ..Limits::default()
    });
    let repository = Repository::new(&stage.repositories(), "many");
    many(&repository, MAIN, 100);
    let server = Server::new(&stage.repositories(), None, None);
    let remote = branch(&server.url("many"), "main");
    let began = Instant::now();
    let seen = stage.export(&remote).await.unwrap_err();
    assert!(
        matches!(seen, GitError::TooMuch { most: 10_000, .. }),
        "{seen:?}"
    );
    let took = began.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    stage.assert_nothing_is_left().await;
    assert!(stage.written().is_empty());

    // Making that many takes a file system half a minute.
    let thousands = match std::env::var_os("AGENTYARD_TEST_LONG") {
        Some(_) => 100,
        None => 20,
    };
    many(&repository, "refs/heads/allowed", thousands);
    let large = Stage::with(Limits {
        entries: 200_000,
        ..Limits::default()
    });
    let remote = branch(&server.url("many"), "allowed");
    let seen = large.export(&remote).await.unwrap();
    assert_eq!(seen.files, thousands * 1000);
    assert_eq!(large.written().len(), thousands * 1001);
}

#[tokio::test(flavor = "multi_thread")]
async fn l27_bombs_end_within_their_limits() {
    let stage = Stage::with(Limits {
        unpacked: 512 * 1024 * 1024,
        ..Limits::default()
    });
    let repository = Repository::new(&stage.repositories(), "bomb");
    let names: Vec<String> = (0..10).map(|number| format!("d{number}")).collect();
    let tenfold = |mode: &'static str, id: &str| {
        let entries: Vec<_> = names
            .iter()
            .map(|name| (mode, name.as_bytes(), id))
            .collect();
        repository.tree(&entries)
    };
    let blob = repository.blob(&vec![0; 1_000_000]);
    // 10^10 files of a megabyte; then 10^30 directories without a file; then a gigabyte in a few files.
    let mut tree = tenfold("100644", &blob);
    for _ in 0..9 {
        tree = tenfold("40000", &tree);
    }
    repository.commit("refs/heads/files", &tree);
    let mut tree = repository.tree(&[]);
    for _ in 0..30 {
        tree = tenfold("40000", &tree);
    }
    repository.commit("refs/heads/directories", &tree);
    let thousand = tenfold("40000", &tenfold("40000", &tenfold("100644", &blob)));
    repository.commit("refs/heads/bytes", &thousand);
    let server = Server::new(&stage.repositories(), None, None);
    for name in ["files", "directories", "bytes"] {
        let began = Instant::now();
        let seen = stage
            .export(&branch(&server.url("bomb"), name))
            .await
            .unwrap_err();
        assert_eq!(seen.class(), ErrorClass::Terminal, "{name}: {seen:?}");
        assert!(matches!(seen, GitError::TooMuch { .. }), "{name}: {seen:?}");
        assert!(began.elapsed() < Duration::from_secs(10), "{name}");
        stage.assert_nothing_is_left().await;
        assert!(stage.written().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l27_what_is_small_on_the_way_and_large_in_the_end_takes_neither_disk_nor_memory() {
    let stage = Stage::with(Limits {
        fetched: 1_000_000,
        unpacked: 20_000_000,
        memory: 512 * 1024 * 1024,
        ..Limits::default()
    });
    let repository = Repository::new(&stage.repositories(), "r");
    let blob = repository.blob(&vec![0; 200_000_000]);
    let tree = repository.tree(&[("100644", b"zeros", &blob)]);
    repository.commit(MAIN, &tree);
    let server = Server::new(&stage.repositories(), None, None);
    let remote = branch(&server.url("r"), "main");
    let seen = stage.export(&remote).await.unwrap_err();
    let expected = matches!(
        seen,
        GitError::TooMuch {
            most: 20_000_000,
            ..
        }
    );
    assert!(expected, "{seen:?}");
    stage.assert_nothing_is_left().await;
    assert!(stage.written().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn l25_l28_hostile_trees_are_refused_and_nothing_of_them_is_run_or_written() {
    let stage = Stage::new();
    let repository = Repository::new(&stage.repositories(), "hostile");
    let pwned = stage.repositories().join("pwned");
    let blob = repository.blob(b"evil");
    let hook = repository.blob(format!("#!/bin/sh\ntouch {}\n", pwned.display()).as_bytes());
    let file = repository.tree(&[("100644", b"f", &blob)]);
    let hooks = repository.tree(&[("100755", b"post-checkout", &hook)]);
    let git = repository.tree(&[("40000", b"hooks", &hooks)]);
    let out = repository.blob(stage.repositories().display().to_string().as_bytes());
    for (name, tree) in [
        ("dotdot", repository.tree(&[("40000", b"..", &file)])),
        ("dotgit", repository.tree(&[("40000", b".git", &git)])),
        ("dotgit-case", repository.tree(&[("40000", b".GiT", &git)])),
        (
            "slash",
            repository.tree(&[("100644", b"a/../../evil", &blob)]),
        ),
        (
            "absolute",
            repository.tree(&[("100644", b"/etc/evil", &blob)]),
        ),
        (
            "through",
            repository.tree(&[("120000", b"d", &out), ("40000", b"d", &file)]),
        ),
        (
            "twice",
            repository.tree(&[("100644", b"f", &blob), ("100644", b"f", &hook)]),
        ),
        ("mode", repository.tree(&[("104755", b"suid", &blob)])),
    ] {
        repository.commit(&format!("refs/heads/{name}"), &tree);
        let server = Server::new(&stage.repositories(), None, None);
        let seen = stage.export(&branch(&server.url("hostile"), name)).await;
        // Git reads any mode of a file as one of two.
        if name == "mode" && seen.is_ok() {
            let mode = std::fs::metadata(&stage.written()[0])
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o7000, 0);
            continue;
        }
        let seen = seen.unwrap_err();
        assert!(matches!(seen, GitError::Hostile(_)), "{name}: {seen:?}");
        assert!(!seen.to_string().contains('\n'), "{seen}");
        assert!(
            !stage.repositories().join("f").exists() && !pwned.exists(),
            "{name}"
        );
        stage.assert_nothing_is_left().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn collection_is_written_but_for_what_is_skipped() {
    let stage = Stage::new();
    let repository = Repository::new(&stage.repositories(), "r");
    repository.collection(MAIN, 300, "first");
    let server = Server::new(&stage.repositories(), None, None);
    let remote = branch(&server.url("r"), "main");
    let seen = stage.export(&remote).await.unwrap();
    assert_eq!(seen.files, 2 * 300 + 14);
    let count = |wanted: &dyn Fn(SkipReason) -> bool| {
        let skipped = seen.skipped.iter();
        skipped.filter(|it| wanted(it.why)).count()
    };
    let counts = [
        count(&|why| why == SkipReason::Link),
        count(&|why| why == SkipReason::Submodule),
        count(&|why| matches!(why, SkipReason::Path(_))),
    ];
    assert_eq!(counts, [3, 1, 4], "{:?}", seen.skipped);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_whose_paths_cannot_be_stored_are_skipped() {
    let stage = Stage::new();
    let repository = Repository::new(&stage.repositories(), "odd");
    let blob = repository.blob(b"x");
    let long = "n".repeat(300);
    let entries: [(&[u8], _); 4] = [
        (b"a\\b", "has a \\"),
        (b"latin\xe9", "is not UTF-8"),
        (b"new\nline", "has a control character"),
        (long.as_bytes(), "is too long"),
    ];
    let mut rows: Vec<(&str, &[u8], &str)> = entries
        .iter()
        .map(|(path, _)| ("100644", *path, blob.as_str()))
        .collect();
    rows.push(("100644", b"zero", &blob));
    rows.sort_by_key(|row| row.1);
    let mut deep = repository.tree(&rows);
    repository.commit("refs/heads/flat", &deep);
    for _ in 0..40 {
        deep = repository.tree(&[("40000", b"d", &deep)]);
    }
    repository.commit("refs/heads/deep", &deep);
    let server = Server::new(&stage.repositories(), None, None);
    let export = async |name| {
        let remote = branch(&server.url("odd"), name);
        stage.export(&remote).await.unwrap()
    };
    let seen = export("flat").await;
    assert_eq!(seen.files, 1);
    let mut skipped: Vec<_> = seen.skipped.iter().map(|it| (&*it.path, it.why)).collect();
    skipped.sort_by_key(|it| it.0);
    assert_eq!(
        skipped,
        entries.map(|(path, reason)| (path, SkipReason::Path(reason)))
    );
    let seen = export("deep").await;
    assert_eq!((seen.files, seen.skipped.len()), (0, 5));
    stage.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l25_links_and_submodules_are_skipped_and_counted() {
    let stage = Stage::new();
    let repository = Repository::new(&stage.repositories(), "r");
    let pwned = stage.repositories().join("pwned");
    let blob = repository.blob(b"x");
    let links =
        [&b"/etc/passwd"[..], b"../../../../../../etc", b"f"].map(|target| repository.blob(target));
    let modules = format!(
        "[submodule \"x\"]\n\tpath = x\n\turl = file:///etc\n[submodule \"y\"]\n\tpath = y\n\turl = ext::sh -c touch% {}\n",
        pwned.display()
    );
    let modules = repository.blob(modules.as_bytes());
    let module = "959ef38fab987a1427123db7b5af595c1771e09d";
    let tree = repository.tree(&[
        ("100644", b".gitmodules", &modules),
        ("120000", b"SKILL.md", &links[0]),
        ("120000", b"dir", &links[1]),
        ("100644", b"f", &blob),
        ("120000", b"g", &links[2]),
        ("160000", b"x", module),
        ("160000", b"y", module),
    ]);
    repository.commit(MAIN, &tree);
    let server = Server::new(&stage.repositories(), None, None);
    let seen = stage
        .export(&branch(&server.url("r"), "main"))
        .await
        .unwrap();
    assert_eq!(seen.files, 2);
    let skipped = |why| {
        let of_kind = seen.skipped.iter().filter(|it| it.why == why);
        of_kind.map(|it| &*it.path).collect::<Vec<_>>()
    };
    let links: [&[u8]; 3] = [b"SKILL.md", b"dir", b"g"];
    assert_eq!(skipped(SkipReason::Link), links);
    assert_eq!(skipped(SkipReason::Submodule), [b"x", b"y"]);
    let mut names: Vec<_> = stage
        .written()
        .iter()
        .map(|path| path.file_name().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, [".gitmodules", "f"]);
    assert!(!pwned.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn l28_addresses_inside_are_not_asked() {
    let stage = Stage::new();
    Repository::new(&stage.repositories(), "r").files(MAIN, &[("a/x", b"1")]);
    let server = Server::new(&stage.repositories(), None, None);
    let port = server.port;
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "0.0.0.0",
        "[::]",
        "2130706433",
        "0177.0.0.1",
        "0x7f000001",
        "127.1",
        "[::ffff:127.0.0.1]",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.0.1",
        "[fe80::1]",
    ] {
        let mut all = vec![
            format!("http://{host}:{port}/r"),
            format!("https://{host}:{port}/r"),
        ];
        if host != "[::ffff:127.0.0.1]" {
            all.push(format!("ssh://git@{host}:{port}/r"));
        }
        for url in all {
            let mut remote = branch(&url, "main");
            remote.allow_private = false;
            let seen = stage.git.resolve(&remote).await;
            assert!(
                matches!(seen, Err(GitError::Internal { .. })),
                "{url}: {seen:?}"
            );
            let seen = stage.export(&remote).await.unwrap_err();
            assert!(matches!(seen, GitError::Internal { .. }), "{url}: {seen:?}");
            assert!(seen.to_string().contains("skills.allow_private_hosts"));
        }
    }
    assert!(server.asked().is_empty());
    stage.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l28_a_redirect_leads_to_no_place_inside_and_takes_no_credentials_along() {
    let stage = Stage::new();
    let commit = Repository::new(&stage.repositories(), "r").files(MAIN, &[("a/x", b"1")]);
    let server = Server::new(&stage.repositories(), None, None);
    let other = Server::new(&stage.repositories(), None, None);
    let remote = with(branch(&server.url("moved"), "main"), "git", "hunter2secret");
    let question = "/info/refs?service=git-upload-pack";

    server.answer(Answer::Redirect(format!("{}{question}", other.url("r"))));
    assert_eq!(stage.git.resolve(&remote).await.unwrap().commit, commit);
    assert_eq!(stage.export(&remote).await.unwrap().commit, commit);
    assert_eq!(stage.read("a/x"), "1");
    assert!(
        server
            .asked()
            .iter()
            .all(|asked| asked.header("authorization") == Some(BASIC))
    );
    assert!(other.asked().len() >= 4);
    assert!(
        other
            .asked()
            .iter()
            .all(|asked| asked.header("authorization").is_none())
    );

    // At the same place they go along.
    let before = server.asked().len();
    server.answer(Answer::Redirect(format!("/r{question}")));
    let seen = stage.export(&remote).await;
    assert!(
        matches!(seen, Err(GitError::Redirect(_))),
        "in a circle: {seen:?}"
    );
    assert_eq!(server.asked().len(), before + 6);
    assert!(
        server
            .asked()
            .iter()
            .all(|asked| asked.header("authorization") == Some(BASIC))
    );

    let before = other.asked().len();
    for (target, kind) in [
        (
            format!("http://169.254.169.254/latest{question}"),
            "Internal",
        ),
        (format!("http://10.0.0.1/r{question}"), "Internal"),
        (format!("http://2852039166/r{question}"), "Internal"),
        (other.url("r"), "Redirect"),
        (
            "file:///etc/info/refs?service=git-upload-pack".to_owned(),
            "Redirect",
        ),
        (
            format!("http://u:p@127.0.0.1:{}/r{question}", other.port),
            "Redirect",
        ),
        ("http://".to_owned(), "Redirect"),
    ] {
        server.answer(Answer::Redirect(target.clone()));
        let seen = stage.export(&remote).await.unwrap_err();
        assert!(format!("{seen:?}").starts_with(kind), "{target}: {seen:?}");
    }
    assert_eq!(other.asked().len(), before);

    // Git itself follows nothing: a server that redirects only its later questions gets nowhere.
    server.answer(Answer::ThenStatus(302));
    let seen = stage.export(&branch(&server.url("r"), "main")).await;
    assert!(seen.is_err(), "{seen:?}");
    stage.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l28_l66_a_server_that_stalls_is_left_and_nothing_stays() {
    let limits = Limits {
        stalled: Duration::from_secs(2),
        ..Limits::default()
    };
    let stage = Stage::with(limits);
    let repository = Repository::new(&stage.repositories(), "r");
    let blob = repository.blob(&random(3_000_000));
    let tree = repository.tree(&[("100644", b"x", &blob)]);
    repository.commit(MAIN, &tree);
    let server = Server::new(&stage.repositories(), None, None);
    server.answer(Answer::StallAfter(500_000));
    let remote = branch(&server.url("r"), "main");
    let began = Instant::now();
    let seen = stage.export(&remote).await.unwrap_err();
    assert!(
        matches!(seen, GitError::Stalled(_) | GitError::Unreachable(_)),
        "{seen:?}"
    );
    assert_eq!(seen.class(), ErrorClass::Transient);
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    stage.assert_nothing_is_left().await;

    // One that goes on for ever, but slowly.
    let stage = Stage::with(Limits {
        whole: Duration::from_secs(2),
        ..limits
    });
    server.answer(Answer::Slow(1000));
    let seen = stage.export(&remote).await.unwrap_err();
    assert!(matches!(seen, GitError::Timeout(_)), "{seen:?}");
    stage.assert_nothing_is_left().await;

    let resolve = Duration::from_millis(1);
    let stage = Stage::with(Limits { resolve, ..limits });
    let seen = stage.git.resolve(&remote).await.unwrap_err();
    assert!(
        matches!(seen, GitError::Timeout(within) if within == resolve),
        "{seen:?}"
    );
    stage.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l66_a_frozen_ssh_server_is_left_and_its_return_is_noticed() {
    let sshd = Sshd::new();
    let stage = Stage::with(Limits {
        stalled: Duration::from_secs(2),
        connect: Duration::from_secs(2),
        ..Limits::default()
    });
    let repository = Repository::new(&stage.repositories(), "r");
    repository.files(MAIN, &[("a/x", b"1")]);
    let remote = with(branch(&sshd.url(&repository.path), "main"), "", &sshd.key);
    kill_process(sshd.pid(), Signal::STOP).unwrap();
    let began = Instant::now();
    let seen = stage.export(&remote).await;
    kill_process(sshd.pid(), Signal::CONT).unwrap();
    let seen = seen.unwrap_err();
    assert_eq!(seen.class(), ErrorClass::Transient, "{seen:?}");
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    stage.assert_nothing_is_left().await;
    stage.export(&remote).await.unwrap();
}

/// Waits until processes of a call are seen that say something about what they fetch.
async fn until_it_runs(stage: &Stage, processes: usize) {
    while stage.processes().len() < processes {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_in_the_middle_nothing_is_left() {
    let stage = Stage::new();
    let repository = Repository::new(&stage.repositories(), "r");
    let blob = repository.blob(&random(3_000_000));
    let tree = repository.tree(&[("100644", b"x", &blob)]);
    repository.commit(MAIN, &tree);
    let server = Server::new(&stage.repositories(), None, None);
    server.answer(Answer::Slow(1000));
    let remote = branch(&server.url("r"), "main");
    for _ in 0..3 {
        tokio::select! {
            seen = stage.export(&remote) => panic!("{seen:?}"),
            // git, git-remote-http and index-pack.
            () = until_it_runs(&stage, 3) => {}
        }
        for _ in 0..100 {
            if stage.processes().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(stage.processes(), Vec::<String>::new());
    }
    // By the next call at the latest.
    server.answer(Answer::Serve);
    stage.export(&remote).await.unwrap();
    stage.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_while_it_writes_nothing_is_left() {
    let stage = Stage::with(Limits {
        entries: 200_000,
        ..Limits::default()
    });
    many(&Repository::new(&stage.repositories(), "r"), MAIN, 50);
    let server = Server::new(&stage.repositories(), None, None);
    let remote = branch(&server.url("r"), "main");
    let into = stage.empty();
    let (begun, mut has_begun) = tokio::sync::watch::channel(false);
    let progress = |progress: Progress| {
        if progress.phase == Phase::Writing {
            begun.send_replace(true);
        }
    };
    tokio::select! {
        seen = stage.git.export(&remote, &into, &progress) => panic!("{seen:?}"),
        seen = has_begun.wait_for(|begun| *begun) => { seen.unwrap(); }
    }
    stage.assert_nothing_is_left().await;
    // The thread that writes has stopped, too.
    let before = stage.written().len();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let after = stage.written().len();
    assert!(after < 50_000 && after - before <= 100, "{before} {after}");
}

/// Whether any process's arguments or environment, or a file of a call, holds one of these.
fn find_secret(stage: &Stage, secrets: &[&str]) -> Vec<String> {
    let mut places: Vec<_> = stage.left();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        places.extend(["cmdline", "environ"].map(|file| process.path().join(file)));
    }
    let holds = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        secrets.iter().any(|secret| text.contains(secret))
    };
    let found = places
        .into_iter()
        .filter(|place| std::fs::read(place).is_ok_and(|bytes| holds(&bytes)));
    found.map(|place| place.display().to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_in_arguments_environment_or_on_disk() {
    let stage = Stage::new();
    let repository = Repository::new(&stage.repositories(), "r");
    let blob = repository.blob(&random(3_000_000));
    let tree = repository.tree(&[("100644", b"x", &blob)]);
    repository.commit(MAIN, &tree);
    let server = Server::new(&stage.repositories(), None, Some(BASIC));
    server.answer(Answer::Slow(20_000));
    let remote = with(branch(&server.url("r"), "main"), "git", "hunter2secret");
    let look = async |secrets: &[&str]| {
        until_it_runs(&stage, 3).await;
        for _ in 0..10 {
            assert_eq!(find_secret(&stage, secrets), Vec::<String>::new());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let secrets = ["hunter2secret", BASIC.trim_start_matches("Basic ")];
    tokio::select! {
        seen = stage.export(&remote) => panic!("{seen:?}"),
        () = look(&secrets) => {}
    }
    // The same with a key.
    let sshd = Sshd::new();
    let remote = with(branch(&sshd.url(&repository.path), "main"), "", &sshd.key);
    let line = sshd.key.lines().nth(2).unwrap().to_owned();
    let whole = async {
        loop {
            assert_eq!(find_secret(&stage, &[&line]), Vec::<String>::new());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        seen = stage.export(&remote) => { seen.unwrap(); }
        () = whole => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l28_nothing_that_is_given_becomes_an_option_or_a_program() {
    let stage = Stage::new();
    let repository = Repository::new(&stage.repositories(), "r");
    repository.files("refs/heads/$(touch${IFS}pwned)", &[("a/x", b"1")]);
    let server = Server::new(&stage.repositories(), None, None);
    let sshd = Sshd::new();
    // What may be an address or a name at all, and looks like something else to a shell.
    let remote = branch(&server.url("r;touch$IFS/pwned"), "main");
    assert!(stage.export(&remote).await.is_err());
    let remote = branch(&server.url("r"), "$(touch${IFS}pwned)");
    stage.export(&remote).await.unwrap();
    for path in [
        "/r;touch${IFS}pwned",
        "/$(touch${IFS}pwned)",
        "/r|touch${IFS}pwned",
    ] {
        let url = format!("ssh://{}@127.0.0.1:{}{path}", sshd.user, sshd.port);
        let seen = stage
            .export(&with(branch(&url, "main"), "", &sshd.key))
            .await;
        assert!(matches!(seen, Err(GitError::NotFound(_))), "{seen:?}");
    }
    for user in ["-oProxyCommand=touch pwned", "$(touch pwned)", "a'b"] {
        let url = format!("ssh://127.0.0.1:{}/r", sshd.port);
        let seen = stage
            .export(&with(branch(&url, "main"), user, &sshd.key))
            .await;
        assert!(matches!(seen, Err(GitError::Credentials(_))), "{seen:?}");
    }
    for place in [
        stage.repositories(),
        stage.scratch(),
        ".".into(),
        "/".into(),
    ] {
        assert!(!place.join("pwned").exists(), "{place:?}");
    }
    if let Some(home) = std::env::home_dir() {
        assert!(!home.join("pwned").exists());
    }
    stage.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_or_old_program_is_named_with_the_command_that_installs_it() {
    let stage = Stage::new();
    let empty = tempfile::tempdir().unwrap();
    let path = empty.path().display().to_string();
    let git = stage.git.clone().found_in(&path);
    let remote = branch("https://git.example/r", "main");
    let seen = git.resolve(&remote).await.unwrap_err();
    assert!(
        seen.to_string().contains("apt-get install -y git"),
        "{seen}"
    );
    assert_eq!(seen.class(), ErrorClass::Terminal);

    let program = empty.path().join("git");
    std::fs::write(&program, "#!/bin/sh\necho git version 2.30.2\n").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let seen = git.resolve(&remote).await.unwrap_err();
    assert!(
        matches!(&seen, GitError::TooOld(version) if version == "2.30.2"),
        "{seen}"
    );

    // Git without SSH.
    let real = std::process::Command::new("sh")
        .args(["-c", "command -v git"])
        .output()
        .unwrap();
    let real = String::from_utf8(real.stdout).unwrap();
    let script = format!("#!/bin/sh\nexec {} \"$@\"\n", real.trim());
    std::fs::write(&program, script).unwrap();
    for tool in ["sh", "env"] {
        std::os::unix::fs::symlink(format!("/bin/{tool}"), empty.path().join(tool)).unwrap();
    }
    let sshd = Sshd::new();
    let repository = Repository::new(&stage.repositories(), "r");
    repository.files(MAIN, &[("a/x", b"1")]);
    let git = stage.git.clone().found_in(&path);
    let remote = with(branch(&sshd.url(&repository.path), "main"), "", &sshd.key);
    let seen = git.resolve(&remote).await.unwrap_err();
    assert!(
        seen.to_string()
            .contains("apt-get install -y openssh-client"),
        "{seen:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn l28_a_call_that_failed_is_in_nobodys_way() {
    let stage = Stage::new();
    let server = Server::new(&stage.repositories(), None, None);
    let remote = branch(&server.url("r"), "main");
    assert!(stage.export(&remote).await.is_err());
    let commit = Repository::new(&stage.repositories(), "r").files(MAIN, &[("a/x", b"1")]);
    // Several at once share nothing.
    let (one, two) = tokio::join!(stage.git.resolve(&remote), stage.export(&remote));
    assert_eq!(
        (one.unwrap().commit, two.unwrap().commit),
        (commit.clone(), commit)
    );
    let whole = timeout(Duration::from_secs(300), stage.assert_nothing_is_left()).await;
    whole.unwrap();
}
