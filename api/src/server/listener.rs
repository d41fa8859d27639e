//! Where connections come from: TCP with or without TLS, and the admin socket.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::request::{Peer, Surface};
use super::tls::Tls;

/// Why a listener could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address can't be bound.
    #[error("{address} can't be listened on")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// Another process answers on the socket.
    #[error("{0} is in use by a running service")]
    SocketInUse(PathBuf),
    /// Something that is not a socket stands at the path.
    #[error("{0} exists and is not a socket")]
    NotASocket(PathBuf),
    /// The socket can't be made.
    #[error("the socket {path} can't be made")]
    Socket {
        /// The path.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

enum Source {
    Tcp {
        listener: TcpListener,
        tls: Option<Tls>,
        surface: Surface,
    },
    Unix {
        listener: UnixListener,
        path: PathBuf,
        /// Device and inode of our socket, so that a successor's is not removed.
        identity: Option<(u64, u64)>,
    },
}

/// A bound listener.
pub struct Listener(Source);

/// An accepted connection.
pub(super) struct Incoming {
    pub(super) peer: Peer,
    pub(super) transport: Transport,
}

pub(super) enum Transport {
    Tcp(TcpStream),
    Tls(TcpStream, Tls),
    Unix(UnixStream),
}

impl Listener {
    /// Binds a TCP address. `surface` says which routes it serves.
    ///
    /// # Errors
    /// When the address can't be bound.
    pub async fn tcp(
        address: SocketAddr,
        tls: Option<Tls>,
        surface: Surface,
    ) -> Result<Self, ListenError> {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| ListenError::Bind { address, source })?;
        Ok(Self(Source::Tcp {
            listener,
            tls,
            surface,
        }))
    }

    /// Makes the admin socket at `path`, mode 0600 from the first moment it can be reached. A
    /// socket left behind by a dead process is replaced; one that answers is not.
    ///
    /// # Errors
    /// When the path is in use, is no socket, or can't be written.
    pub async fn admin_socket(path: &Path) -> Result<Self, ListenError> {
        let path = path.to_owned();
        let bound = tokio::task::spawn_blocking(move || {
            let listener = bind_private(&path)?;
            let identity = identity_of(&path);
            Ok((listener, path, identity))
        });
        let (listener, path, identity) = match bound.await {
            Ok(bound) => bound?,
            Err(join) => {
                return Err(ListenError::Socket {
                    path: PathBuf::new(),
                    source: io::Error::other(join),
                });
            }
        };
        let listener = UnixListener::from_std(listener).map_err(|source| ListenError::Socket {
            path: path.clone(),
            source,
        })?;
        Ok(Self(Source::Unix {
            listener,
            path,
            identity,
        }))
    }

    /// The bound TCP address, which has the port when 0 was requested; `None` for a socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match &self.0 {
            Source::Tcp { listener, .. } => listener.local_addr().ok(),
            Source::Unix { .. } => None,
        }
    }

    pub(super) async fn accept(&mut self) -> io::Result<Incoming> {
        match &self.0 {
            Source::Tcp {
                listener,
                tls,
                surface,
            } => {
                let (stream, addr) = listener.accept().await?;
                // Answers are small and waited for.
                stream.set_nodelay(true)?;
                keep_alive(&stream)?;
                let transport = match tls {
                    Some(tls) => Transport::Tls(stream, tls.clone()),
                    None => Transport::Tcp(stream),
                };
                Ok(Incoming {
                    peer: Peer {
                        addr: Some(addr),
                        socket_uid: None,
                        encrypted: tls.is_some(),
                        surface: *surface,
                    },
                    transport,
                })
            }
            Source::Unix { listener, .. } => {
                let (stream, _) = listener.accept().await?;
                let socket_uid = stream.peer_cred().ok().map(|cred| cred.uid());
                Ok(Incoming {
                    peer: Peer {
                        addr: None,
                        socket_uid,
                        encrypted: false,
                        surface: Surface::AdminSocket,
                    },
                    transport: Transport::Unix(stream),
                })
            }
        }
    }

    /// Stops listening; removes the socket's file if it is still ours.
    pub(super) fn close(self) {
        if let Source::Unix { path, identity, .. } = &self.0
            && identity.is_some()
            && identity_of(path) == *identity
            && let Err(error) = fs::remove_file(path)
        {
            tracing::warn!(%error, "the admin socket could not be removed");
        }
    }
}

