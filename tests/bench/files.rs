//! Files of a workspace, up and down, against a process that moves the same bytes over the same loopback interface to and from
//! the same disk; one at a time, and sixteen at once. And the first page of a directory of 100,000 entries, against reading all
//! their names and asking the system about those of the page. `AGENTYARD_BENCH_DOWNLOAD_MIB` changes the length of
//! what is downloaded (1,024).

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, StatxFlags};

use crate::seconds;
use crate::support::{self, Client, Service, Stage};

const MIB: usize = 1024 * 1024;
const UPLOAD: usize = 32 * MIB;
const ENTRIES: usize = 100_000;
/// Those of a page.
const PAGE: usize = 20;
const PIECE: usize = 256 * 1024;
const ROUNDS: usize = 5;
/// Most transfers at once.
const AT_ONCE: usize = 16;

pub async fn run() {
    let length = std::env::var("AGENTYARD_BENCH_DOWNLOAD_MIB").ok();
    let length = length.and_then(|text| text.parse().ok()).unwrap_or(1024) * MIB;
    let stage = Stage::new();
    let bench = Bench::open(&stage).await;
    println!("files: up {} MiB, down {} MiB", UPLOAD / MIB, length / MIB);
    for at_once in [1, AT_ONCE] {
        bench.uploads(at_once);
    }
    bench.fill(length);
    for at_once in [1, AT_ONCE] {
        // As many bytes in all.
        bench.downloads(at_once, length / at_once);
    }
    bench.listing();
}

/// The program with users, and a bare server beside it that works in a directory of the same disk.
struct Bench {
    service: Service,
    /// As many as there are uploads at once: one user may not make so many changes at once.
    users: Vec<User>,
    bare: SocketAddr,
    bare_directory: PathBuf,
}

struct User {
    /// What the user's requests bear.
    credentials: String,
    workspace: PathBuf,
}

impl User {
    async fn new(service: &Service, admin: &Client, name: String, data: &Path) -> Self {
        let form = [("username", name.as_str()), ("wait", "0")];
        let created = admin.post("/api/admin/users/create", &form).await;
        let password = created.expect(202)["password"].as_str().unwrap().to_owned();
        let workspace = data.join("users").join(&name).join(".agent/workspace");
        support::until("the workspace is made", support::seconds(30), async || {
            workspace.is_dir()
        })
        .await;
        let browser = service.client().signed_in(&name, &password).await;
        let credentials = browser.credentials();
        let credentials = credentials.map(|(name, value)| format!("{name}: {value}\r\n"));
        Self {
            credentials: credentials.concat(),
            workspace,
        }
    }
}

/// A request: where to, what goes before the bytes of a file and after them, and how the answer begins.
struct Request {
    to: SocketAddr,
    before: String,
    after: &'static str,
    good: &'static str,
}

impl Bench {
    async fn open(stage: &Stage) -> Self {
        let service = stage.alone().start().await;
        let admin = service.admin().await;
        let mut users = Vec::new();
        for number in 0..AT_ONCE {
            users.push(User::new(&service, &admin, format!("bench{number}"), &stage.data()).await);
        }
        let bare_directory = stage.path().join("bare");
        fs::create_dir(&bare_directory).unwrap();
        Self {
            service,
            users,
            bare: bare_server(bare_directory.clone()),
            bare_directory,
        }
    }

    fn first(&self) -> &User {
        &self.users[0]
    }

    fn get(&self, path: &str) -> Request {
        let to = self.service.address();
        let credentials = &self.first().credentials;
        Request {
            to,
            before: format!(
                "GET {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n{credentials}\r\n"
            ),
            after: "",
            good: "HTTP/1.1 200 ",
        }
    }

    fn put(&self, user: &User, name: &str) -> Request {
        const AFTER: &str = "\r\n--B--\r\n";
        let to = self.service.address();
        let part = format!(
            "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n"
        );
        let length = part.len() + UPLOAD + AFTER.len();
        let credentials = &user.credentials;
        Request {
            to,
            before: format!(
                "POST /api/files/upload HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n{credentials}\
                 Content-Type: multipart/form-data; boundary=B\r\nContent-Length: {length}\r\n\r\n{part}"
            ),
            after: AFTER,
            good: "HTTP/1.1 200 ",
        }
    }

