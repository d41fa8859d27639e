//! The rules of executors.md, 6.2, one by one; `interleavings` tries all of them together.

mod interleavings;

use std::net::IpAddr;
use std::time::Duration;

use schema::ids::Uid;

use super::*;

const TABLET: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)));
const LAPTOP: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)));
const LIMIT: Duration = Duration::from_secs(30);
/// Which of the user's tokens everybody shows.
const TOKEN: i64 = 3;

fn uid(number: u8) -> Uid {
    format!("{number:032x}").into()
}

fn key(service: Service) -> Key {
    Key {
        user: uid(1),
        service,
    }
}

/// A registry at a time of its own.
#[derive(Default)]
struct Bench {
    registry: Registry,
    now: Moment,
}

impl Bench {
    fn apply(&mut self, event: Event) -> Vec<Effect> {
        self.registry.apply(self.now, event)
    }

    fn connect(&mut self, number: u64, service: Service, address: Option<IpAddr>) -> Vec<Effect> {
        self.apply(Event::Connected {
            connection: ConnectionId(number),
            key: key(service),
            address,
            token: TOKEN,
        })
    }

    fn introduce(&mut self, number: u64, instance: &str) -> Vec<Effect> {
        self.apply(Event::Introduced {
            connection: ConnectionId(number),
            protocol: Protocol::Introduced {
                instance: instance.to_owned(),
            },
        })
    }

    fn enter(&mut self, number: u64, service: Service, lane: Lane) -> Vec<Effect> {
        self.enter_one_of(number, service, lane, None)
    }

    fn enter_one_of(
        &mut self,
        number: u64,
        service: Service,
        lane: Lane,
        devices: Devices,
    ) -> Vec<Effect> {
        self.apply(Event::Entered {
            job: JobId(number),
            key: key(service),
            token: TOKEN,
            lane,
            devices,
        })
    }

    fn ask(&mut self, number: u64) -> Vec<Effect> {
        self.ask_within(number, LIMIT)
    }

    fn ask_within(&mut self, number: u64, limit: Duration) -> Vec<Effect> {
        self.apply(Event::Asked {
            job: JobId(number),
            limit,
        })
    }

    fn leave(&mut self, number: u64) -> Vec<Effect> {
        self.apply(Event::Left { job: JobId(number) })
    }

    fn answer(&mut self, connection: u64, id: u64) -> Vec<Effect> {
        self.apply(Event::Answered {
            connection: ConnectionId(connection),
            id,
        })
    }

    fn disconnect(&mut self, connection: u64) -> Vec<Effect> {
        self.apply(Event::Disconnected {
            connection: ConnectionId(connection),
        })
    }

    /// So much later, with all that was due meanwhile.
    fn later(&mut self, time: Duration) -> Vec<Effect> {
        let end = self.now.after(time);
        let mut effects = Vec::new();
        while let Some(at) = self.registry.due_at()
            && at <= end
        {
            self.now = self.now.max(at);
            effects.extend(self.apply(Event::Due));
        }
        self.now = end;
        effects
    }

    fn connected(&self, service: Service) -> Vec<u64> {
        let key = key(service);
        let all = self.registry.of_key(&key);
        all.map(|presence| presence.connection.0).collect()
    }
}

fn granted(number: u64) -> Effect {
    Effect::Granted { job: JobId(number) }
}

fn refused(number: u64, why: Refusal) -> Effect {
    Effect::Refused {
        job: JobId(number),
        why,
    }
}

fn failed(number: u64, why: Failure) -> Effect {
    Effect::Failed {
        job: JobId(number),
        why,
    }
}

fn written(job: u64, connection: u64, id: u64) -> Effect {
    Effect::Write {
        job: JobId(job),
        connection: ConnectionId(connection),
        id,
    }
}

fn closed(connection: u64, close: Close) -> Effect {
    Effect::Close {
        connection: ConnectionId(connection),
        close,
    }
}

