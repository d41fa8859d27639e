//! Images and rollouts in the database, on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use schema::condition::{Condition, Reason};
use schema::container::{self, ContainerEnd, ContainerFacts, Desired};
use schema::db::Tx;
use schema::error::DbError;
use schema::ids::{Epoch, Generation, Kind, Timestamp, Uid};
use schema::image::{self, DesiredImage, ImageFacts};
use schema::object::{self, StatusRow};
use schema::operation;
use schema::rollout::{
    self, DesiredRollout, ImageChoice, NewRollout, Phase, ReadinessPolicy, RolloutFacts,
    RolloutKind, TargetState,
};
use schema::user::{self, NewUser, Source};

use crate::support::{Yard, on_both_databases};

on_both_databases!(
    a_pull_is_asked_for_again_by_another_token,
    calling_a_pull_off_keeps_what_was_pulled_before,
    an_image_that_shall_be_absent_goes_when_its_reconciler_says_so,
    a_removal_is_taken_back_until_it_is_done,
    who_has_which_image_is_one_scan,
    what_an_unfinished_rollout_may_yet_give_is_needed,
    l35_a_user_is_in_one_unfinished_rollout,
    l36_the_previous_image_is_remembered_once_and_comes_back,
    many_users_of_a_rollout_end_at_once_and_the_others_do_not,
    a_rollout_obeys_only_what_fits_its_state,
    a_change_of_many_never_hides_one_that_somebody_waits_for,
);

const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);
const OLD: &str = "docker.io/library/agent:1";
const NEW: &str = "docker.io/library/agent:2";

async fn create(yard: &Yard, name: &str) -> Uid {
    let uid = Uid::random();
    let mut tx = yard.db.begin().await.unwrap();
    let new = NewUser {
        uid: uid.clone(),
        name: name.parse().unwrap(),
        source: Source::Local,
        password_hash: None,
        image_ref: OLD.to_owned(),
        desired: Desired::Running,
    };
    user::create(&mut tx, &new, NOW).await.unwrap();
    tx.commit().await.unwrap();
    uid
}

async fn pinned(tx: &mut Tx, uid: &Uid) {
    let facts = ContainerFacts {
        image_ref: Some(OLD.to_owned()),
        image_id: Some("sha256:old".to_owned()),
        image_digest: Some("agent@sha256:d1".to_owned()),
        ..ContainerFacts::default()
    };
    container::save_facts(tx, uid, &facts).await.unwrap();
}

const HOUR: Duration = Duration::from_secs(3600);
const POLICY: ReadinessPolicy = ReadinessPolicy {
    health_timeout: Duration::from_secs(9),
    min_ready: Duration::from_secs(2),
};

fn upgrade() -> NewRollout {
    NewRollout {
        kind: RolloutKind::Upgrade,
        reference: NEW.to_owned(),
        source: None,
        max_unavailable: 2,
        pause_on_failure: true,
        health_timeout: Duration::from_millis(1500),
        min_ready: Duration::from_millis(700),
    }
}

fn new_image() -> ImageChoice {
    ImageChoice {
        reference: NEW.to_owned(),
        image_id: Some("sha256:new".to_owned()),
        digest: None,
    }
}

async fn a_pull_is_asked_for_again_by_another_token(yard: Yard) {
    let mut tx = yard.db.begin().await.unwrap();
    let (uid, generation) = image::request_pull(&mut tx, NEW, "a", None, NOW)
        .await
        .unwrap();
    assert_eq!(generation, Generation(1));
    let (again, generation) = image::request_pull(&mut tx, NEW, "b", None, NOW)
        .await
        .unwrap();
    assert_eq!((&again, generation), (&uid, Generation(2)));
    let row = image::find(&mut tx, NEW).await.unwrap().unwrap();
    assert_eq!(row.pull_token, "b");
    assert_eq!(row.desired, DesiredImage::Present);
    assert_eq!(row.facts, ImageFacts::default());
    let facts = ImageFacts {
        image_id: Some("sha256:new".to_owned()),
        digest: Some("agent@sha256:d2".to_owned()),
        pull_token: Some("b".to_owned()),
        pulled_at: Some(NOW),
        failed_token: Some("c".to_owned()),
        failure: Some("no such tag".to_owned()),
    };
    image::save_facts(&mut tx, &uid, &facts).await.unwrap();
    image::save_facts(&mut tx, &uid, &facts).await.unwrap();
    let all = image::all(&mut tx).await.unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].facts, facts);
    // A purge is for what is deleted.
    let present = image::purge(&mut tx, &uid, DesiredImage::Present).await;
    assert!(!present.unwrap());
    assert!(image::get(&mut tx, &uid).await.unwrap().is_some());
}

