//! `GET /api/agent/chat/export`: a conversation as one file.

use std::io::{self, Write};

use http::HeaderValue;
use schema::home::conversations::{ConversationId, Folder, LONGEST, Verdict};
use schema::ids::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;

use super::NO_CONVERSATION;
use super::history::read_folder;
use crate::answer::FileDownload;
use crate::chat::{Body, Entry, Index};
use crate::deps::Deps;
use crate::dispatch::OrdinaryUser;
use crate::error::Result;
use crate::files::Client;
use crate::input::Input;
use crate::limits::ZIPS;
use crate::pieces::Pieces;
use crate::reply::Reply;
use crate::route::{Area, Failure, Route};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("chat_export", "/api/agent/chat/export", export)
            .holds(&ZIPS)
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
    let read = |folder: &Folder, client: &Client| {
        let mut index = Index::default();
        let entries = folder.entries()?;
        if let Some(entries) = &entries {
            entries.read_newest(LONGEST, |place, line| match client.is_gone() {
                true => Verdict::Enough,
                false => index.take_line(place, line),
            })?;
        }
        Ok((folder.meta(), entries, index))
    };
    let (meta, entries, index) = read_folder(&deps, &session.account, id, read).await?;
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
        if format == Format::Markdown {
            writeln!(out, "# {title}")?;
        }
        let places = index.into_places();
        // One at a time: what the agent has changed meanwhile is left out.
        let lines = places.filter_map(|place| entries.as_ref()?.read_line(place));
        for entry in lines.filter_map(|line| serde_json::from_str::<Entry>(&line).ok()) {
            match format {
                Format::Markdown => write_entry(out, entry.at, &entry.body)?,
                Format::Json => {
                    serde_json::to_writer(&mut *out, &entry)?;
                    out.write_all(b"\n")?;
                }
            }
        }
        Ok(())
    });
    Ok(FileDownload::new(Reply::download(
        HeaderValue::from_static("application/octet-stream"),
        &name,
        pieces,
    )))
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
