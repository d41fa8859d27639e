//! The audit trail, on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use schema::audit::{
    self, About, Author, CALL, Calls, ChainKey, Filter, LISTED_A_DAY, Problem, Verdict, Writer,
};
use schema::clock::ManualClock;
use schema::error::DbError;
use schema::ids::Timestamp;
use schema::{meta, user};
use secrecy::SecretString;
use sqlx::AssertSqlSafe;

use crate::support::{Yard, on_both_databases};

on_both_databases!(
    a_change_and_its_entry_are_there_together_or_not_at_all,
    what_was_refused_is_an_entry_without_a_change,
    writers_at_the_same_time_leave_no_gap_and_no_fork,
    a_changed_entry_is_found,
    a_removed_entry_is_found,
    an_entry_put_in_is_found,
    swapped_entries_are_found,
    an_end_that_was_cut_off_is_found,
    a_changed_head_is_found_even_after_more_entries,
    a_head_that_was_set_back_is_found_and_stops_no_change,
    an_anchor_that_was_changed_is_found,
    a_trail_that_was_wiped_is_found_and_not_begun_anew,
    the_oldest_entries_are_forgotten_and_the_rest_still_verifies,
    what_was_tampered_with_is_not_forgotten,
    two_that_forget_at_the_same_time_do_it_once,
    entries_are_found_by_what_they_tell,
    several_entries_are_one_link_after_another,
    calls_beyond_a_number_a_day_are_counted_on_one_entry,
    changed_count_of_calls_is_found,
);

const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);
const HOUR: Duration = Duration::from_secs(3600);

/// A trail, with somebody who has the database but not the key.
struct Trail {
    yard: Yard,
    writer: Writer,
    clock: Arc<ManualClock>,
}

impl Trail {
    async fn begun(yard: Yard) -> Self {
        let clock = Arc::new(ManualClock::new(NOW));
        let mut tx = yard.db.begin().await.unwrap();
        let key = ChainKey::of(&yard.key);
        audit::install(&mut tx, &key).await.unwrap();
        tx.commit().await.unwrap();
        let writer = Writer::new(yard.db.clone(), &yard.key, clock.clone());
        Self {
            yard,
            writer,
            clock,
        }
    }

    /// With entries 1 to `count`, an hour apart.
    async fn with(yard: Yard, count: usize) -> Self {
        let trail = Self::begun(yard).await;
        for n in 1..=count {
            trail.write(&format!("user{n}")).await;
            trail.clock.advance(HOUR);
        }
        trail
    }

    async fn write(&self, name: &str) {
        let tx = self.writer.begin(author("root")).await.unwrap();
        tx.commit(About::object("user", name)).await.unwrap();
    }

