//! `agentyard restore`: an installation, or one user's files, from a backup.

use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use rustix::fs::{CWD, Gid, Mode, OFlags, Uid};
use schema::audit::{About, Author, Writer};
use schema::backup::{
    Backup, DIRECTORY_BEFORE, Keys, Owners, Placed, Progress, SealedFiles, Selection,
};
use schema::clock::SystemClock;
use schema::db::{Backend, Db};
use schema::error::chain;
use schema::home::{BringBackError, RestoreError, WORKSPACE_DIR};
use schema::ids::UserName;
use schema::meta;
use schema::secrets::{MASTER_KEY_FILE, MasterKey};
use schema::usage;

use super::backup_failed;
use super::report::{self, Reporter};
use super::trust::{check_trust, load_key};
use crate::backup::postgres;
use crate::cli::archive::restore as archived;
use crate::cli::local::{Local, blocking, db_failed, home_failed};
use crate::cli::output::cell::counted;
use crate::cli::output::clean::clean;
use crate::cli::output::screen;
use crate::cli::{Failure, Result, failed};
use crate::settings::Settings;

/// Parts of a backup to restore, and their target.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// Folder of the backup
    backup: PathBuf,
    /// File with the master key of the backup [default with --to: that of the data directory, if it is the one]; with --to it may be missing, and sealed settings files of agents are left out then
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Restore a backup of which the master key does not prove where it comes from; its contents are taken as they are
    #[arg(long)]
    trust: bool,
    /// Restore files of this user only
    #[arg(long, value_name = "NAME", requires = "path")]
    user: Option<String>,
    /// File or folder of the user, relative to the home directory or to the workspace
    #[arg(long, value_name = "PATH", requires = "user")]
    path: Option<PathBuf>,
    /// Replace an existing file (not a folder) instead of restoring beside it
    #[arg(long, requires = "user", conflicts_with = "to")]
    force: bool,
    /// Restore files only, to this new or empty directory
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// When there is no such backup or entry, the key is not that of the backup, or the target is not empty.
pub async fn restore(settings: impl FnOnce() -> Result<Settings>, args: RestoreArgs) -> Result {
    crate::cli::serve::raise_open_files();
    let path = args.backup.clone();
    let backup = blocking(move || Backup::open(&path).map_err(backup_failed)).await?;
    let (key_file, trusts) = (args.key_file.as_deref(), args.trust);
    match (args.user, args.path, args.to) {
        (Some(_), Some(_), None) if key_file.is_some() => Err(Failure::Usage(
            "the key of this installation is in its data directory; leave --key-file out, or give --to DIR"
                .to_owned(),
        )),
        (Some(user), Some(path), None) => {
            let back = Back {
                path: &path,
                force: args.force,
                trusts,
            };
            bring_back(&settings()?, backup, &user, back).await
        }
        (user, path, Some(to)) => {
            let keys = match key_file {
                Some(file) => Some(load_key(&backup, Some(file), trusts)?),
                // A copy of a backup is restored elsewhere, too.
                None => settings()
                    .ok()
                    .and_then(|settings| MasterKey::load(&settings.data_dir).ok())
                    .filter(|key| backup.is_key(key)),
            };
            let keys = keys.as_ref().map(Keys::new);
            check_trust(&backup, keys.as_ref(), trusts)?;
            place_files(backup, keys, user.zip(path), to).await
        }
        _ => restore_all(&settings()?, backup, key_file, trusts).await,
    }
}