/// How long a peer may leave what we sent unread, in milliseconds.
const UNREAD: u32 = 60_000;

/// Lets the system find out about peers that vanished, after about two minutes, and about those that
/// never read what they asked for: the kernel closes a connection whose data nobody has taken for
/// `TCP_USER_TIMEOUT` (tcp(7)), a window that stays shut included.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(60))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(15))?;
    sockopt::set_tcp_keepcnt(stream, 4)?;
    sockopt::set_tcp_user_timeout(stream, UNREAD)?;
    Ok(())
}

fn identity_of(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::symlink_metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

/// Binds in a directory that only we can enter, sets the mode there and moves the socket to its
/// place: so nobody can connect before the mode is right.
fn bind_private(path: &Path) -> Result<std::os::unix::net::UnixListener, ListenError> {
    let failed = |source| ListenError::Socket {
        path: path.to_owned(),
        source,
    };
    refuse_live(path)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    let private = PrivateDirectory::create(directory).map_err(failed)?;
    let temporary = private.0.join("s");
    let listener = std::os::unix::net::UnixListener::bind(&temporary).map_err(failed)?;
    fs::set_permissions(&temporary, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)?;
    Ok(listener)
}

fn refuse_live(path: &Path) -> Result<(), ListenError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(ListenError::Socket {
            path: path.to_owned(),
            source,
        }),
        Ok(meta) if !meta.file_type().is_socket() => Err(ListenError::NotASocket(path.to_owned())),
        Ok(_) => match StdUnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            // Answered, or owned by somebody whose socket we may not even try.
            Ok(_) | Err(_) => Err(ListenError::SocketInUse(path.to_owned())),
        },
    }
}

/// A directory of mode 0700, removed when dropped.
struct PrivateDirectory(PathBuf);

impl PrivateDirectory {
    fn create(parent: &Path) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        // Short: the path of a socket has at most 107 bytes.
        let path = parent.join(format!(".s{:x}", std::process::id()));
        // Left over by a dead process of the same id.
        let _ = fs::remove_dir_all(&path);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[tokio::test]
    async fn the_admin_socket_is_for_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        let listener = Listener::admin_socket(&path).await.unwrap();
        let mode = fs::metadata(&path).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o600);
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "nothing else is left"
        );
        listener.close();
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "a dead process leaves its socket");
        let live = Listener::admin_socket(&path).await.unwrap();
        let second = Listener::admin_socket(&path).await;
        assert!(matches!(second, Err(ListenError::SocketInUse(_))));
        StdUnixStream::connect(&path).unwrap();
        live.close();
    }

    #[tokio::test]
    async fn a_file_that_is_no_socket_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        fs::write(&path, "precious").unwrap();
        let refused = Listener::admin_socket(&path).await;
        assert!(matches!(refused, Err(ListenError::NotASocket(_))));
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }

    #[tokio::test]
    async fn closing_does_not_remove_a_successors_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        let old = Listener::admin_socket(&path).await.unwrap();
        fs::rename(&path, dir.path().join("old.sock")).unwrap();
        let _new = Listener::admin_socket(&path).await.unwrap();
        old.close();
        assert!(path.exists());
    }

    #[tokio::test]
    async fn l63_a_peer_that_never_reads_is_given_up_by_the_system() {
        let mut listener = Listener::tcp(([127, 0, 0, 1], 0).into(), None, Surface::Public)
            .await
            .unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let Transport::Tcp(stream) = listener.accept().await.unwrap().transport else {
            panic!("not TCP");
        };
        let timeout = rustix::net::sockopt::tcp_user_timeout(&stream).unwrap();
        assert_eq!(timeout, UNREAD);
    }

    #[tokio::test]
    async fn a_taken_address_is_an_error_that_names_it() {
        let first = Listener::tcp(([127, 0, 0, 1], 0).into(), None, Surface::Public)
            .await
            .unwrap();
        let address = first.local_addr().unwrap();
        let second = Listener::tcp(address, None, Surface::Public).await;
        let Err(error) = second else {
            panic!("bound twice");
        };
        assert!(error.to_string().contains(&address.to_string()));
    }
}
