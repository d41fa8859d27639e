//! Changes of everybody at once, and what their operations tell: the same few statements for any number.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use schema::condition::{Condition, Reason};
use schema::db::Tx;
use schema::ids::{Epoch, Generation, Kind, Timestamp, Uid};
use schema::object::{self, StatusRow};
use schema::operation::{self, CANCELLED, Operation, TargetState};
use schema::skill_repository::{self, NewRepository, OfferedSkill, RefType, RepositoryFacts};
use sqlx::AssertSqlSafe;
use tracing::subscriber::set_global_default;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{Layer, Registry};

use crate::support::{Yard, on_both_databases};

on_both_databases!(
    l41_everybody_is_asked_for_in_two_statements,
    a_census_costs_the_same_for_any_number,
    l41_progress_is_counted_and_only_the_most_urgent_are_read,
    l41_two_operations_over_the_same_objects_are_two,
    statements_and_rows_tell_the_same_of_a_target,
    a_cancelled_operation_keeps_what_became_of_its_objects,
    l75_what_has_ended_stays_ended,
    what_had_ended_before_ends_were_kept_stays_ended,
    a_bulk_change_waits_behind_one_of_a_single_object,
    only_old_operations_that_have_ended_are_forgotten,
    reasons_of_earlier_statuses_are_found,
    problems_are_grouped_by_kind_and_reason,
    skills_of_earlier_releases_are_counted,
);

const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);

/// Counts the statements that the databases' drivers log.
struct Counter(Arc<AtomicUsize>);

