//! A page that talks to an agent, as a test plays it.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::Error;
use tokio_tungstenite::{WebSocketStream, client_async};

use super::{Client, Service};

/// A connected page, and its conversation as the frames make it.
pub struct Page {
    socket: WebSocketStream<TcpStream>,
    pub epoch: String,
    pub number: u64,
    pub entries: std::collections::BTreeMap<u64, Value>,
    pub state: Value,
    pub refused: Vec<Value>,
    pub ended: Option<Value>,
    /// Number of `hello` frames with `reset`.
    pub resets: usize,
}

impl Page {
    /// Opens a conversation.
    pub async fn open(service: &Service, user: &Client, id: &str) -> Self {
        Self::try_open(service, user, id, "", None).await.unwrap()
    }

    /// The same with something more in the address, and of another origin. Fails with the status of the refusal.
    pub async fn try_open(
        service: &Service,
        user: &Client,
        id: &str,
        more: &str,
        origin: Option<&str>,
    ) -> Result<Self, u16> {
        let address = service.address();
        let url = format!("ws://{address}/api/agent/chat/ws?id={id}{more}");
        let stream = TcpStream::connect(address).await.unwrap();
        let mut request = url.into_client_request().unwrap();
        let [(_, cookie), _] = user.credentials();
        let own = format!("http://{address}");
        let headers = request.headers_mut();
        headers.insert("cookie", cookie.parse().unwrap());
        headers.insert("origin", origin.unwrap_or(&own).parse().unwrap());
        let socket = match client_async(request, stream).await {
            Ok((socket, _)) => socket,
            Err(Error::Http(response)) => return Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        };
        let mut page = Self {
            socket,
            epoch: String::new(),
            number: 0,
            entries: Default::default(),
            state: Value::Null,
            refused: Vec::new(),
            ended: None,
            resets: 0,
        };
        page.until("the first state", |page| !page.state.is_null())
            .await;
        Ok(page)
    }

    pub async fn send(&mut self, frame: &Value) {
        let message = Message::text(frame.to_string());
        self.socket.send(message).await.unwrap();
    }

    pub async fn say(&mut self, client_id: &str, text: &str) {
        self.send(&json!({"type": "send", "client_id": client_id, "text": text}))
            .await;
    }

    /// Takes the next frame; false at the end of the connection.
    pub async fn next(&mut self) -> bool {
        let message = timeout(Duration::from_secs(60), self.socket.next()).await;
        match message.expect("a frame within a minute") {
            Some(Ok(Message::Text(text))) => {
                self.take(serde_json::from_str(&text).unwrap());
                true
            }
            Some(Ok(Message::Close(_))) | Some(Err(_)) | None => false,
            Some(Ok(_)) => true,
        }
    }

    fn take(&mut self, frame: Value) {
        if let Some(number) = frame["n"].as_u64() {
            self.number = self.number.max(number);
        }
        match frame["type"].as_str().unwrap() {
            "hello" => {
                if frame["reset"] == true {
                    self.entries.clear();
                    self.resets += 1;
                }
                self.epoch = frame["epoch"].as_str().unwrap().to_owned();
            }
            "entry" => {
                let entry = frame["entry"].clone();
                self.entries.insert(entry["id"].as_u64().unwrap(), entry);
            }
            "remove" => {
                self.entries.remove(&frame["id"].as_u64().unwrap());
            }
            "state" => self.state = frame["state"].clone(),
            "refused" => self.refused.push(frame),
            "end" => self.ended = Some(frame),
            _ => {}
        }
    }

    /// Takes frames until the page is as wanted, for a minute at most.
    pub async fn until(&mut self, what: &str, wanted: impl Fn(&Self) -> bool) {
        let looking = async {
            while !wanted(self) {
                assert!(self.next().await, "{what}: the connection has ended");
            }
        };
        if timeout(Duration::from_secs(60), looking).await.is_err() {
            panic!("{what}: {:#?} {:#}", self.entries, self.state);
        }
    }

    /// Takes frames until an entry of this kind has this text in it.
    pub async fn until_text(&mut self, kind: &str, text: &str) -> Value {
        let fits = |entry: &Value| entry["kind"] == kind && entry.to_string().contains(text);
        self.until(text, |page| page.entries.values().any(fits))
            .await;
        self.entries
            .values()
            .rfind(|entry| fits(entry))
            .unwrap()
            .clone()
    }

    /// Takes frames until no turn runs.
    pub async fn until_quiet(&mut self) {
        self.until("the turn ends", |page| {
            page.state["turn"].is_null() && page.state["waiting"] == 0
        })
        .await;
    }

    /// Takes frames until the connection ends.
    pub async fn until_end(&mut self) {
        while self.next().await {}
    }

    /// Kinds and texts, in order.
    pub fn shown(&self) -> Vec<String> {
        let entries = self.entries.values();
        let shown = entries.map(|entry| {
            let text = match entry["kind"].as_str().unwrap() {
                "tools" => entry["calls"][0]["name"].clone(),
                "files" => entry["files"][0]["name"].clone(),
                "notice" => entry["code"].clone(),
                _ => entry["text"].clone(),
            };
            format!(
                "{}: {}",
                entry["kind"].as_str().unwrap(),
                text.as_str().unwrap()
            )
        });
        shown.collect()
    }
}
