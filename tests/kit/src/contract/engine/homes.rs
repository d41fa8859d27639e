//! Users' directories, on engines that mount directories of their host.

use std::sync::Arc;

use engine::{
    BindHomes, ContainerFiles, Containers, EngineError, HomeMounts, ImageHome, Images, LABEL_OWNER,
    LABEL_UID, PROBE_FILE, PROBE_FOLDER, Proof,
};
use schema::ids::Uid;

use super::Stage;

fn homes<S>(stage: &S, data_dir: &str) -> BindHomes<S::Engine>
where
    S: Stage<Engine: Containers + Images + ContainerFiles + Clone>,
{
    BindHomes::new(Arc::new(stage.engine().clone()), stage.owner(), data_dir)
}

async fn image<S>(stage: &S) -> String
where
    S: Stage<Engine: Containers + Images + ContainerFiles + Clone>,
{
    stage.engine().image("echo:1").await.unwrap().unwrap().id
}

pub async fn data_directory_is_proven_by_what_the_engine_reads<S>(stage: &S)
where
    S: Stage<Engine: Containers + Images + ContainerFiles + Clone>,
{
    let place = stage.home().display().to_string();
    let seen = homes(stage, &format!("{place}/"));
    let image = image(stage).await;
    let folder = stage.home().join(PROBE_FOLDER);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(PROBE_FILE), "nonce").unwrap();
    assert_eq!(
        seen.prove_data_dir(&image, "nonce").await.unwrap(),
        Proof::Same
    );
    let different = async |homes: &BindHomes<S::Engine>, nonce: &str| match homes
        .prove_data_dir(&image, nonce)
        .await
        .unwrap()
    {
        Proof::Different(how) => how,
        Proof::Same => panic!("{nonce} is not there"),
    };
    let how = different(&seen, "other").await;
    assert!(how.contains("a file in it has another content"), "{how}");
    std::fs::remove_file(folder.join(PROBE_FILE)).unwrap();
    let how = different(&seen, "nonce").await;
    assert!(how.contains("there is no"), "{how}");
    // The engine does not mount what it does not see.
    let how = different(&homes(stage, &format!("{place}/elsewhere")), "nonce").await;
    assert!(how.starts_with(&format!("as {place}/elsewhere: ")), "{how}");
    assert!(how.ends_with("; set --engine-data-dir"), "{how}");
    assert!(!seen.is_proof_left_over().await.unwrap());
    seen.clean_up_proof().await.unwrap();
}

pub async fn image_is_read_through_what_bears_its_users_uid<S>(stage: &S)
where
    S: Stage<Engine: Containers + Images + ContainerFiles + Clone>,
{
    let homes = homes(stage, "/data");
    let home = ImageHome {
        name: stage.name("seed"),
        uid: Uid::from("u1".to_owned()),
        image: image(stage).await,
    };
    let opened = homes.open_image(&home).await.unwrap();
    let labels = stage.see(&opened).await.container.labels;
    assert_eq!(labels[LABEL_OWNER], stage.owner());
    assert_eq!(labels[LABEL_UID], "u1");
    let taken = homes.open_image(&home).await;
    assert!(matches!(taken, Err(EngineError::NameTaken(_))), "{taken:?}");
    let tree = homes.read_image(&opened, "/nowhere").await.unwrap();
    assert!(tree.is_none());
    for _ in 0..2 {
        homes.close_image(&opened).await.unwrap();
    }
    assert_eq!(stage.engine().inspect(&opened).await.unwrap(), None);
}
