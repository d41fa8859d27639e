//! `agentyard backup`: what is at rest, copied while the server runs.

pub mod migrate;
mod report;
pub mod restore;
mod trust;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use schema::audit::{About, Author, Writer};
use schema::backup::{Backup, BackupError, Directory, Keys, Trust};
use schema::clock::{Clock, SystemClock};
use schema::db::Db;
use schema::error::chain;
use schema::meta;
use schema::secrets::MasterKey;
use serde_json::{Value, json};

use self::report::Reporter;
use super::kinds::BACKUPS;
use super::local::{Local, blocking, db_failed};
use super::output::OutputArgs;
use super::output::cell::counted;
use super::output::items::{Amount, Printer};
use super::output::screen;
use super::{Failure, Result};
use crate::backup::{CreateError, Destination, Installation, postgres};
use crate::settings::Settings;

/// Arguments of `backup`: a destination, or a command on backups that are there.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BackupArgs {
    #[command(subcommand)]
    command: Option<BackupCommand>,
    /// Directory of backups, or - for a tar stream on standard output
    #[arg(value_name = "DIR", required = true)]
    directory: Option<PathBuf>,
    /// Also write the master key to this new file; keep it apart from the backups
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

/// Commands on backups that are there.
#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// List the backups in a directory, oldest first
    #[command(after_help = "Examples:\n  agentyard backup list /mnt/backup")]
    List {
        /// Directory of backups
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Restore a backup to a scratch directory and compare it with its manifest
    #[command(
        after_help = "The scratch directory needs as much space as the backup and is removed afterwards. The restored database is opened and its integrity checked. Exits 1 on any difference.\n\nExamples:\n  agentyard backup verify /mnt/backup/20261127T195003Z\n  agentyard backup verify /mnt/backup/20261127T195003Z --scratch /var/tmp/verify"
    )]
    Verify {
        /// Folder of the backup
        backup: PathBuf,
        /// Parent of the scratch directory [default: the directory of backups]
        #[arg(long, value_name = "DIR")]
        scratch: Option<PathBuf>,
        /// File with the master key, which proves where the backup comes from [default: that of the data directory]
        #[arg(long, value_name = "FILE")]
        key_file: Option<PathBuf>,
    },
}

/// Runs the command.
///
/// # Errors
/// When a backup cannot be made, or one differs from its manifest.
pub async fn backup(settings: impl FnOnce() -> Result<Settings>, args: BackupArgs) -> Result {
    match (args.command, args.directory) {
        (Some(BackupCommand::List { directory, output }), _) => list(directory, output).await,
        (
            Some(BackupCommand::Verify {
                backup,
                scratch,
                key_file,
            }),
            _,
        ) => {
            let key = match key_file {
                Some(file) => Some(
                    MasterKey::load_file(&file).map_err(|error| Failure::Refused(chain(&error)))?,
                ),
                // A copy of a backup is verified elsewhere, too.
                None => settings()
                    .ok()
                    .and_then(|settings| MasterKey::load(&settings.data_dir).ok()),
            };
            verify(backup, scratch, key.as_ref().map(Keys::new)).await
        }
        (None, Some(directory)) => create(&settings()?, directory, args.key_file.as_deref()).await,
        (None, None) => Err(Failure::Usage(
            "DIR is missing: name the directory of backups, or - for standard output".to_owned(),
        )),
    }
}

