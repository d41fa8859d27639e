//! Users of the MCP endpoint: a client of each, and executors that a test plays.

use std::net::SocketAddr;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use reqwest::header::ACCEPT;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::{Client, Service};

/// How long anything may take that shall happen at once.
const SOON: Duration = super::PATIENCE;

/// A user with a client of the endpoint.
#[derive(Clone)]
pub struct McpUser {
    pub name: String,
    pub token: String,
    address: SocketAddr,
    http: reqwest::Client,
}

/// An executor that the test plays.
pub struct Executor {
    pub socket: WebSocketStream<TcpStream>,
}

impl McpUser {
    /// Creates a user.
    pub async fn create(service: &Service, admin: &Client, name: &str) -> Self {
        let form = [("username", name), ("wait", "0")];
        let answer = admin.post("/api/admin/users/create", &form).await;
        let password = answer.expect(202)["password"].as_str().unwrap().to_owned();
        let browser = service.client().signed_in(name, &password).await;
        Self::signed_in(service, name, &browser).await
    }

    /// A user who has signed in.
    pub async fn signed_in(service: &Service, name: &str, browser: &Client) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let answer = browser.get("/api/mcp/token").await.expect(200);
        Self {
            name: name.to_owned(),
            token: answer["token"].as_str().unwrap().to_owned(),
            address: service.address(),
            http: reqwest::Client::new(),
        }
    }

    /// The answer to a request of the client.
    pub async fn ask(&self, service: &str, message: &Value) -> Value {
        let url = format!("http://{}/api/mcp/sse/{service}", self.address);
        let request = self.http.post(url).bearer_auth(&self.token);
        let answer = request
            .header(ACCEPT, "application/json, text/event-stream")
            .json(message)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        answer.json().await.unwrap()
    }

    /// What a call of a tool results in.
    pub async fn call(&self, service: &str, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        loop {
            let result = self.ask(service, &message).await["result"].take();
            if !too_fast(&result) {
                return result;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// An executor as the extension and the desktop client are: it says nothing of itself.
    pub async fn executor(&self, service: &str) -> Executor {
        let connected = self.try_executor(service).await;
        connected.expect("executors of the user do not displace each other")
    }

    /// The same; `None` while executors of the user displace each other too often.
    pub async fn try_executor(&self, service: &str) -> Option<Executor> {
        let Self { address, token, .. } = self;
        let url = format!("ws://{address}/api/{service}/ws?token={token}");
        let stream = TcpStream::connect(address).await.unwrap();
        let request = url.into_client_request().unwrap();
        match client_async(request, stream).await {
            Ok((socket, _)) => Some(Executor { socket }),
            Err(tungstenite::Error::Http(answer)) if answer.status() == 429 => None,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The answer of the extension 1.2.0 to `browser_execute` on a page that allows no scripts, so that its own tools are asked.
pub fn no_scripts() -> Value {
    json!({"result": {"error": "Evaluating a string as JavaScript violates the following Content Security Policy directive \
        because 'unsafe-eval' is not an allowed source of script: script-src 'self'\".\n"}})
}

/// Whether a call was one too many in a second, as tests are faster than agents.
pub fn too_fast(result: &Value) -> bool {
    let text = result["content"][0]["text"].as_str();
    text.is_some_and(|text| text.starts_with("more than 10 calls in a second"))
}

impl Executor {
    pub async fn send(&mut self, text: impl Into<String>) {
        let text: String = text.into();
        self.socket.send(Message::Text(text.into())).await.unwrap();
    }

    /// The next frame that it is sent; `None` at the end.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            match self.socket.next().await? {
                Ok(Message::Text(text)) => return serde_json::from_str(&text).ok(),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// The next question.
    pub async fn question(&mut self) -> Value {
        let next = timeout(SOON, self.next()).await;
        next.expect("a question comes").expect("it is connected")
    }

    pub async fn answer(&mut self, question: &Value, result: Value) {
        let frame = json!({"id": question["id"], "result": result});
        self.send(frame.to_string()).await;
    }

    /// How its connection is ended: what it is told before, code and reason.
    pub async fn ended(&mut self) -> (Vec<Value>, u16, String) {
        let mut told = Vec::new();
        loop {
            let message = timeout(SOON, self.socket.next()).await.expect("it ends");
            match message {
                Some(Ok(Message::Text(text))) => told.push(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(Some(frame)))) => {
                    return (told, frame.code.into(), frame.reason.to_string());
                }
                Some(Ok(_)) => {}
                other => panic!("it ends without a code: {other:?}"),
            }
        }
    }
}
