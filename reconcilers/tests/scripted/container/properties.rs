//! Whatever mixture of containers is found, passes lead to the desired state, never run two at once,
//! and never touch what is not ours.

use std::collections::BTreeMap;

use engine::{
    ContainerSettings, LABEL_OWNER, LABEL_RESTART_TOKEN, LABEL_SPEC_DIGEST, LABEL_UID, NETWORK,
};
use proptest::prelude::*;
use schema::condition::Reason;
use schema::container::Desired;
use schema::ids::Uid;

use super::support::{OWNER, Yard};

/// A container that somebody or something has left behind.
#[derive(Debug, Clone)]
struct Leftover {
    name: &'static str,
    ours: bool,
    /// Made exactly as wanted, or for something else.
    fits: bool,
    state: u8,
}

fn leftover() -> impl Strategy<Value = Leftover> {
    let names = prop::sample::select(vec![
        "agentyard-alice",
        "agentyard-alice.next-",
        "agentyard-alice.prev-",
        "agentyard-stray",
    ]);
    (names, prop::bool::weighted(0.85), any::<bool>(), 0..4_u8).prop_map(
        |(name, ours, fits, state)| Leftover {
            name,
            ours,
            fits,
            state,
        },
    )
}

/// The settings a fresh container of this user gets, learnt from a twin.
async fn wanted(yard: &mut Yard, uid: &Uid) -> ContainerSettings {
    yard.settled(uid).await;
    let settings = yard.fake.container("agentyard-alice").unwrap().settings;
    yard.fake.hand_remove("agentyard-alice").unwrap();
    settings
}

async fn run(leftovers: Vec<Leftover>, desired_running: bool, remembered: bool) {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    let wanted = wanted(&mut yard, &uid).await;
    let mut foreign = BTreeMap::new();
    let mut running = false;
    for left in leftovers {
        let mut settings = wanted.clone();
        NETWORK.clone_into(&mut settings.network);
        if !left.fits {
            settings.memory_bytes = 1;
            settings
                .labels
                .insert(LABEL_SPEC_DIGEST.to_owned(), "other".to_owned());
        }
        if !left.ours {
            settings
                .labels
                .insert(LABEL_OWNER.to_owned(), "other".to_owned());
        }
        assert!(settings.labels.contains_key(LABEL_UID));
        assert!(settings.labels.contains_key(LABEL_RESTART_TOKEN));
        let Ok(id) = yard.fake.hand_create(left.name, &settings) else {
            continue;
        };
        // The invariant is that the service never makes two run; it cannot help what it finds.
        let starts = left.state > 0 && left.ours && !running;
        if starts {
            yard.fake.hand_start(&id).unwrap();
            match left.state {
                1 => {}
                2 => yard.fake.hand_exit(&id, 3).unwrap(),
                _ => yard.fake.hand_pause(&id).unwrap(),
            }
            running = left.state != 2;
        }
        if !left.ours {
            foreign.insert(left.name, id);
        }
    }
    if !desired_running {
        yard.set_desired(&uid, Desired::Stopped, false).await;
    }
    if !remembered {
        yard.reboot();
    }
    yard.event(&uid);
    let condition = yard.settled(&uid).await.unwrap();
    for (name, id) in &foreign {
        let there = yard
            .fake
            .container(id)
            .expect("a foreign container was removed");
        assert_eq!(
            there.container.name, *name,
            "a foreign container was renamed"
        );
    }
    let blocked = foreign.keys().any(|name| *name == "agentyard-alice");
    if !desired_running {
        assert_eq!(condition.reason, Reason::Stopped);
    } else if blocked {
        assert_eq!(condition.reason, Reason::NameConflict);
    } else if foreign.is_empty() {
        assert_eq!(condition.reason, Reason::Running);
    }
    if condition.reason == Reason::Running {
        let ours = yard
            .fake
            .containers()
            .into_iter()
            .filter(|c| c.container.labels.get(LABEL_OWNER).map(String::as_str) == Some(OWNER))
            .count();
        assert_eq!(ours, 1);
        assert_eq!(yard.fake.running(), ["agentyard-alice"]);
        yard.assert_nothing_to_do(&uid).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_leftovers_converge(
        leftovers in prop::collection::vec(leftover(), 0..5),
        desired_running in prop::bool::weighted(0.8),
        remembered in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(leftovers, desired_running, remembered));
    }
}
