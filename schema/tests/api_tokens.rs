//! API tokens, on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use schema::api_token::{self, Lookup, NewApiToken, Role};
use schema::error::DbError;
use schema::ids::Timestamp;
use secrecy::{ExposeSecret, SecretString};

use crate::support::{Yard, on_both_databases};

const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);
const HOUR: Duration = Duration::from_secs(3600);

on_both_databases!(
    tokens_are_found_by_digest_until_they_end,
    a_name_is_taken_until_it_is_revoked,
    tokens_are_listed_in_pages_with_their_last_use,
);

async fn create(yard: &Yard, name: &str, role: Role) -> Result<SecretString, DbError> {
    let new = NewApiToken {
        name: name.to_owned(),
        role,
        expires_at: NOW.plus(HOUR),
        created_by: "root".to_owned(),
    };
    let mut tx = yard.db.begin().await.unwrap();
    let (token, _) = api_token::create(&mut tx, &new, NOW).await?;
    tx.commit().await.unwrap();
    Ok(token)
}

async fn find(yard: &Yard, token: &SecretString, now: Timestamp) -> Lookup {
    let mut connection = yard.db.read().await.unwrap();
    let digest = api_token::digest(token);
    api_token::find(&mut connection, &digest, now)
        .await
        .unwrap()
}

async fn revoke(yard: &Yard, name: &str) -> Result<(), DbError> {
    let mut tx = yard.db.begin().await.unwrap();
    api_token::revoke(&mut tx, name).await?;
    tx.commit().await
}

async fn tokens_are_found_by_digest_until_they_end(yard: Yard) {
    let token = create(&yard, "ci", Role::Admin).await.unwrap();
    let Lookup::Valid(found) = find(&yard, &token, NOW.plus(HOUR)).await else {
        panic!("valid to its last moment");
    };
    assert_eq!((&*found.name, found.role), ("ci", Role::Admin));
    let late = NOW.plus(HOUR + Duration::from_millis(1));
    assert_eq!(
        find(&yard, &token, late).await,
        Lookup::Expired(found.clone())
    );
    let other = SecretString::from(format!("{}0", token.expose_secret()));
    assert_eq!(find(&yard, &other, NOW).await, Lookup::Unknown);
    let live = async |now| {
        let mut connection = yard.db.read().await.unwrap();
        api_token::is_live(&mut connection, &found.uid, now)
            .await
            .unwrap()
    };
    assert!(live(NOW).await && !live(late).await);
    revoke(&yard, "ci").await.unwrap();
    assert!(!live(NOW).await);
    assert_eq!(find(&yard, &token, NOW).await, Lookup::Unknown);
}

async fn a_name_is_taken_until_it_is_revoked(yard: Yard) {
    let first = create(&yard, "ci", Role::Read).await.unwrap();
    let taken = create(&yard, "ci", Role::Admin).await;
    assert!(matches!(taken, Err(DbError::NameTaken)), "{taken:?}");
    revoke(&yard, "ci").await.unwrap();
    let missing = revoke(&yard, "ci").await;
    assert!(matches!(missing, Err(DbError::NotFound(_))), "{missing:?}");
    let second = create(&yard, "ci", Role::Admin).await.unwrap();
    assert_eq!(find(&yard, &first, NOW).await, Lookup::Unknown);
    assert!(matches!(find(&yard, &second, NOW).await, Lookup::Valid(_)));
}

async fn tokens_are_listed_in_pages_with_their_last_use(yard: Yard) {
    for name in ["c_x", "a", "b"] {
        create(&yard, name, Role::Read).await.unwrap();
    }
    let list = async |search: &str, limit, offset| {
        let mut connection = yard.db.read().await.unwrap();
        let listed = api_token::list(&mut connection, search, limit, offset).await;
        let (tokens, total) = listed.unwrap();
        let names: Vec<_> = tokens.iter().map(|token| token.name.clone()).collect();
        (names.join(","), total, tokens)
    };
    let (names, total, tokens) = list("", 2, 0).await;
    assert_eq!((&*names, total), ("a,b", 3));
    let (names, total, _) = list("_X", 10, 0).await;
    assert_eq!((&*names, total), ("c_x", 1));
    for at in [NOW.plus(HOUR), NOW] {
        let mut tx = yard.db.recorder().begin().await.unwrap();
        api_token::mark_used(&mut tx, &tokens[0].uid, at)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
    let (_, _, tokens) = list("a", 10, 0).await;
    assert_eq!(
        tokens[0].last_used_at,
        Some(NOW.plus(HOUR)),
        "never earlier"
    );
}
