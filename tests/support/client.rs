//! A client of the HTTP interface: one connection per request, so that nothing is remembered but
//! the cookie.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

use super::eventually;

/// Longer than the longest `wait`.
const PATIENCE: Duration = super::PATIENCE;
/// Attempts of a sign-in that is part of the set-up, two seconds apart, while the service is busy.
const BUSY_ATTEMPTS: usize = 15;

/// Where the service is.
#[derive(Clone)]
pub enum Target {
    Tcp(SocketAddr),
    Tls(SocketAddr, Arc<rustls::ClientConfig>),
    Unix(PathBuf),
}

/// One browser.
#[derive(Clone)]
pub struct Client {
    target: Target,
    cookie: Option<String>,
    csrf: Option<String>,
    headers: Vec<(String, String)>,
}

/// One answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// An answer whose body comes piece by piece.
pub struct Streamed {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    /// Drives the connection; ends it when dropped.
    _connection: JoinSet<()>,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("no JSON: {error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON, if the status is this one.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self.json()
    }

    /// The body of a failure with this status and code.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        let body = self.expect(status);
        assert_eq!(body["success"], false, "{body}");
        assert_eq!(body["code"], code, "{body}");
        let sentence = body["error"].as_str().unwrap_or_default();
        assert!(!sentence.is_empty(), "{body}");
        body
    }

    /// The body of a write that has converged.
    #[track_caller]
    pub fn converged(&self) -> Value {
        let body = self.expect(200);
        assert_eq!(body["success"], true, "{body}");
        assert_eq!(body["state"], "converged", "{body}");
        body
    }

    /// The body of a write that is recorded, but has not converged.
    #[track_caller]
    pub fn pending(&self) -> Value {
        let body = self.expect(202);
        assert_eq!(body["state"], "pending", "{body}");
        body
    }
}

