//! Killed or failing at every step: the end is the same.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::{ContainerSettings, EngineError, LABEL_OWNER};
use schema::condition::Reason;
use schema::container::Desired;
use schema::ids::Uid;

use super::support::{OWNER, Yard, reason};
use kit::engine::{Fault, Run, Verb};

/// What an administrator asks for.
#[derive(Debug, Clone, Copy)]
enum Request {
    Create,
    Stop,
    Restart,
    Replace,
    /// Of which the new container ends at once.
    ReplaceBroken,
    Delete,
}

const ALL: [Request; 6] = [
    Request::Create,
    Request::Stop,
    Request::Restart,
    Request::Replace,
    Request::ReplaceBroken,
    Request::Delete,
];

async fn prepare(request: Request) -> (Yard, Uid) {
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    if !matches!(request, Request::Create) {
        yard.settled(&uid).await;
        yard.first = yard
            .fake
            .container("agentyard-alice")
            .map(|c| c.container.id);
        match request {
            Request::Create => {}
            Request::Stop => yard.set_desired(&uid, Desired::Stopped, false).await,
            Request::Restart => yard.restart(&uid, "t").await,
            Request::Replace => yard.set_limit(&uid, 256).await,
            Request::ReplaceBroken => {
                yard.fake.on_start(|details| Run {
                    ends: (details.settings.memory_bytes == 256 << 20)
                        .then_some((Duration::ZERO, 1)),
                    ..Run::default()
                });
                yard.set_limit(&uid, 256).await;
            }
            Request::Delete => yard.delete_user(&uid).await,
        }
    }
    (yard, uid)
}

/// The old container, id and all, runs again, and everybody is told why.
async fn assert_old_is_back(yard: &mut Yard, uid: &Uid, first: &str, context: &str) {
    for _ in 0..40 {
        let _ = reconcilers::runtime::Reconciler::keys(&yard.service.container).await;
        let pass = yard.pass(uid).await.unwrap().unwrap();
        let reason = pass.condition.map(|c| c.reason);
        if reason == Some(Reason::ReplacementFailed) && pass.acted == 0 {
            assert_eq!(yard.fake.running(), ["agentyard-alice"], "{context}");
            assert_eq!(yard.names(), ["agentyard-alice"], "{context}");
            let id = yard.fake.container("agentyard-alice").unwrap().container.id;
            assert_eq!(id, first, "{context}");
            return;
        }
        if pass.acted == 0 {
            yard.clock.advance(Duration::from_secs(1));
        }
    }
    panic!("the old container is not back: {context}");
}

async fn assert_end(mut yard: Yard, uid: Uid, request: Request, what: &str) {
    if matches!(request, Request::ReplaceBroken) {
        let context = format!("{request:?}, {what}");
        yard.budget = None;
        let first = yard.first.clone().unwrap();
        return assert_old_is_back(&mut yard, &uid, &first, &context).await;
    }
    let condition = yard.settled(&uid).await;
    let context = format!("{request:?}, {what}: {condition:?}");
    match request {
        Request::ReplaceBroken => panic!("has an end of its own"),
        Request::Create | Request::Restart | Request::Replace => {
            assert_eq!(
                condition.map(|c| c.reason),
                Some(Reason::Running),
                "{context}"
            );
            assert_eq!(yard.names(), ["agentyard-alice"], "{context}");
            assert_eq!(yard.fake.running().len(), 1, "{context}");
            let container = yard.fake.container("agentyard-alice").unwrap();
            let megabytes = container.settings.memory_bytes / 1024 / 1024;
            let wanted = if matches!(request, Request::Replace) {
                256
            } else {
                1024
            };
            assert_eq!(megabytes, wanted, "{context}");
        }
        Request::Stop => {
            assert_eq!(
                condition.map(|c| c.reason),
                Some(Reason::Stopped),
                "{context}"
            );
            assert_eq!(yard.names(), Vec::<String>::new(), "{context}");
        }
        Request::Delete => {
            assert_eq!(yard.names(), Vec::<String>::new(), "{context}");
            assert!(yard.row(&uid).await.is_none(), "{context}");
            let archived = std::fs::read_dir(yard.dir.path().join("archive")).unwrap();
            let archived = archived
                .filter(|e| {
                    e.as_ref()
                        .unwrap()
                        .file_name()
                        .to_string_lossy()
                        .starts_with("alice-")
                })
                .count();
            assert_eq!(archived, 1, "{context}");
        }
    }
    yard.assert_nothing_to_do(&uid).await;
}

/// Passes until the replacement has failed; true when the service was killed on the way.
async fn fail_to_replace(yard: &mut Yard, uid: &Uid) -> bool {
    for _ in 0..20 {
        let _ = reconcilers::runtime::Reconciler::keys(&yard.service.container).await;
        match yard.pass(uid).await {
            Err(_) => return true,
            Ok(Some(pass)) => {
                let failed = pass
                    .condition
                    .is_some_and(|c| c.reason == Reason::ReplacementFailed);
                if failed && pass.acted == 0 {
                    return false;
                }
            }
            Ok(None) => {}
        }
    }
    false
}