/// Restores an installation to an empty data directory: files, then the key, the database last. Until that is there, no server
/// starts on what is restored.
async fn restore_all(
    settings: &Settings,
    backup: Backup,
    key_file: Option<&Path>,
    trusts: bool,
) -> Result {
    let head = &backup.head;
    if head.database.kind != settings.database.kind() {
        return Err(Failure::Usage(format!(
            "the backup contains a {} database; set --database-url to one of that kind ({}), and move it with `agentyard migrate-database` afterwards",
            head.database.kind,
            match &*head.database.kind {
                "postgresql" => "an empty one, such as postgres://USER@HOST/NAME",
                _ => "or leave it out",
            }
        )));
    }
    // The service would not start with a database of another key.
    let key = load_key(&backup, key_file, false)?;
    let keys = Keys::new(&key);
    let is_proven = check_trust(&backup, Some(&keys), trusts)?;
    let data_dir = settings.data_dir.clone();
    let database = settings.database.clone();
    if let Backend::Postgres(url) = &database {
        let is_empty = Db::has_no_tables(url).await;
        let is_empty = is_empty.map_err(|error| Failure::Unavailable(chain(&error)))?;
        if !is_empty {
            return Err(not_empty(&database.place()));
        }
    }
    let service_user = head.service_user;
    let target = data_dir.clone();
    let backend = database.clone();
    let restored = blocking(move || {
        let top = make_empty(&target)?;
        refuse_existing(&backend)?;
        let mut reporter = Reporter::new("restoring");
        let watch = &mut |progress: &Progress| reporter.tell(progress);
        let sealed = SealedFiles::Open(&keys);
        let placed = backup.place(&Selection::all(), &top, Owners::Originals, sealed, watch);
        let placed = placed.map_err(backup_failed)?;
        key.save_file(&target.join(MASTER_KEY_FILE))
            .map_err(|error| Failure::Failed(chain(&error)))?;
        let dump = place_database(&backup, &backend, &top, &target)?;
        // Whoever has changed the manifest would be given the key.
        if is_proven {
            give_to_service(&target, &backend, service_user)?;
        }
        rustix::fs::syncfs(&top).map_err(failed)?;
        Ok((backup, placed, dump))
    });
    let (backup, placed, dump) = restored.await?;
    if let (Some(dump), Backend::Postgres(url)) = (&dump, &database) {
        let restored = postgres::restore(url, dump).await;
        let removed = tokio::fs::remove_file(dump).await;
        restored.map_err(|error| Failure::Failed(chain(&error)))?;
        removed.map_err(failed)?;
    }
    if !is_proven {
        forget_directory(database.clone()).await?;
        tell_owner(&data_dir, &database);
    }
    screen::print(&format!(
        "restored {} of {} to {}; start the server with `agentyard serve --data-dir {}`\n",
        said(&placed),
        backup.path().display(),
        data_dir.display(),
        data_dir.display(),
    ))?;
    tell_damaged(&placed, GIVE_KEY)
}

/// Forgets the directory of backups that was set before there was a flag for it: nothing proves that this installation has set it.
async fn forget_directory(database: Backend) -> Result {
    let db = Db::open(database).await;
    let db = db.map_err(|error| Failure::Failed(chain(&error)))?;
    let mut tx = db.begin().await.map_err(db_failed)?;
    meta::remove(&mut tx, DIRECTORY_BEFORE)
        .await
        .map_err(db_failed)?;
    tx.commit().await.map_err(db_failed)?;
    db.close().await;
    Ok(())
}

fn not_empty(place: &str) -> Failure {
    Failure::Refused(format!(
        "{place} is not empty; a backup is restored to an empty directory and database only"
    ))
}

/// Opens an empty directory, making it if it is missing.
fn make_empty(path: &Path) -> Result<OwnedFd> {
    match std::fs::read_dir(path) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(not_empty(&path.display().to_string()));
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Failure::Failed(format!("{}: {error}", path.display()))),
    }
    schema::home::check_data_dir(path, true).map_err(home_failed)?;
    let mut builder = std::fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(path);
    made.map_err(|error| {
        Failure::Failed(format!("{} cannot be created: {error}", path.display()))
    })?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(failed)
}

fn refuse_existing(database: &Backend) -> Result {
    match database {
        Backend::Sqlite(file) => {
            // SQLite would replay the log of a database that is gone into the restored one.
            for suffix in ["", "-wal", "-shm", "-journal"] {
                let mut place = file.as_os_str().to_owned();
                place.push(suffix);
                if std::fs::symlink_metadata(&place).is_ok() {
                    return Err(not_empty(&Path::new(&place).display().to_string()));
                }
            }
            Ok(())
        }
        Backend::Postgres(_) => Ok(()),
    }
}

