//! An entry in the audit trail for each call of a tool: who has called what, of which executor, and how it came out. Never what was
//! typed or read, nor whole addresses.
//!
//! An entry has its place in a bounded channel before the call is carried out, so no call goes without; one task writes many at a time, and
//! folds those of one kind that are too many for a day.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use schema::audit::{About, Author, CALL, Calls, Entry, LISTED_A_DAY, Outcome};
use schema::clock::SharedClock;
use schema::metric::{self, Held};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::{OwnedPermit, Receiver, Sender};
use tokio::time::{Instant, sleep, timeout};
use url::Url;

use super::tools::{CallResult, Caller};
use crate::deps::Deps;
use crate::error::chain;
use crate::executors::{ConnectionId, Failure, Service};
use crate::limits::MCP_AUDIT;

/// Most calls that are under way or wait to be written.
#[cfg(test)]
const WAITING: usize = MCP_AUDIT.all();
/// Most entries that are written in one transaction.
const BATCH: usize = 200;
/// How long more of them are waited for.
const GATHER: Duration = Duration::from_millis(500);
/// When to try again what could not be written.
const RETRY: Duration = Duration::from_secs(1);
/// How often that is tried; less often at the end of the service.
const TRIES: [usize; 2] = [600, 3];
/// How long the end of the service waits for calls that are under way.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// Who asks, besides the account.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Origin {
    /// The client's address.
    pub address: Option<IpAddr>,
    /// Under which id the log speaks of the request.
    pub request_id: String,
    /// The session of the agent, as far as it is told here: a part of its hash.
    pub session: Option<String>,
}

impl Origin {
    /// The same in a session.
    #[must_use]
    pub(super) fn within(mut self, session: Option<&str>) -> Self {
        self.session = session.map(|id| {
            let mut hash = hex::encode(Sha256::digest(id));
            hash.truncate(8);
            hash
        });
        self
    }
}

/// How a call came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
enum CameOut {
    Ok,
    Error,
    Refused,
    TimedOut,
    Lost,
    Cancelled,
}

/// Where entries go.
pub(super) struct Audit {
    sender: Sender<Entry>,
    receiver: Mutex<Option<Receiver<Entry>>>,
    clock: SharedClock,
    /// Arguments are hashed under it: a hash alone would tell a short text that was typed.
    key: [u8; 32],
}

#[derive(Debug, Default)]
struct Facts {
    came_out: Option<CameOut>,
    executor: Option<(ConnectionId, Option<String>)>,
    place: Option<String>,
    called: Option<String>,
    bytes: usize,
}

impl std::fmt::Debug for Audit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}

/// What is known of a call. It is recorded when this is dropped.
pub(super) struct Record {
    permit: Option<OwnedPermit<Entry>>,
    clock: SharedClock,
    begun: Instant,
    author: Author,
    object: About,
    session: Option<String>,
    arguments: String,
    facts: Mutex<Facts>,
    service: Service,
    _open: Held,
}

impl Audit {
    pub(super) fn new(clock: SharedClock, key: [u8; 32]) -> Self {
        let (sender, receiver) = MCP_AUDIT.queue();
        Self {
            sender,
            receiver: Mutex::new(Some(receiver)),
            clock,
            key,
        }
    }

    /// Begins the record of a call, once there is room for it.
    ///
    /// # Errors
    /// Why the call is not to be carried out: nothing is recorded now.
    pub(super) async fn begin(
        &self,
        caller: &Caller,
        tool: &str,
        arguments: &Value,
    ) -> Result<Record, &'static str> {
        let room = self.sender.clone().reserve_owned();
        let room = timeout(caller.bounds.time, room).await;
        let permit = room.ok().and_then(Result::ok);
        let permit =
            permit.ok_or("the call cannot be recorded now; nothing was done, try again later")?;
        let address = caller.origin.address.map(|address| address.to_string());
        let facts = Facts {
            place: arguments.as_object().and_then(place),
            ..Facts::default()
        };
        Ok(Record {
            permit: Some(permit),
            clock: self.clock.clone(),
            begun: Instant::now(),
            author: Author {
                actor: caller.account.name.to_string(),
                address: address.unwrap_or_default(),
                action: CALL.to_owned(),
                request_id: caller.origin.request_id.clone(),
            },
            object: About::object(caller.service, tool),
            session: caller.origin.session.clone(),
            arguments: self.hash(arguments),
            facts: Mutex::new(facts),
            service: caller.service,
            _open: metric::TOOL_CALLS_OPEN.hold(&[caller.service.into()]),
        })
    }

    fn hash(&self, arguments: &Value) -> String {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else {
            // Keys of any length are taken.
            return String::new();
        };
        mac.update(arguments.to_string().as_bytes());
        let mut hash = hex::encode(mac.finalize().into_bytes());
        hash.truncate(16);
        hash
    }
}