impl Streamed {
    /// The next piece of the body; `None` at its end.
    pub async fn next(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        loop {
            match self.body.frame().await? {
                Ok(frame) => match frame.into_data() {
                    Ok(data) => return Some(Ok(data)),
                    Err(_trailers) => {}
                },
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Client {
    pub fn new(target: Target) -> Self {
        Self {
            target,
            cookie: None,
            csrf: None,
            headers: Vec::new(),
        }
    }

    /// The same browser, talking to a service at another address.
    pub fn at(&self, target: &Client) -> Self {
        Self {
            target: target.target.clone(),
            ..self.clone()
        }
    }

    /// Sends a header with each request.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// What the requests of a signed-in browser bear, for whoever writes one by hand.
    pub fn credentials(&self) -> [(&'static str, String); 2] {
        [
            ("Cookie", self.cookie.clone().expect("signed in")),
            ("X-CSRF-Token", self.csrf.clone().expect("signed in")),
        ]
    }

    /// Signs in and fetches the CSRF token.
    pub async fn signed_in(mut self, username: &str, password: &str) -> Self {
        let mut answer = self.sign_in(username, password).await;
        // With six tests beside each other the disk makes a sign-in take more than its five seconds now and then.
        for _ in 0..BUSY_ATTEMPTS {
            if answer.status != 503 {
                break;
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
            answer = self.sign_in(username, password).await;
        }
        let body = answer.expect(200);
        assert_eq!(body["username"], username);
        let csrf = self.get("/api/csrf").await.expect(200);
        self.csrf = Some(csrf["csrf_token"].as_str().unwrap().to_owned());
        self
    }

    /// Tries to sign in; keeps the cookie.
    pub async fn sign_in(&mut self, username: &str, password: &str) -> Answer {
        let form = [("username", username), ("password", password)];
        let answer = self.post("/api/login", &form).await;
        if let Some(cookie) = answer.headers.get(http::header::SET_COOKIE) {
            let cookie = cookie.to_str().unwrap();
            let pair = cookie.split(';').next().unwrap();
            self.cookie = Some(pair.to_owned());
        }
        answer
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.try_get(path).await.unwrap()
    }

    pub async fn try_get(&self, path: &str) -> Result<Answer, String> {
        self.exchange(Method::GET, path, None).await
    }

    /// A form post, with the CSRF token if there is one.
    pub async fn post(&self, path: &str, form: &[(&str, &str)]) -> Answer {
        self.try_post(path, form).await.unwrap()
    }

    pub async fn try_post(&self, path: &str, form: &[(&str, &str)]) -> Result<Answer, String> {
        let mut body = url_encoded(form);
        if let Some(csrf) = &self.csrf {
            if !body.is_empty() {
                body.push('&');
            }
            body.push_str(&url_encoded(&[("csrf_token", csrf)]));
        }
        self.exchange(Method::POST, path, Some(body)).await
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        form: Option<String>,
    ) -> Result<Answer, String> {
        let exchange = async {
            let streamed = self.send(method, path, form).await?;
            let Streamed {
                status,
                headers,
                body,
                _connection,
            } = streamed;
            let body = body.collect().await.map_err(|error| error.to_string())?;
            Ok(Answer {
                status,
                headers,
                body: body.to_bytes(),
            })
        };
        tokio::time::timeout(PATIENCE, exchange)
            .await
            .map_err(|_| format!("{path}: no answer within {PATIENCE:?}"))?
    }

    /// Opens a stream.
    pub async fn stream(&self, path: &str) -> Streamed {
        self.send(Method::GET, path, None).await.unwrap()
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        form: Option<String>,
    ) -> Result<Streamed, String> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::HOST, self.host());
        if let Some(cookie) = &self.cookie {
            request = request.header(http::header::COOKIE, cookie);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if form.is_some() {
            request = request.header(
                http::header::CONTENT_TYPE,
                "application/x-www-form-urlencoded",
            );
        }
        let request = request.body(Full::from(form.unwrap_or_default())).unwrap();
        let text = |error: std::io::Error| error.to_string();
        match &self.target {
            Target::Tcp(address) => {
                let stream = tokio::net::TcpStream::connect(address)
                    .await
                    .map_err(text)?;
                over(stream, request).await
            }
            Target::Tls(address, config) => {
                let stream = tokio::net::TcpStream::connect(address)
                    .await
                    .map_err(text)?;
                let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
                let stream = tokio_rustls::TlsConnector::from(Arc::clone(config))
                    .connect(name, stream)
                    .await
                    .map_err(text)?;
                over(stream, request).await
            }
            Target::Unix(path) => {
                let stream = tokio::net::UnixStream::connect(path).await.map_err(text)?;
                over(stream, request).await
            }
        }
    }

    fn host(&self) -> String {
        match &self.target {
            Target::Tcp(address) => address.to_string(),
            Target::Tls(address, _) => format!("localhost:{}", address.port()),
            Target::Unix(_) => "localhost".to_owned(),
        }
    }

    /// The listing's row of a user; `None` when there is no such user.
    pub async fn user(&self, name: &str) -> Option<Value> {
        let listing = self.get("/api/admin/users").await.expect(200);
        let users = listing["users"].as_array().unwrap();
        users.iter().find(|user| user["username"] == name).cloned()
    }

    /// Waits until the listing says this of a user, with nothing left to do.
    pub async fn status(&self, name: &str, status: &str, limit: Duration) -> Value {
        let what = format!("{name} is {status}");
        let seen = eventually(&what, limit, async || {
            let user = self.user(name).await;
            match user {
                Some(user) if user["status"] == status && is_settled(&user) => Ok(user),
                other => Err(format!("{other:?}")),
            }
        });
        seen.await.0
    }

    /// Waits until a user has this reason in the condition `Ready`.
    pub async fn reason(&self, name: &str, reason: &str, limit: Duration) -> Value {
        let what = format!("{name} is Ready={reason}");
        let seen = eventually(&what, limit, async || {
            let user = self.user(name).await.unwrap_or_default();
            if ready(&user)["reason"] == reason {
                Ok(user)
            } else {
                Err(user.to_string())
            }
        });
        seen.await.0
    }

    /// The live numbers of a reconciler.
    pub async fn reconciler(&self, name: &str) -> Value {
        let body = self.get("/api/admin/reconcile").await.expect(200);
        let reconcilers = body["reconcilers"].as_array().unwrap();
        let summary = reconcilers.iter().find(|r| r["name"] == name);
        summary.unwrap().clone()
    }

    /// When a reconciler last began a full pass.
    pub async fn last_resync(&self, reconciler: &str) -> String {
        self.reconciler(reconciler).await["last_resync_at"].to_string()
    }

    /// The newest events of one object.
    pub async fn events(&self, object: &str) -> Vec<Value> {
        let path = format!("/api/admin/events?object={object}");
        let body = self.get(&path).await.expect(200);
        body["events"].as_array().unwrap().clone()
    }

    /// Waits until an object has an event with this reason.
    pub async fn event(&self, object: &str, reason: &str, limit: Duration) -> Value {
        let what = format!("{object} has an event {reason}");
        let seen = eventually(&what, limit, async || {
            let events = self.events(object).await;
            let found = events.iter().find(|event| event["reason"] == reason);
            found.cloned().ok_or_else(|| format!("{events:?}"))
        });
        seen.await.0
    }

    /// What `/readyz` says, with its status.
    pub async fn readiness(&self) -> (u16, String) {
        let answer = self.get("/readyz").await;
        (answer.status.as_u16(), answer.text())
    }

    /// Waits until `/readyz` has a line that begins so.
    pub async fn readiness_line(&self, begin: &str, limit: Duration) -> (u16, String) {
        let what = format!("/readyz says {begin:?}");
        let seen = eventually(&what, limit, async || {
            let (status, text) = match self.try_get("/readyz").await {
                Ok(answer) => (answer.status.as_u16(), answer.text()),
                Err(error) => return Err(error),
            };
            match text.lines().find(|line| line.starts_with(begin)) {
                Some(line) => Ok((status, line.to_owned())),
                None => Err(format!("{status}: {text}")),
            }
        });
        seen.await.0
    }

    /// Everything about one reconciled object.
    pub async fn object(&self, object: &str) -> Value {
        let path = format!("/api/admin/reconcile/objects/{object}");
        self.get(&path).await.expect(200)
    }

    /// Asks for a pass over one object at once.
    pub async fn retry(&self, object: &str) -> Value {
        let form = [("object", object)];
        self.post("/api/admin/reconcile/retry", &form)
            .await
            .expect(200)
    }

    /// The live numbers of a reconciler.
    pub async fn summary(&self, reconciler: &str) -> Value {
        let body = self.get("/api/admin/reconcile").await.expect(200);
        let reconcilers = body["reconcilers"].as_array().unwrap();
        let summary = reconcilers.iter().find(|r| r["name"] == reconciler);
        summary.unwrap().clone()
    }

    /// Creates a user and waits until the container is ready; gives the password.
    pub async fn create_user(&self, name: &str) -> String {
        let form = [("username", name), ("wait", "60")];
        let answer = self.post("/api/admin/users/create", &form).await;
        let body = answer.converged();
        assert_eq!(body["username"], name);
        body["password"].as_str().unwrap().to_owned()
    }
}

/// The condition `Ready` of a listed user.
pub fn ready(user: &Value) -> Value {
    let conditions = user["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|c| c["type"] == "Ready");
    found.unwrap_or_default()
}

/// Whether the newest generation was observed, and found to be as desired.
pub fn is_settled(user: &Value) -> bool {
    user["generation"] == user["observed_generation"] && ready(user)["status"] == "True"
}

async fn over<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Streamed, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let _ = connection.await;
    });
    let response = sender
        .send_request(request)
        .await
        .map_err(|error| error.to_string())?;
    let (parts, body) = response.into_parts();
    Ok(Streamed {
        status: parts.status,
        headers: parts.headers,
        body,
        _connection: tasks,
    })
}

fn url_encoded(form: &[(&str, &str)]) -> String {
    let mut text = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in form {
        text.append_pair(name, value);
    }
    text.finish()
}