#[tokio::test]
async fn l34_l35_killed_after_every_action_the_end_is_the_same() {
    for request in ALL {
        let mut step = 0;
        loop {
            let (mut yard, uid) = prepare(request).await;
            yard.budget = Some(step);
            let killed = if matches!(request, Request::ReplaceBroken) {
                fail_to_replace(&mut yard, &uid).await
            } else {
                yard.settle(&uid).await.is_err()
            };
            yard.reboot();
            assert_end(yard, uid, request, &format!("killed before action {step}")).await;
            if !killed {
                assert!(step >= 2, "{request:?} takes more than {step} actions");
                break;
            }
            step += 1;
        }
    }
}

#[tokio::test]
async fn l34_every_engine_call_failing_or_losing_its_answer_the_end_is_the_same() {
    let verbs = [
        Verb::List,
        Verb::Inspect,
        Verb::Create,
        Verb::Start,
        Verb::Stop,
        Verb::Remove,
        Verb::Rename,
        Verb::Network,
        Verb::CreateNetwork,
        Verb::Image,
        Verb::ReadFile,
    ];
    let long = std::env::var_os("AGENTYARD_TEST_LONG").is_some();
    let (places, enough) = if long { (3, 60) } else { (1, 30) };
    let mut hits = 0;
    for request in ALL {
        for verb in verbs {
            for lost_answer in [false, true] {
                for nth in 0..places {
                    let (mut yard, uid) = prepare(request).await;
                    yard.fake.reset_calls();
                    let broken = || EngineError::Internal("injected".to_owned());
                    yard.fake
                        .fault_next(verb, nth, Fault::Delay(std::time::Duration::ZERO));
                    let fault = if lost_answer {
                        Fault::apply_then_fail(broken)
                    } else {
                        Fault::fail(broken)
                    };
                    yard.fake.fault_next(verb, 1, fault);
                    if matches!(request, Request::ReplaceBroken) {
                        fail_to_replace(&mut yard, &uid).await;
                    } else {
                        let _ = yard.settle(&uid).await;
                    }
                    let calls = yard.fake.calls().of(verb);
                    yard.fake.clear_faults();
                    let what = format!("{verb:?} number {nth} fails, answer lost: {lost_answer}");
                    assert_end(yard, uid, request, &what).await;
                    if usize::try_from(calls).unwrap() <= nth {
                        break;
                    }
                    hits += 1;
                }
            }
        }
    }
    assert!(hits > enough, "only {hits} faults happened");
}

#[tokio::test]
async fn a_probe_that_was_cut_short_leaves_nothing_although_nobody_probes_again() {
    let yard = Yard::new().await;
    let settings = ContainerSettings {
        image: "echo:1".to_owned(),
        labels: [(LABEL_OWNER.to_owned(), OWNER.to_owned())].into(),
        ..ContainerSettings::default()
    };
    yard.fake
        .hand_create("agentyard-probe-instan", &settings)
        .unwrap();
    // The network, then the leftover: the configured image is not on the engine, so there is no probe.
    for _ in 0..2 {
        yard.service.engine_pass().await;
    }
    assert_eq!(yard.names(), Vec::<String>::new());
}

/// Somebody puts a container of their own in the place of the service's, at the moment of the first `at` after it is
/// there.
async fn replaced_by_hand(at: Verb) {
    const NAME: &str = "agentyard-alice";
    let mut yard = Yard::new().await;
    let uid = yard.create_user("alice").await;
    let foreign = Arc::new(Mutex::new(None));
    let (fake, made) = (yard.fake.clone(), Arc::clone(&foreign));
    yard.fake.on_call(move |verb| {
        let mut made = made.lock().unwrap();
        if verb == at && made.is_none() && fake.container(NAME).is_some() {
            fake.hand_remove(NAME).unwrap();
            let settings = ContainerSettings {
                image: "echo:1".to_owned(),
                ..ContainerSettings::default()
            };
            *made = Some(fake.hand_create(NAME, &settings).unwrap());
        }
        None
    });
    assert_eq!(reason(yard.settled(&uid).await), Reason::NameConflict);
    assert_eq!(yard.fake.running(), Vec::<String>::new());
    let there = yard.fake.container(NAME).unwrap();
    let foreign = foreign.lock().unwrap().clone();
    assert_eq!(Some(there.container.id), foreign, "it was left alone");
}

#[tokio::test]
async fn l30_a_foreign_container_that_took_the_name_before_the_start_is_not_started() {
    // Whose it is is asked first.
    replaced_by_hand(Verb::Inspect).await;
}

#[tokio::test]
async fn l30_a_foreign_container_that_took_the_name_during_the_start_is_not_started() {
    // The answer was: ours.
    replaced_by_hand(Verb::Start).await;
}
