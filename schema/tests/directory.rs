//! Sign-ins, synchronisations, requests for them and changes of the mode at the same moment, on SQLite and on
//! PostgreSQL.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::time::Duration;

use schema::config::history::SavedBy;
use schema::config::{AuthMode, Changes, query as config};
use schema::container::Desired;
use schema::db::Tx;
use schema::directory::{self, DirectoryFacts, KnownUser, Listed, Page, SyncScope, UserChange};
use schema::error::DbError;
use schema::event;
use schema::group;
use schema::ids::{Kind, Timestamp, Uid, UidPart, UserName};
use schema::secrets::MasterKey;
use schema::user::{self, NewUser, Source, Template};
use schema::{mcp_token, mode_switch, object, session, whitelist};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{Yard, on_both_databases, user};

on_both_databases!(
    l10_a_new_person_who_signs_in_twice_at_once_gets_one_account,
    who_signs_in_while_a_list_brings_the_account_has_one_and_the_newer_groups,
    who_signs_in_while_a_list_disables_the_account_is_either_in_or_out,
    who_signs_in_while_a_list_removes_the_account_is_either_in_or_out,
    nobody_of_the_old_mode_is_left_by_a_sign_in_during_the_switch,
    nobody_of_the_old_mode_is_left_by_a_synchronisation_during_the_switch,
    nobody_of_the_old_mode_is_left_by_a_creation_during_the_switch,
    who_signs_in_while_a_list_changes_the_account_keeps_the_newer_groups,
    who_proves_to_be_somebody_whose_account_a_list_removes_just_then_is_told_that_it_is_leaving,
    requests_at_once_are_one_that_asks_for_all_of_it,
    new_users_of_a_page_have_uids_of_its_part,
    renamed_user_keeps_what_belongs_to_the_account,
    name_of_before_is_free_once_the_directory_is_renamed,
    person_with_the_name_of_another_gets_no_account,
    rename_by_a_list_and_a_sign_in_at_once_is_one,
    entry_with_an_account_gets_no_other_one,
    identity_is_recorded_and_forgotten_alone,
);

const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);
/// How long a change is held open, so that another meets it.
const PAUSE: Duration = Duration::from_millis(60);

/// How two changes overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// As it happens.
    AtOnce,
    /// The other begins when the one has done everything but its commit.
    OneFirst,
    /// The reverse.
    OtherFirst,
}

/// Each order, and more often that which is left to chance.
fn orders() -> impl Iterator<Item = (usize, Order)> {
    let by_chance = std::iter::repeat_n(Order::AtOnce, 6);
    [Order::OneFirst, Order::OtherFirst]
        .into_iter()
        .chain(by_chance)
        .enumerate()
}

/// Runs one change in a transaction.
async fn change<T>(
    yard: &Yard,
    work: impl AsyncFnOnce(&mut Tx) -> Result<T, DbError>,
) -> Result<T, DbError> {
    let mut tx = yard.db.begin().await?;
    let outcome = work(&mut tx).await?;
    tx.commit().await?;
    Ok(outcome)
}

/// Runs two changes of which the later begins while the earlier one waits for its commit.
async fn one_after_the_other<A, B>(
    yard: &Yard,
    earlier: impl AsyncFnOnce(&mut Tx) -> Result<A, DbError>,
    later: impl AsyncFnOnce(&mut Tx) -> Result<B, DbError>,
) -> (Result<A, DbError>, Result<B, DbError>) {
    let done = Notify::new();
    let earlier = async {
        let mut tx = yard.db.begin().await?;
        let outcome = earlier(&mut tx).await;
        done.notify_one();
        let outcome = outcome?;
        tokio::time::sleep(PAUSE).await;
        tx.commit().await?;
        Ok(outcome)
    };
    let later = async {
        done.notified().await;
        change(yard, later).await
    };
    tokio::join!(earlier, later)
}

/// Runs two changes that overlap.
async fn overlap<A, B>(
    yard: &Yard,
    order: Order,
    one: impl AsyncFnOnce(&mut Tx) -> Result<A, DbError>,
    other: impl AsyncFnOnce(&mut Tx) -> Result<B, DbError>,
) -> (Result<A, DbError>, Result<B, DbError>) {
    match order {
        Order::AtOnce => tokio::join!(change(yard, one), change(yard, other)),
        Order::OneFirst => one_after_the_other(yard, one, other).await,
        Order::OtherFirst => {
            let (other, one) = one_after_the_other(yard, other, one).await;
            (one, other)
        }
    }
}

fn template() -> Template {
    Template {
        image_ref: "docker.io/library/agent:1".to_owned(),
        desired: Desired::Running,
    }
}

fn listed(name: &str, groups: &[&str]) -> Listed {
    Listed {
        name: name.parse().unwrap(),
        subject: format!("uid={name},dc=x"),
        identity: None,
        groups: Some(groups.iter().map(|group| group.parse().unwrap()).collect()),
    }
}

