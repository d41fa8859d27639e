//! The shared view of the engine.

use std::sync::Arc;
use std::time::Duration;

use engine::{
    ContainerSettings, EngineError, Isolation, LABEL_OWNER, LABEL_UID, NETWORK, NetworkSettings,
};
use futures::StreamExt;
use futures::stream::BoxStream;
use schema::clock::{SharedClock, SystemClock};
use schema::condition::Reason;
use schema::ids::Uid;

use kit::engine::{FakeEngine, Verb};
use reconcilers::runtime::WorldEvent;
use reconcilers::shared::view::{Connection, EngineView, Observed};

fn view() -> (FakeEngine, Arc<EngineView>) {
    let clock: SharedClock = Arc::new(SystemClock);
    let fake = FakeEngine::new(Arc::clone(&clock));
    let view = EngineView::new(fake.compute("me", "/data"), "me", clock);
    let view = Arc::new(view);
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
        let observed = view.observe(&uid).await.unwrap();
        assert!(matches!(
            observed,
            Observed::Unavailable(Reason::EngineUnavailable, _)
        ));
        assert!(matches!(view.connection(), Connection::Unavailable(_)));
    };
    tokio::join!(trouble, follower);
    assert_eq!(view.connection(), Connection::Up);
}

#[tokio::test(start_paused = true)]
async fn l66_an_engine_that_hangs_is_found_out_and_its_return_is_noticed_at_once() {
    let (fake, view) = view();
    let mut events = Arc::clone(&view).events();
    assert_eq!(events.next().await, Some(WorldEvent::Reconnected));
    fake.set_hung(true);
    let asked = tokio::time::Instant::now();
    assert_eq!(events.next().await, Some(WorldEvent::Lost));
    // A heartbeat every two seconds, and eight seconds for its answer.
    assert!(asked.elapsed() <= Duration::from_secs(10));
    let Connection::Unavailable(why) = view.connection() else {
        panic!("{:?}", view.connection());
    };
    assert!(!why.is_empty());
    let (returned, ()) = tokio::join!(events.next(), async {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        // Nobody else has asked in the meantime.
        assert_eq!(fake.calls().reads(), 4);
        fake.set_hung(false);
    });
    assert_eq!(returned, Some(WorldEvent::Reconnected));
    assert_eq!(view.connection(), Connection::Up);
    let late = asked.elapsed() - Duration::from_secs(3600);
    assert!(late < Duration::from_secs(17), "{late:?}");
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
        let observed = view.peek(&uid).await.unwrap();
        assert!(
            matches!(observed, Observed::Containers { changed: true, ref containers } if containers.len() == 1)
        );
    }
    let observed = view.observe(&uid).await.unwrap();
    assert!(matches!(
        observed,
        Observed::Containers { changed: true, .. }
    ));
    let observed = view.observe(&uid).await.unwrap();
    assert!(matches!(
        observed,
        Observed::Containers { changed: false, .. }
    ));
}

/// The next event, which must come within a second.
async fn soon(
    events: &mut futures::stream::BoxStream<'static, WorldEvent<Uid>>,
) -> WorldEvent<Uid> {
    let next = tokio::time::timeout(Duration::from_secs(1), events.next());
    next.await.expect("within a second").expect("never ends")
}

#[tokio::test(start_paused = true)]
async fn l57_a_cut_stream_is_told_and_opened_again_at_once() {
    let (fake, view) = view();
    let mut events = Arc::clone(&view).events();
    assert_eq!(soon(&mut events).await, WorldEvent::Reconnected);
    assert!(!view.watching().lost);
    tokio::time::sleep(Duration::from_secs(60)).await;
    fake.cut_events();
    assert_eq!(soon(&mut events).await, WorldEvent::Lost);
    let watching = view.watching();
    assert_eq!((watching.lost, watching.losses), (true, 1));
    assert!(watching.why.contains("event stream"), "{watching:?}");
    assert_eq!(soon(&mut events).await, WorldEvent::Reconnected);
    assert!(!view.watching().lost);
}

#[tokio::test(start_paused = true)]
async fn l57_a_stream_that_breaks_again_and_again_is_one_loss_and_no_hot_loop() {
    let (fake, view) = view();
    let mut events = Arc::clone(&view).events();
    assert_eq!(soon(&mut events).await, WorldEvent::Reconnected);
    fake.cut_events();
    assert_eq!(soon(&mut events).await, WorldEvent::Lost);
    let cutting = async {
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            fake.cut_events();
        }
    };
    fake.reset_calls();
    tokio::select! {
        () = cutting => {}
        event = events.next() => panic!("nothing is believed yet: {event:?}"),
    }
    let tries = fake.calls().reads();
    assert!(tries < 60, "{tries} calls in 20 seconds");
    assert_eq!(view.watching().losses, 1);
    let steady = tokio::time::timeout(Duration::from_secs(15), events.next()).await;
    assert_eq!(steady, Ok(Some(WorldEvent::Reconnected)));
    assert!(!view.watching().lost);
}

