//! Images.

use reconcilers::drivers::docker::{ContainerEngine, EngineError};

use super::Stage;

pub async fn an_image_is_found_by_reference_and_id<S: Stage>(stage: &S) {
    let engine = stage.engine();
    let image = engine.image("echo:1").await.unwrap().unwrap();
    assert!(image.id.starts_with("sha256:"), "{image:?}");
    assert_eq!(image.repo_tags, ["echo:1"]);
    assert!(image.size > 0);
    assert_eq!(engine.image(&image.id).await.unwrap(), Some(image.clone()));
    let other = engine.image("echo:2").await.unwrap().unwrap();
    assert_ne!(other.id, image.id);
    for missing in ["echo:none", "nobody/nothing", "registry.invalid:5000/x:1"] {
        assert_eq!(engine.image(missing).await.unwrap(), None, "{missing}");
    }
}

pub async fn l37_a_pull_that_fails_says_so<S: Stage>(stage: &S) {
    let engine = stage.engine();
    // Nothing listens on port 1.
    for reference in ["127.0.0.1:1/agentyard/none:1", "127.0.0.1:1/agentyard/none"] {
        let outcome = engine.pull(reference, None).await;
        assert!(
            matches!(outcome, Err(EngineError::PullFailed(_))),
            "{outcome:?}"
        );
        assert_eq!(engine.image(reference).await.unwrap(), None);
    }
}
