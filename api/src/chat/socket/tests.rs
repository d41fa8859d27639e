use std::sync::Arc;

use schema::home::Homes;
use schema::home::conversations::{ConversationId, Meta};
use schema::ids::{Timestamp, Uid};
use serde_json::Value;
use tokio::io::{DuplexStream, duplex};

use super::*;
use crate::auth::{self, Account};
use crate::chat::pico::AgentFrame;
use crate::chat::talk::Now;
use crate::limits::CHAT_KEPT;
use crate::testing::{World, world};

/// A conversation of alice.
struct Scene {
    world: World,
    account: Account,
    id: ConversationId,
}

impl Scene {
    async fn new() -> Self {
        let world = world().await;
        world
            .settings
            .send_modify(|settings| Arc::make_mut(settings).chat_enabled = true);
        let account = Account {
            uid: Uid::random(),
            name: "alice".parse().unwrap(),
            role: auth::Role::User,
        };
        let homes = Homes::open(world.data_dir(), "test").unwrap();
        homes.ensure(&account.name, &account.uid, None).unwrap();
        let workspace = homes.workspace(&account.name, &account.uid).unwrap();
        let id = ConversationId::new();
        let meta = Meta {
            title: String::new(),
            created_at: Timestamp::from_secs(0),
            last_used_at: Timestamp::from_secs(0),
        };
        workspace.unwrap().create_conversation(&id, &meta).unwrap();
        Self { world, account, id }
    }

    async fn open(&self) -> Opened {
        let deps = &self.world.deps;
        let opening = deps.chats.open(deps, &self.account, self.id.clone());
        opening.await.unwrap()
    }
}

/// Gives a conversation a message of the agent with so many characters.
fn grow(opened: &Arc<super::super::room::Room>, length: usize) {
    let text = "x".repeat(length);
    let frame =
        format!(r#"{{"type":"message.create","payload":{{"message_id":"m","content":"{text}"}}}}"#);
    let now = Now {
        instant: Instant::now(),
        wall: Timestamp::from_secs(0),
    };
    opened.change(|talk| talk.take_frame(AgentFrame::from_json(&frame), now));
}

type Client = WebSocketStream<DuplexStream>;

/// Connects a page that takes a KiB at a time; returns the work of the service, too.
async fn connect(opened: Opened) -> (Client, impl Future<Output = ()>) {
    let (ours, theirs) = duplex(1024);
    let client = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
    let dead = std::future::pending();
    (
        client,
        serve(ours, opened, None, dead, CancellationToken::new()),
    )
}

async fn next_frame(client: &mut Client) -> Value {
    loop {
        match client.next().await.unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn page_that_is_slower_than_an_answer_is_still_heard() {
    let scene = Scene::new().await;
    let opened = scene.open().await;
    let room = Arc::clone(&opened.room);
    let (mut client, served) = connect(opened).await;
    let answer = async {
        for length in 1.. {
            grow(&room, length);
            tokio::task::yield_now().await;
        }
    };
    let page = async {
        client
            .send(Message::text(r#"{"type":"ping"}"#))
            .await
            .unwrap();
        for _ in 0..200 {
            if next_frame(&mut client).await["type"] == "pong" {
                return true;
            }
        }
        false
    };
    let heard = tokio::select! {
        heard = page => heard,
        () = answer => false,
        () = served => false,
    };
    assert!(heard);
}

#[tokio::test]
async fn long_frame_comes_in_fragments_when_there_is_memory_for_it() {
    let scene = Scene::new().await;
    let opened = scene.open().await;
    let room = Arc::clone(&opened.room);
    grow(&room, 300_000);
    let kept = &scene.world.deps.chats.kept;
    let mut others = kept.share(&scene.account.uid);
    let left = CHAT_KEPT.each() - (CHAT_KEPT.all() - kept.left_kib() * 1024);
    others.cover(left).unwrap();
    tokio::time::pause();
    let (mut client, served) = connect(opened).await;
    let page = async {
        loop {
            let frame = next_frame(&mut client).await;
            match frame["type"].as_str().unwrap() {
                "entry" => panic!("there was no memory"),
                "end" => break assert_eq!(frame["code"], "busy"),
                _ => {}
            }
        }
    };
    let ((), ()) = tokio::join!(page, async {
        tokio::time::timeout(Duration::from_secs(60), served)
            .await
            .unwrap()
    });
    drop(others);
    let (mut client, served) = connect(scene.open().await).await;
    let page = async {
        loop {
            let frame = next_frame(&mut client).await;
            if frame["type"] == "entry" {
                break frame["entry"]["text"].as_str().unwrap().len();
            }
        }
    };
    let length = tokio::select! {
        length = page => length,
        () = served => 0,
    };
    assert_eq!(length, 300_000);
}

#[tokio::test]
async fn short_conversation_opens_when_others_have_taken_all_memory() {
    let scene = Scene::new().await;
    let kept = &scene.world.deps.chats.kept;
    let mut shares = Vec::new();
    for _ in 0..CHAT_KEPT.all() / CHAT_KEPT.each() {
        let mut share = kept.share(&Uid::random());
        share.cover(CHAT_KEPT.each()).unwrap();
        shares.push(share);
    }
    assert_eq!(kept.left_kib(), 0);
    let opened = scene.open().await;
    grow(&opened.room, 10_000);
    assert!(!opened.room.is_starved());
    grow(&opened.room, 500_000);
    assert!(opened.room.is_starved());
}
