//! One kept connection over which calls are posted.

use std::net::SocketAddr;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

pub struct Lane {
    sender: SendRequest<Full<Bytes>>,
    path: String,
    token: String,
    body: Bytes,
    _driver: JoinSet<()>,
}

impl Lane {
    pub async fn open(to: SocketAddr, path: &str, token: &str, message: &Value) -> Self {
        let stream = TcpStream::connect(to).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        let mut driver = JoinSet::new();
        driver.spawn(async move { connection.await.unwrap() });
        Self {
            sender,
            path: path.to_owned(),
            token: format!("Bearer {token}"),
            body: message.to_string().into(),
            _driver: driver,
        }
    }

    /// One call; gives the length of the answer.
    pub async fn call(&mut self) -> usize {
        let request = Request::post(&self.path)
            .header("host", "bench")
            .header("authorization", &self.token)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(Full::new(self.body.clone()))
            .unwrap();
        // Whatever came before is over a moment after its last byte.
        self.sender.ready().await.unwrap();
        let answer = self.sender.send_request(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        // A failure would be fast.
        assert!(!body.windows(9).take(200).any(|part| part == b"\"isError\""));
        body.len()
    }
}
