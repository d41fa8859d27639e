//! A disk that is soon full.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A small file system of its own.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `size` as mount takes it, such as `256k`.
    pub fn mount(at: &Path, size: &str) -> Self {
        std::fs::create_dir_all(at).unwrap();
        let mount = Command::new("mount")
            .args([
                "-t",
                "tmpfs",
                "-o",
                &format!("size={size},mode=0700"),
                "tmpfs",
            ])
            .arg(at)
            .status()
            .unwrap();
        assert!(mount.success(), "{mount}");
        Self(at.to_owned())
    }

    /// Leaves no byte free; gives the file that takes the room.
    pub fn fill(&self) -> PathBuf {
        let filler = self.0.join("filler");
        let all = std::fs::write(&filler, vec![0; 64 << 20]);
        assert_eq!(all.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
        filler
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Containers may still have it; it goes with the last of them.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
