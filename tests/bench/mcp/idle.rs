//! Connections that do nothing, and what memory each takes of the service.

use futures::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::support::{Client, McpUser, Service, long, seconds};

/// Streams of one user, and WebSockets, half of them of each service: there are limits to both (64 and 24), and no more than 16
/// executors of a service are side by side.
const STREAMS: usize = 60;
const SOCKETS: usize = 24;
/// What the first connections make stays: it is none's own.
const FIRST: usize = 200;

pub async fn run(service: &Service, admin: &Client) {
    let count = if long() { 5_000 } else { 2_000 };
    let mut users = Vec::new();
    for number in 0..(FIRST + count).div_ceil(SOCKETS) {
        users.push(McpUser::create(service, admin, &format!("idle{number}")).await);
    }
    println!("mcp: {count} connections that do nothing");
    let mut streams = Vec::new();
    for number in 0..FIRST {
        streams.push(stream(service, &users[number / STREAMS]).await);
    }
    let before = settled(service).await;
    for number in FIRST..FIRST + count {
        streams.push(stream(service, &users[number / STREAMS]).await);
    }
    shown("stream of HTTP+SSE", count, before, service, 30).await;

    let mut sockets = Vec::new();
    for number in 0..FIRST {
        sockets.push(socket(service, &users[number / SOCKETS], number).await);
    }
    let before = settled(service).await;
    for number in FIRST..FIRST + count {
        sockets.push(socket(service, &users[number / SOCKETS], number).await);
    }
    shown("WebSocket", count, before, service, 12).await;
    assert_eq!(streams.len(), sockets.len());
}

/// Memory once it no longer changes by what has just happened.
async fn settled(service: &Service) -> u64 {
    tokio::time::sleep(seconds(3)).await;
    service.own_memory()
}

async fn shown(what: &str, count: usize, before: u64, service: &Service, goal: u64) {
    let more = settled(service).await.saturating_sub(before);
    println!(
        "  {what:<19} {:>6.1} KB each (goal {goal})",
        more as f64 / count as f64 / 1e3
    );
}

async fn stream(service: &Service, user: &McpUser) -> TcpStream {
    let mut stream = TcpStream::connect(service.address()).await.unwrap();
    let request = format!(
        "GET /api/mcp/sse/browser HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\nAuthorization: Bearer {}\r\n\r\n",
        user.token
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = String::new();
    let mut piece = [0; 1024];
    while !head.contains("event: endpoint") && !head.contains("event:endpoint") {
        let length = stream.read(&mut piece).await.unwrap();
        assert_ne!(length, 0, "{head}");
        head += std::str::from_utf8(&piece[..length]).unwrap();
    }
    stream
}

/// One that has said which installation it is, and was heard: the next one of the user would take its place otherwise.
async fn socket(service: &Service, user: &McpUser, number: usize) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(service.address()).await.unwrap();
    let kind = ["browser", "computer"][number % 2];
    let url = format!("ws://bench/api/{kind}/ws?token={}", user.token);
    let small = WebSocketConfig::default().read_buffer_size(1024);
    let request = url.into_client_request().unwrap();
    let connected = client_async_with_config(request, stream, Some(small)).await;
    let mut socket = connected.unwrap().0;
    let hello = json!({"type": "hello", "protocol": 2, "instance": format!("instance-{number}"),
        "label": "bench", "client": {"name": "extension", "version": "2.0", "platform": "linux"}});
    socket
        .send(Message::Text(hello.to_string().into()))
        .await
        .unwrap();
    let welcome = socket.next().await.unwrap().unwrap();
    assert!(welcome.is_text(), "{welcome:?}");
    socket
}
