//! What an agent may plant in its home. Nothing outside is read or written, and nothing waits for ever.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use schema::condition::Reason;
use schema::ids::Uid;
use serde_json::Value;

use super::converge::{path, save, text, yard};
use crate::scripted::container::support::{Yard, reason};
use reconcilers::agent_config::plan;
use reconcilers::runtime::Purpose;
use reconcilers::runtime::{Classify, ErrorClass, Reconciler};

/// The planted thing is observed, and this is said of it; nothing else happens.
async fn says(yard: &mut Yard, uid: &Uid, expected: Reason) -> String {
    yard.service.config.refresh(uid);
    for _ in 0..3 {
        let pass = yard.config_pass(uid).await.unwrap().unwrap();
        assert!(pass.error.is_none(), "{:?}", pass.error);
        if pass.acted == 0 {
            let condition = pass.condition.unwrap();
            assert_eq!(condition.reason, expected, "{}", condition.message);
            return condition.message;
        }
    }
    panic!("no end");
}

#[tokio::test(flavor = "multi_thread")]
async fn l25_a_linked_file_is_neither_read_nor_written() {
    for file in ["config.json", "security.json"] {
        let (mut yard, uid) = yard().await;
        save(&yard, &uid, "first", "zero").await;
        yard.settled(&uid).await;
        let outside = tempfile::tempdir().unwrap();
        let host = outside.path().join("host");
        fs::write(&host, "{ \"host\": \"secret-of-the-host\" }").unwrap();
        fs::remove_file(path(&yard, file)).unwrap();
        symlink(&host, path(&yard, file)).unwrap();
        save(&yard, &uid, "s3cret", "one").await;
        let message = says(&mut yard, &uid, Reason::InvalidUserConfig).await;
        assert!(message.contains(file), "{message}");
        assert!(!message.contains("secret-of-the-host"));
        let kept = fs::read_to_string(&host).unwrap();
        assert_eq!(kept, "{ \"host\": \"secret-of-the-host\" }");
        assert!(
            fs::symlink_metadata(path(&yard, file))
                .unwrap()
                .is_symlink()
        );
        // The agent may be the way to mend it, so it is not held up.
        assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
        // Mended: all is written, and no trace of the host.
        fs::remove_file(path(&yard, file)).unwrap();
        assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
        says(&mut yard, &uid, Reason::Converged).await;
        assert!(text(&yard, "security.json").contains("s3cret"));
        assert!(!text(&yard, file).contains("secret-of-the-host"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l25_a_linked_directory_is_neither_read_nor_written() {
    let (mut yard, uid) = yard().await;
    save(&yard, &uid, "first", "zero").await;
    yard.settled(&uid).await;
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("workspace")).unwrap();
    fs::write(outside.path().join("config.json"), "{}").unwrap();
    let agent = path(&yard, "");
    fs::rename(&agent, yard.dir.path().join("users/alice/elsewhere")).unwrap();
    symlink(
        outside.path(),
        agent.to_str().unwrap().trim_end_matches('/'),
    )
    .unwrap();
    save(&yard, &uid, "s3cret", "one").await;
    let message = says(&mut yard, &uid, Reason::HomeConflict).await;
    assert!(message.contains(".agent"), "{message}");
    assert_eq!(
        fs::read_to_string(outside.path().join("config.json")).unwrap(),
        "{}"
    );
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_planted_is_named_and_left_alone() {
    type Plant = fn(&std::path::Path);
    let plants: [(&str, Plant); 6] = [
        ("is not a regular file", |path| {
            let mode = rustix::fs::Mode::RWXU;
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0)
                .unwrap();
        }),
        ("is not a regular file", |path| {
            fs::create_dir(path).unwrap();
            fs::write(path.join("inside"), "x").unwrap();
        }),
        ("is not JSON", |path| {
            fs::write(path, "{ \"k\": hunter2").unwrap()
        }),
        ("is longer than", |path| {
            fs::write(path, vec![b' '; (2 << 20) + 1]).unwrap();
        }),
        ("is longer than 1 MiB", |path| {
            fs::write(path, vec![b' '; 2 << 20]).unwrap();
        }),
        ("is nested deeper", |path| {
            fs::write(
                path,
                format!("{{\"a\":{}{}}}", "[".repeat(110), "]".repeat(110)),
            )
            .unwrap()
        }),
    ];
    let (mut yard, uid) = yard().await;
    save(&yard, &uid, "first", "zero").await;
    yard.settled(&uid).await;
    for (number, (said, plant)) in plants.into_iter().enumerate() {
        let place = path(&yard, "config.json");
        fs::remove_file(&place).unwrap();
        plant(&place);
        let before = fs::symlink_metadata(&place).unwrap();
        save(
            &yard,
            &uid,
            &format!("s3cret-{number}"),
            &format!("t{number}"),
        )
        .await;
        let message = says(&mut yard, &uid, Reason::InvalidUserConfig).await;
        assert!(message.contains(said), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
        let after = fs::symlink_metadata(&place).unwrap();
        assert_eq!(before.modified().unwrap(), after.modified().unwrap());
        assert_eq!(before.permissions().mode(), after.permissions().mode());
        assert!(
            !text(&yard, "security.json").contains(&format!("s3cret-{number}")),
            "both or none"
        );
        if after.is_dir() {
            fs::remove_dir_all(&place).unwrap();
        } else {
            fs::remove_file(&place).unwrap();
        }
        yard.settled(&uid).await;
        says(&mut yard, &uid, Reason::Converged).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l44_what_the_agent_writes_meanwhile_is_not_lost() {
    for file in ["config.json", "security.json"] {
        let (mut yard, uid) = yard().await;
        save(&yard, &uid, "first", "zero").await;
        yard.settled(&uid).await;
        save(&yard, &uid, "s3cret", "one").await;
        let observed = yard.service.config.observe(&uid, Purpose::DryRun);
        let snapshot = observed.await.unwrap().unwrap();
        let plan = plan::plan(&snapshot);
        // Between the read and the rename, in the same second and of the same length.
        let before = [text(&yard, "config.json"), text(&yard, "security.json")];
        let own = text(&yard, file).replacen('{', "{ \"own\": 1,", 1);
        fs::write(path(&yard, file), own).unwrap();
        let error = yard
            .service
            .config
            .apply(&uid, &plan.actions[0])
            .await
            .unwrap_err();
        assert_eq!(error.class(), ErrorClass::Conflict, "{error}");
        let other = if file == "config.json" {
            "security.json"
        } else {
            "config.json"
        };
        let index = usize::from(other == "security.json");
        assert_eq!(text(&yard, other), before[index], "nothing was renamed");
        assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
        let both: Value = serde_json::from_str(&text(&yard, file)).unwrap();
        assert_eq!(both["own"], 1);
        assert!(text(&yard, "security.json").contains("s3cret"));
        let left: Vec<_> = fs::read_dir(path(&yard, "")).unwrap().collect();
        assert_eq!(left.len(), 3, "no temporary file stays: {left:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_the_agent_removed_is_made_again() {
    let (mut yard, uid) = yard().await;
    save(&yard, &uid, "first", "zero").await;
    yard.settled(&uid).await;
    save(&yard, &uid, "s3cret", "one").await;
    let observed = yard.service.config.observe(&uid, Purpose::DryRun);
    let snapshot = observed.await.unwrap().unwrap();
    let plan = plan::plan(&snapshot);
    fs::remove_dir_all(path(&yard, "")).unwrap();
    let error = yard
        .service
        .config
        .apply(&uid, &plan.actions[0])
        .await
        .unwrap_err();
    assert_eq!(
        error.class(),
        ErrorClass::Conflict,
        "the files it was made for are gone"
    );
    assert_eq!(reason(yard.settled(&uid).await), Reason::Running);
    assert!(text(&yard, "security.json").contains("s3cret"));
}