async fn calling_a_pull_off_keeps_what_was_pulled_before(yard: Yard) {
    let mut tx = yard.db.begin().await.unwrap();
    let (uid, _) = image::request_pull(&mut tx, NEW, "a", None, NOW)
        .await
        .unwrap();
    let facts = ImageFacts {
        pull_token: Some("a".to_owned()),
        ..ImageFacts::default()
    };
    image::save_facts(&mut tx, &uid, &facts).await.unwrap();
    image::request_pull(&mut tx, NEW, "b", None, NOW)
        .await
        .unwrap();
    image::request_cancel(&mut tx, NEW, None, NOW)
        .await
        .unwrap();
    let row = image::find(&mut tx, NEW).await.unwrap().unwrap();
    assert_eq!((row.pull_token.as_str(), row.deleted_at), ("a", None));
    // One that was never there is wanted no more.
    image::request_pull(&mut tx, OLD, "a", None, NOW)
        .await
        .unwrap();
    image::request_cancel(&mut tx, OLD, None, NOW)
        .await
        .unwrap();
    let row = image::find(&mut tx, OLD).await.unwrap().unwrap();
    assert_eq!(row.desired, DesiredImage::Cancelled);
    assert_eq!(row.deleted_at, Some(NOW));
    let again = image::request_pull(&mut tx, OLD, "b", None, NOW).await;
    assert!(matches!(again, Err(DbError::NameBeingRemoved)));
}

async fn an_image_that_shall_be_absent_goes_when_its_reconciler_says_so(yard: Yard) {
    let mut tx = yard.db.begin().await.unwrap();
    let (uid, generation) = image::request_absent(&mut tx, OLD, NOW).await.unwrap();
    let twice = image::request_absent(&mut tx, OLD, NOW).await.unwrap();
    assert_eq!(twice, (uid.clone(), generation));
    let row = image::get(&mut tx, &uid).await.unwrap().unwrap();
    assert_eq!(
        (row.desired, row.deleted_at),
        (DesiredImage::Absent, Some(NOW))
    );
    let absent = DesiredImage::Absent;
    assert!(image::purge(&mut tx, &uid, absent).await.unwrap());
    assert!(image::get(&mut tx, &uid).await.unwrap().is_none());
    assert!(
        object::get(&mut tx, Kind::Image, &uid)
            .await
            .unwrap()
            .is_none()
    );
    // The reference is free again.
    image::request_pull(&mut tx, OLD, "a", None, NOW)
        .await
        .unwrap();
    // Removing is more than calling off.
    image::request_cancel(&mut tx, OLD, None, NOW)
        .await
        .unwrap();
    image::request_absent(&mut tx, OLD, NOW).await.unwrap();
    let row = image::find(&mut tx, OLD).await.unwrap().unwrap();
    assert_eq!(row.desired, DesiredImage::Absent);
    // What was planned for the cancelled pull forgets no removal.
    let late = image::purge(&mut tx, &row.uid, DesiredImage::Cancelled).await;
    assert!(!late.unwrap());
    assert!(image::get(&mut tx, &row.uid).await.unwrap().is_some());
}

