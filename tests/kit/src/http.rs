//! An HTTP server that answers what a script says, over real sockets.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

/// What is answered: status, headers and body; `None` hangs.
pub type Answer = Option<(u16, Vec<(&'static str, String)>, Vec<u8>)>;

/// What was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Path with query.
    pub path: String,
    /// The whole head.
    pub head: String,
    /// The body, as long as the head says.
    pub body: String,
}

impl Asked {
    /// The method.
    pub fn method(&self) -> &str {
        self.head.split(' ').next().unwrap_or_default()
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// A server on loopback. Lives as long as the runtime.
#[derive(Debug)]
pub struct Scripted {
    /// `127.0.0.1:<port>`.
    pub address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Scripted {
    /// Starts it. The script is given the server's own address, too.
    pub async fn new(script: impl Fn(&str, &Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (host, log) = (address.clone(), Arc::clone(&asked));
        TaskTracker::new().spawn(async move {
            let mut hanging = Vec::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => break,
                    }
                }
                let head = String::from_utf8(head).unwrap();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let mut question = Asked {
                    path,
                    head,
                    body: String::new(),
                };
                let length = question.header("content-length").unwrap_or("0");
                let mut body = vec![0; length.parse().unwrap()];
                if stream.read_exact(&mut body).await.is_ok() {
                    question.body = String::from_utf8(body).unwrap();
                }
                let answer = script(&host, &question);
                log.lock().unwrap().push(question);
                let Some((status, headers, body)) = answer else {
                    hanging.push(stream);
                    continue;
                };
                let mut text = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n");
                for (name, value) in headers {
                    text.push_str(&format!("{name}: {value}\r\n"));
                }
                text.push_str("\r\n");
                // A client that has enough closes early.
                let _ = stream.write_all(text.as_bytes()).await;
                let _ = stream.write_all(&body).await;
            }
        });
        Self { address, asked }
    }

    /// All questions so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}
