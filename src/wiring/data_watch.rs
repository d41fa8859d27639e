//! Notices that the data directory or the database file is removed or replaced under the running service, which would go on
//! to write into files that no name leads to.

use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use schema::db::{Backend, Db};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Time between two looks at the places.
const EVERY: Duration = Duration::from_secs(1);
/// A place that is missing, or another one, so many times in a row is lost: where a file system is unmounted and mounted again,
/// its mount point is seen in between.
const TIMES: u32 = 3;

/// The data directory or the database file is not the one that the service began with.
#[derive(Debug, thiserror::Error)]
#[error(
    "{what} {} was {how} under the running server, which has ended because changes would be lost; restore it from a backup and start the server again",
    path.display()
)]
pub struct DataLost {
    what: &'static str,
    path: PathBuf,
    how: &'static str,
}

impl DataLost {
    /// The same without the path, for callers without an account.
    pub fn public(&self) -> &'static str {
        match self.how {
            MISSING => "the data directory or the database file was removed",
            _ => "the data directory or the database file was replaced",
        }
    }
}

const MISSING: &str = "removed";
const REPLACED: &str = "replaced";

/// A directory or file, and its identity when the service began.
#[derive(Debug, Clone)]
struct Place {
    what: &'static str,
    path: PathBuf,
    identity: (u64, u64),
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = std::fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

impl Place {
    fn new(what: &'static str, path: &Path) -> io::Result<Self> {
        Ok(Self {
            what,
            path: path.to_owned(),
            identity: identity(path)?,
        })
    }

    /// Tells that it is lost, and in which way. What cannot be found out is not known to be lost.
    fn loss(&self) -> Option<&'static str> {
        match identity(&self.path) {
            Ok(now) if now == self.identity => None,
            Ok(_) => Some(REPLACED),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => Some(MISSING),
                _ => None,
            },
        }
    }
}

/// Watches the places where the service keeps its data.
#[derive(Debug)]
pub struct DataWatch(Arc<[Place]>);

impl DataWatch {
    /// Remembers the identities that the places have now.
    ///
    /// # Errors
    /// When one of them is not there.
    pub fn new(data_dir: &Path, db: &Db) -> io::Result<Self> {
        let mut places = vec![Place::new("the data directory", data_dir)?];
        if let Backend::Sqlite(file) = db.backend() {
            places.push(Place::new("the database file", file)?);
        }
        Ok(Self(places.into()))
    }

    /// Looks at the places until one is lost. A file system that hangs holds up one thread, and says nothing.
    pub async fn run(self) -> DataLost {
        let mut times = 0;
        loop {
            sleep(EVERY).await;
            let places = Arc::clone(&self.0);
            let looked = spawn_blocking(move || {
                let mut places = places.iter();
                places.find_map(|place| place.loss().map(|how| (place.clone(), how)))
            });
            let Ok(Some((Place { what, path, .. }, how))) = looked.await else {
                times = 0;
                continue;
            };
            times += 1;
            if times == TIMES {
                return DataLost { what, path, how };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn watch(path: &Path) -> impl Future<Output = DataLost> {
        let place = Place::new("the data directory", path).unwrap();
        DataWatch([place].into()).run()
    }

    #[tokio::test]
    async fn place_that_stays_replaced_or_missing_is_lost() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        for (again, how) in [(true, REPLACED), (false, MISSING)] {
            std::fs::create_dir_all(&path).unwrap();
            let watch = watch(&path).await;
            // Kept, so that its number is not given to the next one.
            std::fs::rename(&path, directory.path().join(how)).unwrap();
            if again {
                std::fs::create_dir(&path).unwrap();
            }
            let begun = tokio::time::Instant::now();
            let lost = watch.await;
            assert_eq!(lost.how, how);
            let looks = begun.elapsed().as_secs();
            assert!(looks >= 2, "{how}: {looks} s");
            assert!(lost.to_string().contains("/data was"), "{lost}");
        }
    }

    #[tokio::test]
    async fn place_that_comes_back_is_not_lost() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        std::fs::create_dir(&path).unwrap();
        let watch = watch(&path).await;
        // As a mount point is seen while its file system is not mounted.
        let mounted = directory.path().join("mounted");
        std::fs::rename(&path, &mounted).unwrap();
        std::fs::create_dir(&path).unwrap();
        let remount = async {
            sleep(EVERY + EVERY / 2).await;
            std::fs::remove_dir(&path).unwrap();
            std::fs::rename(&mounted, &path).unwrap();
            sleep(EVERY * 3).await;
        };
        tokio::select! {
            lost = watch => panic!("{lost}"),
            () = remount => {}
        }
    }

    #[test]
    fn unreadable_place_is_not_known_to_be_lost() {
        let path = std::env::temp_dir().join("x".repeat(300));
        let place = Place {
            what: "the data directory",
            path,
            identity: (0, 0),
        };
        assert_eq!(place.loss(), None, "the name is too long to be asked for");
    }
}