    /// The same of the bare server.
    fn bare(&self, direction: &str, name: &str, length: usize) -> Request {
        Request {
            to: self.bare,
            before: format!("{direction} {name} {length}\n"),
            after: "",
            good: "good",
        }
    }

    fn uploads(&self, at_once: usize) {
        let names: Vec<String> = (0..at_once).map(|n| format!("up{n}")).collect();
        let [ours, bare]: [Vec<Request>; 2] = [
            (self.users.iter().zip(&names))
                .map(|(user, name)| self.put(user, name))
                .collect(),
            names
                .iter()
                .map(|name| self.bare("up", name, UPLOAD))
                .collect(),
        ];
        let remove = || {
            for (user, name) in self.users.iter().zip(&names) {
                let _ = fs::remove_file(user.workspace.join(name));
                let _ = fs::remove_file(self.bare_directory.join(name));
            }
        };
        let (ours, memory, bare) = self.compare(&ours, &bare, UPLOAD, 0, remove);
        shown("up", at_once, at_once * UPLOAD, ours, bare, memory);
    }

    /// Makes what is downloaded, and reads it once: both sides then take it from memory.
    fn fill(&self, length: usize) {
        let piece: Vec<u8> = (0..MIB).map(|n| (n % 251) as u8).collect();
        for directory in [&self.first().workspace, &self.bare_directory] {
            let mut file = File::create(directory.join("down")).unwrap();
            for _ in 0..length / MIB {
                file.write_all(&piece).unwrap();
            }
            file.sync_all().unwrap();
        }
    }

    fn downloads(&self, at_once: usize, length: usize) {
        let whole = self.get("/api/files/download?path=down");
        let range = format!("Range: bytes=0-{}\r\n\r\n", length - 1);
        let before = whole.before.strip_suffix("\r\n").unwrap();
        let ours: Vec<Request> = (0..at_once)
            .map(|_| Request {
                before: format!("{before}{range}"),
                good: "HTTP/1.1 206 ",
                ..self.get("")
            })
            .collect();
        let bare: Vec<Request> = (0..at_once)
            .map(|_| self.bare("down", "down", length))
            .collect();
        let (ours, memory, bare) = self.compare(&ours, &bare, 0, length, || ());
        shown("down", at_once, at_once * length, ours, bare, memory);
    }

    /// The best times of both, in turns so that both meet the same machine, and the memory that the program took more of.
    fn compare(
        &self,
        ours: &[Request],
        bare: &[Request],
        up: usize,
        down: usize,
        between: impl Fn(),
    ) -> (Duration, u64, Duration) {
        let (mut best, mut best_bare) = (Duration::MAX, Duration::MAX);
        let mut memory = 0;
        // Threads and caches that the first transfers make stay: no transfer's own.
        all(ours, up, down);
        for _ in 0..ROUNDS {
            between();
            best_bare = best_bare.min(all(bare, up, down));
            self.service.forget_peak();
            let before = self.service.memory();
            best = best.min(all(ours, up, down));
            memory = memory.max(self.service.peak_memory().saturating_sub(before));
        }
        between();
        (best, memory / ours.len() as u64, best_bare)
    }

    fn listing(&self) {
        let directory = self.first().workspace.join("many");
        fs::create_dir(&directory).unwrap();
        for number in 0..ENTRIES {
            File::create(directory.join(format!("Entry number {number}.txt"))).unwrap();
        }
        let ours = [self.get("/api/files?path=many")];
        let (mut best, mut best_bare) = (Duration::MAX, Duration::MAX);
        self.service.forget_peak();
        let before = self.service.memory();
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            assert_eq!(look(&directory), ENTRIES);
            best_bare = best_bare.min(begin.elapsed());
            best = best.min(all(&ours, 0, 0));
        }
        let memory = self.service.peak_memory().saturating_sub(before);
        println!("  a page of {ENTRIES} entries");
        println!("    names, and {PAGE} asked about  {}", seconds(best_bare));
        println!(
            "    ours                       {}   × {:.2}   {} KiB",
            seconds(best),
            best.as_secs_f64() / best_bare.as_secs_f64(),
            memory / 1024
        );
    }
}

