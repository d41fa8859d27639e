//! Homes on a file system without birth times, whose device number is another one after each mount.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use schema::condition::Reason;
use schema::home::HomeId;
use schema::ids::Uid;

use super::converge::{made, yard};
use crate::scripted::container::support::{OWNER, Yard, reason};
use reconcilers::agent_config::AgentConfigStore;
use reconcilers::container::settings::LABEL_HOME;
use reconcilers::stores::{DataDir, LocalDataDir, Rows};
use schema::agent_config::{AgentConfigFacts, AgentConfigRow};

/// The sentence that says how to install the program.
const INSTALL: &str = "bindfs is not installed: this test needs a file system without birth times. Install it with: apt-get install -y --no-install-recommends bindfs";

/// A mount of a directory by FUSE, until it is dropped.
struct BindFs(PathBuf);

impl BindFs {
    fn mount(directory: &Path, at: &Path) -> Self {
        let mut command = Command::new("bindfs");
        let output = command
            .args(["-o", "nonempty"])
            .args([directory, at])
            .output()
            .expect(INSTALL);
        assert!(
            output.status.success(),
            "bindfs needs root and /dev/fuse: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Self(at.to_owned())
    }
}

impl Drop for BindFs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Lets the service run on a mount of its users' directories.
fn mount_users(yard: &mut Yard) -> (BindFs, PathBuf) {
    let at = |name: &str| yard.dir.path().join(name);
    let (disk, users) = (at("disk"), at("users"));
    std::fs::rename(&users, &disk).unwrap();
    std::fs::create_dir(&users).unwrap();
    let mount = BindFs::mount(&disk, &users);
    yard.reboot();
    (mount, disk)
}

async fn home_id(yard: &Yard, uid: &Uid) -> HomeId {
    let data_dir = LocalDataDir::open(yard.dir.path(), OWNER).unwrap();
    let look = data_dir.look(&"alice".parse().unwrap(), uid, &[]).await;
    look.unwrap().unwrap().id
}

#[tokio::test(flavor = "multi_thread")]
async fn remount_without_birth_times_keeps_the_container() {
    let (mut yard, uid) = yard().await;
    let (_first, disk) = mount_users(&mut yard);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let home = yard.dir.path().join("users/alice");
    let inspect = || std::fs::metadata(&home).unwrap();
    let (container, id, before) = (made(&yard), home_id(&yard, &uid).await, inspect());

    let _second = BindFs::mount(&disk, &yard.dir.path().join("users"));
    let after = inspect();
    assert_ne!(after.dev(), before.dev());
    assert_eq!(after.ino(), before.ino());
    assert!(before.created().is_err() && after.created().is_err());
    assert_eq!(home_id(&yard, &uid).await, id);
    yard.reboot();
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert_eq!(made(&yard), container);
    yard.assert_nothing_to_do(&uid).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn identity_stored_by_an_earlier_build_keeps_the_container() {
    let (mut yard, uid) = yard().await;
    let _mount = mount_users(&mut yard);
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    let container = made(&yard);

    let inode = std::fs::metadata(yard.dir.path().join("users/alice")).unwrap();
    let earlier = format!("8.1-{:x}", inode.ino());
    yard.fake
        .hand_label("agentyard-alice", LABEL_HOME, &earlier)
        .unwrap();
    let row: Option<AgentConfigRow> = yard.store().row(&uid).await.unwrap();
    let facts = AgentConfigFacts {
        home: Some(HomeId::from(earlier.clone())),
        ..row.unwrap().facts
    };
    let generation = yard.row(&uid).await.unwrap().generation;
    let store = yard.store();
    store.save_agent_config_facts(&uid, &facts).await.unwrap();
    assert_eq!(yard.row(&uid).await.unwrap().generation, generation);
    yard.reboot();
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert_eq!(made(&yard), container);
    let label = |yard: &Yard| {
        let labels = yard.fake.container("agentyard-alice").unwrap();
        labels.container.labels.get(LABEL_HOME).cloned()
    };
    assert_eq!(label(&yard), Some(earlier));
    yard.assert_nothing_to_do(&uid).await;

    // Another inode is another directory.
    yard.fake
        .hand_label("agentyard-alice", LABEL_HOME, "8.1-1")
        .unwrap();
    yard.reboot();
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert_ne!(made(&yard), container);
}
