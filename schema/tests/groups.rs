//! In which groups users are, on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use schema::group::{self, NewGroup};
use schema::ids::{Timestamp, Uid};
use schema::user::Source;

use crate::support::{Yard, on_both_databases, user};

on_both_databases!(the_groups_of_many_users_are_found_with_those_above,);

async fn create_group(yard: &Yard, name: &str, parent_uid: Option<Uid>) -> Uid {
    let new = NewGroup {
        name: name.parse().unwrap(),
        parent_uid,
        source: Source::Local,
        description: String::new(),
    };
    let mut tx = yard.db.begin().await.unwrap();
    let now = Timestamp::from_secs(1_778_500_000);
    let uid = group::create(&mut tx, &new, now).await.unwrap();
    tx.commit().await.unwrap();
    uid
}

async fn the_groups_of_many_users_are_found_with_those_above(yard: Yard) {
    let top = create_group(&yard, "top", None).await;
    let below = create_group(&yard, "Below", Some(top.clone())).await;
    let beside = create_group(&yard, "beside", Some(top)).await;
    // More than one statement asks for.
    let mut users = Vec::new();
    for number in 0..60 {
        users.push(user(&yard, &format!("user-{number}")).await);
    }
    let mut tx = yard.db.begin().await.unwrap();
    for (group, members) in [(&below, &users[..55]), (&beside, &users[..1])] {
        let added = group::add_members(&mut tx, group, members.to_vec()).await;
        added.unwrap();
    }
    tx.commit().await.unwrap();

    let mut connection = yard.db.read().await.unwrap();
    let found = group::names_above(&mut connection, &users).await.unwrap();
    assert_eq!(found.len(), 54 * 2 + 3);
    let of = |user: &Uid| -> Vec<&str> {
        let names = found.iter().filter(|(of, _)| of == user);
        names.map(|(_, name)| name.as_str()).collect()
    };
    assert_eq!(of(&users[0]), ["Below", "beside", "top"]);
    assert_eq!(of(&users[54]), ["Below", "top"]);
    assert_eq!(of(&users[55]), [""; 0]);
    let one = group::names_above(&mut connection, &users[..1]).await;
    assert_eq!(one.unwrap().len(), 3);
    let none = group::names_above(&mut connection, &[]).await;
    assert_eq!(none.unwrap(), []);
}
