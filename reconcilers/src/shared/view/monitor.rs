//! Notices an event stream that is open but silent.
//!
//! An engine says nothing while nothing happens, so silence alone proves nothing. But every container
//! that came, went, started or ended since the last listing has an event. When a listing shows such a
//! change and its event has not come after a while, either, the stream is silent.

use std::collections::HashMap;
use std::time::Duration;

use engine::{Container, ContainerState};
use schema::ids::Uid;
use tokio::time::Instant;

/// How long an event may come after its change was seen, or before: a busy engine is slow to report, and
/// may report the end of a container a moment before its listing shows it.
pub(super) const LATEST: Duration = Duration::from_secs(10);

/// The number of a listing or event, in the order in which they began or came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn(u64);

/// What of a user's containers never changes without an event: which there are, and which run.
type Shape = Vec<(String, bool)>;

fn shape(containers: &[Container]) -> Shape {
    let mut shape: Shape = containers
        .iter()
        .map(|c| (c.id.clone(), c.state == ContainerState::Running))
        .collect();
    shape.sort();
    shape
}

/// Compares what listings show with the events.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    /// Since when there is a stream; `None`: there is none, so nothing is expected of it.
    opened: Option<Turn>,
    turns: u64,
    /// What the latest listing showed of each user who has containers.
    seen: HashMap<Uid, (Shape, Turn)>,
    /// When the latest listing of all users began.
    all_seen: Option<Turn>,
    /// Users of whom an event came that no listing has answered yet, or a moment ago.
    received: HashMap<Uid, (Turn, Instant)>,
    /// Users of whom a listing showed a change without an event, and when it did.
    owed: HashMap<Uid, Instant>,
}

impl Monitor {
    fn turn(&mut self) -> Turn {
        self.turns += 1;
        Turn(self.turns)
    }

    /// A stream is opened. To be called before the listing that shows from where on it reports.
    pub fn opened(&mut self) {
        self.opened = Some(self.turn());
        self.received.clear();
        self.owed.clear();
    }

    /// The stream was left.
    pub fn closed(&mut self) {
        self.opened = None;
        self.owed.clear();
    }

    /// An event came.
    pub fn received(&mut self, uid: &Uid) {
        let turn = self.turn();
        self.owed.remove(uid);
        self.received.insert(uid.clone(), (turn, Instant::now()));
    }

    /// A listing is about to begin.
    pub fn begin(&mut self) -> Turn {
        self.turn()
    }

    /// A listing showed this of one user.
    pub fn listed(&mut self, begun: Turn, uid: &Uid, containers: &[Container]) {
        self.compare(begun, uid, shape(containers));
        self.answer(begun, uid);
    }

    /// A listing showed this of all users.
    pub fn listed_all(&mut self, begun: Turn, all: &HashMap<Uid, Vec<Container>>) {
        let gone: Vec<Uid> = self
            .seen
            .keys()
            .filter(|uid| !all.contains_key(*uid))
            .cloned()
            .collect();
        for (uid, containers) in all {
            self.compare(begun, uid, shape(containers));
        }
        for uid in gone {
            self.compare(begun, &uid, Shape::new());
        }
        self.all_seen = self.all_seen.max(Some(begun));
        self.received
            .retain(|_, (turn, at)| *turn > begun || at.elapsed() <= LATEST);
    }

    fn answer(&mut self, begun: Turn, uid: &Uid) {
        let answered = |(turn, at): &(Turn, Instant)| *turn < begun && at.elapsed() > LATEST;
        if self.received.get(uid).is_some_and(answered) {
            self.received.remove(uid);
        }
    }

    fn compare(&mut self, begun: Turn, uid: &Uid, shape: Shape) {
        let before = self.seen.get(uid);
        // A later listing has ended earlier and knows better.
        if before.is_some_and(|(_, turn)| *turn > begun) {
            return;
        }
        let changed = before.map_or(!shape.is_empty(), |(before, _)| *before != shape);
        // What had changed before the stream was opened is none of its business.
        let before = before.map(|(_, turn)| *turn).or(self.all_seen);
        let expected = self.opened.is_some() && before > self.opened;
        if shape.is_empty() {
            self.seen.remove(uid);
        } else {
            self.seen.insert(uid.clone(), (shape, begun));
        }
        if changed && expected && !self.received.contains_key(uid) {
            self.owed.entry(uid.clone()).or_insert_with(Instant::now);
        }
    }