#[test]
fn numbers_begin_at_one_and_belong_to_the_connection() {
    let mut bench = Bench::default();
    bench.connect(7, Service::Browser, TABLET);
    assert_eq!(bench.enter(1, Service::Browser, Lane::Act), [granted(1)]);
    assert_eq!(bench.ask(1), [written(1, 7, 1)]);
    assert_eq!(bench.answer(7, 1), [Effect::Completed { job: JobId(1) }]);
    assert_eq!(bench.ask(1), [written(1, 7, 2)]);
    bench.connect(8, Service::Computer, TABLET);
    assert_eq!(bench.enter(2, Service::Computer, Lane::Act), [granted(2)]);
    assert_eq!(bench.ask(2), [written(2, 8, 1)]);
    // An answer to a number of the other connection is nobody's.
    assert_eq!(bench.answer(8, 2), []);
    assert_eq!(bench.answer(7, 2), [Effect::Completed { job: JobId(1) }]);
}

#[test]
fn l48_a_newer_connection_displaces_the_older_whose_end_then_changes_nothing() {
    let mut bench = Bench::default();
    bench.connect(1, Service::Browser, TABLET);
    bench.enter(1, Service::Browser, Lane::Act);
    bench.ask(1);
    let effects = bench.connect(2, Service::Browser, TABLET);
    assert!(effects.contains(&closed(1, Close::Replaced)));
    assert!(effects.contains(&failed(1, Failure::Replaced)));
    assert_eq!(bench.connected(Service::Browser), [2]);
    assert_eq!(bench.disconnect(1), []);
    assert_eq!(bench.answer(1, 1), []);
    assert_eq!(bench.connected(Service::Browser), [2]);
    assert_eq!(bench.ask(1), [failed(1, Failure::Gone)]);
}

#[test]
fn those_that_say_who_they_are_live_side_by_side() {
    let mut bench = Bench::default();
    bench.connect(1, Service::Browser, TABLET);
    bench.introduce(1, "tablet");
    // What says nothing for a while is of the first kind, and displaces.
    let effects = bench.connect(2, Service::Browser, LAPTOP);
    assert_eq!(effects, []);
    assert_eq!(bench.connected(Service::Browser), [1]);
    bench.introduce(2, "laptop");
    assert_eq!(bench.connected(Service::Browser), [2, 1]);
    bench.connect(3, Service::Browser, TABLET);
    let effects = bench.introduce(3, "tablet");
    assert!(effects.contains(&closed(1, Close::Replaced)));
    assert_eq!(bench.connected(Service::Browser), [3, 2]);
    bench.connect(4, Service::Browser, TABLET);
    bench.later(GREETING);
    assert_eq!(bench.connected(Service::Browser), [4]);
}

#[test]
fn so_many_live_side_by_side_and_the_oldest_makes_room() {
    let mut bench = Bench::default();
    let number = |device: usize| u64::try_from(device).unwrap();
    for device in 1..=DEVICES {
        bench.connect(number(device), Service::Browser, TABLET);
        bench.introduce(number(device), &device.to_string());
    }
    assert_eq!(bench.connected(Service::Browser).len(), DEVICES);
    let one_more = number(DEVICES + 1);
    bench.connect(one_more, Service::Browser, TABLET);
    let effects = bench.introduce(one_more, "one more");
    assert!(effects.contains(&closed(1, Close::Replaced)), "{effects:?}");
    let connected = bench.connected(Service::Browser);
    assert_eq!((connected.len(), connected[0]), (DEVICES, one_more));
    assert!(!connected.contains(&1));
}

#[test]
fn l51_two_that_displace_each_other_are_held_off() {
    let mut bench = Bench::default();
    for number in 1..=6 {
        bench.connect(number, Service::Browser, LAPTOP);
        assert_eq!(bench.connected(Service::Browser), [number]);
        bench.later(Duration::from_secs(2));
    }
    assert_eq!(
        bench.connect(7, Service::Browser, LAPTOP),
        [closed(7, Close::Flapping)]
    );
    assert_eq!(bench.connected(Service::Browser), [6]);
    let until = bench
        .registry
        .refused_until(bench.now, &key(Service::Browser));
    assert_eq!(until, Some(bench.now.after(Duration::from_secs(30))));
    bench.later(Duration::from_secs(29));
    assert_eq!(
        bench.connect(8, Service::Browser, TABLET),
        [closed(8, Close::Flapping)]
    );
    bench.later(Duration::from_secs(1));
    bench.connect(9, Service::Browser, TABLET);
    assert_eq!(bench.connected(Service::Browser), [9]);
}

