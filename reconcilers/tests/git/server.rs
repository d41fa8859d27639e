//! A server that speaks Git's smart HTTP with `git http-backend`, and misbehaves where a test wants it to.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;

/// What it does with a request.
#[derive(Debug, Clone)]
pub enum Answer {
    /// What Git does.
    Serve,
    /// Sends on to there.
    Redirect(String),
    /// This status.
    Status(u16),
    /// Something that is no repository.
    Page,
    /// What Git does, but so many bytes of a pack, and then nothing until the server ends.
    StallAfter(usize),
    /// What Git does, so many bytes every 20 ms.
    Slow(usize),
    /// What Git does for the first question, and then this status.
    ThenStatus(u16),
}

/// One request.
#[derive(Debug, Clone)]
pub struct Asked {
    pub path: String,
    pub head: String,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

struct Shared {
    repositories: PathBuf,
    answer: Mutex<Answer>,
    authorization: Option<String>,
    asked: Mutex<Vec<Asked>>,
    ended: AtomicBool,
}

/// A server on loopback; it ends when it is dropped.
pub struct Server {
    pub port: u16,
    shared: Arc<Shared>,
    tls: bool,
}

/// A certificate for this machine, by an authority of its own.
pub struct Authority {
    pub pem: String,
    config: Arc<rustls::ServerConfig>,
}

impl Authority {
    pub fn new() -> Self {
        install_provider();
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        parameters.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign];
        let authority = parameters.self_signed(&key).unwrap();
        let issuer = rcgen::Issuer::new(parameters, key);
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let own = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(names).unwrap();
        let certificate = certificate.signed_by(&own, &issuer).unwrap();
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(own.serialize_der()).unwrap(),
            )
            .unwrap();
        let pem = authority.pem();
        let config = Arc::new(config);
        Self { pem, config }
    }
}

/// What the driver and this server need once in a process.
pub fn install_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

