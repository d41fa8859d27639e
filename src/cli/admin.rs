//! Requests to a running server, over its administration socket or the network.

use std::error::Error;
use std::io::ErrorKind;
use std::time::Duration;

use reqwest::header::{COOKIE, HeaderValue};
use reqwest::{Method, Request, RequestBuilder, Response};
use secrecy::ExposeSecret;
use serde_json::Value;
use tokio::net::UnixStream;

use super::context::Credential;
use super::output::cell::{at, cleaned, text};
use super::output::clean::clean;
use super::server::Server;
use super::{Failure, Result, failed};

/// The header of the CSRF token.
const CSRF: &str = "x-csrf-token";
/// The end of the path that ends a session, and needs no CSRF token.
const LOGOUT: &str = "/api/logout";
/// No answer of the administration API is larger.
const LARGEST_ANSWER: usize = 64 * 1024 * 1024;
/// Longer than the server holds back any answer that a command asks for.
const ANSWER_TIME: Duration = Duration::from_secs(60);

impl Server {
    /// Whether a server listens on the socket.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub async fn runs(&self) -> Result<bool> {
        match UnixStream::connect(&self.socket).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(self.denied()),
            Err(_) => Ok(false),
        }
    }

    /// A request to the server, to be sent by one of the functions below.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let Some(remote) = &self.remote else {
            // The host is a name only: the client connects to the socket.
            let url = format!("http://agentyard{path}");
            return self.client.request(method, url);
        };
        let request = self.client.request(method, format!("{}{path}", remote.url));
        match &remote.credential {
            None => request,
            Some(Credential::Token(token)) => request.bearer_auth(token.expose_secret()),
            Some(Credential::Session { cookie, .. }) => {
                let cookie = format!("session={}", cookie.expose_secret());
                match HeaderValue::try_from(cookie) {
                    Ok(mut cookie) => {
                        cookie.set_sensitive(true);
                        request.header(COOKIE, cookie)
                    }
                    Err(_) => request,
                }
            }
        }
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// When no server answers, or it refuses.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.json(self.request(Method::GET, path)).await
    }

    /// Posts a request and reads the answer; a failure is the server's own sentence.
    ///
    /// # Errors
    /// When no server answers, or it refuses.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.json(self.request(Method::POST, path).json(body)).await
    }

    /// Posts what was made of an object as it was read; `None` if that has changed since.
    ///
    /// # Errors
    /// When no server answers, or it refuses.
    pub async fn post_unless_stale(&self, path: &str, body: &Value) -> Result<Option<Value>> {
        let request = self.request(Method::POST, path).json(body);
        match self.send(request).await? {
            (412, _) => Ok(None),
            (status, text) => self.judge(status, &text).map(Some),
        }
    }

    /// Sends a request whose answer is JSON.
    ///
    /// # Errors
    /// When no server answers, or it refuses.
    pub async fn json(&self, request: RequestBuilder) -> Result<Value> {
        let (status, text) = self.send(request).await?;
        self.judge(status, &text)
    }

    /// The rest of an answer that is JSON.
    ///
    /// # Errors
    /// When it breaks off, or the server refused.
    pub async fn read(&self, answer: Response) -> Result<Value> {
        let status = answer.status().as_u16();
        self.judge(status, &self.text(answer).await?)
    }

    /// Sends a request and reads the answer: status and text.
    ///
    /// # Errors
    /// When no server answers in time.
    pub async fn send(&self, request: RequestBuilder) -> Result<(u16, String)> {
        let answer = self.open(request.timeout(ANSWER_TIME)).await?;
        let status = answer.status().as_u16();
        Ok((status, self.text(answer).await?))
    }

    /// Sends a request and reads the head of the answer, however long that takes; the rest is read while it comes.
    ///
    /// # Errors
    /// When no server answers.
    pub async fn open(&self, request: RequestBuilder) -> Result<Response> {
        let (client, request) = request.build_split();
        let mut request = request.map_err(failed)?;
        if let Some(token) = self.csrf_token(&request).await? {
            request.headers_mut().insert(CSRF, token);
        }
        let answer = client.execute(request).await;
        answer.map_err(|error| self.gone(&error))
    }

    /// The CSRF token that a change with a session needs.
    async fn csrf_token(&self, request: &Request) -> Result<Option<HeaderValue>> {
        let remote = self.remote.as_ref();
        let credential = remote.and_then(|remote| remote.credential.as_ref());
        let with_session = matches!(credential, Some(Credential::Session { .. }));
        if !with_session || request.method().is_safe() || request.url().path().ends_with(LOGOUT) {
            return Ok(None);
        }
        let ask = self.request(Method::GET, "/api/csrf").timeout(ANSWER_TIME);
        let answer = ask.send().await.map_err(|error| self.gone(&error))?;
        let answer = self.read(answer).await?;
        let token = HeaderValue::try_from(text(&answer, "csrf_token"));
        token.map(Some).map_err(failed)
    }

    /// As [`judge`], with what to do when the server does not know who acts.
    fn judge(&self, status: u16, body: &str) -> Result<Value> {
        let Some(remote) = &self.remote else {
            return judge(status, body);
        };
        let value: Value = serde_json::from_str(body).map_err(|_| {
            Failure::Failed(format!(
                "{} answered {status} without JSON; is it the address of Agentyard?",
                remote.url
            ))
        })?;
        if status == 401 && text(&value, "code") == "not_signed_in" {
            if let Some(Credential::Token(_)) = &remote.credential {
                return Err(Failure::Failed(format!(
                    "{} does not know the API token, or it was revoked; create another with `agentyard api-token create` on the server",
                    remote.shown()
                )));
            }
            return Err(Failure::Failed(format!(
                "the session at {} has ended; sign in again with `agentyard login {}`",
                remote.shown(),
                remote.url
            )));
        }
        judge_value(status, value)
    }

    /// The rest of an answer.
    ///
    /// # Errors
    /// When it breaks off, does not come in time, or is larger than any answer may be.
    async fn text(&self, mut answer: Response) -> Result<String> {
        let mut text = Vec::new();
        while let Some(bytes) = self.chunk(&mut answer).await? {
            text.extend_from_slice(bytes.as_ref());
            if text.len() > LARGEST_ANSWER {
                let text = "the server's answer is too long";
                return Err(Failure::Unavailable(text.to_owned()));
            }
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The next bytes of an answer; `None` at the end.
    ///
    /// # Errors
    /// When it breaks off, or does not come in time.
    pub async fn chunk(&self, answer: &mut Response) -> Result<Option<impl AsRef<[u8]> + use<>>> {
        answer
            .chunk()
            .await
            .map_err(|error| match error.is_timeout() {
                true => self.gone(&error),
                false => {
                    let why = clean(&root(&error).to_string());
                    Failure::Unavailable(format!("the answer broke off: {why}"))
                }
            })
    }

    /// Why there is no answer.
    fn gone(&self, error: &reqwest::Error) -> Failure {
        let root = root(error);
        if error.is_builder() {
            return failed(error);
        }
        let io = root.downcast_ref::<std::io::Error>();
        if io.is_some_and(|error| error.kind() == ErrorKind::PermissionDenied) {
            return self.denied();
        }
        let why = match error.is_timeout() {
            true => "it accepts connections but does not answer".to_owned(),
            // It may quote the server's certificate.
            false => clean(&root.to_string()),
        };
        if let Some(remote) = &self.remote {
            let remedy = match root.is::<rustls::Error>() || why.contains("certificate") {
                _ if why.contains("CaUsedAsEndEntity") => {
                    "its certificate is that of an authority; make one for a server, with `-addext basicConstraints=critical,CA:FALSE` of `openssl req`"
                }
                true => "if its certificate is of an own authority, sign in with --ca-file",
                false => "check the address, or whether the server runs",
            };
            return Failure::Unavailable(format!(
                "no server answers at {} ({why}); {remedy}",
                remote.shown()
            ));
        }
        if let Some(file) = self.hidden_settings {
            return Failure::Failed(format!(
                "permission denied: the settings file {} of this machine's server is not for this user; run the command with sudo, or sign in with `agentyard login URL`",
                file.display()
            ));
        }
        Failure::Unavailable(format!(
            "no server answers on {} ({why}); start one with `agentyard serve`, or set its socket with --admin-socket",
            self.socket.display()
        ))
    }

    fn denied(&self) -> Failure {
        Failure::Failed(format!(
            "permission denied: the socket {} is open to the user that runs the server only",
            self.socket.display()
        ))
    }
}

/// What an error goes back to.
fn root(error: &reqwest::Error) -> &(dyn Error + 'static) {
    let mut root: &(dyn Error + 'static) = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root
}

/// Reads an answer in JSON; a failure is the server's own sentence, with its particulars.
///
/// # Errors
/// When the server refused, or did not answer in JSON.
fn judge(status: u16, body: &str) -> Result<Value> {
    let value: Value = serde_json::from_str(body)
        .map_err(|_| Failure::Failed(format!("the server answered {status} without JSON")))?;
    judge_value(status, value)
}

fn judge_value(status: u16, value: Value) -> Result<Value> {
    match status {
        ..400 => Ok(value),
        404 => Err(Failure::NotFound(refusal(&value))),
        _ => Err(Failure::Failed(refusal(&value))),
    }
}

/// Why the server refused: each problem on a line, else its sentence; who is in the way, and what could be had
/// instead. A line break in what the server says makes no line: it could pass for one of ours.
fn refusal(answer: &Value) -> String {
    let mut lines = Vec::new();
    let problems = at(answer, "problems").as_array();
    for problem in problems.into_iter().flatten() {
        let (file, pointer) = (cleaned(problem, "file"), cleaned(problem, "pointer"));
        if !file.is_empty() && lines.is_empty() {
            lines.push("the package is not valid".to_owned());
        }
        let place = match pointer.as_str() {
            "" => file,
            pointer => format!("{file}#{pointer}"),
        };
        let line = format!("{place} {}", cleaned(problem, "message"));
        lines.push(line.trim_start().to_owned());
    }
    let listed = problems.map_or(0, Vec::len) as u64;
    let count = at(answer, "problem_count").as_u64();
    if let Some(more @ 1..) = count.and_then(|count| count.checked_sub(listed)) {
        lines.push(format!("and {more} more"));
    }
    if lines.is_empty() {
        lines.push(match cleaned(answer, "error").as_str() {
            "" => "the server refused".to_owned(),
            error => error.to_owned(),
        });
    }
    for (key, title) in [("users", "users"), ("alternatives", "other images")] {
        let names = cleaned(answer, key);
        if !names.is_empty() {
            lines.push(format!("{title}: {names}"));
        }
    }
    lines.join("\n")
}

/// A part of a path or query, safe whatever it contains.
pub fn escaped(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        judge(422, text).unwrap_err().to_string()
    }

    #[test]
    fn every_problem_of_a_refusal_is_shown_with_its_place() {
        let keys = r#"{"error":"no: 1","problems":[{"message":"a must be b"},{"message":"c"}]}"#;
        assert_eq!(refused(keys), "a must be b\nc");
        let many = r#"{"error":"no","problem_count":9,"problems":[{"message":"a must be b"}]}"#;
        assert_eq!(refused(many), "a must be b\nand 8 more");
        let package = r#"{"error":"the package is not valid","problems":[
            {"file":"a.json","pointer":"/b","message":"is bad"},{"file":"hash","pointer":"","message":"is missing"}]}"#;
        assert_eq!(
            refused(package),
            "the package is not valid\na.json#/b is bad\nhash is missing"
        );
        assert_eq!(refused(r#"{"error":"no"}"#), "no");
        assert!(refused("no JSON").contains("422 without JSON"));
    }

    #[test]
    fn line_breaks_of_a_server_make_no_lines() {
        let error = r#"{"error":"no\nerror: gone\u001b[2J\u202e","users":["a\r\nb"]}"#;
        let expected = "no\\nerror: gone\\u{1b}[2J\\u{202e}\nusers: a\\r\\nb";
        assert_eq!(refused(error), expected);
        let problems = r#"{"error":"","problems":[{"file":"a\nb","message":"c\nd"}]}"#;
        assert_eq!(refused(problems), "the package is not valid\na\\nb c\\nd");
    }

    #[test]
    fn l38_an_image_in_use_is_refused_with_users_and_alternatives() {
        let text = r#"{"error":"in use","users":["alice","bob"],"alternatives":["a:2"]}"#;
        assert_eq!(
            refused(text),
            "in use\nusers: alice, bob\nother images: a:2"
        );
    }
}
