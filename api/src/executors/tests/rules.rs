//! The rules of executors.md, 6.2, that need sockets or their times; those that do not are in `registry::tests`.

#![allow(clippy::disallowed_methods)] // Queues of tests have no owner.

use std::future::poll_fn;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::*;
use crate::limits::Incoming;

const SECOND: Duration = Duration::from_secs(1);

impl Yard {
    /// A call whose result comes through the channel, with its name.
    fn begin(
        &self,
        key: &Key,
        lane: Lane,
        name: &str,
        limit: Duration,
        results: &mpsc::UnboundedSender<(String, Result<Value, String>)>,
    ) -> JoinHandle<()> {
        let (hub, key, name) = (self.hub.clone(), key.clone(), name.to_owned());
        let results = results.clone();
        TaskTracker::new().spawn(async move {
            let result = match hub.enter(key, TOKEN, lane, None).await {
                Ok(mut job) => match job.ask(&name, RawValue::NULL, limit).await {
                    Ok(answer) => Ok(value(&answer.outcome)),
                    Err(why) => Err(format!("{why:?}")),
                },
                Err(why) => Err(format!("{why:?}")),
            };
            let _ = results.send((name, result));
        })
    }
}

fn about() -> About {
    About {
        user: "alice".parse().unwrap(),
        address: None,
        token: TOKEN,
        user_agent: "test".to_owned(),
        since: Timestamp::from_secs(1_778_500_000),
        host: None,
    }
}

