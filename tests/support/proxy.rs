//! A proxy between the service and its engine that can break what goes through it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What the proxy does to connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Passes everything.
    Pass,
    /// Keeps event streams open, and lets nothing through them.
    StallEvents,
    /// Ends event streams, and lets none be opened.
    CutEvents,
    /// Ends all connections, and takes no new one.
    Refuse,
}

/// A proxy on a Unix socket.
pub struct Proxy {
    path: PathBuf,
    mode: watch::Sender<Mode>,
    event_streams: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// Listens on `path` and passes everything to the socket `engine`.
    pub fn new(path: &Path, engine: &Path) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let mode = watch::Sender::new(Mode::Pass);
        let event_streams = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        let (modes, count) = (mode.subscribe(), Arc::clone(&event_streams));
        let engine = engine.to_owned();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let connection = Connection {
                    modes: modes.clone(),
                    event_streams: Arc::clone(&count),
                };
                let engine = engine.clone();
                connections.spawn(async move {
                    // However it ends, both sides are closed.
                    let _ = connection.serve(client, &engine).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            path: path.to_owned(),
            mode,
            event_streams,
            _tasks: tasks,
        }
    }

    /// The address, as `--docker-host` takes it.
    pub fn host(&self) -> String {
        format!("unix://{}", self.path.display())
    }

    /// From now on.
    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// How many event streams go through it now.
    pub fn event_streams(&self) -> usize {
        self.event_streams.load(Ordering::SeqCst)
    }
}

struct Connection {
    modes: watch::Receiver<Mode>,
    event_streams: Arc<AtomicUsize>,
}

/// Counts one event stream while it lives.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Connection {
    async fn serve(mut self, client: UnixStream, engine: &Path) -> io::Result<()> {
        if *self.modes.borrow() == Mode::Refuse {
            return Ok(());
        }
        let server = UnixStream::connect(engine).await?;
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let (mut upward, mut downward) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
        let mut events: Option<Counted> = None;
        loop {
            let mode = *self.modes.borrow_and_update();
            if mode == Mode::Refuse {
                return Ok(());
            }
            if events.is_some() && mode == Mode::CutEvents {
                return Ok(());
            }
            let stalled = events.is_some() && mode == Mode::StallEvents;
            tokio::select! {
                changed = self.modes.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                }
                count = from_client.read(&mut upward) => {
                    let bytes = &upward[..count?];
                    if bytes.is_empty() {
                        return Ok(());
                    }
                    if events.is_none() && asks_for_events(bytes) {
                        self.event_streams.fetch_add(1, Ordering::SeqCst);
                        events = Some(Counted(Arc::clone(&self.event_streams)));
                        if *self.modes.borrow() == Mode::CutEvents {
                            return Ok(());
                        }
                    }
                    to_server.write_all(bytes).await?;
                }
                count = from_server.read(&mut downward), if !stalled => {
                    let bytes = &downward[..count?];
                    if bytes.is_empty() {
                        return Ok(());
                    }
                    to_client.write_all(bytes).await?;
                }
            }
        }
    }
}

/// Whether a piece of a request is the head of one for the event stream.
fn asks_for_events(piece: &[u8]) -> bool {
    let line = piece.split(|&byte| byte == b'\r').next().unwrap_or(piece);
    line.starts_with(b"GET ") && line.windows(8).any(|part| part == b"/events?")
}
