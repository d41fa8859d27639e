//! Meanings of references, and what is known of images.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use engine::{Containers, Digests, EngineError, Images, Meaning};
use schema::image::ImageReference;
use tokio::time::sleep;

use super::pulls::{Yard, run_during};

/// A tag of the tests.
pub(super) const TAG: &str = "registry.example.org/agent:1";

/// The image of a digit.
pub(super) fn id(digit: char) -> String {
    format!("registry.example.org/agent@{}", digest(digit))
}

fn digest(digit: char) -> String {
    format!("sha256:{}", digit.to_string().repeat(64))
}

/// A registry that says the same to every question.
pub(super) struct Says {
    answer: Mutex<Result<Meaning, String>>,
    pub(super) asked: AtomicUsize,
}

impl Says {
    pub(super) fn digest_of(digit: char) -> Arc<Self> {
        Self::with_answer(Ok(Meaning::Digest(digest(digit))))
    }

    pub(super) fn with_answer(answer: Result<Meaning, &str>) -> Arc<Self> {
        Arc::new(Self {
            answer: Mutex::new(answer.map_err(str::to_owned)),
            asked: AtomicUsize::new(0),
        })
    }

    pub(super) fn set_answer(&self, answer: Result<Meaning, &str>) {
        *self.answer.lock().unwrap() = answer.map_err(str::to_owned);
    }

    fn count_questions(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Digests for Says {
    async fn digest(&self, _: &ImageReference) -> Result<Meaning, EngineError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        sleep(Duration::from_millis(100)).await;
        let answer = self.answer.lock().unwrap().clone();
        answer.map_err(EngineError::RegistryFailed)
    }
}

#[tokio::test(start_paused = true)]
async fn tag_is_asked_for_once_a_minute_and_a_digest_never() {
    let says = Says::digest_of('a');
    let yard = Yard::new(&["x"], Arc::clone(&says) as Arc<dyn Digests>);
    let asking = (0..50).map(|_| yard.engine.image(TAG));
    for found in futures::future::join_all(asking).await {
        let found = found.unwrap().unwrap();
        assert_eq!(found.id, id('a'));
        assert_eq!(
            (found.repo_tags, found.repo_digests),
            (vec![TAG.to_owned()], vec![id('a')])
        );
    }
    assert_eq!(says.count_questions(), 1);
    says.set_answer(Ok(Meaning::Digest(digest('b'))));
    sleep(Duration::from_secs(58)).await;
    assert_eq!(yard.engine.image(TAG).await.unwrap().unwrap().id, id('a'));
    sleep(Duration::from_secs(3)).await;
    assert_eq!(yard.engine.image(TAG).await.unwrap().unwrap().id, id('b'));
    assert_eq!(says.count_questions(), 2);
    for named in [id('c'), format!("{TAG}@{}", digest('c'))] {
        let found = yard.engine.image(&named).await.unwrap().unwrap();
        assert_eq!(found.id, id('c'), "{named}");
    }
    assert_eq!(says.count_questions(), 2);
}

#[tokio::test(start_paused = true)]
async fn registry_that_is_away_is_no_missing_image() {
    let says = Says::with_answer(Err("the registry can't be reached"));
    let yard = Yard::new(&[], Arc::clone(&says) as Arc<dyn Digests>);
    for _ in 0..3 {
        let outcome = yard.engine.image(TAG).await;
        let Err(EngineError::RegistryFailed(why)) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(why, "the registry can't be reached");
    }
    assert_eq!(says.count_questions(), 1);
    let outcome = yard.engine.pull(TAG, None).await.map(drop);
    assert!(
        matches!(outcome, Err(EngineError::RegistryFailed(_))),
        "{outcome:?}"
    );
    says.set_answer(Ok(Meaning::Nothing));
    sleep(Duration::from_secs(6)).await;
    assert_eq!(yard.engine.image(TAG).await.unwrap(), None);
    let outcome = yard.engine.pull(TAG, None).await.map(drop);
    let Err(EngineError::PullRefused(why)) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(why.contains("registry.example.org has no image"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn reference_that_no_registry_may_explain_stands_for_itself() {
    let says = Says::with_answer(Ok(Meaning::Itself));
    let yard = Yard::new(&["x"], says);
    let found = yard.engine.image("busybox").await.unwrap().unwrap();
    assert_eq!(found.id, "docker.io/library/busybox:latest");
    assert!(found.is_local && found.repo_digests.is_empty());
}

#[tokio::test(start_paused = true)]
async fn invalid_reference_is_refused_and_a_foreign_id_is_none() {
    let yard = Yard::new(&[], Says::digest_of('a'));
    assert_eq!(yard.engine.image(&digest('a')).await.unwrap(), None);
    let outcome = yard.engine.pull(&digest('a'), None).await.map(drop);
    assert!(
        matches!(outcome, Err(EngineError::PullRefused(_))),
        "{outcome:?}"
    );
    let outcome = yard.engine.image("a b").await;
    assert!(
        matches!(outcome, Err(EngineError::Refused(_))),
        "{outcome:?}"
    );
    let outcome = yard.engine.remove_image(TAG).await;
    let Err(EngineError::Unsupported(why)) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(why.contains("kubelets remove images"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn inventory_is_of_agents_and_never_empty_by_mistake() {
    let says = Says::digest_of('a');
    let yard = Yard::new(&[&id('a'), &id('a'), &id('b')], says);
    let outcome = yard.engine.images().await;
    assert!(
        matches!(outcome, Err(EngineError::Unavailable(_))),
        "{outcome:?}"
    );
    let images = run_during(&yard.engine, async {
        yard.engine.list("instance", None).await.unwrap();
        yard.engine.image(TAG).await.unwrap();
        yard.engine.images().await.unwrap()
    })
    .await;
    let short: Vec<_> = images
        .iter()
        .map(|image| (image.id.clone(), image.repo_tags.clone()))
        .collect();
    assert_eq!(short, [(id('a'), vec![TAG.to_owned()]), (id('b'), vec![])]);
    assert!(
        images.iter().all(|image| !image.is_local),
        "not on all nodes"
    );
}
