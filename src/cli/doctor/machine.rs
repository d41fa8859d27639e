//! Checks of this machine, which need no server.

use std::fs::symlink_metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;
use schema::db::Backend;
use schema::secrets::MasterKey;

use super::finding::Finding;
use crate::settings::Settings;
use crate::wiring::storage::Gauge;

/// Checks permissions of the data directory, the key and the socket.
pub(super) async fn permissions(settings: &Settings) -> Finding {
    let (data_dir, socket) = (settings.data_dir.clone(), settings.admin_socket.clone());
    let us = rustix::process::geteuid().as_raw();
    let checked = tokio::task::spawn_blocking(move || permissions_of(&data_dir, &socket, us)).await;
    checked.unwrap_or_else(|error| Finding::failed(error.to_string(), "try again"))
}

pub(super) fn permissions_of(data_dir: &Path, socket: &Path, us: u32) -> Finding {
    let shown = data_dir.display();
    let found = match symlink_metadata(data_dir) {
        Ok(found) => found,
        Err(error) => {
            return Finding::failed(
                format!("the data directory {shown} cannot be read: {error}"),
                "correct --data-dir, or prepare a data directory with `agentyard init`",
            );
        }
    };
    let owner = found.uid();
    if owner != us {
        return Finding::failed(
            format!("{shown} belongs to user {owner}, and this command runs as user {us}"),
            format!("run it as that user: sudo -u '#{owner}' agentyard doctor"),
        );
    }
    if let Err(error) = MasterKey::load(data_dir) {
        let text = schema::error::chain(&error);
        return Finding::failed(
            text,
            "restore the key from its copy (backups do not contain it), owned by the server's user, with mode 0600",
        );
    }
    for (path, allowed) in [(data_dir, 0o755), (socket, 0o600)] {
        let mode = symlink_metadata(path).map(|found| found.mode() & 0o777);
        // Without a server there is no socket.
        let Ok(mode) = mode else { continue };
        if mode & !allowed != 0 {
            return Finding::failed(
                format!(
                    "{} has mode {mode:04o}: other users have access",
                    path.display()
                ),
                format!("chmod {allowed:04o} {}", path.display()),
            );
        }
    }
    if found.mode() & 0o077 != 0 {
        return Finding::warning(
            format!("other users of this machine can read {shown}"),
            format!("chmod 0700 {shown}"),
        );
    }
    Finding::ok(format!(
        "only the server's user has access to {shown} and its key"
    ))
}

/// Free space.
pub(super) async fn disk(settings: &Settings) -> Finding {
    let mut places = vec![settings.data_dir.clone()];
    if let Backend::Sqlite(file) = &settings.database {
        places.extend(file.parent().map(PathBuf::from));
    }
    let checked = tokio::task::spawn_blocking(move || disk_of(places)).await;
    checked.unwrap_or_else(|error| Finding::failed(error.to_string(), "try again"))
}

/// Set-uid files of agents.
pub(super) async fn mount(settings: &Settings) -> Finding {
    let data_dir = settings.data_dir.clone();
    let checked = tokio::task::spawn_blocking(move || mount_of(&data_dir)).await;
    checked.unwrap_or_else(|error| Finding::failed(error.to_string(), "try again"))
}

fn mount_of(data_dir: &Path) -> Finding {
    match rustix::fs::statvfs(data_dir) {
        Ok(found) => judge_mount(data_dir, found.f_flag.contains(StatVfsMountFlags::NOSUID)),
        Err(error) => Finding::failed(
            format!(
                "the mount of {} cannot be read: {error}",
                data_dir.display()
            ),
            "correct --data-dir",
        ),
    }
}

pub(super) fn judge_mount(data_dir: &Path, is_nosuid: bool) -> Finding {
    let shown = data_dir.display();
    match is_nosuid {
        true => Finding::ok(format!(
            "set-uid files that agents make below {shown} have no effect on this machine"
        )),
        false => Finding::warning(
            format!(
                "{shown} is not on a nosuid mount: a set-uid file that an agent makes there runs as the agent's user for everyone who may enter the directory"
            ),
            format!(
                "mount the file system of {shown} with the option nosuid, and keep the directory at mode 0700"
            ),
        ),
    }
}

pub(super) fn disk_of(places: Vec<PathBuf>) -> Finding {
    let gauge = Gauge::new(places);
    gauge.read();
    match (gauge.shortage(), gauge.first()) {
        (Some(shortage), _) => Finding::failed(
            shortage,
            "free space on that disk, or delete archives: `agentyard archive list`, `agentyard archive delete`",
        ),
        (None, Some(space)) => {
            let (free, total) = (space.free / 1_000_000, space.total / 1_000_000);
            Finding::ok(format!("{free} MB of {total} MB are free"))
        }
        (None, None) => Finding::failed(
            "the data directory's disk cannot be read",
            "correct --data-dir",
        ),
    }
}