#[test]
fn one_that_reconnects_after_it_ended_is_not_held_off() {
    let mut bench = Bench::default();
    for number in 1..=20 {
        bench.connect(number, Service::Browser, TABLET);
        assert_eq!(bench.connected(Service::Browser), [number]);
        bench.apply(Event::Disconnected {
            connection: ConnectionId(number),
        });
    }
}

#[test]
fn l50_an_answer_that_does_not_come_is_a_failure_at_its_time_and_late_when_it_does() {
    let mut bench = Bench::default();
    bench.connect(1, Service::Browser, TABLET);
    bench.enter(1, Service::Browser, Lane::Act);
    bench.ask(1);
    assert_eq!(bench.later(LIMIT - Duration::from_millis(1)), []);
    let cancel = Effect::Cancel {
        connection: ConnectionId(1),
        id: 1,
    };
    let effects = bench.later(Duration::from_millis(1));
    assert_eq!(effects, [cancel, failed(1, Failure::TimedOut)]);
    assert_eq!(bench.ask(1), [written(1, 1, 2)]);
    // L49: it comes now, and is nobody's.
    assert_eq!(bench.answer(1, 1), []);
    assert_eq!(bench.registry.presences().next().unwrap().late, 1);
    assert_eq!(bench.answer(1, 2), [Effect::Completed { job: JobId(1) }]);
}

#[test]
fn a_browser_is_looked_at_by_four_at_once_and_changed_by_one() {
    let mut bench = Bench::default();
    bench.connect(1, Service::Browser, TABLET);
    for number in 1..=4 {
        let effects = bench.enter(number, Service::Browser, Lane::Read);
        assert_eq!(effects, [granted(number)]);
    }
    assert_eq!(bench.enter(5, Service::Browser, Lane::Read), []);
    assert_eq!(bench.enter(6, Service::Browser, Lane::Act), [granted(6)]);
    assert_eq!(bench.enter(7, Service::Browser, Lane::Act), []);
    assert_eq!(bench.enter(8, Service::Browser, Lane::Act), []);
    assert_eq!(bench.leave(6), [granted(7)]);
    assert_eq!(bench.leave(1), [granted(5)]);
    assert_eq!(bench.leave(7), [granted(8)]);
}

#[test]
fn a_desktop_does_one_thing_at_a_time_also_when_nobody_waits_for_it_any_more() {
    let mut bench = Bench::default();
    bench.connect(1, Service::Computer, TABLET);
    assert_eq!(bench.enter(1, Service::Computer, Lane::Read), [granted(1)]);
    assert_eq!(bench.enter(2, Service::Computer, Lane::Read), []);
    bench.ask(1);
    // Its client is gone, but the desktop is at it.
    let effects = bench.leave(1);
    assert!(!effects.contains(&granted(2)));
    assert_eq!(bench.later(Duration::from_secs(10)), []);
    assert_eq!(bench.answer(1, 1), [granted(2)]);
    // One that never comes back holds up nobody for ever.
    bench.ask(2);
    bench.leave(2);
    assert_eq!(bench.later(BUSY - Duration::from_secs(1)), []);
    assert_eq!(bench.enter(3, Service::Computer, Lane::Act), []);
    assert_eq!(bench.later(Duration::from_secs(1)), [granted(3)]);
}

#[test]
fn a_desktop_is_asked_nothing_else_by_the_same_job_either_until_it_is_done() {
    let mut bench = Bench::default();
    bench.connect(1, Service::Computer, TABLET);
    bench.enter(1, Service::Computer, Lane::Act);
    bench.ask(1);
    assert!(bench.later(LIMIT).contains(&failed(1, Failure::TimedOut)));
    // The next step of a batch: nothing of it is sent, and it keeps its turn.
    assert_eq!(bench.ask(1), [failed(1, Failure::Held)]);
    bench.answer(1, 1);
    assert_eq!(bench.ask(1), [written(1, 1, 2)]);
    bench.later(LIMIT);
    bench.later(BUSY - Duration::from_millis(1));
    assert_eq!(bench.ask(1), [failed(1, Failure::Held)]);
    bench.later(Duration::from_millis(1));
    assert_eq!(bench.ask(1), [written(1, 1, 3)]);
}