/// Where a call acts, as its arguments say: a host or coordinates.
fn place(arguments: &Map<String, Value>) -> Option<String> {
    let url = arguments.get("url").and_then(Value::as_str);
    if let Some(url) = url.and_then(|url| Url::parse(url).ok()) {
        return Some(format!("host={}", url.host_str()?));
    }
    let number = |name: &str| arguments.get(name).and_then(Value::as_i64);
    let (x, y) = (
        number("x").or_else(|| number("startX"))?,
        number("y").or_else(|| number("startY"))?,
    );
    Some(format!("at={x},{y}"))
}

impl Record {
    /// It goes to this executor.
    pub(super) fn at(&self, executor: Option<&(ConnectionId, Option<String>)>) {
        self.facts().executor = executor.cloned();
    }

    /// It acts on this page.
    pub(super) fn on(&self, url: &Url) {
        let host = url.host_str().unwrap_or("-");
        self.facts().place = Some(format!("host={host}"));
    }

    /// It acts at this place of the screen.
    pub(super) fn at_place(&self, [x, y]: [i64; 2]) {
        self.facts().place = Some(format!("at={x},{y}"));
    }

    /// It was called under another name than that of the tool that is carried out.
    pub(super) fn called_as(&self, tool: &str) {
        self.facts().called = Some(format!("called={tool}"));
    }

    /// It was not carried out.
    pub(super) fn refused(&self) {
        self.facts().came_out = Some(CameOut::Refused);
    }

    /// The executor has not answered.
    pub(super) fn failed(&self, failure: Failure) {
        self.facts().came_out = Some(match failure {
            Failure::TimedOut | Failure::NoTime | Failure::Held => CameOut::TimedOut,
            Failure::Gone | Failure::Lost | Failure::Replaced => CameOut::Lost,
        });
    }

