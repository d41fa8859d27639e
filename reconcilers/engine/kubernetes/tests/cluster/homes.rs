//! Homes on a claim: the proof that service and cluster see one data directory.

use std::os::unix::fs::PermissionsExt;

use engine::{EngineError, HomeMounts, ImageHome, PROBE_FILE, PROBE_FOLDER, Proof};
use schema::ids::{Uid, UserName};
use serde_json::json;

use crate::stage::{ClusterStage, stage, stage_of};

/// Writes a nonce as the service does.
fn write_nonce(stage: &ClusterStage, folder: &str, nonce: &str) {
    let folder = stage.place.path().join(folder).join(PROBE_FOLDER);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(folder.join(PROBE_FILE), nonce).unwrap();
}

async fn prove_different(stage: &ClusterStage, nonce: &str) -> String {
    match stage.engine.prove_data_dir("", nonce).await.unwrap() {
        Proof::Different(how) => how,
        Proof::Same => panic!("{nonce} is not there"),
    }
}

#[tokio::test]
async fn data_directory_is_proven_by_a_pod_that_reads_it() {
    let stage = stage().await;
    write_nonce(&stage, "", "nonce");
    let proof = stage.engine.prove_data_dir("", "nonce").await.unwrap();
    assert_eq!(proof, Proof::Same);
    let how = prove_different(&stage, "other").await;
    assert!(how.contains("another content"), "{how}");
    std::fs::remove_file(stage.place.path().join(PROBE_FOLDER).join(PROBE_FILE)).unwrap();
    let how = prove_different(&stage, "nonce").await;
    assert!(how.contains("cannot be read"), "{how}");
    assert!(!stage.engine.is_proof_left_over().await.unwrap());
    stage.engine.clean_up_proof().await.unwrap();
    stage.strike().await;
}

#[tokio::test]
async fn folder_of_the_claim_is_the_data_directory() {
    let stage = stage_of("restricted", json!({ "data": { "path": "a/b" } })).await;
    write_nonce(&stage, "a/b", "nonce");
    let proof = stage.engine.prove_data_dir("", "nonce").await.unwrap();
    assert_eq!(proof, Proof::Same);
    let user: UserName = "alice".parse().unwrap();
    let mount = stage.engine.bind_home(&user, "/home/agent");
    assert_eq!(mount.source, "data:a/b/users/alice");
    stage.strike().await;
}

#[tokio::test]
async fn claim_that_is_not_there_is_another_directory() {
    let stage = stage_of("restricted", json!({ "data": { "claim": "other" } })).await;
    let how = prove_different(&stage, "nonce").await;
    assert!(how.contains("there is no such claim"), "{how}");
    stage.strike().await;
}

#[tokio::test]
async fn images_own_home_is_not_copied() {
    let stage = stage().await;
    let home = ImageHome {
        name: "seed".to_owned(),
        uid: Uid::from("u1".to_owned()),
        image: "echo:1".to_owned(),
    };
    let opened = stage.engine.open_image(&home).await;
    assert!(
        matches!(opened, Err(EngineError::Unsupported(_))),
        "{opened:?}"
    );
    stage.strike().await;
}