#[test]
fn what_has_no_time_left_is_not_sent() {
    let mut bench = Bench::default();
    for (job, service) in [(1, Service::Browser), (2, Service::Computer)] {
        bench.connect(job, service, TABLET);
        bench.enter(job, service, Lane::Act);
        let effects = bench.ask_within(job, Duration::ZERO);
        assert_eq!(effects, [failed(job, Failure::NoTime)]);
        assert_eq!(bench.ask(job), [written(job, job, 1)]);
    }
}

#[test]
fn a_job_waits_so_long_for_its_turn_and_so_many_wait() {
    let mut bench = Bench::default();
    bench.connect(1, Service::Computer, TABLET);
    bench.enter(1, Service::Computer, Lane::Act);
    for number in 2..=9 {
        assert_eq!(bench.enter(number, Service::Computer, Lane::Act), []);
    }
    let effects = bench.enter(10, Service::Computer, Lane::Act);
    assert_eq!(effects, [refused(10, Refusal::Full)]);
    assert_eq!(bench.later(TURN - Duration::from_millis(1)), []);
    let effects = bench.later(Duration::from_millis(1));
    let expected: Vec<_> = (2..=9).map(|job| refused(job, Refusal::Busy)).collect();
    assert_eq!(effects, expected);
    assert_eq!(bench.leave(1), []);
}

#[test]
fn who_calls_just_after_a_disconnect_waits_for_the_reconnect() {
    let mut bench = Bench::default();
    let effects = bench.enter(1, Service::Browser, Lane::Read);
    assert_eq!(effects, [refused(1, Refusal::NotConnected)]);
    bench.connect(1, Service::Browser, TABLET);
    bench.disconnect(1);
    bench.later(Duration::from_secs(2));
    assert_eq!(bench.enter(2, Service::Browser, Lane::Read), []);
    let effects = bench.connect(2, Service::Browser, TABLET);
    assert!(effects.contains(&granted(2)));
    bench.disconnect(2);
    assert_eq!(bench.enter(3, Service::Browser, Lane::Read), []);
    let effects = bench.later(GRACE);
    assert_eq!(effects, [refused(3, Refusal::NotConnected)]);
    let effects = bench.enter(4, Service::Browser, Lane::Read);
    assert_eq!(effects, [refused(4, Refusal::NotConnected)]);
}

#[test]
fn a_disconnect_fails_what_was_asked_and_keeps_who_waits_for_a_moment() {
    let mut bench = Bench::default();
    bench.connect(1, Service::Computer, TABLET);
    bench.enter(1, Service::Computer, Lane::Act);
    bench.enter(2, Service::Computer, Lane::Act);
    bench.ask(1);
    let effects = bench.disconnect(1);
    assert!(effects.contains(&failed(1, Failure::Lost)));
    let effects = bench.later(GRACE);
    assert_eq!(effects, [refused(2, Refusal::NotConnected)]);
}

#[test]
fn l50_a_silent_executor_is_given_up_unless_it_may_be_busy() {
    let mut bench = Bench::default();
    bench.connect(1, Service::Computer, TABLET);
    let heard = bench.now;
    let silent = |bench: &mut Bench| {
        bench.apply(Event::Silent {
            connection: ConnectionId(1),
            heard,
        })
    };
    bench.later(SILENCE - Duration::from_secs(1));
    assert_eq!(silent(&mut bench), []);
    bench.enter(1, Service::Computer, Lane::Act);
    bench.ask(1);
    bench.later(Duration::from_secs(10));
    assert_eq!(silent(&mut bench), []);
    bench.later(Duration::from_secs(20));
    // Its time is up, and the desktop may still be at it.
    bench.later(BUSY - Duration::from_secs(1));
    assert_eq!(silent(&mut bench), []);
    bench.later(Duration::from_secs(1));
    assert!(silent(&mut bench).contains(&closed(1, Close::Silent)));
    assert!(bench.connected(Service::Computer).is_empty());
}

