//! Directories in which scheduled backups may be kept.
//!
//! The setting can be changed over HTTP, and may name any directory of the machine, one that an agent reads included. The flag
//! of the server can be changed by its administrator only.

use std::os::fd::AsRawFd;
use std::path::{Component, Path, PathBuf};

use super::directory::is_same;
use super::{BackupError, Directory};

/// Directories of the system in which files are no files.
const SYSTEM: [&str; 3] = ["/proc", "/sys", "/dev"];
/// Directories in which container engines keep files unless they are told otherwise.
const ENGINES: [&str; 3] = [
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/containers",
];
/// Fact of an installation: the directory of backups, as JSON, that was set before there was a flag for it.
pub const DIRECTORY_BEFORE: &str = "backup_directory_before";
/// Magic number of overlay file systems, as `statfs` reports it.
const OVERLAY: rustix::fs::FsWord = 0x794c_7630;

/// Directories that flags of the server name, and the one that was set before there was such a flag.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Named by flags: these, and directories below them.
    pub named: Vec<PathBuf>,
    /// Set before there was a flag.
    pub before: Option<PathBuf>,
}

/// Reason for which a directory may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// A flag names it, or one above it.
    Named,
    /// It was set before there was a flag.
    Before,
}

impl Allowed {
    /// Decides by the path alone.
    ///
    /// # Errors
    /// The rule and the remedy.
    pub fn permit(&self, path: &Path) -> Result<Permission, String> {
        let shown = path.display();
        if self.named.iter().any(|named| is_below(path, named)) {
            return Ok(Permission::Named);
        }
        if self.before.as_deref() == Some(path) {
            return Ok(Permission::Before);
        }
        let known: Vec<String> = self
            .named
            .iter()
            .map(|named| named.display().to_string())
            .collect();
        let known = match known.is_empty() {
            true => "none is allowed now".to_owned(),
            false => format!("allowed now: {}", known.join(", ")),
        };
        Err(format!(
            "{shown} is in no directory that the server allows for backups ({known}); choose one of these, or {}, and restart it",
            name_flag(path)
        ))
    }

    /// Checks an opened directory: its real path, and the file system that it lies on. `engine_root` is the directory in which the
    /// engine keeps files, beside the usual ones.
    ///
    /// # Errors
    /// [`BackupError::RefusedDirectory`].
    pub fn check(
        &self,
        directory: &Directory,
        engine_root: Option<&Path>,
    ) -> Result<(), BackupError> {
        let space = rustix::fs::fstatfs(&directory.fd);
        let space = space.map_err(BackupError::io("inspecting", directory.path()))?;
        self.check_on(directory, engine_root, space.f_type)
    }

    /// The same on a file system of this magic number.
    fn check_on(
        &self,
        directory: &Directory,
        engine_root: Option<&Path>,
        file_system: rustix::fs::FsWord,
    ) -> Result<(), BackupError> {
        let path = directory.path();
        let refused = |detail: String| BackupError::RefusedDirectory {
            path: path.to_owned(),
            detail,
        };
        let permission = self.permit(path).map_err(refused)?;
        let handle = format!("/proc/self/fd/{}", directory.fd.as_raw_fd());
        let real = std::fs::read_link(handle).map_err(BackupError::io("finding", path))?;
        if SYSTEM.iter().any(|system| real.starts_with(system)) {
            return Err(refused(
                "it belongs to the system; use a directory of a disk".to_owned(),
            ));
        }
        let is_engines = |root: &Path| {
            real.starts_with(root) || real.ancestors().any(|above| is_same(above, root))
        };
        let mut roots = engine_root.into_iter().chain(ENGINES.map(Path::new));
        if let Some(root) = roots.find(|root| is_engines(root)) {
            return Err(refused(format!(
                "it lies in {}, where the container engine keeps files of agents, who would read the backup; use another directory",
                root.display()
            )));
        }
        if file_system == OVERLAY {
            return Err(refused(
                "it is on an overlay file system, the files of a container; mount a directory of a disk there".to_owned(),
            ));
        }
        // A link below an allowed directory may lead elsewhere.
        let is_inside = |named: &PathBuf| real.ancestors().any(|above| is_same(above, named));
        match permission {
            Permission::Named if !self.named.iter().any(is_inside) => Err(refused(format!(
                "it leads to {}, which is in no directory that the server allows for backups; {}, and restart it",
                real.display(),
                name_flag(&real)
            ))),
            Permission::Named | Permission::Before => Ok(()),
        }
    }
}

/// Ways to allow a directory, as an imperative.
pub fn name_flag(directory: &Path) -> String {
    format!(
        "add the line `backup-directory: {}` to the server's settings file, or this directory to AGENTYARD_BACKUP_DIRECTORY (chart: backupDirectories)",
        directory.display()
    )
}

