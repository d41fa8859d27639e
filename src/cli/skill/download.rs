//! `agentyard skill download`: all of a skill, or no file at all.

use std::io::{ErrorKind, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;
use reqwest::{Method, Response, StatusCode};
use schema::ids::SkillName;
use tempfile::NamedTempFile;

use super::PATH;
use crate::cli::admin::escaped;
use crate::cli::output::screen;
use crate::cli::server::Server;
use crate::cli::{Failure, Result, failed};

/// Which version of which skill, and where to.
#[derive(Debug, Args)]
pub struct DownloadArgs {
    /// Name of the skill
    name: SkillName,
    /// Version, as listed by `agentyard skill show` [default: the active version]
    #[arg(long, value_name = "NUMBER")]
    number: Option<i64>,
    /// File to write; - is standard output [default: NAME.zip]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// Downloads a skill.
///
/// # Errors
/// When the file is there already, it cannot be written, no server answers, or there is no such skill.
pub async fn download(server: &Server, args: &DownloadArgs) -> Result {
    let name = args.name.as_str();
    let default = || PathBuf::from(format!("{name}.zip"));
    let output = args.output.clone().unwrap_or_else(default);
    let to_stdout = output == Path::new("-");
    if to_stdout && std::io::stdout().is_terminal() {
        let text = "a ZIP file is not for a terminal; redirect standard output, or use -o FILE";
        return Err(Failure::Usage(text.to_owned()));
    }
    if !to_stdout {
        may_be_written(&output, args.force)?;
    }
    let mut path = format!("{PATH}/download?name={}", escaped(name));
    if let Some(number) = args.number {
        path += &format!("&number={number}");
    }
    let answer = server.open(server.request(Method::GET, &path)).await?;
    if answer.status() != StatusCode::OK {
        return server.read(answer).await.map(drop);
    }
    if to_stdout {
        return receive(server, answer, None, &mut |bytes| screen::print_raw(bytes)).await;
    }
    let bar = screen::bar(0, "downloading {bytes}");
    // Ctrl-C would leave the file behind otherwise.
    let written = tokio::select! {
        written = to_file(server, answer, &output, args.force, bar.clone()) => written,
        _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    };
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    written?;
    screen::print(&format!("{}\n", output.display()))
}

fn exists(output: &Path) -> Failure {
    let output = output.display();
    Failure::Failed(format!("{output} exists; use --force to overwrite it"))
}

/// Nothing is replaced but files, and those only if asked for.
fn may_be_written(output: &Path, force: bool) -> Result {
    match std::fs::symlink_metadata(output) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(unwritten(output, &error)),
        Ok(found) if !found.is_file() => {
            let output = output.display();
            Err(Failure::Failed(format!(
                "{output} exists and is not a file"
            )))
        }
        Ok(_) if force => Ok(()),
        Ok(_) => Err(exists(output)),
    }
}

fn unwritten(output: &Path, error: &std::io::Error) -> Failure {
    failed(format!("cannot write {}: {error}", output.display()))
}

/// The file has its name once all of it is there; until then it is removed with this value.
async fn to_file(
    server: &Server,
    answer: Response,
    output: &Path,
    force: bool,
    bar: Option<ProgressBar>,
) -> Result {
    let failed = |error: std::io::Error| unwritten(output, &error);
    let dir = output.parent().filter(|dir| !dir.as_os_str().is_empty());
    let mut file = tempfile::Builder::new()
        .prefix(".agentyard-")
        // What the caller's umask leaves.
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(dir.unwrap_or(Path::new(".")))
        .map_err(failed)?;
    receive(server, answer, bar, &mut |bytes| {
        file.write_all(bytes).map_err(failed)
    })
    .await?;
    keep(file, output, force)
}

fn keep(file: NamedTempFile, output: &Path, force: bool) -> Result {
    let kept = match force {
        true => file.persist(output),
        false => file.persist_noclobber(output),
    };
    match kept {
        Ok(_) => Ok(()),
        // Somebody made it meanwhile.
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Err(exists(output)),
        Err(error) => Err(unwritten(output, &error.error)),
    }
}

async fn receive(
    server: &Server,
    mut answer: Response,
    bar: Option<ProgressBar>,
    write: &mut (dyn FnMut(&[u8]) -> Result + Send),
) -> Result {
    while let Some(bytes) = server.chunk(&mut answer).await? {
        write(bytes.as_ref())?;
        if let Some(bar) = &bar {
            bar.inc(bytes.as_ref().len() as u64);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_are_replaced_and_only_with_force() {
        let place = tempfile::tempdir().unwrap();
        let output = place.path().join("pdf.zip");
        may_be_written(&output, false).unwrap();
        std::fs::write(&output, "mine").unwrap();
        assert!(may_be_written(&output, false).is_err());
        may_be_written(&output, true).unwrap();
        let refused = may_be_written(place.path(), true).unwrap_err().to_string();
        assert!(refused.ends_with("is not a file"), "{refused}");
        assert!(may_be_written(Path::new("/dev/null"), true).is_err());
        // One that appeared meanwhile is kept, too.
        let file = NamedTempFile::new_in(place.path()).unwrap();
        assert!(keep(file, &output, false).is_err());
        assert_eq!(std::fs::read_to_string(&output).unwrap(), "mine");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
