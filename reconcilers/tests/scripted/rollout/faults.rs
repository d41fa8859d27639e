//! Killed before every step, and every answer of the database lost: the end is the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use schema::rollout::{Phase, TargetState};

use super::support::{Answer, NEW, Yard, upgrade};
use kit::Pace;

/// What is asked of the yard.
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

async fn prepare(story: Story) -> Yard {
    let mut yard = Yard::new(5, &[1], &upgrade(2)).await;
    let new = yard.fake.publish_image(NEW);
    match story {
        Story::Moves => {}
        Story::Fails => yard.breaks(3, &new, Answer::Fails),
        Story::GoesBack => {
            yard.settled().await;
            yard.store.roll_back_rollout(&yard.rollout).unwrap();
            yard.reboot();
        }
        Story::Cancelled => {
            yard.breaks(2, &new, Answer::Fails);
            yard.settled().await;
            yard.store.cancel_rollout(&yard.rollout).unwrap();
        }
    }
    yard
}

async fn end(yard: &Yard) -> End {
    let (row, _) = yard.state().await;
    (row.facts.phase, yard.states().await, yard.images())
}

#[tokio::test(start_paused = true)]
async fn l34_killed_before_every_step_the_end_is_the_same() {
    for story in ALL {
        let mut yard = prepare(story).await;
        yard.settled().await;
        let expected = end(&yard).await;
        let mut kills = 0;
        for budget in 0..200 {
            let mut yard = prepare(story).await;
            yard.budget = Some(budget);
            if yard.settle().await.is_ok() {
                break;
            }
            kills += 1;
            yard.reboot();
            yard.settled().await;
            assert_eq!(
                end(&yard).await,
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
        let mut yard = prepare(story).await;
        yard.settled().await;
        let expected = end(&yard).await;
        for lost in [true, false] {
            for nth in 0..1_000 {
                let mut yard = prepare(story).await;
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
                    yard.store.on_call(fault.clone());
                    let pass = yard.pass().await.unwrap();
                    yard.store.on_call(Pace::default);
                    met |= calls.load(Ordering::SeqCst) > nth;
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                    if met || pass.is_none() {
                        break;
                    }
                    yard.containers().await;
                }
                if !met {
                    assert!(nth > 5, "{story:?}: {nth}");
                    break;
                }
                let (row, _) = yard.state().await;
                if row.facts.finished_at.is_none() {
                    yard.settled().await;
                }
                assert_eq!(
                    end(&yard).await,
                    expected,
                    "{story:?}, call {nth}, lost: {lost}"
                );
            }
        }
    }
}