    /// Runs a statement behind the service's back.
    async fn tamper(&self, sql: &str) {
        let mut tx = self.yard.db.begin().await.unwrap();
        sqlx::query(AssertSqlSafe(sql.to_owned()))
            .execute(tx.raw())
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    async fn verify(&self) -> Verdict {
        let mut snapshot = self.yard.db.snapshot().await.unwrap();
        audit::verify(&mut snapshot, self.writer.key())
            .await
            .unwrap()
    }

    /// The problem there must be.
    async fn problem(&self) -> Problem {
        let verdict = self.verify().await;
        verdict.problem.expect("tampering is found")
    }

    #[track_caller]
    fn is_whole(verdict: &Verdict, entries: u64, first: i64, last: i64) {
        let expected = Verdict {
            entries,
            first_seq: Some(first),
            last_seq: Some(last),
            problem: None,
        };
        assert_eq!(verdict, &expected);
    }
}

fn author(actor: &str) -> Author {
    Author {
        actor: actor.to_owned(),
        address: "192.0.2.7".to_owned(),
        action: "users_create".to_owned(),
        request_id: "r1".to_owned(),
    }
}

async fn a_change_and_its_entry_are_there_together_or_not_at_all(yard: Yard) {
    let trail = Trail::begun(yard).await;
    let name = "root".parse().unwrap();
    let create = async |commit: bool| {
        let mut tx = trail.writer.begin(author("init")).await.unwrap();
        user::create_superadmin(&mut tx, &name, &SecretString::from("h"), NOW)
            .await
            .unwrap();
        if commit {
            let about = About::object("superadmin", &name).and("user", "x");
            tx.commit(about.detail("first")).await.unwrap();
        }
    };
    let there = async || {
        let mut connection = trail.yard.db.read().await.unwrap();
        let account = user::find(&mut connection, &name).await.unwrap();
        let entries = audit::following(&mut connection, 0, 10).await.unwrap();
        (account.is_some(), entries)
    };
    create(false).await;
    let (account, entries) = there().await;
    assert!(!account && entries.is_empty());
    create(true).await;
    let (account, entries) = there().await;
    assert!(account);
    let [record] = &*entries else {
        panic!("{entries:?}")
    };
    assert_eq!(record.seq, 1);
    let shown = serde_json::to_value(record).unwrap();
    for (column, value) in [
        ("at", "2026-05-11T11:46:40Z"),
        ("actor", "init"),
        ("address", "192.0.2.7"),
        ("action", "users_create"),
        ("object", "superadmin/root,user/x"),
        ("outcome", "ok"),
        ("detail", "first"),
        ("request_id", "r1"),
    ] {
        assert_eq!(shown[column], value, "{column}");
    }
    assert_eq!(record.hash.len(), 64);
    Trail::is_whole(&trail.verify().await, 1, 1, 1);

    // The entry cannot be written: the change is not, either.
    trail
        .tamper("DELETE FROM audit_ends WHERE name = 'head'")
        .await;
    let mut tx = trail.writer.begin(author("init")).await.unwrap();
    let other = "other".parse().unwrap();
    user::create_superadmin(&mut tx, &other, &SecretString::from("h"), NOW)
        .await
        .unwrap();
    let refused = tx.commit(About::object("superadmin", "other")).await;
    assert!(matches!(refused, Err(DbError::Corrupt(_))), "{refused:?}");
    let mut connection = trail.yard.db.read().await.unwrap();
    assert!(user::find(&mut connection, &other).await.unwrap().is_none());
}

async fn what_was_refused_is_an_entry_without_a_change(yard: Yard) {
    let trail = Trail::begun(yard).await;
    let about = About::object("user", "alice").detail("bad_credentials");
    trail.writer.refused(author("-"), about).await.unwrap();
    let mut connection = trail.yard.db.read().await.unwrap();
    let entries = audit::following(&mut connection, 0, 10).await.unwrap();
    assert_eq!(entries[0].entry.outcome, "refused");
    drop(connection);
    Trail::is_whole(&trail.verify().await, 1, 1, 1);
}

async fn writers_at_the_same_time_leave_no_gap_and_no_fork(yard: Yard) {
    let trail = Arc::new(Trail::begun(yard).await);
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let trail = Arc::clone(&trail);
        tasks.spawn(async move {
            for n in 0..15 {
                if n % 5 == 4 {
                    // Some give up in the middle; others take another guard first.
                    let mut tx = trail.writer.begin(author("root")).await.unwrap();
                    meta::take_guard(&mut tx, "names").await.unwrap();
                } else {
                    trail.write(&format!("user{writer}-{n}")).await;
                }
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    Trail::is_whole(&trail.verify().await, 96, 1, 96);
}

async fn a_changed_entry_is_found(yard: Yard) {
    let sqlite = matches!(yard.backend, schema::db::Backend::Sqlite(_));
    let trail = Trail::with(yard, 5).await;
    for column in [
        "actor",
        "address",
        "action",
        "object",
        "outcome",
        "detail",
        "request_id",
        "hash",
    ] {
        for change in [format!("{column} || 'x'"), "''".to_owned()] {
            trail
                .tamper("CREATE TABLE kept AS SELECT * FROM audit WHERE seq = 3")
                .await;
            let sql = format!("UPDATE audit SET {column} = {change} WHERE seq = 3");
            trail.tamper(&sql).await;
            if column != "detail" || change != "''" {
                let problem = trail.problem().await;
                assert_eq!(problem.seq, 3, "{column}: {problem:?}");
            }
            trail.tamper("DELETE FROM audit WHERE seq = 3").await;
            trail.tamper("INSERT INTO audit SELECT * FROM kept").await;
            trail.tamper("DROP TABLE kept").await;
            Trail::is_whole(&trail.verify().await, 5, 1, 5);
        }
    }
    trail
        .tamper("UPDATE audit SET at = at + 1 WHERE seq = 4")
        .await;
    assert_eq!(trail.problem().await.seq, 4);
    trail
        .tamper("UPDATE audit SET at = at - 1 WHERE seq = 4")
        .await;
    if sqlite {
        // Values of a type that nobody wrote.
        for change in ["at = 'noon'", "actor = x'ff'", "detail = 7"] {
            let keep = "CREATE TABLE kept AS SELECT * FROM audit WHERE seq = 4";
            trail.tamper(keep).await;
            let sql = format!("UPDATE audit SET {change} WHERE seq = 4");
            trail.tamper(&sql).await;
            assert_eq!(trail.problem().await.seq, 4, "{change}");
            trail.tamper("DELETE FROM audit WHERE seq = 4").await;
            trail.tamper("INSERT INTO audit SELECT * FROM kept").await;
            trail.tamper("DROP TABLE kept").await;
        }
    }
    Trail::is_whole(&trail.verify().await, 5, 1, 5);
}

async fn a_removed_entry_is_found(yard: Yard) {
    let trail = Trail::with(yard, 6).await;
    trail.tamper("DELETE FROM audit WHERE seq IN (3, 4)").await;
    let problem = trail.problem().await;
    assert_eq!(problem.seq, 3);
    assert!(problem.message.contains("3 to 4"), "{problem:?}");
    // Closing the gap does not help.
    trail
        .tamper("UPDATE audit SET seq = seq - 2 WHERE seq > 4")
        .await;
    assert_eq!(trail.problem().await.seq, 3);

    trail.tamper("DELETE FROM audit WHERE seq = 1").await;
    assert_eq!(trail.problem().await.seq, 1);
}

async fn an_entry_put_in_is_found(yard: Yard) {
    let copy =
        "address, action, object, outcome, detail, request_id, hash FROM audit WHERE seq = 2";
    let trail = Trail::with(yard, 3).await;
    for (seq, found) in [(4, 4), (9, 4), (0, 0), (-5, -5)] {
        let sql = format!("INSERT INTO audit SELECT {seq}, at, 'mallory', {copy}");
        trail.tamper(&sql).await;
        assert_eq!(trail.problem().await.seq, found);
        let sql = format!("DELETE FROM audit WHERE seq = {seq}");
        trail.tamper(&sql).await;
    }
    Trail::is_whole(&trail.verify().await, 3, 1, 3);
    // In the middle, with the others moved on.
    for sql in [
        "UPDATE audit SET seq = seq + 100 WHERE seq > 2".to_owned(),
        "UPDATE audit SET seq = seq - 99 WHERE seq > 100".to_owned(),
        format!("INSERT INTO audit SELECT 3, at, 'mallory', {copy}"),
    ] {
        trail.tamper(&sql).await;
    }
    assert_eq!(trail.problem().await.seq, 3);
}

async fn swapped_entries_are_found(yard: Yard) {
    let trail = Trail::with(yard, 5).await;
    for (from, to) in [(2, 99), (4, 2), (99, 4)] {
        let sql = format!("UPDATE audit SET seq = {to} WHERE seq = {from}");
        trail.tamper(&sql).await;
    }
    assert_eq!(trail.problem().await.seq, 2);
}

async fn an_end_that_was_cut_off_is_found(yard: Yard) {
    let trail = Trail::with(yard, 5).await;
    trail.tamper("DELETE FROM audit WHERE seq > 3").await;
    let problem = trail.problem().await;
    assert_eq!(problem.seq, 4);
    assert!(problem.message.contains("4 to 5"), "{problem:?}");
    // Also after more was written.
    trail.write("later").await;
    assert_eq!(trail.problem().await.seq, 4);
}

async fn a_changed_head_is_found_even_after_more_entries(yard: Yard) {
    let trail = Trail::with(yard, 5).await;
    trail.tamper("DELETE FROM audit WHERE seq > 3").await;
    trail
        .tamper(
            "UPDATE audit_ends SET seq = 3, hash = (SELECT hash FROM audit WHERE seq = 3) \
             WHERE name = 'head'",
        )
        .await;
    let problem = trail.problem().await;
    assert_eq!(problem.seq, 3);
    assert!(problem.message.contains("ends"), "{problem:?}");
    // What comes later does not cover the traces, and is recorded all the same.
    trail.write("later").await;
    trail.write("still later").await;
    assert_eq!(trail.problem().await.seq, 4);
}

async fn a_head_that_was_set_back_is_found_and_stops_no_change(yard: Yard) {
    let trail = Trail::with(yard, 3).await;
    let old = "CREATE TABLE old AS SELECT * FROM audit_ends WHERE name = 'head'";
    trail.tamper(old).await;
    trail.write("then").await;
    trail.write("now").await;
    for sql in [
        "DELETE FROM audit_ends WHERE name = 'head'",
        "INSERT INTO audit_ends SELECT * FROM old",
    ] {
        trail.tamper(sql).await;
    }
    assert_eq!(trail.problem().await.seq, 3);
    trail.write("later").await;
    trail.write("still later").await;
    assert_eq!(trail.problem().await.seq, 6);
}

async fn an_anchor_that_was_changed_is_found(yard: Yard) {
    let trail = Trail::with(yard, 3).await;
    trail.tamper("DELETE FROM audit WHERE seq = 1").await;
    trail
        .tamper("UPDATE audit_ends SET seq = 1 WHERE name = 'anchor'")
        .await;
    let problem = trail.problem().await;
    assert_eq!(problem.seq, 2);
    assert!(problem.message.contains("begins"), "{problem:?}");
    trail
        .tamper("DELETE FROM audit_ends WHERE name = 'anchor'")
        .await;
    assert!(trail.problem().await.message.contains("begins"));
}

async fn a_trail_that_was_wiped_is_found_and_not_begun_anew(yard: Yard) {
    let trail = Trail::with(yard, 3).await;
    trail.tamper("DELETE FROM audit").await;
    assert_eq!(trail.problem().await.seq, 1);
    trail.tamper("DELETE FROM audit_ends").await;
    assert!(trail.verify().await.problem.is_some());
    let tx = trail.writer.begin(author("root")).await.unwrap();
    assert!(tx.commit(About::whole("x")).await.is_err());
}

async fn the_oldest_entries_are_forgotten_and_the_rest_still_verifies(yard: Yard) {
    let trail = Trail::with(yard, 6).await;
    assert_eq!(trail.writer.prune(NOW).await.unwrap(), 0, "not older");
    Trail::is_whole(&trail.verify().await, 6, 1, 6);

    let pruned = trail.writer.prune(NOW.plus(2 * HOUR)).await.unwrap();
    assert_eq!(pruned, 2);
    // Entry 7 tells of it.
    Trail::is_whole(&trail.verify().await, 5, 3, 7);
    let mut connection = trail.yard.db.read().await.unwrap();
    let last = audit::following(&mut connection, 6, 1).await.unwrap();
    drop(connection);
    let entry = &last[0].entry;
    assert_eq!(
        (&*entry.actor, &*entry.action),
        ("system:housekeeping", "audit_prune")
    );
    assert_eq!(entry.detail, "entries 1 to 2");

    // What was forgotten cannot be put back, and more cannot be removed unseen.
    trail.tamper("DELETE FROM audit WHERE seq = 3").await;
    assert_eq!(trail.problem().await.seq, 3);
}

async fn what_was_tampered_with_is_not_forgotten(yard: Yard) {
    let trail = Trail::with(yard, 6).await;
    trail
        .tamper("UPDATE audit SET actor = 'nobody' WHERE seq = 2")
        .await;
    let all = NOW.plus(100 * HOUR);
    let refused = trail.writer.prune(all).await;
    assert!(matches!(refused, Err(DbError::Corrupt(_))), "{refused:?}");
    assert_eq!(trail.problem().await.seq, 2);

    trail
        .tamper("UPDATE audit SET actor = 'root' WHERE seq = 2")
        .await;
    trail.tamper("DELETE FROM audit WHERE seq = 6").await;
    assert!(trail.writer.prune(all).await.is_err(), "the end is missing");
}

async fn two_that_forget_at_the_same_time_do_it_once(yard: Yard) {
    let trail = Trail::with(yard, 6).await;
    let oldest = NOW.plus(3 * HOUR);
    let (one, other) = tokio::join!(trail.writer.prune(oldest), trail.writer.prune(oldest));
    assert_eq!(one.unwrap() + other.unwrap(), 3);
    Trail::is_whole(&trail.verify().await, 4, 4, 7);
    // Everything but the entry that tells of it.
    let pruned = trail.writer.prune(NOW.plus(5 * HOUR + HOUR / 2)).await;
    assert_eq!(pruned.unwrap(), 3);
    Trail::is_whole(&trail.verify().await, 2, 7, 8);
}

async fn entries_are_found_by_what_they_tell(yard: Yard) {
    let trail = Trail::begun(yard).await;
    let write = async |actor: &str, about: About| {
        let tx = trail.writer.begin(author(actor)).await.unwrap();
        tx.commit(about).await.unwrap();
        trail.clock.advance(HOUR);
    };
    write("root", About::object("user", "Alice")).await;
    write("Alice", About::object("container", "alice")).await;
    let several = About::object("user", "bob")
        .and("user", "alice")
        .and("user", "al");
    write("root", several.detail("50%_done")).await;
    let seqs = async |filter: Filter| {
        let mut connection = trail.yard.db.read().await.unwrap();
        let found = audit::found(&mut connection, &filter).await.unwrap();
        let records = audit::list(&mut connection, &filter, 10, 0).await.unwrap();
        assert_eq!(found, i64::try_from(records.len()).unwrap());
        records.iter().map(|record| record.seq).collect::<Vec<_>>()
    };
    let filter = Filter::default;
    let text = |text: &str| text.to_owned();
    assert_eq!(seqs(filter()).await, [3, 2, 1]);
    for (wanted, expected) in [
        (
            Filter {
                actor: text("ALICE"),
                ..filter()
            },
            &[2][..],
        ),
        (
            Filter {
                actor: text("ali"),
                ..filter()
            },
            &[],
        ),
        (
            Filter {
                user: text("ALICE"),
                ..filter()
            },
            &[3, 2, 1],
        ),
        (
            Filter {
                user: text("al_ce"),
                ..filter()
            },
            &[],
        ),
        (
            Filter {
                user: text("bob"),
                ..filter()
            },
            &[3],
        ),
        (
            Filter {
                object: text("user/alice"),
                ..filter()
            },
            &[3, 1],
        ),
        (
            Filter {
                object: text("user/al"),
                ..filter()
            },
            &[3],
        ),
        (
            Filter {
                object: text("user/%"),
                ..filter()
            },
            &[],
        ),
        (
            Filter {
                action: text("users_create"),
                ..filter()
            },
            &[3, 2, 1],
        ),
        (
            Filter {
                action: text("login"),
                ..filter()
            },
            &[],
        ),
        (
            Filter {
                since: NOW.plus(HOUR),
                ..filter()
            },
            &[3, 2],
        ),
        (
            Filter {
                search: text("0%_D"),
                ..filter()
            },
            &[3],
        ),
        (
            Filter {
                search: text("192.0.2"),
                ..filter()
            },
            &[3, 2, 1],
        ),
        (
            Filter {
                search: text("container"),
                actor: text("alice"),
                ..filter()
            },
            &[2],
        ),
    ] {
        assert_eq!(seqs(wanted.clone()).await, expected, "{wanted:?}");
    }
    let mut connection = trail.yard.db.read().await.unwrap();
    let second = audit::list(&mut connection, &filter(), 1, 1).await.unwrap();
    assert_eq!(second[0].seq, 2);
    let first = async |connection: &mut schema::reader::Connection, since| {
        audit::first_since(connection, since).await.unwrap()
    };
    assert_eq!(first(&mut connection, NOW.plus(HOUR)).await, Some(2));
    assert_eq!(first(&mut connection, NOW.plus(9 * HOUR)).await, None);
}

async fn several_entries_are_one_link_after_another(yard: Yard) {
    let trail = Trail::with(yard, 2).await;
    let entry = |n: i32| {
        let about = About::object("browser", format!("tool{n}"));
        audit::Entry::new(author("alice"), about, audit::Outcome::Ok, NOW)
    };
    let mut calls = Calls::new(LISTED_A_DAY);
    trail.writer.record_calls(&mut calls, &[]).await.unwrap();
    // More than one statement writes, and some that are left.
    let entries: Vec<_> = (1..=120).map(entry).collect();
    let recorded = trail.writer.record_calls(&mut calls, &entries).await;
    recorded.unwrap();
    trail.write("carol").await;
    Trail::is_whole(&trail.verify().await, 123, 1, 123);
}

/// A call of a tool by alice, so many seconds after the beginning.
fn call(tool: &str, outcome: &str, seconds: u64) -> audit::Entry {
    let author = Author {
        action: CALL.to_owned(),
        ..author("alice")
    };
    let about = About::object("browser", tool).detail(format!("outcome={outcome} ms=7"));
    let at = NOW.plus(Duration::from_secs(seconds));
    audit::Entry::new(author, about, audit::Outcome::Ok, at)
}

impl Trail {
    /// Records calls, at most three of each kind with an entry of their own; `calls` is what is remembered.
    async fn call(&self, calls: &mut Calls, entries: &[audit::Entry]) {
        self.writer.record_calls(calls, entries).await.unwrap();
    }

    /// Numbers and counts of all entries, and when the last of several was.
    async fn counts(&self) -> Vec<(i64, i64, Option<Timestamp>)> {
        let mut connection = self.yard.db.read().await.unwrap();
        let all = audit::following(&mut connection, 0, 100).await.unwrap();
        let counts = all.into_iter().map(|it| (it.seq, it.count, it.last_at));
        counts.collect()
    }
}

async fn calls_beyond_a_number_a_day_are_counted_on_one_entry(yard: Yard) {
    let trail = Trail::begun(yard).await;
    let mut calls = Calls::new(3);
    let click = |seconds| call("click", "ok", seconds);
    let later = |seconds| Some(NOW.plus(Duration::from_secs(seconds)));
    trail.call(&mut calls, &[click(0), click(1)]).await;
    // Another tool, and another outcome of the same.
    let others = [call("type", "ok", 2), call("click", "error", 2)];
    trail.call(&mut calls, &others).await;
    trail
        .call(&mut calls, &[click(3), click(4), click(5)])
        .await;
    let single = [1, 2, 3, 4, 5].map(|seq| (seq, 1, None));
    assert_eq!(
        trail.counts().await,
        [&single[..], &[(6, 2, later(5))]].concat()
    );
    trail.write("bob").await;
    trail.call(&mut calls, &[click(6)]).await;
    // A service that was started again reads what there is.
    let mut calls = Calls::new(3);
    trail
        .call(&mut calls, &[click(7), call("type", "ok", 7)])
        .await;
    let mut expected = [&single[..], &[(6, 4, later(7)), (7, 1, None), (8, 1, None)]].concat();
    assert_eq!(trail.counts().await, expected);
    Trail::is_whole(&trail.verify().await, 8, 1, 8);
    // The next day begins anew.
    let day = 24 * 3600;
    trail.call(&mut calls, &[click(day)]).await;
    expected.push((9, 1, None));
    assert_eq!(trail.counts().await, expected);
    let filter = Filter::default();
    let mut connection = trail.yard.db.read().await.unwrap();
    let listed = audit::list(&mut connection, &filter, 20, 0).await.unwrap();
    assert_eq!(listed.len(), 9);
    let folded = &listed[3];
    assert_eq!(
        (folded.seq, folded.count, &*folded.entry.actor),
        (6, 4, "alice")
    );
    assert!(folded.entry.detail.contains("outcome=ok"), "{folded:?}");
    drop(connection);
    // What is forgotten takes its number along.
    trail.clock.advance(HOUR * 48);
    assert_eq!(trail.writer.prune(NOW.plus(HOUR)).await.unwrap(), 8);
    Trail::is_whole(&trail.verify().await, 2, 9, 10);
    let left = "SELECT count(*) FROM audit_folds";
    let mut connection = trail.yard.db.read().await.unwrap();
    let left: i64 = sqlx::query_scalar(left)
        .fetch_one(connection.raw())
        .await
        .unwrap();
    assert_eq!(left, 0);
}

async fn changed_count_of_calls_is_found(yard: Yard) {
    let trail = Trail::begun(yard).await;
    let mut calls = Calls::new(3);
    let many: Vec<_> = (0..9).map(|seconds| call("click", "ok", seconds)).collect();
    trail.call(&mut calls, &many).await;
    Trail::is_whole(&trail.verify().await, 4, 1, 4);
    trail
        .tamper("CREATE TABLE kept AS SELECT * FROM audit_folds")
        .await;
    for tampering in [
        "UPDATE audit_folds SET calls = 1",
        "UPDATE audit_folds SET last_at = last_at + 1",
        "DELETE FROM audit_folds",
        "UPDATE audit_folds SET seq = 3",
    ] {
        trail.tamper(tampering).await;
        let problem = trail.problem().await;
        let seq = if tampering.contains("seq =") { 3 } else { 4 };
        assert_eq!(problem.seq, seq, "{tampering}");
        trail.tamper("DELETE FROM audit_folds").await;
        trail
            .tamper("INSERT INTO audit_folds SELECT * FROM kept")
            .await;
        Trail::is_whole(&trail.verify().await, 4, 1, 4);
    }
    // More calls neither fail nor make it good.
    trail.tamper("UPDATE audit_folds SET calls = 1").await;
    trail.call(&mut calls, &many).await;
    assert_eq!(trail.problem().await.seq, 4);
}