/// Puts the database in its place; a dump goes to a temporary file, which it tells.
fn place_database(
    backup: &Backup,
    database: &Backend,
    top: &OwnedFd,
    data_dir: &Path,
) -> Result<Option<PathBuf>> {
    let name = Path::new(".restoring-database");
    let Backend::Sqlite(file) = database else {
        backup.place_database(top, name).map_err(backup_failed)?;
        return Ok(Some(data_dir.join(name)));
    };
    let parent = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::openat(CWD, parent, flags, Mode::empty());
    let dir = dir.map_err(|error| Failure::Failed(format!("{}: {error}", parent.display())))?;
    backup.place_database(&dir, name).map_err(backup_failed)?;
    std::fs::rename(parent.join(name), file).map_err(failed)?;
    rustix::fs::fsync(&dir).map_err(failed)?;
    Ok(None)
}

/// Root restores for the user that the service ran as.
fn give_to_service(data_dir: &Path, database: &Backend, (user, group): (u32, u32)) -> Result {
    if !rustix::process::geteuid().is_root() || user == 0 {
        return Ok(());
    }
    for place in places_of_service(data_dir, database) {
        let given = rustix::fs::chown(
            &place,
            Some(Uid::from_raw(user)),
            Some(Gid::from_raw(group)),
        );
        given.map_err(|error| Failure::Failed(format!("{}: {error}", place.display())))?;
    }
    Ok(())
}

/// Paths that only the user of the service may have.
fn places_of_service(data_dir: &Path, database: &Backend) -> Vec<PathBuf> {
    let mut places = vec![data_dir.to_owned(), data_dir.join(MASTER_KEY_FILE)];
    if let Backend::Sqlite(file) = database {
        places.push(file.clone());
    }
    places
}

/// Says how root hands over what it has restored for a user whom nothing proves.
fn tell_owner(data_dir: &Path, database: &Backend) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let places = places_of_service(data_dir, database);
    let places: Vec<String> = places
        .iter()
        .map(|place| place.display().to_string())
        .collect();
    screen::note(&format!(
        "the data directory, the master key and the database belong to root, since nothing proves which user they were of; give them to the one that runs the server: `chown USER: {}`",
        places.join(" ")
    ));
}

/// Restores files to a directory elsewhere: all of users and archives, or those of one user.
async fn place_files(
    backup: Backup,
    keys: Option<Keys>,
    one: Option<(String, PathBuf)>,
    to: PathBuf,
) -> Result {
    let shown = to.display().to_string();
    let placed = blocking(move || {
        let top = make_empty(&to)?;
        let sealed = match &keys {
            Some(keys) => SealedFiles::Open(keys),
            None => SealedFiles::LeaveOut,
        };
        let mut reporter = Reporter::new("restoring");
        let watch = &mut |progress: &Progress| reporter.tell(progress);
        let Some((user, path)) = one else {
            let placed = backup.place(&Selection::all(), &top, Owners::Caller, sealed, watch);
            return placed.map_err(backup_failed);
        };
        let name: UserName = user.parse().map_err(failed)?;
        let relative = find(&backup, &name, &path)?;
        let selection = Selection {
            to: relative.file_name().map(PathBuf::from).unwrap_or_default(),
            under: Path::new("users").join(name.as_str()).join(&relative),
        };
        let placed = backup.place(&selection, &top, Owners::Caller, sealed, watch);
        placed.map_err(backup_failed)
    });
    let placed = placed.await?;
    screen::print(&format!("restored {} to {shown}\n", said(&placed)))?;
    tell_damaged(&placed, GIVE_KEY)
}

/// The path of an entry in a home: as it is given, or in the workspace.
fn find(backup: &Backup, user: &UserName, path: &Path) -> Result<PathBuf> {
    let given: PathBuf = path
        .components()
        .filter(|part| *part != std::path::Component::CurDir)
        .collect();
    if given.is_absolute()
        || given
            .components()
            .any(|part| part == std::path::Component::ParentDir)
    {
        return Err(Failure::Usage(
            "--path must be a path inside the user's home, such as .agent/workspace/notes.txt"
                .to_owned(),
        ));
    }
    let home = Path::new("users").join(user.as_str());
    let candidates = [given.clone(), Path::new(WORKSPACE_DIR).join(&given)];
    for relative in candidates {
        if backup.has(&home.join(&relative)).map_err(backup_failed)? {
            return Ok(relative);
        }
    }
    Err(Failure::NotFound(format!(
        "{} is not in the home of {user} in this backup; {}/manifest.jsonl lists all entries",
        clean(&path.display().to_string()),
        backup.path().display()
    )))
}