    /// It has this result.
    pub(super) fn end(&self, result: &CallResult) {
        let mut facts = self.facts();
        facts.bytes = result.bytes();
        facts.came_out.get_or_insert(match result.is_error {
            true => CameOut::Error,
            false => CameOut::Ok,
        });
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn detail(&self, facts: &Facts, came_out: CameOut) -> String {
        let mut parts = vec![
            format!("outcome={came_out}"),
            format!("arguments={}", self.arguments),
            format!("ms={}", self.begun.elapsed().as_millis()),
            format!("bytes={}", facts.bytes),
        ];
        parts.extend(facts.place.clone());
        parts.extend(facts.called.clone());
        parts.extend(
            self.session
                .as_ref()
                .map(|session| format!("session={session}")),
        );
        if let Some((connection, instance)) = &facts.executor {
            parts.push(format!("executor={}", connection.0));
            let instance = instance.iter().map(|it| {
                let plain = it.chars().filter(|c| !c.is_whitespace()).take(64);
                format!("instance={}", plain.collect::<String>())
            });
            parts.extend(instance);
        }
        parts.join(" ")
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else {
            return;
        };
        let facts = std::mem::take(&mut *self.facts());
        let came_out = facts.came_out.unwrap_or(CameOut::Cancelled);
        metric::TOOL_CALLS.increment(&[self.service.into(), came_out.into()]);
        let outcome = match came_out {
            CameOut::Ok => Outcome::Ok,
            CameOut::Refused => Outcome::Refused,
            CameOut::Error | CameOut::TimedOut | CameOut::Lost | CameOut::Cancelled => {
                Outcome::Failed
            }
        };
        let about = self.object.clone().detail(self.detail(&facts, came_out));
        let entry = Entry::new(self.author.clone(), about, outcome, self.clock.now());
        permit.send(entry);
    }
}

/// Writes what is recorded until the service stops, and then what calls under way still leave.
pub async fn run(deps: Deps) {
    let audit = &deps.mcp.audit;
    let receiver = audit
        .receiver
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let Some(mut receiver) = receiver else {
        return;
    };
    let mut batch = Vec::with_capacity(BATCH);
    let mut calls = Calls::new(LISTED_A_DAY);
    loop {
        let received = receiver.recv_many(&mut batch, BATCH);
        if deps.shutdown.run_until_cancelled(received).await.is_none() {
            break;
        }
        if batch.len() < BATCH {
            let _ = deps.shutdown.run_until_cancelled(sleep(GATHER)).await;
            while batch.len() < BATCH
                && let Ok(entry) = receiver.try_recv()
            {
                batch.push(entry);
            }
        }
        write(&mut calls, &mut batch, &deps).await;
    }
    receiver.close();
    let last = async {
        while receiver.recv_many(&mut batch, BATCH).await > 0 {
            write(&mut calls, &mut batch, &deps).await;
        }
    };
    if timeout(LAST_CALLS, last).await.is_err() {
        tracing::warn!(
            "tool calls were cut off by the end of the service, and are not in the audit trail"
        );
    }
}

/// Writes entries, as often as it takes. That one is written twice is possible where a commit was cut off.
async fn write(calls: &mut Calls, batch: &mut Vec<Entry>, deps: &Deps) {
    let mut tries = 0;
    while let Err(error) = deps.writer.record_calls(calls, batch).await {
        tries += 1;
        let [most, at_the_end] = TRIES;
        let most = if deps.shutdown.is_cancelled() {
            at_the_end
        } else {
            most
        };
        let (error, entries) = (chain(&error), batch.len());
        if tries >= most {
            tracing::error!(
                error,
                entries,
                "entries of tool calls are lost to the audit trail"
            );
            break;
        }
        if tries == 1 {
            tracing::warn!(
                error,
                entries,
                "entries of tool calls cannot be written; they are tried again"
            );
        }
        sleep(RETRY).await;
    }
    batch.clear();
}

#[cfg(test)]
mod tests {
    use schema::ids::Uid;
    use serde_json::json;
    use tokio::sync::mpsc::error::TryRecvError;

    use super::*;
    use crate::auth::{Account, Role};
    use crate::executors::Service;
    use crate::mcp::tools::Bounds;
    use crate::testing::{World, world};

    fn caller(longest: Duration) -> Caller {
        let origin = Origin {
            address: Some([192, 0, 2, 9].into()),
            request_id: "r-1".to_owned(),
            session: None,
        };
        Caller {
            account: Account {
                uid: Uid::random(),
                name: "alice".parse().unwrap(),
                role: Role::User,
            },
            token: 1,
            service: Service::Browser,
            bounds: Bounds {
                time: longest,
                bytes: usize::MAX,
            },
            origin: origin.within(Some("secret-session")),
        }
    }

    async fn begin(world: &World, tool: &str, arguments: Value) -> Record {
        let caller = caller(Duration::from_secs(1));
        let begun = world.deps.mcp.audit.begin(&caller, tool, &arguments);
        begun.await.map_err(ToOwned::to_owned).unwrap()
    }

    fn receiver(world: &World) -> Receiver<Entry> {
        world
            .deps
            .mcp
            .audit
            .receiver
            .lock()
            .unwrap()
            .take()
            .unwrap()
    }

