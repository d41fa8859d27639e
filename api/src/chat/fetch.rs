//! Files of an agent, fetched at once: their addresses end with the agent's start.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Request;
use http::header::{AUTHORIZATION, HOST};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use schema::home::conversations::ConversationId;
use schema::home::workspace::Workspace;
use secrecy::ExposeSecret;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::protocol::SentFile;
use super::store::picture_type;
use super::target::{ChatPlace, find_target, has_address};
use crate::auth::Account;
use crate::deps::Dependencies;
use crate::error::Result;
use crate::quota::Room;

/// Longest file that is fetched, in bytes.
const LONGEST: u64 = 64 * 1024 * 1024;
/// Longest time for a file.
const TIME: Duration = Duration::from_secs(120);
/// Longest time without a byte.
const STALLED: Duration = Duration::from_secs(30);
/// Bytes that are written at once.
const PIECE: usize = 256 * 1024;
/// Longest name of a stored file, in bytes.
const LONGEST_NAME: usize = 100;

const GONE: &str = "the agent is not running any more";

/// A file to fetch.
pub(super) struct Wanted {
    /// Conversation that it belongs to.
    pub(super) id: ConversationId,
    /// Entry that it belongs to.
    pub(super) entry: u64,
    /// Place among the entry's files.
    pub(super) index: usize,
    /// Path at the agent.
    pub(super) path: String,
    /// The file as it was announced.
    pub(super) file: SentFile,
}

/// Fetches a file into its conversation's folder; the outcome says why when it could not.
pub(super) async fn fetch_file(deps: &Dependencies, account: &Account, wanted: Wanted) -> SentFile {
    let mut file = wanted.file.clone();
    let fetched = match timeout(TIME, fetch_to_folder(deps, account, &wanted)).await {
        Ok(fetched) => fetched,
        Err(_) => Err(format!("it did not arrive within {} s", TIME.as_secs())),
    };
    match fetched {
        Ok(stored) => {
            file.picture = stored.kind.is_some();
            file.content_type = stored.kind.unwrap_or("application/octet-stream").to_owned();
            file.size = Some(stored.size);
            file.file = Some(stored.name);
        }
        Err(cause) => file.error = Some(cause),
    }
    file
}

struct Stored {
    name: String,
    size: u64,
    kind: Option<&'static str>,
}

async fn fetch_to_folder(
    deps: &Dependencies,
    account: &Account,
    wanted: &Wanted,
) -> Result<Stored, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let target = find_target(deps, &account.uid)
        .await
        .map_err(|error| said(&error))?;
    let place = target.place.ok_or(GONE)?;
    if !has_address(deps, &account.uid, place.address.ip()).await {
        return Err(GONE.to_owned());
    }
    let mut body = request_file(&deps.tasks, &place, &wanted.path)
        .await
        .map_err(|error| match error {
            Refusal::Status(status) => format!("the agent answered {status}"),
            Refusal::Io(error) => format!("the agent could not be asked: {error}"),
        })?;
    let mut room = Room::of(deps, &account.uid)
        .await
        .map_err(|error| said(&error))?;
    let workspace = deps
        .files
        .open(account)
        .await
        .map_err(|error| said(&error))?;
    let opened = std::sync::Arc::clone(&workspace);
    let incoming = deps.files.run(account, move || opened.incoming()).await;
    let mut incoming = incoming
        .map_err(|error| said(&error))?
        .map_err(|error| said(&error))?;
    let (mut size, mut head) = (0, Vec::new());
    let mut waiting = BytesMut::new();
    loop {
        let frame = timeout(STALLED, body.frame()).await;
        let frame = frame.map_err(|_| "the agent stopped sending it")?;
        let is_last = frame.is_none();
        let bytes = match frame.transpose() {
            Ok(frame) => frame.and_then(|frame| frame.into_data().ok()),
            Err(error) => return Err(format!("it broke off: {error}")),
        };
        let bytes = bytes.unwrap_or_default();
        size += bytes.len() as u64;
        if size > LONGEST {
            return Err(format!("it is longer than {} MiB", LONGEST / 1024 / 1024));
        }
        if let Some(room) = &mut room {
            room.take(bytes.len() as u64)
                .map_err(|error| said(&error))?;
        }
        if head.len() < 64 {
            head.extend_from_slice(&bytes[..bytes.len().min(64)]);
        }
        // An agent may send a byte at a time: a call to the file system for each would keep the others waiting.
        waiting.extend_from_slice(&bytes);
        if waiting.len() >= PIECE || is_last {
            let piece = waiting.split();
            let written = deps.files.run(account, move || {
                let written = incoming.write(&piece);
                (incoming, written)
            });
            let (still, written) = written.await.map_err(|error| said(&error))?;
            incoming = still;
            written.map_err(|error| said(&error))?;
        }
        if is_last {
            break;
        }
    }
    let name = stored_name(wanted);
    let (id, placed) = (wanted.id.clone(), name.clone());
    let work = move || place_file(&workspace, &id, &placed, incoming);
    let placed = deps
        .files
        .run(account, work)
        .await
        .map_err(|error| said(&error))?;
    placed?;
    Ok(Stored {
        name,
        size,
        kind: picture_type(&head).filter(|kind| *kind != "image/bmp"),
    })
}

fn place_file(
    workspace: &Workspace,
    id: &ConversationId,
    name: &str,
    incoming: schema::home::workspace::Incoming,
) -> Result<(), String> {
    let place = || {
        let received = incoming.finish()?;
        match workspace.open_conversation(id)? {
            Some(folder) => folder.place_file(name, &received).map(|()| true),
            None => Ok(false),
        }
    };
    match place() {
        Ok(true) => Ok(()),
        Ok(false) => Err("the conversation was deleted".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The name under which a file is stored: unique in its conversation, and plain.
fn stored_name(wanted: &Wanted) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ');
    let name = wanted.file.name.chars();
    let mut name: String = name.map(|c| if plain(c) { c } else { '_' }).collect();
    while name.len() > LONGEST_NAME {
        name.remove(0);
    }
    format!("{}-{}-{name}", wanted.entry, wanted.index)
}

enum Refusal {
    Status(u16),
    Io(io::Error),
}

async fn request_file(
    tasks: &TaskTracker,
    place: &ChatPlace,
    path: &str,
) -> Result<hyper::body::Incoming, Refusal> {
    let io = |error: hyper::Error| Refusal::Io(io::Error::other(error));
    let connecting = timeout(Duration::from_secs(10), TcpStream::connect(place.address)).await;
    let stream = connecting
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        .map_err(Refusal::Io)?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(io)?;
    tasks.spawn(async move {
        // Its end is seen where the body is read.
        let _ = connection.await;
    });
    let request = Request::get(path)
        .header(HOST, place.address.to_string())
        .header(
            AUTHORIZATION,
            format!("Bearer {}", place.token.expose_secret()),
        )
        .body(Empty::<Bytes>::new())
        .map_err(|error| Refusal::Io(io::Error::other(error)))?;
    let response = sender.send_request(request).await.map_err(io)?;
    match response.status().is_success() {
        true => Ok(response.into_body()),
        false => Err(Refusal::Status(response.status().as_u16())),
    }
}
