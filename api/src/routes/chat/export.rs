//! `GET /api/agent/chat/export`: a conversation as one file.

use std::io::{self, Write};

use http::HeaderValue;
use schema::home::conversations::{ConversationId, Folder};
use schema::ids::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;

use super::NO_CONVERSATION;
use super::history::read_folder;
use crate::answer::FileDownload;
use crate::chat::{Body, Entry, Log};
use crate::deps::Deps;
use crate::dispatch::OrdinaryUser;
use crate::error::Result;
use crate::input::Input;
use crate::pieces::Pieces;
use crate::reply::Reply;
use crate::route::{Area, Failure, Route};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("chat_export", "/api/agent/chat/export", export)
            .title(Area::Chat, "Export a conversation")
            .about("As Markdown, or as JSON Lines: one entry of `/api/chat.schema.json` in each.")
            .fails(&[NO_CONVERSATION, Failure::BUSY]),
    ]
}

/// Form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ChatExportFormat)]
enum Format {
    /// For reading.
    #[default]
    Markdown,
    /// For programs.
    Json,
}

/// A conversation to export.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ChatExportParams)]
pub struct Which {
    /// Its id.
    #[schema(value_type = String)]
    id: ConversationId,
    /// Form of the export; default: `markdown`.
    #[serde(default)]
    format: Format,
}

/// `GET /api/agent/chat/export`.
///
/// # Errors
/// 404 without it.
async fn export(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Which>,
    deps: Deps,
) -> Result<FileDownload> {
    let Which { id, format } = input.params;
    let turn = deps.files.zip(&session.account)?;
    let read = |folder: &Folder| {
        let mut log = Log::default();
        folder.read_lines(|line| log.take_line(line))?;
        Ok((folder.meta(), log))
    };
    let (meta, log) = read_folder(&deps, &session.account, id, read).await?;
    let title = match meta.title.trim() {
        "" => "conversation".to_owned(),
        title => title.to_owned(),
    };
    let extension = match format {
        Format::Markdown => "md",
        Format::Json => "jsonl",
    };
    let name = format!("{title}.{extension}");
    let pieces = Pieces::written(&deps, move |out| {
        let _turn = turn;
        match format {
            Format::Markdown => write_markdown(out, &title, log.entries()),
            Format::Json => log.entries().try_for_each(|entry| {
                serde_json::to_writer(&mut *out, entry)?;
                out.write_all(b"\n")
            }),
        }
    });
    Ok(FileDownload::new(Reply::download(
        HeaderValue::from_static("application/octet-stream"),
        &name,
        pieces,
    )))
}

fn write_markdown<'a>(
    out: &mut dyn Write,
    title: &str,
    entries: impl Iterator<Item = &'a Entry>,
) -> io::Result<()> {
    writeln!(out, "# {title}")?;
    for entry in entries {
        write_entry(out, entry.at, &entry.body)?;
    }
    Ok(())
}

fn write_entry(out: &mut dyn Write, at: Timestamp, body: &Body) -> io::Result<()> {
    let at = at.to_rfc3339();
    match body {
        Body::User {
            text, attachments, ..
        } => {
            writeln!(out, "\n## You, {at}\n\n{text}")?;
            for file in attachments {
                writeln!(out, "\n- {}", file.path)?;
            }
        }
        Body::Answer { text, .. } => writeln!(out, "\n## Agent, {at}\n\n{text}")?,
        Body::Thought { .. } => {}
        Body::Tools { calls } => {
            for call in calls {
                writeln!(out, "\n*Tool: {}*", call.name)?;
            }
        }
        Body::Files { files, text } => {
            writeln!(
                out,
                "\n## Agent, {at}\n\n{}",
                text.as_deref().unwrap_or_default()
            )?;
            for file in files {
                writeln!(out, "\n- {}", file.name)?;
            }
        }
        Body::Failure { text, .. } => writeln!(out, "\n*The agent could not answer: {text}*")?,
        Body::Notice { text, .. } => writeln!(out, "\n*{text}*")?,
    }
    Ok(())
}
