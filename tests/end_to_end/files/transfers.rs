//! Many transfers at once, and clients that do not read.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

use futures::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::sent::{Announced, MIB, Sent, content};
use super::{Person, Yard, download_path};
use crate::support::{PATIENCE, Stage};

/// Transfers in each direction.
const TRANSFERS: usize = 20;
/// A file that nobody fetches to its end.
const LARGE: u64 = 8 << 30;
/// What is read of it.
const BEGIN: usize = MIB;

/// A download of which nothing has been read but the head of the answer.
async fn begun(person: &Person, name: &str) -> TcpStream {
    let mut stream = TcpStream::connect(person.address).await.unwrap();
    let mut head = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n",
        download_path(name),
        person.address
    );
    for (name, value) in person.browser.credentials() {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    stream
}

/// What people do meanwhile; each of it within a few seconds.
async fn works(person: &Person, name: &str) {
    let all = async {
        let text = [("path", name), ("content", name)];
        let saved = person.browser.post("/api/files/edit", &text).await;
        saved.expect(200);
        assert_eq!(person.download(name).await.text(), name);
        let up = format!("{name}.up");
        let (status, body) = Sent::whole(person, &up, MIB, Announced::Length).await;
        assert_eq!(status, 200, "{body}");
        assert!(person.names().await.contains(&up));
        person.delete(&up).await;
    };
    timeout(PATIENCE, all).await.expect(name);
}

#[tokio::test]
async fn transfers_that_stand_still_hold_nobody_up_and_little_memory() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let (alice, bob) = (yard.person("alice").await, yard.person("bob").await);
    let file = File::create(alice.workspace.join("large")).unwrap();
    (&file).write_all(&content(2 * BEGIN)).unwrap();
    file.set_len(LARGE).unwrap();
    file.write_all_at(b"end", LARGE - 3).unwrap();
    drop(file);
    // What the first of each costs once.
    for person in [&alice, &bob] {
        works(person, "warm").await;
    }
    drop(begun(&alice, "large").await);
    yard.holds_nothing().await;

    yard.service.forget_peak();
    let before = yard.service.memory();
    let mut downloads = join_all((0..TRANSFERS).map(|_| begun(&alice, "large"))).await;
    let uploads = join_all((0..TRANSFERS).map(async |number| {
        let name = format!("slow{number}");
        let mut sent = Sent::begin(&alice, &name, 8 * MIB, Announced::Length).await;
        sent.bytes(4 * MIB).await;
        sent
    }));
    let mut uploads = uploads.await;
    for person in [&alice, &bob] {
        works(person, "meanwhile").await;
    }
    let still = yard.service.memory().saturating_sub(before);
    // They go on where they stood.
    for stream in &mut downloads {
        let mut begin = vec![0; BEGIN];
        stream.read_exact(&mut begin).await.unwrap();
        assert!(begin == content(BEGIN));
    }
    for sent in &mut uploads {
        sent.bytes(4 * MIB).await;
    }
    for sent in uploads {
        let (status, body) = sent.end().await;
        assert_eq!(status, 200, "{body}");
    }
    for number in 0..TRANSFERS {
        let stored = std::fs::read(alice.workspace.join(format!("slow{number}")));
        assert!(stored.unwrap() == content(8 * MIB), "{number}");
    }
    let peak = yard.service.peak_memory().saturating_sub(before);
    let most = (2 * TRANSFERS * MIB) as u64;
    assert!(
        peak <= most,
        "{} KiB more for {} transfers, {} KiB while they stood still",
        peak / 1024,
        2 * TRANSFERS,
        still / 1024
    );
    drop(downloads);
    yard.holds_nothing().await;
}

/// As many as a browser has connections to one server.
const AT_ONCE: usize = 6;

#[tokio::test]
async fn a_browser_sends_and_fetches_several_files_at_once() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    for round in 0..10 {
        let names: Vec<_> = (0..AT_ONCE).map(|n| format!("{round}-{n}")).collect();
        let sent = join_all(names.iter().map(async |name| {
            let mut sent = Sent::begin(&alice, name, MIB, Announced::Length).await;
            sent.bytes(MIB).await;
            sent
        }));
        // The last bytes of all of them arrive at once.
        let answers = join_all(sent.await.into_iter().map(Sent::end)).await;
        assert!(
            answers.iter().all(|(status, _)| *status == 200),
            "{answers:?}"
        );
        let fetched = join_all(names.iter().map(|name| alice.download(name))).await;
        for answer in fetched {
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert!(answer.body == content(MIB));
        }
    }
}
