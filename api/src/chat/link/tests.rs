use serde_json::json;
use tokio::net::TcpListener;
use tokio_tungstenite::accept_async;

use super::*;
use crate::auth::Role;
use crate::testing::world;

/// A message of the agent whose text has so many characters.
fn message(id: &str, length: usize) -> Message {
    let payload = json!({"message_id": id, "content": "x".repeat(length)});
    Message::text(json!({"type": "message.create", "payload": payload}).to_string())
}

fn account() -> Account {
    Account {
        uid: Uid::from("a".repeat(32)),
        name: "alice".parse().unwrap(),
        role: Role::User,
    }
}

#[tokio::test]
async fn long_frames_keep_their_order() {
    let world = world().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = ChatPlace {
        address: listener.local_addr().unwrap(),
        path: "/pico/ws".to_owned(),
        features: BTreeSet::new(),
        token: "token".into(),
        started: None,
    };
    let sent = [
        ("a", 10),
        ("b", 500_000),
        ("c", 10),
        ("d", 70_000),
        ("e", 10),
    ];
    let agent = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = accept_async(stream).await.unwrap();
        for (id, length) in sent {
            let message = message(id, length);
            // Long frames arrive in both kinds.
            let message = match id {
                "d" => Message::Binary(message.into_data()),
                _ => message,
            };
            socket.send(message).await.unwrap();
        }
        socket.close(None).await.unwrap();
        // A socket with unread bytes would be reset.
        while let Some(Ok(_)) = socket.next().await {}
    };
    #[expect(clippy::disallowed_methods, reason = "in a test")]
    let (news, mut heard) = mpsc::channel(16);
    #[expect(clippy::disallowed_methods, reason = "in a test")]
    let (_outgoing, mut receiver) = mpsc::channel(1);
    let (account, id) = (account(), ConversationId::new());
    let link = Link {
        deps: &world.deps,
        account: &account,
        id: &id,
        room: &Weak::new(),
        news: &news,
    };
    let relay = async {
        let connected = connect_agent(&world.deps, &account.uid, &place, &id).await;
        link.run(connected.unwrap(), place.clone(), &mut receiver)
            .await
    };
    let ((), ended) = tokio::join!(agent, relay);
    assert!(matches!(ended, Some(None)), "{ended:?}");
    let mut frames = Vec::new();
    heard.close();
    while let Some((_, news)) = heard.recv().await {
        if let LinkNews::Frame(AgentFrame::Create(message), _) = news {
            frames.push((message.id.unwrap_or_default(), message.text.len()));
        }
    }
    assert_eq!(frames, sent.map(|(id, length)| (id.to_owned(), length)));
}

#[tokio::test(start_paused = true)]
async fn ready_agent_without_a_connection_is_unreachable() {
    let mut silence = Silence::default();
    let mut judge = |ready| silence.judge(AgentState::Connecting, ready);
    assert_eq!(judge(true), AgentState::Connecting);
    tokio::time::advance(Duration::from_secs(29)).await;
    assert_eq!(judge(true), AgentState::Connecting);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(judge(true), AgentState::Unreachable);
    assert_eq!(judge(false), AgentState::Connecting);
    assert_eq!(judge(true), AgentState::Connecting, "it is ready again");
}
