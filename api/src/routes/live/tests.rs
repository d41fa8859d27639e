use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream;
use http_body_util::BodyExt;
use schema::ids::Timestamp;
use tokio::time::{Instant, timeout};

use super::*;
use crate::answer::Answers;
use crate::auth::session::{SessionClaims, VALIDITY};
use crate::auth::{Account, Authenticator, Role};
use crate::dispatch::Session;
use crate::follows::PER_ACCOUNT;
use crate::ports::ContainerLogs;
use crate::testing::{NOW, World, world};

/// An engine whose logs have one line and never end.
struct Endless;

#[async_trait]
impl ContainerLogs for Endless {
    async fn logs(&self, _: &Uid, _: LogOptions) -> Result<Option<LogStream>, PortError> {
        let first = stream::iter([Ok(Bytes::from_static(b"one\n"))]);
        Ok(Some(first.chain(stream::pending()).boxed()))
    }
}

/// Knows everybody, until all sessions are ended; fails when broken.
#[derive(Default)]
struct Sessions {
    ended: AtomicBool,
    broken: AtomicBool,
}

#[async_trait]
impl Authenticator for Sessions {
    async fn account(&self, claims: &SessionClaims) -> Result<Option<Account>> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(ApiError::internal("no database"));
        }
        let ended = self.ended.load(Ordering::Relaxed);
        Ok((!ended).then(|| account(claims.username.as_str())))
    }
}

fn account(name: &str) -> Account {
    Account {
        uid: Uid::from(name.to_owned()),
        name: name.parse().unwrap(),
        role: Role::User,
    }
}

fn session(name: &str, issued_at: Timestamp) -> Session {
    let account = account(name);
    let claims = SessionClaims::new(account.name.clone(), issued_at);
    Session { account, claims }
}

async fn with_logs() -> (World, Arc<Sessions>) {
    let mut world = world().await;
    let sessions = Arc::new(Sessions::default());
    let deps = Arc::get_mut(&mut world.deps).unwrap();
    deps.logs = Arc::new(Endless);
    deps.authenticator = sessions.clone();
    (world, sessions)
}

type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, warp::Error>;

/// Follows alice's log; gives the body after its first line.
async fn following(world: &World, reader: Option<&Session>) -> Result<Body> {
    let params = LogParams {
        follow: Some(true),
        ..LogParams::default()
    };
    let alice = account("alice");
    let reader = match reader {
        Some(session) => Actor::Session(session.clone()),
        None => Actor::Socket { uid: Some(0) },
    };
    let reply = logs(&world.deps, &reader, (&alice.uid, &alice.name), &params).await?;
    let response = reply.into_reply().into_response(&world.deps.shutdown)?;
    let mut body = response.into_body().boxed_unsync();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first, "data: one\n\n");
    Ok(body)
}

/// How long the stream goes on; `None` when it does for at least ten minutes.
async fn lasts(mut body: Body) -> Option<Duration> {
    let begun = Instant::now();
    let end = async { while body.frame().await.is_some() {} };
    let ended = timeout(Duration::from_secs(600), end).await;
    ended.ok().map(|()| begun.elapsed())
}

#[tokio::test]
async fn l63_the_right_to_follow_lasts_as_long_as_the_stream() {
    let (world, _) = with_logs().await;
    let (alice, bob) = (session("alice", NOW), session("bob", NOW));
    let mut held = Vec::new();
    for _ in 0..PER_ACCOUNT {
        held.push(following(&world, Some(&alice)).await.unwrap());
    }
    let error = following(&world, Some(&alice)).await.err().unwrap();
    assert_eq!(
        (error.status().as_u16(), error.code()),
        (429, "too_many_streams")
    );
    let retry = http::header::RETRY_AFTER;
    let reply = error.to_reply().into_response(&world.deps.shutdown);
    assert!(reply.unwrap().headers().contains_key(retry));
    following(&world, Some(&bob)).await.unwrap();
    following(&world, None).await.unwrap();
    held.pop();
    following(&world, Some(&alice)).await.unwrap();
}

#[tokio::test]
async fn l7_a_followed_log_ends_with_its_session() {
    let (world, sessions) = with_logs().await;
    let (alice, socket) = (session("alice", NOW), None);
    let of_session = following(&world, Some(&alice)).await.unwrap();
    let of_socket = following(&world, socket).await.unwrap();
    let old = session("alice", NOW.minus(VALIDITY));
    let of_old = following(&world, Some(&old)).await.unwrap();
    tokio::time::pause();
    world.clock.advance(Duration::from_secs(1));
    let lasted = lasts(of_old).await.expect("24 hours are over");
    assert!(lasted > RECHECK / 2 && lasted < RECHECK * 2, "{lasted:?}");
    // What cannot be looked up is not known to be dead.
    sessions.broken.store(true, Ordering::Relaxed);
    let another = following(&world, Some(&alice)).await.unwrap();
    assert_eq!(lasts(another).await, None);
    sessions.broken.store(false, Ordering::Relaxed);
    sessions.ended.store(true, Ordering::Relaxed);
    world.deps.session_ends.report(&alice.account.uid);
    let lasted = lasts(of_session).await.unwrap();
    assert!(lasted < Duration::from_secs(1), "{lasted:?}");
    assert_eq!(lasts(of_socket).await, None);
}