#[test]
fn a_revoked_token_ends_everything_of_its_user_and_nothing_else() {
    let mut bench = Bench::default();
    bench.connect(1, Service::Browser, TABLET);
    bench.connect(2, Service::Computer, TABLET);
    bench.enter(1, Service::Computer, Lane::Act);
    bench.ask(1);
    bench.enter(2, Service::Computer, Lane::Act);
    let other = Key {
        user: uid(2),
        service: Service::Browser,
    };
    bench.apply(Event::Connected {
        connection: ConnectionId(3),
        key: other.clone(),
        address: TABLET,
        token: TOKEN,
    });
    let (user, token) = (uid(1), TOKEN);
    let effects = bench.apply(Event::Revoked { user, token });
    for expected in [
        closed(1, Close::Revoked),
        closed(2, Close::Revoked),
        failed(1, Failure::Lost),
        refused(2, Refusal::Revoked),
    ] {
        assert!(effects.contains(&expected), "{expected:?}: {effects:?}");
    }
    assert_eq!(bench.registry.of_key(&other).count(), 1);
    assert_eq!(bench.registry.presences().count(), 1);
    let effects = bench.enter(3, Service::Browser, Lane::Read);
    assert_eq!(effects, [refused(3, Refusal::NotConnected)]);
}

/// An executor of the browser connects that has shown this token.
fn connect_with(bench: &mut Bench, number: u64, token: i64) -> Vec<Effect> {
    bench.apply(Event::Connected {
        connection: ConnectionId(number),
        key: key(Service::Browser),
        address: TABLET,
        token,
    })
}

/// A job comes whose client has shown this token.
fn enter_with(bench: &mut Bench, job: u64, token: i64) -> Vec<Effect> {
    bench.apply(Event::Entered {
        job: JobId(job),
        key: key(Service::Browser),
        token,
        lane: Lane::Act,
        devices: None,
    })
}

#[test]
fn a_newer_token_ends_what_came_with_an_older_one() {
    // As soon as it is shown, by an executor or by a client.
    for by_client in [false, true] {
        let mut bench = Bench::default();
        connect_with(&mut bench, 1, TOKEN);
        bench.introduce(1, "old");
        // It has not said who it is.
        connect_with(&mut bench, 2, TOKEN);
        enter_with(&mut bench, 1, TOKEN);
        bench.ask(1);
        // Waits for its turn.
        enter_with(&mut bench, 2, TOKEN);
        let mut effects = match by_client {
            true => enter_with(&mut bench, 3, TOKEN + 1),
            false => connect_with(&mut bench, 3, TOKEN + 1),
        };
        effects.sort_by_key(|effect| matches!(effect, Effect::Changed { .. }));
        let ended = [
            refused(2, Refusal::Revoked),
            closed(1, Close::Revoked),
            failed(1, Failure::Lost),
            closed(2, Close::Revoked),
        ];
        assert_eq!(effects[..4], ended, "{effects:?}");
        // Nobody is let to what was there before.
        let own = by_client.then(|| refused(3, Refusal::NotConnected));
        assert!(own.iter().all(|own| effects.contains(own)), "{effects:?}");
        assert!(
            !effects
                .iter()
                .any(|it| matches!(it, Effect::Granted { .. })),
            "{effects:?}"
        );
        assert_eq!(bench.registry.presences().count(), usize::from(!by_client));
    }
}

#[test]
fn what_came_with_a_newer_token_goes_on() {
    let mut bench = Bench::default();
    connect_with(&mut bench, 1, TOKEN + 1);
    bench.introduce(1, "new");
    assert_eq!(enter_with(&mut bench, 1, TOKEN + 1), [granted(1)]);
    assert_eq!(bench.ask(1), [written(1, 1, 1)]);
    // Waits for its turn.
    assert_eq!(enter_with(&mut bench, 2, TOKEN + 1), []);
    let (user, token) = (uid(1), TOKEN);
    assert_eq!(bench.apply(Event::Revoked { user, token }), []);
    let completed = Effect::Completed { job: JobId(1) };
    assert_eq!(bench.answer(1, 1), [completed]);
    assert_eq!(bench.leave(1), [granted(2)]);
    assert_eq!(bench.connected(Service::Browser), [1]);
}

