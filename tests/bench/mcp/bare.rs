//! The least that a relay does, in a process of its own.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async};

/// The word with which this program is the relay.
pub const WORD: &str = "mcp_bare";

/// The process.
pub struct Bare {
    pub address: SocketAddr,
    _process: Child,
}

impl Bare {
    pub async fn start() -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg(WORD)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = lines.next_line().await.unwrap().unwrap();
        Self {
            address: address.parse().unwrap(),
            _process: process,
        }
    }

    /// Connects what answers at a path.
    pub async fn executor(&self, path: usize) -> WebSocketStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let url = format!("ws://{}/{path}", self.address);
        let request = url.into_client_request().unwrap();
        client_async(request, stream).await.unwrap().0
    }
}

/// Who answers at a path.
#[derive(Clone)]
struct Link {
    frames: mpsc::Sender<Message>,
    waiting: Arc<Mutex<HashMap<u64, oneshot::Sender<Utf8Bytes>>>>,
    last_id: Arc<AtomicU64>,
}

type Links = Arc<Mutex<HashMap<String, Link>>>;

/// Serves until the process ends.
pub async fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    let links = Links::default();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let links = Arc::clone(&links);
        tokio::spawn(async move {
            let handler = service_fn(|request| answer(Arc::clone(&links), request));
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), handler)
                .with_upgrades();
            let _ = connection.await;
        });
    }
}

async fn answer(
    links: Links,
    mut request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let path = request.uri().path().to_owned();
    if request.method() == Method::GET {
        let key = request.headers()["sec-websocket-key"].as_bytes();
        let accept = derive_accept_key(key);
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(link(links, path, upgrade));
        let response = Response::builder()
            .status(StatusCode::SWITCHING_PROTOCOLS)
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-accept", accept);
        return Ok(response.body(Full::default()).unwrap());
    }
    let body = request.into_body().collect().await?.to_bytes();
    let link = links.lock().unwrap()[&path].clone();
    let id = link.last_id.fetch_add(1, Ordering::Relaxed) + 1;
    let (sender, answered) = oneshot::channel();
    link.waiting.lock().unwrap().insert(id, sender);
    let params = std::str::from_utf8(&body).unwrap();
    let frame = format!("{{\"id\":{id},\"params\":{params}}}");
    link.frames.send(Message::Text(frame.into())).await.unwrap();
    let answer = Bytes::from(answered.await.unwrap());
    let response = Response::builder().header("content-type", "application/json");
    Ok(response.body(Full::new(answer)).unwrap())
}

async fn link(links: Links, path: String, upgrade: OnUpgrade) {
    let io = TokioIo::new(upgrade.await.unwrap());
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
    let (mut writer, mut reader) = socket.split();
    #[expect(clippy::disallowed_methods, reason = "in a benchmark")]
    let (frames, mut waiting) = mpsc::channel(64);
    let link = Link {
        frames,
        waiting: Arc::default(),
        last_id: Arc::default(),
    };
    links.lock().unwrap().insert(path, link.clone());
    tokio::spawn(async move {
        while let Some(frame) = waiting.recv().await {
            writer.send(frame).await.unwrap();
        }
    });
    while let Some(Ok(message)) = reader.next().await {
        let Message::Text(text) = message else {
            continue;
        };
        let id = text.strip_prefix("{\"id\":").unwrap();
        let id: u64 = id.split_once(',').unwrap().0.parse().unwrap();
        let waiting = link.waiting.lock().unwrap().remove(&id);
        let _ = waiting.unwrap().send(text);
    }
}
