//! Copies from this machine into a workspace.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::multipart::{Form, Part};
use reqwest::{Body, Method};
use serde_json::json;
use tokio_util::io::ReaderStream;

use super::{Found, Workspace, join, split};
use crate::cli::local::blocking;
use crate::cli::output::cell::counted;
use crate::cli::output::screen;
use crate::cli::{Failure, Result, failed};

/// Longest file, in bytes: that of a user's own uploads.
const LONGEST_FILE: u64 = 32 * 1024 * 1024;
/// Most files of one request.
const AT_ONCE: usize = 100;
/// Most bytes of one request.
const BYTES_AT_ONCE: u64 = 256 * 1024 * 1024;
/// Most files and folders of one copy.
const MOST: usize = 50_000;
/// The answer comes once the files are in their places.
const ANSWER_TIME: Duration = Duration::from_secs(600);

/// A file to copy.
#[derive(Debug)]
struct LocalFile {
    path: PathBuf,
    name: String,
    length: u64,
}

/// A folder to copy.
#[derive(Debug, Default)]
struct Tree {
    /// Each folder below, relative to the top, before what is in it, with its files. The first is the top, `""`.
    folders: BTreeMap<String, Vec<LocalFile>>,
    entries: usize,
    left_out: Vec<String>,
    too_long: Vec<String>,
}

/// Copies `source` to `path`.
///
/// # Errors
/// It cannot be read, something exists at the target, or the server refuses.
pub(super) async fn upload(
    workspace: &Workspace<'_>,
    source: &Path,
    path: &str,
    overwrite: bool,
) -> Result {
    let from = source.to_owned();
    let read = blocking(move || read(&from)).await?;
    let name = name_of(source);
    let target = match workspace.look(path).await? {
        Found::Folder => join(path, &name?),
        Found::Nothing | Found::Other => path.to_owned(),
    };
    let found = match target == path {
        true => workspace.look(path).await?,
        false => workspace.look(&target).await?,
    };
    let shown = workspace.shown(&target);
    let exists = |what: &str, more: &str| Failure::Failed(format!("{shown} exists{what}{more}"));
    let with_overwrite = "; --overwrite replaces files that exist";
    match (&read, found) {
        (Source::File(_), Found::Folder) => return Err(exists(" and is a folder", "")),
        (Source::Folder(_), Found::Other) => return Err(exists(" and is not a folder", "")),
        (_, Found::Folder | Found::Other) if !overwrite => {
            return Err(exists("", with_overwrite));
        }
        _ => {}
    }
    match read {
        Source::File(length) => {
            let (folder, name) = split(&target);
            let file = LocalFile {
                path: source.to_owned(),
                name: name.to_owned(),
                length,
            };
            send(workspace, folder, &[file], overwrite).await?;
            screen::print(&format!("{shown}\n"))
        }
        Source::Folder(tree) => {
            for left_out in &tree.left_out {
                screen::note(&format!("warning: left out: {left_out}"));
            }
            let copied = send_tree(workspace, &tree, &target, found, overwrite).await?;
            screen::print(&format!("{shown}: {}\n", counted(copied, "file")))
        }
    }
}

/// Source of a copy.
#[derive(Debug)]
enum Source {
    /// A file of this length.
    File(u64),
    Folder(Tree),
}

/// The name under which a source is put into a folder.
fn name_of(source: &Path) -> Result<String> {
    let name = source.file_name().and_then(|name| name.to_str());
    let name = name.map(str::to_owned);
    name.ok_or_else(|| {
        let source = source.display();
        Failure::Usage(format!(
            "{source} has no file name; give the full path of TARGET"
        ))
    })
}

fn read(source: &Path) -> Result<Source> {
    let shown = source.display().to_string();
    let cannot = |error: std::io::Error| failed(format!("cannot read {shown}: {error}"));
    let found = std::fs::metadata(source).map_err(cannot)?;
    if found.is_file() {
        return match found.len() > LONGEST_FILE {
            true => Err(too_long(&[shown])),
            false => Ok(Source::File(found.len())),
        };
    }
    if !found.is_dir() {
        return Err(Failure::Failed(format!(
            "{shown} is neither a file nor a folder"
        )));
    }
    let mut tree = Tree::default();
    tree.add(source, String::new())?;
    match tree.too_long.is_empty() {
        true => Ok(Source::Folder(tree)),
        false => Err(too_long(&tree.too_long)),
    }
}

fn too_long(names: &[String]) -> Failure {
    let first: Vec<&str> = names.iter().take(5).map(String::as_str).collect();
    let more = match names.len() {
        ..=5 => String::new(),
        more => format!(" and {} more", more - 5),
    };
    Failure::Failed(format!(
        "larger than 32 MiB, the limit for files in a workspace: {}{more}; nothing was copied",
        first.join(", ")
    ))
}