/// Says why a directory cannot be named by the flag.
///
/// # Errors
/// The rule and the remedy.
pub fn check_allowed(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    if !path.is_absolute() || !path.components().all(is_plain) {
        return Err(format!(
            "{shown} must be an absolute path without `..`, such as /mnt/backup"
        ));
    }
    if path.parent().is_none() {
        return Err(
            "/ would allow all directories; name that of the backups, such as /mnt/backup"
                .to_owned(),
        );
    }
    match SYSTEM.iter().any(|system| path.starts_with(system)) {
        true => Err(format!(
            "{shown} belongs to the system; name a directory of a disk"
        )),
        false => Ok(()),
    }
}

fn is_below(path: &Path, named: &Path) -> bool {
    let leaves = path.components().any(|part| part == Component::ParentDir);
    !leaves && path.starts_with(named)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use sqlx::Connection as _;

    use super::*;
    use crate::db::{Backend, Db};
    use crate::meta;

    fn allowed(named: &[&Path]) -> Allowed {
        Allowed {
            named: named.iter().map(|path| path.to_path_buf()).collect(),
            before: Some("/old".into()),
        }
    }

    #[test]
    fn setting_chooses_among_named_directories() {
        let allowed = allowed(&[Path::new("/mnt/backup")]);
        for (path, expected) in [
            ("/mnt/backup", Some(Permission::Named)),
            ("/mnt/backup/", Some(Permission::Named)),
            ("/mnt/backup/daily", Some(Permission::Named)),
            ("/old", Some(Permission::Before)),
            ("/old/daily", None),
            ("/mnt", None),
            ("/mnt/backups", None),
            ("/mnt/backup/../other", None),
        ] {
            let permission = allowed.permit(Path::new(path));
            assert_eq!(permission.clone().ok(), expected, "{path}: {permission:?}");
        }
        let refused = allowed.permit(Path::new("/x")).unwrap_err();
        assert!(
            refused.contains("allowed now: /mnt/backup")
                && refused.contains("`backup-directory: /x`"),
            "{refused}"
        );
    }

    #[tokio::test]
    async fn directory_of_an_earlier_release_is_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agentyard.db");
        let before = async |statements: &'static str| {
            let db = Db::open(Backend::Sqlite(path.clone())).await.unwrap();
            let mut connection = db.read().await.unwrap();
            let known = meta::get(&mut connection, DIRECTORY_BEFORE).await;
            drop(connection);
            db.close().await;
            let url = crate::db::sqlite_url(&path, "rw");
            let mut raw = sqlx::AnyConnection::connect(&url).await.unwrap();
            sqlx::raw_sql(statements).execute(&mut raw).await.unwrap();
            raw.close().await.unwrap();
            known.unwrap()
        };
        // As before the migration.
        let earlier = "DELETE FROM _sqlx_migrations WHERE version = 28; \
            INSERT INTO config_values (key, value) VALUES ('backup.directory', '\"/mnt/backup\"')";
        assert_eq!(before(earlier).await, None);
        assert_eq!(before("").await.as_deref(), Some("\"/mnt/backup\""));
    }

    #[test]
    fn flag_names_no_directory_of_the_system() {
        for path in [
            "backup",
            "/mnt/../proc",
            "/",
            "/proc/1/root",
            "/sys",
            "/dev/shm",
        ] {
            assert!(check_allowed(Path::new(path)).is_err(), "{path}");
        }
        check_allowed(Path::new("/mnt/backup")).unwrap();
    }

    #[test]
    fn places_that_agents_reach_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let (named, other) = (root.path().join("named"), root.path().join("other"));
        for dir in [&named, &other] {
            std::fs::create_dir(dir).unwrap();
            let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            std::fs::set_permissions(dir, private).unwrap();
        }
        symlink(&other, named.join("link")).unwrap();
        let allowed = allowed(&[&named]);
        let check = |path: &Path, engine: Option<&Path>| {
            let checked = allowed.check(&Directory::open(path).unwrap(), engine);
            checked.map_err(|error| error.to_string())
        };
        check(&named, None).unwrap();
        check(&named, Some(&other)).unwrap();
        let refused = check(&named, Some(root.path())).unwrap_err();
        assert!(refused.contains("container engine"), "{refused}");
        for path in ["/proc", "/sys", "/dev"] {
            let allowed = Allowed {
                named: vec![path.into()],
                before: None,
            };
            let opened = Directory::open(Path::new(path)).unwrap();
            let refused = allowed.check(&opened, None).unwrap_err().to_string();
            assert!(refused.contains("belongs to the system"), "{refused}");
        }
        let opened = Directory::open(&named).unwrap();
        let refused = allowed.check_on(&opened, None, OVERLAY).unwrap_err();
        assert!(refused.to_string().contains("overlay"), "{refused}");
        let refused = check(&named.join("link"), None).unwrap_err();
        assert!(refused.contains("it leads to"), "{refused}");
    }
}
