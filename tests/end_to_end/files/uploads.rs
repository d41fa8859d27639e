//! Uploads that are too long, and uploads of clients that go away.

use tokio::io::AsyncWriteExt;

use super::sent::{Announced, MIB, Sent, content};
use super::{Person, Yard};
use crate::support::{Stage, seconds, until};

const LIMIT: usize = 32 * MIB;

#[tokio::test]
async fn l22_the_limit_of_a_file_is_exact_and_what_is_too_long_leaves_nothing() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let before = alice.on_disk();
    for announced in [Announced::Length, Announced::Never] {
        for length in [LIMIT - 1, LIMIT] {
            let (status, body) = Sent::whole(&alice, "file", length, announced).await;
            assert_eq!(status, 200, "{announced:?} {length}: {body}");
            assert_eq!(body["files"][0]["size"], length);
            let stored = std::fs::read(alice.workspace.join("file")).unwrap();
            assert!(stored == content(length), "{announced:?} {length}");
            alice.delete("file").await;
        }
        let (status, body) = Sent::whole(&alice, "file", LIMIT + 1, announced).await;
        too_large(status, &body);
        // It does not wait for the rest.
        let mut sent = Sent::begin(&alice, "file", 3 * LIMIT, announced).await;
        // The parser keeps the last bytes back: they may begin the boundary.
        sent.bytes(LIMIT + MIB).await;
        let (status, body) = sent.answer().await;
        too_large(status, &body);
        yard.holds_nothing().await;
        assert_eq!(alice.on_disk(), before, "{announced:?}");
    }
}

fn too_large(status: u16, body: &serde_json::Value) {
    assert_eq!(
        (status, &body["code"]),
        (413, &"too_large".into()),
        "{body}"
    );
    assert_eq!(body["limit"], LIMIT, "{body}");
}

/// How much of an upload is sent before the client goes away.
#[derive(Debug, Clone, Copy)]
enum Until {
    Head,
    PartHead,
    Half,
    /// Everything but the end of the body.
    End,
}

/// How it goes away.
#[derive(Debug, Clone, Copy)]
enum Going {
    /// As a program that ends.
    Closes,
    /// As a program that is killed while the service sends something.
    Resets,
    /// It still reads.
    SendsNoMore,
}

const LENGTH: usize = 8 * MIB;

async fn begun(person: &Person, until: Until, announced: Announced) -> Sent {
    let name = "broken";
    let length = match until {
        Until::Head => return Sent::head(person, name, LENGTH, announced).await,
        Until::PartHead => 0,
        Until::Half => LENGTH / 2,
        Until::End => LENGTH,
    };
    let mut sent = Sent::begin(person, name, LENGTH, announced).await;
    sent.bytes(length).await;
    sent
}

#[tokio::test]
async fn an_upload_whose_client_goes_away_leaves_nothing_on_the_disk_and_nothing_open() {
    let stage = Stage::new();
    let yard = Yard::open(&stage).await;
    let alice = yard.person("alice").await;
    let (status, body) = Sent::whole(&alice, "kept", MIB, Announced::Length).await;
    assert_eq!(status, 200, "{body}");
    let before = alice.on_disk();
    for announced in [Announced::Length, Announced::Never] {
        for part in [Until::Head, Until::PartHead, Until::Half, Until::End] {
            for going in [Going::Closes, Going::Resets, Going::SendsNoMore] {
                let mut sent = begun(&alice, part, announced).await;
                match going {
                    Going::Closes => drop(sent),
                    Going::Resets => {
                        sent.stream.set_zero_linger().unwrap();
                        drop(sent);
                    }
                    Going::SendsNoMore => {
                        sent.stream.shutdown().await.unwrap();
                        let (status, body) = sent.answer().await;
                        let code = (status, &body["code"]);
                        let what = format!("{announced:?} {part:?}: {body}");
                        assert_eq!(code, (400, &"invalid_body".into()), "{what}");
                    }
                }
                assert_eq!(alice.names().await, ["kept".to_owned()].into());
            }
        }
    }
    yard.holds_nothing().await;
    assert_eq!(alice.on_disk(), before);
    let (status, body) = Sent::whole(&alice, "next", MIB, Announced::Never).await;
    assert_eq!(status, 200, "{body}");
    alice.delete("next").await;
    assert_eq!(alice.on_disk(), before);

    // Nor does it when the service is killed meanwhile.
    let mut under_way = Vec::new();
    for _ in 0..4 {
        under_way.push(begun(&alice, Until::Half, Announced::Length).await);
    }
    until("all of them are open", seconds(20), async || {
        let handles = yard.service.handles().into_iter();
        let files = handles.filter(|it| it.ends_with(" (deleted)")).count();
        (files, yard.service.connections()) == (under_way.len(), under_way.len())
    })
    .await;
    yard.service.kill9().await;
    assert_eq!(alice.on_disk(), before);
}
