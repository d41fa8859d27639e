//! `GET /api/files`: what is in a directory.

use schema::home::workspace::{EntryType, FileEntry, Order, Sort, WorkspacePath};
use schema::ids::Timestamp;
use schema::usage::{self, Usage};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::failures;
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::OrdinaryUser;
use crate::error::{ApiError, Result};
use crate::files::{Client, refused};
use crate::input::Input;
use crate::route::{Area, Route};
use crate::routes::images::{minute, size_text};
use crate::routes::page::{Page, search};

/// Most entries of an answer that is no page.
const MOST_AT_ONCE: usize = 10_000;
/// Most bytes of names and paths in an answer.
const MOST_TEXT: usize = 8 << 20;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("files", "/api/files", list)
            .title(Area::Files, "List my files")
            .about(
                "Without `page`, `page_size` and `search` all of it, but at most 10,000 entries and 8 MiB of names and paths; what \
                 is left out is on further pages (`truncated`). Directories come first. Links are listed and not followed; \
                 named pipes, sockets and devices are listed and never opened. Of more than 200,000 entries the rest is \
                 left out of all pages. The workspace of a new user is empty.",
            )
            .paged()
            .fails(failures![]),
    ]
}

/// Which directory, and in which order.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = FilesAsked)]
pub struct Asked {
    /// The directory, relative to the workspace; default: its top.
    #[serde(default)]
    #[schema(example = "notes")]
    path: String,
    /// `name` (default; without regard to case), `size` or `modified`; with `-` before it, the last one first.
    #[schema(example = "name")]
    sort: Option<String>,
}

/// An entry of a directory.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FileEntry)]
pub struct Entry {
    /// Its name; what of it is not UTF-8 is U+FFFD.
    #[schema(example = "todo.txt")]
    name: String,
    /// Whether it is a directory.
    is_dir: bool,
    /// `directory`, `file`, `symlink`, `fifo`, `socket` or `device`.
    #[schema(example = "file")]
    r#type: String,
    /// Length in bytes; 0 for everything but files.
    #[schema(example = 120)]
    size: u64,
    /// The same for people.
    #[schema(example = "120 B")]
    size_str: String,
    /// When it was last changed, for people (UTC).
    #[schema(example = "2026-05-11 11:46")]
    mod_time: String,
    /// When it was last changed.
    modified_at: Timestamp,
    /// Its path, relative to the workspace. Each byte that is not UTF-8 is a private character, U+EF00 and the byte.
    #[schema(example = "notes/todo.txt")]
    rel_path: String,
}

/// A step on the way to a directory.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FileCrumb)]
pub struct Crumb {
    /// Its name; that of the top is `workspace`.
    #[schema(example = "notes")]
    name: String,
    /// Its path, relative to the workspace.
    #[schema(example = "notes")]
    path: String,
}

/// A page of a directory.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Files)]
pub struct Directory {
    /// The directory.
    #[schema(example = "notes")]
    path: String,
    /// What is in it.
    entries: Vec<Entry>,
    /// The way to it, from the top.
    breadcrumb: Vec<Crumb>,
    /// Space that the user's directory takes, the workspace and the rest of the agent's home; null before it was measured.
    #[schema(required = true)]
    usage: Option<Usage>,
    /// What it may take, in MiB; 0 = as much as there is.
    quota_mb: u64,
    /// Most files and directories in it; 0 = as many as there is room for.
    quota_files: u64,
    /// There are more entries than are listed here; of a page: than any page lists.
    truncated: bool,
    #[serde(flatten)]
    page: Page,
}

fn order(sort: Option<&str>) -> Result<Order> {
    let text = sort.unwrap_or_default();
    let (descending, key) = match text.strip_prefix('-') {
        Some(key) => (true, key),
        None => (false, text),
    };
    let sort = match key {
        "" | "name" => Sort::Name,
        "size" => Sort::Size,
        "modified" => Sort::Modified,
        _ => {
            let rule = "sort is name, size or modified, or one of them after -";
            return Err(ApiError::invalid("sort", rule));
        }
    };
    Ok(Order { sort, descending })
}

fn entry(directory: &WorkspacePath, found: FileEntry) -> Entry {
    let rel_path = match directory.is_top() {
        true => found.in_path,
        false => format!("{directory}/{}", found.in_path),
    };
    Entry {
        is_dir: found.kind == EntryType::Directory,
        r#type: found.kind.to_string(),
        size: found.size,
        size_str: size_text(found.size),
        mod_time: minute(found.modified),
        modified_at: found.modified,
        rel_path,
        name: found.name,
    }
}

/// `GET /api/files`.
///
/// # Errors
/// 404 without such a directory.
async fn list(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Asked>,
    deps: Deps,
) -> Result<Answer<Directory>> {
    let path = super::path("path", &input.params.path)?;
    let order = order(input.params.sort.as_deref())?;
    // An agent may fill a directory: a list of everything ends somewhere.
    let (paging, search) = (input.paging.clone(), search(input.paging.as_ref()));
    let workspace = deps.files.find(&session.account).await?;
    let (entries, total, truncated) = match workspace {
        Some(workspace) => {
            let (path, search) = (path.clone(), search.to_owned());
            let work = move |client: &Client| {
                let goes_on = || !client.is_gone();
                workspace.list(&path, order, &search, goes_on, |total| {
                    let Some(paging) = paging else {
                        return 0..MOST_AT_ONCE;
                    };
                    let (page, _) = paging.clamp(total as u64);
                    let size = paging.page_size as usize;
                    let begin = (page as usize).saturating_sub(1).saturating_mul(size);
                    begin..begin.saturating_add(size)
                })
            };
            let listing = deps
                .files
                .run_long(&session.account, work)
                .await?
                .map_err(refused)?;
            (listing.entries, listing.total, listing.truncated)
        }
        None if path.is_top() => (Vec::new(), 0, false),
        None => return Err(ApiError::not_found(format!("{:?}", path.as_str()))),
    };
    let mut connection = deps.db.read().await?;
    let usage = usage::get(&mut connection, &session.account.uid).await?;
    drop(connection);
    let mut breadcrumb = vec![Crumb {
        name: "workspace".to_owned(),
        path: String::new(),
    }];
    breadcrumb.extend(path.steps().map(|(name, path)| Crumb {
        name: name.to_owned(),
        path: path.to_owned(),
    }));
    let quota = deps.settings().quota;
    let mut left = MOST_TEXT;
    let entries = entries.into_iter().map(|found| entry(&path, found));
    let mut is_cut = input.paging.is_none() && total > MOST_AT_ONCE;
    let entries = entries.map_while(|entry| {
        let text = entry.name.len() + entry.rel_path.len();
        let kept = left.checked_sub(text);
        is_cut |= kept.is_none();
        left = kept?;
        Some(entry)
    });
    let entries = entries.collect();
    let listed = Directory {
        entries,
        path: path.to_string(),
        breadcrumb,
        truncated: truncated || is_cut,
        usage,
        quota_mb: quota.megabytes,
        quota_files: quota.files,
        page: Page::of(
            input.paging.as_ref(),
            i64::try_from(total).unwrap_or(i64::MAX),
        ),
    };
    Ok(Answer::ok("", listed))
}