impl<S: tracing::Subscriber> Layer<S> for Counter {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "sqlx::query" {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn count_statements() -> Arc<AtomicUsize> {
    let counter = Arc::new(AtomicUsize::new(0));
    set_global_default(Registry::default().with(Counter(counter.clone()))).unwrap();
    counter
}

/// As many users' config objects, without the rest of the users.
async fn populate(yard: &Yard, prefix: &str, users: usize) {
    let mut tx = yard.db.begin().await.unwrap();
    for n in 0..users {
        let name = format!("{prefix}{n:05}");
        let uid = Uid::from(name.clone());
        object::insert(&mut tx, Kind::AgentConfig, &uid, &name, NOW)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
}

async fn apply(tx: &mut Tx) -> (Operation, u64) {
    object::bump_all(tx, Kind::AgentConfig).await.unwrap();
    let created =
        operation::create_for_all(tx, "config_apply", "root", Kind::AgentConfig, NOW).await;
    let (id, total) = created.unwrap();
    let operation = operation::get(tx, &id).await.unwrap().unwrap();
    (operation, total)
}

async fn saw(tx: &mut Tx, uid: &str, generation: i64, condition: Condition) {
    let status = StatusRow {
        observed_generation: Generation(generation),
        conditions: vec![condition],
        ..StatusRow::default()
    };
    let uid = Uid::from(uid.to_owned());
    let saved = object::save_status(tx, Kind::AgentConfig, &uid, &status, Epoch(1)).await;
    assert!(saved.unwrap());
}

fn ready(seconds: i64) -> Condition {
    Condition {
        last_transition_at: Timestamp::from_secs(seconds),
        ..Condition::ready(Reason::Converged, "")
    }
}

fn refused() -> Condition {
    Condition::not_ready(Reason::InvalidUserConfig, "config.json is no JSON")
}

async fn l41_everybody_is_asked_for_in_two_statements(yard: Yard) {
    let counter = count_statements();
    let mut costs = Vec::new();
    let mut users = 0;
    for (prefix, more) in [("a", 500), ("b", 9500)] {
        populate(&yard, prefix, more).await;
        users += more;
        let mut tx = yard.db.begin().await.unwrap();
        let before = counter.load(Ordering::SeqCst);
        let (operation, total) = apply(&mut tx).await;
        tx.commit().await.unwrap();
        let written = counter.load(Ordering::SeqCst);
        assert_eq!(total, users as u64);
        let mut connection = yard.db.read().await.unwrap();
        let count = operation::count(&mut connection, &operation).await.unwrap();
        let targets = operation::targets(&mut connection, &operation, 200).await;
        assert_eq!(
            (count.progress.total, count.progress.pending),
            (users, users)
        );
        assert_eq!(targets.unwrap().len(), 200);
        let read = counter.load(Ordering::SeqCst);
        costs.push((written - before, read - written));
    }
    assert_eq!(costs[0], costs[1], "500 users cost what 10,000 do");
    let (written, read) = costs[0];
    assert!((3..=12).contains(&written), "{written} statements");
    assert!((2..=4).contains(&read), "{read} statements");
}

/// The number once it stays: SQLite's thread counts a statement a moment after its answer.
async fn settled(counter: &AtomicUsize) -> usize {
    loop {
        let before = counter.load(Ordering::SeqCst);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        if counter.load(Ordering::SeqCst) == before {
            return before;
        }
    }
}

async fn a_census_costs_the_same_for_any_number(yard: Yard) {
    let counter = count_statements();
    let mut costs = Vec::new();
    let mut objects = 0;
    let is_postgres = matches!(yard.backend, schema::db::Backend::Postgres(_));
    for (prefix, more) in [("a", 5), ("b", 495)] {
        populate(&yard, prefix, more).await;
        objects += i64::try_from(more).unwrap();
        // Outside of a transaction, whose end would be counted later.
        let mut connection = yard.db.read().await.unwrap();
        let before = settled(&counter).await;
        let census =
            schema::census::take(&mut connection, is_postgres, Timestamp::from_secs(1)).await;
        costs.push(settled(&counter).await - before);
        let census = census.unwrap();
        let of_kind = census
            .objects
            .iter()
            .filter(|found| found.kind == "agent-config");
        assert_eq!(of_kind.map(|found| found.n).sum::<i64>(), objects);
        assert!(census.size > 10_000, "{census:?}");
    }
    assert_eq!(costs[0], costs[1], "5 users cost what 500 do");
    assert!((8..=14).contains(&costs[0]), "{costs:?}");
}

async fn l41_progress_is_counted_and_only_the_most_urgent_are_read(yard: Yard) {
    populate(&yard, "u", 5).await;
    let mut tx = yard.db.begin().await.unwrap();
    let (operation, total) = apply(&mut tx).await;
    assert_eq!(total, 5);
    saw(&mut tx, "u00000", 2, ready(20)).await;
    saw(&mut tx, "u00001", 1, ready(90)).await;
    saw(
        &mut tx,
        "u00002",
        2,
        Condition::not_ready(Reason::Retrying, ""),
    )
    .await;
    saw(&mut tx, "u00003", 2, refused()).await;
    let gone = Uid::from("u00004".to_owned());
    object::delete(&mut tx, Kind::AgentConfig, &gone, NOW)
        .await
        .unwrap();
    assert!(
        object::purge_if_finalized(&mut tx, Kind::AgentConfig, &gone)
            .await
            .unwrap()
    );
    let count = operation::count(&mut tx, &operation).await.unwrap();
    let progress = count.progress;
    assert_eq!((progress.total, progress.done), (5, 2));
    assert_eq!(
        (progress.failed, progress.running, progress.pending),
        (1, 1, 1)
    );
    let urgent = operation::targets(&mut tx, &operation, 2).await.unwrap();
    let names: Vec<_> = urgent.iter().map(|target| &*target.object).collect();
    assert_eq!(names, ["agent-config/u00003", "agent-config/u00002"]);
    assert_eq!(urgent[0].message, "config.json is no JSON");
}

async fn l41_two_operations_over_the_same_objects_are_two(yard: Yard) {
    populate(&yard, "u", 3).await;
    let mut tx = yard.db.begin().await.unwrap();
    let (first, _) = apply(&mut tx).await;
    let (second, total) = apply(&mut tx).await;
    assert!(first.id < second.id, "within a millisecond, too");
    assert_eq!(total, 3);
    saw(&mut tx, "u00000", 2, ready(1)).await;
    saw(&mut tx, "u00001", 3, ready(1)).await;
    let done = |count: operation::Count| (count.progress.total, count.progress.done);
    let count = operation::count(&mut tx, &first).await.unwrap();
    assert_eq!(done(count), (3, 2), "who is further has passed it");
    let count = operation::count(&mut tx, &second).await.unwrap();
    assert_eq!(done(count), (3, 1));
}

async fn statements_and_rows_tell_the_same_of_a_target(yard: Yard) {
    populate(&yard, "u", 30).await;
    let mut tx = yard.db.begin().await.unwrap();
    let (operation, _) = apply(&mut tx).await;
    let conditions = [
        ready(1),
        refused(),
        Condition::not_ready(Reason::Retrying, ""),
        Condition::unknown(Reason::EngineUnavailable, ""),
        Condition::new(
            schema::condition::ConditionType::Paused,
            schema::condition::ConditionStatus::True,
            Reason::PausedByOperator,
            "",
        ),
    ];
    for n in 0..25_usize {
        let generation = if n < 15 { 2 } else { 1 };
        saw(
            &mut tx,
            &format!("u{n:05}"),
            generation,
            conditions[n % 5].clone(),
        )
        .await;
    }
    let agree = async |tx: &mut Tx, operation: &Operation| {
        let targets = operation::targets(tx, operation, 99).await.unwrap();
        let progress = operation::count(tx, operation).await.unwrap().progress;
        let of = |state| {
            targets
                .iter()
                .filter(|target| target.state == state)
                .count()
        };
        assert_eq!(progress.total, targets.len());
        assert_eq!(progress.done, of(TargetState::Done));
        assert_eq!(progress.failed, of(TargetState::Failed));
        assert_eq!(progress.running, of(TargetState::Running));
        assert_eq!(progress.pending, of(TargetState::Pending));
        progress
    };
    let now = agree(&mut tx, &operation).await;
    assert_eq!(
        (now.done, now.failed, now.running, now.pending),
        (3, 3, 6, 18)
    );
    // As earlier releases have saved them.
    for earlier in [
        FORGET_ENDS,
        "UPDATE object_status SET needs_action = NULL, ready_since = NULL",
    ] {
        execute(&mut tx, earlier).await;
        assert_eq!(agree(&mut tx, &operation).await, now, "{earlier}");
    }
}

/// As it was before ends were kept.
const FORGET_ENDS: &str =
    "UPDATE operation_targets SET outcome = NULL, message = NULL, ended_at = NULL";

async fn execute(tx: &mut Tx, statement: &str) {
    let query = sqlx::query(AssertSqlSafe(statement.to_owned()));
    query.execute(tx.raw()).await.unwrap();
}

/// Runs the updates of a migration again. Returns how many they are.
async fn repeat_updates(tx: &mut Tx, migration: &str) -> usize {
    let statements = migration.split(";\n").map(|statement| {
        let lines = statement.lines().filter(|line| !line.starts_with("--"));
        lines.collect::<Vec<_>>().join("\n").trim().to_owned()
    });
    let mut run = 0;
    for statement in statements.filter(|statement| statement.starts_with("UPDATE")) {
        execute(tx, &statement).await;
        run += 1;
    }
    run
}

async fn reasons_of_earlier_statuses_are_found(yard: Yard) {
    let reasons = [
        Reason::Pending,
        Reason::StorageFull,
        Reason::NetworkInUse,
        Reason::PausedByOperator,
    ];
    populate(&yard, "u", reasons.len() + 1).await;
    let mut tx = yard.db.begin().await.unwrap();
    for (number, reason) in reasons.into_iter().enumerate() {
        let said = match number % 2 {
            0 => Condition::not_ready(reason, "\"reason\":\"Failed\","),
            _ => Condition::unknown(reason, ""),
        };
        saw(&mut tx, &format!("u{number:05}"), 1, said).await;
    }
    saw(&mut tx, "u00004", 1, ready(20)).await;
    let read = "SELECT reason FROM object_status ORDER BY uid";
    let saved: Vec<String> = sqlx::query_scalar(read).fetch_all(tx.raw()).await.unwrap();
    let expected = reasons.map(Reason::as_str).into_iter().chain([""]);
    assert_eq!(saved, expected.collect::<Vec<_>>());
    execute(&mut tx, "UPDATE object_status SET reason = ''").await;
    let run = repeat_updates(&mut tx, include_str!("../migrations/0023_summary.sql")).await;
    assert_eq!(run, 1);
    let found: Vec<String> = sqlx::query_scalar(read).fetch_all(tx.raw()).await.unwrap();
    assert_eq!(found, saved);
}

async fn skills_of_earlier_releases_are_counted(yard: Yard) {
    let mut tx = yard.db.begin().await.unwrap();
    let new = NewRepository {
        name: "tools".parse().unwrap(),
        url: "https://git.example.com/tools".parse().unwrap(),
        reference: "main".parse().unwrap(),
        ref_type: RefType::Branch,
        public: true,
    };
    let saved = skill_repository::save(&mut tx, &yard.key, &new, &[], "1", None, NOW).await;
    let uid = saved.unwrap().0;
    let skill = OfferedSkill {
        path: "a".to_owned(),
        name: None,
        description: "{\"path\":\"\"}".to_owned(),
        problem: None,
        digest: None,
        warnings: Vec::new(),
        absent: false,
    };
    let mut facts = RepositoryFacts::default();
    for count in [2, 0, 3] {
        facts.skills = Some(vec![skill.clone(); count]);
        let saved = skill_repository::save_facts(&mut tx, &uid, &facts).await;
        saved.unwrap();
        execute(&mut tx, "UPDATE skill_repository_facts SET skill_count = 9").await;
        let run = repeat_updates(&mut tx, include_str!("../migrations/0024_left_out.sql")).await;
        let row = skill_repository::get(&mut tx, &uid).await.unwrap().unwrap();
        let found = (row.facts.skill_count, row.facts.skills);
        assert_eq!((run, found), (1, (i64::try_from(count).unwrap(), None)));
    }
    // Skills that were not read stay as they are.
    let read = skill_repository::get(&mut tx, &uid).await.unwrap().unwrap();
    let saved = skill_repository::save_facts(&mut tx, &uid, &read.facts).await;
    saved.unwrap();
    let whole = skill_repository::get_whole(&mut tx, &uid).await;
    let whole = whole.unwrap().unwrap().facts;
    assert_eq!((whole.skill_count, whole.skills), (3, facts.skills));
}

async fn problems_are_grouped_by_kind_and_reason(yard: Yard) {
    populate(&yard, "u", 8).await;
    let mut tx = yard.db.begin().await.unwrap();
    for number in 0..7 {
        let said = Condition {
            last_transition_at: Timestamp::from_secs(100 - number),
            ..Condition::not_ready(Reason::InvalidUserConfig, format!("file {number}"))
        };
        saw(&mut tx, &format!("u{number:05}"), 1, said).await;
    }
    saw(&mut tx, "u00007", 1, ready(20)).await;
    tx.commit().await.unwrap();
    let mut connection = yard.db.read().await.unwrap();
    let problems = object::problems(&mut connection, NOW).await.unwrap();
    let names = (0..5).map(|number| format!("u{number:05}"));
    let expected = object::Problem {
        kind: Kind::AgentConfig,
        reason: Reason::InvalidUserConfig,
        count: 7,
        names: names.collect(),
        since: Timestamp::from_secs(94),
        message: "file 0".to_owned(),
    };
    assert_eq!(problems, [expected]);
    let counts = schema::user::count_by_status(&mut connection).await;
    assert_eq!(counts.unwrap(), []);
}

async fn what_had_ended_before_ends_were_kept_stays_ended(yard: Yard) {
    populate(&yard, "u", 3).await;
    let mut tx = yard.db.begin().await.unwrap();
    let (operation, _) = apply(&mut tx).await;
    saw(&mut tx, "u00000", 2, ready(20)).await;
    saw(&mut tx, "u00001", 2, refused()).await;
    saw(&mut tx, "u00002", 1, ready(30)).await;
    execute(&mut tx, FORGET_ENDS).await;
    let before = operation::targets(&mut tx, &operation, 9).await.unwrap();
    let run = repeat_updates(&mut tx, include_str!("../migrations/0011_ends.sql")).await;
    assert_eq!(run, 2);
    let after = operation::targets(&mut tx, &operation, 9).await.unwrap();
    assert_eq!(after, before);
    // An outage and a recovery later.
    let away = Condition::unknown(Reason::EngineUnavailable, "no engine");
    saw(&mut tx, "u00000", 2, away).await;
    saw(&mut tx, "u00001", 2, ready(99)).await;
    let states = |targets: &[operation::Target]| -> Vec<(TargetState, Option<Timestamp>)> {
        targets
            .iter()
            .map(|target| (target.state, target.since))
            .collect()
    };
    let later = operation::targets(&mut tx, &operation, 9).await.unwrap();
    assert_eq!(states(&later), states(&before));
}

async fn a_cancelled_operation_keeps_what_became_of_its_objects(yard: Yard) {
    populate(&yard, "u", 4).await;
    let mut tx = yard.db.begin().await.unwrap();
    let (operation, _) = apply(&mut tx).await;
    saw(&mut tx, "u00000", 2, ready(1)).await;
    saw(&mut tx, "u00001", 2, refused()).await;
    saw(&mut tx, "u00002", 1, ready(1)).await;
    let count = operation::cancel(&mut tx, &operation, NOW).await.unwrap();
    let counted = count.progress;
    assert_eq!((counted.done, counted.failed, counted.cancelled), (1, 1, 2));
    assert!(!count.progress.is_under_way());
    let operation = operation::get(&mut tx, &operation.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(operation.cancelled_at, Some(NOW));
    // Ordinary passes go on: the operation's end stays its end.
    saw(&mut tx, "u00002", 2, ready(99)).await;
    saw(&mut tx, "u00000", 3, refused()).await;
    let later = operation::count(&mut tx, &operation).await.unwrap();
    assert_eq!(later.progress, count.progress);
    let targets = operation::targets(&mut tx, &operation, 9).await.unwrap();
    let of = |name: &str| {
        let target = targets.iter().find(|target| target.object == name);
        target
            .map(|target| (target.state, target.message.clone()))
            .unwrap()
    };
    let cancelled = (TargetState::Cancelled, CANCELLED.to_owned());
    assert_eq!(of("agent-config/u00002"), cancelled);
    assert_eq!(of("agent-config/u00003"), cancelled);
    assert_eq!(of("agent-config/u00000").0, TargetState::Done);
    assert_eq!(of("agent-config/u00001").1, "config.json is no JSON");
    let again = operation::cancel(&mut tx, &operation, NOW).await;
    assert!(matches!(again, Err(schema::error::DbError::WrongState(_))));
    let dirty = object::dirty(&mut tx, Kind::AgentConfig).await.unwrap();
    assert_eq!(dirty.len(), 1, "what is not seen yet is still wanted");
}

async fn l75_what_has_ended_stays_ended(yard: Yard) {
    populate(&yard, "u", 3).await;
    let mut tx = yard.db.begin().await.unwrap();
    let (operation, _) = apply(&mut tx).await;
    saw(&mut tx, "u00000", 2, ready(20)).await;
    saw(&mut tx, "u00001", 2, refused()).await;
    let away = Condition::unknown(Reason::EngineUnavailable, "no engine");
    saw(&mut tx, "u00002", 2, away.clone()).await;
    let before = operation::targets(&mut tx, &operation, 9).await.unwrap();
    let progress = |count: operation::Count| count.progress;
    let count = progress(operation::count(&mut tx, &operation).await.unwrap());
    assert_eq!((count.done, count.failed, count.running), (1, 1, 1));
    // An outage, a recovery and a later change of the same objects.
    saw(&mut tx, "u00000", 2, away).await;
    saw(&mut tx, "u00001", 2, ready(99)).await;
    object::bump_all(&mut tx, Kind::AgentConfig).await.unwrap();
    saw(&mut tx, "u00000", 3, refused()).await;
    let after = operation::targets(&mut tx, &operation, 9).await.unwrap();
    assert_eq!(after, before, "states, messages and times");
    let later = operation::count(&mut tx, &operation).await.unwrap();
    assert_eq!(progress(later), count);
    // The last one ends it; cancelling comes too late then.
    saw(&mut tx, "u00002", 3, ready(120)).await;
    let end = operation::count(&mut tx, &operation).await.unwrap();
    assert_eq!((end.progress.done, end.progress.failed), (2, 1));
    assert_eq!(end.since, Some(Timestamp::from_secs(120)));
    let late = operation::cancel(&mut tx, &operation, NOW).await;
    assert!(matches!(late, Err(schema::error::DbError::WrongState(_))));
}

async fn a_bulk_change_waits_behind_one_of_a_single_object(yard: Yard) {
    populate(&yard, "u", 2).await;
    let mut tx = yard.db.begin().await.unwrap();
    for uid in ["u00000", "u00001"] {
        saw(&mut tx, uid, 1, ready(1)).await;
    }
    let one = Uid::from("u00000".to_owned());
    object::bump(&mut tx, Kind::AgentConfig, &one, None)
        .await
        .unwrap();
    apply(&mut tx).await;
    let mut dirty = object::dirty(&mut tx, Kind::AgentConfig).await.unwrap();
    dirty.sort_by(|a, b| a.uid.cmp(&b.uid));
    let lanes: Vec<_> = dirty.iter().map(|object| object.bulk).collect();
    assert_eq!(lanes, [false, true], "whoever waits comes first");
}

async fn only_old_operations_that_have_ended_are_forgotten(yard: Yard) {
    const DAY: std::time::Duration = std::time::Duration::from_secs(24 * 3600);
    populate(&yard, "u", 2).await;
    let mut tx = yard.db.begin().await.unwrap();
    let target = |name: &str, generation| {
        let uid = Uid::from(name.to_owned());
        vec![(
            Kind::AgentConfig,
            uid,
            name.to_owned(),
            Generation(generation),
        )]
    };
    saw(&mut tx, "u00000", 1, refused()).await;
    let under_way = target("u00001", 1);
    let waits = operation::create(&mut tx, "x", "admin", &under_way, NOW);
    let waits = waits.await.unwrap();
    let seen = target("u00000", 1);
    let ended = operation::create(&mut tx, "x", "admin", &seen, NOW);
    let ended = ended.await.unwrap();
    let rollout = operation::create(&mut tx, "upgrade", "admin", &[], NOW);
    let rollout = rollout.await.unwrap();
    sqlx::query(AssertSqlSafe(format!(
        "INSERT INTO rollouts (uid, type, reference, source, max_unavailable, pause_on_failure, health_timeout_ms, desired) \
         VALUES ('{rollout}', 'upgrade', 'r', 'registry', 1, 1, 1, 'run')"
    )))
    .execute(tx.raw())
    .await
    .unwrap();
    let mut newer = async |many: i64| {
        for _ in 0..many {
            operation::create(&mut tx, "x", "admin", &[], NOW.plus(DAY))
                .await
                .unwrap();
        }
        let young = operation::prune(&mut tx, NOW).await.unwrap();
        let old = operation::prune(&mut tx, NOW.plus(2 * DAY)).await.unwrap();
        (young, old)
    };
    assert_eq!(newer(operation::KEPT - 3).await, (0, 0), "among the newest");
    assert_eq!(newer(3).await, (0, 1));
    assert_eq!(newer(12).await, (0, operation::BATCH));
    assert_eq!(newer(0).await, (0, 2));
    for (id, stays) in [(waits, true), (ended.clone(), false), (rollout, true)] {
        let found = operation::get(&mut tx, &id).await.unwrap();
        assert_eq!(found.is_some(), stays);
    }
    let (targets,): (i64,) = sqlx::query_as(AssertSqlSafe(format!(
        "SELECT count(*) FROM operation_targets WHERE operation_id = '{ended}'"
    )))
    .fetch_one(tx.raw())
    .await
    .unwrap();
    assert_eq!(targets, 0);
}