/// Entry to bring back.
struct Back<'a> {
    path: &'a Path,
    /// A file takes the place of a file.
    force: bool,
    trusts: bool,
}

/// Brings a file or folder back into the home of its user, and records that.
async fn bring_back(settings: &Settings, backup: Backup, user: &str, back: Back<'_>) -> Result {
    let name: UserName = user.parse().map_err(failed)?;
    let local = Local::open(settings).await?;
    let key = MasterKey::load(&settings.data_dir);
    let key = key.map_err(|error| Failure::Refused(error.to_string()))?;
    let keys = Keys::new(&key);
    check_trust(&backup, Some(&keys), back.trusts)?;
    let is_own = backup.is_key(&key);
    let writer = Writer::new(local.db.clone(), &key, Arc::new(SystemClock));
    let account = archived::target(&local, &name).await?;
    let (relative, force) = (find(&backup, &name, back.path)?, back.force);
    if relative.as_os_str().is_empty() {
        return Err(Failure::Usage(
            "a whole home directory cannot be restored into an existing one; restore it to another directory with --to DIR"
                .to_owned(),
        ));
    }
    archived::ensure_home(&local, &account).await?;
    let (homes, uid, user) = (local.homes.clone(), account.uid.clone(), name.clone());
    let source = backup.path().display().to_string();
    let back = blocking(move || {
        let mut reporter = Reporter::new("restoring");
        let watch = &mut |progress: &Progress| reporter.tell(progress);
        let sealed = match is_own {
            true => SealedFiles::Open(&keys),
            false => SealedFiles::LeaveOut,
        };
        let back = homes.bring_back(&backup, (&user, &uid), &relative, force, sealed, watch);
        back.map_err(|error| not_back(error, &user))
    });
    let back = back.await?;
    let shown = clean(&schema::backup::escape(&back.path));
    let author = Author::local(rustix::process::getuid().as_raw(), "backup_restore");
    let mut tx = writer.begin(author).await.map_err(db_failed)?;
    usage::changed(&mut tx, &account.uid)
        .await
        .map_err(db_failed)?;
    let about = About::object(account.role, &account.name).detail(format!("{shown} from {source}"));
    tx.commit(about).await.map_err(db_failed)?;
    local.db.close().await;
    screen::print(&format!(
        "restored {} to {shown} in {name}'s home\n",
        said(&back.placed)
    ))?;
    tell_damaged(&back.placed, &BringBackError::Sealed.to_string())
}

fn not_back(error: BringBackError, user: &UserName) -> Failure {
    match error {
        BringBackError::Backup(error) => backup_failed(error),
        BringBackError::Restore(RestoreError::NoHome) => Failure::Failed(format!(
            "the directory of {user} is gone; repeat the command once \"agentyard describe user/{user}\" reports it ready"
        )),
        BringBackError::Restore(RestoreError::Busy) => Failure::Unavailable(
            "another restore is in progress; repeat the command when it has ended".to_owned(),
        ),
        BringBackError::Restore(RestoreError::Home(error)) => home_failed(error),
        error => Failure::Failed(chain(&error)),
    }
}

fn said(placed: &Placed) -> String {
    format!(
        "{}, {}",
        report::entries(placed.entries),
        report::size(placed.bytes)
    )
}

/// Reason and remedy of a sealed file that was left out.
const GIVE_KEY: &str = "it is sealed; give the master key with --key-file";

/// Names files that were left out, sealed ones with this reason; damaged ones: exit code 1.
fn tell_damaged(placed: &Placed, sealed: &str) -> Result {
    for name in &placed.sealed_names {
        screen::note(&format!("left out: {}: {sealed}", clean(name)));
    }
    if let Some(more @ 1..) = placed.sealed.checked_sub(placed.sealed_names.len() as u64) {
        screen::note(&format!("left out: {more} more sealed files"));
    }
    if placed.damaged == 0 {
        return Ok(());
    }
    for name in &placed.damaged_names {
        screen::note(&format!("left out: {}", clean(name)));
    }
    Err(Failure::Failed(format!(
        "damaged in the backup, or refused: {}; an older backup may contain the files left out",
        counted(placed.damaged, "file")
    )))
}
