//! Asks agents that were ready, again and again, whether they still answer: outside of passes, many at once. A pass registers the
//! agent that it found ready; only an answer that is new wakes its key.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{Stream, StreamExt};
use schema::ids::Uid;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use crate::drivers::agent_probe::{AgentProbe, Answer};
use crate::runtime::WorldEvent;
use crate::runtime::backoff::Jitter;

/// Most probes at once.
const PROBES: usize = 64;
/// Longest time for an answer: a busy host is slow, and a hung agent never answers.
const TIMEOUT: Duration = Duration::from_secs(5);
/// From so many on, more than half of all agents that fail at once are no fault of theirs.
const MANY: usize = 4;
/// Probes are spread by this share around the interval.
const SPREAD: f64 = 0.1;
/// Wakeups that wait for the reconciler; those beyond are found by the resync.
const WAKEUPS: usize = 1024;

/// An agent to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// Its container.
    pub(super) engine_id: String,
    /// Address in the agents' network.
    pub(super) address: String,
    /// Port of its readiness check.
    pub(super) port: u16,
    /// Path of its readiness check.
    pub(super) path: String,
    /// Time between two probes.
    pub(super) interval: Duration,
    /// Failures in a row from which it counts as unresponsive.
    pub(super) threshold: u32,
}

/// The agents that are asked.
pub(super) struct Liveness {
    agents: Arc<dyn AgentProbe>,
    state: Mutex<State>,
    changed: Notify,
    wakeups: mpsc::Sender<Uid>,
    woken: Mutex<Option<mpsc::Receiver<Uid>>>,
}

struct State {
    agents: HashMap<Uid, Watched>,
    /// Agents that have not answered the newest question.
    failing: usize,
    /// So many fail at once that none is restarted for it.
    suspended: bool,
    due: BTreeMap<(Instant, u64), Uid>,
    sequence: u64,
    jitter: Jitter,
}

struct Watched {
    target: Target,
    failures: u32,
    /// Its place among those that are due; `None` while it is asked.
    due: Option<(Instant, u64)>,
}

