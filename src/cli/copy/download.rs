//! Copies from a workspace to this machine.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use reqwest::{Method, Response, StatusCode};
use serde_json::json;
use tempfile::NamedTempFile;
use zip::ZipArchive;

use super::{Found, Workspace, split};
use crate::cli::local::blocking;
use crate::cli::output::cell::counted;
use crate::cli::output::screen;
use crate::cli::server::Server;
use crate::cli::{Failure, Result, failed};

/// Entry of the server's zip files that names what is not in them.
const LEFT_OUT: &str = "left-out.txt";
/// Longest part of it that is shown, in bytes.
const MOST_NAMED: u64 = 64 * 1024;

/// Copies `path` to `target`.
///
/// # Errors
/// Nothing is at the path, something exists at the target, or it cannot be written.
pub(super) async fn download(
    workspace: &Workspace<'_>,
    path: &str,
    target: &Path,
    overwrite: bool,
) -> Result {
    let found = workspace.look(path).await?;
    let name = match split(path).1 {
        "" => "workspace",
        name => name,
    };
    let target = match target.is_dir() {
        true => target.join(name),
        false => target.to_owned(),
    };
    check_target(&target, found, overwrite)?;
    match found {
        Found::Nothing => {
            let shown = workspace.shown(path);
            Err(Failure::NotFound(format!("{shown} not found")))
        }
        // Ctrl-C would leave an unfinished file behind otherwise.
        Found::Other => tokio::select! {
            copied = file(workspace, path, &target, overwrite) => copied,
            _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        },
        Found::Folder => folder(workspace, path, &target, overwrite).await,
    }
}

fn check_target(target: &Path, found: Found, overwrite: bool) -> Result {
    let shown = target.display();
    let there = match fs::symlink_metadata(target) {
        Ok(there) => there,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unwritten(target, &error)),
    };
    match found {
        Found::Folder if !there.is_dir() => Err(Failure::Failed(format!(
            "{shown} exists and is not a folder"
        ))),
        Found::Other if !there.is_file() => Err(Failure::Failed(format!(
            "{shown} exists and is not a regular file"
        ))),
        _ if !overwrite => Err(Failure::Failed(format!(
            "{shown} exists; --overwrite replaces files that exist"
        ))),
        _ => Ok(()),
    }
}

fn unwritten(target: &Path, error: &io::Error) -> Failure {
    failed(format!("cannot write {}: {error}", target.display()))
}

async fn open(workspace: &Workspace<'_>, path: &str) -> Result<Response> {
    let request = workspace
        .server
        .request(Method::POST, &workspace.address("/download"))
        .json(&json!({ "path": path }));
    let answer = workspace.server.open(request).await?;
    if answer.status() == StatusCode::OK {
        return Ok(answer);
    }
    let refused = workspace.server.read(answer).await.err();
    Err(refused.unwrap_or_else(|| failed("the server sent no file")))
}

async fn receive(server: &Server, mut answer: Response, into: &mut File) -> Result {
    let bar = screen::bar(0, "copying {bytes}");
    let received = async {
        while let Some(bytes) = server.chunk(&mut answer).await? {
            into.write_all(bytes.as_ref()).map_err(failed)?;
            if let Some(bar) = &bar {
                bar.inc(bytes.as_ref().len() as u64);
            }
        }
        Ok(())
    };
    let received = received.await;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    received
}

/// A file beside `target` that is gone with the value, unless it gets its name.
fn beside(target: &Path) -> Result<NamedTempFile> {
    let folder = target.parent().filter(|dir| !dir.as_os_str().is_empty());
    tempfile::Builder::new()
        .prefix(".agentyard-")
        // The caller's umask narrows it.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .map_err(|error| unwritten(target, &error))
}

fn keep_file(file: NamedTempFile, target: &Path, overwrite: bool) -> Result {
    // A link that is there is replaced, never followed.
    let kept = match overwrite {
        true => file.persist(target),
        false => file.persist_noclobber(target),
    };
    kept.map(drop)
        .map_err(|error| unwritten(target, &error.error))
}

async fn file(workspace: &Workspace<'_>, path: &str, target: &Path, overwrite: bool) -> Result {
    let answer = open(workspace, path).await?;
    let mut file = beside(target)?;
    receive(workspace.server, answer, file.as_file_mut()).await?;
    keep_file(file, target, overwrite)?;
    screen::print(&format!("{}\n", target.display()))
}

async fn folder(workspace: &Workspace<'_>, path: &str, target: &Path, overwrite: bool) -> Result {
    let answer = open(workspace, path).await?;
    let mut packed = tempfile::tempfile()
        .map_err(|error| failed(format!("cannot write a temporary file: {error}")))?;
    receive(workspace.server, answer, &mut packed).await?;
    let to = target.to_owned();
    let (files, left_out) = blocking(move || unpack(packed, &to, overwrite)).await?;
    if !left_out.is_empty() {
        screen::note(&format!("warning: left out:\n{}", left_out.trim_end()));
    }
    screen::print(&format!(
        "{}: {}\n",
        target.display(),
        counted(files, "file")
    ))
}

