use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use schema::home::Homes;
use schema::home::conversations::Meta;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_tungstenite::accept_async_with_config;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::*;
use crate::auth::Role;
use crate::chat::protocol::{Attachment, Conversation};
use crate::chat::talk::{Effect, Now, Talk};
use crate::limits::{CHAT_FRAMES, CHAT_LINK_EVENTS};
use crate::testing::{World, world};

/// A message of the agent whose text has so many characters.
fn message(id: &str, length: usize) -> Message {
    let payload = json!({"message_id": id, "content": "x".repeat(length)});
    Message::text(json!({"type": "message.create", "payload": payload}).to_string())
}

/// The link of a conversation of alice, whose agent the test plays.
struct Scene {
    world: World,
    account: Account,
    room: Arc<Room>,
    link: Link,
    events: mpsc::Receiver<LinkEvent>,
    listener: TcpListener,
}

impl Scene {
    async fn new() -> Self {
        let world = world().await;
        let account = Account {
            uid: Uid::random(),
            name: "alice".parse().unwrap(),
            role: Role::User,
        };
        let homes = Homes::open(world.data_dir(), "test").unwrap();
        homes.ensure(&account.name, &account.uid, None).unwrap();
        let id = ConversationId::new();
        let meta = Meta {
            title: String::new(),
            created_at: Timestamp::from_secs(0),
            last_used_at: Timestamp::from_secs(0),
        };
        let conversation = Conversation::new(id.clone(), meta);
        let mut talk = Talk::load("epoch".to_owned(), conversation, Vec::new(), false, now());
        talk.set_features([ChatFeature::Pictures, ChatFeature::Stop].into());
        talk.set_agent(AgentState::Connected, None, false);
        let memory = world.deps.chats.kept.share(&account.uid);
        let room = Room::new(talk, memory);
        let (sender, events) = CHAT_LINK_EVENTS.queue();
        let link = Link {
            all: Links::new(&world.deps, &account, sender),
            id,
            number: 0,
            room: Arc::downgrade(&room),
            ended: CancellationToken::new(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self {
            world,
            account,
            room,
            link,
            events,
            listener,
        }
    }

    fn place(&self) -> ChatPlace {
        ChatPlace {
            address: self.listener.local_addr().unwrap(),
            path: "/pico/ws".to_owned(),
            features: BTreeSet::new(),
            token: "token".into(),
            started: None,
        }
    }

    /// Makes a picture of so many bytes; returns its content.
    fn make_picture(&self, name: &str, length: usize) -> Vec<u8> {
        let content = [b"\x89PNG\r\n\x1a\n".to_vec(), vec![b'x'; length - 8]].concat();
        let workspace = self.world.data_dir().join("users/alice/.agent/workspace");
        std::fs::write(workspace.join(name), &content).unwrap();
        content
    }

    /// Sends a message of the user with these pictures; returns its entry, which is on its way to the agent.
    fn say(&self, text: &str, pictures: &[&str]) -> u64 {
        let attachments = pictures.iter().map(|path| Attachment {
            name: (*path).to_owned(),
            path: (*path).to_owned(),
            size: None,
            picture: true,
        });
        let attachments = attachments.collect();
        self.room.change(|talk| {
            let client_id = uuid::Uuid::new_v4().to_string();
            talk.accept_message(client_id, text.to_owned(), attachments, now())
                .unwrap();
            talk.dispatch_messages(now());
            let mut effects = talk.take_effects().into_iter();
            let entry = effects.find_map(|effect| match effect {
                Effect::Deliver { entry } => Some(entry),
                _ => None,
            });
            entry.unwrap()
        })
    }

    async fn accept(&self) -> WebSocketStream<TcpStream> {
        let (stream, _) = self.listener.accept().await.unwrap();
        // A longer frame of the service is an error.
        let config = WebSocketConfig::default().max_frame_size(Some(64 * 1024));
        accept_async_with_config(stream, Some(config))
            .await
            .unwrap()
    }

    async fn connect(&self) -> (Socket, Incoming) {
        let place = self.place();
        let deps = &self.world.deps;
        let connecting = connect_agent(deps, &self.account.uid, &place, &self.link.id);
        connecting.await.unwrap()
    }

    async fn run(&self, outgoing: &mut mpsc::Receiver<Outgoing>) -> Option<Option<LinkNews>> {
        let connected = self.connect().await;
        self.link.run(connected, self.place(), outgoing).await
    }

    fn memory_on_the_way(&self) -> usize {
        CHAT_FRAMES.all() / 1024 - self.world.deps.chats.frames.left_kib()
    }

    fn news(&mut self) -> Vec<LinkNews> {
        let events = std::iter::from_fn(|| self.events.try_recv().ok());
        events.map(|event| event.news).collect()
    }
}

fn now() -> Now {
    Now {
        instant: Instant::now(),
        wall: Timestamp::from_secs(0),
    }
}

/// Returns the next text that the agent gets.
async fn next_text(agent: &mut WebSocketStream<TcpStream>) -> Value {
    loop {
        match agent.next().await.unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn long_frames_keep_their_order() {
    let mut scene = Scene::new().await;
    let sent = [
        ("a", 10),
        ("b", 500_000),
        ("c", 10),
        ("d", 70_000),
        ("e", 10),
    ];
    let agent = async {
        let mut socket = scene.accept().await;
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
    let (_outgoing, mut receiver) = CHAT_OUTGOING.queue();
    let ((), ended) = tokio::join!(agent, scene.run(&mut receiver));
    assert!(matches!(ended, Some(None)), "{ended:?}");
    let mut frames = Vec::new();
    for news in scene.news() {
        if let LinkNews::Frame(AgentFrame::Create(message), _) = news {
            frames.push((message.id.unwrap_or_default(), message.text.len()));
        }
    }
    assert_eq!(frames, sent.map(|(id, length)| (id.to_owned(), length)));
}

#[tokio::test]
async fn pictures_arrive_whole_in_short_fragments() {
    let mut scene = Scene::new().await;
    let pictures = [("a.png", 2_000_000), ("b.png", 10)];
    let contents = pictures.map(|(name, length)| scene.make_picture(name, length));
    let text = "\"look\"".repeat(15_000);
    let entry = scene.say(&text, &["a.png", "b.png"]);
    let (outgoing, mut receiver) = CHAT_OUTGOING.queue();
    outgoing.try_send(Outgoing::Message(entry)).unwrap();
    let agent = async {
        let mut agent = scene.accept().await;
        let message = next_text(&mut agent).await;
        assert!(scene.memory_on_the_way() <= 3 * 1024, "a part of a picture");
        drop(outgoing);
        while let Some(Ok(_)) = agent.next().await {}
        message
    };
    let (message, ended) = tokio::join!(agent, scene.run(&mut receiver));
    assert!(ended.is_none());
    let payload = &message["payload"];
    assert_eq!(payload["content"], text);
    let media =
        contents.map(|content| format!("data:image/png;base64,{}", STANDARD.encode(content)));
    assert!(payload["media"] == json!(media));
    let news = scene.news();
    assert!(
        matches!(news.last(), Some(LinkNews::Left(left)) if *left == entry),
        "{news:?}"
    );
    assert_eq!(scene.memory_on_the_way(), 0);
}

#[tokio::test]
async fn agent_that_takes_nothing_is_disconnected_and_holds_no_memory() {
    let scene = Scene::new().await;
    scene.make_picture("a.png", 20_000_000);
    let entry = scene.say("look", &["a.png"]);
    let (outgoing, mut receiver) = CHAT_OUTGOING.queue();
    outgoing.try_send(Outgoing::Message(entry)).unwrap();
    let (_agent, connected) = tokio::join!(scene.accept(), scene.connect());
    tokio::time::pause();
    let begun = Instant::now();
    let ended = scene
        .link
        .run(connected, scene.place(), &mut receiver)
        .await;
    let Some(Some(LinkNews::Unsent(unsent))) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(unsent, Some(entry));
    assert!(begun.elapsed() < 2 * SEND, "{:?}", begun.elapsed());
    assert_eq!(scene.memory_on_the_way(), 0);
}

#[tokio::test]
async fn message_waits_for_memory_without_an_end_and_not_after_a_stop() {
    let mut scene = Scene::new().await;
    scene.make_picture("a.png", 100);
    let (uid, chats) = (&scene.account.uid, &scene.world.deps.chats);
    let turn = chats.sending.part_of(uid).acquire_owned().await.unwrap();
    let mut memory = chats.frames.share(uid);
    memory.cover(CHAT_FRAMES.each()).unwrap();
    let (outgoing, mut receiver) = CHAT_OUTGOING.queue();
    let entry = scene.say("look", &["a.png"]);
    outgoing.try_send(Outgoing::Message(entry)).unwrap();
    let (mut agent, connected) = tokio::join!(scene.accept(), scene.connect());
    tokio::time::pause();
    let script = async {
        // The connection stands as long as the agent answers pings.
        let mut pings = 0;
        while pings < 10 {
            pings += usize::from(agent.next().await.unwrap().unwrap().is_ping());
        }
        scene.room.change(|talk| talk.stop_turn(now()).unwrap());
        drop((turn, memory));
        outgoing.send(Outgoing::Stop).await.unwrap();
        let stop = next_text(&mut agent).await;
        assert_eq!(stop["payload"]["content"], "/stop");
        scene.room.change(|talk| {
            let later = Now {
                instant: Instant::now() + Duration::from_secs(60),
                ..now()
            };
            talk.tick(later);
        });
        // A short text takes no memory.
        let mut memory = chats.frames.share(uid);
        memory.cover(CHAT_FRAMES.each()).unwrap();
        let entry = scene.say("short", &[]);
        outgoing.send(Outgoing::Message(entry)).await.unwrap();
        assert_eq!(next_text(&mut agent).await["payload"]["content"], "short");
        drop((outgoing, agent));
    };
    let place = scene.place();
    let running = scene.link.run(connected, place, &mut receiver);
    let ((), _) = tokio::join!(script, running);
    let news = scene.news();
    assert!(
        news.iter()
            .any(|news| matches!(news, LinkNews::Left(left) if *left == entry)),
        "{news:?}"
    );
}

#[tokio::test]
async fn frame_that_does_not_come_whole_ends_its_connection() {
    let scene = Scene::new().await;
    let (_outgoing, mut receiver) = CHAT_OUTGOING.queue();
    let (mut agent, connected) = tokio::join!(scene.accept(), scene.connect());
    tokio::time::pause();
    let begun = Instant::now();
    let script = async {
        let part = Frame::message("x".repeat(1000), OpCode::Data(Data::Text), false);
        agent.send(Message::Frame(part)).await.unwrap();
        // Pings show that the agent lives.
        while agent.send(Message::Ping(Bytes::new())).await.is_ok() {
            sleep(Duration::from_secs(20)).await;
        }
    };
    let place = scene.place();
    let ended = tokio::select! {
        ended = scene.link.run(connected, place, &mut receiver) => ended,
        () = script => panic!("the connection broke by itself"),
    };
    assert!(matches!(ended, Some(None)), "{ended:?}");
    let lasted = begun.elapsed().as_secs();
    assert!((120..180).contains(&lasted), "{lasted} s");
}

#[tokio::test]
async fn conversations_of_a_user_share_the_rate_of_frames() {
    let scene = Scene::new().await;
    tokio::time::pause();
    let links = [scene.link.all.clone(), scene.link.all.clone()];
    let count = |number: usize| links[number % 2].rates.lock().unwrap().count_frame(10);
    let waits: Vec<Duration> = (0..1001).map(count).collect();
    assert!(waits[..1000].iter().all(Duration::is_zero));
    assert_eq!(waits[1000].as_millis(), 10);
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