impl Tree {
    /// Adds a folder with what is in it.
    fn add(&mut self, folder: &Path, within: String) -> Result {
        let cannot = |error| failed(format!("cannot read {}: {error}", folder.display()));
        self.folders.insert(within.clone(), Vec::new());
        for entry in std::fs::read_dir(folder).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            self.entries += 1;
            if self.entries > MOST {
                return Err(Failure::Failed(format!(
                    "more than {MOST} files and folders; copy them in parts"
                )));
            }
            let path = entry.path();
            let found = std::fs::symlink_metadata(&path).map_err(cannot)?;
            self.add_entry(path, &found, &within)?;
        }
        Ok(())
    }

    fn add_entry(&mut self, path: PathBuf, found: &Metadata, within: &str) -> Result {
        let shown = path.display().to_string();
        let name = path.file_name().and_then(|name| name.to_str());
        let plain = |name: &&str| !name.contains(|c: char| c == '\\' || c == '"' || c.is_control());
        let Some(name) = name.filter(plain).map(str::to_owned) else {
            self.left_out.push(format!(
                "{shown} (its name cannot be sent: not UTF-8, or with a quote, backslash or control character)"
            ));
            return Ok(());
        };
        if found.is_dir() {
            return self.add(&path, join(within, &name));
        }
        if !found.is_file() {
            self.left_out
                .push(format!("{shown} (neither a regular file nor a folder)"));
            return Ok(());
        }
        if found.len() > LONGEST_FILE {
            self.too_long.push(shown);
            return Ok(());
        }
        let file = LocalFile {
            path,
            name,
            length: found.len(),
        };
        self.folders
            .entry(within.to_owned())
            .or_default()
            .push(file);
        Ok(())
    }
}

/// Copies a folder; returns the number of files.
async fn send_tree(
    workspace: &Workspace<'_>,
    tree: &Tree,
    target: &str,
    found: Found,
    overwrite: bool,
) -> Result<u64> {
    let files: usize = tree.folders.values().map(Vec::len).sum();
    let bar = screen::bar(files as u64, "copying [{bar:30}] {pos}/{len} files");
    let mut copied = 0;
    for (within, files) in &tree.folders {
        let folder = match within.as_str() {
            "" => target.to_owned(),
            within => join(target, within),
        };
        // A target that was just made holds nothing yet.
        let is_there = found == Found::Folder
            && (within.is_empty() || workspace.look(&folder).await? == Found::Folder);
        if !is_there {
            make_folder(workspace, &folder).await?;
        }
        let mut rest = files.as_slice();
        while !rest.is_empty() {
            let (batch, more) = rest.split_at(batch_size(rest));
            send(workspace, &folder, batch, overwrite).await?;
            copied += batch.len() as u64;
            if let Some(bar) = &bar {
                bar.set_position(copied);
            }
            rest = more;
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(copied)
}

/// Number of files in the next request: at least one.
fn batch_size(files: &[LocalFile]) -> usize {
    let mut bytes = 0;
    let fitting = files.iter().take(AT_ONCE).take_while(|file| {
        bytes += file.length;
        bytes <= BYTES_AT_ONCE
    });
    fitting.count().max(1)
}

async fn make_folder(workspace: &Workspace<'_>, path: &str) -> Result {
    let (folder, name) = split(path);
    let body = json!({ "path": folder, "name": name });
    let address = workspace.address("/mkdir");
    workspace.server.post(&address, &body).await.map(drop)
}

async fn send(
    workspace: &Workspace<'_>,
    folder: &str,
    files: &[LocalFile],
    overwrite: bool,
) -> Result {
    let mut form = Form::new()
        .text("path", folder.to_owned())
        .text("overwrite", overwrite.to_string());
    for file in files {
        let shown = file.path.display();
        let opened = tokio::fs::File::open(&file.path).await;
        let opened = opened.map_err(|error| failed(format!("cannot read {shown}: {error}")))?;
        // Not past the length that was checked, should it grow meanwhile.
        let content = tokio::io::AsyncReadExt::take(opened, file.length);
        let body = Body::wrap_stream(ReaderStream::new(content));
        let part = Part::stream_with_length(body, file.length).file_name(file.name.clone());
        form = form.part("file", part);
    }
    let address = workspace.address("/upload");
    let request = workspace.server.request(Method::POST, &address);
    let request = request.multipart(form).timeout(ANSWER_TIME);
    let answer = workspace.server.open(request).await?;
    workspace.server.read(answer).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_read_without_links_and_long_files_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path();
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::fs::write(top.join("a/b/x"), "x").unwrap();
        std::fs::write(top.join("a-c"), "").unwrap();
        std::fs::write(top.join("q\"q"), "").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", top.join("link")).unwrap();
        let Source::Folder(tree) = read(top).unwrap() else {
            panic!("no folder");
        };
        let folders: Vec<_> = tree.folders.keys().map(String::as_str).collect();
        assert_eq!(folders, ["", "a", "a/b"]);
        assert_eq!(tree.folders["a/b"][0].name, "x");
        assert_eq!(tree.left_out.len(), 2, "{:?}", tree.left_out);
        let long = std::fs::File::create(top.join("a/long")).unwrap();
        long.set_len(LONGEST_FILE + 1).unwrap();
        let refused = read(top).unwrap_err().to_string();
        assert!(refused.contains("a/long; nothing was copied"), "{refused}");
        assert!(read(Path::new("/dev/null")).is_err());
    }

    #[test]
    fn batch_is_bounded_by_number_and_bytes() {
        let file = |length| LocalFile {
            path: PathBuf::new(),
            name: String::new(),
            length,
        };
        let many: Vec<_> = (0..250).map(|_| file(1)).collect();
        assert_eq!(batch_size(&many), AT_ONCE);
        let long: Vec<_> = (0..20).map(|_| file(LONGEST_FILE)).collect();
        assert_eq!(batch_size(&long), 8);
        assert_eq!(batch_size(&[file(u64::MAX)]), 1);
    }
}