/// Unpacks the server's zip file of a folder; returns the number of files, and what the server has left out.
fn unpack(mut packed: File, target: &Path, overwrite: bool) -> Result<(u64, String)> {
    packed.rewind().map_err(failed)?;
    let broken =
        |error: zip::result::ZipError| failed(format!("the received archive is damaged: {error}"));
    let mut zip = ZipArchive::new(packed).map_err(broken)?;
    check_room(&mut zip, target)?;
    let (mut files, mut left_out) = (0, String::new());
    fs::create_dir_all(target).map_err(|error| unwritten(target, &error))?;
    for index in 0..zip.len() {
        let mut entry = zip.by_index(index).map_err(broken)?;
        if entry.name().is_ok_and(|name| name == LEFT_OUT) {
            let mut named = entry.by_ref().take(MOST_NAMED);
            named.read_to_string(&mut left_out).map_err(failed)?;
            continue;
        }
        let name = entry.enclosed_name();
        // The first name is that of the folder itself.
        let within: Option<PathBuf> = name.map(|name| name.iter().skip(1).collect());
        let within = within.ok_or_else(|| failed("the copy is broken: a name leaves it"))?;
        let to = target.join(within);
        if entry.is_dir() {
            match fs::create_dir(&to) {
                Err(error) if !is_folder(&to) => return Err(unwritten(&to, &error)),
                _ => {}
            }
            continue;
        }
        let mut file = beside(&to)?;
        io::copy(&mut entry, &mut file).map_err(|error| unwritten(&to, &error))?;
        keep_file(file, &to, overwrite)?;
        files += 1;
    }
    Ok((files, left_out))
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Fails before the files of an agent fill this machine's disk: one may be a hole of any length.
fn check_room(zip: &mut ZipArchive<File>, target: &Path) -> Result {
    let Some(bytes) = zip.decompressed_size() else {
        return Ok(());
    };
    let there = target.ancestors().find(|path| path.is_dir());
    let there = there.unwrap_or(Path::new("."));
    let space = rustix::fs::statvfs(there).map_err(|error| unwritten(there, &error.into()))?;
    let free = u128::from(space.f_bavail) * u128::from(space.f_frsize);
    match bytes > free {
        true => Err(Failure::Failed(format!(
            "{} takes {bytes} bytes, and {free} are free there; nothing was copied",
            target.display()
        ))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn packed(names: &[(&str, &str)]) -> File {
        let mut zip = ZipWriter::new(tempfile::tempfile().unwrap());
        for (name, content) in names {
            match name.ends_with('/') {
                true => zip
                    .add_directory(*name, SimpleFileOptions::default())
                    .unwrap(),
                false => {
                    let set_uid = SimpleFileOptions::default().unix_permissions(0o6755);
                    zip.start_file(*name, set_uid).unwrap();
                    zip.write_all(content.as_bytes()).unwrap();
                }
            }
        }
        zip.finish().unwrap()
    }

    #[test]
    fn folder_is_unpacked_under_the_name_of_the_target() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("copy");
        let names = [
            ("notes/", ""),
            ("notes/a/", ""),
            ("notes/a/x", "1"),
            (LEFT_OUT, "link"),
        ];
        let (files, left_out) = unpack(packed(&names), &target, false).unwrap();
        assert_eq!((files, left_out.as_str()), (1, "link"));
        assert_eq!(fs::read_to_string(target.join("a/x")).unwrap(), "1");
        let mode = fs::metadata(target.join("a/x"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7111, 0, "{mode:o}");
        assert!(!target.join(LEFT_OUT).exists());
        // A second time, files are replaced only if that is wanted, and folders keep the rest.
        assert!(unpack(packed(&names), &target, false).is_err());
        fs::write(target.join("a/mine"), "").unwrap();
        unpack(packed(&names), &target, true).unwrap();
        assert!(target.join("a/mine").exists());
    }

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("a/copy");
        for name in ["notes/../../x", "/etc/x", "../x"] {
            let refused = unpack(packed(&[(name, "")]), &target, true);
            let outside = place.path().join("x");
            assert!(refused.is_err() || !outside.exists(), "{name}");
            assert!(!place.path().join("a/x").exists(), "{name}");
        }
    }

    #[test]
    fn nothing_but_files_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        let there = place.path().join("there");
        check_target(&there, Found::Other, false).unwrap();
        fs::create_dir(&there).unwrap();
        assert!(check_target(&there, Found::Other, true).is_err());
        assert!(check_target(&there, Found::Folder, false).is_err());
        check_target(&there, Found::Folder, true).unwrap();
        let link = place.path().join("link");
        std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
        assert!(check_target(&link, Found::Other, true).is_err());
    }
}
