//! The shared view of the engine.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use schema::clock::SystemClock;
use schema::condition::Reason;
use schema::ids::Uid;

use super::view::{Connection, EngineView, Sight};
use crate::drivers::docker::fake::{FakeEngine, Verb};
use crate::drivers::docker::{ContainerSettings, EngineError, LABEL_OWNER, LABEL_UID};
use crate::runtime::WorldEvent;

fn view() -> (FakeEngine, Arc<EngineView>) {
    let fake = FakeEngine::new(Arc::new(SystemClock));
    let view = Arc::new(EngineView::new(Arc::new(fake.clone()), "me"));
    (fake, view)
}

fn owned(uid: &str) -> ContainerSettings {
    ContainerSettings {
        labels: [
            (LABEL_OWNER.to_owned(), "me".to_owned()),
            (LABEL_UID.to_owned(), uid.to_owned()),
        ]
        .into(),
        ..ContainerSettings::default()
    }
}

#[tokio::test(start_paused = true)]
async fn one_unavailable_call_beside_a_living_stream_is_tried_again_soon() {
    let (fake, view) = view();
    let mut events = Arc::clone(&view).events();
    assert_eq!(events.next().await, Some(WorldEvent::Reconnected));
    let follower = async {
        let event = tokio::time::timeout(Duration::from_secs(3), events.next()).await;
        assert_eq!(event, Ok(Some(WorldEvent::Reconnected)));
    };
    let trouble = async {
        let uid = Uid::from("u".to_owned());
        view.mark_stale(&uid);
        fake.fail_next(Verb::List, 1, FakeEngine::unavailable_error);
        let sight = view.look(&uid).await.unwrap();
        assert!(matches!(
            sight,
            Sight::Unavailable(Reason::EngineUnavailable, _)
        ));
        assert!(matches!(view.connection(), Connection::Unavailable(_)));
    };
    tokio::join!(trouble, follower);
    assert_eq!(view.connection(), Connection::Up);
}

#[tokio::test]
async fn one_failed_listing_of_an_engine_that_is_there_is_no_outage() {
    let (fake, view) = view();
    view.refresh().await.unwrap();
    fake.fail_next(Verb::List, 1, || EngineError::Internal("500".to_owned()));
    assert!(view.refresh().await.is_err());
    assert_eq!(view.connection(), Connection::Up);
}

#[tokio::test]
async fn peeking_leaves_the_close_look_to_the_reconciler() {
    let (fake, view) = view();
    view.refresh().await.unwrap();
    fake.hand_create("one", &owned("u")).unwrap();
    let uid = Uid::from("u".to_owned());
    view.mark_stale(&uid);
    for _ in 0..2 {
        let sight = view.peek(&uid).await.unwrap();
        assert!(
            matches!(sight, Sight::Containers { changed: true, ref containers } if containers.len() == 1)
        );
    }
    let sight = view.look(&uid).await.unwrap();
    assert!(matches!(sight, Sight::Containers { changed: true, .. }));
    let sight = view.look(&uid).await.unwrap();
    assert!(matches!(sight, Sight::Containers { changed: false, .. }));
}