#[test]
fn what_comes_with_an_older_token_takes_nobodys_place() {
    // Beside one that has said who it is, and instead of one that has not; the last may be gone for a moment.
    for (introduced, gone) in [(false, false), (true, false), (false, true)] {
        let mut bench = Bench::default();
        connect_with(&mut bench, 1, TOKEN + 1);
        if introduced {
            bench.introduce(1, "new");
        }
        if gone {
            bench.disconnect(1);
        }
        // Both were let in just before their token was revoked.
        assert_eq!(
            connect_with(&mut bench, 2, TOKEN),
            [closed(2, Close::Revoked)]
        );
        assert_eq!(
            enter_with(&mut bench, 1, TOKEN),
            [refused(1, Refusal::Revoked)]
        );
        let effects = enter_with(&mut bench, 2, TOKEN + 1);
        let turn = (!gone).then_some(granted(2));
        assert_eq!(effects, Vec::from_iter(turn));
        assert_eq!(bench.registry.presences().count(), usize::from(!gone));
    }
}

#[test]
fn who_waited_with_a_token_that_is_no_longer_valid_is_not_let_to_another_executor() {
    let mut bench = Bench::default();
    for (number, instance) in [(2, "b"), (1, "a")] {
        connect_with(&mut bench, number, TOKEN);
        bench.introduce(number, instance);
    }
    // The one that came last is asked first.
    assert_eq!(bench.connected(Service::Browser), [1, 2]);
    assert_eq!(bench.enter(1, Service::Browser, Lane::Act), [granted(1)]);
    assert_eq!(bench.enter(2, Service::Browser, Lane::Act), []);
    let (user, token) = (uid(1), TOKEN);
    let effects = bench.apply(Event::Revoked { user, token });
    let expected = refused(2, Refusal::Revoked);
    assert!(effects.contains(&expected), "{effects:?}");
    assert!(!effects.contains(&granted(2)), "{effects:?}");
}

#[test]
fn the_time_of_who_waits_for_a_turn_does_not_begin_anew_with_each_connection() {
    let mut bench = Bench::default();
    bench.connect(1, Service::Browser, TABLET);
    bench.introduce(1, "a");
    let devices: Devices = Some(["a".to_owned()].into());
    bench.enter_one_of(1, Service::Browser, Lane::Act, devices.clone());
    bench.enter_one_of(2, Service::Browser, Lane::Act, devices);
    for number in 2..=3 {
        assert_eq!(bench.later(TURN / 3), []);
        bench.connect(number, Service::Browser, TABLET);
        bench.introduce(number, &number.to_string());
    }
    let effects = bench.later(TURN / 3);
    assert_eq!(effects, [refused(2, Refusal::Busy)]);
}

#[test]
fn who_waited_for_a_reconnect_then_waits_for_a_turn_as_long_as_others() {
    let mut bench = Bench::default();
    bench.connect(1, Service::Computer, TABLET);
    bench.disconnect(1);
    bench.later(Duration::from_secs(1));
    bench.enter(1, Service::Computer, Lane::Act);
    bench.enter(2, Service::Computer, Lane::Act);
    bench.later(Duration::from_secs(2));
    let effects = bench.connect(2, Service::Computer, TABLET);
    assert!(effects.contains(&granted(1)), "{effects:?}");
    let left = TURN - Duration::from_secs(2);
    assert_eq!(bench.later(left - Duration::from_millis(1)), []);
    let effects = bench.later(Duration::from_millis(1));
    assert_eq!(effects, [refused(2, Refusal::Busy)]);
}

