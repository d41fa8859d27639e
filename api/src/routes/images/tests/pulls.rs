//! Pulls and who looks on.

use schema::condition::{Condition, Reason};
use schema::ids::Kind;
use schema::image::{self, ImageFacts, PullEvent, PullLog, PullSum, PullUpdate, RunningPull};
use serde_json::json;

use super::*;
use crate::ports::Pulls;
use crate::routes::test_support::Answer;

const PULL: &str = "/api/admin/images/pull";
const CANCEL: &str = "/api/admin/images/pulls/cancel";
const V2: &str = "registry:5000/agent:v2";

/// Pulls of this process: the log of one, if there is one.
struct Here(Option<Arc<PullLog>>);

impl Pulls for Here {
    fn log(&self, reference: &str) -> Option<Arc<PullLog>> {
        self.0.clone().filter(|_| reference == V2)
    }

    fn running(&self) -> Vec<RunningPull> {
        let running = self.0.iter().map(|log| RunningPull {
            reference: V2.to_owned(),
            sum: log.sum(),
            started_at: NOW,
            viewers: log.viewers(),
        });
        running.collect()
    }
}

/// An event of a log.
enum Said {
    Progress(&'static str, u64, u8),
    End(PullUpdate),
}

fn progress(layer: &'static str, current: u64, percent: u8) -> Said {
    Said::Progress(layer, current, percent)
}

fn done(digest: Option<&str>) -> Said {
    Said::End(PullUpdate::Done {
        digest: digest.map(str::to_owned),
        image_id: id('2'),
    })
}

fn log(said: Vec<Said>) -> Arc<PullLog> {
    let log = PullLog::default();
    for said in said {
        match said {
            Said::End(last) => log.end(last),
            Said::Progress(layer, current, percent) => {
                let event = PullEvent {
                    status: "Downloading".to_owned(),
                    id: Some(layer.to_owned()),
                    current: Some(current),
                    total: Some(2_000_000),
                };
                let sum = PullSum {
                    percent,
                    bytes: current,
                    bytes_total: 2_000_000,
                    ..PullSum::default()
                };
                log.push(event, sum);
            }
        }
    }
    Arc::new(log)
}

async fn fleet_with(said: Vec<Said>) -> Yard {
    let mut yard = yard().await;
    let here = (!said.is_empty()).then(|| log(said));
    yard.deps().pulls = Arc::new(Here(here));
    configure(&yard, &[("image.name", OURS.into())]).await;
    yard
}

/// Waits until the pull is asked for, and gives its object.
async fn asked(yard: &Yard) -> (Uid, i64, String) {
    loop {
        let mut connection = yard.world.deps.db.read().await.unwrap();
        if let Some(row) = image::find(&mut connection, V2).await.unwrap() {
            return (row.uid, row.generation.0, row.pull_token);
        }
        drop(connection);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// What a pass says of the newest request.
async fn says(yard: &Yard, reason: Reason, message: &str) {
    let (uid, generation, _) = asked(yard).await;
    let said = Condition::not_ready(reason, message);
    yard.saw(Kind::Image, &uid, generation, said).await;
}

/// What a pass says of a pull under way.
async fn pulling(yard: &Yard, percent: u8, message: &str) {
    let (uid, generation, _) = asked(yard).await;
    let said = Condition {
        percent: Some(percent),
        ..Condition::not_ready(Reason::ImagePulling, message)
    };
    yard.saw(Kind::Image, &uid, generation, said).await;
}

/// The image is there: what the reconciler saves.
async fn answered(yard: &Yard) {
    let (uid, _, token) = asked(yard).await;
    let facts = ImageFacts {
        image_id: Some(id('2')),
        digest: Some("registry:5000/agent@sha256:dd".to_owned()),
        pull_token: Some(token),
        pulled_at: Some(NOW),
        ..ImageFacts::default()
    };
    let mut tx = yard.world.db.begin().await.unwrap();
    image::save_facts(&mut tx, &uid, &facts).await.unwrap();
    tx.commit().await.unwrap();
    yard.world.status_ticks.send_modify(|ticks| *ticks += 1);
}

/// The events of a stream: id and payload.
#[track_caller]
fn events(answer: &Answer) -> Vec<(String, Value)> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let frames = answer
        .text
        .split("\n\n")
        .filter(|frame| frame.contains("data:"));
    let event = frames.map(|frame| {
        let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
        let data = serde_json::from_str(field("data:").unwrap()).unwrap();
        (field("id:").unwrap().to_owned(), data)
    });
    event.collect()
}

fn payloads(answer: &Answer) -> Vec<Value> {
    events(answer).into_iter().map(|(_, data)| data).collect()
}

#[tokio::test]
async fn l37_a_pull_is_told_as_the_engine_tells_it_and_ends_once() {
    let said = vec![
        progress("a", 500_000, 20),
        progress("b", 1, 20),
        progress("c", 2_000_000, 10),
        done(Some("d")),
        progress("after the end", 0, 0),
    ];
    let yard = fleet_with(said).await;
    let (answer, ()) = tokio::join!(
        yard.post(PULL, "image=v2"),
        says(&yard, Reason::ImagePulling, "20 %")
    );
    let told = payloads(&answer);
    assert_eq!(
        told,
        [
            json!({"status": "Waiting", "percent": 0}),
            json!({"status": "Downloading", "id": "a", "progressDetail": {"current": 500_000, "total": 2_000_000}, "progress": "500.0 kB / 2.0 MB", "percent": 20}),
            json!({"status": "Downloading", "id": "b", "progressDetail": {"current": 1, "total": 2_000_000}, "progress": "1 B / 2.0 MB", "percent": 20}),
            json!({"status": "Downloading", "id": "c", "progressDetail": {"current": 2_000_000, "total": 2_000_000}, "progress": "2.0 MB / 2.0 MB", "percent": 20}),
            json!({"status": "Pull complete", "percent": 100}),
            json!({"status": "done", "digest": "d"}),
        ]
    );
    let task = yard.get("/api/admin/task/status").await.is(200);
    assert_eq!((&task["type"], &task["total"]), (&json!("pull"), &json!(1)));
}

#[tokio::test]
async fn l37_an_error_is_the_last_word() {
    let error = Said::End(PullUpdate::Failed {
        message: "manifest unknown".to_owned(),
    });
    let yard = fleet_with(vec![progress("a", 1, 5), error]).await;
    let (answer, ()) = tokio::join!(
        yard.post(PULL, "tag=v2"),
        says(&yard, Reason::PullFailed, "x")
    );
    let told = payloads(&answer);
    assert_eq!(told.len(), 3);
    assert_eq!(
        told[2],
        json!({"status": "error", "error": "manifest unknown"})
    );
}

#[tokio::test]
async fn whoever_comes_back_asks_for_nothing_new_and_hears_the_rest() {
    let said = vec![progress("a", 1, 5), progress("b", 2, 6), done(None)];
    let yard = fleet_with(said).await;
    let (answer, ()) = tokio::join!(
        yard.post(PULL, "image=v2"),
        says(&yard, Reason::ImagePulling, "")
    );
    let all = events(&answer);
    assert_eq!(all.len(), 5);
    let back = async |last: &str| back(&yard, last).await;
    assert_eq!(events(&back(&all[1].0).await), all[2..]);
    assert_eq!(events(&back(&all[3].0).await), all[4..]);
    assert_eq!(events(&back(&all[4].0).await), []);
    // An id of another log, such as another replica's: everything that is kept.
    let (_, _, token) = asked(&yard).await;
    let elsewhere = format!("{token}-0123456789ab-3");
    assert_eq!(events(&back(&elsewhere).await), all);
    back("x").await.fails(400, "invalid_parameter");
    let tasks = yard.get("/api/admin/tasks").await.is(200);
    assert_eq!(tasks["total"], 1, "one request");
}

/// What a client hears that comes back.
async fn back(yard: &Yard, last: &str) -> Answer {
    let request = warp::test::request()
        .path(PULL)
        .header("content-type", "application/x-www-form-urlencoded")
        .header("last-event-id", last)
        .body("image=v2");
    yard.request("POST", request, "root").await
}

/// Coming back is no request: what was called off in between stays called off.
#[tokio::test]
async fn whoever_comes_back_to_a_pull_that_was_called_off_starts_none() {
    let called_off = json!({"status": "error", "error": "the pull was cancelled"});
    // It was never pulled before: nothing of it is left.
    let yard = fleet_with(Vec::new()).await;
    let told = back(&yard, "5-0123456789ab-1").await;
    assert_eq!(payloads(&told), std::slice::from_ref(&called_off));
    let mut connection = yard.world.deps.db.read().await.unwrap();
    assert!(image::all(&mut connection).await.unwrap().is_empty());
    drop(connection);
    // It was: the request before counts again, and its answer is not this one's.
    let mut tx = yard.world.db.begin().await.unwrap();
    let pulled = image::request_pull(&mut tx, V2, "4", None, NOW).await;
    pulled.unwrap();
    tx.commit().await.unwrap();
    answered(&yard).await;
    let mut tx = yard.world.db.begin().await.unwrap();
    let again = image::request_pull(&mut tx, V2, "5", None, NOW).await;
    again.unwrap();
    image::request_cancel(&mut tx, V2, None, NOW).await.unwrap();
    tx.commit().await.unwrap();
    let (_, generation, token) = asked(&yard).await;
    assert_eq!(token, "4");
    let told = back(&yard, "5-0123456789ab-1").await;
    assert_eq!(payloads(&told), [called_off]);
    assert_eq!(asked(&yard).await.1, generation);
    let tasks = yard.get("/api/admin/tasks").await.is(200);
    assert_eq!(tasks["total"], 0, "nothing was asked for");
}

#[tokio::test]
async fn a_stale_generation_neither_pulls_nor_calls_off() {
    let yard = fleet_with(Vec::new()).await;
    let none = yard.post(PULL, "image=v2&if_generation=1").await;
    none.fails(412, "stale_generation");
    let mut tx = yard.world.db.begin().await.unwrap();
    let (uid, generation) = image::request_pull(&mut tx, V2, "1", None, NOW)
        .await
        .unwrap();
    let object = [(Kind::Image, uid, V2.to_owned(), generation)];
    let task = schema::operation::create(&mut tx, "pull", "root", &object, NOW).await;
    let task = task.unwrap();
    tx.commit().await.unwrap();
    let before = asked(&yard).await;
    let of_task = format!("task_id={task}&if_generation=7&wait=0");
    for (path, body) in [
        (PULL, "image=v2&if_generation=7"),
        (CANCEL, "image=v2&if_generation=7&wait=0"),
        ("/api/admin/task/cancel", of_task.as_str()),
    ] {
        let refused = yard.post(path, body).await.fails(412, "stale_generation");
        assert_eq!(refused["generation"], before.1, "{path}");
    }
    assert_eq!(asked(&yard).await, before, "nothing has changed");
    let body = format!("image=v2&if_generation={}&wait=0", before.1);
    yard.post(CANCEL, &body).await.is(202);
}

#[tokio::test]
async fn a_pull_that_runs_elsewhere_is_told_from_the_database() {
    let yard = fleet_with(Vec::new()).await;
    let reconciler = async {
        says(&yard, Reason::EngineUnavailable, "the engine is away").await;
        tokio::time::sleep(std::time::Duration::from_millis(150)).await;
        pulling(&yard, 45, "45 %, 1.0 of 2.0 MB").await;
        tokio::time::sleep(std::time::Duration::from_millis(150)).await;
        pulling(&yard, 40, "40 %, 1.1 of 3.0 MB").await;
        tokio::time::sleep(std::time::Duration::from_millis(150)).await;
        answered(&yard).await;
    };
    let (answer, ()) = tokio::join!(yard.post(PULL, "image=v2"), reconciler);
    assert_eq!(
        payloads(&answer),
        [
            json!({"status": "Waiting", "percent": 0}),
            json!({"status": "the engine is away", "percent": 0}),
            json!({"status": "45 %, 1.0 of 2.0 MB", "percent": 45}),
            json!({"status": "40 %, 1.1 of 3.0 MB", "percent": 45}),
            json!({"status": "done", "digest": "registry:5000/agent@sha256:dd"}),
        ]
    );
    let all = events(&answer);
    let rest = payloads(&back(&yard, &all[2].0).await);
    assert_eq!(rest, [all[4].1.clone()], "how it stands by now");
    assert_eq!(events(&back(&yard, &all[4].0).await), [], "it had the end");
    let yard = fleet_with(Vec::new()).await;
    let (answer, ()) = tokio::join!(
        yard.post(PULL, "image=v2"),
        says(&yard, Reason::PullFailed, "no such tag")
    );
    let last = payloads(&answer).pop();
    assert_eq!(
        last,
        Some(json!({"status": "error", "error": "no such tag"}))
    );
}

#[tokio::test]
async fn what_ended_here_before_is_not_the_end_of_a_new_pull() {
    let yard = fleet_with(vec![done(Some("old"))]).await;
    let reconciler = async {
        // A pass that could not begin.
        says(&yard, Reason::EngineUnavailable, "away").await;
        tokio::time::sleep(std::time::Duration::from_millis(150)).await;
        let call_off = yard.post(CANCEL, "image=v2&wait=0").await;
        call_off.is(202);
    };
    let (answer, ()) = tokio::join!(yard.post(PULL, "image=v2"), reconciler);
    let last = payloads(&answer).pop().unwrap();
    assert_eq!(
        last,
        json!({"status": "error", "error": "the pull was cancelled"})
    );
}

#[tokio::test]
async fn pulls_are_listed_and_called_off() {
    let yard = fleet_with(Vec::new()).await;
    yard.post(CANCEL, "image=v2").await.fails(404, "not_found");
    let mut tx = yard.world.db.begin().await.unwrap();
    image::request_pull(&mut tx, V2, "1", None, NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    says(&yard, Reason::ImagePullFailed, "no such tag").await;
    let list = yard.get("/api/admin/images/pulls").await.is(200);
    let pull = &list["pulls"][0];
    let (state, message) = (&pull["state"], &pull["message"]);
    assert_eq!(
        (state, message),
        (&json!("ImagePullFailed"), &json!("no such tag"))
    );
    assert_eq!(pull["running"], false);
    let done = yard.post(CANCEL, "image=v2&wait=0").await.is(202);
    assert_eq!(done["object"], format!("image/{V2}"));
    yard.post(CANCEL, "image=v2").await.fails(404, "not_found");

    // Once pulled, calling the next pull off keeps the image wanted as it is.
    let yard = fleet_with(vec![progress("a", 4, 40)]).await;
    let mut tx = yard.world.db.begin().await.unwrap();
    image::request_pull(&mut tx, V2, "1", None, NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    answered(&yard).await;
    let list = yard.get("/api/admin/images/pulls").await.is(200);
    assert_eq!(list["total"], 1);
    let pull = &list["pulls"][0];
    assert_eq!(
        (&pull["percent"], &pull["wanted"]),
        (&json!(40), &json!(false))
    );
    let (cancel, ()) = tokio::join!(
        yard.post(CANCEL, "image=v2"),
        // A pass takes note.
        async {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            says(&yard, Reason::Converged, "").await;
        }
    );
    assert_eq!(cancel.is(200)["state"], "converged");
}

#[tokio::test]
async fn a_pull_that_failed_has_ended_and_so_has_its_task() {
    let yard = fleet_with(Vec::new()).await;
    let (answer, ()) = tokio::join!(
        yard.post(PULL, "image=v2"),
        says(&yard, Reason::PullFailed, "no such tag")
    );
    let last = payloads(&answer).pop();
    let failed = json!({"status": "error", "error": "no such tag"});
    assert_eq!(last, Some(failed));
    let (uid, _, token) = asked(&yard).await;
    let facts = ImageFacts {
        failed_token: Some(token),
        failure: Some("no such tag".to_owned()),
        ..ImageFacts::default()
    };
    let mut tx = yard.world.db.begin().await.unwrap();
    image::save_facts(&mut tx, &uid, &facts).await.unwrap();
    tx.commit().await.unwrap();
    let list = yard.get("/api/admin/images/pulls").await.is(200);
    assert_eq!(list["total"], 0, "nothing is in progress");
    let task = yard.get("/api/admin/task/status").await.is(200);
    assert_eq!(task["message"], "finished: 0 of 1 done, 1 failed");
    let cancel = format!("wait=0&task_id={}", task["id"].as_str().unwrap());
    let late = yard.post("/api/admin/task/cancel", &cancel).await;
    late.fails(409, "wrong_state");
    // Its request can be withdrawn, so that nothing is wanted any more.
    yard.post(CANCEL, "image=v2&wait=0").await.is(202);
}

#[tokio::test]
async fn as_many_look_on_as_may() {
    let yard = fleet_with(Vec::new()).await;
    let root = Uid::from("root".to_owned());
    let held: Vec<_> = (0..crate::follows::PER_ACCOUNT)
        .map(|_| yard.world.deps.viewers.begin(Some(&root)).unwrap())
        .collect();
    let refused = yard.post(PULL, "image=v2").await;
    refused.fails(429, "too_many_streams");
    let mut connection = yard.world.deps.db.read().await.unwrap();
    assert!(image::all(&mut connection).await.unwrap().is_empty());
    drop(held);
}
