//! The plan as a table: what is wanted and what is seen, and what follows.

use std::sync::Arc;
use std::time::Duration;

use engine::Image;
use schema::condition::{ConditionStatus, ConditionType, Reason, find};
use schema::ids::{Generation, Timestamp, Uid};
use schema::image::{DesiredImage, ImageFacts, ImageRow, PullSum};

use crate::image::observe::{Snapshot, World};
use crate::image::plan::plan;
use crate::runtime::Requeue;
use crate::shared::pulls::PullReport;

const START: Timestamp = Timestamp::from_secs(1_800_000_000);
const AGENT: &str = "docker.io/library/agent:1";
const ID: &str = "sha256:aa";

fn snapshot() -> Snapshot {
    Snapshot {
        row: Arc::new(ImageRow {
            uid: Uid::from("a".repeat(32)),
            reference: AGENT.to_owned(),
            desired: DesiredImage::Present,
            pull_token: "t1".to_owned(),
            generation: Generation(1),
            deleted_at: None,
            facts: ImageFacts::default(),
        }),
        pull: PullReport::Idle,
        world: World::Seen {
            image: None,
            users: Vec::new(),
        },
    }
}

impl Snapshot {
    fn there(mut self) -> Self {
        self.world = World::Seen {
            image: Some(Image {
                id: ID.to_owned(),
                repo_tags: vec!["agent:1".to_owned(), "agent:copy".to_owned()],
                repo_digests: Vec::new(),
                size: 1,
                created_at: START,
                is_local: true,
            }),
            users: Vec::new(),
        };
        self
    }

    fn answered(mut self, token: &str) -> Self {
        Arc::make_mut(&mut self.row).facts = ImageFacts {
            image_id: Some(ID.to_owned()),
            digest: None,
            pull_token: Some(token.to_owned()),
            pulled_at: Some(START),
            ..ImageFacts::default()
        };
        self
    }

    fn ended(mut self, token: &str) -> Self {
        let facts = &mut Arc::make_mut(&mut self.row).facts;
        facts.failed_token = Some(token.to_owned());
        facts.failure = Some("no route".to_owned());
        self
    }

    fn without_engine(mut self) -> Self {
        if let PullReport::Failed { engine_lost, .. } = &mut self.pull {
            *engine_lost = true;
        }
        self
    }

    fn deleted(mut self, desired: DesiredImage) -> Self {
        let row = Arc::make_mut(&mut self.row);
        row.desired = desired;
        row.deleted_at = Some(START);
        self
    }

    fn named(mut self, reference: &str) -> Self {
        Arc::make_mut(&mut self.row).reference = reference.to_owned();
        self
    }

    fn pulling(mut self, token: &str) -> Self {
        self.pull = PullReport::Running {
            token: token.to_owned(),
            sum: PullSum {
                percent: 45,
                bytes: 12_345_678,
                bytes_total: 80_000_000,
                ..PullSum::default()
            },
        };
        self
    }

    fn failed(mut self, token: &str, failures: u32, refused: bool) -> Self {
        self.pull = PullReport::Failed {
            token: token.to_owned(),
            at: START,
            message: "no route".to_owned(),
            failures,
            refused,
            cancelled: false,
            engine_lost: false,
        };
        self
    }

    fn done(mut self, token: &str, at: Timestamp) -> Self {
        self.pull = PullReport::Done {
            token: token.to_owned(),
            at,
            image_id: ID.to_owned(),
            digest: None,
        };
        self
    }

    fn away(mut self) -> Self {
        self.world = World::Unavailable(Reason::EngineUnavailable, "away".to_owned());
        self
    }
}

const START_PULL: &str = "pull docker.io/library/agent:1";
const STOP: &str = "cancel the pull of docker.io/library/agent:1";
const REMEMBER: &str = "remember what was pulled";
const REMOVE: &str = "remove docker.io/library/agent:1 from the engine";
const FORGET: &str = "remove the last trace";