#[test]
fn who_may_be_given_to_one_only_waits_until_a_newcomer_has_said_who_it_is() {
    let only = |instance: &str| -> Devices { Some([instance.to_owned()].into()) };
    // Whether it is the first one, or stands beside another.
    for beside in [false, true] {
        let mut bench = Bench::default();
        if beside {
            bench.connect(1, Service::Browser, TABLET);
            bench.introduce(1, "other");
        }
        bench.connect(2, Service::Browser, TABLET);
        bench.later(Duration::from_secs(1));
        let entered = bench.enter_one_of(1, Service::Browser, Lane::Act, only("a"));
        assert_eq!(entered, []);
        let effects = bench.introduce(2, "a");
        assert!(effects.contains(&granted(1)), "{effects:?}");
        // Who waits for it from then on waits for a turn.
        assert_eq!(
            bench.enter_one_of(2, Service::Browser, Lane::Act, only("a")),
            []
        );
        bench.later(Duration::from_secs(5));
        assert_eq!(bench.leave(1), [granted(2)]);
        // Another one is none of them, and one that says nothing is not, either.
        bench.connect(3, Service::Browser, TABLET);
        bench.later(Duration::from_secs(1));
        let entered = bench.enter_one_of(3, Service::Browser, Lane::Act, only("c"));
        assert_eq!(entered, []);
        let effects = bench.later(Duration::from_secs(1));
        assert!(
            effects.contains(&refused(3, Refusal::NotAllowed)),
            "{effects:?}"
        );
        let entered = bench.enter_one_of(4, Service::Browser, Lane::Act, only("c"));
        assert_eq!(entered, [refused(4, Refusal::NotAllowed)]);
    }
}

#[test]
fn who_waits_for_one_that_has_gone_waits_no_longer_than_for_a_reconnect() {
    let only = |instance: &str| -> Devices { Some([instance.to_owned()].into()) };
    let mut bench = Bench::default();
    for (number, instance) in [(1, "a"), (2, "b")] {
        bench.connect(number, Service::Browser, TABLET);
        bench.introduce(number, instance);
    }
    bench.enter_one_of(1, Service::Browser, Lane::Act, only("a"));
    bench.enter_one_of(2, Service::Browser, Lane::Act, only("a"));
    bench.disconnect(1);
    // One that reconnects in the last moment still says who it is.
    bench.later(GRACE - Duration::from_secs(1));
    bench.connect(3, Service::Browser, TABLET);
    bench.introduce(3, "c");
    let effects = bench.later(Duration::from_secs(1));
    assert_eq!(effects, [refused(2, Refusal::NotAllowed)]);
}

#[test]
fn one_that_reconnects_at_the_end_of_the_grace_still_says_who_it_is() {
    let only = |instance: &str| -> Devices { Some([instance.to_owned()].into()) };
    let mut bench = Bench::default();
    bench.connect(1, Service::Browser, TABLET);
    bench.introduce(1, "a");
    bench.disconnect(1);
    bench.enter_one_of(1, Service::Browser, Lane::Act, only("a"));
    bench.later(GRACE - Duration::from_millis(1));
    bench.connect(2, Service::Browser, TABLET);
    assert_eq!(bench.later(Duration::from_secs(1)), []);
    let effects = bench.introduce(2, "a");
    assert!(effects.contains(&granted(1)), "{effects:?}");
}

#[test]
fn the_one_that_answered_last_is_asked_next_and_the_one_idle_for_longest_makes_room() {
    let mut bench = Bench::default();
    for (number, instance) in [(1, "a"), (2, "b")] {
        bench.connect(number, Service::Browser, TABLET);
        bench.introduce(number, instance);
    }
    assert_eq!(bench.connected(Service::Browser), [2, 1]);
    let devices = Some(["a".to_owned()].into());
    bench.enter_one_of(1, Service::Browser, Lane::Act, devices);
    bench.ask(1);
    // What nobody waits for is nothing that was done.
    bench.answer(1, 7);
    assert_eq!(bench.connected(Service::Browser), [2, 1]);
    bench.answer(1, 1);
    assert_eq!(bench.connected(Service::Browser), [1, 2]);
}

#[test]
fn one_that_answers_without_end_what_nobody_has_asked_is_sent_away() {
    let mut bench = Bench::default();
    bench.connect(1, Service::Browser, TABLET);
    bench.enter(1, Service::Browser, Lane::Act);
    bench.ask(1);
    let babble = |bench: &mut Bench, times: u32| {
        (0..times)
            .flat_map(|_| bench.answer(1, 99))
            .collect::<Vec<_>>()
    };
    assert_eq!(babble(&mut bench, connection::UNASKED), []);
    bench.later(connection::UNASKED_WITHIN);
    assert_eq!(babble(&mut bench, connection::UNASKED), []);
    let effects = babble(&mut bench, 1);
    assert!(effects.contains(&closed(1, Close::Babbling)), "{effects:?}");
    assert!(effects.contains(&failed(1, Failure::Lost)), "{effects:?}");
    assert_eq!(Close::Babbling.code(), 4408);
    assert!(bench.connected(Service::Browser).is_empty());
}

