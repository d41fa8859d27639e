//! Changes of groups, skills and repositories at the same moment, on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use schema::db::Tx;
use schema::error::DbError;
use schema::group::{self, NewGroup};
use schema::ids::{Timestamp, Uid};
use schema::skill::impact::Impact;
use schema::skill::{self, NewVersion, Origin, Subject};
use schema::skill_repository::{self, NewRepository, RefType};
use schema::skill_set;
use schema::user::Source;

use crate::support::{Yard, on_both_databases, user};

on_both_databases!(
    two_groups_are_not_put_into_each_other,
    a_name_is_given_once,
    who_joins_while_a_skill_is_bound_gets_it,
    who_gets_a_skill_while_it_changes_gets_the_new_version,
);

const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);
const ROUNDS: usize = 10;

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

async fn create_group(yard: &Yard, name: &str) -> Result<Uid, DbError> {
    let new = NewGroup {
        name: name.parse().unwrap(),
        parent_uid: None,
        source: Source::Local,
        description: String::new(),
    };
    change(yard, async |tx| group::create(tx, &new, NOW).await).await
}

async fn save_version(yard: &Yard, digit: &str) -> (Uid, Impact) {
    let new = NewVersion {
        digest: digit.repeat(64).parse().unwrap(),
        description: String::new(),
        version: String::new(),
        license: String::new(),
        has_manifest: true,
        file_count: 1,
        size: 1,
        origin: Origin::default(),
        warnings: Vec::new(),
    };
    let name = "pdf".parse().unwrap();
    let saved = change(yard, async |tx| {
        skill::save_version(tx, &name, &new, None, NOW).await
    });
    let (saved, impact) = saved.await.unwrap();
    (saved.uid, impact)
}

async fn two_groups_are_not_put_into_each_other(yard: Yard) {
    let a = create_group(&yard, "a").await.unwrap();
    let b = create_group(&yard, "b").await.unwrap();
    let put = |uid, parent| {
        change(&yard, async move |tx| {
            group::set_parent(tx, uid, parent).await
        })
    };
    for _ in 0..ROUNDS {
        let (one, other) = tokio::join!(put(&a, Some(&b)), put(&b, Some(&a)));
        assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
        assert!(matches!(one.and(other), Err(DbError::GroupCycle)));
        put(&a, None).await.unwrap();
        put(&b, None).await.unwrap();
    }
}

async fn a_name_is_given_once(yard: Yard) {
    for round in 0..ROUNDS {
        let (lower, upper) = (format!("team-{round}"), format!("TEAM-{round}"));
        let (one, other) = tokio::join!(create_group(&yard, &lower), create_group(&yard, &upper));
        assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
        assert!(matches!(one.and(other), Err(DbError::NameTaken)));
    }
    let save = async |name: &str, token: &str| {
        let new = NewRepository {
            name: name.parse().unwrap(),
            url: "https://git.example.com/tools".parse().unwrap(),
            reference: "main".parse().unwrap(),
            ref_type: RefType::Branch,
            public: true,
        };
        let saved = change(&yard, async |tx| {
            skill_repository::save(tx, &yard.key, &new, &[], token, None, NOW).await
        });
        saved.await.unwrap()
    };
    for round in 0..ROUNDS {
        let (lower, upper) = (format!("tools-{round}"), format!("TOOLS-{round}"));
        // Whoever comes later changes what the other has added.
        let (one, other) = tokio::join!(save(&lower, "1"), save(&upper, "2"));
        assert_eq!(one.0, other.0);
        assert_ne!(one.1, other.1);
    }
}

async fn who_joins_while_a_skill_is_bound_gets_it(yard: Yard) {
    let user = user(&yard, "alice").await;
    let group = create_group(&yard, "team").await.unwrap();
    let (skill, _) = save_version(&yard, "a").await;
    for _ in 0..ROUNDS {
        let bind = change(&yard, async |tx| {
            skill::bind(tx, &skill, Subject::Group(&group)).await
        });
        let join = change(&yard, async |tx| {
            group::add_members(tx, &group, vec![user.clone()]).await
        });
        let (bound, joined) = tokio::join!(bind, join);
        let gained = [bound.unwrap().unwrap(), joined.unwrap().1];
        let told = gained.iter().flat_map(|impact| &impact.0);
        assert_eq!(told.count(), 1, "{gained:?}");
        let mut connection = yard.db.read().await.unwrap();
        let desired = skill_set::desired(&mut connection, &user).await.unwrap();
        drop(connection);
        assert_eq!(desired.len(), 1);
        let unbind = change(&yard, async |tx| {
            skill::unbind(tx, &skill, Subject::Group(&group)).await
        });
        let leave = change(&yard, async |tx| {
            group::remove_member(tx, &group, &user).await
        });
        let (unbound, left) = tokio::join!(unbind, leave);
        let lost = [unbound.unwrap().unwrap(), left.unwrap().unwrap()];
        let told = lost.iter().flat_map(|impact| &impact.0);
        assert_eq!(told.count(), 1, "{lost:?}");
    }
}

async fn who_gets_a_skill_while_it_changes_gets_the_new_version(yard: Yard) {
    let user = user(&yard, "alice").await;
    let (skill, _) = save_version(&yard, "a").await;
    for round in 0..ROUNDS {
        let digit = if round % 2 == 0 { "b" } else { "a" };
        let bind = change(&yard, async |tx| {
            skill::bind(tx, &skill, Subject::User(&user)).await
        });
        let (bound, (_, changed)) = tokio::join!(bind, save_version(&yard, digit));
        let gained = bound.unwrap().unwrap();
        let mut connection = yard.db.read().await.unwrap();
        let row = skill_set::get(&mut connection, &user).await.unwrap();
        let desired = skill_set::desired(&mut connection, &user).await.unwrap();
        drop(connection);
        assert_eq!(desired[0].digest.as_str(), digit.repeat(64));
        // Who came last has raised the generation to what it is.
        let last = changed.0.first().or(gained.0.first()).unwrap();
        assert_eq!(last.generation, row.map(|row| row.generation));
        let unbind = change(&yard, async |tx| {
            skill::unbind(tx, &skill, Subject::User(&user)).await
        });
        unbind.await.unwrap().unwrap();
    }
}