async fn a_removal_is_taken_back_until_it_is_done(yard: Yard) {
    let mut tx = yard.db.begin().await.unwrap();
    let (uid, generation) = image::request_absent(&mut tx, OLD, NOW).await.unwrap();
    let pulled = image::request_pull(&mut tx, OLD, "a", None, NOW).await;
    assert!(matches!(pulled, Err(DbError::NameBeingRemoved)));
    let taken_back = image::request_cancel(&mut tx, OLD, None, NOW)
        .await
        .unwrap();
    assert_eq!(taken_back, (uid.clone(), generation));
    let row = image::get(&mut tx, &uid).await.unwrap().unwrap();
    assert_eq!(row.desired, DesiredImage::Cancelled);
    let (absent, cancelled) = (DesiredImage::Absent, DesiredImage::Cancelled);
    assert!(!image::purge(&mut tx, &uid, absent).await.unwrap());
    assert!(image::purge(&mut tx, &uid, cancelled).await.unwrap());
    image::request_pull(&mut tx, OLD, "a", None, NOW)
        .await
        .unwrap();
}

async fn what_an_unfinished_rollout_may_yet_give_is_needed(yard: Yard) {
    let alice = create(&yard, "alice").await;
    let bob = create(&yard, "Bob").await;
    let mut tx = yard.db.begin().await.unwrap();
    pinned(&mut tx, &alice).await;
    let users = [bob, alice.clone()];
    let uid = rollout::create(&mut tx, &upgrade(), &users, "admin", NOW)
        .await
        .unwrap();
    let (row, _) = rollout::get(&mut tx, &uid).await.unwrap().unwrap();
    let mut facts = row.facts;
    facts.image_id = Some("sha256:new".to_owned());
    rollout::save_facts(&mut tx, &uid, &facts).await.unwrap();
    rollout::move_target(&mut tx, &uid, &alice, &new_image(), POLICY, NOW)
        .await
        .unwrap();
    let needs = image::needs(&mut tx).await.unwrap();
    let seen: Vec<_> = needs
        .iter()
        .map(|of| {
            let id = of.image_id.as_deref();
            (of.name.as_str(), of.image_ref.as_str(), id)
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("alice", NEW, Some("sha256:new")),
            ("alice", OLD, Some("sha256:old")),
            ("Bob", NEW, Some("sha256:new")),
        ]
    );
    facts.finished_at = Some(NOW);
    rollout::save_facts(&mut tx, &uid, &facts).await.unwrap();
    assert_eq!(image::needs(&mut tx).await.unwrap(), []);
}