fn after(seconds: u64) -> Timestamp {
    NOW.plus(Duration::from_secs(seconds))
}

/// What the API does in one transaction for somebody whom the directory has let in.
async fn sign_in(tx: &mut Tx, listed: &Listed, now: Timestamp) -> Result<Uid, DbError> {
    let account = directory::signed_in(tx, Source::Ldap, listed, &template(), now).await?;
    let issued_at = session::issue(tx, &account.uid, now, "", "web").await?;
    user::set_last_login(tx, &account.uid, now, None).await?;
    let live = session::find_live(tx, &account.name, issued_at).await?;
    Ok(live.ok_or(DbError::NotFound("session"))?.uid)
}

/// Whether a sign-in was refused for what it met, and nothing else has gone wrong.
fn is_refused(outcome: &Result<Uid, DbError>) -> bool {
    match outcome {
        Ok(_) => false,
        Err(DbError::WrongState(_) | DbError::NameBeingRemoved | DbError::NotFound("session")) => {
            true
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// What the reconciler does in one transaction.
async fn apply(tx: &mut Tx, changes: &[UserChange], asked_at: Timestamp) -> Result<(), DbError> {
    apply_in(tx, changes, asked_at, UidPart::WHOLE).await
}

/// The same of one page of several.
async fn apply_in(
    tx: &mut Tx,
    changes: &[UserChange],
    asked_at: Timestamp,
    uids: UidPart,
) -> Result<(), DbError> {
    let page = Page {
        changes,
        template: &template(),
        asked_at,
        uids,
    };
    let dir = tempfile::tempdir().unwrap();
    let key = MasterKey::load_or_create(dir.path()).unwrap();
    let applied = directory::apply(tx, Source::Ldap, page, &key, asked_at).await;
    applied.map(drop)
}

/// What the API does in one transaction when the mode is changed.
async fn switch(yard: &Yard, tx: &mut Tx, from: AuthMode, to: AuthMode) -> Result<(), DbError> {
    config::lock(tx).await?;
    let mode = json!(to.to_string());
    let changes = Changes([("web.auth_mode", Some(mode))].into());
    let by = SavedBy {
        actor: "root",
        at: NOW,
    };
    config::save(tx, &yard.key, &changes, None, by).await?;
    mode_switch::begin(tx, (from, to), "root", NOW).await?;
    Ok(())
}

/// Users come from a directory from now on.
async fn use_directory(yard: &Yard) {
    change(yard, async |tx| {
        switch(yard, tx, AuthMode::Local, AuthMode::Ldap).await
    })
    .await
    .unwrap();
}

/// The accounts of a name that are not leaving.
async fn accounts(yard: &Yard, name: &str) -> Vec<KnownUser> {
    let mut connection = yard.db.read().await.unwrap();
    let mut known = directory::known(&mut connection).await.unwrap();
    known.retain(|user| user.name.as_str() == name && !user.leaving);
    known
}

/// The groups that a user is in.
async fn groups_of(yard: &Yard, uid: &Uid) -> BTreeSet<String> {
    let mut connection = yard.db.read().await.unwrap();
    let names = group::names_of_users(&mut connection).await.unwrap();
    let names = names.get(uid).into_iter().flatten();
    names.map(ToString::to_string).collect()
}

async fn count(yard: &Yard, statement: &'static str) -> i64 {
    let mut connection = yard.db.read().await.unwrap();
    let counted = sqlx::query_scalar(statement);
    counted.fetch_one(connection.raw()).await.unwrap()
}

/// How many sessions an account has.
async fn sessions(yard: &Yard, uid: &Uid) -> usize {
    let mut connection = yard.db.read().await.unwrap();
    session::list(&mut connection, uid, 0).await.unwrap().len()
}

/// Whether an account may not sign in.
async fn is_disabled(yard: &Yard, name: &str) -> bool {
    let mut connection = yard.db.read().await.unwrap();
    let name = name.parse().unwrap();
    let found = user::find(&mut connection, &name).await.unwrap();
    found.unwrap().disabled
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

async fn l10_a_new_person_who_signs_in_twice_at_once_gets_one_account(yard: Yard) {
    use_directory(&yard).await;
    for (round, order) in orders() {
        let (name, team) = (format!("alice{round}"), format!("team{round}"));
        let listed = listed(&name, &["all", &team]);
        let sign_in = async |tx: &mut Tx| sign_in(tx, &listed, NOW).await;
        let (one, other) = overlap(&yard, order, sign_in, sign_in).await;
        let uid = one.unwrap();
        assert_eq!(other.unwrap(), uid, "{order:?}");
        let found = accounts(&yard, &name).await;
        assert_eq!(found.len(), 1, "{order:?}: {found:?}");
        assert_eq!((&found[0].uid, &found[0].digest), (&uid, &listed.digest()));
        assert_eq!(groups_of(&yard, &uid).await, set(["all", &team]));
        assert_eq!(sessions(&yard, &uid).await, 2, "{order:?}");
    }
    let (users, _) = orders().size_hint();
    let users = i64::try_from(users).unwrap();
    assert_eq!(count(&yard, "SELECT count(*) FROM users").await, users);
    // That of everybody, and those of the teams.
    let groups = count(&yard, "SELECT count(*) FROM user_groups").await;
    assert_eq!(groups, users + 1);
}

async fn who_signs_in_while_a_list_brings_the_account_has_one_and_the_newer_groups(yard: Yard) {
    use_directory(&yard).await;
    for (round, order) in orders() {
        let (name, old, new) = (
            format!("alice{round}"),
            format!("old{round}"),
            format!("new{round}"),
        );
        let page = [
            UserChange::Add(listed("carol", &["all"])),
            UserChange::Add(listed(&name, &["all", &old])),
        ];
        let newer = listed(&name, &["all", &new]);
        let (applied, signed_in) = overlap(
            &yard,
            order,
            async |tx| apply(tx, &page, NOW).await,
            async |tx| sign_in(tx, &newer, after(1)).await,
        )
        .await;
        applied.unwrap();
        let uid = signed_in.unwrap();
        let found = accounts(&yard, &name).await;
        assert_eq!(found.len(), 1, "{order:?}: {found:?}");
        assert_eq!((&found[0].uid, &found[0].digest), (&uid, &newer.digest()));
        assert_eq!(
            groups_of(&yard, &uid).await,
            set(["all", &new]),
            "{order:?}"
        );
        assert_eq!(sessions(&yard, &uid).await, 1, "{order:?}");
    }
    // The others of a list that finds a name taken come all the same.
    assert_eq!(accounts(&yard, "carol").await.len(), 1);
}

async fn who_signs_in_while_a_list_disables_the_account_is_either_in_or_out(yard: Yard) {
    use_directory(&yard).await;
    for (round, order) in orders() {
        let name = format!("alice{round}");
        let listed = listed(&name, &["all"]);
        let added = async |tx: &mut Tx| apply(tx, &[UserChange::Add(listed.clone())], NOW).await;
        change(&yard, added).await.unwrap();
        let uid = accounts(&yard, &name).await.remove(0).uid;
        let page = [UserChange::Disable {
            uid: uid.clone(),
            name: listed.name.clone(),
        }];
        // The list was asked for before the sign-in.
        let (applied, signed_in) = overlap(
            &yard,
            order,
            async |tx| apply(tx, &page, after(10)).await,
            async |tx| sign_in(tx, &listed, after(11)).await,
        )
        .await;
        applied.unwrap();
        let is_in = !is_refused(&signed_in);
        // Who comes later is let in, too, if what the list has done is seen from the beginning.
        assert!(is_in || order != Order::OtherFirst, "{signed_in:?}");
        let found = accounts(&yard, &name).await.remove(0);
        assert_eq!(found.missing_since.is_none(), is_in, "{order:?}");
        assert_eq!(is_disabled(&yard, &name).await, !is_in, "{order:?}");
        assert_eq!(sessions(&yard, &uid).await, usize::from(is_in), "{order:?}");
        // Who was refused is let in at once.
        let again = change(&yard, async |tx| sign_in(tx, &listed, after(12)).await).await;
        assert_eq!(again.unwrap(), uid);
        assert!(!is_disabled(&yard, &name).await);
    }
}

async fn who_signs_in_while_a_list_removes_the_account_is_either_in_or_out(yard: Yard) {
    use_directory(&yard).await;
    for since in [Some(after(5)), None] {
        for (round, order) in orders() {
            let what = format!("{order:?}, missing since {since:?}");
            let name = format!("alice{}{round}", if since.is_some() { "a" } else { "b" });
            let listed = listed(&name, &["all"]);
            let add = async |tx: &mut Tx| apply(tx, &[UserChange::Add(listed.clone())], NOW).await;
            change(&yard, add).await.unwrap();
            let uid = accounts(&yard, &name).await.remove(0).uid;
            if let Some(since) = since {
                let page = [UserChange::Disable {
                    uid: uid.clone(),
                    name: listed.name.clone(),
                }];
                let disable = async |tx: &mut Tx| apply(tx, &page, since).await;
                change(&yard, disable).await.unwrap();
            }
            let page = [UserChange::Remove {
                since,
                uid: uid.clone(),
                name: listed.name.clone(),
            }];
            let (applied, signed_in) = overlap(
                &yard,
                order,
                async |tx| apply(tx, &page, after(10)).await,
                async |tx| sign_in(tx, &listed, after(11)).await,
            )
            .await;
            applied.unwrap();
            let is_in = !is_refused(&signed_in);
            if order != Order::AtOnce {
                assert_eq!(is_in, order == Order::OtherFirst, "{what}: {signed_in:?}");
            }
            let found = accounts(&yard, &name).await;
            assert_eq!(found.len(), usize::from(is_in), "{what}");
            assert_eq!(sessions(&yard, &uid).await, usize::from(is_in), "{what}");
            // Whoever is leaving is in no group: nobody inherits anything (L6).
            let groups = if is_in { set(["all"]) } else { set([]) };
            assert_eq!(groups_of(&yard, &uid).await, groups, "{what}");
            if is_in {
                assert_eq!(found[0].missing_since, None, "{what}");
                assert!(!is_disabled(&yard, &name).await, "{what}");
            }
        }
    }
}

/// Nobody who came from the directory is left, nor anything of theirs, and nobody comes any more.
async fn assert_nobody_is_left(yard: &Yard, what: &str) {
    let mut connection = yard.db.read().await.unwrap();
    let known = directory::known(&mut connection).await.unwrap();
    let purge = mode_switch::purge(&mut connection).await.unwrap();
    drop(connection);
    assert_eq!(purge.names, [], "{what}");
    let left: Vec<_> = known.iter().filter(|user| !user.leaving).collect();
    assert!(left.is_empty(), "{what}: {left:?}");
    for statement in [
        "SELECT count(*) FROM sessions",
        "SELECT count(*) FROM user_groups",
        "SELECT count(*) FROM group_members",
        "SELECT count(*) FROM objects WHERE deleted_at IS NULL",
    ] {
        assert_eq!(count(yard, statement).await, 0, "{what}: {statement}");
    }
    let late = listed("late", &["all"]);
    let signed_in = change(yard, async |tx| sign_in(tx, &late, NOW).await).await;
    assert!(is_refused(&signed_in), "{what}: {signed_in:?}");
    let page = [UserChange::Add(late)];
    let applied = change(yard, async |tx| apply(tx, &page, NOW).await).await;
    applied.unwrap();
    assert_eq!(accounts(yard, "late").await, [], "{what}");
}

async fn nobody_of_the_old_mode_is_left_by_a_sign_in_during_the_switch(yard: Yard) {
    for (round, order) in orders() {
        for who in ["new", "same", "moved", "silent"] {
            use_directory(&yard).await;
            let what = format!("{order:?}, {who}");
            let name = format!("{who}{round}");
            let mut listed = listed(&name, &["all", "dev"]);
            if who != "new" {
                let sign_in = async |tx: &mut Tx| sign_in(tx, &listed, NOW).await;
                change(&yard, sign_in).await.unwrap();
            }
            match who {
                "moved" => listed.groups = Some(["all".parse().unwrap()].into()),
                "silent" => (listed.subject, listed.groups) = ("uid=other".to_owned(), None),
                _ => {}
            }
            let (switched, signed_in) = overlap(
                &yard,
                order,
                async |tx| switch(&yard, tx, AuthMode::Ldap, AuthMode::Local).await,
                async |tx| sign_in(tx, &listed, after(1)).await,
            )
            .await;
            switched.unwrap();
            let is_in = !is_refused(&signed_in);
            if order != Order::AtOnce {
                assert_eq!(is_in, order == Order::OtherFirst, "{what}: {signed_in:?}");
            }
            assert_nobody_is_left(&yard, &what).await;
        }
        // The new mode has its own users.
        let local = user(&yard, &format!("local{round}")).await;
        let end = change(&yard, async |tx| user::delete(tx, &local, NOW).await);
        end.await.unwrap();
    }
}

async fn nobody_of_the_old_mode_is_left_by_a_synchronisation_during_the_switch(yard: Yard) {
    for (round, order) in orders() {
        use_directory(&yard).await;
        let what = format!("{order:?}");
        let names = ["stays", "goes", "gone"].map(|who| format!("{who}{round}"));
        let [stays, goes, gone] = names.each_ref();
        let first = names
            .each_ref()
            .map(|name| UserChange::Add(listed(name, &["all", "dev"])));
        change(&yard, async |tx| apply(tx, &first, NOW).await)
            .await
            .unwrap();
        let mut uids = Vec::new();
        for name in &names {
            uids.push(accounts(&yard, name).await.remove(0).uid);
        }
        let page = [UserChange::Disable {
            uid: uids[2].clone(),
            name: gone.parse().unwrap(),
        }];
        change(&yard, async |tx| apply(tx, &page, after(1)).await)
            .await
            .unwrap();
        // Everything that a page may have.
        let page = [
            UserChange::Add(listed(&format!("new{round}"), &["all", "fresh"])),
            UserChange::Update {
                uid: uids[0].clone(),
                listed: listed(stays, &["all", "ops"]),
                back: false,
            },
            UserChange::Disable {
                uid: uids[1].clone(),
                name: goes.parse().unwrap(),
            },
            UserChange::Remove {
                since: Some(after(1)),
                uid: uids[2].clone(),
                name: gone.parse().unwrap(),
            },
        ];
        let (switched, applied) = overlap(
            &yard,
            order,
            async |tx| switch(&yard, tx, AuthMode::Ldap, AuthMode::Local).await,
            async |tx| apply(tx, &page, after(2)).await,
        )
        .await;
        switched.unwrap();
        applied.unwrap();
        assert_nobody_is_left(&yard, &what).await;
        // Groups are a transaction of their own.
        use_directory(&yard).await;
        let (empty, none) = ([format!("empty{round}").parse().unwrap()], []);
        let (switched, settled) = overlap(
            &yard,
            order,
            async |tx| switch(&yard, tx, AuthMode::Ldap, AuthMode::Local).await,
            async |tx| directory::settle_groups(tx, Source::Ldap, &empty, &none, NOW).await,
        )
        .await;
        switched.unwrap();
        settled.unwrap();
        assert_nobody_is_left(&yard, &what).await;
    }
}

async fn nobody_of_the_old_mode_is_left_by_a_creation_during_the_switch(yard: Yard) {
    for (round, order) in orders() {
        let what = format!("{order:?}");
        let new = NewUser {
            uid: Uid::random(),
            name: format!("local{round}").parse().unwrap(),
            source: Source::Local,
            password_hash: None,
            image_ref: "docker.io/library/agent:1".to_owned(),
            desired: Desired::Running,
        };
        let (switched, created) = overlap(
            &yard,
            order,
            async |tx| switch(&yard, tx, AuthMode::Local, AuthMode::Ldap).await,
            async |tx| user::create(tx, &new, NOW).await,
        )
        .await;
        switched.unwrap();
        if order != Order::AtOnce {
            assert_eq!(created.is_ok(), order == Order::OtherFirst, "{created:?}");
        }
        let in_time = created.map(|_| new.uid.clone());
        assert!(in_time.is_ok() || is_refused(&in_time), "{what}");
        assert_eq!(accounts(&yard, new.name.as_str()).await, [], "{what}");
        let back = change(&yard, async |tx| {
            switch(&yard, tx, AuthMode::Ldap, AuthMode::Local).await
        });
        back.await.unwrap();
        assert_nobody_is_left(&yard, &what).await;
    }
}

async fn requests_at_once_are_one_that_asks_for_all_of_it(yard: Yard) {
    change(&yard, async |tx| object::ensure_singles(tx, NOW).await)
        .await
        .unwrap();
    let requested = async || {
        let mut connection = yard.db.read().await.unwrap();
        directory::requested(&mut connection).await.unwrap()
    };
    for (_, order) in orders() {
        for (one, other) in [
            ((SyncScope::Users, "d1"), (SyncScope::Groups, "")),
            ((SyncScope::Users, ""), (SyncScope::Groups, "d1")),
            ((SyncScope::Users, "d1"), (SyncScope::Users, "d1")),
            ((SyncScope::Users, "d1"), (SyncScope::Groups, "d2")),
        ] {
            let what = format!("{order:?}, {one:?} and {other:?}");
            let before = requested().await;
            let request = |(scope, confirm)| {
                async move |tx: &mut Tx| directory::request(tx, scope, confirm, None).await
            };
            let (first, second) = overlap(&yard, order, request(one), request(other)).await;
            // Both raise the generation, so whoever waits for one of them is told when it was seen.
            let (first, second) = (first.unwrap(), second.unwrap());
            assert_ne!(first, second, "{what}");
            let now = requested().await;
            assert_ne!(now.token, before.token, "{what}");
            assert_eq!(now.scope, SyncScope::Users, "{what}");
            // Of two confirmations the later one, and no request without any takes one back.
            let (earlier, later) = match first < second {
                true => (one.1, other.1),
                false => (other.1, one.1),
            };
            let confirm = if later.is_empty() { earlier } else { later };
            assert_eq!(now.confirm, confirm, "{what}");
            // Once that is answered, nothing of it is left in the next.
            let facts = DirectoryFacts {
                answered: now.token,
                ..DirectoryFacts::default()
            };
            change(&yard, async |tx| directory::save_facts(tx, &facts).await)
                .await
                .unwrap();
            change(&yard, request((SyncScope::Groups, "")))
                .await
                .unwrap();
            let next = requested().await;
            assert_eq!((next.scope, next.confirm.as_str()), (SyncScope::Groups, ""));
            let facts = DirectoryFacts {
                answered: next.token,
                ..DirectoryFacts::default()
            };
            change(&yard, async |tx| directory::save_facts(tx, &facts).await)
                .await
                .unwrap();
        }
    }
}

async fn who_signs_in_while_a_list_changes_the_account_keeps_the_newer_groups(yard: Yard) {
    use_directory(&yard).await;
    for (round, order) in orders() {
        let (name, old, new) = (
            format!("alice{round}"),
            format!("old{round}"),
            format!("new{round}"),
        );
        let first = [UserChange::Add(listed(&name, &["all"]))];
        change(&yard, async |tx| apply(tx, &first, NOW).await)
            .await
            .unwrap();
        let uid = accounts(&yard, &name).await.remove(0).uid;
        let page = [UserChange::Update {
            uid: uid.clone(),
            listed: listed(&name, &["all", &old]),
            back: false,
        }];
        let newer = listed(&name, &["all", &new]);
        // The list was asked for before the sign-in.
        let (applied, signed_in) = overlap(
            &yard,
            order,
            async |tx| apply(tx, &page, after(10)).await,
            async |tx| sign_in(tx, &newer, after(11)).await,
        )
        .await;
        applied.unwrap();
        assert_eq!(signed_in.unwrap(), uid, "{order:?}");
        assert_eq!(
            groups_of(&yard, &uid).await,
            set(["all", &new]),
            "{order:?}"
        );
        assert_eq!(
            accounts(&yard, &name).await[0].digest,
            newer.digest(),
            "{order:?}"
        );
    }
}

async fn who_proves_to_be_somebody_whose_account_a_list_removes_just_then_is_told_that_it_is_leaving(
    yard: Yard,
) {
    use_directory(&yard).await;
    for (round, order) in orders() {
        let name = format!("alice{round}");
        let listed = listed(&name, &["all"]);
        let newer = Listed {
            subject: "uid=moved".to_owned(),
            ..listed.clone()
        };
        let add = async |tx: &mut Tx| apply(tx, &[UserChange::Add(listed.clone())], NOW).await;
        change(&yard, add).await.unwrap();
        let uid = accounts(&yard, &name).await.remove(0).uid;
        let page = [UserChange::Remove {
            since: None,
            uid: uid.clone(),
            name: listed.name.clone(),
        }];
        let (applied, signed_in) = overlap(
            &yard,
            order,
            async |tx| apply(tx, &page, after(10)).await,
            async |tx| directory::signed_in(tx, Source::Ldap, &newer, &template(), after(11)).await,
        )
        .await;
        applied.unwrap();
        if order == Order::OneFirst {
            let groups = groups_of(&yard, &uid).await;
            assert!(
                matches!(signed_in, Err(DbError::NameBeingRemoved)),
                "{signed_in:?} {groups:?}"
            );
        }
    }
}

/// So that the rows of a page lie together in every index.
async fn new_users_of_a_page_have_uids_of_its_part(yard: Yard) {
    use_directory(&yard).await;
    let names = ["ann", "ben", "cleo", "dan"];
    let mut uids = Vec::new();
    for (name, part) in names.into_iter().zip(UidPart::all(names.len())) {
        let add = [UserChange::Add(listed(name, &[]))];
        let added = change(&yard, async |tx| apply_in(tx, &add, NOW, part).await);
        added.await.unwrap();
        uids.push(accounts(&yard, name).await.remove(0).uid);
    }
    let quarter = |uid: &Uid| u8::from_str_radix(&uid.as_str()[..2], 16).unwrap() / 64;
    let quarters: Vec<u8> = uids.iter().map(quarter).collect();
    assert_eq!(quarters, [0, 1, 2, 3], "{uids:?}");
}

/// The same with what identifies the entry.
fn identified(name: &str, groups: &[&str], number: u32) -> Listed {
    Listed {
        identity: Some(format!("entryuuid:{number}")),
        ..listed(name, groups)
    }
}

fn name(name: &str) -> UserName {
    name.parse().unwrap()
}

/// Renames the account of an entry, as a sign-in does.
async fn rename(
    yard: &Yard,
    tx: &mut Tx,
    number: u32,
    to: &str,
) -> Result<Option<UserName>, DbError> {
    let identity = format!("entryuuid:{number}");
    directory::rename(tx, Source::Ldap, &identity, &name(to), &yard.key, NOW).await
}

/// The reconcilers are done with a rename.
async fn end_rename(yard: &Yard, uid: &Uid, before: &str) {
    change(yard, async |tx| {
        user::release_previous_name(tx, uid, &name(before)).await?;
        let row = user::row(tx, uid).await?.unwrap();
        assert!(row.previous_released);
        user::end_rename(tx, uid, &name(before)).await
    })
    .await
    .unwrap();
}

async fn holder(yard: &Yard, of: &str) -> Option<(Uid, UserName)> {
    let mut connection = yard.db.read().await.unwrap();
    let found = mcp_token::find(&mut connection, &name(of)).await.unwrap();
    found.map(|holder| (holder.uid, holder.name))
}

async fn save_policy(yard: &Yard, policy: Value) {
    change(yard, async |tx| {
        config::lock(tx).await?;
        let changes = Changes([("mcp.policy", Some(policy))].into());
        let by = SavedBy {
            actor: "root",
            at: NOW,
        };
        config::save(tx, &yard.key, &changes, None, by).await
    })
    .await
    .unwrap();
}

async fn renamed_user_keeps_what_belongs_to_the_account(yard: Yard) {
    use_directory(&yard).await;
    let entry = identified("ann", &["all"], 1);
    let signed_in = change(&yard, async |tx| sign_in(tx, &entry, NOW).await).await;
    let uid = signed_in.unwrap();
    let policy = json!({"mode": "auto", "users": {
        "ANN": {"browser": {"mode": "off"}},
        "ann.jones": {"browser": {"mode": "auto"}},
        "bob": {"computer": {"mode": "off"}},
    }});
    change(&yard, async |tx| {
        whitelist::add(tx, &[name("Ann"), name("bob")]).await
    })
    .await
    .unwrap();
    save_policy(&yard, policy).await;
    let generation = async |kind| {
        let mut connection = yard.db.read().await.unwrap();
        object::get(&mut connection, kind, &uid)
            .await
            .unwrap()
            .unwrap()
    };
    let kinds = [
        Kind::User,
        Kind::Container,
        Kind::AgentConfig,
        Kind::SkillSet,
    ];
    let mut before = Vec::new();
    for kind in kinds {
        before.push(generation(kind).await.generation);
    }
    let renamed = change(&yard, async |tx| rename(&yard, tx, 1, "Ann.Jones").await).await;
    assert_eq!(renamed.unwrap(), Some(name("ann")));
    for (kind, before) in kinds.into_iter().zip(before) {
        let object = generation(kind).await;
        assert_eq!(object.name, "Ann.Jones");
        assert!(object.generation > before, "{kind}");
    }
    assert_eq!(accounts(&yard, "Ann.Jones").await[0].uid, uid);
    assert_eq!(groups_of(&yard, &uid).await, set(["all"]));
    assert_eq!(sessions(&yard, &uid).await, 0);
    // The token with the name of before is the account's.
    let account = Some((uid.clone(), name("Ann.Jones")));
    assert_eq!(holder(&yard, "ANN").await, account);
    assert_eq!(holder(&yard, "ann.jones").await, account);
    let mut connection = yard.db.read().await.unwrap();
    let (allowed, _) = whitelist::list(&mut connection, "", 10, 0).await.unwrap();
    assert_eq!(allowed, [name("Ann.Jones"), name("bob")]);
    let (values, _) = config::load(&mut connection, &yard.key).await.unwrap();
    let expected = json!({"mode": "auto", "users": {
        "Ann.Jones": {"browser": {"mode": "off"}},
        "bob": {"computer": {"mode": "off"}},
    }});
    assert_eq!(values["mcp.policy"], expected);
    let kind = Some(Kind::User);
    let events = event::list(&mut connection, kind, Some(&uid), NOW, 10).await;
    drop(connection);
    let events = events.unwrap();
    let event = events.iter().find(|it| it.reason == "Renamed").unwrap();
    assert_eq!(event.message, "renamed from ann to Ann.Jones");
    // Once more is nothing.
    let again = change(&yard, async |tx| rename(&yard, tx, 1, "ann.jones").await).await;
    assert_eq!(again.unwrap(), None);
}

async fn name_of_before_is_free_once_the_directory_is_renamed(yard: Yard) {
    use_directory(&yard).await;
    let add = [UserChange::Add(identified("ann", &[], 1))];
    change(&yard, async |tx| apply(tx, &add, NOW).await)
        .await
        .unwrap();
    let uid = accounts(&yard, "ann").await.remove(0).uid;
    change(&yard, async |tx| rename(&yard, tx, 1, "eve").await)
        .await
        .unwrap();
    let newcomer = identified("ann", &[], 2);
    let signed_in = change(&yard, async |tx| sign_in(tx, &newcomer, NOW).await).await;
    assert!(matches!(signed_in, Err(DbError::NameBeingRemoved)));
    let add = [UserChange::Add(newcomer.clone())];
    change(&yard, async |tx| apply(tx, &add, NOW).await)
        .await
        .unwrap();
    assert!(accounts(&yard, "ann").await.is_empty());
    // Nor is the account renamed again, also not back.
    for to in ["ann", "eva"] {
        let again = change(&yard, async |tx| rename(&yard, tx, 1, to).await).await;
        assert!(matches!(again, Err(DbError::NameBeingRemoved)), "{to}");
    }
    assert_eq!(holder(&yard, "ann").await.unwrap().0, uid);
    end_rename(&yard, &uid, "ann").await;
    let signed_in = change(&yard, async |tx| sign_in(tx, &newcomer, NOW).await).await;
    let other = signed_in.unwrap();
    assert_ne!(other, uid);
    // The token of the first bearer ends with that, and the name is the other's.
    assert_eq!(holder(&yard, "ann").await.unwrap().0, other);
    let formers = "SELECT count(*) FROM former_names";
    assert_eq!(count(&yard, formers).await, 0);
    // A second one has the name: the first cannot have it back.
    let back = change(&yard, async |tx| rename(&yard, tx, 1, "ann").await).await;
    assert!(matches!(back, Err(DbError::NameTaken)));
}

async fn person_with_the_name_of_another_gets_no_account(yard: Yard) {
    use_directory(&yard).await;
    let entry = identified("ann", &[], 1);
    let signed_in = change(&yard, async |tx| sign_in(tx, &entry, NOW).await).await;
    let uid = signed_in.unwrap();
    change(&yard, async |tx| whitelist::add(tx, &[name("ann")]).await)
        .await
        .unwrap();
    let other = identified("ann", &["all"], 2);
    let refused = change(&yard, async |tx| sign_in(tx, &other, after(1)).await).await;
    assert!(matches!(refused, Err(DbError::NameTaken)), "{refused:?}");
    assert_eq!(groups_of(&yard, &uid).await, set([]));
    // An identity that is not known, or of another kind, says nothing against it.
    let unknown = listed("ann", &["all"]);
    let of_another_kind = Listed {
        identity: Some("ipauniqueid:2".to_owned()),
        ..listed("ann", &["all"])
    };
    for entry in [unknown, of_another_kind] {
        let signed_in = change(&yard, async |tx| sign_in(tx, &entry, after(2)).await).await;
        assert_eq!(signed_in.unwrap(), uid);
    }
    assert_eq!(accounts(&yard, "ann").await[0].identity, "ipauniqueid:2");
    // The place on the whitelist and the rules go with the account.
    let rules = json!({"users": {"ANN": {"computer": {"mode": "auto"}}, "bob": {"browser": {"mode": "off"}}}});
    save_policy(&yard, rules).await;
    let page = [UserChange::Remove {
        since: None,
        uid: uid.clone(),
        name: name("ann"),
    }];
    change(&yard, async |tx| apply(tx, &page, after(10)).await)
        .await
        .unwrap();
    assert!(accounts(&yard, "ann").await.is_empty());
    assert_eq!(count(&yard, "SELECT count(*) FROM whitelist").await, 0);
    let mut connection = yard.db.read().await.unwrap();
    let (values, _) = config::load(&mut connection, &yard.key).await.unwrap();
    let expected = json!({"users": {"bob": {"browser": {"mode": "off"}}}});
    assert_eq!(values["mcp.policy"], expected);
}

async fn rename_by_a_list_and_a_sign_in_at_once_is_one(yard: Yard) {
    use_directory(&yard).await;
    for (round, order) in orders() {
        let number = u32::try_from(round).unwrap();
        let (old, new) = (format!("old{round}"), format!("new{round}"));
        let add = [UserChange::Add(identified(&old, &["all"], number))];
        change(&yard, async |tx| apply(tx, &add, NOW).await)
            .await
            .unwrap();
        let uid = accounts(&yard, &old).await.remove(0).uid;
        let page = [UserChange::Rename {
            uid: uid.clone(),
            from: name(&old),
            listed: identified(&new, &["all"], number),
            back: false,
        }];
        let (applied, signed_in) = overlap(
            &yard,
            order,
            async |tx| apply(tx, &page, after(10)).await,
            async |tx| {
                rename(&yard, tx, number, &new).await?;
                sign_in(tx, &identified(&new, &["all"], number), after(11)).await
            },
        )
        .await;
        applied.unwrap();
        assert_eq!(signed_in.unwrap(), uid, "{order:?}");
        assert_eq!(accounts(&yard, &new).await.len(), 1, "{order:?}");
        assert!(accounts(&yard, &old).await.is_empty(), "{order:?}");
        assert_eq!(groups_of(&yard, &uid).await, set(["all"]));
    }
}

async fn entry_with_an_account_gets_no_other_one(yard: Yard) {
    use_directory(&yard).await;
    let newer = identified("new", &[], 1);
    let signed_in = change(&yard, async |tx| sign_in(tx, &newer, after(5)).await).await;
    // The list is from before the entry was renamed.
    let add = [
        UserChange::Add(identified("old", &[], 1)),
        UserChange::Add(identified("other", &[], 2)),
    ];
    change(&yard, async |tx| apply(tx, &add, NOW).await)
        .await
        .unwrap();
    assert!(accounts(&yard, "old").await.is_empty());
    assert_eq!(accounts(&yard, "other").await.len(), 1);
    assert_eq!(accounts(&yard, "new").await[0].uid, signed_in.unwrap());
}

async fn identity_is_recorded_and_forgotten_alone(yard: Yard) {
    use_directory(&yard).await;
    let entry = listed("ann", &["all"]);
    let add = [UserChange::Add(entry.clone())];
    change(&yard, async |tx| apply(tx, &add, NOW).await)
        .await
        .unwrap();
    let known = accounts(&yard, "ann").await.remove(0);
    assert_eq!(known.identity, "");
    for identity in [Some("entryuuid:1".to_owned()), None] {
        let page = [UserChange::Identify {
            uid: known.uid.clone(),
            name: known.name.clone(),
            subject: known.subject.clone(),
            identity: identity.clone(),
        }];
        change(&yard, async |tx| apply(tx, &page, after(1)).await)
            .await
            .unwrap();
        let expected = KnownUser {
            identity: identity.unwrap_or_default(),
            ..known.clone()
        };
        assert_eq!(accounts(&yard, "ann").await, [expected]);
    }
    // A sign-in records it, too, although nothing else is new.
    let identified = identified("ann", &["all"], 7);
    let signed_in = change(&yard, async |tx| sign_in(tx, &identified, after(2)).await).await;
    assert_eq!(signed_in.unwrap(), known.uid);
    assert_eq!(accounts(&yard, "ann").await[0].identity, "entryuuid:7");
}