impl Server {
    /// Serves the repositories in a directory; with `authorization` only to who sends this header.
    pub fn new(
        repositories: &Path,
        authority: Option<&Authority>,
        authorization: Option<&str>,
    ) -> Self {
        install_provider();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            repositories: repositories.to_owned(),
            answer: Mutex::new(Answer::Serve),
            authorization: authorization.map(str::to_owned),
            asked: Mutex::default(),
            ended: AtomicBool::new(false),
        });
        let tls = authority.map(|authority| Arc::clone(&authority.config));
        let (its, has_tls) = (Arc::clone(&shared), tls.is_some());
        thread::spawn(move || {
            for stream in listener.incoming() {
                if its.ended.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(stream), shared, tls) = (stream, Arc::clone(&its), tls.clone()) else {
                    continue;
                };
                thread::spawn(move || match tls {
                    Some(config) => {
                        let connection = rustls::ServerConnection::new(config).unwrap();
                        let mut stream = rustls::StreamOwned::new(connection, stream);
                        shared.serve(&mut stream);
                        stream.conn.send_close_notify();
                        let _ = stream.flush();
                    }
                    None => shared.serve(&mut { stream }),
                });
            }
        });
        Self {
            port,
            shared,
            tls: has_tls,
        }
    }

    pub fn answer(&self, answer: Answer) {
        *self.shared.answer.lock().unwrap() = answer;
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// The address of a repository, at `localhost` when it has TLS.
    pub fn url(&self, name: &str) -> String {
        match self.tls {
            true => format!("https://localhost:{}/{name}", self.port),
            false => format!("http://127.0.0.1:{}/{name}", self.port),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn serve(&self, stream: &mut (impl Read + Write)) {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read_exact(&mut byte).is_err() {
                return;
            }
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let mut words = head.split(' ');
        let method = words.next().unwrap().to_owned();
        let path = words.next().unwrap().to_owned();
        let asked = Asked { path, head };
        self.asked.lock().unwrap().push(asked.clone());
        let body = body(stream, &asked);
        let answer = self.answer.lock().unwrap().clone();
        let plain = |status: u16, header: &str| {
            format!("HTTP/1.1 {status} X\r\n{header}Content-Length: 0\r\nConnection: close\r\n\r\n")
        };
        let is_first = method == "GET";
        let text = match &answer {
            Answer::Redirect(to) if is_first => plain(302, &format!("Location: {to}\r\n")),
            Answer::Status(status) => plain(*status, ""),
            Answer::ThenStatus(status) if !is_first => plain(*status, ""),
            Answer::Page => {
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi".to_owned()
            }
            _ if self.authorization.is_some() && asked.header("authorization") != self.authorization.as_deref() => {
                plain(401, "WWW-Authenticate: Basic realm=\"git\"\r\n")
            }
            _ => return self.backend(stream, &method, &asked, &body, &answer),
        };
        let _ = stream.write_all(text.as_bytes());
        let _ = stream.flush();
    }

    /// Runs Git's own CGI program.
    fn backend(
        &self,
        stream: &mut impl Write,
        method: &str,
        asked: &Asked,
        body: &[u8],
        answer: &Answer,
    ) {
        let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
        let mut command = Command::new("git");
        command
            .arg("http-backend")
            .env("GIT_PROJECT_ROOT", &self.repositories)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("PATH_INFO", path)
            .env("QUERY_STRING", query)
            .env("REQUEST_METHOD", method)
            .env("CONTENT_LENGTH", body.len().to_string())
            .env(
                "CONTENT_TYPE",
                asked.header("content-type").unwrap_or_default(),
            )
            .env("SERVER_PROTOCOL", "HTTP/1.1")
            .env("REMOTE_ADDR", "127.0.0.1")
            .env("REMOTE_USER", "somebody");
        for (header, variable) in [
            ("git-protocol", "GIT_PROTOCOL"),
            ("content-encoding", "HTTP_CONTENT_ENCODING"),
        ] {
            if let Some(value) = asked.header(header) {
                command.env(variable, value);
            }
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut output = child.stdout.take().unwrap();
        let body = body.to_vec();
        let feeder = thread::spawn(move || {
            let _ = input.write_all(&body);
        });
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && output.read_exact(&mut byte).is_ok() {
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let status = head
            .lines()
            .find_map(|line| line.strip_prefix("Status: "))
            .unwrap_or("200 OK")
            .to_owned();
        let _ = write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\n{head}");
        self.pass(stream, &mut output, asked, answer);
        let _ = child.kill();
        let _ = child.wait();
        let _ = feeder.join();
    }

    fn pass(
        &self,
        stream: &mut impl Write,
        output: &mut impl Read,
        asked: &Asked,
        answer: &Answer,
    ) {
        let is_pack = asked.path.ends_with("git-upload-pack") && !asked.path.contains('?');
        let mut piece = vec![
            0;
            match answer {
                Answer::Slow(rate) => *rate,
                _ => 16 * 1024,
            }
        ];
        let mut passed = 0;
        while let Ok(read) = output.read(&mut piece)
            && read > 0
        {
            if stream
                .write_all(&piece[..read])
                .and_then(|()| stream.flush())
                .is_err()
                || self.ended.load(Ordering::SeqCst)
            {
                return;
            }
            passed += read;
            match answer {
                Answer::StallAfter(bytes) if is_pack && passed >= *bytes => {
                    while !self.ended.load(Ordering::SeqCst) {
                        thread::sleep(Duration::from_millis(20));
                    }
                }
                Answer::Slow(_) if is_pack => thread::sleep(Duration::from_millis(20)),
                _ => {}
            }
        }
    }
}

fn body(stream: &mut impl Read, asked: &Asked) -> Vec<u8> {
    let mut body = Vec::new();
    if asked.header("transfer-encoding") == Some("chunked") {
        loop {
            let size = usize::from_str_radix(line(stream).trim(), 16).unwrap_or(0);
            let start = body.len();
            body.resize(start + size, 0);
            stream.read_exact(&mut body[start..]).unwrap();
            line(stream);
            if size == 0 {
                return body;
            }
        }
    }
    let length = asked
        .header("content-length")
        .and_then(|length| length.parse().ok());
    body.resize(length.unwrap_or(0), 0);
    let _ = stream.read_exact(&mut body);
    body
}

fn line(stream: &mut impl Read) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\n") && stream.read_exact(&mut byte).is_ok() {
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap()
}
