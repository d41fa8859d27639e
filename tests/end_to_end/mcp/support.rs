//! Users with clients and executors, over real connections.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use reqwest::header::{ACCEPT, AUTHORIZATION};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::support::mcp::{no_scripts, too_fast};
use crate::support::{Client, Service, Stage};

pub const BOTH: &str = "application/json, text/event-stream";
pub const SOON: Duration = crate::support::PATIENCE;

/// A service without an engine, with users.
pub struct Yard {
    pub service: Service,
    pub admin: Client,
}

/// A user, with a client of the endpoint.
pub struct Person {
    pub browser: Client,
    pub token: String,
    pub address: SocketAddr,
    pub http: reqwest::Client,
}

pub type Socket = WebSocketStream<TcpStream>;

impl Yard {
    pub async fn open(stage: &Stage) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let service = stage
            .alone()
            .set("container.autostart", "false")
            .set("web.trusted_proxies", r#"["127.0.0.1"]"#)
            .start()
            .await;
        let admin = service.admin().await;
        Self { service, admin }
    }

    /// The service ends as it does for a newer release, and comes back at its address.
    pub async fn restart(&mut self, stage: &Stage) {
        let address = self.service.address().to_string();
        self.service.terminate();
        self.service.ended().await;
        self.service = stage.alone().listen(&address).start().await;
    }

    /// Whose executors are connected.
    pub async fn executors(&self) -> Vec<String> {
        let seen = self.admin.get("/api/admin/executors").await.expect(200);
        let all = seen["executors"].as_array().unwrap().iter();
        all.map(|executor| executor["username"].as_str().unwrap().to_owned())
            .collect()
    }

    pub async fn person(&self, name: &str) -> Person {
        let form = [("username", name), ("wait", "0")];
        let answer = self.admin.post("/api/admin/users/create", &form).await;
        let password = answer.expect(202)["password"].as_str().unwrap().to_owned();
        let browser = self.service.client().signed_in(name, &password).await;
        let mut person = Person {
            browser,
            token: String::new(),
            address: self.service.address(),
            http: reqwest::Client::new(),
        };
        person.read_token().await;
        person
    }
}

impl Person {
    pub async fn read_token(&mut self) {
        let answer = self.browser.get("/api/mcp/token").await.expect(200);
        self.token = answer["token"].as_str().unwrap().to_owned();
    }

    pub fn url(&self, service: &str) -> String {
        format!("http://{}/api/mcp/sse/{service}", self.address)
    }

    pub fn request(&self, method: Method, service: &str) -> reqwest::RequestBuilder {
        self.http
            .request(method, self.url(service))
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .header(ACCEPT, BOTH)
    }

    pub async fn post(&self, service: &str, message: Value) -> Response {
        self.request(Method::POST, service)
            .json(&message)
            .send()
            .await
            .unwrap()
    }

    pub async fn ask(&self, service: &str, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": "a-1", "method": method, "params": params});
        let answer = self.post(service, message).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let answer: Value = answer.json().await.unwrap();
        assert_eq!(answer["id"], "a-1");
        answer
    }