    #[tokio::test]
    async fn an_entry_tells_where_and_how_but_neither_what_was_typed_nor_the_session() {
        let world = world().await;
        let mut entries = receiver(&world);
        let arguments = json!({"selector": "#pin", "text": "1234"});
        let plain = hex::encode(Sha256::digest(arguments.to_string()));
        let record = begin(&world, "browser_type", arguments).await;
        record.on(&Url::parse("https://bank.example/accounts?id=7").unwrap());
        record.at(Some(&(ConnectionId(3), Some("my laptop".to_owned()))));
        assert_eq!(entries.try_recv(), Err(TryRecvError::Empty));
        record.end(&CallResult::text("typed"));
        drop(record);
        let entry = entries.try_recv().unwrap();
        let shown = [&entry.actor, &entry.address, &entry.action, &entry.object];
        let expected = ["alice", "192.0.2.9", "mcp_call", "browser/browser_type"];
        assert_eq!(shown, expected);
        assert_eq!([&*entry.outcome, &*entry.request_id], ["ok", "r-1"]);
        let detail = &entry.detail;
        for part in [
            "outcome=ok ",
            "host=bank.example ",
            "executor=3 instance=mylaptop",
            " session=",
        ] {
            assert!(detail.contains(part), "{detail}");
        }
        // Whoever has the trail cannot try all numbers of four digits.
        let told = ["1234", "accounts", "secret-session", &plain[..16]];
        assert!(told.iter().all(|text| !detail.contains(text)), "{detail}");
    }

    #[tokio::test]
    async fn the_same_arguments_have_the_same_hash() {
        let world = world().await;
        let hash = async |arguments: Value| {
            begin(&world, "browser_type", arguments)
                .await
                .arguments
                .clone()
        };
        let one = hash(json!({"text": "a"})).await;
        assert_eq!(one.len(), 16);
        assert_eq!(one, hash(json!({"text": "a"})).await);
        assert_ne!(one, hash(json!({"text": "b"})).await);
    }

    #[tokio::test]
    async fn outcomes_are_told_apart_and_whoever_goes_away_has_cancelled() {
        let world = world().await;
        let mut entries = receiver(&world);
        let failed = CallResult::error("no");
        for (failure, outcome) in [(Failure::TimedOut, "timed_out"), (Failure::Lost, "lost")] {
            let record = begin(&world, "browser_click", json!({})).await;
            record.failed(failure);
            record.end(&failed);
            drop(record);
            let entry = entries.try_recv().unwrap();
            assert_eq!(entry.outcome, "failed");
            assert!(entry.detail.starts_with(&format!("outcome={outcome} ")));
        }
        begin(&world, "browser_click", json!({})).await.end(&failed);
        assert!(
            entries
                .try_recv()
                .unwrap()
                .detail
                .starts_with("outcome=error ")
        );
        let record = begin(&world, "browser_click", json!({})).await;
        record.refused();
        record.end(&failed);
        drop(record);
        assert_eq!(entries.try_recv().unwrap().outcome, "refused");
        drop(begin(&world, "browser_click", json!({})).await);
        let cancelled = entries.try_recv().unwrap();
        assert!(cancelled.detail.starts_with("outcome=cancelled "));
    }

    #[tokio::test]
    async fn a_call_waits_for_room_and_is_not_carried_out_without() {
        let world = world().await;
        let entries = receiver(&world);
        let mut held = Vec::new();
        for _ in 0..WAITING {
            held.push(begin(&world, "browser_click", json!({})).await);
        }
        let soon = caller(Duration::from_millis(20));
        let audit = &world.deps.mcp.audit;
        let refused = audit.begin(&soon, "browser_click", &json!({})).await;
        assert!(refused.is_err_and(|why| why.contains("cannot be recorded")));
        // What is under way still has its place.
        assert_eq!(entries.len(), 0);
    }

    #[tokio::test]
    async fn more_than_a_batch_is_in_the_trail_when_the_service_has_ended() {
        let world = world().await;
        for _ in 0..BATCH + 7 {
            begin(&world, "browser_click", json!({}))
                .await
                .end(&CallResult::text("ok"));
        }
        let last = begin(&world, "browser_click", json!({})).await;
        let writing = run(world.deps.clone());
        let ending = async {
            world.deps.shutdown.cancel();
            tokio::time::sleep(Duration::from_millis(50)).await;
            last.end(&CallResult::text("ok"));
            drop(last);
        };
        tokio::join!(writing, ending);
        let mut connection = world.db.read().await.unwrap();
        let all = schema::audit::following(&mut connection, 0, 1000).await;
        assert_eq!(all.unwrap().len(), BATCH + 8);
    }
}
