//! Nothing waits for a time between the creation of a user and the start of the container.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kit::engine::Run;
use schema::container::Desired;
use schema::ids::Uid;
use schema::user::{NewUser, Source};
use tokio::time::Instant;

use crate::world::World;

/// In paused time the clock moves only when everything waits for a timer.
#[tokio::test(start_paused = true)]
async fn no_timer_is_waited_for_between_a_creation_and_the_start() {
    let mut world = World::new(1, false);
    world.chaos.end();
    world.prepare();
    world.begin(false);
    world.wait(Duration::from_secs(300)).await;
    let starts = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&starts);
    world.fake.on_start(move |_| {
        log.lock().unwrap().push(Instant::now());
        Run::default()
    });
    for name in ["first", "second", "third"] {
        // Between two resyncs, at another moment each time.
        world.wait(Duration::from_millis(7_300)).await;
        let begun = Instant::now();
        let new = NewUser {
            uid: Uid::random(),
            name: name.parse().unwrap(),
            source: Source::Local,
            password_hash: None,
            image_ref: "echo:1".to_owned(),
            desired: Desired::Running,
        };
        world.ground.store.create_user(&new).unwrap();
        world.wait(Duration::from_secs(30)).await;
        assert_eq!(*starts.lock().unwrap(), [begun], "{name}");
        starts.lock().unwrap().clear();
    }
}
