//! Killed or failing at every step: the end is the same.

use std::time::Duration;

use engine::EngineError;
use schema::condition::Reason;
use schema::ids::Uid;

use super::support::{AGENT, Yard, slow};
use kit::engine::{FakeEngine, Fault, PullEnd, Verb};

type NamedFault = (&'static str, fn() -> Fault);

/// What an administrator asks for.
#[derive(Debug, Clone, Copy)]
enum Request {
    Pull,
    PullAgain,
    Remove,
    RemoveById,
    Cancel,
    CancelAgain,
}

const ALL: [Request; 6] = [
    Request::Pull,
    Request::PullAgain,
    Request::Remove,
    Request::RemoveById,
    Request::Cancel,
    Request::CancelAgain,
];

/// The engine's id of the image that shall be there at the end.
async fn prepare(request: Request) -> (Yard, Uid, String) {
    let mut yard = Yard::new();
    let mut wanted = yard.fake.publish_image("agent:1");
    let mut uid = yard.request(AGENT, "t1");
    let begun = Duration::from_secs(2);
    match request {
        Request::Pull => {}
        Request::Cancel => {
            yard.fake.script_pull("agent:1", slow(PullEnd::Hangs(4)));
            yard.settle_within(&uid, begun).await.unwrap();
            yard.cancel(AGENT);
        }
        Request::PullAgain => {
            yard.settled(&uid).await;
            wanted = yard.fake.publish_image("agent:1");
            yard.request(AGENT, "t2");
        }
        Request::Remove => {
            yard.settled(&uid).await;
            yard.absent(AGENT);
        }
        Request::RemoveById => {
            yard.settled(&uid).await;
            yard.fake.hand_tag("agent:1", "agent:copy").unwrap();
            uid = yard.absent(&wanted);
        }
        Request::CancelAgain => {
            yard.settled(&uid).await;
            yard.fake.publish_image("agent:1");
            yard.fake.script_pull("agent:1", slow(PullEnd::Hangs(4)));
            yard.request(AGENT, "t2");
            yard.settle_within(&uid, begun).await.unwrap();
            yard.cancel(AGENT);
        }
    }
    yard.actions = 0;
    (yard, uid, wanted)
}

async fn assert_end(mut yard: Yard, uid: Uid, wanted: &str, request: Request, what: &str) {
    let mut condition = yard.settled(&uid).await;
    // A request ends with its first failure, which leaves nothing behind: the next one succeeds.
    if condition.as_ref().map(|c| c.reason) == Some(Reason::PullFailed) {
        assert!(!what.contains("killed") && !what.contains("away"), "{what}");
        yard.request(AGENT, "after the failure");
        condition = yard.settled(&uid).await;
    }
    let context = format!("{request:?}, {what}: {condition:?}");
    let reason = condition.map(|c| c.reason);
    let ids: Vec<String> = yard.fake.all_images().into_iter().map(|i| i.id).collect();
    match request {
        Request::Pull | Request::PullAgain | Request::CancelAgain => {
            assert_eq!(reason, Some(Reason::Converged), "{context}");
            assert!(ids.contains(&wanted.to_owned()), "{context}");
            let facts = yard.row(&uid).await.unwrap().facts;
            assert_eq!(facts.image_id.as_deref(), Some(wanted), "{context}");
        }
        Request::Remove | Request::RemoveById | Request::Cancel => {
            assert_eq!(reason, None, "{context}");
            assert!(!ids.contains(&wanted.to_owned()), "{context}");
            assert_eq!(yard.row(&uid).await, None, "{context}");
        }
    }
    tokio::task::yield_now().await;
    assert_eq!(yard.fake.pulls_under_way(), 0, "{context}");
    yard.fake.clear_faults();
    yard.assert_nothing_to_do(&uid).await;
}

#[tokio::test(start_paused = true)]
async fn l34_killed_before_every_action_the_end_is_the_same() {
    for request in ALL {
        let (mut yard, uid, wanted) = prepare(request).await;
        yard.settled(&uid).await;
        let steps = yard.actions;
        assert!(steps > 0, "{request:?}");
        for step in 0..steps {
            let (mut yard, uid, _) = prepare(request).await;
            yard.budget = Some(step);
            assert!(yard.settle(&uid).await.is_err(), "{request:?} {step}");
            yard.reboot();
            // Ids of the engine in memory repeat.
            assert_end(yard, uid, &wanted, request, &format!("killed at {step}")).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn l34_every_engine_call_failing_or_losing_its_answer_the_end_is_the_same() {
    let faults: [NamedFault; 6] = [
        ("failing", || {
            Fault::fail(|| EngineError::Internal("scripted".to_owned()))
        }),
        ("away", || Fault::fail(FakeEngine::unavailable_error)),
        ("too slow", || {
            Fault::fail(|| EngineError::Timeout(Duration::from_secs(30)))
        }),
        ("losing its answer", || {
            Fault::apply_then_fail(|| EngineError::Internal("scripted".to_owned()))
        }),
        ("away after it", || {
            Fault::apply_then_fail(FakeEngine::unavailable_error)
        }),
        ("conflicting", || {
            Fault::fail(|| EngineError::Conflict("scripted".to_owned()))
        }),
    ];
    for request in ALL {
        for verb in [
            Verb::Info,
            Verb::List,
            Verb::Image,
            Verb::RemoveImage,
            Verb::Pull,
        ] {
            for nth in 0..4 {
                for (what, fault) in &faults {
                    let (yard, uid, wanted) = prepare(request).await;
                    yard.fake
                        .fault_next(verb, nth, Fault::Delay(Duration::ZERO));
                    yard.fake.fault_next(verb, 1, fault());
                    let what = format!("{verb} number {nth} {what}");
                    assert_end(yard, uid, &wanted, request, &what).await;
                }
            }
        }
    }
}