#[test]
fn at_the_end_what_has_its_turn_goes_on_and_nothing_else_begins() {
    let mut bench = Bench::default();
    bench.connect(1, Service::Browser, TABLET);
    bench.introduce(1, "a");
    bench.enter(1, Service::Browser, Lane::Act);
    bench.ask(1);
    bench.enter(2, Service::Browser, Lane::Act);
    bench.connect(2, Service::Browser, TABLET);
    let effects = bench.apply(Event::Closing);
    assert_eq!(effects, [refused(2, Refusal::Closing)]);
    let effects = bench.enter(3, Service::Browser, Lane::Read);
    assert_eq!(effects, [refused(3, Refusal::Closing)]);
    let effects = bench.connect(3, Service::Browser, TABLET);
    assert_eq!(effects, [closed(3, Close::Restart)]);
    // Nor is it displaced by one that had just come.
    assert_eq!(bench.later(GREETING), []);
    assert!(!bench.registry.is_idle());
    assert_eq!(bench.answer(1, 1), [Effect::Completed { job: JobId(1) }]);
    assert_eq!(bench.ask(1), [written(1, 1, 2)]);
    assert_eq!(bench.answer(1, 2), [Effect::Completed { job: JobId(1) }]);
    bench.leave(1);
    assert!(bench.registry.is_idle());
}

#[test]
fn nothing_is_kept_of_who_is_gone() {
    let mut bench = Bench::default();
    for number in 0..200_u64 {
        let key = Key {
            user: uid(u8::try_from(number).unwrap()),
            service: Service::Browser,
        };
        let connection = ConnectionId(number);
        bench.apply(Event::Connected {
            connection,
            key: key.clone(),
            address: TABLET,
            token: TOKEN,
        });
        let job = JobId(number);
        let lane = Lane::Act;
        let devices = None;
        bench.apply(Event::Entered {
            job,
            key,
            token: TOKEN,
            lane,
            devices,
        });
        bench.ask(number);
        bench.apply(Event::Disconnected { connection });
        bench.leave(number);
    }
    bench.later(Duration::from_secs(120));
    bench.registry.events = SWEEP - 1;
    bench.apply(Event::Due);
    let registry = &bench.registry;
    assert!(registry.slots.is_empty() && registry.jobs.is_empty());
    assert!(registry.connections.is_empty() && registry.timers.is_empty());
}

#[test]
fn a_job_goes_only_to_executors_that_it_may_be_given_to() {
    let mut bench = Bench::default();
    let only = |instance: &str| -> Devices { Some([instance.to_owned()].into()) };
    let refused = |number| Effect::Refused {
        job: JobId(number),
        why: Refusal::NotAllowed,
    };
    bench.connect(1, Service::Browser, TABLET);
    bench.later(GREETING);
    // One that says nothing about itself is none of those that are named.
    let entered = bench.enter_one_of(1, Service::Browser, Lane::Act, only("a"));
    assert_eq!(entered, [refused(1)]);
    bench.introduce(1, "a");
    bench.connect(2, Service::Browser, TABLET);
    bench.introduce(2, "b");
    bench.enter_one_of(2, Service::Browser, Lane::Act, only("a"));
    bench.enter_one_of(3, Service::Browser, Lane::Act, None);
    let at = |number| bench.registry.executor_of(JobId(number));
    assert_eq!(
        [at(2), at(3)],
        [Some(ConnectionId(1)), Some(ConnectionId(2))]
    );
    // Another one waits for it, and not for the newest.
    assert!(
        bench
            .enter_one_of(4, Service::Browser, Lane::Act, only("a"))
            .is_empty()
    );
    assert_eq!(bench.leave(2), [granted(4)]);
    let entered = bench.enter_one_of(5, Service::Browser, Lane::Act, only("c"));
    assert_eq!(entered, [refused(5)]);
}