    pub async fn call(&self, service: &str, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        loop {
            let mut answer = self.ask(service, "tools/call", params.clone()).await;
            if !too_fast(&answer["result"]) {
                return answer["result"].take();
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// The names of the tools.
    pub async fn tools(&self, service: &str) -> Vec<String> {
        let listed = self.ask(service, "tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    pub async fn try_connect(&self, service: &str, origin: Option<&str>) -> Result<Socket, Error> {
        let url = format!(
            "ws://{}/api/{service}/ws?token={}",
            self.address, self.token
        );
        let mut request = url.into_client_request().unwrap();
        if let Some(origin) = origin {
            request
                .headers_mut()
                .insert("origin", origin.parse().unwrap());
        }
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (socket, _) = client_async(request, stream).await?;
        Ok(socket)
    }

    /// An executor as the extension is: it says nothing of itself, and that it is there by an empty text.
    pub async fn executor(&self, service: &str) -> Socket {
        let mut socket = self
            .try_connect(service, Some("chrome-extension://abc"))
            .await
            .unwrap();
        socket.send(Message::Text("".into())).await.unwrap();
        socket
    }
}

/// The facts for programs in a result: models are shown them only where they say everything.
pub fn facts(result: &Value) -> &Value {
    match &result["structuredContent"] {
        Value::Null => &result["_meta"]["agentyard/facts"],
        shown => shown,
    }
}

/// The next question.
pub async fn question(socket: &mut Socket) -> Value {
    loop {
        let message = timeout(SOON, socket.next())
            .await
            .expect("a question comes");
        if let Message::Text(text) = message.unwrap().unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

pub async fn answer(socket: &mut Socket, question: &Value, result: Value) {
    let frame = json!({"id": question["id"], "result": result});
    let text = frame.to_string();
    socket.send(Message::Text(text.into())).await.unwrap();
}

/// With what code a connection is ended.
pub async fn ended(socket: &mut Socket) -> u16 {
    loop {
        let message = timeout(SOON, socket.next()).await.expect("it ends");
        match message {
            Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
            Some(Ok(_)) => {}
            other => panic!("no code: {other:?}"),
        }
    }
}

pub fn refused(result: Result<Socket, Error>) -> u16 {
    match result {
        Err(Error::Http(answer)) => answer.status().as_u16(),
        other => panic!("{other:?}"),
    }
}

/// Events as they come.
pub struct Events {
    stream: Response,
    received: String,
}

impl Events {
    pub fn new(stream: Response) -> Self {
        assert_eq!(stream.status(), StatusCode::OK);
        Self {
            stream,
            received: String::new(),
        }
    }

    /// The next one as it is sent, comments among them.
    pub async fn frame(&mut self) -> String {
        loop {
            if let Some((event, rest)) = self.received.split_once("\n\n") {
                let event = event.to_owned();
                self.received = rest.to_owned();
                return event;
            }
            let piece = timeout(SOON, self.stream.chunk())
                .await
                .expect("an event comes");
            let piece = piece.unwrap().expect("the stream goes on");
            self.received.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// Name and data of the next one that has data.
    pub async fn next(&mut self) -> (String, String) {
        loop {
            let event = self.frame().await;
            let field = |name: &str| {
                let values = event.lines().filter_map(|line| line.strip_prefix(name));
                values.map(str::trim).collect::<Vec<_>>().join("\n")
            };
            let found = (field("event:"), field("data:"));
            if !found.1.is_empty() {
                return found;
            }
        }
    }

    /// Whether it ends soon.
    pub async fn ends(&mut self) -> bool {
        let rest = async { while let Ok(Some(_)) = self.stream.chunk().await {} };
        timeout(SOON, rest).await.is_ok()
    }
}

/// An executor that does by itself what it is asked for, as [`perform`] says.
pub struct Performer {
    asked: mpsc::UnboundedReceiver<String>,
    asks: mpsc::UnboundedSender<String>,
    running: JoinSet<()>,
}

impl Performer {
    pub fn start(socket: Socket) -> Self {
        #[expect(clippy::disallowed_methods, reason = "in a test")]
        let (asks, asked) = mpsc::unbounded_channel();
        let mut performer = Self {
            asked,
            asks,
            running: JoinSet::new(),
        };
        performer.connect(socket);
        performer
    }

    /// Goes on with another connection.
    pub fn connect(&mut self, mut socket: Socket) {
        let asks = self.asks.clone();
        self.running.spawn(async move {
            while let Some(Ok(message)) = socket.next().await {
                let Message::Text(text) = message else {
                    continue;
                };
                let asked: Value = serde_json::from_str(&text).unwrap();
                // It takes no note of anything but tools, as the extension.
                let Some(tool) = asked["tool"].as_str() else {
                    continue;
                };
                if let Some(result) = perform(tool, &asked["params"]) {
                    answer(&mut socket, &asked, result).await;
                }
                let _ = asks.send(tool.to_owned());
            }
        });
    }

    /// Waits until it is asked for this.
    pub async fn asked_for(&mut self, tool: &str) {
        let asked = async { while self.asked.recv().await.unwrap() != tool {} };
        timeout(SOON, asked).await.expect("it is asked for");
    }
}

/// What comes of a tool; nothing of a click, which goes on until it is cancelled.
fn perform(tool: &str, arguments: &Value) -> Option<Value> {
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    Some(match tool {
        "browser_navigate" => text(&format!("at {}", arguments["url"].as_str().unwrap())),
        "browser_execute" if arguments["script"].as_str().unwrap().contains("\"throw\"") => {
            json!({"result": {"error": "it threw"}})
        }
        "browser_execute" => no_scripts(),
        "browser_current_tab" => {
            json!({"tab": {"id": 1, "url": "https://example.org/", "active": true}})
        }
        "browser_click" => return None,
        _ => json!({"success": true}),
    })
}

pub const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/services/mcp_clients");

/// A program of the clients', which is there when `tests/services/up` has installed it.
fn installed(program: &str) -> Command {
    let program = Path::new(CLIENTS).join(program);
    assert!(
        program.exists(),
        "{} is missing; install it with: tests/services/up",
        program.display()
    );
    let mut command = Command::new(program);
    command.current_dir(CLIENTS);
    command
}

/// A script in the version of Node that the clients need, which may be newer than the system's.
pub fn node(script: &str) -> Command {
    let machine = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "x64",
    };
    let mut command = installed(&format!("node_modules/node-linux-{machine}/bin/node"));
    command.arg(script);
    command
}

/// A script in Python with one of the versions of its SDK.
pub fn python(sdk: &str, script: &str) -> Command {
    let number = sdk.trim_start_matches('v');
    let mut command = installed(&format!(".venv-{number}/bin/python"));
    command.arg(script);
    command
}
