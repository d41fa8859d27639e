//! `GET /api/admin/skills/download`: a skill as a zip.

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use schema::ids::SkillName;
use schema::skill_store::SkillStoreError;
use serde::Deserialize;
use tokio::sync::mpsc;
use utoipa::ToSchema;

use super::{NO_SKILL, present};
use crate::answer::Download;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::route::{Area, Route};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("skills_download", "/api/admin/skills/download", download)
            .title(Area::Skills, "Download a skill as a zip file")
            .about(
                "The version in effect, or the one of `number`. The same version is the same \
                 bytes, and uploading it again gives the same digest.",
            )
            .fails(&[NO_SKILL]),
    ]
}

/// Which version of which skill.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = SkillDownload)]
pub struct Which {
    /// Its name.
    name: SkillName,
    /// The number of a version; default: the one in effect.
    #[schema(example = 1)]
    number: Option<i64>,
}

/// Bytes that are sent at once.
const PIECE: usize = 64 * 1024;

/// `GET /api/admin/skills/download`.
///
/// # Errors
/// 404 without such a skill or version.
async fn download(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Download> {
    let Which { name, number } = input.params;
    let mut snapshot = deps.db.snapshot().await?;
    let row = present(&mut snapshot, &name).await?;
    let versions = schema::skill::versions(&mut snapshot, &row.uid).await?;
    drop(snapshot);
    let number = number.unwrap_or(row.version.number);
    let version = versions
        .into_iter()
        .find(|version| version.number == number);
    let missing = || ApiError::not_found(format!("version {number} of skill {name}"));
    let digest = version.ok_or_else(missing)?.digest;
    let store = Arc::clone(&deps.skills);
    let there = {
        let (store, name, digest) = (Arc::clone(&store), row.name.clone(), digest.clone());
        tokio::task::spawn_blocking(move || store.contains(&name, &digest)).await
    };
    if !there
        .map_err(ApiError::internal)?
        .map_err(ApiError::internal)?
    {
        return Err(missing());
    }
    let (sender, receiver) = mpsc::channel(2);
    let skill = row.name.clone();
    // Whoever reads slowly holds up a thread, and no more than two pieces of memory.
    deps.tasks.spawn_blocking(move || {
        let mut out = Pieces::new(sender.clone());
        let packed = store.write_zip(&skill, &digest, &mut out);
        let ended = packed.and_then(|_| {
            out.flush().map_err(|source| SkillStoreError::Io {
                action: "sending",
                path: skill.as_str().into(),
                source,
            })
        });
        if let Err(error) = ended {
            let _ = sender.blocking_send(Err(io::Error::other(error)));
        }
    });
    let pieces = futures::stream::unfold(receiver, |mut receiver| async move {
        let piece = receiver.recv().await?;
        Some((piece, receiver))
    });
    let kind = HeaderValue::from_static("application/zip");
    Ok(Download::new(kind, &format!("{}.zip", row.name), pieces))
}

/// Collects what is written into pieces.
struct Pieces {
    piece: Vec<u8>,
    sender: mpsc::Sender<io::Result<Bytes>>,
}

impl Pieces {
    fn new(sender: mpsc::Sender<io::Result<Bytes>>) -> Self {
        Self {
            piece: Vec::with_capacity(PIECE),
            sender,
        }
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.sender.blocking_send(Ok(piece.into())).map_err(gone)
    }
}