async fn who_has_which_image_is_one_scan(yard: Yard) {
    let alice = create(&yard, "alice").await;
    create(&yard, "Bob").await;
    let mut tx = yard.db.begin().await.unwrap();
    pinned(&mut tx, &alice).await;
    let uses = image::uses(&mut tx).await.unwrap();
    let seen: Vec<_> = uses
        .iter()
        .map(|of| {
            (
                of.name.as_str(),
                of.image_ref.as_str(),
                of.image_id.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [("alice", OLD, Some("sha256:old")), ("Bob", OLD, None)]
    );
}

async fn l35_a_user_is_in_one_unfinished_rollout(yard: Yard) {
    let alice = create(&yard, "alice").await;
    let bob = create(&yard, "bob").await;
    let begin = async |users: &[Uid]| {
        let mut tx = yard.db.begin().await.unwrap();
        let uid = rollout::create(&mut tx, &upgrade(), users, "admin", NOW).await?;
        tx.commit().await.unwrap();
        Ok::<_, DbError>(uid)
    };
    let first = begin(std::slice::from_ref(&alice)).await.unwrap();
    let both = [bob.clone(), alice.clone()];
    match begin(&both).await {
        Err(DbError::InRollout { rollout, users }) => {
            assert_eq!(rollout, first.as_str());
            assert_eq!(users, ["alice"]);
        }
        other => panic!("{other:?}"),
    }
    // Two at the same moment: one wins.
    let (a, b) = tokio::join!(
        begin(std::slice::from_ref(&bob)),
        begin(std::slice::from_ref(&bob))
    );
    assert!(a.is_ok() != b.is_ok());
    let mut tx = yard.db.begin().await.unwrap();
    let (row, targets) = rollout::get(&mut tx, &first).await.unwrap().unwrap();
    assert_eq!(
        (row.desired, row.attempt, row.max_unavailable),
        (DesiredRollout::Run, 1, 2)
    );
    assert_eq!(
        (row.actor.as_str(), row.facts.phase),
        ("admin", Phase::Pulling)
    );
    assert_eq!(row.health_timeout, Duration::from_millis(1500));
    assert_eq!(row.min_ready, Duration::from_millis(700));
    assert_eq!(targets.len(), 1);
    assert_eq!(rollout::unfinished(&mut tx).await.unwrap().len(), 2);
    let (rows, total) = rollout::list(&mut tx, "", 1, 0).await.unwrap();
    assert_eq!((rows.len(), total), (1, 2));
    let done = TargetState::Done;
    rollout::finish_target(&mut tx, &first, &targets[0].uid, done, "", NOW)
        .await
        .unwrap();
    let (rows, _) = rollout::list(&mut tx, "ADMIN", 9, 0).await.unwrap();
    let of_first = rows.iter().find(|(row, _)| row.uid == first).unwrap();
    let counted = (of_first.1.total, of_first.1.done, of_first.1.pending);
    assert_eq!(counted, (1, 1, 0));
    let (row, progress) = rollout::head(&mut tx, &first).await.unwrap().unwrap();
    assert_eq!((&row.uid, progress), (&first, of_first.1));
    for (search, expected) in [(first.as_str(), 1), ("_", 0), ("nobody", 0)] {
        let (rows, total) = rollout::list(&mut tx, search, 9, 0).await.unwrap();
        let found = (rows.len(), total);
        assert_eq!(found, (expected, expected as i64), "{search}");
    }
}

async fn l36_the_previous_image_is_remembered_once_and_comes_back(yard: Yard) {
    let alice = create(&yard, "alice").await;
    let mut tx = yard.db.begin().await.unwrap();
    pinned(&mut tx, &alice).await;
    let users = [alice.clone()];
    let uid = rollout::create(&mut tx, &upgrade(), &users, "admin", NOW)
        .await
        .unwrap();
    for _ in 0..2 {
        rollout::move_target(&mut tx, &uid, &alice, &new_image(), POLICY, NOW)
            .await
            .unwrap();
    }
    let row = container::get(&mut tx, &alice).await.unwrap().unwrap();
    assert_eq!(
        (row.image_ref.as_str(), row.pinned_image()),
        (NEW, Some("sha256:new"))
    );
    assert_eq!(row.health_timeout, Some(POLICY.health_timeout));
    assert_eq!(row.min_ready, Some(POLICY.min_ready));
    let (_, targets) = rollout::get(&mut tx, &uid).await.unwrap().unwrap();
    let target = &targets[0];
    assert_eq!(target.state, TargetState::Moving);
    assert_eq!(target.generation, Some(row.generation));
    let previous = target.previous.clone().unwrap();
    assert_eq!(previous.reference, OLD);
    assert_eq!(previous.image_id.as_deref(), Some("sha256:old"));
    assert_eq!(previous.digest.as_deref(), Some("agent@sha256:d1"));
    let seen = target.container.as_ref().unwrap();
    assert_eq!(seen.image_id.as_deref(), Some("sha256:new"));

    for (at, log) in [(NOW, "why\nit ended"), (NOW.minus(HOUR), "before")] {
        let end = ContainerEnd {
            at,
            exit_code: Some(1),
            cause: "exit code 1".to_owned(),
            log: log.to_owned(),
        };
        container::note_end(&mut tx, &alice, &end).await.unwrap();
    }
    rollout::put_back(
        &mut tx,
        &uid,
        &alice,
        TargetState::PuttingBack,
        "crashed",
        NOW,
    )
    .await
    .unwrap();
    let (_, targets) = rollout::get(&mut tx, &uid).await.unwrap().unwrap();
    assert_eq!(targets[0].log, "why\nit ended");
    let row = container::get(&mut tx, &alice).await.unwrap().unwrap();
    assert_eq!(
        (row.image_ref.as_str(), row.pinned_image()),
        (OLD, Some("sha256:old"))
    );
    rollout::finish_target(&mut tx, &uid, &alice, TargetState::Failed, "crashed", NOW)
        .await
        .unwrap();
    let row = container::get(&mut tx, &alice).await.unwrap().unwrap();
    assert_eq!((row.health_timeout, row.min_ready), (None, None));
    let operation = operation::get(&mut tx, uid.as_str())
        .await
        .unwrap()
        .unwrap();
    let tasks = operation::targets(&mut tx, &operation, 9).await.unwrap();
    assert_eq!(tasks[0].state, operation::TargetState::Failed);
    assert_eq!(
        (tasks[0].object.as_str(), tasks[0].message.as_str()),
        ("container/alice", "crashed")
    );

    // Whoever goes is no longer a container of the rollout.
    user::delete(&mut tx, &alice, NOW).await.unwrap();
    let (_, targets) = rollout::get(&mut tx, &uid).await.unwrap().unwrap();
    assert_eq!(targets[0].container, None);
    let gone = rollout::move_target(&mut tx, &uid, &alice, &new_image(), POLICY, NOW).await;
    assert!(matches!(gone, Err(DbError::NotFound(_))));
}

async fn many_users_of_a_rollout_end_at_once_and_the_others_do_not(yard: Yard) {
    let mut users = Vec::new();
    for name in ["alice", "bob", "carol"] {
        users.push(create(&yard, name).await);
    }
    let mut tx = yard.db.begin().await.unwrap();
    let uid = rollout::create(&mut tx, &upgrade(), &users, "admin", NOW)
        .await
        .unwrap();
    let some = [users[2].clone(), users[0].clone()];
    let state = TargetState::Cancelled;
    rollout::finish_targets(&mut tx, &uid, &some, state, "why", NOW)
        .await
        .unwrap();
    let none = TargetState::Failed;
    rollout::finish_targets(&mut tx, &uid, &[], none, "", NOW)
        .await
        .unwrap();
    let (_, targets) = rollout::get(&mut tx, &uid).await.unwrap().unwrap();
    let left = (TargetState::Pending, None, "");
    let ended = (state, Some(NOW), "why");
    let seen = targets
        .iter()
        .map(|t| (t.state, t.finished_at, t.message.as_str()));
    assert_eq!(seen.collect::<Vec<_>>(), [ended, left, ended]);
}

async fn a_rollout_obeys_only_what_fits_its_state(yard: Yard) {
    let alice = create(&yard, "alice").await;
    let mut tx = yard.db.begin().await.unwrap();
    let users = [alice.clone()];
    let uid = rollout::create(&mut tx, &upgrade(), &users, "admin", NOW)
        .await
        .unwrap();
    let refused = |result: Result<Generation, DbError>| {
        assert!(matches!(result, Err(DbError::WrongState(_))), "{result:?}");
    };
    refused(rollout::resume(&mut tx, &uid, None).await);
    rollout::pause(&mut tx, &uid, None).await.unwrap();
    let stale = rollout::resume(&mut tx, &uid, Some(Generation(1))).await;
    assert!(matches!(stale, Err(DbError::StaleGeneration { .. })));
    rollout::resume(&mut tx, &uid, None).await.unwrap();
    let (row, _) = rollout::get(&mut tx, &uid).await.unwrap().unwrap();
    assert_eq!((row.desired, row.attempt), (DesiredRollout::Run, 2));
    let phase = async |tx: &mut Tx| {
        let (row, _) = rollout::get(tx, &uid).await.unwrap().unwrap();
        row.phase()
    };

    // It pauses itself after a failure; whoever failed gets another turn.
    let failed = TargetState::Failed;
    rollout::finish_target(&mut tx, &uid, &alice, failed, "crashed", NOW)
        .await
        .unwrap();
    let paused = RolloutFacts {
        pull_failed_at: Some(NOW),
        paused_attempt: 2,
        phase: Phase::Paused,
        ..row.facts
    };
    rollout::save_facts(&mut tx, &uid, &paused).await.unwrap();
    assert_eq!(phase(&mut tx).await, Phase::Paused);
    rollout::resume(&mut tx, &uid, None).await.unwrap();
    let (row, targets) = rollout::get(&mut tx, &uid).await.unwrap().unwrap();
    assert_eq!(row.facts.pull_failed_at, None, "counted anew");
    assert!(!row.paused_itself());
    assert_eq!(
        row.phase(),
        Phase::Pulling,
        "before its reconciler has taken note"
    );
    assert_eq!(targets[0].state, TargetState::Pending);

    rollout::cancel(&mut tx, &uid, None).await.unwrap();
    assert_eq!(phase(&mut tx).await, Phase::Cancelling);
    refused(rollout::pause(&mut tx, &uid, None).await);
    let ended = RolloutFacts {
        phase: Phase::Cancelled,
        finished_at: Some(NOW),
        ..row.facts
    };
    rollout::save_facts(&mut tx, &uid, &ended).await.unwrap();
    refused(rollout::cancel(&mut tx, &uid, None).await);
    assert!(rollout::unfinished(&mut tx).await.unwrap().is_empty());

    // What has ended can still be taken back, unless its users have begun something else.
    let other = rollout::create(&mut tx, &upgrade(), &users, "admin", NOW)
        .await
        .unwrap();
    let busy = rollout::roll_back(&mut tx, &uid, None).await;
    assert!(matches!(busy, Err(DbError::InRollout { .. })));
    rollout::save_facts(&mut tx, &other, &ended).await.unwrap();
    rollout::roll_back(&mut tx, &uid, None).await.unwrap();
    refused(rollout::cancel(&mut tx, &uid, None).await);
    assert_eq!(
        rollout::unfinished(&mut tx).await.unwrap(),
        std::slice::from_ref(&uid)
    );
    let done = RolloutFacts {
        phase: Phase::RolledBack,
        ..ended
    };
    rollout::save_facts(&mut tx, &uid, &done).await.unwrap();
    refused(rollout::roll_back(&mut tx, &uid, None).await);
    let missing = rollout::pause(&mut tx, &Uid::random(), None).await;
    assert!(matches!(missing, Err(DbError::NotFound("rollout"))));
}

async fn a_change_of_many_never_hides_one_that_somebody_waits_for(yard: Yard) {
    let alice = create(&yard, "alice").await;
    let mut tx = yard.db.begin().await.unwrap();
    let users = [alice.clone()];
    let uid = rollout::create(&mut tx, &upgrade(), &users, "admin", NOW)
        .await
        .unwrap();
    let dirty = async |tx: &mut Tx| {
        let dirty = object::dirty(tx, Kind::Container).await.unwrap();
        dirty
            .first()
            .map(|object| (object.generation.0, object.bulk))
    };
    // The creation was not seen yet: it still comes first.
    rollout::move_target(&mut tx, &uid, &alice, &new_image(), POLICY, NOW)
        .await
        .unwrap();
    assert_eq!(dirty(&mut tx).await, Some((2, false)));
    let seen = |generation| StatusRow {
        observed_generation: Generation(generation),
        conditions: vec![Condition::ready(Reason::Running, "")],
        ..StatusRow::default()
    };
    object::save_status(&mut tx, Kind::Container, &alice, &seen(2), Epoch(1))
        .await
        .unwrap();
    assert_eq!(dirty(&mut tx).await, None);
    rollout::move_target(&mut tx, &uid, &alice, &new_image(), POLICY, NOW)
        .await
        .unwrap();
    rollout::move_target(&mut tx, &uid, &alice, &new_image(), POLICY, NOW)
        .await
        .unwrap();
    assert_eq!(dirty(&mut tx).await, Some((4, true)));
    object::bump(&mut tx, Kind::Container, &alice, None)
        .await
        .unwrap();
    assert_eq!(dirty(&mut tx).await, Some((5, false)));
}