    /// When the stream counts as silent unless an event comes before.
    pub fn silent_at(&self) -> Option<Instant> {
        self.owed.values().min().map(|at| *at + LATEST)
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn container(id: &str, state: ContainerState) -> Container {
        Container {
            id: id.to_owned(),
            name: id.to_owned(),
            state,
            ..Container::default()
        }
    }

    fn up(id: &str) -> Vec<Container> {
        vec![container(id, ContainerState::Running)]
    }

    fn uid(name: &str) -> Uid {
        Uid::from(name.to_owned())
    }

    /// A stream that is open, with one container of user `a`.
    fn monitor() -> Monitor {
        let mut monitor = Monitor::default();
        monitor.opened();
        let turn = monitor.begin();
        monitor.listed_all(turn, &[(uid("a"), up("1"))].into());
        monitor
    }

    #[tokio::test(start_paused = true)]
    async fn l57_a_change_without_its_event_makes_the_stream_silent() {
        for lists_all in [true, false] {
            let mut monitor = monitor();
            let turn = monitor.begin();
            if lists_all {
                monitor.listed_all(turn, &HashMap::new());
            } else {
                monitor.listed(turn, &uid("a"), &[]);
            }
            assert_eq!(monitor.silent_at(), Some(Instant::now() + LATEST));
            monitor.received(&uid("b"));
            assert!(monitor.silent_at().is_some(), "of somebody else");
            monitor.received(&uid("a"));
            assert_eq!(monitor.silent_at(), None, "late, but received");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_announced_or_has_not_changed_owes_no_event() {
        let mut monitor = monitor();
        let turn = monitor.begin();
        monitor.listed(turn, &uid("a"), &up("1"));
        monitor.received(&uid("a"));
        let turn = monitor.begin();
        monitor.listed(turn, &uid("a"), &up("2"));
        assert_eq!(monitor.silent_at(), None);
        // The engine reports a moment before its listing shows it.
        let turn = monitor.begin();
        monitor.listed(turn, &uid("a"), &up("3"));
        assert_eq!(monitor.silent_at(), None);
        // The announcement was answered; the next change needs its own.
        tokio::time::sleep(LATEST * 2).await;
        let turn = monitor.begin();
        monitor.listed(turn, &uid("a"), &up("3"));
        let turn = monitor.begin();
        let ended = [container("3", ContainerState::Exited)];
        monitor.listed(turn, &uid("a"), &ended);
        assert!(monitor.silent_at().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_during_a_listing_announces_what_the_next_one_shows() {
        let mut monitor = monitor();
        let slow = monitor.begin();
        monitor.received(&uid("a"));
        let fast = monitor.begin();
        monitor.listed(fast, &uid("a"), &up("2"));
        monitor.listed_all(slow, &[(uid("a"), up("1"))].into());
        let turn = monitor.begin();
        monitor.listed_all(turn, &[(uid("a"), up("2"))].into());
        assert_eq!(
            monitor.silent_at(),
            None,
            "the slow listing showed the past"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_changed_before_the_stream_was_opened_is_not_owed() {
        let mut monitor = monitor();
        let turn = monitor.begin();
        monitor.listed(turn, &uid("a"), &[]);
        monitor.closed();
        assert_eq!(monitor.silent_at(), None);
        let turn = monitor.begin();
        monitor.listed(turn, &uid("a"), &up("3"));
        monitor.opened();
        let all = [(uid("a"), up("4")), (uid("b"), up("5"))];
        let turn = monitor.begin();
        monitor.listed_all(turn, &all.into());
        assert_eq!(monitor.silent_at(), None);
        let turn = monitor.begin();
        monitor.listed(turn, &uid("c"), &up("6"));
        assert!(
            monitor.silent_at().is_some(),
            "there was none when it was opened"
        );
    }
}
