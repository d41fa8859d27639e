//! Images.

use engine::{Containers, EngineError, Images};
use futures::StreamExt;

use super::{Hand, Stage};

pub async fn an_image_is_found_by_reference_and_id<S>(stage: &S)
where
    S: Stage<Engine: Images>,
{
    let engine = stage.engine();
    let image = engine.image("echo:1").await.unwrap().unwrap();
    assert!(image.id.starts_with("sha256:"), "{image:?}");
    // Another test may have tagged it besides.
    assert!(image.repo_tags.iter().any(|tag| tag == "echo:1"));
    assert!(image.size > 0);
    assert_eq!(engine.image(&image.id).await.unwrap(), Some(image.clone()));
    let other = engine.image("echo:2").await.unwrap().unwrap();
    assert_ne!(other.id, image.id);
    for missing in ["echo:none", "nobody/nothing", "registry.invalid:5000/x:1"] {
        assert_eq!(engine.image(missing).await.unwrap(), None, "{missing}");
    }
}

pub async fn all_images_are_listed_as_they_are_read_one_by_one<S>(stage: &S)
where
    S: Stage<Engine: Images>,
{
    let engine = stage.engine();
    let reference = stage.name("listed:1");
    stage.hand(Hand::Import(&reference)).await;
    let image = engine.image(&reference).await.unwrap().unwrap();
    assert_eq!(image.repo_tags, [reference.as_str()]);
    assert!(image.created_at.as_secs() > 1_700_000_000, "{image:?}");
    let listed = engine.images().await.unwrap();
    assert!(listed.contains(&image), "{image:?} in {listed:?}");
    let full = format!("docker.io/library/{reference}");
    assert_eq!(engine.image(&full).await.unwrap(), Some(image));
    engine.remove_image(&full).await.unwrap();
    assert_eq!(engine.image(&reference).await.unwrap(), None);
}

pub async fn a_reference_is_taken_off_and_the_last_one_takes_the_image_along<S>(stage: &S)
where
    S: Stage<Engine: Images>,
{
    let engine = stage.engine();
    let (one, other) = (stage.name("one:1"), stage.name("other:1"));
    stage.hand(Hand::Import(&one)).await;
    stage.hand(Hand::Tag(&one, &other)).await;
    let image = engine.image(&one).await.unwrap().unwrap();
    let by_id = engine.remove_image(&image.id).await;
    assert!(matches!(by_id, Err(EngineError::Conflict(_))), "{by_id:?}");
    engine.remove_image(&one).await.unwrap();
    assert_eq!(engine.image(&one).await.unwrap(), None);
    let left = engine.image(&image.id).await.unwrap().unwrap();
    assert_eq!(left.repo_tags, [other.as_str()]);
    engine.remove_image(&image.id).await.unwrap();
    assert_eq!(engine.image(&image.id).await.unwrap(), None);
    for gone in [&one, &other, &image.id] {
        engine.remove_image(gone).await.unwrap();
    }
}

pub async fn an_image_that_a_container_is_made_from_is_not_removed<S>(stage: &S)
where
    S: Stage<Engine: Images>,
{
    let engine = stage.engine();
    let (one, other) = (stage.name("used:1"), stage.name("spare:1"));
    stage.hand(Hand::Import(&one)).await;
    stage.hand(Hand::Tag(&one, &other)).await;
    let image = engine.image(&one).await.unwrap().unwrap();
    let mut settings = stage.settings("u1");
    settings.image.clone_from(&image.id);
    settings.command = Some(vec!["/nothing".to_owned()]);
    let id = engine.create(&stage.name("user"), &settings).await.unwrap();
    // One of several names may go, the last one not.
    engine.remove_image(&other).await.unwrap();
    for kept in [&one, &image.id] {
        let removed = engine.remove_image(kept).await;
        assert!(
            matches!(removed, Err(EngineError::Conflict(_))),
            "{removed:?}"
        );
    }
    let left = engine.image(&one).await.unwrap();
    assert_eq!(left.map(|image| image.id), Some(image.id));
    engine.remove(&id).await.unwrap();
    engine.remove_image(&one).await.unwrap();
    assert_eq!(engine.image(&one).await.unwrap(), None);
}

pub async fn l37_a_pull_that_fails_says_so<S>(stage: &S)
where
    S: Stage<Engine: Images>,
{
    let engine = stage.engine();
    // Nothing listens on port 1.
    for reference in ["127.0.0.1:1/agentyard/none:1", "127.0.0.1:1/agentyard/none"] {
        let outcome = match engine.pull(reference, None).await {
            Ok(told) => told.collect::<Vec<_>>().await.pop(),
            Err(error) => Some(Err(error)),
        };
        assert!(
            matches!(outcome, Some(Err(EngineError::PullFailed(_)))),
            "{outcome:?}"
        );
        assert_eq!(engine.image(reference).await.unwrap(), None);
    }
}
