//! `agentyard skill upload`: sends a package from disk, however long it is, without holding it in memory.

use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use futures::TryStreamExt;
use reqwest::multipart::{Form, Part};
use reqwest::{Body, Method};
use schema::skill_store::{MAX_PACKED, Refusal, zip_folder};
use tokio_util::io::ReaderStream;

use super::{PATH, change};
use crate::cli::effect::How;
use crate::cli::output::clean::clean;
use crate::cli::output::screen;
use crate::cli::server::Server;
use crate::cli::{Failure, Result, failed};

/// The answer comes once the package is checked and unpacked, after those that others sent before.
const ANSWER_TIME: Duration = Duration::from_secs(600);
/// A shorter package is there before anybody has looked.
const WORTH_A_BAR: u64 = 1 << 20;

/// Which package.
#[derive(Debug, Args)]
pub struct UploadArgs {
    /// ZIP file, or folder to pack
    #[arg(value_name = "ZIP|FOLDER")]
    package: PathBuf,
    /// Name of the skill [default: the name in SKILL.md, else that of the folder]
    #[arg(long)]
    name: Option<String>,
    /// Replace a bound skill of the same name from a repository
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    how: How,
}

/// Uploads a package.
///
/// # Errors
/// When it cannot be read, no server answers, it refuses, or a user's skills need manual action.
pub async fn upload(server: &Server, args: UploadArgs) -> Result {
    let path = args.package;
    let packing = screen::bar(0, "packing {msg}").filter(|_| path.is_dir());
    if let Some(bar) = &packing {
        bar.set_message(clean(&path.display().to_string()));
    }
    let opened = tokio::task::spawn_blocking(move || open(&path)).await;
    if let Some(bar) = packing {
        bar.finish_and_clear();
    }
    let Package {
        file,
        length,
        warnings,
    } = opened.map_err(failed)??;
    for warning in warnings {
        screen::note(&format!("warning: {warning}"));
    }
    let bar = screen::bar(length, "uploading [{bar:30}] {bytes}/{total_bytes}");
    let bar = bar.filter(|_| length >= WORTH_A_BAR);
    let sent = bar.clone();
    let pieces = ReaderStream::new(tokio::fs::File::from_std(file)).inspect_ok(move |piece| {
        if let Some(bar) = &sent {
            bar.inc(piece.len() as u64);
        }
    });
    let body = Body::wrap_stream(pieces);
    let part = Part::stream_with_length(body, length).file_name("skill.zip");
    let mut form = Form::new().text("dry_run", args.how.dry_run.to_string());
    if args.force {
        form = form.text("force", "true");
    }
    if let Some(name) = args.name {
        form = form.text("name", name);
    }
    if args.how.detach {
        form = form.text("wait", "0");
    }
    let request = server.request(Method::POST, &format!("{PATH}/upload"));
    let request = request.multipart(form.part("file", part));
    let answer = server.open(request.timeout(ANSWER_TIME)).await;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let answer = server.read(answer?).await?;
    change::warn(&answer);
    args.how.report(server, &answer).await
}

/// A package to send.
struct Package {
    file: File,
    length: u64,
    /// Entries that are not in it, a sentence each.
    warnings: Vec<String>,
}

/// The zip, or the folder as one, in a file that is gone with this process.
fn open(path: &Path) -> Result<Package> {
    let cannot = |error: std::io::Error| failed(format!("cannot read {}: {error}", path.display()));
    let found = std::fs::metadata(path).map_err(cannot)?;
    let (mut file, warnings) = if found.is_dir() {
        pack(path)?
    } else if found.is_file() {
        (File::open(path).map_err(cannot)?, Vec::new())
    } else {
        let text = format!("{} is neither a file nor a folder", path.display());
        return Err(Failure::Failed(text));
    };
    file.rewind().map_err(cannot)?;
    let length = file.metadata().map_err(cannot)?.len();
    if length > MAX_PACKED {
        return Err(failed(Refusal::Packed));
    }
    Ok(Package {
        file,
        length,
        warnings,
    })
}

fn pack(folder: &Path) -> Result<(File, Vec<String>)> {
    let unwritten =
        |error: std::io::Error| failed(format!("cannot write a temporary file: {error}"));
    let file = tempfile::tempfile().map_err(unwritten)?;
    let mut out = BufWriter::new(file);
    let packed = zip_folder(folder, &mut out);
    let warnings =
        packed.map_err(|error| failed(reconcilers::runtime::supervise::chain(&error)))?;
    out.flush().map_err(unwritten)?;
    let file = out
        .into_inner()
        .map_err(|error| unwritten(error.into_error()))?;
    Ok((file, warnings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_packed_without_links_and_version_control() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("pdf");
        std::fs::create_dir_all(folder.join(".git")).unwrap();
        std::fs::write(folder.join(".git/config"), "x").unwrap();
        std::fs::write(folder.join("SKILL.md"), "# PDF").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.join("link")).unwrap();
        let package = open(&folder).unwrap();
        let [git, links] = package.warnings.as_slice() else {
            panic!("{:?}", package.warnings);
        };
        assert!(git.ends_with(": \".git\""), "{git}");
        assert!(
            links.starts_with("symbolic links were left out: \"link\";"),
            "{links}"
        );
        let mut zip = zip::ZipArchive::new(package.file).unwrap();
        assert_eq!(zip.len(), 1);
        assert_eq!(zip.by_name("pdf/SKILL.md").unwrap().size(), 5);
    }

    #[test]
    fn what_cannot_be_a_package_is_refused_before_a_server_is_asked() {
        let place = tempfile::tempdir().unwrap();
        let refused = |path: &Path| open(path).err().unwrap().to_string();
        let none = refused(&place.path().join("none"));
        assert!(none.starts_with("cannot read "), "{none}");
        assert!(refused(Path::new("/dev/null")).ends_with("neither a file nor a folder"));
        let long = place.path().join("long.zip");
        File::create(&long)
            .unwrap()
            .set_len(MAX_PACKED + 1)
            .unwrap();
        assert!(refused(&long).contains("128 MiB"));
        let wide = place.path().join("wide");
        std::fs::create_dir(&wide).unwrap();
        File::create(wide.join("a"))
            .unwrap()
            .set_len((512 << 20) + 1)
            .unwrap();
        assert!(refused(&wide).contains("512 MiB"));
    }
}
