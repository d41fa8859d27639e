//! Programs of a client, with an engine that plays them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use schema::ids::Uid;
use schema::{audit, user};
use tokio::io::{DuplexStream, duplex};
use tokio_util::io::ReaderStream;

use super::*;
use crate::ports::{ContainerExec, ExecControl, ExecOutput, Execution};
use crate::server::RequestContext;
use crate::testing::world;

/// A program that says what it reads, and ends with code 7 at the end of its input.
#[derive(Default)]
struct Echo {
    asked: Mutex<Vec<ExecSettings>>,
    ended: AtomicBool,
    sizes: Mutex<Vec<(u16, u16)>>,
}

#[async_trait]
impl ContainerExec for Arc<Echo> {
    async fn is_running(&self, _: &Uid) -> Result<bool, PortError> {
        Ok(true)
    }

    async fn start(&self, _: &Uid, of: &ExecSettings) -> Result<Option<Execution>, PortError> {
        self.asked.lock().unwrap().push(of.clone());
        if of.program[0] == "none" {
            return Ok(None);
        }
        let (ours, theirs) = duplex(1024);
        let (read, _) = tokio::io::split(ours);
        let output: ExecOutput = match of.program[0].as_str() {
            "flood" => {
                futures::stream::repeat_with(|| Ok((false, Bytes::from(vec![b'x'; 65536])))).boxed()
            }
            _ => ReaderStream::new(read)
                .map(|piece| Ok((false, piece.unwrap())))
                .boxed(),
        };
        Ok(Some(Execution {
            input: Box::pin(theirs),
            output,
            control: Arc::new(Arc::clone(self)),
        }))
    }
}

#[async_trait]
impl ExecControl for Arc<Echo> {
    async fn resize(&self, columns: u16, rows: u16) {
        self.sizes.lock().unwrap().push((columns, rows));
    }

    async fn exit_code(&self) -> Result<i64, PortError> {
        Ok(7)
    }

    async fn end(&self) -> bool {
        self.ended.store(true, Ordering::Relaxed);
        true
    }
}

type Client = WebSocketStream<DuplexStream>;

/// Serves what `client` does on its connection; returns what the audit trail tells.
async fn serve_client(echo: &Arc<Echo>, client: impl AsyncFnOnce(Client)) -> Vec<String> {
    let mut world = world().await;
    Arc::get_mut(&mut world.deps).unwrap().exec = Arc::new(Arc::clone(echo));
    let meta = Meta {
        action: "exec",
        actor: Some("socket:0".to_owned()),
        request_id: RequestContext::default().id,
        client: None,
        host: None,
        behind_unknown_proxy: false,
        secure: false,
        prefix: String::new(),
        headers: Arc::default(),
    };
    let caller = Caller {
        deps: world.deps.clone(),
        meta,
        account: Account {
            uid: Uid::from("alice".to_owned()),
            name: "alice".parse().unwrap(),
            role: user::Role::User,
        },
    };
    let (ours, theirs) = duplex(64 * 1024);
    let acting = async {
        client(WebSocketStream::from_raw_socket(ours, Role::Client, None).await).await;
    };
    tokio::join!(serve(theirs, caller), acting);
    let mut connection = world.db.read().await.unwrap();
    let trail = audit::following(&mut connection, 0, 100).await.unwrap();
    let trail = trail.iter().map(|record| &record.entry);
    let told = trail.map(|entry| {
        let outcome = &entry.outcome;
        format!(
            "{} {} {} {} {outcome}",
            entry.actor, entry.action, entry.object, entry.detail
        )
    });
    told.collect()
}

async fn ask(client: &mut Client, program: &[&str]) {
    let request = Request {
        program: program.iter().map(|word| (*word).to_owned()).collect(),
        stdin: true,
        terminal: Some("xterm; rm -rf /".to_owned()),
        size: Some((80, 24)),
    };
    let text = serde_json::to_string(&request).unwrap();
    client.send(Message::text(text)).await.unwrap();
}

/// Reads to the end; returns the output and the last text frame.
async fn end(client: &mut Client) -> (Vec<u8>, Option<ServerFrame>) {
    let (mut output, mut last) = (Vec::new(), None);
    while let Some(Ok(message)) = client.next().await {
        match message {
            Message::Binary(bytes) => {
                assert_eq!(bytes[0], STDOUT);
                output.extend_from_slice(&bytes[1..]);
            }
            Message::Text(text) => last = Some(serde_json::from_str(&text).unwrap()),
            _ => {}
        }
    }
    (output, last)
}

#[tokio::test]
async fn program_is_recorded_without_its_arguments() {
    let echo = Arc::new(Echo::default());
    let trail = serve_client(&echo, async |mut client| {
        ask(&mut client, &["/bin/echo", "--password", "hunter2"]).await;
        client.send(Message::binary(&b"hello"[..])).await.unwrap();
        for frame in [ClientFrame::Resize(100, 30), ClientFrame::EndOfInput] {
            let text = serde_json::to_string(&frame).unwrap();
            client.send(Message::text(text)).await.unwrap();
        }
        let (output, last) = end(&mut client).await;
        assert_eq!(output, b"hello");
        assert_eq!(last, Some(ServerFrame::Exit(7)));
    })
    .await;
    assert_eq!(
        trail,
        ["socket:0 exec container/alice program: /bin/echo ok"]
    );
    assert_eq!(*echo.sizes.lock().unwrap(), [(80, 24), (100, 30)]);
    // A kind of terminal that is no word is not passed on.
    let asked = echo.asked.lock().unwrap();
    assert!(asked[0].tty && asked[0].environment.is_empty());
    assert!(!echo.ended.load(Ordering::Relaxed));
}

#[tokio::test]
async fn program_ends_when_its_client_goes() {
    for program in ["cat", "flood"] {
        let echo = Arc::new(Echo::default());
        serve_client(&echo, async |mut client| {
            ask(&mut client, &[program]).await;
            client.send(Message::binary(&b"x"[..])).await.unwrap();
            assert!(client.next().await.is_some(), "{program}");
        })
        .await;
        assert!(echo.ended.load(Ordering::Relaxed), "{program}");
    }
}

#[tokio::test]
async fn request_without_a_program_or_container_is_refused() {
    for (text, part) in [
        (r#"{"program": []}"#, "names no program"),
        (r#"{"program": "ls"}"#, "the request"),
        (r#"{"program": ["none"]}"#, "not running"),
    ] {
        let echo = Arc::new(Echo::default());
        serve_client(&echo, async |mut client| {
            client.send(Message::text(text)).await.unwrap();
            let Some(ServerFrame::Failed(why)) = end(&mut client).await.1 else {
                panic!("{text}");
            };
            assert!(why.contains(part), "{text}: {why}");
        })
        .await;
    }
}