async fn create(settings: &Settings, directory: PathBuf, key_file: Option<&Path>) -> Result {
    super::serve::raise_open_files();
    let local = Local::open(settings).await?;
    let key = MasterKey::load(&settings.data_dir);
    let key = key.map_err(|error| Failure::Refused(error.to_string()))?;
    if let Some(file) = key_file {
        refuse_beside(file, &directory)?;
        key.save_file(file)
            .map_err(|error| Failure::Failed(chain(&error)))?;
    }
    let installation = installation(settings, &local, &key).await?;
    let is_stream = directory.as_os_str() == "-";
    let destination = match is_stream {
        true => {
            if std::io::stdout().is_terminal() {
                return Err(Failure::Usage(
                    "standard output is a terminal; redirect the stream to a file or a program"
                        .to_owned(),
                ));
            }
            Destination::Stream(Box::new(std::io::BufWriter::with_capacity(
                1 << 20,
                std::io::stdout(),
            )))
        }
        false => {
            let (path, data_dir) = (directory.clone(), settings.data_dir.clone());
            let opened = blocking(move || Directory::make(&path, &data_dir).map_err(backup_failed));
            Destination::Folder(opened.await?)
        }
    };
    let mut reporter = Reporter::new("backing up");
    let made = installation.back_up(destination, move |progress| reporter.tell(progress));
    let made = made.await.map_err(not_created)?;
    report::left_out(&made.head.left_out);
    let place = made.path.as_ref().map(|path| path.display().to_string());
    let writer = Writer::new(local.db.clone(), &key, Arc::new(SystemClock));
    let recorded = record(&writer, place.as_deref().unwrap_or("a stream")).await;
    local.db.close().await;
    let text = format!(
        "backed up {}, {}{} to {}",
        report::entries(made.head.entries),
        report::size(made.head.bytes),
        match made.head.shared {
            0 => String::new(),
            shared => format!(" ({} unchanged)", counted(shared, "file")),
        },
        place.as_deref().unwrap_or("standard output"),
    );
    match is_stream {
        true => screen::note(&text),
        false => screen::print(&format!("{text}\n"))?,
    }
    let fingerprint = &made.head.key.fingerprint;
    screen::note(&match key_file {
        Some(file) => format!(
            "the master key {fingerprint} is in {}; keep it apart from the backups: the installation cannot be restored without it",
            file.display()
        ),
        None => format!(
            "the master key {fingerprint} is not in the backup; keep a copy of {} elsewhere: the installation cannot be restored without it",
            made.head.key.file
        ),
    });
    recorded.map_err(|failure| {
        Failure::Failed(format!(
            "the backup is complete, but the audit trail could not be written: {failure}"
        ))
    })
}

/// The key opens what is in a backup: together in one place they are as good as the plain secrets.
fn refuse_beside(file: &Path, directory: &Path) -> Result {
    let absolute = |path: &Path| std::path::absolute(path).map_err(super::failed);
    match absolute(file)?.starts_with(absolute(directory)?) {
        true => Err(Failure::Usage(
            "--key-file is inside the directory of backups; choose a file outside it".to_owned(),
        )),
        false => Ok(()),
    }
}

async fn installation(settings: &Settings, local: &Local, key: &MasterKey) -> Result<Installation> {
    let mut connection = local.db.read().await.map_err(db_failed)?;
    let instance = meta::get(&mut connection, "instance_id").await;
    let instance = instance.map_err(db_failed)?.unwrap_or_default();
    Ok(Installation::new(
        &settings.data_dir,
        &local.db,
        &instance,
        key,
    ))
}

async fn record(writer: &Writer, place: &str) -> Result {
    let author = Author::local(rustix::process::getuid().as_raw(), "backup");
    let tx = writer.begin(author).await.map_err(db_failed)?;
    let about = About::whole("backup").detail(format!("to {place}"));
    tx.commit(about).await.map_err(db_failed)
}

async fn list(directory: PathBuf, output: OutputArgs) -> Result {
    let items = blocking(move || {
        let opened = Directory::open(&directory).map_err(backup_failed)?;
        let kept = opened.list().map_err(backup_failed)?;
        let item = |kept: schema::backup::Kept| {
            let head = kept.head;
            json!({
                "backup": kept.name,
                "started_at": head.started_at,
                "finished_at": head.finished_at,
                "database": head.database.kind,
                "entries": head.entries,
                "size": report::size(head.bytes),
                "bytes": head.bytes,
                "shared": head.shared,
                "left_out": head.left_out.total(),
                "release": head.agentyard,
                "key": head.key.fingerprint,
                "path": opened.path().join(&kept.name).display().to_string(),
            })
        };
        Ok(kept.into_iter().map(item).collect::<Vec<Value>>())
    });
    let items = items.await?;
    let mut printer = Printer::new(&BACKUPS, output, Amount::List);
    printer.print(&items)?;
    printer.end()
}