#[tokio::test(start_paused = true)]
async fn l57_a_silent_stream_is_found_out_by_a_listing_and_believed_once_heard() {
    let (fake, view) = view();
    let mut events = Arc::clone(&view).events();
    assert_eq!(soon(&mut events).await, WorldEvent::Reconnected);
    tokio::time::sleep(Duration::from_secs(60)).await;
    fall_silent(&fake, &view, &mut events, "one").await;
    // Opened again, and not believed: it may be as silent as the one before.
    let quiet = tokio::time::timeout(Duration::from_secs(100), events.next()).await;
    assert!(quiet.is_err(), "{quiet:?}");
    fake.silence_events(false);
    fake.hand_create("two", &owned("v")).unwrap();
    assert_eq!(soon(&mut events).await, WorldEvent::Reconnected);
    assert_eq!(
        soon(&mut events).await,
        WorldEvent::Key(Uid::from("v".to_owned()))
    );
    assert!(!view.watching().lost);
}

#[tokio::test(start_paused = true)]
async fn l57_where_nothing_happens_a_stream_is_believed_after_a_while_and_longer_after_a_mistake() {
    let (fake, view) = view();
    let mut events = Arc::clone(&view).events();
    assert_eq!(soon(&mut events).await, WorldEvent::Reconnected);
    for (name, minutes) in [("one", 2), ("two", 4), ("three", 8)] {
        fall_silent(&fake, &view, &mut events, name).await;
        let lost_at = tokio::time::Instant::now();
        assert_eq!(events.next().await, Some(WorldEvent::Reconnected));
        assert!(!view.watching().lost);
        let took = lost_at.elapsed().as_secs();
        assert!(
            (minutes * 60..minutes * 60 + 10).contains(&took),
            "{took} s"
        );
    }
}

/// Events go missing, and a listing shows it.
async fn fall_silent(
    fake: &FakeEngine,
    view: &Arc<EngineView>,
    events: &mut BoxStream<'static, WorldEvent<Uid>>,
    name: &str,
) {
    fake.silence_events(true);
    fake.hand_create(name, &owned("u")).unwrap();
    let found = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        view.refresh().await.unwrap();
        std::future::pending::<()>().await;
    };
    let told = tokio::time::timeout(Duration::from_secs(12), async {
        tokio::select! {
            () = found => unreachable!(),
            event = events.next() => event,
        }
    });
    assert_eq!(told.await, Ok(Some(WorldEvent::Lost)));
    assert!(view.watching().lost);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_away_is_called_at_once_when_somebody_asks() {
    let (fake, view) = view();
    fake.set_unavailable(true);
    let mut events = Arc::clone(&view).events();
    assert_eq!(soon(&mut events).await, WorldEvent::Lost);
    let away = tokio::time::timeout(Duration::from_secs(30), events.next()).await;
    assert!(away.is_err(), "{away:?}");
    fake.set_unavailable(false);
    view.hurry();
    assert_eq!(soon(&mut events).await, WorldEvent::Reconnected);
}

#[tokio::test(start_paused = true)]
async fn outage_has_a_begin_and_an_end() {
    let (fake, view) = view();
    let mut events = Arc::clone(&view).events();
    assert_eq!(soon(&mut events).await, WorldEvent::Reconnected);
    assert_eq!(view.outage(), None);
    fake.set_unavailable(true);
    assert_eq!(soon(&mut events).await, WorldEvent::Lost);
    // The next try to connect tells that it is more than the events.
    let away = tokio::time::timeout(Duration::from_secs(5), events.next()).await;
    assert!(away.is_err(), "{away:?}");
    let outage = view.outage().unwrap();
    assert!(
        outage.until.is_none() && !outage.why.is_empty(),
        "{outage:?}"
    );
    fake.set_unavailable(false);
    view.hurry();
    assert_eq!(soon(&mut events).await, WorldEvent::Reconnected);
    let outage = view.outage().unwrap();
    let (since, until) = (outage.since, outage.until.unwrap());
    let second = Duration::from_secs;
    for (begun, ended, expected) in [
        (since.minus(second(60)), since, true),
        (since, until, true),
        (since.minus(second(60)), since.minus(second(20)), false),
        (since.minus(second(60)), until.plus(second(20)), false),
        (since.plus(second(1)), until.plus(second(2)), false),
    ] {
        assert_eq!(
            view.has_stopped(begun, ended),
            expected,
            "{begun:?} {ended:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn removed_network_wakes_engine_and_containers() {
    let (fake, view) = view();
    let network = NetworkSettings {
        name: NETWORK.to_owned(),
        subnet: "10.88.0.0/16".to_owned(),
        labels: [(LABEL_OWNER.to_owned(), "me".to_owned())].into(),
        isolation: Isolation::default(),
    };
    fake.hand_create_network(&network).unwrap();
    let uid = Uid::from("engine".to_owned());
    let mut engine = view.engine_events(uid.clone());
    let mut events = Arc::clone(&view).events();
    assert_eq!(soon(&mut events).await, WorldEvent::Reconnected);
    assert_eq!(soon(&mut engine).await, WorldEvent::Key(uid.clone()));
    fake.hand_remove_network(NETWORK).unwrap();
    assert_eq!(view.refresh_network().await.unwrap(), None);
    assert_eq!(soon(&mut engine).await, WorldEvent::Key(uid));
    assert_eq!(soon(&mut events).await, WorldEvent::Shared);
}
