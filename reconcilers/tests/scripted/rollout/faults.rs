//! Killed before every step, and every answer of the database lost: the end is the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use schema::rollout::{Phase, TargetState};

use super::support::{Answer, Fleet, NEW, upgrade};
use kit::Pace;

/// What is asked of the fleet.
#[derive(Debug, Clone, Copy)]
enum Story {
    Moves,
    Fails,
    GoesBack,
    Cancelled,
}

const ALL: [Story; 4] = [
    Story::Moves,
    Story::Fails,
    Story::GoesBack,
    Story::Cancelled,
];

type End = (Phase, Vec<TargetState>, Vec<Option<String>>);

async fn prepare(story: Story) -> Fleet {
    let mut fleet = Fleet::new(5, &[1], &upgrade(2)).await;
    let new = fleet.fake.publish_image(NEW);
    match story {
        Story::Moves => {}
        Story::Fails => fleet.breaks(3, &new, Answer::Fails),
        Story::GoesBack => {
            fleet.settled().await;
            fleet.store.roll_back_rollout(&fleet.rollout).unwrap();
            fleet.reboot();
        }
        Story::Cancelled => {
            fleet.breaks(2, &new, Answer::Fails);
            fleet.settled().await;
            fleet.store.cancel_rollout(&fleet.rollout).unwrap();
        }
    }
    fleet
}

async fn end(fleet: &Fleet) -> End {
    let (row, _) = fleet.state().await;
    (row.facts.phase, fleet.states().await, fleet.images())
}

#[tokio::test(start_paused = true)]
async fn l34_killed_before_every_step_the_end_is_the_same() {
    for story in ALL {
        let mut fleet = prepare(story).await;
        fleet.settled().await;
        let expected = end(&fleet).await;
        let mut kills = 0;
        for budget in 0..200 {
            let mut fleet = prepare(story).await;
            fleet.budget = Some(budget);
            if fleet.settle().await.is_ok() {
                break;
            }
            kills += 1;
            fleet.reboot();
            fleet.settled().await;
            assert_eq!(
                end(&fleet).await,
                expected,
                "{story:?}, killed before {budget}"
            );
        }
        assert!((3..200).contains(&kills), "{story:?}: {kills}");
    }
}

#[tokio::test(start_paused = true)]
async fn l34_every_answer_lost_or_refused_the_end_is_the_same() {
    for story in ALL {
        let mut fleet = prepare(story).await;
        fleet.settled().await;
        let expected = end(&fleet).await;
        for lost in [true, false] {
            for nth in 0..1_000 {
                let mut fleet = prepare(story).await;
                let calls = Arc::new(AtomicUsize::new(0));
                let counted = Arc::clone(&calls);
                let fault = move || {
                    let now = counted.fetch_add(1, Ordering::SeqCst) == nth;
                    Pace {
                        fails: now && !lost,
                        loses_answer: now && lost,
                        ..Pace::default()
                    }
                };
                // The containers' own statuses are no matter of this test: only passes meet the fault.
                let mut met = false;
                for _ in 0..400 {
                    fleet.store.on_call(fault.clone());
                    let pass = fleet.pass().await.unwrap();
                    fleet.store.on_call(Pace::default);
                    met |= calls.load(Ordering::SeqCst) > nth;
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                    if met || pass.is_none() {
                        break;
                    }
                    fleet.containers().await;
                }
                if !met {
                    assert!(nth > 5, "{story:?}: {nth}");
                    break;
                }
                let (row, _) = fleet.state().await;
                if row.facts.finished_at.is_none() {
                    fleet.settled().await;
                }
                assert_eq!(
                    end(&fleet).await,
                    expected,
                    "{story:?}, call {nth}, lost: {lost}"
                );
            }
        }
    }
}
