//! Whatever people wish, containers answer and kills interrupt: never too many at once, nobody touched while
//! it is paused, nobody started who was stopped, and an end from everywhere.

use std::time::Duration;

use proptest::prelude::*;
use schema::container::Desired;
use schema::rollout::{DesiredRollout, Phase, TargetState};

use super::support::{Answer, NEW, OLD_ID, START, Yard, upgrade};

#[derive(Debug, Clone)]
enum Happening {
    Passes(usize),
    Containers,
    Breaks(usize, u8),
    Mends,
    Pause,
    Resume,
    Cancel,
    RollBack,
    Stops(usize, bool),
    Deletes(usize),
    OtherTag,
    Kill(usize),
    Time(u64),
}

const USERS: usize = 6;

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => (1..6_usize).prop_map(Happening::Passes),
        6 => Just(Happening::Containers),
        2 => (0..USERS, 0..3_u8).prop_map(|(user, how)| Happening::Breaks(user, how)),
        1 => Just(Happening::Mends),
        1 => Just(Happening::Pause),
        2 => Just(Happening::Resume),
        1 => Just(Happening::Cancel),
        1 => Just(Happening::RollBack),
        1 => (0..USERS, any::<bool>()).prop_map(|(user, run)| Happening::Stops(user, run)),
        1 => (0..USERS).prop_map(Happening::Deletes),
        1 => Just(Happening::OtherTag),
        2 => (0..4_usize).prop_map(Happening::Kill),
        1 => (0..200_u64).prop_map(Happening::Time),
    ]
}

async fn happens(yard: &mut Yard, happening: &Happening, newest: &mut String) {
    let rollout = yard.rollout.clone();
    match happening {
        Happening::Passes(count) => {
            for _ in 0..*count {
                pass(yard).await;
            }
        }
        Happening::Containers => {
            yard.containers().await;
        }
        Happening::Breaks(user, how) => {
            let answer = [Answer::Fails, Answer::Hangs, Answer::Silent][usize::from(*how)];
            let image = newest.clone();
            yard.breaks(*user, &image, answer);
        }
        Happening::Mends => yard.broken.clear(),
        // Whether a wish is accepted is the database's business.
        Happening::Pause => drop(yard.store.pause_rollout(&rollout)),
        Happening::Resume => drop(yard.store.resume_rollout(&rollout)),
        Happening::Cancel => drop(yard.store.cancel_rollout(&rollout)),
        Happening::RollBack => drop(yard.store.roll_back_rollout(&rollout)),
        Happening::Stops(user, run) => {
            let desired = if *run {
                Desired::Running
            } else {
                Desired::Stopped
            };
            let uid = yard.users[*user].clone();
            drop(yard.store.set_desired(&uid, desired, false));
        }
        Happening::Deletes(user) => {
            let uid = yard.users[*user].clone();
            drop(yard.store.delete_user(&uid, START));
        }
        Happening::OtherTag => *newest = yard.fake.publish_image(NEW),
        Happening::Kill(budget) => {
            yard.budget = Some(*budget);
            for _ in 0..4 {
                if yard.pass().await.is_err() {
                    break;
                }
            }
            yard.reboot();
        }
        Happening::Time(seconds) => yard.clock.advance(Duration::from_secs(*seconds)),
    }
    yard.wanted_again();
}

/// A pass, and that it kept off whom it must not touch.
async fn pass(yard: &mut Yard) {
    let row = |yard: &Yard, number: usize| yard.store.peek_container(&yard.users[number]);
    let desired: Vec<_> = (0..USERS)
        .map(|n| row(yard, n).map(|r| r.desired))
        .collect();
    let (before, targets) = yard.state().await;
    let generations: Vec<_> = (0..USERS)
        .map(|n| row(yard, n).map(|r| r.generation))
        .collect();
    yard.pass().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    for number in 0..USERS {
        let after = row(yard, number);
        assert_eq!(
            desired[number],
            after.as_ref().map(|r| r.desired),
            "never started, never stopped"
        );
        let held = before.desired != DesiredRollout::Run || before.paused_itself();
        if held && targets[number].state == TargetState::Pending {
            assert_eq!(
                generations[number],
                after.map(|r| r.generation),
                "touched while it is held"
            );
        }
    }
}

async fn run(stopped: Vec<usize>, most: u32, pauses: bool, happenings: Vec<Happening>) {
    let new = schema::rollout::NewRollout {
        pause_on_failure: pauses,
        ..upgrade(most)
    };
    let mut yard = Yard::new(USERS, &stopped, &new).await;
    let mut newest = yard.fake.publish_image(NEW);
    for happening in &happenings {
        happens(&mut yard, happening, &mut newest).await;
    }
    // From wherever that led, with everything well again, it ends.
    yard.broken.clear();
    yard.wanted_again();
    yard.settled().await;
    for _ in 0..3 {
        let (row, _) = yard.state().await;
        if row.facts.finished_at.is_some() {
            break;
        }
        assert_eq!(row.facts.phase, Phase::Paused, "{row:?}");
        yard.store.resume_rollout(&yard.rollout).unwrap();
        yard.settled().await;
    }
    let (row, targets) = yard.state().await;
    assert!(row.facts.finished_at.is_some(), "{row:?} {targets:?}");
    for target in &targets {
        assert!(!target.state.is_under_way(), "{target:?}");
        assert_ne!(target.state, TargetState::Pending, "{target:?}");
        let Some(container) = &target.container else {
            continue;
        };
        let image = container.image_id.as_deref();
        let is_old = image == Some(OLD_ID);
        match target.state {
            TargetState::Done => assert!(!is_old, "{target:?}"),
            TargetState::RolledBack | TargetState::Failed | TargetState::Cancelled => {
                assert!(is_old, "{target:?}");
            }
            _ => {}
        }
    }
    match row.facts.phase {
        Phase::Succeeded => {
            let moved = |t: &RolloutTarget| {
                t.container.is_none()
                    || t.container.as_ref().unwrap().image_id == row.facts.image_id
            };
            assert!(targets.iter().all(moved), "{row:?} {targets:?}");
        }
        Phase::RolledBack => {
            let back = |t: &RolloutTarget| {
                t.container
                    .as_ref()
                    .is_none_or(|c| c.image_id.as_deref() == Some(OLD_ID))
            };
            assert!(targets.iter().all(back), "{targets:?}");
        }
        Phase::Failed | Phase::Cancelled => {}
        other => panic!("{other:?} is no end"),
    }
}

use schema::rollout::RolloutTarget;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_it_ends_well(
        stopped in prop::collection::vec(0..USERS, 0..3),
        most in 1..4_u32,
        pauses in any::<bool>(),
        happenings in prop::collection::vec(happening(), 0..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(stopped, most, pauses, happenings));
    }
}
