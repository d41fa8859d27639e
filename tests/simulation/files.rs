//! What goes into agents' files, where time and order matter: stories without chaos.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kit::Change;
use kit::engine::Verb;
use schema::container::Desired;
use schema::ids::{Kind, Uid};
use schema::user::{NewUser, Source};
use serde_json::json;

use crate::long;
use crate::world::World;

/// Tells a story in time of its own.
fn told(story: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(story);
}

fn quiet_world() -> World {
    let mut world = World::new(1, false);
    world.chaos.end();
    world.prepare();
    world.publish_late_image();
    world
}

#[test]
fn ten_saves_in_a_second_are_at_most_two_restarts() {
    told(async {
        let mut world = quiet_world();
        world.begin(false);
        let Some(uid) = world.some_uid() else {
            panic!("somebody was created");
        };
        let start = world
            .ground
            .store
            .set_desired(&uid, Desired::Running, false);
        world.wrote(&uid, "start", start, |wanted| wanted.running = true);
        world.wait(Duration::from_secs(120)).await;
        world.fake.reset_calls();
        for _ in 0..10 {
            world.save(&uid);
            world.wait(Duration::from_millis(100)).await;
        }
        world.wait(Duration::from_secs(60)).await;
        let made = world.fake.calls().of(Verb::Create);
        assert!((1..=2).contains(&made), "{made} restarts");
        world.check_end();
        assert_eq!(world.finish().1, None);
    });
}

#[test]
fn what_somebody_waits_for_comes_before_a_change_of_all() {
    before_a_change_of_all(500, 500);
}

/// Whoever is stopped has files, too, but no container: the engine in memory goes through all it has to find one,
/// which would take most of the time.
#[test]
fn what_somebody_waits_for_comes_before_a_change_of_very_many() {
    if long() {
        before_a_change_of_all(10_000, 1_000);
    } else {
        before_a_change_of_all(1_000, 1);
    }
}

/// Of all `users` the last `running` shall run.
fn before_a_change_of_all(users: usize, running: usize) {
    told(async move {
        let mut world = quiet_world();
        let uids: Vec<Uid> = (0..users)
            .map(|number| Uid::from(format!("{number:032x}")))
            .collect();
        for (number, uid) in uids.iter().enumerate() {
            let new = NewUser {
                uid: uid.clone(),
                name: format!("user{number}").parse().unwrap(),
                source: Source::Local,
                password_hash: None,
                image_ref: "echo:1".to_owned(),
                desired: match number + running >= users {
                    true => Desired::Running,
                    false => Desired::Stopped,
                },
            };
            world.ground.store.create_user(&new).unwrap();
        }
        // Whoever judges knows nothing of them.
        world.fake.on_change(|_| {});
        let order: Arc<Mutex<Vec<(Kind, Uid)>>> = Arc::default();
        let heard = Arc::clone(&order);
        world.ground.store.on_change(move |change| {
            let known = match change {
                Change::AgentConfigFacts { uid, .. } => (Kind::AgentConfig, uid.clone()),
                Change::Facts { uid, facts } if facts.ready_at.is_some() => {
                    (Kind::Container, uid.clone())
                }
                _ => return,
            };
            heard.lock().unwrap().push(known);
        });
        world.begin(false);
        world.wait(Duration::from_secs(300)).await;
        order.lock().unwrap().clear();
        // All at once, as soon as the first has it.
        world.configure("container.max_unavailable", &json!(1000));
        world.configure("container.min_ready", &json!("0"));
        let global = json!({ "channel_list": { "chat": { "enabled": true } }, "own": 1 });
        world.configure("agent", &global);
        // The last in every order but that of who waits.
        let waits = uids.last().unwrap().clone();
        let values = [("client_id".to_owned(), json!("mine"))];
        let store = &world.ground.store;
        store
            .save_channel(&waits, "chat", &values.into(), "t")
            .unwrap();
        world.wait(Duration::from_secs(300)).await;
        let order = order.lock().unwrap();
        for (kind, all) in [(Kind::AgentConfig, users), (Kind::Container, running)] {
            let of_kind: Vec<&Uid> = order
                .iter()
                .filter(|(of, _)| *of == kind)
                .map(|(_, uid)| uid)
                .collect();
            assert!(of_kind.len() >= all, "everybody's {kind} followed");
            let place = of_kind.iter().position(|uid| **uid == waits).unwrap();
            assert!(place < 10, "{kind}: {place} came before");
        }
    });
}