#[rstest::rstest]
#[case::asked_for(snapshot(), &[START_PULL], Reason::ImagePulling)]
#[case::there_but_asked_for(snapshot().there(), &[START_PULL], Reason::ImagePulling)]
#[case::asked_for_again(snapshot().there().answered("t0"), &[START_PULL], Reason::ImagePulling)]
#[case::gone(snapshot().answered("t1"), &[START_PULL], Reason::ImagePulling)]
#[case::there(snapshot().there().answered("t1"), &[], Reason::Converged)]
#[case::under_way(snapshot().pulling("t1"), &[], Reason::ImagePulling)]
#[case::repaired(snapshot().answered("t1").pulling("t1"), &[], Reason::ImagePulling)]
#[case::joins_somebody_elses(snapshot().pulling(""), &[START_PULL], Reason::ImagePulling)]
#[case::joins_an_older_one(snapshot().pulling("t0"), &[START_PULL], Reason::ImagePulling)]
#[case::leaves_somebody_elses(snapshot().there().answered("t1").pulling(""), &[], Reason::Converged)]
#[case::taken_back(snapshot().there().answered("t1").pulling("t2"), &[STOP], Reason::Progressing)]
#[case::taken_back_but_gone(snapshot().answered("t1").pulling("t2"), &[START_PULL], Reason::ImagePulling)]
#[case::pulled(snapshot().there().done("t1", START), &[REMEMBER], Reason::Progressing)]
#[case::pulled_once_more(
    snapshot().there().answered("t1").done("t1", START.plus(Duration::from_secs(1))),
    &[REMEMBER],
    Reason::Progressing
)]
#[case::pulled_and_gone(snapshot().answered("t1").done("t1", START), &[START_PULL], Reason::ImagePulling)]
#[case::pulled_for_another(snapshot().there().done("", START), &[START_PULL], Reason::ImagePulling)]
#[case::failed(snapshot().failed("t1", 1, false), &[REMEMBER], Reason::ImagePulling)]
#[case::failed_again(snapshot().there().answered("t0").failed("t1", 2, false), &[REMEMBER], Reason::ImagePulling)]
#[case::has_failed(snapshot().failed("t1", 1, false).ended("t1"), &[], Reason::PullFailed)]
#[case::has_failed_in_another_life(snapshot().there().answered("t0").ended("t1"), &[], Reason::PullFailed)]
#[case::has_failed_before(snapshot().ended("t0"), &[START_PULL], Reason::ImagePulling)]
#[case::is_taken_back_after_it_failed(snapshot().there().answered("t1").ended("t2"), &[], Reason::Converged)]
#[case::lost_its_engine(snapshot().failed("t1", 1, false).without_engine(), &[], Reason::Retrying)]
#[case::gone_and_failed(snapshot().answered("t1").failed("t1", 1, false), &[], Reason::ImagePullFailed)]
#[case::failed_before(snapshot().failed("t0", 9, true), &[START_PULL], Reason::ImagePulling)]
#[case::failed_after(snapshot().there().answered("t1").failed("t2", 1, false), &[], Reason::Converged)]
#[case::removed(
    snapshot().there().deleted(DesiredImage::Absent),
    &[REMOVE, FORGET],
    Reason::Terminating
)]
#[case::removed_by_id(
    snapshot().there().named(ID).deleted(DesiredImage::Absent),
    &["remove agent:1 from the engine", "remove agent:copy from the engine", "remove sha256:aa from the engine", FORGET],
    Reason::Terminating
)]
#[case::removed_while_it_is_pulled(
    snapshot().there().pulling("t1").deleted(DesiredImage::Absent),
    &[STOP],
    Reason::Terminating
)]
#[case::gone_already(snapshot().deleted(DesiredImage::Absent), &[FORGET], Reason::Terminating)]
#[case::cancelled(
    snapshot().pulling("t1").deleted(DesiredImage::Cancelled),
    &[STOP, FORGET],
    Reason::Terminating
)]
#[case::cancelled_too_late(
    snapshot().there().done("t1", START).deleted(DesiredImage::Cancelled),
    &[FORGET],
    Reason::Terminating
)]
#[case::cancelled_without_engine(
    snapshot().pulling("t1").away().deleted(DesiredImage::Cancelled),
    &[STOP, FORGET],
    Reason::Terminating
)]
#[case::away(snapshot().away(), &[], Reason::EngineUnavailable)]
#[case::away_and_removed(snapshot().away().deleted(DesiredImage::Absent), &[], Reason::EngineUnavailable)]
fn what_follows(#[case] seen: Snapshot, #[case] actions: &[&str], #[case] reason: Reason) {
    let plan = plan(&seen, START);
    let words: Vec<String> = plan.actions.iter().map(ToString::to_string).collect();
    assert_eq!(words, actions);
    let ready = find(&plan.conditions, ConditionType::Ready).unwrap();
    assert_eq!(ready.reason, reason);
    assert_eq!(
        ready.status == ConditionStatus::True,
        reason == Reason::Converged
    );
}

#[rstest::rstest]
#[case(1, false, 5)]
#[case(2, false, 10)]
#[case(4, false, 40)]
#[case(7, false, 300)]
#[case(u32::MAX, false, 300)]
#[case(1, true, 300)]
fn a_failed_pull_waits_longer_each_time(
    #[case] failures: u32,
    #[case] refused: bool,
    #[case] seconds: u64,
) {
    let seen = snapshot().answered("t1").failed("t1", failures, refused);
    let pause = Duration::from_secs(seconds);
    assert_eq!(plan(&seen, START).requeue, Requeue::After(pause));
    let later = START.plus(pause);
    assert_eq!(plan(&seen, later).actions.len(), 1);
}

#[test]
fn a_pull_under_way_is_told_in_percent_and_megabytes() {
    let plan = plan(&snapshot().pulling("t1"), START);
    assert_eq!(plan.conditions[0].message, "45 %, 12.3 of 80.0 MB");
    assert_eq!(plan.requeue, Requeue::After(Duration::from_secs(1)));
}