async fn verify(path: PathBuf, scratch: Option<PathBuf>, keys: Option<Keys>) -> Result {
    super::serve::raise_open_files();
    let handle = tokio::runtime::Handle::current();
    let verified = blocking(move || {
        let backup = Backup::open(&path).map_err(backup_failed)?;
        let parent = backup.path().parent().unwrap_or(Path::new("/")).to_owned();
        let scratch = Directory::open(&scratch.unwrap_or(parent)).map_err(backup_failed)?;
        let kind = backup.head.database.kind.clone();
        let check = |copy: &Path| {
            handle.block_on(async {
                match &*kind {
                    "sqlite" => Db::check_copy(copy).await,
                    _ => postgres::check(copy)
                        .await
                        .map_err(|error| error.to_string()),
                }
            })
        };
        let mut reporter = Reporter::new("verifying");
        let watch = &mut |progress: &schema::backup::Progress| reporter.tell(progress);
        let trust = backup.trust(keys.as_ref()).map_err(backup_failed)?;
        // What another key has sealed is compared as it is.
        let keys = keys.filter(|keys| keys.fingerprint() == backup.head.key.fingerprint);
        let verified = backup.verify(&scratch, SystemClock.now(), keys.as_ref(), check, watch);
        Ok((backup, trust, verified.map_err(backup_failed)?))
    });
    let (backup, trust, (placed, differences)) = verified.await?;
    trust::warn_of_time(&backup);
    if trust == Trust::Changed {
        return Err(Failure::Failed(format!(
            "{}: its manifest was changed since it was made, so what it says of files proves nothing; use another backup",
            backup.path().display()
        )));
    }
    if differences.is_empty() && placed.damaged == 0 {
        let entries = report::entries(backup.head.entries);
        let text = format!(
            "{} is intact: {entries}, {}, made at {}; it needs the master key {}\n",
            backup.path().display(),
            report::size(backup.head.bytes),
            backup.head.started_at.to_rfc3339(),
            backup.head.key.fingerprint
        );
        screen::print(&text)?;
        return screen::print(&match trust::describe_doubt(&backup, trust) {
            None => {
                "this installation made it: its manifest has a MAC of the master key\n".to_owned()
            }
            Some(doubt) => format!("not proven: {doubt}; `restore` needs --trust\n"),
        });
    }
    for difference in &differences {
        screen::note(&format!("{}: {}", difference.path, difference.detail));
    }
    Err(Failure::Failed(format!(
        "{} differs from its manifest; undamaged files can be restored; for the others, use an older backup",
        backup.path().display()
    )))
}

/// Reason for which a backup cannot be used.
pub(super) fn backup_failed(error: BackupError) -> Failure {
    match &error {
        BackupError::Busy(_) => Failure::Unavailable(error.to_string()),
        BackupError::RefusedDirectory { .. } => Failure::Refused(error.to_string()),
        BackupError::NoEntry(_) => Failure::NotFound(error.to_string()),
        BackupError::Stopped => Failure::Interrupted,
        _ => Failure::Failed(chain(&error)),
    }
}

fn not_created(error: CreateError) -> Failure {
    match error {
        CreateError::Backup(BackupError::Io { ref source, .. })
            if source.kind() == std::io::ErrorKind::StorageFull =>
        {
            Failure::Failed(format!(
                "{}; free some space there, then repeat the command",
                chain(&error)
            ))
        }
        CreateError::Backup(error) => backup_failed(error),
        CreateError::Db(error) => db_failed(error),
        error => Failure::Failed(chain(&error)),
    }
}
