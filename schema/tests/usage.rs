//! What users' workspaces take, in the database: on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use schema::condition::{Condition, Reason};
use schema::container::{self, Desired};
use schema::home::Measured;
use schema::ids::{Epoch, Generation, Kind, Timestamp, Uid};
use schema::object::{self, StatusRow};
use schema::usage::{self, Attempt, Due, Quota, QuotaState, Usage, Verdict};
use schema::user;

use crate::support::{Yard, on_both_databases};

on_both_databases!(
    a_workspace_is_measured_once_there_is_one,
    how_long_a_number_is_good,
    what_a_request_changes_during_a_measurement_is_measured_again,
    a_workspace_with_many_entries_is_measured_less_often,
    with_a_quota_unchanged_directories_are_measured_less_often,
    lower_bound_takes_nothing_off_what_the_quota_judges,
    verdict_that_stops_wakes_the_container_and_says_why,
    a_failure_keeps_the_number_and_holds_up_nobody,
    the_longest_due_come_first_in_a_bounded_number,
    l73_a_clock_that_was_set_back_stops_no_measurement,
    l6_nothing_is_left_of_a_user_who_is_gone,
    the_listing_shows_what_is_known,
);

const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// A user whose directory was made.
async fn create(yard: &Yard, name: &str) -> Uid {
    let uid = crate::support::user(yard, name).await;
    let status = StatusRow {
        observed_generation: Generation(1),
        conditions: vec![Condition::ready(Reason::Converged, "")],
        ..StatusRow::default()
    };
    let mut tx = yard.db.begin().await.unwrap();
    object::save_status(&mut tx, Kind::User, &uid, &status, Epoch(1))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    uid
}

async fn due(yard: &Yard, now: Timestamp) -> Vec<Due> {
    let mut connection = yard.db.read().await.unwrap();
    let none = Quota::default();
    usage::due(&mut connection, now, 20, &none).await.unwrap()
}

/// The names of those that are due.
async fn names(yard: &Yard, now: Timestamp) -> Vec<String> {
    let due = due(yard, now).await.into_iter();
    due.map(|due| due.name.to_string()).collect()
}

async fn save(yard: &Yard, due: &Due, outcome: Result<Measured, &str>, now: Timestamp) {
    let attempt = Attempt {
        uid: due.uid.clone(),
        changes: due.changes,
        outcome: outcome.map_err(str::to_owned),
    };
    let mut tx = yard.db.begin().await.unwrap();
    usage::save(&mut tx, &[attempt], now).await.unwrap();
    tx.commit().await.unwrap();
}

async fn changed(yard: &Yard, uid: &Uid) {
    let mut tx = yard.db.begin().await.unwrap();
    usage::changed(&mut tx, uid).await.unwrap();
    tx.commit().await.unwrap();
}

async fn known(yard: &Yard, uid: &Uid) -> Option<Usage> {
    let mut connection = yard.db.read().await.unwrap();
    usage::get(&mut connection, uid).await.unwrap()
}

fn measured(bytes: u64, files: u64) -> Measured {
    Measured {
        bytes,
        files,
        ..Measured::default()
    }
}

async fn a_workspace_is_measured_once_there_is_one(yard: Yard) {
    crate::support::user(&yard, "early").await;
    let ada = create(&yard, "ada").await;
    let found = due(&yard, NOW).await;
    let expected = Due {
        uid: ada.clone(),
        name: "ada".parse().unwrap(),
        changes: 0,
    };
    assert_eq!(found, std::slice::from_ref(&expected));
    assert_eq!(known(&yard, &ada).await, None);
    save(&yard, &expected, Ok(measured(1 << 42, 3)), NOW).await;
    let usage = Usage {
        used_bytes: 1 << 42,
        files: 3,
        entries: 0,
        complete: true,
        measured_at: NOW,
        problem: None,
        measured_changes: 0,
    };
    assert_eq!(known(&yard, &ada).await, Some(usage));
    assert!(names(&yard, NOW).await.is_empty());
    let cut = Measured {
        stopped: true,
        ..measured(7, 1)
    };
    save(&yard, &expected, Ok(cut), NOW.plus(MINUTE)).await;
    let usage = known(&yard, &ada).await.unwrap();
    assert_eq!((usage.used_bytes, usage.complete), (7, false));
}