impl Liveness {
    /// No agent yet.
    pub(super) fn new(agents: Arc<dyn AgentProbe>, jitter: Jitter) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "wakeups of all agents; one that finds no place is found by the next resync"
        )]
        let (wakeups, woken) = mpsc::channel(WAKEUPS);
        Self {
            agents,
            state: Mutex::new(State {
                agents: HashMap::new(),
                failing: 0,
                suspended: false,
                due: BTreeMap::new(),
                sequence: 0,
                jitter,
            }),
            changed: Notify::new(),
            wakeups,
            woken: Mutex::new(Some(woken)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keys whose agents have stopped or begun to answer. Empty when it was taken before.
    pub(super) fn events(&self) -> impl Stream<Item = WorldEvent<Uid>> + Send + use<> {
        let woken = self
            .woken
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        futures::stream::unfold(woken, |woken| async move {
            let mut woken = woken?;
            let uid = woken.recv().await?;
            Some((WorldEvent::Hint(uid), Some(woken)))
        })
        .chain(futures::stream::pending())
    }

    /// Asks this agent from now on; one that is asked already goes on as it was.
    pub(super) fn watch(&self, uid: &Uid, target: Target) {
        let mut state = self.state();
        let known = state.agents.get(uid);
        if known.is_some_and(|watched| watched.target == target) {
            return;
        }
        state.forget(uid);
        let watched = Watched {
            target,
            failures: 0,
            due: None,
        };
        state.agents.insert(uid.clone(), watched);
        state.schedule(uid);
        drop(state);
        self.changed.notify_one();
    }

    /// Asks no agent that was known before.
    pub(super) fn forget_all(&self) {
        let mut state = self.state();
        state.agents.clear();
        state.failing = 0;
        state.due.clear();
    }

    /// Reports that this user's agent is asked.
    pub(super) fn is_watched(&self, uid: &Uid) -> bool {
        self.state().agents.contains_key(uid)
    }

    /// Asks this user's agent no more.
    pub(super) fn forget(&self, uid: &Uid) {
        self.state().forget(uid);
    }

    /// Returns how often in a row this container's agent has not answered, once that is too often.
    pub(super) fn unanswered(&self, uid: &Uid, engine_id: &str) -> Option<u32> {
        let state = self.state();
        let watched = state.agents.get(uid)?;
        let is_same = watched.target.engine_id == engine_id;
        (is_same && watched.is_unresponsive()).then_some(watched.failures)
    }

    /// Asks for ever.
    pub(super) async fn run(self: Arc<Self>) {
        let mut probes = FuturesUnordered::new();
        loop {
            while probes.len() < PROBES
                && let Some((uid, target)) = self.state().take_due(Instant::now())
            {
                let agents = &self.agents;
                probes.push(async move {
                    let Target {
                        address,
                        port,
                        path,
                        interval,
                        ..
                    } = &target;
                    let limit = TIMEOUT.min(*interval);
                    let answer = agents.ask(address, *port, path, limit).await;
                    (uid, target.engine_id, answer)
                });
            }
            let has_room = probes.len() < PROBES;
            let next = self.state().due.keys().next().map(|(at, _)| *at);
            let due = async {
                match next.filter(|_| has_room) {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some((uid, engine_id, answer)) = probes.next() => {
                    self.record(&uid, &engine_id, answer);
                }
                () = due => {}
                () = self.changed.notified() => {}
            }
        }
    }

    fn record(&self, uid: &Uid, engine_id: &str, answer: Answer) {
        if self.state().record(uid, engine_id, answer) {
            // What has no room is found by the resync.
            let _ = self.wakeups.try_send(uid.clone());
        }
    }
}

impl Watched {
    fn is_unresponsive(&self) -> bool {
        self.failures >= self.target.threshold
    }
}

impl State {
    fn forget(&mut self, uid: &Uid) {
        let Some(watched) = self.agents.remove(uid) else {
            return;
        };
        self.failing -= usize::from(watched.failures > 0);
        if let Some(due) = watched.due {
            self.due.remove(&due);
        }
    }

    /// Suspends restarts while so many fail at the same time that it is more likely the host, or the way to them.
    fn suspend(&mut self) {
        let (failing, agents) = (self.failing, self.agents.len());
        let suspended = failing >= MANY && failing * 2 > agents;
        if suspended != self.suspended {
            self.suspended = suspended;
            match suspended {
                true => tracing::warn!(
                    failing,
                    agents,
                    "most agents do not answer: none is restarted for it; look at the host and the agents' network"
                ),
                false => tracing::info!(failing, agents, "most agents answer again"),
            }
        }
    }

    fn schedule(&mut self, uid: &Uid) {
        let Some(watched) = self.agents.get_mut(uid) else {
            return;
        };
        self.sequence += 1;
        let wait = self.jitter.around(watched.target.interval, SPREAD);
        let due = (Instant::now() + wait, self.sequence);
        watched.due = Some(due);
        self.due.insert(due, uid.clone());
    }

    fn take_due(&mut self, now: Instant) -> Option<(Uid, Target)> {
        let first = self
            .due
            .first_entry()
            .filter(|entry| entry.key().0 <= now)?;
        let uid = first.remove();
        let watched = self.agents.get_mut(&uid)?;
        watched.due = None;
        Some((uid, watched.target.clone()))
    }

    /// Counts an answer, and reports that the agent has stopped or begun to answer by it.
    fn record(&mut self, uid: &Uid, engine_id: &str, answer: Answer) -> bool {
        let Some(watched) = self.agents.get_mut(uid) else {
            return false;
        };
        // Another container's may be due already.
        if watched.due.is_some() || watched.target.engine_id != engine_id {
            return false;
        }
        let before = watched.is_unresponsive();
        let failures = match answer {
            Answer::Ready => 0,
            Answer::NotReady => watched.failures.saturating_add(1),
            Answer::Unknown => watched.failures,
        };
        self.failing += usize::from(failures > 0);
        self.failing -= usize::from(watched.failures > 0);
        watched.failures = failures;
        self.suspend();
        if self.suspended
            && let Some(watched) = self.agents.get_mut(uid)
            && !before
        {
            watched.failures = failures.min(watched.target.threshold - 1);
        }
        let after = self.agents.get(uid).is_some_and(Watched::is_unresponsive);
        let changed = after != before;
        self.schedule(uid);
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    #[async_trait::async_trait]
    impl AgentProbe for Silent {
        async fn ask(&self, _: &str, _: u16, _: &str, _: Duration) -> Answer {
            Answer::NotReady
        }
    }

    fn target(engine_id: &str) -> Target {
        Target {
            engine_id: engine_id.to_owned(),
            address: "127.0.0.1".to_owned(),
            port: 1,
            path: "/".to_owned(),
            interval: Duration::from_secs(30),
            threshold: 3,
        }
    }

    /// Lets the time of the next probe come, and records its outcome.
    async fn probe(liveness: &Liveness, answers: bool) -> Option<Uid> {
        tokio::time::advance(Duration::from_secs(33)).await;
        let (uid, target) = liveness.state().take_due(Instant::now())?;
        let answer = if answers {
            Answer::Ready
        } else {
            Answer::NotReady
        };
        liveness.record(&uid, &target.engine_id, answer);
        Some(uid)
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_changed_answer_wakes_the_key() {
        let liveness = Liveness::new(Arc::new(Silent), Jitter::fixed(0.5));
        let mut events = Box::pin(liveness.events());
        let uid = Uid::random();
        liveness.watch(&uid, target("a"));
        for (answers, unanswered, wakes) in [
            (true, None, false),
            (false, None, false),
            (false, None, false),
            (true, None, false),
            (false, None, false),
            (false, None, false),
            (false, Some(3), true),
            (false, Some(4), false),
            (true, None, true),
        ] {
            // A pass in between changes nothing.
            liveness.watch(&uid, target("a"));
            assert_eq!(probe(&liveness, answers).await.as_ref(), Some(&uid));
            assert_eq!(liveness.unanswered(&uid, "a"), unanswered);
            let woken = futures::poll!(events.next());
            assert_eq!(woken.is_ready(), wakes);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn another_container_begins_without_failures() {
        let liveness = Liveness::new(Arc::new(Silent), Jitter::fixed(0.5));
        let uid = Uid::random();
        liveness.watch(&uid, target("a"));
        tokio::time::advance(Duration::from_secs(33)).await;
        let (_, asked) = liveness.state().take_due(Instant::now()).unwrap();
        liveness.watch(&uid, target("b"));
        for _ in 0..3 {
            liveness.record(&uid, &asked.engine_id, Answer::NotReady);
        }
        assert_eq!(liveness.unanswered(&uid, "b"), None);
        assert_eq!(liveness.unanswered(&uid, "a"), None);
        liveness.forget(&uid);
        assert!(liveness.state().due.is_empty() && probe(&liveness, false).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn probes_are_spread_over_the_interval() {
        let liveness = Liveness::new(Arc::new(Silent), Jitter::seeded(1));
        for _ in 0..100 {
            liveness.watch(&Uid::random(), target("a"));
        }
        let state = liveness.state();
        let times: std::collections::BTreeSet<_> = state.due.keys().map(|(at, _)| *at).collect();
        assert!(times.len() > 90);
    }
    #[tokio::test(start_paused = true)]
    async fn most_agents_failing_at_once_are_not_unresponsive() {
        let liveness = Liveness::new(Arc::new(Silent), Jitter::fixed(0.5));
        let uids: Vec<Uid> = (0..7).map(|_| Uid::random()).collect();
        for uid in &uids {
            liveness.watch(uid, target("a"));
        }
        let fail = async |failing: usize| {
            for _ in 0..3 {
                tokio::time::advance(Duration::from_secs(33)).await;
                let due = || liveness.state().take_due(Instant::now());
                while let Some((uid, _)) = due() {
                    let fails = uids[..failing].contains(&uid);
                    let answer = if fails {
                        Answer::NotReady
                    } else {
                        Answer::Ready
                    };
                    liveness.record(&uid, "a", answer);
                }
            }
        };
        fail(5).await;
        assert!(
            uids.iter()
                .all(|uid| liveness.unanswered(uid, "a").is_none())
        );
        fail(0).await;
        fail(2).await;
        assert_eq!(liveness.unanswered(&uids[0], "a"), Some(3));
    }
}