impl Executor {
    async fn answer(&mut self, id: u64, result: &str) {
        let text = format!(r#"{{"id":{id},"result":"{result}"}}"#);
        self.send(text).await;
    }

    /// The name of the tool that is asked for next, with the number.
    async fn asked(&mut self) -> (u64, String) {
        let (id, frame) = self.question().await;
        (id, frame["tool"].as_str().unwrap().to_owned())
    }

    /// That nothing is asked although everybody else has had their turn.
    async fn is_left_alone(&mut self) {
        let asked = timeout(Duration::from_millis(100), self.question()).await;
        assert!(asked.is_err(), "{asked:?}");
    }
}

/// Until everybody who was let go has done something.
async fn turn() {
    sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_desktop_is_asked_one_thing_at_a_time_and_eight_wait_in_their_order() {
    let yard = Yard::new();
    let key = key(1, Service::Computer);
    let mut executor = yard.executor(&key).await;
    let (results, mut done) = mpsc::unbounded_channel();
    for number in 1..=9 {
        // Those that only look wait as well.
        let lane = if number % 2 == 0 {
            Lane::Read
        } else {
            Lane::Act
        };
        yard.begin(&key, lane, &number.to_string(), LIMIT, &results);
        turn().await;
    }
    yard.begin(&key, Lane::Read, "one too many", LIMIT, &results);
    let (name, refused) = done.recv().await.unwrap();
    assert_eq!(
        (name.as_str(), refused),
        ("one too many", Err("Full".to_owned()))
    );
    for number in 1..=9 {
        let (id, name) = executor.asked().await;
        assert_eq!((id, &name), (number, &number.to_string()));
        executor.is_left_alone().await;
        executor.answer(id, "done").await;
        assert_eq!(done.recv().await.unwrap(), (name, Ok(json!("done"))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_browser_is_looked_at_by_four_and_changed_by_one_over_one_connection() {
    let yard = Yard::new();
    let key = key(1, Service::Browser);
    let mut executor = yard.executor(&key).await;
    let (results, mut done) = mpsc::unbounded_channel();
    for name in ["r1", "r2", "r3", "r4", "r5", "a1", "a2"] {
        let lane = if name.starts_with('r') {
            Lane::Read
        } else {
            Lane::Act
        };
        yard.begin(&key, lane, name, LIMIT, &results);
        turn().await;
    }
    let mut at_once = Vec::new();
    for _ in 0..5 {
        at_once.push(executor.asked().await);
    }
    let names: Vec<&str> = at_once.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["r1", "r2", "r3", "r4", "a1"]);
    executor.is_left_alone().await;
    // Answers in any order reach who has asked.
    for (id, name) in at_once.into_iter().rev() {
        executor.answer(id, &format!("of {name}")).await;
        let (whose, result) = done.recv().await.unwrap();
        assert_eq!((&whose, result), (&name, Ok(json!(format!("of {name}")))));
    }
    let mut rest = [executor.asked().await.1, executor.asked().await.1];
    rest.sort();
    assert_eq!(rest, ["a2", "r5"]);
}

#[tokio::test(start_paused = true)]
async fn l50_a_desktop_that_answers_no_ping_while_it_works_is_kept_until_it_is_done() {
    let yard = Yard::new();
    let key = key(1, Service::Computer);
    let mut executor = yard.executor(&key).await;
    let (results, mut done) = mpsc::unbounded_channel();
    let limit = 110 * SECOND;
    yard.begin(&key, Lane::Read, "computer_screen_text", limit, &results);
    let (id, _) = executor.asked().await;
    // Its event loop is blocked: nothing is read, and no ping answered.
    sleep(109 * SECOND).await;
    assert_eq!(yard.hub.connected().len(), 1);
    executor.answer(id, "text").await;
    let (_, result) = done.recv().await.unwrap();
    assert_eq!(result, Ok(json!("text")));
    sleep(60 * SECOND).await;
    assert_eq!(yard.hub.connected().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_desktop_whose_caller_has_gone_is_kept_for_as_long_as_it_may_be_at_it() {
    let yard = Yard::new();
    let key = key(1, Service::Computer);
    let mut executor = yard.executor(&key).await;
    let (results, mut done) = mpsc::unbounded_channel();
    let limit = 90 * SECOND;
    let call = yard.begin(&key, Lane::Read, "computer_screen_text", limit, &results);
    let (id, _) = executor.asked().await;
    call.abort();
    sleep(80 * SECOND).await;
    // Nor is it asked anything else, whose time would run while it cannot be done.
    yard.begin(&key, Lane::Read, "next", LIMIT, &results);
    executor.is_left_alone().await;
    executor.answer(id, "late").await;
    let (second, name) = executor.asked().await;
    assert_eq!(name, "next");
    executor.answer(second, "in time").await;
    assert_eq!(done.recv().await.unwrap().1, Ok(json!("in time")));
    assert_eq!(yard.hub.connected()[0].late, 1);
    // One that never says anything again is given up all the same.
    let call = yard.begin(&key, Lane::Read, "never", limit, &results);
    executor.asked().await;
    call.abort();
    sleep(119 * SECOND).await;
    assert_eq!(yard.hub.connected().len(), 1);
    sleep(7 * SECOND).await;
    assert!(yard.hub.connected().is_empty());
}

#[tokio::test(start_paused = true)]
async fn change_ends_with_its_late_answer() {
    let yard = Yard::new();
    let key = key(1, Service::Browser);
    let mut executor = yard.executor(&key).await;
    let job = yard.hub.enter(key, TOKEN, Lane::Act, None).await;
    let mut job = job.unwrap();
    let changes = job.changes();
    let asked = job.ask_for(Some(changes.begin()), "act", RawValue::NULL, SECOND);
    let (failed, (id, _)) = tokio::join!(asked, executor.asked());
    let failed = failed.err().map(|why| format!("{why:?}"));
    assert_eq!(failed.as_deref(), Some("Failed(TimedOut)"));
    assert!(changes.now().was_changing());
    executor.answer(id, "late").await;
    sleep(SECOND).await;
    assert!(!changes.now().was_changing());
}

#[tokio::test(start_paused = true)]
async fn l50_bytes_of_a_long_message_are_a_sign_of_life_before_it_is_whole() {
    let yard = Yard::new();
    let key = key(1, Service::Browser);
    let (ours, mut theirs) = tokio::io::duplex(64 * 1024);
    let served =
        TaskTracker::new().spawn(serve(ours, expect(yard.hub.clone(), key, about()).unwrap()));
    turn().await;
    // The head of a frame of 1 MiB, masked as those of clients are; then its bytes, slowly.
    let mut head = vec![0x81, 0xff];
    head.extend((MIB as u64).to_be_bytes());
    head.extend([0; 4]);
    theirs.write_all(&head).await.unwrap();
    for _ in 0..6 {
        sleep(20 * SECOND).await;
        theirs.write_all(&[b'x'; 1000]).await.unwrap();
    }
    assert_eq!(yard.hub.connected().len(), 1);
    // But nobody waits for it any more, while it holds memory that others wait for.
    sleep(19 * SECOND).await;
    theirs.write_all(&[b'x'; 1000]).await.unwrap();
    assert_eq!(yard.hub.connected().len(), 1);
    sleep(7 * SECOND).await;
    assert!(yard.hub.connected().is_empty());
    timeout(5 * SECOND, served).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_takes_a_long_message_slowly_is_waited_for_and_who_takes_nothing_is_not() {
    let yard = Yard::new();
    let key = key(1, Service::Browser);
    let (ours, mut theirs) = tokio::io::duplex(64 * 1024);
    let served = TaskTracker::new().spawn(serve(
        ours,
        expect(yard.hub.clone(), key.clone(), about()).unwrap(),
    ));
    turn().await;
    let call = async {
        let params = json!({ "text": "x".repeat(MIB) });
        yard.call(&key, "browser_type", params).await.err()
    };
    let taken = async {
        let mut piece = vec![0; 32 * 1024];
        for _ in 0..20 {
            sleep(SECOND).await;
            theirs.read_exact(&mut piece).await.unwrap();
        }
        assert_eq!(yard.hub.connected().len(), 1, "it goes on");
        sleep(21 * SECOND).await;
        assert!(yard.hub.connected().is_empty(), "it has stopped");
    };
    let (failed, ()) = tokio::join!(call, taken);
    // Its own time was up before.
    assert_eq!(failed, Some(Ask::Failed(Failure::TimedOut)));
    timeout(5 * SECOND, served).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_is_sent_away_while_it_takes_a_long_message_is_gone_at_once() {
    let yard = Yard::new();
    let key = key(1, Service::Browser);
    let (ours, mut theirs) = tokio::io::duplex(64 * 1024);
    let served = TaskTracker::new().spawn(serve(
        ours,
        expect(yard.hub.clone(), key.clone(), about()).unwrap(),
    ));
    turn().await;
    let call = async {
        let params = json!({ "text": "x".repeat(MIB) });
        yard.call(&key, "browser_type", params).await.err()
    };
    let sent_away = async {
        sleep(SECOND).await;
        theirs.read_exact(&mut [0; 32 * 1024]).await.unwrap();
        let connection = yard.hub.connected()[0].connection;
        yard.hub.dismiss(connection, Close::SwitchedOff);
        timeout(3 * SECOND, served).await.unwrap().unwrap();
    };
    let (failed, ()) = tokio::join!(call, sent_away);
    assert_eq!(failed, Some(Ask::Failed(Failure::Lost)));
}

#[tokio::test(start_paused = true)]
async fn only_those_that_know_it_are_told_that_nobody_waits() {
    let yard = Yard::new();
    let key = key(1, Service::Browser);
    let hello = |features: Value| json!({"type": "hello", "protocol": 2, "instance": "i", "features": features});
    for (hello, told) in [
        (None, false),
        (Some(hello(json!(["progress"]))), false),
        (Some(hello(json!(["progress", "cancel"]))), true),
    ] {
        let mut executor = yard.executor(&key).await;
        if let Some(hello) = hello {
            executor.send(hello.to_string()).await;
            let Some(Ok(Message::Text(text))) = executor.socket.next().await else {
                panic!("no welcome");
            };
            assert!(text.contains("welcome"), "{text}");
        }
        let (results, _done) = mpsc::unbounded_channel();
        let call = yard.begin(&key, Lane::Act, "given up", LIMIT, &results);
        let (id, _) = executor.asked().await;
        call.abort();
        turn().await;
        yard.begin(&key, Lane::Act, "next", LIMIT, &results);
        let (number, frame) = executor.question().await;
        match told {
            true => assert_eq!(frame, json!({"type": "cancel", "id": id})),
            false => assert_eq!((number, &frame["tool"]), (id + 1, &json!("next"))),
        }
    }
}

/// All that a user may have of the memory for messages.
async fn all_of(yard: &Yard, key: &Key) -> Incoming {
    let mut long = Incoming::new(yard.hub.memory(), &key.user);
    let moment = Duration::from_millis(1);
    while timeout(moment, poll_fn(|context| long.poll_room(context)))
        .await
        .is_ok()
    {
        long.read(MIB);
    }
    long
}

#[tokio::test(start_paused = true)]
async fn a_message_without_room_waits_before_its_connection_ends() {
    let yard = Yard::new();
    let key = key(1, Service::Browser);
    let (results, mut done) = mpsc::unbounded_channel();
    let mut executor = yard.executor(&key).await;
    for held in [25, 40] {
        let all = all_of(&yard, &key).await;
        yard.begin(&key, Lane::Act, "t", 60 * SECOND, &results);
        let (id, _) = executor.asked().await;
        let answered = async {
            let text = format!(r#"{{"id":{id},"result":"{}"}}"#, "x".repeat(MIB));
            executor.socket.send(Message::Text(text.into())).await
        };
        let released = async {
            sleep(held * SECOND).await;
            drop(all);
        };
        let (sent, ()) = tokio::join!(answered, released);
        let (_, result) = done.recv().await.unwrap();
        match held {
            25 => assert!(sent.is_ok() && result.is_ok(), "{result:?}"),
            _ => assert_eq!(result, Err("Failed(Lost)".to_owned())),
        }
    }
    assert!(yard.hub.connected().is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_that_says_again_and_again_who_it_is_is_sent_away() {
    let yard = Yard::new();
    let mut executor = yard.executor(&key(1, Service::Computer)).await;
    let hello = r#"{"type":"hello","instance":"i"}"#;
    executor.send(hello).await;
    let welcome = executor.socket.next().await.unwrap().unwrap();
    assert!(welcome.to_text().unwrap().contains("1048576"), "{welcome}");
    for _ in 0..1001 {
        executor.send(hello).await;
    }
    let (_, close) = executor.ended().await;
    assert_eq!(close.map(|(code, _)| code), Some(4408));
}

/// One that connects while the service ends: what it is told.
async fn refused_at_the_end(hub: &Hub, key: &Key) -> Option<(u16, String)> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let expected = expect(hub.clone(), key.clone(), about()).unwrap();
    let served = TaskTracker::new().spawn(serve(ours, expected));
    let socket = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
    Executor { socket, served }.ended().await.1
}

#[tokio::test(start_paused = true)]
async fn at_the_end_of_the_service_a_call_under_way_is_waited_for_and_no_other_begins() {
    let yard = Yard::new();
    let key = key(1, Service::Browser);
    let mut executor = yard.executor(&key).await;
    let (results, mut done) = mpsc::unbounded_channel();
    let begin = Instant::now();
    yard.begin(&key, Lane::Act, "under way", LIMIT, &results);
    let (id, _) = executor.asked().await;
    yard.begin(&key, Lane::Act, "waits", LIMIT, &results);
    turn().await;
    yard.shutdown.cancel();
    turn().await;
    yard.begin(&key, Lane::Act, "too late", LIMIT, &results);
    for name in ["waits", "too late"] {
        let (refused, why) = done.recv().await.unwrap();
        assert_eq!((refused.as_str(), why), (name, Err("Closing".to_owned())));
    }
    let other = self::key(2, Service::Browser);
    let restart = Some((1012, "the service restarts".to_owned()));
    assert_eq!(refused_at_the_end(&yard.hub, &other).await, restart);
    sleep(2 * SECOND).await;
    executor.answer(id, "done").await;
    assert_eq!(done.recv().await.unwrap().1, Ok(json!("done")));
    yard.running.await.unwrap();
    assert_eq!(begin.elapsed().as_secs(), 2, "nothing else is waited for");
    assert_eq!(executor.ended().await.1, restart);
    // Also when nobody keeps the time any more.
    assert_eq!(refused_at_the_end(&yard.hub, &key).await, restart);
}

#[tokio::test(start_paused = true)]
async fn at_the_end_of_the_service_what_takes_too_long_fails_at_once_and_so_does_what_is_tried_again()
 {
    let yard = Yard::new();
    let key = key(1, Service::Browser);
    let mut executor = yard.executor(&key).await;
    let (results, mut done) = mpsc::unbounded_channel();
    yard.begin(&key, Lane::Read, "short", SECOND, &results);
    yard.begin(&key, Lane::Read, "long", LIMIT, &results);
    executor.asked().await;
    executor.asked().await;
    let begin = Instant::now();
    yard.shutdown.cancel();
    // Time goes on meanwhile.
    let (name, why) = done.recv().await.unwrap();
    assert_eq!(
        (name.as_str(), why),
        ("short", Err("Failed(TimedOut)".to_owned()))
    );
    let (name, why) = done.recv().await.unwrap();
    assert_eq!(
        (name.as_str(), why),
        ("long", Err("Failed(Lost)".to_owned()))
    );
    assert!(begin.elapsed() < 5 * SECOND, "{:?}", begin.elapsed());
    yard.begin(&key, Lane::Read, "again", LIMIT, &results);
    assert_eq!(done.recv().await.unwrap().1, Err("Closing".to_owned()));
    assert!(begin.elapsed() < 5 * SECOND, "{:?}", begin.elapsed());
    yard.running.await.unwrap();
    assert_eq!(executor.ended().await.1.map(|(code, _)| code), Some(1012));
}

#[tokio::test(start_paused = true)]
async fn l51_executors_of_one_address_displace_five_times_then_pauses_grow() {
    let yard = Yard::new();
    let key = key(1, Service::Browser);
    let refused = || match expect(yard.hub.clone(), key.clone(), about()) {
        Err(Flapping(pause)) => Some(pause.as_secs()),
        Ok(_) => None,
    };
    let mut kept = yard.executor(&key).await;
    for pause in [30, 60, 120, 240, 480, 480] {
        for _ in 1..=5 {
            let newer = yard.executor(&key).await;
            let (_, close) = std::mem::replace(&mut kept, newer).ended().await;
            assert_eq!(close, Some((1000, "replaced".to_owned())));
        }
        assert_eq!(refused(), Some(pause));
        // The one that is connected is asked all the while.
        let (results, mut done) = mpsc::unbounded_channel();
        yard.begin(&key, Lane::Act, "t", LIMIT, &results);
        let (id, _) = kept.asked().await;
        kept.answer(id, "here").await;
        assert_eq!(done.recv().await.unwrap().1, Ok(json!("here")));
        for _ in 0..(pause - 1) / 10 {
            sleep(10 * SECOND).await;
            kept.send("").await;
        }
        assert!(refused().is_some());
        sleep(10 * SECOND).await;
        assert_eq!(yard.hub.refused_for(&key), None);
    }
    // Where none is connected, none is displaced.
    for _ in 1..=5 {
        drop(std::mem::replace(&mut kept, yard.executor(&key).await));
    }
    assert!(refused().is_some());
    drop(kept);
    turn().await;
    kept = yard.executor(&key).await;
    for _ in 0..120 {
        sleep(10 * SECOND).await;
        kept.send("").await;
    }
    for _ in 1..=5 {
        drop(std::mem::replace(&mut kept, yard.executor(&key).await));
    }
    assert_eq!(refused(), Some(30), "after a while it begins anew");
}

#[tokio::test(start_paused = true)]
async fn who_calls_just_after_a_disconnect_waits_three_seconds_for_another_connection() {
    let yard = Yard::new();
    let key = key(1, Service::Computer);
    let (results, mut done) = mpsc::unbounded_channel();
    let disconnect = async |executor: Executor| {
        drop(executor.socket);
        executor.served.await.unwrap();
    };
    disconnect(yard.executor(&key).await).await;
    sleep(2 * SECOND).await;
    yard.begin(&key, Lane::Act, "waits", LIMIT, &results);
    sleep(2 * SECOND).await;
    let mut again = yard.executor(&key).await;
    let (id, name) = again.asked().await;
    assert_eq!((id, name.as_str()), (1, "waits"));
    again.answer(id, "done").await;
    assert_eq!(done.recv().await.unwrap().1, Ok(json!("done")));
    disconnect(again).await;
    let begin = Instant::now();
    yard.begin(&key, Lane::Act, "in vain", LIMIT, &results);
    assert_eq!(done.recv().await.unwrap().1, Err("NotConnected".to_owned()));
    assert_eq!(begin.elapsed().as_secs(), 3);
    yard.begin(&key, Lane::Act, "too late", LIMIT, &results);
    assert_eq!(done.recv().await.unwrap().1, Err("NotConnected".to_owned()));
    assert_eq!(begin.elapsed().as_secs(), 3);
}