async fn how_long_a_number_is_good(yard: Yard) {
    let mut uids = Vec::new();
    for name in ["changed", "disabled", "running", "stopped"] {
        uids.push(create(&yard, name).await);
    }
    for due in due(&yard, NOW).await {
        save(&yard, &due, Ok(measured(1, 0)), NOW).await;
    }
    let mut tx = yard.db.begin().await.unwrap();
    user::set_disabled(&mut tx, &uids[1], true, None)
        .await
        .unwrap();
    container::set_desired(&mut tx, &uids[3], Desired::Stopped, false, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    changed(&yard, &uids[0]).await;
    assert!(names(&yard, NOW.plus(SECOND * 9)).await.is_empty());
    assert_eq!(names(&yard, NOW.plus(SECOND * 10)).await, ["changed"]);
    let hour = NOW.plus(HOUR);
    assert_eq!(names(&yard, hour.minus(SECOND)).await, ["changed"]);
    assert_eq!(names(&yard, hour).await, ["changed", "running"]);
    let day = NOW.plus(HOUR * 24);
    assert_eq!(names(&yard, day.minus(SECOND)).await.len(), 2);
    assert_eq!(names(&yard, day).await.len(), 4);
}

async fn what_a_request_changes_during_a_measurement_is_measured_again(yard: Yard) {
    let ada = create(&yard, "ada").await;
    changed(&yard, &ada).await;
    changed(&yard, &ada).await;
    assert_eq!(known(&yard, &ada).await, None);
    let before = due(&yard, NOW).await.remove(0);
    assert_eq!(before.changes, 2);
    // The walk has begun.
    changed(&yard, &ada).await;
    save(&yard, &before, Ok(measured(1, 0)), NOW).await;
    let later = NOW.plus(MINUTE);
    let again = due(&yard, later).await.remove(0);
    assert_eq!(again.changes, 3);
    save(&yard, &again, Ok(measured(2, 0)), later).await;
    assert!(names(&yard, later.plus(MINUTE)).await.is_empty());
}

async fn a_workspace_with_many_entries_is_measured_less_often(yard: Yard) {
    let ada = create(&yard, "ada").await;
    let first = due(&yard, NOW).await.remove(0);
    let wide = Measured {
        entries: 100_000,
        ..measured(1, 1)
    };
    save(&yard, &first, Ok(wide), NOW).await;
    changed(&yard, &ada).await;
    assert!(names(&yard, NOW.plus(SECOND * 109)).await.is_empty());
    assert_eq!(names(&yard, NOW.plus(SECOND * 110)).await, ["ada"]);
}

/// A quota of ten MiB that stops agents.
const QUOTA: Quota = Quota {
    megabytes: 10,
    files: 0,
    stops: true,
};
const MIB: u64 = 1024 * 1024;

async fn with_a_quota_unchanged_directories_are_measured_less_often(yard: Yard) {
    create(&yard, "ada").await;
    let first = due(&yard, NOW).await.remove(0);
    let mut now = NOW;
    // Found anew, then the same again and again, then something else.
    for (bytes, minutes) in [
        (1, 10),
        (1, 20),
        (1, 30),
        (1, 40),
        (1, 50),
        (1, 60),
        (1, 60),
        (2, 10),
    ] {
        let counted = Measured {
            entries: 60_000,
            ..measured(bytes, 1)
        };
        save(&yard, &first, Ok(counted), now).await;
        let again = now.plus(MINUTE * minutes + MINUTE);
        let mut connection = yard.db.read().await.unwrap();
        for (at, count) in [(again.minus(SECOND), 0), (again, 1)] {
            let due = usage::due(&mut connection, at, 20, &QUOTA).await.unwrap();
            assert_eq!(due.len(), count, "{bytes} after {minutes} minutes");
        }
        now = again;
    }
}

/// Judges all, and saves that; the new verdicts.
async fn judge(yard: &Yard, quota: &Quota) -> Vec<Verdict> {
    let mut connection = yard.db.read().await.unwrap();
    let held = usage::held(&mut connection, quota).await.unwrap();
    drop(connection);
    let judged: Vec<_> = held.into_iter().filter_map(|it| quota.judge(it)).collect();
    let mut tx = yard.db.begin().await.unwrap();
    usage::save_judgements(&mut tx, &judged, NOW).await.unwrap();
    tx.commit().await.unwrap();
    judged.into_iter().map(|it| it.verdict).collect()
}

async fn lower_bound_takes_nothing_off_what_the_quota_judges(yard: Yard) {
    create(&yard, "ada").await;
    let first = due(&yard, NOW).await.remove(0);
    save(&yard, &first, Ok(measured(11 * MIB, 1)), NOW).await;
    assert_eq!(judge(&yard, &QUOTA).await[0].state, QuotaState::Exceeded);
    save(&yard, &first, Err("cannot be read"), NOW).await;
    assert_eq!(judge(&yard, &QUOTA).await, []);
    let part = Measured {
        unreadable: 1,
        ..measured(MIB, 1)
    };
    save(&yard, &first, Ok(part), NOW).await;
    let note = "at least 11 of 10 MiB (files.quota_mb) are used; uploads are refused, and the agent is stopped";
    assert_eq!(judge(&yard, &QUOTA).await[0].note, note);
    // A raised quota lifts what is known to be within it; so does a whole measurement.
    let raised = Quota {
        megabytes: 20,
        ..QUOTA
    };
    assert_eq!(judge(&yard, &raised).await, [Verdict::default()]);
    assert_eq!(judge(&yard, &QUOTA).await.len(), 1);
    save(&yard, &first, Ok(measured(MIB, 1)), NOW).await;
    assert_eq!(judge(&yard, &QUOTA).await, [Verdict::default()]);
}

async fn verdict_that_stops_wakes_the_container_and_says_why(yard: Yard) {
    let ada = create(&yard, "ada").await;
    let first = due(&yard, NOW).await.remove(0);
    let stopped = async || {
        let mut connection = yard.db.read().await.unwrap();
        let row = container::get(&mut connection, &ada)
            .await
            .unwrap()
            .unwrap();
        let events = schema::event::list(&mut connection, Some(Kind::User), Some(&ada), NOW, 9);
        let last = events.await.unwrap().into_iter().next();
        let reason = last.map(|event| event.reason);
        (row.generation.0, row.desired_running(), reason)
    };
    for (mib, generation, runs, reason) in [
        (7, 1, true, None),
        (8, 1, true, Some("QuotaNearlyUsed")),
        (10, 2, false, Some("QuotaExceeded")),
        (12, 2, false, Some("QuotaExceeded")),
        (9, 3, true, Some("QuotaNearlyUsed")),
    ] {
        save(&yard, &first, Ok(measured(mib * MIB, 1)), NOW).await;
        judge(&yard, &QUOTA).await;
        let expected = (generation, runs, reason.map(str::to_owned));
        assert_eq!(stopped().await, expected, "{mib} MiB");
    }
    let mut connection = yard.db.read().await.unwrap();
    let users = usage::quota_users(&mut connection).await.unwrap().unwrap();
    assert_eq!(
        (users.name.as_str(), users.near, users.beyond),
        ("ada", 1, 0)
    );
}

async fn a_failure_keeps_the_number_and_holds_up_nobody(yard: Yard) {
    let ada = create(&yard, "ada").await;
    let zoe = create(&yard, "zoe").await;
    for due in due(&yard, NOW).await {
        save(&yard, &due, Ok(measured(5, 1)), NOW).await;
    }
    let day = NOW.plus(HOUR * 24);
    let found = due(&yard, day).await;
    for due in &found {
        save(&yard, due, Err("cannot be read"), day).await;
    }
    let usage = known(&yard, &ada).await.unwrap();
    assert_eq!((usage.used_bytes, usage.measured_at), (5, NOW));
    assert_eq!(usage.problem.as_deref(), Some("cannot be read"));
    // What is changed meanwhile waits, too.
    changed(&yard, &zoe).await;
    assert!(names(&yard, day.plus(MINUTE)).await.is_empty());
    let failing = async || {
        let mut connection = yard.db.read().await.unwrap();
        let failing = usage::failing(&mut connection).await.unwrap();
        failing.map(|failing| (failing.count, failing.name.to_string(), failing.oldest))
    };
    assert_eq!(failing().await, Some((2, "ada".to_owned(), day)));
    let again = day.plus(usage::RETRY);
    let mut due = due(&yard, again).await;
    due.sort_by(|one, other| one.name.cmp(&other.name));
    assert_eq!(due.len(), 2);
    save(&yard, &due[0], Ok(measured(6, 1)), again).await;
    assert_eq!(known(&yard, &ada).await.unwrap().problem, None);
    assert_eq!(failing().await, Some((1, "zoe".to_owned(), day)));
    // Nobody is told of one who is leaving.
    let mut tx = yard.db.begin().await.unwrap();
    user::delete(&mut tx, &zoe, NOW).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(failing().await, None);
    assert!(names(&yard, again.plus(MINUTE)).await.is_empty());
}

async fn the_longest_due_come_first_in_a_bounded_number(yard: Yard) {
    for name in ["ada", "bob", "eve", "zoe"] {
        create(&yard, name).await;
    }
    let mut found = due(&yard, NOW).await;
    found.sort_by(|one, other| one.name.cmp(&other.name));
    for (due, minutes) in found.iter().zip([2, 0, 1]) {
        let at = NOW.plus(MINUTE * minutes);
        save(&yard, due, Ok(measured(1, 1)), at).await;
    }
    let later = NOW.plus(HOUR * 2);
    assert_eq!(names(&yard, later).await, ["zoe", "bob", "eve", "ada"]);
    let mut connection = yard.db.read().await.unwrap();
    let none = Quota::default();
    let few = usage::due(&mut connection, later, 2, &none).await.unwrap();
    assert_eq!(few.len(), 2);
}

async fn l73_a_clock_that_was_set_back_stops_no_measurement(yard: Yard) {
    create(&yard, "ada").await;
    let first = due(&yard, NOW).await.remove(0);
    save(&yard, &first, Ok(measured(1, 1)), NOW.plus(HOUR * 9000)).await;
    assert_eq!(names(&yard, NOW).await, ["ada"]);
    save(&yard, &first, Ok(measured(1, 1)), NOW).await;
    assert!(names(&yard, NOW).await.is_empty());
}

async fn l6_nothing_is_left_of_a_user_who_is_gone(yard: Yard) {
    let ada = create(&yard, "ada").await;
    let first = due(&yard, NOW).await.remove(0);
    save(&yard, &first, Ok(measured(1, 1)), NOW).await;
    let mut tx = yard.db.begin().await.unwrap();
    user::delete(&mut tx, &ada, NOW).await.unwrap();
    container::purge(&mut tx, &ada).await.unwrap();
    assert!(user::purge(&mut tx, &ada).await.unwrap());
    tx.commit().await.unwrap();
    assert_eq!(known(&yard, &ada).await, None);
    // Neither by a measurement that comes too late.
    save(&yard, &first, Ok(measured(1, 1)), NOW).await;
    save(&yard, &first, Err("gone"), NOW).await;
    assert_eq!(known(&yard, &ada).await, None);
    let next = create(&yard, "ada").await;
    assert_eq!(known(&yard, &next).await, None);
    assert_eq!(due(&yard, NOW).await[0].uid, next);
}

async fn the_listing_shows_what_is_known(yard: Yard) {
    for name in ["ada", "zoe"] {
        create(&yard, name).await;
    }
    for due in due(&yard, NOW).await {
        if due.name.as_str() == "zoe" {
            let cut = Measured {
                unreadable: 1,
                ..measured(2500, 1)
            };
            save(&yard, &due, Ok(cut), NOW).await;
        } else {
            save(&yard, &due, Err("cannot be read"), NOW).await;
        }
    }
    let mut connection = yard.db.read().await.unwrap();
    let (users, _) = user::list(&mut connection, "", 10, 0).await.unwrap();
    let shown: Vec<_> = users
        .iter()
        .map(|user| (user.used_bytes, user.used_complete))
        .collect();
    assert_eq!(shown, [(None, false), (Some(2500), false)]);
}