fn shown(what: &str, at_once: usize, bytes: usize, ours: Duration, bare: Duration, memory: u64) {
    let rate = |time: Duration| bytes as f64 / time.as_secs_f64() / MIB as f64;
    println!(
        "  {what:<4} {at_once:>2} at once   bare {} {:>6.0} MiB/s   ours {} {:>6.0} MiB/s   ratio {:.2}   {} KiB each",
        seconds(bare),
        rate(bare),
        seconds(ours),
        rate(ours),
        bare.as_secs_f64() / ours.as_secs_f64(),
        memory / 1024
    );
}

/// How long all of these take at once.
fn all(requests: &[Request], up: usize, down: usize) -> Duration {
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for request in requests {
            scope.spawn(move || exchange(request, up, down));
        }
    });
    begin.elapsed()
}

/// Sends a request with so many bytes, and reads the answer, which has at least so many.
fn exchange(request: &Request, up: usize, down: usize) {
    let mut piece = vec![b'x'; PIECE];
    let mut stream = TcpStream::connect(request.to).unwrap();
    stream.write_all(request.before.as_bytes()).unwrap();
    let mut left = up;
    while left > 0 {
        let length = left.min(piece.len());
        stream.write_all(&piece[..length]).unwrap();
        left -= length;
    }
    stream.write_all(request.after.as_bytes()).unwrap();
    let mut begin = Vec::new();
    let mut received = 0;
    loop {
        let length = stream.read(&mut piece).unwrap();
        if length == 0 {
            break;
        }
        if begin.len() < request.good.len() {
            begin.extend_from_slice(&piece[..length]);
        }
        received += length;
    }
    let begin = String::from_utf8_lossy(&begin);
    assert!(begin.starts_with(request.good), "{begin}");
    assert!(received >= down, "{received}");
}

/// The least that a server does: it writes to a file what comes, or sends what is in one.
fn bare_server(directory: PathBuf) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let directory = directory.clone();
            std::thread::spawn(move || bare_answer(&directory, &mut stream.unwrap()));
        }
    });
    address
}

fn bare_answer(directory: &Path, stream: &mut TcpStream) {
    let mut line = Vec::new();
    let mut byte = [0];
    while byte != *b"\n" {
        stream.read_exact(&mut byte).unwrap();
        line.push(byte[0]);
    }
    let line = String::from_utf8(line).unwrap();
    let [direction, name, length] = *line.split_whitespace().collect::<Vec<_>>() else {
        panic!("{line}");
    };
    let path = directory.join(name);
    let length = length.parse().unwrap();
    match direction {
        "up" => {
            let mut file = File::create(path).unwrap();
            copy(stream, &mut file, length);
            file.sync_all().unwrap();
            File::open(directory).unwrap().sync_all().unwrap();
            stream.write_all(b"good").unwrap();
        }
        _ => {
            stream.write_all(b"good").unwrap();
            copy(&mut File::open(path).unwrap(), stream, length);
        }
    }
}

fn copy(from: &mut impl Read, to: &mut impl Write, length: usize) {
    let mut piece = vec![0; PIECE];
    let mut left = length;
    while left > 0 {
        let most = left.min(piece.len());
        let length = from.read(&mut piece[..most]).unwrap();
        assert_ne!(length, 0);
        to.write_all(&piece[..length]).unwrap();
        left -= length;
    }
}

/// Reads all names of a directory, and asks about those of a page; gives how many there are.
fn look(directory: &Path) -> usize {
    let directory = File::open(directory).unwrap();
    let mut count = 0;
    let mut page = Vec::new();
    for entry in Dir::read_from(&directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if name.to_bytes().starts_with(b".") {
            continue;
        }
        count += 1;
        if page.len() < PAGE {
            page.push(name.to_owned());
        }
    }
    for name in page {
        let (flags, mask) = (AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS);
        rustix::fs::statx(&directory, name, flags, mask).unwrap();
    }
    count
}
